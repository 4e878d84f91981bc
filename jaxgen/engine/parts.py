"""Parts of a run: a fixed range of its trainings as a pure function of plain things, that any process can compute."""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgen import store
from jaxgen.engine.door import chosen_devices
from jaxgen.engine.job import Job
from jaxgen.engine.needs import facts
from jaxgen.engine.run import Run, Way, bytes_kept, job_of
from jaxgen.engine.workers import refuse_fork
from jaxgen.store.parts import Arrays, Part
from jaxgen.types import Data, Learner, Loss, Plan

_OPERATIONS = 4e12
"""Arithmetic of a part, of all its trainings: of the order of a minute on a machine of a few cores, so that compiling
its program is little beside it.
"""

_BYTES = 1 << 28
"""Most bytes of the arrays of a part and of its rows of the plan, which are in memory at once."""

_ONE = threading.Lock()
"""Held while a part is computed: each uses all cores of its process."""


class Settings(NamedTuple):
    """JAX's settings that change numbers.

    Attributes:
      x64: whether 64 bits are enabled.
      precision: of products of matrices.
      partitionable: how random numbers are drawn.
    """

    x64: bool
    precision: str | None
    partitionable: bool

    @classmethod
    def here(cls) -> "Settings":
        """Those of this thread."""
        known: Any = jax.config
        return cls(known.jax_enable_x64, known.jax_default_matmul_precision, known.jax_threefry_partitionable)

    def entered(self) -> ExitStack:
        """A context in which they hold."""
        stack = ExitStack()
        stack.enter_context(jax.enable_x64(self.x64))
        stack.enter_context(jax.default_matmul_precision(self.precision))
        stack.enter_context(jax.threefry_partitionable(self.partitionable))
        return stack


class Specification(NamedTuple):
    """All that a process must know to compute a part; nothing in it belongs to a process.

    Attributes:
      part: which part of the run.
      key_data, key_kind: the random key of the run as numbers, and the name of its kind.
      learner, loss: as values, which must be importable where the part is computed.
      data: the data sets of the part, x [*sets, N, D].
      plan: the rows of the part, [*sets, rows, N].
      way: how all rows of the run are trained.
      keep, chunk: as for `assess`.
      settings: of JAX.
      folder, identity: where to write the part if that folder is there and holds this run; else it is returned.
    """

    part: Part
    key_data: np.ndarray
    key_kind: str
    learner: Learner
    loss: Loss
    data: Data
    plan: Plan
    way: Way
    keep: str
    chunk: int | None
    settings: Settings
    folder: str | None = None
    identity: str = ""


class Answer(NamedTuple):
    """What came of a part.

    Attributes:
      arrays: what was computed, [sets, rows, ...]; None if it is in the folder of the run.
      seconds: how long it took.
    """

    arrays: Arrays | None
    seconds: float


def part_size(job: Job, keep: str) -> int:
    """Trainings of a part: by the arithmetic of one and the bytes that are kept of it, so that neither the machine nor
    the number of workers changes where parts begin.
    """
    return max(1, int(min(_OPERATIONS / facts(job).operations, _BYTES / (bytes_kept(job, keep) + 2 * job.cases + 64))))


def of_data(data: Data, part: Part) -> Data:
    """The data sets of a part, x [*sets, N, D]."""
    return data if data.sets is None else replace(data, x=data.x[part.at[0]], y=data.y[part.at[0]])


def compute(
    specification: Specification,
    key: Any,
    devices: tuple[jax.Device, ...],
    advance: Callable[[int], Any] = lambda rows: None,
) -> Arrays:
    """The arrays [sets, rows, ...] of a part.

    Args:
      specification: of the part.
      key: of the run.
      devices: where to run.
      advance: called with the number of rows done.
    """
    learner, loss, data, plan = (getattr(specification, name) for name in ("learner", "loss", "data", "plan"))
    job = job_of(learner, loss, data, specification.way, devices, specification.keep == "predictions")
    first = specification.part.first_set, specification.part.first_row
    run = Run(key, job, data, plan, specification.keep, specification.chunk, specification.way.used, first)
    run.all_rows(advance)
    return run.arrays()


def run_part(specification: Specification) -> Answer:
    """Computes a part with all cores and devices that its process may use, one part at a time.

    It is pure: the same specification gives the same arrays [sets, rows, ...] in every process, up to rounding.

    Raises:
      RuntimeError: the process was forked from one in which JAX had been used.
      Exception: what training raises.
    """
    refuse_fork()
    with _ONE, specification.settings.entered():
        begun = time.perf_counter()
        key = jax.random.wrap_key_data(jnp.asarray(specification.key_data), impl=specification.key_kind)
        arrays = compute(specification, key, chosen_devices(None))
        seconds = time.perf_counter() - begun
    folder = specification.folder
    if folder is not None:
        with suppress(OSError, ValueError):  # no such folder on this machine: the part goes back as it is
            run = store.open(Path(folder))
            if run.identity == specification.identity:
                run.publish(specification.part, arrays, seconds)
                return Answer(None, seconds)
    return Answer(arrays, seconds)
