"""The scripts in `benchmarks/`, run small as anybody can run them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


def quick(name):
    """What a script prints with --quick, which writes no result."""
    results = BENCHMARKS / "results"
    before = {path: path.stat().st_mtime_ns for path in results.iterdir()}
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / name), "--quick"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_mtime_ns for path in results.iterdir()} == before
    return done.stdout
