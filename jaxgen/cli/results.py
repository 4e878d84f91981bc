"""The folder that a run of `jaxgen assess` fills: a run for each learner, which the same command goes on with, and what
they show.

    DIR/manifest.json     what was asked, and the learners by their numbers
    DIR/experiment.toml   the options, which do the same again
    DIR/1, DIR/2, ...     the run of each learner, as `jaxgen.store` keeps it
    DIR/report.html, report.txt, summary.csv, distribution.png; of two classes also roc.png, precision_recall.png
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jaxgen import store
from jaxgen.cli.streams import complain, in_words
from jaxgen.types import Losses
from jaxgen.types.numbers import shown

_MANIFEST = "manifest.json"
CONFIG = "experiment.toml"
"""The options that do the same again."""


def labels_of(texts: Sequence[str]) -> list[str]:
    """What learners that were given as these texts are called: by their word, such as linear; empty for those given as
    code.
    """
    return [text.strip() if text.strip().isidentifier() else "" for text in texts]


class Results:
    """The losses of the learners of one command, in memory and in a folder.

    Where the folder can no longer be written (a full disk, a folder that is gone), all goes to a new one among the
    temporary files, or else in the working folder.

    Attributes:
      folder: where the results are; None once they can be written nowhere.
      losses: of the learners that were trained, by their number from 1.
      complete: whether all was written that should be.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any], learners: Sequence[str], go_on: bool, config: str = ""):
        """Claims a new folder, or goes on with one of the same command.

        Args:
          folder: its path.
          about: what the manifest says of the command, beside the learners.
          learners: their names, in order.
          go_on: whether it may be there.
          config: the TOML file that does the same again.
        Raises:
          ValueError: the folder is that of another command.
          OSError: it cannot be made or written.
        """
        self.losses: dict[int, Losses] = {}
        self.complete = True
        self._runs: dict[int, store.StoredRun] = {}
        self._claimed = folder
        self._others = [Path(tempfile.gettempdir()), Path()]
        self._config = config
        self._about = {**about, "jaxgen": version("jaxgen")}
        self._missing: dict[str, str] = {}
        self._new = not (go_on and (folder / _MANIFEST).exists())
        if self._new:
            store.claim_folder(folder)
        else:
            self._refuse_other(folder, learners)
        self.folder: Path | None = folder
        if self._new:
            self._write_manifest(folder)

    def train(self, number: int, trained: Callable[[Path | None], Losses]) -> None:
        """Keeps the run of a learner, losses [R, N], and names it in the manifest.

        Args:
          number: of the learner, from 1.
          trained: what trains it into the folder of a run, or into memory only if it gets None. Where that folder
            cannot be written it is called again with one elsewhere, in which are the parts that are done.
        """
        while self.folder is not None:
            try:
                self.losses[number] = trained(self.folder / str(number))
                self._runs[number] = store.open(self.folder / str(number))
                break
            except OSError as trouble:
                self.losses.pop(number, None)
                self.complete = False
                complain(in_words(trouble))
                self._move()
        else:
            self.losses[number] = trained(None)
        self.save()

    def miss(self, learner: str, reason: str) -> None:
        """Names in the manifest a learner that has no losses, and why."""
        self._missing[learner] = reason
        self.save()

    def save(self) -> None:
        """Saves the runs that are not in the folder, and the manifest."""
        self.write(self._save_in)

    @contextmanager
    def sparing(self, what: str) -> Iterator[None]:
        """Goes on without something that cannot be made, and says so: no table or figure is worth the losses."""
        try:
            yield
        except Exception as trouble:  # of numbers that nobody foresaw
            self.complete = False
            complain(f"no {what}: {in_words(trouble)}")

    def write(self, write: Callable[[Path], object]) -> None:
        """Writes to the folder, or to the first other place that takes it and all losses."""
        while self.folder is not None:
            try:
                write(self.folder)
                return
            except OSError as trouble:
                self.complete = False
                complain(in_words(trouble))
                self._move()

    def discard_if_empty(self) -> bool:
        """Removes the folder if this command made it and no part of a run is in it; whether none is."""
        empty = not self.losses and (self.folder is None or not any(self.folder.glob("*/part-*.npz")))
        if empty and self._new and self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        return empty

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps other commands from the folder.

        Raises:
          RuntimeError: another one works there.
        """
        with store.held(self._claimed, "expected results that no other command works at"):
            try:
                yield
            finally:
                with suppress(OSError):
                    (self._claimed / "lock").unlink(missing_ok=True)

    def __str__(self) -> str:
        """Where the results are, and which."""
        if self.folder is None:
            return f"not all could be saved; what could is in {self._claimed}{os.sep}"
        names = sorted(path.name for path in self.folder.iterdir() if path.name != "lock")
        return f"saved in {self.folder}{os.sep}: {', '.join(names)}"

    def _refuse_other(self, folder: Path, learners: Sequence[str]) -> None:
        try:
            before = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = None
        if not isinstance(before, dict):
            raise ValueError(
                f"expected a new folder for the results, or one to go on with, got {folder}, whose {_MANIFEST} is "
                "damaged; choose another with --out"
            )
        pairs = [(name, before.get(name), now) for name, now in self._about.items()]
        for number, learner in enumerate(learners, 1):
            with suppress(OSError, ValueError):  # no such run yet, or a damaged one, which is said when it is read
                pairs.append((f"learner {number}", store.open(folder / str(number)).heading.learner, learner))
        for name, then, now in pairs:
            if then != now:
                raise ValueError(
                    f"expected the same command as that of the results in {folder}, got another {name}: {shown(now)} "
                    f"instead of {shown(then)}; choose another folder with --out"
                )

    def _move(self) -> None:
        """Goes on in a new folder elsewhere, with all that is done in it."""
        before, self.folder = self.folder, None
        if before is not None and before != self._claimed and not any(before.glob("*/part-*.npz")):
            shutil.rmtree(before, ignore_errors=True)  # made by an earlier move, for nothing
        while self._others and self.folder is None:
            place, folder = self._others.pop(0), None
            try:
                folder = Path(tempfile.mkdtemp(prefix="jaxgen-", dir=place))
                if before is not None:
                    _copy_runs(before, folder)
                self._save_in(folder)
                self.folder, self._new = folder, True
                complain(f"the results go to {folder} instead")
            except OSError as trouble:
                complain(in_words(trouble))
                if folder is not None:
                    shutil.rmtree(folder, ignore_errors=True)

    def _save_in(self, folder: Path) -> None:
        for number, losses in self.losses.items():
            run = self._runs.get(number)
            if run is not None and not (folder / str(number) / "run.json").exists():
                store.put(folder / str(number), run.asked, run.heading, losses)
        self._write_manifest(folder)

    def _write_manifest(self, folder: Path) -> None:
        learners = {str(number): losses.learner for number, losses in sorted(self.losses.items())}
        manifest = {**self._about, "learners": learners} | ({"missing": self._missing} if self._missing else {})
        for name, text in ((CONFIG, self._config), (_MANIFEST, json.dumps(manifest, indent=2) + "\n")):
            partial = folder / f"{name}.partial"  # takes its name only when complete
            partial.write_text(text, encoding="utf-8")
            partial.replace(folder / name)


def _copy_runs(before: Path, folder: Path) -> None:
    """Copies the runs of a folder, as far as they can be read, to another; what is not whole is left out."""
    for run in before.glob("*/run.json"):
        with suppress(shutil.Error):
            shutil.copytree(run.parent, folder / run.parent.name, ignore=shutil.ignore_patterns("*.partial", "lock"))
