"""What programs for a GPU are told, seen in what is traced for one: these tests run where there is none."""

from types import SimpleNamespace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr

from jaxgen import Data, learn, loss, resample
from jaxgen.engine import program
from jaxgen.engine import run as engine
from jaxgen.learn import batched, distances, nearest
from jaxgen.types import as_learner, devices

RANDOM = np.random.default_rng(0)
KEY = jax.random.key(0)
X, W = jnp.asarray(RANDOM.normal(size=(12, 3)), "float32"), jnp.ones(12, "float32")
Y = X[:, :1] - X[:, 1:2] ** 2


class Own(learn.Learner):
    """A user's learner, with products as JAX makes them."""

    def fit(self, key, x, y, w):
        return x.T @ (w[:, None] * y)

    def predict(self, params, x):
        return x @ params


class Module(nn.Module):
    """A user's network."""

    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.tanh(nn.Dense(4)(x)))


LEARNERS = [
    learn.Descent(learn.MLP((4,), batch_norm=True), steps=3, relevance="correlation"),
    learn.Descent(learn.MLP((4,)), steps=3, relevance="gradient"),
    learn.Descent(Module(), steps=3),
    learn.Normalised(learn.Descent(learn.MLP((4,)), steps=3)),
    learn.Scaled(learn.Descent(learn.MLP((4,)), steps=3)),
    learn.Conjugate(learn.MLP((4,)), steps=3),
    learn.EarlyStopped(learn.Descent(learn.MLP((4,)), steps=3)),
    learn.Bayes(learn.MLP((4,)), passes=36, steps=6),
    learn.Neighbours(3),
    learn.Mean(),
]


@pytest.fixture(scope="module")
def for_a_gpu():
    """Programs are traced as they are for a GPU, by this test and all that follow here."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (devices, batched):
            patch.setattr(module, "on_cpu", lambda: False)
        jax.clear_caches()  # where JAX remembers what it traced for a CPU
        yield
    jax.clear_caches()


def equations(traced):
    """All equations of a traced program, those of inner programs too."""
    for equation in getattr(traced, "jaxpr", traced).eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if isinstance(inner, Jaxpr | ClosedJaxpr):
                    yield from equations(inner)


def precisions(traced):
    """Those of all products of matrices of a traced program."""
    found = {each.params["precision"] for each in equations(traced) if each.primitive.name == "dot_general"}
    assert found
    return found


def fitted(learner):
    return jax.make_jaxpr(lambda *given: learner.predict(learner.fit(*given), X))(KEY, X, Y, W)


@pytest.mark.parametrize("learner", LEARNERS[:2], ids=repr)
def test_products_on_a_cpu_are_as_jax_makes_them(learner):
    assert precisions(fitted(learner)) == {None}


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_products_on_a_gpu_are_in_full_precision(learner, for_a_gpu):
    assert precisions(fitted(as_learner(learner))) == {(lax.Precision.HIGHEST, lax.Precision.HIGHEST)}


@pytest.mark.parametrize("learner", [*(each for each in LEARNERS if each != learn.Neighbours(3)), Own()], ids=repr)
def test_products_of_a_run_on_a_gpu_are_in_full_precision(learner, for_a_gpu):
    """Those of a user's learner too; rows of nearest neighbours have none there."""
    known, data = as_learner(learner), Data(np.asarray(X, float), np.asarray(Y, float), ("a", "b", "c"))
    plan = resample.leave_out(KEY, data.n, 0.25, 4)
    chosen = engine.way(known, loss.squared, data, plan)
    job = engine.job_of(known, loss.squared, data, chosen, tuple(jax.devices()[:1]), False)
    r = np.arange(4, dtype=np.int32)
    with jax.enable_x64(job.wide):
        traced = jax.make_jaxpr(job.one_set)(KEY, data.x, data.y, np.ones(data.n), plan.train, np.int32(0), r)
    assert precisions(traced) == {(lax.Precision.HIGHEST, lax.Precision.HIGHEST)}


@pytest.mark.parametrize("learner", LEARNERS[:2], ids=repr)
def test_a_precision_that_the_user_sets_is_kept(learner, for_a_gpu):
    with jax.default_matmul_precision("tensorfloat32"):
        products = [each for each in equations(fitted(learner)) if each.primitive.name == "dot_general"]
        assert {str(each.params["precision"]) for each in products} == {"(Precision.HIGH, Precision.HIGH)"}


def test_distances_on_a_gpu_are_computed_once(for_a_gpu):
    """All that compare a distance see the same: behind a barrier XLA does not compute it again where it is used."""
    unit = jnp.float32(1)
    far = jax.make_jaxpr(distances.squared_distances)(X, W, X, unit)
    cases = nearest.LargestUnits.of(X, W[None], jnp.ones((1, 3)))
    every, lists = jnp.arange(12), jnp.zeros((12, 2), int)
    of_lists = jax.make_jaxpr(lambda case: cases.apart(every, case, W[None]))(lists.T)
    of_all = jax.make_jaxpr(lambda at: cases.apart_from_all(at, W[None], at))(jnp.zeros(2, int))
    assert all("optimization_barrier" in str(each) for each in (far, of_lists, of_all))


@pytest.mark.parametrize("learner", [learn.Neighbours(3), learn.Neighbours(), learn.Neighbours(at_most=3)], ids=repr)
@pytest.mark.parametrize("scaled", [False, True])
def test_neighbours_are_the_same_with_barriers(learner, scaled, for_a_gpu):
    """Also where rows are mapped over."""
    known = learn.Normalised(learner, how="standard") if scaled else learner
    found = jax.vmap(lambda w: known.predict(known.fit(KEY, X, Y, w), X))(jnp.stack([W, W]))
    x = np.asarray(X)
    far = x / x.std(0)[None] if scaled else x
    far = np.square(far[:, None] - far[None]).sum(2)
    if learner.k is not None:
        want = np.asarray(Y)[np.argsort(far, axis=1)[:, : learner.k]].mean(1)
        np.testing.assert_allclose(found, np.stack([want, want]), rtol=1e-5)  # single precision
    assert np.isfinite(found).all()


def job_on(platform):
    return SimpleNamespace(devices=[SimpleNamespace(platform=platform)], learner=learn.LeastSquares())


def test_a_gpu_is_not_asked_to_try_products_out(monkeypatch, own_messages):
    """Unless the user says so, or tests ask for programs that are compiled at once."""
    without = {"xla_gpu_enable_triton_gemm": False}
    monkeypatch.setenv("XLA_FLAGS", "")
    plain = jax.config.values["jax_disable_most_optimizations"]
    try:
        for disabled, want in ((True, {}), (False, without)):
            jax.config.update("jax_disable_most_optimizations", disabled)
            assert program._options(job_on("gpu"), 1e9, False) == want
            assert program._options(job_on("tpu"), 1e9, False) == {}
        monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_enable_triton_gemm=true")
        assert program._options(job_on("gpu"), 1e9, False) == {}
    finally:
        jax.config.update("jax_disable_most_optimizations", plain)
