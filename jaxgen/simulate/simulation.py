"""What a simulator of a family of tasks returns, and how all of them are run."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxgen.types import Data, Key, keys

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

        Raises:
          TypeError: the key is no typed key.
          ValueError: a count below 1.
        """
        keys.require(key)
        if min(n, 1 if sets is None else sets) < 1:
            raise ValueError(f"expected n and sets of at least 1, got n={n} and sets={sets}; ask for some cases")
        lead = (n,) if sets is None else (sets, n)
        total = int(np.prod(lead))
        with jax.enable_x64(True):
            inputs, noise, others = (jax.random.fold_in(key, number) for number in range(3))
            x, fresh = self.draw(inputs, total), self.draw(others, self.pairs)
            observed = np.asarray(self.observe(noise, jnp.concatenate([x, fresh, fresh])))
            ideal = np.asarray(self.ideal(x))
        y, first, second = np.split(observed, [total, total + self.pairs])
        half_squares = np.square(first - second) / 2
        data = Data(np.asarray(x).reshape(*lead, -1), y.reshape(*lead, 1), names, target).checked()
        error = half_squares.std(ddof=1) / np.sqrt(self.pairs)
        return Simulation(
            name, data, ideal.reshape(*lead, 1), float(half_squares.mean()), float(error), float(first.var())
        )


def require(inputs: int, linearity: str, noise: str) -> str:
    """The end of DELVE's name of a data set, such as 8nm.

    Raises:
      ValueError: no such data set.
    """
    if inputs not in (8, 32) or linearity not in ("f", "n") or noise not in ("m", "h"):
        raise ValueError(
            'expected inputs of 8 or 32, linearity "f" (fairly linear) or "n" (non-linear) and noise "m" '
            '(medium) or "h" (high), '
            f"got inputs={inputs!r}, linearity={linearity!r}, noise={noise!r}; choose one data set of the family"
        )
    return f"{inputs}{linearity}{noise}"
