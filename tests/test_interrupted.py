"""Threads, LAPACK, Ctrl-C and fork, each in a process of its own, which a hang ends."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and fork are those of POSIX")

HEAD = """
import faulthandler, signal, sys, threading
faulthandler.dump_traceback_later(100, exit=True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background of a shell ignores
from dataclasses import dataclass
import jax, jax.numpy as jnp, numpy as np
import jaxgen as jg
from jaxgen import learn, resample, simulate

KEY = jax.random.key(0)
"""
DIAGNOSED = """
@dataclass(frozen=True)
class Diagnosed:
    def fit(self, key, x, y, w):
        return (x.T * w[None]) @ x + jnp.eye(x.shape[1]), (x.T * w[None]) @ y

    def predict(self, params, x):
        return x @ params[1]

    def diagnose(self, params):
        return {"log_determinant": 2 * jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(params[0]))))}

    def failure(self, params):
        return jnp.where(jnp.linalg.eigvalsh(params[0])[0] < 0, 1, 0)

data = simulate.linear_ar(KEY, None, 120, 17).data
losses = jg.assess(KEY, Diagnosed(), data, resample.leave_out(KEY, 120, 0.25, 1000), chunk=50)
print(len(losses.g))
"""
TWO_THREADS = """
data = simulate.linear_ar(KEY, None, 120, 40).data
plan = resample.leave_out(KEY, 120, 0.25, 1000)
found = []

def run():
    found.append(jg.assess(KEY, learn.LeastSquares(minimum_norm=True), data, plan, chunk=100).g)

threads = [threading.Thread(target=run) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(np.array_equal(*found))
"""
FORKED = """
import os
data, plan = simulate.linear_ar(KEY, None, 20, 2).data, resample.leave_out(KEY, 20, 0.25, 5)
jg.assess(KEY, learn.Mean(), data, plan)
child = os.fork()
if child == 0:
    try:
        jg.assess(KEY, learn.Mean(), data, plan)
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
LONG = """
data, plan = simulate.linear_ar(KEY, None, 100, 5).data, resample.leave_out(KEY, 100, 0.25, 64)
learner = learn.Normalised(learn.Descent(steps=400_000))
from jaxgen.engine import workers
began = workers.run_all

def told(*arguments):
    print("training", flush=True)
    began(*arguments)

sys.modules["jaxgen.engine.run"].run_all = told
try:
    jg.assess(KEY, learner, data, plan)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

MISSED = """
import _thread, os, time
from jaxgen.engine import workers

def interrupt(seconds):
    # Sets the mark of a Ctrl-C without waking the main thread, as one does that comes just as a wait begins.
    time.sleep(seconds)
    _thread.interrupt_main()

def interrupted_after(seconds):
    threading.Thread(target=interrupt, args=(seconds,), daemon=True).start()

interrupted_after(0.5)
try:
    workers.run_all(time.sleep, [300], 1, print)
except KeyboardInterrupt:
    print("interrupted", flush=True)
workers._in_use_by = os.getpid()
interrupted_after(1)
"""


def started(script, **options):
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false", "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,
    )


@pytest.mark.parametrize(
    ("script", "printed"), [(DIAGNOSED, "1000"), (TWO_THREADS, "True")], ids=["diagnose", "threads"]
)
def test_lapack_does_not_hang(script, printed):
    """In `failure` and `diagnose`, and in two threads of Python that each call `assess`."""
    with started(script) as process:
        out, err = process.communicate(timeout=110)
    assert process.returncode == 0, err
    assert out.split()[-1] == printed


def test_a_forked_process_is_told_at_once():
    with started(FORKED) as process:
        out, _ = process.communicate(timeout=110)
    assert out.startswith("expected a process that was started afresh, got one forked from a process"), out


def test_ctrl_c_returns_at_once_and_a_second_one_leaves():
    """The chunks of this run take minutes: the first Ctrl-C is answered in seconds, the second ends the process."""
    with started(LONG) as process:
        assert process.stdout.readline().strip() == "training"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        answer = process.stdout.readline().strip()
        assert answer == "interrupted", f"the process ended, saying {process.stderr.read()}"
        assert time.monotonic() - began < 20, "the call must not wait for the chunk, which takes minutes"
        assert "will end first; press Ctrl-C to leave at once" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130


def test_ctrl_c_as_a_wait_begins_is_seen():
    """While results are awaited, and while the interpreter waits for chunks as it ends."""
    with started(MISSED) as process:
        out, err = process.communicate(timeout=110)
    assert out == "interrupted\n"
    assert "will end first" in err
    assert process.returncode == 130
