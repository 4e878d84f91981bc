"""Results on disk: what every method predicted for every test case, so that methods of today are paired with those of
other years.

A folder: PROTOTASK/prototask.npz has the cases and their division, PROTOTASK/SIZE/METHOD.npz what a method did on one
task. Each file holds arrays and a manifest in JSON, and appears under its name only when complete, so that several
processes may write to one archive. Axes: I instances, J test cases each.
"""

import json
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jaxgen import store
from jaxgen.delve.methods import require_name
from jaxgen.delve.prototask import Prototask
from jaxgen.delve.stored import FORMAT, MARK, SAME, damaged, make_folder, mark, read_result, read_whole
from jaxgen.types import Data, Losses, Plan, keys
from jaxgen.types.numbers import require, require_flag, require_kind, shown

_PROTOTASK = "prototask.npz"
_KEPT = ("sizes", "instances", "test_cases", "common", "origin")
"""What a manifest keeps of a prototask beside its cases."""


@dataclass(frozen=True)
class Archive:
    """Results of methods on tasks, in a folder.

    Attributes:
      path: the folder.
    """

    path: Path

    def __post_init__(self) -> None:
        require_kind("the path of an archive", self.path, Path, "open it with delve.Archive.open(path)")

    @classmethod
    def open(cls, path: str | PathLike[str], create: bool = False) -> "Archive":
        """The archive in a folder.

        Args:
          path: the folder.
          create: makes it one where there is no such folder, or an empty one.
        Raises:
          TypeError: no path.
          FileNotFoundError: there is no such folder.
          ValueError: the folder is something else, or an archive of another format.
          OSError: it cannot be made.
        """
        require_kind("the path of an archive", path, (str, PathLike), "give it as text or as a pathlib.Path")
        require_flag("create", create)
        folder = Path(path)
        if create and not os.path.lexists(folder):
            try:
                with store.new_folder(folder) as made:
                    mark(made)
            except OSError:
                if not os.path.isfile(folder / MARK):  # or else another process has made it meanwhile
                    raise
        elif create and folder.is_dir() and all(file.name.startswith(MARK) for file in folder.iterdir()):
            mark(folder)
        if not os.path.lexists(folder):
            raise FileNotFoundError(
                f"expected an archive of results, got {_name(folder)}, which does not exist; "
                "check the path, or make one with delve.run"
            )
        try:
            number = json.loads((folder / MARK).read_text())["format"]
        except (OSError, ValueError, KeyError, TypeError):
            raise ValueError(
                f"expected an archive of results, or a new folder, got {folder}, which has no {MARK}; "
                "choose another folder"
            ) from None
        if number != FORMAT:
            raise ValueError(
                f"expected an archive of format {FORMAT}, got {shown(number)} in {folder}; "
                "read it with the version of jaxgen that wrote it"
            )
        return cls(folder)

    def prototasks(self) -> tuple[str, ...]:
        """The names of the prototasks."""
        return tuple(sorted(path.parent.name for path in self.path.glob(f"*/{_PROTOTASK}")))

    def prototask(self, name: str) -> Prototask:
        """A prototask with its cases.

        Raises:
          ValueError: there is none of this name, or its file is damaged.
        """
        if name not in self.prototasks():
            raise ValueError(
                f"expected a prototask among {', '.join(self.prototasks()) or 'none'} of {self.path}, got "
                f"{shown(name)}; check the name"
            )
        file = self.path / name / _PROTOTASK
        manifest, arrays = read_whole(file)
        try:
            words = tuple(manifest["names"]), manifest["target"], manifest["task"], tuple(manifest["classes"])
            kept: dict[str, Any] = {key: manifest[key] for key in _KEPT} | {"sizes": tuple(manifest["sizes"])}
            prototask = Prototask(name, Data(arrays["x"], arrays["y"], *words), **kept)
            expected = manifest["sha256"]
        except (KeyError, ValueError, TypeError):
            raise damaged(file, "is no prototask") from None
        if prototask.checksum != expected:
            raise damaged(file, "has other cases than its checksum says")
        return prototask

    def add_prototask(self, prototask: Prototask) -> None:
        """Stores the cases of a prototask, x [N, D] and y [N, K]; nothing to do if they are here.

        Raises:
          TypeError: no prototask.
          ValueError: another prototask of this name is here, or one without enough cases for its sizes.
          OSError: it cannot be written.
        """
        require_kind("a prototask as delve.Prototask", prototask, Prototask, "make one from your data")
        manifest = _described(prototask)
        prototask.plan(min(prototask.sizes))
        file = self.path / prototask.name / _PROTOTASK
        if not file.exists():
            make_folder(file.parent)
            with suppress(FileExistsError):  # where another process has stored one meanwhile
                store.write(file, manifest, {"x": prototask.data.x, "y": prototask.data.y})
                return
        self._require_same(file, read_whole(file)[0], manifest)

    def manifest(self, prototask: str, size: int, method: str) -> dict[str, Any] | None:
        """What is known of a result: method and learner as code, checksum of the data, seed, versions, ...; None if it
        is not here.

        Raises:
          ValueError: a name or size that is none, or a damaged file.
        """
        file = self._file(prototask, size, method)
        return read_result(file)[0] if file.exists() else None

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
          TypeError: no losses.
          ValueError: the losses are of another plan, or without predictions; or a name or seed that is none.
          FileExistsError: a result of this method is here.
          OSError: it cannot be written.
        """
        require_kind("the losses of a task", losses, Losses, "run it with delve.run_task")
        require("seed", seed, 0, keys.MOST_SEED)
        file = self._file(prototask, size, method)
        task = self.prototask(prototask)
        plan = task.plan(size)
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
        make_folder(file.parent)
        store.write(file, manifest, arrays | {f"info/{name}": np.asarray(value) for name, value in losses.info.items()})

    def losses(self, prototask: str, size: int, method: str) -> Losses:
        """A result as losses [I, N] and predictions [I, N, K], NaN for the cases that an instance is not tested on.

        Raises:
          ValueError: there is no such result, its file is damaged, or it is of other data than the prototask here.
        """
        return self.task_losses(prototask, size, (method,))[0]

    def task_losses(self, prototask: str, size: int, methods: Sequence[str]) -> list[Losses]:
        """The results of several methods on one task, [I, N] each; see `losses`."""
        if isinstance(methods, str) or not isinstance(methods, Sequence):
            raise TypeError(
                f"expected the names of methods in a list, got {shown(methods)}; give for example ['lin-1']"
            )
        task = self.prototask(prototask)
        plan, checksum = task.plan(size), task.checksum
        return [self._losses(prototask, size, method, plan, checksum) for method in methods]

    def results(self, prototask: str = "*") -> pd.DataFrame:
        """One row a result, of one prototask or all ("*"): prototask, size, method, instances, how many of them failed,
        mean loss, and all of its manifest.

        Raises:
          ValueError: a damaged file, or one that is not where it belongs.
        """
        if prototask != "*":
            require_name("a prototask's name", prototask)
        rows = []
        for file in self.path.glob(f"{prototask}/*/*.npz"):
            manifest, arrays = read_result(file)
            numbers = {
                "instances": len(arrays["failure"]),
                "failed": int((arrays["failure"] > 0).sum()),
                "mean": float(np.mean(arrays["losses"], dtype=np.float64)),
            }
            rows.append(
                {**{name: manifest.pop(name) for name in ("prototask", "size", "method")}, **numbers, **manifest}
            )
        return pd.DataFrame(sorted(rows, key=lambda row: (row["prototask"], row["size"], row["method"])))

    def merge(self, other: "Archive") -> list[str]:
        """Copies what is only in another archive to this one.

        Nothing is copied unless both agree in what both have, and nothing is damaged.

        Two results of a name agree if learner, seed, data, plan and loss are the same; then the one that is here stays.

        Args:
          other: the other archive, which is left as it is.
        Returns:
          The files copied, relative to the folder.
        Raises:
          TypeError: no archive.
          ValueError: different prototasks or methods of the same name, or a damaged file.
          OSError: a file cannot be written.
        """
        require_kind("an archive as delve.Archive", other, Archive, "open it with delve.Archive.open(path)")
        files = [
            file.relative_to(other.path)
            for file in (*sorted(other.path.glob(f"*/{_PROTOTASK}")), *sorted(other.path.glob("*/*/*.npz")))
        ]
        new = [file for file in files if not self._has_same(other, file)]
        copied = []
        for file in new:
            make_folder((self.path / file).parent)
            partial = self.path / file.with_name(f"{file.name}.{os.getpid()}.partial")
            try:
                shutil.copyfile(other.path / file, partial)
                store.publish(partial, self.path / file)
                copied.append(file.as_posix())
            except FileExistsError:  # made by another process since
                self._has_same(other, file)
            finally:
                partial.unlink(missing_ok=True)
        return copied

    def _has_same(self, other: "Archive", file: Path) -> bool:
        """Whether a file of another archive is here too.

        Raises:
          ValueError: it is, and differs; or one of both is damaged.
        """
        is_prototask, here = file.name == _PROTOTASK, (self.path / file).exists()
        if is_prototask:
            other.prototask(file.parent.name)
        theirs = read_whole(other.path / file)[0] if is_prototask else read_result(other.path / file)[0]
        if here and is_prototask:
            self._require_same(self.path / file, read_whole(self.path / file)[0], theirs)
        elif here and (trouble := different(read_result(self.path / file)[0], theirs)):
            raise ValueError(
                f"expected the same results under the same name, got {file} with another {trouble}; "
                "rename one of the methods"
            )
        return here

    def _losses(self, prototask: str, size: int, method: str, plan: Plan, checksum: str) -> Losses:
        file = self._file(prototask, size, method)
        if not file.exists():
            raise ValueError(
                f"expected a result of {method} on {prototask} with {size} training cases, got none in "
                f"{self.path}; run it first"
            )
        manifest, arrays = read_result(file)
        if manifest["sha256"] != checksum or manifest["scheme"] != plan.scheme:
            raise ValueError(
                f"expected a result on the cases and the plan of {prototask}, got one on others in {file}; "
                f"run {method} again in another archive"
            )
        shape, test = plan.test.shape, plan.test > 0
        if arrays["losses"].shape != (shape[0], int(plan.test_sizes[0])):
            raise damaged(file, f"has losses {list(arrays['losses'].shape)} for a plan {list(shape)}")
        values = np.full(shape, np.nan, arrays["losses"].dtype)
        predictions = np.full((*shape, arrays["predictions"].shape[-1]), np.nan, arrays["predictions"].dtype)
        values[test], predictions[test] = (
            arrays["losses"].ravel(),
            arrays["predictions"].reshape(-1, predictions.shape[-1]),
        )
        info = {name.removeprefix("info/"): value for name, value in arrays.items() if name.startswith("info/")}
        return Losses(
            arrays["losses"].mean(-1, dtype=np.float64),
            arrays["train_mean"],
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
        """Where a result is."""
        require_name("a prototask's name", prototask)
        require_name("a method's name", method)
        return self.path / prototask / str(require("size", size, 1)) / f"{method}.npz"

    def _require_same(self, file: Path, mine: dict[str, Any], theirs: dict[str, Any]) -> None:
        """ValueError unless two manifests are of one prototask."""
        for what in ("sha256", "instances", "test_cases", "common"):
            if what not in mine or what not in theirs:
                raise damaged(file, "or the one to add is no prototask")
            if mine[what] != theirs[what]:
                other = f"{what}={theirs[what]}" if what != "sha256" else "other cases"
                raise ValueError(
                    f"expected the prototask {file.parent.name} that is in {self.path}, got one of the same name with "
                    f"{other}; give it another name, or use another archive"
                )


def different(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """What differs first between two manifests that should be of one method on one task: learner, seed, ...; empty if
    nothing.
    """
    return next((f"{name} ({theirs[name]}, not {mine[name]})" for name in SAME if mine[name] != theirs[name]), "")


def _described(prototask: Prototask) -> dict[str, Any]:
    """The manifest of a prototask."""
    data = prototask.data
    return {
        "names": data.names,
        "target": data.target,
        "task": data.task,
        "classes": data.classes,
        "sha256": prototask.checksum,
        **{name: getattr(prototask, name) for name in _KEPT},
        **_versions(),
    }


def _name(folder: Path) -> str:
    """A path for a message, cut where it is long."""
    return shown(str(folder), 200).strip("'")


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("jaxgen", "jax", "numpy")} | {"python": platform.python_version()}
