"""Methods run on tasks, their results archived."""

import time
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import jax

from jaxgen.delve.archive import Archive, different
from jaxgen.delve.methods import Method
from jaxgen.delve.prototask import Prototask
from jaxgen.engine import assess
from jaxgen.loss import squared
from jaxgen.types import Key, Loss, Losses


def task_key(seed: int, prototask: str, size: int) -> Key:
    """The random key of a task.

    It depends on the task only: methods that split the cases alike, or start alike, do so on every instance, and a
    method gives the same result whatever else is run. Instances have keys of their own, see `assess`.
    """
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), zlib.crc32(prototask.encode())), size)


def run_task(
    prototask: Prototask, size: int, method: Method, seed: int = 0, loss: Loss = squared, progress: bool | None = None
) -> Losses:
    """Runs a method on all instances of a task, as one batch.

    Args:
      prototask: cases and conventions.
      size: training cases.
      method: what to run.
      seed: of the training.
      loss: per-case loss.
      progress: as for `assess`.
    Returns:
      Losses with the predictions of every case, [I, N, K].
    Raises:
      ValueError: as `assess` says.
    """
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
    loss: Loss = squared,
    progress: bool | None = None,
    say: Callable[[str], object] | None = None,
) -> Archive:
    """Runs methods on all tasks of prototasks and stores every result as soon as it is there.

    What the archive has already is not run again, so an interrupted run goes on where it was. Nothing is run if the
    archive holds another method of the same name.

    Args:
      archive: an archive, or the path of one, made if it is not there.
      prototasks: cases and conventions.
      methods: what to run.
      sizes: training cases; None takes those of each prototask.
      seed: of the training; see `task_key`.
      loss: per-case loss.
      progress: as for `assess`.
      say: called with a line of text for every result.
    Returns:
      The archive.
    Raises:
      ValueError: names that are not different, prototasks or methods that do not agree with the archive, or as
        `assess` says.
    """
    for what, names in (("prototasks", [one.name for one in prototasks]), ("methods", [one.name for one in methods])):
        if not names or len(set(names)) < len(names):
            raise ValueError(f"expected {what} of different names, got {', '.join(names) or 'none'}; name each once")
    archive = archive if isinstance(archive, Archive) else Archive.open(archive, create=True)
    for prototask in prototasks:
        archive.add_prototask(prototask)
    tasks = [
        (prototask, size, method) for prototask in prototasks for size in sizes or prototask.sizes for method in methods
    ]
    done = [_is_done(archive, *task, seed, loss) for task in tasks]
    for (prototask, size, method), there in zip(tasks, done, strict=True):
        line = f"{prototask.name}, {size} cases, {method.name}: "
        if not there:
            began = time.perf_counter()
            losses = run_task(prototask, size, method, seed, loss, progress)
            device = jax.local_devices()[0]
            about = {
                "seconds": round(time.perf_counter() - began, 3),
                "devices": f"{jax.local_device_count()} {device.device_kind}",
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
            }
            archive.add(prototask.name, size, method.name, losses, seed, about)
            failed = (
                f", {int(losses.failed.sum())} of {losses.resamples} instances FAILED" if losses.failed.any() else ""
            )
            line += f"mean {losses.loss} loss {losses.test_mean.mean():.5g}{failed} ({about['seconds']:.1f} s)"
        if say is not None:
            say(line + "there already" * there)
    return archive


def _is_done(archive: Archive, prototask: Prototask, size: int, method: Method, seed: int, loss: Loss) -> bool:
    """Whether the archive has this very result.

    Raises:
      ValueError: it has another one under this name.
    """
    there = archive.manifest(prototask.name, size, method.name)
    if there is None:
        return False
    want = {
        "learner": repr(method.on(size, prototask.data.d)),
        "seed": seed,
        "sha256": prototask.checksum,
        "scheme": prototask.plan(size).scheme,
    }
    if trouble := different(there, {**want, "loss": getattr(loss, "__name__", repr(loss))}):
        raise ValueError(
            f"expected the method {method.name} that {archive.path} has for {prototask.name} with {size} "
            f"cases, got one with another {trouble}; give it another name, or use another archive"
        )
    return True
