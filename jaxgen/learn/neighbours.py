"""Nearest neighbours, their number chosen by leave-one-out."""

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Shaped
from scipy import special

from jaxgen.learn.batched import in_any_row, where_rare
from jaxgen.learn.counting import (
    blur_of,
    counts_of_nearest,
    kth,
    kth_smallest,
    means_of_listed,
    means_up_to,
)
from jaxgen.learn.distances import AT_A_TIME, in_blocks, sizes_of, squared_distances, unit_of
from jaxgen.learn.given_number import GivenNumber
from jaxgen.learn.nearest import MANY_INPUTS, LargestUnits, again_where, nearest_by_products, nearest_cases
from jaxgen.learn.products import plain_units
from jaxgen.learn.ranked import Ranked, first_alike, in_order
from jaxgen.types import Data, Freedom, Key, Learner, Plan, RowFills, RowUnits
from jaxgen.types.devices import on_cpu
from jaxgen.types.numbers import require

_MOST_LISTED = 256 * 100_000
"""Up to so many neighbours of all cases together, rows share lists, of up to four times as many: a gigabyte."""

_MOST_SORTED = 1 << 26
"""Up to so many distances are sorted where lists for a number up to one end among equal distances: half a gigabyte."""

_MUCH_SMALLER = 2.0**16
"""Where all cases of a row are smaller than another by this factor, their distances need a unit of their own."""

_SHARES = (0.1, 0.2, 0.45, 0.6, 0.75, 0.8, 0.875, 0.9, 0.95)
"""Lists are as long as they must be where rows train on these shares of all cases."""

_TOO_SHORT = 1e-7
"""So seldom a list has less than k cases of a row whose training cases are drawn independently."""

_ABOUT_HALF = 0.45
"""The share that lists are made for where it is not known."""

_FOLLOWING = 3
"""Cases that lists of a row of its own have after its k: the first shows that those as far away as the k-th are all
there.
"""

_MANY_CASES = 4096
"""From so many cases on, a single row has lists, too."""

_FEW_CASES = 8
"""Up to so many times as many cases as shared lists would have, of many inputs, rows in units of their own have lists
of their own: to look for them takes a product of matrices, to put shared lists in the order of each row differences of
every input.
"""

_BY_PRODUCTS, _LONG = 64, 45
"""From so many inputs on, products alone make lists that have more than one in so many of all cases: differences of all
inputs from those listed would take longer.
"""

_LISTED_MORE, _STEADY = 3, 2000
"""By up to this factor lists of many inputs are longer where units of rows differ, since distances are the more alike
the more inputs there are; but not of so many cases, of which units differ little.
"""

_LONGER = 4
"""By this factor lists are longer of cases whose lists are too short where units of rows differ, as they are where many
cases are equally far away.
"""

_ROW_BY_ROW = 8
"""If more than one list of many inputs in so many is too short there, every row has lists of its own."""


class NeighboursFit(NamedTuple):
    """The training cases [n, D], [n, K] with their weights [n], how many neighbours are asked [], and the mean
    leave-one-out loss for that number [].
    """

    x: Float[Array, "*S n D"]
    y: Float[Array, "*S n K"]
    w: Float[Array, "*S n"]
    k: Int[Array, "*S"]
    error: Float[Array, "*S"]


@dataclass(frozen=True, repr=False)
class Neighbours(Learner):
    """The mean target of the k nearest training cases, in Euclidean distance, with k by leave-one-out (DELVE's
    knn-cv-1).

    Of all k from 1 to n - 1 the one with the least mean squared leave-one-out loss is taken, the smallest of equals. A
    case of weight 2 counts as two neighbours. Where several cases are equally far away and not all of them are among
    the k, each has an equal share in the places left, so the order of the cases does not matter. So they are if their
    distances differ by some 1e-12 of the inputs: 13.3 and 13.1 are equally far away from 13.2, though not in floating
    point. Inputs should be in comparable units: `Normalised(Neighbours())` is knn-cv-1. Of a classification the
    predictions are the shares of the classes. Choosing k sorts all cases by their distance from each, once for all rows
    that share their units, which needs memory for some n^2 numbers; losses that are equal but for rounding are equal.
    With `at_most` only the nearest of each are looked for, which takes not much longer than a given k and little
    memory.

    Attributes:
      k: neighbours; None chooses by leave-one-out.
      at_most: the largest number that is tried where k is chosen; None tries all.
    """

    k: int | None = None
    at_most: int | None = None

    predicts: ClassVar[str] = "means"
    freedom: ClassVar[Freedom] = Freedom(x_shift=True, y_shift=True)
    """Not the units: all inputs share one distance, and `diagnose` tells an error in the squared unit of y."""
    shares_rows: ClassVar[bool] = True
    shares_rows_in_units: ClassVar[bool] = True
    shares_rows_filled: ClassVar[bool] = True
    counts_left_out: ClassVar[bool] = False
    precise: ClassVar[bool] = True

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> NeighboursFit:
        """The training cases and the number of neighbours; `key` is not used."""
        used = (w > 0)[:, None]
        x, y = jnp.where(used, x, 0), jnp.where(used, y, 0)
        if self.k is not None:
            return NeighboursFit(x, y, w, jnp.int32(self.k), jnp.full((), jnp.nan, x.dtype))
        unit = unit_of(x)
        number, error, enough = self._ranked(x, unit, w).best_numbers(y, w[None], self.at_most)
        if not self._sorts_all(len(x)):

            def of_all() -> tuple[Array, Array]:
                return Ranked.of(x, unit).best_numbers(y, w[None], self.at_most)[:2]

            number, error = lax.cond(in_any_row(~enough[0]), of_all, lambda: (number, error))
        return NeighboursFit(x, y, w, number[0], error[0])

    def _sorts_all(self, n: int) -> bool:
        """Whether all of n cases are sorted by their distance from each: to look for the nearest takes longer where
        these are a quarter of them.
        """
        return self.k is None and (self.at_most is None or 4 * self._listed >= n)

    def _ranked(self, x: Float[Array, "n D"], unit: Float[Array, ""], w: Float[Array, " n"] | None = None) -> Ranked:
        """Of each case all in their order, or as many of the nearest as are looked for, among those with weight."""
        n, inputs = x.shape
        if self._sorts_all(n):
            return Ranked.of(x, unit)

        def exactly() -> Ranked:
            far, case, _ = nearest_cases(x, unit, self._listed, w)
            return Ranked(case, first_alike(far, blur_of(far, inputs, sizes_of(x, unit)[:, None])))

        if self.k is None or w is not None or inputs < _BY_PRODUCTS or not self._listed < n < _LONG * self._listed:
            return exactly()
        *found, sure = nearest_by_products(x, unit, self._listed, jnp.ones_like(x[:, 0]), self.k, shared=True)
        known = Ranked(*found)
        return where_rare(~sure, exactly, known)

    @property
    def worth_sharing(self) -> tuple[int, float]:
        """Two rows, as long as the k nearest cases that a row trains on are among the few nearest of all, or sorting
        all cases takes no longer than those of each row.
        """
        return 2, min(_SHARES)

    def shares_rows_of(self, cases: int, trained: int, inputs: int) -> bool:
        """The nearest cases of each case are looked for once for all rows, unless lists of a given number of them would
        take much memory; where k is chosen of all numbers, all cases are sorted once by their distance from each.
        """
        return self.k is None or int(self.k) * cases <= _MOST_LISTED

    def shares_one_row_of(self, cases: int, inputs: int) -> bool:
        """Of many cases; of few, lists take longer to compile than they save."""
        return cases >= _MANY_CASES

    def for_rows(self, share: float) -> "Neighbours":
        """With lists as long as rows need that train on at least this share of the cases."""
        enough = max((level for level in _SHARES if level <= share), default=min(_SHARES))
        return self if self.k is None and self.at_most is None else _Listing(self.k, self.at_most, enough)

    @property
    def _listed(self) -> int:
        """How many cases are listed for each."""
        return _length(self.k or self.at_most or 1, _ABOUT_HALF)

    def fit_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[NeighboursFit, Bool[Array, " R"], Float[Array, "R n K"]]:
        """Predictions of the cases themselves for R weightings of them, and which rows to trust.

        Of every case a few more than k of the nearest are listed once. A list that has less than k cases of some row
        may end among cases that are equally far away: all of these are looked for then. If there are still less, the
        row is not to be trusted. Nor is it if its own cases are so much smaller than those that it leaves out that
        distances vanish. Where k is chosen of all numbers, lists are of all cases; so they are where it is chosen of
        numbers up to one and shorter lists have not enough, unless they would need much memory.
        """
        return self._of_rows(x, y, w)

    def _of_rows(
        self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, "R n"]
    ) -> tuple[NeighboursFit, Bool[Array, " R"], Float[Array, "R n K"]]:
        """See `fit_rows`."""
        (n, inputs), unit = x.shape, unit_of(x)
        ranked = self._ranked(x, unit, w[0] if len(w) == 1 else None)
        fit, enough, predictions = self._from_lists(ranked, y, w)

        def with_last(at: Int[Array, " p"]) -> tuple[Float[Array, "p R K"], Bool[Array, "p R"]]:
            """Of some cases, with all others that are as far away as the last of the list."""
            edge = jnp.sum(jnp.square((x[at] - x[ranked.case[at, -1]]) / unit), axis=1)
            far = squared_distances(x, jnp.ones_like(x[:, 0]), x[at], unit)
            blur = blur_of(edge, inputs, sizes_of(x[at], unit))
            return means_up_to(edge, far, y, w, fit.k.astype(y.dtype), blur)

        if self.k is None and not self._sorts_all(n) and n * n <= _MOST_SORTED:

            def with_all() -> tuple[NeighboursFit, Bool[Array, "n R"], Float[Array, "n R K"]]:
                return self._from_lists(Ranked.of(x, unit), y, w)

            known = fit, enough, predictions
            fit, enough, predictions = where_rare(~jnp.all(enough), with_all, known)
        elif self.k is not None and ranked.case.shape[1] < n:
            found = predictions, enough
            again, valid = again_where(~jnp.all(enough, axis=1), found, with_last, AT_A_TIME // n)
            predictions, enough = jnp.where(enough[..., None], predictions, again), enough | valid
        largest = jnp.max(jnp.abs(x), axis=1)
        sizes = jax.vmap(lambda row: unit_of(jnp.where(row > 0, largest, 0)))(w)
        trusted = jnp.all(enough, axis=0) & (sizes * _MUCH_SMALLER >= unit)
        return fit, trusted, jnp.moveaxis(predictions, 1, 0)

    def _from_lists(
        self, ranked: Ranked, y: Float[Array, "n K"], w: Float[Array, "R n"]
    ) -> tuple[NeighboursFit, Bool[Array, "m R"], Float[Array, "m R K"]]:
        """Predictions of the first m cases, of which there are lists, and whether these are long enough."""
        rows, weights = len(w), w.T
        if self.k is None:
            number, error, tried = ranked.best_numbers(y, w, self.at_most)
        else:
            number, error = jnp.full(rows, self.k, jnp.int32), jnp.full(rows, jnp.nan, y.dtype)
            tried = jnp.ones(rows, bool)
        k, most = number.astype(y.dtype), AT_A_TIME // (y.shape[1] * rows)

        def means(block: tuple[Array, Array]) -> tuple[Float[Array, "b K R"], Bool[Array, "b R"]]:
            first, case = block
            return means_of_listed(first, case, y, weights, k)

        predictions, enough = in_blocks(means, (ranked.first, ranked.case), most, "edge")
        return _without_cases(number, error), tried[None] & enough, jnp.moveaxis(predictions, 2, 1)

    def fit_rows_in_units(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits,
        left_out: int | None,
    ) -> tuple[NeighboursFit, Bool[Array, " R"], Float[Array, "R n K"]]:
        """`fit_rows` of cases [n, D], [n, K] and weights [R, n], where every row divides the inputs by its own scales
        [R, D], as `Normalised` does; predictions [R, n, K] are means of targets in any units.

        The lists are made in the largest scale of every input, see `LargestUnits`. A row is to be trusted if its k-th
        neighbours are nearer than all cases that are not listed. Where k is chosen of all numbers, every row has lists
        of its own.
        """
        return self._in_units(x, y, w, units, None)

    def fit_rows_filled(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        fills: RowFills,
        units: RowUnits | None,
        left_out: int | None,
    ) -> tuple[NeighboursFit, Bool[Array, " R"], Float[Array, "R n K"]]:
        """The same of weights [R, n] in rows that put numbers of their own in the place of missing inputs [n, D]: lists
        are made with about the same numbers, and hold if k-th neighbours are nearer than others can have come.
        """
        return self._in_units(x, y, w, plain_units(x, y, w) if units is None else units, fills)

    def _in_units(
        self,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits,
        fills: RowFills | None,
    ) -> tuple[NeighboursFit, Bool[Array, " R"], Float[Array, "R n K"]]:
        """See `fit_rows_in_units` and `fit_rows_filled`."""
        if self.k is None:
            known = self._in_units_row_by_row if self._sorts_all(len(x)) else self._chosen_in_units
            return known(x, y, w, units, fills)
        if x.shape[1] >= MANY_INPUTS and len(x) <= _FEW_CASES * self._listed:
            return self._in_units_row_by_row(x, y, w, units, fills)
        (n, inputs), rows = x.shape, len(w)
        given = GivenNumber(LargestUnits.of(x, w, units.x_scale, fills), y, w, int(self.k))
        more = min(_LISTED_MORE, (inputs / MANY_INPUTS) ** 0.5) if inputs >= MANY_INPUTS and n < _STEADY else 1
        predictions, short = found = given.from_lists(min(n, int(more * (self._listed + int(self.k) // 2 + 1))))
        shorts, longer = jnp.sum(short.astype(x.dtype)), _LONGER * self._listed
        if inputs >= MANY_INPUTS:

            def row_by_row() -> tuple[Float[Array, "n R K"], Bool[Array, "n R"]]:
                _, trusted, predictions = self._in_units_row_by_row(x, y, w, units, fills)
                return jnp.moveaxis(predictions, 0, 1), jnp.broadcast_to(~trusted[None], short.shape)

            predictions, short = where_rare(shorts * _ROW_BY_ROW > short.size, row_by_row, found)
        elif longer <= n // 2:
            # Lists take less time than all cases for each row where most rows need them.
            cases = jnp.any(short, axis=1)
            wanted = shorts * n > jnp.sum(cases.astype(x.dtype)) * (n + longer * rows)
            most = AT_A_TIME // max(n, longer * rows)
            predictions, short = again_where(cases & wanted, found, lambda at: given.from_lists(longer, at), most)
        predictions = again_where(short, predictions, given.from_all, AT_A_TIME // n)
        fit = _without_cases(jnp.full(rows, self.k, jnp.int32), jnp.full(rows, jnp.nan, x.dtype))
        return fit, given.cases.alike_enough, jnp.moveaxis(predictions, 1, 0)

    def _chosen_in_units(
        self,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits,
        fills: RowFills | None,
    ) -> tuple[NeighboursFit, Bool[Array, " R"], Float[Array, "R n K"]]:
        """`fit_rows_in_units` where k is chosen of numbers up to one: every row puts the shared lists in the order of
        its own distances.
        """
        n, rows, at_most = len(x), len(w), int(self.at_most or 1)
        cases = LargestUnits.of(x, w, units.x_scale, fills)
        case, last = cases.lists(self._listed + at_most // 2)
        length = case.shape[1]
        wanted = jnp.minimum(jnp.sum(w, axis=1) - 1, at_most)

        def ordered(block: tuple[Array, Array, Array, Array]) -> tuple[Ranked, Bool[Array, "b R"]]:
            """The lists of some cases for each row, [b, R, M], and which of them are too short."""
            at, own, case, last = block
            apart, weight = (jnp.moveaxis(a, 0, 2) for a in cases.apart(at, case.T, w))
            known = jnp.sum(jnp.where(apart < last[..., None], weight, 0), axis=2)
            far, place = in_order(apart.reshape(-1, length))
            listed = jnp.take_along_axis(jnp.repeat(case, rows, axis=0), place, axis=1)
            blur = cases.blur_of(far.reshape(len(at), -1), at).reshape(far.shape)
            ranked = Ranked.up_to(jnp.broadcast_to(last, apart.shape[:2]).reshape(-1), far, blur, listed, n)
            return jax.tree.map(lambda a: a.reshape(apart.shape), ranked), known - jnp.minimum(own, 1) < wanted[None]

        def ordered_of_all(pair: Int[Array, " p"]) -> Ranked:
            """Of some cases, each in one row, lists of the nearest of all cases."""
            apart, _ = cases.apart_from_all(pair // rows, w, pair % rows)
            far, case = (a[:, :length] for a in in_order(apart.T))
            return Ranked.up_to(jnp.full(len(pair), jnp.inf), far, cases.blur_of(far, pair // rows), case, n)

        lists, short = in_blocks(ordered, (jnp.arange(n), w.T, case, last), AT_A_TIME // (length * rows))
        lists = again_where(short, lists, ordered_of_all, AT_A_TIME // n)

        def of_row(row: tuple[Ranked, Array, RowUnits]) -> tuple[NeighboursFit, Bool[Array, ""], Float[Array, "n K"]]:
            """The case n that lists end with has no weight."""
            ranked, weights, unit = row
            targets = jnp.pad((y - unit.y_centre[None]) / unit.y_scale[None], ((0, 1), (0, 0)))
            fit, enough, means = self._from_lists(ranked, targets, jnp.pad(weights[None], ((0, 0), (0, 1))))
            return _of_only_row((fit, jnp.all(enough, axis=0), jnp.moveaxis(means, 1, 0)), unit)

        each = jax.tree.map(lambda a: jnp.moveaxis(a, 1, 0), lists), w, units
        fit, enough, predictions = lax.map(of_row, each) if on_cpu() else jax.vmap(of_row)(each)
        return fit, enough & cases.alike_enough, predictions

    def _in_units_row_by_row(
        self,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits,
        fills: RowFills | None,
    ) -> tuple[NeighboursFit, Bool[Array, " R"], Float[Array, "R n K"]]:
        """`fit_rows_in_units` with lists of each row; on a CPU row by row, so that they stay in the cache."""

        def of_row(row: tuple[Array, RowUnits, Any]) -> tuple[NeighboursFit, Bool[Array, ""], Float[Array, "n K"]]:
            weights, unit, more = row
            inputs = x if fills is None else fills.filled(x, more)
            inputs = (inputs - unit.x_centre[None]) / unit.x_scale[None]
            targets = (y - unit.y_centre[None]) / unit.y_scale[None]
            return _of_only_row(own._of_rows(inputs, targets, weights[None]), unit)

        own = self if self.k is None else _OfRow(self.k)
        each = w, units, None if fills is None else fills.more
        return lax.map(of_row, each) if on_cpu() else jax.vmap(of_row)(each)

    def predict(self, params: NeighboursFit, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Mean targets of the neighbours, in the units of y."""
        unit = unit_of(params.x)
        return in_blocks(lambda block: _means_of_nearest(params, unit, block, self.k), x, AT_A_TIME // len(params.x))

    def diagnose(self, params: NeighboursFit) -> dict[str, Array]:
        """The number of neighbours and the leave-one-out loss, each []."""
        return {"neighbours": params.k, "leave_one_out": params.error}

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses a number of neighbours that there are not.

        Raises:
          ValueError: k is no whole number, below 1 or above the training cases of some row, or there is nothing to
            leave out.
        """
        if self.k is not None:
            require("the number k of neighbours", self.k, 1, advice="leave k out to have it chosen")
        if self.at_most is not None:
            advice = "leave it out to have all numbers tried"
            require("at_most, the largest number of neighbours that is tried,", self.at_most, 1, advice=advice)
            if self.k is not None:
                raise ValueError(
                    f"expected a number k of neighbours or at_most, the largest that is tried, got both, {self.k} and "
                    f"{self.at_most}; leave one of them out"
                )
        fewest, least = int(plan.train_sizes.min()), 2 if self.k is None else self.k
        if fewest < least:
            raise ValueError(
                f"expected at least {least} training cases for {self}, got {fewest} in {plan.scheme}; "
                "train on more cases"
            )


@dataclass(frozen=True, repr=False)
class _Listing(Neighbours):
    """The same where rows train on at least this share of the cases; the higher it is, the shorter lists are."""

    trained: float = _ABOUT_HALF

    @property
    def _listed(self) -> int:
        """See `Neighbours`."""
        return _length(self.k or self.at_most or 1, self.trained)

    def __repr__(self) -> str:
        return repr(Neighbours(self.k, self.at_most))


@dataclass(frozen=True, repr=False)
class _OfRow(Neighbours):
    """The same for a row that shares its lists with no other: they hold cases that it trains on, and one that follows
    them, more where cases are equally far away.
    """

    @property
    def _listed(self) -> int:
        """See `Neighbours`."""
        return (self.k or 1) + _FOLLOWING

    def _ranked(self, x: Float[Array, "n D"], unit: Float[Array, ""], w: Float[Array, " n"] | None = None) -> Ranked:
        """See `Neighbours`; of many inputs by products alone, where these can tell."""
        if w is None or x.shape[1] < MANY_INPUTS or self._listed >= len(x):
            return super()._ranked(x, unit, w)
        *found, sure = nearest_by_products(x, unit, self._listed, w, self.k or 1, shared=False)
        known = Ranked(*found)
        return where_rare(~sure, lambda: super(_OfRow, self)._ranked(x, unit, w), known)


@functools.cache
def _length(k: int, trained: float) -> int:
    """How many cases are listed for k neighbours where rows train on this share of the cases: of so many independent
    draws less than k are training cases as seldom as lists may be too short.
    """
    lengths = np.arange(k, int((2 * k + 32) / trained))
    return int(lengths[np.argmax(special.bdtr(k - 1, lengths, trained) <= _TOO_SHORT)])


def _of_only_row(
    found: tuple[NeighboursFit, Bool[Array, " 1"], Float[Array, "1 n K"]], unit: RowUnits
) -> tuple[NeighboursFit, Bool[Array, ""], Float[Array, "n K"]]:
    """What was found for one row, its predictions in the units that targets have without its own."""
    fit, trusted, predictions = jax.tree.map(lambda a: a[0], found)
    return fit, trusted, predictions * unit.y_scale[None] + unit.y_centre[None]


def _without_cases(number: Int[Array, " R"], error: Float[Array, " R"]) -> NeighboursFit:
    """Parameters of rows whose predictions are known already: how many neighbours are asked, the leave-one-out loss,
    and no cases.
    """
    unknown = jnp.full_like(error, jnp.nan)
    return NeighboursFit(unknown, unknown, unknown, number, error)


def _means_of_nearest(
    params: NeighboursFit, unit: Float[Array, ""], cases: Float[Array, "m D"], given: int | None
) -> Float[Array, "m K"]:
    """Mean targets of the k nearest training cases of each case; k may be given.

    XLA may compute distances again where they are used, with other roundings. So cases count as far away as the k-th if
    their sums of squares differ from its by no more than roundings can.
    """
    far = squared_distances(params.x, params.w, cases, unit)
    w, k = params.w[:, None], params.k.astype(far.dtype)
    edge = kth_smallest(far, w, k) if given is None else kth(far, w, int(given), jnp.max(params.w) <= 1)
    blur = blur_of(edge, cases.shape[1], sizes_of(cases, unit))
    return jnp.matmul(counts_of_nearest(far, w, edge, k, blur).T, params.y, precision="highest") / k
