"""Learners whose inputs are scaled by how closely they go with the targets."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from jaxgen.learn.network.descent import relative
from jaxgen.learn.wrap.wrapper import Changing, Entered
from jaxgen.types import Data, Freedom, Key, Plan
from jaxgen.types.numbers import require_number


class ScaledFit(NamedTuple):
    """Parameters of a learner and the factors of its inputs, [D]."""

    base: PyTree
    factors: Float[Array, "*S D"]


@dataclass(frozen=True, repr=False)
class Scaled(Changing):
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

    @property
    def freedom(self) -> Freedom:
        """Another unit of the targets, if the learner inside does not mind: the factors depend on the inputs' origins
        and units, and on the targets' origin.
        """
        return Freedom(y_scale=self.inside.freedom.y_scale)

    def enter(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Entered:
        """The cases with scaled inputs [n, D]."""
        own = ScaledFit(None, self._factors(x, y, w))
        return Entered(own, key, self.inputs_inside(own, x), y, w)

    def inputs_inside(self, params: ScaledFit, x: Float[Array, "m D"]) -> Float[Array, "m D"]:
        """Inputs [m, D] times their factors."""
        return x * params.factors[None]

    def diagnose(self, params: ScaledFit) -> dict[str, Array]:
        """The factors of the inputs, [D], and what the learner inside says, each [...]."""
        return {**super().diagnose(params), "factors": params.factors}

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses a floor outside (0, 1], and what the learner inside refuses.

        Raises:
          ValueError: the floor is out of range, or as the learner inside says.
        """
        require_number("the floor of Scaled", self.floor, above=0, most=1, advice="Neal 1998 uses 0.01")
        super().check(data, plan)

    def _factors(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Float[Array, " D"]:
        """Of inputs that must come as they are, 1."""
        used = (w > 0)[:, None]
        products = jnp.matmul(jnp.where(used, x * w[:, None], 0).T, jnp.where(used, y, 0), precision="highest")
        raw = jnp.asarray([i in self.raw_inputs for i in range(x.shape[1])])
        sizes = jnp.where(raw, 0, jnp.sum(jnp.square(products), axis=1))
        return jnp.where(raw, 1, jnp.maximum(jnp.sqrt(relative(sizes)), self.floor))
