"""The hierarchical Bayesian test over data sets, against another sampler of the same posterior."""

import dataclasses

import jax
import numpy as np
import pytest
import scipy.stats

from jaxgen import Losses, resample
from jaxgen.stats import compare
from jaxgen.stats.compare.hierarchical import ALPHA, BETA, sampled

KEY = jax.random.key(0)
PLAN = resample.k_fold(KEY, 40, 5, 2)


def pair(x, plan=PLAN):
    """Two learners whose differences are x, [Q, R]."""
    zero = np.zeros(x.shape)
    first, second = (
        Losses(values, np.full(x.shape, np.nan), plan, name, "squared", np.zeros(x.shape, np.uint8))
        for name, values in (("a", zero), ("b", np.asarray(x)))
    )
    return first, second


def drawn(seed, sets, rows, rho, centre=0.5, between=1.0, within=1.0, nu=np.inf):
    """Differences by the model itself."""
    random = np.random.default_rng(seed)
    t = random.normal(size=sets) / (1 if np.isinf(nu) else np.sqrt(random.chisquare(nu, sets) / nu))
    delta = centre + between * t
    shared, own = random.normal(size=(sets, 1)), random.normal(size=(sets, rows))
    return delta[:, None] + within * (np.sqrt(rho) * shared + np.sqrt(1 - rho) * own)


def log_posterior(theta, x, rho):
    """As the paper states it, with explicit covariances: of delta_0, log sigma_0, log nu, log sigma_i and delta_i.
    [C, 3 + 2 Q]; alpha and beta are integrated by the midpoint rule.
    """
    sets, rows = x.shape
    delta, log_sigma, log_nu = theta[:, 0], theta[:, 1], theta[:, 2]
    log_own, deltas = theta[:, 3 : 3 + sets], theta[:, 3 + sets :]
    correlation = (1 - rho) * np.eye(rows) + rho
    inverse, (_, log_det) = np.linalg.inv(correlation), np.linalg.slogdet(correlation)
    residual = x - deltas[..., None]
    quadratic = np.einsum("cqr,rs,cqs->cq", residual, inverse, residual) * np.exp(-2 * log_own)
    likelihood = (-0.5 * quadratic - rows * log_own - 0.5 * log_det).sum(-1)
    hierarchy = scipy.stats.t.logpdf(deltas, np.exp(log_nu)[:, None], delta[:, None], np.exp(log_sigma)[:, None])
    alpha, beta = (np.linspace(*ends, 31)[:-1] + (ends[1] - ends[0]) / 60 for ends in (ALPHA, BETA))
    nu = np.exp(log_nu)[:, None, None]
    prior = np.log(scipy.stats.gamma.pdf(nu, alpha[:, None], scale=1 / beta).mean((1, 2)) + 1e-300)
    # Uniform in sigma_0 and sigma_i, and nu itself: Jacobians of the logarithms.
    return likelihood + hierarchy.sum(-1) + prior + log_sigma + log_nu + log_own.sum(-1)


def metropolis(x, rho, steps, walkers, seed):
    """Goodman & Weare's affine invariant sampler of the posterior: draws of theta after half of the steps."""
    random = np.random.default_rng(seed)
    sets = len(x)
    start = np.concatenate([[x.mean(), 0, 2], np.log(x.std(-1)), x.mean(-1)])
    theta = start + 0.3 * random.normal(size=(walkers, 3 + 2 * sets))
    log, kept, half = log_posterior(theta, x, rho), [], walkers // 2
    for step in range(steps):
        for some, others in ((np.arange(half), np.arange(half, walkers)), (np.arange(half, walkers), np.arange(half))):
            z = np.square(1 + random.random(half)) / 2
            partner = theta[random.choice(others, half)]
            proposal = partner + z[:, None] * (theta[some] - partner)
            new = log_posterior(proposal, x, rho)
            accepted = np.log(random.random(half)) < (theta.shape[1] - 1) * np.log(z) + new - log[some]
            theta[some[accepted]], log[some[accepted]] = proposal[accepted], new[accepted]
        if step >= steps // 2 and step % 10 == 0:
            kept.append(theta.copy())
    return np.concatenate(kept)


def test_the_posterior_is_that_of_another_sampler():
    """Five data sets of six rows. Both have Monte Carlo errors of about 1 % of the deviations; 8 % allows for these and
    for the slow mixing of the other sampler in the tails of sigma_0.
    """
    rho = 0.2
    x = drawn(3, 5, 6, rho)
    got = sampled(x, np.full(5, rho), 2500, seed=1)
    want = metropolis(x, rho, 12_000, 60, seed=2)
    for mine, other in (
        (got.delta, want[:, 0]),
        (np.log(got.sigma), want[:, 1]),
        (np.log(got.nu), want[:, 2]),
    ):
        assert np.mean(mine) == pytest.approx(np.mean(other), abs=0.08 * np.std(other))
        assert np.std(mine) == pytest.approx(np.std(other), rel=0.08)


def test_with_many_rows_and_data_sets_it_is_the_t_interval_of_their_means():
    """Rows without noise leave the data sets as the sample, and many degrees of freedom are not excluded: of 60 normal
    means the centre has Student's interval, but for what the prior of nu says of heavier tails.
    """
    x = drawn(5, 60, 10, 0.1, within=1e-3)
    got = compare.hierarchical_t(*pair(x))
    want = scipy.stats.ttest_1samp(x.mean(-1), 0).confidence_interval()
    reach = (want.high - want.low) / 2
    assert got.lower == pytest.approx(want.low, abs=0.15 * reach)
    assert got.upper == pytest.approx(want.high, abs=0.15 * reach)
    assert got.parts["R-hat"] < 1.01
    assert got.parts["between data sets"] == pytest.approx(x.mean(-1).std(ddof=1), rel=0.1)


def test_its_interval_covers():
    """60 studies of eight data sets by the model; a credible interval covers about as often as it says (binomial limit
    of one in ten thousand, since the prior is not that of the simulation).
    """
    rho = float(PLAN.test_sizes[0] / PLAN.n)
    covered = 0
    for seed in range(60):
        draws = sampled(drawn(100 + seed, 8, 10, rho), np.full(8, rho), 1000, seed)
        low, high = np.quantile(draws.delta, [0.05, 0.95])
        covered += bool(low < 0.5 < high)
    assert scipy.stats.binomtest(covered, 60, 0.9).pvalue > 1e-4


def test_data_sets_with_noise_are_drawn_together_and_regions_add_up():
    x = drawn(7, 12, 10, 0.2, centre=0.5, between=0.05, within=0.3)
    got = compare.hierarchical_t(*pair(x), rope=0.1, resamples=4000)
    assert sum(got.parts[f"P({name})"] for name in ("left", "rope", "right")) == pytest.approx(1)
    assert sum(got.parts[f"next {name}"] for name in ("left", "rope", "right")) == pytest.approx(1)
    assert got.parts["P(right)"] > 0.9
    mirrored = compare.hierarchical_t(*pair(-x), rope=0.1, resamples=4000)
    assert mirrored.parts["P(left)"] == pytest.approx(got.parts["P(right)"], abs=0.05)
    scaled = compare.hierarchical_t(*pair(1000 * x), rope=100.0, resamples=4000)
    assert scaled.estimate == pytest.approx(1000 * got.estimate, rel=1e-9)
    assert str(got).startswith("hierarchical Bayesian t-test (Corani et al. 2017): squared loss of b minus that of a")
    wide = compare.hierarchical_t(*pair(x), level=0.99, resamples=4000)
    assert wide.lower < got.lower < got.upper < wide.upper
    again = compare.hierarchical_t(*pair(x), rope=0.1, resamples=4000)
    assert (again.estimate, again.lower) == (got.estimate, got.lower)


def test_rows_that_repeat_others_buy_no_precision():
    """Every division into folds twice, with the same differences."""
    x = drawn(7, 5, 10, 0.2)
    again = resample.from_weights(*(np.concatenate([w, w]) for w in (PLAN.train, PLAN.test)))
    once, twice = (
        compare.hierarchical_t(*pair(values, plan), resamples=800)
        for values, plan in ((x, PLAN), (np.concatenate([x, x], axis=-1), again))
    )
    np.testing.assert_allclose(  # the same draws of means that are rounded in another order
        [once.estimate, once.lower, once.upper], [twice.estimate, twice.lower, twice.upper], rtol=1e-6
    )


BAD = {
    "two data sets": (lambda: compare.hierarchical_t(*pair(drawn(0, 2, 10, 0.2))), "at least 3 data sets"),
    "one data set": (
        lambda: compare.hierarchical_t(*(one[0] for one in pair(drawn(0, 3, 10, 0.2)))),
        "got those of 1; give data with an axis Q, or use bayesian_t",
    ),
    "no spread": (lambda: compare.hierarchical_t(*pair(np.ones((4, 10)))), "got 4 where all rows have the same"),
    "rope": (lambda: compare.hierarchical_t(*pair(drawn(0, 4, 10, 0.2)), rope=-1.0), "rope"),
    "series": (
        lambda: compare.hierarchical_t(*pair(drawn(0, 4, 10, 0.2), resample.time_blocks(40, 10))),
        "a series, whose cases depend on each other",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_compared_is_refused(case):
    call, words = BAD[case]
    with pytest.raises(ValueError, match=words):
        call()


def test_failed_rows_are_told():
    first, second = pair(drawn(0, 4, 10, 0.2))
    with pytest.raises(ValueError, match="failed"):
        compare.hierarchical_t(dataclasses.replace(first, failure=np.ones((4, 10), np.uint8), reasons=("x",)), second)
