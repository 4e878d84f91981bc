"""The test that suits a plan."""

from dataclasses import replace
from typing import Any

from jaxgen.stats import advice
from jaxgen.stats.checks import require_alternative, require_level
from jaxgen.stats.compare import instances, paired, splits
from jaxgen.stats.compare.comparison import Comparison, of_two, require_same
from jaxgen.stats.spread import joined
from jaxgen.stats.statistic import OfRows
from jaxgen.types import Losses

_TWO_SIDED = ("mcnemar", "quasi_f")
"""Tests without an alternative and without an interval."""


@of_two
def recommend(first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Comparison:
    """The test that suits these losses and the weights of their plan; `note` says why, and how often a test at 5 %
    rejected where two learners were equally good, at worst of what was measured: not every one keeps to 5 %.

    The plan is judged by its weights, whatever its name, so one of your own or of another tool is treated as what it
    is. The choice follows the sizes and powers measured in `benchmarks/calibration.py`; see
    `docs/which_interval_which_test.md`.

    Args:
      first, second: losses of two learners on one plan, [*Q, R].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q].
    Raises:
      ValueError: different plans or losses, failed rows, or a plan that no test here is made for; an
        alternative for a test that has none; or as the test that was chosen.
      TypeError: no losses.
    """
    require_same(first, second)
    require_level(level)
    require_alternative(alternative)
    kept = first.values is not None and second.values is not None
    line = advice.line(first.plan, kept and advice.zero_one(first, second), kept)
    if not line.test:
        raise ValueError(f"expected a plan that a test is made for, got {first.plan.scheme}: {line.reason}")
    options: dict[str, Any] = {"alternative": alternative, "level": level}
    if line.test in _TWO_SIDED:
        if alternative != "two-sided":
            raise ValueError(
                f"expected the alternative two-sided for {line.test}, which suits this plan, got {alternative!r}; "
                "use hold_out_t for a one-sided question"
            )
        options = {}
    test = next(getattr(module, line.test) for module in (splits, instances, paired) if hasattr(module, line.test))
    result = test(first, second, **options)
    size = "" if isinstance(first, OfRows) else advice.measured_size(line.test)
    return replace(result, note=joined(f"chosen because {line.reason}", result.note, size))
