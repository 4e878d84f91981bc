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

from jaxgen.datasets.checks import check_names, existing, floats, is_number, naming
from jaxgen.datasets.tables import from_frame
from jaxgen.types import Data


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
      task: "regression" or "classification"; by default a target whose range lists its values is a classification.
      constant: as for `from_arrays`.
    Returns:
      Data with x [N, D] and y [N, K].
    Raises:
      FileNotFoundError: there is no such file.
      ValueError: as `from_frame`, the file named; or a case has not one value per attribute, a value is missing ("?"),
        or not among those that its range lists.
    """
    path = existing(path)
    spec = None if spec is None else existing(spec)
    with naming(path):
        cases = _cases(path)
        attributes = _attributes(path, spec) or [(str(number), []) for number in range(1, len(cases[0]) + 1)]
        names = [name for name, _ in attributes]
        check_names(names, len(names))
        for row, case in enumerate(cases):
            if len(case) != len(names):
                raise ValueError(
                    f"expected {len(names)} values per case, one per attribute, got {len(case)} in row {row}; "
                    "correct the row or the specification"
                )
        if isinstance(target, int) and not 1 <= target <= len(names):
            raise ValueError(
                f"expected a target among the attributes 1 to {len(names)}, got {target}; give its number or its name"
            )
        target = names[target - 1] if isinstance(target, int) else target or names[-1]
        task = "classification" if task is None and dict(attributes).get(target) else task
        frame = pd.DataFrame(
            {
                name: _column(name, listed, values)
                for (name, listed), values in zip(attributes, zip(*cases, strict=True), strict=True)
            }
        )
        return from_frame(frame, target, task, constant)


def _cases(path: Path) -> list[list[str]]:
    """The values of every case; continued lines joined, comments and commonality indices left out."""
    try:
        with (
            gzip.open(path, "rt", encoding="latin-1") if path.suffix == ".gz" else path.open(encoding="latin-1") as file
        ):
            text = file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(
            f"expected a gzipped file, got one that cannot be unpacked ({error}); "
            "fetch it again, or rename it if it is plain text"
        ) from None
    lines = re.sub(r"\\[ \t]*\n", " ", text).splitlines()
    found = [values for line in lines if (values := re.split("[#@]", line)[0].split())]
    if not found:
        raise ValueError("expected one case per line, got none; check the path")
    return found


def _attributes(path: Path, spec: Path | None) -> list[tuple[str, list[str]]]:
    """Name and listed values (none for an interval) of every attribute; an empty list without a specification."""
    beside = path.with_name(path.name.removesuffix(".gz")).with_suffix(".spec")
    if spec is None and not beside.is_file():
        return []
    lines = [line.split("#")[0].split() for line in (spec or beside).read_text(encoding="latin-1").splitlines()]
    listed = [line for line in lines if line and line[0].isdigit()]
    for number, line in enumerate(listed, 1):
        if line[0] != str(number) or len(line) < 3:
            raise ValueError(
                f"expected number, name, letter and range of attribute {number} in {spec or beside}, got "
                f"'{' '.join(line)}'; number the attributes from 1"
            )
    if spec and not listed:
        raise ValueError(f"expected one attribute per line in {spec}, got none; give the Dataset.spec of these data")
    ranges = [[] if any(word[0] in "[(" or ".." in word for word in line[3:]) else line[3:] for line in listed]
    return [(line[1], values if len(values) > 1 else []) for line, values in zip(listed, ranges, strict=True)]


def _column(name: str, listed: list[str], values: Sequence[str]) -> Any:
    if "?" in values:
        raise ValueError(
            f"expected no missing value, got {values.count('?')} '?' in column {name!r}, the first in row "
            f"{values.index('?')}; leave out these cases first"
        )
    if all(map(is_number, listed)):
        return floats(np.array(values)[:, None], (name,))[:, 0]
    for row, value in enumerate(values):
        if value not in listed:
            raise ValueError(
                f"expected one of {', '.join(listed)} in column {name!r}, got '{value}' in row {row}; "
                "correct the case or the specification"
            )
    return pd.Categorical(values)
