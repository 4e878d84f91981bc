"""Training on the cases and on transformed copies of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxgen.learn.wrap.early_stopped import EarlyStopped
from jaxgen.learn.wrap.wrapper import Changing, Entered
from jaxgen.types import Data, Freedom, Key, Minimum, Params, Plan
from jaxgen.types.keys import several
from jaxgen.types.numbers import first_line, require, shown


@dataclass(frozen=True, repr=False)
class Augmented(Changing):
    """A learner whose training cases are joined by transformed copies of themselves (Scott & Variyam, "Data
    augmentation").

    The copies are made of the cases that the learner is given to train on, so none is ever among test or validation
    cases; they carry the weights of their originals.

    Attributes:
      base: the learner.
      augment: a function of (key, x [D], y [K]) that returns a changed case (x [D], y [K]).
      copies: copies of every case.
    """

    augment: Callable[..., Any] = lambda key, x, y: (x, y)
    copies: int = 1

    @property
    def freedom(self) -> Freedom:
        """None: the function works in the units of the data."""
        return Freedom()

    def enter(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Entered:
        """All cases [(1 + copies) n, D], the copies after their originals."""
        copy_key, fit_key = several(key, 2)
        return Entered(None, fit_key, *self._enlarged(copy_key, x, y, w))

    def outside(self, own: Any, params: Params) -> Params:
        """The parameters of the learner inside: there are no others."""
        return params

    def inside_of(self, params: Params) -> Params:
        """All of them."""
        return params

    def minimised(self, params: Params) -> Minimum:
        """Refused: training made a sum over the copies small too, and they are gone.

        Raises:
          ValueError: always.
        """
        raise ValueError(
            f"expected a learner whose training cases are those of the data, got {self}, which learned from copies; "
            "resample it, or give full_fit the argument minimised"
        )

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses no copies, a function that does not return a case, and what the learner inside refuses.

        Raises:
          ValueError: fewer than one copy, a changed case of other shapes, or as the learner inside says.
        """
        require("the copies of Augmented", self.copies, 1, advice="use the learner inside without Augmented")
        if any(isinstance(learner, EarlyStopped) for learner in self.held()):
            raise ValueError(
                "expected Augmented inside EarlyStopped, got it outside, where copies of validation cases "
                "would be trained on; write EarlyStopped(Augmented(...))"
            )
        self._check_function(data)
        super().check(data, plan)

    def _check_function(self, data: Data) -> None:
        """Refuses what does not change a case (x [D], y [K]) into such a case."""
        case = (
            f"expected augment as a function of (key, x [{data.d}], y [{data.y.shape[-1]}]) that returns such x and y"
        )
        if not callable(self.augment):
            raise ValueError(f"{case}, got {shown(self.augment)}; give a function")
        x, y = jax.ShapeDtypeStruct((data.d,), jnp.float32), jax.ShapeDtypeStruct(data.y.shape[-1:], jnp.float32)
        key = jax.eval_shape(lambda: jax.random.key(0))
        try:
            changed = jax.eval_shape(self.augment, key, x, y)
        except Exception as error:
            raise ValueError(f"{case}, got {first_line(error)}; mend the function") from error
        shapes = jax.tree.map(lambda a: a.shape, changed)
        if shapes != (x.shape, y.shape):
            raise ValueError(
                f"expected augment to return a case (x {list(x.shape)}, y {list(y.shape)}), got {shapes}; "
                "return both, of unchanged shapes"
            )

    def _enlarged(
        self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]
    ) -> tuple[Float[Array, "m D"], Float[Array, "m K"], Float[Array, " m"]]:
        """The cases and their copies; those of a case depend on its place among the cases in use."""

        def copies(place, x, y):
            copy_keys = several(jax.random.fold_in(key, place), self.copies)
            return jax.vmap(lambda copy_key: self.augment(copy_key, x, y))(copy_keys)

        more_x, more_y = jax.vmap(copies, out_axes=1)(jnp.cumsum(w > 0), x, y)
        return (
            jnp.concatenate([x[None], more_x]).reshape(-1, x.shape[1]),
            jnp.concatenate([y[None], more_y]).reshape(-1, y.shape[1]),
            jnp.tile(w, 1 + self.copies),
        )
