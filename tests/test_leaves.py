"""The nearest of many cases with few inputs, from the leaves of a k-d tree, against SciPy's and scikit-learn."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import KDTree
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jaxgen import assess, datasets, learn, resample
from jaxgen.learn import leaves, nearest
from jaxgen.learn.distances import unit_of
from jaxgen.learn.leaves import Leaves
from jaxgen.learn.nearest import nearest_cases
from jaxgen.learn.selection import least_with_kept

N = 6007
"""Enough cases for a tree, of which the last leaf is not full."""

SINGLE = 2.0**-11
"""What the first bits of a number in single precision that are compared may leave unsaid of it, beside the places of
1400 numbers.
"""


def cases(kind):
    """Cases [N, D] of some kind."""
    random = np.random.default_rng(3)
    normal = random.normal(size=(N, 3))
    match kind:
        case "one input":
            return normal[:, :1]
        case "two inputs":
            return normal[:, :2]
        case "three inputs":
            return normal
        case "heavy tails":
            return random.standard_t(1, size=(N, 2))
        case "grid":
            return np.round(2 * normal)
        case "groups":
            return 1e-3 * normal + 100 * random.integers(0, 3, size=(N, 1)) + 1e4
        case "all alike":
            return np.full((N, 2), 0.1)
        case "half alike":
            return np.where(np.arange(N)[:, None] % 2, normal, 1.0)
        case "in a plane":
            return normal[:, :2] @ random.normal(size=(2, 9)) + 1e-3 * random.normal(size=(N, 9))
        case "seven inputs":
            return random.normal(size=(N, 7))
        case _:
            raise ValueError(kind)


KINDS = [
    *("one input", "two inputs", "three inputs", "heavy tails", "grid", "groups", "all alike", "half alike"),
    *("in a plane", "seven inputs"),
]


@pytest.fixture
def prefer_leaves(monkeypatch):
    """Leaves are looked through where all cases would take less time."""
    monkeypatch.setattr(leaves, "_PRICE", 1)


@partial(jax.jit, static_argnums=2)
def from_leaves(x, w, length):
    return Leaves.of(x, w).nearest(length, ordered=True)


@pytest.mark.parametrize(
    ("kind", "length", "used"),
    [
        *((kind, 19, 1.0) for kind in KINDS),
        *((kind, 19, 0.3) for kind in ("one input", "heavy tails", "grid", "in a plane")),
        *((kind, length, 1.0) for kind, length in (("grid", 1), ("two inputs", 1), ("two inputs", 256))),
    ],
)
@pytest.mark.usefixtures("prefer_leaves")
@jax.enable_x64(True)
def test_lists_from_leaves_hold_the_nearest_cases(kind, length, used):
    """Distances are SciPy's, up to one that no other case comes below, which is that of the last but for what single
    precision leaves unsaid; no case is listed twice.
    """
    x = cases(kind)
    w = np.random.default_rng(4).random(N) < used
    far, case, beyond = map(np.asarray, from_leaves(jnp.asarray(x), jnp.asarray(w, float), length))
    want = KDTree(x[w]).query(x, length)[0].reshape(N, length) ** 2
    # Squares of distances that SciPy found as roots, and the bits in which places of a list were kept.
    cut = np.minimum(want, beyond[:, None])
    np.testing.assert_allclose(far, cut, rtol=1e-12, atol=1e-12 * np.square(x).max())
    assert (beyond >= want[:, -1] * (1 - SINGLE) - 1e-30).all()
    own = np.sum(np.square(x[case] - x[:, None]), axis=2)
    np.testing.assert_allclose(np.minimum(own, beyond[:, None]), far, rtol=1e-12, atol=1e-12 * np.square(x).max())
    assert w[case].all()
    assert (np.diff(np.sort(case, axis=1), axis=1) > 0).all()
    some = np.arange(0, N, 61)
    others = np.where(w, np.sum(np.square(x[some, None] - x), axis=2), np.inf)
    np.put_along_axis(others, case[some], np.inf, axis=1)
    assert (others.min(axis=1) >= beyond[some] * (1 - 1e-12)).all()


@pytest.mark.parametrize("kind", ["two inputs", "in a plane", "seven inputs"])
@pytest.mark.usefixtures("prefer_leaves")
@jax.enable_x64(True)
def test_few_cases_with_weight_are_all_listed(kind):
    """Less than lists are long: the rest is infinitely far away."""
    x, w = cases(kind), np.arange(N) % 400 == 7
    far, case, beyond = map(np.asarray, from_leaves(jnp.asarray(x), jnp.asarray(w, float), 19))
    assert np.isinf(far[:, w.sum() :]).all()
    assert np.isinf(beyond).all()
    assert (np.sort(case[:, : w.sum()], axis=1) == np.flatnonzero(w)).all()


@pytest.mark.parametrize(("kind", "near"), [("two inputs", True), ("seven inputs", False)])
@jax.enable_x64(True)
def test_all_cases_are_looked_through_only_where_leaves_are_not_worth_it(kind, near, monkeypatch):
    """Of seven inputs nearly all leaves are near to each."""
    looked = []
    every = Leaves._from_all

    def from_all(*arguments):
        jax.debug.callback(lambda: looked.append(1))
        return every(*arguments)

    monkeypatch.setattr(Leaves, "_from_all", from_all)
    jax.block_until_ready(jax.jit(lambda x: Leaves.of(x, jnp.ones(N)).nearest(19, ordered=False))(cases(kind)))
    jax.effects_barrier()
    assert (len(looked) < 10) == near


@jax.enable_x64(True)
def test_rows_that_run_together_have_the_lists_of_each():
    x = jnp.asarray(cases("two inputs"))
    w = jnp.asarray(np.random.default_rng(5).random((3, N)) < [[1.0], [0.5], [0.01]], float)
    together = jax.jit(jax.vmap(lambda w: nearest_cases(x, unit_of(x), 19, w)))(w)
    for row, weights in enumerate(w):
        alone = jax.jit(lambda weights: nearest_cases(x, unit_of(x), 19, weights))(weights)
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_array_equal(a[row], b)


@pytest.mark.parametrize("inputs", [1, 2, 3, 5])
@jax.enable_x64(True)
def test_leaves_are_small(inputs):
    """Every case is in one leaf, and of cases that are equally dense all leaves have about the same sides: none is four
    times as long as that of a cube.
    """
    x = np.random.default_rng(6).random((N, inputs))
    tree = jax.jit(Leaves.of)(x, np.ones(N))
    case = np.asarray(tree.case).ravel()
    assert (np.sort(case[case < N]) == np.arange(N)).all()
    assert (case[np.asarray(tree.place)] == np.arange(N)).all()
    own = np.asarray(tree.own)
    np.testing.assert_array_equal(np.swapaxes(own, 1, 2).reshape(-1, inputs)[np.asarray(tree.place)], x)
    sides = np.ptp(own[:-1], axis=2)
    assert sides.max() < 4 * (32 / N) ** (1 / inputs)


@pytest.mark.parametrize("values", ["unlike", "ties", "none kept"])
def test_the_least_of_numbers_and_of_those_kept(values, dtype):
    random = np.random.default_rng(7)
    numbers, kept = random.exponential(size=(512, 6)).astype(dtype), random.exponential(size=(9, 6)).astype(dtype) / 9
    if values == "ties":
        numbers, kept = np.floor(9 * numbers), np.floor(9 * kept)
    if values == "none kept":
        kept = np.full_like(kept, np.inf)
    least, place, last = map(np.asarray, jax.jit(least_with_kept)(numbers, kept))
    both = np.concatenate([numbers, kept])
    np.testing.assert_array_equal(np.take_along_axis(both, place, axis=0), least)
    assert all(len(set(column)) == 9 for column in place.T.tolist())
    # Places of up to 512 take 10 bits.
    np.testing.assert_allclose(np.sort(least, axis=0), np.sort(both, axis=0)[:9], rtol=2.0**-13)
    np.put_along_axis(both, place, np.inf, axis=0)
    assert (both.min(axis=0) >= last).all()


@pytest.mark.parametrize(("kind", "scaled"), [("heavy tails", False), ("two inputs", True), ("in a plane", False)])
def test_predictions_of_many_cases_are_those_of_scikit_learn(kind, scaled):
    """Of the cases that each of five folds leaves out, which are kept in single precision."""
    x = cases(kind)
    y = np.sin(x[:, 0]) + np.random.default_rng(8).normal(size=N)
    own, peer = learn.Neighbours(k=5), KNeighborsRegressor(5)
    if scaled:
        own, peer = learn.Normalised(own, how="standard"), make_pipeline(StandardScaler(), peer)
    plan = resample.k_fold(jax.random.key(9), N, 5)
    found = assess(jax.random.key(10), own, datasets.from_arrays(x, y), plan, keep="predictions").predictions[..., 0]
    folds = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in zip(plan.train, plan.test, strict=True)]
    want = cross_val_predict(peer, x, y, cv=folds)
    for row, (_, test) in zip(np.asarray(found), folds, strict=True):
        np.testing.assert_allclose(row[test], want[test], rtol=1e-6, atol=1e-6)


@pytest.mark.devices
@pytest.mark.parametrize(
    ("rows", "numbers", "grid", "scaled"),
    [
        (1, {"k": 5}, True, False),
        (3, {"k": 5}, True, True),
        pytest.param(2, {"at_most": 6}, False, True, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_assessed_rows_are_the_same_with_leaves_and_one_by_one(numbers, grid, scaled, rows, monkeypatch):
    """Of cases on a grid many are equally far away. Predictions are in single precision."""
    x = cases("two inputs")
    x = np.round(x, 1) if grid else x
    data = datasets.from_arrays(x, x[:, 0] + np.random.default_rng(11).normal(size=N))
    own = learn.Neighbours(**numbers)
    own = learn.Normalised(own, how="standard") if scaled else own
    plan = resample.leave_out(jax.random.key(12), N, 0.3, rows)
    shared = assess(jax.random.key(13), own, data, plan, keep="predictions")
    monkeypatch.setattr(learn.Neighbours, "worth_sharing", (9, 0.0))
    monkeypatch.setattr(learn.Neighbours, "shares_one_row_of", lambda *_: False)
    monkeypatch.setattr(nearest, "_IN_LEAVES", 2 * N)
    alone = assess(jax.random.key(13), own, data, plan, keep="predictions")
    np.testing.assert_allclose(shared.predictions, alone.predictions, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(shared.info["neighbours"], alone.info["neighbours"])
