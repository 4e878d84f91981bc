"""
ROC curves of all splits
========================

The curve of all splits pooled, a band of nine tenths of the splits, and the point of least cost, if both kinds of errors cost the same.
"""

import jax

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample
from jaxgen.stats.metrics import Predictions

data = datasets.breast_cancer()
plan = resample.leave_out(jax.random.key(0), data.n, fraction=0.25, resamples=60)
learners = {"logistic, ridge 1": learn.Normalised(learn.Logistic(ridge=1.0)), "nearest 5": learn.Neighbours(5)}
losses = jg.assess(jax.random.key(1), learners, data, plan, keep="predictions")
predictions = {name: Predictions.of(each, data) for name, each in losses.items()}
plot.roc_curves(predictions, positive="malignant")
