"""Convergence of chains against ArviZ."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxgen.learn.bayes.convergence import effective_draws, of_all, split_rhat

ARVIZ = {  # chains, states, correlation, distance between chains: R-hat and bulk ESS of ArviZ 0.23.4
    (4, 100, 0.9, 0.0): (1.1474937811514698, 23.523718899446877),
    (3, 41, -0.5, 0.0): (0.9872074787271294, 249.50174952571496),
    (4, 100, 0.3, 1.0): (1.5645233081998258, 7.559961712019971),
    (2, 30, 0.99, 0.0): (1.4729663461003797, 4.69534474877139),
}
SEEDS = dict(zip(ARVIZ, (0, 2, 3, 4), strict=True))


def chains(count, states, correlation, distance, seed):
    """Autoregressive series, in each of which a state is repeated, as rejections do."""
    noise = np.random.default_rng(seed).normal(size=(count, states))
    x = np.zeros((count, states))
    x[:, 0] = noise[:, 0]
    for t in range(1, states):
        x[:, t] = correlation * x[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
    x += distance * np.arange(count)[:, None]
    x[:, 5] = x[:, 4]
    return x


@pytest.mark.parametrize("case", ARVIZ)
def test_rhat_and_effective_draws_are_those_of_arviz(case):
    x = jnp.asarray(chains(*case, SEEDS[case]), jnp.float32)
    # single precision
    np.testing.assert_allclose([split_rhat(x), effective_draws(x)], ARVIZ[case], rtol=1e-5)


def test_a_number_has_its_own_and_short_chains_none():
    both = np.stack([chains(4, 100, 0.9, 0.0, 0), chains(4, 100, 0.3, 1.0, 3)], axis=-1)
    rhat, effective = of_all(jnp.asarray(both, jnp.float32))
    found = np.stack([rhat, effective], axis=1)
    np.testing.assert_allclose(found, [ARVIZ[4, 100, 0.9, 0.0], ARVIZ[4, 100, 0.3, 1.0]], rtol=1e-5)
    assert np.isnan(of_all(jnp.zeros((2, 7, 3)))[0]).tolist() == [True] * 3
