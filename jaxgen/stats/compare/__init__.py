"""Tests of whether learners differ: two on one plan, on instances of tasks, on one test set; many at once, and many
tests at once.
"""

from jaxgen.stats.compare.comparison import Comparison
from jaxgen.stats.compare.instances import disjoint_t, expected_loss, quasi_f
from jaxgen.stats.compare.many import Omnibus, RankDifferences, cochran_q, friedman, iman_davenport, nemenyi
from jaxgen.stats.compare.multiplicity import Pairs, benjamini_hochberg, benjamini_yekutieli, holm, max_t, pairwise
from jaxgen.stats.compare.paired import hold_out_t, mcnemar, permutation
from jaxgen.stats.compare.recommended import recommend
from jaxgen.stats.compare.splits import (
    bayesian_t,
    corrected_k_fold_t,
    corrected_t,
    cv_clt,
    five_by_two_f,
    five_by_two_t,
    k_fold_t,
    paired_t,
    probability_greater,
    probability_interval,
)

__all__ = [
    "Comparison",
    "Omnibus",
    "Pairs",
    "RankDifferences",
    "bayesian_t",
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "cochran_q",
    "corrected_k_fold_t",
    "corrected_t",
    "cv_clt",
    "disjoint_t",
    "expected_loss",
    "five_by_two_f",
    "five_by_two_t",
    "friedman",
    "hold_out_t",
    "holm",
    "iman_davenport",
    "k_fold_t",
    "max_t",
    "mcnemar",
    "nemenyi",
    "paired_t",
    "pairwise",
    "permutation",
    "probability_greater",
    "probability_interval",
    "quasi_f",
    "recommend",
]
