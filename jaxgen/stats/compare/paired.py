"""Tests of one learner against another on the test cases of one row: both models as they were trained, on cases that
neither has seen.
"""

import numpy as np
import scipy
from jaxtyping import Float

from jaxgen.stats.checks import require_alternative, require_draws
from jaxgen.stats.compare.comparison import (
    Comparison,
    difference,
    of_estimate,
    of_spread,
    of_test,
    of_two,
    require_same,
)
from jaxgen.stats.design import one_test_set
from jaxgen.stats.methods import on_one_test_set
from jaxgen.stats.rows import cases_of_row
from jaxgen.stats.spread import independent
from jaxgen.types import Losses
from jaxgen.types.numbers import require_one_of


@of_two
def hold_out_t(
    first: Losses, second: Losses, *, row: int | None = None, level: float = 0.95, alternative: str = "two-sided"
) -> Comparison:
    """The paired t-test over test cases (Larsen & Hansen 1995, test of the hold-out method).

    The paper rejects if the mean over its standard error is below t_alpha, the lower quantile: that is the alternative
    "less". The training set is taken as given: nothing is said about other training sets.

    Args:
      first, second: losses of two learners on one plan, with the losses of cases [*Q, R, N].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
      row: the row whose n2 test cases are used; None for a plan of one row, or of several rows that are all tested on
        the same cases, whose losses are then averaged for each case.
    Returns:
      Comparison, each number [*Q], with n2 - 1 degrees of freedom.
    Raises:
      ValueError: different plans or losses, failed rows, losses without cases, no such row, test cases that were
        trained on or count twice, different numbers of them in different data sets, fewer than 2, or an unknown
        alternative or level.
      TypeError: no losses.
    """
    require_same(first, second)
    describe = "hold-out paired t-test", "Larsen & Hansen 1995, hold-out"
    if row is None and one_test_set(first.plan):
        target = f"the difference in mean risk of the {first.resamples} models of each that were trained"
        estimate = on_one_test_set(difference(first, second))
        return of_estimate((*describe, target), first, second, estimate, alternative, level)
    cases = np.subtract(*_tested(first, second, row, least=2)[::-1])
    return of_spread((*describe, _target(first, row)), first, second, independent(cases), alternative, level)


@of_two
def mcnemar(first: Losses, second: Losses, *, kind: str = "mid-p", row: int | None = None) -> Comparison:
    """McNemar's test of two error rates on the same test cases (McNemar 1947; mid-p: Fagerland, Lydersen & Laake 2013).

    Of the m cases that one model alone gets wrong, each has probability 1/2 to be the second's under equal error
    rates. "exact" is binomial and conservative; "mid-p" counts half of the probability of what was observed; "chi2"
    and "continuity" (Edwards' correction, not below 0) are for large m. An interval of the same difference is that of
    `hold_out_t`.

    Args:
      first, second: 0-1 losses of two learners on one plan, with the losses of cases [*Q, R, N].
      kind: "mid-p", "exact", "chi2" or "continuity".
      row: the row whose test cases are used; None for a plan of one row.
    Returns:
      Comparison, each number [*Q], two-sided; the statistic is the smaller count, or chi2. p is 1 where m is 0.
    Raises:
      ValueError: see `hold_out_t`; losses other than 0 and 1, or an unknown kind.
      TypeError: no losses.
    """
    require_one_of("kind", kind, ("mid-p", "exact", "chi2", "continuity"))
    of_first, of_second = _tested(first, second, row)
    both = np.stack([of_first, of_second])
    if not np.isin(both, (0, 1)).all():
        raise ValueError(
            f"expected losses of 0 and 1 for McNemar's test, got {both[~np.isin(both, (0, 1))][0]:.6g} "
            f"({first.loss}); use the loss zero_one, or hold_out_t"
        )
    c, b = (np.asarray(np.sum(wrong, axis=-1), np.float64) for wrong in (of_first > of_second, of_second > of_first))
    name, statistic, p = (
        _by_binomial(b, c, kind) if kind in ("mid-p", "exact") else _by_chi2(b, c, float(kind == "continuity"))
    )
    describe = (
        f"McNemar's test, {name}",
        "Fagerland, Lydersen & Laake 2013" if kind == "mid-p" else "McNemar 1947",
        _target(first, row),
    )
    symbol, df = ("min", np.nan) if kind in ("mid-p", "exact") else ("chi2", 1.0)
    parts = {"only first wrong": c, "only second wrong": b}
    return of_test(
        describe, first, second, np.asarray((b - c) / of_first.shape[-1]), statistic, p, symbol, parts=parts, df=df
    )


def permutation(
    first: Losses,
    second: Losses,
    *,
    row: int | None = None,
    alternative: str = "two-sided",
    resamples: int = 9999,
    seed: int = 0,
) -> Comparison:
    """The permutation test of the mean difference over test cases, by random signs (Fisher 1935; SciPy's
    `permutation_test`).

    If the models are equally good case by case, each difference is as likely to have the other sign. All 2^n2 signs
    are taken if these are no more than `resamples`; otherwise that many random ones and the observed, so that p is at
    least 1 / (resamples + 1), twice that if two-sided.

    Args:
      first, second: losses of two learners on one plan, with the losses of cases [*Q, R, N].
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
      resamples: random signs.
      seed: of the random signs, the same ones for each data set.
      row: the row whose test cases are used; None for a plan of one row.
    Returns:
      Comparison, each number [*Q]; the statistic is the mean difference.
    Raises:
      ValueError: see `hold_out_t`; resamples below 1, or a negative seed.
      TypeError: no losses.
    """
    require_alternative(alternative)
    require_draws(resamples, seed, 1)
    cases = np.subtract(*_tested(first, second, row, least=2)[::-1])
    estimate = np.asarray(cases.mean(-1))
    p = _p_by_signs(cases, alternative, resamples, seed)
    describe = ("permutation test by signs", "Fisher 1935", _target(first, row))
    return of_test(describe, first, second, estimate, estimate, p, "mean", alternative)


def _tested(
    first: Losses, second: Losses, row: int | None, least: int = 1
) -> tuple[Float[np.ndarray, "*Q n"], Float[np.ndarray, "*Q n"]]:
    """The losses of both learners on the test cases of one row."""
    require_same(first, second)
    return cases_of_row(first, row, least), cases_of_row(second, row, least)


def _target(losses: Losses, row: int | None) -> str:
    return (
        "the difference in risk of the two models trained on these "
        f"{int(losses.plan.train_sizes[..., row or 0].flat[0])} training cases"
    )


def _by_binomial(
    b: Float[np.ndarray, "*Q"], c: Float[np.ndarray, "*Q"], kind: str
) -> tuple[str, Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]]:
    """Name, statistic and p-value; where b = c all that happens is as extreme, so mid-p is 1 less half the probability
    of b.
    """
    least = np.minimum(b, c)
    p = np.minimum(2 * scipy.stats.binom.cdf(least, b + c, 0.5), 1)
    if kind == "mid-p":
        p = np.where(b + c == 0, 1, p - np.where(b == c, 0.5, 1) * scipy.stats.binom.pmf(least, b + c, 0.5))
    return kind, np.asarray(least), np.asarray(p)


def _by_chi2(
    b: Float[np.ndarray, "*Q"], c: Float[np.ndarray, "*Q"], correction: float
) -> tuple[str, Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]]:
    """Name, statistic and p-value; the corrected difference does not go below 0, or equal counts would speak against
    equality.
    """
    statistic = np.maximum(np.abs(b - c) - correction, 0) ** 2 / np.maximum(b + c, 1)
    return (
        "chi2 with continuity correction" if correction else "chi2",
        np.asarray(statistic),
        np.asarray(scipy.stats.chi2.sf(statistic, 1)),
    )


def _p_by_signs(
    cases: Float[np.ndarray, "*Q n"], alternative: str, resamples: int, seed: int
) -> Float[np.ndarray, "*Q"]:
    """p of the mean of each data set, by signs that all of them share."""
    result = scipy.stats.permutation_test(
        (cases,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=max(2**18 // cases.size, 1),  # 2 MB of signed differences at a time, or one sign a case
        alternative=alternative,
        axis=-1,
        rng=np.random.default_rng(seed),
    )
    return np.asarray(result.pvalue)
