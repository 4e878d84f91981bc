"""Distributions of the generalization error."""

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxgen.plot.checks import names_of
from jaxgen.stats import estimate
from jaxgen.stats.checks import require_level, require_losses
from jaxgen.types import Losses
from jaxgen.types.numbers import require_one_of

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""

_LARGEST = 1e150
"""Values beyond it, and ranges below its inverse, have squares that are no numbers any more."""


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
      TypeError: something else than losses.
      ValueError: nothing to draw, several data sets in one, another number of labels, an unknown transform, a level
        outside (0, 1), failed rows, fewer than 2 resamplings, or values whose logarithm or range is not finite.
    """
    require_losses(*losses)
    if not losses or any(each.sets is not None for each in losses):
        raise ValueError(
            f"expected the losses of one or more learners on one data set, got {len(losses)} with sets "
            f"{[each.sets for each in losses]}; choose a set with losses[q]"
        )
    labels = names_of(losses, labels, "losses")
    require_one_of("transform", transform, ("none", "log1p"))
    require_level(level)
    drawn = [_transformed(each, transform) for each in losses]
    functions = [estimate.ecdf(values, level=level) for values in drawn]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.5), layout="constrained")
    for values, function, label, colour in zip(drawn, functions, labels, colours(len(losses)), strict=True):
        _step(left, function, textwrap.fill(label, 80), colour)
        _density(right, values, label, colour)
    scale = "G" if transform == "none" else "log(1 + G)"
    for axes, title, ylabel in (
        (left, f"Distribution function, {level:.0%} band", "share of resamplings"),
        (right, "Density; average (solid), median (dotted)", "density"),
    ):
        axes.set_title(title, fontsize=10)
        axes.set(xlabel=f"generalization error {scale}, {losses[0].unit}", ylabel=ylabel)
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


def _transformed(losses: Losses, transform: str) -> Float[np.ndarray, " R"]:
    """G, or log(1 + G), of values that can be drawn."""
    g = losses.g
    if transform == "log1p" and not (g > -1).all():
        raise ValueError(
            f"expected values above -1 for the transform log1p, got {g.min():.6g} of {losses.name}; "
            "draw them with transform='none'"
        )
    values = g if transform == "none" else np.log1p(g)
    if not np.abs(values).max() < _LARGEST:  # also where a value is NaN
        raise ValueError(
            f"expected finite values below {_LARGEST:g} to draw, got {values[~(np.abs(values) < _LARGEST)][0]:.6g} of "
            f"{losses.name}; leave such rows out, or change the unit of the target"
        )
    return values


def _step(axes: Axes, function: estimate.Ecdf, label: str, colour: str) -> None:
    axes.step(function.values, function.probability, where="post", color=colour, label=label)
    axes.fill_between(function.values, *function.band, step="post", color=colour, alpha=0.2, linewidth=0)


def _density(axes: Axes, values: Float[np.ndarray, " R"], label: str, colour: str) -> None:
    spread = float(np.ptp(values))
    if spread > 1 / _LARGEST:
        middle, units = values.mean(), (values - values.mean()) / spread  # whose squares are numbers
        reach = 3 * scipy.stats.iqr(units) or 1.0
        grid = np.linspace(max(units.min() - 0.1, units.min() - reach), units.max() + 0.1, 400)
        height = scipy.stats.gaussian_kde(units)(grid) / spread
        axes.plot(middle + spread * grid, height, color=colour, label=label)
        axes.fill_between(middle + spread * grid, height, color=colour, alpha=0.1, linewidth=0)
    axes.axvline(values.mean(), color=colour, linewidth=1)
    axes.axvline(np.median(values), color=colour, linewidth=1, linestyle=":")
