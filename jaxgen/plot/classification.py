"""ROC and precision-recall curves with bands over rows."""

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxgen.plot.checks import names_of
from jaxgen.plot.distributions import colours
from jaxgen.stats import metrics
from jaxgen.stats.metrics import roc
from jaxgen.stats.metrics.classification import Positive, Predictions
from jaxgen.types.numbers import require_kind, require_number

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
      TypeError: something else than predictions.
      ValueError: nothing to draw, several data sets in one, another number of labels, a share, cost or prior out of
        range, an unknown class, or a row whose test cases lack one of both kinds.
    """
    labels = _checked(predictions, labels, share)
    models = [each.pooled() if each.rows else each for each in predictions]
    curves = [roc.curve(model, positive=positive) for model in models]
    costs = {"false_positive_cost": false_positive_cost, "false_negative_cost": false_negative_cost, "prior": prior}
    points = [roc.operating_point(model, positive=positive, **costs) for model in models]
    areas = [np.atleast_1d(roc.auc(each, positive=positive)) for each in predictions]
    bands = [roc.true_positive_at(each, GRID, positive=positive) if each.rows else None for each in predictions]
    figure, axes = _panel(len(labels))
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
      TypeError: something else than predictions.
      ValueError: nothing to draw, several data sets in one, another number of labels, a share out of range, an unknown
        class, or a row whose test cases lack one of both kinds.
    """
    labels = _checked(predictions, labels, share)
    models = [each.pooled() if each.rows else each for each in predictions]
    recalls = GRID[1:]  # a recall of 0 has no precision
    curves = [metrics.precision_at(model, recalls, positive=positive) for model in models]
    means = [np.atleast_1d(metrics.average_precision(each, positive=positive)) for each in predictions]
    bands = [metrics.precision_at(each, recalls, positive=positive) if each.rows else None for each in predictions]
    figure, axes = _panel(len(labels))
    parts = zip(models, curves, means, bands, labels, colours(len(labels)), strict=True)
    for model, curve, mean, band, label, colour in parts:
        if band is not None:
            _band(axes, recalls, band, share, colour)
        axes.plot(recalls, curve, color=colour, linewidth=1.4, label=_entry(label, "average precision", mean, share))
        chance = model.support[model.number(positive)] / model.support.sum()
        axes.axhline(chance, color="0.6", linewidth=0.8, linestyle=":")
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


def _checked(predictions: tuple[Predictions, ...], labels: Sequence[str] | None, share: float) -> list[str]:
    """The labels of predictions that can be drawn together."""
    for each in predictions:
        require_kind("Predictions", each, Predictions, "make them with metrics.Predictions.from_arrays")
    if not predictions or any(len(each.rows) > 1 for each in predictions):
        raise ValueError(
            f"expected the predictions of one or more learners on one data set, got {len(predictions)} "
            f"with rows {[list(each.rows) for each in predictions]}; choose a set with predictions[q]"
        )
    require_number("share", share, above=0, most=1, advice="give 0.9 for the middle 90 % of the rows")
    return names_of(predictions, labels, "predictions")


def _panel(entries: int) -> tuple[Figure, Axes]:
    """A square panel with room for so many entries of a legend below it."""
    return plt.subplots(figsize=(5.6, 5.4 + 0.38 * entries), layout="constrained")


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


def _finish(figure: Figure, axes: Axes, predictions: tuple[Predictions, ...], share: float) -> None:
    rows = any(each.rows for each in predictions)
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
