"""Prediction intervals of a regression: from the rows that leave each case out, or from one split."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from jaxgen.stats.checks import require_alternative, require_finite, require_level
from jaxgen.stats.conformal.designs import (
    EXCHANGEABLE,
    about_folds,
    checked,
    each_set,
    of_folds,
    rank,
    rows_of_cases,
    rows_of_folds,
    rows_without,
    the_row,
    too_few,
)
from jaxgen.stats.conformal.found import PredictionIntervals
from jaxgen.types import Predicted
from jaxgen.types.numbers import require_one_of

_NUMBERS = 1 << 22
"""Predictions that are put in order at once, tens of MB."""


class _LeftOut(NamedTuple):
    """Predictions by rows that leave a case out, of one data set.

    Attributes:
      error: target minus such a prediction, of each of n cases, [n, K].
      new: of some new cases, a slice of M, by the rows that leave each case out, [n, m, K]; [1, m, K] if all have one.
      prediction: what stands in the middle, [M, K].
    """

    error: Float[np.ndarray, "n K"]
    new: Callable[[slice], Float[np.ndarray, "rows m K"]]
    prediction: Float[np.ndarray, "M K"]


def jackknife_plus(predicted: Predicted, *, level: float = 0.95, alternative: str = "two-sided") -> PredictionIntervals:
    """The jackknife+ (Barber, Candes, Ramdas & Tibshirani 2021, "Predictive inference with the jackknife+").

    With R_i = |y_i - mu_-i(x_i)|, the limits for x are the floor(alpha (n + 1))-th smallest of mu_-i(x) - R_i and the
    ceil((1 - alpha)(n + 1))-th smallest of mu_-i(x) + R_i, for each output by itself; alpha is 1 - level. They cover a
    new case with a probability of at least 1 - 2 alpha (theorem 1), usually near 1 - alpha. A one-sided limit takes the
    errors with their sign, for which the same proof holds.

    Args:
      predicted: what every row predicts, new [*Q, R, M, K], of a plan that leaves out one case at a time
        (`resample.leave_one_out`).
      level: 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      PredictionIntervals [*Q, M, K].
    Raises:
      TypeError: no predictions.
      ValueError: a classification, failed rows, groups or a series, rows that are not leave-one-out, or a level or
        alternative out of range.
    """
    what = "the jackknife+"
    each = list(_by_one_row(predicted, rows_of_cases, what))
    describe = ("jackknife+", "Barber, Candes, Ramdas & Tibshirani 2021", max(0.0, 2 * _number(level) - 1))
    return _intervals(predicted, each, describe, EXCHANGEABLE, level, alternative)


def jackknife_minmax(
    predicted: Predicted, *, level: float = 0.95, alternative: str = "two-sided"
) -> PredictionIntervals:
    """The jackknife-minmax (Barber, Candes, Ramdas & Tibshirani 2021), which is wider than the jackknife+.

    The limits for x are min_i mu_-i(x) - q and max_i mu_-i(x) + q, with q the ceil((1 - alpha)(n + 1))-th smallest of
    |y_i - mu_-i(x_i)|. They cover a new case with a probability of at least 1 - alpha (theorem 3).

    Args:
      predicted, level, alternative: as for `jackknife_plus`.
    Returns:
      PredictionIntervals [*Q, M, K].
    Raises:
      TypeError, ValueError: as for `jackknife_plus`.
    """
    each = list(_by_one_row(predicted, rows_of_cases, "the jackknife-minmax"))
    describe = ("jackknife-minmax", "Barber, Candes, Ramdas & Tibshirani 2021", _number(level))
    return _intervals(predicted, each, describe, EXCHANGEABLE, level, alternative, one_error=True)


def cv_plus(predicted: Predicted, *, level: float = 0.95, alternative: str = "two-sided") -> PredictionIntervals:
    """CV+ (Barber, Candes, Ramdas & Tibshirani 2021): the jackknife+ with K folds in place of single cases.

    The prediction without case i is that of the row which leaves out the fold of case i. The intervals cover a new case
    with a probability of at least 1 - 2 alpha - min(2 (1 - 1/K) / (n/K + 1), (1 - K/n) / (K + 1)) (theorem 4), which is
    at least 1 - 2 alpha - sqrt(2/n); it is proven for folds of one size that were divided at random.

    Args:
      predicted: what every row predicts, new [*Q, R, M, K], of one division into folds (`resample.k_fold`), of which
        leave-one-out is the finest.
      level: 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      PredictionIntervals [*Q, M, K].
    Raises:
      TypeError: no predictions.
      ValueError: a classification, failed rows, groups or a series, rows that are not one division into folds, or a
        level or alternative out of range.
    """
    each = list(_by_one_row(predicted, rows_of_folds, "CV+"))
    plan = predicted.plan
    promised = of_folds(plan.n, plan.resamples, _number(level))
    describe = ("CV+", "Barber, Candes, Ramdas & Tibshirani 2021", promised)
    return _intervals(predicted, each, describe, f"{EXCHANGEABLE}{about_folds(plan)}", level, alternative)


def jackknife_plus_after_bootstrap(
    predicted: Predicted, *, aggregate: str = "mean", level: float = 0.95, alternative: str = "two-sided"
) -> PredictionIntervals:
    """The jackknife+-after-bootstrap (Kim, Xu & Barber 2020, "Predictive inference is free with the
    jackknife+-after-bootstrap", algorithm 2).

    The prediction without case i is the mean, or the median, of the rows that do not train on case i; limits are made
    of these as by the jackknife+. They cover a new case with a probability of at least 1 - 2 alpha if the number of
    rows was itself drawn, from the binomial law of B trials with probability (1 - 1/(n + 1))^m, or 1 - m/(n + 1) for
    samples without replacement, m the size of the samples (theorem 1); with a fixed number of rows, the usual case,
    nothing is proven without more assumptions (theorem 2), and little is lost in practice.

    Args:
      predicted: what every row predicts, new [*Q, R, M, K], of random samples of one size (`resample.bootstrap`,
        `resample.leave_out`), so many that some row leaves each case out.
      aggregate: "mean" or "median".
      level: 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      PredictionIntervals [*Q, M, K]; its prediction is the aggregate of all rows.
    Raises:
      TypeError: no predictions.
      ValueError: a classification, failed rows, groups or a series, folds, rows of several sizes, a case that every
        row trains on, or an aggregate, level or alternative out of range.
    """
    require_one_of("aggregate", aggregate, ("mean", "median"))
    what = "the jackknife+-after-bootstrap"
    each = [_aggregated(one, aggregate, what) for one in each_set(checked(predicted, "regression", what))]
    method = f"jackknife+-after-bootstrap, {aggregate} of {predicted.resamples} rows"
    describe = (method, "Kim, Xu & Barber 2020", max(0.0, 2 * _number(level) - 1))
    assumed = f"{EXCHANGEABLE}, and a number of rows drawn from a binomial law (a fixed number comes near)"
    return _intervals(predicted, each, describe, assumed, level, alternative)


def split(
    predicted: Predicted, *, row: int | None = None, level: float = 0.95, alternative: str = "two-sided"
) -> PredictionIntervals:
    """Split conformal prediction (Papadopoulos et al. 2002, "Inductive confidence machines"; Lei et al. 2018,
    "Distribution-free predictive inference for regression", algorithm 2).

    The prediction of one row, and on both sides of it the ceil((1 - alpha)(n + 1))-th smallest of |y_i - mu(x_i)| over
    the n cases that the row holds out. It covers a new case with a probability of at least 1 - alpha, and of at most
    1 - alpha + 1 / (n + 1) where errors are never equal.

    Args:
      predicted: what every row predicts, new [*Q, R, M, K].
      row: the number of the row to use; None takes the only row of a plan.
      level: 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      PredictionIntervals [*Q, M, K].
    Raises:
      TypeError: no predictions.
      ValueError: a classification, failed rows, groups or a series, test cases that the row trains on, no such row, or
        none chosen of several; or a level or alternative out of range.
    """
    what = "split conformal prediction"
    each = []
    for one in each_set(checked(predicted, "regression", what)):
        chosen, cases = the_row(one, row)
        error, new = one.y[cases] - one.cases[chosen, cases], one.new[chosen].astype(np.float64)
        each.append(_LeftOut(error, lambda part, new=new: new[None, part], new))
    describe = ("split conformal", "Lei, G'Sell, Rinaldo, Tibshirani & Wasserman 2018", _number(level))
    return _intervals(predicted, each, describe, EXCHANGEABLE, level, alternative, one_error=True)


def _number(level: Any) -> float:
    """The level, checked."""
    require_level(level)
    return float(level)


def _by_one_row(predicted: Predicted, rows_of: Callable[..., np.ndarray], what: str) -> Iterator[_LeftOut]:
    """Predictions of the one row that leaves each case out."""
    for one in each_set(checked(predicted, "regression", what)):
        row = rows_of(one.plan, what)
        error = one.y - one.cases[row, np.arange(one.plan.n)]
        yield _LeftOut(
            error,
            lambda part, new=one.new, row=row: new[:, part][row],
            np.median(one.new[row].astype(np.float64), axis=0),
        )


def _aggregated(one: Predicted, aggregate: str, what: str) -> _LeftOut:
    """Means or medians of the rows that leave each case out."""
    left_out = rows_without(one.plan, what)
    new, cases = (values.astype(np.float64) for values in (one.new, one.cases))
    share = left_out / left_out.sum(0)
    if aggregate == "mean":
        own = np.einsum("rn,rnk->nk", share, np.where(left_out[..., None], cases, 0))
    else:
        own = np.stack([np.median(cases[rows, case], axis=0) for case, rows in enumerate(left_out.T)])

    def of_new(part: slice) -> Float[np.ndarray, "n m K"]:
        some = new[:, part]
        if aggregate == "mean":
            return np.tensordot(share.T, some, 1)
        return np.stack([np.median(some[rows], axis=0) for rows in left_out.T])

    return _LeftOut(one.y - own, of_new, getattr(np, aggregate)(new, axis=0))


def _intervals(
    predicted: Predicted,
    each: list[_LeftOut],
    describe: tuple[str, str, float],
    assumptions: str,
    level: float,
    alternative: str,
    one_error: bool = False,
) -> PredictionIntervals:
    """The limits of every data set with what describes them."""
    require_alternative(alternative)
    for one in each:
        require_finite("errors of the cases that rows leave out", one.error, "give predictions of these cases")
    found = [np.stack(_limits(one, level, alternative, one_error)) for one in each]
    limits = found[0][:, None] if predicted.sets is None else np.stack(found, axis=1)
    middle = np.stack([one.prediction.astype(np.float64) for one in each])
    lower, upper, middle = (a[0] if predicted.sets is None else a for a in (*limits, middle))
    n = min(len(one.error) for one in each)
    notes = [
        too_few(level, n),
        f"{predicted.dropped} failed rows were left out" if predicted.dropped else "",
        "each output by itself: all of them together are covered less often" if lower.shape[-1] > 1 else "",
    ]
    method, source, guarantee = describe
    return PredictionIntervals(
        method=method,
        source=source,
        target="the targets of new cases",
        unit=predicted.target,
        note="; ".join(note for note in notes if note),
        learner=predicted.learner,
        prediction=middle,
        lower=lower,
        upper=upper,
        level=float(level),
        alternative=alternative,
        guarantee=guarantee,
        assumptions=assumptions,
        calibrated=n,
    )


def _limits(
    one: _LeftOut, level: float, alternative: str, one_error: bool
) -> tuple[Float[np.ndarray, "M K"], Float[np.ndarray, "M K"]]:
    """Lower and upper limits [M, K] of one data set."""
    error = np.abs(one.error) if alternative == "two-sided" else one.error
    down = -error if alternative == "two-sided" else error
    lower, upper = np.full(one.prediction.shape, -np.inf), np.full(one.prediction.shape, np.inf)
    m, step = len(lower), max(1, _NUMBERS // error.size)
    for part in (slice(first, min(first + step, m)) for first in range(0, m, step)):
        new = one.new(part)
        if alternative != "greater":
            upper[part] = _largest(new, error, level, one_error)
        if alternative != "less":
            lower[part] = -_largest(-new, -down, level, one_error)
    return lower, upper


def _largest(
    new: Float[np.ndarray, "rows m K"], error: Float[np.ndarray, "n K"], level: float, one_error: bool
) -> Float[np.ndarray, "m K"]:
    """The upper limit [m, K]: the ceil(level (n + 1))-th smallest of prediction plus error; for `one_error` that of the
    errors alone, added to the largest prediction.
    """
    if one_error:
        return new.max(0) + _at_rank(error, level)
    return _at_rank(new + error[:, None], level)


def _at_rank(values: Float[np.ndarray, "n *m"], level: float) -> Float[np.ndarray, "*m"]:
    """The ceil(level (n + 1))-th smallest along the first axis, [*m]; infinite where there are too few."""
    place = rank(level, len(values))
    if place > len(values):
        return np.full(values.shape[1:], np.inf)
    return np.partition(values, place - 1, axis=0)[place - 1]
