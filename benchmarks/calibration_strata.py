"""Coverage of the corrected t on stratified splits, for a loss that differs much between classes.

    python benchmarks/calibration_strata.py

draws data sets of two classes and two inputs, of which one tells the classes apart (its means differ by one standard
deviation), and asks how often the 95 % interval of the log loss holds ER, for training sets of its size: on random
splits, on stratified splits, and on stratified splits with the variance S^2 of the rows alone. ER is the mean of the
estimates of all data sets, which are unbiased for it. Writes benchmarks/results/calibration_strata.txt.
"""

import argparse
from dataclasses import replace

import jax
import numpy as np
from quiet import publish

import jaxgen as jg
from jaxgen import datasets, learn, resample
from jaxgen.stats import compare, interval

SEED, FRACTION, RESAMPLES = 23, 0.1, 50
LEARNERS = {"logistic": learn.Normalised(learn.Logistic(ridge=1.0)), "class frequencies": learn.Mean()}
WAYS = ("random", "stratified", "stratified, S^2 alone")


def data_set(random, n, share):
    """A data set with at least six cases of each class."""
    while True:
        label = (random.random(n) < share).astype(int)
        if 6 <= label.sum() <= n - 6:
            x = random.normal(size=(n, 2)) + label[:, None] * [1.0, 0.0]
            return datasets.from_arrays(x, np.array(["a", "b"])[label], task="classification"), label


def intervals(n, share, sets, random):
    """Estimate, standard error and limits of every learner, way and data set, and of their difference."""
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


def main(words=None):
    """Prints the table and, unless run with --quick, writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=400, help="data sets of each setting (400)")
    parser.add_argument("--quick", action="store_true", help="a few data sets of one setting, and no file")
    options = parser.parse_args(words)
    sets = 12 if options.quick else options.sets
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
    for n, share in settings:
        found = intervals(n, share, sets, np.random.default_rng([SEED, n, int(100 * share)]))
        for name in [*LEARNERS, "difference"]:
            row = f"{n:4} {share:6}  {name:20}  "
            for way in WAYS:
                estimate, lower, upper, error = found[name, way].T
                held = np.mean((lower < estimate.mean()) & (estimate.mean() < upper))
                row += f"{held:14.3f}{np.sqrt(np.mean(error**2)) / estimate.std(ddof=1):10.2f}"
            lines.append(row)
            print(row, flush=True)
    if options.quick:
        print("\n".join(lines))
    else:
        publish("calibration_strata.txt", "\n".join(lines))


if __name__ == "__main__":
    main()
