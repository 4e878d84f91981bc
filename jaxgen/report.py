"""Tables of what was assessed, as text."""

from collections.abc import Sequence

import pandas as pd

from jaxgen.stats import compare, estimate
from jaxgen.types import Losses


def summaries(losses: Sequence[Losses]) -> pd.DataFrame:
    """Measures of G, one row per learner, with the Monte Carlo standard error of the average.

    Args:
      losses: each of one data set, G [R].
    Returns:
      Columns avr, error, tavr, med, std, mad, iqr in the unit of the loss, and apparent, the average loss on the training cases.
    """
    rows = []
    for one in losses:
        summary = estimate.summary(one)
        frame = summary.to_frame().loc["G"].iloc[0]
        frame.loc["error"] = float(summary.monte_carlo_error)
        frame.loc["apparent"] = one.apparent.mean()
        rows.append(frame[["avr", "error", "tavr", "med", "std", "mad", "iqr", "apparent"]])
    return pd.DataFrame(rows, index=[one.learner for one in losses])


def comparisons(losses: Sequence[Losses]) -> list[compare.Comparison]:
    """The first learner against each of the others, by the corrected resampled t-test.

    Args:
      losses: of learners on one plan.
    Returns:
      One comparison per further learner.
    Raises:
      ValueError: the plan is not one that the test is made for.
    """
    return [compare.corrected_t(losses[0], other) for other in losses[1:]]


def page(losses: Sequence[Losses]) -> str:
    """Table and comparisons as printed by the command line.

    Args:
      losses: of one or more learners on one plan and one data set.
    Returns:
      Text of several lines.
    """
    table = summaries(losses).to_string(float_format=lambda v: f"{v:.5g}")
    lines = [f"{losses[0].resamples} resamplings, {losses[0].plan.scheme}", f"G, {losses[0].loss} loss; error: Monte Carlo standard error of avr, from having drawn these splits only", table, ""]
    lines += [f"{dropped} resamplings left out, in which a training failed" for dropped in {one.dropped for one in losses} - {0}]
    try:
        lines += [str(comparison) for comparison in comparisons(losses)]
    except ValueError as trouble:
        lines.append(f"no comparison: {trouble}")
    return "\n".join(lines)
