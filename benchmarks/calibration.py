"""Coverage and width of every interval, size and power of every test, on data whose truth is known.

    python benchmarks/calibration.py             # all of it; the first line of the results says how long it takes
    python benchmarks/calibration.py --quick     # a tenth of the data sets; writes nothing
    python benchmarks/calibration.py --resume    # goes on where a run of the same code was stopped

prints the tables and writes them, with figures, to benchmarks/results/. Only public names of jaxgen are used.
"""

import argparse
import os
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


def levels(axes, part, looks):
    """Distribution of the one-sided levels at R minus the uniform one; grey: where a right interval stays in 95 of 100
    runs.
    """
    chosen = part[
        ~part.interval.isin(["hold-out", "CV-CLT, within folds", "5 x 2", "L_beta"])
        & ~part.interval.str.contains("published")
        & (part.plan != "5 folds")
    ]
    grid = np.linspace(0, 1, 201)
    for (name, plan, level), colour, _ in styles(chosen[["interval", "plan", "level"]], looks):
        at = np.searchsorted(np.sort(level[np.isfinite(level)]), grid, side="right") / np.isfinite(level).sum()
        axes.plot(grid, at - grid, color=colour, linewidth=1.2, label=f"{name}: {plan}")
    reach = scipy.stats.kstwo.ppf(0.95, part.sets.iloc[0])
    axes.axhspan(-reach, reach, color="0.9", zorder=0)
    axes.set(xlim=(0, 1))


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
        figure.savefig(RESULTS / f"{figure_name}.png", dpi=110)
        plt.close(figure)


def main():
    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data sets; writes nothing")
    parser.add_argument("--resume", action="store_true", help="takes the parts that an earlier run of this code made")
    parser.add_argument("--only", choices=("intervals", "tests"), help="one of the two tables")
    chosen = parser.parse_args()
    share = 10 if chosen.quick else 1

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
        figures["calibration_levels"] = panels(intervals, levels, "one-sided level", "share at or below it, minus it")
        write("calibration_intervals", tables, figures)


def computed_of_one(sets):
    """The rows of the table of intervals of one trained model."""
    return list(calibration_one_model.rows(sets))


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
