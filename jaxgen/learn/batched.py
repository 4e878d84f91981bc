"""What makes programs of many rows that run together fast: see where it is used."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

_WRITTEN_OUT = 64
"""Lengths of an axis up to which operations along it are written out."""


def over_first(combine: Any, values: Float[Array, "k *N"]) -> Float[Array, "*N"]:
    """Sum (`jnp.add`) or maximum (`jnp.maximum`) of values [k, *N] over the first axis, written out where it
    is short: XLA makes vector instructions of that, along the last axis.
    """
    return combine.reduce(values, axis=0) if len(values) > _WRITTEN_OUT else functools.reduce(combine, values)


@jax.custom_batching.custom_vmap
def in_any_row(flag: Bool[Array, ""]) -> Bool[Array, ""]:
    """Whether a flag [] is set in any of the rows that run together: a loop that ends by it needs no selection in
    every row.

    Under `vmap`, JAX goes on with a loop while any row wants to, and to leave the finished rows as they are it selects
    between the old and the new state of every row in every round, which copies all networks and states of optimisers.
    A condition that is the same for all rows is taken as it is, without selection. So a body that ends with this must
    leave finished rows alone itself, where it matters.
    """
    return flag


@in_any_row.def_vmap
def _in_any_row_of_a_batch(size: int, batched: list[bool], flags: Bool[Array, " rows"]) -> tuple[Bool[Array, ""], bool]:
    return in_any_row(jnp.any(flags)), False
