"""Measures, distribution functions and bands: against NumPy, SciPy, statsmodels and Python's statistics, one data set
at a time.
"""

import dataclasses
import math
import statistics

import jax
import numpy as np
import pytest
import scipy.stats
from statsmodels.distributions.empirical_distribution import _conf_set

from jaxgen import resample
from jaxgen.stats import compare, estimate, interval, metrics
from jaxgen.types import Losses, result

EXACT = {"rtol": 1e-12, "atol": 1e-14}
"""Sums of at most 200 numbers near 1 in another order: some hundred roundings of 1e-16."""


def draws(*shape):
    """Skewed values, as generalization errors are."""
    return np.random.default_rng(0).gamma(3.0, 0.5, size=shape)


def losses(g, failed=()):
    """Losses whose rows have the test means g."""
    g = np.asarray(g, np.float64)
    failure = np.zeros(g.shape, np.uint8)
    failure[list(failed)] = 1
    return Losses(
        g,
        g / 2,
        resample.bootstrap(jax.random.key(0), 30, g.shape[-1]),
        "Mean()",
        "squared",
        failure,
        ("it did not converge",),
    )


# summary

MEASURES = {
    "avr": lambda v: math.fsum(v) / len(v),
    "tavr": lambda v: statistics.mean(sorted(v)[len(v) // 20 : len(v) - len(v) // 20]),
    "med": statistics.median,
    "std": statistics.stdev,
    "mad": lambda v: statistics.median(abs(g - statistics.median(v)) for g in v),
    "iqr": lambda v: float(np.subtract(*np.percentile(v, [75, 25]))),
}


@pytest.mark.parametrize("shape", [(2,), (3,), (7,), (20,), (21,), (200,), (1, 19), (4, 40), (3, 101)], ids=str)
@pytest.mark.parametrize("name", MEASURES)
def test_measures_are_those_of_one_row_at_a_time(name, shape):
    g = draws(*shape)
    summary = estimate.summary(g)
    for got, values in ((summary.raw, g), (summary.log1p, np.log1p(g))):
        want = np.apply_along_axis(lambda row: MEASURES[name](row.tolist()), -1, values)
        np.testing.assert_allclose(getattr(got, name), want, **EXACT)
        assert getattr(got, name).shape == shape[:-1]
        assert getattr(got, name).dtype == np.float64


def test_measures_are_those_of_scipy():
    g = draws(5, 60)
    summary = estimate.summary(g)
    for name, of_row in {
        "tavr": lambda v: scipy.stats.trim_mean(v, 0.05),
        "mad": scipy.stats.median_abs_deviation,
        "iqr": scipy.stats.iqr,
        "std": scipy.stats.tstd,
    }.items():
        np.testing.assert_allclose(getattr(summary.raw, name), [of_row(row) for row in g], **EXACT)
    np.testing.assert_allclose(summary.monte_carlo_error, [scipy.stats.sem(row) for row in g], **EXACT)
    assert summary.resamples == 60


def test_log1p_is_not_a_number_for_values_of_minus_one_or_less():
    summary = estimate.summary(np.array([[-0.5, 0.0, 3.0], [-1.0, 0.0, 3.0], [-2.0, 0.0, 3.0]]))
    for name in MEASURES:
        assert np.isfinite(getattr(summary.raw, name)).all()
        assert np.isfinite(getattr(summary.log1p, name)).tolist() == [True, False, False]


def test_log1p_keeps_small_values():
    """log(1 + 1e-12) written out would lose five digits."""
    np.testing.assert_allclose(estimate.summary(np.full(3, 1e-12)).log1p.avr, 1e-12 - 0.5e-24, rtol=1e-14)


def test_a_summary_of_losses_says_whose_they_are():
    all_rows = losses(draws(40))
    summary = estimate.summary(all_rows)
    np.testing.assert_array_equal(summary.raw.avr, estimate.summary(all_rows.g).raw.avr)
    assert summary.title == "Mean(), squared loss"
    assert str(summary).startswith("Mean(), squared loss: 40 resamplings; Monte Carlo standard error of the mean 0.")
    assert (
        estimate.summary(losses(draws(40), failed=[3, 4]).without_failed()).title
        == "Mean(), squared loss, 2 failed rows left out"
    )
    assert estimate.summary(all_rows.g).title == ""


@pytest.mark.parametrize("shape", [(40,), (3, 40)], ids=str)
def test_a_summary_as_a_frame_has_a_row_per_set_and_scale(shape):
    summary = estimate.summary(draws(*shape))
    frame = summary.to_frame()
    assert list(frame.columns) == list(MEASURES)
    assert frame.index.names == ["scale", "set"]
    for name in MEASURES:
        np.testing.assert_array_equal(frame.loc["G", name], np.atleast_1d(getattr(summary.raw, name)))
        np.testing.assert_array_equal(frame.loc["log(1+G)", name], np.atleast_1d(getattr(summary.log1p, name)))
    assert ("medians over 3 data sets" in str(summary)) is (len(shape) == 2)
    assert f"{np.median(summary.raw.iqr):.5g}" in str(summary)


# trimmed_average


def test_the_trimmed_average_is_an_average_and_the_printed_integral_is_not():
    constant = np.full(40, 3.0)
    assert estimate.trimmed_average(constant) == pytest.approx(3.0)
    assert estimate.trimmed_average(constant, normalised=False) == pytest.approx(0.9 * 3.0)


@pytest.mark.parametrize("shape", [(20,), (3, 60)], ids=str)
@pytest.mark.parametrize("cut", [0.0, 0.05, 0.25, 0.45])
def test_the_trimmed_average_in_both_forms(shape, cut):
    g = draws(*shape)
    dropped = round(cut * shape[-1])
    middle = np.sort(g)[..., dropped : shape[-1] - dropped]
    np.testing.assert_allclose(estimate.trimmed_average(g, cut=cut), middle.mean(-1), **EXACT)
    # the integral of G over the probabilities from cut to 1 - cut, each value having 1/R of it
    np.testing.assert_allclose(
        estimate.trimmed_average(g, cut=cut, normalised=False), middle.sum(-1) / shape[-1], **EXACT
    )


# box_cox


@pytest.mark.parametrize("shape", [(40,), (3, 40)], ids=str)
def test_the_family_holds_g_itself_and_the_transform_of_larsen_and_hansen(shape):
    g = draws(*shape)
    summary = estimate.summary(g)
    for lam, measures, location in (
        (0.0, summary.log1p, np.expm1(summary.log1p.avr)),
        (1.0, summary.raw, summary.raw.avr),
    ):
        got = estimate.box_cox(g, lam=lam)
        for name in MEASURES:
            np.testing.assert_allclose(getattr(got.measures, name), getattr(measures, name), **EXACT)
        np.testing.assert_allclose(got.location, location, **EXACT)
        np.testing.assert_array_equal(got.lam, np.full(shape[:-1], lam))


@pytest.mark.parametrize("shift", [0.0, 0.3, 1.0])
def test_the_estimated_power_is_that_of_scipy(shift):
    g = draws(3, 60)
    got = estimate.box_cox(g, shift=shift)
    for q, row in enumerate(g):
        peer = scipy.stats.boxcox(row + shift)
        transformed, lam = peer[0], peer[1]
        np.testing.assert_allclose(got.lam[q], lam, rtol=1e-7)  # where a maximum is flat, to the root of the precision
        for name in MEASURES:
            np.testing.assert_allclose(getattr(got.measures, name)[q], MEASURES[name](transformed.tolist()), rtol=1e-6)
        alone = estimate.box_cox(row, shift=shift)
        assert (alone.lam, alone.location) == (got.lam[q], got.location[q])
    grid = np.linspace(-4, 6, 401)
    best = grid[np.argmax([scipy.stats.boxcox_llf(lam, g[0] + shift) for lam in grid])]
    np.testing.assert_allclose(got.lam[0], best, atol=0.025)  # the step


@pytest.mark.parametrize("lam", [-1.0, 0.0, 0.5, 2.0])
def test_the_location_without_a_shift_is_the_power_mean(lam):
    """Harmonic, geometric, ..., quadratic mean."""
    g = draws(3, 40)
    np.testing.assert_allclose(
        estimate.box_cox(g, lam=lam, shift=0.0).location, scipy.stats.pmean(g, lam, axis=-1), **EXACT
    )


def test_the_power_of_a_log_normal_is_near_0():
    """5000 values of a standard deviation of 1, within six standard errors.

    The score of the power is z - z^3 / 2; without its parts along the scores of mean and variance, (3 z - z^3) / 2,
    whose variance is 3/2.
    """
    g = np.exp(np.random.default_rng(4).normal(size=5000))
    assert abs(estimate.box_cox(g, shift=0.0).lam) < 6 * math.sqrt(2 / 3 / 5000)


def test_box_cox_keeps_small_values():
    """1 + 1e-12 written out would lose twelve digits."""
    got = estimate.box_cox(1e-12 * np.array([1.0, 2.0, 3.0]), lam=0.5)
    np.testing.assert_allclose(got.location, 2e-12, rtol=1e-9)


@pytest.mark.parametrize("shape", [(40,), (3, 40)], ids=str)
def test_box_cox_as_a_frame_and_as_text(shape):
    got = estimate.box_cox(losses(draws(*shape)), shift=0.5)
    frame = got.to_frame()
    assert list(frame.columns) == ["lam", *MEASURES, "location", "shift"]
    np.testing.assert_array_equal(frame["location"], np.atleast_1d(got.location))
    assert ("medians over 3 data sets" in str(got)) is (len(shape) == 2)
    assert f"{np.median(got.location):.5g}" in str(got)
    assert str(got).startswith("Box-Cox transform of 0.5 + G")


def test_equal_values_have_measures_for_a_given_power():
    got = estimate.box_cox(np.full(5, 0.5), lam=0.0)
    assert (got.measures.std, got.measures.avr) == pytest.approx((0, math.log(1.5)))
    assert got.location == pytest.approx(0.5)


# ecdf


@pytest.mark.parametrize("r", [2, 10, 137])
def test_the_ecdf_is_that_of_scipy(r):
    g = draws(r)
    function, peer = estimate.ecdf(g), scipy.stats.ecdf(g).cdf
    np.testing.assert_array_equal(function.values, peer.quantiles)
    np.testing.assert_allclose(function.probability, peer.probabilities, **EXACT)


def test_the_ecdf_with_ties_ends_at_that_of_scipy():
    g = np.random.default_rng(1).integers(0, 5, size=40).astype(float)
    function, peer = estimate.ecdf(g), scipy.stats.ecdf(g).cdf
    last = np.flatnonzero(np.diff(function.values, append=np.inf))
    np.testing.assert_array_equal(function.values[last], peer.quantiles)
    np.testing.assert_allclose(function.probability[last], peer.probabilities, **EXACT)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("r", [2, 10, 1000])
def test_the_band_is_that_of_statsmodels(r, level):
    function = estimate.ecdf(draws(r), level=level)
    for got, want in zip(function.band, _conf_set(function.probability, alpha=1 - level), strict=True):
        np.testing.assert_allclose(got, want, **EXACT)
    assert function.level == level


def test_several_data_sets_are_sorted_each():
    g = draws(3, 50)
    function = estimate.ecdf(g)
    np.testing.assert_array_equal(function.values, [sorted(row) for row in g])
    assert function.half_width == estimate.ecdf(g[0]).half_width
    for p in (0.0, 0.3, 1.0):
        np.testing.assert_array_equal(function.quantile(p), [estimate.ecdf(row).quantile(p) for row in g])
        for got, want in zip(
            function.quantile_interval(p),
            zip(*(estimate.ecdf(row).quantile_interval(p) for row in g), strict=True),
            strict=True,
        ):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("r", [10, 100, 137])
def test_quantiles_are_those_of_numpy(r):
    """At shares drawn at random, none a multiple of 1/R, where NumPy may be one value off by a rounding."""
    g = draws(2, r)
    for p in np.random.default_rng(2).random(50).tolist():
        np.testing.assert_array_equal(estimate.ecdf(g).quantile(p), np.quantile(g, p, axis=-1, method="inverted_cdf"))


HALVES = {0.0: 1, 1e-9: 1, 0.25: 1, 0.25 + 1e-9: 2, 0.5: 2, 0.5 + 1e-9: 3, 0.75: 3, 0.75 + 1e-9: 4, 1.0: 4}


@pytest.mark.parametrize(("p", "value"), HALVES.items())
def test_quantiles_by_hand(p, value):
    assert estimate.ecdf(np.array([4.0, 2.0, 1.0, 3.0])).quantile(p) == value
    assert estimate.ecdf(np.array([[4.0, 2.0, 1.0, 3.0], [40.0, 20.0, 10.0, 30.0]])).quantile(p).tolist() == [
        value,
        10 * value,
    ]


@pytest.mark.parametrize("r", [10, 25, 50, 100, 1000])
def test_a_share_of_exactly_k_values_gives_the_kth(r):
    """Also where R times k/R rounds up, as 100 * 0.07 = 7.000000000000001 does."""
    function = estimate.ecdf(np.arange(1.0, r + 1))
    assert [float(function.quantile(k / r)) for k in range(1, r + 1)] == list(range(1, r + 1))


def test_the_interval_of_a_quantile_is_where_the_band_reaches_the_share():
    function = estimate.ecdf(np.arange(1.0, 101), level=0.95)
    assert function.half_width == pytest.approx(0.1358, abs=1e-4)  # sqrt(log(40) / 200)
    assert function.quantile_interval(0.5) == (37, 64)  # 0.3642 and 0.6358
    assert function.quantile_interval(0.1) == (-math.inf, 24)
    assert function.quantile_interval(0.9) == (77, math.inf)
    few = estimate.ecdf(np.arange(1.0, 6), level=0.95)
    assert few.quantile_interval(0.5) == (-math.inf, math.inf)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_band_covers_the_whole_function_as_often_as_it_should(level):
    """5000 samples of 50 uniform values against the exact law of Kolmogorov's statistic, within the limits that a
    right band leaves once in a million.

    The inequality promises at least `level`; the exact coverage is a little more.
    """
    samples, r = 5000, 50
    function = estimate.ecdf(np.random.default_rng(3).random((samples, r)), level=level)
    lower, upper = function.band
    just_before = np.concatenate([[function.half_width], upper[:-1]])
    covered = ((function.values >= lower) & (function.values <= just_before)).all(-1)
    exact = scipy.stats.kstwo.cdf(function.half_width, r)
    assert level < exact < level + 0.03
    low, high = scipy.stats.binom.interval(1 - 1e-6, samples, exact)
    assert low <= covered.sum() <= high
    for p in (0.25, 0.5):
        low, high = function.quantile_interval(p)
        inside = ((low <= p) & (p <= high)).sum()
        assert inside >= scipy.stats.binom.ppf(1e-6, samples, level)


# What results are as values


def test_results_are_compared_as_objects():
    """An `==` of arrays has no truth, so results are equal to themselves only, as data, plans and losses are."""
    first, again = estimate.ecdf(G), estimate.ecdf(G)
    assert first == first
    assert first != again
    assert len({first, again}) == 2
    assert first in [again, first]
    with pytest.raises(TypeError):
        list(first)
    np.testing.assert_array_equal(first.values, again.values)


@pytest.mark.parametrize(
    "module", [estimate, interval, compare, metrics, metrics.roc, result], ids=lambda m: m.__name__
)
def test_no_result_compares_arrays(module):
    classes = [value for value in vars(module).values() if dataclasses.is_dataclass(value)]
    assert classes or module is interval
    assert [kind for kind in classes if kind.__eq__ is not object.__eq__ or kind.__hash__ is not object.__hash__] == []


# Bad input: call, and what the message says

G = draws(10)
BAD = {
    "one resampling": (
        lambda: estimate.summary(G[:1]),
        "at least 2 resamplings to describe a distribution, got 1; ask for more",
    ),
    "one resampling of each set": (
        lambda: estimate.summary(G[:, None]),
        "at least 2 resamplings to describe a distribution, got 1",
    ),
    "a single number": (
        lambda: estimate.summary(G[0]),
        "at least 2 resamplings to describe a distribution, got a single number",
    ),
    "one resampling for the ecdf": (
        lambda: estimate.ecdf(G[:1]),
        "at least 2 resamplings to describe a distribution, got 1",
    ),
    "one resampling to trim": (
        lambda: estimate.trimmed_average(G[:1]),
        "at least 2 resamplings to describe a distribution, got 1",
    ),
    "one resampling in losses": (
        lambda: estimate.summary(losses([1.0])),
        "at least 2 resamplings to describe a distribution, got 1",
    ),
    "NaN": (lambda: estimate.summary(np.append(G, np.nan)), "finite values, got 1 that are not, of 11; leave them out"),
    "infinite": (lambda: estimate.ecdf(np.append(G, [np.inf, -np.inf])), "finite values, got 2 that are not, of 12"),
    "NaN to trim": (lambda: estimate.trimmed_average(np.append(G, np.nan)), "finite values, got 1 that are not"),
    "failed rows": (
        lambda: estimate.summary(losses(G, failed=[2, 5])),
        r"got 2 failed of 10 for Mean\(\) on .*\(row 2: it did not converge; row 5: .*call losses.without_failed\(\)",
    ),
    "failed rows for the ecdf": (lambda: estimate.ecdf(losses(G, failed=[2])), "got 1 failed of 10"),
    "failed rows to trim": (lambda: estimate.trimmed_average(losses(G, failed=[2])), "got 1 failed of 10"),
    "level 0": (
        lambda: estimate.ecdf(G, level=0.0),
        "level to be a number above 0 and below 1, got 0.0; give 0.95 for 95 %",
    ),
    "level 1": (lambda: estimate.ecdf(G, level=1.0), "level to be a number above 0 and below 1, got 1.0"),
    "level as a percentage": (
        lambda: estimate.ecdf(G, level=95.0),
        "level to be a number above 0 and below 1, got 95.0",
    ),
    "level NaN": (lambda: estimate.ecdf(G, level=math.nan), "level to be a number above 0 and below 1, got nan"),
    "quantile below 0": (
        lambda: estimate.ecdf(G).quantile(-0.1),
        "p to be a number of at least 0 and of at most 1, got -0.1; give 0.95 for the 95 % quantile",
    ),
    "quantile as a percentage": (
        lambda: estimate.ecdf(G).quantile(95.0),
        "p to be a number of at least 0 and of at most 1, got 95.0",
    ),
    "quantile NaN": (
        lambda: estimate.ecdf(G).quantile(math.nan),
        "p to be a number of at least 0 and of at most 1, got nan",
    ),
    "interval of a quantile above 1": (
        lambda: estimate.ecdf(G).quantile_interval(1.1),
        "p to be a number of at least 0 and of at most 1, got 1.1",
    ),
    "interval of a quantile below 0": (
        lambda: estimate.ecdf(G).quantile_interval(-0.1),
        "p to be a number of at least 0 and of at most 1, got -0.1",
    ),
    "failed rows to transform": (lambda: estimate.box_cox(losses(G, failed=[2])), "got 1 failed of 10"),
    "one resampling to transform": (
        lambda: estimate.box_cox(G[:1]),
        "at least 2 resamplings to describe a distribution, got 1",
    ),
    "zero to transform": (
        lambda: estimate.box_cox(np.append(G, 0.0), shift=0.0),
        "values above 0 for a Box-Cox transform with shift 0, got 0; give a larger shift",
    ),
    "negative to transform": (
        lambda: estimate.box_cox(np.append(G, -1.5)),
        "values above -1 for a Box-Cox transform with shift 1, got -1.5",
    ),
    "equal values to transform": (
        lambda: estimate.box_cox(np.stack([G, np.ones(10)])),
        "values that differ to estimate the power of a Box-Cox transform, got 10 equal",
    ),
    "cut of all": (
        lambda: estimate.trimmed_average(G, cut=0.5),
        "cut to be a number of at least 0 and below 0.5, got 0.5",
    ),
    "negative cut": (
        lambda: estimate.trimmed_average(G, cut=-0.1),
        "cut to be a number of at least 0 and below 0.5, got -0.1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()
