"""A job traced to learn what it needs."""

import gc
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxgen.engine import kept
from jaxgen.engine.job import Job, fitted_alone
from jaxgen.engine.pieces import done_once
from jaxgen.engine.traced import (
    FACTORISATIONS,
    LAPACK,
    Rows,
    equations_in,
    equations_of_loops,
    loops,
    operations_in,
    operations_of,
    widest_in,
    widest_read,
    with_inner,
)
from jaxgen.types.identity import text_of_known

_ROWS = (61, 67, 71, 73, 79, 83)
"""Rows of a chunk that is traced to see what it takes."""

SAME = (0, 1, 2, 3)
"""Arguments of a program that are the same for all chunks of one data set: the key, the inputs, the targets, and the
mean weights of all rows.
"""

_HOST_OPERATIONS = 4e10
"""What a training on the host is taken for, which nobody can trace: a hundred of them are a part of a run."""

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
      lapack: whether it seems to call LAPACK.
      alone: whether a chunk seems to, after what is done once for all chunks, and then must not run beside another; see
        `Program`.
      decomposed: the most columns, or rows if these are fewer, of a matrix that it decomposes; 0 for none.
      operations: arithmetic of one training and its predictions, roughly; see `Learner.rounds`.
      shared: arithmetic of a chunk of rows that are trained together which is the same for any number of them, roughly,
        but for what is done once for all chunks.
      info: shape and type of what the learner's `diagnose` says of a row.
    """

    row_bytes: int
    loop_bytes: int
    predict_bytes: int
    lapack: bool
    alone: bool
    decomposed: int
    operations: float
    shared: float
    info: Mapping[str, jax.ShapeDtypeStruct]


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
        return Facts(cases, cases, cases, False, False, 0, _HOST_OPERATIONS, shared=0.0, info={})
    with jax.enable_x64(job.wide), jax.default_device(job.here):  # as it is compiled, so that JAX remembers the trace
        return _facts(job, settings())


@lru_cache(maxsize=64)
def _facts(job: Job, current: Any) -> Facts:
    file = file_of_job(job, current, kind="facts")
    with suppress(TypeError, KeyError, ValueError, AttributeError):  # no note, or one that jaxgen did not write
        note = kept.read_note(file)
        info = {name: jax.ShapeDtypeStruct(shape, dtype) for name, (shape, dtype) in note.pop("info").items()}
        return Facts(**note, info=info)
    with collecting_later():
        traced = _traced(job)
    info = {name: (value.shape, value.dtype.name) for name, value in traced.info.items()}
    kept.write_note(file, vars(traced) | {"info": info})
    return traced


def file_of_job(job: Job, *others: Any, kind: str) -> Path | None:
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
    of_rows = Rows(rows, several)
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
    lapack = [each for program in programs for each in equations_in(program) if each.primitive.name in LAPACK]
    matrices = [each.invars[0].aval.shape[-2:] for each in lapack if each.primitive.name in FACTORISATIONS]
    widest = max(widest_in(equations_in(fit), of_rows), job.cases * np.dtype(job.dtype).itemsize)
    rounds = job.learner.rounds
    shared, once = 0.0, []
    if job.together:
        shared = operations_in(fit, rounds, of_rows, shared=True)
        if job.in_pieces and job.one_data_set:
            once = done_once(fit, lambda equation: operations_of(equation, rounds, of_rows, shared=True), SAME)
    of_once = math.fsum(operations_of(equation, rounds, of_rows, shared=True) for equation in once)
    lapack_once = [each for equation in once for each in with_inner(equation) if each.primitive.name in LAPACK]
    operations = (operations_in(fit, rounds, of_rows) - shared) / rows + operations_in(predict, rounds)
    in_loops = max(widest_in(equations_of_loops(fit), of_rows), widest_read(loops(fit)) if job.used is not None else 0)
    return Facts(
        widest,
        in_loops,
        widest_in(equations_in(predict), Rows(1)),
        bool(lapack),
        len(lapack) > len(lapack_once),
        max(map(min, matrices), default=0),
        operations,
        max(0.0, shared - of_once),
        info,
    )


@contextmanager
def collecting_later() -> Iterator[None]:
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


def forget_facts() -> None:
    """Drops what tracing told of all jobs."""
    _facts.cache_clear()
