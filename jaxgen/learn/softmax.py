"""Logistic and softmax regression as problems of Newton's method, in orthonormal coordinates of the weighted inputs.

Cases are the last axis ([p, n], [K, n]), so that every elementwise loop runs along the long axis, as inside networks.
Letters: p coefficients of a class, K classes that are modelled (1 of two, or all of them), s rows of the ridge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.batched import in_any_row, over_first
from jaxgen.learn.classes import Classes
from jaxgen.learn.coordinates import MANY, Gram
from jaxgen.learn.quasi_newton import nearer
from jaxgen.learn.systems import conjugate_gradients, inverse

_FEW_UNKNOWNS = 64
"""Up to this many unknowns, Newton's equations of one training set are written out and factorised; beyond, conjugate
gradients solve them by products with the Hessian, which cost n p K each where the Hessian costs n (p K)^2.
"""

_FEW_IN_ROWS, _LITTLE_IN_ROWS = 600_000, 50_000
"""The same for one of many rows in single precision: n times the square of (K - 1)^2 p, and n times this. Beyond, some
gradients and a few products with the Hessian take less time than to write it out: 2 to 5 times less in 50 rows of
10,000 x 20 with three classes or of 100,000 x 20 with two. Below, they would take longer to compile than they save.
"""

_LOOSE, TIGHT = 0.1, 1e-4
"""Relative residuals of Newton's equations that are good enough far from the minimum and close to it. The last step,
below the root of a rounding, need be no more exact than to leave 1e-4 of that.
"""

_SAFELY = 4
"""By which a step may be longer than the gradient makes expect, in proportion to the step before."""

_FORCED = 0.9
"""By which the square of the last step's gain is multiplied to have the next residual (Eisenstat & Walker 1996, choice
2).
"""

_MOST_QUICK = 400
"""Rounds of conjugate gradients in single precision after which they are given up."""

_CLOSER, _MOST_GRADIENTS = 1e-5, (30, 60)
"""Part of the gradient that similar problems, which begin where one of them ends, leave for Newton's method, and the
most gradients that this may take them, with few coefficients of a class and with many, where exponentials are less of
the work; those of digits take 19 of single precision, and one step is left.
"""

_FEWEST_ROUNDS = 16
"""Rounds of conjugate gradients that are never too many; more are if they are beyond a third of the coefficients of a
class, half of which cost as much as new inverse Hessians.
"""


class Point(NamedTuple):
    """A solution [K, p], its objective, and the most by which another class exceeds the true one, in logits: < 0 where
    all cases are on their side, and 0 where nobody asks.
    """

    solution: Float[Array, "K p"]
    objective: Float[Array, ""]
    overlap: Float[Array, ""]


class Start(NamedTuple):
    """Where Newton's method begins: a solution [K, p], and inverse Hessians of each class alone, [k, p, p]. There are
    none for problems that need none, or that take those at zero of coordinates each alone.
    """

    solution: Float[Array, "K p"]
    inverses: Float[Array, "k p p"]


class Before(NamedTuple):
    """What a step should know of those before: inverse Hessians of each class alone, at an earlier solution, which
    conjugate gradients start from; the rounds that the last of these took; the relative length of the gradient then,
    and the most by which the step changed a logit.
    """

    matrices: Float[Array, "k p p"]
    rounds: Int[Array, ""]
    cosine: Float[Array, ""]
    change: Float[Array, ""]


class Direction(NamedTuple):
    """Newton's step [K, p] with the gradient there, the smallest curvature that was met relative to the largest,
    whether the step is as exact as it was to be, the relative residual that this is, and what the next step should
    know.
    """

    gradient: Float[Array, "K p"]
    step: Float[Array, "K p"]
    pivot: Float[Array, ""]
    exact: Bool[Array, ""]
    residual: Float[Array, ""]
    now: Before


@dataclass(frozen=True)
class Problem(Gram):
    """What is minimised over solution s [K, p]: sum w cross-entropy(s @ cases) + s . (s @ ridge) / 2, the ridge as a
    matrix.

    With K >= 2, solutions, gradients and steps add up to 0 over the classes.

    Attributes:
      classes: of the cases.
      written_out: whether Newton's equations are; see `are_written_out`.
    """

    classes: Classes
    written_out: bool

    def at(self, solution: Float[Array, "K p"], may_be_separable: bool) -> Point:
        """A solution [K, p] with its objective, and its overlap where a minimum is in doubt."""
        logits = solution @ self.cases
        objective = self.w @ self.classes.costs(logits) + self._penalty(solution) / 2
        overlap = jnp.zeros_like(objective)
        if may_be_separable:
            overlap = jnp.max(jnp.where(self.w > 0, self.classes.above(logits), -jnp.inf))
        return Point(solution, objective, overlap)

    def logit(self, solution: Float[Array, "K p"]) -> Float[Array, ""]:
        """The largest logit of a solution [K, p]; []."""
        return jnp.max(over_first(jnp.maximum, jnp.abs(solution @ self.cases)))

    def cosine(self, solution: Float[Array, "K p"]) -> Float[Array, ""]:
        """Length [] of the gradient relative to that of the residuals, at a solution [K, p]."""
        excess, _ = self.classes.residuals(solution @ self.cases)
        return self._cosine(excess, solution, self._gradient(excess, solution))

    def direction(
        self,
        solution: Float[Array, "K p"],
        before: Before,
        left: Float[Array, ""],
        quick: bool,
        shared: Float[Array, "k p p"] | None,
    ) -> Direction:
        """The gradient [K, p], and Newton's step as exactly as the distance to the minimum deserves, where logits may
        be left so far from it; `quick`: by products in single precision. Inverse Hessians that several problems share
        are never made anew, since one product with them serves all.
        """
        excess, known = self.classes.residuals(solution @ self.cases)
        gradient = self._gradient(excess, solution)
        if self.written_out:
            step, pivot = self.classes.eliminated(self, known, gradient)
            return Direction(gradient, -step, pivot, jnp.bool_(True), jnp.zeros_like(left), before)
        # As small a residual as the square of what the last step left keeps the convergence quadratic, and solves no
        # equations better than they tell of the minimum.
        cosine = self._cosine(excess, solution, gradient)
        enough = jnp.clip(_FORCED * jnp.square(cosine / before.cosine), TIGHT, _LOOSE)
        enough = jnp.where(cosine > TIGHT, enough, TIGHT)
        expected = jnp.where(before.cosine > 0, _SAFELY * before.change * cosine / before.cosine, jnp.inf)
        enough = jnp.maximum(enough, jnp.minimum(left / expected, _LOOSE))
        if shared is None:
            inverses = lax.cond(
                in_any_row(before.rounds > max(_FEWEST_ROUNDS, len(self.cases) // 3)),
                lambda: self._inverses(known),
                lambda: before.matrices,
            )
        else:
            inverses = shared
        problem = self.single if quick else self
        weighted = (self.w[None] * known).astype(problem.w.dtype)

        def product(step: Float[Array, "K p"]) -> Float[Array, "K p"]:
            return problem._by_solution(problem.classes.curved(weighted, step @ problem.cases), step)

        # Of unit size, so that squares of what is left do not underflow in single precision.
        size = jnp.max(jnp.abs(gradient))
        unit = (gradient / jnp.where(size > 0, size, 1)).astype(weighted.dtype)
        rounds = _MOST_QUICK if quick else gradient.size
        starting = problem._preconditioner(inverses)
        found = conjugate_gradients(product, starting, unit, enough.astype(unit.dtype), rounds)
        step = self.classes.centred(-size * found.solution.astype(gradient.dtype))
        pivot = (found.least / found.largest).astype(gradient.dtype)
        now = Before(inverses if shared is None else before.matrices, found.rounds, cosine, before.change)
        return Direction(gradient, step, pivot, found.enough, enough, now)

    def nearer(self, start: Start, hopeless: Bool[Array, ""]) -> Float[Array, "K p"]:
        """A solution [K, p] much nearer to the minimum than that from which many similar problems begin; a hopeless
        problem stays there.
        """
        solution = start.solution.astype(self.w.dtype)
        excess, _ = self.classes.residuals(solution @ self.cases)
        rounding = float(jnp.finfo(self.w.dtype).eps) * self._length(excess, solution)

        def gradient(solution: Float[Array, "K p"]) -> Float[Array, "K p"]:
            return self._gradient(self.classes.residuals(solution @ self.cases)[0], solution)

        starting, enough = self._preconditioner(start.inverses), jnp.where(hopeless, jnp.inf, rounding)
        return nearer(gradient, starting, solution, enough, _CLOSER, _MOST_GRADIENTS[len(self.cases) >= MANY])

    def at_zero(self) -> Start:
        """No coefficients, and no inverse Hessians."""
        k, p, dtype = self.classes.modelled, len(self.cases), self.w.dtype
        return Start(jnp.zeros((k, p), dtype), jnp.zeros((0, p, p), dtype))

    def start_at_zero(self) -> Start:
        """The same with inverse Hessians [K, p, p] there, each coordinate alone, for problems that need some."""
        start, p = self.at_zero(), len(self.cases)
        if self.written_out:
            return start
        return start._replace(inverses=jnp.broadcast_to(jnp.diag(self._alone), (self.classes.modelled, p, p)))

    @property
    def _alone(self) -> Float[Array, " p"]:
        """Inverse second derivatives [p] of each coordinate alone at zero, where all cases have the same curvature."""
        share = 1 / max(2, self.classes.modelled)
        curvature, ridge = share * (1 - share), self.ridge.diagonal
        return 1 / (curvature * (1 - ridge) + ridge)

    def inverses_at(self, solution: Float[Array, "K p"]) -> Float[Array, "K p p"]:
        """Inverse Hessians of each class alone, at a solution [K, p]."""
        return self._inverses(self.classes.residuals(solution @ self.cases)[1])

    def _inverses(self, known: Float[Array, "K n"]) -> Float[Array, "K p p"]:
        return jax.vmap(inverse)(self.weighted(self.classes.by_class(known) * self.w[None]))

    def _gradient(self, excess: Float[Array, "K n"], solution: Float[Array, "K p"]) -> Float[Array, "K p"]:
        return self._by_solution(self.w[None] * excess, solution)

    def _by_solution(self, weighted: Float[Array, "K n"], solution: Float[Array, "K p"]) -> Float[Array, "K p"]:
        """What weighted derivatives by the logits [K, n] are by the solution, with those of the ridge, [K, p]."""
        # Rounding would leave a part that no step can take away.
        return self.classes.centred(weighted @ self.turned + self.ridge.of(solution))

    def _preconditioner(self, inverses: Float[Array, "k p p"]) -> Callable[[Array], Array]:
        """The product of inverse Hessians of each class alone, or at zero, and a gradient [K, p]."""
        if not len(inverses):
            each = self._alone
            return lambda gradient: self.classes.centred(each[None] * gradient)
        starting = inverses.astype(self.w.dtype)
        return lambda gradient: self.classes.centred(jnp.einsum("kpq,kq->kp", starting, gradient))

    def _penalty(self, solution: Float[Array, "K p"]) -> Float[Array, ""]:
        return jnp.sum(solution * self.ridge.of(solution))

    def _cosine(
        self, excess: Float[Array, "K n"], solution: Float[Array, "K p"], gradient: Float[Array, "K p"]
    ) -> Float[Array, ""]:
        length = self._length(excess, solution)
        return jnp.sqrt(jnp.sum(jnp.square(gradient))) / jnp.where(length > 0, length, 1)

    def _length(self, excess: Float[Array, "K n"], solution: Float[Array, "K p"]) -> Float[Array, ""]:
        """Length [] of the weighted residuals, with the ridge's share."""
        squares = self.w @ over_first(jnp.add, jnp.square(excess)) + self._penalty(solution)
        return jnp.sqrt(jnp.maximum(squares, 0))


def are_written_out(classes: int, coefficients: int, cases: int, one_of_many: bool) -> bool:
    """Whether Newton's equations of so many classes, 1 of two, and coefficients of each are written out and factorised,
    for one of many rows of so many cases or for a training set alone; else conjugate gradients solve them.
    """
    contrasts = max(1, classes - 1)
    work, few = contrasts**2 * coefficients, contrasts * coefficients <= _FEW_UNKNOWNS
    return few and (not one_of_many or (work**2 * cases <= _FEW_IN_ROWS and work * cases <= _LITTLE_IN_ROWS))
