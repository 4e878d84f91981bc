"""Many rows of logistic regressions of few inputs, by gradients in single precision: beside scikit-learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from jaxgen import Data, assess, resample
from jaxgen.learn import Logistic, Normalised, logistic_rows
from jaxgen.learn.logistic_fit import LinearClassifier
from jaxgen.loss import cross_entropy
from jaxgen.types import RowUnits

KEY = jax.random.key(0)
LOGITS = 3e-9
"""Of the largest logit: what a fit may leave; scikit-learn's newton-cholesky leaves less with a tolerance of 1e-13."""
WITHOUT_RIDGE = 1e-7
"""Of the largest logit: where newton-cg ends with a tolerance of 1e-10, which of many classes takes no ridge."""


def simulated(n, d, classes, kind="plain"):
    """Inputs and labels."""
    random = np.random.default_rng([n, d, classes])
    x = random.normal(size=(n, d))
    if kind == "alike":
        x = x[:, :1] + 0.05 * x
    elif kind == "zeros and ones":
        x = (x > 1.5).astype(float)
    scores = x @ random.normal(size=(d, classes)) / np.sqrt(d) / x.std() + random.gumbel(size=(n, classes))
    if kind == "in units":
        x = x * 10.0 ** random.integers(-3, 4, size=d) + 50
    if kind == "rare classes":
        scores -= 1.5 * np.arange(classes)
    return x, scores.argmax(1)


def data_of(x, labels, classes):
    """Data of one column for each class."""
    names = tuple(f"x{i}" for i in range(x.shape[1]))
    return Data(x, np.eye(classes)[labels], names, task="classification")


def rows_of(n, number, seed=1):
    """Weights: a tenth left out, half left out, all, and how often each case is drawn of n."""
    random = np.random.default_rng(seed)
    w = np.ones((number, n))
    for row, part in zip(w, (0.1, 0.5, 0), strict=False):
        row[random.permutation(n)[: int(part * n)]] = 0
    w[3:] = random.multinomial(n, np.full(n, 1 / n), size=number - 3)
    return w


def logits_of_peer(x, labels, w, ridge, classes, solver, tolerance):
    """scikit-learn's logits, which add up to 0 over the classes; of two classes its ridge is that of one."""
    inverse = np.inf if ridge == 0 else (2 if classes == 2 else 1) / ridge
    peer = LogisticRegression(C=inverse, solver=solver, tol=tolerance, max_iter=5000)
    found = peer.fit(x[w > 0], labels[w > 0], w[w > 0]).decision_function(x)
    found = np.stack([-found, found], axis=1) / 2 if found.ndim == 1 else found
    return found - found.mean(1, keepdims=True)


@pytest.mark.parametrize("kind", ["plain", "alike", "zeros and ones", "in units", "rare classes"])
@pytest.mark.parametrize(("n", "d", "classes"), [(300, 12, 3), (300, 60, 2), (9000, 6, 2), (8000, 12, 4)])
@jax.enable_x64(True)
def test_rows_are_those_of_scikit_learn(kind, n, d, classes):
    """Rows begin at zero, but for those of 8000 cases, which begin near their minimum; all of them are trusted."""
    x, labels = simulated(n, d, classes, kind)
    w = rows_of(n, 24 if n == 8000 else 4)
    fits, trusted = Logistic(ridge=2.0).fit_rows(
        jax.random.split(KEY, len(w)), jnp.asarray(x), jnp.eye(classes)[labels], jnp.asarray(w), None
    )
    assert np.all(trusted)
    centred = x - x.mean(0)
    for r in range(4):
        found = x @ np.asarray(fits.weights[r]) + np.asarray(fits.intercept[r])
        want = logits_of_peer(centred, labels, w[r], 2.0, classes, "newton-cholesky", 1e-13)
        np.testing.assert_allclose(found, want, rtol=0, atol=LOGITS * (1 + np.abs(want).max()))


@pytest.mark.parametrize(("n", "d", "classes"), [(300, 6, 2), (300, 20, 3), (6000, 8, 3)])
@jax.enable_x64(True)
def test_rows_in_units_of_their_own_are_those_of_scikit_learn(n, d, classes):
    """Inputs of units from 1e-3 to 1e3, so that a ridge on weights of the inputs as they are would hide those of small
    ones; all rows are trusted.
    """
    random = np.random.default_rng(7)
    x, labels = simulated(n, d, classes)
    x = x * 10.0 ** np.linspace(-3, 3, d)
    w = rows_of(n, 4)
    scales = x.std(0) * np.exp(0.1 * random.normal(size=(4, d)))
    units = RowUnits(jnp.zeros((4, d)), jnp.asarray(scales), jnp.zeros((4, classes)), jnp.ones((4, classes)))
    fits, trusted = Logistic(ridge=2.0).fit_rows_in_units(
        jax.random.split(KEY, 4), jnp.asarray(x), jnp.eye(classes)[labels], jnp.asarray(w), units, None
    )
    assert np.all(trusted)
    for r in range(4):
        own = x / scales[r]
        found = own @ np.asarray(fits.weights[r]) + np.asarray(fits.intercept[r])
        want = logits_of_peer(own, labels, w[r], 2.0, classes, "newton-cholesky", 1e-13)
        np.testing.assert_allclose(found, want, rtol=0, atol=LOGITS * (1 + np.abs(want).max()))


@pytest.mark.parametrize("kind", ["plain", "zeros and ones", "in units"])
@pytest.mark.parametrize(("n", "d", "classes"), [(6000, 8, 2), (6000, 30, 2), (5000, 6, 3)])
@jax.enable_x64(True)
def test_rows_without_a_ridge_are_those_of_scikit_learn(kind, n, d, classes):
    x, labels = simulated(n, d, classes, kind)
    w = rows_of(n, 4)
    fits, trusted = Logistic(ridge=0.0).fit_rows(
        jax.random.split(KEY, 4), jnp.asarray(x), jnp.eye(classes)[labels], jnp.asarray(w), None
    )
    assert np.all(trusted)
    centred = (x - x.mean(0)) / x.std(0)
    for r in range(4):
        found = x @ np.asarray(fits.weights[r]) + np.asarray(fits.intercept[r])
        want = logits_of_peer(centred, labels, w[r], 0, classes, "newton-cg", 1e-10)
        np.testing.assert_allclose(found, want, rtol=0, atol=WITHOUT_RIDGE * (1 + np.abs(want).max()))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("normalised", [False, True])
def test_a_row_that_is_separable_without_a_case_is_the_only_one_that_fails(classes, normalised):
    """Of 6000 cases, all 400 that have an input are of one class, but for one of each other class: rows that leave it
    out have no minimum without a ridge. The others have the losses that scikit-learn finds.
    """
    x, labels = simulated(6000, 10, classes)
    x[:, 0] = np.arange(6000) < 400
    labels[:400], labels[0], labels[1] = 1, 0, classes - 1
    plan = resample.k_fold(KEY, 6000, 10)
    learner = Logistic(ridge=0.0)
    losses = assess(
        KEY, Normalised(learner) if normalised else learner, data_of(x, labels, classes), plan, cross_entropy
    )
    without = (np.asarray(plan.train)[:, : classes - 1] == 0).any(1)
    assert losses.failed.tolist() == without.tolist()
    row = int(np.flatnonzero(~without)[0])
    train, test = plan.train[row] > 0, plan.test[row] > 0
    peer = LogisticRegression(C=np.inf, solver="newton-cg", tol=1e-10, max_iter=5000).fit(x[train], labels[train])
    want = -np.log(peer.predict_proba(x[test])[np.arange(test.sum()), labels[test]]).mean()
    found = losses.without_failed().g[int(np.sum(~without[:row]))]
    np.testing.assert_allclose(found, want, rtol=WITHOUT_RIDGE)


@jax.enable_x64(True)
def test_rows_whose_coordinates_do_not_suit_them_are_not_trusted():
    """An input that 3 of 6000 cases have, which are not among the few that are looked at first: a row without these has
    but a tiny ridge on it. Where the ridge is large, every row is trusted.
    """
    x, labels = simulated(6000, 5, 3)
    x[:, 0] = np.isin(np.arange(6000), [7, 3001, 4003])
    w = np.ones((4, 6000))
    w[1, [7, 3001]] = 0
    w[2, [7, 3001, 4003]] = 0
    for ridge, want in ((1e-6, [True, True, False, True]), (1.0, [True] * 4)):
        _, trusted = Logistic(ridge=ridge).fit_rows(
            jax.random.split(KEY, 4), jnp.asarray(x), jnp.eye(3)[labels], jnp.asarray(w), None
        )
        assert np.asarray(trusted).tolist() == want


@jax.enable_x64(True)
def test_pivots_of_some_cases_are_no_larger_than_those_of_all():
    """So those of some say that coordinates suit a row; by NumPy's factor of its Gram matrix."""
    x, labels = simulated(3000, 6, 3)
    w = rows_of(3000, 4)
    common = logistic_rows.in_common(
        LinearClassifier(1.0, True, 50), 4, jnp.asarray(x), jnp.eye(3)[labels], jnp.asarray(w.mean(0)), None
    )
    few, step = common.every(500)
    assert step == 6
    assert few.basis.cases.shape == (7, 500)
    for row in w:
        every, some = (
            np.linalg.cholesky(
                (np.asarray(part.basis.cases) * weights) @ np.asarray(part.basis.turned) + part.basis.ridge.matrix
            )
            for part, weights in ((common, row), (few, row[::step]))
        )
        assert np.all(np.diag(some) <= np.diag(every))
        assert np.square(np.diag(every)).max() <= common.basis.most(jnp.asarray(w), 1.0)
