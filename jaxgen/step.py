"""What one chunk of `assess` computes: traced to learn its needs, then compiled once for a shape."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec

from jaxgen.types import Learner, Loss

_POOLED = {"cholesky", "cholesky_update", "eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product", "lu", "ormqr", "qr", "schur", "svd", "triangular_solve"}
_POOLED |= {"tridiagonal", "tridiagonal_solve", "ffi_call", "pure_callback", "io_callback", "debug_callback"}
"""Primitives that on a CPU call LAPACK, or other foreign code, for a batch."""


@dataclass(frozen=True)
class Job:
    """What a step does: everything that, if changed, needs another compilation.

    Attributes:
      learner, loss: as for `assess`.
      cases: N.
      inputs: D.
      outputs: K.
      dtype: name of the floating type.
      one_data_set: all rows share one data set, x [1, N, D].
      used: cases that are gathered for each row; None trains on all cases with masks.
      left_out: most cases of weight 0 in a row, where `fit_rows` is to know it.
      together: `fit_rows` instead of `fit`.
      devices: where it runs.
    """

    learner: Learner
    loss: Loss
    cases: int
    inputs: int
    outputs: int
    dtype: str
    one_data_set: bool
    used: int | None
    left_out: int | None
    together: bool
    devices: tuple[jax.Device, ...]

    def one_set(self, key, x, y, train, q, r):
        """Losses [b, N], failure [b], trusted [b] and info of the rows r [b] of data set q, whose training weights are train [b, N]."""
        row_keys = jax.vmap(lambda row: jax.random.fold_in(jax.random.fold_in(key, q), row))(r)
        weights = train.astype(x.dtype)
        learner: Any = self.learner
        if self.together:
            params, trusted = learner.fit_rows(row_keys, x, y, weights, self.left_out)
        else:
            params = jax.vmap(lambda row_key, w: learner.fit(row_key, *self._gathered(x, y, w)))(row_keys, weights)
            trusted = jnp.ones(len(r), bool)
        losses = jax.vmap(lambda p: self.loss(y, learner.predict(p, x)))(params)
        failure = jax.vmap(getattr(learner, "failure", lambda p: jnp.zeros((), jnp.int32)))(params)
        return losses, failure, trusted, jax.vmap(getattr(learner, "diagnose", lambda p: {}))(params)

    def _gathered(self, x, y, w):
        if self.used is None:
            return x, y, w
        index = jnp.nonzero(w, size=self.used, fill_value=0)[0]
        present = jnp.arange(self.used) < jnp.sum(w > 0)
        return x[index], y[index], jnp.where(present, w[index], 0)


@dataclass(frozen=True)
class Facts:
    """What tracing a job tells about it.

    Attributes:
      row_bytes: size of the widest intermediate array of a row.
      alone: on a CPU it must not run beside another: batched LAPACK calls wait for the pool of threads that also runs the
        chunks, so two at a time can wait for each other for ever (seen with jaxlib 0.10.2). Each uses all cores by itself.
      info: shape and type of what the learner's `diagnose` says of a row.
    """

    row_bytes: int
    alone: bool
    info: Mapping[str, jax.ShapeDtypeStruct]


@lru_cache(maxsize=64)
def facts(job: Job) -> Facts:
    """Traces a few rows of one data set; nothing is compiled."""
    rows = 61 if job.together else 1  # a number that no other axis is likely to have
    x, y = (jax.ShapeDtypeStruct((job.cases, width), job.dtype) for width in (job.inputs, job.outputs))
    train, r = jax.ShapeDtypeStruct((rows, job.cases), np.uint8), jax.ShapeDtypeStruct((rows,), np.int32)
    program, (_, _, _, info) = jax.make_jaxpr(job.one_set, return_shape=True)(jax.random.key(0), x, y, train, jax.ShapeDtypeStruct((), np.int32), r)
    sizes = (math.prod(v.aval.shape) * v.aval.dtype.itemsize for equation in _equations(program) for v in equation.outvars if rows in v.aval.shape or rows == 1)
    alone = any(equation.primitive.name in _POOLED for equation in _equations(program))
    return Facts(max(1, max(sizes, default=1) // rows), alone, {name: jax.ShapeDtypeStruct(value.shape[1:], value.dtype) for name, value in info.items()})


def _equations(program: Any) -> Iterator[Any]:
    """All equations of a traced program, those of inner programs too."""
    for equation in getattr(program, "jaxpr", program).eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                    yield from _equations(inner)


@lru_cache(maxsize=64)
def compiled(job: Job, sets: int, rows: int, key_type: Any) -> Callable[..., Any]:
    """The program of (key, x, y, train [sets, rows, N], q [sets], r [sets, rows]) for chunks of one shape.

    Several devices share the data sets of a chunk if it has more than one, else its rows.
    """
    whole = None if job.one_data_set else 0
    step = jax.vmap(job.one_set, in_axes=(None, whole, whole, 0, 0, 0))

    def run(key, x, y, train, q, r):
        return step(key, x[0] if job.one_data_set else x, y[0] if job.one_data_set else y, train, q, r)

    first, *others = job.devices
    if others:
        mesh = jax.make_mesh((len(job.devices),), ("shard",), axis_types=(AxisType.Auto,), devices=job.devices)
        by_set = PartitionSpec("shard") if sets > 1 else PartitionSpec()
        by_row = PartitionSpec("shard") if sets > 1 else PartitionSpec(None, "shard")
        data = PartitionSpec() if job.one_data_set else by_set
        # check_vma=True would take constant start values as replicated and sum their gradients over the devices.
        run = jax.shard_map(run, mesh=mesh, in_specs=(PartitionSpec(), data, data, by_row, by_set, by_row), out_specs=by_row, check_vma=False)
    x, y = (jax.ShapeDtypeStruct((1 if job.one_data_set else sets, job.cases, width), job.dtype) for width in (job.inputs, job.outputs))
    numbers = (jax.ShapeDtypeStruct((sets, rows, job.cases), np.uint8), jax.ShapeDtypeStruct((sets,), np.int32), jax.ShapeDtypeStruct((sets, rows), np.int32))
    with jax.default_device(first):
        return jax.jit(run).lower(jax.ShapeDtypeStruct((), key_type), x, y, *numbers).compile()
