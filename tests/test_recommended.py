"""Which test `compare.recommend` takes for a plan, that it is that test, and which plans it refuses."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxgen import resample
from jaxgen.stats import compare
from jaxgen.types import Losses

KEY, N = jax.random.key(0), 24


def losses(plan, seed, kind="squared", keep=True):
    random = np.random.default_rng(seed)
    values = (
        random.gamma(2.0, size=plan.train.shape)
        if kind == "squared"
        else random.integers(0, 2, plan.train.shape).astype(float)
    )
    means = (np.sum(weights * values, axis=-1) / weights.sum(-1) for weights in (plan.test, plan.train))
    return Losses(
        *means,
        plan,
        f"learner {seed}",
        kind,
        np.zeros(plan.train.shape[:-1], np.uint8),
        values=values if keep else None,
    )


SUITS = {
    "one split": (resample.leave_out(KEY, N, 0.25, 1), compare.hold_out_t, "there is one split"),
    "random splits": (resample.leave_out(KEY, N, 0.25, 20), compare.corrected_t, "splits share cases"),
    "balanced": (resample.balanced(KEY, N, 0.25, 20), compare.corrected_t, "splits share cases"),
    "folds": (resample.k_fold(KEY, N, 6), compare.corrected_k_fold_t, "folds share training cases"),
    "folds of many cases": (resample.k_fold(KEY, 300, 5), compare.cv_clt, "one division of at least 300 cases"),
    "repeated folds": (resample.k_fold(KEY, N, 6, 3), compare.corrected_k_fold_t, "folds share training cases"),
    "5 x 2": (resample.five_by_two(KEY, N), compare.corrected_k_fold_t, "folds share training cases"),
    "nested pairs": (resample.nested_pairs(KEY, N, 4), compare.nested_cross_validation, "corrects its bias"),
    "paired halves": (resample.paired_halves(KEY, N, 3, 2), compare.conservative_z, "disjoint halves"),
    "groups": (resample.k_fold(KEY, N, 4, 2, groups=np.arange(N) // 3), compare.grouped_t, "cases come in groups"),
    "disjoint instances": (
        resample.task_instances(N, 4, 3, 6),
        compare.disjoint_t,
        "share neither training nor test cases",
    ),
    "common test set": (resample.task_instances(N, 4, 3, 6, common=True), compare.quasi_f, "share their test cases"),
}


@pytest.mark.parametrize("name", SUITS)
def test_a_plan_gets_the_test_made_for_it(name):
    plan, test, reason = SUITS[name]
    first, second = losses(plan, 0), losses(plan, 1)
    got, want = compare.recommend(first, second), test(first, second)
    assert (got.method, got.p_value, got.statistic) == (want.method, want.p_value, want.statistic)
    assert got.note.startswith("chosen because ")
    assert reason in got.note
    assert want.note in got.note


def test_one_split_of_error_rates_gets_mcnemar():
    plan = resample.leave_out(KEY, N, 0.5, 1)
    first, second = losses(plan, 0, "zero_one"), losses(plan, 1, "zero_one")
    assert compare.recommend(first, second).p_value == compare.mcnemar(first, second).p_value
    elsewhere = dataclasses.replace(first, values=np.where(plan.test > 0, first.values, 0.5))
    assert compare.recommend(elsewhere, second).p_value == compare.mcnemar(first, second).p_value


@pytest.mark.parametrize("name", [name for name, (plan, *_) in SUITS.items() if plan.resamples > 1])
def test_error_rates_of_several_rows_get_the_test_of_the_plan(name):
    plan, test, reason = SUITS[name]
    if test in (compare.corrected_t, compare.corrected_k_fold_t, compare.cv_clt):
        test, reason = compare.corrected_score, "losses are 0 or 1"
    first, second = losses(plan, 0, "zero_one"), losses(plan, 1, "zero_one")
    got, want = compare.recommend(first, second), test(first, second)
    assert (got.method, got.p_value, got.statistic) == (want.method, want.p_value, want.statistic)
    assert reason in got.note


def test_one_split_on_which_only_one_learner_has_losses_of_0_and_1_gets_the_t_test():
    plan = resample.leave_out(KEY, N, 0.5, 1)
    whole, other = losses(plan, 0, "zero_one"), dataclasses.replace(losses(plan, 1), loss="zero_one")
    for pair in ((whole, other), (other, whole)):
        assert compare.recommend(*pair).method == "hold-out paired t-test"


def test_one_split_of_which_only_the_mean_was_kept_asks_for_the_cases():
    plan = resample.leave_out(KEY, N, 0.5, 1)
    with pytest.raises(ValueError, match="expected the losses of every case, got the means of rows only"):
        compare.recommend(losses(plan, 0, "zero_one"), losses(plan, 1, "zero_one", keep=False))


def test_data_sets_are_tested_each():
    plan = resample.leave_out(KEY, N, 0.25, 20, sets=3)
    first, second = losses(plan, 0), losses(plan, 1)
    np.testing.assert_array_equal(compare.recommend(first, second).p_value, compare.corrected_t(first, second).p_value)


REFUSED = {
    "bootstrap": (resample.bootstrap(KEY, N, 20), "bootstrap samples"),
    "series": (resample.time_blocks(N, 4), "blocks of a series"),
    "full": (resample.full(N), "cases that they were trained on"),
    "test cases twice": (
        dataclasses.replace(resample.k_fold(KEY, N, 3), test=2 * resample.k_fold(KEY, N, 3).test),
        "count more than once",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_plans_are_refused(name):
    plan, reason = REFUSED[name]
    with pytest.raises(
        ValueError, match=rf"expected a plan for which a test is known to hold its level, got .*: .*{reason}"
    ):
        compare.recommend(losses(plan, 0), losses(plan, 1))


def test_different_plans_are_refused():
    with pytest.raises(ValueError, match="expected both learners on the same resamplings"):
        compare.recommend(losses(resample.k_fold(KEY, N, 3), 0), losses(resample.k_fold(jax.random.key(1), N, 3), 1))
