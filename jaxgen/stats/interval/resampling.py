"""Confidence intervals for the generalization error of one learner, from resampled rows; those for one trained model
are in `fixed.py`.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from jaxgen.stats.checks import require_alternative, require_level, require_losses
from jaxgen.stats.interval import fixed
from jaxgen.stats.rows import (
    Advice,
    divisions,
    every_case,
    not_folds,
    overlap,
    span,
    suited,
    ten_halves,
    tested,
    within,
)
from jaxgen.stats.spread import Spread, all_pairs, as_result, caution, corrected, independent, joined
from jaxgen.types import Losses, Plan
from jaxgen.types.numbers import require_one_of
from jaxgen.types.result import Result

TARGETS = ("R", "ER", "the k-fold test error")


def hold_out(losses: Losses, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """The interval of one split: Wilson's where all losses are 0 or 1, else Student's t of the mean loss.

    It is about the model that was trained on the training cases of the split. A model that is then trained on all
    cases is another one, for which this interval is not valid (Bates, Hastie & Tibshirani 2024).

    Args:
      losses: of one row, [*Q, 1], with the losses of cases.
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q].
    Raises:
      ValueError: several rows, failed rows, fewer than 2 test cases, a row tested on cases that it was trained on, or
        a level or alternative out of range.
      TypeError: no losses.
    """
    require_losses(losses)
    values = every_case(losses)
    used = np.broadcast_to(losses.plan.test > 0, values.shape)
    rule = fixed.wilson if np.isin(values[used], (0, 1)).all() else fixed.t
    result = rule(losses, level, alternative)
    return replace(result, method=f"hold-out, {result.method}")


def naive_t(losses: Losses, level: float = 0.95, alternative: str = "two-sided") -> Result:
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
    return as_result(
        independent(_rows(losses)),
        ("naive t interval", "Larsen & Hansen 1995, eq. 9", _expected(losses.plan)),
        losses,
        level,
        alternative,
        note,
    )


def corrected_t(losses: Losses, level: float = 0.95, alternative: str = "two-sided") -> Result:
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
    return _corrected(losses, ("corrected resampled t interval", "Nadeau & Bengio 2003"), level, alternative)


def bouckaert_frank(losses: Losses, level: float = 0.95, alternative: str = "two-sided") -> Result:
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
    describe = ("corrected repeated k-fold t interval", "Bouckaert & Frank 2004")
    result = _corrected(losses, describe, level, alternative)
    if trouble := not_folds(losses.plan):
        raise ValueError(
            f"expected repeats of folds that test every case once, got {losses.plan.scheme}: {trouble}; "
            "use corrected_t for random splits, or k_fold"
        )
    once = (
        "a single run of folds, for which this interval is very conservative"
        if divisions(losses.plan).max() == 0
        else ""
    )
    return replace(result, note=joined(result.note, once))


def conservative_z(losses: Losses, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """Mean of G over splits of all data, with a variance from pairs of disjoint halves (Nadeau & Bengio 2003,
    "Inference for the generalization error").

    sigma^2 = sum over the M pairs of (mean of one half - mean of the other)^2 / 2M. Its expectation is the variance of
    the mean for training sets of floor(n/2) - n2 cases, which is greater than that for n - n2: so the interval covers
    too much rather than too little.

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
    plan = losses.plan
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
    means = np.stack([np.stack([g[..., rows].mean(-1) for rows in two], axis=-1) for two in parts], axis=-2)
    variance = np.square(means[..., 0] - means[..., 1]).mean(-1) / 2
    spread = Spread(np.asarray(g[..., pair == -1].mean(-1)), np.asarray(np.sqrt(variance)), np.inf)
    describe = (
        "conservative Z interval",
        "Nadeau & Bengio 2003",
        f"ER for training sets of {span(plan.train_sizes[..., pair == -1])} cases",
    )
    return as_result(
        spread,
        describe,
        losses,
        level,
        alternative,
        f"{len(parts)} pairs of halves: the width varies by itself, use ten or more" if len(parts) < 10 else "",
    )


def cross_validation(
    losses: Losses, variance: str = "all-pairs", level: float = 0.95, alternative: str = "two-sided"
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
    plan, values = losses.plan, every_case(losses)
    if trouble := not_folds(plan):
        raise ValueError(
            f"expected folds that test every case once, trained on all others, got {plan.scheme}: "
            f"{trouble}; use k_fold or leave_one_out"
        )
    spread = all_pairs(tested(values, plan))
    if variance == "within":
        if plan.test_sizes.min() < 2:
            raise ValueError(
                "expected at least 2 cases in every fold for the variance within folds, got 1 "
                f"({plan.scheme}); use all-pairs, or fewer folds"
            )
        spread = spread._replace(standard_error=np.asarray(np.sqrt(within(values, plan).mean(-1) / plan.n)))
    describe = (f"cross-validation interval, {variance} variance", "Bayle et al. 2020", "the k-fold test error")
    return as_result(
        spread,
        describe,
        losses,
        level,
        alternative,
        "not about R or ER, for which it covers too little where cases are few or the learner is not stable",
    )


def five_by_two(losses: Losses, level: float = 0.95, alternative: str = "two-sided") -> Result:
    """The interval that inverts the 5 x 2 t statistic: first of the ten errors -+ t_5 sqrt(mean of s_i^2) (Dietterich
    1998, "Approximate statistical tests").

    s_i^2 = sum over the two halves of (p_if - mean of p_i)^2. Its centre is one error of ten, as in the statistic; the
    mean of the ten is among the parts.

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
    plan = losses.plan
    p = ten_halves(losses.g, plan)
    variance = np.square(p - p.mean(-1, keepdims=True)).sum(-1).mean(-1)
    spread = Spread(np.asarray(p[..., 0, 0]), np.asarray(np.sqrt(variance)), 5)
    note = (
        "half of the cases train: biased for R where the learning curve is steep; wide, and unreliable in small samples"
    )
    return as_result(
        spread,
        ("5 x 2 cross-validation t interval", "Dietterich 1998", _expected(plan)),
        losses,
        level,
        alternative,
        note,
        {"mean": np.asarray(losses.g.mean(-1))},
    )


def nested_cross_validation(
    losses: Losses, bias: str = "authors", level: float = 0.95, alternative: str = "two-sided"
) -> Result:
    """Nested cross-validation (Bates, Hastie & Tibshirani 2024, "Cross-validation: what does it estimate", algorithm
    1).

    Without fold k, the inner errors e_in of the cases of every other fold j are those of the model trained without
    both, and the outer errors e_out those of fold k by the model trained without it alone. MSE = mean of (mean e_in -
    mean e_out)^2 - var(e_out) / |fold|, over k and repeats; standard error sqrt((K-1)/K max(MSE, 0)), but at least s /
    sqrt(n), and at most sqrt(K) times that, s the deviation of all e_in. The bias of the mean of e_in is (1 + c) (mean
    e_in - mean e_out), c = ((K-2)/K)^1.5 in the authors' package and (K-2)/K in mlr3inferr. The cross-validation error
    in it is that of the same divisions; the authors' package makes new ones.

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
    errors, in_fold = _errors_without(losses)
    folds, n = in_fold.shape[-2:]
    size = in_fold.sum(-1)
    # Of fold k in each repeat: the means of its outer errors e_out and of the inner errors e_in of all other folds.
    outer = np.sum(errors, axis=-1, where=in_fold) / size
    inner = np.sum(errors, axis=-1, where=~in_fold) / (n - size)
    variance = np.sum(np.square(errors - outer[..., None]), axis=-1, where=in_fold) / (size - 1)
    mse = np.mean(np.square(inner - outer) - variance / size, axis=(-2, -1))
    # The mean of all e_in is the estimate, before its bias; s is their deviation.
    everywhere = (-3, -2, -1)
    all_inner = np.sum(errors, axis=everywhere, where=~in_fold) / (~in_fold).sum(everywhere)
    all_outer = np.sum(errors, axis=everywhere, where=in_fold) / in_fold.sum(everywhere)
    squares = np.sum(np.square(errors - all_inner[..., None, None, None]), axis=everywhere, where=~in_fold)
    s = np.sqrt(squares / ((~in_fold).sum(everywhere) - 1))
    least = s / np.sqrt(n)
    error = np.clip(np.sqrt((folds - 1) / folds * np.maximum(mse, 0)), least, np.sqrt(folds) * least)
    correction = (1 + ((folds - 2) / folds) ** (1.5 if bias == "authors" else 1)) * (all_inner - all_outer)
    inflation = np.where(least > 0, error / np.where(least > 0, least, 1), 1.0)
    limited = int(np.sum(np.isclose(inflation, 1) | np.isclose(inflation, np.sqrt(folds))))
    note = (
        f"the standard error is at its limits{f' in {limited} of {mse.size} data sets' * mse.ndim}, "
        "since the MSE is a noisy difference; more repeats help"
        if limited
        else ""
    )
    parts = {
        name: np.asarray(value) for name, value in {"bias": correction, "mse": mse, "inflation": inflation}.items()
    }
    describe = ("nested cross-validation", "Bates, Hastie & Tibshirani 2024", "R")
    return as_result(
        Spread(np.asarray(all_inner - correction), np.asarray(error), np.inf),
        describe,
        losses,
        level,
        alternative,
        note,
        parts,
    )


def recommend(losses: Losses, target: str = "R", level: float = 0.95, alternative: str = "two-sided") -> Result:
    """The interval that suits the plan of these losses; `note` says why.

    The choice follows the coverage measured in `benchmarks/calibration.py`; see `docs/which_interval_which_test.md`.

    Args:
      losses: [*Q, R].
      target: "R", the risk of the model trained on the n cases at hand; "ER", its expectation over training sets; or
        "the k-fold test error".
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q]. Its own target names the number of training cases where that is less than n.
    Raises:
      ValueError: an unknown target, or a plan from which no interval for this target is known to cover what it should;
        or as the method that was chosen.
      TypeError: no losses.
    """
    require_losses(losses)
    require_one_of("target", target, TARGETS)
    require_level(level)
    require_alternative(alternative)
    method, reason = _choice(losses.plan, target)
    result = method(losses, level=level, alternative=alternative)
    return replace(result, note=joined(f"chosen because {reason}", result.note, _fewer(losses.plan, method)))


def _choice(plan: Plan, target: str) -> tuple[Callable[..., Result], str]:
    """The method for a plan and a target, and the reason."""
    labels, folds, apart = set(plan.labels), not not_folds(plan), not overlap(plan)
    ordered, dependent = "fold" in labels and "repeat" not in labels, "groups=" in plan.scheme
    table = (
        Advice(
            target == TARGETS[2] and folds and not ordered and not dependent,
            cross_validation,
            "its central limit theorem is about the k-fold test error",
        ),
        Advice(
            target == TARGETS[2],
            None,
            "no folds of independent cases that test each of them once; use k_fold without groups, or ask for R or ER",
        ),
        Advice(plan.test.max() > 1, None, "test cases that count more than once; give test weights of 0 and 1"),
        Advice(
            np.any((plan.train > 0) & (plan.test > 0)),
            None,
            "rows tested on cases that they were trained on: the apparent error; use leave_out or nested_pairs",
        ),
        Advice(
            plan.train.max() > 1,
            None,
            "bootstrap samples, which train on about 0.63 n cases: "
            "intervals around their out-of-bag and .632+ errors miss R and ER of networks; "
            "use leave_out or nested_pairs",
        ),
        Advice(ordered, None, "blocks of a series, whose cases depend on each other; no interval here allows for that"),
        Advice(plan.resamples == 1, hold_out, "there is one split"),
        Advice(
            "first" in labels,
            nested_cross_validation,
            "nested cross-validation estimates its own error and corrects its bias: "
            "it covers R where plain cross-validation does not",
        ),
        Advice("pair" in labels, conservative_z, "pairs of disjoint halves show the variance between data sets"),
        Advice(
            apart and target == "R",
            None,
            "training sets that do not overlap, none of which holds all cases; ask for ER",
        ),
        Advice(apart, naive_t, "rows share neither training nor test cases and so are independent"),
        Advice(
            "instance" in labels,
            None,
            "training sets that share their test cases; use task_instances with common=False, or leave_out",
        ),
        Advice(
            plan.test_sizes.max() == 1,
            None,
            "single test cases, from which the dependence of the models cannot be seen; "
            "ask for the k-fold test error, or use nested_pairs",
        ),
        Advice(folds, bouckaert_frank, "folds share training cases, for which the corrected t allows"),
        Advice(True, corrected_t, "splits share cases, for which the corrected t allows"),
    )
    return suited(table, plan, f"a plan from which an interval for {target} is known to cover what it should")


def _fewer(plan: Plan, method) -> str:
    """A warning where rows train on so few cases that their error says little of a model trained on all; nested
    cross-validation corrects for it.
    """
    sizes = plan.train_cases[..., plan.labels["pair"] == -1] if method is conservative_z else plan.train_cases
    least = int(sizes.min())
    if method is nested_cross_validation or least >= 0.8 * plan.n:
        return ""
    return (
        f"trained on {least} of {plan.n} cases: too high for a model trained on all where the "
        "learning curve is steep; train on nine tenths, or use nested_pairs"
    )


def _rows(losses: Losses) -> Float[np.ndarray, "*Q R"]:
    if losses.resamples < 2:
        raise ValueError(
            f"expected at least 2 resamplings to see how they vary, got {losses.resamples}; "
            "ask for more resamples, or use hold_out"
        )
    return losses.g


def _corrected(losses: Losses, describe: tuple[str, str], level: float, alternative: str) -> Result:
    rows, plan = _rows(losses), losses.plan
    spread = corrected(rows, plan)
    ratio = (plan.test_sizes / plan.train_sizes).mean(-1)
    floor = np.asarray(spread.standard_error * np.sqrt(ratio / (1 / losses.resamples + ratio)))
    return as_result(spread, (*describe, _expected(plan)), losses, level, alternative, caution(plan), {"floor": floor})


def _expected(plan: Plan) -> str:
    return f"ER for training sets of {span(plan.train_sizes)} cases"


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
