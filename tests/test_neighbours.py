"""Nearest neighbours against scikit-learn, a loop over leave-one-out, and lists of repeated cases."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor

from jaxgen import Data, assess, learn, resample

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


def test_the_number_of_neighbours_is_that_of_a_loop_over_leave_one_out(dtype):
    errors = [
        np.mean(np.sum((Y - cross_val_predict(KNeighborsRegressor(k), X, Y, cv=LeaveOneOut())) ** 2, axis=1))
        for k in range(1, 45)
    ]
    fit, got = trained(learn.Neighbours(), dtype)
    assert int(fit.k) == 1 + np.argmin(errors)
    np.testing.assert_allclose(fit.error, min(errors), rtol=EXACT[dtype])
    np.testing.assert_allclose(
        got, trained(learn.Neighbours(int(fit.k)), dtype)[1], rtol=EXACT[dtype], atol=EXACT[dtype]
    )


def test_targets_without_any_relation_take_nearly_all_cases(dtype):
    """And a target that is an input, free of noise, takes few."""
    noise, copy = (
        trained(learn.Neighbours(), dtype, y=y)[0].k for y in (np.random.default_rng(1).normal(size=(45, 1)), X[:, :1])
    )
    assert noise > 15
    assert copy < 6


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


def test_large_targets_lose_nothing(dtype):
    """Means of leave-one-out in single precision: a constant of 1e4 in the target does not change the choice."""
    assert int(trained(learn.Neighbours(), dtype, y=Y + 1e4 * (dtype == np.float64) + 10)[0].k) == int(
        trained(learn.Neighbours(), dtype)[0].k
    )


def test_assess_says_how_many_neighbours(dtype):
    data = Data(X, Y, tuple("abc"))
    losses = assess(
        jax.random.key(0), learn.Normalised(learn.Neighbours()), data, resample.k_fold(jax.random.key(1), 45, folds=5)
    )
    assert losses.info["neighbours"].shape == (5,)
    assert (losses.info["neighbours"] >= 1).all()
    assert (losses.info["leave_one_out"] > 0).all()


SENTENCES = {
    "no neighbour": (
        learn.Neighbours(0),
        resample.full(45),
        "the number k of neighbours to be a whole number of at least 1, got 0; leave k out to have it chosen",
    ),
    "more neighbours than cases": (
        learn.Neighbours(40),
        resample.k_fold(jax.random.key(0), 45, folds=5),
        r"at least 40 training cases for Neighbours\(k=40\), got 36 in resample.k_fold",
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
