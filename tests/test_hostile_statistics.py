"""What is given to statistics by mistake: every argument of every public function is replaced by everything that it is
not for, which must give one sentence; what is rightly accepted instead is listed.
"""

import copy
import functools
import inspect
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import jax
import numpy as np
import pandas as pd
import pytest
from given import made, with_failed, without_values
from hostile import refused
from test_documents import functions

from jaxgen import loss, resample
from jaxgen.stats import compare, conformal, estimate, interval, metrics, planning, worth
from jaxgen.stats.metrics import Predictions, roc
from jaxgen.types import Losses, Predicted

pytestmark = pytest.mark.usefixtures("own_messages")

KEY, N = jax.random.key(0), 24
RANDOM = np.random.default_rng(0)


def losses(plan, learner="a", sets=None, kind="squared"):
    """Losses of every row and case by chance."""
    shape = (*(() if sets is None else (sets,)), plan.resamples, plan.n)
    values = RANDOM.gamma(2.0, size=shape) if kind == "squared" else RANDOM.integers(0, 2, shape).astype(float)
    return made(values, plan, learner, kind)


# What works, one line for each function: the call with its good arguments by name

SPLITS = resample.leave_out(KEY, N, 0.25, 40)
ONE_ROW, FULL = resample.leave_out(KEY, N, 0.25, 1), resample.full(N)
FOLDS, REPEATED, HALVES = resample.k_fold(KEY, N, 6), resample.k_fold(KEY, N, 6, 3), resample.five_by_two(KEY, N)
GROUPED = resample.k_fold(KEY, N, 4, 2, groups=np.arange(N) // 4)
BY_SIZE = resample.by_size(KEY, N, 60, 6)
LOSSES = losses(SPLITS)
BOOTSTRAP = losses(resample.bootstrap(KEY, N, 40))
SIZES = [LOSSES, *(losses(resample.leave_out(jax.random.key(seed), N, 0.1 + seed / 4, 40)) for seed in (1, 2))]
CASES, ERRORS = RANDOM.gamma(2.0, size=12), np.arange(12) % 3 == 0.0
TABLE, SHARES = RANDOM.random((8, 3)), np.array([0.2, 0.5])
TARGETS, SCORES = np.eye(2)[np.arange(20) % 2], RANDOM.random((4, 20, 2))
PREDICTIONS = Predictions.from_arrays(TARGETS, SCORES)
CLASSES = np.arange(N) % 2
CLASSIFIED = Losses.from_predictions(CLASSES, RANDOM.random((40, N)), SPLITS.train, SPLITS.test, "zero_one")


def predicted(plan, task="regression"):
    """Predictions by chance of every row, for the cases and for 5 new ones."""
    outputs = 1 if task == "regression" else 3
    values = RANDOM.dirichlet(np.ones(3), size=(plan.resamples, N + 5))[..., :outputs]
    y = RANDOM.normal(size=(N, 1)) if outputs == 1 else np.eye(3)[np.arange(N) % 3]
    return Predicted.from_predictions(y, values[:, :N], values[:, N:], plan.train, plan.test, task=task)


ONE_OUT = predicted(resample.leave_one_out(N))


def pair(plan, **options):
    return {"first": losses(plan, "a", **options), "second": losses(plan, "b", **options)}


COMPARED = compare.corrected_t(**pair(SPLITS))


def learners(plan):
    return list(pair(plan).values())


def reference_skill(first, second, level=0.95, alternative="two-sided"):
    """`compare.skill_score` with its learners by the names that others have."""
    return compare.skill_score(first, second, level=level, alternative=alternative)


def over_splits(values, plan, scale="identity", level=0.95, alternative="two-sided"):
    """`metrics.over_splits` without its unit, which is any text."""
    return metrics.over_splits(values, plan, unit="AUC", scale=scale, level=level, alternative=alternative)


def of_rows(losses, data, statistic, unit=None, greater_is_better=True, bounded=None):
    """`metrics.of_rows` without the options of the statistic."""
    return metrics.of_rows(losses, data, statistic, unit=unit, greater_is_better=greater_is_better, bounded=bounded)


def two(first, second, positive=None):
    """`roc.delong` with its predictions by name."""
    return roc.delong(first, second, positive=positive)


GOOD = {
    "estimate.apparent": (estimate.apparent, {"losses": LOSSES}),
    "estimate.average_conditional_error": (
        estimate.average_conditional_error,
        {"estimates": CASES, "truths": CASES + 1},
    ),
    "estimate.bootstrap": (estimate.bootstrap, {"values": CASES, "seed": 0, "resamples": 50}),
    "estimate.bootstrap_test_cases": (estimate.bootstrap_test_cases, {"losses": LOSSES, "seed": 0, "resamples": 50}),
    "estimate.box_cox": (estimate.box_cox, {"g": CASES}),
    "estimate.cross_validation": (estimate.cross_validation, {"losses": losses(FOLDS)}),
    "estimate.ecdf": (estimate.ecdf, {"g": CASES}),
    "estimate.empirical_fraction": (estimate.empirical_fraction, {"losses": SIZES}),
    "estimate.error_632": (estimate.error_632, {"losses": BOOTSTRAP, "full": losses(FULL)}),
    "estimate.error_632_plus": (
        estimate.error_632_plus,
        {"losses": BOOTSTRAP, "full": losses(FULL), "no_information": 2.0},
    ),
    "estimate.quantile": (estimate.quantile, {"losses": LOSSES, "p": 0.5}),
    "estimate.hold_out": (estimate.hold_out, {"losses": LOSSES}),
    "estimate.inverse_curve": (estimate.inverse_curve, {"losses": SIZES}),
    "estimate.jackknife": (estimate.jackknife, {"values": CASES}),
    "estimate.l_alpha": (estimate.l_alpha, {"losses": LOSSES, "full": losses(FULL)}),
    "estimate.l_alpha_beta": (estimate.l_alpha_beta, {"losses": LOSSES}),
    "estimate.l_beta": (estimate.l_beta, {"losses": LOSSES, "full": losses(FULL)}),
    "estimate.mixed": (estimate.mixed, {"losses": LOSSES, "seed": 0, "resamples": 50}),
    "estimate.no_information_rate": (
        estimate.no_information_rate,
        {"y": CASES[:, None], "predictions": CASES[:, None] + 1, "loss": loss.absolute},
    ),
    "estimate.optimal_fraction": (estimate.optimal_fraction, {"n": 100, "p": 5}),
    "estimate.out_of_bag": (estimate.out_of_bag, {"losses": BOOTSTRAP}),
    "estimate.power_curve": (estimate.power_curve, {"losses": SIZES}),
    "estimate.row_losses": (estimate.row_losses, {"losses": LOSSES}),
    "estimate.split_train": (estimate.split_train, {"losses": LOSSES}),
    "estimate.subsampling": (estimate.subsampling, {"values": CASES, "size": 4, "seed": 0, "resamples": 50}),
    "estimate.summary": (estimate.summary, {"g": CASES}),
    "estimate.trimmed_average": (estimate.trimmed_average, {"g": CASES}),
    "estimate.unconditional_error": (estimate.unconditional_error, {"estimates": CASES, "truths": CASES + 1}),
    "interval.bootstrap": (interval.bootstrap, {"losses": CASES, "resamples": 50}),
    "interval.bouckaert_frank": (interval.bouckaert_frank, {"losses": losses(FOLDS)}),
    "interval.clopper_pearson": (interval.clopper_pearson, {"losses": ERRORS}),
    "interval.conservative_z": (
        interval.conservative_z,
        {"losses": losses(resample.paired_halves(KEY, N, 3, 2))},
    ),
    "interval.corrected_score": (interval.corrected_score, {"losses": losses(SPLITS, kind="zero_one")}),
    "interval.corrected_t": (interval.corrected_t, {"losses": LOSSES}),
    "interval.cross_validation": (interval.cross_validation, {"losses": losses(FOLDS)}),
    "interval.five_by_two": (interval.five_by_two, {"losses": losses(HALVES)}),
    "interval.grouped": (interval.grouped, {"losses": losses(GROUPED)}),
    "interval.hold_out": (interval.hold_out, {"losses": losses(ONE_ROW)}),
    "interval.jackknife_after_leave_out": (interval.jackknife_after_leave_out, {"losses": LOSSES}),
    "interval.naive_t": (interval.naive_t, {"losses": LOSSES}),
    "interval.nested_cross_validation": (
        interval.nested_cross_validation,
        {"losses": losses(resample.nested_pairs(KEY, N, 4))},
    ),
    "interval.recommend": (interval.recommend, {"losses": LOSSES}),
    "interval.t": (interval.t, {"losses": CASES}),
    "interval.wald": (interval.wald, {"losses": ERRORS}),
    "interval.wilson": (interval.wilson, {"losses": ERRORS}),
    "conformal.coverage": (
        conformal.coverage,
        {"found": conformal.jackknife_plus(ONE_OUT, level=0.8), "y": np.zeros(5)},
    ),
    "conformal.cross_sets": (conformal.cross_sets, {"predicted": predicted(FOLDS, "classification")}),
    "conformal.cv_plus": (conformal.cv_plus, {"predicted": predicted(FOLDS)}),
    "conformal.jackknife_minmax": (conformal.jackknife_minmax, {"predicted": ONE_OUT}),
    "conformal.jackknife_plus": (conformal.jackknife_plus, {"predicted": ONE_OUT}),
    "conformal.jackknife_plus_after_bootstrap": (
        conformal.jackknife_plus_after_bootstrap,
        {"predicted": predicted(BOOTSTRAP.plan)},
    ),
    "conformal.split": (conformal.split, {"predicted": predicted(ONE_ROW)}),
    "conformal.split_sets": (conformal.split_sets, {"predicted": predicted(ONE_ROW, "classification")}),
    "compare.bayesian_t": (compare.bayesian_t, pair(SPLITS)),
    "compare.benjamini_hochberg": (compare.benjamini_hochberg, {"p_values": [0.1, 0.2]}),
    "compare.benjamini_yekutieli": (compare.benjamini_yekutieli, {"p_values": [0.1, 0.2]}),
    "compare.cochran_q": (compare.cochran_q, {"losses": (TABLE > 0.5).astype(float)}),
    "compare.conservative_z": (compare.conservative_z, pair(resample.paired_halves(KEY, N, 3, 2))),
    "compare.corrected_score": (compare.corrected_score, pair(SPLITS, kind="zero_one")),
    "compare.corrected_k_fold_t": (compare.corrected_k_fold_t, pair(REPEATED)),
    "compare.corrected_t": (compare.corrected_t, pair(SPLITS)),
    "compare.cv_clt": (compare.cv_clt, pair(FOLDS)),
    "compare.disjoint_t": (compare.disjoint_t, pair(resample.task_instances(N, 4, 3, 6))),
    "compare.equivalence": (compare.equivalence, {"comparison": COMPARED, "margin": 0.5}),
    "compare.error_ratio": (compare.error_ratio, pair(SPLITS)),
    "compare.expected_loss": (compare.expected_loss, {"losses": losses(resample.task_instances(N, 4, 3, 6))}),
    "compare.five_by_two_f": (compare.five_by_two_f, pair(HALVES)),
    "compare.five_by_two_t": (compare.five_by_two_t, pair(HALVES)),
    "compare.friedman": (compare.friedman, {"losses": TABLE}),
    "compare.grouped_t": (compare.grouped_t, pair(GROUPED)),
    "compare.hierarchical_t": (compare.hierarchical_t, pair(SPLITS, sets=4) | {"resamples": 800}),
    "compare.hold_out_t": (compare.hold_out_t, pair(ONE_ROW)),
    "compare.holm": (compare.holm, {"p_values": [0.1, 0.2]}),
    "compare.iman_davenport": (compare.iman_davenport, {"losses": learners(SPLITS)}),
    "compare.jackknife_after_leave_out": (compare.jackknife_after_leave_out, pair(SPLITS)),
    "compare.k_fold_t": (compare.k_fold_t, pair(FOLDS)),
    "compare.max_t": (compare.max_t, {"losses": learners(ONE_ROW), "resamples": 100}),
    "compare.mcnemar": (compare.mcnemar, pair(ONE_ROW, kind="zero_one")),
    "compare.non_inferiority": (compare.non_inferiority, {"comparison": COMPARED, "margin": 0.5}),
    "compare.wilcoxon": (compare.wilcoxon, pair(SPLITS, sets=6)),
    "compare.nested_cross_validation": (
        compare.nested_cross_validation,
        pair(resample.nested_pairs(KEY, N, 4)),
    ),
    "compare.nemenyi": (compare.nemenyi, {"losses": TABLE}),
    "compare.paired_t": (compare.paired_t, pair(SPLITS)),
    "compare.pairwise": (compare.pairwise, {"losses": learners(SPLITS), "test": compare.corrected_t}),
    "compare.permutation": (compare.permutation, pair(ONE_ROW)),
    "compare.probability_greater": (compare.probability_greater, pair(SPLITS)),
    "compare.probability_interval": (compare.probability_interval, pair(SPLITS)),
    "compare.quasi_f": (compare.quasi_f, pair(resample.task_instances(N, 4, 3, 6, common=True))),
    "compare.recommend": (compare.recommend, pair(SPLITS)),
    "compare.skill_score": (reference_skill, pair(SPLITS)),
    "metrics.accuracy": (metrics.accuracy, {"predictions": PREDICTIONS}),
    "metrics.average_precision": (metrics.average_precision, {"predictions": PREDICTIONS}),
    "metrics.balanced_accuracy": (metrics.balanced_accuracy, {"predictions": PREDICTIONS}),
    "metrics.confusion": (metrics.confusion, {"predictions": PREDICTIONS}),
    "metrics.f_beta": (metrics.f_beta, {"predictions": PREDICTIONS}),
    "metrics.gains": (metrics.gains, {"predictions": PREDICTIONS, "shares": SHARES}),
    "metrics.lift": (metrics.lift, {"predictions": PREDICTIONS, "shares": SHARES}),
    "metrics.of_rows": (of_rows, {"losses": CLASSIFIED, "data": CLASSES, "statistic": metrics.accuracy}),
    "metrics.over_splits": (over_splits, {"values": LOSSES.g, "plan": SPLITS}),
    "metrics.precision": (metrics.precision, {"predictions": PREDICTIONS}),
    "metrics.precision_at": (metrics.precision_at, {"predictions": PREDICTIONS, "shares": SHARES}),
    "metrics.precision_recall": (metrics.precision_recall, {"predictions": PREDICTIONS[0]}),
    "metrics.recall": (metrics.recall, {"predictions": PREDICTIONS}),
    "metrics.roc.auc": (roc.auc, {"predictions": PREDICTIONS}),
    "metrics.roc.curve": (roc.curve, {"predictions": PREDICTIONS[0]}),
    "metrics.roc.delong": (two, {"first": PREDICTIONS, "second": PREDICTIONS}),
    "metrics.roc.hand_till": (roc.hand_till, {"predictions": PREDICTIONS}),
    "metrics.roc.interval": (roc.interval, {"predictions": PREDICTIONS}),
    "metrics.roc.operating_point": (roc.operating_point, {"predictions": PREDICTIONS}),
    "metrics.roc.true_positive_at": (roc.true_positive_at, {"predictions": PREDICTIONS, "false_positive": SHARES}),
    "planning.cases_for_power": (planning.cases_for_power, pair(SPLITS) | {"difference": 0.5}),
    "planning.cases_for_width": (planning.cases_for_width, {"losses": LOSSES, "width": 0.5}),
    "worth.banzhaf": (worth.banzhaf, {"losses": losses(resample.half_samples(KEY, N, 60, 6))}),
    "worth.beta_shapley": (worth.beta_shapley, {"losses": losses(BY_SIZE), "alpha": 4.0, "beta": 1.0}),
    "worth.datamodels": (worth.datamodels, {"losses": losses(resample.half_samples(KEY, N, 60))}),
    "worth.influence": (worth.influence, {"losses": losses(resample.half_samples(KEY, N, 60))}),
    "worth.memorisation": (worth.memorisation, {"losses": losses(resample.half_samples(KEY, N, 60))}),
    "worth.out_of_bag": (worth.out_of_bag, {"losses": LOSSES}),
    "worth.shapley": (worth.shapley, {"losses": losses(BY_SIZE)}),
}
METHODS = {
    "Curve.at": (estimate.inverse_curve(SIZES).at, {"n": 10}),
    "Worths.limits": (worth.out_of_bag(LOSSES).limits, {"level": 0.9}),
    "Worths.worst": (worth.out_of_bag(LOSSES).worst, {"count": 3}),
    "DeLong.difference": (roc.delong(PREDICTIONS, PREDICTIONS).difference, {"first": 0, "second": 1}),
    "Ecdf.quantile": (estimate.ecdf(CASES).quantile, {"p": 0.5}),
    "Ecdf.quantile_interval": (estimate.ecdf(CASES).quantile_interval, {"p": 0.5}),
    "Pairs.matrix": (compare.max_t(TABLE, resamples=19).matrix, {"name": "adjusted"}),
    "Predictions.from_arrays": (Predictions.from_arrays, {"y": TARGETS, "scores": SCORES}),
    "Predictions.of": (Predictions.of, {"losses": CLASSIFIED, "data": CLASSES}),
    "Predictions.number": (PREDICTIONS.number, {"positive": 1}),
}
CALLS = GOOD | METHODS

# What is given instead


class Unprintable:
    def __repr__(self):
        raise RuntimeError("not today")


def spoiled(field, value):
    """Losses with an array that does not belong to the others, past the checks of annotations."""
    copied = copy.copy(LOSSES)
    object.__setattr__(copied, field, value)
    return copied


NOTHING = {
    "None": None,
    "text": "a",
    "number as text": "0.95",
    "no text": "",
    "text of two lines": "a\nb",
    "long text": "x" * 500,
    "bytes": b"a",
    "object": object(),
    "unprintable": Unprintable(),
    "class": int,
    "function": len,
    "dict": {"a": 1},
    "set": {1, 2},
}
NUMBERS = {
    "flag": True,
    "3": 3,
    "NumPy's 1": np.int64(1),
    "0": 0,
    "-1": -1,
    "2**70": 2**70,
    "0.5": 0.5,
    "NumPy's 0.5": np.float32(0.5),
    "1.5": 1.5,
    "95.0": 95.0,
    "1e300": 1e300,
    "NaN": np.nan,
    "inf": np.inf,
    "complex": 0.5j,
    "fraction": Fraction(1, 2),
    "decimal": Decimal("0.5"),
}
ARRAYS = {
    "array of no axis": np.array(0.5),
    "array": np.array([0.9, 0.95]),
    "matrix": np.ones((3, 4)),
    "empty array": np.array([]),
    "array of texts": np.array(["a", "b"]),
    "array of objects": np.array([None, 1], object),
    "array with NaN": np.array([1.0, np.nan, 2.0]),
    "array of complex numbers": np.array([1j, 2.0]),
    "masked array": np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]),
    "JAX's array": jax.numpy.ones(3),
    "key": KEY,
    "series": pd.Series([0.1, 0.2, 0.3]),
    "frame": pd.DataFrame(TABLE),
    "list": [1, 2, 3],
    "ragged list": [[1, 2], [3]],
    "empty list": [],
    "empty tuple": (),
}
VALUES = {
    "data": np.ones(3),
    "plan": SPLITS,
    "result": interval.t(CASES),
    "comparison": compare.corrected_t(**pair(SPLITS)),
    "predictions": PREDICTIONS,
    "predictions of one model": PREDICTIONS[0],
    "losses": LOSSES,
    "losses of sets": losses(SPLITS, sets=3),
    "losses of one row": losses(ONE_ROW),
    "bootstrap": BOOTSTRAP,
    "means of rows": without_values(LOSSES),
    "failed": with_failed(LOSSES),
    "all failed": replace(LOSSES, failure=np.ones(40, np.uint8)),
    "values of fewer rows": spoiled("values", LOSSES.values[:5]),
    "means of fewer rows": spoiled("test_mean", np.ones(3)),
    "a list of losses": learners(SPLITS),
    "a list of one": [LOSSES],
    "a list with None": [LOSSES, None],
    "a list of None": [None, None],
}
HOSTILE = NOTHING | NUMBERS | ARRAYS | VALUES

# What may be given after all, by the name of the argument: to some functions that have it

ABOVE_0 = {"3", "NumPy's 1", "0.5", "NumPy's 0.5", "1.5", "95.0"}
BETWEEN_0_AND_1 = {"0.5", "NumPy's 0.5"}
WHOLE = {"3", "NumPy's 1", "0"}
ROW_OF_NUMBERS = {"array", "JAX's array", "series", "list", "data"}
TABLE_OF_NUMBERS = {"matrix", "frame"}
LEARNER = {"losses", "losses of sets", "losses of one row", "bootstrap", "means of rows"}
ACCEPTED = {
    "losses": LEARNER | ROW_OF_NUMBERS | TABLE_OF_NUMBERS | {"a list of losses"},
    "g": LEARNER | ROW_OF_NUMBERS | TABLE_OF_NUMBERS,
    "first": LEARNER | {"predictions", "NumPy's 1", "0"},
    "second": LEARNER | {"predictions", "NumPy's 1", "0"},
    "values": ROW_OF_NUMBERS | TABLE_OF_NUMBERS,
    "estimates": ROW_OF_NUMBERS,
    "truths": ROW_OF_NUMBERS,
    "p_values": ROW_OF_NUMBERS | TABLE_OF_NUMBERS,
    "shares": ROW_OF_NUMBERS,
    "false_positive": ROW_OF_NUMBERS,
    "predictions": {"predictions", "predictions of one model"},
    "level": BETWEEN_0_AND_1,
    "prior": BETWEEN_0_AND_1 | {"None"},
    "p": BETWEEN_0_AND_1 | WHOLE,
    "cut": {"0"},
    "lam": ABOVE_0 | {"0", "-1", "None"},
    "shift": ABOVE_0 | {"0"},
    "kurtosis": ABOVE_0 | {"2**70", "1e300"},
    "margin": ABOVE_0 | {"2**70", "1e300"},
    "width": ABOVE_0 | {"2**70", "1e300"},
    "plan": {"plan"},
    "difference": ABOVE_0 | {"-1", "2**70", "1e300"},
    "power": BETWEEN_0_AND_1,
    "comparison": {"comparison"},
    "rope": ABOVE_0 | {"0", "2**70", "1e300", "inf"},
    "beta": ABOVE_0,
    "alpha": ABOVE_0,
    "empty": ABOVE_0 | {"0", "-1", "1e300", "2**70", "None"},
    "penalty": ABOVE_0 | {"0", "1e300", "2**70", "None"},
    "folds": WHOLE,
    "count": WHOLE,
    "tested": {"list", "None"},
    "false_positive_cost": ABOVE_0 | {"2**70", "1e300"},
    "false_negative_cost": ABOVE_0 | {"2**70", "1e300"},
    "no_information": ABOVE_0 | {"0", "-1", "1e300", "flag", "array of no axis"},
    "undefined": ABOVE_0 | {"0", "-1", "2**70", "1e300", "NaN", "None"},
    "n": ABOVE_0 | {"2**70", "1e300", "None"},
    "seed": WHOLE | {"2**70"},
    "size": WHOLE,
    "resamples": WHOLE,
    "row": WHOLE | {"None"},
    "against": WHOLE | {"None"},
    "positive": WHOLE | {"None"},
    "normalised": {"flag"},
    "paired": {"flag"},
    "step_down": {"flag"},
    "adjusted": {"flag"},
    "labels": {"array of texts", "None"},
    "classes": {"array of texts", "empty list", "empty tuple", "None"},
    "test": {"None"},
    "unit": {"text", "number as text", "no text", "text of two lines", "long text", "None"},
    "greater_is_better": {"flag"},
    "bounded": {"flag", "None"},
    "learner": {"text", "number as text", "no text", "text of two lines", "long text"},
}


@pytest.mark.parametrize("name", CALLS)
def test_everything_else_gets_one_sentence(name):
    """Whatever is accepted must be listed, and must not raise."""
    call, good = CALLS[name]
    call(**good)
    for argument in inspect.signature(call).parameters:
        for what, value in HOSTILE.items():
            given = functools.partial(call, **(good | {argument: value}))
            if what not in ACCEPTED.get(argument, ()) or raises(given):
                try:
                    refused(given)
                except (AssertionError, pytest.fail.Exception) as error:
                    raise AssertionError(f"{argument} = {what}: {error}") from error


def raises(call):
    try:
        call()
    except Exception:
        return True
    return False


def test_every_public_function_is_tried():
    modules = {
        "estimate": estimate,
        "interval": interval,
        "compare": compare,
        "conformal": conformal,
        "metrics": metrics,
        "metrics.roc": roc,
        "planning": planning,
        "worth": worth,
    }
    public = [f"{prefix}.{name}" for prefix, module in modules.items() for name in functions(module)]
    assert sorted(public) == sorted(GOOD)
