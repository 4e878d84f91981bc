"""ROC and precision-recall curves with bands over rows."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from jaxgen.plot.checks import legend_below, listed, names_of, one_panel, require_axes
from jaxgen.plot.distributions import colours
from jaxgen.stats import metrics
from jaxgen.stats.metrics import roc
from jaxgen.stats.metrics.predictions import Positive, Predictions
from jaxgen.types.numbers import require_number

GRID = np.linspace(0, 1, 501)


def roc_curves(
    *predictions: Any,
    labels: Sequence[str] | None = None,
    positive: Positive = None,
    share: float = 0.9,
    false_positive_cost: float = 1.0,
    false_negative_cost: float = 1.0,
    prior: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """ROC curves: the band of the rows, the curve of all rows pooled with its convex hull, and the point of least
    expected cost on it.

    Args:
      predictions: of each learner, [R, N] or of one model, which then has no band; one after the other, in one list, or
        in a mapping of labels.
      labels: one a learner; None takes the learners' own names.
      positive: the class to find; None means the second of two.
      share: of the rows that the band holds at each false positive rate; it shows how the trained models differ, and
        not what is known of new data.
      false_positive_cost, false_negative_cost, prior: as for `jaxgen.stats.metrics.roc.operating_point`.
      ax: axes to draw on; None makes a figure.
    Returns:
      The axes.
    Raises:
      TypeError: something else than predictions, or than axes.
      ValueError: nothing to draw, several data sets in one, another number of labels, a share, cost or prior out of
        range, an unknown class, or a row whose test cases lack one of both kinds.
    """
    given, labels = _checked(predictions, labels, share)
    require_axes(ax)
    models = [each.pooled() if each.rows else each for each in given]
    curves = [roc.curve(model, positive=positive) for model in models]
    costs = {"false_positive_cost": false_positive_cost, "false_negative_cost": false_negative_cost, "prior": prior}
    points = [roc.operating_point(model, positive=positive, **costs) for model in models]
    areas = [np.atleast_1d(roc.auc(each, positive=positive)) for each in given]
    bands = [roc.true_positive_at(each, GRID, positive=positive) if each.rows else None for each in given]
    axes = one_panel(ax, (5.6, 5.4 + 0.38 * len(labels)))
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":")
    parts = zip(curves, points, areas, bands, labels, colours(len(labels)), strict=True)
    for curve, point, area, band, label, colour in parts:
        entry = _entry(label, "AUC", area, share)
        if band is not None:
            _band(axes, GRID, band, share, colour)
        axes.plot(curve.false_positive, curve.true_positive, color=colour, linewidth=1.4, label=entry)
        axes.plot(
            curve.false_positive[curve.hull],
            curve.true_positive[curve.hull],
            color=colour,
            linewidth=0.9,
            linestyle="--",
        )
        _tangent(axes, point, colour)
    name = given[0].classes[given[0].number(positive)]
    axes.set(
        title="All rows pooled, with hull (dashed) and operating point",
        xlabel="false positive rate",
        ylabel=f"true positive rate, class {name}",
        xlim=(-0.01, 1.01),
        ylim=(-0.01, 1.01),
        aspect="equal",
    )
    _finish(axes, ax is None, given, share)
    return axes


def precision_recall_curves(
    *predictions: Any,
    labels: Sequence[str] | None = None,
    positive: Positive = None,
    share: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Precision-recall curves: the band of the rows and the curve of all rows pooled, interpolated as Davis & Goadrich
    2006.

    Args:
      predictions: of each learner, [R, N] or of one model, which then has no band; one after the other, in one list, or
        in a mapping of labels.
      labels: one a learner; None takes the learners' own names.
      positive: the class to find; None means the second of two.
      share: of the rows that the band holds at each recall; it shows how the trained models differ, and not what is
        known of new data.
      ax: axes to draw on; None makes a figure.
    Returns:
      The axes; the dotted line is the precision of chance, the share of the class.
    Raises:
      TypeError: something else than predictions, or than axes.
      ValueError: nothing to draw, several data sets in one, another number of labels, a share out of range, an unknown
        class, or a row whose test cases lack one of both kinds.
    """
    given, labels = _checked(predictions, labels, share)
    require_axes(ax)
    models = [each.pooled() if each.rows else each for each in given]
    recalls = GRID[1:]  # a recall of 0 has no precision
    curves = [metrics.precision_at(model, recalls, positive=positive) for model in models]
    means = [np.atleast_1d(metrics.average_precision(each, positive=positive)) for each in given]
    bands = [metrics.precision_at(each, recalls, positive=positive) if each.rows else None for each in given]
    axes = one_panel(ax, (5.6, 5.4 + 0.38 * len(labels)))
    parts = zip(models, curves, means, bands, labels, colours(len(labels)), strict=True)
    for model, curve, mean, band, label, colour in parts:
        if band is not None:
            _band(axes, recalls, band, share, colour)
        axes.plot(recalls, curve, color=colour, linewidth=1.4, label=_entry(label, "average precision", mean, share))
        chance = model.support[model.number(positive)] / model.support.sum()
        axes.axhline(chance, color="0.6", linewidth=0.8, linestyle=":")
    name = given[0].classes[given[0].number(positive)]
    axes.set(
        title="All rows pooled",
        xlabel=f"recall, class {name}",
        ylabel=f"precision, class {name}",
        xlim=(-0.01, 1.01),
        ylim=(-0.01, 1.01),
        aspect="equal",
    )
    _finish(axes, ax is None, given, share)
    return axes


def _checked(
    predictions: Sequence[Any], labels: Sequence[str] | None, share: float
) -> tuple[list[Predictions], list[str]]:
    """Predictions that can be drawn together, and their labels."""
    given, labels = listed(
        predictions, labels, Predictions, "Predictions", "make them with metrics.Predictions.of(losses, data)"
    )
    if not given or any(len(each.rows) > 1 for each in given):
        raise ValueError(
            f"expected the predictions of one or more learners on one data set, got {len(given)} "
            f"with rows {[list(each.rows) for each in given]}; choose a set with predictions[q]"
        )
    require_number("share", share, above=0, most=1, advice="give 0.9 for the middle 90 % of the rows")
    return given, names_of(given, labels, "predictions")


def _entry(label: str, measure: str, values: Float[np.ndarray, " R"], share: float) -> str:
    """A learner's entry in the legend: the median of a measure over the rows, and the ends of their middle share."""
    ends = f" ({', '.join(f'{end:.3f}' for end in _ends(values, share))})" if len(values) > 1 else ""
    return f"{textwrap.fill(label, 60)}\n{measure} {np.median(values):.3f}{ends}"


def _ends(values: Float[np.ndarray, "R *G"], share: float) -> Float[np.ndarray, "2 *G"]:
    """The limits of the middle share of the rows."""
    return np.quantile(values, [(1 - share) / 2, (1 + share) / 2], axis=0)


def _band(
    axes: Axes, grid: Float[np.ndarray, " G"], heights: Float[np.ndarray, "R G"], share: float, colour: str
) -> None:
    axes.fill_between(grid, *_ends(heights, share), color=colour, alpha=0.18, linewidth=0)


def _tangent(axes: Axes, point: roc.OperatingPoint, colour: str) -> None:
    """The operating point, and a piece of the line of equal cost through it."""
    step = np.array([-1, 1]) * 0.12 / np.hypot(1, point.slope)
    axes.plot(point.false_positive + step, point.true_positive + step * point.slope, color="0.3", linewidth=0.8)
    axes.plot(
        point.false_positive,
        point.true_positive,
        "o",
        color=colour,
        markersize=7,
        markeredgecolor="white",
        markeredgewidth=1,
        clip_on=False,
    )


def _finish(axes: Axes, own: bool, predictions: Sequence[Predictions], share: float) -> None:
    rows = any(each.rows for each in predictions)
    axes.set_title(axes.get_title() if rows else axes.get_title().replace("All rows pooled", "One model"), fontsize=11)
    title = f"band: {share:.0%} of rows; median (and {share:.0%} of rows)" if rows else None
    legend_below((axes,), own, title=title, title_fontsize=9, fontsize=9)
