"""What losses do not show: confusion matrix, precision, recall, F, precision-recall curve, gains and lift, each row of
a plan by itself.

Rows are written `*R`: no axis for one trained model, [R] for the resamplings of a plan, [Q, R] for those of several
data sets. What has one number a row is a distribution over rows, and `jaxgen.stats.estimate.summary` describes it. The
areas under ROC curves are in `jaxgen.stats.metrics.roc`.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from jaxgen.stats.checks import as_numbers, require_losses
from jaxgen.types import Data, Losses, as_weights
from jaxgen.types.late import sklearn
from jaxgen.types.numbers import require_flag, require_kind, require_labels, require_number, require_one_of, shown

Positive = int | np.integer | str | None
"""The class to find, by its name or number; None means the second of two."""
Shares = Sequence[float] | Float[np.ndarray, " G"]
Values = Float[np.ndarray, "*R"] | Float[np.ndarray, "*R C"]
AVERAGES = ("binary", "macro", "weighted", "micro", "each")
"""One class; the plain mean of all classes; their mean by the number of test cases; all decisions in one table; each
class by itself.
"""


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
        return confusion(self).sum(-1)

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

    def one_class(self, positive: Positive) -> Iterator["Scored"]:
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


def confusion(predictions: Predictions) -> Float[np.ndarray, "*R C C"]:
    """Test cases of each true class (down) by the class that was decided for (across), counted by their weights, [*R,
    C, C] (Scott & Variyam, "Confusion Matrices").

    Raises:
      TypeError: no `Predictions`, here and in all that follows.
    """
    require_predictions(predictions)
    every = np.arange(len(predictions.classes))
    true, decided = (numbers[..., None] == every for numbers in (predictions.truth, predictions.scores.argmax(-1)))
    return np.swapaxes(true * predictions.weights[..., None].astype(np.float64), -1, -2) @ decided


def accuracy(predictions: Predictions) -> Float[np.ndarray, "*R"]:
    """Share of right decisions, [*R]: 1 minus the mean of the 0-1 loss."""
    table = confusion(predictions)
    return np.asarray(np.trace(table, axis1=-2, axis2=-1) / table.sum((-2, -1)))


def precision(
    predictions: Predictions, *, average: str = "binary", positive: Positive = None, undefined: float | None = None
) -> Values:
    """Share of the class among the cases decided for it (Scott & Variyam, "Precision-Recall Curves").

    Args:
      predictions: rows *R.
      average: one of AVERAGES.
      positive: the class to find, for "binary"; None means the second of two.
      undefined: what a class counts in a row that never decides for it, 0 / 0; None refuses such rows, NaN marks them.
    Returns:
      [*R]; [*R, C] for "each".
    Raises:
      ValueError: an undefined row, an unknown average or class.
    """
    require_choices(predictions, average, positive, undefined)
    table = confusion(predictions)
    return _ratio(predictions, "precision", _hits(table), table.sum(-2), average, positive, undefined)


def recall(
    predictions: Predictions, *, average: str = "binary", positive: Positive = None, undefined: float | None = None
) -> Values:
    """Share of the cases of the class that were found (Scott & Variyam, "Precision-Recall Curves"); of the other class
    it is the specificity.

    Args:
      predictions: rows *R.
      average: one of AVERAGES.
      positive: the class to find, for "binary"; None means the second of two.
      undefined: what a class counts in a row that tests no case of it, 0 / 0; None refuses such rows, NaN marks them.
    Returns:
      [*R]; [*R, C] for "each".
    Raises:
      ValueError: an undefined row, an unknown average or class.
    """
    require_choices(predictions, average, positive, undefined)
    table = confusion(predictions)
    return _ratio(predictions, "recall", _hits(table), table.sum(-1), average, positive, undefined)


def f_beta(
    predictions: Predictions,
    *,
    beta: float = 1.0,
    average: str = "binary",
    positive: Positive = None,
    undefined: float | None = None,
) -> Values:
    """(1 + b²) precision recall / (b² precision + recall) (Scott & Variyam, "Precision-Recall Curves (cont'd)").

    Computed as (1 + b²) tp / (b² true + decided), which is 0, and not 0 / 0 as printed, where nothing was found.

    Args:
      predictions: rows *R.
      beta: how many times recall matters as much as precision, above 0 and up to a million.
      average: one of AVERAGES.
      positive: the class to find, for "binary"; None means the second of two.
      undefined: what a class counts in a row that neither tests nor decides for it, 0 / 0; None refuses such rows, NaN
        marks them.
    Returns:
      [*R]; [*R, C] for "each".
    Raises:
      ValueError: an undefined row, an unknown average or class, or a beta that is not above 0, or above a million.
    """
    require_choices(predictions, average, positive, undefined)
    require_number("beta", beta, above=0, most=1e6, advice="give 1.0 if precision and recall matter the same")
    table, square = confusion(predictions), beta**2
    return _ratio(
        predictions,
        "F",
        (1 + square) * _hits(table),
        square * table.sum(-1) + table.sum(-2),
        average,
        positive,
        undefined,
    )


def balanced_accuracy(
    predictions: Predictions, *, adjusted: bool = False, undefined: float | None = None
) -> Float[np.ndarray, "*R"]:
    """Mean of the recalls of all classes, [*R] (Brodersen, Ong, Stephan & Buhmann 2010).

    Args:
      predictions: rows *R.
      adjusted: moved and scaled so that chance is 0 and perfection 1.
      undefined: what the recall of a class counts in a row that tests no case of it; None refuses such rows, NaN marks
        them.
    Returns:
      [*R].
    Raises:
      ValueError: a row whose test cases lack a class.
    """
    require_predictions(predictions)
    require_flag("adjusted", adjusted)
    chance = 1 / len(predictions.classes)
    mean = recall(predictions, average="macro", undefined=undefined)
    return np.asarray((mean - chance) / (1 - chance) if adjusted else mean)


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """A precision-recall curve, from the lowest threshold to the highest, [T] each.

    Attributes:
      precision: share of the class among the cases of at least that score; 1 for the last point, which finds nothing.
      recall: share of the class that has at least that score.
      threshold: that score; infinite for the last point.
    """

    precision: Float[np.ndarray, " T"]
    recall: Float[np.ndarray, " T"]
    threshold: Float[np.ndarray, " T"]


def precision_recall(predictions: Predictions, *, positive: Positive = None) -> PrecisionRecall:
    """The precision-recall curve of one model, [T] points (scikit-learn's `precision_recall_curve`).

    Raises:
      ValueError: predictions with rows, no test case of the class, or an unknown class.
    """
    require_one(predictions)
    refuse_rows(
        predictions.support[..., predictions.number(positive)] == 0, "test cases of the positive class", "give some"
    )
    [(truth, score, weight)] = predictions.one_class(positive)
    precisions, recalls, thresholds = sklearn.metrics.precision_recall_curve(truth, score, sample_weight=weight)
    return PrecisionRecall(precisions, recalls, np.append(thresholds, np.inf))


def precision_at(predictions: Predictions, shares: Shares, *, positive: Positive = None) -> Float[np.ndarray, "*R G"]:
    """Precision of each row at given recalls; between thresholds cases are taken at random from those of the next
    score.

    The counts are linear in between, and so precision is not (Davis & Goadrich 2006); at recalls of several thresholds
    it is the greatest.

    Args:
      predictions: rows *R.
      shares: recalls, [G], each above 0 and at most 1.
      positive: the class to find; None means the second of two.
    Returns:
      [*R, G].
    Raises:
      ValueError: a recall out of range, a row whose test cases lack one of both kinds, or an unknown class.
    """
    recalls = _checked_shares(shares, "recalls")

    def precisions(wrong: np.ndarray, right: np.ndarray) -> np.ndarray:
        target = recalls * right[-1]
        after = np.searchsorted(right, target * (1 - 1e-12))  # 0.1 * 30 is a little above 3
        part = np.minimum(1, (target - right[after - 1]) / (right[after] - right[after - 1]))
        return target / (target + wrong[after - 1] + part * (wrong[after] - wrong[after - 1]))

    of_rows = [precisions(row.wrong, row.right) for row in counts(predictions, positive)]
    return np.reshape(of_rows, (*predictions.rows, recalls.size))


def average_precision(
    predictions: Predictions, *, average: str = "binary", positive: Positive = None, undefined: float | None = None
) -> Values:
    """Mean of the precisions at all thresholds, each by its gain in recall (scikit-learn's `average_precision_score`).

    Args:
      predictions: rows *R.
      average: one of AVERAGES, over the classes each against the rest; "micro" ranks all scores of all classes
        together.
      positive: the class to find, for "binary"; None means the second of two.
      undefined: what a class counts in a row that tests no case of it; None refuses such rows, NaN marks them.
    Returns:
      [*R]; [*R, C] for "each".
    Raises:
      ValueError: an undefined row, an unknown average or class.
    """
    require_choices(predictions, average, positive, undefined)
    if average == "micro":
        pairs = zip(*(predictions.one_class(number) for number in range(len(predictions.classes))), strict=True)
        return np.reshape(
            [_average_precision(*map(np.concatenate, zip(*row, strict=True))) for row in pairs], predictions.rows
        )
    wanted = [predictions.number(positive)] if average == "binary" else range(len(predictions.classes))
    values = np.full((*predictions.rows, len(predictions.classes)), np.nan)
    for number in wanted:
        values[..., number] = np.reshape(
            [_average_precision(*row) for row in predictions.one_class(number)], predictions.rows
        )
    return averaged(predictions, "average precision", values, average, positive, undefined)


def gains(predictions: Predictions, shares: Shares, *, positive: Positive = None) -> Float[np.ndarray, "*R G"]:
    """Cumulative gains: share of the class among a given share of all cases, those of the highest scores first; of
    equal scores at random.

    Args:
      predictions: rows *R.
      shares: of all test cases, [G], each above 0 and at most 1.
      positive: the class to find; None means the second of two.
    Returns:
      [*R, G]; a random order gives `shares`.
    Raises:
      ValueError: a share out of range, a row whose test cases lack one of both kinds, or an unknown class.
    """
    grid = _checked_shares(shares, "shares of the cases")
    of_rows = [
        np.interp(grid, (wrong + right) / (wrong[-1] + right[-1]), right / right[-1])
        for wrong, right, _ in counts(predictions, positive)
    ]
    return np.reshape(of_rows, (*predictions.rows, grid.size))


def lift(predictions: Predictions, shares: Shares, *, positive: Positive = None) -> Float[np.ndarray, "*R G"]:
    """`gains` divided by those of a random order, [*R, G]: how many times as many of the class are found. Arguments
    and errors are those of `gains`, shares [G].
    """
    return gains(predictions, shares, positive=positive) / as_numbers("shares of the cases", shares)


class Counts(NamedTuple):
    """The wrong and the right cases of a row with scores of at least a threshold, and that threshold, falling from
    infinity, [T] each.
    """

    wrong: Float[np.ndarray, " T"]
    right: Float[np.ndarray, " T"]
    threshold: Float[np.ndarray, " T"]


def counts(predictions: Predictions, positive: Positive) -> list[Counts]:
    """The counts [T] of each row (scikit-learn's `roc_curve`).

    Raises:
      ValueError: a row whose test cases lack one of both kinds, or an unknown class.
      TypeError: no `Predictions`.
    """
    require_predictions(predictions)
    support = predictions.support
    positives = support[..., predictions.number(positive)]
    refuse_rows(
        (positives == 0) | (positives == support.sum(-1)),
        "test cases both of the positive class and of others",
        "use stratified or larger test sets, or leave these rows out",
    )
    rows = []
    for truth, score, weight in predictions.one_class(positive):
        false, true, threshold = sklearn.metrics.roc_curve(truth, score, sample_weight=weight, drop_intermediate=False)
        rows.append(Counts(np.rint(false * weight[~truth].sum()), np.rint(true * weight[truth].sum()), threshold))
    return rows


def require_choices(predictions: Any, average: Any, positive: Any, undefined: Any) -> None:
    """Refuses what is no `Predictions` of rows [*R], an unknown average or class, and an `undefined` that is no number.

    Raises:
      ValueError: an unknown average or class, or `undefined` neither None nor a number.
      TypeError: no `Predictions`.
    """
    require_predictions(predictions)
    require_one_of("average", average, AVERAGES)
    require_undefined(undefined)
    if average == "binary" or positive is not None:
        predictions.number(positive)


def require_undefined(undefined: Any) -> None:
    """ValueError unless it is None or a number, which may be NaN."""
    if undefined is not None and not (isinstance(undefined, float) and np.isnan(undefined)):
        require_number("undefined", undefined, advice="give what such a row counts, or numpy.nan to mark it")


def averaged(
    predictions: Predictions,
    name: str,
    values: Float[np.ndarray, "*R C"],
    average: str,
    positive: Positive,
    undefined: float | None,
) -> Values:
    """Values of each class [*R, C] put together, all but "micro"; NaN means undefined.

    Raises:
      ValueError: an undefined value without a word on what it counts.
    """
    support = predictions.support
    if average == "binary":
        values = values[..., predictions.number(positive)]
    needed = np.isnan(values) & (support > 0) if average == "weighted" else np.isnan(values)
    if undefined is None:
        remedy = (
            "use stratified or larger test sets, or say with undefined= what such a row counts (numpy.nan marks it)"
        )
        refuse_rows(needed.any(-1) if average != "binary" else needed, f"a defined {name}, and not 0 / 0,", remedy)
    values = np.where(np.isnan(values), np.nan if undefined is None else undefined, values)
    if average == "weighted":
        return np.asarray(np.where(support > 0, values * support, 0).sum(-1) / support.sum(-1))
    return np.asarray(values.mean(-1) if average == "macro" else values)


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


def _checked_shares(shares: Any, name: str) -> Float[np.ndarray, " G"]:
    """The shares as an array; ValueError unless they are a list of numbers above 0 and up to 1."""
    grid = as_numbers(name, shares)
    outside = ~((grid > 0) & (grid <= 1))
    if grid.ndim != 1 or not grid.size or outside.any():
        trouble = f"{grid[outside][0]}" if outside.any() else f"shape {list(grid.shape)}"
        raise ValueError(
            f"expected a list of {name} above 0 and up to 1, got {trouble}; "
            "give for example numpy.linspace(0.01, 1, 100)"
        )
    return grid


def _class_names(classes: Any, count: int) -> tuple[str, ...]:
    """The names of the classes, or their numbers if there are none; ValueError unless as many different texts."""
    if classes is None or (isinstance(classes, tuple | list) and not classes):
        return tuple(map(str, range(count)))
    require_labels(classes, count, "classes")
    names = tuple(map(str, classes))
    if len(set(names)) < count:
        raise ValueError(f"expected different names for {count} classes, got {shown(names)}; name each of them once")
    return names


def _hits(table: Float[np.ndarray, "*R C C"]) -> Float[np.ndarray, "*R C"]:
    return np.diagonal(table, axis1=-2, axis2=-1)


def _ratio(
    predictions: Predictions,
    name: str,
    above: Float[np.ndarray, "*R C"],
    below: Float[np.ndarray, "*R C"],
    average: str,
    positive: Positive,
    undefined: float | None,
) -> Values:
    if average == "micro":
        return np.asarray(above.sum(-1) / below.sum(-1))
    return averaged(
        predictions,
        name,
        np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0),
        average,
        positive,
        undefined,
    )


def _average_precision(
    truth: Bool[np.ndarray, " n"], score: Float[np.ndarray, " n"], weight: Float[np.ndarray, " n"]
) -> float:
    return (
        float(sklearn.metrics.average_precision_score(truth, score, sample_weight=weight))
        if truth.any()
        else float("nan")
    )
