"""The engine: trains one learner on every row of a plan, all rows at once, in chunks, over all devices and cores."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from tqdm import tqdm

from jaxgen.engine.budget import Budget, workers_of
from jaxgen.engine.door import check
from jaxgen.engine.job import Job
from jaxgen.engine.program import compiled, facts
from jaxgen.loss import squared
from jaxgen.types import Data, Key, Learner, Loss, Losses, Plan

_GATHER_SHARE = 0.75
"""Rows that use at most this share of the cases train on a gathered copy of them, others on all cases with masks."""

_SHARED_ROWS = 8
"""From this many rows a data set, a learner's `fit_rows` is preferred to `fit`."""


class _Block(NamedTuple):
    """A chunk: the numbers of its data sets [sets] and rows [sets, rows], and where they stand in arrays [Q, R]."""

    q: np.ndarray
    r: np.ndarray
    at: tuple[Any, Any]


def assess(
    key: Key,
    learner: Any,
    data: Data,
    plan: Plan,
    loss: Loss = squared,
    *,
    keep: str = "cases",
    chunk: int | None = None,
    progress: bool | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Losses:
    """Trains a learner on every resampled training set of a plan and returns the loss of every trained row.

    Row r of data set q draws from `fold_in(fold_in(key, q), r)`, so neither the chunk size nor the number of devices
    or threads changes its random numbers. Chunks run on all CPU cores, or sharded over all devices where there are
    several.

    Args:
      key: consumed; the randomness of the training, not that of the plan.
      learner: what to train; see `jaxgen.types.Learner`.
      data: x [*Q, N, D] and y [*Q, N, K]. Fits follow the floating type that JAX is set to (32 bits unless x64 is
        enabled).
      plan: train and test weights [*Q, R, N]; without Q it serves every data set.
      loss: per-case loss, from `jaxgen.loss` or a function of (y [N, K], prediction [N, K]) to [N].
      keep: "cases" for the losses of every row on every case, [*Q, R, N]; "predictions" for these and all predictions,
        [*Q, R, N, K]; "rows" for the means of each row only, memory O(R).
      chunk: rows trained at a time; None chooses by memory and cache.
      progress: a progress bar with rows per second; None shows it on a terminal only.
      devices: where to run; None takes all local devices of JAX's default kind.
    Returns:
      Losses, [*Q, R] and, if kept, [*Q, R, N].
    Raises:
      TypeError: the key is no typed key, or the learner cannot be hashed.
      ValueError: data, plan and learner do not fit together, or contain values that no training can use.
      MemoryError: the losses or a single row would not fit into memory; the bytes are stated.
    """
    learner = check(key, learner, data, plan, keep, chunk)
    sets, rows = data.sets or plan.sets or 1, plan.resamples
    job = _job(learner, loss, data, plan, tuple(devices or jax.local_devices()), keep == "predictions")
    run = _Run(key, job, data, plan, (sets, rows), keep, chunk)
    with tqdm(
        total=sets * rows,
        unit=" rows",
        desc=_shorten(repr(learner)),
        disable=None if progress is None else not progress,
        delay=0.5,
    ) as bar:
        run.all_rows(bar.update)
    return run.losses(data, plan, repr(learner), getattr(loss, "__name__", repr(loss)))


def _job(
    learner: Learner, loss: Loss, data: Data, plan: Plan, devices: tuple[jax.Device, ...], predictions: bool
) -> Job:
    """Chooses how to train: all rows of a data set together, on gathered cases, or on all cases with masks."""
    most, fewest = int(plan.train_cases.max()), int(plan.train_cases.min())
    together = learner.shares_rows and plan.resamples >= _SHARED_ROWS
    few_left_out = together and plan.train.max() == 1 and data.n - fewest <= max(1, data.d // 4)
    used = most if not together and most <= _GATHER_SHARE * data.n else None
    dtype = jax.dtypes.canonicalize_dtype(np.float64).name
    shape = (data.n, data.d, data.y.shape[-1])
    # Each number of cases left out compiles anew, so a learner gets to know it only where it can gain.
    return _on_fit_devices(
        Job(
            learner,
            loss,
            *shape,
            dtype,
            data.sets is None,
            used,
            data.n - fewest if few_left_out else None,
            together,
            devices,
            predictions,
        )
    )


def _on_fit_devices(job: Job) -> Job:
    """The job, on one CPU device if it must not run beside another."""
    crowded = len(job.devices) > 1 and job.devices[0].platform == "cpu" and facts(job).alone
    return replace(job, devices=job.devices[:1]) if crowded else job


class _Run:
    """One call of `assess`: the arrays that its chunks read from and write to."""

    def __init__(
        self, key: Key, job: Job, data: Data, plan: Plan, shape: tuple[int, int], keep: str, chunk: int | None
    ):
        self.key, self.job, self.plan, self.shape, self.chunk = key, job, plan, shape, chunk
        x, y = _cast(data, job.dtype)
        self.x, self.y = (x[None], y[None]) if job.one_data_set else (x, y)
        self.budget = Budget.of(job)
        kept = {"cases": 1, "predictions": 1 + job.outputs, "rows": 0}[keep]
        self.budget.refuse_if_too_large(shape[0] * shape[1] * plan.n * kept * x.itemsize, job.learner)
        self.values = np.empty((*shape, plan.n), x.dtype) if kept else None
        self.predictions = np.empty((*shape, plan.n, job.outputs), x.dtype) if job.predictions else None
        self.test_mean, self.train_mean = np.empty(shape), np.empty(shape)
        self.train_sizes, self.test_sizes = (
            np.broadcast_to(sizes, shape) for sizes in (plan.train_sizes, plan.test_sizes)
        )
        self.failure, self.trusted = np.zeros(shape, np.uint8), np.ones(shape, bool)
        self.info = {name: np.empty((*shape, *value.shape), value.dtype) for name, value in facts(job).info.items()}

    def all_rows(self, advance: Callable[[int], Any]) -> None:
        """Trains every row; those that a learner's `fit_rows` did not solve well are trained again, one by one."""
        self._run_blocks(self.job, *self._blocks(), advance)
        again = np.argwhere(~self.trusted)
        if len(again):
            job = _on_fit_devices(replace(self.job, used=None, left_out=None, together=False))
            size = min(256, len(again))
            size += -size % len(job.devices)
            parts = np.array_split(again, math.ceil(len(again) / size))
            self._run_blocks(
                job,
                (size, 1),
                (_Block(rows[:, 0], rows[:, 1:], (rows[:, :1], rows[:, 1:])) for rows in parts),
                lambda rows: None,
            )

    def _blocks(self) -> tuple[tuple[int, int], Iterator["_Block"]]:
        """The shape (data sets, rows) of a chunk, and all chunks."""
        sets, rows = self.shape
        devices = len(self.job.devices)
        least = (
            min(rows, _SHARED_ROWS) if self.job.together else 1
        )  # below it the work that rows share would be done too often
        most = self.chunk or max(least, self.budget.rows(sets * rows))
        by_set, by_row = _even(sets, max(1, most // rows)), _even(rows, min(rows, most))
        if by_set > 1:
            by_set += -by_set % devices
        else:
            by_row += -by_row % devices
        grid = (
            (slice(q, min(q + by_set, sets)), slice(r, min(r + by_row, rows)))
            for q in range(0, sets, by_set)
            for r in range(0, rows, by_row)
        )
        return (by_set, by_row), (
            _Block(np.arange(q.start, q.stop), np.arange(r.start, r.stop)[None].repeat(q.stop - q.start, 0), (q, r))
            for q, r in grid
        )

    def _run_blocks(
        self, job: Job, size: tuple[int, int], blocks: Iterator["_Block"], advance: Callable[[int], Any]
    ) -> None:
        step, workers = compiled(job, *size, self.key.dtype), workers_of(job)
        key, x, y = self.key, self.x, self.y
        if len(job.devices) == 1:
            key = jax.device_put(key, job.devices[0])
            x, y = jax.device_put((x, y), job.devices[0]) if job.one_data_set else (x, y)
        wide = job.dtype == "float64"

        def work(block):
            with jax.enable_x64(wide), jax.default_device(job.devices[0]):
                self._store(block, *step(key, *self._arguments(x, y, size, block)))
            return block.r.size

        with ThreadPoolExecutor(workers) as pool:
            pending = set()
            try:
                for block in blocks:
                    pending.add(pool.submit(work, block))
                    if len(pending) > 2 * workers:
                        done, pending = wait(pending, return_when=FIRST_COMPLETED)
                        advance(sum(future.result() for future in done))
                advance(sum(future.result() for future in pending))
            finally:
                pool.shutdown(cancel_futures=True)

    def _arguments(self, x: Any, y: Any, size: tuple[int, int], block: "_Block") -> tuple[Any, ...]:
        """Arrays of a chunk, filled up to its compiled size by repeating the last set and row."""
        fill = ((0, size[0] - len(block.q)), (0, size[1] - block.r.shape[1]))
        whole = not any(after for _, after in fill)
        q, r, train = block.q.astype(np.int32), block.r.astype(np.int32), self._weights(self.plan.train, block)
        if not whole:
            q, r, train = np.pad(q, fill[:1], "edge"), np.pad(r, fill, "edge"), np.pad(train, (*fill, (0, 0)), "edge")
        at = block.at[0] if whole and isinstance(block.at[0], slice) else q
        return *((x, y) if self.job.one_data_set else (x[at], y[at])), train, q, r

    def _weights(self, weights: np.ndarray, block: "_Block") -> np.ndarray:
        """Weights [sets, rows, N] of a chunk."""
        if self.plan.sets:
            return weights[block.at]
        return np.broadcast_to(weights[block.at[1]], (*block.r.shape, weights.shape[-1]))

    def _store(self, block: "_Block", losses, predictions, failure, trusted, info) -> None:
        """Copies a chunk's results to their rows; the means are taken here, in double precision."""
        part, at = (slice(block.r.shape[0]), slice(block.r.shape[1])), block.at
        values = np.asarray(losses)[part]
        finite = bool(np.isfinite(np.sum(values, dtype=np.float64)))
        for mean, weights, sizes in (
            (self.test_mean, self.plan.test, self.test_sizes),
            (self.train_mean, self.plan.train, self.train_sizes),
        ):
            w = self._weights(weights, block)
            used = values if finite else np.where(w > 0, values, 0)
            mean[at] = np.einsum("qrn,qrn->qr", used, w, dtype=np.float64, casting="unsafe") / sizes[at]
        code = np.asarray(failure)[part]
        self.failure[at] = np.where(code > 0, code + 1, ~np.isfinite(self.test_mean[at] + self.train_mean[at]))
        self.trusted[at] = np.asarray(trusted)[part]
        if self.values is not None:
            self.values[at] = values
        if self.predictions is not None:
            self.predictions[at] = np.asarray(predictions)[part]
        for name, value in info.items():
            self.info[name][at] = np.asarray(value)[part]

    def losses(self, data: Data, plan: Plan, learner: str, loss: str) -> Losses:
        """The result, without an axis Q if neither data nor plan had one."""

        def out(a):
            return a if a is None or data.sets or plan.sets else a[0]

        reasons = (
            "its loss is not finite (the training diverged, or a value overflowed)",
            *self.job.learner.failures,
        )
        info = {name: out(value) for name, value in self.info.items()}
        return Losses(
            out(self.test_mean),
            out(self.train_mean),
            plan,
            learner,
            loss,
            out(self.failure),
            reasons,
            out(self.values),
            info,
            predictions=out(self.predictions),
        )


def _cast(data: Data, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """x and y in the type of the fits."""
    with np.errstate(over="ignore"):
        x, y = data.x.astype(dtype, copy=False), data.y.astype(dtype, copy=False)
    for symbol, values, wide in (("x", x, data.x), ("y", y, data.y)):
        if not np.isfinite(values).all():
            raise ValueError(
                f"expected numbers that {dtype} can hold, got up to {np.abs(wide).max():.3g} in {symbol}; "
                "change the unit, or enable 64 bits (JAX_ENABLE_X64=1)"
            )
    return x, y


def _even(total: int, most: int) -> int:
    """Size of equal chunks of at most `most` that cover `total` with the least to spare."""
    return math.ceil(total / math.ceil(total / most))


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
