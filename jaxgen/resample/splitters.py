"""Splits that other tools draw, as a plan."""

import inspect
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from jaxgen.resample.drawing import call, require_room
from jaxgen.types import Data, Plan, as_labels
from jaxgen.types.numbers import first_line, require, shown
from jaxgen.types.plan import as_counts, found_design, found_strata


def from_splitter(
    splitter: Any,
    data: Any,
    y: Collection[Any] | None = None,
    groups: Collection[Any] | None = None,
    times: Collection[Any] | None = None,
) -> Plan:
    """The splits of a splitter of scikit-learn's kind, such as `StratifiedKFold(5)` or `TimeSeriesSplit()`, as a plan.

    The splitter draws once: one without a `random_state` gives other splits at the next call, so keep the plan. An
    index that comes twice becomes a weight of 2.

    Rows that are folds carry the labels "repeat" and "fold", and blocks of a series the label "fold" and the times of
    their cases, as those of `k_fold` and `time_blocks`; groups are kept, and so intervals and tests treat the plan as
    the same design made here.

    Args:
      splitter: anything with scikit-learn's method `split(X, y, groups)`, or the pairs of indices (train, test)
        themselves.
      data: what to split: the number of cases, N; `Data` with x [N, D]; or inputs as the splitter takes them.
      y: labels or targets [N] that the splitter looks at, as `StratifiedKFold` does; by default those of `Data`, for a
        classification the numbers of the classes.
      groups: labels [N] of cases that depend on each other, given to the splitter and kept in the plan.
      times: when each case was observed, [N], if they are a series and the splits do not show it.
    Returns:
      Plan, train and test [R, N].
    Raises:
      TypeError: no splitter, or its class.
      ValueError: what the splitter raises, no splits, a split without training or test cases, or indices of other
        cases.
    """
    n, x, targets = _cases(data, y)
    name, pairs = _pairs(splitter, x, targets, groups)
    train, test = [], []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"expected pairs (train, test) of indices, got {shown(pair)}; give two arrays for a split")
        if not train:
            require_room(1, n)
        train.append(as_counts(pair[0], n, "training"))
        test.append(as_counts(pair[1], n, "test"))
    if not train:
        raise ValueError(f"expected at least one split, got none from {name}; ask it for some")
    weights = np.stack(train), np.stack(test)
    labels, found = found_design(*weights)
    if targets is not None and groups is None and np.ndim(targets) == 1:
        found |= found_strata(weights[1], targets)
    _, given = as_labels(weights[0].shape, None, groups, times)
    words = {"y": y, "groups": groups, "times": times}
    shorter = {what: None if value is None else f"<{n} labels>" for what, value in words.items()}
    return Plan(*weights, call("from_splitter", name, n, **shorter), labels, found | given).checked()


def _cases(data: Any, y: Any) -> tuple[int, Any, Any]:
    """The number of cases, and the inputs and targets that a splitter is given."""
    if isinstance(data, Data):
        if data.sets is not None:
            raise ValueError(
                f"expected one data set to split, got {data.sets}; split each, and resample.stack the plans"
            )
        single = data.y.shape[-1] == 1
        targets = data.y.argmax(1) if data.task == "classification" and not single else data.y
        return data.n, data.x, (targets[:, 0] if targets.ndim == 2 and single else targets) if y is None else y
    if isinstance(data, int | np.integer) and not isinstance(data, bool):
        n = require("the number of cases", data, 2)
        return n, np.zeros((n, 1)), y
    if isinstance(data, str | bytes | bool | dict) or not hasattr(data, "__len__"):
        raise TypeError(
            f"expected the number of cases, Data or inputs to split, got {shown(data)}; give for example data.n"
        )
    return require("the number of cases", len(data), 2), data, y


def _pairs(splitter: Any, x: Any, y: Any, groups: Any) -> tuple[str, Iterable[Any]]:
    """What a splitter is called, and its pairs (train, test) of indices."""
    advice = "give for example sklearn.model_selection.KFold(5), or pairs (train, test) of indices"
    if inspect.isclass(splitter):
        raise TypeError(f"expected a splitter, got the class {splitter.__name__}; write {splitter.__name__}()")
    if isinstance(splitter, Plan):
        raise TypeError(f"expected a splitter, got the plan {splitter.scheme}; use it as it is")
    if hasattr(splitter, "split") and not isinstance(splitter, str):
        try:
            return " ".join(repr(splitter).split()), list(splitter.split(x, y, groups))
        except Exception as error:
            raise ValueError(
                f"expected {shown(splitter)} to split these cases, got {first_line(error)}; give it what it needs as "
                "y= and groups="
            ) from error
    if isinstance(splitter, Iterable) and not isinstance(splitter, str | bytes | dict):
        return "<given splits>", splitter
    raise TypeError(f"expected a splitter with the method split, got {shown(splitter)}; {advice}")
