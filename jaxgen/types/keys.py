"""Random keys: what `resample` and `simulate` draw from, `assess` asks for, and learners draw their numbers from."""

import inspect
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Shaped

from jaxgen.types import Key
from jaxgen.types.numbers import explained_call, shown

F = TypeVar("F", bound=Callable[..., Any])

MOST_SEED = 2**32 - 1
"""The largest seed: JAX takes seeds modulo 2^32, so a larger one would give the numbers of a smaller one."""


def key_first(function: F) -> F:
    """Decorator of a function that takes a key first: says so where the key was forgotten."""
    return explained_call(_forgotten)(function)


def _forgotten(function: Callable[..., Any], *given: Any) -> str:
    """What to say where the first argument is no key; empty where it is one, or nothing was given."""
    if not given or (isinstance(given[0], jax.Array) and jnp.issubdtype(given[0].dtype, jax.dtypes.prng_key)):
        return ""
    needed = [
        name for name, each in inspect.signature(function).parameters.items() if each.default is inspect.Parameter.empty
    ]
    call = f"{function.__name__}(jax.random.key(1), {', '.join(needed[1:])})"
    return f"expected a random key first, got {shown(given[0])}; call {call}"


def require(key: Key) -> Key:
    """The key itself, if it is one typed key of JAX's default kind.

    Raises:
      TypeError: it is an integer, a raw key of the old style, an array of keys, of a kind whose numbers depend on the
        size of a batch, or one without a value, inside of `jax.jit` or `jax.vmap`.
    """
    if isinstance(key, Tracer):
        raise TypeError(
            "expected a random key with a value, got one that jax.jit or jax.vmap is tracing; call jaxgen "
            "outside of them, it compiles what it runs by itself"
        )
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ():
        kind = str(jax.random.key_impl(key))
        if kind != "threefry2x32":
            raise TypeError(
                f"expected a key of the kind threefry2x32, got {kind}, whose numbers depend on the size of a "
                "batch; write jax.random.key(0, impl='threefry2x32')"
            )
        return key
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        whole = 0 <= key <= MOST_SEED
        advice = f"write jax.random.key({key})" if whole else f"write jax.random.key of a seed from 0 to {MOST_SEED}"
        raise TypeError(f"expected one random key, got the integer {key}; {advice}")
    what = f"{type(key).__name__} of shape {list(getattr(key, 'shape', []))} and dtype {getattr(key, 'dtype', 'none')}"
    raise TypeError(f"expected one random key, got {what}; write jax.random.key(0)")


def stream(key: Key, name: str) -> Key:
    """The key of a named purpose: different names draw independent numbers; traced keys too.

    Use it where one key serves several purposes. Numbers will not do: `jax.random.split(key)[i]` is the same key as
    `jax.random.fold_in(key, i)`.
    """
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


def several(key: Key, number: int) -> Shaped[Array, " number"]:
    """As many keys as `jax.random.split(key, number)` gives, [number], and the same: each is the key with its number
    folded in, which compiles in less than half of the time.
    """
    return jax.vmap(lambda place: jax.random.fold_in(key, place))(jnp.arange(number, dtype=jnp.uint32))


def generator(key: Key) -> np.random.Generator:
    """A NumPy generator seeded by a key: the same numbers in 32 and 64 bits and on any device.

    Raises:
      TypeError: not one typed key.
    """
    return np.random.default_rng(np.asarray(jax.random.key_data(require(key))))


def text(key: Key) -> str:
    """Code that recreates a key.

    Raises:
      TypeError: not one typed key.
    """
    words = np.asarray(jax.random.key_data(require(key))).tolist()
    if words[:-1] == [0] * (len(words) - 1):
        return f"jax.random.key({words[-1]})"
    return f"jax.random.wrap_key_data(jax.numpy.asarray({words}, 'uint32'))"
