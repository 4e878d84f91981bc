"""Differences that are small enough not to matter, and two learners over several data sets."""

import jax
import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.weightstats import ttost_paired

from jaxgen import Losses, resample
from jaxgen.stats import compare

RANDOM = np.random.default_rng(0)
APART = resample.task_instances(80, 5, instances=8, test_cases=40)


def losses(means, plan=APART, learner="a"):
    means = np.asarray(means, float)
    return Losses(means, means, plan, learner, "squared", np.zeros(means.shape, np.uint8))


@pytest.mark.parametrize("shift", [-2.0, -0.3, 0.0, 0.4])
@pytest.mark.parametrize("margin", [0.5, 1.5])
def test_equivalence_is_that_of_statsmodels(shift, margin):
    one, other = RANDOM.normal(size=(2, 8))
    test = compare.paired_t(losses(one), losses(other + shift, learner="b"))
    got = compare.equivalence(test, margin=margin)
    p, (low_t, low_p, _), (high_t, high_p, _) = ttost_paired(other + shift, one, -margin, margin)
    assert got.p_value == pytest.approx(p, rel=1e-10)
    assert got.statistic == pytest.approx(low_t if low_p > high_p else high_t, rel=1e-10)
    inside = -margin < got.lower and got.upper < margin
    assert bool(inside) is bool(p < 0.05)
    assert got.level == pytest.approx(0.9)
    assert f"|difference| < {margin:g}" in str(got)


@pytest.mark.parametrize("shift", [-1.0, 0.4])
def test_non_inferiority_is_a_t_test_about_the_margin(shift):
    one, other = RANDOM.normal(size=(2, 8))
    test = compare.paired_t(losses(one), losses(other + shift, learner="b"))
    got = compare.non_inferiority(test, margin=0.5)
    want = scipy.stats.ttest_1samp(other + shift - one, 0.5, alternative="less")
    assert got.p_value == pytest.approx(want.pvalue, rel=1e-10)
    assert got.upper == pytest.approx(want.confidence_interval(0.95).high, rel=1e-10)
    assert got.lower == -np.inf


def test_what_has_no_margin_is_refused(own_messages):
    test = compare.paired_t(losses(RANDOM.normal(size=8)), losses(RANDOM.normal(size=8), learner="b"))
    for margin in (0, -1.0, np.nan, None, "small"):
        with pytest.raises((TypeError, ValueError), match="expected margin"):
            compare.equivalence(test, margin=margin)
    with pytest.raises(TypeError, match="expected a comparison"):
        compare.non_inferiority(0.03, margin=1.0)
    halves = resample.five_by_two(jax.random.key(0), 20)
    pair = [losses(RANDOM.normal(size=10), halves, name) for name in "ab"]
    with pytest.raises(ValueError, match="expected a test with a standard error and a law, got combined 5x2"):
        compare.equivalence(compare.five_by_two_f(*pair), margin=1.0)


def test_wilcoxon_is_that_of_hollander_and_wolfe():
    """Depression scores of nine patients at two visits, the example of R's wilcox.test: V = 40, p = 0.01953."""
    first = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    second = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    plan = resample.leave_out(jax.random.key(0), 20, 0.2, 3, sets=9)
    of = [losses(np.repeat(np.asarray(x)[:, None], 3, 1), plan, name) for x, name in ((second, "a"), (first, "b"))]
    got = compare.wilcoxon(*of, alternative="greater")
    assert (got.statistic, round(float(got.p_value), 5)) == (40, 0.01953)
    assert compare.wilcoxon(of[0], of[0]).p_value == 1
    assert got.estimate == pytest.approx(np.median(np.subtract(first, second)))
    with pytest.raises(ValueError, match="expected losses of several data sets, .* got those of 1; give data with"):
        compare.wilcoxon(losses(first[:8]), losses(second[:8]))
