"""A quasi-Newton method of limited memory, which brings many similar problems close to their minima."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.systems import dot

_PAIRS = 2
"""Steps that are remembered. With a preconditioner that is close, five need no fewer gradients."""

_OVERSHOT = 0.8
"""A step has not gone far too far if the function rises at its end less steeply than this part of how it fell at its
beginning.
"""

_SHORTER = (0.1, 0.7)
"""Least and largest part of a step that went too far which is tried next."""


class _Pair(NamedTuple):
    """A step [K, p], by how much it changed the gradient [K, p], and one by the product of both []; 0 for no step."""

    step: Float[Array, "K p"]
    change: Float[Array, "K p"]
    weight: Float[Array, ""]


class _Search(NamedTuple):
    """A point with its gradient, the direction from it [K, p], the slope along this and the part of it to be tried [],
    the last steps, the gradients computed so far [], and whether the point is close enough [].
    """

    point: Float[Array, "K p"]
    gradient: Float[Array, "K p"]
    direction: Float[Array, "K p"]
    slope: Float[Array, ""]
    length: Float[Array, ""]
    pairs: tuple[_Pair, ...]
    gradients: Int[Array, ""]
    close: Bool[Array, ""]


def nearer(
    gradient: Callable[[Array], Array],
    preconditioned: Callable[[Array], Array],
    start: Float[Array, "K p"],
    rounding: Float[Array, ""],
    reduction: float,
    gradients: int,
) -> Float[Array, "K p"]:
    """A point [K, p] nearer to the minimum of a convex function than the start [K, p], by L-BFGS (Nocedal 1980,
    "Updating quasi-Newton matrices with limited storage") from a preconditioner in place of a multiple of the unit
    matrix.

    It ends where the gradient's length in the metric of the preconditioner is reduced to a part of what it was, or its
    plain length to what rounding makes of it, or after so many gradients. If it is not reduced at all, or a number is
    not finite, the start comes back. Steps are judged by slopes alone, since values of the function close to its
    minimum differ by less than rounding.

    Args:
      gradient: of the function at a point, [K, p].
      preconditioned: a gradient [K, p] times about the inverse of the second derivatives.
      start: where the search begins.
      rounding: length of a gradient that tells nothing, [].
      reduction: part of its length that the gradient is reduced to.
      gradients: most of them that are computed.
    """

    def downhill(gradient: Float[Array, "K p"], pairs: tuple[_Pair, ...]) -> Float[Array, "K p"]:
        shares = []
        for pair in pairs:
            shares.append(pair.weight * dot(pair.step, gradient))
            gradient = gradient - shares[-1] * pair.change
        uphill = preconditioned(gradient)
        for pair, share in zip(reversed(pairs), reversed(shares), strict=True):
            uphill = uphill + (share - pair.weight * dot(pair.change, uphill)) * pair.step
        return -uphill

    def advance(search: _Search) -> _Search:
        step = search.length * search.direction
        found = gradient(search.point + step)
        slope = dot(found, search.direction)
        curvature = search.length * (slope - search.slope)
        latest = _Pair(step, found - search.gradient, jnp.where(curvature > 0, 1 / curvature, 0))
        taken = slope <= -_OVERSHOT * search.slope
        direction = downhill(found, pairs := (latest, *search.pairs[:-1]))
        next_slope = dot(found, direction)
        close = (-next_slope <= goal) | (dot(found, found) <= jnp.square(rounding))
        there = _Search(search.point + step, found, direction, next_slope, one, pairs, search.gradients, close)
        part = jnp.clip(search.slope / (search.slope - slope), *_SHORTER)
        here = search._replace(length=part * search.length)
        chosen = jax.tree.map(lambda a, b: jnp.where(taken, a, b), there, here)
        return chosen._replace(gradients=search.gradients + 1)

    first, one = gradient(start), jnp.ones((), start.dtype)
    none = _Pair(jnp.zeros_like(start), jnp.zeros_like(start), jnp.zeros_like(one))
    direction = downhill(first, ())
    slope = dot(first, direction)
    goal = -slope * reduction**2
    close = ~(slope < 0) | (dot(first, first) <= jnp.square(rounding))
    begin = _Search(start, first, direction, slope, one, (none,) * _PAIRS, jnp.int32(1), close)
    end = lax.while_loop(lambda search: ~search.close & (search.gradients < gradients), advance, begin)
    return jnp.where((end.slope > slope) & jnp.all(jnp.isfinite(end.point)), end.point, start)
