"""A search for penalties by the gradient of an error that can only be measured: what learners with many penalties
share.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

WIDEST = math.log(1e6)
"""Logarithm of the factor about their unit within which penalties lie. Beyond it an input is as good as dropped, or as
good as not penalised.
"""

_DECAY, _SQUARE_DECAY, _SMALL = 0.9, 0.99, 1e-8
"""Constants of Adam; squares are forgotten sooner than usual since there are few steps."""


class Search(NamedTuple):
    """Adam on the logarithms of the penalties [D]: where it is, its two averages of gradients, and the best so far."""

    place: Float[Array, " D"]
    mean: Float[Array, " D"]
    square: Float[Array, " D"]
    best: Float[Array, " D"]
    least: Float[Array, ""]

    @classmethod
    def begun(cls, place: Float[Array, " D"], error: Float[Array, ""]) -> "Search":
        """At a place [D] with its error []."""
        nothing = jnp.zeros_like(place)
        return cls(place, nothing, nothing, place, error)

    def judged(self, error: Float[Array, ""]) -> "Search":
        """With the present place as the best if its error [] is less."""
        better = error < self.least
        best = jnp.where(better, self.place, self.best)
        return self._replace(best=best, least=jnp.where(better, error, self.least))

    def moved(self, gradient: Float[Array, " D"], rate: Float[Array, ""], number: Array) -> "Search":
        """After a step along a gradient [D], the number-th from 1; numbers of it that are not finite count as 0."""
        gradient = jnp.where(jnp.isfinite(gradient), gradient, 0)
        mean = _DECAY * self.mean + (1 - _DECAY) * gradient
        square = _SQUARE_DECAY * self.square + (1 - _SQUARE_DECAY) * jnp.square(gradient)
        size = jnp.sqrt(square / (1 - _SQUARE_DECAY**number)) + _SMALL
        place = self.place - rate * mean / (1 - _DECAY**number) / size
        return self._replace(place=jnp.clip(place, -WIDEST, WIDEST), mean=mean, square=square)


def falling(rate: float, number: Array, steps: int) -> Float[Array, ""]:
    """The rate [] of step `number` from 0, which falls to 0 along half a wave."""
    return rate * (1 + jnp.cos(jnp.pi * number / steps)) / 2
