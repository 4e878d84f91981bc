"""Confidence intervals for the generalization error of one learner, from resampled rows, and of one trained model,
from its test cases.
"""

from jaxgen.stats.interval.fixed import bootstrap, clopper_pearson, t, wald, wilson
from jaxgen.stats.interval.recommended import recommend
from jaxgen.stats.interval.resampling import (
    bouckaert_frank,
    conservative_z,
    corrected_score,
    corrected_t,
    cross_validation,
    five_by_two,
    grouped,
    hold_out,
    jackknife_after_leave_out,
    naive_t,
    nested_cross_validation,
)

__all__ = [
    "bootstrap",
    "bouckaert_frank",
    "clopper_pearson",
    "conservative_z",
    "corrected_score",
    "corrected_t",
    "cross_validation",
    "five_by_two",
    "grouped",
    "hold_out",
    "jackknife_after_leave_out",
    "naive_t",
    "nested_cross_validation",
    "recommend",
    "t",
    "wald",
    "wilson",
]
