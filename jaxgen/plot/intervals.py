"""Forest plots of estimates and their intervals."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.textpath import TextPath

from jaxgen.plot.checks import figure_of, listed, one_panel, require_axes
from jaxgen.plot.distributions import colours
from jaxgen.types.numbers import require_labels, require_number
from jaxgen.types.result import Result

SIZE, NAME, HEADING = 9, 30, 76
"""Of the text, in points; and letters on a line of the names of rows, and of the headings."""
GAP, BESIDE = 0.6, 8.0
"""Between rows, in lines of text; and between text and panel, in points."""
MINUS, INFINITY, DIGIT_SPACE = "\N{MINUS SIGN}", "\N{INFINITY}", "\N{FIGURE SPACE}"


def interval_forest(
    *results: Any,
    labels: Sequence[str] | None = None,
    truth: float | Mapping[str, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Estimates and intervals one below the other, under headings that say what they are about, with their numbers at
    the right.

    A limit that is infinite is drawn as an arrow, an estimate without an interval as an open point. What all results
    share, their learner or their method, is said below the axis.

    Args:
      results: of one data set, numbers of shape [], in one unit. Those about one target stand together, in the order
        given. One after the other, in one list, or in a mapping of labels.
      labels: one a result; None takes what tells them apart, the learner, the method, or both.
      truth: what is known to be true, in that unit: one number for all targets, or one for each of some targets.
      ax: axes to draw on, with room for text at both sides; None makes a figure.
    Returns:
      The axes.
    Raises:
      TypeError: something else than results, or than axes.
      ValueError: nothing to draw, several data sets in one, different units, an estimate that is not finite, another
        number of labels, a truth that is no number, or the truth of a target that no result is about.
    """
    what = "the result of an estimate or interval"
    given, labels = listed(results, labels, Result, what, "give those of jaxgen.stats")
    truths = _checked(given, labels, truth)
    require_axes(ax)
    names, shared = _names(given)
    names = [textwrap.fill(name, NAME) for name in (names if labels is None else labels)]
    numbers, header = _numbers(given)
    axes = one_panel(ax, (6.2, 2.0))
    axes.set_xlim(*_reach(given, truths))
    indent = BESIDE + max(
        TextPath((0, 0), name or "-", size=SIZE).get_extents().width for name in "\n".join(names).split("\n")
    )
    _write(axes, 0.5, header, BESIDE)
    line = 1.0
    for (target, known), colour in zip(truths.items(), colours(len(truths)), strict=True):
        heading = textwrap.fill(f"about {target}" + ("" if known is None else f" (truth {known:.5g})"), HEADING)
        line += GAP + _lines(heading)
        _write(axes, line - _lines(heading) / 2, heading, -indent - BESIDE, weight="bold")
        start = line
        for result, name, text in zip(given, names, numbers, strict=True):
            if result.target == target:
                line += GAP + _lines(name)
                _row(axes, line - (GAP + _lines(name)) / 2, result, (name, -indent), text, colour)
        if known is not None:
            axes.plot([known, known], [start, line], color="0.3", linewidth=1, linestyle="--", zorder=1)
    axes.set_xlabel(
        textwrap.fill(f"{given[0].unit}{shared}{'; dashed: truth' if truth is not None else ''}", HEADING),
        fontsize=SIZE,
    )
    axes.set(ylim=(line + GAP, 0), yticks=())
    axes.tick_params(labelsize=SIZE)
    axes.spines[["top", "left", "right"]].set_visible(False)
    if ax is None:
        figure_of(axes).set_size_inches(6.2, 0.75 + 0.165 * line)
    return axes


def _checked(
    results: Sequence[Result], labels: Sequence[str] | None, truth: float | Mapping[str, float] | None
) -> dict[str, float | None]:
    """The targets in order, each with its truth, of results that can be drawn together."""
    if not results or any(np.ndim(result.estimate) for result in results):
        shapes = [list(np.shape(result.estimate)) for result in results]
        raise ValueError(
            f"expected one or more results of one data set, got {len(results)} with numbers of shapes "
            f"{shapes}; make them of one, losses[q]"
        )
    units = list(dict.fromkeys(result.unit for result in results))
    if len(units) > 1:
        raise ValueError(f"expected results in one unit, got {' and '.join(units)}; draw a figure of each")
    missing = [result for result in results if not np.isfinite(result.estimate)]
    if missing:
        raise ValueError(
            f"expected estimates that are finite, got {float(missing[0].estimate)} by {missing[0].method}; leave it out"
        )
    require_labels(labels, len(results), "results")
    for known in truth.values() if isinstance(truth, Mapping) else [] if truth is None else [truth]:
        require_number("the truth", known, advice="give what is known to be true in the unit of the results")
    targets = dict.fromkeys(result.target for result in results)
    if not isinstance(truth, Mapping):
        return dict.fromkeys(targets, truth)
    unknown = [target for target in truth if target not in targets]
    if unknown:
        raise ValueError(
            f"expected the truth of targets among {', '.join(map(repr, targets))}, got {unknown[0]!r}; "
            "name the target as the result does"
        )
    return {target: truth.get(target) for target in targets}


def _names(results: Sequence[Result]) -> tuple[list[str], str]:
    """What tells results apart, and what to say of the unit if they share their learner or their method."""
    learners, methods = [result.learner or "not named" for result in results], [result.method for result in results]
    if len(set(learners)) == 1:
        return methods, f" of {learners[0]}" if results[0].learner else ""
    if len(set(methods)) == 1:
        return learners, f"; {methods[0]}"
    return [f"{learner}: {method}" for learner, method in zip(learners, methods, strict=True)], ""


def _limits(result: Result) -> list[float]:
    return [float(result.lower), float(result.upper)]


def _reach(results: Sequence[Result], truths: Mapping[str, float | None]) -> tuple[float, float]:
    """The ends of the axis, with room for arrows."""
    drawn = (
        [float(result.estimate) for result in results]
        + [end for result in results for end in _limits(result)]
        + [known for known in truths.values() if known is not None]
    )
    values = np.array(drawn)[np.isfinite(drawn)]
    span = float(np.ptp(values)) or 0.1 * abs(values[0]) or 1.0
    return float(values.min() - 0.08 * span), float(values.max() + 0.08 * span)


def _row(axes: Axes, height: float, result: Result, name: tuple[str, float], numbers: str, colour: str) -> None:
    """A result between its name and its numbers: a point, and a line with a bar or an arrow at each end of the
    interval.
    """
    _write(axes, height, *name)
    _write(axes, height, numbers, BESIDE)
    ends = _limits(result)
    bounded = not np.isnan(ends).any()
    if bounded:
        seen = np.clip(ends, *axes.get_xlim())
        axes.plot(seen, [height, height], color=colour, linewidth=1.6, solid_capstyle="butt")
        for end, edge, arrow in zip(ends, seen, "<>", strict=True):
            mark, size, width = ("|", 9, 1.6) if np.isfinite(end) else (arrow, 7, 0)
            axes.plot(edge, height, mark, color=colour, markersize=size, markeredgewidth=width, clip_on=False)
    axes.plot(
        float(result.estimate),
        height,
        "o",
        color=colour,
        markersize=5,
        markerfacecolor=colour if bounded else "white",
        markeredgewidth=1,
    )


def _numbers(results: Sequence[Result]) -> tuple[list[str], str]:
    """Estimate and interval of each result as text, and what stands above them."""
    write = _writer(results)
    levels = {result.level for result in results if not np.isnan(result.lower)}
    estimates = [write(float(result.estimate)) for result in results]
    width = max(map(len, estimates))
    texts = []
    for result, estimate in zip(results, estimates, strict=True):
        lower, upper = _limits(result)
        if not np.isnan(lower):
            ends = (
                ("[" if np.isfinite(lower) else "(")
                + f"{write(lower)}, {write(upper)}"
                + ("]" if np.isfinite(upper) else ")")
            )
            more = f" {ends}" + (f" {100 * result.level:.4g}%" if len(levels) > 1 else "")
        else:
            more = "" if np.isnan(result.standard_error) else f" (s.e. {write(float(result.standard_error))})"
        texts.append(estimate.rjust(width, DIGIT_SPACE) + more)
    if not levels:
        return texts, "estimate"
    return texts, "estimate [interval] level" if len(levels) > 1 else f"estimate [{100 * levels.pop():.4g}% interval]"


def _writer(results: Sequence[Result]):
    """Writes numbers with as many decimals as the shortest interval needs to show two digits of its length."""
    drawn = np.array([[float(each.estimate), *_limits(each), float(each.standard_error)] for each in results])
    largest = np.abs(drawn[np.isfinite(drawn)]).max()
    lengths = np.append(drawn[:, 2] - drawn[:, 1], 4 * drawn[:, 3])
    lengths = lengths[np.isfinite(lengths) & (lengths > 1e-6 * largest)]
    decimals = max(0, 1 - int(np.floor(np.log10(lengths.min() if len(lengths) else largest / 100 or 1))))
    form = f".{decimals}f" if decimals <= 6 and largest < 1e7 else ".5g"

    def write(value: float) -> str:
        return (f"{value:{form}}" if np.isfinite(value) else "-" * (value < 0) + INFINITY).replace("-", MINUS)

    return write


def _lines(text: str) -> int:
    return text.count("\n") + 1


def _write(axes: Axes, height: float, text: str, points: float, **style) -> None:
    """Text that begins so many points left of the panel, if negative, or right of it."""
    axes.annotate(
        text,
        (float(points > 0), height),
        (points, 0),
        axes.get_yaxis_transform(),
        "offset points",
        va="center",
        fontsize=SIZE,
        annotation_clip=False,
        **style,
    )
