"""What losses do not show: confusion matrix, precision, recall, F, precision-recall curve, gains and lift, each row of
a plan by itself.

Rows are written `*R`: no axis for one trained model, [R] for the resamplings of a plan, [Q, R] for those of several
data sets. What has one number a row is a distribution over rows, and `jaxgen.stats.estimate.summary` describes it. The
areas under ROC curves are in `jaxgen.stats.metrics.roc`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jaxgen.stats.checks import as_numbers
from jaxgen.stats.metrics.predictions import (
    Positive,
    Predictions,
    refuse_rows,
    require_one,
    require_predictions,
)
from jaxgen.types.late import sklearn
from jaxgen.types.numbers import require_flag, require_number, require_one_of

Shares = Sequence[float] | Float[np.ndarray, " G"]
Values = Float[np.ndarray, "*R"] | Float[np.ndarray, "*R C"]
AVERAGES = ("binary", "macro", "weighted", "micro", "each")
"""One class; the plain mean of all classes; their mean by the number of test cases; all decisions in one table; each
class by itself.
"""


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
