"""One battery of checks for every learner: what the engine relies on."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.linear_model import Ridge

from jaxgen import Data, assess, learn, resample

NETWORKS = [
    learn.Normalised(
        learn.Descent(
            learn.MLP((4,), skip=True), steps=12, relevance="gradient", penalty=(learn.L2(0.1), learn.Sparse(0.01))
        )
    ),
    learn.Normalised(learn.Scaled(learn.Conjugate(learn.MLP((3,), init="glorot"), steps=3)), how="standard"),
    learn.Ensemble(
        learn.EarlyStopped(
            learn.Normalised(learn.Descent(learn.MLP((3,), batch_norm=True, noise=0.1), steps=8, batch=10)),
            folds=2,
            patience=3,
        ),
        members=2,
    ),
]
NEIGHBOURS = learn.Normalised(learn.Neighbours())
DRAWN_BY_PLACE = NETWORKS[2:]
"""The random numbers of a case are those of its place among the cases in use, so order matters, and a case of weight 2
is still one case to split off.
"""
LEARNERS = [
    learn.LeastSquares(),
    learn.LeastSquares(intercept=False),
    learn.LeastSquares(ridge=3.0),
    learn.LeastSquares(minimum_norm=True),
    learn.Mean(),
    NEIGHBOURS,
    *NETWORKS,
]
KEY = jax.random.key(0)
EXACT = {np.dtype("float32"): 2e-5, np.dtype("float64"): 1e-10}
"""Relative error allowed between two ways to the same fit of well-conditioned data: about 100 roundings, or the 1e-10
that the design asks for.
"""


def problem(seed=0, n=40, d=3, k=2, sets=None):
    random = np.random.default_rng(seed)
    shape = (n,) if sets is None else (sets, n)
    x = random.normal(size=(*shape, d)) * [1, 10, 0.1, 1, 3][:d] + 2
    y = x @ random.normal(size=(d, k)) + random.normal(size=(*shape, k))
    return Data(x, y, tuple(f"x{i}" for i in range(d)))


@partial(jax.jit, static_argnums=0)
def fit_and_predict(learner, key, x, y, w, at):
    return learner.predict(learner.fit(key, x, y, w), at)


def fitted(learner, *arrays, key=KEY):
    """Predictions of one fit to (x, y, w) at the cases of the last array."""
    return np.asarray(fit_and_predict(learner, key, *map(jnp.asarray, arrays)))


def key_of_row(key, q, r):
    """The key that the engine gives to row r of data set q."""
    return jax.random.fold_in(jax.random.fold_in(key, q), r)


@pytest.fixture(params=LEARNERS, ids=repr)
def learner(request):
    return request.param


@pytest.fixture(params=[learner for learner in LEARNERS if learner not in DRAWN_BY_PLACE], ids=repr)
def orderless(request):
    return request.param


def combined(values, few):
    """Learners with each of some values; those that take long to compile with a few of them."""
    return [
        pytest.param(learner, value, id=f"{learner!r} {value}")
        for learner in LEARNERS
        for value in (few if learner in [NEIGHBOURS, *NETWORKS] else values)
    ]


def close(a, b, dtype):
    np.testing.assert_allclose(a, b, rtol=EXACT[dtype], atol=EXACT[dtype] * np.abs(b).max())


@pytest.mark.one_device
def test_weight_zero_is_absence_even_of_nan(learner, dtype):
    data = problem()
    x, y = data.x.astype(dtype), data.y.astype(dtype)
    w = (np.arange(40) % 3 > 0).astype(dtype)
    used = w > 0
    want = fitted(learner, x[used], y[used], w[used], x)
    close(fitted(learner, x, y, w, x), want, dtype)
    x_bad, y_bad = np.where(used[:, None], x, np.nan), np.where(used[:, None], y, np.inf)
    close(fitted(learner, x_bad, y_bad, w, x), want, dtype)


@pytest.mark.one_device
def test_weight_two_is_the_case_twice(orderless, dtype):
    data = problem(1)
    x, y = data.x.astype(dtype), data.y.astype(dtype)
    w = 1 + (np.arange(40) % 4 == 0)
    twice = np.repeat(np.arange(40), w)
    close(
        fitted(orderless, x, y, w.astype(dtype), x),
        fitted(orderless, x[twice], y[twice], np.ones(len(twice), dtype), x),
        dtype,
    )


@pytest.mark.one_device
def test_order_of_cases_does_not_matter(orderless, dtype):
    data = problem(2)
    x, y, w = data.x.astype(dtype), data.y.astype(dtype), (1 + np.arange(40) % 2).astype(dtype)
    order = np.random.default_rng(0).permutation(40)
    close(fitted(orderless, x, y, w, x), fitted(orderless, x[order], y[order], w[order], x), dtype)


@pytest.mark.parametrize(("learner", "few"), combined([2, 8, 40], [40]))
def test_the_engine_gives_what_a_loop_over_slices_gives(learner, dtype, few):
    """Rows that leave out one case, a quarter, or all but some: masks, gathers and down-dating."""
    data = problem(3)
    x, y = data.x.astype(dtype), data.y.astype(dtype)
    plan = {
        2: resample.leave_one_out(40),
        8: resample.bootstrap(jax.random.key(5), 40, 12),
        40: resample.leave_out(jax.random.key(5), 40, 0.7, 12),
    }[few]
    losses = assess(KEY, learner, data, plan)
    for j, weights in enumerate(plan.train):
        rows = np.repeat(np.arange(40), weights)
        want = np.sum(
            (y - fitted(learner, x[rows], y[rows], np.ones(len(rows), dtype), x, key=key_of_row(KEY, 0, j))) ** 2,
            axis=-1,
        )
        np.testing.assert_allclose(
            losses.values[j], want, rtol=100 * EXACT[dtype], atol=100 * EXACT[dtype] * want.max(), err_msg=f"row {j}"
        )


def test_every_data_set_gets_its_own_answer(learner, dtype):
    data = problem(4, sets=7)
    plan = resample.leave_out(jax.random.key(1), 40, 0.25, 9, sets=7)
    together = assess(KEY, learner, data, plan)
    assert together.g.shape == (7, 9)
    x, y = data.x.astype(dtype), data.y.astype(dtype)
    for q in range(7):
        want = np.sum(
            (y[q] - fitted(learner, x[q], y[q], plan.train[q, 5].astype(dtype), x[q], key=key_of_row(KEY, q, 5))) ** 2,
            axis=-1,
        )
        np.testing.assert_allclose(
            together.values[q, 5], want, rtol=100 * EXACT[dtype], atol=100 * EXACT[dtype] * want.max()
        )


@pytest.mark.parametrize(("learner", "chunk"), combined([5, 1000], [13]))
def test_chunks_threads_and_devices_agree(learner, dtype, chunk):
    data, plan = problem(5), resample.leave_out(jax.random.key(1), 40, 0.25, 33)
    want = assess(jax.random.key(2), learner, data, plan, devices=jax.devices()[:1])
    for devices in (jax.devices()[:1], jax.devices()):
        got = assess(jax.random.key(2), learner, data, plan, chunk=chunk, devices=devices)
        close(got.values, want.values, dtype)
        assert not got.failed.any()


@pytest.mark.one_device
def test_a_learner_is_a_value(learner):
    again = learn.from_text(repr(learner))
    assert again == learner
    assert hash(again) == hash(learner)
    assert len({*LEARNERS, again}) == len(LEARNERS)


@pytest.mark.one_device
def test_weighted_ridge_is_that_of_scikit_learn(dtype):
    data = problem(6)
    x, y, w = data.x.astype(dtype), data.y.astype(dtype), 1.0 + np.arange(40) % 3
    for ridge, intercept in ((3.0, True), (0.5, False)):
        peer = Ridge(alpha=ridge, fit_intercept=intercept, solver="svd").fit(data.x, data.y, sample_weight=w)
        close(
            fitted(learn.LeastSquares(ridge=ridge, intercept=intercept), x, y, w.astype(dtype), x),
            peer.predict(data.x),
            dtype,
        )


def test_leave_one_out_is_the_press_residual_of_statsmodels(dtype):
    data = problem(7, k=1)
    losses = assess(jax.random.key(0), learn.LeastSquares(), data, resample.leave_one_out(40))
    press = sm.OLS(data.y[:, 0], sm.add_constant(data.x)).fit().get_influence().resid_press
    np.testing.assert_allclose(losses.g, press**2, rtol=100 * EXACT[dtype], atol=100 * EXACT[dtype] * np.max(press**2))


@pytest.mark.one_device
def test_minimum_norm_is_the_pseudoinverse(dtype):
    data = problem(8, n=12, d=5, k=1)
    x, y = np.hstack([data.x, data.x[:, :2]]), data.y
    centred = x - x.mean(0)
    weights = np.linalg.pinv(centred) @ (y - y.mean(0))
    want = y.mean(0) + centred @ weights
    got = fitted(
        learn.LeastSquares(minimum_norm=True), x.astype(dtype), y.astype(dtype), np.ones(12, dtype), x.astype(dtype)
    )
    close(got, want, dtype)


def ill_conditioned(seed, condition=1000.0, n=60, d=10):
    random = np.random.default_rng(seed)
    left, right = np.linalg.qr(random.normal(size=(n, d)))[0], np.linalg.qr(random.normal(size=(d, d)))[0]
    x = (left * np.geomspace(1, 1 / condition, d)) @ right * np.sqrt(n)
    x = x.astype(np.float32).astype(np.float64)
    y = (x @ random.normal(size=(d, 1)) + 0.3 * random.normal(size=(n, 1))).astype(np.float32).astype(np.float64)
    return x, y


def relative_error(got, want):
    return np.linalg.norm(np.asarray(got, np.float64) - want) / np.linalg.norm(want)


@pytest.mark.one_device
@pytest.mark.parametrize("seed", range(10))
def test_single_precision_predicts_to_1e4_at_condition_1000(seed):
    """Against NumPy's least squares in double precision of the same single-precision numbers; normal equations fail
    it.
    """
    x, y = ill_conditioned(seed)
    plan = resample.leave_out(jax.random.key(seed), 60, 0.25, 30)
    learner = learn.LeastSquares(intercept=False)
    x32, y32, w = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.asarray(plan.train, jnp.float32)
    together, trusted = learner.fit_rows(jax.random.split(jax.random.key(0), 30), x32, y32, w, None)
    assert np.all(trusted)
    normal_equations = []
    for j, mask in enumerate(plan.train > 0):
        want = x @ np.linalg.lstsq(x[mask], y[mask], rcond=None)[0]
        assert relative_error(x @ np.asarray(together.weights[j], np.float64), want) < 1e-4
        assert relative_error(learner.predict(jax.tree.map(lambda p, j=j: p[j], together), x32), want) < 1e-4
        assert relative_error(fitted(learner, x32, y32, w[j], x32), want) < 1e-4
        a, b = x32[mask], y32[mask]
        normal_equations.append(relative_error(x @ np.asarray(jnp.linalg.solve(a.T @ a, a.T @ b), np.float64), want))
    assert max(normal_equations) > 1e-4


def test_rows_that_the_shared_basis_cannot_solve_are_solved_alone(dtype):
    """Without case 0 the inputs are nearly dependent: 1e-5 (1e-11 in double precision) is too little for the shared
    basis, not for the row.
    """
    random = np.random.default_rng(0)
    x = random.normal(size=(30, 3))
    x[:, 2] = x[:, 1] + (3e-4 if dtype == np.float32 else 1e-6) * random.normal(size=30)
    x[0] = [0, 1, -1]
    x = x.astype(dtype)
    y = (x[:, :1] + x[:, 1:2] + 0.1 * random.normal(size=(30, 1))).astype(dtype)
    train = np.ones((10, 30), np.uint8)
    train[5, 0] = 0
    train[np.arange(10), np.arange(10, 20)] = 0
    learner = learn.LeastSquares()
    _, trusted = learner.fit_rows(
        jax.random.split(jax.random.key(0), 10), jnp.asarray(x), jnp.asarray(y), jnp.asarray(train, dtype), None
    )
    assert not trusted[5]
    losses = assess(
        jax.random.key(0),
        learner,
        Data(x.astype(float), y.astype(float), ("a", "b", "c")),
        resample.from_weights(train, 1 - train),
    )
    for j, mask in enumerate(train > 0):
        design = np.hstack([np.ones((30, 1)), x]).astype(float)
        want = design @ np.linalg.lstsq(design[mask], y[mask].astype(float), rcond=None)[0]
        assert relative_error(np.sqrt(losses.values[j][mask]), np.abs(y - want)[mask, 0]) < (
            2e-3 if dtype == np.float32 else 1e-8
        ), j


def test_many_inputs_and_many_left_out(dtype):
    """Down-dating by 17 cases and elimination of 71 unknowns, both too many to unroll, against NumPy's least
    squares.
    """
    random = np.random.default_rng(1)
    x = random.normal(size=(170, 70))
    data = Data(x, x[:, :1] + random.normal(size=(170, 1)), tuple(f"x{i}" for i in range(70)))
    for plan in (resample.k_fold(jax.random.key(0), 170, folds=10), resample.leave_out(jax.random.key(0), 170, 0.2, 9)):
        losses = assess(jax.random.key(0), learn.LeastSquares(), data, plan)
        design = np.hstack([np.ones((170, 1)), x])
        for j, mask in enumerate(plan.train > 0):
            want = np.abs(data.y - design @ np.linalg.lstsq(design[mask], data.y[mask], rcond=None)[0])[:, 0]
            assert relative_error(np.sqrt(losses.values[j]), want) < EXACT[dtype]


def test_dependent_inputs_fail_with_their_reason_and_spoil_no_neighbour(dtype):
    data = problem(9, d=5, k=1)
    x = np.hstack([data.x, np.zeros((40, 1))])
    x[3, 5] = 1.0  # without case 3 this column is constant
    losses = assess(
        jax.random.key(0), learn.LeastSquares(), Data(x, data.y, tuple("abcdef")), resample.leave_one_out(40)
    )
    assert losses.failed.tolist() == [j == 3 for j in range(40)]
    with pytest.raises(
        ValueError,
        match=r"1 failed of 40 for LeastSquares\(\) on .*leave_one_out.*row 3: "
        r"the inputs of its training cases are linearly dependent.*without_failed",
    ):
        _ = losses.g
    clean = losses.without_failed()
    assert clean.dropped == 1
    assert clean.g.shape == (39,)
    assert clean.plan.resamples == 39
    without = assess(jax.random.key(0), learn.LeastSquares(), data, resample.leave_one_out(40))
    # a column that is zero but for one case removes just this case from the fit
    keep = np.delete(np.arange(40), 3)
    assert np.all(np.isfinite(clean.values))
    assert clean.values.shape == (39, 40)
    assert without.values[keep].shape == clean.values.shape
