"""Random rows of weights, many at a time: what the splitting schemes draw, and whether there is room for them."""

import itertools
import math
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8, UInt64

from jaxgen.types.drawn import masks
from jaxgen.types.memory import require_memory
from jaxgen.types.numbers import require

_WORKING_BYTES = 2
"""Bytes for each row and case that drawing and complementing masks need beside those of the plan."""

_LISTING_BYTES = 20
"""The same for listing all masks, as tuples and as indices, at most twice as many as are wanted."""

_AT_ONCE = 1 << 22
"""So many random numbers at once, some tens of MB."""

_TRIES = 100
"""So often are rows that came before drawn again."""


def require_room(rows: int, n: int, sets: int | None = None, working: int = _WORKING_BYTES) -> None:
    """MemoryError, before anything is drawn, if a plan would not fit into memory.

    Args:
      rows: R.
      n: cases, N.
      sets: data sets, Q, if there are several.
      working: bytes for each row and case beside the two of the plan.
    """
    shape = f"{rows} rows and {n} cases" if sets is None else f"{sets} sets of {rows} rows and {n} cases"
    needed = (2 + working) * (sets or 1) * rows * n
    require_memory(f"a plan of {shape}", needed, "ask for fewer resamples, or use fewer cases")


def different(
    rng: np.random.Generator, sets: int, rows: int, n: int, size: int, change: str
) -> UInt8[np.ndarray, "sets rows n"]:
    """Masks [sets, rows, N] of `size` cases, no two rows of a set equal; all such sequences of rows are equally
    likely.

    Where most of the possible masks are wanted they are listed and shuffled. Otherwise masks are drawn, and those that
    came before in their set are drawn again, which is the same distribution.
    """
    require("resamples", rows, 1)
    few = min(size, n - size)
    # C(128, 64) is more than anyone can ask for, and far larger numbers would take long.
    possible = math.comb(n, min(few, 64))
    if rows > possible:
        raise ValueError(
            f"expected at most C({n}, {size}) = {possible} different splits of {n} cases, got {rows}; "
            f"ask for fewer or change the {change}"
        )
    listed = 2 * rows > possible
    require_room(rows, n, sets if sets > 1 else None, _LISTING_BYTES if listed else _WORKING_BYTES)
    if listed:
        every = np.zeros((possible, n), np.uint8)
        np.put_along_axis(every, np.array(list(itertools.combinations(range(n), few))), 1, axis=1)
        masks = every[rng.permuted(np.tile(np.arange(possible), (sets, 1)), axis=1)[:, :rows]]
    else:
        masks = _redrawn(rng, sets, rows, n, few)
    return masks if few == size else masks ^ 1


def _redrawn(rng: np.random.Generator, sets: int, rows: int, n: int, size: int) -> UInt8[np.ndarray, "sets rows n"]:
    """Random masks, of which those equal to an earlier row of their set are drawn again.

    Rows are compared by a sum instead of case by case: every case has a random factor of 64 bits, and a mask has the
    sum of its cases' factors modulo 2^64 (after Zobrist 1970, "A new hashing method"). Equal masks have equal sums,
    different ones next to never, and then only a row is drawn again without need.
    """
    factors = rng.integers(2**64, size=n, dtype=np.uint64)
    drawn, sums = masks(rng, sets * rows, n, size, factors)
    suspects = np.arange(sets)
    while len(suspects):
        which, row = _repeated(sums.reshape(sets, rows)[suspects])
        again = suspects[which] * rows + row
        drawn[again], sums[again] = masks(rng, len(again), n, size, factors)
        suspects = np.unique(suspects[which])
    return drawn.reshape(sets, rows, n)


def _repeated(sums: UInt64[np.ndarray, "sets rows"]) -> tuple[Int[np.ndarray, " again"], Int[np.ndarray, " again"]]:
    """Set and row of the masks whose sum occurs in an earlier row of the set: all repeated masks, and next to never
    another.
    """
    bits = sums.shape[1].bit_length()
    # The number of the row takes the place of the highest bits of the sum, which are the fewest that must go. It stands
    # in the lowest bits, so that no two values of a set are equal: sorting has no ties to break, every machine sorts
    # alike, and of equal sums the earliest row comes first.
    ordered = np.sort(sums << bits | np.arange(sums.shape[1], dtype=np.uint64))
    which, place = np.nonzero(ordered[:, 1:] ^ ordered[:, :-1] < 2**bits)  # neighbours that differ in the row only
    return which, (ordered[which, place + 1] & (2**bits - 1)).astype(np.int64)


def different_shares(
    rng: np.random.Generator, label: Int[np.ndarray, " n"], rows: int, size: int
) -> UInt8[np.ndarray, "rows n"]:
    """Different masks [rows, N] of `size` cases that hold equal shares of all classes: systematic samples of the cases
    sorted by class, in random order within each (Cochran 1977, "Sampling techniques", chapter 8).
    """
    n = len(label)
    masks, again = np.zeros((rows, n), np.uint8), np.arange(rows)
    for _ in range(_TRIES):
        for some in np.array_split(again, math.ceil(len(again) * n / _AT_ONCE)):
            masks[some] = _systematic(rng, label, len(some), size)
        _, first = np.unique(np.packbits(masks, axis=1), axis=0, return_index=True)
        again = np.setdiff1d(np.arange(rows), first)
        if not len(again):
            return masks
    raise ValueError(
        f"expected fewer different splits of {n} cases that leave out equal shares of all classes, got {rows}; "
        "ask for fewer, or leave strata out"
    )


def _systematic(
    rng: np.random.Generator, label: Int[np.ndarray, " n"], rows: int, tested: int
) -> UInt8[np.ndarray, "rows n"]:
    """Masks [rows, N] of so many cases, at equal distances in the order of their labels, at random within each."""
    n, masks = len(label), np.zeros((rows, len(label)), np.uint8)
    order = np.argsort(label + rng.random((rows, n)), axis=1)
    places = np.floor((rng.random((rows, 1)) + np.arange(tested)) * (n / tested)).astype(np.int64)
    np.put_along_axis(masks, np.take_along_axis(order, np.minimum(places, n - 1), axis=1), 1, axis=1)
    return masks


def call(function: str, *arguments: Any, **options: Any) -> str:
    """Code of a call of this module; options that are None are not shown."""
    shown = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in options.items()
        if value is not None
    }
    words = [*map(str, arguments), *(f"{name}={value}" for name, value in shown.items())]
    return f"resample.{function}({', '.join(words)})"
