"""What losses do not show of classifiers: confusion, precision and recall, ranking; ROC curves and their areas in
`roc`. Each of every row.
"""

from jaxgen.stats.metrics import roc
from jaxgen.stats.metrics.classification import (
    PrecisionRecall,
    accuracy,
    average_precision,
    balanced_accuracy,
    confusion,
    f_beta,
    gains,
    lift,
    precision,
    precision_at,
    precision_recall,
    recall,
)
from jaxgen.stats.metrics.predictions import Predictions
from jaxgen.stats.metrics.splits import of_rows, over_splits

__all__ = [
    "PrecisionRecall",
    "Predictions",
    "accuracy",
    "average_precision",
    "balanced_accuracy",
    "confusion",
    "f_beta",
    "gains",
    "lift",
    "of_rows",
    "over_splits",
    "precision",
    "precision_at",
    "precision_recall",
    "recall",
    "roc",
]
