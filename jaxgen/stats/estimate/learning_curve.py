"""From errors of models trained on fewer cases to that of all: Varfis & Corleto's estimators and learning curves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from jaxgen.stats.checks import as_learners, require_level, require_losses
from jaxgen.stats.estimate.bootstrap_error import apparent_error
from jaxgen.stats.rows import every_case, tested
from jaxgen.stats.spread import Spread, dropped, joined
from jaxgen.types import Losses, Plan
from jaxgen.types.late import pandas as pd
from jaxgen.types.numbers import require_number, require_one_of
from jaxgen.types.result import Finding, Result, described

LEAST, MOST = 0.05, 5.0
"""Limits of the exponent of a power law."""
HIDDEN = (
    "the Monte Carlo error of the resamples hides the standard error; "
    'ask for more resamples, or for standard_error="cases"'
)


def l_alpha(losses: Losses, full: Losses, *, standard_error: str = "jackknife", level: float = 0.95) -> Result:
    """L_alpha = L_kN + A_kN - A: the limit of the learning curve from subsets of kN cases, the rest from the apparent
    error A (Varfis & Corleto 1994, eq. 10).

    It follows from their laws L_n = a + b/n and A_n = a - b/n, with 2a = L_kN + A_kN.

    Args:
      losses: of random or balanced splits that train on kN cases, 0 < k < 1, [*Q, R], with the losses of all cases.
        L_kN and A_kN are the means of the test and the training errors of the rows.
      full: of the same learner on `resample.full(N)`, [*Q, 1], with the losses of all cases.
      level: confidence level of the interval, by the normal law.
      standard_error: "jackknife", over cases and training sets, for random splits; or "cases", that of means over
        cases as if fits were given, which is too small where the learner varies much with its training set, for any
        splits. See `l_alpha_beta`.
    Returns:
      Result, each number [*Q]; parts "L" (L_kN), "A" (A_kN), "apparent" (A) and "k".
    Raises:
      ValueError: losses that do not fit each other or the estimator, failed rows, predictions of test cases only, or
        splits that the standard error is not made for.
      TypeError: no losses.
    """
    require_losses(full)
    return _varfis_corleto("L_alpha", "eq. 10", losses, full, lambda k: (1.0, 1.0, -1.0), level, standard_error)


def l_beta(losses: Losses, full: Losses, *, standard_error: str = "jackknife", level: float = 0.95) -> Result:
    """L_beta = A + k (L_kN - A_kN): the apparent error and the slope of the learning curve from subsets of kN cases
    (Varfis & Corleto 1994, eq. 11).

    Args:
      losses, full, level, standard_error: as for `l_alpha`.
    Returns:
      Result, each number [*Q]; parts "L" (L_kN), "A" (A_kN), "apparent" (A) and "k".
    Raises:
      ValueError: as `l_alpha`.
      TypeError: no losses.
    """
    require_losses(full)
    return _varfis_corleto("L_beta", "eq. 11", losses, full, lambda k: (k, -k, 1.0), level, standard_error)


def l_alpha_beta(losses: Losses, *, standard_error: str = "jackknife", level: float = 0.95) -> Result:
    """L_alpha_beta = ((1 - k) A_kN + (1 + k) L_kN) / 2: the learning curve from subsets of kN cases alone (Varfis &
    Corleto 1994, eq. 12).

    It is the mean of L_alpha and L_beta, in which the apparent error of the full fit cancels.

    The paper has no standard error. "jackknife" leaves each case out: a mean over splits into m trained and the other
    cases is a U-statistic, of order m for A_kN and m + 1 for L_kN, so that its value without case i follows from the
    rows in which i is trained on and in which it is tested. From the squares the expected Monte Carlo noise of the R
    rows is subtracted; NaN with a note where nothing is left. The apparent error of the full fit, in L_alpha and
    L_beta, is taken without case i to first order, which needs a learner that minimises this loss. "jackknife" errs to
    the safe side, the more the smaller the fraction left out; "cases" errs to the other (ordinary least squares, N =
    100, 10 inputs, k = 1/2, 500 rows: on average 0.18 and 0.14, where the true standard deviation is 0.155).

    Args:
      losses, level, standard_error: as for `l_alpha`.
    Returns:
      Result, each number [*Q]; parts "L" (L_kN), "A" (A_kN) and "k".
    Raises:
      ValueError: as `l_alpha`.
      TypeError: no losses.
    """
    return _varfis_corleto(
        "L_alpha_beta", "eq. 12", losses, None, lambda k: ((1 + k) / 2, (1 - k) / 2, 0.0), level, standard_error
    )


def _varfis_corleto(
    name: str, equation: str, losses: Losses, full: Losses | None, weights: Callable, level: float, standard_error: str
) -> Result:
    """The sum of L_kN, A_kN and A with the weights that belong to k."""
    require_losses(losses)
    _require_splits(losses, standard_error)
    k = float(losses.plan.train_sizes.mean() / losses.plan.n)
    of_test, of_training, of_all = weights(k)
    test, training = losses.g.mean(-1), losses.apparent.mean(-1)
    estimate = of_test * test + of_training * training
    parts = {"L": test, "A": training, "k": np.full(estimate.shape, k)}
    influence = _influence(losses, of_test, of_training, standard_error)
    if full is not None:
        parts["apparent"] = apparent_error(losses, full)
        estimate = estimate + of_all * parts["apparent"]
        influence = influence._replace(cases=influence.cases + of_all * _influence_on_apparent(full, standard_error))
    variance = np.sum(influence.cases**2, axis=-1) - influence.noise
    return _interval(
        (name, f"Varfis & Corleto 1994, {equation}", "ER"),
        losses.unit,
        losses.name,
        estimate,
        variance,
        level,
        parts,
        dropped(losses),
    )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Curve(Finding):
    """Error against the number of training cases: a law fitted to S sizes.

    Attributes:
      learner: the learner, as code that recreates it.
      cases: all cases N of the data, which the curve is meant to reach.
      sizes: training cases, [S].
      error: mean test error at these sizes, [*Q, S].
      standard_error: of `error`, [*Q, S]; NaN where Monte Carlo noise hides it.
      parameters: of the law error = a + b n^-c, [*Q, 3]: a, b, c; c = 1 for `inverse_curve`.
      covariance: of the parameters, [*Q, 3, 3]; errors at different sizes are correlated, since they have cases in
        common, and it allows for that.
    """

    learner: str
    cases: int
    sizes: Float[np.ndarray, " S"]
    error: Float[np.ndarray, "*Q S"]
    standard_error: Float[np.ndarray, "*Q S"]
    parameters: Float[np.ndarray, "*Q 3"]
    covariance: Float[np.ndarray, "*Q 3 3"]

    def at(self, n: float | None = None, *, level: float = 0.95) -> Result:
        """Expected error of a model trained on n cases, with its interval by the normal law: Result, each number [*Q].

        Args:
          n: training cases, above 0; all N cases of the data if None.
          level: confidence level of the interval.
        Raises:
          ValueError: n or level out of range.
        """
        if n is not None:
            require_number("n", n, above=0, advice=f"give a number of training cases, or None for all {self.cases}")
        size = float(self.cases if n is None else n)
        estimate, slope = _law(self.parameters, size), _slope(self.parameters, size)
        variance = np.einsum("...p,...pq,...q->...", slope, self.covariance, slope)
        far = (
            ""
            if self.sizes.min() <= size <= max(self.cases, self.sizes.max())
            else f"{size:g} cases are beyond the data; the law is not known to hold there"
        )
        note = joined(far, self.note)
        return _interval(
            (self.method, self.source, f"ER at {size:g} training cases"),
            self.unit,
            self.learner,
            estimate,
            np.asarray(variance),
            level,
            {},
            note,
        )

    def to_frame(self) -> "pd.DataFrame":
        """One row per data set and size."""
        numbers = np.atleast_2d(self.error), np.atleast_2d(self.standard_error)
        sets, sizes = np.indices(numbers[0].shape)
        columns = {
            "set": sets.ravel(),
            "size": self.sizes[sizes.ravel()],
            "error": numbers[0].ravel(),
            "standard_error": numbers[1].ravel(),
        }
        fitted = {name: np.atleast_2d(self.parameters)[sets.ravel(), i] for i, name in enumerate("abc")}
        return pd.DataFrame(columns | fitted).assign(method=self.method, unit=self.unit, learner=self.learner)

    def subject(self) -> str:
        """The loss, and of which learner."""
        return f"{self.unit} of {self.learner}"

    def lines(self) -> list[str]:
        """The error at each size and the law; of several data sets how many there are."""
        if self.error.ndim > 1:
            return [
                f"{len(self.error)} data sets at {len(self.sizes)} sizes, {self.sizes.min():g} to "
                f"{self.sizes.max():g} training cases"
            ]
        measured = zip(self.sizes, self.error, self.standard_error, strict=True)
        a, b, c = self.parameters
        return [
            *(f"n = {size:g}: {error:.5g}, standard error {spread:.3g}" for size, error, spread in measured),
            f"error = {a:.5g} + {b:.5g} n^-{c:.4g}",
        ]


def inverse_curve(losses: Sequence[Losses], *, standard_error: str = "jackknife") -> Curve:
    """The law error = a + b/n through the errors at two or more training sizes (Amari 1993; Varfis & Corleto 1994, eq.
    8), by weighted least squares.

    Args:
      losses: one for each of at least 2 training sizes, [*Q, R_s], of one learner, loss and data, each of splits drawn
        by a key of its own.
      standard_error: "jackknife" or "cases", as for `l_alpha`; the covariance of the sizes is estimated likewise, and
        weights are the inverse variances.
    Returns:
      Curve, whose `at` gives the error at any n.
    Raises:
      ValueError: fewer than 2 different sizes, or losses that do not belong together, have failed rows, or are not of
        splits that the standard error is made for.
      TypeError: no list of losses.
    """
    losses = one_kind(losses, 2)
    points = _points(losses, standard_error)
    design = np.stack([np.ones_like(points.sizes), 1 / points.sizes], axis=-1)

    def fit(error, scale):
        return np.append(np.linalg.lstsq(design / scale[:, None], error / scale)[0], 1.0)

    return _curve("learning curve a + b/n", "Amari 1993", losses, points, fit, free=2)


def power_curve(losses: Sequence[Losses], *, standard_error: str = "jackknife") -> Curve:
    """The law error = a + b n^-c through the errors at three or more training sizes (Cortes, Jackel, Solla, Vapnik &
    Denker 1994), by weighted least squares.

    The exponent c lies from 0.05 to 5. At such a limit, or where the errors do not fall or rise with n, nothing is
    known of c and the covariance is NaN.

    Args:
      losses: one for each of at least 3 training sizes, [*Q, R_s], of one learner, loss and data, each of splits drawn
        by a key of its own.
      standard_error: "jackknife" or "cases", as for `inverse_curve`.
    Returns:
      Curve, whose `at` gives the error at any n.
    Raises:
      ValueError: as `inverse_curve`, but for fewer than 3 different sizes.
      TypeError: no list of losses.
    """
    losses = one_kind(losses, 3)
    points = _points(losses, standard_error)
    unit = float(np.exp(np.log(points.sizes).mean()))  # sizes of about 1 keep a, b and c of one magnitude
    ratio = points.sizes / unit

    def linear(c, error, scale):
        return np.append(
            np.linalg.lstsq(np.stack([np.ones_like(ratio), ratio**-c], -1) / scale[:, None], error / scale)[0], c
        )

    def fit(error, scale):
        def residuals(p):
            return (_law(p, ratio) - error) / scale

        starts = (linear(c, error, scale) for c in np.geomspace(LEAST * 1.01, MOST / 1.01, 40))
        start = min(starts, key=lambda p: np.sum(residuals(p) ** 2))
        limits = ([-np.inf, -np.inf, LEAST], [np.inf, np.inf, MOST])
        a, b, c = scipy.optimize.least_squares(
            residuals, start, "3-point", limits, x_scale="jac", xtol=1e-12, ftol=1e-12, gtol=1e-12
        ).x
        return np.array([a, b * unit**c, c])

    return _curve("learning curve a + b n^-c", "Cortes et al. 1994", losses, points, fit, free=3)


def _curve(method: str, source: str, losses: Sequence[Losses], points: "_Points", fit: Callable, free: int) -> Curve:
    """The law fitted to the points of each data set, with the first `free` parameters free."""
    s, shape = len(points.sizes), points.error.shape[:-1]
    sets = (points.error.reshape(-1, s), points.scale.reshape(-1, s), points.covariance.reshape(-1, s, s))
    parameters = [fit(error, scale) for error, scale, _ in zip(*sets, strict=True)]
    covariance = np.array(
        [
            _sandwich(fitted, points.sizes, scale, spread, free)
            for fitted, (_, scale, spread) in zip(parameters, zip(*sets, strict=True), strict=True)
        ]
    )
    unsure = int(np.isnan(covariance).any(axis=(-2, -1)).sum())
    note = (
        "the exponent is not determined by the "
        f"errors{f' in {unsure} of {len(covariance)} data sets' if shape else ''}; "
        "ask for more sizes, or use inverse_curve"
        if unsure
        else ""
    )
    variance = np.diagonal(points.covariance, axis1=-2, axis2=-1)
    spread = np.sqrt(np.where(variance < 0, np.nan, variance))
    parameters, covariance = np.reshape(parameters, (*shape, 3)), covariance.reshape(*shape, 3, 3)
    first, note = losses[0], joined(note, *(dropped(of_size) for of_size in losses))
    return Curve(
        method=method,
        source=source,
        target="ER at any number of training cases",
        unit=first.unit,
        note=note,
        learner=first.name,
        cases=first.plan.n,
        sizes=points.sizes,
        error=points.error,
        standard_error=spread,
        parameters=parameters,
        covariance=covariance,
    )


def _sandwich(
    parameters: Float[np.ndarray, "3"],
    sizes: Float[np.ndarray, " S"],
    scale: Float[np.ndarray, " S"],
    covariance: Float[np.ndarray, "S S"],
    free: int,
) -> Float[np.ndarray, "3 3"]:
    """Covariance of parameters fitted with weights 1/scale^2 to errors of this covariance; NaN where they are not
    determined.
    """
    slope = _slope(parameters, sizes)[:, :free] / scale[:, None]
    at_limit = free == 3 and not LEAST * 1.001 < parameters[2] < MOST / 1.001
    length = np.linalg.norm(slope, axis=0)
    if at_limit or length.min() <= 1e-9 * length.max() or np.linalg.cond(slope / length) > 1e8:
        return np.full((3, 3), np.nan)
    reading = np.linalg.pinv(slope / length) / length[:, None] / scale
    of_parameters = np.zeros((3, 3))
    of_parameters[:free, :free] = reading @ covariance @ reading.T
    return of_parameters


def _law(parameters: Float[np.ndarray, "*Q 3"], n: Float[np.ndarray, " S"] | float) -> np.ndarray:
    a, b, c = np.moveaxis(parameters, -1, 0)
    return np.asarray(a + b * n**-c)


def _slope(parameters: Float[np.ndarray, "*Q 3"], n: Float[np.ndarray, " S"] | float) -> np.ndarray:
    """Derivatives of the law by a, b and c, on a last axis."""
    _, b, c = np.moveaxis(parameters, -1, 0)
    power = n**-c
    return np.stack([np.ones_like(power), power, -b * power * np.log(n)], axis=-1)


class _Influence(NamedTuple):
    """What each case contributes to an estimate, [*Q, N]: its variance is the sum of the squares less the Monte Carlo
    noise in them, [*Q].
    """

    cases: Float[np.ndarray, "*Q N"]
    noise: Float[np.ndarray, "*Q"]


def _influence(losses: Losses, of_test: float, of_training: float, standard_error: str) -> _Influence:
    """Influence on of_test times the mean test error L plus of_training times the mean training error A of the rows.

    The jackknife of a U-statistic U of order r, the mean of a kernel over all sets of r of the n cases: with U_i the
    mean over the sets that hold case i, U = r/n U_i + (1 - r/n) U_(-i), so that leaving case i out moves it by
    U_(-i) - U = -r/(n - r) (U_i - U), and the variance is (n - 1)/n sum_i (U_(-i) - U)^2.

    A row trains on a set T of m cases. A is of order r = m, and A_i is its mean over the rows with i in T. L is of
    order r = m + 1, the sets being T and one test case: of the sets that hold i it is the test case in 1/(m + 1), where
    their mean is L_i, that of the losses of case i, and among T in m/(m + 1), where it is the mean of G over the rows
    with i in T. Hence the influences 1/(n - m - 1) ((L_i - L) + m (G_i - L)) and m/(n - m) (A_i - A).
    """
    plan, values, n = losses.plan, every_case(losses), losses.plan.n
    if not (plan.train.any(axis=-2) & plan.test.any(axis=-2)).all():
        raise ValueError(
            f"expected every case to be trained on by some row and tested by some, got {plan.scheme}, "
            "which has others; ask for more resamples"
        )
    as_tested = _centred(tested(values, plan))
    if standard_error == "cases":
        cases = of_test * as_tested
        if of_training:  # else not even looked at: predictions of test cases alone have no training losses
            trained = Plan(plan.train, plan.train, plan.scheme, plan.labels, plan.cases)
            cases = cases + of_training * _centred(tested(values, trained))
        return _Influence(cases / n, np.zeros(cases.shape[:-1]))
    m = int(plan.train_sizes.flat[0])
    train = plan.train.astype(np.float64)
    # G_i - L and A_i - A are means over the rows that train on case i of numbers that sum to 0 over all rows. So it
    # changes nothing in them to centre the weights too, and then each row's term is a deviation, whose square is noise.
    times, deviation = train.sum(-2), train - train.mean(-2, keepdims=True)
    rows = of_test * _centred(losses.g) / (n - m - 1)
    if of_training:
        rows = rows + of_training * _centred(losses.apparent) / (n - m)
    cases = of_test * as_tested / (n - m - 1) + m * (rows[..., None, :] @ deviation)[..., 0, :] / times
    # What R random rows, in place of all splits, add to the expectation of the squares: the squares of their terms.
    noise = m**2 * np.sum((rows[..., None, :] ** 2 @ deviation**2)[..., 0, :] / times**2, axis=-1)
    return _Influence(np.sqrt((n - 1) / n) * cases, np.asarray((n - 1) / n * noise))


def _influence_on_apparent(full: Losses, standard_error: str) -> Float[np.ndarray, "*Q N"]:
    """Influence on the apparent error of the full fit, to first order at a minimum of this loss."""
    n, cases = full.plan.n, _centred(every_case(full)[..., 0, :])
    return cases / n if standard_error == "cases" else cases / np.sqrt(n * (n - 1))


def _centred(values: Float[np.ndarray, "*Q M"]) -> Float[np.ndarray, "*Q M"]:
    """Deviations from the mean along the last axis, exactly 0 where only rounding tells the values apart."""
    values = values.astype(np.float64)
    equal = np.ptp(values, axis=-1) <= 1e-12 * np.abs(values).max(-1)
    return np.where(equal[..., None], 0.0, values - values.mean(-1, keepdims=True))


def _require_splits(losses: Losses, standard_error: str) -> None:
    """Refuses losses that the influence of cases cannot be computed from."""
    require_one_of("standard_error", standard_error, ("jackknife", "cases"))
    plan = losses.plan
    every_case(losses)
    if losses.resamples < 2:
        raise ValueError(f"expected at least 2 resamplings, got {losses.resamples}; ask for more resamples")
    if plan.train.max() > 1 or np.any((plan.train > 0) & (plan.test > 0)):
        raise ValueError(
            f"expected splits into cases trained on once and cases tested on, got {plan.scheme}; "
            "use leave_out or balanced"
        )
    regular = plan.train_sizes.min() == plan.train_sizes.max() <= plan.n - 2 and np.array_equal(
        plan.test, plan.train == 0
    )
    if standard_error == "jackknife" and (plan.labels or not regular):
        raise ValueError(
            "expected random splits that leave out the same number of cases, at least 2, for the "
            f'jackknife, got {plan.scheme}; use leave_out, or standard_error="cases"'
        )


class _Points(NamedTuple):
    """Errors at S training sizes in rising order, [*Q, S], their covariance [*Q, S, S], and the scale of their weights
    [*Q, S].
    """

    sizes: Float[np.ndarray, " S"]
    error: Float[np.ndarray, "*Q S"]
    covariance: Float[np.ndarray, "*Q S S"]
    scale: Float[np.ndarray, "*Q S"]


def one_kind(losses: Sequence[Losses], least: int) -> list[Losses]:
    """The losses in rising order of their training sizes, if they belong together.

    Args:
      losses: of splits, [*Q, R_s] each, with the losses of all cases.
      least: training sizes at least.
    Raises:
      ValueError: learners, losses or data that differ, sizes that are too few or equal, failed rows, or losses not of
        splits.
      TypeError: no list of losses.
    """
    listed = as_learners(losses, 0)
    if len({(of_size.learner, of_size.loss, of_size.plan.n, of_size.sets) for of_size in listed}) > 1:
        raise ValueError(
            f"expected one learner, loss and data at all sizes, got {', '.join(map(repr, listed))}; assess all alike"
        )
    for of_size in listed:
        _require_splits(of_size, "cases")
    rising = sorted(listed, key=lambda of_size: of_size.plan.train_sizes.mean())
    sizes = [float(of_size.plan.train_sizes.mean()) for of_size in rising]
    if len(sizes) < least or len(set(sizes)) < len(sizes):
        raise ValueError(
            f"expected losses at {least} or more different training sizes, got sizes "
            f"{', '.join(f'{size:g}' for size in sizes) or 'of none'}; assess plans that leave out different fractions"
        )
    return rising


def _points(losses: list[Losses], standard_error: str) -> _Points:
    """The mean test errors at the sizes of these losses, in rising order, and what is known of them."""
    for of_size in losses:
        _require_splits(of_size, standard_error)
    sizes = np.array([of_size.plan.train_sizes.mean() for of_size in losses])
    each = [_influence(of_size, 1.0, 0.0, standard_error) for of_size in losses]
    cases = np.stack([influence.cases for influence in each], axis=-2)
    noise = np.stack([influence.noise for influence in each], axis=-1)
    covariance = cases @ np.swapaxes(cases, -1, -2) - noise[..., None] * np.eye(len(sizes))
    as_given = [_influence(of_size, 1.0, 0.0, "cases").cases for of_size in losses]
    floor = np.stack([np.sum(influence**2, axis=-1) for influence in as_given], axis=-1)
    scale = np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), floor))
    return _Points(
        sizes,
        np.stack([of_size.g.mean(-1) for of_size in losses], axis=-1),
        covariance,
        np.where(scale.min(-1, keepdims=True) > 0, scale, 1.0),
    )


def _interval(
    describe: tuple[str, str, str],
    unit: str,
    learner: str,
    estimate,
    variance,
    level: float,
    parts: dict,
    note: str = "",
) -> Result:
    """Result with a normal interval; NaN where the variance is negative, that is, hidden by Monte Carlo noise."""
    require_level(level)
    hidden = np.asarray(variance < 0)
    estimate, error = np.asarray(estimate, np.float64), np.asarray(np.sqrt(np.where(hidden, np.nan, variance)))
    lower, upper = Spread(estimate, error, np.inf).limits(level)
    note = joined(note, HIDDEN if hidden.any() else "")
    return described(
        *describe, unit, learner, estimate, error, np.inf, lower, upper, level=level, parts=parts, note=note
    )
