"""The tutorial of Michelucci & Venturini 2021, "Estimating neural network's performance with bootstrap", as statistics
of losses.

Its Algorithm 1 is `bootstrap`; 2 and 3 (leave-one-out and k-fold) are `cross_validation`, whose parts hold average and
standard deviation of the rows; 4 is `split_train`; 5 is `bootstrap_test_cases`; and the mixed approach is `mixed`.
`jackknife` and `subsampling` have the limits that it tells of. A statistic is any function that is called as
`statistic(values, axis=-1)`, as `numpy.mean` and `numpy.median` are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from jaxtyping import Bool, Float, Int

from jaxgen.stats.checks import as_numbers, require_draws, require_finite, require_level, require_losses
from jaxgen.stats.design import require_independent
from jaxgen.stats.rows import cases_of_row, require_held_out
from jaxgen.stats.spread import bootstrapped, dropped, joined
from jaxgen.types import Losses
from jaxgen.types.late import pandas as pd
from jaxgen.types.numbers import first_line, require, shown
from jaxgen.types.result import Result, described

Statistic = Callable[..., Any]
TUTORIAL = "Michelucci & Venturini 2021"
POPULATION = "the value that the statistic has for the population of the cases"


def bootstrap(
    values: Float[np.ndarray, "*Q N"],
    *,
    statistic: Statistic = np.mean,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Result:
    """Bootstrap of an estimator: it is computed again on N of the N values, drawn with replacement (Algorithm 1; Efron
    1979).

    The tutorial reports average and standard deviation of these replicates. For a mean the variance is (N - 1) / N^2
    S^2, a little less than S^2 / N.

    Args:
      values: observations of one kind, [*Q, N]; the same cases are drawn from each of the Q.
      seed: of NumPy's generator.
      statistic: the estimator.
      resamples: replicates, B.
      level: share of the replicates between the limits, 0 < level < 1.
    Returns:
      Result, [*Q]: the estimate from the values themselves, the standard deviation of the replicates as its standard
      error, their quantiles as limits (percentile interval), and the part "average", that of the replicates.
    Raises:
      ValueError: fewer than 2 values, one that is not finite, a statistic that fails or does not take the values along
        an axis, a negative seed, fewer than 2 resamples, or a level out of range.
      TypeError: no numbers, or no function.
    """
    values = _checked(values, statistic)
    require_draws(resamples, seed, 2, max(1, values[..., 0].size))
    require_level(level)
    drawn = bootstrapped(values, statistic, "percentile", resamples, seed, level)
    numbers = (statistic(values, axis=-1), drawn.standard_error, np.nan, *drawn.confidence_interval)
    parts = {"average": drawn.bootstrap_distribution.mean(-1)}
    return described("bootstrap", "Efron 1979", POPULATION, _name(statistic), "", *numbers, level=level, parts=parts)


def bootstrap_test_cases(
    losses: Losses,
    *,
    row: int = 0,
    statistic: Statistic = np.mean,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Result:
    """Bootstrap of the test set of one trained model: its test cases are drawn again, and nothing is trained again
    (Algorithm 5).

    Args:
      losses: of a plan that holds its test cases out, [*Q, R, N].
      seed: of NumPy's generator.
      row: the one that is looked at, from 0.
      statistic: of the losses of its test cases.
      resamples: replicates, B.
      level: share of the replicates between the limits, 0 < level < 1.
    Returns:
      Result, [*Q], as from `bootstrap`.
    Raises:
      ValueError: what `row_losses` or `bootstrap` refuse.
      TypeError: no losses, or a statistic that is no function.
    """
    require_losses(losses)
    settings: dict[str, Any] = {"statistic": statistic, "level": level, "resamples": resamples, "seed": seed}
    results = [bootstrap(_sample(of_set, row), **settings) for of_set in _sets(losses)]
    stacked = {
        name: _stacked([getattr(result, name) for result in results], losses)
        for name in ("estimate", "standard_error", "df", "lower", "upper")
    }
    parts = {"average": _stacked([result.parts["average"] for result in results], losses)}
    target = "the risk of the one model that this row trained"
    note = (
        "it knows this split only: test cases that are not like the others mislead it, and other "
        "training sets are not covered; `mixed` looks at several splits"
    )
    return described(
        "bootstrap of the test cases",
        f"{TUTORIAL}, Algorithm 5",
        target,
        _unit(losses, statistic),
        losses.name,
        **stacked,
        level=level,
        parts=parts,
        note=note,
    )


def split_train(losses: Losses) -> Result:
    """Average and standard deviation of G over random splits, each with a training of its own (Algorithm 4).

    The tutorial takes the bootstrap of the test cases of one split for an approximation of this. Splits of one data
    set vary less: for a model that does not depend on its training cases the variances are S^2 (1/n2 - 1/N) here and
    about S^2 / n2 there (derived).

    Models that did not converge falsify the result, says the tutorial, and leaves it to the reader to find them.
    Counted here are the rows whose apparent error exceeds the upper quartile of all rows by more than three
    interquartile ranges (Tukey's outer fence; the choice is ours). Without predictions of the training cases there are
    no apparent errors to look at, and their number is NaN.

    Args:
      losses: of random splits, [*Q, R].
    Returns:
      Result, [*Q], without a standard error; parts "std" (divisor R - 1), "monte carlo error" (std / sqrt(R), of the
      average over all splits of these data) and "outlying", the number of rows just described.
    Raises:
      ValueError: a failed row, fewer than 2 rows, or test cases that were trained on or count more than once.
      TypeError: no losses.
    """
    require_losses(losses)
    require_held_out(losses.plan)
    require("the rows of losses", losses.resamples, 2)
    g, r = losses.g.astype(np.float64), losses.resamples
    std = np.asarray(g.std(-1, ddof=1))
    outlying = _above_outer_fence(losses.train_mean)
    notes = [
        "std is the spread of G over splits of these data; "
        "neither it nor the Monte Carlo error is a standard error for ER or R, as the splits share "
        "cases"
    ]
    notes += [f"the tutorial asks for some 500 splits, these are {r}"] if r < 500 else []
    notes += (
        ["some rows may not have converged: their apparent error lies far above that of the others"]
        if np.any(outlying > 0)
        else []
    )
    notes += (
        ["rows that did not converge were not looked for, as predictions of their training cases are absent"]
        if np.isnan(outlying).any()
        else []
    )
    parts = {"std": std, "monte carlo error": np.asarray(std / np.sqrt(r)), "outlying": outlying}
    describe = (
        "split/train",
        f"{TUTORIAL}, Algorithm 4",
        "the distribution of G over splits of these data",
        losses.unit,
        losses.name,
    )
    return described(*describe, np.asarray(g.mean(-1)), parts=parts, note=joined(*notes, dropped(losses)))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Mixed(Result):
    """The average over the splits, with the parts "within" (root mean square of the standard deviations of the splits),
    "between" (standard deviation of their estimates, divisor R - 1), "p of means" and "p of deviations", each [*Q].

    Attributes:
      estimates: of each split, [*Q, R].
      deviations: standard deviation of the bootstrap replicates of each split, [*Q, R].
      agree: whether the splits agree, [*Q].
    """

    estimates: Float[np.ndarray, "*Q R"]
    deviations: Float[np.ndarray, "*Q R"]
    agree: Bool[np.ndarray, "*Q"]

    def to_frame(self) -> "pd.DataFrame":
        """One row per data set and split."""
        sets, splits = np.indices(np.atleast_2d(self.estimates).shape)
        agree = np.broadcast_to(np.atleast_1d(self.agree)[:, None], sets.shape)
        columns = {
            "set": sets,
            "split": splits,
            "estimate": self.estimates,
            "deviation": self.deviations,
            "agree": agree,
        }
        return pd.DataFrame({name: np.ravel(value) for name, value in columns.items()}).set_index(["set", "split"])

    def lines(self) -> list[str]:
        """The average, and whether the splits agree, with their numbers."""
        if self.agree.ndim:
            return [*super().lines(), f"the splits agree in {np.mean(self.agree):.1%} of the data sets"]
        verdict = (
            "agree: the result is of the learner, not of the split"
            if self.agree
            else "do not agree: the result depends on the split"
        )
        each = zip(self.estimates, self.deviations, strict=True)
        return [*super().lines(), f"the splits {verdict}", *(f"  {mean:.5g} ± {std:.3g}" for mean, std in each)]


def mixed(
    losses: Losses, *, statistic: Statistic = np.mean, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Mixed:
    """Bootstrap of the test cases of several splits, 5 to 10 in the tutorial (section 6.3), and whether the splits
    agree.

    The tutorial trusts the result where average and variance of the splits are "comparable", and says no more. The
    rule here is ours: splits do not agree if one of two tests has a p-value below (1 - level) / 2, so that equal ones
    are called unequal with probability of at most 1 - level or about. The first compares the means: the variance of
    the R estimates, over the mean of n2/(n2 - 1) deviation^2, has an F law with R - 1 and sum(n2 - 1) degrees of
    freedom; for a mean and test sets of one size this is the analysis of variance of the losses. The second is Brown &
    Forsythe's test of the spread of the losses (1974); it is left out for losses of two values, whose variance follows
    from the mean. Both take test sets for disjoint; where they share cases, the estimates differ less, and fewer
    disagreements are found. Splits of equal losses agree.

    Args:
      losses: of a plan that holds its test cases out, [*Q, R, N].
      seed: of NumPy's generator; the same for every split.
      statistic: of the losses of the test cases of one split.
      resamples: replicates of each split, B.
      level: 1 - level is the chance of a false disagreement, 0 < level < 1.
    Returns:
      Mixed. Its standard error, "within", is that of a single split, an upper limit for the average as an estimate of
      the mean risk of the R models.
    Raises:
      ValueError: fewer than 2 rows or 3 test cases in one, or what `bootstrap_test_cases` refuses.
      TypeError: no losses, or a statistic that is no function.
    """
    require_losses(losses)
    r = losses.resamples
    require("the rows of losses", r, 2)
    require("the test cases of each row", int(losses.plan.test_sizes.min()), 3)
    settings: dict[str, Any] = {"statistic": statistic, "level": level, "resamples": resamples, "seed": seed}
    rows = [bootstrap_test_cases(losses, row=row, **settings) for row in range(r)]
    estimates, deviations = (
        np.stack([getattr(row, name) for row in rows], axis=-1) for name in ("estimate", "standard_error")
    )
    sizes = np.broadcast_to(losses.plan.test_sizes, estimates.shape)
    spread, error = estimates.var(-1, ddof=1), np.mean(deviations**2 * sizes / (sizes - 1), axis=-1)
    # Estimates that are equal but for rounding agree, whatever their errors are.
    differ = np.ptp(estimates, axis=-1) > 1e-12 * np.abs(estimates).max(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_means = np.where(differ, scipy.stats.f.sf(spread / error, r - 1, (sizes - 1).sum(-1)), 1.0)
    p_deviations = _stacked(
        [_equal_spread([row_losses(of_set, row=row) for row in range(r)]) for of_set in _sets(losses)], losses
    )
    parts = {
        "within": np.sqrt(np.mean(deviations**2, axis=-1)),
        "between": np.sqrt(spread),
        "p of means": p_means,
        "p of deviations": p_deviations,
    }
    parts = {name: np.asarray(value, np.float64) for name, value in parts.items()}
    agree = np.asarray(np.minimum(p_means, p_deviations) >= (1 - level) / 2)
    note = "" if agree.all() else "the splits do not agree, so the result is of the split as much as of the learner"
    note = joined(note, f"the tutorial asks for 5 to 10 splits, these are {r}" if r < 5 else "", dropped(losses))
    describe = (
        "mixed bootstrap",
        f"{TUTORIAL}, section 6.3",
        f"the mean risk of the {r} models that these rows trained",
        _unit(losses, statistic),
        losses.name,
    )
    of_all = described(*describe, estimates.mean(-1), parts["within"], parts=parts, note=note)
    return Mixed(**vars(of_all), estimates=estimates, deviations=deviations, agree=agree)


def jackknife(values: Float[np.ndarray, "*Q N"], *, statistic: Statistic = np.mean) -> Result:
    """Jackknife: the estimator is computed again without each of the N values (Quenouille 1949; Tukey 1958).

    The variance is (N - 1)/N sum_i (t_i - mean)^2 and the bias (N - 1) (mean - t). It fails for statistics that do not
    change smoothly with a case, such as the median (Efron 1979), which is noticed here by there being fewer than half
    as many different t_i as values. The tutorial (section 5.4) finds it of no use for averages: it gives the average
    and S / sqrt(N), which need no jackknife, and there are N samples and no more.

    Args:
      values: observations of one kind, [*Q, N].
      statistic: the estimator.
    Returns:
      Result, [*Q], with the estimate from all values; parts "bias" and "std of samples" (divisor N - 1), which for a
      mean is S / (N - 1).
    Raises:
      ValueError: fewer than 2 values, one that is not finite, or a statistic that fails or does not take the values
        along an axis.
      TypeError: no numbers, or no function.
    """
    values = _checked(values, statistic)
    n = values.shape[-1]
    estimate = np.asarray(statistic(values, axis=-1), np.float64)
    samples = np.stack([statistic(np.delete(values, i, axis=-1), axis=-1) for i in range(n)], axis=-1)
    std = np.asarray(samples.std(-1, ddof=1), np.float64)
    parts = {"bias": np.asarray((n - 1) * (samples.mean(-1) - estimate)), "std of samples": std}
    rough = np.any(2 * _different(samples) < _different(values))
    note = (
        "leaving one value out gives few different results: "
        "the statistic is not smooth, and this standard error is not to be trusted; use bootstrap"
        if rough
        else ""
    )
    describe = ("jackknife", "Quenouille 1949; Tukey 1958", POPULATION, _name(statistic), "")
    return described(*describe, estimate, np.asarray((n - 1) / np.sqrt(n) * std), parts=parts, note=note)


def subsampling(
    values: Float[np.ndarray, "*Q N"],
    size: int,
    *,
    statistic: Statistic = np.mean,
    resamples: int = 10_000,
    seed: int = 0,
) -> Result:
    """Subsampling: the estimator is computed again on m of the N values, drawn without replacement (Politis & Romano
    1994; Shao & Wu 1989).

    The standard deviation of the samples depends on m as much as on the data: for a mean it is S sqrt(1/m - 1/N), 0 at
    m = N and about S at m = 1, which is why the tutorial (section 5.5) does not use it. The standard error is that of
    the jackknife that deletes N - m values, sqrt(m / (N - m)) times as large: for a mean S / sqrt(N) whatever m is.
    For others m and N - m must be large, and the error of the estimator must fall as 1 / sqrt(N).

    Args:
      values: observations of one kind, [*Q, N]; the same cases are drawn from each of the Q.
      size: values in a sample, m, from 1 to N - 1.
      seed: of NumPy's generator.
      statistic: the estimator.
      resamples: samples.
    Returns:
      Result, [*Q], with the estimate from all values; parts "average" and "std of samples" (divisor: one less than the
      samples).
    Raises:
      ValueError: fewer than 2 values, one that is not finite, a statistic that fails or does not take the values along
        an axis, a size out of range, a negative seed, or fewer than 2 resamples.
      TypeError: no numbers, or no function.
    """
    values = _checked(values, statistic)
    n = values.shape[-1]
    require("size", size, 1, n - 1, "one less than the values")
    require_draws(resamples, seed, 2, max(1, values[..., 0].size))
    rng = np.random.default_rng(seed)
    samples = np.stack(
        [statistic(rng.choice(values, size, replace=False, axis=-1, shuffle=False), axis=-1) for _ in range(resamples)],
        axis=-1,
    )
    std = np.asarray(samples.std(-1, ddof=1), np.float64)
    parts = {"average": np.asarray(samples.mean(-1), np.float64), "std of samples": std}
    describe = ("subsampling", "Shao & Wu 1989", POPULATION, _name(statistic), "")
    note = f"the standard deviation of the samples is that of {size} values of {n}, and no standard error"
    return described(
        *describe,
        np.asarray(statistic(values, axis=-1), np.float64),
        np.asarray(np.sqrt(size / (n - size)) * std),
        parts=parts,
        note=note,
    )


def row_losses(losses: Losses, *, row: int = 0) -> Float[np.ndarray, " n"]:
    """The losses of the test cases of one row, [n2].

    Args:
      losses: of one data set, [R, N].
      row: from 0.
    Raises:
      ValueError: several data sets, no such row, a failed row, losses without cases, or test cases that were trained
        on or count more than once.
      TypeError: no losses.
    """
    require_losses(losses)
    if losses.sets is not None:
        raise ValueError(f"expected the losses of one data set, got those of {losses.sets}; choose one with losses[q]")
    return cases_of_row(losses, row, independent=False)


def _sample(losses: Losses, row: int) -> Float[np.ndarray, " n"]:
    """`row_losses` of cases that are a sample: independent of each other."""
    require_independent(losses.plan, "a bootstrap of test cases")
    return row_losses(losses, row=row)


def _equal_spread(rows: list[Float[np.ndarray, "_"]]) -> float:
    """p-value of Brown & Forsythe's test; 1 for values that are all equal within their rows, or two in all."""
    values = np.concatenate(rows)
    if len(np.unique(values)) <= 2 or all(np.ptp(row) == 0 for row in rows):
        return 1.0
    with np.errstate(divide="ignore"):
        return float(scipy.stats.levene(*rows, center="median").pvalue)


def _above_outer_fence(trained: Float[np.ndarray, "*Q R"]) -> Float[np.ndarray, "*Q"]:
    """How many of the apparent errors [*Q, R] lie above Tukey's outer fence, Q3 + 3 (Q3 - Q1); NaN where some are
    absent.
    """
    low, high = np.quantile(trained, [0.25, 0.75], axis=-1)
    fence = np.asarray(high + 3 * (high - low))[..., None]
    above = (trained > fence) & ~np.isclose(trained, fence, atol=0)  # equal errors are no outliers, however rounded
    return np.asarray(np.where(np.isnan(trained).any(-1), np.nan, above.sum(-1)))


def _checked(values: Any, statistic: Statistic) -> Float[np.ndarray, "*Q N"]:
    """The values as an array, if they can be resampled and the statistic can be taken of them."""
    values = as_numbers("values", values)
    if values.ndim == 0 or values.shape[-1] < 2:
        raise ValueError(
            "expected at least 2 values to resample, got "
            f"{values.shape[-1] if values.ndim else 'a single number'}; give one per case"
        )
    require_finite("values", values)
    _require_statistic(statistic, values)
    return values


def _require_statistic(statistic: Statistic, values: Float[np.ndarray, "*Q N"]) -> None:
    """Refuses what is no function of values along an axis; on two copies, since it will be called for many samples at
    once.
    """
    if not callable(statistic):
        raise TypeError(
            f"expected a statistic, a function of values and axis, got {shown(statistic)}; give for example numpy.mean"
        )
    try:
        shape = np.shape(statistic(np.stack([values, values]), axis=-1))
    except Exception as error:
        raise ValueError(
            f"expected a statistic that is called as statistic(values, axis=-1), got {_name(statistic)}, which stops "
            f"with {first_line(error)}; give for example numpy.mean"
        ) from error
    if shape != (2, *values.shape[:-1]):
        raise ValueError(
            f"expected a statistic that takes away the last axis of values {[2, *values.shape]}, got shape "
            f"{list(shape)} from {_name(statistic)}; let it heed its argument axis"
        )


def _sets(losses: Losses) -> list[Losses]:
    return [losses] if losses.sets is None else [losses[q] for q in range(losses.sets)]


def _stacked(numbers: list[Any], losses: Losses) -> Float[np.ndarray, "*Q"]:
    """Numbers of each data set as [*Q]."""
    return np.asarray(numbers if losses.sets is not None else numbers[0], np.float64)


def _different(values: Float[np.ndarray, "*Q N"]) -> Int[np.ndarray, "*Q"]:
    """How many different values, [*Q]."""
    return np.asarray(1 + np.count_nonzero(np.diff(np.sort(values, axis=-1), axis=-1), axis=-1))


def _name(statistic: Statistic) -> str:
    return getattr(statistic, "__name__", repr(statistic))


def _unit(losses: Losses, statistic: Statistic) -> str:
    return losses.unit if statistic is np.mean else f"{_name(statistic)} of the {losses.unit}"
