"""The engine: trains one learner on every row of a plan, all rows at once, in chunks, over all devices and cores."""

from jaxgen.engine.assessment import assess
from jaxgen.engine.prediction import predict

__all__ = ["assess", "predict"]
