"""Semivalues: what a case adds to the utility of a subset of the others, on average over subsets (Banzhaf, Shapley,
Beta-Shapley).
"""

from dataclasses import replace

import numpy as np
import scipy
from jaxtyping import Float, Int

from jaxgen.stats.checks import require_losses
from jaxgen.stats.worth.findings import Worths
from jaxgen.stats.worth.subsets import (
    UTILITY,
    drawn_subsets,
    left_out,
    on_value_cases,
    require_half_samples,
    require_sizes,
)
from jaxgen.types import Losses
from jaxgen.types.numbers import require_number


def banzhaf(losses: Losses) -> Worths:
    """What a case adds to a random half of the others: Banzhaf values by maximum sample reuse (Wang & Jia 2023, "Data
    Banzhaf").

    The utility of a row is minus its mean loss on the value cases. The worth of case i is the mean utility of the rows
    that train on it less that of the others, so that every row serves every case. The empty subset, which counts
    1 / 2^(T-1) of T cases in the definition, is left out.

    Args:
      losses: of a plan of `resample.half_samples` with value cases, [R, N], of every case.
    Returns:
      Worths of the T cases that are not value cases.
    Raises:
      ValueError: a plan of another kind, without value cases, or with fewer than two; losses of rows only, failed rows,
        several data sets, or a case with fewer than two rows with and without it.
      TypeError: no losses.
    """
    drawn = drawn_subsets(losses)
    utility = on_value_cases(drawn)
    require_half_samples(drawn)
    with_it, mean = drawn.inside.sum(0), utility.mean(1)
    without = len(mean) - with_it
    if min(with_it.min(), without.min()) < 2:
        raise ValueError(
            f"expected at least two rows with and two without each case, got {int(with_it.min())} and "
            f"{int(without.min())} for some ({drawn.plan.scheme}); ask for more resamples"
        )
    outside = 1 - drawn.inside
    weights = drawn.inside / with_it - outside / without
    variance = np.zeros(len(with_it))
    for mask, count in ((drawn.inside, with_it), (outside, without)):
        centred = mask * (mean[:, None] - mean @ mask / count)
        variance += np.sum(centred**2, axis=0) / (count * (count - 1))
    about = "the mean gain of utility from a case over random halves of the others"
    describe = ("Banzhaf values by maximum sample reuse", "Wang & Jia 2023", about, left_out(losses))
    return _worths(describe, losses, drawn.trained, weights, utility, utility - utility.mean(0), variance)


def shapley(losses: Losses, *, empty: float | int | None = None) -> Worths:
    """What a case adds to a random subset of the others of random size: Shapley values (Ghorbani & Zou 2019, "Data
    Shapley") from subsets of all sizes.

    The utility U of a row is minus its mean loss on the value cases. Of T cases, phi_i = 1/T sum_s (E[U | size s + 1,
    with i] - E[U | size s, without i]). Each row serves every case (Li & Yu 2024, "One sample fits all"): phi_i is the
    sum over sizes of the covariance of U with a = T/s / T where the row has i, -T/(T - s) / T where it has not. The
    values add up to U(all cases) - U(empty), whatever the rows. In simulations the Monte Carlo part of the standard
    error is 11 % too small with two rows of each size, the fewest, and 4 % with four.

    Args:
      losses: of a plan of `resample.by_size`, [R, N], of every case.
      empty: the utility of a subset that is smaller than the smallest of the plan, such as minus the mean loss of
        predicting the mean; None takes the mean utility of the smallest subsets. It changes all values by one constant.
        Rows that failed, such as those of a classifier where a class is missing, get this utility too, where it is
        given.
    Returns:
      Worths of the T cases that are not value cases.
    Raises:
      ValueError: fewer than two rows of some size, no value cases, or fewer than two; losses of rows only, failed rows
        without an empty utility, or failed rows left out; several data sets, or an empty utility that is no number.
      TypeError: no losses.
    """
    describe = ("Shapley values", "Ghorbani & Zou 2019; subsets as Li & Yu 2024")
    return _of_sizes(describe, losses, 1.0, 1.0, empty)


def beta_shapley(losses: Losses, alpha: float | int, beta: float | int, *, empty: float | int | None = None) -> Worths:
    """Shapley values with other weights of sizes: Beta(alpha, beta)-Shapley (Kwon & Zou 2022, "Beta Shapley").

    The mean gain from case i over subsets of s of the other T - 1 cases counts with the beta-binomial probability
    C(T-1, s) B(s + beta, T - 1 - s + alpha) / B(alpha, beta) (their eq. 5 with j = s + 1). So Beta(1, 1) are Shapley
    values, Beta(16, 1) counts small subsets most, where one case matters more, and Beta(1, 16) large ones.

    Args:
      losses: of a plan of `resample.by_size`, [R, N], of every case.
      alpha, beta: of the law, above 0.
      empty: as for `shapley`.
    Returns:
      Worths of the T cases that are not value cases.
    Raises:
      ValueError: as `shapley`, or alpha or beta not above 0.
      TypeError: no losses.
    """
    require_number("alpha", alpha, above=0, most=1e6, advice="give 1 for Shapley values, 16 for small subsets")
    require_number("beta", beta, above=0, most=1e6, advice="give 1 for Shapley values, 16 for large subsets")
    describe = (f"Beta({alpha:g}, {beta:g})-Shapley values", "Kwon & Zou 2022; subsets as Li & Yu 2024")
    return _of_sizes(describe, losses, float(alpha), float(beta), empty)


def _of_sizes(
    describe: tuple[str, str], losses: Losses, alpha: float, beta: float, empty: float | int | None
) -> Worths:
    """The semivalue whose weights of sizes are beta-binomial."""
    if empty is not None:
        require_number("empty", empty, advice="give minus the mean loss on the value cases without any training")
    losses, failed = _of_every_row(losses, empty)
    drawn = drawn_subsets(losses)
    utility = on_value_cases(drawn)
    sizes, cases = require_sizes(drawn), len(drawn.trained)
    smallest, mean = int(sizes.min()), utility.mean(1)
    weight = scipy.stats.betabinom.pmf(np.arange(cases), cases - 1, beta, alpha)
    weights, centred = np.empty_like(drawn.inside), np.empty_like(utility)
    variance = np.zeros(cases)
    for size in range(smallest, cases + 1):
        rows = np.flatnonzero(sizes == size)
        gain, expected = _gains(drawn.inside[rows], weight, size)
        of_empty = weight[smallest - 1] if size == smallest and empty is None else 0.0
        of_mean = expected - of_empty
        m, y = len(rows), mean[rows, None] - mean[rows].mean()
        weights[rows] = (gain - gain.mean(0)) / (m - 1) + of_mean / m
        centred[rows] = utility[rows] - utility[rows].mean(0)
        # With two rows the deviations of gains from their own mean would hide their spread.
        terms = y * (gain - expected) * m / (m - 1) + of_mean * y
        variance += terms.var(0, ddof=1) / m
    constant = 0.0 if empty is None else -weight[smallest - 1] * empty
    small = "the empty subset is" if smallest == 1 else f"subsets of fewer than {smallest} cases are"
    worth = "the mean of the smallest trained" if empty is None else f"{empty:g}"
    note = f"{small} taken to have the utility {worth}" + f", and so are {failed} rows that failed" * (failed > 0)
    about = "the mean gain of utility from a case over subsets of the others of all sizes"
    return _worths((*describe, about, note), losses, drawn.trained, weights, utility, centred, variance, constant)


def _of_every_row(losses: Losses, empty: float | int | None) -> tuple[Losses, int]:
    """The losses [R, N] with the empty utility in the rows that failed, and how many these are."""
    require_losses(losses)
    if losses.dropped:
        raise ValueError(
            f"expected the losses of all rows, got {losses.dropped} failed rows left out, which are no random subsets; "
            "give the losses with them, and empty= for the utility that they get"
        )
    failed = int(losses.failed.sum())
    if empty is None or losses.values is None or losses.sets is not None or not failed:
        return losses, 0
    values = np.where(losses.failed[:, None], -float(empty), losses.values)
    return replace(losses, values=values, failure=np.zeros_like(losses.failure)), failed


def _gains(
    inside: Float[np.ndarray, "m T"], weight: Float[np.ndarray, " T"], size: int
) -> tuple[Float[np.ndarray, "m T"], float]:
    """What the utility of rows of a size counts for each case, [m, T], and its expectation over subsets of that size:
    `weight` [T] is of the subsets of s = 0, ..., T - 1 other cases.
    """
    cases = inside.shape[1]
    if size == cases:
        return np.full_like(inside, weight[-1]), float(weight[-1])
    present, absent = weight[size - 1] * cases / size, weight[size] * cases / (cases - size)
    return np.where(inside > 0, present, -absent), float(weight[size - 1] - weight[size])


def _worths(
    describe: tuple[str, str, str, str],
    losses: Losses,
    trained: Int[np.ndarray, " T"],
    weights: Float[np.ndarray, "R T"],
    utility: Float[np.ndarray, "R V"],
    centred: Float[np.ndarray, "R V"],
    variance: Float[np.ndarray, " T"],
    constant: float = 0.0,
) -> Worths:
    """A semivalue that is a weighted sum of the rows' utilities, whose Monte Carlo variance is known.

    Over the V value cases it varies for two reasons: they differ, and the rows' noise differs between them. The second,
    known from the utilities centred by row and value case, is subtracted from the variance over value cases; the
    Monte Carlo part has it already.
    """
    of_each, count = weights.T @ utility, utility.shape[1]
    apart = np.sum((centred - centred.mean(1, keepdims=True)) ** 2, axis=1) / (count - 1)
    between = np.maximum(of_each.var(1, ddof=1) - np.square(weights).T @ apart, 0) / count
    method, source, about, note = describe
    return Worths(
        method=method,
        source=source,
        target=f"{about}; utility is {UTILITY}",
        unit=losses.unit,
        note=note,
        learner=losses.name,
        cases=trained,
        estimate=of_each.mean(1) + constant,
        standard_error=np.sqrt(variance + between),
        monte_carlo=np.sqrt(variance),
        of_value_cases=np.sqrt(between),
        rows=losses.resamples,
    )
