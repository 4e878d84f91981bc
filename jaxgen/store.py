"""Losses on disk: one file each, written under its final name only when complete."""

import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from jaxgen.types import Data, Losses, Plan

_TEXTS = ("learner", "loss", "reasons", "dropped")
_ARRAYS = ("test_mean", "train_mean", "failure", "values", "predictions")


def save(losses: Losses, path: str | Path) -> Path:
    """Writes losses with their plan to one compressed NumPy archive.

    Args:
      losses: what `assess` returned.
      path: the file, with the suffix .npz.
    Returns:
      The path written.
    Raises:
      ValueError: another suffix.
      FileExistsError: the file is there already.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"expected a file name that ends in .npz, got {path.name!r}; call it {path.stem}.npz")
    texts = {name: getattr(losses, name) for name in _TEXTS} | {
        "scheme": losses.plan.scheme,
        "jaxgen": version("jaxgen"),
    }
    arrays = {name: getattr(losses, name) for name in _ARRAYS if getattr(losses, name) is not None}
    arrays |= {"train": losses.train, "test": losses.test}
    arrays |= {f"info/{name}": value for name, value in losses.info.items()} | {
        f"label/{name}": value for name, value in losses.plan.labels.items()
    }
    return write(path, texts, arrays)


def write(path: Path, manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Path:
    """Writes arrays of any shapes, as [R, N], with a manifest to one new compressed NumPy archive, which appears under
    its name only when complete.

    Raises:
      FileExistsError: the file is there already, or another process made it meanwhile.
    """
    if path.exists():
        raise FileExistsError(f"expected a new file, got {path}, which exists; remove it or choose another name")
    parts: dict[str, Any] = {"manifest": np.array(json.dumps(manifest)), **arrays}
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            np.savez_compressed(file, **parts)
        publish(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def publish(partial: Path, path: Path) -> None:
    """Gives a complete file its final name, unless a file of that name is there by now.

    Raises:
      FileExistsError: it is.
    """
    try:
        os.link(partial, path)  # fails where the file exists, as a rename does not
        partial.unlink()
    except FileExistsError:
        raise FileExistsError(
            f"expected a new file, got {path}, which exists; remove it or choose another name"
        ) from None
    except OSError:  # a file system without links
        os.replace(partial, path)


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """A folder to write into that appears under its name only when all is in it, and not at all if something fails.

    Args:
      path: of the folder.
    Yields:
      The folder under a name of its own.
    Raises:
      FileExistsError: there is something of this name.
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"expected a new folder for the results, got {path}, which exists; choose another")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        yield partial
        partial.chmod(0o755)
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The manifest and the arrays, as [R, N], of a file that `write` wrote.

    Raises:
      OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile: there is no such file, or it is another.
    """
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:  # NumPy leaves a broken archive open
        return json.loads(str(archive["manifest"])), {
            name: archive[name] for name in archive.files if name != "manifest"
        }


def load(path: str | Path) -> Losses:
    """Reads losses that `save` wrote: G [*Q, R], their plan [*Q, R, N], and all else.

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: the file holds no losses of jaxgen.
    """
    try:
        return _losses(*read(path))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"expected a file of losses, got {path}, which does not exist; check the name"
        ) from None
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile):
        raise ValueError(
            f"expected a file written by jaxgen.store.save, got {path}; give one that `save` wrote"
        ) from None


def _losses(texts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Losses:
    parts = {
        kind: {name.removeprefix(kind): value for name, value in arrays.items() if name.startswith(kind)}
        for kind in ("info/", "label/")
    }
    plan = Plan(arrays["train"], arrays["test"], texts["scheme"], parts["label/"])
    means = {name: arrays[name] for name in ("test_mean", "train_mean", "failure")}
    said = {
        "learner": texts["learner"],
        "loss": texts["loss"],
        "reasons": tuple(texts["reasons"]),
        "dropped": texts["dropped"],
    }
    return Losses(
        **means,
        **said,
        plan=plan,
        values=arrays.get("values"),
        predictions=arrays.get("predictions"),
        info=parts["info/"],
    )


def checksum(data: Data) -> str:
    """SHA-256 of the values of x and y: tells whether two runs had the same data."""
    digest = hashlib.sha256()
    for values in (data.x, data.y):
        digest.update(str(values.shape).encode() + np.ascontiguousarray(values, np.float64).tobytes())
    return digest.hexdigest()
