"""Figures: that they show what they were given."""

from dataclasses import replace

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from jaxgen import plot, resample
from jaxgen.stats import estimate
from jaxgen.types import Losses


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def losses(g, learner="Mean()", loss="squared", failed=()):
    g = np.asarray(g, np.float64)
    failure = np.zeros(g.shape, np.uint8)
    failure[list(failed)] = 1
    return Losses(
        g, g, resample.bootstrap(jax.random.key(0), 10, g.shape[-1]), learner, loss, failure, ("it did not converge",)
    )


def draws(seed, *shape):
    return np.random.default_rng(seed).gamma(3.0, size=shape or (50,))


FIRST, SECOND = losses(draws(0)), losses(draws(1) + 1, "LeastSquares()")


@pytest.mark.parametrize("transform", ["none", "log1p"])
def test_the_left_panel_is_the_distribution_function_with_its_band(transform):
    figure = plot.distribution(FIRST, SECOND, level=0.9, transform=transform).figure
    left, _ = figure.axes
    for one, line, band in zip((FIRST, SECOND), left.lines, left.collections, strict=True):
        function = estimate.ecdf(one.g if transform == "none" else np.log1p(one.g), level=0.9)
        np.testing.assert_allclose(line.get_xdata(), function.values)
        np.testing.assert_allclose(line.get_ydata(), function.probability)
        assert line.get_drawstyle() == "steps-post"
        corners = band.get_paths()[0].vertices
        lower, upper = function.band
        assert (corners[:, 1].min(), corners[:, 1].max()) == pytest.approx((lower.min(), upper.max()))
        assert (corners[:, 0].min(), corners[:, 0].max()) == pytest.approx(
            (function.values.min(), function.values.max())
        )
    assert left.get_ylim() == (0, 1)
    assert left.get_title() == "Distribution function, 90% band"
    label = {"none": "mean squared loss of the test cases, G", "log1p": "log(1 + G), G the mean squared loss"}
    assert left.get_xlabel() == label[transform]
    assert left.get_ylabel() == "share of resamplings"


def test_the_right_panel_has_densities_averages_and_medians():
    _, right = plot.distribution(FIRST, SECOND).figure.axes
    assert len(right.lines) == 6
    for one, (density, average, median) in zip((FIRST, SECOND), (right.lines[:3], right.lines[3:]), strict=True):
        grid, height = density.get_data()
        assert np.trapezoid(height, grid) == pytest.approx(1, abs=0.1)  # the grid ends soon after the values do
        assert average.get_xdata()[0] == pytest.approx(one.g.mean())
        assert median.get_xdata()[0] == pytest.approx(np.median(one.g))
        assert (average.get_linestyle(), median.get_linestyle()) == ("-", ":")
    assert right.get_ylim()[0] == 0
    assert right.get_ylabel() == "density"


def test_learners_are_told_apart_by_colour_and_label():
    many = [losses(draws(i), f"learner {i}") for i in range(8)]
    figure = plot.distribution(*many).figure
    left, right = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [one.learner for one in many]
    colours = [to_hex(line.get_color()).upper() for line in left.lines]
    assert tuple(colours) == (*plot.COLOURS, plot.COLOURS[0])
    assert [to_hex(line.get_color()).upper() for line in right.lines[::3]] == colours
    named = plot.distribution(FIRST, SECOND, labels=["the mean", "a line"]).figure
    assert [text.get_text() for text in named.legends[0].get_texts()] == ["the mean", "a line"]


def test_densities_run_out_three_bandwidths_beyond_the_values():
    """A kernel is exp(-9 / 2) of its height there, 1.1 %, of one value among 50."""
    far = losses(draws(0) + 100)
    grid, height = plot.distribution(far)[1].lines[0].get_data()
    bandwidth = far.g.std(ddof=1) * len(far.g) ** (-1 / 5)  # of Scott's rule
    assert grid[[0, -1]] == pytest.approx([far.g.min() - 3 * bandwidth, far.g.max() + 3 * bandwidth])
    assert max(height[0], height[-1]) < 0.012 * height.max()


def test_a_density_far_above_the_others_is_cut_and_the_legend_says_so():
    narrow = losses(FIRST.g.mean() + 0.01 * (FIRST.g - FIRST.g.mean()), "narrow")
    panels = plot.distribution(narrow, FIRST, SECOND)
    peaks = [line.get_ydata().max() for line in panels[1].lines[::3]]
    assert max(peaks[1:]) < panels[1].get_ylim()[1] < peaks[0] / 8
    said = [text.get_text() for text in panels.figure.legends[0].get_texts()]
    assert said == [f"narrow (density cut: its peak is {peaks[0]:.3g})", FIRST.learner, SECOND.learner]
    whole = plot.distribution(FIRST, SECOND)[1]
    assert whole.get_ylim()[1] > max(line.get_ydata().max() for line in whole.lines[::3])


def test_equal_values_have_no_density_but_are_shown():
    _, right = plot.distribution(losses(np.full(5, 2.0))).figure.axes
    assert [line.get_xdata()[0] for line in right.lines] == [2.0, 2.0]


@pytest.mark.parametrize(
    "g",
    [[1.0, 2.0], [1.0, 1.0, 1.0, 1.0, 5.0], np.r_[draws(0), 1e6], np.r_[draws(0), 0.0]],
    ids=["two", "ties", "outlier", "zero"],
)
def test_odd_values_are_drawn(g, tmp_path):
    figure = plot.distribution(losses(g)).figure
    figure.savefig(tmp_path / "figure.png")
    assert all(np.isfinite(line.get_ydata()).all() for axes in figure.axes for line in axes.lines)


BAD = {
    "two losses": (
        lambda: plot.distribution([FIRST, replace(SECOND, loss="absolute")]),
        "expected losses in one unit, got squared loss and absolute loss; draw a figure of each",
    ),
    "nothing": (lambda: plot.distribution().figure, "one or more learners on one data set, got 0 with sets"),
    "several sets": (
        lambda: plot.distribution(FIRST, losses(draws(0, 3, 50))).figure,
        r"on one data set, got 2 with sets \[None, 3\]; choose a set with losses\[q\]",
    ),
    "too few labels": (
        lambda: plot.distribution(FIRST, SECOND, labels=["one"]).figure,
        "2 labels, one for each of the losses, got 1; name",
    ),
    "unknown transform": (
        lambda: plot.distribution(FIRST, transform="log").figure,
        "transform to be one of 'none', 'log1p', got 'log'; choose",
    ),
    "failed rows": (lambda: plot.distribution(losses(draws(0), failed=[7])).figure, "got 1 failed of 50"),
    "one resampling": (lambda: plot.distribution(losses([1.0])).figure, "at least 2 resamplings"),
    "level": (
        lambda: plot.distribution(FIRST, level=95.0).figure,
        "level to be a number above 0 and below 1, got 95.0; give",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_drawn_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()
