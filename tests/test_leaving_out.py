"""The jackknife after leave-out: against all splits of small data sets trained anew without each case, closed forms,
and the true variance over data sets.
"""

import itertools
from dataclasses import replace

import jax
import numpy as np
import pytest
import scipy.stats
from given import made, regression, with_failed, without_values
from scripts import quick

from jaxgen import Data, assess, learn, resample
from jaxgen.stats import compare, interval
from jaxgen.stats.leaving_out import between_models, influences

KEY = jax.random.key(0)
EXACT = {"rtol": 1e-10}
"""The same sums in another order, and two solutions of least squares."""


def all_splits(n, left_out):
    """Every split of n cases that leaves out so many."""
    test = np.zeros((0, n), np.uint8)
    for chosen in itertools.combinations(range(n), left_out):
        test = np.vstack([test, np.isin(np.arange(n), chosen)[None].astype(np.uint8)])
    return resample.from_weights(1 - test, test)


def problem(n, inputs=2, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, inputs))
    return x, x.sum(-1) + random.standard_t(5, size=n)


def of_regression(x, y, plan):
    """Losses of least squares without a constant, by NumPy; of the mean without inputs."""
    losses = regression(x, y, plan.train, plan.test)
    return replace(losses, plan=plan)


def without_each(statistic, *arrays):
    """A statistic of arrays without their first entry, without their second, and so on."""
    return np.array([statistic(*(np.delete(each, i, axis=0) for each in arrays)) for i in range(len(arrays[0]))])


def jackknifed(values):
    """The jackknife's variance of a statistic, from its values without each case."""
    return (len(values) - 1) / len(values) * np.sum(np.square(values - values.mean()))


def test_of_all_splits_it_is_the_jackknife_that_trains_anew():
    """Without case i: all splits of the other cases, with training sets of the same size and one test case less."""
    n, left_out = 9, 3
    x, y = problem(n)
    found = influences(of_regression(x, y, all_splits(n, left_out)))
    fewer = all_splits(n - 1, left_out - 1)
    anew = without_each(lambda x, y: of_regression(x, y, fewer).g.mean(), x, y)
    assert found.jackknife == pytest.approx(jackknifed(anew), rel=1e-10)
    assert found.mean == pytest.approx(anew.mean(), rel=1e-10)  # a U-statistic is the mean of those without a case
    assert (found.noise, found.drawn) == (0, 0), "all splits have no Monte Carlo noise"


def test_of_the_mean_it_is_the_jackknife_of_the_variance():
    """The mean of n1 cases has on another one the expected loss s^2 (1 + 1/n1), over all splits of these cases."""
    n, left_out = 10, 3
    y = np.random.default_rng(1).gamma(2.0, size=n)
    found = influences(of_regression(np.empty((n, 0)), y, all_splits(n, left_out)))
    factor = 1 + 1 / (n - left_out)
    assert found.mean == pytest.approx(np.var(y, ddof=1) * factor, rel=1e-12)
    variances = without_each(lambda y: np.var(y, ddof=1), y)
    assert found.jackknife == pytest.approx(jackknifed(variances) * factor**2, rel=1e-10)


@pytest.mark.parametrize(
    "plan", [resample.leave_out(KEY, 30, 0.2, 40), resample.k_fold(KEY, 30, 4, 5)], ids=["splits", "folds"]
)
def test_of_a_learner_that_learns_nothing_it_is_students_t(plan):
    """Losses that do not depend on the training set, of folds of 7 and 8 cases too: the mean of independent values."""
    cases = np.random.default_rng(2).gamma(2.0, size=(3, 1, 30))
    losses = made(np.repeat(cases, plan.resamples, axis=1), plan)
    got = interval.jackknife_after_leave_out(losses, scale="identity")
    np.testing.assert_allclose(got.estimate, cases[:, 0].mean(-1), **EXACT)
    np.testing.assert_allclose(got.standard_error, scipy.stats.sem(cases[:, 0], axis=-1), **EXACT)
    np.testing.assert_allclose(got.parts["instability"], 0, atol=1e-10)
    kurtosis = scipy.stats.kurtosis(cases[:, 0], axis=-1, fisher=False)
    np.testing.assert_allclose(got.df, np.clip(2 * 30 / (kurtosis - 1), 10, 29), **EXACT)
    test = compare.jackknife_after_leave_out(made(losses.values * 0 + 1.5, plan), losses)
    expected = scipy.stats.ttest_1samp(cases[:, 0], 1.5, axis=-1)
    np.testing.assert_allclose(test.statistic, expected.statistic, **EXACT)
    np.testing.assert_allclose(test.p_value, expected.pvalue, **EXACT)
    np.testing.assert_allclose(test.lower, expected.confidence_interval().low - 1.5, atol=1e-10)


def test_the_noise_of_few_splits_is_known():
    """Of 120 of all 495 splits of 12 cases, in the mean over 200 draws: the variance of all splits, with a noise of
    four tenths of it on top. The noise is estimated to some 5 % with so few cases; the other 4 are standard errors.
    """
    x, y = problem(12)
    plan = all_splits(12, 4)
    losses, random = of_regression(x, y, plan), np.random.default_rng(3)
    draws = [random.choice(plan.resamples, 120, replace=False) for _ in range(200)]
    found = [influences(made(losses.values[rows], plan.chosen(rows, "some"))) for rows in draws]
    raw, net = (np.array([one.jackknife - one.noise * taken for one in found]) for taken in (0, 1))
    truth = influences(losses).jackknife
    noise = raw.mean() - truth
    assert noise > 0.3 * truth
    assert abs(net.mean() - truth) < 0.05 * noise + 4 * net.std() / np.sqrt(len(net))
    trained = np.array([one.trained for one in found])
    assert abs(trained.mean() - influences(losses).trained) < 0.05 * noise + 4 * trained.std() / np.sqrt(len(trained))
    drawn = np.mean([one.drawn for one in found])
    assert drawn == pytest.approx(np.var([one.mean for one in found], ddof=1), rel=0.5)  # 200 draws, and few cases


def test_limits_and_targets():
    plan = resample.leave_out(KEY, 40, 0.2, 300)
    losses = of_regression(*problem(40, 4), plan)
    of = {
        (scale, target): interval.jackknife_after_leave_out(losses, scale=scale, target=target)
        for scale in ("log", "identity")
        for target in ("R", "ER")
    }
    log, plain, mean = of["log", "R"], of["identity", "R"], of["log", "ER"]
    assert log.target == "R"
    assert mean.target == "ER for training sets of 32 cases"
    assert mean.standard_error <= log.standard_error
    reach = scipy.stats.t.ppf(0.975, log.df) * log.standard_error
    np.testing.assert_allclose([plain.lower, plain.upper], [log.estimate - reach, log.estimate + reach], **EXACT)
    factor = np.exp(reach / log.estimate)
    np.testing.assert_allclose([log.lower, log.upper], [log.estimate / factor, log.estimate * factor], **EXACT)
    less = interval.jackknife_after_leave_out(losses, alternative="less")
    assert (less.lower, bool(less.upper < log.upper)) == (0, True)
    greater = interval.jackknife_after_leave_out(losses, alternative="greater")
    assert (greater.upper, bool(greater.lower > log.lower)) == (np.inf, True)


def test_variances_of_the_targets():
    """V, and the greater of V and V_test + V_train + V_start, from what the cases do."""
    plan = resample.leave_out(KEY, 40, 0.2, 300)
    losses = of_regression(*problem(40, 4), plan)
    found = influences(losses)
    v = found.jackknife - found.noise + found.drawn
    mean = interval.jackknife_after_leave_out(losses, target="ER")
    assert mean.standard_error**2 == pytest.approx(v)
    assert mean.parts["noise"] == pytest.approx(found.noise / found.jackknife)
    assert mean.parts["instability"] == pytest.approx(v / found.tested - 1)
    risk = interval.jackknife_after_leave_out(losses)
    starts = max(between_models(losses) - 0.2 * 0.8 * max(found.trained, 0), 0)
    assert risk.standard_error**2 == pytest.approx(max(v, found.tested + max(found.trained, 0) + starts))


def test_models_of_different_rows_vary_as_their_starts_do():
    """By its definition, in loops; and of a learner that predicts a random number a, whose risk is a constant and a^2 -
    2 a mean(y), in the mean over 50 sets of 2000 rows.
    """
    plan, random = resample.leave_out(KEY, 12, 0.3, 30), np.random.default_rng(6)
    losses = made(random.gamma(2.0, size=(30, 12)), plan)
    covariances, free = [], []
    for i, j in itertools.combinations(range(12), 2):
        both = (plan.test[:, i] > 0) & (plan.test[:, j] > 0)
        if both.sum() > 1:
            covariances.append(np.cov(losses.values[both][:, [i, j]].T)[0, 1])
            free.append(both.sum() - 1)
    assert between_models(losses) == pytest.approx(np.average(covariances, weights=free), rel=1e-10)
    y, plan = random.normal(0.5, 1, size=30), resample.leave_out(KEY, 30, 0.2, 2000)
    a = random.normal(0, 0.3, size=(50, 2000, 1))
    found = between_models(made(np.square(y - a), plan))
    expected = np.var(a**2 - 2 * a * y.mean(), axis=1).mean()
    # two different cases lie on opposite sides of their mean a little more often than on one
    assert found.mean() == pytest.approx(expected - 4 * 0.3**2 * np.var(y) / 29, abs=4 * found.std() / np.sqrt(50))


def test_a_learner_that_draws_has_a_wider_interval_of_r():
    """Least squares plus a random number: R of a single model has the variance of that number's effect, which T, a mean
    over many, has not.
    """
    plan = resample.leave_out(KEY, 40, 0.2, 1000)
    losses = of_regression(*problem(40, 4), plan)
    risks = np.random.default_rng(7).normal(0, 0.4, size=(plan.resamples, 1))
    drawn = made(losses.values + risks, plan)
    without, starts = (between_models(each) for each in (losses, drawn))
    assert starts - without == pytest.approx(0.16, rel=0.15)  # and Monte Carlo noise
    of = {
        (name, target): interval.jackknife_after_leave_out(each, scale="identity", target=target).standard_error
        for name, each in (("fixed", losses), ("drawn", drawn))
        for target in ("R", "ER")
    }
    assert of["drawn", "R"] ** 2 > of["fixed", "R"] ** 2 + 0.05
    assert of["drawn", "ER"] == pytest.approx(of["fixed", "ER"], rel=0.15)


def test_each_data_set_is_its_own():
    """Data sets with one plan, and with one each, are as if they came alone."""
    x, y = problem(30)
    plans = [resample.leave_out(jax.random.key(seed), 30, 0.2, 40) for seed in (0, 1)]
    one = [of_regression(x, y * scale, plans[0]) for scale in (1, 2)]
    own = [of_regression(x, y * scale, plan) for scale, plan in zip((1, 2), plans, strict=True)]
    together = resample.from_weights(np.stack([p.train for p in plans]), np.stack([p.test for p in plans]))
    for alone, plan in ((one, plans[0]), (own, together)):
        both = interval.jackknife_after_leave_out(made(np.stack([each.values for each in alone]), plan))
        for name in ("estimate", "standard_error", "df", "lower", "upper"):
            single = [getattr(interval.jackknife_after_leave_out(each), name) for each in alone]
            np.testing.assert_allclose(getattr(both, name), single, rtol=1e-12)


def test_what_to_beware_of_is_said():
    """Too few splits for the noise of a learner that changes with its training set, or with its seed."""
    plan, random = resample.leave_out(KEY, 30, 0.2, 40), np.random.default_rng(4)
    noisy = made(random.gamma(2.0, size=(3, 40, 30)), plan)
    assert "more than nine tenths" in interval.jackknife_after_leave_out(noisy).note
    assert "of 3 data sets" in interval.jackknife_after_leave_out(noisy).note
    found = influences(noisy)
    limited = np.maximum(found.jackknife - found.noise, 0.1 * found.jackknife) + found.drawn
    mean = interval.jackknife_after_leave_out(noisy, target="ER")
    np.testing.assert_allclose(mean.standard_error**2, limited, **EXACT)
    some = made(np.square(random.normal(size=30) + 0.8 * random.normal(size=(40, 30))), plan)
    result = interval.jackknife_after_leave_out(some)
    assert 0.5 < result.parts["noise"] < 0.9
    assert "Monte Carlo noise, which was taken away" in result.note
    shaky = of_regression(*problem(30, 15), resample.leave_out(KEY, 30, 0.2, 2000))
    result = interval.jackknife_after_leave_out(shaky)
    assert result.parts["instability"] > 0.5
    assert "relatively unstable" in result.note
    calm = made(np.repeat(random.gamma(2.0, size=(1, 30)), 40, 0), plan)
    assert interval.jackknife_after_leave_out(calm).note == ""


def test_equal_losses_are_no_certainty():
    plan = resample.leave_out(KEY, 30, 0.2, 40)
    same = made(np.full((40, 30), 0.1), plan)
    result = interval.jackknife_after_leave_out(same)
    assert (result.estimate, result.standard_error) == (0.1, 0)
    assert np.isnan([result.lower, result.upper]).all()
    assert "all values are equal" in result.note
    assert compare.jackknife_after_leave_out(same, same).p_value == 1
    right = interval.jackknife_after_leave_out(made(np.zeros((40, 30)), plan))
    assert (right.estimate, bool(np.isnan(right.upper))) == (0, True)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (resample.k_fold(KEY, 20, 5), "expected every case to be tested in at least 2 rows, got 20"),
        (resample.leave_out(KEY, 20, 0.1, 3), "expected every case to be tested in at least 2 rows"),
        (resample.leave_one_out(20), "expected at least 2 test cases in every row, got 1"),
        (resample.bootstrap(KEY, 20, 30), "cases drawn more than once"),
        (resample.k_fold(KEY, 20, 4, 3, groups=np.arange(20) // 2), "groups of cases that depend on each other"),
        (resample.leave_out(KEY, 20, 0.3, 1), "expected at least 2 resamplings"),
        (resample.balanced(KEY, 20, 0.3, 20), "balanced splits"),
        (resample.nested_pairs(KEY, 20, 4), "rows of several kinds"),
    ],
    ids=["one division", "few splits", "one test case", "bootstrap", "groups", "one split", "balanced", "nested"],
)
def test_plans_that_do_not_show_it_are_refused(plan, message):
    losses = made(np.random.default_rng(5).gamma(2.0, size=(plan.resamples, plan.n)), plan)
    with pytest.raises(ValueError, match=message):
        interval.jackknife_after_leave_out(losses)
    with pytest.raises(ValueError, match=message):
        compare.jackknife_after_leave_out(losses, losses)


@pytest.mark.usefixtures("own_messages")
def test_losses_that_do_not_show_it_are_refused():
    plan = resample.leave_out(KEY, 20, 0.3, 30)
    losses = made(np.random.default_rng(6).normal(size=(30, 20)), plan)
    with pytest.raises(ValueError, match="expected losses of 0 or more for limits on the log scale"):
        interval.jackknife_after_leave_out(losses)
    assert np.isfinite(interval.jackknife_after_leave_out(losses, scale="identity").upper)
    with pytest.raises(ValueError, match="got the means of rows only"):
        interval.jackknife_after_leave_out(without_values(losses))
    with pytest.raises(ValueError, match="failed"):
        interval.jackknife_after_leave_out(with_failed(losses))
    for options in ({"scale": "logit"}, {"target": "the k-fold test error"}, {"level": 95}, {"alternative": "two"}):
        with pytest.raises(ValueError, match="expected"):
            interval.jackknife_after_leave_out(losses, **options)


def test_it_is_recommended_for_many_splits():
    """Of losses of cases that are not all 0 or 1, for the target that was asked for; else what suits fewer splits."""
    random = np.random.default_rng(8)
    for plan in (resample.leave_out(KEY, 24, 0.25, 200), resample.k_fold(KEY, 24, 4, 50)):
        first, second = (made(random.gamma(2.0, size=(200, 24)), plan, learner) for learner in "ab")
        for target in ("R", "ER"):
            got, own = interval.recommend(first, target=target), interval.jackknife_after_leave_out
            assert (got.method, got.upper) == ("jackknife after leave-out", own(first, target=target).upper)
            assert "each case is tested 50 times" in got.note
        test = compare.recommend(first, second)
        assert test.p_value == compare.jackknife_after_leave_out(first, second).p_value
    few = made(first.values[:20], plan.chosen(slice(20), "5 x 4 folds"))
    below = made(first.values - 1, plan)
    for other in (few, below, without_values(first)):
        assert interval.recommend(other).method.startswith("corrected repeated k-fold t")
    wrong = made((first.values > 2) * 1.0, plan, name="zero_one")
    assert interval.recommend(wrong).method == "corrected score interval"
    balanced = made(random.gamma(2.0, size=(200, 200)), resample.balanced(KEY, 200, 0.25, 200))
    assert interval.recommend(balanced).method == "corrected resampled t interval"


@pytest.mark.slow
def test_the_variance_is_that_over_data_sets_and_a_little_more():
    """400 data sets of 50 cases, least squares with 6 inputs: V counts the second-order part of var T twice, so that it
    is 1 to 1.5 times as great; four standard errors of both.
    """
    random = np.random.default_rng(7)
    x = random.normal(size=(400, 50, 6))
    y = x.sum(-1) + random.normal(size=(400, 50))
    plan = resample.leave_out(KEY, 50, 0.1, 600)
    losses = assess(KEY, learn.LeastSquares(), Data(x, y[..., None], tuple("abcdef")), plan)
    got = interval.jackknife_after_leave_out(losses, target="ER")
    true = got.estimate.var(ddof=1)
    kurtosis = scipy.stats.kurtosis(got.estimate, fisher=False)
    error = true * np.sqrt((kurtosis - 1) / 400) + scipy.stats.sem(got.standard_error**2)
    assert true - 4 * error < np.mean(got.standard_error**2) < 1.5 * true + 4 * error
    assert np.median(got.parts["noise"]) < 0.5
    expected = (1 + 1 / 45) * 43 / (45 - 6 - 2)  # of normal inputs and noise, exactly
    assert np.mean((got.lower <= expected) & (expected <= got.upper)) > 0.93


@pytest.mark.slow
def test_the_calibration_runs():
    printed = quick("calibration_jackknife.py")
    assert "Lowest coverage of R over all sizes" in printed
    assert "Tests, ridge, n = 64: 20 data sets" in printed
