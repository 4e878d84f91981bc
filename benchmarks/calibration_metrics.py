"""Coverage and size for AUC, F1, balanced accuracy and error rate over splits, of logistic regressions of two classes.

    python benchmarks/calibration_metrics.py

draws data sets of two classes and four inputs, of which two tell the classes apart (their means differ by one standard
deviation), and trains a logistic regression on the first of these with one that tells nothing, and another on the two
others: neither is better. It asks how often the 95 % interval of `interval.recommend` holds the mean over data sets of
what it estimates, and the mean of the same measure in the population, of the models that the rows train; and how often
the test of `compare.recommend` at 5 % tells the two apart. Writes benchmarks/results/calibration_metrics.txt.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import jax
import numpy as np
from calibration_classes import LOGISTIC, assessed, drawn, error_rate, keys, rates
from quiet import publish
from scipy.stats import norm

from jaxgen import resample
from jaxgen.stats import compare, interval, metrics

SEED, BLOCK, PROCESSES = 29, 50, 4
SHIFT = np.array([1.0, 0.0])
WAYS = ("random", "stratified")


def area(rules, shift, share):
    """Under the ROC curve in the population, [...]."""
    return norm.cdf(rules.weights @ shift / np.maximum(np.linalg.norm(rules.weights, axis=-1), 1e-300) / np.sqrt(2))


def f_one(rules, shift, share):
    """F1 of the second class in the population, [...]."""
    false, true = rates(rules, shift)
    return 2 * share * true / (share * (1 + true) + (1 - share) * false)


def balanced(rules, shift, share):
    """Balanced accuracy in the population, [...]."""
    false, true = rates(rules, shift)
    return (true + 1 - false) / 2


MEASURES = {
    "AUC": (lambda losses, y: metrics.of_rows(losses, y, metrics.roc.auc), area),
    "F1": (lambda losses, y: metrics.of_rows(losses, y, metrics.f_beta), f_one),
    "balanced accuracy": (lambda losses, y: metrics.of_rows(losses, y, metrics.balanced_accuracy), balanced),
    "error rate": (lambda losses, y: losses, error_rate),
}


def folds(key, n, strata):
    """Five folds, ten times."""
    return resample.k_fold(key, n, 5, repeats=10, strata=strata)


def numbers(n, share, sets):
    """Of every measure and way: estimate, standard error and limits of both learners, the p-value of the test and
    the mean of the measure in the population, [sets, 11]; NaN where a row has no such number, as an AUC of one class.
    """
    random, found = np.random.default_rng([SEED, n, int(100 * share)]), {}
    for start in range(0, sets, BLOCK):
        x, label = drawn(random, n, share, min(BLOCK, sets - start), 4)
        several = [keys(SEED + n, 1000 * start + q) for q in range(len(x))]
        plans = [[folds(key[1], n, None), folds(key[3], n, one)] for key, one in zip(several, label, strict=True)]
        both = []
        for inputs in ([0, 2], [1, 3]):
            losses, y = assessed(several[0][4], LOGISTIC, x[..., inputs], label, plans)
            both.append(losses)
        for q in range(len(x)):
            for place, way in enumerate(WAYS):
                pair = [each[q][place] for each in both]
                for measure, (of_losses, of_rules) in MEASURES.items():
                    truth = [float(np.mean(of_rules(rules, SHIFT, share))) for _, rules in pair]
                    row = _row([losses for losses, _ in pair], y[q], of_losses)
                    found.setdefault((measure, way), []).append([*row, *truth])
    return {key: np.array(rows) for key, rows in found.items()}


def _row(pair, y, of_losses):
    if any(one.failed.any() for one in pair):
        return [np.nan] * 9
    try:
        first, second = (of_losses(one, y) for one in pair)
    except ValueError:
        return [np.nan] * 9
    rates = first.values is not None
    by, test = (
        (interval.corrected_score, compare.corrected_score)
        if rates
        else (interval.bouckaert_frank, compare.corrected_k_fold_t)
    )
    results = [by(one) for one in (first, second)]
    limits = [float(number) for one in results for number in (one.estimate, one.standard_error, one.lower, one.upper)]
    return [*limits, float(test(first, second).p_value)]


def as_recommended(n, share):
    """Whether the intervals here are those that `recommend` chooses, which looks at a plan anew for every number."""
    x, label = drawn(np.random.default_rng(0), n, share, 1, 4)
    key = keys(SEED, 0)
    losses, y = assessed(key[4], LOGISTIC, x[..., :2], label, [[folds(key[0], n, None), folds(key[1], n, label[0])]])
    for one, _ in losses[0]:
        for of_losses, _ in MEASURES.values():
            chosen, row = interval.recommend(of_losses(one, y[0])), _row([one, one], y[0], of_losses)
            if [float(chosen.lower), float(chosen.upper)] != row[2:4]:
                return False
    return True


def line(rows):
    """Coverage of the mean of the estimates and of the mean in the population, the mean, how far it is from the
    population's, standard error over deviation, the size of the test, and the share of data sets without a number.
    """
    there = rows[np.isfinite(rows[:, 0])]
    if len(there) < 2:
        return f"{'':56}{1 - len(there) / len(rows):8.3f}"
    estimate, error, low, high = np.moveaxis(there[:, :8].reshape(-1, 2, 4), 2, 0)
    mean, truth = estimate.mean(), rows[:, 9:].mean()
    flat = np.isnan(low)
    held = [np.mean((low <= of) & (of <= high)) for of in (mean, truth)]
    p = there[:, 8]
    return (
        f"{held[0]:9.3f}{held[1]:11.3f}{mean:8.3f}{mean - truth:8.3f}"
        f"{np.sqrt(np.mean(error**2)) / np.sqrt(estimate.var(axis=0, ddof=1).mean()):9.2f}"
        f"{np.mean(np.where(np.isnan(p), 1, p) <= 0.05):7.3f}{flat.mean():7.3f}{1 - len(there) / len(rows):8.3f}"
    )


def table(sets, n, share):
    """The lines of one setting, and the seconds of CPU that they took."""
    begun = time.process_time()
    found = sorted(numbers(n, share, sets).items(), key=lambda item: [*MEASURES].index(item[0][0]))
    rows = [f"{n:4} {share:6}  {measure:19}{way:12}{line(rows)}" for (measure, way), rows in found]
    return rows, time.process_time() - begun


def main(words=None):
    """Prints the table and, unless run with --quick, writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=400, help="data sets of each setting (400)")
    parser.add_argument("--quick", action="store_true", help="a few data sets of one setting, and no file")
    options = parser.parse_args(words)
    sets = 8 if options.quick else options.sets
    settings = [(64, 0.5)] if options.quick else [(n, share) for share in (0.5, 0.1) for n in (64, 100, 300)]
    coverage, size = (100 * np.sqrt(0.05 * 0.95 / each) for each in (1.5 * sets, sets))
    lines = f"""
AUC, F1, balanced accuracy and error rate over splits, {sets} data sets of two learners a setting, seed {SEED}
JAX {jax.__version__}, NumPy {np.__version__}
Ten times five folds; intervals of interval.recommend at 95 %. own: coverage of the mean of the estimates; population:
of the mean of the measure in the population, of the models that the rows train; mean: of the estimates; bias: less that
of the population; se / sd: root of the mean squared standard error over the standard deviation of the estimates; size:
how often compare.recommend tells two equally good learners apart at 5 %; flat: no interval, as all rows agree; none:
data sets with a row without such a number. Standard errors: of a coverage some {coverage:.1f} points, of a size
{size:.1f}

{"n":>4} {"share":>6}  {"measure":19}{"folds":12}{"own":>9}{"population":>11}{"mean":>8}{"bias":>8}\
{"se / sd":>9}{"size":>7}{"flat":>7}{"none":>8}""".splitlines()[1:]
    print("\n".join(lines), flush=True)
    if not as_recommended(100, 0.5):
        raise RuntimeError("expected the intervals that interval.recommend chooses, got others; mend this script")
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        seconds = 0.0
        for rows, took in pool.map(partial(table, sets), *zip(*settings, strict=True)):
            print("\n".join(rows), flush=True)
            lines, seconds = lines + rows, seconds + took
    lines += ["", f"{seconds:.0f} seconds of CPU, with compilation"]
    if options.quick:
        print("\n".join(lines))
    else:
        publish("calibration_metrics.txt", "\n".join(lines))


if __name__ == "__main__":
    main()
