"""Figures of the tasks of DELVE."""

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator

from jaxgen.delve.analysis import TaskComparison
from jaxgen.plot.checks import Panels, require_axes
from jaxgen.types.numbers import require_flag, require_kind, shown

SMALL, SIZE, HEADING = 7, 8, 10
"""Of the text, in points."""
WIDE, NARROW, PAGE, LEAST = 24.0, 9.0, 470.0, 250.0
"""In points: a column at most and at least; a figure, where columns can be made to fit, and at least."""
PANEL, ROW, LINE, GAP, EDGE = 150.0, 10.5, 9.5, 9.0, 5.0
"""In points: the height of a panel, of a row of digits and of a line below; the spaces between panels and around
things.
"""
NAME = 24
"""Letters of a name; longer ones are numbered, and told below."""
APART, MARGIN, HEADROOM = 2.5, 1.05, 1.25
"""Losses are cut off that are so many times the next smaller one; how far the axis reaches beyond the largest one
drawn, without such losses and with them.
"""
MINUS, PLUS_MINUS = "\N{MINUS SIGN}", "\N{PLUS-MINUS SIGN}"
_P_AT_MOST = "p\N{NO-BREAK SPACE}\N{LESS-THAN OR EQUAL TO}\N{NO-BREAK SPACE}0.09"


def task_figure(
    tasks: Sequence[TaskComparison],
    title: str = "",
    adjusted: bool = False,
    standardised: bool = True,
    ax: Sequence[Axes] | None = None,
) -> Panels:
    """The losses of all methods on tasks of several sizes, with the p-values of all pairs, in the format of Rasmussen
    1996 (Neal 1998, section 4.4).

    A panel for each number of training cases; a column in it for each method, from left to right as the names stand
    from top to bottom. A horizontal line is at the expected loss; a vertical one extends by its standard error up and
    down. Below each panel are the p-values, as `TaskComparison.digits` gives them. Where few losses are far above all
    others the axis ends below them, and an arrow with the loss stands at the edge, or with the standard error where
    only this one is large.

    Args:
      tasks: of the same methods, each with a training size of its own, in any order.
      title: stands at the top.
      adjusted: Holm's p-values for the pairs of one task instead of those of each pair by itself.
      standardised: losses divided by the `standard` of each task; False draws them raw.
      ax: two axes of Matplotlib for each task, that of its losses and that of its p-values, the smallest task first.
        None makes a figure of its own, with the meaning of all marks below the panels.
    Returns:
      The axes drawn on, in the order of `ax`.
    Raises:
      TypeError: something else than a list of tasks, a title that is no text, or axes of another kind or number.
      ValueError: nothing to draw, different methods or losses, a size given twice, a task without its divisor, or a
        flag that is none.
    """
    _require_drawable(tasks, title, adjusted, standardised)
    tasks = [task.standardised if standardised else task for task in sorted(tasks, key=lambda task: task.size)]
    require_axes(ax, 2 * len(tasks))
    names, long = _names(tasks[0].labels) if ax is None else (list(tasks[0].labels), [])
    axis = _axis(tasks)
    panels = _new_figure(tasks, names, long, axis, title, adjusted) if ax is None else Panels(ax)
    if ax is not None and title:
        panels.figure.suptitle(title)
    for number, (task, losses, digits) in enumerate(zip(tasks, panels[::2], panels[1::2], strict=True)):
        _losses(losses, task, axis, first=number == 0)
        _digits(digits, task, adjusted, names if number == 0 else [])
    return panels


class _Sheet(NamedTuple):
    """The widths of a figure, in points: of all, left of the first panel, of the names there, and of a panel."""

    width: float
    margin: float
    beside: float
    panel: float
    panels: int

    def left(self, number: int) -> float:
        """The left edge of a panel."""
        return self.margin + number * (self.panel + GAP)

    @property
    def right(self) -> float:
        """The right edge of the last panel."""
        return self.left(self.panels) - GAP


class _Axis(NamedTuple):
    """The axis of losses: its ends, the largest loss drawn with its standard error, and its ticks."""

    low: float
    high: float
    kept: float
    ticks: tuple[float, ...]

    @property
    def labels(self) -> list[str]:
        """The ticks as text."""
        return [f"{tick:.6g}".replace("-", MINUS) for tick in self.ticks]

    def cuts(self, task: TaskComparison) -> list[bool]:
        """Whether the loss of each method, or its standard error, leaves the axis."""
        return (task.estimate + task.standard_error > self.kept).tolist()


def _new_figure(
    tasks: Sequence[TaskComparison], names: list[str], long: list[str], axis: _Axis, title: str, adjusted: bool
) -> Panels:
    """A figure of empty panels, with its title, and below them what the marks mean and the names that are too long."""
    beside = max(
        [_width(name, SIZE) for name in [*names, "training cases"]]
        + [_width(tick, SMALL) + 3 * SIZE for tick in axis.labels]
    )
    sheet = _sheet(len(tasks), len(names), beside + 2 * EDGE)
    sentences = [*_explained(tasks, axis, adjusted), *long]
    below = [line for sentence in sentences for line in _wrapped(sentence, sheet.width - 2 * EDGE)]
    bottom = 2 * EDGE + LINE * len(below)
    panels = bottom + ROW * len(names) + GAP
    height = panels + PANEL + EDGE + SIZE + (1.9 * HEADING if title else 0) + EDGE
    figure = plt.figure(figsize=(sheet.width / 72, height / 72))
    empty: list[Axes] = []
    for row in range(0, len(names), 2):
        _band(figure, sheet, (bottom + ROW * (len(names) - 1 - row)) / height, ROW / height)
    for number in range(len(tasks)):
        left, wide = sheet.left(number) / sheet.width, sheet.panel / sheet.width
        empty.append(figure.add_axes((left, panels / height, wide, PANEL / height)))
        empty.append(figure.add_axes((left, bottom / height, wide, ROW * len(names) / height)))
    for number, line in enumerate(below):
        figure.text(EDGE / sheet.width, (bottom - EDGE - LINE * (number + 0.8)) / height, line, fontsize=SMALL)
    if title:
        figure.text(
            (sheet.left(0) + sheet.right) / 2 / sheet.width,
            1 - (EDGE + HEADING) / height,
            title,
            fontsize=HEADING,
            ha="center",
        )
    return Panels(empty)


def _require_drawable(tasks: Any, title: Any, adjusted: Any, standardised: Any) -> None:
    if not isinstance(tasks, list | tuple) or not all(isinstance(task, TaskComparison) for task in tasks):
        raise TypeError(
            f"expected a list of tasks, got {shown(tasks)}; give those that delve.analyse returns, in a list"
        )
    require_kind("the title as text", title, str, "give an empty one for none")
    require_flag("adjusted", adjusted)
    require_flag("standardised", standardised)
    if not tasks:
        raise ValueError("expected one or more tasks, got none; give those that delve.analyse returns")
    for name, values in (
        ("methods", [", ".join(task.labels) for task in tasks]),
        ("loss", [task.unit for task in tasks]),
    ):
        if len(set(values)) > 1:
            raise ValueError(
                f"expected tasks with the same {name}, got {' and '.join(dict.fromkeys(values))}; draw a figure of each"
            )
    sizes = [task.size for task in tasks]
    if len(set(sizes)) < len(sizes):
        twice = next(size for size in sizes if sizes.count(size) > 1)
        raise ValueError(
            f"expected each number of training cases once, got {twice} several times; draw a figure for each prototask"
        )
    unknown = [task.size for task in tasks if np.isnan(task.standard)]
    if standardised and unknown:
        raise ValueError(
            f"expected the divisor of standardised losses, got none for {unknown[0]} training cases; "
            "give delve.analyse its standard, or draw with standardised=False"
        )


def _names(labels: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The names to stand beside the p-values, and those that are too long for it."""
    names = [f"#{number}" if len(label) > NAME else label for number, label in enumerate(labels, 1)]
    return names, [f"{name}: {label}" for name, label in zip(names, labels, strict=True) if name != label]


def _width(text: str, size: int) -> float:
    """As it is printed at most: letters moved to whole pixels need more room than their outlines."""
    return 1.08 * float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0])


def _wrapped(text: str, width: float) -> list[str]:
    """In lines of small letters that are not wider than this."""
    for letters in range(int(2 * width / SMALL), 1, -1):
        lines = textwrap.wrap(text, letters, subsequent_indent="  ")
        if max(_width(line, SMALL) for line in lines) <= width:
            return lines
    return [text]


def _axis(tasks: Sequence[TaskComparison]) -> _Axis:
    """From 0, or below negative losses, to the largest loss and its standard error that is not far above the others;
    at most a third are, or one of two.
    """
    estimates, errors = (
        np.concatenate([getattr(task, name) for task in tasks]) for name in ("estimate", "standard_error")
    )
    tops = np.sort(estimates + errors)
    few = max(1, len(tops) // 3)
    far = [k for k in range(max(1, len(tops) - few), len(tops)) if tops[k] > APART * tops[k - 1] > 0]
    kept = max(float(tops[far[0] - 1] if far else tops[-1]), 0.0)
    low = min(0.0, MARGIN * float(np.min(np.where(estimates < 0, estimates - errors, 0))))
    high = kept * (HEADROOM if far else MARGIN) or (0.0 if low < 0 else 1.0)
    ticks = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, high)
    return _Axis(
        low, high, kept, tuple(float(tick) for tick in ticks if low <= tick <= (MARGIN * kept if far else high))
    )


def _sheet(panels: int, methods: int, beside: float) -> _Sheet:
    """As wide as a page where columns are not too narrow for that; what is left over stands at both sides."""
    column = np.clip((PAGE - beside - EDGE - (panels - 1) * GAP) / (panels * methods), NARROW, WIDE)
    panel = max(float(column) * methods, 4 * SIZE)
    used = beside + panels * panel + (panels - 1) * GAP + EDGE
    spare = max(LEAST - used, 0)
    return _Sheet(used + spare, beside + spare / 2, beside, panel, panels)


def _explained(tasks: Sequence[TaskComparison], axis: _Axis, adjusted: bool) -> list[str]:
    """What the marks mean, sentence by sentence."""
    cut = (
        f"; arrow: beyond the axis, with the loss, or {PLUS_MINUS} the standard error"
        if any(any(axis.cuts(task)) for task in tasks)
        else ""
    )
    instances = "; ".join(dict.fromkeys(f"{task.instances} instances" for task in tasks))
    if len({task.instances for task in tasks}) > 1:
        instances = ", ".join(f"{task.instances}" for task in tasks) + " instances"
    sentences = [f"Lines: expected loss {PLUS_MINUS} standard error, {instances}{cut}."]
    if len(tasks[0].labels) > 1:
        sentences += [
            "Digit: 100 p, rounded up, where the method of the column (in the order of the rows) has the "
            f"smaller loss and {_P_AT_MOST}; dot: elsewhere."
        ]
        tests = " and ".join(dict.fromkeys(task.pairs.method for task in tasks))
        sentences += [
            f"p: {tests}, "
            + (
                f"adjusted for the pairs of one task: {tasks[0].pairs.adjustment}."
                if adjusted
                else "each pair by itself."
            )
        ]
    return sentences


def _band(figure: Figure, sheet: _Sheet, bottom: float, height: float) -> None:
    """A grey band behind a row of names and digits, in parts of the figure."""
    left, right = sheet.margin - sheet.beside + EDGE / 2, sheet.right
    figure.add_artist(
        Rectangle(
            (left / sheet.width, bottom),
            (right - left) / sheet.width,
            height,
            transform=figure.transFigure,
            facecolor="0.92",
            linewidth=0,
            zorder=-1,
        )
    )


def _losses(axes: Axes, task: TaskComparison, axis: _Axis, first: bool) -> None:
    """A panel: the size above it, and each method's loss with its standard error."""
    axes.set(xlim=(-0.5, len(task.labels) - 0.5), ylim=(axis.low, axis.high), xticks=[])
    axes.set_yticks(axis.ticks, axis.labels, fontsize=SMALL)
    axes.tick_params(length=2.5 if first else 0, width=0.8, pad=2, labelleft=first)
    axes.grid(axis="y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(str(task.size), fontsize=SIZE, pad=1.2 * EDGE)
    if first:
        axes.set_ylabel(task.unit, fontsize=SIZE)
        axes.annotate(
            "training cases", (0, 1), (-EDGE, 1.2 * EDGE), "axes fraction", "offset points", ha="right", fontsize=SIZE
        )
    ends = zip(
        (task.estimate - task.standard_error).tolist(),
        task.estimate.tolist(),
        task.standard_error.tolist(),
        axis.cuts(task),
        strict=True,
    )
    for place, (lower, estimate, error, cut) in enumerate(ends):
        if estimate <= axis.kept:
            axes.plot(
                [place - 0.4, place + 0.4], [estimate, estimate], color="black", linewidth=1.3, solid_capstyle="butt"
            )
        upper = MARGIN * axis.kept if cut else estimate + error
        if lower <= upper:
            axes.plot([place, place], [lower, upper], color="black", linewidth=0.9, solid_capstyle="butt")
        if cut:
            axes.plot(place, axis.high, "^", color="black", markersize=4, clip_on=False)
            cut_off = _number(estimate) if estimate > axis.kept else PLUS_MINUS + _number(error)
            axes.annotate(
                cut_off,
                (place, axis.high),
                (0.5, -4),
                textcoords="offset points",
                rotation=90,
                ha="center",
                va="top",
                fontsize=SMALL,
            )


def _digits(axes: Axes, task: TaskComparison, adjusted: bool, names: list[str]) -> None:
    """The p-values, and the names of their rows where there are any given."""
    methods = len(task.labels)
    axes.set(xlim=(-0.5, methods - 0.5), ylim=(methods - 0.5, -0.5), xticks=[], facecolor="none")
    axes.set_yticks(range(len(names)), names, fontsize=SIZE)
    axes.tick_params(length=0, pad=EDGE)
    axes.spines[:].set_visible(False)
    for (row, column), letter in np.ndenumerate(task.digits(adjusted)):
        if letter != " ":
            axes.text(column, row, letter, ha="center", va="center_baseline", fontsize=SIZE)


def _number(value: float) -> str:
    """Three digits, without an exponent where that is short."""
    return f"{value:{'.0f' if 1000 <= abs(value) < 1e5 else '.3g'}}".replace("-", MINUS)
