"""The command `jaxgen assess`."""

import argparse
import json
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt

from jaxgen import datasets, learn, loss, plot, report, resample, store
from jaxgen.engine import assess
from jaxgen.types import Data, Key, Losses, Plan

_EPILOG = """examples:
  jaxgen assess
      1000 splits of the diabetes data (442 patients), a linear model against the mean
  jaxgen assess prices.csv --target price
      the same for a file of your own: a header line, then one case per line
  jaxgen assess prices.csv --target price --learner linear --learner 'LeastSquares(ridge=10.0)' --scheme k-fold
      a linear model against one with a ridge, by ten times ten folds
  jaxgen assess --learner linear --scheme nested --folds 5 --repeats 3
      the interval that covers best: nested cross-validation
  jaxgen assess --learner linear --learner network
      a linear model against networks of 20 hidden units

exit codes: 0 done, 1 some fits failed (their losses are saved), 2 the input or the command was not as expected"""

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
    run.add_argument(
        "--target", metavar="NAME", help="the column of FILE to predict; a column of text makes it a classification"
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


def _assess(options: argparse.Namespace) -> int:
    data, name = _data(options.file, options.target)
    learners = [learn.from_text(text) for text in options.learner or ("linear", "mean")]
    if len(set(learners)) < len(learners):
        raise ValueError(f"expected different learners, got {', '.join(map(repr, learners))}; name each once")
    out = options.out or Path("jaxgen-runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    if out.exists():
        raise FileExistsError(
            f"expected a new folder for the results, got {out}, which exists; choose another with --out"
        )
    plan = SCHEMES[options.scheme](jax.random.key(options.seed), data.n, options)
    print(
        f"{name}: {data.n} cases, {data.d} inputs, target {data.target!r}"
        + (f" ({len(data.classes)} classes)" if data.classes else "")
    )
    losses = [
        assess(jax.random.key(options.seed + 1), learner, data, plan, LOSSES[options.loss]) for learner in learners
    ]
    failures = [
        f"{one.failed.sum()} of {one.resamples} trainings of {one.learner} failed: "
        f"{one.reasons[int(one.failure.max()) - 1]}"
        for one in losses
        if one.failed.any()
    ]
    complete = [one.without_failed(*losses) for one in losses] if options.drop_failed and failures else losses
    finished = options.drop_failed or not failures
    text = report.page(complete) if finished else ""
    _write(
        out,
        losses,
        complete if finished else [],
        text,
        {"data": name, "sha256": store.checksum(data), "seed": options.seed, "jax": jax.__version__},
    )
    print(text or f"{'; '.join(failures)}; call again with --drop-failed to leave them out")
    print(f"saved in {out}{os.sep}: " + ", ".join(sorted(path.name for path in out.iterdir())))
    return 0 if finished else 1


def _data(file: str, target: str | None) -> tuple[Data, str]:
    if file in BUNDLED and not Path(file).exists():
        if target:
            raise ValueError(f"expected --target with a file only, got the built-in data {file!r}; leave --target out")
        return BUNDLED[file](), file
    if target is None:
        raise ValueError(
            f"expected --target with the column of {file} to predict, got none; "
            f"name it, or give built-in data ({', '.join(BUNDLED)}) instead of a file"
        )
    return datasets.read_csv(file, target), Path(file).stem


def _write(
    out: Path, losses: Sequence[Losses], complete: Sequence[Losses], text: str, manifest: dict[str, object]
) -> None:
    """Writes the results to a new folder."""
    with store.new_folder(out) as folder:
        for number, one in enumerate(losses, 1):
            store.save(one, folder / f"losses-{number}.npz")
        manifest |= {
            "scheme": losses[0].plan.scheme,
            "loss": losses[0].loss,
            "learners": {f"losses-{i}.npz": one.learner for i, one in enumerate(losses, 1)},
            "jaxgen": version("jaxgen"),
        }
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
        if complete:
            (folder / "report.txt").write_text(text + "\n")
            report.summaries(complete).to_csv(folder / "summary.csv", index_label="learner")
            figure = plot.distribution(*complete)
            figure.savefig(folder / "distribution.png", dpi=150)
            plt.close(figure)
