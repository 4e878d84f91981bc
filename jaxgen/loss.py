"""Per-case losses: a target and a prediction in, a number per case out. Several outputs are summed.

They take arrays of JAX, traced or not, and of NumPy, and return their like.
"""

from typing import Any

import numpy as np
from jaxtyping import Array, Float

Numbers = Array | np.ndarray


def squared(y: Float[Numbers, "*N K"], prediction: Float[Numbers, "*N K"]) -> Float[Numbers, "*N"]:
    """Squared error, summed over the outputs; for the zeros and ones of a classification it is Brier's score.

    Args:
      y: targets, [*N, K].
      prediction: predicted targets, [*N, K].
    Returns:
      Losses [*N], in the squared unit of y.
    """
    return _xp(y).sum(_xp(y).square(y - prediction), axis=-1)


def absolute(y: Float[Numbers, "*N K"], prediction: Float[Numbers, "*N K"]) -> Float[Numbers, "*N"]:
    """Absolute error, summed over the outputs.

    Args:
      y: targets, [*N, K].
      prediction: predicted targets, [*N, K].
    Returns:
      Losses [*N], in the unit of y.
    """
    return _xp(y).sum(_xp(y).abs(y - prediction), axis=-1)


def zero_one(y: Float[Numbers, "*N K"], prediction: Float[Numbers, "*N K"]) -> Float[Numbers, "*N"]:
    """1 for a wrong class, else 0 (Scott & Variyam, "Training loss").

    Args:
      y: one column of zeros and ones per class, [*N, K], or a single column.
      prediction: probabilities or scores, [*N, K]; the class is the largest, or for a single column 1 above 0.5.
    Returns:
      Losses [*N].
    """
    xp = _xp(prediction)
    true, predicted = ((a[..., 0] > 0.5) if y.shape[-1] == 1 else xp.argmax(a, axis=-1) for a in (y, prediction))
    # A comparison with NaN would hide a diverged network as a wrong or even a right class.
    return xp.where(xp.isfinite(xp.sum(prediction, axis=-1)), (true != predicted).astype(y.dtype), xp.nan)


def cross_entropy(y: Float[Numbers, "*N K"], prediction: Float[Numbers, "*N K"]) -> Float[Numbers, "*N"]:
    """Minus the logarithm of the probability given to the true class (Scott & Variyam, "Training loss"), in nats.

    Args:
      y: one column of zeros and ones per class, [*N, K], or a single column.
      prediction: probabilities, [*N, K], raised to the smallest normal number where they are less.
    Returns:
      Losses [*N].
    """
    xp = _xp(prediction)
    tiny = xp.finfo(prediction.dtype).tiny
    if y.shape[-1] == 1:
        y, prediction = (xp.concatenate([1 - a, a], axis=-1) for a in (y, prediction))
    return -xp.sum(xp.where(y > 0, y * xp.log(xp.maximum(prediction, tiny)), 0), axis=-1)


def hinge(y: Float[Numbers, "*N K"], prediction: Float[Numbers, "*N K"]) -> Float[Numbers, "*N"]:
    """max(0, 1 - t o), summed over the outputs, for t = 2 y - 1 and the margin o = 2 prediction - 1 (Scott & Variyam,
    "Training loss").

    Args:
      y: zeros and ones, [*N, K].
      prediction: margins moved and scaled so that -1 and 1 are 0 and 1, as networks with the objective "hinge"
        predict, [*N, K].
    Returns:
      Losses [*N].
    """
    return _xp(y).sum(_xp(y).maximum(0, 1 - (2 * y - 1) * (2 * prediction - 1)), axis=-1)


def _xp(a: Any) -> Any:
    """NumPy or JAX's version of it, whichever made the array."""
    return a.__array_namespace__()
