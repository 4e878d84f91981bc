"""Learners chosen inside many rows that are trained together: as one by one, and as scikit-learn's grid search."""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import refused
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jaxgen import Data, assess, learn, loss, predict, resample
from jaxgen.engine import run as engine
from jaxgen.engine.needs import facts
from jaxgen.learn import LeastSquares, Logistic, Neighbours, Normalised, Tuned
from jaxgen.learn.batched import one_by_one
from jaxgen.learn.wrap import ways
from jaxgen.types import RowUnits

KEY = jax.random.key(3)
RANDOM = np.random.default_rng(3)
N = 36
X = RANDOM.normal(size=(N, 3)) * [1, 5, 0.3] + [0, 2, -1]
Y = X @ [[1.0], [0.1], [2.0]] + RANDOM.normal(size=(N, 1))
LABELS = np.digitize(Y[:, 0], np.quantile(Y, (0.4, 0.7)))
CLASSES = np.eye(3)[LABELS]
WIDE = RANDOM.normal(size=(24, 50))
TARGETS = WIDE[:, :1] + RANDOM.normal(size=(24, 1))
PENALTIES = (0.1, 3.0, 100.0)
PLAN = resample.k_fold(KEY, N, 4)


def slow(*values):
    """A case that others stand for in the quick level."""
    return pytest.param(*values, marks=pytest.mark.slow)


def weights(n):
    """Rows of weights: all cases, some left out, and some twice."""
    number = np.arange(n)
    return np.stack([np.ones(n), (number % 4 > 0) * 1.0, (number % 5 != 2) * 1.0, number % 3.0])


SHARED = [
    (Tuned(Logistic(), {"ridge": PENALTIES}, by=3), X, CLASSES),
    slow(Tuned(Logistic(), {"ridge": PENALTIES}, by=3), X, CLASSES[:, :1]),
    slow(Tuned(Logistic(), {"ridge": (0.0, *PENALTIES), "intercept": (True, False)}, by=2), X, CLASSES),
    (Tuned(Neighbours(1), {"k": (1, 4, 9)}, by=3), X, Y),
    (Tuned((LeastSquares(), Neighbours(3), LeastSquares(ridge=2.0), LeastSquares(ridge=9.0))), X, Y),
    slow(Tuned(LeastSquares(), {"ridge": PENALTIES}, rule="one_standard_error", simplest="last"), WIDE, TARGETS),
    slow(Tuned(Normalised(LeastSquares()), {"base.ridge": PENALTIES}), X, Y),
    slow(Tuned(Normalised(LeastSquares(), how="standard"), {"base.ridge": PENALTIES}), WIDE, TARGETS),
    slow(Tuned(Normalised(Neighbours(2)), {"how": ("delve", "none"), "base.k": (2, 5)}, by=4), X, Y),
    slow(Tuned(learn.Ridge(), {"penalties": ((0.1, 1.0), (10.0, 100.0))}, by=3), X, Y),
]


@pytest.mark.parametrize("in_units", [False, slow(True)])
@pytest.mark.parametrize(("learner", "x", "y"), SHARED, ids=lambda value: repr(value)[:40])
def test_rows_together_are_those_one_by_one(learner, x, y, in_units):
    """The same folds, criteria and choices, and predictions but for rounding; the minima that logistic regressions are
    found at are 1e-9 of the largest logit apart.
    """
    if in_units and not learner.shares_rows_in_units:
        pytest.skip(f"{learner} has units of its own")
    with jax.enable_x64(True):
        x, y, w = map(jnp.asarray, (x, y, weights(len(x))))
        keys = jax.random.split(KEY, len(w))
        plain = [jnp.zeros(x.shape[1]), jnp.ones(x.shape[1]), jnp.zeros(y.shape[1]), jnp.ones(y.shape[1])]
        units = RowUnits(*(jnp.repeat(a[None], len(w), axis=0) for a in plain))
        if in_units:
            scale = 1 + jnp.arange(len(w))[:, None] / 3
            centre = jnp.zeros_like(units.y_centre) if learner.classifies else -scale
            y_scale = jnp.ones_like(units.y_scale) if learner.classifies else 2 * scale
            units = RowUnits(units.x_centre + scale, units.x_scale * scale, centre, y_scale)

        def alone(key, w, unit):
            inside = (x - unit.x_centre[None]) / unit.x_scale[None]
            fit = learner.fit(key, inside, (y - unit.y_centre[None]) / unit.y_scale[None], w)
            return learner.predict(fit, inside), learner.failure(fit), fit

        def together():
            if in_units:
                found = learner.fit_rows_in_units(keys, x, y, w, units, None)
            else:
                found = learner.fit_rows(keys, x, y, w, None)
            fits, trusted, *known = found
            inside = (x[None] - units.x_centre[:, None]) / units.x_scale[:, None]
            if known:
                got = (known[0] - units.y_centre[:, None]) / units.y_scale[:, None]
            else:
                got = jax.vmap(learner.predict)(fits, inside)
            return fits.choice, fits.criteria, jax.vmap(learner.failure)(fits), got, trusted

        choice, criteria, failed, got, trusted = jax.jit(together)()
        want, failed_alone, fits = jax.jit(jax.vmap(alone))(keys, w, units)
    assert trusted.all()
    assert not failed.any()
    assert not failed_alone.any()
    np.testing.assert_array_equal(choice, fits.choice)
    np.testing.assert_allclose(criteria, fits.criteria, rtol=1e-7)
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-8)


SEARCHES = [
    (
        Tuned(Logistic(), {"ridge": (0.05, 1.0, 20.0)}),
        CLASSES,
        LogisticRegression(tol=1e-12, solver="newton-cg", max_iter=1000),
        {"C": (20.0, 1.0, 0.05)},
    ),
    (Tuned(Neighbours(1), {"k": (1, 3, 7)}), Y, KNeighborsRegressor(), {"n_neighbors": (1, 3, 7)}),
    slow(
        Tuned(Normalised(LeastSquares(), how="standard", targets="unchanged"), {"base.ridge": PENALTIES}),
        Y,
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": PENALTIES},
    ),
]


@pytest.mark.devices
@pytest.mark.parametrize(("learner", "y", "peer", "grid"), SEARCHES, ids=lambda value: repr(value)[:40])
def test_rows_choose_as_scikit_learns_grid_search(learner, y, peer, grid):
    """On the folds that each row has. newton-cg ends near the minimum."""
    classes = y.shape[1] > 1
    data = Data(X, y, tuple("abc"), task="classification" if classes else "regression")
    counted = loss.cross_entropy if classes else loss.squared
    assert engine.way(learner, counted, data, PLAN).together
    found = assess(KEY, learner, data, PLAN, counted, keep="predictions")
    targets = LABELS if classes else y[:, 0]
    scoring = "neg_log_loss" if classes else "neg_mean_squared_error"
    for r, w in enumerate(PLAN.train.astype(float)):
        key, used = jax.random.fold_in(jax.random.fold_in(KEY, 0), r), w > 0
        fold = np.asarray(learner.folds(key, jnp.asarray(w), jnp.asarray(y)))[used]
        assert {np.sum(fold == f) for f in range(5)} == {5, 6}  # of 27 cases
        search = GridSearchCV(peer, grid, scoring=scoring, cv=PredefinedSplit(fold)).fit(X[used], targets[used])
        losses = np.stack([-search.cv_results_[f"split{f}_test_score"] for f in range(5)])
        [(setting, values)] = grid.items()
        order = np.argsort([values.index(value) for value in search.cv_results_[f"param_{setting}"]])
        criteria = np.average(losses, axis=0, weights=np.bincount(fold))[order]
        np.testing.assert_allclose(found.info["criteria"][r], criteria, rtol=1e-6)
        assert found.info["choice"][r] == np.argmin(criteria)
        best = peer.set_params(**{setting: values[int(np.argmin(criteria))]}).fit(X[used], targets[used])
        want = best.predict_proba(X) if classes else best.predict(X)[:, None]
        np.testing.assert_allclose(found.predictions[r], want, rtol=1e-6, atol=1e-6)


def test_who_shares_rows():
    """Ridges share a decomposition instead where rows without a fold have less cases than inputs while all have more;
    and so do those with 0 among them.
    """
    ridges = Tuned(LeastSquares(), {"ridge": PENALTIES})
    assert ridges.shares_rows_of(25, 20, 26)
    assert not ridges.shares_rows_of(25, 20, 17)
    assert ridges.shares_rows_of(25, 20, 16)
    assert Tuned((LeastSquares(ridge=1.0), LeastSquares(intercept=False, ridge=2.0))).shares_rows_of(25, 20, 17)
    assert not Tuned(LeastSquares(), {"ridge": (0.0, 1.0)}).shares_rows
    assert not replace(ridges, by="gcv").shares_rows
    assert not Tuned((LeastSquares(), learn.Mean())).shares_rows
    assert not Tuned((LeastSquares(), learn.Mean())).shares_rows_in_units
    assert Tuned(Logistic(), {"ridge": PENALTIES}).shares_rows_in_units
    assert not Tuned(Logistic(intercept=False), {"ridge": PENALTIES}).shares_rows_in_units
    assert Tuned((Logistic(), Neighbours(3))).worth_sharing == (2, 0.45)
    assert Tuned((LeastSquares(), Neighbours(3))).counts_left_out
    assert not Tuned(Logistic(), {"ridge": PENALTIES}).counts_left_out


def test_the_memory_of_a_row_is_that_of_all_its_weightings():
    """Six of each row for five folds; 36 where a tuned learner is tuned."""
    data = Data(X, CLASSES, tuple("abc"), task="classification")

    def bytes_of(learner):
        chosen = engine.way(learner, loss.cross_entropy, data, PLAN)
        assert chosen.together
        return facts(engine.job_of(learner, loss.cross_entropy, data, chosen, (jax.devices()[0],), False)).row_bytes

    one, tuned = Logistic(), Tuned(Logistic(), {"ridge": PENALTIES})
    assert [each.weightings for each in (one, tuned, Normalised(tuned))] == [1, 6, 6]
    assert Tuned((tuned, Logistic(intercept=False))).weightings == 36
    assert 6 * bytes_of(one) <= bytes_of(tuned) <= 12 * bytes_of(one)


def test_many_cases_are_left_out_of_a_wide_logistic_regression_by_each_row_alone():
    assert Logistic().shares_rows_of(60, 40, 61)
    assert not Logistic().shares_rows_of(60, 39, 61)
    assert Logistic().shares_rows_of(60, 20, 60)


def test_new_cases_are_predicted_by_the_chosen():
    """Neighbours give predictions of the cases in place of parameters: those of other cases come from each row."""
    learner = Tuned((Neighbours(3), LeastSquares(ridge=1.0)))
    y = np.sin(2 * X[:, :1]) + 2 * X[:, :1]
    data, plan = Data(X / [1, 50, 3], y, tuple("abc")), resample.leave_out(KEY, N, 0.5, 12)
    found = assess(KEY, learner, data, plan, keep="predictions")
    assert len(set(found.info["choice"])) == 2, "both are chosen"
    new = predict(KEY, learner, data, plan, data.x[:7])
    np.testing.assert_allclose(new.new, found.predictions[:, :7], rtol=1e-12, atol=1e-12)


@pytest.mark.devices
@pytest.mark.parametrize("together", [True, slow(False)])
def test_learners_that_call_lapack_do_not_wait_for_each_other(together, monkeypatch):
    """One of two batched calls of LAPACK at a time may wait for ever for a thread that the other has: rows of two
    learners, each with a decomposition of its own, hung on two cores.
    """
    if not together:
        monkeypatch.setattr(Tuned, "shares_rows", property(lambda _: False))
    data = Data(WIDE, TARGETS, tuple(map(str, range(50))))
    plan = resample.k_fold(KEY, len(WIDE), 4, 8)
    learner = Tuned((LeastSquares(ridge=1.0), learn.Ridge(), LeastSquares(minimum_norm=True)), by=3)
    found = assess(KEY, learner, data, plan)
    assert not found.failed.any()
    for number, one in enumerate(learner.candidates):
        rows = found.info["choice"] == number
        want = assess(KEY, one, data, plan).test_mean
        np.testing.assert_allclose(found.test_mean[rows], want[rows], rtol=1e-9)


def test_functions_run_one_by_one():
    """Of any shapes, also under vmap and with random keys among what they give."""

    def found(a):
        return one_by_one([lambda: a + 1, lambda: {"k": jax.random.key(7), "b": jnp.stack([a, 2 * a])}, lambda: 3.0])

    for of in (found, jax.jit(found), lambda a: jax.tree.map(lambda b: b[0], jax.vmap(found)(a[None]))):
        first, second, third = of(jnp.float32(2))
        assert first == 3
        assert third == 3
        np.testing.assert_array_equal(second["b"], [2, 4])
        assert jax.random.key_data(second["k"]).tolist() == jax.random.key_data(jax.random.key(7)).tolist()
    assert one_by_one([lambda: "alone"]) == ("alone",)
    text = str(jax.make_jaxpr(found)(jnp.float32(2)))
    assert "cond" in text
    assert "scan" in text or "while" in text


@dataclass(frozen=True)
class Careless:
    """A learner of one's own whose `fit_rows` gives nothing to trust."""

    size: float = 1.0

    def fit(self, key, x, y, w):
        return jnp.average(y, axis=0, weights=w)

    def predict(self, params, x):
        return jnp.broadcast_to(params[None] * self.size, (len(x), len(params)))

    def fit_rows(self, keys, x, y, w, left_out):
        return jax.vmap(partial(self.fit, None, x, y))(w)


def test_rows_of_ones_own_that_are_none_are_refused(own_messages):
    learner = Tuned((Careless(), Careless(2.0)))
    data, plan = Data(X, Y, tuple("abc")), resample.k_fold(KEY, N, 4, 3)
    message = refused(lambda: assess(KEY, learner, data, plan))
    assert message.startswith("expected fit_rows of Careless")


def test_a_way_that_cannot_be_traced_goes_apart():
    """A number that is asked for its value while it is traced: each learner is then compiled by itself."""

    @dataclass(frozen=True)
    class Asking(Careless):
        def fit_rows(self, keys, x, y, w, left_out):
            size = float(self.size)
            return jax.vmap(lambda w: size * jnp.average(y, axis=0, weights=w))(w), jnp.ones(len(w), bool)

    x, y, w = jnp.asarray(X), jnp.asarray(Y), jnp.asarray(weights(N))
    rows = ways.Rows(jax.random.split(KEY, len(w)), x, y, w, None, None)
    learner = Tuned((Asking(1.0), Asking(0.5)))
    found = ways.programs_of(learner.candidates, lambda _, way: way.runs_rows(rows))
    assert [way.numbers for way in found] == [(0,), (1,)]


def test_ridges_that_go_apart_are_read_as_such(monkeypatch):
    """One fit for each learner, not one for all of them as where they share a decomposition."""
    learner, n = Tuned(LeastSquares(), {"ridge": PENALTIES}, by=3), len(WIDE)
    x, y, w = map(jnp.asarray, (WIDE, TARGETS, weights(n)))

    @jax.jit
    def predicted():
        fits, *_ = learner.fit_rows(jax.random.split(KEY, len(w)), x, y, w, None)
        return fits.choice, jax.vmap(learner.predict, (0, None))(fits, x)

    together = predicted()
    monkeypatch.setattr(ways.Traced, "runs_rows", lambda *_: False)
    jax.clear_caches()
    for got, want in zip(predicted(), together, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)  # of single precision
