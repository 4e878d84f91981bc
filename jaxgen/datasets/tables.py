"""Data from tables: data frames, CSV files, OpenML."""

import difflib
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from jaxgen.datasets.arrays import from_arrays
from jaxgen.datasets.checks import (
    check_names,
    check_unlike,
    hold_dates,
    is_number,
    listed,
    looks_like_number,
    naming,
    plain,
    refuse_copy,
    share,
    sorted_levels,
)
from jaxgen.datasets.files import read_table
from jaxgen.types import Data
from jaxgen.types.numbers import require_kind, shown


def from_frame(frame: pd.DataFrame, target: Hashable, task: str | None = None, constant: str = "raise") -> Data:
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
    Returns:
      Data with x [N, D], D the number of columns after the encoding, and y [N, K].
    Raises:
      TypeError: it is no DataFrame.
      ValueError: as `from_arrays`; or the target is unknown, another column is a copy of it, names are not different, a
        value is missing, or a column holds dates, numbers written as texts, a text among numbers, or more than
        max(20, N / 2) different texts.
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
    columns = {str(name): _complete(column) for name, column in frame.items()}
    labels = columns.pop(target)
    if task != "classification":
        _check_spoiled(labels)
    _check_no_copy(columns, labels)
    names, inputs = zip(*(pair for column in columns.values() for pair in _encoded(column)), strict=True)
    return from_arrays(np.column_stack(inputs), labels, names, target, task, constant)


def read_csv(path: Any, target: Hashable, task: str | None = None, constant: str = "raise", **options: Any) -> Data:
    """Data from a CSV file with a header.

    Args:
      path: the file, compressed or not, or an open file such as io.StringIO.
      target: the name of the column to predict.
      task, constant: as for `from_frame`.
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
        return from_frame(table, target, task, constant)


def openml(
    name: str,
    version: int | str = "active",
    target: str | None = None,
    task: str | None = None,
    constant: str = "raise",
) -> Data:
    """A data set from openml.org, through scikit-learn, which keeps a copy on disk.

    Args:
      name: the name of the set there.
      version: its version; "active" is the one in use, which may change.
      target: the name of the column to predict; by default the set's own.
      task, constant: as for `from_frame`.
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
        return from_frame(bunch.frame, bunch.target_names[0] if target is None else target, task, constant)


def _complete(column: pd.Series) -> pd.Series:
    """The column in the simplest type that holds it, without missing values, dates or what is no single value."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"expected no missing value, got {missing.sum()} in column {column.name!r}, the first in row "
            f"{np.argmax(missing)}; fill in or leave out these rows first"
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    column = column.infer_objects()
    if column.dtype.kind in "mM" or (not is_numeric_dtype(column) and hold_dates(column.to_numpy(dtype=object))):
        raise ValueError(
            f"expected numbers or texts, got dates in column {column.name!r}; "
            "convert them to numbers with a meaning (age in days, month), or leave the column out"
        )
    if not is_numeric_dtype(column):
        return _of_single_values(column)
    if not isinstance(column.dtype, np.dtype):  # nullable numbers would arrive as objects, so as labels
        return column.astype(bool if is_bool_dtype(column) else np.float64)
    return column


def _of_single_values(column: pd.Series) -> pd.Series:
    """A column of texts, or of objects each of which is a text or a number."""
    values = plain(column.to_numpy(dtype=object))
    if values.dtype.kind != "O":  # such as Decimals
        return pd.Series(values, name=column.name)
    if share(values, _is_single) < 1:
        row, value = next((row, value) for row, value in enumerate(values) if not _is_single(value))
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
    values = column.to_numpy(dtype=object)
    if 0.5 < share(values, is_number) < 1:
        row = next(row for row, value in enumerate(values) if not is_number(value))
        raise ValueError(
            f"expected numbers, as in most rows, got '{listed([column.iloc[row]])}' in column {column.name!r}, row "
            f"{row}: text where a number is needed; "
            "correct it, or make the column categorical (dtype 'category') if its numbers are codes"
        )


def _check_no_copy(columns: Mapping[str, pd.Series], labels: pd.Series) -> None:
    """Refuses an input that is a copy of the target, texts included."""
    wanted = labels.to_numpy(dtype=object)
    for name, column in columns.items():
        values = column.to_numpy(dtype=object)
        if values[0] == wanted[0] and bool(np.all(values == wanted)):  # most columns differ in the first row
            refuse_copy(name, str(labels.name))


def _encoded(column: pd.Series) -> list[tuple[str, np.ndarray]]:
    """The columns, each after its name, that one column of a frame becomes."""
    if is_numeric_dtype(column):
        return [(str(column.name), column.to_numpy())]
    _check_spoiled(column)
    values = column.to_numpy(dtype=object)
    if not isinstance(column.dtype, pd.CategoricalDtype):
        _check_no_numbers(values, str(column.name))
    code, levels = sorted_levels(values)
    if len(levels) > max(20, len(column) / 2):
        raise ValueError(
            f"expected a few levels, got {len(levels)} different texts in the {len(column)} rows of "
            f"column {column.name!r}, the first '{listed([values[0]])}'; "
            "leave an identifier out, join rare levels, or convert numbers that were read as texts"
        )
    check_unlike([str(level) for level in levels], str(column.name))
    kept = range(min(1, len(levels) - 1), len(levels))  # a single level becomes a constant column, treated as any other
    return [(f"{column.name}={levels[k]}", (code == k).astype(np.float64)) for k in kept]


def _check_no_numbers(values: np.ndarray, name: str) -> None:
    """Refuses a column [N] of texts most of which are numbers as people write them: their order would be lost."""
    if share(values, looks_like_number) > 0.5:
        first = next(value for value in values if looks_like_number(value))
        raise ValueError(
            f"expected numbers or texts, got numbers written as texts in column {name!r}, such as "
            f"'{listed([first])}'; convert them (decimal=',', thousands='.', astype(float)), or make the column "
            "categorical (dtype 'category') if they are codes"
        )
