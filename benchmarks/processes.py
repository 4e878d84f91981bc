"""Executors whose workers have a core each, for `scale.py`."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def executor_of(asked):
    """The executor that is asked for, or None; "cores" holds this process to so many."""
    cores = sorted(os.sched_getaffinity(0))
    if "pool" in asked:
        taken = multiprocessing.get_context("spawn").Value("i", 0)
        settings = {"initializer": take_a_core, "initargs": (taken, cores)}
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(asked["pool"], context, **settings) as pool:
            yield pool
    elif "dask" in asked:
        from distributed import Client, LocalCluster

        settings: dict[str, Any] = {"n_workers": asked["dask"], "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**settings, processes=True, silence_logs=50) as cluster, Client(cluster) as opened:
            client: Any = opened
            for core, worker in zip(cores, client.nthreads(), strict=False):
                client.run(os.sched_setaffinity, 0, {core}, workers=[worker])
            yield client
    else:
        if "cores" in asked:
            os.sched_setaffinity(0, set(cores[: asked["cores"]]))
        yield None


def take_a_core(taken, cores):
    """Holds a process of a pool to a core that no other has."""
    with taken.get_lock():
        os.sched_setaffinity(0, {cores[taken.value % len(cores)]})
        taken.value += 1
