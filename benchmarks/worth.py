"""Which cases are mislabelled? Every number of `stats.worth` on data with flipped labels, beside pyDVL and OpenDataVal:
area under the ROC curve and time, with the same data, kind of learner and number of trainings.

    python benchmarks/worth.py [breast_cancer digits diabetes] [--quick] [--trainings N]
                               [--pydvl PYTHON] [--opendataval PYTHON]

prints a page for each data set and writes it to benchmarks/results/worth_NAME.txt, with figures. The last two options
name interpreters that have these packages; without them the peers are left out, which the page says. They take most of
the time: some 4 minutes of a core for each data set with 300 trainings, the default; --trainings takes fewer on both
sides. --quick takes few trainings of one data set and writes nothing.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from quiet import Watch, publish
from speed import machine

import jaxgen as jg
from jaxgen import datasets, learn, loss, plot, resample
from jaxgen.stats import worth

HIDDEN, STEPS, RATE, PENALTY = 20, 200, 0.01, 0.1
FLIPPED, SMALLEST, FEW, MORE = 0.1, 20, 300, 5000
DATA = ["breast_cancer", "digits", "diabetes"]


class Problem(NamedTuple):
    """A data set with T training cases, some of them spoiled, before its value cases."""

    name: str
    data: jg.Data
    train: int
    wrong: np.ndarray

    @property
    def classes(self):
        return self.data.y.shape[1] if self.data.task == "classification" else 0


def problem(name, train, value, seed=0):
    """A tenth of the labels is another class by chance; of diabetes, a tenth of the targets is mirrored at the middle
    of their range. Inputs, and targets of a regression, have mean 0 and variance 1 over the training cases.
    """
    rng, data = np.random.default_rng(seed), getattr(datasets, name)()
    cases = rng.permutation(data.n)[: train + value]
    x, y = data.x[cases].astype(float), data.y[cases].astype(float)
    wrong = rng.choice(train, round(FLIPPED * train), replace=False)
    if data.task == "classification":
        classes = y.shape[1]
        y[wrong] = np.eye(classes)[(y[wrong].argmax(1) + rng.integers(1, classes, len(wrong))) % classes]
    else:
        y[wrong] = y.max(0) + y.min(0) - y[wrong]
        y = (y - y[:train].mean(0)) / y[:train].std(0)
    spread = x[:train].std(0)
    x = (x[:, spread > 0] - x[:train, spread > 0].mean(0)) / spread[spread > 0]
    return Problem(name, datasets.from_arrays(x, y, task=data.task), train, np.isin(np.arange(train), wrong))


def learner(kind, task, classes):
    """A linear model with a ridge, or the network that scikit-learn's MLP is too.

    Of more than two classes a small subset often lacks one, whose intercept then has no finite value.
    """
    if kind == "linear":
        logistic = learn.Logistic(ridge=1.0, intercept=classes == 2)
        return logistic if task == "classification" else learn.LeastSquares(ridge=1.0)
    return learn.Descent(
        learn.MLP((HIDDEN,), init="glorot"),
        steps=STEPS,
        optimiser=learn.Optax("adam", learning_rate=RATE),
        objective="softmax_cross_entropy" if task == "classification" else "squared",
        penalty=learn.L2(PENALTY),
    )


def area(values, wrong):
    """How often a spoiled case is worth less than another: AUC, with the standard error of Hanley & McNeil 1982."""
    below = (values[wrong, None] < values[~wrong]) + 0.5 * (values[wrong, None] == values[~wrong])
    auc, m, n = below.mean(), wrong.sum(), (~wrong).sum()
    one, two = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    error = np.sqrt((auc * (1 - auc) + (m - 1) * (one - auc**2) + (n - 1) * (two - auc**2)) / (m * n))
    return f"{auc:.3f} +- {error:.3f}"


def plans(of, trainings):
    """Half samples, and subsets of all sizes from SMALLEST, at least two of each."""
    value = range(of.train, of.data.n)
    least = 2 * (of.train - SMALLEST + 1)
    return (
        resample.half_samples(jax.random.key(1), of.data.n, trainings, value),
        resample.by_size(jax.random.key(2), of.data.n, max(trainings, least), value, smallest=SMALLEST),
    )


class Clock:
    """Seconds, and seconds of all cores together, since it was made."""

    def __init__(self):
        self.begun = np.array([time.perf_counter(), time.process_time()])

    def read(self):
        return np.array([time.perf_counter(), time.process_time()]) - self.begun


def assessed(of, kind, plan):
    """Losses; the seconds of the first call, with its compilation; seconds and core seconds of the second."""
    score, clocks = loss.cross_entropy if of.classes else loss.squared, []
    for _ in range(2):
        clock = Clock()
        losses = jg.assess(
            jax.random.key(3),
            learner(kind, of.data.task, of.classes),
            of.data,
            plan,
            score,
            keep="predictions",
            progress=False,
        )
        clocks.append(clock.read())
    return losses, clocks[0][0], clocks[1]


def ours(of, kind, trainings, figures):
    """Lines of one problem and learner."""
    halves, sizes = plans(of, trainings)
    losses, first, seconds = assessed(of, kind, halves)
    graded, _, by_size_seconds = assessed(of, kind, sizes)
    worst = -np.log(of.classes) if of.classes else -float(np.mean(of.data.y[of.train :] ** 2))
    found = {
        "out-of-bag": lambda: worth.out_of_bag(losses),
        "memorisation": lambda: worth.memorisation(losses),
        "Banzhaf": lambda: worth.banzhaf(losses),
        "Shapley": lambda: worth.shapley(graded, empty=worst),
        "Beta(4, 1)-Shapley": lambda: worth.beta_shapley(graded, 4, 1, empty=worst),
        "datamodels": lambda: worth.datamodels(losses, tested=range(of.train, of.data.n)),
    }
    if of.classes:
        found["out-of-bag, 0-1 loss"] = lambda: worth.out_of_bag(losses.with_loss(loss.zero_one, of.data.y))
        found["Banzhaf, 0-1 loss"] = lambda: worth.banzhaf(losses.with_loss(loss.zero_one, of.data.y))
    lines = []
    for name, method in found.items():
        clock = Clock()
        values = method()
        statistic = clock.read()
        estimate = values.estimate.mean(1) if name == "datamodels" else values.estimate
        noise = "" if name == "datamodels" else f"noise {values.noise_share:4.0%}"
        used = by_size_seconds if "Shapley" in name else seconds
        rows = (graded if "Shapley" in name else losses).resamples
        sign = -1 if name == "memorisation" else 1
        note = noise or f"score {values.score.mean():.2f}"
        lines.append(line(f"jaxgen {name}", rows, used + statistic, area(sign * estimate, of.wrong), note))
        if figures is not None and name == "Banzhaf":
            figures[kind] = plot.case_worths(values, marked=np.flatnonzero(of.wrong).tolist()).figure
    if figures is not None and (of.name, kind) == ("digits", "network"):
        labels = [str(digit) for digit in of.data.y.argmax(1)]
        figures["influence"] = plot.influence_map(worth.influence(losses), labels=labels).figure
    if trainings == MORE:
        lines += spread(of, losses)
    return [f"  (the first call of assess, with its compilation, took {first:.1f} s)", *lines]


def spread(of, losses):
    """How much the AUC of Banzhaf values varies from one set of trainings to the next, for each utility."""
    utilities = {"cross-entropy": losses, "0-1 loss": losses.with_loss(loss.zero_one, of.data.y)} if of.classes else {}
    inside, lines = losses.train[:, : of.train] > 0, []
    for name, scored in (utilities or {"squared error": losses}).items():
        utility, found = -scored.values[:, of.train :].mean(1), []
        for begin in range(0, MORE - FEW + 1, FEW):
            rows = slice(begin, begin + FEW)
            some, others = inside[rows].astype(float), 1.0 - inside[rows]
            values = utility[rows] @ some / some.sum(0) - utility[rows] @ others / others.sum(0)
            found.append(float(area(values, of.wrong).split()[0]))
        lines.append(
            f"  AUC of Banzhaf values with the {name} as utility, from {len(found)} separate sets of {FEW} of these "
            f"trainings: {np.mean(found):.3f}, sd {np.std(found, ddof=1):.3f}"
        )
    return lines


def line(name, rows, seconds, auc, note=""):
    return f"  {name:32}{rows:10}{seconds[0]:10.2f}{seconds[1]:10.2f}   {auc:18}{note}".rstrip()


def peers(of, kind, trainings, interpreters):
    """Lines of what pyDVL and OpenDataVal find, and what they said of their versions."""
    arrays = {
        "x": of.data.x[: of.train],
        "x_value": of.data.x[of.train :],
        "classes": np.arange(of.classes),
        "learner": kind,
        "trainings": trainings,
        "hidden": HIDDEN,
        "steps": STEPS,
        "rate": RATE,
        "penalty": PENALTY,
    }
    y = of.data.y.argmax(1) if of.classes else of.data.y[:, 0]
    arrays |= {"y": y[: of.train], "y_value": y[of.train :]}
    lines, versions = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        np.savez(path, **arrays)
        for package, interpreter in interpreters.items():
            done = subprocess.run(
                [interpreter, str(Path(__file__).parent / "worth_peers.py"), package, str(path)],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}},
            )
            told = [json.loads(each) for each in done.stdout.splitlines()]
            versions += [told[0][0]] if told else []
            lines += [line(name, trainings, times, area(np.array(v), of.wrong)) for name, *times, v in told[1:]]
            if done.returncode:
                lines.append(f"  {package} stopped: {done.stderr.strip().splitlines()[-1][:90]}")
    return lines, versions


def page(name, trainings, interpreters, quick):
    """The text of one data set, and its figures."""
    watch, figures = Watch(), None if quick else {}
    of = problem(name, *((40, 40) if quick else (150, 150)))
    value, lines, versions = of.data.n - of.train, [], []
    for kind in ("linear", "network"):
        found = ours(of, kind, trainings, figures)
        compared = kind == "network" or name == "breast_cancer"
        theirs, said = peers(of, kind, trainings, interpreters if compared else {})
        many = [] if quick else ours(of, kind, MORE, None)
        spoiled = f"{int(of.wrong.sum())} of {of.train} training cases spoiled, {value} value cases"
        head = f"  {'':32}{'trainings':>10}{'seconds':>10}{'core s':>10}   AUC"
        lines += ["", f"{name}, {kind}: {spoiled}", head, *found, *theirs, *many]
        versions = said or versions
        watch.look()
    missing = [package for package in ("pydvl", "opendataval") if package not in interpreters]
    head = [machine(), watch.line(), f"beside {', '.join(versions)}" if versions else ""]
    head += [f"not beside {package}, for which no interpreter was named" for package in missing]
    return "\n".join([*filter(None, head), "", *EXPLAINED, *lines]), figures


def main():
    parser = argparse.ArgumentParser(description="Which cases are mislabelled, beside pyDVL and OpenDataVal.")
    parser.add_argument("data", nargs="*", default=DATA, help=f"data sets; without any, {', '.join(DATA)}")
    parser.add_argument("--quick", action="store_true", help="one data set, few trainings; writes nothing")
    parser.add_argument("--trainings", type=int, default=FEW, help="of each number, on both sides")
    parser.add_argument("--pydvl", help="an interpreter that has pyDVL")
    parser.add_argument("--opendataval", help="an interpreter that has OpenDataVal")
    options = parser.parse_args()
    interpreters = {
        name: getattr(options, name) for name in ("pydvl", "opendataval") if getattr(options, name) is not None
    }
    for name in options.data[: 1 if options.quick else None]:
        text, figures = page(name, 60 if options.quick else options.trainings, interpreters, options.quick)
        print(text, flush=True)
        if not options.quick:
            publish(f"worth_{name}.txt", text, figures)


EXPLAINED = [
    f"Networks: {HIDDEN} tanh units, {STEPS} steps of Adam on all cases, rate {RATE}, L2 penalty {PENALTY}.",
    "Linear: ridge 1, without intercepts where there are more than two classes; the peers with it on breast_cancer",
    "only. AUC: how often a spoiled case gets a lower value than another, with the standard error of Hanley & McNeil.",
    "Seconds: of the second call of assess and of the number itself; of the peers without their imports.",
    "Core seconds: of all cores together, which other work on the machine",
    "changes less; peers run on one core. All numbers of jaxgen but Shapley values come from the same trainings. Its",
    "utility is minus the mean cross-entropy or squared error; that of the peers is accuracy, as of the rows with 0-1",
    "loss, or minus the squared error. The estimator of Banzhaf values and the law of the subsets are the same in all.",
    f"Subsets of fewer than {SMALLEST} cases count as chance in Shapley values. noise: the Monte Carlo share of the",
    "variance of the values over cases.",
]

if __name__ == "__main__":
    main()
