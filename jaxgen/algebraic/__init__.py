"""Instead of resampling: estimates of the generalization error, its law, and approximate leave-out, from one fit to
all cases.
"""

from jaxgen.algebraic.approximate import (
    Approximation,
    against_retraining,
    infinitesimal_jackknife,
    jackknifed,
    newton_step,
    unlearning,
)
from jaxgen.algebraic.criteria import fpe, fper, gcv, gen, gpe, leave_one_out, nic, s_p
from jaxgen.algebraic.effective import Effective, effective_numbers, leverages, p_eff
from jaxgen.algebraic.fit import FullFit, full_fit
from jaxgen.algebraic.law import WeightedChi2, chi2_law, f_law, quantile, weights_of

__all__ = [
    "Approximation",
    "Effective",
    "FullFit",
    "WeightedChi2",
    "against_retraining",
    "chi2_law",
    "effective_numbers",
    "f_law",
    "fpe",
    "fper",
    "full_fit",
    "gcv",
    "gen",
    "gpe",
    "infinitesimal_jackknife",
    "jackknifed",
    "leave_one_out",
    "leverages",
    "newton_step",
    "nic",
    "p_eff",
    "quantile",
    "s_p",
    "unlearning",
    "weights_of",
]
