from . import algebraic, datasets, delve, learn, loss, plot, resample, simulate, stats, store
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
    "stats",
    "store",
]
