"""Error rates from bootstrap samples: out-of-bag, .632 and .632+, with the standard error of Efron & Tibshirani and
its correction.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from jaxgen import loss as losses_of_cases
from jaxgen.stats.checks import as_numbers, require_losses
from jaxgen.stats.rows import every_case
from jaxgen.stats.spread import Spread, as_result, joined
from jaxgen.types import Loss, Losses
from jaxgen.types.numbers import first_line, require_one_of, shown
from jaxgen.types.result import Result

MOST = 0.5
"""Share of an error beyond which the row that it comes from is named."""
PAIRS = 2**20
"""Numbers held at once where a loss is averaged over all pairs."""


def out_of_bag(
    losses: Losses,
    *,
    pooling: str = "cases",
    standard_error: str = "corrected",
    level: float = 0.95,
    alternative: str = "two-sided",
) -> Result:
    """The error on the cases that a bootstrap sample lacks, Err(1) of Efron & Tibshirani 1997 ("Improvements on
    cross-validation", the leave-one-out bootstrap).

    The standard error is their infinitesimal jackknife (eqs. 35 to 40, derived again from multinomial weights), an
    estimate over cases *and* over what the samples trained on: D_i = (2 + 1/(N-1)) (E_i - Err(1)) / N + sum_b (N_bi -
    mean N_i) q_b / sum_b I_bi, with I_bi = 1 where sample b lacks case i, E_i the mean loss of case i over these, q_b
    = sum_i I_bi L_bi / N; SE = sqrt(sum_i D_i^2). With few samples it is too large, since noise of the N covariances
    is squared and summed. "corrected" subtracts the expectation of that noise, sum_ib (N_bi - mean N_i)^2 (q_b - mean
    q)^2 / (sum_b I_bi)^2 (as Wager, Hastie & Efron 2014 do for forests), and takes q_b of L_bi - Err(1), which has the
    same expectation and less noise, and does not change when a constant is added to the losses. "raw" is the published
    one.

    Args:
      losses: of a plan of `resample.bootstrap`, [*Q, R], with the losses of all cases.
      pooling: "cases", the mean over cases of E_i (Efron), or "rows", all out-of-bag losses in one mean (Varfis &
        Corleto 1994, step 3). They differ by O(1/R) and have the same standard error.
      level: confidence level of the interval, by the normal law.
      standard_error: "corrected" or "raw".
      alternative: "two-sided", "greater" for a lower limit only, or "less" for an upper limit only.
    Returns:
      Result, each number [*Q]; the part "monte_carlo_share" is the share of noise in the squared standard error before
      it is corrected. NaN with a note where nothing is left after the correction; 0 where all out-of-bag losses are
      equal.
    Raises:
      ValueError: no bootstrap, losses of rows only, failed rows, fewer than 2 rows, a case that is in every sample, or
        an unknown word.
      TypeError: no losses.
    """
    outside = _out_of_bag(losses, pooling, standard_error)
    target = "ER of training sets like bootstrap samples, which are worth about N/2 cases each"
    return _result(
        ("out-of-bag error", "Efron & Tibshirani 1997", target), losses, outside, outside.error, {}, level, alternative
    )


def error_632(
    losses: Losses,
    full: Losses,
    *,
    pooling: str = "cases",
    standard_error: str = "corrected",
    level: float = 0.95,
    alternative: str = "two-sided",
) -> Result:
    """The .632 estimator: 0.368 times the apparent error plus 0.632 times the out-of-bag error (Efron 1983; Varfis &
    Corleto 1994, eq. 5).

    The standard error is that of the out-of-bag error times the ratio of the two estimates, as Efron & Tibshirani 1997
    have it for .632+. It is far too optimistic for learners whose apparent error is near 0: see `error_632_plus`.

    Args:
      losses: of a plan of `resample.bootstrap`, [*Q, R], with the losses of all cases.
      full: of the same learner on `resample.full(N)`, [*Q, 1].
      pooling, level, standard_error, alternative: as for `out_of_bag`.
    Returns:
      Result, each number [*Q]; parts "apparent", "out_of_bag" and "monte_carlo_share".
    Raises:
      ValueError: as `out_of_bag`, or `full` does not belong to the losses.
      TypeError: no losses.
    """
    outside, apparent = _out_of_bag(losses, pooling, standard_error), apparent_error(losses, full)
    estimate = np.asarray(0.368 * apparent + 0.632 * outside.error)
    parts = {"apparent": apparent, "out_of_bag": outside.error}
    return _result((".632 estimate", "Efron 1983", "ER"), losses, outside, estimate, parts, level, alternative)


def error_632_plus(
    losses: Losses,
    full: Losses,
    no_information: Float[np.ndarray, "*Q"] | float,
    *,
    pooling: str = "cases",
    standard_error: str = "corrected",
    level: float = 0.95,
    alternative: str = "two-sided",
) -> Result:
    """The .632+ estimator, whose weight grows from 0.632 to 1 with overfitting (Efron & Tibshirani 1997).

    With the no-information rate gamma, Err' = min(Err(1), gamma) and the relative overfitting rate r = (Err' -
    apparent) / (gamma - apparent), 0 unless both are above the apparent error, the estimate is .632 + (Err' -
    apparent) 0.368 0.632 r / (1 - 0.368 r), eqs. 28, 31 and 32 of the paper as R's ipred and others have them. That is
    (1 - w) apparent + w Err(1) with the weight w = 0.632 / (1 - 0.368 r), unless Err(1) exceeds gamma: the part .632
    keeps Err(1) then, so that the estimate exceeds gamma. The part "limited" has Err' there too, (1 - w) apparent +
    w Err', which is at most gamma where there is overfitting. The standard error is that of the out-of-bag error times
    the ratio of the two estimates, a rule of thumb of the authors.

    Args:
      losses: of a plan of `resample.bootstrap`, [*Q, R], with the losses of all cases.
      full: of the same learner on `resample.full(N)`, [*Q, 1].
      no_information: gamma, [*Q] or a number, of `no_information_rate` for the full fit; 0.5 if the loss is 1 - AUC.
      pooling, level, standard_error, alternative: as for `out_of_bag`.
    Returns:
      Result, each number [*Q]; parts "apparent", "out_of_bag", "no_information", "overfitting" (r), "weight" (w),
      "limited" and "monte_carlo_share". A note says where Err(1) exceeds gamma.
    Raises:
      ValueError: as `out_of_bag`; `full` does not belong to the losses; or a no-information rate that is not finite or
        not one number per data set.
      TypeError: no losses.
    """
    outside, apparent = _out_of_bag(losses, pooling, standard_error), apparent_error(losses, full)
    gamma = as_numbers("no_information", no_information)
    if gamma.shape not in ((), apparent.shape) or not np.isfinite(gamma).all():
        raise ValueError(
            f"expected a finite no-information rate, one for each data set {list(apparent.shape)}, got "
            f"shape {list(gamma.shape)}, {np.ravel(gamma)[:3]}; use no_information_rate"
        )
    gamma = np.broadcast_to(gamma, apparent.shape).copy()
    bounded = np.minimum(outside.error, gamma)
    overfits = (bounded > apparent) & (gamma > apparent)
    overfitting = np.asarray(np.where(overfits, (bounded - apparent) / np.where(overfits, gamma - apparent, 1), 0.0))
    weight = np.asarray(0.632 / (1 - 0.368 * overfitting))
    limited = np.asarray((1 - weight) * apparent + weight * bounded)
    estimate = np.asarray(limited + 0.632 * (outside.error - bounded))
    beyond = int((outside.error > gamma).sum())
    parts = {
        "apparent": apparent,
        "out_of_bag": outside.error,
        "no_information": gamma,
        "overfitting": overfitting,
        "weight": weight,
        "limited": limited,
    }
    where = f" in {beyond} of {gamma.size} data sets" * gamma.ndim
    note = f"the out-of-bag error exceeds the no-information rate{where}, so the learner does worse than chance there"
    describe = (".632+ estimate", "Efron & Tibshirani 1997", "ER")
    return _result(describe, losses, outside, estimate, parts, level, alternative, note if beyond else "")


def no_information_rate(
    y: Float[np.ndarray, "*Q N K"], predictions: Float[np.ndarray, "*Q N K"], loss: Loss | str
) -> Float[np.ndarray, "*Q"]:
    """The error if inputs told nothing of targets: the mean loss of every target with every prediction (Efron &
    Tibshirani 1997).

    Exact for every loss: closed forms for `loss.squared`, var y + var f + (mean y - mean f)^2, and `loss.zero_one`,
    sum_k p_k (1 - q_k); all N x N pairs for others.

    Args:
      y: targets, [*Q, N, K].
      predictions: of the fit to all cases, [*Q, N, K].
      loss: of `jaxgen.loss`, or its name, or a function of (y, predictions) for arrays of NumPy.
    Returns:
      Rate, [*Q], in the unit of the loss.
    Raises:
      ValueError: shapes that differ, a number that is not finite, or a loss that fails for arrays of NumPy or does not
        give one number per case.
      TypeError: no numbers, or no function.
    """
    counted = losses_of_cases.by_name(loss)
    y, predictions = as_numbers("y", y), as_numbers("predictions", predictions)
    if not callable(counted):
        raise TypeError(
            f"expected a loss, a function of targets and predictions, got {shown(loss)}; give one of jaxgen.loss"
        )
    if y.shape != predictions.shape or y.ndim < 2 or 0 in y.shape:
        raise ValueError(
            f"expected y and predictions of one shape [*Q, N, K], got {list(y.shape)} and "
            f"{list(predictions.shape)}; give the prediction of the full fit for every case"
        )
    bad = int((~np.isfinite(y)).sum() + (~np.isfinite(predictions)).sum())
    if bad:
        raise ValueError(
            f"expected finite targets and predictions, got {bad} that are not; "
            "leave out the data sets whose full fit failed"
        )
    if counted is losses_of_cases.squared:
        rate = np.sum(y.var(-2) + predictions.var(-2) + (y.mean(-2) - predictions.mean(-2)) ** 2, axis=-1)
    elif counted is losses_of_cases.zero_one:
        p, q = (_class_shares(scores) for scores in (y, predictions))
        rate = np.sum(p * (1 - q), axis=-1)
    else:
        targets, fitted = (a.reshape(-1, *y.shape[-2:]) for a in (y, predictions))
        rate = np.reshape(
            [_all_pairs(of_set, fit, counted) for of_set, fit in zip(targets, fitted, strict=True)], y.shape[:-2]
        )
    return np.asarray(rate, np.float64)


def apparent_error(losses: Losses, full: Losses) -> Float[np.ndarray, "*Q"]:
    """The mean loss, [*Q], of the fit to all cases on these cases.

    Args:
      losses: of any plan, [*Q, R], which `full` must belong to.
      full: of the same learner on `resample.full(N)`, [*Q, 1].
    Raises:
      ValueError: failed rows, or another plan, learner, loss or number of data sets.
      TypeError: no losses.
    """
    require_losses(losses, full)
    if not (full.train == 1).all() or not (full.test == 1).all() or full.resamples != 1 or full.plan.n != losses.plan.n:
        raise ValueError(
            f"expected the losses of one fit to all {losses.plan.n} cases, got those of "
            f"{full.plan.scheme}; assess the learner on resample.full({losses.plan.n})"
        )
    if (full.loss, full.learner, full.sets) != (losses.loss, losses.learner, losses.sets):
        raise ValueError(
            "expected one learner, loss and number of data sets for resamples and full fit, got "
            f"{losses!r} and {full!r}; assess both alike"
        )
    return np.asarray(full.apparent[..., 0], np.float64)


class _OutOfBag(NamedTuple):
    """Out-of-bag error, its squared standard error (not above 0 where noise exceeds it), the share of noise in it, and
    the row that contributes most to the error with its share of it, each [*Q].
    """

    error: Float[np.ndarray, "*Q"]
    variance: Float[np.ndarray, "*Q"]
    noise_share: Float[np.ndarray, "*Q"]
    heaviest: Int[np.ndarray, "*Q"]
    weight_of_it: Float[np.ndarray, "*Q"]


def _out_of_bag(losses: Losses, pooling: str, standard_error: str) -> _OutOfBag:
    require_losses(losses)
    require_one_of("pooling", pooling, ("cases", "rows"))
    require_one_of("standard_error", standard_error, ("corrected", "raw"))
    values = _require_bootstrap(losses)
    shape = values.shape[-2:]
    counts, of_sets = losses.train.reshape(-1, *shape), values.reshape(-1, *shape)
    each = [
        _of_one_set(
            counts[q % len(counts)].astype(np.float64), of_set, pooling, standard_error
        )  # one plan may serve all
        for q, of_set in enumerate(of_sets)
    ]
    return _OutOfBag(*(np.reshape(numbers, values.shape[:-2]) for numbers in zip(*each, strict=True)))


def _of_one_set(
    counts: Float[np.ndarray, "R N"], values: Float[np.ndarray, "R N"], pooling: str, standard_error: str
) -> tuple[float, float, float, int, float]:
    """Error, squared standard error, share of noise, the row that contributes most and its share, for one data set.

    In the symbols of Efron & Tibshirani 1997: N_bi are the counts, I_bi is `out`, E_i is `cases`, Err(1) is `error`,
    q_b is the mean over i of I_bi L_bi, and D_i is the derivative of Err(1) by the weight of case i.
    """
    n = counts.shape[1]
    out_of_bag = counts == 0
    times = out_of_bag.sum(0)
    tested = np.where(out_of_bag, values, 0.0)
    cases = tested.sum(0) / times
    error = cases.mean()
    deviation = counts - counts.mean(0)

    def sum_of_squares(q: Float[np.ndarray, " R"]) -> float:
        derivatives = (2 + 1 / (n - 1)) * (cases - error) / n + q @ deviation / times
        return float(np.sum(derivatives**2))

    centred = np.where(out_of_bag, values - error, 0.0).mean(1)
    together = sum_of_squares(centred)
    noise = float(np.sum((centred - centred.mean()) ** 2 @ deviation**2 / times**2))
    if np.ptp(values[out_of_bag]) == 0:  # rounding would leave a little
        together = noise = 0.0
    by_row = np.abs((tested / times).sum(1))
    heaviest = int(by_row.argmax())
    variance = sum_of_squares(tested.mean(1)) if standard_error == "raw" else together - noise
    return (
        float(error if pooling == "cases" else tested.sum() / times.sum()),
        variance,
        noise / together if together else 0.0,
        heaviest,
        float(by_row[heaviest] / by_row.sum()) if by_row.any() else 0.0,
    )


def _result(
    describe: tuple[str, str, str],
    losses: Losses,
    outside: _OutOfBag,
    estimate: Float[np.ndarray, "*Q"],
    parts: dict,
    level: float,
    alternative: str,
    note: str = "",
) -> Result:
    """The estimate with the standard error of the out-of-bag error, scaled by the ratio of the two."""
    hidden = (outside.variance <= 0) & (outside.noise_share > 0)
    ratio = np.where(outside.error == 0, 0.0, estimate / np.where(outside.error == 0, 1.0, outside.error))
    error = np.asarray(np.where(hidden, np.nan, np.abs(ratio) * np.sqrt(np.maximum(outside.variance, 0))))
    where = f" in {int(hidden.sum())} of {hidden.size} data sets" if hidden.ndim else ""
    noisy = f"the Monte Carlo error of {losses.resamples} resamples hides the standard error{where}"
    note = joined(note, _one_row(outside), f"{noisy}; ask for more resamples" if hidden.any() else "")
    spread = Spread(estimate, error, np.inf)
    parts = parts | {"monte_carlo_share": outside.noise_share}
    result = as_result(spread, describe, losses, level, alternative, note, parts)
    return replace(result, lower=np.where(hidden, np.nan, result.lower), upper=np.where(hidden, np.nan, result.upper))


def _one_row(outside: _OutOfBag) -> str:
    """What to say where one row makes up most of the error; empty if none does."""
    share = np.ravel(outside.weight_of_it)
    if share.max() <= MOST:
        return ""
    worst = int(share.argmax())
    where = f" of data set {worst}" * np.ndim(outside.error)
    row = int(np.ravel(outside.heaviest)[worst])
    return (
        f"row {row}{where} alone makes up {share[worst]:.2%} of the out-of-bag error: its training went wrong, or a "
        "case is far from all others; look at losses.g"
    )


def _require_bootstrap(losses: Losses) -> Float[np.ndarray, "*Q R N"]:
    """The losses of all cases [*Q, R, N], if they are of bootstrap samples."""
    plan, values = losses.plan, every_case(losses)
    if losses.resamples < 2:
        raise ValueError(f"expected at least 2 bootstrap samples, got {losses.resamples}; ask for more resamples")
    if not np.array_equal(plan.test, plan.train == 0) or not np.all(plan.train_sizes == plan.n):
        raise ValueError(
            "expected bootstrap samples, as many draws as cases, tested on the cases that they lack, got "
            f"{plan.scheme}; use resample.bootstrap"
        )
    never = int((~plan.test.any(axis=-2)).sum())
    if never:
        raise ValueError(
            f"expected every case to be out of some bootstrap sample, got {never} that are in all "
            f"{losses.resamples} of {plan.scheme}; ask for more resamples"
        )
    return values


def _class_shares(scores: Float[np.ndarray, "*Q N K"]) -> Float[np.ndarray, "*Q C"]:
    """Share of cases in each class, [*Q, K], or [*Q, 2] for a single column; classes as `loss.zero_one` reads them."""
    k = scores.shape[-1]
    classes: Int[np.ndarray, "*Q N"] = (scores[..., 0] > 0.5).astype(np.int64) if k == 1 else scores.argmax(-1)
    return np.mean(classes[..., None] == np.arange(max(k, 2)), axis=-2)


def _all_pairs(y: Float[np.ndarray, "N K"], predictions: Float[np.ndarray, "N K"], loss: Callable[..., Any]) -> float:
    """Mean loss of every target with every prediction, some predictions at a time."""
    rows = max(1, PAIRS // y.size)
    total = 0.0
    for start in range(0, len(y), rows):
        some = predictions[start : start + rows, None]
        shape = (len(some), *y.shape)
        total += float(np.sum(_losses_of(loss, np.broadcast_to(y, shape), np.broadcast_to(some, shape))))
    return total / len(y) ** 2


def _losses_of(
    loss: Callable[..., Any], y: Float[np.ndarray, "M N K"], predictions: Float[np.ndarray, "M N K"]
) -> Float[np.ndarray, "M N"]:
    """What a loss that may be the user's gives, if it is one number per case."""
    name = getattr(loss, "__name__", repr(loss))
    try:
        values = np.asarray(loss(y, predictions), np.float64)
    except Exception as error:
        raise ValueError(
            f"expected a loss that takes targets and predictions {list(y.shape)}, got {name}, which stops with "
            f"{first_line(error)}; correct it"
        ) from error
    if values.shape != y.shape[:-1]:
        raise ValueError(
            f"expected a loss that turns targets and predictions {list(y.shape)} into one number per case "
            f"{list(y.shape[:-1])}, got {list(values.shape)} from {name}; leave out the sum or mean over cases"
        )
    return values
