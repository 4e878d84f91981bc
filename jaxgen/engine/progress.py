"""How far a run is: a bar on a terminal, a line now and then elsewhere."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

LINE_SECONDS = 10.0
"""Between two lines of progress where there is no terminal."""


class _Lines:
    """Where there is no terminal: each state of a progress bar as a line of its own."""

    def write(self, text: str) -> None:
        """One state, without what moves the cursor."""
        line = text.strip("\r\n ")
        if line:
            sys.stderr.write(f"{line}\n")

    def flush(self) -> None:
        """At once."""
        sys.stderr.flush()


@contextmanager
def progress_bar(trainings: int, name: str, progress: bool | None) -> Generator[Callable[[int], Any]]:
    """A function that is told how many more trainings are done, and shows it beside the name of the learner."""
    elsewhere = {} if sys.stderr.isatty() else {"file": _Lines(), "mininterval": LINE_SECONDS, "ascii": True}
    with tqdm(
        total=trainings,
        unit=" trainings",
        desc=name if len(name) <= 40 else name[:39] + "…",
        disable=(progress is None and bool(elsewhere)) or progress is False,
        delay=0.5,
        **elsewhere,
    ) as bar:
        yield bar.update
