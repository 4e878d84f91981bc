from . import algebraic, datasets, delve, learn, loss, plot, resample, simulate, sklearn, stats, store
from .engine import assess, predict
from .stats.remarks import check
from .types import Data, Losses, Plan, Predicted

__all__ = [
    "Data",
    "Losses",
    "Plan",
    "Predicted",
    "algebraic",
    "assess",
    "check",
    "datasets",
    "delve",
    "learn",
    "loss",
    "plot",
    "predict",
    "resample",
    "simulate",
    "sklearn",
    "stats",
    "store",
]
