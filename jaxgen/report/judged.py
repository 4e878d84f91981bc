"""What can be said of assessed learners, one view for each number that they are judged by."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from jaxgen import loss
from jaxgen.report.tables import TITLES, comparison_table, comparisons, in_a_line, intervals, on_one_plan, summaries
from jaxgen.stats import metrics
from jaxgen.types import Data, Losses
from jaxgen.types.numbers import p_in_words, require_kind
from jaxgen.types.result import Result


@dataclass(frozen=True, eq=False)
class View:
    """What is found of some learners by one number: a loss, or the area under the ROC curve.

    Attributes:
      title: the number in words, such as "error rate".
      learners: their names, in order.
      losses: of each learner, G [R]; none for a number that is no loss.
      summaries: measures of the rows, as `report.summaries`; empty for a number that is no loss.
      intervals: one for each learner; none where no method is known.
      comparisons: one for each pair; none where no method is known.
      table: of the comparisons, as `report.comparison_table`.
      troubles: sentences that say what is not here, and why, or what an area is of.
      larger_is_better: of an area under the curve.
    """

    title: str
    learners: list[str]
    losses: list[Losses] = field(default_factory=list)
    summaries: pd.DataFrame = field(default_factory=pd.DataFrame)
    intervals: list[Result] = field(default_factory=list)
    comparisons: list[Result] = field(default_factory=list)
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    troubles: list[str] = field(default_factory=list)
    larger_is_better: bool = False

    def lines(self) -> list[str]:
        """The intervals and comparisons in print, where there is no `report.page` of losses."""
        ways = dict.fromkeys(f"{one.method} ({one.source}), about {one.target}" for one in self.intervals)
        lines = [f"{self.title}: {way}" for way in ways]
        lines += [f"  {name}: {in_a_line(one)}" for name, one in zip(self.learners, self.intervals, strict=False)]
        for row in self.table.to_dict("records"):
            better = row["better"] or "not told apart"
            lines.append(
                f"{self.title} of {row['second']} minus that of {row['first']}: {row['difference']:.4f}, "
                f"p {p_in_words(row['p_value'], sign=True)}, adjusted p {p_in_words(row['adjusted'], sign=True)}; "
                f"better: {better}"
            )
        return [*lines, *self.troubles]


def views(losses: Sequence[Losses], data: Data | None = None, *, positive: Any = None) -> list[View]:
    """All views of assessed learners.

    Of a classification whose predictions were kept (`assess(..., keep="predictions")`) these are the error rate, the
    log loss of learners that predict probabilities, and of two classes, or of the positive one against the others, the
    area under the ROC curve, over the rows by the corrected t on the logit scale; else the one loss that was counted.

    Args:
      losses: of one or more learners on one plan and one data set, G [R] each.
      data: what was assessed; needed for other numbers than the loss that was counted.
      positive: the class that an area under the curve is of; None takes the second of two, and none of more.
    Returns:
      At least one view.
    Raises:
      TypeError: no list of losses, or no data.
      ValueError: losses of several data sets or plans, with failed rows, or of fewer than 2 rows.
    """
    every = on_one_plan(losses)
    if data is not None:
        require_kind("data as jaxgen.Data", data, Data, "give the data that were assessed, or leave them out")
    if data is None or data.task != "classification" or any(one.predictions is None for one in every):
        return [_of_loss(every)]
    counted = [every] if every[0].loss not in ("zero_one", "cross_entropy") else []
    found = [_of_loss(each) for each in counted]
    for other in (loss.zero_one, loss.cross_entropy):
        if every[0].loss == other.__name__:
            found.append(_of_loss(every))
            continue
        with np.errstate(all="ignore"):
            seen = [one.with_loss(other, data.y) for one in every]
        good = [one for one in seen if not one.failed.any()]
        names = ", ".join(one.name for one in seen if one.failed.any())
        lacking = f"no {TITLES[other.__name__]} of learners that do not predict probabilities: {names}"
        if good:
            found.append(_of_loss(good))
        if names:
            found[-1].troubles.append(lacking)
    if data.y.shape[-1] <= 2 or positive is not None:
        areas = _of_areas(every, data, positive)
        if data.y.shape[-1] > 2 and areas.intervals:
            areas.troubles.append(f"AUC of {positive} against all other classes")
        found.append(areas)
    else:
        found[-1].troubles.append(
            f"no AUC of {data.y.shape[-1]} classes; name the one to find among them with positive=, or --positive"
        )
    return found


def predictions_of(losses: Sequence[Losses], data: Data) -> list[metrics.Predictions]:
    """What each learner's rows predict, [R, N, K], for figures and areas."""
    classes = data.classes if len(data.classes) > 1 else ()
    return [metrics.Predictions.from_arrays(data.y, one.predictions, one.test, classes, one.name) for one in losses]


def _of_loss(losses: list[Losses]) -> View:
    troubles: list[str] = []
    found: list[list[Result]] = []
    for what, make in (("interval", intervals), ("comparison", comparisons)):
        try:
            found.append(list(make(losses)))
        except ValueError as trouble:
            found.append([])
            troubles.append(f"no {what}: {trouble}")
    names = [one.name for one in losses]
    title = TITLES.get(losses[0].loss, f"{losses[0].loss} loss")
    table = comparison_table(found[1])
    return View(title, names, losses, summaries(losses), found[0], found[1], table, troubles)


def _of_areas(losses: list[Losses], data: Data, positive: Any) -> View:
    """Areas under the ROC curve, of each row, and their differences."""
    names, plan = [one.name for one in losses], losses[0].plan
    view = View("AUC", names, larger_is_better=True)
    try:
        areas = [metrics.roc.auc(each, positive=positive) for each in predictions_of(losses, data)]
        for area in areas:
            inside = 0 < np.mean(area) < 1
            scale = "logit" if inside else "identity"
            view.intervals.append(metrics.over_splits(area, plan, unit="AUC", scale=scale))
        for one, other in itertools.combinations(areas, 2):
            difference = metrics.over_splits(other - one, plan, unit="difference of AUC")
            view.comparisons.append(replace(difference, method=difference.method.replace("t interval", "t-test")))
    except ValueError as trouble:
        return View("AUC", names, troubles=[f"no AUC: {trouble}"], larger_is_better=True)
    table = comparison_table(view.comparisons, list(itertools.combinations(names, 2)), larger_is_better=True)
    return replace(view, table=table)
