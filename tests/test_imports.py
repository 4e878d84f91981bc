"""What is loaded when: the package and its command line begin at once, and what is heavy comes when it is used."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from jaxgen import algebraic, cli, datasets, delve, learn, resample, stats
from jaxgen.cli import assess, assess_options, delve_options
from jaxgen.cli import delve as delve_command
from jaxgen.datasets import targets
from jaxgen.types import data

HEAVY = ("jax", "pandas", "scipy", "sklearn", "matplotlib", "flax", "optax")
LEAST = """
import jax
import jaxgen as jg
from jaxgen import learn, resample, simulate
data = simulate.linear_ar(jax.random.key(0), None, 20, 2).data
jg.assess(jax.random.key(1), learn.LeastSquares(), data, resample.leave_out(jax.random.key(0), 20, 0.2, 5))
"""


def loaded(*words):
    """The modules that a Python process loads, by `-X importtime`, and its exit code."""
    done = subprocess.run([sys.executable, "-X", "importtime", *words], capture_output=True, text=True, timeout=100)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}, done.returncode


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["-c", "import jaxgen"], 0),
        (["-c", "from jaxgen import stats, learn, delve, types"], 0),
        (["-m", "jaxgen", "--help"], 0),
        (["-m", "jaxgen", "assess", "--help"], 0),
        (["-m", "jaxgen", "delve", "run", "--help"], 0),
        (["-m", "jaxgen", "assess", "--sed", "3"], 2),
        (["-m", "jaxgen", "assess", "no file.csv", "--target", "y"], 2),
        (["-m", "jaxgen", "assess", "diabetes", "--target", "y"], 2),
        (["-m", "jaxgen", "assess", "--out", "."], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_nothing_heavy_is_loaded_before_it_is_used(words, code):
    modules, answered = loaded(*words)
    assert answered == code
    assert "jaxgen" in modules or "jaxgen.cli" in modules
    assert [name for name in HEAVY if name in modules] == []


@pytest.mark.parametrize("words", [["--help"], ["assess", "--help"], ["asess"], ["assess", "--sed", "3"]], ids=" ".join)
def test_the_command_line_answers_before_numpy_is_loaded(words):
    """NumPy and the versions of packages would take half of its time."""
    modules, _ = loaded("-m", "jaxgen", *words)
    assert "jaxgen.cli.parser" in modules
    assert [name for name in ("numpy", "importlib.metadata") if name in modules] == []


def test_the_version_is_told():
    done = subprocess.run([sys.executable, "-m", "jaxgen", "--version"], capture_output=True, text=True, timeout=100)
    assert (done.stdout.strip(), done.returncode) == (version("jaxgen"), 0)


def test_least_squares_load_no_networks_and_no_figures():
    modules, code = loaded("-c", LEAST)
    assert code == 0
    assert "jax" in modules
    assert [name for name in ("matplotlib", "flax", "sklearn") if name in modules] == []


def test_statistics_alone_load_what_they_use_only():
    """For people who train elsewhere: no JAX at all, and the libraries of statistics when they are first used."""
    words = f"from jaxgen import Losses, check, loss; from jaxgen.stats import {', '.join(stats.__all__)}; import sys; "
    done = subprocess.run(
        [sys.executable, "-c", words + "print(*sys.modules)"], capture_output=True, text=True, timeout=100
    )
    modules = set(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert {f"jaxgen.stats.{name}" for name in stats.__all__} <= modules
    heavy = {"jax", "scipy.stats", "scipy.optimize", "scipy.special", "sklearn.metrics", "matplotlib", "pandas.core"}
    assert sorted(heavy & modules) == []


def test_statistics_alone_need_no_jax():
    """From predictions of any tool to an interval and a test, in a process in which JAX cannot be loaded."""
    words = """
import sys
sys.modules["jax"] = None
import numpy as np
from jaxgen import Losses, loss
from jaxgen.stats import compare, interval
random = np.random.default_rng(0)
y, fold = random.normal(size=40), np.arange(40) % 10
test = (fold == np.arange(10)[:, None]).astype(int)
labels = {"repeat": np.zeros(10, int), "fold": np.arange(10)}
one, other = (
    Losses.from_predictions(y, random.normal(size=40), 1 - test, test, loss.squared, name, labels=labels)
    for name in ("one", "other")
)
print(interval.recommend(one), compare.recommend(one, other), one.to_frame(), interval.recommend(one).to_frame())
"""
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "p = " in done.stdout


def test_all_names_are_found_when_they_are_used():
    for package in (algebraic, cli, datasets, delve, learn, resample, stats):
        for name in getattr(package, "__all__", ()):
            assert getattr(package, name) is not None
        assert set(getattr(package, "__all__", ())) <= set(dir(package))
    with pytest.raises(AttributeError, match="LeastCubes"):
        _ = learn.LeastCubes


def test_options_of_the_command_line_are_those_of_the_work():
    """They are written out, since what they name is heavy to load."""
    assert tuple(assess.SCHEMES) == assess_options.SCHEMES
    assert tuple(assess.BUNDLED) == assess_options.BUNDLED
    assert tuple(assess.LOSSES) == assess_options.LOSSES
    assert (assess_options.TASKS, assess_options.FEW) == (data.TASKS, targets.FEW)
    assert tuple(delve_command.LOSSES) == delve_options.LOSSES
    assert delve_options.TASKS == data.TASKS
    assert tuple(delve.FAMILIES) == delve_options.FAMILIES
    assert tuple(delve.METHODS) == delve_options.METHODS
    assert delve_options.SIZES == delve.SIZES
