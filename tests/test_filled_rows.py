"""Rows that fill missing inputs in with numbers of their own: together as by themselves, and as scikit-learn has it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jaxgen import Data, assess, learn, resample
from jaxgen.engine import run as engine

KEY = jax.random.key(0)


def with_gaps(n, d, whole=False, share=0.1):
    """Cases [n, d] of which some inputs are missing, and targets [n, 2]."""
    random = np.random.default_rng([n, d])
    x = random.integers(0, 3, (n, d)).astype(float) if whole else random.normal(size=(n, d)) + 3
    y = x @ random.normal(size=(d, 2)) / d**0.5 + random.normal(size=(n, 2))
    x[random.random(x.shape) < share] = np.nan
    x[:, -1] = np.nan_to_num(x[:, -1])  # an input that all cases have
    return Data(x, y, tuple(map(str, range(d))), missing=True)


def apart(monkeypatch):
    """Lets every row be trained by itself."""
    known = engine.way
    monkeypatch.setattr(engine, "way", lambda *given: known(*given)._replace(together=False, left_out=None, rows=1))


LEARNERS = {
    "k given": learn.Neighbours(3),
    "many": learn.Neighbours(25),
    "normalised": learn.Normalised(learn.Neighbours(3), how="standard"),
    "by medians": learn.Normalised(learn.Neighbours(3)),
    "chosen": learn.Neighbours(),
    "chosen of a few": learn.Neighbours(at_most=4),
    "chosen of a few, normalised": learn.Normalised(learn.Neighbours(at_most=4), how="standard"),
}


@pytest.mark.parametrize(("shape", "plan"), [((80, 4), "folds"), ((90, 30), "half"), ((40, 100), "bootstrap")], ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_rows_together_are_those_by_themselves(name, plan, shape, monkeypatch):
    data = with_gaps(*shape, whole=shape[1] == 4)
    plans = {
        "folds": resample.k_fold(KEY, data.n, 5, 2),
        "half": resample.leave_out(KEY, data.n, 0.5, 8),
        "bootstrap": resample.bootstrap(KEY, data.n, 8),
    }
    learner = learn.Imputed(LEARNERS[name], indicator=shape[1] == 30)
    together = assess(KEY, learner, data, plans[plan], keep="predictions")
    apart(monkeypatch)
    alone = assess(KEY, learner, data, plans[plan], keep="predictions")
    # The same neighbours; sums of 25 targets in another order.
    np.testing.assert_allclose(together.predictions, alone.predictions, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(together.info["neighbours"], alone.info["neighbours"])


@pytest.mark.parametrize("shape", [(80, 4), (90, 30), (40, 100), (60, 1000)], ids=str)
@pytest.mark.parametrize("normalised", [False, True])
def test_neighbours_are_those_of_a_pipeline(normalised, shape):
    data = with_gaps(*shape)
    plan = resample.k_fold(KEY, data.n, 5)
    inside = learn.Normalised(learn.Neighbours(4), how="standard") if normalised else learn.Neighbours(4)
    found = assess(KEY, learn.Imputed(inside), data, plan, keep="predictions").predictions
    steps = [StandardScaler()] if normalised else []
    peer = make_pipeline(SimpleImputer(), *steps, KNeighborsRegressor(4))
    splits = [(a.nonzero()[0], b.nonzero()[0]) for a, b in zip(plan.train, plan.test, strict=True)]
    want = cross_val_predict(peer, data.x, data.y, cv=splits)
    for row, (_, tested) in zip(found, splits, strict=True):
        # Means of four targets.
        np.testing.assert_allclose(row[tested], want[tested], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "ridge"),
    [((60, 4), 0.0), ((60, 4), 2.0), ((300, 40), 0.0), ((300, 40), 1e-6), ((30, 90), 1e-6), ((30, 90), 2.0)],
    ids=str,
)
def test_least_squares_are_those_of_a_pipeline(shape, ridge):
    data = with_gaps(*shape)
    plan = resample.k_fold(KEY, data.n, 5)
    found = assess(KEY, learn.Imputed(learn.LeastSquares(ridge=ridge)), data, plan, keep="predictions").predictions
    inside = Ridge(ridge, solver="svd") if ridge else LinearRegression()
    splits = [(a.nonzero()[0], b.nonzero()[0]) for a, b in zip(plan.train, plan.test, strict=True)]
    want = cross_val_predict(make_pipeline(SimpleImputer(), inside), data.x, data.y, cv=splits)
    for row, (_, tested) in zip(found, splits, strict=True):
        # Condition numbers of these data are below 100.
        np.testing.assert_allclose(row[tested], want[tested], rtol=0, atol=1e-9)


def classes_with_gaps(n, d, classes):
    """Cases [n, d] of so many classes, of which some inputs are missing, the first two together."""
    random = np.random.default_rng([n, d, classes])
    x = random.normal(size=(n, d)) + 3
    scores = (x - 3) @ random.normal(size=(d, classes)) / d**0.5 + random.gumbel(size=(n, classes))
    x[random.random(x.shape) < 0.1] = np.nan
    x[:, 1] = np.where(np.isnan(x[:, 0]), np.nan, np.nan_to_num(x[:, 1]))
    y = np.eye(classes)[scores.argmax(1)]
    names = tuple(f"class {number}" for number in range(classes))
    return Data(x, y, tuple(map(str, range(d))), task="classification", classes=names, missing=True)


LOGISTIC = {
    "two classes": ((90, 4, 2), learn.Logistic(ridge=0.5)),
    "without a ridge": ((300, 3, 2), learn.Logistic(ridge=0.0)),
    "without a constant": ((90, 4, 2), learn.Logistic(intercept=False)),
    "normalised": ((90, 4, 3), learn.Normalised(learn.Logistic(), how="standard")),
    "many unknowns": ((200, 40, 4), learn.Logistic()),
    "many unknowns, normalised": ((200, 40, 4), learn.Normalised(learn.Logistic(), how="standard")),
    "each row by itself": ((700, 90, 9), learn.Logistic(ridge=3.0)),
    "more inputs than cases": ((40, 90, 3), learn.Logistic()),
    "more inputs than cases, normalised": ((40, 90, 3), learn.Normalised(learn.Logistic(), how="standard")),
}


LARGER = (700, 90, 9), (60, 300, 3)


@pytest.mark.parametrize("plan", ["folds", pytest.param("bootstrap", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LOGISTIC)
def test_logistic_rows_together_are_those_by_themselves(name, plan, monkeypatch):
    shape, inside = LOGISTIC[name]
    data = classes_with_gaps(*shape)
    plans = {"folds": resample.k_fold(KEY, data.n, 10), "bootstrap": resample.bootstrap(KEY, data.n, 8)}
    learner = learn.Imputed(inside, indicator=name == "two classes")
    together = assess(KEY, learner, data, plans[plan], keep="predictions")
    apart(monkeypatch)
    alone = assess(KEY, learner, data, plans[plan], keep="predictions")
    # Conjugate gradients leave 1e-9 of the largest logit, of which these are some ten.
    np.testing.assert_allclose(together.predictions, alone.predictions, rtol=0, atol=1e-8)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(
    "shape",
    [(90, 4, 3), (200, 40, 4), (40, 90, 3), *(pytest.param(s, marks=pytest.mark.slow) for s in LARGER)],
    ids=str,
)
def test_logistic_regressions_are_those_of_a_pipeline(shape, normalised):
    data = classes_with_gaps(*shape)
    plan = resample.k_fold(KEY, data.n, 8, strata=data.y.argmax(1))
    inside = learn.Normalised(learn.Logistic(), how="standard") if normalised else learn.Logistic()
    found = assess(KEY, learn.Imputed(inside), data, plan, keep="predictions").predictions
    steps = [StandardScaler()] if normalised else []
    solver = "newton-cg" if data.d > data.n else "newton-cholesky"  # whose own equations are singular there
    peer = make_pipeline(SimpleImputer(), *steps, LogisticRegression(solver=solver, tol=1e-10, max_iter=10_000))
    splits = [(a.nonzero()[0], b.nonzero()[0]) for a, b in zip(plan.train, plan.test, strict=True)]
    want = cross_val_predict(peer, data.x, data.y.argmax(1), cv=splits, method="predict_proba")
    for row, (_, tested) in zip(found, splits, strict=True):
        # Both end near the minimum: what remains is 1e-8 of logits of some ten.
        np.testing.assert_allclose(row[tested], want[tested], rtol=0, atol=1e-6)


def test_a_row_that_knows_nothing_of_an_input_fails():
    data = with_gaps(40, 3)
    data.x[3:, 0] = np.nan
    data.x[:3, 0] = 1.0, 2.0, 3.0
    train = np.ones((3, 40), int)
    train[:, 10:15] = 0
    train[1, :3] = 0
    found = assess(KEY, learn.Imputed(learn.Neighbours(2)), data, resample.from_weights(train, train == 0))
    np.testing.assert_array_equal(found.failed, [False, True, False])


@pytest.mark.parametrize("scales", [(1.0, 1e-7), (1.0, 1.0)], ids=["ill-conditioned", "easy"])
@pytest.mark.parametrize("shape", [(60, 20), (120, 50), (20, 45)], ids=str)
def test_one_training_set_is_solved_as_numpy_does(shape, scales):
    """By products where they are exact enough, else by an orthonormal basis."""
    n, d = shape
    random = np.random.default_rng(d)
    x = random.normal(size=(n, d)) * np.geomspace(*scales, d)[None] @ np.linalg.qr(random.normal(size=(d, d)))[0]
    y, w, ridge = random.normal(size=(n, 2)), random.integers(0, 3, n).astype(float), 1e-4 if n < d else 0.0
    with jax.enable_x64(True):
        fit = learn.LeastSquares(ridge=ridge).fit(KEY, *map(jnp.asarray, (x, y, w)))
    share = w / w.sum()
    centred = np.sqrt(w)[:, None] * np.hstack([x - share @ x, y - share @ y])
    a, b = np.vstack([centred[:, :d], np.sqrt(ridge) * np.eye(d)]), np.vstack([centred[:, d:], np.zeros((d, 2))])
    want = np.linalg.lstsq(a, b, rcond=None)[0]
    # What is fitted, since single weights are not that well determined: roundings times condition numbers of 1e7.
    np.testing.assert_allclose(centred[:, :d] @ np.asarray(fit.weights), centred[:, :d] @ want, rtol=0, atol=1e-8)
