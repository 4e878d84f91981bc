"""Lists of the nearest cases of each case, which rows of unlike training cases and units share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from jaxgen.learn.batched import in_any_row, once, where_rare
from jaxgen.learn.counting import blur_of
from jaxgen.learn.distances import in_blocks, sizes_of, squared_distances, sum_over_inputs, unit_of
from jaxgen.learn.leaves import MOST_IN_LEAVES, Leaves
from jaxgen.learn.ranked import first_alike, in_order
from jaxgen.learn.selection import least, parts_for
from jaxgen.types import RowFills
from jaxgen.types.devices import on_cpu

MANY_INPUTS = 24
"""From this many inputs on, the nearest cases are looked for by a product of matrices."""

_LESS_INPUTS, _MANY_CASES = 12, 1000
"""Of so many cases they are so from these inputs on: what is listed is little then, whose distances are taken anew."""

_IN_LEAVES = 4096
"""Of so many cases, of few inputs, they are looked for in the leaves of a tree."""

_SURE = 64
"""Distances by products are used where those at the end of a list are so many times as large as their errors can be."""

_NOTHING = 2.0**-26
"""Errors of products are nothing beside distances if they are less than this share of them."""

_LISTED_AT_A_TIME = 1 << 21
"""Distances from which lists for all rows are made at a time, by each of two cores if both are free."""

_CASES_AT_A_TIME = 64
"""On a CPU those of so many cases, whose lists are made together, and no more."""

_MUCH_LARGER = 2.0**64
"""Up to this factor between the squared scales of rows, differences are far from the smallest numbers."""

_UNROLLED = 4
"""Rounds of a loop that XLA makes one pass over the numbers of."""

_AGAIN = (16, 32)
"""The fewest cases that are looked at again at a time, and the most on a CPU: often they are a few, and the last ones
take as long as a full number.
"""


def nearest_cases(
    x: Float[Array, "n D"],
    unit: Float[Array, ""],
    length: int,
    w: Float[Array, " n"] | None = None,
    *,
    ordered: bool = True,
) -> tuple[Float[Array, "n M"], Int[Array, "n M"], Float[Array, " n"]]:
    """Of each case the nearest of all, or of those with weight: how far away they are, the nearest first, and which
    they are; and a distance that no case that is not listed comes below, [n], infinite where all are listed. Distances
    are squared, in a unit, and cut at that one; those of cases without weight are infinite. If nobody needs them
    `ordered`, distances and their order are right up to errors of products and of single precision.

    Of many inputs the nearest are found by |a|^2 + |b|^2 - 2 ab, since all ab are one product of matrices, in single
    precision. Errors of these are within what rounding of numbers as large as |a|^2 + |b|^2 can bring, and distances of
    those listed are taken anew. Of many cases with few inputs, those in near `Leaves` of a tree are looked through.
    """
    n, inputs = x.shape
    length, most = min(n, length), _at_a_time(n)
    w = jnp.ones_like(x[:, 0]) if w is None else w
    parts, total = _divided(n, length)
    padded, weights = _pad(x, total), _pad(w, total)

    def of_block(block: Float[Array, "b D"]) -> tuple[Float[Array, "b M"], Int[Array, "b M"], Float[Array, " b"]]:
        far = squared_distances(padded, weights, block, unit)
        if length == n:
            again, case = in_order(far.T)
            return again, case, jnp.full_like(again[:, 0], jnp.inf)

        def chosen(case: Int[Array, "s b"]) -> Float[Array, "s b"]:
            return jnp.take_along_axis(far, case, axis=0)

        case, last = least(jnp.split(far, parts), chosen, length)
        beyond = last.astype(far.dtype)
        if not ordered:
            return chosen(case).T, case.T, beyond
        again, place = in_order(chosen(case).T)
        return jnp.minimum(again, beyond[:, None]), jnp.take_along_axis(case.T, place, axis=1), beyond

    if inputs < (_LESS_INPUTS if n >= _MANY_CASES else MANY_INPUTS) or length == n:
        if n >= _IN_LEAVES and length <= MOST_IN_LEAVES and x.dtype == jnp.float64 and on_cpu():
            return Leaves.of(x / unit, w).nearest(length, ordered=ordered)
        return in_blocks(of_block, x, most)
    centred, squares, errors = _for_products(x, unit, jnp.float32)
    all_cases = _ForProducts.of(centred, squares, w, total)

    def of_block_by_products(
        block: tuple[Array, Array, Array, Array],
    ) -> tuple[Float[Array, "b M"], Int[Array, "b M"], Float[Array, " b"]]:
        cases, from_mean, square, error = block
        far, case, last = all_cases.least(from_mean, square, parts, length)
        beyond = last.astype(x.dtype)
        if not ordered:
            return far.astype(x.dtype).T, case.T, beyond - error
        apart = jnp.sum(jnp.square((x[case.T] - cases[:, None]) / unit), axis=2)
        again, place = in_order(jnp.where(w[case.T] > 0, apart, jnp.inf))
        return again, jnp.take_along_axis(case.T, place, axis=1), beyond - error

    found = in_blocks(of_block_by_products, (x, centred, squares, errors), most)
    sure = jnp.all(found[2] >= _SURE * errors)
    far, case, beyond = lax.cond(in_any_row(~sure), lambda: in_blocks(of_block, x, most), lambda: found)
    return jnp.minimum(far, beyond[:, None]), case, beyond


def nearest_by_products(
    x: Float[Array, "n D"], unit: Float[Array, ""], length: int, w: Float[Array, " n"], k: int, *, shared: bool
) -> tuple[Int[Array, "n M"], Int[Array, "n M"], Bool[Array, ""]]:
    """Of each case the nearest with weight, of many inputs by products alone: which they are, [n, M], the nearest
    first, and the first place of those that are as far away, [n, M]; and whether what products can tell is enough:
    their errors, up to which distances count as equal, are nothing beside the distance of the k-th, and no other is as
    near. Where rows share the lists, the k-th may be any but the first, which is the case itself; those that are as far
    away as others can be that are not listed have the last place in common.
    """
    n = len(x)
    centred, squares, errors = _for_products(x, unit, x.dtype)
    parts, total = _divided(n, length)
    all_cases = _ForProducts.of(centred, squares, w, total)

    def of_block(block: tuple[Array, ...]) -> tuple[Int[Array, "b M"], Int[Array, "b M"], Bool[Array, " b"]]:
        from_mean, square, error, size = block
        far, listed, last = all_cases.least(from_mean, square, parts, length)
        beyond = last.astype(far.dtype)
        near, place = in_order(far.T)
        if shared:
            sure = near[:, 1] >= error / _NOTHING
            near = jnp.minimum(near, beyond[:, None])
        else:
            end = near[:, k - 1]
            sure = (end >= error / _NOTHING) & (end + error + blur_of(end, x.shape[1], size) < beyond)
        blur = error[:, None] + blur_of(near, x.shape[1], size[:, None])
        return jnp.take_along_axis(listed.T, place, axis=1), first_alike(near, blur), sure

    blocks = centred, squares, errors, sizes_of(x, unit)
    case, first, sure = in_blocks(of_block, blocks, _at_a_time(n), "edge")
    return case, first, jnp.all(sure)


class _ForProducts(NamedTuple):
    """All cases, as many as fill parts of one size, for products with others: minus them about their mean, and half of
    their squared lengths, [N, D + 1].
    """

    columns: Float[Array, "N p"]

    @classmethod
    def of(
        cls, centred: Float[Array, "n D"], squares: Float[Array, " n"], w: Float[Array, " n"], total: int
    ) -> "_ForProducts":
        """Of n cases with weights, and absent ones up to a total. Twice the half of the square of an absent one is
        infinite; itself it is not, since infinity times 0 is no number.
        """
        absent = 0.75 * float(jnp.finfo(centred.dtype).max)
        half = _pad(jnp.where(w > 0, squares / 2, absent), total, absent)
        return cls(jnp.concatenate([-_pad(centred, total), half[:, None]], axis=1))

    def least(
        self, from_mean: Float[Array, "b D"], square: Float[Array, " b"], parts: int, length: int
    ) -> tuple[Float[Array, "M b"], Int[Array, "M b"], Float[Array, " b"]]:
        """Squared distances of b cases from the nearest of all, which they are, and a distance that no others come
        below, but for errors.
        """
        others = jnp.concatenate([from_mean, jnp.ones_like(from_mean[:, :1])], axis=1)
        products = jnp.matmul(self.columns, others.T, precision="highest")

        def far(products: Float[Array, "m b"]) -> Float[Array, "m b"]:
            return jnp.maximum(square[None] + 2 * products, 0)

        def chosen(case: Int[Array, "s b"]) -> Float[Array, "s b"]:
            return far(jnp.take_along_axis(products, case, axis=0))

        # Parts of products, and not of distances, so that no array of all distances is made.
        case, last = least(list(map(far, jnp.split(products, parts))), chosen, length)
        return chosen(case), case, last


def _at_a_time(n: int) -> int:
    """Of how many cases the distances from n others are looked through at a time."""
    return min(_CASES_AT_A_TIME, _LISTED_AT_A_TIME // n) if on_cpu() else _LISTED_AT_A_TIME // n


def _divided(n: int, length: int) -> tuple[int, int]:
    """Into how many parts n cases are divided, of which so many are listed, and how many cases fill these."""
    parts = parts_for(n, length)
    return parts, -(-n // parts) * parts


def _pad(values: Float[Array, "n *D"], total: int, value: float = 0.0) -> Float[Array, "N *D"]:
    """Values of cases, and of absent ones up to a total."""
    return jnp.pad(values, ((0, total - len(values)), *[(0, 0)] * (values.ndim - 1)), constant_values=value)


def _for_products(
    x: Float[Array, "n D"], unit: Float[Array, ""], dtype: Any
) -> tuple[Float[Array, "n D"], Float[Array, " n"], Float[Array, " n"]]:
    """Cases about their mean in a unit, in a precision, their squared lengths, and what their squared distances can be
    wrong by that are found by products of these.
    """
    centred = x / unit
    centred = (centred - jnp.mean(centred, axis=0)[None]).astype(dtype)
    squares = jnp.sum(jnp.square(centred), axis=1)
    errors = 4 * (x.shape[1] + 8) * float(jnp.finfo(dtype).eps) * (squares + jnp.max(squares))
    return centred, squares, errors.astype(x.dtype)


class LargestUnits(NamedTuple):
    """Cases in the largest scale that any of R rows has for an input. In these units no case is further away from
    another than in the units of any row, so a case that is not in a list that is made in them is further away than the
    last one of the list in all of them.

    The unit of an input in which the training cases of a row are all alike does not matter to it, since such an input
    makes all of them further away by the same. Where rows put numbers of their own in the place of missing inputs, a
    case may be nearer by as much as these move it and the other.

    Attributes:
      x: the cases [n, D].
      unit: in which their distances are squared, [].
      factors: by which a row multiplies the squared differences of each input, at least 1, [R, D].
      fills: what rows add to missing inputs, None where nothing is missing.
    """

    x: Float[Array, "n D"]
    unit: Float[Array, ""]
    factors: Float[Array, "R D"]
    fills: RowFills | None

    @classmethod
    def of(
        cls,
        x: Float[Array, "n D"],
        w: Float[Array, "R n"],
        scales: Float[Array, "R D"],
        fills: RowFills | None = None,
    ) -> "LargestUnits":
        """Of cases [n, D] and rows with weights [R, n] that divide inputs by scales [R, D]."""
        alike = _alike(x, w)
        if fills is not None:
            alike = alike & (fills.more == 0)
        largest = jnp.max(jnp.where(alike, 0, scales), axis=0)
        largest = jnp.where(largest > 0, largest, 1)
        cases = x / largest[None]
        unit, factors = unit_of(cases), jnp.where(alike, 1, jnp.square(largest[None] / scales))
        moved = None if fills is None else fills._replace(more=fills.more / largest[None])
        return cls(cases, unit, factors, moved)

    def lists(self, length: int, at: Int[Array, " m"] | None = None) -> tuple[Int[Array, "m M"], Float[Array, "m #R"]]:
        """The nearest cases of each, or of some [m]: [m, M], and a finite distance that no other case comes below in
        the units of any row, [m, 1], or of each, [m, R].
        """
        if at is None:
            _, case, beyond = nearest_cases(self.x, self.unit, length, ordered=False)
        else:
            parts, total = _divided(len(self.x), length)
            there = _pad(jnp.ones_like(self.x[:, 0]), total)
            far = squared_distances(_pad(self.x, total), there, self.x[at], self.unit)
            listed, last = least(jnp.split(far, parts), lambda s: jnp.take_along_axis(far, s, axis=0), length)
            case, beyond = listed.T, last.astype(self.x.dtype)
        number = jnp.finfo(beyond.dtype)
        rounding = (4 * self.x.shape[1] + 2 * case.shape[1]) * float(number.eps)
        beyond = jnp.minimum((1 - rounding) * beyond, number.max)[:, None]
        if self.fills is not None:
            squares = jnp.square(self.fills.more / self.unit)
            moved = jnp.sqrt(jnp.matmul(self.fills.missing, squares.T, precision="highest"))
            own = moved if at is None else moved[at]
            left = jnp.sqrt(beyond) - (1 + rounding) * (own + jnp.max(moved, axis=0)[None])
            beyond = jnp.square(jnp.maximum(left, 0))
        return case, beyond

    def apart(
        self, at: Int[Array, " b"], case: Int[Array, "M b"], w: Float[Array, "R n"]
    ) -> tuple[Float[Array, "M b R"], Float[Array, "M b R"]]:
        """How far away the cases in lists [M, b] of other cases [b] are in the units of every row, infinite for those
        that it does not train on, and their weights, [M, b, R] each.
        """
        weight = w.T[case]
        difference = (self.x[case] - self.x[at][None]) / self.unit
        if self.fills is None:
            # A product of matrices without differences: all its terms are at least 0.
            far = jnp.einsum("mbd,rd->mbr", jnp.square(difference), self.factors, precision="highest")
        else:
            missing, more = self.fills.missing, self.fills.more / self.unit
            gap = missing[case] - missing[at][None]

            def term(d: Any) -> Float[Array, "M b R"]:
                """What an input adds."""
                by, factor = more[:, d][None, None], self.factors[:, d][None, None]
                return factor * jnp.square(difference[..., d][..., None] + gap[..., d][..., None] * by)

            far = sum_over_inputs(term, len(more.T), jnp.zeros_like(weight))
        return once(jnp.where(weight > 0, far, jnp.inf)), weight

    def apart_from_all(
        self, at: Int[Array, " p"], w: Float[Array, "R n"], row: Int[Array, " p"]
    ) -> tuple[Float[Array, "n p"], Float[Array, "n p"]]:
        """How far away all cases are from some [p], each in the units of one row [p], infinite for those that the row
        does not train on, and their weights in it, [n, p] each.
        """
        ours, theirs, factors = (self.x / self.unit).T, (self.x[at] / self.unit).T, self.factors[row].T

        def add(d: Int[Array, ""], far: Float[Array, "n p"]) -> Float[Array, "n p"]:
            difference = ours[d][:, None] - theirs[d][None]
            if self.fills is not None:
                missing = self.fills.missing[:, d]
                gap = missing[:, None] - missing[at][None]
                difference = difference + gap * (self.fills.more[row, d] / self.unit)[None]
            return far + factors[d][None] * jnp.square(difference)

        far = lax.fori_loop(0, len(ours), add, jnp.zeros((len(self.x), len(at)), self.x.dtype), unroll=_UNROLLED)
        weight = w[row].T
        return once(jnp.where(weight > 0, far, jnp.inf)), weight

    def blur_of(self, far: Float[Array, "b R"], at: Int[Array, " b"]) -> Float[Array, "b R"]:
        """By how much squared distances from cases [b] may differ that are equal, [b, R]."""
        return blur_of(far, self.x.shape[1], sizes_of(self.x[at], self.unit)[:, None])

    @property
    def alike_enough(self) -> Bool[Array, " R"]:
        """Rows whose squared differences in these units do not come near the smallest numbers, [R]."""
        return jnp.all(self.factors <= _MUCH_LARGER, axis=1)


def _alike(x: Float[Array, "n D"], w: Float[Array, "R n"]) -> Bool[Array, "R D"]:
    """Inputs in which the cases [n, D] with weight in a row of weights [R, n] have all one value."""

    def next_case(i: Int[Array, ""], ends: tuple[Array, Array]) -> tuple[Array, Array]:
        used = (w[:, i] > 0)[:, None]
        least, most = (jnp.where(used, x[i][None], end) for end in ends)
        return jnp.minimum(ends[0], least), jnp.maximum(ends[1], most)

    begin = jnp.full((len(w), x.shape[1]), jnp.inf, x.dtype)
    low, high = lax.fori_loop(0, len(x), next_case, (begin, -begin), unroll=_UNROLLED)
    return low == high


def again_where(
    short: Bool[Array, "*N"],
    found: PyTree[Shaped[Array, "..."]],
    again: Callable[[Int[Array, " p"]], PyTree[Shaped[Array, "p ..."]]],
    most: int,
) -> PyTree[Shaped[Array, "..."]]:
    """What was found, arrays [N..., S...], and where lists were too short, in place of it what a function gives for
    some of the places there, counted through [p], at most so many at a time, arrays [p, S...].
    """
    total, axes = short.size, short.ndim
    fewest, enough = _AGAIN
    size = min(total, max(fewest, min(most, enough) if on_cpu() else most))

    def replaced() -> PyTree[Shaped[Array, "..."]]:
        which = jnp.nonzero(short.reshape(-1), size=total + size, fill_value=total)[0].astype(jnp.int32)

        def some(state: tuple[Array, Any]) -> tuple[Array, Any]:
            start, all_found = state
            place = lax.dynamic_slice_in_dim(which, start, size)
            new = again(jnp.minimum(place, total - 1))
            return start + size, jax.tree.map(lambda a, b: a.at[place].set(b, mode="drop"), all_found, new)

        count = jnp.sum(short, dtype=jnp.int32)
        begin = jnp.int32(0), jax.tree.map(lambda a: a.reshape(total, *a.shape[axes:]), found)
        all_found = lax.while_loop(lambda state: state[0] < count, some, begin)[1]
        return jax.tree.map(lambda a, b: a.reshape(b.shape), all_found, found)

    return where_rare(jnp.any(short), replaced, found)
