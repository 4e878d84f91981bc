"""Prototasks: what is to be learned from which cases, and how they are divided into tasks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np

from jaxgen import resample, simulate, store
from jaxgen.delve.methods import NAME
from jaxgen.types import Data, Plan

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
    """

    name: str
    data: Data
    sizes: tuple[int, ...] = SIZES
    instances: int = 8
    test_cases: int | None = None
    common: bool = False
    origin: str = "given data"

    def plan(self, size: int) -> Plan:
        """The task instances of a size, train and test [I, N].

        Raises:
          ValueError: the name is none for a file, there are several data sets, or too few cases.
        """
        if not NAME.fullmatch(self.name):
            raise ValueError(
                f"expected a prototask's name of letters, digits, '.', '-' and '_', got {self.name!r}; choose another"
            )
        if self.data.sets is not None:
            raise ValueError(f"expected one data set for a prototask, got {self.data.sets}; choose one, as in data[0]")
        return resample.task_instances(self.data.n, size, self.instances, self.test_cases, self.common)

    @property
    def checksum(self) -> str:
        """SHA-256 of the cases."""
        return store.checksum(self.data)


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
      ValueError: no such family, or as its simulator says.
    """
    if family not in FAMILIES:
        raise ValueError(f"expected a family among {', '.join(FAMILIES)}, got {family!r}; choose one")
    made = FAMILIES[family](jax.random.key(seed), cases, inputs=inputs, linearity=linearity, noise=noise)
    data = replace(made.data, x=np.round(made.data.x, _DECIMALS), y=np.round(made.data.y, _DECIMALS))
    origin = (
        f"simulate.{family}(jax.random.key({seed}), {cases}, inputs={inputs}, "
        f"linearity={linearity!r}, noise={noise!r}), rounded to {_DECIMALS} decimals"
    )
    return Prototask(made.name, data.checked(), tuple(sizes), origin=origin)
