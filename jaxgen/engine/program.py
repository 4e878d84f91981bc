"""A job traced to learn its needs, and compiled once for a shape."""

import gc
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import AxisType, PartitionSpec

from jaxgen.engine import kept
from jaxgen.engine.job import Job, fitted_alone
from jaxgen.engine.pieces import Chain, divided, operations_of_once, without_unread
from jaxgen.types.identity import text_of_known
from jaxgen.types.learner import RARE

_LAPACK = {
    *("cholesky", "cholesky_update", "eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product", "lu"),
    *("ormqr", "qr", "schur", "svd", "triangular_solve", "tridiagonal", "tridiagonal_solve", "ffi_call"),
    *("pure_callback", "io_callback", "debug_callback"),
}
"""Primitives that on a CPU call LAPACK, or other foreign code, for a batch: a guess before anything is lowered, which
sets the size of chunks. What decides is the lowered program, see `_calls_foreign_code`.
"""

_HARMLESS = re.compile(r"(mhlo|chlo|stablehlo)\..*|Sharding|SPMD\w+|annotate_device_placement|LayoutConstraint|TopK")
"""Custom calls of lowered programs that stand for XLA's own operations."""

_PREDICT_BYTES = 1 << 20
"""Working memory of predictions: where all cases are many more than those that a row trains on, few rows predict at a
time.
"""

_FEW_ROUNDS = 32
"""Loops of a known number of rounds up to this do not count as loops."""

_TRANSCENDENTAL = frozenset({"tanh", "logistic", "exp", "log", "log1p", "expm1", "erf", "sin", "cos", "pow"})
_COSTLY = 8
"""These functions cost as much as so many additions."""

_FACTORISATIONS = {
    **dict.fromkeys(("eigh", "svd"), 20),
    **dict.fromkeys(("cholesky", "geqrf", "householder_product", "lu", "qr", "triangular_solve"), 1),
}
"""Operations of decompositions and solutions for each number in a matrix and each of its columns, roughly."""

_SORTINGS = {"sort", "top_k"}
"""Primitives that cost some operations for each number and each doubling of how many there are."""

_SAME = (0, 1, 2, 3)
"""Arguments of a program that are the same for all chunks of one data set: the key, the inputs, the targets, and the
mean weights of all rows.
"""

_LITTLE = 1e8
"""Operations of a whole run from which on loops are long: they are compiled apart from what is around them."""

_NOT_MUCH = 4e9
"""Operations of a whole run for which XLA's older way to write out fused operations loses less time than it saves."""

_ROWS = (61, 67, 71, 73, 79, 83)
"""Rows of a chunk that is traced to see what it takes."""

_PASSES, _TRITON = "xla_disable_hlo_passes", "xla_gpu_enable_triton_gemm"
"""The option by which XLA leaves out some of its passes; what users say of it themselves stays."""

_LEAST_EFFORT, _MOST_EFFORT = 7, 14
"""Powers of ten: runs of fewer or more operations than these are compiled alike."""

_HOST_OPERATIONS = 4e10
"""What a training on the host is taken for, which nobody can trace: a hundred of them are a part of a run."""

_MAPS, _MOST_MAPS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
"""Memory maps of this process, a line each, and how many Linux allows; there are none elsewhere."""

_SHARE_OF_MAPS = 0.5
"""Of the memory maps allowed, from which on programs are dropped. A program takes hundreds, a large one thousands, and
where there are no more, LLVM ends the process.
"""

_NO_PART_OF_A_PROGRAM = re.compile(r"cache|log|dump|profil|traceback|explain|leak|distributed|coordinat|heartbeat")
"""Settings of JAX whose names match do not change what is compiled."""


@dataclass(frozen=True)
class Facts:
    """What tracing a job tells about it.

    Attributes:
      row_bytes: size of the widest intermediate array of a row while it is fitted.
      loop_bytes: the same inside loops of many rounds, whose arrays are used again and again; where rows have cases of
        their own, no less than the widest array that these loops are given.
      predict_bytes: the same while it predicts all cases.
      alone: it seems to call LAPACK, and then must not run beside another; see `Program`.
      decomposed: the most columns, or rows if these are fewer, of a matrix that it decomposes; 0 for none.
      operations: arithmetic of one training and its predictions, roughly; see `Learner.rounds`.
      shared: arithmetic of a chunk of rows that are trained together which is the same for any number of them, roughly,
        but for what is done once for all chunks.
      info: shape and type of what the learner's `diagnose` says of a row.
    """

    row_bytes: int
    loop_bytes: int
    predict_bytes: int
    alone: bool
    decomposed: int
    operations: float
    shared: float
    info: Mapping[str, jax.ShapeDtypeStruct]


@dataclass(frozen=True)
class Program:
    """A compiled job.

    Attributes:
      call: of (key, x, y, typical [sets, N], train [sets, rows, N], q [sets], r [sets, rows]).
      alone: on a CPU it must not run beside another of its kind: batched LAPACK calls wait for the pool of threads
        that also runs the chunks, so two at a time can wait for each other for ever (seen with jaxlib 0.10.2). Each
        uses all cores by itself.
    """

    call: Callable[..., Any]
    alone: bool

    @property
    def once(self) -> bool:
        """Whether something is done once for all chunks of one data set."""
        return isinstance(self.call, Chain) and self.call.once > 0

    def for_data(self, *same: Any) -> Callable[..., Any]:
        """`call` for chunks with the same key, x, y and typical, which it takes again, when that is done."""
        return partial(self.call, known=jax.block_until_ready(self.call.begun(*same)))


def settings() -> tuple[tuple[str, str], ...]:
    """JAX's settings that a program depends on, as they are here and now: precision of products, and the like."""
    values: Any = jax.config.values
    return tuple((name, repr(getattr(jax.config, name, values[name]))) for name in _settings_of_programs(len(values)))


@lru_cache(maxsize=8)
def _settings_of_programs(known: int) -> tuple[str, ...]:
    """Names of JAX's settings that a program depends on; there are more of them once more of JAX is imported."""
    return tuple(name for name in sorted(jax.config.values) if not _NO_PART_OF_A_PROGRAM.search(name))


def facts(job: Job) -> Facts:
    """Traces a few rows of one data set, if this was not done before with the same settings; nothing is compiled.
    Nothing is traced of rows that are trained on the host.

    Raises:
      ValueError: a function of the learner or the loss cannot be traced, or gives something of another shape.
    """
    if job.learner.on_host:
        cases = 8 * (job.cases + job.new) * (job.inputs + job.outputs)
        return Facts(cases, cases, cases, alone=False, decomposed=0, operations=_HOST_OPERATIONS, shared=0.0, info={})
    with jax.enable_x64(job.wide), jax.default_device(job.here):  # as it is compiled, so that JAX remembers the trace
        return _facts(job, settings())


@lru_cache(maxsize=64)
def _facts(job: Job, current: Any) -> Facts:
    file = _file(job, current, kind="facts")
    with suppress(TypeError, KeyError, ValueError, AttributeError):  # no note, or one that jaxgen did not write
        note = kept.read_note(file)
        info = {name: jax.ShapeDtypeStruct(shape, dtype) for name, (shape, dtype) in note.pop("info").items()}
        return Facts(**note, info=info)
    with _collecting_later():
        traced = _traced(job)
    info = {name: (value.shape, value.dtype.name) for name, value in traced.info.items()}
    kept.write_note(file, vars(traced) | {"info": info})
    return traced


def _file(job: Job, *others: Any, kind: str) -> Path | None:
    """Where something is kept that depends on a job and on others; None if the job holds code that is not the
    package's.
    """
    texts = {field.name: repr(getattr(job, field.name)) for field in fields(job) if field.name != "devices"}
    texts |= {"learner": text_of_known(job.learner), "loss": text_of_known(job.loss)}
    return None if None in texts.values() else kept.file_of(f"{texts} {others!r}", job.devices, kind)


def _traced(job: Job) -> Facts:
    others = {job.cases + job.new, job.cases, job.inputs, job.inputs + 1, job.outputs, job.learner.rounds}
    several = job.learner.weightings if job.together else 1
    rows = next(r for r in _ROWS if not {r, several * r} & others) if job.together else 1  # no other axis is as long
    of_rows = _Rows(rows, several)
    key = jax.random.key(0)
    x, y = (jax.ShapeDtypeStruct((job.cases, width), job.dtype) for width in (job.inputs, job.outputs))
    if job.together:
        typical = jax.ShapeDtypeStruct((job.cases,), job.dtype)
        train = jax.ShapeDtypeStruct((rows, job.cases), np.uint8)
        r, q = jax.ShapeDtypeStruct((rows,), np.int32), jax.ShapeDtypeStruct((), np.int32)
        fit, (params, _, known) = jax.make_jaxpr(job.fitted, return_shape=True)(key, x, y, typical, train, q, r)
        one = jax.tree.map(lambda p: jax.ShapeDtypeStruct(p.shape[1:], p.dtype), params)
    else:
        w = jax.ShapeDtypeStruct((job.cases,), job.dtype)
        fit, one = jax.make_jaxpr(partial(fitted_alone, job), return_shape=True)(key, x, y, w)
        known = None
    asked = jax.ShapeDtypeStruct((job.cases + job.new, job.inputs), job.dtype)
    predict = jax.make_jaxpr(job.tested)(one, asked, y) if known is None else jax.make_jaxpr(job.judged)(y, y)
    fail = jax.make_jaxpr(job.failed)(one)
    tell, info = jax.make_jaxpr(job.told, return_shape=True)(one)
    programs = (fit, predict, fail, tell)
    lapack = [each for program in programs for each in _equations(program) if each.primitive.name in _LAPACK]
    matrices = [each.invars[0].aval.shape[-2:] for each in lapack if each.primitive.name in _FACTORISATIONS]
    widest = max(_widest(_equations(fit), of_rows), job.cases * np.dtype(job.dtype).itemsize)
    rounds = job.learner.rounds
    shared = once = 0.0
    if job.together:
        shared = _operations(fit, rounds, of_rows, shared=True)
        if job.in_pieces and job.one_data_set:
            once = operations_of_once(
                fit, lambda equation: _operations_of(equation, rounds, of_rows, shared=True), _SAME
            )
    operations = (_operations(fit, rounds, of_rows) - shared) / rows + _operations(predict, rounds)
    in_loops = max(_widest(_equations_of_loops(fit), of_rows), _widest_read(_loops(fit)) if job.used is not None else 0)
    return Facts(
        widest,
        in_loops,
        _widest(_equations(predict), _Rows(1)),
        bool(lapack),
        max(map(min, matrices), default=0),
        operations,
        max(0.0, shared - once),
        info,
    )


class _Rows(NamedTuple):
    """Rows of a traced program, and how many weightings of the cases a learner makes of each."""

    rows: int
    weightings: int = 1

    def run_along(self, length: int) -> bool:
        """Whether an axis goes through them, or through several weightings of each."""
        return length > 0 and length % self.rows == 0 and self.weightings % (length // self.rows) == 0


def _widest(equations: Iterator[Any], rows: _Rows) -> int:
    """Bytes of a row in the largest array that some equations of a program of some rows make."""
    sizes = (
        math.prod(v.aval.shape) * v.aval.dtype.itemsize
        for equation in equations
        for v in equation.outvars
        if rows.rows == 1 or any(map(rows.run_along, v.aval.shape))
    )
    return max(1, max(sizes, default=1) // rows.rows)


def _widest_read(loops: Iterator[Any]) -> int:
    """Bytes of the widest array that some loops of a program of one row are given."""
    return max((math.prod(v.aval.shape) * v.aval.dtype.itemsize for loop in loops for v in loop.invars), default=0)


def _operations(program: Any, rounds: int | None, rows: _Rows | None = None, shared: bool = False) -> float:
    """Additions and multiplications of a traced program, roughly, without what is `RARE`.

    Args:
      program: traced.
      rounds: what all its loops, one within the other, make together; None takes loops of a known number of rounds as
        they are, and 100 for the others.
      rows: those that it is for; a loop of so many rounds goes through them, see `in_turn`.
      shared: only those of arrays none of whose axes goes through the rows, outside of such a loop.
    """
    equations = getattr(program, "jaxpr", program).eqns
    return math.fsum(_operations_of(equation, rounds, rows, shared) for equation in equations)


def _operations_of(equation: Any, rounds: int | None, rows: _Rows | None = None, shared: bool = False) -> float:
    """The same of a single equation."""
    name, inner = equation.primitive.name, list(_programs_in(equation))
    if equation.params.get("name") == RARE:
        return 0.0
    if inner:
        times, within = 1.0, rounds
        if name == "scan" and rows is not None and rows.run_along(equation.params["length"]):
            times = 0.0 if shared else equation.params["length"]
        elif name in ("while", "scan"):
            length = equation.params.get("length", 100)
            times, within = (rounds, 1) if rounds is not None else (length, None)
        return times * math.fsum(_operations(each, within, rows, shared) for each in inner)
    if shared and rows is not None and any(rows.run_along(n) for v in equation.outvars for n in v.aval.shape):
        return 0.0
    size = float(max((math.prod(v.aval.shape) for v in equation.outvars), default=1))
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        size *= 2 * math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
    if name in _FACTORISATIONS:
        size *= _FACTORISATIONS[name] * max(equation.invars[0].aval.shape[-2:])
    if name in _SORTINGS:
        given = equation.invars[0].aval
        size = len(equation.invars) * math.prod(given.shape) * 2 * math.log2(max(2, *given.shape))
    return size * (_COSTLY if name in _TRANSCENDENTAL else 1)


def _loops(program: Any) -> Iterator[Any]:
    """All loops of a traced program, but for those of few rounds and what is `RARE`."""
    for equation in _equations(program, rare=False):
        if equation.primitive.name == "while" or (
            equation.primitive.name == "scan" and equation.params["length"] > _FEW_ROUNDS
        ):
            yield equation


def _equations_of_loops(program: Any) -> Iterator[Any]:
    """The equations inside these loops."""
    for loop in _loops(program):
        yield from _inner(loop, rare=False)


def _equations(program: Any, rare: bool = True) -> Iterator[Any]:
    """All equations of a traced program, those of inner programs too, with or without what is `RARE`."""
    for equation in getattr(program, "jaxpr", program).eqns:
        if rare or equation.params.get("name") != RARE:
            yield equation
            yield from _inner(equation, rare)


def _inner(equation: Any, rare: bool = True) -> Iterator[Any]:
    """All equations of the programs that an equation holds."""
    for program in _programs_in(equation):
        yield from _equations(program, rare)


def _programs_in(equation: Any) -> Iterator[Any]:
    """The programs that an equation holds: the body of a loop, a branch, a function."""
    for value in equation.params.values():
        for inner in value if isinstance(value, tuple | list) else (value,):
            if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                yield inner


@contextmanager
def _collecting_later() -> Iterator[None]:
    """Python's garbage collector rests meanwhile, unless it does so anyway: tracing makes objects by the hundred
    thousand, and to look for garbage among all of them took .3 of the 1.1 s that networks stopped early are traced for.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


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
        asked = (job, sets, rows, key_type, effort, chunks > 1, busy, settings())
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
    job: Job, sets: int, rows: int, key_type: Any, effort: int, chunks: bool, busy: bool, current: Any
) -> Program:
    begun = time.perf_counter()
    _make_room()
    needs, whole = facts(job), None if job.one_data_set else 0
    job = replace(job, predicted=max(1, _PREDICT_BYTES * len(job.devices) // (needs.predict_bytes * sets)))
    in_tree = jax.tree.structure(((0,) * 7, {}))
    out_tree = jax.tree.structure((0, 0 if job.predictions else None, 0, 0, dict.fromkeys(needs.info, 0)))
    file = None if job.spread else _file(job, sets, rows, key_type, effort, chunks, busy, current, kind="program")
    if (known := kept.read_program(file, in_tree, out_tree, job.devices)) is not None:
        return Program(*known)

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
    with jax.default_device(job.here), _collecting_later():
        traced = jax.jit(run).trace(jax.ShapeDtypeStruct((), key_type), x, y, typical, *numbers)
        parts, results = _parts(job, traced, rows, effort, busy, _SAME if chunks and job.one_data_set else ())
    text = chr(0).join(f"{part.lowered.as_text()} {part.options}" for part in parts)
    alone = first.platform == "cpu" and (needs.alone or _calls_foreign_code(text))
    # What it was traced to says all. A program that calls LAPACK is known by that only: lowering it is what makes JAX
    # load LAPACK, and without that a program that was read calls nothing.
    if (file is None or alone) and not job.spread:
        file = kept.file_of(text, job.devices, "program")
        if (known := kept.read_program(file, in_tree, out_tree, job.devices)) is not None:
            return Program(*known)
    programs = _compile_all(job, parts)
    program = programs[0]
    if len(parts) > 1:
        reads, writes = tuple(part.reads for part in parts), tuple(part.writes for part in parts)
        program = Chain(tuple(programs), reads, writes, results, out_tree, sum(part.once for part in parts))
    kept.write_program(file, program, alone, time.perf_counter() - begun)
    return Program(program, alone)


class _Part(NamedTuple):
    """A piece of a program, lowered, with options of XLA; see `Piece`."""

    lowered: Any
    options: dict[str, Any]
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    once: bool = False


def _parts(
    job: Job, traced: Any, rows: int, effort: int, busy: bool, same: tuple[int, ...]
) -> tuple[list[_Part], tuple[int, ...]]:
    """The pieces of a traced program of some rows, and the numbers of the values that it gives; some arguments are the
    same in all calls.

    On several devices, and on others than CPUs, it stays in one piece.
    """
    if not job.in_pieces or traced.jaxpr.jaxpr.effects:
        return [_Part(traced.lower(), _options(job, math.inf, busy))], ()
    program, rounds = without_unread(traced.jaxpr), job.learner.rounds
    of_rows = _Rows(rows, job.learner.weightings if job.together else 1)

    def operations(equation: Any) -> float:
        return _operations_of(equation, rounds, of_rows)

    times = 10.0**effort / max(_operations(program, rounds, of_rows), 1)
    pieces, results = divided(program, operations, _LITTLE / times, same)
    if len(pieces) == 1:
        return [_Part(traced.lower(), _options(job, 10.0**effort, busy))], ()
    return [
        _Part(
            piece.lowered(),
            _options(job, piece.operations * (1 if piece.once else times), busy and not piece.once),
            piece.reads,
            piece.writes,
            piece.once,
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
    """Compiled pieces; XLA works at several of them at a time."""
    if len(parts) == 1:
        return [_compile(parts[0].lowered, parts[0].options)]

    def one(part: _Part) -> Any:
        with jax.enable_x64(job.wide), jax.default_device(job.here):  # settings are those of a thread
            return _compile(part.lowered, part.options)

    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(one, parts))


def _compile(lowered: Any, options: dict[str, Any]) -> Any:
    """The compiled program; options that this XLA does not know are left out."""
    try:
        return lowered.compile(compiler_options=options or None)
    except jax.errors.JaxRuntimeError as error:
        known = {name: value for name, value in options.items() if name not in str(error)}
        if len(known) == len(options):
            raise
        return _compile(lowered, known)


def _calls_foreign_code(text: str) -> bool:
    """Whether a lowered program calls code that is not XLA's own: LAPACK, Python, a library."""
    names = re.findall(r"custom_call @([\w.$]+)", text)
    return any(not _HARMLESS.fullmatch(name) for name in names)


def _make_room() -> None:
    """Drops all programs, which are read or compiled again when asked for, if this process has many memory maps."""
    with suppress(OSError, ValueError):  # a system that does not count them
        if _MAPS.read_bytes().count(b"\n") > _SHARE_OF_MAPS * int(_MOST_MAPS.read_text()):
            forget()
            gc.collect()


def forget() -> None:
    """Drops all traced and compiled programs."""
    _facts.cache_clear()
    _compiled.cache_clear()
