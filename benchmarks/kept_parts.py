"""Parts of a long benchmark, each kept when it is done, so that a run that was stopped goes on where it was."""

import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / ".cache" / "benchmarks"


def kept_part(name: str, compute: Callable[[], Any], resume: bool) -> tuple[Any, float]:
    """What `compute` returns, and the minutes that it took; both from an earlier run that is resumed, where that got so
    far.

    The name tells all that the part depends on but the code. Who changes the code must start anew, without resuming;
    what is taken from an earlier run is printed with its time.
    """
    file = FOLDER / f"{name}.pickle"
    if resume and file.exists():
        print(f"{name}: taken from the run of {time.ctime(file.stat().st_mtime)}", flush=True)
        return pickle.loads(file.read_bytes())
    begun = time.perf_counter()
    found = compute()
    kept = found, (time.perf_counter() - begun) / 60
    FOLDER.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_bytes(pickle.dumps(kept))
    os.replace(partial, file)
    return kept
