"""
Every pair of some learners
===========================

The difference of each pair of learners, its p-value adjusted for the number of pairs by Holm's method, and which of the two is better.
"""

import jax

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample
from jaxgen.stats import compare

data = datasets.diabetes()
plan = resample.leave_out(jax.random.key(0), data.n, fraction=0.25, resamples=500)
learners = {
    "least squares": learn.LeastSquares(),
    "ridge 100": learn.LeastSquares(ridge=100.0),
    "nearest 10": learn.Neighbours(10),
    "mean": learn.Mean(),
}
losses = jg.assess(jax.random.key(1), learners, data, plan)
plot.comparison_matrix(compare.pairwise(losses, compare.corrected_t))
