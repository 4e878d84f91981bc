"""Many cases, inputs, outputs and data sets: time and memory beside scikit-learn, each in a process of its own.

python benchmarks/large.py                # about ten minutes; writes benchmarks/results/large.txt
python benchmarks/large.py --only 1,000   # some lines, printed only
"""

import argparse
import resource
import subprocess
import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

MOST_PEER_FITS = 100
"""Trainings of scikit-learn that are timed, if there are more; the time of all is in proportion."""


class Line(NamedTuple):
    """A learner by name, and the sizes: Q data sets (0 for one that all rows share) of N cases, D inputs, K outputs, R
    rows that leave a fifth out; what `assess` keeps.
    """

    learner: str
    sets: int
    cases: int
    inputs: int
    outputs: int
    rows: int
    keep: str = "cases"


LINES = (
    Line("least squares", 0, 100_000, 10, 1, 50),
    Line("least squares", 0, 1_000_000, 10, 1, 50, "rows"),
    Line("least squares", 0, 5_000, 1_000, 1, 10),
    Line("least squares", 0, 20_000, 50, 100, 50, "rows"),
    Line("least squares", 10_000, 50, 5, 1, 10),
    Line("ridge, chosen", 0, 100_000, 10, 1, 50, "rows"),
    Line("logistic", 0, 100_000, 10, 1, 50, "rows"),
    Line("5 neighbours", 0, 20_000, 10, 1, 10, "rows"),
    Line("network, 100 steps", 0, 100_000, 10, 1, 50, "rows"),
    Line("network, 100 steps", 0, 1_000_000, 10, 1, 4, "rows"),
    Line("network, 100 steps", 10_000, 50, 5, 1, 10),
)


def problem(line):
    """Inputs [*Q, N, D] and targets [*Q, N, K]: linear scores with noise; zeros and ones for classes."""
    random = np.random.default_rng(0)
    shape = (*([line.sets] if line.sets else []), line.cases)
    x = random.standard_normal((*shape, line.inputs))
    y = x @ random.standard_normal((line.inputs, line.outputs)) / np.sqrt(line.inputs)
    y += random.standard_normal(y.shape)
    return x, (y > 0).astype(float) if line.learner == "logistic" else y


def ours(line):
    """Seconds of the first call and of the next, and the peak of memory in GiB above that of the data."""
    import jax

    import jaxgen as jg
    from jaxgen import learn, resample

    descent = learn.Descent(learn.MLP((20,)), steps=100)
    learner = {
        "least squares": learn.LeastSquares(),
        "ridge, chosen": learn.Ridge(),
        "logistic": learn.Logistic(ridge=1.0),
        "5 neighbours": learn.Neighbours(5),
        "network, 100 steps": descent,
    }[line.learner]
    x, y = problem(line)
    task: dict[str, Any] = {"task": "classification"} if line.learner == "logistic" else {}
    data = jg.Data(x, y, tuple(f"x{number}" for number in range(line.inputs)), **task)
    plan = resample.leave_out(jax.random.key(0), line.cases, 0.2, line.rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(2):
        begun = time.perf_counter()
        losses = jg.assess(jax.random.key(1), learner, data, plan, keep=line.keep)
        times.append(time.perf_counter() - begun)
    if not np.isfinite(losses.test_mean).all():
        raise SystemExit(f"expected finite losses of {line}, got others")
    return *times, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20


def theirs(line):
    """Seconds of scikit-learn on as many splits of the same kind, and its peak of memory in GiB."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
    from sklearn.model_selection import ShuffleSplit, cross_val_score
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.neural_network import MLPRegressor

    options: Any = dict(activation="tanh", solver="sgd", batch_size=10**7, max_iter=100, n_iter_no_change=100)
    network = MLPRegressor(hidden_layer_sizes=(20,), **options)
    peer: Any = {
        "least squares": LinearRegression(),
        "ridge, chosen": RidgeCV(10.0 ** (np.arange(-6, 9) / 2)),
        "logistic": LogisticRegression(C=1.0, max_iter=1000),
        "5 neighbours": KNeighborsRegressor(5),
        "network, 100 steps": network,
    }[line.learner]
    warnings.simplefilter("ignore")
    x, y = problem(line)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total, most = max(1, line.sets) * line.rows, MOST_PEER_FITS
    if line.learner.startswith("network"):
        most = 20 if line.cases < 1000 else 1
    sets, rows = (max(1, most // line.rows), min(line.rows, most)) if line.sets else (1, min(line.rows, most))
    begun = time.perf_counter()
    for each in range(sets):
        inputs, targets = (x[each], y[each]) if line.sets else (x, y)
        splits = ShuffleSplit(rows, test_size=0.2, random_state=each)
        cross_val_score(peer, inputs, targets[:, 0] if line.outputs == 1 else targets, cv=splits)
    seconds = (time.perf_counter() - begun) * total / (sets * rows)
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20


def in_a_process(kind, number):
    """What this script prints in a process of its own, as numbers."""
    run = subprocess.run([sys.executable, __file__, kind, str(number)], capture_output=True, text=True, check=True)
    return [float(word) for word in run.stdout.split()]


def main():
    if sys.argv[1:2] in (["ours"], ["theirs"]):
        print(*(ours if sys.argv[1] == "ours" else theirs)(LINES[int(sys.argv[2])]))
        return
    from quiet import Watch, publish
    from speed import machine

    parser = argparse.ArgumentParser(description="Many cases, inputs, outputs and data sets, beside scikit-learn")
    parser.add_argument("--only", help="lines whose learner or sizes hold this text; nothing is written")
    only = parser.parse_args().only
    watch, rows = Watch(), []
    for number, line in enumerate(LINES):
        sizes = {"Q": max(1, line.sets), "N": line.cases, "D": line.inputs, "K": line.outputs, "R": line.rows}
        if only and only not in f"{line.learner} {' '.join(f'{size:,}' for size in sizes.values())}":
            continue
        first, seconds, memory = in_a_process("ours", number)
        peer, peer_memory = in_a_process("theirs", number)
        watch.look()
        row = {"learner": line.learner, **sizes, "first": first, "s": seconds, "GiB": memory, "theirs s": peer}
        rows.append(row | {"theirs GiB": peer_memory, "times as fast": peer / seconds})
        print(rows[-1], flush=True)
    text = "\n".join(
        [
            machine(),
            watch.line(),
            "",
            "Seconds of the first call of assess, compilation included where no process had done it, and of the next;",
            "the peak of memory beyond the data and the plan. R rows leave a fifth of the cases out. scikit-learn's",
            f"cross_val_score in one process: at most {MOST_PEER_FITS} trainings are timed, of networks 1 or 20, and",
            "the time of all is in proportion. jaxgen predicts all cases of every row, scikit-learn the tested ones.",
            "",
            pd.DataFrame(rows).to_string(index=False, float_format=lambda value: f"{value:.3g}"),
        ]
    )
    print(text)
    if not only:
        publish("large.txt", text)


if __name__ == "__main__":
    main()
