"""Tests of one learner against another: against SciPy, the formula, a published example, and the size that they should
have.
"""

import itertools
import math
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import ztest

from jaxgen import Data, assess, learn, loss, resample
from jaxgen.stats import compare
from jaxgen.types import Losses, Plan

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


def of_cases(values, plan, learner="first", loss="squared"):
    """Losses with those of every case, [*Q, R, N]."""
    values = np.broadcast_to(np.asarray(values, np.float64), (*np.shape(values)[:-2], *plan.train.shape[-2:]))
    g = np.sum(values * plan.test, axis=-1) / plan.test.sum(-1)
    return replace(losses(g, plan, learner, loss), values=values)


def pair_of_cases(plan, seed=0, sets=None, loss="squared"):
    """Losses of two learners on every case, the second a little worse; of zero_one about one third and one half are
    errors.
    """
    random = np.random.default_rng(seed)
    one, other = random.gamma(4.0, 0.5, size=(2, *(() if sets is None else (sets,)), *plan.train.shape[-2:]))
    one, other = (one > 2.3, other > 1.9) if loss == "zero_one" else (one, other + 0.2)
    return of_cases(one, plan, loss=loss), of_cases(other, plan, "second", loss)


# paired_t


@ALTERNATIVES
@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("sets", [None, 4], ids=["one set", "sets"])
def test_paired_t_is_that_of_scipy(alternative, level, sets):
    first, second = pair(leave_out(30), sets=sets)
    got = compare.paired_t(first, second, alternative=alternative, level=level)
    want = scipy.stats.ttest_rel(second.g, first.g, axis=-1, alternative=alternative)
    interval = want.confidence_interval(level)
    np.testing.assert_allclose(got.statistic, want.statistic, **EXACT)
    np.testing.assert_allclose(got.p_value, want.pvalue, **EXACT)
    np.testing.assert_allclose(got.lower, interval.low, **EXACT)
    np.testing.assert_allclose(got.upper, interval.high, **EXACT)
    np.testing.assert_allclose(got.estimate, (second.g - first.g).mean(-1), **EXACT)
    np.testing.assert_allclose(got.standard_error, scipy.stats.sem(second.g - first.g, axis=-1), **EXACT)
    assert np.all(got.df == 29)
    assert got.statistic.shape == got.lower.shape == ((4,) if sets else ())


def test_paired_t_warns_of_shared_cases():
    warned = {name: bool(compare.paired_t(*pair(plan)).note) for name, plan in PLANS.items()}
    assert warned == {name: name != "task instances of their own" for name in PLANS}
    assert compare.paired_t(*pair(leave_out(5))).note.startswith(
        "the resamplings share cases, so this standard error is too small and the rate of false "
        "rejections has no upper limit"
    )


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
    got = compare.corrected_t(first, second, alternative=alternative, level=level)
    difference = second.g - first.g
    error = np.sqrt((1 / 25 + 5 / 15) * np.var(difference, axis=-1, ddof=1))
    law = scipy.stats.t(24, loc=difference.mean(-1), scale=error)
    below = law.cdf(0)  # of the law around the estimate, so the p-value of "greater"
    np.testing.assert_allclose(got.standard_error, error, **EXACT)
    np.testing.assert_allclose(got.statistic, difference.mean(-1) / error, **EXACT)
    np.testing.assert_allclose(
        got.p_value,
        {"greater": below, "less": 1 - below, "two-sided": 2 * np.minimum(below, 1 - below)}[alternative],
        **EXACT,
    )
    tail = (1 - level) / 2 if alternative == "two-sided" else 1 - level
    np.testing.assert_allclose(
        got.lower, np.full_like(error, -np.inf) if alternative == "less" else law.ppf(tail), **EXACT
    )
    np.testing.assert_allclose(
        got.upper, np.full_like(error, np.inf) if alternative == "greater" else law.ppf(1 - tail), **EXACT
    )
    assert np.all(got.df == 24)
    assert not got.note


def test_corrected_t_gives_the_numbers_that_scikit_learn_publishes():
    """ "Statistical comparison of models using grid search": support vector machines, 10 times 10 folds of 100 cases,
    areas under the ROC curve.
    """
    x, y = make_moons(noise=0.352, random_state=1, n_samples=100)
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
    test = np.zeros((100, 100), bool)
    for row, (_, cases) in enumerate(folds.split(x, y)):
        test[row, cases] = True
    plan = resample.from_weights(~test, test)
    linear, rbf = (
        losses(cross_val_score(SVC(kernel=kernel), x, y, scoring="roc_auc", cv=folds), plan, kernel)
        for kernel in ("linear", "rbf")
    )
    corrected, naive = (
        test_of(linear, rbf, alternative="greater") for test_of in (compare.corrected_t, compare.paired_t)
    )
    assert [f"{v:.3f}" for v in (corrected.statistic, corrected.p_value)] == ["0.750", "0.227"]
    assert [f"{v:.3f}" for v in (naive.statistic, naive.p_value)] == ["2.611", "0.005"]
    for level, limits in {
        0.5: ("0.000977", "0.019023"),
        0.75: ("-0.005422", "0.025422"),
        0.95: ("-0.016445", "0.036445"),
    }.items():
        interval = compare.corrected_t(linear, rbf, level=level)
        assert (f"{interval.lower:.6f}", f"{interval.upper:.6f}") == limits
    folds_of = compare.corrected_k_fold_t(linear, rbf, alternative="greater")
    assert (folds_of.statistic, folds_of.p_value) == (corrected.statistic, corrected.p_value)
    assert [f"{compare.bayesian_t(linear, rbf).parts[name]:.3f}" for name in ("P(left)", "P(right)")] == [
        "0.227",
        "0.773",
    ]
    assert f"{compare.bayesian_t(linear, rbf, rope=0.01).parts['P(rope)']:.3f}" == "0.432"


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
    for name in (
        "estimate",
        "standard_error",
        "statistic",
        "p_value",
        "lower",
        "upper",
    ):  # sqrt(1 + 3 n2/n1) - 1 = 3.8e-5
        np.testing.assert_allclose(getattr(corrected, name), getattr(naive, name), rtol=4e-4)
    np.testing.assert_allclose(corrected.standard_error / naive.standard_error, math.sqrt(1 + 3 / (n - 1)), rtol=1e-12)


def test_corrected_t_takes_the_mean_of_unequal_ratios_and_says_so():
    first, second = pair(resample.k_fold(KEY, 20, folds=3))  # 7, 7 and 6 of 20 are tested
    got = compare.corrected_t(first, second)
    ratio = (7 / 13 + 7 / 13 + 6 / 14) / 3
    np.testing.assert_allclose(
        got.standard_error, math.sqrt((1 / 3 + ratio) * np.var(second.g - first.g, ddof=1)), **EXACT
    )
    assert got.note == "n2/n1 differs between rows (0.429 to 0.538); its mean was used"


def test_corrected_t_of_balanced_splits_says_that_they_are_no_random_ones():
    first, second = pair(resample.balanced(KEY, 20, 0.25, 8))
    assert compare.corrected_t(first, second).note.startswith(
        "balanced splits are no random ones, for which the correction is made: it errs to either side"
    )
    assert (
        compare.corrected_t(*pair(leave_out(8))).note
        == compare.corrected_t(*pair(resample.balanced(KEY, 20, 0.25, 4))).note
        == ""
    )  # the latter are folds


def test_corrected_t_with_splits_of_their_own_for_each_set():
    test = np.zeros((2, 4, 20), np.uint8)
    for row in range(4):
        test[0, row, 5 * row : 5 * row + 5] = 1
        test[1, row, (5 * row + np.arange(10)) % 20] = 1
    first, second = pair(resample.from_weights(1 - test, test), sets=2)
    got = compare.corrected_t(first, second)
    np.testing.assert_allclose(
        got.standard_error, np.sqrt([1 / 4 + 5 / 15, 1 / 4 + 1]) * np.std(second.g - first.g, axis=-1, ddof=1), **EXACT
    )
    for q in range(2):
        assert compare.corrected_t(first[q], second[q]).p_value == pytest.approx(got.p_value[q], rel=1e-12)


# k_fold_t and corrected_k_fold_t


@ALTERNATIVES
@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("sets", [None, 4], ids=["one set", "sets"])
def test_k_fold_t_takes_folds_for_independent(alternative, repeats, sets):
    first, second = pair(resample.k_fold(KEY, 20, 5, repeats), sets=sets)
    got = compare.k_fold_t(first, second, alternative=alternative)
    want = scipy.stats.ttest_rel(second.g, first.g, axis=-1, alternative=alternative)
    np.testing.assert_allclose([got.statistic, got.p_value], [want.statistic, want.pvalue], **EXACT)
    assert np.all(got.df == 5 * repeats - 1)
    assert got.note.startswith("training sets share cases, which this standard error ignores")
    assert ("without limit as repeats grow" in got.note) is (repeats > 1)


@ALTERNATIVES
@pytest.mark.parametrize(("folds", "repeats"), [(5, 1), (10, 10), (4, 3), (2, 5)])
def test_corrected_k_fold_t_is_the_formula(alternative, folds, repeats):
    """Bouckaert & Frank 2004 by loops: x_ij of repeat i and fold j, and n2/n1 = 1/(k-1)."""
    first, second = pair(resample.k_fold(KEY, 20, folds, repeats))
    x = (second.g - first.g).tolist()
    mean = sum(x) / (folds * repeats)
    variance = sum((v - mean) ** 2 for v in x) / (folds * repeats - 1)
    t = mean / math.sqrt((1 / (folds * repeats) + 1 / (folds - 1)) * variance)
    law = scipy.stats.t(folds * repeats - 1)
    got, same = (
        compare.corrected_k_fold_t(first, second, alternative=alternative),
        compare.corrected_t(first, second, alternative=alternative),
    )
    np.testing.assert_allclose(got.statistic, t, **EXACT)
    np.testing.assert_allclose(
        got.p_value, {"greater": law.sf(t), "less": law.cdf(t), "two-sided": 2 * law.sf(abs(t))}[alternative], **EXACT
    )
    assert (got.lower, got.upper, got.p_value) == (same.lower, same.upper, same.p_value)
    assert ("a single run of folds, for which this is very conservative" in got.note) is (repeats == 1)


def test_tests_of_unequal_folds_by_hand():
    """Folds of 3, 2 and 2 cases, where the second learner loses 1, 2, 6, then 4, 8, then 3, 5 more: the rows differ by
    3, 6 and 4, the cases by 29/7 with squares 155 in sum, and n2/n1 is 3/4, 2/5 and 2/5.
    """
    test = (np.array([0, 0, 0, 1, 1, 2, 2]) == np.arange(3)[:, None]).astype(np.uint8)
    plan = resample.from_weights(1 - test, test)
    first = of_cases(np.ones((3, 7)), plan)
    second = of_cases(1 + np.tile([1.0, 2, 6, 4, 8, 3, 5], (3, 1)), plan, "second")
    variance = (16 / 9 + 25 / 9 + 1 / 9) / 2  # of 3, 6 and 4 about 13/3
    error = math.sqrt((1 / 3 + (3 / 4 + 2 / 5 + 2 / 5) / 3) * variance)
    got = compare.corrected_k_fold_t(first, second)
    np.testing.assert_allclose([got.estimate, got.standard_error], [13 / 3, error], **EXACT)
    assert "a single run of folds" in got.note
    assert "n2/n1 differs between rows (0.4 to 0.75); its mean was used" in got.note
    naive, cases = compare.k_fold_t(first, second), compare.cv_clt(first, second)
    np.testing.assert_allclose(naive.standard_error, math.sqrt(variance / 3), **EXACT)
    np.testing.assert_allclose(
        [cases.estimate, cases.standard_error], [29 / 7, math.sqrt((155 / 7 - (29 / 7) ** 2) / 7)], **EXACT
    )


# Five times two folds

FIVE = resample.five_by_two(KEY, 20)
P = np.array([[0.1, 0.3], [0.2, 0.2], [-0.1, 0.1], [0.4, 0.0], [0.3, 0.2]])
"""Differences whose s_i^2 are 0.02, 0, 0.02, 0.08 and 0.005, in sum 0.125; the sum of squares is 0.49."""


def five(p, plan=FIVE):
    p = np.asarray(p, np.float64).reshape(*np.shape(p)[:-2], 10)
    return losses(np.ones(p.shape), plan), losses(1 + p, plan, "second")


def test_five_by_two_tests_are_the_definitions():
    t, f = compare.five_by_two_t(*five(P)), compare.five_by_two_f(*five(P))
    np.testing.assert_allclose([t.statistic, f.statistic], [0.1 / math.sqrt(0.025), 0.49 / 0.25], rtol=1e-12)
    np.testing.assert_allclose(t.p_value, 2 * scipy.stats.t(5).sf(0.1 / math.sqrt(0.025)), rtol=1e-12)
    np.testing.assert_allclose(f.p_value, scipy.stats.f(10, 5).sf(1.96), rtol=1e-12)
    np.testing.assert_allclose([t.estimate, t.parts["mean of all ten"], f.estimate], [0.1, 0.17, 0.17], rtol=1e-12)
    np.testing.assert_allclose([t.lower, t.upper], scipy.stats.t(5, 0.1, math.sqrt(0.025)).interval(0.95), rtol=1e-12)
    assert [f.parts[name] for name in ("numerator df", "denominator df")] == [10, 5]


@pytest.mark.parametrize(("t", "p"), [(2.571, 0.05), (4.032, 0.01)])
def test_five_by_two_t_at_the_tabled_limits(t, p):
    """Student's table, 5 degrees of freedom; s^2 = 1/2 in each repeat."""
    half = np.array([[0, 1]] * 5, float)
    got = compare.five_by_two_t(*five(half - half[0, 0] + t * math.sqrt(0.5)))
    np.testing.assert_allclose(
        got.p_value, p, rtol=1e-3
    )  # tables have four digits, of which p takes three times the error


def test_five_by_two_f_at_the_tabled_limit():
    """F(10, 5) exceeds 4.74 with probability 5 %: differences c +- 1 have s^2 = 2 and F = 10 (c^2 + 1) / 20."""
    c = math.sqrt(2 * 4.74 - 1)
    np.testing.assert_allclose(
        compare.five_by_two_f(*five([[c - 1, c + 1]] * 5)).p_value, 0.05, rtol=3e-3
    )  # of three digits, of which p takes 2.5 times the error


def test_five_by_two_goes_by_labels_and_not_by_the_order_of_rows():
    order = np.random.default_rng(0).permutation(10)
    mixed = Plan(
        FIVE.train[order],
        FIVE.test[order],
        "in another order",
        {name: label[order] for name, label in FIVE.labels.items()},
    )
    for test in (compare.five_by_two_t, compare.five_by_two_f):
        assert test(*five(P.ravel()[order].reshape(5, 2), mixed)).p_value == test(*five(P)).p_value
    swapped = [compare.five_by_two_t(*five(P[:, ::-1])), compare.five_by_two_f(*five(P[:, ::-1]))]
    np.testing.assert_allclose(swapped[0].estimate, 0.3, rtol=1e-12)
    np.testing.assert_allclose(swapped[1].statistic, 1.96, rtol=1e-12)


def test_five_by_two_of_several_sets_and_of_degenerate_ones():
    halves_agree = np.repeat([[0.0], [0.0], [0.1], [0.1], [0.2]], 2, axis=1)
    together = np.stack([P, np.zeros((5, 2)), np.full((5, 2), 0.5), halves_agree])
    t, f = compare.five_by_two_t(*five(together)), compare.five_by_two_f(*five(together))
    np.testing.assert_allclose(t.statistic, [0.1 / math.sqrt(0.025), 0, math.inf, 0], rtol=1e-12)
    np.testing.assert_allclose(t.p_value[1:], [1, np.nan, 1])
    np.testing.assert_allclose(f.statistic, [1.96, 0, math.inf, math.inf], rtol=1e-12)
    np.testing.assert_allclose(f.p_value[1:], [1, np.nan, np.nan])


# cv_clt


@ALTERNATIVES
@pytest.mark.parametrize(
    "plan", [resample.k_fold(KEY, 20, 4), resample.leave_one_out(20)], ids=["k_fold", "leave_one_out"]
)
@pytest.mark.parametrize("sets", [None, 3], ids=["one set", "sets"])
def test_cv_clt_is_a_z_test_of_case_losses(alternative, plan, sets):
    first, second = pair_of_cases(plan, sets=sets)
    got = compare.cv_clt(first, second, alternative=alternative, level=0.9)
    for q in range(sets or 1):
        one, other = (np.atleast_3d(x.values.T).T[q] for x in (first, second))
        row = plan.test.argmax(0)  # the row that tests each case
        d = np.array([other[row[i], i] - one[row[i], i] for i in range(20)])
        z, p = ztest(d, alternative={"greater": "larger", "less": "smaller"}.get(alternative, alternative), ddof=0)
        np.testing.assert_allclose(
            [np.atleast_1d(v)[q] for v in (got.estimate, got.statistic, got.p_value)], [d.mean(), z, p], rtol=1e-10
        )
        law = scipy.stats.norm(d.mean(), math.sqrt(sum((v - d.mean()) ** 2 for v in d) / 20**2))
        tails = {"two-sided": (0.05, 0.95), "greater": (0.1, 1.0), "less": (0.0, 0.9)}[alternative]
        np.testing.assert_allclose([np.atleast_1d(v)[q] for v in (got.lower, got.upper)], law.ppf(tails), rtol=1e-10)
    assert np.all(got.df == math.inf)
    assert got.symbol == "z"


def test_cv_clt_divides_by_n_where_t_divides_by_one_less():
    plan = resample.k_fold(KEY, 20, 2)
    first, second = pair_of_cases(plan)
    cases = np.where(plan.test > 0, np.subtract(second.values, first.values), 0).sum(0)
    t = scipy.stats.ttest_1samp(cases, 0.0).statistic
    np.testing.assert_allclose(compare.cv_clt(first, second).statistic, t * math.sqrt(20 / 19), **EXACT)


# bayesian_t


@pytest.mark.parametrize("sets", [None, 3], ids=["one set", "sets"])
def test_bayesian_tails_are_the_one_sided_p_values(sets):
    first, second = pair(leave_out(25), sets=sets)
    got, want = compare.bayesian_t(first, second, level=0.9), compare.corrected_t(first, second, level=0.9)
    for part, alternative in (("P(left)", "greater"), ("P(right)", "less")):
        np.testing.assert_allclose(
            got.parts[part], compare.corrected_t(first, second, alternative=alternative).p_value, **EXACT
        )
    np.testing.assert_allclose(got.parts["P(rope)"], 0, atol=1e-15)
    for name in ("estimate", "standard_error", "statistic", "lower", "upper"):
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name))
    assert np.isnan(got.p_value).all()


@pytest.mark.parametrize("rope", [0.05, 0.2, 5.0])
def test_bayesian_probabilities_are_integrals_of_the_posterior(rope):
    first, second = pair(leave_out(25))
    got = compare.bayesian_t(first, second, rope=rope)
    x = second.g - first.g
    scale = math.sqrt((1 / 25 + (5 / 20) / (1 - 5 / 20)) * x.var(ddof=1))  # rho / (1 - rho), rho = n2 / n
    density = partial(scipy.stats.t.pdf, df=24, loc=x.mean(), scale=scale)
    integrals = [
        scipy.integrate.quad(density, *limits, epsabs=1e-12)[0]
        for limits in ((-np.inf, -rope), (-rope, rope), (rope, np.inf))
    ]
    np.testing.assert_allclose(list(got.parts.values()), integrals, atol=1e-9)
    assert sum(got.parts.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("difference", "rope", "probabilities"),
    [(0, 0, (0, 1, 0)), (0.5, 0, (0, 0, 1)), (-0.5, 0.1, (1, 0, 0)), (0.5, 0.5, (0, 1, 0)), (-0.5, 0.5, (0, 1, 0))],
)
def test_bayesian_probability_is_where_all_differences_are(difference, rope, probabilities):
    plan = leave_out(4)
    got = compare.bayesian_t(
        losses(np.zeros(4), plan), losses(np.full(4, difference), plan, "second"), rope=float(rope)
    )
    assert tuple(got.parts.values()) == probabilities


# Tests of one row

ONE_ROW = resample.leave_out(KEY, 40, 0.25, 1)  # ten test cases
CASES = pytest.mark.parametrize("test", [compare.hold_out_t, compare.mcnemar, compare.permutation])


def cases_of(losses, row=0):
    return losses.values[..., row, losses.test[row] > 0]


@ALTERNATIVES
@pytest.mark.parametrize("sets", [None, 3], ids=["one set", "sets"])
def test_hold_out_t_is_that_of_scipy(alternative, sets):
    first, second = pair_of_cases(ONE_ROW, sets=sets)
    got = compare.hold_out_t(first, second, alternative=alternative, level=0.9)
    want = scipy.stats.ttest_rel(cases_of(second), cases_of(first), axis=-1, alternative=alternative)
    interval = want.confidence_interval(0.9)
    for name, value in (
        ("statistic", want.statistic),
        ("p_value", want.pvalue),
        ("lower", interval.low),
        ("upper", interval.high),
    ):
        np.testing.assert_allclose(getattr(got, name), value, **EXACT)
    assert np.all(got.df == 9)
    assert got.target == "the difference in risk of the two models trained on these 30 training cases"


def test_the_row_asked_for_is_the_one_compared():
    """Also that of a bootstrap: what it lacks is a test set, whose size differs from row to row."""
    for plan in (leave_out(4), resample.bootstrap(KEY, 20, 4)):
        first, second = pair_of_cases(plan)
        for row in range(4):
            want = scipy.stats.ttest_rel(cases_of(second, row), cases_of(first, row))
            np.testing.assert_allclose(compare.hold_out_t(first, second, row=row).p_value, want.pvalue, **EXACT)


def table_of(both, only_first, only_second, neither):
    """0-1 losses of one row: how many cases both get wrong, the first alone, the second alone, neither."""
    wrong = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], [both, only_first, only_second, neither], axis=0).T
    n = wrong.shape[1]
    plan = resample.from_weights(np.eye(1, n + 1), 1 - np.eye(1, n + 1))
    return tuple(
        of_cases(np.r_[0, side][None], plan, name, "zero_one")
        for side, name in zip(wrong, ("first", "second"), strict=True)
    )


@pytest.mark.parametrize(
    "counts", [(1, 1, 7, 12), (3, 8, 2, 5), (0, 0, 5, 1), (4, 20, 35, 50), (1, 6, 7, 0), (2, 4, 4, 2)]
)
def test_mcnemar_is_that_of_statsmodels(counts):
    both, c, b, neither = counts
    first, second = table_of(*counts)
    got = {kind: compare.mcnemar(first, second, kind=kind) for kind in ("exact", "chi2", "continuity", "mid-p")}
    table = [[both, c], [b, neither]]
    for kind, options in (
        ("exact", {}),
        ("chi2", {"exact": False, "correction": False}),
        ("continuity", {"exact": False, "correction": True}),
    ):
        if kind == "continuity" and b == c:
            continue  # statsmodels lets the corrected difference fall below 0, and its square grow; see below
        want = statsmodels_mcnemar(table, **options)
        np.testing.assert_allclose([got[kind].statistic, got[kind].p_value], [want.statistic, want.pvalue], rtol=1e-12)
    np.testing.assert_allclose(got["exact"].p_value, scipy.stats.binomtest(b, b + c).pvalue, rtol=1e-12)
    for one in got.values():
        assert one.estimate == pytest.approx((b - c) / sum(counts))
        assert [one.parts[name] for name in ("only first wrong", "only second wrong")] == [c, b]
    assert [got[kind].df for kind in ("chi2", "continuity")] == [1, 1]
    assert got["continuity"].p_value >= got["chi2"].p_value
    assert got["exact"].p_value > got["mid-p"].p_value


def test_mcnemar_of_the_published_example():
    """Airway hyper-responsiveness of 21 children before and after a transplantation: Fagerland, Lydersen & Laake 2013,
    Table 1.
    """
    p = {
        kind: float(compare.mcnemar(*table_of(1, 1, 7, 12), kind=kind).p_value)
        for kind in ("chi2", "continuity", "exact", "mid-p")
    }
    assert {kind: f"{value:.3f}" for kind, value in p.items()} == {
        "chi2": "0.034",
        "continuity": "0.077",
        "exact": "0.070",
        "mid-p": "0.039",
    }
    np.testing.assert_allclose(
        [p["exact"], p["mid-p"]], [18 / 256, 10 / 256], rtol=1e-12
    )  # 2 (1 + 8) / 2^8, and 8 / 2^8 less


@pytest.mark.parametrize("m", [1, 2, 7, 8])
def test_mid_p_has_the_mean_one_half_and_exact_p_keeps_every_level(m):
    """Under equal error rates, over all counts that m cases can give."""
    law = scipy.stats.binom(m, 0.5).pmf(np.arange(m + 1))
    mid, exact = (
        np.array([compare.mcnemar(*table_of(2, m - k, k, 3), kind=kind).p_value for k in range(m + 1)])
        for kind in ("mid-p", "exact")
    )
    assert law @ mid == pytest.approx(0.5)
    assert all(law @ (exact <= level) <= level + 1e-12 for level in (0.01, 0.05, 0.1, 0.5))


def test_equal_counts_are_no_evidence_whatever_the_correction():
    """The 1/8 that a correction below 0 would give, as in statsmodels and mlxtend, is p = 0.72."""
    first, second = table_of(2, 4, 4, 2)
    p = {kind: compare.mcnemar(first, second, kind=kind).p_value for kind in ("exact", "chi2", "continuity", "mid-p")}
    assert (p["exact"], p["chi2"], p["continuity"]) == (1, 1, 1)
    assert p["mid-p"] == pytest.approx(1 - 0.5 * 70 / 256)
    assert statsmodels_mcnemar([[2, 4], [4, 2]], exact=False, correction=True).pvalue == pytest.approx(0.7237, abs=1e-4)


@pytest.mark.parametrize("kind", ["mid-p", "exact", "chi2", "continuity"])
def test_mcnemar_without_a_case_that_tells_them_apart(kind):
    got = compare.mcnemar(*table_of(3, 0, 0, 5), kind=kind)
    assert (got.estimate, got.statistic, got.p_value) == (0, 0, 1)


@ALTERNATIVES
@pytest.mark.parametrize("sets", [None, 2], ids=["one set", "sets"])
def test_permutation_of_all_signs_is_counting(alternative, sets):
    first, second = pair_of_cases(ONE_ROW, sets=sets)
    got = compare.permutation(first, second, alternative=alternative)
    for q in range(sets or 1):
        d = np.atleast_2d(cases_of(second) - cases_of(first))[q]
        means = [np.mean(np.multiply(signs, d)) for signs in itertools.product((-1, 1), repeat=10)]
        above, below = (np.mean([sign * m >= sign * d.mean() - 1e-12 for m in means]) for sign in (1, -1))
        want = {"greater": above, "less": below, "two-sided": min(2 * min(above, below), 1)}[alternative]
        np.testing.assert_allclose(
            [np.atleast_1d(v)[q] for v in (got.p_value, got.estimate)], [want, d.mean()], rtol=1e-12
        )


def test_permutation_by_random_signs():
    """14 cases have 16,384 signs, of which 9999 are drawn: four standard errors of that share, and 1e-4 for the
    observed one.
    """
    first, second = pair_of_cases(resample.leave_out(KEY, 56, 0.25, 1))
    got, again, other = (
        float(compare.permutation(first, second, alternative="greater", seed=seed).p_value) for seed in (0, 0, 1)
    )
    exact = float(compare.permutation(first, second, alternative="greater", resamples=2**14).p_value)
    assert got == again != other
    assert exact * 2**14 == round(exact * 2**14)
    assert abs(got - exact) < 4 * math.sqrt(exact * (1 - exact) / 9999) + 1e-4
    apart = replace(second, values=np.add(second.values, 100.0))
    assert compare.permutation(first, apart, alternative="greater", resamples=99).p_value == pytest.approx(1 / 100)
    assert compare.permutation(first, apart, resamples=99).p_value == pytest.approx(2 / 100)


def test_permutation_takes_the_same_random_signs_for_each_set():
    first, second = pair_of_cases(resample.leave_out(KEY, 56, 0.25, 1), sets=3)
    together = compare.permutation(first, second, resamples=99, seed=5).p_value
    alone = [float(compare.permutation(first[q], second[q], resamples=99, seed=5).p_value) for q in range(3)]
    np.testing.assert_array_equal(together, alone)
    assert len(set(alone)) > 1


def test_permutation_of_equals():
    first, _ = pair_of_cases(ONE_ROW)
    assert compare.permutation(first, first).p_value == 1


# Both tests

TESTS = pytest.mark.parametrize("test", [compare.paired_t, compare.corrected_t])
KINDS = {
    "k_fold_t": (compare.k_fold_t, pair(resample.k_fold(KEY, 20, 5, 2)), "t = "),
    "corrected_k_fold_t": (compare.corrected_k_fold_t, pair(resample.k_fold(KEY, 20, 5, 2)), "9 degrees of freedom"),
    "five_by_two_t": (compare.five_by_two_t, pair(FIVE), "5 degrees of freedom"),
    "five_by_two_f": (compare.five_by_two_f, pair(FIVE), "F = "),
    "cv_clt": (compare.cv_clt, pair_of_cases(resample.k_fold(KEY, 20, 5)), "z = "),
    "bayesian_t": (compare.bayesian_t, pair(leave_out(12)), "P(rope)"),
    "hold_out_t": (compare.hold_out_t, pair_of_cases(ONE_ROW), "9 degrees of freedom"),
    "mid-p": (compare.mcnemar, pair_of_cases(ONE_ROW, loss="zero_one"), "only second wrong"),
    "exact": (partial(compare.mcnemar, kind="exact"), pair_of_cases(ONE_ROW, loss="zero_one"), "min = "),
    "chi2": (partial(compare.mcnemar, kind="chi2"), pair_of_cases(ONE_ROW, loss="zero_one"), "chi2 = "),
    "permutation": (compare.permutation, pair_of_cases(ONE_ROW), "mean = "),
    "disjoint_t": (compare.disjoint_t, pair_of_cases(resample.task_instances(20, 2, 4, 8)), "training set sd"),
    "quasi_f": (compare.quasi_f, pair_of_cases(resample.task_instances(20, 2, 4, 8, common=True)), "F = "),
}
"""Every test with losses that it takes, and something that it says."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_test_says_what_it_is(kind):
    test, (first, second), word = KINDS[kind]
    got = test(first, second)
    text = str(got)
    for part in (got.method, got.source, "loss of second minus that of first", f"about {got.target}", word):
        assert part in text
    assert "nan" not in text
    frame = got.to_frame()
    assert len(frame) == 1
    assert set(got.parts) <= set(frame.columns)
    back = test(second, first)
    sign = abs if got.symbol in ("F", "chi2", "min") else float
    np.testing.assert_allclose(
        [back.estimate, sign(back.statistic)],
        [-got.estimate, sign(got.statistic) * (1 if sign is abs else -1)],
        **EXACT,
    )
    np.testing.assert_allclose(back.p_value, got.p_value, **EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_every_test_tells_of_failed_rows_left_out(kind):
    test, (first, second), _ = KINDS[kind]
    left = (replace(losses, dropped=2) for losses in (first, second))
    assert test(*left).note.endswith("2 failed rows were left out")
    assert "left out" not in test(first, second).note


@pytest.mark.parametrize("kind", KINDS)
def test_every_test_finds_no_difference_between_equals(kind):
    test, (first, _), _ = KINDS[kind]
    got = test(first, first)
    assert (got.estimate, got.statistic) == (0, 0)
    assert got.p_value == 1 or kind == "bayesian_t"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "bayesian_t"])
def test_every_test_can_be_one_of_many(kind):
    test, (first, second), _ = KINDS[kind]
    pairs = compare.pairwise([first, second, replace(first, learner="third")], test)
    assert pairs.p_value[0] == pytest.approx(float(test(first, second).p_value))


@pytest.mark.parametrize("kind", KINDS)
def test_what_no_test_can_compare(kind):
    test, (first, second), _ = KINDS[kind]
    failed = replace(second, failure=np.ones_like(second.failure))
    moved = np.roll(second.plan.train, 1, axis=-1), np.roll(second.plan.test, 1, axis=-1)
    elsewhere = replace(second, plan=Plan(*moved, "other splits", second.plan.labels))
    for bad, message in (
        (failed, "failed of .* for second"),
        (elsewhere, "on the same resamplings, got .* and other splits"),
        (replace(second, loss="other"), "one loss for both learners"),
    ):
        with pytest.raises(ValueError, match=message):
            test(first, bad)


@TESTS
@ALTERNATIVES
def test_no_difference_at_all_is_no_evidence(test, alternative):
    first, _ = pair(leave_out(10))
    got = test(first, first, alternative=alternative)
    assert (got.estimate, got.standard_error, got.statistic, got.p_value) == (0, 0, 0, 1)
    assert np.isnan([got.lower, got.upper]).all()
    assert "which is no certainty" in got.note


@TESTS
def test_one_difference_in_all_rows_is_no_certainty(test):
    """0.1 in each of three rows, whose mean is a rounding above 0.1: the deviations from it are no variance to divide
    by, and nothing says how much other data would differ.
    """
    first, second = losses(np.zeros(3), leave_out(3)), losses(np.full(3, 0.1), leave_out(3), "second")
    assert second.g.mean() != 0.1
    got = test(first, second)
    assert (got.standard_error, got.statistic) == (0, math.inf)
    assert got.estimate == pytest.approx(0.1)
    assert np.isnan([got.lower, got.upper, got.p_value]).all()
    assert "which is no certainty" in got.note
    assert test(second, first).statistic == -math.inf
    assert np.isnan(test(first, second, alternative="less").p_value)


@TESTS
@ALTERNATIVES
def test_several_data_sets_are_compared_each(test, alternative):
    first, second = pair(leave_out(12), sets=5)
    together = test(first, second, alternative=alternative)
    for q in range(5):
        alone = test(first[q], second[q], alternative=alternative)
        for name in ("estimate", "standard_error", "statistic", "p_value", "lower", "upper"):
            np.testing.assert_allclose(getattr(together, name)[q], getattr(alone, name), **EXACT)


@TESTS
def test_order_and_alternative_mirror_each_other(test):
    first, second = pair(leave_out(12))
    there, back = test(first, second, alternative="greater"), test(second, first, alternative="less")
    np.testing.assert_allclose(
        [there.p_value, there.estimate, there.lower], [back.p_value, -back.estimate, -back.upper], **EXACT
    )


@TESTS
def test_a_comparison_says_what_it_is(test):
    first, second = pair(leave_out(12))
    got = test(first, second, level=0.9)
    text = str(got)
    for part in (
        got.method,
        got.source,
        "loss of second minus that of first",
        "90% interval [",
        "11 degrees of freedom",
        "(two-sided)",
        "about the mean difference over training sets of this size",
    ):
        assert part in text
    assert ("note: the resamplings share cases" in text) is (test is compare.paired_t)
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
    for a, b, paired, unpaired in zip(
        *(np.atleast_2d(one.g) for one in (first, second)),
        *(np.atleast_1d(compare.probability_greater(first, second, paired=p)) for p in (True, False)),
        strict=True,
    ):
        assert paired == pytest.approx(
            sum(1.0 if v > u else 0.5 if v == u else 0.0 for u, v in zip(a, b, strict=True)) / 23, rel=1e-12
        )
        assert unpaired == pytest.approx(
            sum(1.0 if v > u else 0.5 if v == u else 0.0 for u in a for v in b) / 23**2, rel=1e-12
        )
        assert unpaired == pytest.approx(scipy.stats.mannwhitneyu(b, a).statistic / 23**2, rel=1e-12)
    assert compare.probability_greater(first, second).shape == (() if sets is None else (3,))


@pytest.mark.parametrize("paired", [True, False])
def test_probability_greater_of_equals_is_one_half(paired):
    first, second = pair(leave_out(23))
    assert compare.probability_greater(first, first, paired=paired) == 0.5
    there, back = (compare.probability_greater(*two, paired=paired) for two in ((first, second), (second, first)))
    assert there + back == pytest.approx(1.0)
    assert (
        compare.probability_greater(losses([1.0, 2.0], leave_out(2)), losses([3.0, 4.0], leave_out(2)), paired=paired)
        == 1
    )


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("sets", [None, 3], ids=["one set", "sets"])
def test_the_interval_of_the_probability_is_wilsons(level, sets):
    first, second = pair(leave_out(23), sets=sets)
    got = compare.probability_interval(first, second, level=level)
    np.testing.assert_array_equal(got.estimate, compare.probability_greater(first, second))
    for k, low, high in zip(
        *(np.atleast_1d(v) for v in (np.rint(got.estimate * 23), got.lower, got.upper)), strict=True
    ):
        wilson = scipy.stats.binomtest(int(k), 23).proportion_ci(level, "wilson")
        np.testing.assert_allclose([low, high], [wilson.low, wilson.high], rtol=1e-12)
        np.testing.assert_allclose([low, high], proportion_confint(k, 23, 1 - level, "wilson"), rtol=1e-12)
    assert "says nothing about other data" in got.target
    assert got.unit == "Prob(G of second > G of first)"
    assert sets or f"{level:.0%} interval [" in str(got)


def test_the_interval_of_the_probability_stays_within_0_and_1():
    plan = leave_out(5)
    for a, b, limits in ((0.0, 1.0, (5 / (5 + 1.959964**2), 1)), (1.0, 0.0, (0, 1.959964**2 / (5 + 1.959964**2)))):
        got = compare.probability_interval(losses(np.full(5, a), plan), losses(np.full(5, b), plan))
        np.testing.assert_allclose([got.lower, got.upper], limits, atol=1e-7)  # of the normal quantile
    tie = compare.probability_interval(FIRST, FIRST)
    assert tie.estimate == 0.5
    assert tie.lower == pytest.approx(1 - tie.upper)


# Size


def test_the_naive_test_rejects_a_true_null_and_the_corrected_one_hardly_does():
    """300 data sets with two inputs of one distribution and one true weight: the learners that see one of them are
    equally good.

    Each limit is what a test of the named size would pass but once in a million: 5 % for the corrected test and,
    from the other side, 30 % for the naive one, whose variance is too small by the factor 1 + 99 * 1/4 or so.
    """
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 40, 2))
    data = Data(x, x.sum(-1, keepdims=True) + random.normal(size=(300, 40, 1)), ("a", "b"))
    plan = resample.leave_out(KEY, 40, 0.25, 100, sets=300)
    first, second = (
        assess(OTHER, learn.LeastSquares(intercept=False), data.select([i]), plan, keep="rows") for i in (0, 1)
    )
    naive, corrected = (
        int((test(first, second).p_value < 0.05).sum()) for test in (compare.paired_t, compare.corrected_t)
    )
    assert naive > scipy.stats.binom.isf(1e-6, 300, 0.30)
    assert corrected <= scipy.stats.binom.isf(1e-6, 300, 0.05)
    # both learners are worse in half of the data sets each
    low, high = scipy.stats.binom.interval(1 - 1e-6, 300, 0.5)
    assert low <= (second.g.mean(-1) > first.g.mean(-1)).sum() <= high


def exchangeable(plan, sets):
    """Losses of two equally good learners on many data sets: least squares through the origin on one of two inputs of
    one distribution and true slope.
    """
    random = np.random.default_rng(1)
    x = random.normal(size=(2, sets, plan.n))
    y = x.sum(0) + random.normal(size=(sets, plan.n))
    slopes = [(one * y) @ plan.train.T / (one**2 @ plan.train.T) for one in x]
    return [
        of_cases((y[:, None] - slope[..., None] * one[:, None]) ** 2, plan, name)
        for slope, one, name in zip(slopes, x, ("first", "second"), strict=True)
    ]


SIZES = {
    "naive, 10 folds": (compare.k_fold_t, resample.k_fold(KEY, 60), 0.02, 0.05),
    "naive, 10 times 10": (compare.k_fold_t, resample.k_fold(KEY, 60, 10, 10), 0.5, 1.0),
    "corrected, 10 folds": (compare.corrected_k_fold_t, resample.k_fold(KEY, 60), 0.0, 0.02),
    "corrected, 10 times 10": (compare.corrected_k_fold_t, resample.k_fold(KEY, 60, 10, 10), 0.02, 0.05),
    "corrected, 20 balanced splits": (compare.corrected_t, resample.balanced(KEY, 60, 0.1, 20), 0.0, 0.05),
    "corrected, balanced splits as many as cases": (
        compare.corrected_t,
        resample.balanced(KEY, 60, 0.25, 60),
        0.06,
        0.1,
    ),
    "five_by_two_t": (compare.five_by_two_t, resample.five_by_two(KEY, 60), 0.02, 0.05),
    "five_by_two_f": (compare.five_by_two_f, resample.five_by_two(KEY, 60), 0.02, 0.05),
    "cv_clt": (compare.cv_clt, resample.k_fold(KEY, 60), 0.02, 0.05),
    "hold_out_t": (compare.hold_out_t, resample.leave_out(KEY, 60, 0.4, 1), 0.02, 0.05),
    "permutation": (partial(compare.permutation, resamples=99), resample.leave_out(KEY, 60, 0.4, 1), 0.02, 0.05),
}
"""A test, its plan, and two rates: it is to reject at 5 % no less often than a test of the first rate, and no more
often than one of the second.
"""


@pytest.mark.parametrize("name", SIZES)
def test_how_often_equal_learners_are_told_apart(name):
    """1000 data sets; each limit is passed by a test of that rate but once in a million. Ten times ten folds, taken
    for independent, reject in most of them.
    """
    test, plan, least, most = SIZES[name]
    sets = 300 if name == "permutation" else 1000  # SciPy takes a millisecond a set
    rejected = (test(*exchangeable(plan, sets)).p_value < 0.05).sum()
    assert scipy.stats.binom.ppf(1e-6, sets, least) <= rejected <= scipy.stats.binom.isf(1e-6, sets, most)


# Bad input

FIRST, SECOND = pair(leave_out(6))
ONE = pair(leave_out(1))
FAILED = losses(SECOND.g, leave_out(6), "second", failed=[1, 4])
ELSEWHERE = losses(SECOND.g, resample.leave_out(OTHER, 20, 0.25, 6), "second")
FEWER = losses(SECOND.g[:5], leave_out(5), "second")
EVERY = [
    compare.paired_t,
    compare.corrected_t,
    compare.bayesian_t,
    compare.probability_greater,
    compare.probability_interval,
]


@pytest.mark.parametrize("test", EVERY)
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (*ONE, "at least 2 resamplings"),
        (FIRST, FAILED, r"got 2 failed of 6 for second on .*row 1: it did not converge; row 4: .*without_failed"),
        (FAILED, FIRST, "got 2 failed of 6 for second"),
        (
            FIRST,
            ELSEWHERE,
            r"on the same resamplings, got resample.leave_out\(jax.random.key\(0\), .* and "
            r"resample.leave_out\(jax.random.key\(1\).*; assess both with one plan",
        ),
        (FIRST, FEWER, "on the same resamplings"),
        (FIRST, FAILED.without_failed(), r"on the same resamplings, got .* and .* without 2 failed rows"),
        (FIRST, losses(np.stack([SECOND.g] * 2), leave_out(6), "second"), "on the same resamplings"),
        (
            FIRST,
            losses(SECOND.g, leave_out(6), "second", "absolute"),
            "one loss for both learners, got squared and absolute; assess both with the same loss",
        ),
    ],
    ids=[
        "one resampling",
        "second failed",
        "first failed",
        "other splits",
        "fewer splits",
        "failed rows left out of one",
        "more data sets",
        "other loss",
    ],
)
def test_what_cannot_be_compared_is_refused(test, first, second, message):
    with pytest.raises(ValueError, match=message):
        test(first, second)


@TESTS
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"alternative": "larger"},
            "alternative to be one of 'two-sided', 'greater', 'less', got 'larger'; choose one of these",
        ),
        ({"level": 0.0}, "level to be a number above 0 and below 1, got 0.0; give 0.95 for 95 %"),
        ({"level": 1.0}, "level to be a number above 0 and below 1, got 1.0"),
        ({"level": 95.0}, "level to be a number above 0 and below 1, got 95.0"),
        ({"level": math.nan}, "level to be a number above 0 and below 1, got nan"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused(test, options, message, own_messages):
    with pytest.raises(ValueError, match=message):
        test(FIRST, SECOND, **options)


HALF = np.repeat([[1, 0], [0, 1]], 10, axis=1)
REFUSED = {
    "bootstrap": (
        resample.bootstrap(KEY, 20, 6),
        r"got resample.bootstrap\(.*: cases drawn more than once \(a bootstrap\), for which no "
        r"correction is known; use leave_out or k_fold",
    ),
    "full": (
        resample.from_weights(np.ones((2, 20)), np.ones((2, 20))),
        "got given weights: rows tested on cases that they were trained on; use leave_out or k_fold",
    ),
    "test cases trained on": (
        resample.from_weights(1 - HALF, np.ones((2, 20))),
        "rows tested on cases that they were trained on",
    ),
    "test cases counted twice": (resample.from_weights(1 - HALF, 2 * HALF), "cases drawn more than once"),
    "nested_pairs": (
        resample.nested_pairs(KEY, 20, folds=4),
        "rows of several kinds in one design; use leave_out or k_fold",
    ),
    "paired_halves": (resample.paired_halves(KEY, 40, pairs=2, resamples=3), "rows of several kinds in one design"),
    "task_instances": (
        resample.task_instances(40, 5, instances=4),
        "training sets that do not overlap, which need no correction; use disjoint_t or quasi_f",
    ),
    "common test set": (resample.task_instances(40, 5, instances=4, common=True), "training sets that do not overlap"),
    "no shared case": (
        resample.from_weights(np.eye(4)[:2], np.eye(4)[2:]),
        "rows that share no case, which need no correction; use paired_t",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_corrected_t_refuses_plans_that_it_is_not_made_for(case):
    plan, message = REFUSED[case]
    first, second = pair(plan)
    with pytest.raises(ValueError, match=f"expected random splits or folds for the corrected t-test, .*{message}"):
        compare.corrected_t(first, second)
    compare.paired_t(first, second)
    compare.probability_greater(first, second)


NO_FOLDS = {
    "leave_out": leave_out(5),
    "bootstrap": resample.bootstrap(KEY, 20, 4),
    "balanced": resample.balanced(KEY, 20, 0.25, 20),
    "nested_pairs": resample.nested_pairs(KEY, 20, folds=4),
    "a fold missing": resample.from_weights(
        1 - resample.k_fold(KEY, 20, 5).test[1:], resample.k_fold(KEY, 20, 5).test[1:]
    ),
    "blocks with a gap": resample.time_blocks(20, 4, gap=1),
    "task_instances": resample.task_instances(20, 5, 2),
}


@pytest.mark.parametrize("plan", NO_FOLDS)
@pytest.mark.parametrize("test", [compare.k_fold_t, compare.corrected_k_fold_t, compare.cv_clt])
def test_tests_of_folds_refuse_other_plans(test, plan):
    with pytest.raises(
        ValueError, match=r"expected (random splits or folds|repeats of folds|folds, where each repeat).*, got .*; "
    ):
        test(*pair_of_cases(NO_FOLDS[plan]))


def test_folds_without_labels_are_folds():
    plan = resample.k_fold(KEY, 20, 5, 2)
    assert compare.k_fold_t(*pair(replace(plan, labels={}))).p_value == compare.k_fold_t(*pair(plan)).p_value


def test_labels_say_which_division_a_row_belongs_to_in_any_order():
    plan, order = resample.k_fold(KEY, 20, 5, 2), np.random.default_rng(0).permutation(10)
    mixed = Plan(
        plan.train[order],
        plan.test[order],
        "in another order",
        {name: label[order] for name, label in plan.labels.items()},
    )
    first, second = pair(plan)
    moved = (losses(one.g[order], mixed, one.learner) for one in (first, second))
    assert compare.corrected_k_fold_t(*moved).p_value == pytest.approx(
        compare.corrected_k_fold_t(first, second).p_value
    )
    with pytest.raises(
        ValueError, match="rows that do not test every case once before they test one again; use k_fold"
    ):
        compare.corrected_k_fold_t(*pair(replace(mixed, labels={})))


def test_cv_clt_refuses_repeats_and_means_of_rows():
    with pytest.raises(
        ValueError,
        match=r"expected one division into folds, got 2 \(resample.k_fold.*\); use repeats=1, or corrected_k_fold_t",
    ):
        compare.cv_clt(*pair_of_cases(resample.k_fold(KEY, 20, 5, 2)))
    with pytest.raises(ValueError, match="expected the losses of every case, got the means of rows only"):
        compare.cv_clt(*pair(resample.k_fold(KEY, 20, 5)))


NO_FIVE = {
    "no labels": replace(FIVE, labels={}),
    "ten folds": resample.k_fold(KEY, 20, 10),
    "five folds twice": resample.k_fold(KEY, 20, 5, 2),
    "four times two folds": resample.k_fold(KEY, 20, 2, 4),
    "labels of others": replace(FIVE, labels={"repeat": np.tile(np.arange(5), 2), "fold": np.repeat([0, 1], 5)}),
    "six repeats": replace(
        FIVE, labels={"repeat": np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 5]), "fold": FIVE.labels["fold"]}
    ),
    "splits": leave_out(10),
}


@pytest.mark.parametrize("plan", NO_FIVE)
@pytest.mark.parametrize("test", [compare.five_by_two_t, compare.five_by_two_f])
def test_tests_of_five_by_two_refuse_other_plans(test, plan):
    with pytest.raises(
        ValueError,
        match=r"expected 10 rows with the labels repeat and fold, five times two halves, got .*; "
        r"use resample.five_by_two",
    ):
        test(*pair(NO_FIVE[plan]))


def test_bayesian_t_refuses_a_negative_region_and_what_the_corrected_t_does():
    for rope in (-0.1, math.nan):
        with pytest.raises(
            ValueError,
            match=f"expected rope to be a number of at least 0, got {rope}; give a difference that does not matter",
        ):
            compare.bayesian_t(FIRST, SECOND, rope=rope)
    for plan, message in REFUSED.values():
        with pytest.raises(ValueError, match=message):
            compare.bayesian_t(*pair(plan))


def test_the_interval_of_the_probability_refuses_rows_of_a_design():
    for plan in (
        resample.k_fold(KEY, 20, 5),
        FIVE,
        resample.task_instances(20, 2, 4),
        resample.balanced(KEY, 20, 0.25, 5),
    ):
        with pytest.raises(
            ValueError,
            match="expected rows that are drawn independently of each other, got .*, whose rows belong to one design",
        ):
            compare.probability_interval(*pair(plan))
    with pytest.raises(ValueError, match="level to be a number above 0 and below 1, got 1.0"):
        compare.probability_interval(FIRST, SECOND, level=1.0)


NO_ROW = {
    "several rows": (leave_out(4), {}, "one row of the plan, got row=None of 4; give its number, from 0 to 3"),
    "no such row": (leave_out(4), {"row": 4}, r"row to be a whole number from 0 to 3 \(the rows of the plan\), got 4"),
    "below 0": (leave_out(4), {"row": -1}, "row to be a whole number from 0 to 3 .*, got -1"),
    "trained on": (resample.full(20), {}, "held out of the training, got some that were trained on"),
    "weight 2": (
        resample.from_weights(np.eye(1, 20), 2 - 2 * np.eye(1, 20)),
        {},
        "got some that count more than once; give test weights of 0 and 1",
    ),
}


@pytest.mark.parametrize("case", NO_ROW)
@CASES
def test_tests_of_one_row_refuse_others(test, case):
    plan, options, message = NO_ROW[case]
    with pytest.raises(ValueError, match=message):
        test(*pair_of_cases(plan, loss="zero_one"), **options)


@CASES
def test_tests_of_one_row_refuse_what_they_cannot_count(test):
    with pytest.raises(ValueError, match="expected the losses of every case, got the means of rows only"):
        test(*pair(ONE_ROW))
    weights = np.zeros((2, 1, 20), np.uint8)
    weights[0, 0, :5], weights[1, 0, :6] = 1, 1
    with pytest.raises(
        ValueError, match=r"5 to 6 of them in different data sets; take one at a time, as in losses\[q\]"
    ):
        test(*pair_of_cases(resample.from_weights(1 - weights, weights), sets=2, loss="zero_one"))
    if test is not compare.mcnemar:
        with pytest.raises(
            ValueError, match="expected at least 2 test cases held out of the training, got 1; leave more of them out"
        ):
            test(*pair_of_cases(resample.leave_one_out(20), loss="zero_one"), row=3)


def test_two_test_cases_are_enough_for_tests_that_need_two():
    plan = resample.leave_out(KEY, 20, 0.1, 1)
    first, second = pair_of_cases(plan)
    assert int(plan.test_sizes.min()) == 2
    for test in (compare.hold_out_t, compare.permutation):
        assert np.isfinite(test(first, second).p_value)


def test_what_cannot_be_asked_of_one_row_is_refused():
    first, second = pair_of_cases(ONE_ROW)
    with pytest.raises(
        ValueError,
        match=r"expected losses of 0 and 1 for McNemar's test, got .* \(squared\); "
        r"use the loss zero_one, or hold_out_t",
    ):
        compare.mcnemar(first, second)
    with pytest.raises(
        ValueError, match="expected kind to be one of 'mid-p', 'exact', 'chi2', 'continuity', got 'midp'"
    ):
        compare.mcnemar(first, second, kind="midp")
    with pytest.raises(ValueError, match="alternative to be one of 'two-sided', 'greater', 'less', got 'larger'"):
        compare.permutation(first, second, alternative="larger")
    with pytest.raises(ValueError, match="resamples"):
        compare.permutation(first, second, resamples=0)


# Other packages


def score_losses(plan, scores, learner):
    """1 less the score of a classifier in each row."""
    return losses(1 - np.asarray(scores), plan, learner)


def test_tests_are_those_of_mlxtend():
    """Its tests of splits that it draws itself; it has no corrected t, and its McNemar continuity correction goes
    below 0.
    """
    from mlxtend import evaluate

    x, y = load_iris(return_X_y=True)
    models = GaussianNB(), DecisionTreeClassifier(max_depth=1, random_state=0)
    n = len(y)

    def assessed(plan):
        return (
            score_losses(
                plan,
                [
                    m.fit(x[a > 0], y[a > 0]).score(x[b > 0], y[b > 0])
                    for a, b in zip(plan.train, plan.test, strict=True)
                ],
                repr(m),
            )
            for m in models
        )

    draw = np.random.RandomState(1)
    halves = [
        half
        for _ in range(5)
        for half in train_test_split(np.arange(n), test_size=0.5, random_state=draw.randint(low=0, high=32767))
    ]
    train = np.array([np.isin(np.arange(n), half) for half in halves], np.uint8)
    plan = Plan(train, 1 - train, "halves of mlxtend", FIVE.labels)
    first, second = assessed(plan)
    for test, peer in (
        (compare.five_by_two_t, evaluate.paired_ttest_5x2cv),
        (compare.five_by_two_f, evaluate.combined_ftest_5x2cv),
    ):
        got = test(first, second)
        np.testing.assert_allclose([got.statistic, got.p_value], peer(*models, x, y, random_seed=1), rtol=1e-9)
    test = np.array(
        [np.isin(np.arange(n), part) for _, part in KFold(10, shuffle=True, random_state=1).split(x)], np.uint8
    )
    got = compare.k_fold_t(*assessed(Plan(1 - test, test, "folds of mlxtend")))
    np.testing.assert_allclose(
        [got.statistic, got.p_value],
        evaluate.paired_ttest_kfold_cv(*models, x, y, cv=10, shuffle=True, random_seed=1),
        rtol=1e-9,
    )
    table = np.array([[5, 3], [11, 7]])
    pair_of = table_of(7, 11, 3, 5)
    assert compare.mcnemar(*pair_of, kind="exact").p_value == pytest.approx(evaluate.mcnemar(table, exact=True)[1])
    assert compare.mcnemar(*pair_of, kind="continuity").p_value == pytest.approx(evaluate.mcnemar(table)[1])
    equal = np.array([[2, 4], [4, 2]])
    assert evaluate.mcnemar(equal)[1] == pytest.approx(0.7237, abs=1e-4)
    assert compare.mcnemar(*table_of(2, 4, 4, 2), kind="continuity").p_value == 1


@pytest.mark.parametrize(("folds", "repeats"), [(10, 1), (5, 4)])
@pytest.mark.parametrize("rope", [0.0, 0.1])
def test_bayesian_t_is_that_of_baycomp(folds, repeats, rope):
    """It takes the correlation from the number of scores, 1/k: right for folds only, not for random splits."""
    import baycomp

    first, second = pair(resample.k_fold(KEY, 20, folds, repeats))
    got = compare.bayesian_t(first, second, rope=rope).parts
    want = baycomp.CorrelatedTTest(first.g, second.g, rope, repeats).probs()
    np.testing.assert_allclose([got["P(left)"], got["P(right)"]], [want[0], want[-1]], rtol=1e-9)


def test_baycomp_is_right_for_random_splits_if_told_a_number_of_runs_that_makes_its_correlation_theirs():
    """20 splits that test a quarter: n2 / N = 5 / 20."""
    import baycomp

    first, second = pair(leave_out(20))
    got = compare.bayesian_t(first, second, rope=0.1).parts
    right, wrong = (baycomp.CorrelatedTTest(first.g, second.g, 0.1, runs).probs() for runs in (5, 1))
    np.testing.assert_allclose([got["P(left)"], got["P(rope)"], got["P(right)"]], right, rtol=1e-9)
    assert wrong[1] / right[1] == pytest.approx(0.46, abs=0.01)


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
