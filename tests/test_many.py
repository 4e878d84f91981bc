"""Tests of several learners by their ranks: against SciPy, statsmodels, scikit-posthocs, published tables and
examples.
"""

import itertools
import math

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.contingency_tables import cochrans_q, mcnemar

from jaxgen import resample
from jaxgen.stats import compare
from jaxgen.types import Losses

KEY = jax.random.key(0)
EXACT = {"rtol": 1e-11, "atol": 1e-13}
"""The same few operations in another order; the atol is for p-values near 0."""
DEMSAR = np.array(
    [
        *([4, 3, 2, 1], [1, 2, 3, 4], [4, 1, 2, 3], [4, 1, 3, 2], [4, 2, 3, 1], [1, 2.5, 4, 2.5], [3, 2, 4, 1]),
        *(
            [2.5, 2.5, 4, 1],
            [4, 3, 2, 1],
            [2.5, 2.5, 2.5, 2.5],
            [4, 2.5, 1, 2.5],
            [3, 2, 4, 1],
            [4, 1, 2, 3],
            [3, 1, 4, 2],
        ),
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
    np.testing.assert_allclose(
        got.uncorrected, 12 * b / (k * (k + 1)) * (np.sum(ranks**2) - k * (k + 1) ** 2 / 4), rtol=1e-9
    )  # as printed by Demsar, which cancels
    assert got.df == (k - 1,)


@EVERY_TABLE
def test_iman_davenport_is_the_analysis_of_variance_of_ranks(name):
    table = TABLES[name]
    b, k = table.shape
    frame = pd.DataFrame(
        {
            "rank": scipy.stats.rankdata(table, axis=-1).ravel(),
            "block": np.repeat(np.arange(b), k),
            "learner": np.tile(np.arange(k), b),
        }
    )
    want = anova_lm(ols("rank ~ C(learner) + C(block)", frame).fit()).loc["C(learner)"]
    got = compare.iman_davenport(table)
    np.testing.assert_allclose([got.statistic, got.p_value], [want["F"], want["PR(>F)"]], rtol=1e-9)  # least squares
    assert got.df == (k - 1, (k - 1) * (b - 1))


def test_the_example_of_demsar():
    """Section 3.2.2: chi2 = 9.28, F = 3.69, critical differences 1.25 at 0.05 and 1.12 at 0.10. He leaves the
    correction for ties out.
    """
    labels = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
    assert [f"{rank:.3f}" for rank in compare.friedman(DEMSAR).ranks] == ["3.143", "2.000", "2.893", "1.964"]
    assert f"{compare.friedman(DEMSAR).uncorrected:.2f}" == "9.28"
    assert f"{compare.iman_davenport(DEMSAR).uncorrected:.2f}" == "3.69"
    assert [f"{compare.nemenyi(DEMSAR, level=level).critical_difference:.2f}" for level in (0.95, 0.9)] == [
        "1.25",
        "1.12",
    ]
    assert compare.nemenyi(DEMSAR).groups() == ((3, 1, 2, 0),)
    tenth = compare.nemenyi(DEMSAR, level=0.9, labels=labels)
    assert tenth.groups() == ((3, 1, 2), (2, 0))
    assert (
        "critical difference 1.118 at 90%; smaller losses: C4.5+m < C4.5 (p = 0.0887); C4.5+m+cf < C4.5 (p = 0.0742)"
        in str(tenth)
    )


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
    agreeing = [
        all(order == tuple(first) for order in others) for others in itertools.product(orders, repeat=blocks - 1)
    ]
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
@pytest.mark.parametrize(
    "change",
    [lambda x: x[::-1], lambda x: np.exp(x), lambda x: x * 3 + np.arange(len(x))[:, None]],
    ids=["order of blocks", "monotone", "own shift and scale"],
)
def test_only_the_ranks_within_blocks_count(test, change):
    table = TABLES["no ties"]
    one, other = TESTS[test](table), TESTS[test](change(table))
    np.testing.assert_allclose(one.p_value, other.p_value, **EXACT)


def test_two_learners_are_compared_by_the_sign_test():
    table = random(7).normal(size=(20, 2)) + np.array([0, 0.6])
    wins = int(np.sum(table[:, 0] < table[:, 1]))
    got = compare.friedman(table)
    assert got.p_value == pytest.approx(
        mcnemar([[0, wins], [20 - wins, 0]], exact=False, correction=False).pvalue, rel=1e-12
    )
    assert (
        "note: with two learners this is the sign test, which leaves the size of the differences "
        "out; a test of compare uses it" in str(got)
    )


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
    [
        (0.95, (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)),
        (0.9, (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920)),
    ],
)
def test_critical_values_are_those_of_demsar(level, published):
    """Table 5a, whose last digit is that of a rounded studentised range divided by sqrt(2): up to 0.0005 / sqrt(2) +
    0.0005 off.
    """
    for k, want in enumerate(published, 2):
        assert compare.nemenyi(np.tile(np.arange(float(k)), (10, 1)), level=level).critical_difference / math.sqrt(
            k * (k + 1) / 60
        ) == pytest.approx(want, abs=9e-4)


@EVERY_TABLE
def test_nemenyi_is_that_of_scikit_posthocs(name):
    import scikit_posthocs

    want = scikit_posthocs.posthoc_nemenyi_friedman(TABLES[name]).to_numpy()
    np.testing.assert_allclose(
        compare.nemenyi(TABLES[name]).p_value, want, rtol=1e-7, atol=1e-9
    )  # both integrate numerically


@EVERY_TABLE
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_p_values_and_critical_difference_agree(name, level):
    got = compare.nemenyi(TABLES[name], level=level)
    apart = np.abs(got.ranks[:, None] - got.ranks) >= got.critical_difference
    np.testing.assert_array_equal(got.p_value <= 1 - level, apart)
    together = {pair for group in got.groups() for pair in itertools.permutations(group, 2)}
    np.testing.assert_array_equal(
        [[i == j or (i, j) in together for j in range(len(apart))] for i in range(len(apart))], ~apart
    )
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
    assert got.unit == "squared loss"
    assert not got.note


@EVERY_TEST
def test_resamplings_are_blocks_with_a_warning_where_they_share_cases(test):
    shared, own = (
        learners((4,), plan) for plan in (resample.k_fold(KEY, 20, 4), resample.task_instances(40, 5, instances=4))
    )
    assert (
        "note: the blocks are resamplings of one data set that share cases, so they depend on each "
        "other and p-values are too small; give several data sets, or use" in str(TESTS[test](shared))
    )
    got = TESTS[test](own)
    assert got.blocks == "4 resamplings"
    assert not got.note
    np.testing.assert_array_equal(got.p_value, TESTS[test](np.stack([one.g for one in own], -1)).p_value)


# Prints and frames


def test_results_say_what_they_are():
    table, labels = TABLES["no ties"], ["net", "line", "tree", "mean"]
    for test, parts in {
        "friedman": (
            "Friedman test (Friedman 1937; Demsar 2006): 4 learners, 12 blocks",
            "chi2 = ",
            "with 3 degrees of freedom, p = ",
            "same distribution of losses in every block",
            "average rank: ",
        ),
        "iman_davenport": ("Iman & Davenport 1980", "F = ", "with 3 and 33 degrees of freedom"),
        "nemenyi": ("Nemenyi 1963", "critical difference 1.354 at 95%"),
    }.items():
        got = TESTS[test](table, labels=labels)
        assert all(part in str(got) for part in (*parts, "net "))
        assert "note: " not in str(got)
    frame = compare.friedman(table, labels=labels).to_frame()
    assert frame.learner.tolist() == labels
    assert frame.loc[0, ["rank", "p_value", "df"]].tolist() == [
        compare.friedman(table).ranks[0],
        compare.friedman(table).p_value,
        "3",
    ]
    pairs = compare.nemenyi(table, labels=labels).to_frame()
    assert len(pairs) == 6
    assert pairs.loc[0, "rank_difference"] == pytest.approx(np.subtract(*compare.friedman(table).ranks[[1, 0]]))
    assert compare.friedman(table).learners == ("1", "2", "3", "4")


# What cannot be asked

ONE = resample.leave_out(KEY, 20, 0.25, 12)
FOUR = learners((12,), ONE, count=4)
ROW = [hold_out(random(seed).random(6), f"learner {seed}") for seed in range(3)]
MEANS = [losses(one.test_mean, one.plan, one.learner) for one in ROW]
BAD = {
    "one block": (
        lambda: compare.friedman(np.ones((1, 3))),
        r"losses of at least 2 blocks and 2 learners, got shape \[1, 3\]; give more, the learners on the last axis",
    ),
    "one learner": (lambda: compare.nemenyi(np.ones((3, 1))), r"2 blocks and 2 learners, got shape \[3, 1\]"),
    "one row": (lambda: compare.iman_davenport(MEANS), r"at least 2 resamplings and 2 learners, got shape \[1, 3\]"),
    "three axes": (lambda: compare.friedman(np.ones((3, 3, 3))), r"got shape \[3, 3, 3\]"),
    "not finite": (
        lambda: compare.friedman(np.array([[1.0, 2.0], [np.nan, np.inf]])),
        r"finite losses, got 2 that are not, the first at \[1, 0\]; leave out those blocks",
    ),
    "labels": (lambda: compare.nemenyi(np.ones((3, 3)), labels=["a"]), "3 labels, one for each of the learners, got 1"),
    "level": (
        lambda: compare.nemenyi(np.ones((3, 3)), level=95.0),
        "level to be a number above 0 and below 1, got 95.0",
    ),
    "one of a list": (lambda: compare.friedman(FOUR[:1]), "at least 2 learners, got 1; give the losses of each"),
    "other loss": (
        lambda: compare.friedman([FOUR[0], losses(FOUR[1].g, ONE, loss="absolute")]),
        "one loss for both learners, got squared and absolute",
    ),
    "other plan": (
        lambda: compare.friedman([FOUR[0], losses(FOUR[1].g, resample.leave_out(jax.random.key(1), 20, 0.25, 12))]),
        "both learners on the same resamplings, got resample.leave_out",
    ),
    "other sets": (
        lambda: compare.friedman([losses(np.ones((2, 12)), ONE), losses(np.ones((3, 12)), ONE)]),
        "both learners on the same resamplings",
    ),
    "failed": (
        lambda: compare.friedman([FOUR[0], losses(FOUR[1].g, ONE, failed=[3])]),
        "every row to have been fitted, got 1 failed of 12",
    ),
    "not 0-1": (lambda: compare.cochran_q(ROW), r"0-1 losses for Cochran's Q, got 0\.\d+ and 18 such values in all"),
    "trained on": (
        lambda: compare.cochran_q(
            [Losses(*[np.ones(1)] * 2, resample.full(4), "a", "zero_one", np.zeros(1, np.uint8), (), np.ones((1, 4)))]
            * 2
        ),
        "got some that were trained on",
    ),
    "sets": (
        lambda: compare.cochran_q([losses(np.ones((2, 12)), ONE)] * 2),
        r"the losses of one data set, got those of 2; choose one with losses\[q\]",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_asked_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=f"expected .*{message}"):
        call()
