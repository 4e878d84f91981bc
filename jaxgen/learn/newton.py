"""Newton's method for logistic and softmax regression, with steps that are halved until the objective falls."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.softmax import TIGHT, Before, Point, Problem, Start

NOT_CONVERGED, SEPARABLE = 1, 2

_HALVINGS = 30
"""Halvings of a step before it is given up: 1e-9 of a step changes nothing that single precision shows."""

_ROUNDINGS = 32
"""A pivot of Newton's equations below this many roundings of the largest diagonal element is taken as 0."""

_LEFT = 3e-10
"""The last step need not leave logits nearer to those of the minimum than this, relative to the largest."""


class State(NamedTuple):
    """Newton's method: where it is, the steps taken, the number of the sentence that holds if it ends here, whether it
    does, and what the next step should know.
    """

    point: Point
    iterations: Int[Array, ""]
    trouble: Int[Array, ""]
    done: Bool[Array, ""]
    before: Before


def minimised(
    problem: Problem,
    hopeless: Bool[Array, ""],
    steps: int,
    may_be_separable: bool,
    start: Start | None = None,
    quick: bool = False,
    close: float | None = None,
) -> State:
    """Newton's method from a solution [K, p] of zeros or another, at most `steps` steps; none for a hopeless row, which
    would keep the others waiting. It ends with a step that changes no logit by more than `close`, relative to the
    largest; None asks for the root of a rounding.

    A quick one finds and measures its steps in single precision, in half the time, and ends without a minimum where
    that does not show all curvature. Its minimum is that of the other: gradients are in the precision of the cases.
    """
    dtype = problem.cases.dtype
    eps = float(jnp.finfo(dtype).eps)
    near = eps**0.5 if close is None else close
    judge = problem.single if quick else problem
    noise = 4 * len(problem.w) ** 0.5 * float(jnp.finfo(judge.w.dtype).eps)

    def at(solution: Float[Array, "K p"]) -> Point:
        return judge.at(solution.astype(judge.w.dtype), may_be_separable)._replace(solution=solution)

    def step(state: State) -> State:
        largest = problem.logit(state.point.solution)
        most, left = near * (1 + largest), max(TIGHT * near, _LEFT) * (1 + largest)
        if not problem.written_out:  # the square of a small step is what convergence that is quadratic leaves
            most = jnp.maximum(most, jnp.sqrt(left))
        found = problem.direction(state.point.solution, state.before, left, quick, shared)
        finite = jnp.all(jnp.isfinite(found.step))
        direction = jnp.where(finite, found.step, 0)
        change = judge.logit(direction.astype(judge.w.dtype)).astype(dtype)
        converged = finite & found.exact & (change <= most) & (found.residual * change <= left)
        # The last step is taken in full: it changes the objective by less than its rounding.
        rounding = jnp.where(converged, jnp.inf, noise * jnp.abs(state.point.objective))
        length, point = halved(at, state.point, direction, jnp.sum(found.gradient * direction), rounding)
        trouble = jnp.where(converged, 0, NOT_CONVERGED)
        done = converged | ~finite | (length == 0) | (quick & ~found.exact)
        if may_be_separable:
            # Cases all on their side prove that there is no minimum. With cases on the border, Newton's steps
            # keep their length, until the curvature along them is lost in rounding: then steps are noise, maybe small.
            separated = (point.overlap < -100 * eps * (largest + change)) | ~(found.pivot > _ROUNDINGS * eps)
            trouble = jnp.where(separated | (~converged & (largest > 5) & (change > 0.1)), SEPARABLE, trouble)
            done = done | separated
        return State(point, state.iterations + 1, trouble.astype(jnp.int32), done, found.now._replace(change=change))

    count, nothing, shared = jnp.zeros((), jnp.int32), jnp.zeros((), dtype), None
    if start is None:
        start = problem.start_at_zero()
        objective = math.log(max(2, problem.classes.modelled)) * jnp.sum(judge.w)
        point = Point(start.solution, objective, jnp.zeros_like(objective))
    else:
        if not (problem.written_out or may_be_separable):
            # What rounding leaves of the sum over the classes would stay, since no step has any.
            start = start._replace(solution=problem.classes.centred(judge.nearer(start, hopeless).astype(dtype)))
        point = at(start.solution)
        if quick:
            shared = start.inverses
            start = start._replace(inverses=shared[:0])
    return lax.while_loop(
        lambda state: ~state.done & (state.iterations < steps),
        step,
        State(point, count, count + NOT_CONVERGED, hopeless, Before(start.inverses, count, nothing, nothing)),
    )


def start_for_similar(problem: Problem, state: State) -> Start:
    """Where to begin for problems of the same cases with similar weights, when one of them has ended in this state:
    there, or at zero if it did not find a minimum.
    """
    found, nothing = state.trouble == 0, problem.start_at_zero()
    solution = jnp.where(found, state.point.solution, nothing.solution)
    inverses = nothing.inverses
    if len(inverses):
        inverses = jnp.where(found, problem.inverses_at(solution), inverses)
    return Start(solution, inverses)


class _Trial(NamedTuple):
    """A step [] along a direction, and the point there."""

    length: Float[Array, ""]
    point: Point


def halved(
    at: Callable[[Array], Point],
    point: Point,
    direction: Float[Array, "K p"],
    slope: Float[Array, ""],
    rounding: Float[Array, ""],
) -> _Trial:
    """The first of 1, 1/2, 1/4, ... by which the objective falls (but for its rounding), and the point there; 0 if
    none does. What is at a solution [K, p] is a function's to say.
    """
    expected = 1e-4 * slope.astype(rounding.dtype)

    def rises(trial: _Trial):
        bound = point.objective + trial.length.astype(rounding.dtype) * expected + rounding
        return ~(trial.point.objective <= bound) & (trial.length > 0)

    def halve(trial: _Trial) -> _Trial:
        length = jnp.where(trial.length > 0.5**_HALVINGS, trial.length / 2, 0)
        return _Trial(length, at(point.solution + length * direction))

    # A first trial of twice the full step that counts as rising: so the point of the full step is written out once.
    nowhere = _Trial(jnp.full_like(slope, 2), point._replace(objective=jnp.full_like(rounding, jnp.nan)))
    return lax.while_loop(rises, halve, nowhere)
