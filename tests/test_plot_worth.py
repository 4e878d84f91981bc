"""Figures of the worth of cases: that they show what they were given."""

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from given import made
from hostile import refused
from matplotlib.colors import to_hex

from jaxgen import plot, resample
from jaxgen.stats import worth

RANDOM = np.random.default_rng(0)
PLAN = resample.half_samples(jax.random.key(0), 30, 200, range(20, 30))
LOSSES = made(RANDOM.gamma(2.0, size=PLAN.shape), PLAN)
WORTHS, OWN = worth.banzhaf(LOSSES), worth.out_of_bag(LOSSES)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("worths", [WORTHS, OWN], ids=["value cases", "own"])
def test_values_are_sorted_with_both_bands(worths):
    left, right = plot.case_worths(worths, marked=[3, 7], count=6).figure.axes
    np.testing.assert_array_equal(left.lines[0].get_ydata(), np.sort(worths.estimate))
    outer, inner = (path.get_paths()[0].vertices[:, 1] for path in left.collections)
    lower, upper = worths.limits(0.95)
    assert outer.min() == pytest.approx(lower.min())
    assert outer.max() == pytest.approx(upper.max())
    assert inner.max() == pytest.approx((worths.estimate + 1.959964 * worths.monte_carlo).max(), rel=1e-6)
    assert [text.get_text() for text in right.get_yticklabels()] == [str(case) for case in worths.worst(6)]
    (special,) = [line for line in left.lines if to_hex(line.get_color()).upper() == "#D55E00"]
    assert sorted(special.get_ydata()) == sorted(worths.estimate[[3, 7]])


def test_cases_have_labels_and_there_may_be_few():
    names = [f"patient {i} with a name beyond what fits" for i in range(20)]
    _, right = plot.case_worths(WORTHS, labels=names, count=50).figure.axes
    texts = [text.get_text() for text in right.get_yticklabels()]
    assert len(texts) == 20
    assert texts[0].startswith(f"patient {WORTHS.worst(1)[0]} with")
    assert max(map(len, texts)) <= 24


@pytest.mark.parametrize("marked", [3, "a", [25], [0.5], [True], [None], {"a": 1}], ids=str)
def test_marked_cases_have_a_worth(marked, own_messages):
    assert "marked" in refused(lambda: plot.case_worths(WORTHS, marked=marked).figure, ValueError)


@pytest.mark.parametrize("of", [worth.influence, worth.datamodels])
def test_the_map_shows_influences_beyond_their_error_by_label(of):
    found = of(LOSSES)
    labels = ["ab"[case % 2] for case in range(30)]
    figure = plot.influence_map(found, labels=labels).figure
    axes = figure.axes[0]
    image = axes.images[0].get_array()
    expected = np.where(found.beyond(0.95), found.estimate, 0)
    np.testing.assert_array_equal(np.sort(image, axis=None), np.sort(expected, axis=None))
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b"]
    assert axes.get_yticks().tolist() == [4.5, 14.5]
    even = np.sort(expected[::2][:, ::2], axis=None)
    np.testing.assert_array_equal(np.sort(image[:10, :15], axis=None), even)
    assert plot.influence_map(found).figure.axes[0].get_xticks().size == 0


def test_cases_that_do_the_same_stand_together():
    """Two groups, each of which helps its own and harms the other."""
    side = np.where(np.arange(20) % 2, 1.0, -1.0)
    values = np.zeros(PLAN.shape)
    values[:, 20:] = -(PLAN.train[:, :20] * side).sum(1)[:, None] * np.where(np.arange(10) % 2, 1, -1)
    found = worth.influence(made(values + RANDOM.normal(size=PLAN.shape), PLAN))
    image = plot.influence_map(found).figure.axes[0].images[0].get_array()
    signs = np.sign(image[:, np.abs(image).sum(0) > 3])
    assert (np.abs(np.diff(signs, axis=0)) == 2).sum() <= 2 * signs.shape[1]
