"""Normal equations of many ridge regressions by conjugate gradients, which all rows take together."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from jaxgen.learn.eliminate import downdated
from jaxgen.learn.products import Products

_MOST_ROUNDS = 200
"""Rounds after which a solution is taken as it is: what is left then shows in the next step of refinement."""

_ROUNDINGS = 16
"""A pivot of the common matrix below this many roundings of its largest diagonal element for each of its rows is taken
as 0.
"""


class _Search(NamedTuple):
    """Conjugate gradients of all rows: solutions so far, what is left of the right-hand sides, directions, [D, K, R]
    each; the product of what is left with itself in the preconditioner, [K, R]; and the rounds, [].
    """

    solution: Float[Array, "D K R"]
    rest: Float[Array, "D K R"]
    direction: Float[Array, "D K R"]
    square: Float[Array, "K R"]
    rounds: Int[Array, ""]


def gradients_solver(
    rows: Products, scale: Float[Array, "R D"], ridge: Float[Array, "R D"], left_out: int | None
) -> Callable[[Float[Array, "D K R"], Float[Array, ""]], Float[Array, "D K R"]]:
    """Solver of (x' W x + ridge) z = b for R rows, z and b [D, K, R], x the cases of a row about its mean in its
    scales; as exact as its second argument asks, relative to b, for a caller who refines. Solutions are NaN if the
    matrix of all rows is singular.

    No row has a matrix of its own: products with the cases are those of all rows at once. So are those with the inverse
    of the matrix for their mean weights and mean scales, in which all of them work. It is the preconditioner: for rows
    that share most of their cases, few rounds are needed (Hestenes & Stiefel 1952; Golub & Van Loan 2013, "Matrix
    Computations", section 11.5). Where it is told how few they leave out, it is that of all cases less those that
    the row leaves out: then only the scales of a row differ from it, and two or three rounds are enough.

    Args:
      rows: their products.
      scale, ridge: of each row, [R, D].
      left_out: no row has more cases of weight 0 than these, if all weights are 0 or 1 and that is to be made use of.
    """
    unit = jnp.sqrt(jnp.mean(jnp.square(scale), axis=0))
    x, in_unit = rows.x / unit[None], (scale / unit[None]).T[:, None]
    weight, mean, penalty = rows.w.T[:, None], (rows.x_mean / unit[None]).T[:, None], ridge.T[:, None] * in_unit**2
    every = x if left_out is not None else x * jnp.sqrt(jnp.mean(rows.w, axis=0))[:, None]
    matrix = every.T @ every + jnp.diag(jnp.mean(penalty, axis=(1, 2)))
    factor = jnp.linalg.cholesky(matrix, symmetrize_input=False)
    root = lax.linalg.triangular_solve(factor, jnp.eye(len(matrix), dtype=matrix.dtype), left_side=True, lower=True)
    # What a ridge adds that is lost in rounding would not show in the next step of refinement either.
    least, largest = jnp.min(jnp.square(jnp.diagonal(factor))), jnp.max(jnp.diagonal(matrix))
    root = jnp.where(least > _ROUNDINGS * len(matrix) * float(jnp.finfo(matrix.dtype).eps) * largest, root, jnp.nan)
    preconditioned = _preconditioner(root, x, rows, left_out)

    def product(z: Float[Array, "D K R"]) -> Float[Array, "D K R"]:
        # Weighted deviations from the mean add up to 0, so the mean must be taken off one of the two factors only.
        seen = weight * (jnp.einsum("nd,dkr->nkr", x, z) - jnp.sum(mean * z, axis=0)[None])
        return jnp.einsum("nd,nkr->dkr", x, seen) + penalty * z

    def solve(b: Float[Array, "D K R"], tolerance: Float[Array, ""]) -> Float[Array, "D K R"]:
        b = in_unit * b
        first = preconditioned(b)
        square = jnp.sum(b * first, axis=0)
        goal = square * jnp.square(tolerance)

        def unfinished(state: _Search) -> Array:
            return jnp.any(state.square > goal) & (state.rounds < _MOST_ROUNDS)

        def advance(state: _Search) -> _Search:
            image = product(state.direction)
            length = _quotient(state.square, jnp.sum(state.direction * image, axis=0))[None]
            rest = state.rest - length * image
            pulled = preconditioned(rest)
            square = jnp.sum(rest * pulled, axis=0)
            direction = pulled + _quotient(square, state.square)[None] * state.direction
            return _Search(state.solution + length * state.direction, rest, direction, square, state.rounds + 1)

        begin = _Search(jnp.zeros_like(b), b, first, square, jnp.zeros((), jnp.int32))
        solution = in_unit * lax.while_loop(unfinished, advance, begin).solution
        return jnp.where(square >= 0, solution, jnp.nan)

    return solve


def _preconditioner(
    root: Float[Array, "D D"], x: Float[Array, "n D"], rows: Products, left_out: int | None
) -> Callable[[Float[Array, "D K R"]], Float[Array, "D K R"]]:
    """The product with root' root, the inverse of the common matrix; of cases [n, D] that rows leave out, if there are
    at most so many, with the inverse of what is left of that matrix without them.
    """
    if left_out is None:
        inverse = root.T @ root
        return lambda rest: jnp.einsum("de,ekr->dkr", inverse, rest)
    # The mean of all cases, of which a row leaves some out too, is one more column of their basis.
    constant = jnp.where(rows.share[0] > 0, 1 / jnp.sqrt(jnp.asarray(len(x), x.dtype)), 0)
    basis = jnp.concatenate([jnp.full_like(x[:, :1], constant), x @ root.T], axis=1)
    less = downdated(basis, rows.w, left_out)

    def preconditioned(rest: Float[Array, "D K R"]) -> Float[Array, "D K R"]:
        inside = jnp.einsum("de,ekr->dkr", root, rest)
        return jnp.einsum("ed,ekr->dkr", root, less(jnp.pad(inside, ((1, 0), (0, 0), (0, 0))))[1:])

    return preconditioned


def _quotient(a: Float[Array, "K R"], b: Float[Array, "K R"]) -> Float[Array, "K R"]:
    """a / b; 0 where b is 0, since there a solution has been found already."""
    return jnp.where(b == 0, 0, a / jnp.where(b == 0, 1, b))
