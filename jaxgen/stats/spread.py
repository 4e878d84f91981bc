"""Mean and standard error of the losses of one learner, or of the differences of two: what intervals and tests
share.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from jaxtyping import Float

from jaxgen.stats.checks import require_alternative, require_level
from jaxgen.stats.rows import not_folds, overlap
from jaxgen.types import Losses, Plan
from jaxgen.types.result import Result

_BYTES = 2**26
"""Memory of the bootstrap samples that are made at a time."""


class Spread(NamedTuple):
    """A mean [*Q], its standard error [*Q], and the degrees of freedom of t; infinite for a normal law."""

    estimate: Float[np.ndarray, "*Q"]
    standard_error: Float[np.ndarray, "*Q"]
    df: float

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

    def test(self, alternative: str = "two-sided") -> tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]]:
        """Statistic and p-value of a mean of 0, [*Q] each; 0 and 1 where both mean and standard error are 0.

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
        return np.asarray(statistic), np.asarray(np.where((self.estimate == 0) & (self.standard_error == 0), 1.0, p))


def independent(rows: Float[np.ndarray, "*Q R"]) -> Spread:
    """The mean of R independent values [*Q, R]: standard error S / sqrt(R), R - 1 degrees of freedom."""
    r = rows.shape[-1]
    return Spread(np.asarray(rows.mean(-1)), np.asarray(np.sqrt(1 / r) * _deviation(rows)), float(r - 1))


def corrected(rows: Float[np.ndarray, "*Q R"], plan: Plan) -> Spread:
    """The mean of R random splits, or of (repeated) k-fold, [*Q, R]: variance (1/R + n2/n1) S^2 (Nadeau & Bengio 2003;
    Bouckaert & Frank 2004).

    Raises:
      ValueError: a plan that the correction is not made for; see `refuse_unfit`.
    """
    refuse_unfit(plan)
    r = rows.shape[-1]
    return Spread(
        np.asarray(rows.mean(-1)),
        np.asarray(np.sqrt(1 / r + (plan.test_sizes / plan.train_sizes).mean(-1)) * _deviation(rows)),
        float(r - 1),
    )


def all_pairs(cases: Float[np.ndarray, "*Q N"]) -> Spread:
    """The mean of the losses [*Q, N] of cases, each of a model not trained on it, with the all-pairs variance of Bayle
    et al. 2020.

    With h_i the loss of case i and R_n their mean, their sigma_out^2 = 1/n sum_i (h_i - R_n)^2, which is the same as
    1/(2 n^2) sum_ij (h_i - h_j)^2, hence the name; the standard error is sigma_out / sqrt(n).
    """
    n = cases.shape[-1]
    sigma_out = _deviation(cases, ddof=0)  # divisor n, and not n - 1: the paper's estimator
    return Spread(np.asarray(cases.mean(-1)), np.asarray(sigma_out / np.sqrt(n)), np.inf)


def refuse_unfit(plan: Plan) -> None:
    """Refuses a plan whose rows are no random splits or folds.

    Raises:
      ValueError: bootstrap counts, test cases that were trained on, instances of a DELVE task, rows of several kinds,
        or rows that share no case.
    """
    trouble = ""
    if plan.train.max() > 1 or plan.test.max() > 1:
        trouble = "cases drawn more than once (a bootstrap), for which no correction is known; use leave_out or k_fold"
    elif np.any((plan.train > 0) & (plan.test > 0)):
        trouble = "rows tested on cases that they were trained on; use leave_out or k_fold"
    elif "instance" in plan.labels:
        trouble = (
            "training sets that do not overlap, which need no correction; "
            "use paired_t if the test sets do not overlap either"
        )
    elif {"pair", "first"} & set(plan.labels):
        trouble = "rows of several kinds in one design; use leave_out or k_fold"
    elif not overlap(plan):
        trouble = "rows that share no case, which need no correction; use paired_t"
    if trouble:
        raise ValueError(f"expected random splits or folds for the corrected t-test, got {plan.scheme}: {trouble}")


def caution(plan: Plan) -> str:
    """What to say of a correction for random splits or folds: of rows that leave out different shares, or that cut one
    permutation; empty if there is nothing.

    Of 3000 data sets with two equally good learners, 40 or 100 cases and 8 to 100 balanced splits, the corrected
    t-test at 5 % rejected in 1.8 % (20 splits that leave out a tenth) to 8.6 % (as many splits as cases), and in 4.4
    to 6.1 % where the splits were random (simulated).
    """
    each = plan.test_sizes / plan.train_sizes
    unequal = (
        ""
        if each.min() == each.max()
        else f"n2/n1 differs between rows ({each.min():.3g} to {each.max():.3g}); its mean was used"
    )
    cut = (
        "balanced splits are no random ones, for which the correction is made: "
        "it errs to either side, to the unsafe one where there are as many as cases; use leave_out"
    )
    return joined(unequal, cut if "partition" in plan.labels and not_folds(plan) else "")


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
    """The interval [*Q] that follows from a spread; `describe` is the method, its source and its target.

    Raises:
      ValueError: a level outside (0, 1), or an unknown alternative.
    """
    lower, upper = spread.limits(level, alternative)
    df = np.full(spread.estimate.shape, float(spread.df))
    return Result(
        *describe,
        f"{losses.loss} loss",
        losses.learner,
        spread.estimate,
        spread.standard_error,
        df,
        lower,
        upper,
        level=level,
        parts=parts or {},
        note=joined(note, dropped(losses)),
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
