"""Tests of one learner against another on the same resamplings."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.stats
from jaxtyping import Float

from jaxgen.stats.spread import Spread, corrected, independent, overlap
from jaxgen.types import Losses


@dataclass(frozen=True)
class Comparison:
    """A difference in generalization error, second minus first: positive if the first learner is better.

    Attributes:
      method: name of the test.
      source: where it was published.
      target: what the interval is about.
      first, second: the learners.
      estimate: mean difference, [*Q], in the unit of the loss.
      standard_error: its standard error under the assumptions of the method, [*Q].
      df: degrees of freedom of the t distribution.
      statistic: estimate / standard_error, [*Q]; 0 where both are 0.
      p_value: for the alternative, [*Q]; 1 where all differences are 0.
      lower, upper: limits of the interval, [*Q]; one of them infinite for a one-sided alternative.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
      level: confidence level of the interval.
      note: what to beware of; empty if nothing.
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

    def to_frame(self) -> pd.DataFrame:
        """One row per data set."""
        numbers = ("estimate", "standard_error", "statistic", "p_value", "lower", "upper")
        frame = pd.DataFrame({name: np.atleast_1d(getattr(self, name)) for name in numbers})
        return frame.assign(df=self.df, level=self.level, alternative=self.alternative, method=self.method, first=self.first, second=self.second)

    def __str__(self) -> str:
        head = f"{self.method} ({self.source}): G of {self.second} minus G of {self.first}"
        if self.estimate.ndim:
            rejected = f"rejected at {1 - self.level:.3g} in {np.mean(self.p_value < 1 - self.level):.1%} of them"
            body = f"{len(self.estimate)} data sets, median difference {np.median(self.estimate):.5g}; no difference {rejected}"
        else:
            body = (
                f"difference {self.estimate:.5g}, standard error {self.standard_error:.5g}, {self.level:.0%} interval [{self.lower:.5g}, {self.upper:.5g}], "
                f"t = {self.statistic:.4g} with {self.df:.4g} degrees of freedom, p = {self.p_value:.3g} ({self.alternative})"
            )
        return "\n  ".join([head, body, f"about {self.target}", *([f"beware: {self.note}"] if self.note else [])])


def paired_t(first: Losses, second: Losses, alternative: str = "two-sided", level: float = 0.95) -> Comparison:
    """The t-test of Larsen & Hansen 1995, eq. 9: takes the R differences for independent.

    They are independent only where rows share neither training nor test cases. Otherwise the variance of their mean
    does not go to 0 as R grows, but this standard error does: the rate of false rejections then has no limit below 1.

    Args:
      first, second: losses of two learners on one plan, [*Q, R].
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
      level: confidence level of the interval, 0 < level < 1.
    Returns:
      Comparison, each number [*Q]; `note` carries the warning.
    Raises:
      ValueError: different plans or losses, failed rows, fewer than 2 rows, or an unknown alternative.
    """
    differences = _differences(first, second)
    note = ""
    if overlap(first.plan):
        note = "the resamplings share cases, so this standard error is too small and the rate of false rejections has no upper limit as resamples grow; use corrected_t"
    describe = ("paired t-test", "Larsen & Hansen 1995, eq. 9", "the mean difference over training sets of this size")
    return _comparison(describe, first, second, independent(differences), alternative, level, note)


def corrected_t(first: Losses, second: Losses, alternative: str = "two-sided", level: float = 0.95) -> Comparison:
    """The corrected resampled t-test (Nadeau & Bengio 2003, "Inference for the generalization error").

    The variance of the mean of R differences is estimated by (1/R + n2/n1) S^2, with n2 test and n1 training cases a row:
    their correlation is taken to be n2 / (n1 + n2). As R grows the standard error approaches sqrt(n2/n1) S, and not 0.

    Args:
      first, second: losses of two learners on one plan of random splits or (repeated) k-fold, [*Q, R].
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
      level: confidence level of the interval, 0 < level < 1.
    Returns:
      Comparison, each number [*Q].
    Raises:
      ValueError: different plans or losses, failed rows, fewer than 2 rows, an unknown alternative, or a plan that the
        test is not made for: bootstrap counts, test cases that were trained on, instances of a DELVE task, rows of several kinds, or
        rows that share no case.
    """
    differences = _differences(first, second)
    spread = corrected(differences, first.plan)
    ratios = first.plan.test_sizes / first.plan.train_sizes
    note = "" if ratios.min() == ratios.max() else f"n2/n1 differs between rows ({ratios.min():.3g} to {ratios.max():.3g}); its mean was used"
    describe = ("corrected resampled t-test", "Nadeau & Bengio 2003", "the mean difference over training sets of this size")
    return _comparison(describe, first, second, spread, alternative, level, note)


def probability_greater(first: Losses, second: Losses, paired: bool = True) -> Float[np.ndarray, "*Q"]:
    """Prob(G2 > G1), estimated from the resamplings; ties count one half (Larsen & Hansen 1995, "Numerical examples").

    Args:
      first, second: losses of two learners on one plan, [*Q, R].
      paired: compares both learners on the same split; False compares every split of one with every split of the other,
        that is, the two empirical distributions.
    Returns:
      Probability, [*Q]. It is about the splits of the data at hand; no interval for other data is implied.
    Raises:
      ValueError: different plans or losses, failed rows, or fewer than 2 rows.
    """
    differences = _differences(first, second)
    if paired:
        return np.asarray(np.mean((differences > 0) + 0.5 * (differences == 0), axis=-1))
    both = np.concatenate([first.g, second.g], axis=-1)
    r = differences.shape[-1]
    ranks = scipy.stats.rankdata(both, axis=-1)[..., r:]
    return np.asarray((ranks.sum(-1) - r * (r + 1) / 2) / r**2)


def _differences(first: Losses, second: Losses) -> Float[np.ndarray, "*Q R"]:
    """Second minus first, row by row."""
    if first.loss != second.loss:
        raise ValueError(f"expected one loss for both learners, got {first.loss} and {second.loss}; assess both with the same loss")
    same = first.plan is second.plan or all(np.array_equal(getattr(first, name), getattr(second, name)) for name in ("train", "test"))
    if not same or first.test_mean.shape != second.test_mean.shape:
        raise ValueError(f"expected both learners on the same resamplings, got {first.plan.scheme} and {second.plan.scheme}; assess both with one plan")
    if first.resamples < 2:
        raise ValueError(f"expected at least 2 resamplings to compare learners, got {first.resamples}; ask for more resamples")
    return second.g - first.g


def _comparison(describe: tuple[str, str, str], first: Losses, second: Losses, spread: Spread, alternative: str, level: float, note: str) -> Comparison:
    """The t-test and interval of a difference with this mean and standard error."""
    statistic, p = spread.test(alternative)
    lower, upper = spread.limits(level, alternative)
    method, source, target = describe
    return Comparison(
        method,
        source,
        target,
        first.learner,
        second.learner,
        spread.estimate,
        spread.standard_error,
        spread.df,
        statistic,
        p,
        lower,
        upper,
        alternative=alternative,
        level=level,
        note=note,
    )
