"""Training on the cases and on transformed copies of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from jaxgen.learn.network.iterative import Watched
from jaxgen.learn.wrap.early_stopped import EarlyStopped
from jaxgen.learn.wrap.wrapper import Wrapper, held
from jaxgen.types import Data, Key, Params, Plan


@dataclass(frozen=True, repr=False)
class Augmented(Wrapper):
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

    def fit(
        self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], start: PyTree = None
    ) -> Params:
        """The learner inside, trained on (1 + copies) n cases; `start` is for it."""
        copy_key, fit_key = jax.random.split(key)
        extra = {} if start is None else {"start": start}
        return self.base.fit(fit_key, *self._enlarged(copy_key, x, y, w), **extra)

    def watched(
        self,
        key,
        x,
        y,
        w,
        watch: Callable[[Params, Any], Float[Array, ""]],
        patience: int | float | None = None,
        stretch: float = 1.0,
        start: PyTree = None,
    ) -> Watched:
        """The best of the networks that the learner inside saves; see `Descent.watched`, errors [S]."""
        copy_key, fit_key = jax.random.split(key)
        return self.base.watched(fit_key, *self._enlarged(copy_key, x, y, w), watch, patience, stretch, start)

    def predict(self, params: Params, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """As of the learner inside."""
        return self.base.predict(params, x)

    def failure(self, params: Params) -> Int[Array, ""]:
        """As of the learner inside, []."""
        return self.base_failure(params)

    def diagnose(self, params: Params) -> dict[str, Array]:
        """As of the learner inside, each [...]."""
        return self.base_diagnose(params)

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses no copies, a function that does not return a case, and what the learner inside refuses.

        Raises:
          ValueError: fewer than one copy, a changed case of other shapes, or as the learner inside says.
        """
        if self.copies < 1:
            raise ValueError(f"expected at least 1 copy, got {self.copies}; use the learner inside without Augmented")
        if any(isinstance(held, EarlyStopped) for held in held(self)):
            raise ValueError(
                "expected Augmented inside EarlyStopped, got it outside, where copies of validation cases "
                "would be trained on; write EarlyStopped(Augmented(...))"
            )
        x, y = jax.ShapeDtypeStruct((data.d,), jnp.float32), jax.ShapeDtypeStruct(data.y.shape[-1:], jnp.float32)
        made = jax.tree.map(
            lambda a: a.shape, jax.eval_shape(self.augment, jax.eval_shape(lambda: jax.random.key(0)), x, y)
        )
        if made != (x.shape, y.shape):
            raise ValueError(
                f"expected augment to return a case (x {list(x.shape)}, y {list(y.shape)}), got {made}; "
                "return both, of unchanged shapes"
            )
        super().check(data, plan)

    def _enlarged(
        self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]
    ) -> tuple[Array, Array, Array]:
        """The cases and their copies; those of a case depend on its place among the cases in use."""

        def copies(place, x, y):
            return jax.vmap(lambda k: self.augment(k, x, y))(
                jax.random.split(jax.random.fold_in(key, place), self.copies)
            )

        more_x, more_y = jax.vmap(copies, out_axes=1)(jnp.cumsum(w > 0), x, y)
        return (
            jnp.concatenate([x[None], more_x]).reshape(-1, x.shape[1]),
            jnp.concatenate([y[None], more_y]).reshape(-1, y.shape[1]),
            jnp.tile(w, 1 + self.copies),
        )
