"""Mean and standard error of the losses of one learner, or of the differences of two: what intervals and tests
share.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy
from jaxtyping import Bool, Float

from jaxgen.stats.checks import require_alternative, require_level
from jaxgen.stats.statistic import OfRows
from jaxgen.types import Losses
from jaxgen.types.result import Result, described

_BYTES = 2**26
"""Memory of the bootstrap samples that are made at a time."""


class Spread(NamedTuple):
    """A mean [*Q], its standard error [*Q], and the degrees of freedom of t, one or [*Q]; infinite for a normal law."""

    estimate: Float[np.ndarray, "*Q"]
    standard_error: Float[np.ndarray, "*Q"]
    df: float | Float[np.ndarray, "*Q"]

    def limits(
        self, level: float, alternative: str = "two-sided"
    ) -> tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]]:
        """Lower and upper confidence limits, [*Q] each; "greater" has the lower one only, "less" the upper one.

        Raises:
          ValueError: a level outside (0, 1), or an unknown alternative.
        """
        require_level(level)
        require_alternative(alternative)
        reach = (
            scipy.stats.t.ppf((1 + level) / 2 if alternative == "two-sided" else level, self.df) * self.standard_error
        )
        lower = np.full_like(self.estimate, -np.inf) if alternative == "less" else self.estimate - reach
        upper = np.full_like(self.estimate, np.inf) if alternative == "greater" else self.estimate + reach
        return np.asarray(lower), np.asarray(upper)

    def honest_limits(
        self, level: float, alternative: str = "two-sided"
    ) -> tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]]:
        """The limits [*Q], NaN without any spread: values that happen to agree are no certainty.

        Raises:
          ValueError: a level outside (0, 1), or an unknown alternative.
        """
        lower, upper = (np.where(self.flat, np.nan, end) for end in self.limits(level, alternative))
        return lower, upper

    def limits_within(
        self, level: float, alternative: str = "two-sided"
    ) -> tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]]:
        """Limits between 0 and 1, [*Q] each: those of the log odds of the mean, by the delta method; NaN without any
        spread.

        Raises:
          ValueError: a mean outside of 0 and 1, a level outside (0, 1), or an unknown alternative.
        """
        mean = self.estimate
        if np.any((mean < 0) | (mean > 1)):
            raise ValueError(
                f"expected a mean between 0 and 1 for the logit scale, got {mean.min():.6g} to {mean.max():.6g}; use "
                "scale='identity'"
            )
        inside = np.where(self.flat, 0.5, mean)  # only equal values have a mean of 0 or 1
        odds = Spread(scipy.special.logit(inside), self.standard_error / (inside * (1 - inside)), self.df)
        lower, upper = (np.asarray(scipy.special.expit(end)) for end in odds.honest_limits(level, alternative))
        return lower, upper

    @property
    def flat(self) -> Bool[np.ndarray, "*Q"]:
        """Where there is no spread, [*Q]."""
        return np.asarray(self.standard_error == 0)

    def test(self, alternative: str = "two-sided") -> tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]]:
        """Statistic and p-value of a mean of 0, [*Q] each; 0 and 1 where both mean and standard error are 0, infinite
        and NaN for another mean without any spread.

        Raises:
          ValueError: an unknown alternative.
        """
        require_alternative(alternative)
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.where(self.estimate == 0, 0.0, self.estimate / self.standard_error)
        t = scipy.stats.t(self.df)
        p = {"two-sided": 2 * t.sf(np.abs(statistic)), "greater": t.sf(statistic), "less": t.cdf(statistic)}[
            alternative
        ]
        p = np.where(self.flat, np.where(self.estimate == 0, 1.0, np.nan), p)
        return np.asarray(statistic), np.asarray(p)


def without_spread(spread: Spread, what: str = "no interval can be given") -> str:
    """What to say of values that are all equal, and what cannot be had of them; empty if none are."""
    flat = int(spread.flat.sum())
    if not flat:
        return ""
    where = f" in {flat} of {spread.flat.size} data sets" * spread.flat.ndim
    return f"all values are equal{where}, which is no certainty: {what}"


def independent(rows: Float[np.ndarray, "*Q R"]) -> Spread:
    """The mean of R independent values [*Q, R]: standard error S / sqrt(R), R - 1 degrees of freedom."""
    r = rows.shape[-1]
    return Spread(np.asarray(rows.mean(-1)), np.asarray(np.sqrt(1 / r) * _deviation(rows)), float(r - 1))


def all_pairs(cases: Float[np.ndarray, "*Q N"]) -> Spread:
    """The mean of the losses [*Q, N] of cases, each of a model not trained on it, with the all-pairs variance of Bayle
    et al. 2020.

    With h_i the loss of case i and R_n their mean, their sigma_out^2 = 1/n sum_i (h_i - R_n)^2, which is the same as
    1/(2 n^2) sum_ij (h_i - h_j)^2, hence the name; the standard error is sigma_out / sqrt(n).
    """
    n = cases.shape[-1]
    sigma_out = _deviation(cases, ddof=0)  # divisor n, and not n - 1: the paper's estimator
    return Spread(np.asarray(cases.mean(-1)), np.asarray(sigma_out / np.sqrt(n)), np.inf)


def bootstrapped(
    values: Float[np.ndarray, "*Q N"],
    statistic: Callable[..., Any],
    method: str,
    resamples: int,
    seed: int,
    level: float,
    alternative: str = "two-sided",
):
    """SciPy's bootstrap of a statistic of N values [*Q, N], the same cases drawn from each of the Q; data without
    spread are for the caller to see.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)
        return scipy.stats.bootstrap(
            (values,),
            statistic,
            n_resamples=resamples,
            batch=max(1, _BYTES // (8 * values.size)),
            vectorized=True,
            axis=-1,
            confidence_level=level,
            alternative=alternative,
            method=method,
            rng=np.random.default_rng(seed),
        )


def as_result(
    spread: Spread,
    describe: tuple[str, str, str],
    losses: Losses,
    level: float,
    alternative: str,
    note: str = "",
    parts: Mapping[str, Float[np.ndarray, "*Q"]] | None = None,
) -> Result:
    """The interval [*Q] that follows from a spread; `describe` is the method, its source and its target. Limits of a
    statistic of rows that lies between 0 and 1 stay there.

    Raises:
      ValueError: a level outside (0, 1), or an unknown alternative.
    """
    within = isinstance(losses, OfRows) and losses.bounded
    method, source, target = describe
    limits = spread.limits_within if within else spread.honest_limits
    return described(
        method + " on the logit scale" * within,
        source,
        target,
        losses.unit,
        losses.name,
        *spread,
        *limits(level, alternative),
        level=level,
        alternative=alternative,
        parts=parts or {},
        note=joined(note, without_spread(spread), dropped(losses)),
    )


def dropped(losses: Losses) -> str:
    """What to say of failed rows that were left out; empty if there were none."""
    return f"{losses.dropped} failed rows were left out" if losses.dropped else ""


def joined(*notes: str) -> str:
    """Notes in one line, those that are empty left out."""
    return "; ".join(note for note in notes if note)


def _deviation(rows: Float[np.ndarray, "*Q R"], ddof: int = 1) -> Float[np.ndarray, "*Q"]:
    """Standard deviation with divisor R - ddof, exactly 0 where all values are equal."""
    return np.asarray(np.where(np.ptp(rows, axis=-1) == 0, 0.0, rows.std(-1, ddof=ddof)))
