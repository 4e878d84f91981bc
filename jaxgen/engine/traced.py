"""What a traced program says of the work in it."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax

from jaxgen.types.learner import RARE

LAPACK = {
    *("cholesky", "cholesky_update", "eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product", "lu"),
    *("ormqr", "qr", "schur", "svd", "triangular_solve", "tridiagonal", "tridiagonal_solve", "ffi_call"),
    *("pure_callback", "io_callback", "debug_callback"),
}
"""Primitives that on a CPU call LAPACK, or other foreign code, for a batch: a guess before anything is lowered, which
sets the size of chunks. What decides is the lowered program, see `jaxgen.engine.program`.
"""

_FEW_ROUNDS = 32
"""Loops of a known number of rounds up to this do not count as loops."""

_TRANSCENDENTAL = frozenset({"tanh", "logistic", "exp", "log", "log1p", "expm1", "erf", "sin", "cos", "pow"})
_COSTLY = 8
"""These functions cost as much as so many additions."""

FACTORISATIONS = {
    **dict.fromkeys(("eigh", "svd"), 20),
    **dict.fromkeys(("cholesky", "geqrf", "householder_product", "lu", "qr", "triangular_solve"), 1),
}
"""Operations of decompositions and solutions for each number in a matrix and each of its columns, roughly."""

_SORTINGS = {"sort", "top_k"}
"""Primitives that cost some operations for each number and each doubling of how many there are."""


class Rows(NamedTuple):
    """Rows of a traced program, and how many weightings of the cases a learner makes of each."""

    rows: int
    weightings: int = 1

    def run_along(self, length: int) -> bool:
        """Whether an axis goes through them, or through several weightings of each."""
        return length > 0 and length % self.rows == 0 and self.weightings % (length // self.rows) == 0


def widest_in(equations: Iterator[Any], rows: Rows) -> int:
    """Bytes of a row in the largest array [...] that some equations of a program of some rows make."""
    sizes = (
        math.prod(v.aval.shape) * v.aval.dtype.itemsize
        for equation in equations
        for v in equation.outvars
        if rows.rows == 1 or any(map(rows.run_along, v.aval.shape))
    )
    return max(1, max(sizes, default=1) // rows.rows)


def widest_read(loops: Iterator[Any]) -> int:
    """Bytes of the widest array that some loops of a program of one row are given."""
    return max((math.prod(v.aval.shape) * v.aval.dtype.itemsize for loop in loops for v in loop.invars), default=0)


def operations_in(program: Any, rounds: int | None, rows: Rows | None = None, shared: bool = False) -> float:
    """Additions and multiplications of arrays [...] in a traced program, roughly, without what is `RARE`.

    Args:
      program: traced.
      rounds: what all its loops, one within the other, make together; None takes loops of a known number of rounds as
        they are, and 100 for the others.
      rows: those that it is for; a loop of so many rounds goes through them, see `in_turn`.
      shared: only those of arrays none of whose axes goes through the rows, outside of such a loop.
    """
    equations = getattr(program, "jaxpr", program).eqns
    return math.fsum(operations_of(equation, rounds, rows, shared) for equation in equations)


def operations_of(equation: Any, rounds: int | None, rows: Rows | None = None, shared: bool = False) -> float:
    """The same of a single equation, whose arrays have any shapes [...]."""
    name, inner = equation.primitive.name, list(programs_in(equation))
    if equation.params.get("name") == RARE:
        return 0.0
    if inner:
        times, within = 1.0, rounds
        if name == "scan" and rows is not None and rows.run_along(equation.params["length"]):
            times = 0.0 if shared else equation.params["length"]
        elif name in ("while", "scan"):
            length = equation.params.get("length", 100)
            times, within = (rounds, 1) if rounds is not None else (length, None)
        return times * math.fsum(operations_in(each, within, rows, shared) for each in inner)
    if shared and rows is not None and any(rows.run_along(n) for v in equation.outvars for n in v.aval.shape):
        return 0.0
    size = float(max((math.prod(v.aval.shape) for v in equation.outvars), default=1))
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        size *= 2 * math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
    if name in FACTORISATIONS:
        size *= FACTORISATIONS[name] * max(equation.invars[0].aval.shape[-2:])
    if name in _SORTINGS:
        given = equation.invars[0].aval
        size = len(equation.invars) * math.prod(given.shape) * 2 * math.log2(max(2, *given.shape))
    return size * (_COSTLY if name in _TRANSCENDENTAL else 1)


def loops(program: Any) -> Iterator[Any]:
    """All loops of a traced program, but for those of few rounds and what is `RARE`."""
    for equation in equations_in(program, rare=False):
        if equation.primitive.name == "while" or (
            equation.primitive.name == "scan" and equation.params["length"] > _FEW_ROUNDS
        ):
            yield equation


def equations_of_loops(program: Any) -> Iterator[Any]:
    """The equations inside these loops."""
    for loop in loops(program):
        yield from _inner(loop, rare=False)


def equations_in(program: Any, rare: bool = True) -> Iterator[Any]:
    """All equations of a traced program, those of inner programs too, with or without what is `RARE`."""
    for equation in getattr(program, "jaxpr", program).eqns:
        if rare or equation.params.get("name") != RARE:
            yield from with_inner(equation, rare)


def with_inner(equation: Any, rare: bool = True) -> Iterator[Any]:
    """An equation and all those of the programs that it holds."""
    yield equation
    yield from _inner(equation, rare)


def _inner(equation: Any, rare: bool = True) -> Iterator[Any]:
    """All equations of the programs that an equation holds."""
    for program in programs_in(equation):
        yield from equations_in(program, rare)


def shapes_of(variables: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
    """Shapes [...] and types of some variables of a program, as what a function of them can be traced with."""
    return [
        jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype, weak_type=getattr(v.aval, "weak_type", False))
        for v in variables
    ]


def programs_in(equation: Any) -> Iterator[Any]:
    """The programs that an equation holds: the body of a loop, a branch, a function."""
    for value in equation.params.values():
        for inner in value if isinstance(value, tuple | list) else (value,):
            if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                yield inner
