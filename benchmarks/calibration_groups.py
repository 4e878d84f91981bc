"""Coverage of intervals for cases that come in groups, on data whose truth is known.

    python benchmarks/calibration_groups.py

prints a table and writes it to benchmarks/results/calibration_groups.txt. Least squares with five inputs; half of the
variance of every input, and as much noise as there is in single cases, is common to a group. Both intervals see the
same folds, which divide no group; the corrected t is not told of the groups. Only public names of jaxgen are used.
"""

import time
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from speed import machine

import jaxgen as jg
from jaxgen import learn, resample
from jaxgen.stats import interval

RESULTS = Path(__file__).parent / "results"
SETS, INPUTS, FOLDS = 1000, 5, 10
SETTINGS = ((11, 5), (20, 5), (40, 5), (100, 3))
"""Groups, and cases of each."""
WEIGHTS = np.full(INPUTS, 0.3)


def drawn(groups, size):
    """Cases [SETS, groups * size, 5], and their targets."""
    random = np.random.default_rng([groups, size])
    shared = random.normal(size=(SETS, groups, 1, INPUTS + 1))
    single = random.normal(size=(SETS, groups, size, INPUTS + 1))
    x = (shared[..., 1:] + single[..., 1:]) / np.sqrt(2)
    y = x @ WEIGHTS + shared[..., 0] + single[..., 0]
    return x.reshape(SETS, groups * size, INPUTS), y.reshape(SETS, groups * size, 1)


def coverage(groups, size, repeats):
    """How often each interval holds R and ER, and its mean width over ER."""
    x, y = drawn(groups, size)
    n, data = groups * size, jg.Data(x, y, tuple("abcde"))
    fits = jg.assess(jax.random.key(0), learn.LeastSquares(), data, resample.full(n)).info
    wrong = fits["weights"].reshape(SETS, INPUTS) - WEIGHTS
    truth = 2 + np.sum(wrong**2, axis=-1) + fits["intercept"].reshape(SETS) ** 2  # inputs have mean 0 and variance 1
    plan = resample.k_fold(jax.random.key(1), n, FOLDS, repeats, groups=np.arange(n) // size)
    untold = resample.from_weights(plan.train, plan.test, labels=plan.labels)
    for name, method, folds in (
        ("grouped", interval.grouped, plan),
        ("corrected t", interval.bouckaert_frank, untold),
    ):
        result = method(jg.assess(jax.random.key(0), learn.LeastSquares(), data, folds))
        holds = [np.mean((result.lower <= value) & (value <= result.upper)) for value in (truth, truth.mean())]
        width = np.mean(result.upper - result.lower) / truth.mean()
        yield {"groups": groups, "cases of each": size, "repeats": repeats, "interval": name} | dict(
            zip(("covers R", "covers ER", "width / ER"), (*holds, width), strict=True)
        )


def main():
    start = time.perf_counter()
    rows = [row for setting in SETTINGS for repeats in (1, 10) for row in coverage(*setting, repeats)]
    lines = [
        machine(),
        f"{SETS} data sets a setting, {FOLDS} folds, {time.perf_counter() - start:.0f} s with compilation",
        "95% intervals; R: the risk of the model trained on all cases, for new groups; ER: its mean",
        "",
        pd.DataFrame(rows).to_string(index=False, float_format="{:.3f}".format),
        "",
    ]
    print("\n".join(lines))
    (RESULTS / "calibration_groups.txt").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
