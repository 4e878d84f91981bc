"""
Distributions of the generalization error
=========================================

How well does a learner do on splits of the same data? Each split gives one estimate G of the generalization error. The left panel shows the share
of splits below each value, and the right one the density.
"""

import jax

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample

data = datasets.diabetes()
plan = resample.leave_out(jax.random.key(0), data.n, fraction=0.25, resamples=300)
learners = {"least squares": learn.LeastSquares(), "mean of the target": learn.Mean()}
plot.distribution(jg.assess(jax.random.key(1), learners, data, plan))
