"""Means of a given number of neighbours, from lists that rows with units of their own share."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.counting import counts_of_nearest, kth
from jaxgen.learn.distances import AT_A_TIME, in_blocks
from jaxgen.learn.nearest import LargestUnits
from jaxgen.types.devices import on_cpu

_FEW_ROWS, _IN_LISTS = 32, 1 << 14
"""Up to so many rows, several cases fill vector registers of a CPU together, with so many distances."""


class GivenNumber(NamedTuple):
    """What is asked for.

    Attributes:
      cases: the cases in the largest units of R rows.
      y: their targets [n, K].
      w: the weights of the rows, [R, n].
      k: how many neighbours.
    """

    cases: LargestUnits
    y: Float[Array, "n K"]
    w: Float[Array, "R n"]
    k: int

    def from_lists(
        self, length: int, at: Int[Array, " m"] | None = None
    ) -> tuple[Float[Array, "m R K"], Bool[Array, "m R"]]:
        """Mean targets of all cases, or of some [m], from lists of so many of the nearest, and which lists are too
        short.
        """
        case, last = self.cases.lists(length, at)
        at = jnp.arange(len(case)) if at is None else at
        rows = len(self.w)
        together = rows <= _FEW_ROWS and on_cpu()
        most = (_IN_LISTS if together else AT_A_TIME) // (length * rows)
        means, ends = in_blocks(self._together if together else self._one_by_one, (at, case), most)
        return means, ~(ends < last) & (jnp.sum(self.w, axis=1) >= self.k)[None]

    def from_all(self, pair: Int[Array, " p"]) -> Float[Array, "p K"]:
        """Mean targets [p, K] of some cases, each in one row, counted through [p], among all cases."""
        at, row = pair // len(self.w), pair % len(self.w)
        apart, weight = self.cases.apart_from_all(at, self.w, row)
        edge = self._edge_of(apart, weight)
        blur = self.cases.blur_of(edge[:, None], at)[:, 0]
        counted = counts_of_nearest(apart, weight, edge, jnp.asarray(self.k, apart.dtype), blur)
        return jnp.matmul(counted.T, self.y, precision="highest") / self.k

    def _together(
        self, block: tuple[Int[Array, " b"], Int[Array, "b M"]]
    ) -> tuple[Float[Array, "b R K"], Float[Array, "b R"]]:
        """Of cases with lists of neighbours: mean targets, and a distance that those which count come up to, infinite
        if there are too few.
        """
        at, case = block[0], block[1].T
        (length, some), rows = case.shape, len(self.w)
        apart, weight = (a.reshape(length, -1) for a in self.cases.apart(at, case, self.w))
        edge = self._edge_of(apart, weight)
        blur = self.cases.blur_of(edge.reshape(some, rows), at).reshape(-1)
        counted = counts_of_nearest(apart, weight, edge, jnp.asarray(self.k, apart.dtype), blur)
        counted = counted.reshape(length, some, rows)
        sums = jnp.einsum("mbr,mbk->brk", counted, self.y[case], precision="highest")
        end = jnp.where(jnp.sum(weight, axis=0) >= self.k, edge + blur, jnp.inf)
        return sums / self.k, end.reshape(some, rows)

    def _one_by_one(
        self, block: tuple[Int[Array, " b"], Int[Array, "b M"]]
    ) -> tuple[Float[Array, "b R K"], Float[Array, "b R"]]:
        """The same, where the rows of a case fill vector registers."""
        found = jax.vmap(lambda at, case: self._together((at[None], case[None])))(*block)
        return jax.tree.map(lambda a: a[:, 0], found)

    def _edge_of(self, apart: Float[Array, "m *S"], weight: Float[Array, "m *S"]) -> Float[Array, "*S"]:
        """How far away the k-th is."""
        return kth(apart, weight, self.k, jnp.max(self.w) <= 1)
