"""Coverage of intervals for error rates of 1 to 30 %, and size of tests of two of them, on data whose truth is known.

    python benchmarks/calibration_rates.py             # all of it; the first line of the results says how long it takes
    python benchmarks/calibration_rates.py --quick     # few data sets; writes nothing
    python benchmarks/calibration_rates.py --resume    # goes on where a run of the same code was stopped

prints the tables and writes them to benchmarks/results/calibration_rates.txt. Only public names of jaxgen are used.
"""

import argparse
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import scipy.stats
from kept_parts import kept_part
from speed import machine

import jaxgen as jg
from jaxgen import learn, loss, resample
from jaxgen.stats import compare, interval

RESULTS = Path(__file__).parent / "results"
SIZES, RATES, INPUTS, FRESH = (64, 100, 300, 500), (0.01, 0.03, 0.1, 0.3), 5, 10_000
NETWORK = learn.Descent(
    learn.MLP((5,), init="glorot"),
    steps=60,
    optimiser=learn.Optax("adam", learning_rate=0.03),
    objective="binary_cross_entropy",
)
LEARNERS = {  # learner and data sets of each size and rate
    "least squares": (learn.LeastSquares(), 4000),
    "logistic, ridge 1": (learn.Logistic(ridge=1.0), 4000),
    "network": (NETWORK, 1000),
}
PLANS = {
    "a tenth left out, 25 times": lambda key, n, sets: resample.leave_out(key, n, 0.1, 25, sets=sets),
    "10 x 10 folds": lambda key, n, sets: resample.k_fold(key, n, 10, 10),
    "3 x nested 5 folds": lambda key, n, sets: resample.nested_pairs(key, n, 5, 3),
    "a third left out, once": lambda key, n, sets: resample.leave_out(key, n, 1 / 3, 1, sets=sets),
}
INTERVALS = {
    "corrected t": (interval.corrected_t, (0, 1)),
    "corrected score": (interval.corrected_score, (0, 1)),
    "nested CV": (interval.nested_cross_validation, (2,)),
    "hold-out, Wilson": (interval.hold_out, (3,)),
}
TESTS = {
    "corrected t": (compare.corrected_t, (0, 1)),
    "corrected t of error rates": (compare.corrected_score, (0, 1)),
    "nested CV": (compare.nested_cross_validation, (2,)),
    "McNemar, mid-p": (compare.mcnemar, (3,)),
}


def drawn(seed, sets, n, rate):
    """Two classes, normal with unit variance: the means differ in the first input, and as much in the sixth. Inputs
    [sets, n, 10] and targets [sets, n, 1]; the best rule from either half of the inputs errs at the rate.
    """
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, (sets, n, 1)).astype(float)
    x = random.normal(size=(sets, n, 2 * INPUTS))
    x[..., [0, INPUTS]] += (y - 0.5) * -2 * scipy.stats.norm.ppf(rate)
    return x, y


def data(x, y, half=0):
    """One half of the inputs, with a target that is one of two classes."""
    inputs = x[..., INPUTS * half : INPUTS * (half + 1)]
    return jg.Data(inputs, y, tuple(f"x{i}" for i in range(INPUTS)), task="classification")


def setting(name, n, rate, sets):
    """Coverage of every interval and size of every test for a learner, a size and a rate."""
    learner = LEARNERS[name][0]
    seed = [n, int(1000 * rate), list(LEARNERS).index(name)]  # of its own: luck is not shared
    x, y = drawn(seed, sets, n, rate)
    fresh = drawn([*seed, 1], 1, FRESH, rate)
    truth = risks(learner, x, y, fresh, n)
    key = jax.random.key(n)
    intervals, tests = [], []
    for place, (plan_name, make) in enumerate(PLANS.items()):
        plan = make(jax.random.fold_in(key, place), n, sets)
        first, second = (jg.assess(key, learner, data(x, y, half), plan, loss.zero_one) for half in (0, 1))
        for method, (function, places) in INTERVALS.items():
            if place in places:
                intervals.append(
                    {"learner": name, "n": n, "rate": rate, "interval": method, "plan": plan_name}
                    | covered(function(first), truth)
                )
        for method, (function, places) in TESTS.items():
            if place in places:
                p = function(first, second).p_value
                tests.append(
                    {"learner": name, "n": n, "rate": rate, "test": method, "plan": plan_name}
                    | {"size at 5%": np.mean(p < 0.05), "no p": np.mean(np.isnan(p))}
                )
    return intervals, tests


def risks(learner, x, y, fresh, n):
    """R of the models trained on all n cases of each data set, from fresh cases, [sets]."""
    train = np.zeros((1, n + FRESH), np.uint8)
    train[:, :n] = 1
    plan, parts = resample.from_weights(train, 1 - train), []
    for some in np.array_split(np.arange(len(x)), max(1, len(x) // 100)):
        inputs, targets = (
            np.concatenate([mine[some], np.repeat(new, len(some), axis=0)], axis=1)
            for mine, new in zip((x, y), fresh, strict=True)
        )
        rows = jg.assess(jax.random.key(0), learner, data(inputs, targets), plan, loss.zero_one, keep="rows")
        parts.append(rows.g[:, 0])
    return np.concatenate(parts)


def covered(result, truth):
    """How often an interval holds R and ER, its mean width, and how often it has no width or a limit below 0."""
    low, high = result.lower, result.upper
    with np.errstate(invalid="ignore"):
        holds = [np.mean((low <= value) & (value <= high)) for value in (truth, truth.mean())]
    empty = np.isnan(low)
    return {
        "ER": truth.mean(),
        "covers R": holds[0],
        "covers ER": holds[1],
        "width / ER": np.nanmean(high - low) / truth.mean(),
        "none": empty.mean(),
        "below 0": np.mean(low < 0),
    }


def summary(frame, index, columns):
    """The worst of every column over all sizes, for each rate and over all learners."""
    table = frame.pivot_table(index=index, columns="rate", values=columns[0], aggfunc=columns[1], sort=False)
    table.columns = [f"{rate:.0%}" for rate in table.columns]
    return table


def main():
    parser = argparse.ArgumentParser(description="Coverage of intervals for error rates.")
    parser.add_argument("--quick", action="store_true", help="few data sets and sizes; writes nothing")
    parser.add_argument("--resume", action="store_true", help="takes the parts that an earlier run of this code made")
    chosen = parser.parse_args()
    quick, intervals, tests, trainings, minutes = chosen.quick, [], [], 0, 0.0
    for name, (_, sets) in LEARNERS.items():
        sets = 20 if quick else sets
        for n in SIZES[:1] if quick else SIZES:
            for rate in RATES[1:2] if quick else RATES:
                place = f"calibration_rates-{name}-{n}-{rate}-{sets}"
                more, took = kept_part(place, partial(setting, name, n, rate, sets), chosen.resume)
                print(f"{place}: {took:.1f} minutes", flush=True)
                minutes += took
                intervals += more[0]
                tests += more[1]
                trainings += sets * (2 * (25 + 100 + 45 + 1) + 1)
    intervals, tests = pd.DataFrame(intervals), pd.DataFrame(tests)
    width = intervals.pivot_table(index=["interval", "plan"], values=["width / ER", "none", "below 0"], sort=False)
    lowest = summary(intervals, ["interval", "plan"], ("covers R", "min"))
    expected = summary(intervals, ["interval", "plan"], ("covers ER", "min"))
    size = summary(tests, ["test", "plan"], ("size at 5%", "max"))
    number = "{:.3f}".format
    text = "\n".join(
        [
            machine(),
            f"{trainings:,} trainings in {minutes:.1f} minutes with compilation",
            "",
            "Error rates, 95% intervals: R is the error rate of the model trained on all n cases, ER its mean.",
            f"Least squares and logistic regression: {LEARNERS['least squares'][1]} data sets; networks: "
            f"{LEARNERS['network'][1]}; n = {', '.join(map(str, SIZES))}; each setting with seeds of its own.",
            "none: share of data sets in which all rows are equal, so that there is no interval;",
            "below 0: share with a lower limit below 0.",
            "",
            "Lowest coverage of R over all learners and sizes, by the error rate of the best rule",
            lowest.to_string(float_format=number),
            "",
            "Lowest coverage of ER",
            expected.to_string(float_format=number),
            "",
            "Means over all settings",
            width.to_string(float_format=number),
            "",
            "Tests at 5%: two learners of exchangeable halves of the inputs; largest size over all learners and sizes",
            size.to_string(float_format=number),
            "",
            intervals.to_string(index=False, float_format=number),
            "",
            tests.to_string(index=False, float_format=number),
            "",
        ]
    )
    print(text)
    if not quick:
        (RESULTS / "calibration_rates.txt").write_text(text)


if __name__ == "__main__":
    main()
