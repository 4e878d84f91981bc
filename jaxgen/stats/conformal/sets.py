"""Prediction sets of a classification: from one split, or from folds."""

import numpy as np
from jaxtyping import Float, Int

from jaxgen.stats.checks import require_level
from jaxgen.stats.conformal.designs import (
    EXCHANGEABLE,
    about_folds,
    checked,
    each_set,
    of_folds,
    rank,
    rows_of_folds,
    the_row,
    too_few,
)
from jaxgen.stats.conformal.found import PredictionSets
from jaxgen.types import Predicted
from jaxgen.types.numbers import require, require_one_of

SCORES = ("lac", "aps")


def split_sets(
    predicted: Predicted, *, score: str = "lac", row: int | None = None, level: float = 0.95, seed: int = 0
) -> PredictionSets:
    """Split conformal prediction of classes (Vovk, Gammerman & Shafer 2005; Sadinle, Lei & Wasserman 2019, "Least
    ambiguous set-valued classifiers"; Romano, Sesia & Candes 2020, "Classification with valid and adaptive coverage").

    A class is in the set of a new case if its score is at most the ceil((1 - alpha)(n + 1))-th smallest of the scores
    that the n cases which the row holds out have with their own classes. The scores: "lac", one minus the prediction
    for the class, which makes the smallest sets; "aps", the predictions for all classes before it in their order, plus
    a random share of its own (Romano et al.), which makes sets that are larger where cases are difficult. The sets hold
    the class of a new case with a probability of at least 1 - alpha.

    Args:
      predicted: probabilities of the classes by every row, new [*Q, R, M, K]; a single column stands for two classes.
        For "lac" any scores, greater for more likely, will do.
      score: "lac" or "aps".
      row: the number of the row to use; None takes the only row of a plan.
      level: 0 < level < 1.
      seed: of the random shares of "aps".
    Returns:
      PredictionSets [*Q, M, C].
    Raises:
      TypeError: no predictions.
      ValueError: a regression, failed rows, groups or a series, test cases that the row trains on, no such row, or none
        chosen of several; predictions that are no probabilities, for "aps"; or a score, level or seed out of range.
    """
    _check_options(score, level, seed)
    each = []
    for one in each_set(checked(predicted, "classification", "split conformal prediction")):
        chosen, cases = the_row(one, row)
        each.append((one, cases, np.full(len(cases), chosen)))
    describe = (f"split conformal sets, {score}", "Sadinle et al. 2019" if score == "lac" else "Romano et al. 2020")
    return _sets(predicted, each, describe, float(level), EXCHANGEABLE, score, level, seed)


def cross_sets(predicted: Predicted, *, score: str = "lac", level: float = 0.95, seed: int = 0) -> PredictionSets:
    """Cross-conformal prediction of classes (Vovk 2015, "Cross-conformal predictors"; CV+ of Romano, Sesia & Candes
    2020).

    A class is in the set of a new case if fewer than (1 - alpha)(n + 1) of the n cases have, with their own class and
    by the row which leaves them out, a smaller score than the new case with that class by that row. The sets hold the
    class of a new case with a probability of at least that of `cv_plus`, 1 - 2 alpha and a little less, usually near
    1 - alpha.

    Args:
      predicted: as for `split_sets`, of one division into folds (`resample.k_fold`, `resample.leave_one_out`).
      score, level, seed: as for `split_sets`.
    Returns:
      PredictionSets [*Q, M, C].
    Raises:
      TypeError: no predictions.
      ValueError: a regression, failed rows, groups or a series, rows that are not one division into folds; predictions
        that are no probabilities, for "aps"; or a score, level or seed out of range.
    """
    _check_options(score, level, seed)
    what, plan = "cross-conformal prediction", checked(predicted, "classification", "cross-conformal prediction").plan
    each = [(one, np.arange(one.plan.n), rows_of_folds(one.plan, what)) for one in each_set(predicted)]
    source = "Vovk 2015" if score == "lac" else "Romano et al. 2020"
    assumed = f"{EXCHANGEABLE}{about_folds(plan)}"
    guarantee = of_folds(plan.n, plan.resamples, level)
    return _sets(predicted, each, (f"cross-conformal sets, {score}", source), guarantee, assumed, score, level, seed)


def _check_options(score: str, level: float, seed: int) -> None:
    """ValueError for options out of range."""
    require_one_of("score", score, SCORES)
    require_level(level)
    require("seed", seed, 0)


def _sets(
    predicted: Predicted,
    each: list[tuple[Predicted, Int[np.ndarray, " n"], Int[np.ndarray, " n"]]],
    describe: tuple[str, str],
    guarantee: float,
    assumptions: str,
    score: str,
    level: float,
    seed: int,
) -> PredictionSets:
    """The sets of every data set, of which `each` has the cases to calibrate on and the row for each of them."""
    random = np.random.default_rng(seed)
    found = [_smaller(*one, score, random) for one in each]
    sizes = np.array([len(cases) for _, cases, _ in each])
    smaller = np.stack(found)
    n = sizes[:, None, None]
    p_values = (n - smaller + 1) / (n + 1)
    member = smaller < np.array([rank(level, int(size)) for size in sizes])[:, None, None]
    if predicted.sets is None:
        p_values, member = p_values[0], member[0]
    notes = [
        too_few(level, int(sizes.min())),
        f"{predicted.dropped} failed rows were left out" if predicted.dropped else "",
    ]
    return PredictionSets(
        method=describe[0],
        source=describe[1],
        target="the classes of new cases",
        unit=predicted.target,
        note="; ".join(note for note in notes if note),
        learner=predicted.learner,
        classes=_names(predicted),
        p_values=p_values,
        member=member,
        level=float(level),
        guarantee=guarantee,
        assumptions=assumptions,
        calibrated=int(sizes.min()),
    )


def _smaller(
    one: Predicted,
    cases: Int[np.ndarray, " n"],
    row: Int[np.ndarray, " n"],
    score: str,
    random: np.random.Generator,
) -> Int[np.ndarray, "M C"]:
    """How many of the cases have a smaller score with their own class than each new case with each class, [M, C]."""
    truth = _two(one.y[cases]).argmax(-1)
    own = _scores(_two(one.cases[row, cases]), score, random.random(len(cases)))[np.arange(len(cases)), truth]
    share = random.random(one.m)
    counts = np.zeros((one.m, len(_names(one))), np.int64)
    for chosen in np.unique(row):
        new = _scores(_two(one.new[chosen]), score, share)
        counts += np.searchsorted(np.sort(own[row == chosen]), new, side="left")
    return counts


def _scores(
    predictions: Float[np.ndarray, "m C"], score: str, share: Float[np.ndarray, " m"]
) -> Float[np.ndarray, "m C"]:
    """How badly each class would conform, [m, C], with the random shares [m] of "aps"."""
    if not np.isfinite(predictions).all():
        raise ValueError(
            "expected finite predictions of the cases that rows leave out, got others; give predictions of these cases"
        )
    if score == "lac":
        return 1 - predictions
    wrong = (predictions < -1e-6).any() or (np.abs(predictions.sum(-1) - 1) > 1e-3).any()
    if wrong:
        raise ValueError(
            "expected probabilities that add up to 1 for the score 'aps', got predictions from "
            f"{predictions.min():.3g} to {predictions.max():.3g} with sums from {predictions.sum(-1).min():.3g} to "
            f"{predictions.sum(-1).max():.3g}; use a learner that predicts probabilities, or score='lac'"
        )
    order = np.argsort(-predictions, axis=-1, kind="stable")
    sorted_ = np.take_along_axis(predictions, order, -1)
    scores = np.empty_like(predictions)
    np.put_along_axis(scores, order, np.cumsum(sorted_, -1) - sorted_ * (1 - share[:, None]), -1)
    return scores


def _two(values: Float[np.ndarray, "m K"]) -> Float[np.ndarray, "m C"]:
    """One column per class, [m, C], in double precision, also where a single column stands for two classes."""
    values = values.astype(np.float64)
    return np.concatenate([1 - values, values], axis=-1) if values.shape[-1] == 1 else values


def _names(predicted: Predicted) -> tuple[str, ...]:
    """The names of the C classes, or their numbers."""
    outputs = predicted.new.shape[-1]
    if outputs == 1:
        return (f"not {predicted.classes[0]}", predicted.classes[0]) if predicted.classes else ("0", "1")
    return tuple(predicted.classes) or tuple(map(str, range(outputs)))
