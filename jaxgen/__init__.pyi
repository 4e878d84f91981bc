from . import algebraic, datasets, delve, learn, loss, plot, resample, simulate, stats, store
from .engine import assess
from .types import Data, Losses, Plan

__all__ = [
    "Data",
    "Losses",
    "Plan",
    "algebraic",
    "assess",
    "datasets",
    "delve",
    "learn",
    "loss",
    "plot",
    "resample",
    "simulate",
    "stats",
    "store",
]
