"""What to beware of in an analysis, before its numbers are believed: remarks with a stable code, a sentence with the
numbers of this analysis, and a page that says why and what to do.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from jaxgen.stats import advice, methods
from jaxgen.stats.checks import as_numbers, require_losses
from jaxgen.stats.compare.comparison import Comparison, difference
from jaxgen.stats.design import groups as groups_of
from jaxgen.stats.design import not_folds, one_test_set, repeated, unlike_random
from jaxgen.stats.rows import span
from jaxgen.stats.statistic import OfRows
from jaxgen.types import Data, Losses, Plan
from jaxgen.types.late import pandas as pd
from jaxgen.types.numbers import require_kind, require_number, shown
from jaxgen.types.rendered import table
from jaxgen.types.result import Result

PAGE = "docs/remarks.md"
"""Of the documentation: a section for each code says why, and what to do."""

CODES = {
    "failed-rows": "error",
    "different-plans": "error",
    "different-losses": "error",
    "tested-in-training": "error",
    "divided-groups": "error",
    "naive-error": "error",
    "trained-on-future": "warning",
    "few-splits": "warning",
    "repeated-rows": "warning",
    "same-key": "warning",
    "common-test-set": "warning",
    "uneven-tests": "warning",
    "missing-classes": "warning",
    "unseen-shares": "warning",
    "classes-as-numbers": "warning",
    "dropped-rows": "warning",
    "one-row": "warning",
    "no-spread": "warning",
    "few-values": "warning",
    "zero-probability": "warning",
    "unstable-comparison": "warning",
    "numbered-cases": "note",
    "untested-cases": "note",
    "small-training": "note",
}
"""Every code and how grave it is: an "error" makes numbers wrong, a "warning" may, a "note" says what they are of."""

NAIVE = ("naive t interval", "paired t-test", "naive k-fold t-test")
"""Methods whose standard error takes resamplings for independent."""

MONTE_CARLO = 1 / 3
"""From so much of the variance on that comes of having drawn few splits, they are called few."""

SMALL = 0.8
"""From this share of the cases down training sets are called small, as `interval.recommend` does."""

CARRIES = 0.5
"""From so much of the sum of all rows on one row carries the estimate."""

ALIKE = 0.5
"""From this share of rows on with one and the same value of a statistic, it is called one of few values."""

NUMBERED = 20
"""From so many cases on, an input that is another whole number in each is taken for one that only numbers them."""

IMPOSSIBLE = 30.0
"""Above this cross entropy a probability is called almost 0: below 1e-13."""


class Remark(NamedTuple):
    """One thing to beware of.

    Attributes:
      code: one of `CODES`, which stays the same.
      severity: "error", "warning" or "note".
      text: one sentence, with the numbers of this analysis.
    """

    code: str
    severity: str
    text: str

    @property
    def page(self) -> str:
        """Where it is said why, and what to do."""
        return f"{PAGE}#{self.code}"

    def __str__(self) -> str:
        return f"{self.severity} {self.code}: {self.text} ({self.page})"


@dataclass(frozen=True, eq=False, repr=False)
class Remarks:
    """All remarks on an analysis, the gravest first; printed one per line. True if there are any.

    Attributes:
      remarks: each of them.
    """

    remarks: tuple[Remark, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes, in the order of the remarks."""
        return tuple(remark.code for remark in self.remarks)

    def __iter__(self) -> Iterator[Remark]:
        return iter(self.remarks)

    def __len__(self) -> int:
        return len(self.remarks)

    def to_frame(self) -> "pd.DataFrame":
        """One row per remark."""
        rows = [(*remark, remark.page) for remark in self.remarks]
        return pd.DataFrame(rows, columns=["code", "severity", "text", "page"])

    def __str__(self) -> str:
        return "\n".join(map(str, self.remarks)) or "no remarks"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [(remark.severity, remark.code, remark.text) for remark in self.remarks]
        if not rows:
            return "<div>no remarks</div>"
        return table("Remarks", ["severity", "code", "remark"], rows, [f"why, and what to do: {PAGE}"])


def check(
    losses: Any,
    *others: Any,
    data: Data | None = None,
    groups: Any = None,
    times: Any = None,
    monte_carlo_error: float | int | None = None,
) -> Remarks:
    """What to beware of in an analysis: too few splits, rows that repeat each other or failed, cases that depend on
    each other, learners that do not compare, and more; see `CODES` and `docs/remarks.md`.

    Args:
      losses, others: losses of one or several learners on one data set, G [R]; also what intervals and tests returned.
        One by one, in a list, or in a mapping of labels.
      data: what was trained on, x [N, D] and y [N, K], for a look at the classes that rows train on and test.
      groups: labels [N] of cases that depend on each other, where the plan does not carry them.
      times: when each case was observed, [N], if they are a series and the plan does not say so.
      monte_carlo_error: the standard error of the mean of G that having drawn these splits only may leave, in the unit
        of the loss; None asks that it be less than a third of the variance of the corrected t.
    Returns:
      Remarks.
    Raises:
      TypeError: something else than losses and results, or than data.
      ValueError: nothing to check, losses of several data sets, or data, groups or times of other cases.
    """
    each = _listed((losses, *others))
    learners = [one for one in each if isinstance(one, Losses)]
    results = [one for one in each if isinstance(one, Result)]
    require_losses(*learners)
    several = next((one for one in learners if one.sets is not None), None)
    if several is not None:
        raise ValueError(
            f"expected the losses of one data set, got those of {several.sets} of {several.name}; choose one "
            "with losses[q]"
        )
    if monte_carlo_error is not None:
        require_number(
            "the Monte Carlo error wanted", monte_carlo_error, above=0, advice="give it in the unit of the loss"
        )
    n = learners[0].plan.n if learners else None
    labels = _of_cases("groups", groups, n), _of_cases("times", times, n)
    if data is not None:
        require_kind("the data that were trained on", data, Data, "give what assess was given")
        if data.sets or (n is not None and data.n != n):
            raise ValueError(
                f"expected the {n} cases that were trained on, got {data!r}; give the data of these losses"
            )
    found = [
        *(remark for one in learners for remark in _of_rows(one, monte_carlo_error)),
        *(remark for plan in _different(learners) for remark in _of_plan(plan, data, *labels)),
        *(_of_inputs(data) if data is not None else ()),
        *_of_several(learners),
        *(remark for one in results for remark in _of_result(one)),
    ]
    once = list(dict.fromkeys(found))
    order = list(CODES)
    return Remarks(tuple(sorted(once, key=lambda remark: order.index(remark.code))))


def _listed(given: Sequence[Any]) -> list[Any]:
    """Losses and results one by one, those of a mapping under their labels."""
    each: list[Any] = []
    for one in given:
        if isinstance(one, Losses | Result):
            each.append(one)
        elif isinstance(one, Mapping):
            each += [other.labelled(str(label)) if isinstance(other, Losses) else other for label, other in one.items()]
        elif isinstance(one, list | tuple):
            each += one
        else:
            each.append(one)
    for one in each:
        require_kind("losses, or results of intervals and tests", one, (Losses, Result), "give what assess returned")
    if not each:
        raise ValueError("expected losses to check, got none; give what assess returned")
    return each


def _of_cases(what: str, given: Any, n: int | None) -> np.ndarray | None:
    """Labels or times [N] of cases."""
    if given is None:
        return None
    values = as_numbers(what, given) if what == "times" else np.asarray(given)
    if values.shape != (n,):
        raise ValueError(
            f"expected {what} of the {n} cases, one each, got {shown(values)}; give one for each case of the data"
        )
    return np.unique(values, return_inverse=True)[1]


def _remark(code: str, text: str) -> Remark:
    return Remark(code, CODES[code], text)


def _of(count: int, one: str, many: str) -> str:
    """The word for one, or for several."""
    return one if count == 1 else many


def _different(learners: Sequence[Losses]) -> list[Plan]:
    """The plans of learners, each once."""
    plans: list[Plan] = []
    for one in learners:
        if not any(_same(one.plan, plan) for plan in plans):
            plans.append(one.plan)
    return plans


def _same(first: Plan, second: Plan) -> bool:
    """Whether two plans have the same weights [R, N]."""
    return first is second or (np.array_equal(first.train, second.train) and np.array_equal(first.test, second.test))


def _of_rows(losses: Losses, wanted: float | int | None) -> Iterator[Remark]:
    """What the losses of one learner show."""
    name, plan, failed = losses.name, losses.plan, int(losses.failed.sum())
    if losses.dropped:
        yield _remark(
            "dropped-rows",
            f"{losses.dropped} of {losses.resamples + losses.dropped} trainings of {name} failed and "
            f"{_of(losses.dropped, 'was', 'were')} left out, "
            "so its mean is that of the others only",
        )
    if losses.key and losses.key in plan.scheme:
        yield _remark(
            "same-key", f"{name} was trained with {losses.key}, the key that the plan was drawn with; give each its own"
        )
    if failed:
        code = int(losses.failure[losses.failed][0])
        yield _remark(
            "failed-rows",
            f"{failed} of {losses.resamples} trainings of {name} failed ({losses.reasons[code - 1]}), and statistics "
            "refuse them",
        )
        return
    g = losses.g
    if losses.resamples > 1 and np.ptp(g) == 0:
        yield _remark("no-spread", f"all {len(g)} rows of {name} have the mean loss {g[0]:.5g}, which is no certainty")
    elif losses.resamples > 2 and g.min() >= 0 and g.max() > CARRIES * g.sum():
        yield _remark(
            "one-row",
            f"row {int(g.argmax())} of {name} has the mean loss {g.max():.5g}, which is {g.max() / g.sum():.1%} of the "
            f"sum of all {len(g)} rows",
        )
    if alike := _alike(losses):
        yield _remark("few-values", alike)
    if methods.unseen_shares(losses):
        yield _remark(
            "unseen-shares",
            f"the splits of {name} are stratified and only the {losses.unit} of rows is known, so that no standard "
            "error holds how the shares of classes vary between data sets",
        )
    if impossible := _impossible(losses):
        yield _remark("zero-probability", impossible)
    if few := _few(losses, wanted):
        yield _remark("few-splits", few)


def _alike(losses: Losses) -> str:
    """How many rows have one and the same value of a statistic such as F1; empty where they are few, or all."""
    if not isinstance(losses, OfRows) or np.ptp(losses.g) == 0:
        return ""
    values, often = np.unique(losses.g, return_counts=True)
    if often.max() < ALIKE * losses.resamples:
        return ""
    return (
        f"{often.max()} of {losses.resamples} rows of {losses.name} have the same {losses.unit}, "
        f"{values[often.argmax()]:.3g}, so that the others carry its mean and its standard error"
    )


def _impossible(losses: Losses) -> str:
    """How many cases were given a probability of almost 0 for what happened; empty where none was, or nobody knows."""
    if losses.loss != "cross_entropy" or losses.values is None:
        return ""
    tested = losses.plan.test > 0
    wrong = tested & (losses.values > IMPOSSIBLE)
    if not wrong.any():
        return ""
    weights = losses.plan.test / losses.plan.test_sizes[:, None]
    sums = [np.sum(np.where(some, weights * losses.values, 0)) for some in (wrong, tested)]
    return (
        f"{losses.name} gave {int(wrong.any(0).sum())} of {int(tested.any(0).sum())} tested cases a probability of "
        f"almost 0 for what happened, in {int(wrong.any(-1).sum())} of {losses.resamples} rows, which makes "
        f"{sums[0] / sums[1]:.0%} of the mean log loss {losses.g.mean():.3g}"
    )


def _few(losses: Losses, wanted: float | int | None) -> str:
    """Why there are too few splits; empty where there are enough, or where the number of splits is not the question."""
    plan = losses.plan
    if losses.resamples == 1:
        return (
            f"the only split of {losses.name} shows nothing of how much splits differ, so its error is that of one "
            f"trained model on {int(plan.test_sizes[0])} cases"
        )
    design = {"pair", "first", "instance"} & set(plan.labels) or one_test_set(plan)
    if design or (plan.test_sizes.max() == 1 and not not_folds(plan)):
        return ""
    g, r = losses.g, losses.resamples - repeated(plan)
    drawn = float(g.std(ddof=1) / np.sqrt(r))
    if wanted is not None:
        return (
            f"the Monte Carlo standard error of the mean of {losses.name} is {drawn:.3g} with {r} splits, more than "
            f"the {wanted:g} wanted; it takes some {int(np.ceil((drawn / wanted) ** 2 * r))}"
            if drawn > wanted
            else ""
        )
    ratio = float((plan.test_sizes / plan.train_sizes).mean())
    share = 1 / r / (1 / r + ratio)
    if share <= MONTE_CARLO:
        return ""
    return (
        f"{share:.0%} of the variance of the corrected t of {losses.name} comes from having only {r} splits; "
        f"{int(np.ceil(9 / ratio))} would make it a tenth"
    )


def _of_plan(plan: Plan, data: Data | None, groups: np.ndarray | None, times: np.ndarray | None) -> Iterator[Remark]:
    """What the weights of a plan show."""
    train, test = plan.train > 0, plan.test > 0
    rows = plan.resamples
    both = (train & test).any(-1)
    if both.any():
        yield _remark(
            "tested-in-training",
            f"{int(both.sum())} of {rows} rows {_of(int(both.sum()), 'tests', 'test')} cases that the same row trained "
            "on",
        )
    if again := repeated(plan):
        yield _remark(
            "repeated-rows",
            f"{again} of {rows} rows {_of(again, 'has', 'have')} the training and test cases of another: other seeds "
            "of one split, which show nothing of other cases",
        )
    if one_test_set(plan):
        yield _remark(
            "common-test-set",
            f"all {rows} rows are tested on the same {int(test[0].sum())} cases, so they show nothing of other test "
            "cases",
        )
    elif rows > 1:
        untested = int((~test.any(0)).sum())
        if untested:
            verb = _of(untested, "is", "are")
            yield _remark("untested-cases", f"{untested} of {plan.n} cases {verb} tested in none of the {rows} rows")
        design = {"pair", "first", "instance"} & set(plan.labels) or groups_of(plan) or "time" in plan.cases
        if not design and (uneven := unlike_random(plan)):
            yield _remark("uneven-tests", f"the plan has {uneven}, which random splits do not do")
    yield from _of_dependence(plan, groups, times)
    if not {"pair", "first"} & set(plan.labels) and plan.train_cases.min() < SMALL * plan.n:
        yield _remark(
            "small-training",
            f"rows train on {span(plan.train_cases)} of {plan.n} cases, so what is estimated is the error (ER) of "
            "training sets of that size, which is greater than that of all cases where the learning curve still falls",
        )
    if data is not None and data.task == "classification":
        yield from _of_classes(plan, data)
    elif data is not None and (values := np.unique(data.y)).size <= 2:
        yield _remark(
            "classes-as-numbers",
            f"the target {data.target!r} has the values {' and '.join(f'{value:g}' for value in values)} only, and is "
            "treated as a number; read the data with task='classification' if they are classes",
        )


def _of_dependence(plan: Plan, groups: np.ndarray | None, times: np.ndarray | None) -> Iterator[Remark]:
    """Groups that are divided between training and test, and rows that train on what came after their test cases."""
    train, test = plan.train > 0, plan.test > 0
    group = plan.cases.get("group") if groups is None else groups
    if group is not None and len(np.unique(group)) < plan.n:
        member = (np.unique(group)[:, None] == group).astype(np.float32).T
        divided = ((train.astype(np.float32) @ member > 0) & (test.astype(np.float32) @ member > 0)).any(-1)
        if divided.any():
            verbs = ("trains", "tests") if divided.sum() == 1 else ("train", "test")
            yield _remark(
                "divided-groups",
                f"{int(divided.sum())} of {plan.resamples} rows {verbs[0]} on some cases of a group and {verbs[1]} "
                "others of it, "
                f"with {member.shape[1]} groups of cases that depend on each other",
            )
    time = plan.cases.get("time") if times is None else times
    if time is not None:
        last = np.where(train, time, -np.inf).max(-1)
        first = np.where(test, time, np.inf).min(-1)
        late = int((last > first).sum())
        if late:
            yield _remark(
                "trained-on-future",
                f"{late} of {plan.resamples} rows {_of(late, 'trains', 'train')} on cases that came after cases that "
                f"{_of(late, 'it tests', 'they test')}",
            )


def _of_inputs(data: Data) -> Iterator[Remark]:
    """Inputs that look as if they numbered the cases."""
    if data.n < NUMBERED:
        return
    for name, column in zip(data.names, data.x.T, strict=True):
        if np.array_equal(column, np.round(column)) and len(np.unique(column)) == data.n:
            yield _remark(
                "numbered-cases",
                f"the input {name!r} is another whole number in each of the {data.n} cases; leave it out if it only "
                "numbers them",
            )


def _of_classes(plan: Plan, data: Data) -> Iterator[Remark]:
    """Rows without a class among their training or test cases."""
    y = data.y if data.y.shape[-1] > 1 else np.concatenate([1 - data.y, data.y], axis=-1)
    for part, weights in (("training", plan.train), ("test", plan.test)):
        counts = (weights > 0).astype(np.float64) @ y
        lacking = (counts == 0).any(-1)
        if lacking.any():
            worst = int((counts == 0).sum(0).argmax())
            name = data.classes[worst] if len(data.classes) == y.shape[-1] else str(worst)
            yield _remark(
                "missing-classes",
                f"{int(lacking.sum())} of {plan.resamples} rows {_of(int(lacking.sum()), 'lacks', 'lack')} a class "
                f"among {_of(int(lacking.sum()), 'its', 'their')} {part} cases, most often "
                f"{name!r}, of which there are {int(y[:, worst].sum())} cases of {data.n}",
            )


def _of_several(learners: Sequence[Losses]) -> Iterator[Remark]:
    """What keeps learners from being compared, or makes their comparison unsure."""
    for first, second in combinations(learners, 2):
        if first.loss != second.loss:
            yield _remark(
                "different-losses",
                f"{first.name} is measured by the {first.unit} and {second.name} by the {second.unit}",
            )
        elif not _same(first.plan, second.plan):
            yield _remark(
                "different-plans",
                f"{first.name} and {second.name} were trained on different splits ({first.plan.scheme} and "
                f"{second.plan.scheme}), so that their rows do not compare one by one",
            )
        elif (times := _instability(first, second)) is not None:
            yield _remark(
                "unstable-comparison",
                f"the difference of {first.name} and {second.name} is relatively unstable: its variance is "
                f"{times:.2g} times that of test cases alone",
            )


def _instability(first: Losses, second: Losses) -> float | None:
    """The variance of a difference over that of test cases alone, where these differ much and splits suffice to see it
    (Bayle, Janson & Mackey 2025).
    """
    plan = first.plan
    enough = plan.test_sizes.sum() >= advice.MANY_TESTS * plan.n
    if not enough or first.values is None or second.values is None or (first.failed | second.failed).any():
        return None
    try:
        parts = methods.jackknife(difference(first, second), "ER").parts
    except ValueError:  # a plan that the jackknife is not made for
        return None
    instability, noise = float(parts["instability"]), float(parts["noise"])
    return 1 + instability if abs(instability) > methods.UNSTABLE and noise <= 0.5 else None


def _of_result(result: Result) -> Iterator[Remark]:
    """What a result says of the method that was asked for."""
    if result.method in NAIVE and result.note:
        yield _remark(
            "naive-error",
            f"the {result.method} of {result.learner} takes resamplings that share cases for independent, so its "
            f"standard error {float(np.median(result.standard_error)):.3g} is too small",
        )
    instability = float(np.median(result.parts.get("instability", 0.0)))
    if isinstance(result, Comparison) and abs(instability) > methods.UNSTABLE:
        yield _remark(
            "unstable-comparison",
            f"the difference of {result.first} and {result.second} is relatively unstable: its variance is "
            f"{1 + instability:.2g} times that of test cases alone",
        )
