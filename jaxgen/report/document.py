"""A report as one page of HTML that holds all that it shows."""

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from jaxgen.report.figures import drawings
from jaxgen.report.judged import View, views
from jaxgen.report.tables import COLUMNS, in_a_line, on_one_plan, verdict
from jaxgen.report.words import methods, references
from jaxgen.stats.remarks import check
from jaxgen.store import publish_text, refuse_other_file
from jaxgen.types import Data, Losses
from jaxgen.types.numbers import p_in_words, require_kind, shown

_VERSIONS = ("jaxgen", "jax", "jaxlib", "numpy", "scipy")
SIGNATURE = "<!DOCTYPE html><!-- made by jaxgen -->"
"""How a page begins; a file that begins otherwise is not replaced."""


def html(losses: Losses | Sequence[Losses], path: str | os.PathLike[str], **options: Any) -> Path:
    """Writes a report of assessed learners as one page of HTML: tables, figures, what was done in sentences for a
    methods section with references, versions, and how to run it again. It needs no network and no other file.

    Args:
      losses: of one learner or several on one plan and one data set, G [R] each, without failed rows.
      path: the file to write; one that `html` wrote before is replaced.
      options: by name, see `as_html`: data, title, positive, seeds, about, command, config, remarks.
    Returns:
      The path written.
    Raises:
      TypeError: no losses, no data, no path, or an unknown option.
      ValueError: losses of several data sets or plans, with failed rows, or of fewer than 2 rows; a title that is none.
      FileExistsError: there is a file of that name that `html` did not write.
      OSError: the file cannot be written.
    """
    require_kind("the path of a file", path, (str, os.PathLike), "give it as text or as a pathlib.Path")
    refuse_other_file(Path(path), SIGNATURE)
    publish_text(Path(path), as_html(losses, **options))
    return Path(path)


def as_html(
    losses: Losses | Sequence[Losses],
    *,
    data: Data | None = None,
    title: str = "",
    positive: Any = None,
    seeds: Sequence[int] = (),
    about: Mapping[str, Any] | None = None,
    command: str = "",
    config: str = "",
    remarks: Sequence[str] | None = None,
) -> str:
    """The page that `html` writes, as text.

    Args:
      losses: of one learner or several on one plan and one data set, G [R] each, without failed rows.
      data: what was assessed; of a classification with kept predictions the page then has error rate, log loss and,
        for two classes, AUC with ROC and precision-recall curves.
      title: of the page; empty for the target's name.
      positive: the class that an area under the curve is of; None takes the second of two.
      seeds: of the splits and of the training.
      about: more lines of the manifest.
      command, config: the command line, and the TOML file, that do the same again.
      remarks: sentences to heed when the results are read; None takes those of `jaxgen.check`.
    Returns:
      HTML that holds its figures.
    Raises:
      TypeError: no losses, or no data.
      ValueError: losses of several data sets or plans, with failed rows, or of fewer than 2 rows; a title that is none.
    """
    if not isinstance(title, str):
        raise ValueError(f"expected a title as text, got {shown(title)}; leave it out for the name of the target")
    every = on_one_plan([losses] if isinstance(losses, Losses) else losses)
    found = views(every, data, positive=positive)
    if remarks is None:
        remarks = [f"{one.severity}: {one.text}" for one in check(*every, data=data)]
    return _page(every, found, data, title, positive, seeds, dict(about or {}), command, config, remarks)


def _page(
    losses: Sequence[Losses],
    found: Sequence[View],
    data: Data | None,
    title: str,
    positive: Any,
    seeds: Sequence[int],
    about: dict[str, Any],
    command: str,
    config: str,
    remarks: Sequence[str],
) -> str:
    """The page of learners G [R] as text."""
    place = Path(__file__).parent / "templates"
    environment = Environment(
        loader=FileSystemLoader(place), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    figures, troubles = [], []
    try:
        for one in drawings(losses, found, data, positive):
            figures.append({"title": one.title, "alt": one.alt, "source": one.embedded()})
    except ValueError as trouble:  # such as a row without cases of one class
        troubles.append(f"no further figure: {trouble}")
    manifest = {name: version(name) for name in _VERSIONS} | {"Python": platform.python_version()}
    manifest |= {"machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"}
    manifest |= {"plan": losses[0].plan.scheme, **about}
    name = f"Predicting {data.target}" if data is not None else "Assessment of learners"
    return environment.get_template("report.html.j2").render(
        signature=SIGNATURE,
        title=title or name,
        lead=_lead(found),
        sections=[_section(view) for view in found],
        troubles=troubles,
        figures=figures,
        methods=methods(found, data, seeds),
        references=references(found),
        manifest={key: str(value) for key, value in manifest.items()},
        data=_of_data(data, losses[0]),
        remarks=list(remarks),
        command=command,
        config=config,
    )


def _lead(found: Sequence[View]) -> list[str]:
    """The first sentences: what was found."""
    sentences = []
    for view in found:
        if view.intervals:
            means = "; ".join(
                f"{name} {in_a_line(one)}" for name, one in zip(view.learners, view.intervals, strict=True)
            )
            sentences.append(f"{view.title[0].upper()}{view.title[1:]}: {means}.")
        if len(view.table) == 1:
            words = verdict(view.table.iloc[0], view.comparisons[0].level).removeprefix("so ")
            sentences.append(f"By the {view.title}, {words}.")
        elif len(view.table) > 1:
            told = int(np.sum(view.table["better"].to_numpy() != ""))
            sentences.append(f"By the {view.title}, {told} of {len(view.table)} pairs of learners are told apart.")
    return sentences


def _of_data(data: Data | None, losses: Losses) -> dict[str, str]:
    """The data in words, for a table."""
    if data is None:
        return {"cases": str(losses.plan.n), "resamplings": str(losses.resamples)}
    rows = {"target": data.target, "task": data.task, "cases": str(data.n), "inputs": str(data.d)}
    if data.task == "classification" and len(data.classes) > 1:
        counts = zip(data.classes, data.y.sum(0), strict=True)
        rows["classes"] = ", ".join(f"{name} ({int(count)})" for name, count in list(counts)[:20])
    if data.missing:
        rows["missing inputs"] = f"{int(np.isnan(data.x).sum())} values in {int(np.isnan(data.x).any(-1).sum())} cases"
    return rows | {"resamplings": str(losses.resamples)}


def _limits(lower: float, upper: float) -> str:
    """An interval in print; of two limits that are no numbers there is none."""
    return "none" if np.isnan(lower) and np.isnan(upper) else f"[{lower:.4g}, {upper:.4g}]"


def _section(view: View) -> dict[str, Any]:
    """A view as tables of texts."""
    summaries = None
    if len(view.summaries):
        head = ["learner", *(COLUMNS[name] for name in view.summaries.columns)]
        body = [
            [str(name), *(f"{value:.5g}" for value in row)]
            for name, row in zip(view.summaries.index, view.summaries.to_numpy(), strict=True)
        ]
        summaries = {"head": head, "body": body}
    intervals = None
    if view.intervals:
        ways = list(dict.fromkeys(f"{one.method} ({one.source}), about {one.target}" for one in view.intervals))
        notes = list(dict.fromkeys(one.note for one in view.intervals if one.note))
        body = [
            [name, f"{float(one.estimate):.4g}", _limits(float(one.lower), float(one.upper))]
            for name, one in zip(view.learners, view.intervals, strict=True)
        ]
        level = f"{100 * view.intervals[0].level:.4g} %"
        intervals = {"ways": ways, "notes": notes, "body": body, "level": level}
    comparisons = None
    if len(view.table):
        level = view.comparisons[0].level
        ways = list(dict.fromkeys(f"{one.method} ({one.source})" for one in view.comparisons))
        notes = list(dict.fromkeys(one.note for one in view.comparisons if one.note))
        body = [
            [
                row["first"],
                row["second"],
                f"{row['difference']:.4g}",
                _limits(row["lower"], row["upper"]),
                p_in_words(row["p_value"]),
                p_in_words(row["adjusted"]),
                row["better"] or "not told apart",
            ]
            for row in view.table.to_dict("records")
        ]
        comparisons = {"ways": ways, "notes": notes, "body": body, "level": f"{100 * level:.4g} %"}
    return {
        "title": view.title[0].upper() + view.title[1:],
        "summaries": summaries,
        "intervals": intervals,
        "comparisons": comparisons,
        "troubles": view.troubles,
    }
