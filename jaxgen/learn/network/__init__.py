"""Networks: what they are, what they are trained to make small, and how."""

from jaxgen.learn.network.conjugate import Conjugate
from jaxgen.learn.network.descent import Descent, Optax
from jaxgen.learn.network.nets import MLP, PerTask
from jaxgen.learn.network.objectives import L1, L2, Objective, Sparse, Tied

__all__ = ["L1", "L2", "MLP", "Conjugate", "Descent", "Objective", "Optax", "PerTask", "Sparse", "Tied"]
