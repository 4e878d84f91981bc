"""Learners: what is trained on each resampled training set."""

from jaxgen.learn.linear import LeastSquares, LinearFit, Mean

__all__ = ["LeastSquares", "LinearFit", "Mean"]
