"""One battery of checks for every learner: what the engine relies on."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.linear_model import Ridge

from jaxgen import Data, assess, learn, resample
from jaxgen.engine import program
from jaxgen.learn import seminormal
from jaxgen.types import as_learner

NETWORKS = [
    learn.Normalised(
        learn.Descent(
            learn.MLP((4,), skip=True), steps=12, relevance="gradient", penalty=(learn.L2(0.1), learn.Sparse(0.01))
        )
    ),
    learn.Normalised(learn.Scaled(learn.Conjugate(learn.MLP((3,), init="glorot"), steps=3)), how="standard"),
    learn.Normalised(learn.Bayes(learn.MLP((3,)), passes=36, steps=6, window=2, blocks=1, step=0.3)),
    learn.Ensemble(
        learn.EarlyStopped(
            learn.Normalised(learn.Descent(learn.MLP((3,), batch_norm=True, noise=0.1), steps=8, batch=10)),
            folds=2,
            patience=3.0,
        ),
        members=2,
    ),
]
NEIGHBOURS = learn.Normalised(learn.Neighbours())
PER_INPUT = learn.RidgePerInput(penalties=(1.0,), steps=3, rate=0.01)
TUNED = learn.Tuned(learn.LeastSquares(), {"ridge": (1.0, 1e4)}, by=3)
ADAPTIVE = learn.Normalised(
    learn.AdaptivePenalties(
        learn.Conjugate(learn.MLP((2,), init=0.5), steps=3), folds=2, steps=2, rate=0.01, iterations=2
    ),
    how="standard",
)
LEARNERS = [
    learn.LeastSquares(),
    learn.LeastSquares(intercept=False),
    learn.LeastSquares(ridge=3.0),
    learn.LeastSquares(minimum_norm=True),
    learn.Ridge((0.1, 1.0, 10.0)),
    PER_INPUT,
    learn.Mean(),
    learn.Imputed(learn.LeastSquares()),
    NEIGHBOURS,
    *NETWORKS,
    TUNED,
    ADAPTIVE,
]
ORDERLESS = LEARNERS[:-3]
"""The random numbers of the last three are those of the places of the cases in use, so that their order matters, and a
case of weight 2 is still one case to split off.
"""
LONG = [PER_INPUT, NEIGHBOURS, *NETWORKS, TUNED, ADAPTIVE]
"""Those that take long to compile."""
KEY = jax.random.key(0)
LANES = 12
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
def fit_and_predict(learner, keys, x, y, w, at):
    return jax.vmap(lambda key, x, y, w, at: learner.predict(learner.fit(key, x, y, w), at))(keys, x, y, w, at)


def fitted(learner, at, *problems):
    """Predictions [n, K] of fits to problems (x, y, w, and a key if it matters), each at the cases `at` [n, D].

    Twelve fits are one program, so that a learner is compiled once for a number of cases, in every test of this file.
    """
    found = []
    for first in range(0, len(problems), LANES):
        some = [(x, y, w, at, *(key or (KEY,))) for x, y, w, *key in problems[first : first + LANES]]
        *arrays, keys = zip(*some + [some[-1]] * (LANES - len(some)), strict=True)
        found += list(np.asarray(fit_and_predict(learner, jnp.stack(keys), *map(np.stack, arrays))))[: len(some)]
    return found


def key_of_row(key, q, r):
    """The key that the engine gives to row r of data set q."""
    return jax.random.fold_in(jax.random.fold_in(key, q), r)


@pytest.fixture(params=LEARNERS, ids=repr, scope="module")
def learner(request):
    return request.param


orderless = pytest.mark.parametrize("learner", ORDERLESS, ids=repr, indirect=True, scope="module")


def combined(few, many):
    """Learners, precisions, and one of many values; of few values where compilation takes long, and on several devices
    in 64 bits only.
    """
    return pytest.mark.parametrize(
        ("learner", "dtype", "value"),
        [
            pytest.param(
                learner,
                bits,
                value,
                id=f"{learner!r}-{bits}bit-{value}",
                marks=[pytest.mark.devices] if learner not in LONG or bits == 64 else [],
            )
            for learner in LEARNERS
            for bits in (32, 64)
            for value in (few if learner in LONG else many)
        ],
        indirect=["learner", "dtype"],
    )


def close(a, b, dtype, times=1):
    np.testing.assert_allclose(a, b, rtol=times * EXACT[dtype], atol=times * EXACT[dtype] * np.abs(b).max())


def test_weight_zero_is_absence_even_of_nan(learner, dtype):
    data = problem()
    x, y = data.x.astype(dtype), data.y.astype(dtype)
    w = (np.arange(40) % 3 > 0).astype(dtype)
    used = w > 0
    (want,) = fitted(learner, x, (x[used], y[used], w[used]))
    x_bad, y_bad = np.where(used[:, None], x, np.nan), np.where(used[:, None], y, np.inf)
    for got in fitted(learner, x, (x, y, w), (x_bad.astype(dtype), y_bad.astype(dtype), w)):
        close(got, want, dtype)


@orderless
def test_weight_two_is_the_case_twice(learner, dtype):
    """Ten of 30 cases count twice, or stand once more in places that are empty otherwise."""
    data = problem(1)
    x, y = data.x.astype(dtype), data.y.astype(dtype)
    again = np.r_[np.arange(30), np.arange(0, 30, 3)]
    weights = np.where(np.arange(40) < 30, 1 + (np.arange(40) % 3 == 0), 0).astype(dtype)
    got, want = fitted(learner, x, (x, y, weights), (x[again], y[again], np.ones(40, dtype)))
    close(got, want, dtype)


@orderless
def test_order_of_cases_does_not_matter(learner, dtype):
    data = problem(2)
    x, y, w = data.x.astype(dtype), data.y.astype(dtype), (1 + np.arange(40) % 2).astype(dtype)
    order = np.random.default_rng(0).permutation(40)
    got, want = fitted(learner, x, (x, y, w), (x[order], y[order], w[order]))
    close(got, want, dtype)


PLANS = {
    "a third left out": (resample.leave_out(jax.random.key(5), 40, 0.35, 11), 5),
    "most left out": (resample.leave_out(jax.random.key(6), 40, 0.7, 11), 5),
    "repeated": (resample.bootstrap(jax.random.key(5), 40, 11), 5),
    "one left out": (resample.leave_one_out(40), 1000),
}
"""Plans, and rows that train at a time: some chunks are filled up, one is larger than the plan."""


def losses_of_slices(learner, dtype, data, plan, q=0):
    """Losses [R, N] of data set q by a fit to the training cases of each row, repeated as often as they count.

    Rows of at most 26 cases are fitted with places for 26, others with places for 40, to compile twice only. Numbers
    that a learner draws are those of the precision that it asks for.
    """
    if as_learner(learner).precise and dtype != np.float64:
        with jax.enable_x64(True):
            return losses_of_slices(learner, np.dtype("float64"), data, plan, q)
    x, y = data.x.astype(dtype), data.y.astype(dtype)
    rows = [np.repeat(np.arange(40), weights) for weights in plan.train]
    places = 26 if max(map(len, rows)) <= 26 else 40
    weights = [(np.arange(places) < len(row)).astype(dtype) for row in rows]
    rows = [np.pad(row, (0, places - len(row))) for row in rows]
    keys = [key_of_row(KEY, q, r) for r in range(len(rows))]
    found = fitted(learner, x, *((x[row], y[row], w, key) for row, w, key in zip(rows, weights, keys, strict=True)))
    return np.sum((y - np.stack(found)) ** 2, axis=-1)


@combined(["a third left out"], PLANS)
def test_the_engine_gives_what_a_loop_over_slices_gives(learner, dtype, value):
    """Masks, gathers and down-dating, in chunks, on every thread and device; and every row draws from its own key."""
    data, (plan, chunk) = problem(3), PLANS[value]
    losses = assess(KEY, learner, data, plan, chunk=chunk)
    assert not losses.failed.any()
    want = losses_of_slices(learner, dtype, data, plan)
    for row in range(len(want)):
        close(losses.values[row], want[row], dtype, times=100)


@combined([22], [22, 5])
def test_every_data_set_gets_its_own_answer(learner, dtype, value):
    """Two of three data sets at a time, or some rows of one, with splits of their own."""
    data, plan = problem(4, sets=3), resample.leave_out(jax.random.key(1), 40, 0.35, 11, sets=3)
    together = assess(KEY, learner, data, plan, chunk=value)
    assert together.g.shape == (3, 11)
    for q in range(3):
        want = losses_of_slices(learner, dtype, data[q], plan[q], q)
        for row in range(11):
            close(together.values[q, row], want[row], dtype, times=100)


def test_a_learner_is_a_value(learner):
    again = learn.from_text(repr(learner))
    assert again == learner
    assert hash(again) == hash(learner)
    assert len({*LEARNERS, again}) == len(LEARNERS)


def test_weighted_ridge_is_that_of_scikit_learn(dtype):
    data = problem(6)
    x, y, w = data.x.astype(dtype), data.y.astype(dtype), 1.0 + np.arange(40) % 3
    for ridge, intercept in ((3.0, True), (0.5, False)):
        peer = Ridge(alpha=ridge, fit_intercept=intercept, solver="svd").fit(data.x, data.y, sample_weight=w)
        (got,) = fitted(learn.LeastSquares(ridge=ridge, intercept=intercept), x, (x, y, w.astype(dtype)))
        close(got, peer.predict(data.x), dtype)


def test_leave_one_out_is_the_press_residual_of_statsmodels(dtype):
    data = problem(7, k=1)
    losses = assess(jax.random.key(0), learn.LeastSquares(), data, resample.leave_one_out(40))
    press = sm.OLS(data.y[:, 0], sm.add_constant(data.x)).fit().get_influence().resid_press
    np.testing.assert_allclose(losses.g, press**2, rtol=100 * EXACT[dtype], atol=100 * EXACT[dtype] * np.max(press**2))


def test_minimum_norm_is_the_pseudoinverse(dtype):
    data = problem(8, n=12, d=5, k=1)
    x, y = np.hstack([data.x, data.x[:, :2]]), data.y
    centred = x - x.mean(0)
    weights = np.linalg.pinv(centred) @ (y - y.mean(0))
    want = y.mean(0) + centred @ weights
    x, y = x.astype(dtype), y.astype(dtype)
    (got,) = fitted(learn.LeastSquares(minimum_norm=True), x, (x, y, np.ones(12, dtype)))
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


@partial(jax.jit, static_argnums=0)
def fit_rows(learner, keys, x, y, w):
    return learner.fit_rows(keys, x, y, w, None)


@pytest.mark.parametrize("seed", range(10))
def test_single_precision_predicts_to_1e4_at_condition_1000(seed):
    """Against NumPy's least squares in double precision of the same single-precision numbers; normal equations fail
    it.
    """
    x, y = ill_conditioned(seed)
    plan = resample.leave_out(jax.random.key(seed), 60, 0.25, 30)
    learner = learn.LeastSquares(intercept=False)
    x32, y32, w = x.astype(np.float32), y.astype(np.float32), plan.train.astype(np.float32)
    together, trusted = fit_rows(learner, jax.random.split(jax.random.key(0), 30), x32, y32, w)
    assert np.all(trusted)
    alone = fitted(learner, x32, *((x32, y32, row) for row in w))
    normal_equations = []
    for j, mask in enumerate(plan.train > 0):
        want = x @ np.linalg.lstsq(x[mask], y[mask], rcond=None)[0]
        assert relative_error(x @ np.asarray(together.weights[j], np.float64), want) < 1e-4
        params = jax.tree.map(lambda p, j=j: p[j], together)
        assert relative_error(learner.predict(params, jnp.asarray(x32)), want) < 1e-4
        assert relative_error(alone[j], want) < 1e-4
        a, b = x32[mask], y32[mask]
        normal_equations.append(relative_error(x @ np.linalg.solve(a.T @ a, a.T @ b).astype(np.float64), want))
    assert max(normal_equations) > 1e-4


@pytest.mark.devices
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
    _, trusted = fit_rows(learner, jax.random.split(jax.random.key(0), 10), x, y, train.astype(dtype))
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


MANY = np.random.default_rng(1).normal(size=(170, 70))


@pytest.mark.devices
@pytest.mark.parametrize(
    ("plan", "way"),
    [
        (resample.k_fold(jax.random.key(0), 170, folds=10), "downdated"),
        (resample.k_fold(jax.random.key(0), 170, folds=11, repeats=10), "downdated"),
        (resample.leave_out(jax.random.key(0), 170, 0.2, 9), "downdated"),
        (resample.leave_out(jax.random.key(0), 170, 0.45, 9), "_eliminated"),
        (resample.leave_out(jax.random.key(0), 170, 0.55, 9), "_eliminated"),
    ],
    ids=["17 left out", "15 or 16 left out of many rows", "34 left out", "77 left out", "94 left out"],
)
def test_many_inputs_and_many_left_out(plan, way, dtype, monkeypatch):
    """Down-dating by 17 cases and elimination of 71 unknowns, both too many to unroll, against NumPy's least squares;
    and each only where it is the faster one. Many rows share the hat matrix of all cases, few do not. Products of 77
    cases left out are taken from those of all, those of 76 that train are not.
    """
    other = {"downdated": "_eliminated", "_eliminated": "downdated"}[way]
    monkeypatch.setattr(seminormal, other, None)
    program.forget()
    y = MANY[:, :1] + np.random.default_rng(2).normal(size=(170, 1))
    data = Data(MANY, y, tuple(f"x{i}" for i in range(70)))
    losses = assess(jax.random.key(0), learn.LeastSquares(), data, plan)
    design = np.hstack([np.ones((170, 1)), MANY])
    for j, mask in enumerate(plan.train > 0):
        want = np.abs(y - design @ np.linalg.lstsq(design[mask], y[mask], rcond=None)[0])[:, 0]
        assert relative_error(np.sqrt(losses.values[j]), want) < EXACT[dtype]


def nearly_dependent(d, left, dtype):
    """64 cases whose last input has a share `left` of its length outside the span of the first, and a target that is
    this share.
    """
    basis = np.linalg.qr(np.random.default_rng(d).normal(size=(64, d)))[0]
    x = basis.copy()
    x[:, -1] = basis[:, 0] + left * basis[:, -1]
    return x.astype(dtype), basis[:, -1:].astype(dtype)


@pytest.mark.parametrize("d", [2, 40])
def test_inputs_are_dependent_where_their_rest_is_rounding(d, dtype):
    """8 sqrt(64) units in the last place of the length of a column; the inputs themselves are rounded to less than a
    hundredth of that. By Gram-Schmidt for few inputs, by LAPACK for many.
    """
    limit = 64 * np.finfo(dtype).eps
    for left, deficient in ((0.9 * limit, True), (1.1 * limit, False)):
        params = fit(learn.LeastSquares(intercept=False), *nearly_dependent(d, left, dtype))
        assert bool(params.deficient) is deficient
        assert np.isnan(params.weights).all() == deficient


def test_least_norm_leaves_out_directions_that_are_rounding(dtype):
    """Singular values of 1.4 and left / 1.4, with 64 units in the last place of the largest as the limit."""
    limit = 2 * 64 * np.finfo(dtype).eps
    for left, weight in ((0.9 * limit, 0), (1.1 * limit, 1 / (1.1 * limit))):
        params = fit(learn.LeastSquares(intercept=False, minimum_norm=True), *nearly_dependent(2, left, dtype))
        # the weight is known to as many places as the input has left: one part in a hundred
        np.testing.assert_allclose(params.weights[1, 0], weight, rtol=0.05, atol=0.1)


@partial(jax.jit, static_argnums=0)
def fit(learner, x, y):
    return learner.fit(KEY, x, y, jnp.ones(len(x), x.dtype))


def test_as_many_training_cases_as_coefficients_are_enough(own_messages):
    """Then they are met exactly, but for rounding: 1e-9 of squares of up to 1000 is a residual of 1e-6 in doubles."""
    data = problem(10)
    for intercept, needed in ((True, 4), (False, 3)):
        learner = learn.LeastSquares(intercept=intercept)
        with jax.enable_x64(True):
            plan = resample.leave_out(KEY, 40, 1 - needed / 40, 9)
            assert assess(KEY, learner, data, plan).apparent.max() < 1e-9
        fewer = resample.leave_out(KEY, 40, 1 - (needed - 1) / 40, 9)
        with pytest.raises(
            ValueError, match=f"at least {needed} training cases for the {needed} coeff.*got {needed - 1}"
        ):
            assess(KEY, learner, data, fewer)
        assert assess(KEY, learn.LeastSquares(intercept=intercept, minimum_norm=True), data, fewer).g.shape == (9,)


@pytest.mark.devices
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
    rows = np.delete(np.arange(40), 3)
    np.testing.assert_array_equal(clean.train, 1 - np.eye(40, dtype=np.uint8)[rows])
    # the column is zero but for case 3, which it fits exactly: the other coefficients are those of the other cases
    design = np.hstack([np.ones((40, 1)), data.x])
    for row, values in zip(rows, clean.values, strict=True):
        used = np.delete(np.arange(40), [3, row])
        residual = data.y - design @ np.linalg.lstsq(design[used], data.y[used], rcond=None)[0]
        want = np.where(np.arange(40) == 3, 0, residual[:, 0] ** 2)
        np.testing.assert_allclose(values, want, rtol=100 * EXACT[dtype], atol=100 * EXACT[dtype] * want.max())


@pytest.mark.parametrize("condition", [1e3, 1e9])
def test_many_cases_share_a_basis_by_products_or_one_made_with_care(condition):
    """Rows of 3000 cases of 50 inputs against NumPy's least squares, in double precision; at a condition of 1e9
    products lose the smallest direction.
    """
    random = np.random.default_rng(0)
    left, right = np.linalg.qr(random.normal(size=(3000, 50)))[0], np.linalg.qr(random.normal(size=(50, 50)))[0]
    x = (left * np.geomspace(1, 1 / condition, 50)) @ right * np.sqrt(3000)
    y = x @ random.normal(size=(50, 1)) + random.normal(size=(3000, 1))
    data = Data(x, y, tuple(f"x{i}" for i in range(50)))
    plan = resample.k_fold(KEY, 3000, folds=3)
    losses = assess(KEY, learn.LeastSquares(), data, plan)
    design = np.column_stack([np.ones(3000), x])
    for values, train in zip(losses.values, plan.train > 0, strict=True):
        want = design @ np.linalg.lstsq(design[train], y[train], rcond=None)[0]
        np.testing.assert_allclose(values, ((y - want) ** 2)[:, 0], rtol=1e-5, atol=1e-7)  # condition times rounding
