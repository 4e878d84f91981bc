"""Products of cases in blocks, beside NumPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgen.learn import grams


@pytest.mark.parametrize("n", [100, 959, 960, 1500])
@pytest.mark.parametrize("p", [5, 40, 70])
def test_products_are_those_of_numpy(n, p):
    """Of fewer cases than two blocks, of whole blocks, and of cases that are left after them; with weights or not."""
    random = np.random.default_rng(n + p)
    x, w = random.normal(size=(n, p)), random.integers(0, 4, (3, n)).astype(float)
    with jax.enable_x64(True):
        plain = grams.gram(jnp.asarray(x))
        weighted = grams.weighted_grams(jnp.asarray(x), jnp.asarray(w))
        sets = jax.vmap(grams.gram)(jnp.stack([x, 2 * x]))
    rounding = 1e-12 * n  # sums of up to n numbers near 1, in another order
    np.testing.assert_allclose(plain, x.T @ x, rtol=0, atol=rounding)
    np.testing.assert_allclose(weighted, np.stack([x.T @ (x * v[:, None]) for v in w]), rtol=0, atol=3 * rounding)
    np.testing.assert_allclose(sets, np.stack([x.T @ x, 4 * x.T @ x]), rtol=0, atol=4 * rounding)


@pytest.mark.parametrize(("n", "p", "blocks"), [(959, 70, 0), (1500, 5, 0), (1500, 70, 1)])
def test_many_cases_with_many_inputs_are_multiplied_in_blocks(n, p, blocks):
    program = str(jax.make_jaxpr(grams.gram)(jnp.zeros((n, p))))
    assert program.count("length=3") == blocks
