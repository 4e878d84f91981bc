"""Approximate leave-out against exact retraining, against formulas, and where it must warn."""

import re
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import statsmodels.api as sm

from jaxgen import Data, algebraic, assess, learn, loss, resample
from jaxgen.stats import estimate
from jaxgen.types.value import Value

KEY, OTHER = jax.random.key(0), jax.random.key(1)
N = 30


@dataclass(frozen=True, repr=False)
class Ridge(Value):
    """Ridge regression by the normal equations, all coefficients penalised."""

    ridge: float = 0.0

    def fit(self, key, x, y, w):
        return jnp.linalg.solve(
            (x.T * w[None]) @ x + self.ridge * jnp.eye(x.shape[1], dtype=x.dtype), (x.T * w[None]) @ y
        )

    def predict(self, params, x):
        return jnp.matmul(x, params, precision="highest")

    def minimised(self, params):
        return params, lambda free: free, lambda free, x, y: (loss.squared(y, x @ free), self.ridge * jnp.sum(free**2))


@dataclass(frozen=True, repr=False)
class Saturating(Value):
    """y = a tanh(b x) by 30 Newton steps from `start`, or from (2, 0.8): two parameters, not linear; minimises half
    squared errors + 0.1 (a^2 + b^2).
    """

    steps: int = 30

    def fit(self, key, x, y, w):
        return self.fit_from(jnp.asarray([2.0, 0.8], x.dtype), key, x, y, w)

    def fit_from(self, start, key, x, y, w):
        def objective(free):
            losses, penalty = self.minimised(None)[2](free, x, y)
            return jnp.sum(w * losses) + penalty

        def step(_, free):
            return free - jnp.linalg.solve(jax.hessian(objective)(free), jax.grad(objective)(free))

        return jax.lax.fori_loop(0, self.steps, step, start)

    def predict(self, params, x):
        return params[0] * jnp.tanh(params[1] * x)

    def minimised(self, params):
        return (
            params,
            lambda free: free,
            lambda free, x, y: (loss.squared(y, self.predict(free, x)) / 2, 0.1 * jnp.sum(free**2)),
        )


@dataclass(frozen=True, repr=False)
class Logit(Value):
    """Logistic regression by 12 Newton steps."""

    def fit(self, key, x, y, w):
        def step(_, free):
            p = jax.nn.sigmoid(x @ free)
            return free + jnp.linalg.solve((x.T * (w * (p * (1 - p))[:, 0])[None]) @ x, x.T @ (w[:, None] * (y - p)))

        return jax.lax.fori_loop(0, 12, step, jnp.zeros((x.shape[1], 1), x.dtype))

    def predict(self, params, x):
        return jax.nn.sigmoid(x @ params)


def linear(n=N, d=3):
    random = np.random.default_rng(0)
    x = random.normal(size=(n, d))
    return Data(x, x.sum(1, keepdims=True) + random.normal(size=(n, 1)), tuple("abcdef"[:d]))


def curved(n=60):
    random = np.random.default_rng(1)
    x = random.uniform(-2, 2, size=(n, 1))
    return Data(x, 2 * np.tanh(0.8 * x) + 0.2 * random.normal(size=(n, 1)), ("x",))


PLANS = {
    "leave one out": resample.leave_one_out(N),
    "ten folds": resample.k_fold(KEY, N),
    "a quarter left out": resample.leave_out(KEY, N, 0.25, 40),
    "bootstrap": resample.bootstrap(KEY, N, 40),
}


@pytest.fixture(scope="module")
def ridge():
    return algebraic.full_fit(KEY, Ridge(2.0), linear())


@pytest.fixture(scope="module")
def tanh():
    return algebraic.full_fit(KEY, Saturating(), curved())


@pytest.mark.parametrize("name", PLANS)
def test_one_newton_step_is_retraining_where_the_model_is_linear(name, ridge):
    """Also for bootstrap weights, for which the engine is asked too, in 32 bits."""
    plan = PLANS[name]
    got = algebraic.newton_step(ridge, plan)
    if name == "bootstrap":
        want = assess(KEY, Ridge(2.0), linear(), plan)
        np.testing.assert_allclose(got.losses.g, want.g, rtol=2e-4)
        np.testing.assert_allclose(got.losses.values, want.values, rtol=1e-3, atol=1e-4)
    again = algebraic.against_retraining(OTHER, got, share=0.2)
    assert again.parts["largest"] < 1e-12
    assert again.parts["median_change"] > 1e-3
    assert again.parts["rows"] == round(0.2 * plan.resamples)
    np.testing.assert_allclose(got.params, algebraic.newton_step(ridge, plan, curvature="full").params, rtol=1e-9)
    assert got.note == ""


def test_leave_one_out_is_the_exact_formula(ridge):
    """What comes back is Losses, which the rest of the package takes."""
    got = algebraic.newton_step(ridge, PLANS["leave one out"])
    assert got.result().estimate == pytest.approx(float(algebraic.leave_one_out(ridge).estimate), rel=1e-10)
    assert got.result().target == "ER of 29 training cases"
    assert estimate.summary(got.losses).raw.avr == pytest.approx(
        float(algebraic.leave_one_out(ridge).estimate), rel=1e-10
    )
    assert re.search(r"Ridge\(ridge=2.0\) \[code \w+\] by one Newton step", repr(got.losses))


def test_infinitesimal_jackknife_is_its_formula(ridge):
    x, y, w = linear().x, linear().y, ridge.params
    inverse = np.linalg.inv(x.T @ x + 2 * np.eye(3))
    for plan in PLANS.values():
        change = (plan.train - 1.0) * (y[:, 0] - x @ w) @ x
        got = algebraic.infinitesimal_jackknife(ridge, plan)
        np.testing.assert_allclose(got.params, w + change @ inverse, rtol=1e-10)
        np.testing.assert_allclose(got.losses.values, (y[:, 0] - got.params @ x.T) ** 2, rtol=1e-10)
        np.testing.assert_allclose(
            got.losses.g, np.sum(plan.test * got.losses.values, -1) / plan.test.sum(-1), rtol=1e-10
        )


@pytest.mark.parametrize("curvature", ["full", None])
def test_error_of_the_infinitesimal_jackknife_falls_with_the_square_of_the_distance(curvature, tanh, ridge):
    """Weights 1 + s z with falling s, retrained exactly: a tenth of s gives a hundredth of the error. With
    Gauss-Newton's Hessian the first order is not exact.
    """
    fit, learner = (tanh, Saturating()) if curvature == "full" else (ridge, Ridge(2.0))
    direction = np.random.default_rng(0).uniform(-1, 1, size=(5, fit.n))
    errors = []
    for s in (1e-1, 1e-2, 1e-3):
        weights = 1 + s * direction
        with jax.enable_x64(True):
            exact = jax.vmap(
                lambda w: learner.fit(KEY, jnp.asarray(fit.data.x), jnp.asarray(fit.data.y), w).reshape(-1)
            )(jnp.asarray(weights))
        errors.append(np.abs(algebraic.jackknifed(fit, weights, curvature=curvature) - np.asarray(exact)).max())
    ratios = np.divide(errors[:-1], errors[1:])
    assert ((ratios > 80) & (ratios < 120)).all()  # the third order is a few percent at s = 0.1


def test_approximations_of_a_curved_model_foresee_most_of_the_change(tanh):
    """For leave-one-out. Both errors are of second order, and a Newton step need not be the better one."""
    plan = resample.leave_one_out(60)
    first, second = (
        algebraic.infinitesimal_jackknife(tanh, plan, curvature="full"),
        algebraic.newton_step(tanh, plan, curvature="full"),
    )
    of_first, of_second = (algebraic.against_retraining(OTHER, each, share=1.0) for each in (first, second))
    for each in (of_first, of_second):
        assert each.estimate < 0.1 * each.parts["median_change"]
        assert each.parts["largest"] >= each.estimate
    assert of_first.parts["rows"] == 60
    warm = algebraic.against_retraining(OTHER, second, share=1.0, warm=True)
    assert warm.estimate == pytest.approx(float(of_second.estimate), rel=1e-6)
    assert "one newton step against retraining" in str(warm)
    # Gauss-Newton's Hessian leaves out what bends: close, not equal
    np.testing.assert_allclose(algebraic.newton_step(tanh, plan).params, second.params, rtol=0.03)
    assert algebraic.unlearning(tanh).estimate == pytest.approx(
        float(algebraic.unlearning(tanh, curvature="full").estimate), rel=0.01
    )


def test_error_against_retraining_is_that_of_refits_in_numpy(ridge):
    plan, x, y = PLANS["ten folds"], linear().x, linear().y[:, 0]
    made = algebraic.infinitesimal_jackknife(ridge, plan)
    got = algebraic.against_retraining(OTHER, made, share=1.0)
    refits = [np.linalg.solve(x[kept].T @ x[kept] + 2 * np.eye(3), x[kept].T @ y[kept]) for kept in plan.train > 0]
    exact, before = (
        np.array([np.mean((y[tested] - x[tested] @ w) ** 2) for tested, w in zip(plan.test > 0, each, strict=True)])
        for each in (refits, [ridge.params] * 10)
    )
    error = np.abs(made.losses.g - exact)
    want = np.median(error), error.max(), np.median(np.abs(exact - before))
    np.testing.assert_allclose([got.estimate, got.parts["largest"], got.parts["median_change"]], want, rtol=1e-8)


def test_alo_of_logistic_regression():
    """Rad & Maleki's formula with statsmodels' fit: z_k + l'_k / l''_k h_k / (1 - h_k)."""
    x = linear().x[:, :2]
    y = (np.random.default_rng(1).random(N) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    design = sm.add_constant(x)
    p = sm.Logit(y, design).fit(disp=0, tol=1e-12).predict()
    slope, bend = p - y, p * (1 - p)
    h = bend * np.einsum("nd,de,ne->n", design, np.linalg.inv((design.T * bend) @ design), design)
    z = np.log(p / (1 - p)) + slope / bend * h / (1 - h)
    want = np.logaddexp(0, z) - y * z
    fit = algebraic.full_fit(
        KEY, Logit(), Data(design, y[:, None], ("one", "a", "b"), task="classification"), loss.cross_entropy
    )
    got = algebraic.newton_step(fit, PLANS["leave one out"])
    np.testing.assert_allclose(got.losses.g, want, rtol=1e-7)
    # unlearning takes the loss to first order in that step
    before = np.logaddexp(0, np.log(p / (1 - p))) - y * np.log(p / (1 - p))
    assert algebraic.unlearning(fit).estimate == pytest.approx(
        np.mean(before + slope**2 / bend * h / (1 - h)), rel=1e-7
    )


def test_networks_of_the_package():
    """A network of one tanh unit with a penalty: a Newton step foresees most of the change by leaving a fold out, from
    the same start.
    """
    fit = algebraic.full_fit(
        KEY, learn.Conjugate(learn.MLP(hidden=(1,), init="lecun"), steps=100, penalty=learn.L2(0.1)), curved()
    )
    assert fit.p == 4
    assert fit.ratio == pytest.approx(2.0, rel=1e-12)
    assert fit.gradient < 1e-3
    assert fit.note == ""
    numbers = algebraic.effective_numbers(fit)
    assert 1 < numbers.g1 < numbers.g2 < 4
    assert numbers.g3 > 0
    plan = resample.k_fold(KEY, 60)
    checked = algebraic.against_retraining(OTHER, algebraic.newton_step(fit, plan), share=0.5, warm=True)
    assert checked.parts["rows"] == 5
    assert checked.estimate < 0.3 * checked.parts["median_change"]


# Warnings, failures, bad input


def test_far_weights_and_early_ends_are_noted(ridge):
    assert algebraic.infinitesimal_jackknife(ridge, PLANS["ten folds"]).note == ""
    assert (
        "differ from 1 by a mean square of 0.27, far for a first-order method"
        in algebraic.infinitesimal_jackknife(ridge, PLANS["a quarter left out"]).note
    )
    early = algebraic.full_fit(KEY, Saturating(steps=0), curved())
    made = algebraic.infinitesimal_jackknife(early, resample.bootstrap(KEY, 60, 5), curvature="full")
    assert "the fit is not at a minimum (relative gradient norm" in made.note
    assert "far for a first-order method" in made.note
    assert "not at a minimum" in algebraic.against_retraining(OTHER, made).note
    assert "not at a minimum" in made.result().note


def test_rows_without_a_solution_are_marked():
    """Two training cases do not determine three coefficients."""
    train = np.ones((2, N), np.uint8)
    train[1, 2:] = 0
    got = algebraic.newton_step(
        algebraic.full_fit(KEY, Ridge(), linear()), resample.from_weights(train, np.ones((2, N), np.uint8))
    )
    assert got.losses.failed.tolist() == [False, True]
    assert np.isfinite(got.losses.without_failed().g).all()
    with pytest.raises(
        ValueError, match="1 failed of 2 .*row 1: the Hessian of its training cases is not positive definite"
    ):
        got.result()
    with pytest.raises(ValueError, match="1 failed of 2"):
        algebraic.against_retraining(KEY, got)


@dataclass(frozen=True, repr=False)
class Alone(Ridge):
    """Fails where a case is missing."""

    failures = ("a case is missing",)

    def fit(self, key, x, y, w):
        return jnp.where(jnp.all(w > 0), super().fit(key, x, y, w), jnp.inf)

    def failure(self, params):
        return (~jnp.all(jnp.isfinite(params))).astype(jnp.int32)


def test_a_case_with_leverage_1_is_refused(ridge):
    data = linear()
    alone = replace(data, x=data.x * np.where(np.arange(N) == 0, [[0], [0], [1]], [[1], [1], [0]]).T)
    with pytest.raises(ValueError, match="leverages below 1, got 1"):
        algebraic.unlearning(algebraic.full_fit(KEY, Ridge(), alone))


BAD = {
    "a plan for other cases": (
        lambda fit: algebraic.newton_step(fit, resample.leave_one_out(5)),
        "a plan for the 30 cases of the fit, got one for 5",
    ),
    "several data sets": (
        lambda fit: algebraic.infinitesimal_jackknife(algebraic.full_fit(KEY, Ridge(), several()), PLANS["ten folds"]),
        "the fit to one data set and a plan for one, got several",
    ),
    "several data sets by weights": (
        lambda fit: algebraic.jackknifed(algebraic.full_fit(KEY, Ridge(), several()), np.ones((1, N))),
        r"the fit to one data set and weights \[R, 30\]",
    ),
    "several plans": (
        lambda fit: algebraic.newton_step(fit, resample.leave_out(KEY, N, 0.25, 4, sets=2)),
        "got several",
    ),
    "weights for other cases": (lambda fit: algebraic.jackknifed(fit, np.ones((2, 5))), r"got .* and weights \[2, 5\]"),
    "unknown curvature": (
        lambda fit: algebraic.newton_step(fit, PLANS["ten folds"], curvature="none"),
        "curvature to be one of None, 'full', 'gauss_newton', got 'none'",
    ),
    "no share": (
        lambda fit: algebraic.against_retraining(KEY, algebraic.newton_step(fit, PLANS["ten folds"]), share=0.0),
        "share to be a number above 0 and of at most 1, got 0.0",
    ),
    "large share": (
        lambda fit: algebraic.against_retraining(KEY, algebraic.newton_step(fit, PLANS["ten folds"]), share=1.5),
        "share to be a number .*, got 1.5",
    ),
    "failed retraining": (
        lambda fit: algebraic.against_retraining(
            KEY, algebraic.newton_step(algebraic.full_fit(KEY, Alone(), linear()), PLANS["ten folds"]), share=1.0
        ),
        r"retraining to go well, got 10 failed of 10 rows for Alone\(\)",
    ),
}


def several():
    return Data(np.stack([linear().x] * 2), np.stack([linear().y] * 2), linear().names)


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case, ridge, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call(ridge)
