"""Plans whose rows are drawn when they are needed."""

import pickle
import tracemalloc
from dataclasses import replace

import jax
import numpy as np
import pytest
import scipy.stats

from jaxgen import assess, datasets, learn, resample, store
from jaxgen.stats import estimate
from jaxgen.types.drawn import DrawnPlan, Recipe

KEY = jax.random.key(3)

MAKERS = {
    "leave_out": lambda n, rows: resample.leave_out(KEY, n, 0.25, rows, lazy=True),
    "mostly left out": lambda n, rows: resample.leave_out(KEY, n, 0.75, rows, lazy=True),
    "bootstrap": lambda n, rows: resample.bootstrap(KEY, n, rows, lazy=True),
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every_maker
def test_any_range_of_rows_is_that_of_the_whole(make):
    rows = 3 * make(2000, 1).recipe.block_rows + 17
    plan = make(2000, rows)
    whole = plan.train, plan.test
    for first, last in ((0, 1), (5, 2100), (2000, 2200), (rows - 20, rows)):
        some = make(2000, rows).rows(first, last)
        np.testing.assert_array_equal(some.train, whole[0][first:last])
        np.testing.assert_array_equal(some.test, whole[1][first:last])
        assert some.shape == (last - first, 2000)
    mask = np.random.default_rng(0).random(rows) < 0.01
    np.testing.assert_array_equal(make(2000, rows).chosen(mask, "some").test, whole[1][mask])
    np.testing.assert_array_equal(make(2000, 5).train, whole[0][:5])


@every_maker
def test_sizes_are_those_of_the_weights(make):
    plan = make(300, 500)
    np.testing.assert_array_equal(plan.train_sizes, plan.train.sum(-1))
    np.testing.assert_array_equal(plan.test_sizes, plan.test.sum(-1))
    np.testing.assert_array_equal(plan.train_cases, (plan.train > 0).sum(-1))
    assert plan.repeats_cases == (plan.train.max() > 1)
    assert plan.drawn_one_by_one
    assert ((plan.train > 0) ^ (plan.test > 0)).all()
    assert len(np.unique(plan.train, axis=0)) == 500


@every_maker
def test_every_case_is_left_out_equally_often(make):
    """χ² of the times that cases are tested; within a row they are negatively correlated, so the statistic is divided
    by the variance of one case's count, as for draws without replacement.
    """
    plan = make(100, 4000)
    times, share = plan.test.sum(0), plan.test.mean()
    statistic = np.sum((times - times.mean()) ** 2) / (4000 * share * (1 - share))
    assert 1e-4 < scipy.stats.chi2.sf(statistic, 99) < 1 - 1e-4


def test_another_key_draws_other_rows():
    plans = [resample.leave_out(jax.random.key(seed), 200, 0.25, 50, lazy=True) for seed in (3, 4)]
    assert not np.array_equal(plans[0].test, plans[1].test)
    assert "lazy=True" in plans[0].scheme


@every_maker
def test_assess_gives_what_the_same_weights_give(make):
    data = datasets.diabetes()
    plan = make(data.n, 300)
    lazy = assess(KEY, learn.LeastSquares(), data, plan, part=70)
    weights = resample.from_weights(plan.train, plan.test)
    # The same programs in parts of other sizes; double precision.
    np.testing.assert_allclose(lazy.g, assess(KEY, learn.LeastSquares(), data, weights).g, rtol=1e-10)
    assert lazy.values is not None
    assert lazy.values.shape == (300, data.n)
    assert "_weights" not in vars(estimated(lazy).plan), "a summary needs no weights"


def estimated(losses):
    """The losses, on a plan of which nothing is drawn yet, after their summary."""
    fresh = replace(losses, plan=losses.plan.chosen(slice(None), losses.plan.scheme))
    assert estimate.summary(fresh).raw.avr == pytest.approx(losses.g.mean())
    return fresh


@every_maker
def test_a_store_keeps_the_recipe_and_reads_it_again(make, tmp_path):
    data = datasets.diabetes()
    asked = KEY, learn.LeastSquares(), data, make(data.n, 300)
    kept = assess(*asked, keep="rows", part=100, store=tmp_path)
    plan = store.open(tmp_path).plan
    assert isinstance(plan, DrawnPlan)
    np.testing.assert_array_equal(plan.test, asked[-1].test)
    assert (tmp_path / "plan.npz").stat().st_size < 20_000, "the numbers of the rows, not their weights"
    (tmp_path / "part-00001.npz").unlink()
    some = store.open(tmp_path).losses()
    np.testing.assert_array_equal(some.plan.test, plan.test[[*range(100), *range(200, 300)]])
    np.testing.assert_array_equal(assess(*asked, keep="rows", part=100, store=tmp_path).g, kept.g)
    with pytest.raises(ValueError, match="the same question as that of the run .* got another plan"):
        assess(*asked[:3], make(data.n, 301), keep="rows", store=tmp_path)


@pytest.mark.parametrize("standard_error", ["jackknife", "cases"])
def test_estimates_that_look_at_all_weights_are_those_of_the_weights_themselves(standard_error):
    data = datasets.diabetes()
    plan = resample.leave_out(KEY, data.n, 0.25, 60, lazy=True)
    full = assess(KEY, learn.LeastSquares(), data, resample.full(data.n))
    found = [
        estimate.l_alpha(assess(KEY, learn.LeastSquares(), data, each), full, standard_error=standard_error)
        for each in (plan, resample.from_weights(plan.train, plan.test))
    ]
    # Linear fits in double precision; other chunks may add in another order.
    for name in ("estimate", "standard_error"):
        np.testing.assert_allclose(getattr(found[0], name), getattr(found[1], name), rtol=1e-9)


def test_a_part_is_sent_as_a_recipe():
    part = resample.leave_out(KEY, 10_000, 0.25, 10**6, lazy=True).rows(500_000, 500_100)
    sent = pickle.dumps(part)
    assert len(sent) < 3000
    np.testing.assert_array_equal(pickle.loads(sent).train, part.train)


def test_memory_holds_the_rows_of_a_part_only():
    """200,000 rows of 442 cases are 177 MB of weights; parts of 5000 rows are 4."""
    data = datasets.diabetes()
    plan = resample.leave_out(KEY, data.n, 0.25, 200_000, lazy=True)
    assess(KEY, learn.Mean(), data, plan.rows(0, 5000), keep="rows", part=5000)
    tracemalloc.start()
    losses = assess(KEY, learn.Mean(), data, plan, keep="rows", part=5000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Results are 200,000 rows of 8 + 8 + 1 bytes, some of them copied once.
    assert peak < 60e6
    assert losses.resamples == 200_000


def test_all_weights_at_once_are_refused_where_they_do_not_fit(own_messages):
    plan = resample.leave_out(KEY, 10**6, 0.25, 10**7, lazy=True)
    assert plan.train_sizes[-1] == 750_000
    with pytest.raises(MemoryError, match=r"expected all weights of 10000000 rows and 1000000 cases to fit into mem"):
        plan.test  # noqa: B018


def test_what_cannot_be_drawn_row_by_row_is_refused(own_messages):
    with pytest.raises(
        ValueError, match=r"expected so many cases that 1000 rows drawn apart from each other all differ, got 30"
    ):
        resample.leave_out(KEY, 30, 0.3, 1000, lazy=True)
    with pytest.raises(ValueError, match="expected so many cases that 1000000 rows .* got 30; leave lazy out"):
        resample.bootstrap(KEY, 30, 10**6, lazy=True)
    with pytest.raises(ValueError, match="expected one plan for all data sets .* got sets=3; leave sets or lazy out"):
        resample.bootstrap(KEY, 30, 10, sets=3, lazy=True)
    with pytest.raises(ValueError, match="expected lazy to be True or False, got 1"):
        resample.leave_out(KEY, 300, 0.3, 10, lazy=1)


def test_a_recipe_draws_the_same_rows_on_every_machine():
    """The first rows as they were drawn first, so that an update of NumPy that draws others is noticed."""
    train, test = Recipe((0, 7), 12, 3).block(0)
    assert np.flatnonzero(test[0]).tolist() == [3, 7, 11]
    assert train.shape == (4096, 12)
