"""The house of the package: which module may import which, how long a line may be, and what every public name must
say.
"""

import ast
import functools
import re
import tomllib
from graphlib import TopologicalSorter
from inspect import isfunction, signature
from pathlib import Path

from jaxgen import algebraic
from jaxgen.stats import compare, conformal, estimate, interval, metrics, worth

ROOT = Path(__file__).parents[1]
FILES = {path.relative_to(ROOT / "jaxgen").as_posix(): path for path in sorted((ROOT / "jaxgen").rglob("*.py"))}
WIDTH = 120
MAY_IMPORT = {
    "types": {"types", "loss"},
    "loss": {"types"},
    "store": {"types", "store"},
    "datasets": {"types", "datasets"},
    "simulate": {"types", "simulate"},
    "resample": {"types", "resample"},
    "learn": {"types", "loss", "learn"},
    "sklearn": {"types", "learn", "sklearn"},
    "algebraic": {"types", "loss", "algebraic"},
    "stats": {"types", "loss", "stats"},
    "engine": {"types", "loss", "store", "engine"},
    "plot": {"types", "stats", "plot"},
    "report": {"types", "loss", "store", "stats", "plot", "report"},
    "delve": {
        *("types", "loss", "store", "datasets", "simulate", "resample", "learn", "engine", "stats", "plot", "delve"),
    },
    "cli": {
        *("types", "loss", "store", "datasets", "simulate", "resample", "learn", "engine", "stats", "plot", "report"),
        *("delve", "cli"),
    },
}
"""Rooms of the package (a file, or a folder with all its files) and the rooms whose names they may import; `__init__`
and `__main__` import any.
"""
WITHOUT_JAX = {"stats", "plot", "report", "store"}
FAMILY = {"Finding", "Result", "Ranked"}
ARRAY = r"\b(Array|ndarray|Rows)\b"
RESULT = r"\b(Array|ndarray|Rows|Data|Plan|Losses|Predicted)\b"
SHAPE = r"\[|\b[QRNDKHMS]\b"
"""A shape in brackets, or an axis by its letter."""


def room(name):
    return name.split("/")[0].removesuffix(".py")


@functools.cache
def tree_of(name):
    return ast.parse(FILES[name].read_text(), name)


def at(name, node):
    return f"jaxgen/{name}:{node.lineno}"


def imports(name):
    """Every import of a file, also inside functions, as (statement, dotted name)."""
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, f"{'.' * node.level}{node.module or ''}.{alias.name}") for alias in node.names)


def inner(name):
    """The imports of a file from the package, as (statement, file of the package)."""
    for node, dotted in imports(name):
        if dotted.split(".")[0] == "jaxgen":
            words = dotted.split(".")[1:]
            tails = ("/".join(words[:length]) for length in range(len(words), -1, -1))
            yield (
                node,
                next(
                    file
                    for tail in tails
                    for file in (f"{tail}.py", f"{tail}/__init__.py".lstrip("/"))
                    if file in FILES
                ),
            )


def outer(name):
    """The imports of a file from elsewhere, as (statement, first word)."""
    return ((node, dotted.split(".")[0]) for node, dotted in imports(name))


def public(name):
    """Public functions, classes and methods of a file, without the further signatures of one function."""
    for node in tree_of(name).body:
        if any(ast.unparse(decorator) == "overload" for decorator in getattr(node, "decorator_list", ())):
            continue
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            yield from (
                part
                for part in getattr(node, "body", ())
                if isinstance(node, ast.ClassDef)
                and isinstance(part, ast.FunctionDef)
                and not part.name.startswith("_")
            )


def none_of(violations, rule):
    found = list(violations)
    assert not found, "\n".join([rule, *found])


def test_rooms_import_only_along_the_arrows():
    checked = [name for name in FILES if room(name) not in ("__init__", "__main__")]
    none_of(
        (f"jaxgen/{name}:1" for name in checked if room(name) not in MAY_IMPORT),
        "expected every module in MAY_IMPORT, which says what it may import; add:",
    )
    bad = (
        f"{at(name, node)} imports {file}"
        for name in checked
        for node, file in inner(name)
        if room(file) not in MAY_IMPORT[room(name)]
    )
    none_of(bad, "expected imports along the arrows of the house only, got:")
    none_of(
        (at(name, node) for name in FILES for node, word in outer(name) if not word),
        "expected imports by full names, got relative ones:",
    )


def test_no_two_files_import_each_other():
    graph = {name: {file for _, file in inner(name)} for name in FILES}
    assert len(list(TopologicalSorter(graph).static_order())) == len(FILES)  # a CycleError names the files


def test_jax_and_flax_stay_where_they_belong():
    jax = (
        at(name, node)
        for name in FILES
        if room(name) in WITHOUT_JAX
        for node, word in outer(name)
        if word in ("jax", "jaxlib", "flax", "optax")
    )
    none_of(jax, "expected statistics, figures, reports and files without JAX, got imports of it:")
    flax = (
        at(name, node)
        for name in FILES
        if name != "learn/network/nets.py"
        for node, word in outer(name)
        if word == "flax"
    )
    none_of(flax, "expected flax in learn/network/nets.py only, got:")


def test_lines_are_short():
    """Of the package, the tests and the benchmarks, so that two files fit side by side on a screen."""
    files = [path for folder in ("jaxgen", "tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
    wide = (
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > WIDTH
    )
    none_of(wide, f"expected lines of at most {WIDTH} characters, got:")


def test_no_name_is_both_a_module_and_something_in_it():
    """`from jaxgen.x import x` would hide the module behind the function."""
    same = (
        f"{at(name, node)} {node.name}"
        for name in FILES
        for node in public(name)
        if node.name == Path(name).stem or node.name == Path(name).parent.name
    )
    none_of(same, "expected functions and classes with other names than their modules, got:")


def test_public_names_are_documented():
    none_of(
        (f"jaxgen/{name}:1" for name in FILES if not ast.get_docstring(tree_of(name))),
        "expected a docstring that says what the module is for, got none in:",
    )
    none_of(
        (f"{at(name, node)} {node.name}" for name in FILES for node in public(name) if not ast.get_docstring(node)),
        "expected a docstring, got none in:",
    )


def test_public_functions_tell_their_shapes():
    """Except the two methods that `Learner` documents for all learners."""

    def silent(node):
        if isinstance(node, ast.ClassDef) or node.name in ("fit", "predict"):
            return False
        taken = " ".join(
            ast.unparse(a.annotation)
            for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if a.annotation
        )
        given = ast.unparse(node.returns) if node.returns else ""
        return (re.search(ARRAY, taken) or re.search(RESULT, given)) and not re.search(
            SHAPE, ast.get_docstring(node) or ""
        )

    none_of(
        (f"{at(name, node)} {node.name}" for name in FILES for node in public(name) if silent(node)),
        "expected the shapes of arrays, as [R, N], in the docstring, got none in:",
    )


def test_options_of_statistics_are_given_by_name_in_one_order():
    """Of every function that `jaxgen.stats` and `jaxgen.algebraic` offer, what has a default is keyword-only, and what
    they have in common comes last, in one order.
    """
    order = ("level", "alternative", "target", "resamples", "seed", "labels")

    def wrong(function):
        options = [name for name, p in signature(function).parameters.items() if p.default is not p.empty]
        common = [name for name in options if name in order]
        by_name = all(signature(function).parameters[name].kind.name == "KEYWORD_ONLY" for name in options)
        return (
            not by_name or common != sorted(common, key=order.index) or common != options[len(options) - len(common) :]
        )

    offered = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in (estimate, interval, compare, conformal, metrics, metrics.roc, worth, algebraic)
        for name in getattr(module, "__all__", dir(module))
        if isfunction(getattr(module, name)) and getattr(module, name).__module__.startswith(module.__name__)
    }
    assert len(offered) > 80
    by_place = {
        "jaxgen.algebraic.full_fit",  # the loss, positional in assess, and so here
        "jaxgen.stats.compare.pairwise",  # the test, which most calls name
    }
    internal = {name for name in offered if name.rpartition(".")[2].startswith("_")}
    bad = (name for name, function in offered.items() if name not in by_place | internal and wrong(function))
    none_of(bad, f"expected options by name only, the common ones last as {order}, got:")


def test_results_are_one_family():
    """Every class of `jaxgen.stats` with a method and a p-value or an estimate is a `Finding`."""
    classes = (
        (name, node)
        for name in FILES
        if room(name) in ("stats", "algebraic", "delve")
        for node in public(name)
        if isinstance(node, ast.ClassDef)
    )
    own = (
        f"{at(name, node)} {node.name}"
        for name, node in classes
        if {"estimate", "p_value", "standard_error"} & {a.target.id for a in node.body if isinstance(a, ast.AnnAssign)}
        and not any("NamedTuple" in ast.unparse(base) or base.id in FAMILY for base in node.bases)
    )
    none_of(own, "expected results that are a Finding, as Result is, got others:")


def test_version_is_the_newest_of_the_changelog():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    number, heading = next((number, line) for number, line in enumerate(lines, 1) if re.match(r"## \d", line))
    assert heading.split()[1] == version, (
        f"CHANGELOG.md:{number} has {heading!r} as its newest version, pyproject.toml has {version}; "
        "correct one of them"
    )
