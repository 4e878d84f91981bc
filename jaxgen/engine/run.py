"""The engine: trains one learner on every row of a plan, all rows at once, in chunks, over all devices and cores."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from tqdm import tqdm

from jaxgen.engine.budget import Budget, workers_of
from jaxgen.engine.door import check, check_absence, chosen_devices
from jaxgen.engine.job import Job
from jaxgen.engine.program import compiled, facts
from jaxgen.engine.units import suited
from jaxgen.engine.workers import ALONE, refuse_fork, run_all
from jaxgen.loss import about, squared
from jaxgen.types import Data, Key, Learner, Loss, Losses, Plan
from jaxgen.types.identity import code_digest, named
from jaxgen.types.numbers import require_flag

_GATHER_SHARE = 0.75
"""Rows that use at most this share of the cases train on a gathered copy of them, others on all cases with masks."""

_SHARED_ROWS = 8
"""The fewest rows of a chunk whose rows share work."""


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
        enabled), in units in which nothing is lost; linear learners are fitted in double precision.
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
      TypeError: the key is no typed key, or learner, data, plan, loss or devices are of another kind.
      ValueError: data, plan, learner and loss do not fit together, contain values that no training can use, or a
        function of the learner or the loss cannot be traced, returns another shape, or learns from absent cases.
      MemoryError: the losses or a single row would not fit into memory; the bytes are stated.
      RuntimeError: this process was forked from one in which JAX had been used.
    """
    refuse_fork()
    if progress is not None:
        require_flag("progress", progress)
    used = check(key, learner, data, plan, loss, keep, chunk)
    shape = (data.sets or plan.sets or 1, plan.resamples)
    job = _job(used, loss, data, plan, chosen_devices(devices), keep == "predictions")
    run = _Run(key, job, data, plan, shape, keep, chunk)
    check_absence(used, data)
    with tqdm(
        total=math.prod(shape),
        unit=" rows",
        desc=_shorten(repr(learner)),
        disable=None if progress is None else not progress,
        delay=0.5,
    ) as bar:
        run.all_rows(bar.update)
    return run.losses(named(learner), named(loss))


def _job(
    learner: Learner, loss: Loss, data: Data, plan: Plan, devices: tuple[jax.Device, ...], predictions: bool
) -> Job:
    """Chooses how to train: all rows of a data set together, on gathered cases, or on all cases with masks."""
    most, fewest = int(plan.train_cases.max()), int(plan.train_cases.min())
    least_rows, least_share = learner.worth_sharing
    together = learner.shares_rows and plan.resamples >= least_rows and fewest >= least_share * data.n
    together = together and not about(loss).distribution
    few_left_out = together and plan.train.max() == 1 and data.n - fewest <= max(1, data.d // 4)
    wide = learner.precise and devices[0].platform != "tpu"  # a TPU computes in double precision by many single steps
    job = Job(
        learner=learner,
        loss=loss,
        code=f"{code_digest(learner)} {code_digest(loss)}",
        cases=data.n,
        inputs=data.d,
        outputs=data.y.shape[-1],
        dtype="float64" if wide else jax.dtypes.canonicalize_dtype(np.float64).name,
        one_data_set=data.sets is None,
        used=most if not together and most <= _GATHER_SHARE * data.n else None,
        # Each number of cases left out compiles anew, so a learner gets to know it only where it can gain.
        left_out=data.n - fewest if few_left_out else None,
        together=together,
        devices=devices,
        predictions=predictions,
    )
    return _on_fit_devices(job)


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
        self.single = not (data.sets or plan.sets)
        self.units = suited(data, job.learner, about(job.loss), job.dtype)
        x, y = self.units.x, self.units.y
        self.x, self.y = (x[None], y[None]) if job.one_data_set else (x, y)
        self.budget = Budget.of(job)
        kept = {"cases": 1, "predictions": 1 + job.outputs, "rows": 0}[keep]
        dtype = np.dtype(np.float64) if self.units.changed else x.dtype
        self.budget.refuse_if_too_large(shape[0] * shape[1] * plan.n * kept * dtype.itemsize, job.learner)
        self.values = np.empty((*shape, plan.n), dtype) if kept else None
        self.predictions = np.empty((*shape, plan.n, job.outputs), dtype) if job.predictions else None
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
        # With fewer rows at a time the work that rows share would be done too often.
        least = min(rows, _SHARED_ROWS) if self.job.together else 1
        most = self.chunk or max(least, self.budget.rows(sets * rows))
        by_set, by_row = _even(sets, max(1, most // rows)), _even(rows, min(rows, most))
        if self.chunk is None:
            by_set, by_row = _common_size(by_set), _common_size(by_row)
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
        program, workers = compiled(job, *size, self.key.dtype), workers_of(job)
        if program.alone and len(job.devices) > 1:  # LAPACK that only the lowered program showed
            job = replace(job, devices=job.devices[:1])
            program = compiled(job, *size, self.key.dtype)
        key, x, y = self.key, self.x, self.y
        if len(job.devices) == 1:
            key = jax.device_put(key, job.devices[0])
            with jax.enable_x64(job.wide):
                x, y = jax.device_put((x, y), job.devices[0]) if job.one_data_set else (x, y)

        def work(block):
            with jax.enable_x64(job.wide), jax.default_device(job.devices[0]):
                arguments = self._arguments(x, y, size, block)
                with ALONE if program.alone else nullcontext():
                    results = jax.block_until_ready(program.call(key, *arguments))
                self._store(block, *results)
            return block.r.size

        run_all(work, blocks, 1 if program.alone else workers, advance)

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
        for name, array in self.info.items():
            array[at] = np.asarray(info[name])[part]

    def losses(self, learner: str, loss: str) -> Losses:
        """The result in the user's units, without an axis Q if neither data nor plan had one."""

        def without_sets(array):
            return array[0] if self.single and array is not None else array

        unit, shift = self.units.loss_unit, self.units.y_shift
        if self.units.changed:
            for array in (self.test_mean, self.train_mean, self.values):
                if array is not None:
                    array *= unit.reshape(*unit.shape, *(1,) * (array.ndim - unit.ndim))
            if self.predictions is not None:
                scale = self.units.y_scale
                self.predictions *= scale.reshape(*scale.shape, *(1,) * (4 - scale.ndim))
                self.predictions += shift.reshape(*shift.shape[:-1], 1, 1, shift.shape[-1])
        not_finite = "its loss is not finite (the training diverged, or a value overflowed)"
        if about(self.job.loss).probabilities:
            not_finite = "its loss is not finite (its predictions are no probabilities, or the training diverged)"
        reasons = (not_finite, *self.job.learner.failures)
        unsaid = self.failure > len(reasons)
        if unsaid.any():
            reasons += ("its fit failed for a reason that failures of the learner does not state",)
        info = {name: without_sets(value) for name, value in self.info.items()}
        return Losses(
            without_sets(self.test_mean),
            without_sets(self.train_mean),
            self.plan,
            learner,
            loss,
            without_sets(self.failure),
            reasons,
            without_sets(self.values),
            info,
            predictions=without_sets(self.predictions),
        )


def _even(total: int, most: int) -> int:
    """Size of equal chunks of at most `most` that cover `total` with the least to spare."""
    return math.ceil(total / math.ceil(total / most))


def _common_size(size: int) -> int:
    """The size rounded up to four binary digits, at most an eighth more: runs of similar numbers of rows then share a
    compiled program, which takes longer than the rows that fill up the last chunk.
    """
    step = 1 << max(0, size.bit_length() - 4)
    return -(-size // step) * step


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
