"""What a simulator of a family of tasks returns, and how all of them are run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxgen.types import Data, Key, keys
from jaxgen.types.memory import require_memory
from jaxgen.types.numbers import require, require_one_of, shown

_PAIRS = 1 << 16
"""Fresh cases, each simulated twice, that the irreducible loss is estimated from."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """Data sets from a simulator, and what is known of them.

    Attributes:
      name: DELVE's name of the data set, such as "kin-8nm"; it ends in "-like" where the original simulator is not
        known.
      data: x [*Q, N, D], y [*Q, N, 1].
      noise_free: the targets of the same inputs without noise, [*Q, N, 1].
      irreducible: expected squared loss of the best of all predictions, E Var(y | x), in squared units of the target.
      irreducible_error: standard error of `irreducible`, which is estimated from fresh cases.
      variance: variance of the target over those cases; irreducible / variance is the standardised irreducible loss.
    """

    name: str
    data: Data
    noise_free: Float[np.ndarray, "*Q N 1"]
    irreducible: float
    irreducible_error: float
    variance: float


@dataclass(frozen=True)
class Simulator:
    """A family of tasks as three functions, each of all cases at once, in double precision.

    Attributes:
      draw: inputs [n, D] from (key, n).
      observe: noisy targets [n] from (key, x [n, D]).
      ideal: targets without noise [n] from x [n, D].
      pairs: cases that the irreducible loss is estimated from.
    """

    draw: Callable[[Key, int], Float[Array, "n D"]]
    observe: Callable[[Key, Float[Array, "n D"]], Float[Array, " n"]]
    ideal: Callable[[Float[Array, "n D"]], Float[Array, " n"]]
    pairs: int = _PAIRS

    def run(self, key: Key, name: str, names: tuple[str, ...], target: str, n: int, sets: int | None) -> Simulation:
        """Q data sets of n cases; independent cases, so that all sets are drawn as one.

        The least loss of all predictions is E Var(y | x), and of two targets y, y' of the same inputs half the squared
        difference has the mean Var(y | x). So it is estimated without knowing E(y | x), which is not the target
        without noise where the noise acts on the inputs.

        Raises:
          TypeError: the key is no typed key.
          ValueError: a count that is no whole number of at least 1.
          MemoryError: so many cases would not fit into memory.
        """
        keys.require(key)
        lead = (require("n", n, 1),) if sets is None else (require("sets", sets, 1), require("n", n, 1))
        total = math.prod(lead)
        needed = 8 * (total + 2 * self.pairs) * (4 * len(names) + 8)
        require_memory(f"{total:,} cases", needed, "ask for fewer cases or data sets")
        with jax.enable_x64(True):
            inputs, noise, others = (jax.random.fold_in(key, number) for number in range(3))
            x, fresh = self.draw(inputs, total), self.draw(others, self.pairs)
            # All in one call: one program, and noise that is independent for the two targets of a fresh case.
            observed = np.asarray(self.observe(noise, jnp.concatenate([x, fresh, fresh])))
            ideal = np.asarray(self.ideal(x))
        y, first, second = np.split(observed, [total, total + self.pairs])
        half_squares = np.square(first - second) / 2
        data = Data(np.asarray(x).reshape(*lead, -1), y.reshape(*lead, 1), names, target).checked()
        error = half_squares.std(ddof=1) / np.sqrt(self.pairs)
        return Simulation(
            name, data, ideal.reshape(*lead, 1), float(half_squares.mean()), float(error), float(first.var())
        )


def kind_of(inputs: int, linearity: str, noise: str) -> str:
    """The end of DELVE's name of a data set, such as 8nm.

    Raises:
      ValueError: no such data set.
    """
    require_one_of("inputs", inputs, (8, 32))
    require_one_of('linearity ("f" fairly linear, "n" non-linear)', linearity, ("f", "n"))
    require_one_of('noise ("m" medium, "h" high)', noise, ("m", "h"))
    return f"{inputs}{linearity}{noise}"


def as_inputs(x: Any) -> Float[np.ndarray, "*N D"]:
    """Given inputs of a family, [*N, 8] or [*N, 32], in double precision.

    Raises:
      ValueError: neither 8 nor 32 inputs, no case, or no real numbers.
    """
    try:
        array = np.asarray(x)
    except ValueError:  # rows of different lengths
        array = np.zeros(0)
    if array.size == 0 or array.ndim == 0 or array.shape[-1] not in (8, 32):
        raise ValueError(
            "expected x [..., D] with D of 8 or 32 inputs and at least one case, got "
            f"{shown(x)}; give every case all inputs of the family"
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"expected x as real numbers, got {shown(x)} of {array.dtype}; convert them first")
    return array.astype(np.float64)
