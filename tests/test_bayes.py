"""Bayesian networks: whether the posterior is the right one, and what the engine relies on."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxgen as jg
from jaxgen import learn, resample
from jaxgen.learn.bayes import prior as priors
from jaxgen.learn.bayes import rescaling
from jaxgen.learn.bayes.learner import in_blocks
from jaxgen.learn.network.iterative import prepare

KEY = jax.random.key(11)
TIGHT = learn.Prior(
    input_hidden=learn.Width(0.8, shape=5, relevance=5, by_sources=True),
    hidden_bias=learn.Width(0.6, shape=6),
    hidden_output=learn.Width(0.8, shape=6, by_sources=True),
    output_bias=learn.Width(0.5),
    direct=learn.Width(0.6, shape=6, relevance=6, by_sources=True),
    noise=learn.Width(0.5, shape=6),
)
SMALL = learn.Bayes(learn.MLP((3,)), passes=48, steps=6, window=2, blocks=1, step=0.3)
"""So short that rounding stays small, for what does not depend on the law that is sampled."""


def some(n=40, d=2, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d))
    return x, np.tanh(2 * x[:, :1]) + 0.3 * random.normal(size=(n, 1))


# the law that is sampled

POINTS = np.array([[-1.5], [0.2], [1.0]])


def exact_posterior(prior, x, y, w):
    """Means of the predictions at POINTS, of their squares and of the noise's precision, of a network with one input
    and one hidden unit, by sums over a grid of its four weights.

    Precisions integrate out of the density of n weights, sum of squares q, under one precision: (a W^2 + q)^(-(a +
    n)/2).
    """
    grids = np.meshgrid(*(np.linspace(-limit, limit, 41) for limit in (5, 4, 5, 3)), indexing="ij")
    v, b, u, c = (g.ravel() for g in grids)
    errors = sum(weight * (np.tanh(v * at + b) * u + c - t) ** 2 for at, t, weight in zip(x, y, w, strict=True))
    log_density = np.zeros_like(v)
    for width, squares, n in (
        (prior.input_hidden, v**2, 1),
        (prior.hidden_bias, b**2, 1),
        (prior.hidden_output, u**2, 1),
        (prior.output_bias, c**2, 1),
        (prior.noise, errors, w.sum()),
    ):
        log_density -= (width.shape + n) / 2 * np.log(width.shape * width.width**2 + squares)
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    outputs = [np.tanh(v * at + b) * u + c for at in POINTS[:, 0]]
    noise = prior.noise
    precision = (noise.shape + w.sum()) / (noise.shape * noise.width**2 + errors)
    return [np.sum(share * o) for o in outputs] + [np.sum(share * o**2) for o in outputs] + [np.sum(share * precision)]


@pytest.mark.parametrize("blocks", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_posterior_is_that_of_quadrature(blocks):
    """Weights and precisions of one hidden unit, of weighted cases, among them one that is absent."""
    unknown = partial(learn.Width, shape=8)
    prior = learn.Prior(unknown(0.8), unknown(0.5), unknown(0.8), unknown(0.4), noise=unknown(0.3))
    x, y = np.array([-1.2, -0.4, 0.1, 0.7, 9.0, 1.3]), np.array([-0.8, -0.6, 0.1, 0.4, 7.0, 0.9])
    w = np.array([1, 2, 1, 1, 0, 1.0])
    learner = learn.Bayes(
        learn.MLP((1,)), prior, passes=20_000, steps=20, window=3, blocks=blocks, step=1.0, states=200
    )

    @jax.jit
    @jax.vmap
    def chain(key):
        fitted = learner.fit(key, *(jnp.asarray(a, jnp.float32) for a in (x[:, None], y[:, None], w)))
        states = jax.tree.map(lambda a: a[0], fitted.states)
        at = jnp.asarray(POINTS.T, jnp.float32)
        outputs = jax.vmap(lambda params: learner.network.forward(params, at).outputs[0])(states.params)
        precision = jnp.mean(states.scales.noise)
        return jnp.concatenate([jnp.mean(outputs, axis=0), jnp.mean(outputs**2, axis=0), precision[None]])

    found = np.asarray(chain(jax.random.split(KEY, 100)), float)
    error = found.std(0, ddof=1) / np.sqrt(len(found))
    exact = exact_posterior(prior, x, y, w)
    assert (error < 0.02 * np.abs(exact).max()).all()  # so that the comparison says something
    np.testing.assert_array_less(np.abs(found.mean(0) - exact), 5 * error)


def geweke(learner, rounds, chains, seed=0):
    """P-values of Kolmogorov's test that precisions and weights keep the law of the prior while targets are drawn given
    them, and they given the targets (Geweke 2004, "Getting it right").
    """
    outputs, cases = (2, 7) if not learner.classifies else (3, 7)
    x = jax.random.normal(jax.random.key(seed), (cases, 2))
    w = jnp.asarray([1, 1, 0, 2, 1, 1, 1.0])

    def step(state, key):
        y_key, key = jax.random.split(key)
        mean = learner.network.forward(state.params, x.T).outputs.T
        if learner.classifies:
            y = jax.nn.one_hot(jax.random.categorical(y_key, mean, axis=-1), outputs)
        else:
            # the mean of two equal cases has half the variance, but here a case of weight 2 is one that came twice
            y = mean + jax.random.normal(y_key, mean.shape) / jnp.sqrt(state.scales.noise)[None]
        ready = in_blocks(prepare(x, y, jnp.where(w > 0, 1.0, 0.0)), learner.blocks)
        still = jax.tree.map(jnp.zeros_like, state.params)
        return learner.transition(key, state, still, jnp.asarray(0.8), ready)[0], None

    @jax.jit
    def run(states, keys):
        return jax.vmap(lambda state, key: jax.lax.scan(step, state, jax.random.split(key, rounds))[0])(states, keys)

    def drawn(key):
        return learner.prior.sample(key, learner.network, 2, chains, outputs, noise=not learner.classifies)

    end = run(drawn(jax.random.key(seed + 1)), jax.random.split(jax.random.key(seed + 2), chains))
    fresh = drawn(jax.random.key(seed + 3))

    def numbers(state):
        # of weights the size and, by a product, how they depend on each other; their signs are symmetric
        h, o = state.params["hidden_0"], state.params["output"]
        parts = [*jax.tree.leaves(state.scales), *(leaf**2 for leaf in jax.tree.leaves(state.params))]
        parts.append(h["kernel"][:, 0] * h["bias"][:, :1] * o["kernel"][:, 0, :1])
        return np.concatenate([np.asarray(part, float).reshape(chains, -1) for part in parts], axis=1)

    return np.array([stats.ks_2samp(*pair).pvalue for pair in zip(numbers(end).T, numbers(fresh).T, strict=True)])


GEWEKE = learn.Bayes(learn.MLP((2,), skip=True), TIGHT, passes=1, steps=8, window=2, blocks=2)


@pytest.mark.parametrize("objective", ["squared", pytest.param("softmax_cross_entropy", marks=pytest.mark.slow)])
def test_networks_and_targets_keep_their_joint_law(objective):
    p_values = geweke(learn.Bayes(**{**vars(GEWEKE), "objective": objective}), rounds=25, chains=3000)
    assert stats.false_discovery_control(p_values, method="by").min() > 1e-4


def test_a_wrong_shape_of_a_gibbs_update_is_noticed(monkeypatch):
    """The negative control: precisions drawn as if there were one weight, or one case, more."""
    right = priors.standard_gamma
    monkeypatch.setattr(priors, "standard_gamma", lambda shape, *numbers: right(shape + 0.5, *numbers))
    assert geweke(GEWEKE, rounds=25, chains=3000).min() < 1e-12


@pytest.mark.parametrize("off", [0.5, pytest.param(1.0, marks=pytest.mark.slow)], ids=["shape", "logarithms"])
def test_a_wrong_law_of_rescaled_widths_is_noticed(monkeypatch, off):
    """The negative control of the moves of widths with their weights: with shapes less by one, or the law of precisions
    in place of that of their logarithms.
    """
    right = rescaling._log_density

    def wrong(groups, scales):
        logs = [jnp.sum(jnp.log(value)) for value in jax.tree.leaves(scales._replace(noise=()))]
        return right(groups, scales) - off * sum(logs)

    monkeypatch.setattr(rescaling, "_log_density", wrong)
    assert geweke(GEWEKE, rounds=25, chains=3000).min() < 1e-12


def test_rescaling_keeps_weights_in_units_of_their_width():
    """Every input and group is among the moves, and all weights of a width move with it."""
    prior = learn.Prior(hidden_output=learn.Width(0.3, shape=2, relevance=3), output_bias=learn.Width(0.7))
    groups = prior.groups(learn.MLP((3,), skip=True), 2, 1)
    moves = rescaling.moves_of(groups)
    # inputs to hidden units and to outputs, hidden units; four groups of unknown width; groups against each other
    assert moves.count == (2 + 2 + 3) + 4 + 1
    states = prior.sample(KEY, learn.MLP((3,), skip=True), 2, draws=50)
    normals, uniforms = jax.random.normal(KEY, (50, 100)), jax.random.uniform(KEY, (50, 100, 3))

    def tried(state, normals, uniforms):
        misfit = jnp.ones(1)
        return rescaling.rescaled(
            state, misfit, groups, moves, lambda params: misfit, state.scales.noise, normals, uniforms
        )[0]

    after = jax.jit(jax.vmap(tried))(states, normals, uniforms)

    def units(states, group):
        each = jax.vmap(
            lambda state: state.params[group.layer][group.part] * jnp.sqrt(priors.precision(group, state.scales))
        )
        return each(states)

    for group in groups:
        # products of up to 100 factors in single precision
        np.testing.assert_allclose(units(after, group), units(states, group), rtol=1e-4)
        moved = np.asarray(after.params[group.layer][group.part] != states.params[group.layer][group.part])
        assert not moved.any() if group.name == "output_bias" else moved.mean() > 0.9


def ranks(learner, sets, cases=8, seed=0):
    """Ranks of the truth among kept states, [sets, what], for data drawn from the prior: of precisions, and of the
    outputs at two points (Talts et al. 2018, "Validating Bayesian inference algorithms with simulation-based
    calibration").
    """
    keys = jax.random.split(jax.random.key(seed), 4)
    truth = learner.prior.sample(keys[0], learner.network, 1, sets)
    x = jax.random.normal(keys[1], (sets, cases, 1))
    noise = jax.random.normal(keys[2], (sets, cases, 1))
    at = jnp.asarray([[-0.5, 1.5]])

    def of(state):
        outputs = learner.network.forward(state.params, at).outputs[0]
        return jnp.concatenate([*(jnp.atleast_1d(leaf) for leaf in jax.tree.leaves(state.scales)), outputs])

    @jax.jit
    @jax.vmap
    def rank(key, state, x, noise):
        y = learner.network.forward(state.params, x.T).outputs.T + noise / jnp.sqrt(state.scales.noise)[None]
        kept = learner.fit(key, x, y, jnp.ones(cases)).states
        return jnp.sum(jax.vmap(of)(jax.tree.map(lambda a: a[0], kept)) < of(state)[None], axis=0)

    return np.asarray(rank(jax.random.split(keys[3], sets), truth, x, noise))


CALIBRATED = learn.Bayes(
    learn.MLP((2,)), TIGHT, passes=40_000, steps=20, window=3, blocks=1, step=0.8, states=19, discarded=0.5
)


def uniform_p_values(ranks, states):
    """Of chi-squared tests that ranks from 0 to `states` are uniform, in 5 classes."""
    counts = np.stack([np.bincount(r * 5 // (states + 1), minlength=5) for r in ranks.T])
    share = np.bincount(np.arange(states + 1) * 5 // (states + 1)) / (states + 1)
    return stats.chisquare(counts, share[None] * len(ranks), axis=1).pvalue


@pytest.mark.slow
def test_truth_is_anywhere_among_the_states():
    """Simulation-based calibration of the whole learner, from its start at zero."""
    found = ranks(CALIBRATED, 1000)
    assert found.shape[1] == 7
    assert uniform_p_values(found, CALIBRATED.trajectories[3]).min() > 1e-4


@pytest.mark.slow
def test_calibration_notices_a_wrong_shape(monkeypatch):
    right = priors.standard_gamma
    monkeypatch.setattr(priors, "standard_gamma", lambda shape, *numbers: right(shape + 0.5, *numbers))
    assert uniform_p_values(ranks(CALIBRATED, 1000), CALIBRATED.trajectories[3]).min() < 1e-6


# what the engine relies on


def test_it_keeps_its_promises():
    assert "twice" in learn.check(SMALL)


@pytest.mark.slow
def test_blocks_keep_the_promises_but_those_of_the_order():
    learner = learn.Normalised(learn.Bayes(learn.MLP((3,)), passes=48, steps=6, window=2, step=0.3))
    assert "absence" in learn.check(learner, skip=("order", "twice"))


def test_classes_are_predicted_by_probabilities():
    x, y = some(60)
    classes = np.concatenate([y <= 0, y > 0], axis=1).astype(float)
    data = jg.Data(x, classes, ("a", "b"), "c", "classification", ("low", "high"))
    learner = learn.Normalised(learn.Bayes(**{**vars(SMALL), "passes": 900, "objective": "softmax_cross_entropy"}))
    plan = resample.leave_out(KEY, 60, 0.25, 3)
    losses = jg.assess(KEY, learner, data, plan, loss=jg.loss.cross_entropy)
    assert not losses.failed.any()
    assert (losses.g < 0.6).all()  # chance is 0.69


def test_two_classes_in_one_column():
    x, y = some(60)
    single = jg.Data(x, (y > 0).astype(float), ("a", "b"), "c", "classification", ("high",))
    binary = learn.Bayes(**{**vars(SMALL), "passes": 900, "objective": "binary_cross_entropy"})
    plan = resample.leave_out(KEY, 60, 0.25, 3)
    assert (jg.assess(KEY, binary, single, plan, loss=jg.loss.cross_entropy).g < 0.6).all()


def test_relevances_tell_inputs_apart():
    x, y = some(80, d=4)
    learner = learn.Normalised(learn.Bayes(learn.MLP((4,)), passes=6000, steps=50, window=5, blocks=2))
    plan = resample.leave_out(KEY, 80, 0.25, 3)
    info = jg.assess(KEY, learner, jg.datasets.from_arrays(x, y), plan).info
    assert (info["relevance_input_hidden"][:, :1] > 3 * info["relevance_input_hidden"][:, 1:]).all()
    assert info["relevance_sd_input_hidden"].shape == (3, 4)
    assert (info["rejected"] < 0.5).all()
    assert (info["rhat"] < 1.5).all()
    assert ((info["effective"] > 2) & (info["effective"] < 80)).all()
    assert (np.abs(info["noise"] - 0.3 / np.mean(np.abs(y - np.median(y)))) < 0.15).all()


def test_chains_that_go_wrong_are_marked():
    learner = SMALL
    x, y = some()
    fitted = jax.eval_shape(learner.fit, KEY, *(jnp.zeros(shape) for shape in ((40, 2), (40, 1), (40,))))
    good = jax.tree.map(lambda a: jnp.ones(a.shape, a.dtype), fitted)._replace(rejected=jnp.zeros(1))
    assert learner.failure(good) == 0
    for number, bad in enumerate(
        ({"sound": jnp.bool_(False)}, {"rejected": jnp.asarray([0.9])}, {"step": jnp.asarray([1e-5])}), 1
    ):
        assert learner.failure(good._replace(**bad)) == number
    assert len(learner.failures) == 3
    exact = learn.Prior(noise=learn.Width(1e-7))  # targets that no such network can give
    stuck = learn.Bayes(**{**vars(SMALL), "prior": exact, "passes": 900, "step": 3.0})
    losses = jg.assess(KEY, stuck, jg.datasets.from_arrays(x, y), resample.leave_out(KEY, 40, 0.25, 2))
    assert losses.failed.all()
    assert "wider noise" in losses.reasons[losses.failure[0] - 1]


@pytest.mark.slow
def test_chains_of_one_row_differ_and_are_averaged():
    learner = learn.Bayes(**{**vars(SMALL), "passes": 120, "chains": 2})
    x, y = (jnp.asarray(a, jnp.float32) for a in some())
    fitted = jax.jit(learner.fit)(KEY, x, y, jnp.ones(40))
    bias = fitted.states.params["output"]["bias"]
    assert bias.shape == (2, learner.trajectories[3], 1)
    assert not (bias[0] == bias[1]).any()
    nets = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), fitted.states.params)
    every = jax.vmap(lambda net: learner.network.forward(net, x.T).outputs.T)(nets)
    np.testing.assert_allclose(learner.predict(fitted, x), jnp.mean(every, axis=0), atol=1e-5)  # rounding
    assert fitted.rejected.shape == fitted.step.shape == (2,)


def test_trajectories_are_counted_as_documented():
    neal = learn.Bayes()
    assert neal.trajectories == (2, 41, 1, 79)  # 2 with fixed widths, then 118, of which a third is dropped
    assert learn.Bayes(states=20).trajectories == (2, 44, 4, 19)


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": learn.MLP((3, 3))}, "expected an MLP with one hidden layer"),
        ({"prior": 0.1}, "expected the prior of Bayes as a Prior, got 0.1; write learn.Prior()"),
        ({"objective": "absolute"}, "expected the objective of Bayes to be one of 'squared', "),
        ({"objective": "binary_cross_entropy"}, "expected targets 0 and 1 for binary_cross_entropy"),
        ({"window": 200, "blocks": 4}, "expected steps of Bayes in multiples of 2, with two windows in a trajectory"),
        ({"steps": 501}, "expected steps of Bayes in multiples of 2, .*; give at least steps=98"),
        ({"passes": 100}, "expected the passes of Bayes to be a whole number of at least 1500, got 100; let there be"),
        ({"rescaling": -0.1}, "expected rescaling to be a finite number of at least 0, got -0.1; give 0 for none"),
        ({"persistence": 1.0}, "expected persistence to be a number of at least 0 and below 1, got 1.0"),
        ({"chains": 0}, "expected the chains of Bayes to be a whole number of at least 1, got 0"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        jg.assess(KEY, learn.Bayes(**settings), jg.datasets.from_arrays(*some()), resample.leave_out(KEY, 40, 0.25, 2))
