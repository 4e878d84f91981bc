"""Values that print as the code that makes them."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class Value:
    """Base of frozen dataclasses (with `repr=False`) that print as code that recreates them, defaults left out."""

    def __repr__(self) -> str:
        return _as_code(self)


def _as_code(value: Any) -> str:
    """Code that recreates a value: dataclasses without their defaults, functions by name."""
    if isinstance(value, tuple) and type(value) is tuple:
        return f"({', '.join(map(_as_code, value))}{',' if len(value) == 1 else ''})"
    if is_dataclass(value) and not isinstance(value, type):
        changed = ((f.name, getattr(value, f.name)) for f in fields(value) if f.repr or isinstance(value, Value))
        default = {f.name: f.default for f in fields(value)}
        words = (f"{name}={_as_code(given)}" for name, given in changed if given != default[name])
        return f"{type(value).__name__}({', '.join(words)})"
    if callable(value) and hasattr(value, "__name__"):
        return f"loss.{value.__name__}" if value.__module__ == "jaxgen.loss" else value.__name__
    return repr(value)
