"""Prediction intervals of new cases."""

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes

from jaxgen.plot.checks import Panels, SeveralAxes, listed, require_axes
from jaxgen.plot.distributions import COLOURS
from jaxgen.stats.checks import as_numbers
from jaxgen.stats.conformal import PredictionIntervals
from jaxgen.types.numbers import require, require_labels


def prediction_intervals(
    *intervals: Any,
    labels: Sequence[str] | None = None,
    y: Any = None,
    output: int = 0,
    ax: SeveralAxes | None = None,
) -> Panels:
    """Intervals of new cases in the order of their predictions, a panel for each method, with the targets where they
    are known; those outside of their interval are filled, and each panel says how many are covered.

    An infinite limit is drawn to the edge.

    Args:
      intervals: what functions of `stats.conformal` returned for the same new cases of one data set, [M, K] each; one
        after the other, in one list, or in a mapping of labels.
      labels: one for each; None takes method and learner.
      y: targets of the new cases, [M, K], or [M] if K is 1; None where they are not known.
      output: which of K outputs, from 0.
      ax: as many axes to draw on; None makes a figure.
    Returns:
      The panels, one below the other.
    Raises:
      TypeError: something else than prediction intervals, or than axes, or targets that are no numbers.
      ValueError: nothing to draw, several data sets, different new cases, another number of labels, no such output, or
        targets that do not fit.
    """
    advice = "give what a function of conformal returned"
    given, labels = listed(intervals, labels, PredictionIntervals, "prediction intervals", advice)
    shapes = [each.lower.shape for each in given]
    if not shapes or len(set(shapes)) > 1 or len(shapes[0]) != 2:
        raise ValueError(
            "expected one or more intervals of the same new cases of one data set, [M, K], got "
            f"{len(shapes)} of shapes {[list(shape) for shape in shapes]}; make them of one, predicted[q]"
        )
    require_labels(labels, len(given), "intervals")
    require_axes(ax, len(given))
    output = require("output", output, 0, shapes[0][-1] - 1, "the outputs of the intervals")
    covered = [None if y is None else each.covers(y)[:, output] for each in given]
    targets = None if y is None else as_numbers("targets", y).reshape(shapes[0])[:, output]
    size = (7.5, 1.0 + 2.5 * len(given))
    options = {"figsize": size, "sharey": True, "squeeze": False, "layout": "constrained"}
    panels = Panels(plt.subplots(len(given), **options)[1][:, 0] if ax is None else ax)
    low, high = _reach(given, targets, output)
    named = [f"{each.method} of {each.learner}" for each in given] if labels is None else labels
    for axes, each, label, inside in zip(panels, given, named, covered, strict=True):
        axes.set(xlim=(-1, shapes[0][0]), ylim=(low, high))
        _panel(axes, each, targets, inside, output)
        said = "" if inside is None else f", {int(inside.sum())} of {len(inside)} covered ({inside.mean():.1%})"
        kind = {"two-sided": "intervals", "greater": "lower limits", "less": "upper limits"}[each.alternative]
        axes.set_title(textwrap.fill(f"{label}: {100 * each.level:.4g}% {kind}{said}", 100), fontsize=9)
        axes.set_ylabel(textwrap.fill(each.unit, 32), fontsize=9)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("new cases in the order of their predictions", fontsize=9)
    return panels


def _reach(
    intervals: Sequence[PredictionIntervals], targets: Float[np.ndarray, " M"] | None, output: int
) -> tuple[float, float]:
    """The ends of the vertical axis: all that is finite, with some room."""
    drawn = [a[:, output] for each in intervals for a in (each.prediction, each.lower, each.upper)]
    values = np.concatenate([*drawn, *([] if targets is None else [targets])])
    values = values[np.isfinite(values)]
    room = 0.05 * float(np.ptp(values)) or 1.0
    return float(values.min()) - room, float(values.max()) + room


def _panel(
    axes: Axes,
    intervals: PredictionIntervals,
    targets: Float[np.ndarray, " M"] | None,
    covered: Bool[np.ndarray, " M"] | None,
    output: int,
) -> None:
    """The intervals of one method, and the targets [M]."""
    middle = intervals.prediction[:, output]
    order, place = np.argsort(middle, kind="stable"), np.arange(len(middle))
    lower, upper = (np.clip(a[order, output], *axes.get_ylim()) for a in (intervals.lower, intervals.upper))
    width = min(4.0, max(0.6, 250 / len(order)))
    axes.vlines(place, lower, upper, color=COLOURS[0], linewidth=width, alpha=0.35)
    axes.plot(place, middle[order], color=COLOURS[0], linewidth=1.4, label="prediction")
    if targets is not None and covered is not None:
        inside, known = covered[order], targets[order]
        axes.plot(place[inside], known[inside], "o", color="0.25", markersize=3, fillstyle="none", label="covered")
        axes.plot(place[~inside], known[~inside], "o", color=COLOURS[1], markersize=3.5, label="not covered")
    axes.legend(frameon=False, fontsize=8, loc="upper left")
