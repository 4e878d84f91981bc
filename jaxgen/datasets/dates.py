"""Columns of dates as numbers, by a stated choice only."""

from datetime import time, timedelta
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from jaxgen.datasets.checks import hold_dates, listed

_DAY = pd.Timedelta(days=1)
_FORMATS = (
    *("ISO8601", "%Y/%m/%d", "%d.%m.%Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%b %d, %Y", "%B %d, %Y"),
    *("%b %d %Y", "%B %d %Y"),
)
"""Texts of dates that can be read in one way only; of numbers with dots the day comes first."""

_EITHER_WAY = (("%m/%d/%Y", "%d/%m/%Y"), ("%m-%d-%Y", "%d-%m-%Y"))
"""Texts whose day and month can be told apart only if one of them is above 12 somewhere."""


def in_numbers(frame: pd.DataFrame, target: str, dates: str) -> pd.DataFrame:
    """A frame whose inputs that are dates are days since the first of their column, or left out.

    Args:
      frame: one row per case, the index 0, 1, ...
      target: the column to predict, which must not be dates.
      dates: "error", "days" or "drop".
    Raises:
      ValueError: there are dates, and "error"; or the target holds dates; or dates that cannot be read.
    """
    found = [str(name) for name, column in frame.items() if holds_dates(column)]
    if target in found:
        raise ValueError(
            f"expected numbers or texts, got dates in column {target!r}, the target; convert them to numbers with a "
            "meaning (age in days, month), or choose another target"
        )
    if found and dates == "error":
        others = f" (also in {listed(found[1:])})" if found[1:] else ""
        raise ValueError(
            f"expected numbers or texts, got dates in column {found[0]!r}{others}; say dates='days' or dates='drop' "
            "(on the command line --dates days or drop), or convert them to numbers with a meaning (age in days, month)"
        )
    if dates == "drop":
        return frame.drop(columns=found)
    columns: Any = frame
    return frame.assign(**{name: _days(columns[name]) for name in found}) if found else frame


def holds_dates(column: pd.Series) -> bool:
    """Whether what is known of a column is dates, times or durations."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    known = column.dropna().infer_objects()
    if known.empty or known.dtype.kind in "mM":
        return known.dtype.kind in "mM"
    return not is_numeric_dtype(known) and hold_dates(known.to_numpy(dtype=object))


def _days(column: pd.Series) -> pd.Series:
    """Days since the first date of a column, parts of days included, or the days of durations; NaN where none is
    known.
    """
    known = column.dropna().infer_objects()
    if known.dtype.kind == "m" or all(isinstance(value, timedelta | np.timedelta64) for value in known):
        return (pd.to_timedelta(known) / _DAY).reindex(column.index)
    moments = _moments(known)
    return ((moments - moments.min()) / _DAY).reindex(column.index)


def _moments(known: pd.Series) -> pd.Series:
    """Dates of any kind, as those of pandas."""
    values: Any = known
    if any(isinstance(value, time) for value in known):
        _refuse(known, "times of the day")
    if known.dtype.kind != "M":
        values = [value.to_timestamp() if isinstance(value, pd.Period) else value for value in known]
    if not all(isinstance(value, str) for value in values):
        return _read(pd.Series(values, index=known.index), None, known)
    texts = known.str.strip()
    for form in _FORMATS:
        read = pd.to_datetime(texts, format=form, errors="coerce", utc=True)
        if read.notna().all():
            return read
    for forms in _EITHER_WAY:
        both = [pd.to_datetime(texts, format=form, errors="coerce", utc=True) for form in forms]
        whole = [read for read in both if read.notna().all()]
        if len(whole) == 2 and not whole[0].equals(whole[1]):
            raise ValueError(
                f"expected dates whose day and month can be told apart, got '{listed([texts.iloc[0]])}' and others "
                "like "
                f"it in column {known.name!r}; write them as year-month-day, or leave the column out (dates='drop')"
            )
        if whole:
            return whole[0]
    return _refuse(known, f"'{listed([_odd(texts)])}'")


def _read(values: pd.Series, form: str | None, known: pd.Series) -> pd.Series:
    try:
        return pd.to_datetime(values, format=form, utc=True)
    except (TypeError, ValueError, OverflowError):
        return _refuse(known, "dates of several kinds")


def _odd(texts: pd.Series) -> str:
    """The first text that is no date as most of them are."""
    best = max(_FORMATS, key=lambda form: pd.to_datetime(texts, format=form, errors="coerce", utc=True).notna().sum())
    odd = pd.to_datetime(texts, format=best, errors="coerce", utc=True).isna()
    return texts.iloc[int(np.argmax(odd.to_numpy()))]


def _refuse(known: pd.Series, what: str) -> Any:
    raise ValueError(
        f"expected dates such as 2020-01-31 in column {known.name!r}, got {what}; correct them, or leave the column "
        "out "
        "(dates='drop')"
    )
