"""Logistic regressions of more inputs than cases by coefficients of the cases: beside NumPy and scikit-learn."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from jaxgen import Data, assess, resample
from jaxgen.learn import Imputed, Logistic, Normalised
from jaxgen.learn.case_problem import CaseProblem, Nearby
from jaxgen.learn.classes import classes_of
from jaxgen.types import RowFills, RowUnits

KEY = jax.random.key(0)
LOGITS = 3e-9
"""Of the largest logit: what a fit may leave; scikit-learn's newton-cholesky leaves less with a tolerance of 1e-13."""


def simulated(n, d, classes, kind="plain", seed=0):
    """Inputs and labels; inputs of one rank for all cases, alike, or each once more."""
    random = np.random.default_rng([n, d, classes, seed])
    x = random.normal(size=(n, d))
    if kind == "correlated":
        x = x @ np.diag(1 / np.arange(1, d + 1)) @ random.normal(size=(d, d))
    elif kind == "of low rank":
        x = x[:, :8] @ random.normal(size=(8, d))
    elif kind == "twice":
        x[: n // 2] = x[n // 2 : 2 * (n // 2)]
    scores = x @ random.normal(size=(d, classes)) / np.sqrt(d) / x.std() + random.gumbel(size=(n, classes))
    return x, scores.argmax(1)


def rows_of(n, number, left_out, seed=1):
    """Weights that leave so many cases out, at random; counts in the last row."""
    random = np.random.default_rng(seed)
    w = np.ones((number, n))
    for row in w:
        row[random.permutation(n)[:left_out]] = 0
    w[-1] *= random.integers(1, 4, n)
    return w


def logits_of_peer(x, labels, w, ridge, classes, intercept, like):
    """scikit-learn's logits of cases, which add up to 0 over the classes; of two classes its ridge is that of one."""
    inverse = (2 if classes == 2 else 1) / ridge
    peer = LogisticRegression(C=inverse, solver="newton-cholesky", tol=1e-13, max_iter=1000, fit_intercept=intercept)
    found = peer.fit(x[w > 0], labels[w > 0], w[w > 0]).decision_function(like)
    found = np.stack([-found, found], axis=1) / 2 if found.ndim == 1 else found
    return found - found.mean(1, keepdims=True)


@pytest.mark.parametrize("kind", ["plain", "correlated", "of low rank", "twice"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("way", ["alike", "in units", "filled", "filled, in units"])
@pytest.mark.parametrize("intercept", [True, False])
@jax.enable_x64(True)
def test_rows_are_those_of_scikit_learn(kind, classes, way, intercept):
    """Each with weights, units and numbers for missing inputs of its own; nearly all of them are trusted, but where the
    products of the cases are those of a few inputs.
    """
    random = np.random.default_rng(5)
    n, d, ridge = 40, 70, 2.0
    x, labels = simulated(n, d, classes, kind)
    w = rows_of(n, 4, 4)
    scales = np.exp(0.2 * random.normal(size=(4, d)))
    missing, more = (random.random((n, d)) < 0.1).astype(float), 0.3 * random.normal(size=(4, d))
    filled, scaled = way.startswith("filled"), way.endswith("in units")
    units = RowUnits(jnp.zeros((4, d)), jnp.asarray(scales), jnp.zeros((4, classes)), jnp.ones((4, classes)))
    learner, y = Logistic(ridge, intercept=intercept), jnp.eye(classes)[labels]
    keys = jax.random.split(KEY, 4)
    given = keys, jnp.asarray(x), y, jnp.asarray(w)
    if filled:
        fills = RowFills(jnp.asarray(missing), jnp.asarray(more))
        fits, trusted = learner.fit_rows_filled(*given, fills, units if scaled else None, 4)
    elif scaled:
        fits, trusted = learner.fit_rows_in_units(*given, units, 4)
    else:
        fits, trusted = learner.fit_rows(*given, 4)
    assert np.sum(trusted) >= (0 if kind == "of low rank" else 3)
    for r in np.flatnonzero(trusted):
        own = x + missing * more[r] if filled else x
        own = own / scales[r] if scaled else own
        found = own @ np.asarray(fits.weights[r]) + np.asarray(fits.intercept[r])
        want = logits_of_peer(own, labels, w[r], ridge, classes, intercept, own)
        np.testing.assert_allclose(found, want, rtol=0, atol=LOGITS * (1 + np.abs(want).max()))


@jax.enable_x64(True)
def test_one_column_of_targets_is_one_of_two_classes():
    """With the ridge on its weights, as in scikit-learn."""
    x, labels = simulated(40, 70, 2)
    w = rows_of(40, 3, 4)
    fits, trusted = Logistic(2.0).fit_rows(
        jax.random.split(KEY, 3), jnp.asarray(x), jnp.asarray(labels[:, None], float), jnp.asarray(w), 4
    )
    assert np.all(trusted)
    for r in range(3):
        want = 2 * logits_of_peer(x, labels, w[r], 4.0, 2, True, x)[:, 1:]
        found = x @ np.asarray(fits.weights[r]) + np.asarray(fits.intercept[r])
        np.testing.assert_allclose(found, want, rtol=0, atol=LOGITS * (1 + np.abs(want).max()))


@pytest.mark.parametrize("intercept", [True, False])
@jax.enable_x64(True)
def test_the_inverse_solves_newtons_equations_without_the_cases_left_out(intercept):
    """Written out in NumPy for the cases of the row; a row that leaves out fewer than it may has places to spare.

    With a constant, coefficients add up to 0, so the equations of the cases add up to that of the constant. The image
    takes no product with the cases.
    """
    random = np.random.default_rng(3)
    x, curvature, ridge = random.normal(size=(12, 30)), random.random(12) + 0.1, 0.7
    used = np.ones(12)
    used[[2, 7, 9]] = 0
    gram, t = x @ x.T, np.flatnonzero(used)
    absent = jnp.asarray([2, 7, 9, 12, 12])
    nearby = Nearby.of(jnp.asarray(gram), jnp.asarray(curvature), jnp.asarray(ridge), jnp.float64)
    nearby = nearby._replace(used=jnp.asarray(used)).without(absent)
    nearby = nearby.with_constant() if intercept else nearby
    of_cases = random.normal(size=(2, 12)) * used
    rest = np.concatenate([of_cases, np.sum(of_cases, axis=1, keepdims=True) * intercept], axis=1)
    found, image = (np.asarray(part) for part in nearby.times(jnp.asarray(rest)))
    np.testing.assert_array_equal(found[:, [2, 7, 9]], 0)
    logits = found[:, :12] @ gram + found[:, 12:]
    weighted = curvature * logits
    np.testing.assert_allclose((weighted + ridge * found[:, :12])[:, t], rest[:, t], rtol=0, atol=1e-11)  # sums of 30
    np.testing.assert_allclose(image[:, t], (found[:, :12] @ gram)[:, t], rtol=0, atol=1e-11)
    np.testing.assert_array_equal(image[:, 12], found[:, 12])
    if intercept:
        np.testing.assert_allclose(weighted[:, t].sum(1), rest[:, 12], rtol=0, atol=1e-11)
        np.testing.assert_allclose(found[:, :12].sum(1), 0, rtol=0, atol=1e-11)


@jax.enable_x64(True)
def test_the_start_of_a_row_is_the_minimum_of_a_quadratic():
    """Of Newton's equations at the logits of all rows, where the preconditioner has the second derivatives there."""
    random = np.random.default_rng(4)
    x, labels = simulated(12, 30, 2)
    gram, ridge, y = x @ x.T, 0.7, np.eye(2)[labels]
    classes = classes_of(jnp.asarray(y))
    used = np.ones(12)
    used[[1, 5]] = 0
    start = random.normal(size=(1, 13)) / 30
    logits = start[:, :12] @ gram + start[:, 12:]
    excess, second = (np.asarray(part) for part in classes.residuals(jnp.asarray(logits)))
    nearby = Nearby.of(jnp.asarray(gram), jnp.asarray(second[0]), jnp.asarray(ridge), jnp.float64)
    nearby = nearby._replace(used=jnp.asarray(used)).without(jnp.asarray([1, 5])).with_constant()
    given = classes, jnp.asarray(used), jnp.asarray(ridge), True, lambda a: a @ jnp.asarray(gram), nearby
    problem = CaseProblem(*given, jnp.bool_(True))
    found = np.asarray(problem.first_step(*map(jnp.asarray, (start, excess, logits))))
    moved = found[:, :12] @ gram + found[:, 12:] - logits
    gradient = used * (excess + second * moved + ridge * found[:, :12])
    np.testing.assert_allclose(gradient, 0, rtol=0, atol=1e-10)  # sums of 30 products
    np.testing.assert_allclose(np.sum(used * (excess + second * moved)), 0, rtol=0, atol=1e-10)


@jax.enable_x64(True)
def test_rows_that_leave_out_more_than_they_say_are_not_trusted():
    """Nor are those of bootstrap samples beyond half of the cases."""
    x, labels = simulated(40, 70, 3)
    given = jax.random.split(KEY, 2), jnp.asarray(x), jnp.eye(3)[labels]
    w = np.ones((2, 40))
    w[0, :4], w[1, :5] = 0, 0
    assert Logistic().fit_rows(*given, jnp.asarray(w), 4)[1].tolist() == [True, False]
    w[0, :20], w[1, :21] = 0, 0
    assert Logistic().fit_rows(*given, jnp.asarray(w), None)[1].tolist() == [True, False]


@jax.enable_x64(True)
def test_a_class_without_a_case_is_said():
    """Where there is an intercept; the other rows are fitted."""
    x, labels = simulated(40, 70, 3)
    w = np.ones((2, 40))
    w[0, labels == 2] = 0
    most = int((labels == 2).sum())
    fits, trusted = Logistic().fit_rows(
        jax.random.split(KEY, 2), jnp.asarray(x), jnp.eye(3)[labels], jnp.asarray(w), most
    )
    assert fits.trouble.tolist() == [3, 0]
    assert np.isnan(fits.weights[0]).all()
    assert np.isfinite(fits.weights[1]).all()
    assert np.all(trusted)


@pytest.mark.parametrize(("kind", "solved"), [("correlated", True), ("of low rank", False)])
def test_hard_rows_are_solved_or_trained_in_another_way(kind, solved, monkeypatch):
    """Which rows share, too; all are those of scikit-learn, and none is trained by itself."""
    x, labels = simulated(60, 100, 3, kind)
    names = tuple(f"x{i}" for i in range(100))
    data = Data(x, np.eye(3)[labels], names, task="classification", classes=("a", "b", "c"))
    plan, ridge = resample.k_fold(KEY, 60, 6), 1e-3
    with jax.enable_x64(True):
        given = (jnp.asarray(part) for part in (x, data.y, plan.train.astype(float)))
        _, trusted = Logistic(ridge).fit_rows(jax.random.split(KEY, 6), *given, 10)
    assert np.all(trusted) == solved
    monkeypatch.setattr(Logistic, "fit", lambda *_: pytest.fail("a row was trained by itself"))
    info = assess(KEY, Logistic(ridge), data, plan).info
    for r in range(6):
        found = x @ info["weights"][r] + info["intercept"][r]
        want = logits_of_peer(x, labels, plan.train[r], ridge, 3, True, x)
        # Where curvature is small, scikit-learn's solver ends further from the minimum.
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-7 * (1 + np.abs(want).max()))


def test_only_wide_data_have_another_way():
    """And count the cases that rows leave out."""
    for learner in (Logistic(), Normalised(Logistic())):
        assert learner.careful_of(40, 70) != learner
        assert learner.careful_of(40, 70).careful_of(40, 70) is None
        assert learner.careful_of(70, 40) is None
        assert learner.counts_left_out_of(40, 70)
        assert not learner.counts_left_out_of(70, 40)
    assert Imputed(Logistic()).careful_of(40, 70) is None
    assert Logistic(0.0).careful_of(40, 70) is None


def test_what_is_careful_is_a_learner():
    """One sentence says so where a learner of somebody's own gives another thing."""

    @dataclass(frozen=True, repr=False)
    class Wrong(Logistic):
        def careful_of(self, cases, inputs):
            return 3

    x, labels = simulated(60, 100, 3, "of low rank")
    names = tuple(f"x{i}" for i in range(100))
    data = Data(x, np.eye(3)[labels], names, task="classification", classes=("a", "b", "c"))
    with pytest.raises(TypeError, match=r"expected careful_of\(cases, inputs\) of .* to give a learner or None"):
        assess(KEY, Wrong(1e-3), data, resample.k_fold(KEY, 60, 6))
