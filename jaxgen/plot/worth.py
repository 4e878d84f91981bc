"""Figures of what each case is worth, and of what cases do for each other."""

import textwrap
from collections.abc import Collection, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes

from jaxgen.plot.checks import Panels, SeveralAxes, figure_of, one_panel, require_axes
from jaxgen.plot.distributions import COLOURS
from jaxgen.stats.checks import require_level
from jaxgen.stats.worth import Datamodels, Influences, Worths
from jaxgen.types.numbers import require, require_kind, require_labels, shown

BLUE, VERMILION = COLOURS[:2]
LONGEST = 24
"""Letters of a label that are shown."""


def case_worths(
    worths: Worths,
    labels: Sequence[str] | None = None,
    level: float = 0.95,
    marked: Collection[Any] | None = None,
    count: int = 15,
    *,
    ax: SeveralAxes | None = None,
) -> Panels:
    """What all cases are worth, sorted, with the band of the whole error and within it that of Monte Carlo error; and
    the cases that are worth least.

    Args:
      worths: of a function of `jaxgen.stats.worth`, [T].
      labels: one for each of the T cases; None takes their numbers.
      level: confidence level of each case's band by itself.
      marked: numbers of cases to mark, such as those known to be mislabelled.
      count: cases that are worth least in the second panel; all, if there are fewer.
      ax: two axes to draw on; None makes a figure.
    Returns:
      The two panels.
    Raises:
      TypeError: something else than worths, or than axes.
      ValueError: another number of labels, a level outside (0, 1), or marked cases that have no worth.
    """
    require_kind("what a function of stats.worth returns", worths, Worths, "find the worth of cases first")
    require_labels(labels, len(worths.cases), "cases")
    require_level(level)
    count = min(require("count", count, 1), len(worths.cases))
    special = _marked(marked, worths.cases)
    require_axes(ax, 2)
    order = np.argsort(worths.estimate, kind="stable")
    lower, upper = worths.limits(level)
    reach = (upper - lower) / 2 / np.where(worths.standard_error > 0, worths.standard_error, 1) * worths.monte_carlo
    left, right = (
        plt.subplots(1, 2, figsize=(8.5, 4.2), width_ratios=(3, 2), layout="constrained")[1] if ax is None else ax
    )
    place = np.arange(len(order))
    middle = worths.estimate[order]
    left.fill_between(
        place, lower[order], upper[order], color=BLUE, alpha=0.2, linewidth=0, label=f"{level:.0%} interval"
    )
    inner = (middle - reach[order], middle + reach[order])
    left.fill_between(place, *inner, color=BLUE, alpha=0.5, linewidth=0, label="its Monte Carlo part")
    left.plot(place, middle, color=BLUE, linewidth=1.2)
    _points(left, place[special[order]], middle[special[order]])
    left.axhline(0, color="0.4", linewidth=0.8)
    noise = f", noise {worths.noise_share:.0%} of the variance" if np.isfinite(worths.noise_share) else ""
    left.set(
        title=f"All {len(order)} cases, sorted{noise}",
        xlabel="cases, from the one worth least",
        ylabel=textwrap.fill(f"{worths.method}, {worths.unit}", 45),
        xlim=(-0.5, len(order) - 0.5),
    )
    left.legend(frameon=False, loc="lower right", fontsize=9)
    _least(right, worths, order[:count], (lower, upper, reach), special, labels)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return Panels((left, right))


def influence_map(
    influences: Influences | Datamodels,
    labels: Sequence[str] | None = None,
    level: float = 0.95,
    *,
    ax: Axes | None = None,
) -> Axes:
    """What training on each case does for the prediction of each case: violet where it helps and orange where it harms,
    white where it is within its Monte Carlo error.

    Cases are ordered by the first pair of singular vectors, so that those which help or harm the same others stand
    together; with labels within each label.

    Args:
      influences: of `influence` or `datamodels`, [T, M].
      labels: one for each case of the data, such as its class, up to the largest case that is drawn.
      level: a pair is coloured where 0 is outside its own interval of this level, so that 1 - level of the pairs are if
        there is no influence at all.
      ax: axes to draw on; None makes a figure.
    Returns:
      The axes: trained cases down, tested ones across.
    Raises:
      TypeError: something else than influences, or than axes.
      ValueError: another number of labels, or a level outside (0, 1).
    """
    kinds = (Influences, Datamodels)
    require_kind("what worth.influence or worth.datamodels returns", influences, kinds, "find the influence first")
    require_labels(labels, int(max(influences.trained.max(), influences.tested.max())) + 1, "cases")
    require_axes(ax)
    beyond = influences.beyond(level)
    itself = influences.trained[:, None] == influences.tested
    shown_values = np.where(beyond, influences.estimate, 0.0)
    across = np.where(itself, 0.0, shown_values)
    left, _, right = np.linalg.svd(across, full_matrices=False)
    rows, names = _ordered(influences.trained, left[:, 0], labels)
    columns, names_across = _ordered(influences.tested, right[0], labels)
    size = np.abs(across[across != 0])
    most = float(np.quantile(size, 0.98)) if len(size) else 1.0
    axes = one_panel(ax, (6.4, 5.6))
    axes.spines[["top", "right"]].set_visible(True)
    image = axes.imshow(
        shown_values[np.ix_(rows, columns)],
        cmap="PuOr",
        vmin=-most,
        vmax=most,
        aspect="auto",
        interpolation="nearest",
    )
    bar = figure_of(axes).colorbar(image, ax=axes, extend="both", shrink=0.9)
    bar.set_label(f"fall of the {influences.unit}")
    _groups(axes.yaxis, names, axes.axhline)
    _groups(axes.xaxis, names_across, axes.axvline)
    share = float(np.mean(beyond[~itself])) if (~itself).any() else 0.0
    axes.set(
        title=f"{influences.method}: {share:.0%} of the pairs beyond their {level:.0%} error",
        xlabel="tested case" if labels is None else "tested cases, by label",
        ylabel="trained case" if labels is None else "trained cases, by label",
    )
    return axes


def _least(
    axes: Axes,
    worths: Worths,
    cases: Int[np.ndarray, " count"],
    limits: tuple[Float[np.ndarray, " T"], Float[np.ndarray, " T"], Float[np.ndarray, " T"]],
    special: Bool[np.ndarray, " T"],
    labels: Sequence[str] | None,
) -> None:
    """The cases that are worth least, the least on top, with both intervals."""
    place, middle = np.arange(len(cases)), worths.estimate[cases]
    lower, upper, reach = (each[cases] for each in limits)
    axes.hlines(place, lower, upper, color=BLUE, alpha=0.4, linewidth=2)
    axes.hlines(place, middle - reach, middle + reach, color=BLUE, linewidth=2)
    axes.plot(middle, place, "o", color=BLUE, markersize=4)
    _points(axes, middle[special[cases]], place[special[cases]])
    axes.axvline(0, color="0.4", linewidth=0.8)
    names = [str(worths.cases[i] if labels is None else labels[i]) for i in cases]
    axes.set_yticks(place, [name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…" for name in names], fontsize=8)
    axes.set(title=f"The {len(cases)} worth least", xlabel=worths.unit, ylabel="case")
    axes.invert_yaxis()


def _points(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """The marked cases, if there are any."""
    if len(x):
        axes.plot(x, y, "D", color=VERMILION, markersize=4, linestyle="none", label="marked", zorder=3)


def _marked(marked: Any, cases: Int[np.ndarray, " T"]) -> Bool[np.ndarray, " T"]:
    """Which of the cases are marked, [T]."""
    if marked is None:
        return np.zeros(len(cases), bool)
    listed = isinstance(marked, Collection) and not isinstance(marked, str | bytes | dict)
    numbers: list[Any] = list(marked) if listed else [None]
    whole = all(isinstance(each, int | np.integer) and not isinstance(each, bool) for each in numbers)
    if not whole or not set(numbers) <= set(cases.tolist()):
        raise ValueError(
            f"expected marked as numbers of cases that have a worth, got {shown(marked)}; give some of worths.cases"
        )
    return np.isin(cases, np.array(numbers, np.int64))


def _ordered(
    cases: Int[np.ndarray, " T"], along: Float[np.ndarray, " T"], labels: Sequence[str] | None
) -> tuple[Int[np.ndarray, " T"], list[str]]:
    """The order of cases by label, then along a vector, [T], and their labels in that order."""
    names = [""] * len(cases) if labels is None else [labels[case] for case in cases]
    order = np.array(sorted(range(len(cases)), key=lambda i: (names[i], along[i])))
    return order, [names[i] for i in order]


def _groups(axis: Any, names: list[str], line: Any) -> None:
    """A label at the middle of each group and a line between groups; no ticks without labels."""
    begins = [0] + [i for i in range(1, len(names)) if names[i] != names[i - 1]]
    ends = [*begins[1:], len(names)]
    texts = [names[begin] for begin in begins]
    if not any(texts):
        axis.set_ticks([])
        return
    middles = [(begin + end - 1) / 2 for begin, end in zip(begins, ends, strict=True)]
    axis.set_ticks(middles, [text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…" for text in texts])
    axis.set_tick_params(length=0)
    for begin in begins[1:]:
        line(begin - 0.5, color="0.4", linewidth=0.8)
