"""Ridge regression with a chosen penalty against scikit-learn's RidgeCV and a loop over leave-one-out."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy.linalg import cho_solve, solve_triangular
from sklearn.linear_model import RidgeCV

from jaxgen import Data, assess, learn, resample
from jaxgen.learn import ridge
from jaxgen.learn.shrinkage import Centred, Shrinkage
from jaxgen.learn.systems import inverse_of_lower, substituted

PENALTIES = (0.01, 0.1, 1.0, 3.0, 10.0, 100.0)
KEY = jax.random.key(0)


def problem(n, d, k, noise=1.0, seed=0):
    """Correlated inputs away from 0, and targets with a linear signal."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d)) @ random.normal(size=(d, d)) + 3
    return x, x @ random.normal(size=(d, k)) / d + noise * random.normal(size=(n, k)) + 7


@partial(jax.jit, static_argnums=0)
def fit(learner, x, y, w):
    return learner.fit(KEY, x, y, w)


def fitted(learner, x, y, w=None):
    with jax.enable_x64(True):
        made = fit(learner, *map(jnp.asarray, (x, y, np.ones(len(x)) if w is None else w)))
    return jax.tree.map(np.asarray, made)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("n", "d", "k", "noise"), [(60, 4, 1, 0.1), (60, 4, 3, 3.0), (20, 40, 2, 1.0), (90, 40, 1, 9.0), (50, 1, 1, 1.0)]
)
def test_penalty_and_coefficients_are_those_of_scikit_learn(n, d, k, noise, intercept):
    """More cases than inputs and fewer; several targets share a penalty. Double precision of well-posed problems."""
    x, y = problem(n, d, k, noise)
    got = fitted(learn.Ridge(PENALTIES, intercept=intercept), x, y)
    want = RidgeCV(PENALTIES, fit_intercept=intercept, store_cv_results=True).fit(x, y)
    assert float(got.ridge) == want.alpha_
    losses = np.reshape(want.cv_results_, (n, k, len(PENALTIES))).mean((0, 1))
    np.testing.assert_allclose(got.error, k * min(losses), rtol=1e-9)
    np.testing.assert_allclose(got.weights.T, np.reshape(want.coef_, (k, d)), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(got.intercept, np.broadcast_to(want.intercept_, k), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("least", [1.0, 3e-3, 1e-5, 0.0])
def test_inputs_of_any_condition_are_decomposed(least):
    """Easy inputs by the eigenvectors of x' x, others with care, among them copies of a column; penalties so small that
    the weakest direction shows, against NumPy's least squares with the ridge as further rows.
    """
    random = np.random.default_rng(4)
    x = random.normal(size=(60, 5))
    x[:, 4] = x[:, 0] + least * x[:, 4]
    y = x @ np.ones((5, 1)) + random.normal(size=(60, 1))
    with jax.enable_x64(True):
        cases = Centred.of(*map(jnp.asarray, (x, y, np.ones(60))), False)
        shrinkage = jax.jit(Shrinkage.of)(cases)
        for ridge in (1e-4, 1.0):
            weights, _ = shrinkage.coefficients(jnp.asarray(ridge))
            rows = np.vstack([x, np.sqrt(ridge) * np.eye(5)])
            want = np.linalg.lstsq(rows, np.vstack([y, np.zeros((5, 1))]), rcond=None)[0]
            # rounding, times the square of the condition number, 1e3, where the inputs are easy
            np.testing.assert_allclose(weights, want, rtol=0, atol=1e-9)
            hat = x @ np.linalg.solve(x.T @ x + ridge * np.eye(5), x.T)
            left_out = np.mean(((y[:, 0] - hat @ y[:, 0]) / (1 - np.diag(hat))) ** 2)
            for count in (2, 200):  # all at once, and one by one
                errors = shrinkage.errors("leave_one_out", jnp.full(count, ridge))
                np.testing.assert_allclose(errors, left_out, rtol=1e-8)
    assert bool(shrinkage.deficient) == (least == 0)


def test_different_noise_takes_different_penalties():
    """So that the comparisons above choose among something."""
    chosen = [float(fitted(learn.Ridge(PENALTIES), *problem(60, 4, 1, noise)).ridge) for noise in (0.01, 1.0, 30.0)]
    assert chosen == sorted(chosen)
    assert len(set(chosen)) == 3


@pytest.mark.parametrize("intercept", [True, False])
def test_the_leave_one_out_loss_is_that_of_a_loop(intercept):
    """Weights 0, 1 and 2, of which one is left out at a time; NaN where the weight is 0; other fits by LeastSquares."""
    x, y = problem(15, 3, 2)
    w = np.arange(15) % 3.0
    learner = learn.LeastSquares(ridge=3.0, intercept=intercept)
    losses = []
    for case in np.repeat(np.arange(15), w.astype(int)):
        params = fitted(learner, x, y, w - (np.arange(15) == case))
        losses.append(np.sum((y[case] - x[case] @ params.weights - params.intercept) ** 2))
    x[0], y[0] = np.nan, np.nan
    got = fitted(learn.Ridge((3.0,), intercept=intercept), x, y, w)
    np.testing.assert_allclose(got.error, np.mean(losses), rtol=1e-9)
    np.testing.assert_allclose(got.weights, fitted(learner, np.nan_to_num(x), np.nan_to_num(y), w).weights, rtol=1e-9)


@partial(jax.jit, static_argnums=(0, 4))
def fit_rows(learner, x, y, w, left_out):
    return learner.fit_rows(jax.random.split(KEY, len(w)), x, y, w, left_out)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("k", [1, 2])
def test_rows_that_leave_out_few_share_one_decomposition(intercept, k):
    """Four cases of 60 or fewer, by hat matrices of all cases: what a fit of each row gives."""
    learner, (x, y) = learn.Ridge(PENALTIES, intercept), problem(60, 40, k, 9.0)
    assert ridge._without_some_is_less(60, 40, 4)
    _same_as_one_by_one(learner, x, y, rows_without_few(), 4)


def rows_without_few():
    w = np.ones((4, 60))
    for row, out in enumerate(([0, 7, 30, 59], [1, 2], [5], [])):
        w[row, out] = 0
    return w


@pytest.mark.parametrize("at_a_time", [30, 4])
def test_penalties_that_a_bound_excludes_are_not_the_best(monkeypatch, at_a_time):
    """Of 61 penalties, each row of another five cases left out has the best that it has alone, though many have no
    error computed, whether rows are looked at in one group or in eight; bounds are below the errors.
    """
    monkeypatch.setattr("jaxgen.learn.ridge._ROWS_BYTES", at_a_time * 5 * 60 * 8)
    random, penalties, w = np.random.default_rng(5), tuple(np.geomspace(0.1, 1000, 61)), np.ones((30, 60))
    x = random.normal(size=(60, 40))
    y = x @ random.normal(size=(40, 1)) / 6 + random.normal(size=(60, 1))
    for row, out in enumerate(random.permuted(np.tile(np.arange(60), (30, 1)), axis=1)):
        w[row, out[:5]] = 0
    chosen = _same_as_one_by_one(learn.Ridge(penalties), x, y, w, 5)
    assert len(np.unique(chosen.ridge)) > 5
    with jax.enable_x64(True):
        few, each = ridge._WithoutSome.of(*map(jnp.asarray, (x, y, w)), 5, True), jnp.asarray(penalties)
        bounds = lax.map(few._at_least, each)
        best = few._best(each, bounds)
        every = np.asarray(lax.map(lambda penalty: few._losses(penalty, jnp.ones(30, bool))[0], each))
    assert (np.asarray(bounds) <= every).all()
    assert np.mean(np.asarray(bounds) > np.asarray(best.error)) > 0.3, "most need no more"
    np.testing.assert_array_equal(best.number, every.argmin(axis=0))
    # scikit-learn chooses of the same penalties by the same losses
    for row in range(0, 30, 6):
        peer = RidgeCV(penalties).fit(x[w[row] > 0], y[w[row] > 0, 0])
        np.testing.assert_allclose(peer.alpha_, chosen.ridge[row], rtol=1e-12)


def test_groups_of_rows_have_the_same_size(monkeypatch):
    """Seven rows in three groups of three, of which two rows are made up: what all rows at once give."""
    x, y = problem(60, 40, 2, 9.0)
    w = np.concatenate([rows_without_few(), rows_without_few()[:3]])
    learner = learn.Ridge(PENALTIES)
    with jax.enable_x64(True):
        given = (jax.random.split(KEY, 7), *map(jnp.asarray, (x, y, w)))
        together, _ = learner.fit_rows(*given, 4)
        monkeypatch.setattr("jaxgen.learn.ridge._ROWS_BYTES", 3 * 4 * 60 * 8)
        in_groups, trusted = learner.fit_rows(*given, 4)
        loops = str(jax.make_jaxpr(partial(learner.fit_rows, left_out=4))(*given)).count("length=3")
    assert trusted.all()
    assert loops == 1
    for got, want in zip(in_groups, together, strict=True):
        # sums in another order, times a condition number of at most 1e4
        np.testing.assert_allclose(got, want, rtol=1e-11)


@pytest.mark.parametrize("m", [1, 2, 5, 8, 50])
def test_a_triangular_matrix_is_inverted_and_solved_with(m):
    """Beside SciPy's, of a Cholesky factor with a condition number of a hundred or less."""
    a = np.random.default_rng(m).normal(size=(m, m))
    lower = np.linalg.cholesky(a @ a.T / m + 0.1 * np.eye(m))
    with jax.enable_x64(True):
        found = inverse_of_lower(jnp.asarray(lower))
        solution = substituted(jnp.asarray(lower), jnp.asarray(a[:, :2]))
    np.testing.assert_allclose(found, solve_triangular(lower, np.eye(m), lower=True), rtol=0, atol=1e-12)
    np.testing.assert_allclose(solution, cho_solve((lower, True), a[:, :2]), rtol=0, atol=1e-11)  # 1e4 x rounding


@pytest.mark.parametrize("intercept", [True, False])
def test_rows_with_weights_are_decomposed_side_by_side(intercept):
    """Weights from 0 to 3, and a row whose cases of weight 0 are far from the others."""
    x, y = problem(50, 4, 2)
    x[0] += 30
    w = np.random.default_rng(1).integers(0, 4, (5, 50)).astype(float)
    w[0, 0] = 0
    _same_as_one_by_one(learn.Ridge(PENALTIES, intercept), x, y, w, None)


def _same_as_one_by_one(learner, x, y, w, left_out):
    with jax.enable_x64(True):
        rows, trusted = fit_rows(learner, *map(jnp.asarray, (x, y, w)), left_out)
    assert trusted.all()
    for row, weights in enumerate(w):
        alone = fitted(learner, x, y, weights)
        for got, want in zip(rows, alone, strict=True):
            # rounding, times the ratio of the largest square of a singular value to the least with its penalty, 1e6
            np.testing.assert_allclose(got[row], want, rtol=1e-8, atol=1e-9)
    return rows


def test_rows_that_cannot_share_are_not_trusted():
    """A case that alone determines a direction cannot be left out of a hat matrix; products of equal columns have no
    inverse but by a penalty, which rounding must be small beside.
    """
    x, y = problem(40, 20, 1)
    x[:, 3] = np.arange(40) == 0
    x[0, 3] = 1e9
    w = np.ones((3, 40))
    w[1, 0] = w[2, 5] = 0
    with jax.enable_x64(True):
        _, trusted = fit_rows(learn.Ridge(PENALTIES), *map(jnp.asarray, (x, y, w)), 1)
        np.testing.assert_array_equal(trusted, [True, False, True])
        x[:, 3] = x[:, 4]
        for penalties, want in ((PENALTIES, True), ((1e-9, 1.0), False), ((1e-5,), False)):
            _, trusted = fit_rows(learn.Ridge(penalties), *map(jnp.asarray, (x, y, w)), None)
            np.testing.assert_array_equal(trusted, want)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_ridge_of_much_data_is_solved_by_normal_equations(intercept):
    """2200 cases of 60 inputs in units from 0.001 to 1000, two nearly alike: 200 left out, and weights to 2; what a fit
    of each row gives but for rounding, times the condition of the equations. Far from 0, and without an intercept,
    their correction is too large to trust.
    """
    random = np.random.default_rng(5)
    x = random.normal(size=(2200, 60)) * np.geomspace(1e-3, 1e3, 60)
    x[:, 1] = x[:, 0] * (1 + 1e-3 * x[:, 2])
    y = x @ random.normal(size=(60, 2)) + random.normal(size=(2200, 2))
    w = np.ones((3, 2200))
    w[0, :200], w[1, 7] = 0, 0
    w[2] = random.integers(0, 3, 2200)
    learner = learn.LeastSquares(ridge=2.0, intercept=intercept)
    with jax.enable_x64(True):
        together, trusted = fit_rows(learner, *map(jnp.asarray, (x, y, w)), None)
        few, trusted_few = fit_rows(learner, *map(jnp.asarray, (x, y, w[:2])), 200)
        _, far = fit_rows(learner, *map(jnp.asarray, (x + 1e9, y, w)), None)
    assert trusted.all()
    assert trusted_few.all()
    assert intercept or not far.any()
    for row, weights in enumerate(w):
        alone = fitted(learner, x, y, weights)
        np.testing.assert_allclose(together.weights[row], alone.weights, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(together.intercept[row], alone.intercept, rtol=1e-7, atol=1e-9)
        if row < 2:
            np.testing.assert_allclose(few.weights[row], alone.weights, rtol=1e-7, atol=1e-9)


def test_what_is_left_when_a_case_far_away_is_left_out_is_not_trusted():
    """Products of all cases without those of one whose inputs are a million times as large have lost their digits."""
    x, y = problem(200, 4, 1)
    x[7] *= 1e6
    w = np.ones((2, 200))
    w[0, 7] = w[1, 8] = 0
    learner = learn.Ridge(PENALTIES)
    assert not ridge._without_some_is_less(200, 4, 1)
    with jax.enable_x64(True):
        _, trusted = fit_rows(learner, *map(jnp.asarray, (x, y, w)), 1)
    assert not trusted[0]
    plan = resample.from_weights(w.astype(int), 1 - w.astype(int))
    losses = assess(KEY, learner, Data(x, y, tuple("abcd")), plan)
    want = RidgeCV(PENALTIES).fit(np.delete(x, 7, 0), np.delete(y, 7, 0)[:, 0])
    assert losses.info["ridge"][0] == want.alpha_
    np.testing.assert_allclose(
        np.delete(losses.values[0], 7), (np.delete(y[:, 0] - want.predict(x), 7)) ** 2, rtol=1e-6
    )


def test_rows_tell_what_they_chose(dtype):
    """Penalties of every row, in either precision: the fits are in double precision."""
    x, y = problem(40, 3, 1)
    plan = resample.leave_out(KEY, 40, 0.25, 6)
    losses = assess(KEY, learn.Ridge(PENALTIES), Data(x, y, ("a", "b", "c")), plan)
    for row, train in enumerate(plan.train > 0):
        want = RidgeCV(PENALTIES).fit(x[train], y[train, 0])
        assert losses.info["ridge"][row] == want.alpha_
        np.testing.assert_allclose(losses.values[row], (y[:, 0] - want.predict(x)) ** 2, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("penalties", "message"),
    [
        ((), r"penalties as a tuple of numbers above 0, got \(\)"),
        (1.0, "penalties as a tuple of numbers above 0, got 1.0"),
        ((1.0, 0.0), "every penalty .*above 0.*got 0.0; use LeastSquares"),
        (("1",), "every penalty .*got '1'"),
        ((float("nan"),), "every penalty .*got nan"),
    ],
)
def test_penalties_that_are_none_are_refused(penalties, message, own_messages):
    x, y = problem(10, 2, 1)
    with pytest.raises((TypeError, ValueError), match=message):
        assess(KEY, learn.Ridge(penalties), Data(x, y, ("a", "b")), resample.k_fold(KEY, 10, folds=5))


def test_a_single_case_is_refused():
    x, y = problem(3, 1, 1)
    plan = resample.from_weights(np.eye(3, dtype=int), 1 - np.eye(3, dtype=int))
    with pytest.raises(ValueError, match="training cases of every row.*at least 2.*leaves one out"):
        assess(KEY, learn.Ridge(), Data(x, y, ("a",)), plan)
