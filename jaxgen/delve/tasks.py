"""Methods run on tasks, their results archived."""

import time
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import jax

from jaxgen.delve.archive import Archive, different
from jaxgen.delve.methods import Method, require_name
from jaxgen.delve.prototask import Prototask, as_sizes
from jaxgen.engine import assess
from jaxgen.engine.budget import callers
from jaxgen.engine.workers import one_thread, run_all
from jaxgen.loss import by_name, squared
from jaxgen.types import Key, Loss, Losses, as_learner, keys
from jaxgen.types.identity import named
from jaxgen.types.numbers import require, require_kind, shown

_LONG = 10**6
"""Cases times how often a training goes through them, from which it takes long."""


def task_key(seed: int, prototask: str, size: int) -> Key:
    """The random key of a task.

    It depends on the task only: methods that split the cases alike, or start alike, do so on every instance, and a
    method gives the same result whatever else is run. Instances have keys of their own, see `assess`.

    Raises:
      ValueError: a seed or size that is no whole number in range, or a name that is none.
    """
    require("seed", seed, 0, keys.MOST_SEED)
    require("size", size, 1)
    require_name("a prototask's name", prototask)
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), zlib.crc32(prototask.encode())), size)


def run_task(
    prototask: Prototask,
    size: int,
    method: Method,
    seed: int = 0,
    loss: Loss | str = squared,
    progress: bool | None = None,
) -> Losses:
    """Runs a method on all instances of a task, as one batch.

    Args:
      prototask: cases and conventions.
      size: training cases.
      method: what to run.
      seed: of the training.
      loss: per-case loss, or its name.
      progress: as for `assess`.
    Returns:
      Losses with the predictions of every case, [I, N, K].
    Raises:
      TypeError: no prototask or method, or as `assess` says.
      ValueError: as `assess` says.
    """
    require_kind("a prototask as delve.Prototask", prototask, Prototask, "make one, for example delve.simulated('kin')")
    require_kind("a method as delve.Method", method, Method, "make one: delve.Method('name', learner)")
    learner = method.on(size, prototask.data.d)
    return assess(
        task_key(seed, prototask.name, size),
        learner,
        prototask.data,
        prototask.plan(size),
        loss,
        keep="predictions",
        progress=progress,
    )


def run(
    archive: str | Path | Archive,
    prototasks: Sequence[Prototask],
    methods: Sequence[Method],
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    loss: Loss | str = squared,
    progress: bool | None = None,
    say: Callable[[str], object] | None = None,
) -> Archive:
    """Runs methods on all tasks of prototasks and stores every result as soon as it is there.

    What the archive has already is not run again, so an interrupted run goes on where it was. Several processes may
    run on one archive: what another one stored meanwhile stays. Tasks whose training takes long (networks, Markov
    chains) run side by side, one a core, after the others. Nothing is run, and no archive made, if something does not
    fit: prototasks and methods are looked at first, and what the archive holds under their names.

    Args:
      archive: an archive, or the path of one, made if it is not there.
      prototasks: cases and conventions.
      methods: what to run.
      sizes: training cases; None takes those of each prototask.
      seed: of the training; see `task_key`.
      loss: per-case loss, or its name.
      progress: as for `assess`.
      say: called with a line of text for every result, as it is there.
    Returns:
      The archive.
    Raises:
      TypeError: something else than lists of prototasks and methods, or as `assess` says.
      ValueError: names that are not different, prototasks or methods that do not agree with the archive, or as
        `assess` says.
    """
    counted = by_name(loss)
    tasks = _tasks(prototasks, methods, sizes, seed, counted)
    if say is not None and not callable(say):
        raise TypeError(f"expected say as a function of a text, got {shown(say)}; give for example print")
    archive = archive if isinstance(archive, Archive) else Archive.open(archive, create=True)
    for prototask in prototasks:
        archive.add_prototask(prototask)
    done = [_is_done(archive, task, counted) for task in tasks]
    long = [not there and _takes_long(task) for task, there in zip(tasks, done, strict=True)]
    at_once = min(sum(long), callers()) if sum(long) > 1 else 1
    for task, there, later in zip(tasks, done, long, strict=True):
        if at_once == 1 or not later:
            outcome = "there already" if there else _run_and_store(archive, task, counted, progress)
            _tell(say, task, outcome)
    if at_once > 1:

        def work(task: _Task) -> tuple[_Task, str]:
            with one_thread():
                return task, _run_and_store(archive, task, counted, progress)

        waiting = [task for task, later in zip(tasks, long, strict=True) if later]
        run_all(work, waiting, at_once, lambda told: _tell(say, *told))
    return archive


def _tell(say: Callable[[str], object] | None, task: "_Task", outcome: str) -> None:
    if say is not None:
        say(f"{task.prototask.name}, {task.size} cases, {task.method.name}: {outcome}")


def _takes_long(task: "_Task") -> bool:
    """Whether one training takes so long that a core had better train all instances of a task, a few rows in one
    program, than all cores a row or two of them each.
    """
    learner = as_learner(task.method.on(task.size, task.prototask.data.d))
    return not learner.on_host and (learner.rounds or 0) * task.size >= _LONG


class _Task(NamedTuple):
    """One result: a method on the instances of a prototask with so many training cases."""

    prototask: Prototask
    size: int
    method: Method
    seed: int


def _tasks(prototasks: Any, methods: Any, sizes: Any, seed: int, loss: Loss) -> list[_Task]:
    """All tasks, if every one can be made a plan and a learner of."""
    for what, values, kind in (("prototasks", prototasks, Prototask), ("methods", methods, Method)):
        if not isinstance(values, list | tuple) or not all(isinstance(value, kind) for value in values):
            raise TypeError(
                f"expected {what} as a list of delve.{kind.__name__}, got {shown(values)}; make each one, also where "
                "there is one only"
            )
        names = [value.name for value in values]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"expected {what} of different names, got {', '.join(names) or 'none'}; name each once")
    require("seed", seed, 0, keys.MOST_SEED)
    if not callable(loss):
        raise TypeError(f"expected a loss as a function of (y, predictions), got {shown(loss)}; give loss.squared")
    asked = None if sizes is None else as_sizes(sizes)
    tasks = [
        _Task(prototask, size, method, seed)
        for prototask in prototasks
        for size in asked or prototask.sizes
        for method in methods
    ]
    for task in tasks:
        task.prototask.plan(task.size)
        task.method.on(task.size, task.prototask.data.d)
    return tasks


def _run_and_store(archive: Archive, task: _Task, loss: Loss, progress: bool | None) -> str:
    """What to say of a result that was not there."""
    began = time.perf_counter()
    losses = run_task(task.prototask, task.size, task.method, task.seed, loss, progress)
    seconds = time.perf_counter() - began
    about = {
        "seconds": round(seconds, 3),
        "devices": f"{jax.local_device_count()} {jax.local_devices()[0].device_kind}",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    try:
        archive.add(task.prototask.name, task.size, task.method.name, losses, task.seed, about)
    except FileExistsError:
        if not _is_done(archive, task, loss):
            raise
        return "there already, by another process"
    failed = f", {int(losses.failed.sum())} of {losses.resamples} instances FAILED" if losses.failed.any() else ""
    return f"mean {losses.loss} loss {losses.test_mean.mean():.5g}{failed} ({seconds:.1f} s)"


def _is_done(archive: Archive, task: _Task, loss: Loss) -> bool:
    """Whether the archive has this very result.

    Raises:
      ValueError: it has another one under this name.
    """
    prototask, size, method, seed = task
    there = archive.manifest(prototask.name, size, method.name)
    if there is None:
        return False
    want = {
        "learner": named(method.on(size, prototask.data.d)),
        "seed": seed,
        "sha256": prototask.checksum,
        "scheme": prototask.plan(size).scheme,
        "loss": named(loss),
    }
    if trouble := different(there, want):
        raise ValueError(
            f"expected the method {method.name} that {archive.path} has for {prototask.name} with {size} "
            f"cases, got one with another {trouble}; give it another name, or use another archive"
        )
    return True
