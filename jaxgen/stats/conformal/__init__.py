"""Prediction intervals and sets of new cases, from what the rows of a plan predict for them: conformal prediction.

They cover the target of a new case with a stated probability, over all draws of the cases at hand and of the new one
from any one law, whatever the learner; not for every kind of case, nor for these cases at hand.
"""

from jaxgen.stats.conformal.found import PredictionIntervals, PredictionSets, coverage
from jaxgen.stats.conformal.intervals import (
    cv_plus,
    jackknife_minmax,
    jackknife_plus,
    jackknife_plus_after_bootstrap,
    split,
)
from jaxgen.stats.conformal.sets import cross_sets, split_sets

__all__ = [
    "PredictionIntervals",
    "PredictionSets",
    "coverage",
    "cross_sets",
    "cv_plus",
    "jackknife_minmax",
    "jackknife_plus",
    "jackknife_plus_after_bootstrap",
    "split",
    "split_sets",
]
