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
