"""What people see first: the code of README runs as printed, and the pages of docs are true."""

import inspect
import re
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import pytest

from jaxgen import algebraic
from jaxgen.delve import analysis
from jaxgen.stats import compare, estimate, interval, metrics, planning, worth

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "which_interval_which_test.md"
CHECKS = ROOT / "docs" / "checks.md"
PAGES = [ROOT / "README.md", GUIDE, CHECKS]


def test_readme_runs_as_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 3
    names = {"__name__": "readme"}
    with jax.numpy_dtype_promotion("standard"):  # as users have it; optax mixes types inside
        for block in blocks:
            exec(compile(block, "README.md", "exec"), names)
            # a thousand networks of the first block are worth optimisations, the others compile longer than they run
            jax.config.update("jax_disable_most_optimizations", True)
    jax.config.update("jax_disable_most_optimizations", False)
    plt.close("all")
    printed = capsys.readouterr().out
    assert "corrected resampled t-test" in printed
    assert "(500, 500)" in printed
    assert (tmp_path / "distribution.png").stat().st_size > 10_000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text())
    assert len(links) > 3
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_tables_of_the_guide_are_those_of_the_results():
    """Rows of a method, a plan, the trainings, and numbers with three decimals."""
    lines = {
        " ".join(line.split())
        for name in ("intervals", "intervals_earlier", "tests")
        for line in (ROOT / "benchmarks" / "results" / f"calibration_{name}.txt").read_text().splitlines()
    }
    rows = [
        " ".join(row.strip("| ").split(" | "))
        for row in GUIDE.read_text().splitlines()
        if re.search(r"\| \d+ \| \d\.\d{3} ", row)
    ]
    assert len(rows) > 30
    assert [row for row in rows if row not in lines] == []


def functions(module):
    """Names of what a module offers to call, without its classes."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", "") == module.__name__
    ]
    return [name for name in names if callable(getattr(module, name)) and not inspect.isclass(getattr(module, name))]


def test_checks_have_one_row_for_every_public_function():
    modules = {
        "estimate": estimate,
        "interval": interval,
        "compare": compare,
        "metrics": metrics,
        "metrics.roc": metrics.roc,
        "planning": planning,
        "worth": worth,
        "algebraic": algebraic,
        "delve": analysis,
    }
    found = [f"{prefix}.{name}" for prefix, module in modules.items() for name in functions(module)]
    assert len(found) > 100
    assert sorted(re.findall(r"^\| `([\w.]+)` \|", CHECKS.read_text(), re.MULTILINE)) == sorted(found)


def test_checks_name_tests_that_exist():
    lines = CHECKS.read_text().splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    assert [row for row in rows if not re.search(r"\| `test_\w+\.py::test_\w+`[^|]*\|$", row)] == []
    named = {pair for line in lines for pair in re.findall(r"`(\w+\.py)::(\w+)`", line)}
    assert len(named) > 100
    assert [
        pair
        for pair in sorted(named)
        if not re.search(rf"^def {pair[1]}\(", (ROOT / "tests" / pair[0]).read_text(), re.MULTILINE)
    ] == []
