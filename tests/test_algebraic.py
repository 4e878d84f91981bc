"""Estimates from one full fit: by hand, against NumPy, SciPy, statsmodels and resampling, and unbiased where theory
says so.
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal
import scipy.stats
import statsmodels.api as sm

from jaxgen import Data, algebraic, assess, learn, loss, resample, simulate
from jaxgen.types import Losses
from jaxgen.types.value import Value

KEY, OTHER = jax.random.key(0), jax.random.key(1)
EXACT = 1e-9
"""The same sums in another order, and inverses of matrices of condition 1e3 or so, in 64 bits."""


@dataclass(frozen=True, repr=False)
class Ridge(Value):
    """The plainest ridge regression: all coefficients penalised, none for an intercept; half squared errors, to be
    another multiple than the loss.
    """

    ridge: float = 0.0

    def fit(self, key, x, y, w):
        return jnp.linalg.solve((x.T * w[None]) @ x + self.ridge * jnp.eye(x.shape[1]), (x.T * w[None]) @ y)

    def predict(self, params, x):
        return x @ params

    def minimised(self, params):
        return (
            params,
            lambda free: free,
            lambda free, x, y: (loss.squared(y, x @ free) / 2, self.ridge * jnp.sum(free**2) / 2),
        )


def cases(n=30, d=4, seed=0, sets=None):
    random = np.random.default_rng(seed)
    shape = (n,) if sets is None else (sets, n)
    x = random.normal(size=(*shape, d)) * np.arange(1, d + 1) + 0.5
    return Data(x, x @ np.ones((d, 1)) + random.normal(size=(*shape, 1)), tuple(f"x{i}" for i in range(d)))


DATA = cases()


@functools.cache
def fitted(ridge, sets=None):
    return algebraic.full_fit(KEY, Ridge(ridge), DATA if sets is None else cases(sets=sets))


# fpe


def full_losses(apparent, n=20, plan=None, loss="squared", failed=False):
    """Losses of full fits with these apparent errors [*Q]."""
    g = np.asarray(apparent, np.float64)[..., None]
    return Losses(
        g,
        g,
        plan or resample.full(n),
        "LeastSquares()",
        loss,
        np.full(g.shape, failed, np.uint8),
        ("it did not converge",),
    )


# apparent error, cases, parameters: FPE, and by s2 = N S / (N - p) the estimate of the average of log(1 + G)
BY_HAND = [
    (1.0, 20, 10, 3.0, math.log(3) + 1 / 3),  # s2 = 2; 2 * 10 / (3 * 20)
    (0.5, 10, 5, 1.5, math.log(2) + 1 / 4),  # s2 = 1; 1 * 5 / (2 * 10)
    (2.4, 50, 2, 2.6, math.log(3.5) + 2.5 / 3.5 / 25),  # s2 = 2.5
    (0.0, 20, 10, 0.0, 0.0),
    (1.0, 20, 1, 21 / 19, math.log(39 / 19) + (20 / 39) / 20),  # s2 = 20/19
    (1.0, 20, 19, 39.0, math.log(21) + (20 / 21) * 0.95),  # s2 = 20
]


@pytest.mark.parametrize(("apparent", "n", "parameters", "plain", "log1p"), BY_HAND)
def test_fpe_by_hand(apparent, n, parameters, plain, log1p):
    assert algebraic.fpe(full_losses(apparent, n), parameters) == pytest.approx(plain, rel=1e-14)
    assert algebraic.fpe(full_losses(apparent, n), parameters, transform="log1p") == pytest.approx(log1p, rel=1e-14)


@pytest.mark.parametrize("transform", ["none", "log1p"])
def test_fpe_of_several_data_sets_is_that_of_each(transform):
    apparent = [0.5, 1.0, 2.0]
    together = algebraic.fpe(full_losses(apparent), 3, transform=transform)
    assert together.shape == (3,)
    assert together.tolist() == [float(algebraic.fpe(full_losses(s), 3, transform=transform)) for s in apparent]


def test_fpe_is_unbiased_for_new_targets_at_the_same_inputs():
    """A true linear model has E[FPE] = noise (1 + p/N) whatever its inputs; 2000 data sets, 5 Monte Carlo standard
    errors.
    """
    system = simulate.linear_ar(jax.random.key(0), 2000, 20, 3, rho=0.0, noise=2.0)
    estimates = algebraic.fpe(
        assess(jax.random.key(1), learn.LeastSquares(intercept=False), system.data, resample.full(20)), 3
    )
    error = estimates.std(ddof=1) / math.sqrt(2000)
    assert estimates.mean() == pytest.approx(2.0 * (1 + 3 / 20), abs=5 * error)
    # what it corrects: the apparent error alone is noise (1 - p/N), which is 26 % too low and far outside these limits
    assert abs(estimates.mean() * 17 / 23 - 2.3) > 20 * error


# Against NumPy


class Oracle(NamedTuple):
    """Everything about a ridge regression from its definition."""

    n: int
    s: float
    g1: float
    g2: float
    g3: float
    h: np.ndarray
    e: np.ndarray
    x: np.ndarray
    inverse: np.ndarray


def oracle(data, ridge):
    x, y, d = data.x, data.y[:, 0], ridge * np.eye(data.d)
    rr = x.T @ x
    inverse = np.linalg.inv(rr + d)
    w = inverse @ x.T @ y
    e, product = y - x @ w, rr @ inverse
    g3 = w @ d @ inverse @ rr @ inverse @ d @ w / len(y)
    return Oracle(
        len(y),
        float(np.mean(e**2)),
        np.trace(product @ product),
        np.trace(product),
        g3,
        np.diagonal(x @ inverse @ x.T),
        e,
        x,
        inverse,
    )


def by_hand_gen(o, lag, e, left=1.0):
    """Larsen's formula as it stands, with psi_k e_k centred, as it is without a penalty."""
    u = o.x * e[:, None]
    u = (u - u.mean(0)) / np.broadcast_to(left, o.n)[:, None]
    r = [sum(np.outer(u[k], u[k + t]) for k in range(o.n - t)) / o.n for t in range(lag + 1)]
    total = r[0] + sum((1 - t / o.n) * (r[t] + r[t].T) for t in range(1, lag + 1))
    return o.s + 2 / o.n * np.trace(total @ (o.inverse * o.n))


ESTIMATES = {
    "fper": (algebraic.fper, lambda o: (o.s - o.g3) / (1 + (o.g1 - 2 * o.g2) / o.n) * (1 + o.g1 / o.n) + o.g3),
    "gpe": (algebraic.gpe, lambda o: o.s * (o.n + o.g1) / (o.n + o.g1 - 2 * o.g2)),
    "gpe with a known noise": (lambda f: algebraic.gpe(f, noise=1.5), lambda o: o.s + 3 * o.g2 / o.n),
    "gpe with the full Hessian": (
        lambda f: algebraic.gpe(f, curvature="full"),
        lambda o: o.s * (o.n + o.g1) / (o.n + o.g1 - 2 * o.g2),
    ),
    "nic": (algebraic.nic, lambda o: by_hand_gen(o, 0, o.e)),
    "nic by Gauss-Newton": (lambda f: algebraic.nic(f, curvature="gauss_newton"), lambda o: by_hand_gen(o, 0, o.e)),
    "nic with hc3": (lambda f: algebraic.nic(f, hc3=True), lambda o: by_hand_gen(o, 0, o.e, 1 - o.h)),
    "gen without a lag": (lambda f: algebraic.gen(f, 0), lambda o: by_hand_gen(o, 0, o.e)),
    "gen": (lambda f: algebraic.gen(f, 3), lambda o: by_hand_gen(o, 3, o.e)),
    "gen with the longest lag": (lambda f: algebraic.gen(f, 29), lambda o: by_hand_gen(o, 29, o.e)),
    "gcv": (algebraic.gcv, lambda o: o.s / (1 - o.g2 / o.n) ** 2),
    "leave_one_out": (algebraic.leave_one_out, lambda o: np.mean((o.e / (1 - o.h)) ** 2)),
    "unlearning": (algebraic.unlearning, lambda o: np.mean(o.e**2 * (1 + o.h) / (1 - o.h))),
    "unlearning with the full Hessian": (
        lambda f: algebraic.unlearning(f, curvature="full"),
        lambda o: np.mean(o.e**2 * (1 + o.h) / (1 - o.h)),
    ),
}


@pytest.mark.parametrize("ridge", [0.0, 20.0])
@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates_are_their_formulas(name, ridge):
    estimate, formula = ESTIMATES[name]
    got = estimate(fitted(ridge))
    assert got.estimate == pytest.approx(formula(oracle(DATA, ridge)), rel=EXACT)
    assert got.estimate.shape == ()
    assert got.target
    assert got.source
    assert got.unit == "squared loss"
    assert got.note == ""
    assert got.parts.get("apparent", oracle(DATA, ridge).s) == pytest.approx(oracle(DATA, ridge).s, rel=EXACT)


def test_effective_numbers_are_their_formulas():
    for ridge in (0.0, 20.0):
        got, want = algebraic.effective_numbers(fitted(ridge)), oracle(DATA, ridge)
        assert [float(v) for v in (got.g1, got.g2, got.g3)] == pytest.approx(
            [want.g1, want.g2, want.g3], rel=EXACT, abs=1e-12
        )
        assert algebraic.p_eff(fitted(ridge)) == pytest.approx(want.g2, rel=EXACT)
        np.testing.assert_allclose(algebraic.leverages(fitted(ridge)), want.h, rtol=EXACT)
    # Moody's definition: T_ia = d2 sum e^2 / dy_i dw_a = -2 psi, U = 2 H
    t, u = -2 * DATA.x, np.linalg.inv(oracle(DATA, 20.0).inverse) * 2
    assert algebraic.p_eff(fitted(20.0)) == pytest.approx(np.trace(t @ np.linalg.inv(u) @ t.T) / 2, rel=EXACT)


def test_without_a_penalty_all_are_fpe_or_its_relatives():
    fit, n, p = fitted(0.0), DATA.n, DATA.d
    fpe = fit.apparent * (n + p) / (n - p)
    assert algebraic.fper(fit).estimate == pytest.approx(fpe, rel=EXACT)
    assert algebraic.gpe(fit).estimate == pytest.approx(fpe, rel=EXACT)
    numbers = algebraic.effective_numbers(fit)
    assert [float(numbers.g1), float(numbers.g2)] == pytest.approx([p, p], rel=EXACT)
    assert numbers.g3 == 0


def test_nic_with_hc3_has_the_covariance_of_statsmodels():
    """tr(G Q^-1) / N is 2 tr(cov_HC3 X'X) / N for least squares."""
    fit = fitted(0.0)
    x, y = np.asarray(fit.jacobian[:, 0, :]), np.asarray(DATA.y[:, 0])
    hc3 = sm.OLS(y, x).fit(cov_type="HC3").cov_params()
    want = 2 * np.trace(hc3 @ (x.T @ x)) / DATA.n
    assert algebraic.nic(fit, hc3=True).parts["correction"] == pytest.approx(want, rel=EXACT)


def test_several_data_sets_are_estimated_as_each():
    together = fitted(20.0, sets=20)  # in blocks of unequal size
    for q in (0, 19):
        for name, (estimate, formula) in ESTIMATES.items():
            if name != "unlearning with the full Hessian":
                got = estimate(together).estimate
                assert got.shape == (20,)
                assert got[q] == pytest.approx(float(estimate(together[q]).estimate), rel=1e-12)
                assert got[q] == pytest.approx(formula(oracle(cases(sets=20)[q], 20.0)), rel=EXACT)


# Against others


@pytest.mark.parametrize("learner", [learn.LeastSquares(), learn.LeastSquares(ridge=3.0)], ids=str)
def test_leave_one_out_is_press_and_what_the_engine_finds(learner):
    fit = algebraic.full_fit(KEY, learner, DATA)
    assert fit.gradient < 1e-9
    got = algebraic.leave_one_out(fit).estimate
    engine = assess(KEY, learner, DATA, resample.leave_one_out(DATA.n))
    assert got == pytest.approx(engine.g.mean(), rel=1e-4)  # the engine in 32 bits
    if not learner.ridge:
        model = sm.OLS(DATA.y[:, 0], sm.add_constant(DATA.x)).fit()
        assert got == pytest.approx(model.get_influence().ess_press / DATA.n, rel=EXACT)
        np.testing.assert_allclose(algebraic.leverages(fit), model.get_influence().hat_matrix_diag, rtol=EXACT)
        assert fit.p == 5
        assert algebraic.s_p(fit).estimate == pytest.approx(model.ssr * 31 * 28 / 30 / (25 * 24), rel=EXACT)


def test_nic_of_log_loss_is_takeuchis_criterion():
    """TIC / 2N from statsmodels' scores and Hessian."""
    x = DATA.x[:, :2]
    y = (np.random.default_rng(1).random(30) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    fit = algebraic.full_fit(
        KEY, learn.Logistic(ridge=0.0), Data(x, y[:, None], ("a", "b"), task="classification"), loss.cross_entropy
    )
    model = sm.Logit(y, sm.add_constant(x))
    found = model.fit(disp=0)
    scores = model.score_obs(found.params)
    tic = -2 * found.llf + 2 * np.trace(scores.T @ scores @ np.linalg.inv(-model.hessian(found.params)))
    assert fit.p == 3
    assert algebraic.nic(fit).estimate == pytest.approx(tic / 60, rel=1e-8)  # statsmodels stops at its own tolerance
    assert algebraic.gen(fit, 0).estimate == algebraic.nic(fit).estimate
    with pytest.raises(
        ValueError,
        match="the squared loss and a learner of one output that minimises squared errors for FPER|effective numbers",
    ):
        algebraic.fper(fit)


def test_normalised_least_squares_is_least_squares():
    """Units that do not change the fit do not change an estimate."""
    one, other = (
        algebraic.full_fit(KEY, learner, DATA)
        for learner in (learn.Normalised(learn.LeastSquares()), learn.LeastSquares())
    )
    assert one.p == other.p == 5
    assert one.ratio == pytest.approx(float(one.fitted.y_scale[0]) ** 2, rel=EXACT)
    for estimate in (
        algebraic.nic,
        algebraic.s_p,
        algebraic.fper,
        algebraic.leave_one_out,
        algebraic.unlearning,
        algebraic.quantile,
    ):
        assert estimate(one).estimate == pytest.approx(float(estimate(other).estimate), rel=1e-8)


# Simulated


def test_s_p_has_the_mean_of_g_and_g_its_exact_law():
    """2000 data sets, 5 Monte Carlo standard errors; KS at 1e-6. The asymptotic law, which ignores N = 20, must
    fail.
    """
    system = simulate.linear_ar(KEY, 2000, 20, 6, rho=0.0, noise=2.0)
    fit = algebraic.full_fit(OTHER, Ridge(), system.data)
    g = system.generalization(fit.params)
    difference = algebraic.s_p(fit).estimate - g
    assert abs(difference.mean()) < 5 * difference.std() / math.sqrt(2000)
    # for contrast, FPE is for fixed inputs, 2 (1 + 6/20) on average, and too low for G
    difference = algebraic.fper(fit).estimate - 2.6
    assert abs(difference.mean()) < 5 * difference.std() / math.sqrt(2000)
    difference = algebraic.gcv(fit).estimate - 2 * (1 + 6 / 14)
    assert abs(difference.mean()) < 5 * difference.std() / math.sqrt(2000)
    assert scipy.stats.kstest(g, algebraic.f_law(2.0, 20, 6).cdf).pvalue > 1e-6
    assert scipy.stats.kstest(g, algebraic.chi2_law(2.0, 20, 6).cdf).pvalue < 1e-6
    assert algebraic.f_law(2.0, 20, 6).mean() == pytest.approx(2 * (1 + 6 / 13), rel=1e-12)
    assert algebraic.chi2_law(2.0, 20, 6).mean() == pytest.approx(2.6, rel=1e-12)


def test_s_p_with_an_intercept_has_the_mean_of_g():
    """Inputs have mean 0, so the intercept adds its square to G; 1500 data sets, 5 Monte Carlo standard errors."""
    system = simulate.linear_ar(KEY, 1500, 15, 3, rho=0.0, noise=1.0)
    data = replace(
        system.data, x=np.concatenate([np.ones((1500, 15, 1)), system.data.x], -1), names=("one", *system.data.names)
    )
    fit = algebraic.full_fit(OTHER, Ridge(), data)
    difference = algebraic.s_p(fit).estimate - system.generalization(fit.params[:, 1:]) - fit.params[:, 0] ** 2
    assert abs(difference.mean()) < 5 * difference.std() / math.sqrt(1500)


def test_the_chi2_law_is_that_of_large_data_sets():
    system = simulate.linear_ar(KEY, 500, 200, 3, rho=0.0, noise=2.0)
    g = system.generalization(algebraic.full_fit(OTHER, Ridge(), system.data).params)
    assert scipy.stats.kstest(g, algebraic.chi2_law(2.0, 200, 3).cdf).pvalue > 1e-6


def test_g1_g2_g3_explain_training_and_test_error_at_fixed_inputs():
    """Ridge at fixed inputs with the true w in g3: E S = noise (1 + (g1 - 2 g2)/N) + g3; with the fitted w FPER is a
    little too high. 2000 targets.
    """
    n, d, ridge = 30, 4, 60.0
    random = np.random.default_rng(0)
    x, w = random.normal(size=(n, d)), np.ones((d, 1))
    y = x @ w + random.normal(size=(2000, n, 1))
    fit = algebraic.full_fit(KEY, Ridge(ridge), Data(np.broadcast_to(x, (2000, n, d)).copy(), y, ("a", "b", "c", "d")))
    o = oracle(Data(x, x @ w, ("a", "b", "c", "d")), ridge)
    bias = np.mean((x @ o.inverse @ (ridge * w)) ** 2)
    numbers = algebraic.effective_numbers(fit)
    training, test = 1 + (numbers.g1[0] - 2 * numbers.g2[0]) / n + bias, 1 + numbers.g1[0] / n + bias
    exact = 1 + np.mean((fit.predictions - x @ w) ** 2, axis=(-2, -1))
    assert fit.apparent.mean() == pytest.approx(training, abs=5 * fit.apparent.std() / math.sqrt(2000))
    assert exact.mean() == pytest.approx(test, abs=5 * exact.std() / math.sqrt(2000))
    fper = algebraic.fper(fit).estimate.mean()
    assert 0.97 * test < fper < 1.06 * test


def test_gen_is_right_where_inputs_and_errors_depend_on_earlier_ones():
    """400 series of 300 cases, both autoregressive: NIC misses most of the optimism, GEN less than 40 % of what NIC
    misses (13 % in 1500 series).
    """
    random = np.random.default_rng(0)

    def series(*shape):
        z = random.normal(size=shape)
        z[:, 1:] *= math.sqrt(1 - 0.8**2)
        return scipy.signal.lfilter([1.0], [1.0, -0.8], z, axis=1)

    x, e = series(400, 300, 3), series(400, 300, 1)
    fit = algebraic.full_fit(KEY, Ridge(), Data(x, x.sum(-1, keepdims=True) + e, ("a", "b", "c")))
    g = 1 + ((fit.params - 1) ** 2).sum(-1)
    missed, left = (g - algebraic.gen(fit, lag).estimate for lag in (0, 10))
    assert missed.mean() > 4 * missed.std() / math.sqrt(400)
    assert abs(left.mean()) < 0.4 * missed.mean()


# The fit


@dataclass(frozen=True, repr=False)
class Drawn(Ridge):
    """Training by a draw."""

    def fit(self, key, x, y, w):
        return jax.random.normal(key, (x.shape[1], 1), x.dtype)


def test_the_fit_is_that_of_the_engine():
    data = cases(sets=3)
    with jax.enable_x64(True):
        engine = assess(KEY, Drawn(), data, resample.full(30))
    fit = algebraic.full_fit(KEY, Drawn(), data)
    np.testing.assert_allclose(fit.losses, engine.values[:, 0], rtol=1e-12)
    assert len(np.unique(fit.params[:, 0])) == 3
    assert fit.name == engine.learner


def test_derivatives_are_those_of_the_model():
    """Gradients, Hessian and penalty of half squared errors, by hand."""
    fit, e = fitted(20.0), oracle(DATA, 20.0).e
    np.testing.assert_allclose(fit.jacobian[:, 0], DATA.x, rtol=1e-12)
    np.testing.assert_allclose(fit.gradients, -DATA.x * e[:, None], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fit.hessian, DATA.x.T @ DATA.x, rtol=1e-12)
    np.testing.assert_allclose(fit.penalty_gradient, 20 * fit.params, rtol=1e-12)
    np.testing.assert_allclose(fit.penalty_hessian, 20 * np.eye(4), rtol=1e-12)
    assert fit.ratio == pytest.approx(2, rel=1e-12)
    assert fit.gradient < 1e-12


# Laws


@pytest.mark.parametrize("m", [1, 2, 3, 30])
@pytest.mark.parametrize("p", [1e-8, 0.01, 0.5, 0.95, 1 - 1e-8])
def test_equal_weights_give_chi2(m, p):
    law, want = algebraic.WeightedChi2(np.full(m, 0.3)), scipy.stats.chi2(m, scale=0.3)
    x = want.ppf(p)
    assert law.cdf(x) == pytest.approx(
        want.cdf(x), rel=1e-7
    )  # the smaller tail to its own digits: that is the quadrature's tolerance
    assert law.sf(x) == pytest.approx(want.sf(x), rel=1e-7)
    assert law.ppf(p) == pytest.approx(x, rel=1e-7)
    assert law.mean == pytest.approx(want.mean())


def test_weighted_chi2_is_that_of_sums():
    """Two pairs of equal weights have a closed form, a mixture of exponentials; 10 unequal ones against 200,000 draws,
    at 5 binomial standard errors.
    """
    law = algebraic.WeightedChi2(np.asarray([1.0, 1.0, 0.25, 0.25]))
    for x in (0.01, 1.0, 8.0, 40.0):
        assert law.sf(x) == pytest.approx((2 * np.exp(-x / 2) - 0.5 * np.exp(-x / 0.5)) / 1.5, rel=1e-7)
    law = algebraic.WeightedChi2(np.geomspace(1e-4, 1, 10))
    draws = np.random.default_rng(0).normal(size=(200_000, 10)) ** 2 @ law.weights
    for p in (0.05, 0.5, 0.95):
        assert np.mean(draws <= law.ppf(p)) == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / 200_000))
    assert algebraic.WeightedChi2(np.asarray([1.0, 0.0])).ppf(0.9) == pytest.approx(
        scipy.stats.chi2.ppf(0.9, 1), rel=1e-9
    )


def test_quantiles_are_their_formulas():
    fit, n, p = fitted(0.0), 30, 4
    noise = float(fit.apparent) * n / (n - p)
    assert algebraic.quantile(fit, level=0.9, law="chi2").estimate == pytest.approx(
        noise * (1 + scipy.stats.chi2.ppf(0.9, p) / n), rel=1e-12
    )
    assert algebraic.quantile(fit, level=0.9, law="f").estimate == pytest.approx(
        noise * (1 + p / (n - p + 1) * scipy.stats.f.ppf(0.9, p, n - p + 1)), rel=1e-12
    )
    o = oracle(DATA, 0.0)
    u = o.x * o.e[:, None]
    # lambda = eig(Q^-1/2 G Q^-1/2) with G = 4 mean(u u'), Q = 2 RR / N
    values = np.linalg.eigvals(4 * u.T @ u / n @ (o.inverse * n / 2)).real
    np.testing.assert_allclose(np.sort(algebraic.weights_of(fit)), np.sort(values) / (2 * n), rtol=1e-8)
    law = algebraic.WeightedChi2(values)
    assert algebraic.quantile(fit, level=0.9).estimate == pytest.approx(
        o.s + (values.sum() + law.ppf(0.9)) / (2 * n), rel=1e-8
    )
    assert algebraic.quantile(fit, level=0.9).parts["mean_of_law"] == pytest.approx(
        float(algebraic.nic(fit).estimate), rel=1e-12
    )
    assert algebraic.quantile(fitted(20.0, sets=20)).estimate.shape == (20,)
    assert "0.9 quantile" in algebraic.quantile(fit, level=0.9).target


# Degenerate, and warned of


def test_a_perfect_fit_has_no_error():
    data = replace(DATA, y=DATA.x @ np.ones((4, 1)))
    fit = algebraic.full_fit(KEY, Ridge(), data)
    for estimate in (
        algebraic.fper,
        algebraic.gpe,
        algebraic.nic,
        algebraic.gcv,
        algebraic.s_p,
        algebraic.leave_one_out,
        algebraic.unlearning,
    ):
        assert abs(estimate(fit).estimate) < 1e-20


@dataclass(frozen=True, repr=False)
class Halfway(Ridge):
    """Stopped before its minimum."""

    def fit(self, key, x, y, w):
        return super().fit(key, x, y, w) * 0.9


@dataclass(frozen=True, repr=False)
class Still(Ridge):
    """Not trained at all."""

    def fit(self, key, x, y, w):
        return jnp.ones((x.shape[1], 1), x.dtype)


def test_what_is_no_minimum_is_said():
    fit = algebraic.full_fit(KEY, Halfway(), DATA)
    assert fit.gradient > 0.01
    assert "the fit is not at a minimum (relative gradient norm" in algebraic.nic(fit).note
    assert "note: the fit is not at a minimum" in str(algebraic.fper(fit))
    both = algebraic.full_fit(KEY, Halfway(), cases(sets=3))
    assert "3 of 3 fits are not at a minimum" in algebraic.gcv(both).note
    assert repr(fitted(0.0)).startswith("FullFit(Ridge(), squared loss: N=30, P=4, relative gradient norm")
    assert repr(both).startswith("FullFit(Halfway(), squared loss: Q=3, N=30, P=4")


def test_damping_adds_to_the_diagonal():
    singular = replace(DATA, x=np.concatenate([DATA.x, DATA.x[:, :1]], 1), names=("a", "b", "c", "d", "e"))
    fit = algebraic.full_fit(KEY, Ridge(1e-9), singular).damped(1e-3)
    assert algebraic.effective_numbers(fit).g2 == pytest.approx(4, abs=1e-4)


# Bad input


def fits(learner, data=DATA, with_loss=loss.squared):
    return algebraic.full_fit(KEY, learner, data, with_loss)


WIDE = cases(n=5)

BAD = {
    "resampled losses": (
        lambda: algebraic.fpe(full_losses(1.0, plan=resample.from_weights(np.eye(20)[:1], 1 - np.eye(20)[:1])), 3),
        r"one fit to all cases, got given weights; assess with resample.full\(20\)",
    ),
    "several rows": (
        lambda: algebraic.fpe(full_losses(1.0, plan=resample.leave_one_out(20)), 3),
        "one fit to all cases, got resample.leave_one_out",
    ),
    "counted twice": (
        lambda: algebraic.fpe(full_losses(1.0, plan=resample.from_weights(2 * np.ones((1, 20)), np.ones((1, 20)))), 3),
        "one fit to all cases, got given weights",
    ),
    "tested on some": (
        lambda: algebraic.fpe(full_losses(1.0, plan=resample.from_weights(np.ones((1, 20)), np.eye(20)[:1])), 3),
        "one fit to all cases, got given weights",
    ),
    "absolute loss": (
        lambda: algebraic.fpe(full_losses(1.0, loss=loss.absolute.__name__), 3),
        "squared loss, got absolute; FPE is derived for squared loss only",
    ),
    "no parameters": (
        lambda: algebraic.fpe(full_losses(1.0), 0),
        r"parameters to be a whole number from 1 to 19 \(fewer than the 20 cases\), got 0",
    ),
    "as many parameters as cases": (
        lambda: algebraic.fpe(full_losses(1.0), 20),
        r"from 1 to 19 \(fewer than the 20 cases\), got 20",
    ),
    "unknown transform": (
        lambda: algebraic.fpe(full_losses(1.0), 3, transform="log"),
        "transform to be one of 'none', 'log1p', got 'log'; choose one of these",
    ),
    "failed fit": (lambda: algebraic.fpe(full_losses(1.0, failed=True), 3), r"1 failed of 1 for LeastSquares\(\)"),
    # of full fits
    "a loss that is not minimised": (
        lambda: algebraic.nic(fits(Ridge(), with_loss=loss.absolute)),
        r"a loss that is a multiple of what Ridge\(\) minimises for NIC, got absolute; give that loss to full_fit",
    ),
    "two outputs": (
        lambda: algebraic.fper(fits(Ridge(), replace(DATA, y=np.concatenate([DATA.y, DATA.y], 1)))),
        "a learner of one output that minimises squared errors for .*, got squared loss and 2 outputs",
    ),
    "a penalty in S_p": (
        lambda: algebraic.s_p(fitted(20.0)),
        r"a fit without a penalty for S_p, got Ridge\(ridge=20.0\); use leave_one_out or gcv",
    ),
    "too few cases for S_p": (
        lambda: algebraic.s_p(fits(Ridge(), WIDE)),
        "at least 6 cases for 4 parameters, got 5; S_p needs N > P \\+ 1",
    ),
    "saturated": (
        lambda: algebraic.fper(fits(Ridge(), cases(n=4))),
        "a fit that leaves residuals for FPER, got 4 parameters for 4 cases",
    ),
    "dependent inputs": (
        lambda: algebraic.gcv(fits(Still(), replace(DATA, x=DATA.x[:, [0, 1, 2, 2]]))),
        "the gauss_newton Hessian of Still.* to be positive definite, got a smallest eigenvalue of",
    ),
    "negative lag": (
        lambda: algebraic.gen(fitted(0.0), -1),
        r"lag to be a whole number from 0 to 29 \(the largest distance of 30 cases\), got -1",
    ),
    "long lag": (lambda: algebraic.gen(fitted(0.0), 30), "a whole number from 0 to 29 .*, got 30"),
    "negative noise": (
        lambda: algebraic.gpe(fitted(0.0), noise=-1.0),
        "the variance of the noise to be a finite number of at least 0, got -1.0; leave it out",
    ),
    "unknown curvature": (
        lambda: algebraic.nic(fitted(0.0), curvature="exact"),
        "curvature to be one of None, 'full', 'gauss_newton', got 'exact'",
    ),
    "unknown law": (
        lambda: algebraic.quantile(fitted(0.0), law="normal"),
        "law to be one of 'weighted', 'chi2', 'f', got 'normal'",
    ),
    "chi2 with a penalty": (
        lambda: algebraic.quantile(fitted(20.0), law="chi2"),
        "a fit without a penalty for the chi2 law",
    ),
    "level": (
        lambda: algebraic.quantile(fitted(0.0), level=95.0),
        "level to be a number above 0 and below 1, got 95.0",
    ),
    "negative weights": (
        lambda: algebraic.WeightedChi2(np.asarray([1.0, -1.0])),
        r"weights of at least 0, an array \[P\], got",
    ),
    "too many parameters for F": (
        lambda: algebraic.f_law(1.0, 5, 6),
        r"parameters to be a whole number from 1 to 5 \(as many as the 5 cases\), got 6",
    ),
    "one set asked for by number": (
        lambda: algebraic.nic(fitted(20.0, sets=20)[0][0]),
        "a fit with a leading axis Q to choose from",
    ),
    "negative damping": (
        lambda: fitted(0.0).damped(-1.0),
        "the amount of damping to be a finite number of at least 0, got -1.0",
    ),
    "failed full fit": (
        lambda: fits(learn.LeastSquares(), replace(DATA, x=DATA.x * [1, 1, 1, 0])),
        r"the fit to all cases to go well, got 1 failed of 1 for LeastSquares\(\) \(data set 0: the inputs",
    ),
    "too few cases": (
        lambda: fits(learn.LeastSquares(), cases(n=3)),
        r"at least 5 training cases for the 5 coefficients of LeastSquares\(\), got 3 in one fit to all cases",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises((ValueError, IndexError), match=message):
        call()


def test_a_key_is_asked_for(own_messages):
    with pytest.raises(TypeError, match="one random key, got the integer 0"):
        algebraic.full_fit(0, Ridge(), DATA)
