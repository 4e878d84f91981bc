"""Per-case losses against scikit-learn."""

import dataclasses
import re

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from jaxgen import Losses, loss


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
    assert np.isclose(
        np.mean(loss.cross_entropy(y, p)), metrics.log_loss(classes, probabilities, labels=range(max(k, 2))), rtol=eps
    )
    assert np.isclose(np.mean(loss.zero_one(y, p)), metrics.zero_one_loss(classes, probabilities.argmax(1)), rtol=eps)
    if k <= 2:
        margin = 2 * probabilities[:, 1] - 1
        assert np.isclose(
            np.mean(loss.hinge(y[:, -1:], p[:, -1:])), metrics.hinge_loss(2 * classes - 1, margin), rtol=eps
        )


def test_regression_losses_are_those_of_scikit_learn(dtype):
    random = np.random.default_rng(0)
    y, p = random.normal(size=(2, 30, 3))
    eps = 20 * np.finfo(dtype).eps
    assert np.isclose(
        np.mean(loss.squared(jnp.asarray(y, dtype), jnp.asarray(p, dtype))),
        3 * metrics.mean_squared_error(y, p),
        rtol=eps,
    )
    assert np.isclose(
        np.mean(loss.absolute(jnp.asarray(y, dtype), jnp.asarray(p, dtype))),
        3 * metrics.mean_absolute_error(y, p),
        rtol=eps,
    )


@pytest.mark.parametrize("name", ["squared", "absolute", "zero_one", "cross_entropy", "hinge"])
@pytest.mark.parametrize("k", [1, 3])
def test_what_is_not_finite_stays_so(name, k, dtype):
    """A diverged network must not look like a right or wrong class."""
    y, p = jnp.ones((1, k), dtype), jnp.full((1, k), jnp.nan, dtype)
    assert np.isnan(getattr(loss, name)(y, p)).all()


def test_a_certain_and_wrong_class_costs_much_but_not_everything(dtype):
    y = jnp.asarray([[0, 1]], dtype)
    assert 80 < float(loss.cross_entropy(y, 1 - y)[0]) < 1000


PREDICTIONS = np.random.default_rng(1).normal(size=(3, 5, 2))
TRAIN = np.array([[1, 1, 1, 0, 0], [2, 0, 1, 0, 1], [0, 1, 1, 1, 1]])
TEST = np.array([[0, 0, 0, 1, 1], [0, 1, 0, 1, 0], [1, 0, 0, 0, 0]])


def test_losses_of_given_predictions_are_the_weighted_means():
    y = np.random.default_rng(0).normal(size=(5, 2))
    losses = Losses.from_predictions(y, PREDICTIONS, TRAIN, TEST, loss.squared)
    squares = np.sum((y - PREDICTIONS) ** 2, axis=-1)
    assert losses.values.dtype == np.float64  # in 32 bits too: nothing goes through JAX
    np.testing.assert_allclose(losses.values, squares, rtol=1e-15)
    np.testing.assert_allclose(
        losses.g, [np.average(s, weights=w) for s, w in zip(squares, TEST, strict=True)], rtol=1e-15
    )
    np.testing.assert_allclose(
        losses.apparent, [np.average(s, weights=w) for s, w in zip(squares, TRAIN, strict=True)], rtol=1e-15
    )
    single = Losses.from_predictions(y[:, 0], PREDICTIONS[..., 0], TRAIN, TEST, loss.absolute)
    np.testing.assert_allclose(single.values, np.abs(y[:, 0] - PREDICTIONS[..., 0]), rtol=1e-15)


def test_predictions_may_be_missing_where_no_case_is_tested():
    """Row 0 lacks a test case and fails; rows 1 and 2 lack training cases, so their apparent loss is absent."""
    y, predictions = np.zeros(5), PREDICTIONS[..., 0].copy()
    missing = [np.flatnonzero(TEST[0])[0], np.flatnonzero(TRAIN[1] * (TEST[1] == 0))[0]]
    predictions[0, missing[0]] = predictions[1, missing[1]] = np.nan
    losses = Losses.from_predictions(y, predictions, TRAIN, TEST, loss.squared)
    assert losses.failed.tolist() == [True, False, False]
    good = losses.without_failed()
    np.testing.assert_allclose(
        good.g, [np.average(p[t > 0] ** 2, weights=t[t > 0]) for p, t in zip(predictions[1:], TEST[1:], strict=True)]
    )
    assert np.isnan(good.train_mean).tolist() == [True, False]
    with pytest.raises(ValueError, match=r"predictions of all training cases .* missing ones in 1 of 2 rows; give"):
        _ = good.apparent


def test_predictions_by_cross_validation_need_no_more_than_one_a_case():
    """As scikit-learn's `cross_val_predict` gives them: each case as the row predicts that tests it."""
    x, y = np.random.default_rng(0).normal(size=(2, 30))
    fold = np.arange(30) % 3
    test = (fold == np.arange(3)[:, None]).astype(np.uint8)
    given = cross_val_predict(Ridge(), x[:, None], y, cv=PredefinedSplit(fold))
    losses = Losses.from_predictions(y, given, 1 - test, test, loss.squared)
    np.testing.assert_allclose(losses.g, [np.mean((y - given)[fold == k] ** 2) for k in range(3)], rtol=1e-12)
    assert np.isnan(losses.values[test == 0]).all()
    with pytest.raises(ValueError, match="expected predictions of all training cases"):
        _ = losses.apparent
    with pytest.raises(ValueError, match="where cases are tested several times"):
        Losses.from_predictions(y, given, 1 - test, np.ones_like(test), loss.squared)


@pytest.mark.parametrize(
    ("given", "y", "sentence"),
    [
        (loss.zero_one, [0, 1, 2, 0, 1], r"zeros and ones for the loss zero_one, got 2 in 'y'; read"),
        (loss.zero_one, [-1, 1, 1, 1, -1], r"zeros and ones for the loss zero_one, got -1"),
        (loss.cross_entropy, np.ones((5, 2)), r"one class for every case for the loss cross_entropy, got rows"),
        (lambda y, p: np.mean((y - p) ** 2), np.zeros(5), r"\[3, 5\], got \[\] from <lambda>"),
        (lambda y, p: (y - p) ** 2, np.zeros(5), r"\[3, 5\], got \[3, 5, 1\]"),
        (lambda y: y, np.zeros(5), r"expected a loss of arrays y and predictions .* got TypeError from <lambda>"),
        ("sqared", np.zeros(5), "expected the name of a loss.* got 'sqared'"),
        (5, np.zeros(5), "expected a loss such as jaxgen.loss.squared, got 5"),
    ],
)
def test_losses_refuse_what_they_are_not_for(given, y, sentence, own_messages):
    y = np.asarray(y)
    shape = (3, *y.shape)
    with pytest.raises((ValueError, TypeError), match=sentence):
        Losses.from_predictions(y, np.full(shape, 0.5), TRAIN, TEST, given)


def test_cross_entropy_of_what_is_no_probability_is_not_a_number(dtype):
    y = jnp.asarray([[1, 0], [0, 1], [1, 0]], dtype)
    scores = jnp.asarray([[0.5, 0.5], [-0.2, 1.2], [0.9, 0.59]], dtype)
    assert np.isfinite(loss.cross_entropy(y, scores)).tolist() == [True, False, False]
    assert np.isfinite(loss.cross_entropy(y[:, :1], scores[:, :1])).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"predictions": PREDICTIONS[:2]}, "expected y [N, K], predictions [R, N, K] and weights [R, N]"),
        ({"y": np.zeros((4, 2))}, "expected y [N, K]"),
        ({"train": TRAIN - 1}, "expected train weights that are whole numbers from 0 to 255"),
        ({"test": 0.5 * TEST}, "expected test weights that are whole numbers"),
        ({"test": 0 * TEST}, "expected every row of the plan to have test cases"),
    ],
)
def test_predictions_that_do_not_fit_are_refused(change, sentence):
    given = {
        "y": np.zeros((5, 2)),
        "predictions": PREDICTIONS,
        "train": TRAIN,
        "test": TEST,
        "loss": loss.squared,
    } | change
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Losses.from_predictions(**given)


def probabilities_of_rows(sets=None):
    """Targets [*Q, 12, 3] and predictions [*Q, 4, 12, 3] in single precision, as `assess` keeps them."""
    random, lead = np.random.default_rng(0), () if sets is None else (sets,)
    y = np.eye(3)[random.integers(3, size=(*lead, 12))]
    return y, random.dirichlet(np.ones(3), size=(*lead, 4, 12)).astype(np.float32)


def kept(predictions, y, function):
    """Losses [4] of one data set."""
    train = (np.arange(12) % 4 != np.arange(4)[:, None]).astype(int)
    return Losses.from_predictions(y, predictions, train, 1 - train, function)


@pytest.mark.parametrize("function", [loss.squared, loss.zero_one, loss.cross_entropy])
def test_another_loss_of_the_same_predictions(function):
    y, predictions = probabilities_of_rows()
    wanted, got = kept(predictions, y, function), kept(predictions, y, loss.absolute).with_loss(function, y)
    assert got.loss == wanted.loss
    np.testing.assert_array_equal(got.values, wanted.values)
    np.testing.assert_array_equal(got.g, wanted.g)
    np.testing.assert_array_equal(got.apparent, wanted.apparent)


def test_another_loss_of_several_data_sets_is_that_of_each():
    y, predictions = probabilities_of_rows(sets=2)
    one, other = (kept(*each, loss.absolute) for each in zip(predictions, y, strict=True))
    both = dataclasses.replace(
        one,
        **{
            name: np.stack([getattr(one, name), getattr(other, name)])
            for name in ("test_mean", "train_mean", "failure", "values", "predictions")
        },
    ).with_loss(loss.squared, y)
    for q, each in enumerate((one, other)):
        alone = each.with_loss(loss.squared, y[q])
        np.testing.assert_array_equal(both[q].values, alone.values)
        np.testing.assert_array_equal(both[q].g, alone.g)


def test_another_loss_keeps_failures_and_finds_new_ones():
    y, predictions = probabilities_of_rows()
    predictions[1] = np.nan
    predictions[2] = 2.0  # no probabilities
    before = kept(predictions, y, loss.squared)
    after = before.with_loss(loss.cross_entropy, y)
    assert before.failed.tolist() == [False, True, False, False]
    assert after.failed.tolist() == [False, True, True, False]
    with pytest.raises(ValueError, match="row 2: its loss is not finite"):
        after.g  # noqa: B018
    untrained = predictions.copy()
    untrained[0, np.arange(12) % 4 != 0] = np.nan  # what row 0 predicts for its training cases is not known
    partly = kept(untrained, y, loss.squared).with_loss(loss.zero_one, y)
    assert np.isnan(partly.train_mean[0])
    assert not partly.failed[0]


def test_another_loss_needs_predictions_and_their_targets(own_messages):
    y, predictions = probabilities_of_rows()
    one = kept(predictions, y, loss.squared)
    with pytest.raises(ValueError, match="expected predictions of every row for another loss, got losses alone of "):
        dataclasses.replace(one, predictions=None).with_loss(loss.zero_one, y)
    with pytest.raises(ValueError, match=r"expected y \[12, 3\], got \[11, 3\]; give the targets trained on"):
        one.with_loss(loss.zero_one, y[:11])
    with pytest.raises(ValueError, match="expected targets of zeros and ones"):
        one.with_loss(loss.zero_one, y + 0.5)
    with pytest.raises(ValueError, match="expected the name of a loss.* got 'mean'"):
        one.with_loss("mean", y)
