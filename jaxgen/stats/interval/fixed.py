"""Intervals for the risk of one trained model, from its losses on cases that it was not trained on."""

from typing import Any, NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from jaxgen.stats.checks import as_numbers, require_alternative, require_draws, require_level, require_losses
from jaxgen.stats.rows import cases_of_row
from jaxgen.stats.spread import Spread, bootstrapped, dropped, independent, joined
from jaxgen.types import Losses
from jaxgen.types.numbers import require_one_of
from jaxgen.types.result import Result, described

Cases = Losses | Float[np.ndarray, "*Q N"]
"""Losses of one row, whose test cases are used, or the losses [*Q, N] of N independent test cases themselves."""

KINDS = ("percentile", "basic", "bca", "studentised")


def wald(losses: Cases, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """Error rate p with limits p -+ z sqrt(p (1 - p) / N) (Scott & Variyam, "Confidence Intervals").

    It covers too little where N is small or p near 0 or 1, its limits may lie outside [0, 1], and without any error it
    is [0, 0]: a negative control. Use `wilson`.

    Args:
      losses: losses of 0 and 1, of one row or [*Q, N].
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q].
    Raises:
      ValueError: a loss that is neither 0 nor 1, several rows, failed rows, rows tested on cases that they were
        trained on, or a level or alternative out of range.
      TypeError: neither losses nor numbers.
    """
    cases = _tested(losses, "wald")
    rate = _rate(cases)
    spread = Spread(rate, np.asarray(np.sqrt(rate * (1 - rate) / cases.values.shape[-1])), np.inf)
    return _result(
        cases,
        ("Wald interval", "Scott & Variyam"),
        spread,
        spread.limits(level, alternative),
        level,
        alternative,
        "it covers too little where cases or errors are few; use wilson",
    )


def wilson(losses: Cases, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """Error rate with the limits at which a z-test of the rate would just reject (Wilson 1927, "Probable inference").

    (p + z^2 / 2N -+ z sqrt(p (1 - p) / N + z^2 / 4N^2)) / (1 + z^2 / N), by SciPy.

    Args:
      losses: losses of 0 and 1, of one row or [*Q, N].
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q]; no standard error, as the interval is not symmetric.
    Raises:
      ValueError: as `wald`.
      TypeError: neither losses nor numbers.
    """
    return _binomial(losses, "wilson", ("Wilson interval", "Wilson 1927"), level, alternative)


def clopper_pearson(losses: Cases, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """Error rate with limits that never cover too little (Clopper & Pearson 1934): quantiles of beta laws, by SciPy.

    Args:
      losses: losses of 0 and 1, of one row or [*Q, N].
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q]; no standard error, as the interval is not symmetric. Without errors the lower limit is 0, without
      successes the upper one 1.
    Raises:
      ValueError: as `wald`.
      TypeError: neither losses nor numbers.
    """
    return _binomial(losses, "exact", ("exact interval", "Clopper & Pearson 1934"), level, alternative)


def t(losses: Cases, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """Mean loss -+ t S / sqrt(N), with N - 1 degrees of freedom (Student 1908).

    Args:
      losses: of one row or [*Q, N], N at least 2.
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q]; the limits are the mean itself where all losses are equal.
    Raises:
      ValueError: fewer than 2 test cases, several rows, failed rows, rows tested on cases that they were trained on,
        or a level or alternative out of range.
      TypeError: neither losses nor numbers.
    """
    cases = _tested(losses, "t", least=2)
    spread = independent(cases.values)
    describe = ("t interval of the mean loss", "Student 1908")
    return _result(cases, describe, spread, spread.limits(level, alternative), level, alternative)


def bootstrap(
    losses: Cases,
    *,
    kind: str = "bca",
    level: float = 0.95,
    alternative: str = "two-sided",
    resamples: int = 9999,
    seed: int = 0,
) -> Result:
    """Mean loss with bootstrap limits (Efron 1987, "Better bootstrap confidence intervals"; Hall 1988), by SciPy.

    "percentile": quantiles of the means of resamples; "basic": the same, mirrored at the mean; "bca": quantiles
    corrected for bias and acceleration; "studentised": quantiles of (mean of resample - mean) / (S of resample /
    sqrt(N)). All data sets share the resamples.

    Args:
      losses: of one row or [*Q, N], N at least 2.
      kind: "percentile", "basic", "bca" or "studentised".
      resamples: bootstrap samples of the test cases; (1 - level) / 2 times their number should be 100 or more.
      seed: of NumPy's generator; the same seed gives the same limits.
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q], its standard error S / sqrt(N); the limits are the mean itself where all losses are equal. A
      studentised limit is infinite where too many resamples hold one value only, as with losses of 0 and 1 and few
      errors.
    Raises:
      ValueError: as `t`; an unknown kind, fewer than 2 resamples, a negative seed, or losses for which BCa has no
        limits.
      TypeError: neither losses nor numbers.
    """
    require_one_of("kind", kind, KINDS)
    require_level(level)
    require_alternative(alternative)
    cases = _tested(losses, "bootstrap", least=2)
    require_draws(resamples, seed, 2, cases.sets)
    spread = independent(cases.values)
    settings = (resamples, seed, level, alternative)
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # of data without spread, whose limits are documented, or refused
        limits = (
            _studentised(cases.values, spread, *settings)
            if kind == "studentised"
            else bootstrapped(cases.values, np.mean, kind, *settings).confidence_interval
        )
    flat = spread.standard_error == 0
    lower, upper = (np.where(flat & ~np.isinf(end), spread.estimate, end) for end in limits)
    none = int((np.isnan(lower) | np.isnan(upper)).sum())
    if none:
        raise ValueError(
            f"expected losses whose resamples have means on both sides of the mean, got {none} data sets "
            "without, for which BCa has no limits; use kind='percentile' or t"
        )
    name = {"bca": "BCa", "studentised": "studentised"}.get(kind, kind)
    source = {"percentile": "Efron 1979", "basic": "Hall 1988", "bca": "Efron 1987", "studentised": "Hall 1988"}[kind]
    describe = (f"{name} bootstrap of the mean loss", source)
    return _result(cases, describe, spread._replace(df=np.nan), (lower, upper), level, alternative)


class _Tested(NamedTuple):
    """Losses [*Q, n] of the test cases of one model, and what to say of them."""

    values: Float[np.ndarray, "*Q n"]
    unit: str
    learner: str
    target: str
    note: str

    @property
    def sets(self) -> int:
        """Data sets, Q; 1 where there is no such axis."""
        return max(1, self.values[..., 0].size)


def _tested(losses: Cases, method: str, least: int = 1) -> _Tested:
    """The test cases, at least so many."""
    cases = (
        _of_row(losses, method)
        if isinstance(losses, Losses)
        else _Tested(as_numbers("losses", losses), "loss", "", "R of the given model", "")
    )
    shape = cases.values.shape
    if not shape or shape[-1] < least or not np.isfinite(cases.values).all():
        trouble = "one that is not finite" if shape and shape[-1] >= least else f"shape {list(shape)}"
        raise ValueError(
            f"expected finite losses [*Q, N] of at least {least} test case{'s' * (least > 1)} for "
            f"{method}, got {trouble}; test on more cases, or leave out what is not a number"
        )
    return cases


def _of_row(losses: Losses, method: str) -> _Tested:
    """The test cases of the only row."""
    require_losses(losses)
    if losses.resamples != 1:
        remedy = "take a plan of one split, or a method of jaxgen.stats.interval for resampled rows"
        raise ValueError(
            f"expected one row, tested on cases of its own, for {method}, got {losses.resamples} "
            f"({losses.plan.scheme}); {remedy}"
        )
    target = f"R of the model trained on the {int(losses.plan.train_sizes.flat[0])} training cases"
    return _Tested(cases_of_row(losses), losses.unit, losses.name, target, dropped(losses))


def _rate(cases: _Tested) -> Float[np.ndarray, "*Q"]:
    other = cases.values[~np.isin(cases.values, (0, 1))]
    if other.size:
        raise ValueError(
            f"expected losses of 0 and 1 for an error rate, got {other[0]:.6g} ({cases.unit}); "
            "use the loss zero_one, or t for other losses"
        )
    return np.asarray(cases.values.mean(-1))


def _binomial(losses: Cases, scipy_name: str, describe: tuple[str, str], level: float, alternative: str) -> Result:
    """An interval that depends on the number of errors only; each number is worked out once."""
    require_level(level)
    require_alternative(alternative)
    cases = _tested(losses, describe[0])
    rate, n = _rate(cases), cases.values.shape[-1]
    errors, where = np.unique(np.rint(rate * n).astype(int), return_inverse=True)
    ends = np.array(
        [scipy.stats.binomtest(int(k), n, alternative=alternative).proportion_ci(level, scipy_name) for k in errors]
    )
    limits = (np.asarray(ends[where.reshape(rate.shape), side]) for side in (0, 1))
    return _result(cases, describe, Spread(rate, np.full_like(rate, np.nan), np.nan), limits, level, alternative)


def _studentised(
    cases: Float[np.ndarray, "*Q N"], spread: Spread, resamples: int, seed: int, level: float, alternative: str
):
    """Limits mean - quantile * S / sqrt(N), each [*Q], of the quantiles of the pivot."""

    def pivot(sample, axis):
        mean, error = sample.mean(axis), sample.std(axis, ddof=1) / np.sqrt(sample.shape[axis])
        difference = mean - (spread.estimate[..., None] if mean.ndim > spread.estimate.ndim else spread.estimate)
        return np.where(difference == 0, 0.0, difference / error)

    law = bootstrapped(cases, pivot, "percentile", resamples, seed, level).bootstrap_distribution
    tail = (1 - level) / 2 if alternative == "two-sided" else 1 - level
    low, high = (np.quantile(law, share, axis=-1, method="inverted_cdf") for share in (tail, 1 - tail))
    reach = [np.where(spread.standard_error > 0, end * spread.standard_error, 0.0) for end in (high, low)]
    lower = np.full_like(spread.estimate, -np.inf) if alternative == "less" else spread.estimate - reach[0]
    upper = np.full_like(spread.estimate, np.inf) if alternative == "greater" else spread.estimate - reach[1]
    return lower, upper


def _result(
    cases: _Tested,
    describe: tuple[str, str],
    spread: Spread,
    limits: Any,
    level: float,
    alternative: str,
    note: str = "",
) -> Result:
    about = (*describe, cases.target, cases.unit, cases.learner)
    note = joined(note, cases.note)
    return described(*about, *spread, *limits, level=level, alternative=alternative, note=note)
