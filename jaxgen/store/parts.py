"""Parts of a run: which rows belong to each, and how their arrays become the losses of the run."""

import math
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jaxgen.types import Losses, Plan

Arrays = Mapping[str, np.ndarray]
"""What a part computes, by name: "test_mean", "train_mean" and "failure" [sets, rows], "values" [sets, rows, N] and
"predictions" [sets, rows, N, K] if they are kept, and "info/NAME" [sets, rows, ...].
"""


class Part(NamedTuple):
    """A range of the trainings of a run, [Q, R]: data sets from `first_set` up to `last_set`, which is not in it, and
    rows from `first_row` up to `last_row` of each.
    """

    number: int
    first_set: int
    last_set: int
    first_row: int
    last_row: int

    @property
    def at(self) -> tuple[slice, slice]:
        """Where its trainings stand in arrays [Q, R, ...]."""
        return slice(self.first_set, self.last_set), slice(self.first_row, self.last_row)

    @property
    def size(self) -> int:
        """Trainings."""
        return (self.last_set - self.first_set) * (self.last_row - self.first_row)

    def __str__(self) -> str:
        """For example "part 3 (rows 2000 to 2999 of data set 0)"; all count from 0."""
        sets = f"data set {self.first_set}"
        if self.last_set - self.first_set > 1:
            sets = f"data sets {self.first_set} to {self.last_set - 1}"
        return f"part {self.number} (rows {self.first_row} to {self.last_row - 1} of {sets})"


class Heading(NamedTuple):
    """What the losses of a run say beside their numbers.

    Attributes:
      learner, loss: their names.
      reasons: sentences that say why a training failed.
      sets: data sets, Q.
      single: whether data and plan have no axis Q.
      label: what the learner is called; empty for its code.
      key: that of the training, as code.
    """

    learner: str
    loss: str
    reasons: tuple[str, ...]
    sets: int
    single: bool
    label: str = ""
    key: str = ""


def divided(sets: int, rows: int, size: int) -> tuple[Part, ...]:
    """All trainings [Q, R] in parts of about `size`: several whole data sets, or some rows of one.

    Args:
      sets, rows: Q and R.
      size: the most trainings of a part, but at least one.
    """
    by_set = max(1, min(sets, size // rows))
    by_row = math.ceil(rows / math.ceil(rows / max(1, size)))
    corners = ((q, r) for q in range(0, sets, by_set) for r in range(0, rows, by_row))
    return tuple(
        Part(number, q, min(q + by_set, sets), r, min(r + by_row, rows)) for number, (q, r) in enumerate(corners)
    )


def joined(parts: MutableMapping[Part, Arrays], plan: Plan, heading: Heading) -> Losses:
    """The losses of those parts: of all rows of the plan [*Q, R, N], or of the rows that all data sets have.

    Args:
      parts: what each part computed; each is taken out once it is copied, so that memory holds all numbers only once.
      plan: that of the whole run.
      heading: what else the losses say.
    Returns:
      Losses [*Q, R], of fewer rows where parts are missing.
    Raises:
      ValueError: no row is there of all data sets.
    """
    sets, rows = heading.sets, plan.resamples
    there = np.zeros((sets, rows), bool)
    for part in parts:
        there[part.at] = True
    kept = np.flatnonzero(there.all(axis=0))
    if not len(kept):
        raise ValueError(
            f"expected a row that was trained on all data sets, got {int(there.sum())} trainings of {there.size}, none "
            "of which belong together; wait for more parts"
        )
    place = np.full(rows, -1)
    place[kept] = np.arange(len(kept))
    arrays: dict[str, np.ndarray] = {}
    for part in list(parts):
        mine = place[part.first_row : part.last_row]
        for name, values in parts.pop(part).items():
            if name not in arrays:
                arrays[name] = np.empty((sets, len(kept), *values.shape[2:]), values.dtype)
            arrays[name][part.at[0], mine[mine >= 0]] = values[:, mine >= 0]
    if len(kept) < rows:
        plan = plan.chosen(kept, f"{plan.scheme}, {len(kept)} of {rows} rows")
    return as_losses(arrays, plan, heading)


def as_losses(arrays: Arrays, plan: Plan, heading: Heading) -> Losses:
    """Losses of arrays [Q, R, ...], without an axis Q if neither data nor plan had one."""
    arrays = {name: array[0] if heading.single else array for name, array in arrays.items()}
    reasons = heading.reasons
    if arrays["failure"].max() <= len(reasons) - 1:  # the last is for numbers that a learner has no sentence for
        reasons = reasons[:-1]
    failure = np.minimum(arrays["failure"], len(reasons))
    return Losses(
        arrays["test_mean"],
        arrays["train_mean"],
        plan,
        heading.learner,
        heading.loss,
        failure,
        reasons,
        arrays.get("values"),
        {name.removeprefix("info/"): array for name, array in arrays.items() if name.startswith("info/")},
        predictions=arrays.get("predictions"),
        label=heading.label,
        key=heading.key,
    )


def as_arrays(losses: Losses) -> Arrays:
    """The arrays [Q, R, ...] of losses [*Q, R]: the opposite of `as_losses`."""
    arrays = {name: getattr(losses, name) for name in ("test_mean", "train_mean", "failure", "values", "predictions")}
    arrays |= {f"info/{name}": np.asarray(array) for name, array in losses.info.items()}
    known = {name: array for name, array in arrays.items() if array is not None}
    return known if losses.sets else {name: array[None] for name, array in known.items()}


def of_range(plan: Plan, part: Part) -> Plan:
    """The rows of a part: train and test [*sets, rows, N]."""
    if not plan.sets:
        return plan.rows(part.first_row, part.last_row)
    train, test = (np.ascontiguousarray(weights[part.at]) for weights in (plan.train, plan.test))
    labels = {name: label[part.at[1]] for name, label in plan.labels.items()}
    return replace(plan, train=train, test=test, labels=labels)
