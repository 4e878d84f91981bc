"""Data from tables: data frames, CSV files, OpenML."""

import difflib
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from jaxgen.datasets.arrays import from_arrays, require_missing, without_constant
from jaxgen.datasets.checks import (
    check_names,
    check_unlike,
    is_number,
    listed,
    looks_like_number,
    naming,
    plain,
    refuse_copy,
    share,
    sorted_levels,
)
from jaxgen.datasets.dates import in_numbers
from jaxgen.datasets.files import read_table
from jaxgen.types import Data
from jaxgen.types.numbers import require_kind, require_one_of, shown

MOST_LEVELS = 50
"""Texts of more different levels are no category."""

DATES = ("error", "days", "drop")
"""What may be done with columns of dates."""


def from_frame(
    frame: pd.DataFrame,
    target: Hashable,
    task: str | None = None,
    constant: str = "raise",
    missing: str = "error",
    dates: str = "error",
) -> Data:
    """Data from a DataFrame: one column is the target, all others are inputs.

    Columns of numbers and booleans stay as they are. A column of texts or categories becomes one column of zeros and
    ones, "column=level", for every level that occurs except the first in sorted order, the reference level: with it
    they would add up to the intercept of a linear model.

    Args:
      frame: one row per case; rows are taken in their order, the index is not used.
      target: the name of the column to predict.
      task: "regression" or "classification"; by default a target of texts, categories or booleans is a classification,
        one of numbers a regression. At most 20 different whole numbers may be either and must be said which.
      constant: as for `from_arrays`.
      missing: what to do with missing values: "error"; "drop" leaves out the rows that lack one; "keep" keeps missing
        inputs as NaN, in every column of a category, for learners that accept them, such as `learn.Imputed`.
      dates: what to do with inputs that are dates: "error"; "days" makes them the days since the first of the column;
        "drop" leaves the columns out.
    Returns:
      Data with x [N, D], D the number of columns after the encoding, and y [N, K].
    Raises:
      TypeError: it is no DataFrame.
      ValueError: as `from_arrays`; or the target is unknown, another column is a copy of it, names are not different, a
        value is missing, or a column holds dates, numbers written as texts, a text among numbers, or more different
        texts than 50, or than max(20, N / 2).
    """
    require_kind("a pandas DataFrame", frame, pd.DataFrame, "make one, or use from_arrays")
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    target = str(target)
    check_names(list(frame.columns), frame.shape[1])
    if target not in frame.columns:
        guess = difflib.get_close_matches(target, frame.columns, n=1)
        raise ValueError(
            f"expected a target among the columns {listed(frame.columns)}, got {shown(target)}; "
            f"{f'did you mean {guess[0]!r}?' if guess else 'name one of them'}"
        )
    if len(frame) < 2 or frame.shape[1] < 2:
        raise ValueError(
            f"expected at least two rows, one input and the target, got {len(frame)} rows of "
            f"{frame.shape[1]} columns; check the source of the data"
        )
    require_missing(missing)
    require_one_of("dates", dates, DATES)
    frame = in_numbers(frame.reset_index(drop=True), target, dates)
    if missing == "drop":
        frame = frame.dropna().reset_index(drop=True)
        if len(frame) < 2:
            raise ValueError(
                f"expected at least two rows that lack no value, got {len(frame)}; leave out columns that often lack "
                "one, "
                "or keep such rows with missing='keep'"
            )
    _check_gaps(frame, target, missing)
    columns = {str(name): _simplest(column) for name, column in frame.items()}
    labels = columns.pop(target)
    if task != "classification":
        _check_spoiled(labels)
    _check_no_copy(columns, labels)
    _check_levels(columns)
    encoded = [_encoded(column) for column in columns.values()]
    names, values = zip(*(pair for pairs in encoded for pair in pairs), strict=True)
    data = from_arrays(np.column_stack(values), labels, names, target, task, "keep", missing=missing)
    places = np.split(np.arange(len(names)), np.cumsum([len(pairs) for pairs in encoded])[:-1])
    texts = [not is_numeric_dtype(column) for column in columns.values()]
    categories = tuple(tuple(place.tolist()) for place, text in zip(places, texts, strict=True) if text)
    return without_constant(replace(data, categories=categories), constant)


def read_csv(
    path: Any,
    target: Hashable,
    task: str | None = None,
    constant: str = "raise",
    missing: str = "error",
    dates: str = "error",
    **options: Any,
) -> Data:
    """Data from a CSV file with a header.

    Args:
      path: the file, compressed or not, or an open file such as io.StringIO.
      target: the name of the column to predict.
      task, constant, missing, dates: as for `from_frame`.
      **options: passed on to `pandas.read_csv`: sep, decimal, usecols, na_values, dtype={"column": "category"}, ...
    Returns:
      Data with x [N, D] and y [N, K], encoded as by `from_frame`.
    Raises:
      FileNotFoundError: there is no such file.
      OSError: it may not be read.
      TypeError: neither a path nor an open file.
      ValueError: as `from_frame`, the file named; or the file is empty or no table, damaged, or its header has a name
        twice.
    """
    source, table = read_table(path, options)
    with naming(source):
        return from_frame(table, target, task, constant, missing, dates)


def openml(
    name: str,
    version: int | str = "active",
    target: str | None = None,
    task: str | None = None,
    constant: str = "raise",
    missing: str = "error",
    dates: str = "error",
) -> Data:
    """A data set from openml.org, through scikit-learn, which keeps a copy on disk.

    Args:
      name: the name of the set there.
      version: its version; "active" is the one in use, which may change.
      target: the name of the column to predict; by default the set's own.
      task, constant, missing, dates: as for `from_frame`.
    Returns:
      Data with x [N, D] and y [N, K], encoded as by `from_frame`.
    Raises:
      OSError: openml.org cannot be reached.
      ValueError: as `from_frame`, the set named; or there is no such set, or it has no target of its own or several.
    """
    from sklearn.datasets import fetch_openml

    if not isinstance(name, str) or not name:
        raise ValueError(f"expected the name of a set of openml.org, got {shown(name)}; give it as text")
    whole = isinstance(version, int | np.integer) and not isinstance(version, bool) and version >= 1
    if not whole and version != "active":
        raise ValueError(
            f"expected version to be a whole number of at least 1 or 'active', got {shown(version)}; give one of these"
        )
    with naming(f"OpenML {name}"):
        try:
            bunch: Any = fetch_openml(name=name, version=version, as_frame=True, parser="pandas")
        except OSError as error:
            raise OSError(
                f"OpenML {name}: expected an answer from openml.org, got {type(error).__name__} ({error}); "
                "check the network, the name and the version"
            ) from error
        if target is None and len(bunch.target_names) != 1:
            raise ValueError(
                f"expected a set with one target of its own, got {len(bunch.target_names)}; "
                f"name the target among {listed(bunch.frame.columns)}"
            )
        column = bunch.target_names[0] if target is None else target
        return from_frame(bunch.frame, column, task, constant, missing, dates)


def _check_gaps(frame: pd.DataFrame, target: str, missing: str) -> None:
    """Refuses missing values that were not allowed, those of the target, and columns of nothing else."""
    gaps: Any = frame.isna()
    lacking = [name for name in frame.columns if gaps[name].any() and (missing == "error" or name == target)]
    if lacking:
        first, row = lacking[0], int(np.argmax(gaps[lacking[0]].to_numpy()))
        others = f" (also in {listed(lacking[1:])})" if lacking[1:] else ""
        keep = (
            ", or missing='keep' for learners that fill them in, such as learn.Imputed (on the command line "
            "--missing drop or --missing impute)" * (missing == "error")
        )
        raise ValueError(
            f"expected no missing value, got {int(gaps[first].sum())} in column {first!r}, the first in row "
            f"{row}{others}; "
            f"fill in or leave out these rows first, or say missing='drop'{keep}"
        )
    empty = [name for name in frame.columns if gaps[name].all()]
    if empty:
        raise ValueError(f"expected columns with values, got none in {listed(empty)}; leave such columns out")


def _simplest(column: pd.Series) -> pd.Series:
    """The column in the simplest type that holds it, without what is no single value; missing values stay."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    gaps = column.isna().to_numpy()
    known: Any = column.dropna().infer_objects()
    if not is_numeric_dtype(known):
        known = _of_single_values(known)
    if is_numeric_dtype(known) and gaps.any():
        known = known.astype(np.float64)
    elif is_numeric_dtype(known) and not isinstance(known.dtype, np.dtype):
        known = known.astype(bool if is_bool_dtype(known) else np.float64)  # nullable numbers would arrive as objects
    return known.reindex(column.index) if gaps.any() else known


def _of_single_values(column: pd.Series) -> pd.Series:
    """A column of texts, or of objects each of which is a text or a number."""
    values = plain(column.to_numpy(dtype=object))
    if values.dtype.kind != "O":  # such as Decimals
        return pd.Series(values, name=column.name, index=column.index)
    if share(values, _is_single) < 1:
        row, value = next(pair for pair in zip(column.index, values, strict=True) if not _is_single(pair[1]))
        raise ValueError(
            f"expected numbers or texts, got {shown(value)} in column {column.name!r}, row {row}; "
            "make one column of numbers or texts of each of its parts, or leave the column out"
        )
    return column


def _is_single(value: Any) -> bool:
    """Whether a value of a column is a text or a number."""
    return isinstance(value, str | bool | np.bool_) or is_number(value)


def _check_spoiled(column: pd.Series) -> None:
    """Refuses a column of numbers with a few texts among them, unless it is categorical."""
    if is_numeric_dtype(column) or isinstance(column.dtype, pd.CategoricalDtype):
        return
    known = column.dropna()
    values = known.to_numpy(dtype=object)
    if 0.5 < share(values, is_number) < 1:
        place, row = next(pair for pair in enumerate(known.index) if not is_number(values[pair[0]]))
        raise ValueError(
            f"expected numbers, as in most rows, got '{listed([values[place]])}' in column {column.name!r}, row "
            f"{row}: text where a number is needed; "
            "correct it, or make the column categorical (dtype 'category') if its numbers are codes"
        )


def _check_no_copy(columns: Mapping[str, pd.Series], labels: pd.Series) -> None:
    """Refuses an input that is a copy of the target, texts included."""
    wanted = labels.to_numpy(dtype=object)
    for name, column in columns.items():
        values, gaps = column.to_numpy(dtype=object), column.isna().to_numpy()
        differ = not gaps[0] and values[0] != wanted[0]  # as most columns do
        if not differ and bool(np.all((values == wanted) | gaps)):
            refuse_copy(name, str(labels.name))


def has_many_levels(column: pd.Series) -> bool:
    """Whether a column of texts differs in so many rows [N] that it is no category."""
    known = column.dropna()
    return not is_numeric_dtype(known) and known.nunique() > min(MOST_LEVELS, max(20, len(known) / 2))


def _check_levels(columns: Mapping[str, pd.Series]) -> None:
    """Refuses columns of texts that are no categories: numbers, or identifiers that differ in nearly every row."""
    for name, column in columns.items():
        _check_spoiled(column)
        if not is_numeric_dtype(column) and not isinstance(column.dtype, pd.CategoricalDtype):
            _check_no_numbers(column.dropna().to_numpy(dtype=object), name)
    many = [name for name, column in columns.items() if has_many_levels(column)]
    if many:
        known = columns[many[0]].dropna()
        others = [f"{columns[name].nunique()} in {name!r}" for name in many[1:]]
        drop = " ".join(f"--drop {listed([name])}" for name in many)
        left = f"frame.drop(columns={shown(many)})"
        raise ValueError(
            f"expected a few levels, got {known.nunique()} different texts in the {len(columns[many[0]])} rows of "
            f"column {many[0]!r}, the first "
            f"'{listed([known.iloc[0]])}'{f' (also {listed(others)})' if others else ''}; leave an identifier out "
            f"with {left} (on the command line {drop}), join rare levels, or convert numbers that were read as texts"
        )


def _encoded(column: pd.Series) -> list[tuple[str, np.ndarray]]:
    """The columns, each after its name, that one column of a frame becomes; NaN where it is missing."""
    if is_numeric_dtype(column):
        return [(str(column.name), column.to_numpy())]
    gaps = column.isna().to_numpy()
    code, levels = sorted_levels(column.to_numpy(dtype=object)[~gaps])
    check_unlike([str(level) for level in levels], str(column.name))
    kept = range(min(1, len(levels) - 1), len(levels))  # a single level becomes a constant column, treated as any other
    pairs = []
    for k in kept:
        values = np.full(len(column), np.nan)
        values[~gaps] = code == k
        pairs.append((f"{column.name}={levels[k]}", values))
    return pairs


def _check_no_numbers(values: np.ndarray, name: str) -> None:
    """Refuses a column [N] of texts most of which are numbers as people write them: their order would be lost."""
    if share(values, looks_like_number) > 0.5:
        first = next(value for value in values if looks_like_number(value))
        raise ValueError(
            f"expected numbers or texts, got numbers written as texts in column {name!r}, such as "
            f"'{listed([first])}'; convert them (decimal=',', thousands='.', astype(float)), or make the column "
            "categorical (dtype 'category') if they are codes"
        )
