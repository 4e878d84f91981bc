"""What the command `jaxgen delve` does."""

import argparse
from datetime import datetime
from pathlib import Path

import matplotlib

from jaxgen import datasets, loss
from jaxgen.cli.streams import say
from jaxgen.delve import report
from jaxgen.delve.archive import Archive
from jaxgen.delve.files import read_data
from jaxgen.delve.methods import Method, method
from jaxgen.delve.prototask import SIZES, Prototask, simulated
from jaxgen.delve.tasks import run
from jaxgen.types.keys import MOST_SEED
from jaxgen.types.numbers import first_line, require

LOSSES = {each.__name__: each for each in (loss.squared, loss.absolute, loss.zero_one)}


def run_methods(options: argparse.Namespace) -> int:
    """Runs methods on tasks; returns the exit code."""
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


def report_on(options: argparse.Namespace) -> int:
    """Compares the methods of an archive; returns the exit code."""
    matplotlib.use("Agg")
    archive = Archive.open(options.archive)
    out = options.out or Path("jaxgen-runs") / f"delve-{datetime.now():%Y%m%d-%H%M%S}"
    report.write_report(archive, out, options.methods, options.prototasks, options.holm)
    say((out / "report.txt").read_text())
    say(f"saved in {out}: " + ", ".join(sorted(path.name for path in out.iterdir())))
    return 0


def merge(options: argparse.Namespace) -> int:
    """Adds the results of another archive; returns the exit code."""
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
