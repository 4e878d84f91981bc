"""Real data as `Data`: bundled sets, arrays, data frames, CSV files, DELVE files, OpenML.

Every reader ends in `from_arrays`, so all data pass the same checks. Values are float64 on the host, in their own units;
nothing is scaled, filled in or shuffled. Messages count rows from 0 in the order of the data, whatever the index of a
frame says and without the header of a file.
"""

import difflib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from jaxgen import delve_format
from jaxgen.types import Data


def from_arrays(x: Any, y: Any, names: Iterable[str] | None = None, target: str = "y", task: str | None = None, constant: str = "raise") -> Data:
    """Data from arrays, after every check.

    Args:
      x: inputs, [N, D] or [Q, N, D]: anything that NumPy reads as real numbers.
      y: targets, [N] or [N, K], with the leading axis of x if it has one; one label per case for a classification.
      names: the D names of the inputs, all different; by default those of a DataFrame, else x0, x1, ...
      target: the name of what is predicted.
      task: "regression" or "classification"; by default a classification if y holds texts, objects, categories or
        booleans. Its classes are sorted, those of all Q sets together, with one column of zeros and ones each.
      constant: what to do with an input that is constant within every data set: "raise" an error, "drop" or "keep" it.
    Returns:
      Data with x [*Q, N, D] and y [*Q, N, K], copies in float64.
    Raises:
      ValueError: shapes do not belong together, a value is no finite number or a label is missing, names do not
        fit, an input or the target is constant, or there are not between 2 and max(20, N / 2) classes.
    """
    for name, value, allowed in (("task", task, (None, "regression", "classification")), ("constant", constant, ("raise", "drop", "keep"))):
        if value not in allowed:
            raise ValueError(f"expected {name} to be one of {', '.join(map(repr, allowed))}, got {value!r}; choose one of these")
    task = "classification" if task is None and isinstance(getattr(y, "dtype", None), pd.CategoricalDtype) else task
    if isinstance(x, pd.DataFrame):
        if isinstance(y, pd.DataFrame | pd.Series) and not x.index.equals(y.index):
            raise ValueError("expected x and y with the same index in the same order, got two different ones; align them first, or use from_frame on one frame that holds both")
        names = map(str, x.columns) if names is None else names
    inputs, outputs = _array(x, "x"), _array(y, target)
    outputs = outputs[..., None] if outputs.ndim == inputs.ndim - 1 else outputs
    _check_shapes(inputs, outputs)
    names = tuple(f"x{column}" for column in range(inputs.shape[-1])) if names is None else tuple(names)
    _check_names(names, inputs.shape[-1])
    inputs = _floats(inputs, names)
    if (task or ("classification" if outputs.dtype.kind in "OUb" else "regression")) == "classification":
        outputs, classes = _one_hot(outputs, target)
        return _without_constant(Data(inputs, outputs, names, target, "classification", classes).checked(), constant)
    data = Data(inputs, _floats(outputs, (target,) * outputs.shape[-1]), names, target).checked()
    same = np.argwhere(data.y.max(-2) == data.y.min(-2))
    if len(same):
        raise ValueError(f"expected a target that varies, got {data.y[..., 0, :][tuple(same[0])]:g} for {target!r} in every row; choose another target")
    return _without_constant(data, constant)


def from_frame(frame: pd.DataFrame, target: Hashable, task: str | None = None, constant: str = "raise") -> Data:
    """Data from a DataFrame: one column is the target, all others are inputs.

    Columns of numbers and booleans stay as they are. A column of texts or categories becomes one column of zeros and
    ones, "column=level", for every level that occurs except the first in sorted order, the reference level: with it
    they would add up to the intercept of a linear model.

    Args:
      frame: one row per case; rows are taken in their order, the index is not used.
      target: the name of the column to predict.
      task: "regression" or "classification"; by default a target of texts, categories or booleans is a classification.
      constant: as for `from_arrays`.
    Returns:
      Data with x [N, D], D the number of columns after the encoding, and y [N, K].
    Raises:
      ValueError: as `from_arrays`; or the target is unknown, names are not different, a value is missing, or a column
        holds dates, a text among numbers, or more than max(20, N / 2) different texts.
    """
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    target = str(target)
    _check_names(list(frame.columns), frame.shape[1])
    if target not in frame.columns:
        guess = difflib.get_close_matches(target, frame.columns, n=1)
        raise ValueError(f"expected a target among the columns {', '.join(frame.columns)}, got {target!r}; {f'did you mean {guess[0]!r}?' if guess else 'name one of them'}")
    if len(frame) < 2 or frame.shape[1] < 2:
        raise ValueError(f"expected at least two rows, one input and the target, got {len(frame)} rows of {frame.shape[1]} columns; check the source of the data")
    columns = {name: _complete(column) for name, column in frame.items()}
    labels = columns.pop(target)
    if task != "classification":
        _check_spoiled(labels)
    names, inputs = zip(*(pair for column in columns.values() for pair in _encoded(column)), strict=True)
    return from_arrays(np.column_stack(inputs), labels, names, target, task, constant)


def read_csv(path: str | PathLike[str], target: Hashable, task: str | None = None, constant: str = "raise", **options: Any) -> Data:
    """Data from a CSV file with a header.

    Args:
      path: the file.
      target: the name of the column to predict.
      task, constant: as for `from_frame`.
      **options: passed on to `pandas.read_csv`: sep, decimal, usecols, na_values, dtype={"column": "category"}, ...
    Returns:
      Data with x [N, D] and y [N, K], encoded as by `from_frame`.
    Raises:
      FileNotFoundError: there is no such file.
      ValueError: as `from_frame`, the file named; or the file is empty or no table.
    """
    path = _existing(path)
    with _naming(path):
        try:
            frame = pd.read_csv(path, **options)
        except pd.errors.EmptyDataError:
            raise ValueError("expected a header and rows, got an empty file; check the path") from None
        except ValueError as error:  # of pandas' parser, or bytes that are no text
            raise ValueError(f"expected a table, got what pandas.read_csv cannot read ({' '.join(str(error).split())}); give its options (sep, encoding, usecols)") from None
        if options.get("index_col") is None and not frame.index.equals(pd.RangeIndex(len(frame))):  # pandas took the first values as row names
            raise ValueError(f"expected {frame.shape[1]} values in every row, one per name in the header, got more; name every column, or pass index_col=0 for row names")
        return from_frame(frame, target, task, constant)


def read_delve(path: str | PathLike[str], spec: str | PathLike[str] | None = None, target: str | int | None = None, task: str | None = None, constant: str = "raise") -> Data:
    """Data from a DELVE file, Dataset.data or Prototask.data, plain or gzipped (University of Toronto 1995-96).

    One case per line, values between white space; a backslash at the end continues the case on the next line, "#" starts
    a comment and "@" a commonality index, both left out. Dataset.spec has one line per attribute: number from 1, name,
    a letter (u, c; not used), range, "#" comment; its other lines are not used. An attribute whose range lists values that
    are not all numbers (M F I) is nominal and encoded as by `from_frame`; any other, with an interval (0..9, [0,Inf)) or
    a list of numbers (0 1), is a number. DELVE's encodings, priors and Prototask.spec are not supported.

    Args:
      path: the cases; a name that ends in .gz is gunzipped.
      spec: the attributes; by default the file of the same name that ends in .spec, if it lists any. Without it the
        attributes are numbers named 1, 2, ..., as in a Prototask.data, whose inputs come before its target.
      target: name, or number from 1, of the one attribute to predict; by default the last.
      task: "regression" or "classification"; by default a target whose range lists its values is a classification.
      constant: as for `from_arrays`.
    Returns:
      Data with x [N, D] and y [N, K].
    Raises:
      FileNotFoundError: there is no such file.
      ValueError: as `from_frame`, the file named; or a case has not one value per attribute, a value is missing ("?"),
        or not among those that its range lists.
    """
    path = _existing(path)
    spec = None if spec is None else _existing(spec)
    with _naming(path):
        cases = delve_format.cases(path)
        attributes = delve_format.attributes(path, spec) or [(str(number), []) for number in range(1, len(cases[0]) + 1)]
        names = [name for name, _ in attributes]
        _check_names(names, len(names))
        for row, case in enumerate(cases):
            if len(case) != len(names):
                raise ValueError(f"expected {len(names)} values per case, one per attribute, got {len(case)} in row {row}; correct the row or the specification")
        if isinstance(target, int) and not 1 <= target <= len(names):
            raise ValueError(f"expected a target among the attributes 1 to {len(names)}, got {target}; give its number or its name")
        target = names[target - 1] if isinstance(target, int) else target or names[-1]
        task = "classification" if task is None and dict(attributes).get(target) else task
        frame = pd.DataFrame({name: _delve_column(name, listed, values) for (name, listed), values in zip(attributes, zip(*cases, strict=True), strict=True)})
        return from_frame(frame, target, task, constant)


def openml(name: str, version: int | str = "active", target: str | None = None, task: str | None = None, constant: str = "raise") -> Data:
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

    with _naming(f"OpenML {name}"):
        try:
            bunch: Any = fetch_openml(name=name, version=version, as_frame=True, parser="pandas")
        except OSError as error:
            raise OSError(f"OpenML {name}: expected an answer from openml.org, got {type(error).__name__} ({error}); check the network, the name and the version") from error
        if target is None and len(bunch.target_names) != 1:
            raise ValueError(f"expected a set with one target of its own, got {len(bunch.target_names)}; name the target among {', '.join(map(str, bunch.frame.columns))}")
        return from_frame(bunch.frame, bunch.target_names[0] if target is None else target, task, constant)


def diabetes() -> Data:
    """Disease progression of 442 diabetes patients (Efron, Hastie, Johnstone & Tibshirani 2004, "Least angle regression").

    The 10 inputs are in their own units: age (years), sex (coded 1, 2), bmi (body mass index), bp (average blood pressure)
    and six blood serum values, s1 to s6: total cholesterol, LDL, HDL, total / HDL, log triglycerides, glucose. They are
    strongly correlated: s1 with s2 at 0.90, condition number 22 after standardisation.

    Returns:
      Regression data, x [442, 10], y [442, 1]: a score of the progression after one year, 25 to 346.
    """
    return _bundled("diabetes", "disease progression after one year", scaled=False)


def breast_cancer() -> Data:
    """Diagnosis of 569 breast masses (Wolberg, Street & Mangasarian 1995, UCI "Breast Cancer Wisconsin (Diagnostic)").

    The 30 inputs are mean, standard error and worst of ten measures of the cell nuclei in an image, in their own units.

    Returns:
      Classification data, x [569, 30], y [569, 2]: malignant (212 cases), benign (357).
    """
    return _bundled("breast_cancer", "diagnosis")


def wine() -> Data:
    """Cultivar of 178 Italian wines (Aeberhard & Forina 1992, UCI "Wine").

    The 13 inputs are chemical measures in their own units, from hue (about 1) to proline (about 750).

    Returns:
      Classification data, x [178, 13], y [178, 3]: class_0 (59 cases), class_1 (71), class_2 (48).
    """
    return _bundled("wine", "cultivar")


def digits() -> Data:
    """Digits in 1797 handwritten images (Alpaydin & Kaynak 1998, UCI "Optical Recognition of Handwritten Digits", test part).

    The 61 inputs are grey values, 0 to 16, of 8 x 8 pixels; three that are 0 in every image are left out.

    Returns:
      Classification data, x [1797, 61], y [1797, 10]: the digits 0 to 9, 174 to 183 cases each.
    """
    return _bundled("digits", "digit", constant="drop")


def _bundled(name: str, target: str, constant: str = "raise", **options: Any) -> Data:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")(**options)
    classes = tuple(str(name) for name in bunch.get("target_names", ()))
    data = from_arrays(bunch.data, bunch.target, map(str, bunch.feature_names), target, "classification" if classes else "regression", constant)
    return replace(data, classes=classes)  # in the order of the labels 0, 1, ...


@contextmanager
def _naming(source: str | Path) -> Iterator[None]:
    """Puts the source of the data before the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _existing(path: str | PathLike[str]) -> Path:
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: expected a file, got {'a folder' if Path(path).is_dir() else 'none'}; check the path")
    return Path(path)


def _array(values: Any, name: str) -> np.ndarray:
    if hasattr(values, "toarray"):
        raise ValueError(f"expected a dense array for {name}, got a sparse {type(values).__name__}; convert it with .toarray()")
    if np.ma.is_masked(values):
        raise ValueError(f"expected no missing value in {name}, got {np.ma.count_masked(values)} masked ones; fill in or leave out these cases first")
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"expected rows of equal length in {name}, got different lengths; give every case the same columns") from None
    if array.dtype.kind not in "biufOU":
        raise ValueError(f"expected real numbers in {name}, got {array.dtype}; convert them to numbers with a meaning (days since a date, real and imaginary part)")
    return array


def _check_shapes(x: np.ndarray, y: np.ndarray) -> None:
    if x.ndim not in (2, 3) or x.shape[-2] < 2 or 0 in x.shape:
        raise ValueError(f"expected x [N, D] or [Q, N, D] with at least two cases and one input, got {list(x.shape)}; give one row per case and one column per input")
    if y.shape[:-1] != x.shape[:-1] or 0 in y.shape:
        raise ValueError(f"expected y with one row for each row of x {list(x.shape)}, got {list(y.shape)}; give every case its target")


def _check_names(names: Sequence[str], d: int) -> None:
    if len(names) != d:
        raise ValueError(f"expected {d} names, one per column of x, got {len(names)}; name every input once")
    if len(set(names)) < d:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected different names, got {twice!r} {names.count(twice)} times; rename the columns")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _floats(array: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """A copy in float64, or an error that names the first value that is no number."""
    try:
        return array.astype(np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        place = next(place for place in np.ndindex(array.shape) if not _is_number(array[place]))
        raise ValueError(
            f"expected numbers, got '{array[place]}' in column {names[place[-1]]!r}, row {place[-2]}: text where a number is needed; correct it, or use from_frame"
        ) from None


def _one_hot(y: np.ndarray, target: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Zeros and ones [*Q, N, K] and the K class names of labels [*Q, N, 1]."""
    if y.shape[-1] != 1:
        raise ValueError(f"expected one label per case for the classification of {target!r}, got {list(y.shape)}; give y [N], such as y.argmax(-1) of zeros and ones per class")
    labels = y[..., 0]
    good = np.isfinite(labels) & (np.floor(labels) == labels) if labels.dtype.kind == "f" else ~pd.isna(labels)
    if not good.all():
        place = tuple(int(i) for i in np.argwhere(~good)[0])
        raise ValueError(f"expected texts or whole numbers as labels, got {labels[place]} for {target!r} in row {place[-1]}; leave out such cases, or use task='regression'")
    code, levels = pd.factorize(labels.ravel(), sort=True)
    if not 2 <= len(levels) <= max(20, labels.size / 2):
        advice = "choose another target" if len(levels) < 2 else "join rare classes, or convert numbers that were read as texts"
        raise ValueError(f"expected 2 to {max(20, labels.size // 2)} classes, got {len(levels)} in {target!r}, the first '{levels[0]}'; {advice}")
    return np.eye(len(levels))[code].reshape(*labels.shape, -1), tuple(str(int(level) if labels.dtype.kind == "f" else level) for level in levels)


def _without_constant(data: Data, constant: str) -> Data:
    same = (data.x.max(-2) == data.x.min(-2)).reshape(-1, data.d).all(0)
    if constant == "keep" or not same.any():
        return data
    if constant == "raise" or same.all():
        first, advice = int(np.argmax(same)), "give inputs that vary" if same.all() else "leave it out with constant='drop', or keep it with constant='keep'"
        raise ValueError(f"expected inputs that vary, got {data.x[..., first].flat[0]:g} in every row of column {data.names[first]!r} ({same.sum()} such columns); {advice}")
    return data.select(np.flatnonzero(~same).tolist())


def _complete(column: pd.Series) -> pd.Series:
    """The column in the simplest type that holds it, without missing values or dates."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(f"expected no missing value, got {missing.sum()} in column {column.name!r}, the first in row {np.argmax(missing)}; fill in or leave out these rows first")
    column = column.infer_objects()
    texts = not is_numeric_dtype(column) and not isinstance(column.dtype, pd.CategoricalDtype)
    if texts and (column.dtype.kind in "mM" or column.astype(str).str.match(r"\d{4}-\d\d(-\d\d|$)").all()):  # also dates held as objects or ISO texts
        raise ValueError(f"expected numbers or texts, got dates in column {column.name!r}; convert them to numbers with a meaning (age in days, month), or leave the column out")
    if is_numeric_dtype(column) and not isinstance(column.dtype, np.dtype):  # nullable numbers would arrive as objects, so as labels
        return column.astype(bool if is_bool_dtype(column) else np.float64)
    return column


def _check_spoiled(column: pd.Series) -> None:
    """Refuses a column of numbers with a few texts among them, unless it is categorical."""
    if is_numeric_dtype(column) or isinstance(column.dtype, pd.CategoricalDtype):
        return
    number = np.array([_is_number(value) for value in column])
    if number.mean() > 0.5 and not number.all():
        row = int(np.argmin(number))
        raise ValueError(
            f"expected numbers, as in most rows, got '{column.iloc[row]}' in column {column.name!r}, row {row}: text where a number is needed; "
            "correct it, or make the column categorical (dtype 'category') if its numbers are codes"
        )


def _encoded(column: pd.Series) -> list[tuple[str, np.ndarray]]:
    """The columns, each after its name, that one column of a frame becomes."""
    if is_numeric_dtype(column):
        return [(str(column.name), column.to_numpy())]
    _check_spoiled(column)
    code, levels = pd.factorize(column.to_numpy(dtype=object), sort=True)
    if len(levels) > max(20, len(column) / 2):
        raise ValueError(
            f"expected a few levels, got {len(levels)} different texts in the {len(column)} rows of column {column.name!r}, the first '{column.iloc[0]}'; "
            "leave an identifier out, join rare levels, or convert numbers that were read as texts"
        )
    kept = range(min(1, len(levels) - 1), len(levels))  # a single level becomes a constant column, treated as any other
    return [(f"{column.name}={levels[k]}", (code == k).astype(np.float64)) for k in kept]


def _delve_column(name: str, listed: list[str], values: Sequence[str]) -> Any:
    if "?" in values:
        raise ValueError(f"expected no missing value, got {values.count('?')} '?' in column {name!r}, the first in row {values.index('?')}; leave out these cases first")
    if all(map(_is_number, listed)):
        return _floats(np.array(values)[:, None], (name,))[:, 0]
    for row, value in enumerate(values):
        if value not in listed:
            raise ValueError(f"expected one of {', '.join(listed)} in column {name!r}, got '{value}' in row {row}; correct the case or the specification")
    return pd.Categorical(values)
