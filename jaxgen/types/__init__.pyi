from .data import Data
from .foreign import as_learner
from .learner import Freedom, Key, Learner, Minimum, Params, RowFills, RowUnits
from .losses import Loss, Losses
from .plan import Plan, as_labels, as_weights
from .predicted import Predicted
from .value import Value

__all__ = [
    "Data",
    "Freedom",
    "Key",
    "Learner",
    "Loss",
    "Losses",
    "Minimum",
    "Params",
    "Plan",
    "Predicted",
    "RowFills",
    "RowUnits",
    "Value",
    "as_labels",
    "as_learner",
    "as_weights",
]
