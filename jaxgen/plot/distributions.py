"""Distributions of the generalization error."""

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxgen.stats import estimate
from jaxgen.types import Losses

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""


def distribution(
    *losses: Losses, labels: Sequence[str] | None = None, level: float = 0.95, transform: str = "none"
) -> Figure:
    """Generalization distributions of one or more learners: distribution functions with bands, and densities.

    Args:
      losses: each of one data set, G [R].
      labels: one a learner; None takes the learners' own texts.
      level: confidence level of the bands, which cover what the splits not drawn might add, and not other data.
      transform: "none" for G, or "log1p" for log(1 + G).
    Returns:
      A figure of two panels; save it with `savefig`.
    Raises:
      ValueError: nothing to draw, several data sets in one, another number of labels, or an unknown transform.
    """
    if not losses or any(one.sets is not None for one in losses):
        raise ValueError(
            f"expected the losses of one or more learners on one data set, got {len(losses)} with sets "
            f"{[one.sets for one in losses]}; choose a set with losses[q]"
        )
    labels = labels or [one.learner for one in losses]
    if len(labels) != len(losses) or transform not in ("none", "log1p"):
        raise ValueError(
            f"expected {len(losses)} labels and transform 'none' or 'log1p', got {len(labels)} and "
            f"{transform!r}; correct them"
        )
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.5), layout="constrained")
    for one, label, colour in zip(losses, labels, colours(len(losses)), strict=True):
        values = one.g if transform == "none" else np.log1p(one.g)
        _step(left, values, level, textwrap.fill(label, 80), colour)
        _density(right, values, label, colour)
    scale = "G" if transform == "none" else "log(1 + G)"
    for axes, title, ylabel in (
        (left, f"Distribution function, {level:.0%} band", "share of resamplings"),
        (right, "Density; average (solid), median (dotted)", "density"),
    ):
        axes.set_title(title, fontsize=10)
        axes.set(xlabel=f"generalization error {scale}, {losses[0].loss} loss", ylabel=ylabel)
        axes.spines[["top", "right"]].set_visible(False)
    left.set_ylim(0, 1)
    right.set_ylim(bottom=0)
    figure.legend(
        *left.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=max(1, min(3, 90 // (6 + max(map(len, labels))))),
        frameon=False,
    )
    return figure


def colours(count: int) -> list[str]:
    """So many colours, from the first again where there are more than seven."""
    return [COLOURS[i % len(COLOURS)] for i in range(count)]


def _step(axes: Axes, values: np.ndarray, level: float, label: str, colour: str) -> None:
    function = estimate.ecdf(values, level)
    axes.step(function.values, function.probability, where="post", color=colour, label=label)
    axes.fill_between(function.values, *function.band, step="post", color=colour, alpha=0.2, linewidth=0)


def _density(axes: Axes, values: np.ndarray, label: str, colour: str) -> None:
    if np.ptp(values) > 0:
        reach = 3 * scipy.stats.iqr(values) or np.ptp(values)
        grid = np.linspace(
            max(values.min() - 0.1 * np.ptp(values), values.min() - reach), values.max() + 0.1 * np.ptp(values), 400
        )
        height = scipy.stats.gaussian_kde(values)(grid)
        axes.plot(grid, height, color=colour, label=label)
        axes.fill_between(grid, height, color=colour, alpha=0.1, linewidth=0)
    axes.axvline(values.mean(), color=colour, linewidth=1)
    axes.axvline(np.median(values), color=colour, linewidth=1, linestyle=":")
