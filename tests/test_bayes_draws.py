"""The kept states of one training set, by name, and what ArviZ makes of them."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgen import datasets, learn
from jaxgen.learn.bayes.convergence import split_rhat

KEY = jax.random.key(5)
RANDOM = np.random.default_rng(5)
X = 100 + 10 * RANDOM.normal(size=(30, 2))
DATA = datasets.from_arrays(X, X[:, 0] * 3 + RANDOM.normal(size=30), ["a", "b"])
CLASSES = datasets.from_arrays(X, np.array(["low", "high", "none"])[np.arange(30) % 3])
SHORT = learn.Bayes(learn.MLP((3,)), passes=120, steps=6, window=2, blocks=1, chains=2)
WRAPPED = learn.Normalised(SHORT)
WEIGHTS = np.where(np.arange(30) < 24, 1, 0)


def fitted(learner, data):
    """As `posterior_draws` fits it."""
    arrays = (jnp.asarray(a, jnp.float32) for a in (data.x, data.y, WEIGHTS))
    return jax.jit(learner.fit)(KEY, *arrays)


def test_averages_of_the_draws_are_what_the_learner_predicts_and_tells():
    draws = learn.posterior_draws(KEY, WRAPPED, DATA, WEIGHTS, at=X[:4])
    params = fitted(WRAPPED, DATA)
    kept = SHORT.trajectories[3]
    shapes = {
        "width_input_hidden": (2, kept),
        "width_hidden_bias": (2, kept),
        "width_hidden_output": (2, kept),
        "relevance_input_hidden": (2, kept, 2),
        "noise": (2, kept, 1),
        "prediction": (2, kept, 4, 1),
    }
    assert {name: each.shape for name, each in draws.values.items()} == shapes
    at = jnp.asarray(X[:4], jnp.float32)
    mean = draws.values["prediction"].mean((0, 1))
    np.testing.assert_allclose(mean, WRAPPED.predict(params, at), rtol=1e-4)  # rounding of single precision
    told = WRAPPED.diagnose(params)
    relevances = draws.values["relevance_input_hidden"]
    np.testing.assert_allclose(relevances.mean((0, 1)), told["relevance_input_hidden"], rtol=1e-4)
    noise = draws.values["noise"].mean((0, 1)) / np.asarray(params.y_scale)
    np.testing.assert_allclose(noise, told["noise"], rtol=1e-4)
    np.testing.assert_allclose(draws.rejected, told["rejected"], rtol=1e-6)
    assert draws.coordinates == {"input": ("a", "b"), "output": ("y",), "case": (0, 1, 2, 3)}
    assert draws.failure == ""


def test_cases_of_weight_0_and_cases_not_asked_for_are_absent():
    changed = datasets.from_arrays(np.where(WEIGHTS[:, None], X, 7.0), DATA.y[:, 0], ["a", "b"])
    first, second = (learn.posterior_draws(KEY, WRAPPED, data, WEIGHTS) for data in (DATA, changed))
    assert "prediction" not in first.values
    assert "case" not in first.coordinates
    np.testing.assert_array_equal(first.values["noise"], second.values["noise"])


def test_classes_have_probabilities_and_no_noise():
    learner = learn.Normalised(learn.Bayes(**{**vars(SHORT), "objective": "softmax_cross_entropy"}))
    draws = learn.posterior_draws(KEY, learner, CLASSES, at=X[:3])
    assert "noise" not in draws.values
    np.testing.assert_allclose(draws.values["prediction"].sum(-1), 1, rtol=1e-5)
    assert draws.coordinates["output"] == CLASSES.classes


def test_chains_that_went_wrong_say_why():
    exact = learn.Prior(noise=learn.Width(1e-7))  # targets that no such network can give
    stuck = learn.Bayes(**{**vars(SHORT), "prior": exact, "step": 3.0})
    assert "wider noise" in learn.posterior_draws(KEY, stuck, DATA).failure


def test_arviz_has_chains_and_draws():
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed; pip install 'jaxgen[arviz]'")
    draws = learn.posterior_draws(KEY, WRAPPED, DATA, WEIGHTS, at=X[:4])
    found = draws.to_arviz()
    posterior = found["posterior"]
    assert posterior["prediction"].dims == ("chain", "draw", "case", "output")
    assert posterior["relevance_input_hidden"].dims == ("chain", "draw", "input")
    second = posterior["relevance_input_hidden"].sel(input="b")
    np.testing.assert_array_equal(second, draws.values["relevance_input_hidden"][..., 1])
    np.testing.assert_allclose(found["sample_stats"]["step_size"][:, 0], draws.step)
    ours = split_rhat(jnp.asarray(draws.values["noise"][..., 0], jnp.float32))
    np.testing.assert_allclose(arviz.rhat(found)["noise"], [ours], rtol=1e-4)  # single precision


def test_without_arviz_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    draws = learn.posterior_draws(KEY, WRAPPED, DATA)
    with pytest.raises(ImportError, match=r"expected ArviZ for to_arviz, .* pip install 'jaxgen\[arviz\]'"):
        draws.to_arviz()


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"learner": learn.LeastSquares()}, "expected a Bayes, also inside Normalised or Scaled, got LeastSquares"),
        ({"learner": learn.Ensemble(SHORT)}, "expected a Bayes, also inside Normalised or Scaled, got Ensemble"),
        ({"data": X}, "expected data as jaxgen.Data, got an array of shape [30, 2]; make it with"),
        ({"train": np.ones(7)}, "expected a weight for each of the 30 cases, got an array of shape [7]; give a row"),
        ({"train": np.zeros(30)}, "expected every row of the plan to have training cases"),
        ({"at": X[:, :1]}, "expected at as finite cases [m, 2], one column per input, got an array of shape [30, 1]"),
        ({"at": "all"}, "expected at as finite cases [m, 2], one column per input, got 'all'; give for example"),
        ({"key": 3}, "expected one random key, got the integer 3; write jax.random.key(3)"),
    ],
)
def test_what_does_not_fit_is_refused(changed, message):
    given = {"key": KEY, "learner": WRAPPED, "data": DATA, **changed}
    with pytest.raises((TypeError, ValueError)) as caught:
        learn.posterior_draws(**given)
    assert message in str(caught.value)
