"""Checks that all readers share, and the messages that name the place of what is wrong."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jaxgen.types.numbers import printable, shown

_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"\d{4}[-/.]\d\d?([-/.]\d\d?)?([T ].*)?"  # 2020-01, 2020/1/31, 2020-01-02T10:00
    r"|\d\d?[-/.]\d\d?[-/.](\d{4}|\d\d)( .*)?"  # 01/02/2020, 1.2.20
    r"|\d\d?[ -]" + _MONTH + r"[ -]\d{2,4}|" + _MONTH + r" \d\d?,? \d{4}"  # 2 Jan 2020, January 2, 2020
    r"|\d\d?:\d\d(:\d\d.*)?",  # 10:30
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[$€£]? ?[-+]?[.,]?\d[\d .,'_]*([eE][-+]?\d+)? ?[%$€£]?|[-+]?(nan|inf|infinity)", re.IGNORECASE)
MOMENTS = (date, time, timedelta, np.datetime64, np.timedelta64, pd.Period)
"""What a date or a time may be as an object."""


@contextmanager
def naming(source: str | Path) -> Iterator[None]:
    """Puts the source of the data before the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def existing(path: str | PathLike[str]) -> Path:
    """The path of a file that is there; FileNotFoundError otherwise, TypeError for what is no path."""
    if not isinstance(path, str | PathLike):
        raise TypeError(f"expected the path of a file, got {shown(path)}; give it as text or as a pathlib.Path")
    try:
        there, folder = Path(path).is_file(), Path(path).is_dir()
    except (OSError, ValueError):  # a name too long, or with a zero byte
        there, folder = False, False
    if not there:
        raise FileNotFoundError(
            f"{printable(str(path))}: expected a file, got {'a folder' if folder else 'none'}; check the path"
        )
    return Path(path)


def as_array(values: Any, name: str) -> np.ndarray:
    """Values of any shape [...] as an array of numbers, texts or objects; ValueError if they are none."""
    if hasattr(values, "toarray"):
        raise ValueError(
            f"expected a dense array for {name}, got a sparse {type(values).__name__}; convert it with .toarray()"
        )
    if np.ma.is_masked(values):
        raise ValueError(
            f"expected no missing value in {name}, got {np.ma.count_masked(values)} masked ones; "
            "fill in or leave out these cases first"
        )
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"expected rows of equal length in {name}, got different lengths; give every case the same columns"
        ) from None
    if array.dtype.kind not in "biufOUT":
        raise ValueError(
            f"expected real numbers in {name}, got {array.dtype}; "
            "convert them to numbers with a meaning (days since a date, real and imaginary part)"
        )
    return plain(array)


def plain(array: np.ndarray) -> np.ndarray:
    """An array of objects [...] as one of booleans or numbers if all of them are; any other array as it is.

    Decimals, fractions and integers beyond 64 bits become floating numbers.
    """
    if array.dtype.kind == "T":  # NumPy's texts of variable length
        return array.astype(object)
    if array.dtype.kind != "O" or array.size == 0:
        return array
    kinds = {type(value) for value in array.flat}
    if all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return array.astype(bool)
    if any(issubclass(kind, bool | np.bool_) or not issubclass(kind, Real | Decimal) for kind in kinds):
        return array
    try:
        return array.astype(np.int64 if all(issubclass(kind, Integral) for kind in kinds) else np.float64)
    except OverflowError:
        pass
    try:
        return array.astype(np.float64)
    except OverflowError:  # `floats` names the place
        return array


def check_shapes(x: np.ndarray, y: np.ndarray) -> None:
    """ValueError unless x is [*Q, N, D] and y [*Q, N, K] with at least two cases and one input."""
    if x.ndim not in (2, 3) or x.shape[-2] < 2 or 0 in x.shape:
        raise ValueError(
            f"expected x [N, D] or [Q, N, D] with at least two cases and one input, got {list(x.shape)}; "
            "give one row per case and one column per input"
        )
    if y.shape[:-1] != x.shape[:-1] or 0 in y.shape:
        raise ValueError(
            f"expected y with one row for each row of x {list(x.shape)}, got {list(y.shape)}; "
            "give every case its target"
        )


def check_names(names: Sequence[str], d: int) -> None:
    """ValueError unless there are d different names."""
    if len(names) != d:
        raise ValueError(f"expected {d} names, one per column of x, got {len(names)}; name every input once")
    if len(set(names)) < d:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected different names, got {twice!r} {names.count(twice)} times; rename the columns")


def texts(what: str, names: Any) -> tuple[str, ...]:
    """Names as a tuple of texts; ValueError if they are anything else."""
    words = tuple(names) if isinstance(names, Iterable) else (None,)
    if not all(isinstance(word, str) for word in words):
        raise ValueError(f"expected {what} as a list of texts, got {shown(names)}; name each by a text")
    return tuple(map(str, words))


def check_no_copy(x: np.ndarray, y: np.ndarray, names: Sequence[str], target: str) -> None:
    """ValueError if an input of x [*Q, N, D] is the very same numbers as a target of y [*Q, N, K].

    A rule that may look at what it predicts has no error, so its numbers would say nothing.
    """
    for output in range(y.shape[-1]):
        same = ((x == y[..., output, None]) | np.isnan(x)).reshape(-1, x.shape[-1]).all(0)
        if same.any():
            refuse_copy(names[int(np.argmax(same))], target)


def refuse_copy(name: str, target: str) -> None:
    """The ValueError for an input that is a copy of the target."""
    raise ValueError(
        f"expected inputs that do not hold the target, got {name!r}, which equals {target!r} in every row; leave it out"
    )


def sorted_levels(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The number of its level for each of the values [N], and the different levels in sorted order.

    Levels of kinds that do not compare, such as texts and booleans, are sorted as texts.
    """
    code, levels = pd.factorize(values)
    try:
        order = np.argsort(levels, kind="stable")
    except TypeError:
        order = np.argsort([str(level) for level in levels], kind="stable")
    return np.argsort(order)[code], np.asarray(levels)[order]


def check_unlike(levels: Sequence[str], name: str) -> None:
    """ValueError if two levels of a column differ in their kind (1 and '1') or in spaces only: they are hardly meant
    to be two.
    """
    words = [level.strip() for level in levels]
    if len(set(words)) < len(words):
        alike = next(word for word in words if words.count(word) > 1)
        raise ValueError(
            f"expected levels of {name!r} that differ by more than spaces or kind, got {words.count(alike)} times "
            f"'{listed([alike])}'; strip the texts, and make them all texts"
        )


def is_number(value: Any) -> bool:
    """Whether Python reads a value as a number."""
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def share(values: Any, holds: Callable[[Any], bool]) -> float:
    """The share of values for which something holds; it is asked once for each different value, of which texts have
    few.
    """
    try:
        code, levels = pd.factorize(np.asarray(values, dtype=object))
    except TypeError:  # lists and the like
        return sum(map(holds, values)) / len(values)
    return float(np.array([holds(level) for level in levels], bool)[code].mean())


def hold_dates(values: Any) -> bool:
    """Whether there is a date or time among objects, or more than half of them are texts that look like one."""
    if share(values, lambda value: isinstance(value, MOMENTS)) > 0:
        return True
    return share(values, lambda value: isinstance(value, str) and bool(_DATE.fullmatch(value.strip()))) > 0.5


def looks_like_number(value: Any) -> bool:
    """Whether a text is a number as people write it: 1,5 or 1 000 or 12 % too."""
    return isinstance(value, str) and _NUMBER.fullmatch(value.strip()) is not None


def listed(words: Iterable[Any], most: int = 20) -> str:
    """Words with commas between, fit for one line of a message: the first of them if there are many."""
    every = [printable(str(word)) for word in words]
    return ", ".join(every[:most]) + (f", ... ({len(every)} in all)" if len(every) > most else "")


def floats(array: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """A copy [..., D] in float64, or an error that names the first value that is no number."""
    try:
        return array.astype(np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        place = next(place for place in np.ndindex(array.shape) if not is_number(array[place]))
        value = printable(str(array[place]))
        raise ValueError(
            f"expected numbers, got '{value}' in column {names[place[-1]]!r}, row {place[-2]}: "
            "text where a number is needed; correct it, or use from_frame"
        ) from None
