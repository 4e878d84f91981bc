"""Learners to choose among: a grid over settings, a random sample, and what the learners of a list differ in."""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from jaxgen.types import Key
from jaxgen.types.foreign import Foreign, as_inner
from jaxgen.types.keys import generator
from jaxgen.types.numbers import require, require_number, require_one_of, shown
from jaxgen.types.value import Value, plain

_EXAMPLE = "write for example {'ridge': (0.1, 1.0, 10.0)}"
_DIGITS = 4
"""Digits to which random settings are drawn, so that a learner prints on one line."""

_TRIES = 100
"""Draws for each learner of a sample before it is found that there are not so many different ones."""


@dataclass(frozen=True, repr=False)
class Range(Value):
    """Numbers between two ends for `sample`: whole ones if both ends are, else drawn to four digits.

    Attributes:
      low, high: the ends.
      scale: "log": uniform in the logarithm; "linear": uniform.
    Raises:
      ValueError: the ends are no finite numbers in order, or not above 0 for "log".
    """

    low: float | int = 0.01
    high: float | int = 100.0
    scale: str = "log"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("the scale of Range", self.scale, ("log", "linear"))
        if self.scale == "log":
            require_number("the low end of Range", self.low, above=0, advice="use scale='linear' for other numbers")
        require_number("the low end of Range", self.low)
        require_number("the high end of Range", self.high, above=self.low, advice="give the low end first")

    def draw(self, random: np.random.Generator) -> int | float:
        """One number."""
        ends = (self.low, self.high)
        if isinstance(self.low, int) and isinstance(self.high, int):
            ends = (self.low - 0.5, self.high + 0.5)  # so that the ends are drawn as often as their neighbours
        log = self.scale == "log"
        low, high = map(math.log, ends) if log else ends
        number = math.exp(random.uniform(low, high)) if log else random.uniform(low, high)
        if ends != (self.low, self.high):
            return min(max(round(number), int(self.low)), int(self.high))
        return float(f"{number:.{_DIGITS}g}")


def sample(key: Key, base: Any, settings: Mapping[str, Any], count: int) -> tuple[Any, ...]:
    """Learners with random settings, for `Tuned` to choose among (Bergstra & Bengio 2012, "Random search for
    hyper-parameter optimization").

    Args:
      key: consumed.
      base: the learner whose settings are replaced.
      settings: for each setting a `Range`, or values of which one is drawn; that of a learner inside is "base.ridge".
      count: learners, all different.
    Returns:
      So many learners; `Tuned(sample(...))` chooses among them.
    Raises:
      TypeError: no mapping of settings, or no learner.
      ValueError: a setting that the learner does not have, no values, or fewer different learners than asked for.
    """
    as_inner(base)
    require("the count of a sample", count, 2, advice="there must be something to choose from")
    if not isinstance(settings, Mapping) or not settings:
        raise TypeError(
            f"expected settings as a mapping from names to Range or values, got {shown(settings)}; write for example "
            "{'ridge': learn.Range(0.01, 100.0)}"
        )
    choices = {
        name: values if isinstance(values, Range) else _values(name, values) for name, values in settings.items()
    }
    random, found = generator(key), dict[Any, None]()
    for _ in range(_TRIES * count):
        learner = base
        for name, values in choices.items():
            drawn = values.draw(random) if isinstance(values, Range) else values[random.integers(len(values))]
            learner = with_setting(learner, name, drawn)
        found[learner] = None
        if len(found) == count:
            return tuple(found)
    raise ValueError(
        f"expected {count} different learners in a sample, got {len(found)}; ask for fewer, or give wider ranges"
    )


def plain_grid(grid: Any) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """A grid as pairs of a setting and its values, from a mapping or from such pairs.

    Raises:
      TypeError: it is neither.
      ValueError: a setting comes twice or has no values, or a value comes twice.
    """
    pairs = tuple(grid.items()) if isinstance(grid, Mapping) else grid
    good = isinstance(pairs, tuple) and all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs)
    if not good or not all(isinstance(name, str) for name, _ in pairs):
        raise TypeError(f"expected a grid as a mapping from settings to their values, got {shown(grid)}; {_EXAMPLE}")
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"expected every setting of a grid once, got {', '.join(names)}; write all its values in one")
    return tuple((name, _values(name, values)) for name, values in pairs)


def _values(name: str, values: Any) -> tuple[Any, ...]:
    """Values of a setting as a tuple of plain values, all different."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) != 1:
        raise ValueError(f"expected the values of {name!r} as a tuple, got {shown(values)}; {_EXAMPLE}")
    listed = tuple(plain(value) for value in (np.asarray(values).tolist() if hasattr(values, "dtype") else values))
    if not listed:
        raise ValueError(f"expected values of {name!r} to choose from, got none; {_EXAMPLE}")
    _refuse_twice(f"every value of {name!r}", listed)
    return listed


def _refuse_twice(what: str, values: tuple[Any, ...]) -> None:
    """ValueError if one of some values, which can be hashed as settings and learners can, comes twice."""
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"expected {what} once, got {shown(value)} twice; leave one of them out")
        seen.add(value)


def expanded(base: Any, grid: tuple[tuple[str, tuple[Any, ...]], ...]) -> tuple[Any, ...]:
    """The learners of a grid: all combinations, the last setting changing fastest.

    Raises:
      ValueError: a setting that the learner does not have.
    """
    learners = []
    for values in itertools.product(*(values for _, values in grid)):
        learner = base
        for (name, _), value in zip(grid, values, strict=True):
            learner = with_setting(learner, name, value)
        learners.append(learner)
    return tuple(learners)


def listed(base: Any, grid: Any) -> tuple[Any, ...]:
    """The learners to choose among: those of a grid, or those of a tuple.

    Raises:
      TypeError: what should be a learner is none, or learners of a tuple have a grid besides.
      ValueError: fewer than two, or one twice; or as `expanded` says.
    """
    if isinstance(base, tuple):
        if grid:
            raise TypeError(
                f"expected a grid with one learner, or a tuple of learners without, got {shown(grid)} besides "
                f"{len(base)} learners; leave the grid out"
            )
        candidates = base
    else:
        candidates = expanded(base, grid) if grid else (base,)
    for candidate in candidates:
        as_inner(candidate, "Tuned to choose among learners, each")
    if len(candidates) < 2:
        raise ValueError(
            f"expected at least 2 learners to choose from, got {len(candidates)}; give a grid such as "
            "{'ridge': (0.1, 1.0, 10.0)}, a tuple of learners, or use the learner without Tuned"
        )
    _refuse_twice("every learner to choose from", candidates)
    return candidates


def setting_of(learner: Any, name: str) -> Any:
    """The value of a setting, as "ridge", "base.ridge", or "penalty.0.strength" of the first of a tuple."""
    for word in name.split("."):
        learner = learner.own if isinstance(learner, Foreign) else learner
        learner = learner[int(word)] if isinstance(learner, tuple) else getattr(learner, word)
    return learner


def with_setting(learner: Any, name: str, value: Any) -> Any:
    """The learner with another value of a setting.

    Raises:
      ValueError: it has no such setting.
    """
    word, _, rest = name.partition(".")
    if isinstance(learner, Foreign):
        return replace(learner, own=with_setting(learner.own, name, value))
    names = _parts(learner)
    if word not in names:
        inner = [part for part in names if name.partition(".")[0] in _parts(setting_of(learner, part))]
        advice = f"write {f'{inner[0]}.{name}'!r}" if inner else f"choose one of {', '.join(names) or 'no fields'}"
        raise ValueError(f"expected a field of {shown(learner)} to tune, got {word!r}; {advice}")
    new = with_setting(setting_of(learner, word), rest, value) if rest else value
    if isinstance(learner, tuple):
        return (*learner[: int(word)], new, *learner[int(word) + 1 :])
    return replace(learner, **{word: new})


def _parts(value: Any) -> list[str]:
    """Names of the settings of a learner or of a part of it, or places in a tuple of such parts."""
    if type(value) is tuple:
        return [str(place) for place in range(len(value))] if any(map(is_dataclass, value)) else []
    return [field.name for field in fields(value)] if is_dataclass(value) and not isinstance(value, type) else []


def differences(candidates: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
    """What learners differ in: the dotted names of settings, each with the value of every learner; nothing if they are
    of different kinds.
    """
    found: set[str] = set()
    for other in candidates[1:]:
        found |= set(_differing(candidates[0], other))
    # where two differ in a whole part, what others differ in inside it is no setting of all
    names = [name for name in found if not any(name.startswith(f"{outer}.") for outer in found)]
    if "" in names:
        return {}
    return {name: tuple(setting_of(each, name) for each in candidates) for name in sorted(names)}


def _differing(a: Any, b: Any, name: str = "") -> list[str]:
    """Dotted names of the smallest parts in which two values differ; an empty one for the values themselves."""
    if isinstance(a, Foreign) and isinstance(b, Foreign):
        a, b = a.own, b.own
    words = _parts(a) if type(a) is type(b) and _parts(a) == _parts(b) else []
    if not words:
        return [] if a == b else [name]
    pairs = [(f"{name}.{word}" if name else word, setting_of(a, word), setting_of(b, word)) for word in words]
    return [found for inner, *pair in pairs for found in _differing(*pair, name=inner)]
