"""Tables of what was assessed, also as text."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats

from jaxgen.stats import compare, estimate, interval
from jaxgen.stats.checks import as_learners
from jaxgen.types import Losses
from jaxgen.types.numbers import p_in_words
from jaxgen.types.result import Result

COLUMNS = {
    "mean": "mean",
    "monte_carlo_error": "± (splits)",
    "trimmed_mean": "trimmed mean",
    "median": "median",
    "standard_deviation": "std. dev.",
    "median_deviation": "median dev.",
    "interquartile_range": "interquartile",
    "apparent": "training",
}
"""The columns of `summaries`, and what they are called in print."""

TITLES = {
    "squared": "squared error",
    "absolute": "absolute error",
    "zero_one": "error rate",
    "cross_entropy": "log loss",
    "hinge": "hinge loss",
    "log_score": "log score",
}
"""What losses are called in print."""

_LONG = 24
"""Learners with longer names are numbered in the table of pairs."""

_PRINTED = ("mean", "monte_carlo_error", "median", "standard_deviation", "apparent")


def summaries(losses: Sequence[Losses]) -> pd.DataFrame:
    """Measures of G, one row per learner, with the Monte Carlo standard error of the average.

    Args:
      losses: each of one data set, G [R].
    Returns:
      In the unit of the loss: mean; monte_carlo_error, the standard error of the mean that comes from having drawn
      these splits only; trimmed_mean, of the middle 90 %; median; standard_deviation; median_deviation, the median
      absolute deviation from the median; interquartile_range; and apparent, the mean loss on the training cases, NaN
      where it is not known.
    Raises:
      TypeError: no list of losses.
      ValueError: losses of several data sets, with failed rows, or of fewer than 2 rows.
    """
    rows = []
    each = of_one_set(losses)
    for one_learner in each:
        found = estimate.summary(one_learner)
        raw, error, apparent = found.raw, found.monte_carlo_error, np.mean(one_learner.train_mean)
        numbers = (raw.avr, error, raw.tavr, raw.med, raw.std, raw.mad, raw.iqr, apparent)
        rows.append(dict(zip(COLUMNS, map(float, numbers), strict=True)))
    return pd.DataFrame(rows, index=[one_learner.name for one_learner in each], columns=list(COLUMNS))


def intervals(losses: Sequence[Losses]) -> list[Result]:
    """The interval of each learner that suits the plan, by `interval.recommend`.

    Args:
      losses: of learners on one plan, G [R] each.
    Returns:
      One result per learner.
    Raises:
      TypeError: no list of losses.
      ValueError: a plan that no interval is made for.
    """
    return [interval.recommend(one_learner) for one_learner in as_learners(losses, least=1)]


def comparisons(losses: Sequence[Losses]) -> list[compare.Comparison]:
    """All pairs of learners, each by the test that suits the plan, `compare.recommend`.

    Args:
      losses: of learners on one plan, G [R] each.
    Returns:
      One comparison per pair: the first with each other, then the second with those after it, and so on.
    Raises:
      TypeError: no list of losses.
      ValueError: a plan that no test is made for.
    """
    return [compare.recommend(*pair) for pair in itertools.combinations(as_learners(losses, least=1), 2)]


def comparison_table(
    found: Sequence[Result], pairs: Sequence[tuple[str, str]] | None = None, *, larger_is_better: bool = False
) -> pd.DataFrame:
    """Comparisons with p-values that are adjusted for their number (Holm 1979), and which learner is better.

    Args:
      found: what `comparisons` returned; or differences of another number, second minus first, with their intervals.
      pairs: the names of the first and the second learner of each; None takes those of the comparisons.
      larger_is_better: whether a larger number is better, as an area under the ROC curve.
    Returns:
      Columns first; second; difference, second minus first; lower and upper limit of the interval of that pair alone;
      p_value, of a difference without one that of the t-test of its standard error; adjusted, equal for one pair; and
      better, the learner with the lesser error where the adjusted p-value is at most 1 - level, else empty. NaN where a
      test has no such number.
    """
    if pairs is None:
        pairs = [(one.first, one.second) for one in found if isinstance(one, compare.Comparison)]
    p = np.array([_p_value(one) for one in found])
    adjusted = np.where(np.isnan(p), np.nan, compare.holm(np.where(np.isnan(p), 1.0, p))) if len(p) else p
    rows = []
    for one, (first, second), alone, joint in zip(found, pairs, p, adjusted, strict=True):
        difference = float(one.estimate)
        lower_wins = first if difference > 0 else second
        winner = ({first, second} - {lower_wins}).pop() if larger_is_better and first != second else lower_wins
        better = winner if joint <= 1 - one.level and difference != 0 else ""
        limits = (float(one.lower), float(one.upper))
        rows.append((first, second, difference, *limits, float(alone), float(joint), better))
    columns = ["first", "second", "difference", "lower", "upper", "p_value", "adjusted", "better"]
    return pd.DataFrame(rows, columns=columns)


def _p_value(found: Result) -> float:
    """Of a two-sided test: its own, or that of the t-test by standard error and degrees of freedom."""
    if isinstance(found, compare.Comparison):
        return float(found.p_value)
    error, difference = float(found.standard_error), abs(float(found.estimate))
    if not error > 0:
        return 1.0 if difference == 0 else float("nan")
    return float(2 * scipy.stats.t.sf(difference / error, float(found.df)))


def in_a_line(found: Result) -> str:
    """An estimate with its interval, where there is one."""
    if np.isnan(float(found.lower)) and np.isnan(float(found.upper)):
        return f"{float(found.estimate):.4g}, no interval"
    limits = f"[{float(found.lower):.4g}, {float(found.upper):.4g}]"
    return f"{float(found.estimate):.4g}, {100 * found.level:.4g}% interval {limits}"


def page(losses: Sequence[Losses]) -> str:
    """Table, intervals and comparisons as printed by the command line.

    Args:
      losses: of one or more learners on one plan and one data set, G [R] each.
    Returns:
      Text of several lines.
    Raises:
      TypeError: no list of losses.
      ValueError: losses of several data sets or plans, with failed rows, or of fewer than 2 rows.
    """
    every = on_one_plan(losses)
    first = every[0]
    lines = [
        f"{first.resamples} resamplings, {first.plan.scheme}",
        f"{TITLES.get(first.loss, first.loss)} ({first.loss} loss) of the cases left out, over the resamplings",
        "± (splits): standard error of the mean from having drawn these splits only, NaN where none were drawn; "
        "training: on the training cases",
        printed_summaries(every),
        "",
    ]
    lines += [
        f"{dropped} resamplings left out, in which a training failed"
        for dropped in {one_learner.dropped for one_learner in every} - {0}
    ]
    return "\n".join([*lines, *_intervals_in_words(every), *compared_in_words(every)])


def printed_summaries(losses: Sequence[Losses]) -> str:
    """The table of the learners' losses G [R] with as many columns as fit on a line."""
    table: Any = summaries(losses)[list(_PRINTED)]
    table = table.rename(columns=COLUMNS)
    return table.to_string(float_format=lambda v: f"{v:.5g}")


def compared_in_words(losses: Sequence[Losses]) -> list[str]:
    """The one comparison of two learners, G [R] each, or a table of all pairs; or why there is none."""
    if len(losses) < 2:
        return []
    try:
        found = comparisons(losses)
    except ValueError as trouble:
        return [f"no comparison: {trouble}"]
    table = comparison_table(found)
    if len(found) == 1:
        return [str(found[0]), f"  {verdict(table.iloc[0], found[0].level)}"]
    head = f"all pairs by the {found[0].method} ({found[0].source}), p-values adjusted by Holm 1979"
    notes = dict.fromkeys(one.note for one in found if one.note)
    about = f"about {found[0].target}"
    legend = []
    if max(len(one.name) for one in losses) > _LONG:
        legend = [f"  {number}: {one.name}" for number, one in enumerate(losses, 1)]
        short = {one.name: str(number) for number, one in reversed([*enumerate(losses, 1)])}
        table = table.replace({name: short for name in ("first", "second", "better")})
    lines = printed_comparisons(table, found[0].level).split("\n")
    return [head, *legend, *lines, about, *(f"note: {note}" for note in notes)]


def printed_comparisons(table: pd.DataFrame, level: float) -> str:
    """A table of comparisons as text, in plain words."""
    shown = pd.DataFrame(
        {
            "first": table["first"],
            "second": table["second"],
            "second - first": [f"{value:.4g}" for value in table["difference"]],
            f"{100 * level:.4g}% interval": [
                "none" if np.isnan(low) else f"[{low:.4g}, {high:.4g}]"
                for low, high in zip(table["lower"], table["upper"], strict=True)
            ],
            "p": [p_in_words(p) for p in table["p_value"]],
            "adjusted p": [p_in_words(p) for p in table["adjusted"]],
            "better": [better or "not told apart" for better in table["better"]],
        }
    )
    return shown.to_string(index=False)


def verdict(row: Any, level: float) -> str:
    """Which learner of a row of `comparison_table` is better, in a sentence."""
    if row["better"]:
        return f"so {row['better']} is better, p {p_in_words(row['adjusted'], sign=True)}"
    if np.isnan(row["adjusted"]):
        return "so the test does not say which is better"
    return f"so they are not told apart at {1 - level:.2g}, p {p_in_words(row['adjusted'], sign=True)}"


def on_one_plan(losses: Sequence[Losses]) -> list[Losses]:
    """Losses of one data set, on one plan and of one loss, G [R], as a list."""
    first, *others = of_one_set(losses)
    for other in others:
        if other.plan.scheme != first.plan.scheme or other.loss != first.loss:
            raise ValueError(
                f"expected learners on one plan with one loss, got {first.loss} on {first.plan.scheme} and "
                f"{other.loss} on {other.plan.scheme}; make a page for each"
            )
    return [first, *others]


def of_one_set(losses: Sequence[Losses]) -> list[Losses]:
    """Losses of one data set each, G [R], as a list."""
    each = as_learners(losses, least=1)
    several = next((one_learner for one_learner in each if one_learner.sets is not None), None)
    if several is not None:
        raise ValueError(
            f"expected the losses of one data set, got those of {several.sets} of {several.name}; choose one with "
            "losses[q]"
        )
    return each


def _intervals_in_words(losses: Sequence[Losses]) -> list[str]:
    """The interval of each learner below the method, which is said once; or why there is none."""
    try:
        found = intervals(losses)
    except ValueError as trouble:
        return [f"no interval: {trouble}"]
    lines, before = [], ("", "")
    for one in found:
        method = f"{one.method} ({one.source}), about {one.target}"
        if (method, one.note) != before:
            lines += [method, *([f"  note: {one.note}"] if one.note else [])]
            before = method, one.note
        lines.append(f"  {one.learner}: {' '.join(one.lines())}")
    return lines
