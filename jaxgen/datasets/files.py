"""Tables from files: what pandas reads, or one sentence that says why it cannot."""

import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from jaxgen.datasets.checks import existing, listed, naming
from jaxgen.types.numbers import shown

_LINES = {
    *("sep", "delimiter", "engine", "quotechar", "quoting", "doublequote", "escapechar", "comment", "encoding"),
    *("encoding_errors", "compression", "skiprows", "skip_blank_lines", "skipinitialspace", "dialect"),
    *("lineterminator", "storage_options"),
}
"""The options of pandas.read_csv that say how a file is cut into lines and values."""

_PACKED = {".gz", ".bz2", ".zip", ".xz", ".zst", ".tar", ".tgz"}
"""Suffixes of files that pandas unpacks, which protect their content themselves."""


def read_table(path: Any, options: Mapping[str, Any]) -> tuple[str | Path, pd.DataFrame]:
    """The name of a CSV file and its table, one row per case [N].

    Args:
      path: the file, or an open one, which is read to its end.
      options: of `pandas.read_csv`.
    Raises:
      FileNotFoundError: there is no such file.
      OSError: it may not be read.
      TypeError: neither a path nor an open file.
      ValueError: the file is empty, damaged or no table, or its header has a name twice; the file is named.
    """
    name, source = _opened(path)
    with naming(name):
        for several in ("chunksize", "iterator"):
            if options.get(several):
                raise ValueError(f"expected options that read one table, got {several}; leave it out")
        _refuse_zero_bytes(source, options)
        table = _parsed(source, options)
        _check_header(source, options, table.shape[1])
        # Where rows have more values than the header has names, pandas takes the first values as row names.
        if options.get("index_col") is None and not table.index.equals(pd.RangeIndex(len(table))):
            raise ValueError(
                f"expected {table.shape[1]} values in every row, one per name in the header, got more; "
                "name every column, or pass index_col=0 for row names"
            )
    return name, table


def _opened(path: Any) -> tuple[str | Path, Path | str | bytes]:
    """The name of a file, and its path or, of an open file, its content."""
    if not hasattr(path, "read"):
        there = existing(path)
        return there, there
    name = getattr(path, "name", None)
    name = name if isinstance(name, str) else f"<{type(path).__name__}>"
    with naming(name):
        try:
            content = path.read()
        except (OSError, ValueError) as error:  # closed, or not open for reading
            raise ValueError(
                f"expected a file that is open for reading, got {_in_a_line(error)}; open it again"
            ) from None
        if not isinstance(content, str | bytes):
            raise ValueError(f"expected a file of text or bytes, got {shown(content)}; open such a file")
    return name, content


def _refuse_zero_bytes(source: Path | str | bytes, options: Mapping[str, Any]) -> None:
    """Refuses a file that is no text: pandas 2 reads a number up to a zero byte and forgets the rest of it."""
    wide = any(digits in str(options.get("encoding")) for digits in ("16", "32"))  # letters of several bytes
    packed = options.get("compression", "infer") not in (None, "infer")
    if wide or packed:
        return
    if isinstance(source, Path):
        if source.suffix in _PACKED:
            return
        try:
            with source.open("rb") as file:
                damaged = any(b"\0" in part for part in iter(lambda: file.read(2**20), b""))
        except OSError as error:
            raise type(error)(
                f"{source}: expected a file that can be read, got trouble ({error.strerror}); check its permissions"
            ) from None
    else:
        damaged = "\0" in source if isinstance(source, str) else b"\0" in source
    if damaged:
        raise ValueError(
            "expected a table in text, got a file with zero bytes; fetch it again if it is damaged, or give its "
            "encoding (such as encoding='utf-16')"
        )


def _parsed(source: Path | str | bytes, options: Mapping[str, Any]) -> pd.DataFrame:
    """What pandas makes of a file, its many kinds of trouble in one sentence."""
    stream: Any = source
    if isinstance(source, str):
        stream = io.StringIO(source)
    elif isinstance(source, bytes):
        stream = io.BytesIO(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # of mixed columns, which are refused by name
            warnings.filterwarnings("error", message="Length of header", category=pd.errors.ParserWarning)
            return pd.read_csv(stream, **options)
    except pd.errors.EmptyDataError:
        raise ValueError("expected a header and rows, got an empty file; check the path") from None
    except MemoryError:
        raise MemoryError(
            "expected a table that fits into memory, got one that does not; read part of it (usecols, nrows)"
        ) from None
    # Of pandas' parser, of bytes that are no text, of gzip, zip, xz and tar files that are damaged, of packages that
    # an option needs, of regular expressions: too many kinds to name, and all about this one file and its options.
    except Exception as error:
        raise ValueError(
            f"expected a table, got what pandas.read_csv cannot read ({_in_a_line(error)}); "
            "give its options (sep, encoding, usecols), or fetch the file again if it is damaged"
        ) from None


def _check_header(source: Path | str | bytes, options: Mapping[str, Any], width: int) -> None:
    """Refuses a name that the header has twice: pandas calls the second y.1, so a copy of the target would be an input.

    The header is read once more as a row of values, the only way to see the names as they are in the file.
    """
    header = options.get("header", "infer")
    if options.get("names") is not None or not (header == "infer" or type(header) is int):
        return
    place = 0 if header == "infer" else int(header)
    how: dict[str, Any] = {name: value for name, value in options.items() if name in _LINES}
    how |= {"header": None, "index_col": False, "nrows": place + 1, "dtype": str}
    if place > 0:  # lines above the header may hold fewer values than it does
        how["names"] = range(max(1000, 2 * width))
    names = _parsed(source, how).iloc[place].dropna().tolist()
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"expected a header with different names, got {listed(twice)} more than once; rename the columns in the "
            "file, or name them all anew with names=[...] and header=0"
        )


def _in_a_line(error: Exception) -> str:
    """The message of an error on one line, or its kind if it has none."""
    return listed([" ".join(str(error).split()) or type(error).__name__])
