"""The script that says what became slower between two result files."""

import re
import subprocess
import sys

import pytest
from scripts import BENCHMARKS

NETWORKS = (BENCHMARKS / "results" / "speed_networks.txt").read_text()
LINEAR = (BENCHMARKS / "results" / "speed_linear.txt").read_text()


def compared(tmp_path, before, after, *words):
    """Exit code, standard output and standard error."""
    for name, text in (("before", before), ("after", after)):
        (tmp_path / name).write_text(text)
    command = [sys.executable, BENCHMARKS / "compare_speed.py", tmp_path / "before", tmp_path / "after", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def times_as_long(text, factor, row=r"[^\n]*?"):
    """A result file in which every time of some rows is longer."""

    def longer(line):
        return line[1] + re.sub(r"\d+\.\d+(?!x)", lambda number: f"{float(number[0]) * factor:.3f}", line[2])

    return re.sub(rf"(?m)^({row}(?=  ))(.*)$", longer, text)


@pytest.mark.parametrize("text", [NETWORKS, LINEAR], ids=["networks", "linear"])
def test_a_slower_machine_is_no_change(text, tmp_path):
    assert compared(tmp_path, text, text)[0] == 0
    code, printed, _ = compared(tmp_path, text, times_as_long(text, 1.7))
    assert code == 0
    assert "1.70 times" in printed
    assert "0 slower" in printed


def test_one_row_that_became_slower_is_found(tmp_path):
    code, printed, _ = compared(tmp_path, NETWORKS, times_as_long(NETWORKS, 1.3, "jaxgen R=64"))
    assert code == 1
    assert "8 slower" in printed  # one row of four columns, on one core and on two
    assert printed.count("jaxgen R=64") == 8
    assert printed.count("x 1.30") >= 6  # the others by the rounding of printed times
    assert compared(tmp_path, NETWORKS, times_as_long(NETWORKS, 1.3, "jaxgen R=64"), "--threshold", "0.5")[0] == 0


@pytest.mark.parametrize("after", [LINEAR, "", "no times here\n"], ids=["other kind", "empty", "text"])
def test_files_that_cannot_be_compared_are_refused(after, tmp_path):
    code, printed, error = compared(tmp_path, NETWORKS, after)
    assert (code, printed) == (2, "")
    assert error.startswith("expected two result files of the same kind")
