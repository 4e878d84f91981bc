"""A traced program in pieces that are compiled by themselves, side by side, each in the way that its work deserves.

Nearly all work of a training is in a loop or two, and most of the code around it: drawing starts, changing units, final
gradients, predictions. Code takes as long to compile where it runs once as where it runs a thousand times. So long
loops become programs of their own, which XLA writes out in the way that runs fastest, and what comes before and after
them others, which it writes out in the way that takes least time.

What follows from the data alone, and is not to be had for nothing, is made once for all chunks of a run. No other core
has work meanwhile, so a long loop whose rounds do not know of each other, such as one that makes lists of neighbours,
is two that run at the same time.

Long decompositions become programs of their own too. LAPACK is called for the matrices of a batch on all cores, but on
a single one where XLA comes to it from a thread of its pool, as it does once it has waited for something before it.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, takewhile
from typing import Any, NamedTuple

import jax
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var, jaxpr_as_fun
from jax.interpreters import partial_eval

from jaxgen.engine.traced import shapes_of
from jaxgen.engine.workers import at_once

_DECOMPOSITIONS = frozenset({"eigh", "svd"})
"""Primitives that call LAPACK for every matrix of a batch, and take long for it."""

_APART = frozenset({"while", "scan"}) | _DECOMPOSITIONS
"""Primitives that are pieces of their own where they take long."""

_DEAR = 16.0
"""Operations for each number that an equation gives from which on it is better made once, and read again, than made
again where it is used.
"""

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
      once: whether it follows from arguments that are the same in all calls.
      half: 1 or 2 for the halves of loops, which run at the same time, else 0.
    """

    program: ClosedJaxpr
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    operations: float
    apart: bool
    once: bool
    half: int

    def lowered(self) -> Any:
        """Ready to be compiled."""
        return jax.jit(jaxpr_as_fun(self.program)).lower(*shapes_of(self.program.jaxpr.invars))


@dataclass(frozen=True)
class Chain:
    """Compiled pieces, one after the other, but for those that run beside the one before.

    Attributes:
      calls: compiled pieces.
      reads, writes: of each; see `Piece`.
      results: numbers of the values that the whole program gives.
      tree: their structure.
      once: so many of the first pieces give the same in all calls.
      beside: numbers of the pieces that run at the same time as the one before.
    """

    calls: tuple[Callable[..., Any], ...]
    reads: tuple[tuple[int, ...], ...]
    writes: tuple[tuple[int, ...], ...]
    results: tuple[int, ...]
    tree: Any
    once: int = 0
    beside: tuple[int, ...] = ()

    def begun(self, *arguments: Any) -> dict[int, Any]:
        """What the pieces that give the same in all calls give, by number, of the arguments that are the same."""
        values = self._after(dict(enumerate(arguments)), range(self.once))
        later = {number for reads in self.reads[self.once :] for number in reads}
        return {number: value for number, value in values.items() if number in later}

    def __call__(self, *arguments: Any, known: dict[int, Any] | None = None) -> Any:
        """What the whole program gives for these arguments; `known` is what `begun` gave."""
        given = dict(enumerate(arguments))
        first = 0 if known is None else self.once
        values = self._after((known or {}) | given, range(first, len(self.calls)))
        return jax.tree.unflatten(self.tree, [values[number] for number in self.results])

    def _after(self, values: dict[int, Any], places: Iterable[int]) -> dict[int, Any]:
        """The values by number, with those that some pieces give."""
        last = {number: place for place, reads in enumerate(self.reads) for number in reads}
        for place in places:
            if place in self.beside:
                continue
            together = [place, *takewhile(self.beside.__contains__, range(place + 1, len(self.calls)))]
            arguments = [[values[number] for number in self.reads[each]] for each in together]
            found = at_once(
                [partial(self.calls[each], *given) for each, given in zip(together, arguments, strict=True)]
            )
            for each, results in zip(together, found, strict=True):
                values.update(zip(self.writes[each], results, strict=True))
            for number in chain.from_iterable(self.reads[each] for each in together):
                if last[number] in together and number not in self.results:  # its memory is free for the next piece
                    values.pop(number, None)
        return values


def divided(
    program: ClosedJaxpr,
    operations: Callable[[Any], float],
    long: float,
    same: Collection[int] = (),
    halves: bool = False,
) -> tuple[list[Piece], tuple[int, ...]]:
    """The pieces of a program, in the order in which they are to run.

    Args:
      program: traced, without effects.
      operations: arithmetic of an equation.
      long: a loop or decomposition of more operations is a piece, with others that can run beside it.
      same: numbers of the arguments that are the same in all calls. What follows from them alone comes first, in pieces
        of its own, if it takes more operations than `long`.
      halves: whether long loops whose rounds do not know of each other become two; if some arguments are the same in
        all calls, those that follow from them alone.
    Returns:
      The pieces, and the numbers of the values that the program gives; see `Piece`.
    """
    flat, arguments, results = _flattened(program, operations, long, same if halves else None)
    # Of these pieces nobody knows names of arguments and results.
    origin = program.jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    once = flat.once(arguments[number] for number in same)
    if math.fsum(flat.costs[number] for number in once) <= long:
        once = set()
    rest = [number for number in range(len(flat.equations)) if number not in once]
    given: dict[Any, int] = {v: number for number, v in enumerate(arguments)}
    pieces: list[Piece] = []
    if once:
        made = {v for number in once for v in flat.equations[number].outvars}
        read = {v for number in rest for v in flat.equations[number].invars if isinstance(v, Var)}
        read |= {v for v in results if isinstance(v, Var)}
        first = sorted(once.union(flat.free.values()))
        pieces, given = _pieces(flat, first, given, read & made, None, origin)
    count = len(arguments) + sum(len(piece.writes) for piece in pieces)
    after, _ = _pieces(flat, rest, given, {v for v in results if isinstance(v, Var)}, results, origin, count)
    return pieces + after, after[-1].writes


def done_once(program: ClosedJaxpr, operations: Callable[[Any], float], same: Collection[int]) -> list[Any]:
    """The equations that `divided` makes pieces of that give the same in all calls, if there is much to do."""
    flat, arguments, _ = _flattened(program, operations, 0.0)
    return [flat.equations[number] for number in sorted(flat.once(arguments[number] for number in same))]


def without_unread(program: ClosedJaxpr) -> ClosedJaxpr:
    """The same program without what none of its results needs, inside of loops too: parameters that only tests read go
    through the loop over rows that predict.
    """
    jaxpr, _ = partial_eval.dce_jaxpr(program.jaxpr, [True] * len(program.jaxpr.outvars), instantiate=True)
    return ClosedJaxpr(jaxpr, program.consts)


def _flattened(
    program: ClosedJaxpr, operations: Callable[[Any], float], long: float, halved: Collection[int] | None = None
) -> tuple["_Flat", list[Var], list[Any]]:
    """The equations of a program, with variables for its arguments, and what it gives. Loops that follow from some
    arguments are `halved`, all where there are none of these.
    """
    arguments = [Var(v.aval) for v in program.jaxpr.invars]
    fixed = None if halved is None else {arguments[number] for number in halved}
    flat = _Flat(operations, long, fixed)
    return flat, arguments, flat.add(program, arguments)


class _Flat:
    """The equations of a program, those of programs that hold a long one in place of the call; what each takes, whether
    it is long and a piece of its own, which half of a loop it is, and which values depend on nothing, such as zeros to
    begin with, by the equations that make them: these are made again where they are used.
    """

    def __init__(self, operations: Callable[[Any], float], long: float, fixed: set[Var] | None = None):
        self.operations, self.long, self.fixed = operations, long, fixed
        self.equations: list[Any] = []
        self.costs: list[float] = []
        self.long_ones: list[bool] = []
        self.halves: list[int] = []
        self.constants: dict[Var, Any] = {}
        self.free: dict[Var, int] = {}

    def add(self, program: ClosedJaxpr, arguments: Sequence[Any], halves: bool = False) -> list[Any]:
        """Adds the equations of a program, with variables of their own; what it gives for arguments. Its loops may be
        the halves of one.
        """
        jaxpr = program.jaxpr
        names: dict[Any, Any] = dict(zip(jaxpr.invars, arguments, strict=True))
        for v, value in zip(jaxpr.constvars, program.consts, strict=True):
            names[v] = Var(v.aval)
            self.constants[names[v]] = value

        def name(atom):
            return atom if isinstance(atom, Literal) else names[atom]

        loops = 0
        for equation in jaxpr.eqns:
            kind, given = equation.primitive.name, [name(atom) for atom in equation.invars]
            cost = self.operations(equation)
            long = cost > self.long
            loops += kind == "scan"
            half = loops if halves and kind == "scan" else 0
            called = equation.params.get(_CALLS.get(kind, ""))
            if long and isinstance(called, ClosedJaxpr):
                names.update(zip(equation.outvars, self.add(called, given), strict=True))
                continue
            needs = [v for v in given if isinstance(v, Var)]
            halved = long and half == 0 and self.fixed is not None and self._are_fixed(needs)
            if halved and (both := _in_halves(equation)) is not None:
                names.update(zip(equation.outvars, self.add(both, given, halves=True), strict=True))
                continue
            made = [Var(v.aval) for v in equation.outvars]
            names.update(zip(equation.outvars, made, strict=True))
            if self.fixed and self._are_fixed(needs):
                self.fixed.update(made)
            if not long and not equation.effects and "jaxpr" not in equation.params and self.free.keys() >= set(needs):
                self.free.update(dict.fromkeys(made, len(self.equations)))
            self.equations.append(equation.replace(invars=given, outvars=made))
            self.costs.append(cost)
            self.long_ones.append((long or half > 0) and kind in _APART)
            self.halves.append(half)
        return [name(atom) for atom in jaxpr.outvars]

    def _are_fixed(self, needs: Iterable[Var]) -> bool:
        """Whether these follow from the arguments from which loops that are halved do, if there are some."""
        return not self.fixed or all(v in self.fixed or v in self.constants or v in self.free for v in needs)

    def with_free(self, numbers: Iterable[int], outputs: Iterable[Any]) -> list[int]:
        """Equations, with those that make what depends on nothing for them and for these results."""
        found, waiting = set(numbers), [v for number in numbers for v in self.equations[number].invars] + [*outputs]
        while waiting:
            v = waiting.pop()
            if isinstance(v, Var) and v in self.free and self.free[v] not in found:
                found.add(self.free[v])
                waiting.extend(self.equations[self.free[v]].invars)
        return sorted(found)

    def once(self, same: Iterable[Var]) -> set[int]:
        """Numbers of the equations that give the same in all calls, where these arguments are: the dear ones and those
        that they need.
        """
        fixed, found, wanted = {*same, *self.constants, *self.free}, set(), set()
        alike = []
        for equation in self.equations:
            needs = {v for v in equation.invars if isinstance(v, Var)}
            alike.append(not equation.effects and fixed >= needs)
            if alike[-1]:
                fixed.update(equation.outvars)
        for number in reversed(range(len(self.equations))):
            equation = self.equations[number]
            size = sum(math.prod(v.aval.shape) for v in equation.outvars)
            dear = alike[number] and self.costs[number] >= _DEAR * size
            if (dear or not wanted.isdisjoint(equation.outvars)) and self.free.keys().isdisjoint(equation.outvars):
                found.add(number)
                wanted.update(v for v in equation.invars if isinstance(v, Var))
        return found


class _Draft(NamedTuple):
    """A piece before its values have numbers: its equations, by number, the variables that it takes, what it gives, and
    `apart` and `half` of `Piece`.
    """

    equations: list[int]
    inputs: list[Var]
    outputs: list[Any]
    apart: bool
    half: int


def _pieces(
    flat: _Flat,
    chosen: Sequence[int],
    given: dict[Any, int],
    wanted: set[Var],
    results: list[Any] | None,
    origin: Any,
    count: int | None = None,
) -> tuple[list[Piece], dict[Any, int]]:
    """The pieces of some equations.

    Args:
      flat: all equations.
      chosen: numbers of those meant, in order.
      given: numbers of the values that there are.
      wanted: the values that are read by others.
      results: what the whole program gives, by its last piece; None for pieces that come before others.
      origin: what JAX says of the program's source.
      count: the first number that no value has; None where values given have all numbers below.
    Returns:
      The pieces, and the numbers of the values given and of those that others read.
    """
    numbers_of, pieces = dict(given), []
    count = len(given) if count is None else count
    for draft in _drafts(flat, _groups(flat, chosen, given, wanted), wanted, results):
        constants = [v for v in draft.inputs if v in flat.constants]
        inputs = [v for v in draft.inputs if v not in flat.constants]
        writes = tuple(range(count, count + len(draft.outputs)))
        count += len(writes)
        reads = tuple(numbers_of[v] for v in inputs)
        numbers_of.update((v, number) for v, number in zip(draft.outputs, writes, strict=True) if isinstance(v, Var))
        inner = [flat.equations[number] for number in draft.equations]
        effects = frozenset().union(*(equation.effects for equation in inner))
        program = ClosedJaxpr(
            Jaxpr(constants, inputs, draft.outputs, inner, effects, origin), [flat.constants[v] for v in constants]
        )
        cost = math.fsum(flat.costs[number] for number in draft.equations)
        pieces.append(Piece(program, reads, writes, cost, draft.apart, results is None, draft.half))
    return pieces, numbers_of


def _groups(
    flat: _Flat, chosen: Sequence[int], given: Iterable[Any], wanted: set[Var]
) -> dict[tuple[int, bool, int], list[int]]:
    """The equations that become one piece, in order, those that depend on nothing left out, by stage, by whether they
    are long and by the half of a loop that they are; the last group gives the results. See `_pieces`.
    """
    # The stage of a value: how many long loops or decompositions, one after the other, it waits for.
    stage: dict[Var, int] = dict.fromkeys((*given, *flat.constants), 0)
    at: dict[int, int] = {}
    for number in chosen:
        needs = [v for v in flat.equations[number].invars if isinstance(v, Var)]
        at[number] = max((stage[v] for v in needs), default=0)
        stage.update(dict.fromkeys(flat.equations[number].outvars, at[number] + flat.long_ones[number]))
    # What is not needed before a later stage is made there: so less must be written down for it.
    end = max(stage.values(), default=0)
    latest: dict[Var, int] = dict.fromkeys(wanted, end)
    groups: dict[tuple[int, bool, int], list[int]] = {(end, False, 0): []}
    for number in reversed(chosen):
        equation, long = flat.equations[number], flat.long_ones[number]
        uses = [latest[v] for v in equation.outvars if v in latest]
        if not uses:  # nobody reads it
            continue
        place = at[number] if long else min(uses)
        for v in equation.invars:
            if isinstance(v, Var):
                latest[v] = min(latest.get(v, end), place)
        if flat.free.keys().isdisjoint(equation.outvars):
            groups.setdefault((place, long, flat.halves[number]), []).append(number)
    return {key: sorted(groups[key]) for key in sorted(groups)}


def _drafts(
    flat: _Flat, groups: dict[tuple[int, bool, int], list[int]], wanted: set[Var], results: list[Any] | None
) -> list[_Draft]:
    """A piece of each group, with what it takes from pieces before and gives to those after. Arguments are those of
    `_pieces`.
    """
    drafts, last = [], max(groups)
    read_later: set[Var] = wanted.difference(flat.free)
    for key in reversed(groups):
        gives = results is not None and key == last
        if not (groups[key] or gives):
            continue
        made = [v for number in groups[key] for v in flat.equations[number].outvars]
        outputs = list(results or ()) if gives else [v for v in made if v in read_later]
        whole = flat.with_free(groups[key], outputs)
        inside = {v for number in whole for v in flat.equations[number].outvars}
        used = [v for number in whole for v in flat.equations[number].invars] + (outputs if gives else [])
        inputs = list(dict.fromkeys(v for v in used if isinstance(v, Var) and v not in inside))
        read_later.update(inputs)
        drafts.append(_Draft(whole, inputs, outputs, *key[1:]))
    return drafts[::-1]


def _in_halves(equation: Any) -> ClosedJaxpr | None:
    """A loop whose rounds do not know of each other as a program of two that each do half of the rounds; of an odd
    number, both do the one in the middle. None for other equations.
    """
    settings = equation.params
    if equation.primitive.name != "scan" or equation.effects or settings["reverse"]:
        return None
    length, body = settings["length"], jaxpr_as_fun(settings["jaxpr"])
    inner, each = settings["jaxpr"].jaxpr, -(-length // 2)
    # What a round hands on to the next, or all rounds are given, has no axis of rounds. JAX 0.12 no longer counts them.
    handed_on = any(
        len(a.aval.shape) == len(b.aval.shape) for a, b in zip(equation.outvars, inner.outvars, strict=True)
    )
    alike = [len(a.aval.shape) == len(b.aval.shape) for a, b in zip(equation.invars, inner.invars, strict=True)]
    fixed = sum(alike)
    if handed_on or each == length or fixed == len(alike):
        return None

    def both(*given: Any) -> list[Any]:
        first, second = (some(given, begin) for begin in (0, length - each))
        return [lax.concatenate([a, b[2 * each - length :]], 0) for a, b in zip(first, second, strict=True)]

    def some(given: Sequence[Any], begin: int) -> list[Any]:
        mapped = [lax.slice_in_dim(a, begin, begin + each) for a in given[fixed:]]
        return lax.scan(lambda _, now: ((), body(*given[:fixed], *now)), (), mapped, unroll=settings["unroll"])[1]

    return jax.make_jaxpr(both)(*shapes_of(equation.invars))
