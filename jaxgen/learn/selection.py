"""Which of many numbers are the least, of many columns of numbers at once."""

import functools
import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Shaped

from jaxgen.types.devices import on_cpu

_MOST = 512
"""Up to so many are looked for by insertion; for more XLA takes less time."""

_TOGETHER = 4
"""Keys that are inserted at a time."""


def parts_for(n: int, length: int) -> int:
    """Into how many parts of one size n numbers should be divided, of which so many are to be the least, for `least`.

    With more parts there are fewer columns of one number of each, which are looked through first, but more numbers in
    those that remain.
    """
    if length > _MOST or not on_cpu():
        return 1
    return 1 << (int(math.log2(max(1, n / length))) // 2)


def least(
    parts: Sequence[Float[Array, "w b"]], chosen: Callable[[Int[Array, "s b"]], Float[Array, "s b"]], length: int
) -> tuple[Int[Array, "M b"], Float[Array, " b"]]:
    """The least of many numbers in each of b columns, where negative ones count as 0: which they are, about in their
    order, M of them, and a number in single precision that none of the others comes below, infinite if all others are.

    On a CPU, XLA looks for the least one column after the other, by a heap, at 2 to 4 ns a number. Here all columns
    fill vector registers together. The least of those in the same place of all parts are sorted first: what is wanted
    stands in the places where these are the least. Numbers and places are one key, so numbers are compared by their
    first bits only.

    Args:
      parts: the numbers, w in each part; part p holds those from p w on.
      chosen: gives numbers [s, b] of which it is told which they are.
      length: how many are wanted, M, at most those of a part.
    """
    if length > _MOST or not on_cpu():
        near, case = _top(-jnp.concatenate(parts).astype(jnp.float32).T, length)
        return case.T, jnp.maximum(_rounded_down(-near[:, -1]), 0)
    case, end = _in_best_places(parts, length)
    if len(parts) == 1:
        return case, _rounded_down(_numbers(end))
    inside, last = _least_of(chosen(case), end, length)
    return jnp.take_along_axis(case, inside, axis=0), last


def least_with_kept(
    numbers: Float[Array, "m b"], kept: Float[Array, "M b"]
) -> tuple[Float[Array, "M b"], Int[Array, "M b"], Float[Array, " b"]]:
    """The least M of numbers of at least 0 in each of b columns and of as many that were kept before: themselves, where
    they are, kept ones after all others, and a number in single precision that none of the others comes below. They
    are compared as in `least`; m must be at least M, and a multiple of `parts_for` them.
    """
    count, length = len(numbers), len(kept)
    where, end = _in_best_places(jnp.split(numbers, parts_for(count, length)), length)
    after = jnp.broadcast_to(count + jnp.arange(length, dtype=jnp.int32)[:, None], kept.shape)
    some = jnp.concatenate([jnp.take_along_axis(numbers, where, axis=0), kept])
    inside, last = _least_of(some, end, length)
    where = jnp.take_along_axis(jnp.concatenate([where, after]), inside, axis=0)
    return jnp.take_along_axis(some, inside, axis=0), where, last


def _in_best_places(parts: Sequence[Float[Array, "w b"]], length: int) -> tuple[Int[Array, "s b"], Int[Array, " b"]]:
    """The numbers in those places of all parts where the least of them stand, as many places as are wanted: which they
    are, and first bits that none of the numbers in other places comes below.
    """
    width, columns = parts[0].shape
    place, low = _places(width)
    first = least_in_order(_keys(functools.reduce(_lesser, parts), place, low), length)
    part = jnp.arange(len(parts), dtype=jnp.int32)[:, None, None]
    return (part * width + (first & low)[None]).reshape(-1, columns), first[-1] & ~low


def _least_of(
    some: Float[Array, "s b"], end: Int[Array, " b"], length: int
) -> tuple[Int[Array, "M b"], Float[Array, " b"]]:
    """Which of some numbers are the least, about in their order, and a number that none of the others comes below, nor
    those whose first bits are an end or more.
    """
    place, low = _places(len(some))
    found = least_in_order(_keys(some, place, low), length)
    return found & low, _rounded_down(_numbers(jnp.minimum(end, found[-1] & ~low)))


def _places(count: int) -> tuple[Int[Array, "count 1"], int]:
    """Numbers from 0 on, and the bits that they take."""
    return jnp.arange(count, dtype=jnp.int32)[:, None], (1 << (count - 1).bit_length()) - 1


def _keys(numbers: Float[Array, "m b"], place: Int[Array, "m 1"], low: int) -> Int[Array, "m b"]:
    """Whole numbers in the order of numbers of at least 0, whose last bits are their places."""
    bits = lax.bitcast_convert_type(jnp.maximum(numbers.astype(jnp.float32), 0), jnp.int32)
    return (bits & ~low) | place


def _numbers(keys: Int[Array, " b"]) -> Float[Array, " b"]:
    return lax.bitcast_convert_type(keys, jnp.float32)


def _rounded_down(numbers: Float[Array, " b"]) -> Float[Array, " b"]:
    """Numbers of at least 0 in single precision that no number comes below which was rounded to one that is not less
    than these.
    """
    single = jnp.finfo(numbers.dtype)
    return jnp.where(numbers > float(single.tiny), numbers * (1 - float(single.eps)), 0)


def least_in_order(values: Shaped[Array, "m *S"], length: int) -> Shaped[Array, "M *S"]:
    """The least of m numbers without NaN in each column, [S...], in their order.

    Of two sorted lists a and v together, the j-th is the least of a_j and of max(a_(j - i), v_i) for all i: so a few
    numbers that are sorted are inserted in all places at once.
    """
    floating = jnp.issubdtype(values.dtype, jnp.floating)
    lowest, most = (-jnp.inf, jnp.inf) if floating else (jnp.iinfo(values.dtype).min, jnp.iinfo(values.dtype).max)
    columns = ((0, 0),) * (values.ndim - 1)
    values = jnp.pad(values, ((0, -len(values) % _TOGETHER), *columns), constant_values=most)
    groups = jnp.stack(_four_sorted(*values.reshape(_TOGETHER, -1, *values.shape[1:])), axis=1)
    before = jnp.full_like(values[:_TOGETHER], lowest)

    def insert(place: Int[Array, ""], state: Shaped[Array, "L *S"]) -> Shaped[Array, "L *S"]:
        new = lax.dynamic_index_in_dim(groups, place, keepdims=False)
        merged = state[_TOGETHER:]
        for i in range(_TOGETHER):
            end = _TOGETHER - 1 - i
            merged = _lesser(merged, _greater(state[end : end + length], new[i][None]))
        return jnp.concatenate([before, merged])

    none = jnp.full_like(values, most, shape=(length, *values.shape[1:]))
    return lax.fori_loop(0, len(groups), insert, jnp.concatenate([before, none]))[_TOGETHER:]


def _lesser(a: Array, b: Array) -> Array:
    """The lesser of two numbers, in one instruction; `jnp.minimum` takes care of NaN in several."""
    return jnp.where(a < b, a, b)


def _greater(a: Array, b: Array) -> Array:
    """See `_lesser`."""
    return jnp.where(a > b, a, b)


def _four_sorted(a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array, Array, Array]:
    """Four numbers of each place, [...] each, in their order."""
    low, high = (_lesser(a, b), _lesser(c, d)), (_greater(a, b), _greater(c, d))
    inner = _greater(*low), _lesser(*high)
    return _lesser(*low), _lesser(*inner), _greater(*inner), _greater(*high)


def _top(values: Float[Array, "b n"], length: int) -> tuple[Float[Array, "b M"], Int[Array, "b M"]]:
    """`lax.top_k`. XLA for CPUs would sort all numbers where it finds slices of what that gives, of some of the rows as
    of some of the places; it finds none behind a minimum.
    """
    found, place = lax.top_k(values, length)
    return jnp.minimum(found, jnp.finfo(found.dtype).max), jnp.minimum(place, values.shape[1] - 1)
