"""The files of an archive: folders made, results read, and what is damaged or out of place refused in one sentence.

Axes: I instances, J test cases each.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxgen import store
from jaxgen.types.numbers import shown

MARK, FORMAT = "delve-archive.json", 1
"""The file that makes a folder an archive, and the number of the format in it."""
SAME = ("learner", "seed", "sha256", "scheme", "loss")
"""What tells whether two results are of the same method on the same task."""
_MANIFEST = ("prototask", "size", "method", "reasons", *SAME)
_ARRAYS = ("losses", "predictions", "train_mean", "failure")
"""What every result has."""


def mark(folder: Path) -> None:
    """Makes a folder an archive, by a file that appears at once with all that is in it.

    Raises:
      OSError: it cannot be written.
    """
    partial = folder / f"{MARK}.{os.getpid()}.partial"
    try:
        partial.write_text(json.dumps({"format": FORMAT}) + "\n")
        os.replace(partial, folder / MARK)
    except OSError as error:
        raise _unwritable(folder, error) from None


def make_folder(folder: Path) -> None:
    """Makes a folder of an archive, if it is not there.

    Raises:
      OSError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> OSError:
    return type(error)(
        f"expected an archive that can be written to, got {folder} ({error.strerror or error}); change its "
        "permissions, free space, or use another archive"
    )


def read_whole(file: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Manifest and arrays [...] of a file of an archive.

    Raises:
      ValueError: it cannot be read, or is not as it was written.
    """
    try:
        return store.read(file)
    except (ValueError, OSError, MemoryError):  # damaged bytes may say that an array is larger than it is
        raise damaged(file, "cannot be read") from None


def read_result(file: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Manifest and arrays of a result: losses [I, J], predictions [I, J, K], train_mean [I], failure [I] and info [I,
    ...], if they fit together and the file stands where it belongs.

    Raises:
      ValueError: it cannot be read, something is missing or does not fit, or it is the result of something else.
    """
    manifest, arrays = read_whole(file)
    missing = [name for name in _MANIFEST if name not in manifest] + [name for name in _ARRAYS if name not in arrays]
    if missing:
        raise damaged(file, f"has no {missing[0]}")
    place = (manifest["prototask"], str(manifest["size"]), manifest["method"])
    if place != (file.parts[-3], file.parts[-2], file.stem) or type(manifest["size"]) is not int:
        raise damaged(file, f"is the result of {shown(place[2])} on {shown(place[0])} with {shown(place[1])} cases")
    if wrong := _misfit(manifest, arrays):
        raise damaged(file, f"has {wrong} of another shape, type or range")
    return manifest, arrays


def _misfit(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """The name of the part of a result [I, J] that does not fit the others; empty if all do."""
    shape = arrays["losses"].shape
    good = {
        "losses": len(shape) == 2 and 0 not in shape and arrays["losses"].dtype.kind == "f",
        "predictions": arrays["predictions"].shape[:-1] == shape and arrays["predictions"].dtype.kind == "f",
        "train_mean": arrays["train_mean"].shape == shape[:1] and arrays["train_mean"].dtype.kind == "f",
        "reasons": isinstance(manifest["reasons"], list) and all(isinstance(why, str) for why in manifest["reasons"]),
    }
    good |= {name: array.shape[:1] == shape[:1] for name, array in arrays.items() if name.startswith("info/")}
    good |= {name: isinstance(manifest[name], str) for name in ("learner", "loss", "scheme", "sha256")}
    failure = arrays["failure"]
    good["failure"] = failure.shape == shape[:1] and failure.dtype == np.uint8
    good["failure"] = good["failure"] and good["reasons"] and int(failure.max()) <= len(manifest["reasons"])
    return next((name for name, fits in good.items() if not fits), "")


def damaged(file: Path, why: str) -> ValueError:
    """What to say of a file that is not as this package writes it."""
    return ValueError(
        f"expected a complete file of an archive of results, got {file}, which {why}; restore or remove it"
    )
