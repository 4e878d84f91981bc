"""Tests of several learners and adjusted p-values: against SciPy, statsmodels, published tables and examples, and the error that they should keep."""

import functools
import itertools
import math
from types import SimpleNamespace

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.contingency_tables import cochrans_q, mcnemar
from statsmodels.stats.multitest import multipletests

from jaxgen import draw, resample
from jaxgen.stats import compare
from jaxgen.types import Losses

pytestmark = pytest.mark.one_device

KEY = jax.random.key(0)
EXACT = {"rtol": 1e-11, "atol": 1e-13}
"""The same few operations in another order; the atol is for p-values near 0."""
DEMSAR = np.array(
    [
        *([4, 3, 2, 1], [1, 2, 3, 4], [4, 1, 2, 3], [4, 1, 3, 2], [4, 2, 3, 1], [1, 2.5, 4, 2.5], [3, 2, 4, 1]),
        *([2.5, 2.5, 4, 1], [4, 3, 2, 1], [2.5, 2.5, 2.5, 2.5], [4, 2.5, 1, 2.5], [3, 2, 4, 1], [4, 1, 2, 3], [3, 1, 4, 2]),
    ]
)
"""Demsar 2006, table 6: the ranks of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 data sets."""


def random(seed=0):
    return np.random.default_rng(seed)


TABLES = {
    "no ties": random().normal(size=(12, 4)) + np.arange(4) / 4,
    "three learners": random(1).normal(size=(7, 3)),
    "many learners": random(2).normal(size=(9, 8)),
    "ties": random(3).integers(0, 3, size=(15, 5)).astype(float),
    "blocks of equals": np.vstack([random(4).normal(size=(8, 4)), np.ones((3, 4))]),
    "two blocks": random(5).normal(size=(2, 4)),
    "far apart": 1e30 * random(6).normal(size=(12, 4)),
    "of Demsar": DEMSAR,
}
EVERY_TABLE = pytest.mark.parametrize("name", TABLES)


def losses(g, plan, learner="first", loss="squared", failed=()):
    g = np.asarray(g, np.float64)
    failure = np.zeros(g.shape, np.uint8)
    failure[..., list(failed)] = 1
    return Losses(g, g, plan, learner, loss, failure, ("it did not converge",))


def learners(shape, plan, seed=0, count=3):
    g = random(seed).gamma(4.0, 0.5, size=(count, *shape)) + 0.3 * np.arange(count).reshape(-1, *[1] * len(shape))
    return [losses(one, plan, f"learner {number}") for number, one in enumerate(g)]


def hold_out(values, learner="first", loss="squared", rows=1, tested=None):
    """Losses of a plan that trains on ten more cases and tests on those of `values` [N]; the last row is theirs."""
    n = len(values)
    test = np.r_[np.zeros(10), np.ones(n) if tested is None else tested]
    plan = resample.from_weights(np.tile(np.r_[np.ones(10), np.zeros(n)], (rows, 1)), np.tile(test, (rows, 1)))
    cases = np.tile(np.r_[np.full(10, 9.0), values], (rows, 1))
    cases[:-1] += 5
    mean = (cases * test).sum(-1) / test.sum()
    return Losses(mean, mean, plan, learner, loss, np.zeros(rows, np.uint8), (), cases)


# Friedman, Iman and Davenport


@EVERY_TABLE
def test_friedman_is_that_of_scipy(name):
    table = TABLES[name]
    got, want = compare.friedman(table), scipy.stats.friedmanchisquare(*table.T)
    np.testing.assert_allclose([got.statistic, got.p_value], want, **EXACT)
    b, k = table.shape
    ranks = scipy.stats.rankdata(table, axis=-1).mean(0)
    np.testing.assert_allclose(got.ranks, ranks, **EXACT)
    np.testing.assert_allclose(got.uncorrected, 12 * b / (k * (k + 1)) * (np.sum(ranks**2) - k * (k + 1) ** 2 / 4), rtol=1e-9)  # as printed by Demsar, which cancels
    assert got.df == (k - 1,)


@EVERY_TABLE
def test_iman_davenport_is_the_analysis_of_variance_of_ranks(name):
    table = TABLES[name]
    b, k = table.shape
    frame = pd.DataFrame({"rank": scipy.stats.rankdata(table, axis=-1).ravel(), "block": np.repeat(np.arange(b), k), "learner": np.tile(np.arange(k), b)})
    want = anova_lm(ols("rank ~ C(learner) + C(block)", frame).fit()).loc["C(learner)"]
    got = compare.iman_davenport(table)
    np.testing.assert_allclose([got.statistic, got.p_value], [want["F"], want["PR(>F)"]], rtol=1e-9)  # least squares
    assert got.df == (k - 1, (k - 1) * (b - 1))


def test_the_example_of_demsar():
    """Section 3.2.2: chi2 = 9.28, F = 3.69, critical differences 1.25 at 0.05 and 1.12 at 0.10. He leaves the correction for ties out."""
    labels = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
    assert [f"{rank:.3f}" for rank in compare.friedman(DEMSAR).ranks] == ["3.143", "2.000", "2.893", "1.964"]
    assert f"{compare.friedman(DEMSAR).uncorrected:.2f}" == "9.28"
    assert f"{compare.iman_davenport(DEMSAR).uncorrected:.2f}" == "3.69"
    assert [f"{compare.nemenyi(DEMSAR, level).critical_difference:.2f}" for level in (0.95, 0.9)] == ["1.25", "1.12"]
    assert compare.nemenyi(DEMSAR).groups() == ((3, 1, 2, 0),)
    tenth = compare.nemenyi(DEMSAR, 0.9, labels)
    assert tenth.groups() == ((3, 1, 2), (2, 0))
    assert "critical difference 1.118 at 90%; smaller losses: C4.5+m < C4.5 (p = 0.0887); C4.5+m+cf < C4.5 (p = 0.0742)" in str(tenth)


@EVERY_TABLE
def test_a_block_of_equals_changes_nothing_but_the_degrees_of_freedom(name):
    table = TABLES[name]
    more = np.vstack([table, np.full(table.shape[1], 7.0)])
    assert compare.friedman(more).p_value == pytest.approx(compare.friedman(table).p_value, rel=1e-9)
    assert compare.iman_davenport(more).df[1] == compare.iman_davenport(table).df[1] + table.shape[1] - 1


@pytest.mark.parametrize("first", [[1.0, 2.0, 3.0], [1.0, 1.0, 2.0], [1.0, 2.0, 2.0, 4.0], [3.0, 1.0]], ids=str)
@pytest.mark.parametrize("blocks", [2, 3])
def test_the_p_value_of_perfect_agreement_is_exact(first, blocks):
    got = compare.iman_davenport(np.tile(first, (blocks, 1)))
    orders = list(itertools.permutations(first))
    agreeing = [all(order == tuple(first) for order in others) for others in itertools.product(orders, repeat=blocks - 1)]
    assert got.statistic == math.inf
    assert got.p_value == pytest.approx(np.mean(agreeing), rel=1e-12)


TESTS = {"friedman": compare.friedman, "iman_davenport": compare.iman_davenport, "nemenyi": compare.nemenyi}
EVERY_TEST = pytest.mark.parametrize("test", TESTS)


@pytest.mark.parametrize("test", ["friedman", "iman_davenport", "cochran_q"])
@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (6, 3)], ids=str)
def test_equal_losses_are_no_evidence(test, shape):
    got = getattr(compare, test)(np.ones(shape))
    assert (got.statistic, got.p_value) == (0, 1)
    np.testing.assert_array_equal(got.ranks, (shape[1] + 1) / 2)


@EVERY_TEST
@pytest.mark.parametrize("change", [lambda x: x[::-1], lambda x: np.exp(x), lambda x: x * 3 + np.arange(len(x))[:, None]], ids=["order of blocks", "monotone", "own shift and scale"])
def test_only_the_ranks_within_blocks_count(test, change):
    table = TABLES["no ties"]
    one, other = TESTS[test](table), TESTS[test](change(table))
    np.testing.assert_allclose(one.p_value, other.p_value, **EXACT)


def test_two_learners_are_compared_by_the_sign_test():
    table = random(7).normal(size=(20, 2)) + np.array([0, 0.6])
    wins = int(np.sum(table[:, 0] < table[:, 1]))
    got = compare.friedman(table)
    assert got.p_value == pytest.approx(mcnemar([[0, wins], [20 - wins, 0]], exact=False, correction=False).pvalue, rel=1e-12)
    assert "beware: with two learners this is the sign test, which leaves the size of the differences out; a test of compare uses it" in str(got)


# Cochran's Q


@pytest.mark.parametrize("count", [2, 3, 6])
def test_cochran_q_is_that_of_statsmodels(count):
    values = (random(count).random((40, count)) < 0.3 + 0.05 * np.arange(count)).astype(float)
    want = cochrans_q(values)
    got = compare.cochran_q(values)
    np.testing.assert_allclose([got.statistic, got.p_value, got.df[0]], [want.statistic, want.pvalue, want.df], **EXACT)
    of_losses = compare.cochran_q([hold_out(one, loss="zero_one", rows=2) for one in values.T], row=1)
    assert of_losses.statistic == got.statistic
    np.testing.assert_allclose(of_losses.means, values.mean(0), **EXACT)
    if count == 2:
        table = [[np.sum((values[:, 0] == i) & (values[:, 1] == j)) for j in (0, 1)] for i in (0, 1)]
        assert got.p_value == pytest.approx(mcnemar(table, exact=False, correction=False).pvalue, rel=1e-12)
        assert not got.note


# Nemenyi


@pytest.mark.parametrize(
    ("level", "published"),
    [(0.95, (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)), (0.9, (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920))],
)
def test_critical_values_are_those_of_demsar(level, published):
    """Table 5a, whose last digit is that of a rounded studentised range divided by sqrt(2): up to 0.0005 / sqrt(2) + 0.0005 off."""
    for k, want in enumerate(published, 2):
        assert compare.nemenyi(np.tile(np.arange(float(k)), (10, 1)), level).critical_difference / math.sqrt(k * (k + 1) / 60) == pytest.approx(want, abs=9e-4)


@EVERY_TABLE
def test_nemenyi_is_that_of_scikit_posthocs(name):
    peer = pytest.importorskip("scikit_posthocs")
    want = peer.posthoc_nemenyi_friedman(TABLES[name]).to_numpy()
    np.testing.assert_allclose(compare.nemenyi(TABLES[name]).p_value, want, rtol=1e-7, atol=1e-9)  # both integrate numerically


@EVERY_TABLE
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_p_values_and_critical_difference_agree(name, level):
    got = compare.nemenyi(TABLES[name], level)
    apart = np.abs(got.ranks[:, None] - got.ranks) >= got.critical_difference
    np.testing.assert_array_equal(got.p_value <= 1 - level, apart)
    together = {pair for group in got.groups() for pair in itertools.permutations(group, 2)}
    np.testing.assert_array_equal([[i == j or (i, j) in together for j in range(len(apart))] for i in range(len(apart))], ~apart)
    assert not any(set(one) < set(other) for one, other in itertools.permutations(got.groups(), 2))
    np.testing.assert_array_equal(got.p_value, got.p_value.T)
    assert (np.diag(got.p_value) == 1).all()


def test_equal_losses_have_one_rank():
    got = compare.nemenyi(np.ones((5, 3)))
    assert (got.p_value == 1).all()
    assert got.groups() == ((0, 1, 2),)
    assert "no two learners are told apart" in str(got)


# Where blocks come from


@EVERY_TEST
def test_data_sets_are_blocks_by_their_mean_over_rows(test):
    several = learners((9, 5), resample.leave_out(KEY, 20, 0.25, 5))
    got = TESTS[test](several)
    np.testing.assert_array_equal(got.p_value, TESTS[test](np.stack([one.g.mean(-1) for one in several], -1)).p_value)
    assert got.learners == ("learner 0", "learner 1", "learner 2")
    assert got.blocks == "9 data sets"
    assert got.unit == "squared"
    assert not got.note


@EVERY_TEST
def test_resamplings_are_blocks_with_a_warning_where_they_share_cases(test):
    shared, own = (learners((4,), plan) for plan in (resample.k_fold(KEY, 20, 4), resample.task_instances(40, 5, instances=4)))
    assert "beware: the blocks are resamplings of one data set that share cases, so they depend on each other and p-values are too small; give several data sets, or use" in str(TESTS[test](shared))
    got = TESTS[test](own)
    assert got.blocks == "4 resamplings"
    assert not got.note
    np.testing.assert_array_equal(got.p_value, TESTS[test](np.stack([one.g for one in own], -1)).p_value)


# Adjusted p-values

ADJUSTED = {"holm": "holm", "benjamini_hochberg": "fdr_bh", "benjamini_yekutieli": "fdr_by"}
EVERY_ADJUSTMENT = pytest.mark.parametrize("name", ADJUSTED)
FAMILIES = {
    "spread": random().random(12) ** 3,
    "ties": np.array([0.01, 0.2, 0.01, 0.04, 0.04]),
    "one": np.array([0.3]),
    "ends": np.array([0.0, 1.0, 1.0, 0.0, 0.5]),
    "tiny": np.array([1e-300, 1e-12, 0.9]),
}


@EVERY_ADJUSTMENT
@pytest.mark.parametrize("family", FAMILIES)
def test_adjusted_p_values_are_those_of_statsmodels(name, family):
    p = FAMILIES[family]
    got = getattr(compare, name)(p)
    np.testing.assert_allclose(got, multipletests(p, method=ADJUSTED[name])[1], rtol=1e-12)
    np.testing.assert_array_equal(getattr(compare, name)(p[::-1]), got[::-1])
    np.testing.assert_array_equal(getattr(compare, name)(p.tolist()), got)
    assert (got >= p).all()


@EVERY_ADJUSTMENT
def test_each_data_set_is_a_family_of_its_own(name):
    p = random(1).random((6, 4)) ** 2
    got = getattr(compare, name)(p)
    for one, family in zip(got, p, strict=True):
        np.testing.assert_array_equal(one, getattr(compare, name)(family))


def beyond(rate, of, side):
    """The number of events that a rate exceeds, or falls short of, with probability 1e-6."""
    return scipy.stats.binom.ppf(1 - 1e-6 if side == "above" else 1e-6, of, rate)


def test_the_slides_of_scott_and_variyam():
    """ "There's an over 18.5% chance that at least one is wrong": four comparisons at 5 % each; Holm keeps 1 - (1 - 0.05/4)^4 = 4.9 %."""
    p = random(2).random((100_000, 4))
    raw, adjusted = (np.sum((values <= 0.05).any(-1)) for values in (p, compare.holm(p)))
    assert 1 - 0.95**4 > 0.185
    assert beyond(1 - 0.95**4, 100_000, "below") <= raw <= beyond(1 - 0.95**4, 100_000, "above")
    assert beyond(1 - 0.9875**4, 100_000, "below") <= adjusted <= beyond(1 - 0.9875**4, 100_000, "above")


# pairwise

FOUR = learners((12,), resample.leave_out(KEY, 20, 0.25, 12), count=4)


@pytest.mark.parametrize("test", [compare.corrected_t, compare.paired_t])
@pytest.mark.parametrize("adjust", [*ADJUSTED, "none"])
def test_pairwise_is_the_test_of_every_pair(test, adjust):
    got = compare.pairwise(FOUR, test, adjust)
    raw, adjusted, estimate = (got.matrix(name) for name in ("p_value", "adjusted", "estimate"))
    for i, j in itertools.combinations(range(4), 2):
        one = test(FOUR[i], FOUR[j])
        assert (raw[i, j], raw[j, i], estimate[i, j], estimate[j, i]) == (one.p_value, one.p_value, one.estimate, -one.estimate)
    want = got.p_value if adjust == "none" else multipletests(got.p_value, method=ADJUSTED[adjust])[1]
    np.testing.assert_allclose(got.adjusted, want, rtol=1e-12)
    np.testing.assert_array_equal(adjusted[got.first, got.second], got.adjusted)
    assert np.isnan(np.diagonal([raw, adjusted, estimate], axis1=1, axis2=2)).all()
    assert bool(got.note) is (test is compare.paired_t)
    assert list(got.to_frame().columns) == ["first", "second", "estimate", "statistic", "p_value", "adjusted", "level", "unit", "method", "adjustment"]


def test_pairwise_of_several_data_sets_has_a_family_for_each():
    plan = resample.leave_out(KEY, 20, 0.25, 6)
    several = learners((5, 6), plan)
    got = compare.pairwise(several, compare.corrected_t)
    for q in range(5):
        alone = compare.pairwise([one[q] for one in several], compare.corrected_t)
        np.testing.assert_allclose(got.adjusted[q], alone.adjusted, **EXACT)
        np.testing.assert_allclose(got.matrix()[q], alone.matrix(), **EXACT)
    assert f"5 data sets; some difference found at 0.05 in {np.mean((got.adjusted <= 0.05).any(-1)):.1%} of them" in str(got)
    frame = got.to_frame()
    assert frame.set.tolist() == np.repeat(range(5), 3).tolist()
    np.testing.assert_array_equal(frame.adjusted, got.adjusted.ravel())


def test_pairwise_takes_any_function_with_a_p_value():
    def wilcoxon(first, second):
        return SimpleNamespace(p_value=scipy.stats.wilcoxon(first.g, second.g).pvalue)

    got = compare.pairwise(FOUR, wilcoxon, labels=list("abcd"))
    assert got.adjusted[0] == compare.holm([scipy.stats.wilcoxon(FOUR[i].g, FOUR[j].g).pvalue for i, j in itertools.combinations(range(4), 2)])[0]
    assert np.isnan(got.estimate).all()
    for part in ("wilcoxon (given test): 6 pairs of 4 learners, squared loss, second minus first", "family-wise error by Holm 1979", "about the differences of the test"):
        assert part in str(got)
    assert "estimate" not in got.to_frame()


def test_equal_learners_differ_in_nothing():
    got = compare.pairwise([FOUR[0], FOUR[0], FOUR[0]], compare.corrected_t)
    assert (got.p_value == 1).all()
    assert (got.adjusted == 1).all()
    assert not got.rejected().any()


# max_t


def critical(got, values):
    """The critical value that joint limits were made with."""
    error = (values[:, got.second] - values[:, got.first]).std(0, ddof=1) / math.sqrt(len(values))
    return (got.upper - got.lower) / 2 / error


def test_max_t_of_independent_learners_has_the_critical_values_of_tukey_and_dunnett():
    """All pairs: the studentised range divided by sqrt(2). Against one: Dunnett 1964, infinite degrees of freedom, two-sided 5 %.

    The fractile of 20,000 draws has a standard error of 0.6 %, and the 1000 cases are normal and uncorrelated to 3 %.
    """
    values = random(3).normal(size=(1000, 5))
    pairs, one = (compare.max_t(values, against, resamples=20_000) for against in (None, 2))
    np.testing.assert_allclose(critical(pairs, values), scipy.stats.studentized_range.ppf(0.95, 5, np.inf) / math.sqrt(2), rtol=0.02)
    np.testing.assert_allclose(critical(one, values), 2.44, rtol=0.02)
    assert (one.first == 2).all()
    assert one.second.tolist() == [0, 1, 3, 4]
    np.testing.assert_allclose(one.estimate, values[:, [0, 1, 3, 4]].mean(0) - values[:, 2].mean(), **EXACT)


@pytest.mark.parametrize("against", [None, 0])
@pytest.mark.parametrize("step_down", [True, False])
@pytest.mark.parametrize("seed", [4, 7])
def test_max_t_is_its_definition(against, step_down, seed):
    values = random(seed).gamma(1.0, size=(25, 4)) + np.array([0, 0.2, 0.5, 0.9])
    got = compare.max_t(values, against, resamples=198, seed=5, step_down=step_down)
    differences = values[:, got.second] - values[:, got.first]
    t = scipy.stats.ttest_1samp(differences, 0).statistic
    weights = draw.counts(random(5), 198, 25)
    drawn = np.abs([scipy.stats.ttest_1samp(np.repeat(differences, w, axis=0), differences.mean(0)).statistic for w in weights])
    np.testing.assert_allclose(got.statistic, t, **EXACT)
    np.testing.assert_allclose(got.p_value, [(1 + np.sum(drawn[:, p] >= abs(t[p]))) / 199 for p in range(len(t))], **EXACT)
    np.testing.assert_allclose(critical(got, values), np.sort(drawn.max(1))[189], rtol=1e-9)  # of 199 with the observed one, 9 are left above: 4.5 %
    largest, want = 0.0, np.empty(len(t))
    for p in sorted(range(len(t)), key=lambda p: -abs(t[p])):
        rivals = [q for q in range(len(t)) if not step_down or abs(t[q]) <= abs(t[p])]
        largest = want[p] = max(largest, (1 + np.sum(drawn[:, rivals].max(1) >= abs(t[p]))) / 199)
    np.testing.assert_allclose(got.adjusted, want, **EXACT)


@pytest.mark.parametrize("seed", range(5))
def test_limits_and_single_step_agree_and_stepping_down_rejects_no_less(seed):
    values = random(seed).normal(size=(30, 5)) + 0.3 * np.arange(5)
    single, down = (compare.max_t(values, resamples=999, seed=seed, step_down=step) for step in (False, True))
    np.testing.assert_array_equal((single.lower > 0) | (single.upper < 0), single.rejected())
    np.testing.assert_array_equal(single.rejected(), single.adjusted <= 0.05)
    assert (down.adjusted <= single.adjusted).all()
    assert (down.adjusted < single.adjusted).any()
    assert (down.p_value <= down.adjusted).all()
    np.testing.assert_array_equal(down.lower, single.lower)


def test_max_t_of_one_pair_is_about_the_t_test():
    values = random(6).normal(size=(200, 2)) + np.array([0, 0.15])
    got, want = compare.max_t(values, resamples=20_000), scipy.stats.ttest_rel(values[:, 1], values[:, 0])
    assert got.adjusted == got.p_value
    assert got.p_value[0] == pytest.approx(want.pvalue, abs=0.012)  # four standard errors of 20,000 draws are 0.008
    interval = want.confidence_interval()
    np.testing.assert_allclose([got.lower[0], got.upper[0]], interval, atol=0.02 * np.ptp(interval))


def test_max_t_has_the_units_of_the_loss_and_the_order_of_the_learners():
    values = random(7).gamma(2.0, size=(40, 3))
    one, scaled, shuffled = (compare.max_t(v, resamples=199) for v in (values, 1e20 * (values + 5), values[:, [2, 1, 0]]))
    np.testing.assert_allclose(scaled.lower, 1e20 * one.lower, rtol=1e-9, atol=1e10)
    np.testing.assert_array_equal(scaled.adjusted, one.adjusted)
    np.testing.assert_allclose(shuffled.matrix()[::-1, ::-1], one.matrix(), **EXACT)
    assert not np.array_equal(compare.max_t(values, resamples=199, seed=1).lower, one.lower)


def test_max_t_of_losses_takes_the_tested_cases_of_one_row():
    values, tested = random(8).gamma(2.0, size=(30, 3)), np.r_[np.ones(20), np.zeros(10)]
    several = [hold_out(one, f"learner {number}", tested=tested, rows=2) for number, one in enumerate(values.T)]
    got, want = compare.max_t(several, row=1, resamples=99), compare.max_t(values[:20], resamples=99)
    np.testing.assert_array_equal(got.lower, want.lower)
    for part in ("max-t test, step-down", "3 pairs of 3 learners, squared loss", "99 bootstrap draws, seed 0; joint 95% limits", "learner 2", "about the risks of these trained models"):
        assert part in str(got)


def test_losses_without_a_difference_or_without_variance():
    values = np.column_stack([np.arange(9.0), np.arange(9.0), np.arange(9.0) + 0.1, random().normal(size=9)])
    got = compare.max_t(values, resamples=99)
    assert (got.p_value[0], got.adjusted[0], got.lower[0], got.upper[0]) == (1, 1, 0, 0)
    assert got.statistic[0] == 0
    shifted = np.column_stack([np.zeros(13), np.full(13, 0.1), random().normal(size=13)])
    assert np.full(13, 0.1).mean() != 0.1  # the deviations from it are rounding, whose draws would outdo all others
    got = compare.max_t(shifted, resamples=99)
    assert got.upper[1] - got.lower[1] < 10
    one = compare.max_t(np.column_stack([np.zeros(9), np.full(9, 0.1)]), resamples=99)
    assert (one.statistic[0], one.p_value[0]) == (math.inf, 0.01)
    assert one.lower == one.upper == pytest.approx(0.1)
    rare = np.zeros((20, 2))
    rare[0, 0] = 1.0
    assert compare.max_t(rare, resamples=999).p_value[0] > 0.3  # a draw without that case, 0.95^20 = 0.36, has no variance


@pytest.mark.parametrize("kind", ["squared", "zero_one"])
def test_the_family_wise_error_is_kept_where_raw_p_values_break_it(kind):
    """Five exchangeable learners on 60 cases of unequal difficulty, and the first one worse: no other differs. 400 data sets."""
    rng, sets, count = random(9), 400, {"max-t": 0, "holm": 0, "raw": 0}
    for seed in range(sets):
        hard = rng.gamma(4.0, 0.25, size=(60, 1))
        values = hard * rng.normal(size=(60, 5)) ** 2 if kind == "squared" else (rng.random((60, 5)) < 0.4 * np.minimum(hard, 2)).astype(float)
        values[:, 0] = values[:, 0] + 1 if kind == "squared" else np.maximum(values[:, 0], rng.random(60) < 0.5)
        got = compare.max_t(values, resamples=199, seed=seed)
        raw = np.nan_to_num(scipy.stats.ttest_rel(values[:, got.second], values[:, got.first]).pvalue, nan=1.0)
        for name, p in {"max-t": got.adjusted, "holm": compare.holm(raw), "raw": raw}.items():
            count[name] += bool((p[got.first > 0] <= 0.05).any())
    limit = beyond(0.05, sets, "above")
    assert count["max-t"] <= limit
    assert count["holm"] <= limit
    assert count["raw"] > limit


# Prints and frames


def test_results_say_what_they_are():
    table, labels = TABLES["no ties"], ["net", "line", "tree", "mean"]
    for test, parts in {
        "friedman": ("Friedman test (Friedman 1937; Demsar 2006): 4 learners, 12 blocks", "chi2 = ", "with 3 degrees of freedom, p = ", "same distribution of losses in every block", "average rank: "),
        "iman_davenport": ("Iman & Davenport 1980", "F = ", "with 3 and 33 degrees of freedom"),
        "nemenyi": ("Nemenyi 1963", "critical difference 1.354 at 95%"),
    }.items():
        got = TESTS[test](table, labels=labels)
        assert all(part in str(got) for part in (*parts, "net "))
        assert "beware" not in str(got)
    frame = compare.friedman(table, labels).to_frame()
    assert frame.learner.tolist() == labels
    assert frame.loc[0, ["rank", "p_value", "df"]].tolist() == [compare.friedman(table).ranks[0], compare.friedman(table).p_value, "3"]
    pairs = compare.nemenyi(table, labels=labels).to_frame()
    assert len(pairs) == 6
    assert pairs.loc[0, "rank_difference"] == pytest.approx(np.subtract(*compare.friedman(table).ranks[[1, 0]]))
    assert compare.friedman(table).learners == ("1", "2", "3", "4")


# What cannot be asked

ONE = resample.leave_out(KEY, 20, 0.25, 12)
ROW = [hold_out(random(seed).random(6), f"learner {seed}") for seed in range(3)]
MEANS = [losses(one.test_mean, one.plan, one.learner) for one in ROW]
BAD = {
    "one block": (lambda: compare.friedman(np.ones((1, 3))), r"losses of at least 2 blocks and 2 learners, got shape \[1, 3\]; give more, the learners on the last axis"),
    "one learner": (lambda: compare.nemenyi(np.ones((3, 1))), r"2 blocks and 2 learners, got shape \[3, 1\]"),
    "one row": (lambda: compare.iman_davenport(MEANS), r"at least 2 resamplings and 2 learners, got shape \[1, 3\]"),
    "three axes": (lambda: compare.friedman(np.ones((3, 3, 3))), r"got shape \[3, 3, 3\]"),
    "not finite": (lambda: compare.friedman(np.array([[1.0, 2.0], [np.nan, np.inf]])), r"finite losses, got 2 that are not, the first at \[1, 0\]; leave out those blocks"),
    "labels": (lambda: compare.nemenyi(np.ones((3, 3)), labels=["a"]), "3 labels, one a learner, got 1"),
    "level": (lambda: compare.nemenyi(np.ones((3, 3)), level=95.0), "level between 0 and 1, got 95.0"),
    "one of a list": (lambda: compare.friedman(FOUR[:1]), "at least 2 learners, got 1; give the losses of each"),
    "other loss": (lambda: compare.friedman([FOUR[0], losses(FOUR[1].g, ONE, loss="absolute")]), "one loss for both learners, got squared and absolute"),
    "other plan": (lambda: compare.friedman([FOUR[0], losses(FOUR[1].g, resample.leave_out(jax.random.key(1), 20, 0.25, 12))]), "both learners on the same resamplings, got resample.leave_out"),
    "other sets": (lambda: compare.friedman([losses(np.ones((2, 12)), ONE), losses(np.ones((3, 12)), ONE)]), "both learners on the same resamplings"),
    "failed": (lambda: compare.friedman([FOUR[0], losses(FOUR[1].g, ONE, failed=[3])]), "every row to have been fitted, got 1 failed of 12"),
    "failed, by cases": (lambda: compare.max_t([ROW[0], Losses(*[ROW[1].test_mean] * 2, ROW[1].plan, "b", "squared", np.ones(1, np.uint8), ("it is bad",), ROW[1].values)]), "got 1 failed of 1"),
    "not 0-1": (lambda: compare.cochran_q(ROW), r"0-1 losses for Cochran's Q, got 0\.\d+ and 18 such values in all"),
    "no row": (lambda: compare.max_t(FOUR), "one row of the plan, got row=None of 12; give its number, from 0 to 11"),
    "row 12": (lambda: compare.max_t(FOUR, row=12), "got row=12 of 12"),
    "means only": (lambda: compare.max_t(MEANS), "the losses of every case, got the means of rows only"),
    "cases twice": (lambda: compare.max_t([hold_out(np.ones(4), tested=np.full(4, 2))] * 2), "test cases held out of the training, got some that count more than once; give test weights of 0 and 1"),
    "trained on": (lambda: compare.cochran_q([Losses(*[np.ones(1)] * 2, resample.full(4), "a", "zero_one", np.zeros(1, np.uint8), (), np.ones((1, 4)))] * 2), "got some that were trained on"),
    "sets": (lambda: compare.cochran_q([losses(np.ones((2, 12)), ONE)] * 2), r"the losses of one data set, got those of 2; choose one with losses\[q\]"),
    "one case": (lambda: compare.max_t(np.ones((1, 3))), r"at least 2 test cases and 2 learners, got shape \[1, 3\]"),
    "against nobody": (lambda: compare.max_t(np.ones((4, 3)), against=3), r"against to be a whole number from 0 to 2 \(the position of a learner\), got 3"),
    "few draws": (lambda: compare.max_t(np.ones((4, 3)), resamples=18), "resamples to be a whole number of at least 19, got 18"),
    "few draws, 99 %": (lambda: compare.max_t(np.ones((4, 3)), resamples=98, level=0.99), "at least 99, got 98"),
    "adjustment": (lambda: compare.pairwise(FOUR, compare.corrected_t, "tukey"), "adjustment holm, benjamini_hochberg, benjamini_yekutieli or none, got 'tukey'"),
    "one-sided": (lambda: compare.pairwise(FOUR, functools.partial(compare.corrected_t, alternative="less")), "two-sided p_value, got .* with less; choose another, or its two-sided form"),
    "no p-value": (lambda: compare.pairwise(FOUR, compare.probability_greater), "got probability_greater with no p_value"),
    "p-value of NaN": (lambda: compare.pairwise(FOUR, lambda first, second: SimpleNamespace(p_value=np.nan)), "with no p_value"),
    "what the test refuses": (lambda: compare.pairwise(learners((4,), resample.bootstrap(KEY, 20, 4)), compare.corrected_t), "no correction is known"),
    "labels of pairs": (lambda: compare.pairwise(FOUR, compare.corrected_t, labels=["a"]), "4 labels, one a learner, got 1"),
    "matrix": (lambda: compare.pairwise(FOUR, compare.corrected_t).matrix("lower"), "the name adjusted, p_value or estimate, got 'lower'"),
    "nothing to adjust": (lambda: compare.holm([]), "p-values from 0 to 1, got none; give at least one, and no NaN"),
    "p of NaN": (lambda: compare.benjamini_hochberg([0.1, math.nan]), r"p-values from 0 to 1, got \[nan\]"),
    "p above 1": (lambda: compare.benjamini_yekutieli([0.1, 1.5]), r"got \[1.5\]"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_asked_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=f"expected .*{message}"):
        call()
