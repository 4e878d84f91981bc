"""R resampled training sets as weights over the same cases."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8

from jaxgen.types import rendered
from jaxgen.types.data import is_plain_array, kind_of, set_number
from jaxgen.types.numbers import shown

_SPLIT_ROWS = 256
"""Rows whose indices are made at a time: a plan that is drawn where it is needed is never there as a whole."""


@dataclass(frozen=True, eq=False)
class Plan:
    """R resampled training sets as weights over the same N cases, each with its test cases.

    A weight 0 is the same as an absent case and a weight 2 the same as the case twice.
    Made by the functions of `jaxgen.resample`; weights of your own by `resample.from_weights`.

    Attributes:
      train: training weights, [*Q, R, N].
      test: test weights, [*Q, R, N]; not always `1 - train`.
      scheme: text that recreates the plan.
      labels: what a row is within its design (repeat, fold, half, ...), each [R].
      cases: what belongs together among the cases, each [N]: "group", the group that a case is of, and "time", its
        place in a series, since such cases depend on each other; and "stratum", the class of which every test set holds
        its share. Statistics heed them.
    """

    train: UInt8[np.ndarray, "*Q R N"]
    test: UInt8[np.ndarray, "*Q R N"]
    scheme: str
    labels: Mapping[str, Int[np.ndarray, "R"]] = field(default_factory=dict)
    cases: Mapping[str, Int[np.ndarray, "N"]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Cases, N."""
        return self.train.shape[-1]

    @property
    def resamples(self) -> int:
        """Resamplings, R."""
        return self.train.shape[-2]

    @property
    def sets(self) -> int | None:
        """Data sets that have splits of their own, Q; None where one plan serves all."""
        return self.train.shape[0] if self.train.ndim == 3 else None

    @property
    def shape(self) -> tuple[int, ...]:
        """That of its weights, [*Q, R, N]."""
        return np.shape(self.train)

    @cached_property
    def train_sizes(self) -> Int[np.ndarray, "*Q R"]:
        """Sum of the training weights of each row, [*Q, R]: n1."""
        return sum_cases(self.train)

    @cached_property
    def test_sizes(self) -> Int[np.ndarray, "*Q R"]:
        """Sum of the test weights of each row, [*Q, R]: n2."""
        return sum_cases(self.test)

    @cached_property
    def train_cases(self) -> Int[np.ndarray, "*Q R"]:
        """Different cases that each row trains on, [*Q, R]."""
        return self.train_sizes if self.train.max() <= 1 else sum_cases((self.train > 0).astype(np.uint8))

    @property
    def drawn_one_by_one(self) -> bool:
        """Whether some of its rows are a plan of the same kind: no design with labels, and cases not all tested equally
        often, as folds do.
        """
        return not self.labels and bool(np.any(np.ptp(self.test.sum(axis=-2, dtype=np.int64), axis=-1) > 0))

    @property
    def repeats_cases(self) -> bool:
        """Whether a row trains on a case more than once."""
        return bool(self.train.max() > 1)

    def __repr__(self) -> str:
        sets = "" if self.sets is None else f"Q={self.sets}, "
        labels = f", labels {', '.join(map(str, self.labels))}" if self.labels else ""
        cases = f", cases by {', '.join(map(str, self.cases))}" if self.cases else ""
        return f"{type(self).__name__}({self.scheme}: {sets}R={self.resamples}, N={self.n}{labels}{cases})"

    def _repr_html_(self) -> str:
        """In notebooks a small table."""
        rows = [
            *([("data sets", self.sets)] if self.sets is not None else []),
            ("rows", self.resamples),
            ("cases", self.n),
            *([("labels of rows", ", ".join(map(str, self.labels)))] if self.labels else []),
            *([("labels of cases", ", ".join(map(str, self.cases)))] if self.cases else []),
        ]
        return rendered.table(self.scheme, ("", ""), rows)

    def rows(self, first: int, last: int) -> "Plan":
        """The plan of the rows from `first` up to `last`, which is not in it, [*Q, last - first, N]."""
        return self.chosen(slice(first, last), self.scheme)

    def chosen(self, rows: Any, scheme: str) -> "Plan":
        """The plan of some rows, [*Q, r, N].

        Args:
          rows: their numbers, a mask [R], or a slice.
          scheme: text that says what they are.
        """
        labels = {name: label[rows] for name, label in self.labels.items()}
        train, test = (np.ascontiguousarray(each[..., rows, :]) for each in (self.train, self.test))
        return Plan(train, test, scheme, labels, self.cases)

    def split(
        self,
        X: Any = None,  # noqa: N803  as scikit-learn calls it
        y: Any = None,
        groups: Any = None,
    ) -> Iterator[tuple[Int[np.ndarray, " n1"], Int[np.ndarray, " n2"]]]:
        """Indices of the training and test cases of each row, [n1] and [n2]: so a plan is a `cv` of scikit-learn, as in
        `cross_val_score(estimator, X, y, cv=plan)`.

        A case of weight 2 comes twice, one after the other; a case that a row neither trains nor tests on is in neither
        of the two, and scikit-learn leaves it out.

        Args:
          X: the cases; only their number is looked at.
          y, groups: not looked at; the plan was made with what it needs.
        Raises:
          ValueError: another number of cases, or splits of several data sets.
        """
        return self._pairs(self._checked_length(X))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: N803
        """Resamplings, R: what scikit-learn asks a `cv` for; X, y and groups as for `split`, [N] each.

        Raises:
          ValueError: as `split`.
        """
        self._checked_length(X)
        return self.resamples

    def _checked_length(self, x: Any) -> int:
        """The number of cases, if those that are given are so many."""
        if self.sets is not None:
            raise ValueError(f"expected the splits of one data set, got those of {self.sets}; choose one with plan[q]")
        given = self.n if x is None else int(x.shape[0]) if hasattr(x, "shape") else len(x)
        if given != self.n:
            raise ValueError(
                f"expected the {self.n} cases of the plan ({self.scheme}), got {given}; give those that it was made "
                "for, in their order"
            )
        return given

    def _pairs(self, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        cases = np.arange(n)
        for first in range(0, self.resamples, _SPLIT_ROWS):
            some = self.rows(first, min(first + _SPLIT_ROWS, self.resamples))
            for train, test in zip(some.train, some.test, strict=True):
                yield np.repeat(cases, train), np.repeat(cases, test)

    def __getitem__(self, q: int) -> "Plan":
        """The plan of data set q of Q, with train and test [R, N].

        Raises:
          IndexError: there is no axis Q, or no such set.
        """
        if self.sets is None:
            raise IndexError(
                "expected a plan with a leading axis Q to choose from, got one plan [R, N]; use it as it is"
            )
        place = set_number(q, self.sets)
        return replace(self, train=self.train[place], test=self.test[place], scheme=f"{self.scheme}[{place}]")

    def __iter__(self) -> Iterator["Plan"]:
        """The plans of the Q data sets one after the other, with train and test [R, N] each.

        Raises:
          TypeError: there is no axis Q.
        """
        if self.sets is None:
            raise TypeError(
                "expected a plan with a leading axis Q to go through, got one plan [R, N]; use it as it is, or its "
                "train and test"
            )
        return (self[q] for q in range(self.sets))

    def checked(self) -> "Plan":
        """This plan itself, after a check of its shapes and weights.

        Raises:
          ValueError: train and test are no arrays of uint8 or not of one shape [*Q, R, N], a row trains or tests on
            nothing, or labels are not one whole number for each row.
        """
        if not all(is_plain_array(weights) and weights.dtype == np.uint8 for weights in (self.train, self.test)):
            raise ValueError(
                f"expected train and test weights as arrays of uint8, got {kind_of(self.train)} and "
                f"{kind_of(self.test)}; make the plan with resample.from_weights"
            )
        if self.train.ndim not in (2, 3) or self.train.shape != self.test.shape or 0 in self.train.shape:
            raise ValueError(
                "expected train and test weights of one shape [R, N] or [Q, R, N], none of them 0, got "
                f"{list(self.train.shape)} and {list(self.test.shape)}; give both for every row and case"
            )
        for name, sizes in (("training", self.train_sizes), ("test", self.test_sizes)):
            if not sizes.all():
                raise ValueError(
                    f"expected every row of the plan to have {name} cases, got none in {int((sizes == 0).sum())} "
                    f"rows, the first {np.argwhere(sizes == 0)[0].tolist()}; give each row at least one"
                )
        self._check_words()
        return self

    def _check_words(self) -> None:
        if not isinstance(self.scheme, str):
            raise ValueError(
                f"expected the scheme as text, got {shown(self.scheme)}; say in words where the weights come from"
            )
        for kind, given, length, things in (
            ("labels", self.labels, self.resamples, "rows"),
            ("cases", self.cases, self.n, "cases"),
        ):
            if not isinstance(given, Mapping):
                raise ValueError(
                    f"expected {kind} as a dict of arrays [{length}], got {shown(given)}; give such a dict"
                )
            for name, label in given.items():
                if not is_plain_array(label) or label.dtype.kind not in "iu" or label.shape != (length,):
                    raise ValueError(
                        f"expected label {name!r} as {length} whole numbers, one for each of the {things}, got "
                        f"{shown(label)}; leave it out, or number the {things}"
                    )


def as_weights(name: str, values: Any) -> UInt8[np.ndarray, "*R N"]:
    """Weights [*R, N] as the package keeps them; ValueError unless they are whole numbers from 0 to 255, or True
    and False.
    """
    if np.ma.is_masked(values):
        raise ValueError(
            f"expected {name} weights without gaps, got {np.ma.count_masked(values)} masked ones; "
            "fill them, 0 for a case that is absent"
        )
    try:
        weights = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"expected {name} weights in rows of equal length, got different lengths; give every row a weight for "
            "each case"
        ) from None
    if weights.dtype.kind not in "biuf":
        raise ValueError(f"expected {name} weights as numbers, got an array of {weights.dtype}; convert them first")
    bad = np.argwhere(~((weights >= 0) & (weights <= 255) & (weights == np.floor(weights))))
    if len(bad):
        where = tuple(bad[0].tolist())
        raise ValueError(
            f"expected {name} weights that are whole numbers from 0 to 255, got {weights[where]} at "
            f"{list(where)}; a weight says how often the case counts"
        )
    return weights.astype(np.uint8)


def as_counts(indices: Any, n: int, name: str) -> UInt8[np.ndarray, " N"]:
    """How often each of N cases is in an array of indices, or of N flags, [N].

    Raises:
      ValueError: no such array, or a case more than 255 times.
    """
    try:
        values = np.asarray(indices)
    except (TypeError, ValueError):
        values = np.asarray(None)
    if values.dtype == bool and values.shape == (n,):
        return values.astype(np.uint8)
    whole = values.ndim == 1 and (values.dtype.kind in "iu" or not values.size)
    if not whole or (values.size and not (values.min() >= 0 and values.max() < n)):
        raise ValueError(
            f"expected the {name} cases of a split as indices from 0 to {n - 1}, got {shown(indices)}; give a splitter "
            "made for so many cases"
        )
    counts = np.bincount(values.astype(np.int64), minlength=n)
    return as_weights(name, counts)


def found_design(
    train: UInt8[np.ndarray, "R N"], test: UInt8[np.ndarray, "R N"]
) -> tuple[dict[str, Int[np.ndarray, "R"]], dict[str, Int[np.ndarray, "N"]]]:
    """What weights [R, N] of another tool show by themselves, as labels of rows [R] and of cases [N].

    Rows that, one after the other, test every case once and train on all others are folds, with labels "repeat" and
    "fold". Rows that each test on what comes after all that they train on, different cases each, and train on what
    others test, are blocks of a series: label "fold", and the places of the cases in time. Other rows have no labels.
    """
    rows, n = test.shape
    if np.array_equal(train, 1 - test):
        covered, ends = np.zeros(n, np.int64), []
        for row in range(rows):
            covered += test[row]
            if covered.max() > 1:
                break
            if covered.min() == 1:
                ends.append(row + 1)
                covered[:] = 0
        divisions = np.diff([0, *ends])
        if ends and ends[-1] == rows and np.ptp(divisions) == 0 and divisions[0] > 1:
            folds = int(divisions[0])
            return {"repeat": np.arange(rows) // folds, "fold": np.arange(rows) % folds}, {}
    case = np.arange(n)
    ordered = (np.where(train > 0, case, -1).max(-1) < np.where(test > 0, case, n).min(-1)).all()
    if rows > 1 and ordered and test.sum(0).max() <= 1 and (train.any(0) & test.any(0)).any():
        return {"fold": np.arange(1, rows + 1)}, {"time": case}
    return {}, {}


def found_strata(test: UInt8[np.ndarray, "R N"], classes: Any) -> dict[str, Int[np.ndarray, "N"]]:
    """The classes [N] of cases as their strata, if test sets [R, N] are stratified by them; else nothing.

    They are if each holds its share of every class, to less than one case, and random test sets would do so for the
    class nearest to a half in less than 5 % (by the hypergeometric law, as if rows were independent).
    """
    label = np.unique(np.asarray(classes), return_inverse=True)[1]
    rows, n = test.shape
    number = int(label.max()) + 1
    if not 2 <= number <= n / 2 or rows < 2:
        return {}
    cases, size = np.bincount(label), test.sum(-1, dtype=np.int64)
    counts = test.astype(np.int64) @ (label[:, None] == np.arange(number)).astype(np.int64)
    if np.abs(counts - size[:, None] * cases / n).max() >= 1:
        return {}
    of_class, drawn = int(cases[np.abs(cases - n / 2).argmin()]), int(np.median(size))
    expected = drawn * of_class / n
    near = range(max(math.floor(expected - 1) + 1, 0), min(math.ceil(expected + 1), of_class + 1, drawn + 1))
    chance = sum(
        math.exp(_log_choose(of_class, k) + _log_choose(n - of_class, drawn - k) - _log_choose(n, drawn))
        for k in near
        if drawn - k <= n - of_class
    )
    return {"stratum": label} if chance ** (rows - 1) < 0.05 else {}


def _log_choose(n: int, k: int) -> float:
    """The logarithm of the number of ways to choose k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def sum_cases(weights: UInt8[np.ndarray, "*Q R N"]) -> Int[np.ndarray, "*Q R"]:
    """Row sums of weights [*Q, R, N]; einsum is five times faster than `sum` where rows are short."""
    return np.einsum("...n->...", weights, dtype=np.int64, casting="unsafe")


def as_labels(
    shape: tuple[int, ...], labels: Any = None, groups: Any = None, times: Any = None
) -> tuple[dict[str, Int[np.ndarray, "R"]], dict[str, Int[np.ndarray, "N"]]]:
    """Labels of rows [R] and of cases [N] as a plan of weights of this shape [*Q, R, N] keeps them: whole numbers.

    Labels of rows that are whole numbers stay as they are, since some designs give numbers a meaning.

    Raises:
      ValueError: not one label for each row or case, gaps, or labels that are no mapping.
    """
    if labels is not None and not isinstance(labels, Mapping):
        raise ValueError(
            f"expected labels as a dict of arrays, one for each row, got {shown(labels)}; give such a dict"
        )
    if len(shape) < 2:  # refused by `Plan.checked`
        return {}, {}
    cases = {"group": groups, "time": times}
    return (
        {
            str(name): np.asarray(label)
            if is_plain_array(label) and label.dtype.kind in "iu"
            else numbered(f"label {name!r}", label, shape[-2], "row")
            for name, label in (labels or {}).items()
        },
        {name: numbered(f"{name}s", label, shape[-1]) for name, label in cases.items() if label is not None},
    )


def numbered(name: str, labels: Collection[Any], n: int, thing: str = "case") -> Int[np.ndarray, " n"]:
    """Labels [n] of cases, or of other things, as numbers 0, 1, ...; also given as one column of zeros and ones per
    class, [n, K], as the targets of a classification are.

    Raises:
      ValueError: not one label for each, gaps, or labels that do not compare.
    """
    try:
        values = np.asarray(labels)
    except (ValueError, TypeError):  # lists of different lengths, or a random key
        values = np.asarray(None)
    if values.ndim == 2 and values.dtype.kind in "biuf" and _one_class_each(values):
        values = values.argmax(-1) if values.shape[-1] > 1 else values[:, 0]
    if values.shape != (n,):
        raise ValueError(
            f"expected {name} to be {n} labels, one per {thing}, got shape {list(values.shape)}; "
            "give one label for each"
        )
    missing = [case for case, label in enumerate(values.tolist()) if _is_missing(label)]
    if missing:
        raise ValueError(
            f"expected {name} without gaps, got {shown(values.tolist()[missing[0]])} for {thing} {missing[0]}; "
            f"give every {thing} a label"
        )
    try:
        return np.unique(values, return_inverse=True)[1]
    except TypeError:
        raise ValueError(
            f"expected {name} of one kind, such as texts or whole numbers, got several that do not compare; "
            "make them all texts"
        ) from None


def _one_class_each(columns: np.ndarray) -> bool:
    """Whether columns [n, K] hold zeros and ones, a single 1 in each row, or are one column of zeros and ones."""
    zeros_and_ones = ((columns == 0) | (columns == 1)).all()
    return bool(zeros_and_ones and columns.shape[-1] and (columns.shape[-1] == 1 or (columns.sum(-1) == 1).all()))


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, or what cannot be compared, such as a missing value of pandas."""
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):
        return True
