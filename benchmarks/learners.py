"""Every learner beside its counterpart in scikit-learn on the same splits, warm, in one run.

python benchmarks/learners.py                # about ten minutes; writes benchmarks/results/learners.txt
python benchmarks/learners.py --only digits  # lines whose learner or data hold a text, printed only
python benchmarks/learners.py --only wide one-hot --to learners_wide.txt  # of one of several, and written
python benchmarks/learners.py --only "by folds" one-hot --to learners_tuned.txt
python benchmarks/learners.py --only logistic --to learners_logistic.txt  # ten minutes
python benchmarks/learners.py --plan once --only logistic --to learners_once_logistic.txt  # six minutes
python benchmarks/learners.py --only network --to learners_networks.txt  # with PyTorch, if it is installed
python benchmarks/learners.py --plan once --to learners_once.txt  # ten folds once: what most people ask for
python benchmarks/learners.py --plan half --only neighbours --to learners_half.txt  # a hundred random halves
python benchmarks/learners.py --choices      # what a choice by leave-one-out costs; writes results/choices.txt
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
from quiet import Watch, publish
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from speed import machine

import jaxgen as jg
from jaxgen import datasets, learn, resample

ROUNDS = 3
SIZE, BATCH, EPOCHS, RATE, STRENGTH = 20, 32, 30, 0.01, 1.0
LONG = 5.0
"""Seconds beyond which a call is timed once."""

BRIEF = 1.0
"""Seconds below which a call is made once more before each that is timed."""

SMALL = 2000
"""Cases below which a plan has ten folds ten times; above, five folds once."""

PLANS = {
    "folds": f"Ten folds ten times; five folds once from {SMALL:,} cases on.",
    "once": "Ten folds once.",
    "half": "A hundred random halves of the cases.",
}
"""What a page says of its plan."""


@dataclass(frozen=True)
class Line:
    """Names of a learner and its data, the data, our learner, and that of others."""

    learner: str
    data: str
    read: Callable[[], Any]
    ours: Any
    peer: Any


def real(name):
    """A data set of the package, inputs standardised so that scikit-learn's learners converge."""

    def read():
        data = getattr(datasets, name)()
        return jg.Data(
            (data.x - data.x.mean(0)) / data.x.std(0), data.y, data.names, data.target, data.task, data.classes
        )

    return read


def simulated(n, d, classes=0):
    """Gaussian inputs with a linear signal; classes by the largest of their scores."""

    def read():
        random = np.random.default_rng([n, d, classes])
        x = random.standard_normal((n, d))
        scores = x @ random.standard_normal((d, max(1, classes))) / np.sqrt(d) + random.gumbel(
            size=(n, max(1, classes))
        )
        if not classes:
            return datasets.from_arrays(x, scores)
        return datasets.from_arrays(x, scores.argmax(1).astype(str), task="classification")

    return read


def in_steps(n, d, values):
    """Inputs of so many whole values, where many cases are equally far away, with a linear signal."""

    def read():
        random = np.random.default_rng([n, d, values])
        x = random.integers(0, values, (n, d)).astype(float)
        return datasets.from_arrays(x, x @ random.standard_normal((d, 1)) + random.standard_normal((n, 1)))

    return read


def one_hot(n, values, numbers):
    """Columns of zeros and ones for words of so many values each, which add up to 1, beside Gaussian inputs; with a
    linear signal.
    """

    def read():
        random = np.random.default_rng([n, *values, numbers])
        words = [np.eye(each)[random.integers(each, size=n)] for each in values]
        x = np.hstack([*words, random.standard_normal((n, numbers))])
        return datasets.from_arrays(x, x @ random.standard_normal((x.shape[1], 1)) + random.standard_normal((n, 1)))

    return read


def network(data, classes, **menu):
    """Ours, with minibatches of cases drawn at random: as many of them as scikit-learn's epochs have."""
    steps = EPOCHS * int(np.ceil(0.9 * data.n / BATCH))
    descent = learn.Descent(
        learn.MLP((SIZE,), init="glorot", **menu.pop("layers", {})),
        steps=steps,
        batch=BATCH,
        optimiser=learn.Optax("adam", learning_rate=RATE),
        objective="softmax_cross_entropy" if classes else "squared",
        **menu,
    )
    return learn.Normalised(descent, how="standard")


def network_peer(classes, l2=0.0):
    """Of scikit-learn, which divides the penalty by the cases of a batch."""
    kind: Any = MLPClassifier if classes else MLPRegressor
    options = dict(activation="tanh", learning_rate_init=RATE, max_iter=EPOCHS, n_iter_no_change=EPOCHS)
    mlp = kind(hidden_layer_sizes=(SIZE,), alpha=l2, batch_size=BATCH, random_state=0, **options)
    return make_pipeline(
        StandardScaler(), mlp if classes else TransformedTargetRegressor(mlp, transformer=StandardScaler())
    )


def exact_peer(tolerance):
    """scikit-learn's logistic regression to a gradient of this length, by the solver that is the first to reach it."""
    return LogisticRegression(C=1.0, solver="newton-cg", tol=tolerance, max_iter=1000)


def shown(n):
    """A number of cases, with a comma from ten thousand on."""
    return f"{n:,}" if n >= 10_000 else str(n)


def logistic(name):
    """Ours. Of two classes scikit-learn has one column of logits, whose ridge is half of that of our two."""
    return learn.Logistic(ridge=2.0 if name == "breast_cancer" else 1.0)


def from_minimum(name):
    """Largest distance of a logit from that at the minimum, in a fold of ten: ours and scikit-learn's."""
    data = real(name)()
    plan = resample.k_fold(jax.random.key(0), data.n, 10)
    train, classes = plan.train[0].astype(bool), data.y.argmax(-1)
    info = jg.assess(jax.random.key(1), logistic(name), data, plan).info

    def logits(peer):
        found = peer.fit(data.x[train], classes[train]).decision_function(data.x)
        return centred(found if found.ndim > 1 else np.stack([-found, found], axis=1) / 2)

    def centred(found):
        return found - found.mean(1, keepdims=True)

    right = logits(LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-13, max_iter=1000))
    others = {
        "scikit-learn": LogisticRegression(C=1.0, max_iter=1000),
        "the same, near the minimum": exact_peer(1e-10),
    }
    found = {"jaxgen": centred(data.x @ info["weights"][0] + info["intercept"][0])}
    found |= {way: logits(peer) for way, peer in others.items()}
    return {"data": name} | {way: float(np.abs(each - right).max()) for way, each in found.items()}


def seconds_of_assess(learner, key, data, plan):
    """Of a call, the first of which compiles."""
    return seconds(lambda: jg.assess(key, learner, data, plan))


def prices():
    """What learners cost that choose a number by leave-one-out, beside those that are given one, in turn: medians."""
    given: dict[str, tuple[Any, Any, Any]] = {
        "ridge, of 15 penalties": (learn.LeastSquares(ridge=1.0), learn.Ridge((1.0,)), learn.Ridge()),
        "15 neighbours, of at most 15": (learn.Neighbours(15), None, learn.Neighbours(at_most=15)),
        "30 neighbours, of at most 30": (learn.Neighbours(30), None, learn.Neighbours(at_most=30)),
        "15 neighbours, of all numbers": (learn.Neighbours(15), None, learn.Neighbours()),
    }
    read = {f"500 x {d}": simulated(500, d) for d in (10, 50, 300)} | {
        name: real(name) for name in ("diabetes", "wine", "breast_cancer")
    }
    found = []
    for kind, learners in given.items():
        ridge = kind.startswith("ridge")
        for name in list(read)[:4] if ridge else list(read)[3:]:
            data = read[name]()
            plan = resample.k_fold(jax.random.key(0), data.n, 10, 10)
            arguments, peer = (jax.random.key(1), data, plan), Ridge() if ridge else KNeighborsRegressor(15)
            times = []
            for _ in range(10):
                ours = [np.nan if each is None else seconds_of_assess(each, *arguments) for each in learners]
                times.append([*ours, seconds(partial(scored, peer, data, plan))])
                time.sleep(0.3)  # until the waiting threads of its BLAS go to sleep
            one, same, many, theirs = np.median(times[1:], axis=0)  # the first compiles
            found.append(
                {"learner": kind, "data": name, "given": one, "chosen of one": same, "chosen": many}
                | {"ratio": many / one, "scikit-learn, given": theirs, "their ratio": many / theirs}
            )
    return found


def lines():
    """All lines of the table."""
    made = []
    for n, d in ((442, 10), (500, 10), (500, 50), (500, 300), (20_000, 10), (20_000, 50), (20_000, 300)):
        name, read = ("diabetes", real("diabetes")) if n == 442 else (f"{n:,} x {d}", simulated(n, d))
        made += [
            Line("least squares", name, read, learn.LeastSquares(), LinearRegression()),
            Line("ridge", name, read, learn.LeastSquares(ridge=1.0), Ridge(alpha=1.0)),
            Line("ridge, penalty chosen", name, read, learn.Ridge(), RidgeCV(learn.Ridge().penalties)),
            Line(
                "ridge, normalised",
                name,
                read,
                learn.Normalised(learn.LeastSquares(ridge=1.0), how="standard"),
                make_pipeline(StandardScaler(), Ridge(alpha=1.0)),
            ),
        ]
    classified = {name: real(name) for name in ("wine", "breast_cancer", "digits")}
    classified["20,000 x 50, 5 classes"] = simulated(20_000, 50, 5)
    for name, read in classified.items():
        peer = LogisticRegression(C=1.0, max_iter=1000)
        made.append(Line("logistic", name, read, logistic(name), peer))
        ours = learn.Normalised(logistic(name), how="standard")
        made.append(Line("logistic, normalised", name, read, ours, make_pipeline(StandardScaler(), peer)))
        made.append(Line("logistic, both near the minimum", name, read, logistic(name), exact_peer(1e-10)))
    near = {name: real(name) for name in ("diabetes", "wine", "breast_cancer", "digits")}
    near |= {"1000 x 8, zeros and ones": in_steps(1000, 8, 2), "1000 x 3, of 10 values": in_steps(1000, 3, 10)}
    near |= {f"{n:,} x {d}": simulated(n, d) for n, d in ((500, 50), (500, 300), (5000, 20), (20_000, 50))}
    few = ((5000, 2), (10_000, 6), (20_000, 1), (20_000, 3), (20_000, 8), (50_000, 2), (50_000, 3))
    near |= {f"{n:,} x {d}": simulated(n, d) for n, d in few}
    for name, read in near.items():
        kind = KNeighborsClassifier if name in ("wine", "breast_cancer", "digits") else KNeighborsRegressor
        for k in (5, 15):
            ours, peer = learn.Neighbours(k), kind(k)
            made.append(Line(f"{k} neighbours", name, read, ours, peer))
            ours = learn.Normalised(ours, how="standard")
            made.append(Line(f"{k} neighbours, normalised", name, read, ours, make_pipeline(StandardScaler(), peer)))
    for name, read in (
        ("wide, 100 x 1000", simulated(100, 1000)),
        ("wide, 200 x 200", simulated(200, 200)),
        ("one-hot, 1000 x 19", one_hot(1000, (4, 5, 6), 4)),
        ("one-hot, 1000 x 95", one_hot(1000, (20, 30, 40), 5)),
    ):
        penalties = learn.Ridge().penalties
        ways = {
            "least norm": (learn.LeastSquares(minimum_norm=True), LinearRegression()),
            "ridge": (learn.LeastSquares(ridge=1.0), Ridge(alpha=1.0)),
            "ridge, penalty chosen": (learn.Ridge(), RidgeCV(penalties)),
        }
        for learner, (ours, peer) in ways.items():
            made.append(Line(learner, name, read, ours, peer))
            scaled, theirs = learn.Normalised(ours, how="standard"), make_pipeline(StandardScaler(), peer)
            made.append(Line(f"{learner}, normalised", name, read, scaled, theirs))
    sizes = (
        (100, 1000, 2),
        (100, 1000, 5),
        (500, 300, 2),
        (500, 600, 2),
        (500, 1200, 3),
        (1000, 600, 3),
        (1000, 1500, 3),
        (5000, 30, 3),
        (8000, 20, 3),
        (10_000, 12, 2),
        (20_000, 20, 3),
        (30_000, 30, 2),
        (100_000, 10, 3),
    )
    for n, d, classes in sizes:
        name, ridge = f"{'wide, ' if d > n else ''}{shown(n)} x {d}, {classes} classes", 2.0 if classes == 2 else 1.0
        read, ours, peer = simulated(n, d, classes), learn.Logistic(ridge), LogisticRegression(max_iter=1000)
        made.append(Line("logistic", name, read, ours, peer))
        scaled, theirs = learn.Normalised(ours, how="standard"), make_pipeline(StandardScaler(), peer)
        made.append(Line("logistic, normalised", name, read, scaled, theirs))
    peer = LogisticRegression(C=np.inf, max_iter=1000)
    for n, d, classes in ((1000, 10, 2), (10_000, 12, 3), (30_000, 30, 3), (100_000, 10, 2)):
        name = f"{shown(n)} x {d}, {classes} classes"
        made.append(Line("logistic, no ridge", name, simulated(n, d, classes), learn.Logistic(ridge=0.0), peer))
    grid = {"n_neighbors": (1, 3, 5, 9, 15)}
    chosen = GridSearchCV(KNeighborsRegressor(), grid, cv=5, scoring="neg_mean_squared_error")
    for name, read in (("100 x 5", simulated(100, 5)), ("diabetes", real("diabetes"))):
        made.append(
            Line("neighbours, k chosen of all (theirs of 5, by 5 folds)", name, read, learn.Neighbours(), chosen)
        )
        ours = learn.Normalised(learn.Neighbours(), how="standard")
        made.append(
            Line("neighbours, k chosen of all, normalised", name, read, ours, make_pipeline(StandardScaler(), chosen))
        )
        at_most = learn.Neighbours(at_most=15)
        made.append(Line("neighbours, k chosen up to 15 (theirs of the same 5)", name, read, at_most, chosen))
        ours = learn.Normalised(at_most, how="standard")
        made.append(
            Line("neighbours, k chosen up to 15, normalised", name, read, ours, make_pipeline(StandardScaler(), chosen))
        )
    made += chosen_by_folds()
    made += networks()
    return made


def networks():
    """Lines of networks, beside those of scikit-learn where it has them and of PyTorch where that is installed."""
    made, torch = [], import_module("torch_networks") if find_spec("torch") else None
    options: dict[str, Any] = dict(hidden=SIZE, epochs=EPOCHS, batch=BATCH, rate=RATE)
    for name in ("diabetes", "wine", "breast_cancer"):
        classes, read = name != "diabetes", real(name)
        ours, learner = network(read(), classes), "network, adam, batches"
        made.append(Line(learner, name, read, ours, network_peer(classes)))
        if torch:
            peer = torch.Classification(**options) if classes else torch.Regression(**options)
            made.append(Line(f"{learner}; theirs PyTorch", name, read, ours, peer))
    read = real("diabetes")
    ours = network(read(), False, penalty=learn.L2(STRENGTH))
    made.append(Line("network with L2", "diabetes", read, ours, network_peer(False, STRENGTH * BATCH / read().n)))
    if not torch:
        return made
    menu = {
        "L2": (dict(penalty=learn.L2(STRENGTH)), dict(l2=STRENGTH)),
        "L1": (dict(penalty=learn.L1(STRENGTH)), dict(l1=STRENGTH)),
        "dropout": (dict(layers={"dropout": 0.2}), dict(dropout=0.2)),
        "noise": (dict(layers={"noise": 0.1}), dict(noise=0.1)),
        "batch norm": (dict(layers={"batch_norm": True}), dict(batch_norm=True)),
    }
    for word, (mine, theirs) in menu.items():
        peer = torch.Regression(**options, **theirs)
        made.append(
            Line(f"network with {word}; theirs PyTorch", "diabetes", read, network(read(), False, **mine), peer)
        )
    descent = learn.Descent(learn.MLP((SIZE,)), steps=500)
    for name in ("diabetes", "500 x 10"):
        read = real(name) if name == "diabetes" else simulated(500, 10)
        ours = learn.Normalised(learn.EarlyStopped(descent), how="standard")
        peer = torch.StoppedEarly(hidden=SIZE, steps=descent.steps, saves=descent.checkpoint_steps)
        made.append(Line("4 networks stopped early; theirs PyTorch", name, read, ours, peer))
    return made


def chosen_by_folds():
    """Lines of settings that are chosen by five folds of the cases of each row, beside a grid search."""
    made, penalties, numbers = [], (0.1, 1.0, 10.0, 100.0), (1, 3, 5, 9)
    counted = {"cv": 5, "scoring": "neg_mean_squared_error"}
    wide = simulated(100, 1000)
    for name, read in (("diabetes", real("diabetes")), ("500 x 50", simulated(500, 50)), ("wide, 100 x 1000", wide)):
        ours = learn.Tuned(learn.LeastSquares(), {"ridge": penalties})
        made.append(Line("ridge, by folds", name, read, ours, GridSearchCV(Ridge(), {"alpha": penalties}, **counted)))
        ours = learn.Tuned(learn.Normalised(learn.LeastSquares(), how="standard"), {"base.ridge": penalties})
        peer = make_pipeline(StandardScaler(), Ridge())
        made.append(
            Line(
                "ridge, by folds, normalised",
                name,
                read,
                ours,
                GridSearchCV(peer, {"ridge__alpha": penalties}, **counted),
            )
        )
        ours = learn.Tuned(learn.Neighbours(1), {"k": numbers})
        peer = GridSearchCV(KNeighborsRegressor(), {"n_neighbors": numbers}, **counted)
        made.append(Line("neighbours, by folds", name, read, ours, peer))
    classified = {name: real(name) for name in ("wine", "breast_cancer")}
    classified |= {
        "1000 x 100, 3 classes": simulated(1000, 100, 3),
        "wide, 100 x 1000, 5 classes": simulated(100, 1000, 5),
    }
    for name, read in classified.items():
        ridges, inverses = (0.1, 1.0, 10.0), {"C": (10.0, 1.0, 0.1)}
        ours = learn.Tuned(learn.Logistic(), {"ridge": ridges})
        peer = GridSearchCV(LogisticRegression(max_iter=1000), inverses, cv=5, scoring="neg_log_loss")
        made.append(Line("logistic, by folds", name, read, ours, peer))
    return made


def seconds(run):
    """Of a call."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def scored(peer, data, plan, **how):
    """Its scores by scikit-learn on the splits of a plan."""
    splits = [(train.nonzero()[0], test.nonzero()[0]) for train, test in zip(plan.train, plan.test, strict=True)]
    y = data.y.argmax(-1) if data.task == "classification" else data.y[:, 0]
    return cross_val_score(peer, data.x, y, cv=splits, **how)


def plan_of(kind, n):
    """The plan of a page for so many cases."""
    if kind == "half":
        return resample.leave_out(jax.random.key(0), n, 0.5, 100)
    folds, repeats = (10, 1) if kind == "once" else (10, 10) if n < SMALL else (5, 1)
    return resample.k_fold(jax.random.key(0), n, folds, repeats)


def measured(line, kind):
    """Median seconds of ours and of theirs, with one process and with one for each core, run in turn; and what the
    errors of test cases are on average.
    """
    data = line.read()
    plan = plan_of(kind, data.n)
    classified = data.task == "classification"
    scoring = "accuracy" if classified else "neg_mean_squared_error"
    ways: dict[str, Callable[[], Any]] = {
        "jaxgen": lambda: jg.assess(jax.random.key(1), line.ours, data, plan),
        "one process": lambda: scored(line.peer, data, plan, scoring=scoring),
        "all cores": lambda: scored(line.peer, data, plan, scoring=scoring, n_jobs=-1),
    }
    ways["jaxgen"]()  # compiles
    times, found = {name: [] for name in ways}, {}
    for round_number in range(ROUNDS):
        for name, run in ways.items():
            if round_number and times[name][0] > LONG:
                continue  # what takes long is timed once
            time.sleep(0.3)  # the waiting threads of one way's BLAS go to sleep before the next begins
            if not round_number or times[name][0] < BRIEF:
                run()  # some machines take from a process what it has in caches and memory while it waits
            begun = time.perf_counter()
            found[name] = run()
            times[name].append(time.perf_counter() - begun)
    medians = {name: float(np.median(values)) for name, values in times.items()}
    best = min(medians["one process"], medians["all cores"])
    errors = {
        "error": float(np.mean(found["jaxgen"].test_mean)),
        "their error": float(classified - np.mean(found["one process"])),
    }
    return (
        {"learner": line.learner, "data": line.data, "trainings": plan.resamples}
        | medians
        | {"times as fast": best / medians["jaxgen"]}
        | errors
    )


def choices():
    """Writes what learners cost that choose a number by leave-one-out."""
    watch, table = Watch(), pd.DataFrame(prices())
    text = "\n".join(
        [
            machine(),
            watch.line(),
            "",
            "Seconds of 100 rows, ten folds ten times, medians of nine calls in turn: with a given penalty or number",
            "of neighbours; by learn.Ridge with a single penalty; chosen by leave-one-out; and the ratio of that to",
            "a given one, of jaxgen and of scikit-learn (cross_val_score in one process, a penalty of 1 or 15",
            "neighbours).",
            "",
            table.to_string(index=False, float_format=lambda value: f"{value:.3g}"),
        ]
    )
    print(text)
    publish("choices.txt", text)


def ends(rows):
    """What a page with logistic regressions of real data says besides."""
    if not any(row["learner"].startswith("logistic") and row["data"] == "digits" for row in rows):
        return []
    distances = pd.DataFrame([from_minimum(name) for name in ("wine", "breast_cancer", "digits")])
    return [
        "",
        "Largest distance of a logit from that at the minimum, logistic regression of a fold of ten. The",
        'minimum is that of solver="newton-cholesky", tol=1e-13; scikit-learn by default, and with',
        'solver="newton-cg", tol=1e-10 ("both near the minimum" above).',
        "",
        distances.to_string(index=False, float_format=lambda value: f"{value:.1e}"),
    ]


def file_name(text):
    """A name without folders, for a page."""
    if Path(text).name != text:
        raise argparse.ArgumentTypeError(
            f"expected a name such as learners_neighbours.txt, got {text}; leave folders out"
        )
    return text


def main():
    parser = argparse.ArgumentParser(description="Every learner beside its counterpart in scikit-learn")
    parser.add_argument(
        "--only", nargs="+", help="lines whose learner or data hold one of these; see --to", metavar="TEXT"
    )
    parser.add_argument("--plan", choices=list(PLANS), default="folds", help="how cases are resampled; see --to")
    parser.add_argument(
        "--to", type=file_name, help="a file of the results' folder, such as learners_neighbours.txt", metavar="FILE"
    )
    parser.add_argument("--choices", action="store_true", help="what a choice by leave-one-out costs, in choices.txt")
    arguments = parser.parse_args()
    only = arguments.only
    warnings.simplefilter("ignore")  # networks that scikit-learn would train for longer
    if arguments.choices:
        return choices()
    watch, rows = Watch(), []
    for line in lines():
        if only and not any(text in f"{line.learner}, {line.data}" for text in only):
            continue
        rows.append(measured(line, arguments.plan))
        watch.look()
        print(rows[-1], flush=True)
    text = "\n".join(
        [
            machine(),
            watch.line(),
            "",
            f"Seconds, the median of {ROUNDS} calls in turn (one, if it takes {LONG:.0f} s).",
            PLANS[arguments.plan],
            "scikit-learn: cross_val_score in one process, and one for each core, which had been started; times as",
            "fast is against the faster of the two. jaxgen predicts all cases of every row and gives every loss,",
            "scikit-learn scores those that are tested. Errors are means over test cases and rows, of squared errors",
            "or of cases in the wrong class.",
            f"Networks: {SIZE} tanh units, {EPOCHS} epochs of batches of {BATCH} by adam, or 4 networks of 500 steps",
            "each; PyTorch by a loop as its tutorials have it, in cross_val_score (torch_networks.py), one thread a",
            "process.",
            "",
            pd.DataFrame(rows).to_string(index=False, float_format=lambda value: f"{value:.3g}"),
            *ends(rows),
        ]
    )
    print(text)
    if arguments.to or not (only or arguments.plan != "folds"):
        publish(arguments.to or "learners.txt", text)


if __name__ == "__main__":
    main()
