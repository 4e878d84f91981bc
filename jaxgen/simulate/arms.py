"""What the simulated robot arms share: their names, their inputs, and the noise on them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxgen.simulate.simulation import Simulator, as_inputs
from jaxgen.types import Key

_BATCH = 4096
"""Cases that are computed at once: enough to fill the processor, few enough for its cache."""


@dataclass(frozen=True, eq=False)
class Arm:
    """One data set of a family of robot arms.

    Attributes:
      target: noise-free target of one case, from its inputs [D].
      names: the D names of the inputs.
      low, high: the inputs are independent and uniform between these, [D].
      disturb: random numbers of mean 0 and variance 1 from (key, shape, dtype).
      spread: standard deviation of the noise that is added to each input before the target is computed, [D].
      rest: standard deviation of Gaussian noise that is added to the target itself.
    """

    target: Callable[[Float[Array, " D"]], Float[Array, ""]]
    names: tuple[str, ...]
    low: Float[np.ndarray, " D"]
    high: Float[np.ndarray, " D"]
    disturb: Callable[..., Float[Array, "..."]]
    spread: Float[np.ndarray, " D"]
    rest: float = 0.0

    @cached_property
    def simulator(self) -> Simulator:
        """The same as the three functions that make data sets."""
        return Simulator(self._draw, self._observe, lambda x: over_cases(self.target, x))

    def _draw(self, key: Key, n: int) -> Float[Array, "n D"]:
        low, high = jnp.asarray(self.low), jnp.asarray(self.high)
        return jax.random.uniform(key, (n, len(self.low)), low.dtype, low[None], high[None])

    def _observe(self, key: Key, x: Float[Array, "n D"]) -> Float[Array, " n"]:
        inputs, output = jax.random.split(key)
        shaken = x + self.disturb(inputs, x.shape, x.dtype) * jnp.asarray(self.spread)[None]
        return over_cases(self.target, shaken) + self.rest * jax.random.normal(output, x.shape[:1], x.dtype)


def over_cases(target: Callable[[Float[Array, " D"]], Float[Array, ""]], x: Float[Array, "n D"]) -> Float[Array, " n"]:
    """Targets of all cases, [n], in batches of one size, so that one program serves all numbers of cases."""
    n, d = x.shape
    padded = jnp.pad(x, ((0, -n % _BATCH), (0, 0)), mode="edge").reshape(-1, _BATCH, d)
    return jnp.concatenate([_batched(target, batch) for batch in padded])[:n]


@partial(jax.jit, static_argnums=0)
def _batched(
    target: Callable[[Float[Array, " D"]], Float[Array, ""]], x: Float[Array, "size D"]
) -> Float[Array, " size"]:
    return jax.vmap(target)(x)


def uniform(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Float[Array, "..."]:
    """Uniform numbers of mean 0 and variance 1, between -sqrt(3) and sqrt(3), an array [*shape]."""
    return jax.random.uniform(key, shape, dtype, -np.sqrt(3.0), np.sqrt(3.0))


def targets(
    target: Callable[[Float[Array, " D"]], Float[Array, ""]], x: Float[np.ndarray, "*N D"]
) -> Float[np.ndarray, "*N"]:
    """Noise-free targets [*N] of given inputs [*N, D], in double precision.

    Raises:
      ValueError: neither 8 nor 32 inputs, no case, or no real numbers.
    """
    inputs = as_inputs(x)
    with jax.enable_x64(True):
        flat = jnp.asarray(inputs.reshape(-1, inputs.shape[-1]))
        return np.asarray(over_cases(target, flat)).reshape(inputs.shape[:-1])
