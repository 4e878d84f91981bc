"""Results on disk: what every method predicted for every test case, so that methods of today are paired with those of
other years.

A folder: PROTOTASK/prototask.npz has the cases and their division, PROTOTASK/SIZE/METHOD.npz what a method did on one
task. Each file holds arrays and a manifest in JSON, and appears under its name only when complete. Axes: I instances,
J test cases each.
"""

import json
import platform
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jaxgen import store
from jaxgen.delve.methods import NAME
from jaxgen.delve.prototask import Prototask
from jaxgen.types import Data, Losses

_MARK = "delve-archive.json"
_FORMAT = 1
_SAME = ("learner", "seed", "sha256", "scheme", "loss")
"""What tells whether two results are of the same method on the same task."""


@dataclass(frozen=True)
class Archive:
    """Results of methods on tasks, in a folder.

    Attributes:
      path: the folder.
    """

    path: Path

    @classmethod
    def open(cls, path: str | Path, create: bool = False) -> "Archive":
        """The archive in a folder.

        Args:
          path: the folder.
          create: makes it one where there is no such folder, or an empty one.
        Raises:
          FileNotFoundError: there is no such folder.
          ValueError: the folder is something else, or an archive of another format.
        """
        folder = Path(path)
        mark = folder / _MARK
        if create and (not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))):
            folder.mkdir(parents=True, exist_ok=True)
            mark.write_text(json.dumps({"format": _FORMAT}) + "\n")
        if not folder.exists():
            raise FileNotFoundError(
                f"expected an archive of results, got {folder}, which does not exist; "
                "check the path, or make one with delve.run"
            )
        try:
            found = json.loads(mark.read_text())["format"]
        except (OSError, ValueError, KeyError, TypeError):
            raise ValueError(
                f"expected an archive of results, or a new folder, got {folder}, which has no {_MARK}; "
                "choose another folder"
            ) from None
        if found != _FORMAT:
            raise ValueError(
                f"expected an archive of format {_FORMAT}, got {found} in {folder}; "
                "read it with the version of jaxgen that wrote it"
            )
        return cls(folder)

    def prototasks(self) -> tuple[str, ...]:
        """The names of the prototasks."""
        return tuple(sorted(path.parent.name for path in self.path.glob("*/prototask.npz")))

    def prototask(self, name: str) -> Prototask:
        """A prototask with its cases.

        Raises:
          ValueError: there is none of this name, or its file is damaged.
        """
        if name not in self.prototasks():
            raise ValueError(
                f"expected a prototask among {', '.join(self.prototasks()) or 'none'} of {self.path}, got "
                f"{name!r}; check the name"
            )
        manifest, arrays = _read(self.path / name / "prototask.npz")
        data = Data(
            arrays["x"],
            arrays["y"],
            tuple(manifest["names"]),
            manifest["target"],
            manifest["task"],
            tuple(manifest["classes"]),
        )
        if store.checksum(data) != manifest["sha256"]:
            raise ValueError(
                f"expected the cases with SHA-256 {manifest['sha256'][:12]}, got others in "
                f"{self.path / name}; restore the file"
            )
        return Prototask(
            name,
            data,
            tuple(manifest["sizes"]),
            manifest["instances"],
            manifest["test_cases"],
            manifest["common"],
            manifest["origin"],
        )

    def add_prototask(self, prototask: Prototask) -> None:
        """Stores the cases of a prototask, x [N, D] and y [N, K]; nothing to do if they are here.

        Raises:
          ValueError: another prototask of this name is here.
        """
        manifest = _described(prototask)
        prototask.plan(min(prototask.sizes))
        file = self.path / prototask.name / "prototask.npz"
        if file.exists():
            self._require_same(prototask.name, _read(file)[0], manifest)
            return
        file.parent.mkdir(exist_ok=True)
        store.write(file, manifest, {"x": prototask.data.x, "y": prototask.data.y})

    def manifest(self, prototask: str, size: int, method: str) -> dict[str, Any] | None:
        """What is known of a result: method and learner as code, checksum of the data, seed, versions, ...; None if it
        is not here.
        """
        file = self._file(prototask, size, method)
        return _read(file)[0] if file.exists() else None

    def add(
        self, prototask: str, size: int, method: str, losses: Losses, seed: int, about: Mapping[str, Any] | None = None
    ) -> None:
        """Stores a result.

        Args:
          prototask: one that is here.
          size: training cases.
          method: its name.
          losses: on the plan of this task, with losses [I, N] and predictions [I, N, K].
          seed: of the training.
          about: more for the manifest: seconds, device, ...
        Raises:
          ValueError: the losses are of another plan, or without predictions; or a name that is none for a file.
          FileExistsError: a result of this method is here.
        """
        task = self.prototask(prototask)
        plan = task.plan(size)
        if not NAME.fullmatch(method):
            raise ValueError(
                f"expected a method's name of letters, digits, '.', '-' and '_', got {method!r}; choose another"
            )
        if (
            losses.plan.scheme != plan.scheme
            or losses.test.shape != plan.test.shape
            or not np.array_equal(losses.test, plan.test)
        ):
            raise ValueError(
                f"expected losses of the plan {plan.scheme}, got {losses.plan.scheme}; "
                "assess with the plan of the prototask"
            )
        if losses.values is None or losses.predictions is None:
            raise ValueError(
                "expected losses with the predictions of every case, got losses without; assess with keep='predictions'"
            )
        manifest = {
            "method": method,
            "learner": losses.learner,
            "prototask": prototask,
            "size": size,
            "sha256": task.checksum,
            "scheme": plan.scheme,
            "loss": losses.loss,
        }
        manifest |= {
            "seed": seed,
            "reasons": losses.reasons,
            "precision": str(losses.values.dtype),
            **_versions(),
            **(about or {}),
        }
        arrays = {
            "losses": losses.values[plan.test > 0].reshape(plan.resamples, -1),
            "train_mean": losses.train_mean,
            "failure": losses.failure,
        }
        arrays["predictions"] = losses.predictions[plan.test > 0].reshape(
            plan.resamples, -1, losses.predictions.shape[-1]
        )
        file = self._file(prototask, size, method)
        file.parent.mkdir(parents=True, exist_ok=True)
        store.write(file, manifest, arrays | {f"info/{name}": value for name, value in losses.info.items()})

    def losses(self, prototask: str, size: int, method: str) -> Losses:
        """A result as losses [I, N] and predictions [I, N, K], NaN for the cases that an instance is not tested on.

        Raises:
          ValueError: there is no such result, its file is damaged, or it is of other data than the prototask here.
        """
        return self.task_losses(prototask, size, (method,))[0]

    def task_losses(self, prototask: str, size: int, methods: tuple[str, ...]) -> list[Losses]:
        """The results of several methods on one task, [I, N] each; see `losses`."""
        task = self.prototask(prototask)
        plan, checksum = task.plan(size), task.checksum
        return [self._losses(prototask, size, method, plan, checksum) for method in methods]

    def results(self, prototask: str = "*") -> pd.DataFrame:
        """One row a result, of one prototask or all: prototask, size, method, instances, how many of them failed, mean
        loss, and all of its manifest.
        """
        rows = []
        for file in sorted(
            self.path.glob(f"{prototask}/*/*.npz"), key=lambda file: (file.parts[-3], int(file.parts[-2]), file.name)
        ):
            manifest, arrays = _read(file)
            numbers = {
                "instances": len(arrays["failure"]),
                "failed": int((arrays["failure"] > 0).sum()),
                "mean": float(np.mean(arrays["losses"], dtype=np.float64)),
            }
            rows.append(
                {**{name: manifest.pop(name) for name in ("prototask", "size", "method")}, **numbers, **manifest}
            )
        return pd.DataFrame(rows)

    def merge(self, other: "Archive") -> list[str]:
        """Copies what is only in another archive to this one; nothing is copied unless both agree in what both have.

        Two results of a name agree if learner, seed, data, plan and loss are the same; then the one that is here stays.

        Args:
          other: the other archive, which is left as it is.
        Returns:
          The files copied, relative to the folder.
        Raises:
          ValueError: different prototasks or methods of the same name.
        """
        files = [
            file.relative_to(other.path)
            for file in (*sorted(other.path.glob("*/prototask.npz")), *sorted(other.path.glob("*/*/*.npz")))
        ]
        for file in files:
            if (self.path / file).exists():
                mine, theirs = (_read(folder / file)[0] for folder in (self.path, other.path))
                if file.name == "prototask.npz":
                    self._require_same(file.parent.name, mine, theirs)
                elif trouble := different(mine, theirs):
                    raise ValueError(
                        f"expected the same results under the same name, got {file} with another {trouble}; "
                        "rename one of the methods"
                    )
        new = [file for file in files if not (self.path / file).exists()]
        for file in new:
            (self.path / file).parent.mkdir(parents=True, exist_ok=True)
            partial = self.path / file.with_suffix(".partial")
            shutil.copyfile(other.path / file, partial)
            store.publish(partial, self.path / file)
        return [file.as_posix() for file in new]

    def _losses(self, prototask: str, size: int, method: str, plan: Any, checksum: str) -> Losses:
        file = self._file(prototask, size, method)
        if not file.exists():
            raise ValueError(
                f"expected a result of {method} on {prototask} with {size} training cases, got none in "
                f"{self.path}; run it first"
            )
        manifest, arrays = _read(file)
        if manifest["sha256"] != checksum or manifest["scheme"] != plan.scheme:
            raise ValueError(
                f"expected a result on the cases and the plan of {prototask}, got one on others in {file}; "
                f"run {method} again in another archive"
            )
        shape, test = plan.test.shape, plan.test > 0
        values = np.full(shape, np.nan, arrays["losses"].dtype)
        predictions = np.full((*shape, arrays["predictions"].shape[-1]), np.nan, arrays["predictions"].dtype)
        values[test], predictions[test] = (
            arrays["losses"].ravel(),
            arrays["predictions"].reshape(-1, predictions.shape[-1]),
        )
        means = arrays["losses"].mean(-1, dtype=np.float64), arrays["train_mean"]
        info = {name.removeprefix("info/"): value for name, value in arrays.items() if name.startswith("info/")}
        return Losses(
            *means,
            plan,
            manifest["learner"],
            manifest["loss"],
            arrays["failure"],
            tuple(manifest["reasons"]),
            values,
            info,
            predictions=predictions,
        )

    def _file(self, prototask: str, size: int, method: str) -> Path:
        return self.path / prototask / str(size) / f"{method}.npz"

    def _require_same(self, name: str, mine: dict[str, Any], theirs: dict[str, Any]) -> None:
        for what in ("sha256", "instances", "test_cases", "common"):
            if mine[what] != theirs[what]:
                got = f"{what}={theirs[what]}" if what != "sha256" else "other cases"
                raise ValueError(
                    f"expected the prototask {name} that is in {self.path}, got one of the same name with {got}; "
                    "give it another name, or use another archive"
                )


def different(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """What differs first between two manifests that should be of one method on one task: learner, seed, ...; empty if
    nothing.
    """
    return next((f"{name} ({theirs[name]}, not {mine[name]})" for name in _SAME if mine[name] != theirs[name]), "")


def _described(prototask: Prototask) -> dict[str, Any]:
    """The manifest of a prototask."""
    data = prototask.data.checked()
    kept = {
        "sizes": prototask.sizes,
        "instances": prototask.instances,
        "test_cases": prototask.test_cases,
        "common": prototask.common,
        "origin": prototask.origin,
    }
    return {
        "names": data.names,
        "target": data.target,
        "task": data.task,
        "classes": data.classes,
        "sha256": prototask.checksum,
        **kept,
        **_versions(),
    }


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("jaxgen", "jax", "numpy")} | {"python": platform.python_version()}


def _read(file: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        return store.read(file)
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile):
        raise ValueError(
            f"expected a complete file of an archive of results, got {file}, which cannot be read; restore or remove it"
        ) from None
