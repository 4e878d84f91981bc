"""Tests of one learner against another: against SciPy, the formula, a published example, and the size that they should have."""

import math

import jax
import numpy as np
import pytest
import scipy.stats
from sklearn.datasets import make_moons
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.svm import SVC

from jaxgen import Data, assess, learn, loss, resample
from jaxgen.stats import compare
from jaxgen.types import Losses

pytestmark = pytest.mark.one_device

KEY, OTHER = jax.random.key(0), jax.random.key(1)
ALTERNATIVES = pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
EXACT = {"rtol": 1e-12, "atol": 1e-13}
"""The same few operations in another order; the atol is for p-values and limits near 0 among numbers near 1."""


def losses(g, plan, learner="first", loss="squared", failed=()):
    """Losses whose rows have the test means g."""
    g = np.asarray(g, np.float64)
    failure = np.zeros(g.shape, np.uint8)
    failure[..., list(failed)] = 1
    return Losses(g, g, plan, learner, loss, failure, ("it did not converge",))


def pair(plan, seed=0, sets=None, ties=False):
    """Losses of two learners, the second a little worse; with ties many differences are 0."""
    random = np.random.default_rng(seed)
    shape = (plan.resamples,) if sets is None else (sets, plan.resamples)
    g = random.gamma(4.0, 0.5, size=(2, *shape))
    g[1] += 0.2
    g = np.round(g) if ties else g
    return losses(g[0], plan), losses(g[1], plan, "second")


def leave_out(resamples, n=20):
    return resample.leave_out(KEY, n, 0.25, resamples)


# paired_t


@ALTERNATIVES
@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("sets", [None, 4], ids=["one set", "sets"])
def test_paired_t_is_that_of_scipy(alternative, level, sets):
    first, second = pair(leave_out(30), sets=sets)
    got = compare.paired_t(first, second, alternative, level)
    want = scipy.stats.ttest_rel(second.g, first.g, axis=-1, alternative=alternative)
    interval = want.confidence_interval(level)
    np.testing.assert_allclose(got.statistic, want.statistic, **EXACT)
    np.testing.assert_allclose(got.p_value, want.pvalue, **EXACT)
    np.testing.assert_allclose(got.lower, interval.low, **EXACT)
    np.testing.assert_allclose(got.upper, interval.high, **EXACT)
    np.testing.assert_allclose(got.estimate, (second.g - first.g).mean(-1), **EXACT)
    np.testing.assert_allclose(got.standard_error, scipy.stats.sem(second.g - first.g, axis=-1), **EXACT)
    assert got.df == 29
    assert got.statistic.shape == got.lower.shape == ((4,) if sets else ())


def test_paired_t_warns_of_shared_cases():
    warned = {name: bool(compare.paired_t(*pair(plan)).note) for name, plan in PLANS.items()}
    assert warned == {name: name != "task instances of their own" for name in PLANS}
    assert compare.paired_t(*pair(leave_out(5))).note.startswith("the resamplings share cases, so this standard error is too small and the rate of false rejections has no upper limit")


PLANS = {
    "leave_out": leave_out(5),
    "k_fold": resample.k_fold(KEY, 20, 5),
    "two folds": resample.k_fold(KEY, 20, 2),  # what one row trains on, the other is tested on
    "leave_one_out": resample.leave_one_out(20),
    "bootstrap": resample.bootstrap(KEY, 20, 5),
    "task instances with common test cases": resample.task_instances(40, 5, instances=4, common=True),
    "task instances of their own": resample.task_instances(40, 5, instances=4),
}


# corrected_t


@ALTERNATIVES
@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("sets", [None, 4], ids=["one set", "sets"])
def test_corrected_t_is_the_formula(alternative, level, sets):
    first, second = pair(leave_out(25), sets=sets)  # n2/n1 = 5/15
    got = compare.corrected_t(first, second, alternative, level)
    difference = second.g - first.g
    error = np.sqrt((1 / 25 + 5 / 15) * np.var(difference, axis=-1, ddof=1))
    law = scipy.stats.t(24, loc=difference.mean(-1), scale=error)
    below = law.cdf(0)  # of the law around the estimate, so the p-value of "greater"
    np.testing.assert_allclose(got.standard_error, error, **EXACT)
    np.testing.assert_allclose(got.statistic, difference.mean(-1) / error, **EXACT)
    np.testing.assert_allclose(got.p_value, {"greater": below, "less": 1 - below, "two-sided": 2 * np.minimum(below, 1 - below)}[alternative], **EXACT)
    tail = (1 - level) / 2 if alternative == "two-sided" else 1 - level
    np.testing.assert_allclose(got.lower, np.full_like(error, -np.inf) if alternative == "less" else law.ppf(tail), **EXACT)
    np.testing.assert_allclose(got.upper, np.full_like(error, np.inf) if alternative == "greater" else law.ppf(1 - tail), **EXACT)
    assert got.df == 24
    assert not got.note


def test_corrected_t_gives_the_numbers_that_scikit_learn_publishes():
    """ "Statistical comparison of models using grid search": support vector machines, 10 times 10 folds of 100 cases, areas under the ROC curve."""
    x, y = make_moons(noise=0.352, random_state=1, n_samples=100)
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
    test = np.zeros((100, 100), bool)
    for row, (_, cases) in enumerate(folds.split(x, y)):
        test[row, cases] = True
    plan = resample.from_weights(~test, test)
    linear, rbf = (losses(cross_val_score(SVC(kernel=kernel), x, y, scoring="roc_auc", cv=folds), plan, kernel) for kernel in ("linear", "rbf"))
    corrected, naive = (test_of(linear, rbf, "greater") for test_of in (compare.corrected_t, compare.paired_t))
    assert [f"{v:.3f}" for v in (corrected.statistic, corrected.p_value)] == ["0.750", "0.227"]
    assert [f"{v:.3f}" for v in (naive.statistic, naive.p_value)] == ["2.611", "0.005"]
    for level, limits in {0.5: ("0.000977", "0.019023"), 0.75: ("-0.005422", "0.025422"), 0.95: ("-0.016445", "0.036445")}.items():
        interval = compare.corrected_t(linear, rbf, level=level)
        assert (f"{interval.lower:.6f}", f"{interval.upper:.6f}") == limits


def test_more_resamples_cannot_buy_significance():
    """The square of the error, in units of S^2, is n2/n1 + 1/R: 1/3 at least."""
    for resamples in (10, 100, 15_000):
        first, second = pair(leave_out(resamples))
        error, s = compare.corrected_t(first, second).standard_error, np.std(second.g - first.g, ddof=1)
        np.testing.assert_allclose((error / s) ** 2, 1 / 3 + 1 / resamples, rtol=1e-12)
    np.testing.assert_allclose(error, s * math.sqrt(1 / 3), rtol=1.01e-4)  # 1.5 / 15,000
    np.testing.assert_allclose(compare.paired_t(first, second).standard_error, s / math.sqrt(15_000), rtol=1e-12)


def test_corrected_t_is_paired_t_where_next_to_nothing_is_left_out():
    n = 40_000
    test = np.zeros((3, n), np.uint8)
    test[[0, 1, 2], [0, 1, 2]] = 1
    first, second = pair(resample.from_weights(1 - test, test))
    corrected, naive = compare.corrected_t(first, second), compare.paired_t(first, second)
    for name in ("estimate", "standard_error", "statistic", "p_value", "lower", "upper"):  # sqrt(1 + 3 n2/n1) - 1 = 3.8e-5
        np.testing.assert_allclose(getattr(corrected, name), getattr(naive, name), rtol=4e-4)
    np.testing.assert_allclose(corrected.standard_error / naive.standard_error, math.sqrt(1 + 3 / (n - 1)), rtol=1e-12)


def test_corrected_t_takes_the_mean_of_unequal_ratios_and_says_so():
    first, second = pair(resample.k_fold(KEY, 20, folds=3))  # 7, 7 and 6 of 20 are tested
    got = compare.corrected_t(first, second)
    ratio = (7 / 13 + 7 / 13 + 6 / 14) / 3
    np.testing.assert_allclose(got.standard_error, math.sqrt((1 / 3 + ratio) * np.var(second.g - first.g, ddof=1)), **EXACT)
    assert got.note == "n2/n1 differs between rows (0.429 to 0.538); its mean was used"


def test_corrected_t_with_splits_of_their_own_for_each_set():
    test = np.zeros((2, 4, 20), np.uint8)
    test[0, :, :5], test[1, :, :10] = 1, 1
    first, second = pair(resample.from_weights(1 - test, test), sets=2)
    got = compare.corrected_t(first, second)
    np.testing.assert_allclose(got.standard_error, np.sqrt([1 / 4 + 5 / 15, 1 / 4 + 1]) * np.std(second.g - first.g, axis=-1, ddof=1), **EXACT)
    for q in range(2):
        assert compare.corrected_t(first[q], second[q]).p_value == pytest.approx(got.p_value[q], rel=1e-12)


# Both tests

TESTS = pytest.mark.parametrize("test", [compare.paired_t, compare.corrected_t])


@TESTS
@ALTERNATIVES
def test_no_difference_at_all_is_no_evidence(test, alternative):
    first, _ = pair(leave_out(10))
    got = test(first, first, alternative)
    assert (got.estimate, got.standard_error, got.statistic, got.p_value) == (0, 0, 0, 1)
    assert got.lower == (-math.inf if alternative == "less" else 0)
    assert got.upper == (math.inf if alternative == "greater" else 0)


@TESTS
def test_one_difference_in_all_rows_is_all_evidence(test):
    """0.1 in each of three rows, whose mean is a rounding above 0.1: the deviations from it are no variance to divide by."""
    first, second = losses(np.zeros(3), leave_out(3)), losses(np.full(3, 0.1), leave_out(3), "second")
    assert second.g.mean() != 0.1
    got = test(first, second)
    assert (got.standard_error, got.statistic, got.p_value) == (0, math.inf, 0)
    assert got.estimate == got.lower == got.upper == pytest.approx(0.1)
    assert test(second, first).statistic == -math.inf
    assert test(first, second, "greater").p_value == 0
    assert test(first, second, "less").p_value == 1
    assert test(second, first, "less").p_value == 0


@TESTS
@ALTERNATIVES
def test_several_data_sets_are_compared_each(test, alternative):
    first, second = pair(leave_out(12), sets=5)
    together = test(first, second, alternative)
    for q in range(5):
        alone = test(first[q], second[q], alternative)
        for name in ("estimate", "standard_error", "statistic", "p_value", "lower", "upper"):
            np.testing.assert_allclose(getattr(together, name)[q], getattr(alone, name), **EXACT)


@TESTS
def test_order_and_alternative_mirror_each_other(test):
    first, second = pair(leave_out(12))
    there, back = test(first, second, "greater"), test(second, first, "less")
    np.testing.assert_allclose([there.p_value, there.estimate, there.lower], [back.p_value, -back.estimate, -back.upper], **EXACT)


@TESTS
def test_a_comparison_says_what_it_is(test):
    first, second = pair(leave_out(12))
    got = test(first, second, level=0.9)
    text = str(got)
    for part in (got.method, got.source, "G of second minus G of first", "90% interval [", "11 degrees of freedom", "(two-sided)", "about the mean difference over training sets of this size"):
        assert part in text
    assert ("beware: the resamplings share cases" in text) is (test is compare.paired_t)
    frame = got.to_frame()
    assert len(frame) == 1
    assert frame.loc[0, ["p_value", "df", "level", "first"]].tolist() == [got.p_value, 11, 0.9, "first"]


@TESTS
def test_a_comparison_of_many_sets_says_how_many_were_rejected(test):
    plan = leave_out(12)
    g = np.random.default_rng(0).normal(size=(4, 12))
    shift = np.array([[0.0], [100.0], [100.0], [0.0]])
    got = test(losses(g, plan), losses(g[::-1] + shift, plan, "second"))
    assert "4 data sets" in str(got)
    assert "no difference rejected at 0.05 in 50.0% of them" in str(got)
    assert len(got.to_frame()) == 4


# probability_greater


@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "ties"])
@pytest.mark.parametrize("sets", [None, 3], ids=["one set", "sets"])
def test_probability_greater_is_what_counting_gives(ties, sets):
    first, second = pair(leave_out(23), sets=sets, ties=ties)
    for a, b, paired, unpaired in zip(*(np.atleast_2d(one.g) for one in (first, second)), *(np.atleast_1d(compare.probability_greater(first, second, p)) for p in (True, False)), strict=True):
        assert paired == pytest.approx(sum(1.0 if v > u else 0.5 if v == u else 0.0 for u, v in zip(a, b, strict=True)) / 23, rel=1e-12)
        assert unpaired == pytest.approx(sum(1.0 if v > u else 0.5 if v == u else 0.0 for u in a for v in b) / 23**2, rel=1e-12)
        assert unpaired == pytest.approx(scipy.stats.mannwhitneyu(b, a).statistic / 23**2, rel=1e-12)
    assert compare.probability_greater(first, second).shape == (() if sets is None else (3,))


@pytest.mark.parametrize("paired", [True, False])
def test_probability_greater_of_equals_is_one_half(paired):
    first, second = pair(leave_out(23))
    assert compare.probability_greater(first, first, paired) == 0.5
    there, back = (compare.probability_greater(*two, paired) for two in ((first, second), (second, first)))
    assert there + back == pytest.approx(1.0)
    assert compare.probability_greater(losses([1.0, 2.0], leave_out(2)), losses([3.0, 4.0], leave_out(2)), paired) == 1


# Size


def test_the_naive_test_rejects_a_true_null_and_the_corrected_one_hardly_does():
    """300 data sets with two inputs of one distribution and one true weight: the learners that see one of them are equally good.

    Each limit is what a test of the named size would pass but once in a million: 5 % for the corrected test and,
    from the other side, 30 % for the naive one, whose variance is too small by the factor 1 + 99 * 1/4 or so.
    """
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 40, 2))
    data = Data(x, x.sum(-1, keepdims=True) + random.normal(size=(300, 40, 1)), ("a", "b"))
    plan = resample.leave_out(KEY, 40, 0.25, 100, sets=300)
    first, second = (assess(OTHER, learn.LeastSquares(intercept=False), data.select([i]), plan, keep="rows") for i in (0, 1))
    naive, corrected = (int((test(first, second).p_value < 0.05).sum()) for test in (compare.paired_t, compare.corrected_t))
    assert naive > scipy.stats.binom.isf(1e-6, 300, 0.30)
    assert corrected <= scipy.stats.binom.isf(1e-6, 300, 0.05)
    # both learners are worse in half of the data sets each
    low, high = scipy.stats.binom.interval(1 - 1e-6, 300, 0.5)
    assert low <= (second.g.mean(-1) > first.g.mean(-1)).sum() <= high


# Bad input

FIRST, SECOND = pair(leave_out(6))
ONE = pair(leave_out(1))
FAILED = losses(SECOND.g, leave_out(6), "second", failed=[1, 4])
ELSEWHERE = losses(SECOND.g, resample.leave_out(OTHER, 20, 0.25, 6), "second")
FEWER = losses(SECOND.g[:5], leave_out(5), "second")
EVERY = [compare.paired_t, compare.corrected_t, compare.probability_greater]


@pytest.mark.parametrize("test", EVERY)
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (*ONE, "at least 2 resamplings to compare learners, got 1; ask for more resamples"),
        (FIRST, FAILED, r"got 2 failed of 6 for second on .*row 1: it did not converge; row 4: .*without_failed"),
        (FAILED, FIRST, "got 2 failed of 6 for second"),
        (FIRST, ELSEWHERE, r"on the same resamplings, got resample.leave_out\(jax.random.key\(0\), .* and resample.leave_out\(jax.random.key\(1\).*; assess both with one plan"),
        (FIRST, FEWER, "on the same resamplings"),
        (FIRST, FAILED.without_failed(), r"on the same resamplings, got .* and .* without 2 failed rows"),
        (FIRST, losses(np.stack([SECOND.g] * 2), leave_out(6), "second"), "on the same resamplings"),
        (FIRST, losses(SECOND.g, leave_out(6), "second", "absolute"), "one loss for both learners, got squared and absolute; assess both with the same loss"),
    ],
    ids=["one resampling", "second failed", "first failed", "other splits", "fewer splits", "failed rows left out of one", "more data sets", "other loss"],
)
def test_what_cannot_be_compared_is_refused(test, first, second, message):
    with pytest.raises(ValueError, match=message):
        test(first, second)


@TESTS
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alternative": "larger"}, "the alternative two-sided, greater or less, got 'larger'; greater means that the second learner has the greater error"),
        ({"level": 0.0}, "level between 0 and 1, got 0.0; give 0.95 for 95 %"),
        ({"level": 1.0}, "level between 0 and 1, got 1.0"),
        ({"level": 95.0}, "level between 0 and 1, got 95.0"),
        ({"level": math.nan}, "level between 0 and 1, got nan"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused(test, options, message, own_messages):
    with pytest.raises(ValueError, match=message):
        test(FIRST, SECOND, **options)


HALF = np.repeat([[1, 0], [0, 1]], 10, axis=1)
REFUSED = {
    "bootstrap": (resample.bootstrap(KEY, 20, 6), r"got resample.bootstrap\(.*: cases drawn more than once \(a bootstrap\), for which no correction is known; use leave_out or k_fold"),
    "full": (resample.from_weights(np.ones((2, 20)), np.ones((2, 20))), "got given weights: rows tested on cases that they were trained on; use leave_out or k_fold"),
    "test cases trained on": (resample.from_weights(1 - HALF, np.ones((2, 20))), "rows tested on cases that they were trained on"),
    "test cases counted twice": (resample.from_weights(1 - HALF, 2 * HALF), "cases drawn more than once"),
    "nested_pairs": (resample.nested_pairs(KEY, 20, folds=4), "rows of several kinds in one design; use leave_out or k_fold"),
    "paired_halves": (resample.paired_halves(KEY, 40, pairs=2, resamples=3), "rows of several kinds in one design"),
    "task_instances": (resample.task_instances(40, 5, instances=4), "training sets that do not overlap, which need no correction; use paired_t if"),
    "common test set": (resample.task_instances(40, 5, instances=4, common=True), "training sets that do not overlap"),
    "no shared case": (resample.from_weights(np.eye(4)[:2], np.eye(4)[2:]), "rows that share no case, which need no correction; use paired_t"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_corrected_t_refuses_plans_that_it_is_not_made_for(case):
    plan, message = REFUSED[case]
    first, second = pair(plan)
    with pytest.raises(ValueError, match=f"expected random splits or folds for the corrected t-test, .*{message}"):
        compare.corrected_t(first, second)
    compare.paired_t(first, second)
    compare.probability_greater(first, second)


def test_equal_plans_made_twice_are_one_plan():
    first, second = pair(leave_out(6))
    again = losses(second.g, leave_out(6), "second")
    assert again.plan is not first.plan
    assert compare.corrected_t(first, again).p_value == compare.corrected_t(first, second).p_value


def test_losses_know_their_loss_by_name():
    data = Data(np.arange(20.0)[:, None], np.arange(20.0)[:, None], ("x",))
    plan = leave_out(6)
    squared, absolute = (assess(KEY, learn.Mean(), data, plan, of) for of in (loss.squared, loss.absolute))
    with pytest.raises(ValueError, match="one loss for both learners, got squared and absolute"):
        compare.corrected_t(squared, absolute)
