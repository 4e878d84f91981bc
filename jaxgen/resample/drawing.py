"""Random rows of weights, many at a time: what the splitting schemes draw."""

import itertools
import math
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8, UInt64

from jaxgen.types.numbers import require


def different(
    rng: np.random.Generator, sets: int, rows: int, n: int, size: int, change: str
) -> UInt8[np.ndarray, "sets rows n"]:
    """Masks [sets, rows, N] of `size` cases, no two rows of a set equal; all such sequences of rows are equally
    likely.
    """
    require("resamples", rows, 1)
    few = min(size, n - size)
    possible = math.comb(
        n, min(few, 64)
    )  # C(128, 64) is more than anyone can ask for, and far larger n would take long
    if rows > possible:
        raise ValueError(
            f"expected at most C({n}, {size}) = {possible} different splits of {n} cases, got {rows}; "
            f"ask for fewer or change the {change}"
        )
    if 2 * rows > possible:
        every = np.zeros((possible, n), np.uint8)
        np.put_along_axis(every, np.array(list(itertools.combinations(range(n), few))), 1, axis=1)
        masks = every[rng.permuted(np.tile(np.arange(possible), (sets, 1)), axis=1)[:, :rows]]
    else:
        masks = _redrawn(rng, sets, rows, n, few)
    return masks if few == size else masks ^ 1


def _redrawn(rng: np.random.Generator, sets: int, rows: int, n: int, size: int) -> UInt8[np.ndarray, "sets rows n"]:
    """Random masks, of which those equal to an earlier row of their set are drawn again."""
    factors = rng.integers(2**64, size=n, dtype=np.uint64)
    masks, sums = _masks(rng, sets * rows, n, size, factors)
    suspects = np.arange(sets)
    while len(suspects):
        which, row = _repeated(sums.reshape(sets, rows)[suspects])
        again = suspects[which] * rows + row
        masks[again], sums[again] = _masks(rng, len(again), n, size, factors)
        suspects = np.unique(suspects[which])
    return masks.reshape(sets, rows, n)


def _repeated(sums: UInt64[np.ndarray, "sets rows"]) -> tuple[Int[np.ndarray, " found"], Int[np.ndarray, " found"]]:
    """Set and row of the masks whose sum occurs in an earlier row of the set: all repeated masks, and next to never
    another.
    """
    bits = sums.shape[1].bit_length()
    ordered = np.sort(
        sums << bits | np.arange(sums.shape[1], dtype=np.uint64)
    )  # the row in the lowest bits: no ties, so every machine sorts alike
    which, place = np.nonzero(ordered[:, 1:] ^ ordered[:, :-1] < 2**bits)
    return which, (ordered[which, place + 1] & (2**bits - 1)).astype(np.int64)


def _masks(
    rng: np.random.Generator, rows: int, n: int, size: int, factors: UInt64[np.ndarray, " n"]
) -> tuple[UInt8[np.ndarray, "rows n"], UInt64[np.ndarray, " rows"]]:
    """Random masks of `size` cases, and the sum (modulo 2^64) of the factors of those cases."""
    masks, sums, offset = np.zeros(rows * n, np.uint8), np.zeros(rows, np.uint64), n * np.arange(rows)
    if rows < size:
        for row in range(rows):
            cases = rng.choice(n, size, replace=False, shuffle=False)
            masks[row * n + cases], sums[row] = 1, factors[cases].sum()
    else:
        for last in range(n - size, n):  # Floyd's algorithm (Bentley & Floyd 1987), in all rows at once
            case = rng.integers(last + 1, size=rows)
            case = np.where(masks.take(offset + case), last, case)
            masks[offset + case] = 1
            sums += factors.take(case)
    return masks.reshape(rows, n), sums


def counts(rng: np.random.Generator, rows: int, n: int) -> UInt8[np.ndarray, "rows n"]:
    """How often each case comes in n draws with replacement, [rows, N]."""
    drawn, step = np.empty((rows, n), np.uint8), max(2**20 // n, 1)  # some MB at a time
    for first in range(0, rows, step):
        some = min(step, rows - first)
        cases = rng.integers(n, size=(some, n)) + n * np.arange(some)[:, None]
        found = np.bincount(cases.reshape(-1), minlength=some * n)
        if found.max() > 255:
            raise ValueError(
                f"expected no case to be drawn more than 255 times, got {found.max()} in {n} draws; use another key"
            )
        drawn[first : first + some] = found.reshape(some, n)
    return drawn


def call(function: str, *arguments: Any, **options: Any) -> str:
    """Code of a call of this module; options that are None are not shown."""
    shown = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in options.items()
        if value is not None
    }
    words = [*map(str, arguments), *(f"{name}={value}" for name, value in shown.items())]
    return f"resample.{function}({', '.join(words)})"
