"""Coverage and width of every interval, for linear models and networks, on data whose truth is known.

    python benchmarks/calibration.py             # all of it, tens of minutes on 2 cores
    python benchmarks/calibration.py --quick     # a tenth of the data sets

prints the tables and writes them, with figures, to benchmarks/results/. Only public names of jaxgen are used.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.stats
from speed import machine

import jaxgen as jg
from jaxgen import learn, loss, resample
from jaxgen.stats import estimate, interval

RESULTS = Path(__file__).parent / "results"
INPUTS, FRESH, LEVEL, BLOCK = 10, 4000, 0.95, 100


@dataclass(frozen=True)
class Setting:
    """A learner, the data it is tried on, and how many data sets of each size."""

    name: str
    learner: Any
    truth: Callable[[np.ndarray], np.ndarray]
    noise: float
    sets: int


def linear_truth(x):
    """A linear function of all inputs."""
    return x @ np.linspace(0.2, 1, x.shape[-1])


def curved_truth(x):
    """A function that 20 tanh units can learn: two inputs matter, in a curve and in a product, and one a little."""
    return np.sin(2 * x[..., 0]) + 0.8 * x[..., 1] * x[..., 0] + 0.3 * x[..., 2]


NETWORK = learn.Descent(learn.MLP((20,), init="glorot"), steps=300, optimiser=learn.Optax("adam", learning_rate=0.02))
SETTINGS = (
    Setting("least squares", learn.LeastSquares(), linear_truth, 1.0, 1000),
    Setting("ridge", learn.LeastSquares(ridge=30.0), linear_truth, 1.0, 1000),
    Setting("network", learn.Normalised(NETWORK, how="standard"), curved_truth, 0.5, 300),
    Setting("stopped early", learn.Normalised(learn.EarlyStopped(NETWORK, folds=4), how="standard"), curved_truth, 0.5, 300),
)
SIZES = (64, 100, 300, 500)


def designs(n, cheap):
    """Plans and the intervals that each serves: name of the plan, the plan, and functions of (losses, full fit, no-information rate)."""
    key, samples = jax.random.key(n), 500 if cheap else 200
    return (
        ("one third left out, once", resample.leave_out(key, n, 1 / 3, 1), {"hold-out": lambda a, full, gamma: interval.hold_out(a)}),
        ("a tenth left out, 25 times", resample.leave_out(key, n, 0.1, 25), {"naive t": lambda a, full, gamma: interval.naive_t(a), "corrected t": lambda a, full, gamma: interval.corrected_t(a)}),
        ("a third left out, 25 times", resample.leave_out(key, n, 1 / 3, 25), {"corrected t": lambda a, full, gamma: interval.corrected_t(a)}),
        ("5 folds", resample.k_fold(key, n, 5), {"CV-CLT": lambda a, full, gamma: interval.cross_validation(a)}),
        (
            "10 folds",
            resample.k_fold(key, n, 10),
            {"CV-CLT": lambda a, full, gamma: interval.cross_validation(a), "CV-CLT, within folds": lambda a, full, gamma: interval.cross_validation(a, "within")},
        ),
        ("10 x 10 folds", resample.k_fold(key, n, 10, 10), {"Bouckaert-Frank": lambda a, full, gamma: interval.bouckaert_frank(a)}),
        ("5 x 2 folds", resample.five_by_two(key, n), {"5 x 2": lambda a, full, gamma: interval.five_by_two(a)}),
        ("3 x nested 5 folds", resample.nested_pairs(key, n, 5, 3), {"nested CV": lambda a, full, gamma: interval.nested_cross_validation(a)}),
        ("10 pairs of halves, 5 splits", resample.paired_halves(key, n, 10, 5), {"conservative Z": lambda a, full, gamma: interval.conservative_z(a)}),
        (
            f"{samples} bootstrap samples",
            resample.bootstrap(key, n, samples),
            {
                "out-of-bag, published": lambda a, full, gamma: estimate.out_of_bag(a, standard_error="raw"),
                "out-of-bag, corrected": lambda a, full, gamma: estimate.out_of_bag(a),
                ".632+, published": lambda a, full, gamma: estimate.error_632_plus(a, full, gamma, standard_error="raw"),
                ".632+, corrected": lambda a, full, gamma: estimate.error_632_plus(a, full, gamma),
            },
        ),
    )


def prediction(y, predicted):
    """The prediction itself, where `assess` expects a loss."""
    return predicted[..., 0]


def problem(setting, n, sets, seed):
    """Data sets of n cases, [Q, n, D], and the risk R of the learner trained on each, [Q], by noise-free fresh cases."""
    random = np.random.default_rng(seed)
    x, fresh = random.normal(size=(sets, n, INPUTS)), random.normal(size=(FRESH, INPUTS))
    y = setting.truth(x) + setting.noise * random.normal(size=(sets, n))
    names = tuple(f"x{i}" for i in range(INPUTS))
    both = np.concatenate([x, np.broadcast_to(fresh, (sets, *fresh.shape))], axis=1)
    target = np.concatenate([y, np.broadcast_to(setting.truth(fresh), (sets, FRESH))], axis=1)[..., None]
    first = (np.arange(n + FRESH) < n)[None].astype(np.uint8)
    risk = jg.assess(jax.random.key(seed), setting.learner, jg.Data(both, target, names), resample.from_weights(first, 1 - first), keep="rows").g[:, 0]
    return jg.Data(x, y[..., None], names), risk + setting.noise**2


def estimates(setting, n, sets):
    """Estimate, standard error, degrees of freedom and limits of every interval, each [Q]; the risks [Q]; trainings of each plan."""
    parts: dict[tuple[str, str], list[np.ndarray]] = {}
    risks, trainings = [], {}
    for start in range(0, sets, BLOCK):
        seed, size = 1000 * n + start, min(BLOCK, sets - start)
        data, risk = problem(setting, n, size, seed)
        risks.append(risk)
        full = jg.assess(jax.random.key(seed), setting.learner, data, resample.full(n))
        predicted = np.asarray(jg.assess(jax.random.key(seed), setting.learner, data, resample.full(n), prediction).values, np.float64)
        gamma = estimate.no_information_rate(data.y, predicted[:, 0, :, None], loss.squared)
        for plan_name, plan, methods in designs(n, isinstance(setting.learner, learn.LeastSquares)):
            losses = jg.assess(jax.random.key(seed + 1), setting.learner, data, plan)
            trainings[plan_name] = plan.resamples
            for name, method in methods.items():
                got = method(losses, full, gamma)
                numbers = np.stack(np.broadcast_arrays(got.estimate, got.standard_error, got.df, got.lower, got.upper))
                parts.setdefault((name, plan_name), []).append(numbers)
    return {key: np.concatenate(value, axis=-1) for key, value in parts.items()}, np.concatenate(risks), trainings


def rows(setting, n, sets):
    """One row of the table per interval."""
    found, risk, trainings = estimates(setting, n, sets)
    expected = risk.mean()
    for (method, plan_name), (centre, error, df, lower, upper) in found.items():
        t = scipy.stats.t(np.where(np.isnan(df), np.inf, df))
        row = {"learner": setting.name, "n": n, "interval": method, "plan": plan_name, "trainings": trainings[plan_name], "sets": sets, "missing": np.mean(np.isnan(lower))}
        for target, truth in (("R", risk), ("ER", np.full(sets, expected))):
            level = t.cdf((truth - centre) / error)
            row |= {f"covers {target}": np.mean((lower <= truth) & (truth <= upper)), f"below {target}": np.mean(upper < truth), f"above {target}": np.mean(lower > truth)}
            row[f"levels {target}"] = scipy.stats.kstest(level[np.isfinite(level)], "uniform").statistic
        yield row | {"width": np.nanmean(upper - lower) / expected, "centre": np.mean(centre) / expected, "ER": expected}


def table(frame):
    """The lines of one table."""
    columns = ["interval", "plan", "trainings", "covers R", "covers ER", "below R", "above R", "levels R", "width", "centre", "missing"]
    lines = []
    for (learner, n), part in frame.groupby(["learner", "n"], sort=False):
        sets = int(part.sets.iloc[0])
        error = np.sqrt(LEVEL * (1 - LEVEL) / sets)
        lines += ["", f"{learner}, n = {n}: {sets} data sets, ER = {part.ER.iloc[0]:.3f}; a coverage of {LEVEL:.0%} has binomial standard error {error:.3f}"]
        lines += part[columns].to_string(index=False, float_format=lambda v: f"{v:.3f}").splitlines()
    return lines


def figure(frame):
    """Coverage of R against relative width, a panel per learner and size."""
    learners, sizes = frame.learner.unique(), frame.n.unique()
    drawn, axes = plt.subplots(len(learners), len(sizes), figsize=(3.2 * len(sizes), 2.8 * len(learners)), sharey=True, squeeze=False, layout="constrained")
    methods = list(dict.fromkeys(zip(frame.interval, frame.plan.str.replace(r"^\d+ boot", "boot", regex=True), strict=True)))
    colours = matplotlib.colormaps["tab20"](np.linspace(0, 1, len(methods)))
    for (learner, n), part in frame.groupby(["learner", "n"], sort=False):
        panel = axes[list(learners).index(learner), list(sizes).index(n)]
        for method, plan, coverage, width in zip(part.interval, part.plan.str.replace(r"^\d+ boot", "boot", regex=True), part["covers R"], part.width, strict=True):
            which = methods.index((method, plan))
            panel.plot(width, coverage, "os^vD"[which % 5], color=colours[which], label=f"{method}: {plan}")
        limit = 2 * np.sqrt(LEVEL * (1 - LEVEL) / part.sets.iloc[0])
        panel.axhspan(LEVEL - limit, LEVEL + limit, color="0.9", zorder=0)
        panel.set(title=f"{learner}, n = {n}", xscale="log", ylim=(0.2, 1.02))
        panel.spines[["top", "right"]].set_visible(False)
    drawn.supxlabel("mean width / ER")
    drawn.supylabel("coverage of R")
    drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return drawn


def main():
    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data sets; writes nothing")
    quick = parser.parse_args().quick
    start, found = time.perf_counter(), []
    for setting in SETTINGS:
        for n in SIZES:
            found += rows(setting, n, setting.sets // 10 if quick else setting.sets)
            print(f"{setting.name}, n = {n}: {time.perf_counter() - start:.0f} s", flush=True)
    frame = pd.DataFrame(found)
    fits = int((frame.drop_duplicates(["learner", "n", "plan"]).eval("trainings * sets")).sum())
    lines = [machine(), "", f"Intervals at {LEVEL:.0%}: {fits:,} trainings (an ensemble counts once) in {(time.perf_counter() - start) / 60:.1f} minutes"]
    lines += ["covers: share of data sets whose interval holds R (the risk of the model trained on all n cases) or ER (its mean); below, above: the whole interval is",
              "levels: largest distance of the distribution of one-sided levels at the truth from the uniform one; width, centre: over ER; missing: no standard error"]  # fmt: skip
    text = "\n".join(lines + table(frame)) + "\n"
    print(text, end="")
    if not quick:
        (RESULTS / "calibration_intervals.txt").write_text(text)
        figure(frame).savefig(RESULTS / "calibration_intervals.png", dpi=120)


if __name__ == "__main__":
    main()
