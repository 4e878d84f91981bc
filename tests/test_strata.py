"""Stratified splits: what they keep of their classes, and what that does to standard errors."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scripts import quick
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

from jaxgen import Losses, resample
from jaxgen.stats import compare, interval, metrics
from jaxgen.types.plan import found_strata

N, KEY = 120, jax.random.key(0)
CLASSES = np.repeat([0, 1, 2], (60, 40, 20))
ORDER = np.random.default_rng(0).permutation(N)
LABEL = CLASSES[ORDER]
PLANS = {
    "leave-out": resample.leave_out(KEY, N, 0.1, 40, strata=LABEL),
    "folds": resample.k_fold(KEY, N, 10, repeats=4, strata=LABEL),
}


DESIGNS = {
    "halves": resample.paired_halves(KEY, N, 4, 3, 6, strata=LABEL),
    "nested folds": resample.nested_pairs(KEY, N, 5, 2, strata=LABEL),
    "five times two halves": resample.five_by_two(KEY, N, strata=LABEL),
}
OF_CLASS = np.array([1.0, 3.0, 7.0])


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


@pytest.mark.parametrize(
    ("design", "method", "test", "cases"),
    [
        ("halves", interval.conservative_z, compare.conservative_z, N / 2),
        ("five times two halves", interval.five_by_two, compare.five_by_two_t, N),
    ],
)
def test_shares_of_classes_are_in_the_standard_error_of_designs(design, method, test, cases):
    """As above; the conservative Z has the variance of half of the cases."""
    plan, share = DESIGNS[design], np.bincount(LABEL) / N
    want = np.sqrt(share @ (OF_CLASS - share @ OF_CLASS) ** 2 / cases)
    losses, twice = losses_on(plan, OF_CLASS[LABEL]), losses_on(plan, 2 * OF_CLASS[LABEL])
    for found in (method(losses), test(losses, twice)):
        np.testing.assert_allclose(found.standard_error, want, rtol=1e-7)  # what the rows show is rounding
        assert "what shares of classes add" in found.note
    np.testing.assert_allclose(method(losses).estimate, share @ OF_CLASS, rtol=1e-12)


def test_the_f_of_five_times_two_halves_knows_the_shares_of_classes():
    """All ten differences are the same d, so that F = 10 d^2 / (2 * 5 * variance of the shares)."""
    share = np.bincount(LABEL) / N
    d = share @ OF_CLASS
    plan = DESIGNS["five times two halves"]
    found = compare.five_by_two_f(losses_on(plan, OF_CLASS[LABEL]), losses_on(plan, 2 * OF_CLASS[LABEL]))
    np.testing.assert_allclose(found.statistic, d**2 / (share @ (OF_CLASS - d) ** 2 / N), rtol=1e-7)
    assert "what shares of classes add" in found.note


def test_nested_cross_validation_knows_the_shares_of_classes():
    """In folds of 24 cases with equal shares every mean is the same. The variance in a fold is B 24 / 23, with B that
    of the loss of a case; what the shares add to the mean of a fold and to that of the other 96 cases is B / 24 + B /
    96.
    """
    share = np.bincount(LABEL) / N
    b = share @ (OF_CLASS - share @ OF_CLASS) ** 2
    losses = losses_on(DESIGNS["nested folds"], OF_CLASS[LABEL])
    found = interval.nested_cross_validation(losses)
    np.testing.assert_allclose(found.parts["mse"], b * (-1 / 23 + 1 / 24 + 1 / 96), rtol=1e-7)
    np.testing.assert_allclose(found.standard_error, np.sqrt(b / N), rtol=0.01)  # s has another divisor
    other = compare.nested_cross_validation(losses, losses_on(DESIGNS["nested folds"], 2 * OF_CLASS[LABEL]))
    np.testing.assert_allclose(other.parts["mse"], found.parts["mse"], rtol=1e-7)


@pytest.mark.parametrize(
    ("draw", "method", "lowest"),
    [
        (lambda key, label: resample.paired_halves(key, 60, 10, 2, strata=label), interval.conservative_z, 0.93),
        (lambda key, label: resample.nested_pairs(key, 60, 5, 2, strata=label), interval.nested_cross_validation, 0.9),
        (lambda key, label: resample.five_by_two(key, 60, strata=label), interval.five_by_two, 0.9),
        (lambda key, label: resample.k_fold(key, 60, 10, strata=label), interval.cross_validation, 0.9),
        (
            lambda key, label: resample.leave_out(key, 60, 0.1, 200, strata=label),
            interval.jackknife_after_leave_out,
            0.9,
        ),
    ],
    ids=["conservative Z", "nested", "5 x 2", "CV-CLT", "jackknife"],
)
@pytest.mark.slow
def test_coverage_of_every_method_on_stratified_splits(draw, method, lowest):
    """As below, over 200 data sets: the binomial standard error of .95 is 1.5 points."""
    random, covered = np.random.default_rng(4), []
    for number in range(200):
        label = random.choice(2, size=60, p=[0.8, 0.2])
        plan = draw(jax.random.key(number), label)
        found = method(losses_on(plan, 5.0 * label + np.abs(0.3 * random.normal(size=60))))
        covered.append(found.lower < 1.0 + 0.3 * np.sqrt(2 / np.pi) < found.upper)
    assert np.mean(covered) > lowest


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


def test_repeated_rows_keep_what_the_shares_of_classes_add():
    """Rows that stand twice count once, and the losses of their cases are still known."""
    plan = PLANS["folds"]
    twice = resample.from_weights(np.tile(plan.train, (2, 1)), np.tile(plan.test, (2, 1)))
    losses = losses_on(replace(twice, cases=plan.cases), OF_CLASS[LABEL])
    want = interval.corrected_t(losses_on(plan, OF_CLASS[LABEL])).standard_error
    np.testing.assert_allclose(interval.corrected_t(losses).standard_error, want, rtol=1e-7)


SCORES = 1 / (1 + np.exp(-np.random.default_rng(6).normal(size=N) - 1.5 * (LABEL == 0)))
Y = np.stack([LABEL != 0, LABEL == 0], axis=-1).astype(float)


def predictions_on(plan, loss="zero_one", score=SCORES):
    given = np.broadcast_to(np.stack([1 - score, score], axis=-1), (plan.resamples, N, 2))
    losses = Losses.from_predictions(Y, given, plan.train, plan.test, loss)
    return replace(losses, plan=plan)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_shares_of_classes_are_in_the_standard_error_of_an_accuracy(plan):
    """The accuracy is 1 - error rate, whose losses of cases say what the shares add."""
    losses = predictions_on(plan)
    rows = metrics.of_rows(losses, Y, metrics.accuracy)
    found, want = interval.corrected_t(rows), interval.corrected_t(losses)
    np.testing.assert_allclose(found.standard_error, want.standard_error, rtol=1e-3)  # a difference of finite weights
    assert found.note == want.note
    assert "what shares of classes add" in found.note
    other = predictions_on(plan, score=SCORES**2)
    pair = rows, metrics.of_rows(other, Y, metrics.accuracy)
    want = compare.corrected_t(losses, other).standard_error
    np.testing.assert_allclose(compare.corrected_t(*pair).standard_error, want, rtol=1e-3)


def test_what_the_share_of_a_class_does_to_f():
    """F = 2 tp / (true + decided), of which tp and true grow with the weight w of the class, and the decided by tp: its
    derivative by log w is F fp / (true + decided), and that by the weight of the others its negative.
    """
    plan = PLANS["folds"]
    rows = metrics.of_rows(predictions_on(plan), Y, metrics.f_beta)
    hit, own = SCORES > 0.5, LABEL == 0
    tp, fp, true = (plan.test.astype(float) @ each for each in (hit & own, hit & ~own, own))
    slope = 2 * tp / (true + tp + fp) * fp / (true + tp + fp)
    np.testing.assert_allclose(rows.of_strata[:, 0] * np.mean(own), slope, rtol=3e-3, atol=1e-12)
    others = rows.of_strata[:, 1:] @ np.bincount(LABEL)[1:] / N
    np.testing.assert_allclose(others, -slope, rtol=3e-3, atol=1e-12)


@pytest.mark.parametrize("statistic", [metrics.roc.auc, metrics.balanced_accuracy])
def test_statistics_of_equal_classes_need_nothing_of_their_shares(statistic):
    """Each class is averaged by itself. The strata are the two classes, and not three as above."""
    plan = resample.leave_out(KEY, N, 0.1, 40, strata=LABEL == 0)
    rows = metrics.of_rows(predictions_on(plan), Y, statistic)
    np.testing.assert_allclose(rows.of_strata, 0, atol=1e-10)
    found = interval.corrected_t(rows)
    np.testing.assert_allclose(found.standard_error, rows.g.std(ddof=1) * np.sqrt(1 / 40 + 12 / 108), rtol=1e-12)
    assert "stratified" not in found.note


def test_an_area_of_finer_strata_knows_their_shares():
    """The strata are parts of a class with scores of their own, which the area under the ROC curve tells apart."""
    rows = metrics.of_rows(predictions_on(PLANS["folds"]), Y, metrics.roc.auc)
    assert np.abs(rows.of_strata.mean(0)[0]) < 1e-6  # that of the class as a whole matters no more than above
    assert np.abs(rows.of_strata.mean(0)[1:]).min() > 1e-3


def test_a_statistic_of_rows_keeps_its_strata_where_rows_are_left_out():
    rows = metrics.of_rows(predictions_on(PLANS["folds"]), Y, metrics.f_beta)
    failed = replace(rows, failure=np.r_[np.ones(3, np.uint8), rows.failure[3:]], reasons=("no",))
    assert failed.without_failed().of_strata.shape == (37, 3)


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
    said = quick("calibration_strata.py")
    assert "stratified, S^2 alone" in said
    assert said.count("conservative Z") == 8  # two losses, of a learner and a difference, printed twice


@pytest.mark.slow
def test_the_script_of_the_metrics_runs():
    assert quick("calibration_metrics.py").count("balanced accuracy  ") == 4  # rows as they are found, and a page
