"""Estimators of scikit-learn's kind, fitted elsewhere, as predictions [m, K]: known by their methods alone, so that
nothing is imported for them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from jaxgen.types.numbers import shown


def predicted_numbers(estimator: Any, x: Any, outputs: int) -> Float[np.ndarray, "m K"]:
    """What a fitted estimator predicts for m cases, as numbers.

    Args:
      estimator: with `predict`.
      x: inputs of m cases, as the estimator takes them.
      outputs: K.
    Returns:
      Predictions [m, K].
    Raises:
      ValueError: it predicts something else than numbers [m] or [m, K].
    """
    numbers = np.asarray(estimator.predict(x), np.float64)
    numbers = numbers[:, None] if numbers.ndim == 1 else numbers
    if numbers.shape != (len(x), outputs):
        raise ValueError(
            f"expected predictions [{len(x)}, {outputs}], got {list(numbers.shape)} of {type(estimator).__name__}; "
            "use an estimator for so many outputs, or one output"
        )
    return numbers


def predicted_classes(estimator: Any, x: Any, classes: Shaped[np.ndarray, " K"]) -> Float[np.ndarray, "m K"]:
    """What a fitted classifier predicts for m cases, one column for each of all classes.

    Probabilities where it has `predict_proba`; else, for two classes, margins d of `decision_function` as (1 - d) / 2
    and (1 + d) / 2, whose larger one is the class; else 1 for the class that it predicts and 0 for the others. A class
    that it has not seen gets 0.

    Args:
      estimator: with `predict`, and `classes_`.
      x: inputs of m cases, as the estimator takes them.
      classes: the labels of all classes, sorted.
    Returns:
      Predictions [m, K].
    Raises:
      ValueError: it knows other classes.
    """
    own = np.asarray(getattr(estimator, "classes_", classes))
    if own.ndim != 1 or not np.isin(own, classes).all():
        raise ValueError(
            f"expected an estimator of the classes {list(classes)[:10]}, got {type(estimator).__name__} with other "
            "ones; give the targets that it was trained on, one label per case"
        )
    columns = np.searchsorted(classes, own)
    if hasattr(estimator, "predict_proba"):
        found = np.zeros((len(x), len(classes)))
        found[:, columns] = estimator.predict_proba(x)
        return found
    if len(classes) == len(own) == 2 and hasattr(estimator, "decision_function"):
        margin = np.asarray(estimator.decision_function(x), np.float64).reshape(-1)
        return np.stack([1 - margin, 1 + margin], axis=1) / 2
    return (np.asarray(estimator.predict(x))[:, None] == classes).astype(np.float64)


def fitted_estimators(result: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The estimators and the indices of what scikit-learn's `cross_validate` returned.

    Raises:
      TypeError: no dictionary.
      ValueError: they were not returned, or are not equally many.
    """
    if not isinstance(result, Mapping):
        raise TypeError(
            f"expected the dictionary of scikit-learn's cross_validate, got {shown(result)}; call it with "
            "return_estimator=True and return_indices=True"
        )
    missing = [name for name in ("estimator", "indices") if result.get(name) is None]
    if missing:
        raise ValueError(
            f"expected {missing[0]!r} in the dictionary of cross_validate, got {sorted(map(str, result))}; call it "
            "with return_estimator=True and return_indices=True"
        )
    estimators, indices = result["estimator"], result["indices"]
    lengths = [len(estimators), *(len(indices[name]) for name in ("train", "test"))]
    if len(set(lengths)) > 1 or not lengths[0]:
        raise ValueError(
            f"expected one estimator for each split, got {lengths[0]} estimators and indices of {lengths[1:]} splits; "
            "give the dictionary as it was returned"
        )
    return estimators, indices


def as_targets(
    estimators: Sequence[Any], y: Any
) -> tuple[Float[np.ndarray, "N K"], Callable[[Any, Any], Float[np.ndarray, "N K"]]]:
    """Targets [N, K] for fitted estimators, and how each predicts them from inputs, [N, K]: of classifiers, which have
    `classes_`, one column of zeros and ones for each label in y, sorted.

    Raises:
      ValueError: labels of several outputs, or targets that are no numbers for a regression.
    """
    values = np.asarray(y)
    if any(hasattr(estimator, "classes_") for estimator in estimators):
        if values.ndim != 1:
            raise ValueError(
                f"expected one label per case, [N], for classifiers, got y {list(values.shape)}; give y as it was "
                "given to cross_validate, for one output"
            )
        classes = np.unique(values)
        return (values[:, None] == classes).astype(np.float64), partial(predicted_classes, classes=classes)
    if values.dtype.kind not in "biuf" or values.ndim not in (1, 2):
        raise ValueError(
            f"expected y as numbers [N] or [N, K], got an array of {values.dtype}, shape {list(values.shape)}; give "
            "classifiers for labels"
        )
    numbers = values.astype(np.float64)
    numbers = numbers[:, None] if numbers.ndim == 1 else numbers
    return numbers, partial(predicted_numbers, outputs=numbers.shape[1])
