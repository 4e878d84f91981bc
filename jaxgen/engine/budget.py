"""How many rows are trained at a time: what fits into the cache of a core, or the memory of a device."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import jax
import numpy as np

from jaxgen.engine.job import Job
from jaxgen.engine.needs import facts, settings
from jaxgen.engine.workers import one_at_a_time
from jaxgen.types import Learner
from jaxgen.types.memory import free_bytes

_CACHE_BYTES = 2 << 20
"""Widest array of one chunk on one CPU core: arrays that leave the cache cost a factor of three."""

_LOOP_CACHE_BYTES, _LOOP_MOST_BYTES = 3 << 17, 1 << 20
"""The same for arrays that a loop of many rounds makes anew in every round, such as the activations of networks:
several of them stay in the cache. The first is the fastest: networks of 20 units on 1024 cases with 8 inputs take a
tenth to a seventh longer with the second, those with 32 inputs some 5 %.
"""

_WORTH_A_CHUNK = 1e9
"""Operations of a chunk, some ten milliseconds, beside which the time of its call does not count: where the rows that
are the fastest do fewer, there may be more rows.
"""

_CALL, _SLOWER = 1 / 32, 1.05
"""The time of a call, as a share of the chunk that is the fastest, and of each row of a chunk that has more rows,
relative to one of a chunk that has not.
"""

_SHARED_BYTES = 1 << 26
"""The same where the rows of a chunk share work that is worth doing for more of them than fit into the cache."""

_SHARED = 8.0
"""How many times the work that the rows of a chunk share their own should be, if there are so many rows: fewer and
larger chunks do what is shared less often.
"""


_WEIGHTINGS_BYTES = 1 << 24
"""The widest array of a chunk of rows of which a learner makes several weightings: what these share is made once for
each chunk and learner, and not once for all chunks.
"""


def workers_of(job: Job) -> int:
    """Threads that each run a chunk of their own: one per core on a single CPU device, one otherwise, and for a caller
    who asked for one.
    """
    if one_at_a_time():
        return 1
    return _cores() if len(job.devices) == 1 and job.devices[0].platform == "cpu" and not facts(job).alone else 1


def callers() -> int:
    """How many callers can ask for runs at once, each within `one_thread`: one per core on a single CPU device, one
    otherwise, and where a new thread would have other settings of JAX than this one, which may have changed some in a
    `with`.
    """
    devices = jax.local_devices()
    if len(devices) > 1 or devices[0].platform != "cpu" or jax.process_count() > 1 or _cores() == 1:
        return 1
    with ThreadPoolExecutor(1) as another:
        return _cores() if another.submit(settings).result() == settings() else 1


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Budget:
    """The rows of a chunk.

    Attributes:
      most_rows: as many as are trained in the least time each.
      more_rows: as many as they may be to come out even.
      most_bytes: what a single row needs.
      device_bytes: what there is.
      workers: chunks that are trained at a time.
    """

    most_rows: int
    more_rows: int
    most_bytes: int
    device_bytes: int
    workers: int

    @classmethod
    def of(cls, job: Job) -> "Budget":
        """On a CPU the cache of each core sets the size of chunks, and what their rows share; elsewhere a share of the
        memory of each device.
        """
        device, needs, devices = job.here, facts(job), len(job.devices)
        most = max(needs.row_bytes, needs.predict_bytes)
        if device.platform == "cpu":
            in_loops = max(_LOOP_CACHE_BYTES // needs.loop_bytes, math.ceil(_WORTH_A_CHUNK / needs.operations))
            fit = min(_CACHE_BYTES // needs.row_bytes, _LOOP_MOST_BYTES // needs.loop_bytes)
            worth = min(_SHARED_BYTES // needs.row_bytes, math.ceil(_SHARED * needs.shared / needs.operations))
            if job.together and job.learner.weightings > 1:
                worth = max(worth, _WEIGHTINGS_BYTES // needs.row_bytes)
            rows = max(1, min(fit, in_loops), worth)
            return cls(
                devices * rows,
                devices * max(rows, min(fit, rows * 3 // 2)),
                most,
                free_bytes(),
                workers_of(job),
            )
        statistics = device.memory_stats() or {}
        memory = statistics.get("bytes_limit", 0) - statistics.get("bytes_in_use", 0) or free_bytes()
        rows = devices * max(1, memory // 16 // needs.row_bytes)
        return cls(rows, rows, most, memory, 1)

    def rows(self, total: int) -> int:
        """Rows of a chunk with which the worker that has the most of them is done first; all chunks are of one size,
        and each takes time by itself.
        """
        each = math.ceil(total / self.workers)
        sizes = np.arange(min(self.more_rows, each), min(self.most_rows, each) // 2, -1)
        rounds = -(-total // (sizes * self.workers))
        slower = np.where(sizes > self.most_rows, _SLOWER, 1.0)
        return int(sizes[np.argmin(rounds * (slower * sizes + _CALL * self.most_rows))])

    def refuse_if_too_large(self, loss_bytes: int, learner: Learner) -> None:
        """Raises MemoryError for a run that cannot fit."""
        available = free_bytes()
        if loss_bytes > 0.9 * available:
            raise MemoryError(
                f"expected the losses of all rows and cases to fit into memory, got {loss_bytes:,} bytes "
                f"where {available:,} are free; use keep='rows', or fewer resamples"
            )
        if self.most_bytes > self.device_bytes:
            raise MemoryError(
                f"expected one row of {learner} to fit into memory, got {self.most_bytes:,} bytes where "
                f"{self.device_bytes:,} are free; use fewer cases or a smaller learner"
            )
