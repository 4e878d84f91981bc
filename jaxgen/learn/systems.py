"""Symmetric positive definite systems of one training set, written out since LAPACK must run alone (see `assess`)."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.batched import over_first

_BLOCK = 32
"""Rows that Cholesky's factorisation of a matrix of many rows finds at a time, by a product of matrices."""

_FEW, _FEW_TO_SWEEP = 320, 128
"""Up to so many rows, which stay in a cache, they are found one by one, or swept for the inverse."""


class Factor(NamedTuple):
    """Cholesky's factor of a symmetric positive definite matrix: upper' @ upper [m, m], further columns of the matrix
    multiplied by the inverse of upper' [m, q], and the smallest pivot relative to the largest diagonal element [].
    """

    upper: Float[Array, "m m"]
    solved: Float[Array, "m q"]
    pivot: Float[Array, ""]


def cholesky(matrix: Float[Array, "m m"], columns: Float[Array, "m q"]) -> Factor:
    """Cholesky's factorisation of a matrix [m, m], written out because LAPACK must run alone (see `assess`).

    A matrix that is not positive definite gives NaN.
    """
    m, largest = len(matrix), jnp.max(jnp.diagonal(matrix))
    size = _BLOCK if m > _FEW else m
    more = -m % max(1, size)
    filling = largest * (jnp.arange(m + more) >= m).astype(matrix.dtype)
    square = jnp.pad(matrix, (0, more)) + jnp.diag(filling)
    rows = jnp.concatenate([square, jnp.pad(columns, ((0, more), (0, 0)))], axis=1)

    def add_block(number: Int[Array, ""], state: tuple[Array, Array]) -> tuple[Array, Array]:
        done, least = state
        begin = number * size
        left = lax.dynamic_slice_in_dim(rows, begin, size)
        if m > size:
            left = left - lax.dynamic_slice_in_dim(done, begin, size, axis=1).T @ done

        def add(k: Int[Array, ""], inside: tuple[Array, Array]) -> tuple[Array, Array]:
            block, least = inside
            row = left[k] - block[:, begin + k] @ block
            pivot = row[begin + k]
            return block.at[k].set(row * lax.rsqrt(pivot)), jnp.minimum(least, pivot)

        block, least = lax.fori_loop(0, size, add, (jnp.zeros_like(left), least))
        return lax.dynamic_update_slice_in_dim(done, block, begin, axis=0), least

    begin = jnp.zeros_like(rows), jnp.asarray(jnp.inf, matrix.dtype)
    done, least = lax.fori_loop(0, (m + more) // max(1, size), add_block, begin)
    return Factor(done[:m, :m], done[:m, m + more :], least / largest)


def solved(matrix: Float[Array, "m m"], b: Float[Array, " m"]) -> tuple[Float[Array, " m"], Float[Array, ""]]:
    """Solution [m] of a symmetric positive definite system [m, m], and its smallest pivot relative to the largest
    diagonal element, [].
    """
    factor = cholesky(matrix, b[:, None])

    def solve(step, z):
        k = len(b) - 1 - step
        return z.at[k].set((factor.solved[k, 0] - factor.upper[k] @ z) / factor.upper[k, k])

    return lax.fori_loop(0, len(b), solve, jnp.zeros_like(b)), factor.pivot


def dot(a: Float[Array, "K p"], b: Float[Array, "K p"]) -> Float[Array, ""]:
    """Sum [] of the products of two matrices [K, p], number by number."""
    # XLA adds up over two axes number by number, over the last alone by vector instructions.
    return jnp.sum(over_first(jnp.add, a * b))


class Gradients(NamedTuple):
    """Conjugate gradients: the solution so far, what is left of the right-hand side, its product with itself in the
    preconditioner, the direction, the least and largest curvature along a direction of unit length, the rounds, and
    whether it is exact enough.
    """

    solution: Float[Array, "K p"]
    rest: Float[Array, "K p"]
    square: Float[Array, ""]
    direction: Float[Array, "K p"]
    least: Float[Array, ""]
    largest: Float[Array, ""]
    rounds: Int[Array, ""]
    enough: Bool[Array, ""]


def conjugate_gradients(
    product: Callable[[Array], Array],
    preconditioned: Callable[[Array], Array],
    b: Float[Array, "K p"],
    tolerance: Float[Array, ""],
    rounds: int,
) -> Gradients:
    """Solution [K, p] of a symmetric positive definite system, given by its product, up to a relative residual
    (Hestenes & Stiefel 1952); a product without curvature ends it, and a number of rounds.
    """

    def advance(state: Gradients) -> Gradients:
        image = product(state.direction)
        curvature = dot(state.direction, image)
        length = state.square / curvature
        rest = state.rest - length * image
        pulled = preconditioned(rest)
        square = dot(rest, pulled)
        unit = curvature / dot(state.direction, state.direction)
        return Gradients(
            state.solution + length * state.direction,
            rest,
            square,
            pulled + square / state.square * state.direction,
            jnp.minimum(state.least, unit),
            jnp.maximum(state.largest, unit),
            state.rounds + 1,
            dot(rest, rest) <= goal,
        )

    def unfinished(state: Gradients):
        return ~state.enough & (state.least > 0) & (state.rounds < rounds)

    first = preconditioned(b)
    square, whole = dot(b, first), dot(b, b)
    goal, nothing = jnp.square(tolerance) * whole, jnp.zeros_like(square)
    least = jnp.where(square > 0, jnp.inf, 0)  # a preconditioner that rounding has made indefinite solves nothing
    start = Gradients(jnp.zeros_like(b), b, square, first, least, nothing, jnp.int32(0), whole == 0)
    return lax.while_loop(unfinished, advance, start)


def inverse(matrix: Float[Array, "p p"]) -> Float[Array, "p p"]:
    """Inverse of a symmetric positive definite matrix [p, p], by sweeping each of its rows and columns (Goodnight
    1979), or by Cholesky's factor of many.
    """
    if len(matrix) > _FEW_TO_SWEEP:
        root = cholesky(matrix, jnp.eye(len(matrix), dtype=matrix.dtype)).solved
        return root.T @ root

    def sweep(k, a):
        column, pivot = a[:, k], a[k, k]
        rest = a - column[:, None] * (column / pivot)[None]
        return rest.at[k].set(column / pivot).at[:, k].set(column / pivot).at[k, k].set(-1 / pivot)

    return -lax.fori_loop(0, len(matrix), sweep, matrix)


def substituted(lower: Float[Array, "m m"], b: Float[Array, "m K"]) -> Float[Array, "m K"]:
    """Solution [m, K] of lower @ lower' @ x = b, by substitution forwards and backwards.

    Rows that run together take each step at once, which LAPACK does not, see `inverse_of_lower`.
    """
    places, inverse = jnp.arange(len(b)), 1 / jnp.diagonal(lower)

    def substitute(k: Array, b: Array, factor: Array) -> Array:
        """A step: unknown k, taken off the equations that have the column `factor` [m] of it."""
        found = b[k] * inverse[k]
        return jnp.where((places == k)[:, None], found[None], b - factor[:, None] * found[None])

    def forwards(k: Array, b: Array) -> Array:
        return substitute(k, b, jnp.where(places > k, lower[:, k], 0))

    def backwards(step: Array, b: Array) -> Array:
        k = len(b) - 1 - step
        return substitute(k, b, jnp.where(places < k, lower[k], 0))

    return lax.fori_loop(0, len(b), backwards, lax.fori_loop(0, len(b), forwards, b))


def inverse_of_lower(lower: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """Inverse of a lower triangular matrix [m, m], from those of blocks along its diagonal that double in size.

    LAPACK would share the columns of a small one among threads, which takes 40 ms where other programs are running.
    """
    m, size = len(lower), 1
    blocks = 1 << max(0, m - 1).bit_length()
    padded = jnp.pad(lower, (0, blocks - m)) + jnp.diag((jnp.arange(blocks) >= m).astype(lower.dtype))
    found = (1 / jnp.diagonal(padded))[:, None, None]
    while blocks > 1:
        blocks //= 2
        of_pairs = padded.reshape(blocks, 2 * size, blocks, 2 * size)[jnp.arange(blocks), :, jnp.arange(blocks)]
        first, second = found[::2], found[1::2]
        below = -second @ of_pairs[:, size:, :size] @ first
        found = jnp.block([[first, jnp.zeros_like(first)], [below, second]])
        size *= 2
    return found[0, :m, :m]
