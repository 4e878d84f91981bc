"""What each case is worth: to all others, to itself and to each other case, from one `assess` on random subsets."""

from jaxgen.stats.worth.findings import Influences, Worths
from jaxgen.stats.worth.pairs import influence, memorisation, out_of_bag
from jaxgen.stats.worth.regression import Datamodels, datamodels
from jaxgen.stats.worth.semivalues import banzhaf, beta_shapley, shapley

__all__ = [
    "Datamodels",
    "Influences",
    "Worths",
    "banzhaf",
    "beta_shapley",
    "datamodels",
    "influence",
    "memorisation",
    "out_of_bag",
    "shapley",
]
