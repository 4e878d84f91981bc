"""Files on disk: each appears under its final name only when complete, and is checked when it is read."""

import hashlib
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from jaxgen.types import Data
from jaxgen.types.numbers import require_kind, shown

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_PROBE_BYTES = 2**20
"""Written to a new folder on trial: a full disk often has room for a name, but not for this."""


def write(path: Path, manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Path:
    """Writes arrays of any shapes, as [R, N], with a manifest to one new compressed NumPy archive, which appears under
    its name only when complete.

    A checksum of all that is in it goes with the manifest, and `read` compares it.

    Raises:
      ValueError: an array holds objects.
      FileExistsError: the file is there already, or another process made it meanwhile.
      OSError: it cannot be written.
    """
    if os.path.lexists(path):
        raise FileExistsError(f"expected a new file, got {path}, which exists; remove it or choose another name")
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ValueError(
                f"expected arrays of numbers or texts to store, got objects in {name!r}; leave them out of info"
            )
    text = json.dumps({**manifest, "checksum": _digest(json.dumps(manifest), arrays)})
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with one_sentence(path):
        try:
            with open(partial, "wb") as file:
                parts: dict[str, Any] = {"manifest": np.array(text), **arrays}
                np.savez_compressed(file, **parts)
                file.flush()
                os.fsync(file.fileno())  # a name must not survive a crash of the machine without its content
            publish(partial, path)
        finally:
            with suppress(OSError):  # such as no folder at all, which was said already
                partial.unlink(missing_ok=True)
    return path


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The manifest and the arrays, as [R, N], of a file that `write` wrote.

    Raises:
      OSError: there is no such file, or it cannot be read.
      ValueError: it is another, or damaged, or not as it was written.
      MemoryError: it does not fit into memory.
    """
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                manifest = json.loads(str(archive["manifest"]))
                arrays = {name: archive[name] for name in archive.files if name != "manifest"}
            expected = manifest.pop("checksum", None)  # files of version 0.4 and before have none
        except MemoryError:
            raise
        # Damaged bytes raise what zipfile, zlib, struct, ast and NumPy's reader of headers happen to meet in them.
        except Exception:
            raise ValueError(
                f"expected a whole file that jaxgen wrote, got {path}, which is damaged or another; restore the file"
            ) from None
    if expected not in (None, _digest(json.dumps(manifest), arrays)):
        raise ValueError(f"expected the content that was written, got a changed one in {path}; restore the file")
    return manifest, arrays


def _digest(manifest: str, arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of a manifest and of the names, types, shapes and values of arrays."""
    digest = hashlib.sha256(manifest.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)  # no copy of what may be large
    return digest.hexdigest()


def publish(partial: Path, path: Path) -> None:
    """Gives a complete file its final name, which lasts, unless a file of that name is there by now.

    Raises:
      FileExistsError: it is.
    """
    try:
        try:
            os.link(partial, path)  # fails where the file exists, as a rename does not
            partial.unlink()
        except FileExistsError:
            raise
        except OSError:  # a file system without links: an empty file takes the name first, and fails in the same way
            path.touch(exist_ok=False)
            os.replace(partial, path)
    except FileExistsError:
        raise FileExistsError(
            f"expected a new file, got {path}, which exists; remove it or choose another name"
        ) from None
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Makes the names in a folder last through a crash of the machine, where the file system can."""
    with suppress(OSError):  # Windows opens no folders
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def refuse_other_file(path: Path, signature: str) -> None:
    """Refuses to replace a file that does not begin as those that jaxgen writes, and a place that takes none.

    Raises:
      FileExistsError: there is such a file, or a folder of this name.
      OSError: its folder is not there, or may not be written.
    """
    if os.path.lexists(path):
        begin = b""
        if path.is_file():
            with suppress(OSError), path.open("rb") as file:
                begin = file.read(len(signature.encode()))
        if begin != signature.encode():
            raise FileExistsError(
                f"expected a new file, or one that jaxgen wrote before, got {path}, which is another; choose another "
                "name, or remove it"
            )
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise OSError(
            f"expected a place that can be written, got {path}, whose folder is not there or may not be written; make "
            "its folder, or choose another place"
        )


def publish_text(path: Path, text: str) -> None:
    """Writes a file that appears under its name only when it is whole; one of that name is replaced.

    Raises:
      OSError: it cannot be written.
    """
    with one_sentence(path):
        number, partial = tempfile.mkstemp(prefix=f".{path.name[:100]}-", dir=path.absolute().parent)
        try:
            with open(number, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(partial, 0o644)
            os.replace(partial, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(partial)
            raise


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """A folder to write into that appears under its name only when all is in it, and not at all if something fails.

    Args:
      path: of the folder.
    Yields:
      The folder under a name of its own.
    Raises:
      FileExistsError: there is something of this name.
      OSError: it cannot be written.
    """
    path = as_path(path)
    _refuse_existing(path)
    with one_sentence(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}-", dir=path.parent))
    try:
        yield partial
        with one_sentence(path):
            partial.chmod(0o755)
            partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def claim_folder(path: str | Path) -> Path:
    """Makes a new folder, empty, under its name at once: of several processes that ask for it only one gets it.

    Files are written to it on trial, so that a long run need not learn at its end that it cannot be saved.

    Args:
      path: of the folder; folders above it are made too.
    Returns:
      The path.
    Raises:
      FileExistsError: there is something of this name.
      OSError: it cannot be made, or not be written to.
    """
    path = as_path(path)
    _refuse_existing(path)
    with one_sentence(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir()
        except FileExistsError:  # made by another process since
            _refuse_existing(path)
            raise
    try:
        with one_sentence(path):
            probe = path / "probe"
            probe.write_bytes(b"\0" * _PROBE_BYTES)
            probe.unlink()
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    return path


@contextmanager
def held(folder: str | Path, expected: str, advice: str = "wait for it") -> Iterator[None]:
    """Keeps other processes that ask for the same from a folder, as long as this one lives.

    Args:
      folder: which is there.
      expected, advice: the sentence for those that come later: what was expected, and what to do.
    Raises:
      TypeError: no path.
      RuntimeError: another process has it.
      OSError: the folder is not there, or cannot be written.
    """
    folder = as_path(folder)
    with one_sentence(folder):
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(lock, 200, 0).decode(errors="replace").strip() or "another process"
                raise RuntimeError(f"{expected}, got {folder}, at which {holder} does; {advice}") from None
            except OSError:  # a file system without locks
                pass
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(lock)  # the lock goes with it


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise FileExistsError(f"expected a new folder for the results, got {path}, which exists; choose another")


def as_path(path: Any) -> Path:
    """The path of a file or folder; TypeError or ValueError for what is none."""
    require_kind("the path of a file or folder", path, (str, os.PathLike), "give it as text or as a pathlib.Path")
    if "\0" in str(path):
        raise ValueError(f"expected the path of a file or folder, got {shown(str(path))}; leave out the zero byte")
    return Path(path)


@contextmanager
def one_sentence(path: Path) -> Iterator[None]:
    """Says in one sentence why a file or folder cannot be written."""
    try:
        yield
    except OSError as error:
        if str(error).startswith("expected "):
            raise
        name = shown(str(path), 200).strip("'")
        raise type(error)(
            f"expected a place that can be written, got {name} ({error.strerror or error}); make its folder, free "
            "space, or choose another place"
        ) from None


def checksum(data: Data) -> str:
    """SHA-256 of the values of x and y: tells whether two runs had the same data."""
    digest = hashlib.sha256()
    for values in (data.x, data.y):
        digest.update(str(values.shape).encode() + np.ascontiguousarray(values, np.float64).tobytes())
    return digest.hexdigest()
