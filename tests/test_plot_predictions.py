"""Figures of prediction intervals: that they show what they were given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hostile import refused

from jaxgen import plot
from jaxgen.stats.conformal import PredictionIntervals

RANDOM = np.random.default_rng(0)
MIDDLE = RANDOM.normal(size=(30, 2))


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def intervals(lower=1.0, upper=2.0, middle=MIDDLE, alternative="two-sided"):
    return PredictionIntervals(
        method="a method",
        source="given",
        target="new cases",
        unit="weight",
        learner="Mean()",
        prediction=middle,
        lower=middle - lower,
        upper=middle + upper,
        level=0.9,
        alternative=alternative,
        guarantee=0.8,
        assumptions="luck",
        calibrated=20,
    )


@pytest.mark.parametrize("output", [0, 1])
def test_intervals_stand_in_the_order_of_their_predictions(output):
    y = MIDDLE + RANDOM.normal(size=MIDDLE.shape) * 2
    panel = plot.prediction_intervals(intervals(), y=y, output=output).figure.axes[0]
    order = np.argsort(MIDDLE[:, output])
    segments = np.array(panel.collections[0].get_segments())
    np.testing.assert_allclose(segments[:, :, 1], MIDDLE[order, output][:, None] + [-1.0, 2.0])
    prediction, covered, missed = (np.asarray(line.get_xydata()) for line in panel.lines)
    np.testing.assert_allclose(prediction[:, 1], MIDDLE[order, output])
    inside = np.abs(y[order, output] - MIDDLE[order, output] - 0.5) <= 1.5
    np.testing.assert_allclose(covered, np.column_stack([np.arange(30), y[order, output]])[inside])
    np.testing.assert_allclose(missed, np.column_stack([np.arange(30), y[order, output]])[~inside])
    assert f"{inside.sum()} of 30 covered" in panel.get_title()


def test_methods_share_an_axis_and_infinite_limits_end_at_the_edge():
    figure = plot.prediction_intervals(
        intervals(), intervals(np.inf, alternative="less"), labels=["two", "one"], output=1
    ).figure
    first, second = figure.axes
    assert first.get_ylim() == second.get_ylim()
    assert np.isfinite(first.get_ylim()).all()
    assert "two: 90% intervals" in first.get_title()
    assert second.get_title() == "one: 90% upper limits"
    ends = np.array(second.collections[0].get_segments())[:, 0, 1]
    np.testing.assert_allclose(ends, second.get_ylim()[0])


@pytest.mark.usefixtures("own_messages")
def test_what_does_not_belong_together_is_refused():
    refused(lambda: plot.prediction_intervals().figure)
    refused(lambda: plot.prediction_intervals(intervals(), intervals(middle=MIDDLE[:5])).figure)
    refused(lambda: plot.prediction_intervals(intervals(middle=np.stack([MIDDLE] * 2))).figure)
    refused(lambda: plot.prediction_intervals(intervals(), output=2).figure)
    refused(lambda: plot.prediction_intervals(intervals(), y=MIDDLE[:, 0]).figure)
    refused(lambda: plot.prediction_intervals(intervals(), y="a").figure)
