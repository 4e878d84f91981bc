"""Many comparisons at once: adjusted p-values against statsmodels, joint intervals against their definition and
published values, and the error that they should keep.
"""

import functools
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.multitest import multipletests
from test_many import EXACT, FOUR, KEY, MEANS, ROW, hold_out, learners, random

from jaxgen import resample
from jaxgen.stats import compare
from jaxgen.types import Losses

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
    """ "There's an over 18.5% chance that at least one is wrong": four comparisons at 5 % each; Holm keeps 1 - (1 -
    0.05/4)^4 = 4.9 %.
    """
    p = random(2).random((100_000, 4))
    raw, adjusted = (np.sum((values <= 0.05).any(-1)) for values in (p, compare.holm(p)))
    assert 1 - 0.95**4 > 0.185
    assert beyond(1 - 0.95**4, 100_000, "below") <= raw <= beyond(1 - 0.95**4, 100_000, "above")
    assert beyond(1 - 0.9875**4, 100_000, "below") <= adjusted <= beyond(1 - 0.9875**4, 100_000, "above")


# pairwise


@pytest.mark.parametrize("test", [compare.corrected_t, compare.paired_t])
@pytest.mark.parametrize("adjust", [*ADJUSTED, "none"])
def test_pairwise_is_the_test_of_every_pair(test, adjust):
    got = compare.pairwise(FOUR, test, adjust=adjust)
    raw, adjusted, estimate = (got.matrix(name) for name in ("p_value", "adjusted", "estimate"))
    for i, j in itertools.combinations(range(4), 2):
        one = test(FOUR[i], FOUR[j])
        assert (raw[i, j], raw[j, i], estimate[i, j], estimate[j, i]) == (
            one.p_value,
            one.p_value,
            one.estimate,
            -one.estimate,
        )
    want = got.p_value if adjust == "none" else multipletests(got.p_value, method=ADJUSTED[adjust])[1]
    np.testing.assert_allclose(got.adjusted, want, rtol=1e-12)
    np.testing.assert_array_equal(adjusted[got.first, got.second], got.adjusted)
    assert np.isnan(np.diagonal([raw, adjusted, estimate], axis1=1, axis2=2)).all()
    assert bool(got.note) is (test is compare.paired_t)
    assert list(got.to_frame().columns) == [
        "first",
        "second",
        "estimate",
        "statistic",
        "p_value",
        "adjusted",
        "level",
        "unit",
        "method",
        "adjustment",
    ]


def test_pairwise_of_several_data_sets_has_a_family_for_each():
    plan = resample.leave_out(KEY, 20, 0.25, 6)
    several = learners((5, 6), plan)
    got = compare.pairwise(several, compare.corrected_t)
    for q in range(5):
        alone = compare.pairwise([one[q] for one in several], compare.corrected_t)
        np.testing.assert_allclose(got.adjusted[q], alone.adjusted, **EXACT)
        np.testing.assert_allclose(got.matrix()[q], alone.matrix(), **EXACT)
    assert (
        f"5 data sets; some difference found at 0.05 in {np.mean((got.adjusted <= 0.05).any(-1)):.1%} of them"
        in str(got)
    )
    frame = got.to_frame()
    assert frame.set.tolist() == np.repeat(range(5), 3).tolist()
    np.testing.assert_array_equal(frame.adjusted, got.adjusted.ravel())


def test_pairwise_takes_any_function_with_a_p_value():
    def wilcoxon(first, second):
        return SimpleNamespace(p_value=scipy.stats.wilcoxon(first.g, second.g).pvalue)

    got = compare.pairwise(FOUR, wilcoxon, labels=list("abcd"))
    assert (
        got.adjusted[0]
        == compare.holm(
            [scipy.stats.wilcoxon(FOUR[i].g, FOUR[j].g).pvalue for i, j in itertools.combinations(range(4), 2)]
        )[0]
    )
    assert np.isnan(got.estimate).all()
    for part in (
        "wilcoxon (given test): 6 pairs of 4 learners, squared loss, second minus first",
        "family-wise error by Holm 1979",
        "about the differences of the test",
    ):
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
    """All pairs: the studentised range divided by sqrt(2). Against one: Dunnett 1964, infinite degrees of freedom,
    two-sided 5 %.

    The quantile of 20,000 draws has a standard error of 0.6 %, and the 1000 cases are normal and uncorrelated to 3 %.
    """
    values = random(3).normal(size=(1000, 5))
    pairs, one = (compare.max_t(values, against=against, resamples=20_000) for against in (None, 2))
    np.testing.assert_allclose(
        critical(pairs, values), scipy.stats.studentized_range.ppf(0.95, 5, np.inf) / math.sqrt(2), rtol=0.02
    )
    np.testing.assert_allclose(critical(one, values), 2.44, rtol=0.02)
    assert (one.first == 2).all()
    assert one.second.tolist() == [0, 1, 3, 4]
    np.testing.assert_allclose(one.estimate, values[:, [0, 1, 3, 4]].mean(0) - values[:, 2].mean(), **EXACT)


@pytest.mark.parametrize("against", [None, 0])
@pytest.mark.parametrize("step_down", [True, False])
@pytest.mark.parametrize("seed", [4, 7])
def test_max_t_is_its_definition(against, step_down, seed):
    values = random(seed).gamma(1.0, size=(25, 4)) + np.array([0, 0.2, 0.5, 0.9])
    got = compare.max_t(values, against=against, resamples=198, seed=5, step_down=step_down)
    differences = values[:, got.second] - values[:, got.first]
    t = scipy.stats.ttest_1samp(differences, 0).statistic
    weights = random(5).multinomial(25, np.full(25, 1 / 25), 198)
    drawn = np.abs(
        [scipy.stats.ttest_1samp(np.repeat(differences, w, axis=0), differences.mean(0)).statistic for w in weights]
    )
    np.testing.assert_allclose(got.statistic, t, **EXACT)
    np.testing.assert_allclose(
        got.p_value, [(1 + np.sum(drawn[:, p] >= abs(t[p]))) / 199 for p in range(len(t))], **EXACT
    )
    np.testing.assert_allclose(
        critical(got, values), np.sort(drawn.max(1))[189], rtol=1e-9
    )  # of 199 with the observed one, 9 are left above: 4.5 %
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
    one, scaled, shuffled = (
        compare.max_t(v, resamples=199) for v in (values, 1e20 * (values + 5), values[:, [2, 1, 0]])
    )
    np.testing.assert_allclose(scaled.lower, 1e20 * one.lower, rtol=1e-9, atol=1e10)
    np.testing.assert_array_equal(scaled.adjusted, one.adjusted)
    np.testing.assert_allclose(shuffled.matrix()[::-1, ::-1], one.matrix(), **EXACT)
    assert not np.array_equal(compare.max_t(values, resamples=199, seed=1).lower, one.lower)


def test_max_t_of_losses_takes_the_tested_cases_of_one_row():
    values, tested = random(8).gamma(2.0, size=(30, 3)), np.r_[np.ones(20), np.zeros(10)]
    several = [hold_out(one, f"learner {number}", tested=tested, rows=2) for number, one in enumerate(values.T)]
    got, want = compare.max_t(several, row=1, resamples=99), compare.max_t(values[:20], resamples=99)
    np.testing.assert_array_equal(got.lower, want.lower)
    for part in (
        "max-t test, step-down",
        "3 pairs of 3 learners, squared loss",
        "99 bootstrap draws, seed 0; joint 95% limits",
        "learner 2",
        "about the risks of these trained models",
    ):
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
    assert (
        compare.max_t(rare, resamples=999).p_value[0] > 0.3
    )  # a draw without that case, 0.95^20 = 0.36, has no variance


@pytest.mark.parametrize("kind", ["squared", "zero_one"])
def test_the_family_wise_error_is_kept_where_raw_p_values_break_it(kind):
    """Five exchangeable learners on 60 cases of unequal difficulty, and the first one worse: no other differs. 400
    data sets.
    """
    rng, sets, count = random(9), 400, {"max-t": 0, "holm": 0, "raw": 0}
    for seed in range(sets):
        hard = rng.gamma(4.0, 0.25, size=(60, 1))
        values = (
            hard * rng.normal(size=(60, 5)) ** 2
            if kind == "squared"
            else (rng.random((60, 5)) < 0.4 * np.minimum(hard, 2)).astype(float)
        )
        values[:, 0] = values[:, 0] + 1 if kind == "squared" else np.maximum(values[:, 0], rng.random(60) < 0.5)
        got = compare.max_t(values, resamples=199, seed=seed)
        raw = np.nan_to_num(scipy.stats.ttest_rel(values[:, got.second], values[:, got.first]).pvalue, nan=1.0)
        for name, p in {"max-t": got.adjusted, "holm": compare.holm(raw), "raw": raw}.items():
            count[name] += bool((p[got.first > 0] <= 0.05).any())
    limit = beyond(0.05, sets, "above")
    assert count["max-t"] <= limit
    assert count["holm"] <= limit
    assert count["raw"] > limit


# What cannot be asked

BAD = {
    "failed, by cases": (
        lambda: compare.max_t(
            [
                ROW[0],
                Losses(
                    *[ROW[1].test_mean] * 2,
                    ROW[1].plan,
                    "b",
                    "squared",
                    np.ones(1, np.uint8),
                    ("it is bad",),
                    ROW[1].values,
                ),
            ]
        ),
        "got 1 failed of 1",
    ),
    "no row": (lambda: compare.max_t(FOUR), "one row of the plan, got row=None of 12; give its number, from 0 to 11"),
    "row 12": (
        lambda: compare.max_t(FOUR, row=12),
        r"row to be a whole number from 0 to 11 \(the rows of the plan\), got 12",
    ),
    "means only": (lambda: compare.max_t(MEANS), "the losses of every case, got the means of rows only"),
    "cases twice": (
        lambda: compare.max_t([hold_out(np.ones(4), tested=np.full(4, 2))] * 2),
        "test case held out of the training, got some that count more than once; give test weights of 0 and 1",
    ),
    "one case": (lambda: compare.max_t(np.ones((1, 3))), r"at least 2 test cases and 2 learners, got shape \[1, 3\]"),
    "against nobody": (
        lambda: compare.max_t(np.ones((4, 3)), against=3),
        r"against to be a whole number from 0 to 2 \(the position of a learner\), got 3",
    ),
    "few draws": (
        lambda: compare.max_t(np.ones((4, 3)), resamples=18),
        r"resamples to be a whole number from 19 to \d+ \(what fits into memory\), got 18",
    ),
    "few draws, 99 %": (lambda: compare.max_t(np.ones((4, 3)), resamples=98, level=0.99), r"from 99 to \d+ .*, got 98"),
    "adjustment": (
        lambda: compare.pairwise(FOUR, compare.corrected_t, adjust="tukey"),
        "adjust to be one of 'holm', 'benjamini_hochberg', 'benjamini_yekutieli', 'none', got 'tukey'",
    ),
    "one-sided": (
        lambda: compare.pairwise(FOUR, functools.partial(compare.corrected_t, alternative="less")),
        "two-sided p_value, got .* with less; choose another, or its two-sided form",
    ),
    "no p-value": (
        lambda: compare.pairwise(FOUR, compare.probability_greater),
        "got probability_greater with no p_value",
    ),
    "p-value of NaN": (
        lambda: compare.pairwise(FOUR, lambda first, second: SimpleNamespace(p_value=np.nan)),
        "with no p_value",
    ),
    "what the test refuses": (
        lambda: compare.pairwise(learners((4,), resample.bootstrap(KEY, 20, 4)), compare.corrected_t),
        "no correction is known",
    ),
    "a p-value of all data sets together": (
        lambda: compare.pairwise(learners((3, 12), FOUR[0].plan), lambda first, second: SimpleNamespace(p_value=0.5)),
        r"two-sided p_value, got <lambda> with one of shape \[\], and not \[3\]; choose another",
    ),
    "a p-value that is a text": (
        lambda: compare.pairwise(FOUR, lambda first, second: SimpleNamespace(p_value="small")),
        "two-sided p_value, got <lambda> with no p_value; choose another",
    ),
    "a test of one": (
        lambda: compare.pairwise(FOUR, lambda losses: 0.5),
        "a test that takes the losses of two learners, got <lambda>, which stops with TypeError: .*; give for example",
    ),
    "labels of pairs": (
        lambda: compare.pairwise(FOUR, compare.corrected_t, labels=["a"]),
        "4 labels, one for each of the learners, got 1",
    ),
    "matrix": (
        lambda: compare.pairwise(FOUR, compare.corrected_t).matrix("lower"),
        "name to be one of 'adjusted', 'p_value', 'estimate', got 'lower'",
    ),
    "nothing to adjust": (lambda: compare.holm([]), "p-values from 0 to 1, got none; give at least one, and no NaN"),
    "p of NaN": (lambda: compare.benjamini_hochberg([0.1, math.nan]), r"p-values from 0 to 1, got \[nan\]"),
    "p above 1": (lambda: compare.benjamini_yekutieli([0.1, 1.5]), r"got \[1.5\]"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_asked_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=f"expected .*{message}"):
        call()
