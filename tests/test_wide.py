"""More inputs than cases: linear models are found in the space that the cases span, and are those of other programs."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import linear_model

from jaxgen import Data, assess, learn, loss, resample
from jaxgen.engine import run as engine
from jaxgen.learn.bases import orthonormal
from jaxgen.learn.shrinkage import Centred, Shrinkage, Span

KEY = jax.random.key(0)
PENALTIES = (0.3, 3.0, 30.0, 300.0)


def wide(n, d, kind="plain"):
    """Cases and targets, [n, d] and [n, 2]."""
    random = np.random.default_rng([n, d])
    x = random.normal(size=(n, d)) + 5
    if kind == "of low rank":
        x = x[:, :4] @ random.normal(size=(4, d))
    elif kind == "cases twice":
        x[n // 2 :] = x[: n - n // 2]
    elif kind == "inputs twice":
        x[:, d // 2 :] = x[:, : d - d // 2]
    elif kind == "of any size":
        x = x * 10.0 ** random.uniform(-4, 3, d)[None]
    y = (x - x.mean(0)) @ random.normal(size=(d, 2)) / x.std() / d**0.5 + random.normal(size=(n, 2))
    return Data(x, y, tuple(map(str, range(d))))


def plan_of(kind, n):
    return {
        "few left out": resample.k_fold(KEY, n, 5),
        "half": resample.leave_out(KEY, n, 0.5, 6),
        "bootstrap": resample.bootstrap(KEY, n, 6),
    }[kind]


def of_rows(found, plan, data, fitted):
    """Predictions of all rows beside those of a function that is trained on each."""
    for r, w in enumerate(plan.train.astype(float)):
        used = w > 0
        want = fitted(data.x[used], data.y[used], w[used], r)
        np.testing.assert_allclose(found[r], want, rtol=0, atol=1e-7 * np.abs(data.y).max())


def centred_and_scaled(x, w):
    mean = np.average(x, axis=0, weights=w)
    return mean, np.sqrt(np.average((x - mean) ** 2, axis=0, weights=w))


def those_trusted(monkeypatch):
    """A list, to which every run adds which of its rows were trusted as they were trained together."""
    trusted, train = [], engine.Run.all_rows
    monkeypatch.setattr(
        engine.Run, "all_rows", lambda run, *given: (train(run, *given), trusted.append(run.trusted))[0]
    )
    return trusted


def slow(value):
    """A parameter that others stand for in the quick level."""
    return pytest.param(value, marks=pytest.mark.slow)


SHAPES = [(20, 50), slow((40, 41)), slow((40, 150))]
PLANS = ["few left out", "half", slow("bootstrap")]
KINDS = ["plain", "of low rank", slow("cases twice"), slow("of any size")]


@pytest.mark.devices
@pytest.mark.parametrize("intercept", [True, slow(False)])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_ridge_regressions_are_those_of_scikit_learn(shape, kind, plan, intercept):
    """By singular values there. Sums are of numbers up to a thousand times as large as the targets."""
    data, known = wide(*shape, kind), learn.LeastSquares(ridge=2.0, intercept=intercept)
    chosen = plan_of(plan, data.n)
    found = assess(KEY, known, data, chosen, keep="predictions").predictions

    def fitted(x, y, w, r):
        peer = linear_model.Ridge(2.0, fit_intercept=intercept, solver="svd").fit(x, y, w)
        return peer.predict(data.x)

    of_rows(found, chosen, data, fitted)


@pytest.mark.parametrize("ridge", [2.0, slow(1e-4)])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("kind", ["plain", slow("of low rank"), slow("cases twice"), slow("of any size")])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_ridge_regressions_of_one_training_set_are_those_of_scikit_learn(shape, kind, plan, ridge):
    """Each row has inputs of its own where missing ones are filled in."""
    data = wide(*shape, kind)
    x = data.x + 1000 * data.x.std(axis=0)[None]
    x[::7, ::5] = np.nan
    data = replace(data, x=x, missing=True)
    known, chosen = learn.Imputed(learn.LeastSquares(ridge=ridge)), plan_of(plan, data.n)
    found = assess(KEY, known, data, chosen, keep="predictions").predictions

    def fitted(x, y, w, r):
        fill = np.array([np.average(a[~np.isnan(a)], weights=w[~np.isnan(a)]) for a in x.T])
        filled, every = (np.where(np.isnan(a), fill, a) for a in (x, data.x))
        middle = np.average(filled, axis=0, weights=w)
        return linear_model.Ridge(ridge, solver="svd").fit(filled - middle, y, w).predict(every - middle)

    of_rows(found, chosen, data, fitted)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("kind", ["plain", slow("cases twice")])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_normalised_ridge_regressions_are_those_of_scikit_learn(shape, kind, plan):
    data, known = wide(*shape, kind), learn.Normalised(learn.LeastSquares(ridge=2.0), how="standard")
    chosen = plan_of(plan, data.n)
    found = assess(KEY, known, data, chosen, keep="predictions").predictions

    def fitted(x, y, w, r):
        mean, scale = centred_and_scaled(x, w)
        y_mean, y_scale = centred_and_scaled(y, w)
        peer = linear_model.Ridge(2.0, solver="svd").fit((x - mean) / scale, (y - y_mean) / y_scale, w)
        return peer.predict((data.x - mean) / scale) * y_scale + y_mean

    of_rows(found, chosen, data, fitted)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("kind", ["plain", slow("of low rank")])
@pytest.mark.parametrize("shape", [(20, 50), slow((40, 41)), slow((40, 40)), slow((40, 30)), (40, 7)], ids=str)
def test_normalised_least_norms_are_those_of_numpy(shape, kind, plan):
    """A least norm depends on the units of a row, but where there is only one solution."""
    data, known = wide(*shape, kind), learn.Normalised(learn.LeastSquares(minimum_norm=True), how="standard")
    chosen = plan_of(plan, data.n)
    found = assess(KEY, known, data, chosen, keep="predictions").predictions

    def fitted(x, y, w, r):
        mean, scale = centred_and_scaled(x, w)
        y_mean, root = np.average(y, axis=0, weights=w), np.sqrt(w)[:, None]
        weights = np.linalg.lstsq(root * (x - mean) / scale, root * (y - y_mean), rcond=1e-12)[0]
        return (data.x - mean) / scale @ weights + y_mean

    of_rows(found, chosen, data, fitted)


@pytest.mark.devices
@pytest.mark.parametrize("intercept", [True, slow(False)])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    "given", [(40, 8, "inputs twice"), slow((40, 30, "inputs twice")), slow((40, 12, "of low rank"))], ids=str
)
def test_normalised_weights_of_dependent_inputs_are_the_shortest(given, plan, intercept):
    """In the units of each row: those of NumPy. By them cases outside of what the others span are predicted."""
    data = wide(*given)
    data = Data(data.x * np.geomspace(1e-3, 1e3, data.d)[None], data.y, data.names)
    known = learn.Normalised(learn.LeastSquares(minimum_norm=True, intercept=intercept), how="standard")
    chosen = plan_of(plan, data.n)
    found = assess(KEY, known, data, chosen).info["weights"]
    for r, w in enumerate(chosen.train.astype(float)):
        used = w > 0
        (mean, scale), (y_mean, y_scale) = (centred_and_scaled(a[used], w[used]) for a in (data.x, data.y))
        root = np.sqrt(w[used])[:, None]
        inputs, targets = (data.x[used] - mean) / scale, (data.y[used] - y_mean) / y_scale
        want = np.linalg.lstsq(root * inputs, root * targets, rcond=1e-12)[0]
        np.testing.assert_allclose(found[r], want, rtol=0, atol=1e-7 * np.abs(want).max())


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("kind", [*KINDS[:3], slow("inputs twice")])
@pytest.mark.parametrize("shape", [*SHAPES, slow((40, 40)), (40, 30), slow((40, 7))], ids=str)
def test_least_norms_are_those_of_numpy(shape, kind, plan):
    """Also of no more inputs than cases, and of rows that have less cases than inputs while all have more."""
    data, known = wide(*shape, kind), learn.LeastSquares(minimum_norm=True)
    chosen = plan_of(plan, data.n)
    found = assess(KEY, known, data, chosen, keep="predictions").predictions

    def fitted(x, y, w, r):
        mean, y_mean = (np.average(a, axis=0, weights=w) for a in (x, y))
        root = np.sqrt(w)[:, None]
        weights = np.linalg.lstsq(root * (x - mean), root * (y - y_mean), rcond=1e-12)[0]
        return (data.x - mean) @ weights + y_mean

    of_rows(found, chosen, data, fitted)


def losses_left_out(x, y, w, penalty):
    """Mean squared leave-one-out loss by a loop; of a case of weight 2 one is left out."""
    total = 0.0
    for i in range(len(x)):
        less = w.copy()
        less[i] -= 1
        peer = linear_model.Ridge(penalty, solver="svd").fit(x[less > 0], y[less > 0], less[less > 0])
        total += w[i] * np.sum((peer.predict(x[i : i + 1]) - y[i]) ** 2)
    return total / w.sum()


@pytest.mark.devices
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    "given",
    [
        (20, 50),
        slow((20, 20)),
        slow((40, 60)),
        slow((40, 32)),
        (40, 7, "inputs twice"),
        slow((40, 40, "inputs twice")),
        slow((40, 50, "cases twice")),
    ],
    ids=str,
)
def test_penalties_are_chosen_as_by_a_loop(given, plan, scaled):
    """Also of rows that have less cases than inputs while all have more, and of inputs that are linearly dependent."""
    data, ridge = wide(*given), learn.Ridge(PENALTIES)
    chosen = plan_of(plan, data.n)
    known = learn.Normalised(ridge, how="standard") if scaled else ridge
    found = assess(KEY, known, data, chosen, keep="predictions")

    def fitted(x, y, w, r):
        mean, scale = centred_and_scaled(x, w) if scaled else (0, 1)
        y_mean, y_scale = centred_and_scaled(y, w) if scaled else (0, 1)
        inside, targets = (x - mean) / scale, (y - y_mean) / y_scale
        errors = [losses_left_out(inside, targets, w, penalty) for penalty in PENALTIES]
        best = int(np.argmin(errors))
        assert found.info["ridge"][r] == PENALTIES[best]
        np.testing.assert_allclose(found.info["leave_one_out"][r], errors[best], rtol=1e-7)
        peer = linear_model.Ridge(PENALTIES[best], solver="svd").fit(inside, targets, w)
        return peer.predict((data.x - mean) / scale) * y_scale + y_mean

    of_rows(found.predictions, chosen, data, fitted)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("kind", ["plain", slow("cases twice")])
def test_logistic_regressions_are_those_of_scikit_learn(kind, plan, classes, scaled):
    x = wide(45, 120, kind).x
    labels = np.arange(45) % classes
    data = Data(x, np.eye(classes)[labels], tuple(map(str, range(120))), task="classification")
    chosen = plan_of(plan, data.n)
    known = learn.Logistic(ridge=2.0)
    known = learn.Normalised(known, how="standard") if scaled else known
    found = assess(KEY, known, data, chosen, loss.cross_entropy, keep="predictions").predictions
    for r, w in enumerate(chosen.train.astype(float)):
        mean, scale = centred_and_scaled(x[w > 0], w[w > 0]) if scaled else (0, 1)
        # Of two classes scikit-learn has one column of logits, whose ridge is half of that of our two.
        peer = linear_model.LogisticRegression(
            C=1.0 if classes == 2 else 0.5, solver="newton-cg", tol=1e-12, max_iter=1000
        )
        peer.fit(((x - mean) / scale)[w > 0], labels[w > 0], w[w > 0])
        want = peer.predict_proba((x - mean) / scale)
        np.testing.assert_allclose(found[r], want, rtol=0, atol=1e-6)  # where newton-cg ends


@pytest.mark.parametrize("kind", ["plain", "rare"])
def test_normalised_logistic_regressions_of_many_cases_are_those_of_scikit_learn(kind, monkeypatch):
    """Of 140 cases a metric in single precision is enough. Rare zeros and ones are constant in some training sets; no
    row is trained again by itself.
    """
    random = np.random.default_rng(6)
    x = random.normal(size=(140, 300)) * np.geomspace(0.1, 10, 300)
    if kind == "rare":
        x[:, :60] = random.random((140, 60)) < 0.02
    labels = (x[:, :3] @ random.normal(size=(3, 3)) + random.gumbel(size=(140, 3))).argmax(1)
    data = Data(x, np.eye(3)[labels], tuple(map(str, range(300))), task="classification")
    plan, known = resample.k_fold(KEY, 140, 5), learn.Normalised(learn.Logistic(ridge=2.0), how="standard")
    trusted = those_trusted(monkeypatch)
    found = assess(KEY, known, data, plan, loss.cross_entropy, keep="predictions").predictions
    assert trusted[0].all()
    for r, w in enumerate(plan.train):
        mean, scale = centred_and_scaled(x[w > 0], w[w > 0])
        inputs = (x - mean) / np.where(scale > 0, scale, 1)
        peer = linear_model.LogisticRegression(C=0.5, solver="newton-cg", tol=1e-12, max_iter=1000)
        want = peer.fit(inputs[w > 0], labels[w > 0]).predict_proba(inputs)
        np.testing.assert_allclose(found[r], want, rtol=0, atol=1e-6)  # where newton-cg ends


@pytest.mark.parametrize("spread", [1.1, 3.0, 1e12])
@pytest.mark.parametrize("kind", ["plain", "of low rank"])
@jax.enable_x64(True)
def test_metrics_are_squares_of_the_least_weights(kind, spread):
    """Weights times a scale that give the predictions of coordinates, by NumPy's least squares of least norm. What a
    metric in single precision leaves out is found, or said.
    """
    random = np.random.default_rng(7)
    span = Span.of(jnp.asarray(wide(12, 40, kind).x), jnp.ones(12), True)
    scale = np.geomspace(1, spread, 40)
    used = np.asarray(span.basis).any(axis=0)
    b = random.normal(size=(12, 2)) * used[:, None]
    least = np.linalg.lstsq(np.asarray(span.basis).T / scale, b, rcond=1e-13)[0]  # times the scale
    metric = np.asarray(span.metric(jnp.asarray(scale)))
    product = span.measured(span.single.metric(jnp.asarray(scale, np.float32)), jnp.asarray(scale), jnp.asarray(b))
    exact = bool(span.is_measured(jnp.asarray(scale), jnp.asarray(b), product))
    assert exact == (spread < 100 or kind == "of low rank")  # four inputs of forty are about alike
    if exact:
        np.testing.assert_allclose(b.T @ metric @ b, least.T @ least, rtol=1e-9)  # as orthonormal as bases are
        np.testing.assert_allclose(product, metric @ b, rtol=0, atol=1e-11 * np.abs(metric).max())
        weights = np.asarray(span.basis) @ np.asarray(product) / scale[:, None] ** 2
        np.testing.assert_allclose(np.asarray(span.basis).T @ weights, b, rtol=0, atol=1e-11)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [6, 40])
def test_coordinates_are_those_of_the_cases(n, kind, centred, dtype):
    """Also where some cases are absent, whatever stands there. Weights keep their length in the space of the others."""
    x, w = wide(n, 60, kind).x, np.arange(n) % 3.0
    x[w == 0] = 1e4
    span = Span.of(jnp.asarray(x, dtype), jnp.asarray(w, dtype), centred)
    back = np.asarray(span.centre)[None] + np.asarray(span.cases) @ np.asarray(span.basis).T
    size, eps = np.abs(x[w > 0]).max(), np.finfo(dtype).eps
    np.testing.assert_allclose(back[w > 0], x[w > 0], rtol=0, atol=500 * eps * size)  # sums of 60 products, twice
    inside = np.abs(np.asarray(span.cases)).max(axis=0) > 1e4 * eps * np.abs(span.cases).max()
    basis = np.asarray(span.basis, float)[:, inside]
    # From eigenvalues 2e-10 of a length may be lost in double precision, see `squares_are_easy`.
    np.testing.assert_allclose(basis.T @ basis, np.eye(inside.sum()), atol=max(100 * eps, 1e-9))


@pytest.mark.parametrize("least", [1.0, 1e-2, 1e-5])
def test_cases_of_any_condition_are_decomposed(least, dtype):
    """Singular values of NumPy, the least as many times as large as the greatest; without an intercept, and with."""
    random = np.random.default_rng(3)
    left, right = (np.linalg.qr(random.normal(size=size))[0] for size in ((12, 12), (30, 12)))
    x = (left * np.geomspace(1, least, 12)) @ right.T
    y = random.normal(size=(12, 1))
    for intercept in (False, True):
        cases = Centred.of(*(jnp.asarray(a, dtype) for a in (x, y, np.ones(12))), intercept)
        found = Shrinkage.of(cases)
        want = np.linalg.svd(x - intercept * x.mean(0), compute_uv=False)
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(found.values, want, rtol=0, atol=20 * eps)
        back = (np.asarray(found.left) * np.asarray(found.values)) @ np.asarray(found.right)
        np.testing.assert_allclose(back, np.asarray(cases.x), rtol=0, atol=50 * eps)
        assert found.deficient


@pytest.mark.devices
@pytest.mark.parametrize(
    "learner",
    [
        learn.LeastSquares(minimum_norm=True),
        learn.Normalised(learn.LeastSquares(minimum_norm=True)),
        learn.Ridge(PENALTIES),
        learn.Normalised(learn.Ridge(PENALTIES)),
    ],
    ids=repr,
)
def test_rows_share_inputs_that_are_linearly_dependent(learner, monkeypatch):
    """Words as zeros and ones that add up to 1: no row is trained again by itself."""
    random = np.random.default_rng(5)
    words = [np.eye(k)[random.integers(k, size=120)] for k in (3, 4)]
    x = np.hstack([*words, random.normal(size=(120, 2))])
    data = Data(x, x @ random.normal(size=(9, 1)) + random.normal(size=(120, 1)), tuple("abcdefghi"))
    plan, trusted = resample.k_fold(KEY, 120, 10), those_trusted(monkeypatch)
    assess(KEY, learner, data, plan)
    assert trusted
    assert all(each.all() for each in trusted)


@pytest.mark.parametrize("shape", [(40, 30, 4), (40, 20, 3), (60, 12, 2), (60, 40, 5)], ids=str)
def test_a_basis_of_dependent_columns_is_orthonormal(shape, dtype):
    """Of few columns by Gram and Schmidt, whose vectors of dependent columns would be rounding in any direction."""
    n, p, rank = shape
    random = np.random.default_rng(shape)
    a = jnp.asarray(random.normal(size=(n, rank)) @ random.normal(size=(rank, p)), dtype)
    basis, triangle, deficient = (np.asarray(each) for each in orthonormal(a))
    eps = np.finfo(dtype).eps
    products = basis.T @ basis
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=50 * eps)
    np.testing.assert_allclose(basis @ triangle, a, rtol=0, atol=100 * eps * np.abs(a).max())
    assert deficient


@pytest.mark.parametrize(
    "known",
    [learn.Ridge(PENALTIES), learn.Tuned([learn.LeastSquares(ridge=each) for each in PENALTIES], by="leave_one_out")],
    ids=repr,
)
@pytest.mark.parametrize("shape", [(40, 30, 4), (40, 20, 3), (60, 12, 2)], ids=str)
def test_penalties_for_inputs_of_low_rank_are_those_of_scikit_learn(shape, known):
    n, d, rank = shape
    random = np.random.default_rng(shape)
    x = random.normal(size=(n, rank)) @ random.normal(size=(rank, d))
    data = Data(x, x @ random.normal(size=(d, 1)) / d + random.normal(size=(n, 1)), tuple(map(str, range(d))))
    plan = resample.leave_out(KEY, n, 0.5, 6)
    found = assess(KEY, known, data, plan, keep="predictions")

    def fitted(x, y, w, r):
        peer = linear_model.RidgeCV(PENALTIES).fit(x, y)
        chosen = found.info["ridge"][r] if "ridge" in found.info else PENALTIES[found.info["choice"][r]]
        assert chosen == peer.alpha_
        return peer.predict(data.x).reshape(data.y.shape)

    of_rows(found.predictions, plan, data, fitted)
