"""Compiled programs that later processes read instead of compiling them again: a folder of jaxgen's own, of bounded
size, which leaves the settings of JAX alone.
"""

import hashlib
import os
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jaxlib.version
from jax.experimental import serialize_executable

_MOST_BYTES = 1 << 29
"""Bytes of all programs together; those that were not read for the longest time go first."""

_WORTH_KEEPING = 0.5
"""Seconds of compilation from which a program is kept."""


def compiled(lowered: Any, options: dict[str, Any], devices: Sequence[jax.Device]) -> Any:
    """The program, read from the folder if an equal one was compiled before by the same JAX for the same processor.

    Where the user has a persistent cache of JAX's own, or wants none, JAX alone decides.

    Args:
      lowered: the program, as `jax.jit(...).lower(...)` returns it.
      options: for XLA; one that it does not know is left out.
      devices: that it will run on.
    """
    file = _file(lowered, options, devices)
    if file is not None and (program := _read(file, lowered, devices)) is not None:
        return program
    begun = time.perf_counter()
    try:
        program = lowered.compile(compiler_options=options or None)
    except jax.errors.JaxRuntimeError:
        if not options:
            raise
        program = lowered.compile()
    if file is not None and time.perf_counter() - begun > _WORTH_KEEPING:
        _write(file, program)
        _remove_oldest(file.parent)
    return program


def _file(lowered: Any, options: dict[str, Any], devices: Sequence[jax.Device]) -> Path | None:
    """Where the program is, or would be; None if it is not to be kept."""
    settings: Any = jax.config
    if settings.jax_compilation_cache_dir is not None or not settings.jax_enable_compilation_cache:
        return None
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jaxgen"
    parts = (
        lowered.as_text(),
        str(lowered.in_tree),
        str(lowered.out_tree),
        repr(sorted(options.items())),
        jax.__version__,
        jaxlib.version.__version__,
        os.environ.get("XLA_FLAGS", ""),
        devices[0].client.platform_version,
        repr([(device.platform, device.device_kind, device.id) for device in devices]),
        _processor(),
    )
    return folder / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}.program"


@cache
def _processor() -> str:
    """What tells processors apart whose instructions differ."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return f"{platform.machine()} {flags}"


def _read(file: Path, lowered: Any, devices: Sequence[jax.Device]) -> Any:
    """The program in a file; None if there is none, or none that this JAX can load."""
    try:
        content = file.read_bytes()
        os.utime(file)
    except OSError:
        return None
    try:
        return serialize_executable.deserialize_and_load(
            content, lowered.in_tree, lowered.out_tree, devices[0].client, devices
        )
    except Exception:
        return None


def _write(file: Path, program: Any) -> None:
    """Keeps a program, under its final name only when it is whole; some cannot be kept, and some folders not be
    written to.
    """
    try:
        content, _, _ = serialize_executable.serialize(program)
    except (ValueError, NotImplementedError, jax.errors.JaxRuntimeError):
        return
    partial = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial.write_bytes(content)
        os.replace(partial, file)
    except OSError:
        with suppress(OSError):
            partial.unlink()


def _remove_oldest(folder: Path) -> None:
    """Removes programs until the rest is small enough; other processes may be doing the same."""
    found = []
    for file in folder.glob("*.program"):
        try:
            found.append((file.stat().st_mtime, file.stat().st_size, file))
        except OSError:
            continue
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found):
        if total <= _MOST_BYTES:
            return
        with suppress(OSError):
            file.unlink()
        total -= size
