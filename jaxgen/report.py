"""Tables of what was assessed, as text."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from jaxgen.stats import compare, estimate, interval
from jaxgen.stats.checks import as_learners
from jaxgen.types import Losses
from jaxgen.types.result import Result


def summaries(losses: Sequence[Losses]) -> pd.DataFrame:
    """Measures of G, one row per learner, with the Monte Carlo standard error of the average.

    Args:
      losses: each of one data set, G [R].
    Returns:
      Columns avr, error, tavr, med, std, mad, iqr in the unit of the loss, and apparent, the average loss on the
      training cases, NaN where it is not known.
    Raises:
      TypeError: no list of losses.
      ValueError: losses of several data sets, with failed rows, or of fewer than 2 rows.
    """
    rows = []
    each = _of_one_set(losses)
    for one_learner in each:
        summary = estimate.summary(one_learner)
        measures = summary.to_frame().loc["G"].iloc[0]
        measures.loc["error"] = float(summary.monte_carlo_error)
        measures.loc["apparent"] = np.mean(one_learner.train_mean)
        rows.append(measures[["avr", "error", "tavr", "med", "std", "mad", "iqr", "apparent"]])
    return pd.DataFrame(rows, index=[one_learner.name for one_learner in each])


def intervals(losses: Sequence[Losses]) -> list[Result]:
    """The interval of each learner that suits the plan, by `interval.recommend`.

    Args:
      losses: of learners on one plan, G [R] each.
    Returns:
      One result per learner.
    Raises:
      TypeError: no list of losses.
      ValueError: a plan from which no interval is known to cover what it should.
    """
    return [interval.recommend(one_learner) for one_learner in as_learners(losses, least=1)]


def comparisons(losses: Sequence[Losses]) -> list[compare.Comparison]:
    """The first learner against each of the others, by the test that suits the plan, `compare.recommend`.

    Args:
      losses: of learners on one plan, G [R] each.
    Returns:
      One comparison per further learner.
    Raises:
      TypeError: no list of losses.
      ValueError: a plan for which no test is known to hold its level.
    """
    first, *others = as_learners(losses, least=1)
    return [compare.recommend(first, other) for other in others]


def page(losses: Sequence[Losses]) -> str:
    """Table and comparisons as printed by the command line.

    Args:
      losses: of one or more learners on one plan and one data set, G [R] each.
    Returns:
      Text of several lines.
    Raises:
      TypeError: no list of losses.
      ValueError: losses of several data sets or plans, with failed rows, or of fewer than 2 rows.
    """
    first, *others = _of_one_set(losses)
    for other in others:
        if other.plan.scheme != first.plan.scheme or other.loss != first.loss:
            raise ValueError(
                f"expected learners on one plan with one loss, got {first.loss} on {first.plan.scheme} and "
                f"{other.loss} on {other.plan.scheme}; make a page for each"
            )
    every = [first, *others]
    table = summaries(every).to_string(float_format=lambda v: f"{v:.5g}")
    lines = [
        f"{first.resamples} resamplings, {first.plan.scheme}",
        f"G, {first.unit}; error: Monte Carlo standard error of avr, from having drawn these splits only; "
        "NaN where none were drawn",
        table,
        "",
    ]
    lines += [
        f"{dropped} resamplings left out, in which a training failed"
        for dropped in {one_learner.dropped for one_learner in every} - {0}
    ]
    return "\n".join([*lines, *_lines("interval", intervals, every), *_lines("comparison", comparisons, every)])


def _of_one_set(losses: Sequence[Losses]) -> list[Losses]:
    """Losses of one data set each, G [R], as a list."""
    each = as_learners(losses, least=1)
    several = next((one_learner for one_learner in each if one_learner.sets is not None), None)
    if several is not None:
        raise ValueError(
            f"expected the losses of one data set, got those of {several.sets} of {several.name}; choose one with "
            "losses[q]"
        )
    return each


def _lines(what: str, make: Callable[[Sequence[Losses]], Sequence[object]], losses: Sequence[Losses]) -> list[str]:
    """What can be said of the losses, or why it cannot."""
    try:
        return [str(statement) for statement in make(losses)]
    except ValueError as trouble:
        return [f"no {what}: {trouble}"]
