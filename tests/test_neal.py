"""Neal's early-stopping methods against numbers from his own program.

`neal_reference.csv` is an excerpt; where the whole reference lies beside the repository, in ../shared/reference, all
of it is compared.
"""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgen import learn
from jaxgen.learn.network.iterative import prepare

WHOLE = Path(__file__).parents[2] / "shared" / "reference"
needs_whole = pytest.mark.skipif(
    not WHOLE.exists(), reason=f"the whole reference is not at {WHOLE}; its excerpt is compared"
)
RELEVANCE = {1: "none", 2: "gradient", 3: "correlation"}
ESTIMATION = np.arange(128) < 96


def read(path):
    """Rows of numbers by name; rows of one name are stacked."""
    rows = {}
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            name, *values = line.split(",")
            rows.setdefault(name, []).append([float(value) for value in values])
    return {name: np.squeeze(np.array(values)) for name, values in rows.items()}


EXCERPT = read(Path(__file__).with_name("neal_reference.csv"))
X, Y = EXCERPT["data"][:, :32], EXCERPT["data"][:, 32:]
EPOCHS = tuple(int(epoch) for epoch in EXCERPT["epochs"])


def start_weights(name):
    return 0.02 * ((EXCERPT[name] + 0.5) / 2**31) - 0.01


def tolerance(dtype, epoch):
    """Largest error of a weight: what the reference promises between programs in the same precision, whose sums differ
    in their order.
    """
    return 1e-12 if dtype == np.float64 else 1e-6 if epoch <= 200 else 1e-4


def network(weights, dtype):
    """Parameters from vectors [..., 681] in the order of Neal's program, whose input weights are grouped by input."""
    v = np.asarray(weights, dtype)
    kernel = np.swapaxes(v[..., :640].reshape(*v.shape[:-1], 32, 20), -1, -2)
    made = {
        "hidden_0": {"kernel": kernel, "bias": v[..., 640:660]},
        "output": {"kernel": v[..., None, 660:680], "bias": v[..., 680:]},
    }
    return jax.tree.map(jnp.asarray, made)


def vector(params):
    """The inverse of `network`."""
    hidden, output = params["hidden_0"], params["output"]
    kernel = np.swapaxes(hidden["kernel"], -1, -2)
    return np.concatenate(
        [kernel.reshape(*kernel.shape[:-2], 640), hidden["bias"], output["kernel"][..., 0, :], output["bias"]], -1
    )


@partial(jax.jit, static_argnums=0)
def path(learner, x, y, w, start):
    return learner.path(jax.random.key(0), x, y, w, start).params


@partial(jax.jit, static_argnums=0)
def stop(learner, x, y, start, order, at):
    """Members, and their predictions of the cases `at`."""
    trained = learner.fit_from(start, jax.random.key(0), x, y, jnp.ones(len(x), x.dtype), order)
    return (
        trained,
        jax.vmap(lambda member: learner.base.predict(member, at)[:, 0])(trained.members),
        learner.predict(trained, at)[:, 0],
    )


@partial(jax.jit, static_argnums=0)
def step_factors(learner, params, cases):
    return learner._factors(jax.grad(learner.energy)(params, cases))


def trajectory(method, dtype):
    """Weights [epochs, 681] after each of `EPOCHS`."""
    learner = learn.Descent(steps=EPOCHS[-1], relevance=RELEVANCE[method], checkpoints=EPOCHS)
    return vector(
        path(
            learner,
            *map(jnp.asarray, (X.astype(dtype), Y.astype(dtype), ESTIMATION.astype(dtype))),
            network(start_weights("trajectory_start"), dtype),
        )
    )


def test_the_saves_are_neals_63():
    checkpoints = learn.Descent(steps=20_000).checkpoint_steps
    assert len(checkpoints) == 63
    assert checkpoints == learn.Descent(steps=20_000, checkpoints=63).checkpoint_steps
    assert (checkpoints[0], checkpoints[-1]) == (1, 20_000)


@pytest.mark.parametrize("method", [1, 2])
def test_trajectory(method, dtype):
    found = trajectory(method, dtype)
    for epoch, weights, norm in zip(EPOCHS, found, EXCERPT[f"bgd{method}_norm"], strict=True):
        # 681 errors of at most the tolerance make one of at most its 26-fold in the norm
        np.testing.assert_allclose(np.linalg.norm(weights), norm, rtol=0, atol=26 * tolerance(dtype, epoch))
    for epoch in (1, 10, 100, 1000):
        np.testing.assert_allclose(
            found[EPOCHS.index(epoch), ::34], EXCERPT[f"bgd{method}_{epoch}"], rtol=0, atol=tolerance(dtype, epoch)
        )
    if WHOLE.exists():
        whole = np.load(WHOLE / f"traj_B_bgd{method}_weights.npz")
        for epoch, weights, want in zip(EPOCHS, found, whole["weights"][1:], strict=True):
            np.testing.assert_allclose(weights, want, rtol=0, atol=tolerance(dtype, epoch))


def test_step_factors():
    with jax.enable_x64(True):
        learner = learn.Descent(relevance="gradient")
        cases = prepare(*map(jnp.asarray, (X, Y, ESTIMATION.astype(float))))
        weights = {0: start_weights("trajectory_start"), **dict(zip(EPOCHS, trajectory(2, np.float64), strict=True))}
        for epoch in (0, 10, 100, 1000):
            (factors,) = step_factors(learner, network(weights[epoch], np.float64), cases)
            # the reference has 12 digits
            np.testing.assert_allclose(factors, EXCERPT[f"bgd2_factors_{epoch}"], rtol=1e-11)


def test_validation_errors_of_a_trajectory():
    """Early stopping that leaves out the last quarter sees Neal's validation errors, to the 1e-12 of the weights (the
    reference has 15 digits).
    """
    with jax.enable_x64(True):
        learner = learn.EarlyStopped(
            learn.Descent(steps=EPOCHS[-1], relevance="gradient", checkpoints=EPOCHS), share=0.25
        )
        order = jnp.asarray(np.r_[96:128, :96])
        start = network(start_weights("trajectory_start")[None], np.float64)
        trained = stop(learner, jnp.asarray(X), jnp.asarray(Y), start, order, jnp.asarray(X))[0]
        want = EXCERPT["bgd2_validation"]
        np.testing.assert_allclose(trained.errors[0], want, rtol=1e-12)
        assert int(trained.iteration[0]) == EPOCHS[np.argmin(want)]


def scaled(start, method):
    """Start weights of the networks of `method`, whose programs train on scaled inputs with correlations: r_i [M, 32]
    from the estimation cases.
    """
    if method != 3:
        return start
    kernel = start["hidden_0"]["kernel"]
    roots = np.sqrt(correlations())[-len(kernel) :, None]  # one member alone is the last of the four
    return {**start, "hidden_0": {**start["hidden_0"], "kernel": kernel * jnp.asarray(roots, kernel.dtype)}}


def correlations():
    """max(1e-4, C_i^4 / max C^4) of each member of the ensemble, in NumPy: [4, 32]."""
    left = [np.delete(np.arange(128), np.s_[32 * q : 32 * (q + 1)]) for q in range(4)]
    sizes = np.square([X[cases].T @ Y[cases, 0] for cases in left])
    return np.maximum(1e-4, np.square(sizes / sizes.max(axis=1, keepdims=True)))


@pytest.mark.parametrize(("method", "bits"), [(1, 64), (2, 64), (3, 64), (2, 32)])
def test_member_of_an_ensemble(method, bits):
    """The epoch chosen, and predictions of five test cases; tolerances as for whole ensembles below."""
    with jax.enable_x64(bits == 64):
        check_member(method, np.dtype(f"float{bits}"))


def check_member(method, dtype):
    learner = learn.EarlyStopped(learn.Descent(steps=1000, relevance=RELEVANCE[method]), share=0.25)
    start = scaled(network(start_weights("member_start")[None], dtype), method)
    arrays = (jnp.asarray(a.astype(dtype)) for a in (X, Y))
    trained, _, predictions = stop(
        learner, *arrays, start, jnp.asarray(np.r_[96:128, :96]), jnp.asarray(EXCERPT["test"][:, :32].astype(dtype))
    )
    epoch, *want = EXCERPT[f"member_bgd{method}"]
    assert int(trained.iteration[0]) == epoch
    np.testing.assert_allclose(predictions, want, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-5)


@needs_whole
def test_the_excerpt_is_one():
    start = np.loadtxt(WHOLE / "init_weights_B.csv").ravel()
    # one rounding of numbers below 0.01
    np.testing.assert_allclose(start_weights("trajectory_start"), start, rtol=0, atol=2e-18)
    np.testing.assert_allclose(
        start_weights("member_start"), np.load(WHOLE / "ensemble_B_bgd1.npz")["init_weights"][3], rtol=0, atol=2e-18
    )
    np.testing.assert_array_equal(EXCERPT["data"], np.loadtxt(WHOLE / "data_B_N128_d32.txt"))


@needs_whole
@pytest.mark.parametrize(("method", "steps", "bits"), [(2, 1000, 64), (3, 1000, 64), (3, 1000, 32)])
def test_ensembles(method, steps, bits):
    """Four members and their mean; 1000 of the 20,000 iterations hold all iterations chosen (bgd-2 was also run to
    20,000; late errors of bgd-3 are not the same number by number, says the reference).

    Double precision to 1e-12, a thousand roundings; in single precision the reference's own programs differed by 3e-6.
    """
    with jax.enable_x64(bits == 64):
        dtype = np.dtype(f"float{bits}")
        want = np.load(WHOLE / f"ensemble_B_bgd{method}.npz")
        learner = learn.EarlyStopped(learn.Descent(steps=steps, relevance=RELEVANCE[method]))
        start = scaled(network(want["init_weights"], dtype), method)
        at = np.loadtxt(WHOLE / "test_B_200_d32.txt")[:, :32]
        trained, members, mean = stop(
            learner,
            *(jnp.asarray(a.astype(dtype)) for a in (X, Y)),
            start,
            jnp.arange(128),
            jnp.asarray(at.astype(dtype)),
        )
        checkpoints = len(learner.base.checkpoint_steps)
        assert learner.base.checkpoint_steps == tuple(want["saved_epochs"][:checkpoints])
        np.testing.assert_array_equal(trained.iteration, want["selected_epoch"])
        exact = {"rtol": 0, "atol": 1e-12 if bits == 64 else 1e-5}
        np.testing.assert_allclose(members, want["member_predictions"], **exact)
        np.testing.assert_allclose(mean, want["ensemble_prediction"], **exact)
        if bits == 64:
            np.testing.assert_allclose(trained.errors, want["val_mse"][:, :checkpoints], rtol=1e-12)
            if method == 3:
                np.testing.assert_allclose(correlations(), want["r_factors"], rtol=1e-12)
