"""Nearest neighbours against scikit-learn, a loop over leave-one-out, and lists of repeated cases."""

from fractions import Fraction
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jaxgen import Data, assess, learn, resample
from jaxgen.learn import counting, neighbours
from jaxgen.learn.nearest import nearest_cases
from jaxgen.learn.ranked import Ranked, in_order

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(45, 3))
Y = np.sin(2 * X[:, :1]) + 0.3 * RANDOM.normal(size=(45, 2))
AT = RANDOM.normal(size=(300, 3))
EXACT = {np.dtype("float32"): 1e-5, np.dtype("float64"): 1e-12}
"""Sums of up to 45 targets in another order."""


@partial(jax.jit, static_argnums=0)
def train(learner, x, y, w, at):
    fit = learner.fit(jax.random.key(0), x, y, w)
    return fit, learner.predict(fit, at)


def trained(learner, dtype, x=X, y=Y, w=None, at=AT):
    return train(learner, *(jnp.asarray(a, dtype) for a in (x, y, np.ones(len(x)) if w is None else w, at)))


@pytest.mark.parametrize("k", [1, 2, 7, 45])
def test_means_are_those_of_scikit_learn(k, dtype):
    _, got = trained(learn.Neighbours(k), dtype)
    np.testing.assert_allclose(got, KNeighborsRegressor(k).fit(X, Y).predict(AT), rtol=EXACT[dtype], atol=EXACT[dtype])


@cache
def leave_one_out(cases=tuple(range(45)), target="y"):
    """Mean squared leave-one-out loss of 1, 2, ... neighbours on some cases, by scikit-learn's lists of neighbours."""
    x, y = X[list(cases)], TARGETS[target][list(cases)]
    losses = []
    for i in range(len(x)):
        others = np.delete(np.arange(len(x)), i)
        order = KNeighborsRegressor(len(others)).fit(x[others], y[others]).kneighbors(x[[i]], return_distance=False)[0]
        means = np.cumsum(y[others][order], axis=0) / np.arange(1, len(x))[:, None]
        losses.append(np.sum((y[i] - means) ** 2, axis=1))
    return np.mean(losses, axis=0)


TARGETS = {"y": Y, "noise": np.random.default_rng(1).normal(size=(45, 1)), "an input": X[:, :1]}


@pytest.mark.parametrize(("target", "few", "many"), [("y", 1, 10), ("noise", 16, 44), ("an input", 1, 5)])
@pytest.mark.parametrize("at_most", [None, 3, 60])
def test_the_number_of_neighbours_is_that_of_a_loop_over_leave_one_out(target, few, many, at_most, dtype):
    """Targets without any relation to the inputs take nearly all cases, an input free of noise takes few."""
    errors = leave_one_out(target=target)[:at_most]
    fit, got = trained(learn.Neighbours(at_most=at_most), dtype, y=TARGETS[target])
    assert int(fit.k) == 1 + np.argmin(errors)
    assert at_most == 3 or few <= int(fit.k) <= many
    np.testing.assert_allclose(fit.error, min(errors), rtol=EXACT[dtype])
    want = trained(learn.Neighbours(int(fit.k)), dtype, y=TARGETS[target])[1]
    np.testing.assert_allclose(got, want, rtol=EXACT[dtype], atol=EXACT[dtype])


@pytest.mark.parametrize("k", [None, 4, 9])
def test_equally_distant_cases_share_the_places(k, dtype):
    """Inputs on a coarse grid: repeated cases, other orders and weights of 2 all give the same."""
    grid = np.random.default_rng(2).integers(0, 3, size=(30, 2)).astype(float)
    y, w = grid[:, :1] + np.random.default_rng(3).normal(size=(30, 1)), 1 + np.arange(30) % 3
    want, prediction = trained(learn.Neighbours(k), dtype, grid, y, w, grid + 0.25)
    for order in (np.repeat(np.arange(30), w), np.random.default_rng(4).permutation(np.repeat(np.arange(30), w))):
        got, same = trained(learn.Neighbours(k), dtype, grid[order], y[order], None, grid + 0.25)
        assert int(got.k) == int(want.k)
        np.testing.assert_allclose(same, prediction, rtol=10 * EXACT[dtype], atol=10 * EXACT[dtype])


def test_a_tie_at_the_edge_is_shared():
    """Three cases at the same distance from 0 and one nearer: two neighbours are the nearer one and a third of each
    other.
    """
    _, got = trained(
        learn.Neighbours(2),
        np.float32,
        np.array([[1.0], [-1.0], [1.0], [0.5]]),
        np.array([[3.0], [6.0], [9.0], [2.0]]),
        at=np.zeros((1, 1)),
    )
    np.testing.assert_allclose(got, [[(2 + 6) / 2]], rtol=1e-6)


@pytest.mark.parametrize("towards", [0.0, np.inf])
def test_the_last_neighbour_is_found_if_its_distance_comes_with_another_rounding(towards):
    """XLA may compute the distances again, by an ulp smaller or larger than that which was the k-th."""
    far = jnp.asarray([[1.0], [2.0], [3.0], [3.0], [4.0]], jnp.float32)
    again = jnp.asarray(np.nextafter(np.asarray(far), np.float32(towards)))
    edge, k = jnp.asarray([3.0], jnp.float32), jnp.float32(3)
    counted = counting.counts_of_nearest(again, jnp.ones((5, 1), jnp.float32), edge, k, edge * 6 * 2.0**-23)
    np.testing.assert_array_equal(counted[:, 0], [1, 1, 0.5, 0.5, 0])


def test_a_constant_in_the_target_is_a_constant_in_the_prediction(dtype):
    """Sums of 45 targets of 1000 have 45,000 units in the last place, of predictions that differ by about 1."""
    wanted, want = trained(learn.Neighbours(), dtype)
    found, got = trained(learn.Neighbours(), dtype, y=Y + 1000)
    assert int(found.k) == int(wanted.k)
    rounding = 45_000 * np.finfo(dtype).eps
    np.testing.assert_allclose(got - dtype.type(1000), want, rtol=0, atol=rounding)
    np.testing.assert_allclose(found.error, wanted.error, rtol=rounding)


def test_assess_says_how_many_neighbours(dtype):
    plan = resample.k_fold(jax.random.key(1), 45, folds=5)
    losses = assess(jax.random.key(0), learn.Neighbours(), Data(X, Y, tuple("abc")), plan)
    for row, (train, test) in enumerate(zip(plan.train > 0, plan.test > 0, strict=True)):
        errors = leave_one_out(tuple(np.flatnonzero(train).tolist()))
        k = 1 + np.argmin(errors)
        assert losses.info["neighbours"][row] == k
        np.testing.assert_allclose(losses.info["leave_one_out"][row], min(errors), rtol=EXACT[dtype])
        predicted = KNeighborsRegressor(k).fit(X[train], Y[train]).predict(X[test])
        np.testing.assert_allclose(
            losses.g[row], np.mean(np.sum((Y[test] - predicted) ** 2, axis=1)), rtol=EXACT[dtype]
        )
    assert len(set(losses.info["neighbours"])) > 1


def test_all_training_cases_may_be_neighbours():
    """Then they predict their mean."""
    data, plan = Data(X, Y, tuple("abc")), resample.k_fold(jax.random.key(0), 45, folds=5)
    every, mean = (assess(jax.random.key(0), learner, data, plan) for learner in (learn.Neighbours(36), learn.Mean()))
    np.testing.assert_allclose(every.values, mean.values, rtol=1e-4, atol=1e-6)  # squares, in single precision


SENTENCES = {
    "no neighbour": (
        learn.Neighbours(0),
        resample.full(45),
        "the number k of neighbours to be a whole number of at least 1, got 0; leave k out to have it chosen",
    ),
    "more neighbours than cases": (
        learn.Neighbours(37),
        resample.k_fold(jax.random.key(0), 45, folds=5),
        r"at least 37 training cases for Neighbours\(k=37\), got 36 in resample.k_fold",
    ),
    "no neighbour at most": (
        learn.Neighbours(at_most=0),
        resample.full(45),
        "at_most, the largest number of neighbours that is tried, to be a whole number of at least 1, got 0; leave it "
        "out to have all numbers tried",
    ),
    "a number and the largest": (
        learn.Neighbours(3, at_most=9),
        resample.full(45),
        "a number k of neighbours or at_most, the largest that is tried, got both, 3 and 9; leave one of them out",
    ),
    "nothing to leave out": (
        learn.Neighbours(),
        resample.leave_out(jax.random.key(0), 45, 0.97, 3),
        r"at least 2 training cases for Neighbours\(\), got 1 in .*; train on more cases",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_bad_input_is_named(case, own_messages):
    learner, plan, message = SENTENCES[case]
    with pytest.raises(ValueError, match=f"expected {message}"):
        assess(jax.random.key(0), learner, Data(X, Y, tuple("abc")), plan)


# Rows that share their cases


def listed(learner, x, y, w):
    """Predictions of the cases for all rows at once, and which rows to trust; predictions for each row by itself."""
    keys = jax.random.split(jax.random.key(0), len(w))
    with jax.enable_x64(True):
        _, trusted, together = jax.jit(lambda x, y, w: learner.fit_rows(keys, x, y, w, None))(x, y, w)
        each = jax.jit(jax.vmap(lambda w, x, y: learner.predict(learner.fit(keys[0], x, y, w), x), (0, None, None)))
        return together, trusted, each(w, x, y)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(
    "data",
    ["few inputs", "many inputs", "ties", "many inputs with ties", "alike", "80 inputs", "80 ties", "80 with copies"],
)
@pytest.mark.parametrize("k", [1, 5, 12, 30])
def test_rows_that_share_their_cases_get_the_means_of_each(k, data, share):
    """Masks, counts, and grids on which many cases are equally far away; lists are the shorter the more cases train,
    and on the grids many end in the middle of a tie.
    """
    random = np.random.default_rng(5)
    x = {
        "few inputs": random.normal(size=(300, 2)),
        "many inputs": random.normal(size=(300, 30)),
        "ties": random.integers(0, 15, (300, 2)),
        "many inputs with ties": random.integers(0, 2, (300, 30)) * (np.arange(30) < 8),
        "alike": random.integers(0, 2, (300, 2)) * 0.1,
        "80 inputs": random.normal(size=(300, 80)),
        "80 ties": random.integers(0, 2, (300, 80)) * (np.arange(80) < 12),
        "80 with copies": np.tile(random.normal(size=(100, 80)), (3, 1)) + np.repeat([0, 0, 1e-6], 100)[:, None],
    }[data].astype(float)
    y, w = random.normal(size=(300, 2)), np.concatenate([random.random((5, 300)) < share, random.poisson(1, (5, 300))])
    w = w if share == 0.5 else w[:5]
    together, trusted, each = listed(learn.Neighbours(k).for_rows(w.astype(bool).mean(1).min()), x, y, w.astype(float))
    assert trusted.all()
    np.testing.assert_allclose(together, each, rtol=1e-12, atol=1e-12)  # sums of the same terms in another order


@pytest.mark.parametrize("k", [1, 5, 12])
def test_cases_in_blocks_get_what_all_at_once_get(k, monkeypatch):
    """45 cases in blocks of 16, some of them equally far away: the same trust, and means up to the rounding of sums of
    as many targets.
    """
    x, y = jnp.round(jnp.asarray(X, jnp.float32)), jnp.asarray(Y, jnp.float32)
    w = jnp.asarray(np.random.default_rng(2).permuted(np.arange(45) < 36, axis=0), jnp.float32)
    w = jnp.stack([jnp.roll(w, shift) for shift in range(7)])
    given = jax.random.split(jax.random.key(0), 7), x, y, w, None
    learner = learn.Neighbours(k)
    _, trusted, together = learner.fit_rows(*given)
    monkeypatch.setattr(neighbours, "AT_A_TIME", 1)
    _, also, apart = learner.fit_rows(*given)
    blocks = str(jax.make_jaxpr(partial(learner.fit_rows, left_out=None))(*given[:-1])).count("length=3")
    assert blocks == 1
    np.testing.assert_allclose(apart, together, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(also, trusted)


@pytest.mark.parametrize("data", ["normal", "grid", "far away", "with one far away"])
def test_cases_that_are_listed_are_the_nearest(data, dtype):
    """The products of cases that are far from their mean say little of distances, which are then compared themselves.
    A grid has ties at the ends of lists.
    """
    random = np.random.default_rng(10)
    x = random.normal(size=(500, 30))
    if data == "grid":
        x = np.round(x)
    if data == "far away":
        x = x / 1024 + np.where(np.arange(500) < 250, -1, 1)[:, None] * 4096
    if data == "with one far away":
        x[7] = 1e9
    x, unit = x.astype(dtype), 2.0**13
    far, case, beyond = (np.asarray(a) for a in jax.jit(lambda x: nearest_cases(x, jnp.asarray(unit, x.dtype), 20))(x))
    own = np.arange(500)[:, None]
    true = np.sum(np.square((x[:, None] - x[None]).astype(float) / unit), axis=2)
    rounding = 32 * np.finfo(dtype).eps  # of a sum of 30 squares
    # A distance that reaches the end of what is known is cut there.
    np.testing.assert_allclose(far, np.minimum(true[own, case], beyond[:, None]), rtol=rounding)
    assert (np.diff(far, axis=1) >= 0).all()
    assert all(len(set(row)) == 20 for row in case.tolist())
    others = np.ones_like(true, bool)
    others[own, case] = False
    assert (np.where(others, true, np.inf).min(axis=1) >= beyond * (1 - rounding)).all()
    assert (beyond >= 0.95 * np.sort(true, axis=1)[:, 19]).all()


def test_rows_whose_neighbours_are_not_all_listed_are_not_trusted():
    """Too few cases of the row near some case; a row of tiny numbers; distances that are all the same in single
    precision. But lists of all cases are never too short, nor are those that end among equal distances.
    """
    random = np.random.default_rng(6)
    x, y = random.normal(size=(100, 1)), random.normal(size=(100, 1))
    few = np.arange(100) < 10
    w = np.stack([np.ones(100), few, ~few]).astype(float)
    together, trusted, each = listed(learn.Neighbours(3), x, y, w)
    assert trusted.tolist() == [True, False, True]
    np.testing.assert_allclose(together[trusted], each[trusted], rtol=1e-12)
    assert listed(learn.Neighbours(3), np.repeat(x[:2], 50, axis=0), y, w)[1].tolist() == [True, False, True]
    for far, sure in ((1e6, True), (1e9, False)):
        x[0] = far
        together, trusted, each = listed(learn.Neighbours(3), x, y, 1.0 - np.eye(100)[:2])
        assert trusted.tolist() == [False, sure]
        np.testing.assert_allclose(together[trusted], each[trusted], rtol=1e-12)
    together, trusted, each = listed(
        learn.Neighbours(3), x[:20], y[:20], np.stack([few, few | (np.arange(100) % 2 == 0)])[:, 1:21] * 1.0
    )
    assert trusted.all()
    np.testing.assert_allclose(together, each, rtol=1e-12)


@pytest.mark.parametrize("how", ["delve", "standard"])
@pytest.mark.parametrize("k", [1, 5, 12, 30])
@pytest.mark.parametrize("data", ["unlike", "zeros and ones"])
def test_rows_with_units_of_their_own_get_the_means_of_each(data, k, how):
    """Masks and counts, inputs of very different units, and repeated cases, which are equally far away in all units; or
    zeros and ones, of which most lists are too short, and longer ones are not for a few neighbours.
    """
    random = np.random.default_rng(8)
    x = random.normal(size=(300, 3)) * [1e-3, 1, 1e4] + [0, 5, 0]
    x[200:240] = x[:40]
    if data == "zeros and ones":
        x = random.integers(0, 2, (800, 8)).astype(float)
    n = len(x)
    y, w = random.normal(size=(n, 2)), np.concatenate([random.random((5, n)) < 0.8, random.poisson(1, (5, n))])
    together, trusted, each = listed(learn.Normalised(learn.Neighbours(k), how=how), x, y, w.astype(float))
    assert trusted.all()
    np.testing.assert_allclose(together, each, rtol=1e-12, atol=1e-12)  # sums of the same terms in another order


@pytest.mark.parametrize("numbers", [{"k": 5}, {"k": 30}, {"at_most": 7}], ids=str)
def test_rows_whose_units_differ_much_get_the_means_of_each(numbers):
    """A row that has no case far out in an input takes this input for the largest of all, and another has none but
    those: for some of its cases the nearest of all are not those of the row. A third has hardly more cases than it
    needs.
    """
    random = np.random.default_rng(9)
    x, y = random.normal(size=(400, 2)), random.normal(size=(400, 1))
    x[:40, 0] *= 1e3
    cases = np.arange(400)
    w = np.stack([cases >= 40, np.ones(400), cases % 10 > 0, cases < 40, cases % 12 == 0]).astype(float)
    learner = learn.Normalised(learn.Neighbours(**numbers), how="standard")
    together, trusted, each = listed(learner, x, y, w)
    assert trusted.all()
    np.testing.assert_allclose(together, each, rtol=1e-12, atol=1e-12)  # sums of the same terms in another order


@pytest.mark.parametrize("numbers", [{"k": 5}, {"at_most": 7}], ids=str)
def test_rows_whose_units_differ_beyond_measure_are_not_trusted(numbers):
    """Differences within one row are nothing in the units of another."""
    random = np.random.default_rng(14)
    x, y = random.normal(size=(200, 2)), random.normal(size=(200, 1))
    x[:100] *= 1e12
    w = np.stack([np.arange(200) < 100, np.arange(200) >= 100]).astype(float)
    assert listed(learn.Normalised(learn.Neighbours(**numbers)), x, y, w)[1].tolist() == [True, False]


def test_normalised_neighbours_are_those_of_scikit_learn():
    """Their scaler and their neighbours, fitted on each fold."""
    x, y = X * [1, 100, 0.01] + 3, Y
    plan = resample.k_fold(jax.random.key(2), 45, folds=5, repeats=4)
    learner = learn.Normalised(learn.Neighbours(3), how="standard")
    losses = assess(jax.random.key(0), learner, Data(x, y, tuple("abc")), plan, keep="predictions")
    for row, train in enumerate(plan.train > 0):
        model = make_pipeline(StandardScaler(), KNeighborsRegressor(3)).fit(x[train], y[train])
        np.testing.assert_allclose(losses.predictions[row], model.predict(x), rtol=1e-5, atol=1e-5)  # single precision


def neighbours_of_grid(steps, units, y, w, numbers):
    """The number of neighbours up to the most of `numbers` with the least leave-one-out loss, and the means of them, of
    cases at whole steps of a grid with weights [n]. Distances are sums of squares of whole numbers in some units, so
    that those that are equal are so but for the rounding of their sums.
    """
    far = np.round(np.sum(np.square((steps[:, None] - steps[None]) / units), axis=2), 9)

    def mean(i, weights, k):
        order = np.argsort(far[i] + np.where(weights > 0, 0, np.inf), kind="stable")
        edge = far[i][order[np.searchsorted(np.cumsum(weights[order]), k)]]
        inside, at_edge = weights * (far[i] < edge), weights * (far[i] == edge)
        return ((inside @ y) + (k - inside.sum()) * (at_edge @ y) / at_edge.sum()) / k

    def loss(k):
        used = np.flatnonzero(w)
        return sum(w[i] * np.sum((y[i] - mean(i, w - (np.arange(len(w)) == i), k)) ** 2) for i in used)

    k = numbers[0] if len(numbers) == 1 else min(numbers, key=lambda k: (round(loss(k), 9), k))
    return k, np.array([mean(i, w, k) for i in range(len(w))])


GRIDS = {
    "tenths": (48, 2, 6, lambda steps: 13.2 + steps / 10),
    "sevenths": (48, 2, 6, lambda steps: 100 / 3 + steps / 7),
    "thousandths": (48, 2, 6, lambda steps: 5 + steps * 1e-3),
    "whole numbers": (160, 3, 10, lambda steps: steps + 0.0),
}
"""Cases, inputs and values of each, and what these are."""


@pytest.mark.parametrize("values", GRIDS)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("numbers", [{"k": 1}, {"k": 3}, {"k": 25}, {"at_most": 4}, {}], ids=str)
def test_cases_on_a_grid_are_equally_far_away_whatever_rounding_says(numbers, scaled, values):
    """13.3 - 13.2 and 13.2 - 13.1 differ in floating point, and a grid that is normalised has other steps up than down.
    Rows that are trained together, of a mask and of counts, and rows alone.
    """
    random = np.random.default_rng(16)
    n, d, count, grid = GRIDS[values]
    steps, y = random.integers(0, count, (n, d)), random.normal(size=(n, 1))
    learner = learn.Neighbours(**numbers)
    learner = learn.Normalised(learner, how="standard") if scaled else learner
    data = Data(grid(steps), y, tuple(map(str, range(d))))
    folds, counts = resample.k_fold(jax.random.key(3), n, folds=8), resample.bootstrap(jax.random.key(4), n, 4)
    for plan, rows in ((folds, [0, 5]), (counts, [0, 3]), (resample.leave_out(jax.random.key(5), n, 0.3, 1), [0])):
        losses = assess(jax.random.key(0), learner, data, plan, keep="predictions")
        for row in rows:
            w = np.asarray(plan.train[row], float)
            mean = np.average(steps, axis=0, weights=w)
            units = np.sqrt(np.average((steps - mean) ** 2, axis=0, weights=w)) if scaled else np.ones(d)
            most = int(min(w.sum() - 1, numbers.get("at_most", n)))
            tried = [numbers["k"]] if "k" in numbers else range(1, most + 1)
            k, want = neighbours_of_grid(steps, units, y, w, tried)
            assert losses.info["neighbours"][row] == k
            # Predictions are kept in single precision.
            np.testing.assert_allclose(losses.predictions[row], want, rtol=1e-6, atol=1e-6)


def test_the_order_of_cases_matters_to_scikit_learn_alone():
    """It takes those of equally distant cases that come first, or that rounding brings nearer."""
    random = np.random.default_rng(17)
    x, y = 13.2 + random.integers(0, 6, (48, 2)) / 10, random.normal(size=(48, 1))
    order = random.permutation(48)
    one, other = (KNeighborsRegressor(3).fit(x[some], y[some]).predict(x) for some in (slice(None), order))
    assert np.max(np.abs(one - other)) > 0.5
    with jax.enable_x64(True):
        (_, ours), (_, same) = (trained(learn.Neighbours(3), float, x[o], y[o], at=x) for o in (slice(None), order))
    np.testing.assert_allclose(ours, same, rtol=0, atol=1e-14)  # sums of the same terms in another order


@pytest.mark.parametrize("at_most", [None, 6])
@pytest.mark.parametrize("how", [None, "delve", "standard"])
@pytest.mark.parametrize("data", ["no ties", "ties"])
def test_rows_that_share_their_cases_choose_the_number_that_each_does(data, how, at_most):
    """Masks and counts, of which the sum may be above the number of cases, two targets, and inputs with and without
    cases that are equally far away: on a grid, or in all units because cases are repeated. Lists of 52 cases are enough
    for up to six neighbours where rows train on most of the cases.
    """
    random = np.random.default_rng(11)
    x = random.normal(size=(90, 2)) * [1, 30]
    if data == "ties" and how is None:
        x = np.round(2 * x)
    elif data == "ties":
        x[60:] = x[:30]
    y = x[:, :1] * [1, -2] / 6 + random.normal(size=(90, 2)) * [1, 5]
    w = np.concatenate([random.random((4, 90)) < [[0.9], [0.6], [0.3], [0.1]], random.poisson(1.3, (3, 90))]).astype(
        float
    )
    learner = learn.Neighbours(at_most=at_most)
    learner = learner if how is None else learn.Normalised(learner, how=how)
    keys = jax.random.split(jax.random.key(0), len(w))
    with jax.enable_x64(True):
        shared, trusted, together = jax.jit(lambda x, y, w: learner.fit_rows(keys, x, y, w, None))(x, y, w)
        told = jax.vmap(learner.diagnose)(shared)
        alone = jax.jit(jax.vmap(lambda w: learner.fit(keys[0], jnp.asarray(x), jnp.asarray(y), w)))(w)
        said, apart = (
            jax.vmap(learner.diagnose)(alone),
            jax.vmap(lambda fit: learner.predict(fit, jnp.asarray(x)))(alone),
        )
    trusted = np.asarray(trusted)
    assert trusted.all() or (at_most and not trusted[3] and trusted[[0, 4, 5, 6]].all())
    np.testing.assert_array_equal(told["neighbours"][trusted], said["neighbours"][trusted])
    assert len(np.unique(said["neighbours"])) > 2
    # Sums of the same terms in another order.
    np.testing.assert_allclose(told["leave_one_out"][trusted], said["leave_one_out"][trusted], rtol=1e-12)
    np.testing.assert_allclose(together[trusted], apart[trusted], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("data", ["few inputs", "many inputs", "ties", "alike"])
@pytest.mark.parametrize("at_most", [1, 5, 20])
def test_numbers_up_to_one_have_the_losses_that_they_have_among_all(at_most, data):
    """Masks and counts, one with hardly more cases than numbers and one with fewer: the best by the losses of all
    numbers, which others tests compare with a loop; from lists of the nearest, of all cases on a grid, which is full of
    ties, and of cases that are mostly alike, of which lists are never long enough.
    """
    random = np.random.default_rng(15)
    x = random.normal(size=(200, 2 if data == "few inputs" else 30))
    if data == "ties":
        x = random.integers(0, 12, (200, 2)).astype(float)
    if data == "alike":
        x = np.where(np.arange(200)[:, None] < 150, 0, x)
    y = x[:, :2] + random.normal(size=(200, 2))
    w = [random.random(200) < 0.95, np.arange(200) % 9 == 0, np.arange(200) % 11 == 0, random.poisson(1, 200)]
    w, learner = np.asarray(w, float), learn.Neighbours(at_most=at_most)

    def losses_of_all(w):
        used = (w > 0)[:, None]
        ranked = Ranked.of(jnp.where(used, x, 0), jnp.asarray(8.0))
        return ranked._losses(jnp.int32(0), 200, jnp.where(used, y, 0), w[:, None], jnp.sum(w)[None] - 1)[0][:, 0]

    with jax.enable_x64(True):
        fits = jax.jit(jax.vmap(lambda w: learner.fit(jax.random.key(0), jnp.asarray(x), jnp.asarray(y), w)))(w)
        losses = jax.jit(jax.vmap(losses_of_all))(w)
    for fit_k, error, all_losses, total in zip(fits.k, fits.error, np.asarray(losses), w.sum(1), strict=True):
        some = all_losses[: min(at_most, int(total) - 1)]
        assert fit_k == 1 + np.argmin(some)
        np.testing.assert_allclose(error, min(some) / total, rtol=1e-12)  # sums of the same terms in another order


@pytest.mark.parametrize("data", ["no ties", "ties"])
def test_losses_of_all_numbers_are_those_of_a_loop(data):
    """By NumPy, with repeated cases in place of weights; those that are equally far away share the places left."""
    random = np.random.default_rng(12)
    x = random.integers(0, 3, (25, 1)).astype(float) if data == "ties" else random.normal(size=(25, 1))
    y, w = random.normal(size=(25, 2)), random.integers(0, 3, (2, 25))
    with jax.enable_x64(True):
        ranked = Ranked.of(jnp.asarray(x), jnp.asarray(1.0))
        for tried in (0, 7):
            given = jnp.asarray(y), jnp.asarray(w.T, float), jnp.asarray(w.sum(1) - 1.0)
            found, enough = ranked._losses(jnp.int32(tried), 25, *given)
            assert enough.all()
            for row, counts in enumerate(w):
                cases = np.repeat(np.arange(25), counts)
                for number in range(tried + 1, min(len(cases), tried + 26)):
                    want = 0.0
                    for i, case in enumerate(cases):
                        others = np.delete(cases, i)
                        far = np.abs(x[others, 0] - x[case, 0])
                        edge = np.sort(far)[number - 1]
                        nearer, at_edge = others[far < edge], others[far == edge]
                        sums = y[nearer].sum(0) + (number - len(nearer)) * y[at_edge].mean(0)
                        want += np.sum((y[case] - sums / number) ** 2)
                    np.testing.assert_allclose(found[number - 1 - tried, row], want, rtol=1e-12)


def test_the_smallest_of_numbers_whose_losses_are_equal_is_taken():
    """Targets of 0 and 0.1 by whole numbers: with several numbers of neighbours the least loss comes out, in floating
    point with other roundings.
    """
    random, n = np.random.default_rng(14), 9
    x, y, ones = random.normal(size=(400, n, 1)), random.integers(0, 2, (400, n, 1)), np.ones((1, n))

    def chosen(x, y):
        ranked = Ranked.of(x, jnp.ones((), x.dtype))
        w = jnp.asarray(ones)
        return ranked.best_numbers(y, w)[:2], ranked._losses(jnp.int32(0), n, y, w.T, jnp.array([n - 1.0]))[0][:-1, 0]

    with jax.enable_x64(True):
        (number, least), losses = jax.jit(jax.vmap(chosen))(x, y / 10)
    several = rounded = 0
    for set_number in range(400):
        far = np.abs(x[set_number] - x[set_number].T) + np.where(np.eye(n), np.inf, 0)
        targets, sizes = y[set_number, :, 0], np.arange(1, n)
        sums = np.cumsum(targets[np.argsort(far, axis=1)[:, :-1]], axis=1)
        squares = np.sum((targets[:, None] * sizes - sums) ** 2, axis=0)  # n k^2 times the losses
        exact = [Fraction(int(square), int(size) ** 2) for square, size in zip(squares, sizes, strict=True)]
        best = [size for size, each in zip(sizes, exact, strict=True) if each == min(exact)]
        several += len(best) > 1
        rounded += 1 + np.argmin(losses[set_number]) != best[0]
        assert number[set_number, 0] == best[0]
        np.testing.assert_allclose(least[set_number, 0], float(min(exact)) / (100 * n), rtol=1e-14)
    assert several > 5
    assert rounded > 0, "rounding should matter in some"


def test_an_outlier_has_its_nearest_cases_though_single_precision_cannot_tell():
    """All cases are equally far away from it in single precision, in which the nearest are looked for."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(300, 2)), random.normal(size=(300, 1))
    x[0] = 1e9
    w = (random.random((3, 300)) < 0.95).astype(float)
    w[:, 0] = 1
    keys = jax.random.split(jax.random.key(0), 3)
    with jax.enable_x64(True):
        found = jax.jit(lambda x, y, w: learn.Neighbours(at_most=10).fit_rows(keys, x, y, w, None))(x, y, w)
    fits, trusted, means = jax.tree.map(np.asarray, found)
    assert trusted.all()
    for row, number in enumerate(fits.k):
        far = np.where(w[row] > 0, np.sum((x - x[0]) ** 2, axis=1), np.inf)
        want = y[np.argsort(far)[:number]].mean(0)
        np.testing.assert_allclose(means[row, 0], want, rtol=1e-12)  # sums of the same terms in another order


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("at_most", [None, 25])
def test_losses_of_repeated_cases_are_nothing_and_not_below(at_most, normalised):
    """Every case has nineteen others like it, with its target. With them as neighbours nothing is lost, with more of
    them much is: the least loss is nothing but rounding, and the smallest number with it is taken.
    """
    random = np.random.default_rng(16)
    x, y = np.repeat(random.normal(size=(2, 30, 2)), 20, axis=1)
    w = np.stack([np.ones(600), random.permutation(600) < 540, random.poisson(1, 600)]).astype(float)
    learner = learn.Neighbours(at_most=at_most)
    learner = learn.Normalised(learner) if normalised else learner
    keys = jax.random.split(jax.random.key(0), len(w))
    with jax.enable_x64(True):
        fits, trusted, means = jax.jit(lambda x, y, w: learner.fit_rows(keys, x, y, w, None))(x, y, w)
        told = {name: np.asarray(a) for name, a in jax.vmap(learner.diagnose)(fits).items()}
    trusted, means = np.asarray(trusted), np.asarray(means)
    assert trusted.all()
    assert (told["neighbours"][trusted] == 1).all()
    assert ((told["leave_one_out"] >= 0) & (told["leave_one_out"] < 1e-28))[trusted].all()
    # Means of equal targets, which for normalised ones go to other units and back.
    np.testing.assert_allclose(means[trusted], np.broadcast_to(y, means.shape)[trusted], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 100])
@pytest.mark.parametrize("kind", ["random", "few values", "nearly equal", "nearly equal groups", "some infinite"])
def test_distances_are_put_in_their_order(kind, n, dtype):
    """As NumPy's stable sort does, in double precision of numbers that have lost the bits which a place needs."""
    random = np.random.default_rng(13)
    few, last = random.integers(0, 5, (20, n)), random.integers(0, 6, (20, n)) * 2.0**-52
    far = {
        "random": random.random((20, n)),
        "few values": few * 1.0,
        "nearly equal": 1 + last,
        "nearly equal groups": few * (1 + last),
        "some infinite": np.where(few == 0, np.inf, random.random((20, n))),
    }[kind].astype(dtype)
    with jax.enable_x64(True):
        found, case = (np.asarray(a) for a in jax.jit(lambda far: in_order(far))(jnp.asarray(far)))
    rounded = far
    if dtype == np.float64:
        low = np.uint64(2 ** int(np.ceil(np.log2(n))) - 1)
        rounded = (far.view(np.uint64) & ~low).view(dtype)
    want = np.argsort(rounded, axis=1, kind="stable")
    np.testing.assert_array_equal(case, want)
    np.testing.assert_array_equal(found, np.take_along_axis(rounded, want, axis=1))
    there = np.take_along_axis(far, want, axis=1)
    assert ((found <= there) & (found >= there * (1 - 2 * n * np.finfo(dtype).eps))).all()


@pytest.mark.devices
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("numbers", [{"k": 5}, {"at_most": 9}], ids=str)
@pytest.mark.parametrize("least", [60, 80])
def test_assessed_rows_are_the_same_with_and_without_a_shared_list(numbers, scaled, least, monkeypatch):
    """Rows of 60 cases out of 100 and more, and of 80 and more, whose lists are shorter."""
    random, learner = np.random.default_rng(7), learn.Neighbours(**numbers)
    learner = learn.Normalised(learner) if scaled else learner
    data = Data(random.normal(size=(100, 2)), random.normal(size=(100, 1)), ("a", "b"))
    train = np.stack([random.permutation(100) < size for size in (90, 90, least, 90, 85)]).astype(np.uint8)
    plan = resample.from_weights(train, 1 - train)
    shared = assess(jax.random.key(0), learner, data, plan, keep="predictions")
    monkeypatch.setattr(learn.Neighbours, "worth_sharing", (9, 0.0))
    alone = assess(jax.random.key(0), learner, data, plan, keep="predictions")
    np.testing.assert_allclose(shared.predictions, alone.predictions, rtol=1e-5, atol=1e-5)  # single precision
    np.testing.assert_allclose(shared.test_mean, alone.test_mean, rtol=1e-5)
    np.testing.assert_array_equal(shared.info["neighbours"], alone.info["neighbours"])
