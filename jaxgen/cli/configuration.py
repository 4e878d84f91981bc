"""Options of a command from a TOML file, and back into one."""

import argparse
import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jaxgen.types.numbers import printable, shown

_PATHS = ("out", "json", "csv", "html")
_NOT_HERE = ("help", "config")


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Advice on a word that is none of those known: the one that is like it, or else what is given."""
    near = difflib.get_close_matches(word, list(known), 1, 0.5)
    return f"did you mean {near[0]!r}?" if near else otherwise


def filled_in(options: argparse.Namespace, parser: argparse.ArgumentParser, defaults: Mapping[str, Any]) -> None:
    """Gives options that the command line leaves out the values of the file `--config`, and else the defaults.

    Args:
      options: of the command; None is what was not given.
      parser: of the command, which knows its options.
      defaults: by the names of the options, with underscores.
    Raises:
      FileNotFoundError: there is no such file.
      ValueError: it is no TOML, or has an unknown name or a value that the option does not take.
    """
    said = {} if options.config is None else read(options.config, parser)
    for name, value in {**defaults, **said}.items():
        if getattr(options, name) is None:
            setattr(options, name, value)


def read(path: Path, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """The options that a TOML file says, by their names with underscores; paths are relative to the file.

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: as for `filled_in`.
    """
    if not path.is_file():
        found = "a folder" if path.is_dir() else "none"
        raise FileNotFoundError(f"{printable(str(path))}: expected a file with options, got {found}; check the path")
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as trouble:
        words = " ".join(str(trouble).split())
        at = re.search(r"at line (\d+)", words)
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if at else []
        line = f" in line {at[1]}: {shown(lines[int(at[1]) - 1])}" if at and int(at[1]) <= len(lines) else ""
        raise ValueError(
            f'{path}: expected options in TOML, got what is none{line} ({words}); write for example target = "price"'
        ) from None
    actions = {action.dest.replace("_", "-"): action for action in parser._actions if action.dest not in _NOT_HERE}
    options = {}
    for name, value in said.items():
        if name.replace("_", "-") not in actions:
            advice = did_you_mean(name.replace("_", "-"), actions, f"the names are {', '.join(actions)}")
            raise ValueError(f"{path}: expected the name of an option, got {shown(name)}; {advice}")
        action = actions[name.replace("_", "-")]
        options[action.dest] = _value(path, name, value, action)
    return options


def written(options: Mapping[str, Any]) -> str:
    """Options as a TOML file that says the same; what is None is left out."""
    lines = [f"{name.replace('_', '-')} = {_as_toml(value)}" for name, value in options.items() if value is not None]
    return "\n".join(lines) + "\n"


def _as_toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_toml, value))}]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(path: Path, name: str, value: Any, action: argparse.Action) -> Any:
    """The value of an option as the command line would give it."""
    wanted, good = "text", isinstance(value, str)
    if action.nargs == 0:
        wanted, good = "true or false", isinstance(value, bool)
    elif action.type is int:
        wanted, good = "a whole number", isinstance(value, int) and not isinstance(value, bool)
    elif action.type is float:
        wanted, good = "a number", isinstance(value, int | float) and not isinstance(value, bool)
    elif isinstance(action, argparse._AppendAction):
        value = [value] if isinstance(value, str) else value
        wanted = "a list of texts"
        good = isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)
    if not good:
        raise ValueError(f"{path}: expected {name} to be {wanted}, got {shown(value)}; write it so")
    if action.choices is not None and value not in action.choices:
        raise ValueError(
            f"{path}: expected {name} to be one of {', '.join(map(str, action.choices))}, got {shown(value)}; "
            f"{did_you_mean(str(value), map(str, action.choices), 'choose one')}"
        )
    good_value: Any = value
    if action.type is float:
        return float(good_value)
    if action.dest == "file":
        beside = path.parent / good_value
        return str(beside) if beside.is_file() or "/" in good_value or "." in good_value else good_value
    if action.dest in _PATHS and good_value != "-":
        made: Any = action.type or str
        return made(str(path.parent / good_value))
    return good_value
