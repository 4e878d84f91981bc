"""Stratified splits: what they keep of their classes, and what that does to standard errors."""

import jax
import numpy as np
import pytest
from scripts import quick
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

from jaxgen import Losses, resample
from jaxgen.stats import compare, interval
from jaxgen.types.plan import found_strata

N, KEY = 120, jax.random.key(0)
CLASSES = np.repeat([0, 1, 2], (60, 40, 20))
ORDER = np.random.default_rng(0).permutation(N)
LABEL = CLASSES[ORDER]
PLANS = {
    "leave-out": resample.leave_out(KEY, N, 0.1, 40, strata=LABEL),
    "folds": resample.k_fold(KEY, N, 10, repeats=4, strata=LABEL),
}


def losses_on(plan, of_case):
    """Losses that do not depend on the training set."""
    values = np.broadcast_to(of_case, plan.test.shape).astype(np.float64)
    g = (plan.test * values).sum(-1) / plan.test.sum(-1)
    none = np.zeros(plan.resamples, np.uint8)
    return Losses(g, g, plan, "a", "squared", none, values=values)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_shares_of_classes_are_in_the_standard_error(plan):
    """Of a loss that depends on the class only, the mean is that of multinomial shares, whose variance is known."""
    of_class = np.array([1.0, 3.0, 7.0])
    share = np.bincount(LABEL) / N
    mean = share @ of_class
    found = interval.corrected_t(losses_on(plan, of_class[LABEL]))
    want = np.sqrt(share @ (of_class - mean) ** 2 / N)
    np.testing.assert_allclose(found.estimate, mean, rtol=1e-12)  # equal shares in every row
    np.testing.assert_allclose(found.standard_error, want, rtol=1e-7)  # S^2 is rounding
    assert "stratified" in found.note
    other = compare.corrected_t(losses_on(plan, of_class[LABEL]), losses_on(plan, 2 * of_class[LABEL]))
    np.testing.assert_allclose(other.standard_error, want, rtol=1e-7)


def test_coverage_is_that_of_splits_that_are_not_stratified():
    """Of the mean of losses whose classes differ much, over 300 data sets: 95 % were asked for, and the binomial
    standard error is 1.3 points. Without the shares it was 22 %.
    """
    random, covered = np.random.default_rng(1), []
    for number in range(300):
        label = random.choice(2, size=60, p=[0.8, 0.2])
        plan = resample.leave_out(jax.random.key(number), 60, 0.1, 20, strata=label)
        found = interval.corrected_t(losses_on(plan, 5.0 * label + 0.3 * random.normal(size=60)))
        covered.append(found.lower < 1.0 < found.upper)
    assert 0.91 < np.mean(covered) < 0.99


def test_strata_that_are_too_small_for_equal_shares_add_little():
    """With strata of two cases S^2 holds nearly all of the variance already."""
    random = np.random.default_rng(5).random(N)
    plan = resample.leave_out(KEY, N, 0.1, 200, strata=np.arange(N) // 2)
    g = losses_on(plan, random).g
    alone = g.std(ddof=1) * np.sqrt(1 / 200 + 12 / 108)
    assert alone <= interval.corrected_t(losses_on(plan, random)).standard_error < 1.05 * alone


def test_without_strata_nothing_is_added():
    random = np.random.default_rng(2).random(N)
    plan = resample.leave_out(KEY, N, 0.1, 40)
    g = losses_on(plan, random).g
    found = interval.corrected_t(losses_on(plan, random))
    np.testing.assert_allclose(found.standard_error, g.std(ddof=1) * np.sqrt(1 / 40 + 12 / 108), rtol=1e-12)
    assert "stratified" not in found.note


def test_means_of_rows_alone_say_what_is_missing():
    losses = losses_on(PLANS["folds"], LABEL.astype(float))
    alone = Losses(losses.g, losses.g, losses.plan, "a", "squared", losses.failure)
    assert "not in the standard error" in interval.corrected_t(alone).note


@pytest.mark.parametrize(
    ("splitter", "stratified"),
    [
        (StratifiedKFold(10, shuffle=True, random_state=0), True),
        (StratifiedShuffleSplit(30, test_size=12, random_state=0), True),
        (KFold(10, shuffle=True, random_state=0), False),
        (ShuffleSplit(30, test_size=12, random_state=0), False),
        (KFold(N), False),
    ],
    ids=repr,
)
def test_splitters_are_known_by_what_their_test_sets_hold(splitter, stratified):
    plan = resample.from_splitter(splitter, N, y=LABEL)
    assert ("stratum" in plan.cases) == stratified
    y = np.eye(3)[LABEL]
    given = Losses.from_predictions(y, np.full((plan.resamples, N, 3), 1 / 3), plan.train, plan.test, "squared")
    assert ("stratum" in given.plan.cases) == stratified


def test_chance_is_not_taken_for_strata():
    """Of 400 random plans of ten folds hardly one holds equal shares."""
    random = np.random.default_rng(3)
    tests = (random.permutation(N) % 10 == np.arange(10)[:, None] for _ in range(400))
    assert sum(bool(found_strata(test.astype(np.uint8), LABEL)) for test in tests) <= 1
    assert found_strata(np.eye(N, dtype=np.uint8), LABEL) == {}  # leave-one-out holds no shares
    assert found_strata(PLANS["folds"].test, np.arange(N)) == {}


@pytest.mark.slow
def test_the_script_of_the_coverage_runs():
    assert "stratified, S^2 alone" in quick("calibration_strata.py")
