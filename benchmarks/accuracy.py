"""Accuracy of jaxgen's networks beside those of scikit-learn, on real data: the same splits, shapes, optimiser,
penalty and steps.

    python benchmarks/accuracy.py

prints a table and writes it to benchmarks/results/accuracy.txt.
"""

import time
import warnings
from pathlib import Path

import jax
import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from speed import machine

import jaxgen as jg
from jaxgen import datasets, learn, loss, resample

RESULTS = Path(__file__).parent / "results"
HIDDEN, STEPS, RATE, PENALTY, SPLITS = 20, 500, 0.01, 1.0, 40


def network(objective):
    """20 tanh units trained by Adam on all cases of standardised data, with an L2 penalty."""
    adam = learn.Optax("adam", learning_rate=RATE)
    descent = learn.Descent(
        learn.MLP((HIDDEN,), init="glorot"), steps=STEPS, optimiser=adam, objective=objective, penalty=learn.L2(PENALTY)
    )
    return learn.Normalised(descent, how="standard")


def peer(task, cases):
    """The same network of scikit-learn, in a pipeline."""
    kind = MLPClassifier if task == "classification" else MLPRegressor
    made = kind(
        hidden_layer_sizes=(HIDDEN,),
        activation="tanh",
        solver="adam",
        alpha=PENALTY,
        batch_size=cases,
        learning_rate_init=RATE,
        max_iter=STEPS,
        tol=0,
        n_iter_no_change=STEPS,
        random_state=0,
    )
    return pipeline(made, task)


def pipeline(made, task):
    """With standardised inputs and, for a regression, targets."""
    piped = make_pipeline(StandardScaler(), made)
    return piped if task == "classification" else TransformedTargetRegressor(piped, transformer=StandardScaler())


def peer_losses(make, data, plan, measure):
    """Test loss of every split by a loop over scikit-learn fits, [R]."""
    found = []
    for train, test in zip(plan.train > 0, plan.test > 0, strict=True):
        if data.task == "classification":
            fitted = make(int(train.sum())).fit(data.x[train], data.y[train].argmax(1))
            predicted = fitted.predict_proba(data.x[test])
        else:
            predicted = make(int(train.sum())).fit(data.x[train], data.y[train, 0]).predict(data.x[test])[:, None]
        found.append(float(np.mean(measure(data.y[test], predicted))))
    return np.array(found)


def rows(name, objective, measure):
    """Lines of one data set: our network, theirs, and both linear models."""
    data = getattr(datasets, name)()
    plan = resample.leave_out(jax.random.key(7), data.n, 0.25, SPLITS)
    linear = (
        learn.Normalised(learn.Logistic(ridge=PENALTY), how="standard")
        if data.task == "classification"
        else learn.Normalised(learn.LeastSquares(ridge=PENALTY), how="standard")
    )
    peer_linear = LogisticRegression(C=1 / PENALTY, max_iter=5000) if data.task == "classification" else Ridge(PENALTY)
    found = []
    for kind, ours, theirs in (
        ("network", network(objective), lambda cases: peer(data.task, cases)),
        ("linear", linear, lambda cases: pipeline(peer_linear, data.task)),
    ):
        jg.assess(jax.random.key(1), ours, data, plan, measure)
        start = time.perf_counter()
        g = jg.assess(jax.random.key(1), ours, data, plan, measure).g
        middle = time.perf_counter()
        other = peer_losses(theirs, data, plan, measure)
        seconds = middle - start, time.perf_counter() - middle
        difference = g - other
        # The splits share cases: the corrected standard error of Nadeau & Bengio 2003.
        error = np.sqrt(np.var(difference, ddof=1) * (1 / SPLITS + plan.test_sizes[0] / plan.train_sizes[0]))
        found.append(
            f"{name:15}{kind:9}{measure.__name__:14}{g.mean():12.4f}{other.mean():14.4f}{difference.mean():12.4f} "
            f"+- {error:<10.4f}{seconds[0]:8.2f}{seconds[1]:10.2f}"
        )
    return found


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines = [
        machine(),
        "",
        f"Mean test loss over {SPLITS} random splits that leave out a quarter; "
        f"{HIDDEN} tanh units, {STEPS} steps of Adam on all cases, rate {RATE}, L2 penalty {PENALTY}",
    ]
    lines += [
        f"{'data':15}{'model':9}{'loss':14}{'jaxgen':>12}{'scikit-learn':>14}"
        f"{'difference +- standard error':>29}{'seconds':>9}{'theirs':>10}"
    ]
    for name, objective, measures in (
        ("digits", "softmax_cross_entropy", (loss.zero_one, loss.cross_entropy)),
        ("breast_cancer", "softmax_cross_entropy", (loss.zero_one, loss.cross_entropy)),
        ("diabetes", "squared", (loss.squared,)),
    ):
        for measure in measures:
            lines += rows(name, objective, measure)
    lines += [
        "(for two classes scikit-learn has one output and ours one per class, so that the same "
        "penalty counts half; networks start from other random numbers)"
    ]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    (RESULTS / "accuracy.txt").write_text(text)


if __name__ == "__main__":
    main()
