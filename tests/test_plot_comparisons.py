"""Figures of comparisons of several learners: that they show what they were given."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from jaxgen.plot import comparisons as plot
from jaxgen.stats import compare

RANDOM = np.random.default_rng(0)
CASES = RANDOM.gamma(2.0, size=(80, 5)) + 0.25 * np.array([3, 0, 4, 1, 2])
BLOCKS = RANDOM.normal(size=(15, 7)) + 0.4 * np.array([3, 0, 4, 1, 2, 6, 5])
PAIRS, RANKS = compare.max_t(CASES, resamples=199), compare.nemenyi(BLOCKS)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("against", [None, 2])
def test_the_matrix_has_the_differences_p_values_and_colours(against):
    pairs = compare.max_t(CASES, against=against, resamples=199)
    (axes,) = plot.comparison_matrix(pairs).figure.axes
    order = [int(text.get_text()) - 1 for text in axes.get_yticklabels()]
    assert order == [int(text.get_text()) - 1 for text in axes.get_xticklabels()] == np.argsort(CASES.mean(0)).tolist()
    estimate, adjusted = pairs.matrix("estimate"), pairs.matrix("adjusted")
    assert len(axes.texts) == len(axes.patches) == 2 * len(pairs.first)
    for text, patch in zip(axes.texts, axes.patches, strict=True):
        column, row = text.get_position()
        i, j = order[row], order[column]
        assert text.get_text().split("\n")[0].replace("\N{MINUS SIGN}", "-") == f"{estimate[i, j]:+.3g}"
        assert text.get_text().endswith(f"p = {adjusted[i, j]:.3f}" if adjusted[i, j] < 0.995 else "p = 1")
        assert to_hex(patch.get_facecolor()).upper() == (plot.BETTER if estimate[i, j] > 0 else plot.WORSE)
        assert patch.get_alpha() == (1 if adjusted[i, j] <= 0.05 else 0.12)
        assert patch.get_x() + patch.get_width() / 2 == pytest.approx(column)


def test_long_names_are_numbered():
    (axes,) = plot.comparison_matrix(PAIRS, labels=[f"a learner of number {i}" for i in range(5)]).figure.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["#1", "#2", "#3", "#4", "#5"]
    assert axes.get_yticklabels()[0].get_text() == f"a learner of number {np.argmin(CASES.mean(0))}  #1"


def test_the_diagram_has_the_ranks_the_groups_and_the_critical_difference():
    (axes,) = plot.critical_difference(RANKS, labels=list("abcdefg")).figure.axes
    names = [text.get_text() for text in axes.texts[:7]]
    assert names == [f"{'abcdefg'[i]} ({RANKS.ranks[i]:.2f})" for i in np.argsort(RANKS.ranks, kind="stable")]
    np.testing.assert_array_equal([line.get_xdata()[0] for line in axes.lines[:7]], np.sort(RANKS.ranks))
    bars = axes.lines[7 : 7 + len(RANKS.groups())]
    for bar, group in zip(bars, RANKS.groups(), strict=True):
        reach = RANKS.ranks[list(group)]
        assert bar.get_xdata() == pytest.approx([reach.min() - 0.045, reach.max() + 0.045])
    assert np.ptp(axes.lines[-1].get_xdata()) == pytest.approx(RANKS.critical_difference)
    assert f"critical difference {RANKS.critical_difference:.2f} at 0.05" in [text.get_text() for text in axes.texts]


@pytest.mark.parametrize(
    "values",
    [np.ones((5, 3)), np.arange(10.0).reshape(5, 2), np.tile(np.arange(12.0), (9, 1))],
    ids=["equal", "two", "twelve"],
)
def test_odd_comparisons_are_drawn(values, tmp_path):
    plot.critical_difference(compare.nemenyi(values)).figure.savefig(tmp_path / "ranks.png")
    plot.comparison_matrix(compare.max_t(values, resamples=19)).figure.savefig(tmp_path / "pairs.png")


SETS = replace(
    PAIRS,
    **{
        name: np.tile(getattr(PAIRS, name), (3, 1))
        for name in ("estimate", "statistic", "p_value", "adjusted", "lower", "upper")
    },
)
BAD = {
    "several sets": (
        lambda: plot.comparison_matrix(SETS).figure,
        r"the pairs of one data set, got those of 3; compare the learners of one, losses\[q\]",
    ),
    "labels of pairs": (
        lambda: plot.comparison_matrix(PAIRS, ["a"]).figure,
        "5 labels, one for each of the learners, got 1",
    ),
    "labels of ranks": (
        lambda: plot.critical_difference(RANKS, ["a"]).figure,
        "7 labels, one for each of the learners, got 1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_drawn_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()
