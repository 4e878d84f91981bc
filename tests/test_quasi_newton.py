"""L-BFGS that brings similar problems near their minima."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from jaxgen.learn.quasi_newton import nearer

RANDOM = np.random.default_rng(0)
ROOT = RANDOM.normal(size=(12, 12))
MATRIX = ROOT @ ROOT.T + np.eye(12)
LINEAR = RANDOM.normal(size=(3, 4))


def quadratic(point):
    return (jnp.asarray(MATRIX) @ point.reshape(12)).reshape(3, 4) - LINEAR


def by(inverse):
    return lambda gradient: (jnp.asarray(inverse) @ gradient.reshape(12)).reshape(3, 4)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def counted(gradient):
    """A gradient, and a list that grows with each time it is computed."""
    calls = []

    def counting(point):
        jax.debug.callback(lambda: calls.append(1))
        return gradient(point)

    return counting, calls


def test_a_quadratic_with_its_inverse_takes_two_gradients():
    """Of closed form; 1e-12 is rounding times the condition number, 60."""
    gradient, calls = counted(quadratic)
    found = nearer(gradient, by(np.linalg.inv(MATRIX)), jnp.ones((3, 4)), jnp.zeros(()), 1e-8, 50)
    jax.effects_barrier()
    assert len(calls) == 2
    np.testing.assert_allclose(found.reshape(12), np.linalg.solve(MATRIX, LINEAR.reshape(12)), atol=1e-12)


def test_it_ends_where_it_is_told_to():
    """At a part of the gradient's length in the metric of the preconditioner, or after so many gradients."""
    inverse = np.diag(1 / np.diag(MATRIX))

    def length(point):
        gradient = np.asarray(quadratic(point)).reshape(12)
        return np.sqrt(gradient @ inverse @ gradient)

    start, nothing = jnp.ones((3, 4)), jnp.zeros(())
    lengths = [length(nearer(quadratic, by(inverse), start, nothing, part, 500)) for part in (0.1, 1e-3, 1e-6)]
    assert all(got <= part * length(start) for got, part in zip(lengths, (0.1, 1e-3, 1e-6), strict=True))
    assert lengths[0] > 1e-3 * length(start) > lengths[1] > 1e-6 * length(start)
    gradient, calls = counted(quadratic)
    nearer(gradient, by(inverse), start, nothing, 1e-6, 7)
    jax.effects_barrier()
    assert len(calls) == 7


def cases():
    random = np.random.default_rng(1)
    x = random.normal(size=(4, 90))
    return x, np.eye(3)[(2 * x[:3] + random.gumbel(size=(3, 90))).argmax(0)].T


def test_softmax_regression_ends_where_scipy_ends():
    """SciPy's BFGS stops at a gradient of 1e-9, of curvatures of 0.5 and more: 1e-8 in a coefficient."""
    x, y = cases()

    def cost(flat):
        s = flat.reshape(3, 4)
        z = s @ x
        return (logsumexp(z, axis=0) - (y * z).sum(0)).sum() + (s**2).sum() / 4, (
            (softmax(z, axis=0) - y) @ x.T + s / 2
        ).reshape(12)

    want = minimize(cost, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-9}).x.reshape(3, 4)

    def gradient(s):
        return (jax.nn.softmax(s @ x, axis=0) - y) @ x.T + s / 2

    found = nearer(gradient, lambda g: g / 20, jnp.zeros((3, 4)), jnp.zeros(()), 1e-10, 500)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-8)


def test_steps_that_go_too_far_are_shortened():
    """The sum of exp(x) + exp(-x), whose first step from 3 by an inverse of 1 would go to -17, and the next further."""
    found = nearer(lambda s: 2 * jnp.sinh(s), lambda g: g, jnp.full((3, 4), 3.0), jnp.zeros(()), 1e-10, 100)
    np.testing.assert_allclose(found, 0, atol=1e-8)


@pytest.mark.parametrize(
    "gradient", [lambda s: -s, lambda s: jnp.where(s > 0.5, s, jnp.nan)], ids=["concave", "not finite"]
)
def test_the_start_comes_back_where_nothing_is_gained(gradient):
    start = jnp.ones((3, 4))
    np.testing.assert_array_equal(nearer(gradient, lambda g: 0.9 * g, start, jnp.zeros(()), 1e-3, 20), start)


def test_a_gradient_of_rounding_alone_ends_it():
    """A start whose gradient is no longer than rounding, or of a problem that is not to be solved, stays as it is."""
    start = jnp.ones((3, 4))
    for rounding in (1.001 * np.linalg.norm(quadratic(start)), np.inf):
        np.testing.assert_array_equal(nearer(quadratic, by(np.eye(12)), start, jnp.asarray(rounding), 0.0, 9), start)


def test_rows_that_run_together_end_where_each_ends_alone():
    """The same operations for each row; rounding of sums in another order grows over some 25 steps, which end 1e-6
    from the minimum: 1e-8.
    """
    scales = jnp.asarray([1.0, 30.0, 0.01])

    def one(scale):
        return nearer(
            lambda s: scale * quadratic(s), by(np.diag(1 / np.diag(MATRIX))), jnp.ones((3, 4)), 0 * scale, 1e-6, 60
        )

    np.testing.assert_allclose(jax.vmap(one)(scales), [one(scale) for scale in scales], rtol=0, atol=1e-8)
