"""Learners in normalised units, found from the training cases only."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree, Shaped

from jaxgen.learn.batched import in_any_row, in_turn
from jaxgen.learn.scale import binary_unit
from jaxgen.learn.wrap.wrapper import Entered, Sharing
from jaxgen.types import Data, Freedom, Key, Learner, Plan, RowFills, RowUnits
from jaxgen.types.numbers import require_one_of, shown

_TARGETS = ("by task", "normalised", "unchanged")


class Standard(NamedTuple):
    """Parameters of a learner and the units it works in: centre and scale of the inputs [D] and the targets [K]."""

    base: PyTree
    x_centre: Float[Array, "*S D"]
    x_scale: Float[Array, "*S D"]
    y_centre: Float[Array, "*S K"]
    y_scale: Float[Array, "*S K"]


@dataclass(frozen=True, repr=False)
class Normalised(Sharing):
    """A learner whose inputs and targets are centred and scaled, by the training cases only; its predictions are in
    the target's units.

    A column without spread is centred and not scaled.

    Attributes:
      base: the learner.
      how: "delve": minus the median, divided by the sum of absolute deviations from it over (n - 1), as DELVE does;
        "standard": minus the mean, divided by the standard deviation with divisor n; "none".
      targets: "normalised"; "unchanged"; or "by task": unchanged if the learner inside asks for zeros and ones, or the
        data that `assess` has are a classification, so that probabilities stay probabilities, else normalised.
    """

    how: str = "delve"
    targets: str = "by task"

    @property
    def predicts(self) -> str:
        """What the predictions are: as of the learner inside, but numbers where it saw normalised zeros and ones."""
        inside = self.inside.predicts
        return "numbers" if self._targets_change and inside in ("probabilities", "scores") else inside

    @property
    def freedom(self) -> Freedom:
        """All changes of unit that are undone by normalising, and what the learner inside does not mind."""
        inside = self.inside.freedom
        if self.how == "none":
            return inside
        change = self._targets_change
        return Freedom(True, True, change or inside.y_shift, change or inside.y_scale)

    @property
    def shares_rows(self) -> bool:
        """Whether the learner inside shares rows that each have units of their own."""
        return self.inside.shares_rows_in_units

    @property
    def shares_rows_filled(self) -> bool:
        """As the learner inside."""
        return self.inside.shares_rows_filled and self.inside.shares_rows_in_units

    def for_data(self, data: Data) -> Learner:
        """The same with targets that stay unchanged if the data are a classification and `targets` goes by the task."""
        inside = self.inside.for_data(data)
        unchanged = self.targets == "by task" and data.task == "classification" and not inside.classifies
        return replace(self, base=inside, targets="unchanged" if unchanged else self.targets)

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Standard:
        """The learner inside, trained on the cases [n, D], [n, K] in normalised units."""
        units = self._units(x, y, w)
        return self.outside(
            units, self.inside.fit_in_units(key, x, self.targets_inside(units, y), w, units.x_centre, units.x_scale)
        )

    def prepared(
        self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], rows: int
    ) -> "Normalised":
        """With the learner inside as it is prepared for units of about those of all cases [n, D], [n, K] with their
        mean weights [n]: standard deviations are about as large as the scales of "delve", and need no sorting.
        """
        way = _unchanged if self.how == "none" else _by_mean
        scale = self._kept(*way(jnp.concatenate([x, y], axis=1), w), x.shape[1]).x_scale
        return replace(self, base=self.inside.prepared_in_units(x, y, w, rows, scale))

    def fit_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[Standard, Bool[Array, " R"]] | tuple[Standard, Bool[Array, " R"], Float[Array, "R n K"]]:
        """The fits of R weightings of the same cases at once, each in its own units, and which of them to trust; with
        predictions, if the learner inside gives some, [R, n, K].
        """
        centres, scales = _OF_ROWS[self.how](jnp.concatenate([x, y], axis=1), w)
        units = jax.vmap(lambda centre, scale: self._kept(centre, scale, x.shape[1]))(centres, scales)
        found: Any = self.inside.fit_rows_in_units(keys, x, y, w, RowUnits(*units[1:]), left_out)
        fits, *rest = found
        return units._replace(base=fits), *rest

    def fit_rows_filled(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        fills: RowFills,
        units: RowUnits | None,
        left_out: int | None,
    ) -> tuple[Standard, Bool[Array, " R"]] | tuple[Standard, Bool[Array, " R"], Float[Array, "R n K"]]:
        """`fit_rows` of rows [R, n] that have numbers of their own for missing inputs; each finds its units with them.

        Raises:
          TypeError: the rows have units already.
        """
        if units is not None:
            raise TypeError(f"expected rows in the units of the data for {self}, got others; normalise once")
        own = in_turn(lambda more, w: self._units(fills.filled(x, more), y, w))(fills.more, w)
        found: Any = self.inside.fit_rows_filled(keys, x, y, w, fills, RowUnits(*own[1:]), left_out)
        fits, *rest = found
        return own._replace(base=fits), *rest

    def enter(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Entered:
        """The cases [n, D], [n, K] in normalised units."""
        units = self._units(x, y, w)
        return Entered(units, key, self.inputs_inside(units, x), self.targets_inside(units, y), w)

    def inputs_inside(self, params: Standard, x: Float[Array, "m D"]) -> Float[Array, "m D"]:
        """Inputs [m, D] in normalised units."""
        return (x - params.x_centre[None]) / params.x_scale[None]

    def targets_inside(self, params: Standard, y: Float[Array, "m K"]) -> Float[Array, "m K"]:
        """Targets [m, K] in normalised units."""
        return (y - params.y_centre[None]) / params.y_scale[None]

    def predictions_outside(self, params: Standard, predictions: Float[Array, "m K"]) -> Float[Array, "m K"]:
        """Predictions [m, K] in the units of y."""
        return predictions * params.y_scale[None] + params.y_centre[None]

    def deviations_outside(self, params: Standard, deviations: Float[Array, "S m K"]) -> Float[Array, "S m K"]:
        """Standard deviations [S, m, K] in the units of y."""
        return deviations * params.y_scale[None, None]

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses an unknown way to normalise, and what the learner inside refuses.

        Raises:
          ValueError: `how` or `targets` is unknown, zeros and ones are to be normalised, or as the learner inside says.
        """
        require_one_of("how", self.how, tuple(_HOW))
        require_one_of("targets", self.targets, _TARGETS)
        if self.targets == "normalised" and self.inside.classifies:
            raise ValueError(
                f"expected targets='unchanged' or 'by task' for {shown(self.base)}, which learns from zeros and ones, "
                "got 'normalised'; leave targets out"
            )
        super().check(data, plan)

    @property
    def _targets_change(self) -> bool:
        return self.targets == "normalised" or (self.targets == "by task" and not self.inside.classifies)

    def _units(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Standard:
        return self._kept(*_HOW[self.how](jnp.concatenate([x, y], axis=1), w), x.shape[1])

    def _kept(self, centre: Float[Array, " C"], scale: Float[Array, " C"], inputs: int) -> Standard:
        """Units of inputs and targets, but 0 and 1 for those that must come as they are in the data."""
        raw = [i in self.raw_inputs for i in range(inputs)] + [not self._targets_change] * (len(centre) - inputs)
        centre, scale = jnp.where(jnp.asarray(raw), 0, centre), jnp.where(jnp.asarray(raw), 1, scale)
        return Standard(None, centre[:inputs], scale[:inputs], centre[inputs:], scale[inputs:])


Units = tuple[Float[Array, " D"], Float[Array, " D"]]


def _by_median(x: Float[Array, "n D"], w: Float[Array, " n"]) -> Units:
    """Median (mean of the middle two) and sum of absolute deviations over (n - 1), of cases repeated by their
    weights.
    """
    # The order does not look at the weights: absent cases add 0 to the cumulated weights wherever they stand, and NaN
    # is sorted to the end. So all rows that share their cases share one sorting.
    order = jnp.argsort(x, axis=0)
    ranked, below = jnp.take_along_axis(x, order, axis=0), jnp.cumsum(w[order], axis=0)
    total = jnp.sum(w)

    def at(place: Float[Array, ""]) -> Float[Array, "1 D"]:
        """The value at a place, from 0, in the sorted list of repeated cases."""
        return jnp.take_along_axis(ranked, jnp.argmax(below > place, axis=0)[None], axis=0)

    centre = (at(jnp.floor((total - 1) / 2)) + at(jnp.floor(total / 2)))[0] / 2
    deviations = jnp.sum(jnp.where((w > 0)[:, None], jnp.abs(x - centre[None]), 0) * w[:, None], axis=0)
    scale = deviations / jnp.maximum(total - 1, 1)
    return centre, jnp.where(scale > 0, scale, 1)


class _Medians(NamedTuple):
    """Going through sorted cases: the weight of those before [D, R], and the values at the middle two places, [D, R]
    each, if they were passed.
    """

    before: Float[Array, "D R"]
    low: Float[Array, "D R"]
    high: Float[Array, "D R"]


def _by_median_of_rows(x: Float[Array, "n D"], w: Float[Array, "R n"]) -> tuple[Array, Array]:
    """`_by_median` of R weightings of the same cases at once, [R, D] each: bit for bit the same medians.

    The cases are gone through one by one, with the rows on the last axis: five times as fast on a CPU as cumulated
    weights [R, n, D], which do not stay in its cache.
    """
    order = jnp.argsort(x, axis=0)
    rows = w.T
    total = jnp.sum(w, axis=1)
    low_place, high_place = jnp.floor((total - 1) / 2), jnp.floor(total / 2)
    none = jnp.zeros((x.shape[1], len(w)), x.dtype)

    def visit(state: _Medians, case: tuple[Array, Array]) -> tuple[_Medians, None]:
        """The value at a place is that of the last case whose cases before it weigh no more than the place."""
        value, number = case
        low = jnp.where(state.before <= low_place[None], value[:, None], state.low)
        high = jnp.where(state.before <= high_place[None], value[:, None], state.high)
        return _Medians(state.before + rows[number], low, high), None

    end, _ = lax.scan(visit, _Medians(none, none, none), (jnp.take_along_axis(x, order, axis=0), order))
    centre = (end.low + end.high) / 2
    (deviations,) = _summed((jnp.abs,), x, rows, centre)
    scale = deviations / jnp.maximum(total - 1, 1)[None]
    return centre.T, jnp.where(scale > 0, scale, 1).T


def _summed(
    of: tuple[Callable[[Array], Array], ...],
    x: Float[Array, "n D"],
    rows: Float[Array, "n R"],
    centre: Float[Array, "D R"],
) -> tuple[Float[Array, "D R"], ...]:
    """The weighted sums over the cases of functions of their deviations from a centre."""

    def add(state: tuple[Array, ...], case: tuple[Array, Array]) -> tuple[tuple[Array, ...], None]:
        value, weight = case
        deviation = value[:, None] - centre
        return tuple(total + weight[None] * each(deviation) for total, each in zip(state, of, strict=True)), None

    return lax.scan(add, (jnp.zeros_like(centre),) * len(of), (x, rows))[0]


def _by_mean(x: Float[Array, "n D"], w: Float[Array, " n"]) -> Units:
    """Mean and standard deviation with divisor n."""
    used, share = (w > 0)[:, None], (w / jnp.sum(w))[:, None]
    centre = jnp.sum(jnp.where(used, x, 0) * share, axis=0)
    deviations = jnp.where(used, x - centre[None], 0)
    unit = binary_unit(jnp.max(jnp.abs(deviations), axis=0))
    spread = jnp.sqrt(jnp.sum(jnp.square(deviations / unit[None]) * share, axis=0)) * unit
    return centre, _unless_constant(spread, centre)


def _by_mean_of_rows(x: Float[Array, "n D"], w: Float[Array, "R n"]) -> tuple[Array, Array]:
    """`_by_mean` of R weightings of the same cases at once, [R, D] each: the same sums in another order.

    Products of matrices with deviations from the mean of all cases, and with their squares, are quick. They are as
    exact, but for a few roundings, unless a row's mean is far from that one in its own standard deviations. If some
    are, all sums are those of deviations from the means of the rows. What rounding leaves of these is taken off both,
    or a constant would have a spread.
    """
    unit = binary_unit(jnp.max(x, axis=0) - jnp.min(x, axis=0))
    rows, middle = w.T / jnp.sum(w, axis=1)[None], jnp.mean(x, axis=0)
    apart = (x - middle[None]) / unit[None]
    first, second = (jnp.matmul(a.T, rows, precision="highest") for a in (apart, jnp.square(apart)))
    square = second - jnp.square(first)
    alike = jnp.max(x, axis=0) == jnp.min(x, axis=0)

    def carefully() -> tuple[Array, Array]:
        centre = jnp.matmul(x.T, rows, precision="highest")
        rest, square = _summed((jnp.asarray, jnp.square), x / unit[None], rows, centre / unit[:, None])
        return centre + rest * unit[:, None], jnp.maximum(square - jnp.square(rest), 0)

    def quickly() -> tuple[Array, Array]:
        return middle[:, None] + first * unit[:, None], jnp.where(alike[:, None], 0, square)

    far = ~jnp.all(alike[:, None] | (jnp.square(first) <= square))
    centre, square = lax.cond(in_any_row(far), carefully, quickly)
    return centre.T, _unless_constant(jnp.sqrt(square) * unit[:, None], centre).T


def _unless_constant(spread: Float[Array, "*N D"], centre: Float[Array, "*N D"]) -> Float[Array, "*N D"]:
    """Standard deviations, 1 where they are nothing but the rounding of the mean."""
    return jnp.where(spread > 4 * float(jnp.finfo(spread.dtype).eps) * jnp.abs(centre), spread, 1)


def _unchanged(x: Float[Array, "n D"], w: Float[Array, " n"]) -> Units:
    return jnp.zeros_like(x, shape=x.shape[1:]), jnp.ones_like(x, shape=x.shape[1:])


_HOW: dict[str, Callable[[Float[Array, "n D"], Float[Array, " n"]], Units]] = {
    "delve": _by_median,
    "standard": _by_mean,
    "none": _unchanged,
}

_OF_ROWS: dict[str, Callable[[Float[Array, "n D"], Float[Array, "R n"]], tuple[Array, Array]]] = {
    "delve": _by_median_of_rows,
    "standard": _by_mean_of_rows,
    "none": jax.vmap(_unchanged, in_axes=(None, 0)),
}
