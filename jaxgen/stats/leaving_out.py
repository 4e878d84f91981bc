"""What the mean loss over splits would have been without a case: the jackknife after leave-out, of which nothing is
trained anew.

T is the mean over the cases of their mean losses over the splits that test them. The splits that test case i train
without it; the mean loss of their other test cases is T of the data set that lacks case i, with training sets of the
same size. Of all splits into n1 and n2 cases that is exact, whatever the learner (`tests/test_leaving_out.py`).
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from jaxgen.stats.design import repeated
from jaxgen.stats.rows import every_case, span
from jaxgen.types import Losses, Plan


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
    values, plan = every_case(losses), losses.plan
    _require_enough(plan)
    test, share, sets = plan.test > 0, _not_drawn(plan), values.shape[:-2]
    every = values.reshape(-1, *values.shape[-2:])
    if test.ndim == 2:
        used = [np.nonzero(test)] * len(every)
    else:
        used = [np.nonzero(one) for one in test.reshape(-1, *test.shape[-2:])]
    found = [_of_one(one[row, case], row, case, share) for one, (row, case) in zip(every, used, strict=True)]
    return Influences(*(np.reshape(numbers, sets) for numbers in zip(*found, strict=True)))


def _of_one(
    tested: Float[np.ndarray, " M"], row: Int[np.ndarray, " M"], case: Int[np.ndarray, " M"], share: float
) -> tuple[float, ...]:
    """The influences [] of one data set, from all M losses of a tested case, with the row and the case of each; `share`
    of all possible splits were not drawn.

    The losses of a case are taken about their own mean, which T without a case then gets back: which other cases happen
    to be tested together is no noise, only how the models differ. That takes 10 to 35 times fewer splits.
    """
    if np.ptp(tested) == 0:
        return float(tested[0]), 0.0, 0.0, 0.0, 0.0, 3.0, 0.0
    size, times = np.bincount(row), np.bincount(case)
    n, r = len(times), len(size)
    of_case = np.bincount(case, tested) / times
    own = tested - of_case[case]
    of_row = np.bincount(row, own)
    others = (of_row[row] - own) / (size[row] - 1)
    lost = np.bincount(case, others) / times
    change = lost - (of_case - of_case.mean()) / (n - 1)
    change -= change.mean()
    # Rows that test a case differ by noise. They are among all rows, about whose mean they are taken, so that it is
    # less by the share of the rows with another case that test this one too.
    together = np.sum(size * (size - 1)) / np.sum(size) / (n - 1)
    kept = share * (1 - together)
    noise = kept * np.sum(_variance(others - tested / (n - 1), case, times) / times)
    squares = np.sum(np.square(change))
    return (
        float(of_case.mean()),
        float((n - 1) / n * squares),
        float((n - 1) / n * noise),
        float(of_case.var() / (n - 1)),
        float(np.sum(np.square(lost - lost.mean())) - kept * np.sum(_variance(others, case, times) / times)),
        float(n * np.sum(change**4) / squares**2) if squares > 0 else 3.0,
        float(share * np.var(of_row / size, ddof=1) / r),
    )


def _variance(
    values: Float[np.ndarray, " M"], case: Int[np.ndarray, " M"], times: Int[np.ndarray, " N"]
) -> Float[np.ndarray, " N"]:
    """The variance of the values of each case over the rows that test it, [N]."""
    mean = np.bincount(case, values) / times
    return np.bincount(case, np.square(values - mean[case])) / (times - 1)


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
