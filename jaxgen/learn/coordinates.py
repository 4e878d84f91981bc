"""Coordinates of weighted cases and a ridge in which these are orthonormal, for logistic and softmax regression."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from jaxgen.learn.bases import orthonormal_if_easy
from jaxgen.learn.batched import in_any_row

_BLOCK = 16
"""Coordinates and cases come in whole blocks of so many: of 62 coordinates and 1797 cases, products took 1.6 times as
long as of 64 and 1808, on one core of an Intel Xeon in single precision.
"""

Orthonormal = Callable[[Float[Array, "p n"]], tuple[Float[Array, "p n"], Float[Array, "p p"], Bool[Array, ""]]]


class Coordinates(NamedTuple):
    """Cases and ridge in coordinates in which, weighted, they are orthonormal.

    Attributes:
      cases: [p, n].
      turned: the same as rows, [n, p].
      penalty: [s, p].
      transform: makes coefficients of the centred and scaled inputs of those of the coordinates, [q, p]; q is p, or
        fewer of a `padded` basis.
      centre, scale: of the inputs, [D].
      deficient: whether the inputs are linearly dependent, [].
    """

    cases: Float[Array, "p n"]
    turned: Float[Array, "n p"]
    penalty: Float[Array, "s p"]
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
        return self._replace(cases=cases, turned=cases.T, penalty=penalty, transform=transform)

    def with_absent(self, values: Float[Array, "n *K"]) -> Float[Array, "m *K"]:
        """Weights or targets of n cases, [n, *K], and zeros for those that fill the basis up to m."""
        absent = self.cases.shape[1] - len(values)
        return jnp.pad(values, ((0, absent),) + ((0, 0),) * (values.ndim - 1))

    def penalised_by(self, scale: Float[Array, " D"]) -> "Coordinates":
        """The same cases with a ridge on the weights of the inputs times a scale, [D]."""
        return self._replace(penalty=self.penalty * scale[:, None]) if len(self.penalty) else self

    def filled(self, missing: Float[Array, "n D"], more: Float[Array, " D"]) -> "Coordinates":
        """The same coordinates of cases with other numbers for missing inputs: so much more [D] where `missing`, of the
        n cases that are not absent, is 1. They are no longer orthonormal.
        """
        of_inputs = self.transform[len(self.transform) - len(more) :] * (more / self.scale)[:, None]
        cases = self.cases + of_inputs.T @ self.with_absent(missing).T
        return self._replace(cases=cases, turned=cases.T)

    @property
    def ridge(self) -> Float[Array, "p p"]:
        """Its matrix, [p, p]; coordinates that fill up the basis have a ridge of 1, which keeps them at 0."""
        filling = (jnp.arange(self.transform.shape[1]) >= len(self.transform)).astype(self.penalty.dtype)
        return self.penalty.T @ self.penalty + jnp.diag(filling)


def orthonormal_columns(
    columns: Float[Array, "p n"],
) -> tuple[Float[Array, "p n"], Float[Array, "p p"], Bool[Array, ""]]:
    """Orthonormal basis [p, n] of a matrix a, whose columns [p, n] are given, with basis' = a @ transform [p, p], and
    whether a is rank-deficient to working precision []: by Gram and Schmidt where it is not easy.
    """
    vectors, transform, ill = orthonormal_if_easy(columns)
    easy = vectors, transform, jnp.zeros_like(ill)
    return lax.cond(in_any_row(ill), lambda: _gram_schmidt(columns), lambda: easy)


class _Orthogonalised(NamedTuple):
    """Gram-Schmidt after some columns: the orthonormal vectors so far [p, n], the matrix that makes them of the columns
    [p, p], and what was left of each column [p].
    """

    vectors: Float[Array, "p n"]
    transform: Float[Array, "p p"]
    lengths: Float[Array, " p"]


def _gram_schmidt(columns: Float[Array, "p n"]) -> tuple[Float[Array, "p n"], Float[Array, "p p"], Bool[Array, ""]]:
    """The same by classical Gram-Schmidt with every column orthogonalised twice (Giraud et al. 2005), as for
    `LeastSquares`.
    """
    p, n = columns.shape

    def add(k, state: _Orthogonalised) -> _Orthogonalised:
        first = state.vectors @ columns[k]
        rest = columns[k] - first @ state.vectors
        second = state.vectors @ rest
        rest = rest - second @ state.vectors
        length = jnp.sqrt(jnp.sum(jnp.square(rest)))
        divisor = jnp.where(length > 0, length, 1)
        made_of = jnp.zeros_like(state.lengths).at[k].set(1) - (first + second) @ state.transform
        return _Orthogonalised(
            state.vectors.at[k].set(rest / divisor),
            state.transform.at[k].set(made_of / divisor),
            state.lengths.at[k].set(length),
        )

    none = _Orthogonalised(jnp.zeros_like(columns), jnp.zeros((p, p), columns.dtype), jnp.zeros(p, columns.dtype))
    basis = lax.fori_loop(0, p, add, none)
    size = jnp.sqrt(jnp.sum(jnp.square(columns), axis=1))
    deficient = jnp.any(basis.lengths <= 8 * n**0.5 * float(jnp.finfo(columns.dtype).eps) * size)
    return basis.vectors, basis.transform.T, deficient
