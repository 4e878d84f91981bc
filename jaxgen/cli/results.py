"""The folder that a run of `jaxgen assess` fills: what was computed is written as soon as it is there."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jaxgen import store
from jaxgen.cli.streams import complain, in_words
from jaxgen.types import Losses


class Results:
    """The losses of the learners of one run, in memory and in a folder.

    Where the folder can no longer be written (a full disk, a folder that is gone), all goes to a new one among the
    temporary files, or else in the working folder.

    Attributes:
      folder: where the results are; None once they can be written nowhere.
      losses: of the learners that were trained, by their number from 1.
      complete: whether all was written that should be.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]):
        """Claims a new folder; OSError if it cannot be made or written.

        Args:
          folder: its path.
          about: what the manifest says of the run, beside the learners.
        """
        self.folder: Path | None = store.claim_folder(folder)
        self.losses: dict[int, Losses] = {}
        self.complete = True
        self._claimed = folder
        self._others = [Path(tempfile.gettempdir()), Path()]
        self._about = {**about, "jaxgen": version("jaxgen")}
        self._missing: dict[str, str] = {}

    def keep(self, number: int, losses: Losses) -> None:
        """Saves what a learner did, losses [R, N], and names it in the manifest."""
        self.losses[number] = losses
        self.save()

    def miss(self, learner: str, reason: str) -> None:
        """Names in the manifest a learner that has no losses, and why."""
        self._missing[learner] = reason
        self.save()

    def save(self) -> None:
        """Saves the losses that are not saved yet, and the manifest."""
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

    def discard(self) -> None:
        """Removes the folder."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def discard_if_empty(self) -> bool:
        """Removes the folder if no learner came to an end; whether it did."""
        if not self.losses:
            self.discard()
        return not self.losses

    def __str__(self) -> str:
        """Where the results are, and which."""
        if self.folder is None:
            return f"not all could be saved; what could is in {self._claimed}{os.sep}"
        return f"saved in {self.folder}{os.sep}: {', '.join(sorted(path.name for path in self.folder.iterdir()))}"

    def _move(self) -> None:
        """Goes on in a new folder elsewhere, with all losses in it."""
        self.folder = None
        while self._others and self.folder is None:
            place, folder = self._others.pop(0), None
            try:
                folder = Path(tempfile.mkdtemp(prefix="jaxgen-", dir=place))
                self._save_in(folder)
                self.folder = folder
                complain(f"the results go to {folder} instead")
            except OSError as trouble:
                complain(in_words(trouble))
                if folder is not None:
                    shutil.rmtree(folder, ignore_errors=True)

    def _save_in(self, folder: Path) -> None:
        for number, losses in self.losses.items():
            if not (folder / _name(number)).exists():
                store.save(losses, folder / _name(number))
        learners = {_name(number): losses.learner for number, losses in sorted(self.losses.items())}
        manifest = {**self._about, "learners": learners} | ({"missing": self._missing} if self._missing else {})
        partial = folder / "manifest.partial"  # takes its name only when complete
        partial.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        partial.replace(folder / "manifest.json")


def _name(number: int) -> str:
    return f"losses-{number}.npz"
