"""The options of the command `jaxgen delve`."""

import argparse
from pathlib import Path
from typing import Any

_EPILOG = """examples:
  jaxgen delve run --family kin --inputs 8 --methods mlp-bgd-1,mlp-bgd-2 --out results
      Neal's two methods on the five tasks of kin-8nm, 36 training sets with four networks each
  jaxgen delve run --family kin --inputs 8 --methods my_methods:ridge --out results
      a method of yours: `ridge` in my_methods.py, a learner or a function of (cases, inputs) that returns one
  jaxgen delve run --file house.csv --target price --sizes 64,128 --methods lin-1,knn-cv-1 --out results
      data of your own, whose cases must be in random order: the first half is for tests
  jaxgen delve report results
      who is better on which task, with p-values and figures
  jaxgen delve merge results others
      adds the results of another archive

exit codes: 0 done, 1 some instances failed (all results are stored), 2 the input or the command was not as expected,
130 stopped by the user (what was finished is stored; the same command goes on from there)"""
LOSSES = ("squared", "absolute", "zero_one")
TASKS = ("regression", "classification")
FAMILIES = ("kin", "pumadyn", "bank")
METHODS = (
    *("lin-1", "knn-cv-1", "mlp-bgd-1", "mlp-bgd-2", "mlp-bgd-2b", "mlp-bgd-3", "mlp-ese-1"),
    *("mlp-mc-1", "mlp-mc-2", "mlp-mc-3", "mlp-mc-4", "mlp-mc-1b", "mlp-mc-2b", "mlp-mc-3b", "mlp-mc-4b"),
)
SIZES = (64, 128, 256, 512, 1024)


def add_to(commands: Any) -> None:
    """Adds the command `delve` with its own commands to those of a parser."""
    shape = {"epilog": _EPILOG, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = commands.add_parser(
        "delve",
        help="compare learning methods on families of tasks, as DELVE does",
        description="Runs learning methods on task instances with disjoint training sets, archives what they "
        "predict, and compares any that were ever run.",
        **shape,
    )
    parts = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(
        parts.add_parser(
            "run",
            help="run methods on tasks",
            description="Runs methods on tasks and stores their results; what is there already is not run again.",
            **shape,
        )
    )
    compared = parts.add_parser(
        "report",
        help="compare the methods of an archive",
        description="Compares all methods of an archive on every task, prints it, and saves tables and figures.",
        **shape,
    )
    compared.add_argument("archive", metavar="ARCHIVE", type=Path)
    compared.add_argument(
        "--methods",
        metavar="NAMES",
        type=_words,
        help="names with commas between, in the order of the columns (default: all)",
    )
    compared.add_argument("--prototasks", metavar="NAMES", type=_words, help="names with commas between (default: all)")
    compared.add_argument(
        "--holm", action="store_true", help="Holm's p-values in the figures (default: those of each pair by itself)"
    )
    compared.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="new folder for report, tables and figures (default: jaxgen-runs/delve-TIME)",
    )
    compared.set_defaults(do="jaxgen.cli.delve:report_on")
    merged = parts.add_parser(
        "merge",
        help="add the results of another archive",
        description="Copies what is only in OTHER to ARCHIVE, if they agree in what both have.",
        **shape,
    )
    merged.add_argument("archive", metavar="ARCHIVE", type=Path)
    merged.add_argument("other", metavar="OTHER", type=Path)
    merged.set_defaults(do="jaxgen.cli.delve:merge")


def _add_run(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--family",
        type=_words,
        metavar="NAMES",
        help=f"simulated tasks: {', '.join(FAMILIES)}; several with commas between",
    )
    source.add_argument(
        "--file",
        type=Path,
        metavar="FILE",
        help="cases of your own: a CSV file with a header, or a DELVE file (.data, .data.gz)",
    )
    parser.add_argument(
        "--inputs",
        type=_numbers,
        default=(8,),
        metavar="D",
        help="inputs of the simulated tasks: 8, 32 or 8,32 (default: 8)",
    )
    parser.add_argument(
        "--linearity", choices=("f", "n"), default="n", help="simulated: fairly linear or non-linear (default: n)"
    )
    parser.add_argument(
        "--noise", choices=("m", "h"), default="m", help="simulated: moderate or high noise (default: m)"
    )
    parser.add_argument(
        "--data-seed", type=int, default=0, metavar="SEED", help="simulated: seed of the cases (default: 0)"
    )
    parser.add_argument(
        "--target", metavar="NAME", help="the column of FILE to predict (DELVE files: the last by default)"
    )
    parser.add_argument(
        "--task",
        choices=TASKS,
        help="FILE: what the target is (default: classes if it is of texts, else numbers; must be said for few "
        "different whole numbers, which may be either)",
    )
    parser.add_argument("--name", help="of the prototask of FILE (default: the file's name)")
    parser.add_argument(
        "--test-cases", type=int, metavar="T", help="FILE: so many cases, the first ones, are for tests (default: half)"
    )
    parser.add_argument(
        "--instances", type=int, default=8, metavar="I", help="FILE: training sets of each size at most (default: 8)"
    )
    parser.add_argument(
        "--common", action="store_true", help="FILE: all instances share one test set (default: each has a part of it)"
    )
    parser.add_argument(
        "--sizes",
        type=_numbers,
        metavar="SIZES",
        help=f"training cases, with commas between (default: {','.join(map(str, SIZES))})",
    )
    parser.add_argument(
        "--methods",
        type=_words,
        required=True,
        metavar="NAMES",
        help=f"{', '.join(METHODS)}, or module:name of your own; with commas between",
    )
    parser.add_argument("--loss", choices=LOSSES, default="squared", help="loss of a case (default: squared)")
    parser.add_argument("--seed", type=int, default=0, help="of the training (default: 0)")
    parser.add_argument(
        "--out", metavar="ARCHIVE", required=True, type=Path, help="the archive; made if it is not there"
    )
    parser.set_defaults(do="jaxgen.cli.delve:run_methods")


def _words(text: str) -> tuple[str, ...]:
    """Words with commas between."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _numbers(text: str) -> tuple[int, ...]:
    """Whole numbers from 1 with commas between."""
    try:
        numbers = tuple(int(word) for word in _words(text))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1 or len(set(numbers)) < len(numbers):
        raise argparse.ArgumentTypeError(
            f"expected different whole numbers from 1 with commas between, got {text!r}; write for example 64,128"
        )
    return tuple(sorted(numbers))
