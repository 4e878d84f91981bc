"""Apparent, hold-out and cross-validated errors and quantiles: against SciPy, NumPy, scikit-learn and closed forms."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import scipy.stats
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import LeaveOneOut, PredefinedSplit, cross_val_score

from jaxgen import loss, resample
from jaxgen.stats import estimate
from jaxgen.types import Losses

KEY = jax.random.key(0)
N = 20
EXACT = {"rtol": 1e-12, "atol": 1e-14}
"""Sums of at most some thousand numbers near 1 in another order."""
SETS = pytest.mark.parametrize("sets", [None, 3], ids=["one set", "sets"])


def losses(plan, sets=None, seed=0, failed=(), values=None):
    """Losses of all cases, skewed as squared errors are."""
    values = (
        np.random.default_rng(seed).gamma(0.5, 2.0, size=(*(() if sets is None else (sets,)), plan.resamples, plan.n))
        if values is None
        else values
    )
    test, train = (
        (weights * values).sum(-1) / weights.sum(-1) for weights in (plan.test.astype(float), plan.train.astype(float))
    )
    failure = np.zeros(test.shape, np.uint8)
    failure[..., list(failed)] = 1
    return Losses(test, train, plan, "Mean()", "squared", failure, ("it did not converge",), values)


def of_splits(x, y, splits):
    """Losses of least squares on splits (training and test cases), fitted by scikit-learn."""
    train, test, predictions = np.zeros((3, len(splits), len(y)))
    for row, (trained, tested) in enumerate(splits):
        train[row, trained], test[row, tested] = 1, 1
        predictions[row] = LinearRegression().fit(x[trained], y[trained]).predict(x)
    return Losses.from_predictions(y, predictions, train, test, loss.squared)


def regression(n=37, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 4))
    return x, x @ np.ones(4) + random.normal(size=n)


# apparent


@SETS
@pytest.mark.parametrize(
    "plan",
    [resample.full(N), resample.leave_out(KEY, N, 0.25, 7), resample.bootstrap(KEY, N, 7)],
    ids=["full", "leave_out", "bootstrap"],
)
def test_the_apparent_error_weighs_cases_as_the_training_did(plan, sets):
    of = losses(plan, sets)
    rows = [np.average(of.values[..., r, :], weights=plan.train[r], axis=-1) for r in range(plan.resamples)]
    got = estimate.apparent(of)
    np.testing.assert_allclose(got.estimate, np.mean(rows, axis=0), **EXACT)
    assert np.isnan(got.standard_error).all()
    assert got.estimate.shape == (() if sets is None else (sets,))


def test_the_apparent_error_of_least_squares_is_that_of_scikit_learn():
    x, y = regression()
    got = estimate.apparent(of_splits(x, y, [(np.arange(37), np.arange(37))]))
    np.testing.assert_allclose(got.estimate, np.mean((y - LinearRegression().fit(x, y).predict(x)) ** 2), **EXACT)
    assert got.target == "the loss on the training cases"


# hold_out

HELD_OUT = {
    "one row": resample.leave_out(KEY, N, 0.25, 1),
    "leave_out": resample.leave_out(KEY, N, 0.25, 6),
    "unequal folds": resample.k_fold(KEY, N, 3),
    "bootstrap": resample.bootstrap(KEY, N, 5),
    "test region": resample.task_instances(N, 3, instances=3, common=True),
    "splits of each set": resample.leave_out(KEY, N, 0.4, 4, sets=3),
}


@SETS
@pytest.mark.parametrize("name", HELD_OUT)
def test_hold_out_is_the_mean_of_the_rows_with_the_error_of_one(name, sets):
    plan = HELD_OUT[name]
    if plan.sets is not None and sets is None:
        plan = plan[0]
    of = losses(plan, sets)
    got = estimate.hold_out(of)
    for q, one in enumerate([of] if sets is None else [of[q] for q in range(sets)]):
        tested = [one.values[r, one.plan.test[r] > 0] for r in range(plan.resamples)]
        np.testing.assert_allclose(np.ravel(got.estimate)[q], np.mean([v.mean() for v in tested]), **EXACT)
        np.testing.assert_allclose(
            np.ravel(got.standard_error)[q], np.sqrt(np.mean([scipy.stats.sem(v) ** 2 for v in tested])), **EXACT
        )


def test_hold_out_says_what_it_is_about():
    assert estimate.hold_out(losses(HELD_OUT["one row"])).target == "the risk of the model trained on 15 cases"
    assert estimate.hold_out(losses(HELD_OUT["one row"])).note == ""
    several = estimate.hold_out(losses(HELD_OUT["unequal folds"]))
    assert several.target == "the mean risk of the 3 models trained on 13 to 14 cases"
    assert "upper limit for the mean of several" in str(several)


def test_the_limit_is_reached_where_rows_are_one():
    """Rows that test the same cases with the same losses know no more than one; disjoint ones know R times as much."""
    plan = resample.task_instances(N, 3, instances=3, common=True)
    same = np.broadcast_to(losses(plan).values[:1], (3, N))
    np.testing.assert_allclose(
        estimate.hold_out(losses(plan, values=same)).standard_error, scipy.stats.sem(same[0, :10]), **EXACT
    )


def test_the_error_of_one_hold_out_is_right_and_for_several_an_upper_limit():
    """2000 data sets; predictions that do not depend on the training, so that the risk is known: the mean of
    chi-squared with 1 degree of freedom.

    The mean square of 2000 standardised errors is within 20 % of 1: six times its standard error, sqrt((kurtosis - 1)
    / 2000), for a kurtosis of 3 to 6.
    """
    values = np.broadcast_to(np.random.default_rng(5).normal(size=(2000, 1, 100)) ** 2, (2000, 10, 100))
    for rows, low, high in ((1, 0.8, 1.2), (10, 0.0, 1.0)):
        plan = resample.leave_out(KEY, 100, 0.3, rows)
        got = estimate.hold_out(losses(plan, 2000, values=values[:, :rows]))
        ratio = np.mean((got.estimate - 1) ** 2) / np.mean(got.standard_error**2)
        assert low < ratio < high, (rows, ratio)


@pytest.mark.parametrize(
    "estimate",
    [estimate.apparent, estimate.hold_out, lambda of: estimate.quantile(of, 0.5)],
    ids=["apparent", "hold_out", "quantile"],
)
def test_failed_rows_left_out_are_told_of(estimate):
    assert "2 failed rows were left out" in estimate(losses(HELD_OUT["leave_out"], failed=[1, 2]).without_failed()).note


def test_rows_left_out_take_their_weights_with_them():
    """Rows 1 and 4 of six failed. What is left tests its own cases, and the estimate is that of these rows alone."""
    of = losses(HELD_OUT["leave_out"], failed=[1, 4])
    left, kept = of.without_failed(), [0, 2, 3, 5]
    for name in ("train", "test", "values", "test_mean", "train_mean"):
        np.testing.assert_array_equal(getattr(left, name), getattr(of, name)[kept], name)
    assert not np.array_equal(of.test[:4], of.test[kept])
    tested = [of.values[row, of.test[row] > 0] for row in kept]
    got = estimate.hold_out(left)
    np.testing.assert_allclose(got.estimate, np.mean([case.mean() for case in tested]), **EXACT)
    np.testing.assert_allclose(
        got.standard_error, np.sqrt(np.mean([scipy.stats.sem(case) ** 2 for case in tested])), **EXACT
    )


def test_cross_validation_of_unequal_folds_by_hand():
    """Folds of 3, 2 and 2 cases with the losses 1, 2, 6, then 4, 8, then 3, 5: the mean of the cases is 29/7, that of
    the rows 13/3; the squares of the cases sum to 155, those of the rows' deviations to 14/3.
    """
    test = (np.array([0, 0, 0, 1, 1, 2, 2]) == np.arange(3)[:, None]).astype(np.uint8)
    values = np.tile([1.0, 2, 6, 4, 8, 3, 5], (3, 1))
    got = estimate.cross_validation(losses(resample.from_weights(1 - test, test), values=values))
    np.testing.assert_allclose(got.estimate, 29 / 7, **EXACT)
    np.testing.assert_allclose(got.standard_error, np.sqrt((155 / 7 - (29 / 7) ** 2) / 7), **EXACT)
    np.testing.assert_allclose([got.parts["average of rows"], got.parts["std of rows"]], [13 / 3, np.sqrt(7 / 3)])
    assert got.method == "3-fold cross-validation"


# cross_validation


@pytest.mark.parametrize("folds", [2, 5, 6])
def test_cross_validation_is_that_of_scikit_learn(folds):
    x, y = regression()
    fold = resample.k_fold(KEY, 37, folds).test.argmax(0)
    split = PredefinedSplit(fold)
    scores = -cross_val_score(LinearRegression(), x, y, scoring="neg_mean_squared_error", cv=split)
    got = estimate.cross_validation(of_splits(x, y, list(split.split())))
    np.testing.assert_allclose(
        got.parts["average of rows"], scores.mean(), rtol=1e-10
    )  # two solutions of a small least-squares problem
    np.testing.assert_allclose(got.parts["std of rows"], scores.std(ddof=1), rtol=1e-10)
    np.testing.assert_allclose(got.estimate, np.average(scores, weights=np.bincount(fold)), rtol=1e-10)
    assert (got.parts["folds"], got.parts["repeats"]) == (folds, 1)
    assert got.method == f"{folds}-fold cross-validation"


def test_leave_one_out_is_the_closed_form_of_least_squares():
    x, y = regression()
    design = np.column_stack([np.ones(37), x])
    leverage = np.einsum("nd,dn->n", design, np.linalg.pinv(design))
    squares = ((y - LinearRegression().fit(x, y).predict(x)) / (1 - leverage)) ** 2
    got = estimate.cross_validation(of_splits(x, y, list(LeaveOneOut().split(x))))
    np.testing.assert_allclose(got.estimate, squares.mean(), rtol=1e-10)
    np.testing.assert_allclose(got.standard_error, squares.std() / np.sqrt(37), rtol=1e-10)
    np.testing.assert_allclose(got.parts["std of rows"], squares.std(ddof=1), rtol=1e-10)
    assert got.method == "leave-one-out cross-validation"


@SETS
@pytest.mark.parametrize("repeats", [1, 4])
def test_the_standard_error_is_that_of_the_cases_averaged_over_repeats(repeats, sets):
    plan = resample.k_fold(KEY, N, 3, repeats)
    of = losses(plan, sets)
    cases = sum(of.values[..., r, :] * plan.test[r] for r in range(plan.resamples)) / repeats
    got = estimate.cross_validation(of)
    np.testing.assert_allclose(got.estimate, cases.mean(-1), **EXACT)
    np.testing.assert_allclose(got.standard_error, np.sqrt(cases.var(-1) / N), **EXACT)
    assert (got.method, got.target) == (
        "3-fold cross-validation" + (f", {repeats} repeats" if repeats > 1 else ""),
        "the k-fold test error",
    )
    assert f"mean risk of these {3 * repeats} models; it is none for ER" in got.note
    assert np.isinf(got.lower).sum() == 0


def test_two_standard_errors_cover_the_k_fold_test_error():
    """2000 data sets of 500 Gaussian cases, predicted by the mean of the other folds, whose risk is 1 + mean^2.

    Edgeworth's correction for chi-squared losses puts the coverage at 0.946; the limits are those that 0.94 and 0.95
    leave once in a million.
    """
    y = np.random.default_rng(6).normal(size=(2000, 500))
    plan = resample.k_fold(KEY, 500, 5)
    means = y @ plan.train.T.astype(float) / plan.train.sum(-1)
    got = estimate.cross_validation(losses(plan, 2000, values=(y[:, None] - means[..., None]) ** 2))
    covered = np.sum(np.abs(got.estimate - 1 - np.mean(means**2, axis=-1)) < 1.959964 * got.standard_error)
    assert scipy.stats.binom.ppf(1e-6, 2000, 0.94) <= covered <= scipy.stats.binom.isf(1e-6, 2000, 0.95)


FOLDS = {
    "k_fold": (resample.k_fold(KEY, N, 4), 4, 1),
    "unequal folds": (resample.k_fold(KEY, N, 3, 2), 3, 2),
    "groups": (resample.k_fold(KEY, N, 4, groups=np.arange(N) // 3), 4, 1),
    "leave_one_out": (resample.leave_one_out(N), N, 1),
    "five_by_two": (resample.five_by_two(KEY, N), 2, 5),
    "time_blocks with a gap": (resample.time_blocks(N, 5, gap=1), 5, 1),
    "balanced splits that are folds": (resample.balanced(KEY, N, 0.25, 4), 4, 1),
    "folds of each set": (resample.stack([resample.k_fold(jax.random.key(seed), N, 4, 2) for seed in (1, 2, 3)]), 4, 2),
}


@pytest.mark.parametrize("name", FOLDS)
def test_any_plan_that_tests_every_case_once_in_turn_is_folds(name):
    plan, folds, repeats = FOLDS[name]
    got = estimate.cross_validation(losses(plan, plan.sets))
    assert (np.ravel(got.parts["folds"])[0], np.ravel(got.parts["repeats"])[0]) == (folds, repeats)


HALF = (np.arange(N) < 10).astype(np.uint8)
OTHER_PLANS = {
    "leave_out": (
        resample.leave_out(KEY, N, 0.3, 6),
        "cases that no row tests|some cases tested more often than others",
    ),
    "one row": (resample.leave_out(KEY, N, 0.3, 1), "cases that no row tests"),
    "time_blocks of the past": (resample.time_blocks(N, 5, past_only=True), "cases that no row tests"),
    "nested_pairs": (
        resample.nested_pairs(KEY, N, 4),
        "rows that do not test every case once before they test one again",
    ),
    "nested_pairs of an odd number": (
        resample.nested_pairs(KEY, N, 5),
        "rows that do not test every case once before they test one again",
    ),
    "five folds once and four folds once": (
        replace(
            resample.from_weights(
                *(
                    np.concatenate([getattr(resample.k_fold(KEY, N, k), name) for k in (5, 4)])
                    for name in ("train", "test")
                )
            ),
            labels={"repeat": np.repeat([0, 1], [5, 4])},
        ),
        "some cases tested more often than others, or rows of several kinds",
    ),
    "five_by_two in another order": (
        resample.from_weights(np.stack([HALF, HALF, 1 - HALF, 1 - HALF]), np.stack([1 - HALF, 1 - HALF, HALF, HALF])),
        "rows that do not test every case once before",
    ),
    "bootstrap": (
        resample.from_weights(np.stack([2 * HALF, 1 - HALF]), np.stack([1 - HALF, HALF])),
        r"cases drawn more than once \(a bootstrap\)",
    ),
    "task_instances": (resample.task_instances(N, 3, instances=3), "cases that no row tests"),
}


@pytest.mark.parametrize("name", OTHER_PLANS)
def test_cross_validation_refuses_other_plans(name):
    plan, message = OTHER_PLANS[name]
    with pytest.raises(
        ValueError,
        match=rf"expected folds that test every case once in each repeat, got .*: ({message}).*; "
        r"use k_fold or leave_one_out, or estimate.hold_out",
    ):
        estimate.cross_validation(losses(plan))
    estimate.hold_out(losses(plan))


# quantile


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("r", [2, 9, 40, 137])
def test_quantiles_are_those_of_numpy_with_the_interval_of_scipy(r, level):
    of = losses(resample.leave_out(KEY, N, 0.3, r))
    for p in (0.03, 0.1, 1 / 3, 0.5, 0.77, 0.95):
        got = estimate.quantile(of, p, level=level)
        want = scipy.stats.quantile_test(of.g, p=p).confidence_interval(level)
        assert got.estimate == np.quantile(of.g, p, method="inverted_cdf")
        assert (got.lower, got.upper) == (
            -np.inf if np.isnan(want.low) else want.low,
            np.inf if np.isnan(want.high) else want.high,
        )
        assert got.parts["coverage"] >= level
        assert got.parts["p"] == p


def test_quantiles_by_hand():
    """Ten values: P(B <= 1) = 11/1024 < 0.025 and P(B <= 2) = 56/1024 > 0.025, so the second and the ninth."""
    plan = resample.leave_out(KEY, N, 0.3, 10)
    of = replace(losses(plan), test_mean=np.arange(1.0, 11)[::-1])
    got = estimate.quantile(of, 0.5)
    assert (got.estimate, got.lower, got.upper) == (5, 2, 9)
    assert got.parts["coverage"] == pytest.approx(1 - 2 * 11 / 1024)
    for p, limits in {0.0: (1, -np.inf, 1), 1.0: (10, 10, np.inf), 0.1: (1, -np.inf, 4)}.items():
        got = estimate.quantile(of, p)
        assert (got.estimate, got.lower, got.upper) == limits


def test_quantiles_of_several_sets_are_those_of_each():
    of = losses(resample.leave_out(KEY, N, 0.3, 30), 3)
    got = estimate.quantile(of, 0.7, level=0.8)
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_array_equal(
            getattr(got, name), [getattr(estimate.quantile(of[q], 0.7, level=0.8), name) for q in range(3)]
        )
    assert got.to_frame().shape[0] == 3


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_interval_of_a_quantile_covers_as_often_as_it_says(p):
    """5000 samples of 60 uniform values, within the limits that the exact coverage leaves once in a million."""
    plan = resample.leave_out(KEY, N, 0.3, 60)
    of = losses(plan, values=np.ones((60, N)))
    g = np.random.default_rng(7).random((5000, 60))
    got = estimate.quantile(replace(of, test_mean=g, train_mean=g, failure=np.zeros(g.shape, np.uint8), values=None), p)
    covered = np.sum((got.lower <= p) & (p <= got.upper))
    low, high = scipy.stats.binom.interval(1 - 1e-6, 5000, got.parts["coverage"][0])
    assert low <= covered <= high


def test_a_quantile_of_rows_of_one_design_warns():
    assert estimate.quantile(losses(resample.k_fold(KEY, N, 5)), 0.5).note.startswith(
        "the rows belong to one design and depend on one another"
    )
    assert estimate.quantile(losses(resample.balanced(KEY, N, 0.25, 5)), 0.5).note.startswith(
        "the rows belong to one design and depend on one another"
    )
    assert estimate.quantile(losses(resample.bootstrap(KEY, N, 5)), 0.5).note == ""


# Degenerate and bad input

SINGLE = resample.leave_one_out(N)
CONSTANT = np.full((N, N), 0.5)
DEGENERATE = {
    "constant losses held out": (
        lambda: estimate.hold_out(losses(resample.k_fold(KEY, N, 5), values=CONSTANT[:5])),
        0.5,
        0.0,
    ),
    "single test cases": (lambda: estimate.hold_out(losses(SINGLE, values=CONSTANT)), 0.5, np.nan),
    "constant losses, cross-validated": (lambda: estimate.cross_validation(losses(SINGLE, values=CONSTANT)), 0.5, 0.0),
    "constant G": (lambda: estimate.quantile(losses(SINGLE, values=CONSTANT), 0.3), 0.5, np.nan),
    "NaN where a case is neither trained nor tested": (
        lambda: estimate.hold_out(
            replace(
                losses(HELD_OUT["test region"], values=CONSTANT[:3]),
                values=np.where(HELD_OUT["test region"].test > 0, 0.5, np.nan),
            )
        ),
        0.5,
        0.0,
    ),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_cases_have_documented_values(case):
    call, estimate, error = DEGENERATE[case]
    np.testing.assert_array_equal([call().estimate, call().standard_error], [estimate, error])


def test_equal_losses_have_no_standard_error_whatever_their_mean_is_rounded_to():
    """The mean of 20 times 0.1 is not 0.1, so that deviations from it are not 0."""
    equal = np.full((N, N), 0.1)
    assert equal[0].std() > 0
    assert estimate.cross_validation(losses(SINGLE, values=equal)).standard_error == 0


LEFT_OUT = losses(HELD_OUT["leave_out"])
FAILED = losses(HELD_OUT["leave_out"], failed=[2])
TRAINED_ON = losses(resample.full(N))
TWICE = losses(resample.from_weights(np.tile(HALF, (2, 1)), np.tile(2 - 2 * HALF, (2, 1))))
BAD = {
    "a failed row, apparent": (lambda: estimate.apparent(FAILED), "got 1 failed of 6 for Mean()"),
    "a failed row, held out": (lambda: estimate.hold_out(FAILED), "got 1 failed of 6"),
    "a failed row, cross-validated": (
        lambda: estimate.cross_validation(losses(resample.k_fold(KEY, N, 4), failed=[0])),
        "got 1 failed of 4",
    ),
    "a failed row, quantile": (lambda: estimate.quantile(FAILED, 0.5), "got 1 failed of 6"),
    "rows only": (
        lambda: estimate.hold_out(replace(LEFT_OUT, values=None)),
        "expected the losses of every case, got the means of rows only (resample.leave_out(",
    ),
    "trained on": (
        lambda: estimate.hold_out(TRAINED_ON),
        "expected test cases held out of the training, got some that were trained on; "
        "use a plan that leaves its test cases out, or estimate.apparent (resample.full(20))",
    ),
    "trained on, cross-validated": (
        lambda: estimate.cross_validation(TRAINED_ON),
        "held out of the training, got some that were trained on",
    ),
    "tested twice": (lambda: estimate.hold_out(TWICE), "some that count more than once; give test weights of 0 and 1"),
    "one row, quantile": (
        lambda: estimate.quantile(losses(HELD_OUT["one row"]), 0.5),
        "at least 2 resamplings to describe a distribution, got 1",
    ),
    "share as a percentage": (
        lambda: estimate.quantile(LEFT_OUT, 95.0),
        "p to be a number of at least 0 and of at most 1, got 95.0",
    ),
    "share NaN": (
        lambda: estimate.quantile(LEFT_OUT, float("nan")),
        "p to be a number of at least 0 and of at most 1, got nan",
    ),
    "level 1": (
        lambda: estimate.quantile(LEFT_OUT, 0.5, level=1.0),
        "level to be a number above 0 and below 1, got 1.0; give 0.95 for 95 %",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match="expected .*got .*;") as caught:
        call()
    assert message in str(caught.value)
