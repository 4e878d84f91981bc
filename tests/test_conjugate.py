"""Conjugate gradients against NumPy, SciPy and closed forms; the identities of weights; rows of a batch; mlp-ese-1."""

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from jaxgen import Data, assess, datasets, learn, resample, simulate
from jaxgen.delve import ese_hidden, mlp_ese_1
from jaxgen.learn import MLP, EarlyStopped, Ensemble, LeastSquares, Normalised, PerTask
from jaxgen.learn.network.conjugate import Conjugate
from jaxgen.learn.network.iterative import prepare

LINEAR = {np.dtype("float32"): 1e-4, np.dtype("float64"): 1e-9}
"""Error allowed of the predictions of a linear network, relative to the targets: the gradient, a sum of 40 products,
can be made small to a few roundings of its terms, which moves the solution by as much times the condition number of
the normal equations, up to 500 here.
"""
ITERATED = {np.dtype("float32"): 1e-3, np.dtype("float64"): 1e-9}
"""Error allowed between two orders of the same sums after 5 iterations of a tanh network: each may enlarge a rounding
several times, as a step depends on the signs and the cubic of a search. From a nearly symmetric start, as Neal's, it
would be tens of times.
"""


def problem(seed=0, n=40, d=3, k=2):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d)) * np.geomspace(1, 3, d) + 0.5
    y = np.sin(x @ random.normal(size=(d, k))) + 0.1 * random.normal(size=(n, k))
    return Data(x, y, tuple(f"x{i}" for i in range(d)))


@partial(jax.jit, static_argnums=(0, 1))
def called(learner, method, x, y, w, start):
    return getattr(learner, method)(jax.random.key(0), x, y, w, start)


def fit(learner, x, y, w=None, start=None, method="fit"):
    return called(
        learner,
        method,
        jnp.asarray(x),
        jnp.asarray(y),
        jnp.ones(len(x), x.dtype) if w is None else jnp.asarray(w),
        start,
    )


@partial(jax.jit, static_argnums=0)
def predicted(learner, x, y, w, at):
    return learner.predict(learner.fit(jax.random.key(0), x, y, w), at)


def predictions(learner, x, y, w, at):
    return np.asarray(predicted(learner, *map(jnp.asarray, (x, y, np.ones(len(x), x.dtype) if w is None else w, at))))


def energies(learner, path, x, y):
    """The objective of each network of a path, [S]."""
    cases = prepare(jnp.asarray(x), jnp.asarray(y), jnp.ones(len(x), x.dtype))
    return np.asarray(jax.vmap(lambda p: learner.energy(p, cases))(path.params))


def cast(data, dtype):
    return data.x.astype(dtype), data.y.astype(dtype)


def close(got, want, tolerance):
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * np.abs(want).max())


def solution(x, y):
    design = np.hstack([np.ones((len(x), 1)), x]).astype(np.float64)
    return design @ np.linalg.lstsq(design, y.astype(np.float64), rcond=None)[0]


def test_a_linear_network_reaches_least_squares(dtype):
    for seed in range(5):
        x, y = cast(problem(seed), dtype)
        learner = Conjugate(MLP(hidden=()), steps=100)
        params = fit(learner, x, y)
        close(learner.predict(params, jnp.asarray(x)), solution(x, y), LINEAR[dtype])
        assert params.failed_step == -1
        assert (
            params.gradient < 1000 * np.finfo(dtype).eps
        )  # a sum of 40 products; 20 to 110 were seen, which depends on the compiler


def test_a_quadratic_takes_as_many_iterations_as_it_has_eigenvalues():
    """Hestenes & Stiefel 1952: with exact line searches, as many as the Hessian has different eigenvalues. Both
    outputs share theirs, one for each input and the bias. A slope reduced to 1e-3 is nearly exact, hence the residual
    of 1e-3 and not of rounding.
    """
    with jax.enable_x64(True):
        for d in (2, 5, 9):
            x, y = cast(problem(d, n=60, d=d), np.dtype(float))
            path = fit(Conjugate(MLP(hidden=()), steps=2 * d, checkpoints=2 * d, curvature=1e-3), x, y, method="path")
            assert path.gradient[d] < 1e-3 < path.gradient[d - 1] * 10
            assert path.gradient[-1] < 1e-6


def test_a_penalty_is_that_of_ridge_regression(dtype):
    x, y = cast(problem(1), dtype)
    for strength in (0.3, 30.0):
        want = predictions(LeastSquares(ridge=strength), x, y, None, x)
        close(
            predictions(Conjugate(MLP(hidden=()), steps=100, penalty=learn.L2(strength)), x, y, None, x),
            want,
            LINEAR[dtype],
        )


@partial(jax.jit, static_argnums=0)
def measured(learner, params, x, y):
    """Energy and gradient at a vector of parameters."""
    restored = ravel_pytree(learner.init(jax.random.key(0), x, y))[1]
    return jax.value_and_grad(lambda p: learner.energy(restored(p), prepare(x, y, jnp.ones(len(x), x.dtype))))(params)


def compared(learner, seed, method):
    """A fit, and its energy relative to that of SciPy's from the same start after as many iterations at most."""
    x, y = map(jnp.asarray, cast(problem(seed, k=1), np.dtype(float)))
    start = np.asarray(ravel_pytree(learner.init(jax.random.key(0), x, y))[0])
    peer = minimize(
        lambda p: tuple(map(np.asarray, measured(learner, p, x, y))),
        start,
        jac=True,
        method=method,
        options={"maxiter": learner.steps, "gtol": 1e-9},
    )
    params = fit(learner, x, y)
    return params, float(measured(learner, ravel_pytree(params.params)[0], x, y)[0]) / peer.fun


@pytest.mark.parametrize("method", ["CG", "BFGS"])
def test_a_small_tanh_network_is_trained_as_well_as_by_scipy(method):
    """From ten starts, with a little weight decay that makes minima isolated. A start may lead to another minimum than
    SciPy's, so the median is compared; a minimum is where the gradient is below 1e-4 of that at the start.
    """
    ratios = []
    with jax.enable_x64(True):
        for seed in range(10):
            params, ratio = compared(
                Conjugate(MLP(hidden=(4,), init=0.5), steps=2000, penalty=learn.L2(0.1)), seed, method
            )
            assert params.gradient < 1e-4
            ratios.append(ratio)
    assert np.median(ratios) < 1.001
    assert max(ratios) < 1.5


def test_an_iteration_is_worth_one_of_scipy():
    """After 30 iterations of conjugate gradients from the same starts, both with Wolfe conditions; SciPy's curvature
    is 0.4, so 5 %.
    """
    with jax.enable_x64(True):
        ratios = [
            compared(Conjugate(MLP(hidden=(4,), init=0.5), steps=30, penalty=learn.L2(0.1)), seed, "CG")[1]
            for seed in range(10)
        ]
    assert np.median(ratios) < 1.05


def test_the_energy_decreases_until_rounding(dtype):
    x, y = cast(problem(3), dtype)
    for objective in ("squared", "huber"):
        learner = Conjugate(MLP(hidden=(5,)), steps=200, checkpoints=200, objective=objective)
        path = fit(learner, x, y, method="path")
        energy = energies(learner, path, x, y)
        # 4 units of the last place, or the root of the number of cases, are what the search takes for rounding, and as
        # many again are lost when the energy is summed anew
        units = 2 * max(4, np.sqrt(len(x)))
        assert np.all(np.diff(energy) <= units * np.finfo(dtype).eps * energy[:-1])
        assert np.all(np.diff(energy)[:20] < 0)
        assert energy[-1] < 0.5 * energy[0]


@pytest.mark.slow
def test_networks_leave_the_plateau_around_the_best_linear_one():
    """In single precision, with so many cases that rounding in the sum of their losses exceeds what an iteration on the
    plateau gains: in double precision the losses are .12 to .13 of the variance, and .3 and more where networks stay.
    """
    data = simulate.kin(jax.random.key(0), 2048, inputs=8).data
    train = np.arange(2048) < 1024
    plan = resample.from_weights(np.tile(train, (4, 1)), np.tile(~train, (4, 1)))
    losses = assess(jax.random.key(1), mlp_ese_1(1024, 8), data, plan)
    assert np.all(losses.g < 0.2 * data.y.var())


def test_fit_is_the_end_of_the_path_wherever_it_is_saved(dtype):
    """A search that waits at a save goes on as it would have; linear networks, whose searches do not enlarge
    roundings.
    """
    x, y = cast(problem(4), dtype)
    learner = Conjugate(MLP(hidden=()), steps=6)
    whole = fit(learner, x, y)
    for checkpoints in (6, (1, 3)):
        path = fit(Conjugate(MLP(hidden=()), steps=6, checkpoints=checkpoints), x, y, method="path")
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a[-1], b, rtol=ITERATED[dtype], atol=ITERATED[dtype]),
            path.params,
            whole.params,
        )


def test_a_start_is_where_training_goes_on(dtype):
    """In two programs, whose roundings line searches amplify where all units begin nearly alike: ten times as much is
    allowed as of one.
    """
    x, y = map(jnp.asarray, cast(problem(5), dtype))
    learner = Conjugate(MLP(hidden=(3,)), steps=5)
    first, other = (learner.init(jax.random.key(number), x, y) for number in (0, 3))
    again, elsewhere = (fit(learner, x, y, start=start) for start in (first, other))
    trained = fit(learner, x, y)
    jax.tree.map(lambda a, b: close(a, b, 10 * ITERATED[dtype]), again.params, trained.params)
    assert not np.allclose(elsewhere.params["output"]["bias"], trained.params["output"]["bias"], rtol=3e-2)


@pytest.mark.parametrize(
    "network",
    [
        MLP(hidden=(4,), init=0.5),
        MLP(hidden=(4,), skip=True, batch_norm=True, init=0.5),
        PerTask(MLP(hidden=(2,), init=0.5)),
    ],
    ids=repr,
)
def test_weights_are_absence_and_repetition(network, dtype):
    x, y = cast(problem(6), dtype)
    count = np.array([0, 2, 1, 1] * 10)  # 40 in all, so that one compilation serves three of the fits
    w, used, twice = count.astype(dtype), count > 0, np.repeat(np.arange(40), count)
    learner = Conjugate(network, steps=5)
    want = predictions(learner, x, y, w, x)
    close(predictions(learner, x[used], y[used], w[used], x), want, ITERATED[dtype])
    close(predictions(learner, x[twice], y[twice], None, x), want, ITERATED[dtype])
    close(
        predictions(learner, np.where(used[:, None], x, np.nan), np.where(used[:, None], y, np.inf), w, x),
        want,
        ITERATED[dtype],
    )


@pytest.mark.devices
def test_a_batch_is_a_loop_of_single_fits(dtype):
    """After 5 iterations only: sums in another order make searches differ by rounding, and then by more in each
    iteration.
    """
    data, plan = problem(7), resample.bootstrap(jax.random.key(1), 40, 9)
    x, y = cast(data, dtype)
    learner = Conjugate(MLP(hidden=(4,), init=0.5), steps=5)
    losses = assess(jax.random.key(2), learner, data, plan, chunk=5)
    single = jax.jit(
        lambda key, w: learner.predict(learner.fit(key, jnp.asarray(x), jnp.asarray(y), w), jnp.asarray(x))
    )
    for row in range(9):
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(2), 0), row)
        outputs = single(key, jnp.asarray(plan.train[row], dtype))
        close(losses.values[row], np.sum((y - np.asarray(outputs)) ** 2, axis=-1), 10 * ITERATED[dtype])


def test_rows_that_fail_or_have_converged_change_no_neighbour_and_end(dtype):
    """One row overflows at once, one in its gradient only, one has nothing to learn, one is NaN; the others are as
    without them.
    """
    x, y = cast(problem(8, k=1), dtype)
    largest = float(np.sqrt(np.finfo(dtype).max))
    targets = np.stack([y, y * largest, y * largest / 5, np.zeros_like(y), y * np.nan, y + 1]).astype(dtype)
    learner = Conjugate(MLP(hidden=(3,), init="lecun"), steps=5)
    start = jax.tree.map(jnp.zeros_like, learner.init(jax.random.key(0), jnp.asarray(x), jnp.asarray(y)))
    together = jax.jit(jax.vmap(lambda y: learner.fit(jax.random.key(0), jnp.asarray(x), y, jnp.ones(40, dtype))))(
        jnp.asarray(targets)
    )
    assert together.failed_step.tolist() == [-1, 0, 0, -1, 0, -1]
    assert jax.vmap(learner.failure)(together).tolist() == [0, 1, 1, 0, 1, 0]
    together = jax.vmap(learner.predict, (0, None))(together, jnp.asarray(x))
    for row in (0, 5):
        close(together[row], predictions(learner, x, targets[row], None, x), ITERATED[dtype])
    jax.tree.map(np.testing.assert_array_equal, fit(learner, x, np.zeros_like(y), start=start).params, start)


def test_a_converged_network_stays_as_it_is(dtype):
    x, y = cast(problem(9), dtype)
    path = fit(Conjugate(MLP(hidden=()), steps=3000, checkpoints=(200, 1000)), x, y, method="path")
    jax.tree.map(lambda a: np.testing.assert_array_equal(a, np.broadcast_to(a[:1], a.shape)), path.params)


def test_targets_of_any_size_are_learned_alike(dtype):
    """Squares of energies would overflow in 32 bits: nothing in the line search may form them. A power of two changes
    no digit.
    """
    x, y = cast(problem(10), dtype)
    learner = Conjugate(MLP(hidden=()), steps=30)
    want = predictions(learner, x, y, None, x)
    for power in (-20, 20, 40):
        scale = np.ldexp(np.ones((), dtype), power)
        close(predictions(learner, x, y * scale, None, x) / scale, want, 100 * LINEAR[dtype])


def test_early_stopping_ends_where_its_rule_says(dtype):
    data, plan = problem(11, n=60, k=1), resample.leave_out(jax.random.key(0), 60, 0.2, 12)
    base = Conjugate(MLP(hidden=(8,)), steps=200)
    learner = EarlyStopped(base, share=1 / 3, stretch=1.5, patience=3.0)
    losses = assess(jax.random.key(1), learner, data, plan)
    checkpoints, ended = np.array(base.checkpoint_steps), 0
    assert losses.info["validation"].shape == (12, 1, len(checkpoints))
    for errors, iteration in zip(losses.info["validation"][:, 0], losses.info["iteration"][:, 0], strict=True):
        last = np.flatnonzero(np.isfinite(errors))[-1]
        bests = [checkpoints[np.argmin(errors[: save + 1])] for save in range(last + 1)]
        goes_on = checkpoints[: last + 1] <= 1.5 * np.array(bests) + 3
        assert goes_on[:-1].all()
        assert not goes_on[-1] or last == len(checkpoints) - 1
        assert iteration == bests[-1]
        ended += not goes_on[-1]
    assert ended > 6


def test_the_hidden_units_of_ese_are_the_fewest_that_give_enough_weights():
    def weights(hidden, inputs, outputs):
        params = jax.eval_shape(
            lambda: MLP(hidden=(hidden,), skip=True).start(
                jax.random.key(0), jnp.zeros((1, inputs)), jnp.zeros((1, outputs))
            )
        )
        return sum(leaf.size for leaf in jax.tree.leaves(params))

    def learned(cases, share):
        order = jnp.zeros(cases, jnp.int32)
        return cases - int(EarlyStopped(share=share)._portions(cases, jnp.sum(order == 0))[1][0])

    for cases, inputs, outputs, share in (
        (64, 8, 1, 1 / 3),
        (1024, 32, 1, 1 / 3),
        (128, 8, 3, 0.25),
        (30, 30, 2, 0.5),
        (2, 1, 1, 0.9),
        (65, 5, 1, 1 / 3),
    ):
        hidden = next(h for h in range(1, 1000) if weights(h, inputs, outputs) >= learned(cases, share))
        assert ese_hidden(cases, inputs, outputs, share) == hidden
    for wrong in ((1, 1), (10, 0), (10, 1, 0), (10, 1, 1, 1.0)):
        with pytest.raises(ValueError, match="expected (cases|inputs|outputs|share) to be .* number"):
            ese_hidden(*wrong)


def test_mlp_ese_1_learns():
    data = datasets.diabetes()
    plan = resample.leave_out(jax.random.key(0), data.n, 0.3, 4)
    learner = mlp_ese_1(int(plan.train_sizes.max()), data.d, members=5)
    assert learner == Normalised(
        Ensemble(
            EarlyStopped(Conjugate(MLP(hidden=(17,), skip=True)), share=1 / 3, stretch=1.5, patience=50.0), members=5
        )
    )
    losses = assess(jax.random.key(1), learner, data, plan)
    assert losses.info["iteration"].shape == (4, 5, 1)
    # least squares reaches half the loss of the mean on these data, and so must an ensemble with direct connections,
    # within a tenth
    assert losses.g.mean() < 0.55 * assess(jax.random.key(1), learn.Mean(), data, plan).g.mean()


class Own(nn.Module):
    """A module of the user's that drops units in training only."""

    @nn.compact
    def __call__(self, x, train: bool = False):
        return nn.Dense(2)(nn.Dropout(0.5, deterministic=not train)(nn.tanh(nn.Dense(4)(x))))


def test_networks_that_draw_are_refused_and_modules_of_ones_own_are_not(own_messages):
    data, plan = problem(12), resample.leave_out(jax.random.key(0), 40, 0.25, 3)
    for network in (MLP(dropout=0.5), MLP(noise=(0.1, 0.0)), PerTask(MLP(dropout=0.2))):
        with pytest.raises(
            ValueError,
            match=r"expected a network without dropout and noise, got .*: a line search needs one fixed function",
        ):
            assess(jax.random.key(0), Conjugate(network), data, plan)
    for network in (Own(), PerTask(MLP(hidden=(3,)))):
        losses = assess(jax.random.key(0), Conjugate(network, steps=50), data, plan)
        assert losses.apparent.mean() < 0.5 * np.var(data.y, axis=0).sum()


@pytest.mark.parametrize("curvature", [1e-5, 0.5, float("nan")])
def test_settings_out_of_range_are_refused(curvature):
    data, plan = problem(13), resample.leave_out(jax.random.key(0), 40, 0.25, 3)
    with pytest.raises(ValueError, match="expected the curvature to be a number above 0.0001 and below 0.5, got "):
        assess(jax.random.key(0), Conjugate(curvature=curvature), data, plan)
