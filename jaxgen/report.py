"""Tables of what was assessed, as text."""

from collections.abc import Callable, Sequence

import pandas as pd

from jaxgen.stats import compare, estimate, interval
from jaxgen.types import Losses
from jaxgen.types.result import Result


def summaries(losses: Sequence[Losses]) -> pd.DataFrame:
    """Measures of G, one row per learner, with the Monte Carlo standard error of the average.

    Args:
      losses: each of one data set, G [R].
    Returns:
      Columns avr, error, tavr, med, std, mad, iqr in the unit of the loss, and apparent, the average loss on the
      training cases.
    """
    rows = []
    for one in losses:
        summary = estimate.summary(one)
        frame = summary.to_frame().loc["G"].iloc[0]
        frame.loc["error"] = float(summary.monte_carlo_error)
        frame.loc["apparent"] = one.apparent.mean()
        rows.append(frame[["avr", "error", "tavr", "med", "std", "mad", "iqr", "apparent"]])
    return pd.DataFrame(rows, index=[one.learner for one in losses])


def intervals(losses: Sequence[Losses]) -> list[Result]:
    """The interval of each learner that suits the plan, by `interval.recommend`.

    Args:
      losses: of learners on one plan, G [R] each.
    Returns:
      One result per learner.
    Raises:
      ValueError: a plan from which no interval is known to cover what it should.
    """
    return [interval.recommend(one) for one in losses]


def comparisons(losses: Sequence[Losses]) -> list[compare.Comparison]:
    """The first learner against each of the others, by the test that suits the plan, `compare.recommend`.

    Args:
      losses: of learners on one plan, G [R] each.
    Returns:
      One comparison per further learner.
    Raises:
      ValueError: a plan for which no test is known to hold its level.
    """
    return [compare.recommend(losses[0], other) for other in losses[1:]]


def page(losses: Sequence[Losses]) -> str:
    """Table and comparisons as printed by the command line.

    Args:
      losses: of one or more learners on one plan and one data set.
    Returns:
      Text of several lines.
    """
    table = summaries(losses).to_string(float_format=lambda v: f"{v:.5g}")
    lines = [
        f"{losses[0].resamples} resamplings, {losses[0].plan.scheme}",
        f"G, {losses[0].loss} loss; error: Monte Carlo standard error of avr, from having drawn these splits only",
        table,
        "",
    ]
    lines += [
        f"{dropped} resamplings left out, in which a training failed"
        for dropped in {one.dropped for one in losses} - {0}
    ]
    return "\n".join([*lines, *_said("interval", intervals, losses), *_said("comparison", comparisons, losses)])


def _said(what: str, make: Callable[[Sequence[Losses]], Sequence[object]], losses: Sequence[Losses]) -> list[str]:
    """What can be said of the losses, or why it cannot."""
    try:
        return [str(one) for one in make(losses)]
    except ValueError as trouble:
        return [f"no {what}: {trouble}"]
