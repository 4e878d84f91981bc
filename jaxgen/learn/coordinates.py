"""Coordinates of weighted cases and a ridge in which these are orthonormal, for logistic and softmax regression."""

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.shrinkage import Span

_BLOCK = 16
"""Coordinates and cases come in whole blocks of so many: of 62 coordinates and 1797 cases, products took 1.6 times as
long as of 64 and 1808, on one core of an Intel Xeon in single precision.
"""

_MOST_PRODUCTS = 1_000_000
"""Numbers that problems may share to have their Hessians by one matrix product: 8 MB."""

MANY = 128
"""From so many coordinates on, matrices of each row's own take longer than all else."""


class MatrixRidge(NamedTuple):
    """A ridge on coefficients, by its matrix [p, p]."""

    matrix: Float[Array, "p p"]

    @property
    def diagonal(self) -> Float[Array, " p"]:
        """That of the matrix, [p]."""
        return jnp.diagonal(self.matrix)

    def of(self, solution: Float[Array, "K p"]) -> Float[Array, "K p"]:
        """The product of a solution [K, p] and the matrix."""
        return solution @ self.matrix

    def times(self, number: float) -> "MatrixRidge":
        """So many times this ridge."""
        return self if number == 1 else MatrixRidge(number * self.matrix)

    def astype(self, dtype: Any) -> "MatrixRidge":
        """The same in numbers of another type."""
        return MatrixRidge(self.matrix.astype(dtype))


class ScaledRidge(NamedTuple):
    """A ridge on the weights of the inputs times a scale, by what all rows share, which have scales of their own: a
    matrix for each of them would not stay in the cache.

    Attributes:
      penalty: see `Coordinates`, [s, p].
      turned: the same as columns, [p, s].
      squares: of the scales, [s].
      filling: what is added on the diagonal, [p].
    """

    penalty: Float[Array, "s p"]
    turned: Float[Array, "p s"]
    squares: Float[Array, " s"]
    filling: Float[Array, " p"]

    @property
    def matrix(self) -> Float[Array, "p p"]:
        """In full, [p, p]."""
        return (self.turned * self.squares[None]) @ self.penalty + jnp.diag(self.filling)

    @property
    def diagonal(self) -> Float[Array, " p"]:
        """That of the matrix, [p]."""
        return jnp.square(self.turned) @ self.squares + self.filling

    def of(self, solution: Float[Array, "K p"]) -> Float[Array, "K p"]:
        """The product of a solution [K, p] and the matrix."""
        return ((solution @ self.turned) * self.squares[None]) @ self.penalty + solution * self.filling[None]

    def times(self, number: float) -> "ScaledRidge":
        """So many times this ridge."""
        return self if number == 1 else self._replace(squares=number * self.squares, filling=number * self.filling)

    def astype(self, dtype: Any) -> "ScaledRidge":
        """The same in numbers of another type."""
        return ScaledRidge(*(numbers.astype(dtype) for numbers in self))


@dataclass(frozen=True)
class SpanRidge:
    """A ridge on weights times a scale, in coordinates of a span, by its metric in single precision.

    Attributes:
      span: of all cases.
      metric: see `Span.metric`, [s, s].
      scale: [D].
      roots: what coordinates are multiplied by before they are measured, [s].
      begin: number of the first coordinate of the span.
      filling: what is added on the diagonal, [p].
    """

    span: Span
    metric: Float[Array, "s s"]
    scale: Float[Array, " D"]
    roots: Float[Array, " s"]
    begin: int
    filling: Float[Array, " p"]

    @property
    def matrix(self) -> Float[Array, "p p"]:
        """In full, [p, p], as exact as the metric."""
        inner = self.roots[:, None] * self.metric.astype(self.roots.dtype) * self.roots[None]
        return jnp.pad(inner, self._around) + jnp.diag(self.filling)

    @property
    def diagonal(self) -> Float[Array, " p"]:
        """That of the matrix, [p]."""
        return jnp.diagonal(self.matrix)

    def of(self, solution: Float[Array, "K p"]) -> Float[Array, "K p"]:
        """The product of a solution [K, p] and the matrix, in the precision of the solution."""
        inside = self.roots[:, None] * solution[:, self.begin : self.begin + len(self.roots)].T
        product = (self.roots[:, None] * self.span.measured(self.metric, self.scale, inside)).T
        return jnp.pad(product, ((0, 0), self._around)) + solution * self.filling[None]

    def times(self, number: float) -> "SpanRidge":
        """So many times this ridge."""
        return self if number == 1 else replace(self, roots=number**0.5 * self.roots, filling=number * self.filling)

    def astype(self, dtype: Any) -> MatrixRidge:
        """The same in numbers of another type."""
        return MatrixRidge(self.matrix.astype(dtype))

    @property
    def _around(self) -> tuple[int, int]:
        """Coordinates before and after those of the span."""
        return self.begin, len(self.filling) - self.begin - len(self.roots)


class Coordinates(NamedTuple):
    """Cases and ridge in coordinates in which, weighted, they are orthonormal.

    Attributes:
      cases: [p, n].
      turned: the same as rows, [n, p].
      penalty: [s, p].
      ridge: of the matrix penalty' @ penalty, but 1 for coordinates that fill up the basis, which keeps them at 0.
      transform: makes coefficients of the centred and scaled inputs of those of the coordinates, [q, p]; q is p, or
        fewer of a `padded` basis.
      centre, scale: of the inputs, [D].
      deficient: whether the inputs are linearly dependent, [].
    """

    cases: Float[Array, "p n"]
    turned: Float[Array, "n p"]
    penalty: Float[Array, "s p"]
    ridge: MatrixRidge | ScaledRidge | SpanRidge
    transform: Float[Array, "q p"]
    centre: Float[Array, " D"]
    scale: Float[Array, " D"]
    deficient: Bool[Array, ""]

    def padded(self) -> "Coordinates":
        """With further coordinates and cases, all zero, up to whole blocks of each, which products of matrices are
        fastest for.
        """
        more, absent = (-size % _BLOCK for size in self.cases.shape)
        cases = jnp.pad(self.cases, ((0, more), (0, absent)))
        penalty, transform = (jnp.pad(matrix, ((0, 0), (0, more))) for matrix in (self.penalty, self.transform))
        ridge = MatrixRidge(jnp.pad(self.ridge.matrix, (0, more)) + jnp.diag(self._filling(len(cases))))
        return self._replace(cases=cases, turned=cases.T, penalty=penalty, ridge=ridge, transform=transform)

    def with_absent(self, values: Float[Array, "n *K"]) -> Float[Array, "m *K"]:
        """Weights or targets of n cases, [n, *K], and zeros for those that fill the basis up to m."""
        absent = self.cases.shape[1] - len(values)
        return jnp.pad(values, ((0, absent),) + ((0, 0),) * (values.ndim - 1))

    def penalised_by(self, scale: Float[Array, " D"]) -> "Coordinates":
        """The same cases with a ridge on the weights of the inputs times a scale, [D]."""
        if not len(self.penalty):
            return self
        ridge = ScaledRidge(self.penalty, self.penalty.T, jnp.square(scale), self._filling(len(self.cases)))
        return self._replace(ridge=ridge if len(self.cases) >= MANY else MatrixRidge(ridge.matrix))

    def penalised_in(self, span: Span, metric: Float[Array, "s s"], scale: Float[Array, " D"]) -> "Coordinates":
        """The same cases of a span with a ridge in its metric [s, s] for a scale, [D]."""
        begin = len(self.transform) - len(self.penalty)
        ridge = SpanRidge(span, metric, scale, jnp.diagonal(self.penalty, begin), begin, self._filling(len(self.cases)))
        return self._replace(ridge=ridge if metric.dtype != self.cases.dtype else MatrixRidge(ridge.matrix))

    def least_pivot(
        self, w: Float[Array, "R n"], low: Float[Array, "*D"] | float, high: Float[Array, "*D"] | float
    ) -> Float[Array, ""]:
        """A number [] that no pivot of a row's Gram matrix in these coordinates is below, relative to its largest
        diagonal element, with weights [R, n] and a ridge on weights of the inputs times scales between these, [*D].

        Coordinates are made of inputs by an upper triangle. So is the root of the ridge, whose pivots are the squares
        on its diagonal; cases make pivots no smaller, and a constant, which comes first, has a pivot of its own. Cases
        that are `filled` are taken to be about as long as before.
        """
        roots = low * jnp.diagonal(self.penalty, len(self.transform) - len(self.penalty))
        least = jnp.minimum(jnp.min(jnp.square(roots)), jnp.min(jnp.mean(w, axis=1)))
        return least / self.most(w, high)

    def most(self, w: Float[Array, "R n"], high: Float[Array, "*D"] | float) -> Float[Array, ""]:
        """A number [] that no number on the diagonal of a row's Gram matrix in these coordinates is above, with weights
        [R, n] and scales as for `least_pivot`.
        """
        ridges = jnp.sum(jnp.square(self.penalty * jnp.broadcast_to(high, len(self.penalty))[:, None]), axis=0)
        return jnp.max(w) + jnp.maximum(jnp.max(ridges), 1)

    def filled(self, missing: Float[Array, "n D"], more: Float[Array, " D"]) -> "Coordinates":
        """The same coordinates of cases with other numbers for missing inputs: so much more [D] where `missing`, of the
        n cases that are not absent, is 1. They are no longer orthonormal.
        """
        of_inputs = self.transform[len(self.transform) - len(more) :] * (more / self.scale)[:, None]
        cases = self.cases + of_inputs.T @ self.with_absent(missing).T
        return self._replace(cases=cases, turned=cases.T)

    def _filling(self, p: int) -> Float[Array, " p"]:
        """1 for those of p coordinates that fill up the basis."""
        return (jnp.arange(p) >= len(self.transform)).astype(self.penalty.dtype)


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
        parts = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "products"}
        numbers = {name: value.astype(jnp.float32) for name, value in parts.items() if not isinstance(value, bool)}
        return replace(self, products=None, **numbers)

    def weighted(self, weights: Float[Array, "g n"]) -> Float[Array, "g p p"]:
        """Gram matrices [g, p, p] of the cases with other weights [g, n], and of the penalty."""
        return self.summed(weights) + self.ridge.matrix[None]

    def summed(self, weights: Float[Array, "g n"]) -> Float[Array, "g p p"]:
        """Weighted sums over the cases of the products of any two coordinates, [g, p, p] for weights [g, n]."""
        if self.products is None:
            return lax.map(lambda w: (self.cases * w[None]) @ self.turned, weights)
        return (weights @ self.products.T)[:, _places(len(self.cases))]


def pairs_of(cases: Float[Array, "p n"]) -> Float[Array, "t n"] | None:
    """Products [t, n] of any two coordinates of each case [p, n], for `Problem`; none if they are very many."""
    first, second = np.triu_indices(len(cases))
    return cases[first] * cases[second] if len(first) * cases.shape[1] <= _MOST_PRODUCTS else None


def _places(p: int) -> Int[np.ndarray, "p p"]:
    """Where the product of two coordinates stands among all."""
    places = np.zeros((p, p), np.int32)
    places[np.triu_indices(p)] = np.arange(p * (p + 1) // 2)
    return np.maximum(places, places.T)
