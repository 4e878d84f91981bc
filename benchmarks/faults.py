"""Kills, full disks and damaged files: whether a run in parts ends with the losses of one that nothing happened to.

    python benchmarks/faults.py             100 kills -9 at random moments, 25 of each kind of process, and every damage
    python benchmarks/faults.py --kills 5   fewer; writes nothing

Writes results/faults.txt. Needs `jaxgen[dask]`; the small file system needs the right to mount one.
"""

import argparse
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
from distributed import Client, LocalCluster
from quiet import publish
from speed import machine

import jaxgen as jg
from jaxgen import learn, loss, resample, simulate, store

ROWS, PART = 20_000, 20
LEARNER = learn.Normalised(learn.Descent(learn.MLP((20,)), rate=0.01, steps=200))
"""Steps so short that rounding does not grow."""

SCRIPT = """
import sys
from distributed import Client
sys.path.insert(0, {here!r})
import faults
faults.ask(sys.argv[1], Client(sys.argv[2]) if len(sys.argv) > 2 else None)
"""


def ask(folder=None, executor=None, learner: Any = LEARNER, **more):
    """The run that all is about."""
    data = simulate.linear_ar(jax.random.key(0), None, n=60, d=5).data
    plan = resample.leave_out(jax.random.key(1), data.n, fraction=0.25, resamples=ROWS)
    return jg.assess(
        jax.random.key(2), learner, data, plan, store=folder, executor=executor, part=PART, progress=False, **more
    )


def published(folder: Path) -> dict[str, tuple[int, int]]:
    """The parts that are there: a file that was computed and written again would be another."""
    return {file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in folder.glob("part-*.npz")}


class Kept:
    """Watches that no part that is done is lost or computed again."""

    def __init__(self, folder: Path):
        self.folders, self.known = [folder], {}
        self.violations = self.kills = 0

    @property
    def folder(self) -> Path:
        """That of the present run."""
        return self.folders[-1]

    def anew(self):
        """Goes on with another run."""
        first = self.folders[0]
        self.look()
        self.folders.append(first.with_name(f"{first.name}-{len(self.folders)}"))
        self.known = {}

    def look(self):
        """Compares what is there with what was."""
        now = published(self.folder)
        self.violations += sum(now.get(name) != mark for name, mark in self.known.items())
        self.known = now

    @property
    def done(self) -> int:
        """Parts that are there."""
        return len(list(self.folder.glob("part-*.npz")))


def of_one_process(kept: Kept, kills: int, random) -> None:
    """A process that computes alone is killed, and the same call made again."""
    code = SCRIPT.format(here=str(Path(__file__).parent))
    killed_scripts(kept, kills, random, [sys.executable, "-c", code, str(kept.folder)])


def of_a_worker_of_a_pool(kept: Kept, kills: int, random) -> None:
    """One of two spawned processes is killed, the call ends with a sentence, and is made again."""
    for _ in range(kills):
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:

            def kill(pool=pool, before=kept.done):
                while kept.done <= before + 1:
                    time.sleep(0.01)
                time.sleep(random.uniform(0, 1))
                os.kill(random.choice(list(pool._processes)), signal.SIGKILL)

            killer = threading.Thread(target=kill, daemon=True)
            killer.start()
            try:
                ask(kept.folder, pool)
                return  # done before the blow
            except RuntimeError as error:
                if "goes on" not in str(error):
                    raise
                kept.kills += 1
        kept.look()


def of_a_worker_of_dask(kept: Kept, kills: int, random) -> None:
    """Workers of a cluster are killed while a call goes on; Dask starts others and gives them the parts. A call that
    ends before there were enough kills is followed by another with a new folder and a cluster of its own, since on a
    busy machine Dask does not start every worker again.
    """
    while True:
        with cluster() as workers, Client(workers) as client:
            stop = threading.Event()
            killer = threading.Thread(target=kill_workers, args=(kept, kills, random, workers, client, stop))
            killer.start()
            ask(kept.folder, client)
            stop.set()
            killer.join()
        if kept.kills >= kills:
            return
        kept.anew()


def kill_workers(kept: Kept, kills: int, random, workers: Any, client: Any, stop: threading.Event) -> None:
    """Kills one worker of two at random moments, as often as is wanted, until the call ends."""
    while kept.kills < kills and not stop.wait(random.uniform(0, 1)):
        if len(client.nthreads()) == 2:  # a worker killed before it is up is not started again by Dask
            worker = workers.workers[random.choice(list(workers.workers))]
            os.kill(worker.pid, signal.SIGKILL)
            kept.kills += 1
            kept.look()
            while len(client.nthreads()) == 2 and not stop.wait(0.01):
                pass


def of_the_client_of_dask(kept: Kept, kills: int, random) -> None:
    """The process that asks is killed; the workers stay, and another asks the same."""
    with cluster() as workers:
        code = SCRIPT.format(here=str(Path(__file__).parent))
        command = [sys.executable, "-c", code, str(kept.folder), workers.scheduler_address]
        killed_scripts(kept, kills, random, command)


def cluster() -> Any:
    """Two workers as processes of this machine."""
    settings: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    return LocalCluster(**settings, processes=True, silence_logs=50)


def killed_scripts(kept: Kept, kills: int, random, command: list[str]) -> None:
    """Starts a process again and again, and kills it after its first new parts."""
    for _ in range(kills):
        before = kept.done
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while process.poll() is None and kept.done <= before:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.5))
        if process.poll() is not None:
            return
        process.kill()
        process.wait()
        kept.kills += 1
        kept.look()


def killed(kills: int, whole: jg.Losses, folder: Path) -> list[str]:
    """A line for each kind of process that is killed."""
    kinds: dict[str, Callable[[Kept, int, np.random.Generator], None]] = {
        "a process alone": of_one_process,
        "a worker of a pool of two processes": of_a_worker_of_a_pool,
        "a worker of Dask": of_a_worker_of_dask,
        "the client of Dask": of_the_client_of_dask,
    }
    lines = [f"{'killed with -9':36s} kills  parts lost or done twice  largest difference of G  minutes"]
    for number, (name, kind) in enumerate(kinds.items()):
        begun, kept = time.perf_counter(), Kept(folder / str(number))
        kind(kept, kills, np.random.default_rng(number))
        kept.look()
        apart = max(np.max(np.abs(ask(each).g / whole.g - 1)) for each in kept.folders)
        kept.look()
        minutes = (time.perf_counter() - begun) / 60
        lines.append(f"{name:36s} {kept.kills:5d}  {kept.violations:24d}  {apart:23.1e}  {minutes:7.1f}")
        print(lines[-1], flush=True)
    return lines


def damaged(whole: jg.Losses, folder: Path) -> list[str]:
    """A line for each thing that can happen to a folder: what was said, and whether the losses are right after it."""
    lines = [f"{'what happened':30s} said, and the same losses afterwards"]
    base = folder / "base"
    ask(base)

    def tried(name, change, again=ask):
        place = folder / name.replace(" ", "_")
        shutil.copytree(base, place)
        change(place)
        said = []
        try:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                losses = again(place)
            said += [str(each.message) for each in heard]
        except (ValueError, OSError, RuntimeError) as error:
            said.append(str(error))
            losses = ask(place)
        right = np.allclose(losses.g, whole.g, rtol=1e-4)
        text = "; ".join(said).replace(str(folder), "DIR") or "nothing"
        lines.append(f"{name:30s} {text}: {'the same losses' if right else 'OTHER LOSSES'}")
        print(lines[-1], flush=True)

    part = "part-00007.npz"
    tried("a truncated part", lambda place: (place / part).write_bytes((place / part).read_bytes()[:999]))
    tried("a flipped bit", lambda place: flip(place / part))
    tried("a missing part", lambda place: (place / part).unlink())
    tried("a part of another run", lambda place: of_another_run(place / part, folder))
    tried("another learner", lambda place: None, lambda place: ask(place, learner=learn.Mean()))
    tried("a loss of the same name", lambda place: None, with_another_loss)
    tried("two processes at once", lambda place: None, while_another_works)
    for name, said in (("a full disk", on_a_full_disk(folder, whole)), ("a read-only folder", read_only(base, whole))):
        lines.append(f"{name:30s} {said}")
        print(lines[-1], flush=True)
    return lines


def flip(file: Path) -> None:
    """Changes a bit in the middle of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def of_another_run(file: Path, folder: Path) -> None:
    """Puts a whole part of another run in the place of a part."""
    other = folder / "other"
    ask(other, learner=learn.Mean())
    shutil.copy(other / file.name, file)


def with_another_loss(place: Path) -> jg.Losses:
    """Asks with two functions of one name, one after the other."""

    def made(power):
        def error(y, prediction):
            return loss.squared(y, prediction) ** power

        return error

    fresh = place.with_name("own_loss")
    ask(fresh, loss=made(1.0))
    return ask(fresh, loss=made(0.5))


def while_another_works(place: Path) -> jg.Losses:
    """Asks while another process has the run."""
    with store.open(place).held():
        return ask(place)


def on_a_full_disk(folder: Path, whole: jg.Losses) -> str:
    """Asks with a store on a file system that is too small, then enlarges it."""
    place = folder / "small"
    if not mounted(place, "size=1m"):
        return "not tried: mounting a small file system is not allowed here"
    try:
        return refused_then_mended(place, whole, "size=100m")
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def read_only(base: Path, whole: jg.Losses) -> str:
    """Asks for what is missing of a run on a file system that may not be written, then makes it writable."""
    place = base.with_name("locked")
    if not mounted(place, "size=100m"):
        return "not tried: mounting a file system is not allowed here"
    try:
        shutil.copytree(base, place / "run")
        for file in sorted((place / "run").glob("part-*.npz"))[80:]:
            file.unlink()
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        return refused_then_mended(place, whole, "rw")
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def mounted(place: Path, options: str) -> bool:
    """Whether a file system of its own could be made in a new folder."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def refused_then_mended(place: Path, whole: jg.Losses, remedy: str) -> str:
    """What was said of a place that cannot be written, and whether the losses are right once it can."""
    try:
        ask(place / "run")
        return "WRITTEN ALL THE SAME"
    except OSError as error:
        said = str(error).replace(str(place.parent), "DIR")
    done = store.open(place / "run").state().done
    subprocess.run(["mount", "-o", f"remount,{remedy}", str(place)], check=True)
    right = np.allclose(ask(place / "run").g, whole.g, rtol=1e-4)
    return f"{said} ({done} parts kept): {'the same losses' if right else 'OTHER LOSSES'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=25, help="of each kind of process (default: 25)")
    chosen = parser.parse_args()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder, whole = Path(name), ask()
        lines = [
            machine(),
            "",
            f"One run of {ROWS} networks in {ROWS // PART} parts; G of the run that nothing happened to is the truth. "
            "A difference of 1e-4 is",
            "that of 200 steps in single precision whose sums were made in another order.",
            "",
            *killed(chosen.kills, whole, folder),
            "",
            *damaged(whole, folder),
        ]
    lines.append(f"\n{(time.perf_counter() - begun) / 60:.1f} minutes")
    if chosen.kills == parser.get_default("kills"):
        publish("faults.txt", "\n".join(lines))


if __name__ == "__main__":
    main()
