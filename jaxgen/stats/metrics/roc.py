"""ROC curves, their convex hull and operating point, the area under them, and DeLong's standard error and test of it.

Rows are written `*R`, as in `jaxgen.stats.metrics`: no axis for one trained model, [R] or [Q, R].
"""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Bool, Float, Int

from jaxgen.stats.checks import as_numbers, require_level
from jaxgen.stats.metrics.classification import (
    Shares,
    Values,
    averaged,
    counts,
    require_choices,
    require_undefined,
)
from jaxgen.stats.metrics.predictions import (
    Positive,
    Predictions,
    refuse_rows,
    require_one,
    require_predictions,
)
from jaxgen.stats.spread import Spread, joined
from jaxgen.types.late import pandas as pd
from jaxgen.types.numbers import require, require_number, require_one_of
from jaxgen.types.result import Finding, Result, described

SOURCE = "DeLong, DeLong & Clarke-Pearson 1988"
TARGET = "the AUC of each trained model for new cases"
MORE = "use stratified or larger test sets, or leave these rows out"


@dataclass(frozen=True, eq=False)
class Roc:
    """A ROC curve with all its thresholds, from the highest to the lowest, [T] each.

    Attributes:
      false_positive: share of the other cases that have at least that score.
      true_positive: share of the cases of the class that have at least that score.
      threshold: that score; infinite for the first point, which finds nothing.
      hull: positions of the V corners of its convex hull, from (0, 0) to (1, 1). Each is the best threshold for some
        costs and prior, and the points between two are reached by choosing at random between both (Scott & Variyam,
        "Convex Hull"; Provost & Fawcett 2001).
    """

    false_positive: Float[np.ndarray, " T"]
    true_positive: Float[np.ndarray, " T"]
    threshold: Float[np.ndarray, " T"]
    hull: Int[np.ndarray, " V"]

    @property
    def area(self) -> float:
        """The area under the curve, 0 to 1."""
        return float(np.trapezoid(self.true_positive, self.false_positive))

    @property
    def hull_area(self) -> float:
        """The area under its convex hull: that of the curve after the scores are calibrated on the same cases by
        isotonic regression.
        """
        return float(np.trapezoid(self.true_positive[self.hull], self.false_positive[self.hull]))


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """The threshold of least expected cost of each row, each [*R].

    Attributes:
      threshold: cases of at least this score are taken for the class; infinite if none is.
      false_positive, true_positive: the point of the ROC curve.
      cost: expected cost a case, prior * false_negative_cost * (1 - true_positive) + (1 - prior) * false_positive_cost
        * false_positive.
      slope: of the lines of equal cost, (1 - prior) false_positive_cost / (prior false_negative_cost); one of them
        touches the hull here.
    """

    threshold: Float[np.ndarray, "*R"]
    false_positive: Float[np.ndarray, "*R"]
    true_positive: Float[np.ndarray, "*R"]
    cost: Float[np.ndarray, "*R"]
    slope: Float[np.ndarray, "*R"]


def curve(predictions: Predictions, *, positive: Positive = None) -> Roc:
    """The ROC curve of one model, with [T] points (scikit-learn's `roc_curve`), and its hull (SciPy's `ConvexHull` of
    the counts).

    Args:
      predictions: of one model: choose a row, or pool all.
      positive: the class to find; None means the second of two.
    Raises:
      ValueError: predictions with rows, test cases that lack one of both kinds, or an unknown class.
    """
    require_one(predictions)
    [(wrong, right, threshold)] = counts(predictions, positive)
    # A corner below (1, 0) gives the hull of a straight curve an area, without which there is none.
    with_corner = np.stack([np.append(wrong, wrong[-1]), np.append(right, -1)], axis=-1)
    vertices = np.sort(scipy.spatial.ConvexHull(with_corner).vertices)
    return Roc(wrong / wrong[-1], right / right[-1], threshold, vertices[vertices < len(wrong)].astype(np.int64))


def operating_point(
    predictions: Predictions,
    *,
    false_positive_cost: float = 1.0,
    false_negative_cost: float = 1.0,
    prior: float | None = None,
    positive: Positive = None,
) -> OperatingPoint:
    """The threshold of least expected cost for given costs and prior (Provost & Fawcett 2001; Scott & Variyam, "Convex
    Hull", with slope |N| / |P| for equal costs).

    Args:
      predictions: rows *R.
      false_positive_cost, false_negative_cost: of taking another case for the class, and of missing one, above 0.
      prior: share of the class where the model will be used; None takes that of each row's test cases.
      positive: the class to find; None means the second of two.
    Returns:
      OperatingPoint, [*R]; of several with the same cost that with the fewest false positives. It is chosen on the
      test cases, so its cost is a little too low.
    Raises:
      ValueError: a cost or prior out of range, a row whose test cases lack one of both kinds, or an unknown class.
    """
    require_number("false_positive_cost", false_positive_cost, above=0)
    require_number("false_negative_cost", false_negative_cost, above=0)
    if prior is not None:
        require_number("prior", prior, above=0, below=1, advice="give a share, or None for that of the test cases")
    points = []
    for wrong, right, threshold in counts(predictions, positive):
        share = prior or right[-1] / (wrong[-1] + right[-1])
        miss, alarm = share * false_negative_cost, (1 - share) * false_positive_cost
        cost = miss * (1 - right / right[-1]) + alarm * wrong / wrong[-1]
        best = np.flatnonzero(cost <= cost.min() + 1e-12 * (miss + alarm))[0]
        points.append((threshold[best], wrong[best] / wrong[-1], right[best] / right[-1], cost[best], alarm / miss))
    return OperatingPoint(
        *(np.asarray(part) for part in np.moveaxis(np.reshape(points, (*predictions.rows, 5)), -1, 0))
    )


def true_positive_at(
    predictions: Predictions, false_positive: Shares, *, positive: Positive = None
) -> Float[np.ndarray, "*R G"]:
    """The ROC curve of each row at given false positive rates, linear in between; the highest point where it rises
    straight up (Fawcett 2006, "vertical averaging").

    Args:
      predictions: rows *R.
      false_positive: rates, [G], 0 to 1.
      positive: the class to find; None means the second of two.
    Returns:
      [*R, G].
    Raises:
      ValueError: a rate out of range, a row whose test cases lack one of both kinds, or an unknown class.
    """
    rates = as_numbers("false_positive", false_positive)
    outside = ~((rates >= 0) & (rates <= 1))
    if rates.ndim != 1 or not rates.size or outside.any():
        trouble = f"{rates[outside][0]}" if outside.any() else f"shape {list(rates.shape)}"
        raise ValueError(
            f"expected a list of false positive rates from 0 to 1, got {trouble}; give for example "
            "numpy.linspace(0, 1, 101)"
        )
    grid = rates + 1e-12  # a rate that is rounded down must not fall from the top of a step to its foot
    of_rows = [
        np.interp(grid, row.wrong / row.wrong[-1], row.right / row.right[-1]) for row in counts(predictions, positive)
    ]
    return np.reshape(of_rows, (*predictions.rows, grid.size))


def auc(
    predictions: Predictions, *, average: str = "binary", positive: Positive = None, undefined: float | None = None
) -> Values:
    """The probability that a case of the class has a greater score than another case; equal scores count one half.

    The sum on Scott & Variyam's slide "Miscellany" counts equal scores 0, and is then not the area under the curve.

    Args:
      predictions: rows *R.
      average: "binary" for one class, "macro" for the mean of all classes each against the rest, "weighted" for their
        mean by the number of test cases (Provost & Domingos 2000), "each" for each class by itself, "micro" for all
        scores of all classes ranked together.
      positive: the class to find, for "binary"; None means the second of two.
      undefined: what a class counts in a row that tests none of it, or nothing else; None refuses such rows, NaN marks
        them.
    Returns:
      [*R]; [*R, C] for "each".
    Raises:
      ValueError: an undefined row, an unknown average or class.
    """
    require_choices(predictions, average, positive, undefined)
    every = range(len(predictions.classes))
    if average == "micro":
        rows = zip(*(predictions.one_class(number) for number in every), strict=True)
        return np.reshape([_area(*map(np.concatenate, zip(*row, strict=True))) for row in rows], predictions.rows)
    values = np.full((*predictions.rows, len(every)), np.nan)
    for number in [predictions.number(positive)] if average == "binary" else every:
        values[..., number] = np.reshape([_area(*row) for row in predictions.one_class(number)], predictions.rows)
    return averaged(predictions, "AUC", values, average, positive, undefined)


def hand_till(predictions: Predictions, *, undefined: float | None = None) -> Float[np.ndarray, "*R"]:
    """The AUC of several classes, M of Hand & Till 2001: the mean over all ordered pairs of classes of the AUC of one
    by its score among both.

    Args:
      predictions: rows *R.
      undefined: what a row counts whose test cases lack a class; None refuses such rows, NaN marks them.
    Returns:
      [*R]; it does not depend on how frequent the classes are.
    Raises:
      ValueError: an undefined row.
    """
    require_predictions(predictions)
    require_undefined(undefined)
    areas = np.reshape([_hand_till(predictions, row) for row in np.ndindex(predictions.rows)], predictions.rows)
    if undefined is None:
        refuse_rows(
            np.isnan(areas),
            "test cases of all classes",
            "use stratified or larger test sets, or say with undefined= what such a row counts (numpy.nan marks it)",
        )
    return np.asarray(np.where(np.isnan(areas), np.nan if undefined is None else undefined, areas))


def _hand_till(predictions: Predictions, row: tuple[int, ...]) -> float:
    """M of one row: the mean of A(i | j), the AUC of class i by its score among the cases of i and j; NaN if a class
    is absent.
    """
    truth, scores, weight = predictions.truth[row], predictions.scores[row], predictions.weights[row].astype(np.float64)
    areas = []
    for first, second in itertools.permutations(range(len(predictions.classes)), 2):
        either = np.isin(truth, (first, second)) & (weight > 0)
        areas.append(_area(truth[either] == first, scores[either, first], weight[either]))
    return float(np.mean(areas))


def interval(
    predictions: Predictions, *, positive: Positive = None, scale: str = "logit", level: float = 0.95
) -> Result:
    """The AUC of each row with DeLong's standard error, for these trained models and new cases (DeLong, DeLong &
    Clarke-Pearson 1988).

    Args:
      predictions: rows *R.
      level: confidence level, 0 < level < 1.
      positive: the class to find; None means the second of two.
      scale: "logit" for an interval that is symmetric in log(A / (1 - A)) and stays within 0 and 1; "identity" for the
        plain one.
    Returns:
      Result, each number [*R]. Where the classes are separated, AUC 0 or 1, or all scores are equal, the standard
      error is 0 and both limits are NaN: it says nothing. A case of weight 2 counts as two independent cases.
    Raises:
      ValueError: a row with fewer than 2 test cases of either kind, an unknown class or scale, or a level out of
        range.
    """
    require_predictions(predictions)
    require_one_of("scale", scale, ("logit", "identity"))
    require_level(level)
    areas, covariance = _delong((predictions,), positive)
    estimate, error = areas[..., 0], np.asarray(np.sqrt(covariance[..., 0, 0]))
    apart = (estimate == 0) | (estimate == 1)
    flat = (error == 0) & ~apart
    inner = np.where(apart, 0.5, estimate)
    if scale == "logit":
        limits = Spread(scipy.special.logit(inner), error / (inner * (1 - inner)), np.inf).limits(level)
        lower, upper = (scipy.special.expit(limit) for limit in limits)
    else:
        lower, upper = Spread(estimate, error, np.inf).limits(level)
    note = joined(
        "the classes are separated (AUC 0 or 1), where this standard error is 0 and says nothing" * bool(apart.any()),
        "all scores are equal, so they tell no two cases apart and there is no standard error" * bool(flat.any()),
    )
    lower, upper = (np.asarray(np.where(apart | flat, np.nan, limit)) for limit in (lower, upper))
    name = predictions.classes[predictions.number(positive)]
    method = f"DeLong's interval{' on the logit scale' if scale == 'logit' else ''}"
    return described(
        method,
        SOURCE,
        TARGET,
        f"AUC of class {name}",
        predictions.learner,
        estimate,
        error,
        np.inf,
        lower,
        upper,
        level=level,
        note=note,
    )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class DeLong(Finding):
    """Test that M classifiers have one AUC, on the same test cases.

    Attributes:
      learners: the M classifiers.
      auc: [*R, M].
      covariance: of the AUCs, [*R, M, M].
      statistic: of the differences from the first, a chi-squared value, [*R]; of two classifiers it is z². 0 where all
        classifiers rank alike, infinite where a difference has no variance.
      df: its degrees of freedom, the rank of the covariance of the differences, [*R]; M - 1 unless classifiers rank
        alike.
      p_value: [*R]; 1 where all classifiers rank alike.
    """

    learners: tuple[str, ...]
    auc: Float[np.ndarray, "*R M"]
    covariance: Float[np.ndarray, "*R M M"]
    statistic: Float[np.ndarray, "*R"]
    df: Int[np.ndarray, "*R"]
    p_value: Float[np.ndarray, "*R"]

    def difference(
        self, first: int = 0, second: int = 1, *, level: float = 0.95, alternative: str = "two-sided"
    ) -> Result:
        """AUC of the second classifier minus that of the first, [*R], with parts "z" and "p_value".

        Args:
          first, second: numbers of the classifiers.
          level: confidence level, 0 < level < 1.
          alternative: "two-sided", "greater" (the second has the greater AUC) or "less".
        Raises:
          ValueError: no such classifier, a level out of range, or an unknown alternative.
        """
        require("first", first, 0, len(self.learners) - 1, "the classifiers")
        require("second", second, 0, len(self.learners) - 1, "the classifiers")
        pair = self.covariance[..., [first, second], :][..., [first, second]]
        total = np.trace(pair, axis1=-2, axis2=-1)
        variance = total - 2 * pair[..., 0, 1]
        spread = Spread(
            np.asarray(self.auc[..., second] - self.auc[..., first]),
            np.asarray(np.sqrt(np.where(variance > 1e-12 * total, variance, 0))),
            np.inf,
        )
        (z, p), (lower, upper) = spread.test(alternative), spread.limits(level, alternative)
        parts = {"z": z, "p_value": p}
        unit = f"AUC of {self.learners[second]} minus AUC of {self.learners[first]}"
        target = "the difference in AUC of these trained models for new cases"
        return described(
            "DeLong's test",
            SOURCE,
            target,
            unit,
            "",
            *spread,
            lower,
            upper,
            level=level,
            alternative=alternative,
            parts=parts,
        )

    def to_frame(self) -> "pd.DataFrame":
        """One line per row and classifier: its AUC and standard error, with the test of all."""
        rows = [
            np.ravel(np.broadcast_to(value[..., None], self.auc.shape))
            for value in (self.statistic, self.df, self.p_value)
        ]
        error = np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))
        names = np.broadcast_to(np.array(self.learners), self.auc.shape)
        return pd.DataFrame(
            dict(
                zip(
                    ("learner", "auc", "standard_error", "statistic", "df", "p_value"),
                    (names.ravel(), self.auc.ravel(), error.ravel(), *rows),
                    strict=True,
                )
            )
        )

    def lines(self) -> list[str]:
        """The areas and the test; of several rows the median p-value."""
        if self.statistic.ndim:
            return [
                f"{self.statistic.size} rows of {', '.join(self.learners)}, median p = {np.median(self.p_value):.3g}"
            ]
        areas = (f"{name} {area:.4f}" for name, area in zip(self.learners, self.auc, strict=True))
        test = f"chi-squared {self.statistic:.4g} with {int(self.df)} degrees of freedom, p = {self.p_value:.3g}"
        return [", ".join(areas), test]


def delong(*predictions: Predictions, positive: Positive = None) -> DeLong:
    """DeLong's test that two or more classifiers have one AUC (DeLong, DeLong & Clarke-Pearson 1988), in O(N log N).

    Placements are found by sorting, as in Sun & Xu 2014, so that a case may count several times. The test is about
    these trained models; over the rows of a plan its p-values are not independent.

    Args:
      predictions: of each classifier, rows *R, for the same cases and test weights.
      positive: the class to find; None means the second of two.
    Returns:
      DeLong, each number [*R].
    Raises:
      ValueError: fewer than 2 classifiers, other cases or weights, a row with fewer than 2 test cases of either kind,
        or an unknown class.
    """
    require_predictions(*predictions)
    if len(predictions) < 2:
        raise ValueError(f"expected two or more classifiers to compare, got {len(predictions)}; see interval for one")
    first = predictions[0]
    if any(
        other.classes != first.classes
        or not np.array_equal(other.truth, first.truth)
        or not np.array_equal(other.weights, first.weights)
        for other in predictions[1:]
    ):
        raise ValueError(
            "expected all classifiers on the same cases, classes and test weights, got others; "
            "predict the test cases of one plan with each"
        )
    areas, covariance = _delong(predictions, positive)
    statistic, df = np.empty(first.rows), np.empty(first.rows, np.int64)
    for row in np.ndindex(first.rows):
        statistic[row], df[row] = _chi_squared(areas[row], covariance[row])
    p = np.where(df > 0, scipy.stats.chi2.sf(statistic, np.maximum(df, 1)), 1.0)
    return DeLong(
        method="DeLong's test",
        source=SOURCE,
        target=TARGET,
        unit=f"AUC of class {first.classes[first.number(positive)]}",
        learners=tuple(each.learner for each in predictions),
        auc=areas,
        covariance=covariance,
        statistic=statistic,
        df=df,
        p_value=np.asarray(p),
    )


def _chi_squared(areas: Float[np.ndarray, " M"], covariance: Float[np.ndarray, "M M"]) -> tuple[float, int]:
    """Quadratic form of the differences from the first, and its rank; infinite if they leave the space in which they
    vary.
    """
    contrast = np.eye(len(areas))[1:] - np.eye(len(areas))[0]
    differences, spread = contrast @ areas, contrast @ covariance @ contrast.T
    values, vectors = np.linalg.eigh(spread)
    varies = values > 1e-12 * max(np.trace(covariance), np.finfo(np.float64).tiny)
    along = vectors.T @ differences
    if np.any(np.abs(along[~varies]) > 1e-9):
        return np.inf, len(differences)
    return float(np.sum(along[varies] ** 2 / values[varies])), int(varies.sum())


def _delong(
    predictions: tuple[Predictions, ...], positive: Positive
) -> tuple[Float[np.ndarray, "*R M"], Float[np.ndarray, "*R M M"]]:
    """AUCs [*R, M] and their covariance [*R, M, M]: S10 / n1 + S01 / n0 of the placements."""
    first = predictions[0]
    positives = first.support[..., first.number(positive)]
    refuse_rows(
        (positives < 2) | (first.support.sum(-1) - positives < 2),
        "at least 2 test cases of the positive class and 2 of others",
        MORE,
    )
    areas, covariances = [], []
    for of_classifiers in zip(*(each.one_class(positive) for each in predictions), strict=True):
        truth, _, weight = of_classifiers[0]
        placements = [_placements(*scored) for scored in of_classifiers]
        # V10 [M, n1] and V01 [M, n0] in the paper's symbols, S10 and S01 their covariances over the cases.
        v10, v01 = np.stack([placed.v10 for placed in placements]), np.stack([placed.v01 for placed in placements])
        areas.append(v10 @ weight[truth] / weight[truth].sum())
        covariances.append(_over_cases(v10, weight[truth]) + _over_cases(v01, weight[~truth]))
    m = len(predictions)
    return np.reshape(areas, (*first.rows, m)), np.reshape(covariances, (*first.rows, m, m))


def _over_cases(values: Float[np.ndarray, "M n"], weight: Float[np.ndarray, " n"]) -> Float[np.ndarray, "M M"]:
    """Covariance of the means of values over cases that count as often as their weights."""
    return np.atleast_2d(np.cov(values, fweights=weight.astype(np.int64))) / weight.sum()


class _Placements(NamedTuple):
    """V10 [n1], the share of the others that each case of the class is above, and V01 [n0], the share of the class that
    each other case is below; ties count one half.
    """

    v10: Float[np.ndarray, " n1"]
    v01: Float[np.ndarray, " n0"]


def _placements(
    truth: Bool[np.ndarray, " n"], score: Float[np.ndarray, " n"], weight: Float[np.ndarray, " n"]
) -> _Placements:
    of_class, of_others = (score[truth], weight[truth]), (score[~truth], weight[~truth])
    return _Placements(_share_below(of_class[0], *of_others), 1 - _share_below(of_others[0], *of_class))


def _share_below(
    at: Float[np.ndarray, " a"], score: Float[np.ndarray, " b"], weight: Float[np.ndarray, " b"]
) -> Float[np.ndarray, " a"]:
    order = np.argsort(score)
    total = np.append(0.0, np.cumsum(weight[order]))
    below, upto = (total[np.searchsorted(score[order], at, side)] for side in ("left", "right"))
    return (below + upto) / (2 * total[-1])


def _area(truth: Bool[np.ndarray, " n"], score: Float[np.ndarray, " n"], weight: Float[np.ndarray, " n"]) -> float:
    """The area under the ROC curve; NaN if one of both kinds is absent."""
    if truth.all() or not truth.any():
        return float("nan")
    return float(np.average(_share_below(score[truth], score[~truth], weight[~truth]), weights=weight[truth]))
