"""Intervals for the error of one learner: against SciPy, statsmodels, published values, loops written from the papers,
and the coverage they should have.
"""

import itertools
import math
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.proportion import proportion_confint

from jaxgen import Data, Plan, assess, learn, loss, resample
from jaxgen.stats import compare, interval, spread
from jaxgen.stats.interval import fixed
from jaxgen.types import Losses

KEY = jax.random.key(0)
LEVELS = (0.05, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99)
ALTERNATIVES = pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
EXACT = {"rtol": 1e-12, "atol": 1e-13}
"""The same few operations in another order; the atol is for limits near 0 among numbers near 1."""
NUMBERS = ("estimate", "standard_error", "df", "lower", "upper")


def of_values(values, plan, learner="a learner", name="squared"):
    """Losses of given values [*Q, R, N]."""
    values = np.asarray(values, np.float64)
    means = [np.sum(np.where(w > 0, w * values, 0), axis=-1) / w.sum(-1) for w in (plan.test, plan.train)]
    return Losses(*means, plan, learner, name, np.zeros(means[0].shape, np.uint8), values=values)


def drawn(plan, sets=None, seed=0):
    """Losses whose cases and rows differ from each other, by chance."""
    random = np.random.default_rng(seed)
    shape = () if sets is None else (sets,)
    cases, rows = (
        random.gamma(1.0, size=(*shape, 1, plan.n)),
        random.gamma(20.0, 0.05, size=(*shape, plan.resamples, 1)),
    )
    return of_values(cases * rows * random.gamma(20.0, 0.05, size=(*shape, plan.resamples, plan.n)), plan)


def squared_errors(x, y, trained, tested):
    """Squared errors on some cases of least squares with an intercept, fitted to others."""
    design = np.column_stack([np.ones(len(x)), x])
    return (y[tested] - design[tested] @ np.linalg.lstsq(design[trained], y[trained])[0]) ** 2


def small_problem(plan, seed=0):
    """Two inputs and a target, and the losses of least squares on the plan."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(plan.n, 2))
    y = x.sum(-1) + random.standard_t(5, size=plan.n)
    values = np.stack([squared_errors(x, y, np.flatnonzero(train), np.arange(plan.n)) for train in plan.train])
    return x, y, of_values(values, plan)


def zeros_and_ones(errors, n):
    return (np.arange(n) < np.asarray(errors)[..., None]).astype(np.float64)


# One trained model: error rates


@pytest.mark.parametrize("n", [1, 7, 40, 300])
def test_error_rates_are_those_of_statsmodels(n):
    """SciPy's and statsmodels' formulas agree to rounding; the latter cuts Wald's limits to [0, 1], so only those
    within are compared.
    """
    errors = np.unique(np.linspace(0, n, 21).astype(int))
    for level, (method, name) in itertools.product(
        LEVELS, {"wald": "normal", "wilson": "wilson", "clopper_pearson": "beta"}.items()
    ):
        got = getattr(fixed, method)(zeros_and_ones(errors, n), level=level)
        low, high = proportion_confint(errors, n, 1 - level, name)
        np.testing.assert_allclose(np.clip(got.lower, 0, 1), np.clip(low, 0, 1), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(np.clip(got.upper, 0, 1), np.clip(high, 0, 1), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(got.estimate, errors / n, rtol=1e-14)


@pytest.mark.parametrize("level", LEVELS)
def test_one_sided_error_rates_are_their_definitions(level):
    """A limit of Wilson is the rate p with (estimate - p) / sqrt(p (1 - p) / n) = -+ z; an exact one that at which so
    many errors, or more, have the probability 1 - level.
    """
    errors, n = np.arange(1, 30), 30
    cases, z = zeros_and_ones(errors, n), scipy.stats.norm.ppf(level)
    for alternative, sign in (("greater", 1), ("less", -1)):
        wilson, exact = (
            rule(cases, level=level, alternative=alternative) for rule in (interval.wilson, interval.clopper_pearson)
        )
        limit = wilson.lower if sign == 1 else wilson.upper
        np.testing.assert_allclose(
            (errors / n - limit) / np.sqrt(limit * (1 - limit) / n), sign * z, rtol=1e-8, atol=1e-8
        )  # near z = 0 the difference cancels
        tail = (
            scipy.stats.binom.sf(errors - 1, n, exact.lower)
            if sign == 1
            else scipy.stats.binom.cdf(errors, n, exact.upper)
        )
        np.testing.assert_allclose(tail, 1 - level, rtol=1e-9)
        for got in (wilson, exact):
            assert np.all((got.upper == 1) if sign == 1 else (got.lower == 0)), "rates have borders"


@pytest.mark.parametrize(
    ("errors", "n", "wald", "wilson", "exact"),
    [
        (81, 263, (0.2522, 0.3638), (0.2553, 0.3662), (0.2527, 0.3676)),
        (15, 148, (0.0527, 0.1500), (0.0624, 0.1605), (0.0578, 0.1617)),
        (0, 20, (0, 0), (0, 0.1611), (0, 0.1684)),
        (1, 29, (0, 0.1009), (0.0061, 0.1718), (0.0009, 0.1776)),
    ],
)
def test_error_rates_are_those_that_newcombe_publishes(errors, n, wald, wilson, exact):
    """Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, to its four digits; it cuts
    Wald's limits at 0.
    """
    for rule, limits in ((interval.wald, wald), (interval.wilson, wilson), (interval.clopper_pearson, exact)):
        got = rule(zeros_and_ones(errors, n))
        assert (max(got.lower, 0), got.upper) == pytest.approx(limits, abs=5.1e-5)


def test_wald_is_the_example_of_the_slides():
    """Scott & Variyam: 12 errors of 40 give [0.158, 0.442]."""
    got = interval.wald(zeros_and_ones(12, 40))
    assert (round(float(got.lower), 3), round(float(got.upper), 3)) == (0.158, 0.442)
    assert "use wilson" in str(got)


# One trained model: mean losses


@ALTERNATIVES
@pytest.mark.parametrize("level", LEVELS)
def test_t_is_that_of_scipy(alternative, level):
    cases = np.random.default_rng(0).gamma(1.0, size=(3, 25))
    want = scipy.stats.ttest_1samp(cases, 0.0, axis=-1, alternative=alternative).confidence_interval(level)
    got = interval.t(cases, level=level, alternative=alternative)
    np.testing.assert_allclose(got.lower, want.low, **EXACT)
    np.testing.assert_allclose(got.upper, want.high, **EXACT)
    np.testing.assert_allclose(got.standard_error, scipy.stats.sem(cases, axis=-1), **EXACT)
    assert set(got.df) == {24}


def bootstrap_limits(cases, kind, resamples, seed, level, alternative):
    """Davison & Hinkley's definitions for one data set; the draws are those of the generator that SciPy is given."""
    n, mean = len(cases), cases.mean()
    samples = cases[np.random.default_rng(seed).integers(0, n, (resamples, n))]
    means = samples.mean(-1)
    tails = np.array([(1 - level) / 2, (1 + level) / 2] if alternative == "two-sided" else [1 - level, level])
    if kind == "bca":
        below = (np.sum(means < mean) + np.sum(means <= mean)) / (2 * resamples)
        z0 = scipy.stats.norm.ppf(below)
        u = np.array([np.delete(cases, i).mean() for i in range(n)])
        u = (n - 1) * (u.mean() - u)
        a = np.sum(u**3) / (6 * np.sum(u**2) ** 1.5)
        z = z0 + scipy.stats.norm.ppf(tails)
        tails = scipy.stats.norm.cdf(z0 + z / (1 - a * z))
    if kind == "studentised":
        pivots = np.sort((means - mean) / (samples.std(-1, ddof=1) / math.sqrt(n)))
        low, high = (pivots[math.ceil(tail * resamples - 1e-9) - 1] for tail in tails)
        low, high = (mean - end * scipy.stats.sem(cases) for end in (high, low))
    else:
        low, high = np.quantile(means, tails)
        low, high = (2 * mean - high, 2 * mean - low) if kind == "basic" else (low, high)
    return -math.inf if alternative == "less" else low, math.inf if alternative == "greater" else high


@ALTERNATIVES
@pytest.mark.parametrize("kind", fixed.KINDS)
def test_bootstrap_is_its_definition(kind, alternative):
    cases = np.random.default_rng(3).gamma(1.0, size=(2, 23))
    got = interval.bootstrap(cases, kind=kind, resamples=1999, seed=5, level=0.9, alternative=alternative)
    for q in range(2):  # rounding may move a mean across a tie with the mean of all: none here
        np.testing.assert_allclose(
            (got.lower[q], got.upper[q]), bootstrap_limits(cases[q], kind, 1999, 5, 0.9, alternative), rtol=1e-10
        )
    np.testing.assert_allclose(got.estimate, cases.mean(-1), **EXACT)
    np.testing.assert_allclose(got.standard_error, scipy.stats.sem(cases, axis=-1), **EXACT)


def test_bootstrap_in_batches_is_the_same(monkeypatch):
    cases = np.random.default_rng(3).gamma(1.0, size=(2, 23))
    whole = [interval.bootstrap(cases, kind=kind, resamples=500) for kind in fixed.KINDS]
    monkeypatch.setattr(spread, "_BYTES", 8 * 46 * 7)
    for kind, want in zip(fixed.KINDS, whole, strict=True):
        got = interval.bootstrap(cases, kind=kind, resamples=500)
        np.testing.assert_allclose((got.lower, got.upper), (want.lower, want.upper), rtol=1e-12)


def test_studentised_limits_of_normal_losses_are_near_those_of_t():
    """The law of the pivot is t with 99 degrees of freedom but for the sample's own shape; over 20 samples its mean
    quantile is within 3 %.
    """
    cases = np.random.default_rng(0).normal(size=(20, 100))
    studentised, t = interval.bootstrap(cases, kind="studentised", resamples=4000), interval.t(cases)
    assert np.mean((studentised.upper - studentised.lower) / (t.upper - t.lower)) == pytest.approx(1, abs=0.03)


def test_a_resample_of_one_value_makes_studentised_limits_infinite():
    """One error of 20: more than a third of resamples have none, their pivot is -inf, and so nothing bounds the rate
    from above.
    """
    got = interval.bootstrap(zeros_and_ones(1, 20), kind="studentised", resamples=500)
    assert got.upper == math.inf
    assert np.isfinite(got.lower)


FIXED = {rule.__name__: rule for rule in (interval.wald, interval.wilson, interval.clopper_pearson, interval.t)} | {
    kind: partial(interval.bootstrap, kind=kind, resamples=99) for kind in fixed.KINDS
}


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("own", [False, True], ids=["one plan", "a plan for each"])
def test_the_test_cases_of_one_row_are_what_counts(name, own):
    """Losses of several data sets, with junk outside the test cases, are as their test losses alone."""
    plan = resample.leave_out(KEY, 30, 0.4, 1, sets=3 if own else None)
    values = np.random.default_rng(0).integers(0, 2, size=(3, 1, 30)).astype(float)
    tested = np.broadcast_to(plan.test, values.shape) > 0
    losses = of_values(np.where(tested, values, np.nan), plan)
    got, alone = FIXED[name](losses), FIXED[name](values[tested].reshape(3, 12))
    for number in NUMBERS:
        np.testing.assert_array_equal(getattr(got, number), getattr(alone, number))
    assert got.target == "R of the model trained on the 18 training cases"
    assert (got.unit, got.learner, alone.unit, alone.target) == (
        "squared loss",
        "a learner",
        "loss",
        "R of the given model",
    )
    if not own:
        assert FIXED[name](losses[1]).lower == pytest.approx(got.lower[1], abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
def test_t_covers_normal_losses_at_every_level(level):
    """4000 data sets of 5 cases; the binomial limits of the number covered fail once in a million."""
    cases = np.random.default_rng(1).normal(size=(4000, 5))
    low, high = scipy.stats.binom.interval(1 - 1e-6, 4000, level)
    assert low <= np.sum(interval.t(cases, level=level, alternative="greater").lower <= 0) <= high
    assert low <= np.sum(interval.t(cases, level=level, alternative="less").upper >= 0) <= high
    both = interval.t(cases, level=level)
    assert low <= np.sum((both.lower <= 0) & (both.upper >= 0)) <= high


def test_exact_error_rates_never_cover_too_little_and_wald_does():
    """Coverage by summing over all numbers of errors, so without chance."""
    n, rates = 30, np.linspace(0.005, 0.995, 199)
    cases = zeros_and_ones(np.arange(n + 1), n)
    covered = {}
    for name in ("wald", "wilson", "clopper_pearson"):
        got = FIXED[name](cases)
        inside = (got.lower[:, None] <= rates) & (rates <= got.upper[:, None])
        covered[name] = np.sum(inside * scipy.stats.binom.pmf(np.arange(n + 1)[:, None], n, rates), axis=0)
    assert covered["clopper_pearson"].min() >= 0.95
    assert covered["wilson"].mean() == pytest.approx(0.95, abs=0.01)
    assert covered["wald"].min() < 0.2


# Resampled rows, against loops written from the papers


@ALTERNATIVES
@pytest.mark.parametrize("level", LEVELS)
def test_corrected_t_is_the_test_against_a_learner_without_loss(level, alternative):
    plan = resample.leave_out(KEY, 20, 0.25, 12)
    losses = drawn(plan, sets=3)
    nothing = of_values(np.zeros((3, 12, 20)), plan)
    got, want = (
        interval.corrected_t(losses, level=level, alternative=alternative),
        compare.corrected_t(nothing, losses, alternative=alternative, level=level),
    )
    naive, paired = (
        interval.naive_t(losses, level=level, alternative=alternative),
        compare.paired_t(nothing, losses, alternative=alternative, level=level),
    )
    for number in ("estimate", "standard_error", "lower", "upper"):
        np.testing.assert_allclose(getattr(got, number), getattr(want, number), **EXACT)
        np.testing.assert_allclose(getattr(naive, number), getattr(paired, number), **EXACT)
    np.testing.assert_allclose(
        got.standard_error, np.sqrt((1 / 12 + 5 / 15) * np.var(losses.g, axis=-1, ddof=1)), **EXACT
    )
    np.testing.assert_allclose(got.parts["floor"], np.sqrt(5 / 15 * np.var(losses.g, axis=-1, ddof=1)), **EXACT)
    np.testing.assert_allclose(
        naive.lower,
        scipy.stats.ttest_1samp(losses.g, 0.0, axis=-1, alternative=alternative).confidence_interval(level).low,
        **EXACT,
    )


def test_corrected_t_is_naive_t_where_next_to_nothing_is_left_out():
    n = 40_000
    test = np.zeros((3, n), np.uint8)
    test[[0, 1, 2], [0, 1, 2]] = 1
    losses = drawn(resample.from_weights(1 - test, test))
    corrected, naive = interval.corrected_t(losses), interval.naive_t(losses)
    np.testing.assert_allclose(corrected.standard_error / naive.standard_error, math.sqrt(1 + 3 / (n - 1)), rtol=1e-12)
    assert corrected.parts["floor"] == pytest.approx(naive.standard_error * math.sqrt(3 / (n - 1)), rel=1e-12)


@pytest.mark.parametrize("repeats", [1, 3])
def test_bouckaert_frank_is_its_formula(repeats):
    losses = drawn(resample.k_fold(KEY, 20, folds=5, repeats=repeats))
    got, rows = interval.bouckaert_frank(losses), 5 * repeats
    error = math.sqrt((1 / rows + 1 / 4) * np.var(losses.g, ddof=1))
    assert got.standard_error == pytest.approx(error, rel=1e-12)
    assert (got.lower, got.upper) == pytest.approx(
        scipy.stats.t(rows - 1, losses.g.mean(), error).interval(0.95), rel=1e-12
    )
    assert got.df == rows - 1
    assert ("a single run of folds" in got.note) is (repeats == 1)


@pytest.mark.parametrize("n", [20, 23])
def test_conservative_z_is_its_definition(n):
    plan = resample.paired_halves(KEY, n, pairs=3, resamples=4, test_size=2)
    x, y, losses = small_problem(plan)
    means = {}
    for m in range(-1, 3):
        for half in (-1,) if m < 0 else (0, 1):
            rows = np.flatnonzero((plan.labels["pair"] == m) & (plan.labels["half"] == half))
            means[m, half] = np.mean(
                [squared_errors(x, y, np.flatnonzero(plan.train[r]), np.flatnonzero(plan.test[r])).mean() for r in rows]
            )
    variance = sum((means[m, 0] - means[m, 1]) ** 2 for m in range(3)) / 6
    got = interval.conservative_z(losses)
    assert got.estimate == pytest.approx(means[-1, -1], rel=1e-9)
    assert got.standard_error == pytest.approx(math.sqrt(variance), rel=1e-8)
    assert (got.lower, got.upper) == pytest.approx(
        scipy.stats.norm(means[-1, -1], math.sqrt(variance)).interval(0.95), rel=1e-8
    )
    assert got.target == f"ER for training sets of {n - 2} cases"
    assert "3 pairs of halves" in got.note


@pytest.mark.parametrize(("n", "folds"), [(20, 5), (23, 4), (12, 12)])
def test_cross_validation_is_its_definition(n, folds):
    plan = resample.k_fold(KEY, n, folds)
    x, y, losses = small_problem(plan)
    cases, within = np.empty(n), []
    for test in plan.test > 0:
        cases[test] = squared_errors(x, y, np.flatnonzero(~test), np.flatnonzero(test))
        within.append(np.var(cases[test], ddof=1) if test.sum() > 1 else math.nan)
    got = interval.cross_validation(losses)
    assert got.estimate == pytest.approx(cases.mean(), rel=1e-9)
    assert got.standard_error == pytest.approx(cases.std() / math.sqrt(n), rel=1e-8)
    assert (got.lower, got.upper) == pytest.approx(
        scipy.stats.norm(cases.mean(), cases.std() / math.sqrt(n)).interval(0.95), rel=1e-8
    )
    assert got.target == "the k-fold test error"
    if folds < n:
        inside = interval.cross_validation(losses, variance="within")
        assert inside.standard_error == pytest.approx(math.sqrt(np.mean(within) / n), rel=1e-8)
        assert inside.estimate == got.estimate


def test_cross_validation_with_repeats_takes_the_mean_of_each_case():
    plan = resample.k_fold(KEY, 20, 5, repeats=3)
    losses = drawn(plan)
    cases = np.array([losses.values[plan.test[:, i] > 0, i].mean() for i in range(20)])
    got = interval.cross_validation(losses)
    np.testing.assert_allclose(
        (got.estimate, got.standard_error), (cases.mean(), cases.std() / math.sqrt(20)), rtol=1e-12
    )
    runs = [
        interval.cross_validation(
            of_values(
                losses.values[5 * r : 5 * r + 5],
                resample.from_weights(plan.train[5 * r : 5 * r + 5], plan.test[5 * r : 5 * r + 5]),
            ),
            variance="within",
        )
        for r in range(3)
    ]
    np.testing.assert_allclose(
        interval.cross_validation(losses, variance="within").standard_error ** 2,
        np.mean([run.standard_error**2 for run in runs]),
        rtol=1e-12,
    )


def test_five_by_two_is_its_definition():
    plan = resample.five_by_two(KEY, 21)
    losses = drawn(plan)
    p = {
        (r, f): float(losses.g[i])
        for i, (r, f) in enumerate(zip(plan.labels["repeat"].tolist(), plan.labels["fold"].tolist(), strict=True))
    }
    variance = 0.0
    for r in range(5):
        mean = (p[r, 0] + p[r, 1]) / 2
        variance += ((p[r, 0] - mean) ** 2 + (p[r, 1] - mean) ** 2) / 5
    got = interval.five_by_two(losses)
    np.testing.assert_allclose(
        (got.lower, got.upper), scipy.stats.t(5, p[0, 0], math.sqrt(variance)).interval(0.95), rtol=1e-12
    )
    assert got.parts["mean"] == pytest.approx(np.mean(list(p.values())), rel=1e-12)


def nested(x, y, folds_of_repeats, power):
    """Algorithm 1 of Bates, Hastie & Tibshirani, and the bias correction, in loops that train every model when it is
    asked for. The cases below meet the lower limit of the error, none, and the upper one.
    """
    n, a, b, inner, outer = len(y), [], [], [], []
    for folds in folds_of_repeats:
        for k, held in enumerate(folds):
            rest = [fold for j, fold in enumerate(folds) if j != k]
            e_in = np.concatenate(
                [squared_errors(x, y, np.concatenate([f for f in rest if f is not fold]), fold) for fold in rest]
            )
            e_out = squared_errors(x, y, np.concatenate(rest), held)
            a.append((e_in.mean() - e_out.mean()) ** 2)
            b.append(e_out.var(ddof=1) / len(held))
            inner, outer = [*inner, *e_in], [*outer, *e_out]
    k, mse, naive = len(folds_of_repeats[0]), np.mean(a) - np.mean(b), np.std(inner, ddof=1) / math.sqrt(n)
    error = min(max(math.sqrt((k - 1) / k * max(mse, 0)), naive), math.sqrt(k) * naive)
    bias = (1 + ((k - 2) / k) ** power) * (np.mean(inner) - np.mean(outer))
    return np.mean(inner) - bias, error, bias, mse


@pytest.mark.parametrize(("bias", "power"), [("authors", 1.5), ("mlr3", 1.0)])
@pytest.mark.parametrize(
    ("n", "folds", "repeats", "seed"), [(20, 4, 1, 0), (20, 4, 1, 1), (23, 5, 2, 2), (15, 3, 3, 3), (20, 4, 1, 9)]
)
def test_nested_cross_validation_is_the_algorithm(n, folds, repeats, seed, bias, power):
    plan = resample.nested_pairs(jax.random.key(seed), n, folds, repeats)
    x, y, losses = small_problem(plan, seed)
    single = plan.labels["first"] == plan.labels["second"]
    divisions = [
        [np.flatnonzero(test) for test in plan.test[single & (plan.labels["repeat"] == r)]] for r in range(repeats)
    ]
    estimate, error, correction, mse = nested(x, y, divisions, power)
    got = interval.nested_cross_validation(losses, bias=bias)
    np.testing.assert_allclose(
        (got.estimate, got.standard_error, got.parts["bias"], got.parts["mse"]),
        (estimate, error, correction, mse),
        rtol=1e-8,
    )
    assert (got.lower, got.upper) == pytest.approx(scipy.stats.norm(estimate, error).interval(0.95), rel=1e-8)
    assert 1 <= got.parts["inflation"] <= math.sqrt(folds) + 1e-12
    assert got.target == "R"


def test_nested_cross_validation_of_unequal_folds_by_hand():
    """Folds of 3, 2 and 2 cases. Without fold 1 alone e_out is 1, 2, 3, without fold 2 alone 4, 6, without fold 3 alone
    5, 5; the e_in of fold 1 are 3, 3 (fold 2) and 4, 6 (fold 3), of fold 2 they are 2, 2, 2 and 7, 10, of fold 3 they
    are 1, 1, 4 and 3, 5. So mean e_in and mean e_out are 4 and 2, 4.6 and 5, 2.8 and 5, and the variances of e_out over
    their sizes 1/3, 1 and 0: MSE = (4 + 0.16 + 4.84) / 3 - (4/3) / 3 = 23/9. All 14 e_in sum to 53, their squares to
    283, and all 7 e_out to 26.
    """
    fold = np.array([0, 0, 0, 1, 1, 2, 2])
    rows = {
        (0, 0): [1, 2, 3],
        (1, 1): [4, 6],
        (2, 2): [5, 5],
        (0, 1): [2, 2, 2, 3, 3],
        (0, 2): [1, 1, 4, 4, 6],
        (1, 2): [3, 5, 7, 10],
    }
    test = np.array([np.isin(fold, pair) for pair in rows], np.uint8)
    values = np.full((6, 7), np.nan)
    values[test > 0] = np.concatenate(list(rows.values()))
    first, second = np.array(list(rows)).T
    plan = Plan(1 - test, test, "by hand", {"repeat": np.zeros(6, int), "first": first, "second": second})
    got = interval.nested_cross_validation(of_values(values, plan))
    bias, deviation = (1 + 3**-1.5) * (53 / 14 - 26 / 7), math.sqrt((283 - 53**2 / 14) / 13)
    assert got.estimate == pytest.approx(53 / 14 - bias, rel=1e-12)
    assert got.standard_error == pytest.approx(math.sqrt(2 / 3 * 23 / 9), rel=1e-12)
    assert got.parts["mse"] == pytest.approx(23 / 9, rel=1e-12)
    assert got.parts["inflation"] == pytest.approx(math.sqrt(46 / 27) / (deviation / math.sqrt(7)), rel=1e-12)


def test_cross_validation_of_unequal_folds_by_hand():
    """Folds of 3, 2 and 2 cases with the losses 1, 2, 6, then 4, 8, then 3, 5: mean 29/7, squares 155; within folds the
    variances are 7, 8 and 2; the rows' means are 3, 6 and 4, n2/n1 is 3/4, 2/5 and 2/5.
    """
    test = (np.array([0, 0, 0, 1, 1, 2, 2]) == np.arange(3)[:, None]).astype(np.uint8)
    plan = resample.from_weights(1 - test, test)
    losses = of_values(np.where(test > 0, [1, 2, 6, 4, 8, 3, 5], np.nan), plan)
    pairs, within = interval.cross_validation(losses), interval.cross_validation(losses, variance="within")
    assert pairs.estimate == within.estimate == pytest.approx(29 / 7, rel=1e-12)
    assert pairs.standard_error == pytest.approx(math.sqrt((155 / 7 - (29 / 7) ** 2) / 7), rel=1e-12)
    assert within.standard_error == pytest.approx(math.sqrt((7 + 8 + 2) / 3 / 7), rel=1e-12)
    folds = interval.bouckaert_frank(losses)
    assert folds.estimate == pytest.approx(13 / 3, rel=1e-12)
    variance = (16 / 9 + 25 / 9 + 1 / 9) / 2  # of 3, 6 and 4 about 13/3
    ratio = (3 / 4 + 2 / 5 + 2 / 5) / 3
    assert folds.standard_error == pytest.approx(math.sqrt((1 / 3 + ratio) * variance), rel=1e-12)
    assert folds.parts["floor"] == pytest.approx(math.sqrt(ratio * variance), rel=1e-12)
    assert "n2/n1 differs between rows (0.4 to 0.75); its mean was used" in folds.note


def test_nested_cross_validation_of_labels_that_leave_a_pair_out_is_refused():
    plan = resample.nested_pairs(KEY, 24, 4)
    labels = {**plan.labels, "first": np.where(np.arange(10) == 9, 0, plan.labels["first"])}
    with pytest.raises(ValueError, match="expected every pair of folds in each repeat, got some twice and others not"):
        interval.nested_cross_validation(drawn(replace(plan, labels=labels)))


def test_nested_cross_validation_reaches_both_of_its_limits():
    """Chance puts the estimated MSE below its limit in some data sets; here the inner and outer losses of one fold are
    far apart, which puts it above.
    """
    plan = resample.nested_pairs(KEY, 24, 4)
    losses = drawn(plan, sets=60)
    inflation = interval.nested_cross_validation(losses).parts["inflation"]
    assert np.isclose(inflation, 1).any()
    assert all(
        ("at its limits" in interval.nested_cross_validation(losses[q]).note)
        is bool(np.isclose(inflation[q], (1, 2)).any())
        for q in range(60)
    )
    fold = (plan.test[:4] > 0).argmax(0)
    values = (
        np.where(fold == 0, 10.0, np.where(plan.labels["first"] == plan.labels["second"], 0.0, 10.0)[:, None])
        + np.arange(24) * 1e-3
    )
    assert interval.nested_cross_validation(of_values(values, plan)).parts["inflation"] == pytest.approx(2.0, rel=1e-12)


def test_hold_out_knows_error_rates_from_mean_losses():
    plan = resample.leave_out(KEY, 30, 0.4, 1)
    cases = (np.random.default_rng(0).random((1, 30)) < 0.5).astype(float)
    rate, mean = (interval.hold_out(of_values(values, plan)) for values in (cases, cases * 2))
    tested = cases[plan.test > 0]
    assert (rate.lower, rate.upper) == pytest.approx(proportion_confint(tested.sum(), 12, method="wilson"), rel=1e-9)
    assert mean.lower == pytest.approx(interval.t(tested * 2).lower, rel=1e-12)
    assert (rate.method, mean.method) == ("hold-out, Wilson interval", "hold-out, t interval of the mean loss")


# All methods

PLANS = {
    "hold_out": resample.leave_out(KEY, 24, 0.25, 1),
    "naive_t": resample.leave_out(KEY, 24, 0.25, 6),
    "corrected_t": resample.leave_out(KEY, 24, 0.25, 6),
    "bouckaert_frank": resample.k_fold(KEY, 24, 4, repeats=2),
    "conservative_z": resample.paired_halves(KEY, 24, pairs=3, resamples=4),
    "cross_validation": resample.k_fold(KEY, 24, 4),
    "five_by_two": resample.five_by_two(KEY, 24),
    "nested_cross_validation": resample.nested_pairs(KEY, 24, 4, repeats=2),
}
METHODS = pytest.mark.parametrize("name", PLANS)


@METHODS
@pytest.mark.parametrize("own", [False, True], ids=["one plan", "a plan for each"])
def test_several_data_sets_are_done_each(name, own):
    plan = PLANS[name]
    if own:
        orders = [np.random.default_rng(q).permutation(plan.n) for q in range(3)]
        plan = resample.stack([replace(plan, train=plan.train[:, order], test=plan.test[:, order]) for order in orders])
    losses = drawn(plan, sets=3)
    together = getattr(interval, name)(losses, level=0.9)
    for q in range(3):
        alone = getattr(interval, name)(losses[q], level=0.9)
        for number in NUMBERS:
            np.testing.assert_allclose(getattr(together, number)[q], getattr(alone, number), **EXACT)
        for part in together.parts:
            np.testing.assert_allclose(together.parts[part][q], alone.parts[part], **EXACT)
    assert len(together.to_frame()) == 3


@METHODS
def test_one_sided_limits_are_those_of_a_wider_interval(name):
    losses, method = drawn(PLANS[name]), getattr(interval, name)
    both, greater, less = (
        method(losses, level=0.8),
        method(losses, level=0.9, alternative="greater"),
        method(losses, level=0.9, alternative="less"),
    )
    np.testing.assert_allclose((greater.lower, less.upper), (both.lower, both.upper), **EXACT)
    assert (greater.upper, less.lower) == (math.inf, -math.inf)
    assert both.lower < both.estimate < both.upper


@METHODS
def test_the_unit_of_the_loss_scales_the_interval(name):
    losses, method = drawn(PLANS[name]), getattr(interval, name)
    got, scaled = method(losses), method(of_values(np.asarray(losses.values) * 1e30, losses.plan))
    for number in ("estimate", "standard_error", "lower", "upper"):
        np.testing.assert_allclose(getattr(scaled, number), getattr(got, number) * 1e30, rtol=1e-12)


@METHODS
def test_equal_losses_are_no_certainty(name):
    """0.25 is exact in binary, so that differences of means are 0; inflation is then 1 by definition."""
    got = getattr(interval, name)(of_values(np.full(PLANS[name].train.shape, 0.25), PLANS[name]))
    if name == "hold_out":  # the interval of one model is that of its textbook
        assert (got.estimate, got.lower, got.upper, got.standard_error) == (0.25, 0.25, 0.25, 0)
        return
    assert (got.estimate, got.standard_error) == (0.25, 0)
    assert np.isnan([got.lower, got.upper]).all()
    assert "which is no certainty" in got.note
    assert got.parts.get("inflation", 1.0) == 1


@METHODS
def test_losses_outside_the_test_cases_do_not_matter(name):
    losses = drawn(PLANS[name])
    blanked = of_values(np.where(losses.test > 0, losses.values, np.nan), losses.plan)
    got, want = (getattr(interval, name)(one) for one in (blanked, losses))
    np.testing.assert_array_equal(
        [getattr(got, number) for number in NUMBERS], [getattr(want, number) for number in NUMBERS]
    )


@METHODS
def test_an_interval_says_what_it_is(name):
    got = getattr(interval, name)(drawn(PLANS[name]))
    for part in (got.method, got.source, "squared loss of a learner", "95% interval [", f"about {got.target}"):
        assert part in str(got)
    assert got.target.startswith(
        {
            "cross_validation": "the k-fold test error",
            "nested_cross_validation": "R",
            "hold_out": "R of the model trained on the 18",
        }.get(name, "ER for training sets of ")
    )
    assert ("negative control" in got.note) is (name == "naive_t")


@pytest.mark.parametrize("name", ["wald", "wilson", "clopper_pearson", "t", *fixed.KINDS])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_one_value_in_all_cases_has_documented_limits(name, value):
    got = FIXED[name](np.full(10, value))
    beyond = {"wilson": 3.8415 / (10 + 3.8415), "clopper_pearson": 1 - 0.025**0.1}.get(
        name, 0.0
    )  # z^2 / (N + z^2); 1 - (alpha / 2)^(1/N)
    want = (0.0, beyond) if value == 0 else (1 - beyond, 1.0)
    assert (got.lower, got.upper) == pytest.approx(want, abs=1e-5)


def test_failed_rows_left_out_are_mentioned():
    losses = drawn(PLANS["corrected_t"])
    failed = replace(losses, failure=np.arange(6, dtype=np.uint8) // 5, reasons=("it did not converge",))
    assert interval.corrected_t(failed.without_failed()).note == "1 failed rows were left out"


# Coverage


SETS = 160
COVERAGE = {
    "hold-out": (interval.hold_out, "third", 0.902, 1.07),
    "cross-validation": (interval.cross_validation, "folds", 0.891, 0.62),
    "within folds": (partial(interval.cross_validation, variance="within"), "folds", 0.891, 0.62),
    "naive t": (interval.naive_t, "tenth", 0.660, None),
    "corrected t": (interval.corrected_t, "tenth", 0.915, None),
    "corrected t of halves": (interval.corrected_t, "half", 0.960, 0.83),
    "10 x 10 folds": (interval.bouckaert_frank, "10 x 10 folds", 0.913, 0.65),
    "5 x 2": (interval.five_by_two, "5 x 2", 0.880, 1.03),
    "nested": (interval.nested_cross_validation, "nested", 0.949, 0.89),
    "conservative Z": (interval.conservative_z, "halves", 0.981, 1.48),
}
"""A method, its plan, and its coverage of R and mean width for least squares with 100 cases and 10 inputs, of 1500
data sets of an independent program.
"""
MADE_FOR = {
    "third": partial(resample.leave_out, fraction=0.333, resamples=1),
    "folds": partial(resample.k_fold, folds=5),
    "tenth": partial(resample.leave_out, fraction=0.1, resamples=25),
    "half": partial(resample.leave_out, fraction=0.5, resamples=100),
    "10 x 10 folds": partial(resample.k_fold, folds=10, repeats=10),
    "5 x 2": resample.five_by_two,
    "nested": partial(resample.nested_pairs, folds=5, repeats=3),
    "halves": partial(resample.paired_halves, pairs=10, resamples=5),
}


@pytest.fixture(scope="module")
def simulated():
    """Losses of least squares on every plan, by name, of linear data with noise of variance 1; and the risk of the
    model of all cases, [Q].

    All rows of all plans are assessed in one call.
    """
    random = np.random.default_rng(0)
    x, noise = random.normal(size=(SETS, 100, 10)), random.normal(size=(SETS, 100))
    deviation = np.linalg.solve(np.einsum("qnd,qne->qde", x, x), np.einsum("qnd,qn->qd", x, noise)[..., None])
    data = Data(x, (x.sum(-1) + noise)[..., None], tuple(f"x{i}" for i in range(10)))
    plans = {
        name: resample.stack([plan(jax.random.key(q), 100) for q in range(SETS)]) for name, plan in MADE_FOR.items()
    }
    together = resample.from_weights(
        *(np.concatenate([getattr(plan, part) for plan in plans.values()], axis=1) for part in ("train", "test"))
    )
    values = assess(KEY, learn.LeastSquares(intercept=False), data, together).values
    ends = np.cumsum([plan.resamples for plan in plans.values()])
    return {
        name: of_values(values[:, end - plan.resamples : end], plan)
        for (name, plan), end in zip(plans.items(), ends, strict=True)
    }, 1 + np.square(deviation).sum((-2, -1))


@pytest.mark.parametrize("name", COVERAGE)
def test_coverage_and_width_are_those_of_an_independent_simulation(name, simulated):
    """Coverage: binomial limits that fail once in a million, around what 1500 other data sets gave, give or take its
    standard error of 0.01.
    Width: its relative deviation between data sets is 17 to 37 %, so 3 % at most of the mean of 160; 12 % is four
      times that.
    """
    method, plan, coverage, width = COVERAGE[name]
    losses, risk = simulated
    got = method(losses[plan])
    low, high = (
        scipy.stats.binom.ppf(5e-7, SETS, coverage - 0.01),
        scipy.stats.binom.isf(5e-7, SETS, min(coverage + 0.01, 1.0)),
    )
    assert low <= np.sum((got.lower <= risk) & (risk <= got.upper)) <= high
    if width:
        assert np.mean(got.upper - got.lower) == pytest.approx(width, rel=0.12)


def test_naive_t_covers_far_too_little_and_corrected_t_does_not(simulated):
    """The negative control: with 100 halves it covers about one in nine, where it claims 95 %."""
    losses, risk = simulated
    covered = [
        int(np.sum((got.lower <= risk) & (risk <= got.upper)))
        for got in (rule(losses["half"]) for rule in (interval.naive_t, interval.corrected_t))
    ]
    assert covered[0] < scipy.stats.binom.ppf(1e-6, SETS, 0.5)
    assert covered[1] >= scipy.stats.binom.ppf(1e-6, SETS, 0.95)


# What to use

ONE, TWO = np.eye(8, dtype=np.uint8)[:2], np.eye(8, dtype=np.uint8)[4:6]
RECOMMENDED = {
    "one split": (PLANS["hold_out"], "R", "hold-out, t interval", "there is one split"),
    "random splits": (PLANS["corrected_t"], "R", "corrected resampled t interval", "splits share cases"),
    "random splits, ER": (PLANS["corrected_t"], "ER", "corrected resampled t interval", "trained on 18 of 24 cases"),
    "splits of four fifths": (resample.leave_out(KEY, 20, 0.2, 5), "R", "corrected resampled t interval", ""),
    "splits of nine tenths": (resample.leave_out(KEY, 20, 0.1, 5), "R", "corrected resampled t interval", ""),
    "balanced": (
        resample.balanced(KEY, 24, 0.25, 6),
        "R",
        "corrected resampled t interval",
        "balanced splits are no random ones, for which the correction is made",
    ),
    "repeated folds": (
        PLANS["bouckaert_frank"],
        "R",
        "corrected repeated k-fold t interval",
        "folds share training cases",
    ),
    "folds": (PLANS["cross_validation"], "R", "corrected repeated k-fold t interval", "very conservative"),
    "folds, their own error": (
        PLANS["cross_validation"],
        "the k-fold test error",
        "cross-validation interval, all-pairs",
        "its central limit theorem",
    ),
    "leave-one-out, its own error": (
        resample.leave_one_out(12),
        "the k-fold test error",
        "cross-validation interval, all-pairs",
        "its central limit theorem",
    ),
    "folds without labels": (
        resample.from_weights(PLANS["cross_validation"].train, PLANS["cross_validation"].test),
        "ER",
        "corrected repeated k-fold t interval",
        "",
    ),
    "5 x 2": (PLANS["five_by_two"], "R", "corrected repeated k-fold t interval", "trained on 12 of 24 cases"),
    "nested": (PLANS["nested_cross_validation"], "R", "nested cross-validation", "corrects its bias"),
    "halves": (PLANS["conservative_z"], "ER", "conservative Z interval", "disjoint halves"),
    "nothing shared": (
        resample.task_instances(64, 8, instances=4),
        "ER",
        "naive t interval",
        "neither training nor test cases",
    ),
}


@pytest.mark.parametrize("case", RECOMMENDED)
def test_recommend_chooses_and_says_why(case):
    plan, target, method, reason = RECOMMENDED[case]
    got = interval.recommend(drawn(plan), target=target, level=0.9, alternative="greater")
    assert got.method.startswith(method)
    assert got.note.startswith("chosen because ")
    assert reason in got.note
    assert (got.level, got.upper) == (0.9, math.inf)
    assert ("of 20 cases" in got.note) is False


@pytest.mark.parametrize("case", RECOMMENDED)
def test_recommend_for_error_rates_stays_within_their_limits(case):
    """Losses of 0 and 1 have intervals of their own, of one row and of random splits or folds."""
    plan, target, method, _ = RECOMMENDED[case]
    losses = of_values(np.random.default_rng(0).integers(0, 2, (plan.resamples, plan.n)), plan, name="zero_one")
    got = interval.recommend(losses, target=target)
    splits = method.startswith("corrected")
    assert got.method.startswith("hold-out, Wilson" if plan.resamples == 1 else "corrected score" if splits else method)
    assert got.estimate == pytest.approx(np.mean(losses.g)) or case in ("nested", "halves")


NONE_KNOWN = {
    "bootstrap": (resample.bootstrap(KEY, 24, 60), "R", "bootstrap samples, which train on about 0.63 n cases"),
    "bootstrap, ER": (resample.bootstrap(KEY, 24, 60), "ER", "bootstrap samples, which train on about 0.63 n cases"),
    "tested twice": (
        resample.from_weights(ONE, 2 * TWO),
        "R",
        "test cases that count more than once; give test weights of 0 and 1",
    ),
    "apparent": (
        resample.full(24),
        "R",
        "rows tested on cases that they were trained on: the apparent error; use a plan that leaves",
    ),
    "leave-one-out": (
        resample.leave_one_out(12),
        "R",
        "single test cases, from which the dependence of the models cannot be seen",
    ),
    "series": (resample.time_blocks(24, 4), "R", "blocks of a series, whose cases depend on each other"),
    "series, its own error": (
        resample.time_blocks(24, 4),
        "the k-fold test error",
        "no folds of independent cases that test each of them once",
    ),
    "groups": (
        resample.k_fold(KEY, 24, 4, groups=np.arange(24) // 3),
        "the k-fold test error",
        "no folds of independent cases",
    ),
    "nothing shared": (
        resample.task_instances(64, 8, instances=4),
        "R",
        "training sets that do not overlap, none of which holds all cases; ask for ER",
    ),
    "splits as folds": (
        PLANS["corrected_t"],
        "the k-fold test error",
        "no folds of independent cases that test each of them once",
    ),
    "common test set": (
        resample.task_instances(64, 8, instances=4, common=True),
        "ER",
        "instances share their test cases and no training cases; for an interval use task_instances",
    ),
}


@pytest.mark.parametrize("case", NONE_KNOWN)
def test_recommend_refuses_where_no_interval_is_known(case):
    plan, target, message = NONE_KNOWN[case]
    with pytest.raises(
        ValueError,
        match=rf"expected a plan that an interval for {target} is made for, got "
        rf"(resample\.|given weights).*: {message}",
    ):
        interval.recommend(drawn(plan), target=target)


# Bad input

SPLITS = drawn(PLANS["corrected_t"])
FAILED = {
    name: replace(
        drawn(plan),
        failure=np.r_[np.uint8(1), np.zeros(plan.resamples - 1, np.uint8)],
        reasons=("it did not converge",),
    )
    for name, plan in PLANS.items()
}
SINGLE = drawn(PLANS["hold_out"])


def rows_only(losses):
    return replace(losses, values=None)


REFUSED = {
    "one row": (
        interval.corrected_t,
        SINGLE,
        "at least 2 resamplings to see how they vary, got 1; ask for more resamples, or use hold_out",
    ),
    "one row, naive": (interval.naive_t, SINGLE, "at least 2 resamplings"),
    "several rows": (
        interval.hold_out,
        SPLITS,
        "expected rows that are tested on the same cases, on which none trains, got .*; use corrected_t",
    ),
    "apparent": (
        interval.hold_out,
        drawn(resample.full(24)),
        "held out of the training, got some that were trained on; use a plan that leaves its test cases out",
    ),
    "cases twice": (
        interval.t,
        drawn(resample.from_weights(ONE[:1], 2 * TWO[:1])),
        "some that count more than once; give test weights of 0 and 1",
    ),
    "sizes": (
        interval.t,
        drawn(resample.from_weights(np.stack([ONE[:1], ONE[:1]]), np.stack([TWO[:1], TWO[:1] + TWO[1:]])), 2),
        r"1 to 2 of them in different data sets; take one at a time, as in losses\[q\]",
    ),
    "one test case": (
        interval.t,
        drawn(resample.from_weights(ONE[:1], TWO[:1])),
        r"at least 2 test cases for t, got shape \[1\]; test on more cases",
    ),
    "no case": (interval.wilson, np.zeros((3, 0)), r"at least 1 test case for Wilson interval, got shape \[3, 0\]"),
    "NaN": (
        interval.t,
        np.array([1.0, math.nan]),
        "expected finite losses .*, got one that is not finite; test on more cases, or leave out what is not a number",
    ),
    "no rate": (
        interval.wilson,
        np.array([0.0, 0.5]),
        r"losses of 0 and 1 for an error rate, got 0.5 \(loss\); use the loss zero_one, or t for other losses",
    ),
    "no rate, exact": (
        interval.clopper_pearson,
        SINGLE,
        r"losses of 0 and 1 for an error rate, got .* \(squared loss\)",
    ),
    "no rate, Wald": (interval.wald, SINGLE, "losses of 0 and 1"),
    "kind": (
        partial(interval.bootstrap, kind="abc"),
        SINGLE,
        "kind to be one of 'percentile', 'basic', 'bca', 'studentised', got 'abc'; choose one of these",
    ),
    "resamples": (
        partial(interval.bootstrap, resamples=1),
        SINGLE,
        "resamples to be a whole number from 2 to .*, got 1",
    ),
    "BCa": (
        partial(interval.bootstrap, resamples=2, seed=12),
        np.array([0.0] * 300 + [1.0]),
        "1 data sets without, for which BCa has no limits; use kind='percentile' or t",
    ),
    "bootstrap": (
        interval.corrected_t,
        drawn(resample.bootstrap(KEY, 24, 6)),
        r"cases drawn more than once \(a bootstrap\)",
    ),
    "no folds": (
        interval.bouckaert_frank,
        SPLITS,
        r"repeats of folds that test every case once, trained on all others, got resample.leave_out\(.*; use k_fold",
    ),
    "a fold missing": (
        interval.bouckaert_frank,
        FAILED["bouckaert_frank"].without_failed(),
        "repeats of folds that test every case once, trained on all others, got .* without 1 failed rows",
    ),
    "no halves": (
        interval.conservative_z,
        SPLITS,
        "expected splits of all data and of pairs of halves, got resample.leave_out.*; use resample.paired_halves",
    ),
    "a half incomplete": (
        interval.conservative_z,
        FAILED["conservative_z"].without_failed(),
        "as many rows of every half as of all data, got unequal numbers .*; assess the whole plan",
    ),
    "no division": (
        interval.cross_validation,
        SPLITS,
        "folds that test every case once, trained on all others, got resample.leave_out.*; use k_fold, or",
    ),
    "gaps": (
        interval.cross_validation,
        drawn(resample.time_blocks(24, 4, gap=1)),
        "trained on all others, got resample.time_blocks",
    ),
    "variance": (
        partial(interval.cross_validation, variance="all"),
        SPLITS,
        "variance to be one of 'all-pairs', 'within', got 'all'; choose one of these",
    ),
    "folds of one case": (
        partial(interval.cross_validation, variance="within"),
        drawn(resample.leave_one_out(5)),
        "at least 2 cases in every fold for the variance within folds, got 1 .*; use all-pairs, or fewer folds",
    ),
    "no five by two": (
        interval.five_by_two,
        drawn(PLANS["bouckaert_frank"]),
        "five times two halves, got resample.k_fold.*; use resample.five_by_two",
    ),
    "ten folds": (interval.five_by_two, drawn(resample.k_fold(KEY, 24, 10)), "five times two halves"),
    "no pairs": (
        interval.nested_cross_validation,
        SPLITS,
        "rows without one fold and without two, got resample.leave_out.*; use resample.nested_pairs",
    ),
    "a pair missing": (
        interval.nested_cross_validation,
        FAILED["nested_cross_validation"].without_failed(),
        "expected 10 rows in each repeat of 4 folds, got 19 rows in 2; assess the whole plan",
    ),
    "nested folds of one case": (
        interval.nested_cross_validation,
        drawn(resample.nested_pairs(KEY, 7, 4)),
        "at least 2 cases in every fold, got 1 .*; use fewer folds",
    ),
    "bias": (
        partial(interval.nested_cross_validation, bias="none"),
        SPLITS,
        "bias to be one of 'authors', 'mlr3', got 'none'; choose one of these",
    ),
    "target": (
        partial(interval.recommend, target="G"),
        SPLITS,
        "target to be one of 'R', 'ER', 'the k-fold test error', got 'G'; choose one of these",
    ),
} | {
    f"rows only, {name}": (
        getattr(interval, name),
        rows_only(drawn(PLANS[name])),
        r"the losses of every case, got the means of rows only \(resample.*\); assess with keep='cases'",
    )
    for name in ("hold_out", "cross_validation", "nested_cross_validation")
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused(case):
    method, losses, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        method(losses)


@METHODS
def test_failed_rows_are_refused(name):
    for method in (getattr(interval, name), interval.recommend):
        with pytest.raises(
            ValueError,
            match=r"expected every row to have been fitted, got 1 failed of .*it did not converge.*without_failed",
        ):
            method(FAILED[name])


@pytest.mark.parametrize("name", [*PLANS, *FIXED, "recommend"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alternative": "larger"}, "alternative to be one of 'two-sided', 'greater', 'less', got 'larger'"),
        ({"level": 1.0}, "level to be a number above 0 and below 1, got 1.0"),
        ({"level": 0.0}, "level to be a number above 0 and below 1, got 0.0"),
        ({"level": math.nan}, "level to be a number above 0 and below 1, got nan"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused(name, options, message):
    method, given = (
        (FIXED[name], zeros_and_ones(2, 9))
        if name in FIXED
        else (getattr(interval, name), drawn(PLANS.get(name, PLANS["corrected_t"])))
    )
    with pytest.raises(ValueError, match=message):
        method(given, **options)


def test_rows_alone_suffice_where_only_means_count():
    for name in ("naive_t", "corrected_t", "bouckaert_frank", "conservative_z", "five_by_two"):
        losses = drawn(PLANS[name])
        assert getattr(interval, name)(rows_only(losses)).lower == getattr(interval, name)(losses).lower


def test_predictions_of_other_tools_have_an_interval_too():
    """The only labels that such a plan has are those that it is given."""
    plan, random = PLANS["nested_cross_validation"], np.random.default_rng(0)
    losses = Losses.from_predictions(
        random.normal(size=24), random.normal(size=(20, 24)), plan.train, plan.test, loss.squared
    )
    with pytest.raises(ValueError, match="rows without one fold and without two, got given weights"):
        interval.nested_cross_validation(losses)
    got = interval.nested_cross_validation(replace(losses, plan=plan))
    assert got.learner == "given predictions"
    assert np.isfinite(got.lower)
