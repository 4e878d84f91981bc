"""Coverage and width of every interval, size and power of every test, on data whose truth is known.

    python benchmarks/calibration.py             # all of it; the first line of the results says how long it takes
    python benchmarks/calibration.py --quick     # a tenth of the data sets; writes nothing

prints the tables and writes them, with figures, to benchmarks/results/. Only public names of jaxgen are used.
"""

import argparse
import os
import time
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


def gathered(module, sets, share, start):
    """The table of a module over all learners and sizes, with as many data sets of each, and its minutes."""
    begun, found = time.perf_counter(), []
    for setting in SETTINGS:
        for n in SIZES:
            if not sets(setting, n):
                continue
            new = list(module.rows(setting, n, sets(setting, n) // share))
            print(f"{module.__name__}, {setting.name}, n = {n}: {time.perf_counter() - start:.0f} s", flush=True)
            print(pd.DataFrame(new).drop(columns=["learner", "level", "p"], errors="ignore").to_string(), flush=True)
            found += new
    return pd.DataFrame(found), (time.perf_counter() - begun) / 60


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
    parser.add_argument("--only", choices=("intervals", "tests"), help="one of the two tables")
    chosen = parser.parse_args()
    share = 10 if chosen.quick else 1
    start = time.perf_counter()

    if chosen.only != "tests":
        of_intervals(share, start)
    if chosen.only != "intervals":
        of_tests(share, start)


def of_intervals(share, start):
    """The table and the figures of intervals."""
    one = pd.DataFrame(calibration_one_model.rows(calibration_one_model.SETS // share))
    of_one = ["", *calibration_one_model.lines(one)]
    intervals, minutes = gathered(calibration_intervals, Setting.drawn, share, start)
    tables = [machine(), effort(intervals, minutes), "", *calibration_intervals.lines(intervals), *of_one]
    print("\n".join(tables), flush=True)
    if share == 1:
        figures = {"calibration_coverage": panels(intervals, coverage, "mean width / ER", "coverage of R")}
        figures["calibration_levels"] = panels(intervals, levels, "one-sided level", "share at or below it, minus it")
        write("calibration_intervals", tables, figures)


def of_tests(share, start):
    """The table and the figure of tests."""
    tests, minutes = gathered(calibration_tests, lambda setting, n: setting.tested, share, start)
    tried = [(setting, n) for setting in SETTINGS if setting.tested for n in SIZES]
    many = pd.DataFrame([row for one in tried for row in calibration_tests.of_many(*one, 2000 // share)])
    tables = [machine(), effort(tests, minutes, 1.5), "", *calibration_tests.lines(tests, many)]
    print("\n".join(tables), flush=True)
    if share == 1:
        write("calibration_tests", tables, {"calibration_tests": panels(tests, power, "size at 5%", "power at 5%")})


if __name__ == "__main__":
    main()
