"""Distributions of the generalization error."""

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
from jaxtyping import Float
from matplotlib.axes import Axes

from jaxgen.plot.checks import Panels, SeveralAxes, legend_below, listed, names_of, require_axes
from jaxgen.stats import estimate
from jaxgen.stats.checks import require_level, require_losses
from jaxgen.types import Losses
from jaxgen.types.numbers import require_one_of

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""

_NOT_NEGATIVE = ("squared", "absolute", "zero_one", "cross_entropy", "hinge")
"""Losses that are 0 at least."""

_HIGHER = 8
"""A density that is so many times as high as the next lower one is cut, since the others could not be seen."""

_LARGEST = 1e150
"""Values beyond it, and ranges below its inverse, have squares that are no numbers any more."""


def distribution(
    *losses: Any,
    labels: Sequence[str] | None = None,
    level: float = 0.95,
    transform: str = "none",
    ax: SeveralAxes | None = None,
) -> Panels:
    """Generalization distributions of one or more learners: distribution functions with bands, and densities.

    Args:
      losses: each of one data set, G [R]; one after the other, in one list, or in a mapping of labels.
      labels: one a learner; None takes the learners' own names.
      level: confidence level of the bands, which cover what the splits not drawn might add, and not other data.
      transform: "none" for G, or "log1p" for log(1 + G).
      ax: two axes to draw on; None makes a figure.
    Returns:
      The two panels; save them with `savefig`. Densities end where the loss does: at 0, and for error rates at 1. One
      that is more than 8 times as high as the next is cut, and the legend says so.
    Raises:
      TypeError: something else than losses, or than axes.
      ValueError: nothing to draw, several data sets in one, different losses, another number of labels, an unknown
        transform, a level outside (0, 1), failed rows, fewer than 2 resamplings, or values whose logarithm or range is
        not finite.
    """
    learners, labels = listed(losses, labels, Losses, "losses, as assess gives them", "give what assess returned")
    require_losses(*learners)
    if not learners or any(each.sets is not None for each in learners):
        raise ValueError(
            f"expected the losses of one or more learners on one data set, got {len(learners)} with sets "
            f"{[each.sets for each in learners]}; choose a set with losses[q]"
        )
    units = list(dict.fromkeys(each.unit for each in learners))
    if len(units) > 1:
        raise ValueError(f"expected losses in one unit, got {' and '.join(units)}; draw a figure of each")
    labels = names_of(learners, labels, "losses")
    require_one_of("transform", transform, ("none", "log1p"))
    require_level(level)
    require_axes(ax, 2)
    drawn = [_transformed(each, transform) for each in learners]
    functions = [estimate.ecdf(values, level=level) for values in drawn]
    left, right = plt.subplots(1, 2, figsize=(7.5, 3.5), layout="constrained")[1] if ax is None else ax
    ends = [_ends(each, transform) for each in learners]
    curves = [_density(values, end) for values, end in zip(drawn, ends, strict=True)]
    top = _top(curves)
    labels = [
        f"{label} (density cut: its peak is {curve[1].max():.3g})"
        if curve is not None and curve[1].max() > top
        else label
        for label, curve in zip(labels, curves, strict=True)
    ]
    for values, function, curve, label, colour in zip(
        drawn, functions, curves, labels, colours(len(learners)), strict=True
    ):
        _step(left, function, textwrap.fill(label, 80), colour)
        _draw_density(right, values, curve, label, colour)
    unit = learners[0].unit
    scale = f"mean {unit} of the test cases, G"
    scale = scale if transform == "none" else f"log(1 + G), G the mean {unit}"
    for axes, title, ylabel in (
        (left, f"Distribution function, {level:.0%} band", "share of resamplings"),
        (right, "Density; mean (solid), median (dotted)", "density"),
    ):
        axes.set_title(title, fontsize=10)
        axes.set(xlabel=textwrap.fill(scale, 45), ylabel=ylabel)
        axes.spines[["top", "right"]].set_visible(False)
    left.set_ylim(0, 1)
    right.set_ylim(0, top if np.isfinite(top) else None)
    legend_below((left, right), ax is None, max(1, min(3, 90 // (6 + max(map(len, labels))))))
    return Panels((left, right))


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


def _ends(losses: Losses, transform: str) -> tuple[float, float]:
    """Between which numbers G must lie."""
    low = 0.0 if losses.loss in _NOT_NEGATIVE or getattr(losses, "bounded", False) else -np.inf
    high = 1.0 if losses.loss == "zero_one" or getattr(losses, "bounded", False) else np.inf
    if transform == "none":
        return low, high
    return float(np.log1p(low)) if low == 0 else low, float(np.log1p(high))


def _density(
    values: Float[np.ndarray, " R"], ends: tuple[float, float]
) -> tuple[Float[np.ndarray, " grid"], Float[np.ndarray, " grid"]] | None:
    """Where the density of values is drawn, and how high it is, up to three bandwidths beyond them; it ends where they
    must, and what would lie beyond is mirrored there, so that its area stays 1. None for equal values.
    """
    spread = float(np.ptp(values))
    if spread <= 1 / _LARGEST:
        return None
    middle, units = values.mean(), (values - values.mean()) / spread  # whose squares are numbers
    low, high = ((end - middle) / spread for end in ends)
    kernels = scipy.stats.gaussian_kde(units)
    reach = 3 * float(np.sqrt(kernels.covariance[0, 0]))
    grid = np.linspace(max(units.min() - reach, low), min(units.max() + reach, high), 400)
    mirrored = [kernels(2 * end - grid) for end in (low, high) if np.isfinite(end)]
    return middle + spread * grid, (kernels(grid) + sum(mirrored)) / spread


def _top(curves: Sequence[tuple[np.ndarray, np.ndarray] | None]) -> float:
    """Where the axis of densities ends, just above the first that is not far below the next; infinite if none is."""
    peaks = sorted(float(curve[1].max()) for curve in curves if curve is not None)
    return next((1.2 * low for low, high in pairwise(peaks) if high > _HIGHER * low), np.inf)


def _draw_density(
    axes: Axes,
    values: Float[np.ndarray, " R"],
    curve: tuple[np.ndarray, np.ndarray] | None,
    label: str,
    colour: str,
) -> None:
    """A density, and the mean and the median of its values."""
    if curve is not None:
        axes.plot(*curve, color=colour, label=label)
        axes.fill_between(*curve, color=colour, alpha=0.1, linewidth=0)
    axes.axvline(values.mean(), color=colour, linewidth=1)
    axes.axvline(np.median(values), color=colour, linewidth=1, linestyle=":")
