"""Orthonormal bases by products of matrices, for linear models of many cases."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from jaxgen.learn.newton import Factor, cholesky


def orthonormal_if_easy(
    columns: Float[Array, "p n"],
) -> tuple[Float[Array, "p n"], Float[Array, "p p"], Bool[Array, ""]]:
    """Orthonormal basis [p, n] of a matrix a, whose columns [p, n] are given, with basis' = a @ transform [p, p], and
    whether a is ill-conditioned [].

    By Cholesky's factor of a' a, twice, which is as orthonormal as rounding allows where a is not ill-conditioned
    (Yamamoto et al. 2015, "Roundoff error analysis of the CholeskyQR2 algorithm").
    """
    gram = columns @ columns.T
    size = lax.rsqrt(jnp.diagonal(gram))
    first = _inverse_root(gram * size[:, None] * size[None])
    transform = first.solved * size[None]
    vectors = transform @ columns
    again = _inverse_root(vectors @ vectors.T).solved
    ill = ~(first.pivot > float(jnp.finfo(columns.dtype).eps) ** 0.5)
    return again @ vectors, (again @ transform).T, ill


def _inverse_root(gram: Float[Array, "p p"]) -> Factor:
    """Cholesky's factor of a matrix, with the inverse of its transpose."""
    return cholesky(gram, jnp.eye(len(gram), dtype=gram.dtype))
