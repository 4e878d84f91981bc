"""The door of the engine: one call for all trainings of a plan, here or elsewhere, kept on disk or not."""

import hashlib
import math
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, overload

import jax
import numpy as np

from jaxgen import store as storage
from jaxgen.engine.budget import Budget
from jaxgen.engine.door import check, check_absence, chosen_devices
from jaxgen.engine.executors import PartError, answers, check_executor
from jaxgen.engine.job import Job
from jaxgen.engine.parts import Settings, Specification, compute, of_data, part_size
from jaxgen.engine.progress import progress_bar
from jaxgen.engine.run import Run, Way, bytes_kept, job_of, reasons, way
from jaxgen.engine.units import suited
from jaxgen.engine.workers import refuse_fork
from jaxgen.loss import about, by_name, of_task
from jaxgen.store.parts import Arrays, Heading, Part, as_losses, divided, joined, of_range
from jaxgen.types import Data, Key, Learner, Loss, Losses, Plan, keys
from jaxgen.types.drawn import DrawnPlan
from jaxgen.types.identity import code_digest, named
from jaxgen.types.numbers import require, require_flag, require_number, shown

_FEWEST_ROWS = 30
"""Before a standard error is believed."""


@overload
def assess(
    key: Key,
    learner: Mapping[str, Any],
    data: Data,
    plan: Plan,
    loss: Loss | str | None = ...,
    *,
    keep: str = ...,
    chunk: int | None = ...,
    progress: bool | None = ...,
    devices: Sequence[jax.Device] | None = ...,
    store: str | os.PathLike | None = ...,
    executor: Any = ...,
    part: int | None = ...,
    standard_error: float | int | None = ...,
) -> dict[str, Losses]: ...


@overload
def assess(
    key: Key,
    learner: list[Any] | tuple[Any, ...],
    data: Data,
    plan: Plan,
    loss: Loss | str | None = ...,
    *,
    keep: str = ...,
    chunk: int | None = ...,
    progress: bool | None = ...,
    devices: Sequence[jax.Device] | None = ...,
    store: str | os.PathLike | None = ...,
    executor: Any = ...,
    part: int | None = ...,
    standard_error: float | int | None = ...,
) -> list[Losses]: ...


@overload
def assess(
    key: Key,
    learner: Any,
    data: Data,
    plan: Plan,
    loss: Loss | str | None = ...,
    *,
    keep: str = ...,
    chunk: int | None = ...,
    progress: bool | None = ...,
    devices: Sequence[jax.Device] | None = ...,
    store: str | os.PathLike | None = ...,
    executor: Any = ...,
    part: int | None = ...,
    standard_error: float | int | None = ...,
) -> Losses: ...


@keys.key_first
def assess(
    key: Key,
    learner: Any,
    data: Data,
    plan: Plan,
    loss: Loss | str | None = None,
    *,
    keep: str = "cases",
    chunk: int | None = None,
    progress: bool | None = None,
    devices: Sequence[jax.Device] | None = None,
    store: str | os.PathLike | None = None,
    executor: Any = None,
    part: int | None = None,
    standard_error: float | int | None = None,
) -> Losses | dict[str, Losses] | list[Losses]:
    """Trains a learner, or several, on every resampled training set of a plan and returns the loss of every row.

    Row r of data set q draws from `fold_in(fold_in(key, q), r)`, so neither the chunk size nor the number of devices
    or threads changes its random numbers. Chunks run on all CPU cores, or sharded over all devices where there are
    several.

    Args:
      key: consumed; the randomness of the training, not that of the plan.
      learner: what to train; see `jaxgen.types.Learner`. Several in a mapping of labels to learners, or in a list, are
        all trained on the same plan with the same key, one after the other, so that their losses compare row by row;
        nothing runs before all of them have been checked.
      data: x [*Q, N, D] and y [*Q, N, K]. Fits follow the floating type that JAX is set to (32 bits unless x64 is
        enabled), in units in which nothing is lost; linear learners are fitted in double precision.
      plan: train and test weights [*Q, R, N]; without Q it serves every data set.
      loss: per-case loss, from `jaxgen.loss`, also by its name, as "absolute"; or a function of (y [N, K], prediction
        [N, K]) to [N]. None counts the 0-1 loss of a classification, whose mean is the error rate, and the squared
        error of a regression; the data say which they are.
      keep: "cases" for the losses of every row on every case, [*Q, R, N]; "predictions" for these and all predictions,
        [*Q, R, N, K]; "rows" for the means of each row only, memory O(R).
      chunk: rows trained at a time; None chooses by memory and cache.
      progress: a progress bar with the learner's name and trainings per second, on a terminal, or a line now and then
        elsewhere; None shows it on a terminal only.
      devices: where to run; None takes all local devices of JAX's default kind. With `jax.distributed`, `jax.devices()`
        are those of all processes, each of which must make the same call; then every process gets all losses.
      store: a folder that keeps every part of the run as soon as it is done, so that the same call goes on where it
        was stopped or killed; see `jaxgen.store.open` for what is in it. Of several learners each has a folder in it,
        called by its label or, of a list, by its number from 0.
      executor: whoever computes parts elsewhere: a `concurrent.futures.ProcessPoolExecutor` of spawned processes, a
        client of Dask, or anything else with such a method `submit`. It chooses its devices.
      part: trainings of a part; None takes about a minute's work. A run that is in the store keeps its own.
      standard_error: where to stop: when the Monte Carlo standard error of the mean of G over the rows so far,
        sd / sqrt(r), is at most this. The losses are of these rows then, and the plan says so; for rows that were drawn
        one by one, and for one learner.
    Returns:
      Losses, [*Q, R] and, if kept, [*Q, R, N]. Of a mapping a dict of label to Losses, which carry that label; of a
      list a list.
    Raises:
      TypeError: the key is no typed key, or learner, data, plan, loss, devices, store or executor are of another kind.
      ValueError: data, plan, learner and loss do not fit together, contain values that no training can use, or a
        function of the learner or the loss cannot be traced, returns another shape, or learns from absent cases; or
        something else was asked of the run in the store.
      MemoryError: the losses or a single row would not fit into memory; the bytes are stated.
      OSError: the store cannot be written; parts that are in it stay.
      RuntimeError: this process was forked from one in which JAX had been used, another process works at the run in the
        store, or the executor gave up on a part.
    """
    refuse_fork()
    if progress is not None:
        require_flag("progress", progress)
    chosen = of_task(data.task) if loss is None and isinstance(data, Data) else by_name(loss)
    asked = _Asked(key, data, plan, chosen, keep, chunk, progress, devices, executor, part, standard_error)
    if not isinstance(learner, Mapping | list | tuple):
        return _run(asked, _checked(asked, learner), store)
    labels = _labels(learner, store, standard_error)
    learners = list(learner.values() if isinstance(learner, Mapping) else learner)
    used = [_checked(asked, one) for one in learners]
    for one in used:
        check_absence(one.learner, data)
    folders = [_folder(store, label) for label in labels]
    named_ones, done = isinstance(learner, Mapping), []
    for number, (label, one) in enumerate(zip(labels, used, strict=True), 1):
        done.append(_run(asked, one, folders[number - 1], label if named_ones else "", f" ({number} of {len(used)})"))
    return dict(zip(labels, done, strict=True)) if named_ones else done


class _Asked(NamedTuple):
    """What was asked of `assess` for all learners alike."""

    key: Key
    data: Data
    plan: Plan
    loss: Loss
    keep: str
    chunk: int | None
    progress: bool | None
    devices: Sequence[jax.Device] | None
    executor: Any
    part: int | None
    standard_error: float | int | None


class _Used(NamedTuple):
    """A learner as it was given, and as it is used on the data."""

    given: Any
    learner: Learner


def _checked(asked: _Asked, learner: Any) -> _Used:
    """A learner that may be trained, with all that was asked of it."""
    data, plan = asked.data, asked.plan
    used = check(asked.key, learner, data, plan, asked.loss, asked.keep, asked.chunk)
    _check_way(plan, data, asked.part, asked.standard_error)
    if asked.executor is not None:
        _check_executor(asked.executor, used, asked.loss, asked.devices)
    return _Used(learner, used)


def _labels(learners: Any, store: str | os.PathLike | None, standard_error: float | int | None) -> list[str]:
    """The labels of several learners; of a list their numbers."""
    if not learners:
        raise ValueError("expected at least one learner, got none; give a learner, or several by their labels")
    if standard_error is not None:
        raise ValueError(
            f"expected one learner to stop at a standard error, got {len(learners)}, which would stop at different "
            "rows; leave standard_error out, or assess them one by one"
        )
    if not isinstance(learners, Mapping):
        return [str(number) for number in range(len(learners))]
    for label in learners:
        if not isinstance(label, str) or not label or not label.isprintable() or label != label.strip():
            raise ValueError(
                f"expected a label for each learner as a text on one line, got {shown(label)}; call it for "
                "example 'net'"
            )
        if store is not None and (set(label) & set('/\\:*?"<>|') or label.startswith(".") or label.endswith(".")):
            raise ValueError(
                f"expected labels that can be names of folders in the store, got {label!r}; call it for example 'net'"
            )
    if store is not None and len({label.casefold() for label in learners}) < len(learners):
        raise ValueError(
            f"expected labels that differ in more than large and small letters, got {shown(list(learners))}; each is "
            "the name of a folder in the store"
        )
    return list(learners)


def _folder(store: str | os.PathLike | None, label: str) -> Path | None:
    """The folder of one of several learners."""
    if store is None:
        return None
    if (Path(store) / "run.json").exists():
        raise ValueError(
            f"expected a folder for the runs of several learners, got {store}, which holds the run of one; choose "
            "another"
        )
    return Path(store) / label


def _run(asked: _Asked, one: _Used, store: str | os.PathLike | None, label: str = "", which: str = "") -> Losses:
    """The losses of one learner."""
    key, data, plan, loss, keep, chunk, progress, devices, executor, part, standard_error = asked
    learner, used = one
    chosen, places = way(used, loss, data, plan), chosen_devices(devices)
    if store is not None and len({place.process_index for place in places}) > 1:
        raise ValueError(
            "expected the devices of one process for a run that is kept, got those of several; leave store out, or let "
            "each process compute rows of its own into a store of its own"
        )
    job = job_of(used, loss, data, chosen, places, keep == "predictions")
    shape, single = (data.sets or plan.sets or 1, plan.resamples), not (data.sets or plan.sets)
    heading = Heading(named(learner), named(loss), reasons(used, loss), shape[0], single, label, keys.text(key))
    name = (label or repr(learner)) + which
    if store is executor is part is standard_error is None and not isinstance(plan, DrawnPlan):
        run = Run(key, job, data, plan, keep, chunk, chosen.used)
        check_absence(used, data)
        with progress_bar(math.prod(shape), name, progress) as advance:
            run.all_rows(advance)
        return as_losses(run.arrays(), plan, heading)
    suited(data, used, about(loss), job.dtype)
    Budget.of(job).refuse_if_too_large(math.prod(shape) * bytes_kept(job, keep), used)
    check_absence(used, data)
    parts = divided(*shape, part or part_size(job, keep))
    question = _Question(key, used, loss, data, plan, chosen, keep, chunk, heading, places, executor, standard_error)
    kept = None if store is None else storage.begin(store, _asked(question, job), heading, plan, parts)
    with nullcontext() if kept is None else kept.held(), progress_bar(math.prod(shape), name, progress) as advance:
        return _in_parts(question, parts if kept is None else kept.parts, kept, advance)


class _Question(NamedTuple):
    """All that was asked of `assess`."""

    key: Key
    learner: Learner
    loss: Loss
    data: Data
    plan: Plan
    way: Way
    keep: str
    chunk: int | None
    heading: Heading
    devices: tuple[jax.Device, ...]
    executor: Any
    standard_error: float | int | None

    def specification(self, part: Part, kept: storage.StoredRun | None) -> Specification:
        """What another process needs for a part."""
        return Specification(
            part,
            np.asarray(jax.random.key_data(self.key)),
            str(jax.random.key_impl(self.key)),
            self.learner,
            self.loss,
            of_data(self.data, part),
            of_range(self.plan, part),
            self.way,
            self.keep,
            self.chunk,
            Settings.here(),
            None if kept is None else str(kept.folder.resolve()),
            "" if kept is None else kept.identity,
        )


def _check_executor(executor: Any, learner: Learner, loss: Loss, devices: Any) -> None:
    """Refuses what is no executor, or makes no sense with one."""
    check_executor(executor, learner, loss)
    if devices is not None:
        raise ValueError(
            "expected either devices or an executor, got both; leave devices out, since the processes of an executor "
            "use their own"
        )


def _check_way(plan: Plan, data: Data, part: int | None, standard_error: float | int | None) -> None:
    """Refuses parts and ends that make no sense."""
    if part is not None:
        require("the trainings of a part", part, 1, advice="leave it out for about a minute's work")
    if standard_error is None:
        return
    require_number("the standard error to stop at", standard_error, above=0, advice="give it in the unit of the loss")
    if data.sets or plan.sets or not plan.drawn_one_by_one:
        raise ValueError(
            f"expected rows of one data set that are drawn one by one, to stop at a standard error, got {plan.scheme}; "
            "leave standard_error out, or use resample.leave_out or resample.bootstrap"
        )


def _in_parts(
    question: _Question, parts: Sequence[Part], kept: storage.StoredRun | None, advance: Callable[[int], Any]
) -> Losses:
    """The losses of all parts: those that are kept already, and the others here or through the executor."""
    done: dict[Part, Arrays] = {} if kept is None else kept.whole_parts()
    for known in done:
        advance(known.size)
    enough = _enough(done, parts, question)
    missing = [] if enough else [part for part in parts if part not in done]
    todo = (_here if question.executor is None else _elsewhere)(question, missing, kept, advance)
    try:
        for part, arrays in todo:
            done[part] = arrays
            if enough := _enough(done, parts, question):
                break
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; {_what_is_kept(kept)}") from None
    except PartError as error:
        raise PartError(f"{error}; {_what_is_kept(kept)}") from error.__cause__
    finally:
        todo.close()
    if enough:
        done = {part: done[part] for part in enough}
    return joined(done, question.plan, question.heading)


def _here(
    question: _Question, parts: Sequence[Part], kept: storage.StoredRun | None, advance: Callable[[int], Any]
) -> Generator[tuple[Part, Arrays]]:
    """Parts computed one after the other by this process."""
    for part in parts:
        begun = time.perf_counter()
        arrays = compute(question.specification(part, None), question.key, question.devices, advance)
        if kept is not None:
            kept.publish(part, arrays, time.perf_counter() - begun)
        yield part, arrays


def _elsewhere(
    question: _Question, parts: Sequence[Part], kept: storage.StoredRun | None, advance: Callable[[int], Any]
) -> Generator[tuple[Part, Arrays]]:
    """Parts in the order in which the executor ends them."""
    for part, answer in answers(question.executor, parts, lambda part: question.specification(part, kept)):
        advance(part.size)
        if answer.arrays is not None:
            if kept is not None:
                kept.publish(part, answer.arrays, answer.seconds)
            yield part, answer.arrays
        elif kept is not None:  # the worker has written it
            yield part, kept.read_part(part)


def _enough(done: Mapping[Part, Arrays], parts: Sequence[Part], question: _Question) -> list[Part]:
    """The fewest parts, from the first on and without a gap, whose rows reach the standard error; empty if none do or
    none was asked for. So what the losses are does not depend on the order in which parts ended.
    """
    front: list[Part] = []
    if question.standard_error is None:
        return front
    rows = np.empty(0)
    for part in parts:
        if part not in done:
            break
        front.append(part)
        rows = np.concatenate([rows, done[part]["test_mean"][0]])
        good = rows[np.isfinite(rows)]
        if len(good) >= _FEWEST_ROWS and good.std(ddof=1) <= question.standard_error * math.sqrt(len(good)):
            return front
    return []


def _what_is_kept(kept: storage.StoredRun | None) -> str:
    """Where to go on."""
    if kept is None:
        return "nothing was kept; give assess a store=folder, and the same call goes on where it was"
    return f"{len(kept.done)} of {len(kept.parts)} parts are in {kept.folder}, where the same call goes on"


def _asked(question: _Question, job: Job) -> dict[str, Any]:
    """What must be the same for a run to go on, in the order in which it is compared."""
    digest = hashlib.sha256()
    plan = question.plan
    some = plan.rows(0, min(plan.resamples, plan.recipe.block_rows)) if isinstance(plan, DrawnPlan) else plan
    named_arrays = [("train", some.train), ("test", some.test), *plan.labels.items(), *plan.cases.items()]
    for name, array in named_arrays:  # a label may be called train, too
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return {
        "learner": question.heading.learner,
        "code of the learner": code_digest(question.learner),
        "loss": question.heading.loss,
        "code of the loss": code_digest(question.loss),
        "data": storage.checksum(question.data),
        "plan": plan.scheme,
        "weights of the plan": digest.hexdigest(),
        "key": np.asarray(jax.random.key_data(question.key)).tolist(),
        "kind of the key": str(jax.random.key_impl(question.key)),
        "floating type": job.dtype,
        "keep": question.keep,
        "settings of JAX": list(Settings.here()),
        "version of jaxgen": version("jaxgen"),
        "version of jax": jax.__version__,
        **{f"version of {name}": number for name, number in question.learner.versions.items()},
    }
