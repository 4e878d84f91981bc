"""Learners: what is trained on each resampled training set."""

from jaxgen.learn.linear import LeastSquares, LinearFit, Mean
from jaxgen.learn.logistic import Logistic, LogisticFit
from jaxgen.learn.neighbours import Neighbours, NeighboursFit
from jaxgen.learn.network import L1, L2, MLP, Conjugate, Descent, Objective, Optax, PerTask, Sparse, Tied
from jaxgen.learn.promises import check
from jaxgen.learn.text import from_text
from jaxgen.learn.wrap import Augmented, EarlyStopped, Ensemble, Normalised, Scaled
from jaxgen.types import Freedom, Learner

__all__ = [
    "L1",
    "L2",
    "MLP",
    "Augmented",
    "Conjugate",
    "Descent",
    "EarlyStopped",
    "Ensemble",
    "Freedom",
    "Learner",
    "LeastSquares",
    "LinearFit",
    "Logistic",
    "LogisticFit",
    "Mean",
    "Neighbours",
    "NeighboursFit",
    "Normalised",
    "Objective",
    "Optax",
    "PerTask",
    "Scaled",
    "Sparse",
    "Tied",
    "check",
    "from_text",
]
