"""Checks that all readers share, and the messages that name the place of what is wrong."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np


@contextmanager
def naming(source: str | Path) -> Iterator[None]:
    """Puts the source of the data before the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def existing(path: str | PathLike[str]) -> Path:
    """The path of a file that is there; FileNotFoundError otherwise."""
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"{path}: expected a file, got {'a folder' if Path(path).is_dir() else 'none'}; check the path"
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
    if array.dtype.kind not in "biufOU":
        raise ValueError(
            f"expected real numbers in {name}, got {array.dtype}; "
            "convert them to numbers with a meaning (days since a date, real and imaginary part)"
        )
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


def is_number(value: Any) -> bool:
    """Whether Python reads a value as a number."""
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def floats(array: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """A copy [..., D] in float64, or an error that names the first value that is no number."""
    try:
        return array.astype(np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        place = next(place for place in np.ndindex(array.shape) if not is_number(array[place]))
        raise ValueError(
            f"expected numbers, got '{array[place]}' in column {names[place[-1]]!r}, row {place[-2]}: "
            "text where a number is needed; correct it, or use from_frame"
        ) from None
