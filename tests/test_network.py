"""Networks against NumPy, and what dropout, noise, batch normalisation, tasks and modules of the user's own promise."""

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxgen import Data, assess, learn, resample
from jaxgen.learn import L2, MLP, Descent, PerTask, Sparse, Tied
from jaxgen.learn.network import nets
from jaxgen.learn.network.activations import tanh
from jaxgen.learn.network.iterative import prepare
from jaxgen.learn.network.nets import as_network

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(24, 4)), RANDOM.normal(size=(24, 2))
Y[:, 0] += X[:, 0] * X[:, 1]
W = (np.arange(24) % 3).astype(float)
EXACT = {np.dtype("float32"): 1e-5, np.dtype("float64"): 1e-12}
"""Error allowed between two orders of the same sums of about 100 numbers of size 1, after a few iterations."""


def identity(x):
    return x


@pytest.fixture
def double():
    """Runs a test in double precision only."""
    with jax.enable_x64(True):
        yield np.dtype("float64")


jit = partial(jax.jit, static_argnums=0)
start = jit(lambda network, key, x, y: as_network(network).start(key, x, y))
forward = jit(lambda network, *arguments: as_network(network).forward(*arguments))


@jit
def train(learner, x, y, w, at, start=None):
    """Parameters, and predictions of the cases `at`."""
    trained = learner.fit(jax.random.key(0), x, y, w, start)
    return trained.params, learner.predict(trained, at)


def close(a, b, dtype):
    assert a.dtype == dtype
    np.testing.assert_allclose(a, b, rtol=EXACT[dtype], atol=EXACT[dtype])


def arrays(dtype, *values):
    return tuple(jnp.asarray(value, dtype) for value in values)


def started(network, dtype, key=0, x=X, y=Y):
    """Start parameters, none of them at its neutral value, of networks with two outputs."""
    params = start(network, jax.random.key(key), *arrays(dtype, x, y))
    leaves, form = jax.tree.flatten(params)
    random = np.random.default_rng(key)
    return jax.tree.unflatten(
        form, [leaf + jnp.asarray(0.3 * random.normal(size=leaf.shape), dtype) for leaf in leaves]
    )


ACTIVATIONS = {"tanh": np.tanh, "relu": lambda h: np.maximum(h, 0), "softplus": lambda h: np.log1p(np.exp(h))}
NETWORKS = [
    MLP(()),
    MLP((), skip=True),
    MLP((3, 5), activation="relu"),
    MLP((3, 5), skip=True, batch_norm=True),
    MLP((3, 5, 2), activation="softplus", batch_norm=True),
]


def numpy_forward(network, params, x, w=None, statistics=None):
    """Outputs [n, K], activations [n, H] and statistics, written for cases [n, D] without any part of jaxgen."""
    h, hidden, found = x, [], []
    for number in range(len(network.hidden)):
        layer = params[f"hidden_{number}"]
        h = h @ layer["kernel"].T + layer["bias"]
        if network.batch_norm:
            if w is not None:
                mean = np.average(h, axis=0, weights=w)
                found.append((mean, np.average((h - mean) ** 2, axis=0, weights=w)))
            mean, variance = statistics[number] if w is None else found[-1]
            norm = params[f"norm_{number}"]
            h = norm["scale"] * (h - mean) / np.sqrt(variance + 1e-5) + norm["bias"]
        h = ACTIVATIONS[network.activation](h)
        hidden.append(h)
    outputs = h @ params["output"]["kernel"].T + params["output"]["bias"]
    return outputs + (x @ params["skip"]["kernel"].T if network.skip else 0), hidden, found


@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_forward_is_that_of_numpy(network, dtype):
    params = started(network, dtype)
    plain = jax.tree.map(lambda a: np.asarray(a, np.float64), params)
    x, w = arrays(dtype, X.T, W)
    got = forward(network, params, x, w)
    outputs, hidden, statistics = numpy_forward(network, plain, X, W)
    close(got.outputs.T, outputs, dtype)
    for layer, want in zip(got.hidden, hidden, strict=True):
        close(layer.T, want, dtype)
    if network.batch_norm:
        later = forward(network, params, x[:, :7], None, got.statistics)
        close(later.outputs.T, numpy_forward(network, plain, X[:7], None, statistics)[0], dtype)


def test_an_activation_may_be_a_function():
    params = started(MLP((3,)), np.float32)
    x = jnp.asarray(X.T, jnp.float32)
    named, given = (forward(MLP((3,), activation=each), params, x).outputs for each in ("sigmoid", jax.nn.sigmoid))
    np.testing.assert_array_equal(named, given)


def test_tanh_is_that_of_double_precision():
    """Every 31st number of single precision from 2^-40 to 2^7, both signs: within 6 units in the last place, where
    XLA's own is within 5; never beyond 1; NaN and infinities as they should be. In double precision it is JAX's.
    """
    least, most = (np.float32(2.0**power).view(np.int32) for power in (-40, 7))
    x = np.arange(least, most, 31, dtype=np.int32).view(np.float32)
    for sign in (1, -1):
        got = np.asarray(jax.jit(tanh)(jnp.asarray(sign * x)), np.float64)
        want = np.tanh(np.float64(sign * x))
        assert np.max(np.abs(got - want) / np.spacing(np.abs(want).astype(np.float32))) < 6
        assert np.max(np.abs(got)) <= 1
    special = np.asarray(tanh(jnp.asarray([0.0, np.inf, -np.inf, np.nan], np.float32)))
    np.testing.assert_allclose(special, [0, 1, -1, np.nan], rtol=4e-7)
    with jax.enable_x64(True):
        wide = jnp.linspace(-3, 3, 101)
        np.testing.assert_array_equal(tanh(wide), jnp.tanh(wide))


def test_derivatives_of_tanh():
    """First and second, from values in single precision: some roundings of numbers up to 1."""
    x = jnp.linspace(-10, 10, 401, dtype=np.float32)
    value = np.tanh(np.asarray(x, np.float64))
    first = jax.vmap(jax.grad(tanh))(x)
    np.testing.assert_allclose(first, 1 - value**2, atol=1e-6)
    second = jax.vmap(jax.grad(jax.grad(tanh)))(x)
    np.testing.assert_allclose(second, -2 * value * (1 - value**2), atol=2e-6)


@pytest.mark.parametrize("permuted", ["inputs", "units"])
def test_the_order_of_inputs_and_of_units_does_not_matter(permuted, double):
    """Even after training: permuted start parameters (and inputs) make the permuted network."""
    network = MLP((3, 5), skip=True, batch_norm=True)
    learner, params = Descent(network, steps=5), started(network, double)
    x, y, w = arrays(double, X, Y, W)
    _, want = train(learner, x, y, w, x, params)
    other = jax.tree.map(lambda a: a, params)
    if permuted == "inputs":
        order = np.array([2, 0, 3, 1])
        x = x[:, order]
        for name in ("hidden_0", "skip"):
            other[name]["kernel"] = params[name]["kernel"][:, order]
    else:
        order = np.array([2, 0, 1])
        for name in ("hidden_0", "norm_0"):
            other[name] = jax.tree.map(lambda a: a[order], params[name])
        other["hidden_1"]["kernel"] = params["hidden_1"]["kernel"][:, order]
    close(train(learner, x, y, w, x, other)[1], want, double)


def test_batch_norm_standardises_by_the_training_cases(double):
    """Under the parameters of the last iteration, units of the training cases have mean 0 and variance v / (v + 1e-5),
    whatever is predicted beside them.
    """
    network = MLP((6,), activation=identity, batch_norm=True, init=1.0)
    x, y, w = arrays(np.float64, X, Y, W)
    trained = jit(lambda learner: learner.fit(jax.random.key(0), x, y, w))(Descent(network, steps=20))
    norm = trained.params["norm_0"]
    units = (forward(network, trained.params, x.T, None, trained.statistics).hidden[0] - norm["bias"][:, None]) / norm[
        "scale"
    ][:, None]
    variance = trained.statistics[0][1]
    np.testing.assert_allclose(units @ w / w.sum(), 0, atol=1e-13)  # roundings
    np.testing.assert_allclose(jnp.square(units) @ w / w.sum(), variance / (variance + 1e-5), rtol=1e-12)
    one_by_one = [
        forward(network, trained.params, x[c : c + 1].T, None, trained.statistics).outputs[:, 0] for c in (0, 9)
    ]
    np.testing.assert_allclose(
        one_by_one,
        forward(network, trained.params, x.T, None, trained.statistics).outputs.T[np.array([0, 9])],
        rtol=1e-12,
    )


EVERYTHING = MLP((3,), dropout=0.3, noise=(0.2, 0.1), batch_norm=True, skip=True)


@pytest.mark.parametrize(("network", "bits"), [(EVERYTHING, 32), (EVERYTHING, 64), (PerTask(EVERYTHING), 64)])
def test_absent_cases_change_nothing(network, bits):
    """Not even as NaN, and not the noise of the others."""
    with jax.enable_x64(bits == 64):
        learner, used, dtype = Descent(network, steps=5), W > 0, np.dtype(f"float{bits}")
        x, y, w = arrays(dtype, X, Y, W)
        _, want = train(learner, x[used], y[used], w[used], x)
        bad_x, bad_y = (
            jnp.asarray(np.where(used[:, None], a, bad))
            for a, bad in ((x, dtype.type(np.nan)), (y, dtype.type(np.inf)))
        )
        close(train(learner, bad_x, bad_y, w, x)[1], want, dtype)


@pytest.mark.parametrize("network", [MLP((3,), skip=True), MLP(())], ids=repr)
@pytest.mark.parametrize("own", [True, False], ids=["cases of their own", "shared cases"])
@pytest.mark.parametrize("sets", [None, 2])
def test_a_turned_copy_of_the_inputs_changes_no_gradient(network, own, sets, double):
    """Networks that have cases of their own learn by the copy, and others by the inputs as they are: a copy of zeros
    tells which. Both are sums of 40 products in another order.
    """
    x, y = RANDOM.normal(size=(2, 5, 40, 30)), RANDOM.normal(size=(2, 5, 40, 2))
    w = jnp.ones(40)
    keys = jax.random.split(jax.random.key(0), (2, 5))

    def slopes(key, x, y, turned):
        learner = Descent(network)
        params = learner.init(key, x, y)
        cases = prepare(x, y, w)
        cases = cases if turned is None else cases._replace(turned=turned * x)
        return jax.grad(learner.energy)(params, cases)

    def of_all(turned):
        of_rows = jax.vmap(slopes, (0, 0 if own else None, 0, None))
        if sets is None:
            return jax.jit(of_rows)(keys[0], x[0] if own else x[0, 0], y[0], turned)
        return jax.jit(jax.vmap(of_rows, (0, 0, 0, None)))(keys, x if own else x[:, 0], y, turned)

    plain = of_all(None)
    for got, expected in zip(jax.tree.leaves(of_all(jnp.ones(()))), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    without = of_all(jnp.zeros(()))
    for name in network.input_layers:
        np.testing.assert_allclose(without[name]["kernel"], 0 if own else plain[name]["kernel"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("learner", [Descent(MLP((3,)), steps=5), learn.Conjugate(MLP((3,)), steps=3)], ids=repr)
@pytest.mark.parametrize("inputs", [23, 24])
def test_many_inputs_are_turned_once_for_the_whole_training(learner, inputs):
    x, y = jnp.zeros((10, inputs)), jnp.zeros((10, 2))
    turned = learner.begin(jax.random.key(0), x, y, jnp.ones(10), None).cases.turned
    assert turned is None if inputs < 24 else turned.shape == x.shape


def test_a_perceptron_with_a_forward_of_the_users_is_given_no_turned_copy():
    class Plain(MLP):
        def forward(self, params, x, w=None, statistics=None, key=None):
            return super().forward(params, x, w, statistics, key)

    given = arrays(np.float32, RANDOM.normal(size=(12, 30)), RANDOM.normal(size=(12, 1)), np.ones(12))
    own, plain = (train(Descent(kind((2,)), steps=3), *given, given[0])[1] for kind in (Plain, MLP))
    close(own, plain, np.dtype("float32"))


def test_a_bias_has_the_derivatives_of_a_sum(double):
    """Backward, forward and second ones, of a function that is not linear; sums of 24 numbers in another order."""
    at = jnp.asarray(X.T), jnp.asarray(RANDOM.normal(size=(4, 1)))
    ones, along = jnp.ones((1, 24)), jax.tree.map(jnp.cos, at)

    def derivatives(plus):
        def size(product, bias):
            return jnp.sum(jnp.tanh(plus(product, bias)) ** 2)

        return (
            jax.grad(size, (0, 1))(*at),
            jax.jvp(size, at, along),
            jax.hessian(size, (0, 1))(*at),
        )

    own, plain = derivatives(partial(nets._plus_bias, ones=ones)), derivatives(jnp.add)
    for got, expected in zip(jax.tree.leaves(own), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_equal_learners_are_tried_once_for_data_of_the_same_shape():
    """At the door, where Flax takes longer than all other checks together."""
    starts = []

    class Counted(MLP):
        def start(self, key, x, y):
            starts.append(x.shape)
            return super().start(key, x, y)

    data = [Data(RANDOM.normal(size=(8, width)), RANDOM.normal(size=(8, 1)), tuple("abcd"[:width])) for width in (2, 3)]
    plan = resample.k_fold(jax.random.key(0), 8, 4)
    for _ in range(2):
        for one in data:
            Descent(Counted((3,)), steps=5).check(one, plan)
    assert starts == [(2, 2), (2, 3)]


def test_a_weight_of_two_is_the_case_twice(double):
    learner = Descent(MLP((3,), skip=True, batch_norm=True), steps=5)
    twice = np.repeat(np.arange(24), W.astype(int))
    x, y, w = arrays(double, X, Y, W)
    close(train(learner, x, y, w, x)[1], train(learner, x[twice], y[twice], jnp.ones_like(w[twice]), x)[1], double)


def outputs_of_keys(network, params, count):
    """Outputs [count, K, n] of iterations that drop units and add noise."""
    x, w = arrays(np.float32, X.T, np.ones(24))
    run = jit(lambda network, keys: jax.vmap(lambda key: network.forward(params, x, w, None, key).outputs)(keys))
    return np.asarray(run(network, jax.random.split(jax.random.key(1), count)), np.float64), np.asarray(
        forward(network, params, x).outputs, np.float64
    )


@pytest.mark.parametrize("dropout", [0.4, (0.5, 0.2)])
def test_dropout_keeps_the_mean(dropout):
    """Of a linear network, over 4000 draws: each of 48 means within 5 of its standard errors of the prediction (one in
    2 million lies beyond).
    """
    network = MLP((7,), activation=identity, dropout=dropout)
    got, want = outputs_of_keys(network, started(network, np.float32), 4000)
    error = got.std(axis=0, ddof=1) / np.sqrt(4000)
    assert np.all(error > 0)
    assert np.all(np.abs(got.mean(axis=0) - want) < 5 * error)


def test_dropout_draws_once_an_iteration_for_all_cases():
    network = MLP((7,), dropout=0.5)
    params, w = started(network, np.float32), jnp.ones(24, jnp.float32)
    same = jnp.broadcast_to(jnp.asarray(X[:1].T, jnp.float32), (4, 24))
    one, other = (forward(network, params, same, w, None, jax.random.key(k)).outputs for k in (0, 1))
    np.testing.assert_array_equal(one, np.broadcast_to(one[:, :1], one.shape))
    assert np.all(one != other)


def test_a_dropped_share_of_the_inputs_and_units():
    """Through a network that only adds: with 40 units of output 1, the sum of those kept is 40 / (1 - p) times their
    share.
    """
    network = MLP((40,), activation=identity, dropout=0.25)
    params = jax.tree.map(jnp.zeros_like, started(network, np.float32))
    params["hidden_0"]["bias"], params["output"]["kernel"] = jnp.ones(40), jnp.ones((2, 40))
    got, want = outputs_of_keys(network, params, 2000)
    np.testing.assert_array_equal(want, 40)
    kept = np.round(got[:, 0, 0] * 0.75).astype(int)
    np.testing.assert_allclose(got[:, 0, 0], kept / 0.75, rtol=1e-5)  # single precision
    # the number kept is binomial: mean and variance of 2000 draws within 5 standard errors
    assert abs(kept.mean() - 30) < 5 * np.sqrt(7.5 / 2000)
    assert abs(kept.var() / 7.5 - 1) < 5 * np.sqrt(2 / 2000)


@pytest.mark.parametrize(
    ("network", "layer", "sd"),
    [(MLP((), noise=0.3), "output", 0.3), (MLP((5,), activation=identity, noise=(0.0, 0.7)), "output", 0.7)],
)
def test_noise_has_the_standard_deviation_stated(network, layer, sd):
    """Noise at the inputs of the last layer: the variance of its outputs is sd^2 times the squared weights, each case
    its own; 5 standard errors.
    """
    params = started(network, np.float32)
    got, want = outputs_of_keys(network, params, 2000)
    shift = got - want
    expected = sd * np.linalg.norm(params[layer]["kernel"], axis=1)
    assert np.all(np.abs(shift.mean(axis=(0, 2))) < 5 * expected / np.sqrt(2000 * 24))
    np.testing.assert_allclose(shift.std(axis=(0, 2)), expected, rtol=5 / np.sqrt(2 * 2000 * 24))
    assert abs(np.corrcoef(shift[:, 0, 0], shift[:, 0, 1])[0, 1]) < 5 / np.sqrt(2000)
    assert stats.kstest(shift[:, 0, 3] / expected[0], "norm").pvalue > 1e-6


def test_an_iteration_draws_anew_and_the_same_key_the_same():
    learner = Descent(MLP((3,), noise=0.5, dropout=0.5), steps=2, checkpoints=(1,))
    x, y, w = arrays(np.float32, X, Y, np.ones(24))
    params = start(learner.network, jax.random.key(7), x, y)
    path = jit(lambda learner, key: learner.path(key, x, y, w, params).params)
    one, again, other = (path(learner, jax.random.key(key)) for key in (0, 0, 1))
    jax.tree.map(np.testing.assert_array_equal, one, again)
    assert np.any(one["output"]["kernel"] != other["output"]["kernel"])
    first = params["hidden_0"]["bias"]
    steps = np.diff([first, *one["hidden_0"]["bias"]], axis=0)
    assert len({tuple(row) for row in steps == 0}) <= 2  # dropped units do not move
    assert np.any(steps == 0)


def test_tasks_of_several_outputs_are_separate_networks(double):
    """Two groups of two outputs, without a tie: the objective is a sum, and so is its gradient."""
    network = MLP((3,), skip=True, batch_norm=True)
    x, y, w = arrays(double, X, np.hstack([Y, Y**2]), W)
    params = started(PerTask(network), double, y=np.hstack([Y, Y**2]))
    assert params["output"]["kernel"].shape == (2, 2, 3)
    trained, together = train(Descent(PerTask(network), steps=5), x, y, w, x, params)
    for task in range(2):
        own = jax.tree.map(lambda a, task=task: a[task], params)
        alone, want = train(Descent(network, steps=5), x, y[:, 2 * task : 2 * task + 2], w, x, own)
        close(together[:, 2 * task : 2 * task + 2], want, double)
        jax.tree.map(lambda a, b, task=task: close(a[task], b, double), trained, alone)


def test_tied_tasks_become_one():
    """Their distance shrinks by 1 - 0.1 * 4 * 60 / (N + 1) an iteration, and different targets pull with forces of
    order N.
    """
    x, y, w = arrays(np.float32, X, Y, np.ones(24))

    def distance(penalty):
        params, _ = train(Descent(PerTask(MLP((3,), init=0.5)), steps=200, penalty=penalty), x, y, w, x)
        return max(float(np.abs(leaf[0] - leaf[1]).max()) for leaf in jax.tree.leaves(params))

    assert distance(()) > 0.5
    assert distance(Tied(60.0)) < 0.1


def test_a_column_of_tasks_trains_each_network_on_its_own_cases(double):
    """A step is divided by the N + 1 of all cases, so a network alone takes a rate of (N_t + 1) / (N + 1) times."""
    network, task = MLP((3,), batch_norm=True), np.arange(24) % 5 == 0
    x, y, w = arrays(double, np.hstack([X, task[:, None]]), Y, W)
    params = started(PerTask(network, column=4), double, x=np.asarray(x))
    learner = Descent(PerTask(network, column=4), steps=5, rate=0.3)
    trained, together = train(learner, x, y, w, x, params)
    for t in range(2):
        own, count = task == t, W[task == t].sum()
        alone = Descent(network, steps=5, rate=float(0.3 * (count + 1) / (W.sum() + 1)))
        got, want = train(alone, x[own], y[own], w[own], x, jax.tree.map(lambda a, t=t: a[t], params))
        close(together[own], want[own], double)
        jax.tree.map(lambda a, b, t=t: close(a[t], b, double), trained, got)


def test_a_task_without_cases_stays_as_it_is():
    """And is not NaN, though nothing standardises its units."""
    network = PerTask(MLP((3,), batch_norm=True), column=4)
    x, y, w = arrays(np.float32, np.hstack([X, np.zeros((24, 1))]), Y, W)
    params = started(network, np.float32, x=np.asarray(x))
    trained, predicted = train(Descent(network, steps=5), x, y, w, x.at[:, 4].set(1), params)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[1], b[1]), trained, params)
    assert np.isfinite(predicted).all()


class Plain(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.tanh(nn.Dense(3)(x))
        self.sow("intermediates", "hidden", h)
        return nn.Dense(2)(h)


class Training(nn.Module):
    dropout: float = 0.0

    @nn.compact
    def __call__(self, x, train):
        h = nn.tanh(nn.Dense(3)(x))
        return nn.Dense(2)(nn.Dropout(self.dropout, deterministic=not train)(h))


class Deterministic(nn.Module):
    dropout: float = 0.0

    @nn.compact
    def __call__(self, x, deterministic: bool = False):
        h = nn.tanh(nn.Dense(3)(x))
        return nn.Dense(2)(nn.Dropout(self.dropout)(h, deterministic=deterministic))


class Normed(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.BatchNorm(use_running_average=False)(x))


class Narrow(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(x)


@pytest.mark.parametrize(
    ("module", "bits", "penalty"),
    [(Plain(), 32, Sparse(0.5)), (Plain(), 64, Sparse(0.5)), (Training(), 64, L2(0.1)), (Deterministic(), 32, L2(0.1))],
)
def test_a_flax_module_of_the_users_trains_like_the_same_perceptron(module, bits, penalty):
    """In the precision of the data, with a penalty on its weights or on what it sows."""
    with jax.enable_x64(bits == 64):
        dtype = np.dtype(f"float{bits}")
        x, y, w = arrays(dtype, X, Y, W)
        params = started(MLP((3,)), dtype)
        _, want = train(Descent(MLP((3,)), steps=5, penalty=penalty), x, y, w, x, params)
        theirs = {
            f"Dense_{i}": {"kernel": params[name]["kernel"].T, "bias": params[name]["bias"]}
            for i, name in enumerate(("hidden_0", "output"))
        }
        random = start(module, jax.random.key(0), x, y)
        assert jax.tree.map(lambda a: (a.shape, a.dtype), random) == jax.tree.map(lambda a: (a.shape, a.dtype), theirs)
        close(train(Descent(module, steps=5, penalty=penalty), x, y, w, x, theirs)[1], want, dtype)


@pytest.mark.parametrize("kind", [Training, Deterministic])
def test_a_module_drops_units_in_training_only(kind):
    x, y, w = arrays(np.float32, X, Y, W)
    params = start(kind(), jax.random.key(0), x, y)
    kept, dropped = (train(Descent(kind(dropout), steps=5), x, y, w, x, params)[0] for dropout in (0.0, 0.5))
    assert np.any(np.abs(kept["Dense_1"]["kernel"] - dropped["Dense_1"]["kernel"]) > 1e-3)
    predict = [forward(kind(dropout), params, x.T).outputs for dropout in (0.0, 0.5)]
    np.testing.assert_array_equal(*predict)


@pytest.mark.parametrize(
    ("init", "half_width"),
    [(0.01, 0.01), (2.0, 2), ("glorot", np.sqrt(6 / 130)), ("lecun", np.sqrt(3 / 30)), ("he", np.sqrt(6 / 30))],
)
def test_starts(init, half_width):
    """Uniform on the width that the source of each start gives for 30 inputs and 100 units: a Kolmogorov-Smirnov test
    of 3000 numbers.
    """
    x, y = jnp.zeros((1, 30)), jnp.zeros((1, 1))
    params = start(MLP((100,), init=init), jax.random.key(3), x, y)
    kernel = np.asarray(params["hidden_0"]["kernel"]).ravel()
    assert np.all(np.abs(kernel) <= half_width)
    assert stats.kstest(kernel, "uniform", (-half_width, 2 * half_width)).pvalue > 1e-3
    biases = np.r_[params["hidden_0"]["bias"], params["output"]["bias"]]
    if isinstance(init, str):
        assert not biases.any()
    else:
        assert stats.kstest(biases, "uniform", (-half_width, 2 * half_width)).pvalue > 1e-3


@pytest.mark.parametrize("name", ["glorot", "lecun", "he"])
def test_starts_are_those_of_jax(name, dtype):
    """Number for number, though they are drawn as one row."""
    asked = getattr(jax.nn.initializers, f"{name}_uniform")(in_axis=-1, out_axis=-2)
    drawn = nets._scaled(*nets._STARTS[name])
    for shape in ((5, 4), (1, 7), (300, 20)):
        key = jax.random.key(shape[0])
        np.testing.assert_array_equal(drawn(key, shape, dtype), asked(key, shape, dtype))


def test_tasks_start_differently():
    params = start(PerTask(MLP((3,)), tasks=2), jax.random.key(0), *arrays(np.float32, X, Y))
    assert all(np.any(leaf[0] != leaf[1]) for leaf in jax.tree.leaves(params))


@pytest.mark.parametrize(
    "network",
    [
        MLP((3, 2), activation="relu", dropout=(0.1, 0.2), noise=0.5, init="he"),
        PerTask(MLP((4,), batch_norm=True), tasks=3, column=0),
    ],
    ids=repr,
)
def test_a_network_is_a_value(network):
    learner = Descent(network)
    assert learn.from_text(repr(learner)) == learner
    assert hash(learn.from_text(repr(learner))) == hash(learner)


DATA = Data(X, Y, ("a", "b", "c", "d"))
SENTENCES = {
    "unknown activation": (
        MLP(activation="tanhh"),
        r"a function of jax.nn, got activation='tanhh'; write for example 'tanh' or 'relu'",
    ),
    "unknown start": (
        MLP(init="xavier"),
        r"a start of the weights among glorot, lecun, he or a number, got init='xavier'; choose one of them",
    ),
    "an empty layer": (
        MLP((3, 0)),
        "the units of every hidden layer to be a whole number of at least 1, got 0; leave empty layers out",
    ),
    "dropout of all": (
        MLP(dropout=1.0),
        "dropout to be a number of at least 0 and below 1, got 1.0; "
        r"give one number, or one per layer",
    ),
    "dropout of too many layers": (
        MLP(dropout=(0.1, 0.1, 0.1)),
        r"for the inputs and 1 hidden layers at most, got \(0.1, 0.1, 0.1\)",
    ),
    "negative noise": (MLP(noise=-0.1), "noise to be a finite number of at least 0, got -0.1"),
    "one task": (
        PerTask(tasks=1),
        "the tasks of PerTask to be a whole number of at least 2, got 1; use the network itself for a single task",
    ),
    "tasks that do not divide the outputs": (
        PerTask(tasks=3),
        "a multiple of 3 outputs, the same number for every task, got 2; change tasks, or name the column",
    ),
    "a column of other numbers": (
        PerTask(column=1),
        "the task numbers 0 to 1 in input column 1, got other numbers; number the tasks there",
    ),
    "a column that is not there": (PerTask(column=4), r"column of PerTask .* from 0 to 3 \(the inputs\), got 4"),
    "a bad network per task": (PerTask(MLP((0,))), "the units of every hidden layer"),
    "a module with statistics": (
        Normed(),
        r"a flax module with parameters only, got the collection 'batch_stats' in Normed; "
        r"use MLP\(batch_norm=True\), whose statistics leave out cases of weight 0",
    ),
    "a module of one output": (
        Narrow(),
        r"expected Narrow to give \[n, 2\] outputs for \[n, 4\] inputs, got \[2, 1\] for n = 2; "
        r"change its last layer",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_bad_input_is_named(case, own_messages):
    network, message = SENTENCES[case]
    with pytest.raises(ValueError, match=message) as caught:
        assess(jax.random.key(0), Descent(network), DATA, resample.k_fold(jax.random.key(0), 24, folds=3))
    assert str(caught.value).startswith("expected ")
    assert "\n" not in str(caught.value)


def test_flax_sees_a_network_once_for_each_shape_of_cases(monkeypatch):
    """Traced once with weights and once without, whoever asks for it and for its gradient; other settings anew."""
    seen, forward = [], nets._Layers.__call__

    def noted(self, *args):
        seen.append(self.mlp)
        return forward(self, *args)

    monkeypatch.setattr(nets._Layers, "__call__", noted)
    key, x, y, w = jax.random.key(0), jnp.ones((23, 4)), jnp.ones((23, 1)), jnp.ones(23)
    for activation in ("tanh", "relu"):
        mlp = MLP((7,), activation=activation)
        params = mlp.start(key, x, y)
        seen.clear()

        def total(params, weights, mlp=mlp):
            return jnp.sum(mlp.forward(params, x.T, weights).outputs)

        jax.eval_shape(total, params, w)
        jax.eval_shape(jax.value_and_grad(total), params, w)
        jax.eval_shape(jax.jit(total), params, w)
        assert seen == [mlp]
        jax.eval_shape(total, params, None)
        assert seen == [mlp, mlp]
