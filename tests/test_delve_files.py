"""DELVE's files of cases and of attributes: what they hold, and a sentence for all that is wrong with them."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from jaxgen import delve

SPEC = """# Abalone, shortened
Title: Abalone
Origin: natural
Usage: assessment
Order: uninformative

Attributes:
  1 sex      u  M F I     # a list of values: nominal
  2 length   u  [0,Inf)   # an interval
  3 shells   u  0 1       # a list of numbers
  4 rings    c  0..29
"""
CASES = """# a comment
M 0.455 1 15 # the first case
F 0.53 0 \\
  9
I .33 1 7 @1

M 4.4E-1 0 10
F 0.425 1 8
"""
VALUES = [
    [0, 1, 0.455, 1, 15],
    [0, 0, 0.53, 0, 9],
    [1, 0, 0.33, 1, 7],
    [0, 1, 0.44, 0, 10],
    [0, 0, 0.425, 1, 8],
]  # sex=I, sex=M, ...; F is the reference level


def write(folder: Path, data: str = CASES, spec: str | None = SPEC, name: str = "Dataset") -> Path:
    path = folder / f"{name}.data"
    path.write_text(data)
    if spec is not None:
        path.with_suffix(".spec").write_text(spec)
    return path


def equal(a, b) -> None:
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.y, b.y)
    assert (a.names, a.target, a.task, a.classes) == (b.names, b.target, b.task, b.classes)


def test_delve_file_with_its_specification(tmp_path):
    data = delve.read_data(write(tmp_path))
    np.testing.assert_array_equal(np.column_stack([data.x, data.y]), VALUES)
    assert data.names == ("sex=I", "sex=M", "length", "shells")
    assert (data.target, data.task) == ("rings", "regression")


def test_delve_file_gzipped_or_with_a_commented_header_or_given_specification(tmp_path):
    plain = delve.read_data(write(tmp_path))
    (tmp_path / "Dataset.data.gz").write_bytes(gzip.compress(CASES.encode()))
    equal(delve.read_data(tmp_path / "Dataset.data.gz"), plain)
    lines = SPEC.splitlines()
    equal(
        delve.read_data(
            write(tmp_path, spec="\n".join(f"#{line}" if ":" in line and "#" not in line else line for line in lines))
        ),
        plain,
    )
    other = tmp_path / "other.spec"
    other.write_text(SPEC.replace("rings", "age"))
    assert delve.read_data(tmp_path / "Dataset.data", spec=str(other)).target == "age"


DELVE_TARGETS = [  # target -> name, task, classes
    (None, "rings", "regression", ()),
    ("length", "length", "regression", ()),
    (2, "length", "regression", ()),
    ("sex", "sex", "classification", ("F", "I", "M")),
    (1, "sex", "classification", ("F", "I", "M")),
    ("shells", "shells", "classification", ("0", "1")),
]


@pytest.mark.parametrize(
    ("target", "name", "task", "classes"), DELVE_TARGETS, ids=[str(row[0]) for row in DELVE_TARGETS]
)
def test_delve_target_by_name_or_number(tmp_path, target, name, task, classes):
    data = delve.read_data(write(tmp_path), target=target)
    assert (data.target, data.task, data.classes) == (name, task, classes)


@pytest.mark.parametrize(
    "spec", [None, "cases: all\ninputs: 1 2\ntargets: 3\norder: retain\n"], ids=["no specification", "Prototask.spec"]
)
def test_prototask_file_ends_with_its_target(tmp_path, spec):
    table = np.random.default_rng(0).normal(size=(20, 3))
    path = write(tmp_path, "\n".join(" ".join(map(repr, map(float, row))) for row in table), spec, "Prototask")
    data = delve.read_data(path)
    np.testing.assert_array_equal(np.column_stack([data.x, data.y]), table)
    assert (data.names, data.target) == (("1", "2"), "3")
    np.testing.assert_array_equal(delve.read_data(path, target=1).y[:, 0], table[:, 0])


def delve_file(data=CASES, spec=SPEC, **options):
    return lambda folder: delve.read_data(write(folder, data, spec), **options)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def zipped(folder: Path, content: bytes | None = None) -> Path:
    return written(folder / "Dataset.data.gz", content or gzip.compress(CASES.encode()))


def cut_off(folder: Path) -> Path:
    return zipped(folder, gzip.compress(CASES.encode())[:-20])


def flipped(folder: Path) -> Path:
    content = bytearray(gzip.compress(CASES.encode()))
    content[len(content) // 2] ^= 0xFF
    return zipped(folder, bytes(content))


BAD = [
    (
        "missing value",
        delve_file(CASES.replace("0.53", "?")),
        r"Dataset.data: expected no missing value, got 1 '\?' in column 'length', the first in row 1",
    ),
    ("missing level", delve_file(CASES.replace("I", "?")), r"got 1 '\?' in column 'sex', the first in row 2"),
    (
        "text",
        delve_file(CASES.replace("0.53", "long")),
        "Dataset.data: expected numbers, got 'long' in column 'length', row 1",
    ),
    (
        "NaN",
        delve_file(CASES.replace("0.53", "nan")),
        "Dataset.data: expected no missing value, got 1 in column 'length', the first in row 1",
    ),
    (
        "unknown level",
        delve_file(CASES.replace("I", "X")),
        "Dataset.data: expected one of M, F, I in column 'sex', got 'X' in row 2",
    ),
    (
        "short case",
        delve_file(CASES.replace("0.53", "")),
        "Dataset.data: expected 4 values per case, one per attribute, got 3 in row 1",
    ),
    ("no cases", delve_file("# nothing\n"), "Dataset.data: expected one case per line, got none"),
    ("no specification", delve_file(spec=None), "Dataset.data: expected numbers, got 'M' in column '1', row 0"),
    (
        "unknown target",
        delve_file(target="ring"),
        "Dataset.data: expected a target among the columns sex, length, shells, rings, got 'ring'; "
        "did you mean 'rings'",
    ),
    ("target 0", delve_file(target=0), "Dataset.data: expected a target among the attributes 1 to 4, got 0"),
    ("target 5", delve_file(target=5), "attributes 1 to 4, got 5"),
    (
        "numbering",
        delve_file(spec=SPEC.replace("  3 ", "  5 ")),
        "letter and range of attribute 3 in .*Dataset.spec, got '5 shells u 0 1'",
    ),
    (
        "no letter",
        delve_file(spec=SPEC.replace("length   u  [0,Inf)", "length")),
        "attribute 2 in .*Dataset.spec, got '2 length'",
    ),
    (
        "names twice",
        delve_file(spec=SPEC.replace("shells", "length")),
        "Dataset.data: expected different names, got 'length' 2 times",
    ),
    (
        "constant",
        delve_file(CASES.replace(" 0 ", " 1 ")),
        "Dataset.data: expected inputs that vary, got 1 in every row of column 'shells'",
    ),
    (
        "specification without attributes",
        lambda folder: delve.read_data(write(folder, spec="Origin: natural"), spec=folder / "Dataset.spec"),
        "expected one attribute per line in .*Dataset.spec, got none",
    ),
    (
        "not gzipped",
        lambda folder: delve.read_data(write(folder).rename(folder / "Dataset.data.gz")),
        "Dataset.data.gz: expected a gzipped file.*Not a gzipped file",
    ),
    ("cut off", lambda folder: delve.read_data(cut_off(folder)), "Dataset.data.gz: expected a gzipped file"),
    ("a flipped byte", lambda folder: delve.read_data(flipped(folder)), "Dataset.data.gz: expected a gzipped file"),
    (
        "gzipped under a plain name",
        lambda folder: delve.read_data(zipped(folder).rename(folder / "Dataset.data")),
        "Dataset.data: expected a text file with one case or attribute per line, got bytes that are none",
    ),
    (
        "a picture",
        lambda folder: delve.read_data(written(folder / "figure.data", b"\x89PNG\r\n\0\0")),
        "figure.data: expected a text file .*, got bytes that are none",
    ),
    (
        "a specification that is no text",
        lambda folder: delve.read_data(write(folder), spec=written(folder / "other.spec", b"1 sex\0")),
        "expected a text file .*, got bytes that are none",
    ),
    (
        "a specification of other data",
        delve_file(spec=SPEC.replace("  4 rings    c  0..29\n", "")),
        "Dataset.data: expected 3 values per case, one per attribute, got 4 in row 0; correct the row or the spec",
    ),
    ("target by a text of a number", delve_file(target="4"), "a target among the columns sex, .*, got '4'"),
    ("target by no text", delve_file(target=""), "a target among the columns sex, .*, got ''"),
    ("target by a flag", delve_file(target=True), "among the attributes 1 to 4, got True"),
    ("target by a fraction", delve_file(target=2.0), "among the attributes 1 to 4, got 2.0"),
    ("targets", delve_file(target=["rings"]), r"among the attributes 1 to 4, got \['rings'\]"),
    ("task", delve_file(task="forest"), "Dataset.data: expected .*'regression'.*, got 'forest'"),
]


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize(("call", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_input_has_its_sentence(tmp_path, call, message):
    with pytest.raises(ValueError, match=message) as error:
        call(tmp_path)
    sentence = str(error.value).removeprefix(f"{tmp_path}/")
    assert "expected " in sentence
    assert ", got " in sentence
    assert "; " in sentence  # what to do
    assert not sentence.endswith(".")
    assert "\n" not in sentence


MISSING = {
    "cases": lambda folder: delve.read_data(folder / "none.data"),
    "specification": lambda folder: delve.read_data(write(folder), spec=folder / "none.spec"),
}


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize("path", [None, 3, b"a", ["a"], 1.5], ids=str)
def test_a_path_is_asked_for(tmp_path, path):
    with pytest.raises(TypeError, match="expected the path of a file, got .*; give it as text"):
        delve.read_data(path)
    if path is not None:
        with pytest.raises(TypeError, match="expected the path of a file, got .*; give it as text"):
            delve.read_data(write(tmp_path), spec=path)


def test_lines_may_end_as_on_windows(tmp_path):
    plain = delve.read_data(write(tmp_path))
    equal(delve.read_data(write(tmp_path, CASES.replace("\n", "\r\n"), SPEC.replace("\n", "\r\n"))), plain)


def test_an_attribute_with_an_interval_is_a_number_however_few_values_it_has(tmp_path):
    few = "".join(f"M 0.{number}1 1 {number % 3}\n" for number in range(60)).replace("M", "F", 30)
    data = delve.read_data(write(tmp_path, few.replace(" 1 ", " 0 ", 20)))
    assert (data.task, data.classes) == ("regression", ())


@pytest.mark.parametrize("call", MISSING.values(), ids=MISSING)
def test_missing_file_is_named(tmp_path, call):
    with pytest.raises(FileNotFoundError, match=r"expected a file, got (none|a folder); check the path") as error:
        call(tmp_path)
    assert str(tmp_path) in str(error.value)
