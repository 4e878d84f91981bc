"""Data from arrays: where every reader ends, so all data pass the same checks."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from jaxgen.datasets.checks import as_array, check_names, check_no_copy, check_shapes, floats, texts
from jaxgen.datasets.targets import chosen_task, one_hot
from jaxgen.types import Data
from jaxgen.types.data import TASKS
from jaxgen.types.numbers import require_one_of, shown

MISSING = ("error", "drop", "keep")
"""What may be done with missing inputs."""


def require_missing(missing: Any) -> None:
    """ValueError unless it is one of the three; who asks for imputation is told where it is done."""
    if missing == "impute":
        raise ValueError(
            "expected missing to be one of 'error', 'drop', 'keep', got 'impute'; say missing='keep' and train "
            "learn.Imputed(learner), which fills missing inputs in inside each row"
        )
    require_one_of("missing", missing, MISSING)


def from_arrays(
    x: Any,
    y: Any,
    names: Iterable[str] | None = None,
    target: str = "y",
    task: str | None = None,
    constant: str = "raise",
    classes: Iterable[str] | None = None,
    missing: str = "error",
) -> Data:
    """Data from arrays, after every check.

    Args:
      x: inputs, [N, D] or [Q, N, D]: anything that NumPy reads as real numbers.
      y: targets, [N] or [N, K], with the leading axis of x if it has one. For a classification one label per case, or
        one column of zeros and ones per class.
      names: the D names of the inputs, all different; by default those of a DataFrame, else x0, x1, ...
      target: the name of what is predicted.
      task: "regression" or "classification"; by default texts, categories and booleans are classes, and numbers are
        numbers. Numbers that may be either must be said which: at most 20 different whole numbers, or zeros and ones
        with a single 1 in each row.
      constant: what to do with an input that is constant within every data set: "raise" an error, "drop" or "keep" it.
      classes: names of the classes, in the order of the sorted labels or of the columns of y; by default the labels,
        sorted, those of all Q sets together, or the names or numbers of the columns.
      missing: what to do with missing inputs, NaN: "error"; "drop" leaves out the cases that lack one, or their target;
        "keep" keeps them for learners that accept them, such as `learn.Imputed`.
    Returns:
      Data with x [*Q, N, D] and y [*Q, N, K], copies in float64.
    Raises:
      ValueError: shapes do not belong together, a value is no finite number or a label is missing, names do not
        fit, an input or the target is constant, an input equals the target in every case, the task is not clear, or
        there are not between 2 and max(20, N / 2) classes; cases to be left out of several data sets, or all of them.
    """
    require_one_of("task", task, (None, *TASKS))
    require_one_of("constant", constant, ("raise", "drop", "keep"))
    require_missing(missing)
    if not isinstance(target, str):
        raise ValueError(f"expected the name of the target as text, got {shown(target)}; name it by a text")
    if task is None and isinstance(getattr(y, "dtype", None), pd.CategoricalDtype):
        task = "classification"
    if isinstance(x, pd.DataFrame):
        _check_index(x, y)
        names = map(str, x.columns) if names is None else names
    inputs, outputs = as_array(x, "x"), as_array(y, target)
    outputs = outputs[..., None] if outputs.ndim == inputs.ndim - 1 else outputs
    check_shapes(inputs, outputs)
    words = tuple(f"x{column}" for column in range(inputs.shape[-1])) if names is None else texts("names", names)
    check_names(words, inputs.shape[-1])
    inputs = floats(inputs, words)
    if missing == "drop":
        inputs, outputs = _without_gaps(inputs, outputs)
    gaps = missing == "keep" and bool(np.isnan(inputs).any())
    if gaps:
        _check_known(inputs, words)
    if chosen_task(outputs, task, target) == "classification":
        if outputs.dtype.kind in "biuf":
            check_no_copy(inputs, outputs, words, target)
        wanted = None if classes is None else texts("classes", classes)
        columns = tuple(map(str, y.columns)) if isinstance(y, pd.DataFrame) else None
        outputs, labels = one_hot(outputs, target, wanted, columns)
        data = Data(inputs, outputs, words, target, "classification", labels, gaps).checked()
        return without_constant(data, constant)
    if classes is not None:
        raise ValueError(f"expected no classes for a regression of {target!r}, got {shown(classes)}; leave them out")
    data = Data(inputs, floats(outputs, (target,) * outputs.shape[-1]), words, target, missing=gaps).checked()
    check_no_copy(data.x, data.y, words, target)
    return without_constant(_with_varying_target(data), constant)


def _without_gaps(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cases of x [N, D] and y [N, K] that lack nothing."""
    if x.ndim != 2:
        raise ValueError(
            f"expected one data set to leave cases out of, got {x.shape[0]}, which would differ in size; leave them "
            "out "
            "of each first, or keep them with missing='keep'"
        )
    whole = ~(np.isnan(x).any(-1) | pd.isna(y).any(-1))
    if whole.sum() < 2:
        raise ValueError(
            f"expected at least two cases that lack nothing, got {int(whole.sum())} of {len(x)}; leave out inputs that "
            "are often missing, or keep such cases with missing='keep'"
        )
    return x[whole], y[whole]


def _check_known(x: np.ndarray, names: Sequence[str]) -> None:
    """Refuses an input of x [*Q, N, D] that is missing in every case."""
    unknown = np.isnan(x).reshape(-1, x.shape[-1]).all(0)
    if unknown.any():
        raise ValueError(
            f"expected inputs that are known in some case, got none in column {names[int(np.argmax(unknown))]!r}; "
            "leave "
            "it out"
        )


def _check_index(x: pd.DataFrame, y: Any) -> None:
    if isinstance(y, pd.DataFrame | pd.Series) and not x.index.equals(y.index):
        raise ValueError(
            "expected x and y with the same index in the same order, got two different ones; "
            "align them first, or use from_frame on one frame that holds both"
        )


def _with_varying_target(data: Data) -> Data:
    same = np.argwhere(data.y.max(-2) == data.y.min(-2))
    if len(same):
        value = data.y[..., 0, :][tuple(same[0])]
        raise ValueError(
            f"expected a target that varies, got {value:g} for {data.target!r} in every row; choose another target"
        )
    return data


def without_constant(data: Data, constant: str) -> Data:
    """The data without inputs that are constant within every data set [*Q, N, D], or refused for them, or as they
    are.
    """
    same = (np.fmax.reduce(data.x, -2) == np.fmin.reduce(data.x, -2)).reshape(-1, data.d).all(0)
    if constant == "keep" or not same.any():
        return data
    if constant == "raise" or same.all():
        first = int(np.argmax(same))
        some = "leave it out with constant='drop', or keep it with constant='keep'"
        raise ValueError(
            f"expected inputs that vary, got {np.nanmax(data.x[..., first]):g} in every row of column "
            f"{data.names[first]!r} ({same.sum()} such columns); {'give inputs that vary' if same.all() else some}"
        )
    return data.select(np.flatnonzero(~same).tolist())
