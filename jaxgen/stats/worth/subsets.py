"""What a plan is that tells the worth of cases: random subsets, of which kind, and on which cases utility is
measured.
"""

from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float, Int

from jaxgen.stats.checks import require_losses
from jaxgen.stats.design import UNLIKELY, not_folds, one_test_set, require_independent
from jaxgen.stats.rows import every_case
from jaxgen.types import Losses, Plan

UTILITY = "minus the mean loss on the value cases"


class Subsets(NamedTuple):
    """Random subsets of T cases and how each row did on every case.

    Attributes:
      inside: 1 where the row trains on the case, [R, T].
      trained: numbers of these cases, [T]: all that some row trains on.
      utility: minus the loss of every row on every case, [R, N].
      plan: the plan [R, N].
    """

    inside: Float[np.ndarray, "R T"]
    trained: Int[np.ndarray, "T"]
    utility: Float[np.ndarray, "R N"]
    plan: Plan


def drawn_subsets(losses: Losses, repeats: bool = False) -> Subsets:
    """The subsets that were trained on, [R, T], and the utilities [R, N]; `repeats` allows folds, and cases that are
    drawn several times, as in a bootstrap.

    Raises:
      TypeError: no losses.
      ValueError: several data sets, losses of rows only, failed rows, fewer than two rows or cases, weights above 1, or
        rows of a design, which are no independent draws.
    """
    require_losses(losses)
    plan = losses.plan
    if losses.sets is not None:
        raise ValueError(
            f"expected the losses of one data set for the worth of its cases, got those of {losses.sets}; choose one "
            "with losses[q]"
        )
    values = every_case(losses)
    trained = np.flatnonzero(plan.train.any(0))
    if losses.resamples < 2 or len(trained) < 2:
        raise ValueError(
            f"expected at least 2 rows and 2 cases that some row trains on, got {losses.resamples} and {len(trained)} "
            f"({plan.scheme}); use resample.half_samples with more resamples"
        )
    folds = not not_folds(plan)
    if plan.labels and not (repeats and folds):
        raise ValueError(
            f"expected rows that are independent draws, got a design with the labels {', '.join(plan.labels)} "
            f"({plan.scheme}); use resample.half_samples, by_size or leave_out"
        )
    if not repeats and (plan.repeats_cases or folds):
        what = "cases drawn more than once" if plan.repeats_cases else "folds"
        raise ValueError(
            f"expected random subsets drawn one by one, got {what} ({plan.scheme}); use resample.half_samples, by_size "
            "or leave_out"
        )
    return Subsets((plan.train[:, trained] > 0).astype(np.float64), trained, -values, plan)


def on_value_cases(drawn: Subsets) -> Float[np.ndarray, "R V"]:
    """The utility of each row on each value case, [R, V]: cases that no row trains on and all rows test.

    Raises:
      ValueError: no such cases, fewer than two, or cases that are not independent of each other.
    """
    plan = drawn.plan
    if not one_test_set(plan):
        raise ValueError(
            "expected value cases, which every row tests and none trains on, got rows that test other cases "
            f"({plan.scheme}); use half_samples or by_size of resample with value="
        )
    if plan.test.max() > 1 or plan.test_sizes[0] < 2:
        trouble = "cases that count more than once" if plan.test.max() > 1 else "1"
        raise ValueError(
            f"expected at least 2 value cases with test weight 1, got {trouble} ({plan.scheme}); give more cases to "
            "value, each once"
        )
    require_independent(plan, "a standard error over value cases")
    return drawn.utility[:, plan.test[0] > 0]


def require_half_samples(drawn: Subsets, share: float | None = 0.5) -> float:
    """The probability that a row trains on a case; ValueError unless rows hold each case with this probability,
    independently of the others, as far as counts of cases and sizes of rows tell. None takes any probability.

    Sizes are compared with the binomial law in their mean and variance, by a normal law for both; counts of cases by
    chi-squared, where smaller is no concern.
    """
    rows, cases = drawn.inside.shape
    sizes, counts = drawn.inside.sum(1), drawn.inside.sum(0)
    p = counts.sum() / drawn.inside.size if share is None else share
    law = np.arange(1, cases + 1)
    mass = scipy.stats.binom.pmf(law, cases, p)
    mass /= mass.sum()  # a row without cases is drawn again
    mean = mass @ law
    deviation = law - mean
    variance = mass @ deviation**2
    kurtosis = mass @ deviation**4 / variance**2
    squares = np.sum((sizes - mean) ** 2) / variance
    distances = (
        ((sizes.mean() - mean) / np.sqrt(variance / rows)) if share is not None else 0.0,
        (squares - rows) / np.sqrt(rows * max(kurtosis - 1, 0.1)),
    )
    limit = scipy.stats.norm.isf(UNLIKELY / 2)
    if max(map(abs, distances)) > limit or _unequal(counts, np.full(rows, p)):
        kind = "probability 1/2" if share is not None else "one probability"
        raise ValueError(
            f"expected rows that hold each case with {kind}, independently of the others, got sizes from "
            f"{int(sizes.min())} to {int(sizes.max())} of {cases}, sd {sizes.std():.3g} where {np.sqrt(variance):.3g} "
            f"is expected ({drawn.plan.scheme}); use resample.half_samples"
        )
    return float(p)


def require_alike(drawn: Subsets) -> None:
    """ValueError unless all cases have the same chance to be trained on, and rows with a case have no other sizes than
    rows without it, but for the case itself: so sizes may vary as those of independent draws do, or less.
    """
    rows, cases = drawn.inside.shape
    sizes, counts = drawn.inside.sum(1), drawn.inside.sum(0)
    p = sizes.mean() / cases
    variance = max(cases * p * (1 - p), 1e-12)
    wide = scipy.stats.chi2.sf(np.sum((sizes - sizes.mean()) ** 2) / variance, rows - 1) < UNLIKELY
    if wide or _unequal(counts, sizes / cases):
        trouble = (
            f"sizes from {int(sizes.min())} to {int(sizes.max())} of {cases}, so that rows with a case are larger"
            if wide
            else f"one case trained on in {int(counts.min())} of {rows} rows and another in {int(counts.max())}"
        )
        raise ValueError(
            f"expected random subsets that treat all cases alike, got {trouble} ({drawn.plan.scheme}); use "
            "resample.half_samples or leave_out"
        )


def require_sizes(drawn: Subsets) -> Int[np.ndarray, " R"]:
    """The size of each row, [R]; ValueError unless there are two rows of each size from the smallest to all cases, and
    cases are treated alike.
    """
    cases, sizes = drawn.inside.shape[1], drawn.inside.sum(1).astype(np.int64)
    rows = np.bincount(sizes, minlength=cases + 1)
    lacking = np.flatnonzero(rows[sizes.min() :] < 2) + sizes.min()
    if len(lacking):
        raise ValueError(
            f"expected at least two rows of each size from the smallest, {sizes.min()}, to all {cases} cases, got "
            f"{len(lacking)} sizes with fewer, the first {lacking[0]} ({drawn.plan.scheme}); use resample.by_size"
        )
    counts = drawn.inside.sum(0)
    if _unequal(counts, sizes / cases):
        raise ValueError(
            f"expected random subsets that treat all cases alike, got one trained on in {int(counts.min())} of "
            f"{len(sizes)} rows and another in {int(counts.max())} ({drawn.plan.scheme}); use resample.by_size"
        )
    return sizes


def left_out(losses: Losses) -> str:
    """A note on failed rows that were left out, which are no random rows; empty if there are none."""
    if not losses.dropped:
        return ""
    return f"{losses.dropped} failed rows were left out, as if such subsets did not exist"


def _unequal(counts: Float[np.ndarray, " T"], share: Float[np.ndarray, " R"]) -> bool:
    """Whether cases are trained on less equally than by chance, from how often each is, [T], and the share of the cases
    that each row trains on, [R].
    """
    variance = max(np.sum(share * (1 - share)), 1e-12)
    distance = np.sum((counts - counts.mean()) ** 2) / variance
    return bool(scipy.stats.chi2.sf(distance, len(counts) - 1) < UNLIKELY)
