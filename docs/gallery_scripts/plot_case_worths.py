"""
What each case is worth
=======================

Banzhaf values of training cases, sorted, with their standard errors. The labels of the marked cases were exchanged on purpose: they are the ones that do harm.
"""

import jax
import numpy as np

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample
from jaxgen.stats import worth

data = datasets.breast_cancer()
random = np.random.default_rng(0)
chosen = random.permutation(data.n)[:350]
y = data.y[chosen].copy()
flipped = random.choice(150, 15, replace=False)
y[flipped] = y[flipped][:, ::-1]
noisy = datasets.from_arrays(data.x[chosen], y, task="classification")

plan = resample.half_samples(jax.random.key(1), 350, resamples=500, value=range(150, 350))
losses = jg.assess(jax.random.key(2), learn.Normalised(learn.Logistic(ridge=1.0)), noisy, plan, "cross_entropy")
plot.case_worths(worth.banzhaf(losses), marked=flipped)
