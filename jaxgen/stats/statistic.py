"""A statistic of each row, such as the AUC of its test cases, in the place of a mean loss."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxgen.types import Losses, Plan


@dataclass(frozen=True, eq=False, repr=False)
class OfRows(Losses):
    """One number for each row of a plan, [*Q, R], which intervals and tests take as they take losses; made by
    `metrics.of_rows`.

    Its `loss` is the name of the statistic, and it has no losses of single cases. Differences are second minus first,
    as of losses: where a greater number is better, a positive one speaks for the second learner, which results note.

    Attributes:
      greater_is_better: whether it is, as of AUC and F.
      bounded: whether it lies between 0 and 1, where the limits of intervals then stay.
      of_strata: of stratified splits, what a case more of each class does to each row by the share of the class alone,
        times the number of cases, [*Q, R, classes]: of a mean loss that of the class less that of all. None where
        splits are not stratified.
    """

    greater_is_better: bool = True
    bounded: bool = True
    of_strata: Float[np.ndarray, "*Q R C"] | None = None

    @property
    def unit(self) -> str:
        """The name of the statistic."""
        return self.loss

    def _pick(self, index: tuple[Any, ...], plan: Plan, **others: Any) -> Losses:
        if self.of_strata is not None:
            others["of_strata"] = self.of_strata[index]
        return super()._pick(index, plan, **others)


def direction(losses: Any) -> str:
    """What to say of differences of a statistic [*Q, R] of which more is better; empty for losses."""
    if not getattr(losses, "greater_is_better", False):
        return ""
    return f"a greater {losses.unit} is better, so a positive difference speaks for the second"


def require_less_is_better(*losses: Any) -> None:
    """ValueError for a statistic of rows [*Q, R] of which more is better, where ranks or ratios of errors are asked
    for.
    """
    for each in losses:
        if direction(each):
            raise ValueError(
                f"expected losses, of which less is better, got the {each.unit} of rows; take differences of it, by "
                "compare.corrected_t or pairwise"
            )
