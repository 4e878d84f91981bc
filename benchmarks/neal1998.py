"""The early-stopping methods of Neal 1998, "Assessing relevance determination methods using DELVE", on his thirty
tasks, and what he says of them.

    python benchmarks/neal1998.py                   the three families as jaxgen.simulate makes them, with 8 and 32
    inputs, five sizes each
    python benchmarks/neal1998.py --real FOLDER     DELVE's own data instead, as far as FOLDER has them: kin-8nm.npz,
    ... with arrays X and y
    python benchmarks/neal1998.py --mc              the Bayesian methods, with all the passes that Neal's had;
    --passes 20000 is a third
    python benchmarks/neal1998.py --quick           two of the methods and least squares on two tasks; writes nothing

prints the losses, the times and a table of claims, and writes to benchmarks/results/: neal1998.txt, the losses and
p-values of all pairs as CSV, and a figure for each data set (with --real, neal1998_real.txt only; with --mc,
neal1998_mc.txt, which says how many runs had not converged). The archive of all predictions stays in jaxgen-runs/, and
what it has is not run again; times are those of a first run, compilation included. All simulated data have moderate
noise, as Neal's: what is known or not of DELVE's data with high noise has no influence here.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import neal1998_mc_claims as mc
import numpy as np
from neal1998_claims import claims
from speed import machine

from jaxgen import datasets, delve

RESULTS = Path(__file__).parent / "results"
RUNS = Path(__file__).parents[1] / "jaxgen-runs"
METHODS = ("mlp-ese-1", "mlp-bgd-1", "mlp-bgd-2", "mlp-bgd-2b", "mlp-bgd-3", "knn-cv-1", "lin-1")
ORDER = ("mlp-bgd-1", "mlp-bgd-2", "mlp-bgd-3", "mlp-bgd-2b", "mlp-ese-1", "knn-cv-1", "lin-1")
"""Of the runs."""
PAPER = {(8, 1024): 27, (32, 1024): 52}
"""Minutes for one training set by mlp-bgd, on a 194 MHz processor: Neal 1998, Fig. 1."""
COLUMNS = [
    "prototask",
    "size",
    "method",
    "loss",
    "standard_error",
    "standardised_loss",
    "standardised_standard_error",
    "training set sd",
    "residual sd",
]


def simulated():
    """The six prototasks, made by the simulators."""
    return [delve.simulated(family, inputs) for inputs in (8, 32) for family in delve.FAMILIES]


def real(folder):
    """Those of DELVE's data sets that a folder has."""
    names = ("kin-8nm", "pumadyn-8nm", "bank-8nm", "kin-32nm", "pumadyn-32nm", "bank-32nm", "bank-32nh")
    return [
        delve.Prototask(name, read(folder / f"{name}.npz"), origin="DELVE")
        for name in names
        if (folder / f"{name}.npz").exists()
    ]


def read(file):
    with np.load(file) as arrays:
        return datasets.from_arrays(arrays["X"], arrays["y"], arrays["names"].tolist())


def run(archive, prototasks):
    """Runs all methods that the archive does not have."""
    for name in ORDER:
        began = time.perf_counter()
        archive = delve.run(archive, prototasks, [delve.METHODS[name]], progress=False)
        print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)
    return archive


def times(archive):
    """Lines on how long every method took when it ran."""
    table = archive.results().set_index(["method", "prototask", "size"])["seconds"]
    seconds = table.groupby("method").sum()
    three, total = (sum(seconds[name] for name in names) for names in (ORDER[:3], ORDER))
    yield (
        "Times in seconds, all tasks of a method, compilation included; "
        "Neal's, for each of his mlp-bgd methods: about 50 hours on a 194 MHz processor of 1998;"
    )
    yield "his own program takes 12.4 minutes of one core of today for mlp-bgd-2 (744 s)"
    yield from (f"  {name:12}{seconds[name]:8.1f}" for name in ORDER)
    yield (
        f"  mlp-bgd-1, -2 and -3 together {three:.0f} s = {three / 60:.1f} minutes (asked: "
        f"at most 6); all methods {total:.0f} s = {total / 60:.1f} minutes (asked: at most 10)"
    )
    yield "seconds for one training set of 1024 cases, mlp-bgd-2, beside the paper's minutes"
    for (inputs, size), minutes in PAPER.items():
        found = [
            table[name]
            for name in table.index
            if name[0] == "mlp-bgd-2" and name[2] == size and f"-{inputs}n" in name[1]
        ]
        if found:
            yield (
                f"  {inputs} inputs: {min(found) / 4:.2f} s, where the program was compiled already; paper: "
                f"{minutes} minutes"
            )


def losses(found):
    """Lines of a table of standardised losses."""
    yield "Standardised squared loss (standard error)"
    for one in found:
        yield f"{one.prototask:18}" + "".join(f"{label:>18}" for label in one.tasks[0].labels)
        for task in one.tasks:
            relative = zip(task.standardised.estimate, task.standardised.standard_error, strict=True)
            yield f"{task.size:>16}  " + "".join(f"{f'{loss:.3f} ({error:.3f})':>18}" for loss, error in relative)


def bayesian(name, passes):
    """A Bayesian method with another budget than Neal's 60,000 passes; mlp-mc-1 and -3b have more, in proportion."""
    learner = delve.METHODS[name].learner
    budget = learner.base.passes * passes // 60_000
    return delve.Method(name, replace(learner, base=replace(learner.base, passes=budget)))


def run_bayesian(archive, prototasks, passes):
    """The methods that the claims are about, each on the tasks where it is asked for; returns its comparisons, one a
    task.
    """
    kin = [one for one in prototasks if one.name.startswith("kin")]
    longer = [one for one in prototasks if one.name.startswith(("pumadyn-32", "bank-8"))]
    large, every = (512, 1024), None
    plan = (
        ("mlp-bgd-2", prototasks, every),
        ("lin-1", prototasks, every),
        ("mlp-bgd-1", kin, every),
        ("mlp-bgd-3", kin, every),
        ("mlp-ese-1", kin, large),
        *((f"mlp-mc-{number}", prototasks, every) for number in (2, 3, 4)),
        ("mlp-mc-1", kin, large),
        ("mlp-mc-3b", longer, every),
    )
    for name, where, sizes in plan:
        method = bayesian(name, passes) if name.startswith("mlp-mc") else delve.METHODS[name]
        delve.run(archive, where, [method], sizes, progress=False, say=lambda line: print(line, flush=True))
    return [delve.compared(archive, one.name, None, (size,)) for one in prototasks for size in one.sizes]


def losses_in_groups(found):
    """The lines of `losses` of comparisons of one task each, with a heading where data or methods change."""
    last = ""
    for one in found:
        _, heading, line = losses([one])
        yield from [line] if heading == last else [heading, line]
        last = heading


def report_bayesian(passes):
    """The file of results of the Bayesian methods."""
    prototasks = simulated()
    archive = delve.Archive.open(RUNS / f"neal1998_mc_{passes}", create=True)
    found = run_bayesian(archive, prototasks, passes)
    names = (*mc.BAYESIAN, "mlp-mc-3b")
    kept = {name: bayesian(name, passes).learner.base.trajectories[3] for name in names}
    lines = [
        machine(),
        f"seed 0; cases: {prototasks[0].origin}; and so for the other families, and with 32 inputs",
        "",
        f"BUDGET: {passes} passes a run, {passes / 60_000:.0%} of the 60,000 that Neal's methods had by his time; "
        f"mlp-mc-1 has {2 * passes}, mlp-mc-3b {3 * passes}.",
        "mlp-mc-1 and mlp-ese-1 ran on kin with 512 and 1024 cases only, mlp-bgd-1 and -3 on kin only, mlp-mc-3b on "
        "pumadyn-32nm and bank-8nm-like only.",
        "",
        *mc.convergence(archive, found, kept),
        "",
        *mc.claims(archive, found),
        "",
        "Standardised squared loss (standard error)",
        *losses_in_groups(found),
    ]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    (RESULTS / "neal1998_mc.txt").write_text(text)


def quickly():
    """Neal's main finding in a minute: relevance of the inputs in early stopping, where only two of 32 matter."""
    task = delve.simulated("pumadyn", 32, sizes=(128, 256))
    names = ("mlp-bgd-1", "mlp-bgd-2", "lin-1")
    with tempfile.TemporaryDirectory() as folder:
        archive = delve.run(Path(folder) / "archive", [task], [delve.METHODS[name] for name in names], progress=False)
        print("\n".join(losses([delve.compared(archive, task.name, names)])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path, metavar="FOLDER")
    parser.add_argument("--mc", action="store_true")
    parser.add_argument("--passes", type=int, default=60_000)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)  # all compilation counts
    if options.quick:
        quickly()
        return
    if options.mc:
        report_bayesian(options.passes)
        return
    name = "neal1998_real" if options.real else "neal1998"
    prototasks = real(options.real) if options.real else simulated()
    archive = run(delve.Archive.open(RUNS / name, create=True), prototasks)
    found = [delve.compared(archive, one.name, METHODS) for one in prototasks]
    source = (
        "DELVE's data; bank-32nh, with high noise, in place of bank-32nm, and no kin-32nm"
        if options.real
        else f"cases: {prototasks[0].origin}; and so for the other families, and with 32 inputs"
    )
    lines = [machine(), f"seed 0; {source}", ""]
    lines += [] if options.real else [*times(archive), ""]
    lines += [*claims(archive, found), "", *losses(found)]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    (RESULTS / f"{name}.txt").write_text(text)
    if options.real:
        return
    table, pairs = delve.tables(found)
    table[COLUMNS].to_csv(RESULTS / "neal1998_losses.csv", index=False, float_format="%.6g")
    pairs[["prototask", "size", "first", "second", "estimate", "statistic", "p_value", "adjusted"]].to_csv(
        RESULTS / "neal1998_pairs.csv", index=False, float_format="%.6g"
    )
    for one in found:
        panels = delve.task_figure(one.tasks, one.prototask)
        panels.savefig(RESULTS / f"neal1998_{one.prototask}.png", dpi=160)
        plt.close(panels.figure)


if __name__ == "__main__":
    main()
