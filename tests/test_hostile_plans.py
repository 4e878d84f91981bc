"""Plans from what nobody should give: every argument of every scheme gets one sentence, or a plan that it means."""

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hostile import NO_NUMBERS, STRANGERS, refused

from jaxgen import Data, Plan, resample
from jaxgen.types import memory

pytestmark = [pytest.mark.one_device, pytest.mark.usefixtures("own_messages")]

KEY = jax.random.key(0)
SCHEMES = {  # function, all its arguments but a key
    "leave_out": {"n": 20, "fraction": 0.25, "resamples": 5, "sets": 3},
    "balanced": {"n": 20, "fraction": 0.25, "resamples": 5},
    "bootstrap": {"n": 20, "resamples": 5, "sets": 2},
    "k_fold": {"n": 20, "folds": 4, "repeats": 2},
    "leave_one_out": {"n": 20},
    "five_by_two": {"n": 20},
    "nested_pairs": {"n": 20, "folds": 4, "repeats": 2},
    "paired_halves": {"n": 40, "pairs": 2, "resamples": 3, "test_size": 2},
    "time_blocks": {"n": 20, "folds": 4, "gap": 1, "past_only": False},
    "task_instances": {"n": 40, "size": 5, "instances": 3, "test_cases": 10, "common": False},
    "full": {"n": 20},
}
WITHOUT_KEY = {"leave_one_out", "time_blocks", "task_instances", "full"}
ARGUMENTS = [(name, argument) for name, arguments in SCHEMES.items() for argument in arguments]
NO_WHOLE_NUMBERS = {**STRANGERS, **NO_NUMBERS, "half": 2.5, "whole float": 5.0, "negative": -1, "key": KEY}
del NO_WHOLE_NUMBERS["number"]
MAY_BE_NONE = {"sets", "test_size", "test_cases"}


def made(name, **changes):
    arguments = () if name in WITHOUT_KEY else (KEY,)
    return getattr(resample, name)(*arguments, **{**SCHEMES[name], **changes})


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS, ids=[f"{name} {argument}" for name, argument in ARGUMENTS])
def test_what_is_no_number_is_refused_by_name(name, argument):
    for kind, value in NO_WHOLE_NUMBERS.items():
        if (value is None and argument in MAY_BE_NONE) or (argument in ("past_only", "common") and value is True):
            continue
        message = refused(lambda value=value: made(name, **{argument: value}), ValueError)
        assert argument in message, (kind, message)


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS, ids=[f"{name} {argument}" for name, argument in ARGUMENTS])
def test_numbers_of_numpy_are_numbers(name, argument):
    """One of 8 bits would overflow in products of itself."""
    value = SCHEMES[name][argument]
    for kind in (np.uint8, np.int64) if type(value) is int else (np.float64, np.float32):
        if type(value) is not bool:
            again = made(name, **{argument: kind(value)})
            np.testing.assert_array_equal(again.test, made(name).test)
            assert again.scheme == made(name).scheme


@pytest.mark.parametrize("seed", [7, 2**40, -1, True, None, "7", np.uint8(7)], ids=repr)
def test_a_seed_is_no_key(seed):
    message = refused(lambda: resample.bootstrap(seed, 20, 5), TypeError)
    assert "expected one random key, got" in message
    assert ("jax.random.key(7)" in message) == (seed == 7)
    assert ("from 0 to 4294967295" in message) == (seed in (2**40, -1))


LABELS = {
    "a text": "a" * 20,
    "columns": np.ones((20, 2)),
    "too few": [1, 2],
    "ragged": [[1], [1, 2]] + [[1]] * 18,
    "missing": [None] * 20,
    "missing in pandas": [pd.NA] * 20,
    "no number": [np.nan] * 20,
    "pairs": [(1, 2)] * 20,
    "no date": np.array(["2020-01-01"] * 19 + ["NaT"], "datetime64[D]"),
    "objects": [object() for _ in range(20)],
    "a dict": {"a": 1},
    "a generator": (label for label in range(20)),
    "data": Data(np.ones((20, 1)), np.ones((20, 1)), ("a",)),
    "a key": KEY,
    "a number": 5,
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_of_another_kind_are_refused(case):
    for argument in ("strata", "groups"):
        assert argument in refused(lambda argument=argument: made("k_fold", **{argument: LABELS[case]}), ValueError)
    for scheme in ("nested_pairs", "paired_halves"):
        assert "strata" in refused(lambda name=scheme: made(name, strata=LABELS[case]), ValueError)
    assert "strata" in refused(lambda: made("five_by_two", strata=LABELS[case]), ValueError)


@pytest.mark.parametrize(
    "labels",
    [
        list("ab") * 10,
        pd.Series(list("ab") * 10),
        pd.Categorical(list("ab") * 10),
        jnp.arange(20) % 2,
        [True, "a"] * 10,
    ],
    ids=["texts", "series", "categories", "jax", "mixed"],
)
def test_labels_of_any_kind_that_compares_are_taken(labels):
    want = made("k_fold", groups=np.arange(20) % 2, folds=2)
    np.testing.assert_array_equal(np.sort(made("k_fold", groups=labels, folds=2).test), np.sort(want.test))


WEIGHTS = {
    **{kind: value for kind, value in STRANGERS.items() if kind not in ("array", "list")},
    "ragged": [[1, 1], [1]],
    "too many": 300 * np.ones((2, 4)),
    "texts": np.ones((2, 4)).astype(str),
    "complex": np.ones((2, 4)) * 1j,
    "objects": np.ones((2, 4)).astype(object),
    "huge": np.full((2, 4), 10**20, object),
    "masked": np.ma.masked_less(np.ones((2, 4)), 5),
    "no rows": np.ones((0, 4)),
    "no cases": np.ones((2, 0)),
    "a row": np.ones(4),
    "four axes": np.ones((1, 1, 2, 4)),
    "a plan": resample.full(4),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights_of_another_kind_are_refused(case):
    ones = np.ones((2, 4))
    for arguments in ((WEIGHTS[case], ones), (ones, WEIGHTS[case])):
        refused(lambda arguments=arguments: resample.from_weights(*arguments), ValueError)


@pytest.mark.parametrize(
    "weights", [[[1] * 4] * 2, np.ones((2, 4), bool), jnp.ones((2, 4)), pd.DataFrame(np.ones((2, 4)))]
)
def test_weights_of_any_kind_that_counts_are_taken(weights):
    plan = resample.from_weights(weights, np.ones((2, 4)))
    assert plan.train.dtype == np.uint8
    assert plan.train.tolist() == [[1] * 4] * 2


ONES = np.ones((2, 4), np.uint8)
PLANS = {
    "flags": (ONES > 0, ONES),
    "flags for the test": (ONES, ONES > 0),
    "lists": (ONES.tolist(), ONES.tolist()),
    "nothing": (None, ONES),
    "integers": (300 * ONES.astype(int), ONES),
    "unlike types": (ONES.astype(np.int64), ONES),
    "16 bits": (ONES.astype(np.uint16), ONES),
    "masked": (np.ma.array(ONES), ONES),
    "of JAX": (jnp.asarray(ONES), jnp.asarray(ONES)),
    "no sets": (ONES[None][:0], ONES[None][:0]),
    "scheme": (ONES, ONES, 5),
    "no labels": (ONES, ONES, "mine", None),
    "labels in a list": (ONES, ONES, "mine", {"fold": [0, 1]}),
    "labels of other rows": (ONES, ONES, "mine", {"fold": np.arange(3)}),
    "labels that are no whole numbers": (ONES, ONES, "mine", {"fold": np.ones(2)}),
}


@pytest.mark.parametrize("case", PLANS)
def test_a_plan_made_by_hand_is_checked(case):
    train, test, scheme, *labels = (*PLANS[case], "mine")[: max(3, len(PLANS[case]))]
    refused(lambda: Plan(train, test, scheme, *labels).checked(), ValueError)


@pytest.mark.parametrize(
    "plans", [None, 5, "a", [None], [resample.full(4), 5], {"a": resample.full(4)}, resample.full(4)]
)
def test_only_plans_are_stacked(plans):
    refused(lambda: resample.stack(plans), TypeError)


def test_data_sets_of_a_plan_are_gone_through_one_by_one():
    plan = made("leave_out")
    assert [np.array_equal(one.train, plan.train[q]) for q, one in enumerate(plan)] == [True] * 3
    assert [one.scheme for one in plan] == [f"{plan.scheme}[{q}]" for q in range(3)]
    np.testing.assert_array_equal(plan[-1].train, plan.train[2])
    assert "expected a plan with a leading axis Q to go through, got one plan [R, N]" in refused(
        lambda: list(plan[0]), TypeError
    )
    for number in (3, -4, "a", None, 1.0, True, slice(0, 2)):
        assert "from 0 to 2" in refused(lambda number=number: plan[number], IndexError)


TOO_LARGE = {
    "leave_out": {"n": 10**6, "resamples": 10**5, "sets": None},
    "balanced": {"n": 10**6, "resamples": 10**5},
    "bootstrap": {"n": 10**6, "resamples": 10**5},
    "k_fold": {"n": 10**6, "folds": 1000, "repeats": 100},
    "leave_one_out": {"n": 10**6},
    "nested_pairs": {"n": 10**6, "folds": 500},
    "paired_halves": {"n": 10**6, "pairs": 100, "resamples": 1000},
    "time_blocks": {"n": 10**6, "folds": 10**5},
    "task_instances": {"n": 10**6, "size": 1, "instances": 10**6, "test_cases": 500_000},
    "full": {"n": 10**12},
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_plan_that_does_not_fit_into_memory_is_refused_at_once(name, monkeypatch):
    """Memory as of a machine with 16 GiB free, so that the test is the same on any."""
    monkeypatch.setattr(memory, "free_bytes", lambda: 2**34)
    message = refused(lambda: made(name, **TOO_LARGE[name]), MemoryError)
    assert "bytes where 17,179,869,184 are free; ask for fewer resamples, or use fewer cases" in message


LARGE = {
    "leave_out": {"n": 1000, "resamples": 500, "sets": 2},
    "leave_out, all splits": {"n": 18, "fraction": 0.5, "resamples": 48_000, "sets": None},
    "balanced": {"n": 1000, "resamples": 1000},
    "bootstrap": {"n": 1000, "resamples": 500, "sets": 2},
    "k_fold": {"n": 10_000, "folds": 2, "repeats": 50},
    "leave_one_out": {"n": 1000},
    "nested_pairs": {"n": 1000, "folds": 30},
    "paired_halves": {"n": 1000, "pairs": 20, "resamples": 25},
    "time_blocks": {"n": 1000, "folds": 500},
    "task_instances": {"n": 10_000, "size": 50, "instances": 100, "test_cases": 5000},
    "full": {"n": 10**6},
}


@pytest.mark.parametrize("case", LARGE)
def test_the_bytes_that_are_asked_for_are_those_that_are_needed(case, monkeypatch):
    """Within a factor of 4 and the 32 MiB of constant working space."""
    asked = []
    monkeypatch.setattr("jaxgen.resample.drawing.require_memory", lambda what, needed, advice: asked.append(needed))
    tracemalloc.start()
    try:
        made(case.split(",")[0], **LARGE[case])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < max(asked) + 2**25
    assert max(asked) < 4 * peak


def test_memory_is_that_of_the_container_where_it_has_less(tmp_path, monkeypatch):
    for file, text in {
        "memory.max": "1000",
        "memory.current": "700",
        "memory.stat": "anon 5\ninactive_file 100\n",
    }.items():
        (tmp_path / file).write_text(text)
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path)
    assert memory.free_bytes() == 400
    (tmp_path / "memory.max").write_text("max")
    assert memory.free_bytes() > 1000
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path / "none")
    assert memory.free_bytes() > 1000
