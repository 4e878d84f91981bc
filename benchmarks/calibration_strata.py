"""Coverage of intervals on stratified splits, for losses that differ much between classes.

    python benchmarks/calibration_strata.py

draws data sets of two classes and two inputs, of which one tells the classes apart (its means differ by one standard
deviation), and asks how often the 95 % interval of the log loss holds ER, for training sets of its size: on random
splits, on stratified splits, and on stratified splits with the variance S^2 of the rows alone. ER is the mean of the
estimates of all data sets, which are unbiased for it.

A second table has every other method that can be stratified, of the logistic regression and of its difference from the
class frequencies, for log loss and 0-1 loss: how often the interval holds R, the risk of the model trained on all n
cases, and ER, its mean over the data sets. Writes benchmarks/results/calibration_strata.txt.
"""

import argparse
import itertools
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import jax
import numpy as np
from calibration_classes import LOGISTIC, assessed, drawn, error_rate, keys, log_loss
from quiet import publish

import jaxgen as jg
from jaxgen import datasets, learn, resample
from jaxgen.stats import compare, interval

SEED, FRACTION, RESAMPLES = 23, 0.1, 50
LEARNERS = {"logistic": LOGISTIC, "class frequencies": learn.Mean()}
WAYS = ("random", "stratified", "stratified, S^2 alone")
LOSSES = {"log loss": log_loss, "0-1 loss": error_rate}
ALL_WAYS = ("random", "stratified", "stratified, rows alone")
"""Of the second table."""

ADDED = ("nested CV", "conservative Z", "5 x 2")
"""The methods to whose standard error something is added."""

BLOCK = 25
"""Data sets of the second table that are trained at a time."""


def designs(key, n, strata):
    """Plans, and the intervals and tests that each serves, by their names."""
    given = jax.random.split(key, 5)
    return {
        "450 splits": (
            resample.leave_out(given[0], n, FRACTION, 450, strata=strata),
            {"jackknife": (partial(_targeted, interval.jackknife_after_leave_out), compare.jackknife_after_leave_out)},
        ),
        "10 folds": (
            resample.k_fold(given[1], n, 10, strata=strata),
            {"CV-CLT": (_untargeted(interval.cross_validation), compare.cv_clt)},
        ),
        "3 x nested 5 folds": (
            resample.nested_pairs(given[2], n, 5, 3, strata=strata),
            {"nested CV": (_untargeted(interval.nested_cross_validation), compare.nested_cross_validation)},
        ),
        "10 pairs of halves, 5 splits": (
            resample.paired_halves(given[3], n, 10, 5, strata=strata),
            {"conservative Z": (_untargeted(interval.conservative_z), compare.conservative_z)},
        ),
        "5 x 2 folds": (
            resample.five_by_two(given[4], n, strata=strata),
            {"5 x 2": (_untargeted(interval.five_by_two), compare.five_by_two_t)},
        ),
    }


def _targeted(method, losses, target):
    return method(losses, target=target)


def _untargeted(method):
    return lambda losses, target: method(losses)


def data_set(random, n, share):
    """A data set with at least six cases of each class."""
    while True:
        label = (random.random(n) < share).astype(int)
        if 6 <= label.sum() <= n - 6:
            x = random.normal(size=(n, 2)) + label[:, None] * [1.0, 0.0]
            return datasets.from_arrays(x, np.array(["a", "b"])[label], task="classification"), label


def intervals(sets, n, share):
    """Estimate, standard error and limits of every learner, way and data set, and of their difference."""
    random = np.random.default_rng([SEED, n, int(100 * share)])
    found = {(name, way): [] for name in [*LEARNERS, "difference"] for way in WAYS}
    for number in range(sets):
        data, label = data_set(random, n, share)
        keys = jax.random.split(jax.random.fold_in(jax.random.key(SEED), number), 3)
        for way, plan in (
            ("random", resample.leave_out(keys[0], n, FRACTION, RESAMPLES)),
            ("stratified", resample.leave_out(keys[1], n, FRACTION, RESAMPLES, strata=label)),
        ):
            losses = jg.assess(keys[2], LEARNERS, data, plan, "cross_entropy", progress=False)
            alone = {name: replace(each, plan=replace(plan, cases={})) for name, each in losses.items()}
            for named, of in ((way, losses), (f"{way}, S^2 alone", alone)):
                if named in WAYS:
                    results = {name: interval.corrected_t(each) for name, each in of.items()}
                    results["difference"] = compare.corrected_t(*of.values())
                    for name, result in results.items():
                        numbers = (result.lower, result.upper, result.standard_error)
                        found[name, named].append([float(number) for number in (result.estimate, *numbers)])
    return {pair: np.array(rows) for pair, rows in found.items()}


def of_methods(sets, n, share):
    """Limits for R and ER, estimate and standard error of every loss, method and way, [sets, 6], and R, [sets]: of the
    logistic regression, and of its difference from the class frequencies. NaN where a row trains on one class only.
    """
    random, shift = np.random.default_rng([SEED, n, int(100 * share), 1]), np.array([1.0, 0.0])
    found, risks = {}, {}
    for start in range(0, sets, BLOCK):
        x, label = drawn(random, n, share, min(BLOCK, sets - start))
        several = [keys(SEED + n, 1000 * start + q) for q in range(len(x))]
        both = [
            {"random": designs(key[0], n, None), "stratified": designs(key[1], n, one)}
            for key, one in zip(several, label, strict=True)
        ]
        plans = [
            [resample.full(n), *(plan for of_way in ways.values() for plan, _ in of_way.values())] for ways in both
        ]
        logistic, y = assessed(several[0][2], LOGISTIC, x, label, plans)
        constant, _ = assessed(several[0][2], learn.Mean(), x, label, plans)
        for q, (loss, (name, risk)) in itertools.product(
            range(len(x)), zip(("cross_entropy", "zero_one"), LOSSES.items(), strict=True)
        ):
            pairs = list(zip(logistic[q], constant[q], strict=True))
            own, other = (float(risk(rules, shift, share)[0]) for _, rules in pairs[0])
            risks.setdefault((name, "logistic"), []).append(own)
            risks.setdefault((name, "difference"), []).append(other - own)
            each = ((way, *design) for way, of_way in both[q].items() for design in of_way.values())
            for (way, _, methods), pair in zip(each, pairs[1:], strict=True):
                losses = [one.with_loss(loss, y[q]) for one, _ in pair]
                alone = [replace(one, plan=replace(one.plan, cases={})) for one in losses]
                for method, functions in methods.items():
                    for named, of in ((way, losses), ("stratified, rows alone", alone)):
                        if named == way or (way == "stratified" and method in ADDED):
                            for what, row in _numbers(functions, of).items():
                                found.setdefault((name, what, method, named), []).append(row)
    return {key: np.array(rows) for key, rows in found.items()}, {key: np.array(rows) for key, rows in risks.items()}


def _numbers(functions, losses):
    """Limits for R and for ER, estimate and standard error, of one learner and of the difference."""
    if any(one.failed.any() for one in losses):
        return dict.fromkeys(("logistic", "difference"), [np.nan] * 6)
    of_one, of_two = functions
    for_er = of_one(losses[0], "ER")
    of_learner = [of_one(losses[0], "R") if "jackknife" in for_er.method else for_er, for_er]
    found = {"logistic": of_learner, "difference": [of_two(*losses)] * 2}
    return {
        what: [float(number) for one in two for number in (one.lower, one.upper)]
        + [float(two[1].estimate), float(two[1].standard_error)]
        for what, two in found.items()
    }


def lines_of(setting, found, risks):
    """The lines of one setting of the second table."""
    (n, share), lines = setting, []
    for loss, of, method in dict.fromkeys(key[:3] for key in found):
        row = f"{n:4} {share:6}  {loss:9}{of:12}{method:16}"
        for way in ALL_WAYS:
            if (loss, of, method, way) not in found:
                row += f"{'as it is':>26}"
                continue
            there = np.isfinite(found[loss, of, method, way][:, 4])
            low, high, low_er, high_er, estimate, error = found[loss, of, method, way][there].T
            risk, expected = risks[loss, of][there], risks[loss, of].mean()
            row += f"{np.mean((low <= risk) & (risk <= high)):10.3f}"
            row += f"{np.mean((low_er <= expected) & (expected <= high_er)):8.3f}"
            row += f"{np.sqrt(np.mean(error**2)) / estimate.std(ddof=1):8.2f}"
        lines.append(row)
    return lines


def main(words=None):
    """Prints the table and, unless run with --quick, writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=400, help="data sets of each setting (400)")
    parser.add_argument("--quick", action="store_true", help="a few data sets of one setting, and no file")
    options = parser.parse_args(words)
    sets, others = (12, 6) if options.quick else (options.sets, 3 * options.sets // 4)
    settings = [(60, 0.3)] if options.quick else [(n, share) for n in (100, 300) for share in (0.1, 0.3, 0.5)]
    lines = [
        f"Corrected t, log loss, {RESAMPLES} splits that leave out {FRACTION:.0%}, {sets} data sets a setting, "
        f"seed {SEED}; JAX {jax.__version__}, NumPy {np.__version__}",
        f"coverage of ER at 95 % (binomial standard error {100 * np.sqrt(0.05 * 0.95 / sets):.1f} points); "
        "se / sd: root of the mean squared standard error over the standard deviation of the estimates",
        "",
        f"{'n':>4} {'share':>6}  {'of':20}" + "".join(f"{way:>24}" for way in WAYS),
        f"{'':34}" + f"{'coverage':>14}{'se / sd':>10}" * len(WAYS),
    ]
    methods = f"""
Other methods, {others} data sets a setting: coverage of R and of ER at 95 %, and se / sd of the estimate; difference:
class frequencies less logistic regression. Rows alone: without what is added for the shares of the classes. 5 x 2
trains on half of the cases, and its estimate is that of one half. Data sets in which a row trains on one class only are
left out.

{"n":>4} {"share":>6}  {"loss":9}{"of":12}{"interval":16}{"".join(f"{way:>26}" for way in ALL_WAYS)}
{"":49}{f"{'R':>10}{'ER':>8}{'se / sd':>8}" * len(ALL_WAYS)}""".splitlines()
    unequal = [setting for setting in settings if setting[1] != 0.5]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for setting, found in zip(
            unequal, pool.map(partial(of_methods, others), *zip(*unequal, strict=True)), strict=True
        ):
            methods += lines_of(setting, *found)
            print("\n".join(methods), flush=True)
        for (n, share), found in zip(
            settings, pool.map(partial(intervals, sets), *zip(*settings, strict=True)), strict=True
        ):
            for name in [*LEARNERS, "difference"]:
                row = f"{n:4} {share:6}  {name:20}  "
                for way in WAYS:
                    estimate, lower, upper, error = found[name, way].T
                    held = np.mean((lower < estimate.mean()) & (estimate.mean() < upper))
                    row += f"{held:14.3f}{np.sqrt(np.mean(error**2)) / estimate.std(ddof=1):10.2f}"
                lines.append(row)
    lines += methods
    print("\n".join(lines), flush=True)
    if not options.quick:
        publish("calibration_strata.txt", "\n".join(lines))


if __name__ == "__main__":
    main()
