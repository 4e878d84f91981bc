"""Mutants of the package, each with one small mistake in one function, and whether the tests notice.

    .venv/bin/python tests/mutate.py --sample 40 --seed 1 --jobs 2
    .venv/bin/python tests/mutate.py --only resample

A mutant flips a comparison, swaps two operators or two names, drops a factor or a sign, counts one too many, or takes
another axis. All that can be made are listed in the order of the files; a sample takes as many of every room as its
share of them, and the same ones for the same seed. Each mutant is made in a copy of the checkout, where the tests of
its room run until one fails; a mutant that ends in an error or takes too long is killed too. What is printed last, the
share that was killed, is the score. Not a test itself: a mutant takes from some seconds to some minutes.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
TESTS = {
    "algebraic": "algebraic* approximate* minimised*",
    "cli": "command_line* delve_command* experiment*",
    "datasets": "datasets* bad_input* missing* hostile_data*",
    "delve": "delve*",
    "engine": "assess* runs* units* predict* learners* bad_input*",
    "engine/kept": "kept*",
    "engine/pieces": "pieces* kept*",
    "engine/program": "kept* pieces* doors* assess*",
    "learn": "learners* bad_input* doors*",
    "learn/bayes": "bayes* predictive*",
    "learn/case_problem": "logistic* wide*",
    "learn/classes": "logistic* wide*",
    "learn/coordinates": "logistic* wide*",
    "learn/distances": "neighbours*",
    "learn/external": "external*",
    "learn/external_rows": "external*",
    "learn/linear": "learners* minimised* precision*",
    "learn/logistic": "logistic* minimised*",
    "learn/logistic_cases": "logistic* wide* filled*",
    "learn/logistic_fit": "logistic* minimised*",
    "learn/logistic_rows": "logistic* wide* filled*",
    "learn/neighbours": "neighbours* learners*",
    "learn/network": "network* objective* descent* conjugate* learners* neal*",
    "learn/newton": "logistic*",
    "learn/per_input": "per_input*",
    "learn/ranked": "neighbours*",
    "learn/ridge": "ridge* learners*",
    "learn/search": "per_input* adaptive*",
    "learn/shrinkage": "ridge* tuned*",
    "learn/text": "learner_text*",
    "learn/wrap": "wrap* tuned* adaptive* missing* neighbours* learners* conjugate*",
    "loss": "loss* predictive*",
    "plot": "plot* hostile_figures*",
    "report": "report*",
    "resample": "resample* drawn* splitters* strata*",
    "simulate": "simulate* hostile_simulate*",
    "sklearn": "estimators*",
    "stats": "design* interval* compare* estimate* strata*",
    "stats/conformal": "conformal*",
    "stats/leaving_out": "leaving_out*",
    "stats/planning": "ratios* hostile_statistics*",
    "stats/remarks": "remarks* check*",
    "stats/compare": "compare* design* multiplicity* many* task* recommended* margins* ratios* hierarchical*",
    "stats/estimate": "estimate* bootstrap* resampled* learning_curve* prediction_error* estimator_error*",
    "stats/interval": "interval* design* leaving_out* strata*",
    "stats/metrics": "metrics* of_rows* ratios*",
    "stats/worth": "worth*",
    "store": "store* runs*",
    "types": "bad_input* loss* assess* resample* store* drawn* doors* labels* rendered* learners*",
}
"""The files of tests most likely to notice a mutant of a room, or of a part of it, without `test_` and `.py`."""
COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
PAIRS = [("min", "max"), ("any", "all"), ("floor", "ceil"), ("argmin", "argmax"), ("minimum", "maximum")]
PAIRS += [("sin", "cos"), ("zeros", "ones"), ("log", "log1p"), ("exp", "expm1")]
SWAPPED = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])} | {"mean": "sum", "sum": "mean", "median": "mean"}
UNSEEN = {"cli", "plot", "report"}
"""Rooms whose mistakes are most often those of places, colours and words, which people look at; mutants of these are
made where they are asked for.
"""
SPEED = ("engine/budget.py", "engine/program.py")
"""Files whose numbers decide how fast it is and not what comes out; their comparisons and logic are mutated only."""


@dataclass(frozen=True)
class Mutant:
    """One edit: the file in the package, its function, the kind of mistake, where it is, and both texts."""

    file: str
    function: str
    kind: str
    start: int
    end: int
    old: str
    new: str
    line: int

    @property
    def room(self) -> str:
        return self.file.split("/")[0].removesuffix(".py")

    def is_of(self, part: str) -> bool:
        """Whether it is in a room or a part of one, a folder or a file without .py."""
        return self.file.startswith((f"{part}/", f"{part}.py"))

    def __str__(self) -> str:
        return f"jaxgen/{self.file}:{self.line} {self.function}, {self.kind}: {short(self.old)} -> {short(self.new)}"


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def changed(node: ast.AST, speed: bool):
    """The kinds of mistakes that can be made at a node of an expression, each with the node that it makes."""
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in COMPARED:
            yield "comparison", ast.Compare(left, [COMPARED[type(operator)]()], [right])
        case ast.BoolOp(operator, values):
            yield "logic", ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield "logic", operand
    if speed:
        return
    match node:
        case ast.BinOp(left, operator, right) if type(operator) in COMPUTED and not is_text(left, right):
            yield "operator", ast.BinOp(left, COMPUTED[type(operator)](), right)
            if isinstance(operator, ast.Mult | ast.Div):
                yield "factor", left
        case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield "sign", operand
        case ast.Constant(int() as number) if not isinstance(number, bool) and abs(number) < 1000:
            yield "number", ast.Constant(number + 1)
        case ast.Call(ast.Attribute(value, name), arguments, words) if name in SWAPPED:
            yield "name", ast.Call(ast.Attribute(value, SWAPPED[name], ast.Load()), arguments, words)
        case ast.Call(ast.Name(name), arguments, words) if name in SWAPPED:
            yield "name", ast.Call(ast.Name(SWAPPED[name], ast.Load()), arguments, words)
        case ast.Call(ast.Attribute(_, "where"), [condition, yes, no], words):
            yield "branches", ast.Call(node.func, [condition, no, yes], words)
        case ast.IfExp(test, yes, no):
            yield "branches", ast.IfExp(test, no, yes)
        case ast.keyword("axis", ast.Constant(0 | 1 | -1 as axis)):
            yield "axis", ast.keyword("axis", ast.Constant({0: 1, 1: 0, -1: -2}[axis]))


def is_text(*nodes: ast.AST) -> bool:
    """Whether one of some operands is a text."""
    return any(isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str) for node in nodes)


def expressions(node: ast.AST):
    """Nodes inside a function that compute something, but for annotations, texts of messages and documentation."""
    for name, value in ast.iter_fields(node):
        for inner in value if isinstance(value, list) else [value]:
            skipped = name in ("annotation", "returns", "decorator_list", "defaults", "kw_defaults", "type_params")
            if not isinstance(inner, ast.AST) or skipped or isinstance(inner, ast.JoinedStr | ast.Raise | ast.Assert):
                continue
            yield inner
            yield from expressions(inner)


def functions(tree: ast.Module):
    """Every function and method of a file that stands in no other, by its name in the file."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{part.name}", part) for part in node.body if isinstance(part, ast.FunctionDef))


def mutants() -> list[Mutant]:
    """All that can be made, by file and place."""
    found = []
    for path in sorted((ROOT / "jaxgen").rglob("*.py")):
        file, source = path.relative_to(ROOT / "jaxgen").as_posix(), path.read_text()
        lines = source.encode().splitlines(keepends=True)
        before = [0]
        for line in lines:
            before.append(before[-1] + len(line))
        for name, function in functions(ast.parse(source)):
            for node in expressions(function):
                for kind, new in changed(node, file in SPEED):
                    start = before[node.lineno - 1] + node.col_offset
                    end = before[node.end_lineno - 1] + node.end_col_offset
                    old, text = source.encode()[start:end].decode(), ast.unparse(new)
                    text = text if isinstance(new, ast.keyword) else f"({text})"
                    found.append(Mutant(file, name, kind, start, end, old, text, node.lineno))
    return found


def sampled(made: list[Mutant], number: int, seed: int) -> list[Mutant]:
    """As many of every room as its share of all, at least one, spread over its functions before any has two."""
    rooms = {room: [mutant for mutant in made if mutant.room == room] for room in sorted({m.room for m in made})}
    chosen = []
    for room, own in rooms.items():
        draw = random.Random(f"{seed} {room}")
        order = draw.sample(own, len(own))
        turn, times = {}, {}
        for mutant in order:
            key = mutant.file, mutant.function
            turn[mutant] = times[key] = times.get(key, 0) + 1
        order.sort(key=turn.get)
        chosen += order[: max(1, round(number * len(own) / len(made)))]
    return chosen


def test_files(mutant: Mutant) -> list[str]:
    """The files of tests to run for a mutant: those of the longest part of its path that has an entry."""
    words = mutant.file.removesuffix(".py").split("/")
    parts = ["/".join(words[:length]) for length in range(len(words), 0, -1)]
    patterns = next((TESTS[part] for part in parts if part in TESTS), "house*")
    files = [path.name for pattern in patterns.split() for path in sorted((ROOT / "tests").glob(f"test_{pattern}.py"))]
    return [f"tests/{name}" for name in dict.fromkeys(files)]


def copied(folder: Path) -> Path:
    """A copy of the checkout, with what its tests have compiled."""
    for name in ("jaxgen", "tests", "docs", "notebooks", "pyproject.toml", "README.md", "CHANGELOG.md", ".cache"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).is_file():
            shutil.copy(ROOT / name, folder / name)
    return folder


def outcome(mutant: Mutant, folder: Path, limit: float) -> str:
    """What its tests say: survived, killed by a test, or killed by the limit of time."""
    target = folder / "jaxgen" / mutant.file
    source = target.read_bytes()
    target.write_bytes(source[: mutant.start] + mutant.new.encode() + source[mutant.end :])
    command = [
        sys.executable,
        "-P",
        "-B",
        "-m",
        "pytest",
        "-x",
        "-q",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--timeout=180", "-m", "not slow", *test_files(mutant)]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return "killed, too slow"
    finally:
        target.write_bytes(source)
    if done.returncode == 0:
        return "SURVIVED"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return f"killed by {failed[0].split(' - ')[0].split(' ', 1)[1]}" if failed else "killed, no test began"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", metavar="ROOM", help="of one room or part of it only, for example resample or learn/wrap"
    )
    parser.add_argument("--sample", type=int, metavar="N", default=100, help="how many, about; 0 for all")
    parser.add_argument("--seed", type=int, metavar="S", default=0, help="which sample")
    parser.add_argument("--jobs", type=int, metavar="J", default=2, help="mutants at a time")
    parser.add_argument("--limit", type=float, metavar="SECONDS", default=900, help="longest time for one mutant")
    parser.add_argument("--list", action="store_true", help="print the sample only")
    chosen = parser.parse_args()
    made = [m for m in mutants() if (m.room not in UNSEEN if chosen.only is None else m.is_of(chosen.only))]
    if not made:
        parser.error(f"expected a room of the package, got {chosen.only}; choose one of {', '.join(TESTS)}")
    some = sampled(made, chosen.sample, chosen.seed) if chosen.sample else made
    print(f"{len(some)} of {len(made)} mutants, seed {chosen.seed}", flush=True)
    if chosen.list:
        print(*some, sep="\n")
        return
    with tempfile.TemporaryDirectory() as place:
        folders = Queue()
        for job in range(chosen.jobs):
            folders.put(copied(Path(tempfile.mkdtemp(dir=place, prefix=str(job)))))

        def tried(mutant: Mutant) -> str:
            folder, began = folders.get(), time.monotonic()
            try:
                said = outcome(mutant, folder, chosen.limit)
            finally:
                folders.put(folder)
            print(f"{said} [{time.monotonic() - began:.0f} s]: {mutant}", flush=True)
            return said

        with ThreadPoolExecutor(chosen.jobs) as pool:
            said = list(pool.map(tried, some))
    killed = sum(one.startswith("killed") for one in said)
    print(f"killed {killed} of {len(said)} ({killed / len(said):.0%})")


if __name__ == "__main__":
    main()
