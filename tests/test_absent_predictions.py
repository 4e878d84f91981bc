"""Losses of predictions for test cases only, as `cross_val_predict` of any tool gives them: all that asks for test
cases alone has the numbers that it has of all predictions, and the rest says what it lacks.
"""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest
from hostile import refused

from jaxgen import loss, resample
from jaxgen.stats import compare, estimate, interval
from jaxgen.types import Losses

KEY, N = jax.random.key(0), 24
PLANS = {
    "splits": resample.leave_out(KEY, N, 0.25, 40),
    "other splits": resample.leave_out(jax.random.key(1), N, 0.5, 40),
    "third splits": resample.leave_out(jax.random.key(2), N, 0.4, 40),
    "one split": resample.leave_out(KEY, N, 0.4, 1),
    "folds": resample.k_fold(KEY, N, 5),
    "repeated folds": resample.k_fold(KEY, N, 5, 3),
    "halves": resample.five_by_two(KEY, N),
    "pairs of halves": resample.paired_halves(KEY, N, 3, 2),
    "nested": resample.nested_pairs(KEY, N, 4),
    "bootstrap": resample.bootstrap(KEY, N, 40),
    "instances": resample.task_instances(N, 4, 3, 6),
    "common": resample.task_instances(N, 4, 3, 6, common=True),
    "full": resample.full(N),
}


def losses(plan, whole, seed=0, of=loss.squared):
    """Losses by `Losses.from_predictions`, of predictions of all cases or of the test cases only."""
    random = np.random.default_rng(seed)
    y, predictions = random.normal(size=N), random.normal(size=(plan.resamples, N))
    y, predictions = (y > 0, predictions > 0) if of is loss.zero_one else (y, predictions)
    kept = predictions if whole else np.where(plan.test > 0, predictions, np.nan)
    given = Losses.from_predictions(y.astype(float), kept, plan.train, plan.test, of, "mine")
    return dataclasses.replace(given, plan=plan)


def of_plan(method, name, **options):
    return lambda whole: method(losses(PLANS[name], whole), **options)


def of_pair(method, name, of=loss.squared, **options):
    return lambda whole: method(losses(PLANS[name], whole, 0, of), losses(PLANS[name], whole, 1, of), **options)


def sizes(method, **options):
    names = ("splits", "other splits", "third splits")
    return lambda whole: method([losses(PLANS[name], whole) for name in names], **options)


def with_full(method, name, **options):
    """Estimates of which the full fit, tested on what it was trained on, has the training losses."""
    return lambda whole: method(losses(PLANS[name], whole), losses(PLANS["full"], whole), **options)


NEEDS_TESTS = {
    "hold_out": of_plan(estimate.hold_out, "splits"),
    "cross_validation": of_plan(estimate.cross_validation, "repeated folds"),
    "quantile": of_plan(estimate.quantile, "splits", p=0.5),
    "summary": of_plan(estimate.summary, "splits"),
    "ecdf": of_plan(estimate.ecdf, "splits"),
    "box_cox": of_plan(estimate.box_cox, "splits"),
    "trimmed_average": of_plan(estimate.trimmed_average, "splits"),
    "out_of_bag": of_plan(estimate.out_of_bag, "bootstrap"),
    "error_632": with_full(estimate.error_632, "bootstrap"),
    "error_632_plus": with_full(estimate.error_632_plus, "bootstrap", no_information=2.0),
    "row_losses": of_plan(estimate.row_losses, "splits", row=3),
    "bootstrap_test_cases": of_plan(estimate.bootstrap_test_cases, "splits", seed=0, resamples=50),
    "mixed": of_plan(estimate.mixed, "splits", seed=0, resamples=50),
    "inverse_curve": sizes(estimate.inverse_curve),
    "inverse_curve by cases": sizes(estimate.inverse_curve, standard_error="cases"),
    "power_curve": sizes(estimate.power_curve),
    "empirical_fraction": sizes(estimate.empirical_fraction),
    "interval.hold_out": of_plan(interval.hold_out, "one split"),
    "interval.t": of_plan(interval.t, "one split"),
    "interval.bootstrap": of_plan(interval.bootstrap, "one split", resamples=50),
    "naive_t": of_plan(interval.naive_t, "splits"),
    "corrected_t": of_plan(interval.corrected_t, "splits"),
    "bouckaert_frank": of_plan(interval.bouckaert_frank, "repeated folds"),
    "conservative_z": of_plan(interval.conservative_z, "pairs of halves"),
    "interval.cross_validation": of_plan(interval.cross_validation, "folds"),
    "interval.cross_validation within": of_plan(interval.cross_validation, "folds", variance="within"),
    "five_by_two": of_plan(interval.five_by_two, "halves"),
    "nested_cross_validation": of_plan(interval.nested_cross_validation, "nested"),
    "interval.recommend": of_plan(interval.recommend, "folds", target="the k-fold test error"),
    "paired_t": of_pair(compare.paired_t, "splits"),
    "compare.corrected_t": of_pair(compare.corrected_t, "splits"),
    "bayesian_t": of_pair(compare.bayesian_t, "splits"),
    "k_fold_t": of_pair(compare.k_fold_t, "folds"),
    "corrected_k_fold_t": of_pair(compare.corrected_k_fold_t, "repeated folds"),
    "five_by_two_t": of_pair(compare.five_by_two_t, "halves"),
    "five_by_two_f": of_pair(compare.five_by_two_f, "halves"),
    "cv_clt": of_pair(compare.cv_clt, "folds"),
    "probability_greater": of_pair(compare.probability_greater, "splits"),
    "probability_interval": of_pair(compare.probability_interval, "splits"),
    "hold_out_t": of_pair(compare.hold_out_t, "splits", row=3),
    "permutation": of_pair(compare.permutation, "one split"),
    "mcnemar": of_pair(compare.mcnemar, "one split", of=loss.zero_one),
    "expected_loss": of_plan(compare.expected_loss, "instances"),
    "disjoint_t": of_pair(compare.disjoint_t, "instances"),
    "quasi_f": of_pair(compare.quasi_f, "common"),
    "compare.recommend": of_pair(compare.recommend, "one split", of=loss.zero_one),
    "friedman": of_pair(lambda *learners: compare.friedman(learners), "instances"),
    "cochran_q": of_pair(lambda *learners: compare.cochran_q(learners), "one split", of=loss.zero_one),
    "max_t": of_pair(lambda *learners: compare.max_t(learners, resamples=50), "one split"),
    "pairwise": of_pair(lambda *learners: compare.pairwise(learners, compare.corrected_t), "splits"),
}


def numbers(result):
    """All that a result holds, as nested dictionaries."""
    if dataclasses.is_dataclass(result):
        return {field.name: numbers(getattr(result, field.name)) for field in dataclasses.fields(result)}
    return dict(result) if hasattr(result, "keys") else result


@pytest.mark.parametrize("name", NEEDS_TESTS)
def test_predictions_of_test_cases_suffice(name):
    of_all, of_tests = (numbers(NEEDS_TESTS[name](whole)) for whole in (True, False))
    np.testing.assert_equal(of_tests, of_all)


NEEDS_APPARENT = {
    "apparent": of_plan(estimate.apparent, "splits"),
    "l_alpha": with_full(estimate.l_alpha, "splits"),
    "l_beta": with_full(estimate.l_beta, "splits"),
    "l_alpha_beta": of_plan(estimate.l_alpha_beta, "splits"),
    "l_alpha_beta by cases": of_plan(estimate.l_alpha_beta, "splits", standard_error="cases"),
}


@pytest.mark.parametrize("name", NEEDS_APPARENT)
def test_what_needs_predictions_of_training_cases_says_so(name):
    NEEDS_APPARENT[name](True)
    message = refused(partial(NEEDS_APPARENT[name], False))
    assert "training cases for the apparent loss of mine, got " in message


def test_split_train_does_without_but_cannot_count_outlying_rows():
    of_all, of_tests = (estimate.split_train(losses(PLANS["splits"], whole)) for whole in (True, False))
    assert (of_tests.estimate, of_tests.parts["std"]) == (of_all.estimate, of_all.parts["std"])
    assert of_all.parts["outlying"] == 0
    assert np.isnan(of_tests.parts["outlying"])
    assert "rows that did not converge were not looked for" in of_tests.note
    assert "not looked for" not in of_all.note


def test_two_losses_of_one_name_are_not_compared():
    """Their texts carry a digest of their code."""

    def of(power):
        return Losses.from_predictions(
            np.arange(4.0),
            np.zeros((2, 4)),
            np.eye(4)[:2],
            np.eye(4)[2:],
            lambda y, p: np.abs(y - p)[..., 0] ** power,
        )

    assert of(1).loss != of(2).loss
    for test in (compare.paired_t, compare.probability_greater, compare.recommend):
        assert "expected one loss for both learners" in refused(partial(test, of(1), of(2)))
    compare.paired_t(of(1), of(1))
