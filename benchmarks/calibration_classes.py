"""Data sets of two classes whose truth is known, and logistic regressions trained on the rows of several plans of each;
see `calibration_strata.py` and `calibration_metrics.py`.

Inputs are normal; the first tells the classes apart, by means that differ by one standard deviation, and others do not.
Scores of a linear rule are normal in each class, so that every measure of it in the population is a formula.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

import jaxgen as jg
from jaxgen import learn, resample

LOGISTIC = learn.Normalised(learn.Logistic(ridge=1.0))
FEWEST = 6
"""Cases of each class that every data set has at least."""


class Rules(NamedTuple):
    """Linear rules: intercept [...] and weights [..., D] of the log odds of the second class."""

    intercept: np.ndarray
    weights: np.ndarray


def drawn(random, n, share, sets, inputs=2):
    """Inputs [sets, n, inputs], of which the first half tells the classes apart, and classes [sets, n]."""
    label = np.stack([_classes(random, n, share) for _ in range(sets)])
    shift = np.repeat([1.0, 0.0], inputs // 2)
    return random.normal(size=(sets, n, inputs)) + label[..., None] * shift, label


def _classes(random, n, share):
    while True:
        label = (random.random(n) < share).astype(int)
        if FEWEST <= label.sum() <= n - FEWEST:
            return label


def assessed(key, learner, x, label, plans):
    """Losses of each data set for each of its plans, with predictions: a list over data sets of lists over plans, whose
    number and rows are the same for all; and the targets, [sets, n, 2].

    Beside its cases each data set has points that no row trains on or tests, from whose predictions the linear rule of
    every row is read.
    """
    sets, n, d = x.shape
    points = np.concatenate([np.zeros((1, d)), np.eye(d)])
    x = np.concatenate([x, np.broadcast_to(points, (sets, *points.shape))], axis=1)
    y = np.eye(2)[np.pad(label, ((0, 0), (0, len(points))))]
    train, test = (
        np.pad(
            np.stack([np.concatenate([getattr(plan, name) for plan in each]) for each in plans]),
            ((0, 0), (0, 0), (0, len(points))),
        )
        for name in ("train", "test")
    )
    names = tuple(f"x{i}" for i in range(d))
    data = jg.Data(x, y, names, task="classification", classes=("a", "b"))
    together = resample.from_weights(train, test)
    losses = jg.assess(key, learner, data, together, "zero_one", keep="predictions", progress=False)
    return [list(_apart(losses[q], plans[q], n)) for q in range(sets)], y[:, :n]


def _apart(losses, plans, n):
    """The losses of each plan of one data set, and the linear rules of its rows."""
    start = 0
    for plan in plans:
        rows = slice(start, start := start + plan.resamples)
        predicted = losses.predictions[rows].astype(np.float64)
        found = replace(
            losses,
            test_mean=losses.test_mean[rows],
            train_mean=losses.train_mean[rows],
            failure=losses.failure[rows],
            values=losses.values[rows, :n],
            predictions=predicted[:, :n],
            info={},
            plan=plan,
        )
        at_points = logit(np.clip(predicted[:, n:, 1], 1e-12, 1 - 1e-12))
        yield found, Rules(at_points[:, 0], at_points[:, 1:] - at_points[:, :1])


def rates(rules, shift):
    """The shares of the first and of the second class that rules decide to be the second, each [...]."""
    size = np.maximum(np.linalg.norm(rules.weights, axis=-1), 1e-300)
    return norm.cdf(rules.intercept / size), norm.cdf((rules.intercept + rules.weights @ shift) / size)


def error_rate(rules, shift, share):
    """Of the population with this share of the second class, [...]."""
    false, true = rates(rules, shift)
    return (1 - share) * false + share * (1 - true)


def log_loss(rules, shift, share):
    """Of the population, [...]: by Gauss-Hermite quadrature of the normal scores."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    spread = np.linalg.norm(rules.weights, axis=-1)[..., None] * nodes
    middle = rules.intercept[..., None]
    of_first = -np.log(np.maximum(expit(-(middle + spread)), 1e-300))
    of_second = -np.log(np.maximum(expit(middle + (rules.weights @ shift)[..., None] + spread), 1e-300))
    return ((1 - share) * of_first + share * of_second) @ weights / weights.sum()


def keys(seed, number):
    """Keys for the plans and for the training of one data set, or of a block of them."""
    return jax.random.split(jax.random.fold_in(jax.random.key(seed), number), 12)
