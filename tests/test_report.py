"""Tables as text: that their numbers are those of `jaxgen.stats`."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from hostile import STRANGERS, refused

from jaxgen import report, resample
from jaxgen.stats import compare, estimate, interval
from jaxgen.types import Losses

KEY = jax.random.key(0)
PLAN = resample.leave_out(KEY, 20, 0.25, 30)


def losses(learner, seed, plan=PLAN, **others):
    g = np.random.default_rng(seed).gamma(3.0, size=plan.resamples)
    return Losses(
        g, g / 3, plan, learner, "squared", np.zeros(plan.resamples, np.uint8), ("it did not converge",), **others
    )


MEAN, LINE, RIDGE = losses("Mean()", 0), losses("LeastSquares()", 1), losses("LeastSquares(ridge=1.0)", 2)


def test_a_row_of_the_table_is_the_summary_of_its_learner():
    table = report.summaries([MEAN, LINE])
    names = {"mean": "avr", "trimmed_mean": "tavr", "median": "med", "standard_deviation": "std"}
    names |= {"median_deviation": "mad", "interquartile_range": "iqr"}
    assert set(table.columns) == {*names, "monte_carlo_error", "apparent"}
    assert list(table.index) == ["Mean()", "LeastSquares()"]
    for one in (MEAN, LINE):
        summary = estimate.summary(one)
        row = table.loc[one.learner]
        for name, short in names.items():
            assert row[name] == getattr(summary.raw, short)
        assert row["monte_carlo_error"] == summary.monte_carlo_error
        assert row["apparent"] == one.apparent.mean()


def test_one_learner_seen_twice_has_two_rows():
    """Such as the same learner on two selections of inputs, whose texts are equal."""
    again = losses("Mean()", 5)
    table = report.summaries([MEAN, again])
    assert list(table.index) == ["Mean()", "Mean()"]
    assert table["mean"].tolist() == [MEAN.g.mean(), again.g.mean()]


def test_all_pairs_of_learners_are_compared():
    found = report.comparisons([MEAN, LINE, RIDGE])
    pairs = [(MEAN, LINE), (MEAN, RIDGE), (LINE, RIDGE)]
    assert [(one.first, one.second) for one in found] == [(one.learner, other.learner) for one, other in pairs]
    assert [float(one.p_value) for one in found] == [float(compare.corrected_t(*pair).p_value) for pair in pairs]
    assert report.comparisons([MEAN]) == []


def test_every_learner_has_the_interval_that_suits_the_plan():
    found = report.intervals([MEAN, LINE])
    assert [(float(one.lower), float(one.upper)) for one in found] == [
        (float(want.lower), float(want.upper)) for want in map(interval.corrected_t, (MEAN, LINE))
    ]


def test_the_page_says_why_there_is_no_interval():
    plan = resample.time_blocks(20, 4)
    page = report.page([losses("Mean()", 0, plan)])
    assert (
        "no interval: expected a plan from which an interval for R is known to cover what it should, "
        "got resample.time_blocks" in page
    )


def test_the_page_says_what_was_run_and_found():
    page = report.page([MEAN, LINE])
    assert page.startswith(f"30 resamplings, {PLAN.scheme}\n")
    for part in (
        "squared loss",
        "standard error of the mean from having drawn these splits only",
        "Mean()",
        "LeastSquares()",
        f"{MEAN.g.mean():.5g}",
        *map(str, report.intervals([MEAN, LINE])),
        str(compare.recommend(MEAN, LINE)),
    ):
        assert part in page
    assert "no comparison" not in page
    assert "resamplings left out" not in page


def test_the_page_of_one_learner_compares_nothing():
    assert "t-test" not in report.page([MEAN])


def test_the_page_says_why_there_is_no_comparison():
    plan = resample.bootstrap(KEY, 20, 30)
    assert (
        "no comparison: expected a plan for which a test is known to hold its level, got resample.bootstrap"
        in report.page([losses("Mean()", 0, plan), losses("LeastSquares()", 1, plan)])
    )


def test_the_page_says_how_many_rows_were_left_out():
    page = report.page([MEAN, losses("LeastSquares()", 1, dropped=3)])
    assert "3 resamplings left out, in which a training failed" in page
    assert "Mean():" not in page


def test_failed_rows_are_refused():
    failed = losses("Mean()", 0)
    failed.failure[3] = 1
    with pytest.raises(ValueError, match="got 1 failed of 30"):
        report.page([failed])


def test_losses_without_training_predictions_have_no_apparent_loss():
    lacking = replace(losses("Mean()", 0), train_mean=np.full(30, np.nan))
    assert np.isnan(report.summaries([lacking, LINE])["apparent"]).tolist() == [True, False]
    assert "NaN" in report.page([lacking])


SETS = replace(MEAN, test_mean=np.ones((2, 30)), train_mean=np.ones((2, 30)), failure=np.zeros((2, 30), np.uint8))
OTHER_PLAN = losses("Mean()", 0, resample.leave_out(jax.random.key(1), 20, 0.25, 30))
FUNCTIONS = (report.page, report.summaries, report.intervals, report.comparisons)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_what_is_no_list_of_losses_is_refused(function, own_messages):
    for stranger in [*STRANGERS.values(), MEAN, [None], [MEAN, 3], {"a": MEAN}]:
        refused(lambda stranger=stranger: function(stranger), TypeError)
    assert "expected at least 1 learners, got 0" in refused(lambda: function([]), ValueError)


@pytest.mark.parametrize("function", [report.page, report.summaries])
def test_several_data_sets_have_no_page(function):
    assert "one data set, got those of 2 of Mean(); choose one with losses[q]" in refused(lambda: function([SETS]))


def test_a_page_is_of_one_plan_and_one_loss():
    assert "learners on one plan with one loss, got squared on" in refused(lambda: report.page([MEAN, OTHER_PLAN]))
    assert "and absolute on" in refused(lambda: report.page([MEAN, replace(LINE, loss="absolute")]))
