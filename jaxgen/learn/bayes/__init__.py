"""Bayesian networks: what is believed before the data, how the posterior is sampled, and the learner that does it."""

from jaxgen.learn.bayes.export import Draws, posterior_draws
from jaxgen.learn.bayes.learner import Bayes, Posterior
from jaxgen.learn.bayes.prior import Prior, State, Width
from jaxgen.types.predictive import Mixture

__all__ = ["Bayes", "Draws", "Mixture", "Posterior", "Prior", "State", "Width", "posterior_draws"]
