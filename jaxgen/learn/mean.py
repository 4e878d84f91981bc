"""The mean of the training targets, as a baseline."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxgen.types import Freedom, Key, Learner, Minimum


@dataclass(frozen=True, repr=False)
class Mean(Learner):
    """The weighted mean of the training targets, whatever the inputs: the model with an intercept only."""

    predicts: ClassVar[str] = "means"
    freedom: ClassVar[Freedom] = Freedom(x_shift=True, x_scale=True, y_shift=True, y_scale=True)
    accepts_missing: ClassVar[bool] = True

    def fit(
        self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]
    ) -> Float[Array, " K"]:
        """Weighted mean of y, [K]; `key` and `x` are not used."""
        return jnp.matmul(w, jnp.where((w > 0)[:, None], y, 0), precision="highest") / jnp.sum(w)

    def predict(self, params: Float[Array, " K"], x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """The mean for every case, in the units of y."""
        return jnp.broadcast_to(params[None], (len(x), len(params)))

    def minimised(self, params: Float[Array, " K"]) -> Minimum:
        """What the mean [K] makes small, for `algebraic.full_fit`: squared errors [n], without a penalty."""
        return (
            params,
            lambda free: free,
            lambda free, x, y: (jnp.sum(jnp.square(y - self.predict(free, x)), axis=1), jnp.zeros((), x.dtype)),
        )
