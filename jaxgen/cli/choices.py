"""Which choices a table asks for before it can be assessed, all at once, so that nobody meets them one by one."""

import argparse
import shlex
from typing import Any

import pandas as pd

from jaxgen.datasets.dates import holds_dates
from jaxgen.datasets.tables import has_many_levels
from jaxgen.datasets.targets import FEW


def needed(frame: pd.DataFrame, options: argparse.Namespace) -> list[str]:
    """Words of a command that make the choices that this table [N rows] asks for and that were not made.

    Args:
      frame: as read, without the columns that are dropped.
      options: of the command.
    """
    if options.target not in frame.columns:
        return []
    words: list[list[str]] = []
    target: Any = frame[options.target]
    inputs: Any = frame.drop(columns=options.target)
    known = target.dropna()
    whole = pd.api.types.is_numeric_dtype(known) and not pd.api.types.is_bool_dtype(known)
    if options.task is None and whole and 2 <= known.nunique() <= FEW and (known % 1 == 0).all():
        words.append(["--task", "classification"])
    dates = [name for name in inputs.columns if holds_dates(inputs[name])]
    if dates and options.dates == "error":
        words.append(["--dates", "days"])
    rest: Any = inputs.drop(columns=dates)
    many = [str(name) for name in rest.columns if has_many_levels(rest[name])]
    words += [["--drop", name] for name in many]
    gaps: Any = frame.drop(columns=many).isna()
    if options.missing == "error" and gaps.any(axis=None):
        words.append(["--missing", "drop" if target.isna().any() else "impute"])
    return [shlex.join(word) for word in words]
