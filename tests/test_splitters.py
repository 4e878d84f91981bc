"""Splits of scikit-learn as plans, plans as its `cv`, and what its `cross_validate` returns as losses."""

import jax
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.svm import SVC

from jaxgen import datasets, loss, resample
from jaxgen.stats import advice, design
from jaxgen.types import Data, Losses

KEY = jax.random.key(5)
N = 40
GROUPS = np.arange(N) % 8
RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(N, 3))
Y = X.sum(1) + RANDOM.normal(size=N)
LABELS = np.where(Y > 0, "yes", "no")

SAME = {
    "folds": (KFold(5), {}, lambda: resample.k_fold(KEY, N, 5)),
    "repeated folds": (RepeatedKFold(n_splits=4, n_repeats=3), {}, lambda: resample.k_fold(KEY, N, 4, 3)),
    "stratified": (StratifiedKFold(4), {"y": LABELS}, lambda: resample.k_fold(KEY, N, 4, strata=LABELS)),
    "groups": (GroupKFold(4), {"groups": GROUPS}, lambda: resample.k_fold(KEY, N, 4, groups=GROUPS)),
    "single groups": (LeaveOneGroupOut(), {"groups": GROUPS}, lambda: resample.k_fold(KEY, N, 8, groups=GROUPS)),
    "single cases": (LeaveOneOut(), {}, lambda: resample.leave_one_out(N)),
    "series": (TimeSeriesSplit(4), {}, lambda: resample.time_blocks(N, 5, past_only=True)),
    "series with a gap": (TimeSeriesSplit(4, gap=2), {}, lambda: resample.time_blocks(N, 5, 2, past_only=True)),
    "random": (ShuffleSplit(30, test_size=0.1), {}, lambda: resample.leave_out(KEY, N, 0.1, 30)),
    "many random": (ShuffleSplit(460, test_size=0.1), {}, lambda: resample.leave_out(KEY, N, 0.1, 460)),
    "one": (PredefinedSplit(np.arange(N) % 4 // 3 - 1), {}, lambda: resample.leave_out(KEY, N, 0.25, 1)),
}
"""Splitters, and the same designs made here."""


@pytest.mark.parametrize("name", SAME)
def test_a_splitter_makes_the_plan_that_the_same_design_made_here_is(name):
    splitter, given, make = SAME[name]
    plan, ours = resample.from_splitter(splitter, N, **given), make()
    assert {key: label.tolist() for key, label in plan.labels.items()} == {
        key: label.tolist() for key, label in ours.labels.items()
    }
    assert {key: label.tolist() for key, label in plan.cases.items()} == {
        key: label.tolist() for key, label in ours.cases.items()
    }
    assert plan.train.shape == ours.train.shape
    for rates in (False, True):
        assert advice.line(plan, rates)[1:] == advice.line(ours, rates)[1:]
    assert (design.dependent(plan), plan.drawn_one_by_one) == (design.dependent(ours), ours.drawn_one_by_one)
    assert " ".join(repr(splitter).split()) in plan.scheme


def test_blocks_of_a_series_are_those_of_time_blocks():
    ours = resample.time_blocks(N, 5, past_only=True)
    plan = resample.from_splitter(TimeSeriesSplit(4), N)
    np.testing.assert_array_equal(plan.train, ours.train)
    np.testing.assert_array_equal(plan.test, ours.test)


def test_weights_are_the_indices_that_the_splitter_gives():
    for splitter, given, _ in SAME.values():
        plan = resample.from_splitter(splitter, N, **given)
        if isinstance(splitter, ShuffleSplit | RepeatedKFold):
            continue  # they draw anew
        for row, (train, test) in enumerate(splitter.split(X, given.get("y"), given.get("groups"))):
            assert np.flatnonzero(plan.train[row]).tolist() == sorted(train)
            assert np.flatnonzero(plan.test[row]).tolist() == sorted(test)


def test_groups_that_random_splits_divide_by_are_kept_and_heeded():
    plan = resample.from_splitter(GroupShuffleSplit(30), N, groups=GROUPS)
    assert design.groups(plan) == 8
    assert "groups" in advice.line(plan, False).reason


def test_strata_are_the_classes_of_the_data():
    data = datasets.from_arrays(X, LABELS)
    plan = resample.from_splitter(StratifiedKFold(4), data)
    np.testing.assert_array_equal(plan.test, resample.from_splitter(StratifiedKFold(4), X, LABELS).test)
    assert np.ptp(plan.test @ data.y, axis=0).max() <= 1
    single = Data(X, data.y[:, 1:], data.names, task="classification")
    np.testing.assert_array_equal(resample.from_splitter(StratifiedKFold(4), single).test, plan.test)


def test_pairs_of_indices_are_splits_and_repeated_ones_are_counts():
    pairs = [([0, 0, 1], [2, 3]), (np.arange(N) > 5, np.arange(N) <= 5)]
    plan = resample.from_splitter(pairs, N)
    assert plan.train[0, :4].tolist() == [2, 1, 0, 0]
    assert plan.train_sizes.tolist() == [3, N - 6]
    assert plan.labels == {}
    for (train, test), (given_train, given_test) in zip(plan.split(), [pairs[0]], strict=False):
        assert (train.tolist(), test.tolist()) == (given_train, given_test)
    assert resample.from_splitter(iter(pairs), N).scheme == f"resample.from_splitter(<given splits>, {N})"
    assert resample.from_splitter(KFold(2), N, times=np.arange(N)[::-1]).cases["time"][0] == N - 1


@pytest.mark.parametrize(
    "plan",
    [
        resample.k_fold(KEY, N, 4, 2),
        resample.bootstrap(KEY, N, 5),
        resample.bootstrap(KEY, N, 300, lazy=True),
        resample.from_weights(np.eye(N)[:3] + np.eye(N)[3:6], np.eye(N)[6:9]),
    ],
    ids=lambda plan: plan.scheme,
)
def test_a_plan_is_a_cv_of_scikit_learn(plan):
    scores = cross_val_score(Ridge(), X, Y, cv=plan, scoring="neg_mean_squared_error")
    assert plan.get_n_splits(X, Y) == len(scores) == plan.resamples
    for row in (0, -1):
        w = plan.train[row].astype(float)
        fitted = Ridge().fit(X, Y, sample_weight=w)
        error = np.average((Y - fitted.predict(X)) ** 2, weights=plan.test[row])
        assert -scores[row] == pytest.approx(error, rel=1e-9)


def test_a_plan_serves_searches_and_predictions():
    plan = resample.k_fold(KEY, N, 4)
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=plan).fit(X, Y)
    assert search.n_splits_ == 4
    predictions = cross_val_predict(LinearRegression(), X, Y, cv=plan)
    losses = Losses.from_predictions(Y, predictions, plan.train, plan.test, loss.squared)
    scores = cross_val_score(LinearRegression(), X, Y, cv=plan, scoring="neg_mean_squared_error")
    np.testing.assert_allclose(losses.g, -scores, rtol=1e-12)


def validated(estimator, y, cv, **more):
    return cross_validate(estimator, X, y, cv=cv, return_estimator=True, return_indices=True, **more)


def test_what_cross_validate_returns_becomes_losses():
    cv = RepeatedKFold(n_splits=4, n_repeats=2, random_state=0)
    result = validated(LinearRegression(), Y, cv, scoring="neg_mean_squared_error", return_train_score=True)
    losses = Losses.from_cross_validate(result, X, Y, loss.squared)
    np.testing.assert_allclose(losses.g, -result["test_score"], rtol=1e-12)
    np.testing.assert_allclose(losses.apparent, -result["train_score"], rtol=1e-12)
    assert losses.learner == "LinearRegression()"
    plan = resample.from_splitter(cv, N)
    np.testing.assert_array_equal(losses.plan.test, plan.test)
    assert set(losses.plan.labels) == {"repeat", "fold"}
    two = np.stack([Y, -Y], 1)
    both = Losses.from_cross_validate(validated(LinearRegression(), two, 4), X, two, loss.squared, "two", groups=GROUPS)
    np.testing.assert_allclose(both.predictions[..., 0], -both.predictions[..., 1], atol=1e-12)
    assert (both.learner, "group" in both.plan.cases) == ("two", True)
    series = Losses.from_cross_validate(validated(Ridge(), Y, TimeSeriesSplit(4)), X, Y, loss.squared)
    assert design.serial(series.plan)


@pytest.mark.parametrize("estimator", [LogisticRegression(), SVC()], ids=str)
def test_classifiers_of_cross_validate_are_judged_by_their_classes(estimator):
    result = validated(estimator, LABELS, StratifiedKFold(4))
    losses = Losses.from_cross_validate(result, X, LABELS, loss.zero_one)
    np.testing.assert_allclose(1 - losses.g, result["test_score"], rtol=1e-12)


def test_log_loss_of_cross_validate_is_that_of_scikit_learn():
    result = validated(LogisticRegression(), LABELS, 4, scoring="neg_log_loss")
    losses = Losses.from_cross_validate(result, X, LABELS, loss.cross_entropy)
    np.testing.assert_allclose(losses.g, -result["test_score"], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_rows_whose_fit_failed_are_marked():
    splits = [(np.arange(30), np.arange(30, N)), (np.flatnonzero(LABELS == "yes"), np.flatnonzero(LABELS == "no"))]
    result = validated(LogisticRegression(), LABELS, splits, error_score=np.nan)
    losses = Losses.from_cross_validate(result, X, LABELS, loss.zero_one)
    assert losses.failed.tolist() == [False, True]


GOOD = validated(LinearRegression(), Y, 4)
CLASSES = validated(LogisticRegression(), LABELS, 4)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: resample.from_splitter(None, N), TypeError, "expected a splitter with the method split, got None"),
        (lambda: resample.from_splitter(5, N), TypeError, "give for example sklearn.model_selection.KFold(5)"),
        (lambda: resample.from_splitter("KFold", N), TypeError, "got 'KFold'"),
        (lambda: resample.from_splitter(KFold, N), TypeError, "write KFold()"),
        (lambda: resample.from_splitter(resample.full(N), N), TypeError, "use it as it is"),
        (lambda: resample.from_splitter(KFold(5), None), TypeError, "give for example data.n"),
        (lambda: resample.from_splitter(KFold(5), "data"), TypeError, "expected the number of cases, Data or inputs"),
        (lambda: resample.from_splitter(KFold(5), 1), ValueError, "expected the number of cases to be"),
        (lambda: resample.from_splitter(KFold(50), N), ValueError, "got ValueError: Cannot have number of splits"),
        (lambda: resample.from_splitter(StratifiedKFold(5), N), ValueError, "give it what it needs as y= and groups="),
        (lambda: resample.from_splitter(GroupKFold(5), N), ValueError, "give it what it needs as y= and groups="),
        (lambda: resample.from_splitter([], N), ValueError, "expected at least one split"),
        (lambda: resample.from_splitter([1, 2], N), ValueError, "expected pairs (train, test) of indices, got 1"),
        (lambda: resample.from_splitter([([0], [N])], N), ValueError, f"indices from 0 to {N - 1}"),
        (lambda: resample.from_splitter([([0], [-1])], N), ValueError, "expected the test cases of a split"),
        (lambda: resample.from_splitter([([0.5], [1])], N), ValueError, "expected the training cases of a split"),
        (lambda: resample.from_splitter([([0], [])], N), ValueError, "to have test cases"),
        (lambda: resample.from_splitter([([0] * 256, [1])], N), ValueError, "from 0 to 255"),
        (lambda: resample.from_splitter([([0], [1])], N, groups=[1, 2]), ValueError, "expected groups to be 40 labels"),
        (lambda: resample.k_fold(KEY, N).split(X[:5]), ValueError, "expected the 40 cases of the plan"),
        (lambda: resample.leave_out(KEY, N, 0.1, 3, sets=2).get_n_splits(), ValueError, "choose one with plan[q]"),
        (lambda: Losses.from_cross_validate(None, X, Y, loss.squared), TypeError, "return_indices=True"),
        (lambda: Losses.from_cross_validate({"test_score": 1}, X, Y, loss.squared), ValueError, "expected 'estimator'"),
        (lambda: Losses.from_cross_validate(GOOD | {"estimator": []}, X, Y, loss.squared), ValueError, "got 0 estim"),
        (lambda: Losses.from_cross_validate(GOOD, X[:, :2], Y, loss.squared), ValueError, "give the x and y"),
        (lambda: Losses.from_cross_validate(GOOD, X, Y[:9], loss.squared), ValueError, "as indices from 0 to 8"),
        (lambda: Losses.from_cross_validate(GOOD, X, LABELS, loss.squared), ValueError, "expected y as numbers"),
        (
            lambda: Losses.from_cross_validate(CLASSES, X, np.eye(2)[(Y > 0).astype(int)], loss.zero_one),
            ValueError,
            "expected one label per case",
        ),
        (lambda: Losses.from_cross_validate(CLASSES, X, Y > 0, loss.zero_one), ValueError, "of the classes"),
    ],
)
def test_misuse_gets_one_sentence(call, kind, said, own_messages):
    with pytest.raises(kind) as error:
        call()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_all_pairs_left_out_are_no_folds():
    assert resample.from_splitter(LeavePOut(2), 6).labels == {}
