"""Calls of LAPACK in one program: each waits for the others, or two of them could wait for each other for ever."""

import itertools

import jax
import jax.numpy as jnp
import pytest

from jaxgen import learn
from jaxgen.engine.program import _LAPACK, _programs_in

CALLS = {"pjit", "jit", "closed_call", "core_closed_call", "custom_vmap_call", "custom_jvp_call", "custom_vjp_call"}
"""Primitives whose programs XLA writes out where they are called."""

LEARNERS = {
    "least squares": learn.LeastSquares(),
    "ridge": learn.LeastSquares(ridge=0.1),
    "least norm": learn.LeastSquares(minimum_norm=True),
    "penalty chosen": learn.Ridge(),
    "ridge per input": learn.RidgePerInput(steps=3),
    "normalised ridge": learn.Normalised(learn.LeastSquares(ridge=0.1), how="standard"),
    "normalised least norm": learn.Normalised(learn.LeastSquares(minimum_norm=True), how="standard"),
    "normalised, penalty chosen": learn.Normalised(learn.Ridge(), how="standard"),
    "penalties of a network": learn.AdaptivePenalties(learn.Conjugate(learn.MLP((3,)), steps=3)),
    "logistic": learn.Logistic(),
    "list": learn.Tuned((learn.Ridge(), learn.LeastSquares(minimum_norm=True))),
    "along": learn.Tuned(learn.LeastSquares(), {"ridge": (0.1, 1.0)}),
    "in closed form": learn.Tuned(learn.LeastSquares(), {"ridge": (0.1, 1.0)}, by="gcv"),
}


def calls(program):
    """Names and ancestors of the calls of LAPACK in one program, each an index; loops and branches are one call."""
    found, behind = [], {}

    def visit(jaxpr, behind):
        for equation in jaxpr.eqns:
            known = [behind.get(v, frozenset()) for v in equation.invars if not hasattr(v, "val")]
            before = frozenset().union(*known)
            name, inner = equation.primitive.name, [getattr(p, "jaxpr", p) for p in _programs_in(equation)]
            if name in CALLS and len(inner) == 1:
                ins = [frozenset() if hasattr(v, "val") else behind.get(v, frozenset()) for v in equation.invars]
                own = dict(zip(inner[0].invars, ins, strict=True))
                visit(inner[0], own)
                outs = [frozenset() if hasattr(v, "val") else own.get(v, frozenset()) for v in inner[0].outvars]
                behind |= dict(zip(equation.outvars, outs, strict=True))
                continue
            after = [before] * len(equation.outvars)
            if name == "qr":  # the triangle is there before the basis, which another call makes of it
                found.append(("triangle", before))
                first = before | {len(found) - 1}
                found.append(("basis", first))
                after = [first | {len(found) - 1}, *[first] * (len(after) - 1)]
            elif name in _LAPACK or any(holds(each) for each in inner):
                found.append((name, before))
                after = [before | {len(found) - 1}] * len(after)
            behind |= dict(zip(equation.outvars, after, strict=True))

    visit(program, behind)
    return found


def holds(jaxpr):
    """Whether a program calls LAPACK anywhere."""
    return any(
        each.primitive.name in _LAPACK or any(holds(getattr(p, "jaxpr", p)) for p in _programs_in(each))
        for each in jaxpr.eqns
    )


def all_programs(jaxpr):
    """A program, and those of its loops and branches."""
    yield jaxpr
    for equation in jaxpr.eqns:
        for inner in _programs_in(equation):
            yield from all_programs(getattr(inner, "jaxpr", inner))


def unordered(jaxpr):
    """Pairs of calls in one program of which neither waits for the other."""
    for program in all_programs(jaxpr):
        found = calls(program)
        for (a, (first, _)), (b, (second, before)) in itertools.combinations(enumerate(found), 2):
            if a not in before:
                yield first, second, (a, b)


def test_the_guard_sees_two_calls_that_do_not_wait():
    def both(a):
        basis, triangle = jnp.linalg.qr(a)
        return basis @ jnp.linalg.svd(triangle)[0]

    assert [pair[:2] for pair in unordered(jax.make_jaxpr(both)(jnp.ones((4, 3))).jaxpr)] == [("basis", "svd")]
    assert not list(unordered(jax.make_jaxpr(lambda a: jnp.linalg.eigh(jnp.linalg.cholesky(a)))(jnp.eye(3)).jaxpr))


def test_the_guard_sees_gradients_of_a_solution():
    def solution(a):
        return jnp.sum(jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), jnp.ones((3, 2))))

    assert list(unordered(jax.make_jaxpr(jax.grad(solution))(jnp.eye(3)).jaxpr))


@pytest.mark.parametrize("shape", [(60, 40), (50, 50), (30, 70)], ids=str)
@pytest.mark.parametrize(
    ("name", "together"),
    [(name, way) for name, each in LEARNERS.items() for way in (False, True) if not way or each.shares_rows],
)
def test_no_two_calls_at_a_time(name, shape, together):
    """`Ridge()` of as many cases as inputs waited for ever in three of four runs on two cores, and so did
    `RidgePerInput()` of 100 x 40, by the gradient that JAX makes of a system's solution.
    """
    (n, d), learner = shape, LEARNERS[name]
    x, y, w, keys = jnp.ones((n, d)), jnp.ones((n, 1)), jnp.ones((4, n)), jax.random.split(jax.random.key(0), 4)
    if not together:
        traced = jax.make_jaxpr(jax.vmap(learner.fit, in_axes=(0, None, None, 0)))(keys, x, y, w)
    else:
        traced = jax.make_jaxpr(lambda *given: learner.fit_rows(*given, None))(keys, x, y, w)
    assert not list(unordered(traced.jaxpr))
