"""Penalties found through the trained weights: their gradient against networks trained anew, and when it helps."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import refused

from jaxgen import Data, assess, learn, resample
from jaxgen.learn import MLP, AdaptivePenalties, Conjugate, Descent

KEY, N = jax.random.key(0), 30
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 3))
Y = np.tanh(X[:, :1] + 0.5 * X[:, 1:2]) + 0.2 * RANDOM.normal(size=(N, 1))
W = np.minimum(np.arange(N) % 5, 2).astype(float)
PLAN = resample.leave_out(KEY, N, 0.2, 4)
NET = Conjugate(MLP((2,), init=0.5), steps=400)


def double(function, *arrays):
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, jax.jit(function)(*map(jnp.asarray, arrays)))


@pytest.mark.parametrize(
    ("by", "base", "y"),
    [
        ("input", NET, Y),
        ("layer", Conjugate(MLP((1,), init=0.5, skip=True), steps=600), Y),
        pytest.param(
            "layer",
            Conjugate(MLP((2,), init=0.5), steps=400, objective="binary_cross_entropy"),
            (Y > 0) * 1.0,
            marks=pytest.mark.slow,
        ),
    ],
    ids=["inputs", "layers and a skip", "classes"],
)
def test_the_gradient_is_that_of_networks_trained_anew(by, base, y):
    """Central differences of fourth order with steps of 1e-2, whose error is some 1e-8, of the error of networks that
    are trained from the same starts until their gradient is rounding; cases of weight 0, 1 and 2.
    """
    learner = AdaptivePenalties(base, by=by, folds=3, start=0.5)
    with jax.enable_x64(True):
        shapes = base.init(KEY, jnp.asarray(X), jnp.asarray(y))
        groups = learner._groups(shapes)
        logarithms = np.log(0.3) + 0.4 * np.arange(groups)
        step = 1e-2 * np.eye(groups)
        places = [logarithms, *(logarithms + times * one for one in step for times in (-2, -1, 1, 2))]
        judged = jax.jit(jax.vmap(lambda place: learner.error(jnp.exp(place), KEY, *map(jnp.asarray, (X, y, W)))))
        errors, gradients = map(np.asarray, judged(jnp.asarray(places)))
    around = errors[1:].reshape(groups, 4)
    want = (around @ [1, -8, 8, -1]) / 12e-2
    assert np.abs(want).max() > 1e-3
    np.testing.assert_allclose(gradients[0], want, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_the_search_lowers_the_error_and_trains_with_what_it_found():
    learner = AdaptivePenalties(NET, folds=3, steps=15)
    made = double(partial(learner.fit, KEY), X, Y, W)
    assert made.errors.argmin() > 0
    assert made.errors.min() < 0.98 * made.errors[0]
    at_best, _ = double(partial(lambda *args: learner.error(args[0], KEY, *args[1:])), made.penalties, X, Y, W)
    np.testing.assert_allclose(at_best, made.errors.min(), rtol=0.05)  # from other starts, minima may differ a little
    # One penalty for all layers is that of L2, from the same start.
    same = np.full(4, 0.7)
    with jax.enable_x64(True):
        arrays = [jnp.asarray(a) for a in (X, Y, W)]
        inside = learner._with(jnp.log(jnp.asarray(same)), jax.tree.map(lambda a: a[None], NET.init(KEY, *arrays[:2])))
        ours = inside.fit(KEY, *arrays)
        theirs = Conjugate(NET.network, steps=400, penalty=learn.L2(0.7)).fit(KEY, *arrays)
        np.testing.assert_allclose(
            inside.predict(ours, arrays[0]), inside.predict(theirs, arrays[0]), rtol=1e-6, atol=1e-6
        )


@pytest.mark.slow
def test_inputs_of_no_use_get_larger_penalties():
    """By the mean of the logarithms, in 5 of 6 data sets of 80 cases with two inputs that count and two that do not."""
    random = np.random.default_rng(1)
    x = random.normal(size=(6, 80, 4))
    y = np.tanh(x[:, :, :1]) + 0.5 * x[:, :, 1:2] + 0.3 * random.normal(size=(6, 80, 1))
    learner = AdaptivePenalties(Conjugate(MLP((4,), init=0.5), steps=60))
    losses = assess(KEY, learner, Data(x, y, tuple("abcd")), resample.full(80), keep="rows")
    assert not losses.failed.any()
    logarithms = np.log(losses.info["penalties"][:, 0, :4])
    assert (logarithms[:, 2:].mean(1) > logarithms[:, :2].mean(1)).sum() >= 5


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AdaptivePenalties(Descent()), "expected Conjugate with an MLP to find penalties for, got Descent()"),
        (lambda: AdaptivePenalties(Conjugate(learn.PerTask())), "expected Conjugate with an MLP"),
        (lambda: AdaptivePenalties(Conjugate(MLP(batch_norm=True))), "without batch_norm"),
        (lambda: AdaptivePenalties(Conjugate(MLP(dropout=0.1))), "without dropout and noise"),
        (lambda: AdaptivePenalties(NET, by="unit"), "by of AdaptivePenalties"),
        (lambda: AdaptivePenalties(NET, folds=1), "the folds of AdaptivePenalties"),
        (lambda: AdaptivePenalties(NET, folds="4"), "the folds of AdaptivePenalties"),
        (lambda: AdaptivePenalties(NET, folds=25), "at least 25 training cases for the 25 folds"),
        (lambda: AdaptivePenalties(NET, start=0.0), "the start of AdaptivePenalties"),
        (lambda: AdaptivePenalties(NET, start=None), "the start of AdaptivePenalties"),
        (lambda: AdaptivePenalties(NET, steps=1), "the steps of AdaptivePenalties"),
        (lambda: AdaptivePenalties(NET, rate=-1.0), "the rate of AdaptivePenalties"),
        (lambda: AdaptivePenalties(NET, iterations=0), "the iterations of AdaptivePenalties"),
        (lambda: AdaptivePenalties(Conjugate(MLP((500,)))), "the weights of the network"),
        (lambda: AdaptivePenalties(), "AdaptivePenalties to hold a learner"),
        (lambda: AdaptivePenalties(3), "AdaptivePenalties to hold a learner"),
    ],
)
def test_mistakes_get_one_sentence(make, words, own_messages):
    assert words in refused(lambda: assess(KEY, make(), Data(X, Y, tuple("abc")), PLAN))


@pytest.mark.slow
def test_it_keeps_the_promises_of_a_learner():
    """But those of learners whose cases are alike: cases are cut into folds by their place."""
    learner = learn.Normalised(AdaptivePenalties(Conjugate(MLP((2,), init=0.5), steps=3), folds=2, steps=2, rate=0.01))
    assert {"code", "absence", "nan", "vmap", "key"} <= set(learn.check(learner, skip=("order", "twice")))
