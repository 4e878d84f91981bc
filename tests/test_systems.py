"""Systems of one training set: factors and inverses as NumPy has them, of sizes at which the way changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgen.learn.systems import cholesky, inverse


def matrix(size):
    """Symmetric, positive definite, with a condition number of about 30."""
    random = np.random.default_rng(size)
    tall = random.normal(size=(2 * size, size))
    return tall.T @ tall / size


@pytest.mark.parametrize("size", [1, 3, 320, 321, 352, 361])
def test_factors_are_those_of_numpy(size):
    given = matrix(size)
    columns = np.random.default_rng(0).normal(size=(size, 2))
    with jax.enable_x64(True):
        factor = jax.jit(cholesky)(jnp.asarray(given), jnp.asarray(columns))
    lower = np.linalg.cholesky(given)
    # Sums of up to 361 products of numbers of size 1, times the condition number.
    np.testing.assert_allclose(factor.upper, lower.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(factor.solved, np.linalg.solve(lower, columns), rtol=0, atol=1e-12)
    np.testing.assert_allclose(factor.pivot, np.diag(lower).min() ** 2 / np.diag(given).max(), rtol=1e-12)


@pytest.mark.parametrize("size", [10, 361])
def test_a_matrix_that_is_not_positive_definite_gives_nan(size):
    given = matrix(size) - 3 * np.eye(size)
    with jax.enable_x64(True):
        assert np.isnan(jax.jit(cholesky)(jnp.asarray(given), jnp.zeros((size, 0))).upper).any()


@pytest.mark.parametrize("size", [3, 128, 129, 361])
def test_inverses_are_those_of_numpy(size):
    given = matrix(size)
    with jax.enable_x64(True):
        found = jax.jit(inverse)(jnp.asarray(given))
    np.testing.assert_allclose(found, np.linalg.inv(given), rtol=0, atol=1e-11)  # elements of up to 10
