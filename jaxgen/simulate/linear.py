"""The linear system of Larsen & Hansen 1995, whose generalization error is exact."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.signal
from jaxtyping import Float

from jaxgen.types import Data, Key, keys
from jaxgen.types.memory import require_memory
from jaxgen.types.numbers import require, require_number, shown


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """Data sets from a linear system, and the system.

    Attributes:
      data: x [*Q, N, D], y [*Q, N, 1]; no intercept.
      weights: true weights, [D].
      covariance: covariance H of the inputs, [D, D].
      noise: variance of the noise, the least generalization error.
    """

    data: Data
    weights: Float[np.ndarray, " D"]
    covariance: Float[np.ndarray, "D D"]
    noise: float

    def generalization(
        self, weights: Float[np.ndarray, "*R D"], inputs: list[int] | None = None
    ) -> Float[np.ndarray, "*R"]:
        """Exact generalization error of linear predictions: noise + (w - w0)' H (w - w0).

        Args:
          weights: estimated weights, [*R, D].
          inputs: the inputs that the weights belong to, if not all; the others then have weight 0.
        Returns:
          Expected squared loss on new cases, [*R].
        Raises:
          ValueError: inputs that are not different numbers below D, or not as many weights as inputs.
        """
        used = _columns(inputs, len(self.weights))
        given = np.asarray(weights)
        if given.dtype.kind not in "biuf" or given.shape[-1:] != (len(used),):
            raise ValueError(
                f"expected weights [..., {len(used)}], one for each input, got {shown(weights)}; name the inputs that "
                "they belong to if it is not all of them"
            )
        full = np.zeros((*given.shape[:-1], len(self.weights)))
        full[..., used] = given
        error = full - self.weights
        return np.asarray(self.noise + np.einsum("...d,de,...e->...", error, self.covariance, error, optimize=True))


def linear_ar(
    key: Key,
    sets: int | None,
    n: int,
    d: int,
    rho: float = 0.6518,
    noise: float = 32.45,
    covariance: Float[np.ndarray, "d d"] | None = None,
) -> LinearSystem:
    """The system of Larsen & Hansen 1995: a linear model of Gaussian inputs that are correlated in time.

    y(k) = x(k)' w0 + e(k), with x(k) = L z(k), L L' = H, and every component of z a first-order autoregression of unit
    variance. w0 is standard Gaussian. H = A A' / D with A a standard Gaussian [D, D] matrix, unless given: the paper
    says only "a random positive definite symmetric matrix". All data sets share H and w0. For a least-squares model of
    all inputs neither has any influence on G.

    Args:
      key: consumed.
      sets: independent data sets, Q; None for one without the axis Q.
      n: cases, N, in the order of time.
      d: inputs, D.
      rho: coefficient of the autoregression, |rho| < 1; 0 gives independent cases.
      noise: variance of the noise.
      covariance: covariance H of the inputs, [D, D]; None draws one.
    Returns:
      LinearSystem with x [*Q, N, D] and y [*Q, N, 1].
    Raises:
      TypeError: the key is no typed key.
      ValueError: a count that is no whole number of at least 1, |rho| not below 1, negative noise, or a covariance
        that is not symmetric and positive definite.
      MemoryError: so many cases would not fit into memory.
    """
    shape = (1 if sets is None else require("sets", sets, 1), require("n", n, 1))
    d = require("d", d, 1)
    require_number("rho", rho, above=-1, below=1)
    require_number("the variance of the noise", noise, least=0)
    random = keys.generator(key)
    require_memory(
        f"{math.prod(shape):,} cases",
        8 * (math.prod(shape) * (4 * d + 2) + 3 * d * d),
        "ask for fewer cases or data sets",
    )
    root = random.standard_normal((d, d)) / np.sqrt(d)
    weights = random.standard_normal(d)
    h = root @ root.T if covariance is None else covariance
    lower = _cholesky(h, d)
    h = np.asarray(h, np.float64)
    innovations = random.standard_normal((*shape, d))
    innovations[:, 1:] *= np.sqrt(1 - rho**2)  # the first case has the variance 1 already
    x = scipy.signal.lfilter([1.0], [1.0, -rho], innovations, axis=1) @ lower.T
    y = x @ weights + np.sqrt(noise) * random.standard_normal(shape)
    data = Data(x, y[..., None], tuple(f"x{i + 1}" for i in range(d)))
    return LinearSystem(data if sets is not None else data[0], weights, h, float(noise))


def _columns(inputs: Any, d: int) -> list[int]:
    """The inputs that are used, by their numbers; all of them for None."""
    if inputs is None:
        return list(range(d))
    numbers: list[Any] = list(inputs) if isinstance(inputs, list | tuple | np.ndarray) else [None]
    whole = all(isinstance(each, int | np.integer) and not isinstance(each, bool) and 0 <= each < d for each in numbers)
    if not whole or len(set(numbers)) < len(numbers):
        raise ValueError(f"expected different inputs from 0 to {d - 1}, got {shown(inputs)}; name each once")
    return numbers


def _cholesky(covariance: Any, d: int) -> Float[np.ndarray, "d d"]:
    """L of the covariance L L' [D, D], lower triangular."""
    try:
        matrix = np.asarray(covariance, np.float64)
        if matrix.shape == (d, d) and np.allclose(matrix, matrix.T):
            return scipy.linalg.cholesky(matrix, lower=True)
    except (ValueError, TypeError, scipy.linalg.LinAlgError):  # no numbers, or not positive definite
        pass
    raise ValueError(
        f"expected a symmetric positive definite covariance [{d}, {d}], got {shown(covariance)} "
        "that is not; correct it, or leave it out to have one drawn"
    )
