"""Trajectories in which the widths of a prior move together with the weights.

Given its weights a width is known well: twenty of them leave its logarithm an uncertainty of a sixth, so drawing widths
and weights in turn changes it by no more at a time. Given the data it may be hardly known at all: that of an input
that does not matter wanders over several units. Here the coordinates are the weights in units of their width and the
logarithms of the precisions, all of which move along one trajectory. In these coordinates weights that the data say
little about do not depend on their width.

Step sizes must not depend on what moves. So they are taken from a reference, precisions near those where the trajectory
begins, and the trajectory keeps the joint law of both (an auxiliary variable).

Sources: Papaspiliopoulos, Roberts & Skoeld 2007, "A general framework for the parametrization of hierarchical models"
(non-centred coordinates); Yu & Meng 2011, "To center or not to center: that is not the question" (why both kinds of
coordinates in turn are better than either).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from jaxgen.learn.bayes import prior as priors
from jaxgen.learn.bayes.prior import Group, Scales, State

_NEAR = 1.5
"""Standard deviation of the logarithms of a reference about those of the precisions where a trajectory begins."""

_WIDE = 3.0
"""Steps of the logarithms of precisions, as a multiple of what `step_sizes` tells of them."""


class Logs(NamedTuple):
    """Numbers for the unknown precisions of weights: of each group [], and of each input of a group with relevances
    [sources]. Mostly their logarithms.
    """

    common: dict[str, Float[Array, ""]]
    each: dict[str, Float[Array, " sources"]]


class Seen(NamedTuple):
    """How strongly the data have held weights and precisions: mean squares of the gradients of the misfit, which are
    mean second derivatives, as shares of those that are assumed.

    Attributes:
      weights: of the weights of each group, [].
      logs: of the logarithms of the precisions, for weights in units of their width; 0 for those around which others
        lie.
      count: states behind them, [].
    """

    weights: dict[str, Float[Array, ""]]
    logs: Logs
    count: Float[Array, ""]


class Position(NamedTuple):
    """Weights in units of their width, a tree like the parameters, and logarithms of the precisions."""

    units: PyTree
    logs: Logs


def logs_of(scales: Scales) -> Logs:
    """Logarithms of the precisions of weights."""
    return Logs(*jax.tree.map(jnp.log, scales[:2]))


def scales_of(logs: Logs, noise: Float[Array, " K"]) -> Scales:
    """The inverse of `logs_of`, with precisions of the noise, [K]."""
    common, each = jax.tree.map(jnp.exp, tuple(logs))
    return Scales(common, each, noise)


def position_of(state: State, groups: tuple[Group, ...]) -> Position:
    """The coordinates of a state."""
    units = priors.tree_of(
        groups,
        lambda group: state.params[group.layer][group.part] * jnp.sqrt(priors.precision(group, state.scales)),
    )
    return Position(units, logs_of(state.scales))


def state_of(position: Position, groups: tuple[Group, ...], noise: Float[Array, " K"]) -> State:
    """The state at some coordinates, with precisions of the noise, [K]."""
    scales = scales_of(position.logs, noise)
    params = priors.tree_of(
        groups, lambda group: position.units[group.layer][group.part] * lax.rsqrt(priors.precision(group, scales))
    )
    return State(params, scales)


def reference_near(logs: Logs, normals: Logs) -> Logs:
    """A reference for precisions of these logarithms, from normal numbers."""
    return jax.tree.map(lambda log, normal: log + _NEAR * normal, logs, normals)


def energy(position: Position, reference: Logs, groups: tuple[Group, ...]) -> Float[Array, ""]:
    """Minus the log density of the prior in these coordinates, and of the reference given them, but for a constant;
    [].
    """
    units, logs = position
    away = jax.tree.map(lambda log, other: (log - other) / _NEAR, logs, reference)
    total: Any = sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves((units, away))) / 2
    for group in groups:
        width, level = group.width, -2 * math.log(group.width.at(group.sources))
        if width.shape is not None:
            total = total + width.shape / 2 * _surprise(logs.common[group.name] - level)
            level = logs.common[group.name]
        if width.relevance is not None:
            total = total + width.relevance / 2 * jnp.sum(_surprise(logs.each[group.name] - level))
    return total


def nothing_seen(groups: tuple[Group, ...], dtype: Any) -> Seen:
    """Before a chain has begun: what is assumed."""
    return Seen(
        {group.name: jnp.ones((), dtype) for group in groups},
        _of_groups(groups, lambda group: jnp.ones(() if group.width.relevance is None else group.sources, dtype)),
        jnp.zeros((), dtype),
    )


def seen_more(seen: Seen, state: State, slope: PyTree, curvature: dict[str, Array], groups: tuple[Group, ...]) -> Seen:
    """With one more state, the gradient of the misfit there, a tree like the weights, and its second derivatives that
    are assumed, of each group an array that broadcasts to its weights, [units, sources].

    The latest of t states counts in proportion to t, so that the beginning is forgotten.
    """

    def of_weights(group: Group) -> Array:
        assumed = jnp.sum(jnp.broadcast_to(curvature[group.name], group.shape))
        return _share(jnp.sum(jnp.square(slope[group.layer][group.part])), assumed)

    def of_logs(group: Group) -> Array:
        by_log = state.params[group.layer][group.part] * slope[group.layer][group.part] / 2
        return _share(jnp.square(_by_source(by_log, group)), _held(curvature, state.scales, group))

    new = {group.name: of_weights(group) for group in groups}, _of_groups(groups, of_logs)
    share = 2 / (seen.count + 2)
    weights, logs = jax.tree.map(lambda mean, new: mean + share * (new - mean), seen[:2], new)
    return Seen(weights, logs, seen.count + 1)


def step_sizes(seen: Seen, reference: Scales, curvature: dict[str, Array], groups: tuple[Group, ...]) -> Position:
    """Steps of all coordinates, but for the step factor, at a reference and the second derivatives assumed there, of
    each group an array that broadcasts to its weights, [units, sources].

    Those of weights in units of their width are the roots of their variances, as far as the second derivatives tell.
    For logarithms of precisions these are far too short, since weights make up for a change of their width: they get
    the geometric mean of that root and 1, times 3. (Chosen by trial among powers of 1/2 to 1, factors of 1 to 3 and
    references nearer and further away, on the problem of `benchmarks/bayes.py` and five splits each of two data sets of
    `benchmarks/uci.py`.)
    """
    units = priors.tree_of(
        groups,
        lambda group: lax.rsqrt(
            1 + seen.weights[group.name] * curvature[group.name] / priors.precision(group, reference)
        ),
    )
    held = _of_groups(groups, lambda group: _held(curvature, reference, group))
    logs = jax.tree.map(lambda share, held: _WIDE * jnp.sqrt(lax.rsqrt(1 / _NEAR**2 + share * held)), seen.logs, held)
    return Position(units, logs)


def _of_groups(groups: tuple[Group, ...], values: Callable[[Group], Array]) -> Logs:
    """Numbers that a function gives for each group with unknown precisions, [] or [sources]; zeros for precisions
    around which those of its sources lie.
    """
    found = {group.name: values(group) for group in groups}
    each = {group.name: found[group.name] for group in groups if group.width.relevance is not None}
    common = {
        group.name: jnp.zeros_like(found[group.name][0]) if group.name in each else found[group.name]
        for group in groups
        if group.width.shape is not None
    }
    return Logs(common, each)


def _held(curvature: dict[str, Array], scales: Scales, group: Group) -> Array:
    """The second derivative of the misfit by the logarithm of a precision that is assumed; [] or [sources]."""
    relative = curvature[group.name] / priors.precision(group, scales) / 4
    return _by_source(jnp.broadcast_to(relative, group.shape), group)


def _share(square: Array, assumed: Array) -> Array:
    """Their ratio; of an input that is 0 for all cases, whose weights the data do not hold at all, 0."""
    return jnp.where(assumed > 0, square / jnp.where(assumed > 0, assumed, 1), 0)


def _by_source(values: Array, group: Group) -> Array:
    """Sums of an array like the weights: of each source, [sources], in a group with relevances, else of all, []."""
    return jnp.sum(values) if group.width.relevance is None else jnp.sum(values.reshape(-1, group.sources), axis=0)


def _surprise(log_ratio: Array) -> Array:
    """Minus the log density of the logarithm of a gamma variable of mean 1, times 2 / its shape."""
    return jnp.exp(log_ratio) - log_ratio
