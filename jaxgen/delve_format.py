"""The text of DELVE files: cases and attributes as words, for `datasets.read_delve`."""

import gzip
import re
import zlib
from pathlib import Path


def cases(path: Path) -> list[list[str]]:
    """The values of every case; continued lines joined, comments and commonality indices left out."""
    try:
        with gzip.open(path, "rt", encoding="latin-1") if path.suffix == ".gz" else path.open(encoding="latin-1") as file:
            text = file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"expected a gzipped file, got one that cannot be unpacked ({error}); fetch it again, or rename it if it is plain text") from None
    lines = re.sub(r"\\[ \t]*\n", " ", text).splitlines()
    found = [values for line in lines if (values := re.split("[#@]", line)[0].split())]
    if not found:
        raise ValueError("expected one case per line, got none; check the path")
    return found


def attributes(path: Path, spec: Path | None) -> list[tuple[str, list[str]]]:
    """Name and listed values (none for an interval) of every attribute; an empty list without a specification."""
    beside = path.with_name(path.name.removesuffix(".gz")).with_suffix(".spec")
    if spec is None and not beside.is_file():
        return []
    lines = [line.split("#")[0].split() for line in (spec or beside).read_text(encoding="latin-1").splitlines()]
    listed = [line for line in lines if line and line[0].isdigit()]
    for number, line in enumerate(listed, 1):
        if line[0] != str(number) or len(line) < 3:
            raise ValueError(f"expected number, name, letter and range of attribute {number} in {spec or beside}, got '{' '.join(line)}'; number the attributes from 1")
    if spec and not listed:
        raise ValueError(f"expected one attribute per line in {spec}, got none; give the Dataset.spec of these data")
    ranges = [[] if any(word[0] in "[(" or ".." in word for word in line[3:]) else line[3:] for line in listed]
    return [(line[1], values if len(values) > 1 else []) for line, values in zip(listed, ranges, strict=True)]
