"""One table of which interval and which test suit a plan, by what its weights show, and their measured coverage."""

from typing import NamedTuple

import numpy as np

from jaxgen.stats.design import (
    disjoint_training,
    divisions,
    groups,
    not_folds,
    one_test_set,
    overlap,
    repeated,
    serial,
    unlike_random,
)
from jaxgen.types import Losses, Plan


class Advice(NamedTuple):
    """A line of the table.

    Attributes:
      fits: whether it is for this plan.
      interval: the function of `stats.interval` for R or ER; empty if none is made for it.
      test: the function of `stats.compare`; empty if none is made for it.
      reason: why these, or why none and what to do instead.
      only: "R" or "ER" where the interval is about that one alone.
    """

    fits: bool | np.bool
    interval: str
    test: str
    reason: str
    only: str = ""


COVERAGE = {
    "hold_out": ".85",
    "corrected_t": ".86",
    "bouckaert_frank": ".87",
    "nested_cross_validation": ".92",
    "jackknife_after_leave_out": ".93",
    "conservative_z": ".94",
}
"""The lowest coverage of R by a 95 % interval that was measured, over all learners and sizes, with squared loss and
heavy-tailed noise among the settings.
"""

COVERAGE_OF_RATES = {"corrected_score": ".94", "nested_cross_validation": ".67", "hold_out": ".91"}
"""The same of error rates of 1 to 30 %; see `docs/which_interval_which_test.md` for both."""


SIZES = {
    "hold_out_t": ".07",
    "mcnemar": ".07",
    "corrected_t": ".17",
    "corrected_k_fold_t": ".12",
    "corrected_score": ".05",
    "nested_cross_validation": ".10",
    "jackknife_after_leave_out": ".10",
    "conservative_z": ".09",
    "cv_clt": ".08",
    "disjoint_t": ".05",
    "quasi_f": ".05",
}
"""The largest size of a test at 5 % that was measured, over all learners, sizes and plans that `compare.recommend`
takes it for, of equally good learners, few data sets of one setting included; see `docs/which_interval_which_test.md`.
"""


MANY_CASES = 300
"""From so many cases on the test by the central limit theorem of cross-validation is taken: it then rejects 5 to 8 % of
true hypotheses at 5 %, as measured, and up to 15 % with fewer cases.
"""


MANY_TESTS = 45
"""From so many tests of each case on, in the mean, the jackknife after leave-out is taken: it was measured for 500
random splits that leave out a tenth.
"""


def line(plan: Plan, rates: bool, kept: bool = True) -> Advice:
    """The line of the table for a plan [*Q, R, N]; `rates` says that the losses of all tested cases are 0 or 1, `kept`
    that those of cases were kept.
    """
    table = (*_refused(plan), *_designed(plan, rates), *_random(plan, rates, kept))
    return next(each for each in table if each.fits)


def _refused(plan: Plan) -> tuple[Advice, ...]:
    """Plans [*Q, R, N] for which no method is known."""
    return (
        Advice(plan.test.max() > 1, "", "", "test cases that count more than once; give test weights of 0 and 1"),
        Advice(
            np.any((plan.train > 0) & (plan.test > 0)),
            "",
            "",
            "rows tested on cases that they were trained on: the apparent error; use a plan that leaves its test cases "
            "out, such as leave_out or nested_pairs",
        ),
        Advice(
            plan.train.max() > 1,
            "",
            "",
            "bootstrap samples, which train on about 0.63 n cases and whose dependence no test here allows for; "
            "intervals around their out-of-bag and .632+ errors miss R and ER of networks; use leave_out, k_fold with "
            "repeats or nested_pairs",
        ),
        Advice(
            serial(plan),
            "",
            "",
            "blocks of a series, whose cases depend on each other; no interval or test here allows for that, so use "
            "Prob(G2 > G1) to describe them",
        ),
        Advice(
            groups(plan) > 0 and bool(not_folds(plan)),
            "",
            "",
            "splits of cases in groups, for which no variance here is right; use k_fold with groups",
        ),
    )


def _designed(plan: Plan, rates: bool) -> tuple[Advice, ...]:
    """Plans [*Q, R, N] with a method of their own."""
    labels, single = set(plan.labels), plan.resamples - repeated(plan) == 1
    return (
        Advice(
            groups(plan) > 0,
            "grouped",
            "grouped_t",
            "cases come in groups, which are what is independent",
        ),
        Advice(
            single and plan.resamples == 1,
            "hold_out",
            "mcnemar" if rates else "hold_out_t",
            "there is one split, and losses are 0 or 1: it is about the models trained there"
            if rates
            else "there is one split: it is about the models trained there",
        ),
        Advice(
            single,
            "hold_out",
            "hold_out_t",
            "there is one split, trained several times, which shows nothing of other splits",
        ),
        Advice(
            "first" in labels,
            "nested_cross_validation",
            "nested_cross_validation",
            "nested cross-validation estimates its own error and corrects its bias: it covers R where plain "
            "cross-validation does not",
        ),
        Advice(
            "pair" in labels,
            "conservative_z",
            "conservative_z",
            "pairs of disjoint halves show the variance between data sets",
        ),
        Advice(
            one_test_set(plan) and disjoint_training(plan),
            "",
            "quasi_f",
            "instances share their test cases and no training cases; for an interval use task_instances with "
            "common=False, or leave_out",
        ),
        Advice(
            one_test_set(plan),
            "hold_out",
            "hold_out_t",
            "all rows are tested on the same cases, so rows show nothing of other test cases: it is about the models "
            "trained there",
        ),
        Advice(
            not overlap(plan),
            "naive_t",
            "disjoint_t"
            if plan.test_sizes.min() == plan.test_sizes.max() and plan.test_sizes.min() > 1
            else "paired_t",
            "rows share neither training nor test cases and so are independent",
            "ER",
        ),
    )


def _random(plan: Plan, rates: bool, kept: bool) -> tuple[Advice, ...]:
    """Random splits and folds [*Q, R, N] of independent cases, or what passes for them."""
    alike = unlike_random(plan)
    return (
        Advice(
            bool(alike),
            "",
            "",
            f"{alike}, so they are no random splits; use leave_out or k_fold, or say with labels, groups or times what "
            "the design is",
        ),
        Advice(
            plan.test_sizes.max() == 1,
            "",
            "",
            "single test cases, from which the dependence of the models cannot be seen; use nested_pairs or k_fold "
            "with repeats, or ask for the k-fold test error",
        ),
        Advice(
            rates,
            "corrected_score",
            "corrected_score",
            "losses are 0 or 1: limits stay within these, and rows without errors are not taken for certainty",
        ),
        Advice(
            kept and "partition" not in plan.labels and plan.test_sizes.sum(-1).min() >= MANY_TESTS * plan.n,
            "jackknife_after_leave_out",
            "jackknife_after_leave_out",
            f"each case is tested {plan.test_sizes.sum(-1).min() / plan.n:.0f} times, so that the jackknife after "
            "leave-out sees what it does to test sets and to training sets, of which the corrected t takes no notice",
        ),
        Advice(
            kept and plan.n >= MANY_CASES and not not_folds(plan) and not divisions(plan).any(),
            "bouckaert_frank",
            "cv_clt",
            f"there is one division of at least {MANY_CASES} cases into folds, of which the corrected t sees little",
        ),
        Advice(
            not not_folds(plan),
            "bouckaert_frank",
            "corrected_k_fold_t",
            "folds share training cases, for which the corrected t allows",
        ),
        Advice(True, "corrected_t", "corrected_t", "splits share cases, for which the corrected t allows"),
    )


def measured(name: str, rates: bool, resamples: int) -> str:
    """The lowest coverage of R that was measured for an interval, in words; empty where none was, as for one test set
    of several trainings.
    """
    lowest = (COVERAGE_OF_RATES if rates else COVERAGE).get(name)
    if lowest is None or (name == "hold_out" and resamples > 1):
        return ""
    return f"the lowest coverage of R at 95 % that was measured is {lowest}" + " for error rates" * rates


def measured_size(name: str) -> str:
    """The largest size of a test at 5 % that was measured, in words; empty where none was."""
    largest = SIZES.get(name)
    return f"the largest size at 5 % that was measured is {largest}" if largest else ""


def zero_one(*learners: Losses) -> bool:
    """Whether the losses [*Q, R, N] of all tested cases are 0 or 1; where these were not kept, whether the loss says
    that they are.
    """
    return all(
        losses.loss == "zero_one"
        if losses.values is None
        else bool(np.isin(losses.values[np.broadcast_to(losses.test > 0, losses.values.shape)], (0, 1)).all())
        for losses in learners
    )
