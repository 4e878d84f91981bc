"""The least of many numbers, of many columns at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgen.learn.selection import least, parts_for


def found(numbers, parts, length):
    """Which are the least of the numbers [n, b], and what no others come below."""

    @jax.jit
    def of_parts(numbers):
        return least(jnp.split(numbers, parts), lambda case: jnp.take_along_axis(numbers, case, axis=0), length)

    return tuple(np.asarray(a) for a in of_parts(jnp.asarray(numbers)))


@pytest.mark.parametrize("values", ["unlike", "ties", "without an end", "tiny", "below zero", "in order", "falling"])
@pytest.mark.parametrize(
    ("parts", "width", "length"),
    [(1, 30, 30), (1, 1001, 7), (2, 16, 16), (4, 250, 7), (8, 625, 44), (16, 300, 3), (1, 700, 600)],
)
def test_the_least_of_many_numbers(parts, width, length, values, dtype):
    """Which are wanted, 16 of 32 or 600 of 700, the last by XLA. They are told apart by their first bits only, so one
    that is not the least differs from it by no more than the last bits of single precision that places take.
    """
    random = np.random.default_rng([parts, width])
    n = parts * width
    numbers = random.exponential(size=(n, 5))
    if values == "ties":
        numbers = np.floor(3 * numbers)
    if values == "without an end":
        numbers[length - 2 :, 1] = np.inf
    if values == "tiny":
        numbers = numbers * 1e-42
    if values == "below zero":
        numbers -= 0.01
    if values == "in order":
        numbers = np.sort(numbers, axis=0)
    if values == "falling":
        numbers = -np.sort(-numbers, axis=0)
    numbers = numbers.astype(dtype)
    case, last = found(numbers, parts, length)
    assert case.shape == (length, 5)
    assert last.dtype == np.float32
    assert all(len(set(column)) == length for column in case.T.tolist())
    assert case.min() >= 0
    assert case.max() < n
    counted = np.maximum(numbers, 0).astype(float)
    chosen, want = np.sort(np.take_along_axis(counted, case, axis=0), axis=0), np.sort(counted, axis=0)[:length]
    # Places of up to 1000 take 10 of 23 bits; what is less than the smallest normal number is as good as 0.
    share, nothing = 2.0**-13, float(np.finfo(np.float32).tiny)
    np.testing.assert_allclose(chosen, want, rtol=share, atol=nothing)
    others = counted.copy()
    np.put_along_axis(others, case, np.inf, axis=0)
    assert (others.min(axis=0) >= last).all()
    finite = np.isfinite(want[-1])
    assert (last[finite] >= want[-1][finite] * (1 - share) - nothing).all()
    assert (np.isinf(last) == ~finite).all()


@pytest.mark.parametrize(
    ("n", "length", "parts"), [(30, 30, 1), (442, 24, 4), (5000, 24, 8), (5000, 44, 8), (5000, 600, 1)]
)
def test_parts_are_as_many_as_make_little_work(n, length, parts):
    assert parts_for(n, length) == parts


def test_slices_of_lists_do_not_make_xla_sort_all_numbers():
    """As halves of a loop take them, of which each goes through some of the columns."""

    def halves(numbers):
        case, _ = least([numbers], lambda case: jnp.take_along_axis(numbers, case, axis=0), 600)
        return case[:, :20], case[:, 20:]

    program = jax.jit(halves).lower(jnp.zeros((700, 40), jnp.float32)).compile().as_text() or ""
    assert "TopK" in program
    assert " sort(" not in program
