"""Figures of comparisons of several learners."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from jaxgen.plot.checks import one_panel, require_axes, text_below
from jaxgen.stats.compare.many import RankDifferences
from jaxgen.stats.compare.multiplicity import Pairs
from jaxgen.types.numbers import require_kind, require_labels

BETTER, WORSE, NEITHER = "#0072B2", "#D55E00", "#000000"
"""Blue, vermilion and black of Okabe and Ito, which colour-blind readers can tell apart."""
NAME = 30
"""Letters on a line of a name."""


def comparison_matrix(pairs: Pairs, labels: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
    """Every pair of learners at once: the difference, its adjusted p-value, and which one is better, in full colour
    where the pair differs.

    Args:
      pairs: of one data set, differences [P].
      labels: one a learner; None takes those of the pairs.
      ax: axes to draw on; None makes a figure.
    Returns:
      The axes: first learners down, second ones across, the best one first.
    Raises:
      TypeError: something else than pairs, or than axes.
      ValueError: several data sets, or another number of labels.
    """
    require_kind("the pairs that compare.pairwise returns", pairs, Pairs, "compare every two learners first")
    if pairs.adjusted.ndim > 1:
        raise ValueError(
            f"expected the pairs of one data set, got those of {len(pairs.adjusted)}; "
            "compare the learners of one, losses[q]"
        )
    names = _named(labels, pairs.learners)
    require_axes(ax)
    estimate, adjusted = pairs.matrix("estimate"), pairs.matrix("adjusted")
    central = np.argmax(np.sum(~np.isnan(adjusted), axis=-1))
    towards = -1 if pairs.greater_is_better else 1
    order = np.argsort(towards * np.nan_to_num(estimate[central]), kind="stable")
    size, short = len(order), max(map(len, names)) <= 8
    axes = one_panel(ax, (2.2 + 0.9 * size, 1.7 + 0.6 * size))
    for row, column in np.ndindex(size, size):
        i, j = order[row], order[column]
        if np.isnan(adjusted[i, j]):
            continue
        differs = adjusted[i, j] <= 1 - pairs.level + 1e-12  # rounding of 1 - level
        better = towards * estimate[i, j]
        colour = BETTER if better > 0 else WORSE if better < 0 else NEITHER
        axes.add_patch(
            Rectangle(
                (column - 0.48, row - 0.48), 0.96, 0.96, facecolor=colour, alpha=1 if differs else 0.12, linewidth=0
            )
        )
        difference = "" if np.isnan(estimate[i, j]) else f"{_signed(float(estimate[i, j]))}\n"
        axes.text(
            column,
            row,
            difference + _p(float(adjusted[i, j])),
            ha="center",
            va="center",
            fontsize=8,
            color="white" if differs else "black",
        )
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), xticks=range(size), yticks=range(size))
    axes.set_xticklabels([names[i] if short else f"#{place}" for place, i in enumerate(order, 1)])
    axes.set_yticklabels(
        [names[i] if short else textwrap.fill(f"{names[i]}  #{place}", NAME) for place, i in enumerate(order, 1)]
    )
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    explanation = (
        f"{pairs.unit}, column minus row:",
        f"the row is better (blue) or worse (orange), full where they differ at {1 - pairs.level:.3g}",
        f"{pairs.method}; adjusted p-values:",
        pairs.adjustment,
    )
    text_below(axes, ax is None, "\n".join(explanation))
    return axes


def critical_difference(ranks: RankDifferences, labels: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
    """Average ranks on a line, with bars over the learners that are not told apart (Demsar 2006, figure 1).

    Args:
      ranks: of `nemenyi`, average ranks [L].
      labels: one a learner; None takes those of the ranks.
      ax: axes to draw on, with room for names at both sides; None makes a figure.
    Returns:
      The axes; the better half of the learners is named on the left.
    Raises:
      TypeError: something else than differences of ranks, or than axes.
      ValueError: another number of labels.
    """
    require_kind("the ranks that compare.nemenyi returns", ranks, RankDifferences, "compare the learners first")
    names, size = _named(labels, ranks.learners), len(ranks.ranks)
    require_axes(ax)
    order, left, groups = np.argsort(ranks.ranks, kind="stable"), (size + 1) // 2, ranks.groups()
    depth, margin = 0.35 + 0.22 * len(groups), 0.03 * (size - 1)
    axes = one_panel(ax, (7.0, 1.3 + 0.3 * (left + len(groups))))
    for place, i in enumerate(order):
        first = place < left
        level, edge = depth + 0.4 * (place if first else size - 1 - place), 1 - margin if first else size + margin
        axes.plot([*np.repeat(ranks.ranks[i], 2), edge], [0, level, level], color="black", linewidth=0.8, clip_on=False)
        name = textwrap.fill(f"{names[i]} ({ranks.ranks[i]:.2f})", NAME)
        axes.text(
            edge + (-margin / 3 if first else margin / 3),
            level,
            name,
            ha="right" if first else "left",
            va="center",
            fontsize=9,
        )
    for number, group in enumerate(groups):
        ends = ranks.ranks[list(group)]
        axes.plot(
            [ends.min() - margin / 4, ends.max() + margin / 4],
            [0.25 + 0.22 * number] * 2,
            color=BETTER,
            linewidth=4,
            solid_capstyle="butt",
            clip_on=False,
        )
    _scale(axes, size, ranks)
    axes.set_ylim(depth + 0.4 * left - 0.2, -1.25)
    text_below(axes, ax is None, f"average rank over {ranks.blocks}, {ranks.unit}; 1 is best")
    return axes


def _scale(axes: Axes, size: int, ranks: RankDifferences) -> None:
    """The axis of ranks above the names, and the length of the critical difference over it."""
    axes.set(xlim=(1, size), xticks=range(1, size + 1), yticks=[])
    axes.spines[:].set_visible(False)
    axes.xaxis.set_visible(False)
    axes.plot([1, size], [0, 0], color="black", linewidth=1)
    for tick in range(1, size + 1):
        axes.plot([tick, tick], [0, -0.12], color="black", linewidth=1, clip_on=False)
        axes.text(tick, -0.18, str(tick), ha="center", va="bottom")
    end = 1 + ranks.critical_difference
    axes.plot(
        [1, 1, 1, end, end, end], [-0.78, -0.62, -0.7, -0.7, -0.78, -0.62], color=BETTER, linewidth=1.5, clip_on=False
    )
    axes.text(
        1,
        -0.8,
        f"critical difference {ranks.critical_difference:.2f} at {1 - ranks.level:.3g}",
        ha="left",
        va="bottom",
        color=BETTER,
    )


def _named(labels: Sequence[str] | None, learners: tuple[str, ...]) -> tuple[str, ...]:
    require_labels(labels, len(learners), "learners")
    return tuple(learners if labels is None else labels)


def _signed(value: float) -> str:
    """Three digits with the sign, without an exponent where that is short."""
    return f"{value:{'+.0f' if 1000 <= abs(value) < 1e6 else '+.3g'}}".replace("-", "\N{MINUS SIGN}")


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.995 else "p = 1"
