"""What tells two learners, or two losses, apart: their code as text, with a digest of code that is not the package's.

Two lambdas are both called <lambda>, and a class that is edited in a notebook keeps its name, so a name alone would
take results of one for those of the other.
"""

import dataclasses
import functools
import hashlib
import re
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

_KNOWN = {
    "jaxgen",
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "flax",
    "optax",
    "jaxtyping",
    "builtins",
    "functools",
    "operator",
    "sklearn",
    "imblearn",
    "xgboost",
    "lightgbm",
    "catboost",
}
"""Packages whose functions and classes are known by their names."""

_OF_THE_PACKAGE = {"jaxgen", "jax"}
"""Packages whose code is the same wherever their version is."""


def named(value: Any) -> str:
    """A name that another learner or loss does not have: its code, with a digest where some of it is the user's.

    Args:
      value: a learner or a per-case loss.
    Returns:
      For example "LeastSquares(ridge=1.0)", "squared", or "<lambda> [code 1f0c9a72]".
    """
    text = value.__name__ if callable(value) and hasattr(value, "__name__") else " ".join(repr(value).split())
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", text)  # where an object lies in memory is no part of what it is
    digest = code_digest(value)
    return f"{text} [code {digest[:8]}]" if digest else text


def code_digest(value: Any) -> str:
    """SHA-256 of all code in a value that is not of a known package, with what that code refers to; empty if none is.

    Functions count by their compiled code, constants, defaults, and the values of their closure and of the globals
    that they name. So a comment changes nothing, and another constant does.
    """
    parts = list(_parts(value, set()))
    return (
        hashlib.sha256("\n".join(parts).encode()).hexdigest() if any(part.startswith("own ") for part in parts) else ""
    )


def text_of_known(value: Any) -> str | None:
    """A text that two values share only if they are made of the same code of this package and of JAX, and of the same
    numbers and words; None for a value that holds anything else.

    Args:
      value: a learner or a loss, or a part of one.
    """
    if isinstance(value, str | bytes | int | float | complex | bool | None):
        return repr(value) if type(value) in (str, bytes, int, float, complex, bool, type(None)) else None
    if type(value) is tuple:
        return _joined("tuple", map(text_of_known, value))
    if isinstance(value, types.FunctionType):
        place = f"{value.__module__}.{value.__qualname__}"
        return place if place.split(".")[0] in _OF_THE_PACKAGE and "<" not in place else None
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if kind.startswith("jaxgen.") and "<" not in kind:
        if dataclasses.is_dataclass(value):
            return _joined(kind, (text_of_known(getattr(value, field.name)) for field in dataclasses.fields(value)))
        return _joined(kind, [text_of_known(tuple(sorted(vars(value).items())))])
    if not isinstance(value, type) and callable(getattr(value, "__wrapped__", None)):  # jax.jit, jax.custom_jvp
        return _joined(type(value).__qualname__, [text_of_known(value.__wrapped__)])
    return None


def _joined(name: str, parts: Iterable[str | None]) -> str | None:
    texts = list(parts)
    return None if None in texts else f"{name}({', '.join(map(str, texts))})"


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    """Texts that change if the value does; those of the user's own code begin with "own"."""
    plain = isinstance(value, str | bytes | int | float | complex | bool | None | np.generic | tuple)
    if not plain and id(value) in seen:
        yield "again"
        return
    seen.add(id(value))
    if isinstance(value, types.ModuleType):
        yield f"module {value.__name__}"
    elif isinstance(value, types.MethodType):
        yield from _parts(value.__func__, seen)
        yield from _parts(value.__self__, seen)
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value, seen)
    elif isinstance(value, functools.partial):
        for part in (value.func, value.args, value.keywords):
            yield from _parts(part, seen)
    elif isinstance(value, type):
        yield from _of_class(value, seen)
    elif dataclasses.is_dataclass(value):
        yield from _parts(type(value), seen)
        for field in dataclasses.fields(value):
            if field.compare:
                yield f"field {field.name}"
                yield from _parts(getattr(value, field.name, None), seen)
    elif isinstance(value, tuple | list):
        yield f"{type(value).__name__} of {len(value)}"
        for each in value:
            yield from _parts(each, seen)
    elif isinstance(value, dict):
        for name in value:
            yield f"key {name!r}"
            yield from _parts(value[name], seen)
    elif isinstance(value, set | frozenset):
        yield f"{type(value).__name__} {sorted(map(repr, value))}"
    elif plain:
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, np.ndarray) or (hasattr(value, "__array__") and hasattr(value, "dtype")):
        yield from _of_array(value)
    elif callable(getattr(value, "__wrapped__", None)):  # jax.jit, functools.lru_cache
        yield from _parts(value.__wrapped__, seen)
    else:
        yield from _parts(type(value), seen)
        yield from _parts(getattr(value, "__dict__", None) or {}, seen)


def _of_array(array: Any) -> Iterator[str]:
    try:
        values = np.ascontiguousarray(array)
    except TypeError:  # random keys
        yield f"array {array!r}"
    else:
        yield f"array {values.dtype} {values.shape} {hashlib.sha256(values.tobytes()).hexdigest()}"


def _of_function(function: types.FunctionType, seen: set[int]) -> Iterator[str]:
    name = f"{function.__module__}.{function.__qualname__}"
    if (function.__module__ or "").split(".")[0] in _KNOWN and "<locals>" not in function.__qualname__:
        yield f"function {name}"
        return
    yield f"own function {function.__qualname__}"
    yield from _of_code(function.__code__)
    yield from _parts(function.__defaults__, seen)
    yield from _parts(function.__kwdefaults__, seen)
    for cell in function.__closure__ or ():
        try:
            yield from _parts(cell.cell_contents, seen)
        except ValueError:  # a name that is not bound yet
            yield "empty cell"
    if (function.__module__ or "").split(".")[0] not in _KNOWN:
        for word in sorted(_names(function.__code__) & set(function.__globals__)):
            yield f"global {word}"
            yield from _parts(function.__globals__[word], seen)


def _of_class(kind: type, seen: set[int]) -> Iterator[str]:
    yield f"class {kind.__module__}.{kind.__qualname__}"
    for each in kind.__mro__:
        if each.__module__.split(".")[0] in _KNOWN:
            continue
        yield f"own class {each.__qualname__}"
        for name, member in sorted(vars(each).items()):
            if isinstance(member, staticmethod | classmethod):
                member = member.__func__
            elif isinstance(member, property):
                member = member.fget
            # What `dataclass` writes is the same for the same fields, which are looked at by themselves.
            written = isinstance(member, types.FunctionType) and member.__code__.co_filename == "<string>"
            if (name.startswith("__") and not isinstance(member, types.FunctionType)) or written or name == "__hash__":
                continue
            yield f"member {name}"
            yield from _parts(member, seen)


def _of_code(code: types.CodeType) -> Iterator[str]:
    yield f"code {code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _of_code(constant)
        else:
            yield f"constant {sorted(map(repr, constant)) if isinstance(constant, frozenset) else repr(constant)}"


def _names(code: types.CodeType) -> set[str]:
    """Names that code and the functions in it refer to."""
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*inner)
