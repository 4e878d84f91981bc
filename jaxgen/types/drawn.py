"""A plan of random rows that are drawn when they are needed, a block at a time; and how random rows are drawn."""

import itertools
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, UInt8, UInt64

from jaxgen.types.memory import require_memory
from jaxgen.types.plan import Plan, sum_cases

_BLOCK_VALUES, _MOST_ROWS = 1 << 22, 4096
"""Weights, and rows, of a block at most: few MB, and enough rows to draw them together."""


class Recipe(NamedTuple):
    """What the rows of a plan are drawn from; all plain numbers, so that another process draws the same.

    Attributes:
      words: the random key as numbers.
      n: cases, N.
      tested: cases that each row leaves out to test; None for bootstrap samples, tested on the cases that they lack.
    """

    words: tuple[int, ...]
    n: int
    tested: int | None

    @property
    def block_rows(self) -> int:
        """Rows that are drawn together."""
        return max(1, min(_MOST_ROWS, _BLOCK_VALUES // self.n))

    def block(self, number: int) -> tuple[UInt8[np.ndarray, "rows n"], UInt8[np.ndarray, "rows n"]]:
        """Training and test weights of a block of rows, [rows, N] each."""
        rng = np.random.default_rng([*self.words, number])
        if self.tested is None:
            train = lacking_some(rng, self.block_rows, self.n)
            return train, (train == 0).astype(np.uint8)
        few = min(self.tested, self.n - self.tested)
        chosen, _ = masks(rng, self.block_rows, self.n, few, np.zeros(self.n, np.uint64))
        return (chosen ^ 1, chosen) if few == self.tested else (chosen, chosen ^ 1)


class DrawnPlan(Plan):
    """A plan of random rows that exists as a recipe only: any range of its rows can be drawn by itself.

    So a million rows of ten thousand cases need no 20 GB: `assess` draws the rows of one part of a run after the other.
    Reading `train` or `test` draws all rows; then they stay in memory.

    Args:
      recipe: what rows are drawn from.
      numbers: which of the endless rows of that recipe, counted from 0, [R].
      scheme: text that says what rows these are.
    """

    recipe: Recipe
    numbers: Int[np.ndarray, "R"]

    def __init__(self, recipe: Recipe, numbers: Int[np.ndarray, "R"], scheme: str):
        named = {"recipe": recipe, "numbers": numbers, "scheme": scheme, "labels": {}, "cases": {}}
        for name, value in named.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return DrawnPlan, (self.recipe, self.numbers, self.scheme)

    @property
    def n(self) -> int:
        """Cases, N."""
        return self.recipe.n

    @property
    def resamples(self) -> int:
        """Resamplings, R."""
        return len(self.numbers)

    @property
    def sets(self) -> None:
        """None: one plan serves all data sets."""
        return

    @property
    def shape(self) -> tuple[int, ...]:
        """That of its weights, [R, N]."""
        return self.resamples, self.n

    @property
    def drawn_one_by_one(self) -> bool:
        """True."""
        return True

    @property
    def repeats_cases(self) -> bool:
        """Whether a row trains on a case more than once: bootstrap samples do."""
        return self.recipe.tested is None

    @property
    def train(self) -> UInt8[np.ndarray, "R N"]:
        """Training weights, [R, N]; MemoryError if those of all rows do not fit into memory."""
        return self._weights[0]

    @property
    def test(self) -> UInt8[np.ndarray, "R N"]:
        """Test weights, [R, N]; MemoryError if those of all rows do not fit into memory."""
        return self._weights[1]

    @cached_property
    def _weights(self) -> tuple[UInt8[np.ndarray, "R N"], UInt8[np.ndarray, "R N"]]:
        require_memory(
            f"all weights of {self.resamples} rows and {self.n} cases",
            2 * self.resamples * self.n,
            "use statistics that need the losses of rows only, or fewer resamples",
        )
        train, test = (np.empty((self.resamples, self.n), np.uint8) for _ in range(2))
        for *rows, here in self._blocks():
            train[here], test[here] = rows
        return train, test

    def _blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, slice]]:
        """Training and test weights of the rows that are in one block, [rows, N], and where they stand in this plan."""
        block, within = np.divmod(self.numbers, self.recipe.block_rows)
        begins = np.flatnonzero(np.diff(block, prepend=-1))
        for begin, end in itertools.pairwise([*begins.tolist(), self.resamples]):
            train, test = self.recipe.block(int(block[begin]))
            here = within[begin:end]
            yield train[here], test[here], slice(begin, end)

    @cached_property
    def train_sizes(self) -> Int[np.ndarray, "R"]:
        """Sum of the training weights of each row, [R]: n1."""
        return np.full(self.resamples, self.n - (self.recipe.tested or 0))

    @cached_property
    def test_sizes(self) -> Int[np.ndarray, "R"]:
        """Sum of the test weights of each row, [R]: n2; of bootstrap samples this draws all rows once."""
        if self.recipe.tested is not None:
            return np.full(self.resamples, self.recipe.tested)
        sizes = np.empty(self.resamples, np.int64)
        for _, test, here in self._blocks():
            sizes[here] = sum_cases(test)
        return sizes

    @cached_property
    def train_cases(self) -> Int[np.ndarray, "R"]:
        """Different cases that each row trains on, [R]."""
        return self.n - self.test_sizes

    def chosen(self, rows: Any, scheme: str) -> "DrawnPlan":
        """The plan of some rows, [r, N]; nothing is drawn."""
        return DrawnPlan(self.recipe, self.numbers[rows], scheme)

    def checked(self) -> "DrawnPlan":
        """This plan itself: what is drawn is right by construction."""
        return self


def masks(
    rng: np.random.Generator, rows: int, n: int, size: int, factors: UInt64[np.ndarray, " n"]
) -> tuple[UInt8[np.ndarray, "rows n"], UInt64[np.ndarray, " rows"]]:
    """Random masks of `size` cases, [rows, N], and the sum (modulo 2^64) of the factors of those cases, [rows]."""
    drawn, sums, offset = np.zeros(rows * n, np.uint8), np.zeros(rows, np.uint64), n * np.arange(rows)
    if rows < size:  # a loop over rows, in place of one over cases
        for row in range(rows):
            cases = rng.choice(n, size, replace=False, shuffle=False)
            drawn[row * n + cases], sums[row] = 1, factors[cases].sum()
    else:
        # Floyd's algorithm (Bentley & Floyd 1987, "A sample of brilliance"), in all rows at once: the case drawn from
        # 0, ..., last enters, or `last` itself if it is in already. So each mask costs `size` draws, however many cases
        # there are, and all masks of that size are equally likely.
        for last in range(n - size, n):
            case = rng.integers(last + 1, size=rows)
            case = np.where(drawn.take(offset + case), last, case)
            drawn[offset + case] = 1
            sums += factors.take(case)
    return drawn.reshape(rows, n), sums


def lacking_some(rng: np.random.Generator, rows: int, n: int) -> UInt8[np.ndarray, "rows n"]:
    """Bootstrap samples that each lack a case to test on, [rows, N]: draws that hold every case are drawn again."""
    train = counts(rng, rows, n)
    while len(again := np.flatnonzero(train.all(-1))):
        train[again] = counts(rng, len(again), n)
    return train


def counts(rng: np.random.Generator, rows: int, n: int) -> UInt8[np.ndarray, "rows n"]:
    """How often each case comes in n draws with replacement, [rows, N]."""
    drawn, step = np.empty((rows, n), np.uint8), max(2**20 // n, 1)  # some MB at a time
    for first in range(0, rows, step):
        part = min(step, rows - first)
        cases = rng.integers(n, size=(part, n)) + n * np.arange(part)[:, None]
        times = np.bincount(cases.reshape(-1), minlength=part * n)
        if times.max() > 255:
            raise ValueError(
                f"expected no case to be drawn more than 255 times, got {times.max()} in {n} draws; use another key"
            )
        drawn[first : first + part] = times.reshape(part, n)
    return drawn
