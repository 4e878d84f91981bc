"""What a plan must be for conformal prediction, seen from its weights: which rows leave a case out."""

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Int

from jaxgen.stats.checks import require_finite
from jaxgen.stats.design import dependent, not_folds, unlike_random
from jaxgen.stats.rows import span
from jaxgen.types import Plan, Predicted
from jaxgen.types.numbers import require, require_kind

EXCHANGEABLE = "cases and new cases that are exchangeable, such as independent draws from one law"


def checked(predicted: Predicted, task: str, what: str) -> Predicted:
    """Predictions [*Q, R, M, K] of exchangeable cases that went well and are of a task, for `what`.

    Raises:
      TypeError: something else than `Predicted`.
      ValueError: another task, failed rows, arrays that do not belong together, groups, a series, or predictions of new
        cases that are not finite.
    """
    require_kind(
        "predictions, as predict and Predicted.from_predictions give them",
        predicted,
        Predicted,
        "give what jg.predict returned",
    )
    sets, n, k = predicted.new.shape[:-3], predicted.plan.n, predicted.new.shape[-1]
    rows, plan = (*sets, predicted.resamples), predicted.plan.shape
    fits = plan in ((rows[-1], n), (*rows, n)) and predicted.failure.shape == rows
    if not fits or predicted.cases.shape != (*rows, n, k) or predicted.y.shape != (*sets, n, k):
        raise ValueError(
            f"expected predictions new [*Q, R, M, K] and cases [*Q, R, N, K], y [*Q, N, K] and a plan [*Q, R, N] that "
            f"belong together, got {list(predicted.new.shape)}, {list(predicted.cases.shape)}, "
            f"{list(predicted.y.shape)} and {list(plan)}; make them with jg.predict or Predicted.from_predictions"
        )
    if predicted.task != task:
        others = "split_sets or cross_sets" if task == "regression" else "split, cv_plus or jackknife_plus"
        raise ValueError(f"expected predictions of a {task} for {what}, got a {predicted.task}; use {others}")
    if trouble := dependent(predicted.plan):
        raise ValueError(
            f"expected exchangeable cases for {what}, got {trouble} ({predicted.plan.scheme}); no coverage is promised "
            "for such cases, so use cases that were drawn independently"
        )
    require_finite("predictions of new cases", predicted.checked().new, "leave these rows out with without_failed()")
    return predicted


def each_set(predicted: Predicted) -> Iterator[Predicted]:
    """The predictions [R, M, K] of each data set of Q, or of the only one."""
    return iter([predicted]) if predicted.sets is None else iter(predicted)


def the_row(predicted: Predicted, row: int | None) -> tuple[int, Int[np.ndarray, " n"]]:
    """The number of the row to use, and the cases that it holds out to calibrate on, [n], of one data set.

    Raises:
      ValueError: no such row, none chosen of several, or test cases that it trains on.
    """
    plan = predicted.plan
    if row is None and plan.resamples != 1:
        raise ValueError(
            f"expected one row of the plan, got row=None of {plan.resamples}; give its number, from 0 to "
            f"{plan.resamples - 1}, or use a method for all rows"
        )
    chosen = require("row", 0 if row is None else row, 0, plan.resamples - 1, "the rows of the plan")
    _refuse_trained(plan, plan.train[chosen : chosen + 1], plan.test[chosen : chosen + 1])
    return chosen, np.flatnonzero(plan.test[chosen])


def rows_of_folds(plan: Plan, what: str) -> Int[np.ndarray, " N"]:
    """The row that leaves each case out, [N], of one division into folds of a plan [R, N].

    Raises:
      ValueError: rows that are no such folds.
    """
    _refuse_trained(plan, plan.train, plan.test)
    trouble = not_folds(plan)
    if not trouble and (times := int(plan.test[:, 0].sum())) > 1:
        trouble = f"{times} divisions into folds"
    if not trouble and plan.resamples < 2:
        trouble = "a single row"
    if trouble:
        raise ValueError(
            f"expected one division into folds, each row training on all cases that it does not test, for {what}, got "
            f"{trouble} ({plan.scheme}); use resample.k_fold(..., repeats=1) or resample.leave_one_out"
        )
    return np.asarray(plan.test.argmax(0))


def rows_of_cases(plan: Plan, what: str) -> Int[np.ndarray, " N"]:
    """The row that leaves each case out, [N], where a plan [R, N] leaves out one at a time.

    Raises:
      ValueError: rows that are not leave-one-out.
    """
    _refuse_trained(plan, plan.train, plan.test)
    if plan.resamples != plan.n or not_folds(plan) or (plan.test.sum(-1) != 1).any():
        raise ValueError(
            f"expected every case left out by one row of its own for {what}, got {plan.resamples} rows for {plan.n} "
            f"cases that leave out {span((plan.train == 0).sum(-1))} each ({plan.scheme}); use resample.leave_one_out, "
            "or cv_plus for folds"
        )
    return np.asarray(plan.test.argmax(0))


def rows_without(plan: Plan, what: str) -> Bool[np.ndarray, "R N"]:
    """Which rows leave out which case, [R, N], where a plan [R, N] is of random samples of one size.

    Raises:
      ValueError: folds, rows of several sizes, cases that are not treated alike, or one that no row leaves out.
    """
    _refuse_trained(plan, plan.train, plan.test)
    left_out = plan.train == 0
    if not not_folds(plan):
        trouble, remedy = "folds", "use cv_plus for one division into folds, or resample.bootstrap"
    elif np.ptp(plan.train_sizes):
        trouble, remedy = f"training sets of {span(plan.train_sizes)} cases", "draw rows of one size"
    elif missed := int((~left_out.any(0)).sum()):
        first = int(np.argmin(left_out.any(0)))
        trouble = f"{missed} cases that every row trains on, the first {first}"
        remedy = "use more resamples, so that some row leaves each case out"
    else:
        trouble, remedy = unlike_random(plan), "use resample.bootstrap or resample.leave_out"
    if trouble:
        raise ValueError(
            f"expected random samples of one size, each case left out by some row, for {what}, got {trouble} "
            f"({plan.scheme}); {remedy}"
        )
    return left_out


def of_folds(n: int, folds: int, level: float) -> float:
    """The coverage that is proven for folds of one size (Barber et al. 2021, theorem 4); 1 - 2 alpha if every case is a
    fold.
    """
    lost = min(2 * (1 - 1 / folds) / (n / folds + 1), (1 - folds / n) / (folds + 1))
    return max(0.0, 1 - 2 * (1 - level) - lost)


def about_folds(plan: Plan) -> str:
    """What a proof for folds asks beside exchangeable cases, of a plan [*Q, R, N]; empty if it is so."""
    sizes = plan.test_sizes
    return "" if sizes.min() == sizes.max() else f", and folds of one size (these have {span(sizes)} cases)"


def rank(level: float, n: int) -> int:
    """Which of n values in order is the limit: ceil(level (n + 1)); above n where there are too few."""
    return math.ceil(level * (n + 1) - 1e-9)  # 0.55 times 100 is 55.00000000000001


def too_few(level: float, n: int) -> str:
    """That limits are infinite, or sets hold every class, since there are too few cases; empty if there are enough."""
    if rank(level, n) <= n:
        return ""
    least = math.ceil(level / (1 - level) - 1e-9)
    return f"{n} cases are too few for {100 * level:g} %, which needs {least}: nothing is excluded"


def _refuse_trained(plan: Plan, train: np.ndarray, test: np.ndarray) -> None:
    """ValueError for test cases [R, N] that a row trains on, or that count more than once."""
    trained = bool(((train > 0) & (test > 0)).any())
    if trained or test.max() > 1:
        trouble = "some that their row trains on" if trained else "some that count more than once"
        raise ValueError(
            f"expected test cases held out of the training, each once, got {trouble} ({plan.scheme}); use a plan that "
            "leaves its test cases out"
        )
