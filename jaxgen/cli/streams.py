"""What the command line prints: nothing that happens to its streams changes what it does or answers."""

import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from jaxgen.types.numbers import first_line


@contextmanager
def safe_streams() -> Iterator[None]:
    """Gives standard output and error that take everything, also where one was closed (`2>&-`), its reader has gone
    (`| head`), or it cannot write a letter.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:  # closed: the next file opened would get its number, and what is printed would go there
            _discard(number)
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115 (for the rest of the process)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)


_SILENT = [False]


@contextmanager
def silent() -> Iterator[None]:
    """Lets `say` say nothing: standard output is for numbers alone."""
    _SILENT[0] = True
    try:
        yield
    finally:
        _SILENT[0] = False


def say(text: str) -> None:
    """Prints a line on standard output, where there is someone to read it."""
    if not _SILENT[0]:
        _write(sys.stdout, text)


def print_numbers(text: str) -> None:
    """Prints on standard output what another program reads, whatever is silent."""
    _write(sys.stdout, text.rstrip("\n"))


def complain(text: str) -> None:
    """Prints a line on standard error, where there is someone to read it."""
    _write(sys.stderr, f"jaxgen: {text}")


def in_words(error: BaseException) -> str:
    """An error in one sentence: its own if it is one of this package, else its kind and place."""
    message = " ".join(str(error).split())
    if re.search(r"\bexpected .*\bgot ", message):
        return message
    if isinstance(error, OSError):
        name = error.filename or "a file"
        return (
            f"expected to read and write {name}, got trouble ({error.strerror or message}); check the place and its "
            "free space"
        )
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    return f"expected the command to end well, got {first_line(error)}{place}; correct it there, or report it"


def _write(stream: Any, text: str) -> None:
    try:
        print(text, file=stream, flush=True)
    except (OSError, ValueError):  # ValueError: closed by somebody in this process
        _flush(stream)


def _flush(stream: Any) -> None:
    """Writes what is left, and discards it and all that follows if nobody takes it."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            _discard(stream.fileno())


def _discard(number: int) -> None:
    """Lets what is written to a file descriptor disappear."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
