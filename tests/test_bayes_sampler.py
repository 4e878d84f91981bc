"""Hybrid Monte Carlo against numbers from Neal's own program, and what makes it exact."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxgen import learn
from jaxgen.learn.bayes.blocks import in_blocks
from jaxgen.learn.bayes.prior import Scales
from jaxgen.learn.bayes.sampler import Moving, Target, leapfrog, there_and_back, trajectory
from jaxgen.learn.network.iterative import Cases


def read(path):
    """Rows of numbers by name; rows of one name are stacked."""
    rows = {}
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            name, *values = line.split(",")
            rows.setdefault(name, []).append([float(value) for value in values])
    return {name: np.squeeze(np.array(values)) for name, values in rows.items()}


NEAL = read(Path(__file__).with_name("neal_leapfrog.csv"))
PRIOR = learn.Prior(
    input_hidden=learn.Width(0.5, shape=4, relevance=2, by_sources=True),
    hidden_bias=learn.Width(0.5, shape=4),
    hidden_output=learn.Width(1.0, shape=4, by_sources=True),
    noise=learn.Width(0.3, shape=2),
)


def network(v):
    """Parameters from a vector [201] in the order of Neal's program."""
    hidden = {"kernel": v[:160].reshape(8, 20).T, "bias": v[160:180]}
    return jax.tree.map(jnp.asarray, {"hidden_0": hidden, "output": {"kernel": v[None, 180:200], "bias": v[200:]}})


def vector(params):
    """The inverse of `network`."""
    hidden, output = params["hidden_0"], params["output"]
    return np.concatenate([hidden["kernel"].T.ravel(), hidden["bias"], output["kernel"][0], output["bias"]])


def test_a_transition_moves_by_the_step_sizes():
    """So short a trajectory goes straight on with its momentum, which the persistence keeps: as many steps as it has,
    each of the step factor times the size for that weight.
    """
    learner = learn.Bayes(learn.MLP((3,)), PRIOR, steps=6, window=1, blocks=1, persistence=1 - 1e-10, joint=0)
    random = np.random.default_rng(3)
    arrays = random.normal(size=(2, 30)) * [[1], [5]], random.normal(size=(1, 30)), np.ones(30)
    cases, groups = in_blocks(Cases(*(jnp.asarray(a, jnp.float32) for a in arrays)), 1), learner.groups(2, 1)
    state = jax.tree.map(lambda a: a[0], learner.prior.sample(jax.random.key(0), learner.network, 2, 1, 1))
    momentum = jax.tree.map(jnp.ones_like, state.params)
    moved, (travelled,) = learner.transition(jax.random.key(1), state, momentum, jnp.full(1, 1e-3), cases)
    assert travelled.accepted
    sizes = learner.step_sizes(moved.scales, cases, groups)
    by = jax.tree.map(lambda new, old, size: (new - old) / (6e-3 * size), moved.params, state.params, sizes)
    # gradients change the momentum by step factor and size times some hundred
    np.testing.assert_allclose(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(by)]), 1, atol=0.1)


@pytest.mark.parametrize("blocks", [1, 4])
def test_seven_steps_are_those_of_neals_program(blocks):
    with jax.enable_x64(True):
        learner = learn.Bayes(prior=PRIOR, blocks=blocks)
        groups = learner.groups(8, 1)
        names = ("input_hidden", "hidden_bias", "hidden_output")
        common = {name: jnp.asarray(sd**-2.0) for name, sd in zip(names, NEAL["common"], strict=True)}
        noise = jnp.asarray(NEAL["noise"] ** -2.0)[None]
        scales = Scales(common, {"input_hidden": jnp.asarray(NEAL["input"] ** -2.0)}, noise)
        x, y = jnp.asarray(NEAL["data"][:, :8].T), jnp.asarray(NEAL["data"][:, 8:].T)
        cases = in_blocks(Cases(x, y, jnp.ones(64)), blocks)
        start, momentum = network(NEAL["weights_start"]), network(NEAL["momenta_start"])
        sizes = learner.step_sizes(scales, cases, groups)
        each = vector(jax.tree.map(lambda size, w: np.broadcast_to(size, w.shape), sizes, start))
        np.testing.assert_allclose(each, NEAL["steps"], rtol=1e-14)  # rounding

        target = learner.target(scales, cases, groups)
        steps = jax.tree.map(lambda size: size * NEAL["adjust"], sizes)
        moving = Moving(start, momentum)
        end = jax.jit(partial(leapfrog, target, steps, tuple(range(blocks)), rounds=7))(moving)
        # what the reference promises between programs in double precision
        np.testing.assert_allclose(vector(end.position), NEAL[f"weights_end_{blocks}"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(vector(end.momentum), NEAL[f"momenta_end_{blocks}"], rtol=0, atol=1e-12)


def bent(q, part):
    """Energy of a share of the law of (u, v): u normal, v - u^2 / 2 normal with deviation 1/2."""
    return jnp.square(q["u"]) * part[0] / 2 + 2 * jnp.square(q["v"] - jnp.square(q["u"]) / 2) * part[1]


def bent_target(blocks):
    """Whole, or in three blocks whose energies sum to it."""
    parts = jnp.asarray([[0.2, 0.5], [0.3, 0.3], [0.5, 0.2]])

    def gradient(q, block):
        return jax.grad(lambda q: 3 * bent(q, parts[block]) if blocks == 3 else bent(q, jnp.ones(2)))(q)

    return Target(lambda q: bent(q, jnp.ones(2)), gradient, blocks)


@pytest.mark.parametrize("blocks", [1, 3])
def test_rounds_are_reversed_by_reversing_the_momentum(blocks):
    with jax.enable_x64(True):
        target, steps = bent_target(blocks), {"u": jnp.asarray(0.3), "v": jnp.asarray(0.2)}
        q, p = ({"u": jnp.asarray(a), "v": jnp.asarray(b)} for a, b in ((0.4, -1.0), (1.1, 0.3)))

        @jax.jit
        def there(q, p):
            return leapfrog(target, steps, there_and_back(blocks), Moving(q, p), 5)

        end = there(q, p)
        back = there(end.position, jax.tree.map(jnp.negative, end.momentum))
        assert abs(end.position["u"] - q["u"]) > 0.1
        for name in q:
            np.testing.assert_allclose(back.position[name], q[name], rtol=0, atol=1e-13)  # rounding
            np.testing.assert_allclose(back.momentum[name], -p[name], rtol=0, atol=1e-13)


def chains(blocks, window, kept, count, rounds=7, trajectories=40, spoilt=False):
    """Positions [count] after some trajectories from exact draws, with steps so long that many are rejected."""
    target = bent_target(blocks)
    steps = {"u": jnp.asarray(0.45), "v": jnp.asarray(0.35)}

    def chain(key):
        first, second, rest = jax.random.split(key, 3)
        u = jax.random.normal(first)
        state = ({"u": u, "v": jnp.square(u) / 2 + jax.random.normal(second) / 2}, {"u": 0.0 * u, "v": 0.0 * u})

        def follow(state, key):
            position, momentum = state
            normals_key, uniforms_key = jax.random.split(key)
            fresh = dict(zip("uv", jax.random.normal(normals_key, (2,)), strict=True))
            share = np.float32(np.sqrt(1 - kept**2))
            momentum = {name: np.float32(kept) * momentum[name] + share * fresh[name] for name in fresh}
            uniforms = jax.random.uniform(uniforms_key, (2 * window + 1,))
            uniforms = uniforms.at[0].set(0.99) if spoilt else uniforms
            end = trajectory(target, steps, position, momentum, target.energy(position), uniforms, rounds, window)
            return (end.position, end.momentum), end.accepted

        keys = jax.random.split(rest, trajectories)
        first_momentum = dict(zip("uv", jax.random.normal(jax.random.fold_in(rest, 9), (2,)), strict=True))
        (position, _), accepted = jax.lax.scan(follow, (state[0], first_momentum), keys)
        return position["u"], position["v"], accepted

    u, v, accepted = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), count))
    return np.asarray(u, float), np.asarray(v, float), np.mean(accepted)


def p_values(u, v):
    """Of Kolmogorov's test that u and what bends v are normal, and that the energy has its law."""
    rest = 2 * (v - u**2 / 2)
    return (
        stats.kstest(u, "norm").pvalue,
        stats.kstest(rest, "norm").pvalue,
        stats.kstest(u**2 + rest**2, stats.chi2(2).cdf).pvalue,
    )


@pytest.mark.parametrize(
    ("blocks", "window", "kept"),
    [
        pytest.param(1, 1, 0.0, marks=pytest.mark.slow),
        pytest.param(1, 3, 0.9, marks=pytest.mark.slow),
        pytest.param(3, 3, 0.0, marks=pytest.mark.slow),
        (3, 4, 0.9),
    ],
)
def test_a_law_stays_as_it_is(blocks, window, kept):
    """Chains that begin with exact draws end with such; with steps as long as these a wrong acceptance would show."""
    u, v, accepted = chains(blocks, window, kept, 20_000)
    assert 0.3 < accepted < 0.97
    assert min(p_values(u, v)) > 1e-6


@pytest.mark.parametrize("window", [1, 2, 3])
def test_ends_of_a_trajectory_have_the_law_of_windows(window):
    """Without a gradient a trajectory goes through whole numbers, from 0 on at a random place of its first window; how
    often it ends at each follows from their energies by Neal's rule, and each random number is used for one thing.
    """
    rounds, energy = 5, lambda q: jnp.float32(0.3) * jnp.square(q + 1)
    target = Target(energy, lambda q, block: jnp.zeros_like(q), 1)
    one, uniforms = jnp.float32(1), np.random.default_rng(8).uniform(size=(40_000, 2 * window + 1))

    @jax.jit
    @jax.vmap
    def end(uniforms):
        return trajectory(target, one, one - one, one, energy(one - one), uniforms, rounds, window).position

    law = dict.fromkeys(range(-rounds, rounds + 1), 0.0)
    for place in range(window):
        at = np.arange(rounds + 1) - place
        weights = np.exp(-0.3 * (at + 1.0) ** 2)
        first, last = weights[:window].sum(), weights[-window:].sum()
        taken = min(1, last / first)
        for part, share in ((slice(window), (1 - taken) / first), (slice(rounds + 1 - window, None), taken / last)):
            for position, weight in zip(at[part].tolist(), weights[part], strict=True):
                law[position] += share * weight / window
    ends = np.asarray(end(jnp.asarray(uniforms, jnp.float32)))
    counts = np.array([np.sum(ends == position) for position in law])
    expected = len(ends) * np.array(list(law.values()))
    assert stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-6
    assert counts.sum() == counts[expected > 0].sum() == len(ends)


def test_a_window_whose_place_is_not_drawn_is_noticed():
    """The negative control of the test above."""
    u, v, _ = chains(1, 4, 0.0, 20_000, spoilt=True)
    assert min(p_values(u, v)) < 1e-6


def test_blocks_of_equal_cases_are_those_of_neal_and_absent_cases_belong_to_none():
    x = jnp.arange(8.0)[None]
    blocks = in_blocks(Cases(x, x, jnp.ones(8)), 4)
    np.testing.assert_array_equal(blocks.x[:, 0], np.arange(8).reshape(4, 2))
    w = jnp.asarray([0, 1, 2, 0, 0, 1, 1, 3.0])
    blocks = in_blocks(Cases(x, x, w), 2)
    pairs = [zip(x.tolist(), w.tolist(), strict=True) for x, w in zip(blocks.x[:, 0], blocks.w, strict=True)]
    found = [{case: weight for case, weight in each if weight} for each in pairs]
    assert found == [{1: 1, 2: 2}, {5: 1, 6: 1, 7: 3}]
