"""Learners as estimators of scikit-learn: its own checks, and that they learn what the learners learn."""

import pickle
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import jaxgen as jg
from jaxgen import datasets, learn, resample
from jaxgen.sklearn import Classifier, Regressor

RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(60, 3))
Y = X @ [1.0, 2.0, 0.0] + 0.5 * RANDOM.normal(size=60)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-1, 1])]
KEY = jax.random.key(0)

CHECKED = [Regressor(), Classifier(learn.LeastSquares(minimum_norm=True))]
EVERY_CHECK: Any = estimator_checks_generator(Classifier())
OF_PROBABILITIES = [
    check
    for _, check in EVERY_CHECK
    if any(
        word in check.func.__name__
        for word in ("classifiers_train", "sample_weight_equivalence", "methods", "unfitted")
    )
]
"""Checks that look at `predict_proba`. The default compiles long; a classifier by scores goes through all of them."""


@pytest.mark.filterwarnings("ignore")  # scikit-learn's checks say themselves which warnings are wrong
@parametrize_with_checks(CHECKED)
def test_checks_of_scikit_learn(estimator, check):
    with jax.numpy_dtype_promotion("standard"):
        check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", OF_PROBABILITIES, ids=lambda check: check.func.__name__)
def test_checks_of_scikit_learn_of_probabilities(check):
    with jax.numpy_dtype_promotion("standard"):
        check(Classifier())


def test_a_regressor_is_the_learner_that_assess_trains():
    data = datasets.from_arrays(X, Y)
    plan = resample.k_fold(KEY, 60, 4)
    scores = cross_val_score(Regressor(), X, Y, cv=plan, scoring="neg_mean_squared_error")
    losses = jg.assess(KEY, learn.LeastSquares(minimum_norm=True), data, plan)
    np.testing.assert_allclose(-scores, losses.g, rtol=1e-9)  # two solutions in double precision
    by_sklearn = cross_val_score(LinearRegression(), X, Y, cv=plan, scoring="neg_mean_squared_error")
    np.testing.assert_allclose(scores, by_sklearn, rtol=1e-9)


def test_a_classifier_is_the_learner_it_holds():
    made = Classifier(learn.Logistic(ridge=1.0)).fit(X, LABELS)
    other = LogisticRegression(C=1.0, tol=1e-12, max_iter=1000).fit(X, LABELS)
    np.testing.assert_allclose(made.predict_proba(X), other.predict_proba(X), atol=1e-5)  # lbfgs stops there
    assert made.classes_.tolist() == ["high", "low", "middle"]
    assert (made.predict(X) == other.predict(X)).all()
    assert made.score(X, LABELS) == other.score(X, LABELS)
    assert not hasattr(made, "decision_function")
    scores = Classifier(learn.LeastSquares()).fit(X, LABELS)
    assert not hasattr(scores, "predict_proba")
    assert (scores.classes_[scores.decision_function(X).argmax(1)] == scores.predict(X)).all()


def test_counts_are_repeated_cases():
    w = RANDOM.integers(0, 4, 60)
    weighted = Regressor().fit(X, Y, w)
    np.testing.assert_allclose(weighted.predict(X), Regressor().fit(np.repeat(X, w, 0), np.repeat(Y, w)).predict(X))
    np.testing.assert_allclose(weighted.predict(X), LinearRegression().fit(X, Y, w).predict(X), rtol=1e-9)


def test_several_outputs_are_predicted_together():
    both = np.stack([Y, -2 * Y], 1)
    found = Regressor().fit(X, both).predict(X)
    np.testing.assert_allclose(found, LinearRegression().fit(X, both).predict(X), rtol=1e-9)


def test_settings_of_the_learner_are_searched_by_name():
    grid = {"regressor__learner__ridge": [0.1, 10.0, 1000.0]}
    search = GridSearchCV(make_pipeline(StandardScaler(), Regressor(learn.LeastSquares())), grid, cv=4).fit(X, Y)
    alphas = {"ridge__alpha": [0.1, 10.0, 1000.0]}
    other = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), alphas, cv=4).fit(X, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], rtol=1e-9)
    nested = Regressor(learn.Normalised(learn.LeastSquares()))
    assert nested.get_params()["learner__base__ridge"] == 0.0
    assert nested.set_params(learner__base__ridge=2.0).learner == learn.Normalised(learn.LeastSquares(ridge=2.0))
    assert Regressor().set_params(learner__ridge=3.0).learner == learn.LeastSquares(ridge=3.0, minimum_norm=True)
    learners = GridSearchCV(Regressor(), {"learner": [learn.Mean(), learn.LeastSquares()]}, cv=3).fit(X, Y)
    assert learners.best_params_ == {"learner": learn.LeastSquares()}


def test_fitted_estimators_are_pickled_and_cloned():
    made = Regressor(learn.LeastSquares(ridge=1.0), random_state=np.random.RandomState(0)).fit(X, Y)
    copied = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(copied.predict(X), made.predict(X))
    assert clone(made).learner == made.learner
    assert not hasattr(clone(made), "params_")
    made.set_params(learner=learn.Mean()).fit(X, Y)
    np.testing.assert_allclose(made.predict(X), Y.mean())


@dataclass(frozen=True)
class Draw:
    """Predicts a random number, whatever comes."""

    def fit(self, key, x, y, w):
        return jax.random.normal(key)

    def predict(self, params, x):
        return params + 0 * x[:, :1]


def test_the_seed_decides_what_is_drawn():
    def drawn(state):
        return float(Regressor(Draw(), random_state=state).fit(X, Y).predict(X[:1])[0])

    assert drawn(1) == drawn(1) != drawn(2)
    with jax.enable_x64(True):
        assert drawn(5) == float(jax.random.normal(jax.random.key(5)))  # the key that `assess` would be given
    assert drawn(np.random.RandomState(3)) == drawn(np.random.RandomState(3))
    assert drawn(None) != drawn(None)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: Regressor("linear").fit(X, Y), TypeError, "expected Regressor to hold a learner with the methods"),
        (lambda: Regressor(learn.Mean).fit(X, Y), TypeError, "write Mean()"),
        (lambda: Regressor(learn.Logistic(ridge=0.0)).fit(X, Y), ValueError, "use jaxgen.sklearn.Classifier"),
        (lambda: Regressor(Ridge()).fit(X, Y), TypeError, "use that one itself"),
        (lambda: Regressor(learn.External(RandomForestRegressor())).fit(X, Y), TypeError, "use that one itself"),
        (lambda: Regressor().fit(X, Y, np.full(60, 0.5)), ValueError, "expected sample_weight as whole numbers"),
        (lambda: Regressor().fit(X, Y, -np.ones(60)), ValueError, "got -1"),
        (lambda: Regressor().fit(X, Y, np.zeros(60)), ValueError, "zero"),
        (lambda: Regressor(learn.LeastSquares()).fit(X[:3], Y[:3]), ValueError, "expected at least 4 training cases"),
        (lambda: Regressor(learn.LeastSquares()).fit(X[:, [0, 0]], Y), ValueError, "are linearly dependent"),
        (lambda: Regressor(learn.LeastSquares(ridge=-1.0)).fit(X, Y), ValueError, "expected the ridge"),
        (lambda: Regressor().set_params(learner__rigde=1.0), ValueError, "choose among ridge, intercept"),
        (lambda: Regressor().set_params(lerner=1.0), ValueError, "lerner"),
        (lambda: Classifier().fit(X, np.zeros(60)), ValueError, "expected at least two classes"),
        (lambda: Classifier().fit(X, Y), ValueError, "Unknown label type"),
        (lambda: Classifier(learn.External(LogisticRegression())).fit(X, LABELS), TypeError, "use that one itself"),
    ],
)
def test_misuse_gets_one_sentence(call, kind, said, own_messages):
    with pytest.raises(kind) as error:
        call()
    assert said in str(error.value)
