"""Strict settings for every test: no implicit rank or type promotion, in 32 and in 64 bits; and programs that are
compiled once for all tests, workers and calls.
"""

import os
from pathlib import Path

import jax
import jaxtyping
import numpy as np
import pytest

from jaxgen.engine import program

os.environ.setdefault("MPLBACKEND", "Agg")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
KEPT = {
    "jax_compilation_cache_dir": str(Path(__file__).parents[1] / ".cache" / "tests"),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}
"""Tests leave the user's folders alone: all that they compile, and that programs do which they start, is kept here."""
for name, value in KEPT.items():
    jax.config.update(name, value)
    os.environ[name.upper()] = str(value)

OPTIMISED = ("test_assess", "test_documents", "test_neal", "test_simulate_arms", "test_simulate_bank")
"""Files whose programs are compiled with XLA's optimisations: what users see first, and simulations of thousands of
cases. The others compile in a third of the time without.
"""
MAPS = Path("/proc/self/maps")
MOST_MAPS = 20_000
"""Programs are dropped when the process has more memory maps than that. Linux allows 65,530, a program takes up to 500.
"""
now = {"programs": 0, "plain": False}
"""Programs compiled since the maps were last counted; and whether they are compiled without optimisations."""


def pytest_configure(config):
    jax.monitoring.register_event_duration_secs_listener(count)


def count(event, duration, **details):
    now["programs"] += event == "/jax/core/compile/backend_compile_duration"


def drop_programs():
    program.forget()
    jax.clear_caches()


@pytest.fixture(params=[32, 64], ids=["32bit", "64bit"])
def dtype(request):
    """Runs a test in both precisions; the floating type that fits then have."""
    with jax.enable_x64(request.param == 64):
        yield np.dtype(f"float{request.param}")


@pytest.fixture
def own_messages():
    """Turns the enforcement of annotations off, which would speak before the messages of the package."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module", autouse=True)
def compiled_for_this_file(request):
    """Programs of one file serve the next, unless it compiles them otherwise."""
    plain = request.module.__name__.rpartition(".")[2] not in OPTIMISED
    if now["plain"] != plain:
        drop_programs()
        jax.config.update("jax_disable_most_optimizations", plain)
        now["plain"] = plain


@pytest.fixture(autouse=True)
def few_programs():
    """Files take turns in a worker, so programs are dropped by what they take, not by file."""
    yield
    if now["programs"] >= 40:
        now["programs"] = 0
        if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
            drop_programs()
