"""The best fraction to leave out, and mean squared errors of an estimator: against the paper's expression, exact laws,
SciPy and scikit-learn.
"""

import re

import jax
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from given import made, masks, regression
from sklearn.metrics import mean_squared_error

from jaxgen import resample
from jaxgen.stats import estimate

EXACT = {"rtol": 1e-10, "atol": 1e-12}
"""The same sums in another order, and differences of them."""


def example(fraction=0.4, n=20, resamples=300, sets=None, seed=0):
    """Gamma losses of every row and case on random splits."""
    random = np.random.default_rng(seed)
    lead = () if sets is None else (sets,)
    return made(
        (1 + fraction) * random.gamma(2.0, 1.0, (*lead, resamples, n)),
        resample.leave_out(jax.random.key(seed), n, fraction, resamples),
    )


# the best fraction to leave out


@pytest.mark.parametrize(
    ("n", "asymptotic", "finite", "exact"),
    [
        (50, 0.368, 0.652, 0.440),
        (100, 0.553, 0.710, 0.580),
        (200, 0.684, 0.768, 0.700),
        (1000, 0.859, 0.877, 0.862),
        (10_000, 0.955, 0.957, 0.956),
    ],
)
def test_optimal_fraction_is_that_of_the_benchmark(n, asymptotic, finite, exact):
    """benchmarks/results/larsen1995.txt, p = 10, to the digits there."""
    got = [estimate.optimal_fraction(n, 10, form=form) for form in ("asymptotic", "finite", "exact")]
    np.testing.assert_allclose(got, [asymptotic, finite, exact], atol=5.1e-4)


@pytest.mark.parametrize("kurtosis", [1.8, 3.0, 6.0])
def test_finite_form_is_the_minimum(kurtosis):
    found = scipy.optimize.minimize_scalar(
        lambda m: ((kurtosis - 1) + 4 * 5 / m) / (300 - m), bounds=(1, 299), method="bounded", options={"xatol": 1e-9}
    )
    assert estimate.optimal_fraction(300, 5, kurtosis=kurtosis, form="finite") == pytest.approx(
        1 - found.x / 300, abs=1e-6
    )
    assert estimate.optimal_fraction(10**8, 5, kurtosis=kurtosis, form="finite") == pytest.approx(
        estimate.optimal_fraction(10**8, 5, kurtosis=kurtosis), abs=1e-6
    )


@pytest.mark.parametrize(("n", "p"), [(50, 10), (100, 10), (300, 5)])
def test_exact_form_is_the_minimum_by_the_f_law_of_scipy(n, p):
    """G = 1 + p / (m - p + 1) F(p, m - p + 1) after m training cases, and the mean squared error is 2 E[G^2] / (n -
    m).
    """
    sizes = np.arange(p + 4, n)
    errors = [scipy.stats.f(p, m - p + 1, 1, p / (m - p + 1)).moment(2) / (n - m) for m in sizes]
    assert estimate.optimal_fraction(n, p, form="exact") == 1 - sizes[np.argmin(errors)] / n


@pytest.mark.parametrize("sets", [None, 3])
def test_empirical_fraction_is_the_formula(sets):
    losses = [example(f, seed=seed, sets=sets) for seed, f in enumerate((0.5, 0.2, 0.8))]
    got = estimate.empirical_fraction(losses)
    assert got.fractions.tolist() == [0.2, 0.5, 0.8]
    for place, one in enumerate([losses[1], losses[0], losses[2]]):
        size = one.plan.test_sizes[0]
        rows = np.stack([one.values[..., r, one.test[r] > 0].var(-1, ddof=1) / size for r in range(300)], -1)
        np.testing.assert_allclose(got.mean_square_error[..., place], rows.mean(-1), **EXACT)
        np.testing.assert_allclose(got.monte_carlo_error[..., place], scipy.stats.sem(rows, axis=-1), **EXACT)
    np.testing.assert_array_equal(got.best, got.fractions[np.argmin(got.mean_square_error, -1)])
    assert len(got.to_frame()) == 3 * (sets or 1)
    assert "best fraction to leave out" in str(got)


def test_empirical_fraction_estimates_the_exact_error():
    """Least squares of independent Gaussians: E[2 G^2] / Nc by the F law (Larsen & Hansen 1995, eq. 6), N = 60, p =
    5.
    """
    random = np.random.default_rng(3)
    n, p, fractions, found = 60, 5, (0.3, 0.6, 0.8), []
    for _ in range(150):
        x, y = random.normal(size=(n, p)), random.normal(size=n)
        drawn = [masks(random, n, f, 30) for f in fractions]
        found.append(
            estimate.empirical_fraction([regression(x, y, train, 1 - train) for train in drawn]).mean_square_error
        )
    m = n - np.ceil(n * np.array(fractions))
    mean, square = p / (m - p - 1), p * (p + 2) / ((m - p - 1) * (m - p - 3))
    want = 2 * (1 + 2 * mean + square) / (n - m)
    assert np.all(np.abs(np.mean(found, 0) - want) < 5 * scipy.stats.sem(found))
    assert (
        abs(estimate.optimal_fraction(n, p, form="exact") - 0.6) < 0.1
    )  # of the three the middle one is best, as is found
    assert np.argmin(np.mean(found, 0)) == 1


# accuracy over data sets


def test_errors_of_an_estimator_decompose():
    """Varfis & Corleto 1994, eqs. 13 and 14."""
    random = np.random.default_rng(4)
    truths = random.normal(2.0, 1.0, 20)
    estimates = truths + random.normal(0.3, 0.5, 20)
    ace, umse = estimate.average_conditional_error(estimates, truths), estimate.unconditional_error(estimates, truths)
    np.testing.assert_allclose(ace.estimate, mean_squared_error(truths, estimates), **EXACT)
    np.testing.assert_allclose(umse.estimate, mean_squared_error(np.full(20, truths.mean()), estimates), **EXACT)
    np.testing.assert_allclose(
        [ace.standard_error, umse.standard_error],
        [scipy.stats.sem((estimates - t) ** 2) for t in (truths, truths.mean())],
        **EXACT,
    )
    np.testing.assert_allclose(
        [ace.parts["variance"], umse.parts["variance"]], [np.var(estimates - truths), np.var(estimates)], **EXACT
    )
    for got in (ace, umse):
        np.testing.assert_allclose(got.parts["squared_bias"] + got.parts["variance"], got.estimate, **EXACT)
        np.testing.assert_allclose(got.parts["bias"], estimates.mean() - truths.mean(), **EXACT)
        np.testing.assert_allclose(got.parts["bias_error"], scipy.stats.sem(estimates - truths), **EXACT)
        assert len(got.to_frame()) == 1


def test_other_truths_are_independent():
    random = np.random.default_rng(5)
    estimates, truths = random.normal(size=20), random.normal(size=200)
    got = estimate.unconditional_error(estimates, truths)
    welch = scipy.stats.ttest_ind(estimates, truths, equal_var=False)
    np.testing.assert_allclose(got.parts["bias"] / got.parts["bias_error"], welch.statistic, **EXACT)


def test_a_perfect_estimator_has_no_error():
    truths = np.array([1.0, 2.0, 3.0])
    got = estimate.average_conditional_error(truths, truths)
    assert [float(v) for v in (got.estimate, got.standard_error, *got.parts.values())] == [0.0] * 6


# bad input


BAD = {
    "few cases": (
        lambda: estimate.optimal_fraction(15, 10),
        "expected more cases than the best training set has, got n=15 for p=10",
    ),
    "few for the F law": (
        lambda: estimate.optimal_fraction(14, 10, form="exact"),
        "expected more cases than the best training set has, got n=14",
    ),
    "kurtosis": (
        lambda: estimate.optimal_fraction(100, 10, kurtosis=1.0),
        "kurtosis to be a finite number above 1, got 1.0",
    ),
    "exact kurtosis": (
        lambda: estimate.optimal_fraction(100, 10, kurtosis=4.0, form="exact"),
        'kurtosis 3, for the form "exact", got 4.0',
    ),
    "form": (
        lambda: estimate.optimal_fraction(100, 10, form="best"),
        "form to be one of 'asymptotic', 'finite', 'exact', got 'best'",
    ),
    "one test case": (
        lambda: estimate.empirical_fraction([example(), example(0.05, resamples=10)]),
        "expected 2 or more test cases in each row, got 1 in some of resample.leave_out(",
    ),
    "ace shapes": (
        lambda: estimate.average_conditional_error(np.ones(3), np.ones(4)),
        "expected estimates [Q] and truths [Q] of 2 or more data sets, got [3] and [4]",
    ),
    "umse one": (
        lambda: estimate.unconditional_error(np.ones(1), np.ones(4)),
        "expected estimates [Q] and truths [P] of 2 or more data sets, got [1] and [4]",
    ),
    "ace NaN": (
        lambda: estimate.average_conditional_error(np.ones(3), np.array([1.0, np.nan, 1.0])),
        "expected finite numbers, got 1 that are not",
    ),
}


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_in_a_sentence(name):
    call, message = BAD[name]
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        call()
    assert "\n" not in str(error.value)
