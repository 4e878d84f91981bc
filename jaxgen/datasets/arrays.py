"""Data from arrays: where every reader ends, so all data pass the same checks."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from jaxgen.datasets.checks import as_array, check_names, check_no_copy, check_shapes, floats, texts
from jaxgen.datasets.targets import chosen_task, one_hot
from jaxgen.types import Data
from jaxgen.types.data import TASKS
from jaxgen.types.numbers import require_one_of, shown


def from_arrays(
    x: Any,
    y: Any,
    names: Iterable[str] | None = None,
    target: str = "y",
    task: str | None = None,
    constant: str = "raise",
    classes: Iterable[str] | None = None,
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
    Returns:
      Data with x [*Q, N, D] and y [*Q, N, K], copies in float64.
    Raises:
      ValueError: shapes do not belong together, a value is no finite number or a label is missing, names do not
        fit, an input or the target is constant, an input equals the target in every case, the task is not clear, or
        there are not between 2 and max(20, N / 2) classes.
    """
    require_one_of("task", task, (None, *TASKS))
    require_one_of("constant", constant, ("raise", "drop", "keep"))
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
    if chosen_task(outputs, task, target) == "classification":
        if outputs.dtype.kind in "biuf":
            check_no_copy(inputs, outputs, words, target)
        wanted = None if classes is None else texts("classes", classes)
        columns = tuple(map(str, y.columns)) if isinstance(y, pd.DataFrame) else None
        outputs, labels = one_hot(outputs, target, wanted, columns)
        return _without_constant(Data(inputs, outputs, words, target, "classification", labels).checked(), constant)
    if classes is not None:
        raise ValueError(f"expected no classes for a regression of {target!r}, got {shown(classes)}; leave them out")
    data = Data(inputs, floats(outputs, (target,) * outputs.shape[-1]), words, target).checked()
    check_no_copy(data.x, data.y, words, target)
    return _without_constant(_with_varying_target(data), constant)


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


def _without_constant(data: Data, constant: str) -> Data:
    same = (data.x.max(-2) == data.x.min(-2)).reshape(-1, data.d).all(0)
    if constant == "keep" or not same.any():
        return data
    if constant == "raise" or same.all():
        first = int(np.argmax(same))
        some = "leave it out with constant='drop', or keep it with constant='keep'"
        raise ValueError(
            f"expected inputs that vary, got {data.x[..., first].flat[0]:g} in every row of column "
            f"{data.names[first]!r} ({same.sum()} such columns); {'give inputs that vary' if same.all() else some}"
        )
    return data.select(np.flatnonzero(~same).tolist())
