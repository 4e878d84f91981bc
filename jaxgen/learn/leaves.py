"""Cases in the leaves of a k-d tree, where the nearest of each are looked for in leaves that are near.

A tree is of use where cases have few inputs, or lie about as if they had. Looked for are the nearest of all cases of a
leaf together, in some leaves at a time, so that they fill vector registers; if too many leaves are near, in all cases.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.batched import where_rare
from jaxgen.learn.distances import in_blocks, sum_over_inputs
from jaxgen.learn.ranked import in_order
from jaxgen.learn.selection import least, least_with_kept, parts_for

MOST_IN_LEAVES = 256
"""Up to so many cases are listed: as many as there are in the fewest leaves that are looked through at a time."""

_CASES = 32
"""Cases of a leaf: they fill vector registers, and are near each other."""

_FEWEST_AT_A_TIME, _MOST_AT_A_TIME = 8, 40
"""At least so many leaves are looked through at a time, and at most."""

_ROUNDS = 6
"""Of each leaf so many times as many others are known in the order in which they come."""

_FEW_INPUTS, _MORE, _MOST_LISTED = 3, 1280, 1 << 22
"""Of more inputs more leaves are near: so many are known of each, but not so many of all."""

_COLUMNS = 64
"""Leaves whose nearest are looked for at a time."""

_MANY = 1 << 15
"""Of more cases than these, those of one leaf are compared with all at a time, else of two."""

_SAMPLE, _EVERY = 16, 4
"""So many leaves, and one in so many of their cases, tell how many leaves must be looked through."""

_PRICE = 4
"""A case of a leaf takes so many times as long as one where all are looked through."""

_BELOW = 1 - 2.0**-10
"""Squared distances from leaves are lowered by this factor: they are compared by their first bits, and must not be said
to be too large.
"""

_Found = tuple[Float[Array, "b M"], Int[Array, "b M"], Float[Array, " b"]]
"""Of cases, the nearest of others: how far away they are, which they are, and what no other comes below."""


class Leaves(NamedTuple):
    """Cases in an order in which those of a leaf are near each other.

    Attributes:
      case: which cases there are in each of L leaves, [L + 1, m]; n where there is none, at the end of the last leaf
        and in one more.
      place: where each of the n cases is, counted through, [n].
      own: the cases, infinite where there is none, [L, D, m].
      used: the same of one more leaf, and infinite where one has no weight, [L + 1, D, m].
    """

    case: Int[Array, "L+1 m"]
    place: Int[Array, " n"]
    own: Float[Array, "L D m"]
    used: Float[Array, "L+1 D m"]

    @classmethod
    def of(cls, x: Float[Array, "n D"], w: Float[Array, " n"]) -> "Leaves":
        """Of cases [n, D] with weights [n], in double precision."""
        n, inputs = x.shape
        more = -n % _CASES
        padded = jnp.pad(x, ((0, more), (0, 0)), constant_values=jnp.inf)
        order = _order(padded)
        place = jnp.zeros_like(order).at[order].set(jnp.arange(n + more, dtype=order.dtype))[:n]
        own = padded[order].reshape(-1, _CASES, inputs)
        used = jnp.where(jnp.pad(w, (0, more))[order].reshape(-1, _CASES, 1) > 0, own, jnp.inf)
        own, used = (jnp.moveaxis(a, 2, 1) for a in (own, used))
        case = jnp.minimum(order, n).reshape(-1, _CASES)
        another = ((0, 1), (0, 0))
        used = jnp.pad(used, (*another, (0, 0)), constant_values=jnp.inf)
        return cls(jnp.pad(case, another, constant_values=n), place, own, used)

    def nearest(self, length: int, *, ordered: bool) -> _Found:
        """Of each case the nearest of those with weight, in squared distances, the nearest first if they are to be
        `ordered`; see `nearest_cases`.
        """
        count, inputs, size = self.own.shape
        together = _at_a_time(inputs, length)
        near, gap = self._near(together)
        worth = self._are_worth_it(near[:, :together], gap, length)
        total = (count + 1) * size
        every = jnp.moveaxis(self.used, 1, 0).reshape(inputs, total)
        every = jnp.pad(every, ((0, 0), (0, -total % parts_for(total, length))), constant_values=jnp.inf)

        def of_leaf(leaf: tuple[Array, Array, Array]) -> tuple[_Found, Bool[Array, ""]]:
            found, enough = self._from_near(*leaf, together, length, worth)
            return (found.far.T, found.case.T, found.beyond.astype(found.far.dtype)), enough

        def of_some(leaves: tuple[Array, Array, Array]) -> _Found:
            found, enough = lax.map(of_leaf, leaves)
            found = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), found)
            cases = jnp.moveaxis(leaves[0], 1, 0).reshape(inputs, -1)
            far, case, beyond = where_rare(~jnp.all(enough), lambda: self._from_all(cases, every, length), found)
            if ordered:
                far, place = in_order(far)
                case = jnp.take_along_axis(case, place, axis=1)
            return jnp.minimum(far, beyond[:, None]), case, beyond

        some = 1 if total > _MANY or count % 2 else 2
        found = lax.map(of_some, jax.tree.map(lambda a: a.reshape(-1, some, *a.shape[1:]), (self.own, near, gap)))
        return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[self.place], found)

    def _from_near(
        self,
        own: Float[Array, "D m"],
        near: Int[Array, " S"],
        gap: Float[Array, " T"],
        together: int,
        length: int,
        worth: Bool[Array, ""],
    ) -> tuple["_Search", Bool[Array, ""]]:
        """The nearest of the cases of a leaf, some leaves at a time, and whether the leaves that are known are enough;
        nothing, and that they are not, where they are not `worth` it.
        """
        rounds, cases, gap = len(near) // together, jnp.where(own < jnp.inf, own, 0), gap.astype(own.dtype)

        def goes_on(state: _Search) -> Bool[Array, ""]:
            return (state.tried < rounds) & (gap[state.tried * together] < jnp.max(state.far))

        def look(state: _Search) -> _Search:
            which = lax.dynamic_slice_in_dim(near, state.tried * together, together)
            others, case = jnp.moveaxis(self.used[which], 1, 0).reshape(len(own), -1), self.case[which].reshape(-1)
            far, place, last = least_with_kept(_squared(others, cases), state.far)
            kept = jnp.take_along_axis(state.case, jnp.maximum(place - len(case), 0), axis=0)
            case = jnp.where(place < len(case), case[jnp.minimum(place, len(case) - 1)], kept)
            return _Search(state.tried + 1, far, case, jnp.minimum(state.beyond, last))

        far = jnp.full((length, own.shape[1]), jnp.inf, own.dtype)
        beyond = jnp.full_like(far[0], jnp.inf, jnp.float32)
        begin = _Search(jnp.where(worth, 0, rounds), far, jnp.zeros_like(far, jnp.int32), beyond)
        found = lax.while_loop(goes_on, look, begin)
        return found, worth & ~(gap[found.tried * together] < jnp.max(found.far))

    def _from_all(self, own: Float[Array, "D b"], every: Float[Array, "D N"], length: int) -> _Found:
        """The nearest of some cases among all [D, N], in the order of leaves."""
        far = _squared(every, jnp.where(own < jnp.inf, own, 0))

        def chosen(place: Int[Array, "s b"]) -> Float[Array, "s b"]:
            return jnp.take_along_axis(far, place, axis=0)

        place, last = least(jnp.split(far, parts_for(self.case.size, length)), chosen, length)
        return chosen(place).T, self.case.reshape(-1)[place].T, last.astype(far.dtype)

    def _near(self, together: int) -> tuple[Int[Array, "L S"], Float[Array, "L T"]]:
        """Of each leaf those whose cases can be nearest to its own, the nearest first, a multiple of those that are
        looked through `together`; and a squared distance that no case in these or those that follow comes below, the
        last one for leaves that are not listed.
        """
        (own_low, own_high), (low, high) = _ends(self.own), _ends(self.used[:-1])
        count, inputs = own_low.shape
        few, length = inputs <= _FEW_INPUTS, _ROUNDS * together
        if not few:
            length = max(length, min(_MORE, _MOST_LISTED // count))
        length = min(length, count) // together * together
        # Leaves without cases, which make parts of one size, are infinitely far away.
        more = (0, -count % parts_for(count, length)), (0, 0)
        low, high = (jnp.pad(a, more, constant_values=end).T for a, end in ((low, jnp.inf), (high, -jnp.inf)))

        def of_block(block: tuple[Array, Array]) -> tuple[Int[Array, "b S"], Float[Array, "b T"]]:
            begin, end = block

            def term(d: int) -> Float[Array, "N b"]:
                between = jnp.maximum(low[d][:, None] - end[:, d][None], begin[:, d][None] - high[d][:, None])
                return jnp.square(jnp.maximum(between, 0))

            gaps = sum_over_inputs(term, inputs, jnp.zeros((low.shape[1], len(begin)), low.dtype))
            leaf, gap = _few_nearest(gaps, count, length) if few else _many_nearest(gaps, length)
            return jnp.minimum(leaf, count), _BELOW * gap

        return in_blocks(of_block, (own_low, own_high), _COLUMNS, "edge")

    def _are_worth_it(self, near: Int[Array, "L s"], gap: Float[Array, "L T"], length: int) -> Bool[Array, ""]:
        """Whether to look through leaves takes less time than through all cases, as some leaves tell: how far away the
        nearest of their cases are in those that are looked through first, and how many leaves are nearer.
        """
        count, inputs, _ = self.own.shape
        some = np.linspace(0, count - 1, _SAMPLE, dtype=np.int32)
        others = jnp.moveaxis(self.used[near[some]], 2, 1).reshape(len(some), inputs, -1)
        far = jax.vmap(_squared)(others, self.own[some, :, ::_EVERY]).astype(jnp.float32)
        # Behind a minimum, XLA for CPUs does not sort all: see `selection`.
        ends = -jnp.minimum(lax.top_k(-jnp.swapaxes(far, 1, 2), length)[0], jnp.finfo(far.dtype).max)[..., -1]
        end = jnp.max(ends, axis=1, where=far[:, 0] < jnp.inf, initial=0)
        together = near.shape[1]
        rounds = -(-jnp.sum(gap[some] < end[:, None], axis=1, dtype=jnp.float32) // together)
        unknown = jnp.where(gap[some, -1] < end, float(count), 0.0)
        return jnp.mean(_PRICE * rounds * together + unknown) < count


class _Search(NamedTuple):
    """What was found for the b cases of a leaf in leaves that were looked through.

    Attributes:
      tried: so many times some leaves, [].
      far: squared distances of the nearest, [M, b].
      case: which they are, [M, b].
      beyond: a squared distance that no other comes below, in single precision, [b].
    """

    tried: Int[Array, ""]
    far: Float[Array, "M b"]
    case: Int[Array, "M b"]
    beyond: Float[Array, " b"]


def _at_a_time(inputs: int, length: int) -> int:
    """How many leaves are looked through at a time for lists of so many cases: somewhat more than come near to those of
    a leaf that is a cube, where as many cases as are listed fill a ball about each.
    """
    ball = math.pi ** (inputs / 2) / math.gamma(inputs / 2 + 1)
    side = 2 * (_CASES ** (1 / inputs) + (length / ball) ** (1 / inputs))
    some = _FEWEST_AT_A_TIME
    return min(_MOST_AT_A_TIME, some * math.ceil(1.25 * side**inputs / (_CASES * some)))


def _few_nearest(gaps: Float[Array, "N b"], count: int, length: int) -> tuple[Int[Array, "b S"], Float[Array, "b T"]]:
    """Which are the nearest of N leaves to each of b, and a squared distance that none of those from there on comes
    below.
    """

    def chosen(leaf: Int[Array, "s b"]) -> Float[Array, "s b"]:
        return jnp.take_along_axis(gaps, leaf, axis=0)

    leaf, last = least(jnp.split(gaps, parts_for(count, length)), chosen, length)
    listed = jnp.concatenate([chosen(leaf).astype(jnp.float32), last[None]])
    return leaf.T, lax.cummin(listed, axis=0, reverse=True).T


def _many_nearest(gaps: Float[Array, "N b"], length: int) -> tuple[Int[Array, "b S"], Float[Array, "b T"]]:
    """The same by sorting all: whole numbers of distances in single precision and of leaves."""
    bits = lax.bitcast_convert_type(gaps.T.astype(jnp.float32), jnp.int32).astype(jnp.uint64) << 32
    packed = jnp.sort(bits | jnp.arange(len(gaps), dtype=jnp.uint64)[None], axis=1, stable=False)
    gap = lax.bitcast_convert_type((packed >> 32).astype(jnp.int32), jnp.float32)
    gap = jnp.pad(gap, ((0, 0), (0, 1)), constant_values=jnp.inf)
    return packed[:, :length].astype(jnp.int32), gap[:, : length + 1]


def _squared(others: Float[Array, "D m"], cases: Float[Array, "D b"]) -> Float[Array, "m b"]:
    """Squared distances of cases."""
    nothing = jnp.zeros((others.shape[1], cases.shape[1]), cases.dtype)
    return sum_over_inputs(lambda d: jnp.square(others[d][:, None] - cases[d][None]), len(cases), nothing)


def _order(x: Float[Array, "N D"]) -> Int[Array, " N"]:
    """The cases [N, D], a multiple of those of a leaf, in the order of leaves; those that are infinite come last.

    Groups of leaves are halved along the input in which they are longest, until they are leaves. Sorted are whole
    numbers of a group, the first bits of the input and a place: XLA takes a sixth of the time for them that pairs take.
    """
    count, total = len(x) // _CASES, len(x)
    halvings = np.arange((count - 1).bit_length())[:, None]
    groups = (np.arange(count) << halvings) // count
    place_bits = (total - 1).bit_length()
    kept = min(32, 64 - place_bits - (count - 1).bit_length())

    def halve(order: Int[Array, " N"], group: Int[Array, " L"]) -> tuple[Int[Array, " N"], None]:
        leaves = jnp.moveaxis(x[order].reshape(count, _CASES, -1), 2, 1)
        low, high = _ends(leaves)
        low = jnp.full_like(low, jnp.inf).at[group].min(low)
        high = jnp.full_like(high, -jnp.inf).at[group].max(high)
        longest = jnp.argmax(high - low, axis=1)[group]
        along = jnp.take_along_axis(leaves, longest[:, None, None], axis=1)[:, 0].astype(jnp.float32)
        bits = lax.bitcast_convert_type(along, jnp.int32)
        # Those of negative numbers count down: they are turned round, and all are moved above 0.
        bits = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(jnp.int64) + (1 << 31)
        key = (group.astype(jnp.uint64)[:, None] << 32) | bits.astype(jnp.uint64)
        place = jnp.arange(total, dtype=jnp.uint64).reshape(count, -1)
        packed = jnp.sort((((key >> (32 - kept)) << place_bits) | place).reshape(-1), stable=False)
        return order[(packed & ((1 << place_bits) - 1)).astype(jnp.int32)], None

    return lax.scan(halve, jnp.arange(total, dtype=jnp.int32), jnp.asarray(groups, jnp.int32))[0]


def _ends(leaves: Float[Array, "L D m"]) -> tuple[Float[Array, "L D"], Float[Array, "L D"]]:
    """The least and the largest of the cases in each leaf, without infinite ones."""
    return jnp.min(leaves, axis=2), jnp.max(jnp.where(leaves < jnp.inf, leaves, -jnp.inf), axis=2)
