"""Figures of what they are not for: one sentence each, and no empty figure left open."""

from dataclasses import replace

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hostile import NO_NUMBERS, STRANGERS, refused

from jaxgen import plot, resample
from jaxgen.stats import compare, conformal, estimate, interval, metrics, worth
from jaxgen.types import Losses, Predicted

pytestmark = pytest.mark.usefixtures("own_messages")

RANDOM = np.random.default_rng(0)


def random_losses(learner="a", fraction=0.25, cases=40, scale=1.0, plan=None):
    plan = plan or resample.leave_out(jax.random.key(0), cases, fraction, 30)
    values = scale * (1 + 30 / plan.train_sizes[:, None] + RANDOM.gamma(2.0, size=plan.shape))
    means = [np.sum(w * values, -1) / w.sum(-1) for w in (plan.test, plan.train)]
    return Losses(*means, plan, learner, "squared", np.zeros(plan.resamples, np.uint8), values=values)


LOSSES = random_losses()
CURVE = estimate.inverse_curve([random_losses("a", share) for share in (0.25, 0.5, 0.75)], standard_error="cases")
RESULT = interval.corrected_t(LOSSES)
PAIRS = compare.max_t(RANDOM.gamma(2.0, size=(30, 3)), resamples=19)
RANKS = compare.nemenyi(RANDOM.normal(size=(9, 3)))
TARGETS = np.eye(2)[np.arange(40) % 2]
CLASSES = metrics.Predictions.from_arrays(TARGETS, 0.4 * TARGETS + RANDOM.random((6, 40, 2)))
NUMBERS = RANDOM.normal(size=(1, 40))
ONE_SPLIT = resample.leave_out(jax.random.key(0), 40, 0.5, 1)
PREDICTED = conformal.split(
    Predicted.from_predictions(NUMBERS[0], NUMBERS / 2, NUMBERS, ONE_SPLIT.train, ONE_SPLIT.test)
)
WORTHS = worth.out_of_bag(LOSSES)
INFLUENCES = worth.datamodels(random_losses(plan=resample.half_samples(jax.random.key(0), 40, 40)))

FIGURES = {  # what each draws
    "distribution": (plot.distribution, LOSSES),
    "standard_error_floor": (plot.standard_error_floor, LOSSES),
    "learning_curve": (plot.learning_curve, CURVE),
    "interval_forest": (plot.interval_forest, RESULT),
    "comparison_matrix": (plot.comparison_matrix, PAIRS),
    "critical_difference": (plot.critical_difference, RANKS),
    "prediction_intervals": (plot.prediction_intervals, PREDICTED),
    "roc_curves": (plot.roc_curves, CLASSES),
    "precision_recall_curves": (plot.precision_recall_curves, CLASSES),
    "case_worths": (plot.case_worths, WORTHS),
    "influence_map": (plot.influence_map, INFLUENCES),
}
KINDS = {"losses": LOSSES, "curve": CURVE, "result": RESULT, "pairs": PAIRS, "ranks": RANKS, "predictions": CLASSES}
KINDS |= {"intervals": PREDICTED, "worths": WORTHS, "influences": INFLUENCES}


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    left = plt.get_fignums()
    plt.close("all")
    assert not left


@pytest.mark.parametrize("name", FIGURES)
def test_other_kinds_are_refused(name):
    figure, own = FIGURES[name]
    for other in (*STRANGERS.values(), *KINDS.values()):
        if type(other) is not type(own):
            refused(lambda: figure(other), TypeError)  # noqa: B023


SINGLE = ("comparison_matrix", "critical_difference", "case_worths", "influence_map")
"""Figures of one thing, whose second argument is another."""


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in SINGLE])
def test_other_kinds_among_right_ones_are_refused(name):
    figure, own = FIGURES[name]
    for other in (None, [own], (own, own)):
        refused(lambda: figure(own, other), TypeError)  # noqa: B023


LABELS = {"number": 5, "text": "a", "numbers": [64, 64], "None in a list": [None], "none": [], "too many": list("abcd")}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("name", FIGURES)
def test_labels_are_as_many_texts(name, labels):
    figure, own = FIGURES[name]
    assert "labels" in refused(lambda: figure(own, labels=labels), ValueError)


OPTIONS = [  # figure, option, what else is refused
    ("distribution", "level", (0, 1, -1.0, 95)),
    ("roc_curves", "share", (0, 1.1, -1.0, 90)),
    ("precision_recall_curves", "share", (0, 1.1, -1.0, 90)),
    ("roc_curves", "false_positive_cost", (0, -1.0, np.inf)),
    ("roc_curves", "false_negative_cost", (0, -1.0, np.inf)),
    ("roc_curves", "prior", (0, 1, -1.0)),
    ("case_worths", "level", (0, 1, -1.0, 95)),
    ("influence_map", "level", (0, 1, -1.0, 95)),
    ("case_worths", "count", (0, -1)),
    ("learning_curve", "to", (0, 5.0, -1.0, np.inf)),
    ("interval_forest", "truth", (np.inf, {RESULT.target: "a"}, {RESULT.target: None}, {3: 1.0})),
]
OPTIONAL = {"prior", "to", "truth"}
"""Numbers that may be None."""


@pytest.mark.parametrize(("name", "option", "others"), OPTIONS, ids=[f"{row[0]}-{row[1]}" for row in OPTIONS])
def test_options_are_numbers_within_bounds(name, option, others):
    figure, own = FIGURES[name]
    for value in (*NO_NUMBERS.values(), *others):
        if not (value is None and option in OPTIONAL):
            refused(lambda: figure(own, **{option: value}), ValueError)  # noqa: B023


@pytest.mark.parametrize("transform", [None, "log", 3, True, ["log1p"], np.array(["none", "log1p"])], ids=str)
def test_a_transform_is_one_of_two(transform):
    assert "transform" in refused(lambda: plot.distribution(LOSSES, transform=transform).figure, ValueError)


@pytest.mark.parametrize("positive", ["c", 2, -1, 0.5, [1], True], ids=str)
@pytest.mark.parametrize("figure", [plot.roc_curves, plot.precision_recall_curves])
def test_the_class_to_find_is_one_of_them(figure, positive):
    refused(lambda: figure(CLASSES, positive=positive), ValueError)


VALUES = {
    "infinite": (np.inf, "none"),
    "NaN": (np.nan, "none"),
    "beyond squares": (1e200, "none"),
    "no logarithm": (-1.0, "log1p"),
}


@pytest.mark.parametrize("value", VALUES)
def test_values_that_cannot_be_drawn_are_refused(value):
    number, transform = VALUES[value]
    spoiled = replace(LOSSES, test_mean=np.append(LOSSES.test_mean[:-1], number))
    refused(lambda: plot.distribution(spoiled, transform=transform).figure, ValueError)


@pytest.mark.parametrize("scale", [1e149, 1e-149, 1e-200, 5e-324])
def test_large_and_small_values_are_drawn(scale, tmp_path):
    figure = plot.distribution(random_losses(scale=scale)).figure
    figure.savefig(tmp_path / "figure.png")
    assert all(np.isfinite(line.get_ydata()).all() for axes in figure.axes for line in axes.lines)
    plt.close(figure)
