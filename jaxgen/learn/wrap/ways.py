"""Ways to train several learners on the same cases: with shared work, in one program, or one after the other."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from jaxgen.learn.wrap.candidates import differences, setting_of, with_setting
from jaxgen.types import Key, Learner, Params, as_learner


class Together(NamedTuple):
    """Parameters of one of several learners that run as one program, and the settings that make it this one, [P]."""

    fit: PyTree
    values: Float[Array, "*S P"]


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

    def read(self, fit: Any) -> list[Read]:
        """How to read what `fit` returned."""
        return [Read(self._with(fit.values), fit.fit, self.numbers)]

    def runs(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> bool:
        """Whether the learner runs with settings that are not known while it is traced to cases [n, D], [n, K], [n]."""

        def tried(values, key, x, y, w):
            learner = self._with(values)
            fit = learner.fit(key, x, y, w)
            return learner.predict(fit, x), learner.failure(fit), learner.diagnose(fit)

        try:
            jax.eval_shape(tried, self._values(x)[0], key, x, y, w)
        except Exception:  # whatever a learner does with a number that is none yet
            return False
        return True

    def _values(self, x: Float[Array, "n D"]) -> Float[Array, "S P"]:
        return jnp.asarray([[setting_of(each, name) for name in self.settings] for each in self.learners], x.dtype)

    def _with(self, values: Float[Array, " P"]) -> Learner:
        learner = self.learners[0]
        for place, name in enumerate(self.settings):
            learner = with_setting(learner, name, values[place])
        return learner


@dataclass(frozen=True)
class Apart:
    """Learners that are each compiled by itself.

    Attributes:
      learners: all of them.
      numbers: theirs among those to choose from.
    """

    learners: tuple[Learner, ...]
    numbers: tuple[int, ...]

    def fits(
        self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]
    ) -> tuple[Params, ...]:
        """Fits to cases [n, D], [n, K], [n], one a learner."""
        return tuple(learner.fit(key, x, y, w) for learner in self.learners)

    def over(self, function: Callable[[Learner, Params], Any], fits: Any) -> Any:
        """What a function of a learner and its parameters gives for all fits."""
        found = [function(learner, fit) for learner, fit in zip(self.learners, fits, strict=True)]
        return jax.tree.map(lambda *each: jnp.stack(each), *found)

    def fit(self, place: Int[Array, ""], key: Key, x: Any, y: Any, w: Any) -> tuple[Params, ...]:
        """The fits of all to cases [n, D], [n, K], [n]: their parameters may differ in shape."""
        return self.fits(key, x, y, w)

    def read(self, fit: Any) -> list[Read]:
        """How to read what `fit` returned."""
        each = zip(self.learners, fit, self.numbers, strict=True)
        return [Read(learner, one, (number,)) for learner, one, number in each]


Way = Shared | Traced | Apart


def ways_of(candidates: tuple[Any, ...], runs: Callable[[int, Traced], bool]) -> list[Way]:
    """How to train some learners: those that differ in one setting along which they share work together; else those
    that differ in numbers only as one program each; the rest one by one.

    Args:
      candidates: the learners.
      runs: whether a group of several, given with its place in the answer, runs as one program.
    """
    learners = tuple(map(as_learner, candidates))
    differing = differences(candidates)
    if len(differing) == 1:
        [(name, values)] = differing.items()
        if learners[0].shares_along(name):
            return [Shared(learners[0], name, values)]
    traced = tuple(name for name, values in differing.items() if _continuous(learners[0], name, values))
    groups: dict[Any, list[int]] = {}
    for number, learner in enumerate(learners):
        for name in traced:
            learner = with_setting(learner, name, setting_of(learners[0], name))
        groups.setdefault(learner, []).append(number)
    ways: list[Way] = []
    for place, numbers in enumerate(map(tuple, groups.values())):
        some = tuple(learners[number] for number in numbers)
        together = Traced(some, numbers, traced)
        ways.append(together if len(some) > 1 and runs(place, together) else Apart(some, numbers))
    return ways


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
