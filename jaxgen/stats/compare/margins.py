"""Equivalence and non-inferiority: is a difference smaller than one that matters?"""

from dataclasses import replace
from typing import Any

import numpy as np

from jaxgen.stats.compare.comparison import Comparison
from jaxgen.stats.spread import Spread
from jaxgen.types.numbers import require_kind, require_number


def equivalence(comparison: Comparison, *, margin: float) -> Comparison:
    """Two one-sided tests of |difference| >= margin (Schuirmann 1987, "A comparison of the two one-sided tests").

    The difference is declared smaller than the margin at 5 % if both one-sided tests reject at 5 %, which is the same
    as a 90 % interval inside (-margin, margin). It holds its level where the test does that it starts from. "No
    significant difference" is no equivalence.

    Args:
      comparison: of a test with a standard error, such as `corrected_t` or `recommend` gives, each number [*Q].
      margin: the smallest difference that matters, above 0, in the unit of the loss.
    Returns:
      Comparison, each number [*Q]: p_value is the larger of the two one-sided ones, statistic that of the same side;
      the interval is that of two one-sided tests, of confidence 2 level - 1.
    Raises:
      TypeError: no comparison.
      ValueError: a margin that is not above 0, or a test without a standard error, such as McNemar's.
    """
    spread = _spread(comparison, margin)
    above, below = (spread._replace(estimate=spread.estimate + shift) for shift in (margin, -margin))
    (greater, p_greater), (less, p_less) = above.test("greater"), below.test("less")
    if comparison.level <= 0.5:
        raise ValueError(f"expected a level above 0.5 for two one-sided tests, got {comparison.level}; give 0.95")
    lower, upper = spread.honest_limits(2 * comparison.level - 1)
    return replace(
        comparison,
        method=f"equivalence by the {comparison.method}",
        source=f"Schuirmann 1987; {comparison.source}",
        statistic=np.asarray(np.where(p_greater >= p_less, greater, less)),
        p_value=np.asarray(np.maximum(p_greater, p_less)),
        lower=lower,
        upper=upper,
        alternative=f"|difference| < {margin:g}",
        level=2 * comparison.level - 1,
    )


def non_inferiority(comparison: Comparison, *, margin: float) -> Comparison:
    """One-sided test that the second learner is worse by less than a margin: of difference >= margin against less.

    Args:
      comparison: of a test with a standard error, such as `corrected_t` or `recommend` gives, each number [*Q].
      margin: the smallest excess of the second's error that matters, above 0, in the unit of the loss.
    Returns:
      Comparison, each number [*Q], with the upper limit of the difference only.
    Raises:
      TypeError: no comparison.
      ValueError: a margin that is not above 0, or a test without a standard error, such as McNemar's.
    """
    spread = _spread(comparison, margin)
    if comparison.greater_is_better:
        raise ValueError(
            f"expected a comparison of errors, got one of {comparison.unit}, of which more is better; ask for "
            "equivalence, or for a one-sided interval"
        )
    statistic, p = spread._replace(estimate=spread.estimate - margin).test("less")
    lower, upper = spread.honest_limits(comparison.level, "less")
    return replace(
        comparison,
        method=f"non-inferiority by the {comparison.method}",
        statistic=statistic,
        p_value=p,
        lower=lower,
        upper=upper,
        alternative=f"difference < {margin:g}",
    )


def _spread(comparison: Any, margin: Any) -> Spread:
    """Mean and standard error of a comparison, if it has them."""
    require_kind("a comparison", comparison, Comparison, "give what a test of jaxgen.stats.compare returned")
    require_number("margin", margin, above=0, advice="give a difference that matters, in the unit of the loss")
    if np.isnan(comparison.standard_error).any() or np.isnan(comparison.df):
        raise ValueError(
            f"expected a test with a standard error and a law, got {comparison.method}; use corrected_t, "
            "hold_out_t or another t- or z-test"
        )
    return Spread(comparison.estimate, comparison.standard_error, float(comparison.df))
