"""The linear system of Larsen & Hansen 1995, whose generalization error is exact."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.signal
from jaxtyping import Float

from jaxgen.types import Data, Key, keys


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
        """
        full = np.zeros((*np.shape(weights)[:-1], len(self.weights)))
        full[..., slice(None) if inputs is None else inputs] = weights
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
      ValueError: a count below 1, |rho| not below 1, negative noise, or a covariance that is not positive definite.
    """
    if min(n, d, 1 if sets is None else sets) < 1 or not abs(rho) < 1 or noise < 0:
        raise ValueError(
            f"expected sets, n and d of at least 1, |rho| < 1 and noise >= 0, got sets={sets}, n={n}, "
            f"d={d}, rho={rho}, noise={noise}; correct the one that is out of range"
        )
    random = keys.generator(key)
    root = random.standard_normal((d, d)) / np.sqrt(d)
    weights = random.standard_normal(d)
    h = root @ root.T if covariance is None else np.asarray(covariance, np.float64)
    lower = _cholesky(h, d)
    shape = (1 if sets is None else sets, n)
    innovations = random.standard_normal((*shape, d))
    innovations[:, 1:] *= np.sqrt(1 - rho**2)
    x = scipy.signal.lfilter([1.0], [1.0, -rho], innovations, axis=1) @ lower.T
    y = x @ weights + np.sqrt(noise) * random.standard_normal(shape)
    data = Data(x, y[..., None], tuple(f"x{i + 1}" for i in range(d)))
    return LinearSystem(data if sets is not None else data[0], weights, h, float(noise))


def _cholesky(covariance: Float[np.ndarray, "a b"], d: int) -> Float[np.ndarray, "d d"]:
    try:
        if covariance.shape == (d, d) and np.allclose(covariance, covariance.T):
            return scipy.linalg.cholesky(covariance, lower=True)
    except scipy.linalg.LinAlgError:
        pass
    raise ValueError(
        f"expected a symmetric positive definite covariance [{d}, {d}], got {list(covariance.shape)} "
        "that is not; correct it, or leave it out to have one drawn"
    )
