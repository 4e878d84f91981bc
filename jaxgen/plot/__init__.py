"""Figures of losses and statistics."""

from jaxgen.plot.classification import precision_recall_curves, roc_curves
from jaxgen.plot.comparisons import comparison_matrix, critical_difference
from jaxgen.plot.distributions import COLOURS, distribution

__all__ = ["COLOURS", "comparison_matrix", "critical_difference", "distribution", "precision_recall_curves", "roc_curves"]
