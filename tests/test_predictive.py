"""Predictive distributions: mixtures against SciPy, which learners have one, and what losses make of them."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxgen as jg
from jaxgen import learn, loss, resample

RANDOM = np.random.default_rng(8)
MEAN, DEVIATION = RANDOM.normal(size=(3, 5, 2)), RANDOM.uniform(0.2, 2, size=(3, 5, 2))
Y = RANDOM.normal(size=(5, 2))
MIXTURE = learn.Mixture(jnp.asarray(MEAN, jnp.float32), jnp.asarray(DEVIATION, jnp.float32))
KEY = jax.random.key(2)


@dataclass(frozen=True)
class Known:
    """Believes in a normal law around twice the input, whose deviation it is told."""

    deviation: float = 0.5

    def fit(self, key, x, y, w):
        return jnp.zeros(())

    def predict(self, params, x):
        return 2 * x

    def predictive(self, params, x):
        return learn.Mixture(2 * x[None], jnp.full((1, *x.shape), self.deviation, x.dtype))


def known(n=2000, scale=1.0, origin=0.0):
    x = RANDOM.normal(size=(n, 1))
    y = 2 * x + 0.5 * RANDOM.normal(size=(n, 1))
    return jg.datasets.from_arrays(x * scale, y * scale + origin)


def plan(n):
    return resample.leave_out(KEY, n, 0.5, 2)


def test_densities_and_probabilities_are_those_of_scipy():
    laws = stats.norm(MEAN, DEVIATION)
    eps = 20 * np.finfo(np.float32).eps
    np.testing.assert_allclose(
        loss.log_score(jnp.asarray(Y, jnp.float32), MIXTURE), -np.log(laws.pdf(Y).prod(-1).mean(0)), rtol=eps
    )
    np.testing.assert_allclose(MIXTURE.probability_below(jnp.asarray(Y, jnp.float32)), laws.cdf(Y).mean(0), rtol=eps)


@pytest.mark.parametrize("probability", [0.001, 0.4, 0.95])
def test_quantiles_are_where_so_much_lies_below(probability):
    found = np.asarray(MIXTURE.quantile(probability), float)
    np.testing.assert_allclose(stats.norm(MEAN, DEVIATION).cdf(found).mean(0), probability, rtol=1e-5)  # rounding


def test_intervals_of_a_right_belief_cover_as_often_as_they_say():
    """A binomial limit of 5 deviations; the width of a normal law; and a belief that is too narrow is noticed."""
    data = known()
    for deviation, level in ((0.5, 0.9), (0.5, 0.5), (0.25, 0.9)):
        missed = jg.assess(KEY, Known(deviation), data, plan(data.n), loss=loss.Missed(level)).values.mean()
        coverage = 1 - 2 * stats.norm.sf(stats.norm.isf((1 - level) / 2) * deviation / 0.5)
        assert abs(1 - missed - coverage) < 5 * np.sqrt(coverage * (1 - coverage) / data.n)
    width = jg.assess(KEY, Known(), data, plan(data.n), loss=loss.IntervalWidth(0.9)).values
    np.testing.assert_allclose(width, 2 * 0.5 * stats.norm.isf(0.05), rtol=1e-5)  # rounding


def test_the_score_of_a_mixture_is_in_the_targets_units_whatever_they_are():
    """Of early-stopped networks, whose units the engine may choose, in single precision."""
    learner = learn.Normalised(learn.EarlyStopped(learn.Descent(learn.MLP((3,)), steps=60), folds=2))
    x, y = (a.copy() for a in (known(60).x, known(60).y))
    scores = [
        jg.assess(KEY, learner, jg.datasets.from_arrays(x, y * unit + origin), plan(60), loss=loss.log_score).values
        for unit, origin in ((1.0, 0.0), (1024.0, 2.0**20))
    ]
    np.testing.assert_allclose(scores[1] - np.log(1024), scores[0], atol=2e-3)  # rounding of 60 steps


def test_members_are_mixed_and_have_the_noise_of_their_validation_cases():
    data = known(60)
    x, y = (jnp.asarray(a, jnp.float32) for a in (data.x, data.y))
    stopped = learn.EarlyStopped(learn.Descent(learn.MLP((3,)), steps=60), folds=3)
    fitted = stopped.fit(KEY, x, y, jnp.ones(60))
    found = stopped.predictive(fitted, x)
    np.testing.assert_allclose(jnp.mean(found.mean, axis=0), stopped.predict(fitted, x), rtol=1e-5)  # rounding
    np.testing.assert_allclose(found.deviation[:, 7, 0] ** 2, np.nanmin(fitted.errors, axis=1), rtol=1e-5)
    both = learn.Ensemble(stopped, members=2)
    assert both.predictive(both.fit(KEY, x, y, jnp.ones(60)), x).mean.shape == (6, 60, 1)


def test_bayes_believes_in_its_networks_with_their_noise():
    data = known(60)
    x, y = (jnp.asarray(a, jnp.float32) for a in (data.x, data.y))
    bayes = learn.Normalised(learn.Bayes(learn.MLP((2,)), passes=600, steps=10, window=2, blocks=1))
    fitted = bayes.fit(KEY, x, y, jnp.ones(60))
    found = bayes.predictive(fitted, x)
    np.testing.assert_allclose(jnp.mean(found.mean, axis=0), bayes.predict(fitted, x), rtol=1e-4)  # rounding
    noise = fitted.base.states.scales.noise[0, :, 0]
    np.testing.assert_allclose(found.deviation[:, 3, 0], fitted.y_scale / np.sqrt(noise), rtol=1e-5)


def test_the_score_of_classes_is_the_cross_entropy():
    data = jg.datasets.breast_cancer()
    data = jg.Data(data.x[:80, :3], data.y[:80], data.names[:3], data.target, data.task, data.classes)
    learner = learn.Normalised(learn.Logistic(ridge=1.0))
    scores = [
        jg.assess(KEY, learner, data, plan(80), loss=each).values for each in (loss.log_score, loss.cross_entropy)
    ]
    # Rows share their work for the second only, and end at the same minimum within 1e-11.
    np.testing.assert_allclose(*scores, rtol=1e-9)


@pytest.mark.parametrize("learner", [learn.LeastSquares(), learn.Ensemble(learn.Descent(), members=2)])
def test_learners_without_a_distribution_are_refused(learner):
    with pytest.raises(
        ValueError, match=r"expected a learner with a predictive distribution, got .*; use learn\.Bayes"
    ):
        jg.assess(KEY, learner, known(60), plan(60), loss=loss.log_score)


def test_what_is_no_mixture_is_refused(own_messages):
    class Wrong(Known):
        def predictive(self, params, x):
            return 2 * x

    with pytest.raises(ValueError, match=r"expected predictive of .* to return learn.Mixture\(mean, deviation\), each"):
        jg.assess(KEY, Wrong(), known(60), plan(60), loss=loss.log_score)


@pytest.mark.parametrize("level", [90, 0, 1, "0.9", None])
@pytest.mark.parametrize("kind", [loss.Missed, loss.IntervalWidth])
def test_a_level_that_is_no_share_is_refused(kind, level, own_messages):
    """A level of 90 would miss no case."""
    with pytest.raises(ValueError, match="the level of a predictive interval.*write 0.9 for 90 %"):
        kind(level)


@pytest.mark.parametrize("kind", [loss.Missed, loss.IntervalWidth])
def test_intervals_of_what_has_none_are_refused(kind, own_messages):
    with pytest.raises(ValueError, match="expected a predictive distribution of numbers.*use log_score for classes"):
        kind()(jnp.ones((3, 1)), jnp.ones((3, 1)))
