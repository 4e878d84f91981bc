"""Compiled programs in a folder of jaxgen's own: read, damaged, too many, not writable, and never another's."""

import os
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from jaxgen import assess, learn, resample, simulate
from jaxgen.engine import kept, needs, program

KEY = jax.random.key(0)
DATA = simulate.linear_ar(jax.random.key(1), 1, 20, 3).data
ON_CPU = jax.default_backend() == "cpu"
PLAN = resample.k_fold(jax.random.key(2), 20, folds=5, repeats=2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Programs are kept here, however fast they were compiled, and forgotten by this process after each call."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kept, "_WORTH_KEEPING", 0.0)
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    compilation_cache.reset_cache()
    program.forget()
    yield tmp_path / "jaxgen"
    program.forget()
    jax.config.update("jax_compilation_cache_dir", before)
    compilation_cache.reset_cache()


MEAN = learn.Mean()


def losses(learner=MEAN):
    program.forget()
    return assess(KEY, learner, DATA, PLAN).values


def calls(monkeypatch, module, name):
    """What a function of a module is called with from here on."""
    made, function = [], getattr(module, name)

    def noted(*args):
        made.append(args)
        return function(*args)

    monkeypatch.setattr(module, name, noted)
    return made


class Own(learn.Learner):
    """The mean of the targets plus a number, which is not the package's code."""

    shift = 1.0

    def fit(self, key, x, y, w):
        return w @ y / w.sum() + self.shift

    def predict(self, params, x):
        return params[None] + 0 * x[:, :1]


@pytest.mark.devices
@pytest.mark.parametrize(
    "learner",
    [learn.LeastSquares(), learn.Normalised(learn.Descent(learn.MLP((2,)), 3, optimiser=learn.Optax("sgd", 0.1)))],
    ids=["least squares", "network"],
)
def test_a_program_is_traced_and_compiled_once_for_all_processes(learner, folder, monkeypatch):
    """On as many devices as there are; the numbers are the same to the last bit."""
    traced, compiled = calls(monkeypatch, needs, "_traced"), calls(monkeypatch, program, "_compile")
    first = losses(learner)
    assert len(list(folder.glob("*.program"))) == len(compiled) > 0
    times = len(traced), len(compiled)
    monkeypatch.setattr(jax, "jit", None)
    np.testing.assert_array_equal(losses(learner), first)
    assert (len(traced), len(compiled)) == times


def test_a_program_in_pieces_gives_the_same_and_is_kept(folder, monkeypatch):
    """Up to rounding, since other code is optimised: 1e-4 of the largest loss; and to the last bit from its file."""
    network = learn.Normalised(learn.Descent(learn.MLP((2,)), 20, optimiser=learn.Optax("sgd", 0.1)))
    whole = losses(network)
    for file in folder.glob("*.program"):
        file.unlink()
    monkeypatch.setattr(program, "_LITTLE", 0.0)
    compiled, pieces = calls(monkeypatch, program, "_compile"), 1 if len(jax.devices()) > 1 or not ON_CPU else 3
    divided = losses(network)
    assert len(compiled) == pieces
    np.testing.assert_allclose(divided, whole, rtol=0, atol=1e-4 * whole.max())
    np.testing.assert_array_equal(losses(network), divided)
    assert len(compiled) == pieces


def test_programs_are_dropped_before_they_take_all_memory_maps(folder, monkeypatch):
    """A process that compiles hundreds of them was ended by LLVM: "unable to allocate section memory"."""
    if not program._MAPS.exists():
        pytest.skip("this system does not count memory maps")
    first = losses(learn.LeastSquares())
    assess(KEY, MEAN, DATA, PLAN)
    assert program._compiled.cache_info().currsize == 2
    monkeypatch.setattr(program, "_SHARE_OF_MAPS", 0.0)
    assess(KEY, learn.Neighbours(3), DATA, PLAN)
    assert program._compiled.cache_info().currsize == 1
    np.testing.assert_array_equal(losses(learn.LeastSquares()), first)


def test_a_program_of_code_that_may_change_is_known_by_what_it_is_traced_to(folder, monkeypatch):
    first, traced, compiled = (
        losses(Own()),
        calls(monkeypatch, needs, "_traced"),
        calls(monkeypatch, program, "_compile"),
    )
    np.testing.assert_array_equal(losses(Own()), first)
    assert (len(traced), len(compiled)) == (1, 0)
    monkeypatch.setattr(Own, "shift", 2.0)
    assert not np.allclose(losses(Own()), first)
    assert (len(traced), len(compiled)) == (2, 1)
    assert not list(folder.glob("*.facts"))


BY_SINGULAR_VALUES = """
import jax, jaxgen as jg
from jaxgen import learn, resample, simulate
data = simulate.linear_ar(jax.random.key(1), 1, 20, 3).data
plan = resample.k_fold(jax.random.key(2), 20, folds=5, repeats=2)
print(jg.assess(jax.random.key(0), learn.Ridge(), data, plan).values.sum())
"""


@pytest.mark.slow
def test_a_program_that_calls_lapack_runs_in_another_process(tmp_path):
    """Which has not lowered any before."""
    environment = {name: value for name, value in os.environ.items() if "COMPILATION_CACHE" not in name}
    environment |= {"XDG_CACHE_HOME": str(tmp_path)}
    call = [sys.executable, "-c", BY_SINGULAR_VALUES]
    printed = [subprocess.run(call, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    assert printed[0].stdout == printed[1].stdout != ""


def test_a_program_that_calls_lapack_is_lowered_in_every_process(folder, monkeypatch):
    """Lowering is what makes JAX load LAPACK."""
    compiled, contents, file_of = calls(monkeypatch, program, "_compile"), [], kept.file_of
    monkeypatch.setattr(kept, "file_of", lambda content, *rest: contents.append(content) or file_of(content, *rest))
    learner = learn.Ridge()
    np.testing.assert_array_equal(losses(learner), losses(learner))
    assert len(compiled) == 1
    assert sum("custom_call @lapack" in content for content in contents) == 2


def test_programs_of_other_code_of_the_package_are_not_read(folder, monkeypatch):
    losses()
    compiled = calls(monkeypatch, program, "_compile")
    losses()
    assert not compiled
    monkeypatch.setattr(kept, "_versions", lambda: ("an edited package",))
    losses()
    assert len(compiled) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"3", b'{"row_bytes": 1}', b'{"info": {"a": [[2], "no type"]}}'])
def test_damaged_facts_are_found_again(content, folder, monkeypatch):
    want, traced = losses(), calls(monkeypatch, needs, "_traced")
    (file,) = folder.glob("*.facts")
    file.write_bytes(content)
    np.testing.assert_array_equal(losses(), want)
    assert len(traced) == 1
    np.testing.assert_array_equal(losses(), want)
    assert len(traced) == 1


def test_other_programs_and_other_settings_are_other_files(folder):
    for learner in (learn.Mean(), learn.LeastSquares(), learn.LeastSquares(ridge=1.0)):
        losses(learner)
    assert len(list(folder.glob("*.program"))) == 3
    with jax.default_matmul_precision("float32"):
        losses()
    assert len(list(folder.glob("*.program"))) == 4


def test_a_damaged_program_is_compiled_again(folder, monkeypatch):
    want, compiled = losses(), calls(monkeypatch, program, "_compile")
    (file,) = folder.glob("*.program")
    whole = file.stat().st_size
    file.write_bytes(file.read_bytes()[: whole // 2])
    np.testing.assert_array_equal(losses(), want)
    assert len(compiled) == 1
    assert file.stat().st_size >= whole // 2 + 1
    np.testing.assert_array_equal(losses(), want)
    assert len(compiled) == 1


def test_programs_that_were_not_read_for_the_longest_time_go_first(folder, monkeypatch):
    for age, learner in enumerate((learn.Mean(), learn.LeastSquares())):
        losses(learner)
        newest = max(folder.glob("*.program"), key=lambda file: file.stat().st_mtime_ns)
        os.utime(newest, (time.time() - 100 + age,) * 2)
    older, newer = sorted(folder.glob("*.program"), key=lambda file: file.stat().st_mtime_ns)
    losses(learn.Mean())  # read again, so that the other is now the oldest
    monkeypatch.setattr(kept, "MOST_BYTES", sum(file.stat().st_size for file in (older, newer)))
    losses(learn.LeastSquares(ridge=1.0))
    assert not newer.exists()
    assert sum(file.stat().st_size for file in folder.glob("*.program")) <= kept.MOST_BYTES
    assert not [file for file in folder.iterdir() if file.suffix not in (".program", ".facts")]


def test_a_folder_that_cannot_be_written_to_is_no_trouble(folder, monkeypatch):
    folder.parent.joinpath("file").write_text("")
    want = losses()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "file"))
    np.testing.assert_array_equal(losses(), want)


class Prints(learn.Mean):
    """A learner of a user's that shows what it trains on."""

    def fit(self, key, x, y, w):
        jax.debug.print("{} cases", jnp.sum(w))
        return super().fit(key, x, y, w)


class AsksPython(learn.Mean):
    """A learner of a user's that computes its mean in NumPy."""

    def fit(self, key, x, y, w):
        shape = jax.ShapeDtypeStruct(y.shape[1:], y.dtype)
        return jax.pure_callback(
            lambda y, w: np.average(y, axis=0, weights=w).astype(shape.dtype), shape, y, w, vmap_method="sequential"
        )


@pytest.mark.parametrize("learner", [Prints(), AsksPython()])
def test_a_program_that_calls_back_into_python_is_run_and_not_kept(learner, folder):
    np.testing.assert_allclose(losses(learner), losses(), rtol=1e-5)  # sums of 16 numbers in single precision
    assert len(list(folder.glob("*.program"))) == 1  # that of the plain mean


def test_an_option_that_this_xla_does_not_have_is_left_out(folder):
    lowered = jax.jit(lambda x: x + 1).lower(1.0)
    options = {"xla_no_such_option": True, "xla_backend_optimization_level": 2, "xla_nor_this_one": 1}
    assert program._compile(lowered, options)(1.0) == 2


SCRIPT = """
import jax, jaxgen as jg
from jaxgen import learn, resample, simulate
from jaxgen.engine import kept
kept._WORTH_KEEPING = 0.0
jg.assess(jax.random.key(0), learn.Mean(), simulate.linear_ar(jax.random.key(1), 1, 20, 3).data, resample.full(20))
print(jax.config.jax_compilation_cache_dir)
"""


@pytest.mark.parametrize(
    ("set_to", "cache_of_jax"),
    [
        ({}, "None"),
        ({"JAX_COMPILATION_CACHE_DIR": "{tmp}/own"}, "{tmp}/own"),
        ({"JAX_ENABLE_COMPILATION_CACHE": "false"}, "None"),
    ],
    ids=["by default", "the user's own folder", "switched off"],
)
def test_programs_are_kept_unless_the_user_decides_otherwise(tmp_path, set_to, cache_of_jax):
    """And the settings of JAX stay as they are."""
    environment = {name: value for name, value in os.environ.items() if "COMPILATION_CACHE" not in name}
    environment |= {
        "XDG_CACHE_HOME": str(tmp_path / "caches"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        **{name: value.format(tmp=tmp_path) for name, value in set_to.items()},
    }
    printed = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    assert printed[-1] == cache_of_jax.format(tmp=tmp_path)
    assert any((tmp_path / "caches").rglob("*.program")) == (not set_to)
    assert any((tmp_path / "own").rglob("jit_run*")) == ("JAX_COMPILATION_CACHE_DIR" in set_to)
