"""AUC, F and other statistics of a row, over the rows of a plan, for intervals and paired tests that allow for what the
rows share.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxgen.stats import advice, methods
from jaxgen.stats.checks import as_numbers, require_alternative, require_finite, require_level
from jaxgen.stats.metrics.predictions import Predictions
from jaxgen.stats.metrics.roc import auc
from jaxgen.stats.spread import as_result
from jaxgen.stats.statistic import OfRows
from jaxgen.types import Losses, Plan
from jaxgen.types.numbers import first_line, require_flag, require_kind, require_one_of, shown
from jaxgen.types.result import Result

_UNITS = {"auc": "AUC", "hand_till": "M of Hand & Till"}
"""Of the functions of this package that are not called by their names."""

_UNBOUNDED = ("lift",)

_HEAVY = 20
"""The weight of every case where that of a class is made a twentieth more or less: weights are whole numbers."""


def of_rows(
    losses: Losses,
    data: Any,
    statistic: Callable[..., Any],
    *,
    unit: str | None = None,
    greater_is_better: bool = True,
    bounded: bool | None = None,
    **options: Any,
) -> OfRows:
    """A statistic of the test cases of every row, such as their AUC, in a form that intervals and tests take in the
    place of losses: `interval.corrected_t`, `interval.recommend`, `compare.corrected_t`, `compare.pairwise` and others
    that need no losses of single cases.

    Rows that share cases depend on each other, for which the corrected t allows (Nadeau & Bengio 2003). Limits of what
    lies between 0 and 1 are those of the log odds of the mean, by the delta method, and so stay there.

    Args:
      losses: of `assess(..., keep="predictions")`, [*Q, R, N, K].
      data: the classification that was trained on, or its targets y [*Q, N, K].
      statistic: a function of `Predictions` to one number a row, [*R]: `metrics.roc.auc`, `metrics.f_beta`, or one of
        your own.
      unit: what to call it; None takes its name.
      greater_is_better: whether it is; False for an error.
      bounded: whether it lies between 0 and 1; None says so of the functions of `jaxgen.stats.metrics`, but for lift,
        where all rows do.
      options: of the statistic, such as `positive` or `beta`.
    Returns:
      OfRows [*Q, R].
    Raises:
      TypeError: no losses, no data, or a statistic that is no function.
      ValueError: predictions that were not kept, failed rows, a statistic that is not one finite number for each row
        (as AUC is not where a row tests one class only), or numbers out of bounds.
    """
    predictions = Predictions.of(losses, data)
    if not callable(statistic):
        raise TypeError(f"expected a statistic of Predictions, got {shown(statistic)}; give for example roc.auc")
    require_flag("greater_is_better", greater_is_better)
    name = getattr(statistic, "__name__", "statistic")
    if unit is not None:
        require_kind("the unit as a text", unit, str, "call the statistic for example 'AUC'")
    try:
        found = statistic(predictions, **options)
    except Exception as error:
        if str(error).startswith("expected "):  # said by the package
            raise
        raise ValueError(
            f"expected a statistic of Predictions, got {name}, which stops with {first_line(error)}; give for example "
            "roc.auc"
        ) from error
    numbers = as_numbers(f"the {name} of every row", found)
    if numbers.shape != losses.test_mean.shape:
        raise ValueError(
            f"expected one number for each row, {list(losses.test_mean.shape)}, got {list(numbers.shape)} of {name}; "
            "choose a class with positive=, or an average"
        )
    require_finite(f"{name} of rows", numbers, "draw stratified splits, so that every row tests every class")
    within = bool(((numbers >= 0) & (numbers <= 1)).all())
    if bounded is not None:
        require_flag("bounded", bounded)
    ours = getattr(statistic, "__module__", "").startswith("jaxgen.") and name not in _UNBOUNDED
    if bounded and not within:
        raise ValueError(
            f"expected a {name} between 0 and 1, got {numbers.min():.6g} to {numbers.max():.6g}; say bounded=False"
        )
    shares = _of_strata(
        predictions, losses.plan, statistic is auc, lambda given: np.asarray(statistic(given, **options), np.float64)
    )
    called = f"F{options.get('beta', 1):g}" if name == "f_beta" else _UNITS.get(name, name.replace("_", " "))
    return OfRows(
        numbers,
        np.full(numbers.shape, np.nan),
        losses.plan,
        losses.learner,
        called if unit is None else unit,
        losses.failure,
        losses.reasons,
        dropped=losses.dropped,
        label=losses.label,
        key=losses.key,
        greater_is_better=greater_is_better,
        bounded=within and ours if bounded is None else bounded,
        of_strata=shares,
    )


def _of_strata(
    predictions: Predictions, plan: Plan, area: bool, statistic: Callable[[Predictions], Float[np.ndarray, "*Q R"]]
) -> Float[np.ndarray, "*Q R C"] | None:
    """What a case more of each class does to a statistic of rows by the share of the class alone, times the number of
    cases, [*Q, R, classes]: its derivative by the logarithm of the weights of the class, over the share. None where
    splits are not stratified. An `area` under the ROC curve, which takes long, does not change with shares of classes.
    """
    stratum = plan.cases.get("stratum")
    if stratum is None or predictions.weights.max() > 1:
        return None
    classes = predictions.truth.reshape(-1, plan.n)[0]
    if area and len(np.unique([classes, stratum], axis=1).T) == len(np.unique(stratum)) == len(np.unique(classes)):
        return np.zeros((*predictions.rows, stratum.max() + 1))
    found = []
    for number in range(int(stratum.max()) + 1):
        more, less = (
            statistic(replace(predictions, weights=predictions.weights * factor.astype(np.uint8)))
            for factor in (np.where(stratum == number, one, _HEAVY) for one in (_HEAVY + 1, _HEAVY - 1))
        )
        found.append((more - less) / np.log((_HEAVY + 1) / (_HEAVY - 1)) / np.mean(stratum == number))
    derivatives = np.stack(found, axis=-1)
    return derivatives if np.isfinite(derivatives).all() else None


def over_splits(
    values: Float[np.ndarray, "*Q R"],
    plan: Plan,
    *,
    unit: str,
    scale: str = "identity",
    level: float = 0.95,
    alternative: str = "two-sided",
) -> Result:
    """The mean of a statistic over random splits or (repeated) folds, with the interval of the corrected t (Nadeau &
    Bengio 2003; Bouckaert & Frank 2004).

    Each row gives one number, such as the AUC of its test cases. Numbers of rows that share cases depend on each other,
    which the mean and standard error of rows leave out: the variance here is (1/R + n2/n1) S^2. For a paired test of
    two learners give the differences of their numbers, row by row; the interval then holds 0 where they are not told
    apart.

    Args:
      values: of each row, [*Q, R].
      plan: the plan that the rows are of, [*Q, R, N].
      unit: what the numbers are, such as "AUC".
      scale: "identity", or "logit" for limits that stay within 0 and 1: those of the log odds of the mean, by the
        delta method.
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q], about the mean over training sets of this size, R - 1 degrees of freedom.
    Raises:
      ValueError: numbers that are not one for each row or not finite, "logit" for a mean that is not between 0 and 1, a
        plan that the correction is not made for, or a level, alternative or scale out of range.
      TypeError: no numbers, or no plan.
    """
    require_kind("a plan", plan, Plan, "give the plan that the rows are of, as losses.plan")
    require_one_of("scale", scale, ("identity", "logit"))
    require_level(level)
    require_alternative(alternative)
    rows = _as_rows(values, plan, unit)
    line = advice.line(plan, rates=False)
    if line.interval not in ("corrected_t", "bouckaert_frank"):
        raise ValueError(
            f"expected random splits or folds for a statistic of rows, got {plan.scheme}: {line.reason}; use leave_out "
            "or k_fold"
        )
    estimate = methods.corrected(rows)
    spread = estimate.spread
    repeated = "repeated k-fold" if line.interval == "bouckaert_frank" else "resampled"
    source = "Bouckaert & Frank 2004" if line.interval == "bouckaert_frank" else "Nadeau & Bengio 2003"
    describe = (f"corrected {repeated} t interval", source, f"the mean {unit} over training sets of this size")
    result = as_result(spread, describe, rows, level, alternative, estimate.note, estimate.parts)
    if scale == "logit":
        limits = spread.limits_within(level, alternative)
        result = replace(result, lower=limits[0], upper=limits[1], method=f"{result.method} on the logit scale")
    return replace(result, unit=unit, learner="")


def _as_rows(values: Any, plan: Plan, unit: str) -> Losses:
    """The numbers as means of rows, checked against the plan."""
    numbers = as_numbers("values", values)
    shape = (*plan.train.shape[:-2], plan.resamples)
    if numbers.ndim not in (1, 2) or numbers.shape[-1:] != shape[-1:] or (len(shape) == 2 and numbers.shape != shape):
        raise ValueError(
            f"expected one number for each row of the plan, {list(shape)}, got shape {list(numbers.shape)}; give the "
            "statistic of each row's test cases"
        )
    require_finite("values", numbers, "leave out rows in which the statistic is not defined, and their plan's rows")
    none = np.full(numbers.shape, np.nan)
    return Losses(numbers, none, plan, "", unit, np.zeros(numbers.shape, np.uint8))
