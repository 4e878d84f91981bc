"""The command `jaxgen assess`."""

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import jax
import matplotlib.pyplot as plt

from jaxgen import datasets, learn, loss, plot, report, resample, store
from jaxgen.cli.results import Results
from jaxgen.cli.streams import complain, in_words, say
from jaxgen.datasets.targets import FEW
from jaxgen.engine import assess, door
from jaxgen.types import Data, Key, Learner, Losses, Plan
from jaxgen.types.data import TASKS
from jaxgen.types.keys import MOST_SEED
from jaxgen.types.numbers import require

_EPILOG = """examples:
  jaxgen assess
      1000 splits of the diabetes data (442 patients), a linear model against the mean
  jaxgen assess prices.csv --target price
      the same for a file of your own: a header line, then one case per line
  jaxgen assess flowers.csv --target species --task classification --learner logistic --loss cross_entropy
      classes that are written as numbers, 0, 1 and 2
  jaxgen assess prices.csv --target price --learner linear --learner 'LeastSquares(ridge=10.0)' --scheme k-fold
      a linear model against one with a ridge, by ten times ten folds
  jaxgen assess --learner linear --scheme nested --folds 5 --repeats 3
      the interval that covers best: nested cross-validation
  jaxgen assess --learner linear --learner network
      a linear model against networks of 20 hidden units

The losses of each learner are saved as soon as it is trained. If the folder cannot be written any more, the results
go to a temporary one, whose name is printed.

exit codes: 0 done, 1 some trainings or learners failed, or some results could not be saved (all others are), 2 the
input or the command was not as expected (nothing was trained), 130 stopped by the user"""

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


def add_to(commands: Any) -> None:
    """Adds the command `assess` to those of a parser."""
    run = commands.add_parser(
        "assess",
        help="train learners on many resampled training sets and compare their errors on the cases left out",
        description="Trains each learner on many resampled training sets of one data set, and prints how its "
        "error on the cases left out is "
        "distributed and whether the learners differ. Table, figure and all losses are saved in a folder.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        default="diabetes",
        help=f"a CSV file with a header, or built-in data: {', '.join(BUNDLED)} (default: diabetes)",
    )
    run.add_argument("--target", metavar="NAME", help="the column of FILE to predict")
    run.add_argument(
        "--task",
        choices=TASKS,
        help="what the target is (default: classes if it is of texts or true and false, else numbers; must be said for "
        f"at most {FEW} different whole numbers, which may be either)",
    )
    run.add_argument(
        "--learner",
        action="append",
        metavar="LEARNER",
        help="linear, mean, logistic, network, or code such as 'LeastSquares(ridge=10.0)'; "
        "repeat to compare (default: linear and mean)",
    )
    run.add_argument("--loss", choices=LOSSES, default="squared", help="loss of a case (default: squared)")
    run.add_argument(
        "--scheme",
        choices=SCHEMES,
        default="leave-out",
        help="how training sets are drawn (default: leave-out, random splits)",
    )
    run.add_argument(
        "--fraction",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="share of the cases left out (leave-out, balanced; default: 0.1, which measured best; "
        "see docs/which_interval_which_test.md)",
    )
    run.add_argument(
        "--resamples",
        type=int,
        default=1000,
        metavar="R",
        help="training sets (leave-out, bootstrap, balanced; default: 1000)",
    )
    run.add_argument("--folds", type=int, default=10, metavar="K", help="folds (k-fold, nested; default: 10)")
    run.add_argument(
        "--repeats",
        type=int,
        default=10,
        metavar="TIMES",
        help="times that all folds are drawn anew (k-fold, nested; default: 10)",
    )
    run.add_argument("--seed", type=int, default=0, help="seed S of the splits; the training takes S + 1 (default: 0)")
    run.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="new folder for table, figure and losses (default: jaxgen-runs/DATA-TIME)",
    )
    run.add_argument("--drop-failed", action="store_true", help="leave out trainings that failed, and say how many")
    run.set_defaults(do=_assess)


class _Run(NamedTuple):
    """What is to be done: data [N, D], its name, learners, and a plan [R, N]."""

    name: str
    data: Data
    learners: list[Learner]
    plan: Plan


def _assess(options: argparse.Namespace) -> int:
    if options.out is not None and os.path.lexists(options.out):
        raise FileExistsError(
            f"expected a new folder for the results, got {options.out}, which exists; choose another with --out"
        )
    run = _prepared(options)
    say(f"{run.name}: {run.data.n} cases, {run.data.d} inputs, target {run.data.target!r}: {_in_words(run.data)}")
    results = _claimed(options.out, run, options)
    try:
        _train(run, options, results)
        losses = list(results.losses.values())
        complete = _complete(losses, options.drop_failed)
        if complete:
            _report(complete, results)
        elif options.drop_failed and losses:
            say("no resampling is left on which all learners were trained; leave out the learner that failed most")
    except KeyboardInterrupt:
        results.save()
        if results.discard_if_empty():
            raise
        some = f"the losses of {len(results.losses)} of {len(run.learners)} learners are"
        raise KeyboardInterrupt(f"stopped; {some} {results}") from None
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
        for option, given in (("--target", target), ("--task", task)):
            if given:
                raise ValueError(
                    f"expected {option} with a file only, got the built-in data {file!r}; leave {option} out"
                )
        return BUNDLED[file](), file
    if target is None:
        raise ValueError(
            f"expected --target with the column of {file} to predict, got none; "
            f"name it, or give built-in data ({', '.join(BUNDLED)}) instead of a file"
        )
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
    if out is not None:
        return Results(out, about)
    named = f"{run.name[:100]}-{datetime.now():%Y%m%d-%H%M%S}"
    for name in (named, *(f"{named}-{number}" for number in range(2, 100))):
        with suppress(FileExistsError):  # of another process in this second
            return Results(Path("jaxgen-runs") / name, about)
    return Results(Path("jaxgen-runs") / f"{named}-100", about)


def _train(run: _Run, options: argparse.Namespace, results: Results) -> None:
    """Trains every learner and keeps its losses; one that raises something does not lose the others."""
    for number, learner in enumerate(run.learners, 1):
        try:
            losses = assess(_training_key(options), learner, run.data, run.plan, LOSSES[options.loss])
        except Exception as trouble:
            complain(f"{learner}: {in_words(trouble)}")
            results.miss(repr(learner), in_words(trouble))
        else:
            results.keep(number, losses)


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
    figure = plot.distribution(*complete)
    try:
        figure.savefig(path, dpi=150)
    finally:
        plt.close(figure)
