"""jaxgen: generalization distributions from thousands of resampled trainings in one call."""

from jaxgen import learn, loss
from jaxgen.assess import assess
from jaxgen.types import Data, Losses, Plan

__all__ = ["Data", "Losses", "Plan", "assess", "learn", "loss"]
