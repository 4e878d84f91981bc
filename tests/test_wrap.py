"""Learners that hold learners: what each lets through, what it leaves out, and that nesting changes neither."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from jaxgen import Data, assess, learn, loss, resample
from jaxgen.learn import MLP, Augmented, Descent, EarlyStopped, Ensemble, Normalised
from jaxgen.learn.network.iterative import Watched

RANDOM = np.random.default_rng(0)
N = 26
X = RANDOM.normal(size=(N, 3)) * [1, 20, 0.1] + [0, 5, -3]
Y = np.sin(X[:, :1]) * 4 + 0.1 * X[:, 1:2] + 0.3 * RANDOM.normal(size=(N, 1)) + 10
W = (np.arange(N) % 3).astype(float)
FIT = Descent(MLP((3,), init=0.5), steps=60, rate=0.4)
EXACT = {np.dtype("float32"): 2e-5, np.dtype("float64"): 1e-11}
"""Error allowed between two orders of the same sums, after up to 60 iterations on numbers of size 1 to 10."""

jit = partial(jax.jit, static_argnums=0)


@pytest.fixture
def double():
    """Runs a test in double precision only."""
    with jax.enable_x64(True):
        yield np.dtype("float64")


@jit
def train(learner, x, y, w, at, extra=None):
    """Parameters, predictions of the cases `at`, and what `diagnose` says."""
    trained = learner.fit(jax.random.key(0), x, y, w, **(extra or {}))
    return trained, learner.predict(trained, at), learner.diagnose(trained)


def arrays(dtype, *values):
    return tuple(jnp.asarray(value, dtype) for value in values)


def close(a, b, dtype):
    assert a.dtype == dtype
    np.testing.assert_allclose(a, b, rtol=EXACT[dtype], atol=EXACT[dtype] * np.max(np.abs(b)))


def marked(key, x, y):
    """A copy that can be told from its original, with some noise."""
    return x.at[0].add(1000 + 0.1 * jax.random.normal(key, (), x.dtype)), y


def jittered(key, x, y):
    return x + 0.01 * jax.random.normal(key, x.shape, x.dtype), y


@dataclass(frozen=True)
class Spy:
    """Learns the cases that it is given, and predicts the first input."""

    def fit(self, key, x, y, w):
        return {"x": x, "y": y, "w": w}

    def watched(self, key, x, y, w, watch, patience=None, stretch=1.0, start=None):
        seen = self.fit(key, x, y, w)
        return Watched(seen, watch(seen, 7)[None], jnp.int32(7))

    def predict(self, params, x):
        return x[:, :1]

    def diagnose(self, params):
        return params


# Normalised


def delve_units(values, w):
    """Median and sum of absolute deviations over (n - 1), of the cases repeated by their weights, in NumPy."""
    repeated = np.repeat(values, w.astype(int), axis=0)
    centre = np.median(repeated, axis=0)
    return centre, np.abs(repeated - centre).sum(axis=0) / max(len(repeated) - 1, 1)


units_of = jit(lambda learner, x, y, w: learner._units(x, y, w)[1:])


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 3), min_size=9, max_size=9).filter(any), st.integers(0, 2**20))
def test_delve_units_are_those_of_numpy(weights, seed):
    """Odd and even numbers of cases, with ties and with values of absent cases that are NaN; single precision."""
    random, w = np.random.default_rng(seed), np.array(weights, np.float32)
    x, y = np.round(random.normal(size=(9, 2)) * 3, 1).astype(np.float32), random.normal(size=(9, 1)).astype(np.float32)
    centre, scale = delve_units(x, w)
    spoiled = np.where(w[:, None] > 0, x, np.nan).astype(np.float32)
    found = units_of(Normalised(FIT), *map(jnp.asarray, (spoiled, y, w)))
    np.testing.assert_allclose(found[0], centre, rtol=1e-6)
    np.testing.assert_allclose(found[1], np.where(scale > 0, scale, 1), rtol=1e-6)
    np.testing.assert_allclose(found[2], delve_units(y, w)[0], rtol=1e-6)


@pytest.mark.parametrize("classifies", [False, True])
def test_standard_units_are_those_of_scikit_learn(classifies, dtype):
    learner = Normalised(Descent(objective="binary_cross_entropy") if classifies else FIT, how="standard")
    y = (Y > 10).astype(float) if classifies else Y
    found = units_of(learner, *arrays(dtype, np.where(W[:, None] > 0, X, np.nan), y, W))
    peer_x, peer_y = (StandardScaler().fit(values, sample_weight=W) for values in (X, y))
    for got, want in zip(found[:2], (peer_x.mean_, peer_x.scale_), strict=True):
        close(got, want, dtype)
    for got, want in zip(found[2:], ([0.0], [1.0]) if classifies else (peer_y.mean_, peer_y.scale_), strict=True):
        close(got, np.asarray(want), dtype)


@pytest.mark.parametrize("how", ["delve", "standard"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 / 3, -1e30])
def test_a_constant_column_is_centred_and_not_scaled(how, value, dtype):
    """Constant over the training cases: what the others hold does not count."""
    x = X.copy()
    x[:, 1] = np.where(W > 0, value, RANDOM.normal(size=N))
    centre, scale, *_ = units_of(Normalised(FIT, how=how), *arrays(dtype, x, Y, W))
    np.testing.assert_allclose(centre[1], dtype.type(value), rtol=10 * np.finfo(dtype).eps)  # a mean of equal numbers
    assert scale[1] == 1


def test_no_normalisation():
    found = units_of(Normalised(FIT, how="none"), *arrays(np.float32, X, Y, W))
    assert [units.tolist() for units in found] == [[0, 0, 0], [1, 1, 1], [0], [1]]


def test_predictions_are_in_the_units_of_the_target(double):
    """They equal those of the learner inside on normalised data; changed units of the inputs change nothing, those of
    the target go through.
    """
    learner = Normalised(FIT)
    x, y, w = arrays(double, X, Y, W)
    _, want, _ = train(learner, x, y, w, x)
    (x_centre, x_scale), (y_centre, y_scale) = delve_units(X, W), delve_units(Y, W)
    _, inside, _ = train(
        FIT,
        *arrays(double, (X - x_centre) / x_scale, (Y - y_centre) / y_scale, W),
        jnp.asarray((X - x_centre) / x_scale),
    )
    close(want, y_centre + y_scale * np.asarray(inside), double)
    by, shift = jnp.asarray([[3.0, 0.01, 100.0]]), jnp.asarray([[1.0, -50.0, 7.0]])
    _, got, _ = train(learner, x * by + shift, 5 * y - 40, w, x * by + shift)
    close(got, 5 * np.asarray(want) - 40, double)


def test_absent_cases_change_nothing_in_any_wrapper(double):
    """Everything nested, on a slice and with a mask over NaN; weights 1 and 2."""
    learner = Normalised(Ensemble(EarlyStopped(Augmented(FIT, augment=jittered), folds=2), members=2))
    used = W > 0
    x, y, w = arrays(double, X, Y, W)
    bad = (jnp.asarray(np.where(used[:, None], a, np.nan)) for a in (x, y))
    _, masked, _ = train(learner, *bad, w, x)
    close(train(learner, x[used], y[used], w[used], x)[1], masked, double)


def test_the_path_of_a_normalised_learner():
    learner = Normalised(Descent(FIT.network, steps=5, checkpoints=(2, 5)))
    x, y, w = arrays(np.float32, X, Y, W)
    predicted = jit(
        lambda learner: jax.vmap(lambda p: learner.predict(p, x))(learner.path(jax.random.key(0), x, y, w))
    )(learner)
    assert predicted.shape == (2, N, 1)
    close(predicted[1], train(Normalised(Descent(FIT.network, steps=5)), x, y, w, x)[1], np.dtype("float32"))


# EarlyStopped


def digits(y, prediction):
    """A loss that tells the cases apart: y is a power of 4."""
    return y[:, 0]


@pytest.mark.parametrize(
    "stop",
    [EarlyStopped(Spy(), folds=4, loss=digits), EarlyStopped(Spy(), share=0.3, loss=digits)],
    ids=["folds", "share"],
)
def test_portions(stop, double):
    """Whatever the weights: every case in use validates exactly once (or 30 % of them do), with its weight, absent
    ones never; sizes differ by one at most.
    """
    number = np.arange(13)
    random = np.random.default_rng(0)
    for trial in range(40):
        w = random.integers(0, 4, 13) * (random.random(13) < random.random())
        w[random.permutation(13)[:4]] = random.integers(1, 4, 4)
        extra = (
            {}
            if trial % 2
            else {"order": jnp.asarray(np.concatenate([random.permutation(number[w > 0]), number[w == 0]]))}
        )
        members = train(stop, *arrays(double, number[:, None], 4.0 ** number[:, None], w, np.zeros((1, 1))), extra)[0]
        used, out = set(number[w > 0]), []
        for x, weight, error in zip(
            members.members["x"][:, :, 0], members.members["w"], members.errors[:, 0], strict=True
        ):
            left = sorted(int(i) for i in x[weight > 0])
            assert len(set(left)) == len(left)
            np.testing.assert_array_equal(np.sort(weight[weight > 0]), np.sort(w[left]))
            validated = sorted(used - set(left))
            assert set(left) < used
            # powers of 4 below 2^26 and weights below 4 add without rounding
            assert float(error) == np.sum(w[validated] * 4.0 ** np.array(validated)) / np.sum(w[validated])
            out += validated
        sizes = [len(used) - int(np.sum(weight > 0)) for weight in members.members["w"]]
        if stop.share is None:
            assert sorted(out) == sorted(used)
            assert max(sizes) - min(sizes) <= 1
        else:
            assert sizes == [int(np.ceil(0.3 * len(used)))]
        if extra:
            assert sorted(out) == sorted(np.asarray(extra["order"])[: len(out)].tolist())


def test_portions_are_random():
    """Each of 12 cases validates in the first quarter 500 times of 2000: within 5 binomial standard deviations; and
    neighbours are not kept together.
    """
    stop = EarlyStopped(Spy(), folds=4)
    x, w = jnp.arange(12.0)[:, None], jnp.ones(12)
    fit = jit(lambda stop, keys: jax.vmap(lambda key: stop.fit(key, x, x, w).members["x"][:, :, 0])(keys))
    left = np.asarray(fit(stop, jax.random.split(jax.random.key(0), 2000)))[:, 0].astype(int)
    out = np.stack([np.setdiff1d(np.arange(12), row) for row in left])
    counts = np.bincount(out.ravel(), minlength=12)
    assert np.all(np.abs(counts - 500) < 5 * np.sqrt(2000 * 0.25 * 0.75))
    together = np.mean([np.isin([0, 1], row).all() for row in out])
    assert abs(together - 3 / 66) < 5 * np.sqrt(3 / 66 / 2000)


STOP = EarlyStopped(FIT, folds=3)
ORDER = np.r_[np.random.default_rng(1).permutation(np.flatnonzero(W > 0)), np.flatnonzero(W == 0)]
SCALED = ((X - X.mean(0)) / X.std(0), (Y - Y.mean(0)) / Y.std(0), W)


def validation_cases(folds=3):
    used = ORDER[: int((W > 0).sum())]
    return [used[len(used) * q // folds : len(used) * (q + 1) // folds] for q in range(folds)]


def test_the_saved_network_with_the_least_error_is_taken(double):
    """Its error on the validation cases is the least of those reported, and the prediction is the mean of the
    members'.
    """
    x, y, w = arrays(double, *SCALED)
    trained, mean, info = train(STOP, x, y, w, x, {"order": jnp.asarray(ORDER)})
    errors, checkpoints = np.asarray(info["validation"]), np.array(FIT.checkpoint_steps)
    assert errors.shape == (3, len(checkpoints))
    np.testing.assert_array_equal(info["iteration"], checkpoints[np.argmin(errors, axis=1)])
    assert len(set(np.argmin(errors, axis=1))) > 1
    assert np.any(np.argmin(errors, axis=1) < len(checkpoints) - 1)
    members = np.asarray(jax.vmap(lambda p: FIT.predict(p, x))(trained.members))
    close(mean, members.mean(axis=0), double)
    for q, cases in enumerate(validation_cases()):
        error = np.sum(W[cases] * (SCALED[1][cases, 0] - members[q, cases, 0]) ** 2) / W[cases].sum()
        np.testing.assert_allclose(error, errors[q].min(), rtol=1e-10)  # roundings


def test_validation_cases_touch_no_gradient(double):
    """Other targets of the first portion change the error of the first member, but not its network; the other members
    learn from them.
    """
    learner = EarlyStopped(Descent(FIT.network, steps=5, checkpoints=(5,)), folds=3)
    x, y, w = arrays(double, *SCALED)
    order = {"order": jnp.asarray(ORDER)}
    one, _, _ = train(learner, x, y, w, x, order)
    other, _, _ = train(learner, x, y.at[validation_cases()[0]].add(1.0), w, x, order)
    assert one.errors[0, 0] != other.errors[0, 0]
    same = jax.tree.map(
        lambda a, b: np.array([np.array_equal(a[q], b[q]) for q in range(3)]), one.members.params, other.members.params
    )
    assert all(leaf.tolist() == [True, False, False] for leaf in jax.tree.leaves(same))


def stop_early(errors, checkpoints, patience, stretch):
    """Errors seen before the stop, and the iteration chosen, by the rule in the docstring."""
    best = (np.inf, 0)
    for k, step in enumerate(checkpoints):
        best = min(best, (errors[k], step))
        if step > stretch * best[1] + patience:
            break
    return k + 1, best[1]


@pytest.mark.parametrize(("patience", "stretch"), [(0.0, 1.5), (10.0, 1.0)])
def test_patience(patience, stretch, double):
    """Every member by itself, from the errors of a training to the end."""
    x, y, w = arrays(double, *SCALED)
    order = {"order": jnp.asarray(ORDER)}
    whole = np.asarray(train(STOP, x, y, w, x, order)[2]["validation"])
    _, _, info = train(EarlyStopped(FIT, folds=3, patience=patience, stretch=stretch), x, y, w, x, order)
    ends = []
    for q in range(3):
        seen, iteration = stop_early(whole[q], FIT.checkpoint_steps, patience, stretch)
        ends.append(seen)
        assert int(info["iteration"][q]) == iteration
        np.testing.assert_allclose(
            info["validation"][q, :seen], whole[q, :seen], rtol=1e-10
        )  # another program, the same sums
        assert np.isnan(info["validation"][q, seen:]).all()
    assert min(ends) < len(FIT.checkpoint_steps), "one ends early"


def test_refit(double):
    """One network on all cases, taken at the save whose logarithm is nearest to that of the mean iteration."""
    x, y, w = arrays(double, *SCALED)
    order = {"order": jnp.asarray(ORDER)}
    chosen = np.asarray(train(STOP, x, y, w, x, order)[0].iteration)
    trained, predicted, _ = train(EarlyStopped(FIT, folds=3, refit=True), x, y, w, x, order)
    checkpoints = np.array(FIT.checkpoint_steps)
    want = checkpoints[np.argmin(np.abs(np.log(checkpoints) - np.log(chosen.mean())))]
    assert trained.iteration.tolist() == [want]
    assert trained.errors.shape == (3, len(checkpoints))
    # the start differs by its key: train on from the start that this network had
    _, refit_key, *_ = jax.random.split(jax.random.key(0), 5)
    path = jit(lambda fit: jax.vmap(lambda p: fit.predict(p, x))(fit.path(refit_key, x, y, w)))(FIT)
    close(predicted, path[list(checkpoints).index(want)], double)


def test_a_network_that_diverges_at_once_fails_and_one_that_diverges_later_does_not():
    x, y, w = arrays(np.float32, *SCALED)
    data, plan = Data(SCALED[0], SCALED[1], tuple("abc")), resample.k_fold(jax.random.key(0), N, folds=2)
    at_once = EarlyStopped(Descent(MLP(()), rate=1e30, steps=5), folds=2)
    losses = assess(jax.random.key(0), at_once, data, plan)
    assert losses.failed.all()
    with pytest.raises(ValueError, match="at step 1: none of a member's checkpoints had a finite validation error"):
        _ = losses.g
    later = EarlyStopped(Descent(MLP(()), rate=30.0, steps=200, checkpoints=(1, 2, 200)), folds=2)
    trained, predicted, info = train(later, x, y, w, x)
    assert int(later.failure(trained)) == 0
    assert np.all(info["failed_step"] > 2)
    assert np.all(info["iteration"] <= 2)
    assert np.isfinite(predicted).all()


def test_a_watched_network_is_that_of_the_path_at_its_checkpoint(double):
    """Its gradient too, which is measured once, at the end."""
    x, y, w = arrays(double, *SCALED)
    key, chosen = jax.random.key(0), FIT.checkpoint_steps[3]

    def away(_, iteration):
        return jnp.abs(iteration - chosen).astype(double)

    saved = jax.jit(FIT.path)(key, x, y, w)
    watched = jax.jit(lambda: FIT.watched(key, x, y, w, away))()
    assert int(watched.iteration) == chosen
    want = jax.tree.map(lambda a: a[3], saved)
    assert 0 < float(want.gradient) < 1
    jax.tree.map(partial(close, dtype=double), watched.best.params, want.params)
    close(watched.best.gradient, want.gradient, double)
    assert int(watched.best.failed_step) == -1


def test_a_training_that_ended_early_does_not_fail_with_its_neighbours():
    """Both diverge before the last iteration; the first has ended by then, the second goes on."""
    x, y, w = arrays(np.float32, *SCALED)
    fit = Descent(MLP(()), rate=30.0, steps=200, checkpoints=(1, 2, 3, 200))

    def watched(direction):
        return fit.watched(jax.random.key(0), x, y, w, lambda _, i: direction * i.astype(np.float32), patience=1)

    together = jax.jit(jax.vmap(watched))(jnp.array([1.0, -1.0])).best.failed_step
    assert int(together[0]) == -1 == int(jax.jit(watched)(1.0).best.failed_step)
    assert 3 < int(together[1]) <= 200


# Ensemble and Augmented


def test_an_ensemble_is_the_mean_of_different_members(double):
    x, y, w = arrays(double, *SCALED)
    learner = Ensemble(Descent(FIT.network, steps=5), members=3)
    trained, mean, info = train(learner, x, y, w, x)
    each = np.asarray(jax.vmap(lambda p: learner.base.predict(p, x))(trained))
    assert each.shape == (3, N, 1)
    close(mean, each.mean(axis=0), double)
    assert np.abs(each[:, None] - each[None])[~np.eye(3, dtype=bool)].max(axis=(1, 2)).min() > 1e-3
    assert info["gradient"].shape == (3,)


def test_an_ensemble_fails_with_its_first_member_that_fails():
    learner = Ensemble(Descent(tolerance=0.5), members=3)
    trained = jax.eval_shape(lambda: learner.fit(jax.random.key(0), *arrays(np.float32, *SCALED)))
    for steps, gradients, want in (
        ([-1, -1, -1], [0, 0, 0], 0),
        ([-1, -1, 8], [0, 1, 0], 2),
        ([-1, 4, -1], [0, 0, 1], 1),
    ):
        params = trained._replace(failed_step=jnp.asarray(steps), gradient=jnp.asarray(gradients, jnp.float32))
        assert int(learner.failure(params._replace(params=jnp.zeros(3), statistics=()))) == want


def test_copies_carry_the_weights_of_their_originals():
    x, y, w = arrays(np.float32, X, Y, W)
    seen, _, _ = train(Augmented(Spy(), augment=marked, copies=3), x, y, w, x)
    assert seen["x"].shape == (4 * N, 3)
    np.testing.assert_array_equal(seen["x"][:N], x)
    np.testing.assert_array_equal(seen["w"], np.tile(w, 4))
    np.testing.assert_array_equal(seen["y"], np.tile(y, (4, 1)))
    changed = np.asarray(seen["x"][N:]).reshape(3, N, 3) - np.asarray(x)
    assert np.all(np.abs(changed[:, :, 0] - 1000) < 1)
    assert not changed[:, :, 1:].any()
    used = changed[:, W > 0, 0]
    assert len(np.unique(used)) > used.size // 2, "each copy has a key of its own"


def test_copies_neither_validate_nor_are_tested():
    """A copy has a first input of about 1000, which the spy predicts."""
    data = Data(X, Y, tuple("abc"))
    losses = assess(
        jax.random.key(0),
        EarlyStopped(Augmented(Spy(), augment=marked), folds=2, loss=size),
        data,
        resample.k_fold(jax.random.key(0), N, folds=2),
        loss=size,
    )
    assert losses.values.max() < 10
    assert losses.info["validation"].max() < 10
    for row in range(2):
        for x, w in zip(losses.info["x"][row, :, :, 0], losses.info["w"][row], strict=True):
            half = len(w) // 2
            assert x[:half].max() < 10
            assert x[half:][w[half:] > 0].min() > 900
            np.testing.assert_array_equal(w[:half], w[half:])


def size(y, prediction):
    return jnp.abs(prediction[..., 0])


# Nesting

NESTED = Normalised(
    Ensemble(
        EarlyStopped(
            Augmented(Descent(MLP((2,), noise=0.1, dropout=0.2, batch_norm=True), steps=20, batch=8), augment=jittered),
            folds=2,
            patience=5.0,
        ),
        members=2,
    )
)


@pytest.mark.devices
def test_nesting_does_not_depend_on_chunks_and_devices():
    data, plan = Data(X, Y, tuple("abc")), resample.bootstrap(jax.random.key(1), N, 5)
    want = assess(jax.random.key(0), NESTED, data, plan, devices=jax.devices()[:1])
    assert not want.failed.any()
    assert want.info["iteration"].shape == (5, 2, 2)
    assert len(np.unique(want.info["validation"][:, :, :, 0])) == 20, "every member of every row is another network"
    got = assess(jax.random.key(0), NESTED, data, plan, chunk=2, devices=jax.devices())
    # single precision, in which sums of batches of another size may be ordered otherwise
    np.testing.assert_allclose(got.values, want.values, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(got.info["iteration"], want.info["iteration"])


LEARNERS = [
    Normalised(FIT, how="standard"),
    EarlyStopped(Normalised(FIT), share=0.25, patience=100.0, stretch=1.5, refit=True, loss=loss.absolute),
    Normalised(Ensemble(EarlyStopped(FIT, folds=3), members=4)),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_wrapper_is_a_value(learner):
    again = learn.from_text(repr(learner))
    assert again == learner
    assert hash(again) == hash(learner)


DATA = Data(X, Y, tuple("abc"))
PLAN = resample.k_fold(jax.random.key(0), N, folds=2)
SENTENCES = {
    "unknown units": (
        Normalised(FIT, how="median"),
        ValueError,
        "how to be one of 'delve', 'standard', 'none', got 'median'; choose one of these",
    ),
    "no learner inside": (
        Normalised(),
        TypeError,
        r"expected Normalised to hold a learner with the methods fit and predict, got None; make one, for example",
    ),
    "a class inside": (
        Ensemble(Descent),
        TypeError,
        r"Ensemble to hold a learner, got the class Descent; write Descent\(\)",
    ),
    "what the learner inside refuses": (
        Normalised(Ensemble(EarlyStopped(Descent(rate=0.0)))),
        ValueError,
        r"the rate to be a finite number above 0, got 0.0",
    ),
    "no checkpoints": (
        EarlyStopped(learn.LeastSquares()),
        TypeError,
        r"a learner that keeps checkpoints while it trains, got LeastSquares\(\); use Descent or Conjugate",
    ),
    "no checkpoints further inside": (
        EarlyStopped(Normalised(learn.LeastSquares())),
        TypeError,
        "a learner that keeps checkpoints while it trains, got Normalised",
    ),
    "an ensemble inside": (
        EarlyStopped(Augmented(Ensemble(FIT), augment=jittered)),
        TypeError,
        "a learner that keeps checkpoints while it trains, got Augmented",
    ),
    "one fold": (EarlyStopped(FIT, folds=1), ValueError, "at least 2, got 1; give share=0.25 for a single split"),
    "a floor of 0": (
        learn.Scaled(FIT, floor=0.0),
        ValueError,
        "the floor of Scaled to be a number above 0 and of at most 1, got 0.0; Neal 1998 uses 0.01",
    ),
    "more members than folds": (
        EarlyStopped(FIT, folds=3, members=4),
        ValueError,
        r"members of EarlyStopped to be a whole number from 1 to 3 \(one for each split\), got 4",
    ),
    "no members": (EarlyStopped(FIT, members=0), ValueError, r"from 1 to 4 \(one for each split\), got 0"),
    "two members of one split": (EarlyStopped(FIT, share=0.3, members=2), ValueError, "from 1 to 1 .*, got 2"),
    "share of nothing": (
        EarlyStopped(FIT, share=0.0),
        ValueError,
        "a number above 0 and below 1, got 0.0; it is the share of the training cases that validates",
    ),
    "share of all": (EarlyStopped(FIT, share=1.0), ValueError, "a number above 0 and below 1, got 1.0"),
    "negative patience": (
        EarlyStopped(FIT, patience=-1.0),
        ValueError,
        "the patience of EarlyStopped to be a finite number of at least 0, got -1.0; it is in iterations",
    ),
    "stretch below 1": (
        EarlyStopped(FIT, patience=1.0, stretch=0.5),
        ValueError,
        "the stretch of EarlyStopped to be a finite number of at least 1, got 0.5",
    ),
    "more folds than cases": (
        EarlyStopped(FIT, folds=14),
        ValueError,
        r"at least 14 training cases to split for EarlyStopped\(.*\), got 13 in resample.k_fold.*; train on more cases",
    ),
    "an ensemble of none": (
        Ensemble(FIT, members=0),
        ValueError,
        "the members of Ensemble to be a whole number of at least 1, got 0",
    ),
    "no copies": (
        Augmented(FIT, augment=jittered, copies=0),
        ValueError,
        "the copies of Augmented to be a whole number of at least 1, got 0; use the learner inside without",
    ),
    "a copy of another shape": (
        Augmented(FIT, augment=lambda key, x, y: (x[:2], y)),
        ValueError,
        r"augment to return a case \(x \[3\], y \[1\]\), got \(\(2,\), \(1,\)\); return both, of unchanged shapes",
    ),
    "a copy without target": (
        Augmented(FIT, augment=lambda key, x, y: x),
        ValueError,
        r"augment to return a case \(x \[3\], y \[1\]\), got \(3,\)",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_bad_input_is_named(case, own_messages):
    learner, exception, message = SENTENCES[case]
    with pytest.raises(exception, match=message) as caught:
        assess(jax.random.key(0), learner, DATA, PLAN)
    assert str(caught.value).startswith("expected ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("members", [1, 2])
def test_the_first_members_are_those_of_the_whole_ensemble(members, dtype):
    """Which is how Neal's mlp-bgd-2b is mlp-bgd-2 without its ensemble."""
    x, y, w = arrays(dtype, X, Y, W)
    everyone, some = (Normalised(EarlyStopped(FIT, folds=4, members=m)) for m in (None, members))
    (whole, _, _), (_, predicted, said) = (train(learner, x, y, w, x) for learner in (everyone, some))
    np.testing.assert_array_equal(said["iteration"], whole.base.iteration[:members])
    first = whole._replace(base=jax.tree.map(lambda a: a[:members], whole.base))
    close(predicted, everyone.predict(first, x), dtype)


def test_copies_made_before_the_split_are_refused(own_messages):
    """They would put copies of validation cases among those that are learned from."""
    data, plan = Data(SCALED[0], SCALED[1], tuple("abc")), resample.full(N)
    outside = Augmented(Normalised(EarlyStopped(Descent(steps=2))))
    with pytest.raises(ValueError, match=r"expected Augmented inside EarlyStopped.*write EarlyStopped\(Augmented"):
        assess(jax.random.key(0), outside, data, plan)


def test_the_column_of_task_numbers_is_not_normalised():
    """Units of the other columns are found as ever, and each task still trains its own network: another task's targets
    change nothing.
    """
    random = np.random.default_rng(3)
    task = np.arange(N) % 2
    x = np.column_stack([10 * random.normal(size=N) + 5, task])
    y = np.where(task, 3 * x[:, 0], -x[:, 0])[:, None]
    learner = Normalised(Descent(learn.PerTask(MLP((3,)), column=1), steps=40))
    other = learn.Descent(learn.PerTask(MLP((3,)), column=1), steps=40)
    fit = jax.jit(lambda y: learner.fit(jax.random.key(0), jnp.asarray(x, jnp.float32), y, jnp.ones(N, jnp.float32)))
    units = fit(jnp.asarray(y, jnp.float32))
    assert learner.raw_inputs == other.raw_inputs == (1,)
    np.testing.assert_array_equal(units.x_centre[1:], 0)
    np.testing.assert_array_equal(units.x_scale[1:], 1)
    np.testing.assert_allclose(units.x_centre[0], np.median(x[:, 0]), rtol=1e-6)
    predicted = learner.predict(units, jnp.asarray(x, jnp.float32))
    slope = [np.polyfit(x[task == t, 0], predicted[task == t, 0], 1)[0] for t in (0, 1)]
    assert slope[0] < 0 < slope[1]
