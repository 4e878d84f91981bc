"""A job compiled once for a shape."""

import gc
import math
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.sharding import AxisType, PartitionSpec

from jaxgen.engine import kept
from jaxgen.engine.job import Job
from jaxgen.engine.needs import SAME, collecting_later, facts, file_of_job, forget_facts, settings
from jaxgen.engine.ordered import in_order
from jaxgen.engine.pieces import Chain, divided, without_unread
from jaxgen.engine.traced import Rows, operations_in, operations_of, shapes_of

_HARMLESS = re.compile(r"(mhlo|chlo|stablehlo)\..*|Sharding|SPMD\w+|annotate_device_placement|LayoutConstraint|TopK")
"""Custom calls of lowered programs that stand for XLA's own operations."""

_PREDICT_BYTES = 1 << 20
"""Working memory of predictions: where all cases are many more than those that a row trains on, few rows predict at a
time.
"""

_LITTLE = 1e8
"""Operations of a whole run from which on loops are long: they are compiled apart from what is around them."""

_NOT_MUCH = 4e9
"""Operations of a whole run for which XLA's older way to write out fused operations loses less time than it saves."""

_PASSES, _TRITON = "xla_disable_hlo_passes", "xla_gpu_enable_triton_gemm"
"""The option by which XLA leaves out some of its passes; what users say of it themselves stays."""

_LEAST_EFFORT, _MOST_EFFORT = 7, 14
"""Powers of ten: runs of fewer or more operations than these are compiled alike."""

_MAPS, _MOST_MAPS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
"""Memory maps of this process, a line each, and how many Linux allows; there are none elsewhere."""

_SHARE_OF_MAPS = 0.5
"""Of the memory maps allowed, from which on programs are dropped. A program takes hundreds, a large one thousands, and
where there are no more, LLVM ends the process.
"""


@dataclass(frozen=True)
class Program:
    """A compiled job.

    Attributes:
      call: of (key, x, y, typical [sets, N], train [sets, rows, N], q [sets], r [sets, rows]).
      alone: on a CPU it must not run beside another of its kind: batched LAPACK calls wait for the pool of threads
        that also runs the chunks, so two at a time can wait for each other for ever (seen with jaxlib 0.10.2). Each
        uses all cores by itself.
      begins_alone: the same of what is done once for all chunks.
    """

    call: Callable[..., Any]
    alone: bool
    begins_alone: bool = False

    @property
    def once(self) -> bool:
        """Whether something is done once for all chunks of one data set."""
        return isinstance(self.call, Chain) and self.call.once > 0

    def for_data(self, *same: Any) -> Callable[..., Any]:
        """`call` for chunks with the same key, x, y and typical, which it takes again, when that is done."""
        return partial(self.call, known=jax.block_until_ready(self.call.begun(*same)))


def compiled(job: Job, sets: int, rows: int, key_type: Any, trainings: int, workers: int) -> Program:
    """The program for chunks of one shape (data sets, rows), compiled if this was not done with the same settings.

    Several devices share the data sets of a chunk if it has more than one, else its rows. The trainings of the whole
    run say how well it is worth to be compiled, and whether each of the workers, threads that run a chunk at a time,
    has one of its own.
    """
    with jax.enable_x64(job.wide):
        work = facts(job).operations * trainings
        effort = math.ceil(math.log10(max(work, 1)))  # so runs of similar length share a program
        effort, chunks = min(max(effort, _LEAST_EFFORT), _MOST_EFFORT), math.ceil(trainings / (sets * rows))
        busy = not (job.together or facts(job).alone) and (len(job.devices) > 1 or chunks >= workers)
        halves = workers > 1 and not facts(job).alone and (chunks == 1 or job.one_data_set)
        asked = (job, sets, rows, key_type, effort, chunks > 1, busy, halves, settings())
        with _making:
            alone = _lock_of(asked)
        with alone:  # who asks for the same at the same time waits, in place of compiling it too
            return _compiled(*asked)


_making = threading.Lock()


@lru_cache(maxsize=64)
def _lock_of(asked: Any) -> Any:
    """The lock under which a program is made."""
    return threading.Lock()


@lru_cache(maxsize=64)
def _compiled(
    job: Job, sets: int, rows: int, key_type: Any, effort: int, chunks: bool, busy: bool, halves: bool, current: Any
) -> Program:
    begun = time.perf_counter()
    _make_room()
    needs, whole = facts(job), None if job.one_data_set else 0
    job = replace(job, predicted=max(1, _PREDICT_BYTES * len(job.devices) // (needs.predict_bytes * sets)))
    in_tree = jax.tree.structure(((0,) * 7, {}))
    out_tree = jax.tree.structure((0, 0 if job.predictions else None, 0, 0, dict.fromkeys(needs.info, 0)))
    file = (
        None
        if job.spread
        else file_of_job(job, sets, rows, key_type, effort, chunks, busy, halves, current, kind="program")
    )
    if (known := kept.read_program(file, in_tree, out_tree, job.devices)) is not None:
        return _as_noted(*known)

    def run(key, x, y, typical, train, q, r):
        if len(q) == 1:  # vmap would batch every operation once more, which is slow to trace
            return jax.tree.map(lambda a: a[None], job.one_set(key, x[0], y[0], typical[0], train[0], q[0], r[0]))
        step = jax.vmap(job.one_set, in_axes=(None, whole, whole, whole, 0, 0, 0))
        if job.one_data_set:
            x, y, typical = x[0], y[0], typical[0]
        return step(key, x, y, typical, train, q, r)

    first, *others = job.devices
    if others:
        mesh = jax.make_mesh((len(job.devices),), ("shard",), axis_types=(AxisType.Auto,), devices=job.devices)
        by_set = PartitionSpec("shard") if sets > 1 else PartitionSpec()
        by_row = PartitionSpec("shard") if sets > 1 else PartitionSpec(None, "shard")
        data = PartitionSpec() if job.one_data_set else by_set
        # check_vma=True would take constant start values as replicated and sum their gradients over the devices.
        run = jax.shard_map(
            run,
            mesh=mesh,
            in_specs=(PartitionSpec(), data, data, data, by_row, by_set, by_row),
            out_specs=by_row,
            check_vma=False,
        )
    x, y, typical = (
        jax.ShapeDtypeStruct((1 if job.one_data_set else sets, *shape), job.dtype)
        for shape in ((job.cases + job.new, job.inputs), (job.cases, job.outputs), (job.cases,))
    )
    numbers = (
        jax.ShapeDtypeStruct((sets, rows, job.cases), np.uint8),
        jax.ShapeDtypeStruct((sets,), np.int32),
        jax.ShapeDtypeStruct((sets, rows), np.int32),
    )
    with jax.default_device(job.here), collecting_later():
        traced = jax.jit(run).trace(jax.ShapeDtypeStruct((), key_type), x, y, typical, *numbers)
        if needs.lapack and first.platform == "cpu":
            traced = _in_order(traced)
        parts, results = _parts(job, traced, rows, effort, busy, SAME if chunks and job.one_data_set else (), halves)
    foreign = [part for part in parts if first.platform == "cpu" and part.foreign]
    begins_alone, alone = any(part.once for part in foreign), any(not part.once for part in foreign)
    # What it was traced to says all. A program that calls LAPACK is known by that only: lowering it is what makes JAX
    # load LAPACK, and without that a program that was read calls nothing.
    if (file is None or foreign) and not job.spread:
        file = kept.file_of(chr(0).join(part.text for part in parts), job.devices, "program")
        if (known := kept.read_program(file, in_tree, out_tree, job.devices)) is not None:
            return _as_noted(*known)
    programs = _compile_all(job, parts)
    program = programs[0]
    if len(parts) > 1:
        reads, writes = tuple(part.reads for part in parts), tuple(part.writes for part in parts)
        beside = tuple(number for number, part in enumerate(parts) if part.beside and not part.foreign)
        program = Chain(tuple(programs), reads, writes, results, out_tree, sum(part.once for part in parts), beside)
    kept.write_program(file, program, (alone, begins_alone), time.perf_counter() - begun)
    return Program(program, alone, begins_alone)


def _as_noted(call: Callable[..., Any], note: Sequence[bool]) -> Program:
    """A program as it was read, with whether it is `alone` and `begins_alone`."""
    return Program(call, *note)


def _in_order(traced: Any) -> Any:
    """A traced program whose calls of LAPACK come one after the other."""
    program = in_order(traced.jaxpr)
    if program is traced.jaxpr:
        return traced
    tree = jax.tree.structure(traced.out_info)
    return jax.jit(lambda *given: jax.tree.unflatten(tree, jaxpr_as_fun(program)(*given))).trace(
        *shapes_of(program.jaxpr.invars)
    )


@dataclass(frozen=True)
class _Part:
    """A piece of a program, lowered, with options of XLA; see `Piece`."""

    lowered: Any
    options: dict[str, Any]
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    once: bool = False
    beside: bool = False

    @cached_property
    def text(self) -> str:
        """All that says what is compiled."""
        return f"{self.lowered.as_text()} {self.options}"

    @cached_property
    def foreign(self) -> bool:
        """Whether it calls code that is not XLA's own: LAPACK, Python, a library."""
        return any(not _HARMLESS.fullmatch(name) for name in re.findall(r"custom_call @([\w.$]+)", self.text))


def _parts(
    job: Job, traced: Any, rows: int, effort: int, busy: bool, same: tuple[int, ...], halves: bool
) -> tuple[list[_Part], tuple[int, ...]]:
    """The pieces of a traced program of some rows, and the numbers of the values that it gives; some arguments are the
    same in all calls.

    On several devices, and on others than CPUs, it stays in one piece.
    """
    if not job.in_pieces or traced.jaxpr.jaxpr.effects:
        return [_Part(traced.lower(), _options(job, math.inf, busy))], ()
    program, rounds = without_unread(traced.jaxpr), job.learner.rounds
    of_rows = Rows(rows, job.learner.weightings if job.together else 1)

    def operations(equation: Any) -> float:
        return operations_of(equation, rounds, of_rows)

    times = max(1.0, 10.0**effort / max(operations_in(program, rounds, of_rows), 1))
    pieces, results = divided(program, operations, _LITTLE / times, same, halves)
    if len(pieces) == 1:
        return [_Part(traced.lower(), _options(job, 10.0**effort, busy))], ()
    return [
        _Part(
            piece.lowered(),
            _options(job, piece.operations * (1 if piece.once else times), piece.half > 0 or (busy and not piece.once)),
            piece.reads,
            piece.writes,
            piece.once,
            piece.half > 1,
        )
        for piece in pieces
    ], results


def _options(job: Job, work: float, busy: bool) -> dict[str, Any]:
    """How XLA is to compile a piece of a job on a CPU or GPU that does some work in a run, in operations, unless JAX is
    set to compile without optimisations.

    On a GPU, XLA would compile many versions of each product of matrices by Triton and time them, which products of
    small models do not repay. Without them first calls on an H100 took 4 s in place of 21 (penalties chosen), 7 in
    place of 20 (softmax regressions) and 5 in place of 8 (networks), and the next ones as long as before.

    On a CPU, LLVM's highest level takes up to twice as long as the next and gives code that is no faster: 5.0 and
    2.0 s for a network trained by adam. Its lowest takes half of that again, but with the older way to write out
    fused operations it gives wrong numbers (seen with jaxlib 0.8.1 and 0.10.2: NaN of neighbours). A linear
    learner, one that asks for double precision, takes longer to compile than to run: that older way needs half the
    time for it, and runs as fast. Networks run twice as long that way, which is still less than what it saves where
    there is not much to do.

    XLA divides long elementwise operations between the cores. It is told not to where every core is `busy` with a
    chunk of its own: the arrays of a chunk fit into the cache of its core, and half of them would move to that of
    another. Networks took up to 15 % longer. Chunks whose rows share work are larger than a cache anyway.
    """
    values: Any = jax.config.values
    platform, asked = job.devices[0].platform, os.environ.get("XLA_FLAGS", "")
    if platform not in ("cpu", "gpu") or values.get("jax_disable_most_optimizations"):
        return {}
    if platform == "gpu":
        return {} if _TRITON in asked else {_TRITON: False}
    older = {"xla_cpu_use_fusion_emitters": False} if job.learner.precise or work < _NOT_MUCH else {}
    whole = {_PASSES: "cpu-parallel-task-assigner"} if busy and _PASSES not in asked else {}
    return {"xla_backend_optimization_level": 2, **older, **whole}


def _compile_all(job: Job, parts: list[_Part]) -> list[Any]:
    """Compiled pieces; XLA works at several of them at a time. Halves of a loop are the same program."""
    if len(parts) == 1:
        return [_compile(parts[0].lowered, parts[0].options)]

    def one(part: _Part) -> Any:
        with jax.enable_x64(job.wide), jax.default_device(job.here):  # settings are those of a thread
            return _compile(part.lowered, part.options)

    unlike = {part.text: part for part in reversed(parts)}
    with ThreadPoolExecutor(len(unlike)) as pool:
        made = dict(zip(unlike, pool.map(one, unlike.values()), strict=True))
    return [made[part.text] for part in parts]


def _compile(lowered: Any, options: dict[str, Any]) -> Any:
    """The compiled program; options that this XLA does not know are left out."""
    try:
        return lowered.compile(compiler_options=options or None)
    except jax.errors.JaxRuntimeError as error:
        known = {name: value for name, value in options.items() if name not in str(error)}
        if len(known) == len(options):
            raise
        return _compile(lowered, known)


def _make_room() -> None:
    """Drops all programs, which are read or compiled again when asked for, if this process has many memory maps."""
    with suppress(OSError, ValueError):  # a system that does not count them
        if _MAPS.read_bytes().count(b"\n") > _SHARE_OF_MAPS * int(_MOST_MAPS.read_text()):
            forget()
            gc.collect()


def forget() -> None:
    """Drops all traced and compiled programs."""
    forget_facts()
    _compiled.cache_clear()
