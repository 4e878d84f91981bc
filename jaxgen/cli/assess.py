"""What the command `jaxgen assess` does."""

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import matplotlib
import matplotlib.pyplot as plt

from jaxgen import datasets, learn, loss, plot, report, resample, store
from jaxgen.cli.results import Results
from jaxgen.cli.streams import complain, in_words, say
from jaxgen.engine import assess, door
from jaxgen.types import Data, Key, Learner, Losses, Plan
from jaxgen.types.identity import named
from jaxgen.types.keys import MOST_SEED
from jaxgen.types.numbers import require

SCHEMES: dict[str, Callable[[Key, int, argparse.Namespace], Plan]] = {
    "leave-out": lambda key, n, a: resample.leave_out(key, n, fraction=a.fraction, resamples=a.resamples),
    "k-fold": lambda key, n, a: resample.k_fold(key, n, folds=a.folds, repeats=a.repeats),
    "nested": lambda key, n, a: resample.nested_pairs(key, n, folds=a.folds, repeats=a.repeats),
    "leave-one-out": lambda key, n, a: resample.leave_one_out(n),
    "bootstrap": lambda key, n, a: resample.bootstrap(key, n, resamples=a.resamples),
    "balanced": lambda key, n, a: resample.balanced(key, n, fraction=a.fraction, resamples=a.resamples),
}

BUNDLED = {
    "diabetes": datasets.diabetes,
    "breast_cancer": datasets.breast_cancer,
    "wine": datasets.wine,
    "digits": datasets.digits,
}

LOSSES = {each.__name__: each for each in (loss.squared, loss.absolute, loss.zero_one, loss.cross_entropy)}


class _Run(NamedTuple):
    """What is to be done: data [N, D], its name, learners, and a plan [R, N]."""

    name: str
    data: Data
    learners: list[Learner]
    plan: Plan


def do_assess(options: argparse.Namespace) -> int:
    """Does what the options say; returns the exit code."""
    matplotlib.use("Agg")
    run = _prepared(options)
    say(f"{run.name}: {run.data.n} cases, {run.data.d} inputs, target {run.data.target!r}: {_in_words(run.data)}")
    results = _claimed(options.out, run, options)
    with results.held():
        return _trained_and_reported(run, options, results)


def _trained_and_reported(run: _Run, options: argparse.Namespace, results: Results) -> int:
    """Trains all learners and says what they show; returns the exit code."""
    try:
        _train(run, options, results)
        losses = list(results.losses.values())
        complete = _complete(losses, options.drop_failed)
        if complete:
            _report(complete, results)
        elif options.drop_failed and losses:
            say("no resampling is left on which all learners were trained; leave out the learner that failed most")
    except KeyboardInterrupt:
        if results.discard_if_empty():
            raise KeyboardInterrupt from None
        results.save()
        some = f"{len(results.losses)} of {len(run.learners)} learners are trained"
        where = f"the same command with --out {results.folder} goes on" if results.folder else str(results)
        raise KeyboardInterrupt(f"stopped; {some}; {where}") from None
    if results.discard_if_empty():
        return 2
    _say_failures(losses, options.drop_failed)
    say(str(results))
    return 0 if results.complete and len(complete) == len(run.learners) else 1


def _prepared(options: argparse.Namespace) -> _Run:
    """Everything that can be wrong with the command, before anything is trained."""
    require("--seed", options.seed, 0, MOST_SEED - 1, "the training takes the next")
    data, name = _data(options.file, options.target, options.task)
    learners = [learn.from_text(text) for text in options.learner or ("linear", "mean")]
    if len(set(learners)) < len(learners):
        raise ValueError(f"expected different learners, got {', '.join(map(repr, learners))}; name each once")
    plan = SCHEMES[options.scheme](jax.random.key(options.seed), data.n, options)
    if plan.resamples < 2:
        raise ValueError(f"expected at least 2 training sets, got {plan.resamples}; ask for more with --resamples")
    for learner in learners:
        door.check(_training_key(options), learner, data, plan, LOSSES[options.loss], "cases", None)
    return _Run(name, data, learners, plan)


def _training_key(options: argparse.Namespace) -> Key:
    """The key of the training, which is not that of the splits."""
    return jax.random.key(options.seed + 1)


def _data(file: str, target: str | None, task: str | None) -> tuple[Data, str]:
    """The data of a file or of this package, and their name."""
    if file in BUNDLED and not os.path.exists(file):
        return BUNDLED[file](), file
    return datasets.read_csv(file, target, task), Path(file).stem


def _in_words(data: Data) -> str:
    """What is predicted: numbers or which classes."""
    if data.task == "regression":
        return "regression"
    more = ", ..." if len(data.classes) > 10 else ""
    return f"classification, {len(data.classes)} classes: {', '.join(data.classes[:10])}{more}"


def _claimed(out: Path | None, run: _Run, options: argparse.Namespace) -> Results:
    """The folder of the results: the one asked for, or a new one named by data and time."""
    about = {
        "data": run.name,
        "task": run.data.task,
        "sha256": store.checksum(run.data),
        "seed": options.seed,
        "scheme": run.plan.scheme,
        "loss": options.loss,
        "jax": jax.__version__,
    }
    learners = [named(learner) for learner in run.learners]
    if out is not None:
        return Results(out, about, learners, go_on=True)
    begun = f"{run.name[:100]}-{datetime.now():%Y%m%d-%H%M%S}"
    for name in (begun, *(f"{begun}-{number}" for number in range(2, 100))):
        with suppress(FileExistsError):  # of another process in this second
            return Results(Path("jaxgen-runs") / name, about, learners, go_on=False)
    return Results(Path("jaxgen-runs") / f"{begun}-100", about, learners, go_on=False)


def _train(run: _Run, options: argparse.Namespace, results: Results) -> None:
    """Trains every learner and keeps its losses; one that raises something does not lose the others."""
    for number, learner in enumerate(run.learners, 1):
        try:
            ask = partial(assess, _training_key(options), learner, run.data, run.plan, LOSSES[options.loss])
            results.train(number, lambda folder, ask=ask: ask(store=folder))
        except Exception as trouble:
            complain(f"{learner}: {in_words(trouble)}")
            results.miss(repr(learner), in_words(trouble))


def _report(complete: Sequence[Losses], results: Results) -> None:
    """Prints and saves report, table and figure of learners, each of which may fail without the others."""
    with results.sparing("report"):
        text = report.page(complete)
        say(text)
        results.write(lambda folder: (folder / "report.txt").write_text(text + "\n", encoding="utf-8"))
    with results.sparing("table"):
        table = report.summaries(complete)
        results.write(lambda folder: table.to_csv(folder / "summary.csv", index_label="learner"))
    with results.sparing("figure"):
        results.write(lambda folder: _draw(complete, folder / "distribution.png"))


def _say_failures(losses: Sequence[Losses], drop_failed: bool) -> None:
    """Says which trainings failed and why, but for those that are left out on request."""
    for each in losses:
        count, all_failed = int(each.failed.sum()), bool(each.failed.all())
        if count and (all_failed or not drop_failed):
            advice = "" if all_failed else "; call again with --drop-failed to leave them out"
            reason = each.reasons[int(each.failure.max()) - 1]
            say(f"{count} of {each.resamples} trainings of {each.learner} failed: {reason}{advice}")


def _complete(every: Sequence[Losses], drop_failed: bool) -> list[Losses]:
    """The losses that can be reported: those without failed rows, or with --drop-failed all on the rows that every
    learner but those that always fail was trained on.
    """
    if not drop_failed:
        return [losses for losses in every if not losses.failed.any()]
    usable = [losses for losses in every if not losses.failed.all()]
    try:
        return [losses.without_failed(*usable) for losses in usable] if usable else []
    except ValueError:
        return []


def _draw(complete: Sequence[Losses], path: Path) -> None:
    figure = plot.distribution(*complete).figure
    try:
        figure.savefig(path, dpi=150)
    finally:
        plt.close(figure)
