"""Coverage of the intervals of one trained model from its test cases: no training, only losses of known mean; see
`calibration.py`.
"""

from functools import partial

import numpy as np
import pandas as pd

from jaxgen.stats import interval

LEVEL, SIZES, SETS = 0.95, (20, 50, 100, 300), 2000
BOOTSTRAPS = {
    f"bootstrap, {kind}": partial(interval.bootstrap, kind=kind, resamples=999)
    for kind in ("percentile", "basic", "bca", "studentised")
}
RATES = {"Wald": interval.wald, "Wilson": interval.wilson, "Clopper-Pearson": interval.clopper_pearson}
LOSSES = {
    "error rate 2%": (0.02, lambda random, size: (random.random(size) < 0.02) * 1.0, RATES),
    "error rate 10%": (0.1, lambda random, size: (random.random(size) < 0.1) * 1.0, RATES),
    "error rate 40%": (0.4, lambda random, size: (random.random(size) < 0.4) * 1.0, RATES),
    "squares of normal errors": (
        1.0,
        lambda random, size: random.normal(size=size) ** 2,
        {"t": interval.t} | BOOTSTRAPS,
    ),
    "squares of t errors, 5 df": (
        5 / 3,
        lambda random, size: random.standard_t(5, size=size) ** 2,
        {"t": interval.t} | BOOTSTRAPS,
    ),
}


def rows(sets):
    """One row of the table per interval, kind of loss and number of test cases."""
    random = np.random.default_rng(0)
    for name, (risk, draw, methods) in LOSSES.items():
        for n in SIZES:
            losses = draw(random, (sets, n))
            for method, function in methods.items():
                got = function(losses, level=LEVEL)
                covered = np.mean((got.lower <= risk) & (risk <= got.upper))
                yield {
                    "losses": name,
                    "interval": method,
                    "n": n,
                    "sets": sets,
                    "covers": covered,
                    "width": np.mean(got.upper - got.lower) / risk,
                }


def lines(frame):
    """The table, a column per number of test cases."""
    sets = int(frame.sets.iloc[0])
    text = [
        f"One trained model, n test cases, {LEVEL:.0%}: share of {sets} test sets whose interval "
        f"holds its risk (binomial standard error {np.sqrt(LEVEL * (1 - LEVEL) / sets):.3f}), and "
        "mean width over the risk"
    ]
    table = frame.pivot_table(index=["losses", "interval"], columns="n", values=["covers", "width"], sort=False)
    with pd.option_context("display.width", 200):
        return text + table.to_string(float_format=lambda v: f"{v:.3f}").splitlines()
