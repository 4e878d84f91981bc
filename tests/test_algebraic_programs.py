"""Programs of the algebraic estimates: compiled once for equal learners, losses and functions, not kept for ever."""

import gc
import weakref
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgen import Data, algebraic, learn, loss, resample
from jaxgen.algebraic import approximate, fit, functions
from jaxgen.types.identity import named
from jaxgen.types.value import Value

pytestmark = pytest.mark.one_device

KEY = jax.random.key(0)
RANDOM = np.random.default_rng(0)
DATA = Data(RANDOM.normal(size=(12, 2)), RANDOM.normal(size=(12, 1)), ("a", "b"))
PLAN = resample.leave_one_out(12)
COMPILED = []
"""One entry for each program that XLA compiled."""
jax.monitoring.register_event_duration_secs_listener(
    lambda event, duration, **_: COMPILED.append(event) if event.endswith("backend_compile_duration") else None
)


def compilations(call):
    before = len(COMPILED)
    call()
    return len(COMPILED) - before


@dataclass(frozen=True, repr=False)
class Slope(Value):
    """Least squares through the origin that does not say what it made small."""

    ridge: float = 0.1

    def fit(self, key, x, y, w):
        return jnp.linalg.solve((x.T * w[None]) @ x + self.ridge * jnp.eye(x.shape[1]), (x.T * w[None]) @ y)

    def predict(self, params, x):
        return x @ params


class Foreign:
    """A user's own class with a hash of its own."""

    def __eq__(self, other):
        return isinstance(other, Foreign)

    def __hash__(self):
        return 1

    fit, predict = Slope.fit, Slope.predict
    ridge = 0.1


def half_squares(weight=0.5):
    """What `Slope` made small, a new function at every call."""
    return lambda params: (
        params,
        lambda free: free,
        lambda free, x, y: (weight * loss.squared(y, x @ free), weight * 0.1 * jnp.sum(free**2)),
    )


def weighted(y, prediction, weight):
    return weight * loss.squared(y, prediction)


FITS = {
    "a learner of the package": lambda: algebraic.full_fit(KEY, learn.LeastSquares(ridge=0.25), DATA),
    "one that does not say what it made small": lambda: algebraic.full_fit(KEY, Slope(), DATA),
    "one of the user's": lambda: algebraic.full_fit(KEY, Foreign(), DATA),
    "a lambda for what it made small": lambda: algebraic.full_fit(KEY, Slope(), DATA, minimised=half_squares()),
    "a partial function as a loss": lambda: algebraic.full_fit(KEY, Slope(), DATA, partial(weighted, weight=2.0)),
    "a lambda as a loss": lambda: algebraic.full_fit(KEY, Slope(), DATA, lambda y, p: jnp.sum((y - p) ** 2, -1)),
}


KEPT = (fit._fitted, fit._derived, functions._matters, approximate._evaluated, approximate._stepped)


@pytest.mark.parametrize("name", FITS)
def test_equal_fits_compile_once(name):
    def all_of_it():
        full = FITS[name]()
        algebraic.infinitesimal_jackknife(full, PLAN, curvature="full")
        algebraic.against_retraining(KEY, algebraic.newton_step(full, PLAN, curvature="full"), share=0.2)
        return full

    fits = []
    assert compilations(lambda: fits.append(all_of_it())) > 0  # so these are counted
    programs = [each.program.cache_info().currsize for each in KEPT]
    assert [compilations(all_of_it) for _ in range(4)] == [0] * 4
    assert [each.program.cache_info().currsize for each in KEPT] == programs
    np.testing.assert_array_equal(all_of_it().hessian, fits[0].hessian)


def test_another_number_in_a_lambda_is_another_function():
    one, two = (algebraic.full_fit(KEY, Slope(), DATA, minimised=half_squares(weight)) for weight in (0.5, 1.0))
    np.testing.assert_allclose(2 * one.hessian, two.hessian, rtol=1e-12)  # rounding
    assert (one.ratio, two.ratio) == (pytest.approx(2), pytest.approx(1))


def test_partial_functions_of_other_numbers_or_code_have_other_names():
    def factor(number):
        return lambda y, prediction, weight: number * weighted(y, prediction, weight)

    names = {named(partial(function, weight=1.0)) for function in (weighted, factor(1.0), factor(2.0))}
    assert len(names | {named(partial(weighted, weight=2.0))}) == 4


FACTOR = [1.0]


def test_a_number_that_code_refers_to_may_change():
    def scaled(y, prediction):
        return FACTOR[0] * loss.squared(y, prediction)

    FACTOR[0] = 1.0
    before = algebraic.full_fit(KEY, Slope(), DATA, scaled)
    FACTOR[0] = 3.0
    np.testing.assert_allclose(algebraic.full_fit(KEY, Slope(), DATA, scaled).losses, 3 * before.losses, rtol=1e-12)


def test_programs_that_are_dropped_are_freed():
    """Of many values those of the last programs are held, by JAX too."""
    added, values = functions.programs(1)(lambda slope, x: x + slope.ridge), []
    for number in range(functions._PROGRAMS + 5):
        value = Slope(float(number))
        values.append(weakref.ref(value))
        assert added(value, jnp.ones(())) == number + 1
        del value
    gc.collect()
    assert [each() is not None for each in values] == [False] * 5 + [True] * functions._PROGRAMS
