"""Exact draws in a fixed amount of work, for many chains that run together.

A rejection sampler loops until it accepts, and under `vmap` until the slowest chain does. Here a few attempts are made
at once and the first accepted one is taken. Where none is, the chain keeps the value it has: whether that happens does
not depend on this value, so each update is a mixture of an independent draw and of doing nothing, and leaves the
conditional law as it is, exactly. With the numbers below it happens less than once in a hundred thousand updates.
"""

from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

GAMMA_ATTEMPTS = 6
"""Each is accepted with a probability above 0.95."""

TOP_ATTEMPTS = 24
"""Each is accepted with a probability above 0.5 (0.7 to 0.9 where the shapes are not extreme)."""

_SEARCH = 8
"""Newton steps towards the points where a log density is 1 below its maximum; any points give an exact sampler."""


def standard_gamma(
    shape: Float[Array, "*G"], normals: Float[Array, "*G attempts"], uniforms: Float[Array, "*G attempts+1"]
) -> tuple[Float[Array, "*G"], Bool[Array, "*G"]]:
    """Gamma variables of rate 1, and which of them were drawn (Marsaglia & Tsang 2000, "A simple method").

    Args:
      shape: the usual shape, above 0; [*G].
      normals: standard normal numbers, [*G, attempts].
      uniforms: numbers uniform in (0, 1), [*G, attempts + 1].
    """
    raised = jnp.where(shape < 1, shape + 1, shape)
    d = (raised - 1 / 3)[..., None]
    root = 1 + normals / jnp.sqrt(9 * d)
    v = jnp.where(root > 0, root, 1) ** 3
    accepted = (root > 0) & (jnp.log(uniforms[..., :-1]) < jnp.square(normals) / 2 + d * (1 - v + jnp.log(v)))
    value, drawn = _first(d * v, accepted)
    return value * jnp.where(shape < 1, jnp.exp(jnp.log(uniforms[..., -1]) / shape), 1), drawn


def log_top_precision(
    slope: Float[Array, "*G"], up: Float[Array, "*G"], down: Float[Array, "*G"], uniforms: Float[Array, "*G attempts 2"]
) -> tuple[Float[Array, "*G"], Bool[Array, "*G"]]:
    """Draws l of log density slope l - up exp(l) - down exp(-l), and which of them were drawn.

    That is the law of the logarithm of a precision which is the mean of other precisions: an inverse Gaussian law,
    generalised. It is log-concave, so tangents on both sides of its maximum, cut off at its height, lie above it
    (Devroye 1986, "Non-uniform random variate generation", section VII.2); draws below them are exact.

    Args:
      slope: [*G].
      up, down: above 0, [*G] each.
      uniforms: numbers uniform in (0, 1), [*G, attempts, 2].
    """
    root = jnp.sqrt(jnp.square(slope) + 4 * up * down)
    # Of two equal forms of the mode, the one that adds numbers of the same sign.
    mode = jnp.where(slope > 0, jnp.log(slope + root) - jnp.log(2 * up), jnp.log(2 * down) - jnp.log(root - slope))

    # Both sides at once, [2, *G], and as a loop: written out, these steps were a fifth of the program of a chain.
    of_sides = {"slope": slope[None], "root": root[None]}
    sign = jnp.asarray([-1.0, 1.0], root.dtype).reshape(2, *(1,) * root.ndim)

    def height(u: Array) -> Array:
        return -2 * of_sides["root"] * jnp.square(jnp.sinh(u / 2)) - of_sides["slope"] * (jnp.sinh(u) - u)

    def rise(u: Array) -> Array:
        return -of_sides["root"] * jnp.sinh(u) - 2 * of_sides["slope"] * jnp.square(jnp.sinh(u / 2))

    def nearer(_: Any, at: Array) -> Array:
        return sign * jnp.clip(sign * (at - (height(at) + 1) / rise(at)), 1e-3 / jnp.sqrt(of_sides["root"]), 40)

    at = lax.fori_loop(0, _SEARCH, nearer, sign * jnp.sqrt(2 / of_sides["root"]))
    # Where the tangents have the height of the mode, and their slopes, per attempt.
    left, right = (at - height(at) / rise(at))[..., None]
    left_rise, right_rise = rise(at)[..., None]
    left_area, middle, right_area = 1 / left_rise, right - left, -1 / right_rise
    place = uniforms[..., 0] * (left_area + middle + right_area)
    tiny = jnp.finfo(place.dtype).tiny
    below = left + jnp.log(jnp.maximum(place / left_area, tiny)) / left_rise
    above = right + jnp.log(jnp.maximum(1 - (place - left_area - middle) / right_area, tiny)) / right_rise
    in_left, in_right = place < left_area, place > left_area + middle
    u = jnp.where(in_left, below, jnp.where(in_right, above, left + place - left_area))
    hat = jnp.where(in_left, left_rise * (u - left), jnp.where(in_right, right_rise * (u - right), 0))
    wide = {"slope": slope[..., None], "root": root[..., None]}
    at_u = -2 * wide["root"] * jnp.square(jnp.sinh(u / 2)) - wide["slope"] * (jnp.sinh(u) - u)
    value, drawn = _first(u, jnp.log(uniforms[..., 1]) <= at_u - hat)
    return mode + value, drawn


def _first(values: Float[Array, "*G attempts"], accepted: Bool[Array, "*G attempts"]) -> tuple[Array, Array]:
    """The first accepted value, and whether there is one."""
    first = jnp.argmax(accepted, axis=-1)[..., None]
    return jnp.take_along_axis(values, first, axis=-1)[..., 0], jnp.any(accepted, axis=-1)
