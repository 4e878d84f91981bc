"""Long runs in parts: rows per second from beginning to end, memory, and what more processes and devices bring.

    python benchmarks/scale.py           1,100,000 linear fits, 100,000 networks; writes results/scale.txt
    python benchmarks/scale.py --quick   a fiftieth of the rows; writes nothing

Every measurement is a process of its own, so that memory and compilation are its own too.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from quiet import Watch, publish
from speed import machine

LINEAR = {"learner": "linear", "rows": 1_000_000, "n": 100, "d": 10, "part": 20_000}
LAZY = {"learner": "linear", "rows": 100_000, "n": 10_000, "d": 10, "part": 5000, "lazy": True}
"""The weights of all its rows would take 2 GB."""
NETWORKS = {"learner": "network", "rows": 100_000, "n": 100, "d": 10, "part": 2000, "hidden": 20, "steps": 500}


def measured(**asked):
    """What a process of its own measured; see `measure`."""
    settings = {**os.environ}
    if asked.get("devices", 1) > 1:
        settings["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={asked['devices']}"
    command = [sys.executable, __file__, "--measure", json.dumps(asked)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=settings)
    return json.loads(ended.stdout.splitlines()[-1])


def measure(asked):
    """Runs what is asked; returns seconds, rows per second in the first, the middle and the last tenth of the parts,
    and resident memory then, in MiB.
    """
    import jax
    from processes import executor_of

    import jaxgen as jg
    from jaxgen import learn, resample, simulate

    learner = learn.LeastSquares()
    if asked["learner"] == "network":
        learner = learn.Descent(learn.MLP((asked["hidden"],)), rate=0.01, steps=asked["steps"])
    data = simulate.linear_ar(jax.random.key(0), None, n=asked["n"], d=asked["d"]).data
    lazy = asked.get("lazy", False)
    plan = resample.leave_out(jax.random.key(1), data.n, fraction=0.25, resamples=asked["rows"], lazy=lazy)
    seen = []
    with tempfile.TemporaryDirectory() as folder, executor_of(asked) as executor:
        warm = {"keep": "rows", "executor": executor, "part": asked["part"]}
        jg.assess(jax.random.key(2), learner, data, plan.rows(0, 4 * asked["part"]), **warm)
        begun = time.perf_counter()

        def watch():
            done = len(list(Path(folder, "run").glob("part-*.npz")))
            if done and (not seen or done > seen[-1][0]):
                seen.append((done, time.perf_counter() - begun, resident()))

        with every(0.02, watch):
            jg.assess(
                jax.random.key(2),
                learner,
                data,
                plan,
                store=Path(folder, "run"),
                **warm,
            )
        seconds = time.perf_counter() - begun
        watch()
    parts = seen[-1][0]
    tenth = max(1, parts // 10)
    bands = ((1, 1 + tenth), (parts // 2 - tenth // 2, parts // 2 - tenth // 2 + tenth), (parts - tenth, parts))
    rates, memory = [], []
    for first, last in bands:
        inside = [each for each in seen if first <= each[0] <= last]
        (done, start, _), (end, stop, size) = inside[0], inside[-1]
        rates.append((end - done) * asked["part"] / max(stop - start, 1e-9))
        memory.append(size)
    return {"seconds": seconds, "rates": rates, "memory": memory}


def resident():
    """Resident memory of this process, MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


class every:  # noqa: N801 (reads like a statement)
    """Calls something again and again in a thread while a block runs."""

    def __init__(self, seconds, function):
        import threading

        self.seconds, self.function, self.stop = seconds, function, threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.stop.wait(self.seconds):
            self.function()

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *error):
        self.stop.set()
        self.thread.join()


def long_runs(share):
    """Rows per second and memory from the first parts to the last."""
    lines = [
        "                                                 rows    minutes   rows/s: first   middle     last tenth   "
        "memory, MiB: first   middle     last"
    ]
    for name, asked in (
        ("least squares", LINEAR),
        ("least squares, lazy plan", LAZY),
        ("networks, 20 units, 500 epochs", NETWORKS),
    ):
        rows = asked["rows"] // share
        got = measured(**asked | {"rows": rows, "part": min(asked["part"], rows // 20)})
        what = f"{name}, N = {asked['n']}, D = 10"
        lines.append(
            f"{what:44s} {rows:9,d} {got['seconds'] / 60:10.2f} "
            + " ".join(f"{rate:14,.0f}" for rate in got["rates"])
            + " "
            + " ".join(f"{size:14,.0f}" for size in got["memory"])
        )
        print(lines[-1], flush=True)
    return lines


def per_row(share):
    """Microseconds a row against each size."""
    base = NETWORKS | {"rows": 8000 // share, "part": 1000, "steps": 200}
    changes = [{}]
    changes += [{"rows": 2 * base["rows"]}, {"n": 400}, {"d": 40}, {"hidden": 80}, {"steps": 800}]
    lines = [
        "networks: rows       N      D      H   steps    microseconds a row, and a row's time per case and step, ns"
    ]
    for change in changes:
        asked = base | change
        seconds = measured(**asked | {"part": asked["rows"] // 8})["seconds"] / asked["rows"]
        lines.append(
            f"{asked['rows']:14,d} {asked['n']:7d} {asked['d']:6d} {asked['hidden']:6d} {asked['steps']:7d} "
            f"{1e6 * seconds:12,.0f} {1e9 * seconds / asked['n'] / asked['steps']:12.1f}"
        )
        print(lines[-1], flush=True)
    return lines


def workers(share):
    """What more processes, Dask's workers and devices bring."""
    base = NETWORKS | {"rows": 24_000 // share, "part": 1000 // min(share, 10), "steps": 200}
    lines = ["networks, 24,000 rows, 200 epochs                             seconds   efficiency"]
    groups = (
        ("one core", [("this process", {"cores": 1}), ("this process, two cores", {"cores": 2})]),
        ("pool", [("1 spawned process, one core", {"pool": 1}), ("2 spawned processes, one core each", {"pool": 2})]),
        ("dask", [("1 worker of Dask, one core", {"dask": 1}), ("2 workers of Dask, one core each", {"dask": 2})]),
        ("devices", [(f"{k} device{'s' * (k > 1)} of a CPU, two cores", {"devices": k}) for k in (1, 2, 4, 8)]),
    )
    for group, ways in groups:
        first = None
        for name, way in ways:
            seconds = measured(**base | way)["seconds"]
            first = first or seconds
            more = 1 if group == "devices" else len(ways) if name == ways[-1][0] else 1
            lines.append(f"{name:60s} {seconds:9.2f} {first / seconds / more:11.0%}")
            print(lines[-1], flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the rows; writes nothing")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(json.loads(chosen.measure))))
        return
    share, watch = 50 if chosen.quick else 1, Watch()
    lines = [machine(), "", *long_runs(share)]
    watch.look()
    lines += ["", *per_row(share)]
    watch.look()
    lines += ["", *workers(share)]
    lines[1:1] = [watch.line()]
    if share == 1:
        publish("scale.txt", "\n".join(lines))


if __name__ == "__main__":
    main()
