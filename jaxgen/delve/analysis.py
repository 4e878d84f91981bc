"""All methods on one task of DELVE: their expected losses, raw and standardised, and every two of them compared.

Axes: L learners (the methods of the task), I instances of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from jaxgen.stats.checks import as_learners, as_numbers, require_level
from jaxgen.stats.compare.comparison import require_same
from jaxgen.stats.compare.instances import SOURCE, disjoint_t, expected_loss, quasi_f
from jaxgen.stats.compare.many import named
from jaxgen.stats.compare.multiplicity import ADJUSTMENTS, Pairs, pairwise
from jaxgen.stats.spread import dropped
from jaxgen.types import Losses, Plan
from jaxgen.types.numbers import require_kind, require_number, shown
from jaxgen.types.result import Finding

DIGITS = np.arange(10) / 100
"""The p-values up to which a digit from 0 to 9 is shown."""
STANDARDISED = "standardised "


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TaskComparison(Finding):
    """Methods on the instances of one task (Rasmussen et al. 1996, "The DELVE manual"; Neal 1998, section 4.4).

    Attributes:
      size: training cases of each instance.
      instances: training sets, I.
      cases: test cases of each instance.
      common: whether all instances have the same test cases.
      standard: divisor of standardised losses, in that unit; NaN if not known.
      labels: L names, in the order given.
      learners: L learners, each as code that recreates it.
      estimate: expected losses, [L].
      standard_error: their standard errors, [L].
      parts: standard deviations of training sets, of test cases (common test sets only) and of the residual, each [L].
      pairs: each two methods compared, [L(L-1)/2].
    """

    size: int
    instances: int
    cases: int
    common: bool
    standard: float
    labels: tuple[str, ...]
    learners: tuple[str, ...]
    estimate: Float[np.ndarray, "L"]
    standard_error: Float[np.ndarray, "L"]
    parts: Mapping[str, Float[np.ndarray, "L"]]
    pairs: Pairs

    @property
    def standardised(self) -> "TaskComparison":
        """The same with every loss, difference and deviation divided by `standard`, which becomes 1; p-values stay as
        they are.

        Raises:
          ValueError: the divisor is not known.
        """
        if np.isnan(self.standard):
            raise ValueError(
                f"expected the divisor of standardised losses, got none for the task of {self.size} training "
                "cases; give analyse its standard, as standard_loss(y, plan, loss)"
            )
        unit = STANDARDISED + self.unit.removeprefix(STANDARDISED)
        return replace(
            self,
            unit=unit,
            standard=1.0,
            estimate=self.estimate / self.standard,
            standard_error=self.standard_error / self.standard,
            parts={name: value / self.standard for name, value in self.parts.items()},
            pairs=replace(self.pairs, unit=unit, estimate=self.pairs.estimate / self.standard),
        )

    def digits(self, adjusted: bool = False) -> Shaped[np.ndarray, "L L"]:
        """Rasmussen's array of p-values, one letter for each row and column, [L, L].

        Where the loss of the column's method is less than that of the row's, and p <= 0.09, the digit is 100 p rounded
        up: 5 is 0.04 < p <= 0.05, and 0 is p = 0. Elsewhere there is a dot, also where all instances differ by the same
        amount, which is no certainty; on the diagonal there is a blank.

        Args:
          adjusted: Holm's p-values instead of those of each pair by itself.
        """
        p, difference = self.pairs.matrix("adjusted" if adjusted else "p_value"), self.pairs.matrix("estimate")
        digit = np.searchsorted(DIGITS, p)
        letters = np.where((difference < 0) & (digit < len(DIGITS)), digit.astype(str), ".").astype("U1")
        np.fill_diagonal(letters, " ")
        return letters

    def to_frame(self) -> pd.DataFrame:
        """One row per method; `pairs.to_frame()` has one per pair."""
        numbers = {"loss": self.estimate, "standard_error": self.standard_error}
        standardised = {f"standardised_{name}": value / self.standard for name, value in numbers.items()}
        frame = pd.DataFrame({"method": self.labels} | numbers | standardised | dict(self.parts))
        return frame.assign(
            standard=self.standard,
            size=self.size,
            instances=self.instances,
            cases=self.cases,
            common=self.common,
            unit=self.unit,
            learner=self.learners,
        )

    def subject(self) -> str:
        """How many methods, on what, tested how."""
        tested = f"the same {self.cases} cases" if self.common else f"{self.cases} cases each of their own"
        methods = f"{len(self.labels)} method{'s' * (len(self.labels) > 1)}"
        return f"{methods}, {self.instances} instances of {self.size} training cases, tested on {tested}"

    def lines(self) -> list[str]:
        """The losses of all methods, and the arrays of p-values."""
        known = not (np.isnan(self.standard) or self.unit.startswith(STANDARDISED))
        lines = [
            f"expected {self.unit}" + (f", and divided by {self.standard:.6g}" if known else ""),
            *self._losses(known),
        ]
        if len(self.pairs.first):
            lines += [
                "100 p rounded up, where the method of the column has the smaller loss and p <= 0.09",
                *self._arrays(),
            ]
            lines += [
                f"p: {self.pairs.method}, each pair by itself",
                f"adjusted: {self.pairs.adjustment}, for the pairs of this task",
            ]
        return lines

    def _losses(self, known: bool) -> list[str]:
        """The table of losses, line by line."""
        frame = self.to_frame()
        shown = [
            "loss",
            "standard_error",
            *(["standardised_loss", "standardised_standard_error"] if known else []),
            *self.parts,
        ]
        titles = {"standard_error": "s.e.", "standardised_loss": "standardised", "standardised_standard_error": "s.e."}
        table = pd.DataFrame({"": self._names()} | {name: [f"{value:#.6g}" for value in frame[name]] for name in shown})
        return [
            "  " + line
            for line in table.to_string(index=False, header=["", *(titles.get(name, name) for name in shown)]).split(
                "\n"
            )
        ]

    def _arrays(self) -> list[str]:
        """The digits of single and of adjusted p-values beside each other, line by line."""
        names, gap, wide = self._names(), " " * 4, 2 * len(self.labels) - 1
        rows = zip(names, self.digits(), self.digits(adjusted=True), strict=True)
        head = f"  {'':{len(names[0])}}{gap}{'p':{max(wide, 1)}}{gap}adjusted"
        return [
            head,
            *(f"  {name}{gap}{' '.join(single)}{gap}{' '.join(adjusted)}".rstrip() for name, single, adjusted in rows),
        ]

    def _names(self) -> list[str]:
        """The labels, filled up to one length."""
        return [name.ljust(max(map(len, self.labels))) for name in self.labels]


def analyse(
    losses: Sequence[Losses], standard: float | None = None, labels: Sequence[str] | None = None, level: float = 0.95
) -> TaskComparison:
    """Expected losses of all methods on one task, and all pairs of them compared (Rasmussen et al. 1996, "The DELVE
    manual"; Neal 1998, sections 2.3 and 4.4).

    Losses, standard errors and components of variance are those of `expected_loss`; the test of two methods is
    `disjoint_t`, or `quasi_f` for a common test set. DELVE gives the p-value of each pair by itself; Holm's beside it
    keep the family-wise error for the pairs of this one task: several tasks are several families.

    Args:
      losses: of L methods on one plan of task instances, of one data set, with the losses of cases [I, N].
      standard: divisor of standardised losses, of `standard_loss`; None leaves them out.
      labels: one a method; None takes the learners' own texts.
      level: 1 - level is the error that `pairs.rejected` keeps, 0 < level < 1.
    Returns:
      TaskComparison, numbers [L]; of a method alone, with no pairs. Two methods that differ by the same amount in all
      instances have p = 0, or 1 where that is 0.
    Raises:
      TypeError: no list of losses.
      ValueError: no losses, several data sets, different plans or losses, training sets of different sizes, a divisor
        that is not positive, a level out of range, another number of labels, or what `expected_loss` refuses.
    """
    losses = as_learners(losses, least=0)
    plan = _checked(losses, standard, level)
    results = [expected_loss(each) for each in losses]
    learners = tuple(each.learner for each in losses)
    labels, common = named(labels, learners), "test case sd" in results[0].parts
    estimate = np.array([float(result.estimate) for result in results])
    error = np.array([float(result.standard_error) for result in results])
    parts = {name: np.array([float(result.parts[name]) for result in results]) for name in results[0].parts}
    pairs = _pairs(losses, common, labels, level)
    return TaskComparison(
        method="DELVE task",
        source=SOURCE,
        target=results[0].target,
        unit=f"{losses[0].loss} loss",
        note=pairs.note,
        size=int(plan.train_sizes[0]),
        instances=plan.resamples,
        cases=int(plan.test_sizes[0]),
        common=common,
        standard=float("nan") if standard is None else standard,
        labels=labels,
        learners=learners,
        estimate=estimate,
        standard_error=error,
        parts=parts,
        pairs=pairs,
    )


def standard_loss(y: Float[np.ndarray, "N K"], plan: Plan, loss: str) -> float:
    """The divisor of standardised losses: about what a constant guess loses on the test cases (Rasmussen et al. 1996,
    "The DELVE manual"; Neal 1998, section 4.4).

    Over all cases that some instance tests, each once, n in all. Squared loss: the variance of the targets, divisor n
    - 1. Absolute loss: the sum of absolute deviations from the median, divided by n - 1 as in DELVE's normalisation,
    not by n. Both are summed over several outputs, as the losses are. 0-1 loss: one minus the share of the most
    frequent class.

    Args:
      y: targets, [N, K]; for the 0-1 loss one column of zeros and ones per class, or a single one.
      plan: of task instances, [I, N].
      loss: "squared", "absolute" or "zero_one".
    Returns:
      The divisor, in the unit of the loss.
    Raises:
      TypeError: no plan, or targets that are no numbers.
      ValueError: another loss, targets or a plan of another shape, or a divisor of 0 or not finite.
    """
    require_kind("a plan as jaxgen.Plan", plan, Plan, "give that of the task, losses.plan")
    targets = as_numbers("targets", y)
    if plan.sets is not None or targets.ndim != 2 or len(targets) != plan.n:
        raise ValueError(
            f"expected targets [N, K] and one plan for their N cases, got {list(targets.shape)} and weights "
            f"{list(plan.test.shape)}; choose one data set, and a column for each output"
        )
    if not isinstance(loss, str) or loss not in _DIVISORS:
        raise ValueError(
            f"expected the loss {', '.join(list(_DIVISORS)[:-1])} or {list(_DIVISORS)[-1]}, got {shown(loss)}; "
            "DELVE standardises no other"
        )
    tested = targets[plan.test.any(axis=0)]
    with np.errstate(invalid="ignore"):
        divisor = float(_DIVISORS[loss](tested))
    if not 0 < divisor < np.inf:
        raise ValueError(
            "expected targets that differ between test cases, and are finite, got the divisor "
            f"{divisor:g} of the {loss} loss of {len(tested)} of them; use raw losses"
        )
    return divisor


def _variance(y: Float[np.ndarray, "n K"]) -> float:
    y = y - y[:1]  # exactly 0 where all are equal
    return np.sum((y - y.mean(0)) ** 2) / max(len(y) - 1, 1)


def _deviation(y: Float[np.ndarray, "n K"]) -> float:
    return np.sum(np.abs(y - np.median(y, axis=0))) / max(len(y) - 1, 1)


def _misses(y: Float[np.ndarray, "n K"]) -> float:
    classes = y[:, 0] > 0.5 if y.shape[1] == 1 else y.argmax(1)
    return 1 - np.unique(classes, return_counts=True)[1].max() / len(y)


_DIVISORS = {"squared": _variance, "absolute": _deviation, "zero_one": _misses}


def _checked(losses: Sequence[Losses], standard: float | None, level: float) -> Plan:
    """The plan of losses that are of one task."""
    require_level(level)
    several = [each.sets for each in losses if each.sets is not None]
    if not losses or several:
        raise ValueError(
            "expected the losses of one or more methods on one data set, got "
            f"{len(losses)}{f' on {several[0]} sets' if several else ''}; give losses[q] of each"
        )
    if standard is not None:
        advice = "take that of standard_loss, or None"
        require_number("the divisor of standardised losses", standard, above=0, advice=advice)
    for each in losses:
        require_same(losses[0], each)
    sizes = losses[0].plan.train_sizes
    if np.ptp(sizes):
        raise ValueError(
            f"expected instances of one task, with as many training cases each, got {sizes.min()} to "
            f"{sizes.max()} ({losses[0].plan.scheme}); use resample.task_instances"
        )
    return losses[0].plan


def _pairs(losses: Sequence[Losses], common: bool, labels: Sequence[str], level: float) -> Pairs:
    """All pairs by the test for this design; none of a method alone."""
    test = quasi_f if common else disjoint_t
    if len(losses) > 1:
        return pairwise(losses, test, level=level, labels=labels)
    itself, empty, none = test(losses[0], losses[0]), np.zeros(0), np.zeros(0, np.int64)
    return Pairs(
        method=itself.method,
        source=itself.source,
        adjustment=ADJUSTMENTS["holm"][1],
        target=itself.target,
        unit=itself.unit,
        learners=tuple(labels),
        first=none,
        second=none,
        **dict.fromkeys(("estimate", "statistic", "p_value", "adjusted", "lower", "upper"), empty),
        level=level,
        note=dropped(losses[0]),
    )
