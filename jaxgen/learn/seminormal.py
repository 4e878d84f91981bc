"""Least squares of one training set, or of many weightings of the same cases, in an orthonormal basis that is corrected
for what it lost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from jaxgen.learn.bases import back_substitute, inverse_root_if_easy, orthonormal
from jaxgen.learn.batched import in_any_row, where_rare
from jaxgen.learn.eliminate import UNROLL, Solve, downdated, eliminated
from jaxgen.learn.grams import gram, weighted_grams
from jaxgen.learn.products import of_left_out
from jaxgen.learn.scale import binary_unit

_COLUMNS = 16
"""From so many columns on, one training set is solved by products of matrices."""

LARGE = 1 << 19
"""Beyond so many numbers LAPACK makes the basis of a training set that products do not solve. Without it, rows that
need no basis run on all cores.
"""

MUCH = 1 << 17
"""From so many numbers on, a basis is made by products of large matrices."""


class Refined(NamedTuple):
    """Solutions of R rows in the coordinates of the basis, and the last corrections of them; [p, K, R] each."""

    solution: Float[Array, "p K R"]
    correction: Float[Array, "p K R"]


def of_one(a: Float[Array, "m p"], b: Float[Array, "m K"]) -> tuple[Float[Array, "p K"], Bool[Array, ""]]:
    """The z [p, K] with which a z is nearest to b, and whether it is not determined: by products of a where it is not
    ill-conditioned, see `with_basis`, else by an orthonormal basis.
    """

    def carefully() -> tuple[Float[Array, "p K"], Bool[Array, ""]]:
        basis, triangle, deficient = orthonormal(a, lapack=a.size > LARGE)
        return back_substitute(triangle, basis.T @ b), deficient

    if a.shape[1] < _COLUMNS:
        return carefully()
    root, ill = inverse_root_if_easy(gram(a))
    first = root.T @ (a.T @ b)
    correction = root.T @ (a.T @ (b - a @ (root @ first)))
    found = root @ (first + correction), jnp.zeros((), bool)
    return where_rare(ill | ~is_exact(first, correction), carefully, found)


def is_exact(solution: Float[Array, "p K"], correction: Float[Array, "p K"]) -> Bool[Array, ""]:
    """Whether a last correction [p, K] is so small that what it leaves is a rounding."""
    size, moved = (jnp.sum(jnp.square(each)) for each in (solution, correction))
    return moved <= float(jnp.finfo(solution.dtype).eps) * size


def leaves_out_few(left_out: int | None, unknowns: int) -> bool:
    """Whether solutions of rows follow from that of all cases with less work than from equations of their own."""
    return left_out is not None and left_out <= unknowns


Solution = tuple[Float[Array, "p K R"], Bool[Array, " R"]]


@dataclass(frozen=True)
class _Shared:
    """A basis of the cases, and of the rows of the ridge, that all rows share.

    Attributes:
      columns: [n + s, p], the basis itself, or what `inner` makes it of.
      inner: [p, p], with basis = columns @ inner; None where columns are the basis.
      transform: [p, p], with basis = design @ transform.
      deficient: whether the design is rank-deficient, [].
    """

    columns: Float[Array, "m p"]
    inner: Float[Array, "p p"] | None
    transform: Float[Array, "p p"]
    deficient: Bool[Array, ""]

    @property
    def rounds(self) -> int:
        """Of solving and correcting: one more where the products are those of columns that are not orthonormal."""
        return 2 if self.inner is None else 3

    def combined(self, solution: Float[Array, "p K R"]) -> Float[Array, "m K R"]:
        """The basis times solutions."""
        inside = solution if self.inner is None else jnp.einsum("pq,qkr->pkr", self.inner, solution)
        return jnp.einsum("mp,pkr->mkr", self.columns, inside)

    def projected(self, values: Float[Array, "m K R"]) -> Float[Array, "p K R"]:
        """The transposed basis times values."""
        found = jnp.einsum("mp,mkr->pkr", self.columns, values)
        return found if self.inner is None else jnp.einsum("qp,qkr->pkr", self.inner, found)

    def solver(self, w: Float[Array, "R n"], n: int, left_out: int | None) -> Solve:
        """Solver of (basis' W basis) z = b for all rows of w, in which the rows of the ridge have weight 1."""
        if left_out is None or left_out > self.columns.shape[1]:
            return _eliminated(self, w, n, left_out)
        return downdated(self.columns[:n] if self.inner is None else self.columns[:n] @ self.inner, w, left_out)


def with_basis(a: Float[Array, "m p"], solve: Callable[[_Shared], Solution]) -> Solution:
    """What is solved in an orthonormal basis of a [m, p].

    Where there is much to do and a is not ill-conditioned, the basis is not written out: products of a and of
    Cholesky's factor of a' a stand for it, and one round more of refinement corrects what they lose. The choice is
    around all that is solved, since a choice between two bases would copy them.
    """

    def carefully() -> Solution:
        basis, triangle, deficient = orthonormal(a)
        transform = back_substitute(triangle, jnp.eye(len(triangle), dtype=a.dtype))
        return solve(_Shared(basis, None, transform, deficient))

    if a.size < MUCH:
        return carefully()
    root, ill = inverse_root_if_easy(gram(a))
    return lax.cond(in_any_row(ill), carefully, lambda: solve(_Shared(a, root, root, jnp.zeros((), bool))))


def of_rows(basis: _Shared, y: Float[Array, "n K"], w: Float[Array, "R n"], left_out: int | None) -> Solution:
    """Coefficients of the scaled columns for R weightings, and which of them to trust."""
    solve = basis.solver(w, len(y), left_out)
    unit = binary_unit(jnp.max(jnp.abs(y)))

    def refine(_, state: Refined) -> Refined:
        combined = basis.combined(state.solution)
        residual = (y[:, :, None] - combined[: len(y)]) * w.T[:, None, :]
        correction = solve(basis.projected(jnp.concatenate([residual, -combined[len(y) :]])))
        return Refined(state.solution + correction, correction)

    # The first round solves, others correct: the last moves a solution that can be trusted by less than the root of the
    # rounding, so the error that is left is a rounding.
    nothing = jnp.zeros((basis.columns.shape[1], y.shape[1], len(w)), y.dtype)
    solution, correction = lax.fori_loop(0, basis.rounds, refine, Refined(nothing, nothing))
    size, moved = (jnp.sum(jnp.square(v / unit), axis=(0, 1)) for v in (solution, correction))
    trusted = (moved <= jnp.finfo(y.dtype).eps * size) & ~basis.deficient
    return jnp.einsum("pq,qkr->pkr", basis.transform, solution), trusted


def _eliminated(basis: _Shared, w: Float[Array, "R n"], n: int, left_out: int | None) -> Solve:
    """Solver of (basis' W basis) z = b by the matrix of each row."""
    cases, penalty = basis.columns[:n], basis.columns[n:]
    p, constant = cases.shape[1], penalty.T @ penalty
    if left_out is not None:
        grams = gram(basis.columns)[None] - of_left_out(cases, w, left_out)
    elif p <= UNROLL:
        products = (cases[:, :, None] * cases[:, None, :]).reshape(n, p * p)
        last = (products.T @ w.T).reshape(p, p, len(w)) + constant[:, :, None]
        if basis.inner is None:
            return eliminated(last)
        grams = jnp.moveaxis(last, -1, 0)
    else:
        grams = weighted_grams(cases, w) + constant[None]
    if basis.inner is not None:
        grams = jnp.einsum("qp,rqt,tu->rpu", basis.inner, grams, basis.inner)
    return eliminated(jnp.moveaxis(grams, 0, -1))
