"""How good an estimator of the generalization error is: the best fraction to leave out, and mean squared errors over
data sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxgen.stats.checks import as_numbers, require_finite
from jaxgen.stats.estimate.learning_curve import one_kind
from jaxgen.stats.rows import every_case, within
from jaxgen.types import Losses
from jaxgen.types.late import pandas as pd
from jaxgen.types.numbers import require, require_number, require_one_of
from jaxgen.types.result import Finding, Result, described

MOST_CASES = 10**7
"""For which the exact form of the optimal fraction tries every training size at once."""


def optimal_fraction(n: int, p: int, *, kurtosis: float = 3.0, form: str = "asymptotic") -> float:
    """The fraction to leave out for which a hold-out estimate has the least mean squared error, for least squares
    (Larsen & Hansen 1995, eq. 6).

    The error of the estimate is noise^4 ((xi - 1) + 4 p / Nt) / (N - Nt) for Nt training cases, to the first order in
    p / Nt. "asymptotic" is 1 - sqrt(beta / N) with beta = 4p / (xi - 1), where the paper prints 4 p noise^2 / (1 -
    xi), which is negative. "finite" is the exact minimum of that expression, Nt = (-4p + sqrt(16 p^2 + 4 p N (xi -
    1))) / (xi - 1), yet further from "exact" than "asymptotic" for p = 10 and N = 50 to 1000: the orders left out
    weigh more. "exact" needs no such order: independent Gaussian inputs and noise, by the F law of G.

    Args:
      n: cases, N.
      p: parameters.
      kurtosis: of the noise, xi, above 1; 3 for Gaussian noise.
      form: "asymptotic", "finite" or "exact".
    Returns:
      Fraction between 0 and 1.
    Raises:
      ValueError: a number out of range, too few cases, an unknown form, or "exact" for another kurtosis than 3.
    """
    require("n", n, 2)
    require("p", p, 1)
    require_number("kurtosis", kurtosis, above=1, advice="give 3 for Gaussian noise")
    require_one_of("form", form, ("asymptotic", "finite", "exact"))
    if form == "exact" and kurtosis != 3:
        raise ValueError(
            f'expected Gaussian noise, of kurtosis 3, for the form "exact", got {kurtosis}; '
            'use "asymptotic" or "finite"'
        )
    excess = kurtosis - 1
    if form == "exact":
        require("n", n, 2, MOST_CASES, "every size is tried")
        train = np.arange(p + 4, n)
        mean, square = p / (train - p - 1), p * (p + 2) / ((train - p - 1) * (train - p - 3))
        error = (1 + 2 * mean + square) / (n - train)
        train = train[np.argmin(error)] if len(train) else n
    else:
        train = (
            np.sqrt(4 * p / excess * n)
            if form == "asymptotic"
            else (-4 * p + np.sqrt(16 * p**2 + 4 * p * n * excess)) / excess
        )
    if train >= n:
        raise ValueError(
            f"expected more cases than the best training set has, got n={n} for p={p}, form {form!r}; "
            "collect more cases or fit fewer parameters"
        )
    return float(1 - train / n)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Fractions(Finding):
    """What `empirical_fraction` returns; errors are in the square of the unit.

    Attributes:
      learner: the learner, as code that recreates it.
      fractions: left out, [S], in rising order.
      mean_square_error: of the hold-out estimate at each, [*Q, S].
      monte_carlo_error: standard error of these that comes from having R splits and not all, [*Q, S]; it says nothing
        about other data.
    """

    learner: str
    fractions: Float[np.ndarray, " S"]
    mean_square_error: Float[np.ndarray, "*Q S"]
    monte_carlo_error: Float[np.ndarray, "*Q S"]

    @property
    def best(self) -> Float[np.ndarray, "*Q"]:
        """The fraction with the least mean squared error, [*Q]."""
        return np.asarray(self.fractions[self.mean_square_error.argmin(-1)])

    def to_frame(self) -> "pd.DataFrame":
        """One row per data set and fraction."""
        numbers = np.atleast_2d(self.mean_square_error), np.atleast_2d(self.monte_carlo_error)
        sets, places = np.indices(numbers[0].shape)
        columns = {
            "set": sets.ravel(),
            "fraction": self.fractions[places.ravel()],
            "mean_square_error": numbers[0].ravel(),
            "monte_carlo_error": numbers[1].ravel(),
        }
        return pd.DataFrame(columns).assign(unit=self.unit, learner=self.learner)

    def subject(self) -> str:
        """The loss, and of which learner."""
        return f"{self.unit} of {self.learner}"

    def lines(self) -> list[str]:
        """The best fraction and the errors at each; of several data sets their medians."""
        several = f", median of {len(self.best)} data sets" if np.ndim(self.best) else ""
        best = f"best fraction to leave out {float(np.median(self.best)):.4g}{several}"
        frame = self.to_frame().groupby("fraction")[["mean_square_error", "monte_carlo_error"]].median()
        return [best, *frame.map("{:.4g}".format).to_string().split("\n")]


def empirical_fraction(losses: Sequence[Losses]) -> Fractions:
    """The fraction to leave out for which a hold-out estimate of the error of *its* trained model has the least mean
    squared error.

    Given the trained model its hold-out estimate is unbiased, with the variance of the loss over the number of test
    cases (Larsen & Hansen 1995, eq. 6); the mean over rows of S^2 / n2 estimates that without a model of the data. It
    is about one split; the mean of many splits has less variance and is biased towards models trained on fewer cases,
    for which see `inverse_curve`.

    Args:
      losses: one for each of at least 2 fractions, [*Q, R], of one learner, loss and data, with the losses of all
        cases; 2 or more test cases in each row.
    Returns:
      Fractions.
    Raises:
      ValueError: fewer than 2 fractions, failed rows, or losses that do not belong together or have rows with one test
        case.
      TypeError: no list of losses.
    """
    rising = one_kind(losses, 2)[::-1]
    errors, noises = [], []
    for of_fraction in rising:
        plan = of_fraction.plan
        if plan.test_sizes.min() < 2:
            raise ValueError(
                f"expected 2 or more test cases in each row, got 1 in some of {plan.scheme}; leave out more"
            )
        square_error = within(every_case(of_fraction), plan) / plan.test_sizes
        errors.append(square_error.mean(-1))
        noises.append(square_error.std(-1, ddof=1) / np.sqrt(plan.resamples))
    fractions = np.array([of_fraction.plan.test_sizes.mean() / of_fraction.plan.n for of_fraction in rising])
    first = rising[0]
    return Fractions(
        method="mean squared error of hold-out estimates",
        source="Larsen & Hansen 1995, eq. 6",
        target="the hold-out estimate of the error of the model that its split trains",
        unit=first.unit,
        learner=first.name,
        fractions=fractions,
        mean_square_error=np.stack(errors, axis=-1),
        monte_carlo_error=np.stack(noises, axis=-1),
    )


def average_conditional_error(estimates: Float[np.ndarray, " Q"], truths: Float[np.ndarray, " Q"]) -> Result:
    """ACE, the mean squared difference of an estimator from the error of the model at hand, over Q data sets (Varfis &
    Corleto 1994, eq. 13).

    Args:
      estimates: of each data set, [Q].
      truths: true error of the model trained on that data set, [Q].
    Returns:
      Result, single numbers; its standard error is that of the mean of Q squared differences. Parts: "bias" with its
      standard error "bias_error", "squared_bias" and "variance", the last two of which add up to the estimate (so the
      variance has divisor Q).
    Raises:
      ValueError: shapes that differ, fewer than 2 data sets, or a value that is not finite.
      TypeError: no numbers.
    """
    estimates, truths = _checked(estimates, truths, same=True)
    differences = estimates - truths
    return _mean_square(
        differences,
        np.std(differences, ddof=1) / np.sqrt(len(differences)),
        "average conditional error",
        "eq. 13",
        "the mean squared error as an estimate of R",
    )


def unconditional_error(estimates: Float[np.ndarray, " Q"], truths: Float[np.ndarray, " P"]) -> Result:
    """UMSE, the mean squared difference of an estimator from the expected error, over Q data sets (Varfis & Corleto
    1994, eq. 14).

    The expected error is the mean of the P truths and is taken as known in the standard error of the mean square,
    though not in that of the bias; many truths make it so.

    Args:
      estimates: of each data set, [Q].
      truths: true errors of models trained on data sets of that size, [P]; if P = Q they are taken for those of the
        same data sets, else for those of others.
    Returns:
      Result, as `average_conditional_error`.
    Raises:
      ValueError: fewer than 2 data sets or truths, or a value that is not finite.
      TypeError: no numbers.
    """
    estimates, truths = _checked(estimates, truths, same=False)
    apart = np.var(estimates, ddof=1) / len(estimates) + np.var(truths, ddof=1) / len(truths)
    bias_error = (
        np.sqrt(apart) if len(estimates) != len(truths) else np.std(estimates - truths, ddof=1) / np.sqrt(len(truths))
    )
    return _mean_square(
        estimates - truths.mean(),
        bias_error,
        "unconditional mean squared error",
        "eq. 14",
        "the mean squared error as an estimate of ER",
    )


def _mean_square(
    differences: Float[np.ndarray, " Q"], bias_error: float, method: str, equation: str, target: str
) -> Result:
    squares, bias = differences**2, differences.mean()
    parts = {"bias": bias, "bias_error": bias_error, "squared_bias": bias**2, "variance": differences.var()}
    parts = {name: np.asarray(value, np.float64) for name, value in parts.items()}
    error = np.asarray(squares.std(ddof=1) / np.sqrt(len(squares)))
    return described(
        method,
        f"Varfis & Corleto 1994, {equation}",
        target,
        "squared unit of the estimates",
        "",
        np.asarray(squares.mean()),
        error,
        parts=parts,
    )


def _checked(estimates: Any, truths: Any, same: bool) -> tuple[Float[np.ndarray, " Q"], Float[np.ndarray, " P"]]:
    """Both as arrays; refuses other shapes, fewer than 2 numbers, and numbers that are not finite."""
    estimates, truths = as_numbers("estimates", estimates), as_numbers("truths", truths)
    if (
        estimates.ndim != 1
        or truths.ndim != 1
        or min(len(estimates), len(truths)) < 2
        or (same and len(estimates) != len(truths))
    ):
        wanted = "[Q]" if same else "[P]"
        raise ValueError(
            f"expected estimates [Q] and truths {wanted} of 2 or more data sets, got "
            f"{list(estimates.shape)} and {list(truths.shape)}; give one number per data set"
        )
    require_finite("numbers", np.concatenate([estimates, truths]), "leave out these data sets")
    return estimates, truths
