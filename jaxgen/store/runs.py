"""A run on disk: a folder with what was asked, the plan, and one file for every part that is done.

    DIR/run.json          what was asked, in words and as digests, and the table of parts
    DIR/plan.npz          training and test weights with their labels, or what they are drawn from
    DIR/part-00000.npz    the arrays of a part; it is done if this file is there

Every file appears under its name only when complete and carries a checksum. So a process may be killed at any moment:
what is there is whole, and the same call goes on with what is not there.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxgen.store.files import as_path, held, new_folder, one_sentence, read, write
from jaxgen.store.parts import Arrays, Heading, Part, as_arrays, joined
from jaxgen.types import Losses, Plan
from jaxgen.types.drawn import DrawnPlan, Recipe
from jaxgen.types.numbers import require_kind, shown

_FORMAT = 1

Asked = Mapping[str, Any]
"""What is asked of a run: names and values that json can hold, in the order in which they are compared."""


class State(NamedTuple):
    """How far a run is.

    Attributes:
      parts: how many there are.
      done: how many of them are.
      trainings: of all parts.
      trained: of those that are done.
      seconds: what the parts that are done took, one after the other.
    """

    parts: int
    done: int
    trainings: int
    trained: int
    seconds: float

    @property
    def seconds_left(self) -> float:
        """What the rest takes on one machine like those that did the first parts; NaN before any is done."""
        return self.seconds / self.trained * (self.trainings - self.trained) if self.trained else float("nan")


class StoredRun:
    """A run in a folder, complete or not; made by `begin` or `open`.

    Attributes:
      folder: where it is.
      asked: what was asked, by name.
      heading: what its losses say beside their numbers.
      parts: all parts.
    """

    def __init__(self, folder: Path, asked: Asked, heading: Heading, parts: Sequence[Part]):
        self.folder, self.asked, self.heading, self.parts = folder, dict(asked), heading, tuple(parts)
        self.identity = _identity(asked)

    @property
    def plan(self) -> Plan:
        """The plan of the whole run, [*Q, R, N].

        Raises:
          ValueError: its file is damaged or not there.
        """
        try:
            texts, arrays = read(self.folder / "plan.npz")
        except (OSError, ValueError):
            raise ValueError(
                f"expected the plan of a run in {self.folder / 'plan.npz'}, got no whole file; restore it, or begin "
                "anew in another folder"
            ) from None
        if "recipe" in texts:
            words, n, tested = texts["recipe"]
            return DrawnPlan(Recipe(tuple(words), n, tested), arrays["numbers"], texts["scheme"])
        groups = [
            {name.removeprefix(kind): value for name, value in arrays.items() if name.startswith(kind)}
            for kind in ("label/", "case/")
        ]
        return Plan(arrays["train"], arrays["test"], texts["scheme"], *groups)

    @property
    def done(self) -> list[Part]:
        """The parts that are done, by their files."""
        return [part for part in self.parts if self._file(part.number).exists()]

    def state(self) -> State:
        """How far the run is."""
        done = self.done
        seconds = 0.0
        for part in done:
            with suppress(ValueError, OSError):
                seconds += float(self._read(part)[0]["seconds"])
        return State(
            len(self.parts), len(done), sum(part.size for part in self.parts), sum(part.size for part in done), seconds
        )

    def losses(self) -> Losses:
        """The losses of what is done: of all rows, or where rows were drawn one by one of those that are there.

        Returns:
          Losses [*Q, R], of fewer rows while the run goes on; the plan says so.
        Raises:
          ValueError: nothing is done, a part is damaged, or parts are missing of a design that makes sense only as a
            whole, such as folds.
        """
        plan, done = self.plan, self.done
        if not done:
            raise ValueError(f"expected a run with a part that is done, got none in {self.folder}; wait for the first")
        if len(done) < len(self.parts) and not plan.drawn_one_by_one:
            raise ValueError(
                f"expected all rows of {plan.scheme}, which make sense only together, got {len(done)} of "
                f"{len(self.parts)} parts in {self.folder}; wait, or call assess as before to go on"
            )
        return joined({part: self.read_part(part) for part in done}, plan, self.heading)

    def read_part(self, part: Part) -> Arrays:
        """What a part computed, each [sets, rows, ...].

        Raises:
          ValueError: its file is damaged, of another run, or not there.
        """
        try:
            manifest, arrays = self._read(part)
        except (OSError, ValueError):
            raise ValueError(
                f"expected a whole file in {self._file(part.number)}, got a damaged one or none; call assess as "
                "before, which computes it again"
            ) from None
        if (manifest.get("run"), manifest.get("part")) != (self.identity, part.number):
            raise ValueError(
                f"expected {part} in {self._file(part.number)}, got a file of another run or part; remove it and call "
                "assess as before"
            )
        return arrays

    def _read(self, part: Part) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return read(self._file(part.number))

    def publish(self, part: Part, arrays: Arrays, seconds: float) -> None:
        """Writes a part, unless another process has done so meanwhile, with the same numbers.

        Raises:
          OSError: it cannot be written.
        """
        manifest = {"run": self.identity, "part": part.number, "seconds": round(seconds, 3)}
        with suppress(FileExistsError):
            write(self._file(part.number), manifest, arrays)

    def whole_parts(self) -> dict[Part, Arrays]:
        """What the parts that are done computed; a damaged file is removed, which is said, so that its part is computed
        again.
        """
        whole: dict[Part, Arrays] = {}
        for part in self.done:
            try:
                whole[part] = self.read_part(part)
            except ValueError:
                name = self._file(part.number)
                warnings.warn(
                    f"{name} was damaged or of another run; {part} is computed again", RuntimeWarning, stacklevel=2
                )
                name.unlink(missing_ok=True)
        return whole

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps other processes from working at the same run, as long as this one lives.

        Raises:
          RuntimeError: another process does.
          OSError: the folder cannot be written.
        """
        advice = "wait for it, or give an executor to work with more processes"
        with held(self.folder, "expected a run that nobody works at", advice):
            for left in self.folder.glob("*.partial"):  # of a process that was killed
                left.unlink(missing_ok=True)
            yield

    def _file(self, number: int) -> Path:
        return self.folder / f"part-{number:05d}.npz"

    def __repr__(self) -> str:
        name = self.heading.label or self.heading.learner
        return f"StoredRun({self.folder}: {name}, {len(self.done)} of {len(self.parts)} parts)"


def open(folder: str | os.PathLike) -> StoredRun:
    """The run in a folder, complete or still going on; needs no JAX.

    Args:
      folder: what `assess` got as `store`.
    Raises:
      TypeError: no path.
      FileNotFoundError: there is no run.
      ValueError: its file run.json is damaged, or of a later version.
    """
    path = as_path(folder)
    file = path / "run.json"
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        if said["format"] != _FORMAT:
            raise ValueError(
                f"expected a run in format {_FORMAT}, got {shown(said['format'])} in {file}; use the version of jaxgen "
                "that wrote it"
            )
        parts = [Part(number, *corners) for number, corners in enumerate(said["parts"])]
        heading = said["heading"]
        known = Heading(**{**heading, "reasons": tuple(heading["reasons"])})
        return StoredRun(path, said["asked"], known, parts)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"expected a folder that assess(..., store=...) made, got {path}, in which there is no run.json; check the "
            "name"
        ) from None
    except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
        raise ValueError(
            f"expected the description of a run in {file}, got a damaged one; restore it, or begin anew in another "
            "folder"
        ) from None


def begin(folder: str | os.PathLike, asked: Asked, heading: Heading, plan: Plan, parts: Sequence[Part]) -> StoredRun:
    """The run in a folder: a new one, or the one that is there if it was asked the same.

    Args:
      folder: its path; folders above it are made too.
      asked: what is asked, which must be the same for a run to go on.
      heading: what the losses say beside their numbers.
      plan: training and test weights [*Q, R, N].
      parts: all parts; a run that is there keeps its own.
    Raises:
      TypeError: no path.
      ValueError: the folder holds a run of which something else was asked, or other things than a run.
      OSError: it cannot be made or written.
    """
    path = as_path(folder)
    empty = path.is_dir() and not any(path.iterdir())
    if not (path / "run.json").exists():
        if os.path.lexists(path) and not empty:
            raise ValueError(
                f"expected a new folder, or one with a run, got {path}, which holds other things; choose another"
            )
        try:
            if empty:
                with one_sentence(path):
                    path.rmdir()  # takes its name again when complete
            with new_folder(path) as new:
                _write_run(new, asked, heading, plan, parts)
        except OSError:
            if not (path / "run.json").exists():  # else another process has made it meanwhile
                raise
    run = open(path)
    _refuse_other(run, asked)
    return run


def put(folder: str | os.PathLike, asked: Asked, heading: Heading, losses: Losses) -> StoredRun:
    """A run that is complete, from its losses, in one part.

    Args:
      folder: its path.
      asked, heading: of the run that gave the losses.
      losses: of all its rows, [*Q, R].
    Raises:
      TypeError: no losses, or no path.
      ValueError: the folder holds something else.
      OSError: it cannot be made or written.
    """
    require_kind("the losses that a run gave", losses, Losses, "call put(folder, run.asked, run.heading, losses)")
    whole = Part(0, 0, heading.sets, 0, losses.resamples)
    run = begin(folder, asked, heading, losses.plan, (whole,))
    run.publish(whole, as_arrays(losses), 0.0)
    return run


def _write_run(folder: Path, asked: Asked, heading: Heading, plan: Plan, parts: Sequence[Part]) -> None:
    if isinstance(plan, DrawnPlan):
        write(folder / "plan.npz", {"scheme": plan.scheme, "recipe": plan.recipe}, {"numbers": plan.numbers})
    else:
        arrays = {"train": plan.train, "test": plan.test}
        arrays |= {f"label/{name}": label for name, label in plan.labels.items()}
        arrays |= {f"case/{name}": label for name, label in plan.cases.items()}
        write(folder / "plan.npz", {"scheme": plan.scheme}, arrays)
    said = {
        "format": _FORMAT,
        "asked": dict(asked),
        "heading": heading._asdict(),
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
        "parts": [part[1:] for part in parts],
    }
    (folder / "run.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


def _refuse_other(run: StoredRun, asked: Asked) -> None:
    """ValueError with the first line in which two questions differ."""
    before, now = json.loads(json.dumps(run.asked)), json.loads(json.dumps(dict(asked)))
    for name in (*now, *(set(before) - set(now))):
        if before.get(name) != now.get(name):
            raise ValueError(
                f"expected the same question as that of the run in {run.folder}, got another {name}: "
                f"{shown(now.get(name))} instead of {shown(before.get(name))}; choose another folder, or ask the same"
            )


def _identity(asked: Asked) -> str:
    return hashlib.sha256(json.dumps(dict(asked), sort_keys=True).encode()).hexdigest()
