"""Calls of LAPACK in one program: each waits for the others, or two of them could wait for each other for ever."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxpr_as_fun

from jaxgen import learn
from jaxgen.engine.ordered import in_order, unordered

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


def test_the_guard_sees_two_calls_that_do_not_wait():
    def both(a):
        basis, triangle = jnp.linalg.qr(a)
        return basis @ jnp.linalg.svd(triangle)[0]

    assert list(unordered(jax.make_jaxpr(both)(jnp.ones((4, 3))).jaxpr)) == [("basis", "svd")]
    assert not list(unordered(jax.make_jaxpr(lambda a: jnp.linalg.eigh(jnp.linalg.cholesky(a)))(jnp.eye(3)).jaxpr))


def solution(a):
    """Of a system, by Cholesky's factor; its gradient calls LAPACK several times at once."""
    return jnp.sum(jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), jnp.ones((len(a), 2))))


def test_the_guard_sees_gradients_of_a_solution():
    assert list(unordered(jax.make_jaxpr(jax.grad(solution))(jnp.eye(3)).jaxpr))


def in_a_loop(a):
    return jax.lax.fori_loop(0, 3, lambda _, found: found + jax.jit(jax.grad(solution))(a + found), jnp.zeros_like(a))


def in_a_branch(a):
    basis, triangle = jnp.linalg.qr(a)
    values = jax.lax.cond(a[0, 0] > 0, lambda: jnp.linalg.svd(triangle)[1], lambda: jnp.linalg.eigvalsh(a))
    return basis * values[None] + jax.vmap(jax.grad(solution))(jnp.stack([a, a + a]))[1]


def of_whole_numbers(a):
    """The second call takes no number that is not whole but one."""
    return jnp.linalg.inv(jnp.round(a)) + jnp.linalg.eigvalsh(a)[None]


def of_complex_numbers(a):
    return jnp.sum(jnp.abs(jnp.linalg.eigvals(a))) + jnp.sum(jnp.abs(jnp.linalg.eigvals(a + 1)))


def of_least_squares(a):
    """In a program that JAX calls by a name of its own, and with ranks that are whole numbers."""
    return jnp.linalg.lstsq(a, a[:, 0])[0] + jnp.linalg.pinv(a)[0] + jnp.linalg.slogdet(a)[1]


def after_a_loop(a):
    """What a loop counts says nothing of when it ends; of what it hands on, the last does."""
    _, _, found = jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1], jnp.linalg.inv(s[2])), (0, a, a))
    return found + jnp.linalg.eigvalsh(jax.checkpoint(jax.nn.relu)(a))[None]


def after_a_loop_with_a_key(a):
    def step(_, state):
        key, found = state
        return jax.random.split(key)[0], jnp.linalg.inv(found) + jax.random.normal(key, a.shape) / 100

    _, found = jax.lax.fori_loop(0, 2, step, (jax.random.key(0), a))
    return found + jnp.linalg.eigvalsh(a)[None]


FUNCTIONS = [
    after_a_loop_with_a_key,
    after_a_loop,
    jax.grad(solution),
    in_a_loop,
    in_a_branch,
    of_whole_numbers,
    of_complex_numbers,
    of_least_squares,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_calls_are_put_one_after_the_other(function):
    """With the same results, but for the rounding of what XLA then puts together in another way."""
    a = jnp.eye(5) + jnp.asarray(np.random.default_rng(0).normal(size=(5, 5)) / 10)
    a = a @ a.T
    program = jax.make_jaxpr(function)(a)
    found = in_order(program)
    assert list(unordered(program.jaxpr))
    assert not list(unordered(found.jaxpr))
    np.testing.assert_allclose(jaxpr_as_fun(found)(a)[0], function(a), rtol=1e-4)
    assert in_order(found) is found


def test_a_failed_row_leaves_others_as_they_are():
    """A matrix that has no Cholesky factor gives NaN, in the place that the next call looks at."""
    matrices = jnp.stack([-jnp.eye(4), 2 * jnp.eye(4)])
    program = jax.make_jaxpr(jax.vmap(jax.grad(solution)))(matrices)
    found = jaxpr_as_fun(in_order(program))(matrices)[0]
    assert jnp.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], np.full((4, 4), -0.5), rtol=1e-6)


LEARNER_OF_A_USER = """
import jax, jax.numpy as jnp, numpy as np
import jaxgen as jg
from dataclasses import dataclass
from jaxgen import datasets, resample
from jaxgen.types import Learner

@dataclass(frozen=True)
class ByGradient(Learner):
    def fit(self, key, x, y, w):
        def solved(matrix):
            return jnp.sum(jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(matrix), True), jnp.eye(len(matrix))))
        return jax.grad(solved)(x.T @ (w[:, None] * x) + jnp.eye(x.shape[1]))
    def predict(self, params, x):
        return jnp.zeros((len(x), 1), x.dtype)
    def diagnose(self, params):
        return {"gradient": params}

x = np.random.default_rng(0).normal(size=(100, 50))
data = datasets.from_arrays(x, x[:, :1] ** 2)
plan = resample.k_fold(jax.random.key(0), 100, folds=10, repeats=4)
for _ in range(20):
    found = jg.assess(jax.random.key(1), ByGradient(), data, plan).info["gradient"]
for w, gradient in zip(plan.train, found):
    z = np.linalg.solve(x.T @ (w[:, None] * x) + np.eye(50), np.ones(50))
    assert np.allclose(gradient, -np.outer(z, z), rtol=1e-3, atol=1e-3 * np.abs(z).max() ** 2)
print("ended")
"""


def test_a_learner_of_a_user_does_not_wait_for_ever():
    """Without the guard it did on two cores, in every run. Single precision, inverses of condition numbers below 40."""
    ended = subprocess.run([sys.executable, "-c", LEARNER_OF_A_USER], capture_output=True, text=True, timeout=300)
    assert ended.stdout == "ended\n", ended.stderr


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
