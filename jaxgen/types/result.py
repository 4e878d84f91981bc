"""An estimate with all that it takes to understand it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Result:
    """A number, how sure we may be of it, and what it is about.

    Attributes:
      method: name of the method.
      source: where it was published.
      target: what the estimate and its interval are about: "R", the risk of the model trained on the n cases at hand;
        "ER", its expectation over training sets; "the k-fold test error"; or in words.
      unit: the loss, as "squared loss", or what else was measured.
      learner: the learner, as code that recreates it; empty if not known.
      estimate: [*Q], in that unit.
      standard_error: [*Q]; NaN where the method has none.
      df: degrees of freedom, [*Q]; infinite for a normal law, NaN where there is none.
      lower, upper: limits of the interval, [*Q]; one of them infinite if one-sided, both NaN where there is none.
      level: confidence level of the interval.
      parts: what the numbers are made of (a bias, a share of Monte Carlo error, ...), each [*Q].
      note: what to beware of, or why this method; empty if nothing.
    """

    method: str
    source: str
    target: str
    unit: str
    learner: str
    estimate: Float[np.ndarray, "*Q"]
    standard_error: Float[np.ndarray, "*Q"]
    df: Float[np.ndarray, "*Q"]
    lower: Float[np.ndarray, "*Q"]
    upper: Float[np.ndarray, "*Q"]
    level: float = 0.95
    parts: Mapping[str, Float[np.ndarray, "*Q"]] = field(default_factory=dict)
    note: str = ""

    def to_frame(self) -> pd.DataFrame:
        """One row per data set."""
        numbers = {name: getattr(self, name) for name in ("estimate", "standard_error", "df", "lower", "upper")} | dict(
            self.parts
        )
        frame = pd.DataFrame({name: np.ravel(value) for name, value in numbers.items()})
        return frame.assign(
            level=self.level, target=self.target, unit=self.unit, method=self.method, learner=self.learner
        )

    def __str__(self) -> str:
        head = f"{self.method} ({self.source}): {self.unit}{' of ' + self.learner if self.learner else ''}"
        if np.ndim(self.estimate):
            body = f"{self.estimate.size} data sets or rows, median {np.median(self.estimate):.5g}"
        else:
            numbers = [f"{self.estimate:.5g}"]
            if not np.isnan(self.standard_error):
                numbers += [f"standard error {self.standard_error:.5g}"]
            if not np.isnan(self.lower):
                numbers += [f"{self.level:.0%} interval [{self.lower:.5g}, {self.upper:.5g}]"]
            if np.isfinite(self.df):
                numbers += [f"{self.df:.4g} degrees of freedom"]
            body = ", ".join(numbers + [f"{name} {float(value):.4g}" for name, value in self.parts.items()])
        return "\n  ".join([head, body, f"about {self.target}", *([f"note: {self.note}"] if self.note else [])])


def point(
    method: str,
    source: str,
    target: str,
    unit: str,
    learner: str,
    estimate: Float[np.ndarray, "*Q"],
    standard_error: Float[np.ndarray, "*Q"] | None = None,
    **more,
) -> Result:
    """A Result without an interval: estimate [*Q] and, where there is one, its standard error [*Q]; `more` are further
    fields.
    """
    estimate = np.asarray(estimate, np.float64)
    none = np.full(estimate.shape, np.nan)
    error = none if standard_error is None else np.asarray(standard_error, np.float64)
    return Result(method, source, target, unit, learner, estimate, error, none, none, none, **more)
