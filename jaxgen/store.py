"""Losses on disk: one file each, written under its final name only when complete, and checked when it is read."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from jaxgen.types import Data, Losses, Plan
from jaxgen.types.numbers import require_kind, shown

_TEXTS = ("learner", "loss", "reasons", "dropped")
_ARRAYS = ("test_mean", "train_mean", "failure", "values", "predictions")
_PROBE_BYTES = 2**20
"""Written to a new folder on trial: a full disk often has room for a name, but not for this."""


def save(losses: Losses, path: str | Path) -> Path:
    """Writes losses with their plan to one compressed NumPy archive.

    Args:
      losses: what `assess` returned.
      path: the file, with the suffix .npz, in a folder that is there.
    Returns:
      The path written.
    Raises:
      TypeError: no losses, or no path.
      ValueError: another suffix, or something that is no number in `info`.
      FileExistsError: the file is there already.
      OSError: it cannot be written.
    """
    require_kind("the losses that assess returns", losses, Losses, "call save(losses, path)")
    path = _as_path(path)
    if path.suffix != ".npz":
        raise ValueError(f"expected a file name that ends in .npz, got {path.name!r}; call it {path.stem}.npz")
    texts = {name: getattr(losses, name) for name in _TEXTS} | {
        "scheme": losses.plan.scheme,
        "jaxgen": version("jaxgen"),
    }
    arrays = {name: getattr(losses, name) for name in _ARRAYS if getattr(losses, name) is not None}
    arrays |= {"train": losses.train, "test": losses.test}
    arrays |= {f"info/{name}": np.asarray(value) for name, value in losses.info.items()}
    arrays |= {f"label/{name}": value for name, value in losses.plan.labels.items()}
    arrays |= {f"case/{name}": value for name, value in losses.plan.cases.items()}
    return write(path, texts, arrays)


def load(path: str | Path) -> Losses:
    """Reads losses that `save` wrote: G [*Q, R], their plan [*Q, R, N], and all else.

    Raises:
      TypeError: no path.
      FileNotFoundError: there is no such file.
      ValueError: the file holds no losses of jaxgen, or is not as it was written.
      MemoryError: it does not fit into memory.
    """
    path = _as_path(path)
    try:
        losses = _losses(*read(path))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"expected a file of losses, got {path}, which does not exist; check the name"
        ) from None
    except MemoryError:  # also where damaged bytes say that an array is larger than it is
        raise MemoryError(
            f"expected losses that fit into memory, got {path}, which is too large or damaged; restore the file"
        ) from None
    except PermissionError:
        raise PermissionError(f"expected a file that may be read, got {path}; change its permissions") from None
    except (ValueError, KeyError, TypeError, OSError):
        raise ValueError(
            f"expected a file written by jaxgen.store.save, got {path}; give one that `save` wrote"
        ) from None
    trouble = _trouble(losses)
    if trouble:
        raise ValueError(
            f"expected losses as jaxgen.store.save writes them, got {path}, in which {trouble}; "
            "restore the file, or assess again"
        )
    return losses


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
    with _one_sentence(path):
        try:
            with open(partial, "wb") as file:
                parts: dict[str, Any] = {"manifest": np.array(text), **arrays}
                np.savez_compressed(file, **parts)
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
    """Gives a complete file its final name, unless a file of that name is there by now.

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
    path = _as_path(path)
    _refuse_existing(path)
    with _one_sentence(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}-", dir=path.parent))
    try:
        yield partial
        with _one_sentence(path):
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
    path = _as_path(path)
    _refuse_existing(path)
    with _one_sentence(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir()
        except FileExistsError:  # made by another process since
            _refuse_existing(path)
            raise
    try:
        with _one_sentence(path):
            probe = path / "probe"
            probe.write_bytes(b"\0" * _PROBE_BYTES)
            probe.unlink()
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    return path


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise FileExistsError(f"expected a new folder for the results, got {path}, which exists; choose another")


def _as_path(path: Any) -> Path:
    """The path of a file or folder; TypeError or ValueError for what is none."""
    require_kind("the path of a file or folder", path, (str, os.PathLike), "give it as text or as a pathlib.Path")
    if "\0" in str(path):
        raise ValueError(f"expected the path of a file or folder, got {shown(str(path))}; leave out the zero byte")
    return Path(path)


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
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


def _losses(texts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Losses:
    """Losses of what was read, their parts as they came."""
    groups = {
        kind: {name.removeprefix(kind): value for name, value in arrays.items() if name.startswith(kind)}
        for kind in ("info/", "label/", "case/")
    }
    return Losses(
        arrays["test_mean"],
        arrays["train_mean"],
        Plan(arrays["train"], arrays["test"], texts["scheme"], groups["label/"], groups["case/"]),
        texts["learner"],
        texts["loss"],
        arrays["failure"],
        tuple(texts["reasons"]),
        arrays.get("values"),
        groups["info/"],
        texts["dropped"],
        arrays.get("predictions"),
    )


def _trouble(losses: Losses) -> str:
    """What does not fit together in losses [*Q, R] that were read, in words; empty if all does."""
    try:
        plan = losses.plan.checked()
    except ValueError:
        return "the plan is no plan"
    words = (losses.learner, losses.loss, *losses.reasons)
    if not all(isinstance(word, str) for word in words) or type(losses.dropped) is not int or losses.dropped < 0:
        return "the learner, its loss, the reasons or the number of rows left out are none"
    rows = losses.test_mean.shape
    if len(rows) not in (1, 2) or rows[-1] != plan.resamples or (plan.sets and rows != plan.train.shape[:-1]):
        return f"there are losses of {list(rows)} rows for a plan {list(plan.train.shape)}"
    shapes = {
        "test_mean": (losses.test_mean, rows),
        "train_mean": (losses.train_mean, rows),
        "failure": (losses.failure, rows),
        "values": (losses.values, (*rows, plan.n)),
    }
    if losses.predictions is not None:
        shapes["predictions"] = losses.predictions, (*rows, plan.n, *losses.predictions.shape[-1:])
    for name, (array, shape) in shapes.items():
        kind = np.uint8 if name == "failure" else np.floating
        if array is not None and (array.shape != shape or not np.issubdtype(array.dtype, kind)):
            return f"{name} are {array.dtype} {list(array.shape)}, not {kind.__name__} {list(shape)}"
    for name, array in losses.info.items():
        if array.shape[: len(rows)] != rows:
            return f"info of {name!r} is {list(array.shape)}, not of {list(rows)} rows"
    return _wrong_numbers(losses)


def _wrong_numbers(losses: Losses) -> str:
    """What numbers of losses [*Q, R] cannot be, in words; empty if all can."""
    if losses.failure.max() > len(losses.reasons):
        return f"a row failed for reason {losses.failure.max()} of {len(losses.reasons)}"
    good = ~losses.failed
    if not np.isfinite(losses.test_mean[good]).all() or np.isinf(losses.train_mean[good]).any():
        return "the loss of a row that went well is not finite"
    if losses.values is not None and not np.isfinite(losses.values[good[..., None] & (losses.test > 0)]).all():
        return "the loss of a test case of a row that went well is not finite"
    return ""


def checksum(data: Data) -> str:
    """SHA-256 of the values of x and y: tells whether two runs had the same data."""
    digest = hashlib.sha256()
    for values in (data.x, data.y):
        digest.update(str(values.shape).encode() + np.ascontiguousarray(values, np.float64).tobytes())
    return digest.hexdigest()
