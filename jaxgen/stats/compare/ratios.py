"""The error of one learner as a share of that of another: error ratios and skill scores."""

from dataclasses import replace

import numpy as np
import scipy
from jaxtyping import Float

from jaxgen.stats import advice, methods
from jaxgen.stats.checks import require_alternative, require_level
from jaxgen.stats.compare.comparison import difference, of_two, require_same
from jaxgen.stats.methods import Estimate
from jaxgen.stats.spread import dropped, joined
from jaxgen.stats.statistic import require_less_is_better
from jaxgen.types import Losses
from jaxgen.types.result import Result, described

_METHODS = {
    "hold_out": methods.on_one_test_set,
    "naive_t": methods.naive,
    "corrected_t": methods.corrected,
    "bouckaert_frank": methods.folds,
    "grouped": methods.grouped,
    "conservative_z": methods.conservative_z,
}
"""The variance for each interval that `interval.recommend` may choose; each is a sum of squares of something linear in
the losses, which Fieller's limits need.
"""


@of_two
def error_ratio(first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """G of the second learner over G of the first, with Fieller's interval (Fieller 1954, "Some problems in interval
    estimation").

    The limits are the ratios r at which a test of G2 = r G1, on the losses l2 - r l1, would just reject. The test is
    the one whose variance suits the plan, as in `compare.recommend`: corrected t, t of grouped folds, hold-out t,
    conservative Z. So the dependence of the two learners, and of the rows, is allowed for, and the interval is not
    symmetric. If the error of the first is not told apart from 0 at this level there are no limits, nor where all rows
    have one ratio, which is no certainty.

    Args:
      first, second: losses of two learners on one plan, [*Q, R], at least 0 on average.
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q], without unit; the standard error is that of the delta method, and not what the limits are made of.
    Raises:
      ValueError: different plans or losses, failed rows, a plan that suits no such test, errors of the first learner
        that are not above 0, or an unknown alternative or level.
      TypeError: no losses.
    """
    require_same(first, second)
    require_level(level)
    require_alternative(alternative)
    name = advice.line(first.plan, rates=False).interval
    if name not in _METHODS:
        raise ValueError(
            f"expected a plan of random splits, folds, halves or one test set for a ratio, got {first.plan.scheme}; "
            "use leave_out or k_fold"
        )
    require_less_is_better(first, second)
    one, other, both = (_METHODS[name](losses) for losses in (first, second, difference(first, second)))
    if np.any(one.spread.estimate <= 0):
        raise ValueError(
            f"expected errors of the first learner above 0 to divide by, got {np.min(one.spread.estimate):.6g}; "
            "compare the difference, or give the other learner first"
        )
    t = scipy.stats.t.ppf((1 + level) / 2 if alternative == "two-sided" else level, one.spread.df)
    ratio, error, (lower, upper) = _fieller(one, other, both, float(t))
    # The variance of l2 - r l1 is a difference, so where all rows have one ratio its root is rounding of 1e-8.
    unknown, flat = np.isnan(lower), error * one.spread.estimate <= 1e-6 * other.spread.standard_error
    lower, upper = np.where(flat, np.nan, lower), np.where(flat, np.nan, upper)
    note = joined(
        *(
            f"{trouble} in {int(where.sum())} of {where.size} data sets, so there are no limits"
            for trouble, where in (
                (f"the error of {first.name} is not told apart from 0", unknown),
                ("all rows have one ratio, which is no certainty,", flat),
            )
            if where.any()
        )
    )
    return described(
        f"Fieller's interval of an error ratio, {name.replace('_', ' ')}",
        "Fieller 1954",
        "the ratio of the expected errors for training sets of this size",
        f"{first.unit}, ratio",
        f"{second.name} over that of {first.name}",
        ratio,
        error,
        one.spread.df,
        np.where(np.isnan(lower), np.nan, -np.inf) if alternative == "less" else lower,
        np.where(np.isnan(upper), np.nan, np.inf) if alternative == "greater" else upper,
        level=level,
        alternative=alternative,
        note=joined(note, one.note, dropped(first)),
    )


def skill_score(reference: Losses, learner: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """The share of the error of a reference that a learner saves, 1 - G / G_reference, with Fieller's interval
    (Murphy 1988, "Skill scores based on the mean square error").

    With the mean as the reference and squared loss it is the coefficient of determination out of sample.

    Args:
      reference, learner: losses of two learners on one plan, [*Q, R].
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q], without unit: 1 is no error, 0 as good as the reference, below 0 worse.
    Raises:
      ValueError, TypeError: as `error_ratio`.
    """
    require_alternative(alternative)
    mirrored = {"greater": "less", "less": "greater"}.get(alternative, alternative)
    ratio = error_ratio(reference, learner, level=level, alternative=mirrored)
    return replace(
        ratio,
        method=ratio.method.replace("an error ratio", "a skill score"),
        source="Murphy 1988; Fieller 1954",
        target="the share of the reference's expected error that is saved, for training sets of this size",
        unit=f"{reference.unit}, skill",
        learner=f"{learner.name} against {reference.name}",
        estimate=np.asarray(1 - ratio.estimate),
        lower=np.asarray(1 - ratio.upper),
        upper=np.asarray(1 - ratio.lower),
        alternative=alternative,
    )


def _fieller(
    one: Estimate, other: Estimate, both: Estimate, t: float
) -> tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"], tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]]]:
    """The ratio, its standard error by the delta method, and the roots r of (m2 - r m1)^2 = t^2 (v22 - 2 r v12 + r^2
    v11), [*Q] each; NaN where these are not an interval.
    """
    m1, m2 = one.spread.estimate, other.spread.estimate
    v11, v22, v = (np.square(each.spread.standard_error) for each in (one, other, both))
    v12 = (v11 + v22 - v) / 2
    a, b, c = np.square(m1) - t**2 * v11, m1 * m2 - t**2 * v12, np.square(m2) - t**2 * v22
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(np.where(a > 0, np.maximum(np.square(b) - a * c, 0), np.nan))
        limits = (b - root) / a, (b + root) / a
    ratio = m2 / m1
    error = np.sqrt(np.maximum(v22 - 2 * ratio * v12 + np.square(ratio) * v11, 0)) / m1
    return np.asarray(ratio), np.asarray(error), (np.asarray(limits[0]), np.asarray(limits[1]))
