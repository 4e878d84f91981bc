"""Figures of the tasks of DELVE: that they show what they were given."""

from dataclasses import replace
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text
from test_delve import effects, losses
from test_delve import task as instances

from jaxgen import delve
from jaxgen.delve import figure as drawing

NAMES = ("mlp-ese-1", "mlp-bgd-1", "mlp-bgd-2", "mlp-bgd-3", "mlp-mc-1", "mlp-mc-2", "mlp-mc-3", "mlp-mc-4")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@cache
def made(size, methods=3, standard=5.0, common=False, names=NAMES):
    """A task whose methods differ, the better the larger it is."""
    plan = instances(5, 8, common, size)
    shared = 0.3 * effects(5, 8, seed=size)
    tables = [
        8 - np.log2(size) / 3 + 0.2 * k + shared + 0.15 * effects(5, 8, seed=size + k + 1) for k in range(methods)
    ]
    return delve.analyse([losses(table, plan) for table in tables], standard, names[:methods])


def changed(task, **columns):
    """With other losses or standard errors of some methods, {name: {method: value}}."""
    values = {name: getattr(task, name).copy() for name in columns}
    for name, some in columns.items():
        values[name][list(some)] = list(some.values())
    return replace(task, **values)


def drawn(*given, **options):
    """The figure, of which the axes that came back are all."""
    axes = delve.task_figure(*given, **options)
    assert list(axes) == axes.figure.axes
    return axes.figure


def panels(figure):
    """The axes of losses, and those of p-values, from left to right."""
    return figure.axes[::2], figure.axes[1::2]


def texts(figure):
    return [one for one in figure.findobj(Text) if one.get_text().strip() and one.get_visible()]


def explained(figure):
    """What is written above and below the panels, as one line."""
    return " ".join(" ".join(text.get_text() for text in figure.texts).split())


def marks(axes):
    """Horizontal and vertical lines of a panel, {column: (ends of x, ends of y)}."""
    lines = [line for line in axes.lines if len(line.get_xdata()) == 2]
    flat = [line for line in lines if np.ptp(line.get_ydata()) == 0]
    return {round(np.mean(one.get_xdata())): one for one in flat}, {
        round(one.get_xdata()[0]): one for one in lines if one not in flat
    }


@pytest.mark.parametrize("methods", [2, 8])
@pytest.mark.parametrize("standardised", [False, True])
def test_panels_show_losses_and_standard_errors_in_the_order_of_sizes(methods, standardised):
    given = [made(size, methods) for size in (256, 64, 128)]
    left, _ = panels(drawn(given, "kin-8nm", standardised=standardised))
    assert [axes.get_title() for axes in left] == ["64", "128", "256"]
    assert {axes.get_ylim() for axes in left} == {left[0].get_ylim()}
    assert left[0].get_ylim()[0] == 0
    assert left[0].get_ylabel() == ("standardised squared loss" if standardised else "squared loss")
    for axes, task in zip(left, (given[1], given[2], given[0]), strict=True):
        flat, upright = marks(axes)
        assert sorted(flat) == sorted(upright) == list(range(methods))
        for k in range(methods):
            loss, error = (values[k] / (5 if standardised else 1) for values in (task.estimate, task.standard_error))
            np.testing.assert_allclose(flat[k].get_ydata(), [loss, loss], rtol=1e-12)  # divided once more
            np.testing.assert_allclose(flat[k].get_xdata(), [k - 0.4, k + 0.4], rtol=1e-12)
            np.testing.assert_allclose(upright[k].get_ydata(), [loss - error, loss + error], rtol=1e-12)
            assert np.asarray(upright[k].get_ydata())[1] < axes.get_ylim()[1]


@pytest.mark.parametrize("adjusted", [False, True])
def test_digits_stand_below_the_columns(adjusted):
    given = [made(size, 5) for size in (64, 128)]
    figure = drawn(given, adjusted=adjusted)
    above, below = panels(figure)
    for upper, axes, task in zip(above, below, given, strict=True):
        digits = task.digits(adjusted)
        shown = {(text.get_position()[1], text.get_position()[0]): text.get_text() for text in axes.texts}
        assert shown == {(row, column): letter for (row, column), letter in np.ndenumerate(digits) if letter != " "}
        for column in range(5):
            x = [one.transData.transform((column, 0))[0] for one in (upper, axes)]
            assert x[0] == pytest.approx(x[1])
        assert axes.get_position().y1 < upper.get_position().y0
        assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert [text.get_text() for text in below[0].get_yticklabels()] == list(NAMES[:5])
    assert [text.get_text() for text in below[1].get_yticklabels()] == []
    said = explained(figure)
    assert "DELVE's t-test, disjoint test sets" in said
    assert ("Holm 1979" in said, "each pair by itself" in said) == (adjusted, not adjusted)


def test_what_the_marks_mean_is_said_below():
    both = [made(64, common=True), made(128, common=True)]
    said = explained(drawn([both[0], replace(both[1], instances=4)], "a title"))
    for part in (
        "a title",
        "100 p, rounded up",
        "expected loss \N{PLUS-MINUS SIGN} standard error, 5, 4 instances.",
        "DELVE's quasi-F test, common test set",
    ):
        assert part in said
    assert "arrow" not in said
    assert "5 instances." in explained(drawn(both))


def test_a_loss_far_above_the_others_does_not_squash_them():
    """It is an arrow at the edge with its number; so is a standard error that alone is too large."""
    given = [
        made(64, 4),
        changed(made(128, 4), estimate={1: 300.0, 3: 31250.0}, standard_error={1: 299.0, 3: 4.0, 2: 200.0}),
        made(256, 4),
    ]
    figure = drawn(given)
    (first, second, _), _ = panels(figure)
    top = max(given[0].estimate + given[0].standard_error) / 5
    assert first.get_ylim() == second.get_ylim() == pytest.approx((0, drawing.HEADROOM * top))
    arrows = {round(line.get_xdata()[0]): line.get_ydata()[0] for line in second.lines if line.get_marker() == "^"}
    assert arrows == dict.fromkeys((1, 2, 3), second.get_ylim()[1])
    numbers = {text.xy[0]: text.get_text() for text in second.texts}
    assert numbers == {1: "60", 2: "\N{PLUS-MINUS SIGN}40", 3: "6250"}
    flat, upright = marks(second)
    assert (sorted(flat), sorted(upright)) == ([0, 2], [0, 1, 2])
    assert upright[2].get_ydata()[1] == upright[1].get_ydata()[1] == pytest.approx(drawing.MARGIN * top)
    assert upright[1].get_ydata()[0] == pytest.approx(0.2)
    assert not [line for line in first.lines if line.get_marker() == "^"]
    assert "arrow: beyond the axis, with the loss, or \N{PLUS-MINUS SIGN} the standard error" in explained(figure)


CUTS = {
    "near": ([1.0, 2.4], 0),
    "two": ([1.0, 2.6], 1),
    "most is not cut": ([1.0, 1.0, 5.0, 5.0], 0),
    "a third": ([1.0, 1.0, 1.0, 1.0, 5.0, 90.0], 2),
    "zero": ([0.0, 0.0, 3.0], 0),
    "all zero": ([0.0, 0.0, 0.0], 0),
    "negative": ([-4.0, -3.0, -1.0], 0),
    "both signs": ([-4.0, 1.0, 2.0], 0),
    "alone": ([3.0], 0),
}


@pytest.mark.parametrize("case", CUTS)
def test_the_axis_holds_all_but_few_losses(case):
    values, cut = CUTS[case]
    count = len(values)
    task = changed(made(64, count), estimate=dict(enumerate(values)), standard_error=dict.fromkeys(range(count), 0.0))
    figure = drawn([task], standardised=False)
    axes = figure.axes[0]
    assert sum(line.get_marker() == "^" for line in axes.lines) == cut
    low, high = axes.get_ylim()
    assert low < high
    assert low <= min(0, *values) <= max(sorted(values)[: count - cut]) <= high
    assert len(axes.get_yticks()) > 1


@pytest.mark.parametrize("methods", [1, 2, 5, 8])
@pytest.mark.parametrize("sizes", [1, 5])
def test_everything_is_inside_the_figure_and_legible(methods, sizes, tmp_path):
    given = [made(16 * 2**k, methods) for k in range(sizes)]
    figure = drawn([given[0], *given[1:-1], *[changed(one, estimate={0: 7e4}) for one in given[1:][-1:]]], "a title")
    figure.savefig(tmp_path / "figure.png")
    figure.savefig(tmp_path / "figure.pdf")
    whole = figure.bbox
    for text in texts(figure):
        box = text.get_window_extent()
        assert float(text.get_fontsize()) >= 7
        assert (box.x0 >= -1, box.y0 >= -1, box.x1 <= whole.x1 + 1, box.y1 <= whole.y1 + 1) == (True,) * 4, (
            text.get_text()
        )
    assert figure.get_size_inches()[0] <= 7.0
    columns = np.diff(figure.axes[0].transData.transform([(0, 0), (1, 0)])[:, 0]) / figure.dpi * 72
    assert columns >= drawing.NARROW - 0.01


def test_words_do_not_run_into_each_other():
    figure = drawn([made(16 * 2**k, 8) for k in range(5)], "a title")
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in texts(figure)]
    assert not [
        (i, j)
        for i, one in enumerate(boxes)
        for j, other in enumerate(boxes[:i])
        if min(one.x1, other.x1) - max(one.x0, other.x0) > 1 and min(one.y1, other.y1) - max(one.y0, other.y0) > 2
    ]


def test_long_names_are_numbered_and_told_below():
    names = (
        "Descent(network=Perceptron(hidden=20), steps=20000, stepsize=0.1)",
        "lin-1",
        "Neighbours(neighbours=3, metric='euclid')",
    )
    figure = drawn([made(64, names=names)])
    assert [text.get_text() for text in figure.axes[1].get_yticklabels()] == ["#1", "lin-1", "#3"]
    said = explained(figure)
    assert f"#1: {names[0]}" in said
    assert f"#3: {names[2]}" in said


def test_a_method_alone_has_no_p_values():
    figure = drawn([made(64, 1), made(128, 1)])
    assert not any(axes.texts for axes in panels(figure)[1])
    assert [text.get_text() for text in figure.texts] == [
        "Lines: expected loss \N{PLUS-MINUS SIGN} standard error, 5 instances."
    ]


BAD = {
    "nothing": (
        lambda: delve.task_figure([]),
        "expected one or more tasks, got none; give those that delve.analyse returns",
    ),
    "methods": (
        lambda: delve.task_figure([made(64), made(128, 2)]),
        "the same methods, got mlp-ese-1, mlp-bgd-1, mlp-bgd-2 and mlp-ese-1, mlp-bgd-1; draw",
    ),
    "units": (
        lambda: delve.task_figure([made(64), replace(made(128), unit="absolute loss")]),
        "the same loss, got squared loss and absolute loss",
    ),
    "sizes": (
        lambda: delve.task_figure([made(64), made(128), made(64)]),
        "each number of training cases once, got 64 several times",
    ),
    "no divisor": (
        lambda: delve.task_figure([made(64), made(128, standard=None)]),
        "the divisor of standardised losses, got none for 128 training cases; "
        "give delve.analyse its standard, or draw with standardised=False",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_drawn_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_raw_losses_need_no_divisor_and_standardised_ones_may_be_given():
    assert drawn([made(64, standard=None)], standardised=False).axes[0].get_ylabel() == "squared loss"
    assert drawn([made(64).standardised]).axes[0].get_ylabel() == "standardised squared loss"


def test_tasks_are_drawn_on_given_axes():
    """With the lines, digits and names of the figure of its own, long names included."""
    given = [made(size, names=("m" * 40, "b", "c")) for size in (64, 128)]
    figure, axes = plt.subplots(2, 2)
    order = [axes[0, 0], axes[1, 0], axes[0, 1], axes[1, 1]]
    assert delve.task_figure(given[::-1], "a title", ax=order) == tuple(order)
    for mine, own in zip(order, drawn(given).axes, strict=True):
        points = [[np.asarray(line.get_xydata()).tolist() for line in each.lines] for each in (mine, own)]
        assert points[0] == points[1]
        assert [text.get_text() for text in mine.texts] == [text.get_text() for text in own.texts]
    assert [label.get_text() for label in axes[1, 0].get_yticklabels()] == ["m" * 40, "b", "c"]
    assert figure.get_suptitle() == "a title"
    with pytest.raises(TypeError, match="expected 4 axes of Matplotlib, one for each panel, got .*; make them with"):
        delve.task_figure(given, ax=order[:3])
