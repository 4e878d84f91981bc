"""Figures of losses and statistics."""

from jaxgen.plot.checks import Panels
from jaxgen.plot.classification import precision_recall_curves, roc_curves
from jaxgen.plot.comparisons import comparison_matrix, critical_difference
from jaxgen.plot.curves import learning_curve, standard_error_floor
from jaxgen.plot.distributions import COLOURS, distribution
from jaxgen.plot.intervals import interval_forest
from jaxgen.plot.predictions import prediction_intervals
from jaxgen.plot.worth import case_worths, influence_map

__all__ = [
    "COLOURS",
    "Panels",
    "case_worths",
    "comparison_matrix",
    "critical_difference",
    "distribution",
    "influence_map",
    "interval_forest",
    "learning_curve",
    "precision_recall_curves",
    "prediction_intervals",
    "roc_curves",
    "standard_error_floor",
]
