"""Random subsets whose losses say what each case is worth: every case by a coin, and subsets of every size."""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt8

from jaxgen.resample.drawing import call, require_room
from jaxgen.types import Key, Plan
from jaxgen.types.keys import generator, key_first, text
from jaxgen.types.numbers import require, shown


@key_first
def half_samples(key: Key, n: int, resamples: int, value: Collection[Any] | int | None = None) -> Plan:
    """Random subsets that hold each case with probability 1/2, independently of all others (Wang & Jia 2023, "Data
    Banzhaf").

    A draw without a training case is drawn again, and so is one that leaves nothing to test on; above twenty cases that
    hardly happens.

    Args:
      key: consumed.
      n: cases, N.
      resamples: subsets, R.
      value: the value cases, which no row trains on and every row tests: the numbers of these cases, or how many, drawn
        at random; None for none, so that each row is tested on the cases that it lacks.
    Returns:
      Plan, train and test in {0, 1}, shape [R, N].
    Raises:
      ValueError: a number out of range, or value cases that are no cases, come twice, or leave fewer than 2 to train.
      MemoryError: the plan would not fit into memory.
    """
    n, resamples = require("n", n, 2), require("resamples", resamples, 1)
    rng = generator(key)
    chosen = _Value.of(value, n, rng) if value is not None else _Value(np.zeros(n, bool), "")
    cases = np.flatnonzero(~chosen.mask)
    require_room(resamples, n, working=3)
    inside = rng.integers(2, size=(resamples, len(cases)), dtype=np.uint8)
    while len(again := np.flatnonzero(~inside.any(-1) | (inside.all(-1) if value is None else False))):
        inside[again] = rng.integers(2, size=(len(again), len(cases)), dtype=np.uint8)
    scheme = call("half_samples", text(key), n, resamples=resamples, value=chosen.code or None)
    return _plan(inside, cases, None if value is None else chosen.mask, scheme, n)


@key_first
def by_size(key: Key, n: int, resamples: int, value: Collection[Any] | int, smallest: int = 1) -> Plan:
    """Random subsets of every size, for Shapley values: all subsets of a size are equally likely, and how many there
    are of a size s of m cases to train follows 1 / sqrt(s (m - s)), which spreads the error of Shapley values best if
    utilities of all sizes vary alike (Li & Yu 2024, "One sample fits all").

    There are at least two subsets of each size, so that their variance is known, and two of all m cases. No subset
    comes with its complement: where cases add up, that would double the variance.

    Args:
      key: consumed.
      n: cases, N.
      resamples: subsets, R, at least two of each size.
      value: the value cases, which no row trains on and every row tests: their numbers, or how many, drawn at random.
      smallest: the smallest size, for learners that cannot train on a single case. Most learners vary far more on the
        smallest subsets than on others; then a larger number makes the error of Shapley values much smaller.
    Returns:
      Plan, train and test in {0, 1}, shape [R, N], in random order.
    Raises:
      ValueError: a number out of range, fewer than two subsets for each size, or value cases that are no cases, come
        twice, or leave fewer than 2 to train.
      MemoryError: the plan would not fit into memory.
    """
    n, resamples = require("n", n, 3), require("resamples", resamples, 1)
    rng = generator(key)
    chosen = _Value.of(value, n, rng)
    cases = np.flatnonzero(~chosen.mask)
    smallest = require("smallest", smallest, 1, len(cases) - 1, "one less than the cases to train")
    rows = _rows_of_sizes(len(cases), smallest, resamples)
    require_room(resamples, n, working=18)  # of which 16 for random numbers and their order
    sizes = rng.permutation(np.repeat(np.arange(smallest, len(cases) + 1), rows))
    places = rng.permuted(np.tile(np.arange(len(cases)), (resamples, 1)), axis=1)
    inside = (places < sizes[:, None]).astype(np.uint8)
    least = None if smallest == 1 else smallest
    scheme = call("by_size", text(key), n, resamples=resamples, value=chosen.code, smallest=least)
    return _plan(inside, cases, chosen.mask, scheme, n)


class _Value(NamedTuple):
    """Value cases as a mask [N], and the code that stands for them in the text of a plan."""

    mask: np.ndarray
    code: Any

    @classmethod
    def of(cls, value: Any, n: int, rng: np.random.Generator) -> "_Value":
        """The value cases that were asked for; ValueError unless they leave two of n cases to train on."""
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            count = require("value", value, 1, n - 2, "all cases but two")
            numbers, code = rng.choice(n, count, replace=False), count
        else:
            numbers = _numbers(value, n)
            straight = len(numbers) > 0 and np.array_equal(numbers, np.arange(numbers[0], numbers[0] + len(numbers)))
            code = f"range({numbers[0]}, {numbers[-1] + 1})" if straight else f"<{len(numbers)} cases>"
        mask = np.zeros(n, bool)
        mask[numbers] = True
        if len(numbers) != mask.sum() or not 1 <= len(numbers) <= n - 2:
            raise ValueError(
                f"expected 1 to {n - 2} different value cases, which leaves two to train on, got {len(numbers)}, "
                f"{int(mask.sum())} of them different; give the number of each once"
            )
        return cls(mask, code)


def _numbers(value: Any, n: int) -> Int[np.ndarray, " v"]:
    """Numbers of cases [v]; ValueError unless each is one of n."""
    try:
        numbers = np.asarray(list(value)) if isinstance(value, Collection) and not isinstance(value, str) else None
    except ValueError:  # lists of different lengths
        numbers = None
    if numbers is None or numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iu"):
        raise ValueError(
            f"expected value as whole numbers of cases, or how many of them, got {shown(value)}; give for example "
            f"range({max(n - 10, 2)}, {n})"
        )
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= n):
        outside = numbers[(numbers < 0) | (numbers >= n)][0]
        raise ValueError(f"expected value cases from 0 to {n - 1}, got {outside}; give numbers of cases")
    return numbers.astype(np.int64)


def _rows_of_sizes(cases: int, smallest: int, resamples: int) -> Int[np.ndarray, " sizes"]:
    """How many rows there are of each size from the smallest to all cases, in all `resamples`."""
    sizes = cases - smallest + 1
    least = f"two for each size from {smallest} to {cases}"
    require("resamples", resamples, 2 * sizes, advice=f"give {least}")
    size = np.arange(smallest, cases)
    wanted: Float[np.ndarray, " sizes"] = 1 / np.sqrt(size * (cases - size))
    share = (resamples - 2 * sizes) * wanted / wanted.sum()
    rows = np.append(2 + np.floor(share).astype(np.int64), 2)
    first = np.argsort(np.floor(share) - share, kind="stable")  # the largest remainders
    rows[first[: resamples - rows.sum()]] += 1
    return rows


def _plan(
    inside: UInt8[np.ndarray, "R m"],
    cases: Int[np.ndarray, " m"],
    value: np.ndarray | None,
    scheme: str,
    n: int,
) -> Plan:
    """The plan of subsets of some cases, tested on the value cases [N] of the mask, or on what each row lacks."""
    train = np.zeros((len(inside), n), np.uint8)
    train[:, cases] = inside
    test = train ^ 1 if value is None else np.tile(value.astype(np.uint8), (len(inside), 1))
    return Plan(train, test, scheme).checked()
