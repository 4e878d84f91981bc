"""The engine: what it compiles, draws, keeps and refuses, with learners of a few lines made here."""

import faulthandler
import gc
import re
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from jaxgen import Data, assess, learn, loss, resample
from jaxgen.engine import budget, program, progress, workers
from jaxgen.engine.needs import _traced, facts
from jaxgen.learn import logistic_rows
from jaxgen.types import Learner, as_learner
from jaxgen.types.identity import named

pytestmark = pytest.mark.devices

KEY, OTHER = jax.random.key(3), jax.random.key(4)
ENGINE = sys.modules["jaxgen.engine.run"]
ROUNDING = {np.dtype("float32"): 1e-5, np.dtype("float64"): 1e-12}
"""Relative error allowed between two orders of the same few hundred operations."""


def problem(n=24, d=2, sets=None, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d) if sets is None else (sets, n, d))
    return Data(x, x.sum(-1, keepdims=True) + random.normal(size=(*x.shape[:-1], 1)), tuple(f"x{i}" for i in range(d)))


def splits(resamples=12, fraction=0.25, sets=None, key=OTHER, n=24):
    return resample.leave_out(key, n, fraction, resamples, sets=sets)


class Constant:
    """Predicts the number that `fit` returned, for every case."""

    def predict(self, params, x):
        return jnp.broadcast_to(params[None, None], (len(x), 1)).astype(x.dtype)


@dataclass(frozen=True)
class Average(Constant):
    """A user's own learner, with nothing that it need not have; only `scale` tells one from another."""

    scale: float = 1.0

    def fit(self, key, x, y, w):
        return self.scale * jnp.sum(w * y[:, 0]) / jnp.sum(w)


@dataclass(frozen=True)
class Described(Average):
    """The same, with something to say."""

    def diagnose(self, params):
        return {"mean": params, "twice": jnp.stack([params, 2 * params])}


@dataclass(frozen=True)
class Random(Constant):
    """Predicts a random number of its own, and says which key it had."""

    def fit(self, key, x, y, w):
        return {"draw": jax.random.normal(key, (), x.dtype), "key": jax.random.key_data(key)}

    def predict(self, params, x):
        return super().predict(params["draw"], x)

    def diagnose(self, params):
        return params


@dataclass(frozen=True)
class Fragile(Average):
    """Fails in three ways where it trains on a marked case: NaN, and two of which it knows."""

    failures: ClassVar[tuple[str, ...]] = ("it met a 200", "it met a 300")

    def fit(self, key, x, y, w):
        met = [jnp.any((w > 0) & (x[:, 0] == mark)) for mark in (100, 200, 300)]
        return {
            "mean": jnp.where(met[0], jnp.nan, super().fit(key, x, y, w)),
            "code": jnp.where(met[2], 2, met[1].astype(jnp.int32)),
        }

    def predict(self, params, x):
        return super().predict(params["mean"], x)

    def failure(self, params):
        return params["code"]


# Compilation


@contextmanager
def compilations():
    """Collects the times of what is compiled inside; the caller clears or counts them."""
    found = []

    def listen(event, duration, **details):
        if event == "/jax/core/compile/backend_compile_duration":
            found.append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def test_a_second_call_compiles_nothing():
    data = problem(seed=1)
    with compilations() as found:
        assess(KEY, learn.LeastSquares(ridge=0.123), data, splits())
        assert found
        again = {
            "the same": lambda: assess(KEY, learn.LeastSquares(ridge=0.123), data, splits()),
            "another key": lambda: assess(OTHER, learn.LeastSquares(ridge=0.123), data, splits()),
            "other splits": lambda: assess(KEY, learn.LeastSquares(ridge=0.123), data, splits(key=KEY)),
            "other data": lambda: assess(KEY, learn.LeastSquares(ridge=0.123), problem(seed=2), splits()),
            "half left out": lambda: assess(KEY, learn.LeastSquares(ridge=0.123), data, splits(fraction=0.5)),
            "most left out": lambda: assess(KEY, learn.LeastSquares(ridge=0.123), data, splits(fraction=0.7)),
            "rows only": lambda: assess(KEY, learn.LeastSquares(ridge=0.123), data, splits(), keep="rows"),
        }
        for name, call in again.items():
            found.clear()
            call()
            assert not found, name


@dataclass(frozen=True)
class LooksAtTheCollector(Average):
    """Notes, while it is traced, whether Python collects garbage."""

    seen: ClassVar[list[bool]] = []

    def fit(self, key, x, y, w):
        self.seen.append(gc.isenabled())
        if len(x) == 13:
            raise ArithmeticError("no fit of 13 cases")
        return super().fit(key, x, y, w)


@pytest.mark.parametrize("collects", [True, False])
def test_the_garbage_collector_rests_while_a_program_is_traced_and_is_as_before(collects):
    seen = LooksAtTheCollector.seen
    try:
        if not collects:
            gc.disable()
        for n in (12, 13):
            seen.clear()
            refused = pytest.raises(ArithmeticError, match="no fit of 13")
            with refused if n == 13 else nullcontext():
                assess(KEY, LooksAtTheCollector(2.0 + collects), problem(n), splits(n=n))
            assert gc.isenabled() == collects
            assert not seen[0]  # later ones are a look at a learner of the user's, not what is compiled
    finally:
        gc.enable()


def test_masks_of_different_sizes_share_a_program_and_gathered_copies_do_not():
    """The price of a gather, stated: each number of training cases up to three quarters of all compiles once."""
    with compilations() as found:
        counts = {}
        for fraction in (0.1, 0.05, 0.15, 0.25, 0.5, 0.25):
            found.clear()
            assess(KEY, Average(0.123), problem(), splits(fraction=fraction))
            counts.setdefault(fraction, []).append(bool(found))
    assert counts == {0.1: [True], 0.05: [False], 0.15: [False], 0.25: [True, False], 0.5: [True]}


# What comes back


@pytest.mark.parametrize("sets", [None, 5], ids=["one set", "sets"])
def test_means_are_double_precision_reductions_of_the_losses(sets, dtype):
    data, plan = problem(sets=sets), resample.bootstrap(OTHER, 24, 12)
    losses = assess(KEY, Average(), data, plan)
    assert losses.values.dtype == dtype
    values = losses.values.astype(np.float64)
    for mean, weights in ((losses.g, plan.test), (losses.apparent, plan.train)):
        assert mean.dtype == np.float64
        np.testing.assert_allclose(mean, (values * weights).sum(-1) / weights.sum(-1), rtol=1e-14)


def test_rows_only_gives_the_same_means_and_no_cases():
    data, plan = problem(), splits()
    all_cases, rows = (assess(KEY, Described(), data, plan, keep=keep) for keep in ("cases", "rows"))
    np.testing.assert_array_equal(rows.g, all_cases.g)
    np.testing.assert_array_equal(rows.apparent, all_cases.apparent)
    np.testing.assert_array_equal(rows.info["mean"], all_cases.info["mean"])
    assert rows.values is None
    assert all_cases.values.shape == (12, 24)


@pytest.mark.parametrize("sets", [None, 3])
def test_predictions_are_kept_where_asked_for(sets):
    data, plan = problem(sets=sets), splits()
    assert assess(KEY, Described(), data, plan).predictions is None
    kept = assess(KEY, Described(), data, plan, keep="predictions", chunk=5)
    lead = () if sets is None else (sets,)
    assert kept.predictions.shape == (*lead, 12, 24, 1)
    residual = data.y[..., None, :, :].astype(kept.values.dtype) - kept.predictions
    np.testing.assert_array_equal(np.square(residual[..., 0]), kept.values)
    first = kept if sets is None else kept[0]
    np.testing.assert_array_equal(
        first.without_failed().predictions, kept.predictions if sets is None else kept.predictions[0]
    )


def test_losses_say_what_they_are_of():
    plan = splits()
    losses = assess(KEY, Average(), problem(), plan)
    assert (losses.learner, losses.loss, losses.resamples, losses.sets, losses.dropped) == (
        named(Average()),
        "squared",
        12,
        None,
        0,
    )
    assert losses.plan is plan
    assert losses.train is plan.train
    assert losses.reasons == ("its loss is not finite (the training diverged, or a value overflowed)",)
    assert repr(losses) == f"Losses({named(Average())}, squared loss, {plan.scheme}: R=12, N=24)"
    assert "Q=5, R=12, N=24)" in repr(assess(KEY, Average(), problem(sets=5), plan))


@pytest.mark.parametrize(("data_sets", "plan_sets"), [(5, None), (None, 5), (5, 5), (1, None)], ids=str)
def test_data_or_plan_may_have_sets_of_their_own(data_sets, plan_sets):
    data, plan = problem(sets=data_sets), splits(sets=plan_sets)
    together = assess(KEY, Described(), data, plan)
    sets = data_sets or plan_sets
    assert together.sets == sets
    assert together.values.shape == (sets, 12, 24)
    for q in range(sets):
        alone = assess(KEY, Described(), data if data_sets is None else data[q], plan if plan_sets is None else plan[q])
        np.testing.assert_allclose(together.values[q], alone.values, rtol=1e-5, atol=1e-5)  # single precision
        one = together[q]
        np.testing.assert_array_equal(one.g, together.g[q])
        np.testing.assert_array_equal(one.values, together.values[q])
        np.testing.assert_array_equal(one.info["mean"], together.info["mean"][q])
        np.testing.assert_array_equal(one.test, alone.test)
        assert one.sets is None
    assert assess(KEY, Described(), problem(), splits()).sets is None


def test_bootstrap_counts_repeat_cases(dtype):
    data, plan = problem(), resample.bootstrap(OTHER, 24, 12)
    assert plan.train.max() > 1
    losses = assess(KEY, Average(), data, plan)
    for row, counts in enumerate(plan.train):
        mean = np.repeat(data.y[:, 0], counts).mean()
        np.testing.assert_allclose(
            losses.values[row], (data.y[:, 0] - mean) ** 2, rtol=100 * ROUNDING[dtype], atol=ROUNDING[dtype]
        )
        assert losses.g[row] == pytest.approx(np.mean((data.y[counts == 0, 0] - mean) ** 2), rel=100 * ROUNDING[dtype])


@pytest.mark.parametrize("learner", [learn.Mean(), learn.LeastSquares(minimum_norm=True)], ids=repr)
def test_gathered_copies_give_what_masks_give(learner, monkeypatch):
    """Few rows, so that LeastSquares too trains them one by one; row sizes differ, so that some copies are filled
    up.
    """
    data = problem()
    train = np.random.default_rng(0).integers(0, 3, size=(5, 24))
    train[:, 10:] *= np.arange(5)[:, None] > 1
    plan = resample.from_weights(train, np.ones((5, 24)))
    gathered, masked = [], []
    for share, results in ((0.75, gathered), (0.0, masked), (1.0, gathered)):
        monkeypatch.setattr(ENGINE, "_GATHER_SHARE", share)
        results.append(assess(KEY, learner, data, plan).values)
    for got in gathered:
        np.testing.assert_allclose(got, masked[0], rtol=1e-3, atol=1e-4)  # single precision, some rows of 3 cases


@pytest.mark.parametrize("derived", [True, False])
def test_rows_of_a_learner_that_copies_cases_get_copies(derived):
    """Whether it derives from `Learner` or not, also inside a wrapper; the largest row has all it needs and no more."""

    @dataclass(frozen=True)
    class Own:
        copies_cases = True

        def fit(self, key, x, y, w):
            return {"seen": jnp.full((), len(x)), "used": jnp.sum(w > 0)}

        def predict(self, params, x):
            return jnp.zeros_like(x[:, :1])

        def diagnose(self, params):
            return params

    learner = dataclass(frozen=True)(type("Derived", (Own, Learner), {}))() if derived else Own()
    data, plan = problem(), resample.k_fold(OTHER, 24, 5)
    for each in (learner, learn.Augmented(learner)):
        info = assess(KEY, each, data, plan).info
        factor = 1 if each is learner else 2
        np.testing.assert_array_equal(info["seen"], factor * plan.train_sizes.max())
        np.testing.assert_array_equal(info["used"], factor * plan.train_sizes)


def test_early_stopped_networks_of_copies_are_those_of_masks(monkeypatch):
    """Rows of 21 to 22 of 24 cases, whose members learn from 15 to 17; of large data they share the cases."""
    learner = learn.EarlyStopped(learn.Descent(learn.MLP((2,)), steps=20))
    data, plan = problem(), resample.k_fold(OTHER, 24, 9)
    assert ENGINE.way(learner, loss.squared, data, plan).used == plan.train_sizes.max()
    copies = assess(KEY, learner, data, plan)
    monkeypatch.setattr(learn.EarlyStopped, "copies_cases", False)
    assert ENGINE.way(learner, loss.squared, data, plan).used is None
    masks = assess(KEY, learner, data, plan)
    monkeypatch.undo()
    monkeypatch.setattr(ENGINE, "_LARGE", data.n * data.d)
    assert ENGINE.way(learner, loss.squared, data, plan).used is None
    np.testing.assert_array_equal(copies.info["iteration"], masks.info["iteration"])
    np.testing.assert_allclose(copies.values, masks.values, rtol=1e-4, atol=1e-5)  # 20 steps in single precision


def test_what_rows_of_copies_read_in_a_loop_takes_room_in_the_cache():
    """Of 4 inputs and one number made of each case, the inputs are four times as many."""

    @dataclass(frozen=True)
    class Looping(Learner):
        def fit(self, key, x, y, w):
            return jax.lax.fori_loop(0, 1000, lambda _, a: x @ jnp.ones(x.shape[1]) * 0.5 + a, w * y[:, 0])

        def predict(self, params, x):
            return jnp.zeros_like(x[:, :1])

    data = problem(d=4)
    for share, least, most in ((0.5, 4 * 4 * 12, 4 * 4 * 12), (0.9, 4 * 21, 4 * 24)):
        plan = resample.leave_out(KEY, data.n, 1 - share, 4)
        chosen = ENGINE.way(Looping(), loss.squared, data, plan)
        job = ENGINE.job_of(Looping(), loss.squared, data, chosen, tuple(jax.devices()[:1]), False)
        size = np.dtype(job.dtype).itemsize // 4
        assert size * least <= facts(job).loop_bytes <= size * most


def test_the_engine_does_not_change_what_it_is_given():
    data, plan = problem(), splits()
    before = [a.copy() for a in (data.x, data.y, plan.train, plan.test)]
    for a in (data.x, data.y, plan.train, plan.test):
        a.setflags(write=False)
    assess(KEY, Average(), data, plan)
    for a, was in zip((data.x, data.y, plan.train, plan.test), before, strict=True):
        np.testing.assert_array_equal(a, was)


# A user's own parts


def pinball(y, prediction):
    """Loss of the 90 % quantile."""
    error = (y - prediction)[:, 0]
    return jnp.where(error > 0, 0.9 * error, -0.1 * error)


def test_a_loss_may_be_a_function_of_ones_own():
    data, plan = problem(), splits()
    losses = assess(KEY, Average(), data, plan, pinball)
    error = data.y[:, 0] - (plan.train @ data.y[:, 0] / plan.train_sizes)[:, None]
    np.testing.assert_allclose(
        losses.values, np.where(error > 0, 0.9 * error, -0.1 * error), rtol=1e-4, atol=1e-6
    )  # single precision
    assert losses.loss == named(pinball)
    absolute = assess(KEY, Average(), data, plan, loss.absolute)
    np.testing.assert_allclose(absolute.values, np.abs(error), rtol=1e-4, atol=1e-6)
    assert absolute.loss == "absolute"


def test_a_learner_needs_no_more_than_fit_and_predict():
    data, plan = problem(), splits()
    losses = assess(KEY, Average(), data, plan)
    np.testing.assert_allclose(
        losses.values, assess(KEY, learn.Mean(), data, plan).values, rtol=1e-4, atol=1e-6
    )  # single precision
    assert not losses.info
    assert not losses.failed.any()


def test_several_outputs_are_predicted_together():
    data = problem()
    y = np.hstack([data.y, 2 * data.y, data.x])
    losses = assess(KEY, learn.Mean(), Data(data.x, y, data.names), splits())
    single = [assess(KEY, learn.Mean(), Data(data.x, y[:, k : k + 1], data.names), splits()).values for k in range(4)]
    np.testing.assert_allclose(losses.values, sum(single), rtol=1e-5)


# Randomness


@pytest.mark.parametrize("chunk", [3, 7, None])
@pytest.mark.parametrize("devices", ["one", "all"])
@pytest.mark.parametrize("sets", [None, 4], ids=["one set", "sets"])
def test_a_row_draws_from_its_own_key_wherever_it_runs(chunk, devices, sets):
    data, plan = problem(sets=sets), splits()
    losses = assess(KEY, Random(), data, plan, chunk=chunk, devices=jax.devices()[: 1 if devices == "one" else None])
    for q in range(sets or 1):
        for r in range(12):
            row = jax.random.fold_in(jax.random.fold_in(KEY, q), r)
            at = (r,) if sets is None else (q, r)
            assert losses.info["key"][at].tolist() == jax.random.key_data(row).tolist()
            # the same bits; what the normal distribution makes of them may differ by a rounding with the program it
            # stands in
            assert losses.info["draw"][at] == pytest.approx(float(jax.random.normal(row, ())), rel=1e-5)
    np.testing.assert_allclose(
        losses.values, (data.y[..., None, :, 0] - losses.info["draw"][..., None]) ** 2, rtol=1e-4, atol=1e-6
    )


def test_another_key_draws_anew_and_sets_share_no_draw():
    losses = [assess(key, Random(), problem(sets=4), splits()).info["draw"] for key in (KEY, KEY, OTHER)]
    np.testing.assert_array_equal(losses[0], losses[1])
    assert len(np.unique([losses[0], losses[2]])) == 2 * 4 * 12


# Programs that call LAPACK


@dataclass(frozen=True)
class Lapack:
    """Least squares by two of LAPACK's factorizations."""

    def fit(self, key, x, y, w):
        root = jnp.sqrt(w)[:, None]
        q, r = jnp.linalg.qr(root * x)
        factor = jnp.linalg.cholesky(r.T @ r)
        return jax.scipy.linalg.cho_solve((factor, True), r.T @ (q.T @ (root * y)))

    def predict(self, params, x):
        return x @ params


@dataclass(frozen=True)
class Hidden(Average):
    """Calls LAPACK where only a search through inner programs finds it."""

    @partial(jax.jit, static_argnums=0)
    def fit(self, key, x, y, w):
        return jax.lax.cond(w[0] > 0, lambda a: jnp.linalg.cholesky(a)[0, 0], lambda a: a[0, 0], x.T @ x)


def test_programs_that_call_lapack_run_to_their_end():
    """Two such chunks at a time wait for each other for ever under jaxlib 0.10.2; the engine runs one. A hang ends the
    process with a traceback.
    """
    data = problem(d=8)
    faulthandler.dump_traceback_later(120, exit=True)
    try:
        losses = assess(KEY, Lapack(), data, splits(2000), chunk=200, devices=jax.devices()[:1])
    finally:
        faulthandler.cancel_dump_traceback_later()
    for row in (0, 1, 999, 1999):
        used = losses.train[row] > 0
        weights = np.linalg.lstsq(data.x[used], data.y[used])[0]
        np.testing.assert_allclose(
            losses.values[row], ((data.y - data.x @ weights) ** 2)[:, 0], rtol=1e-2, atol=1e-3
        )  # single precision, few cases


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="other devices run one chunk at a time anyway")
def test_rows_that_share_much_work_are_trained_many_at_a_time(monkeypatch):
    """Distances of all cases are found once a chunk of a data set, of which there are two, and that takes longer than a
    row; the losses are the same. Those of a single data set are found once for all chunks.
    """
    random, known = np.random.default_rng(3), as_learner(learn.Neighbours(3))
    data = Data(random.normal(size=(2, 1200, 8)), random.normal(size=(2, 1200, 1)), tuple("abcdefgh"))
    plan = resample.k_fold(KEY, 1200, folds=5, repeats=30)
    chosen = ENGINE.way(known, loss.squared, data, plan)
    job = ENGINE.job_of(known, loss.squared, data, chosen, tuple(jax.devices()[:1]), False)
    needs = facts(job)
    monkeypatch.setattr(budget, "_LOOP_CACHE_BYTES", 32 * needs.loop_bytes)
    assert needs.shared > 10 * needs.operations, "products of all cases with each other, and those of a row with few"
    many, losses = budget.Budget.of(job).most_rows, assess(KEY, known, data, plan)
    monkeypatch.setattr(budget, "_SHARED", 0.0)
    few, again = budget.Budget.of(job).most_rows, assess(KEY, known, data, plan)
    assert few < len(plan.train) // 2 < many
    # Means of three targets of up to 4, which rounding changes by 4e-7 in another order, times twice an error of 6.
    np.testing.assert_allclose(losses.values, again.values, rtol=0, atol=1e-5)
    one = ENGINE.job_of(known, loss.squared, data[0], chosen, tuple(jax.devices()[:1]), False)
    assert facts(one).shared < needs.shared / 10


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="other devices have no cache to keep to")
def test_rows_with_little_work_are_trained_many_at_a_time():
    """Up to what one loop may take, since a chunk costs time by itself; rows with much to do as many as stay in the
    cache.
    """
    data, plan, chunks = problem(n=1000), resample.k_fold(KEY, 1000, folds=5), []
    for steps in (100, 10_000):
        learner = as_learner(learn.Descent(learn.MLP((20,)), steps=steps))
        chosen = ENGINE.way(learner, loss.squared, data, plan)
        job = ENGINE.job_of(learner, loss.squared, data, chosen, tuple(jax.devices()[:1]), False)
        chunks.append((facts(job).loop_bytes, budget.Budget.of(job).most_rows))
    (little, many), (much, few) = chunks
    assert little == much == 20 * 1000 * 4
    assert few == budget._LOOP_CACHE_BYTES // much < many <= budget._LOOP_MOST_BYTES // little


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("most", [1, 2, 8, 19, 1000])
@pytest.mark.parametrize("total", [1, 5, 100, 4321])
def test_chunks_come_out_even(total, most, workers):
    """The last chunk is filled up to the size of all, so with 13 chunks of 8 for 100 rows one of two workers trains 56:
    none trains more rows than with chunks of equal numbers, of which all workers have as many.
    """
    rows = budget.Budget(most, most * 3 // 2, 1, 1, workers).rows(total)
    assert min(most, total) // (2 * workers) <= rows <= min(most * 3 // 2, -(-total // workers))

    def busy(rows):
        return rows * -(-total // (rows * workers))

    rounds = -(-total // (most * workers))
    assert busy(rows) <= busy(-(-total // (rounds * workers)))
    if (total, most, workers) == (100, 8, 2):
        assert busy(rows) == 50


@dataclass(frozen=True)
class Distrusted(Average):
    """Fits rows together and trusts none of them; alone, it tells how many cases it was given."""

    def fit_rows(self, keys, x, y, w, left_out):
        return (jnp.zeros(len(w)), jnp.zeros(len(w))), jnp.zeros(len(w), bool)

    def fit(self, key, x, y, w):
        return super().fit(key, x, y, w), jnp.full((), len(x), jnp.float32)

    def predict(self, params, x):
        return super().predict(params[0], x)

    def diagnose(self, params):
        return {"cases": params[1]}


@pytest.mark.devices
@pytest.mark.parametrize(("share", "given"), [(0.5, 20), (0.8, 40)])
def test_rows_that_are_trained_again_are_trained_on_the_cases_they_use(share, given, monkeypatch):
    """If these are few; in chunks, of which the last is not full."""
    monkeypatch.setattr(ENGINE, "_MOST_AGAIN", 4)
    random = np.random.default_rng(0)
    data = Data(random.normal(size=(40, 2)), random.normal(size=(40, 1)), ("a", "b"))
    plan = resample.leave_out(KEY, data.n, 1 - share, 10)
    losses = assess(KEY, Distrusted(), data, plan)
    np.testing.assert_array_equal(losses.info["cases"], given)
    np.testing.assert_allclose(losses.values, assess(KEY, Average(), data, plan).values, rtol=1e-5)  # single precision


@pytest.mark.parametrize(("share", "together"), [(0.4, False), (0.6, True)])
def test_softmax_rows_of_few_cases_are_not_worth_sharing(share, together):
    random, known = np.random.default_rng(2), as_learner(learn.Normalised(learn.Logistic()))
    data = Data(random.normal(size=(50, 2)), np.eye(3)[random.integers(3, size=50)], ("a", "b"))
    plan = resample.leave_out(KEY, data.n, 1 - share, 10)
    assert ENGINE.way(known, loss.cross_entropy, data, plan).together == together


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="on other devices all rows run side by side")
def test_rows_in_turn_count_for_as_much_as_rows_side_by_side(monkeypatch):
    """9 classes of 8 inputs. What stands in the loop over rows is not shared by them."""
    random, known = np.random.default_rng(2), as_learner(learn.Logistic())
    data = Data(random.normal(size=(150, 8)), np.eye(9)[random.integers(9, size=150)], tuple("abcdefgh"))
    chosen = ENGINE.way(known, loss.cross_entropy, data, resample.k_fold(KEY, data.n, folds=5))
    job = ENGINE.job_of(known, loss.cross_entropy, data, chosen, tuple(jax.devices()[:1]), False)

    def traced(least):
        monkeypatch.setattr(logistic_rows, "_ALONE", least)
        with jax.enable_x64(job.wide), jax.default_device(job.here):
            return _traced(job)

    in_turn, beside = traced(0), traced(1 << 30)
    assert in_turn.operations == pytest.approx(beside.operations, rel=0.1)
    assert in_turn.shared < 0.1 * in_turn.operations


@pytest.mark.parametrize(
    ("n", "d", "fraction", "told"),
    [
        (24, 3, 1 / 24, 1),
        (24, 3, 0.25, None),
        (300, 40, 10 / 300, 10),
        (300, 40, 11 / 300, 20),
        (300, 40, 20 / 300, 20),
        (300, 40, 0.48, 150),
        (300, 40, 0.6, None),
    ],
)
def test_a_learner_of_rows_is_told_how_many_cases_they_leave_out(n, d, fraction, told):
    """Exactly up to a quarter of the inputs; of many inputs in steps of a 32nd of the cases, up to half of them."""

    @dataclass(frozen=True)
    class Told(Average):
        def fit_rows(self, keys, x, y, w, left_out):
            return {"told": jnp.full(len(w), -1 if left_out is None else left_out)}, jnp.ones(len(w), bool)

        def predict(self, params, x):
            return jnp.zeros_like(x[:, :1])

        def diagnose(self, params):
            return params

    plan = resample.leave_out(KEY, n, fraction, 20)
    data = Data(np.ones((n, d)), np.zeros((n, 1)), tuple(f"x{j}" for j in range(d)))
    found = assess(KEY, Told(), data, plan).info["told"]
    np.testing.assert_array_equal(found, -1 if told is None else told)
    uncounted = type("Uncounted", (Told,), {"counts_left_out": False})()
    np.testing.assert_array_equal(assess(KEY, uncounted, data, plan).info["told"], -1)


@pytest.mark.parametrize("derived", [True, False])
def test_a_learner_of_rows_is_told_what_share_of_the_cases_they_have(derived):
    """Whether it derives from `Learner` or not; what is no learner is named."""

    class Own:
        def fit(self, key, x, y, w):
            return {"share": jnp.full((), -1.0)}

        def fit_rows(self, keys, x, y, w, left_out):
            return {"share": jnp.full(len(w), self.share)}, jnp.ones(len(w), bool)

        def predict(self, params, x):
            return jnp.zeros_like(x[:, :1])

        def diagnose(self, params):
            return params

    @dataclass(frozen=True)
    class Shared(Own, *([learn.Learner] if derived else [])):
        share: float = 0.0
        given: bool = True
        shares_rows: ClassVar[bool] = True

        def for_rows(self, share):
            return replace(self, share=share) if self.given else None

    data, plan = problem(), splits(20)
    found = assess(KEY, Shared(), data, plan).info["share"]
    np.testing.assert_allclose(found, plan.train_cases.min() / data.n, rtol=1e-6)
    np.testing.assert_array_equal(assess(KEY, Shared(), data, splits(2)).info["share"], -1)
    with pytest.raises(TypeError, match=r"expected for_rows\(share\) of .* to give a learner with .* got None"):
        assess(KEY, Shared(given=False), data, plan)


@pytest.mark.parametrize("derived", [True, False])
def test_a_learner_of_rows_says_for_which_data_and_which_learner_is_more_careful(derived):
    """Whether it derives from `Learner` or not: its rows are not trusted, so those of the careful one are taken; each
    row of data with two inputs is trained alone. A single row goes the way of many.
    """

    class Own:
        def fit(self, key, x, y, w):
            return {"care": jnp.full((), -1.0)}

        def fit_rows(self, keys, x, y, w, left_out):
            told = self.care if left_out is None else -2.0
            return {"care": jnp.full(len(w), told)}, jnp.full(len(w), self.care > 0)

        def predict(self, params, x):
            return jnp.zeros_like(x[:, :1])

        def diagnose(self, params):
            return params

    @dataclass(frozen=True)
    class Careless(Own, *([learn.Learner] if derived else [])):
        care: float = 0.0
        careful: Any = None
        shares_rows: ClassVar[bool] = True

        def shares_rows_of(self, cases, trained, inputs):
            return inputs > 2

        def shares_one_row_of(self, cases, inputs):
            return inputs > 1

        def counts_left_out_of(self, cases, inputs):
            return False

        def careful_of(self, cases, inputs):
            return self.careful if self.care == 0 else None

    x, plan = np.random.default_rng(0).normal(size=(40, 3)), resample.leave_one_out(40)
    for inputs, want in ((3, 2.0), (2, -1.0)):
        data = Data(x[:, :inputs], x[:, :1], tuple("abc"[:inputs]))
        found = assess(KEY, Careless(careful=Careless(care=2.0)), data, plan).info["care"]
        np.testing.assert_array_equal(found, want)
    single = resample.leave_out(KEY, 40, 0.2, 1)
    found = assess(KEY, Careless(care=1.0), Data(x, x[:, :1], tuple("abc")), single).info["care"]
    np.testing.assert_array_equal(found, 1.0)
    with pytest.raises(TypeError, match=r"expected careful_of\(cases, inputs\) of .* to give a learner or None"):
        assess(KEY, Careless(careful=3), Data(x, x[:, :1], tuple("abc")), plan)


@pytest.mark.parametrize("wrong", [True, lambda self: True, lambda self, cases: True], ids=["no method", "none", "one"])
def test_a_method_of_ones_own_that_does_not_take_cases_and_inputs_gets_one_sentence(wrong):
    class Own:
        shares_one_row_of = wrong
        fit, predict = Average.fit, Average.predict

    words = r"expected shares_one_row_of\(cases, inputs\) of .* to take two arguments .*; define it as def shares_one"
    with pytest.raises(TypeError, match=words):
        assess(KEY, dataclass(frozen=True)(Own)(), problem(), splits(20))


@pytest.mark.parametrize("name", ["for_rows", "for_data"])
def test_a_method_of_ones_own_that_takes_no_argument_gets_one_sentence(name):
    def refused(self):
        raise AssertionError("nobody should call it")

    own = dataclass(frozen=True)(type("Own", (Average,), {name: refused, "fit_rows": refused}))()
    argument = name.removeprefix("for_").replace("rows", "share")
    words = (
        rf"expected {name}\({argument}\) of Own.* to take one argument .*; define it as def {name}\(self, {argument}\)"
    )
    with pytest.raises(TypeError, match=words):
        assess(KEY, own, problem(), splits(20))


@dataclass(frozen=True)
class Preparing(Average):
    """Fits rows together, about means that it was prepared with; tells the mean weights that these were made with."""

    known: Any = None

    def prepared(self, x, y, w, rows):
        assert rows == 16
        return Preparing(known=(w, jnp.sum(w * y[:, 0]) / jnp.sum(w)))

    def fit(self, key, x, y, w):
        return {"mean": super().fit(key, x, y, w), "typical": w}

    def fit_rows(self, keys, x, y, w, left_out):
        typical, mean = self.known
        found = jax.vmap(lambda row: mean + jnp.sum(row * (y[:, 0] - mean)) / jnp.sum(row))(w)
        return {"mean": found, "typical": jnp.broadcast_to(typical, w.shape)}, jnp.ones(len(w), bool)

    def predict(self, params, x):
        return super().predict(params["mean"], x)

    def diagnose(self, params):
        return {"typical": params["typical"]}


@pytest.mark.parametrize(("sets", "own"), [(None, None), (3, None), (3, 3)])
def test_rows_that_are_trained_together_are_prepared_with_mean_weights(sets, own):
    """Of all rows, also those of other chunks: of a data set of their own, or of the one that all share."""
    data, plan = problem(sets=sets), splits(20, sets=own)
    losses = assess(KEY, Preparing(), data, plan, chunk=6)
    typical = plan.train.mean(axis=-2)
    want = np.broadcast_to(typical if own else typical[None], (sets or 1, 24))[:, None].repeat(20, 1)
    np.testing.assert_allclose(losses.info["typical"].reshape(want.shape), want, rtol=1e-6)
    each = assess(KEY, Average(), data, plan)
    np.testing.assert_allclose(losses.values, each.values, rtol=1e-4, atol=1e-5)  # sums in another order


def test_a_learner_that_prepares_no_learner_is_told_so():
    @dataclass(frozen=True)
    class Wrong(Preparing):
        def prepared(self, x, y, w, rows):
            return jnp.mean(y)

    with pytest.raises(ValueError, match=r"expected prepared\(x, y, w, rows\) of .*Wrong.* to give a learner"):
        assess(KEY, Wrong(), problem(), splits(20))


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="on other devices no program calls LAPACK")
@pytest.mark.parametrize(
    ("learner", "alone"),
    [
        (Average(), False),
        (learn.LeastSquares(), False),
        (learn.LeastSquares(minimum_norm=True), True),
        (Lapack(), True),
        (Hidden(), True),
    ],
    ids=repr,
)
def test_only_programs_without_lapack_run_beside_others(learner, alone):
    """One row, so that every learner is asked for `fit`."""
    known, data, plan = as_learner(learner), problem(), splits(1)
    chosen = ENGINE.way(known, loss.squared, data, plan)
    job = ENGINE.job_of(known, loss.squared, data, chosen, tuple(jax.devices()), False)
    assert job.devices == tuple(jax.devices()[: 1 if alone else None])
    assert budget.workers_of(job) == (1 if alone or len(job.devices) > 1 else budget._cores())
    assert program.compiled(job, 1, 4, KEY.dtype, 4, 1).alone == alone, "what the lowered program says"


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="on other devices no program calls LAPACK")
def test_chunks_run_side_by_side_after_lapack_was_called_once():
    """For rows that share coordinates of the space which their cases span; they are those of a single chunk."""
    random = np.random.default_rng(4)
    x, classes = random.normal(size=(90, 150)), np.arange(90) % 2
    data = Data(x, np.eye(2)[classes], tuple(map(str, range(150))), task="classification")
    plan = splits(12, 0.2, n=90)
    known = as_learner(learn.Logistic())
    chosen = ENGINE.way(known, loss.zero_one, data, plan)
    job = ENGINE.job_of(known, loss.zero_one, data, chosen, tuple(jax.devices()[:1]), False)
    needs = facts(job)
    assert (needs.lapack, needs.alone) == (True, False)
    assert budget.workers_of(job) == budget._cores()
    made = program.compiled(job, 1, 4, KEY.dtype, 10**6, 2)
    assert (made.begins_alone, made.alone) == (True, False)
    in_chunks, whole = (assess(KEY, known, data, plan, loss.cross_entropy, chunk=chunk) for chunk in (4, 12))
    np.testing.assert_allclose(in_chunks.values, whole.values, rtol=1e-5)  # they are kept in single precision


def blas_threads():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="on other devices no program calls LAPACK")
@pytest.mark.parametrize("inputs", [3, 600])
def test_lapack_has_one_thread_for_small_matrices(inputs, monkeypatch):
    """While rows are trained; afterwards it has as many as before, also if that failed."""
    jnp.linalg.eigh(jnp.eye(3))  # loads SciPy's LAPACK
    before, alone, seen = blas_threads(), workers.alone, []
    if max(before) == 1:
        pytest.skip("needs a LAPACK of several threads")

    @contextmanager
    def watched(decomposed):
        with alone(decomposed):
            seen.append((decomposed, blas_threads()))
            yield

    monkeypatch.setattr(ENGINE, "alone", watched)
    losses = assess(KEY, learn.Ridge(), problem(1300, inputs), splits(2, 0.5, n=1300))
    assert np.isfinite(losses.test_mean).all()
    decomposed, within = seen[-1]
    assert decomposed >= inputs
    assert within == ([1] * len(before) if inputs == 3 else before)
    assert blas_threads() == before
    with pytest.raises(RuntimeError, match="stopped"), alone(3):
        raise RuntimeError("stopped")
    assert blas_threads() == before


# Failed rows


def marked(row_of):
    """Data and a leave-one-out plan of 24 cases; case c is marked, so all rows but c meet mark row_of[c]."""
    data = problem()
    x = data.x.copy()
    for case, mark in row_of.items():
        x[case, 0] = mark
    return Data(x, data.y, data.names)


FEW = resample.from_weights(np.eye(24)[:6] + np.eye(24)[6:12], np.eye(24)[12:18])
"""Row r trains on the cases r and r + 6, and is tested on case r + 12."""


def test_rows_that_fail_say_why_and_leave_their_neighbours_alone():
    data = marked({1: 100, 3: 200, 4: 300})
    losses, clean = assess(KEY, Fragile(), data, FEW), assess(KEY, Average(), problem(), FEW)
    assert losses.failed.tolist() == [False, True, False, True, True, False]
    assert [losses.reasons[code - 1] if code else "" for code in losses.failure] == [
        "",
        losses.reasons[0],
        "",
        "it met a 200",
        "it met a 300",
        "",
    ]
    for row in (0, 2, 5):
        np.testing.assert_array_equal(losses.values[row], clean.values[row])
        assert losses.test_mean[row] == clean.g[row]
    for name in ("g", "apparent"):
        with pytest.raises(
            ValueError,
            match=r"got 3 failed of 6 for Fragile\(scale=1.0\) \[code \w+\] on given weights \(row 1: "
            r"its loss is not finite .*; row 3: it met a 200; row 4: it met a 300\); "
            r"call losses.without_failed",
        ):
            getattr(losses, name)
    assert ", 3 failed)" in repr(losses)


def test_failed_rows_can_be_left_out():
    losses = assess(KEY, Fragile(), marked({1: 100, 3: 200, 4: 300}), FEW)
    good = losses.without_failed()
    assert good.dropped == 3
    assert not good.failed.any()
    np.testing.assert_array_equal(good.g, losses.test_mean[[0, 2, 5]])
    np.testing.assert_array_equal(good.apparent, losses.train_mean[[0, 2, 5]])
    np.testing.assert_array_equal(good.train, FEW.train[[0, 2, 5]])
    np.testing.assert_array_equal(good.test, FEW.test[[0, 2, 5]])
    np.testing.assert_array_equal(good.values, losses.values[[0, 2, 5]])
    assert good.plan.scheme == "given weights without 3 failed rows"
    assert "3 failed rows left out" in repr(good)
    same = good.without_failed()
    assert same.dropped == 3
    np.testing.assert_array_equal(same.g, good.g)


def test_labels_and_diagnoses_follow_the_rows_that_stay():
    data = marked({5: 100})
    plan = resample.k_fold(OTHER, 24, folds=6, repeats=2)
    losses = assess(KEY, Fragile(), data, plan)
    assert losses.failed.tolist() == (plan.train[:, 5] > 0).tolist()
    good = losses.without_failed()
    assert good.plan.labels["fold"].tolist() == plan.labels["fold"][~losses.failed].tolist()
    assert good.dropped == 10


def test_failed_rows_of_several_sets_are_left_out_one_set_at_a_time():
    clean, spoiled = problem(), marked({1: 100})
    data = Data(np.stack([clean.x, spoiled.x]), np.stack([clean.y, spoiled.y]), clean.names)
    losses = assess(KEY, Fragile(), data, FEW)
    assert losses.failed.tolist() == [[False] * 6, [False, True, False, False, False, False]]
    with pytest.raises(ValueError, match="got 1 failed of 12 .*row 1, 1: its loss is not finite"):
        _ = losses.g
    with pytest.raises(
        ValueError,
        match=r"losses of one data set, got those of 2, whose rows would no longer align; choose one with losses\[q\]",
    ):
        losses.without_failed()
    assert losses[0].g.shape == (6,)
    assert losses[1].without_failed().dropped == 1


def test_without_any_good_row_there_is_nothing_to_keep():
    losses = assess(KEY, Fragile(), marked(dict.fromkeys(range(6), 300)), FEW)
    with pytest.raises(
        ValueError,
        match=r"a row that went well, got 6 failed rows of Fragile\(scale=1.0\) \[code \w+\]: row 0: it met a 300",
    ):
        losses.without_failed()


def test_a_row_may_predict_nonsense_where_it_is_not_looked_at():
    """Cases of weight 0 in training and test do not count, finite or not."""
    data = problem()

    losses = assess(KEY, _WildAtLarge(), marked({20: 100}), FEW)
    assert not losses.failed.any()
    assert np.isnan(losses.values[:, 20]).all()
    np.testing.assert_allclose(losses.g, assess(KEY, Average(), data, FEW).g, rtol=1e-6)


@dataclass(frozen=True)
class _WildAtLarge(Average):
    def predict(self, params, x):
        return jnp.where(x[:, :1] == 100, jnp.nan, super().predict(params, x))


def test_a_loss_that_overflows_is_a_failure():
    data = problem()
    y = data.y.copy()
    y[13] = 1e25  # its square is beyond single precision; row 1 is tested on it, none is trained on it
    losses = assess(KEY, Average(), Data(data.x, y, data.names), FEW)
    assert losses.failed.tolist() == [False, True, False, False, False, False]


def test_diagnoses_are_collected():
    data, plan = problem(sets=5), splits()
    losses = assess(KEY, Described(), data, plan)
    assert {name: value.shape for name, value in losses.info.items()} == {"mean": (5, 12), "twice": (5, 12, 2)}
    np.testing.assert_allclose(
        losses.info["mean"], (data.y[:, None, :, 0] * plan.train).sum(-1) / 18, rtol=1e-4, atol=1e-6
    )  # single precision
    np.testing.assert_array_equal(losses.info["twice"], losses.info["mean"][..., None] * np.float32([1, 2]))


@pytest.mark.parametrize(
    "take",
    [lambda: problem()[0], lambda: splits()[0], lambda: assess(KEY, Average(), problem(), splits())[0]],
    ids=["data", "plan", "losses"],
)
def test_what_has_no_sets_has_no_first_set(take):
    with pytest.raises(IndexError, match="with a leading axis Q to choose"):
        take()


# Memory


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="devices with memory of their own are asked for it")
@pytest.mark.parametrize(
    ("keep", "free", "message"),
    [
        (
            "cases",
            1000,
            r"the losses of all rows and cases to fit into memory, got 1,152 bytes where 1,000 are free; "
            r"use keep='rows', or fewer resamples",
        ),
        (
            "rows",
            10,
            r"one row of Average\(scale=1.0\) to fit into memory, got \d+ bytes where 10 are free; "
            r"use fewer cases or a smaller learner",
        ),
    ],
)
def test_what_cannot_fit_is_refused_with_its_bytes(keep, free, message, monkeypatch):
    monkeypatch.setattr(budget, "free_bytes", lambda: free)
    with pytest.raises(MemoryError, match=message):
        assess(KEY, Average(), problem(), splits(), keep=keep)
    if keep == "cases":
        assert assess(KEY, Average(), problem(), splits(), keep="rows").resamples == 12


def test_progress_goes_to_standard_error(capsys, monkeypatch):
    bar = progress.tqdm
    monkeypatch.setattr(progress, "tqdm", lambda **settings: bar(**settings | {"delay": 0, "mininterval": 0}))
    assess(KEY, Average(), problem(), splits(), progress=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.search(r"Average\(scale=1.0\): +100%.* 12/12 .* trainings", printed.err)
    for silent in (False, None):  # None shows it on a terminal only
        assess(KEY, Average(), problem(), splits(), progress=silent)
        assert capsys.readouterr() == ("", "")


def test_few_rows_predict_at_a_time_where_cases_are_many(monkeypatch):
    """Predicting some rows at a time is the same, to rounding, as all at once."""
    data, plan = problem(60), splits(23, n=60)
    want = assess(jax.random.key(1), learn.Mean(), data, plan)
    monkeypatch.setattr(program, "_PREDICT_BYTES", 5 * 60 * 8)
    program.forget()
    got = assess(jax.random.key(1), learn.Mean(), data, plan)
    program.forget()
    np.testing.assert_allclose(got.values, want.values, rtol=1e-6)


def test_similar_numbers_of_rows_share_a_program():
    """From 113 to 120 rows on one device, as two chunks of 57 to 60 on two cores, or one of them."""
    plan = splits(120)
    want = assess(KEY, Average(), problem(), plan, devices=jax.devices()[:1])
    before = program._compiled.cache_info().misses
    for rows in (113, 116, 119):
        some = resample.from_weights(plan.train[:rows], plan.test[:rows])
        got = assess(KEY, Average(), problem(), some, devices=jax.devices()[:1])
        np.testing.assert_array_equal(got.values, want.values[:rows])
    assert program._compiled.cache_info().misses == before
