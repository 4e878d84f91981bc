"""Members trained on the same cases, whose predictions are averaged."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxgen.learn.wrap.wrapper import Wrapper
from jaxgen.types import Data, Key, Params, Plan


@dataclass(frozen=True, repr=False)
class Ensemble(Wrapper):
    """Members trained on the same cases with different random numbers; the prediction is their mean.

    `Ensemble(EarlyStopped(base, share=1/3), members=10)` draws a split of its own for each member (Rasmussen 1996, in
    Neal 1998, section 3.3).

    Attributes:
      base: the learner.
      members: how many, M.
    """

    members: int = 10

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Params:
        """The members, every array with a leading axis [M]."""
        return jax.vmap(lambda k: self.base.fit(k, x, y, w))(jax.random.split(key, self.members))

    def predict(self, params: Params, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Mean of the members' predictions, in the units of y."""
        return jnp.mean(jax.vmap(lambda p: self.base.predict(p, x))(params), axis=0)

    def failure(self, params: Params) -> Int[Array, ""]:
        """The first failure of a member, [], 0 if there is none: a mean over some of the members would be another
        method.
        """
        codes = jax.vmap(self.base_failure)(params)
        return codes[jnp.argmax(codes > 0)]

    def diagnose(self, params: Params) -> dict[str, Array]:
        """What the members say, each [M, ...]."""
        return jax.vmap(self.base_diagnose)(params)

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses an ensemble of none, and what the learner inside refuses.

        Raises:
          ValueError: fewer than one member, or as the learner inside says.
        """
        if self.members < 1:
            raise ValueError(f"expected at least 1 member, got {self.members}; give the size of the ensemble")
        super().check(data, plan)
