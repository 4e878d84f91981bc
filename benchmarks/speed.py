"""Speed against peers and against the machine's limit, measured side by side in one run.

    python benchmarks/speed.py --linear
    python benchmarks/speed.py --networks

prints a table and writes it to benchmarks/results/. For networks, PyTorch is a peer where it is installed. Every way
is run in turn, several times over, and the median of each is given.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import jax
import numpy as np
import sklearn
import speed_networks
from quiet import Watch
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import LeaveOneOut, ShuffleSplit, cross_val_score

import jaxgen as jg
from jaxgen import datasets, learn, resample, simulate

RESULTS = Path(__file__).parent / "results"
SETS, RESAMPLES, N, P, FRACTION = 500, 500, 20, 10, 0.25
TABLE_1 = """
import resource, time
start = time.perf_counter()
import jax, jaxgen as jg
from jaxgen import algebraic, learn, resample, simulate
from jaxgen.stats import estimate
loaded = time.perf_counter()
system = simulate.linear_ar(jax.random.key(1995), 30000, 20, 10)
linear = learn.LeastSquares(intercept=False)
fits = jg.assess(jax.random.key(0), linear, system.data, resample.full(20))
estimate.summary(system.generalization(fits.info["weights"][:, 0, :, 0])), algebraic.fpe(fits, 10, transform="log1p")
data = jg.Data(system.data.x[:500], system.data.y[:500], system.data.names)
splits = resample.leave_out(jax.random.key(1), 20, 0.25, 500, sets=500)
estimate.summary(jg.assess(jax.random.key(0), linear, data, splits))
done = time.perf_counter()
print(loaded - start, done - loaded, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def machine():
    """The hardware and the versions, in one line."""
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text().splitlines() if listed.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    versions = (
        f"Python {platform.python_version()}, JAX {jax.__version__}, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}"
    )
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {jax.local_devices()[0].device_kind} device; {versions}"


def medians(ways, rounds):
    """Median seconds of each way, all run in turn in every round, after one round that is not counted.

    The pause lets the waiting threads of one way's BLAS go to sleep before the next begins.
    """
    seconds = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, run in ways.items():
            time.sleep(0.3)
            start = time.perf_counter()
            run()
            if number:
                seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in seconds.items()}


def numpy_solve(x, y, train, block=10):
    """Losses [Q, R, N] by NumPy: weighted normal equations, made and solved for many rows at once."""
    losses = np.empty(train.shape, x.dtype)
    for start in range(0, len(x), block):
        part = slice(start, start + block)
        weighted = train[part].astype(x.dtype)[..., None] * x[part, None]
        grams, moments = weighted.swapaxes(-1, -2) @ x[part, None], weighted.swapaxes(-1, -2) @ y[part, None]
        losses[part] = ((y[part, None] - x[part, None] @ np.linalg.solve(grams, moments)) ** 2)[..., 0]
    return losses


def numpy_products(x, y, train, block=10):
    """The same with the equations of all rows of a data set from one matrix product of the weights and the products of
    inputs.
    """
    losses = np.empty(train.shape, x.dtype)
    for start in range(0, len(x), block):
        part = slice(start, start + block)
        w = train[part].astype(x.dtype)
        products = (x[part, :, :, None] * x[part, :, None, :]).reshape(len(w), N, P * P)
        grams = (w @ products).reshape(*w.shape[:2], P, P)
        weights = np.linalg.solve(grams, (w @ (x[part] * y[part]))[..., None])[..., 0]
        losses[part] = (y[part, :, 0][:, None] - weights @ x[part].swapaxes(1, 2)) ** 2
    return losses


def matmul_rate(size=2000):
    """Single-precision operations a second of a large matrix product, on all cores."""
    a = jax.random.normal(jax.random.key(0), (size, size), "float32")
    product = jax.jit(lambda a: a @ a)
    seconds = medians({"product": lambda: jax.block_until_ready(product(a))}, 5)["product"]
    return 2 * size**3 / seconds


def linear():
    """Microseconds per least-squares fit, N = 20, p = 10, 500 sets x 500 splits."""
    system = simulate.linear_ar(jax.random.key(1), SETS, N, P)
    plan = resample.leave_out(jax.random.key(2), N, FRACTION, RESAMPLES, sets=SETS)
    learner = learn.LeastSquares(intercept=False)
    x64, y64 = system.data.x, system.data.y
    x32, y32 = x64.astype(np.float32), y64.astype(np.float32)
    splits = ShuffleSplit(RESAMPLES, test_size=FRACTION, random_state=0)
    ways = {
        "jaxgen.assess (64 bits)": lambda: jg.assess(jax.random.key(0), learner, system.data, plan),
        "jaxgen.assess, plan drawn anew": lambda: jg.assess(
            jax.random.key(0),
            learner,
            system.data,
            resample.leave_out(jax.random.key(3), N, FRACTION, RESAMPLES, sets=SETS),
        ),
        "NumPy batched solve (64 bits)": lambda: numpy_solve(x64, y64, plan.train),
        "NumPy batched solve (32 bits)": lambda: numpy_solve(x32, y32, plan.train),
        "NumPy, shared products (64 bits)": lambda: numpy_products(x64, y64, plan.train),
        "NumPy, shared products (32 bits)": lambda: numpy_products(x32, y32, plan.train),
        "scikit-learn cross_val_score": lambda: cross_val_score(
            LinearRegression(fit_intercept=False), x64[0], y64[0, :, 0], cv=splits, scoring="neg_mean_squared_error"
        ),
    }
    fits = {name: RESAMPLES if "scikit" in name else SETS * RESAMPLES for name in ways}
    micro = {name: 1e6 * seconds / fits[name] for name, seconds in medians(ways, 9).items()}
    mine = micro["jaxgen.assess (64 bits)"]
    losses, want = jg.assess(jax.random.key(0), learner, system.data, plan), numpy_solve(x64, y64, plan.train)
    disagreement = {
        name: np.max(np.abs(np.sqrt(found) - np.sqrt(want)), axis=-1) / np.sqrt(np.max(want, axis=-1))
        for name, found in (
            ("jaxgen", np.asarray(losses.values)),
            ("NumPy, 32 bits", numpy_solve(x32, y32, plan.train)),
        )
    }
    operations = 2 * N * P * P + 2 * P**3 / 3 + 8 * N * P + 8 * P * P
    limit = 1e6 * operations / matmul_rate()
    lines = [
        f"Least squares, N = {N}, p = {P}, {SETS} sets x {RESAMPLES} splits: microseconds per fit, median of 9 rounds",
        f"{'':34}{'us per fit':>12}{'jaxgen is faster':>18}",
    ]
    lines += [f"{name:34}{value:12.3f}{value / mine:17.2f}x" for name, value in micro.items()]
    lines.append(
        f"{'arithmetic at the rate of matmul':34}{limit:12.3f}{limit / mine:17.2f}x   "
        f"({operations:.0f} operations a fit; Gaussian elimination of small matrices runs far below "
        "that rate)"
    )
    lines += [
        "errors against NumPy in 64 bits, relative to the largest of the row: "
        f"{name} median {np.median(d):.1e}, largest {d.max():.1e}"
        for name, d in disagreement.items()
    ]
    seconds = np.median(
        [
            [
                float(word)
                for word in subprocess.run(
                    [sys.executable, "-c", TABLE_1], capture_output=True, text=True, check=True
                ).stdout.split()
            ]
            for _ in range(3)
        ],
        axis=0,
    )
    lines.append(
        "all of Table 1 in a new process (30,000 + 250,000 fits, summaries, FPE): "
        f"{seconds[1]:.1f} s, compilation included, after {seconds[0]:.1f} s of imports; "
        f"peak memory {seconds[2]:.2f} GiB"
    )
    return lines


@dataclass(frozen=True)
class Refitted:
    """Least squares without its ways to solve many rows at once: every row is fitted by itself."""

    base: learn.LeastSquares = field(default_factory=learn.LeastSquares)

    def fit(self, key, x, y, w):
        return self.base.fit(key, x, y, w)

    def predict(self, params, x):
        return self.base.predict(params, x)


def leave_one_out():
    """Milliseconds for all leave-one-out fits of real data: down-dating, refitting, and scikit-learn."""
    lines = [
        "Leave-one-out of real data: milliseconds for all N fits, median of 5 rounds",
        f"{'':14}{'N':>6}{'p':>5}{'down-dated':>12}{'refitted':>12}{'cross_val_score':>17}",
    ]
    for name in ("diabetes", "breast_cancer"):
        data = getattr(datasets, name)()
        plan, y = resample.leave_one_out(data.n), data.y[:, :1]
        data = jg.Data(data.x, y, data.names)
        ways = {
            "down-dated": lambda data=data, plan=plan: jg.assess(jax.random.key(0), learn.LeastSquares(), data, plan),
            "refitted": lambda data=data, plan=plan: jg.assess(jax.random.key(0), Refitted(), data, plan),
            "peer": lambda data=data: cross_val_score(
                LinearRegression(), data.x, data.y[:, 0], cv=LeaveOneOut(), scoring="neg_mean_squared_error"
            ),
        }
        milli = [1e3 * seconds for seconds in medians(ways, 5).values()]
        lines.append(f"{name:14}{data.n:6}{data.d + 1:5}{milli[0]:12.1f}{milli[1]:12.1f}{milli[2]:17.1f}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--linear", action="store_true", help="least squares")
    what.add_argument("--networks", action="store_true", help="networks of 20 hidden units")
    linear_wanted = parser.parse_args().linear
    watch = Watch()
    measured = [*linear(), "", *leave_one_out()] if linear_wanted else speed_networks.report()
    text = "\n".join([machine(), watch.line(), "", *measured]) + "\n"
    print(text, end="")
    (RESULTS / f"speed_{'linear' if linear_wanted else 'networks'}.txt").write_text(text)


if __name__ == "__main__":
    main()
