"""What the mean loss over splits would have been without a case: the jackknife after leave-out, of which nothing is
trained anew.

T is the mean over the cases of their mean losses over the splits that test them. The splits that test case i train
without it; the mean loss of their other test cases is T of the data set that lacks case i, with training sets of the
same size. Of all splits into n1 and n2 cases that is exact, whatever the learner (`tests/test_leaving_out.py`).
"""

import math
from collections.abc import Iterator
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
      kurtosis: of the D_i, n sum D_i^4 / (sum D_i^2)^2; 3 where there is no spread.
      drawn: the Monte Carlo variance of T itself.
    """

    mean: Float[np.ndarray, "*Q"]
    jackknife: Float[np.ndarray, "*Q"]
    noise: Float[np.ndarray, "*Q"]
    tested: Float[np.ndarray, "*Q"]
    trained: Float[np.ndarray, "*Q"]
    kurtosis: Float[np.ndarray, "*Q"]
    drawn: Float[np.ndarray, "*Q"]


def influences(losses: Losses) -> Influences:
    """What every case does to the mean loss over splits, from losses [*Q, R, N].

    Raises:
      ValueError: a row with a single test case, a case that fewer than two rows test, only means of rows, or failed
        rows.
    """
    _require_enough(losses.plan)
    sets, share = every_case(losses).shape[:-2], _not_drawn(losses.plan)
    found = [_of_one(values, test, share) for values, test in _data_sets(losses)]
    return Influences(*(np.reshape(numbers, sets) for numbers in zip(*found, strict=True)))


def between_models(losses: Losses) -> Float[np.ndarray, "*Q"]:
    """How much the risks of models vary that were trained on the same data set, with other splits and other random
    starts: the mean covariance of the losses of two cases over the rows that test both, from losses [*Q, R, N]; [*Q].

    Taken about the means over these rows, what the absence of each case does to the loss of the other is no covariance.
    Of more than a thousand cases every so many are looked at. By chance the covariance may be negative; it is 0 where
    no two rows share two test cases.
    """
    found = [_covariance(values, test) for values, test in _data_sets(losses)]
    return np.reshape(found, every_case(losses).shape[:-2])


def _data_sets(losses: Losses) -> Iterator[tuple[Float[np.ndarray, "R N"], Bool[np.ndarray, "R N"]]]:
    """The losses of each data set, and which cases its rows test."""
    values, plan = every_case(losses), losses.plan
    every = values.reshape(-1, *values.shape[-2:])
    tests = plan.test.reshape(-1, *plan.test.shape[-2:])
    tests = np.broadcast_to(tests, (len(every), *tests.shape[1:]))
    return ((one, test > 0) for one, test in zip(every, tests, strict=True))


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
        return float(low), 0.0, 0.0, 0.0, 0.0, 3.0, 0.0
    of_case, of_row = total / times, np.empty(r)
    # Of every case, over the rows that test it: sums and sums of squares of what the row says of the others, alone and
    # less the loss of the case itself. Some rows at a time, to bound memory.
    others, others_squared, both, both_squared = np.zeros((4, n))
    for start in range(0, r, step := max(1, _ENTRIES // n)):
        rows = slice(start, start + step)
        row, case = np.nonzero(test[rows])
        own = values[rows][row, case] - of_case[case]
        of_row[rows] = np.bincount(row, own)
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
        float(n * np.sum(change**4) / squares**2) if squares > 0 else 3.0,
        float(share * np.var(of_row / size, ddof=1) / r),
    )


def _covariance(values: Float[np.ndarray, "R N"], test: Bool[np.ndarray, "R N"]) -> float:
    """The mean covariance of pairs of cases of one data set, each pair with its degrees of freedom."""
    some = slice(None, None, math.ceil(values.shape[1] / _PAIRED))
    values, test = values[:, some], test[:, some]
    r, m = test.shape
    # Losses about the mean of their case, which loses no digits; of every pair sums over the rows that test both.
    of_case = np.sum(values, axis=0, where=test) / test.sum(0)
    products, sums, rows = np.zeros((3, m, m))
    for start in range(0, r, step := max(1, _ENTRIES // m)):
        tested = test[start : start + step]
        own, both = np.where(tested, values[start : start + step] - of_case, 0), tested.astype(np.float64)
        products += own.T @ own
        sums += own.T @ both
        rows += both.T @ both
    covariances = products - sums * sums.T / np.maximum(rows, 1)
    free = np.maximum(rows - 1, 0)
    apart = ~np.eye(m, dtype=bool)
    total = free[apart].sum()
    return float(covariances[apart].sum() / total) if total else 0.0


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
