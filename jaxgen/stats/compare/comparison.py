"""What a test of one learner against another returns, and what all such tests ask of the two."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from jaxtyping import Float

from jaxgen.stats.checks import require_losses
from jaxgen.stats.methods import Estimate
from jaxgen.stats.spread import Spread, dropped, joined, without_spread
from jaxgen.types import Losses

Describe = tuple[str, str, str]
"""Method, source and target."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """A difference in generalization error, second minus first: positive if the first learner is better.

    Attributes:
      method: name of the test.
      source: where it was published.
      target: what the interval is about.
      first, second: the learners.
      estimate: mean difference, [*Q], in the unit of the loss.
      standard_error: its standard error under the assumptions of the method, [*Q]; NaN where the method has none.
      df: degrees of freedom; infinite for a normal law, NaN where the test is exact or, as F, has two (see `parts`).
      statistic: [*Q]; of a t- or z-test estimate / standard_error, 0 where both are 0, infinite where the latter is.
      p_value: for the alternative, [*Q]; 1 where all differences are 0, NaN where the method has none, or where all
        differences are equal and not 0, which is no certainty.
      lower, upper: limits of the interval, [*Q]; one of them infinite for a one-sided alternative, both NaN where the
        method has none.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
      level: confidence level of the interval.
      note: what to beware of; empty if nothing.
      symbol: what the statistic is called: t, z, F, chi2, ...
      parts: further numbers of the method (variance components, counts, ...), each [*Q].
    """

    method: str
    source: str
    target: str
    first: str
    second: str
    estimate: Float[np.ndarray, "*Q"]
    standard_error: Float[np.ndarray, "*Q"]
    df: float
    statistic: Float[np.ndarray, "*Q"]
    p_value: Float[np.ndarray, "*Q"]
    lower: Float[np.ndarray, "*Q"]
    upper: Float[np.ndarray, "*Q"]
    alternative: str
    level: float
    note: str = ""
    symbol: str = "t"
    parts: Mapping[str, Float[np.ndarray, "*Q"]] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """One row per data set."""
        names = ("estimate", "standard_error", "statistic", "p_value", "lower", "upper")
        numbers = {name: getattr(self, name) for name in names} | dict(self.parts)
        frame = pd.DataFrame({name: np.atleast_1d(value) for name, value in numbers.items()})
        return frame.assign(
            df=self.df,
            level=self.level,
            alternative=self.alternative,
            method=self.method,
            first=self.first,
            second=self.second,
        )

    def __str__(self) -> str:
        head = f"{self.method} ({self.source}): G of {self.second} minus G of {self.first}"
        body = self._of_many() if self.estimate.ndim else self._of_one()
        return "\n  ".join([head, body, f"about {self.target}", *([f"note: {self.note}"] if self.note else [])])

    def _of_many(self) -> str:
        median = f"{len(self.estimate)} data sets, median difference {np.median(self.estimate):.5g}"
        if np.isnan(self.p_value).any():
            return median
        return (
            f"{median}; no difference rejected at {1 - self.level:.3g} in "
            f"{np.mean(self.p_value < 1 - self.level):.1%} of them"
        )

    def _of_one(self) -> str:
        numbers = [f"difference {self.estimate:.5g}"]
        if not np.isnan(self.standard_error):
            numbers += [f"standard error {self.standard_error:.5g}"]
        if not np.isnan(self.lower):
            numbers += [f"{self.level:.0%} interval [{self.lower:.5g}, {self.upper:.5g}]"]
        numbers += [
            f"{self.symbol} = {self.statistic:.4g}"
            + (f" with {self.df:.4g} degrees of freedom" if np.isfinite(self.df) else "")
        ]
        if not np.isnan(self.p_value):
            numbers += [f"p = {self.p_value:.3g} ({self.alternative})"]
        return ", ".join(numbers + [f"{name} {float(value):.4g}" for name, value in self.parts.items()])


def require_same(first: Losses, second: Losses) -> None:
    """Refuses losses, [*Q, R] each, that do not compare row by row.

    Raises:
      ValueError: different plans or losses, or failed rows.
      TypeError: no losses.
    """
    require_losses(first, second)
    if first.loss != second.loss:
        raise ValueError(
            f"expected one loss for both learners, got {first.loss} and {second.loss}; assess both with the same loss"
        )
    same = first.plan is second.plan or all(
        np.array_equal(getattr(first, name), getattr(second, name)) for name in ("train", "test")
    )
    if not same or first.test_mean.shape != second.test_mean.shape:
        raise ValueError(
            f"expected both learners on the same resamplings, got {first.plan.scheme} and "
            f"{second.plan.scheme}; assess both with one plan"
        )
    _ = first.g, second.g


def difference(first: Losses, second: Losses) -> Losses:
    """Second minus first as losses [*Q, R], of cases too where both kept them.

    Raises:
      ValueError: different plans or losses, or failed rows.
      TypeError: no losses.
    """
    require_same(first, second)
    one, other = first.values, second.values
    return replace(
        second,
        test_mean=second.g - first.g,
        train_mean=second.train_mean - first.train_mean,
        values=None if one is None or other is None else other.astype(np.float64) - one,
        predictions=None,
        info={},
    )


def of_estimate(
    describe: Describe,
    first: Losses,
    second: Losses,
    estimate: Estimate,
    alternative: str,
    level: float,
    note: str = "",
) -> Comparison:
    """The t- or z-test and the interval of the estimate of a difference.

    Raises:
      ValueError: a level outside (0, 1), or an unknown alternative.
    """
    parts = dict(estimate.parts)
    return of_spread(describe, first, second, estimate.spread, alternative, level, joined(note, estimate.note), parts)


def differences(first: Losses, second: Losses) -> Float[np.ndarray, "*Q R"]:
    """Second minus first, row by row, [*Q, R].

    Raises:
      ValueError: different plans or losses, failed rows, or fewer than 2 rows.
      TypeError: no losses.
    """
    require_same(first, second)
    if first.resamples < 2:
        raise ValueError(
            f"expected at least 2 resamplings to compare learners, got {first.resamples}; ask for more resamples"
        )
    return second.g - first.g


def of_spread(
    describe: Describe,
    first: Losses,
    second: Losses,
    spread: Spread,
    alternative: str,
    level: float,
    note: str = "",
    parts: Mapping[str, Float[np.ndarray, "*Q"]] | None = None,
) -> Comparison:
    """The t- or z-test and the interval, [*Q], of a difference with this mean and standard error.

    Raises:
      ValueError: a level outside (0, 1), or an unknown alternative.
    """
    statistic, p = spread.test(alternative)
    limits = spread.honest_limits(level, alternative)
    numbers = (spread.estimate, spread.standard_error, float(spread.df), statistic, p, *limits)
    symbol = "z" if np.isinf(spread.df) else "t"
    return Comparison(
        *describe,
        first.learner,
        second.learner,
        *numbers,
        alternative,
        level,
        joined(note, without_spread(spread), dropped(first)),
        symbol,
        parts or {},
    )


def of_test(
    describe: Describe,
    first: Losses,
    second: Losses,
    estimate: Float[np.ndarray, "*Q"],
    statistic: Float[np.ndarray, "*Q"],
    p_value: Float[np.ndarray, "*Q"],
    symbol: str,
    alternative: str = "two-sided",
    parts: Mapping[str, Float[np.ndarray, "*Q"]] | None = None,
    df: float = np.nan,
    level: float = 0.95,
    note: str = "",
) -> Comparison:
    """The result of a test without interval: estimate, statistic and p-value, [*Q] each."""
    none = np.full(estimate.shape, np.nan)
    numbers = (estimate, none, df, statistic, p_value, none, none)
    return Comparison(
        *describe,
        first.learner,
        second.learner,
        *numbers,
        alternative,
        level,
        joined(note, dropped(first)),
        symbol,
        parts or {},
    )
