"""
Ranks over many data sets
=========================

Average ranks of some learners over thirty simulated data sets. A bar joins learners whose ranks differ by less than the critical difference of Nemenyi's test.
"""

import jax

import jaxgen as jg
from jaxgen import learn, plot, resample, simulate
from jaxgen.stats import compare

system = simulate.linear_ar(jax.random.key(0), sets=30, n=40, d=10)
plan = resample.leave_out(jax.random.key(1), 40, fraction=0.25, resamples=50, sets=30)
learners = {
    "least squares": learn.LeastSquares(),
    "ridge 3": learn.LeastSquares(ridge=3.0),
    "ridge 30": learn.LeastSquares(ridge=30.0),
    "nearest 5": learn.Neighbours(5),
    "mean": learn.Mean(),
}
losses = jg.assess(jax.random.key(2), learners, system.data, plan)
plot.critical_difference(compare.nemenyi(losses))
