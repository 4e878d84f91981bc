"""Products x' x and x' W x of many cases, in blocks of cases that are turned first."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from jaxgen.types.devices import on_cpu

_CASES = 480
"""Of a block, which stays in the cache of a core; no power of two, which would put rows of it in the same places."""

_COLUMNS, _COLUMNS_OF_WEIGHTED = 64, 32
"""From so many inputs on blocks take less time, for one product and for those of many weightings."""


def gram(x: Float[Array, "n p"]) -> Float[Array, "p p"]:
    """x' x of cases [n, p].

    XLA multiplies on a CPU twice as fast where the numbers that are added up are next to each other in memory.
    """
    return weighted_grams(x, None)[0]


def weighted_grams(x: Float[Array, "n p"], w: Float[Array, "R n"] | None) -> Float[Array, "R p p"]:
    """x' W x [R, p, p] of cases [n, p] for R weightings; one, of weight 1, where none are given."""
    n, p = x.shape
    if not (p >= (_COLUMNS if w is None else _COLUMNS_OF_WEIGHTED) and n >= 2 * _CASES and on_cpu()):
        return _as_they_are(x, w)

    def add(block: Array, found: Float[Array, "R p p"]) -> Float[Array, "R p p"]:
        start = block * _CASES
        turned = lax.optimization_barrier(lax.dynamic_slice_in_dim(x, start, _CASES).T)  # else XLA does not turn them
        if w is None:
            return found + (turned @ turned.T)[None]
        weighted = turned[None] * lax.dynamic_slice_in_dim(w, start, _CASES, axis=1)[:, None]
        return found + jnp.einsum("rpc,qc->rpq", weighted, turned)

    blocks = n // _CASES
    last = x[blocks * _CASES :], None if w is None else w[:, blocks * _CASES :]
    return lax.fori_loop(0, blocks, add, _as_they_are(*last))


def _as_they_are(x: Float[Array, "n p"], w: Float[Array, "R n"] | None) -> Float[Array, "R p p"]:
    return (x.T @ x)[None] if w is None else jnp.einsum("nd,rn,ne->rde", x, w, x)
