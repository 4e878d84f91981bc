"""Estimates of the prediction error from the losses of one learner: apparent, hold-out, cross-validation, and
quantiles of p(G).

Each returns a `Result` that names what it is about. Intervals with a level that holds are another matter: these
estimates have standard errors at most.
"""

import numpy as np
import scipy
from jaxtyping import Float

from jaxgen.stats.checks import require_level, require_losses
from jaxgen.stats.design import dependent, divisions, not_folds
from jaxgen.stats.estimate.distribution import ecdf
from jaxgen.stats.rows import held_out, span, tested, within
from jaxgen.stats.spread import all_pairs, dropped, joined
from jaxgen.types import Losses, Plan
from jaxgen.types.result import Result, described


def apparent(losses: Losses) -> Result:
    """The mean loss on the cases trained on, weighted as in training, averaged over the rows (Efron 1983, "Estimating
    the error rate of a prediction rule").

    Args:
      losses: of any plan, [*Q, R]; that of `resample.full` gives the apparent error of the full fit.
    Returns:
      Result, [*Q], without a standard error.
    Raises:
      ValueError: a failed row, or losses of predictions for test cases only.
      TypeError: no losses.
    """
    require_losses(losses)
    note = (
        "the cases were trained on, so this is below the error on new cases where the learner fits "
        "its training cases closely"
    )
    return described(
        "apparent error",
        "Efron 1983",
        "the loss on the training cases",
        losses.unit,
        losses.name,
        np.asarray(losses.apparent.mean(-1), np.float64),
        note=joined(note, dropped(losses)),
    )


def hold_out(losses: Losses) -> Result:
    """The mean loss on the cases held out, averaged over the rows, with the standard error of a single hold-out.

    A row with n2 test cases, whose losses have the standard deviation s (divisor n2 - 1), has the standard error s /
    sqrt(n2) as an estimate of the risk of the model that it trained. Of several rows the root of the mean square is
    given. It is an upper limit for their mean as an estimate of the mean risk of the R models: the variance of a mean
    is at most the mean of the variances, whatever the rows share (derived).

    Args:
      losses: of a plan that tests no case it was trained on, and none twice in a row, [*Q, R, N].
    Returns:
      Result, [*Q]; the standard error is NaN where a row has a single test case or cases depend on each other, and 0,
      to rounding, where the losses of each row are equal.
    Raises:
      ValueError: a failed row, losses without cases, or test cases that were trained on or count more than once.
      TypeError: no losses.
    """
    require_losses(losses)
    variance, plan = within(held_out(losses), losses.plan), losses.plan
    n1, rows = span(plan.train_sizes), losses.resamples
    target = (
        f"the risk of the model trained on {n1} cases"
        if rows == 1
        else f"the mean risk of the {rows} models trained on {n1} cases"
    )
    note = (
        "" if rows == 1 else "the standard error is that of a single hold-out, an upper limit for the mean of several"
    )
    describe = ("hold-out", "Larsen & Hansen 1995, eq. 7", target, losses.unit, losses.name)
    single = np.asarray(np.sqrt((variance / plan.test_sizes).mean(-1)))
    error, note = _if_independent(plan, single, note)
    return described(*describe, losses.g.mean(-1), error, note=joined(note, dropped(losses)))


def cross_validation(losses: Losses) -> Result:
    """K-fold, repeated K-fold or leave-one-out cross-validation (Stone 1974): the mean over all cases of the loss of a
    model not trained on the case.

    The standard error is that of the cross-validation central limit theorem with all pairs of cases (Bayle et al.
    2020): the root of 1/N^2 sum_i (l_i - mean)^2. With repeats l_i is the mean over them of the loss of case i
    (derived: each repeat has the same limit). The tutorial of Michelucci & Venturini 2021 takes average and standard
    deviation of the rows instead (Algorithms 2 and 3): these are among the `parts`.

    Args:
      losses: of a plan whose rows are folds, repeat after repeat, [*Q, R, N].
    Returns:
      Result, [*Q]; parts "folds", "repeats", "average of rows" (equal to the estimate for folds of equal size) and
      "std of rows" (divisor R - 1). The standard error is NaN where cases depend on each other: groups, series.
    Raises:
      ValueError: a failed row, losses without cases, or a plan whose rows are no folds.
      TypeError: no losses.
    """
    require_losses(losses)
    values = held_out(losses)
    if trouble := not_folds(losses.plan, complete=False):
        remedy = "use k_fold or leave_one_out, or estimate.hold_out for other splits"
        raise ValueError(
            f"expected folds that test every case once in each repeat, got {losses.plan.scheme}: {trouble}; {remedy}"
        )
    repeats = int(divisions(losses.plan).max()) + 1
    folds = losses.resamples // repeats
    spread = all_pairs(tested(values, losses.plan))
    name = "leave-one-out" if folds == losses.plan.n else f"{folds}-fold"
    shape = spread.estimate.shape
    parts = {
        "folds": np.full(shape, float(folds)),
        "repeats": np.full(shape, float(repeats)),
        "average of rows": np.asarray(losses.g.mean(-1), np.float64),
        "std of rows": np.asarray(losses.g.std(-1, ddof=1), np.float64),
    }
    note = (
        f"the standard error is for the mean risk of these {folds * repeats} models; "
        "it is none for ER or for R, for which it is too small where the learner is unstable or N "
        "small"
    )
    error, note = _if_independent(losses.plan, spread.standard_error, note)
    return described(
        f"{name} cross-validation" + (f", {repeats} repeats" if repeats > 1 else ""),
        "Stone 1974; standard error: Bayle et al. 2020",
        "the k-fold test error",
        losses.unit,
        losses.name,
        spread.estimate,
        error,
        parts=parts,
        note=note,
    )


def quantile(losses: Losses, p: float, *, level: float = 0.95) -> Result:
    """A quantile of p(G) over the splits, with an interval from order statistics that holds for any p(G) (Conover
    1999, "Practical nonparametric statistics", 3.2).

    The estimate is the smallest G that a share p of the rows does not exceed. Of the R sorted values the l-th and the
    u-th are the limits, with the largest l for which P(B < l) and the smallest u for which P(B >= u) are at most (1 -
    level) / 2, where B is binomial (R, p). It covers with probability `level` or more.

    Args:
      losses: of splits drawn independently, as by `resample.leave_out` or `resample.bootstrap`, [*Q, R].
      p: share, 0 <= p <= 1.
      level: confidence level, 0 < level < 1.
    Returns:
      Result, [*Q]; a limit is infinite where R is too small for it; parts "p" and "coverage", the exact probability to
      cover if p(G) is continuous.
    Raises:
      ValueError: a failed row, fewer than 2 rows, or a share or level out of range.
      TypeError: no losses.
    """
    require_losses(losses)
    require_level(level)
    function = ecdf(losses)
    estimate, r = function.quantile(p), losses.resamples
    law = scipy.stats.binom(r, p)
    low, high = int(law.ppf((1 - level) / 2)), int(law.isf((1 - level) / 2)) + 1
    bounded = np.concatenate(
        [np.full((*estimate.shape, 1), -np.inf), function.values, np.full((*estimate.shape, 1), np.inf)], axis=-1
    )
    coverage = law.cdf(high - 1) - law.cdf(low - 1)
    parts = {name: np.full(estimate.shape, value) for name, value in {"p": p, "coverage": coverage}.items()}
    note = (
        "the rows belong to one design and depend on one another, so the level is approximate; "
        "use leave_out or bootstrap"
        if losses.plan.labels
        else ""
    )
    note = joined(note, dropped(losses))
    target = "a quantile of p(G) over all splits of these data; other data are not covered"
    return described(
        f"{p:.4g} quantile",
        "Conover 1999",
        target,
        losses.unit,
        losses.name,
        estimate,
        lower=bounded[..., low],
        upper=bounded[..., high],
        level=level,
        parts=parts,
        note=note,
    )


def _if_independent(plan: Plan, error: Float[np.ndarray, "*Q"], note: str) -> tuple[Float[np.ndarray, "*Q"], str]:
    """A standard error that takes cases for independent, and what to say of it; NaN where the plan knows better."""
    if trouble := dependent(plan):
        return np.full_like(error, np.nan), f"no standard error: {trouble}"
    return np.asarray(error), note
