"""Per-case losses: a target and a prediction in, a number per case out. Several outputs are summed."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def squared(y: Float[Array, "*N K"], prediction: Float[Array, "*N K"]) -> Float[Array, "*N"]:
    """Squared error, summed over the outputs; for the zeros and ones of a classification it is Brier's score.

    Args:
      y: targets, [*N, K].
      prediction: predicted targets, [*N, K].
    Returns:
      Losses [*N], in the squared unit of y.
    """
    return jnp.sum(jnp.square(y - prediction), axis=-1)


def absolute(y: Float[Array, "*N K"], prediction: Float[Array, "*N K"]) -> Float[Array, "*N"]:
    """Absolute error, summed over the outputs.

    Args:
      y: targets, [*N, K].
      prediction: predicted targets, [*N, K].
    Returns:
      Losses [*N], in the unit of y.
    """
    return jnp.sum(jnp.abs(y - prediction), axis=-1)


def zero_one(y: Float[Array, "*N K"], prediction: Float[Array, "*N K"]) -> Float[Array, "*N"]:
    """1 for a wrong class, else 0 (Scott & Variyam, "Training loss").

    Args:
      y: one column of zeros and ones per class, [*N, K], or a single column.
      prediction: probabilities or scores, [*N, K]; the class is the largest, or for a single column 1 above 0.5.
    Returns:
      Losses [*N].
    """
    true, predicted = ((a[..., 0] > 0.5) if y.shape[-1] == 1 else jnp.argmax(a, axis=-1) for a in (y, prediction))
    # A comparison with NaN would hide a diverged network as a wrong or even a right class.
    return jnp.where(jnp.isfinite(jnp.sum(prediction, axis=-1)), (true != predicted).astype(y.dtype), jnp.nan)


def cross_entropy(y: Float[Array, "*N K"], prediction: Float[Array, "*N K"]) -> Float[Array, "*N"]:
    """Minus the logarithm of the probability given to the true class (Scott & Variyam, "Training loss"), in nats.

    Args:
      y: one column of zeros and ones per class, [*N, K], or a single column.
      prediction: probabilities, [*N, K], raised to the smallest normal number where they are less.
    Returns:
      Losses [*N].
    """
    tiny = jnp.finfo(prediction.dtype).tiny
    if y.shape[-1] == 1:
        y, prediction = (jnp.concatenate([1 - a, a], axis=-1) for a in (y, prediction))
    return -jnp.sum(jnp.where(y > 0, y * jnp.log(jnp.maximum(prediction, tiny)), 0), axis=-1)


def hinge(y: Float[Array, "*N K"], prediction: Float[Array, "*N K"]) -> Float[Array, "*N"]:
    """max(0, 1 - t o), summed over the outputs, for t = 2 y - 1 and the margin o = 2 prediction - 1 (Scott & Variyam, "Training loss").

    Args:
      y: zeros and ones, [*N, K].
      prediction: margins moved and scaled so that -1 and 1 are 0 and 1, as networks with the objective "hinge" predict, [*N, K].
    Returns:
      Losses [*N].
    """
    return jnp.sum(jnp.maximum(0, 1 - (2 * y - 1) * (2 * prediction - 1)), axis=-1)
