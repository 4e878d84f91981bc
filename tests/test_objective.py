"""Objectives and penalties against values from elsewhere."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy.special import expit, huber, softmax
from sklearn.linear_model import Lasso
from sklearn.metrics import hinge_loss, log_loss

from jaxgen import Data, assess, learn, resample
from jaxgen.learn import L1, L2, MLP, Descent, Objective, PerTask, Sparse, Tied
from jaxgen.learn.network.iterative import Cases

RANDOM = np.random.default_rng(0)
OUTPUTS = 2 * RANDOM.normal(size=(3, 17))
REAL = RANDOM.normal(size=(3, 17))
BINARY = (RANDOM.random((3, 17)) < 0.4).astype(float)
CLASSES = np.eye(3)[RANDOM.integers(0, 3, 17)].T

# objective: targets [K, n], and the sum over all cases as others compute it
OBJECTIVES = {
    Objective("squared"): (REAL, np.square(OUTPUTS - REAL).sum() / 2),
    Objective("absolute"): (REAL, np.linalg.norm((OUTPUTS - REAL).ravel(), 1)),
    Objective("huber"): (REAL, huber(1, OUTPUTS - REAL).sum()),
    Objective("huber", delta=0.3): (REAL, huber(0.3, OUTPUTS - REAL).sum()),
    Objective("binary_cross_entropy"): (BINARY, log_loss(BINARY.ravel(), expit(OUTPUTS.ravel()), normalize=False)),
    Objective("softmax_cross_entropy"): (CLASSES, log_loss(CLASSES.T, softmax(OUTPUTS.T, axis=1), normalize=False)),
    Objective("hinge"): (BINARY, BINARY.size * hinge_loss(BINARY.ravel(), OUTPUTS.ravel())),
    Objective("hinge", delta=2.5): (BINARY, 2.5 * BINARY.size * hinge_loss(BINARY.ravel(), OUTPUTS.ravel() / 2.5)),
}


@pytest.fixture(params=OBJECTIVES, ids=repr)
def objective(request):
    return request.param


def test_values(objective, dtype):
    y, want = OBJECTIVES[objective]
    losses = objective.losses(jnp.asarray(OUTPUTS, dtype), jnp.asarray(y, dtype))
    assert losses.shape == (17,)
    assert losses.dtype == dtype
    # a sum of 51 numbers of about 1
    np.testing.assert_allclose(np.sum(losses), want, rtol=1e-5 if dtype == np.float32 else 1e-13)


def test_each_case_has_its_own_loss(objective):
    y = jnp.asarray(OBJECTIVES[objective][0], jnp.float32)
    outputs = jnp.asarray(OUTPUTS, jnp.float32)
    alone = [objective.losses(outputs[:, c : c + 1], y[:, c : c + 1])[0] for c in (0, 5, 16)]
    np.testing.assert_allclose(objective.losses(outputs, y)[np.array([0, 5, 16])], alone, rtol=1e-6)  # single precision


def test_gradients(objective):
    """By finite differences; no error of these outputs lies on a corner."""
    with jax.enable_x64(True):
        y = jnp.asarray(OBJECTIVES[objective][0])
        check_grads(lambda outputs: objective.losses(jnp.asarray(outputs), y), (OUTPUTS,), order=1, modes=("rev",))


def test_gradients_by_hand():
    o, y = (
        OUTPUTS,
        {
            name: OBJECTIVES[Objective(name)][0]
            for name in ("huber", "binary_cross_entropy", "softmax_cross_entropy", "hinge")
        },
    )
    want = {
        "huber": np.clip(o - y["huber"], -1, 1),
        "binary_cross_entropy": expit(o) - y["binary_cross_entropy"],
        "softmax_cross_entropy": softmax(o, axis=0) - y["softmax_cross_entropy"],
        "hinge": np.where((2 * y["hinge"] - 1) * o < 1, 1 - 2 * y["hinge"], 0),
    }
    with jax.enable_x64(True):
        for name, gradient in want.items():
            got = jax.grad(lambda outputs, name=name: jnp.sum(Objective(name).losses(outputs, jnp.asarray(y[name]))))(
                jnp.asarray(o)
            )
            np.testing.assert_allclose(got, gradient, rtol=1e-12, atol=1e-14, err_msg=name)  # a few roundings


def test_extreme_outputs_overflow_nothing(objective, dtype):
    """Errors of 1000, and of 0, the corner of the absolute loss and of the quadratic part of Huber's."""
    y = jnp.asarray(OBJECTIVES[objective][0], dtype)
    for outputs in (y, 1000 * (2 * y - 1), -1000 * (2 * y - 1)):
        losses, gradient = jax.value_and_grad(lambda outputs: jnp.sum(objective.losses(outputs, y)))(outputs)
        assert np.isfinite(losses)
        assert np.isfinite(gradient).all()


def test_predictions():
    outputs = jnp.asarray(OUTPUTS, jnp.float32)
    exact = {"rtol": 1e-5, "atol": 1e-7}  # single precision
    for kind in ("squared", "absolute", "huber"):
        np.testing.assert_array_equal(Objective(kind).predictions(outputs), outputs)
        assert not Objective(kind).classifies
    np.testing.assert_allclose(Objective("binary_cross_entropy").predictions(outputs), expit(OUTPUTS), **exact)
    np.testing.assert_allclose(
        Objective("softmax_cross_entropy").predictions(outputs), softmax(OUTPUTS, axis=0), **exact
    )
    np.testing.assert_allclose(Objective("hinge").predictions(outputs), (OUTPUTS + 1) / 2, **exact)
    assert all(Objective(kind).classifies for kind in ("binary_cross_entropy", "softmax_cross_entropy", "hinge"))


def test_weights_of_outputs(objective, dtype):
    """A factor per output, as the losses of single outputs; a cross-entropy of classes is one loss of all outputs, but
    a sum over them.
    """
    y = jnp.asarray(OBJECTIVES[objective][0], dtype)
    outputs = jnp.asarray(OUTPUTS, dtype)
    one = np.stack(
        [Objective(objective.kind, objective.delta, tuple(np.eye(3)[k])).losses(outputs, y) for k in range(3)]
    )
    mixed = Objective(objective.kind, objective.delta, (1.0, 0.25, 3.0)).losses(outputs, y)
    exact = {"rtol": 1e-5 if dtype == np.float32 else 1e-12}  # roundings
    np.testing.assert_allclose(mixed, one[0] + 0.25 * one[1] + 3 * one[2], **exact)
    np.testing.assert_allclose(objective.losses(outputs, y), one.sum(0), **exact)


@pytest.fixture(scope="module")
def params():
    """Parameters of MLP((4, 3), skip=True, batch_norm=True) with 5 inputs and 2 outputs, none of them 0, and
    activations of 11 cases.
    """
    network = MLP((4, 3), skip=True, batch_norm=True, init=1.0)
    x, y = jnp.asarray(RANDOM.normal(size=(11, 5)), jnp.float32), jnp.zeros((11, 2), jnp.float32)
    made = jax.jit(network.start)(jax.random.key(0), x, y)
    made["norm_0"]["bias"] = made["norm_0"]["bias"] + 7
    w = jnp.asarray(np.arange(11) % 3, jnp.float32)
    return made, jax.jit(network.forward)(made, x.T, w).hidden, w


ORDER = ("hidden_0", "hidden_1", "output", "skip")
NORMS = {L1: lambda kernel: np.abs(kernel).sum(), L2: lambda kernel: np.square(kernel).sum() / 2}


@pytest.mark.parametrize("kind", NORMS)
def test_norms_are_of_the_weights_without_biases_and_scales(kind, params):
    sizes = [NORMS[kind](np.asarray(params[0][name]["kernel"], np.float64)) for name in ORDER]
    each = (0.5, 2.0, 0.0, 10.0)
    np.testing.assert_allclose(kind(3.0).penalty(*params), 3 * np.sum(sizes), rtol=1e-6)  # single precision
    np.testing.assert_allclose(kind(each).penalty(*params), np.dot(each, sizes), rtol=1e-6)
    gradient = jax.jit(jax.grad(lambda p: kind(each).penalty(p, *params[1:])))(params[0])
    assert not any(
        np.any(gradient[layer][name]) for layer in gradient for name in ("bias", "scale") if name in gradient[layer]
    )
    assert not np.any(gradient["output"]["kernel"])
    assert np.all(gradient["skip"]["kernel"] != 0)


def test_sparse_counts_activations_by_weight(params):
    _, hidden, w = params
    want = sum((np.abs(np.asarray(layer, np.float64)) * np.asarray(w)).sum() for layer in hidden)
    np.testing.assert_allclose(Sparse(0.7).penalty(*params), 0.7 * want, rtol=1e-6)  # single precision


def test_tied_sums_all_pairs(params):
    random = np.random.default_rng(1)
    tree = jax.tree.map(lambda a: jnp.asarray(random.normal(size=(3, *a.shape)), jnp.float32), params[0])
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(tree)]
    want = sum(np.square(leaf[a] - leaf[b]).sum() for leaf in leaves for a, b in ((0, 1), (0, 2), (1, 2)))
    np.testing.assert_allclose(jax.jit(Tied(0.3).penalty)(tree, *params[1:]), 0.3 * want, rtol=1e-5)  # single precision
    same = jax.tree.map(lambda a: jnp.stack([a, a]), params[0])
    assert jax.jit(Tied(0.3).penalty)(same, *params[1:]) == 0


def test_the_energy_is_the_objective_and_all_penalties():
    """And a batch that is a third of the cases counts for all, where the penalties on weights do not depend on the
    cases.
    """
    learner = Descent(MLP((2,), init=1.0), penalty=(L1(0.5), Sparse(2.0), L2(3.0)))
    x, y, w = RANDOM.normal(size=(4, 9)), RANDOM.normal(size=(1, 9)), np.arange(9) % 3
    cases = Cases(*(jnp.asarray(a, jnp.float32) for a in (x, y, w)))
    p = jax.jit(learner.init)(jax.random.key(1), cases.x.T, cases.y.T)
    hidden = np.tanh(p["hidden_0"]["kernel"] @ x + np.asarray(p["hidden_0"]["bias"])[:, None])
    error = p["output"]["kernel"] @ hidden + np.asarray(p["output"]["bias"])[:, None] - y
    of_cases = np.sum(w * np.square(error)) / 2 + 2 * np.sum(w * np.abs(hidden))
    of_weights = sum(
        0.5 * np.abs(p[name]["kernel"]).sum() + 1.5 * np.square(p[name]["kernel"]).sum()
        for name in ("hidden_0", "output")
    )
    np.testing.assert_allclose(jax.jit(learner.energy)(p, cases), of_cases + of_weights, rtol=1e-5)  # single precision
    np.testing.assert_allclose(jax.jit(learner.energy)(p, cases, share=1 / 3), 3 * of_cases + of_weights, rtol=1e-5)


@partial(jax.jit, static_argnums=0)
def trained(learner, x, y, w):
    return learner.fit(jax.random.key(0), x, y, w)


def linear_problem():
    random = np.random.default_rng(3)
    x = random.normal(size=(30, 5))
    y = x[:, :1] - 2 * x[:, 1:2] + 0.05 * x[:, 2:3] + random.normal(size=(30, 1)) + 3
    return x, y, 1.0 + random.integers(0, 2, 30)


def test_the_limit_of_descent_with_l2_is_ridge_regression(dtype):
    """The slowest direction shrinks by 1 - 0.5 (smallest eigenvalue + 4) / (sum of weights + 1) an iteration: after
    500 it is gone.
    """
    x, y, w = (jnp.asarray(a, dtype) for a in linear_problem())
    descent, ridge = Descent(MLP(()), rate=0.5, steps=500, penalty=L2(4.0)), learn.LeastSquares(ridge=4.0)
    fitted = trained(descent, x, y, w)
    want = ridge.predict(trained(ridge, x, y, w), x)
    np.testing.assert_allclose(descent.predict(fitted, x), want, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-12)
    assert fitted.gradient < (1e-5 if dtype == np.float32 else 1e-13)
    assert descent.failure(fitted) == 0


def test_the_limit_of_descent_with_l1_is_the_lasso():
    """Weights that are 0 in the lasso go to and fro by at most two of rate * strength / (N + 1), as the gradient there
    is at most the strength.
    """
    x, y, w = linear_problem()
    strength, rate = 18.0, 0.02
    with jax.enable_x64(True):
        fitted = trained(Descent(MLP(()), rate=rate, steps=20_000, penalty=L1(strength)), *map(jnp.asarray, (x, y, w)))
    peer = Lasso(alpha=strength / w.sum(), tol=1e-12, max_iter=100_000).fit(x, y[:, 0], sample_weight=w)
    weights, step = fitted.params["output"]["kernel"][0], rate * strength / (w.sum() + 1)
    assert 1 <= np.sum(peer.coef_ == 0) <= 3
    np.testing.assert_allclose(weights, peer.coef_, rtol=0, atol=2 * step)
    np.testing.assert_allclose(fitted.params["output"]["bias"][0], peer.intercept_, rtol=0, atol=2 * step)


X, TWO = RANDOM.normal(size=(12, 3)), RANDOM.normal(size=(12, 2))
REGRESSION = Data(X, TWO, ("a", "b", "c"))
ONE = Data(X, TWO[:, :1], ("a", "b", "c"), "weight")
YES_NO = Data(X, (TWO[:, :1] > 0).astype(float), ("a", "b", "c"), "ill")
PLAN = resample.k_fold(jax.random.key(0), 12, folds=3)
BAD = {
    "unknown objective": (
        ONE,
        Descent(objective="cross_entropy"),
        "the objective to be one of 'squared', 'absolute', .*, got 'cross_entropy'; choose one of these",
    ),
    "delta of 0": (
        ONE,
        Descent(objective=Objective("huber", delta=0.0)),
        "delta to be a finite number above 0, got 0.0; give it in units of the target",
    ),
    "too few weights": (
        REGRESSION,
        Descent(objective=Objective(weights=(1.0,))),
        r"2 weights of at least 0, one per output, got \(1.0,\); weigh every output once",
    ),
    "a negative weight": (
        REGRESSION,
        Descent(objective=Objective(weights=(1.0, -1.0))),
        r"2 weights of at least 0, .*, got \(1.0, -1.0\)",
    ),
    "no classes": (
        ONE,
        Descent(objective="hinge"),
        "targets 0 and 1 for hinge, got other numbers in 'weight'; "
        "use a classification data set, or the objective 'squared'",
    ),
    "a single class": (
        YES_NO,
        Descent(objective="softmax_cross_entropy"),
        "one column per class .* for softmax_cross_entropy, got 1 columns in 'ill'; use 'binary_cross_entropy'",
    ),
    "negative L2": (
        ONE,
        Descent(penalty=L2(-1.0)),
        "the strength of L2 to be a finite number of at least 0, got -1.0; give 0 for none",
    ),
    "negative L1 of a layer": (
        ONE,
        Descent(penalty=(L2(1.0), L1((1.0, -1.0)))),
        "the strength of L1 to be a finite number of at least 0, got -1.0",
    ),
    "too many strengths": (
        ONE,
        Descent(penalty=L2((1.0, 2.0, 3.0))),
        r"2 strengths, one per layer of weights, got 3 in L2\(.*\); give one number, or one per layer",
    ),
    "negative Sparse": (
        ONE,
        Descent(penalty=Sparse(-1.0)),
        "the strength of Sparse to be a finite number of at least 0",
    ),
    "Sparse without hidden units": (
        ONE,
        Descent(MLP(()), penalty=Sparse(1.0)),
        r"hidden activations for Sparse\(strength=1.0\), got a network without; give MLP hidden units",
    ),
    "Tied without tasks": (
        ONE,
        Descent(penalty=Tied(1.0)),
        r"a PerTask network to tie, got MLP\(\); write PerTask\(network, tasks=2\)",
    ),
    "negative Tied": (
        REGRESSION,
        Descent(PerTask(), penalty=Tied(-1.0)),
        "the strength of Tied to be a finite number of at least 0, got -1.0",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case, own_messages):
    data, learner, message = BAD[case]
    with pytest.raises(ValueError, match=message) as caught:
        assess(jax.random.key(0), learner, data, PLAN)
    assert str(caught.value).startswith("expected ")
    assert "\n" not in str(caught.value)
