"""What all learners that hold a learner pass on to it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxgen.types import Data, Learner, Params, Plan


def held(learner: Any) -> Iterator[Any]:
    """The learners that a learner holds, the outermost first."""
    while (learner := getattr(learner, "base", None)) is not None:
        yield learner


@dataclass(frozen=True, repr=False)
class Wrapper(Learner):
    """What all wrappers pass on to the learner they hold."""

    base: Any = None

    @property
    def classifies(self) -> bool:
        """Whether targets must be zeros and ones."""
        return getattr(self.base, "classifies", False)

    @property
    def raw_inputs(self) -> tuple[int, ...]:
        """Inputs that must come as they are in the data."""
        return getattr(self.base, "raw_inputs", ())

    @property
    def failures(self) -> tuple[str, ...]:
        """The sentences of the learner inside."""
        return getattr(self.base, "failures", ())

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses what the learner inside refuses.

        Raises:
          TypeError: there is no learner inside.
          ValueError: as that learner says.
        """
        if isinstance(self.base, type) or not (hasattr(self.base, "fit") and hasattr(self.base, "predict")):
            raise TypeError(
                f"expected {type(self).__name__} to hold a learner, got {self.base!r}; "
                f"write for example {type(self).__name__}(learn.Descent())"
            )
        if hasattr(self.base, "check"):
            self.base.check(data, plan)

    def base_failure(self, params: Params) -> Int[Array, ""]:
        """What the learner inside says of its parameters, []."""
        return getattr(self.base, "failure", lambda p: jnp.zeros((), jnp.int32))(params)

    def base_diagnose(self, params: Params) -> dict[str, Array]:
        """What the learner inside has to tell of its parameters, each [...]."""
        return getattr(self.base, "diagnose", lambda p: {})(params)
