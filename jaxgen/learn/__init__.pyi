from .bayes import Bayes, Draws, Mixture, Prior, Width, posterior_draws
from .external import External
from .linear import Learner, LeastSquares, LinearFit
from .logistic import Logistic
from .logistic_fit import LogisticFit
from .mean import Freedom, Mean
from .neighbours import Neighbours, NeighboursFit
from .network import L1, L2, MLP, Conjugate, Descent, Objective, Optax, PerTask, Sparse, Tied
from .per_input import RidgePerInput, RidgePerInputFit
from .promises import check
from .ridge import Ridge, RidgeFit
from .text import from_text
from .wrap import (
    AdaptivePenalties,
    Augmented,
    EarlyStopped,
    Ensemble,
    Imputed,
    Normalised,
    Range,
    Scaled,
    Tuned,
    sample,
)

__all__ = [
    "L1",
    "L2",
    "MLP",
    "AdaptivePenalties",
    "Augmented",
    "Bayes",
    "Conjugate",
    "Descent",
    "Draws",
    "EarlyStopped",
    "Ensemble",
    "External",
    "Freedom",
    "Imputed",
    "Learner",
    "LeastSquares",
    "LinearFit",
    "Logistic",
    "LogisticFit",
    "Mean",
    "Mixture",
    "Neighbours",
    "NeighboursFit",
    "Normalised",
    "Objective",
    "Optax",
    "PerTask",
    "Prior",
    "Range",
    "Ridge",
    "RidgeFit",
    "RidgePerInput",
    "RidgePerInputFit",
    "Scaled",
    "Sparse",
    "Tied",
    "Tuned",
    "Width",
    "check",
    "from_text",
    "posterior_draws",
    "sample",
]
