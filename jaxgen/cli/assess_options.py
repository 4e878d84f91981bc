"""The options of the command `jaxgen assess`, and what can be wrong with them before anything heavy is loaded."""

import argparse
import os
from pathlib import Path
from typing import Any

from jaxgen.types.numbers import printable

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
  jaxgen assess --learner "Tuned(LeastSquares(), {'ridge': (0.1, 1.0, 10.0)}, by=5)"
      a ridge chosen inside each training set, by five folds of it
  jaxgen assess --learner network --resamples 100000 --out long
      a long run: stopped or killed, the same command goes on with what is not in the folder `long` yet

Every part of the training, about a minute's work, is saved as soon as it is done. If the folder cannot be written any
more, the results go to a temporary one, whose name is printed. `jaxgen report DIR` says how far a run is.

exit codes: 0 done, 1 some trainings or learners failed, or some results could not be saved (all others are), 2 the
input or the command was not as expected (nothing was trained), 130 stopped by the user, 143 ended by the system"""

SCHEMES = ("leave-out", "k-fold", "nested", "leave-one-out", "bootstrap", "balanced")
BUNDLED = ("diabetes", "breast_cancer", "wine", "digits")
LOSSES = ("squared", "absolute", "zero_one", "cross_entropy")
TASKS = ("regression", "classification")
FEW = 20
"""Whole numbers of at most so many different values may be classes or numbers."""


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
        help="folder for table, figure and losses: a new one, or that of the same command, which goes on with what is "
        "missing (default: jaxgen-runs/DATA-TIME)",
    )
    run.add_argument("--drop-failed", action="store_true", help="leave out trainings that failed, and say how many")
    run.set_defaults(do="jaxgen.cli.assess:do_assess", check=check)


def check(options: argparse.Namespace) -> None:
    """Refuses what needs nothing heavy to be seen.

    Raises:
      FileExistsError: the folder for the results holds other things.
      FileNotFoundError: the data are not.
      ValueError: a target or a task of built-in data, or no target of a file.
    """
    if options.out is not None and os.path.lexists(options.out) and not (options.out / "manifest.json").exists():
        raise FileExistsError(
            f"expected a new folder for the results, or one to go on with, got {options.out}, which holds other "
            "things; choose another with --out"
        )
    if options.file in BUNDLED and not os.path.exists(options.file):
        for option, given in (("--target", options.target), ("--task", options.task)):
            if given:
                raise ValueError(
                    f"expected {option} with a file only, got the built-in data {options.file!r}; leave {option} out"
                )
    elif options.target is None:
        raise ValueError(
            f"expected --target with the column of {options.file} to predict, got none; "
            f"name it, or give built-in data ({', '.join(BUNDLED)}) instead of a file"
        )
    elif not os.path.isfile(options.file):
        found = "a folder" if os.path.isdir(options.file) else "none"
        raise FileNotFoundError(f"{printable(options.file)}: expected a file, got {found}; check the path")
