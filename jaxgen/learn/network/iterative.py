"""Learners that improve a network iteration by iteration: what `Descent` and `Conjugate` share."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxgen.learn.batched import in_any_row
from jaxgen.learn.network.nets import MLP, Forward, PerTask, as_network, check_network
from jaxgen.learn.network.objectives import Objective, Penalty, as_objective, check_objective, check_penalty
from jaxgen.types import Data, Key, Learner, Minimum, Params, Plan
from jaxgen.types.devices import in_full_precision
from jaxgen.types.numbers import require, require_number, shown

_NETWORK = MLP()

_MOST_STEPS = 2**31 - 1
"""Iterations are counted in 32 bits."""


class Trained(NamedTuple):
    """A trained network.

    Attributes:
      params: its weights and biases; see the network.
      statistics: mean [H] and variance [H] of each layer that `batch_norm` standardises, over the training cases.
      failed_step: the iteration after which its error was no longer finite, -1 if it always was; [].
      gradient: norm of the objective's gradient, relative to that at a random start; [].
    """

    params: PyTree
    statistics: PyTree
    failed_step: Int[Array, "*S"]
    gradient: Float[Array, "*S"]


class Watched(NamedTuple):
    """The checkpoint with the least error, the errors [S] of all checkpoints (NaN after an early end), and its
    iteration [] (0 if none was finite).
    """

    best: Params
    errors: Float[Array, " S"]
    iteration: Int[Array, ""]


class Units(NamedTuple):
    """What is taken off inputs [D], and what they are divided by then, [D]."""

    centre: Float[Array, " D"]
    scale: Float[Array, " D"]


class Cases(NamedTuple):
    """Training cases inside a network: inputs [D, n], targets [K, n], weights [n]; all finite. Inputs with `units` are
    those of the data, and the network is one of inputs in these units. `turned` are the same inputs once more, where
    the network may learn faster with them.
    """

    x: Float[Array, "D n"]
    y: Float[Array, "K n"]
    w: Float[Array, " n"]
    units: Units | None = None
    turned: Float[Array, "n D"] | None = None


class Steps(NamedTuple):
    """One training in progress.

    Attributes:
      state: its beginning; `failed_step`, [], of a state is the iteration whose error was not finite, -1 before.
      advance: from a state at iteration a to that at iteration b, of (state, a, b).
      params: the parameters of the network that a state holds.
      cases: that it trains on.
      unit: norm of the objective's gradient at a random start, [].
    """

    state: Any
    advance: Callable[[Any, Any, Any], Any]
    params: Callable[[Any], PyTree]
    cases: Cases
    unit: Float[Array, ""]


class _Watch(NamedTuple):
    """A training that is watched.

    Attributes:
      save: the number of the next save.
      state: of the training.
      best: the network with the least error so far, whose gradient is not known yet, and where training failed.
      least: that error; infinite before there is one.
      iteration: its iteration; 0 before there is one.
      errors: of the checkpoints so far, [S]; NaN where there is none.
      active: whether this training goes on; others that run together may.
    """

    save: Int[Array, ""]
    state: Any
    best: Params
    least: Float[Array, ""]
    iteration: Int[Array, ""]
    errors: Float[Array, " S"]
    active: Bool[Array, ""]


@dataclass(frozen=True, repr=False)
class Iterative(Learner):
    """Base of learners that train one network by iterations; they say how with `begin`.

    Attributes:
      network: MLP, PerTask, or a flax module of your own, [n, D] to [n, K], with parameters only. Its argument
        `train`, `training` or `deterministic` is set if it has one. (Its dropout draws by position, so there absent
        cases change the draws of others.)
      steps: iterations.
      objective: what is made small; a name or an `Objective`.
      penalty: one or several of L2, L1, Sparse, Tied, added to the sum of the objective over the cases.
      checkpoints: iterations whose networks `path` returns and early stopping chooses from: "1-2-5" for 1 to 10 by 1,
        to 20 by 2, to 50 by 5, to 100 by 10, and so on (Neal 1998: 63 in 20,000); a number for that many, which are
        those of "1-2-5" if these are as many, else spaced logarithmically; or the iterations themselves. The last
        iteration is always one.
      tolerance: a network whose relative gradient norm is above it after the last iteration is marked as failed; None
        accepts all. (Michelucci & Venturini 2021 ask to leave out networks that did not converge.)
    """

    network: Any = _NETWORK
    steps: int = 1000
    objective: str | Objective = "squared"
    penalty: Penalty | tuple[Penalty, ...] = ()
    checkpoints: str | int | tuple[int, ...] = "1-2-5"
    tolerance: float | None = None

    saves_networks: ClassVar[bool] = True
    failures: ClassVar[tuple[str, ...]] = (
        "the error of its network was no longer finite (its step is in info['failed_step']; "
        "use a smaller rate, or normalise the data with learn.Normalised)",
        "its network had not converged after the last iteration (info['gradient'] is above the "
        "tolerance; use more steps)",
    )

    @property
    def classifies(self) -> bool:
        """Whether targets must be zeros and ones."""
        return as_objective(self.objective).classifies

    @property
    def predicts(self) -> str:
        """What the predictions are: probabilities for a cross-entropy, scores for a hinge, else numbers."""
        return as_objective(self.objective).predicts

    @property
    def raw_inputs(self) -> tuple[int, ...]:
        """Inputs that must come as they are in the data: the column of `PerTask`."""
        column = self.network.column if isinstance(self.network, PerTask) else None
        return () if column is None else (column,)

    @property
    def rounds(self) -> int:
        """As many as there are steps; also where several of them look at a batch only."""
        return self.steps

    @property
    def checkpoint_steps(self) -> tuple[int, ...]:
        """The S iterations that are saved, strictly increasing, the last one included."""
        return checkpoint_steps(self.checkpoints, self.steps)

    def init(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"]) -> PyTree:
        """The parameters that `fit` with the same key starts from; only the shapes and types of x [n, D] and y [n, K]
        matter.
        """
        return as_network(self.network).start(jax.random.fold_in(key, 0), x, y)

    @in_full_precision()
    def fit(
        self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], start: PyTree = None
    ) -> Trained:
        """The network after the last iteration, from a random start or from given parameters."""
        training = self.begin(key, x, y, w, start)
        return self._measured(training, training.advance(training.state, 0, self.steps), self.steps)

    def fit_from(
        self, start: PyTree, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]
    ) -> Trained:
        """The same as `fit(key, x, y, w, start)`, of cases [n, D], [n, K], [n]."""
        return self.fit(key, x, y, w, start)

    @property
    def takes_units(self) -> bool:
        """Whether `begin` takes `units`, in which the network sees its inputs."""
        return False

    @in_full_precision()
    def fit_in_units(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        centre: Float[Array, " D"],
        scale: Float[Array, " D"],
    ) -> Trained:
        """The same as `fit` on (x - centre) / scale. Rows with units [D] of their own share the inputs [n, D] where the
        units can be moved into the first layer, which is smaller.
        """
        if not self.takes_units or type(self).fit is not Iterative.fit:  # a class of the user's may train otherwise
            return super().fit_in_units(key, x, y, w, centre, scale)
        training = self.begin(key, x, y, w, None, Units(centre, scale))
        return self._measured(training, training.advance(training.state, 0, self.steps), self.steps)

    @in_full_precision()
    def path(
        self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], start: PyTree = None
    ) -> Trained:
        """The networks at `checkpoint_steps`, every array with a leading axis [S]."""
        training = self.begin(key, x, y, w, start)

        def visit(state, interval):
            state = training.advance(state, *interval)
            return state, self._measured(training, state, interval[1])

        return lax.scan(visit, training.state, _intervals(self.checkpoint_steps))[1]

    def shares_along(self, setting: str) -> bool:
        """Of the steps: the longest training passes through all others."""
        return setting == "steps"

    def fit_along(
        self,
        setting: str,
        values: tuple[int, ...],
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
    ) -> Trained:
        """The networks after several numbers of steps, every array with a leading axis [S], saved by one training."""
        saves = tuple(sorted(set(values)))
        saved = replace(self, steps=saves[-1], checkpoints=saves).path(key, x, y, w)
        return jax.tree.map(lambda a: a[np.searchsorted(saves, values)], saved)

    def watched(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        watch: Callable[[Params, Any], Float[Array, ""]],
        patience: int | float | None = None,
        stretch: float = 1.0,
        start: PyTree = None,
    ) -> Watched:
        """The best of the checkpoints by the error that `watch(trained, iteration)` gives, the first of equals.

        Args:
          key, x, y, w, start: as for `fit`, with cases [n, D], [n, K] and weights [n].
          watch: its error, [].
          patience, stretch: training ends at the first save beyond `stretch` times the best iteration so far +
            `patience`; None goes on to the last iteration.
        Returns:
          Watched, with errors [S].
        """
        training = self.begin(key, x, y, w, start)
        since, upto = _intervals(self.checkpoint_steps)
        nothing = jax.tree.map(
            lambda a: jnp.full(a.shape, jnp.nan if jnp.issubdtype(a.dtype, jnp.floating) else -1, a.dtype),
            jax.eval_shape(lambda state: self._network(training, state), training.state),
        )
        first = _Watch(
            jnp.int32(0),
            training.state,
            nothing,
            jnp.asarray(jnp.inf, x.dtype),
            jnp.int32(0),
            jnp.full(len(upto), jnp.nan, x.dtype),
            jnp.bool_(True),
        )

        def visit(loop: _Watch) -> _Watch:
            state = training.advance(loop.state, since[loop.save], upto[loop.save])
            now = self._network(training, state)
            error = watch(now, upto[loop.save])
            error = jnp.where(jnp.isfinite(error), error, jnp.inf)
            better = loop.active & (error < loop.least)
            best = jax.tree.map(lambda new, old: jnp.where(better, new, old), now, loop.best)
            failed_step = jnp.where(loop.active, state.failed_step, loop.best.failed_step)
            iteration = jnp.where(better, upto[loop.save], loop.iteration)
            errors = loop.errors.at[loop.save].set(jnp.where(loop.active, error, jnp.nan))
            active = loop.active
            if patience is not None:
                active = active & (upto[loop.save].astype(x.dtype) <= stretch * iteration.astype(x.dtype) + patience)
            return _Watch(
                loop.save + 1,
                state,
                best._replace(failed_step=failed_step),
                jnp.where(better, error, loop.least),
                iteration,
                errors,
                active,
            )

        def unfinished(loop: _Watch):
            return (loop.save < len(upto)) & (True if patience is None else in_any_row(loop.active))

        end = lax.while_loop(unfinished, visit, first)
        slope = jax.grad(self.energy)(end.best.params, training.cases)
        error = self.energy(training.params(end.state), training.cases)
        failed_step = jnp.where(end.active, _failed(end.best.failed_step, error, upto[-1]), end.best.failed_step)
        best = end.best._replace(failed_step=failed_step, gradient=norm(slope) / training.unit)
        return Watched(best, end.errors, end.iteration)

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
        raise TypeError(
            f"expected {type(self).__name__} to have a method begin, got none; write begin(key, x, y, w, start)"
        )

    @in_full_precision()
    def predict(self, params: Trained, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets, in the units of y; probabilities for a cross-entropy."""
        outputs = as_network(self.network).forward(params.params, x.T, statistics=params.statistics).outputs
        return as_objective(self.objective).predictions(outputs).T

    def failure(self, params: Trained) -> Int[Array, ""]:
        """1 if the error was not finite at some step, 2 if the network has not converged, else 0; []."""
        unconverged = jnp.bool_(False) if self.tolerance is None else ~(params.gradient <= self.tolerance)
        return jnp.where(params.failed_step >= 0, 1, jnp.where(unconverged, 2, 0)).astype(jnp.int32)

    def diagnose(self, params: Trained) -> dict[str, Array]:
        """The step of a failure and the relative gradient norm, each []."""
        return {"failed_step": params.failed_step, "gradient": params.gradient}

    def minimised(self, params: Trained) -> Minimum:
        """What training made small, for `algebraic.full_fit`: the objective with `Sparse` of each case, [n], and the
        other penalties, [].

        Raises:
          ValueError: a network with batch normalisation, dropout or noise, whose error is no sum of one function over
            the cases.
        """
        network, objective = as_network(self.network), as_objective(self.objective)
        inside = _inside(self.network)
        if draws(self.network) or (isinstance(inside, MLP) and inside.batch_norm):
            raise ValueError(
                "expected a network without batch_norm, dropout and noise, whose error is a sum of one "
                f"function over the cases, got {self.network}; leave them out, or resample"
            )

        def cost(free, x, y):
            forward = network.forward(free, x.T)
            losses, rest = objective.losses(forward.outputs, y.T), jnp.zeros((), x.dtype)
            for penalty in self.penalties:

                def size(w, penalty=penalty):
                    return penalty.penalty(free, forward.hidden, w)

                ones = jnp.ones(len(x), x.dtype)
                # A penalty of cases is linear in their weights, so its gradient is what each case adds.
                losses, rest = (
                    (losses + jax.grad(size)(ones), rest) if penalty.of_cases else (losses, rest + size(ones))
                )
            return losses, rest

        return params.params, lambda free: params._replace(params=free), cost

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses settings and data that do not fit.

        Raises:
          ValueError: what was expected, what came, and what to do.
        """
        require(f"the steps of {type(self).__name__}", self.steps, 1, _MOST_STEPS, advice="train for some iterations")
        if self.tolerance is not None:
            advice = "leave it out to accept all networks"
            require_number("the tolerance", self.tolerance, above=0, finite=False, advice=advice)
        checkpoint_steps(self.checkpoints, self.steps)
        check_network(self.network)
        network = as_network(self.network)
        network.check(data)
        check_objective(self.objective, data)
        for penalty in self.penalties:
            check_penalty(penalty, network)
        _try(self, data.d, data.y.shape[-1])

    @property
    def penalties(self) -> tuple[Penalty, ...]:
        """All penalties."""
        return self.penalty if isinstance(self.penalty, tuple) else (self.penalty,)

    def energy(self, params: PyTree, cases: Cases, key: Key | None = None, share: Any = 1.0) -> Float[Array, ""]:
        """The objective, []: its sum over the cases divided by the `share` of all cases that they are, plus the
        penalties.
        """
        forward = self._forward(params, cases, key)
        losses = as_objective(self.objective).losses(forward.outputs, cases.y)
        # A case of weight 0 may have an infinite loss. XLA's sums on a CPU take longer if they multiply as well, which
        # they do unless something comes after the product.
        total = jnp.sum(jnp.where(cases.w > 0, losses * cases.w, 0))
        for penalty in self.penalties:
            size = penalty.penalty(params, forward.hidden, cases.w)
            total = total + (size if penalty.of_cases else share * size)
        return total / share

    def _forward(self, params: PyTree, cases: Cases, key: Key | None = None) -> Forward:
        """What the network makes of training cases."""
        network = as_network(self.network)
        if cases.units is not None:
            params = self.network.on_data_units(params, *cases.units)
        more: dict[str, Any] = {} if cases.turned is None else {"turned": cases.turned}
        return network.forward(params, cases.x, cases.w, None, key, **more)

    def _network(self, training: Steps, state: Any) -> Trained:
        """The network that a state holds and its statistics; nobody has looked at its gradient, which is NaN."""
        params, cases = training.params(state), training.cases
        statistics = self._forward(params, cases).statistics
        return Trained(params, statistics, state.failed_step, jnp.full_like(training.unit, jnp.nan))

    def _measured(self, training: Steps, state: Any, iteration: Any) -> Trained:
        """The same after an iteration, with the norm [] of its gradient relative to that at a random start."""
        network = self._network(training, state)
        error, gradient = jax.value_and_grad(self.energy)(network.params, training.cases)
        failed_step = _failed(network.failed_step, error, iteration)
        return network._replace(failed_step=failed_step, gradient=norm(gradient) / training.unit)


@lru_cache(maxsize=256)
def _try(learner: Iterative, inputs: int, outputs: int) -> None:
    """Traces the objective at a random start, so that what the network or a penalty refuses is said before anything
    runs; once for equal learners, since Flax takes long.
    """
    x, y = (jax.ShapeDtypeStruct((2, width), jnp.float32) for width in (inputs, outputs))
    jax.eval_shape(
        lambda x, y: learner.energy(learner.init(jax.random.key(0), x, y), prepare(x, y, jnp.ones(2, x.dtype))), x, y
    )


def _failed(before: Int[Array, ""], error: Float[Array, ""], iteration: Any) -> Int[Array, ""]:
    """The iteration whose error was not finite: an earlier one, or this; -1 if none, []."""
    return jnp.where((before < 0) & ~jnp.isfinite(error), iteration, before)


def prepare(
    x: Float[Array, "n D"],
    y: Float[Array, "n K"],
    w: Float[Array, " n"],
    units: Units | None = None,
    turned: bool = False,
) -> Cases:
    """Cases as networks take them, [D, n], [K, n], [n], the inputs also `turned` where it is asked for; whatever stands
    in the targets of a case of weight 0 becomes 0.

    The inputs do not depend on the weights, so that all weightings of the same cases share one array of them: that of
    each row would leave the cache. So inputs that no network can learn from, being not finite or too large for their
    squares, become 0 in every case, and the targets of those cases that have weight become NaN, as the error then does.
    """
    usable = jnp.abs(x) < math.sqrt(float(jnp.finfo(x.dtype).max))
    targets = jnp.where(jnp.all(usable, axis=1)[None], y.T, jnp.nan)
    inputs, targets = jnp.where(usable, x, 0), jnp.where((w > 0)[None], targets, 0)
    return Cases(inputs.T, targets, w, units, inputs if turned else None)


def draws(network: Any) -> bool:
    """Whether training must draw random numbers; a flax module can do without, evaluated as for prediction."""
    inside = _inside(network)
    return as_network(inside) is inside and inside.random


def _inside(network: Any) -> Any:
    """The network of which `PerTask` has several, or itself."""
    return network.network if isinstance(network, PerTask) else network


def norm(tree: PyTree) -> Float[Array, ""]:
    """Euclidean norm of all numbers of a tree, []."""
    return jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree)))


def checkpoint_steps(checkpoints: str | int | tuple[int, ...], steps: int) -> tuple[int, ...]:
    """Strictly increasing iterations from 1 to `steps`, the last one included; see `Iterative.checkpoints`.

    Raises:
      ValueError: no such spacing, more checkpoints than iterations, or iterations that do not increase from 1 to
        `steps` at most.
    """
    if isinstance(checkpoints, tuple):
        whole = all(isinstance(checkpoint, int) and not isinstance(checkpoint, bool) for checkpoint in checkpoints)
        if not (checkpoints and whole and all(a < b for a, b in itertools.pairwise((0, *checkpoints, steps + 1)))):
            raise ValueError(
                f"expected checkpoints at increasing iterations from 1 to {steps}, got {shown(checkpoints)}; list each "
                "once, in order"
            )
        return checkpoints if checkpoints[-1] == steps else (*checkpoints, steps)
    spaced = _one_two_five(steps)
    whole = checkpoints if isinstance(checkpoints, int) and not isinstance(checkpoints, bool) else 0
    if checkpoints == "1-2-5" or whole == len(spaced):
        return spaced
    if not 1 <= whole <= steps:
        raise ValueError(
            f"expected checkpoints='1-2-5', a whole number from 1 to the {steps} steps, or a tuple of iterations, got "
            f"{shown(checkpoints)}; choose one of these"
        )
    return _logarithmic(whole, steps)


def _logarithmic(checkpoints: int, steps: int) -> tuple[int, ...]:
    """So many different iterations from 1 to `steps`, spaced by their logarithm; the last alone if it is one."""
    chosen = [0]
    for position in np.geomspace(1, steps, checkpoints) if checkpoints > 1 else [steps]:
        chosen.append(max(round(position), chosen[-1] + 1))
    return tuple(chosen[1:])


def _one_two_five(steps: int) -> tuple[int, ...]:
    """1 to 10 by 1, to 20 by 2, to 50 by 5, to 100 by 10, to 200 by 20, and so on, up to `steps`."""
    chosen = [1]
    while chosen[-1] < steps:
        last = chosen[-1]
        unit = 10 ** int(math.log10(last) + 1e-9)
        stride = 1 if unit == 1 else unit // 5 if last < 2 * unit else unit // 2 if last < 5 * unit else unit
        chosen.append(min(last + stride, steps))
    return tuple(chosen)


def _intervals(steps: tuple[int, ...]) -> tuple[Int[Array, " S"], Int[Array, " S"]]:
    """Where the stretch before each save begins and ends, [S] each."""
    return jnp.asarray((0, *steps[:-1]), jnp.int32), jnp.asarray(steps, jnp.int32)
