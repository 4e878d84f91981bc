"""Cases in blocks, for partial gradients, and those whose predictions are watched."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from jaxgen.learn.network.iterative import Cases

_WATCHED = 8
"""Training cases whose predictions tell whether the chains agree."""


def in_blocks(cases: Cases, blocks: int) -> Cases:
    """Cases [D, n], [K, n], [n] cut into blocks, x [blocks, D, m], y [blocks, K, m], w [blocks, m].

    The cases in use, in their order, are cut into blocks of equal numbers (within one), whatever they weigh; cases of
    weight 0 fill up. So where all weights are 1 the blocks are those of Neal's programs.
    """
    if blocks == 1:
        return jax.tree.map(lambda a: a[None], cases)
    n = cases.w.shape[0]
    in_use = jnp.nonzero(cases.w > 0, size=n, fill_value=0)[0]
    borders = jnp.arange(blocks + 1) * jnp.sum(cases.w > 0) // blocks
    place = borders[:-1, None] + jnp.arange(-(-n // blocks))[None]
    index = in_use[jnp.minimum(place, n - 1)]
    w = jnp.where(place < borders[1:, None], cases.w[index], 0)
    x, y = (jnp.moveaxis(a[:, index], 0, 1) for a in (cases.x, cases.y))
    return Cases(x, y, w)


def watched_cases(w: Float[Array, " n"]) -> Int[Array, " 8"]:
    """Numbers [8] of the cases of weights [n] above 0, spread evenly over them; some come twice if there are fewer."""
    in_use = jnp.nonzero(w > 0, size=w.shape[0], fill_value=0)[0]
    return in_use[jnp.arange(_WATCHED) * jnp.sum(w > 0) // _WATCHED]


def block_of(cases: Cases, number: Any) -> Cases:
    """One block, x [D, m], y [K, m], w [m]."""
    return jax.tree.map(lambda a: lax.dynamic_index_in_dim(a, number, keepdims=False), cases)
