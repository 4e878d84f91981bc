"""What statistics return: numbers with all that it takes to understand them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxgen.types import rendered
from jaxgen.types.late import pandas as pd

_PARTS = {"floor": "standard error of infinitely many splits"}
"""What parts are called in print, where their name does not say it."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Finding:
    """The family of all results: each says by which method it was found, what it is about and what to beware of, prints
    as text, and gives its numbers as a table.

    Attributes:
      method: name of the method.
      source: where it was published.
      target: what the numbers are about: "R", the risk of the model trained on the n cases at hand; "ER", its
        expectation over training sets; "the k-fold test error"; a hypothesis; or in words.
      unit: the loss, as "squared loss", or what else was measured.
      note: what to beware of, or why this method; empty if nothing.
    """

    method: str
    source: str
    target: str
    unit: str
    note: str = ""

    def to_frame(self) -> "pd.DataFrame":
        """The numbers as a table."""
        raise TypeError(f"expected a finding with a table, got {type(self).__name__}; define its to_frame")

    def subject(self) -> str:
        """What was measured of whom, in words."""
        return self.unit

    def lines(self) -> list[str]:
        """The numbers in words, line by line."""
        return []

    def in_short(self) -> str:
        """The number that matters and its interval, if it is one number; else empty."""
        return ""

    def _repr_html_(self) -> str:
        """In notebooks a small table."""
        about = (f"about {self.target}", f"note: {self.note}" * bool(self.note))
        frame = self.to_frame()
        shown = frame.drop(columns=["method", "target", "unit", "learner", "alternative"], errors="ignore")
        return rendered.of_frame(f"{self.method} ({self.source}): {self.subject()}", shown, about)

    def __repr__(self) -> str:
        """One line; `print` shows all of it."""
        numbers = self.in_short()
        return f"{type(self).__name__}({self.method}, {self.subject()}{': ' * bool(numbers)}{numbers})"

    def __str__(self) -> str:
        head = f"{self.method} ({self.source}): {self.subject()}"
        note = [f"note: {self.note}"] if self.note else []
        return "\n  ".join([head, *self.lines(), f"about {self.target}", *note])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result(Finding):
    """A number and how sure we may be of it.

    Attributes:
      learner: the learner, as code that recreates it; empty if not known.
      estimate: [*Q], in the unit.
      standard_error: [*Q]; NaN where the method has none.
      df: degrees of freedom, [*Q]; infinite for a normal law, NaN where there is none.
      lower, upper: limits of the interval, [*Q]; one of them infinite, or the end of what is possible, if one-sided,
        both NaN where there is none.
      level: confidence level of the interval.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
      parts: what the numbers are made of (a bias, a share of Monte Carlo error, ...), each [*Q].
    """

    learner: str = ""
    estimate: Float[np.ndarray, "*Q"]
    standard_error: Float[np.ndarray, "*Q"]
    df: Float[np.ndarray, "*Q"]
    lower: Float[np.ndarray, "*Q"]
    upper: Float[np.ndarray, "*Q"]
    level: float = 0.95
    alternative: str = "two-sided"
    parts: Mapping[str, Float[np.ndarray, "*Q"]] = field(default_factory=dict)

    def to_frame(self) -> "pd.DataFrame":
        """One row per data set."""
        numbers = {name: getattr(self, name) for name in self._numbers()} | dict(self.parts)
        frame = pd.DataFrame({name: np.ravel(value) for name, value in numbers.items()})
        words = ("level", "alternative", "target", "unit", "method", "learner")
        return frame.assign(**{name: getattr(self, name) for name in words})

    def subject(self) -> str:
        """The unit, and of which learner."""
        return f"{self.unit} of {self.learner}" if self.learner else self.unit

    def lines(self) -> list[str]:
        """The numbers in one line; of several data sets their median."""
        if np.ndim(self.estimate):
            return [f"{self.estimate.size} data sets or rows, median {np.median(self.estimate):.5g}"]
        return [", ".join([f"{self.estimate:.5g}", *self._uncertainty(), *self._freedom(), *self._parts()])]

    def in_short(self) -> str:
        """The estimate and its interval, if there is one; of several data sets their number."""
        if np.ndim(self.estimate):
            return f"{self.estimate.size} data sets or rows"
        return f"{self.estimate:.5g}" + (
            "" if np.isnan(self.lower) else f" [{self.lower:.5g}, {self.upper:.5g}] at {100 * self.level:.4g}%"
        )

    def _numbers(self) -> tuple[str, ...]:
        """The columns of the table, but for the parts."""
        return ("estimate", "standard_error", "df", "lower", "upper")

    def _uncertainty(self) -> list[str]:
        """Standard error and interval, if there are any."""
        error = f"standard error {self.standard_error:.5g}"
        limits = f"{100 * self.level:.4g}% interval [{self.lower:.5g}, {self.upper:.5g}]"
        return [error] * (not np.isnan(self.standard_error)) + [limits] * (not np.isnan(self.lower))

    def _freedom(self) -> list[str]:
        degrees = f"{self.df:.4g}"
        return [f"{degrees} degree{'s' * (degrees != '1')} of freedom"] if np.isfinite(self.df) else []

    def _parts(self) -> list[str]:
        return [f"{_PARTS.get(name, name)} {float(value):.4g}" for name, value in self.parts.items()]


def described(
    method: str,
    source: str,
    target: str,
    unit: str,
    learner: str,
    estimate: Any,
    standard_error: Any = np.nan,
    df: Any = np.nan,
    lower: Any = np.nan,
    upper: Any = np.nan,
    **more: Any,
) -> Result:
    """A Result whose numbers [*Q] have the shape of the estimate, NaN where they are not given; `more` are further
    fields.
    """
    estimate = np.asarray(estimate, np.float64)
    standard_error, df, lower, upper = (
        np.array(np.broadcast_to(np.asarray(number, np.float64), estimate.shape))
        for number in (standard_error, df, lower, upper)
    )
    parts = {name: np.asarray(value, np.float64) for name, value in more.pop("parts", {}).items()}
    return Result(
        method=method,
        source=source,
        target=target,
        unit=unit,
        learner=learner,
        estimate=estimate,
        standard_error=standard_error,
        df=df,
        lower=lower,
        upper=upper,
        parts=parts,
        **more,
    )
