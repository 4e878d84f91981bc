"""Estimates of the generalization error: its distribution over resamplings, points with standard errors, curves over
the number of cases.
"""

from jaxgen.stats.estimate.bootstrap_error import error_632, error_632_plus, no_information_rate, out_of_bag
from jaxgen.stats.estimate.distribution import BoxCox, Ecdf, Measures, Summary, box_cox, ecdf, summary, trimmed_average
from jaxgen.stats.estimate.estimator_error import (
    Fractions,
    average_conditional_error,
    empirical_fraction,
    optimal_fraction,
    unconditional_error,
)
from jaxgen.stats.estimate.learning_curve import Curve, inverse_curve, l_alpha, l_alpha_beta, l_beta, power_curve
from jaxgen.stats.estimate.prediction_error import apparent, cross_validation, hold_out, quantile
from jaxgen.stats.estimate.resampled import (
    Mixed,
    bootstrap,
    bootstrap_test_cases,
    jackknife,
    mixed,
    row_losses,
    split_train,
    subsampling,
)

__all__ = [
    "BoxCox",
    "Curve",
    "Ecdf",
    "Fractions",
    "Measures",
    "Mixed",
    "Summary",
    "apparent",
    "average_conditional_error",
    "bootstrap",
    "bootstrap_test_cases",
    "box_cox",
    "cross_validation",
    "ecdf",
    "empirical_fraction",
    "error_632",
    "error_632_plus",
    "hold_out",
    "inverse_curve",
    "jackknife",
    "l_alpha",
    "l_alpha_beta",
    "l_beta",
    "mixed",
    "no_information_rate",
    "optimal_fraction",
    "out_of_bag",
    "power_curve",
    "quantile",
    "row_losses",
    "split_train",
    "subsampling",
    "summary",
    "trimmed_average",
    "unconditional_error",
]
