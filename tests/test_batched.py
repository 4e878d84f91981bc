"""Members of rows under one vmap: the numbers of two. Rows in turn: the numbers of one vmap."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgen import Data, assess, learn, resample
from jaxgen.learn.batched import in_turn, over_members

RANDOM = np.random.default_rng(0)
MEMBERS, ROWS, SETS = 3, 4, 2


def member(key, weights, nothing, x, y):
    assert nothing is None
    return {"products": weights @ x + y[None], "drawn": jax.random.normal(key, (2,))}


def plain(members, shared):
    return jax.vmap(lambda *own: member(*own, *shared))(*members)


@pytest.mark.parametrize("whose", [("x",), ("y",), ("x", "y"), ()])
def test_members_under_one_vmap_are_those_under_several(whose):
    """Also where a set of rows is one of several, and whatever is the same for all rows."""
    keys = jax.random.split(jax.random.key(1), (SETS, ROWS, MEMBERS))
    weights = jnp.asarray(RANDOM.normal(size=(SETS, ROWS, MEMBERS, 5, 6)))
    x, y = (jnp.asarray(RANDOM.normal(size=(SETS, ROWS, *shape))) for shape in ((6, 7), (7,)))
    x, y = (a if name in whose else a[0, 0] for name, a in (("x", x), ("y", y)))
    axes = tuple(0 if name in whose else None for name in ("x", "y"))

    def rows(together):
        def of_row(key, weights, x, y):
            return together((key, weights, None), (x, y))

        return jax.vmap(jax.vmap(of_row, (0, 0, *axes)), (0, 0, *axes))

    found, want = (rows(together)(keys, weights, x, y) for together in (lambda *a: over_members(member, *a), plain))
    for name, values in want.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=2e-6)  # sums of 6 products in single precision
    traced = jax.make_jaxpr(rows(lambda *a: over_members(member, *a)))(keys, weights, x, y)
    (product,) = [e for e in _equations(traced.jaxpr) if e.primitive.name == "dot_general"]
    assert len(product.params["dimension_numbers"][1][0]) == ("x" in whose)


def _equations(jaxpr):
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            if hasattr(value, "jaxpr"):
                yield from _equations(value.jaxpr)


def test_members_know_what_stands_outside():
    """A number that differs from row to row, and one that is the same, as where settings are chosen among."""
    same, weights = jnp.float32(2), RANDOM.normal(size=(ROWS, MEMBERS, 5)).astype(np.float32)

    def of_row(weights, own):
        return over_members(lambda w: w * own + same, (weights,))

    found = jax.vmap(of_row)(weights, jnp.arange(ROWS, dtype=jnp.float32))
    want = weights * np.arange(ROWS)[:, None, None] + 2
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)  # single precision


def test_an_ensemble_with_several_outputs_has_the_networks_of_its_members():
    """Rows together and sets together, beside the members one by one; single precision after 20 steps."""
    x, y = RANDOM.normal(size=(2, 30, 3)), RANDOM.normal(size=(2, 30, 2))
    network = learn.Descent(learn.MLP((4,)), steps=20)
    plan, key = resample.k_fold(jax.random.key(2), 30, 3), jax.random.key(3)
    losses = assess(key, learn.Ensemble(network, 2), Data(x, y, tuple("abc")), plan)
    for q in range(2):
        for row, train in enumerate(plan.train):
            row_key = jax.random.fold_in(jax.random.fold_in(key, q), row)
            given = [jnp.asarray(a, jnp.float32) for a in (x[q], y[q], train)]
            fits = [network.fit(member_key, *given) for member_key in jax.random.split(row_key, 2)]
            mean = sum(network.predict(fit, given[0]) for fit in fits) / 2
            np.testing.assert_allclose(losses.values[q, row], np.square(y[q] - mean).sum(-1), rtol=2e-4, atol=1e-5)


def test_rows_in_turn_are_rows_side_by_side():
    """Newton's square roots by loops that end at different rounds: on a CPU a loop over rows, elsewhere one vmap."""

    def root(a, start):
        return jax.lax.while_loop(lambda z: abs(z * z - a) > 1e-4 * a, lambda z: (z + a / z) / 2, start)

    a, start = jnp.arange(1.0, 8.0), jnp.full(7, 5.0)
    np.testing.assert_array_equal(in_turn(root)(a, start), jax.vmap(root)(a, start))
    assert [e.primitive.name for e in jax.make_jaxpr(in_turn(root))(a, start).eqns] == ["scan"]
