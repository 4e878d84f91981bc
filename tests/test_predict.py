"""What trained rows predict for new cases: the rows of `assess`, and predictions that another program makes too."""

import re
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hostile import STRANGERS, refused
from sklearn.linear_model import LinearRegression

from jaxgen import Data, Predicted, assess, learn, predict, resample
from jaxgen.engine import program
from jaxgen.types import memory

KEY, N, M = jax.random.key(0), 40, 7
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 3))
Y = X @ [[1.0], [-2.0], [0.5]] + 0.5 * RANDOM.normal(size=(N, 1))
NEW = RANDOM.normal(size=(M, 3))
DATA = Data(X, Y, ("a", "b", "c"), "t")
NETWORK = learn.Normalised(learn.Descent(learn.MLP((3,)), steps=50))
PLANS = {
    "splits": resample.leave_out(KEY, N, 0.25, 6),
    "halves": resample.leave_out(KEY, N, 0.5, 6),
    "one out": resample.leave_one_out(N),
    "bootstrap": resample.bootstrap(KEY, N, 9),
}


@pytest.mark.devices
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_predictions_are_those_of_scikit_learn(plan):
    predicted = predict(KEY, learn.LeastSquares(), DATA, plan, NEW)
    assert (predicted.new.shape, predicted.cases.shape) == ((plan.resamples, M, 1), (plan.resamples, N, 1))
    for row, weights in enumerate(plan.train):
        model = LinearRegression().fit(X, Y, weights)
        # two solutions of least squares in double precision
        np.testing.assert_allclose(predicted.new[row], model.predict(NEW), atol=1e-10)
        np.testing.assert_allclose(predicted.cases[row], model.predict(X), atol=1e-10)


STOPPED = learn.Normalised(learn.EarlyStopped(learn.Descent(learn.MLP((2,)), steps=20), folds=2))


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        (learn.Neighbours(3), "splits"),
        (learn.Neighbours(3), "bootstrap"),
        (NETWORK, "splits"),
        pytest.param(NETWORK, "one out", marks=pytest.mark.slow),
        pytest.param(NETWORK, "bootstrap", marks=pytest.mark.slow),
        pytest.param(STOPPED, "splits", marks=pytest.mark.slow),
        pytest.param(learn.Normalised(learn.LeastSquares(ridge=1.0)), "one out", marks=pytest.mark.slow),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_rows_are_those_of_assess(learner, name):
    """Also where rows share work, as those of neighbours do; and a new case that is a case of the data gets what it
    gets.
    """
    losses = assess(KEY, learner, DATA, PLANS[name], keep="predictions")
    predicted = predict(KEY, learner, DATA, PLANS[name], X[::-1])
    # single precision of 50 steps, in programs that are put together differently
    np.testing.assert_allclose(predicted.cases, losses.predictions, atol=2e-5)
    np.testing.assert_allclose(predicted.new, predicted.cases[:, ::-1], atol=2e-5)
    assert (predicted.learner, predicted.target, predicted.task) == (losses.learner, "t", "regression")
    assert not predicted.failed.any()


def test_neither_chunks_nor_other_new_cases_change_a_prediction():
    whole = predict(KEY, NETWORK, DATA, PLANS["splits"], NEW)
    np.testing.assert_allclose(predict(KEY, NETWORK, DATA, PLANS["splits"], NEW, chunk=2).new, whole.new, atol=2e-5)
    far = np.concatenate([NEW[2:3], 1e3 * NEW[1:]])  # as many, so that one program does for both
    np.testing.assert_allclose(predict(KEY, NETWORK, DATA, PLANS["splits"], far).new[:, 0], whole.new[:, 2], atol=2e-5)


def test_similar_numbers_of_new_cases_share_a_program():
    """1 to 8, and 17 to 18; each predicts what all of them together do, which another program may round otherwise."""
    many, sets = RANDOM.normal(size=(18, 3)), Data(np.stack([X, X]), np.stack([Y, -Y]), DATA.names)
    for own, data, new in (
        (learn.LeastSquares(), DATA, many),
        (learn.Mean(), sets, np.stack([many, -many])),
    ):
        whole = predict(KEY, own, data, PLANS["splits"], new)
        for sizes in ((1, 7, 8), (17, 18)):
            misses = set()
            for m in sizes:
                found = predict(KEY, own, data, PLANS["splits"], new[..., :m, :])
                misses.add(program._compiled.cache_info().misses)
                assert found.new.shape == (*whole.new.shape[:-2], m, 1)
                np.testing.assert_allclose(found.new, whole.new[..., :m, :], rtol=1e-5, atol=1e-5)
                np.testing.assert_array_equal(found.cases, whole.cases)
            assert len(misses) == 1


def test_a_lazy_plan_is_drawn():
    lazy = resample.bootstrap(KEY, N, 9, lazy=True)
    drawn = resample.from_weights(lazy.train, lazy.test)
    got, want = (predict(KEY, learn.LeastSquares(), DATA, plan, NEW) for plan in (lazy, drawn))
    np.testing.assert_array_equal(got.new, want.new)


def test_data_sets_have_their_own_new_cases_or_share_them():
    sets = Data(np.stack([X, X[::-1]]), np.stack([Y, 2 * Y]), DATA.names)
    plan = PLANS["splits"]
    for new in (NEW, np.stack([NEW, -NEW])):
        both = predict(KEY, learn.LeastSquares(), sets, plan, new)
        assert both.new.shape == (2, 6, M, 1)
        for q, one in enumerate(both):
            alone = predict(KEY, learn.LeastSquares(), sets[q], plan, new if new.ndim == 2 else new[q])
            np.testing.assert_allclose(one.new, alone.new, atol=1e-10)
            np.testing.assert_array_equal(one.y, sets[q].y)
    of_plans = predict(KEY, learn.LeastSquares(), DATA, resample.leave_out(KEY, N, 0.25, 6, sets=3), NEW)
    assert (of_plans.new.shape, of_plans.y.shape, of_plans[1].plan.shape) == ((3, 6, M, 1), (3, N, 1), (6, N))


def test_new_cases_are_moved_to_the_units_of_the_run():
    """Offsets of which single precision would leave nothing; what is left of their digits in double precision, and the
    rounding of single precision.
    """
    far = replace(DATA, x=X + 1e7, y=Y - 1e8)
    plain = predict(KEY, NETWORK, DATA, PLANS["splits"], NEW)
    moved = predict(KEY, NETWORK, far, PLANS["splits"], NEW + 1e7)
    np.testing.assert_allclose(moved.new + 1e8, plain.new, atol=1e-3)
    np.testing.assert_allclose(moved.cases + 1e8, plain.cases, atol=1e-3)


def test_columns_are_found_by_their_names():
    plain = predict(KEY, learn.LeastSquares(), DATA, PLANS["splits"], NEW)
    frame = pd.DataFrame(NEW, columns=["a", "b", "c"])[["c", "a", "b"]].assign(t="not known")
    for new in (frame, Data(NEW, np.zeros((M, 1)), DATA.names), NEW.tolist(), NEW.astype(np.float32).astype(float)):
        got = predict(KEY, learn.LeastSquares(), DATA, PLANS["splits"], new)
        np.testing.assert_allclose(got.new, plain.new, atol=1e-5)


@dataclass(frozen=True)
class Reciprocal:
    """Predicts the mean divided by the first input; fails where a training case has a large target."""

    failures = ("a large target",)

    def fit(self, key, x, y, w):
        return w @ jnp.where(w[:, None] > 0, y, 0) / w.sum(), (w * jnp.where(y[:, 0] > 50, 1, 0)).sum() > 0

    def predict(self, params, x):
        return params[0][None] / jnp.where(x[:, :1] == 0, 0, jnp.maximum(jnp.abs(x[:, :1]), 0.1))

    def failure(self, params):
        return params[1].astype(int)


@pytest.mark.usefixtures("own_messages")
def test_failed_rows_are_marked():
    data = replace(DATA, y=np.where(np.arange(N)[:, None] == 3, 100.0, Y))
    plan = PLANS["one out"]
    predicted = predict(KEY, Reciprocal(), data, plan, np.ones((2, 3)))
    np.testing.assert_array_equal(predicted.failed, np.arange(N) != 3)
    assert "a large target" in refused(predicted.checked)
    assert predicted.without_failed().new.shape == (1, 2, 1)
    assert "39 failed rows left out" in repr(predicted.without_failed())
    lost = predict(KEY, Reciprocal(), DATA, plan, np.zeros((2, 3)))
    assert lost.failed.all()
    assert "predictions for new cases are not finite" in refused(lost.checked)
    assert "a row that went well" in refused(lost.without_failed)


MISTAKES = {
    "one case without its axis": (NEW[0], "inputs of new cases"),
    "a column too few": (NEW[:, :2], r"\[M, 3\]"),
    "no case": (NEW[:0], "at least one"),
    "sets of one data set": (np.stack([NEW] * 2), r"\[M, 3\], as those of the data"),
    "NaN": (np.where(NEW[2, 1] == NEW, np.nan, NEW), r"column 1 \('b'\), new case 2"),
    "infinite": (np.where(NEW[2, 1] == NEW, np.inf, NEW), "finite inputs"),
    "masked": (np.ma.masked_array(NEW, NEW > 1), "without gaps"),
    "texts": (NEW.astype(str), "real numbers"),
    "complex": (NEW + 0j, "real numbers"),
    "ragged": ([[1.0, 2.0, 3.0], [1.0]], "real numbers"),
    "other names": (pd.DataFrame(NEW, columns=["a", "b", "d"]), "'c' 0 times"),
    "one name more": (pd.DataFrame(np.ones((M, 4)), columns=["a", "b", "c", "d"]), "also 'd'"),
    "a name twice": (pd.DataFrame(np.ones((M, 4)), columns=["a", "b", "c", "c"]), "'c' 2 times"),
    "texts in a column": (pd.DataFrame(NEW, columns=["a", "b", "c"]).assign(b="x"), "real numbers"),
    "data of other inputs": (Data(NEW, np.zeros((M, 1)), ("b", "a", "c")), "with the inputs"),
    "larger than single precision": (1e300 * NEW, "hold"),
}


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize(("new", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_get_one_sentence(new, words):
    learner = NETWORK if words == "hold" else learn.LeastSquares()
    message = refused(lambda: predict(KEY, learner, DATA, PLANS["splits"], new))
    assert re.search(words, message), message


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize("value", STRANGERS.values(), ids=STRANGERS)
def test_strangers_get_one_sentence(value):
    refused(lambda: predict(KEY, learn.LeastSquares(), DATA, PLANS["splits"], value))
    refused(lambda: predict(KEY, learn.LeastSquares(), DATA, value, NEW))
    refused(lambda: predict(KEY, learn.LeastSquares(), value, PLANS["splits"], NEW))


def test_what_does_not_fit_into_memory_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match="fewer new cases at a time"):
        predict(KEY, learn.LeastSquares(), DATA, PLANS["splits"], NEW)


def test_predictions_of_other_tools():
    plan, values = PLANS["splits"], RANDOM.normal(size=(6, N + M))
    cases = np.where(plan.test > 0, values[:, :N], np.nan)
    given = Predicted.from_predictions(Y[:, 0], cases, values[:, N:], plan.train, plan.test, "mine")
    assert (given.new.shape, given.cases.shape, given.m, given.sets) == ((6, M, 1), (6, N, 1), M, None)
    assert repr(given) == "Predicted(y by mine, given weights: R=6, N=40, M=7)"
    folds = resample.k_fold(KEY, N, 5)
    one_each = Predicted.from_predictions(Y, X[:, :1], NEW[None, :, :1].repeat(5, 0), folds.train, folds.test)
    np.testing.assert_array_equal(np.isnan(one_each.cases[..., 0]), folds.test == 0)
    cases[2, plan.test[2].argmax()] = np.nan
    lost = Predicted.from_predictions(Y[:, 0], cases, values[:, N:], plan.train, plan.test)
    assert lost.failed.tolist() == [False, False, True, False, False, False]


GIVEN = {"y": Y[:, 0], "cases": np.zeros((6, N)), "new": np.zeros((6, M)), "train": PLANS["splits"].train}
GIVEN |= {"test": PLANS["splits"].test}


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize(
    "changed",
    [
        {"new": np.zeros((5, M))},
        {"new": np.zeros((6, M, 1))},
        {"new": np.zeros((6, 0))},
        {"new": np.zeros(M)},
        {"new": "a"},
        {"cases": np.zeros((6, N - 1))},
        {"y": np.where(Y[:, 0] > 0, np.nan, 0.0)},
        {"train": np.zeros((6, N))},
        {"task": "ranking"},
        {"task": "classification"},
        {"classes": ("one",)},
        {"classes": "one"},
        {"learner": 3},
        {"target": 3},
    ],
    ids=repr,
)
def test_given_predictions_that_do_not_fit_get_one_sentence(changed):
    Predicted.from_predictions(**GIVEN)
    refused(lambda: Predicted.from_predictions(**(GIVEN | changed)))


@pytest.mark.usefixtures("own_messages")
def test_sets_are_chosen_as_those_of_losses():
    one = predict(KEY, learn.Mean(), DATA, PLANS["splits"], NEW)
    both = predict(KEY, learn.Mean(), Data(np.stack([X] * 2), np.stack([Y] * 2), DATA.names), PLANS["splits"], NEW)
    assert "Q=2" in repr(both)
    refused(lambda: list(one))
    refused(lambda: one[0], IndexError)
    refused(both.without_failed)
