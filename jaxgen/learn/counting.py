"""Which cases are the k nearest, and how much each of them counts where several are equally far away."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.batched import in_any_row
from jaxgen.learn.selection import least_in_order

_FEW = 20
"""Up to this many neighbours, the next one is looked for in a pass of its own; more are found by the bits of their
distances.
"""

_INSERTED = 64
"""Up to this many they are found by insertion where no case counts twice."""

_PLACES = 6
"""Places of the lists that are added at a time: each number of a sum is then read and written once for so many."""

_LAST_PLACES = {32: 4, 64: 1 << 13}
"""Up to so many units in the last place of numbers of so many bits, differences of an input are equal."""

_SHORT = 96
"""Of lists up to this length it takes less time to find how much all cases count, and not only those that do."""


def blur_of(far: Float[Array, "*S"], inputs: int, size: Float[Array, "*#S"]) -> Float[Array, "*S"]:
    """By how much squared distances [S...] may differ that are equal, from cases whose largest input is of some size,
    [S...]: well above what rounding brings to differences of numbers such as tenths, or of such that were normalised,
    and well below what is known of any that were measured; 2e-12 of the inputs in double precision.
    """
    number = jnp.finfo(far.dtype)
    share = 2 * inputs**0.5 * _LAST_PLACES[number.bits] * float(number.eps)
    blur = share * (size * jnp.sqrt(far) + far)
    return jnp.where(far < jnp.inf, blur, 0)


def counts_of_nearest(
    far: Float[Array, "m *S"],
    w: Float[Array, "m *#S"],
    edge: Float[Array, "*S"],
    k: Float[Array, ""],
    blur: Float[Array, "*S"],
) -> Float[Array, "m *S"]:
    """How often each of m cases [m, S...] counts among the k nearest: those as far away as the k-th [S...], but for a
    blur, have equal shares in the places that nearer ones leave.
    """
    nearer = far < (edge - blur)[None]
    inside, at_edge = jnp.where(nearer, w, 0), jnp.where(~nearer & (far <= (edge + blur)[None]), w, 0)
    left = k - jnp.sum(inside, axis=0)
    return inside + at_edge * (left / jnp.sum(at_edge, axis=0))[None]


def means_up_to(
    edge: Float[Array, " p"],
    far: Float[Array, "n p"],
    y: Float[Array, "n K"],
    w: Float[Array, "R n"],
    k: Float[Array, " R"],
    blur: Float[Array, " p"],
) -> tuple[Float[Array, "p R K"], Bool[Array, "p R"]]:
    """Mean targets of the k nearest of n cases, of which the last are at some distance, for R weightings at once; and
    whether they are. Distances are equal to that if they differ by no more than a blur.
    """
    nearer = far < (edge - blur)[None]
    both = jnp.concatenate([nearer, ~nearer & (far <= (edge + blur)[None])], axis=1).astype(y.dtype).T

    def sums(column: Float[Array, " n"]) -> tuple[Float[Array, "p R"], Float[Array, "p R"]]:
        inside, at_edge = jnp.split(jnp.matmul(both, w.T * column[:, None], precision="highest"), 2)
        return inside, at_edge

    inside, at_edge = sums(jnp.ones_like(y[:, 0]))
    sums_inside, sums_at_edge = lax.map(sums, y.T)
    share = (k[None] - inside) / at_edge
    means = (sums_inside + share[None] * sums_at_edge) / k[None, None]
    return jnp.moveaxis(means, 0, 2), (inside < k[None]) & (inside + at_edge >= k[None])


class _Listed(NamedTuple):
    """Going through lists: how many of their cases were looked at [], and for each case and row whether it has its k
    neighbours, the weights of those nearer than the last, the weights of those that are as far away as the last, and
    the place in the list where these begin; [n, R] each.
    """

    place: Int[Array, ""]
    done: Bool[Array, "n R"]
    inside: Float[Array, "n R"]
    at_edge: Float[Array, "n R"]
    edge: Int[Array, "n R"]


def means_of_listed(
    first: Int[Array, "b M"],
    case: Int[Array, "b M"],
    y: Float[Array, "n K"],
    w: Float[Array, "n R"],
    k: Float[Array, " R"],
) -> tuple[Float[Array, "b K R"], Bool[Array, "b R"]]:
    """Mean targets of the k nearest cases that each row trains on, and whether the lists show all of them; lists of M
    of n cases for each of b are in the order of their distances, and `first` is the first place of those as far away.

    The lists are gone through from their nearest cases on, for all rows at once, until every case has its k. Then it is
    known how much each of them counts, and targets are added up. Rows are the last axis, so that the weights of a case
    are neighbours in memory.
    """
    first, case = first.T, case.T
    length, cases = case.shape
    nothing = jnp.zeros((cases, w.shape[1]), w.dtype)

    def unfinished(state: _Listed) -> Bool[Array, ""]:
        return (state.place < length) & ~jnp.all(state.done)

    def next_case(state: _Listed) -> _Listed:
        """The next case of every list joins those that are as far away, which those nearer take in before."""
        m, begins = state.place, (first[state.place] == state.place)[:, None]
        done = state.done | (begins & (state.inside + state.at_edge >= k[None]))
        closed = begins & ~done
        return _Listed(
            m + 1,
            done,
            state.inside + jnp.where(closed, state.at_edge, 0),
            jnp.where(closed, 0, state.at_edge) + jnp.where(done, 0, w[case[m]]),
            jnp.where(closed, m, state.edge),
        )

    begin = _Listed(jnp.int32(0), nothing > 0, nothing, nothing, jnp.zeros_like(nothing, jnp.int32))
    end = lax.while_loop(unfinished, next_case, begin)
    share, edge = (k[None] - end.inside) / end.at_edge, end.edge
    fill = ((0, -length % _PLACES), (0, 0))
    first, case = jnp.pad(first, fill, constant_values=length), jnp.pad(case, fill)

    def counted(
        first: Int[Array, "p b"], case: Int[Array, "p b"]
    ) -> tuple[Float[Array, "p b R"], Float[Array, "p b K"]]:
        """How much the cases in some places count, and their targets."""
        first = first[..., None]
        return jnp.where(first < edge[None], 1, jnp.where(first == edge[None], share[None], 0)) * w[case], y[case]

    short = length <= _SHORT
    every = counted(first, case) if short else None

    def add(group: Int[Array, ""], sums: Float[Array, "b K R"]) -> Float[Array, "b K R"]:
        """Some places of the lists join the sums."""
        start = group * _PLACES
        some = every or counted(*(lax.dynamic_slice_in_dim(a, start, _PLACES) for a in (first, case)))
        for place in range(_PLACES):
            weights, targets = (a[start + place if short else place] for a in some)
            sums = sums + weights[:, None] * targets[..., None]
        return sums

    sums = lax.fori_loop(0, -(-end.place // _PLACES), add, jnp.zeros((cases, y.shape[1], w.shape[1]), w.dtype))
    return sums / k[None, None], end.done | ((length == len(w)) & (end.inside + end.at_edge >= k[None]))


def kth_smallest(values: Float[Array, "m *S"], w: Float[Array, "m *#S"], k: Float[Array, ""]) -> Float[Array, "*S"]:
    """The k-th smallest [S...] of m numbers from 0 [m, S...], each repeated by its weight.

    It is found bit by bit, the highest first: numbers of floating point from 0 are in the order of their bits read as
    whole numbers, and a bit is set unless k of the numbers lie below what that makes. So 31 passes over the numbers
    replace a sorting, which is slower and cannot be vectorised over cases.
    """
    bits = jnp.finfo(values.dtype).bits
    whole = jnp.uint32 if bits == 32 else jnp.uint64
    pattern = lax.bitcast_convert_type(values, whole)

    def next_bit(place, prefix):
        longer = prefix | (jnp.ones((), whole) << (bits - 2 - place).astype(whole))
        below = jnp.where(pattern < longer[None], w, 0)
        return jnp.where(jnp.sum(below, axis=0) < k, longer, prefix)

    nothing = jnp.zeros(values.shape[1:], whole)
    return lax.bitcast_convert_type(lax.fori_loop(0, bits - 1, next_bit, nothing), values.dtype)


def kth(values: Float[Array, "m *S"], w: Float[Array, "m *#S"], k: int, alone: Bool[Array, ""]) -> Float[Array, "*S"]:
    """The same [S...] for a known k; `alone` says whether no weight of any row is above 1, where those of weight 0 have
    infinite numbers: then the k least need only be put in order.
    """

    def counted() -> Float[Array, "*S"]:
        if k <= _FEW:
            return _kth_one_by_one(values, w, k)
        return kth_smallest(values, w, jnp.asarray(k, values.dtype))

    if k > _INSERTED:
        return counted()
    return lax.cond(in_any_row(~alone), counted, lambda: least_in_order(values, k)[-1])


def _kth_one_by_one(values: Float[Array, "m *S"], w: Float[Array, "m *#S"], k: int) -> Float[Array, "*S"]:
    """The same [S...] for a small k, in at most k passes, each of which goes to the next larger number."""

    def unfinished(state: tuple[Array, Array]) -> Bool[Array, ""]:
        return in_any_row(~jnp.all(state[1]))

    def next_larger(state: tuple[Array, Array]) -> tuple[Float[Array, "*S"], Bool[Array, "*S"]]:
        edge, enough = state
        further = jnp.min(jnp.where(values > edge[None], values, jnp.inf), axis=0)
        edge = jnp.where(enough, edge, further)
        within = jnp.sum(jnp.where(values <= edge[None], w, 0), axis=0)
        return edge, (within >= k) | (edge == jnp.inf)

    shape = values.shape[1:]
    return lax.while_loop(unfinished, next_larger, (jnp.full(shape, -1, values.dtype), jnp.zeros(shape, bool)))[0]
