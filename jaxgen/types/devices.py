"""What a program that is traced has to know of the device that it is made for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax


def on_cpu() -> bool:
    """Whether the program that is traced is made for a CPU, see `Job`."""
    config: Any = jax.config
    device = config.jax_default_device
    return getattr(device, "platform", device or jax.default_backend()) == "cpu"


@contextmanager
def in_full_precision() -> Iterator[None]:
    """Products of matrices in the precision of their numbers, unless the user has set JAX to another: a GPU rounds
    numbers of single precision to 11 bits in them otherwise, a TPU to 8.
    """
    known: Any = jax.config
    if on_cpu() or known.jax_default_matmul_precision is not None:
        yield
    else:
        with jax.default_matmul_precision("highest"):
            yield
