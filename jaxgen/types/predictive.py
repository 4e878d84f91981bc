"""Predictive distributions: what a learner believes about targets, beyond their mean."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import special
from jaxtyping import Array, Float

_HALVINGS = 40
"""Of the interval that holds a quantile: more than the digits of single precision."""

_WIDE = 12
"""Deviations around a mean beyond which nothing lies."""


class Mixture(NamedTuple):
    """S normal laws of equal weight, for the targets of m cases; outputs are independent within each.

    That is a posterior over S states of a chain, or over S members of an ensemble, each with noise.

    Attributes:
      mean: [S, m, K], in the units of the targets.
      deviation: standard deviations above 0, [S, m, K].
    """

    mean: Float[Array, "S m K"]
    deviation: Float[Array, "S m K"]

    def log_density(self, y: Float[Array, "m K"]) -> Float[Array, " m"]:
        """Logarithm of the density of targets y [m, K], all outputs together; [m]."""
        score = (y[None] - self.mean) / self.deviation
        each = -jnp.square(score) / 2 - jnp.log(self.deviation) - jnp.log(2 * jnp.pi) / 2
        return special.logsumexp(jnp.sum(each, axis=-1), axis=0) - jnp.log(float(self.mean.shape[0]))

    def probability_below(self, y: Float[Array, "m K"]) -> Float[Array, "m K"]:
        """Probability that each output is below y [m, K]; [m, K]."""
        return jnp.mean(special.ndtr((y[None] - self.mean) / self.deviation), axis=0)

    def quantile(self, probability: float) -> Float[Array, "m K"]:
        """The value below which each output lies with a probability, [m, K], by halving an interval that holds it."""
        low = jnp.min(self.mean - _WIDE * self.deviation, axis=0)
        high = jnp.max(self.mean + _WIDE * self.deviation, axis=0)

        def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            middle = (ends[0] + ends[1]) / 2
            below = self.probability_below(middle) < probability
            return jnp.where(below, middle, ends[0]), jnp.where(below, ends[1], middle)

        low, high = lax.fori_loop(0, _HALVINGS, halve, (low, high))
        return (low + high) / 2


def joined(mixtures: Mixture) -> Mixture:
    """Mixtures with a leading axis, [M, S, m, K], as one, [M S, m, K]."""
    return jax.tree.map(lambda a: a.reshape(a.shape[0] * a.shape[1], *a.shape[2:]), mixtures)
