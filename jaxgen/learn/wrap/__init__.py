"""Learners that hold a learner. Nesting makes one larger batch, not a loop."""

from jaxgen.learn.wrap.adaptive import AdaptivePenalties
from jaxgen.learn.wrap.augmented import Augmented
from jaxgen.learn.wrap.candidates import Range, sample
from jaxgen.learn.wrap.early_stopped import EarlyStopped
from jaxgen.learn.wrap.ensemble import Ensemble
from jaxgen.learn.wrap.imputed import Imputed
from jaxgen.learn.wrap.normalised import Normalised
from jaxgen.learn.wrap.scaled import Scaled
from jaxgen.learn.wrap.tuned import Tuned

__all__ = [
    "AdaptivePenalties",
    "Augmented",
    "EarlyStopped",
    "Ensemble",
    "Imputed",
    "Normalised",
    "Range",
    "Scaled",
    "Tuned",
    "sample",
]
