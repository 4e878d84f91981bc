"""What all figures share: how they take what they draw, a name for each part, and the panels that they draw on."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from jaxgen.types.numbers import require_kind, require_labels, shown

SeveralAxes = Sequence[Axes] | np.ndarray
"""One for each panel, as `plt.subplots` gives them."""


class Panels(tuple[Axes, ...]):
    """The axes of a figure of several panels."""

    @property
    def figure(self) -> Figure:
        """The figure that they stand in."""
        return figure_of(self[0])

    def savefig(self, *where: Any, **options: Any) -> None:
        """Writes the figure, as Matplotlib's `savefig`."""
        self.figure.savefig(*where, **options)

    def __repr__(self) -> str:
        return f"Panels({', '.join(map(repr, self))})"


def figure_of(axes: Axes) -> Figure:
    """The figure that axes stand in, also those of a part of it."""
    figure = axes.figure
    return figure.figure if isinstance(figure, SubFigure) else figure


def listed(
    given: Sequence[Any], labels: Sequence[str] | None, kind: type, what: str, advice: str
) -> tuple[list[Any], Sequence[str] | None]:
    """What is to be drawn, one by one, and their labels: given one after the other, in one list, or in a mapping of
    labels.

    Raises:
      TypeError: something of another kind.
    """
    things: list[Any] = list(given)
    if len(things) == 1 and isinstance(things[0], Mapping):
        labels = [str(label) for label in things[0]] if labels is None else labels
        things = list(things[0].values())
    elif len(things) == 1 and isinstance(things[0], list | tuple) and not isinstance(things[0], kind):
        things = list(things[0])
    for thing in things:
        require_kind(what, thing, kind, advice)
    return things, labels


def names_of(given: Sequence[Any], labels: Sequence[str] | None, things: str) -> list[str]:
    """The labels, or the learners' own names where there are none.

    Raises:
      ValueError: labels that are no texts, or more or fewer than what they name.
    """
    require_labels(labels, len(given), things)
    return [getattr(each, "name", each.learner) for each in given] if labels is None else list(labels)


def require_axes(ax: Any, count: int | None = None) -> None:
    """TypeError unless axes are those of Matplotlib, or None; so many of them where a figure has several panels."""
    if ax is None or (count is None and isinstance(ax, Axes)):
        return
    given = list(ax) if isinstance(ax, Sequence | np.ndarray) and np.ndim(ax) == 1 else []
    if count is not None and len(given) == count and all(isinstance(each, Axes) for each in given):
        return
    panels = "axes of Matplotlib" if count is None else f"{count} axes of Matplotlib, one for each panel"
    raise TypeError(f"expected {panels}, got {shown(ax)}; make them with plt.subplots, or leave ax out")


def one_panel(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes to draw on: those given, or those of a new figure of this size, in inches."""
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def legend_below(axes: Sequence[Axes], own: bool, columns: int = 1, **style: Any) -> None:
    """The entries of the first axes: below the figure if it is our own, else inside the last axes."""
    handles, texts = axes[0].get_legend_handles_labels()
    if own:
        figure_of(axes[0]).legend(handles, texts, loc="outside lower center", ncols=columns, frameon=False, **style)
    else:
        axes[-1].legend(handles, texts, loc="best", frameon=False, **(style | {"fontsize": 8, "title_fontsize": 8}))


def text_below(axes: Axes, own: bool, text: str) -> None:
    """What explains a figure: below it if it is our own, else below the axes."""
    if own:
        figure_of(axes).supxlabel(text, fontsize=8)
    else:
        axes.annotate(
            text,
            (0.5, 0),
            (0, -4),
            "axes fraction",
            "offset points",
            ha="center",
            va="top",
            fontsize=8,
            annotation_clip=False,
        )
