"""Estimates, intervals and tests: functions of one or two loss matrices, in double precision on the host."""

from jaxgen.stats import compare, estimate, interval, metrics, planning

__all__ = ["compare", "estimate", "interval", "metrics", "planning"]
