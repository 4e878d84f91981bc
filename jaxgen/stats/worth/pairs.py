"""What each case is to itself and to each other one: out-of-bag values, memorisation and influence."""

import numpy as np
from jaxtyping import Float, Int

from jaxgen.stats.checks import require_finite
from jaxgen.stats.worth.findings import Influences, Worths
from jaxgen.stats.worth.subsets import Subsets, drawn_subsets, left_out, require_alike
from jaxgen.types import Losses
from jaxgen.types.memory import require_memory

PREDICTIONS = "give predictions of every row for every case"


def out_of_bag(losses: Losses) -> Worths:
    """How well a case is predicted by the rows that lack it: the out-of-bag value (Kwon & Zou 2023, "Data-OOB").

    Minus the mean loss of case i over the rows that do not train on it (with minus the loss as the score);
    a mislabelled case is predicted badly. It needs no value cases.

    Args:
      losses: of a plan whose rows each lack some cases, [R, N], of every case: `bootstrap`, `half_samples`,
        `leave_out`, `by_size`, or several divisions into folds.
    Returns:
      Worths of the T cases that some row trains on. Their standard error is all Monte Carlo: from the finite number of
      rows, for these cases.
    Raises:
      ValueError: a case that fewer than two rows lack; losses of rows only, or missing; failed rows, several data sets,
        or rows of a design other than folds.
      TypeError: no losses.
    """
    drawn = drawn_subsets(losses, repeats=True)
    own, outside = drawn.utility[:, drawn.trained], drawn.inside == 0
    _require_rows(outside.sum(0), "two rows that lack each case", drawn)
    require_finite("losses of the cases that rows lack", own[outside], PREDICTIONS)
    mean, variance = _mean_of(own, outside)
    target = "minus the expected loss of a case when it is not trained on"
    return _own(("out-of-bag values", "Kwon & Zou 2023", target), losses, drawn, mean, variance)


def memorisation(losses: Losses) -> Worths:
    """By how much training on a case itself lowers its loss (Feldman & Zhang 2020, "What neural networks memorize and
    why").

    The mean loss of case i over the rows that lack it, less that over the rows that train on it. It is large for cases
    that the others say little of: atypical or mislabelled ones.

    Args:
      losses: of a plan of random subsets, `half_samples` or `leave_out`, [R, N], of every case.
    Returns:
      Worths of the T cases that some row trains on; here a large number is no help to others. Their standard error is
      all Monte Carlo.
    Raises:
      ValueError: subsets that do not treat cases alike, or vary in size more than by chance; a case with fewer than two
        rows with and without it; losses of rows only, or missing; failed rows, or several data sets.
      TypeError: no losses.
    """
    drawn = _alike(losses)
    own = drawn.utility[:, drawn.trained]
    require_finite("losses of every row on the cases that some row trains on", own, PREDICTIONS)
    difference, variance = _itself(drawn, own)
    target = "the expected gain in the prediction of a case from training on it"
    return _own(("memorisation", "Feldman & Zhang 2020", target), losses, drawn, difference, variance)


def influence(losses: Losses) -> Influences:
    """By how much training on each case lowers the loss of each case (Feldman & Zhang 2020, "What neural networks
    memorize and why").

    Influence of case i on case j: the mean loss of j over the rows that lack i, less that over the rows that train on
    i, both of rows that do not train on j, so that it is about predicting j and not about fitting it. Where i is j it
    is `memorisation`.

    Args:
      losses: of a plan of random subsets, `half_samples` or `leave_out`, [R, N], of every case.
    Returns:
      Influences [T, N] of the T cases that some row trains on, on all cases; value cases are among them.
    Raises:
      ValueError: subsets that do not treat cases alike, or vary in size more than by chance; fewer than two rows with
        one case and without the other, or without both; losses of rows only, or missing; failed rows, or several data
        sets.
      TypeError: no losses.
      MemoryError: so many pairs would not fit into memory.
    """
    drawn = _alike(losses)
    pairs = len(drawn.trained) * drawn.plan.n
    require_memory(f"influences of {len(drawn.trained)} on {drawn.plan.n} cases", 100 * pairs, "use fewer cases")
    lacks = (drawn.plan.train == 0).astype(np.float64)
    require_finite("losses of every row on every case", drawn.utility, PREDICTIONS)
    middle = np.sum(lacks * drawn.utility, axis=0) / lacks.sum(0)
    utility = lacks * (drawn.utility - middle)
    of_inside = [drawn.inside.T @ each for each in (lacks, utility, utility**2)]
    of_outside = [each.sum(0) - part for each, part in zip((lacks, utility, utility**2), of_inside, strict=True)]
    same = np.arange(len(drawn.trained)), drawn.trained
    for counts, where in ((of_inside[0], "one case and without the other"), (of_outside[0], "neither of two cases")):
        counts[same] = 2  # replaced below
        _require_rows(counts, f"two rows with {where}", drawn)
    (mean, variance), (mean_without, variance_without) = _moments(*of_inside), _moments(*of_outside)
    estimate, variance = mean - mean_without, variance + variance_without
    estimate[same], variance[same] = _itself(drawn, drawn.utility[:, drawn.trained])
    return Influences(
        method="influence",
        source="Feldman & Zhang 2020",
        target="the expected gain in the prediction of one case from training on another",
        unit=losses.unit,
        note=left_out(losses),
        learner=losses.name,
        trained=drawn.trained,
        tested=np.arange(drawn.plan.n),
        estimate=estimate,
        standard_error=np.sqrt(variance),
        rows=losses.resamples,
    )


def _alike(losses: Losses) -> Subsets:
    """Subsets that treat all cases alike."""
    drawn = drawn_subsets(losses)
    require_alike(drawn)
    return drawn


def _itself(drawn: Subsets, own: Float[np.ndarray, "R T"]) -> tuple[Float[np.ndarray, " T"], Float[np.ndarray, " T"]]:
    """Mean utility of rows with a case less that of rows without it, on the case itself, and the variance, [T] each."""
    inside = drawn.inside > 0
    for mask, where in ((inside, "with"), (~inside, "without")):
        _require_rows(mask.sum(0), f"two rows {where} each case", drawn)
    (mean, variance), (mean_without, variance_without) = _mean_of(own, inside), _mean_of(own, ~inside)
    return mean - mean_without, variance + variance_without


def _mean_of(
    values: Float[np.ndarray, "R T"], mask: np.ndarray
) -> tuple[Float[np.ndarray, " T"], Float[np.ndarray, " T"]]:
    """The mean over the rows of a mask [R, T], and the squared standard error, [T] each."""
    count = mask.sum(0)
    mean = np.sum(np.where(mask, values, 0), axis=0) / count
    squares = np.sum(np.where(mask, values - mean, 0) ** 2, axis=0)
    return mean, squares / (count * (count - 1))


def _moments(
    count: Float[np.ndarray, "T N"], total: Float[np.ndarray, "T N"], squares: Float[np.ndarray, "T N"]
) -> tuple[Float[np.ndarray, "T N"], Float[np.ndarray, "T N"]]:
    """Mean and its squared standard error from a count, a sum and a sum of squares, of numbers centred before."""
    mean = total / count
    return mean, np.maximum(squares - count * mean**2, 0) / (count * (count - 1))


def _require_rows(counts: np.ndarray, wanted: str, drawn: Subsets) -> None:
    """ValueError unless all counts of rows are at least two."""
    if counts.min() < 2:
        raise ValueError(
            f"expected at least {wanted}, got {int(counts.min())} for {int((counts < 2).sum())} of {counts.size} "
            f"({drawn.plan.scheme}); ask for more resamples"
        )


def _own(
    describe: tuple[str, str, str],
    losses: Losses,
    drawn: Subsets,
    estimate: Float[np.ndarray, " T"],
    variance: Float[np.ndarray, " T"],
) -> Worths:
    """What was found of each case and itself."""
    method, source, target = describe
    error: Float[np.ndarray, " T"] = np.sqrt(variance)
    cases: Int[np.ndarray, " T"] = drawn.trained
    return Worths(
        method=method,
        source=source,
        target=target,
        unit=losses.unit,
        note=left_out(losses),
        learner=losses.name,
        cases=cases,
        estimate=estimate,
        standard_error=error,
        monte_carlo=error,
        of_value_cases=None,
        rows=losses.resamples,
    )
