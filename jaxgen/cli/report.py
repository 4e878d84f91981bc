"""What the command `jaxgen report` does."""

import argparse
import math
from pathlib import Path

from jaxgen import store
from jaxgen.cli.streams import say
from jaxgen.types import Losses


def do_report(options: argparse.Namespace) -> int:
    """Prints how far every run in a folder is; returns the exit code."""
    for folder in _folders(options.folder):
        say("\n".join(_lines(store.open(folder))))
    return 0


def _folders(folder: Path) -> list[Path]:
    """The folder itself if it holds a run, else those in it that do, in order; itself again if none does, so that
    opening it says what is wrong.
    """
    if (folder / "run.json").exists():
        return [folder]
    inside = sorted(path.parent for path in folder.glob("*/run.json"))
    return sorted(inside, key=lambda path: (len(path.name), path.name)) or [folder]


def _lines(run: store.StoredRun) -> list[str]:
    """How far a run is, what it shows, and how long the rest takes."""
    state = run.state()
    lines = [
        f"{run.heading.learner}, {run.heading.loss} loss, {run.asked['plan']}",
        f"  done: {state.done} of {state.parts} parts, {state.trained:,} of {state.trainings:,} trainings",
    ]
    if state.done < state.parts:
        left = f"about {_in_words(state.seconds_left)}" if state.done else "not known before a part is done"
        lines.append(f"  left: {left} on one machine")
    try:
        lines.extend(f"  {line}" for line in _numbers(run.losses(), state.trainings))
    except ValueError as trouble:
        lines.append(f"  {trouble}")
    return lines


def _numbers(losses: Losses, trainings: int) -> list[str]:
    """What the trainings that are done show."""
    failed = int(losses.failed.sum())
    lines = [f"failed: {failed:,} of {losses.failed.size:,} trainings, left out below"] if failed else []
    good = losses.test_mean[~losses.failed]
    if len(good) < 2:
        return [*lines, "too few trainings went well for a mean with a standard error"]
    deviation = float(good.std(ddof=1))
    lines.append(f"mean loss {good.mean():.6g}, standard deviation over trainings {deviation:.4g}")
    if losses.plan.drawn_one_by_one:
        error, least = (deviation / math.sqrt(number) for number in (len(good), trainings))
        rest = f", which all {trainings:,} bring to {least:.3g}" if losses.failed.size < trainings else ""
        lines.append(f"Monte Carlo standard error of the mean {error:.3g}{rest}")
    return lines


def _in_words(seconds: float) -> str:
    """A time in a unit that suits it."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
