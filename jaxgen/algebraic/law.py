"""The law of the generalization error G of fits to other data sets of the same size: chi-squared, weighted
chi-squared, and exact.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.integrate
import scipy.optimize
import scipy.stats
from jaxtyping import Float

from jaxgen.algebraic.criteria import Numbers, has_intercept, nic, require_plain, result
from jaxgen.algebraic.fit import FullFit, curvature_of, inverse, moments, require_ratio
from jaxgen.types.numbers import require, require_number, require_one_of, shown
from jaxgen.types.result import Result


@dataclass(frozen=True, eq=False)
class WeightedChi2:
    """The law of sum_i weight_i z_i^2 with independent standard normal z_i.

    Attributes:
      weights: [P], at least 0.
    """

    weights: Float[np.ndarray, " P"]

    def __post_init__(self):
        weights = self.weights
        numbers = isinstance(weights, np.ndarray) and weights.dtype.kind in "iuf" and weights.ndim == 1 and weights.size
        if not (numbers and np.all(np.isfinite(weights)) and np.all(weights >= 0)):
            raise ValueError(
                f"expected weights of at least 0, an array [P], got {shown(weights)}; give one finite "
                "weight per squared normal number"
            )

    @property
    def mean(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    def sf(self, x: float) -> float:
        """Probability of more than x.

        Raises:
          ValueError: x is no number.
        """
        require_number("x", x, finite=False)
        return self._tails(x)[1]

    def cdf(self, x: float) -> float:
        """Probability of at most x.

        Raises:
          ValueError: x is no number.
        """
        require_number("x", x, finite=False)
        return self._tails(x)[0]

    def ppf(self, level: float) -> float:
        """The value that is not exceeded with probability `level`, 0 < level < 1.

        Raises:
          ValueError: a level outside (0, 1).
        """
        _require_level(level)
        scale = self.weights.max()
        if scale == 0:
            return 0.0
        low, high = (scale * scipy.stats.chi2.ppf(level, df) for df in (1, len(self.weights)))
        low, high = low * (1 - 1e-9), high * (1 + 1e-9)
        # By the smaller tail, whose digits are all there.
        return _root(lambda x: self._tails(x)[0] - level if level < 0.5 else (1 - level) - self._tails(x)[1], low, high)

    def _tails(self, x: float) -> tuple[float, float]:
        """Probabilities of at most and of more than x, the smaller one to about ten digits.

        Imhof's (1961) inversion of the characteristic function, on a path through the saddle point that bends away
        from the singularities (after Rice 1980): along it the integrand falls exponentially, even for a single weight.
        """
        largest = self.weights.max()
        if x <= 0 or largest == 0 or math.isinf(x):
            below = float(x == math.inf or (x >= 0 and largest == 0))
            return below, 1 - below
        weights, x = self.weights[self.weights > 1e-15 * largest] / largest, x / largest
        upper, m = x > weights.sum(), len(weights)
        # The path passes between the pole at 0 and the branch points above 0 for the upper tail, below 0 for the lower
        # one.
        saddle = _root(
            lambda s: np.sum(weights / (1 - 2 * weights * s)) - x - 1 / s,
            *((1 / (2 * m + 4), 0.5 * (1 - 1 / (x + 5))) if upper else (-1.1 * (m / 2 + 1) / x, -0.5 / x)),
        )
        inside = weights / (1 - 2 * weights * saddle)
        second, third = np.sum(2 * inside**2) + saddle**-2, np.sum(8 * inside**3) - 2 * saddle**-3
        bend = max(third / (6 * second), 0.25 * np.sqrt(second))

        def exponent(s):
            return -np.log(1 - 2 * weights * s).sum() / 2 - s * x

        def integrand(step):
            u = step / np.sqrt(second)
            s = saddle + bend * u**2 + 1j * u
            return (np.exp(exponent(s) - exponent(saddle)) / s * (2 * bend * u + 1j)).imag

        area = scipy.integrate.quad(integrand, 0, np.inf, epsabs=0, epsrel=1e-9, limit=500)[0]
        tail = float(np.clip(np.exp(exponent(saddle)) * abs(area) / np.pi / np.sqrt(second), 0, 1))
        return (1 - tail, tail) if upper else (tail, 1 - tail)


def chi2_law(noise: float | Float[np.ndarray, "*Q"], cases: int, parameters: int) -> Any:
    """The asymptotic law of G of least squares with a complete model: noise (1 + chi2_P / N) (Larsen & Hansen 1995).

    Args:
      noise: variance of the noise, a number or [*Q].
      cases: N.
      parameters: P.
    Returns:
      A frozen distribution of SciPy, with ppf, cdf, mean, rvs, ...
    Raises:
      ValueError: a variance that is negative or no number, or counts out of range.
    """
    noise = _checked_law(noise, cases, parameters)
    return scipy.stats.chi2(parameters, loc=noise, scale=noise / cases)


def f_law(noise: float | Float[np.ndarray, "*Q"], cases: int, parameters: int) -> Any:
    """The exact law of G of least squares on independent Gaussian inputs of mean 0, without an intercept.

    noise (1 + P / (N - P + 1) F(P, N - P + 1)). The inputs' covariance and the true weights have no influence.

    Derived: (G - noise) / noise is z'W^-1 z with a standard normal z [P] and an independent Wishart matrix W of N
    degrees of freedom, Hotelling's T^2 / N.

    Args:
      noise: variance of the noise, a number or [*Q].
      cases: N, at least P.
      parameters: P.
    Returns:
      A frozen distribution of SciPy; its mean is infinite for N < P + 2.
    Raises:
      ValueError: a variance that is negative or no number, or counts out of range.
    """
    noise = _checked_law(noise, cases, parameters)
    rest = cases - parameters + 1
    return scipy.stats.f(parameters, rest, loc=noise, scale=noise * parameters / rest)


def weights_of(fit: FullFit, *, curvature: str | None = None) -> Float[np.ndarray, "*Q P"]:
    """Weights [*Q, P] with which G is the least loss + sum_i weight_i chi2_1, to first order (Poncet 1996; derived).

    Half the eigenvalues of the mean Hessian of the losses times the covariance H^-1 (sum_k g_k g_k') H^-1 of the
    parameters, the g_k centred and H with the penalty. What a penalty adds linearly in the parameters' errors is of
    smaller order and left out.

    Raises:
      ValueError: a loss that is not a multiple of what the learner minimises, or a Hessian that is not positive
        definite.
    """
    require_ratio(fit, "the law of G")
    losses = fit.hessian if curvature_of(fit, curvature) == "full" else 2 * moments(fit) / fit.ratio[..., None, None]
    moved = (fit.gradients - fit.gradients.mean(-2, keepdims=True)) @ inverse(fit, curvature)
    spread, axes = np.linalg.eigh(np.swapaxes(moved, -1, -2) @ moved)
    half = axes * np.sqrt(np.maximum(spread, 0))[..., None, :]
    values = np.linalg.eigvalsh(np.swapaxes(half, -1, -2) @ losses @ half) * (fit.ratio / (2 * fit.n))[..., None]
    return np.where(np.abs(values) < 1e-12 * np.abs(values).max(-1, keepdims=True, initial=0), 0.0, values)


def quantile(fit: FullFit, *, law: str = "weighted", curvature: str | None = None, level: float = 0.95) -> Result:
    """The value that G does not exceed with probability `level`, over data sets of this size.

    Args:
      fit: of `full_fit`.
      level: the probability.
      law: "weighted", chi-squared with the weights of `weights_of` above a least loss such that its mean is NIC; for
        least squares with a complete model "chi2", its asymptotic law, or "f", the exact one on Gaussian inputs. Both
        take N S_N / (N - P) for the noise, whose own error is ignored.
      curvature: of "weighted": None for "gauss_newton" where squared errors are minimised and "full" elsewhere, or one
        of them.
    Returns:
      Result, [*Q], with the mean of the law as a part.
    Raises:
      ValueError: a level outside (0, 1), an unknown law, or a fit that the law is not for.
    """
    _require_level(level)
    require_one_of("law", law, ("weighted", "chi2", "f"))
    if law == "weighted":
        weights = weights_of(fit, curvature=curvature)
        mean = nic(fit, curvature=curvature).estimate
        reach = np.asarray([WeightedChi2(row).ppf(level) for row in weights.reshape(-1, fit.p)]).reshape(mean.shape)
        return _quantile(fit, level, "weighted chi-squared law", "Poncet 1996", mean - weights.sum(-1) + reach, mean)
    require_plain(fit, f"the {law} law")
    if law == "f" and has_intercept(fit):
        raise ValueError(
            f"expected a model without an intercept for the exact law, got {fit.learner}; use law='chi2' or 'weighted'"
        )
    chosen = (chi2_law if law == "chi2" else f_law)(fit.n * fit.apparent / (fit.n - fit.p), fit.n, fit.p)
    source = "Larsen & Hansen 1995" if law == "chi2" else "Hotelling 1931"
    return _quantile(fit, level, f"{law} law", source, np.asarray(chosen.ppf(level)), np.asarray(chosen.mean()))


def _quantile(fit: FullFit, level: float, law: str, source: str, estimate: Numbers, mean: Numbers) -> Result:
    target = f"the {level:.4g} quantile of p(G), the risk R of fits to other data sets of {fit.n} cases"
    return result(f"Quantile by the {law}", source, target, fit, np.asarray(estimate), mean_of_law=mean)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return float(scipy.optimize.brentq(function, low, high))  # pyright: ignore


def _require_level(level: float) -> None:
    require_number("level", level, above=0, below=1, advice="give 0.95 for the 95 % quantile")


def _checked_law(noise: Any, cases: int, parameters: int) -> Float[np.ndarray, "*Q"]:
    """The variance of the noise, if it and the counts can be those of a law."""
    require("cases", cases, 1)
    require("parameters", parameters, 1, cases, f"as many as the {cases} cases")
    variance = np.asarray(noise)
    if variance.dtype.kind not in "iuf" or not (np.isfinite(variance) & (variance >= 0)).all():
        raise ValueError(
            f"expected the variance of the noise as numbers of at least 0, got {shown(noise)}; give one a data set"
        )
    return variance.astype(np.float64)
