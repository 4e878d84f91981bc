"""Data whose truth is known: systems that make any number of independent data sets."""

from jaxgen.simulate.linear import LinearSystem, linear_ar
from jaxgen.simulate.simulation import Simulation

__all__ = ["LinearSystem", "Simulation", "linear_ar"]
