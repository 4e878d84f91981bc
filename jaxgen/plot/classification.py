"""ROC and precision-recall curves with bands over rows."""

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxgen.plot.distributions import colours
from jaxgen.stats import metrics
from jaxgen.stats.metrics import roc
from jaxgen.stats.metrics.classification import Positive, Predictions

GRID = np.linspace(0, 1, 501)


def roc_curves(
    *predictions: Predictions,
    labels: Sequence[str] | None = None,
    positive: Positive = None,
    share: float = 0.9,
    false_positive_cost: float = 1.0,
    false_negative_cost: float = 1.0,
    prior: float | None = None,
) -> Figure:
    """ROC curves: the band of the rows, the curve of all rows pooled with its convex hull, and the point of least
    expected cost on it.

    Args:
      predictions: of each learner, [R, N] or of one model, which then has no band.
      labels: one a learner; None takes the learners' own texts.
      positive: the class to find; None means the second of two.
      share: of the rows that the band holds at each false positive rate; it shows how the trained models differ, and
        not what is known of new data.
      false_positive_cost, false_negative_cost, prior: as for `jaxgen.stats.metrics.roc.operating_point`.
    Returns:
      A figure of one panel.
    Raises:
      ValueError: nothing to draw, several data sets in one, another number of labels, or a row whose test cases lack
        one of both kinds.
    """
    labels = _labels(predictions, labels)
    figure, axes = plt.subplots(figsize=(5.6, 5.4 + 0.38 * len(labels)), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":")
    for one, label, colour in zip(predictions, labels, colours(len(labels)), strict=True):
        pooled = one.pooled() if one.rows else one
        curve, point = (
            roc.curve(pooled, positive),
            roc.operating_point(pooled, false_positive_cost, false_negative_cost, prior, positive),
        )
        areas = np.atleast_1d(roc.auc(one, positive=positive))
        named = f"{textwrap.fill(label, 60)}\nAUC {np.median(areas):.3f}" + (
            f" ({', '.join(f'{v:.3f}' for v in _ends(areas, share))})" if one.rows else ""
        )
        if one.rows:
            _band(axes, roc.true_positive_at(one, GRID, positive), share, colour)
        axes.plot(curve.false_positive, curve.true_positive, color=colour, linewidth=1.4, label=named)
        axes.plot(
            curve.false_positive[curve.hull],
            curve.true_positive[curve.hull],
            color=colour,
            linewidth=0.9,
            linestyle="--",
        )
        _tangent(axes, point, colour)
    name = predictions[0].classes[predictions[0].number(positive)]
    axes.set(
        title="All rows pooled, with hull (dashed) and operating point",
        xlabel="false positive rate",
        ylabel=f"true positive rate, class {name}",
        xlim=(-0.01, 1.01),
        ylim=(-0.01, 1.01),
        aspect="equal",
    )
    _finish(figure, axes, predictions, share)
    return figure


def precision_recall_curves(
    *predictions: Predictions, labels: Sequence[str] | None = None, positive: Positive = None, share: float = 0.9
) -> Figure:
    """Precision-recall curves: the band of the rows and the curve of all rows pooled, interpolated as Davis & Goadrich
    2006.

    Args:
      predictions: of each learner, [R, N] or of one model, which then has no band.
      labels: one a learner; None takes the learners' own texts.
      positive: the class to find; None means the second of two.
      share: of the rows that the band holds at each recall; it shows how the trained models differ, and not what is
        known of new data.
    Returns:
      A figure of one panel; the dotted line is the precision of chance, the share of the class.
    Raises:
      ValueError: nothing to draw, several data sets in one, another number of labels, or a row whose test cases lack
        one of both kinds.
    """
    labels = _labels(predictions, labels)
    figure, axes = plt.subplots(figsize=(5.6, 5.4 + 0.38 * len(labels)), layout="constrained")
    for one, label, colour in zip(predictions, labels, colours(len(labels)), strict=True):
        pooled = one.pooled() if one.rows else one
        means = np.atleast_1d(metrics.average_precision(one, positive=positive))
        named = f"{textwrap.fill(label, 60)}\naverage precision {np.median(means):.3f}" + (
            f" ({', '.join(f'{v:.3f}' for v in _ends(means, share))})" if one.rows else ""
        )
        if one.rows:
            _band(axes, metrics.precision_at(one, GRID[1:], positive), share, colour, GRID[1:])
        axes.plot(GRID[1:], metrics.precision_at(pooled, GRID[1:], positive), color=colour, linewidth=1.4, label=named)
        axes.axhline(
            pooled.support[pooled.number(positive)] / pooled.support.sum(), color="0.6", linewidth=0.8, linestyle=":"
        )
    name = predictions[0].classes[predictions[0].number(positive)]
    axes.set(
        title="All rows pooled",
        xlabel=f"recall, class {name}",
        ylabel="precision",
        xlim=(-0.01, 1.01),
        ylim=(-0.01, 1.01),
        aspect="equal",
    )
    _finish(figure, axes, predictions, share)
    return figure


def _labels(predictions: tuple[Predictions, ...], labels: Sequence[str] | None) -> Sequence[str]:
    if not predictions or any(len(one.rows) > 1 for one in predictions):
        raise ValueError(
            f"expected the predictions of one or more learners on one data set, got {len(predictions)} "
            f"with rows {[list(one.rows) for one in predictions]}; choose a set with predictions[q]"
        )
    labels = labels or [one.learner for one in predictions]
    if len(labels) != len(predictions):
        raise ValueError(f"expected {len(predictions)} labels, got {len(labels)}; name each learner once")
    return labels


def _ends(values: np.ndarray, share: float) -> np.ndarray:
    """The limits of the middle share of the rows."""
    return np.quantile(values, [(1 - share) / 2, (1 + share) / 2], axis=0)


def _band(axes: Axes, heights: np.ndarray, share: float, colour: str, grid: np.ndarray = GRID) -> None:
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


def _finish(figure: Figure, axes: Axes, predictions: tuple[Predictions, ...], share: float) -> None:
    rows = any(one.rows for one in predictions)
    axes.set_title(axes.get_title() if rows else axes.get_title().replace("All rows pooled", "One model"), fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    title = f"band: {share:.0%} of rows; median (and {share:.0%} of rows)" if rows else None
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower center",
        frameon=False,
        title=title,
        title_fontsize=9,
        fontsize=9,
    )
