"""What is predicted: whether a target is a number or a class, and classes as columns of zeros and ones."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from jaxgen.datasets.checks import (
    MOMENTS,
    check_unlike,
    hold_dates,
    is_number,
    listed,
    looks_like_number,
    share,
    sorted_levels,
)

FEW = 20
"""So many different whole numbers at most may be classes as well as counts: as many classes as any data may have."""

_LONGEST_LABEL = 15
"""A text of more digits is an identifier, or a number that did not fit into 64 bits, rather than a class."""


def chosen_task(y: np.ndarray, task: str | None, target: str) -> str:
    """The task that is asked for; otherwise a classification for texts, objects and booleans [*Q, N, K], and a
    regression for numbers that cannot be classes.

    Raises:
      ValueError: no task is asked for, and the numbers may be either: one column of at most 20 different whole numbers,
        not all of them different, or zeros and ones with a single 1 in each row.
    """
    if task is not None:
        return task
    if y.dtype.kind in "OUb":
        _check_texts(y, target)
        return "classification"
    if not np.isfinite(y).all():  # refused with their place once the task does not matter
        return "regression"
    if y.shape[-1] > 1:
        if _in_one_class(y):
            _ask(target, "zeros and ones with a single 1 in each row")
        return "regression"
    levels = np.unique(y)
    if 2 <= len(levels) <= FEW and len(levels) < y.size and (levels == np.floor(levels)).all():
        _ask(target, f"{len(levels)} different whole numbers ({', '.join(f'{level:g}' for level in levels)})")
    return "regression"


def one_hot(
    y: np.ndarray, target: str, classes: Sequence[str] | None, columns: Sequence[str] | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Zeros and ones [*Q, N, K] and the K class names of labels [*Q, N, 1], or of zeros and ones as they are.

    Args:
      y: labels, or one column per class.
      target: the name of what is predicted, for messages.
      classes: names of the classes in the order of the sorted labels, or of the columns; None takes the labels.
      columns: names that the columns of y have already, if they have.
    Raises:
      ValueError: a label is missing or neither a text nor a whole number, a row has not one class, or there are not
        between 2 and max(20, N / 2) classes, or not as many names.
    """
    if y.shape[-1] > 1:
        zeros_and_ones, names = _checked_columns(y, target), columns or tuple(map(str, range(y.shape[-1])))
    else:
        zeros_and_ones, names = _encoded(y[..., 0], target)
    if classes is None:
        return zeros_and_ones, tuple(names)
    if len(classes) != len(names):
        raise ValueError(
            f"expected names for the {len(names)} classes of {target!r} ({listed(names)}), got {len(classes)}; "
            "name every class once"
        )
    if len(set(classes)) < len(classes):
        raise ValueError(f"expected different classes, got {listed(classes)}; name every class once")
    return zeros_and_ones, tuple(classes)


def _ask(target: str, what: str) -> None:
    raise ValueError(
        f"expected task='classification' or task='regression' for {target!r}, a target of {what}, got neither; "
        "say which is meant (on the command line with --task)"
    )


def _check_texts(y: np.ndarray, target: str) -> None:
    """Refuses to guess for texts among y [*Q, N, K] such as 0.5, 1,5, 12 % or 1/2/2020, which are numbers or dates
    rather than classes.
    """
    words = [value for value in y.ravel().tolist() if isinstance(value, str)]
    if not words:
        return
    numbers = share(words, _is_measured) > 0.5
    if numbers or hold_dates(words):
        first = next(word for word in words if not numbers or _is_measured(word))
        raise ValueError(
            f"expected numbers or class names for {target!r}, got {'numbers' if numbers else 'dates'} written as "
            f"texts, such as '{first}'; convert numbers that were read as texts (decimal=',', thousands='.'), or say "
            "task='classification'"
        )


def _is_measured(text: str) -> bool:
    """Whether a text is a number, and none that may be the name of a class, which are whole and short."""
    short = text.strip().lstrip("+-").isdecimal() and len(text) <= _LONGEST_LABEL
    return looks_like_number(text) and not short


def _in_one_class(y: np.ndarray) -> bool:
    return bool(((y == 0) | (y == 1)).all() and (y.sum(-1) == 1).all())


def _checked_columns(y: np.ndarray, target: str) -> np.ndarray:
    """Zeros and ones [*Q, N, K] with one class in each row and two that occur, in float64."""
    try:
        columns = y.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"expected one label per case for the classification of {target!r}, got {list(y.shape)} of texts; "
            "give y [N], or one column of zeros and ones per class"
        ) from None
    wrong = np.argwhere(~(((columns == 0) | (columns == 1)).all(-1) & (columns.sum(-1) == 1)))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise ValueError(
            f"expected one label per case for the classification of {target!r}, or zeros and ones with a single 1 in "
            f"each row, got {listed(y[place].tolist())} in row {place[-1]} of {list(y.shape)}; give y [N], "
            "such as y.argmax(-1), or say task='regression'"
        )
    present = columns.reshape(-1, y.shape[-1]).any(0)
    _check_number(int(present.sum()), columns[..., 0].size, target, f"column {int(np.argmax(present))}")
    return columns


def _encoded(labels: np.ndarray, target: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Zeros and ones [*Q, N, K] and the sorted labels as texts."""
    if labels.dtype.kind == "f":
        good = np.isfinite(labels) & (np.floor(labels) == labels)
    elif labels.dtype.kind == "O":
        values = labels.ravel()
        if any(isinstance(value, MOMENTS) for value in values):
            raise ValueError(
                f"expected texts or whole numbers as labels, got dates for {target!r}, such as {values[0]}; "
                "convert them to classes with a name"
            )
        good = np.reshape([_is_label(value) for value in values], labels.shape)
    else:
        good = np.ones(labels.shape, bool)
    if not good.all():
        place = tuple(int(i) for i in np.argwhere(~good)[0])
        raise ValueError(
            f"expected texts or whole numbers as labels, got {listed([labels[place]])} for {target!r} in row "
            f"{place[-1]}; leave out such cases, or use task='regression'"
        )
    code, levels = sorted_levels(labels.ravel())
    _check_number(len(levels), labels.size, target, levels[0])
    names = tuple(str(int(level) if isinstance(level, float | np.floating) else level) for level in levels)
    check_unlike(names, target)
    return np.eye(len(levels))[code].reshape(*labels.shape, -1), names


def _is_label(value: Any) -> bool:
    """Whether an object is a text, a boolean or a whole number, or one level of a category."""
    if isinstance(value, str | bool | np.bool_ | pd.Interval):
        return True
    return isinstance(value, Real) and is_number(value) and float(value).is_integer()


def _check_number(classes: int, cases: int, target: str, first: Any) -> None:
    if not 2 <= classes <= max(20, cases / 2):
        advice = (
            "choose another target" if classes < 2 else "join rare classes, or convert numbers that were read as texts"
        )
        raise ValueError(
            f"expected 2 to {max(20, cases // 2)} classes, got {classes} in {target!r}, the "
            f"first '{listed([first])}'; {advice}"
        )
