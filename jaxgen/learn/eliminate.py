"""Symmetric systems of many rows at once: eliminated, or solved as what is left of a system that all rows share."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from jaxgen.learn.products import left_out_cases

UNROLL = 16
"""Up to this many unknowns, systems are eliminated by unrolled code with the rows on the last axis."""

Solve = Callable[[Float[Array, "p K R"]], Float[Array, "p K R"]]


def downdated(cases: Float[Array, "n p"], w: Float[Array, "R n"], left_out: int) -> Solve:
    """Solver of (basis' W basis) z = b for rows that leave out a few cases C of all: I + basis_C' (I - H_CC)^-1
    basis_C, H = basis basis'.

    All rows share the product with the basis, and H where it is no larger than the rows of the basis that they leave
    out.
    """
    left_out = max(1, left_out)
    where = left_out_cases(w, left_out)
    shared = len(cases) ** 2 <= where.size * cases.shape[1]

    def of_row(where: Int[Array, " m"]) -> Float[Array, "m m"]:
        rows = cases.at[where].get(mode="fill", fill_value=0)
        return rows @ rows.T

    if shared:
        hat = cases @ cases.T
        inside = hat.at[where[:, :, None], where[:, None, :]].get(mode="fill", fill_value=0)
    else:
        inside = lax.map(of_row, where)
    inner = eliminated(jnp.moveaxis(jnp.eye(left_out, dtype=w.dtype)[None] - inside, 0, -1))
    row = jnp.arange(len(w))[None]

    def solve(b: Float[Array, "p K R"]) -> Float[Array, "p K R"]:
        predicted = jnp.einsum("np,pkr->nrk", cases, b)
        outside = inner(jnp.moveaxis(predicted.at[where.T, row].get(mode="fill", fill_value=0), 2, 1))
        spread = jnp.zeros_like(predicted).at[where.T, row].set(jnp.moveaxis(outside, 1, 2), mode="drop")
        return b + jnp.einsum("np,nrk->pkr", cases, spread)

    return solve


def eliminated(matrices: Float[Array, "m m R"]) -> Solve:
    """Solver of R symmetric positive definite systems: unrolled elimination with the systems on the last axis, or
    LAPACK if they are large.

    No pivoting is needed; a matrix that is not positive definite gives non-finite or useless solutions, which
    the caller's check of the refinement step finds.
    """
    m = len(matrices)
    if m > UNROLL:
        factor = jnp.linalg.cholesky(jnp.moveaxis(matrices, -1, 0))
        return lambda b: jnp.moveaxis(
            jax.vmap(lambda c, d: jax.scipy.linalg.cho_solve((c, True), d))(factor, jnp.moveaxis(b, -1, 0)), 0, -1
        )
    uppers = []
    for _ in range(m):
        upper = matrices[0] / matrices[0, 0][None]
        uppers.append((1 / matrices[0, 0], upper[1:]))
        matrices = matrices[1:, 1:] - upper[1:, None] * matrices[0, 1:][None]

    def solve(b: Float[Array, "m K R"]) -> Float[Array, "m K R"]:
        forward = []
        for inverse, upper in uppers:
            forward.append(b[0] * inverse[None])
            b = b[1:] - upper[:, None] * b[0][None]
        for k in reversed(range(m)):
            for later in range(k + 1, m):
                forward[k] = forward[k] - uppers[k][1][later - k - 1][None] * forward[later]
        return jnp.stack(forward)

    return solve
