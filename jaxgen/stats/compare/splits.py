"""Tests of one learner against another on the same resamplings."""

import numpy as np
import scipy
from jaxtyping import Float

from jaxgen.stats import methods
from jaxgen.stats.checks import require_level
from jaxgen.stats.compare.comparison import Comparison, compared, difference, differences, of_estimate, of_test, of_two
from jaxgen.stats.design import divisions, not_folds, overlap, require_independent, ten_halves
from jaxgen.stats.rows import every_case
from jaxgen.stats.spread import dropped
from jaxgen.types import Losses, Plan
from jaxgen.types.numbers import require_flag, require_number
from jaxgen.types.result import Result, described

SAME_SIZE = "the mean difference over training sets of this size"
HALF = "the mean difference over training sets of half the cases"


@of_two
def paired_t(first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Comparison:
    """The t-test of Larsen & Hansen 1995, eq. 9: takes the R differences for independent.

    They are independent only where rows share neither training nor test cases. Otherwise the variance of their mean
    does not go to 0 as R grows, but this standard error does: the rate of false rejections then has no limit below 1.

    Args:
      first, second: losses of two learners on one plan, [*Q, R].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q]; `note` carries the warning.
    Raises:
      ValueError: different plans or losses, failed rows, fewer than 2 rows, or an unknown alternative.
      TypeError: no losses.
    """
    change, note = difference(first, second), ""
    if overlap(change.plan):
        note = (
            "the resamplings share cases, so this standard error is too small and the rate of false "
            "rejections has no upper limit as resamples grow; use corrected_t"
        )
    describe = ("paired t-test", "Larsen & Hansen 1995, eq. 9", SAME_SIZE)
    return of_estimate(describe, first, second, methods.naive(change), alternative, level, note)


@of_two
def corrected_t(first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Comparison:
    """The corrected resampled t-test (Nadeau & Bengio 2003, "Inference for the generalization error").

    The variance of the mean of R differences is estimated by (1/R + n2/n1) S^2, with n2 test and n1 training cases a
    row: their correlation is taken to be n2 / (n1 + n2). As R grows the standard error approaches sqrt(n2/n1) S, and
    not 0.

    Args:
      first, second: losses of two learners on one plan of random splits or (repeated) k-fold, [*Q, R].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q].
    Raises:
      ValueError: different plans or losses, failed rows, fewer than 2 rows, an unknown alternative, or a plan that the
        test is not made for: bootstrap counts, test cases that were trained on, instances of a DELVE task, rows of
        several kinds, or rows that share no case.
      TypeError: no losses.
    """
    describe = ("corrected resampled t-test", "Nadeau & Bengio 2003", SAME_SIZE)
    return of_estimate(describe, first, second, methods.corrected(difference(first, second)), alternative, level)


@of_two
def bayesian_t(first: Losses, second: Losses, *, rope: float = 0.0, level: float = 0.95) -> Comparison:
    """The correlated Bayesian t-test (Corani & Benavoli 2015; Benavoli et al. 2017), with a region of practical
    equivalence.

    The posterior of the difference is Student's t about the mean with the scale and the R - 1 degrees of freedom of
    `corrected_t`; the correlation is n2 / (n1 + n2) here too. So P(left) at rope=0 is the one-sided p-value of
    "greater", and the credible interval its interval.

    Args:
      first, second: losses of two learners on one plan of random splits or (repeated) k-fold, [*Q, R].
      rope: half-width of the region of practical equivalence, 0 or more, in the unit of the loss; its borders belong
        to it.
      level: probability of the credible interval, which leaves out equal tails, 0 < level < 1.
    Returns:
      Comparison, each number [*Q], without p-value; `parts` are P(left), the second practically better, P(rope), and
      P(right), the first better. Where all differences are equal, all probability is where they are.
    Raises:
      ValueError: a negative rope, an unknown level, or what `corrected_t` refuses.
      TypeError: no losses.
    """
    require_number("rope", rope, least=0, finite=False, advice="give a difference that does not matter, in its unit")
    estimate = methods.corrected(difference(first, second))
    spread = estimate.spread
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = ((limit - spread.estimate) / spread.standard_error for limit in (-rope, rope))
    law = scipy.stats.t(spread.df)
    left, right = (
        np.asarray(np.where(np.isnan(z), 0.0, tail)) for z, tail in ((low, law.cdf(low)), (high, law.sf(high)))
    )
    parts = {"P(left)": left, "P(rope)": np.asarray(np.clip(1 - left - right, 0, 1)), "P(right)": right}
    describe = ("correlated Bayesian t-test", "Corani & Benavoli 2015", SAME_SIZE)
    limits = spread.limits(level)
    tested = (spread.test()[0], np.full(left.shape, np.nan))
    return compared(describe, first, second, spread, tested, limits, level=level, note=estimate.note, parts=parts)


@of_two
def k_fold_t(first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Comparison:
    """The naive t-test over the folds of (repeated) cross-validation (Dietterich 1998), kept to show what it does.

    It takes the folds for independent. With one repeat its level can be somewhat too high (Dietterich 1998), with ten
    it rejects equal learners in more than half of the cases (simulated; Bouckaert & Frank 2004).

    Args:
      first, second: losses of two learners on one plan of r times k folds, [*Q, rk].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q], rk - 1 degrees of freedom; `note` carries the warning.
    Raises:
      ValueError: different plans or losses, failed rows, an unknown alternative or level, or a plan that is no
        (repeated) k-fold.
      TypeError: no losses.
    """
    estimate = methods.naive(difference(first, second))
    repeats = _repeats(first.plan)
    excess = (
        "rejects equal learners far too often, without limit as repeats grow"
        if repeats > 1
        else "may reject equal learners too often"
    )
    note = f"training sets share cases, which this standard error ignores, so it {excess}; use corrected_k_fold_t"
    describe = ("naive k-fold t-test", "Dietterich 1998", SAME_SIZE)
    return of_estimate(describe, first, second, estimate, alternative, level, note)


@of_two
def corrected_k_fold_t(
    first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided"
) -> Comparison:
    """The corrected repeated k-fold test (Bouckaert & Frank 2004, "Evaluating the replicability of significance
    tests").

    Variance (1/(rk) + n2/n1) S^2 with rk - 1 degrees of freedom for r repeats of k folds, where n2/n1 = 1/(k-1) for
    folds of one size. They advise 10 times 10.

    Args:
      first, second: losses of two learners on one plan of r times k folds, [*Q, rk].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q].
    Raises:
      ValueError: different plans or losses, failed rows, an unknown alternative or level, or a plan that is no
        (repeated) k-fold.
      TypeError: no losses.
    """
    describe = ("corrected repeated k-fold t-test", "Bouckaert & Frank 2004", SAME_SIZE)
    return of_estimate(describe, first, second, methods.folds(difference(first, second)), alternative, level)


@of_two
def five_by_two_t(first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Comparison:
    """The 5x2 cross-validated t-test (Dietterich 1998): t = p_1^(1) / sqrt(sum_i s_i^2 / 5), 5 degrees of freedom.

    s_i^2 is the sum of squares of the two differences of repeat i about their mean. The numerator is the first half of
    the first repeat alone.

    Args:
      first, second: losses of two learners on one plan of `resample.five_by_two`, [*Q, 10].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q]; the estimate is the numerator, the mean of all ten is in `parts`.
    Raises:
      ValueError: different plans or losses, failed rows, an unknown alternative or level, or a plan without labels of
        five repeats of two folds.
      TypeError: no losses.
    """
    change = difference(first, second)
    parts = {"mean of all ten": np.asarray(change.g.mean(-1))}
    estimate = methods.five_by_two(change)._replace(parts=parts)
    note = "its numerator is one of the ten differences and depends on the order of the halves; five_by_two_f uses all"
    describe = ("5x2 cross-validated t-test", "Dietterich 1998", HALF)
    return of_estimate(describe, first, second, estimate, alternative, level, note)


@of_two
def five_by_two_f(first: Losses, second: Losses) -> Comparison:
    """The combined 5x2 cross-validated F-test (Alpaydin 1999): F = sum_ij p_ij^2 / (2 sum_i s_i^2), 10 and 5 degrees
    of freedom.

    Args:
      first, second: losses of two learners on one plan of `resample.five_by_two`, [*Q, 10].
    Returns:
      Comparison, each number [*Q], two-sided, without interval; the estimate is the mean of all ten differences. Where
      both halves of each repeat agree F is infinite and p is NaN, for that is no certainty; F is 0 if all are 0.
    Raises:
      ValueError: different plans or losses, failed rows, or a plan without labels of five repeats of two folds.
      TypeError: no losses.
    """
    change = difference(first, second)
    require_independent(first.plan, "the 5 x 2 F")
    p = ten_halves(change.g, first.plan)
    variance, note = methods.of_ten_halves(change)
    with np.errstate(divide="ignore", invalid="ignore"):
        f = np.where((p == 0).all((-2, -1)), 0.0, np.sum(p**2, axis=(-2, -1)) / (10 * variance))
    estimate = np.asarray(p.mean((-2, -1)))
    parts = {"numerator df": np.full(estimate.shape, 10.0), "denominator df": np.full(estimate.shape, 5.0)}
    describe = ("combined 5x2 cross-validated F-test", "Alpaydin 1999", HALF)
    return of_test(
        describe,
        first,
        second,
        estimate,
        np.asarray(f),
        np.where(np.isinf(f), np.nan, scipy.stats.f.sf(f, 10, 5)),
        "F",
        parts=parts,
        note=note,
    )


@of_two
def cv_clt(first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Comparison:
    """The test by the central limit theorem of cross-validation (Bayle, Bayle, Janson & Mackey 2020), with the
    all-pairs variance.

    The n differences of case losses, each of the models not trained on that case, have the mean d and the variance
    sum_i (d_i - d)^2 / n; z = d / sqrt(variance / n) is normal for large n if losses change by o(1/n) when a training
    case is exchanged.

    Args:
      first, second: losses of two learners on one plan of k folds or leave-one-out, with the losses of cases [*Q, R,
        N].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q].
    Raises:
      ValueError: different plans or losses, failed rows, losses without cases, an unknown alternative or level, or a
        plan other than k folds once.
      TypeError: no losses.
    """
    change = difference(first, second)
    if (repeats := _repeats(first.plan)) > 1:
        raise ValueError(
            f"expected one division into folds, got {repeats} ({first.plan.scheme}); "
            "use repeats=1, or corrected_k_fold_t"
        )
    estimate = methods.cross_validation(change, "all-pairs")
    describe = (
        "cross-validation CLT test, all pairs",
        "Bayle et al. 2020",
        f"the k-fold test error: the mean risk of the {first.resamples} models trained here",
    )
    return of_estimate(describe, first, second, estimate, alternative, level)


@of_two
def nested_cross_validation(
    first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided"
) -> Comparison:
    """The test by nested cross-validation of the difference (Bates, Hastie & Tibshirani 2024): the estimate, with its
    bias taken away, over the standard error of `interval.nested_cross_validation`, of the differences of case losses.

    The authors print it for the error of one learner; a difference of losses is a loss like any other.

    Args:
      first, second: losses of two learners on one plan of `resample.nested_pairs`, with the losses of cases [*Q, R, N].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q], normal law; parts "bias", "mse" and "inflation".
    Raises:
      ValueError: different plans or losses, failed rows, losses without cases, an unknown alternative or level, or
        another plan.
      TypeError: no losses.
    """
    estimate = methods.nested(difference(first, second), "authors")
    describe = ("nested cross-validation test", "Bates, Hastie & Tibshirani 2024", "the difference in R")
    return of_estimate(describe, first, second, estimate, alternative, level)


@of_two
def jackknife_after_leave_out(
    first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided"
) -> Comparison:
    """The t-test of the mean difference over many splits with a variance by the jackknife, of the differences of case
    losses: `interval.jackknife_after_leave_out` with scale="identity" and target="ER", with n - 1 degrees of freedom.

    It counts what training sets do, also where the learners share it, as a strong ridge at few cases, of which the
    corrected t knows nothing. A thousand splits that leave out a tenth are advised.

    Args:
      first, second: losses of two learners on one plan of random splits or (repeated) folds, with the losses of cases
        [*Q, R, N].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q]; parts "noise" and "instability".
    Raises:
      ValueError: different plans or losses, failed rows, losses without cases, an unknown alternative or level, a plan
        other than random splits or (repeated) folds, a row with a single test case, or a case that fewer than two rows
        test.
      TypeError: no losses.
    """
    change = difference(first, second)
    estimate = methods.jackknife(change, "ER")
    spread = estimate.spread._replace(df=float(change.plan.n - 1))
    describe = ("jackknife-after-leave-out t-test", "Efron & Stein 1981", SAME_SIZE)
    return of_estimate(describe, first, second, estimate._replace(spread=spread), alternative, level)


@of_two
def conservative_z(first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Comparison:
    """The conservative Z-test (Nadeau & Bengio 2003, "Inference for the generalization error"): the mean difference
    over splits of all data, with a variance from pairs of disjoint halves that is too large rather than too small.

    Args:
      first, second: losses of two learners on one plan of `resample.paired_halves`, [*Q, R].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q], normal law.
    Raises:
      ValueError: different plans or losses, failed rows, an unknown alternative or level, or another plan.
      TypeError: no losses.
    """
    estimate = methods.conservative_z(difference(first, second))
    describe = ("conservative Z-test", "Nadeau & Bengio 2003", SAME_SIZE)
    return of_estimate(describe, first, second, estimate, alternative, level)


@of_two
def grouped_t(first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Comparison:
    """The t-test of cases that come in groups: `interval.grouped` of the differences of case losses.

    Args:
      first, second: losses of two learners on one plan of (repeated) folds that divide no group, with the losses of
        cases [*Q, R, N]; groups are in the plan.
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q], with one degree of freedom less than groups.
    Raises:
      ValueError: different plans or losses, failed rows, losses without cases, an unknown alternative or level, cases
        without groups, or rows that are no folds or divide a group.
      TypeError: no losses.
    """
    estimate = methods.grouped(difference(first, second))
    describe = ("t-test of grouped folds", "cluster-robust variance: Liang & Zeger 1986", SAME_SIZE)
    return of_estimate(describe, first, second, estimate, alternative, level)


@of_two
def corrected_score(
    first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided"
) -> Comparison:
    """The corrected t-test of two error rates, whose variance is at least that of disagreements that are independent.

    Of cases on which one learner alone errs, a share q of all tested, each is as likely to be the second's if the rates
    are equal: the difference of the rates in m independent cases then has the variance q / m, as in McNemar's test.
    With m as in `interval.corrected_score` this is a lower bound for the variance (1/R + n2/n1) S^2 of the corrected t,
    so that rows that happen to agree are not taken for certainty. The combination is ours.

    Args:
      first, second: losses of two learners on one plan of random splits or (repeated) folds, 0 or 1 for every tested
        case, with the losses of cases [*Q, R, N].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q]; part "disagreements" is q.
    Raises:
      ValueError: losses other than 0 and 1, losses without cases, or as `corrected_t`.
      TypeError: no losses.
    """
    change = difference(first, second)
    tested = change.plan.test > 0
    for losses in (first, second):
        values = every_case(losses)
        other = values[np.broadcast_to(tested, values.shape) & ~np.isin(values, (0, 1))]
        if other.size:
            raise ValueError(
                f"expected losses of 0 and 1 for error rates, got {other[0]:.6g} ({losses.loss}); use corrected_t"
            )
    estimate = methods.corrected(change)
    share = np.abs(np.where(tested, every_case(change), 0)).sum((-2, -1)) / tested.sum((-2, -1))
    least = np.sqrt(share / methods.independent_cases(change))
    spread = estimate.spread._replace(standard_error=np.maximum(estimate.spread.standard_error, least))
    estimate = estimate._replace(spread=spread, parts={**estimate.parts, "disagreements": np.asarray(share)})
    describe = ("corrected t-test of error rates", "Nadeau & Bengio 2003; McNemar 1947", SAME_SIZE)
    return of_estimate(describe, first, second, estimate, alternative, level)


@of_two
def probability_greater(first: Losses, second: Losses, *, paired: bool = True) -> Float[np.ndarray, "*Q"]:
    """Prob(G2 > G1), estimated from the resamplings; ties count one half (Larsen & Hansen 1995, "Numerical examples").

    Args:
      first, second: losses of two learners on one plan, [*Q, R].
      paired: compares both learners on the same split; False compares every split of one with every split of the other,
        that is, the two empirical distributions.
    Returns:
      Probability, [*Q]. It is about the splits of the data at hand; no interval for other data is implied.
    Raises:
      ValueError: different plans or losses, failed rows, fewer than 2 rows, or `paired` that is no flag.
      TypeError: no losses.
    """
    require_flag("paired", paired)
    change = differences(first, second)
    if paired:
        return np.asarray(np.mean((change > 0) + 0.5 * (change == 0), axis=-1))
    both = np.concatenate([first.g, second.g], axis=-1)
    r = change.shape[-1]
    ranks = scipy.stats.rankdata(both, axis=-1)[..., r:]
    return np.asarray((ranks.sum(-1) - r * (r + 1) / 2) / r**2)


@of_two
def probability_interval(first: Losses, second: Losses, *, level: float = 0.95) -> Result:
    """Prob(G2 > G1) on the same split, with Wilson's interval for having drawn R splits and not all (Larsen & Hansen
    1995; Wilson 1927).

    Ties count one half, which makes the interval a little too wide.

    Args:
      first, second: losses of two learners on one plan of random splits or bootstrap samples, [*Q, R].
      level: confidence level of the interval, 0 < level < 1.
    Returns:
      Result, each number [*Q]. It shrinks to nothing as R grows: it is about all splits of the data at hand, and says
      nothing about other data.
    Raises:
      ValueError: different plans or losses, failed rows, fewer than 2 rows, a level out of range, or a plan whose rows
        are parts of one design, as folds are.
      TypeError: no losses.
    """
    require_level(level)
    p, r = probability_greater(first, second), first.resamples
    if first.plan.labels:
        raise ValueError(
            f"expected rows that are drawn independently of each other, got {first.plan.scheme}, whose "
            "rows belong to one design; use leave_out or bootstrap"
        )
    z = scipy.stats.norm.ppf((1 + level) / 2)
    centre = (p + z**2 / (2 * r)) / (1 + z**2 / r)
    reach = z * np.sqrt(p * (1 - p) / r + z**2 / (4 * r**2)) / (1 + z**2 / r)
    target = (
        "the share of all splits of these data on which the second has the greater error; "
        "it says nothing about other data"
    )
    unit = f"Prob(G of {second.name} > G of {first.name})"
    return described(
        "share of splits, Wilson's interval",
        "Larsen & Hansen 1995; Wilson 1927",
        target,
        unit,
        "",
        p,
        np.sqrt(p * (1 - p) / r),
        np.inf,
        np.clip(centre - reach, 0, 1),
        np.clip(centre + reach, 0, 1),
        level=level,
        note=dropped(first),
    )


def _repeats(plan: Plan) -> int:
    """How often every case is tested; ValueError unless the rows are divisions of all cases into folds."""
    if trouble := not_folds(plan):
        expected = "folds, where each repeat tests every case once and every row trains on all that it does not test"
        raise ValueError(f"expected {expected}, got {plan.scheme}: {trouble}; use resample.k_fold")
    return int(divisions(plan).max()) + 1
