"""The interval that suits a plan."""

from dataclasses import replace

import numpy as np

from jaxgen.stats import advice
from jaxgen.stats.checks import require_alternative, require_level, require_losses
from jaxgen.stats.design import groups, not_folds, serial
from jaxgen.stats.interval import resampling
from jaxgen.stats.spread import joined
from jaxgen.stats.statistic import OfRows
from jaxgen.types import Losses, Plan
from jaxgen.types.numbers import require_one_of
from jaxgen.types.result import Result

TARGETS = ("R", "ER", "the k-fold test error")


def recommend(losses: Losses, *, level: float = 0.95, alternative: str = "two-sided", target: str = "R") -> Result:
    """The interval that suits these losses and the weights of their plan; `note` says why.

    The plan is judged by its weights, whatever its name, so one of your own or of another tool is treated as what it
    is. The choice follows the coverage measured in `benchmarks/calibration.py` and `calibration_rates.py`; see
    `docs/which_interval_which_test.md`.

    Args:
      losses: [*Q, R].
      target: "R", the risk of the model trained on the n cases at hand; "ER", its expectation over training sets; or
        "the k-fold test error".
      level: confidence level, 0 < level < 1.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q]. Its own target names the number of training cases where that is less than n; its note says how often
      the method covered R where that was measured.
    Raises:
      ValueError: an unknown target, or a plan that no interval for this target is made for;
        or as the method that was chosen.
      TypeError: no losses.
    """
    require_losses(losses)
    require_one_of("target", target, TARGETS)
    require_level(level)
    require_alternative(alternative)
    name, reason = _choice(losses, target)
    more = {"target": target} if name == "jackknife_after_leave_out" else {}
    result = getattr(resampling, name)(losses, level=level, alternative=alternative, **more)
    rates = advice.zero_one(losses)
    known = target == "R" and not isinstance(losses, OfRows)
    measured = advice.measured(name, rates, losses.resamples) if known else ""
    return replace(result, note=joined(f"chosen because {reason}", result.note, measured, _fewer(losses.plan, name)))


def _choice(losses: Losses, target: str) -> tuple[str, str]:
    """The method for a plan and a target, and the reason."""
    plan = losses.plan
    expected = f"expected a plan that an interval for {target} is made for, got {plan.scheme}"
    if target == TARGETS[2]:
        if not_folds(plan) or serial(plan) or groups(plan):
            raise ValueError(
                f"{expected}: no folds of independent cases that test each of them once; use k_fold without groups, or "
                "ask for R or ER"
            )
        return "cross_validation", "its central limit theorem is about the k-fold test error"
    positive = (
        losses.values is not None and losses.values[np.broadcast_to(plan.test > 0, losses.values.shape)].min() >= 0
    )
    line = advice.line(plan, advice.zero_one(losses), bool(positive))
    if line.only not in ("", target):
        raise ValueError(
            f"{expected}: training sets that do not overlap, none of which holds all cases; ask for {line.only}"
        )
    if not line.interval:
        raise ValueError(f"{expected}: {line.reason}")
    return line.interval, line.reason


def _fewer(plan: Plan, name: str) -> str:
    """A warning where rows train on so few cases that their error says little of a model trained on all; nested
    cross-validation corrects for it.
    """
    sizes = plan.train_cases[..., plan.labels["pair"] == -1] if name == "conservative_z" else plan.train_cases
    least = int(sizes.min())
    if name == "nested_cross_validation" or least >= 0.8 * plan.n:
        return ""
    return (
        f"trained on {least} of {plan.n} cases: too high for a model trained on all where the "
        "learning curve is steep; train on nine tenths, or use nested_pairs"
    )
