"""Tests of whether learners differ: two on one plan, on instances of tasks, on one test set; many at once, and many
tests at once.
"""

from jaxgen.stats.compare.comparison import Comparison
from jaxgen.stats.compare.data_sets import wilcoxon
from jaxgen.stats.compare.hierarchical import hierarchical_t
from jaxgen.stats.compare.instances import disjoint_t, expected_loss, quasi_f
from jaxgen.stats.compare.many import Omnibus, RankDifferences, cochran_q, friedman, iman_davenport, nemenyi
from jaxgen.stats.compare.margins import equivalence, non_inferiority
from jaxgen.stats.compare.multiplicity import Pairs, benjamini_hochberg, benjamini_yekutieli, holm, max_t, pairwise
from jaxgen.stats.compare.paired import hold_out_t, mcnemar, permutation
from jaxgen.stats.compare.ratios import error_ratio, skill_score
from jaxgen.stats.compare.recommended import recommend
from jaxgen.stats.compare.splits import (
    bayesian_t,
    conservative_z,
    corrected_k_fold_t,
    corrected_score,
    corrected_t,
    cv_clt,
    five_by_two_f,
    five_by_two_t,
    grouped_t,
    jackknife_after_leave_out,
    k_fold_t,
    nested_cross_validation,
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
    "conservative_z",
    "corrected_k_fold_t",
    "corrected_score",
    "corrected_t",
    "cv_clt",
    "disjoint_t",
    "equivalence",
    "error_ratio",
    "expected_loss",
    "five_by_two_f",
    "five_by_two_t",
    "friedman",
    "grouped_t",
    "hierarchical_t",
    "hold_out_t",
    "holm",
    "iman_davenport",
    "jackknife_after_leave_out",
    "k_fold_t",
    "max_t",
    "mcnemar",
    "nemenyi",
    "nested_cross_validation",
    "non_inferiority",
    "paired_t",
    "pairwise",
    "permutation",
    "probability_greater",
    "probability_interval",
    "quasi_f",
    "recommend",
    "skill_score",
    "wilcoxon",
]
