"""Which test `compare.recommend` takes for a plan, that it is that test, and which plans it refuses."""

import dataclasses
import re
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxgen import resample
from jaxgen.stats import advice, compare
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
    with pytest.raises(ValueError, match=rf"expected a plan that a test is made for, got .*: .*{reason}"):
        compare.recommend(losses(plan, 0), losses(plan, 1))


def test_different_plans_are_refused():
    with pytest.raises(ValueError, match="expected both learners on the same resamplings"):
        compare.recommend(losses(resample.k_fold(KEY, N, 3), 0), losses(resample.k_fold(jax.random.key(1), N, 3), 1))


RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
MEASURED = {
    "hold_out_t": ("tests", "hold-out t"),
    "corrected_t": ("tests", "corrected t .* left out"),
    "corrected_k_fold_t": ("tests", "corrected t .* folds"),
    "nested_cross_validation": ("tests", "nested CV"),
    "conservative_z": ("tests", "conservative Z"),
    "disjoint_t": ("tests", "DELVE's t "),
    "quasi_f": ("tests", "DELVE's quasi-F"),
    "jackknife_after_leave_out": ("jackknife", "jackknife "),
    "mcnemar": ("rates", "McNemar, mid-p"),
    "corrected_score": ("rates", "corrected t of error rates"),
}
"""Our own table in which the largest size of each test stands, and how its lines begin."""


def sizes_of(file, words):
    """The largest sizes in the summary of a table, in the lines that begin with these words or continue such a line."""
    page = (RESULTS / f"calibration_{file}.txt").read_text()
    head = {"tests": "largest size at 5%", "jackknife": "Tests at 5%", "rates": "Tests at 5%"}[file]
    begun, sizes = False, []
    for line in page[page.index(head) :].split("\n\n")[0].splitlines():
        named = re.match(r"\s*[A-Za-z]", line[:27]) is not None
        begun = re.match(rf"\s*{words}", line) is not None if named or file != "rates" else begun
        numbers = re.findall(r"\b0\.\d{3}\b", line)
        sizes += map(float, (numbers if file == "rates" else numbers[:-1]) if begun else [])  # the last is the power
    return sizes


@pytest.mark.parametrize("name", MEASURED)
def test_the_size_that_is_told_is_the_largest_in_the_table(name):
    sizes = sizes_of(*MEASURED[name])
    assert len(sizes) >= 3
    assert float(advice.SIZES[name]) == pytest.approx(max(sizes), abs=0.005 + 1e-9)  # rounded to two digits


def test_the_size_of_the_central_limit_theorem_is_that_from_300_cases_on():
    lines = (RESULTS / "calibration_tests.txt").read_text().splitlines()
    sizes, large = [], False
    for line in lines:
        if heading := re.match(r"(?:least squares|ridge|network), n = (\d+):", line):
            large = int(heading[1]) >= advice.MANY_CASES
        elif large and line.strip().startswith("CV-CLT"):
            sizes.append(float(re.findall(r"\b0\.\d{3}\b", line)[1]))
    assert len(sizes) == 6
    assert float(advice.SIZES["cv_clt"]) == pytest.approx(max(sizes), abs=0.005)


def test_the_largest_size_that_was_measured_is_told():
    plan = resample.leave_out(KEY, N, 0.25, 20)
    assert (
        "the largest size at 5 % that was measured is .17" in compare.recommend(losses(plan, 0), losses(plan, 1)).note
    )
    assert set(advice.SIZES) == {*MEASURED, "cv_clt"}
