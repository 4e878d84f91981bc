"""What the package's learners say that their training made small: its gradient vanishes where they end, and the
estimates made of it are those of closed forms.
"""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import statsmodels.api as sm

from jaxgen import Data, algebraic, assess, learn, loss, resample
from jaxgen.learn.network.iterative import Trained, prepare
from jaxgen.types.value import Value

KEY = jax.random.key(0)
N = 40
EXACT = 1e-8
"""Closed forms and Newton's method in 64 bits, with inputs whose units differ by 30."""


def cases(outputs=1, task="regression"):
    random = np.random.default_rng(outputs)
    x = random.normal(size=(N, 3)) * [1, 10, 0.3] + [0, 5, 1]
    y = x / [1, 10, 0.3] @ random.normal(size=(3, outputs)) + random.normal(size=(N, outputs))
    if task == "classification":
        y = y + random.normal(size=y.shape) * 3
        y = np.eye(outputs)[y.argmax(-1)] if outputs > 1 else (y > np.median(y)).astype(float)
    return Data(x, y, ("a", "b", "c"), task=task, classes=tuple("pqr"[:outputs]) if task == "classification" else ())


def tasks():
    """Two tasks told apart by the last column."""
    data = cases()
    return Data(np.concatenate([data.x[:, :2] / 10, np.arange(N)[:, None] % 2.0], axis=1), data.y, ("a", "b", "task"))


DATA, TWO, CLASSES, THREE, TASKS = cases(), cases(2), cases(1, "classification"), cases(3, "classification"), tasks()
SMALL, HALF = learn.MLP((2,), init="lecun"), learn.L2(0.5)


@functools.cache
def fitted(learner, which="DATA", of=loss.squared):
    return algebraic.full_fit(KEY, learner, globals()[which], of)


def conjugate(network=SMALL, penalty=HALF, **more):
    return learn.Conjugate(network, steps=2000, penalty=penalty, **more)


LINEAR = [
    learn.LeastSquares(),
    learn.LeastSquares(ridge=3.0),
    learn.LeastSquares(ridge=3.0, intercept=False),
    learn.LeastSquares(ridge=100.0),
]
ENDS = [
    *((learner, "DATA", loss.squared, EXACT) for learner in LINEAR),
    (learn.LeastSquares(ridge=3.0), "TWO", loss.squared, EXACT),
    (learn.Mean(), "TWO", loss.squared, EXACT),
    (learn.Normalised(learn.Mean(), how="standard"), "DATA", loss.squared, EXACT),
    *(
        (learn.Normalised(learn.LeastSquares(ridge=3.0), how=how), "DATA", loss.squared, EXACT)
        for how in ("delve", "standard")
    ),
    (learn.Logistic(ridge=0.0), "THREE", loss.cross_entropy, EXACT),
    (learn.Logistic(ridge=0.5), "CLASSES", loss.cross_entropy, EXACT),
    (learn.Logistic(ridge=0.5, intercept=False), "THREE", loss.cross_entropy, EXACT),
    (learn.Normalised(learn.Logistic(ridge=1.0)), "THREE", loss.cross_entropy, EXACT),
    # networks end where steps no longer lower the energy by more than its rounding
    (learn.Normalised(conjugate()), "DATA", loss.squared, 1e-5),
    (
        learn.Normalised(conjugate(learn.MLP((2,), skip=True, init="lecun"), learn.L2((0.5, 0.2, 1.0)))),
        "DATA",
        loss.squared,
        1e-5,
    ),
    (learn.Normalised(conjugate(objective="binary_cross_entropy")), "CLASSES", loss.cross_entropy, 1e-5),
    (
        learn.Normalised(conjugate(learn.PerTask(SMALL, 2, column=2), (learn.L2(0.5), learn.Tied(0.3)))),
        "TASKS",
        loss.squared,
        1e-5,
    ),
    (
        learn.Normalised(learn.Descent(learn.MLP(()), steps=2000, rate=0.5, penalty=learn.L2(2.0)), how="standard"),
        "DATA",
        loss.squared,
        EXACT,
    ),
]


@pytest.mark.parametrize(
    ("learner", "which", "of", "tolerance"), ENDS, ids=lambda value: str(value) if isinstance(value, Value) else ""
)
def test_its_gradient_vanishes_where_training_ends(learner, which, of, tolerance):
    fit = fitted(learner, which, of)
    assert fit.gradient < tolerance
    assert np.isfinite(fit.ratio)
    assert fit.note == ""
    # a minimum, or a flat direction of what is penalised nowhere
    assert np.linalg.eigvalsh(fit.hessian + fit.penalty_hessian).min() > -1e-8 * np.linalg.norm(fit.hessian)


SUMS = [
    (conjugate(learn.MLP((2,), skip=True), (learn.L2((0.1, 0.2, 0.3)), learn.L1(0.4), learn.Sparse(0.5))), DATA),
    (conjugate(objective=learn.Objective("huber", delta=0.7)), DATA),
    (conjugate(objective=learn.Objective("squared", weights=(1.0, 3.0, 0.5))), cases(3)),
    (conjugate(objective="softmax_cross_entropy"), THREE),
    (conjugate(learn.PerTask(learn.MLP((2,)), 2, column=2), (learn.Tied(0.3), learn.Sparse(0.2))), TASKS),
    (learn.Descent(learn.PerTask(learn.MLP(()), 2), penalty=learn.L2(0.2)), cases(2)),
]


@pytest.mark.parametrize(("learner", "data"), SUMS, ids=lambda value: str(value) if isinstance(value, Value) else "")
def test_losses_and_penalty_of_networks_are_their_energy_for_any_weights(learner, data):
    """At parameters of no training; weights of cases multiply their losses alone, `Sparse` among them."""

    @jax.jit
    def both(x, y, w):
        start = learner.init(KEY, x, y)
        free, _, cost = learner.minimised(Trained(start, (), jnp.int32(-1), jnp.zeros((), x.dtype)))
        losses, penalty = cost(free, x, y)
        return losses, w @ losses + penalty, learner.energy(start, prepare(x, y, w))

    with jax.enable_x64(True):
        losses, total, energy = both(jnp.asarray(data.x), jnp.asarray(data.y), jnp.asarray(np.arange(N) % 3.0))
    assert losses.shape == (N,)
    assert total == pytest.approx(float(energy), rel=1e-12)


# Closed forms


def centred(data, intercept):
    return data.x - data.x.mean(0) if intercept else data.x


@pytest.mark.parametrize("learner", LINEAR, ids=str)
def test_effective_numbers_of_ridge_are_traces(learner):
    x = centred(DATA, learner.intercept)
    share = np.linalg.eigvalsh(x.T @ x)
    share = share / (share + learner.ridge)
    got = algebraic.effective_numbers(fitted(learner))
    assert got.g2 == pytest.approx(share.sum() + learner.intercept, rel=1e-9)
    assert got.g1 == pytest.approx((share**2).sum() + learner.intercept, rel=1e-9)


@pytest.mark.parametrize("learner", LINEAR, ids=str)
def test_leave_one_out_and_a_newton_step_are_retraining(learner):
    fit = fitted(learner)
    with jax.enable_x64(True):
        engine = assess(KEY, learner, DATA, resample.leave_one_out(N))
    assert algebraic.leave_one_out(fit).estimate == pytest.approx(engine.g.mean(), rel=1e-9)
    np.testing.assert_allclose(algebraic.newton_step(fit, engine.plan).losses.g, engine.g, rtol=1e-8)


def test_linear_networks_are_ridge_regression():
    """A penalty a on half squared errors is a ridge a on squared ones; biases are free of it."""
    network = fitted(learn.Normalised(conjugate(learn.MLP(()), learn.L2(2.0))))
    ridge = fitted(learn.Normalised(learn.LeastSquares(ridge=2.0)))
    for estimate in (
        algebraic.nic,
        algebraic.fper,
        algebraic.gcv,
        algebraic.leave_one_out,
        algebraic.unlearning,
        algebraic.quantile,
    ):
        assert estimate(network).estimate == pytest.approx(
            float(estimate(ridge).estimate), rel=1e-6
        )  # where training ended


def test_nic_of_softmax_regression_is_takeuchis_criterion():
    """TIC / 2N from statsmodels, whose parameters are relative to the first class; NIC does not depend on that."""
    fit = fitted(learn.Logistic(ridge=0.0), "THREE", loss.cross_entropy)
    model = sm.MNLogit(THREE.y.argmax(-1), sm.add_constant(THREE.x))
    found = model.fit(disp=0, method="newton", tol=1e-12)
    flat = found.params.reshape(-1, order="F")
    scores = model.score_obs(flat)
    assert fit.p == 8
    assert algebraic.nic(fit).estimate == pytest.approx(
        (-found.llf + np.trace(scores.T @ scores @ np.linalg.inv(-model.hessian(flat)))) / N, rel=1e-8
    )


ALL = {
    "fper": algebraic.fper,
    "gpe": algebraic.gpe,
    "nic": algebraic.nic,
    "nic with hc3": lambda fit: algebraic.nic(fit, hc3=True),
    "gen": lambda fit: algebraic.gen(fit, 3),
    "gcv": algebraic.gcv,
    "unlearning": algebraic.unlearning,
    "quantile": algebraic.quantile,
}


@pytest.mark.parametrize("name", ALL)
def test_estimates_of_penalised_learners_exceed_the_apparent_error(name):
    """In the unit of the loss, whatever units training had."""
    for learner in (
        learn.LeastSquares(ridge=3.0),
        learn.Normalised(learn.LeastSquares(ridge=3.0)),
        learn.Normalised(conjugate()),
    ):
        fit = fitted(learner)
        assert fit.apparent < ALL[name](fit).estimate < 3 * fit.apparent


# Without a minimum


def test_learners_without_a_minimum_are_warned_of():
    stopped = learn.EarlyStopped(learn.Descent(learn.MLP(()), steps=3), share=0.5)
    for learner in (stopped, learn.Ensemble(learn.Descent(learn.MLP(()), steps=3), members=2)):
        fit = algebraic.full_fit(KEY, learner, DATA)
        assert "the fit is not at a minimum (relative gradient norm" in fit.note


@dataclass(frozen=True, repr=False)
class Silent(Value):
    """A learner that does not say what it made small."""

    def fit(self, key, x, y, w):
        return w @ y

    def predict(self, params, x):
        return jnp.broadcast_to(params[None], (len(x), len(params)))


MIXED = "a network without batch_norm, dropout and noise, whose error is a sum of one function over the cases, got MLP"
UNNAMED = "Normalised to hold a learner trained to a minimum that it can name, got "
BAD = {
    "batch normalisation": (learn.Descent(learn.MLP((2,), batch_norm=True), steps=2), MIXED),
    "dropout": (learn.Normalised(learn.Descent(learn.MLP((2,), dropout=0.5), steps=2)), MIXED),
    "noise in tasks": (
        learn.Descent(learn.PerTask(learn.MLP((2,), noise=0.5), 2, column=2), steps=2),
        "a network without .*, got PerTask",
    ),
    "stopped early": (learn.Normalised(learn.EarlyStopped(learn.Descent(SMALL, steps=2))), UNNAMED + "EarlyStopped"),
    "an ensemble": (learn.Normalised(learn.Ensemble(learn.Descent(SMALL, steps=2), members=2)), UNNAMED + "Ensemble"),
    "a learner of the user's": (
        learn.Normalised(Silent()),
        UNNAMED + r"Silent\(\); resample it, or give full_fit the argument minimised",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_has_no_minimum_of_its_own_is_refused(name, own_messages):
    learner, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        algebraic.full_fit(KEY, learner, TASKS)
