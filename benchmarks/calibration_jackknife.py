"""Coverage and width of the jackknife after leave-out, size and power of its test, beside others on the same data sets.

    python benchmarks/calibration_jackknife.py             # over an hour on two cores
    python benchmarks/calibration_jackknife.py --quick     # twenty data sets of 64 cases, linear models; writes nothing
    python benchmarks/calibration_jackknife.py --resume    # goes on where a run of the same code was stopped
    python benchmarks/calibration_jackknife.py --gather    # the page of what earlier runs of the same code have made

prints the tables and writes them, with a figure, to benchmarks/results/. The systems are those of `calibration.py`,
with other data sets. Only public names of jaxgen are used.
"""

import argparse
from dataclasses import replace
from functools import partial

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from calibration_systems import SETTINGS, assessed, blocks, exchangeable, with_risks
from kept_parts import FOLDER, kept_part
from quiet import publish
from speed import machine

from jaxgen import resample
from jaxgen.plot import COLOURS
from jaxgen.stats import compare, interval

SPLITS, FRACTION = 1000, 0.1
TESTED = {64: (1000, 1000), 100: (1000, 1000), 300: (500, 500), 500: (500, 500)}
SETS = {
    "least squares": TESTED,
    "ridge": TESTED,
    "heavy tails": {n: (sets, 0) for n, (sets, _) in TESTED.items()},
    "diabetes": {n: (sets, 0) for n, (sets, _) in TESTED.items()},
    "network": {64: (300, 500), 100: (300, 500), 300: (200, 300), 500: (150, 200)},
    "stopped early": {64: (100, 200), 100: (100, 200), 300: (50, 100), 500: (30, 0)},
}
"""Data sets of each learner and size, for intervals and for tests; tests of networks have half as many splits."""
GATES = {"covers R": 0.94, "covers ER": 0.94, "size": 0.065}


def plans(n):
    """The plans that all intervals need: random splits, folds and pairs of folds."""
    key = jax.random.key(n)
    return (
        resample.leave_out(key, n, FRACTION, SPLITS),
        resample.k_fold(key, n, 10, 10),
        resample.nested_pairs(key, n, 5, 3),
    )


def first(losses, rows):
    """The losses of the first rows, which are random splits as well."""
    chosen = {name: getattr(losses, name)[:, :rows] for name in ("test_mean", "train_mean", "failure", "values")}
    return replace(losses, plan=losses.plan.chosen(slice(rows), f"{rows} of {losses.plan.scheme}"), info={}, **chosen)


def intervals(splits, folds, nested):
    """Every interval, by name and plan, with its trainings."""
    jackknife = interval.jackknife_after_leave_out
    tenth = f"a tenth left out, {SPLITS} times"
    return {
        ("corrected t", "a tenth left out, 25 times", 25): interval.corrected_t(first(splits, 25)),
        ("Bouckaert-Frank", "10 x 10 folds", 100): interval.bouckaert_frank(folds),
        ("nested CV", "3 x nested 5 folds", 45): interval.nested_cross_validation(nested),
        ("jackknife, R", "10 x 10 folds", 100): jackknife(folds),
        ("jackknife, R", f"a tenth left out, {SPLITS // 2} times", SPLITS // 2): jackknife(first(splits, SPLITS // 2)),
        ("jackknife, R", tenth, SPLITS): jackknife(splits),
        ("jackknife, R, T -+ t se", tenth, SPLITS): jackknife(splits, scale="identity"),
        ("jackknife, ER", tenth, SPLITS): jackknife(splits, target="ER"),
    }


def rows_of_intervals(setting, n, sets):
    """A row of the table per interval."""
    found, risks = {}, []
    for seed, size in blocks(setting, n + 1, sets, 50):
        data, risk_of = with_risks(setting, n, size, seed)
        risks.append(risk_of(resample.full(n)))
        losses = assessed(jax.random.key(seed), setting.learner, data, plans(n))
        for name, got in intervals(*losses).items():
            numbers = (got.estimate, got.standard_error, got.lower, got.upper, got.parts.get("noise", got.df * np.nan))
            found.setdefault(name, []).append(np.stack(numbers))
    risk = np.concatenate(risks).reshape(-1)
    for (name, plan, trainings), parts in found.items():
        centre, error, lower, upper, noise = np.concatenate(parts, axis=-1)
        expected = risk.mean()
        yield {
            "learner": setting.name,
            "n": n,
            "interval": name,
            "plan": plan,
            "trainings": trainings,
            "sets": sets,
            "covers R": np.mean((lower <= risk) & (risk <= upper)),
            "below R": np.mean(upper < risk),
            "covers ER": np.mean((lower <= expected) & (expected <= upper)),
            "width": np.mean(upper - lower) / expected,
            "middle width": np.median(upper - lower) / expected,
            "centre": centre.mean() / expected,
            "se^2 / var(T)": np.mean(error**2) / centre.var(ddof=1),
            "se^2 / var(T - R)": np.mean(error**2) / (centre - risk).var(ddof=1),
            "noise": np.median(noise),
        }


def rows_of_tests(setting, n, sets):
    """A row of the table per test."""
    found, splits = {}, SPLITS // 2 if setting.networks else SPLITS
    plan = plans(n)[0].chosen(slice(splits), f"{splits} splits of a tenth")
    methods = {25: "corrected t", 100: "corrected t", SPLITS // 2: "jackknife", splits: "jackknife"}
    for seed, size in blocks(setting, n + 2, sets, 50):
        data = exchangeable(setting, n, size, seed)
        one, equal, worse = (next(assessed(jax.random.key(seed), setting.learner, each, [plan])) for each in data)
        for rows, name in methods.items():
            test = compare.corrected_t if name == "corrected t" else compare.jackknife_after_leave_out
            null, other = (test(first(one, rows), first(each, rows)) for each in (equal, worse))
            unstable = null.parts.get("instability", np.full(size, np.nan))
            numbers = (null.p_value, null.estimate, null.standard_error, other.p_value, unstable)
            found.setdefault((name, rows), []).append(np.stack(numbers))
    for (name, rows), parts in found.items():
        p, difference, error, power, unstable = np.concatenate(parts, axis=-1)
        yield {"learner": setting.name, "n": n, "test": name, "splits": rows, "trainings": 2 * rows, "sets": sets} | {
            "size at 1%": np.mean(p <= 0.01),
            "size": np.mean(p <= 0.05),
            "size at 10%": np.mean(p <= 0.1),
            "power": np.mean(power <= 0.05),
            "se^2 / var": np.mean(error**2) / difference.var(ddof=1),
            "instability": np.median(unstable),
        }


def work(quick):
    """What is computed, the quickest first: (kind, setting, cases, data sets)."""
    parts = []
    for setting in SETTINGS:
        for n, sets in SETS[setting.name].items():
            parts += [(kind, setting, n, many) for kind, many in zip(("intervals", "tests"), sets, strict=True) if many]
    # Few cases and few networks first, so that a run that is stopped has every learner.
    parts = sorted(parts, key=lambda part: (part[2] > 100) * (1 + part[1].networks))
    linear = ("least squares", "ridge")
    return [(kind, each, n, 20) for kind, each, n, _ in parts if n == 64 and each.name in linear] if quick else parts


def computed(kind, setting, n, sets):
    """The rows of a part."""
    return list((rows_of_intervals if kind == "intervals" else rows_of_tests)(setting, n, sets))


def text(frame):
    """A table without a column for the row numbers."""
    return frame.to_string(index=False, float_format="{:.3f}".format)


def lines(found, tests, minutes):
    """The page."""
    each = ["learner", "n"]
    per_set = sum(plan.resamples for plan in plans(64))
    sets = found.groupby(each).sets.first().sum()
    tested = tests.groupby(each)[["sets", "splits"]].max().prod(axis=1).sum()
    trained = (per_set * sets + 3 * tested) / 1e6
    page = [
        machine(),
        f"Some {trained:.1f} million trainings in {minutes:.1f} minutes with compilation, beside other work",
        "",
        "Intervals at 95%, squared loss; R: the risk of the model trained on all n cases; ER: its mean over data sets.",
        "All see the same data sets. below R: the interval lies below it; width: mean, over ER; se^2 / var: mean",
        "of the squared standard error over the true variance of the centre T, and of T - R; noise: median share of",
        "the jackknife's variance that was Monte Carlo noise, which was taken away.",
    ]
    by = ["interval", "plan", "trainings"]
    of_all = found.groupby(by, sort=False).agg(ER=("covers ER", "min"), width=("width", "mean"))
    for target in ("R", "ER"):
        lowest = found.pivot_table(index=by, columns="learner", values=f"covers {target}", aggfunc="min", sort=False)
        page += [
            "",
            f"Lowest coverage of {target} over all sizes, of ER of all learners, and mean width over all settings",
        ]
        page += [text(lowest.rename_axis(columns=None).join(of_all).reset_index())]
    page += ["", f"Coverage of at least {GATES['covers R']} was wanted in every setting"]
    page += judged(found)
    by = ["test", "splits"]
    largest = tests.pivot_table(index=by, columns="learner", values="size", aggfunc="max", sort=False)
    power = tests.groupby(by, sort=False)["power"].mean().rename("power")
    page += [
        "",
        "Tests at 5%. Size: two equally good learners are told apart; power: the second lacks an input. Largest size",
    ]
    page += ["over all sizes n, mean power", text(largest.rename_axis(columns=None).join(power).reset_index())]
    for what, table in (("", found), ("Tests, ", tests)):
        for (learner, n), part in table.groupby(each, sort=False):
            sets = part.sets.iloc[0]
            error = np.sqrt(0.95 * 0.05 / sets)
            page += [
                "",
                f"{what}{learner}, n = {n}: {sets} data sets; 95% or 5% of them has standard error {error:.3f}",
            ]
            page += [text(part.drop(columns=["learner", "n", "sets"]))]
    return page


def judged(found):
    """A line for each interval: in how many settings it covers too little, and in how many by two standard errors."""
    for (name, plan, _), part in found.groupby(["interval", "plan", "trainings"], sort=False):
        error = np.sqrt(GATES["covers R"] * (1 - GATES["covers R"]) / part.sets)
        words = []
        for target in ("R", "ER"):
            short = GATES[f"covers {target}"] - part[f"covers {target}"]
            words.append(
                f"{target} below in {(short > 0).sum()} of {len(part)} settings, clearly in {(short > 2 * error).sum()}"
            )
        yield f"{name}, {plan}: {', '.join(words)}; width {part.width.mean():.3f}"


def figure(found, tests):
    """Coverage of R and of ER against width, and power against size: a point per setting, a colour per method."""
    drawing, axes = plt.subplots(1, 3, figsize=(15, 5.2), layout="constrained")
    shown = (
        ("corrected t", 25, "corrected t, 25 splits"),
        ("Bouckaert-Frank", 100, "corrected t, 10 x 10 folds"),
        ("nested CV", 45, "nested CV, 45 trainings"),
        ("jackknife, R", 100, "jackknife, 10 x 10 folds"),
        ("jackknife, R", SPLITS, f"jackknife, {SPLITS} splits"),
    )
    markers = dict(zip(found.learner.unique(), "osDP^v", strict=False))
    for panel, target in zip(axes, ("R", "ER"), strict=False):
        for number, (name, trainings, label) in enumerate(shown):
            points = found[(found.interval == name) & (found.trainings == trainings)]
            scattered(panel, points, "width", f"covers {target}", COLOURS[number], label, markers)
        panel.axhline(0.95, color="0.6", linewidth=1, zorder=0)
        panel.axhline(GATES["covers R"], color="0.6", linewidth=1, linestyle=":", zorder=0)
        panel.set(xscale="log", xlabel="mean width / ER", ylabel=f"coverage of {target}", ylim=(0.8, 1.003))
        panel.set_xticks([0.3, 0.5, 1, 2], ["0.3", "0.5", "1", "2"])
        panel.minorticks_off()
    for name, splits, colour in (
        ("corrected t", 100, COLOURS[0]),
        ("jackknife", SPLITS // 2, COLOURS[5]),
        ("jackknife", SPLITS, COLOURS[4]),
    ):
        points = tests[(tests.test == name) & (tests.splits == splits)]
        scattered(axes[2], points, "size", "power", colour, f"{name}, {splits} splits", markers)
    axes[2].axvline(0.05, color="0.6", linewidth=1, zorder=0)
    axes[2].axvline(GATES["size"], color="0.6", linewidth=1, linestyle=":", zorder=0)
    axes[2].set(xlabel="size at 5%", ylabel="power", xlim=(0, None), ylim=(0, 1.02))
    for learner, marker in markers.items():
        axes[1].plot([], [], marker, color="0.4", label=learner, linestyle="none")
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    axes[1].legend(frameon=False, fontsize=8, loc="lower left")
    axes[2].legend(frameon=False, fontsize=8, loc="lower right")
    return drawing


def scattered(panel, points, x, y, colour, label, markers):
    """The points of one method, a marker per learner."""
    for learner, of_one in points.groupby("learner"):
        panel.plot(of_one[x], of_one[y], markers[learner], color=colour, alpha=0.8, markersize=6)
    panel.plot([], [], "-", color=colour, label=label, linewidth=3)


def main():
    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="twenty data sets of 64 cases, linear models; writes nothing"
    )
    parser.add_argument("--resume", action="store_true", help="takes the parts that an earlier run of this code made")
    parser.add_argument("--gather", action="store_true", help="the page of the parts that there are, and no more")
    chosen = parser.parse_args()
    kinds, minutes, missing = {"intervals": [], "tests": []}, 0.0, []
    for kind, setting, n, sets in work(chosen.quick):
        name = f"calibration_jackknife-{kind}-{setting.name}-{n}-{sets}"
        if chosen.gather and not (FOLDER / f"{name}.pickle").exists():
            missing.append(f"{kind} of {setting.name} with {n} cases")
            continue
        rows, took = kept_part(name, partial(computed, kind, setting, n, sets), chosen.resume or chosen.gather)
        print(f"{name}: {took:.1f} minutes\n{text(pd.DataFrame(rows).drop(columns=['learner', 'n']))}", flush=True)
        kinds[kind], minutes = kinds[kind] + rows, minutes + took
    found, tests = (pd.DataFrame(kinds[kind]) for kind in ("intervals", "tests"))
    page = "\n".join([*lines(found, tests, minutes), *(["", f"Not computed: {', '.join(missing)}"] * bool(missing))])
    print(page)
    if not chosen.quick:
        publish("calibration_jackknife.txt", page, {"coverage": figure(found, tests)})


if __name__ == "__main__":
    main()
