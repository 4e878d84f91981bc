"""Estimates, intervals and tests: functions of one or two loss matrices, in double precision on the host."""

from jaxgen.stats import bootstrap, compare, delve, estimate, estimator_error, fixed, interval, learning_curve, many, metrics, multiplicity, prediction_error, resampled, roc

__all__ = ["bootstrap", "compare", "delve", "estimate", "estimator_error", "fixed", "interval", "learning_curve", "many", "metrics", "multiplicity", "prediction_error", "resampled", "roc"]
