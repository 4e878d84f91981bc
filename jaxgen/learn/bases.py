"""Orthonormal bases for linear models: column by column, or by products of matrices where there are many cases."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from jaxgen.learn.batched import in_any_row
from jaxgen.learn.systems import Factor, cholesky

Orthonormal = Callable[[Float[Array, "p n"]], tuple[Float[Array, "p n"], Float[Array, "p p"], Bool[Array, ""]]]

_MANY_COLUMNS = 32
"""Beyond so many columns LAPACK makes the basis."""


class _Basis(NamedTuple):
    """Gram-Schmidt after some columns: the orthonormal vectors so far [p, n], and the triangle [p, p]."""

    vectors: Float[Array, "p n"]
    triangle: Float[Array, "p p"]


@partial(jax.jit, static_argnames="lapack")
def orthonormal(
    a: Float[Array, "n p"], lapack: bool = True
) -> tuple[Float[Array, "n p"], Float[Array, "p p"], Bool[Array, ""]]:
    """Orthonormal basis [n, p] and triangle [p, p] with a = basis @ triangle, and whether a is rank-deficient to
    working precision []; of few columns, the basis is 0 for those that depend on columns before them.

    Classical Gram-Schmidt with every column orthogonalised twice, which keeps the basis orthonormal to rounding
    (Giraud et al. 2005, "The loss of orthogonality in the Gram-Schmidt orthogonalization process"). Written out because
    LAPACK called for batches of small matrices is no faster and cannot be run from several threads (see `assess`); of
    many columns it makes the basis, unless it is not to.
    """
    n, p = a.shape
    if lapack and p > _MANY_COLUMNS:
        basis, triangle = jnp.linalg.qr(jnp.pad(a, ((0, max(0, p - n)), (0, 0))))
        return basis[:n], triangle, _dependent(a, jnp.diagonal(triangle))
    columns, sizes = a.T, _lengths(a)

    def add(k, state: _Basis) -> _Basis:
        first = state.vectors @ columns[k]
        rest = columns[k] - first @ state.vectors
        second = state.vectors @ rest
        rest = rest - second @ state.vectors
        length = jnp.sqrt(jnp.sum(jnp.square(rest)))
        # What is left of a column that depends on those before it is rounding, which depends on that of others.
        length = jnp.where(length > _rounding(n, a.dtype) * sizes[k], length, 0)
        vector = jnp.where(length > 0, rest / jnp.where(length > 0, length, 1), 0)
        triangle = state.triangle.at[:, k].set(first + second).at[k, k].set(length)
        return _Basis(state.vectors.at[k].set(vector), triangle)

    vectors, triangle = lax.fori_loop(0, p, add, _Basis(jnp.zeros_like(columns), jnp.zeros((p, p), a.dtype)))
    return vectors.T, triangle, _dependent(a, jnp.diagonal(triangle))


@jax.jit
def back_substitute(triangle: Float[Array, "p p"], b: Float[Array, "p *K"]) -> Float[Array, "p *K"]:
    """Solves triangle @ z = b for an upper triangle [p, p] and b [p, *K]."""
    p = len(triangle)

    def solve(step, z):
        k = p - 1 - step
        return z.at[k].set((b[k] - jnp.tensordot(triangle[k], z, 1)) / triangle[k, k])

    return lax.fori_loop(0, p, solve, jnp.zeros_like(b))


def orthonormal_if_easy(
    columns: Float[Array, "p n"],
) -> tuple[Float[Array, "p n"], Float[Array, "p p"], Bool[Array, ""]]:
    """Orthonormal basis [p, n] of a matrix a, whose columns [p, n] are given, with basis' = a @ transform [p, p], and
    whether a is ill-conditioned [].

    By Cholesky's factor of a' a, twice, which is as orthonormal as rounding allows where a is not ill-conditioned
    (Yamamoto et al. 2015, "Roundoff error analysis of the CholeskyQR2 algorithm").
    """
    vectors, transform, ill = nearly_orthonormal_if_easy(columns)
    again = _inverse_root(vectors @ vectors.T).solved
    return again @ vectors, transform @ again.T, ill


def nearly_orthonormal_if_easy(
    columns: Float[Array, "p n"],
) -> tuple[Float[Array, "p n"], Float[Array, "p p"], Bool[Array, ""]]:
    """Nearly orthonormal basis [p, n] of a matrix a, whose columns [p, n] are given, with basis' = a @ transform, which
    is [p, p], and whether a is ill-conditioned [].

    By Cholesky's factor once, in half the time of `orthonormal_if_easy`: products of two vectors are off by roundings
    times the square of the condition number, which is the root of a rounding where a is barely not ill-conditioned.
    """
    transform, ill = inverse_root_if_easy(columns @ columns.T)
    return transform.T @ columns, transform, ill


def inverse_root_if_easy(gram: Float[Array, "p p"]) -> tuple[Float[Array, "p p"], Bool[Array, ""]]:
    """Matrix [p, p] with which the product of a, of which a' a [p, p] is given, is orthonormal but for the square of
    its condition number in roundings; and whether a is ill-conditioned [].
    """
    size = lax.rsqrt(jnp.diagonal(gram))
    root = _inverse_root(gram * size[:, None] * size[None])
    return (root.solved * size[None]).T, ~(root.pivot > float(jnp.finfo(gram.dtype).eps) ** 0.5)


def _inverse_root(gram: Float[Array, "p p"]) -> Factor:
    """Cholesky's factor of a matrix, with the inverse of its transpose."""
    return cholesky(gram, jnp.eye(len(gram), dtype=gram.dtype))


def _dependent(a: Float[Array, "n p"], lengths: Float[Array, " p"]) -> Bool[Array, ""]:
    """Whether a column of `a` has nothing left, but rounding, outside the span of those before it."""
    return jnp.any(jnp.abs(lengths) <= _rounding(len(a), a.dtype) * _lengths(a))


def _rounding(n: int, dtype: Any) -> float:
    """What may be left of a column of n numbers by rounding, relative to its length."""
    return 8 * n**0.5 * float(jnp.finfo(dtype).eps)


def _lengths(a: Float[Array, "n p"]) -> Float[Array, " p"]:
    """Of the columns of a matrix."""
    return jnp.sqrt(jnp.sum(jnp.square(a), axis=0))


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
