"""What the command `jaxgen report` does."""

import argparse
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from jaxgen import store
from jaxgen.cli.assess_options import defaults_with as assess_defaults
from jaxgen.cli.results import CONFIG, labels_of
from jaxgen.cli.streams import say
from jaxgen.types import Losses
from jaxgen.types.numbers import printable


def do_report(options: argparse.Namespace) -> int:
    """Prints how far every run in a folder is; returns the exit code."""
    if not options.folder.is_dir():
        found = "a file" if options.folder.exists() else "none"
        raise FileNotFoundError(
            f"{printable(str(options.folder))}: expected the folder of a run, got {found}; check the path"
        )
    folders = _folders(options.folder)
    labels = [""] * len(folders)
    with suppress(OSError, ValueError):  # a damaged file of options, without which the rest can be said
        labels = _labels(_options_of(options.folder), folders)
    for folder, label in zip(folders, labels, strict=True):
        say("\n".join(_lines(store.open(folder), label)))
    if options.html is not None:
        _write_page(options.folder, folders, options.html)
        say(f"saved in {options.html}")
    return 0


def _write_page(folder: Path, runs: Sequence[Path], path: Path) -> None:
    """Writes the report of the runs in a folder as a page, with the data where they are what they were."""
    import matplotlib

    from jaxgen.cli.assess import data_of, page_of

    matplotlib.use("Agg")
    losses = [store.open(run).losses() for run in runs]
    common = min(one.resamples for one in losses)
    if any(one.resamples != common for one in losses):
        raise ValueError(
            f"expected learners with the same resamplings done for a page, got {[one.resamples for one in losses]}; "
            "wait for the rest, or name the folder of one of them"
        )
    options = _options_of(folder)
    losses = [one.labelled(label) for one, label in zip(losses, _labels(options, runs), strict=True)]
    losses = [one.without_failed(*losses) if any(each.failed.any() for each in losses) else one for one in losses]
    data = None
    if options is not None:
        with suppress(OSError, ValueError):
            data = data_of(options)[0]
    kept = _sha_of_data(folder)
    if data is not None and kept not in (None, store.checksum(data)):
        data = None
    if data is None:
        say("without the data, which are not there or not those of the run: no other loss than the one counted")
    seed = 0 if options is None else options.seed
    text = (folder / CONFIG).read_text(encoding="utf-8") if options is not None else ""
    positive = None if options is None else options.positive
    name = folder.resolve().name if options is None else Path(options.file).stem
    store.publish_text(path, page_of(losses, data, name, positive, seed, text))


def _options_of(folder: Path) -> argparse.Namespace | None:
    """Those that the command was given that made a folder of results; None for another folder."""
    config = folder / CONFIG
    return assess_defaults(config) if config.is_file() else None


def _labels(options: argparse.Namespace | None, runs: Sequence[Path]) -> list[str]:
    """What the learner of each run was called, by its word; empty for one that was given as code."""
    labels = dict(enumerate(labels_of((options and options.learner) or ()), 1))
    return [labels.get(_number(run), "") for run in runs]


def _number(run: Path) -> int:
    """The number of a learner, by which its folder is called; 0 for another folder."""
    return int(run.name) if run.name.isdecimal() else 0


def _sha_of_data(folder: Path) -> str | None:
    """The digest of the data that a manifest names."""
    with suppress(OSError, ValueError):
        return json.loads((folder / "manifest.json").read_text(encoding="utf-8")).get("sha256")
    return None


def _folders(folder: Path) -> list[Path]:
    """The folder itself if it holds a run, else those in it that do, in order; itself again if none does, so that
    opening it says what is wrong.
    """
    if (folder / "run.json").exists():
        return [folder]
    inside = sorted(path.parent for path in folder.glob("*/run.json"))
    return sorted(inside, key=lambda path: (len(path.name), path.name)) or [folder]


def _lines(run: store.StoredRun, label: str) -> list[str]:
    """How far a run is, what it shows, and how long the rest takes."""
    state = run.state()
    lines = [
        f"{label + ': ' if label else ''}{run.heading.learner}, {run.heading.loss} loss, {run.asked['plan']}",
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
