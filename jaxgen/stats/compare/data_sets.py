"""Two learners on several independent data sets."""

from typing import Any

import numpy as np
import scipy

from jaxgen.stats.checks import require_alternative
from jaxgen.stats.compare.comparison import Comparison, of_test, of_two, require_same
from jaxgen.types import Losses


@of_two
def wilcoxon(first: Losses, second: Losses, *, alternative: str = "two-sided") -> Comparison:
    """Wilcoxon's signed-rank test over data sets (Wilcoxon 1945; advised by Demšar 2006, "Statistical comparisons of
    classifiers"): are the mean losses of one learner lower, data set by data set?

    Each data set gives one difference, the mean over its rows, so the data sets are what is drawn and how often each
    was resampled does not matter. SciPy's `wilcoxon` without continuity correction: differences of 0 are left out, and
    the law is exact where there are no ties and at most 50 data sets.

    Args:
      first, second: losses of two learners on Q independent data sets, [Q, R].
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison of single numbers, []: the estimate is the median of the Q differences, the statistic is the sum of the
      ranks of one sign. p is 1 where all differences are 0.
    Raises:
      ValueError: one data set, different plans or losses, failed rows, or an unknown alternative.
      TypeError: no losses.
    """
    require_same(first, second)
    require_alternative(alternative)
    if first.sets is None or first.sets < 2:
        raise ValueError(
            f"expected losses of several data sets, [Q, R], got those of {first.sets or 1}; give data with an axis Q, "
            "or use recommend for one data set"
        )
    change = second.g.mean(-1) - first.g.mean(-1)
    statistic, p = 0.0, 1.0
    if change.any():
        result: Any = scipy.stats.wilcoxon(change, alternative=alternative)
        statistic, p = result.statistic, result.pvalue
    describe = ("Wilcoxon's signed-rank test", "Wilcoxon 1945", "the difference on data sets like these")
    estimate, w, p_value = (np.asarray(value, np.float64) for value in (np.median(change), statistic, p))
    parts = {"data sets": np.asarray(float(first.sets))}
    return of_test(describe, first, second, estimate, w, p_value, "W", alternative, parts=parts)
