"""
What more splits gain
=====================

The standard error of the mean over splits does not fall without end, since all splits share the same cases. The dashed line is what it can fall to.
"""

import jax

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample

data = datasets.diabetes()
plan = resample.leave_out(jax.random.key(0), data.n, fraction=0.25, resamples=1000)
line = jg.assess(jax.random.key(1), learn.LeastSquares(), data, plan)
plot.standard_error_floor(line, labels=["least squares"])
