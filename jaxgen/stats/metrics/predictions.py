"""What each trained row predicts of the cases that it is tested on, which the metrics of `jaxgen.stats.metrics` take.

Rows are written `*R`: no axis for one trained model, [R] for the resamplings of a plan, [Q, R] for those of several
data sets.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from jaxgen.stats.checks import as_numbers, require_losses
from jaxgen.types import Data, Losses, as_weights
from jaxgen.types.numbers import require_kind, require_labels, shown

Positive = int | np.integer | str | None
"""The class to find, by its name or number; None means the second of two."""


class Scored(NamedTuple):
    """Of the n tested cases of a row: whether each is of the class, the score of the class, and its weight, [n]."""

    truth: Bool[np.ndarray, " n"]
    score: Float[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Predictions:
    """What each trained row predicts of the cases that it is tested on; made by `Predictions.of` from losses, or by
    `Predictions.from_arrays`.

    Attributes:
      truth: number of the class of each case, [*R, N].
      scores: of each class, greater for more likely, [*R, N, C].
      weights: test weights, [*R, N]; a case of weight 2 counts as two, one of weight 0 is absent.
      classes: the names of the C classes.
      learner: what made the scores.
    """

    truth: Int[np.ndarray, "*R N"]
    scores: Float[np.ndarray, "*R N C"]
    weights: UInt8[np.ndarray, "*R N"]
    classes: tuple[str, ...]
    learner: str

    @classmethod
    def from_arrays(
        cls,
        y: Any,
        scores: Any,
        test: Any = None,
        classes: Collection[str] | None = (),
        learner: str = "given predictions",
    ) -> "Predictions":
        """Predictions of any tool.

        Args:
          y: targets, one column of zeros and ones per class, [N, K] or [Q, N, K]; or a single column, or [N], of zeros
            and ones.
          scores: probabilities or scores, [*R, N, K], or [*R, N] if y is [N]; NaN is allowed where the row does not
            test. The class that a row decides for has the greatest score; of a single column s, the two classes have
            the scores 1 - s and s.
          test: test weights, [*R, N] or [N], whole numbers from 0 to 255; None tests every case once.
          classes: the names of the classes; none for their numbers.
          learner: what to call their maker.
        Raises:
          ValueError: shapes or weights that do not fit, targets that are not zeros and ones, a row without test cases,
            names that are no texts or not one for each class, or a score of a test case that is not finite.
          TypeError: y, scores or weights that are no numbers.
        """
        y, scores = as_numbers("y", y), as_numbers("scores", scores)
        y, scores = (y[:, None], scores[..., None]) if y.ndim == 1 else (y, scores)
        y = y[:, None] if y.ndim == 3 and scores.ndim == 4 else y
        given = np.ones(y.shape[-2:-1] or 1) if test is None else as_numbers("test weights", test)
        weights = as_weights("test", np.atleast_2d(given)).reshape(given.shape)
        shape = scores.shape[:-1]
        targets = (scores.shape[-2:], scores.shape, (*scores.shape[:1], 1, *scores.shape[-2:]))
        if (
            not 2 <= y.ndim <= scores.ndim
            or y.shape not in targets
            or weights.shape not in (shape, shape[-1:], shape[-2:])
        ):
            raise ValueError(
                "expected y [N, K], scores [*R, N, K] and test weights [*R, N] of the same cases and rows, "
                f"got {list(y.shape)}, {list(scores.shape)} and {list(weights.shape)}; "
                "give one score per row, case and class"
            )
        y, weights = np.broadcast_to(y, scores.shape), np.broadcast_to(weights, shape)
        y, scores = (np.concatenate([1 - a, a], axis=-1) for a in (y, scores)) if y.shape[-1] == 1 else (y, scores)
        if not np.isin(y, (0, 1)).all() or (y.sum(-1) != 1).any():
            raise ValueError(
                f"expected targets of zeros and ones with one 1 a case, got {np.unique(y)[:4].tolist()}; "
                "give one column per class"
            )
        names = _class_names(classes, y.shape[-1])
        require_kind("the name of the learner as a text", learner, str, "give any text")
        refuse_rows(~weights.any(-1), "test cases", "give each row at least one")
        refuse_rows(
            (~np.isfinite(scores).all(-1) & (weights > 0)).any(-1),
            "finite scores of all test cases",
            "leave these rows out",
        )
        return cls(y.argmax(-1), scores, weights, names, learner)

    @classmethod
    def of(cls, losses: Losses, data: Any) -> "Predictions":
        """What every row of `assess(..., keep="predictions")` predicts of its test cases.

        Args:
          losses: with the predictions of every row, [*Q, R, N, K].
          data: the classification that was trained on, or its targets y [*Q, N, K] of zeros and ones.
        Raises:
          TypeError: no losses, or neither data nor numbers.
          ValueError: predictions that were not kept, failed rows, data of other cases, or of a regression.
        """
        require_losses(losses)
        if isinstance(data, Data) and data.task != "classification":
            raise ValueError(
                f"expected a classification, got {data!r}; read the data with task='classification', or give zeros and "
                "ones"
            )
        if losses.predictions is None:
            raise ValueError(
                f"expected the predictions of every row, got losses alone of {losses.name}; use assess(..., "
                "keep='predictions')"
            )
        _ = losses.g
        y = as_numbers("the targets y", data.y if isinstance(data, Data) else data)
        y = y[:, None] if y.ndim == 1 else y
        shape = (*losses.predictions.shape[:-3], *losses.predictions.shape[-2:])
        if y.shape not in (shape, shape[-2:]):
            raise ValueError(
                f"expected the targets that were trained on, {list(shape)}, got {list(y.shape)}; give the data of "
                "these losses"
            )
        names = list(data.classes) if isinstance(data, Data) else []
        if y.shape[-1] == len(names) == 1:
            names = [f"not {names[0]}", *names]
        return cls.from_arrays(y, losses.predictions, losses.test, names, losses.name)

    @property
    def rows(self) -> tuple[int, ...]:
        """The shape of the rows: (), (R,) or (Q, R)."""
        return self.truth.shape[:-1]

    @property
    def support(self) -> Float[np.ndarray, "*R C"]:
        """Test cases of each class, counted by their weights, [*R, C]."""
        every = np.arange(len(self.classes))
        return ((self.truth[..., None] == every) * self.weights[..., None].astype(np.float64)).sum(-2)

    def __iter__(self) -> Iterator["Predictions"]:
        """The predictions of each row; of several data sets, those of each set."""
        if not self.rows:
            raise TypeError(
                "expected predictions with rows to go through, got those of one model; use them as they are"
            )
        return (self[row] for row in range(self.rows[0]))

    def __getitem__(self, row: int | np.integer) -> "Predictions":
        """The predictions of one row; of several data sets, those of one set.

        Raises:
          IndexError: there are no rows, or no such one.
        """
        if not self.rows:
            raise IndexError(
                "expected predictions with rows to choose from, got those of one model; use them as they are"
            )
        whole = isinstance(row, int | np.integer) and not isinstance(row, bool)
        if not whole or not -self.rows[0] <= row < self.rows[0]:
            raise IndexError(
                f"expected the number of a row from 0 to {self.rows[0] - 1}, got {shown(row)}; choose one of these"
            )
        return replace(self, truth=self.truth[row], scores=self.scores[row], weights=self.weights[row])

    def pooled(self) -> "Predictions":
        """The test cases of all R rows as those of one model, [R * N].

        Its curve is sound only if the scores of all rows have one scale, as probabilities have, and it hides how much
        rows differ (Fawcett 2006, "merging").

        Raises:
          ValueError: not one axis of rows.
        """
        if len(self.rows) != 1:
            raise ValueError(
                f"expected the rows of one data set to pool, got rows {list(self.rows)}; "
                "choose a set with predictions[q]"
            )
        return replace(
            self,
            truth=self.truth.reshape(-1),
            scores=self.scores.reshape(-1, len(self.classes)),
            weights=self.weights.reshape(-1),
        )

    def number(self, positive: Positive) -> int:
        """The number of the class to find; None means the second of two.

        Raises:
          ValueError: no such class, or None for more than two classes.
        """
        count = len(self.classes)
        if positive is None and count == 2:
            return 1
        if isinstance(positive, str) and positive in self.classes:
            return self.classes.index(positive)
        if isinstance(positive, int | np.integer) and not isinstance(positive, bool) and 0 <= positive < count:
            return int(positive)
        raise ValueError(
            f"expected the positive class to be one of {', '.join(self.classes)} or its number, got "
            f"{shown(positive)}; name the class that is to be found, with positive= or --positive"
        )

    def one_class(self, positive: Positive) -> Iterator[Scored]:
        """The n tested cases of each row as those of that class and of others, [n] each."""
        number = self.number(positive)
        for row in np.ndindex(self.rows):
            tested = self.weights[row] > 0
            yield Scored(
                self.truth[row][tested] == number,
                self.scores[row][tested, number],
                self.weights[row][tested].astype(np.float64),
            )


def require_predictions(*predictions: Any) -> None:
    """TypeError unless each argument is `Predictions`, of rows [*R]."""
    for given in predictions:
        if not isinstance(given, Predictions):
            raise TypeError(
                f"expected predictions, as metrics.Predictions.from_arrays makes them, got {shown(given)}; "
                "give it targets, scores and test weights"
            )


def refuse_rows(bad: Bool[np.ndarray, "*R"] | np.bool, expected: str, remedy: str) -> None:
    """Raises ValueError if a row is bad, [*R], and says which."""
    if np.any(bad):
        where = (
            ""
            if bad.ndim == 0
            else f" in {int(bad.sum())} of {bad.size}, the first "
            f"{', '.join(str(row.tolist()) for row in np.argwhere(bad)[:3])}"
        )
        raise ValueError(f"expected {expected} in every row, got none{where}; {remedy}")


def require_one(predictions: Predictions) -> None:
    """TypeError unless these are `Predictions`; ValueError unless of one model."""
    require_predictions(predictions)
    if predictions.rows:
        raise ValueError(
            f"expected the predictions of one model, got rows {list(predictions.rows)}; "
            "choose one with predictions[r], or put all together with predictions.pooled()"
        )


def _class_names(classes: Any, count: int) -> tuple[str, ...]:
    """The names of the classes, or their numbers if there are none; ValueError unless as many different texts."""
    if classes is None or (isinstance(classes, tuple | list) and not classes):
        return tuple(map(str, range(count)))
    require_labels(classes, count, "classes")
    names = tuple(map(str, classes))
    if len(set(names)) < count:
        raise ValueError(f"expected different names for {count} classes, got {shown(names)}; name each of them once")
    return names
