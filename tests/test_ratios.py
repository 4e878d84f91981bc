"""Error ratios and skill scores, statistics of rows over splits, and how many cases a width or a power takes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from sklearn.metrics import r2_score
from statsmodels.stats.power import NormalIndPower, TTestPower

from jaxgen import Losses, assess, learn, resample, simulate
from jaxgen.stats import compare, interval, metrics, planning

KEY, N = jax.random.key(0), 80
EXACT = {"rtol": 1e-10, "atol": 1e-12}  # a root of a quadratic against a test at that root
PLANS = {
    "splits": resample.leave_out(KEY, N, 0.2, 12),
    "repeated folds": resample.k_fold(KEY, N, 5, 3),
    "groups": resample.k_fold(KEY, N, 8, 2, groups=np.arange(N) // 5),
    "one split": resample.leave_out(KEY, N, 0.4, 1),
    "halves": resample.paired_halves(KEY, N, 6, 4),
}
TESTS = {
    "splits": compare.corrected_t,
    "repeated folds": compare.corrected_k_fold_t,
    "groups": compare.grouped_t,
    "one split": compare.hold_out_t,
    "halves": compare.conservative_z,
}


def losses(plan, seed, learner, sets=None, scale=1.0):
    """Losses of cases that two seeds have in common in part."""
    shape = (() if sets is None else (sets,)) + (plan.resamples, plan.n)
    common, own = np.random.default_rng(0).gamma(2.0, size=shape), np.random.default_rng(seed).gamma(2.0, size=shape)
    values = scale * (common + own)
    means = (np.sum(w * values, axis=-1) / w.sum(-1) for w in (plan.test, plan.train))
    return Losses(*means, plan, learner, "squared", np.zeros(shape[:-1], np.uint8), values=values)


def times(given, factor):
    """The same losses, multiplied."""
    return dataclasses.replace(given, test_mean=factor * given.test_mean, values=factor * given.values)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("name", PLANS)
def test_the_limits_of_a_ratio_are_where_its_test_would_just_reject(name, alternative):
    """The test of compare, on the losses of the first learner multiplied by the limit."""
    first, second = losses(PLANS[name], 1, "a"), losses(PLANS[name], 2, "b", scale=1.3)
    got = compare.error_ratio(first, second, level=0.9, alternative=alternative)
    assert got.estimate == pytest.approx(TESTS[name](first, second).estimate / mean(first, name) + 1, rel=1e-10)
    ends = {"two-sided": (got.lower, got.upper), "greater": (got.lower,), "less": (got.upper,)}[alternative]
    for limit in ends:
        test = TESTS[name](times(first, float(limit)), second, alternative=alternative)
        assert test.p_value == pytest.approx(0.1, rel=1e-8)
    if alternative == "greater":
        assert got.upper == np.inf
    if alternative == "less":
        assert got.lower == -np.inf


def mean(given, name):
    """The estimate of the error itself: conservative Z takes the splits of all data only."""
    kept = given.plan.labels["pair"] == -1 if name == "halves" else slice(None)
    return given.g[..., kept].mean(-1)


def test_a_skill_score_is_one_minus_the_ratio_and_r_squared_out_of_sample():
    data = simulate.linear_ar(KEY, None, N, 3).data
    plan = resample.leave_out(KEY, N, 0.4, 1)
    guess, line = (assess(KEY, learner, data, plan) for learner in (learn.Mean(), learn.LeastSquares()))
    got, ratio = compare.skill_score(guess, line), compare.error_ratio(guess, line)
    np.testing.assert_allclose(
        [got.estimate, got.lower, got.upper], [1 - ratio.estimate, 1 - ratio.upper, 1 - ratio.lower], **EXACT
    )
    used, y = plan.test[0] > 0, data.y[:, 0]
    prediction = learn.LeastSquares().predict
    x, w = jnp.asarray(data.x), jnp.asarray(plan.train[0], float)
    fitted = learn.LeastSquares().fit(KEY, x, jnp.asarray(data.y), w)
    r2 = r2_score(y[used], np.asarray(prediction(fitted, x))[used, 0])
    # scikit-learn's reference is the mean of the test cases, ours that of the training cases
    shift = np.mean((y[used] - y[~used].mean()) ** 2) / np.var(y[used])
    assert 1 - (1 - got.estimate) * shift == pytest.approx(r2, abs=1e-4)  # single precision of predict
    one_sided = compare.skill_score(guess, line, alternative="greater")
    assert one_sided.lower > got.lower
    assert one_sided.upper == np.inf


def test_ratios_of_several_sets_are_those_of_each_and_cover():
    """400 data sets of independent losses, ratio 1.5 of the means; binomial limits of one in a million."""
    plan = resample.leave_out(KEY, N, 0.5, 1)
    random = np.random.default_rng(5)
    common = random.gamma(2.0, size=(400, 1, N))
    pair = []
    for name, scale in (("a", 1.0), ("b", 1.5)):
        values = scale * (common + random.gamma(2.0, size=common.shape))
        means = (np.sum(w * values, axis=-1) / w.sum(-1) for w in (plan.test, plan.train))
        pair.append(Losses(*means, plan, name, "squared", np.zeros((400, 1), np.uint8), values=values))
    got = compare.error_ratio(*pair)
    alone = compare.error_ratio(*(one[7] for one in pair))
    np.testing.assert_allclose([got.lower[7], got.upper[7]], [alone.lower, alone.upper], **EXACT)
    covered = int(np.sum((got.lower <= 1.5) & (got.upper >= 1.5)))
    assert scipy.stats.binomtest(covered, 400, 0.95).pvalue > 1e-6


def test_ratios_that_cannot_be_are_told():
    plan = PLANS["splits"]
    first, second = losses(plan, 1, "a"), losses(plan, 2, "b")
    noisy = dataclasses.replace(first, test_mean=np.random.default_rng(1).normal(0.05, 1, 12))
    if noisy.test_mean.mean() <= 0:
        noisy = dataclasses.replace(noisy, test_mean=noisy.test_mean - 2 * noisy.test_mean.mean())
    got = compare.error_ratio(noisy, second)
    assert np.isnan([got.lower, got.upper]).all()
    assert "is not told apart from 0" in got.note
    with pytest.raises(ValueError, match="expected errors of the first learner above 0 to divide by, got -"):
        compare.error_ratio(dataclasses.replace(first, test_mean=-first.test_mean), second)
    proportional = compare.error_ratio(first, times(first, 1.3))
    assert proportional.estimate == pytest.approx(1.3, rel=1e-12)
    assert np.isnan([proportional.lower, proportional.upper]).all()
    assert "which is no certainty" in proportional.note
    nested = resample.nested_pairs(KEY, N, 5)
    with pytest.raises(ValueError, match="for a ratio, got .*; use leave_out or k_fold"):
        compare.error_ratio(losses(nested, 1, "a"), losses(nested, 2, "b"))


# Statistics of rows


def test_a_statistic_over_splits_has_the_interval_of_the_corrected_t():
    for name, method in (("splits", interval.corrected_t), ("repeated folds", interval.bouckaert_frank)):
        given = losses(PLANS[name], 3, "a")
        got, want = metrics.over_splits(given.g, PLANS[name], unit="AUC"), method(given)
        np.testing.assert_allclose([got.lower, got.upper], [want.lower, want.upper], **EXACT)
        assert (got.df, got.unit) == (want.df, "AUC")
        assert str(got).startswith(want.method)


def test_the_logit_scale_stays_within_0_and_1():
    values = np.random.default_rng(0).uniform(0.9, 1.0, 12)
    plain = metrics.over_splits(values, PLANS["splits"], unit="AUC")
    got = metrics.over_splits(values, PLANS["splits"], unit="AUC", scale="logit")
    assert got.estimate == plain.estimate
    odds = np.log(got.estimate / (1 - got.estimate))
    reach = scipy.stats.t.ppf(0.975, 11) * plain.standard_error / (got.estimate * (1 - got.estimate))
    np.testing.assert_allclose(
        [got.lower, got.upper], [1 / (1 + np.exp(-(odds + sign * reach))) for sign in (-1, 1)], **EXACT
    )
    assert got.upper < 1


def test_areas_of_rows_come_from_predictions():
    """The mean of the AUC over splits, and the paired difference of two learners."""
    random = np.random.default_rng(0)
    plan = resample.leave_out(KEY, N, 0.3, 10)
    y = random.integers(0, 2, N)
    rows = [
        metrics.Predictions.from_arrays(y, random.normal(size=(10, N)) + strength * y, plan.test)
        for strength in (1.0, 2.0)
    ]
    weak, strong = (metrics.roc.auc(each) for each in rows)
    got = metrics.over_splits(strong - weak, plan, unit="difference of AUC", alternative="greater")
    assert got.estimate == pytest.approx(np.mean(strong - weak), rel=1e-12)
    assert 0 < got.lower < got.estimate
    assert got.upper == np.inf


BAD_ROWS = {
    "another number of rows": (lambda: metrics.over_splits(np.ones(5), PLANS["splits"], unit="F"), r"\[12\], got"),
    "undefined rows": (lambda: metrics.over_splits(np.full(12, np.nan), PLANS["splits"], unit="F"), "finite values"),
    "groups": (lambda: metrics.over_splits(np.ones(16), PLANS["groups"], unit="F"), "cases come in groups"),
    "one split": (lambda: metrics.over_splits(np.ones(1), PLANS["one split"], unit="F"), "there is one split"),
    "beyond 1": (
        lambda: metrics.over_splits(np.full(12, 1.5), PLANS["splits"], unit="F", scale="logit"),
        "between 0 and 1 for the logit scale",
    ),
    "no plan": (lambda: metrics.over_splits(np.ones(12), None, unit="F"), "expected a plan"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_rows_that_do_not_fit_are_refused(case, own_messages):
    call, words = BAD_ROWS[case]
    with pytest.raises((ValueError, TypeError), match=words):
        call()


# Planning


def test_a_width_is_reached_at_the_number_of_cases_that_is_planned():
    """Independent losses on one split of half of the cases: the planned number has that width, on average."""
    random = np.random.default_rng(2)

    def of(n, sets):
        plan = resample.leave_out(KEY, n, 0.5, 1)
        values = random.gamma(4.0, size=(sets, 1, n))
        means = (np.sum(w * values, axis=-1) / w.sum(-1) for w in (plan.test, plan.train))
        return Losses(*means, plan, "a", "squared", np.zeros((sets, 1), np.uint8), values=values)

    planned = planning.cases_for_width(of(100, 2000), 0.5)
    n = round(float(np.median(planned.estimate)))
    widths = interval.hold_out(of(n, 2000))
    # 3 %: a t quantile of 49 degrees of freedom is 2.5 % larger than one of 130 and more
    assert np.mean(widths.upper - widths.lower) == pytest.approx(0.5, rel=0.03)
    # the true number by Student's law at that n; nominal 95 %, losses are skew, so the chi-squared law is not exact
    true = 2 * (2 * scipy.stats.t.ppf(0.975, n / 2 - 1) * 2 / 0.5) ** 2
    assert np.mean((planned.lower < true) & (true < planned.upper)) > 0.8


def test_the_number_for_a_power_is_that_of_statsmodels():
    """Of a paired t-test over the test cases of one split; there the degrees of freedom grow with n, here they are
    those of the pilot, 199, which costs less than 1 %.
    """
    plan = resample.leave_out(KEY, 400, 0.5, 1)
    first, second = losses(plan, 1, "a"), losses(plan, 2, "b")
    test = compare.hold_out_t(first, second)
    deviation = float(test.standard_error) * np.sqrt(200)
    for alternative, name in (("two-sided", "two-sided"), ("greater", "larger")):
        got = planning.cases_for_power(first, second, 0.15 * deviation, power=0.9, alternative=alternative)
        want = TTestPower().solve_power(0.15, power=0.9, alpha=0.05, alternative=name)
        assert got.estimate / 2 == pytest.approx(want, rel=0.01)
        at_hand = TTestPower().power(0.15, 200, 0.05, alternative=name)
        assert got.parts["power"] == pytest.approx(at_hand, rel=1e-8)


def test_a_normal_law_has_the_number_of_the_z_test():
    first, second = losses(PLANS["halves"], 1, "a"), losses(PLANS["halves"], 2, "b")
    error = float(compare.conservative_z(first, second).standard_error)
    got = planning.cases_for_power(first, second, 0.2, power=0.8)
    effect = 0.2 / (error * np.sqrt(N))
    want = NormalIndPower(ddof=0).solve_power(effect, power=0.8, alpha=0.05, ratio=0)
    assert got.estimate == pytest.approx(want, rel=1e-6)  # its search ends there


def test_more_cases_for_less_and_nonsense_is_refused():
    first, second = losses(PLANS["splits"], 1, "a"), losses(PLANS["splits"], 2, "b")
    wide, narrow = (planning.cases_for_width(first, width).estimate for width in (0.4, 0.2))
    assert narrow == pytest.approx(4 * wide, rel=1e-12)
    assert planning.cases_for_width(losses(PLANS["splits"], 1, "a", sets=3), 0.4).estimate.shape == (3,)
    few = losses(resample.leave_out(KEY, N, 0.2, 2), 1, "a"), losses(resample.leave_out(KEY, N, 0.2, 2), 2, "b")
    assert np.isfinite(planning.cases_for_power(*few, 0.2, power=0.99, level=0.99).estimate)  # one degree of freedom
    wrong = [
        dataclasses.replace(one, values=1.0 * (np.asarray(one.values) > 4), test_mean=np.zeros(1))
        for one in (losses(PLANS["one split"], 1, "a"), losses(PLANS["one split"], 2, "b"))
    ]
    for call, words in (
        (lambda: planning.cases_for_width(first, 0.0), "width"),
        (lambda: planning.cases_for_power(first, second, 0.0), "difference that the alternative"),
        (
            lambda: planning.cases_for_power(first, second, -1.0, alternative="greater"),
            "difference that the alternative",
        ),
        (lambda: planning.cases_for_power(first, second, 1.0, power=1.0), "power"),
        (lambda: planning.cases_for_power(first, first, 1.0), "losses that vary"),
        (lambda: planning.cases_for_power(*wrong, 0.1), "a method with a standard error, got McNemar's test"),
        (lambda: planning.cases_for_width(losses(resample.time_blocks(N, 5), 1, "a"), 1.0), "blocks of a series"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
