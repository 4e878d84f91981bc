"""Losses on disk, one file each."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from jaxgen.store.files import as_path, read, write
from jaxgen.types import Losses, Plan
from jaxgen.types.numbers import require_kind

_TEXTS = ("learner", "loss", "reasons", "dropped", "label", "key")
_ARRAYS = ("test_mean", "train_mean", "failure", "values", "predictions")


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
    if type(losses) is not Losses:  # a statistic of rows would come back as a loss
        raise TypeError(
            f"expected the losses that assess returns, got the {losses.unit} of their rows; save the losses themselves"
        )
    path = as_path(path)
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
    path = as_path(path)
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
        texts.get("label", ""),  # absent before version 0.10
        texts.get("key", ""),
    )


def _trouble(losses: Losses) -> str:
    """What does not fit together in losses [*Q, R] that were read, in words; empty if all does."""
    try:
        plan = losses.plan.checked()
    except ValueError:
        return "the plan is no plan"
    words = (losses.learner, losses.loss, losses.label, losses.key, *losses.reasons)
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
