"""Bootstrap, split/train, jackknife and subsampling: against closed forms, every sample there is, SciPy and
scikit-learn.
"""

import itertools
import math
from dataclasses import replace

import jax
import numpy as np
import pytest
import scipy.stats
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import PredefinedSplit, cross_val_score

from jaxgen import loss, resample
from jaxgen.stats import estimate
from jaxgen.types import Losses

KEY = jax.random.key(0)
N = 40
EXACT = {"rtol": 1e-12, "atol": 1e-14}
"""Sums of at most some thousand numbers near 1 in another order."""
DRAWN = {"rtol": 0.05}
"""Standard deviations of 20,000 draws: their own standard error is sqrt((kurtosis - 1) / 80,000), less than 0.8 % for
a kurtosis below 6; six times that.
"""
B = 20_000


def draws(*shape, seed=0):
    """Skewed values, as squared errors are."""
    return np.random.default_rng(seed).gamma(2.0, 0.5, size=shape)


def losses(plan, sets=None, values=None, failed=()):
    values = draws(*(() if sets is None else (sets,)), plan.resamples, plan.n) if values is None else values
    test, train = (
        (weights * values).sum(-1) / weights.sum(-1) for weights in (plan.test.astype(float), plan.train.astype(float))
    )
    failure = np.zeros(test.shape, np.uint8)
    failure[..., list(failed)] = 1
    return Losses(test, train, plan, "Mean()", "squared", failure, ("it did not converge",), values)


def spread(values, axis=-1):
    return np.var(values, axis=axis)


STATISTICS = pytest.mark.parametrize("statistic", [np.mean, np.median, np.max, spread])
SETS = pytest.mark.parametrize("sets", [None, 3], ids=["one set", "sets"])


# bootstrap (Algorithm 1)


@STATISTICS
def test_the_bootstrap_is_that_of_every_sample_there_is(statistic):
    """All 5^5 samples of five values."""
    values = draws(5)
    every = statistic(values[np.array(list(itertools.product(range(5), repeat=5)))], axis=-1)
    got = estimate.bootstrap(values, seed=1, statistic=statistic, resamples=B, level=0.8)
    np.testing.assert_allclose(got.standard_error, every.std(), **DRAWN)
    np.testing.assert_allclose(got.parts["average"], every.mean(), atol=6 * every.std() / math.sqrt(B))
    np.testing.assert_allclose(
        [got.lower, got.upper], np.quantile(every, [0.1, 0.9]), atol=0.05 * np.ptp(every)
    )  # the values of small samples are few and far between
    assert got.estimate == statistic(values)
    assert got.unit == statistic.__name__


def test_the_bootstrap_of_a_mean_has_its_closed_form():
    values = draws(4, 30)
    got = estimate.bootstrap(values, seed=2, resamples=B)
    np.testing.assert_allclose(got.standard_error, np.sqrt(29 / 30**2 * values.var(-1, ddof=1)), **DRAWN)
    np.testing.assert_allclose(got.estimate, values.mean(-1), **EXACT)


def test_the_bootstrap_is_that_of_scipy():
    values = draws(3, 25)
    got = estimate.bootstrap(values, seed=4, statistic=np.median, resamples=500, level=0.9)
    want = scipy.stats.bootstrap(
        (values,),
        np.median,
        axis=-1,
        n_resamples=500,
        confidence_level=0.9,
        method="percentile",
        random_state=np.random.default_rng(4),
    )
    for name, number in {
        "standard_error": want.standard_error,
        "lower": want.confidence_interval.low,
        "upper": want.confidence_interval.high,
    }.items():
        np.testing.assert_allclose(getattr(got, name), number, **EXACT)


@pytest.mark.parametrize("n", [10, 3000])
def test_a_seed_gives_its_numbers_for_each_set_alone(n):
    """Whatever the batches; 700 replicates of 3 sets of 3000 values take six of them."""
    values = draws(3, n)
    together = estimate.bootstrap(values, seed=5, resamples=700)
    for q in range(3):
        np.testing.assert_allclose(
            estimate.bootstrap(values[q], seed=5, resamples=700).standard_error, together.standard_error[q], **EXACT
        )
    assert estimate.bootstrap(values[0], seed=6, resamples=700).standard_error != together.standard_error[0]


# row_losses and bootstrap_test_cases (Algorithm 5)

PLANS = {
    "leave_out": resample.leave_out(KEY, N, 0.25, 6),
    "k_fold": resample.k_fold(KEY, N, 3, 2),
    "bootstrap": resample.bootstrap(KEY, N, 6),
    "splits of each set": resample.leave_out(KEY, N, 0.4, 6, sets=3),
    "unequal test sets of each set": resample.bootstrap(KEY, N, 6, sets=3),
}


@SETS
@pytest.mark.parametrize("name", PLANS)
def test_algorithm_5_is_algorithm_1_on_the_test_cases_of_one_row(name, sets):
    plan = PLANS[name] if PLANS[name].sets is None or sets else PLANS[name][0]
    of = losses(plan, sets)
    got = estimate.bootstrap_test_cases(of, seed=3, row=2, statistic=np.median, resamples=200, level=0.9)
    for q, one in enumerate([of] if sets is None else [of[q] for q in range(sets)]):
        cases = one.values[2][one.plan.test[2] > 0]
        np.testing.assert_array_equal(estimate.row_losses(one, row=2), cases)
        want = estimate.bootstrap(cases, seed=3, statistic=np.median, resamples=200, level=0.9)
        for number in ("estimate", "standard_error", "lower", "upper"):
            assert np.ravel(getattr(got, number))[q] == getattr(want, number)
        assert np.ravel(got.parts["average"])[q] == want.parts["average"]
    assert got.unit == "median of the squared loss"
    assert got.estimate.shape == (() if sets is None else (sets,))


def test_algorithm_5_of_the_mean_loss_is_hold_out_with_the_bootstrap_error():
    of = losses(PLANS["leave_out"])
    got = estimate.bootstrap_test_cases(of, seed=3, row=4, resamples=B)
    cases = estimate.row_losses(of, row=4)
    np.testing.assert_allclose(got.estimate, of.g[4], **EXACT)
    np.testing.assert_allclose(got.standard_error, scipy.stats.sem(cases) * math.sqrt(9 / 10), **DRAWN)
    assert (got.unit, got.learner, got.target) == (
        "squared loss",
        "Mean()",
        "the risk of the one model that this row trained",
    )
    assert "knows this split only" in str(got)


# split_train (Algorithm 4)


def test_split_train_is_average_and_deviation_of_the_scores_of_scikit_learn():
    random = np.random.default_rng(0)
    x = random.normal(size=(N, 3))
    y = x @ np.ones(3) + random.normal(size=N)
    plan = PLANS["leave_out"]
    predictions = np.stack([LinearRegression().fit(x[train > 0], y[train > 0]).predict(x) for train in plan.train])
    got = estimate.split_train(Losses.from_predictions(y, predictions, plan.train, plan.test, loss.squared))
    scores = [
        -cross_val_score(
            LinearRegression(), x, y, scoring="neg_mean_squared_error", cv=PredefinedSplit(test.astype(int) - 1)
        ).item()
        for test in plan.test
    ]
    np.testing.assert_allclose(
        got.estimate, np.mean(scores), rtol=1e-10
    )  # two solutions of a small least-squares problem
    np.testing.assert_allclose(got.parts["std"], np.std(scores, ddof=1), rtol=1e-10)
    np.testing.assert_allclose(got.parts["monte carlo error"], scipy.stats.sem(scores), rtol=1e-10)
    assert np.isnan(got.standard_error)


def test_splits_of_one_data_set_vary_less_than_the_bootstrap_says():
    """A model that does not depend on its training: every row has the same losses, of which it tests other ones."""
    plan = resample.leave_out(KEY, N, 0.25, B // 2)
    cases = draws(N)
    of = losses(plan, values=np.broadcast_to(cases, (B // 2, N)))
    np.testing.assert_allclose(
        estimate.split_train(of).parts["std"], cases.std(ddof=1) * math.sqrt(1 / 10 - 1 / N), **DRAWN
    )


def test_split_train_warns():
    few = losses(PLANS["leave_out"])
    assert "the tutorial asks for some 500 splits, these are 6" in estimate.split_train(few).note
    many = losses(resample.leave_out(KEY, N, 0.25, 500))
    assert "tutorial" not in estimate.split_train(many).note
    assert estimate.split_train(many).parts["outlying"] == 0
    left = losses(PLANS["leave_out"], failed=[3, 5]).without_failed()
    for got in (estimate.split_train(left), estimate.mixed(left, seed=1, resamples=50)):
        assert "2 failed rows were left out" in got.note
    assert "the tutorial asks for 5 to 10 splits, these are 4" in got.note
    values = draws(3, 500, N)
    values[1, [3, 77]] += 30
    got = estimate.split_train(losses(many.plan, 3, values))
    assert got.parts["outlying"].tolist() == [0, 2, 0]
    assert "some rows may not have converged" in got.note
    noisy = replace(many, train_mean=1 + 1e-15 * draws(500))
    assert estimate.split_train(noisy).parts["outlying"] == 0


@pytest.mark.parametrize(
    ("errors", "outlying"),
    [
        ([1, 2, 3, 4, 9.99], 0),  # quartiles 2 and 4, so the outer fence is 4 + 3 * 2 = 10
        ([1, 2, 3, 4, 10], 0),
        ([1, 2, 3, 4, 10.01], 1),
        ([-100, 2, 3, 4, 5], 0),  # far below is no sign of trouble
        ([10, 3, 4.5, 1, 30, 4, 2, 3.5, 2.5], 1),  # quartiles 2.5 and 4.5: fence 10.5
        ([2, 2, 2, 2, 2.001], 1),
    ],
)
def test_rows_above_tukeys_outer_fence_are_counted(errors, outlying):
    plan = resample.leave_out(KEY, N, 0.25, len(errors))
    got = estimate.split_train(replace(losses(plan), train_mean=np.array(errors, float)))
    assert got.parts["outlying"] == outlying
    assert ("may not have converged" in got.note) is bool(outlying)


# mixed


@SETS
@pytest.mark.parametrize("name", PLANS)
def test_the_mixed_approach_is_algorithm_5_on_every_split(name, sets):
    plan = PLANS[name] if PLANS[name].sets is None or sets else PLANS[name][0]
    of = losses(plan, sets)
    got = estimate.mixed(of, seed=3, resamples=100)
    rows = [estimate.bootstrap_test_cases(of, seed=3, row=row, resamples=100) for row in range(6)]
    np.testing.assert_array_equal(got.estimates, np.stack([row.estimate for row in rows], -1))
    np.testing.assert_array_equal(got.deviations, np.stack([row.standard_error for row in rows], -1))
    np.testing.assert_allclose(got.estimate, of.g.mean(-1), **EXACT)
    np.testing.assert_allclose(got.standard_error, np.sqrt(np.mean(got.deviations**2, -1)), **EXACT)
    np.testing.assert_allclose(got.parts["between"], of.g.std(-1, ddof=1), **EXACT)
    frame = got.to_frame()
    np.testing.assert_array_equal(frame["estimate"], np.ravel(got.estimates))
    np.testing.assert_array_equal(frame["agree"], np.repeat(np.ravel(got.agree), 6))
    assert len(frame) == 6 * (sets or 1)
    assert ("the splits agree in" in str(got)) is (sets is not None)


def test_the_rule_is_analysis_of_variance_and_the_test_of_brown_and_forsythe():
    of = losses(resample.k_fold(KEY, N, 5))
    rows = [estimate.row_losses(of, row=row) for row in range(5)]
    got = estimate.mixed(of, seed=3, resamples=B).parts
    statistic, p = scipy.stats.f_oneway(*rows)
    np.testing.assert_allclose(
        scipy.stats.f.isf(got["p of means"], 4, 35), statistic, rtol=0.05
    )  # variances of 20,000 draws in the place of the exact ones
    np.testing.assert_allclose(got["p of means"], p, rtol=0.1)
    np.testing.assert_allclose(got["p of deviations"], scipy.stats.levene(*rows, center="median").pvalue, **EXACT)


def test_a_split_that_is_not_like_the_others_is_found():
    """The tutorial's example: one split happens to test the old on a model of the young."""
    plan = resample.k_fold(KEY, 200, 5)
    values = draws(2, 5, 200)
    values[1, 2] *= 4
    got = estimate.mixed(losses(plan, 2, values), seed=3, resamples=200)
    assert got.agree.tolist() == [True, False]
    assert (got.note, estimate.mixed(losses(plan, values=values[0]), seed=3, resamples=200).note) == (
        "the splits do not agree, so the result is of the split as much as of the learner",
        "",
    )
    assert "the splits do not agree: the result depends on the split" in str(
        estimate.mixed(losses(plan, values=values[1]), seed=3, resamples=200)
    )
    moved = draws(5, 200)
    moved[2] += 1.0
    only_means = estimate.mixed(losses(plan, values=moved), seed=3, resamples=200).parts
    assert only_means["p of means"] < 1e-6 < 0.01 < only_means["p of deviations"]
    wider = np.random.default_rng(1).normal(size=(5, 200)) * np.array([1, 1, 3, 1, 1])[:, None]
    only_spread = estimate.mixed(losses(plan, values=wider), seed=3, resamples=200).parts
    assert only_spread["p of deviations"] < 1e-6 < 0.01 < only_spread["p of means"]
    assert not estimate.mixed(losses(plan, 2, np.stack([moved, wider])), seed=3, resamples=200).agree.any()


@pytest.mark.parametrize("overlap", [False, True], ids=["disjoint", "overlapping"])
def test_equal_splits_are_called_unequal_no_more_often_than_promised(overlap):
    """200 data sets of squared Gaussian errors, against the most that 5 % leaves once in a million."""
    plan = resample.leave_out(KEY, 80, 0.25, 5) if overlap else resample.k_fold(KEY, 100, 5)
    cases = np.random.default_rng(2).normal(size=(200, 1, plan.n)) ** 2
    got = estimate.mixed(losses(plan, 200, np.broadcast_to(cases, (200, 5, plan.n))), seed=3, resamples=100)
    assert np.sum(~got.agree) <= scipy.stats.binom.isf(1e-6, 200, 0.05)


# jackknife


@SETS
def test_the_jackknife_of_a_mean_is_the_textbook_error(sets):
    values = draws(30) if sets is None else draws(sets, 30)
    got = estimate.jackknife(values)
    np.testing.assert_allclose(got.standard_error, scipy.stats.sem(values, axis=-1), **EXACT)
    np.testing.assert_allclose(got.parts["std of samples"], values.std(-1, ddof=1) / 29, **EXACT)
    np.testing.assert_allclose(got.parts["bias"], 0, atol=1e-12)
    assert got.note == ""


def test_the_jackknife_removes_the_bias_of_a_variance():
    values = draws(3, 30)
    got = estimate.jackknife(values, statistic=spread)
    np.testing.assert_allclose(got.estimate - got.parts["bias"], values.var(-1, ddof=1), **EXACT)
    assert got.note == ""


def test_the_jackknife_fails_for_the_median_and_says_so():
    """Of an even number of values it knows the two in the middle only; its variance is twice too large on average (a
    squared chi-squared of 2 degrees of freedom, over 4).

    2000 data sets; the relative variance of that law is 5, so six standard errors of the mean are 30 %; 2 holds for
    large N only.
    """
    values = np.random.default_rng(3).normal(size=(2000, 100))
    got = estimate.jackknife(values, statistic=np.median)
    middle = np.sort(values)[:, 49:51]
    np.testing.assert_allclose(
        got.standard_error, np.sqrt(99) / 2 * np.ptp(middle, axis=-1), rtol=1e-9
    )  # differences of medians near 0
    assert np.mean(got.standard_error**2) / np.median(values, axis=-1).var() == pytest.approx(2, rel=0.3)
    assert "leaving one value out gives few different results" in got.note
    fixed = [
        estimate.bootstrap(row, seed=1, statistic=np.median, resamples=200).standard_error ** 2 for row in values[:300]
    ]
    assert np.mean(fixed) / np.median(values, axis=-1).var() == pytest.approx(
        1.1, abs=0.3
    )  # the bootstrap is right for large N, and a little too large at 100


# subsampling


@STATISTICS
@pytest.mark.parametrize("size", [1, 4, 7])
def test_subsampling_is_that_of_every_sample_there_is(size, statistic):
    values = draws(8)
    every = np.array([statistic(values[list(chosen)]) for chosen in itertools.combinations(range(8), size)])
    got = estimate.subsampling(values, size, seed=1, statistic=statistic, resamples=B)
    np.testing.assert_allclose(got.parts["std of samples"], every.std(), **DRAWN)
    np.testing.assert_allclose(got.parts["average"], every.mean(), atol=1e-15 + 6 * every.std() / math.sqrt(B))
    assert got.estimate == statistic(values)


def test_the_deviation_of_subsamples_depends_on_their_size_and_the_standard_error_does_not():
    values = draws(2, N)
    for size in (1, 10, 30, N - 1):
        got = estimate.subsampling(values, size, seed=1, resamples=B)
        np.testing.assert_allclose(
            got.parts["std of samples"], values.std(-1, ddof=1) * math.sqrt(1 / size - 1 / N), **DRAWN
        )
        np.testing.assert_allclose(got.standard_error, scipy.stats.sem(values, axis=-1), **DRAWN)
    assert "is that of 39 values of 40, and no standard error" in got.note


@STATISTICS
def test_leaving_one_value_out_at_random_is_the_jackknife(statistic):
    values = draws(9)
    np.testing.assert_allclose(
        estimate.subsampling(values, 8, seed=2, statistic=statistic, resamples=B).standard_error,
        estimate.jackknife(values, statistic=statistic).standard_error,
        **DRAWN,
    )


def test_subsamples_of_each_set_alone():
    values = draws(3, 12)
    together = estimate.subsampling(values, 5, seed=4, resamples=50)
    np.testing.assert_allclose(
        [estimate.subsampling(row, 5, seed=4, resamples=50).standard_error for row in values],
        together.standard_error,
        **EXACT,
    )


# Degenerate and bad input

CONSTANT = np.full((5, N), 0.1)
TWO_VALUES = np.repeat([[0.0, 1.0]], 5, axis=0).repeat(N // 2, axis=1)
FOLDS = resample.k_fold(KEY, N, 5)
UNEQUAL = resample.k_fold(KEY, N, 3)
LEVELS = np.arange(5.0)[:, None] + np.zeros(N)


def verdict(plan, values):
    got = estimate.mixed(losses(plan, values=values), seed=1, resamples=50)
    return [float(got.parts["p of means"]), float(got.parts["p of deviations"]), bool(got.agree)]


DEGENERATE = {
    "bootstrap of equal values": (lambda: estimate.bootstrap(CONSTANT[0], seed=1, resamples=50).standard_error, 0),
    "jackknife of equal values": (lambda: estimate.jackknife(CONSTANT[0]).standard_error, 0),
    "subsampling of equal values": (
        lambda: estimate.subsampling(CONSTANT[0], 3, seed=1, resamples=50).standard_error,
        0,
    ),
    "two values are enough": (lambda: estimate.jackknife(np.array([1.0, 3.0])).standard_error, 1),
    "equal losses agree": (lambda: verdict(FOLDS, CONSTANT), [1, 1, True]),
    "losses equal but for rounding agree": (
        lambda: verdict(FOLDS, CONSTANT + 1e-16 * np.arange(5)[:, None]),
        [1, 1, True],
    ),
    "equal losses of test sets of several sizes agree": (lambda: verdict(UNEQUAL, CONSTANT[:3]), [1, 1, True]),
    "losses equal within splits that differ do not": (lambda: verdict(FOLDS, LEVELS), [0, 1, False]),
    "errors of 0 and 1 are compared by their means": (lambda: verdict(FOLDS, TWO_VALUES)[1:], [1, True]),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_cases_have_documented_values(case):
    call, want = DEGENERATE[case]
    np.testing.assert_allclose(call(), want, atol=1e-15)  # a mean of 0.1s is 0.1 to rounding


VALUES = draws(10)
LEFT_OUT = losses(PLANS["leave_out"])
FAILED = losses(PLANS["leave_out"], failed=[2])
RESAMPLES = (
    "expected resamples to be a whole number from 2 to 100000000 (what fits into memory), got 1; give such a number"
)
BAD = {
    "a statistic of all axes": (
        lambda: estimate.bootstrap(VALUES, seed=1, statistic=lambda values, axis: values.mean()),
        "expected a statistic that takes away the last axis of values [2, 10], got shape [] from <lambda>; "
        "let it heed its argument axis",
    ),
    "a statistic without an axis": (
        lambda: estimate.jackknife(VALUES, statistic=lambda values: values.mean()),
        "a statistic that is called as statistic(values, axis=-1), got <lambda>, which stops with TypeError: ",
    ),
    "one value": (
        lambda: estimate.bootstrap(VALUES[:1], seed=1),
        "at least 2 values to resample, got 1; give one per case",
    ),
    "a number": (lambda: estimate.jackknife(VALUES[0]), "at least 2 values to resample, got a single number"),
    "NaN": (
        lambda: estimate.subsampling(np.append(VALUES, np.nan), 2, seed=1),
        "finite values, got 1 that are not, of 11; leave them out first",
    ),
    "infinite": (lambda: estimate.jackknife(np.append(VALUES, np.inf)), "finite values, got 1 that are not"),
    "one resample": (lambda: estimate.bootstrap(VALUES, seed=1, resamples=1), RESAMPLES),
    "one subsample": (lambda: estimate.subsampling(VALUES, 2, seed=1, resamples=1), RESAMPLES),
    "no values in a subsample": (
        lambda: estimate.subsampling(VALUES, 0, seed=1),
        "expected size to be a whole number from 1 to 9 (one less than the values), got 0",
    ),
    "all values in a subsample": (
        lambda: estimate.subsampling(VALUES, 10, seed=1),
        "expected size to be a whole number from 1 to 9 (one less than the values), got 10",
    ),
    "level as a percentage": (
        lambda: estimate.bootstrap(VALUES, seed=1, level=95.0),
        "level to be a number above 0 and below 1, got 95.0",
    ),
    "no such row": (
        lambda: estimate.bootstrap_test_cases(LEFT_OUT, seed=1, row=6),
        "expected row to be a whole number from 0 to 5 (the rows of the plan), got 6; give such a number",
    ),
    "several sets": (
        lambda: estimate.row_losses(losses(PLANS["leave_out"], 3)),
        "expected the losses of one data set, got those of 3; choose one with losses[q]",
    ),
    "a failed row": (lambda: estimate.bootstrap_test_cases(FAILED, seed=1), "got 1 failed of 6 for Mean()"),
    "a failed split": (lambda: estimate.split_train(FAILED), "got 1 failed of 6"),
    "a failed row among several": (lambda: estimate.mixed(FAILED, seed=1), "got 1 failed of 6"),
    "rows only": (
        lambda: estimate.mixed(replace(LEFT_OUT, values=None), seed=1),
        "losses of every case, got the means of rows only (resample.leave_out(",
    ),
    "trained on": (
        lambda: estimate.bootstrap_test_cases(losses(resample.full(N)), seed=1),
        "held out of the training, got some that were trained on",
    ),
    "trained on in splits": (
        lambda: estimate.split_train(losses(resample.stack([resample.full(N)])[0])),
        "held out of the training, got some that were trained on",
    ),
    "one split": (
        lambda: estimate.split_train(losses(resample.leave_out(KEY, N, 0.5, 1))),
        "expected the rows of losses to be a whole number of at least 2, got 1",
    ),
    "one split to compare": (
        lambda: estimate.mixed(losses(resample.leave_out(KEY, N, 0.5, 1)), seed=1),
        "expected the rows of losses to be a whole number of at least 2, got 1",
    ),
    "two test cases": (
        lambda: estimate.mixed(losses(resample.leave_out(KEY, N, 0.05, 4)), seed=1),
        "expected the test cases of each row to be a whole number of at least 3, got 2",
    ),
    "one test case": (
        lambda: estimate.bootstrap_test_cases(losses(resample.leave_one_out(N)), seed=1),
        "at least 2 values to resample, got 1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match="expected .*got .*;") as caught:
        call()
    assert message in str(caught.value)
