"""
Intervals one below the other
=============================

Several intervals from the same losses, grouped by what they are about. The naive one, which takes the splits for independent, is far too short.
"""

import jax

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample
from jaxgen.stats import interval

data = datasets.diabetes()
plan = resample.leave_out(jax.random.key(0), data.n, fraction=0.25, resamples=500)
line = jg.assess(jax.random.key(1), learn.LeastSquares(), data, plan)
plot.interval_forest(interval.jackknife_after_leave_out(line), interval.corrected_t(line), interval.naive_t(line))
