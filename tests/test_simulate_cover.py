"""Land cover: its classes, what is known of them, and that other tools find them as hard as they are meant to be."""

import jax
import numpy as np
import pytest
import scipy.stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from jaxgen import simulate

KEY, OTHER = jax.random.key(0), jax.random.key(1)


def labels(data):
    return data.y.argmax(-1)


@pytest.mark.parametrize(
    ("sets", "n", "classes", "inputs"), [(None, 7, 20, 6), (1, 7, 3, 2), (4, 5, 2, 1), (2, 1, 30, 9)]
)
def test_shapes(sets, n, classes, inputs):
    made = simulate.land_cover(KEY, sets, n, classes, inputs, reservoir=50)
    axis = () if sets is None else (sets,)
    assert made.data.x.shape == (*axis, n, inputs)
    assert made.data.y.shape == (*axis, n, classes)
    assert made.data.sets == sets
    assert made.data.task == "classification"
    assert made.reservoir.x.shape == (50, inputs)
    assert made.reservoir.y.shape == (50, classes)
    assert made.data.checked() is made.data
    assert made.data.classes == made.reservoir.classes
    assert len(set(made.data.classes)) == classes
    assert made.scene.means.shape == (classes, 2, inputs)
    assert made.scene.shares.sum() == pytest.approx(1, abs=1e-12)  # rounding


def same(one, other):
    return np.array_equal(one.x, other.x) and np.array_equal(one.y, other.y)


def test_the_keys_decide():
    one, again = (simulate.land_cover(KEY, 2, 50, reservoir=50) for _ in range(2))
    other = simulate.land_cover(OTHER, 2, 50, reservoir=50)
    assert same(one.data, again.data)
    assert same(one.reservoir, again.reservoir)
    assert one.error == again.error
    assert not np.any(one.data.x == other.data.x)
    assert not np.any(one.scene.means == other.scene.means)


def test_a_scene_may_be_shared_by_several_calls():
    one, other = (simulate.land_cover(key, 2, 50, scene=jax.random.key(7), reservoir=50) for key in (KEY, OTHER))
    assert same(one.reservoir, other.reservoir)
    assert np.array_equal(one.scene.means, other.scene.means)
    assert not np.any(one.data.x == other.data.x)
    assert not np.isin(one.data.x, one.reservoir.x).any()


def test_one_data_set_is_the_first_of_one():
    alone, first = simulate.land_cover(KEY, None, 50, reservoir=50), simulate.land_cover(KEY, 1, 50, reservoir=50)
    assert same(alone.data, first.data[0])


def test_both_precisions_draw_the_same():
    with jax.enable_x64(True):
        wide = simulate.land_cover(jax.random.key(0), 2, 7, reservoir=50)
    assert same(wide.data, simulate.land_cover(KEY, 2, 7, reservoir=50).data)


def test_classes_are_as_unequal_as_their_shares():
    made = simulate.land_cover(KEY, None, 20_000, reservoir=50)
    shares = made.scene.shares
    assert shares[0] / shares[-1] == pytest.approx(10, rel=1e-9)  # rounding
    assert (np.diff(shares) < 0).all()
    counts = made.data.y.sum(0)
    assert scipy.stats.chisquare(counts, 20_000 * shares).pvalue > 1e-3  # at this seed
    assert scipy.stats.chisquare(counts).pvalue < 1e-10


def test_data_sets_of_a_call_are_independent_and_of_one_scene():
    made = simulate.land_cover(KEY, 40, 300, reservoir=10_000)
    x, reservoir = made.data.x, made.reservoir.x
    assert len(np.unique(x[..., 0])) == x[..., 0].size  # no case comes twice
    # Means of 300 cases around the mean of the reservoir, in standard errors: independent, of one law and variance 1.
    deviations = (x.mean(1) - reservoir.mean(0)) / (reservoir.std(0) * np.sqrt(1 / 300 + 1 / 10_000))
    for each in deviations.T:
        assert scipy.stats.kstest(each, "norm").pvalue > 1e-3  # at this seed
        assert abs(np.corrcoef(each[:-1], each[1:])[0, 1]) < 4 / np.sqrt(39)  # 4 standard errors of a correlation
    counts = made.data.y.sum(1)
    assert scipy.stats.chi2_contingency(counts).pvalue > 1e-3  # one set of shares, at this seed


def test_probabilities_are_those_of_the_classes():
    """Each case falls into a class with the probability stated: sums over cases, within 4 standard errors."""
    made = simulate.land_cover(KEY, 2, 10_000, reservoir=50_000)
    p = made.probabilities(made.data.x)
    assert p.shape == made.data.y.shape
    assert p.sum(-1) == pytest.approx(np.ones((2, 10_000)), abs=1e-9)  # rounding
    for low, high in ((0, 0.1), (0.1, 0.4), (0.4, 0.7), (0.7, 0.95), (0.95, 1.01)):
        within = (p >= low) & (p < high)
        error = np.sqrt((p * (1 - p))[within].sum())
        assert abs((made.data.y - p)[within].sum()) < 4 * error
    wrong = np.mean(p.argmax(-1) != labels(made.data))
    assert abs(wrong - made.error) < 4 * np.sqrt(made.error * (1 - made.error) / 20_000 + made.error_error**2)
    np.testing.assert_allclose(made.probabilities(made.data.x[0, :3]), p[0, :3], rtol=1e-10)  # rounding


def test_probabilities_are_those_of_scipys_densities():
    made = simulate.land_cover(KEY, None, 20, 3, 2, reservoir=50)
    scene = made.scene
    joint = np.array(
        [
            sum(
                share * scipy.stats.multivariate_normal(mean, root @ root.T).pdf(made.data.x)
                for share, mean, root in zip(scene.stage_shares[k], scene.means[k], scene.roots[k], strict=True)
            )
            * scene.shares[k]
            for k in range(3)
        ]
    ).T
    expected = joint / joint.sum(-1, keepdims=True)
    np.testing.assert_allclose(made.probabilities(made.data.x), expected, rtol=1e-8)  # rounding of two formulas


@pytest.mark.parametrize("seed", range(3))
def test_other_tools_err_as_often_as_on_real_land_cover(seed):
    """Linear discriminants and neighbours trained on 1000 cases err in .3 to .5; more than the best rule."""
    made = simulate.land_cover(jax.random.key(seed), None, 1000, reservoir=5000)
    for tool in (LinearDiscriminantAnalysis(), KNeighborsClassifier(5)):
        fitted = tool.fit(made.data.x, labels(made.data))
        error = np.mean(fitted.predict(made.reservoir.x) != labels(made.reservoir))
        assert 0.3 < error < 0.5
        assert error > made.error + 0.05


@pytest.mark.slow
def test_networks_err_as_often_as_on_real_land_cover():
    """6 hidden units and 1000 cases: .3 to .5 at each of 4 scenes."""
    from jaxgen import assess, datasets, learn, loss, resample

    network = learn.Conjugate(learn.MLP((6,), init="glorot"), steps=60, objective="softmax_cross_entropy")
    for seed in range(4):
        made = simulate.land_cover(jax.random.key(seed), None, 1000, reservoir=4000)
        y = np.concatenate([made.data.y, made.reservoir.y])
        both = datasets.from_arrays(np.concatenate([made.data.x, made.reservoir.x]), y, task="classification")
        train = (np.arange(5000) < 1000)[None].astype(np.uint8)
        plan = resample.from_weights(train, 1 - train)
        losses = assess(KEY, learn.Normalised(network, how="standard"), both, plan, loss.zero_one)
        assert 0.3 < losses.g[0] < 0.5


def test_inputs_of_another_scene_are_refused(own_messages):
    made = simulate.land_cover(KEY, None, 5, reservoir=50)
    for x in (np.zeros((3, 5)), np.zeros((0, 6)), [[1.0] * 6, [1.0] * 5], 1.0, None):
        with pytest.raises(
            ValueError, match=r"expected x \[\.\.\., 6\] with at least one case, got .*; give every case"
        ):
            made.probabilities(x)
    for x in (np.full((2, 6), np.nan), [["a"] * 6]):
        with pytest.raises(ValueError, match="expected x as finite real numbers, got .*; convert them first"):
            made.probabilities(x)
