"""The command `jaxgen delve`."""

import argparse
from datetime import datetime
from pathlib import Path

from jaxgen import datasets, loss
from jaxgen.cli.streams import say
from jaxgen.delve import report
from jaxgen.delve.archive import Archive
from jaxgen.delve.files import read_data
from jaxgen.delve.methods import METHODS, Method, method
from jaxgen.delve.prototask import FAMILIES, SIZES, Prototask, simulated
from jaxgen.delve.tasks import run
from jaxgen.types.data import TASKS
from jaxgen.types.keys import MOST_SEED
from jaxgen.types.numbers import first_line, require

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
LOSSES = {each.__name__: each for each in (loss.squared, loss.absolute, loss.zero_one)}


def add_to(commands) -> None:
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
    compared.set_defaults(do=_report)
    merged = parts.add_parser(
        "merge",
        help="add the results of another archive",
        description="Copies what is only in OTHER to ARCHIVE, if they agree in what both have.",
        **shape,
    )
    merged.add_argument("archive", metavar="ARCHIVE", type=Path)
    merged.add_argument("other", metavar="OTHER", type=Path)
    merged.set_defaults(do=_merge)


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
    parser.set_defaults(do=_run)


def _run(options: argparse.Namespace) -> int:
    require("--seed", options.seed, 0, MOST_SEED)
    require("--data-seed", options.data_seed, 0, MOST_SEED)
    methods = [_method(text) for text in options.methods]
    prototasks = _prototasks(options)
    archive = run(options.out, prototasks, methods, options.sizes, options.seed, LOSSES[options.loss], say=say)
    say(f"saved in {archive.path}; compare with: jaxgen delve report {archive.path}")
    results = [
        archive.losses(task.name, size, each.name) for task in prototasks for size in task.sizes for each in methods
    ]
    return 1 if any(losses.failed.any() for losses in results) else 0


def _method(text: str) -> Method:
    """The method that a text names, whatever the module that it is in does when it is imported."""
    try:
        return method(text)
    except (Exception, SystemExit) as error:
        if isinstance(error, ValueError) and str(error).startswith("expected "):
            raise
        raise ValueError(
            f"expected a method of your own as module:name, got {text}, whose module does not run "
            f"({first_line(error)}); correct the module"
        ) from None


def _report(options: argparse.Namespace) -> int:
    archive = Archive.open(options.archive)
    out = options.out or Path("jaxgen-runs") / f"delve-{datetime.now():%Y%m%d-%H%M%S}"
    report.write_report(archive, out, options.methods, options.prototasks, options.holm)
    say((out / "report.txt").read_text())
    say(f"saved in {out}: " + ", ".join(sorted(path.name for path in out.iterdir())))
    return 0


def _merge(options: argparse.Namespace) -> int:
    archive, other = Archive.open(options.archive), Archive.open(options.other)
    new = archive.merge(other)
    say("\n".join([*new, f"{len(new)} files added to {archive.path}"]))
    return 0


def _prototasks(options: argparse.Namespace) -> list[Prototask]:
    sizes = options.sizes or SIZES
    if options.family is not None:
        return [
            simulated(family, inputs, options.linearity, options.noise, options.data_seed, sizes=sizes)
            for family in options.family
            for inputs in options.inputs
        ]
    name = options.file.name
    if name.removesuffix(".gz").endswith(".data"):
        data = read_data(options.file, target=options.target, task=options.task)
    elif options.target is None:
        raise ValueError(f"expected --target with the column of {options.file} to predict, got none; name it")
    else:
        data = datasets.read_csv(options.file, options.target, options.task)
    given = options.name or name.removesuffix(".gz").rsplit(".", 1)[0]
    return [
        Prototask(
            given, data, sizes, options.instances, options.test_cases, options.common, f"{name}, target {data.target}"
        )
    ]


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
