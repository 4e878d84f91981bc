"""The threads that run chunks: stopped at once by Ctrl-C, and never two programs with LAPACK at a time."""

import atexit
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

_ALONE = threading.Lock()
"""Held while a program runs that must not run beside another of its kind, in whatever thread; see `Program`."""

_SMALL = 512
"""Columns of a matrix, or rows if these are fewer, up to which one thread decomposes it about as fast as two."""

_NAP = 0.2
"""Seconds for which the caller's thread waits at a time. Python sees a Ctrl-C that comes just as a wait begins only
when the wait ends.
"""

_running: set[threading.Thread] = set()
"""Threads that run a chunk now. A chunk cannot be stopped: its program knows nothing of Python."""

_in_use_by: int | None = None
"""The process in which JAX has been used here."""

_caller = threading.local()


@contextmanager
def alone(decomposed: int) -> Generator[None]:
    """Within it no other program of the kind runs that must not run beside another; see `Program`.

    LAPACK keeps to one thread if the most columns (or rows) of a matrix, `decomposed`, are few. Other threads of
    OpenBLAS would go on waiting busily for some 25 ms after each decomposition, on cores that the program needs: ridge
    regressions of 500 cases with 300 inputs whose penalty is chosen took a third longer.
    """
    with _ALONE, _lapack().limit(limits=1) if 0 < decomposed <= _SMALL else nullcontext():
        yield


@cache
def _lapack() -> Any:
    """The libraries that hold LAPACK, that of SciPy among them, which JAX calls. Where a caller has limited their
    threads in another thread, that limit stays.
    """
    import scipy.linalg  # noqa: F401
    import threadpoolctl

    return threadpoolctl.ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread() -> Generator[None]:
    """Within it chunks that this thread asks for run one at a time: for callers of whom as many ask at once as there
    are cores.
    """
    before, _caller.alone = one_at_a_time(), True
    try:
        yield
    finally:
        _caller.alone = before


def one_at_a_time() -> bool:
    """Whether this thread is within `one_thread`."""
    return getattr(_caller, "alone", False)


def refuse_fork() -> None:
    """RuntimeError in a process that was forked from one in which JAX was used: its threads are gone, so it would wait
    for ever.
    """
    global _in_use_by
    if _in_use_by is not None and _in_use_by != os.getpid():
        raise RuntimeError(
            "expected a process that was started afresh, got one forked from a process in which jaxgen had run, where "
            "JAX would wait for ever; use multiprocessing.get_context('spawn'), or joblib's processes"
        )
    _in_use_by = os.getpid()


def next_of(results: SimpleQueue[Any]) -> Any:
    """What is put in next. It is waited for in naps, so that a Ctrl-C is answered whenever it comes."""
    while True:
        try:
            return results.get(timeout=_NAP)
        except Empty:
            continue


def run_all(work: Callable[[Any], Any], items: Iterable[Any], workers: int, advance: Callable[[Any], Any]) -> None:
    """Does the work on every item, in some threads.

    Args:
      work: of an item; returns what it has done, such as the number of rows.
      items: taken one by one, as threads become free.
      workers: threads.
      advance: called with that, in the thread of the caller.
    Raises:
      KeyboardInterrupt: at once; chunks in progress end in the background.
      Exception: the first that `work` raised; items not begun are left.
    """
    waiting, results, stop = iter(items), SimpleQueue(), threading.Event()
    taking = threading.Lock()

    def serve() -> None:
        try:
            while not stop.is_set():
                with taking:
                    item = next(waiting, stop)
                if item is stop:
                    break
                results.put(work(item))
            results.put(None)
        except BaseException as error:
            results.put(error)
        finally:
            _running.discard(threading.current_thread())

    # Daemons, since others would keep the interpreter from ending until their chunks are done, without a word.
    threads = [threading.Thread(target=serve, name=f"jaxgen-{number}", daemon=True) for number in range(workers)]
    _running.update(threads)
    for thread in threads:
        thread.start()
    try:
        for _ in threads:
            while (result := next_of(results)) is not None:
                if isinstance(result, BaseException):
                    raise result
                advance(result)
    finally:
        stop.set()


def at_once(functions: Sequence[Callable[[], Any]]) -> list[Any]:
    """What some functions give, each in a thread of its own, the first in this one; arrays are there when it returns.

    Raises:
      Exception: the first of them raised.
    """
    if len(functions) == 1:
        return [functions[0]()]
    results: list[Any] = [None] * len(functions)

    def run(place: int) -> None:
        import jax

        try:
            results[place] = jax.block_until_ready(functions[place]()), None
        except Exception as error:
            results[place] = None, error

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(1, len(functions))]
    for thread in threads:
        thread.start()
    run(0)
    for thread in threads:
        thread.join()
    for _, error in results:
        if error is not None:
            raise error
    return [found for found, _ in results]


@atexit.register
def _let_chunks_end() -> None:
    """Waits for chunks that still run when the interpreter ends: returning to one that is gone, they would abort it."""
    left = [thread for thread in _running if thread.is_alive()]
    if not left or _in_use_by != os.getpid():
        return
    try:
        print(
            f"jaxgen: chunks in progress ({len(left)}) will end first; press Ctrl-C to leave at once",
            file=sys.stderr,
            flush=True,
        )
        for thread in left:
            while thread.is_alive():
                thread.join(_NAP)
    except (KeyboardInterrupt, OSError, ValueError):  # also where standard error is closed
        os._exit(130)
