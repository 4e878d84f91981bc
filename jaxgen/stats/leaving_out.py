"""What the mean loss over splits would have been without a case: the jackknife after leave-out, of which nothing is
trained anew.

T is the mean over the cases of their mean losses over the splits that test them. The splits that test case i train
without it; the mean loss of their other test cases is T of the data set that lacks case i, with training sets of the
same size. Of all splits into n1 and n2 cases that is exact, whatever the learner (`tests/test_leaving_out.py`).
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jaxgen.stats.design import repeated
from jaxgen.stats.rows import every_case, span
from jaxgen.types import Losses, Plan

_ENTRIES = 2**22
"""Losses that are worked on at a time."""

_PAIRED = 1000
"""Cases whose pairs are looked at; of more cases every so many."""


class Influences(NamedTuple):
    """What the cases do to the mean loss T over splits, each [*Q].

    Attributes:
      mean: T.
      jackknife: (n-1)/n sum_i D_i^2, where D_i = T without case i, minus the mean of these: the jackknife's variance of
        T, with the Monte Carlo noise of the splits in it.
      noise: the part of it that is Monte Carlo noise, as far as rows that test the same case differ.
      tested: what test cases would give alone, the all-pairs variance of Bayle et al. 2020 with divisor n - 1.
      trained: sum_i e_i^2 less its noise, where e_i is what case i does to the loss of others as it is not trained on:
        to first order the variance of the risk R over training sets. By chance it may be negative.
      models: how much the risks of models vary that were trained on the same data set, with other splits and other
        random starts: the mean covariance of the losses of two cases over the rows that test both. By chance it may be
        negative; 0 where no two rows share two test cases.
      kurtosis: of the D_i, n sum D_i^4 / (sum D_i^2)^2; 3 where there is no spread.
      drawn: the Monte Carlo variance of T itself.
    """

    mean: Float[np.ndarray, "*Q"]
    jackknife: Float[np.ndarray, "*Q"]
    noise: Float[np.ndarray, "*Q"]
    tested: Float[np.ndarray, "*Q"]
    trained: Float[np.ndarray, "*Q"]
    models: Float[np.ndarray, "*Q"]
    kurtosis: Float[np.ndarray, "*Q"]
    drawn: Float[np.ndarray, "*Q"]


def influences(losses: Losses) -> Influences:
    """What every case does to the mean loss over splits, from losses [*Q, R, N].

    Raises:
      ValueError: a row with a single test case, a case that fewer than two rows test, only means of rows, or failed
        rows.
    """
    values, plan = every_case(losses), losses.plan
    _require_enough(plan)
    sets, share = values.shape[:-2], _not_drawn(plan)
    every = values.reshape(-1, *values.shape[-2:])
    tests = plan.test.reshape(-1, *plan.test.shape[-2:])
    tests = np.broadcast_to(tests, (len(every), *tests.shape[1:]))
    found = [_of_one(one, test > 0, share) for one, test in zip(every, tests, strict=True)]
    return Influences(*(np.reshape(numbers, sets) for numbers in zip(*found, strict=True)))


def _of_one(values: Float[np.ndarray, "R N"], test: Bool[np.ndarray, "R N"], share: float) -> tuple[float, ...]:
    """The influences [] of one data set; `share` of all possible splits were not drawn.

    The losses of a case are taken about their own mean, which T without a case then gets back: which other cases happen
    to be tested together is no noise, only how the models differ. Linear models and splits of a tenth need 10 to 35
    times fewer of them for that.
    """
    r, n = test.shape
    size, times = test.sum(-1), test.sum(0)
    total = np.sum(values, axis=0, where=test)
    low, high = (of(values, where=test, initial=end) for of, end in ((np.min, np.inf), (np.max, -np.inf)))
    if low == high:
        return float(low), 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0
    of_case, of_row, pairs = total / times, np.empty(r), _Pairs.of(n)
    # Of every case, over the rows that test it: sums and sums of squares of what the row says of the others, alone and
    # less the loss of the case itself. Some rows at a time, to bound memory.
    others, others_squared, both, both_squared = np.zeros((4, n))
    for start in range(0, r, step := max(1, _ENTRIES // n)):
        rows = slice(start, start + step)
        row, case = np.nonzero(test[rows])
        own = values[rows][row, case] - of_case[case]
        of_row[rows] = np.bincount(row, own)
        pairs.add(np.where(test[rows], values[rows] - of_case, 0), test[rows])
        rest = (of_row[rows][row] - own) / (size[rows][row] - 1)
        less = rest - own / (n - 1)
        for into, what in ((others, rest), (others_squared, rest**2), (both, less), (both_squared, less**2)):
            into += np.bincount(case, what, n)
    lost = others / times
    change = lost - (of_case - of_case.mean()) / (n - 1)
    change -= change.mean()
    # Rows that test a case differ by noise. They are among all rows, about whose mean they are taken, so that it is
    # less by the share of the rows with another case that test this one too.
    together = np.sum(size * (size - 1)) / np.sum(size) / (n - 1)
    kept = share * (1 - together) / times / (times - 1)
    noise = np.sum(kept * np.maximum(both_squared - both**2 / times, 0))
    noise_of_others = np.sum(kept * np.maximum(others_squared - others**2 / times, 0))
    squares = np.sum(np.square(change))
    return (
        float(of_case.mean()),
        float((n - 1) / n * squares),
        float((n - 1) / n * noise),
        float(of_case.var() / (n - 1)),
        float(np.sum(np.square(lost - lost.mean())) - noise_of_others),
        pairs.covariance(),
        float(n * np.sum(change**4) / squares**2) if squares > 0 else 3.0,
        float(share * np.var(of_row / size, ddof=1) / r),
    )


class _Pairs(NamedTuple):
    """Sums over rows that test two cases both, some cases with each other [m, m]: of the products of their losses, of
    the losses of the first, and of how many such rows there are. They are taken about the means over these rows, so
    that what the absence of each does to the loss of the other is no covariance.
    """

    some: slice
    products: Float[np.ndarray, "m m"]
    losses: Float[np.ndarray, "m m"]
    rows: Float[np.ndarray, "m m"]

    @classmethod
    def of(cls, n: int) -> "_Pairs":
        """Of n cases, before any row."""
        some = slice(None, None, math.ceil(n / _PAIRED))
        return cls(some, *np.zeros((3, *[len(range(n)[some])] * 2)))

    def add(self, losses: Float[np.ndarray, "r n"], test: Bool[np.ndarray, "r n"]) -> None:
        """Adds rows; losses are 0 where they do not test a case."""
        losses, tested = losses[:, self.some], test[:, self.some].astype(losses.dtype)
        for into, a, b in ((self.products, losses, losses), (self.losses, losses, tested), (self.rows, tested, tested)):
            into += a.T @ b

    def covariance(self) -> float:
        """The mean covariance over all pairs, each with its degrees of freedom."""
        about = self.products - self.losses * self.losses.T / np.maximum(self.rows, 1)
        free = np.maximum(self.rows - 1, 0)
        free_of_pairs = free.sum() - np.trace(free)
        return float((about.sum() - np.trace(about)) / free_of_pairs) if free_of_pairs else 0.0


def _not_drawn(plan: Plan) -> float:
    """The share of all splits of these sizes that a plan did not draw; 1 where sizes differ or rows repeat others."""
    sizes = plan.test_sizes
    if sizes.min() != sizes.max() or repeated(plan):
        return 1.0
    return 1 - min(1.0, plan.resamples / math.comb(plan.n, int(sizes.min())))


def _require_enough(plan: Plan) -> None:
    """ValueError for rows from which T without a case cannot be seen."""
    if plan.test_sizes.min() < 2:
        raise ValueError(
            f"expected at least 2 test cases in every row, got {span(plan.test_sizes)} ({plan.scheme}); "
            "leave out a tenth of the cases or more"
        )
    times = (plan.test > 0).sum(-2)
    if times.min() < 2:
        raise ValueError(
            f"expected every case to be tested in at least 2 rows, got {int((times < 2).sum())} that are not "
            f"({plan.scheme}); ask for more resamples, or for folds with repeats"
        )
