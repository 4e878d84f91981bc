"""The options of the command `jaxgen assess`, and what can be wrong with them before anything heavy is loaded."""

import argparse
import os
from pathlib import Path
from typing import Any

from jaxgen.cli.configuration import filled_in
from jaxgen.types.numbers import printable

_EPILOG = """examples:
  jaxgen assess
      100 splits of the diabetes data (442 patients), a linear model against the mean
  jaxgen assess prices.csv --target price
      the same for a file of your own: a header line, then one case per line
  jaxgen assess titanic.csv --target survived --task classification --drop name --missing impute --dates days
      two classes that are written as 0 and 1; error rate, log loss and AUC of logistic regression
  jaxgen assess prices.csv --target price --learner linear --learner 'LeastSquares(ridge=10.0)' --learner network
      all pairs of three learners, with p-values adjusted for their number
  jaxgen assess --learner linear --learner network --resamples 500
      the narrowest interval that covers as it should, and the test that holds its level best
  jaxgen assess --learner linear --scheme nested
      the interval that covers best of few trainings: nested cross-validation
  jaxgen assess --learner "Tuned(LeastSquares(), {'ridge': (0.1, 1.0, 10.0)}, by=5)"
      a ridge chosen inside each training set, by five folds of it
  jaxgen assess --learner network --resamples 100000 --out long
      a long run: stopped or killed, the same command goes on with what is not in the folder `long` yet
  jaxgen assess --config experiment.toml --json results.json
      all options from a file, whose names are those of the options: target = "price"; numbers for a program

Every part of the training, about a minute's work, is saved as soon as it is done. If the folder cannot be written any
more, the results go to a temporary one, whose name is printed. `jaxgen report DIR` says how far a run is.

exit codes: 0 done, 1 some trainings or learners failed, or some results could not be saved (all others are), 2 the
input or the command was not as expected (nothing was trained), 130 stopped by the user, 143 ended by the system"""

BUNDLED = ("diabetes", "breast_cancer", "wine", "digits")
LOSSES = ("squared", "absolute", "zero_one", "cross_entropy")
TASKS = ("regression", "classification")
JSON_BEGIN = '{"made by": "jaxgen'
CSV_BEGIN = "number,kind,learner,against,quantity,value"
HTML_BEGIN = "<!DOCTYPE html><!-- made by jaxgen -->"
"""How files that are written begin; a file that begins otherwise is not replaced."""
MISSING = ("error", "drop", "impute")
DATES = ("error", "days", "drop")
DRAWN: dict[str, dict[str, Any]] = {
    "leave-out": {"fraction": 0.1, "resamples": 100},
    "k-fold": {"folds": 10, "repeats": 10},
    "nested": {"folds": 5, "repeats": 3},
    "leave-one-out": {},
    "bootstrap": {"resamples": 100},
    "balanced": {"fraction": 0.1, "resamples": 100},
}
"""The options by which each scheme draws training sets, and what they are where none are given."""
SCHEMES = tuple(DRAWN)
DEFAULTS: dict[str, Any] = {
    "file": "diabetes",
    "scheme": "leave-out",
    "seed": 0,
    "missing": "error",
    "dates": "error",
    "missing_indicator": False,
    "drop_failed": False,
}
"""What options are where neither the command nor a file says it, beside those that depend on the data."""
STRATIFIED = ("leave-out", "k-fold", "nested")
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
        help=f"a CSV file with a header, or built-in data: {', '.join(BUNDLED)} (default: diabetes)",
    )
    _add_data(run)
    _add_compared(run)
    _add_splits(run)
    _add_results(run)
    run.set_defaults(do="jaxgen.cli.assess:do_assess", check=check, parser=run)


def _add_data(run: argparse.ArgumentParser) -> None:
    """Options of the data."""
    data = run.add_argument_group("data")
    data.add_argument("--target", metavar="NAME", help="the column of FILE to predict")
    data.add_argument(
        "--task",
        choices=TASKS,
        help="what the target is (default: classes if it is of texts or true and false, else numbers; must be said for "
        f"at most {FEW} different whole numbers, which may be either)",
    )
    data.add_argument(
        "--drop", action="append", metavar="NAME", help="a column to leave out, such as a name; repeatable"
    )
    data.add_argument(
        "--missing",
        choices=MISSING,
        help="missing values: an error; drop their cases; or impute, the mean or the most frequent level of "
        "the training cases of each training set (default: error)",
    )
    data.add_argument(
        "--missing-indicator",
        action="store_true",
        default=None,
        help="with --missing impute, also inputs that say what was missing",
    )
    data.add_argument(
        "--dates",
        choices=DATES,
        help="columns of dates: an error; days since their first date; or drop the columns (default: error)",
    )


def _add_compared(run: argparse.ArgumentParser) -> None:
    """Options of what is compared."""
    what = run.add_argument_group("what is compared")
    what.add_argument(
        "--learner",
        action="append",
        metavar="LEARNER",
        help="linear, mean, logistic, network, or code such as 'LeastSquares(ridge=10.0)'; repeat to compare, three or "
        "more in all pairs (default: linear and mean; of classes logistic and mean, which predicts their shares)",
    )
    what.add_argument(
        "--loss",
        choices=LOSSES,
        help="loss of a case (default: squared; of classes the error rate, and log loss and AUC beside it)",
    )
    what.add_argument(
        "--positive", metavar="CLASS", help="the class that the area under the ROC curve is of (default: the second)"
    )


def _add_splits(run: argparse.ArgumentParser) -> None:
    """Options of the training sets."""
    splits = run.add_argument_group("training sets")
    splits.add_argument(
        "--scheme", choices=SCHEMES, help="how training sets are drawn (default: leave-out, random splits)"
    )
    splits.add_argument(
        "--fraction",
        type=float,
        metavar="SHARE",
        help="share of the cases left out (leave-out, balanced; default: 0.1, which measured best; "
        "see docs/which_interval_which_test.md)",
    )
    splits.add_argument(
        "--resamples",
        type=int,
        metavar="R",
        help="training sets (leave-out, bootstrap, balanced; default: 100, which suffices; 500 for the narrowest "
        "interval)",
    )
    splits.add_argument("--folds", type=int, metavar="K", help="folds (k-fold, nested; default: 10, of nested 5)")
    splits.add_argument(
        "--repeats",
        type=int,
        metavar="TIMES",
        help="times that all folds are drawn anew (k-fold, nested; default: 10, of nested 3)",
    )
    splits.add_argument(
        "--stratify",
        action=argparse.BooleanOptionalAction,
        help="the same share of each class in every test set (leave-out, k-fold, nested; default: yes for classes)",
    )
    splits.add_argument("--seed", type=int, help="seed S of the splits; the training takes S + 1 (default: 0)")


def _add_results(run: argparse.ArgumentParser) -> None:
    """Options of where results go."""
    results = run.add_argument_group("results")
    results.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for tables, figures, report.html and losses: a new one, or that of the same command, which goes "
        "on with what is missing (default: jaxgen-runs/DATA-TIME)",
    )
    results.add_argument(
        "--json", metavar="FILE", help="all numbers for other programs; - prints them and nothing else"
    )
    results.add_argument("--csv", type=Path, metavar="FILE", help="all numbers as a table, one a line")
    results.add_argument("--html", type=Path, metavar="FILE", help="the report as one page, also outside of the folder")
    results.add_argument(
        "--drop-failed",
        action="store_true",
        default=None,
        help="leave out trainings that failed, and say how many",
    )
    results.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="a TOML file with any of these options by their names, paths relative to it; the command line wins",
    )


def defaults_with(config: Path) -> argparse.Namespace:
    """The options of the command as a TOML file has them, for those who read its results."""
    parser = argparse.ArgumentParser()
    add_to(parser.add_subparsers())
    options = parser.parse_args(["assess", "--config", str(config)])
    filled_in(options, options.parser, DEFAULTS)
    return options


def check(options: argparse.Namespace) -> None:
    """Refuses what needs nothing heavy to be seen.

    Raises:
      FileExistsError: the folder for the results holds other things, or a file to write is another.
      FileNotFoundError: the data are not there, or the file with the options.
      OSError: a file to write has no place.
      ValueError: a target or a task of built-in data, or no target of a file, or what the file with the options says.
    """
    typed = {name for name, value in vars(options).items() if value is not None}
    filled_in(options, options.parser, DEFAULTS)
    _fill_in_draws(options, typed)
    if options.out is not None and os.path.lexists(options.out) and not (options.out / "manifest.json").exists():
        raise FileExistsError(
            f"expected a new folder for the results, or one to go on with, got {options.out}, which holds other "
            "things; choose another with --out"
        )
    if options.file in BUNDLED and not os.path.exists(options.file):
        for option, given in (("--target", options.target), ("--task", options.task), ("--drop", options.drop)):
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
    _check_files(options)
    if options.missing_indicator and options.missing != "impute":
        raise ValueError(
            f"expected --missing-indicator with --missing impute, got --missing {options.missing}; say --missing "
            "impute, or leave --missing-indicator out"
        )


def _fill_in_draws(options: argparse.Namespace, typed: set[str]) -> None:
    """Fills in the options by which the scheme draws training sets, and refuses those of other schemes, but for those
    of a file whose scheme is replaced by one that was typed.
    """
    for name in ("fraction", "resamples", "folds", "repeats"):
        used = DRAWN[options.scheme]
        if name in used and getattr(options, name) is None:
            setattr(options, name, used[name])
        elif name not in used and "scheme" in typed and name not in typed:
            setattr(options, name, None)
        elif name not in used and getattr(options, name) is not None:
            takers = " or ".join(scheme for scheme, taken in DRAWN.items() if name in taken)
            raise ValueError(
                f"expected --{name} with --scheme {takers}, got --scheme {options.scheme}, which does not use it; "
                "leave it out, or choose another scheme"
            )


def _check_files(options: argparse.Namespace) -> None:
    """Refuses files that are to be written where they cannot be."""
    wanted = [(options.csv, CSV_BEGIN), (options.html, HTML_BEGIN)]
    if options.json not in (None, "-"):
        wanted.append((Path(options.json), JSON_BEGIN))
    files = [path for path, _ in wanted if path is not None]
    if len({path.absolute() for path in files}) < len(files):
        raise ValueError(
            f"expected different files for --json, --csv and --html, got {', '.join(map(str, files))}; name each once"
        )
    for path, begin in wanted:
        if path is not None:
            from jaxgen.store.files import refuse_other_file

            refuse_other_file(path, begin)
