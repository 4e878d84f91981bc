"""Logistic and softmax regression of one weighted training set: coordinates, problem and minimum."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.bases import Orthonormal, orthonormal_columns
from jaxgen.learn.batched import where_rare
from jaxgen.learn.classes import classes_of, modelled_of
from jaxgen.learn.coordinates import MANY, Coordinates, MatrixRidge
from jaxgen.learn.newton import NOT_CONVERGED, minimised, start_for_similar
from jaxgen.learn.shrinkage import Span
from jaxgen.learn.softmax import Problem, Start, are_written_out
from jaxgen.types import RowUnits

_ONE_SIDED, _DEPENDENT = 3, 4

_NEAR = 0.03
"""Relative change of the logits by the last step to where all rows begin; their own minima are further away."""

_SHARED, _MANY_TIMES = 1500, 4
"""Up to so many cases of more inputs, and with so many times as many inputs in any case, coordinates of the space that
the cases span take less time than they save where rows share them.
"""

_LONG, _TRIED, _OVERLAPPING = 5000, 12, 30.0
"""Without a ridge, rows of at least so many cases take so many steps in single precision at most, and their minima are
trusted where no logit is larger than this. Along a direction that separates classes each of Newton's steps adds about 1
to a logit, so that they do not become small before their gradient, e^-logit, is lost in rounding.
"""


class LogisticFit(NamedTuple):
    """Parameters of a logistic or softmax model.

    Attributes:
      weights: [D, K], in logits per unit of x; with K >= 2 they add up to 0 over the classes.
      intercept: [K], logits; with K >= 2 they add up to 0.
      iterations: Newton steps taken, from zero or from where all rows begin, [].
      gradient: length of the gradient relative to that of the residuals (with the ridge's share), in coordinates
        in which the weighted inputs are orthonormal, []: the cosine of the angle that is 90 degrees at the minimum.
      trouble: 0 for a converged fit, else the number of the sentence in `Logistic.failures`, [].
    """

    weights: Float[Array, "*R D K"]
    intercept: Float[Array, "*R K"]
    iterations: Int[Array, "*R"]
    gradient: Float[Array, "*R"]
    trouble: Int[Array, "*R"]

    @property
    def converged(self) -> Bool[Array, "*R"]:
        """Whether this is the minimum, []."""
        return self.trouble == 0

    def in_units(self, units: RowUnits) -> "LogisticFit":
        """The same models of R rows, weights [R, D, K], for inputs in the units of each row."""
        at_centre = jnp.einsum("rd,rdk->rk", units.x_centre, self.weights, precision="highest")
        weights = self.weights * units.x_scale[:, :, None]
        return self._replace(weights=weights, intercept=self.intercept + at_centre)


@dataclass(frozen=True)
class LinearClassifier:
    """What is fitted, as `Logistic` says: the ridge, which may be traced, whether there is an intercept, and the most
    Newton steps.
    """

    ridge: Any
    intercept: bool
    steps: int

    def is_wide(self, x: Float[Array, "n D"]) -> bool:
        """Whether there are so many more inputs than cases [n, D] that coordinates of what these span take less."""
        return self.is_wide_of(*x.shape)

    def is_wide_of(self, cases: int, inputs: int) -> bool:
        """The same, of so many."""
        return self.penalised and inputs > cases and (cases <= _SHARED or inputs >= _MANY_TIMES * cases)

    @property
    def penalised(self) -> bool:
        """Whether there is a ridge; one that is traced is above 0, see `Tuned`."""
        return isinstance(self.ridge, jax.Array) or self.ridge > 0

    def fit(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> LogisticFit:
        """The fit of one weighted training set on a basis of its own."""
        y = jnp.where(w[:, None] > 0, y, 0)
        if not self.is_wide(x):
            return self._on_basis(self.basis(x, w, orthonormal_columns), y, w)
        span = Span.of(x, w, self.intercept)
        return span.restored(self._on_basis(self.basis_of(span), y, w))

    def _on_basis(self, basis: Coordinates, y: Float[Array, "n K"], w: Float[Array, " n"]) -> LogisticFit:
        """The fit of one weighted training set on its own basis."""
        problem, *_ = self._problem(basis, y, w, None, one_of_many=False)
        if not self.quick(y) or problem.written_out:
            return self.minimum(basis, y, w, None)
        start = problem.at_zero()
        found = self.minimum(basis, y, w, None, start, quick=True)
        return where_rare(found.trouble == NOT_CONVERGED, lambda: self.minimum(basis, y, w, None), found)

    def quick(self, y: Float[Array, "n K"]) -> bool:
        """Whether steps are found in single precision, for targets [n, K] and cases in double."""
        return self.penalised and y.dtype == jnp.float64

    def quick_in_rows(self, y: Float[Array, "n K"], coefficients: int) -> bool:
        """The same for many rows of targets [n, K], with so many coefficients of a class."""
        if self.penalised or len(y) < _LONG:
            return self.quick(y)
        return y.dtype == jnp.float64 and not are_written_out(modelled_of(y.shape[1]), coefficients, len(y), True)

    def _units(self, x: Float[Array, "n D"], used: Bool[Array, "n 1"]) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        """Centre and half-width of the range of each column; unlike a mean, the centre of a constant is exactly this
        constant.
        """
        low, high = jnp.min(jnp.where(used, x, jnp.inf), axis=0), jnp.max(jnp.where(used, x, -jnp.inf), axis=0)
        centre = (0.5 * high + 0.5 * low) if self.intercept else jnp.zeros_like(low)
        scale = jnp.max(jnp.where(used, jnp.abs(x - centre[None]), 0), axis=0)
        return centre, jnp.where(scale > 0, scale, 1)

    def basis(self, x: Float[Array, "n D"], w: Float[Array, " n"], orthonormal: Orthonormal) -> Coordinates:
        """An orthonormal basis of the cases [n, D] with weights [n] and the ridge."""
        used = w > 0
        x = jnp.where(used[:, None], x, 0)
        centre, scale = self._units(x, used[:, None])
        design = jnp.where(used[None], (x.T - centre[:, None]) / scale[:, None], 0)
        if self.intercept:
            design = jnp.concatenate([used.astype(x.dtype)[None], design])
        root = jnp.sqrt(w)
        columns = [root[None] * design]
        if self.penalised:
            ridge = jnp.diag(jnp.sqrt(jnp.asarray(self.ridge, x.dtype)) / scale, -int(self.intercept))
            columns.append(ridge[: len(design), : len(scale)])
        vectors, transform, deficient = orthonormal(jnp.concatenate(columns, axis=1))
        cases = jnp.where(root[None] > 0, vectors[:, : len(w)] / jnp.where(root > 0, root, 1)[None], 0)
        penalty = vectors[:, len(w) :].T
        return Coordinates(
            cases, cases.T, penalty, MatrixRidge(penalty.T @ penalty), transform, centre, scale, deficient
        )

    def basis_of(self, span: Span) -> Coordinates:
        """A basis of the cases of a span, whose coordinates are orthogonal to each other and to a constant: those of
        unit length, with the ridge.
        """
        cases, n = span.cases.T, len(span.cases)
        ridges = jnp.full(n, self.ridge, cases.dtype)
        if self.intercept:
            cases = jnp.concatenate([jnp.ones_like(cases[:1]), cases])
            ridges = jnp.concatenate([jnp.zeros_like(ridges[:1]), ridges])
        size = lax.rsqrt(jnp.sum(jnp.square(cases), axis=1) + ridges)
        cases, penalty = size[:, None] * cases, jnp.diag(jnp.sqrt(ridges) * size)
        none, one = jnp.zeros_like(span.cases[0]), jnp.ones_like(span.cases[0])
        return Coordinates(
            cases,
            cases.T,
            penalty[int(self.intercept) :],
            MatrixRidge(jnp.square(penalty)),
            jnp.diag(size),
            none,
            one,
            jnp.bool_(False),
        )

    def start(
        self,
        basis: Coordinates,
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        products: Float[Array, "t m"] | None,
        quick: bool,
    ) -> tuple[Start, Bool[Array, ""]]:
        """Where rows whose mean weights are w [n] begin: near the minimum for these, which is near that of each, and
        whether there is one; single precision is enough for that.
        """
        problem, hopeless, _ = self._problem(basis, y, w, products, quick)
        asked = problem.single if quick else problem
        begin = asked.at_zero() if quick and len(basis.cases) >= MANY else None
        state = minimised(asked, hopeless, self.steps, not (self.penalised or quick), begin, quick, _NEAR)
        start = start_for_similar(asked, state)
        # What rounding leaves of the sum over the classes would stay, since no step has any.
        start = start._replace(solution=problem.classes.centred(start.solution.astype(y.dtype)))
        return start, (state.trouble == 0) & self._is_sure(problem, start.solution)

    def _problem(
        self,
        basis: Coordinates,
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        products: Float[Array, "t m"] | None,
        one_of_many: bool,
    ) -> tuple[Problem, Bool[Array, ""], Bool[Array, ""]]:
        """What is to be minimised, whether there is no minimum, and whether that is so because a class is absent; of n
        cases, which the basis may fill up to m.
        """
        y, w = (basis.with_absent(values) for values in (y, w))
        one_sided = self.is_one_sided(y, w)
        modelled = modelled_of(y.shape[1])
        ridge = basis.ridge.times(modelled / y.shape[1])  # of two columns, half of it
        given = basis.cases, basis.turned, ridge, w, products, classes_of(y)
        problem = Problem(*given, are_written_out(modelled, len(basis.cases), len(w), one_of_many))
        return problem, basis.deficient | one_sided, one_sided

    def is_one_sided(self, y: Float[Array, "n K"], w: Float[Array, " n"]) -> Bool[Array, ""]:
        """Whether the intercept has no finite value, since a class of [n, K] has no case with weight, [n]; []."""
        used = w > 0
        return self.intercept & jnp.any(w @ _of_every_class(jnp.where(used[:, None], y, 0), used) <= 0)

    def trouble_of(self, one_sided: Bool[Array, ""], other: Int[Array, ""]) -> Int[Array, ""]:
        """The number [] of the sentence that holds: that of a class without a case, or another."""
        return jnp.where(one_sided, _ONE_SIDED, other).astype(jnp.int32)

    def _is_sure(self, problem: Problem, solution: Float[Array, "K p"]) -> Bool[Array, ""]:
        """Whether a minimum [K, p] that single precision has shown is one; see `_OVERLAPPING`."""
        return jnp.bool_(True) if self.penalised else problem.logit(solution) <= _OVERLAPPING

    def minimum(
        self,
        basis: Coordinates,
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        products: Float[Array, "t m"] | None,
        start: Start | None = None,
        quick: bool = False,
    ) -> LogisticFit:
        """The minimum for one training set with weights [n], found on a basis of its cases or of more. A quick one
        without a ridge is found only if classes overlap well.
        """
        problem, hopeless, one_sided = self._problem(basis, y, w, products, quick)
        careful = not (self.penalised or quick)
        steps = self.steps if self.penalised or careful else min(self.steps, _TRIED)
        state = minimised(problem, hopeless, steps, careful, start, quick)
        solution, trouble = state.point.solution, state.trouble
        if not careful:
            trouble = jnp.where(self._is_sure(problem, solution), trouble, NOT_CONVERGED)
        trouble = self.trouble_of(one_sided, jnp.where(basis.deficient, _DEPENDENT, trouble))
        if y.shape[1] > len(solution):
            solution = jnp.concatenate([solution, -solution]) / 2
        coefficients = jnp.where(hopeless, jnp.nan, basis.transform @ solution.T)
        weights = coefficients[int(self.intercept) :] / basis.scale[:, None]
        intercept = (
            coefficients[0] - basis.centre @ weights if self.intercept else jnp.zeros_like(weights, shape=y.shape[1:])
        )
        return LogisticFit(weights, intercept, state.iterations, problem.cosine(state.point.solution), trouble)


def remembered(classifier: LinearClassifier, function: Any) -> Any:
    """A function of a classifier and arrays under `jax.jit`, as one of arrays. JAX remembers what it traced of it, so a
    job is not traced twice, to see what it needs and to compile it; it cannot where the ridge is traced, see `Tuned`.
    """
    known = not isinstance(classifier.ridge, jax.Array)
    return partial(function if known else function.__wrapped__, classifier)


def _of_every_class(y: Float[Array, "n K"], used: Bool[Array, " n"]) -> Float[Array, "n C"]:
    """Targets of K >= 2 classes, or of the one class and the other; 0 for absent cases."""
    return y if y.shape[1] > 1 else jnp.where(used[:, None], jnp.concatenate([y, 1 - y], axis=1), 0)
