"""What a caller gives, checked with one sentence: whole numbers, numbers within bounds, flags, choices.

Every check raises ValueError with what was expected, what came, and what to do. They run where something is made or
asked for, on the host, never on traced arrays. NumPy is loaded by the first of them: `jaxgen --help` asks for none, and
would wait for it half of its time.
"""

import functools
import inspect
import math
from collections.abc import Callable, Collection, Set
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def explained_call(say: Callable[..., str]) -> Callable[[F], F]:
    """Decorator: what a call that lacks an argument, or has too many, is told in place of Python's own words, which
    name the last parameter where the first was forgotten.

    Args:
      say: a function of the function called and the positional arguments given to the sentence; empty where Python's
        words are right.
    Returns:
      The decorator of a function, whose signature stays.
    """

    def decorated(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*args: Any, **named: Any) -> Any:
            try:
                signature.bind(*args, **named)
            except TypeError:
                sentence = say(function, *args)
            else:
                sentence = ""
            if sentence:
                raise TypeError(sentence)
            return function(*args, **named)

        return cast(F, called)

    return decorated


def require(
    name: str,
    value: Any,
    least: int,
    most: int | None = None,
    reason: str = "",
    advice: str = "give such a number",
) -> int:
    """The value as a plain whole number; ValueError unless it is one within bounds, where `reason` says where the upper
    one comes from.
    """
    from numpy import integer

    whole = isinstance(value, int | integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        because = f" ({reason})" if reason else ""
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}{because}"
        raise ValueError(f"expected {name} to be a whole number {bounds}, got {shown(value)}; {advice}")
    return int(value)


def require_number(
    name: str,
    value: Any,
    *,
    least: float | int | None = None,
    above: float | int | None = None,
    most: float | int | None = None,
    below: float | int | None = None,
    finite: bool = True,
    advice: str = "give such a number",
) -> None:
    """ValueError unless a value is one number of Python or NumPy, no text, flag or array, within the bounds that are
    given; a fraction is none, as SciPy takes none.
    """
    from numpy import floating, integer

    real = isinstance(value, int | float | integer | floating) and not isinstance(value, bool)
    good = (
        real
        and not math.isnan(value)
        and (not finite or math.isfinite(value))
        and (least is None or value >= least)
        and (above is None or value > above)
        and (most is None or value <= most)
        and (below is None or value < below)
    )
    if not good:
        limits = (("of at least", least), ("above", above), ("of at most", most), ("below", below))
        bounds = " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)
        kind = "a finite number" if finite and most is None and below is None else "a number"
        raise ValueError(f"expected {name} to be {kind}{' ' * bool(bounds)}{bounds}, got {shown(value)}; {advice}")


def require_flag(name: str, value: Any) -> None:
    """ValueError unless a value is True or False."""
    from numpy import bool_

    if not isinstance(value, bool | bool_):
        raise ValueError(f"expected {name} to be True or False, got {shown(value)}; give one of the two")


def require_one_of(name: str, value: Any, allowed: Collection[Any]) -> None:
    """ValueError unless a value is among those allowed."""
    if not any(type(value) is type(one) and value == one for one in allowed):
        words = ", ".join(map(repr, allowed))
        raise ValueError(f"expected {name} to be one of {words}, got {shown(value)}; choose one of these")


def require_labels(labels: Any, count: int, things: str) -> None:
    """ValueError unless labels are None, or a list of as many texts as there are things to name."""
    if labels is None:
        return
    texts = isinstance(labels, Collection) and not isinstance(labels, str | Set) and getattr(labels, "ndim", 1) == 1
    if not texts or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"expected labels as a list of texts, got {shown(labels)}; name each of the {things} once")
    if len(labels) != count:
        raise ValueError(
            f"expected {count} labels, one for each of the {things}, got {len(labels)}; name each of them once"
        )


def require_kind(what: str, value: Any, kind: type | tuple[type, ...], advice: str) -> None:
    """TypeError unless a value is of a class of the package, or of one of several; `what` and `advice` are in words."""
    if not isinstance(value, kind):
        raise TypeError(f"expected {what}, got {shown(value)}; {advice}")


def shown(value: Any, most: int = 80) -> str:
    """A value for a message: its code, on one line and cut where it is long; for an array its type and shape."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and value.shape != ():
        return f"an array of shape {list(value.shape)}"
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def printable(text: str, most: int = 200) -> str:
    """A text as it is, on one line and cut where it is long."""
    line = text if text.isprintable() else repr(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def p_in_words(p: float, sign: bool = False) -> str:
    """A p-value as people print it: two digits, or "< 0.001"; with a sign of equality if that is asked for."""
    if math.isnan(p):
        return "unknown"
    if p < 0.001:
        return "< 0.001"
    return f"{'= ' * sign}{p:.2g}"


def first_line(error: BaseException) -> str:
    """What an error of other code says, for a message: its kind and its first line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
