"""The final prediction error: by hand, and unbiased where theory says so."""

import math

import jax
import numpy as np
import pytest

from jaxgen import algebraic, assess, learn, loss, resample, simulate
from jaxgen.types import Losses

pytestmark = pytest.mark.one_device


def full_fit(apparent, n=20, plan=None, loss="squared", failed=False):
    """Losses of full fits with these apparent errors [*Q]."""
    g = np.asarray(apparent, np.float64)[..., None]
    return Losses(g, g, plan or resample.full(n), "LeastSquares()", loss, np.full(g.shape, failed, np.uint8), ("it did not converge",))


# apparent error, cases, parameters: FPE, and by s2 = N S / (N - p) the estimate of the average of log(1 + G)
BY_HAND = [
    (1.0, 20, 10, 3.0, math.log(3) + 1 / 3),  # s2 = 2; 2 * 10 / (3 * 20)
    (0.5, 10, 5, 1.5, math.log(2) + 1 / 4),  # s2 = 1; 1 * 5 / (2 * 10)
    (2.4, 50, 2, 2.6, math.log(3.5) + 2.5 / 3.5 / 25),  # s2 = 2.5
    (0.0, 20, 10, 0.0, 0.0),
    (1.0, 20, 1, 21 / 19, math.log(39 / 19) + (20 / 39) / 20),  # s2 = 20/19
    (1.0, 20, 19, 39.0, math.log(21) + (20 / 21) * 0.95),  # s2 = 20
]


@pytest.mark.parametrize(("apparent", "n", "parameters", "plain", "log1p"), BY_HAND)
def test_fpe_by_hand(apparent, n, parameters, plain, log1p):
    assert algebraic.fpe(full_fit(apparent, n), parameters) == pytest.approx(plain, rel=1e-14)
    assert algebraic.fpe(full_fit(apparent, n), parameters, "log1p") == pytest.approx(log1p, rel=1e-14)


@pytest.mark.parametrize("transform", ["none", "log1p"])
def test_fpe_of_several_data_sets_is_that_of_each(transform):
    apparent = [0.5, 1.0, 2.0]
    together = algebraic.fpe(full_fit(apparent), 3, transform)
    assert together.shape == (3,)
    assert together.tolist() == [float(algebraic.fpe(full_fit(s), 3, transform)) for s in apparent]


def test_fpe_is_unbiased_for_new_targets_at_the_same_inputs():
    """A true linear model has E[FPE] = noise (1 + p/N) whatever its inputs; 2000 data sets, 5 Monte Carlo standard errors."""
    system = simulate.linear_ar(jax.random.key(0), 2000, 20, 3, rho=0.0, noise=2.0)
    estimates = algebraic.fpe(assess(jax.random.key(1), learn.LeastSquares(intercept=False), system.data, resample.full(20)), 3)
    error = estimates.std(ddof=1) / math.sqrt(2000)
    assert estimates.mean() == pytest.approx(2.0 * (1 + 3 / 20), abs=5 * error)
    # what it corrects: the apparent error alone is noise (1 - p/N), which is 26 % too low and far outside these limits
    assert abs(estimates.mean() * 17 / 23 - 2.3) > 20 * error


BAD = {
    "resampled losses": (lambda: algebraic.fpe(full_fit(1.0, plan=resample.from_weights(np.eye(20)[:1], 1 - np.eye(20)[:1])), 3), r"one fit to all cases, got given weights; assess with resample.full\(20\)"),
    "several rows": (lambda: algebraic.fpe(full_fit(1.0, plan=resample.leave_one_out(20)), 3), "one fit to all cases, got resample.leave_one_out"),
    "counted twice": (lambda: algebraic.fpe(full_fit(1.0, plan=resample.from_weights(2 * np.ones((1, 20)), np.ones((1, 20)))), 3), "one fit to all cases, got given weights"),
    "tested on some": (lambda: algebraic.fpe(full_fit(1.0, plan=resample.from_weights(np.ones((1, 20)), np.eye(20)[:1])), 3), "one fit to all cases, got given weights"),
    "absolute loss": (lambda: algebraic.fpe(full_fit(1.0, loss=loss.absolute.__name__), 3), "squared loss, got absolute; FPE is derived for squared loss only"),
    "no parameters": (lambda: algebraic.fpe(full_fit(1.0), 0), "between 1 and 19 parameters for 20 cases, got 0; FPE needs fewer parameters than cases"),
    "as many parameters as cases": (lambda: algebraic.fpe(full_fit(1.0), 20), "between 1 and 19 parameters for 20 cases, got 20"),
    "unknown transform": (lambda: algebraic.fpe(full_fit(1.0), 3, "log"), "transform='none' or 'log1p', got 'log'; choose one of them"),
    "failed fit": (lambda: algebraic.fpe(full_fit(1.0, failed=True), 3), r"1 failed of 1 for LeastSquares\(\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()
