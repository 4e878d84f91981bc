"""Datamodels: the loss of each case as a sparse linear function of which cases were trained on."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from jaxtyping import Float, Int

from jaxgen.stats.checks import require_finite
from jaxgen.stats.worth.findings import OfPairs
from jaxgen.stats.worth.lasso import sparse_fits
from jaxgen.stats.worth.subsets import drawn_subsets, left_out, require_half_samples
from jaxgen.types import Losses
from jaxgen.types.late import pandas as pd
from jaxgen.types.memory import require_memory
from jaxgen.types.numbers import require, require_number, shown

PENALTIES = (2.0, 1.0, 0.5, 0.25, 0.125)
"""Penalties that are tried, in units of sd(x) sd(y) sqrt(2 ln(T) / R), which keeps pure noise out."""
HELD_OUT = 4
"""One of so many rows is held out to choose the penalty."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Datamodels(OfPairs):
    """Linear models of the utility of M cases, minus their losses, by which of T cases were trained on.

    Attributes:
      learner: the learner, as code that recreates it.
      trained: numbers of the cases trained on, [T].
      tested: numbers of the cases predicted, [M].
      weights: sparse coefficients, [T, M], the mean over the folds; too small on average, since the penalty shrinks
        them.
      estimate: coefficients without that bias, [T, M], none of them 0; above 0 is helpful.
      standard_error: of `estimate`, from the finite number of rows, [T, M]; all of it is Monte Carlo error.
      score: linear datamodelling score of each tested case, [M]: Spearman's correlation of predicted and true losses
        over rows that were held out, the mean over the folds; 0 where a model or the losses are constant.
      score_error: its standard error, [M], from the spread over the folds, as if these were independent.
      penalty: chosen for each tested case, [M], in the unit of `datamodels`; the geometric mean over the folds.
      rows: trainings that it was found from.
    """

    weights: Float[np.ndarray, "T M"]
    score: Float[np.ndarray, "M"]
    score_error: Float[np.ndarray, "M"]
    penalty: Float[np.ndarray, "M"]

    def to_frame(self) -> "pd.DataFrame":
        """One row for each tested case."""
        numbers = {"tested": self.tested, "score": self.score, "score_error": self.score_error}
        count = np.sum(self.weights != 0, axis=0)
        return pd.DataFrame(numbers | {"coefficients": count, "penalty": self.penalty}).assign(
            unit=self.unit, method=self.method, learner=self.learner
        )

    def lines(self) -> list[str]:
        """How many models, how sparse, and how well they predict."""
        share = 100 * np.mean(self.weights != 0)
        return [
            f"{len(self.tested)} cases by {len(self.trained)}, {share:.3g} % of the sparse coefficients not 0, from "
            f"{self.rows} rows",
            f"linear datamodelling score {self.score.mean():.3f} on average, {self.score.min():.3f} to "
            f"{self.score.max():.3f}",
        ]


def datamodels(
    losses: Losses, *, tested: Collection[Any] | None = None, penalty: float | int | None = None, folds: int = 5
) -> Datamodels:
    """The utility of each case, minus its loss, as a linear function of which cases were trained on: datamodels (Ilyas
    et al. 2022) by the lasso, with their linear datamodelling score (Park et al. 2023, "TRAK").

    In each fold the lasso is fitted to the other rows and scored on these. What it leaves there is regressed once more,
    by the known law of the masks x, which are independent with variance p (1 - p): that takes away the bias of the
    penalty, b + cov(x, y - b'x) / (p (1 - p)) (Javanmard & Montanari 2014, "Confidence intervals and hypothesis
    testing", with the true covariance of the design), and gives standard errors. These are the coefficients of the best
    linear approximation; of half samples they are Banzhaf values for each tested case, without the noise of those other
    cases that the lasso has found.

    Args:
      losses: of a plan of `resample.half_samples`, [R, N], of every case.
      tested: numbers of the cases to model, M; None models all N, also those trained on, whose own coefficient is then
        `memorisation`.
      penalty: of the lasso, in units of sd(x) sd(y) sqrt(2 ln(T) / R); None chooses from 2 to 1/8 for each case by one
        fourth of the fold's rows.
      folds: 2 to 20.
    Returns:
      Datamodels [T, M].
    Raises:
      ValueError: rows that do not hold each case independently with one probability, fewer than 8 rows for each fold,
        numbers that are no cases; losses of rows only, or missing; failed rows, or several data sets.
      TypeError: no losses.
      MemoryError: so many coefficients would not fit into memory.
    """
    drawn = drawn_subsets(losses)
    share = require_half_samples(drawn, None)
    columns = _cases(tested, drawn.plan.n)
    folds = require("folds", folds, 2, 20, "more rows for each fit hardly help")
    if penalty is not None:
        require_number("penalty", penalty, least=0, advice="give 1 to keep pure noise out, or None to choose")
    if losses.resamples < 8 * folds:
        raise ValueError(
            f"expected at least {8 * folds} rows for {folds} folds, got {losses.resamples} ({drawn.plan.scheme}); ask "
            "for more resamples"
        )
    models = f"datamodels of {len(columns)} cases by {len(drawn.trained)}"
    require_memory(models, 100 * len(columns) * len(drawn.trained), "give fewer cases as tested")
    utility = drawn.utility[:, columns]
    require_finite("losses of every row on the tested cases", utility, "give predictions of every row for every case")
    fitted = _crossed(drawn.inside, utility, share, penalty, np.arange(losses.resamples) % folds)
    return Datamodels(
        method="datamodels",
        source="Ilyas et al. 2022; score of Park et al. 2023",
        target="the best linear prediction of minus the loss of a case from which cases were trained on",
        unit=losses.unit,
        note=left_out(losses),
        learner=losses.name,
        trained=drawn.trained,
        tested=columns,
        rows=losses.resamples,
        **fitted._asdict(),
    )


class _Crossed(NamedTuple):
    """What the folds give together, as in `Datamodels`."""

    weights: Float[np.ndarray, "T M"]
    estimate: Float[np.ndarray, "T M"]
    standard_error: Float[np.ndarray, "T M"]
    score: Float[np.ndarray, "M"]
    score_error: Float[np.ndarray, "M"]
    penalty: Float[np.ndarray, "M"]


def _crossed(
    x: Float[np.ndarray, "R T"],
    y: Float[np.ndarray, "R M"],
    share: float,
    penalty: float | int | None,
    fold: Int[np.ndarray, " R"],
) -> _Crossed:
    """Sparse fits to the rows outside each fold, and what the fold's own rows say of them."""
    weights, estimate, variance = (np.zeros((x.shape[1], y.shape[1])) for _ in range(3))
    spread, scores, penalties = share * (1 - share), [], []
    for number in range(int(fold.max()) + 1):
        here = fold == number
        chosen = _chosen(x[~here], y[~here]) if penalty is None else np.full(y.shape[1], float(penalty))
        (sparse,) = _Products.of(x[~here], y[~here]).fits(chosen[None])
        predicted, m = x[here] @ sparse, int(here.sum())
        scores.append(_rank_correlation(predicted, y[here]))
        penalties.append(chosen)
        residual = y[here] - predicted
        residual -= residual.mean(0)
        centred = (x[here] - share) / spread
        correction = centred.T @ residual / (m - 1)
        part = m / len(x)
        weights += part * sparse
        estimate += part * (sparse + correction)
        squares = (centred**2).T @ residual**2 * (m / (m - 1)) ** 2
        variance += part**2 * (squares / m - correction**2) / (m - 1)
    scores = np.array(scores)
    return _Crossed(
        weights,
        estimate,
        np.sqrt(np.maximum(variance, 0)),
        scores.mean(0),
        scores.std(0, ddof=1) / np.sqrt(len(scores)),
        np.exp(np.mean(np.log(np.maximum(penalties, 1e-300)), axis=0)),
    )


class _Products(NamedTuple):
    """What the lasso with an intercept needs of rows x [R, T] and y [R, M], and the unit of its penalty, [M]."""

    inputs: Float[np.ndarray, "T T"]
    moments: Float[np.ndarray, "T M"]
    unit: Float[np.ndarray, "M"]

    @classmethod
    def of(cls, x: Float[np.ndarray, "R T"], y: Float[np.ndarray, "R M"]) -> "_Products":
        x, y = x - x.mean(0), y - y.mean(0)
        unit = np.sqrt(x.var(0).mean()) * y.std(0) * np.sqrt(2 * np.log(x.shape[1]) / len(x))
        return cls(x.T @ x / len(x), x.T @ y / len(x), unit)

    def fits(self, penalties: Float[np.ndarray, "P M"]) -> Float[np.ndarray, "P T M"]:
        """The coefficients [P, T, M] for P penalties of each target, in its unit."""
        return sparse_fits(self.inputs, self.moments, penalties * self.unit)


def _chosen(x: Float[np.ndarray, "R T"], y: Float[np.ndarray, "R M"]) -> Float[np.ndarray, " M"]:
    """The penalty of each target with the least squared error on one row of four."""
    held, penalties = np.arange(len(x)) % HELD_OUT == 0, np.array(PENALTIES)
    path = _Products.of(x[~held], y[~held]).fits(np.repeat(penalties[:, None], y.shape[1], axis=1))
    errors = [(y[held] - x[held] @ sparse).var(0) for sparse in path]
    return penalties[np.argmin(errors, axis=0)]


def _rank_correlation(some: Float[np.ndarray, "m M"], others: Float[np.ndarray, "m M"]) -> Float[np.ndarray, " M"]:
    """Spearman's correlation of each column, [M]; 0 where one is constant."""
    ranks, other = (scipy.stats.rankdata(each, axis=0) for each in (some, others))
    ranks, other = ranks - ranks.mean(0), other - other.mean(0)
    lengths = np.sqrt(np.sum(ranks**2, axis=0) * np.sum(other**2, axis=0))
    return np.sum(ranks * other, axis=0) / np.where(lengths > 0, lengths, 1)


def _cases(tested: Any, n: int) -> Int[np.ndarray, " M"]:
    """Numbers of the tested cases; ValueError unless they are different cases of n."""
    if tested is None:
        return np.arange(n)
    try:
        listed = not isinstance(tested, str | dict | set) and not np.ma.is_masked(tested)
        numbers = np.asarray(tested if hasattr(tested, "shape") else list(tested)) if listed else np.asarray(None)
    except (TypeError, ValueError):
        numbers = np.asarray(None)
    if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"expected tested as whole numbers of cases, got {shown(tested)}; give for example range(10), or None for "
            "all cases"
        )
    if numbers.min() < 0 or numbers.max() >= n or len(np.unique(numbers)) < len(numbers):
        raise ValueError(
            f"expected different cases from 0 to {n - 1}, got {shown(numbers.tolist())}; give the number of each once"
        )
    return numbers.astype(np.int64)
