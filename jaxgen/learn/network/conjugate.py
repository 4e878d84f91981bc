"""Nonlinear conjugate gradients with a line search, for many networks at once."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxgen.learn.batched import in_any_row
from jaxgen.learn.network.iterative import Iterative, Steps, Units, draws, norm, prepare
from jaxgen.learn.network.nets import moves_units, worth_turning
from jaxgen.types import Data, Key, Plan
from jaxgen.types.numbers import require_number

_DECREASE = 1e-4
"""Least decrease of the energy, as a share of what the slope at the beginning promises: c1 of Nocedal & Wright 2006,
eq. 3.7a.
"""

_MOST_TRIED = 20
"""Steps that one line search tries before it takes the best of them (Rasmussen 1996)."""

_ROUNDING = 4
"""Energies that differ by as many units of the last place are the same, or by as many as the root of the number of
cases: so far a sum of their losses may be off, depending on the machine and on how XLA adds. With fewer, a search on
the plateau around the best linear network takes rounding for a rise, and the network stays there for ever (seen in
single precision with 683 cases).
"""

_NOTHING = 8
"""Gradients of sums of squares are rounding when they promise a decrease of E by less than (as many units of the last
place)^2 E.

Observed on linear networks that had converged: 1 to 6 units in both precisions, ten times more on ill-conditioned
data.
"""

Scalar = Float[Array, ""]

Vector = Float[Array, " p"]


class _Point(NamedTuple):
    """A point of a line search: the step from its beginning, and the energy and its slope there."""

    step: Scalar
    energy: Scalar
    slope: Scalar


class _Search(NamedTuple):
    """What line searches go by.

    Attributes:
      curvature: as of `Conjugate`.
      units: energies that differ by as many units of the last place are the same, [].
    """

    curvature: float
    units: Scalar

    def rounding(self, origin: _Point) -> Scalar:
        """Difference below which two energies of a line search are the same."""
        return self.units * jnp.finfo(origin.energy.dtype).eps * jnp.abs(origin.energy)


class _State(NamedTuple):
    """A network in training and its line search in progress.

    Attributes:
      params, gradient, direction: where the search began, the gradient there, and where it goes; [p] each.
      origin: the point where it began.
      low: of the points tried that decrease the energy enough, the lowest; at first the origin.
      high: the other end of an interval that holds a minimum; at an infinite step before there is one.
      step: what is tried next, [].
      tried: steps tried, [].
      promise: the decrease that the slope promised for the last step taken, [].
      steepest: whether the direction is that of steepest descent, [].
      iteration: line searches that ended well, [].
      stopped: no further progress is possible, [].
      failed_step: the iteration at which the energy or its gradient was no longer finite, -1 if there was none; [].
    """

    params: Vector
    gradient: Vector
    direction: Vector
    origin: _Point
    low: _Point
    high: _Point
    step: Scalar
    tried: Int[Array, ""]
    promise: Scalar
    steepest: Bool[Array, ""]
    iteration: Int[Array, ""]
    stopped: Bool[Array, ""]
    failed_step: Int[Array, ""]


@dataclass(frozen=True, repr=False)
class Conjugate(Iterative):
    """Conjugate gradients of Polak & Ribière (1969) on the objective of one training set, with a line search in every
    iteration.

    Directions are d <- -g + max(beta, 0) d, beta = g'(g - g_before) / g_before'g_before, or -g where that does not
    descend (PR+ of Nocedal & Wright 2006, eq. 5.44, 5.45). A line search ends at strong Wolfe conditions (their eq.
    3.7): it enlarges its step until it brackets a minimum and then narrows the bracket, by cubics through energies and
    slopes (their algorithms 3.5 and 3.6), or by the slopes alone where energies are equal within rounding. Its first
    step promises, by the slope, the same decrease as the last one (their eq. 3.60). After 20 steps it takes the lowest
    point. If none is lower, or a step promised no more than rounding, it begins anew along -g; if that happened along
    -g, the network stays as it is. So the energy never increases by more than its rounding.

    An iteration is one line search, about two evaluations of energy and gradient over all cases. Networks that are
    trained together need not wait for each other within a line search: each evaluation serves every network at its own
    stage, and a network that is ahead at a saved iteration narrows its next search meanwhile.

    Objectives and activations should be smooth: at a kink ("absolute", "hinge", L1, relu) no step may help although
    the gradient is not small. A network that draws random numbers is refused, since a search needs one function; a
    flax module of your own is evaluated as for prediction, without dropout.

    Attributes:
      curvature: a step is accepted where the slope is at most this share of the slope at its beginning, above 0.0001
        and below 0.5; smaller is more exact and needs more evaluations.
    """

    curvature: float = 0.1

    @property
    def takes_units(self) -> bool:
        """Whether the network can take over the units."""
        return moves_units(self.network)

    def begin(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        start: PyTree,
        units: Units | None = None,
    ) -> Steps:
        """A training on cases [n, D], [n, K] of weights [n] that can be advanced iteration by iteration; with `units`,
        [D] each, of a network that sees inputs in these.
        """
        cases = prepare(x, y, w, units, worth_turning(self.network, x.shape[1]))
        random = self.init(key, x, y)
        params, restored = ravel_pytree(random if start is None else start)
        measured = jax.value_and_grad(lambda params: self.energy(restored(params), cases))
        search = _Search(self.curvature, jnp.maximum(_ROUNDING, jnp.sqrt(jnp.sum(cases.w))))

        def advance(state: _State, since: Any, upto: Any) -> _State:
            def unfinished(state):
                return in_any_row(~state.stopped & (state.iteration < upto))

            return lax.while_loop(unfinished, lambda state: _after_trial(state, measured, upto, search), state)

        return Steps(
            _first(params, *measured(params)),
            advance,
            lambda state: restored(state.params),
            cases,
            norm(jax.grad(self.energy)(random, cases)),
        )

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses settings and data that do not fit, and networks that draw random numbers.

        Raises:
          ValueError: what was expected, what came, and what to do.
        """
        require_number("the curvature", self.curvature, above=_DECREASE, below=0.5, advice="leave it out for 0.1")
        super().check(data, plan)
        if draws(self.network):
            raise ValueError(
                f"expected a network without dropout and noise, got {self.network}: "
                "a line search needs one fixed function; leave them out, or use learn.Descent"
            )


def _first(params: Vector, energy: Scalar, gradient: Vector) -> _State:
    """The state before the first trial of the first line search, whose step would make the energy zero if it fell as
    its slope says.
    """
    zero, number = jnp.zeros_like(energy), jnp.int32(0)
    point = _Point(zero, energy, zero)
    state = _State(
        params,
        gradient,
        -gradient,
        point,
        point,
        point,
        zero,
        number,
        energy,
        jnp.bool_(True),
        number,
        jnp.bool_(False),
        number - 1,
    )
    return _new_search(state, params, energy, gradient, zero, energy, number)


def _new_search(
    state: _State,
    params: Vector,
    energy: Scalar,
    gradient: Vector,
    beta: Scalar,
    promise: Scalar,
    iteration: Int[Array, ""],
) -> _State:
    """The state at the beginning of a line search from the given parameters; along -gradient where the conjugate
    direction does not descend.
    """
    size = _dot(gradient, gradient)
    slope = beta * _dot(gradient, state.direction) - size
    conjugate = (beta > 0) & (slope < 0)
    beta, slope = jnp.where(conjugate, beta, 0), jnp.where(conjugate, slope, -size)
    finite = jnp.isfinite(energy) & jnp.isfinite(slope)
    return _State(
        params=params,
        gradient=gradient,
        direction=beta * state.direction - gradient,
        origin=(origin := _Point(jnp.zeros_like(energy), energy, slope)),
        low=origin,
        high=_Point(jnp.full_like(energy, jnp.inf), energy, slope),
        step=jnp.minimum(promise / -slope, math.sqrt(jnp.finfo(energy.dtype).max)),
        tried=jnp.zeros_like(state.tried),
        promise=promise,
        steepest=~conjugate,
        iteration=iteration,
        stopped=~finite | (size == 0),
        failed_step=jnp.where((state.failed_step < 0) & ~finite, iteration, state.failed_step),
    )


def _after_trial(
    state: _State, measured: Callable[[Vector], tuple[Scalar, Vector]], upto: Any, search: _Search
) -> _State:
    """The state after one evaluation, at the step that is tried.

    A search that ends at the last iteration wanted is left as it is: its last trial is repeated when more iterations
    are.
    """
    params = state.params + state.step * state.direction
    energy, gradient = measured(params)
    trial = _Point(state.step, energy, _dot(gradient, state.direction))
    narrowed, wolfe = _narrowed(state, trial, search)
    accepted = wolfe | (state.tried >= _MOST_TRIED)
    lost = (
        ~accepted
        & (narrowed.tried >= _MOST_TRIED)
        & (narrowed.low.energy >= state.origin.energy - search.rounding(state.origin))
    )
    promise = jnp.where(accepted, -trial.step * state.origin.slope, state.promise)
    idle = lost | (promise <= jnp.square(_NOTHING * jnp.finfo(energy.dtype).eps) * state.origin.energy)
    beta = _dot(gradient, gradient - state.gradient) / _dot(state.gradient, state.gradient)
    following = _new_search(
        state,
        jnp.where(accepted, params, state.params),
        jnp.where(accepted, energy, state.origin.energy),
        jnp.where(accepted, gradient, state.gradient),
        jnp.where(idle, 0, beta),
        promise,
        state.iteration + accepted.astype(jnp.int32),
    )
    following = following._replace(stopped=following.stopped | (idle & state.steepest))
    ends = accepted | lost
    return _chosen(state.stopped | (ends & (state.iteration >= upto)), state, _chosen(ends, following, narrowed))


def _narrowed(state: _State, trial: _Point, search: _Search) -> tuple[_State, Bool[Array, ""]]:
    """The search with its bracket enlarged or narrowed by a trial and its next step, and whether the trial satisfies
    Wolfe's conditions.
    """
    origin, low, high = state.origin, state.low, state.high
    rounding = search.rounding(origin)
    finite = jnp.isfinite(trial.energy) & jnp.isfinite(trial.slope)
    lower = (
        finite
        & (trial.energy <= origin.energy + _DECREASE * trial.step * origin.slope + rounding)
        & (trial.energy <= low.energy + rounding)
    )
    wolfe = lower & (jnp.abs(trial.slope) <= -search.curvature * origin.slope)
    behind = (trial.slope >= 0) == (high.step > low.step)  # the minimum lies between low and the trial
    new_low = _chosen(lower, trial, low)
    new_high = _chosen(
        lower, _chosen(behind, low, high), trial._replace(energy=jnp.where(finite, trial.energy, jnp.inf))
    )
    tried = state.tried + 1
    step = jnp.where(jnp.isinf(new_high.step), _beyond(low, trial, rounding), _between(new_low, new_high, rounding))
    return state._replace(
        low=new_low, high=new_high, step=jnp.where(tried < _MOST_TRIED, step, new_low.step), tried=tried
    ), wolfe


def _between(a: _Point, b: _Point, rounding: Scalar) -> Scalar:
    """The step tried next between two points, in the inner 80 % of the interval."""
    share = jnp.clip(_minimum(a, b, rounding), 0.1, 0.9)
    share = jnp.where(jnp.isfinite(b.energy), jnp.where(jnp.isfinite(share), share, 0.5), 0.1)
    return a.step + share * (b.step - a.step)


def _beyond(a: _Point, b: _Point, rounding: Scalar) -> Scalar:
    """The step tried next beyond b, seen from a."""
    share = _minimum(a, b, rounding)
    return a.step + jnp.where(share > 1, jnp.clip(share, 1.2, 10), 4) * (b.step - a.step)


def _minimum(a: _Point, b: _Point, rounding: Scalar) -> Scalar:
    """Where between a (0) and b (1), or beyond, the cubic through both has its minimum; not finite if it has none.

    Nocedal & Wright 2006, eq. 3.59, in units in which nothing overflows. Where the energies are equal within rounding
    it is the zero of the line through both slopes.
    """
    width, fall = b.step - a.step, a.energy - b.energy
    at_a, at_b = a.slope * width, b.slope * width
    middle = at_a + at_b + 3 * fall
    unit = jnp.maximum(jnp.maximum(jnp.abs(at_a), jnp.abs(at_b)), jnp.abs(middle))
    at_a, at_b, middle = at_a / unit, at_b / unit, middle / unit
    root = jnp.sqrt(jnp.square(middle) - at_a * at_b)
    cubic = 1 - (at_b + root - middle) / (at_b - at_a + 2 * root)
    return jnp.where(jnp.abs(fall) > rounding, cubic, at_a / (at_a - at_b))


def _chosen(condition: Bool[Array, ""], a: Any, b: Any) -> Any:
    """a where the condition holds, else b; trees of one structure."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), a, b)


def _dot(a: Vector, b: Vector) -> Scalar:
    return jnp.sum(a * b)
