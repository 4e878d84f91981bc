"""What people see first: the code of README runs as printed, and the pages of docs are true."""

import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import pytest

import jaxgen
from jaxgen import algebraic, plot, stats
from jaxgen.delve import analysis
from jaxgen.stats import compare, conformal, estimate, interval, metrics, planning, worth

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "which_interval_which_test.md"
CHECKS = ROOT / "docs" / "checks.md"
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
GALLERY = sorted((ROOT / "docs" / "gallery_scripts").glob("plot_*.py"))
BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n)?```python\n(.*?)```", re.DOTALL)
"""Code of a page, and why it is not run, if it is not."""


def run_as_printed(page):
    """Runs the code of a page from top to bottom."""
    names = {"__name__": page.stem}
    with jax.numpy_dtype_promotion("standard"):  # as users have it; optax mixes types inside
        for reason, block in BLOCK.findall(page.read_text()):
            if not reason:
                exec(compile(block, page.name, "exec"), names)
    plt.close("all")


def test_readme_runs_and_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_as_printed(README)
    printed = capsys.readouterr().out
    said = README.read_text().split("```\n\n```\n")[1].split("```")[0]
    words = r"-?\d[\d.]*"  # networks of another machine end elsewhere in the last digits
    assert re.sub(words, "0", printed) == re.sub(words, "0", said)
    for own, ours in zip(re.findall(words, printed), re.findall(words, said), strict=True):
        assert float(own.rstrip(".")) == pytest.approx(float(ours.rstrip(".")), rel=0.1, abs=0.1)
    assert (tmp_path / "distribution.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES[1:] if BLOCK.search(page.read_text())], ids=lambda page: page.name
)
def test_pages_run_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_as_printed(page)


@pytest.mark.slow
@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_scripts_of_the_gallery_draw_one_figure(script):
    with jax.numpy_dtype_promotion("standard"):
        runpy.run_path(str(script))
    assert len(plt.get_fignums()) == 1
    plt.close("all")


def test_every_figure_is_in_the_gallery():
    figures = {name for name in plot.__all__ if inspect.isfunction(getattr(plot, name))} | {"task_figure"}
    assert {script.stem.removeprefix("plot_") for script in GALLERY} == figures
    assert [script for script in GALLERY if script.stem.removeprefix("plot_") + "(" not in script.read_text()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_tables_of_the_guide_are_those_of_the_results():
    """Rows of a method, a plan, the trainings, and numbers with three decimals."""
    lines = {
        " ".join(line.split())
        for name in ("intervals", "intervals_earlier", "tests", "jackknife")
        for line in (ROOT / "benchmarks" / "results" / f"calibration_{name}.txt").read_text().splitlines()
    }
    rows = [
        " ".join(row.strip("| ").split(" | "))
        for row in GUIDE.read_text().splitlines()
        if re.search(r"\| \d+ \| \d\.\d{3} ", row)
    ]
    assert len(rows) > 30
    assert [row for row in rows if row not in lines] == []


def test_every_public_module_has_a_page_of_reference():
    pages = {path.stem: path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md")}
    listed = set(pages.pop("index").split("```{toctree}")[1].split("```")[0].split()) - {":maxdepth:", "1"}
    assert listed == set(pages)
    named = {re.search(r"automodule:: ([\w.]+)\n", text)[1] for text in pages.values()}
    public = {"jaxgen", "jaxgen.report", "jaxgen.stats.metrics.roc"}
    for module in (jaxgen, stats):
        public |= {f"{module.__name__}.{name}" for name in module.__all__ if inspect.ismodule(getattr(module, name))}
    assert named == public - {"jaxgen.stats"}


@pytest.mark.slow
@pytest.mark.timeout(600)  # every public name is imported and every notebook laid out
def test_the_site_is_made_without_a_warning(tmp_path):
    pytest.importorskip("sphinx", reason="the site needs what ./run docs installs")
    made = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-E", "-W", "-b", "html", ROOT / "docs", tmp_path / "html"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert "Nadeau" in (tmp_path / "html" / "reference" / "compare.html").read_text()


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
        "conformal": conformal,
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
