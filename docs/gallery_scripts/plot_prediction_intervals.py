"""
Prediction intervals of new cases
=================================

Jackknife+ intervals for patients that no model was trained on, from leaving out each of the others in turn, in the order of their predictions.
"""

from dataclasses import replace

import jax
import numpy as np

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample
from jaxgen.stats import conformal

data = datasets.diabetes()
order = np.random.default_rng(0).permutation(data.n)
train, new = (replace(data, x=data.x[part], y=data.y[part]) for part in (order[:221], order[221:]))
predicted = jg.predict(jax.random.key(1), learn.LeastSquares(), train, resample.leave_one_out(train.n), new.x)
plot.prediction_intervals(conformal.jackknife_plus(predicted, level=0.9), y=new.y)
