"""What all figures have in common: how they take what they draw, where they draw it, what they return."""

import inspect

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.stats
from hostile import refused
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from test_hostile_figures import FIGURES, LOSSES, SINGLE, random_losses

from jaxgen import plot, resample
from jaxgen.stats import compare, interval
from jaxgen.types import Losses

PANELS = {"distribution": 2, "case_worths": 2, "prediction_intervals": 1}
SEVERAL = [name for name in FIGURES if name not in SINGLE]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def axes_of(drawn):
    return [drawn] if isinstance(drawn, Axes) else list(drawn)


def drawing(drawn):
    """What is drawn: lines, areas and texts of all panels."""
    return [
        (
            [np.asarray(line.get_xydata()).tolist() for line in axes.lines],
            len(axes.collections),
            [text.get_text() for text in axes.texts],
            axes.get_xlabel(),
        )
        for axes in axes_of(drawn)
    ]


def test_every_figure_is_tried():
    assert {name for name in plot.__all__ if inspect.isfunction(getattr(plot, name))} == set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_axes_are_returned_and_their_figure_is_known_to_pyplot(name, tmp_path):
    """Axes are not shown by a notebook, which shows the open figure of pyplot: so it is shown once. A figure that is
    returned would be shown a second time.
    """
    figure, what = FIGURES[name]
    drawn = figure(what)
    assert not isinstance(drawn, Figure)
    assert len(axes_of(drawn)) == PANELS.get(name, 1)
    assert all(isinstance(axes, Axes) for axes in axes_of(drawn))
    assert plt.get_fignums() == [drawn.figure.number]
    assert not hasattr(drawn, "_repr_html_")
    drawn.figure.savefig(tmp_path / "a.png")
    if name not in ("comparison_matrix", "critical_difference"):  # which say below what is compared
        assert axes_of(drawn)[-1].get_xlabel()


def test_panels_are_saved_as_a_figure_is(tmp_path):
    left, right = drawn = plot.distribution(LOSSES)
    drawn.savefig(tmp_path / "a.png", dpi=40)
    assert (tmp_path / "a.png").stat().st_size > 1000
    assert drawn.figure is left.figure is right.figure
    assert repr(drawn).startswith("Panels(<Axes")


@pytest.mark.parametrize("name", FIGURES)
def test_axes_that_are_given_are_drawn_on(name, own_messages):
    figure, what = FIGURES[name]
    number = PANELS.get(name, 1)
    given, panels = plt.subplots(1, 3)
    ax = panels[:number] if name in PANELS else panels[0]
    drawn = figure(what, ax=ax)
    assert axes_of(drawn) == panels[:number].tolist()
    assert plt.get_fignums() == [given.number]
    assert not panels[2].lines
    assert not panels[2].collections
    assert not given.legends
    for wrong in ("a", 3, given, [None], [panels[0]] * 4, panels[0] if name in PANELS else panels):
        assert "axes of Matplotlib" in refused(lambda: figure(what, ax=wrong), TypeError)  # noqa: B023
    assert plt.get_fignums() == [given.number]


@pytest.mark.parametrize("name", SEVERAL)
def test_things_come_one_by_one_in_a_list_or_under_their_labels(name):
    figure, what = FIGURES[name]
    plain = drawing(figure(what, what, labels=["x", "y"]))
    assert drawing(figure([what, what], labels=["x", "y"])) == plain
    assert drawing(figure((what, what), labels=["x", "y"])) == plain
    assert drawing(figure({"x": what, "y": what})) == plain
    assert drawing(figure({"a": what, "b": what}, labels=["x", "y"])) == plain
    plt.close("all")
    for empty in ([], {}, ()):
        refused(lambda: figure(empty), ValueError)  # noqa: B023
    for other in ([what, None], {"x": what, "y": 3}, [[what]]):
        refused(lambda: figure(other), TypeError)  # noqa: B023
    assert not plt.get_fignums()


def test_labels_of_losses_are_those_of_figures_and_tables():
    plan = resample.leave_out(jax.random.key(0), 40, 0.25, 30)
    first, second = random_losses("LeastSquares()", plan=plan), random_losses("Mean()", plan=plan)
    panels = plot.distribution(first.labelled("line"), second)
    assert [text.get_text() for text in panels.figure.legends[0].get_texts()] == ["line", "Mean()"]
    both = {"line": first, "mean": second}
    assert compare.pairwise(both, compare.corrected_t).learners == ("line", "mean")
    assert compare.friedman(both).learners == compare.nemenyi(both).learners == ("line", "mean")
    assert compare.pairwise(both, compare.corrected_t, labels=["a", "b"]).learners == ("a", "b")
    forest = plot.interval_forest({name: interval.corrected_t(each) for name, each in both.items()})
    assert [text.get_text() for text in forest.texts if text.get_text() in both] == ["line", "mean"]


@pytest.mark.parametrize(
    ("kind", "transform", "low", "high"),
    [
        ("squared", "none", 0, np.inf),
        ("zero_one", "none", 0, 1),
        ("zero_one", "log1p", 0, np.log(2)),
        ("log_score", "none", -np.inf, np.inf),
    ],
)
def test_densities_end_where_the_loss_does_and_keep_their_area(kind, transform, low, high):
    """Beyond the ends of what is possible the density of SciPy is mirrored."""
    g = np.r_[np.linspace(0, 0.2, 40), np.linspace(0.8, 1.0, 40)]
    plan = resample.bootstrap(jax.random.key(0), 10, len(g))
    losses = Losses(g, g, plan, "a", kind, np.zeros(len(g), np.uint8))
    _, right = plot.distribution(losses, transform=transform)
    grid, height = right.lines[0].get_data()
    assert grid.min() >= low
    assert grid.max() <= high + 1e-12
    values = g if transform == "none" else np.log1p(g)
    kernels = scipy.stats.gaussian_kde(values)
    want = kernels(grid) + sum(kernels(2 * end - grid) for end in (low, high) if np.isfinite(end))
    np.testing.assert_allclose(height, want, rtol=1e-6)
    if kind == "zero_one":
        assert np.trapezoid(height, grid) == pytest.approx(1, abs=1e-3)  # of 400 points


def test_differences_of_losses_may_be_negative():
    """What is measured is found by its name: a loss of one's own has no ends."""
    own = random_losses()
    own = Losses(own.test_mean - 5, own.train_mean, own.plan, "a", "mine", own.failure)
    grid = plot.distribution(own)[1].lines[0].get_xdata()
    assert grid.min() < own.g.min()


def test_the_colours_are_those_of_okabe_and_ito():
    used = {line.get_color() for line in plot.distribution([LOSSES] * 7, labels=list("abcdefg"))[0].lines}
    assert used == set(plot.COLOURS)
