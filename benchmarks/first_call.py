"""Time to the first result of every learner in a fresh process, beside scikit-learn on the same splits.

    python benchmarks/first_call.py    # about five minutes; writes benchmarks/results/first_call.txt

Every line is a process of its own. Cold: nothing is compiled; warm: another process has compiled and kept the programs;
work: the same call once more. Imports and the reading of the data are left out everywhere.
"""

import os
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

import pandas as pd
from quiet import Watch, publish
from speed import machine

SPLITS = {"diabetes": (10, 10), "wine": (10, 10), "breast_cancer": (10, 10), "digits": (5, 1)}
"""Folds and repeats."""

SIZE, STEPS = 20, 300


def learners():
    """Name, data sets, our learner, and scikit-learn's for regression or classification."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    from jaxgen import learn

    def network(classes):
        descent = learn.Descent(
            learn.MLP((SIZE,), init="glorot"),
            steps=STEPS,
            optimiser=learn.Optax("adam", learning_rate=0.01),
            objective="softmax_cross_entropy" if classes else "squared",
        )
        return learn.Normalised(descent, how="standard")

    def peer(classes):
        kind: Any = MLPClassifier if classes else MLPRegressor
        options = dict(activation="tanh", learning_rate_init=0.01, max_iter=STEPS, n_iter_no_change=STEPS)
        return kind(hidden_layer_sizes=(SIZE,), alpha=0, batch_size=10**6, random_state=0, **options)

    def stopped(classes):
        return learn.Normalised(learn.EarlyStopped(network(classes).inside), how="standard")

    regression, classification = ("diabetes",), ("wine", "breast_cancer", "digits")
    return {
        "least squares": (regression, learn.LeastSquares(), LinearRegression()),
        "ridge": (regression, learn.LeastSquares(ridge=1.0), Ridge(alpha=1.0)),
        "5 neighbours": (regression, learn.Neighbours(5), KNeighborsRegressor(5)),
        "5 neighbours of classes": (classification, learn.Neighbours(5), KNeighborsClassifier(5)),
        "logistic, ridge 1": (("wine", "digits"), learn.Logistic(ridge=1.0), LogisticRegression(max_iter=1000)),
        # Of two classes scikit-learn has one column of logits, whose ridge is half of that of our two.
        "logistic, ridge 2": (("breast_cancer",), learn.Logistic(ridge=2.0), LogisticRegression(max_iter=1000)),
        "network": (regression, network(False), peer(False)),
        "network of classes": (classification, network(True), peer(True)),
        "4 networks, stopped early": (regression, stopped(False), None),
        "4 networks of classes, stopped early": (classification, stopped(True), None),
    }


def problem(name):
    """The data, inputs standardised so that scikit-learn's learners converge, and the plan."""
    import jax

    import jaxgen as jg
    from jaxgen import datasets, resample

    data = getattr(datasets, name)()
    x = (data.x - data.x.mean(0)) / data.x.std(0)
    data = jg.Data(x, data.y, data.names, data.target, data.task, data.classes)
    return data, resample.k_fold(jax.random.key(0), data.n, *SPLITS[name])


def timed(name, data_name):
    """Seconds of the first call, and of the next."""
    import jax

    import jaxgen as jg

    data, plan = problem(data_name)
    learner = learners()[name][1]
    for _ in range(2):
        begun = time.perf_counter()
        jg.assess(jax.random.key(1), learner, data, plan)
        yield time.perf_counter() - begun


def peer_seconds(name, data_name):
    """Seconds of scikit-learn on the same splits, in one process; NaN where it has no such learner."""
    from sklearn.model_selection import cross_val_score

    data, plan = problem(data_name)
    peer = learners()[name][2]
    if peer is None:
        return float("nan")
    y = data.y.argmax(-1) if data.task == "classification" else data.y[:, 0]
    splits = [(train.nonzero()[0], test.nonzero()[0]) for train, test in zip(plan.train, plan.test, strict=True)]
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks that scikit-learn would train for longer
        cross_val_score(peer, data.x, y, cv=splits)
    return time.perf_counter() - begun


def in_a_process(folder, *arguments):
    """What this script prints in a process of its own, as numbers."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    printed = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=environment | {"XDG_CACHE_HOME": folder},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [float(word) for word in printed.split()]


def main():
    if len(sys.argv) > 1:
        kind, *which = sys.argv[1:]
        print(*(timed(*which) if kind == "ours" else [peer_seconds(*which)]))
        return
    watch, rows = Watch(), []
    for name, (data_sets, _, _) in learners().items():
        for data_name in data_sets:
            with tempfile.TemporaryDirectory() as folder:
                (cold, _), (warm, work) = (in_a_process(folder, "ours", name, data_name) for _ in range(2))
                (peer,) = in_a_process(folder, "peer", name, data_name)
            folds, repeats = SPLITS[data_name]
            rows.append(
                {"learner": name, "data": data_name, "trainings": folds * repeats, "cold": cold, "warm": warm}
                | {"work": work, "scikit-learn": peer, "its time / work": peer / work}
            )
            watch.look()
            print(rows[-1], flush=True)
    lines = [
        machine(),
        watch.line(),
        "",
        "Seconds of a call of assess in a fresh process, on 10 folds, 10 times (digits: 5 folds, once). Cold: nothing",
        "is compiled; warm: another process has compiled and kept the programs; work: the second call. scikit-learn's",
        f"cross_val_score has the same splits, in one process. Networks have {SIZE} tanh units and {STEPS} steps of",
        "adam on all cases. jaxgen predicts all cases of every row, scikit-learn those that are tested.",
        "",
        pd.DataFrame(rows).to_string(index=False, float_format=lambda v: f"{v:.2f}"),
    ]
    print("\n".join(lines))
    publish("first_call.txt", "\n".join(lines))


if __name__ == "__main__":
    main()
