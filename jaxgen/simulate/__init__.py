"""Data whose truth is known: systems that make any number of independent data sets."""

from jaxgen.simulate.bank_family import bank, bank_target
from jaxgen.simulate.cover import LandCover, Scene, land_cover
from jaxgen.simulate.kin_family import kin, kin_target
from jaxgen.simulate.linear import LinearSystem, linear_ar
from jaxgen.simulate.pumadyn_family import pumadyn, pumadyn_target
from jaxgen.simulate.simulation import Simulation

__all__ = [
    "LandCover",
    "LinearSystem",
    "Scene",
    "Simulation",
    "bank",
    "bank_target",
    "kin",
    "kin_target",
    "land_cover",
    "linear_ar",
    "pumadyn",
    "pumadyn_target",
]
