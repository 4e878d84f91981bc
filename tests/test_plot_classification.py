"""Figures of classifiers: that they show what they were given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from jaxgen import plot
from jaxgen.stats import metrics
from jaxgen.stats.metrics import roc

RANDOM = np.random.default_rng(0)
Y = np.eye(2)[RANDOM.integers(2, size=90)]


def rows(noise):
    """Eight classifiers, each tested on two thirds of the cases."""
    right = 1 / (1 + np.exp(-2 * (Y[:, 1] - 0.5) - noise * RANDOM.normal(size=(8, 90))))
    test = np.argsort(RANDOM.random((8, 90)), axis=1) < 60
    return metrics.Predictions.from_arrays(
        Y, np.stack([1 - right, right], axis=-1), test, ("no", "yes"), learner=f"noise {noise}"
    )


FIRST, SECOND = rows(0.5), rows(2.0)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_roc_curves_are_those_of_the_pooled_rows_with_their_operating_points():
    (axes,) = plot.roc_curves(FIRST, SECOND).figure.axes
    drawn = [line.get_xydata() for line in axes.lines]
    for one in (FIRST, SECOND):
        curve, point = roc.curve(one.pooled()), roc.operating_point(one.pooled())
        for want in (
            np.stack([curve.false_positive, curve.true_positive], 1),
            np.stack([curve.false_positive[curve.hull], curve.true_positive[curve.hull]], 1),
            [[point.false_positive, point.true_positive]],
        ):
            assert any(
                np.shape(line) == np.shape(want) and np.allclose(line, want, rtol=0, atol=1e-12) for line in drawn
            )
    assert len(axes.collections) == 2  # a band each
    assert axes.get_ylabel() == "true positive rate, class yes"


def test_a_band_holds_the_share_of_rows_that_it_says():
    (axes,) = plot.precision_recall_curves(FIRST, share=0.5).figure.axes
    (band,) = axes.collections
    heights = np.asarray(band.get_paths()[0].vertices)
    for share in (0.25, 0.5, 0.75):
        values = metrics.precision_at(FIRST, np.array([share]))[:, 0]
        ends = [v for x, v in heights if np.isclose(x, share)]
        np.testing.assert_allclose([min(ends), max(ends)], np.quantile(values, [0.25, 0.75]), rtol=1e-9)


@pytest.mark.parametrize("figure", [plot.roc_curves, plot.precision_recall_curves])
def test_nothing_and_other_numbers_of_labels_are_refused(figure):
    with pytest.raises(ValueError, match="expected"):
        figure()
    with pytest.raises(ValueError, match="expected"):
        figure(FIRST, labels=["a", "b"])
