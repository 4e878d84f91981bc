"""Simulators with arguments that they are not for: one sentence each."""

import jax
import numpy as np
import pytest
from hostile import NO_NUMBERS, STRANGERS, refused

from jaxgen import simulate
from jaxgen.simulate import bank_target, kin_target, pumadyn_target

pytestmark = pytest.mark.usefixtures("own_messages")

KEY = jax.random.key(0)
FAMILIES = {"kin": simulate.kin, "pumadyn": simulate.pumadyn, "bank": simulate.bank}
NO_COUNTS = (0, -1, 2.0, 2.5, np.nan, np.inf, "2", [2], True, np.float64(2), np.array([2, 3]))
SYSTEM = simulate.linear_ar(KEY, None, 5, 3)


@pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)
def test_families_of_hostile_arguments(make):
    for count in NO_COUNTS:
        refused(lambda: make(KEY, count), ValueError)  # noqa: B023
        refused(lambda: make(KEY, 5, sets=count), ValueError)  # noqa: B023
    refused(lambda: make(KEY, None), ValueError)
    for name, values in {
        "inputs": (9, 8.0, "8", None, [8], True, np.array([8, 32])),
        "linearity": ("x", None, 1, ["n"], "nm", "", np.array(["n", "f"])),
        "noise": ("x", None, 1, ["m"], "mh", "", np.array(["m", "h"])),
    }.items():
        for value in values:
            assert name in refused(lambda: make(KEY, 5, **{name: value}), ValueError)  # noqa: B023
    for key in (None, 3, "a", np.zeros(2, np.uint32), jax.random.split(KEY)):
        refused(lambda: make(key, 5), TypeError)  # noqa: B023


@pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)
def test_more_cases_than_memory_holds_are_refused_at_once(make):
    refused(lambda: make(KEY, 10**12), MemoryError)
    refused(lambda: make(KEY, 10**6, sets=10**6), MemoryError)


NO_INPUTS = STRANGERS | {
    "rows of different lengths": [[1.0] * 8, [1.0] * 7],
    "texts": [["a"] * 8],
    "complex numbers": np.ones((2, 8), complex),
    "objects": np.array([[None] * 8]),
    "cases as columns": np.ones((8, 2)),
}


@pytest.mark.parametrize("target", [kin_target, pumadyn_target, bank_target])
@pytest.mark.parametrize("x", NO_INPUTS)
def test_targets_of_what_are_no_inputs(target, x):
    refused(lambda: target(NO_INPUTS[x]), ValueError)


def test_the_linear_system_of_hostile_arguments():
    for position, name in enumerate(("sets", "n", "d")):
        for count in NO_COUNTS:
            counts = [2, 5, 3]
            counts[position] = count
            assert name in refused(lambda: simulate.linear_ar(KEY, *counts), ValueError)  # noqa: B023
    for number in (*NO_NUMBERS.values(), 1, -1, 2.0, np.inf):
        assert "rho" in refused(lambda: simulate.linear_ar(KEY, 2, 5, 3, rho=number), ValueError)  # noqa: B023
    for number in (*NO_NUMBERS.values(), -1.0, np.inf):
        assert "noise" in refused(lambda: simulate.linear_ar(KEY, 2, 5, 3, noise=number), ValueError)  # noqa: B023
    for matrix in ("a", 1.0, [[1.0]], np.ones((3, 2)), np.ones((3, 3)), np.diag([1.0, -1.0, 1.0]), [["a"] * 3] * 3):
        assert "covariance" in refused(lambda: simulate.linear_ar(KEY, 2, 5, 3, covariance=matrix))  # noqa: B023
    refused(lambda: simulate.linear_ar(KEY, 2, 10**12, 3), MemoryError)
    refused(lambda: simulate.linear_ar(None, 2, 5, 3), TypeError)


def test_a_covariance_may_be_a_list():
    made = simulate.linear_ar(KEY, 2, 5, 3, covariance=np.eye(3).tolist())
    np.testing.assert_array_equal(made.covariance, np.eye(3))


@pytest.mark.parametrize(
    ("weights", "inputs"),
    [
        ("a", None),
        (None, None),
        (np.ones(2), None),
        (np.ones((3, 2)), None),
        (np.ones(3, complex), None),
        (1.0, None),
        (np.ones(1), [3]),
        (np.ones(1), [-1]),
        (np.ones(2), [1, 1]),
        (np.ones(3), [0, 1]),
        (np.ones(1), ["x1"]),
        (np.ones(1), 1),
        (np.ones(2), [True, False]),
    ],
    ids=str,
)
def test_weights_belong_to_inputs(weights, inputs):
    refused(lambda: SYSTEM.generalization(weights, inputs), ValueError)


def test_land_cover_of_hostile_arguments():
    for name in ("sets", "n", "classes", "inputs", "reservoir"):
        for count in NO_COUNTS:
            counts = {"sets": 2, "n": 5} | {name: count}
            assert name in refused(lambda: simulate.land_cover(KEY, **counts), ValueError)  # noqa: B023
    assert "classes" in refused(lambda: simulate.land_cover(KEY, 2, 5, 1), ValueError)
    assert "reservoir" in refused(lambda: simulate.land_cover(KEY, 2, 5, reservoir=1), ValueError)
    refused(lambda: simulate.land_cover(KEY, 2, None), ValueError)
    for key in (None, 3, "a", np.zeros(2, np.uint32), jax.random.split(KEY)):
        refused(lambda: simulate.land_cover(key, 2, 5), TypeError)  # noqa: B023
        if key is not None:
            refused(lambda: simulate.land_cover(KEY, 2, 5, scene=key), TypeError)  # noqa: B023
    refused(lambda: simulate.land_cover(KEY, 2, 10**12), MemoryError)
    refused(lambda: simulate.land_cover(KEY, 10**6, 10**6), MemoryError)
