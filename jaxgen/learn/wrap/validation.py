"""Cases split off the training cases of a row to validate: which they are, and how their errors are counted."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxgen.learn.scale import binary_unit
from jaxgen.loss import about
from jaxgen.types import Key, Loss
from jaxgen.types.numbers import first_line, shown


class Portions(NamedTuple):
    """The portions [M] of the cases in use that validate, in a random order of the cases.

    Attributes:
      begin, size: of each portion.
      most_left, most_out: the most cases that are left to learn from, and that validate, whatever the number of cases
        in use: the sizes of arrays, which cannot depend on the weights.
    """

    begin: Int[Array, " M"]
    size: Int[Array, " M"]
    most_left: int
    most_out: int


def in_folds(n: int, used: Int[Array, ""], folds: int) -> Portions:
    """Portions of `used` of n cases whose sizes differ by one at most, [M] for M folds."""
    # Portion q is from floor(q used / folds) to floor((q + 1) used / folds).
    bounds = (jnp.arange(folds + 1, dtype=jnp.int32) * used) // folds
    return Portions(bounds[:-1], bounds[1:] - bounds[:-1], n - n // folds, math.ceil(n / folds))


def divided(
    portions: Portions,
    begin: Int[Array, ""],
    size: Int[Array, ""],
    order: Int[Array, " n"],
    table: Float[Array, "n c"],
) -> tuple[Float[Array, "l c"], Float[Array, "v c"]]:
    """The rows of a table of cases that are left without one portion, [l, c], and those of the portion, [v, c].

    Portions depend on the weights and shapes must not, so both get rows enough for any weights, and those too many are
    0, their weight included. Rows are gathered, not masked: a member then works on its share of the cases only.
    """

    def some(place, wanted):
        return jnp.where(wanted[:, None], table[order[jnp.minimum(place, len(table) - 1)]], 0)

    used = jnp.sum(table[:, -1] > 0, dtype=jnp.int32)
    left = jnp.arange(portions.most_left, dtype=jnp.int32)
    out = jnp.arange(portions.most_out, dtype=jnp.int32)
    return some(jnp.where(left < begin, left, left + size), left < used - size), some(begin + out, out < size)


def columns(table: Float[Array, "m c"], inputs: int) -> tuple[Array, Array, Array]:
    """Inputs [m, D], targets [m, K] and weights [m] of a table of cases."""
    return table[:, :inputs], table[:, inputs:-1], table[:, -1]


def random_order(key: Key, w: Float[Array, " n"]) -> Int[Array, " n"]:
    """The cases of positive weight in random order, then the others, [n]; absent cases change nothing in the order of
    those in use, nor does the precision.
    """
    draws = jax.random.bits(key, (len(w),), jnp.uint32)  # draw i is a function of the key and i only
    draws = draws[jnp.cumsum(w > 0) - 1] >> 1
    return jnp.argsort(jnp.where(w > 0, draws, jnp.full_like(draws, jnp.iinfo(draws.dtype).max)))


def in_strata(
    order: Int[Array, " n"], y: Float[Array, "n K"], w: Float[Array, " n"], portions: Portions
) -> Int[Array, " n"]:
    """A random order of the cases [n], those in use first, changed so that portions of it that are folds hold the same
    share of each class, within one case; as it is unless the targets [n, K] are those of a classification: one column
    with two values, or several with two values each, as of zeros and ones.

    In the order of their classes cases are dealt to the folds one by one, as to players; a fold keeps the order that
    its cases had.
    """
    used, n = jnp.sum(w > 0, dtype=jnp.int32), len(order)
    found = _classes(y, w)[order]
    place = jnp.arange(n, dtype=jnp.int32)
    # Folds that have a case more than others come first in the deal, so that all have as many as their size says.
    deal = jnp.argsort(-portions.size, stable=True).astype(jnp.int32)[place % len(portions.size)]
    fold = jnp.zeros(n, jnp.int32).at[jnp.argsort(found, stable=True)].set(deal)
    again = jnp.argsort(jnp.where(place < used, fold, len(portions.size)), stable=True)
    return jnp.where(jnp.any(found[:1] >= 0), order[again], order)


def evenly(order: Int[Array, " n"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Int[Array, " n"]:
    """A random order of the cases [n], those in use first, changed so that any first cases hold about the same share of
    each class; as it is unless the targets [n, K] are those of a classification, as for `in_strata`.
    """
    found = _classes(y, w)[order]
    by_class = jnp.argsort(found, stable=True)
    sorted_classes = found[by_class]
    begin = jnp.searchsorted(sorted_classes, sorted_classes, side="left").astype(jnp.float32)
    end = jnp.searchsorted(sorted_classes, sorted_classes, side="right").astype(jnp.float32)
    share = (jnp.arange(len(order), dtype=jnp.float32) + 0.5 - begin) / (end - begin)
    share = jnp.zeros(len(order), jnp.float32).at[by_class].set(share)
    used = jnp.arange(len(order)) < jnp.sum(w > 0)
    again = jnp.argsort(jnp.where(used, share, 2), stable=True)
    return jnp.where(jnp.any(found[:1] >= 0), order[again], order)


def _classes(y: Float[Array, "n K"], w: Float[Array, " n"]) -> Int[Array, " n"]:
    """The class of each case by its targets [n, K], from 0 to K; K + 1 for absent cases; -1 for all cases of targets
    that are no classes.
    """
    used = (w > 0)[:, None]
    low = jnp.min(jnp.where(used, y, jnp.inf), axis=0, keepdims=True)
    high = jnp.max(jnp.where(used, y, -jnp.inf), axis=0, keepdims=True)
    # Targets in other units, by Normalised for example, may be rounded apart.
    near = jnp.minimum(jnp.abs(y - low), jnp.abs(high - y)) <= 1e-4 * (high - low)
    upper = used & (y - low > high - y)
    number = jnp.where(jnp.any(upper, axis=1), 1 + jnp.argmax(upper, axis=1), 0)
    number = jnp.where(used[:, 0], number, y.shape[1] + 1).astype(jnp.int32)
    return jnp.where(jnp.all(near | ~used), number, -1)


def error_unit(loss: Loss, y: Float[Array, "n K"], w: Float[Array, " n"]) -> Float[Array, ""]:
    """The unit of the targets [n, K] in which errors are compared, []: squares of 1e-30 would all be 0."""
    if not about(loss).degree:
        return jnp.ones((), y.dtype)
    return binary_unit(jnp.max(jnp.where((w > 0)[:, None], jnp.abs(y), 0)))


def check_loss(owner: str, loss: Any, outputs: int) -> None:
    """ValueError unless a loss that validates for a learner gives a number for each case."""
    expected = f"expected the loss of {owner} as a function of y [n, {outputs}] and predictions [n, {outputs}]"
    if not callable(loss):
        raise ValueError(f"{expected}, got {shown(loss)}; give one of jaxgen.loss, such as loss.squared")
    cases = jax.ShapeDtypeStruct((5, outputs), jnp.float32)
    try:
        losses = jax.eval_shape(loss, cases, cases)
    except Exception as error:
        raise ValueError(f"{expected}, got {first_line(error)}; mend the function") from error
    shapes = jax.tree.map(lambda a: list(a.shape), losses)
    if shapes != [5]:
        raise ValueError(
            f"{expected} that returns [n], the loss of every case, got {shapes} for n = 5; sum over the outputs only"
        )
