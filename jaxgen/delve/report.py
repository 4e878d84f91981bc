"""What an archive of results says: expected losses, comparisons, figures, tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from jaxgen import loss, store
from jaxgen.delve.analysis import TaskComparison, analyse, standard_loss
from jaxgen.delve.archive import Archive
from jaxgen.delve.figure import task_figure
from jaxgen.delve.methods import METHODS
from jaxgen.types.numbers import require_flag, require_kind, shown


@dataclass(frozen=True, eq=False)
class Compared:
    """Methods compared on the tasks of one prototask.

    Attributes:
      prototask: its name.
      tasks: one for each number of training cases, in increasing order; numbers [L] for L methods.
      left_out: methods that have no place here, and why.
    """

    prototask: str
    tasks: tuple[TaskComparison, ...]
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([self.prototask, *map(str, self.tasks), *(f"left out: {reason}" for reason in self.left_out)])


def compared(
    archive: Archive, prototask: str, methods: Sequence[str] | None = None, sizes: Sequence[int] | None = None
) -> Compared:
    """Compares methods on all tasks of a prototask for which there are results.

    Args:
      archive: where the results are.
      prototask: its name.
      methods: names, in the order of the columns; None takes all, DELVE's own first. A method that has not run on all
        of these sizes, or that failed on an instance, is left out and said to be.
      sizes: training cases; None takes all sizes of which there are results.
    Returns:
      Compared, of L methods.
    Raises:
      TypeError: no archive, or no list of names or sizes.
      ValueError: no results, or only of methods that must be left out; or none of a method or size asked for.
    """
    _require(archive, methods=methods, sizes=sizes)
    results = archive.results(prototask)
    if not len(results):
        raise ValueError(f"expected results for {prototask} in {archive.path}, got none; run methods on it first")
    for what, wanted in (("method", methods), ("size", sizes)):
        unknown = [name for name in wanted or () if name not in set(results[what])]
        if unknown:
            raise ValueError(
                f"expected a {what} among {', '.join(map(str, sorted(set(results[what]))))} for {prototask}, "
                f"got {unknown[0]}; run it first"
            )
    chosen = sorted(set(results["size"])) if sizes is None else sorted(sizes)
    own = list(METHODS)
    names = (
        sorted(set(results["method"]), key=lambda name: (own.index(name) if name in own else len(own), name))
        if methods is None
        else list(methods)
    )
    table = results.loc[results["size"].isin(chosen)].set_index(["method", "size"])
    reasons = {name: _trouble(table, name, chosen) for name in names}
    good = tuple(name for name in names if not reasons[name])
    if not good:
        raise ValueError(
            f"expected a method that has run without failure on {prototask} with "
            f"{', '.join(map(str, chosen))} cases, got none ({'; '.join(reasons.values())}); run one"
        )
    y = archive.prototask(prototask).data.y
    tasks = []
    for size in chosen:
        losses = archive.task_losses(prototask, size, good)
        standardised = losses[0].loss in (loss.squared.__name__, loss.absolute.__name__, loss.zero_one.__name__)
        standard = standard_loss(y, losses[0].plan, losses[0].loss) if standardised else None
        tasks.append(analyse(losses, standard, good))
    return Compared(prototask, tuple(tasks), tuple(reason for reason in reasons.values() if reason))


def all_compared(
    archive: Archive, methods: Sequence[str] | None = None, prototasks: Sequence[str] | None = None
) -> list[Compared]:
    """The comparisons of all prototasks, each of the L methods that have run on it.

    Args:
      archive: where the results are.
      methods: names, in the order of the columns; None takes all.
      prototasks: names; None takes all on which one of the methods has run.
    Returns:
      One for each prototask.
    Raises:
      TypeError: no archive, or no list of names.
      ValueError: a method that has run nowhere, or as `compared` says.
    """
    _require(archive, methods=methods, prototasks=prototasks)
    run = {name: {file.stem for file in (archive.path / name).glob("*/*.npz")} for name in archive.prototasks()}
    unknown = [method for method in methods or () if not any(method in names for names in run.values())]
    if unknown or not run:
        known = ", ".join(sorted(set().union(*run.values()))) or "none"
        raise ValueError(
            f"expected methods among those that have run ({known}), got "
            f"{unknown[0] if unknown else 'an empty archive'}; run it first"
        )
    chosen = [name for name in run if methods is None or run[name] & set(methods)] if prototasks is None else prototasks
    return [
        compared(
            archive, name, None if methods is None else [method for method in methods if method in run.get(name, ())]
        )
        for name in chosen
    ]


def page(comparisons: Sequence[Compared]) -> str:
    """Comparisons, of L methods each, as text.

    Raises:
      TypeError: no list of comparisons.
    """
    _require_compared(comparisons)
    return "\n\n".join(map(str, comparisons))


def tables(comparisons: Sequence[Compared]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Losses, one row for each prototask, size and method; and pairs, one row for each two methods, with p-values raw
    and adjusted.

    Raises:
      TypeError: no list of comparisons.
      ValueError: an empty one.
    """
    _require_compared(comparisons)
    if not comparisons:
        raise ValueError("expected one comparison or more, got none; give what all_compared returns")
    tasks = [(each.prototask, task) for each in comparisons for task in each.tasks]
    losses = [task.to_frame().assign(prototask=prototask) for prototask, task in tasks]
    pairs = [
        task.pairs.to_frame().assign(prototask=prototask, size=task.size)
        for prototask, task in tasks
        if len(task.pairs.first)
    ]
    keys = ["prototask", "size"]
    of_pairs = _first(pd.concat(pairs, ignore_index=True), keys) if pairs else pd.DataFrame(columns=keys)
    return _first(pd.concat(losses, ignore_index=True), keys), of_pairs


def write_report(
    archive: Archive,
    out: str | Path,
    methods: Sequence[str] | None = None,
    prototasks: Sequence[str] | None = None,
    adjusted: bool = False,
) -> Path:
    """Writes the report of an archive to a new folder: report.txt, losses.csv, pairs.csv, results.csv (every manifest)
    and a figure for each prototask.

    Args:
      archive: where the results are.
      out: the folder, which appears under its name only when all is in it.
      methods: names, in the order of the columns; None takes all.
      prototasks: names; None takes all.
      adjusted: Holm's p-values in the figures, instead of those of each pair [L, L] by itself.
    Returns:
      The folder.
    Raises:
      TypeError: no archive, no path, or no list of names.
      FileExistsError: the folder is there already.
      OSError: it cannot be written.
      ValueError: as `all_compared` says.
    """
    require_flag("adjusted", adjusted)
    with store.new_folder(out) as folder:
        comparisons = all_compared(archive, methods, prototasks)
        losses, pairs = tables(comparisons)
        (folder / "report.txt").write_text(page(comparisons) + "\n")
        for name, table in (("losses", losses), ("pairs", pairs), ("results", archive.results())):
            table.to_csv(folder / f"{name}.csv", index=False)
        for each in comparisons:
            standardised = not any(np.isnan(task.standard) for task in each.tasks)
            panels = task_figure(each.tasks, each.prototask, adjusted, standardised)
            panels.savefig(folder / f"{each.prototask}.png", dpi=200)
            plt.close(panels.figure)
    return Path(out)


def _require(archive: Any, **names: Any) -> None:
    """TypeError unless there is an archive, and names and sizes are lists or None."""
    require_kind("an archive as delve.Archive", archive, Archive, "open it with delve.Archive.open(path)")
    for what, values in names.items():
        if values is not None and (isinstance(values, str) or not isinstance(values, Sequence)):
            raise TypeError(f"expected {what} in a list, got {shown(values)}; give a list, also of one")


def _require_compared(comparisons: Any) -> None:
    """TypeError unless these are comparisons in a list."""
    if not isinstance(comparisons, list | tuple) or not all(isinstance(each, Compared) for each in comparisons):
        raise TypeError(f"expected comparisons in a list, got {shown(comparisons)}; give what all_compared returns")


def _trouble(table: pd.DataFrame, name: str, sizes: Sequence[int]) -> str:
    """Why a method cannot be compared on tasks of all sizes; empty if it can."""
    missing = [size for size in sizes if (name, size) not in table.index]
    if missing:
        return f"{name}, which has not run with {', '.join(map(str, missing))} cases"
    failed = [
        f"{int(table.loc[(name, size), 'failed'])} instances with {size} cases"
        for size in sizes
        if table.loc[(name, size), "failed"]
    ]
    return f"{name}, which failed on {', '.join(failed)}" if failed else ""


def _first(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    return table.loc[:, [*keys, *(name for name in table.columns if name not in keys)]]
