"""Coverage and width of every interval, size and power of every test, on data whose truth is known.

    python benchmarks/calibration.py             # all of it; the first line of the results says how long it takes
    python benchmarks/calibration.py --quick     # a tenth of the data sets; writes nothing
    python benchmarks/calibration.py --resume    # goes on where a run of the same code was stopped
    python benchmarks/calibration.py --stopped   # more data sets of early-stopped ensembles: calibration_stopped.txt
    python benchmarks/calibration.py --figures   # calibration_levels.png once more, from the page of intervals

prints the tables and writes them, with figures, to benchmarks/results/. Only public names of jaxgen are used.
"""

import argparse
import os
import re
from functools import partial
from pathlib import Path

import calibration_intervals
import calibration_one_model
import calibration_tests
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.stats
from calibration_systems import SETTINGS, SIZES, Setting
from kept_parts import kept_part
from speed import machine

RESULTS = Path(__file__).parent / "results"
MARKERS = "os^vDP*X"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#000000")
"""That people who see few colours tell apart: Okabe & Ito 2008, "Color universal design"."""


def panels(frame, draw, xlabel, ylabel):
    """A panel per learner and size, each drawn by draw(axes, rows of the table, looks), with one legend for all: a
    method and a plan look the same in every panel.
    """
    names = list(dict.fromkeys(zip(frame[frame.columns[2]], frame.plan, strict=True)))
    colours = matplotlib.colormaps["tab20"](np.arange(len(names)) % 20)
    looks = dict(zip(names, zip(colours, (MARKERS * 4)[: len(names)], strict=True), strict=True))
    learners, sizes = frame.learner.unique(), frame.n.unique()
    figure, axes = plt.subplots(
        len(learners),
        len(sizes),
        figsize=(3.2 * len(sizes), 2.7 * len(learners) + 1.5),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for (learner, n), part in frame.groupby(["learner", "n"], sort=False):
        panel = axes[list(learners).index(learner), list(sizes).index(n)]
        draw(panel, part, looks)
        panel.set_title(f"{learner}, n = {n}", fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in axes[-1]:
        panel.set_xlabel(xlabel)
    for panel in axes[:, 0]:
        panel.set_ylabel(ylabel)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    return figure


def styles(rows, looks):
    """Each row of a panel, whose first columns are a method and a plan, with its colour and marker."""
    return ((row, *looks[row[:2]]) for row in rows.itertuples(index=False, name=None))


def coverage(axes, part, looks):
    """Coverage of R against mean width; grey: 95 % and two binomial standard errors."""
    for (name, plan, width, covered), colour, marker in styles(part[["interval", "plan", "width", "covers R"]], looks):
        axes.plot(width, covered, marker, color=colour, label=f"{name}: {plan}")
    reach = 2 * np.sqrt(0.95 * 0.05 / part.sets.iloc[0])
    axes.axhspan(0.95 - reach, 0.95 + reach, color="0.9", zorder=0)
    axes.set(xscale="log", ylim=(0, 1.02))


def read(page):
    """The tables of a page of intervals: a row per learner, size, interval and plan, with its numbers."""
    text, found = page.read_text(), []
    for part in text.split("\n\n"):
        lines = part.splitlines()
        heading = re.match(r"(.+), n = (\d+): (\d+) data sets", lines[0])
        if heading:
            plans = r"(a .*? times|a .*? once|\d+ .*?(?:folds|splits|samples))"
            names = re.findall(
                r"\S+(?: \S+)*?(?=\s{2,}|$)", lines[1].split("plan")[1].strip().removeprefix("trainings")
            )
            for line in lines[2:]:
                method, plan, _, numbers = re.findall(rf"^\s*(.+?)\s+{plans}\s+(\d+)\s+(.*)", line)[0]
                row = dict(zip(names, map(float, numbers.split()), strict=True))
                found.append({"learner": heading[1], "n": int(heading[2]), "sets": int(heading[3])})
                found[-1] |= {"interval": method, "plan": plan} | row
    return pd.DataFrame(found)


def levels(frame):
    """A panel per learner: the largest distance of the distribution of the one-sided levels at R from the uniform one
    against the number of cases, of the intervals that all learners were tried with; grey: where a right interval stays
    in 95 of 100 runs.
    """
    learners, number = list(frame.learner.unique()), frame.groupby(["interval", "plan"]).learner.transform("nunique")
    common = frame[(number == len(learners)) & ~frame.interval.str.contains("within|naive")]
    figure, axes = plt.subplots(
        2, -(-len(learners) // 2), figsize=(11, 7), sharex=True, sharey=True, layout="constrained"
    )
    names = list(dict.fromkeys(zip(common.interval, common.plan, strict=True)))
    for panel, learner in zip(axes.flat, learners, strict=False):
        part = common[common.learner == learner]
        for (name, plan), colour, marker in zip(names, COLOURS, MARKERS, strict=False):
            chosen = part[(part.interval == name) & (part.plan == plan)]
            panel.plot(chosen.n, chosen["levels R"], marker + "-", color=colour, label=f"{name}: {plan}")
        right = scipy.stats.kstwo.ppf(0.95, part.sets.iloc[0])
        panel.axhspan(0, right, color="0.9", zorder=0)
        panel.set(title=f"{learner}, {part.sets.iloc[0]} data sets", xscale="log")
        panel.set_xticks(SIZES, [str(n) for n in SIZES])
        panel.minorticks_off()
        panel.spines[["top", "right"]].set_visible(False)
    for panel in axes[-1]:
        panel.set_xlabel("cases")
    for panel in axes[:, 0]:
        panel.set(ylabel="distance of the levels from uniform", ylim=(0, 1.04 * common["levels R"].max()))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def power(axes, part, looks):
    """Power against size at 5 %; the line is 5 %, grey: two binomial standard errors."""
    for (name, plan, size, found), colour, marker in styles(part[["test", "plan", "size at 5%", "power at 5%"]], looks):
        axes.plot(max(size, 5e-4), found, marker, color=colour, label=f"{name}: {plan}")
    reach = 2 * np.sqrt(0.05 * 0.95 / part.sets.iloc[0])
    axes.axvspan(0.05 - reach, 0.05 + reach, color="0.9", zorder=0)
    axes.set(xscale="log", ylim=(0, 1.02))


def gathered(module, sets, share, resume):
    """The table of a module over all learners and sizes, with as many data sets of each, and its minutes."""
    found, minutes = [], 0.0
    for setting in SETTINGS:
        for n in SIZES:
            count = sets(setting, n) // share
            if not count:
                continue
            name = f"{module.__name__}-{setting.name}-{n}-{count}"
            new, took = kept_part(name, partial(computed, module, setting, n, count), resume)
            print(f"{name}: {took:.1f} minutes", flush=True)
            print(pd.DataFrame(new).drop(columns=["learner", "level", "p"], errors="ignore").to_string(), flush=True)
            found, minutes = found + new, minutes + took
    return pd.DataFrame(found), minutes


def computed(module, setting, n, sets):
    """The rows of a module's table for a learner and a size."""
    return list(module.rows(setting, n, sets))


def effort(frame, minutes, learners=1.0):
    """How many trainings a table took: one a row of a plan and learner; an early-stopped ensemble is one training of
    four networks.
    """
    once = frame.drop_duplicates(["learner", "n", "plan", "trainings"])
    fits = once.trainings * once.sets * learners
    networks = fits * once.learner.map({setting.name: setting.networks for setting in SETTINGS})
    return (
        f"{int(fits.sum()):,} trainings, {int(networks.sum()):,} networks among them, in "
        f"{minutes:.1f} minutes with compilation"
    )


def write(name, lines, figures):
    """Writes a table and its figures under their final names only when they are complete."""
    partial = RESULTS / f".{name}.txt"
    partial.write_text("\n".join(lines) + "\n")
    os.replace(partial, RESULTS / f"{name}.txt")
    for figure_name, figure in figures.items():
        save(figure_name, figure)


def save(name, figure):
    """Writes a figure."""
    figure.savefig(RESULTS / f"{name}.png", dpi=110)
    plt.close(figure)


def main():
    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data sets; writes nothing")
    parser.add_argument("--resume", action="store_true", help="takes the parts that an earlier run of this code made")
    parser.add_argument("--only", choices=("intervals", "tests"), help="one of the two tables")
    parser.add_argument("--stopped", action="store_true", help="early-stopped ensembles alone, on a page of their own")
    parser.add_argument("--figures", action="store_true", help="the figure of levels from the page of intervals")
    chosen = parser.parse_args()
    share = 10 if chosen.quick else 1

    if chosen.figures:
        save("calibration_levels", levels(read(RESULTS / "calibration_intervals.txt")))
        return
    if chosen.stopped:
        of_stopped(share, chosen.resume)
        return
    if chosen.only != "tests":
        of_intervals(share, chosen.resume)
    if chosen.only != "intervals":
        of_tests(share, chosen.resume)


def of_intervals(share, resume):
    """The table and the figures of intervals."""
    sets = calibration_one_model.SETS // share
    one, _ = kept_part(f"calibration_one_model-{sets}", partial(computed_of_one, sets), resume)
    of_one = ["", *calibration_one_model.lines(pd.DataFrame(one))]
    intervals, minutes = gathered(calibration_intervals, Setting.drawn, share, resume)
    tables = [machine(), effort(intervals, minutes), "", *calibration_intervals.lines(intervals), *of_one]
    print("\n".join(tables), flush=True)
    if share == 1:
        figures = {"calibration_coverage": panels(intervals, coverage, "mean width / ER", "coverage of R")}
        write("calibration_intervals", tables, figures)
        save("calibration_levels", levels(read(RESULTS / "calibration_intervals.txt")))


def computed_of_one(sets):
    """The rows of the table of intervals of one trained model."""
    return list(calibration_one_model.rows(sets))


def of_stopped(share, resume):
    """The tables of early-stopped ensembles of few cases, with as many data sets as of other networks for intervals."""
    setting, parts = next(one for one in SETTINGS if one.networks > 1), {}
    for module, sets in ((calibration_intervals, 1000), (calibration_tests, 300)):
        for n in (64, 100):
            name = f"{module.__name__}-stopped-{n}-{sets // share}"
            new, took = kept_part(name, partial(computed, module, setting, n, sets // share), resume)
            print(f"{name}: {took:.1f} minutes", flush=True)
            frame, minutes = parts.get(module, (pd.DataFrame(), 0.0))
            parts[module] = pd.concat([frame, pd.DataFrame(new)]), minutes + took
    (intervals, one), (tests, other) = parts.values()
    tables = [machine(), f"intervals: {effort(intervals, one)}", f"tests: {effort(tests, other, 1.5)}", ""]
    tables += [*calibration_intervals.lines(intervals), "", *calibration_tests.lines(tests)]
    print("\n".join(tables), flush=True)
    if share == 1:
        write("calibration_stopped", tables, {})


def of_tests(share, resume):
    """The table and the figure of tests."""
    many, minutes_of_many = [], 0.0
    for setting in SETTINGS:
        for n in SIZES if setting.tested else ():
            families = 2000 // share
            name = f"calibration_tests-many-{setting.name}-{n}-{families}"
            rows, took = kept_part(name, partial(computed_of_many, setting, n, families), resume)
            print(f"{name}: {took:.1f} minutes", flush=True)
            many, minutes_of_many = many + rows, minutes_of_many + took
    tests, minutes = gathered(calibration_tests, lambda setting, n: setting.tested, share, resume)
    work = f"{effort(tests, minutes, 1.5)}; tests of many learners took {minutes_of_many:.1f} minutes more"
    tables = [machine(), work, ""]
    tables += calibration_tests.lines(tests, pd.DataFrame(many))
    print("\n".join(tables), flush=True)
    if share == 1:
        write("calibration_tests", tables, {"calibration_tests": panels(tests, power, "size at 5%", "power at 5%")})


def computed_of_many(setting, n, families):
    """The rows of the table of tests of many learners, for a learner and a size."""
    return list(calibration_tests.of_many(setting, n, families))


if __name__ == "__main__":
    main()
