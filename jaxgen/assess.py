"""The engine: trains one learner on every row of a plan, all rows at once, in chunks, over all devices and cores."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec
from tqdm import tqdm

from jaxgen import keys
from jaxgen.loss import squared
from jaxgen.types import Data, Key, Learner, Loss, Losses, Plan

_CACHE_BYTES = 2 << 20
"""Working memory of one chunk on one CPU core: activations that leave the cache cost a factor of three."""
_GATHER_SHARE = 0.75
"""Rows that use at most this share of the cases train on a gathered copy of them, others on all cases with masks."""
_SHARED_ROWS = 8
"""From this many rows a data set, a learner's `fit_rows` is preferred to `fit`."""
_LAPACK = {"cholesky", "cholesky_update", "eig", "eigh", "geqrf", "geqp3", "hessenberg", "householder_product", "lu", "ormqr", "qr", "schur", "svd", "triangular_solve", "tridiagonal", "tridiagonal_solve", "ffi_call", "pure_callback", "io_callback"}


@dataclass(frozen=True)
class _Job:
    """What one compiled step does: everything that, if changed, needs another compilation."""

    learner: Learner
    loss: Loss
    cases: int
    used: int | None  # gather this many cases a row; None: mask
    left_out: int | None  # most cases left out, where weights are 0 or 1
    together: bool  # fit_rows instead of fit
    devices: tuple[Any, ...]

    def one_set(self, key, x, y, train, q, r):
        """Losses [b, N], failure [b], trusted [b] and info of b rows of one data set."""
        row_keys = jax.vmap(lambda row: jax.random.fold_in(jax.random.fold_in(key, q), row))(r)
        weights = train.astype(x.dtype)
        if self.together:
            params, trusted = self.learner.fit_rows(row_keys, x, y, weights, self.left_out)
        else:
            params = jax.vmap(lambda row_key, w: self.learner.fit(row_key, *self._gather(x, y, w)))(row_keys, weights)
            trusted = jnp.ones(len(r), bool)
        losses = jax.vmap(lambda p: self.loss(y, self.learner.predict(p, x)))(params)
        failure = jax.vmap(getattr(self.learner, "failure", lambda p: jnp.zeros((), jnp.int32)))(params)
        return losses, failure, trusted, jax.vmap(getattr(self.learner, "diagnose", lambda p: {}))(params)

    def _gather(self, x, y, w):
        if self.used is None:
            return x, y, w
        index = jnp.nonzero(w, size=self.used, fill_value=0)[0]
        present = jnp.arange(self.used) < jnp.sum(w > 0)
        return x[index], y[index], jnp.where(present, w[index], 0)


class _Block(NamedTuple):
    """A chunk: the numbers of its data sets [sets] and rows [sets, rows], and where they stand in arrays [Q, R]."""

    q: np.ndarray
    r: np.ndarray
    at: tuple[Any, Any]


@dataclass(frozen=True)
class _Step:
    """A compiled step and how many of it may run at a time."""

    run: Callable[..., Any]
    workers: int


def assess(
    key: Key,
    learner: Learner,
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
    or threads changes its random numbers. Chunks run on all CPU cores, or sharded over all devices where there are several.

    Args:
      key: consumed; the randomness of the training, not that of the plan.
      learner: what to train; see `jaxgen.types.Learner`.
      data: x [*Q, N, D] and y [*Q, N, K]. Fits follow the floating type that JAX is set to (32 bits unless x64 is enabled).
      plan: train and test weights [*Q, R, N]; without Q it serves every data set.
      loss: per-case loss, from `jaxgen.loss` or a function of (y [N, K], prediction [N, K]) to [N].
      keep: "cases" for the losses of every row on every case, [*Q, R, N]; "rows" for the means of each row only, memory O(R).
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
    _check(key, learner, data, plan, keep, chunk)
    sets, rows = data.sets or plan.sets or 1, plan.resamples
    dtype = jax.dtypes.canonicalize_dtype(np.float64)
    job = _job(learner, loss, data, plan, tuple(devices or jax.local_devices()))
    run = _Run(key, job, np.asarray(data.x, dtype), np.asarray(data.y, dtype), plan, (sets, rows), keep, chunk)
    with tqdm(total=sets * rows, unit=" rows", desc=_shorten(repr(learner)), disable=None if progress is None else not progress, delay=0.5) as bar:
        run.all_rows(bar.update)
    return run.losses(data, plan, repr(learner), getattr(loss, "__name__", repr(loss)))


def _check(key: Key, learner: Learner, data: Data, plan: Plan, keep: str, chunk: int | None) -> None:
    keys.require(key)
    data.checked()
    plan.checked()
    if plan.n != data.n:
        raise ValueError(f"expected a plan for the {data.n} cases of the data, got one for {plan.n} ({plan.scheme}); make the plan with n={data.n}")
    if data.sets and plan.sets and data.sets != plan.sets:
        raise ValueError(f"expected as many sets of splits as data sets, got {plan.sets} and {data.sets}; make the plan with sets={data.sets}, or without sets to share it")
    if keep not in ("cases", "rows"):
        raise ValueError(f"expected keep='cases' or keep='rows', got {keep!r}; choose what to keep of the losses")
    if chunk is not None and chunk < 1:
        raise ValueError(f"expected a chunk of at least 1 row, got {chunk}; leave chunk out to have it chosen")
    if isinstance(learner, type) or not (hasattr(learner, "fit") and hasattr(learner, "predict")):
        raise TypeError(f"expected a learner with the methods fit and predict, got {learner!r}; make one, for example learn.LeastSquares()")
    try:
        hash(learner)
    except TypeError:
        raise TypeError(f"expected a learner that can be hashed, got {learner!r}; make it a frozen dataclass of plain values") from None
    if hasattr(learner, "check"):
        learner.check(data, plan)


def _job(learner: Learner, loss: Loss, data: Data, plan: Plan, devices: tuple[Any, ...]) -> _Job:
    most, fewest = int(plan.train_cases.max()), int(plan.train_cases.min())
    together = hasattr(learner, "fit_rows") and plan.resamples >= _SHARED_ROWS
    left_out = data.n - fewest if together and int(plan.train.max()) == 1 else None
    if left_out is not None and left_out > max(1, data.d // 4):
        left_out = None  # each such number would compile anew, for no gain
    used = most if not together and most <= _GATHER_SHARE * data.n else None
    return _Job(learner, loss, data.n, used, left_out, together, devices)


class _Run:
    """One call of `assess`: the arrays that its chunks read from and write to."""

    def __init__(self, key, job: _Job, x: np.ndarray, y: np.ndarray, plan: Plan, shape: tuple[int, int], keep: str, chunk: int | None):
        self.key, self.job, self.plan, self.shape, self.chunk = key, job, plan, shape, chunk
        self.x, self.y = (x, y) if x.ndim == 3 else (x[None], y[None])
        self.shared = jax.device_put((self.x, self.y), job.devices[0]) if len(self.x) == 1 and len(job.devices) == 1 else None
        self.budget = _Budget.of(job, (self.x, self.y))
        self.budget.refuse_if_too_large(shape[0] * shape[1] * plan.n * x.itemsize if keep == "cases" else 0, job.learner, keep)
        self.values = np.empty((*shape, plan.n), x.dtype) if keep == "cases" else None
        self.test_mean, self.train_mean = np.empty(shape), np.empty(shape)
        self.train_sizes, self.test_sizes = (np.broadcast_to(sizes, shape) for sizes in (plan.train_sizes, plan.test_sizes))
        self.failure, self.trusted = np.zeros(shape, np.uint8), np.ones(shape, bool)
        self.info = {name: np.empty((*shape, *value.shape[1:]), value.dtype) for name, value in _outputs(job, x.shape[-1], y.shape[-1], x.dtype.name)[3].items()}

    def all_rows(self, advance: Callable[[int], Any]) -> None:
        """Trains every row; those that a learner's `fit_rows` did not solve well are trained again, one by one."""
        self._run_blocks(self.job, *self._blocks(), advance)
        again = np.argwhere(~self.trusted)
        if len(again):
            job = replace(self.job, used=None, left_out=None, together=False)
            size = min(256, len(again))
            size += -size % len(job.devices)
            parts = np.array_split(again, math.ceil(len(again) / size))
            self._run_blocks(job, (size, 1), (_Block(rows[:, 0], rows[:, 1:], (rows[:, :1], rows[:, 1:])) for rows in parts), lambda rows: None)

    def _blocks(self) -> tuple[tuple[int, int], Iterator["_Block"]]:
        """The shape (data sets, rows) of a chunk, and all chunks."""
        sets, rows = self.shape
        devices = len(self.job.devices)
        most = self.chunk or self.budget.rows(sets * rows)
        by_set, by_row = _even(sets, max(1, most // rows)), _even(rows, min(rows, most))
        if by_set > 1:
            by_set += -by_set % devices
        else:
            by_row += -by_row % devices
        grid = ((slice(q, min(q + by_set, sets)), slice(r, min(r + by_row, rows))) for q in range(0, sets, by_set) for r in range(0, rows, by_row))
        return (by_set, by_row), (_Block(np.arange(q.start, q.stop), np.arange(r.start, r.stop)[None].repeat(q.stop - q.start, 0), (q, r)) for q, r in grid)

    def _run_blocks(self, job: _Job, size: tuple[int, int], blocks: Iterator["_Block"], advance: Callable[[int], Any]) -> None:
        step = _compiled(job, size, self.x.shape[2], self.y.shape[2], self.x.dtype.name, self.key.dtype, len(self.x) == 1)
        wide = jax.config.jax_enable_x64

        def work(block):
            with jax.enable_x64(wide), jax.default_device(job.devices[0]):
                self._store(block, *step.run(self.key, *self._arguments(size, block)))
            return block.r.size

        with ThreadPoolExecutor(step.workers) as pool:
            pending = set()
            try:
                for block in blocks:
                    pending.add(pool.submit(work, block))
                    if len(pending) > 2 * step.workers:
                        done, pending = wait(pending, return_when=FIRST_COMPLETED)
                        advance(sum(future.result() for future in done))
                advance(sum(future.result() for future in pending))
            finally:
                pool.shutdown(cancel_futures=True)

    def _arguments(self, size: tuple[int, int], block: "_Block") -> tuple[Any, ...]:
        """Arrays of a chunk, filled up to its compiled size by repeating the last set and row."""
        fill = ((0, size[0] - len(block.q)), (0, size[1] - block.r.shape[1]))
        whole = not any(after for _, after in fill)
        q, r, train = block.q.astype(np.int32), block.r.astype(np.int32), self._weights(self.plan.train, block)
        if not whole:
            q, r, train = np.pad(q, fill[:1], "edge"), np.pad(r, fill, "edge"), np.pad(train, (*fill, (0, 0)), "edge")
        at = block.at[0] if whole and isinstance(block.at[0], slice) else q
        x, y = self.shared or ((self.x, self.y) if len(self.x) == 1 else (self.x[at], self.y[at]))
        return x, y, train, q, r

    def _weights(self, weights: np.ndarray, block: "_Block") -> np.ndarray:
        """Weights [sets, rows, N] of a chunk."""
        if self.plan.sets:
            return weights[block.at]
        return np.broadcast_to(weights[block.at[1]], (*block.r.shape, weights.shape[-1]))

    def _store(self, block: "_Block", losses, failure, trusted, info) -> None:
        """Copies a chunk's results to their rows; the means are taken here, in double precision."""
        part, at = (slice(block.r.shape[0]), slice(block.r.shape[1])), block.at
        values = np.asarray(losses)[part]
        finite = bool(np.isfinite(np.sum(values, dtype=np.float64)))
        for mean, weights, sizes in ((self.test_mean, self.plan.test, self.test_sizes), (self.train_mean, self.plan.train, self.train_sizes)):
            w = self._weights(weights, block)
            used = values if finite else np.where(w > 0, values, 0)
            mean[at] = np.einsum("qrn,qrn->qr", used, w, dtype=np.float64, casting="unsafe") / sizes[at]
        code = np.asarray(failure)[part]
        self.failure[at] = np.where(code > 0, code + 1, ~np.isfinite(self.test_mean[at] + self.train_mean[at]))
        self.trusted[at] = np.asarray(trusted)[part]
        if self.values is not None:
            self.values[at] = values
        for name, value in info.items():
            self.info[name][at] = np.asarray(value)[part]

    def losses(self, data: Data, plan: Plan, learner: str, loss: str) -> Losses:
        """The result, without an axis Q if neither data nor plan had one."""

        def out(a):
            return a if a is None or data.sets or plan.sets else a[0]

        reasons = ("its loss is not finite (the training diverged, or a value overflowed)", *getattr(self.job.learner, "failures", ()))
        info = {name: out(value) for name, value in self.info.items()}
        return Losses(out(self.test_mean), out(self.train_mean), plan, learner, loss, out(self.failure), reasons, out(self.values), info)


def _even(total: int, most: int) -> int:
    """Size of equal chunks of at most `most` that cover `total` with the least to spare."""
    return math.ceil(total / math.ceil(total / most))


@lru_cache(maxsize=64)
def _compiled(job: _Job, size: tuple[int, int], d: int, k: int, dtype: str, key_dtype: Any, one_data_set: bool) -> _Step:
    """The step of a job for chunks of size (data sets, rows), compiled once."""
    sets, rows = size
    over = "sets" if sets > 1 else "rows"
    step = jax.vmap(job.one_set, in_axes=(None, None if one_data_set else 0, None if one_data_set else 0, 0, 0, 0))

    def run(key, x, y, train, q, r):
        return step(key, x[0] if one_data_set else x, y[0] if one_data_set else y, train, q, r)

    by_set, by_row = PartitionSpec("shard") if over == "sets" else PartitionSpec(), PartitionSpec("shard") if over == "sets" else PartitionSpec(None, "shard")
    if len(job.devices) > 1:
        mesh = jax.make_mesh((len(job.devices),), ("shard",), axis_types=(AxisType.Auto,), devices=job.devices)
        data_spec = PartitionSpec() if one_data_set else by_set
        # check_vma=True would take constant start values as replicated and sum their gradients over the devices.
        run = jax.shard_map(run, mesh=mesh, in_specs=(PartitionSpec(), data_spec, data_spec, by_row, by_set, by_row), out_specs=by_row, check_vma=False)
    x_sets = 1 if one_data_set else sets
    shapes = (
        jax.ShapeDtypeStruct((), key_dtype),
        *(jax.ShapeDtypeStruct((x_sets, job.cases, width), dtype) for width in (d, k)),
        jax.ShapeDtypeStruct((sets, rows, job.cases), np.uint8),
        jax.ShapeDtypeStruct((sets,), np.int32),
        jax.ShapeDtypeStruct((sets, rows), np.int32),
    )
    with jax.default_device(job.devices[0]):
        traced = jax.jit(run).trace(*shapes)
        return _Step(traced.lower().compile(), _workers(job.devices, traced.jaxpr))


def _workers(devices: tuple[Any, ...], program: Any) -> int:
    """Threads that may each run a chunk: one per core on a single CPU device, one otherwise.

    Batched LAPACK calls wait for the same pool of threads that runs the chunks; two at a time can wait for each other
    for ever (seen with jaxlib 0.10.2), and each uses all cores by itself, so a program that has any runs alone.
    """
    if len(devices) > 1 or devices[0].platform != "cpu" or any(equation.primitive.name in _LAPACK for equation in _equations(program)):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _equations(program: Any) -> Iterator[Any]:
    """All equations of a traced program, those of inner programs too."""
    for equation in getattr(program, "jaxpr", program).eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                    yield from _equations(inner)


@dataclass(frozen=True)
class _Budget:
    """Memory that a row needs while it is trained, and the memory there is."""

    row_bytes: int
    chunk_bytes: int
    device_bytes: int
    workers: int

    @classmethod
    def of(cls, job: _Job, arrays: tuple[np.ndarray, np.ndarray]) -> "_Budget":
        """Sizes a job from its traced program: the widest intermediate array of a row, per row."""
        device = job.devices[0]
        statistics = device.memory_stats() or {}
        memory = statistics.get("bytes_limit", 0) - statistics.get("bytes_in_use", 0) or _host_memory()
        row = _row_bytes(job, *(a.shape[2] for a in arrays), arrays[0].dtype.name)
        if device.platform == "cpu":
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            return cls(row, _CACHE_BYTES * len(job.devices), memory, max(1, cores // len(job.devices)))
        return cls(row, memory // 16 * len(job.devices), memory, 1)

    def rows(self, total: int) -> int:
        """Rows of a chunk: within the budget, and at least two chunks a worker where there are rows for them."""
        return max(1, min(self.chunk_bytes // self.row_bytes, math.ceil(total / (2 * self.workers)) if self.workers > 1 else total))

    def refuse_if_too_large(self, loss_bytes: int, learner: Learner, keep: str) -> None:
        """Raises MemoryError for a run that cannot fit."""
        available = _host_memory()
        if loss_bytes > 0.9 * available:
            raise MemoryError(f"expected the losses of all rows and cases to fit into memory, got {loss_bytes:,} bytes where {available:,} are free; use keep='rows', or fewer resamples")
        if self.row_bytes > self.device_bytes:
            raise MemoryError(f"expected one row of {learner} to fit into memory, got {self.row_bytes:,} bytes where {self.device_bytes:,} are free; use fewer cases or a smaller learner")


@lru_cache(maxsize=64)
def _row_bytes(job: _Job, d: int, k: int, dtype: str) -> int:
    """Bytes of the widest intermediate array of a row."""
    program = jax.make_jaxpr(job.one_set)(*_shapes(job, d, k, dtype))
    rows = _shapes(job, d, k, dtype)[-1].shape[0]
    sizes = (math.prod(v.aval.shape) * v.aval.dtype.itemsize for equation in _equations(program) for v in equation.outvars if rows in v.aval.shape or rows == 1)
    return max(1, max(sizes, default=1) // rows)


@lru_cache(maxsize=64)
def _outputs(job: _Job, d: int, k: int, dtype: str) -> Any:
    """Shapes of what `one_set` returns."""
    return jax.eval_shape(job.one_set, *_shapes(job, d, k, dtype))


def _shapes(job: _Job, d: int, k: int, dtype: str) -> tuple[Any, ...]:
    """Arguments of `one_set` for a few rows: a number of them that no other axis is likely to have."""
    rows = 61 if job.together else 1
    data = (jax.ShapeDtypeStruct((job.cases, width), dtype) for width in (d, k))
    return jax.random.key(0), *data, jax.ShapeDtypeStruct((rows, job.cases), np.uint8), jax.ShapeDtypeStruct((), np.int32), jax.ShapeDtypeStruct((rows,), np.int32)


def _host_memory() -> int:
    """Free bytes of main memory."""
    try:
        with open("/proc/meminfo") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
