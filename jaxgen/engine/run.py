"""How a range of trainings runs: all rows at once, in chunks, over all devices and cores of this process."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils

from jaxgen.engine.budget import Budget, workers_of
from jaxgen.engine.job import Job
from jaxgen.engine.needs import facts
from jaxgen.engine.program import compiled
from jaxgen.engine.units import suited
from jaxgen.engine.workers import alone, run_all
from jaxgen.loss import about
from jaxgen.types import Data, Key, Learner, Loss, Plan, as_learner
from jaxgen.types.calls import distribution_of, losses_of
from jaxgen.types.identity import code_digest

_GATHER_SHARE = 0.75
"""Rows that use at most this share of the cases train on a gathered copy of them, others on all cases with masks; rows
of a learner that copies cases anyway are all gathered, unless the data are large: then copies cost more than shorter
arrays save (early-stopped networks of 100,000 x 50: half a second a row).
"""

_LARGE = 1 << 17
"""Inputs of all cases, in numbers, from which on two rows are worth sharing work."""

_INPUTS_TAKEN_AWAY, _NUMBERS_LEFT_OUT = 32, 32
"""With this many inputs or more, and of large data, a learner is told how many cases its rows leave out, in so
many steps of all cases.
"""

_FEWEST_SHARED, _MOST_SHARED, _SHARED_BYTES = 8, 32, 1 << 26
"""Rows of a chunk whose rows share work: at least so many, and more up to a number, if every core has as many and
their widest arrays have at most so many bytes together.
"""

_WORTH_A_CALL, _CACHE_BYTES = 2e8, 1 << 21
"""Operations of a chunk, some ten milliseconds, beside which the time of a call does not count: no more rows are needed
where they share less than the work of one of them, unless their cases do not stay in a cache of so many bytes.
"""

_MOST_AGAIN = 256
"""Rows of a chunk of those that are trained again, one by one."""

_MOST_ROWS = 64
"""A learner that prepares what rows share is not told of more of them: each number compiles anew."""

_TYPICAL = 256
"""Rows from which mean weights are taken, which tell rows that are trained together where to begin."""


class _Block(NamedTuple):
    """A chunk: the numbers of its data sets [sets] and rows [sets, rows], and where they stand in arrays [Q, R]."""

    q: np.ndarray
    r: np.ndarray
    at: tuple[Any, Any]


class Way(NamedTuple):
    """How the rows of a plan are trained; all parts of a run go the same way.

    Attributes:
      together: `fit_rows` instead of `fit`.
      used: cases that are gathered for each row that is trained by itself; None trains on all cases with masks.
      left_out: most cases of weight 0 in a row, where `fit_rows` is to know it.
      rows: about how many rows are trained together, a power of two up to 64; 1 where the learner does not ask.
      share: the least share of the cases that a row trains on.
    """

    together: bool
    used: int | None
    left_out: int | None
    rows: int = 1
    share: float = 0.0


def way(learner: Learner, loss: Loss, data: Data, plan: Plan) -> Way:
    """Chooses how to train: all rows of a data set together, on gathered cases, or on all cases with masks."""
    most, fewest = int(plan.train_cases.max()), int(plan.train_cases.min())
    large = data.n * data.d >= _LARGE
    least_rows, least_share = learner.worth_sharing
    if learner.shares_one_row_of(data.n, data.d):
        least_rows = 1
    together = learner.shares_rows and fewest >= least_share * data.n
    together = together and plan.resamples >= (min(2, least_rows) if large else least_rows)
    together = together and learner.shares_rows_of(data.n, most, data.d) and not about(loss).distribution
    counts = together and learner.counts_left_out_of(data.n, data.d) and not plan.repeats_cases
    always = learner.copies_cases and not large
    gathered = most < data.n if always else most <= _GATHER_SHARE * data.n
    return Way(
        together,
        most if gathered else None,
        _left_out(data, data.n - fewest) if counts else None,
        min(_MOST_ROWS, 1 << (plan.resamples.bit_length() - 1)) if together and learner.prepares_rows else 1,
        fewest / data.n,
    )


def _left_out(data: Data, most: int) -> int | None:
    """What a learner is told of how many cases its rows leave out, where `most` is the largest number of them.

    What it knows of all cases is soon corrected for these. Each number compiles anew, so it is rounded up to one of a
    few, unless it is small. It is None where the learner would gain nothing: with few inputs, or from half of the cases
    on.
    """
    if most <= max(1, data.d // 4):
        return most
    rounded = most + -most % math.ceil(data.n / _NUMBERS_LEFT_OUT)
    gains = data.d >= _INPUTS_TAKEN_AWAY or data.n * data.d >= _LARGE
    return rounded if gains and rounded <= data.n // 2 else None


def job_of(
    learner: Learner,
    loss: Loss,
    data: Data,
    chosen: Way,
    devices: tuple[jax.Device, ...],
    predictions: bool,
    new: int = 0,
) -> Job:
    """What a chunk computes; `new` cases, M, are predicted beside those of the data."""
    wide = learner.precise and devices[0].platform != "tpu"  # a TPU computes in double precision by many single steps
    job = Job(
        learner=_for_rows(learner, chosen.share) if chosen.together else learner,
        loss=loss,
        code=f"{code_digest(learner)} {code_digest(loss)}",
        cases=data.n,
        inputs=data.d,
        outputs=data.y.shape[-1],
        dtype="float64" if wide else jax.dtypes.canonicalize_dtype(np.float64).name,
        one_data_set=data.sets is None,
        used=None if chosen.together else chosen.used,
        left_out=chosen.left_out,
        together=chosen.together,
        rows=chosen.rows,
        devices=devices,
        predictions=predictions,
        new=new,
    )
    return _on_fit_devices(job)


def _for_rows(learner: Learner, share: float) -> Learner:
    """The learner for rows that each train on at least this share of the cases."""
    return as_learner(learner.for_rows(share), f"for_rows(share) of {learner} to give a learner")


def _on_fit_devices(job: Job) -> Job:
    """The job, on one CPU device if it must not run beside another."""
    crowded = len(job.devices) > 1 and job.devices[0].platform == "cpu" and facts(job).alone
    return replace(job, devices=(job.here,)) if crowded else job


class Run:
    """A range of trainings: the arrays that its chunks read from and write to.

    Args:
      key: of the whole run.
      job: what a chunk computes.
      data, plan: of this range, x [*sets, N, D] and train [*sets, rows, N].
      keep, chunk: as for `assess`.
      used: cases that are gathered for each row that is trained again by itself, as `Way.used`.
      first: numbers of its first data set and of its first row in the whole run, which choose the random numbers.
      new: inputs of the new cases of the job, [*sets, M, D].
    """

    def __init__(
        self,
        key: Key,
        job: Job,
        data: Data,
        plan: Plan,
        keep: str,
        chunk: int | None = None,
        used: int | None = None,
        first: tuple[int, int] = (0, 0),
        new: np.ndarray | None = None,
    ):
        self.key, self.job, self.plan, self.chunk, self.used, self.first = key, job, plan, chunk, used, first
        self.shape = shape = (data.sets or plan.sets or 1, plan.resamples)
        self.units = suited(data, job.learner, about(job.loss), job.dtype)
        x, y = self.units.x, self.units.y
        if new is not None:
            x = np.concatenate([x, self.units.inputs(new)], axis=-2)
        typical = _mean_weights(plan, shape[0], job)
        self.same = (x[None], y[None], typical[None]) if job.one_data_set else (x, y, typical)
        self.budget = Budget.of(job)
        dtype = np.dtype(np.float64) if self.units.changed else x.dtype
        self.budget.refuse_if_too_large(shape[0] * shape[1] * bytes_kept(job, keep, dtype), job.learner)
        self.values = None if keep == "rows" else np.empty((*shape, plan.n), dtype)
        self.predictions = np.empty((*shape, plan.n + job.new, job.outputs), dtype) if job.predictions else None
        self.test_mean, self.train_mean = np.empty(shape), np.empty(shape)
        self.train_sizes, self.test_sizes = (
            np.broadcast_to(sizes, shape) for sizes in (plan.train_sizes, plan.test_sizes)
        )
        self.failure, self.trusted = np.zeros(shape, np.uint8), np.ones(shape, bool)
        self.done = np.zeros(shape, bool)
        self.info = {name: np.empty((*shape, *value.shape), value.dtype) for name, value in facts(job).info.items()}

    def all_rows(self, advance: Callable[[int], Any]) -> None:
        """Trains every row; those that a learner's `fit_rows` did not solve well are trained again, one by one."""
        if self.job.learner.on_host:
            return self._on_host(advance)
        while not self.done.all():
            size, blocks = self._blocks()
            try:
                self._run_blocks(self.job, size, (block for block in blocks if not self.done[block.at].all()), advance)
            except jax.errors.JaxRuntimeError as error:
                self.chunk = _smaller(size, self.job, error)
        self._carefully()
        again = np.argwhere(~self.trusted)
        if len(again):
            job = _on_fit_devices(replace(self.job, used=self.used, left_out=None, together=False))
            size = common_size(min(_MOST_AGAIN, Budget.of(job).rows(len(again))))
            size += -size % len(job.devices)
            parts = np.array_split(again, math.ceil(len(again) / size))
            self._run_blocks(
                job,
                (size, 1),
                (_Block(rows[:, 0], rows[:, 1:], (rows[:, :1], rows[:, 1:])) for rows in parts),
                lambda rows: None,
            )

    def _carefully(self) -> None:
        """Trains chunks with rows that were not solved well by the learner that is slower, if there is one."""
        if self.trusted.all() or not self.job.together:
            return
        job = self.job
        careful = job.learner.careful_of(job.cases, job.inputs)
        if careful is not None:
            careful = as_learner(careful, f"careful_of(cases, inputs) of {job.learner} to give a learner or None")
            size, blocks = self._blocks()
            blocks = (block for block in blocks if not self.trusted[block.at].all())
            self._run_blocks(_on_fit_devices(replace(job, learner=careful)), size, blocks, lambda rows: None)

    def _on_host(self, advance: Callable[[int], Any]) -> None:
        """Lets the learner train rows on the host, and takes the losses of what they predict."""
        job, (sets, rows) = self.job, self.shape
        (inputs, targets, _), cpu = self.same, _cpu_or(job.here)
        with jax.enable_x64(job.wide), jax.default_device(cpu):
            jax.eval_shape(partial(host_losses, job.learner, job.loss, job.code), targets[0], targets[0])
        step = self.chunk or rows
        for q, begin in product(range(sets), range(0, rows, step)):
            numbers = np.arange(begin, min(begin + step, rows))
            x, y = (array[0 if job.one_data_set else q] for array in (inputs, targets))
            words = np.stack([row_words(self.key, q + self.first[0], int(r) + self.first[1]) for r in numbers])
            block = _Block(np.array([q]), numbers[None], (slice(q, q + 1), slice(begin, numbers[-1] + 1)))
            weights = self._weights(self.plan.train, block)[0]
            trained = job.learner.train_rows(words, x[: job.cases], y, weights, x)
            for r, row in zip(numbers, trained, strict=True):
                with jax.enable_x64(job.wide), jax.default_device(cpu):
                    losses = host_losses(job.learner, job.loss, job.code, y, row.predictions[: job.cases])
                for name, value in row.info.items():
                    self.info.setdefault(name, np.zeros((*self.shape, *value.shape), value.dtype))
                one = _Block(np.array([q]), np.array([[r]]), (slice(q, q + 1), slice(r, r + 1)))
                lead = (None, None)
                info = {name: value[lead] for name, value in row.info.items()}
                code = np.full((1, 1), row.failure, np.uint8)
                self._store(one, losses[lead], row.predictions[lead], code, np.ones((1, 1), bool), info)
                advance(1)

    def _sharing(self, rows: int) -> int:
        """Rows of a chunk that are enough to share work. Where a single data set's rows have less to do than what they
        share, one chunk is made of them, whose long loops run in halves.
        """
        needs, each = facts(self.job), math.ceil(rows / self.budget.workers)
        if self.shape[0] == 1 and needs.shared >= rows * needs.operations:
            each = rows
        enough = max(_FEWEST_SHARED, min(_MOST_SHARED, each, _SHARED_BYTES // needs.row_bytes))
        cases = self.job.cases * self.job.inputs * np.dtype(self.job.dtype).itemsize
        if needs.shared > needs.operations or cases > _CACHE_BYTES:
            return enough
        return min(enough, math.ceil(_WORTH_A_CALL / needs.operations))

    def _blocks(self) -> tuple[tuple[int, int], Iterator["_Block"]]:
        """The shape (data sets, rows) of a chunk, and all chunks."""
        sets, rows = self.shape
        devices = len(self.job.devices)
        # With fewer rows at a time the work that rows share would be done too often.
        least = min(rows, self._sharing(rows)) if self.job.together else 1
        most = self.chunk or max(least, self.budget.rows(sets * rows))
        if self.job.spread:  # memory may differ between processes, chunks may not
            most = int(multihost_utils.broadcast_one_to_all(np.int64(most)))
        by_set, by_row = _even(sets, max(1, most // rows)), _even(rows, min(rows, most))
        if self.chunk is None:
            by_set, by_row = common_size(by_set), common_size(by_row)
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
        trainings = math.prod(self.shape) if job.together == self.job.together else int((~self.trusted).sum())
        workers = workers_of(job)
        program = compiled(job, *size, self.key.dtype, trainings, workers)
        if program.alone and len(job.devices) > 1:  # LAPACK that only the lowered program showed
            job = replace(job, devices=(job.here,))
            program = compiled(job, *size, self.key.dtype, trainings, workers_of(job))
        key, same = self.key, self.same
        if len(job.devices) == 1:
            key = jax.device_put(key, job.devices[0])
            with jax.enable_x64(job.wide):
                same = jax.device_put(same, job.devices[0]) if job.one_data_set else same

        def undisturbed(lapack: bool):
            return alone(facts(job).decomposed) if lapack else nullcontext()

        def begin(_):
            with jax.enable_x64(job.wide), jax.default_device(job.here), undisturbed(program.begins_alone):
                return program.for_data(key, *same)

        calls = [program.call]
        if program.once:  # in a thread like the chunks, since Ctrl-C must not wait for it
            run_all(begin, [None], 1, calls.append)
        call = calls[-1]

        def work(block):
            with jax.enable_x64(job.wide), jax.default_device(job.here):
                arguments = self._arguments(same, size, block)
                with undisturbed(program.alone):
                    results = jax.block_until_ready(call(key, *arguments))
                if job.spread:
                    results = multihost_utils.process_allgather(results, tiled=True)
                self._store(block, *results)
            return block.r.size

        run_all(work, blocks, 1 if program.alone else workers, advance)

    def _arguments(self, same: tuple[Any, ...], size: tuple[int, int], block: "_Block") -> tuple[Any, ...]:
        """Arrays of a chunk, filled up to its compiled size by repeating the last set and row; `same` are those that
        the rows of a data set have in common.
        """
        fill = ((0, size[0] - len(block.q)), (0, size[1] - block.r.shape[1]))
        whole = not any(after for _, after in fill)
        q, r, train = block.q.astype(np.int32), block.r.astype(np.int32), self._weights(self.plan.train, block)
        if not whole:
            q, r, train = np.pad(q, fill[:1], "edge"), np.pad(r, fill, "edge"), np.pad(train, (*fill, (0, 0)), "edge")
        at = block.at[0] if whole and isinstance(block.at[0], slice) else q
        numbers = q + np.int32(self.first[0]), r + np.int32(self.first[1])
        return *(same if self.job.one_data_set else (array[at] for array in same)), train, *numbers

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
        self.done[at] = True
        if self.values is not None:
            self.values[at] = values
        if self.predictions is not None:
            self.predictions[at] = np.asarray(predictions)[part]
        for name, array in self.info.items():
            array[at] = np.asarray(info[name])[part]

    def arrays(self) -> dict[str, np.ndarray]:
        """What was computed, in the user's units, by the names of `jaxgen.store.parts.Arrays`, each [Q, R, ...]."""
        unit, shift = self.units.loss_unit, self.units.y_shift
        if self.units.changed:
            for array in (self.test_mean, self.train_mean, self.values):
                if array is not None:
                    array *= unit.reshape(*unit.shape, *(1,) * (array.ndim - unit.ndim))
            if self.predictions is not None:
                scale = self.units.y_scale
                self.predictions *= scale.reshape(*scale.shape, *(1,) * (4 - scale.ndim))
                self.predictions += shift.reshape(*shift.shape[:-1], 1, 1, shift.shape[-1])
        arrays = {"test_mean": self.test_mean, "train_mean": self.train_mean, "failure": self.failure}
        if self.values is not None:
            arrays["values"] = self.values
        if self.predictions is not None:
            arrays["predictions"] = self.predictions
        return arrays | {f"info/{name}": array for name, array in self.info.items()}


def _mean_weights(plan: Plan, sets: int, job: Job) -> np.ndarray:
    """Mean training weights of rows of a plan, some of them if they are many: [N] if all share one data set, else
    [sets, N]; zeros for learners that do not ask for them.
    """
    shape = (plan.n,) if job.one_data_set else (sets, plan.n)
    if not (job.together and job.learner.prepares_rows):
        return np.zeros(shape, job.dtype)
    train = plan.train[..., :: math.ceil(plan.resamples / _TYPICAL), :]
    axes = tuple(range(train.ndim - 1)) if job.one_data_set else train.ndim - 2
    return np.broadcast_to(train.mean(axis=axes, dtype=job.dtype), shape)


@partial(jax.jit, static_argnums=(0, 1, 2))
def host_losses(learner: Learner, loss: Loss, code: str, y: Any, predictions: Any) -> Any:
    """Losses [N] of what a row predicted on the host, [N, K]; `code` is the digest of the user's code in both."""
    known = distribution_of(learner, None, y, predictions) if about(loss).distribution else predictions
    return losses_of(loss, y, known)


def _cpu_or(device: jax.Device) -> jax.Device:
    """A CPU, where few numbers are quickest; the device itself where JAX was told to know no CPU."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return device


def row_words(key: Key, q: int, r: int) -> np.ndarray:
    """The numbers of the random key of row r of data set q, [words]: of the same key as where JAX trains it."""
    return np.asarray(_row_words(key, np.uint32(q), np.uint32(r)))


@jax.jit
def _row_words(key: Any, q: Any, r: Any) -> Any:
    return jax.random.key_data(jax.random.fold_in(jax.random.fold_in(key, q), r))


def bytes_kept(job: Job, keep: str, dtype: Any = np.float64) -> int:
    """Bytes that are kept of a training for each of its cases, together."""
    arrays = {"cases": 1, "predictions": 1 + job.outputs, "rows": 0}[keep]
    return arrays * job.cases * np.dtype(dtype).itemsize


def reasons(learner: Learner, loss: Loss) -> tuple[str, ...]:
    """Sentences that say why a training failed, by their number from 1; the last is for numbers without a sentence."""
    not_finite = "its loss is not finite (the training diverged, or a value overflowed)"
    if about(loss).probabilities:
        not_finite = "its loss is not finite (its predictions are no probabilities, or the training diverged)"
    unsaid = "its fit failed for a reason that failures of the learner does not state"
    return (not_finite, *learner.failures, unsaid)


def _smaller(size: tuple[int, int], job: Job, error: jax.errors.JaxRuntimeError) -> int:
    """Half the rows of a chunk that did not fit into the memory of a device, which is said.

    Raises:
      MemoryError: a single row does not fit.
      JaxRuntimeError: the error itself, if it is another.
    """
    if "RESOURCE_EXHAUSTED" not in str(error) or job.spread:  # other processes would go on with the whole chunk
        raise error
    rows = math.prod(size)
    if rows <= len(job.devices):
        raise MemoryError(
            f"expected one row of {job.learner} to fit into the memory of {job.devices[0]}, got an answer that it does "
            "not; use fewer cases or a smaller learner"
        ) from error
    warnings.warn(
        f"{job.devices[0]} had no memory for {rows} rows at a time; goes on with {rows // 2}",
        RuntimeWarning,
        stacklevel=2,
    )
    return rows // 2


def _even(total: int, most: int) -> int:
    """Size of equal chunks of at most `most` that cover `total` with the least to spare."""
    return math.ceil(total / math.ceil(total / most))


def common_size(size: int) -> int:
    """The size rounded up to four binary digits, at most an eighth more: runs of similar numbers of rows then share a
    compiled program, which takes longer than the rows that fill up the last chunk.
    """
    step = 1 << max(0, size.bit_length() - 4)
    return -(-size // step) * step
