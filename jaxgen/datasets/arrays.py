"""Data from arrays: where every reader ends, so all data pass the same checks."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from jaxgen.datasets.checks import as_array, check_names, check_shapes, floats
from jaxgen.types import Data


def from_arrays(
    x: Any,
    y: Any,
    names: Iterable[str] | None = None,
    target: str = "y",
    task: str | None = None,
    constant: str = "raise",
) -> Data:
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
    for name, value, allowed in (
        ("task", task, (None, "regression", "classification")),
        ("constant", constant, ("raise", "drop", "keep")),
    ):
        if value not in allowed:
            raise ValueError(
                f"expected {name} to be one of {', '.join(map(repr, allowed))}, got {value!r}; choose one of these"
            )
    task = "classification" if task is None and isinstance(getattr(y, "dtype", None), pd.CategoricalDtype) else task
    if isinstance(x, pd.DataFrame):
        if isinstance(y, pd.DataFrame | pd.Series) and not x.index.equals(y.index):
            raise ValueError(
                "expected x and y with the same index in the same order, got two different ones; "
                "align them first, or use from_frame on one frame that holds both"
            )
        names = map(str, x.columns) if names is None else names
    inputs, outputs = as_array(x, "x"), as_array(y, target)
    outputs = outputs[..., None] if outputs.ndim == inputs.ndim - 1 else outputs
    check_shapes(inputs, outputs)
    names = tuple(f"x{column}" for column in range(inputs.shape[-1])) if names is None else tuple(names)
    check_names(names, inputs.shape[-1])
    inputs = floats(inputs, names)
    if (task or ("classification" if outputs.dtype.kind in "OUb" else "regression")) == "classification":
        outputs, classes = _one_hot(outputs, target)
        return _without_constant(Data(inputs, outputs, names, target, "classification", classes).checked(), constant)
    data = Data(inputs, floats(outputs, (target,) * outputs.shape[-1]), names, target).checked()
    same = np.argwhere(data.y.max(-2) == data.y.min(-2))
    if len(same):
        raise ValueError(
            f"expected a target that varies, got {data.y[..., 0, :][tuple(same[0])]:g} for {target!r} in "
            "every row; choose another target"
        )
    return _without_constant(data, constant)


def _one_hot(y: np.ndarray, target: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Zeros and ones [*Q, N, K] and the K class names of labels [*Q, N, 1]."""
    if y.shape[-1] != 1:
        raise ValueError(
            f"expected one label per case for the classification of {target!r}, got {list(y.shape)}; "
            "give y [N], such as y.argmax(-1) of zeros and ones per class"
        )
    labels = y[..., 0]
    good = np.isfinite(labels) & (np.floor(labels) == labels) if labels.dtype.kind == "f" else ~pd.isna(labels)
    if not good.all():
        place = tuple(int(i) for i in np.argwhere(~good)[0])
        raise ValueError(
            f"expected texts or whole numbers as labels, got {labels[place]} for {target!r} in row "
            f"{place[-1]}; leave out such cases, or use task='regression'"
        )
    code, levels = pd.factorize(labels.ravel(), sort=True)
    if not 2 <= len(levels) <= max(20, labels.size / 2):
        advice = (
            "choose another target"
            if len(levels) < 2
            else "join rare classes, or convert numbers that were read as texts"
        )
        raise ValueError(
            f"expected 2 to {max(20, labels.size // 2)} classes, got {len(levels)} in {target!r}, the "
            f"first '{levels[0]}'; {advice}"
        )
    return np.eye(len(levels))[code].reshape(*labels.shape, -1), tuple(
        str(int(level) if labels.dtype.kind == "f" else level) for level in levels
    )


def _without_constant(data: Data, constant: str) -> Data:
    same = (data.x.max(-2) == data.x.min(-2)).reshape(-1, data.d).all(0)
    if constant == "keep" or not same.any():
        return data
    if constant == "raise" or same.all():
        first, advice = (
            int(np.argmax(same)),
            "give inputs that vary"
            if same.all()
            else "leave it out with constant='drop', or keep it with constant='keep'",
        )
        raise ValueError(
            f"expected inputs that vary, got {data.x[..., first].flat[0]:g} in every row of column "
            f"{data.names[first]!r} ({same.sum()} such columns); {advice}"
        )
    return data.select(np.flatnonzero(~same).tolist())
