"""Values that print as the code that makes them."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, repr=False)
class Value:
    """Base of frozen dataclasses (with `repr=False`) that print as code that recreates them, defaults left out.

    Numbers of NumPy become plain ones and lists become tuples, so that equal values print alike and can be hashed.
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            given = getattr(self, field.name)
            value = plain(given)
            if value is not given:
                object.__setattr__(self, field.name, value)

    def __repr__(self) -> str:
        return _as_code(self)


def plain(value: Any) -> Any:
    """Numbers of Python for those of NumPy, tuples for lists; anything else as it is."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list):
        return tuple(map(plain, value))
    if type(value) is tuple and any(plain(each) is not each for each in value):
        return tuple(map(plain, value))
    return value


def _as_code(value: Any) -> str:
    """Code that recreates a value: dataclasses without their defaults, but for fields whose metadata say "always
    shown", and functions by name.
    """
    if isinstance(value, tuple) and type(value) is tuple:
        return f"({', '.join(map(_as_code, value))}{',' if len(value) == 1 else ''})"
    if is_dataclass(value) and not isinstance(value, type):
        asked = [f for f in fields(value) if f.repr or isinstance(value, Value)]
        given = ((f, getattr(value, f.name)) for f in asked)
        words = (f"{f.name}={_as_code(x)}" for f, x in given if "always shown" in f.metadata or _differs(x, f.default))
        return f"{type(value).__name__}({', '.join(words)})"
    if callable(value) and hasattr(value, "__name__"):
        return f"loss.{value.__name__}" if value.__module__ == "jaxgen.loss" else value.__name__
    return repr(value)


def _differs(given: Any, default: Any) -> bool:
    """Whether a field must be printed; what cannot be compared is."""
    try:
        return bool(given != default)
    except (TypeError, ValueError):
        return True
