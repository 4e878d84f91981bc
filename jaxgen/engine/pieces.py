"""A traced program in pieces that are compiled by themselves, side by side, each in the way that its work deserves.

Nearly all work of a training is in a loop or two, and most of the code around it: drawing starts, changing units, final
gradients, predictions. Code takes as long to compile where it runs once as where it runs a thousand times. So long
loops become programs of their own, which XLA writes out in the way that runs fastest, and what comes before and after
them others, which it writes out in the way that takes least time.

Long decompositions become programs of their own too. LAPACK is called for the matrices of a batch on all cores, but on
a single one where XLA comes to it from a thread of its pool, as it does once it has waited for something before it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var, jaxpr_as_fun

DECOMPOSITIONS = frozenset({"eigh", "svd"})
"""Primitives that call LAPACK for every matrix of a batch, and take long for it."""

_APART = frozenset({"while", "scan"}) | DECOMPOSITIONS
"""Primitives that are pieces of their own where they take long."""

_CALLS = {**dict.fromkeys(("jit", "pjit", "closed_call", "core_closed_call"), "jaxpr"), "custom_vmap_call": "call"}
"""Primitives that only call a program, and the parameter that it is."""


@dataclass(frozen=True)
class Piece:
    """A part of a program.

    Attributes:
      program: traced.
      reads: numbers of the values that it takes. The arguments of the whole program have the first numbers.
      writes: numbers of the values that it gives.
      operations: its arithmetic, of one call.
      apart: whether it is long loops or decompositions and nothing else.
    """

    program: ClosedJaxpr
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    operations: float
    apart: bool

    def lowered(self) -> Any:
        """Ready to be compiled."""
        shapes = [
            jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype, weak_type=getattr(v.aval, "weak_type", False))
            for v in self.program.jaxpr.invars
        ]
        return jax.jit(jaxpr_as_fun(self.program)).lower(*shapes)


@dataclass(frozen=True)
class Chain:
    """Compiled pieces, one after the other.

    Attributes:
      calls: compiled pieces.
      reads, writes: of each; see `Piece`.
      results: numbers of the values that the whole program gives.
      tree: their structure.
    """

    calls: tuple[Callable[..., Any], ...]
    reads: tuple[tuple[int, ...], ...]
    writes: tuple[tuple[int, ...], ...]
    results: tuple[int, ...]
    tree: Any

    def __call__(self, *arguments: Any) -> Any:
        """What the whole program gives for these arguments."""
        values = dict(enumerate(arguments))
        last = {number: place for place, reads in enumerate(self.reads) for number in reads}
        for place, (call, reads, writes) in enumerate(zip(self.calls, self.reads, self.writes, strict=True)):
            values.update(zip(writes, call(*(values[number] for number in reads)), strict=True))
            for number in reads:  # memory of what nobody reads any more is free for the next piece
                if last[number] == place and number not in self.results:
                    values.pop(number, None)
        return jax.tree.unflatten(self.tree, [values[number] for number in self.results])


def divided(
    program: ClosedJaxpr, operations: Callable[[Any], float], long: float
) -> tuple[list[Piece], tuple[int, ...]]:
    """The pieces of a program, in the order in which they are to run.

    Args:
      program: traced, without effects.
      operations: arithmetic of an equation.
      long: a loop or decomposition of more operations is a piece, with others that can run beside it.
    Returns:
      The pieces, and the numbers of the values that the program gives; see `Piece`.
    """
    flat = _Flat(operations, long)
    arguments = [Var(v.aval) for v in program.jaxpr.invars]
    results = flat.add(program, arguments)
    # Of these pieces nobody knows names of arguments and results.
    origin = program.jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    return _pieces(flat, arguments, results, origin)


class _Flat:
    """The equations of a program, those of programs that hold a long one in place of the call."""

    def __init__(self, operations: Callable[[Any], float], long: float):
        self.operations, self.long = operations, long
        self.equations: list[Any] = []
        self.long_ones: list[bool] = []
        self.constants: dict[Var, Any] = {}

    def add(self, program: ClosedJaxpr, arguments: Sequence[Any]) -> list[Any]:
        """Adds the equations of a program, with variables of their own; what it gives for arguments."""
        jaxpr = program.jaxpr
        names: dict[Any, Any] = dict(zip(jaxpr.invars, arguments, strict=True))
        for v, value in zip(jaxpr.constvars, program.consts, strict=True):
            names[v] = Var(v.aval)
            self.constants[names[v]] = value

        def name(atom):
            return atom if isinstance(atom, Literal) else names[atom]

        for equation in jaxpr.eqns:
            kind, given = equation.primitive.name, [name(atom) for atom in equation.invars]
            long = self.operations(equation) > self.long
            called = equation.params.get(_CALLS.get(kind, ""))
            if long and isinstance(called, ClosedJaxpr):
                names.update(zip(equation.outvars, self.add(called, given), strict=True))
                continue
            made = [Var(v.aval) for v in equation.outvars]
            names.update(zip(equation.outvars, made, strict=True))
            self.equations.append(equation.replace(invars=given, outvars=made))
            self.long_ones.append(long and kind in _APART)
        return [name(atom) for atom in jaxpr.outvars]


def _pieces(flat: _Flat, arguments: list[Var], results: list[Any], origin: Any) -> tuple[list[Piece], tuple[int, ...]]:
    equations, long_ones = flat.equations, flat.long_ones
    # The stage of a value: how many long loops or decompositions, one after the other, it waits for.
    stage: dict[Var, int] = dict.fromkeys((*arguments, *flat.constants), 0)
    free: set[Var] = set()  # what depends on nothing, such as zeros to begin with: made again where it is used
    at: list[int] = []
    for equation, long in zip(equations, long_ones, strict=True):
        needs = [v for v in equation.invars if isinstance(v, Var)]
        at.append(max((stage[v] for v in needs), default=0))
        stage.update(dict.fromkeys(equation.outvars, at[-1] + long))
        if not long and not equation.effects and "jaxpr" not in equation.params and free.issuperset(needs):
            free.update(equation.outvars)
    # What is not needed before a later stage is made there: so less must be written down for it.
    end = max(stage.values(), default=0)
    latest: dict[Var, int] = {v: end for v in results if isinstance(v, Var)}
    groups: dict[tuple[int, bool], list[int]] = {}
    for number in reversed(range(len(equations))):
        equation, long = equations[number], long_ones[number]
        uses = [latest[v] for v in equation.outvars if v in latest]
        if not uses:  # nobody reads it
            continue
        place = at[number] if long else min(uses)
        for v in equation.invars:
            if isinstance(v, Var):
                latest[v] = min(latest.get(v, end), place)
        if not free.issuperset(equation.outvars):
            groups.setdefault((place, long), []).append(number)
    groups.setdefault((end, False), [])  # gives the results that are arguments or constants
    order = [(key, sorted(groups[key])) for key in sorted(groups)]
    makers = {v: number for number, equation in enumerate(equations) for v in equation.outvars}

    def with_free(numbers: list[int], outputs: Sequence[Any]) -> list[int]:
        """The equations with those that make what depends on nothing for them."""
        found, waiting = set(numbers), [v for number in numbers for v in equations[number].invars] + list(outputs)
        while waiting:
            v = waiting.pop()
            if isinstance(v, Var) and v in free and makers[v] not in found:
                found.add(makers[v])
                waiting.extend(equations[makers[v]].invars)
        return sorted(found)

    read_later: set[Var] = {v for v in results if isinstance(v, Var) and v not in free}
    drafts = []
    for key, numbers in reversed(order):
        made = [v for number in numbers for v in equations[number].outvars]
        last = key == (end, False)
        outputs = list(results) if last else [v for v in made if v in read_later]
        whole = with_free(numbers, outputs)
        inside = {v for number in whole for v in equations[number].outvars}
        used = [v for number in whole for v in equations[number].invars] + (outputs if last else [])
        inputs = list(dict.fromkeys(v for v in used if isinstance(v, Var) and v not in inside))
        read_later.update(inputs)
        drafts.append((whole, inputs, outputs, key[1]))
    numbers_of: dict[Any, int] = {v: number for number, v in enumerate(arguments)}
    pieces = []
    count = len(arguments)
    for whole, inputs, outputs, apart in reversed(drafts):
        constants = [v for v in inputs if v in flat.constants]
        inputs = [v for v in inputs if v not in flat.constants]
        writes = tuple(range(count, count + len(outputs)))
        count += len(outputs)
        reads = tuple(numbers_of[v] for v in inputs)
        numbers_of.update((v, number) for v, number in zip(outputs, writes, strict=True) if isinstance(v, Var))
        inner = [equations[number] for number in whole]
        effects = frozenset().union(*(equation.effects for equation in inner))
        jaxpr = Jaxpr(constants, inputs, outputs, inner, effects, origin)
        cost = math.fsum(flat.operations(equation) for equation in inner)
        pieces.append(Piece(ClosedJaxpr(jaxpr, [flat.constants[v] for v in constants]), reads, writes, cost, apart))
    return pieces, pieces[-1].writes
