"""Cases with inputs and targets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxgen.types import rendered
from jaxgen.types.numbers import require_flag, require_one_of, shown

TASKS = ("regression", "classification")


@dataclass(frozen=True, eq=False)
class Data:
    """Cases with inputs and targets, in their own units, on the host.

    Made by the functions of `jaxgen.datasets` and `jaxgen.simulate`, which check what they are given;
    `assess` checks again.

    Attributes:
      x: inputs, [*Q, N, D].
      y: targets, [*Q, N, K]; for a classification one column of zeros and ones per class, with a single 1 in each
        row, or a single column of zeros and ones.
      names: the D names of the inputs.
      target: the name of what is predicted.
      task: "regression" or "classification".
      classes: the K class names of a classification, or none; for a regression none.
      missing: whether inputs may be missing, NaN in x; only learners that accept this are trained on such data, for
        example `learn.Imputed`.
      categories: for each column of texts that was encoded the numbers of its columns of x, one per level but the
        first.
    """

    x: Float[np.ndarray, "*Q N D"]
    y: Float[np.ndarray, "*Q N K"]
    names: tuple[str, ...]
    target: str = "y"
    task: str = "regression"
    classes: tuple[str, ...] = ()
    missing: bool = False
    categories: tuple[tuple[int, ...], ...] = ()

    @property
    def n(self) -> int:
        """Cases, N."""
        return self.x.shape[-2]

    @property
    def d(self) -> int:
        """Inputs, D."""
        return self.x.shape[-1]

    @property
    def sets(self) -> int | None:
        """Independent data sets, Q; None where the data have no such axis."""
        return self.x.shape[0] if self.x.ndim == 3 else None

    def __getitem__(self, q: int) -> "Data":
        """Data set q of Q, with x [N, D] and y [N, K].

        Raises:
          IndexError: there is no axis Q, or no such set.
        """
        if self.sets is None:
            raise IndexError(
                "expected data with a leading axis Q to choose a set from, got a single data set; use it as it is"
            )
        place = set_number(q, self.sets)
        return replace(self, x=self.x[place], y=self.y[place])

    def __iter__(self) -> Iterator["Data"]:
        """The Q data sets one after the other, with x [N, D] and y [N, K] each.

        Raises:
          TypeError: there is no axis Q.
        """
        if self.sets is None:
            raise TypeError(
                "expected data with a leading axis Q to go through, got a single data set; use it as it is, or its x "
                "and y"
            )
        return (self[q] for q in range(self.sets))

    def __repr__(self) -> str:
        classes = f", {len(self.classes)} classes ({_listed(self.classes)})" if self.classes else ""
        gaps = f", {int(np.isnan(self.x).sum())} missing inputs" if self.missing else ""
        shapes = f"x {list(np.shape(self.x))}, y {list(np.shape(self.y))}"
        return f"Data({self.task} of {self.target!r}{classes}: {shapes}{gaps})"

    def _repr_html_(self) -> str:
        """In notebooks a small table."""
        gaps = int(np.isnan(self.x).sum()) if self.missing else 0
        rows = [
            ("task", self.task),
            *([("classes", _listed(self.classes))] if self.classes else []),
            *([("data sets", self.sets)] if self.sets is not None else []),
            ("cases", self.n),
            ("inputs", f"{self.d}: {_listed(self.names)}"),
            *([("missing inputs", gaps)] if gaps else []),
        ]
        return rendered.table(self.target, ("", ""), rows)

    def select(self, inputs: Sequence[str | int]) -> "Data":
        """The same cases seen through some of the inputs.

        Args:
          inputs: names or column numbers, in the order wanted.
        Returns:
          Data with x [*Q, N, len(inputs)].
        Raises:
          ValueError: a name or number is not among the inputs, or comes twice.
        """
        if not isinstance(inputs, Sequence | np.ndarray) or isinstance(inputs, str):
            raise ValueError(f"expected a list of names or column numbers, got {shown(inputs)}; name the inputs wanted")
        columns = [self._column(name) for name in inputs]
        if not columns or len(set(columns)) < len(columns):
            raise ValueError(f"expected one or more different inputs, got {shown(inputs)}; name each once")
        place = {column: number for number, column in enumerate(columns)}
        whole = tuple(
            tuple(place[column] for column in levels) for levels in self.categories if place.keys() >= set(levels)
        )
        names = tuple(self.names[column] for column in columns)
        return replace(self, x=self.x[..., columns], names=names, categories=whole)

    def _column(self, name: str | int) -> int:
        """The number of an input given by its name or number."""
        if isinstance(name, str) and name in self.names:
            return self.names.index(name)
        if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < self.d:
            return int(name)
        raise ValueError(
            f"expected inputs among {_listed(self.names)} or numbers below {self.d}, got {shown(name)}; "
            "name those of this data set"
        )

    def checked(self) -> "Data":
        """This data set itself, after a check of its shapes and values.

        Raises:
          ValueError: x [*Q, N, D] and y [*Q, N, K] do not belong together, names, task and classes do not fit, a value
            is not finite (but for missing inputs where these are allowed), or the targets of a classification are not
            the zeros and ones of one class a case.
        """
        self._check_shapes()
        self._check_texts()
        self._check_finite()
        if self.task == "classification":
            self._check_classes()
        elif self.classes:
            raise ValueError(
                f"expected no classes for a regression, got {_listed(self.classes)}; "
                "leave them out, or make it a classification with task='classification'"
            )
        return self

    def _check_shapes(self) -> None:
        if not all(is_plain_array(values) and values.dtype.kind == "f" for values in (self.x, self.y)):
            raise ValueError(
                f"expected x and y as floating numbers, got {kind_of(self.x)} and {kind_of(self.y)}; "
                "make the data with datasets.from_arrays"
            )
        if self.x.ndim not in (2, 3) or self.y.ndim != self.x.ndim or self.x.shape[:-1] != self.y.shape[:-1]:
            raise ValueError(
                "expected x [N, D] and y [N, K] (or both with one leading axis Q) of the same cases, got x "
                f"{list(self.x.shape)} and y {list(self.y.shape)}; give one row per case"
            )
        if self.sets == 0 or self.n == 0 or self.y.shape[-1] == 0:
            raise ValueError(
                f"expected at least one case and one output, got x {list(self.x.shape)} and y "
                f"{list(self.y.shape)}; check the source of the data"
            )

    def _check_texts(self) -> None:
        require_one_of("task", self.task, TASKS)
        for what, names in (("names", self.names), ("classes", self.classes), ("a target", (self.target,))):
            if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
                value = self.target if what == "a target" else names
                raise ValueError(f"expected {what} in texts, got {shown(value)}; name them by texts")
            if len(set(names)) < len(names):
                raise ValueError(f"expected different {what}, got {_listed(names)}; name each once")
        require_flag("missing", self.missing)
        if len(self.names) != self.d:
            raise ValueError(
                f"expected {self.d} names, one per column of x, got {len(self.names)}; name every input once"
            )

    def _check_finite(self) -> None:
        outputs = self.y.shape[-1]
        targets = self.classes if len(self.classes) == outputs else (self.target,) * outputs
        for symbol, values, names in (("x", self.x, self.names), ("y", self.y, targets)):
            good = np.isfinite(values)
            if symbol == "x" and self.missing:
                good |= np.isnan(values)
            if not good.all():
                bad = np.argwhere(~good)
                where = tuple(int(i) for i in bad[0])
                raise ValueError(
                    f"expected finite numbers, got {values[where]} in {symbol}, column {where[-1]} "
                    f"({names[where[-1]]!r}), case {where[-2]}, "
                    f"and {len(bad)} such values in all; fill in or leave out these cases first"
                )

    def _check_classes(self) -> None:
        outputs = self.y.shape[-1]
        if len(self.classes) not in (0, outputs):
            raise ValueError(
                f"expected {outputs} classes, one per column of y, got {len(self.classes)}; name every class once"
            )
        in_one_class = ((self.y == 0) | (self.y == 1)).all(-1) & ((self.y.sum(-1) == 1) | (outputs == 1))
        wrong = np.argwhere(~in_one_class)
        if len(wrong):
            where = tuple(wrong[0].tolist())
            raise ValueError(
                "expected a 1 for the class of each case and 0 for the others, got "
                f"{_listed(self.y[where].tolist())} as the target of case {where[-1]}; make the data with "
                "datasets.from_arrays, or say task='regression'"
            )


def set_number(q: Any, sets: int) -> int:
    """The number of a data set as an index; IndexError unless it is one of Q."""
    if not isinstance(q, int | np.integer) or isinstance(q, bool) or not -sets <= q < sets:
        raise IndexError(f"expected the number of a data set from 0 to {sets - 1}, got {shown(q)}; choose one of these")
    return int(q)


def is_plain_array(values: Any) -> bool:
    """Whether this is an array of NumPy [...], and not a masked one."""
    return isinstance(values, np.ndarray) and not np.ma.isMaskedArray(values)


def kind_of(values: Any) -> str:
    """What came where an array was expected: its type of numbers, or what it is."""
    return str(values.dtype) if is_plain_array(values) else f"a {type(values).__name__}"


def _listed(words: Sequence[Any], most: int = 20) -> str:
    """Words with commas between, the first of them if there are many."""
    more = f", ... ({len(words)} in all)" if len(words) > most else ""
    return ", ".join(map(str, words[:most])) + more
