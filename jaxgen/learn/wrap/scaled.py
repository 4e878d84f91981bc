"""Learners whose inputs are scaled by how closely they go with the targets."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from jaxgen.learn.network.descent import relative
from jaxgen.learn.network.iterative import Watched
from jaxgen.learn.wrap.wrapper import Wrapper
from jaxgen.types import Data, Key, Params, Plan


class ScaledFit(NamedTuple):
    """Parameters of a learner and the factors of its inputs, [D]."""

    base: Params
    factors: Float[Array, "*S D"]


@dataclass(frozen=True, repr=False)
class Scaled(Wrapper):
    """A learner whose inputs are multiplied by f_i = max(floor, C_i^2 / max C^2), C_i = sum_c x_i t over its training
    cases (Neal 1998, section 3.6).

    Several outputs count by the root sum of squares of their C. Inputs and targets should be normalised before:
    `Normalised(Scaled(EarlyStopped(Descent())))` is mlp-bgd-3 as the notes in Neal's archive describe it, with C_i
    from all training cases, those for validation included. In the paper C_i is from the cases of estimation, which is
    `EarlyStopped(Scaled(Descent()))`, the same as `EarlyStopped(Descent(relevance="correlation"))`.

    Attributes:
      base: the learner.
      floor: the least factor.
    """

    floor: float = 0.01

    def fit(
        self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], start: PyTree = None
    ) -> ScaledFit:
        """The learner inside, trained on scaled inputs; `start` is for it."""
        factors = self._factors(x, y, w)
        extra = {} if start is None else {"start": start}
        return ScaledFit(self.base.fit(key, x * factors[None], y, w, **extra), factors)

    def watched(
        self, key: Key, x, y, w, watch, patience: int | float | None = None, stretch: float = 1.0, start: PyTree = None
    ) -> Watched:
        """The best of the networks that the learner inside saves; see `Descent.watched`, errors [S]."""
        factors = self._factors(x, y, w)
        found = self.base.watched(
            key,
            x * factors[None],
            y,
            w,
            lambda params, iteration: watch(ScaledFit(params, factors), iteration),
            patience,
            stretch,
            start,
        )
        return found._replace(best=ScaledFit(found.best, factors))

    def predict(self, params: ScaledFit, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets, in the units of y."""
        return self.base.predict(params.base, x * params.factors[None])

    def failure(self, params: ScaledFit) -> Int[Array, ""]:
        """As of the learner inside, []."""
        return self.base_failure(params.base)

    def diagnose(self, params: ScaledFit) -> dict[str, Array]:
        """The factors of the inputs, [D], and what the learner inside says, each [...]."""
        return {**self.base_diagnose(params.base), "factors": params.factors}

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses a floor outside (0, 1], and what the learner inside refuses.

        Raises:
          ValueError: the floor is out of range, or as the learner inside says.
        """
        if not 0 < self.floor <= 1:
            raise ValueError(f"expected a floor above 0 and at most 1, got {self.floor}; Neal 1998 uses 0.01")
        super().check(data, plan)

    def _factors(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Float[Array, " D"]:
        """Of inputs that must come as they are, 1."""
        used = (w > 0)[:, None]
        products = jnp.where(used, x * w[:, None], 0).T @ jnp.where(used, y, 0)
        raw = jnp.asarray([i in self.raw_inputs for i in range(x.shape[1])])
        sizes = jnp.where(raw, 0, jnp.sum(jnp.square(products), axis=1))
        return jnp.where(raw, 1, jnp.maximum(jnp.sqrt(relative(sizes)), self.floor))
