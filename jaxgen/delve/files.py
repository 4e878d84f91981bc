"""The files of DELVE's data sets and prototasks."""

import gzip
import re
import zlib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jaxgen.datasets.checks import check_names, existing, floats, is_number, listed, naming
from jaxgen.datasets.tables import from_frame
from jaxgen.types import Data
from jaxgen.types.numbers import shown


def read_data(
    path: str | PathLike[str],
    spec: str | PathLike[str] | None = None,
    target: str | int | None = None,
    task: str | None = None,
    constant: str = "raise",
) -> Data:
    """Data from a DELVE file, Dataset.data or Prototask.data, plain or gzipped (University of Toronto 1995-96).

    One case per line, values between white space; a backslash at the end continues the case on the next line, "#"
    starts a comment and "@" a commonality index, both left out. Dataset.spec has one line per attribute: number from
    1, name, a letter (u, c; not used), range, "#" comment; its other lines are not used. An attribute whose range
    lists values that are not all numbers (M F I) is nominal and encoded as by `from_frame`; any other, with an
    interval (0..9, [0,Inf)) or a list of numbers (0 1), is a number. DELVE's encodings, priors and Prototask.spec are
    not supported.

    Args:
      path: the cases; a name that ends in .gz is gunzipped.
      spec: the attributes; by default the file of the same name that ends in .spec, if it lists any. Without it the
        attributes are numbers named 1, 2, ..., as in a Prototask.data, whose inputs come before its target.
      target: name, or number from 1, of the one attribute to predict; by default the last.
      task: "regression" or "classification"; by default a target whose range lists its values is a classification, and
        one with an interval a regression.
      constant: as for `from_arrays`.
    Returns:
      Data with x [N, D] and y [N, K].
    Raises:
      TypeError: no path.
      FileNotFoundError: there is no such file.
      ValueError: as `from_frame`, the file named; or a file is damaged or no text, the specification is none, a case
        has not one value per attribute, or a value is missing ("?") or not among those that its range lists.
    """
    path = existing(path)
    spec = None if spec is None else existing(spec)
    with naming(path):
        cases = _cases(path)
        specified = _attributes(path, spec)
        attributes = specified or [(str(number), []) for number in range(1, len(cases[0]) + 1)]
        names = [name for name, _ in attributes]
        check_names(names, len(names))
        for row, case in enumerate(cases):
            if len(case) != len(names):
                raise ValueError(
                    f"expected {len(names)} values per case, one per attribute, got {len(case)} in row {row}; "
                    "correct the row or the specification"
                )
        target = _name_of(target, names)
        if task is None and specified:
            task = "classification" if dict(specified).get(target) else "regression"
        frame = pd.DataFrame(
            {
                name: _column(name, listed, values)
                for (name, listed), values in zip(attributes, zip(*cases, strict=True), strict=True)
            }
        )
        return from_frame(frame, target, task, constant)


def _name_of(target: Any, names: list[str]) -> str:
    """The name of the attribute to predict, which is given by its name or its number from 1; the last for None."""
    if target is None:
        return names[-1]
    if isinstance(target, str):
        return target  # `from_frame` knows what to say of a name that there is not
    whole = isinstance(target, int | np.integer) and not isinstance(target, bool)
    if not whole or not 1 <= target <= len(names):
        raise ValueError(
            f"expected a target among the attributes 1 to {len(names)}, got {shown(target)}; "
            "give its number or its name"
        )
    return names[target - 1]


def _cases(path: Path) -> list[list[str]]:
    """The values of every case; continued lines joined, comments and commonality indices left out."""
    text = _text(path)
    lines = re.sub(r"\\[ \t]*\n", " ", text).splitlines()
    cases = [values for line in lines if (values := re.split("[#@]", line)[0].split())]
    if not cases:
        raise ValueError("expected one case per line, got none; check the path")
    return cases


def _text(path: Path) -> str:
    """The text of a file, gunzipped if its name ends in .gz."""
    try:
        # DELVE's files are older than UTF-8, and any byte is a letter of Latin-1.
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(
            f"expected a gzipped file, got one that cannot be unpacked ({error}); "
            "fetch it again, or rename it if it is plain text"
        ) from None
    except PermissionError:
        raise PermissionError(f"{path}: expected a file that may be read, got none; change its permissions") from None
    if b"\0" in content or content.startswith(b"\x1f\x8b"):
        raise ValueError(
            "expected a text file with one case or attribute per line, got bytes that are none; check the path, and "
            "let the name of a gzipped file end in .gz"
        )
    return content.decode("latin-1").replace("\r\n", "\n")


def _attributes(path: Path, spec: Path | None) -> list[tuple[str, list[str]]]:
    """Name and listed values (none for an interval) of every attribute; an empty list without a specification."""
    beside = path.with_name(path.name.removesuffix(".gz")).with_suffix(".spec")
    if spec is None and not beside.is_file():
        return []
    lines = [line.split("#")[0].split() for line in _text(spec or beside).splitlines()]
    rows = [line for line in lines if line and line[0].isdigit()]
    for number, line in enumerate(rows, 1):
        if line[0] != str(number) or len(line) < 3:
            raise ValueError(
                f"expected number, name, letter and range of attribute {number} in {spec or beside}, got "
                f"'{listed([' '.join(line)])}'; number the attributes from 1"
            )
    if spec and not rows:
        raise ValueError(f"expected one attribute per line in {spec}, got none; give the Dataset.spec of these data")
    ranges = [[] if any(word[0] in "[(" or ".." in word for word in line[3:]) else line[3:] for line in rows]
    return [(line[1], values if len(values) > 1 else []) for line, values in zip(rows, ranges, strict=True)]


def _column(name: str, levels: list[str], values: Sequence[str]) -> Any:
    if "?" in values:
        raise ValueError(
            f"expected no missing value, got {values.count('?')} '?' in column {name!r}, the first in row "
            f"{values.index('?')}; leave out these cases first"
        )
    if all(map(is_number, levels)):
        return floats(np.array(values)[:, None], (name,))[:, 0]
    for row, value in enumerate(values):
        if value not in levels:
            raise ValueError(
                f"expected one of {listed(levels)} in column {name!r}, got '{listed([value])}' in row {row}; "
                "correct the case or the specification"
            )
    return pd.Categorical(values)
