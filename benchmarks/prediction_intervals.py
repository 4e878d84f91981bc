"""Prediction intervals of new cases: coverage and width of the jackknife+, CV+, the jackknife+-after-bootstrap and
split conformal prediction, for least squares and networks, beside MAPIE on the same splits.

    python benchmarks/prediction_intervals.py            some minutes; MAPIE only where it can be imported
    python benchmarks/prediction_intervals.py --quick    small, and writes nothing

with --halves and --sets for other numbers of random halves and of simulated data sets than 20 and 100,

prints its results and writes benchmarks/results/prediction_intervals.txt and a figure.
"""

import argparse
import time
import warnings
from dataclasses import replace

import jax
import numpy as np
import scipy.stats
from accuracy import HIDDEN, PENALTY, RATE, STEPS, network, peer
from quiet import Watch, publish
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import LeaveOneOut, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from speed import machine

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample
from jaxgen.stats import conformal

try:
    import mapie
    from mapie.classification import CrossConformalClassifier, SplitConformalClassifier
    from mapie.regression import CrossConformalRegressor, JackknifeAfterBootstrapRegressor, SplitConformalRegressor
    from mapie.subsample import Subsample
except ImportError:
    mapie = None

LEVEL, FOLDS, SAMPLES, NOISE, INPUTS, PEER_CASES = 0.9, 10, 100, 0.5, 5, 100
KEY = jax.random.key(0)
LEARNERS = {"least squares": learn.LeastSquares(), f"{HIDDEN} tanh units": network("squared")}
METHODS = {
    "jackknife+": (conformal.jackknife_plus, resample.leave_one_out),
    f"CV+, {FOLDS} folds": (conformal.cv_plus, lambda n: resample.k_fold(KEY, n, FOLDS)),
    f"J+aB, {SAMPLES} samples": (
        conformal.jackknife_plus_after_bootstrap,
        lambda n: resample.bootstrap(KEY, n, SAMPLES),
    ),
    "split, halves": (conformal.split, lambda n: resample.leave_out(KEY, n, 0.5, 1)),
}


def halves(data, count):
    """A training and a test half of the data, x [count, n, D] each, by random divisions."""
    plan = resample.leave_out(jax.random.key(7), data.n, 0.5, count)
    order = np.argsort(plan.test, axis=1, kind="stable")
    n = int(plan.train_sizes[0])
    return tuple(replace(data, x=data.x[part], y=data.y[part]) for part in (order[:, :n], order[:, n:]))


def expectation(x):
    """The target without noise, [..., N, 1], of inputs [..., N, D]."""
    return (x[..., :1] + np.sin(2 * x[..., 1:2]) + x[..., 2:3] * x[..., 3:4]) / 2


def simulated(sets, n, m):
    """Data sets x [sets, n, D] of that law with normal noise, and m new cases of each."""
    random = np.random.default_rng(0)
    x = random.normal(size=(sets, n + m, INPUTS))
    data = jg.Data(x, expectation(x) + NOISE * random.normal(size=(sets, n + m, 1)), tuple("abcde"))
    return tuple(replace(data, x=data.x[:, part], y=data.y[:, part]) for part in (slice(n), slice(n, None)))


def of_diabetes(found, new):
    """The share of the new cases of each half that is covered, [count]."""
    return found.covers(new.y).mean((1, 2))


def of_truth(found, new):
    """The probability to cover, by the known law, of each data set, [count]."""
    law = scipy.stats.norm(expectation(new.x), NOISE)
    return (law.cdf(found.upper) - law.cdf(found.lower)).mean((1, 2))


def table(train, new, coverage):
    """Coverage and width of every learner and method over the data sets, and networks a second."""
    lines = [f"{'learner':16}{'method':22}{'proven':>8}{'covers':>9}{'s.e.':>7}{'lowest':>9}{'width':>9}{'s.e.':>8}"]
    for name, learner in LEARNERS.items():
        for method, (function, plan_of) in METHODS.items():
            plan = plan_of(train.n)
            found = function(jg.predict(KEY, learner, train, plan, new), level=LEVEL)
            covered, width = coverage(found, new), np.median(found.width, axis=(1, 2))
            errors = [values.std(ddof=1) / np.sqrt(len(values)) for values in (covered, width)]
            lines.append(
                f"{name:16}{method:22}{found.guarantee:8.3f}{covered.mean():9.3f}{errors[0]:7.3f}{covered.min():9.3f}"
                f"{width.mean():9.4g}{errors[1]:8.2g}"
            )
    return lines


def seconds(call):
    """What a call returns, and how long it took."""
    begun = time.perf_counter()
    found = call()
    return found, time.perf_counter() - begun


def ours(learner, train, method, new):
    """The intervals of one data set: what users wait for."""
    function, plan_of = METHODS[method]
    return function(jg.predict(KEY, learner, train, plan_of(train.n), new.x), level=LEVEL)


def theirs(model, train, method, new):
    """The same of MAPIE on the same splits, limits [2, M]."""
    x, y = train.x, train.y[:, 0]
    plan = METHODS[method][1](train.n)
    if method.startswith("split"):
        held = plan.test[0] > 0
        fitted = model.fit(x[~held], y[~held])
        made = SplitConformalRegressor(fitted, confidence_level=LEVEL, prefit=True).conformalize(x[held], y[held])
    elif method.startswith("J+aB"):

        class Given(Subsample):
            """The same bootstrap samples."""

            def split(self, *_):
                for weights in plan.train:
                    yield np.repeat(np.arange(len(weights)), weights), np.flatnonzero(weights == 0)

        given = Given(n_resamplings=SAMPLES)
        made = JackknifeAfterBootstrapRegressor(model, confidence_level=LEVEL, resampling=given).fit_conformalize(x, y)
    else:
        folds = LeaveOneOut() if method == "jackknife+" else PredefinedSplit(plan.test.argmax(0))
        made = CrossConformalRegressor(model, confidence_level=LEVEL, cv=folds).fit_conformalize(x, y)
    return made.predict_interval(new.x)[1][:, :, 0].T


def beside_mapie(train, new):
    """Coverage, width and seconds of both on one half, and how far their limits are apart."""
    models = {"least squares": lambda n: LinearRegression(), f"{HIDDEN} tanh units": lambda n: peer("regression", n)}
    lines = [
        f"{'learner':16}{'method':22}{'covers':>8}{'MAPIE':>8}{'width':>8}{'MAPIE':>8}{'apart':>10}{'first call':>12}"
        f"{'seconds':>9}{'MAPIE':>8}{'faster':>8}"
    ]
    for name, learner in LEARNERS.items():
        for method in METHODS:
            _, first = seconds(lambda: ours(learner, train, method, new))  # noqa: B023
            found, warm = seconds(lambda: ours(learner, train, method, new))  # noqa: B023
            (lower, upper), slow = seconds(lambda: theirs(models[name](train.n), train, method, new))  # noqa: B023
            inside = ((lower <= new.y[:, 0]) & (new.y[:, 0] <= upper)).mean()
            apart = max(np.abs(found.lower[:, 0] - lower).max(), np.abs(found.upper[:, 0] - upper).max())
            lines.append(
                f"{name:16}{method:22}{found.covers(new.y).mean():8.3f}{inside:8.3f}{np.median(found.width):8.1f}"
                f"{np.median(upper - lower):8.1f}{apart:10.1e}{first:12.2f}{warm:9.3f}{slow:8.2f}{slow / warm:8.0f}"
            )
    return lines


def classes(count):
    """Coverage and size of sets for the cultivars of wine, over random halves."""
    train, new = halves(datasets.wine(), count)
    learner = learn.Normalised(learn.Logistic(ridge=1.0))
    lines = [f"{'method':34}{'proven':>8}{'covers':>9}{'s.e.':>7}{'classes':>9}{'empty':>8}"]
    for function, plan in (
        (conformal.cross_sets, resample.k_fold(KEY, train.n, FOLDS)),
        (conformal.split_sets, resample.leave_out(KEY, train.n, 0.5, 1)),
    ):
        predicted = jg.predict(KEY, learner, train, plan, new)
        for score in ("lac", "aps"):
            found = function(predicted, score=score, level=LEVEL)
            covered = found.covers(new.y).mean(-1)
            lines.append(
                f"{found.method:34}{found.guarantee:8.3f}{covered.mean():9.3f}"
                f"{covered.std(ddof=1) / np.sqrt(count):7.3f}{found.size.mean():9.3f}{(found.size == 0).mean():8.3f}"
            )
    return lines


def classes_beside_mapie():
    """In how many places the sets of both differ, from the probabilities of the same models of scikit-learn."""
    data = datasets.digits()
    order = np.random.default_rng(0).permutation(data.n)
    train, new = (replace(data, x=data.x[part], y=data.y[part]) for part in (order[:200], order[200:600]))
    y, model = train.y.argmax(1), make_pipeline(StandardScaler(), LogisticRegression(C=0.003))
    lines = []
    for name, plan in (
        ("split", resample.leave_out(KEY, train.n, 0.5, 1)),
        ("cross", resample.k_fold(KEY, train.n, FOLDS)),
    ):
        told = []
        for weights in plan.train:
            fitted = model.fit(train.x[weights > 0], y[weights > 0])
            told.append([fitted.predict_proba(one.x) for one in (train, new)])
        cases, of_new = (np.stack(one) for one in zip(*told, strict=True))
        given = jg.Predicted.from_predictions(
            train.y, cases, of_new, plan.train, plan.test, task="classification", classes=data.classes
        )
        mine = (conformal.split_sets if name == "split" else conformal.cross_sets)(given, level=LEVEL)
        if name == "split":
            held = plan.test[0] > 0
            made = SplitConformalClassifier(fitted, confidence_level=LEVEL).conformalize(train.x[held], y[held])
            other = made.predict_set(new.x)[1][:, :, 0]
        else:
            folds = PredefinedSplit(plan.test.argmax(0))
            made = CrossConformalClassifier(model, confidence_level=LEVEL, cv=folds).fit_conformalize(train.x, y)
            other = made.predict_set(new.x, agg_scores="crossval")[1][:, :, 0]
        truth = new.y.argmax(1)
        covered = other[np.arange(len(truth)), truth].mean()
        lines.append(
            f"{name}: {(mine.member != other).sum()} of {other.size} places differ; covers "
            f"{mine.covers(new.y).mean():.3f} and {covered:.3f}, {mine.size.mean():.3f} and {other.sum(1).mean():.3f} "
            "classes"
        )
    return lines


def report(count, sets, quick):
    """All lines of the page, and its figure."""
    watch = Watch()
    n, m = (30, 20) if quick else (60, 100)
    train, new = halves(datasets.diabetes(), count)
    if quick:
        train, new = (replace(one, x=one.x[:, :40], y=one.y[:, :40]) for one in (train, new))
    lines = [
        machine(),
        f"MAPIE {mapie.__version__}" if mapie else "MAPIE is not installed: nothing is set beside it",
        "Seeds: key(0) for plans and trainings, key(7) for halves, 0 for simulated data. "
        f"Level {LEVEL:.0%}. Networks: {HIDDEN} tanh units, {STEPS} steps of Adam, rate {RATE}, L2 penalty {PENALTY}.",
        "",
        f"1. Diabetes, {count} random halves of {train.n} cases and {new.n} new ones (the halves share cases: standard "
        "errors are too small)",
        *table(train, new, of_diabetes),
    ]
    data, others = simulated(sets, n, m)
    lines += [
        "",
        f"2. {sets} data sets of {n} cases, y = (x1 + sin 2 x2 + x3 x4) / 2 + noise of {NOISE}; the probability to "
        f"cover by the known law of {m} new cases each; who knows the law needs a width of "
        f"{2 * NOISE * scipy.stats.norm.ppf((1 + LEVEL) / 2):.4g}",
        *table(data, others, of_truth),
        "",
        f"3. Classes of wine, {count} random halves, Normalised(Logistic(ridge=1.0))",
        *classes(count),
    ]
    one, rest = train[0], new[0]
    few = replace(one, x=one.x[:PEER_CASES], y=one.y[:PEER_CASES])
    if mapie is not None:
        lines += [
            "",
            f"4. Beside MAPIE, cases of the first half of diabetes ({few.n} cases, {rest.n} new): scikit-learn's "
            "LinearRegression and MLPRegressor (other random numbers) on the same splits; seconds of a second call",
            *beside_mapie(few, rest),
            "",
            "5. Sets of the ten digits (200 cases, 400 new) from the same probabilities, score lac, ours first",
            *classes_beside_mapie(),
            "MAPIE's rule for folds asks #{s_i >= s} >= alpha (n - 1), the papers' #{s_i >= s} > alpha (n + 1) - 1.",
        ]
    plan = METHODS["jackknife+"][1](one.n)
    intervals = [
        conformal.jackknife_plus(jg.predict(KEY, learner, one, plan, rest), level=LEVEL)
        for learner in LEARNERS.values()
    ]
    labels = [f"jackknife+ of {name}" for name in LEARNERS]
    figure = plot.prediction_intervals(*intervals, labels=labels, y=rest.y).figure
    return "\n".join([*lines, "", watch.line()]), figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small, and writes nothing")
    parser.add_argument("--halves", type=int, default=20, help="random halves of real data")
    parser.add_argument("--sets", type=int, default=100, help="simulated data sets")
    asked = parser.parse_args()
    quick = asked.quick
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", message="Got `batch_size`")  # more than there are: all cases at once
    text, figure = report(*((3, 4) if quick else (asked.halves, asked.sets)), quick)
    print(text)
    if not quick:
        publish("prediction_intervals.txt", text, {"diabetes": figure})


if __name__ == "__main__":
    main()
