"""How many cases an interval of a given width, or a test of a given power, would take: from the standard error that was
measured on the cases at hand.

Both parts of that variance, of the cases that are tested and of the models that are trained, fall as 1/n for stable
learners if the plan leaves out the same share, so that n grows as the square of what is asked for.
"""

from typing import Any

import numpy as np
import scipy
from jaxtyping import Float

from jaxgen.stats import compare, interval
from jaxgen.stats.checks import require_alternative, require_level, require_losses
from jaxgen.types import Losses
from jaxgen.types.numbers import require_number
from jaxgen.types.result import Result, described

ASSUMED = "taken for granted: the standard error falls as 1/sqrt(n), as for a stable learner and the same kind of plan"


def cases_for_width(losses: Losses, width: float, *, level: float = 0.95) -> Result:
    """The number of cases at which the recommended interval would have a width, n (w_now / w)^2.

    The limits are those of the number itself, 95 % or as `level` says, from the chi-squared law of the variance that
    was measured: they show how little a few rows know of it.

    Args:
      losses: of a pilot, [*Q, R], on a plan that `interval.recommend` has an interval for.
      width: upper minus lower limit, in the unit of the loss, above 0.
      level: confidence level of both, 0 < level < 1.
    Returns:
      Result [*Q], in cases; part "width" is that of the pilot, "cases" its number of cases.
    Raises:
      ValueError: a width that is not above 0, losses without spread, or what `interval.recommend` refuses.
      TypeError: no losses.
    """
    require_losses(losses)
    require_number("width", width, above=0, advice="give the width that you want, in the unit of the loss")
    now = interval.recommend(losses, level=level)
    reach = np.asarray((now.upper - now.lower) / 2)
    _require_error(reach, now.method)
    needed = np.asarray(losses.plan.n * np.square(2 * reach / width))
    return _result("cases for a width", "Cochran 1977, section 4.6", losses, now, needed, level, {"width": 2 * reach})


def cases_for_power(
    first: Losses,
    second: Losses,
    difference: float,
    *,
    power: float = 0.8,
    level: float = 0.95,
    alternative: str = "two-sided",
) -> Result:
    """The number of cases at which the recommended test would find a difference with a probability, by the noncentral
    t law.

    Give the difference that would matter; the difference that a pilot happened to find makes the number as uncertain
    as that is.

    Args:
      first, second: losses of two learners in a pilot, [*Q, R], on a plan that `compare.recommend` has a t-test for.
      difference: of the expected errors, in the unit of the loss, not 0.
      power: probability to find it, 0 < power < 1.
      level: the test is at 1 - level, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Result [*Q], in cases, with limits from the chi-squared law of the variance; parts "power" of the pilot for this
      difference, and "cases", its number of cases.
    Raises:
      ValueError: a difference of 0 or of the sign that the alternative excludes, a power that the test has already at
        a difference of 0, losses without spread, a test without a standard error, or what `compare.recommend` refuses.
      TypeError: no losses.
    """
    require_losses(first, second)
    require_level(level)
    require_alternative(alternative)
    require_number("power", power, above=1 - level, below=1, advice="give 0.8 for 80 %")
    require_number("difference", difference, advice="give the difference that matters, in the unit of the loss")
    if difference == 0 or difference * {"greater": 1, "less": -1}.get(alternative, difference) <= 0:
        raise ValueError(
            f"expected a difference that the alternative {alternative!r} is about, got {difference:.6g}; give one "
            "above 0 for greater, below 0 for less, and not 0"
        )
    now = compare.recommend(first, second, level=level, alternative=alternative)
    _require_error(now.standard_error, now.method)
    shift = np.abs(difference) / now.standard_error
    df = np.broadcast_to(now.df, np.shape(shift))
    wanted = np.reshape([_shift_for(power, float(d), level, alternative) for d in df.ravel()], df.shape)
    needed = np.asarray(first.plan.n * np.square(wanted * now.standard_error / difference))
    parts = {"power": _power(np.asarray(shift), df, level, alternative)}
    return _result("cases for a power", "noncentral t law: Johnson & Welch 1940", first, now, needed, level, parts)


def _require_error(error: Float[np.ndarray, "*Q"], method: str) -> None:
    """ValueError unless a method has a standard error, or half a width, [*Q], above 0."""
    if not np.all(np.isfinite(error) & (error > 0)):
        raise ValueError(
            f"expected losses that vary, and a method with a standard error, got {method} without; use random splits "
            "or folds, and losses that differ"
        )


def _result(
    method: str, source: str, losses: Losses, now: Result, needed: Float[np.ndarray, "*Q"], level: float, parts: dict
) -> Result:
    """The number with its limits."""
    df = np.where(np.isfinite(now.df), now.df, losses.plan.n)
    tails = scipy.stats.chi2.ppf([(1 + level) / 2, (1 - level) / 2], np.expand_dims(df, -1))
    return described(
        method,
        source,
        f"the number of cases for the {now.method}, n = {losses.plan.n} at hand",
        "cases",
        now.learner,
        needed,
        lower=needed * df / tails[..., 0],
        upper=needed * df / tails[..., 1],
        level=level,
        parts=parts | {"cases": np.full(needed.shape, losses.plan.n)},
        note=ASSUMED,
    )


def _power(
    shift: Float[np.ndarray, "*Q"], df: Float[np.ndarray, "*Q"], level: float, alternative: str
) -> Float[np.ndarray, "*Q"]:
    """Power of a t-test against a shift of so many standard errors, in the direction that is asked for."""
    two_sided = alternative == "two-sided"
    critical = scipy.stats.t.ppf((1 + level) / 2 if two_sided else level, df)
    law, normal = scipy.stats.nct(np.where(np.isinf(df), 1.0, df), shift), scipy.stats.norm(shift)
    above, below = (
        np.where(np.isinf(df), of_normal, of_t)
        for of_normal, of_t in ((normal.sf(critical), law.sf(critical)), (normal.cdf(-critical), law.cdf(-critical)))
    )
    # Far in its tail the noncentral t law of SciPy has no number; the power is 1 there.
    return np.asarray(np.nan_to_num(above + (below if two_sided else 0), nan=1.0))


def _shift_for(power: float, df: float, level: float, alternative: str) -> float:
    """The shift, in standard errors, that is found with this power."""

    def missing(shift: float) -> float:
        return float(_power(np.asarray(shift), np.asarray(df), level, alternative)) - power

    above = 1.0
    while missing(above) < 0:
        above *= 2
    shift: Any = scipy.optimize.brentq(missing, 1e-9, above)
    return float(shift)
