"""Distances between cases, so many at a time as stay in the cache of a core."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from jaxgen.learn.batched import once
from jaxgen.learn.scale import binary_unit

AT_A_TIME = 1 << 17
"""Distances that are compared at a time, or sums that are added to."""

_FEWEST_AT_A_TIME = 16
"""The fewest cases that they are from: a power of two, which fills vector registers."""

_FEW_INPUTS = 64
"""Up to this many inputs, distances are summed by operations that XLA makes one pass of."""

_AT_ONCE = 16
"""Of more inputs so many are summed in one pass."""


def in_blocks(function: Callable[[Any], Any], cases: Any, most: int, fill: str = "constant") -> Any:
    """What a function gives for cases, arrays [m, ...], at most so many [b, ...] at a time: arrays [m, ...].

    The last block is filled up with zeros; or with its last case, "edge", for which a loop that goes on until all are
    done takes no more rounds, but with which normalised neighbours of diabetes (100 rows) took 67 ms in place of 27.
    """
    m = len(jax.tree.leaves(cases)[0])
    size = min(m, max(_FEWEST_AT_A_TIME, 1 << int(math.log2(max(1, most)))))
    if size == m:
        return function(cases)

    def divided(a):
        return jnp.pad(a, ((0, -m % size), *[(0, 0)] * (a.ndim - 1)), fill).reshape(-1, size, *a.shape[1:])

    found = lax.map(function, jax.tree.map(divided, cases))
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[:m], found)


def unit_of(x: Float[Array, "n *D"]) -> Float[Array, ""]:
    """The unit [] in which distances of cases [n, ...] are squared."""
    return binary_unit(jnp.max(jnp.abs(x)))


def sizes_of(x: Float[Array, "m D"], unit: Float[Array, ""]) -> Float[Array, " m"]:
    """The size of the largest input of each case [m], in a unit []."""
    return jnp.max(jnp.abs(x), axis=1) / unit


def squared_distances(
    x: Float[Array, "n D"], w: Float[Array, " n"], cases: Float[Array, "m D"], unit: Float[Array, ""]
) -> Float[Array, "n m"]:
    """Squared distances [n, m] of training cases [n, D] with weights [n] from cases [m, D], in a unit []; infinite for
    those of weight 0.

    The cases are the last axis, so that passes over the training cases are made of vector instructions.
    """
    ours, theirs = (x / unit).T, (cases / unit).T

    nothing = jnp.zeros((len(x), len(cases)), x.dtype)
    far = sum_over_inputs(lambda d: jnp.square(ours[d][:, None] - theirs[d][None]), len(ours), nothing)
    return once(jnp.where(w[:, None] > 0, far, jnp.inf))


def sum_over_inputs(term: Callable[[Any], Array], inputs: int, nothing: Array) -> Array:
    """The sum [...] of a term of every input, from zeros of its shape."""
    if inputs <= _FEW_INPUTS:  # written out, which makes one pass of them
        return functools.reduce(lambda total, d: total + term(d), range(inputs), nothing)
    rest = inputs % _AT_ONCE

    def add(group: Array, total: Array) -> Array:
        begin = rest + group * _AT_ONCE
        return functools.reduce(lambda total, d: total + term(begin + d), range(_AT_ONCE), total)

    first = functools.reduce(lambda total, d: total + term(d), range(rest), nothing)
    return lax.fori_loop(0, inputs // _AT_ONCE, add, first)
