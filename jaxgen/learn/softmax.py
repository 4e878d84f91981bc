"""Logistic and softmax regression as problems of Newton's method, in orthonormal coordinates of the weighted inputs.

Cases are the last axis ([p, n], [K, n]), so that every elementwise loop runs along the long axis, as inside networks.
Letters: p coefficients of a class, K classes that are modelled (1 of two, or all of them), s rows of the ridge.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int
from scipy.linalg import helmert

from jaxgen.learn.batched import in_any_row, over_first
from jaxgen.learn.coordinates import MANY, MatrixRidge, ScaledRidge, SpanRidge
from jaxgen.learn.quasi_newton import nearer
from jaxgen.learn.systems import conjugate_gradients, inverse, solved

_FEW_UNKNOWNS = 64
"""Up to this many unknowns, Newton's equations are written out and factorised; beyond, conjugate gradients solve them
by products with the Hessian, which cost n p K each where the Hessian costs n (p K)^2.
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

_MOST_PRODUCTS = 2_000_000
"""Numbers that problems may share to have their Hessians by one matrix product: 16 MB."""

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


def orthonormal_contrasts(classes: int) -> Float[np.ndarray, "K F"]:
    """Orthonormal contrasts of K classes, [K, K - 1]."""
    return helmert(classes).T


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
class Gram:
    """Weighted cases and a ridge, in coordinates in which they are orthonormal, or would be with more cases.

    Attributes:
      cases: [p, n].
      turned: the same as rows, [n, p], since products over the cases would turn them anew each time.
      ridge: in these coordinates.
      w: weights of the cases, [n].
      products: those of any two coordinates of each case, `pairs_of(cases)`, where several problems share them.
    """

    cases: Float[Array, "p n"]
    turned: Float[Array, "n p"]
    ridge: MatrixRidge | ScaledRidge | SpanRidge
    w: Float[Array, " n"]
    products: Float[Array, "t n"] | None

    @property
    def single(self) -> Any:
        """The same in single precision."""
        numbers = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "products"}
        return replace(self, products=None, **{name: value.astype(jnp.float32) for name, value in numbers.items()})

    def weighted(self, weights: Float[Array, "g n"]) -> Float[Array, "g p p"]:
        """Gram matrices [g, p, p] of the cases with other weights [g, n], and of the penalty."""
        return self.summed(weights) + self.ridge.matrix[None]

    def summed(self, weights: Float[Array, "g n"]) -> Float[Array, "g p p"]:
        """Weighted sums over the cases of the products of any two coordinates, [g, p, p] for weights [g, n]."""
        if self.products is None:
            return lax.map(lambda w: (self.cases * w[None]) @ self.turned, weights)
        return (weights @ self.products.T)[:, _places(len(self.cases))]


@dataclass(frozen=True)
class Problem(Gram, abc.ABC):
    """What is minimised over solution s [K, p]: sum w cross-entropy(s @ cases) + s . (s @ ridge) / 2, the ridge as a
    matrix.

    With K >= 2, solutions, gradients and steps add up to 0 over the classes.
    """

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, int]:
        """K and the number of unknowns."""

    @abc.abstractmethod
    def above(self, logits: Float[Array, "K n"]) -> Float[Array, " n"]:
        """The most by which another class exceeds the true one, [n], of logits [K, n]."""

    @abc.abstractmethod
    def costs(self, logits: Float[Array, "K n"]) -> Float[Array, " n"]:
        """Cross-entropies [n], exact to a few roundings of themselves even where they are tiny."""

    @abc.abstractmethod
    def residuals(self, logits: Float[Array, "K n"]) -> tuple[Float[Array, "K n"], Float[Array, "K n"]]:
        """Derivatives [K, n] of the cross-entropies by the logits, as exact, and what the second ones follow from."""

    @abc.abstractmethod
    def curved(self, weighted: Float[Array, "K n"], logits: Float[Array, "K n"]) -> Float[Array, "K n"]:
        """The product of the weighted second derivatives and a change of the logits, [K, n], given the weights times
        what the derivatives follow from.
        """

    @abc.abstractmethod
    def by_class(self, known: Float[Array, "K n"]) -> Float[Array, "K n"]:
        """Second derivatives by the logit of each class alone, [K, n]."""

    @abc.abstractmethod
    def eliminated(
        self, known: Float[Array, "K n"], gradient: Float[Array, "K p"]
    ) -> tuple[Float[Array, "K p"], Float[Array, ""]]:
        """The solution [K, p] of Newton's equations, and their smallest pivot [] relative to the largest diagonal
        element.
        """

    @abc.abstractmethod
    def centred(self, coefficients: Float[Array, "K p"]) -> Float[Array, "K p"]:
        """Coefficients [K, p] that add up to 0 over the classes."""

    def at(self, solution: Float[Array, "K p"], may_be_separable: bool) -> Point:
        """A solution [K, p] with its objective, and its overlap where a minimum is in doubt."""
        logits = solution @ self.cases
        objective = self.w @ self.costs(logits) + self._penalty(solution) / 2
        overlap = jnp.zeros_like(objective)
        if may_be_separable:
            overlap = jnp.max(jnp.where(self.w > 0, self.above(logits), -jnp.inf))
        return Point(solution, objective, overlap)

    def logit(self, solution: Float[Array, "K p"]) -> Float[Array, ""]:
        """The largest logit of a solution [K, p]; []."""
        return jnp.max(over_first(jnp.maximum, jnp.abs(solution @ self.cases)))

    def cosine(self, solution: Float[Array, "K p"]) -> Float[Array, ""]:
        """Length [] of the gradient relative to that of the residuals, at a solution [K, p]."""
        excess, _ = self.residuals(solution @ self.cases)
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
        excess, known = self.residuals(solution @ self.cases)
        gradient = self._gradient(excess, solution)
        if self.few_unknowns:
            step, pivot = self.eliminated(known, gradient)
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
            return problem._by_solution(problem.curved(weighted, step @ problem.cases), step)

        # Of unit size, so that squares of what is left do not underflow in single precision.
        size = jnp.max(jnp.abs(gradient))
        unit = (gradient / jnp.where(size > 0, size, 1)).astype(weighted.dtype)
        rounds = _MOST_QUICK if quick else gradient.size
        starting = problem._preconditioner(inverses)
        found = conjugate_gradients(product, starting, unit, enough.astype(unit.dtype), rounds)
        step = self.centred(-size * found.solution.astype(gradient.dtype))
        pivot = (found.least / found.largest).astype(gradient.dtype)
        now = Before(inverses if shared is None else before.matrices, found.rounds, cosine, before.change)
        return Direction(gradient, step, pivot, found.enough, enough, now)

    def nearer(self, start: Start, hopeless: Bool[Array, ""]) -> Float[Array, "K p"]:
        """A solution [K, p] much nearer to the minimum than that from which many similar problems begin; a hopeless
        problem stays there.
        """
        solution = start.solution.astype(self.w.dtype)
        excess, _ = self.residuals(solution @ self.cases)
        rounding = float(jnp.finfo(self.w.dtype).eps) * self._length(excess, solution)

        def gradient(solution: Float[Array, "K p"]) -> Float[Array, "K p"]:
            return self._gradient(self.residuals(solution @ self.cases)[0], solution)

        starting, enough = self._preconditioner(start.inverses), jnp.where(hopeless, jnp.inf, rounding)
        return nearer(gradient, starting, solution, enough, _CLOSER, _MOST_GRADIENTS[len(self.cases) >= MANY])

    def at_zero(self) -> Start:
        """No coefficients, and no inverse Hessians."""
        (k, _), p, dtype = self.shape, len(self.cases), self.w.dtype
        return Start(jnp.zeros((k, p), dtype), jnp.zeros((0, p, p), dtype))

    def start_at_zero(self) -> Start:
        """The same with inverse Hessians [K, p, p] there, each coordinate alone, for problems that need some."""
        start, p = self.at_zero(), len(self.cases)
        if self.few_unknowns:
            return start
        return start._replace(inverses=jnp.broadcast_to(jnp.diag(self._alone), (self.shape[0], p, p)))

    @property
    def _alone(self) -> Float[Array, " p"]:
        """Inverse second derivatives [p] of each coordinate alone at zero, where all cases have the same curvature."""
        share = 1 / max(2, self.shape[0])
        curvature, ridge = share * (1 - share), self.ridge.diagonal
        return 1 / (curvature * (1 - ridge) + ridge)

    def inverses_at(self, solution: Float[Array, "K p"]) -> Float[Array, "K p p"]:
        """Inverse Hessians of each class alone, at a solution [K, p]."""
        return self._inverses(self.residuals(solution @ self.cases)[1])

    def _inverses(self, known: Float[Array, "K n"]) -> Float[Array, "K p p"]:
        return jax.vmap(inverse)(self.weighted(self.by_class(known) * self.w[None]))

    @property
    def few_unknowns(self) -> bool:
        """Whether Newton's equations are written out; see `many_unknowns`."""
        return self.shape[1] <= _FEW_UNKNOWNS

    def _gradient(self, excess: Float[Array, "K n"], solution: Float[Array, "K p"]) -> Float[Array, "K p"]:
        return self._by_solution(self.w[None] * excess, solution)

    def _by_solution(self, weighted: Float[Array, "K n"], solution: Float[Array, "K p"]) -> Float[Array, "K p"]:
        """What weighted derivatives by the logits [K, n] are by the solution, with those of the ridge, [K, p]."""
        # Rounding would leave a part that no step can take away.
        return self.centred(weighted @ self.turned + self.ridge.of(solution))

    def _preconditioner(self, inverses: Float[Array, "k p p"]) -> Callable[[Array], Array]:
        """The product of inverse Hessians of each class alone, or at zero, and a gradient [K, p]."""
        if not len(inverses):
            each = self._alone
            return lambda gradient: self.centred(each[None] * gradient)
        starting = inverses.astype(self.w.dtype)
        return lambda gradient: self.centred(jnp.einsum("kpq,kq->kp", starting, gradient))

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


def modelled_of(columns: int) -> int:
    """Classes that are modelled of so many columns of targets: one of two, whose coefficients are those of the other
    with another sign.
    """
    return 1 if columns == 2 else columns


def many_unknowns(classes: int, coefficients: int) -> bool:
    """Whether conjugate gradients solve Newton's equations of so many classes, 1 of two, and coefficients of each."""
    return max(1, classes - 1) * coefficients > _FEW_UNKNOWNS


def pairs_of(cases: Float[Array, "p n"]) -> Float[Array, "t n"] | None:
    """Products [t, n] of any two coordinates of each case [p, n], for `Problem`; none if they are very many."""
    first, second = np.triu_indices(len(cases))
    return cases[first] * cases[second] if len(first) * cases.shape[1] <= _MOST_PRODUCTS else None


def _places(p: int) -> Int[np.ndarray, "p p"]:
    """Where the product of two coordinates stands among all."""
    places = np.zeros((p, p), np.int32)
    places[np.triu_indices(p)] = np.arange(p * (p + 1) // 2)
    return np.maximum(places, places.T)


@dataclass(frozen=True)
class TwoClasses(Problem):
    """Logistic regression; `sign` [n] is 1 for cases of the class whose logits are modelled, -1 for the others."""

    sign: Float[Array, " n"]

    @property
    def shape(self) -> tuple[int, int]:
        """One class is modelled, and its p coefficients are all unknown."""
        return 1, len(self.cases)

    def above(self, logits: Float[Array, "1 n"]) -> Float[Array, " n"]:
        """The logit [n] of the other class minus that of the true one."""
        return -self.sign * logits[0]

    def costs(self, logits: Float[Array, "1 n"]) -> Float[Array, " n"]:
        """The softplus function of these differences, [n]."""
        above = self.above(logits)
        return jnp.maximum(above, 0) + jnp.log1p(jnp.exp(-jnp.abs(above)))

    def residuals(self, logits: Float[Array, "1 n"]) -> tuple[Float[Array, "1 n"], Float[Array, "1 n"]]:
        """The probability of the wrong class with its sign, and the second derivatives; both [1, n]."""
        above = self.above(logits)[None]
        small = jnp.exp(-jnp.abs(above))
        less, more = small / (1 + small), 1 / (1 + small)
        return -self.sign[None] * jnp.where(above > 0, more, less), less * more

    def curved(self, weighted: Float[Array, "1 n"], logits: Float[Array, "1 n"]) -> Float[Array, "1 n"]:
        """The weighted second derivatives [1, n] times the change of the logits."""
        return weighted * logits

    def by_class(self, known: Float[Array, "1 n"]) -> Float[Array, "1 n"]:
        """The second derivatives themselves, [1, n]."""
        return known

    def eliminated(
        self, known: Float[Array, "1 n"], gradient: Float[Array, "1 p"]
    ) -> tuple[Float[Array, "1 p"], Float[Array, ""]]:
        """The solution [1, p] of the p equations as they are."""
        step, pivot = solved(self.weighted(known * self.w[None])[0], gradient[0])
        return step[None], pivot

    def centred(self, coefficients: Float[Array, "1 p"]) -> Float[Array, "1 p"]:
        """The coefficients [1, p] themselves, since nothing is to be added up over a single class."""
        return coefficients


@dataclass(frozen=True)
class ManyClasses(Problem):
    """Softmax regression; `targets` [K, n] are one for the true class."""

    targets: Float[Array, "K n"]

    @property
    def shape(self) -> tuple[int, int]:
        """All K classes are modelled, with (K - 1) p unknowns, since coefficients add up to 0 over the classes."""
        return len(self.targets), (len(self.targets) - 1) * len(self.cases)

    def above(self, logits: Float[Array, "K n"]) -> Float[Array, " n"]:
        """The largest logit [n] of the other classes minus that of the true class."""
        others = over_first(jnp.maximum, jnp.where(self.targets > 0, -jnp.inf, logits))
        return others - over_first(jnp.add, self.targets * logits)

    def costs(self, logits: Float[Array, "K n"]) -> Float[Array, " n"]:
        """Logarithms of the sums of the exponentials of the logits minus that of the true class, [n]."""
        most, exponentials = self._exponentials(logits)
        wrong, right = self._apart(exponentials)
        # log(sum of all exp) in a form that is exact even where it is tiny, which is where `right` is 1
        return most - over_first(jnp.add, self.targets * logits) + jnp.log1p(over_first(jnp.add, wrong) + (right - 1))

    def residuals(self, logits: Float[Array, "K n"]) -> tuple[Float[Array, "K n"], Float[Array, "K n"]]:
        """Probabilities minus targets, and the probabilities; both [K, n]."""
        _, exponentials = self._exponentials(logits)
        wrong, right = self._apart(exponentials)
        rest = over_first(jnp.add, wrong[1:])
        whole = wrong[0] + rest + right
        part, hit = 1 / whole, right / whole
        missed = rest / whole + part * wrong[0]  # see `_exponentials`
        of_wrong = part[None] * exponentials
        return jnp.where(self.targets > 0, -missed[None], of_wrong), jnp.where(self.targets > 0, hit[None], of_wrong)

    def _exponentials(self, logits: Float[Array, "K n"]) -> tuple[Float[Array, " n"], Float[Array, "K n"]]:
        """The largest logits [n], and the exponentials of all relative to these, [K, n].

        Two things, here and in what follows, are for XLA. What is computed once for a case and read for each of its
        classes ends with a division, since XLA computes anew for each class what takes only maxima, sums and products.
        And the first class is left for last: where each result needs no number of a large array but that in its own
        place, XLA overwrites this array, and then LLVM makes no vector instructions on CPUs: three to five times the
        time.
        """
        one = jnp.maximum(over_first(jnp.add, self.targets), 1)
        most = jnp.maximum(over_first(jnp.maximum, logits[1:]) / one, logits[0])
        return most, jnp.exp(logits - most[None])

    def _apart(self, exponentials: Float[Array, "K n"]) -> tuple[Float[Array, "K n"], Float[Array, " n"]]:
        """Those of the wrong classes [K, n], 0 for the true ones, and those of the true classes [n]."""
        return jnp.where(self.targets > 0, 0, exponentials), over_first(jnp.add, self.targets * exponentials)

    def curved(self, weighted: Float[Array, "K n"], logits: Float[Array, "K n"]) -> Float[Array, "K n"]:
        """The change of the logits [K, n] minus its mean under the probabilities, times the weighted probabilities."""
        whole = over_first(jnp.add, weighted)
        whole = jnp.where(whole > 0, whole, 1)
        mean = over_first(jnp.add, weighted[1:] * logits[1:]) / whole + weighted[0] / whole * logits[0]
        return weighted * (logits - mean[None])  # see `_exponentials`

    def by_class(self, known: Float[Array, "K n"]) -> Float[Array, "K n"]:
        """Each probability times its complement, [K, n]."""
        return known * (1 - known)

    def eliminated(
        self, known: Float[Array, "K n"], gradient: Float[Array, "K p"]
    ) -> tuple[Float[Array, "K p"], Float[Array, ""]]:
        """In F = K - 1 orthonormal contrasts of the classes, whose equations have one solution."""
        contrasts = jnp.asarray(orthonormal_contrasts(len(self.targets)), known.dtype)
        apart = contrasts[:, None] - contrasts[None]
        # Each case adds p_k p_l (c_k - c_l)(c_k - c_l)' for each pair of classes, which cancels nothing.
        curvature = self.w[None, None] * jnp.einsum(
            "kn,ln,klf,klg->fgn", known, known / 2, apart, apart, optimize=[(2, 3), (0, 1), (0, 1)]
        )
        p, f = len(self.cases), contrasts.shape[1]
        blocks = self.summed(curvature.reshape(f * f, -1)).reshape(f, f, p, p)
        blocks = blocks + jnp.eye(f, dtype=blocks.dtype)[:, :, None, None] * self.ridge.matrix[None, None]
        hessian = jnp.swapaxes(blocks, 1, 2).reshape(f * p, f * p)
        step, pivot = solved(hessian, (contrasts.T @ gradient).reshape(f * p))
        return contrasts @ step.reshape(f, p), pivot

    def centred(self, coefficients: Float[Array, "K p"]) -> Float[Array, "K p"]:
        """Coefficients [K, p] minus their mean over the classes."""
        return coefficients - jnp.mean(coefficients, axis=0, keepdims=True)
