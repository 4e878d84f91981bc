"""Parts through the executors that people have: process pools, Dask, and all others with the `submit` of
`concurrent.futures`.
"""

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from queue import SimpleQueue
from typing import Any

from jaxgen.engine.parts import Answer, Specification, run_part
from jaxgen.engine.workers import next_of
from jaxgen.store.parts import Part
from jaxgen.types.numbers import first_line, shown

_WAITING = 32
"""Parts given at a time to an executor that does not say how many workers it has."""


class PartError(RuntimeError):
    """An executor gave up on a part."""


def check_executor(executor: Any, *sent: Any) -> None:
    """Refuses what cannot run functions elsewhere, or what it cannot be sent.

    Args:
      executor: anything.
      sent: the learner and the loss.
    Raises:
      TypeError: it has no method `submit`, or is a class.
      ValueError: a pool of processes could not import what it is sent.
    """
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"expected an executor with the method submit of concurrent.futures, got {shown(executor)}; give for "
            "example concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context('spawn'))"
        )
    if isinstance(executor, ProcessPoolExecutor):
        try:
            pickle.dumps(sent)
        except Exception as error:
            raise ValueError(
                f"expected a learner and a loss that another process can import, got {first_line(error)}; define them "
                "in a module of their own, neither inside a function nor in a notebook"
            ) from error


def answers(
    executor: Any, parts: Iterable[Part], specify: Callable[[Part], Specification]
) -> Iterator[tuple[Part, Answer]]:
    """Parts in the order in which they end, each with what came of it.

    As many are given to the executor at a time as it has workers, and one more, so that memory does not grow with the
    number of parts. If one fails, those that run are waited for before its error is raised.

    Args:
      executor: with `submit(function, argument)`, which returns a future; a client of Dask is told that parts are not
        to be taken for one another.
      parts: which.
      specify: makes the specification of a part.
    Raises:
      PartError: the executor gave up on a part; nothing but parts in progress is lost.
    """
    dask = _is_dask(executor)
    waiting, running, ended = deque(parts), {}, SimpleQueue()
    failure: tuple[Part, BaseException] | None = None
    try:
        while running or (waiting and failure is None):
            while waiting and failure is None and len(running) < _room(executor, dask):
                part = waiting.popleft()
                try:
                    future = executor.submit(run_part, specify(part), **({"pure": False} if dask else {}))
                except Exception as error:  # a pool that is broken or shut down
                    failure = part, error
                    break
                running[part] = future
                future.add_done_callback(lambda future, part=part: ended.put((part, future)))
            if not running:
                break
            part, future = next_of(ended)
            running.pop(part, None)
            trouble = RuntimeError("it was cancelled") if future.cancelled() else future.exception()
            if trouble is None:
                yield part, future.result()
            elif failure is None:
                failure = part, trouble
                for other in list(running.values()):
                    other.cancel()
        if failure is not None:
            part, error = failure
            raise PartError(
                f"expected {type(executor).__name__} to compute {part}, got {first_line(error)}; mend its cause, and "
                "call again"
            ) from error
    finally:
        for future in running.values():
            future.cancel()


def _room(executor: Any, dask: bool) -> int:
    """How many parts an executor may have at a time."""
    if dask:
        return max(1, len(executor.nthreads()))
    workers = getattr(executor, "_max_workers", None)
    return workers + 1 if isinstance(workers, int) else _WAITING


def _is_dask(executor: Any) -> bool:
    """Whether it is a client of Dask, whose `submit` takes `pure`."""
    return any(kind.__module__.split(".")[0] == "distributed" for kind in type(executor).__mro__) and hasattr(
        executor, "nthreads"
    )
