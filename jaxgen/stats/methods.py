"""What resampled rows say of a mean, each method once: an interval takes it of the losses of one learner, a test of the
differences of two.

Every function takes `Losses` [*Q, R], those of a learner or the difference of two learners, and returns an `Estimate`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jaxgen.stats.design import (
    disjoint_training,
    divisions,
    groups,
    not_folds,
    one_test_set,
    overlap,
    repeated,
    require_independent,
    serial,
    ten_halves,
    unlike_random,
    without_repeats,
)
from jaxgen.stats.leaving_out import between_models, influences
from jaxgen.stats.rows import cases_of_row, every_case, tested, within
from jaxgen.stats.spread import Spread, all_pairs, independent, joined
from jaxgen.stats.statistic import OfRows
from jaxgen.types import Losses, Plan

UNSTABLE = 0.5
"""From so much more or less variance than that of test cases alone on, an estimate is called relatively unstable."""


LEAST_DF = 10
"""Least degrees of freedom of the jackknife after leave-out: a single outlying case would leave 2 or 3, and limits that
are no use; with this the calibration covers as much.
"""


class Estimate(NamedTuple):
    """A mean with its standard error, [*Q], what to beware of, and what the numbers are made of, each [*Q]."""

    spread: Spread
    note: str = ""
    parts: Mapping[str, Float[np.ndarray, "*Q"]] = {}


def naive(losses: Losses) -> Estimate:
    """As if rows were independent.

    Raises:
      ValueError: fewer than 2 rows, or failed rows.
    """
    require_rows(losses)
    return Estimate(independent(losses.g))


def corrected(losses: Losses) -> Estimate:
    """Variance (1/R + n2/n1) S^2 of the mean of R random splits or of (repeated) folds (Nadeau & Bengio 2003; Bouckaert
    & Frank 2004), with R - 1 degrees of freedom.

    Where splits are stratified, the variance of the shares of the classes is added, which S^2 does not see there.

    Rows of equal weights count once, with their mean loss: another seed or a repeated division shows nothing of other
    data.

    Raises:
      ValueError: fewer than 2 different rows, failed rows, or a plan that the correction is not made for.
    """
    require_rows(losses)
    refuse_unfit(losses.plan)
    again, every = repeated(losses.plan), losses
    losses = without_repeats(losses)
    require_rows(losses)
    plan, r = losses.plan, losses.resamples
    ratio = (plan.test_sizes / plan.train_sizes).mean(-1)
    plain = independent(losses.g)
    between, stratified = _between_strata(
        every, 1 / plan.n, lambda of_case: (1 / r + ratio) * _rows_of(plan, of_case).var(-1, ddof=1)
    )
    error = np.sqrt(np.square(plain.standard_error) * (1 + r * ratio) + between)
    floor = np.sqrt(np.square(plain.standard_error) * r * ratio + between)
    note = f"{again} rows repeat the weights of others; the losses of equal rows were averaged" if again else ""
    spread = plain._replace(standard_error=np.asarray(error))
    return Estimate(spread, joined(note, stratified, caution(plan)), {"floor": np.asarray(floor)})


def unseen_shares(losses: Losses) -> bool:
    """Whether splits are stratified and nothing is known of single cases, so that nobody can say what the shares of the
    classes do to a mean over rows; an AUC does not depend on them.
    """
    known = losses.values is not None or (isinstance(losses, OfRows) and losses.of_strata is not None)
    return "stratum" in losses.plan.cases and not known and "auc" not in losses.loss.lower()


def _between_strata(
    losses: Losses, once: float | np.floating, seen: Callable[[Float[np.ndarray, "*Q N"]], Float[np.ndarray, "*Q"]]
) -> tuple[Float[np.ndarray, "*Q"] | float, str]:
    """What the shares of the classes add to a variance that rows of stratified splits show, [*Q], and what to say of
    it.

    Test sets that hold equal shares of every class do not show how these shares vary from one data set to another.
    With p_k the share of class k among the n cases and m_k the mean loss of its cases where they are tested, the mean
    loss sum_k p_k m_k has the variance sum_k p_k (m_k - m)^2 / n from the p_k, which are multinomial. Where classes are
    too small for equal shares, the rows show a part of that, which is not added again.

    Args:
      losses: [*Q, R, N], or a statistic of rows that knows how it changes with the shares.
      once: what a variance of 1 of a case comes to in the variance at hand, such as 1 / n.
      seen: the variance at hand, [*Q], if the loss of every case were a given number, [*Q, N]: here m_k of its class.
    """
    plan, stratum = losses.plan, losses.plan.cases.get("stratum")
    if unseen_shares(losses):
        note = "splits are stratified: how shares of classes vary between data sets is not in the standard error"
        return 0.0, note
    if stratum is None or (losses.values is None and not isinstance(losses, OfRows)):
        return 0.0, ""
    of_class = (stratum[:, None] == np.arange(stratum.max() + 1)).astype(np.float64)
    if isinstance(losses, OfRows) and losses.of_strata is not None:
        mean, share = losses.of_strata.mean(-2), of_class.mean(0)
    elif losses.values is None:  # an AUC
        return 0.0, ""
    else:
        weights = plan.test.astype(np.float64)
        kept = np.where(weights > 0, weights * every_case(losses), 0).sum(-2)
        often = weights.sum(-2) @ of_class
        mean, share = kept @ of_class / np.maximum(often, 1), of_class.mean(0) * (often > 0)
    share = share / share.sum(-1, keepdims=True)
    centre = (share * mean).sum(-1, keepdims=True)
    of_one = (share * np.square(mean - centre)).sum(-1)
    between = np.maximum(once * of_one - seen(mean[..., stratum]), 0)
    if not np.any(between):
        return between, ""
    return (
        between,
        "splits are stratified: what shares of classes add to the variance between data sets was added",
    )


def _rows_of(plan: Plan, of_case: Float[np.ndarray, "*Q N"]) -> Float[np.ndarray, "*Q R"]:
    """The means of rows [*Q, R], if the losses of cases were these numbers [*Q, N]."""
    weights = plan.test.astype(np.float64)
    return np.asarray((weights * of_case[..., None, :]).sum(-1) / weights.sum(-1))


def folds(losses: Losses) -> Estimate:
    """`corrected`, of (repeated) folds only.

    Raises:
      ValueError: as `corrected`, or rows that are no whole repeats of folds that test every case once.
    """
    estimate = corrected(losses)
    require_folds(losses.plan)
    once = (
        ""
        if divisions(losses.plan).max()
        else "a single run of folds, for which this is very conservative; ask for repeats"
    )
    return estimate._replace(note=joined(estimate.note, once))


def grouped(losses: Losses) -> Estimate:
    """The mean loss of cases that come in groups, from (repeated) folds that divide no group: groups are what is
    independent, so the variance is that of sums over groups.

    V = (G/(G-1)) sum_g (sum over group g of (h_i - mean))^2 / n^2, the cluster-robust variance of the mean of losses
    h_i, each averaged over the repeats; times 1 + k/(k-1), which allows for the training sets that k folds share as the
    corrected t of a single division does; G - 1 degrees of freedom. Repeats take Monte Carlo noise away and nothing
    else.

    Raises:
      ValueError: cases without groups, rows that are no folds or divide a group, only means of rows, or failed rows.
    """
    plan, number = losses.plan, groups(losses.plan)
    values = every_case(losses)
    if number < 2:
        raise ValueError(
            f"expected cases in at least 2 groups, got {number or 'no groups'} ({plan.scheme}); "
            "use k_fold with groups, or from_weights with groups"
        )
    require_folds(plan)
    _, first, group = np.unique(plan.cases["group"], return_index=True, return_inverse=True)
    if (plan.test != plan.test[..., first[group]]).any():
        raise ValueError(
            f"expected folds that divide no group, got {plan.scheme}, in which some do; use k_fold with groups"
        )
    h = tested(values, plan)
    mean = np.asarray(h.mean(-1))
    sums = (h - mean[..., None]) @ (group[:, None] == np.arange(number)).astype(np.float64)
    k = plan.resamples // (int(divisions(plan).max()) + 1)
    variance = number / (number - 1) * np.square(sums).sum(-1) / plan.n**2 * (1 + k / (k - 1))
    note = f"{number} groups are few: of 11 to 20 this covered R in .90 to .94" if number < 30 else ""
    return Estimate(Spread(mean, np.asarray(np.sqrt(variance)), float(number - 1)), note)


def on_one_test_set(losses: Losses) -> Estimate:
    """The mean over common test cases of their losses, each averaged over the rows, with n2 - 1 degrees of freedom: of
    one split, or of several trainings that are all tested on the same cases.

    The trained models are taken as given.

    Raises:
      ValueError: test sets that differ or are trained on, fewer than 2 test cases, only means of rows, or failed rows.
    """
    require_independent(losses.plan, "the losses of a test set")
    if losses.resamples == 1:
        return Estimate(independent(cases_of_row(losses, least=2)))
    if not one_test_set(losses.plan):
        raise ValueError(
            f"expected rows that are tested on the same cases, on which none trains, got {losses.plan.scheme}; "
            "use corrected_t for random splits"
        )
    mean = without_models(losses)
    note = f"about these {losses.resamples} trained models: other training sets may do better or worse"
    return Estimate(independent(cases_of_row(mean, least=2)), note)


def conservative_z(losses: Losses) -> Estimate:
    """Mean over splits of all data, variance from pairs of disjoint halves (Nadeau & Bengio 2003).

    sigma^2 = sum over the M pairs of (mean of one half - mean of the other)^2 / 2M. Its expectation is the variance of
    the mean for training sets of floor(n/2) - n2 cases, which is greater than that for n - n2. Of stratified halves,
    which do not show the variance of the shares of the classes, that of floor(n/2) cases is added.

    Raises:
      ValueError: another plan, rows left out, or failed rows.
    """
    plan = losses.plan
    require_independent(plan, "the conservative Z")
    if not {"pair", "half"} <= set(plan.labels):
        raise ValueError(
            f"expected splits of all data and of pairs of halves, got {plan.scheme}; use resample.paired_halves"
        )
    pair, half, g = plan.labels["pair"], plan.labels["half"], losses.g
    parts = [[(pair == m) & (half == h) for h in (0, 1)] for m in range(pair.max() + 1)]
    if len({int(rows.sum()) for rows in [pair == -1, *(rows for two in parts for rows in two)]}) != 1:
        raise ValueError(
            f"expected as many rows of every half as of all data, got unequal numbers ({plan.scheme}); "
            "assess the whole plan, without rows left out"
        )

    def of_halves(g: Float[np.ndarray, "*Q R"]) -> Float[np.ndarray, "*Q"]:
        means = np.stack([np.stack([g[..., rows].mean(-1) for rows in two], axis=-1) for two in parts], axis=-2)
        return np.asarray(np.square(means[..., 0] - means[..., 1]).mean(-1) / 2)

    # What shares of classes do to a mean over floor(n/2) cases, as the halves show all else.
    between, stratified = _between_strata(losses, 1 / (plan.n // 2), lambda of_case: of_halves(_rows_of(plan, of_case)))
    variance = of_halves(g) + between
    spread = Spread(np.asarray(g[..., pair == -1].mean(-1)), np.asarray(np.sqrt(variance)), np.inf)
    few = f"{len(parts)} pairs of halves: the width varies by itself, use ten or more" if len(parts) < 10 else ""
    return Estimate(spread, joined(few, stratified))


def cross_validation(losses: Losses, variance: str) -> Estimate:
    """Mean loss of cases, each of the model that was not trained on it, with the variance "all-pairs" or "within" of
    Bayle, Bayle, Janson & Mackey 2020.

    Raises:
      ValueError: rows that are no folds, "within" for folds of one case, only means of rows, or failed rows.
    """
    plan, values = losses.plan, every_case(losses)
    require_folds(plan)
    require_independent(plan, "the central limit theorem of cross-validation")
    spread = all_pairs(tested(values, plan))
    if variance == "within":
        if plan.test_sizes.min() < 2:
            raise ValueError(
                "expected at least 2 cases in every fold for the variance within folds, got 1 "
                f"({plan.scheme}); use all-pairs, or fewer folds"
            )
        spread = spread._replace(standard_error=np.asarray(np.sqrt(within(values, plan).mean(-1) / plan.n)))
    return Estimate(spread)


def five_by_two(losses: Losses) -> Estimate:
    """The first of the ten means p_if, with the variance mean of s_i^2, s_i^2 = sum over the two halves of (p_if - mean
    of p_i)^2, and 5 degrees of freedom (Dietterich 1998). Where halves are stratified, the variance of the shares of
    the classes is added, which no s_i^2 shows.

    Raises:
      ValueError: a plan without labels of five repeats of two folds, or failed rows.
    """
    require_independent(losses.plan, "the 5 x 2 t")
    p = ten_halves(losses.g, losses.plan)
    variance, note = of_ten_halves(losses)
    return Estimate(Spread(np.asarray(p[..., 0, 0]), np.asarray(np.sqrt(variance)), 5), note)


def of_ten_halves(losses: Losses) -> tuple[Float[np.ndarray, "*Q"], str]:
    """The mean of the s_i^2 of `five_by_two`, [*Q], with what stratified halves do not show, and what to say of that.

    Raises:
      ValueError: a plan without labels of five repeats of two folds, or failed rows.
    """
    plan = losses.plan

    def squares(g: Float[np.ndarray, "*Q R"]) -> Float[np.ndarray, "*Q"]:
        p = ten_halves(g, plan)
        return np.asarray(np.square(p - p.mean(-1, keepdims=True)).sum(-1).mean(-1))

    between, note = _between_strata(losses, 1 / plan.n, lambda of_case: squares(_rows_of(plan, of_case)))
    return np.asarray(squares(losses.g) + between), note


def nested(losses: Losses, bias: str) -> Estimate:
    """Nested cross-validation (Bates, Hastie & Tibshirani 2024); see `interval.nested_cross_validation`.

    Raises:
      ValueError: another plan, rows left out, a fold of one case, only means of rows, or failed rows.
    """
    require_independent(losses.plan, "nested cross-validation")
    errors, in_fold = _errors_without(losses)
    k, n = in_fold.shape[-2:]
    size = in_fold.sum(-1)
    # Of each fold in each repeat: the means of its outer errors e_out and of the inner errors e_in of all other folds.
    outer = np.sum(errors, axis=-1, where=in_fold) / size
    inner = np.sum(errors, axis=-1, where=~in_fold) / (n - size)
    variance = np.sum(np.square(errors - outer[..., None]), axis=-1, where=in_fold) / (size - 1)
    # Stratified folds show in these differences neither the shares of the classes among the cases of a fold, whose
    # variance is taken away, nor those among the others.
    between, stratified = _between_strata(
        losses,
        np.mean(1 / size + 1 / (n - size)),
        lambda of_case: np.square(_means(of_case, in_fold) - _means(of_case, ~in_fold)).mean((-2, -1)),
    )
    mse = np.mean(np.square(inner - outer) - variance / size, axis=(-2, -1)) + between
    # The mean of all e_in is the estimate, before its bias; s is their deviation.
    everywhere = (-3, -2, -1)
    all_inner = np.sum(errors, axis=everywhere, where=~in_fold) / (~in_fold).sum(everywhere)
    all_outer = np.sum(errors, axis=everywhere, where=in_fold) / in_fold.sum(everywhere)
    squares = np.sum(np.square(errors - all_inner[..., None, None, None]), axis=everywhere, where=~in_fold)
    s = np.sqrt(squares / ((~in_fold).sum(everywhere) - 1))
    least = s / np.sqrt(n)
    error = np.clip(np.sqrt((k - 1) / k * np.maximum(mse, 0)), least, np.sqrt(k) * least)
    correction = (1 + ((k - 2) / k) ** (1.5 if bias == "authors" else 1)) * (all_inner - all_outer)
    inflation = np.where(least > 0, error / np.where(least > 0, least, 1), 1.0)
    limited = int(np.sum(np.isclose(inflation, 1) | np.isclose(inflation, np.sqrt(k))))
    note = (
        f"the standard error is at its limits{f' in {limited} of {mse.size} data sets' * mse.ndim}, "
        "since the MSE is a noisy difference; more repeats help"
        if limited
        else ""
    )
    parts = {"bias": correction, "mse": mse, "inflation": inflation}
    spread = Spread(np.asarray(all_inner - correction), np.asarray(error), np.inf)
    return Estimate(spread, joined(note, stratified), {name: np.asarray(value) for name, value in parts.items()})


def _means(of_case: Float[np.ndarray, "*Q N"], chosen: Bool[np.ndarray, "*P repeats K N"]) -> np.ndarray:
    """The means of the numbers of cases [*Q, N] over chosen ones, [*Q, repeats, K]."""
    return np.asarray((of_case[..., None, None, :] * chosen).sum(-1) / chosen.sum(-1))


def jackknife(losses: Losses, target: str) -> Estimate:
    """The mean loss over splits with the jackknife after leave-out, for the target "R" or "ER"; see
    `interval.jackknife_after_leave_out`.

    Of the Monte Carlo noise at most nine tenths of the jackknife's variance are taken away, so that it stays positive;
    the note says where that was the limit.

    Raises:
      ValueError: a plan other than random splits or (repeated) folds, a row with a single test case, a case that fewer
        than two rows test, only means of rows, or failed rows.
    """
    plan = losses.plan
    require_rows(losses)
    refuse_unfit(plan)
    if "partition" in plan.labels and not_folds(plan):
        raise ValueError(
            f"expected random splits or folds for the jackknife after leave-out, got {plan.scheme}: balanced splits, "
            "which leave out the same cases together; use leave_out or k_fold"
        )
    found = influences(losses)
    share = _ratio(found.noise, found.jackknife)
    variance = np.maximum(found.jackknife - found.noise, found.jackknife / 10) + found.drawn
    instability = _ratio(np.asarray(variance - found.tested), found.tested)
    note = joined(_of_noise(plan, share), _of_instability(instability))
    if target == "R":
        trained, left_out = np.maximum(found.trained, 0), plan.test_sizes.mean(-1) / plan.n
        # Rows differ by their splits too: as n1 of n cases drawn without replacement, each with its effect on R.
        starts = np.maximum(between_models(losses) - left_out * (1 - left_out) * trained, 0)
        variance = np.maximum(variance, found.tested + trained + starts)
    # Of n independent D_i with this kurtosis their sum of squares has the variance (kurtosis - 1) / n, relatively; what
    # is left without noise is less, and has the same variance.
    left, least = _ratio(np.asarray(variance), found.jackknife), min(LEAST_DF, plan.n - 1)
    df = np.clip(2 * plan.n * np.square(left) / np.maximum(found.kurtosis - 1, 0.1), least, plan.n - 1)
    parts = {"noise": share, "instability": instability}
    return Estimate(Spread(found.mean, np.asarray(np.sqrt(variance)), np.asarray(df)), note, parts)


def independent_cases(losses: Losses) -> Float[np.ndarray, "*P"]:
    """How many independent cases R splits are worth if all errors are independent, 1 / (1/(R n2) + 1/n1), [*P]: the
    variance of the corrected t is then p (1 - p) over this number.
    """
    plan = losses.plan
    rows = plan.resamples - repeated(plan)
    return np.asarray(1 / (1 / (rows * plan.test_sizes.mean(-1)) + 1 / plan.train_sizes.mean(-1)))


def without_models(losses: Losses) -> Losses:
    """The losses [*Q, R, N] of rows with one test set as those of one row: the mean over the rows."""
    plan = losses.plan
    one = Plan(plan.train[..., :1, :], plan.test[..., :1, :], plan.scheme, {}, plan.cases)
    return Losses(
        losses.test_mean.mean(-1, keepdims=True),
        losses.train_mean.mean(-1, keepdims=True),
        one,
        losses.learner,
        losses.loss,
        losses.failure.max(-1, keepdims=True),
        losses.reasons,
        every_case(losses).mean(-2, keepdims=True),
        dropped=losses.dropped,
        label=losses.label,
        key=losses.key,
    )


def require_rows(losses: Losses) -> None:
    """ValueError for fewer than 2 rows."""
    if losses.resamples < 2:
        raise ValueError(
            f"expected at least 2 resamplings to see how they vary, got {losses.resamples}; "
            "ask for more resamples, or use hold_out"
        )


def require_folds(plan: Plan) -> None:
    """ValueError for rows that are no whole repeats of folds that test every case once."""
    if trouble := not_folds(plan):
        raise ValueError(
            f"expected repeats of folds that test every case once, trained on all others, got {plan.scheme}: "
            f"{trouble}; use k_fold, or corrected_t for random splits"
        )


def refuse_unfit(plan: Plan) -> None:
    """Refuses a plan [*Q, R, N] whose rows are no random splits or folds of independent cases.

    Raises:
      ValueError: bootstrap counts, test cases that were trained on, a series, groups, one test set for several rows,
        training sets that do not overlap, rows of several kinds, or cases that are not treated alike.
    """
    trouble = ""
    if plan.train.max() > 1 or plan.test.max() > 1:
        trouble = "cases drawn more than once (a bootstrap), for which no correction is known; use leave_out or k_fold"
    elif np.any((plan.train > 0) & (plan.test > 0)):
        trouble = "rows tested on cases that they were trained on; use leave_out or k_fold"
    elif "instance" in plan.labels or (one_test_set(plan) and disjoint_training(plan)):
        trouble = "training sets that do not overlap, which need no correction; use disjoint_t or quasi_f"
    elif not overlap(plan):
        trouble = "rows that share no case, which need no correction; use paired_t"
    elif one_test_set(plan):
        trouble = "one test set for all rows, so that rows show nothing of other test cases; use hold_out or hold_out_t"
    elif {"pair", "first"} & set(plan.labels):
        trouble = "rows of several kinds in one design; use leave_out or k_fold"
    elif serial(plan):
        trouble = "a series, whose cases depend on each other; no correction here allows for that"
    elif groups(plan):
        trouble = f"{groups(plan)} groups of cases that depend on each other; use grouped"
    elif alike := unlike_random(plan):
        trouble = f"{alike}; use leave_out or k_fold, or say with labels or groups what the design is"
    if trouble:
        raise ValueError(f"expected random splits or folds for the corrected t-test, got {plan.scheme}: {trouble}")


def caution(plan: Plan) -> str:
    """What to say of a correction for random splits or folds: of rows that leave out different shares, or that cut one
    permutation; empty if there is nothing.

    Of 3000 data sets with two equally good learners, 40 or 100 cases and 8 to 100 balanced splits, the corrected
    t-test at 5 % rejected in 1.8 % (20 splits that leave out a tenth) to 8.6 % (as many splits as cases), and in 4.4
    to 6.1 % where the splits were random (simulated).
    """
    each = plan.test_sizes / plan.train_sizes
    unequal = (
        ""
        if each.min() == each.max()
        else f"n2/n1 differs between rows ({each.min():.3g} to {each.max():.3g}); its mean was used"
    )
    cut = (
        "balanced splits are no random ones, for which the correction is made: "
        "it errs to either side, to the unsafe one where there are as many as cases; use leave_out"
    )
    return joined(unequal, cut if "partition" in plan.labels and not_folds(plan) else "")


def _of_noise(plan: Plan, share: Float[np.ndarray, "*Q"]) -> str:
    """What to say of the share of Monte Carlo noise, [*Q], in the jackknife's variance; empty if there is nothing."""
    middle = float(np.median(share))
    limited = int(np.sum(share > 0.9))
    if limited:
        where = f" in {limited} of {share.size} data sets" * share.ndim
        return (
            f"Monte Carlo noise is more than nine tenths of the jackknife's variance{where}, of which no more were "
            "taken away, so the interval is too wide; use several times as many splits"
        )
    if middle <= 0.5:
        return ""
    enough = int(np.ceil(2 * middle / (1 - middle) * plan.resamples))
    return (
        f"{middle:.0%} of the jackknife's variance are Monte Carlo noise, which was taken away but leaves the width "
        f"uncertain; some {float(f'{enough:.1g}'):.0f} splits would leave a third"
    )


def _of_instability(instability: Float[np.ndarray, "*Q"]) -> str:
    """What to say where training sets matter as well as test cases, [*Q]; empty if they do not."""
    middle = float(np.median(instability))
    if abs(middle) <= UNSTABLE:
        return ""
    return (
        f"relatively unstable (Bayle, Janson & Mackey 2025): the variance is {1 + middle:.2g} times that of test cases "
        "alone, so what takes the learner for stable (the central limit theorem of cross-validation, the corrected t) "
        "errs here"
    )


def _ratio(part: Float[np.ndarray, "*Q"], whole: Float[np.ndarray, "*Q"]) -> Float[np.ndarray, "*Q"]:
    """A part over the whole, [*Q]; 0 where there is nothing."""
    return np.asarray(np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0.0))


def _errors_without(losses: Losses) -> tuple[Float[np.ndarray, "*Q repeats K N"], Bool[np.ndarray, "*P repeats K N"]]:
    """The loss of each case n, by the model trained without its fold and without fold k, [*Q, repeats, K, N]; and
    whether its fold is fold k, so that the model lacks one fold only.
    """
    plan, values = losses.plan, every_case(losses)
    if not {"repeat", "first", "second"} <= set(plan.labels):
        raise ValueError(
            f"expected rows without one fold and without two, got {plan.scheme}; use resample.nested_pairs"
        )
    first, second = plan.labels["first"], plan.labels["second"]
    numbers, repeat = np.unique(plan.labels["repeat"], return_inverse=True)
    folds = int(second.max()) + 1
    if plan.resamples != len(numbers) * folds * (folds + 1) // 2:
        raise ValueError(
            f"expected {folds * (folds + 1) // 2} rows in each repeat of {folds} folds, got "
            f"{plan.resamples} rows in {len(numbers)}; assess the whole plan, without rows left out"
        )
    row = np.full((len(numbers), folds, folds), -1)
    row[repeat, first, second] = row[repeat, second, first] = np.arange(plan.resamples)
    if row.min() < 0:
        raise ValueError(
            f"expected every pair of folds in each repeat, got some twice and others not at all ({plan.scheme}); "
            "assess the whole plan of resample.nested_pairs"
        )
    in_fold = plan.test[..., row[:, range(folds), range(folds)], :] > 0
    if in_fold.sum(-1).min() < 2:
        raise ValueError(f"expected at least 2 cases in every fold, got 1 ({plan.scheme}); use fewer folds")
    # The row of the model that lacks fold k and the fold of case n, [*P, repeats, K, N].
    fold_of_case = in_fold.argmax(-2)[..., None, :]
    lacking = row[np.arange(len(numbers))[:, None, None], np.arange(folds)[:, None], fold_of_case]
    lacking = lacking.reshape(*in_fold.shape[:-3], -1, plan.n)
    lacking = lacking[None] if lacking.ndim < values.ndim else lacking  # one plan may serve all data sets
    errors = np.take_along_axis(values, lacking, axis=-2).reshape(*values.shape[:-2], *in_fold.shape[-3:])
    return errors, in_fold
