"""Whether chains agree, and how many independent draws their states are worth.

Source: Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021, "Rank-normalization, folding, and localization: an improved
R-hat for assessing convergence of MCMC"; as ArviZ computes it.
"""

import jax.numpy as jnp
from jax import lax
from jax.scipy import special
from jaxtyping import Array, Float

LEAST_STATES = 8
"""States of a chain below which nothing can be said."""


def split_rhat(chains: Float[Array, "C S"]) -> Float[Array, ""]:
    """Rank-normalised split R-hat of S states of C chains, the larger of that for location and that for spread; []."""
    halves = _halves(chains)
    folded = jnp.abs(halves - jnp.median(halves))
    return jnp.maximum(_rhat(_normal_scores(halves)), _rhat(_normal_scores(folded)))


def effective_draws(chains: Float[Array, "C S"]) -> Float[Array, ""]:
    """How many independent draws S states of C chains are worth, in the middle of their law ("bulk"); [].

    By the autocorrelations of rank-normalised halves of the chains, up to where sums of two in turn are no longer
    positive, and never increasing (Geyer 1992).
    """
    z = _normal_scores(_halves(chains))
    count, length = z.shape
    centred = z - jnp.mean(z, axis=1, keepdims=True)
    place = jnp.arange(length)[:, None] + jnp.arange(length)[None]
    later = jnp.where((place < length)[None], centred[:, jnp.minimum(place, length - 1)], 0)
    products = jnp.mean(jnp.einsum("cs,cst->ct", centred, later), axis=0) / length
    within = products[0] * length / (length - 1)
    total = products[0] + jnp.var(jnp.mean(z, axis=1), ddof=1)
    correlation = (1 - (within - products) / total).at[0].set(1)
    pairs = correlation[: length // 2 * 2].reshape(-1, 2)
    number, last = jnp.arange(len(pairs)), max((length - 1) // 2 - 1, 0)
    end = jnp.argmax((jnp.sum(pairs, axis=1) <= 0) | (number >= last))
    kept = jnp.where(number < end, lax.cummin(jnp.sum(pairs, axis=1)), 0)
    time = 2 * jnp.sum(kept) - 1 + jnp.maximum(pairs[end, 0], 0)
    return count * length / jnp.maximum(time, 1 / jnp.log10(float(count * length)))


def _halves(chains: Float[Array, "C S"]) -> Float[Array, "2*C half"]:
    """The first and the second halves of chains; a state in the middle is left out."""
    half = chains.shape[1] // 2
    return jnp.concatenate([chains[:, :half], chains[:, -half:]])


def _normal_scores(values: Float[Array, "C S"]) -> Float[Array, "C S"]:
    """Quantiles of the normal law at the ranks of all values, of equal ones the mean rank."""
    flat = values.reshape(-1)
    below = jnp.sum(flat[None] < flat[:, None], axis=1).astype(flat.dtype)
    equal = jnp.sum(flat[None] == flat[:, None], axis=1).astype(flat.dtype)
    return special.ndtri((below + (equal + 1) / 2 - 3 / 8) / (flat.size + 1 / 4)).reshape(values.shape)


def _rhat(values: Float[Array, "C S"]) -> Float[Array, ""]:
    length = values.shape[1]
    between = length * jnp.var(jnp.mean(values, axis=1), ddof=1)
    within = jnp.mean(jnp.var(values, axis=1, ddof=1))
    return jnp.sqrt((between / within + length - 1) / length)


def of_all(traces: Float[Array, "C S P"]) -> tuple[Float[Array, " P"], Float[Array, " P"]]:
    """R-hat and effective draws of each of P numbers, [P] each; NaN of fewer than 8 states."""
    if traces.shape[1] < LEAST_STATES:
        unknown = jnp.full(traces.shape[2], jnp.nan, traces.dtype)
        return unknown, unknown
    return lax.map(lambda chains: (split_rhat(chains), effective_draws(chains)), jnp.moveaxis(traces, -1, 0))
