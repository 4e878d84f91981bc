"""Priors of networks: closed forms of draws, and the laws of precisions given the weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from jaxgen import learn
from jaxgen.learn.bayes.draws import TOP_ATTEMPTS, log_top_precision, standard_gamma
from jaxgen.learn.bayes.prior import Scales, State, numbers_needed, resampled

KEY = jax.random.key(3)
PRIOR = learn.Prior(
    input_hidden=learn.Width(0.4, shape=3, relevance=5, by_sources=True),
    hidden_bias=learn.Width(0.7, shape=4),
    hidden_output=learn.Width(1.5, by_sources=True),
    output_bias=learn.Width(2.0),
    direct=learn.Width(0.3, shape=6, relevance=3, by_sources=True),
    noise=learn.Width(0.5, shape=8),
)
NETWORK = learn.MLP((4,), skip=True)


@pytest.mark.parametrize(
    ("relevance", "sources", "count"),
    [(None, 8, 8.0), (4, 8, 16.0), (2, 8, 8 * np.log(8)), (2, 2, 2.0), (1, 8, 64.0), (0.5, 3, 81.0)],
)
def test_a_width_by_its_sources(relevance, sources, count):
    """Neal's documentation of priors, for scaled widths."""
    width = learn.Width(0.2, shape=9.0, relevance=relevance, by_sources=True)
    np.testing.assert_allclose(width.at(sources), 0.2 / np.sqrt(count), rtol=1e-14)  # rounding
    assert learn.Width(0.2, relevance=relevance).at(sources) == 0.2


def test_draws_from_the_prior_have_its_closed_forms():
    """Precisions are gamma; a weight under an unknown precision of shape a is t with a degrees of freedom."""
    drawn = PRIOR.sample(KEY, NETWORK, 3, 4000, outputs=2)
    params, scales = jax.tree.map(lambda a: np.asarray(a, float), drawn)

    def gamma(shape, mean):
        return stats.gamma(shape / 2, scale=2 * mean / shape).cdf

    laws = {
        "noise": (scales.noise[:, 1], gamma(8, 1 / 0.5**2)),
        "common": (scales.common["input_hidden"], gamma(3, 3 * (5 / 3) / 0.4**2)),
        "each, by their mean": (scales.each["input_hidden"][:, 2] / scales.common["input_hidden"], gamma(5, 1)),
        "a bias": (params["hidden_0"]["bias"][:, 0], stats.t(4, scale=0.7).cdf),
        "a weight of known width": (params["output"]["kernel"][:, 1, 0], stats.norm(scale=1.5 / 2).cdf),
        "an output bias": (params["output"]["bias"][:, 0], stats.norm(scale=2).cdf),
        "a weight by its precision": (
            params["skip"]["kernel"][:, 0, 1] * np.sqrt(scales.each["direct"][:, 1]),
            stats.norm.cdf,
        ),
        "direct, by its mean": (
            params["skip"]["kernel"][:, 1, 0] * np.sqrt(scales.common["direct"]),
            stats.t(3).cdf,
        ),
    }
    for name, (values, law) in laws.items():
        assert stats.kstest(values, law).pvalue > 1e-6, name
    assert drawn.params["hidden_0"]["kernel"].shape == (4000, 4, 3)
    assert abs(np.corrcoef(params["output"]["kernel"][:, 0].T) - np.eye(4)).max() < 6 / np.sqrt(4000)


def test_networks_from_the_prior_are_wide_as_it_says():
    """With fixed widths the variance of an output at x = 0 is that of the bias, and of tanh of the hidden biases."""
    prior = learn.Prior(
        input_hidden=learn.Width(1.0),
        hidden_bias=learn.Width(0.8),
        hidden_output=learn.Width(1.5, by_sources=True),
        output_bias=learn.Width(0.5),
    )
    drawn = prior.sample(KEY, learn.MLP((6,)), 2, 20_000)
    x = jnp.zeros((2, 1))
    outputs = jax.vmap(lambda params: learn.MLP((6,)).forward(params, x).outputs)(drawn.params)
    tanh, _ = integrate.quad(lambda z: np.tanh(0.8 * z) ** 2 * stats.norm.pdf(z), -8, 8)
    # five standard errors of a variance, of a law with kurtosis below 4
    np.testing.assert_allclose(np.var(outputs), 0.5**2 + 1.5**2 * tanh, rtol=5 * np.sqrt(3 / 20_000))


@pytest.mark.parametrize("shape", [0.3, 0.75, 1.0, 4.5, 300.0])
def test_gamma_draws_in_fixed_work(shape):
    random = np.random.default_rng(5)
    normals, uniforms = random.normal(size=(20_000, 6)), random.uniform(size=(20_000, 7))
    value, drawn = standard_gamma(jnp.full(20_000, shape), jnp.asarray(normals), jnp.asarray(uniforms))
    assert np.mean(drawn) > 0.9999
    assert stats.kstest(np.asarray(value, float)[np.asarray(drawn)], stats.gamma(shape).cdf).pvalue > 1e-6


@pytest.mark.parametrize(
    ("slope", "up", "down"),
    [(-3.75, 0.01, 2.0), (-15.75, 1e-4, 1e4), (0.25, 0.3, 0.2), (5.0, 2.0, 1e-6), (-0.2, 1.0, 1.0)],
)
def test_top_precisions_in_fixed_work(slope, up, down):
    """Against the law of the generalised inverse Gaussian in SciPy, and by how many attempts are accepted."""
    uniforms = np.random.default_rng(6).uniform(size=(20_000, TOP_ATTEMPTS, 2))
    every = (jnp.full(20_000, a) for a in (slope, up, down))
    value, drawn = log_top_precision(*every, jnp.asarray(uniforms))
    assert np.mean(drawn) == 1
    law = stats.geninvgauss(slope, 2 * np.sqrt(up * down), scale=np.sqrt(down / up))
    assert stats.kstest(np.exp(np.asarray(value, float)), law.cdf).pvalue > 1e-6
    _, alone = log_top_precision(*(jnp.full(20_000, a) for a in (slope, up, down)), jnp.asarray(uniforms[:, :1]))
    assert np.mean(alone) > 0.5


def test_precisions_given_the_weights_have_their_laws():
    """All conditional laws of one step, written out: gamma, and by quadrature that of the common precision."""
    prior = PRIOR
    state = jax.tree.map(lambda a: a[0], prior.sample(jax.random.key(1), NETWORK, 3, 1, outputs=2))
    groups = prior.groups(NETWORK, 3, 2)
    count = 20_000
    misfit, cases = jnp.asarray([4.0, 1.5]), jnp.asarray(30.0)

    @jax.jit
    @jax.vmap
    def draw(normals, uniforms):
        return resampled(state, groups, prior.noise, misfit, cases, normals, uniforms)

    random = np.random.default_rng(7)
    normals, uniforms = numbers_needed(groups, 2)
    found = draw(jnp.asarray(random.normal(size=(count, normals))), jnp.asarray(random.uniform(size=(count, uniforms))))
    found = jax.tree.map(lambda a: np.asarray(a, float), found)
    params, before = jax.tree.map(lambda a: np.asarray(a, float), state)

    def gamma(shape, mean):
        return stats.gamma(shape / 2, scale=2 * mean / shape).cdf

    biases, kernel = params["hidden_0"]["bias"], params["hidden_0"]["kernel"]
    top = before.common["input_hidden"]
    laws = {
        "noise": (found.noise[:, 0], gamma(8 + 30, (8 + 30) / (8 * 0.5**2 + 2 * 4.0))),
        "second noise": (found.noise[:, 1], gamma(8 + 30, (8 + 30) / (8 * 0.5**2 + 2 * 1.5))),
        "hidden bias": (found.common["hidden_bias"], gamma(4 + 4, (4 + 4) / (4 * 0.7**2 + np.sum(biases**2)))),
        "an input": (found.each["input_hidden"][:, 1], gamma(5 + 4, (5 + 4) / (5 / top + np.sum(kernel[:, 1] ** 2)))),
    }
    for name, (values, law) in laws.items():
        assert stats.kstest(values, law).pvalue > 1e-6, name
    # Given the inputs' precisions, which differ between draws, the common one has the law of the module: its
    # probability integral is uniform.
    width = prior.input_hidden.at(3)
    grid = np.linspace(np.log(top) - 12, np.log(top) + 12, 4001)
    ranks = []
    for common, each in zip(found.common["input_hidden"][:2000], found.each["input_hidden"], strict=False):
        density = grid * (3 - 3 * 5) / 2 - np.exp(grid) * 3 * width**2 / 2 - 5 * each.sum() / (2 * np.exp(grid))
        mass = np.cumsum(np.exp(density - density.max()))
        ranks.append(np.interp(np.log(common), grid, mass / mass[-1]))
    assert stats.kstest(ranks, "uniform").pvalue > 1e-6


def test_fixed_widths_are_not_drawn():
    prior = learn.Prior(*(learn.Width(0.5),) * 5, noise=learn.Width(0.2))
    groups = prior.groups(NETWORK, 3, 1)
    assert numbers_needed(groups, 0) == (0, 0)
    state = State({}, Scales({}, {}, jnp.asarray([25.0])))
    drawn = resampled(state, groups, prior.noise, jnp.ones(1), jnp.asarray(9.0), jnp.zeros(0), jnp.zeros(0))
    assert drawn is state.scales


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: learn.Prior(input_hidden=0.2),
            "expected input_hidden of a Prior as a Width, got 0.2; write for example",
        ),
        (
            lambda: learn.Prior(noise=learn.Width(-1.0)),
            "expected the width of noise to be a finite number above 0, got",
        ),
        (
            lambda: learn.Prior(direct=learn.Width(shape=0)),
            "expected the shape of direct to be a finite number above 0",
        ),
        (
            lambda: learn.Prior(hidden_bias=learn.Width(relevance=1.0)),
            "expected hidden_bias without relevance and by_so",
        ),
    ],
)
def test_what_is_no_prior_is_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make().sample(KEY, NETWORK, 3, 2)


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize("network", [learn.MLP(()), learn.MLP((3, 3)), learn.MLP((3,), dropout=0.5), "a network"])
def test_networks_without_a_prior_are_refused(network):
    with pytest.raises(
        ValueError, match="expected an MLP with one hidden layer, without dropout, noise and batch_norm"
    ):
        learn.Prior().sample(KEY, network, 3, 2)
