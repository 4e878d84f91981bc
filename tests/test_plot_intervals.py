"""Figures of intervals, learning curves and standard errors: that they show what they were given."""

from dataclasses import replace

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from jaxgen import loss, plot, resample
from jaxgen.stats import estimate, interval
from jaxgen.types import Losses
from jaxgen.types.result import Result, described

RANDOM = np.random.default_rng(0)


def result(value, lower=np.nan, upper=np.nan, method="a method", target="ER", **changes):
    number = [np.asarray(v, np.float64) for v in (value, np.nan, np.nan, lower, upper)]
    return Result(
        **{
            "method": method,
            "source": "given",
            "target": target,
            "unit": "squared loss",
            "learner": "Mean()",
            "level": 0.95,
        }
        | changes,
        **dict(zip(FIELDS, number, strict=True)),
    )


FIELDS = ("estimate", "standard_error", "df", "lower", "upper")
RESULTS = (
    result(30.0, 25.0, 36.0, "one"),
    result(31.0, 22.0, np.inf, "two", "R"),
    result(29.0, -np.inf, 35.0, "three"),
    described("four", "given", "the training error", "squared loss", "Mean()", np.asarray(27.0)),
    described("five", "given", "R", "squared loss", "Mean()", np.asarray(33.0), np.asarray(2.5)),
)
"""One interval of each kind."""
ORDER = [0, 2, 1, 4, 3]
"""Where they stand: under ER, R and the training error."""


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def points_of(line):
    return np.asarray(line.get_xydata())


def rows_of(axes, results):
    """The lines of each result, from the top, by their heights; and the texts at its height."""
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(points) == len(results)
    for one in points:
        height = one.get_ydata()[0]
        yield (
            one,
            [line for line in axes.lines if line is not one and np.all(line.get_ydata() == height)],
            [text.get_text() for text in axes.texts if text.xy[1] == height],
        )


def test_a_forest_has_the_numbers_of_its_results():
    (axes,) = plot.interval_forest(*RESULTS).figure.axes
    left, right = axes.get_xlim()
    assert left < 22
    assert right > 36
    for i, (centre, lines, _) in zip(ORDER, rows_of(axes, RESULTS), strict=True):
        one = RESULTS[i]
        assert centre.get_xdata()[0] == one.estimate
        assert (centre.get_markerfacecolor() == "white") == np.isnan(one.lower)
        if np.isnan(one.lower):
            assert not lines
            continue
        ends = np.clip([one.lower, one.upper], left, right)
        np.testing.assert_array_equal(lines[0].get_xdata(), ends)
        assert [line.get_xdata()[0] for line in lines[1:]] == ends.tolist()
        assert [line.get_marker() for line in lines[1:]] == [
            "<" if one.lower == -np.inf else "|",
            ">" if one.upper == np.inf else "|",
        ]


def test_a_forest_says_method_numbers_and_target():
    (axes,) = plot.interval_forest(*RESULTS).figure.axes
    said = [texts for _, _, texts in rows_of(axes, RESULTS)]
    minus = "\N{MINUS SIGN}\N{INFINITY}"
    assert said == [
        ["one", "30 [25, 36]"],
        ["three", f"29 ({minus}, 35]"],
        ["two", "31 [22, \N{INFINITY})"],
        ["five", "33 (s.e. 2)"],
        ["four", "27"],
    ]
    headings = [text for text in axes.texts if text.get_weight() == "bold"]
    assert [text.get_text() for text in headings] == ["about ER", "about R", "about the training error"]
    heights = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "o"]
    tops = np.searchsorted(heights, [text.xy[1] for text in headings])
    assert tops.tolist() == [0, 2, 4]
    assert "estimate [95% interval]" in [text.get_text() for text in axes.texts]
    assert axes.get_xlabel() == "squared loss of Mean()"


def test_targets_have_colours_of_their_own():
    (axes,) = plot.interval_forest(*RESULTS).figure.axes
    assert [to_hex(centre.get_color()).upper() for centre, _, _ in rows_of(axes, RESULTS)] == [
        plot.COLOURS[i] for i in (0, 0, 1, 1, 2)
    ]


@pytest.mark.parametrize("truth", [28.0, {"ER": 28.0, "R": 40.0}])
def test_the_truth_is_drawn_beside_the_results_that_it_is_about(truth):
    (axes,) = plot.interval_forest(*RESULTS, truth=truth).figure.axes
    drawn = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert [line.get_xdata()[0] for line in drawn] == ([28.0] * 3 if truth == 28.0 else [28.0, 40.0])
    heights = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "o"]
    for line, inside in zip(drawn, (heights[:2], heights[2:4], heights[4:]), strict=False):
        low, high = points_of(line)[:, 1]
        assert [low < height < high for height in heights] == [height in inside for height in heights]
    assert axes.get_xlim()[1] > np.max([line.get_xdata()[0] for line in drawn])
    assert axes.texts[1].get_text() == "about ER (truth 28)"
    assert axes.get_xlabel().endswith("; dashed: truth")


NAMED = {
    "learners": (
        [result(1.0), result(2.0, learner="LeastSquares()")],
        None,
        ["Mean()", "LeastSquares()"],
        "squared loss; a method",
    ),
    "both": (
        [result(1.0), result(2.0, method="b", learner="")],
        None,
        ["Mean(): a method", "not named: b"],
        "squared loss",
    ),
    "given": (
        [result(1.0, unit="AUC of class x"), result(2.0, unit="AUC of class x")],
        ["x", ""],
        ["x", ""],
        "AUC of class x of Mean()",
    ),
    "long": (
        [result(1.0, method="a method with a name of two lines")],
        None,
        ["a method with a name of two\nlines"],
        "squared loss of Mean()",
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_rows_are_named_by_what_tells_them_apart(case):
    results, labels, names, unit = NAMED[case]
    (axes,) = plot.interval_forest(*results, labels=labels).figure.axes
    assert [texts[0] for _, _, texts in rows_of(axes, results)] == names
    assert axes.get_xlabel() == unit


NUMBERS = {
    "shares": ([result(0.0512, 0.0408, 0.0634)], ["0.051 [0.041, 0.063]"], "estimate [95% interval]"),
    "levels": (
        [result(9.0, 8.0, 10.0), result(10.5, 9.0, 12.0, level=0.9)],
        ["\N{FIGURE SPACE}9.0 [8.0, 10.0] 95%", "10.5 [9.0, 12.0] 90%"],
        "estimate [interval] level",
    ),
    "large": ([result(1e9, 0.9e9, 1.1e9)], ["1e+09 [9e+08, 1.1e+09]"], "estimate [95% interval]"),
    "negative": ([result(-1.0, -2.0, 0.0)], ["\N{MINUS SIGN}1.0 [\N{MINUS SIGN}2.0, 0.0]"], "estimate [95% interval]"),
    "no length": ([result(3.0, 3.0, 3.0)], ["3.000 [3.000, 3.000]"], "estimate [95% interval]"),
    "points": ([result(3.25)], ["3.250"], "estimate"),
    "zero": ([result(0.0, 0.0, 0.0)], ["0.0 [0.0, 0.0]"], "estimate [95% interval]"),
    "unbounded": (
        [result(3.0, -np.inf, np.inf)],
        ["3.000 (\N{MINUS SIGN}\N{INFINITY}, \N{INFINITY})"],
        "estimate [95% interval]",
    ),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_have_the_digits_that_matter(case, tmp_path):
    results, written, header = NUMBERS[case]
    figure = plot.interval_forest(*results).figure
    figure.savefig(tmp_path / "forest.png")
    assert [texts[1] for _, _, texts in rows_of(figure.axes[0], results)] == written
    assert figure.axes[0].texts[0].get_text() == header


def test_a_forest_keeps_its_texts_apart():
    figure = plot.interval_forest(
        *RESULTS,
        result(
            30.0,
            29.0,
            31.0,
            "a method with a very long name that takes three lines of the figure",
            "a target with a long name " * 4,
        ),
    ).figure
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1 for box in boxes)


# learning curves


def at_sizes(learner="a", noise=1.0, fractions=(0.8, 0.6, 0.4, 0.2), cases=100, b=30.0):
    """Losses that fall as 2 + b/m, of random splits."""
    found = []
    for number, fraction in enumerate(fractions):
        plan = resample.leave_out(jax.random.key(number), cases, fraction, 150)
        values = 2 + b / plan.train_sizes[0] + noise * RANDOM.normal(size=cases)[None] + np.zeros((150, 1))
        means = [np.sum(w * values, -1) / w.sum(-1) for w in (plan.test, plan.train)]
        found.append(Losses(*means, plan, learner, "squared", np.zeros(150, np.uint8), values=values))
    return found


CURVE, FEWER = (
    estimate.inverse_curve(at_sizes(), standard_error="cases"),
    estimate.inverse_curve(at_sizes("b", fractions=(0.75, 0.5), cases=60), standard_error="cases"),
)
POWER = estimate.power_curve(at_sizes("c"), standard_error="cases")


def test_a_learning_curve_has_points_with_errors_law_band_and_limit():
    figure = plot.learning_curve(CURVE).figure
    (axes,) = figure.axes
    inside, beyond, points = axes.lines[:3]
    np.testing.assert_array_equal(points_of(points).T, [CURVE.sizes, CURVE.error])
    (bars,) = axes.containers[0][2]
    np.testing.assert_allclose(
        [part[:, 1] for part in bars.get_segments()],
        np.stack([CURVE.error - CURVE.standard_error, CURVE.error + CURVE.standard_error], 1),
        rtol=1e-12,
    )
    assert (inside.get_linestyle(), beyond.get_linestyle()) == ("-", "--")
    assert [*points_of(inside)[[0, -1], 0], *points_of(beyond)[[0, -1], 0]] == pytest.approx([20, 80, 80, 100])
    for line, band in zip((inside, beyond), axes.collections[:2], strict=True):
        corners = band.get_paths()[0].vertices
        for n, height in points_of(line)[[0, 70, -1]]:
            law = CURVE.at(float(n))
            assert height == pytest.approx(float(law.estimate))
            ends = corners[np.isclose(corners[:, 0], n, rtol=1e-9), 1]
            assert [ends.min(), ends.max()] == pytest.approx(
                [float(law.estimate - law.standard_error), float(law.estimate + law.standard_error)]
            )
    assert [band.get_alpha() for band in axes.collections[:2]] == [0.25, 0.12]  # paler beyond
    (limit,) = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert limit.get_ydata()[0] == CURVE.parameters[0]
    assert [line.get_xdata()[0] for line in axes.lines if line.get_color() == "0.6"] == [100.0]
    assert axes.texts[0].get_text() == "all 100 cases"
    assert (axes.get_xscale(), axes.get_xlabel(), axes.get_ylabel()) == (
        "log",
        "training cases",
        "mean squared loss of test cases",
    )
    assert axes.get_xticks().tolist() == [20, 40, 60, 80, 100]
    (said,) = [text.get_text() for text in figure.legends[0].get_texts()]
    a, here, sign = CURVE.parameters[0], CURVE.at(), "\N{PLUS-MINUS SIGN}"
    # two digits of the standard errors
    assert (
        said == f"a, a + b/n\nlimit {a:.2f} {sign} {np.sqrt(CURVE.covariance[0, 0]):.2f}; "
        f"{here.estimate:.3f} {sign} {here.standard_error:.3f} at 100 cases"
    )


def test_several_curves_go_to_a_size_on_request():
    figure = plot.learning_curve(CURVE, FEWER, POWER, labels=["x", "y", "z"], to=400.0).figure
    (axes,) = figure.axes
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert [line.get_xdata()[-1] for line in dashed] == pytest.approx([400.0] * 3)
    assert [to_hex(line.get_color()).upper() for line in dashed] == list(plot.COLOURS[:3])
    assert [text.get_text() for text in axes.texts] == ["all 60 cases", "all 100 cases"]
    assert [text.get_text().split("\n")[0] for text in figure.legends[0].get_texts()] == [
        "x, a + b/n",
        "y, a + b/n",
        "z, a + b n^-c",
    ]
    assert f"exponent {POWER.parameters[2]:.1f}"[:11] in figure.legends[0].get_texts()[2].get_text()


def test_what_is_not_known_of_a_curve_is_not_drawn(tmp_path):
    flat = estimate.power_curve(
        [
            replace(one, values=one.values - 30 / one.plan.train_sizes[0], test_mean=one.test_mean * 0 + 2)
            for one in at_sizes()
        ],
        standard_error="cases",
    )
    hidden = replace(CURVE, standard_error=np.where(CURVE.sizes == 40, np.nan, CURVE.standard_error))
    figure = plot.learning_curve(flat, hidden).figure
    figure.savefig(tmp_path / "curves.png")
    (axes,) = figure.axes
    assert len([line for line in axes.lines if line.get_linestyle() == ":"]) == 1
    first, _ = (text.get_text() for text in figure.legends[0].get_texts())
    assert first == "a, a + b n^-c\nlimit and exponent not determined; 2 at 100 cases"
    (open_points,) = [line for line in axes.lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())]
    assert open_points.get_xdata().tolist() == [40.0]
    assert "not known" in figure.legends[0].get_title().get_text()


def test_a_limit_out_of_proportion_is_told_but_does_not_squeeze_the_figure():
    far = replace(CURVE, parameters=np.array([-500.0, 502.0, 0.001]))
    axes = plot.learning_curve(far).figure.axes[0]
    assert axes.get_ylim()[0] > -10
    assert "limit \N{MINUS SIGN}500" in plot.learning_curve(far).figure.legends[0].get_texts()[0].get_text()


# standard errors


def splits(plan, learner="a"):
    """Losses of the mean as a predictor."""
    y = RANDOM.normal(size=plan.n)
    mean = (plan.train @ y / plan.train_sizes)[:, None] + np.zeros(plan.n)
    return Losses.from_predictions(y, mean, plan.train, plan.test, loss.squared, learner)


SPLITS = {
    "leave out": splits(resample.leave_out(jax.random.key(0), 40, 0.25, 120)),
    "folds": splits(resample.k_fold(jax.random.key(1), 42, 5, 6), "b"),
}


def first_rows(losses, r):
    return Losses(
        losses.test_mean[:r],
        losses.train_mean[:r],
        replace(losses.plan, train=losses.train[:r], test=losses.test[:r]),
        losses.learner,
        losses.loss,
        losses.failure[:r],
    )


@pytest.mark.parametrize("case", SPLITS)
def test_standard_errors_are_those_of_the_intervals(case):
    losses = SPLITS[case]
    figure = plot.standard_error_floor(losses).figure
    (axes,) = figure.axes
    corrected, naive, running, running_naive, floor = axes.lines
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--", "-", "--", ":"]
    rows = corrected.get_xdata()
    assert (rows[0], rows[-1]) == (2, losses.resamples)
    for r in (2, 3, 7, 20, losses.resamples):
        (i,) = np.flatnonzero(rows == r)
        part = first_rows(losses, r)
        assert running.get_ydata()[i] == pytest.approx(float(interval.corrected_t(part).standard_error), rel=1e-9)
        assert running_naive.get_ydata()[i] == pytest.approx(float(interval.naive_t(part).standard_error), rel=1e-9)
    whole, deviation = interval.corrected_t(losses), losses.g.std(ddof=1)
    assert floor.get_ydata()[0] == whole.parts["floor"]
    np.testing.assert_allclose(naive.get_ydata(), deviation / np.sqrt(rows))
    np.testing.assert_allclose(np.square(corrected.get_ydata()), deviation**2 / rows + whole.parts["floor"] ** 2)
    assert corrected.get_ydata()[-1] == pytest.approx(float(running.get_ydata()[-1]))
    assert axes.get_ylim()[0] == 0
    said = figure.legends[0].get_texts()[0].get_text()
    assert (
        said == f"{losses.learner}\ncorrected {whole.standard_error:.4g}, floor {whole.parts['floor']:.4g}, "
        f"naive {deviation / np.sqrt(losses.resamples):.4g}"
    )
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "number of resamples, r",
        "standard error of the mean squared loss",
    )


def test_several_plans_are_compared():
    figure = plot.standard_error_floor(*SPLITS.values(), labels=["x", "y"]).figure
    (axes,) = figure.axes
    assert [to_hex(line.get_color()).upper() for line in axes.lines] == [plot.COLOURS[0]] * 5 + [plot.COLOURS[1]] * 5
    assert [text.get_text().split("\n")[0] for text in figure.legends[0].get_texts()] == ["x", "y"]
    assert axes.get_xlim()[1] > 120
    assert axes.get_xticks().tolist() == [2, 5, 10, 20, 50, 120]


@pytest.mark.parametrize("r", [3, 4])
def test_few_and_equal_rows_are_drawn(r, tmp_path):
    equal = first_rows(SPLITS["leave out"], r)
    figure = plot.standard_error_floor(replace(equal, test_mean=np.ones(r))).figure
    figure.savefig(tmp_path / "floor.png")
    assert not any(np.any(points_of(line)[:, 1]) for line in figure.axes[0].lines)


FAILED = replace(SPLITS["folds"], failure=np.ones(30, np.uint8), reasons=("it did not converge",))
SETS = replace(
    SPLITS["folds"],
    test_mean=np.ones((2, 30)),
    train_mean=np.ones((2, 30)),
    failure=np.zeros((2, 30), np.uint8),
    values=None,
    predictions=None,
)
BAD = {
    "no result": (
        plot.interval_forest,
        "expected one or more results of one data set, got 0 with numbers of shapes []",
    ),
    "results of sets": (
        lambda: plot.interval_forest(*RESULTS, result([1.0, 2.0], [0.0, 0.0], [3.0, 3.0])).figure,
        "got 6 with numbers of shapes [[], [], [], [], [], [2]]; make them of one, losses[q]",
    ),
    "units": (
        lambda: plot.interval_forest(*RESULTS, result(1.0, unit="zero_one loss")).figure,
        "expected results in one unit, got squared loss and zero_one loss; draw a figure of each",
    ),
    "no number": (
        lambda: plot.interval_forest(result(np.nan)).figure,
        "expected estimates that are finite, got nan by a method; leave it out",
    ),
    "labels of results": (
        lambda: plot.interval_forest(*RESULTS, labels=["a"]).figure,
        "expected 5 labels, one for each of the results, got 1",
    ),
    "truth": (
        lambda: plot.interval_forest(*RESULTS, truth={"ER ": 1.0}).figure,
        "expected the truth of targets among 'ER', 'R', 'the training error', got 'ER '; "
        "name the target as the result does",
    ),
    "no curve": (
        plot.learning_curve,
        "expected one or more curves of one data set each, got 0, 0 of them of several sets",
    ),
    "curves of sets": (
        lambda: plot.learning_curve(CURVE, replace(CURVE, error=np.ones((2, 4)))).figure,
        "got 2, 1 of them of several sets; choose a set with losses[q]",
    ),
    "units of curves": (
        lambda: plot.learning_curve(CURVE, replace(CURVE, unit="absolute loss")).figure,
        "expected curves in one unit, got squared loss and absolute loss",
    ),
    "labels of curves": (
        lambda: plot.learning_curve(CURVE, labels=["a", "b"]).figure,
        "expected 1 labels, one for each of the curves, got 2",
    ),
    "to": (
        lambda: plot.learning_curve(CURVE, to=79.0).figure,
        "expected the largest size drawn to be a finite number of at least 80, got 79.0",
    ),
    "no losses": (plot.standard_error_floor, "expected one or more losses of one data set each, got 0"),
    "losses of sets": (
        lambda: plot.standard_error_floor(SETS).figure,
        "got 1, 1 of them of several sets; choose a set with losses[q]",
    ),
    "units of losses": (
        lambda: plot.standard_error_floor(SPLITS["folds"], replace(SPLITS["folds"], loss="absolute")).figure,
        "expected losses in one unit, got squared and absolute",
    ),
    "labels of losses": (
        lambda: plot.standard_error_floor(SPLITS["folds"], labels=[]).figure,
        "expected 1 labels, one for each of the losses, got 0",
    ),
    "few rows": (
        lambda: plot.standard_error_floor(first_rows(SPLITS["leave out"], 2)).figure,
        "expected at least 3 resamplings to see what more of them gain, got 2; ask for more resamples",
    ),
    "failed": (
        lambda: plot.standard_error_floor(FAILED).figure,
        "expected every row to have been fitted, got 30 failed of 30",
    ),
    "bootstrap": (
        lambda: plot.standard_error_floor(splits(resample.bootstrap(jax.random.key(0), 20, 10))).figure,
        "expected random splits or folds for the corrected t-test, got given weights",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_drawn_is_told_in_a_sentence(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError) as error:  # noqa: PT011
        call()
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not plt.get_fignums()
