"""What a test of one learner against another returns, and what all such tests ask of the two."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxgen.stats.checks import of_several, require_losses
from jaxgen.stats.methods import Estimate
from jaxgen.stats.spread import Spread, dropped, joined, without_spread
from jaxgen.stats.statistic import OfRows, direction
from jaxgen.types import Losses
from jaxgen.types.late import pandas as pd
from jaxgen.types.numbers import explained_call, p_in_words
from jaxgen.types.result import Result, described

Describe = tuple[str, str, str]
"""Method, source and target."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Comparison(Result):
    """A difference in generalization error, second minus first: positive if the first learner is better.

    The standard error is that under the assumptions of the method; df is NaN where the test is exact or, as F, has two
    (see `parts`). The alternative "greater" says that the second has the greater error, "less" the first.

    Attributes:
      first, second: the learners, as code that recreates them.
      statistic: [*Q]; of a t- or z-test estimate / standard_error, 0 where both are 0, infinite where the latter is.
      p_value: for the alternative, [*Q]; 1 where all differences are 0, NaN where the method has none, or where all
        differences are equal and not 0, which is no certainty.
      symbol: what the statistic is called: t, z, F, chi2, ...
      greater_is_better: whether the numbers are no errors but a statistic of which more is better, as AUC; a positive
        difference is then the second learner's.
    """

    first: str
    second: str
    statistic: Float[np.ndarray, "*Q"]
    p_value: Float[np.ndarray, "*Q"]
    symbol: str = "t"
    greater_is_better: bool = False

    def to_frame(self) -> "pd.DataFrame":
        """One row per data set."""
        return super().to_frame().assign(first=self.first, second=self.second)

    def subject(self) -> str:
        """The difference, in words."""
        return f"{self.unit} of {self.second} minus that of {self.first}"

    def lines(self) -> list[str]:
        """The numbers in one line; of several data sets their median, and in how many a difference was found."""
        if not np.ndim(self.estimate):
            test = [" with ".join([f"{self.symbol} = {self.statistic:.4g}", *self._freedom()])]
            test += (
                []
                if np.isnan(self.p_value)
                else [f"p {p_in_words(float(self.p_value), sign=True)} ({self.alternative})"]
            )
            return [", ".join([f"difference {self.estimate:.5g}", *self._uncertainty(), *test, *self._parts()])]
        median = f"{self.estimate.size} data sets, median difference {np.median(self.estimate):.5g}"
        if np.isnan(self.p_value).any():
            return [median]
        share = np.mean(self.p_value < 1 - self.level)
        return [f"{median}; no difference rejected at {1 - self.level:.3g} in {share:.1%} of them"]

    def _numbers(self) -> tuple[str, ...]:
        return (*super()._numbers(), "statistic", "p_value")


def _lacking_second(_: Any, *given: Any) -> str:
    """What to say where one argument holds the losses of both; empty if it does not."""
    several = of_several(given[0]) if len(given) == 1 else ""
    return several and f"{several}, and a second one; or compare all pairs with compare.pairwise(losses)"


of_two = explained_call(_lacking_second)
"""Decorator of a test of two learners [*Q, R]: says so where it is given the losses of several in one."""


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
    shares = [each.of_strata for each in (first, second) if isinstance(each, OfRows)]
    if len(shares) == 2 and shares[0] is not None and shares[1] is not None:
        second = replace(second, of_strata=shares[1] - shares[0])
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
    tested, limits = spread.test(alternative), spread.honest_limits(level, alternative)
    return compared(
        describe,
        first,
        second,
        spread,
        tested,
        limits,
        symbol="z" if np.isinf(spread.df) else "t",
        level=level,
        alternative=alternative,
        note=joined(note, without_spread(spread, "no interval can be given, and no test of a difference")),
        parts=parts or {},
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
    note: str = "",
) -> Comparison:
    """The result of a test without interval: estimate, statistic and p-value, [*Q] each."""
    none = np.full(estimate.shape, np.nan)
    more: dict[str, Any] = {"symbol": symbol, "alternative": alternative, "parts": parts or {}, "note": note}
    return compared(describe, first, second, Spread(estimate, none, df), (statistic, p_value), (none, none), **more)


def compared(
    describe: Describe,
    first: Losses,
    second: Losses,
    spread: Spread,
    tested: tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]],
    limits: tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]],
    symbol: str = "t",
    note: str = "",
    **more: Any,
) -> Comparison:
    """A comparison of mean and standard error, statistic and p-value, and limits, [*Q] each; `more` are further fields
    of it.
    """
    who = f"{second.name} minus {first.name}"
    note = joined(note, direction(first), dropped(first))
    result = described(*describe, first.unit, who, *spread, *limits, note=note, **more)
    statistic, p_value = (np.asarray(number, np.float64) for number in tested)
    names: dict[str, Any] = {"first": first.name, "second": second.name, "symbol": symbol}
    names["greater_is_better"] = bool(direction(first))
    return Comparison(**vars(result), **names, statistic=statistic, p_value=p_value)
