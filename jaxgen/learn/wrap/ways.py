"""Ways to train several learners on the same cases: with shared work, in one program, or one after the other."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from jaxgen.learn.wrap.candidates import differences, setting_of, with_setting
from jaxgen.types import Key, Learner, Params, RowUnits, as_learner
from jaxgen.types.calls import rows_of


class Together(NamedTuple):
    """Parameters of one of several learners that run as one program, and the settings that make it this one, [P]."""

    fit: PyTree
    values: Float[Array, "*S P"]


class TrainedRows(NamedTuple):
    """What became of R weightings of the same cases.

    Attributes:
      fits: parameters, every array with a leading axis [R].
      trusted: which rows to trust, [R].
      known: predictions of the cases, if training made them, in the units of the data [R, n, K]; else None.
    """

    fits: PyTree
    trusted: Bool[Array, " R"]
    known: Float[Array, "R n K"] | None


class Rows(NamedTuple):
    """R weightings of the same cases to train on together; see `Learner.fit_rows` and `Learner.fit_rows_in_units`.

    Attributes:
      keys: one a row, [R].
      x, y: cases, [n, D] and [n, K].
      w: weights, [R, n].
      units: those of each row; None for those of the data.
      left_out: as for `Learner.fit_rows`.
    """

    keys: Shaped[Array, " R"]
    x: Float[Array, "n D"]
    y: Float[Array, "n K"]
    w: Float[Array, "R n"]
    units: RowUnits | None
    left_out: int | None

    def trained(self, learner: Learner) -> TrainedRows:
        """What becomes of them with a learner."""
        given = self.keys, self.x, self.y, self.w
        if self.units is None:
            found = learner.fit_rows(*given, self.left_out)
        else:
            found = learner.fit_rows_in_units(*given, self.units, self.left_out)
        return TrainedRows(*rows_of(learner, found, (len(self.w), len(self.x), self.y.shape[1])))

    def predictions(self, predict: Callable[[Any, Array], Array], found: TrainedRows) -> Float[Array, "R n K"]:
        """Of the cases, by a function of parameters and inputs [n, D], or as they are known, in the units of each
        row, [R, n, K].
        """
        units = self.units
        if units is None:
            return found.known if found.known is not None else jax.vmap(predict, (0, None))(found.fits, self.x)
        if found.known is not None:
            return (found.known - units.y_centre[:, None]) / units.y_scale[:, None]

        def of_row(fit: Any, centre: Float[Array, " D"], scale: Float[Array, " D"]) -> Float[Array, "n K"]:
            return predict(fit, (self.x - centre[None]) / scale[None])

        return jax.vmap(of_row)(found.fits, units.x_centre, units.x_scale)

    def in_units(self, y: Float[Array, "n K"]) -> Float[Array, "R n K"]:
        """Targets [n, K] in the units of each row, [R, n, K]."""
        if self.units is None:
            return jnp.broadcast_to(y[None], (len(self.w), *y.shape))
        return (y[None] - self.units.y_centre[:, None]) / self.units.y_scale[:, None]

    def out_of_units(self, y: Float[Array, "R n K"]) -> Float[Array, "R n K"]:
        """Predictions in the units of the data, of those in the units of each row, [R, n, K] both."""
        if self.units is None:
            return y
        return y * self.units.y_scale[:, None] + self.units.y_centre[:, None]


OfRows = Callable[[Learner, TrainedRows], Any]


class Read(NamedTuple):
    """A learner, its parameters, and the numbers of the learners to choose among that it may stand for."""

    learner: Learner
    fit: Params
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Shared:
    """Learners that differ in one setting, along which they share work; see `Learner.fit_along`.

    Attributes:
      learner: any of them.
      setting: the dotted name of the setting.
      values: of the learners.
    """

    learner: Learner
    setting: str
    values: tuple[Any, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """All of them."""
        return tuple(range(len(self.values)))

    def fits(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Params:
        """Fits to cases [n, D], [n, K], [n], every array with a leading axis of learners."""
        return self.learner.fit_along(self.setting, self.values, key, x, y, w)

    def over(self, function: Callable[[Learner, Params], Any], fits: Any) -> Any:
        """What a function of a learner and its parameters gives for all fits."""
        return jax.vmap(lambda fit: function(self.learner, fit))(fits)

    def fit(self, place: Int[Array, ""], key: Key, x: Any, y: Any, w: Any) -> Params:
        """The fit to cases [n, D], [n, K], [n] of the learner at a place."""
        return jax.tree.map(lambda a: a[place], self.fits(key, x, y, w))

    def read(self, fit: Any) -> list[Read]:
        """How to read what `fit` returned."""
        return [Read(self.learner, fit, self.numbers)]


@dataclass(frozen=True)
class Traced:
    """Learners that differ in numbers that a program takes as they come: one program is compiled for all.

    Attributes:
      learners: all of them.
      numbers: theirs among those to choose from.
      settings: dotted names of the P settings.
    """

    learners: tuple[Learner, ...]
    numbers: tuple[int, ...]
    settings: tuple[str, ...]

    def fits(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Together:
        """Fits to cases [n, D], [n, K], [n], every array with a leading axis of learners."""
        return jax.vmap(lambda values: Together(self._with(values).fit(key, x, y, w), values))(self._values(x))

    def over(self, function: Callable[[Learner, Params], Any], fits: Any) -> Any:
        """What a function of a learner and its parameters gives for all fits."""
        return jax.vmap(lambda one: function(self._with(one.values), one.fit))(fits)

    def fit(self, place: Int[Array, ""], key: Key, x: Any, y: Any, w: Any) -> Together:
        """The fit to cases [n, D], [n, K], [n] of the learner at a place."""
        values = self._values(x)[place]
        return Together(self._with(values).fit(key, x, y, w), values)

    def over_rows(self, function: OfRows, rows: Rows) -> Any:
        """What a function of a learner and of what became of R rows with it gives for all learners, [C, ...]."""

        def of_one(values: Float[Array, " P"]) -> Any:
            learner = self._with(values)
            return function(learner, rows.trained(learner))

        return lax.map(of_one, self._values(rows.x))

    def taken(self, place: Int[Array, " R"], fits: Params, rows: Rows) -> Together:
        """Of fits of all learners to rows, [C, R, ...], that of the learner at a place for each row, [R]."""
        return Together(taken(place, fits), self._values(rows.x)[place])

    def read(self, fit: Any) -> list[Read]:
        """How to read what `fit` returned."""
        return [Read(self._with(fit.values), fit.fit, self.numbers)]

    def runs(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> bool:
        """Whether the learner runs with settings that are not known while it is traced to cases [n, D], [n, K], [n]."""

        def tried(values, key, x, y, w):
            learner = self._with(values)
            fit = learner.fit(key, x, y, w)
            return learner.predict(fit, x), learner.failure(fit), learner.diagnose(fit)

        return _traces(tried, self._values(x)[0], key, x, y, w)

    def runs_rows(self, rows: Rows) -> bool:
        """Whether the learner trains rows, weights [R, n], with settings that are not known while it is traced."""

        def tried(values: Array, keys: Any, x: Array, y: Array, w: Array, units: RowUnits | None) -> Any:
            learner, some = self._with(values), Rows(keys, x, y, w, units, rows.left_out)
            found = some.trained(learner)
            told = jax.vmap(lambda fit: (learner.failure(fit), learner.diagnose(fit)))(found.fits)
            return some.predictions(learner.predict, found), told

        return _traces(tried, self._values(rows.x)[0], *rows[:-1])

    def _values(self, x: Float[Array, "n D"]) -> Float[Array, "S P"]:
        return jnp.asarray([[setting_of(each, name) for name in self.settings] for each in self.learners], x.dtype)

    def _with(self, values: Float[Array, " P"]) -> Learner:
        learner = self.learners[0]
        for place, name in enumerate(self.settings):
            learner = with_setting(learner, name, values[place])
        return learner


@dataclass(frozen=True)
class Apart:
    """A learner that is compiled by itself.

    Attributes:
      learner: the learner.
      number: its number among those to choose from.
    """

    learner: Learner
    number: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """Only its own."""
        return (self.number,)

    def fits(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Params:
        """The fit to cases [n, D], [n, K], [n]."""
        return self.learner.fit(key, x, y, w)

    def over(self, function: Callable[[Learner, Params], Any], fits: Any) -> Any:
        """What a function of a learner and its parameters gives, with a leading axis [1]."""
        return jax.tree.map(lambda a: a[None], function(self.learner, fits))

    def fit(self, place: Int[Array, ""], key: Key, x: Any, y: Any, w: Any) -> Params:
        """The fit to cases [n, D], [n, K], [n]."""
        return self.fits(key, x, y, w)

    def over_rows(self, function: OfRows, rows: Rows) -> Any:
        """What a function of a learner and of what became of rows with it gives, with a leading axis [1]."""
        return jax.tree.map(lambda a: a[None], function(self.learner, rows.trained(self.learner)))

    def taken(self, place: Int[Array, " R"], fits: Params, rows: Rows) -> Params:
        """Of fits to rows with a leading axis [1], those."""
        return jax.tree.map(lambda a: a[0], fits)

    def read(self, fit: Any) -> list[Read]:
        """How to read what `fit` returned."""
        return [Read(self.learner, fit, self.numbers)]


def taken(place: Int[Array, " R"], arrays: PyTree) -> PyTree:
    """Of arrays [C, R, ...] what is at a place for each row, [R, ...]."""
    return jax.tree.map(lambda a: a[place, jnp.arange(len(place))], arrays)


def _traces(function: Callable[..., Any], *arrays: Any) -> bool:
    """Whether JAX traces a function of arrays."""
    try:
        jax.eval_shape(function, *arrays)
    except Exception:  # whatever a learner does with a number that is none yet
        return False
    return True


Way = Shared | Traced | Apart


def ways_of(candidates: tuple[Any, ...], runs: Callable[[int, Traced], bool]) -> list[Way]:
    """How to train some learners: those that differ in one setting along which they share work together; else as
    `programs_of` says.
    """
    if name := setting_along(candidates):
        return [Shared(as_learner(candidates[0]), name, differences(candidates)[name])]
    return list(programs_of(candidates, runs))


def programs_of(candidates: tuple[Any, ...], runs: Callable[[int, Traced], bool]) -> list[Traced | Apart]:
    """How to train some learners: those that differ in numbers only as one program each; the rest one by one.

    Args:
      candidates: the learners.
      runs: whether a group of several, given with its place in the answer, runs as one program.
    """
    learners = tuple(map(as_learner, candidates))
    differing = differences(candidates)
    traced = tuple(name for name, values in differing.items() if _continuous(learners[0], name, values))
    groups: dict[Any, list[int]] = {}
    for number, learner in enumerate(learners):
        for name in traced:
            learner = with_setting(learner, name, setting_of(learners[0], name))
        groups.setdefault(learner, []).append(number)
    found: list[Traced | Apart] = []
    for numbers in map(tuple, groups.values()):
        together = Traced(tuple(learners[number] for number in numbers), numbers, traced)
        if len(numbers) > 1 and runs(len(found), together):
            found.append(together)
        else:
            found += [Apart(learners[number], number) for number in numbers]
    return found


def setting_along(candidates: tuple[Any, ...]) -> str | None:
    """The dotted name of the only setting that some learners differ in, if they share work along it."""
    differing = tuple(differences(candidates))
    return differing[0] if len(differing) == 1 and as_learner(candidates[0]).shares_along(differing[0]) else None


def _continuous(learner: Learner, name: str, values: tuple[Any, ...]) -> bool:
    """Whether values are real numbers other than 0, which often switches something off."""
    real = all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) and v for v in values)
    return real and (any(isinstance(value, float) for value in values) or _is_real(learner, name))


def _is_real(learner: Learner, name: str) -> bool:
    """Whether the default of a field is a real number, so that whole ones are meant as such."""
    holder, _, word = name.rpartition(".")
    owner = setting_of(learner, holder) if holder else learner
    owner = getattr(owner, "own", owner)
    return is_dataclass(owner) and any(f.name == word and isinstance(f.default, float) for f in fields(owner))
