"""AUC, F and other statistics of a row, over the rows of a plan: intervals and paired tests that allow for what the
rows share.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.special
from jaxtyping import Float

from jaxgen.stats import advice, methods
from jaxgen.stats.checks import as_numbers, require_alternative, require_finite, require_level
from jaxgen.stats.spread import Spread, as_result
from jaxgen.types import Losses, Plan
from jaxgen.types.numbers import require_kind, require_one_of
from jaxgen.types.result import Result


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
    rows = _as_rows(values, plan)
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
        limits = _within(spread, level, alternative)
        result = replace(result, lower=limits[0], upper=limits[1], method=f"{result.method} on the logit scale")
    return replace(result, unit=unit, learner="")


def _as_rows(values: Any, plan: Plan) -> Losses:
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
    return Losses(numbers, none, plan, "", "statistic", np.zeros(numbers.shape, np.uint8))


def _within(spread: Spread, level: float, alternative: str) -> tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]]:
    """Limits between 0 and 1, [*Q] each, NaN without any spread."""
    mean = spread.estimate
    if np.any((mean <= 0) | (mean >= 1)):
        raise ValueError(
            f"expected a mean between 0 and 1 for the logit scale, got {mean.min():.6g} to {mean.max():.6g}; use "
            "scale='identity'"
        )
    odds = Spread(scipy.special.logit(mean), spread.standard_error / (mean * (1 - mean)), spread.df)
    lower, upper = (np.asarray(scipy.special.expit(end)) for end in odds.honest_limits(level, alternative))
    return lower, upper
