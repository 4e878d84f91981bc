"""Gradient descent against NumPy and optax: steps, step factors, checkpoints, batches, and trainings that fail."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgen import Data, assess, learn, resample
from jaxgen.learn import L2, MLP, Conjugate, Descent, EarlyStopped, Optax, PerTask, Scaled
from jaxgen.learn.network.iterative import checkpoint_steps, prepare

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(24, 4)), RANDOM.normal(size=(24, 2))
Y[:, 0] += X[:, 0] * X[:, 1] + X[:, 2]
W = (np.arange(24) % 3).astype(float)
NETWORK = MLP((3,), skip=True, init=0.5)
EXACT = {np.dtype("float32"): 1e-5, np.dtype("float64"): 1e-12}
"""Error allowed between two orders of the same sums of about 100 numbers of size 1, after a few iterations."""

jit = partial(jax.jit, static_argnums=0)
start_of = jit(lambda learner, x, y: learner.init(jax.random.key(0), x, y))
path = jit(lambda learner, x, y, w: learner.path(jax.random.key(0), x, y, w))


@jit
def train(learner, x, y, w, at, start=None):
    """A trained network, and predictions of the cases `at`."""
    trained = learner.fit_from(start, jax.random.key(0), x, y, w)
    return trained, learner.predict(trained, at)


def init(learner, x, y):
    """Start parameters: those of the network, whatever the other settings."""
    return start_of(Descent(learner.network), x, y)


@pytest.fixture
def double():
    """Runs a test in double precision only."""
    with jax.enable_x64(True):
        yield np.dtype("float64")


@pytest.fixture
def lax_types():
    """For optax, which mixes types inside."""
    with jax.numpy_dtype_promotion("standard"):
        yield


def arrays(dtype, *values):
    return tuple(jnp.asarray(value, dtype) for value in values)


def close(a, b, dtype):
    assert a.dtype == dtype
    np.testing.assert_allclose(a, b, rtol=EXACT[dtype], atol=EXACT[dtype])


def numpy_step(params, x, y, w, rate, relevance, ridge):
    """One iteration on the network `NETWORK`, the gradient by hand; cases are rows here."""
    v, b, u, c, s = (
        params[layer][name]
        for layer, name in (
            ("hidden_0", "kernel"),
            ("hidden_0", "bias"),
            ("output", "kernel"),
            ("output", "bias"),
            ("skip", "kernel"),
        )
    )
    h = np.tanh(x @ v.T + b)
    error = w[:, None] * (h @ u.T + c + x @ s.T - y)
    back = (error @ u) * (1 - h**2)
    gradient = {
        "hidden_0": {"kernel": back.T @ x + ridge * v, "bias": back.sum(0)},
        "output": {"kernel": error.T @ h + ridge * u, "bias": error.sum(0)},
        "skip": {"kernel": error.T @ x + ridge * s},
    }
    factor = {"hidden_0": 1.0, "skip": 1.0}
    if relevance == "gradient":
        factor = {layer: np.sum(gradient[layer]["kernel"] ** 2, axis=0) ** 2 for layer in factor}
        factor = {layer: r / r.max() for layer, r in factor.items()}
    if relevance == "correlation":
        sizes = np.sum(((w[:, None] * x).T @ y) ** 2, axis=1)
        factor = dict.fromkeys(factor, np.maximum(1e-4, sizes**2 / np.max(sizes**2)))
    step = rate / (w.sum() + 1)
    return {
        layer: {
            name: values - step * (factor.get(layer, 1.0) if name == "kernel" else 1.0) * gradient[layer][name]
            for name, values in params[layer].items()
        }
        for layer in params
    }


@pytest.mark.parametrize("relevance", ["none", "gradient", "correlation"])
def test_steps_are_those_of_numpy(relevance, dtype):
    """Three iterations with weights of cases, a penalty, the divisor N + 1, and step factors also for direct
    connections.
    """
    learner = Descent(NETWORK, steps=3, rate=0.3, penalty=L2(0.7), relevance=relevance)
    x, y, w = arrays(dtype, X, Y, W)
    start = init(learner, x, y)
    want = jax.tree.map(lambda a: np.asarray(a, np.float64), start)
    for _ in range(3):
        want = numpy_step(want, X, Y, W, 0.3, relevance, 0.7)
    got, _ = train(learner, x, y, w, x, start)
    jax.tree.map(lambda a, b: close(a, b, dtype), got.params, want)


def test_correlation_is_training_on_scaled_inputs(double):
    """Inputs multiplied by f_i, from the same random start: the network with step factors f_i^2 starts at f_i times
    these weights.
    """
    x, y, w = arrays(double, X, Y, W)
    sizes = np.sum(((W[:, None] * X).T @ Y) ** 2, axis=1)
    f = jnp.asarray(np.maximum(0.01, sizes / sizes.max()))
    _, got = train(Descent(NETWORK, steps=20, relevance="correlation"), x, y, w, x)
    _, want = train(Descent(NETWORK, steps=20), x * f[None], y, w, x * f[None])
    close(got, want, double)
    assert np.min(f) < 0.1
    fit, scaled = train(Scaled(Descent(NETWORK, steps=20)), x, y, w, x)
    close(scaled, want, double)
    close(fit.factors, f, double)


def test_early_stopping_finds_correlations_in_the_cases_it_is_given(double):
    """Outside of it, from all training cases; inside, from those of estimation, which is what step factors by
    correlation do.
    """
    x, y, w = arrays(double, X, Y, W)
    inside, factors = (
        train(EarlyStopped(base, folds=3), x, y, w, x)[1]
        for base in (Scaled(Descent(NETWORK, steps=20)), Descent(NETWORK, steps=20, relevance="correlation"))
    )
    close(inside, factors, double)
    fit, outside = train(Scaled(EarlyStopped(Descent(NETWORK, steps=20), folds=3)), x, y, w, x)
    sizes = np.sum(((W[:, None] * X).T @ Y) ** 2, axis=1)
    close(fit.factors, jnp.maximum(0.01, jnp.asarray(sizes / sizes.max())), double)
    assert np.max(np.abs(outside - inside)) > 1e-3


@pytest.mark.parametrize("network", [NETWORK, PerTask(NETWORK)], ids=repr)
def test_the_size_of_input_weights_is_told(network, double):
    """Of all layers that read the inputs, direct connections included, and of all tasks."""
    x, y, w = arrays(double, X, Y, W)
    learner = Descent(network, steps=2, relevance="gradient")
    fit, _ = train(learner, x, y, w, x)
    kernels = [np.asarray(fit.params[layer]["kernel"]).reshape(-1, x.shape[1]) for layer in ("hidden_0", "skip")]
    np.testing.assert_allclose(
        learner.diagnose(fit)["input_weights"], np.linalg.norm(np.concatenate(kernels), axis=0), rtol=1e-12
    )  # rounding
    assert "input_weights" not in Descent(network, steps=2).diagnose(fit)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.integers(0, 2**30), st.sampled_from([1e-8, 1e-3, 1.0, 1e8]))
def test_step_factors_are_shares_of_the_largest(seed, size):
    kernel = size * np.random.default_rng(seed).normal(size=(3, 5)).astype(np.float32)
    (factors,) = Descent(relevance="gradient")._factors({"hidden_0": {"kernel": jnp.asarray(kernel)}})
    assert np.all((factors >= 0) & (factors <= 1))
    assert np.max(factors) > 1 - 1e-6  # a division in single precision
    squares = np.sum(kernel.astype(float) ** 2, axis=0) ** 2
    np.testing.assert_allclose(factors, squares / squares.max(), rtol=1e-5)  # single precision


def test_no_gradient_is_no_step():
    (factors,) = Descent(relevance="gradient")._factors({"hidden_0": {"kernel": jnp.zeros((3, 5))}})
    np.testing.assert_array_equal(factors, 0)
    x, y, w = arrays(np.float32, np.zeros((6, 4)), np.zeros((6, 1)), np.ones(6))
    for relevance in ("gradient", "correlation"):
        trained, predicted = train(Descent(MLP((2,)), steps=3, relevance=relevance), x, y, w, x)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(trained))
        assert np.isfinite(predicted).all()


def test_factors_of_equal_inputs_are_one(double):
    """The same input four times with equal weights: the method with factors is the method without."""
    x, y, w = arrays(double, X[:, [0, 0, 0, 0]], Y, W)
    start = init(Descent(NETWORK), x, y)
    for layer in ("hidden_0", "skip"):
        start[layer]["kernel"] = jnp.broadcast_to(start[layer]["kernel"][:, :1], start[layer]["kernel"].shape)
    want = train(Descent(NETWORK, steps=5), x, y, w, x, start)[1]
    for relevance in ("gradient", "correlation"):
        close(train(Descent(NETWORK, steps=5, relevance=relevance), x, y, w, x, start)[1], want, double)


@pytest.mark.parametrize("relevance", ["gradient", "correlation"])
def test_factors_of_tasks(relevance):
    """By gradients every task has factors of its own; correlations are with all targets."""
    x, y, w = arrays(np.float32, X, Y, W)
    learner = Descent(PerTask(NETWORK), steps=1, relevance=relevance)
    start = init(learner, x, y)
    got, _ = train(learner, x, y, w, x, start)
    plain, _ = train(Descent(PerTask(NETWORK), steps=1), x, y, w, x, start)
    for layer in ("hidden_0", "skip"):
        moved, whole = (
            np.linalg.norm(p.params[layer]["kernel"] - start[layer]["kernel"], axis=1) for p in (got, plain)
        )
        factors = moved / whole
        np.testing.assert_allclose(factors.max(axis=1), 1, rtol=1e-3)  # differences of weights in single precision
        assert np.any(np.abs(factors[0] - factors[1]) > 0.01) == (relevance == "gradient")


IN_UNITS = [
    Descent(NETWORK, steps=20, relevance="gradient", penalty=L2(0.1)),
    Descent(MLP((), skip=True, init=0.5), steps=20),
    Descent(MLP((3, 2), batch_norm=True, init=0.5), steps=20, optimiser=Optax("adam", learning_rate=0.01)),
    Conjugate(NETWORK, steps=20),
]


@pytest.mark.parametrize("learner", IN_UNITS, ids=repr)
@pytest.mark.usefixtures("lax_types")
def test_units_move_into_the_first_layer(learner, double):
    """Inputs in units of the row, made or not: the same training but for rounding, of 20 steps; NaN of absent cases."""
    assert learner.takes_units
    centre, scale = np.arange(4.0) - 1, np.array([0.5, 2.0, 10.0, 1.0])
    spoiled = np.where(W[:, None] > 0, X, np.nan)
    key, given = jax.random.key(0), arrays(double, spoiled, Y, W, centre, scale)
    found = jax.jit(learner.fit_in_units)(key, *given)
    wanted = jax.jit(learner.fit)(key, *arrays(double, (X - centre) / scale, Y, W))
    for got, want in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "learner",
    [
        Descent(MLP((3,), noise=0.1)),
        Descent(NETWORK, batch=8),
        Descent(NETWORK, relevance="correlation"),
        Descent(PerTask(MLP((3,)), tasks=2)),
    ],
    ids=repr,
)
def test_units_that_cannot_move_are_written_out(learner, double):
    """Noise of inputs, batches and correlations look at inputs as the network sees them."""
    learner = replace(learner, steps=5)
    assert not learner.takes_units
    centre, scale = np.arange(4.0) - 1, np.array([0.5, 2.0, 10.0, 1.0])
    key = jax.random.key(0)
    found = jax.jit(learner.fit_in_units)(key, *arrays(double, X, Y, W, centre, scale))
    wanted = jax.jit(learner.fit)(key, *arrays(double, (X - centre) / scale, Y, W))
    for got, want in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


def test_a_class_that_trains_otherwise_does_so_in_units(double):
    """What derives from a learner of networks and has a `fit` of its own."""

    class Untrained(Descent):
        def fit(self, key, x, y, w, start=None):
            return super().fit(key, x, y, 0 * w + 1, start)

    learner, key = Untrained(NETWORK, steps=3), jax.random.key(0)
    centre, scale = np.arange(4.0) - 1, np.array([0.5, 2.0, 10.0, 1.0])
    found = learner.fit_in_units(key, *arrays(double, X, Y, W, centre, scale))
    wanted = learner.fit(key, *arrays(double, (X - centre) / scale, Y, W))
    np.testing.assert_array_equal(found.params["output"]["bias"], wanted.params["output"]["bias"])


def test_a_case_that_no_network_can_learn_from_fails_its_rows_only():
    """Inputs whose squares overflow, in single precision: the rows that train on the case are marked, others are as
    without it.
    """
    spoiled = X.astype(np.float32)
    spoiled[3] = 1e30
    learner, key = Descent(NETWORK, steps=5), jax.random.key(0)
    fit = jax.jit(lambda x, w: learner.failure(learner.fit(key, x, *arrays(np.float32, Y), w)))
    with_it, without = np.ones(24, np.float32), (np.arange(24) != 3).astype(np.float32)
    assert fit(jnp.asarray(spoiled), jnp.asarray(with_it)) == 1
    assert fit(jnp.asarray(spoiled), jnp.asarray(without)) == 0


@pytest.mark.usefixtures("lax_types")
def test_the_path_ends_where_shorter_trainings_end(double):
    """Also with random batches and dropout, whose draws depend on the iteration only; the start is what `init`
    gives.
    """
    learner = Descent(
        MLP((3,), dropout=0.3), steps=7, checkpoints=(2, 5), batch=6, optimiser=Optax("adam", learning_rate=0.05)
    )
    assert learner.checkpoint_steps == (2, 5, 7)
    x, y, w = arrays(double, X, Y, W)
    saved = path(learner, x, y, w)
    assert saved.failed_step.shape == (3,)
    for k, steps, start in ((1, 5, init(learner, x, y)), (2, 7, None)):
        trained, _ = train(
            Descent(MLP((3,), dropout=0.3), steps=steps, batch=6, optimiser=learner.optimiser), x, y, w, x, start
        )
        jax.tree.map(
            lambda a, b, k=k: np.testing.assert_allclose(a[k], b, rtol=100 * EXACT[double], atol=EXACT[double]),
            saved,
            trained,
        )


NEAL = (
    *range(1, 11),
    *range(12, 21, 2),
    *range(25, 51, 5),
    *range(60, 101, 10),
    *range(120, 201, 20),
    *range(250, 501, 50),
    *range(600, 1001, 100),
)
NEAL += (*range(1200, 2001, 200), *range(2500, 5001, 500), *range(6000, 10001, 1000), *range(12000, 20001, 2000))


def test_saves_of_neal():
    assert len(NEAL) == 63
    assert checkpoint_steps("1-2-5", 20_000) == checkpoint_steps(63, 20_000) == NEAL
    assert checkpoint_steps("1-2-5", 23) == (*range(1, 11), 12, 14, 16, 18, 20, 23)
    assert checkpoint_steps("1-2-5", 1) == (1,)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.data())
def test_saves_increase_to_the_last_step(data):
    steps = data.draw(st.integers(1, 30_000))
    number = data.draw(st.integers(1, steps) | st.integers(1, min(steps, 40)) | st.integers(max(1, steps - 3), steps))
    for checkpoints in (checkpoint_steps(number, steps), checkpoint_steps("1-2-5", steps)):
        assert checkpoints[-1] == steps
        assert checkpoints[0] == 1 or len(checkpoints) == 1
        assert np.all(np.diff(checkpoints) > 0)
    assert len(checkpoint_steps(number, steps)) == number


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.sets(st.integers(1, 100), min_size=1), st.integers(0, 5))
def test_saves_may_be_listed(chosen, more):
    listed = tuple(sorted(chosen))
    assert checkpoint_steps(listed, listed[-1] + more) == (listed if more == 0 else (*listed, listed[-1] + more))


@pytest.mark.parametrize(("relevance", "bits"), [("none", 32), ("correlation", 64)])
def test_batches_touch_only_cases_in_use(relevance, bits):
    """A mask is a slice, even with NaN behind it, and weight 2 is the case twice: the draws are numbers of repeated
    cases.
    """
    with jax.enable_x64(bits == 64):
        check_batches(relevance, np.dtype(f"float{bits}"))


def check_batches(relevance, dtype):
    learner = Descent(MLP((3,), dropout=0.2), steps=6, batch=5, relevance=relevance)
    used, twice = W > 0, np.repeat(np.arange(24), W.astype(int))
    x, y, w = arrays(dtype, X, Y, W)
    bad = (np.where(used[:, None], a, dtype.type(np.nan)) for a in (x, y))
    _, masked = train(learner, *map(jnp.asarray, bad), w, x)
    close(train(learner, x[used], y[used], w[used], x)[1], masked, dtype)
    close(train(learner, x[twice], y[twice], jnp.ones_like(w[twice]), x)[1], masked, dtype)


def test_batches_are_drawn_by_weight():
    """20,000 draws of 24 cases: each count, which is binomial, within 5 of its standard deviations of what its weight
    says.
    """
    learner = Descent(batch=5)
    cases = prepare(*arrays(np.float32, np.arange(24)[:, None], np.zeros((24, 1)), W))

    def drawn(_, key):
        batch, share = learner._batch(key, cases, jnp.cumsum(cases.w), 5)
        return batch.x[0], batch.w, share

    x, w, share = jit(lambda learner, keys: jax.vmap(partial(drawn, learner))(keys))(
        learner, jax.random.split(jax.random.key(0), 4000)
    )
    assert np.all(w == 1)
    np.testing.assert_allclose(share, 5 / W.sum(), rtol=1e-6)  # single precision
    counts, p = np.bincount(np.asarray(x, int).ravel(), minlength=24), W / W.sum()
    assert not counts[W == 0].any()
    assert np.all(np.abs(counts - 20_000 * p) <= 5 * np.sqrt(20_000 * p * (1 - p)))
    assert any(len(set(row)) < 5 for row in np.asarray(x)), "with replacement"


def test_the_gradient_of_batches_is_that_of_all_cases_on_average():
    """5 standard errors over 4000 draws, for each of 29 gradients."""
    learner = Descent(NETWORK, batch=5, penalty=L2(0.5))
    cases = prepare(*arrays(np.float32, X, Y, W))
    params = init(learner, *arrays(np.float32, X, Y))

    def one(key):
        batch, share = learner._batch(key, cases, jnp.cumsum(cases.w), 5)
        return jax.grad(learner.energy)(params, batch, None, share)

    found = jit(lambda _, keys: jax.vmap(one)(keys))(learner, jax.random.split(jax.random.key(1), 4000))
    whole = jit(lambda learner: jax.grad(learner.energy)(params, cases))(learner)
    for got, want in zip(jax.tree.leaves(found), jax.tree.leaves(whole), strict=True):
        got = np.asarray(got, np.float64)
        assert np.all(np.abs(got.mean(0) - want) < 5 * got.std(0) / np.sqrt(4000))


ADAM = Optax("adam", learning_rate=0.05, b1=0.8)
CHAIN = Optax(
    "chain",
    Optax("clip_by_global_norm", 0.5),
    Optax("sgd", learning_rate=Optax("cosine_decay_schedule", init_value=0.3, decay_steps=4), momentum=0.9),
)
OPTAX = {
    ADAM: lambda: optax.adam(0.05, b1=0.8),
    CHAIN: lambda: optax.chain(
        optax.clip_by_global_norm(0.5), optax.sgd(optax.cosine_decay_schedule(0.3, 4), momentum=0.9)
    ),
}


@pytest.mark.usefixtures("lax_types")
@pytest.mark.parametrize("optimiser", OPTAX, ids=lambda optimiser: optimiser.name)
def test_an_optimiser_of_optax_is_given_the_gradient_of_the_mean(optimiser, dtype):
    """E / N, with N the sum of the weights: a loop of seven updates by hand."""
    learner = Descent(NETWORK, steps=7, optimiser=optimiser, penalty=L2(0.2))
    x, y, w = arrays(dtype, X, Y, W)
    params = init(learner, x, y)
    cases, by_hand = prepare(x, y, w), OPTAX[optimiser]()
    state = by_hand.init(params)

    @jax.jit
    def update(params, state):
        gradient = jax.tree.map(lambda g: g / dtype.type(W.sum()), jax.grad(learner.energy)(params, cases))
        moves, state = by_hand.update(gradient, state, params)
        return optax.apply_updates(params, moves), state

    for _ in range(7):
        params, state = update(params, state)
    got, _ = train(learner, x, y, w, x)
    jax.tree.map(lambda a, b: close(a, b, dtype), got.params, params)


@pytest.mark.usefixtures("lax_types")
def test_an_optax_transformation_itself_and_plain_steps_agree():
    """Steps of rate / (N + 1) dE/dw are those of optax's sgd with rate N / (N + 1)."""
    x, y, w = arrays(np.float32, X, Y, W)
    n = W.sum()
    want = train(Descent(NETWORK, steps=5, rate=0.3), x, y, w, x)[1]
    for optimiser in (optax.sgd(0.3 * n / (n + 1)), Optax("sgd", 0.3 * n / (n + 1))):
        close(train(Descent(NETWORK, steps=5, optimiser=optimiser), x, y, w, x)[1], want, np.dtype("float32"))


@pytest.mark.usefixtures("lax_types")
def test_relevance_multiplies_the_steps_of_an_optimiser():
    """One step of Adam has the size of the rate for every weight, so that the factors are what is left; single
    precision.
    """
    x, y, w = arrays(np.float32, X, Y, W)
    learner = Descent(MLP((3,), init=0.5), steps=1, optimiser=Optax("adam", 0.1), relevance="gradient")
    start = init(learner, x, y)
    trained, _ = train(learner, x, y, w, x, start)
    (factors,) = jit(lambda learner: learner._factors(jax.grad(learner.energy)(start, prepare(x, y, w))))(learner)
    moved = np.abs(trained.params["hidden_0"]["kernel"] - start["hidden_0"]["kernel"])
    np.testing.assert_allclose(moved, 0.1 * np.broadcast_to(factors, (3, 4)), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("optimiser", OPTAX, ids=lambda optimiser: optimiser.name)
def test_an_optimiser_is_a_value(optimiser):
    learner = Descent(
        NETWORK, optimiser=optimiser, checkpoints=(1, 5), penalty=(L2(0.1),), relevance="gradient", tolerance=0.1
    )
    again = learn.from_text(repr(learner))
    assert again == learner
    assert hash(again) == hash(learner)
    assert again.optimiser == optimiser
    assert again.optimiser != Optax(optimiser.name)
    assert Optax("adam", learning_rate=0.05, b1=0.9) != ADAM


TEN = RANDOM.normal(size=(10, 1))
FAR = Data(np.vstack([TEN, [[100.0]]]), np.vstack([TEN, [[300.0]]]), ("x",))
LINEAR = MLP(())


def test_a_training_that_diverges_fails_alone():
    """Only row 1 of 3 trains on the last case, whose large input makes the step too large: the error grows 10^5-fold
    an iteration and overflows.
    """
    train_on = np.ones((3, 11), np.uint8)
    train_on[[0, 2], -1], train_on[0, 0], train_on[2, 1] = 0, 0, 0
    train_on[1, 3] = 0
    plan = resample.from_weights(train_on, 1 - train_on)
    learner = Descent(LINEAR, steps=40, rate=1.0)
    losses = assess(jax.random.key(0), learner, FAR, plan)
    assert losses.failed.tolist() == [False, True, False]
    with pytest.raises(
        ValueError,
        match=r"1 failed of 3 for Descent\(.*\).*row 1.*: the error of its network was no longer finite "
        r"\(.*use a smaller rate, or normalise the data",
    ):
        _ = losses.g
    failed_step = losses.info["failed_step"]
    assert failed_step[[0, 2]].tolist() == [-1, -1]
    good = assess(jax.random.key(0), learner, FAR, resample.from_weights(train_on[[0, 0, 2]], 1 - train_on[[0, 0, 2]]))
    np.testing.assert_array_equal(losses.values[[0, 2]], good.values[[0, 2]])
    # a training that ends before that iteration has not failed, one that ends with it has
    x, y, w = arrays(np.float32, FAR.x, FAR.y, train_on[1])
    for steps, want in ((int(failed_step[1]) - 1, -1), (int(failed_step[1]), failed_step[1])):
        assert int(train(Descent(LINEAR, steps=steps, rate=1.0), x, y, w, x)[0].failed_step) == want


LIMIT = 0.13


def test_a_network_above_the_tolerance_fails():
    """Its gradient, relative to that of a random start, shrinks as training goes on; a tolerance marks the rows that
    are not there yet.
    """
    data, plan = Data(X, Y, tuple("abcd")), resample.k_fold(jax.random.key(0), 24, folds=3)
    x, y, w = arrays(np.float32, X, Y, plan.train[0])
    gradients = path(Descent(LINEAR, steps=300, rate=0.5, checkpoints=(5,)), x, y, w).gradient
    assert gradients[0] > 1e-2
    assert gradients[1] < 1e-5  # rounding in single precision
    losses = assess(jax.random.key(0), Descent(LINEAR, steps=5, rate=0.5, tolerance=LIMIT), data, plan)
    np.testing.assert_array_equal(losses.failed, losses.info["gradient"] > LIMIT)
    assert 0 < losses.failed.sum() < 3
    with pytest.raises(
        ValueError,
        match=r"its network had not converged after the last iteration \(info\['gradient'\] is above the "
        r"tolerance; use more steps\)",
    ):
        _ = losses.g


DATA = Data(X, Y, tuple("abcd"))
SENTENCES = {
    "rate of 0": (
        Descent(rate=0.0),
        "the rate to be a finite number above 0, got 0.0; Neal 1998 uses 0.1 on normalised data",
    ),
    "rate NaN": (Descent(rate=float("nan")), "the rate to be a finite number above 0, got nan"),
    "no steps": (Descent(steps=0), "the steps of Descent to be a whole number from 1 to 2147483647, got 0; train for"),
    "tolerance of 0": (
        Descent(tolerance=0.0),
        "the tolerance to be a number above 0, got 0.0; leave it out to accept all networks",
    ),
    "batch of none": (
        Descent(batch=0),
        "the cases of a batch to be a whole number of at least 1, got 0; leave batch out",
    ),
    "unknown relevance": (
        Descent(relevance="ard"),
        "relevance to be one of 'none', 'gradient', 'correlation', got 'ard'; choose one of these",
    ),
    "unknown checkpoints": (
        Descent(checkpoints="log"),
        r"checkpoints='1-2-5', a whole number from 1 to the 1000 steps, or a tuple of iterations, got "
        r"'log'; choose one of these",
    ),
    "too many checkpoints": (
        Descent(steps=5, checkpoints=6),
        "a whole number from 1 to the 5 steps, or a tuple of iterations, got 6",
    ),
    "no checkpoints": (Descent(checkpoints=0), "a whole number from 1 to the 1000 steps, .*, got 0"),
    "checkpoints out of order": (
        Descent(checkpoints=(5, 3)),
        r"checkpoints at increasing iterations from 1 to 1000, got \(5, 3\); list each once, in order",
    ),
    "checkpoints beyond the end": (
        Descent(steps=4, checkpoints=(3, 5)),
        r"checkpoints at increasing iterations from 1 to 4, got \(3, 5\)",
    ),
    "checkpoints at the start": (
        Descent(checkpoints=(0, 5)),
        r"checkpoints at increasing iterations from 1 to 1000, got \(0, 5\)",
    ),
    "an empty tuple of checkpoints": (
        Descent(checkpoints=()),
        r"checkpoints at increasing iterations from 1 to 1000, got \(\)",
    ),
    "unknown optimiser": (
        Descent(optimiser=Optax("adamm", 0.1)),
        r"a function of optax with its arguments, got Optax\('adamm', 0.1\) \(.*\); "
        r"write for example Optax\('adam', learning_rate=0.001\)",
    ),
    "unknown argument": (
        Descent(optimiser=Optax("adam", rate=0.1)),
        r"a function of optax with its arguments, got Optax\('adam', rate=0.1\) \(.*rate.*\)",
    ),
    "no argument": (
        Descent(optimiser=Optax("adam")),
        r"a function of optax with its arguments, got Optax\('adam'\) \(.*learning_rate.*\)",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_bad_input_is_named(case, own_messages):
    learner, message = SENTENCES[case]
    with pytest.raises(ValueError, match=message) as caught:
        assess(jax.random.key(0), learner, DATA, resample.k_fold(jax.random.key(0), 24, folds=3))
    assert str(caught.value).startswith("expected ")
    assert "\n" not in str(caught.value)


def test_relevance_needs_known_input_weights(own_messages):
    import flax.linen as nn

    with pytest.raises(
        ValueError,
        match="expected an MLP for relevance='gradient', got Dense, whose input weights are not known; "
        "use learn.MLP, or relevance='none'",
    ):
        assess(
            jax.random.key(0),
            Descent(nn.Dense(2), relevance="gradient"),
            DATA,
            resample.k_fold(jax.random.key(0), 24, folds=3),
        )
