"""What ridge regressions of many rows, in units of each row, start from: products of their cases, or of all cases."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from jaxgen.learn.grams import gram, weighted_grams
from jaxgen.types import RowUnits


class Products(NamedTuple):
    """Weighted products of R weightings of the same cases, centred where the model has an intercept.

    Attributes:
      w: weights, [R, n].
      total: their sums, [R].
      share: of a case of weight 1 in the mean that was taken off, [R]; 0 without an intercept.
      x, y: the cases less the means of all of them, [n, D] and [n, K].
      x_centre, y_centre: those means, [D] and [K].
      x_mean, y_mean: of the cases of each row after that, [R, D] and [R, K]; 0 without an intercept.
      slope: x' W y about the means of the row, [R, D, K].
    """

    w: Float[Array, "R n"]
    total: Float[Array, " R"]
    share: Float[Array, " R"]
    x: Float[Array, "n D"]
    y: Float[Array, "n K"]
    x_centre: Float[Array, " D"]
    y_centre: Float[Array, " K"]
    x_mean: Float[Array, "R D"]
    y_mean: Float[Array, "R K"]
    slope: Float[Array, "R D K"]

    @classmethod
    def of(cls, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, "R n"], intercept: bool) -> "Products":
        """Of cases [n, D], [n, K] and weights [R, n]."""
        x_centre, y_centre = (jnp.mean(a, axis=0) if intercept else jnp.zeros_like(a[0]) for a in (x, y))
        x, y = x - x_centre[None], y - y_centre[None]
        total = jnp.sum(w, axis=1)
        share = 1 / total if intercept else jnp.zeros_like(total)
        x_mean, y_mean = ((w @ a) * share[:, None] for a in (x, y))
        heavy = total[:, None] * x_mean
        slope = jnp.einsum("nd,rn,nk->rdk", x, w, y) - heavy[:, :, None] * y_mean[:, None]
        return cls(w, total, share, x, y, x_centre, y_centre, x_mean, y_mean, slope)

    def gram(self, left_out: int | None) -> tuple[Float[Array, "R D D"], Float[Array, "R D"]]:
        """x' W x about the means of each row, [R, D, D], and the numbers of which its diagonal is a difference, [R, D];
        `left_out` as for `Learner.fit_rows`.
        """
        if left_out is None:
            whole = weighted_grams(self.x, self.w)
            largest = jnp.diagonal(whole, axis1=1, axis2=2)
        else:
            every = gram(self.x)[None]
            whole = every - of_left_out(self.x, self.w, left_out)
            largest = jnp.broadcast_to(jnp.diagonal(every, axis1=1, axis2=2), self.x_mean.shape)
        return whole - (self.total[:, None] * self.x_mean)[:, :, None] * self.x_mean[:, None], largest

    def residual(self, weights: Float[Array, "R D K"]) -> Float[Array, "R n K"]:
        """Targets less predictions, [R, n, K], with these weights and the intercepts that belong to them."""
        at_mean = self.y_mean - jnp.einsum("rd,rdk->rk", self.x_mean, weights)
        return self.y[None] - at_mean[:, None] - jnp.einsum("nd,rdk->rnk", self.x, weights)

    def projected(self, values: Float[Array, "R n K"]) -> Float[Array, "R D K"]:
        """x' W values about the means of the row, [R, D, K]."""
        weighted = self.w[:, :, None] * values
        return (
            jnp.einsum("nd,rnk->rdk", self.x, weighted) - self.x_mean[:, :, None] * jnp.sum(weighted, axis=1)[:, None]
        )

    def in_units(
        self, weights: Float[Array, "R D K"], units: RowUnits
    ) -> tuple[Float[Array, "R D K"], Float[Array, "R K"]]:
        """Weights [R, D, K] in the units of the data, of weights for inputs and targets in units of each row; and the
        intercepts [R, K] that belong to the latter.
        """
        outside = weights * units.y_scale[:, None] / units.x_scale[:, :, None]
        shift = units.x_centre - self.x_centre[None] - self.x_mean
        at_centre = self.y_centre[None] + self.y_mean + jnp.einsum("rd,rdk->rk", shift, outside)
        return outside, (at_centre - units.y_centre) / units.y_scale


def plain_units(x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, "R n"]) -> RowUnits:
    """Those of the data [n, D], [n, K] themselves, for every row of weights [R, n]."""
    sizes = (len(w), x.shape[1]), (len(w), y.shape[1])
    return RowUnits(*(jnp.full(size, value, x.dtype) for size in sizes for value in (0, 1)))


def of_left_out(cases: Float[Array, "n p"], w: Float[Array, "R n"], left_out: int) -> Float[Array, "R p p"]:
    """Gram matrices [R, p, p] of the cases of weight 0 of each row, where the others have weight 1."""

    def of_row(where: Int[Array, " m"]) -> Float[Array, "p p"]:
        absent = cases.at[where].get(mode="fill", fill_value=0)
        return gram(absent)

    return lax.map(of_row, left_out_cases(w, left_out))


def left_out_cases(w: Float[Array, "R n"], left_out: int) -> Int[Array, "R m"]:
    """Numbers [R, m] of the cases of weight 0 of each row, in order; n where a row leaves out fewer."""
    return jax.vmap(lambda w: jnp.nonzero(w == 0, size=left_out, fill_value=len(w))[0])(w)
