"""Confidence intervals for the generalization error of one learner, from resampled rows; those for one trained model
are in `fixed.py`.
"""

from dataclasses import replace

import numpy as np
import scipy

from jaxgen.stats import methods
from jaxgen.stats.checks import require_alternative, require_level, require_losses
from jaxgen.stats.design import overlap
from jaxgen.stats.interval import fixed
from jaxgen.stats.methods import Estimate
from jaxgen.stats.rows import every_case, span
from jaxgen.stats.spread import Spread, as_result, dropped, joined
from jaxgen.stats.statistic import OfRows
from jaxgen.types import Losses
from jaxgen.types.numbers import require_one_of
from jaxgen.types.result import Result, described


def hold_out(losses: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """The interval of one split: Wilson's where all losses are 0 or 1, else Student's t of the mean loss. Of several
    rows that are tested on the same cases it is that of the mean over the rows, by Student's t.

    It is about the model that was trained on the training cases of the split. A model that is then trained on all
    cases is another one, for which this interval is not valid (Bates, Hastie & Tibshirani 2024).

    Args:
      losses: of one row, or of several that are all tested on the same cases, [*Q, R], with the losses of cases.
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q].
    Raises:
      ValueError: rows with different test cases, failed rows, fewer than 2 test cases, a row tested on cases that it
        was trained on, or a level or alternative out of range.
      TypeError: no losses.
    """
    require_losses(losses)
    if losses.resamples > 1:
        describe = ("hold-out, t", "Student 1908", f"the mean risk of these {losses.resamples} trained models")
        return _result(losses, methods.on_one_test_set(losses), describe, level, alternative)
    values = every_case(losses)
    used = np.broadcast_to(losses.plan.test > 0, values.shape)
    rule = fixed.wilson if np.isin(values[used], (0, 1)).all() else fixed.t
    result = rule(losses, level=level, alternative=alternative)
    return replace(result, method=f"hold-out, {result.method}")


def naive_t(losses: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """Mean of G -+ t S / sqrt(R), as if rows were independent: "mean and standard error" of resamplings. A negative
    control.

    It is right only where rows share neither training nor test cases. Otherwise its width goes to 0 as R grows, and
    its coverage with it.

    Args:
      losses: R rows, [*Q, R].
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q], R - 1 degrees of freedom; `note` carries the warning.
    Raises:
      ValueError: fewer than 2 rows, failed rows, or a level or alternative out of range.
      TypeError: no losses.
    """
    require_losses(losses)
    note = (
        "a negative control: the resamplings share cases, so this interval covers far too little, "
        "the less the more resamples; use corrected_t"
        if overlap(losses.plan)
        else ""
    )
    describe = ("naive t interval", "Larsen & Hansen 1995, eq. 9", _expected(losses))
    return _result(losses, methods.naive(losses)._replace(note=note), describe, level, alternative)


def corrected_t(losses: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """Mean of G -+ t sqrt((1/R + n2/n1) S^2), with R - 1 degrees of freedom (Nadeau & Bengio 2003, "Inference for the
    generalization error").

    The correlation of rows is taken to be n2 / (n1 + n2), which is an assumption and no estimate: none without bias
    exists from one set of splits. As R grows the standard error approaches sqrt(n2/n1) S, its floor, and not 0.

    Args:
      losses: R random splits, or (repeated) k-fold, [*Q, R].
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q]; part "floor" is the standard error of infinitely many resamples.
    Raises:
      ValueError: fewer than 2 rows, failed rows, a level or alternative out of range, or a plan that the correction is
        not made for: bootstrap counts, test cases that were trained on, instances of a DELVE task, rows of several
        kinds, or rows that share no case.
      TypeError: no losses.
    """
    require_losses(losses)
    describe = ("corrected resampled t interval", "Nadeau & Bengio 2003", _expected(losses))
    return _result(losses, methods.corrected(losses), describe, level, alternative)


def bouckaert_frank(losses: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """The corrected t interval of r times k folds, with k r - 1 degrees of freedom (Bouckaert & Frank 2004,
    "Evaluating the replicability").

    The same numbers as `corrected_t`, where n2/n1 = 1/(k - 1). Ten times ten folds are recommended; a single run of k
    folds is very conservative.

    Args:
      losses: of (repeated) k-fold, [*Q, R], R = k r.
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q]; part "floor" is the standard error of infinitely many repeats.
    Raises:
      ValueError: as `corrected_t`, or the rows are no whole repeats of folds that test every case once.
      TypeError: no losses.
    """
    require_losses(losses)
    describe = ("corrected repeated k-fold t interval", "Bouckaert & Frank 2004", _expected(losses))
    return _result(losses, methods.folds(losses), describe, level, alternative)


def conservative_z(losses: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """Mean of G over splits of all data, with a variance from pairs of disjoint halves (Nadeau & Bengio 2003,
    "Inference for the generalization error").

    sigma^2 = sum over the M pairs of (mean of one half - mean of the other)^2 / 2M. Its expectation is the variance of
    the mean for training sets of floor(n/2) - n2 cases, which is greater than that for n - n2: so the interval covers
    too much rather than too little. Of stratified halves the variance of the shares of the classes is added.

    Args:
      losses: of `resample.paired_halves`, [*Q, R].
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q], normal law.
    Raises:
      ValueError: another plan, rows left out, failed rows, or a level or alternative out of range.
      TypeError: no losses.
    """
    require_losses(losses)
    estimate = methods.conservative_z(losses)
    sizes = losses.plan.train_sizes[..., losses.plan.labels["pair"] == -1]
    describe = ("conservative Z interval", "Nadeau & Bengio 2003", f"ER for training sets of {span(sizes)} cases")
    return _result(losses, estimate, describe, level, alternative)


def cross_validation(
    losses: Losses, *, variance: str = "all-pairs", level: float = 0.95, alternative: str = "two-sided"
) -> Result:
    """Mean loss of cases, each of the model that was not trained on it, -+ z sigma / sqrt(n) (Bayle, Bayle, Janson &
    Mackey 2020).

    "all-pairs": sigma^2 is the variance of the n losses; "within": the mean over folds of their variance inside the
    fold, divisor its size - 1. The central limit theorem behind it needs a stable learner, and is about the mean risk
    of the k models that were trained: for R or ER it covers too little where n is small or the learner is not stable.
    With repeats the losses of each case are averaged (the paper has one run; the same limit holds, since the stable
    part of a loss does not depend on the division: derived, not printed).

    Args:
      losses: of (repeated) k-fold or leave-one-out, [*Q, R], with the losses of cases.
      variance: "all-pairs" or "within".
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q], normal law.
    Raises:
      ValueError: the rows are no whole repeats of folds that test every case once, "within" for folds of one case,
        only means of rows were kept, failed rows, or a variance, level or alternative out of range.
      TypeError: no losses.
    """
    require_losses(losses)
    require_one_of("variance", variance, ("all-pairs", "within"))
    note = "not about R or ER, for which it covers too little where cases are few or the learner is not stable"
    estimate = methods.cross_validation(losses, variance)._replace(note=note)
    describe = (f"cross-validation interval, {variance} variance", "Bayle et al. 2020", "the k-fold test error")
    return _result(losses, estimate, describe, level, alternative)


def five_by_two(losses: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """The interval that inverts the 5 x 2 t statistic: first of the ten errors -+ t_5 sqrt(mean of s_i^2) (Dietterich
    1998, "Approximate statistical tests").

    s_i^2 = sum over the two halves of (p_if - mean of p_i)^2. Its centre is one error of ten, as in the statistic; the
    mean of the ten is among the parts. Where halves are stratified, the variance of the shares of the classes is added.

    Args:
      losses: of `resample.five_by_two`, [*Q, 10].
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q], 5 degrees of freedom; part "mean" is the mean of the ten errors.
    Raises:
      ValueError: another plan, failed rows, or a level or alternative out of range.
      TypeError: no losses.
    """
    require_losses(losses)
    note = (
        "half of the cases train: biased for R where the learning curve is steep; wide, and unreliable in small samples"
    )
    parts = {"mean": np.asarray(losses.g.mean(-1))}
    describe = ("5 x 2 cross-validation t interval", "Dietterich 1998", _expected(losses))
    estimate = methods.five_by_two(losses)
    estimate = estimate._replace(note=joined(note, estimate.note), parts=parts)
    return _result(losses, estimate, describe, level, alternative)


def nested_cross_validation(
    losses: Losses, *, bias: str = "authors", level: float = 0.95, alternative: str = "two-sided"
) -> Result:
    """Nested cross-validation (Bates, Hastie & Tibshirani 2024, "Cross-validation: what does it estimate", algorithm
    1).

    Without fold k, the inner errors e_in of the cases of every other fold j are those of the model trained without
    both, and the outer errors e_out those of fold k by the model trained without it alone. MSE = mean of (mean e_in -
    mean e_out)^2 - var(e_out) / |fold|, over k and repeats; standard error sqrt((K-1)/K max(MSE, 0)), but at least s /
    sqrt(n), and at most sqrt(K) times that, s the deviation of all e_in. The bias of the mean of e_in is (1 + c) (mean
    e_in - mean e_out), c = ((K-2)/K)^1.5 in the authors' package and (K-2)/K in mlr3inferr. The cross-validation error
    in it is that of the same divisions; the authors' package makes new ones. Of stratified folds, the MSE gets what the
    shares of the classes add to the means of a fold and of the other cases, which the squares do not show.

    Args:
      losses: of `resample.nested_pairs`, [*Q, R], with the losses of cases; every fold of two cases at least.
      bias: "authors" or "mlr3".
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q], normal law; parts "bias", "mse" (before limits are put to it) and "inflation", standard error / (s /
      sqrt(n)), from 1 to sqrt(K).
    Raises:
      ValueError: another plan, rows left out, a fold of one case, only means of rows were kept, failed rows, or a
        bias, level or alternative out of range.
      TypeError: no losses.
    """
    require_losses(losses)
    require_one_of("bias", bias, ("authors", "mlr3"))
    describe = ("nested cross-validation", "Bates, Hastie & Tibshirani 2024", "R")
    return _result(losses, methods.nested(losses, bias), describe, level, alternative)


def jackknife_after_leave_out(
    losses: Losses,
    *,
    scale: str = "log",
    level: float = 0.95,
    alternative: str = "two-sided",
    target: str = "R",
) -> Result:
    """The mean loss over many splits with a variance by the jackknife: T of the data set without case i is the mean
    loss of the other test cases over the splits that test case i, so that no model is trained for it. A thousand
    splits that leave out a tenth, or a hundred times ten folds, are advised.

    V = (n-1)/n sum_i (T_(-i) - mean)^2 (Efron & Stein 1981, "The jackknife estimate of variance") counts test cases
    and training sets, and is not too small in expectation: it counts the second-order part of T twice. The Monte Carlo
    noise in it, seen from how much the rows that test the same case differ, is taken away, up to nine tenths of V.
    The interval of ER has the variance V. That of R has the greater of V and V_test + V_train + V_start: V_test is the
    variance of test cases alone (Bayle et al. 2020), and V_train = sum e_i^2, with e_i the part of T_(-i) that comes
    from training without case i, the first-order part of var(R - ER). They are added where a case that is hard to
    predict is good to train on, as for a strong ridge: these then cancel in T, but not in T - R. V_start is the
    variance of R over random starts, which T averages out: that between the models of different rows, seen from pairs
    of cases that some rows test together, less n2 n1 / n^2 V_train for their splits. It is about 0 for a learner that
    draws nothing.
    Degrees of freedom are those of a sum of n squares with the kurtosis of T_(-i), less for the noise, from 10 to
    n - 1. Limits are T exp(-+ t se / T), since the variance of a mean loss grows with it. These combinations are ours;
    `benchmarks/calibration_jackknife.py` measures them.

    Args:
      losses: of random splits or (repeated) folds, [*Q, R], with the losses of cases.
      scale: "log" for losses that are 0 or more, or "identity", T -+ t se.
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only; on the log scale the lower one
        is then 0).
      target: "R", the risk of the model trained on the n cases at hand, or "ER", the mean over training sets of the
        size of these rows, whose interval is narrower.
    Returns:
      Result [*Q]; parts "noise", the share of V that was Monte Carlo noise, and "instability", V / V_test - 1, far from
      0 where training sets matter as test cases do (relative instability: Bayle, Janson & Mackey 2025).
    Raises:
      ValueError: a plan other than random splits or (repeated) folds, a row with a single test case, a case that fewer
        than two rows test, negative losses on the log scale, only means of rows were kept, failed rows, or a scale,
        target, level or alternative out of range.
      TypeError: no losses.
    """
    require_losses(losses)
    require_one_of("scale", scale, ("log", "identity"))
    require_one_of("target", target, ("R", "ER"))
    require_level(level)
    require_alternative(alternative)
    estimate = methods.jackknife(losses, target)
    spread, goal = estimate.spread, "R" if target == "R" else _expected(losses)
    describe = ("jackknife after leave-out", "Efron & Stein 1981", goal)
    result = _result(losses, estimate, describe, level, alternative)
    if scale == "identity":
        return result
    tested = np.where(losses.plan.test > 0, every_case(losses), 0)
    if tested.min() < 0:
        raise ValueError(
            f"expected losses of 0 or more for limits on the log scale, got {tested.min():.6g} ({losses.unit}); "
            "use scale='identity'"
        )
    positive = np.where(spread.estimate > 0, spread.estimate, 1)
    logs = Spread(np.asarray(np.log(positive)), np.asarray(spread.standard_error / positive), spread.df)
    lower, upper = (np.asarray(np.exp(limit)) for limit in logs.honest_limits(level, alternative))
    return replace(result, lower=lower, upper=upper)


def grouped(losses: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """The mean loss of cases that come in groups (patients, sites, days) -+ t times a cluster-robust standard error.

    With h_i the loss of case i by the model that was not trained on its group, averaged over the repeats, and G groups:
    V = (G/(G-1)) sum_g (sum over group g of (h_i - mean))^2 / n^2 * (1 + k/(k-1)), G - 1 degrees of freedom. The first
    factor is the cluster-robust variance of a mean; the last allows for the training sets that k folds share, as the
    corrected t of one division does. That combination is ours. `benchmarks/calibration_groups.py` measures it for
    least squares with strong effects of groups: it covers R in .90 (11 groups), .94 (20), .97 (40) and .98 (100), where
    the corrected t of ten repeats has .81, .87, .92 and .95. Repeats of folds average Monte Carlo noise away and do not
    make the interval narrower.

    Args:
      losses: of (repeated) folds that divide no group, with the losses of cases [*Q, R, N]; groups are in the plan.
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q], about ER for new groups.
    Raises:
      ValueError: cases without groups, rows that are no folds or divide a group, only means of rows were kept, failed
        rows, or a level or alternative out of range.
      TypeError: no losses.
    """
    require_losses(losses)
    target = f"ER for new groups and training sets of {span(losses.plan.train_sizes)} cases"
    describe = ("interval of grouped folds", "cluster-robust variance: Liang & Zeger 1986", target)
    return _result(losses, methods.grouped(losses), describe, level, alternative)


def corrected_score(losses: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """An interval for an error rate, or another loss between 0 and 1, from splits or folds: Wilson's score interval
    with the number of cases that the corrected t implies.

    Wilson's interval of p errors in m independent cases solves (p - mu)^2 = z^2 mu (1 - mu) / m. Here p is the mean
    over the rows, z the quantile of t with R - 1 degrees of freedom, and m the smaller of p (1 - p) / V and
    1 / (1/(R n2) + 1/n1). V is the variance of the corrected t (Nadeau & Bengio 2003), and the second number is m for
    splits whose errors are independent and equally likely, which is also what is left where no row errs. So the
    limits lie in [0, 1] and the width is never 0. The combination is ours; `benchmarks/calibration_rates.py` measures
    its coverage at rates of 1 to 30 %: of R in .94 to .99, where the corrected t covers it in as few as .54.

    Args:
      losses: of random splits or (repeated) folds, [*Q, R], each loss between 0 and 1.
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only; the lower one is then 0).
    Returns:
      Result [*Q]; part "cases" is m.
    Raises:
      ValueError: losses beyond 0 and 1, or as `corrected_t`.
      TypeError: no losses.
    """
    require_losses(losses)
    require_level(level)
    require_alternative(alternative)
    g = losses.g
    if g.min() < 0 or g.max() > 1:
        worst = float(g.max() if g.max() > 1 else g.min())
        raise ValueError(f"expected losses between 0 and 1, got a row of {worst:.6g} ({losses.unit}); use corrected_t")
    estimate = methods.corrected(losses)
    spread, cap = estimate.spread, methods.independent_cases(losses)
    p, variance = np.clip(spread.estimate, 0, 1), np.square(spread.standard_error)
    binomial = p * (1 - p)
    m = np.where(variance * cap > binomial, binomial / np.where(variance > 0, variance, 1), cap)
    z = scipy.stats.t.ppf((1 + level) / 2 if alternative == "two-sided" else level, spread.df)
    centre = (p + z**2 / (2 * m)) / (1 + z**2 / m)
    reach = z / (1 + z**2 / m) * np.sqrt(binomial / m + z**2 / (4 * m**2))
    lower = np.zeros_like(p) if alternative == "less" else np.clip(centre - reach, 0, 1)
    upper = np.ones_like(p) if alternative == "greater" else np.clip(centre + reach, 0, 1)
    return described(
        "corrected score interval",
        "Wilson 1927 with Nadeau & Bengio 2003",
        _expected(losses),
        losses.unit,
        losses.name,
        spread.estimate,
        np.sqrt(binomial / m),
        spread.df,
        lower,
        upper,
        level=level,
        alternative=alternative,
        parts={"cases": m},
        note=joined(estimate.note, dropped(losses)),
    )


def _result(losses: Losses, estimate: Estimate, describe: tuple[str, str, str], level: float, alternative: str):
    """The interval of an estimate."""
    return as_result(estimate.spread, describe, losses, level, alternative, estimate.note, estimate.parts)


def _expected(losses: Losses) -> str:
    sizes = span(losses.plan.train_sizes)
    if isinstance(losses, OfRows):
        return f"the mean {losses.unit} over training sets of {sizes} cases"
    return f"ER for training sets of {sizes} cases"
