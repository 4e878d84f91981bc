"""What later processes read instead of making it again: facts about jobs and compiled programs, in a folder of
jaxgen's own, of bounded size, which leaves the settings of JAX alone.
"""

import hashlib
import importlib.metadata
import json
import os
import pickle
import platform
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import jax
from jax.experimental import serialize_executable

from jaxgen.engine.pieces import Chain

MOST_BYTES = 1 << 29
"""Bytes of all files together; those that were not read for the longest time go first."""

_BLOCK = 1 << 12
"""Bytes that the smallest file takes."""

_WORTH_KEEPING = 0.2
"""Seconds of tracing and compiling from which a program is kept."""


def folder_in_use() -> Path | None:
    """Where compiled programs are kept; None where JAX alone decides, since the user has a cache of its own, or wants
    none.
    """
    settings: Any = jax.config
    if settings.jax_compilation_cache_dir is not None or not settings.jax_enable_compilation_cache:
        return None
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jaxgen"


def file_of(content: str, devices: Sequence[jax.Device], kind: str) -> Path | None:
    """Where something is kept, or would be; None where nothing is.

    Where the user has a persistent cache of JAX's own, or wants none, JAX alone decides.

    Args:
      content: all that it depends on, beside versions, processor and devices.
      devices: that it is for.
      kind: the ending of the name.
    """
    folder = folder_in_use()
    if folder is None:
        return None
    parts = (
        content,
        *_versions(),
        os.environ.get("XLA_FLAGS", ""),
        devices[0].client.platform_version,
        repr([(device.platform, device.device_kind, device.id) for device in devices]),
        _processor(),
    )
    return folder / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}.{kind}"


@cache
def _versions() -> tuple[str, ...]:
    """Of the packages that programs are made by, and a digest of all code of this one."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}".encode() + b"\0" + file.read_bytes() + b"\0")
    return *(importlib.metadata.version(name) for name in ("jax", "jaxlib", "flax", "optax")), digest.hexdigest()


@cache
def _processor() -> str:
    """What tells processors apart whose instructions differ."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return f"{platform.machine()} {flags}"


def read_program(file: Path | None, in_tree: Any, out_tree: Any, devices: Sequence[jax.Device]) -> Any:
    """The program in a file, and what `write_program` was told of it; None if there is none that this JAX can load."""
    content = _read(file)
    try:
        head, _, rest = (content or b"").partition(b"\n")
        note, lengths, places, reads, writes, results, once, beside = json.loads(head)
        ends = list(accumulate(lengths, initial=0))
        parts = [rest[begin:end] for begin, end in pairwise(ends)]
        if len(parts) == 1:
            return _loaded(parts[0], in_tree, out_tree, devices), note
        flat = [(((0,) * len(r), {}), [0] * len(w)) for r, w in zip(reads, writes, strict=True)]
        trees = [(jax.tree.structure(given), jax.tree.structure(made)) for given, made in flat]
        tree_of = dict(zip(places, trees, strict=True))
        loaded = [_loaded(part, *tree_of[place], devices) for place, part in enumerate(parts)]
        calls = tuple(loaded[place] for place in places)
        reads, writes = tuple(map(tuple, reads)), tuple(map(tuple, writes))
        return Chain(calls, reads, writes, tuple(results), out_tree, once, tuple(beside)), note
    except Exception:
        return None


def _loaded(content: bytes, in_tree: Any, out_tree: Any, devices: Sequence[jax.Device]) -> Any:
    return serialize_executable.deserialize_and_load(content, in_tree, out_tree, devices[0].client, devices)


def write_program(file: Path | None, program: Any, note: Any, seconds: float) -> None:
    """Keeps a program, in one piece or a `Chain`, that took some seconds to make, with a note that JSON can hold; some
    cannot be kept.
    """
    if file is None or seconds < _WORTH_KEEPING:
        return
    calls: tuple[Any, ...] = (program,)
    places, shape = (0,), ((), (), (), 0, ())
    if isinstance(program, Chain):
        calls = tuple(dict.fromkeys(program.calls))  # halves of a loop are the same
        places = tuple(map(calls.index, program.calls))
        shape = program.reads, program.writes, program.results, program.once, program.beside
    # A program that calls back into Python holds functions, which pickle refuses, in words that depend on its version.
    with suppress(
        ValueError, NotImplementedError, jax.errors.JaxRuntimeError, pickle.PicklingError, AttributeError, TypeError
    ):
        parts = [serialize_executable.serialize(call)[0] for call in calls]
        head = json.dumps([note, [len(part) for part in parts], places, *shape]).encode()
        _write(file, b"".join([head, b"\n", *parts]))


def read_note(file: Path | None) -> Any:
    """What `write_note` wrote, else None."""
    with suppress(ValueError):
        return json.loads(_read(file) or b"null")


def write_note(file: Path | None, note: Any) -> None:
    """Keeps what JSON can hold."""
    if file is not None:
        _write(file, json.dumps(note).encode())


def _read(file: Path | None) -> bytes | None:
    """What is in a file, which counts as used now."""
    if file is None:
        return None
    with suppress(OSError):
        content = file.read_bytes()
        os.utime(file)
        return content


def _write(file: Path, content: bytes) -> None:
    """Makes a file, under its final name only when it is whole; some folders cannot be written to."""
    partial = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial.write_bytes(content)
        os.replace(partial, file)
    except OSError:
        with suppress(OSError):
            partial.unlink()
    else:
        _remove_oldest(file.parent)


def _remove_oldest(folder: Path) -> None:
    """Removes files until the rest is small enough; other processes may be doing the same."""
    found = []
    for file in (*folder.glob("*.program"), *folder.glob("*.facts")):
        with suppress(OSError):
            found.append((file.stat().st_mtime, max(_BLOCK, file.stat().st_size), file))
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found):
        if total <= MOST_BYTES:
            return
        with suppress(OSError):
            file.unlink()
        total -= size
