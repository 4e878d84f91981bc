"""What ridge regressions of one training set share: its centred cases, and a decomposition for all penalties."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.bases import orthonormal
from jaxgen.learn.batched import after, in_any_row
from jaxgen.learn.systems import inverse

_LOST = 2e-10
"""Eigenvalues of x' x are taken as squares of singular values if a rounding of the largest is less than this share of
the least: in double precision up to a condition number of 1000, in single precision never.
"""

FEW = 400
"""Up to so many cases of more inputs, coordinates of the space that the cases span, or a system with an unknown for
each of them, take less time than they save.
"""

_REFINEMENTS = 2
"""Each leaves 1e-6 of what a matrix in single precision leaves out, or of one with very unlike numbers more."""

_WIDE = 4
"""Residuals for several penalties at a time may take this many times the memory of the inputs."""


class Centred(NamedTuple):
    """A weighted training set, centred where the model has an intercept, and its cross-validated errors.

    Attributes:
      x, y: cases times the root of their weights, [n, D] and [n, K].
      share: of each case in the mean that was taken off, [n]; 0 without an intercept.
      weight: of each case, [n]; 1 for those that are absent.
      total: sum of the weights, [].
      rank: the largest that the inputs can have, [].
      x_mean, y_mean: what was taken off, [D] and [K].
    """

    x: Float[Array, "n D"]
    y: Float[Array, "n K"]
    share: Float[Array, " n"]
    weight: Float[Array, " n"]
    total: Float[Array, ""]
    rank: Int[Array, ""]
    x_mean: Float[Array, " D"]
    y_mean: Float[Array, " K"]

    @classmethod
    def of(cls, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], intercept: bool) -> "Centred":
        """Of cases [n, D], [n, K] of weights [n]."""
        used, total = (w > 0)[:, None], jnp.sum(w)
        x, y = jnp.where(used, x, 0), jnp.where(used, y, 0)
        share = w / total if intercept else jnp.zeros_like(w)
        x_mean, y_mean = share @ x, share @ y
        root = jnp.sqrt(w)[:, None]
        weight = jnp.where(w > 0, w, 1)
        rank = jnp.minimum(jnp.sum(used) - int(intercept), x.shape[1])
        return cls(root * (x - x_mean[None]), root * (y - y_mean[None]), share, weight, total, rank, x_mean, y_mean)

    def intercept(self, weights: Float[Array, "D K"]) -> Float[Array, " K"]:
        """The intercept [K] that belongs to weights [D, K]."""
        return self.y_mean - self.x_mean @ weights

    def leave_one_out(self, residual: Float[Array, "n K"], own: Float[Array, " n"]) -> Float[Array, ""]:
        """Mean squared leave-one-out loss, [], summed over the targets, from residuals [n, K] and the diagonal [n] of
        the hat matrix of the centred cases.

        The residual of a case that is left out is e / (1 - h), h its share in its own prediction (Allen 1974, "The
        relationship between variable selection and data augmentation and a method for prediction"). A case of weight 2
        is two cases, of which one is left out.
        """
        left = 1 - (self.share + own) / self.weight
        return jnp.sum(jnp.square(residual / left[:, None])) / self.total

    def gcv(self, residual: Float[Array, "n K"], own: Float[Array, " n"]) -> Float[Array, ""]:
        """Generalized cross-validation, [], from the same: mean squared residual, summed over the targets, divided by
        (1 - tr H / n)^2 (Golub, Heath & Wahba 1979, "Generalized cross-validation as a method for choosing a good ridge
        parameter", eq. 1.4); the intercept counts in the trace of the hat matrix H.
        """
        left = 1 - (jnp.sum(self.share) + jnp.sum(own)) / self.total
        return jnp.sum(jnp.square(residual)) / self.total / jnp.square(left)


ERRORS = {"leave_one_out": Centred.leave_one_out, "gcv": Centred.gcv}
"""Errors in closed form by their names."""


class Shrinkage(NamedTuple):
    """One decomposition of a training set that serves the ridge regressions of all penalties.

    Attributes:
      cases: the training set.
      left: left singular vectors of its inputs, [n, p].
      values: singular values, [p].
      right: right singular vectors, [p, D].
      deficient: whether the inputs are linearly dependent, [].
    """

    cases: Centred
    left: Float[Array, "n p"]
    values: Float[Array, " p"]
    right: Float[Array, "p D"]
    deficient: Bool[Array, ""]

    @classmethod
    def of(cls, cases: Centred) -> "Shrinkage":
        """Of a training set: from the eigenvectors of x' x, or of x x' where that is smaller, which takes half of the
        time or less, unless x is ill-conditioned.
        """
        x = cases.x
        return cls(cases, *(_of_wide(x, cases.rank) if x.shape[1] >= len(x) else _of_long(x)))

    def coefficients(self, ridge: Float[Array, ""]) -> tuple[Float[Array, "D K"], Float[Array, " K"]]:
        """Weights [D, K] and intercept [K] for one penalty, [], those of least norm for none."""
        weights = self.right.T @ (self._inverse(ridge)[:, None] * (self.left.T @ self.cases.y))
        return weights, self.cases.intercept(weights)

    def error(self, by: str, ridge: Float[Array, ""]) -> Float[Array, ""]:
        """An error in closed form, one of `ERRORS`, for one penalty; []."""
        kept = (self.values * self._inverse(ridge))[:, None]
        residual = self.cases.y - self.left @ (kept * (self.left.T @ self.cases.y))
        return ERRORS[by](self.cases, residual, (jnp.square(self.left) @ kept)[:, 0])

    def errors(self, by: str, ridges: Float[Array, " S"]) -> Float[Array, " S"]:
        """The error for each of several penalties, [S]."""

        def error(ridge: Float[Array, ""]) -> Float[Array, ""]:
            return self.error(by, ridge)

        together = len(ridges) * self.cases.y.shape[1] <= _WIDE * max(_WIDE, len(self.values))
        return jax.vmap(error)(ridges) if together else lax.map(error, ridges)

    def _inverse(self, ridge: Float[Array, ""]) -> Float[Array, " p"]:
        """s / (s^2 + ridge); without a ridge 0 for the singular values that are rounding."""
        some = (ridge > 0) | beyond_rounding(self.values, max(len(self.left), len(self.values)))
        return jnp.where(some, self.values / jnp.where(some, jnp.square(self.values) + ridge, 1), 0)


def squares_are_easy(least: Float[Array, "*R"], rounding: Float[Array, "*R"]) -> Bool[Array, "*R"]:
    """Whether the least eigenvalue of x' x, [*R], has digits enough beside the rounding in it, [*R]."""
    return least * _LOST > rounding


def rounding_of(largest: Float[Array, "*R"]) -> Float[Array, "*R"]:
    """The rounding in sums whose terms are as large as these, [*R]."""
    return float(jnp.finfo(largest.dtype).eps) * largest


def beyond_rounding(values: Float[Array, " p"], longest: int) -> Bool[Array, " p"]:
    """Which singular values [p], the greatest first, are more than rounding, of a matrix whose longer axis is given."""
    return values > longest * float(jnp.finfo(values.dtype).eps) * values[:1]


class Span(NamedTuple):
    """More inputs than cases, in coordinates of the space that the cases span: as many as there are cases.

    Weights with a penalty on their squares, and the least ones that a model can have, lie in that space.

    Attributes:
      cases: coordinates, [n, n]; 0 for absent cases.
      basis: orthonormal, but for coordinates in which all cases are 0, [D, n], with x = centre + cases @ basis'.
      centre: where coordinates begin, [D].
    """

    cases: Float[Array, "n n"]
    basis: Float[Array, "D n"]
    centre: Float[Array, " D"]

    @classmethod
    def of(cls, x: Float[Array, "n D"], w: Float[Array, " n"], centred: bool) -> "Span":
        """Of the cases [n, D] with weight, from their mean on where the model has an intercept."""
        used = w > 0
        count = jnp.sum(used)
        centre = (
            jnp.sum(jnp.where(used[:, None], x, 0), axis=0) / count.astype(x.dtype) if centred else jnp.zeros_like(x[0])
        )
        left, values, right, _ = _of_wide(jnp.where(used[:, None], x - centre[None], 0), count - int(centred))
        return cls(left * values[None], right.T, centre)

    def restored(self, fit: Any, scale: Float[Array, " D"] | None = None) -> Any:
        """Parameters of a model that is linear in its inputs, weights [*R, D, K] and intercept [*R, K], from those for
        coordinates; with a scale [D], from those times its `metric`.
        """
        weights = jnp.einsum("dp,...pk->...dk", self.basis, fit.weights)
        weights = weights if scale is None else weights / jnp.square(scale)[:, None]
        moved = jnp.einsum("d,...dk->...k", self.centre, weights)
        return fit._replace(weights=weights, intercept=fit.intercept - moved)

    @property
    def single(self) -> "Span":
        """The same in single precision."""
        return Span(*(numbers.astype(jnp.float32) for numbers in self))

    @property
    def unused(self) -> Float[Array, " n"]:
        """1 for coordinates in which all cases are 0, which have no basis, [n]."""
        return (jnp.sum(jnp.square(self.basis), axis=0) < 0.5).astype(self.basis.dtype)

    def metric(self, scale: Float[Array, " D"]) -> Float[Array, "n n"]:
        """The matrix [n, n] of the squares of weights times a scale, [D], in the coordinates that give their
        predictions.

        Of all weights that give those of coordinates b, V the basis, V a / scale^2 with V' V a / scale^2 = b are least,
        and their square is b a.
        """
        return inverse((self.basis.T / jnp.square(scale)[None]) @ self.basis + jnp.diag(self.unused))

    def measured(
        self, metric: Float[Array, "n n"], scale: Float[Array, " D"], b: Float[Array, "n K"]
    ) -> Float[Array, "n K"]:
        """The product [n, K] of the metric for a scale [D] and coordinates [n, K]; of a metric in single precision, as
        exact as in double, but for metrics with very unlike numbers.
        """

        def roughly(b: Float[Array, "n K"]) -> Float[Array, "n K"]:
            return (metric @ b.astype(metric.dtype)).astype(b.dtype)

        product = roughly(b)
        for _ in range(_REFINEMENTS if metric.dtype != b.dtype else 0):
            product = product + roughly(self._unmeasured(scale, b, product))
        return product

    def is_measured(
        self, scale: Float[Array, " D"], b: Float[Array, "n K"], product: Float[Array, "n K"]
    ) -> Bool[Array, ""]:
        """Whether this is the product [n, K] of the metric for a scale [D] and coordinates [n, K]; []."""
        left = jnp.max(jnp.abs(self._unmeasured(scale, b, product)))
        return left <= float(jnp.finfo(b.dtype).eps) ** 0.75 * jnp.max(jnp.abs(b))

    def _unmeasured(
        self, scale: Float[Array, " D"], b: Float[Array, "n K"], product: Float[Array, "n K"]
    ) -> Float[Array, "n K"]:
        """What is left of coordinates [n, K] by the inverse of the metric and this product."""
        weights = (self.basis @ product) / jnp.square(scale)[:, None]
        return b - self.basis.T @ weights - self.unused[:, None] * product


Decomposition = tuple[Float[Array, "n p"], Float[Array, " p"], Float[Array, "p D"], Bool[Array, ""]]
"""Left singular vectors, singular values and right vectors, and whether inputs are linearly dependent."""


def _of_long(x: Float[Array, "n D"]) -> Decomposition:
    """Of less inputs than cases."""

    def carefully() -> Decomposition:
        basis, triangle, deficient = orthonormal(x)
        inner, values, right = jnp.linalg.svd(after(basis, triangle))
        return basis @ inner, values, right, deficient

    squares, vectors, finite = _eigenvectors(x.T @ x)
    ill = ~finite | ~squares_are_easy(squares[0], rounding_of(squares[-1]))

    def quickly() -> Decomposition:
        right = vectors[:, ::-1]
        left = x @ right
        values = jnp.sqrt(jnp.sum(jnp.square(left), axis=0))
        return left / values[None], values, right.T, jnp.zeros((), bool)

    return lax.cond(in_any_row(ill), carefully, quickly)


def _of_wide(x: Float[Array, "n D"], rank: Int[Array, ""]) -> Decomposition:
    """Of as many inputs as cases or more. Eigenvalues beyond the rank that inputs can have are 0 but for rounding."""

    def carefully() -> Decomposition:
        basis, triangle = jnp.linalg.qr(x.T)  # by reflections: orthonormal also where cases are linearly dependent
        inner, values, left = jnp.linalg.svd(after(basis, triangle))
        there = beyond_rounding(values, max(x.shape))
        right = jnp.where(there[:, None], (basis @ inner).T, 0)
        return left.T, jnp.where(there, values, 0), right, jnp.sum(there) < x.shape[1]

    squares, vectors, finite = _eigenvectors(x @ x.T)
    ill = ~finite | ~squares_are_easy(jnp.take(squares, len(x) - jnp.maximum(rank, 1)), rounding_of(squares[-1]))

    def quickly() -> Decomposition:
        left, there = vectors[:, ::-1], jnp.arange(len(x)) < rank
        right = left.T @ x
        values = jnp.where(there, jnp.sqrt(jnp.sum(jnp.square(right), axis=1)), 0)
        right = jnp.where(there[:, None], right / jnp.where(there, values, 1)[:, None], 0)
        return left, values, right, rank < x.shape[1]

    return lax.cond(in_any_row(ill), carefully, quickly)


def _eigenvectors(gram: Float[Array, "p p"]) -> tuple[Float[Array, " p"], Float[Array, "p p"], Bool[Array, ""]]:
    """Eigenvalues, the least first, and eigenvectors of a matrix, and whether it is finite; else those of another."""
    finite = jnp.all(jnp.isfinite(gram))
    unit = jnp.eye(len(gram), dtype=gram.dtype)
    return *jnp.linalg.eigh(jnp.where(finite, gram, unit), symmetrize_input=False), finite
