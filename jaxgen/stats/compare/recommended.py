"""The test that suits a plan."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from jaxgen.stats.compare.comparison import Comparison, require_same
from jaxgen.stats.compare.instances import disjoint_t, quasi_f
from jaxgen.stats.compare.paired import hold_out_t, mcnemar
from jaxgen.stats.compare.splits import corrected_k_fold_t, corrected_t, five_by_two_f
from jaxgen.stats.rows import Advice, divisions, not_folds, suited
from jaxgen.stats.spread import joined
from jaxgen.types import Losses, Plan


def recommend(first: Losses, second: Losses) -> Comparison:
    """The two-sided test that suits the plan of these losses; `note` says why.

    The choice follows the sizes and powers measured in `benchmarks/calibration.py`; see
    `docs/which_interval_which_test.md`.

    Args:
      first, second: losses of two learners on one plan, [*Q, R].
    Returns:
      Comparison, each number [*Q].
    Raises:
      ValueError: different plans or losses, failed rows, or a plan for which no test is known to hold its level; or as
        the test that was chosen.
      TypeError: no losses.
    """
    require_same(first, second)
    one_of_error_rates = first.resamples == 1 and _zero_one(first) and _zero_one(second)
    test, reason = _choice(first.plan, one_of_error_rates)
    result = test(first, second)
    return replace(result, note=joined(f"chosen because {reason}", result.note))


def _zero_one(losses: Losses) -> bool:
    """Whether the losses of all test cases were kept, and are 0 or 1."""
    if losses.values is None:
        return False
    tested = np.broadcast_to(losses.test > 0, losses.values.shape)
    return bool(np.isin(losses.values[tested], (0, 1)).all())


def _choice(plan: Plan, one_of_error_rates: bool) -> tuple[Callable[..., Comparison], str]:
    """The test for a plan, which may be one split of error rates, and the reason."""
    labels, folds = set(plan.labels), not not_folds(plan)
    repeats = len(np.unique(divisions(plan)))
    table = (
        Advice(plan.test.max() > 1, None, "test cases that count more than once; give test weights of 0 and 1"),
        Advice(
            np.any((plan.train > 0) & (plan.test > 0)),
            None,
            "rows tested on cases that they were trained on; use a plan that leaves its test cases out",
        ),
        Advice(
            plan.train.max() > 1,
            None,
            "bootstrap samples, whose dependence no test here allows for; use k_fold with repeats, or leave_out",
        ),
        Advice(
            "fold" in labels and "repeat" not in labels,
            None,
            "blocks of a series, whose cases depend on each other; use Prob(G2 > G1) to describe them",
        ),
        Advice(
            bool({"first", "pair"} & labels),
            None,
            "rows of several kinds, made for an interval; use k_fold with repeats, or leave_out",
        ),
        Advice(
            one_of_error_rates,
            mcnemar,
            "there is one split, and losses are 0 or 1: it is about these two models",
        ),
        Advice(plan.resamples == 1, hold_out_t, "there is one split: it is about these two models"),
        Advice(
            "instance" in labels and plan.test.min(-2).any(),
            quasi_f,
            "instances share their test cases and no training cases",
        ),
        Advice("instance" in labels, disjoint_t, "instances share no cases and so are independent"),
        Advice(
            folds and repeats == 5 and plan.resamples == 10,
            five_by_two_f,
            "there are five times two halves, and it uses all ten differences; "
            "below 300 cases it rejects equal learners too often",
        ),
        Advice(folds, corrected_k_fold_t, "folds share training cases, for which the corrected t allows"),
        Advice(True, corrected_t, "splits share cases, for which the corrected t allows"),
    )
    return suited(table, plan, "a plan for which a test is known to hold its level")
