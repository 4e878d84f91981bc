"""What makes programs of many rows that run together fast: see where it is used."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jaxtyping import Array, Bool, Float, PyTree, Shaped

from jaxgen.types.devices import on_cpu
from jaxgen.types.learner import RARE

_WRITTEN_OUT = 64
"""Lengths of an axis up to which operations along it are written out."""


def over_first(combine: Any, values: Float[Array, "k *N"]) -> Float[Array, "*N"]:
    """Sum (`jnp.add`) or maximum (`jnp.maximum`) of values [k, *N] over the first axis, written out where it
    is short: XLA makes vector instructions of that, along the last axis.
    """
    return combine.reduce(values, axis=0) if len(values) > _WRITTEN_OUT else functools.reduce(combine, values)


def over_members(
    function: Callable[..., PyTree], members: tuple[PyTree, ...], shared: tuple[PyTree, ...] = ()
) -> PyTree:
    """`jax.vmap` of function(*members, *shared) over the first axis of all that members take, [M, ...]; where rows of
    such members run together, one vmap of rows times members in place of two.

    With two axes in front, XLA leaves the transposed products of gradients as they come, with cases on the first axis
    in place of the last, and reads across memory what is made of them: a network with ten outputs trained twice as
    slowly. What is shared by the members but not by the rows is repeated for each member.
    """
    leaves, tree = jax.tree.flatten((members, shared))
    own = len(jax.tree.leaves(members))

    def of_leaves(*leaves: Any) -> PyTree:
        members, shared = jax.tree.unflatten(tree, leaves)
        return function(*members, *shared)

    shapes = [jax.ShapeDtypeStruct(leaf.shape[place < own :], leaf.dtype) for place, leaf in enumerate(leaves)]
    traced, shape = jax.make_jaxpr(of_leaves, return_shape=True)(*shapes)

    def of_all(*given: Any) -> list[Any]:
        """What else the function knows, such as settings that are chosen among, comes last."""
        return jaxpr_as_fun(ClosedJaxpr(traced.jaxpr, given[len(leaves) :]))(*given[: len(leaves)])

    axes = (0,) * own + (None,) * (len(leaves) - own + len(traced.consts))
    found = _over_first_axes(of_all, axes)(*leaves, *traced.consts)
    return jax.tree.unflatten(jax.tree.structure(shape), found)


def _over_first_axes(function: Callable[..., list[Any]], axes: tuple[int | None, ...]) -> Callable[..., list[Any]]:
    """`jax.vmap(function, axes)` that a further vmap makes longer."""
    together = jax.custom_batching.custom_vmap(lambda *leaves: jax.vmap(function, axes)(*leaves))

    @together.def_vmap
    def _of_rows(rows: int, batched: list[bool], *leaves: Any) -> tuple[list[Any], list[bool]]:
        given = list(zip(leaves, axes, batched, strict=True))
        members = next(leaf.shape[int(has_rows)] for leaf, axis, has_rows in given if axis == 0)

        def longer(leaf: Any, axis: int | None, has_rows: bool) -> Any:
            if axis is None:
                return jnp.repeat(leaf, members, axis=0) if has_rows else leaf
            leaf = leaf if has_rows else jnp.broadcast_to(leaf[None], (rows, *leaf.shape))
            return leaf.reshape(rows * members, *leaf.shape[2:])

        axes_of_all = tuple(0 if has_rows else axis for _, axis, has_rows in given)
        found = _over_first_axes(function, axes_of_all)(*(longer(*each) for each in given))
        return [a.reshape(rows, members, *a.shape[1:]) for a in found], [True] * len(found)

    return together


def in_turn(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """`jax.vmap` of a function of rows; on a CPU they come one after the other, and none waits for others to end.

    For rows of which each is work enough for a core, and that take unlike numbers of rounds.
    """
    if not on_cpu():
        return jax.vmap(function)
    return lambda *rows: lax.map(lambda row: function(*row), rows)


def one_by_one(functions: Sequence[Callable[[], PyTree]]) -> tuple[PyTree, ...]:
    """What some functions without arguments give, which run one after the other. XLA would run them at the same time on
    a CPU, where batched calls of LAPACK wait for a pool of threads: two of them can wait for each other for ever.
    """
    if len(functions) == 1:
        return (functions[0](),)
    none = tuple(map(nothing_of, functions))

    def branch(place: int) -> Callable[[tuple[PyTree, ...]], tuple[PyTree, ...]]:
        def changed(found: tuple[PyTree, ...]) -> tuple[PyTree, ...]:
            new = jax.tree.map(lambda a, old: jnp.asarray(a, old.dtype), functions[place](), none[place])
            return (*found[:place], new, *found[place + 1 :])

        return changed

    branches = list(map(branch, range(len(functions))))
    return lax.fori_loop(0, len(functions), lambda place, found: lax.switch(place, branches, found), none)


def after(done: Float[Array, "..."], values: Float[Array, "*N"]) -> Float[Array, "*N"]:
    """The values [*N], which are not there before others [...] are, of which the first is no NaN unless all is lost:
    what calls LAPACK with them waits for what called it for the others, see `one_by_one`.
    """
    return jnp.where(jnp.isnan(done.reshape(-1)[0]), jnp.nan, values)


def nothing_of(function: Callable[[], PyTree]) -> PyTree:
    """Zeros in the shapes of what a function without arguments gives, and any random keys."""

    def nothing(a: jax.ShapeDtypeStruct) -> Array:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            return jnp.broadcast_to(jax.random.key(0), a.shape)
        return jnp.zeros(a.shape, a.dtype)

    return jax.tree.map(nothing, jax.eval_shape(function))


def once(numbers: PyTree[Shaped[Array, "..."]]) -> PyTree[Shaped[Array, "..."]]:
    """Arrays [...] that all who read them find the same. XLA for GPUs would compute numbers again where they are used,
    with other roundings; XLA for CPUs knows no such means.
    """
    return numbers if on_cpu() else lax.optimization_barrier(numbers)


def where_rare(flag: Bool[Array, ""], function: Callable[[], PyTree], otherwise: PyTree) -> PyTree:
    """What a function without arguments gives if a flag [] is set in any of the rows that run together, which is rare,
    else what was found already, of the same shapes. The size of chunks goes by the work of rows without it.
    """

    def rare() -> PyTree:
        return function()

    rare.__name__ = RARE
    return lax.cond(in_any_row(flag), jax.jit(rare), lambda: otherwise)


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
