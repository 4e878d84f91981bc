"""
A learning curve and its limit
==============================

Errors measured at several sizes of the training set, the law fitted to them, and the error that it expects from all cases and from infinitely many.
"""

import jax

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample
from jaxgen.stats import estimate

data = datasets.diabetes()
keys = jax.random.split(jax.random.key(0), 5)
losses = [
    jg.assess(
        jax.random.key(1), learn.LeastSquares(), data, resample.leave_out(key, data.n, fraction=fraction, resamples=200)
    )
    for key, fraction in zip(keys, (0.85, 0.7, 0.5, 0.3, 0.1), strict=True)
]
plot.learning_curve(estimate.inverse_curve(losses), labels=["least squares"])
