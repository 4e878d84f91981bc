"""Prototasks: what is to be learned from which cases, and how they are divided into tasks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from jaxgen import resample, simulate, store
from jaxgen.delve.methods import require_name
from jaxgen.types import Data, Plan, keys
from jaxgen.types.numbers import require, require_flag, require_kind, shown

SIZES = (64, 128, 256, 512, 1024)
"""DELVE's numbers of training cases."""
CASES = 8192
"""Cases of the data sets of DELVE's families."""
FAMILIES = {"kin": simulate.kin, "pumadyn": simulate.pumadyn, "bank": simulate.bank}
_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Prototask:
    """Cases in a fixed order, with DELVE's conventions for their division (Rasmussen et al. 1996, "The DELVE manual").

    Attributes:
      name: such as "kin-8nm"; letters, digits, dots, hyphens and underscores.
      data: x [N, D], y [N, K].
      sizes: training cases of its tasks.
      instances: of each task at most, I; fewer where the cases do not suffice.
      test_cases: the first cases, which are for tests, T; None takes half of them.
      common: all instances are tested on all T cases, otherwise each on its own block.
      origin: where the cases come from, in words or code.
    Raises:
      TypeError: the data are none.
      ValueError: the name is none for a file, there are several data sets, or a number is none or out of range; or as
        `Data.checked` says.
    """

    name: str
    data: Data
    sizes: tuple[int, ...] = SIZES
    instances: int = 8
    test_cases: int | None = None
    common: bool = False
    origin: str = "given data"

    def __post_init__(self) -> None:
        require_name("a prototask's name", self.name)
        require_kind("data as jaxgen.Data", self.data, Data, "make it with datasets.from_arrays or delve.read_data")
        if self.data.sets is not None:
            raise ValueError(f"expected one data set for a prototask, got {self.data.sets}; choose one, as in data[0]")
        if np.isnan(self.data.checked().x).any():
            raise ValueError(
                f"expected data without missing inputs for a prototask, got {self.data}; fill them in, or leave these "
                "cases out first"
            )
        object.__setattr__(self, "sizes", as_sizes(self.sizes))
        require("instances", self.instances, 1)
        if self.test_cases is not None:
            require("test_cases", self.test_cases, 1, self.data.n - 1, "one less than the cases")
        require_flag("common", self.common)
        if not isinstance(self.origin, str):
            raise ValueError(f"expected the origin in words, got {shown(self.origin)}; say where the cases come from")

    def plan(self, size: int) -> Plan:
        """The task instances of a size, train and test [I, N].

        Raises:
          ValueError: too few cases.
        """
        return resample.task_instances(self.data.n, size, self.instances, self.test_cases, self.common)

    @property
    def checksum(self) -> str:
        """SHA-256 of the cases."""
        return store.checksum(self.data)


def as_sizes(sizes: Any) -> tuple[int, ...]:
    """Different numbers of training cases, one or more.

    Raises:
      ValueError: none, no whole numbers of at least 1, or one twice.
    """
    if isinstance(sizes, str) or not isinstance(sizes, Sequence | np.ndarray) or len(sizes) == 0:
        raise ValueError(f"expected sizes as a list of training cases, got {shown(sizes)}; give for example (64, 128)")
    counts = tuple(require("a size", size, 1) for size in sizes)
    if len(set(counts)) < len(counts):
        raise ValueError(f"expected different sizes, got {', '.join(map(str, counts))}; name each once")
    return counts


def simulated(
    family: str,
    inputs: int = 8,
    linearity: str = "n",
    noise: str = "m",
    seed: int = 0,
    cases: int = CASES,
    sizes: Sequence[int] = SIZES,
) -> Prototask:
    """A prototask of one of DELVE's families, made by a simulator of `jaxgen.simulate`.

    The numbers are rounded to six decimals, as in DELVE's files: so other processors and versions make the same cases.

    Args:
      family: "kin", "pumadyn" or "bank".
      inputs: 8 or 32, D.
      linearity: "f", fairly linear, or "n", non-linear.
      noise: "m", a moderate amount, or "h", a high one.
      seed: of the cases.
      cases: N; half of them are for tests.
      sizes: training cases of its tasks.
    Returns:
      Prototask with x [N, D] and y [N, 1].
    Raises:
      ValueError: no such family, a seed or sizes that are none, or as its simulator says.
    """
    if not isinstance(family, str) or family not in FAMILIES:
        raise ValueError(f"expected a family among {', '.join(FAMILIES)}, got {shown(family)}; choose one")
    require("seed", seed, 0, keys.MOST_SEED)
    sizes = as_sizes(sizes)
    made = FAMILIES[family](jax.random.key(seed), cases, inputs=inputs, linearity=linearity, noise=noise)
    data = replace(made.data, x=np.round(made.data.x, _DECIMALS), y=np.round(made.data.y, _DECIMALS))
    origin = (
        f"simulate.{family}(jax.random.key({seed}), {cases}, inputs={inputs}, "
        f"linearity={linearity!r}, noise={noise!r}), rounded to {_DECIMALS} decimals"
    )
    return Prototask(made.name, data.checked(), sizes, origin=origin)
