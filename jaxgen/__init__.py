"""jaxgen: generalization distributions, intervals and tests from thousands of resampled trainings in one call."""

from jaxgen import algebraic, datasets, delve, learn, loss, plot, resample, simulate, stats, store
from jaxgen.engine import assess
from jaxgen.types import Data, Losses, Plan

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
