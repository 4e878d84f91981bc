"""DELVE's analysis of task instances: against the output of DELVE's own program, statsmodels, loops over the
definition, and by simulation.
"""

import math
from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
from statsmodels.formula.api import ols

from jaxgen import resample
from jaxgen.stats import compare
from jaxgen.types import Losses

EXACT = {"rtol": 1e-10, "atol": 1e-12}
"""The same sums in another order; differences of mean squares lose some digits."""
PRINTED = {"rtol": 4e-9}
"""DELVE prints nine digits."""


def task(instances=4, cases=6, common=False, size=1):
    """Instances with so many test cases each."""
    region = cases if common else instances * cases
    return resample.task_instances(
        region + instances * size, size, instances=instances, test_cases=region, common=common
    )


def losses(table, plan, learner="first"):
    """Losses whose test cases have the losses [*Q, I, J]; elsewhere they are NaN."""
    table = np.asarray(table, np.float64)
    values = np.full((*table.shape[:-1], plan.n), np.nan)
    values[np.broadcast_to(plan.test > 0, values.shape)] = table.ravel()
    mean = table.mean(-1)
    return Losses(
        mean, mean, plan, learner, "squared", np.zeros(mean.shape, np.uint8), ("it did not converge",), values
    )


def effects(instances, cases, sets=None, training=1.0, test=1.0, residual=1.0, mean=0.0, seed=0):
    """Losses [*Q, I, J] with normal effects of training set, test case and both."""
    random = np.random.default_rng(seed)
    lead = () if sets is None else (sets,)
    a, b, e = (random.normal(size=(*lead, *shape)) for shape in ((instances, 1), (1, cases), (instances, cases)))
    return mean + training * a + test * b + residual * e


def with_squares(mean, training, residual, instances, cases):
    """Losses [I, J] that have exactly this mean and these standard deviations between training sets and of the
    residual.
    """
    random = np.random.default_rng(5)
    a, e = random.normal(size=(instances, 1)), random.normal(size=(instances, cases))
    a, e = a - a.mean(), e - e.mean(1, keepdims=True)
    e *= residual / math.sqrt(np.sum(e**2) / (instances * (cases - 1)))
    a *= math.sqrt((training**2 + residual**2 / cases) / (np.sum(a**2) / (instances - 1)))
    return mean + a + e


# DELVE's own output, for a task of 8 instances with 128 test cases each. Its losses are not at hand: others with the
# printed mean and
# deviations must give the printed standard error, t and p.

LIN = {"estimate": 400.729718, "standard error": 28.611146, "training": 40.8979934, "residual": 790.028701}
STANDARDISED = {
    "estimate": 0.81974466,
    "standard error": 0.0585278134,
    "training": 0.0836621548,
    "residual": 1.61610627,
}
AGAINST_KNN = {"estimate": 32.7269508, "standard error": 14.0749681, "training": 27.6978006, "residual": 323.514631}


@pytest.mark.parametrize("golden", [LIN, STANDARDISED, AGAINST_KNN], ids=["lin-1", "standardised", "against knn-cv-1"])
def test_expected_loss_prints_what_delve_prints(golden):
    got = compare.expected_loss(
        losses(with_squares(golden["estimate"], golden["training"], golden["residual"], 8, 128), task(8, 128))
    )
    found = [got.estimate, got.standard_error, got.parts["training set sd"], got.parts["residual sd"]]
    assert [f"{value:.9g}" for value in found] == [
        f"{golden[name]:.9g}" for name in ("estimate", "standard error", "training", "residual")
    ]


def test_disjoint_t_prints_what_delve_prints():
    """Of lin-1 against knn-cv-1, losses 400.729718 and 368.002767: t = 2.325188 with 7 degrees of freedom, p =
    0.0529880206.
    """
    plan = task(8, 128)
    knn = np.random.default_rng(1).gamma(2.0, size=(8, 128))
    knn *= 368.002767 / knn.mean()
    lin = knn + with_squares(AGAINST_KNN["estimate"], AGAINST_KNN["training"], AGAINST_KNN["residual"], 8, 128)
    got = compare.disjoint_t(losses(knn, plan), losses(lin, plan, "second"))
    assert f"{got.statistic:.6f}" == "2.325188"
    assert np.all(got.df == 7)
    np.testing.assert_allclose(
        got.p_value, 0.0529880206, rtol=1e-8
    )  # nine digits of the mean and of both deviations leave 3.3e-9 of t, which p multiplies by 2.6
    np.testing.assert_allclose(got.estimate, 32.7269508, **PRINTED)
    for error in (got.standard_error, got.parts["DELVE's standard error"]):
        np.testing.assert_allclose(error, 14.0749681, **PRINTED)
    np.testing.assert_allclose(
        [got.parts["training set sd"], got.parts["residual sd"]], [27.6978006, 323.514631], **PRINTED
    )
    np.testing.assert_allclose(compare.expected_loss(losses(lin, plan)).estimate, 400.729718, **PRINTED)


def test_golden_numbers_standardise_by_the_variance_of_the_targets():
    np.testing.assert_allclose(
        [LIN[name] / STANDARDISED[name] for name in LIN], 488.847, rtol=1e-6
    )  # printed with six digits


# The analysis of variance


def squares(table):
    """Mean squares by loops over the definition: training sets, test cases, residual within training sets, residual of
    both.
    """
    i, j = len(table), len(table[0])
    rows, columns, mean = (
        [sum(r) / j for r in table],
        [sum(r[c] for r in table) / i for c in range(j)],
        sum(map(sum, table)) / (i * j),
    )
    training = sum(j * (r - mean) ** 2 for r in rows) / (i - 1)
    cases = sum(i * (c - mean) ** 2 for c in columns) / (j - 1)
    within = sum((table[a][b] - rows[a]) ** 2 for a in range(i) for b in range(j)) / (i * (j - 1))
    both = sum((table[a][b] - rows[a] - columns[b] + mean) ** 2 for a in range(i) for b in range(j)) / (
        (i - 1) * (j - 1)
    )
    return training, cases, within, both


@pytest.mark.parametrize("common", [False, True], ids=["disjoint", "common"])
@pytest.mark.parametrize("training", [0.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_expected_loss_is_the_definition(common, training, seed):
    table = effects(5, 7, training=training, mean=3.0, seed=seed)
    got = compare.expected_loss(losses(table, task(5, 7, common)))
    ms_training, ms_cases, within, both = squares(table.tolist())
    residual = both if common else within
    variances = {
        "training set": max(ms_training - residual, 0) / 7,
        "test case": max(ms_cases - residual, 0) / 5 if common else 0.0,
        "residual": residual,
    }
    np.testing.assert_allclose(got.estimate, table.mean(), **EXACT)
    np.testing.assert_allclose(
        got.standard_error**2,
        variances["training set"] / 5 + variances["test case"] / 7 + variances["residual"] / 35,
        **EXACT,
    )
    assert set(got.parts) == {f"{name} sd" for name in variances if common or name != "test case"}
    for name, value in got.parts.items():
        np.testing.assert_allclose(value, math.sqrt(variances[name.removesuffix(" sd")]), **EXACT)


@pytest.mark.parametrize("common", [False, True], ids=["disjoint", "common"])
def test_mean_squares_are_those_of_statsmodels(common):
    table = effects(4, 6, training=3.0, test=3.0, seed=2)
    i, j = np.indices(table.shape)
    frame = pd.DataFrame({"y": table.ravel(), "i": i.ravel(), "j": j.ravel()})
    anova = sm.stats.anova_lm(ols("y ~ C(i) + C(j)" if common else "y ~ C(i)", frame).fit())["mean_sq"]
    got = compare.expected_loss(losses(table, task(4, 6, common))).parts
    residual = anova["Residual"]
    np.testing.assert_allclose(got["residual sd"] ** 2, residual, rtol=1e-9)
    np.testing.assert_allclose(got["training set sd"] ** 2, (anova["C(i)"] - residual) / 6, rtol=1e-9)
    if common:
        np.testing.assert_allclose(got["test case sd"] ** 2, (anova["C(j)"] - residual) / 4, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_quasi_f_is_the_definition(seed):
    plan = task(5, 7, common=True)
    one, other = effects(5, 7, seed=seed), effects(5, 7, mean=1.0, seed=seed + 10)
    got = compare.quasi_f(losses(one, plan), losses(other, plan, "second"))
    training, cases, _, residual = squares((other - one).tolist())
    above = 35 * (other - one).mean() ** 2
    f = (above + residual) / (training + cases)
    df1, df2 = (
        (above + residual) ** 2 / (above**2 + residual**2 / 24),
        (training + cases) ** 2 / (training**2 / 4 + cases**2 / 6),
    )
    np.testing.assert_allclose(
        [got.statistic, got.parts["numerator df"], got.parts["denominator df"]], [f, df1, df2], **EXACT
    )
    np.testing.assert_allclose(got.p_value, scipy.stats.f(df1, df2).sf(f), **EXACT)
    np.testing.assert_allclose(got.estimate, (other - one).mean(), **EXACT)
    back = compare.quasi_f(losses(other, plan), losses(one, plan))
    np.testing.assert_allclose([back.p_value, back.estimate], [got.p_value, -got.estimate], **EXACT)


def test_quasi_f_is_the_square_of_t_where_test_cases_do_not_matter():
    """Without effects of test cases or residual each row is one number: F = I m^2 / S^2, the square of the t over
    instances, on 1 and I - 1 degrees.
    """
    plan = task(6, 5, common=True)
    rows = np.random.default_rng(3).normal(0.5, size=(6, 1))
    got = compare.quasi_f(losses(np.zeros((6, 5)), plan), losses(np.repeat(rows, 5, axis=1), plan))
    want = scipy.stats.ttest_1samp(rows[:, 0], 0.0)
    np.testing.assert_allclose([got.statistic, got.p_value], [want.statistic**2, want.pvalue], rtol=1e-9)
    np.testing.assert_allclose([got.parts["numerator df"], got.parts["denominator df"]], [1, 5], rtol=1e-9)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("training", [0.0, 1.0])
def test_disjoint_t_is_the_paired_t_over_instances(alternative, training):
    plan = task(5, 7)
    pair = (
        losses(effects(5, 7, training=training), plan),
        losses(effects(5, 7, training=training, seed=1), plan, "second"),
    )
    got, want = (test(*pair, alternative=alternative, level=0.9) for test in (compare.disjoint_t, compare.paired_t))
    for name in ("estimate", "standard_error", "statistic", "p_value", "lower", "upper", "df"):
        np.testing.assert_allclose(getattr(got, name), getattr(want, name), **EXACT)
    assert not want.note


def test_delves_standard_error_is_cut_and_the_tests_is_not():
    plan = task(5, 7)
    table = with_squares(1.0, 0.0, 2.0, 5, 7)
    table = table + 0.5 * (
        table.mean() - table.mean(1, keepdims=True)
    )  # instances nearer to each other than their cases explain
    got = compare.disjoint_t(losses(np.zeros((5, 7)), plan), losses(table, plan))
    assert got.standard_error < got.parts["DELVE's standard error"] == pytest.approx(2 / math.sqrt(35))
    assert got.parts["training set sd"] == 0
    assert (
        got.note
        == "instances differ no more than their test cases do, so DELVE's standard error is larger than the test's"
    )
    np.testing.assert_allclose(got.statistic, got.estimate / got.standard_error, **EXACT)


@pytest.mark.parametrize("common", [False, True], ids=["disjoint", "common"])
def test_several_data_sets_are_analysed_each(common):
    plan = task(4, 5, common)
    pair = losses(effects(4, 5, sets=3), plan), losses(effects(4, 5, sets=3, seed=1), plan, "second")
    test = compare.quasi_f if common else compare.disjoint_t
    together = test(*pair)
    for q in range(3):
        alone = test(pair[0][q], pair[1][q])
        for name in ("estimate", "statistic", "p_value"):
            np.testing.assert_allclose(getattr(together, name)[q], getattr(alone, name), **EXACT)
        for name, value in together.parts.items():
            np.testing.assert_allclose(value[q], alone.parts[name], **EXACT)
    found = compare.expected_loss(pair[0])
    np.testing.assert_allclose(
        found.standard_error, [compare.expected_loss(pair[0][q]).standard_error for q in range(3)], **EXACT
    )
    assert len(together.to_frame()) == len(found.to_frame()) == 3


def test_losses_far_from_zero_keep_their_digits():
    """The mean squares do not see a constant: 1e9 leaves seven of sixteen digits to the deviations."""
    table = effects(5, 7)
    near, far = (compare.expected_loss(losses(table + shift, task(5, 7, common=True))) for shift in (0.0, 1e9))
    np.testing.assert_allclose(far.standard_error, near.standard_error, rtol=1e-6)


# Degenerate


@pytest.mark.parametrize("common", [False, True], ids=["disjoint", "common"])
@pytest.mark.parametrize(
    ("difference", "statistic", "p"), [(0.0, 0.0, 1.0), (0.1, math.inf, math.nan), (-0.1, math.inf, math.nan)]
)
def test_equal_differences_are_no_evidence_or_no_certainty(common, difference, statistic, p):
    plan = task(3, 7, common)
    test = compare.quasi_f if common else compare.disjoint_t
    got = test(losses(np.zeros((3, 7)), plan), losses(np.full((3, 7), difference), plan))
    assert got.estimate == pytest.approx(
        difference, rel=1e-15
    )  # the mean of 21 equal numbers is a rounding away from them
    np.testing.assert_equal(got.p_value, np.asarray(p))
    assert got.statistic == (statistic if common else math.copysign(statistic, difference))
    assert all(got.parts[name] == 0 for name in ("training set sd", "residual sd", "DELVE's standard error"))


def test_quasi_f_of_differences_that_cancel_is_no_evidence():
    """Rows and columns all have mean 0, so the denominator is 0 and the numerator is not."""
    plan = task(2, 2, common=True)
    got = compare.quasi_f(losses(np.zeros((2, 2)), plan), losses([[1, -1], [-1, 1]], plan))
    assert (got.estimate, got.statistic, got.p_value) == (0, 0, 1)


# What they say


def test_what_is_said_of_a_comparison():
    plan = task(4, 5, common=True, size=3)
    pair = losses(effects(4, 5), plan), losses(effects(4, 5, seed=1, mean=1), plan, "second")
    text = str(compare.quasi_f(*pair))
    for part in (
        "DELVE's quasi-F test, common test set (Rasmussen et al. 1996",
        "squared loss of second minus that of first",
        "F = ",
        "(two-sided)",
        "numerator df",
        "denominator df",
        "test case sd",
    ):
        assert part in text
    assert "interval" not in text
    assert "nan" not in text
    said = str(compare.expected_loss(pair[0]))
    for part in (
        "expected loss over instances with a common test set",
        "standard error",
        "about ER, for training sets of 3 cases",
    ):
        assert part in said


# Size


@pytest.mark.parametrize(
    ("training", "test", "residual"), [(0, 1, 1), (0.05, 1, 1), (0.3, 0.3, 1), (1, 0, 1), (0, 0, 1), (1, 1, 0.1)]
)
@pytest.mark.parametrize(("instances", "cases"), [(8, 64), (4, 32)])
def test_quasi_f_rejects_a_true_null_as_often_as_it_should(instances, cases, training, test, residual):
    """2000 sets of losses without a difference; what a test of 5 % would exceed but once in a million, and 2 % fall
    short of.
    """
    plan = task(instances, cases, common=True)
    table = effects(instances, cases, 2000, training, test, residual, seed=7)
    rejected = (compare.quasi_f(losses(np.zeros(table.shape), plan), losses(table, plan)).p_value < 0.05).sum()
    assert scipy.stats.binom.ppf(1e-6, 2000, 0.02) <= rejected <= scipy.stats.binom.isf(1e-6, 2000, 0.05)


def test_the_t_over_instances_ignores_a_shared_test_set_and_rejects_far_too_often():
    plan = task(8, 64, common=True)
    table = effects(8, 64, 2000, 0.05, 1, 1, seed=7)
    pair = losses(np.zeros(table.shape), plan), losses(table, plan)
    naive = compare.paired_t(*pair)
    assert (naive.p_value < 0.05).sum() > scipy.stats.binom.isf(1e-6, 2000, 0.3)
    assert naive.note.startswith("the resamplings share cases")


@pytest.mark.parametrize("training", [0.0, 0.5])
def test_disjoint_t_rejects_a_true_null_as_often_as_it_should(training):
    plan = task(8, 16)
    table = effects(8, 1, 2000, training, 0, 0, seed=8) + np.random.default_rng(9).normal(size=(2000, 8, 16))
    rejected = (compare.disjoint_t(losses(np.zeros(table.shape), plan), losses(table, plan)).p_value < 0.05).sum()
    low, high = scipy.stats.binom.interval(1 - 2e-6, 2000, 0.05)
    assert low <= rejected <= high


@pytest.mark.parametrize("common", [False, True], ids=["disjoint", "common"])
def test_the_standard_error_is_the_spread_of_the_expected_loss(common):
    """Its square is unbiased but for the cut at 0, which these large effects never meet; 4 standard errors of 3000
    sets.
    """
    plan = task(8, 32, common)
    table = effects(8, 32, 3000, 1.0, 1.0 if common else 0.0, 1.0, seed=11)
    got = compare.expected_loss(losses(table, plan))
    truth = 1 / 8 + (1 / 32 if common else 0) + 1 / 256
    estimates = got.standard_error**2
    assert abs(estimates.mean() - truth) < 4 * estimates.std() / math.sqrt(3000)
    assert abs(got.estimate.var() - truth) < 4 * truth * math.sqrt(2 / 3000)


# Bad input

KEY = jax.random.key(0)
N = 20


def weights(train, test):
    """A plan of rows that train and test on these cases."""
    rows = np.zeros((2, len(train), N))
    for side, sets in enumerate((train, test)):
        for row, cases in enumerate(sets):
            rows[side, row, list(cases)] = 1
    return resample.from_weights(*rows)


REFUSED = {
    "random splits": (resample.leave_out(KEY, N, 0.25, 4), "training sets that overlap"),
    "folds": (resample.k_fold(KEY, N, 4), "training sets that overlap"),
    "halves": (resample.k_fold(KEY, N, 2), "test cases that some row trains on"),
    "bootstrap": (resample.bootstrap(KEY, N, 4), "cases that count more than once"),
    "one instance": (resample.task_instances(N, 5, instances=1), "a single row; ask for more instances"),
    "own cases": (weights([[0, 1], [2, 3]], [[0, 1], [2, 3]]), "test cases that some row trains on"),
    "sizes": (weights([[0], [1]], [[2, 3], [4, 5, 6]]), "test sets of different sizes"),
    "partly shared": (weights([[0], [1]], [[2, 3], [3, 4]]), "test sets that overlap in part"),
    "one test case": (weights([[0], [1]], [[2], [3]]), "one test case a row; ask for more"),
}


def noise(plan, learner="first"):
    values = np.random.default_rng(0).normal(size=plan.train.shape)
    means = np.sum(values * plan.test, axis=-1) / plan.test.sum(-1)
    return Losses(
        means, means, plan, learner, "squared", np.zeros(means.shape, np.uint8), ("it did not converge",), values
    )


@pytest.mark.parametrize("case", REFUSED)
def test_rows_that_are_no_instances_are_refused(case):
    plan, message = REFUSED[case]
    one = noise(plan)
    for ask in (compare.expected_loss, lambda x: compare.disjoint_t(x, x), lambda x: compare.quasi_f(x, x)):
        with pytest.raises(
            ValueError,
            match=rf"expected at least 2 instances of a task, .*, got .*: {message}.*; use resample.task_instances",
        ):
            ask(one)


def test_the_other_design_is_named():
    own, shared = noise(task()), noise(task(common=True))
    with pytest.raises(
        ValueError, match=r"expected test sets that do not overlap, got the same for all instances \(.*\); use quasi_f"
    ):
        compare.disjoint_t(shared, shared)
    with pytest.raises(
        ValueError, match=r"expected the same test set for all instances, got disjoint ones \(.*\); use disjoint_t"
    ):
        compare.quasi_f(own, own)


def test_losses_that_cannot_be_analysed_are_refused():
    for common, test in ((False, compare.disjoint_t), (True, compare.quasi_f)):
        good = noise(task(common=common))
        rows = replace(good, values=None)
        failed = replace(good, failure=np.array([0, 1, 0, 0], np.uint8))
        for bad, message in (
            (rows, "expected the losses of every case, got the means of rows only"),
            (failed, "got 1 failed of 4 for first"),
            (replace(good, loss="absolute"), "one loss for both learners"),
        ):
            with pytest.raises(ValueError, match=message):
                test(good, bad)
        for bad, message in ((rows, "got the means of rows only"), (failed, "got 1 failed of 4")):
            with pytest.raises(ValueError, match=message):
                compare.expected_loss(bad)
        with pytest.raises(ValueError, match="on the same resamplings"):
            test(good, noise(task(common=not common)))
