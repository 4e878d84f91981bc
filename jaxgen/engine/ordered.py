"""Calls of LAPACK in a traced program, put one after the other.

XLA runs what does not wait for each other at the same time on a CPU, and a call of LAPACK for a batch of matrices waits
for threads of the pool that it is run by. Two of them can wait for each other's thread for ever: the gradient of a
system's solution by Cholesky's factor, of 40 matrices of 50 x 50, does so in most runs on two cores (jaxlib 0.10.2).
"""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var, jaxpr_as_fun

from jaxgen.engine.traced import LAPACK, programs_in, shapes_of

_WRITTEN_OUT = {
    *("jit", "pjit", "closed_call", "core_closed_call", "checkpoint", "remat2"),
    *("custom_vmap_call", "custom_jvp_call", "custom_vjp_call"),
}
"""Primitives whose programs XLA writes out where they are called, each by itself in one place."""

_Ancestors = frozenset[int]


def in_order(program: ClosedJaxpr) -> ClosedJaxpr:
    """The same program, in which every call of LAPACK waits for those before it; itself where this is so already.
    Calls that a loop or a branch makes are one call for what is outside.
    """
    if program.jaxpr.effects or not any(True for _ in unordered(program.jaxpr)):
        return program
    return _rewritten(program)


def unordered(program: Any) -> Iterator[tuple[str, str]]:
    """Names of two calls of LAPACK in a program, or in that of a loop or branch in it, of which neither waits for the
    other: of all such pairs.
    """
    for each in _all_programs(program):
        calls = _calls(each)
        for second, (name, before) in enumerate(calls):
            yield from ((calls[first][0], name) for first in range(second) if first not in before)


def _all_programs(program: Any) -> Iterator[Any]:
    """A program, and those of its loops and branches."""
    yield program
    for equation in program.eqns:
        for inner in programs_in(equation):
            yield from _all_programs(getattr(inner, "jaxpr", inner))


def _calls(program: Any) -> list[tuple[str, _Ancestors]]:
    """Names of the calls of LAPACK in a program, in their order, with numbers of those that each waits for."""
    found: list[tuple[str, _Ancestors]] = []

    def visit(program: Any, given: list[_Ancestors]) -> list[_Ancestors]:
        """What the results of a program wait for, if its arguments wait for these."""
        behind: dict[Any, _Ancestors] = dict(zip(program.invars, given, strict=True))

        def of(atoms: Any) -> list[_Ancestors]:
            none: _Ancestors = frozenset()
            return [none if isinstance(atom, Literal) else behind.get(atom, none) for atom in atoms]

        for equation in program.eqns:
            known = of(equation.invars)
            before: _Ancestors = frozenset().union(*known)
            inner = _written_out(equation)
            if inner is not None:
                behind.update(zip(equation.outvars, visit(getattr(inner, "jaxpr", inner), known), strict=True))
                continue
            after = [before] * len(equation.outvars)
            if equation.primitive.name == "qr":  # the triangle is there before another call makes the basis of it
                found.append(("triangle", before))
                first = before | {len(found) - 1}
                found.append(("basis", first))
                after = [first | {len(found) - 1}, *[first] * (len(after) - 1)]
            elif _calls_lapack(equation):
                found.append((equation.primitive.name, before))
                after = [before | {len(found) - 1}] * len(after)
            behind.update(zip(equation.outvars, after, strict=True))
        return of(program.outvars)

    visit(program, [frozenset()] * len(program.invars))
    return found


def _written_out(equation: Any) -> Any:
    """The program that an equation calls and XLA writes out there, or None."""
    inner = list(programs_in(equation)) if equation.primitive.name in _WRITTEN_OUT else []
    return inner[0] if len(inner) == 1 else None


def _calls_lapack(equation: Any) -> bool:
    """Whether an equation calls LAPACK, itself or in programs that it holds."""
    return equation.primitive.name in LAPACK or any(
        _calls_lapack(each) for inner in programs_in(equation) for each in getattr(inner, "jaxpr", inner).eqns
    )


def _rewritten(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program traced anew, with calls that wait for those before."""
    jaxpr = program.jaxpr

    def run(*arguments: Any) -> list[Any]:
        results, _ = _evaluated(jaxpr, [*program.consts, *arguments], None)
        return results

    return jax.make_jaxpr(run)(*shapes_of(jaxpr.invars))


def _evaluated(jaxpr: Any, given: list[Any], done: Any) -> tuple[list[Any], Any]:
    """What a program gives for constants and arguments, and a whole number from 0 that is there when the last call of
    LAPACK has ended, if there was one.
    """
    values: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), given, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        operands, inner = [read(atom) for atom in equation.invars], _written_out(equation)
        if not _calls_lapack(equation):
            found = _one(equation, operands)
        elif inner is not None:
            consts = getattr(inner, "consts", ())
            found, done = _evaluated(getattr(inner, "jaxpr", inner), [*consts, *operands], done)
        else:
            if done is not None:
                operands = [_after(done, value) for value in operands]
            found = _one(
                equation.replace(params={k: _in_order_inside(v) for k, v in equation.params.items()}), operands
            )
            ended = [_bits(value) for value in found if _holds_numbers(value)]
            done = functools.reduce(lax.bitwise_or, ended) if ended else done
        values.update(zip(equation.outvars, found, strict=True))
    return [read(atom) for atom in jaxpr.outvars], done


def _one(equation: Any, operands: list[Any]) -> list[Any]:
    """What an equation gives."""
    values = {v: value for v, value in zip(equation.invars, operands, strict=True) if not isinstance(v, Literal)}
    made = [Var(v.aval) for v in equation.outvars]
    alone = Jaxpr([], list(values), made, [equation.replace(outvars=made)], equation.effects, _no_origin())
    return jaxpr_as_fun(ClosedJaxpr(alone, []))(*values.values())


@functools.lru_cache(maxsize=1)
def _no_origin() -> Any:
    """What JAX says of the source of a program without arguments and results."""
    return jax.make_jaxpr(lambda: ())().jaxpr.debug_info


def _in_order_inside(value: Any) -> Any:
    """A parameter of an equation, with the programs in it rewritten where they have calls that do not wait."""
    if isinstance(value, tuple | list):
        return getattr(value, "_make", type(value))(map(_in_order_inside, value))
    if isinstance(value, ClosedJaxpr):
        return in_order(value)
    if hasattr(value, "eqns"):
        changed = in_order(ClosedJaxpr(value, []))
        return value if changed.jaxpr is value or changed.consts else changed.jaxpr
    return value


def _bits(value: Any) -> Any:
    """A whole number from 0 that follows from the first of an array's numbers, be it NaN."""
    first = jnp.real(value.reshape(-1)[0]).astype(jnp.float32)
    return lax.shift_right_logical(lax.bitcast_convert_type(first, jnp.int32), jnp.int32(1))


def _after(done: Any, value: Any) -> Any:
    """A value that is not there before a whole number from 0; XLA does not know that this is never below."""
    return jnp.where(done < 0, jnp.zeros_like(value), value) if _holds_numbers(value) else value


def _holds_numbers(value: Any) -> bool:
    """Whether a value is an array with a number in it: a random key is not."""
    return hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jnp.number) and value.size > 0
