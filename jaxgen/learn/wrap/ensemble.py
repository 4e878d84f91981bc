"""Members trained on the same cases, whose predictions are averaged."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from jaxgen.learn.batched import over_members
from jaxgen.learn.wrap.wrapper import Wrapper
from jaxgen.types import Data, Key, Params, Plan
from jaxgen.types.keys import several
from jaxgen.types.numbers import require
from jaxgen.types.predictive import Mixture, joined


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

    @property
    def accepts_missing(self) -> bool:
        """As of the learner inside."""
        return self.inside.accepts_missing

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Params:
        """The members, every array with a leading axis [M]."""
        return self.fit_from(None, key, x, y, w)

    def fit_from(
        self, start: PyTree, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]
    ) -> Params:
        """The members, every array with a leading axis [M], from start parameters with such an axis."""

        def member(member_key, member_start, x, y, w):
            return self.inside.fit_from(member_start, member_key, x, y, w)

        keys, starts = several(key, self.members), None if start is None else 0
        if y.shape[1] > 1:  # with one output it would only repeat the cases
            return over_members(member, (keys, start), (x, y, w))
        return jax.vmap(member, in_axes=(0, starts, None, None, None))(keys, start, x, y, w)

    def predict(self, params: Params, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Mean of the members' predictions, in the units of y."""
        return jnp.mean(jax.vmap(lambda member: self.inside.predict(member, x))(params), axis=0)

    def predictive(self, params: Params, x: Float[Array, "m D"]) -> Mixture | None:
        """What the members believe of cases [m, D], taken together."""
        found = jax.vmap(lambda member: self.inside.predictive(member, x))(params)
        return None if found is None else joined(found)

    def failure(self, params: Params) -> Int[Array, ""]:
        """The first failure of a member, [], 0 if there is none: a mean over some of the members would be another
        method.
        """
        codes = jax.vmap(lambda member: jnp.asarray(self.inside.failure(member), jnp.int32))(params)
        return codes[jnp.argmax(codes > 0)]

    def diagnose(self, params: Params) -> dict[str, Array]:
        """What the members say, each [M, ...]."""
        return jax.vmap(self.inside.diagnose)(params)

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses an ensemble of none, and what the learner inside refuses.

        Raises:
          ValueError: fewer than one member, or as the learner inside says.
        """
        require("the members of Ensemble", self.members, 1)
        super().check(data, plan)
