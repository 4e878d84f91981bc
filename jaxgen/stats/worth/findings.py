"""What is said of each case, and of each pair of cases."""

from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Bool, Float, Int

from jaxgen.stats.checks import require_level
from jaxgen.types.late import pandas as pd
from jaxgen.types.numbers import require
from jaxgen.types.result import Finding

NAMED = 3
"""Cases, or pairs of them, that a finding names where it is printed."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Worths(Finding):
    """A number for each of T cases, with two standard errors.

    Attributes:
      learner: the learner, as code that recreates it.
      cases: numbers of the cases in the data, [T].
      estimate: what each is worth, in the unit of the loss, [T]; above 0 is helpful.
      standard_error: of all that is random, [T].
      monte_carlo: the part of it that comes of the finite number of rows, [T]; more rows make it smaller.
      of_value_cases: the part that comes of the finite number of value cases, [T]; more rows do not change it. 0 where
        no more than the Monte Carlo part is seen; None where the number is about the cases themselves.
      rows: trainings that it was found from.
    """

    learner: str
    cases: Int[np.ndarray, "T"]
    estimate: Float[np.ndarray, "T"]
    standard_error: Float[np.ndarray, "T"]
    monte_carlo: Float[np.ndarray, "T"]
    of_value_cases: Float[np.ndarray, "T"] | None
    rows: int

    def limits(self, level: float = 0.95) -> tuple[Float[np.ndarray, "T"], Float[np.ndarray, "T"]]:
        """Lower and upper limits of each case by the normal law, [T] each.

        Raises:
          ValueError: a level outside (0, 1).
        """
        require_level(level)
        reach = scipy.stats.norm.ppf((1 + level) / 2) * self.standard_error
        return self.estimate - reach, self.estimate + reach

    def worst(self, count: int = 10) -> Int[np.ndarray, " count"]:
        """Numbers of the cases that are worth least, [count], the least first.

        Raises:
          ValueError: more than there are, or fewer than one.
        """
        count = require("count", count, 1, len(self.cases), "all cases that have a worth")
        return self.cases[np.argsort(self.estimate, kind="stable")[:count]]

    @property
    def noise_share(self) -> float:
        """The share of Monte Carlo noise in the variance of the estimates over cases; NaN where these are all equal."""
        spread = np.var(self.estimate, ddof=1)
        return float(min(np.mean(np.square(self.monte_carlo)) / spread, 1.0)) if spread > 0 else float("nan")

    def to_frame(self) -> "pd.DataFrame":
        """One row for each case, in the order of the data."""
        numbers = {"case": self.cases, "estimate": self.estimate, "standard_error": self.standard_error}
        parts = {"monte_carlo": self.monte_carlo}
        if self.of_value_cases is not None:
            parts["of_value_cases"] = self.of_value_cases
        words = ("target", "unit", "method", "learner")
        return pd.DataFrame(numbers | parts).assign(**{name: getattr(self, name) for name in words})

    def subject(self) -> str:
        """The unit, and of which learner."""
        return f"{self.unit} of {self.learner}"

    def lines(self) -> list[str]:
        """How many cases, which are worth least, and how much of what is seen is noise."""
        order = np.argsort(self.estimate, kind="stable")[:NAMED]
        least = ", ".join(
            f"{self.cases[i]} ({self.estimate[i]:.4g} \N{PLUS-MINUS SIGN} {self.standard_error[i]:.2g})" for i in order
        )
        return [
            f"{len(self.cases)} cases from {self.rows} rows, median {np.median(self.estimate):.4g}; the least: {least}",
            f"median standard error {np.median(self.standard_error):.3g}, Monte Carlo part "
            f"{np.median(self.monte_carlo):.3g}; noise makes {100 * self.noise_share:.0f} % of the variance over cases",
        ]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OfPairs(Finding):
    """A number for each pair of one of T cases that are trained on and one of M cases that are predicted.

    Attributes:
      learner: the learner, as code that recreates it.
      trained: numbers of the cases trained on, [T].
      tested: numbers of the cases predicted, [M].
      estimate: what training on the one does for the prediction of the other, [T, M]; above 0 is helpful.
      standard_error: from the finite number of rows, [T, M]; all of it is Monte Carlo error, since it is about these
        cases.
      rows: trainings that it was found from.
    """

    learner: str
    trained: Int[np.ndarray, "T"]
    tested: Int[np.ndarray, "M"]
    estimate: Float[np.ndarray, "T M"]
    standard_error: Float[np.ndarray, "T M"]
    rows: int

    def beyond(self, level: float = 0.95) -> Bool[np.ndarray, "T M"]:
        """Where 0 is outside the interval of the pair by the normal law, [T, M].

        Raises:
          ValueError: a level outside (0, 1).
        """
        require_level(level)
        return np.abs(self.estimate) > scipy.stats.norm.ppf((1 + level) / 2) * self.standard_error

    def subject(self) -> str:
        """The unit, and of which learner."""
        return f"{self.unit} of {self.learner}"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Influences(OfPairs):
    """What training on each of T cases does for the prediction of each of M cases: by how much the loss of the tested
    case falls, [T, M].
    """

    def to_frame(self) -> "pd.DataFrame":
        """One row for each pair, the trained cases one after the other."""
        trained, tested = np.meshgrid(self.trained, self.tested, indexing="ij")
        numbers = {"trained": trained, "tested": tested, "estimate": self.estimate}
        frame = pd.DataFrame({name: np.ravel(each) for name, each in numbers.items()})
        return frame.assign(standard_error=self.standard_error.ravel(), unit=self.unit, method=self.method)

    def lines(self) -> list[str]:
        """How many pairs, and the strongest influences of one case on another."""
        other = np.where(self.trained[:, None] == self.tested, 0, np.abs(self.estimate))
        first = np.unravel_index(np.argsort(-other, axis=None, kind="stable")[:NAMED], other.shape)
        pairs = ", ".join(
            f"{self.trained[i]} on {self.tested[j]} "
            f"({self.estimate[i, j]:.4g} \N{PLUS-MINUS SIGN} {self.standard_error[i, j]:.2g})"
            for i, j in zip(*first, strict=True)
        )
        return [f"{len(self.trained)} by {len(self.tested)} cases from {self.rows} rows; the strongest: {pairs}"]
