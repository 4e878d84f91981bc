"""Sparse linear regression of many targets on the same inputs."""

import numpy as np
from jaxtyping import Float

from jaxgen.types.numbers import require_number

MOST_STEPS = 2000


def sparse_fits(
    products: Float[np.ndarray, "T T"],
    moments: Float[np.ndarray, "T M"],
    penalty: Float[np.ndarray, " M"],
    start: Float[np.ndarray, "T M"] | None = None,
    close: float = 1e-4,
) -> Float[np.ndarray, "T M"]:
    """The coefficients b [T, M] that minimise b' G b / 2 - b' m + penalty |b|_1 for each target (Tibshirani 1996), by
    accelerated proximal gradients (Beck & Teboulle 2009, FISTA) with restarts (O'Donoghue & Candes 2015).

    Args:
      products: G = X'X / R of centred inputs, [T, T].
      moments: m = X'y / R of every target, [T, M].
      penalty: of each target, [M], in the unit of m.
      start: where to begin, [T, M]; zeros if None.
      close: the change of the coefficients in a step, relative to the largest of any target in units of its penalty,
        that ends the descent.
    Returns:
      Coefficients [T, M].
    Raises:
      ValueError: inputs without any spread.
    """
    longest = float(np.linalg.eigvalsh(products)[-1])
    require_number("the largest eigenvalue of the inputs' products", longest, above=0, advice="vary the inputs")
    found = np.zeros_like(moments) if start is None else start
    ahead, momentum = found, 1.0
    for _ in range(MOST_STEPS):
        step = ahead - (products @ ahead - moments) / longest
        new = np.sign(step) * np.maximum(np.abs(step) - penalty / longest, 0)
        change = new - found
        if np.abs(change).max() <= close * np.abs(new).max():
            return new
        if np.vdot(ahead - new, change) > 0:
            momentum = 1.0
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead, found, momentum = new + (momentum - 1) / faster * change, new, faster
    return found
