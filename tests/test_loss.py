"""Per-case losses against scikit-learn."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics

from jaxgen import loss

pytestmark = pytest.mark.one_device


def cases(k, dtype):
    """Classes, one-hot targets and probabilities of 50 cases."""
    random = np.random.default_rng(k)
    classes = random.integers(max(k, 2), size=50)
    probabilities = random.dirichlet(np.ones(max(k, 2)), size=50)
    one_hot = np.eye(max(k, 2))[classes]
    if k == 1:
        return classes, jnp.asarray(one_hot[:, 1:], dtype), jnp.asarray(probabilities[:, 1:], dtype), probabilities
    return classes, jnp.asarray(one_hot, dtype), jnp.asarray(probabilities, dtype), probabilities


@pytest.mark.parametrize("k", [1, 2, 5])
def test_classification_losses_are_those_of_scikit_learn(k, dtype):
    """The tolerance is a few roundings of the precision."""
    classes, y, p, probabilities = cases(k, dtype)
    eps = 20 * np.finfo(dtype).eps
    assert np.isclose(np.mean(loss.cross_entropy(y, p)), metrics.log_loss(classes, probabilities, labels=range(max(k, 2))), rtol=eps)
    assert np.isclose(np.mean(loss.zero_one(y, p)), metrics.zero_one_loss(classes, probabilities.argmax(1)), rtol=eps)
    if k <= 2:
        margin = 2 * probabilities[:, 1] - 1
        assert np.isclose(np.mean(loss.hinge(y[:, -1:], p[:, -1:])), metrics.hinge_loss(2 * classes - 1, margin), rtol=eps)


def test_regression_losses_are_those_of_scikit_learn(dtype):
    random = np.random.default_rng(0)
    y, p = random.normal(size=(2, 30, 3))
    eps = 20 * np.finfo(dtype).eps
    assert np.isclose(np.mean(loss.squared(jnp.asarray(y, dtype), jnp.asarray(p, dtype))), 3 * metrics.mean_squared_error(y, p), rtol=eps)
    assert np.isclose(np.mean(loss.absolute(jnp.asarray(y, dtype), jnp.asarray(p, dtype))), 3 * metrics.mean_absolute_error(y, p), rtol=eps)


@pytest.mark.parametrize("name", ["squared", "absolute", "zero_one", "cross_entropy", "hinge"])
@pytest.mark.parametrize("k", [1, 3])
def test_what_is_not_finite_stays_so(name, k, dtype):
    """A diverged network must not look like a right or wrong class."""
    y, p = jnp.ones((1, k), dtype), jnp.full((1, k), jnp.nan, dtype)
    assert np.isnan(getattr(loss, name)(y, p)).all()


def test_a_certain_and_wrong_class_costs_much_but_not_everything(dtype):
    y = jnp.asarray([[0, 1]], dtype)
    assert 80 < float(loss.cross_entropy(y, 1 - y)[0]) < 1000
