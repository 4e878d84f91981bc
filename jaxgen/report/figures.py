"""The figures of a report, for files and for a page."""

import base64
import io
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from jaxgen import plot
from jaxgen.report.judged import View, predictions_of
from jaxgen.types import Data, Losses

_MOST_BYTES = 400_000
"""A drawing that is larger becomes an image of dots."""


class Drawing(NamedTuple):
    """A figure with its name, its title, and what it shows in words for those who cannot see it."""

    name: str
    title: str
    alt: str
    figure: Figure

    def embedded(self) -> str:
        """The figure as an address that holds it: a drawing, or an image of dots if that is large."""
        kind, content = "svg+xml", io.BytesIO()
        self.figure.savefig(content, format="svg", metadata={"Date": None})
        if content.tell() > _MOST_BYTES:
            kind, content = "png", io.BytesIO()
            self.figure.savefig(content, format="png", dpi=110)
        return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode()}"


def drawings(
    losses: Sequence[Losses], views: Sequence[View], data: Data | None = None, positive: Any = None
) -> Iterator[Drawing]:
    """The distributions of the losses G [R]; of two classes whose predictions were kept also ROC and precision-recall
    curves. Each figure is closed before the next is made.
    """
    names = ", ".join(one.name for one in losses)
    view = next((each for each in views if each.losses), None)
    if view is not None:
        means = "; ".join(
            f"{name}: mean {np.mean(one.g):.4g}" for name, one in zip(view.learners, view.losses, strict=True)
        )
        alt = f"Distribution functions and densities of the {view.title} over the resamplings. {means}."
        yield from _closed(
            "distribution", f"Distribution of the {view.title}", alt, lambda: plot.distribution(*view.losses)
        )
    areas = next((each for each in views if each.title == "AUC" and each.intervals), None)
    if areas is None or data is None:
        return
    predictions = predictions_of(losses, data)
    found = "; ".join(
        f"{name}: AUC {float(one.estimate):.3f}" for name, one in zip(areas.learners, areas.intervals, strict=True)
    )
    yield from _closed(
        "roc",
        "ROC curves",
        f"True against false positive rate of {names}, all resamplings pooled, with bands. {found}.",
        lambda: plot.roc_curves(*predictions, positive=positive),
    )
    yield from _closed(
        "precision_recall",
        "Precision-recall curves",
        f"Precision against recall of {names}, all resamplings pooled, with bands.",
        lambda: plot.precision_recall_curves(*predictions, positive=positive),
    )


def _closed(name: str, title: str, alt: str, draw: Any) -> Iterator[Drawing]:
    figure = draw().figure
    try:
        yield Drawing(name, title, alt, figure)
    finally:
        plt.close(figure)
