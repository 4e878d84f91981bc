"""The rule that all wrappers follow: what they do not change themselves, they pass on from the learner inside."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jaxgen import Data, assess, learn, loss, resample
from jaxgen.learn import (
    MLP,
    Augmented,
    Conjugate,
    Descent,
    EarlyStopped,
    Ensemble,
    LeastSquares,
    Logistic,
    Mean,
    Neighbours,
    Normalised,
    PerTask,
    Ridge,
    Scaled,
)
from jaxgen.learn.gradients import gradients_solver
from jaxgen.learn.network import iterative, nets
from jaxgen.learn.products import Products
from jaxgen.learn.scale import binary_unit
from jaxgen.learn.wrap import wrapper
from jaxgen.types import Freedom, as_learner
from jaxgen.types.keys import several, stream
from jaxgen.types.value import Value

KEY = jax.random.key(0)
RANDOM = np.random.default_rng(0)
N = 24
X = RANDOM.normal(size=(N, 3)) * [1, 20, 0.1] + [0, 5, -3]
Y = np.sin(X[:, :1]) * 4 + 0.1 * X[:, 1:2] + 0.3 * RANDOM.normal(size=(N, 1)) + 10
CLASS = RANDOM.permutation(np.arange(N) % 3)
W = (np.arange(N) % 3).astype(float)
ALL, SOME, NONE = Freedom(True, True, True, True), Freedom(True, True), Freedom()

jit = partial(jax.jit, static_argnums=0)


def jittered(key, x, y):
    return x + 0.01 * jax.random.normal(key, x.shape, x.dtype), y


@dataclass(frozen=True)
class Softmax:
    """Softmax regression of a user's own, by gradient steps, which says nothing of itself."""

    steps: int = 40

    def fit(self, key, x, y, w):
        def step(_, weights):
            return weights + 0.5 / jnp.sum(w) * x.T @ (w[:, None] * (y - self.predict(weights, x)))

        x = jnp.where((w > 0)[:, None], x, 0)
        return jax.lax.fori_loop(0, self.steps, step, jnp.zeros((x.shape[1], y.shape[1]), x.dtype))

    def predict(self, weights, x):
        return jax.nn.softmax(x @ weights, axis=1)


def classes():
    return Data(X, np.eye(3)[CLASS], tuple("abc"), "kind", "classification", tuple("pqr"))


@pytest.mark.parametrize("how", ["delve", "standard"])
def test_probabilities_of_a_classifier_of_ones_own_stay_probabilities(how):
    plan = resample.k_fold(KEY, N, folds=3)
    losses = assess(KEY, Normalised(Softmax(), how=how), classes(), plan, loss.cross_entropy, keep="predictions")
    np.testing.assert_allclose(losses.predictions.sum(-1), 1, rtol=1e-5)  # single precision
    assert losses.predictions.min() > 0
    assert losses.apparent.max() < np.log(3)


def test_targets_are_normalised_by_task_or_as_is_asked_for():
    numbers = Data(X, Y, tuple("abc"))
    inside = Normalised(Ensemble(Normalised(Softmax(), how="none")))
    assert inside.for_data(numbers) == Normalised(Ensemble(Normalised(as_learner(Softmax()), how="none")))
    decided = inside.for_data(classes())
    assert (decided.targets, decided.base.base.targets) == ("unchanged", "unchanged")
    assert decided.for_data(classes()) == decided
    x, y, w = jnp.asarray(X), jnp.asarray(np.eye(3)[CLASS], jnp.float32), jnp.ones(N)

    def units(learner):
        return learner.fit(KEY, x, y, w)[3:]

    for learner in (decided, Normalised(Mean(), targets="unchanged"), Normalised(Logistic(ridge=1.0))):
        for unit, want in zip(units(learner), (0, 1), strict=True):
            np.testing.assert_array_equal(unit, want)
    for learner in (Normalised(Mean()), Normalised(Mean(), targets="normalised").for_data(classes())):
        assert units(learner)[1][0] != 1


# Starts, checkpoints, and what was made small

STILL = Descent(MLP((2,)), steps=2, checkpoints=(1, 2), rate=1e-30)
"""Stays where it begins."""
CHANGING = {
    "normalised": Normalised,
    "scaled": Scaled,
    "augmented": partial(Augmented, augment=jittered),
    "all": lambda base: Normalised(Scaled(Augmented(base, augment=jittered))),
}


def arrays(dtype=np.float32):
    return tuple(jnp.asarray(values, dtype) for values in (X, Y, W))


@jit
def path_and_ends(learner, x, y, w, start):
    """Saved networks and the last one, of trainings from a random and from a given start."""
    return (
        (learner.path(KEY, x, y, w), learner.fit(KEY, x, y, w)),
        (learner.path(KEY, x, y, w, start=start), learner.fit_from(start, KEY, x, y, w)),
    )


def innermost(learner, params):
    while isinstance(learner, wrapper.Changing):
        learner, params = learner.inside, learner.inside_of(params)
    return params.params


def same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.mark.parametrize("wrapped", CHANGING)
def test_starts_and_saved_networks_pass_through(wrapped):
    learner = CHANGING[wrapped](STILL)
    assert learner.saves_networks
    x, y, w = arrays()
    start = jax.tree.map(lambda a: a + 1, STILL.init(jax.random.key(7), x, y))
    for path, end in path_and_ends(learner, x, y, w, start):
        last = jax.tree.map(lambda a: a[-1], path)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), last, end)  # sums in another program
    same(innermost(learner, end), start)


@pytest.mark.parametrize("start", [False, True])
def test_starts_of_members_pass_through(start):
    """Those of an ensemble, of members stopped early, and the first of these for the refit."""
    x, y, w = arrays()
    starts = jax.vmap(lambda key: STILL.init(key, x, y))(jax.random.split(jax.random.key(7), 2)) if start else None
    learners = (Ensemble(STILL, members=2), EarlyStopped(STILL, folds=2), EarlyStopped(STILL, folds=2, refit=True))
    members, stopped, again = (
        jit(lambda learner: learner.fit_from(starts, KEY, x, y, w))(learner) for learner in learners
    )
    if start:
        same(members.params, starts)
        same(stopped.members.params, starts)
        same(again.members.params, jax.tree.map(lambda a: a[:1], starts))
    else:
        np.testing.assert_array_equal(stopped.errors, again.errors)
        assert not np.array_equal(members.params["output"]["kernel"][0], members.params["output"]["kernel"][1])


@pytest.mark.parametrize("wrapped", ["normalised", "scaled"])
def test_what_was_made_small_passes_through(wrapped):
    """At its own parameters it is the energy of the network inside, on the cases as it sees them."""
    learner = CHANGING[wrapped](Conjugate(MLP((2,), init="lecun"), steps=2, penalty=learn.L2(0.3)))

    @jax.jit
    def both(x, y, w):
        trained = learner.fit(KEY, x, y, w)
        free, rebuild, cost = learner.minimised(trained)
        cases = iterative.prepare(learner.inputs_inside(trained, x), learner.targets_inside(trained, y), w)
        losses, penalty = cost(free, x, y)
        return jnp.sum(w * losses) + penalty, learner.base.energy(free, cases), learner.predict(rebuild(free), x)

    with jax.enable_x64(True):
        x, y, w = arrays(np.float64)
        total, energy, predicted = both(x, y, w)
        assert total == pytest.approx(float(energy), rel=1e-12)
        np.testing.assert_allclose(predicted, learner.predict(learner.fit(KEY, x, y, w), x), rtol=1e-12)


def test_copies_cannot_be_named_after_training():
    with pytest.raises(
        ValueError, match=r"whose training cases are those of the data, got Augmented.*; resample it, or"
    ):
        Augmented(STILL, augment=jittered).minimised(jnp.zeros(3))


# What learners say of themselves


@dataclass(frozen=True, repr=False)
class Silent(Value):
    """A learner of a user's own."""

    def fit(self, key, x, y, w):
        return jnp.zeros(1)

    def predict(self, params, x):
        return x[:, :1]


SAYS = [
    (LeastSquares(), "numbers", NONE, True),
    (Ridge(), "numbers", NONE, True),
    (Mean(), "means", ALL, False),
    (Neighbours(), "means", Freedom(x_shift=True, y_shift=True), True),
    (Logistic(ridge=0.0), "probabilities", NONE, True),
    (Descent(), "numbers", NONE, False),
    (Descent(objective="huber"), "numbers", NONE, False),
    (Descent(objective="hinge"), "scores", NONE, False),
    (Conjugate(objective="softmax_cross_entropy"), "probabilities", NONE, False),
    (Normalised(Neighbours()), "means", ALL, True),
    (Normalised(LeastSquares()), "numbers", ALL, True),
    (Normalised(Logistic(ridge=0.0)), "probabilities", SOME, True),
    (Normalised(Descent(objective="hinge"), how="standard"), "scores", SOME, False),
    (Normalised(Descent(), how="none"), "numbers", NONE, False),
    (Normalised(Mean(), targets="unchanged"), "means", ALL, False),
    (Normalised(Descent(), targets="unchanged"), "numbers", SOME, False),
    (Normalised(Silent()), "anything", ALL, False),
    (Ensemble(Normalised(Descent())), "numbers", ALL, False),
    (EarlyStopped(Normalised(Descent())), "numbers", ALL._replace(y_scale=False), False),
    (EarlyStopped(Normalised(Descent()), loss=lambda y, p: y[:, 0]), "numbers", SOME, False),
    (Normalised(EarlyStopped(Descent())), "numbers", ALL, False),
    (Scaled(Normalised(Descent())), "numbers", Freedom(y_scale=True), False),
    (Augmented(Normalised(Neighbours()), augment=jittered), "means", NONE, True),
]


@pytest.mark.parametrize(("learner", "predicts", "freedom", "precise"), SAYS, ids=lambda value: str(value)[:60])
def test_what_learners_say_of_themselves(learner, predicts, freedom, precise):
    assert learner.predicts == predicts
    assert learner.freedom == freedom
    assert learner.precise == precise


def test_inputs_that_must_come_as_they_are_pass_through():
    inside = Descent(PerTask(MLP((2,)), 2, column=1))
    for learner in (Normalised(inside), Ensemble(EarlyStopped(Augmented(Scaled(inside), augment=jittered)))):
        assert learner.raw_inputs == (1,)


# Units


@pytest.mark.parametrize("value", [0.0, 1e-30, 0.1, 1.0, 3.0, 4.0, 1e30, np.inf, np.nan])
def test_binary_units(value, dtype):
    unit = float(binary_unit(jnp.asarray(value, dtype)))
    if not np.isfinite(value) or value == 0:
        assert unit == 1
    else:
        assert np.frexp(unit)[0] == 0.5
        assert unit <= dtype.type(value) < 2 * unit


def test_binary_units_at_the_ends_of_the_range(dtype):
    """Numbers with fewer digits than others count as 0 where the processor is told to take them so."""
    ends = np.finfo(dtype)
    got = np.asarray(binary_unit(jnp.asarray([ends.max, ends.tiny, ends.tiny / 2, ends.smallest_subnormal], dtype)))
    np.testing.assert_array_equal(got[:2], [2.0 ** (ends.maxexp - 1), ends.tiny])
    assert np.isin(got[2:], [ends.tiny, 1]).all()


UNIT = 2.0**-90
"""Squares of numbers in this unit vanish in single precision."""


@pytest.mark.parametrize("unit", [UNIT, 1 / UNIT])
@pytest.mark.parametrize(
    "learner",
    [
        Neighbours(),
        Neighbours(3),
        EarlyStopped(Normalised(Descent(MLP((2,)), steps=20)), folds=2),
        EarlyStopped(Normalised(Descent(MLP((2,)), steps=20), how="standard"), folds=2, loss=loss.absolute),
        Normalised(LeastSquares(), how="standard"),
        LeastSquares(),
    ],
    ids=repr,
)
def test_extreme_units_change_no_digit_of_what_is_learned(learner, unit):
    """In single precision; a power of two changes no digit of the data either."""
    x, y, w = arrays()

    @jit
    def predicted(learner, x, y):
        return learner.predict(learner.fit(KEY, x, y, w), x)

    want = predicted(learner, x, y)
    assert np.ptp(want) > 0.01
    np.testing.assert_array_equal(predicted(learner, x * unit, y * unit), want * unit)


@pytest.mark.parametrize("how", ["delve", "standard", "none"])
def test_rows_that_share_their_cases_get_the_fits_of_each(how):
    """Odd and even numbers of cases, weights of 2, ties, and a row in which a column is constant."""
    random = np.random.default_rng(1)
    learner = Normalised(LeastSquares(), how=how)
    x, w = np.round(X * 2) / 2, random.integers(0, 3, (6, N)).astype(float)
    x[:, 2] = random.normal(size=N)
    x[w[5] > 0, 2] = 7
    assert learner.shares_rows
    with jax.enable_x64(True):
        together, trusted = jit(lambda learner, *rest: learner.fit_rows(jax.random.split(KEY, 6), *rest, None))(
            learner, x, Y, w
        )
        each = jit(lambda learner, x, y, w: jax.vmap(lambda row: learner.fit(KEY, x, y, row))(w))(learner, x, Y, w)
    assert trusted.tolist() == [True] * 5 + [False]
    assert learner.failure(jax.tree.map(lambda a: a[5], each)) == 1
    for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(each), strict=True):
        np.testing.assert_allclose(a[:5], b[:5], rtol=1e-10, atol=1e-10)  # sums of the same terms in another order
    if how == "delve":
        np.testing.assert_array_equal(together.x_centre, each.x_centre)


@pytest.mark.parametrize("how", ["delve", "standard"])
def test_a_constant_has_no_spread_in_any_row(how, dtype):
    """Among many cases, whose sum is rounded: constants of 200 columns in all rows, but for a case that one leaves
    out.
    """
    constants = np.random.default_rng(0).normal(size=200)
    x, y, w = np.tile(constants, (300, 1)), np.arange(300.0)[:, None] % 7, np.ones((2, 300))
    x[0] += 1
    w[1, 0] = 0
    learner = Normalised(LeastSquares(ridge=1.0), how=how)
    rows = jit(lambda learner, *rest: learner.fit_rows(jax.random.split(KEY, 2), *rest, None))
    fits, _ = rows(learner, *(jnp.asarray(a, dtype) for a in (x, y, w)))
    assert (fits.x_scale[0] < 1).all()
    np.testing.assert_array_equal(fits.x_scale[1], 1)
    np.testing.assert_allclose(fits.x_centre[1], constants, rtol=1e-6)


RIDGES = [
    LeastSquares(ridge=3.0),
    Ridge((0.1, 1.0, 10.0, 100.0)),
    Logistic(),
    Logistic(ridge=0.0),
]


@pytest.mark.parametrize("inside", RIDGES, ids=repr)
@pytest.mark.parametrize(("how", "classes"), [("delve", 1), ("standard", 3)])
def test_rows_with_a_ridge_share_their_cases_in_units_of_their_own(inside, how, classes):
    """One target or class, and several, in units from 0.01 to 1000 about 100; rows that leave out nothing, a few, and
    half, with weights of 2. Double precision, times the condition of the normal equations.
    """
    random = np.random.default_rng(2)
    x = (X + random.normal(size=(N, 1))) * np.geomspace(0.01, 1000, X.shape[1]) + 100
    noise = X[:, :1] + random.normal(size=(N, classes))
    if inside.classifies:
        y = (noise > 0).astype(float) if classes == 1 else np.eye(classes)[noise.argmax(1)]
    else:
        y = 1000 * noise * np.arange(1, classes + 1) + 7
    w = np.ones((5, N))
    w[1, :3] = w[2, 5] = 0
    w[3:] = random.integers(0, 3, (2, N))
    learner = Normalised(inside, how=how, targets="by task")
    assert learner.shares_rows
    with jax.enable_x64(True):
        rows = jit(lambda learner, *rest: learner.fit_rows(jax.random.split(KEY, len(rest[2])), *rest, None))
        together, trusted = rows(learner, x, y, w)
        each = jit(lambda learner, x, y, w: jax.vmap(lambda row: learner.fit(KEY, x, y, row))(w))(learner, x, y, w)
        few = jit(lambda learner, *rest: learner.fit_rows(jax.random.split(KEY, 3), *rest, 3))(learner, x, y, w[:3])
    assert trusted.all()
    assert few[1].all()
    for name in ("weights", "intercept"):
        want = getattr(each.base, name)
        np.testing.assert_allclose(getattr(together.base, name), want, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(getattr(few[0].base, name), want[:3], rtol=1e-7, atol=1e-8)
    if isinstance(inside, Ridge):
        np.testing.assert_array_equal(together.base.ridge, each.base.ridge)
        np.testing.assert_allclose(together.base.error, each.base.error, rtol=1e-8)


def test_a_ridge_in_units_of_rows_is_that_of_scikit_learn():
    """Through `assess`, all ways of normal equations: few inputs, which are eliminated, many, and more than cases,
    which take conjugate gradients.
    """
    random = np.random.default_rng(3)
    for d in (3, 30, 90):
        x = random.normal(size=(60, d)) * np.geomspace(0.1, 10, d) + 3
        y = x @ random.normal(size=(d, 1)) + random.normal(size=(60, 1))
        plan = resample.k_fold(KEY, 60, 6)
        for inside, peer in (
            (LeastSquares(ridge=5.0), SklearnRidge(5.0)),
            (Ridge((1.0, 10.0, 100.0)), RidgeCV((1.0, 10.0, 100.0))),
        ):
            learner = Normalised(inside, how="standard", targets="unchanged")
            losses = assess(KEY, learner, Data(x, y, tuple(map(str, range(d)))), plan)
            for row, train in enumerate(plan.train > 0):
                model = make_pipeline(StandardScaler(), peer).fit(x[train], y[train, 0])
                # losses are returned in double precision of fits in double precision
                np.testing.assert_allclose(losses.values[row], (y[:, 0] - model.predict(x)) ** 2, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n", [150, 70])
def test_many_ridges_by_conjugate_gradients_are_those_by_bases(n):
    """Eighty inputs in units from 0.01 to 1000 about 100, two of them nearly alike, with more and fewer cases: rows
    that leave out nothing, a few and half, with weights of 2. Double precision, times the condition of the equations.
    A row is not trusted without a ridge to speak of, where inputs are more than cases.
    """
    random = np.random.default_rng(7)
    x = random.normal(size=(n, 80))
    x[:, 1] = x[:, 0] + 1e-3 * x[:, 2]
    y = np.stack([1000 * x[:, 0] + random.normal(size=n), x[:, 3:5].sum(1)], axis=1)
    x = x * np.geomspace(0.01, 1000, 80) + 100
    w = np.ones((5, n))
    w[1, :7] = w[2, 5] = 0
    w[3:] = random.integers(0, 3, (2, n))
    rows = jit(lambda learner, *rest: learner.fit_rows(jax.random.split(KEY, 5), *rest, None))
    few = jit(lambda learner, *rest: learner.fit_rows(jax.random.split(KEY, 3), *rest, 9))
    each = jit(lambda learner, x, y, w: jax.vmap(lambda row: learner.fit(KEY, x, y, row))(w))
    with jax.enable_x64(True):
        for ridge in (0.5, 30.0):
            learner = Normalised(LeastSquares(ridge=ridge), how="standard", targets="normalised")
            together, trusted = rows(learner, x, y, w)
            assert trusted.all()
            want = each(learner, x, y, w)
            np.testing.assert_allclose(together.base.weights, want.base.weights, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(together.base.intercept, want.base.intercept, rtol=1e-7, atol=1e-9)
            told, trusted = few(learner, x, y, w[:3])
            assert trusted.all()
            np.testing.assert_allclose(told.base.weights, want.base.weights[:3], rtol=1e-7, atol=1e-9)
        _, trusted = rows(Normalised(LeastSquares(ridge=1e-14), how="standard"), x, y, w)
    assert n > 80 or not trusted.any()


@pytest.mark.parametrize("intercept", [True, False])
def test_rows_that_differ_by_the_cases_they_leave_out_are_solved_in_a_round(intercept):
    """In units that rows share, what takes out these cases is the inverse of each row's matrix, against NumPy; the
    inverse for their mean weights is not. Rounding of double precision, times a condition of some hundred.
    """
    random = np.random.default_rng(11)
    x, y, w = random.normal(size=(60, 40)) + 1, random.normal(size=(60, 2)), np.ones((4, 60))
    for row in range(4):
        w[row, 7 * row : 8 * row + 2] = 0  # 2 to 5 cases, told as 6
    right, found = random.normal(size=(40, 2, 4)), {}
    with jax.enable_x64(True):
        rows, scale, ridge = (
            Products.of(*map(jnp.asarray, (x, y, w)), intercept),
            np.ones((4, 40)),
            np.full((4, 40), 2.0),
        )
        for left_out in (None, 6):
            solve = gradients_solver(rows, jnp.asarray(scale), jnp.asarray(ridge), left_out)
            found[left_out] = np.asarray(solve(jnp.asarray(right), jnp.asarray(0.5)))
    for row in range(4):
        cases = x[w[row] > 0] - (x[w[row] > 0].mean(0) if intercept else 0)
        want = np.linalg.solve(cases.T @ cases + 2 * np.eye(40), right[:, :, row])
        np.testing.assert_allclose(found[6][:, :, row], want, rtol=1e-9, atol=1e-12)
        assert np.abs(found[None][:, :, row] - want).max() > 1e-3 * np.abs(want).max()


@pytest.mark.parametrize(
    "inside",
    [LeastSquares(intercept=False), Ridge(intercept=False), Logistic(intercept=False), Mean()],
)
def test_rows_whose_fits_depend_on_units_are_not_shared(inside):
    assert not Normalised(inside).shares_rows


# Random numbers


def test_several_keys_are_those_of_split():
    """Under `vmap` too."""
    np.testing.assert_array_equal(
        *(jax.random.key_data(make(KEY, 7)) for make in (several, jax.random.split)), strict=True
    )
    keys = jax.random.split(KEY, 3)
    found, expected = (jax.vmap(lambda key, make=make: make(key, 2))(keys) for make in (several, jax.random.split))
    np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))


def test_streams_are_named():
    names = ["batch", "layers", "noise", "a"]
    drawn = [tuple(np.asarray(jax.random.key_data(stream(KEY, name)))) for name in names]
    few = [tuple(data) for data in np.asarray(jax.random.key_data(jax.random.split(KEY, 64)))]
    assert len({*drawn, *few}) == len(drawn) + len(few)


def test_batches_and_noise_draw_from_different_streams(monkeypatch):
    """None of their keys is another's, or one that another is split into, in any iteration and layer."""
    batches, layers = [], []
    randint, normal, bernoulli = jax.random.randint, nets._normal_of_cases, jax.random.bernoulli

    def recorded(function, keys):
        def called(key, *arguments):
            keys.append(key)
            return function(key, *arguments)

        return called

    monkeypatch.setattr(jax.random, "randint", recorded(randint, batches))
    monkeypatch.setattr(nets, "_normal_of_cases", recorded(normal, layers))
    monkeypatch.setattr(jax.random, "bernoulli", recorded(bernoulli, layers))
    learner = Descent(MLP((2,), noise=(0.1, 0.1), dropout=(0.1, 0.1)), batch=5, steps=2)
    with jax.disable_jit():
        learner.fit(KEY, *arrays()[:2], jnp.ones(N, jnp.float32))
    families = [
        {tuple(np.ravel(jax.random.key_data(member))) for member in (key, *jax.random.split(key, 3))}
        for key in (*batches, *layers)
    ]
    assert (len(batches), len(layers)) == (2, 8)
    assert len(set.union(*families)) == sum(map(len, families))
