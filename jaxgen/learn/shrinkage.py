"""One decomposition of a training set that serves ridge regressions of all penalties."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxgen.learn.bases import orthonormal


class Shrinkage(NamedTuple):
    """The singular values of a weighted, centred training set, and what ridge regressions need beside them.

    Attributes:
      left: left singular vectors, [n, p].
      values: singular values of the inputs, each case multiplied by the root of its weight, [p].
      right: right singular vectors, [p, D].
      target: centred targets times the root of their weights, [n, K].
      share: of each case in the mean that was taken off, [n]; 0 without an intercept.
      weight: of each case, [n]; 1 for those that are absent.
      total: sum of the weights, [].
      x_mean, y_mean: what was taken off, [D] and [K].
      deficient: whether the inputs are linearly dependent, [].
    """

    left: Float[Array, "n p"]
    values: Float[Array, " p"]
    right: Float[Array, "p D"]
    target: Float[Array, "n K"]
    share: Float[Array, " n"]
    weight: Float[Array, " n"]
    total: Float[Array, ""]
    x_mean: Float[Array, " D"]
    y_mean: Float[Array, " K"]
    deficient: Bool[Array, ""]

    @classmethod
    def of(cls, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], intercept: bool) -> "Shrinkage":
        """Of cases [n, D], [n, K] of weights [n], centred where the model has an intercept."""
        used, total = (w > 0)[:, None], jnp.sum(w)
        x, y = jnp.where(used, x, 0), jnp.where(used, y, 0)
        share = w / total if intercept else jnp.zeros_like(w)
        x_mean, y_mean = share @ x, share @ y
        root = jnp.sqrt(w)[:, None]
        basis, triangle, deficient = orthonormal(root * (x - x_mean[None]))
        inner, values, right = jnp.linalg.svd(triangle)
        target = root * (y - y_mean[None])
        weight = jnp.where(w > 0, w, 1)
        return cls(basis @ inner, values, right, target, share, weight, total, x_mean, y_mean, deficient)

    def coefficients(self, ridge: Float[Array, ""]) -> tuple[Float[Array, "D K"], Float[Array, " K"]]:
        """Weights [D, K] and intercept [K] for one penalty, [], those of least norm for none."""
        weights = self.right.T @ (self._inverse(ridge)[:, None] * (self.left.T @ self.target))
        return weights, self.y_mean - self.x_mean @ weights

    def leave_one_out(self, ridge: Float[Array, ""]) -> Float[Array, ""]:
        """Mean squared leave-one-out loss for one penalty, [], summed over the targets.

        The residual of a case that is left out is e / (1 - h), h its share in its own prediction (Allen 1974, "The
        relationship between variable selection and data augmentation and a method for prediction"). A case of weight 2
        is two cases, of which one is left out.
        """
        residual, kept = self._residual(ridge)
        own = self.share + jnp.square(self.left) @ kept
        return jnp.sum(jnp.square(residual / (1 - own / self.weight)[:, None])) / self.total

    def gcv(self, ridge: Float[Array, ""]) -> Float[Array, ""]:
        """Generalized cross-validation for one penalty, []: mean squared residual, summed over the targets, divided by
        (1 - tr H / n)^2 (Golub, Heath & Wahba 1979, "Generalized cross-validation as a method for choosing a good ridge
        parameter", eq. 1.4); the intercept counts in the trace of the hat matrix H.
        """
        residual, kept = self._residual(ridge)
        effective = jnp.sum(kept) + jnp.sum(self.share)
        return jnp.sum(jnp.square(residual)) / self.total / jnp.square(1 - effective / self.total)

    def _residual(self, ridge: Float[Array, ""]) -> tuple[Float[Array, "n K"], Float[Array, " p"]]:
        """Residuals of the weighted cases, and the share of each direction that a penalty leaves."""
        kept = self.values * self._inverse(ridge)
        return self.target - self.left @ (kept[:, None] * (self.left.T @ self.target)), kept

    def _inverse(self, ridge: Float[Array, ""]) -> Float[Array, " p"]:
        """s / (s^2 + ridge); without a ridge 0 for the singular values that are rounding."""
        rounding = max(len(self.left), len(self.values)) * float(jnp.finfo(self.values.dtype).eps)
        some = (ridge > 0) | (self.values > rounding * self.values[:1])
        return jnp.where(some, self.values / jnp.where(some, jnp.square(self.values) + ridge, 1), 0)
