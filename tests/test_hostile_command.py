"""The command line given what nobody should: damaged files, modules that do not run, streams that are closed."""

import bz2
import gzip
import lzma
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from jaxgen.cli.parser import main

pytestmark = pytest.mark.one_device

TEXT = "a,b,y\n" + "".join(f"{a},{b},{a - b}\n" for a, b in np.random.default_rng(0).normal(size=(40, 2)).round(3))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a good file."""
    monkeypatch.chdir(tmp_path)
    Path("good.csv").write_text(TEXT)
    yield tmp_path
    plt.close("all")


def refused(capsys, words):
    """The one line on standard error of a command that is refused, and leaves nothing."""
    before = sorted(path.name for path in Path().iterdir() if path.name != "__pycache__")
    assert main(words) == 2
    message = capsys.readouterr().err
    assert message.startswith("jaxgen: ")
    assert message.count("\n") == 1, "one line"
    assert re.search(r"\bexpected .* got .*; ", message)
    assert "Traceback" not in message
    assert len(message) < 700
    assert sorted(path.name for path in Path().iterdir() if path.name != "__pycache__") == before
    return message


def zipped(*names, cut=None):
    with zipfile.ZipFile("file", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, TEXT)
    return Path("file").read_bytes()[:cut]


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


DAMAGED = {  # name of the file: its content
    "empty.csv": lambda: b"",
    "lines.csv": lambda: b"\n\n\n",
    "header.csv": lambda: b"a,b,y\n",
    "binary.csv": lambda: np.random.default_rng(0).bytes(4000),
    "every-byte.csv": lambda: bytes(range(256)) * 9,
    "latin.csv": lambda: TEXT.replace("a,", "höhe,", 1).encode("latin-1"),
    "wide.csv": lambda: TEXT.encode("utf-16"),
    "zero.csv": lambda: TEXT.encode().replace(b"0.1", b"0\x001"),
    "quote.csv": lambda: TEXT.replace("\n", '\n"', 3).encode(),
    "ragged.csv": lambda: TEXT.encode() + b"1,2,3,4,5\n",
    "cut.csv": lambda: TEXT[: TEXT.rindex(",")].encode(),
    "cut.csv.gz": lambda: gzip.compress(TEXT.encode())[:-40],
    "flipped.csv.gz": lambda: flipped(gzip.compress(TEXT.encode()), 100),
    "plain.csv.gz": lambda: TEXT.encode(),
    "cut.csv.zip": lambda: zipped("a.csv", cut=-30),
    "two.csv.zip": lambda: zipped("a.csv", "b.csv"),
    "flipped.csv.zip": lambda: flipped(zipped("a.csv"), 100),
    "plain.csv.xz": lambda: TEXT.encode(),
    "cut.csv.xz": lambda: lzma.compress(TEXT.encode())[:-40],
    "cut.csv.bz2": lambda: bz2.compress(TEXT.encode())[:-40],
    "plain.csv.tar": lambda: TEXT.encode(),
    "long-line.csv": lambda: b"a" * 10**6,
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("command", ["assess", "delve run"])
def test_a_damaged_file_is_one_line(name, command, capsys):
    content = DAMAGED[name]()
    Path("file").unlink(missing_ok=True)
    Path(name).write_bytes(content)
    words = ["assess", name] if command == "assess" else ["delve", "run", "--file", name, "--methods", "lin-1"]
    assert name in refused(capsys, [*words, "--target", "y", "--out", "out"])


@pytest.mark.parametrize("pack", ["gz", "zip", "xz", "bz2", "tar"])
def test_a_file_that_is_packed_and_whole_is_read(pack, capsys):
    pack_up = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress, "zip": lambda _: zipped("a.csv")}
    if pack == "tar":
        with tarfile.open("good.csv.tar", "w") as archive:
            archive.add("good.csv")
    else:
        Path(f"good.csv.{pack}").write_bytes(pack_up[pack](TEXT.encode()))
    refused(capsys, ["assess", f"good.csv.{pack}", "--target", "y", "--learner", "forest"])


PLACES = {
    "nothing": "none.csv",
    "a folder": ".",
    "a long name": "a" * 5000,
    "a device": "/dev/null",
    "an address": "https://example.org/file.csv",
}


@pytest.mark.parametrize("case", PLACES)
def test_what_is_no_file_is_one_line(case, capsys):
    assert "expected a file, got" in refused(capsys, ["assess", PLACES[case], "--target", "y", "--out", "out"])


MODULES = {  # an own module and a name in it -> what the line says
    "syntax error": ("def ridge(:\n", "ridge", "SyntaxError: invalid syntax"),
    "raises": ("1 / 0\n", "ridge", "ZeroDivisionError: division by zero"),
    "raises with several lines": ("raise RuntimeError('first\\nsecond')\n", "ridge", "RuntimeError: first"),
    "ends the process": ("import sys\nsys.exit(7)\n", "ridge", "SystemExit: 7"),
    "imports nothing": ("import no_such_module_anywhere\n", "ridge", "no_such_module_anywhere"),
    "has another name": ("ridge = 5\n", "bridge", "own:bridge"),
    "is no text": (b"\xff\xfe\x00", "ridge", "own:ridge"),
    "has a zero byte": (b"a = 1\x00\n", "ridge", "own:ridge"),
    "asks for memory": ("raise MemoryError\n", "ridge", "MemoryError"),
    "a number": ("ridge = 5\n", "ridge", "expected method ridge to be a learner"),
    "nothing": ("ridge = None\n", "ridge", "expected method ridge to be a learner"),
    "a class": ("from jaxgen.learn import Mean as ridge\n", "ridge", "expected method ridge to be a learner"),
}


@pytest.mark.parametrize("case", MODULES)
def test_a_module_that_does_not_run_is_one_line(case, capsys, monkeypatch):
    content, name, words = MODULES[case]
    Path("own.py").write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.delitem(sys.modules, "own", raising=False)
    command = ["delve", "run", "--file", "good.csv", "--target", "y", "--sizes", "5", "--out", "out"]
    assert main([*command, "--methods", f"own:{name}"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("jaxgen: expected ")
    assert message.count("\n") == 1
    assert words in message


@pytest.mark.parametrize("option", ["--seed", "--data-seed"])
@pytest.mark.parametrize("seed", ["4294967296", "-1", "99999999999999999999"])
def test_a_seed_beyond_32_bits_is_refused(option, seed, capsys):
    """JAX would take it modulo 2^32, and give the numbers of another seed."""
    words = ["delve", "run", "--family", "kin", "--methods", "lin-1", "--out", "out", f"{option}={seed}"]
    message = refused(capsys, words)
    assert f"expected {option} to be a whole number from 0 to 4294967295, got {seed}" in message


def test_classes_written_as_numbers_must_be_said_to_be_some(capsys):
    labels = np.arange(40) % 2
    Path("codes.csv").write_text("a,y\n" + "".join(f"{a},{y}\n" for a, y in zip(range(40), labels, strict=True)))
    words = ["delve", "run", "--file", "codes.csv", "--target", "y", "--sizes", "5", "--methods", "lin-1", "--out"]
    assert "expected task='classification' or task='regression' for 'y'" in refused(capsys, [*words, "out"])
    for task in ("regression", "classification"):
        assert main([*words, task, "--task", task, "--instances", "2"]) == 0
    assert "expected an archive" in refused(capsys, ["delve", "report", "good.csv"])


RUN = "{python} -m jaxgen assess good.csv --target y --learner mean --resamples 5 --out out"
BAD = "{python} -m jaxgen assess good.csv --target z"
STREAMS = {  # a shell's command -> exit code of jaxgen, and whether results are there
    "closed standard error": (f"{RUN} 2>&-", 0),
    "closed standard output": (f"{RUN} >&-", 0),
    "both closed": (f"{RUN} >&- 2>&-", 0),
    "a reader that has gone": (f"{RUN} | true; exit ${{{{PIPESTATUS[0]}}}}", 0),
    "a full device": (f"{RUN} >/dev/full", 0),
    "letters that are unknown": (f"PYTHONIOENCODING=ascii {RUN.replace(' y ', ' ÿ ')}", 2),
    "bad input, closed standard error": (f"{BAD} 2>&-", 2),
    "help for a reader that has gone": ("{python} -m jaxgen assess --help | true; exit ${{PIPESTATUS[0]}}", 0),
}


@pytest.mark.parametrize("case", STREAMS)
def test_streams_change_neither_the_answer_nor_the_results(case):
    """In a process of its own; what is on standard error, as far as there is one, is no traceback."""
    command, code = STREAMS[case]
    done = subprocess.run(
        ["bash", "-c", command.format(python=sys.executable)], capture_output=True, timeout=120, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr, "Exception ignored" in done.stderr) == (code, False, False)
    if command.startswith(RUN):
        assert {path.name for path in Path("out").iterdir()} >= {"1", "manifest.json", "report.txt"}
