"""
Who influences whom
===================

The influence of each case on the loss of each other one: the rows are the cases that are trained on, the columns those whose loss changes.
"""

import jax

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample
from jaxgen.stats import worth

data = datasets.diabetes()
plan = resample.half_samples(jax.random.key(0), data.n, resamples=2000)
losses = jg.assess(jax.random.key(1), learn.LeastSquares(), data, plan)
plot.influence_map(worth.influence(losses))
