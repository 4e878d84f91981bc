"""All numbers of a run for other programs: one tree as JSON, or one number a line as CSV."""

import csv
import io
import json
import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from jaxgen import store
from jaxgen.cli.assess_options import CSV_BEGIN
from jaxgen.cli.results import Results
from jaxgen.report import View
from jaxgen.types import Data
from jaxgen.types.result import Result

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "pandas")


class Numbers(NamedTuple):
    """The numbers of a run as values that JSON can hold; NaN and infinite ones are null."""

    tree: dict[str, Any]

    def as_json(self) -> str:
        """One line for each of what is at the top."""
        parts = [f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in self.tree.items()]
        return "{" + ",\n ".join(parts) + "}\n"

    def as_csv(self) -> str:
        """One number or word a line, after what it is of; of a list each by its place from 1."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(CSV_BEGIN.split(","))
        writer.writerows(self._lines())
        return text.getvalue()

    def _lines(self) -> Iterator[tuple[Any, ...]]:
        for part in ("data", "plan", "versions", "seeds"):
            for name, value in self.tree[part].items():
                if isinstance(value, list):
                    yield from (("", part, "", "", f"{name} {place}", each) for place, each in enumerate(value, 1))
                else:
                    yield ("", part, "", "", name, value)
        for view in self.tree["results"]:
            for kind in ("summaries", "intervals", "comparisons"):
                for row in view[kind]:
                    who = (row.get("learner", row.get("first", "")), row.get("second", ""))
                    for name, value in row.items():
                        if name not in ("learner", "first", "second"):
                            yield (view["number"], kind, *who, name, value)


def in_numbers(views: Sequence[View], data: Data, results: Results, seeds: Mapping[str, int]) -> Numbers:
    """All numbers of the views of a run; learners by their names, whose code stands in the same order."""
    losses = views[0].losses
    plan = losses[0].plan
    shape = {"cases": data.n, "inputs": data.d, "missing": int(np.isnan(data.x).sum())}
    return Numbers(
        {
            "made by": f"jaxgen {version('jaxgen')}",
            "data": {
                "target": data.target,
                "task": data.task,
                "classes": list(data.classes),
                "names": list(data.names),
                **shape,
                "sha256": store.checksum(data),
            },
            "plan": {
                "scheme": plan.scheme,
                "resamples": plan.resamples,
                "training_cases": plan.train_sizes.tolist(),
                "test_cases": plan.test_sizes.tolist(),
                "left_out": losses[0].dropped,
            },
            "learners": [one.learner for one in losses],
            "names": [one.name for one in losses],
            "results": [_of_view(view) for view in views],
            "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
            "seeds": dict(seeds),
            "folder": None if results.folder is None else str(results.folder),
        }
    )


def _of_view(view: View) -> dict[str, Any]:
    rows = [
        {"learner": name, **{key: _plain(value) for key, value in row.items()}}
        for name, row in zip(view.summaries.index, view.summaries.to_dict("records"), strict=True)
    ]
    pairs = [
        {**{key: _plain(value) for key, value in row.items()}, **_of_result(one)}
        for row, one in zip(view.table.to_dict("records"), view.comparisons, strict=True)
    ]
    return {
        "number": view.title,
        "summaries": rows,
        "intervals": [
            {"learner": name, **_of_result(one)} for name, one in zip(view.learners, view.intervals, strict=False)
        ],
        "comparisons": pairs,
        "rows": {name: one.g.tolist() for name, one in zip(view.learners, view.losses, strict=False)},
        "troubles": view.troubles,
    }


def _of_result(one: Result) -> dict[str, Any]:
    numbers = {name: _plain(getattr(one, name)) for name in ("estimate", "standard_error", "df", "lower", "upper")}
    words = {name: getattr(one, name) for name in ("level", "method", "source", "target", "unit", "note")}
    return numbers | {name: _plain(value) for name, value in one.parts.items()} | words


def _plain(value: Any) -> Any:
    """A number or a text that JSON can hold."""
    if isinstance(value, str):
        return value
    number = float(value)
    return number if math.isfinite(number) else None
