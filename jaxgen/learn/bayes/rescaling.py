"""Moves that multiply weights and the width of their prior by one factor.

Given its weights a width is known well: twenty of them leave its logarithm an uncertainty of a sixth, so drawing widths
and weights in turn changes it by no more at a time. Given the data it may be hardly known at all: that of an input
that does not matter wanders over several units. Here both move together, and weights in units of their width stay as
they are. Then only the data and the law of the widths decide, and where the data say little the move can be long.

Sources: Liu & Sabatti 2000, "Generalised Gibbs sampler and multigrid Monte Carlo for Bayesian computation" (moves along
a group of transformations); Yu & Meng 2011, "To center or not to center: that is not the question" (why both kinds of
moves in turn are better than either).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from jaxgen.learn.bayes import prior as priors
from jaxgen.learn.bayes.prior import Group, Scales, State
from jaxgen.learn.bayes.sampler import chosen

_LEAST, _MOST = 0.1, 2.0
"""Standard deviations of the logarithm of the factor. One between them is drawn for each move, since nobody knows which
one suits: an input that matters allows a tenth, one that does not allows a factor of ten.
"""


class Moves(NamedTuple):
    """Directions in which logarithms of widths move.

    Attributes:
      count: how many, M.
      first: of each group with relevances, the number of the move of its first input (or hidden unit); those of the
        others follow.
      whole: how far a move takes all widths of each group, [M].
    """

    count: int
    first: dict[str, int]
    whole: dict[str, np.ndarray]


def moves_of(groups: tuple[Group, ...]) -> Moves:
    """Every input by itself, every group as a whole, and inputs and outputs of the hidden units against each other:
    where these are almost linear, only the product of the two widths is known.
    """
    first, single = {}, 0
    for group in groups:
        if group.width.relevance is not None:
            first[group.name], single = single, single + group.sources
    common = [group.name for group in groups if group.width.shape is not None]
    together = [{name: 1.0} for name in common]
    if {"input_hidden", "hidden_bias", "hidden_output"} <= set(common):
        together.append({"input_hidden": 1.0, "hidden_bias": 1.0, "hidden_output": -1.0})
    whole = {
        name: np.array([0.0] * single + [move.get(name, 0.0) for move in together])
        for name in dict.fromkeys([*first, *common])
    }
    return Moves(single + len(together), first, whole)


def rescaled(
    state: State,
    misfit: Float[Array, " K"],
    groups: tuple[Group, ...],
    moves: Moves,
    misfit_of: Callable[[PyTree], Float[Array, " K"]],
    precision: Float[Array, " K"],
    normals: Float[Array, " tried"],
    uniforms: Float[Array, "tried 3"],
) -> tuple[State, Float[Array, " K"]]:
    """The state after some moves at random were tried (Metropolis), and its misfit.

    With weights in units of their width, and logarithms of precisions, as coordinates, a move shifts logarithms. So it
    is accepted with the probability min(1, ratio of the likelihoods times that of the densities of the logarithms).

    Args:
      state: weights and precisions.
      misfit: of its weights, [K].
      groups: of the weights.
      moves: directions.
      misfit_of: the misfit [K] of other weights.
      precision: what a misfit is multiplied by, [K].
      normals, uniforms: random numbers, [tried] and [tried, 3]; uniform ones in (0, 1).
    Returns:
      The state, and its misfit [K].
    """
    dtype = misfit.dtype
    whole = {name: jnp.asarray(table, dtype) for name, table in moves.whole.items()}
    sizes = normals * _LEAST * jnp.exp(uniforms[:, 0] * math.log(_MOST / _LEAST))
    number_of = jnp.minimum(jnp.floor(uniforms[:, 1] * moves.count).astype(jnp.int32), moves.count - 1)

    def attempt(number, before):
        state, misfit, density = before
        by, move = sizes[number], number_of[number]
        logs = {name: by * table[move] for name, table in whole.items()}
        single = {
            name: logs[name]
            + jnp.where(jnp.arange(len(state.scales.each[name]), dtype=jnp.int32) == move - start, by, 0)
            for name, start in moves.first.items()
        }
        new = _moved(state, groups, logs, single)
        after = new, misfit_of(new.params), _log_density(groups, new.scales)
        gain = jnp.sum(precision * (misfit - after[1])) + after[2] - density
        return chosen(jnp.log(uniforms[number, 2]) < gain, after, before)

    start = state, misfit, _log_density(groups, state.scales)
    return lax.fori_loop(0, len(normals), attempt, start)[:2]


def _moved(state: State, groups: tuple[Group, ...], whole: dict[str, Array], each: dict[str, Array]) -> State:
    """Weights times factors, and the precisions with them, from logarithms [] of groups and [sources]."""

    def weights(group: Group) -> Array:
        old = state.params[group.layer][group.part]
        by = each.get(group.name, whole.get(group.name))
        return old if by is None else old * jnp.exp(by).reshape((1,) * (old.ndim - by.ndim) + by.shape)

    scales = Scales(
        {name: value * jnp.exp(-2 * whole[name]) for name, value in state.scales.common.items()},
        {name: value * jnp.exp(-2 * each[name]) for name, value in state.scales.each.items()},
        state.scales.noise,
    )
    return State(priors.tree_of(groups, weights), scales)


def _log_density(groups: tuple[Group, ...], scales: Scales) -> Float[Array, ""]:
    """Log density of the logarithms of all precisions but the noise's, up to a constant; []."""
    total = jnp.zeros((), scales.noise.dtype)
    for group in groups:
        top, width = priors.top_precision(group, scales), group.width
        if width.shape is not None:
            relative = top * width.at(group.sources) ** 2
            total = total + width.shape / 2 * (jnp.log(relative) - relative)
        if width.relevance is not None:
            relative = scales.each[group.name] / top
            total = total + width.relevance / 2 * jnp.sum(jnp.log(relative) - relative)
    return total
