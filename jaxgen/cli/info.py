"""What the command `jaxgen info` does."""

import argparse
import json
import os
import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

from jaxgen.cli.streams import say
from jaxgen.engine import kept
from jaxgen.types.memory import cores, free_bytes, most_bytes

PACKAGES = (
    *("jaxgen", "jax", "jaxlib", "numpy", "scipy", "pandas", "scikit-learn", "matplotlib", "flax", "optax"),
    *("jinja2", "distributed", "xarray", "arviz"),
)


def do_info(options: argparse.Namespace) -> int:
    """Prints what trainings would run on; returns the exit code."""
    found = facts()
    if options.json:
        say(json.dumps(found, indent=1))
        return 0
    width = max(map(len, found["versions"]))
    lines = [f"{name:{width}}  {number or 'not installed'}" for name, number in found["versions"].items()]
    devices = "; ".join(found["devices"]) or found["trouble"]
    cache = found["cache"]
    where = (
        f"{cache['folder']}: {cache['files']} files, {_size(cache['bytes'])} of at most {_size(cache['most_bytes'])}"
        if cache["folder"]
        else "none of jaxgen's own; JAX's settings decide"
    )
    lines += [
        f"{'devices':{width}}  {devices}",
        f"{'cores':{width}}  {found['cores']:g} that may be used, of {found['cores_of_machine']}",
        f"{'memory':{width}}  {_size(found['memory'])} that may be used, {_size(found['memory_free'])} free",
        f"{'cache':{width}}  {where}",
        f"{'precision':{width}}  {found['precision']}",
    ]
    say("\n".join(lines))
    return 0


def facts() -> dict[str, Any]:
    """What trainings would run on, as values that JSON can hold."""
    devices, trouble = [], ""
    try:
        devices = [f"{device.platform}: {device.device_kind}" for device in jax.local_devices()]
    except RuntimeError as error:
        trouble = f"none ({' '.join(str(error).split())[:200]})"
    double = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]
    bits = "64 bits" if double else "32 bits (JAX_ENABLE_X64=1 for 64)"
    return {
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "devices": devices,
        "trouble": trouble,
        "cores": cores(),
        "cores_of_machine": os.cpu_count() or 1,
        "memory": most_bytes(),
        "memory_free": free_bytes(),
        "cache": _cache(),
        "precision": f"fits in {bits}, linear learners and all statistics in 64",
        "executable": sys.executable,
    }


def _version(name: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(name)
    return None


def _cache() -> dict[str, Any]:
    """The folder of compiled programs, how many files are in it, and how large they are."""
    folder = kept.folder_in_use()
    sizes = []
    for file in folder.iterdir() if folder is not None and folder.is_dir() else ():
        with suppress(OSError):
            sizes.append(file.stat().st_size)
    return {
        "folder": None if folder is None else str(Path(folder)),
        "files": len(sizes),
        "bytes": sum(sizes),
        "most_bytes": kept.MOST_BYTES,
    }


def _size(number: float | int) -> str:
    """Bytes in a unit that suits them."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.4g} TB"
