"""Ridge regression with a penalty for each input: its error against a loop, its gradient against differences."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import refused
from sklearn.linear_model import RidgeCV

from jaxgen import Data, assess, learn, resample
from jaxgen.learn import RidgePerInput

KEY = jax.random.key(0)
RANDOM = np.random.default_rng(0)
N = 24
X = RANDOM.normal(size=(N, 4)) * [1, 20, 0.1, 3] + [0, 5, -3, 1]
Y = X @ [[1.0, 0.5], [0.0, 0.1], [3.0, 0.0], [0.0, 0.0]] + RANDOM.normal(size=(N, 2)) + 10
W = (np.arange(N) % 3).astype(float)
RIDGES = np.array([0.5, 300.0, 0.02, 40.0])

error_of = jax.jit(lambda learner, *arrays: learner.error(*arrays), static_argnums=0)
fit = partial(jax.jit, static_argnums=0)(lambda learner, x, y, w: learner.fit(KEY, x, y, w))


def double(function, *arrays):
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, function(*map(jnp.asarray, arrays)))


def weights_of(x, y, w, ridges):
    """Weights and intercept by the normal equations in NumPy."""
    x_mean, y_mean = w @ x / w.sum(), w @ y / w.sum()
    a, b = x - x_mean, y - y_mean
    weights = np.linalg.solve((a.T * w) @ a + np.diag(ridges), (a.T * w) @ b)
    return weights, y_mean - x_mean @ weights


def hat_of(x, ridges):
    x = x - x.mean(0)
    return x @ np.linalg.solve(x.T @ x + np.diag(ridges), x.T) + 1 / len(x)


def test_the_error_is_that_of_a_loop_over_left_out_cases():
    """Weights of 0, 1 and 2, of which one is left out at a time; and generalized cross-validation by its formula."""
    losses = []
    for case in np.repeat(np.arange(N), W.astype(int)):
        weights, intercept = weights_of(X, Y, W - (np.arange(N) == case), RIDGES)
        losses.append(np.sum((Y[case] - X[case] @ weights - intercept) ** 2))
    got = double(partial(error_of, RidgePerInput()), RIDGES, X, Y, W)
    np.testing.assert_allclose(got, np.mean(losses), rtol=1e-9)  # two solutions of the normal equations
    repeated = np.repeat(np.arange(N), W.astype(int))
    hat = hat_of(X[repeated], RIDGES)
    residual = Y[repeated] - hat @ Y[repeated]
    want = np.sum(residual**2) / len(hat) / (1 - np.trace(hat) / len(hat)) ** 2
    np.testing.assert_allclose(double(partial(error_of, RidgePerInput("gcv")), RIDGES, X, Y, W), want, rtol=1e-9)


@pytest.mark.parametrize("by", ["leave_one_out", pytest.param("gcv", marks=pytest.mark.slow)])
def test_more_inputs_than_cases(by):
    """Errors and weights by the normal equations, and the start by scikit-learn's search."""
    random = np.random.default_rng(7)
    x, y = random.normal(size=(12, 30)) * np.geomspace(0.1, 30, 30) + 3, random.normal(size=(12, 2))
    w = np.array([0, 1, 1, 2, 1, 1, 1, 2, 1, 0, 1, 1.0])
    repeated = np.repeat(np.arange(12), w.astype(int))
    ridges = np.geomspace(40, 0.5, 30)
    hat = hat_of(x[repeated], ridges)
    residual = y[repeated] - hat @ y[repeated]
    out = np.diag(hat) if by == "leave_one_out" else np.full(len(hat), np.trace(hat) / len(hat))
    want = np.mean(np.sum((residual / (1 - out)[:, None]) ** 2, axis=1))
    np.testing.assert_allclose(double(partial(error_of, RidgePerInput(by)), ridges, x, y, w), want, rtol=1e-9)
    made = double(partial(fit, RidgePerInput(by)), x, y, w)
    weights, intercept = weights_of(x, y, w, made.ridges)
    np.testing.assert_allclose(made.weights, weights, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(made.intercept, intercept, rtol=1e-8)
    assert made.errors[1] < made.errors[0]
    if by == "leave_one_out":
        found = RidgeCV(RidgePerInput().penalties).fit(x[repeated], y[repeated])
        np.testing.assert_allclose(made.errors[0] / 2, -found.best_score_, rtol=1e-7)  # it takes the mean of targets


@pytest.mark.parametrize("by", ["leave_one_out", "gcv"])
def test_the_gradient_is_that_of_differences(by):
    """Of the fourth order, whose error is some 1e-9 for steps of 1e-3 of functions of size 1."""
    learner = RidgePerInput(by)

    def error(logarithms):
        return learner.error(jnp.exp(logarithms), *map(jnp.asarray, (X, Y, W)))

    with jax.enable_x64(True):
        place = jnp.log(jnp.asarray(RIDGES))
        value, got = jax.jit(jax.value_and_grad(error))(place)
        step = 1e-3 * jnp.eye(4)
        at = jax.jit(jax.vmap(error))
        differences = [at(place[None] + times * step) - at(place[None] - times * step) for times in (1, 2)]
        want = np.asarray(8 * differences[0] - differences[1]) / 12e-3
        got, value = np.asarray(got), float(value)
    assert np.abs(got).max() > 1e-3 * value
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8 * value)


@pytest.mark.parametrize("by", ["leave_one_out", "gcv"])
def test_the_search_ends_at_a_minimum_below_the_best_common_ridge(by):
    """SciPy's bounded quasi-Newton method from the same start finds no error that is less by a thousandth."""
    from scipy.optimize import minimize

    penalties = (0.1, 10.0, 1000.0)
    learner = RidgePerInput(by, penalties, steps=200)
    made = double(partial(fit, learner), X, Y, W)
    common = [double(partial(error_of, learner), np.full(4, ridge), X, Y, W) for ridge in penalties]
    np.testing.assert_allclose(made.errors[0], min(common), rtol=1e-9)
    assert made.errors[1] < made.errors[0]
    np.testing.assert_allclose(double(partial(error_of, learner), made.ridges, X, Y, W), made.errors[1], rtol=1e-8)
    weights, intercept = weights_of(X, Y, W, made.ridges)
    np.testing.assert_allclose(made.weights, weights, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(made.intercept, intercept, rtol=1e-8)
    used = W > 0
    size = np.sum(W[:, None] * (X - np.average(X[used], axis=0, weights=W[used])) ** 2, axis=0)
    start = np.full(4, np.log(penalties[int(np.argmin(common))]))
    bounds = [(low, high) for low, high in zip(np.log(size / 1e6), np.log(size * 1e6), strict=True)]
    found = minimize(
        lambda place: float(double(partial(error_of, learner), np.exp(place), X, Y, W)), start, bounds=bounds
    )
    assert made.errors[1] < found.fun * 1.001


def test_one_input_needs_one_ridge():
    """That of scikit-learn's search on a fine grid, within a step of it."""
    x, y = X[:, :1], Y[:, :1] + 3 * RANDOM.normal(size=(N, 1))
    grid = np.logspace(-4, 4, 801)
    want = RidgeCV(grid).fit(x, y[:, 0])
    got = double(partial(fit, RidgePerInput(penalties=(1.0,), steps=200)), x, y, np.ones(N))
    assert abs(np.log(got.ridges[0] / want.alpha_)) < 0.03
    np.testing.assert_allclose(got.errors[1], -want.best_score_, rtol=1e-5)


@pytest.mark.slow
def test_it_pays_where_most_inputs_do_not_count():
    """Of 15 inputs two count; 120 cases, 30 data sets: the risk is less by more than four standard errors."""
    random = np.random.default_rng(3)
    x = random.normal(size=(30, 400, 15))
    y = x[:, :, :2].sum(-1, keepdims=True) + np.sqrt(2) * random.normal(size=(30, 400, 1))
    train = np.zeros((1, 400), int)
    train[0, :120] = 1
    plan, data = resample.from_weights(train, 1 - train), Data(x, y, tuple(f"x{i}" for i in range(15)))
    own, common = (assess(KEY, learner, data, plan).g[:, 0] for learner in (RidgePerInput(steps=30), learn.Ridge()))
    assert np.mean(own - common) / np.std(own - common) * np.sqrt(30) < -4


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (lambda: RidgePerInput("cv"), "by of RidgePerInput to be one of 'leave_one_out', 'gcv', got 'cv'"),
        (lambda: RidgePerInput(penalties=()), "penalties as a tuple of numbers above 0"),
        (lambda: RidgePerInput(penalties=(0.0,)), "every penalty .* above 0, got 0.0"),
        (lambda: RidgePerInput(intercept=1), "intercept to be True or False, got 1"),
        (lambda: RidgePerInput(steps=0), r"the steps of RidgePerInput .* at least 1, got 0; use Ridge\(\)"),
        (lambda: RidgePerInput(rate="a"), "the rate of RidgePerInput .* above 0, got 'a'"),
    ],
)
def test_settings_are_refused_in_one_sentence(learner, message, own_messages):
    plan = resample.k_fold(KEY, N, folds=3)
    assert re.search(message, refused(lambda: assess(KEY, learner(), Data(X, Y, tuple("abcd")), plan)))
