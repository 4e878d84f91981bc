"""Several processes that are one program: `jax.distributed` on the loopback address."""

import os
import socket
import subprocess
import sys

import pytest

PROGRAM = """
import sys

import jax
import numpy as np

rank, port, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
jax.config.update("jax_num_cpu_devices", 2)
jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank)

import jaxgen as jg
from jaxgen import datasets, learn, resample

data = datasets.diabetes()
splits = resample.leave_out(jax.random.key(0), data.n, 0.25, 41)
network = learn.Normalised(learn.Descent(learn.MLP((5,)), rate=0.01, steps=20))
every = jax.devices()
assert (len(every), len(jax.local_devices())) == (4, 2)
for learner in (learn.LeastSquares(), network, learn.Ridge(penalties=(0.1, 1.0))):
    for options in ({}, {"keep": "predictions"}, {"part": 20, "keep": "rows"}):
        here = jg.assess(jax.random.key(1), learner, data, splits, **options)
        together = jg.assess(jax.random.key(1), learner, data, splits, devices=every, **options)
        np.testing.assert_allclose(together.g, here.g, rtol=1e-5)  # single precision in another order of sums
        if here.predictions is not None:
            np.testing.assert_allclose(together.predictions, here.predictions, rtol=1e-3, atol=0.1)
try:
    jg.assess(jax.random.key(1), network, data, splits, devices=every, store=folder)
except ValueError as error:
    assert "expected the devices of one process for a run that is kept, got those of several" in str(error)
else:
    raise AssertionError("two processes would write one run")
print("equal", jax.process_index())
"""


@pytest.mark.slow
@pytest.mark.timeout(600)  # two processes compile at the same time
def test_two_processes_share_the_rows_of_one_run(tmp_path):
    """Both processes make the same call on all four devices, and each gets what it gets alone on its own two."""
    (tmp_path / "program.py").write_text(PROGRAM)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    call = [sys.executable, str(tmp_path / "program.py")]
    started = [
        subprocess.Popen(
            [*call, str(rank), str(port), str(tmp_path / "run")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        for rank, process in enumerate(started):
            said, trouble = process.communicate(timeout=500)
            assert process.returncode == 0, trouble[-3000:]
            assert f"equal {rank}" in said
    finally:
        for process in started:
            process.kill()
