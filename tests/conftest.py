"""Strict settings for every test: no implicit rank or type promotion, in 32 and in 64 bits."""

import os

import jax
import jaxtyping
import numpy as np
import pytest

from jaxgen.engine import program

os.environ.setdefault("MPLBACKEND", "Agg")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_enable_compilation_cache", False)  # tests leave the user's folders alone


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
    """Most files compile in a third of the time without XLA's optimisations; the engine, the learners and Neal's
    numbers are tested with them.

    Programs are dropped after each file: some thousands of them exceed the memory maps that Linux allows a process.
    """
    optimised = request.module.__name__.rpartition(".")[2] in ("test_assess", "test_neal", "test_documents")
    jax.config.update("jax_disable_most_optimizations", not optimised)
    yield
    program.forget()
    jax.clear_caches()
