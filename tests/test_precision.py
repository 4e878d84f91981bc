"""Inputs and targets of hard offsets, units and dependence: in single precision every learner gives what it gives in
double precision, or marks the row as failed.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ortho_group

from jaxgen import Data, assess, loss, resample
from jaxgen.learn import (
    MLP,
    Conjugate,
    Descent,
    EarlyStopped,
    Ensemble,
    LeastSquares,
    Logistic,
    Mean,
    Neighbours,
    Normalised,
    Ridge,
    Scaled,
)

KEY = jax.random.key(0)
N = 48
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 3))
Y = X @ [[1.0], [-0.5], [0.2]] + 0.5 * RANDOM.normal(size=(N, 1))
LABELS = (Y + np.random.default_rng(2).normal(size=Y.shape) > 0).astype(float)
PLAN = resample.leave_out(jax.random.key(1), N, 0.25, 8)


def near(distance):
    """Inputs of which the last two differ by little."""
    return np.column_stack([X[:, :2], X[:, 1] + distance * X[:, 2]])


def with_outlier(size):
    x = X.copy()
    x[7, 0] = size
    return x


OFFSETS = {f"inputs + {offset:g}": (X + offset, Y, 1.0) for offset in (1e4, 1e5, 1e6, 1e7)} | {
    f"targets + {offset:g}": (X, Y + offset, 1.0) for offset in (1e4, 1e6, 1e7, 1e8)
}
UNITS = {f"inputs x {unit:g}": (X * unit, Y, 1.0) for unit in (1e-30, 1e-15, 1e15, 1e30)} | {
    f"targets x {unit:g}": (X, Y * unit, unit) for unit in (1e-30, 1e-15, 1e15, 1e30)
}
HARD = {
    "as they are": (X, Y, 1.0),
    "inputs of different units": (X * [1e-12, 1, 1e12], Y, 1.0),
    "inputs that differ by 1e-3": (near(1e-3), Y, 1.0),
    "inputs that differ by 1e-5": (near(1e-5), Y, 1.0),
    "an outlier of 1e6": (with_outlier(1e6), Y, 1.0),
}
CONSTANT = {f"a constant of {value:g}": (X, np.full((N, 1), value), value) for value in (3.7, 1e7 / 3)}
CASES = OFFSETS | UNITS | HARD | CONSTANT
"""Inputs, targets and the unit of the targets."""

LEARNERS = [
    LeastSquares(),
    LeastSquares(intercept=False),
    LeastSquares(ridge=1.0),
    LeastSquares(minimum_norm=True),
    Ridge(),
    Mean(),
    Neighbours(),
    Normalised(LeastSquares()),
    Normalised(LeastSquares(ridge=1.0), how="standard"),
    Normalised(Neighbours()),
]
NET = Descent(MLP((3,)), steps=30)
NETWORKS = [
    Normalised(NET),
    Normalised(Conjugate(MLP((3,)), steps=2), how="standard"),
    Normalised(Scaled(EarlyStopped(NET, folds=2))),
    Ensemble(EarlyStopped(Normalised(NET), folds=2), members=2),
]


def run(learner, x, y, bits, of=loss.squared, **options):
    with jax.enable_x64(bits == 64):
        return assess(KEY, learner, Data(x, y, ("a", "b", "c"), **options), PLAN, of)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_single_precision_gives_what_double_precision_gives(learner):
    # a constant is predicted to the rounding of sums of 36 cases, which are in double precision for what is `precise`
    rounding = 1e-15 if learner.precise else 1e-6
    for case, (x, y, unit) in CASES.items():
        single, double = run(learner, x, y, 32), run(learner, x, y, 64)
        least = (rounding * unit) ** 2
        assert not single.failed.any(), case
        np.testing.assert_allclose(single.g, double.g, rtol=1e-4, atol=least, err_msg=case)
        if case in CONSTANT and learner != LeastSquares(intercept=False):
            assert max(single.g.max(), double.g.max()) <= least, case


@pytest.mark.parametrize(
    "learner", [Logistic(ridge=0.0), Logistic(ridge=1.0), Normalised(Logistic(ridge=1.0))], ids=repr
)
def test_single_precision_of_classifiers(learner):
    """Without a ridge at any offset, unit and correlation; with one where its unit is that of the inputs."""
    free = learner.inside.ridge if isinstance(learner, Normalised) else not learner.ridge
    for case, (x, _, _) in CASES.items():
        if free or "inputs x" not in case:
            single, double = (
                run(learner, x, LABELS, bits, task="classification", of=loss.cross_entropy) for bits in (32, 64)
            )
            np.testing.assert_array_equal(single.failed, double.failed, err_msg=case)  # with an outlier, separable
            assert double.failed.sum() < 2
            both = single.without_failed().g, double.without_failed().g
            np.testing.assert_allclose(*both, rtol=1e-4, err_msg=case)


@pytest.mark.parametrize("learner", NETWORKS, ids=repr)
def test_units_do_not_matter_to_normalised_networks(learner):
    """In single precision, in which their starts are drawn; 30 iterations multiply roundings of 1e-7."""
    plain = run(learner, X, Y, 32).g
    # without Normalised around them, validation errors are told in the targets' own unit
    for case in OFFSETS | UNITS if learner.freedom.y_scale else OFFSETS:
        x, y, unit = CASES[case]
        np.testing.assert_allclose(run(learner, x, y, 32).g, plain * unit**2, rtol=2e-3, err_msg=case)


@pytest.mark.parametrize("learner", [Normalised(NET), Normalised(Scaled(NET), how="standard")], ids=repr)
def test_networks_from_the_same_start_agree_on_hard_inputs(learner):
    @partial(jax.jit, static_argnums=0)
    def predicted(learner, start, x, y, w):
        return learner.predict(learner.fit_from(start, KEY, x, y, w), x)

    with jax.enable_x64(True):
        start = NET.init(KEY, jnp.asarray(X, np.float32), jnp.asarray(Y, np.float32))
        w = PLAN.train[0].astype(float)
        for case, (x, y, _) in HARD.items():
            single, double = (
                predicted(learner, *jax.tree.map(lambda a, dtype=dtype: jnp.asarray(a, dtype), (start, x, y, w)))
                for dtype in (np.float32, np.float64)
            )
            np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-3, err_msg=case)


# Rank


def nearly_dependent(n, share, dtype):
    """A constant column and two inputs; the last has a share of the tolerated length outside the span of the others."""
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.random.default_rng(n).normal(size=(n, 2))]))[0]
    tolerated = 8 * np.sqrt(n) * np.finfo(dtype).eps
    return jnp.asarray(np.column_stack([basis[:, 1], basis[:, 1] + share * tolerated * basis[:, 2]]), dtype)


@pytest.mark.parametrize(("share", "failed"), [(0.6, True), (1.6, False)])
def test_the_tolerance_of_rank(share, failed, dtype):
    """Just below and just above 8 sqrt(n) roundings, of one fit, of rows together, and of classes."""
    n = 100
    x, w = nearly_dependent(n, share, dtype), jnp.ones(n, dtype)
    y = jnp.asarray(np.random.default_rng(1).normal(size=(n, 1)), dtype)
    learner = LeastSquares()
    fit = jax.jit(learner.fit)(KEY, x, y, w)
    assert int(learner.failure(fit)) == failed
    assert np.isnan(fit.weights).all() == failed
    rows = jnp.stack([w] * 8)
    _, trusted = jax.jit(lambda *cases: learner.fit_rows(jax.random.split(KEY, 8), *cases, None))(x, y, rows)
    assert not (failed and trusted.any())
    classes = Logistic(ridge=0.0)
    trouble = jax.jit(classes.fit)(KEY, x, (y > 0).astype(dtype), w).trouble
    assert (classes.failures[int(trouble) - 1].startswith("the inputs") and int(trouble) > 0) == failed


@pytest.mark.parametrize(("share", "kept"), [(0.6, 1), (1.6, 2)])
def test_the_tolerance_of_a_least_norm(share, kept, dtype):
    """Singular values below n roundings of the largest count as 0: the weights of two nearly equal inputs are then
    nearly equal.
    """
    n = 60
    basis = np.linalg.qr(np.column_stack([np.ones(n), RANDOM.normal(size=(n, 2))]))[0][:, 1:]
    turn = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    x = basis * [1, share * n * np.finfo(dtype).eps] @ turn
    y = basis[:, :1] + 1e-3 * basis[:, 1:]
    with jax.enable_x64(True):
        exact = np.asarray(x, dtype).astype(float)
    values = np.linalg.svd(exact - exact.mean(0), compute_uv=False)
    assert abs(values[1] / values[0] / (share * n * np.finfo(dtype).eps) - 1) < 0.2  # what rounding has left of it
    learner = LeastSquares(minimum_norm=True)
    weights = jax.jit(learner.fit)(KEY, jnp.asarray(x, dtype), jnp.asarray(y, dtype), jnp.ones(n, dtype)).weights[:, 0]
    assert (abs(weights[0] - weights[1]) > 1) == (kept == 2)


@pytest.mark.parametrize(("ridge", "condition"), [(0.0, 1e3), (10.0, 1e3), (0.0, 1e6)])
def test_many_cases_are_solved_as_numpy_solves_them(ridge, condition):
    """Folds that leave out more cases than there are coefficients, and fewer, and bootstrap samples; inputs of
    condition 1e6 need a basis that is made column by column. Losses move by the square of what coefficients move by,
    which is 1e-10 at worst.
    """
    n, d = 2700, 49
    random = np.random.default_rng(6)
    x = random.normal(size=(n, d)) @ np.diag(np.geomspace(1, 1 / condition, d)) @ ortho_group.rvs(d, random_state=6)
    y = x @ random.normal(size=(d, 1)) + random.normal(size=(n, 1))
    data, whole = Data(x, y, tuple(f"x{i}" for i in range(d))), np.column_stack([np.ones(n), x])
    penalty = np.sqrt(ridge) * np.eye(d + 1)[1:]
    folds, few = (resample.k_fold(KEY, n, k).chosen([0, 1], "two") for k in (5, 90))
    for plan in (folds, few, resample.bootstrap(KEY, n, 2)):
        got = assess(KEY, LeastSquares(ridge=ridge), data, plan).g
        want = []
        for train, test in zip(plan.train, plan.test, strict=True):
            root = np.sqrt(train.astype(float))[:, None]
            stacked = np.concatenate([root * whole, penalty]), np.concatenate([root * y, np.zeros((d, 1))])
            errors = np.square(y - whole @ np.linalg.lstsq(*stacked, rcond=None)[0])[:, 0]
            want.append(np.average(errors, weights=test))
        np.testing.assert_allclose(got, want, rtol=1e-9)
