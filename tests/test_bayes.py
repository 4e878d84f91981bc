"""Bayesian networks: whether the posterior is the right one, and what the engine relies on."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxgen as jg
from jaxgen import learn, resample
from jaxgen.learn.bayes import joint
from jaxgen.learn.bayes import prior as priors
from jaxgen.learn.bayes.blocks import in_blocks
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
        return learner.transition(key, state, still, jnp.asarray([0.8, 0.13]), ready)[0], None

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


GEWEKE = learn.Bayes(learn.MLP((2,), skip=True), TIGHT, passes=1, steps=8, window=2, blocks=2, joint=1)


@pytest.mark.parametrize("objective", ["squared", pytest.param("softmax_cross_entropy", marks=pytest.mark.slow)])
def test_networks_and_targets_keep_their_joint_law(objective):
    p_values = geweke(learn.Bayes(**{**vars(GEWEKE), "objective": objective}), rounds=25, chains=3000)
    assert stats.false_discovery_control(p_values, method="by").min() > 1e-4


def test_a_wrong_shape_of_a_gibbs_update_is_noticed(monkeypatch):
    """The negative control: precisions drawn as if there were one weight, or one case, more."""
    right = priors.standard_gamma
    monkeypatch.setattr(priors, "standard_gamma", lambda shape, *numbers: right(shape + 0.5, *numbers))
    assert geweke(GEWEKE, rounds=25, chains=3000).min() < 1e-12


@pytest.mark.parametrize(
    "wrong",
    [
        lambda ratio: 2 * (jnp.exp(ratio) - ratio),
        pytest.param(lambda ratio: jnp.exp(ratio), marks=pytest.mark.slow),
    ],
    ids=["shape", "logarithms"],
)
def test_a_wrong_law_of_widths_that_move_with_their_weights_is_noticed(monkeypatch, wrong):
    """The negative control of their trajectories: with twice the shapes, or without the factor that makes the density
    of a precision that of its logarithm (and more).
    """
    monkeypatch.setattr(joint, "_surprise", wrong)
    assert geweke(GEWEKE, rounds=25, chains=3000).min() < 1e-12


def test_a_reference_that_trajectories_leave_unsaid_is_noticed(monkeypatch):
    """Step sizes come from precisions near the first state; without their law given the last one, trajectories would be
    no longer reversible.
    """
    right = joint.energy
    monkeypatch.setattr(joint, "energy", lambda position, reference, groups: right(position, position.logs, groups))
    assert geweke(GEWEKE, rounds=25, chains=3000).min() < 1e-8


WIDTHS = learn.Prior(hidden_output=learn.Width(0.3, shape=2, relevance=3), output_bias=learn.Width(0.7))


def test_coordinates_of_weights_and_widths_have_their_density():
    """Of states of the prior: there and back, and the density against SciPy's, up to a constant; precisions of relative
    size r around 1 with shape a have logarithms with the law of log-gamma.
    """
    groups = WIDTHS.groups(learn.MLP((3,), skip=True), 2, 1)
    states = WIDTHS.sample(KEY, learn.MLP((3,), skip=True), 2, draws=50)
    position = jax.vmap(lambda state: joint.position_of(state, groups))(states)
    back = jax.vmap(lambda position, noise: joint.state_of(position, groups, noise))(position, states.scales.noise)
    for one, other in zip(jax.tree.leaves(back), jax.tree.leaves(states), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)  # exponentials of logarithms, in single precision
    reference = jax.tree.map(lambda log: log + 0.5, position.logs)
    found = np.asarray(jax.vmap(lambda at, near: joint.energy(at, near, groups))(position, reference), float)

    def log_gamma(logs, level, shape):
        return stats.loggamma.logpdf(np.asarray(logs, float) - level + np.log(shape / 2), shape / 2)

    density = sum(
        stats.norm.logpdf(np.asarray(leaf, float).reshape(50, -1)).sum(1) for leaf in jax.tree.leaves(position.units)
    )
    for group in groups:
        level, common = -2 * np.log(group.width.at(group.sources)), position.logs.common.get(group.name)
        if common is not None:
            density = density + log_gamma(common, level, group.width.shape)
            level = np.asarray(common, float)[:, None]
        if group.name in position.logs.each:
            density = density + log_gamma(position.logs.each[group.name], level, group.width.relevance).sum(1)
    np.testing.assert_allclose(found + density, np.mean(found + density), atol=1e-3)  # of sums of about 50, in float32


def test_what_the_data_hold_is_learned_from_gradients():
    """Of a misfit that is quadratic in the outputs of a linear unit, mean squares of gradients are second derivatives:
    here they are given, half of those assumed; the latest states count most, an input that is never seen not at all.
    """
    groups = WIDTHS.groups(learn.MLP((3,), skip=True), 2, 1)
    state = jax.tree.map(lambda a: a[0], WIDTHS.sample(KEY, learn.MLP((3,), skip=True), 2, draws=1))
    curvature = {group.name: jnp.full(group.shape, 8.0) for group in groups}
    curvature["direct"] = curvature["direct"].at[:, 1].set(0)
    slope = priors.tree_of(groups, lambda group: jnp.where(curvature[group.name] > 0, 2.0, 0.0))
    seen = joint.seen_more(joint.nothing_seen(groups, jnp.float32), state, slope, curvature, groups)
    assert all(seen.weights[group.name] == pytest.approx(0.5) for group in groups)  # 2 squared, of 8
    weight, precision = state.params["skip"]["kernel"][0], state.scales.each["direct"]
    np.testing.assert_allclose(seen.logs.each["direct"][0], weight[0] ** 2 / (8 / precision[0] / 4), rtol=1e-5)
    assert seen.logs.each["direct"][1] == 0
    nothing = jax.tree.map(jnp.zeros_like, slope)
    for count in (2, 3):
        seen = joint.seen_more(seen, state, nothing, curvature, groups)
        assert seen.weights["direct"] == pytest.approx(0.5 / (count * (count + 1) / 2))


def test_an_input_that_is_always_zero_does_no_harm():
    x, y = some()
    data = jg.datasets.from_arrays(np.c_[x, np.zeros(len(x))], y, constant="keep")
    learner = learn.Bayes(learn.MLP((3,)), passes=2000, steps=20, window=2, joint=1)
    scores = jg.assess(KEY, learner, data, resample.leave_out(KEY, 40, 0.25, 2))
    assert not scores.failed.any()
    assert (scores.info["joint_rejected"] < 0.5).all()


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
    assert uniform_p_values(ranks(CALIBRATED, 1000), CALIBRATED.trajectories[3]).min() < 1e-5


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
    good = jax.tree.map(lambda a: jnp.ones(a.shape, a.dtype), fitted)
    # trajectories of weights and widths, the second column, may be rejected: widths are drawn given the weights as well
    good = good._replace(rejected=jnp.asarray([[0.0, 1.0]]), step=jnp.asarray([[1.0, 1e-5]]))
    assert learner.failure(good) == 0
    rejected, collapsed = jnp.asarray([[0.9, 0.0]]), jnp.asarray([[1e-5, 1.0]])
    for number, bad in enumerate(({"sound": jnp.bool_(False)}, {"rejected": rejected}, {"step": collapsed}), 1):
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
    assert fitted.rejected.shape == fitted.step.shape == (2, 2)  # chains, with and without widths


def test_trajectories_are_counted_as_documented():
    neal = learn.Bayes(joint=0)
    assert neal.trajectories == (2, 41, 1, 79)  # 2 with fixed widths, then 118, of which a third is dropped
    assert learn.Bayes(joint=0, states=20).trajectories == (2, 44, 4, 19)
    assert learn.Bayes().trajectories == (1, 34, 1, 66)  # of 600 passes each
    known = learn.Prior(*[learn.Width(0.3)] * 5)
    assert learn.Bayes(prior=known).trajectories == neal.trajectories  # no widths to move


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
        ({"passes": 100}, "expected the passes of Bayes to be a whole number of at least 1800, got 100; let there be"),
        ({"joint": -0.1}, "expected joint to be a finite number of at least 0, got -0.1; give 0 for none, or 0.2"),
        ({"persistence": 1.0}, "expected persistence to be a number of at least 0 and below 1, got 1.0"),
        ({"chains": 0}, "expected the chains of Bayes to be a whole number of at least 1, got 0"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        jg.assess(KEY, learn.Bayes(**settings), jg.datasets.from_arrays(*some()), resample.leave_out(KEY, 40, 0.25, 2))
