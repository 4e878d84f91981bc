"""Splitting schemes: one table of every scheme against the properties they share, then what each alone promises."""

import math
from itertools import combinations

import jax
import numpy as np
import pytest
from hostile import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from jaxgen import resample
from jaxgen.stats import design
from jaxgen.types import Plan
from jaxgen.types import drawn as rows_drawn

KEY, OTHER = jax.random.key(0), jax.random.key(1)
STRATA = np.array(list("aaabbbbbbccccccccccc"))
GROUPS = np.arange(20) // 3

# name: the scheme as a function of its key, and whether it draws anything
SCHEMES = {
    "leave_out": (lambda key: resample.leave_out(key, 20, fraction=0.25, resamples=30), True),
    "leave_out in sets": (lambda key: resample.leave_out(key, 20, fraction=0.25, resamples=7, sets=3), True),
    "leave_out of most": (lambda key: resample.leave_out(key, 20, fraction=0.8, resamples=30), True),
    "leave_out in strata": (lambda key: resample.leave_out(key, 20, fraction=0.25, resamples=30, strata=STRATA), True),
    "leave_out of all splits": (lambda key: resample.leave_out(key, 6, fraction=0.5, resamples=20), True),
    "k_fold": (lambda key: resample.k_fold(key, 20, folds=3, repeats=2), True),
    "k_fold in strata": (lambda key: resample.k_fold(key, 20, folds=3, repeats=2, strata=STRATA), True),
    "k_fold in groups": (lambda key: resample.k_fold(key, 20, folds=3, repeats=2, groups=GROUPS), True),
    "leave_one_out": (lambda key: resample.leave_one_out(20), False),
    "five_by_two": (lambda key: resample.five_by_two(key, 20), True),
    "five_by_two in strata": (lambda key: resample.five_by_two(key, 20, strata=STRATA), True),
    "nested_pairs": (lambda key: resample.nested_pairs(key, 20, folds=4, repeats=2), True),
    "paired_halves": (lambda key: resample.paired_halves(key, 21, pairs=3, resamples=4), True),
    "nested_pairs in strata": (lambda key: resample.nested_pairs(key, 20, folds=4, strata=STRATA), True),
    "paired_halves in strata": (
        lambda key: resample.paired_halves(key, 20, pairs=3, resamples=4, strata=STRATA),
        True,
    ),
    "balanced": (lambda key: resample.balanced(key, 20, fraction=0.3, resamples=7), True),
    "bootstrap": (lambda key: resample.bootstrap(key, 20, resamples=30), True),
    "bootstrap in sets": (lambda key: resample.bootstrap(key, 20, resamples=7, sets=3), True),
    "time_blocks": (lambda key: resample.time_blocks(20, folds=4, gap=2), False),
    "time_blocks of the past": (lambda key: resample.time_blocks(20, folds=4, past_only=True), False),
    "task_instances": (lambda key: resample.task_instances(20, size=3), False),
    "task_instances in common": (lambda key: resample.task_instances(20, size=3, test_cases=7, common=True), False),
    "half_samples": (lambda key: resample.half_samples(key, 20, resamples=30), True),
    "half_samples with value": (lambda key: resample.half_samples(key, 20, resamples=30, value=range(12, 20)), True),
    "half_samples with drawn value": (lambda key: resample.half_samples(key, 20, resamples=30, value=5), True),
    "by_size": (lambda key: resample.by_size(key, 20, resamples=60, value=range(3)), True),
    "by_size of a few": (lambda key: resample.by_size(key, 20, resamples=60, value=8, smallest=4), True),
    "full": (lambda key: resample.full(20), False),
    "stack": (
        lambda key: resample.stack([resample.k_fold(key, 20, folds=3), resample.k_fold(OTHER, 20, folds=3)]),
        True,
    ),
}
every_scheme = pytest.mark.parametrize("name", SCHEMES)
properties = settings(derandomize=True, deadline=None, max_examples=60)
seeds = st.integers(0, 2**32 - 1)


def same(a: Plan, b: Plan) -> bool:
    labels = a.labels.keys() == b.labels.keys() and all(
        np.array_equal(a.labels[name], b.labels[name]) for name in a.labels
    )
    return np.array_equal(a.train, b.train) and np.array_equal(a.test, b.test) and labels


def spread(counts) -> int:
    """The largest less the smallest count, along the first axis."""
    return int(np.ptp(counts, axis=0).max())


# Every scheme


@every_scheme
def test_weights_are_uint8_of_one_shape_and_disjoint(name):
    plan = SCHEMES[name][0](KEY)
    assert plan.train.dtype == plan.test.dtype == np.uint8
    assert plan.train.shape == plan.test.shape
    assert plan.train_sizes.all()
    assert plan.test_sizes.all()
    assert set(np.unique(plan.test)) <= {0, 1}
    assert name == "full" or not (plan.train & plan.test).any()
    assert all(label.shape == (plan.resamples,) for label in plan.labels.values())


@every_scheme
def test_the_key_decides(name):
    make, random = SCHEMES[name]
    assert same(make(KEY), make(KEY))
    assert same(make(KEY), make(OTHER)) is not random


@every_scheme
def test_the_scheme_recreates_the_plan(name):
    plan = SCHEMES[name][0](KEY)
    if "in strata" in name or "in groups" in name:
        assert f"{'groups' if 'groups' in name else 'strata'}=<20 labels>)" in plan.scheme
    else:
        assert same(eval(plan.scheme, {"jax": jax, "np": np, "resample": resample}), plan)


def test_the_scheme_reads_as_it_was_written():
    plan = resample.leave_out(KEY, 442, fraction=0.25, resamples=1000)
    assert plan.scheme == "resample.leave_out(jax.random.key(0), 442, fraction=0.25, resamples=1000)"


@pytest.mark.parametrize("name", [name for name, (_, random) in SCHEMES.items() if random and name != "stack"])
def test_a_raw_integer_is_no_key(name, own_messages):
    with pytest.raises(TypeError, match=r"expected one random key, got the integer 7; write jax\.random\.key\(7\)"):
        SCHEMES[name][0](7)


@pytest.mark.parametrize("wrapped", [jax.jit, jax.vmap])
def test_a_key_that_is_traced_is_refused(wrapped):
    keys = jax.random.split(jax.random.key(0), 3)
    plans = wrapped(lambda key: resample.k_fold(key, 10, 2).train)
    with pytest.raises(TypeError, match=r"expected a random key with a value, .* call jaxgen outside of them"):
        plans(keys if wrapped is jax.vmap else keys[0])


@pytest.mark.parametrize("name", [name for name, (_, random) in SCHEMES.items() if random])
def test_both_precisions_draw_the_same(name):
    with jax.enable_x64(True):
        wide = SCHEMES[name][0](jax.random.key(0))
    assert same(wide, SCHEMES[name][0](KEY))


# half_samples and by_size


def test_half_samples_are_independent_coins():
    """Counts of pairs within six standard errors, and the law of sizes by chi-squared with p above 1e-6."""
    plan = resample.half_samples(KEY, 12, 20_000, value=range(9, 12))
    inside = plan.train[:, :9].astype(float)
    both = inside.T @ inside / len(inside)
    assert np.abs(both - np.where(np.eye(9), 0.5, 0.25)).max() < 6 * np.sqrt(0.25 / 20_000) + 2**-9
    counts = np.bincount(plan.train_sizes, minlength=10)[1:]
    law = binom.pmf(np.arange(1, 10), 9, 0.5) / (1 - 2**-9)
    assert chi2.sf(np.sum((counts - 20_000 * law) ** 2 / (20_000 * law)), 8) > 1e-6
    assert (plan.test == np.r_[np.zeros(9), np.ones(3)]).all()
    assert not plan.train[:, 9:].any()


def test_half_samples_without_value_cases_test_what_they_lack():
    plan = resample.half_samples(KEY, 3, 500)  # so few cases that an eighth of the draws have nothing to test
    assert (plan.test == 1 - plan.train).all()
    assert len(np.unique(plan.train, axis=0)) == 6


def test_sizes_follow_their_law_and_subsets_of_a_size_are_alike():
    plan = resample.by_size(KEY, 30, 4000, value=10)
    value = np.flatnonzero(plan.test[0])
    assert len(value) == 10
    assert (plan.test == plan.test[0]).all()
    rows = np.bincount(plan.train_sizes, minlength=21)[1:]
    assert rows.sum() == 4000
    assert rows[-1] == 2
    size = np.arange(1, 20)
    wanted = 1 / np.sqrt(size * (20 - size))
    assert np.abs(rows[:-1] - 2 - (4000 - 40) * wanted / wanted.sum()).max() <= 1  # rounding to whole rows
    cases = np.flatnonzero(plan.train.any(0))
    for small in (1, 10, 19):
        counts = plan.train[plan.train_sizes == small][:, cases].sum(0)
        share = small / 20
        variance = rows[small - 1] * share * (1 - share) * 20 / 19  # of draws without replacement
        assert chi2.sf(np.sum((counts - rows[small - 1] * share) ** 2) / variance, 19) > 1e-6
    assert plan.train_sizes[:100].std() > 3  # in random order


def test_the_fewest_rows_of_every_size():
    plan = resample.by_size(KEY, 20, 18, value=range(10), smallest=2)
    assert sorted(plan.train_sizes) == sorted([*range(2, 11), *range(2, 11)])
    with pytest.raises(ValueError, match=r"at least 18, got 17; give two for each size from 2 to 10"):
        resample.by_size(KEY, 20, 17, value=range(10), smallest=2)


def test_scattered_value_cases_are_counted_in_the_scheme():
    plan = resample.half_samples(KEY, 20, 5, value=[3, 1, 7])
    assert plan.scheme == "resample.half_samples(jax.random.key(0), 20, resamples=5, value=<3 cases>)"
    assert np.flatnonzero(plan.test[0]).tolist() == [1, 3, 7]


@pytest.mark.parametrize(
    "value", [0, 19, -1, True, 2.5, "abc", [], [1, 1], [20], [-1], [0.5], [[1], [1, 2]], range(19)]
)
def test_value_cases_that_are_none_are_refused(value, own_messages):
    refused(lambda: resample.by_size(KEY, 20, 100, value), ValueError)
    refused(lambda: resample.half_samples(KEY, 20, 100, value), ValueError)


def test_sizes_need_value_cases(own_messages):
    refused(lambda: resample.by_size(KEY, 20, 100, None), ValueError)


# leave_out


@properties
@given(
    seed=seeds,
    n=st.integers(2, 40),
    fraction=st.floats(0.01, 0.99),
    share=st.floats(0, 1),
    sets=st.none() | st.integers(1, 3),
)
def test_leave_out_has_exact_sizes_and_different_rows(seed, n, fraction, share, sets):
    tested = min(max(math.ceil(n * fraction - 1e-9), 1), n - 1)
    resamples = 1 + int(share * (min(math.comb(n, tested), 200) - 1))
    plan = resample.leave_out(jax.random.key(seed), n, fraction=tested / n, resamples=resamples, sets=sets)
    assert plan.test.shape == ((resamples, n) if sets is None else (sets, resamples, n))
    assert (plan.test_sizes == tested).all()
    assert (plan.train == 1 - plan.test).all()
    for rows in plan.test.reshape(-1, resamples, n):
        assert len(np.unique(rows, axis=0)) == resamples


@pytest.mark.parametrize(
    ("n", "fraction", "tested"),
    [(100, 0.07, 7), (10, 0.3, 3), (10, 0.31, 4), (20, 0.25, 5), (442, 0.25, 111), (3, 0.01, 1)],
)
def test_leave_out_rounds_up_but_not_rounding_errors(n, fraction, tested):
    assert resample.leave_out(KEY, n, fraction=fraction, resamples=2).test_sizes.tolist() == [tested] * 2
    assert resample.balanced(KEY, n, fraction=fraction, resamples=2).test_sizes.tolist() == [tested] * 2


@pytest.mark.parametrize(("n", "size"), [(5, 1), (6, 2), (6, 3), (7, 5)])
def test_leave_out_can_give_every_split(n, size):
    every = {tuple(int(i in chosen) for i in range(n)) for chosen in combinations(range(n), size)}
    plan = resample.leave_out(KEY, n, fraction=size / n, resamples=len(every), sets=2)
    assert all({tuple(row) for row in rows.tolist()} == every for rows in plan.test)


@pytest.mark.parametrize("path", ["Floyd", "Floyd, then complement", "case by case", "enumeration"])
def test_leave_out_is_uniform(path):
    """Chi-square over all subsets of 2, 4 or 3 of 6 cases; 1e-6 is how often a right sampler would fail for a seed
    chosen blindly.
    """
    size, resamples, sets = {
        "Floyd": (2, 7, 3000),
        "Floyd, then complement": (4, 7, 3000),
        "case by case": (3, 2, 1),
        "enumeration": (2, 8, 3000),
    }[path]
    keys = jax.random.split(KEY, 500) if sets == 1 else [KEY]
    drawn = np.concatenate(
        [
            resample.leave_out(key, 6, fraction=size / 6, resamples=resamples, sets=sets).test.reshape(-1, 6)
            for key in keys
        ]
    )
    counts = np.unique(drawn @ 2 ** np.arange(6), return_counts=True)[1]
    subsets, expected = math.comb(6, size), len(drawn) / math.comb(6, size)
    assert len(counts) == subsets
    # Rows of one plan differ, which makes the counts more even: (subsets - resamples) / (subsets - 1) of the variance.
    evenness = (subsets - resamples) / (subsets - 1)
    assert ((counts - expected) ** 2 / expected).sum() / evenness < chi2.isf(1e-6, subsets - 1)
    assert ((counts - expected) ** 2 / expected).sum() / evenness > chi2.ppf(1e-6, subsets - 1)


def test_leave_out_of_many_cases_knows_how_many_splits_there_are_without_counting_them():
    plan = resample.leave_out(KEY, 50_000, fraction=0.5, resamples=3)
    assert plan.test_sizes.tolist() == [25_000] * 3
    assert (plan.test.sum(0) > 0).mean() == pytest.approx(7 / 8, abs=0.01)  # sd 0.0015 for independent rows


# k_fold and its relatives


@properties
@given(seed=seeds, n=st.integers(2, 60), share=st.floats(0, 1), repeats=st.integers(1, 3))
def test_k_fold_tests_every_case_once_in_each_repeat(seed, n, share, repeats):
    folds = 2 + int(share * (n - 2))
    plan = resample.k_fold(jax.random.key(seed), n, folds=folds, repeats=repeats)
    assert plan.resamples == repeats * folds
    assert (plan.test.reshape(repeats, folds, n).sum(1) == 1).all()
    assert (plan.train == 1 - plan.test).all()
    assert np.ptp(plan.test_sizes) <= 1
    assert list(zip(plan.labels["repeat"], plan.labels["fold"], strict=True)) == [
        (r, k) for r in range(repeats) for k in range(folds)
    ]


@properties
@given(seed=seeds, strata=st.lists(st.integers(0, 4), min_size=2, max_size=60), share=st.floats(0, 1))
def test_strata_are_even_in_every_class_and_in_all(seed, strata, share):
    n, strata = len(strata), np.array(strata)
    folds = 2 + int(share * (n - 2))
    plan = resample.k_fold(jax.random.key(seed), n, folds=folds, repeats=2, strata=strata)
    assert (plan.test.reshape(2, folds, n).sum(1) == 1).all()
    assert np.ptp(plan.test_sizes) <= 1
    for label in np.unique(strata):
        assert spread(plan.test[:, strata == label].sum(1)) <= 1


@pytest.mark.parametrize("classes", [2, 3])
def test_strata_may_be_columns_of_zeros_and_ones(classes):
    """As the targets of a classification are; also the single column of two classes."""
    labels = np.arange(20) % classes
    columns = [np.eye(classes)[labels]] + [labels[:, None].astype(float)] * (classes == 2)
    for given_columns in columns:
        for draw, size in ((resample.k_fold, {"folds": 4}), (resample.leave_out, {"resamples": 10})):
            expected, got = (draw(KEY, 20, strata=strata, **size) for strata in (labels, given_columns))
            assert np.array_equal(got.train, expected.train)
            assert np.array_equal(got.test, expected.test)


@pytest.mark.parametrize("columns", [np.ones((20, 2)), np.zeros((20, 2)), np.full((20, 1), 2.0), np.ones((20, 0))])
def test_other_columns_are_no_strata(columns):
    assert "expected strata to be 20 labels, one per case, got shape" in refused(
        lambda: resample.k_fold(KEY, 20, strata=columns)
    )


@properties
@given(seed=seeds, strata=st.lists(st.integers(0, 4), min_size=12, max_size=60), share=st.floats(0.2, 0.8))
def test_splits_leave_out_the_same_share_of_every_class(seed, strata, share):
    """Rounded up or down."""
    n, strata = len(strata), np.array(strata)
    plan = resample.leave_out(jax.random.key(seed), n, share, 4, strata=strata)
    tested = plan.test_sizes[0]
    assert (plan.test_sizes == tested).all()
    for label in np.unique(strata):
        own = strata == label
        assert (np.abs(plan.test[:, own].sum(1) - own.sum() * tested / n) < 1).all()


def test_in_stratified_splits_all_cases_are_tested_alike():
    """Of 2000 splits each case is tested in 2000 * 0.25 +- 4.9 standard deviations of independent draws, the one in a
    million of both tails; classes of 3, 6 and 11 cases, of which a quarter is no whole number.
    """
    plan = resample.leave_out(KEY, 20, 0.25, 2000, strata=STRATA)
    assert np.abs(plan.test.sum(0, dtype=int) - 500).max() < 4.9 * np.sqrt(2000 * 0.25 * 0.75)
    assert design.unlike_random(plan) == ""


STRATIFIED = {
    "sets": ({"sets": 2}, "expected strata of one plan, got also sets or lazy"),
    "lazy": ({"lazy": True}, "expected strata of one plan, got also sets or lazy"),
    "too many": ({"strata": [0, 0, 1, 1], "n": 4, "fraction": 0.5, "resamples": 30}, "expected fewer different splits"),
    "too few labels": ({"strata": [0, 1]}, "expected strata to be 20 labels, one per case, got shape"),
}


@pytest.mark.parametrize("case", STRATIFIED)
def test_stratified_splits_refuse_what_they_cannot_do(case):
    options, message = STRATIFIED[case]
    with pytest.raises(ValueError, match=message):
        resample.leave_out(KEY, **{"n": 20, "fraction": 0.25, "resamples": 5, "strata": STRATA, **options})


@properties
@given(
    seed=seeds,
    groups=st.lists(st.integers(0, 12), min_size=2, max_size=60).filter(lambda labels: len(set(labels)) > 1),
    share=st.floats(0, 1),
)
def test_groups_are_never_divided(seed, groups, share):
    n, groups, number = len(groups), np.array(groups), len(set(groups))
    folds = 2 + int(share * (number - 2))
    plan = resample.k_fold(jax.random.key(seed), n, folds=folds, repeats=2, groups=groups)
    assert (plan.test.reshape(2, folds, n).sum(1) == 1).all()
    sizes = [(groups == label).sum() for label in np.unique(groups)]
    for label in np.unique(groups):
        assert set(plan.test[:, groups == label].mean(1)) <= {0.0, 1.0}
    # The fold that ended largest was the lightest when it got its last group, so no fold is lighter than it less that
    # group.
    assert np.ptp(plan.test_sizes) <= max(sizes)


def test_groups_of_equal_size_make_equal_folds_that_change_with_the_repeat():
    plan = resample.k_fold(KEY, 24, folds=4, repeats=2, groups=np.arange(24) // 2)
    assert plan.test_sizes.tolist() == [6] * 8
    first, second = ({tuple(row) for row in rows.tolist()} for rows in plan.test.reshape(2, 4, 24))
    assert first != second


def test_the_largest_groups_are_placed_first():
    plan = resample.k_fold(KEY, 12, folds=2, repeats=20, groups=np.repeat(range(4), [1, 2, 3, 6]))
    assert plan.test_sizes.tolist() == [6] * 40  # 6 against 3 + 2 + 1; from the smallest up it would be 4 against 8
    assert set(plan.labels["fold"][plan.test[:, -1] == 1]) == {0, 1}  # the same division each time, but in random order


def test_labels_may_be_lists_and_words():
    assert same(
        resample.k_fold(KEY, 20, folds=3, strata=STRATA.tolist()), resample.k_fold(KEY, 20, folds=3, strata=STRATA)
    )


def test_leave_one_out_tests_case_i_in_row_i():
    assert (resample.leave_one_out(7).test == np.eye(7)).all()


def test_five_by_two_is_five_times_two_folds():
    assert same(
        resample.five_by_two(KEY, 20, strata=STRATA), resample.k_fold(KEY, 20, folds=2, repeats=5, strata=STRATA)
    )


@properties
@given(seed=seeds, n=st.integers(3, 40), share=st.floats(0, 1), repeats=st.integers(1, 2))
def test_nested_pairs_leave_out_one_fold_and_every_pair_of_folds(seed, n, share, repeats):
    folds = 3 + int(share * (min(n, 12) - 3))
    plan = resample.nested_pairs(jax.random.key(seed), n, folds=folds, repeats=repeats)
    pairs = [(k, k) for k in range(folds)] + list(combinations(range(folds), 2))
    assert plan.resamples == repeats * folds * (folds + 1) // 2
    assert list(zip(plan.labels["repeat"], plan.labels["first"], plan.labels["second"], strict=True)) == [
        (r, j, k) for r in range(repeats) for j, k in pairs
    ]
    for rows in plan.test.reshape(repeats, len(pairs), n):
        outer = rows[:folds]
        assert (outer.sum(0) == 1).all()
        assert np.ptp(outer.sum(1)) <= 1
        assert all((row == outer[j] | outer[k]).all() for row, (j, k) in zip(rows, pairs, strict=True))
    assert (plan.train == 1 - plan.test).all()


# paired_halves


@properties
@given(
    seed=seeds,
    n=st.integers(10, 60),
    pairs=st.integers(1, 4),
    resamples=st.integers(1, 4),
    test_size=st.none() | st.integers(1, 4),
)
def test_paired_halves_are_disjoint_and_test_as_many_as_the_full_data(seed, n, pairs, resamples, test_size):
    plan = resample.paired_halves(jax.random.key(seed), n, pairs=pairs, resamples=resamples, test_size=test_size)
    tested, half = test_size or n // 10, n // 2
    assert plan.resamples == resamples * (2 * pairs + 1)
    assert (plan.test_sizes == tested).all()
    cells = [(-1, -1)] + [(pair, side) for pair in range(pairs) for side in (0, 1)]
    labels = [plan.labels[name] for name in ("pair", "half", "resample")]
    assert list(zip(*labels, strict=True)) == [(*cell, j) for cell in cells for j in range(resamples)]
    used = (plan.train + plan.test).reshape(len(cells), resamples, n)
    assert (used == used[:, :1]).all()
    assert used[0].all()
    assert (used[1:].sum(-1) == half).all()
    assert (used[1::2] + used[2::2]).max() == 1
    assert all(len(np.unique(rows, axis=0)) == resamples for rows in plan.test.reshape(len(cells), resamples, n))


@properties
@given(seed=seeds, strata=st.lists(st.integers(0, 3), min_size=20, max_size=61), test_size=st.integers(2, 5))
def test_halves_in_strata_hold_and_test_the_same_share_of_every_class(seed, strata, test_size):
    n, strata = len(strata), np.array(strata)
    plan = resample.paired_halves(jax.random.key(seed), n, pairs=3, resamples=2, test_size=test_size, strata=strata)
    used, pair = plan.train + plan.test, plan.labels["pair"]
    assert (used[pair >= 0].sum(-1) == n // 2).all()
    for label in np.unique(strata):
        own = strata == label
        halves = used[pair >= 0][:, own].sum(-1)
        assert np.abs(halves - own.sum() / 2).max() <= 1.5  # of an odd number of cases one is left out
        share = used[:, own].sum(-1) / used.sum(-1)
        assert np.abs(plan.test[:, own].sum(-1) - test_size * share).max() < 1
    assert np.array_equal(plan.cases["stratum"], np.unique(strata, return_inverse=True)[1])


@properties
@given(seed=seeds, strata=st.lists(st.integers(0, 4), min_size=6, max_size=60), share=st.floats(0, 1))
def test_nested_folds_in_strata_hold_the_same_share_of_every_class(seed, strata, share):
    n, strata = len(strata), np.array(strata)
    folds = 3 + int(share * (min(n, 12) - 3))
    plan = resample.nested_pairs(jax.random.key(seed), n, folds=folds, strata=strata)
    outer = plan.test[plan.labels["first"] == plan.labels["second"]]
    assert (outer.sum(0) == 1).all()
    for label in np.unique(strata):
        assert np.ptp(outer[:, strata == label].sum(1)) <= 1
    again = resample.k_fold(jax.random.key(seed), n, folds=folds, strata=strata)
    assert np.array_equal(outer, again.test)  # the same folds as those of one k_fold


def test_paired_halves_of_few_cases_test_one():
    assert (resample.paired_halves(KEY, 8, pairs=2, resamples=2).test_sizes == 1).all()


# balanced


@properties
@given(seed=seeds, n=st.integers(2, 60), size=st.floats(0, 1), share=st.floats(0, 1))
def test_balanced_trains_on_every_case_equally_often(seed, n, size, share):
    """The starts floor(bn/B) in any window of L cases number floor(LB/n) or ceil(LB/n): floor(bn/B) >= a just if b >=
    aB/n.
    """
    tested, resamples = 1 + int(size * (n - 2)), 1 + int(share * (n - 1))
    plan = resample.balanced(jax.random.key(seed), n, fraction=tested / n, resamples=resamples)
    trained, times = n - tested, plan.train.sum(0)
    assert (plan.train_sizes == trained).all()
    assert (plan.train == 1 - plan.test).all()
    assert times.min() >= trained * resamples // n
    assert times.max() <= -(-trained * resamples // n)


def test_balanced_trains_on_consecutive_cases_of_one_permutation():
    plan = resample.balanced(KEY, 10, fraction=0.4, resamples=10)
    assert {name: label.tolist() for name, label in plan.labels.items()} == {"partition": [0] * 10}
    position = np.argmax(
        (plan.train == 1) & (np.roll(plan.train, 1, axis=0) == 0), axis=0
    )  # a case enters where the window first reaches it
    enters = np.sort(position)
    assert enters.tolist() == list(range(10))
    in_order = plan.train[:, np.argsort(position)]
    assert all((row == np.roll(in_order[0], shift)).all() for shift, row in enumerate(in_order))


# bootstrap


@properties
@given(seed=seeds, n=st.integers(2, 60), resamples=st.integers(1, 30), sets=st.none() | st.integers(1, 3))
def test_bootstrap_draws_n_cases_and_tests_the_others(seed, n, resamples, sets):
    plan = resample.bootstrap(jax.random.key(seed), n, resamples=resamples, sets=sets)
    assert plan.train.shape == ((resamples, n) if sets is None else (sets, resamples, n))
    assert (plan.train_sizes == n).all()
    assert (plan.test == (plan.train == 0)).all()
    assert plan.test_sizes.all()


def test_bootstrap_counts_are_multinomial():
    train = resample.bootstrap(KEY, 50, resamples=4000).train.astype(float)
    # 200,000 counts of mean 1: the sd of the share of zeros is below 0.0011, that of the mean square (variance 1 -
    # 1/n) below 0.006
    assert (train == 0).mean() == pytest.approx((1 - 1 / 50) ** 50, abs=0.006)
    assert train.var() == pytest.approx(1 - 1 / 50, abs=0.03)


def test_bootstrap_counts_never_wrap():
    class Stuck(np.random.Generator):
        """Draws case 0 only."""

        def integers(self, *arguments, size):
            return np.zeros(size, np.int64)

    with pytest.raises(ValueError, match="drawn more than 255 times, got 256 in 256 draws"):
        rows_drawn.counts(Stuck(np.random.PCG64(0)), 1, 256)
    assert rows_drawn.counts(Stuck(np.random.PCG64(0)), 1, 255).max() == 255


# time_blocks


@properties
@given(n=st.integers(4, 60), share=st.floats(0, 1), gap=st.integers(0, 5), past_only=st.booleans())
def test_time_blocks_keep_order_and_gap(n, share, gap, past_only):
    folds = 2 + int(share * (n - 2))
    try:
        plan = resample.time_blocks(n, folds=folds, gap=gap, past_only=past_only)
    except ValueError:
        assert gap > 0
        assert n // folds <= gap if past_only else n - -(-n // folds) <= 2 * gap
        return
    assert plan.labels["fold"].tolist() == list(range(1 if past_only else 0, folds))
    assert np.ptp(plan.test_sizes) <= 1
    case = np.arange(n)
    assert (np.concatenate([case[row == 1] for row in plan.test]) == case[n - int(plan.test.sum()) :]).all()
    for train, test in zip(plan.train, plan.test, strict=True):
        first, last = case[test == 1][[0, -1]]
        before, after = case < first - gap, case > last + gap
        assert last - first + 1 == test.sum()
        assert (train == (before if past_only else before | after)).all()


# task_instances


@pytest.mark.parametrize("common", [False, True], ids=["hierarchical", "common"])
@pytest.mark.parametrize(
    ("size", "instances", "block"), [(64, 8, 512), (128, 8, 512), (256, 8, 512), (512, 8, 512), (1024, 4, 1024)]
)
def test_task_instances_follow_delve(size, instances, block, common):
    plan = resample.task_instances(8192, size, common=common)
    assert plan.labels["instance"].tolist() == list(range(instances))
    for i, (train, test) in enumerate(zip(plan.train, plan.test, strict=True)):
        assert np.flatnonzero(train).tolist() == list(range(4096 + i * size, 4096 + (i + 1) * size))
        assert np.flatnonzero(test).tolist() == (
            list(range(4096)) if common else list(range(i * block, (i + 1) * block))
        )


@properties
@given(n=st.integers(8, 80), share=st.floats(0, 1), size=st.integers(1, 10), most=st.integers(1, 8))
def test_task_instances_drop_what_does_not_divide(n, share, size, most):
    region = 1 + int(share * (n - 2))
    instances = min(most, (n - region) // size)
    if not 1 <= instances <= region:
        with pytest.raises(ValueError, match="expected"):
            resample.task_instances(n, size, instances=most, test_cases=region)
        return
    plan = resample.task_instances(n, size, instances=most, test_cases=region)
    assert plan.train_sizes.tolist() == [size] * instances
    assert plan.test_sizes.tolist() == [region // instances] * instances
    assert plan.train[:, :region].sum() == plan.test[:, region:].sum() == 0
    assert (plan.train + plan.test).sum(0).max() == 1


# full, from_weights, stack


def test_full_trains_and_tests_on_everything():
    plan = resample.full(5)
    assert plan.train.tolist() == plan.test.tolist() == [[1] * 5]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int64, np.float16, np.float64])
@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 3)], ids=["one plan", "in sets"])
def test_given_weights_of_any_type_are_copied(dtype, shape):
    train = np.array([[1, 0, 1], [0, 1, 1]]).reshape(shape).astype(dtype)
    plan = resample.from_weights(train, ~train.astype(bool))
    expected = train.astype(int)
    train[...] = 0
    assert plan.train.dtype == plan.test.dtype == np.uint8
    assert (plan.train == expected).all()
    assert (plan.test == 1 - expected).all()
    assert plan.scheme == "given weights"


def test_given_weights_may_count_up_to_255():
    assert resample.from_weights(np.array([[255.0, 2, 0]]), np.array([[0, 1, 3]]), scheme="mine").train.tolist() == [
        [255, 2, 0]
    ]


def test_a_stack_holds_its_plans():
    plans = [resample.k_fold(jax.random.key(seed), 12, folds=3) for seed in range(4)]
    stacked = resample.stack(plans)
    assert stacked.sets == 4
    assert all(same(stacked[q], plan) for q, plan in enumerate(plans))


# Bad input: call, and what the message says

ONES, NONE = np.ones((2, 3)), np.zeros((2, 3))
BAD = {
    "fraction 0": (lambda: resample.leave_out(KEY, 10, 0.0, 5), "fraction between 0 and 1, got 0.0; give the share"),
    "fraction 1": (lambda: resample.leave_out(KEY, 10, 1.0, 5), "fraction between 0 and 1, got 1.0"),
    "fraction NaN": (lambda: resample.leave_out(KEY, 10, math.nan, 5), "fraction between 0 and 1, got nan"),
    "fraction as a percentage": (lambda: resample.balanced(KEY, 10, 25, 5), "fraction between 0 and 1, got 25"),
    "nothing to train on": (
        lambda: resample.leave_out(KEY, 10, 0.95, 5),
        "some of the 10 cases but not all, got 0.95, which leaves out 10",
    ),
    "nothing to test on": (
        lambda: resample.leave_out(KEY, 10, 1e-11, 5),
        "some of the 10 cases but not all, got 1e-11, which leaves out 0",
    ),
    "one case": (lambda: resample.leave_out(KEY, 1, 0.5, 1), "n to be a whole number of at least 2, got 1"),
    "half a case": (lambda: resample.leave_out(KEY, 10.5, 0.5, 1), "n to be a whole number of at least 2, got 10.5"),
    "no resamples": (
        lambda: resample.leave_out(KEY, 10, 0.5, 0),
        "resamples to be a whole number of at least 1, got 0",
    ),
    "no sets": (lambda: resample.leave_out(KEY, 10, 0.5, 1, sets=0), "sets to be a whole number of at least 1, got 0"),
    "too many splits": (
        lambda: resample.leave_out(KEY, 4, 0.25, 500),
        r"at most C\(4, 1\) = 4 different splits of 4 cases, got 500; ask for fewer or change the fraction",
    ),
    "one fold": (
        lambda: resample.k_fold(KEY, 10, folds=1),
        r"folds to be a whole number from 2 to 10 \(the number of cases\), got 1",
    ),
    "more folds than cases": (
        lambda: resample.k_fold(KEY, 5),
        r"folds to be a whole number from 2 to 5 \(the number of cases\), got 10",
    ),
    "no repeats": (lambda: resample.k_fold(KEY, 10, repeats=0), "repeats to be a whole number of at least 1, got 0"),
    "strata and groups": (lambda: resample.k_fold(KEY, 20, strata=STRATA, groups=GROUPS), "strata or groups, got both"),
    "more folds than groups": (
        lambda: resample.k_fold(KEY, 20, groups=GROUPS),
        r"from 2 to 7 \(the number of groups\), got 10",
    ),
    "too few strata": (
        lambda: resample.k_fold(KEY, 21, strata=STRATA),
        r"strata to be 21 labels, one per case, got shape \[20\]",
    ),
    "too few strata of nested folds": (
        lambda: resample.nested_pairs(KEY, 21, strata=STRATA),
        r"strata to be 21 labels, one per case, got shape \[20\]",
    ),
    "too few strata of halves": (
        lambda: resample.paired_halves(KEY, 21, strata=STRATA),
        r"strata to be 21 labels, one per case, got shape \[20\]",
    ),
    "strata of fewer splits": (
        lambda: resample.paired_halves(KEY, 8, pairs=1, resamples=5, strata=[0, 0, 0, 0, 1, 1, 1, 1], test_size=3),
        "expected fewer different splits of 4 cases that leave out equal shares of all classes, got 5",
    ),
    "strata in columns": (
        lambda: resample.five_by_two(KEY, 3, strata=2 * np.eye(3)),
        r"strata to be 3 labels, one per case, got shape \[3, 3\]",
    ),
    "missing stratum": (
        lambda: resample.five_by_two(KEY, 3, strata=[0.0, math.nan, 1.0]),
        "strata without gaps, got nan for case 1",
    ),
    "missing group": (
        lambda: resample.k_fold(KEY, 3, folds=2, groups=["a", "b", None]),
        "groups without gaps, got None for case 2",
    ),
    "leave one out of one": (lambda: resample.leave_one_out(1), "n to be a whole number of at least 2, got 1"),
    "two nested folds": (
        lambda: resample.nested_pairs(KEY, 10, folds=2),
        r"folds to be a whole number from 3 to 10 \(the number of cases\), got 2",
    ),
    "no nested repeats": (
        lambda: resample.nested_pairs(KEY, 10, repeats=0),
        "repeats to be a whole number of at least 1, got 0",
    ),
    "halves of one case": (lambda: resample.paired_halves(KEY, 3), "n to be a whole number of at least 4, got 3"),
    "half all tested": (
        lambda: resample.paired_halves(KEY, 20, test_size=10),
        r"test_size to be a whole number from 1 to 9 \(one less than a half\), got 10",
    ),
    "no pairs": (lambda: resample.paired_halves(KEY, 20, pairs=0), "pairs to be a whole number of at least 1, got 0"),
    "too many splits of a half": (
        lambda: resample.paired_halves(KEY, 18),
        r"at most C\(9, 1\) = 9 different splits of 9 cases, got 15; ask for fewer or change the test_size",
    ),
    "more balanced rows than cases": (
        lambda: resample.balanced(KEY, 10, 0.5, 11),
        "resamples to be a whole number from 1 to 10 .*, got 11",
    ),
    "bootstrap of one": (lambda: resample.bootstrap(KEY, 1, 5), "n to be a whole number of at least 2, got 1"),
    "no bootstrap samples": (
        lambda: resample.bootstrap(KEY, 10, 0),
        "resamples to be a whole number of at least 1, got 0",
    ),
    "no bootstrap sets": (
        lambda: resample.bootstrap(KEY, 10, 5, sets=0),
        "sets to be a whole number of at least 1, got 0",
    ),
    "negative gap": (
        lambda: resample.time_blocks(20, gap=-1),
        r"gap to be a whole number from 0 to 20 \(the number of cases\), got -1",
    ),
    "one block": (
        lambda: resample.time_blocks(20, folds=1),
        r"folds to be a whole number from 2 to 20 \(the number of cases\), got 1",
    ),
    "gap over all": (
        lambda: resample.time_blocks(20, folds=2, gap=10),
        "every block cases to train on, got gap=10 for 2 blocks of 20 cases; choose a smaller gap",
    ),
    "gap over the past": (
        lambda: resample.time_blocks(20, folds=5, gap=4, past_only=True),
        "leaves every block cases to train on, got gap=4",
    ),
    "no room for an instance": (
        lambda: resample.task_instances(20, 11),
        r"size to be a whole number from 1 to 10 \(the cases outside the test region\), got 11",
    ),
    "no instances": (
        lambda: resample.task_instances(20, 2, instances=0),
        "instances to be a whole number of at least 1, got 0",
    ),
    "fewer test cases than instances": (
        lambda: resample.task_instances(20, 2, test_cases=3),
        "a test case for each of 8 instances, got 3",
    ),
    "all cases tested": (
        lambda: resample.task_instances(20, 2, test_cases=20),
        r"test_cases to be a whole number from 1 to 19 \(one less than the cases\), got 20",
    ),
    "full of nothing": (lambda: resample.full(0), "n to be a whole number of at least 1, got 0"),
    "negative weight": (
        lambda: resample.from_weights(-ONES, ONES),
        r"train weights that are whole numbers from 0 to 255, got -1.0 at \[0, 0\]",
    ),
    "half a weight": (
        lambda: resample.from_weights(ONES, ONES / 2),
        r"test weights that are whole numbers from 0 to 255, got 0.5 at \[0, 0\]",
    ),
    "weight over 255": (
        lambda: resample.from_weights(256 * ONES.astype(int), ONES),
        "whole numbers from 0 to 255, got 256",
    ),
    "weight NaN": (
        lambda: resample.from_weights(ONES, np.array([[1, 1, 1], [1, 1, math.nan]])),
        r"whole numbers from 0 to 255, got nan at \[1, 2\]",
    ),
    "weight infinite": (lambda: resample.from_weights(ONES * math.inf, ONES), "whole numbers from 0 to 255, got inf"),
    "weights in words": (
        lambda: resample.from_weights(ONES.astype(str), ONES),
        "train weights as numbers, got an array of <U32",
    ),
    "unlike shapes": (
        lambda: resample.from_weights(ONES, ONES[:1]),
        r"one shape \[R, N\] or \[Q, R, N\].* got \[2, 3\] and \[1, 3\]",
    ),
    "one row without its axis": (
        lambda: resample.from_weights(ONES[0], ONES[0]),
        r"one shape \[R, N\] or \[Q, R, N\].* got \[3\] and \[3\]",
    ),
    "row without training cases": (lambda: resample.from_weights(NONE, ONES), "training cases, got none in 2 rows"),
    "row without test cases": (lambda: resample.from_weights(ONES, NONE), "test cases, got none in 2 rows"),
    "empty stack": (lambda: resample.stack([]), r"plans of one shape \[R, N\], got \[\]"),
    "stack of unlike shapes": (
        lambda: resample.stack([resample.full(3), resample.full(4)]),
        r"plans of one shape \[R, N\], got \[\[1, 3\], \[1, 4\]\]",
    ),
    "stack of stacks": (
        lambda: resample.stack([resample.stack([resample.full(3)])]),
        r"plans of one shape \[R, N\], got \[\[1, 1, 3\]\]",
    ),
    "stack of unlike labels": (
        lambda: resample.stack([resample.leave_one_out(4), resample.time_blocks(4, folds=4)]),
        "plans with the same labels, got those of resample.leave",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()
