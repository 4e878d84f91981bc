"""Bayesian networks: whether the sampler is right, and how fast it is.

    python benchmarks/bayes.py --calibration   simulation-based calibration of the whole learner, with a figure
    python benchmarks/bayes.py --peers         the same posterior by NUTS, and effective samples of predictions a second
    beside NumPyro's NUTS and BlackJAX's HMC; needs numpyro, blackjax and arviz
    python benchmarks/bayes.py --sweep         the time of mlp-mc-3 on all thirty tasks of Neal 1998, simulated
    python benchmarks/bayes.py --memory        the peak of memory by how many states are kept

prints the numbers and writes them to benchmarks/results/: bayes_calibration.txt and .png, bayes_peers.txt (which also
has nanoseconds a case and pass, beside gradient descent), bayes_sweep.txt and bayes_memory.txt.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from speed import machine

import jaxgen as jg
from jaxgen import delve, learn, resample

RESULTS = Path(__file__).parent / "results"
SEED = 1996
PRIOR = learn.Prior(
    input_hidden=learn.Width(0.8, shape=5, relevance=5, by_sources=True),
    hidden_bias=learn.Width(0.6, shape=6),
    hidden_output=learn.Width(0.8, shape=6, by_sources=True),
    output_bias=learn.Width(0.5),
    noise=learn.Width(0.5, shape=6),
)
TINY = learn.Bayes(learn.MLP((3,)), PRIOR, passes=40_000, steps=20, window=3, blocks=2, step=0.8, joint=1, states=39)
POINTS = np.array([[0.0, 0.0], [1.5, -0.5], [-1.0, 1.0], [2.0, 2.0]])
SETS, CASES, CLASSES = 2000, 10, 13
CHAINS = 25  # of jaxgen at a time on a core


def revision():
    """The commit that the results are of."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    return found.stdout.strip() or "unknown"


def written(name, lines):
    """Prints lines and writes them to a file of results."""
    text = "\n".join([f"{machine()}; revision {revision()}", "", *lines]) + "\n"
    print(text, flush=True)
    (RESULTS / name).write_text(text)


def outputs(network, params, at):
    """Outputs of one network at points [m, D]; [m]."""
    return network.forward(params, jnp.asarray(at, jnp.float32).T).outputs[0]


def quantities(network, state):
    """What is ranked: logarithms of precisions and outputs, by name."""
    scales = state.scales
    found = {"noise": scales.noise[0]}
    found |= {f"width of {name}".replace("_", "-"): value for name, value in scales.common.items()}
    found |= {f"relevance of input {i + 1}": scales.each["input_hidden"][i] for i in range(2)}
    at = outputs(network, state.params, POINTS)
    return found | {f"output at point {i + 1}": at[i] for i in range(len(POINTS))}


# calibration


def ranks(learner, seed):
    """Ranks of the truth among the kept states, [SETS] of each quantity, of data drawn from PRIOR, and the sentence
    numbers of failures.
    """
    keys = jax.random.split(jax.random.key(seed), 4)
    truth = PRIOR.sample(keys[0], learner.network, 2, SETS)
    x = jax.random.normal(keys[1], (SETS, CASES, 2))
    noise = jax.random.normal(keys[2], (SETS, CASES))

    @jax.jit
    @jax.vmap
    def rank(key, state, x, noise):
        y = learner.network.forward(state.params, x.T).outputs[0] + noise / jnp.sqrt(state.scales.noise[0])
        fitted = learner.fit(key, x, y[:, None], jnp.ones(CASES))
        kept = jax.vmap(lambda s: quantities(learner.network, s))(jax.tree.map(lambda a: a[0], fitted.states))
        true = quantities(learner.network, state)
        return {name: jnp.sum(kept[name] < true[name]) for name in true}, learner.failure(fitted)

    found, failed = rank(jax.random.split(keys[3], SETS), truth, x, noise)
    return {name: np.asarray(values) for name, values in found.items()}, np.asarray(failed)


def calibration():
    """Ranks are uniform for the right learner, and not for one that believes in another prior of the noise."""
    wrong = replace(TINY, prior=replace(PRIOR, noise=learn.Width(0.5, shape=12)))
    states = TINY.trajectories[3]
    lines = [
        f"Simulation-based calibration (Talts et al. 2018): {SETS} data sets of {CASES} cases and 2 inputs, networks",
        f"of 3 hidden units and all precisions drawn from the prior; {TINY.passes} passes, {states} kept; seed {SEED}.",
        f"p-values of chi-squared tests that ranks are uniform, in {CLASSES} classes; right: the learner, from zero;",
        "wrong: the same with noise of shape 12 where data have 6 (a wrong shape of one Gibbs update).",
        "",
        f"{'':24s}{'right':>10s}{'wrong':>10s}",
    ]
    found = {}
    for name, learner in (("right", TINY), ("wrong", wrong)):
        began = time.perf_counter()
        found[name], failed = ranks(learner, SEED)
        lines.append(
            f"{'seconds, ' + name:24s}{time.perf_counter() - began:10.1f}   failed chains {np.mean(failed > 0):.4f}"
        )
    share = np.bincount(np.arange(states + 1) * CLASSES // (states + 1)) / (states + 1)
    counts = {
        name: {what: np.bincount(r * CLASSES // (states + 1), minlength=CLASSES) for what, r in each.items()}
        for name, each in found.items()
    }
    p = {
        name: {what: stats.chisquare(count, share * SETS).pvalue for what, count in each.items()}
        for name, each in counts.items()
    }
    lines += [f"{what:24s}{p['right'][what]:10.3f}{p['wrong'][what]:10.1e}" for what in p["right"]]
    least = {name: min(each.values()) * len(each) for name, each in p.items()}
    lines += ["", f"{'least, times their number':24s} {min(least['right'], 1):9.3f}{min(least['wrong'], 1):10.1e}"]
    histograms(counts, share, p)
    written("bayes_calibration.txt", lines)


def histograms(counts, share, p):
    """Counts of ranks over what is expected, with the band that 99 % of uniform ones stay in, class by class."""
    names = list(counts["right"])
    figure, axes = plt.subplots(2, len(names), figsize=(2.0 * len(names), 4.6), sharex=True, sharey=True)
    low, high = (stats.binom(SETS, share).ppf(limit) / (SETS * share) for limit in (0.005, 0.995))
    for row, (kind, each) in enumerate(counts.items()):
        for axis, name in zip(axes[row], names, strict=True):
            axis.axhspan(low.mean(), high.mean(), color="0.88")
            axis.stairs(each[name] / (SETS * share), color="C0" if kind == "right" else "C3", lw=1.2)
            axis.text(0.5, 0.04, f"p = {p[kind][name]:.2g}", transform=axis.transAxes, ha="center", fontsize=8)
            if row == 0:
                axis.set_title(name, fontsize=8)
    axes[0, 0].set(ylim=(0, None), xticks=[], ylabel="right: data sets / expected")
    axes[1, 0].set_ylabel("wrong prior of the noise")
    for axis in axes[1]:
        axis.set_xlabel("rank of the truth", fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "bayes_calibration.png", dpi=110)


# peers


def data_of(n, d, seed):
    """A regression problem: x [n, d] and y [n]."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d))
    return x.astype(np.float32), (np.tanh(2 * x[:, 0]) + 0.3 * random.normal(size=n)).astype(np.float32)


def log_joint(learner, d):
    """Minus the potential energy of a peer: of log precisions and of weights in units of their widths."""
    prior, network = learner.prior, learner.network
    groups = prior.groups(network, d, 1)

    def log_gamma(log_p, shape, log_mean):
        return shape / 2 * (log_p - log_mean) - shape / 2 * jnp.exp(log_p - log_mean)

    def read(z):
        total, params, logs = 0.0, {}, {}
        for group in groups:
            top = jnp.asarray(-2 * np.log(group.width.at(group.sources)), jnp.float32)
            if group.width.shape is not None:
                logs[group.name] = z[f"{group.name} common"]
                total, top = total + log_gamma(logs[group.name], group.width.shape, top), logs[group.name]
            if group.width.relevance is not None:
                each = z[f"{group.name} each"]
                logs[f"{group.name} each"] = each
                total, top = total + jnp.sum(log_gamma(each, group.width.relevance, top)), each
            unit = z[group.name]
            total = total - jnp.sum(jnp.square(unit)) / 2
            params.setdefault(group.layer, {})[group.part] = unit * jnp.exp(-top / 2)
        noise = z["noise"]
        total = total + log_gamma(noise, prior.noise.shape, -2 * np.log(prior.noise.width))
        return total, params, {**logs, "noise": noise}

    def density(z, x, y):
        total, params, logs = read(z)
        errors = outputs(network, params, x) - y
        return total + len(y) / 2 * logs["noise"] - jnp.exp(logs["noise"]) * jnp.sum(jnp.square(errors)) / 2

    start = {group.name: jnp.zeros(group.shape) for group in groups} | {"noise": jnp.asarray(2.0)}
    start |= {f"{g.name} common": jnp.zeros(()) for g in groups if g.width.shape is not None}
    start |= {f"{g.name} each": jnp.zeros(g.sources) for g in groups if g.width.relevance is not None}
    return density, read, start


def spread(start, chains, seed):
    """Start values of chains, drawn around one."""
    leaves, tree = jax.tree.flatten(start)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    moved = [a[None] + 0.1 * jax.random.normal(k, (chains, *a.shape)) for k, a in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(tree, moved)


def nuts(learner, x, y, at, chains, warmup, samples, depth=10):
    """Outputs [chains, samples, m], logarithm of the noise's precision, and seconds of a second run, by NumPyro."""
    from numpyro.infer import MCMC, NUTS

    density, read, start = log_joint(learner, x.shape[1])
    kernel = NUTS(potential_fn=lambda z: -density(z, x, y), max_tree_depth=depth, target_accept_prob=0.9)
    run = MCMC(
        kernel, num_warmup=warmup, num_samples=samples, num_chains=chains, chain_method="vectorized", progress_bar=False
    )
    init = spread(start, chains, 3)
    run.run(jax.random.key(1), init_params=init)
    began = time.perf_counter()
    run.run(jax.random.key(2), init_params=init)
    found = run.get_samples(group_by_chain=True)
    jax.block_until_ready(found)
    seconds = time.perf_counter() - began
    made = jax.jit(jax.vmap(jax.vmap(lambda z: outputs(learner.network, read(z)[1], at))))(found)
    return np.asarray(made), np.asarray(found["noise"]), seconds


def hmc(learner, x, y, at, chains, warmup, samples, steps=64):
    """The same by BlackJAX: one chain adapts step size and masses, then all take as many leapfrog steps."""
    import blackjax

    density, read, start = log_joint(learner, x.shape[1])
    target = lambda z: density(z, x, y)  # noqa: E731

    @jax.jit
    def run(key):
        first, second, third = jax.random.split(key, 3)
        warm = blackjax.window_adaptation(blackjax.hmc, target, num_integration_steps=steps, target_acceptance_rate=0.8)
        (_, settings), _ = warm.run(first, start, num_steps=warmup)
        kernel = blackjax.hmc(target, **settings)
        states = jax.vmap(kernel.init)(spread(start, chains, 5))
        del second

        def step(states, key):
            states, info = jax.vmap(kernel.step)(jax.random.split(key, chains), states)
            return states, (
                jax.vmap(lambda z: outputs(learner.network, read(z)[1], at))(states.position),
                states.position["noise"],
                info.acceptance_rate,
            )

        _, (made, noise, accepted) = jax.lax.scan(step, states, jax.random.split(third, warmup + samples))
        return made[warmup:], noise[warmup:], accepted.mean()

    jax.block_until_ready(run(jax.random.key(1)))
    began = time.perf_counter()
    made, noise, _ = jax.block_until_ready(run(jax.random.key(2)))
    return np.moveaxis(np.asarray(made), 0, 1), np.asarray(noise).T, time.perf_counter() - began


def ours(learner, x, y, at, chains):
    """The same by jaxgen: a few chains at a time on every core, as `assess` runs its rows. Of all chains in one program
    the activations would leave the cache of a core, and every small product would be divided among the cores.
    """

    @jax.jit
    @jax.vmap
    def run(key):
        fitted = learner.fit(key, x, y[:, None], jnp.ones(len(x)))
        states = jax.tree.map(lambda a: a[0], fitted.states)
        made = jax.vmap(lambda params: outputs(learner.network, params, at))(states.params)
        return made, jnp.log(states.scales.noise[:, 0])

    def finished(keys):
        return jax.block_until_ready(run(keys))

    finished(jax.random.split(jax.random.key(1), CHAINS))
    began = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as cores:
        keys = jax.random.split(jax.random.key(2), chains).reshape(-1, CHAINS)
        made, noise = (np.concatenate(parts) for parts in zip(*cores.map(finished, keys), strict=True))
    return made, noise, time.perf_counter() - began


def summary(made, noise):
    """Means of outputs, of their squares and of log noise precision, with the standard errors of chains' means."""
    each = np.concatenate([made, made**2, noise[..., None]], axis=-1).mean(axis=1)
    return each.mean(0), each.std(0, ddof=1) / np.sqrt(len(each))


def effective(made):
    """Effective samples of outputs [chains, samples, m] and split R-hat, rank-normalised: medians over the points."""
    import arviz

    found = arviz.convert_to_dataset({"o": made.astype(float)})
    return float(np.median(arviz.ess(found)["o"])), float(np.median(arviz.rhat(found)["o"]))


def agreement():
    """The tiny posterior, by our chains and by NUTS."""
    x, y = data_of(10, 2, 4)
    learner = replace(TINY, states=400)
    means, errors = summary(*ours(learner, x, y, POINTS, 200)[:2])
    made, noise, _ = nuts(learner, x, y, POINTS, 40, 1000, 2000)
    peer_means, peer_errors = summary(made, noise)
    z = (means - peer_means) / np.hypot(errors, peer_errors)
    names = (
        [f"output {i + 1}" for i in range(4)] + [f"output {i + 1} squared" for i in range(4)] + ["log noise precision"]
    )
    lines = [
        "One posterior, 10 cases, 2 inputs with relevances, 3 hidden units, all precisions unknown: 200 chains of",
        "jaxgen, 40 of NumPyro's NUTS of 2000 samples each, on log precisions and weights in units of their widths;",
        "standard errors of the chains' means.",
        "",
        f"{'':22s}{'jaxgen':>18s}{'NUTS':>18s}{'z':>8s}",
    ]
    for row in zip(names, means, errors, peer_means, peer_errors, z, strict=True):
        lines.append("{:22s}{:10.4f} ({:.4f}){:10.4f} ({:.4f}){:8.2f}".format(*row))
    return [*lines, f"largest: {np.abs(z).max():.2f}", ""]


def rates(chains, n, d):
    """Effective samples of predictions a second of all three."""
    x, y = data_of(n, d, 7)
    at = data_of(10, d, 8)[0]
    learner = learn.Bayes(learn.MLP((20,)), passes=20_000)
    short = replace(learner, steps=6, joint=2, window=1, blocks=2, discarded=0.2, states=1000)
    medium = replace(short, steps=20, joint=0.4, window=2)
    lines = [
        f"Effective samples of predictions a second: {chains} chains at once, {n} cases, {d} inputs, 20 hidden units,",
        "prior of mlp-mc-3; seconds with the discarded part, without compilation; medians over 10 new points (ArviZ).",
        "Discarded: of jaxgen 33 to 35 % of all passes (of short trajectories 24 %), of the others the first number",
        "of samples. Joint: further steps, in which widths move along, after those of the weights alone.",
        "",
        f"{'':38s}{'seconds':>9s}{'samples':>9s}{'effective':>11s}{'a second':>10s}{'R-hat':>8s}{'noise':>8s}",
    ]
    ways = (
        ("jaxgen, 500 steps, joint 100", lambda: ours(learner, x, y, at, chains)),
        ("jaxgen, 500 steps, joint 0", lambda: ours(replace(learner, joint=0), x, y, at, chains)),
        ("jaxgen, 20 steps, joint 8", lambda: ours(medium, x, y, at, chains)),
        ("jaxgen, 20 steps, joint 0", lambda: ours(replace(medium, joint=0), x, y, at, chains)),
        ("jaxgen, 6 steps, joint 12", lambda: ours(short, x, y, at, chains)),
        ("BlackJAX HMC, 64 steps, 100 + 100", lambda: hmc(learner, x, y, at, chains, 100, 100)),
        ("BlackJAX HMC, 96 steps, 100 + 200", lambda: hmc(learner, x, y, at, chains, 100, 200, 96)),
        ("BlackJAX HMC, 128 steps, 100 + 200", lambda: hmc(learner, x, y, at, chains, 100, 200, 128)),
        ("BlackJAX HMC, 256 steps, 100 + 100", lambda: hmc(learner, x, y, at, chains, 100, 100, 256)),
        ("NumPyro NUTS, depth 7, 60 + 40", lambda: nuts(learner, x, y, at, chains, 60, 40, 7)),
        ("NumPyro NUTS, depth 7, 60 + 140", lambda: nuts(learner, x, y, at, chains, 60, 140, 7)),
    )
    for name, run in ways:
        made, noise, seconds = run()
        count, rhat = effective(made)
        sd = np.exp(-noise / 2).mean()
        lines.append(
            f"{name:38s}{seconds:9.1f}{made[..., 0].size:9d}{count:11.0f}{count / seconds:10.1f}{rhat:8.3f}{sd:8.3f}"
        )
        print(lines[-1], flush=True)
    return [*lines, ""]


def passes():
    """Nanoseconds a case and pass beside gradient descent, all rows on all cores, in turn."""
    lines = [
        "Nanoseconds a case and pass on all cores, second call:",
        "",
        f"{'':22s}{'Descent':>10s}{'Bayes':>10s}{'1 block':>10s}",
    ]
    for d, n, rows in ((8, 64, 64), (8, 1024, 16), (32, 256, 32), (32, 1024, 16)):
        x, y = data_of(n, d, d + n)
        data, ones = jg.datasets.from_arrays(x, y), np.ones((rows, n), np.uint8)
        plan, count, found = resample.from_weights(ones, ones), 6000, []
        for learner in (
            learn.Descent(steps=count),
            learn.Bayes(passes=count),
            learn.Bayes(passes=count, blocks=1, window=50),
        ):
            seconds = []
            for seed in range(3):
                began = time.perf_counter()
                jg.assess(jax.random.key(seed), learn.Normalised(learner), data, plan, keep="rows")
                seconds.append(time.perf_counter() - began)
            found.append(min(seconds[1:]) * 1e9 / (rows * n * count))
        lines.append(f"D={d}, N={n}, {rows} rows".ljust(22) + "".join(f"{each:10.1f}" for each in found))
    return lines


def sweep():
    """All 216 training sets of mlp-mc-3, compilation included: its time and its losses."""
    jax.config.update("jax_enable_compilation_cache", False)  # all compilation counts
    tasks = [delve.simulated(family, inputs) for inputs in (8, 32) for family in delve.FAMILIES]
    method = delve.METHODS["mlp-mc-3"]
    yield "mlp-mc-3 on the thirty tasks of Neal 1998, simulated: 216 training sets, 60,000 passes each."
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        archive = delve.run(folder, tasks, [method], progress=False)
        seconds = time.perf_counter() - began
        yield (
            f"{seconds:.0f} seconds = {seconds / 60:.1f} minutes, compilation included (asked: at most 3; Neal's own "
            "program: 14.5 minutes of one core)"
        )
        table = archive.results()
    failed = table["failed"].to_numpy().sum()
    yield f"{failed} failed instances; mean squared loss, in units of the targets, and seconds, of which those of tasks"
    yield "that ran at the same time overlap"
    yield from table[["prototask", "size", "mean", "failed", "seconds"]].round(4).to_string(index=False).split("\n")


# memory


def peak(kept, rows):
    """MiB of this process at most, after so many rows whose chains keep so many states, and the seconds."""
    x, y = data_of(64, 8, 7)
    ones = np.ones((rows, 64), np.uint8)
    bayes = learn.Bayes(learn.MLP((20,)), passes=9000, steps=6, window=2, blocks=1, states=kept, joint=0)
    began = time.perf_counter()
    data, plan = jg.datasets.from_arrays(x, y), resample.from_weights(ones, ones)
    jg.assess(jax.random.key(0), learn.Normalised(bayes), data, plan, keep="rows")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, time.perf_counter() - began


def memory():
    """Lines of a table of peaks, each measured in a process of its own, the second that runs the same program."""
    yield "Peak of memory in MiB of a process, imports included, that reads its program from a cache: 256 rows of 64"
    yield "cases, 8 inputs, 20 hidden units; 9000 passes in 1500 trajectories of 6 steps, states kept evenly spaced."
    yield ""
    yield f"{'kept states':>12}{'MiB':>10}{'seconds':>10}"
    for kept in (10, 100, 900):
        run = [sys.executable, __file__, "--peak", str(kept), "256"]
        found = [subprocess.run(run, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
        yield f"{kept:12d}{float(found[1][0]):10.0f}{float(found[1][1]):10.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calibration", action="store_true")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--peak", type=int, nargs=2, metavar=("STATES", "ROWS"), help="of one process; for --memory")
    chosen = parser.parse_args()
    if chosen.calibration:
        calibration()
    if chosen.peak:
        print(*peak(*chosen.peak))
    if chosen.memory:
        written("bayes_memory.txt", list(memory()))
    if chosen.sweep:
        written("bayes_sweep.txt", list(sweep()))
    if chosen.peers:
        written("bayes_peers.txt", [*agreement(), *rates(100, 256, 8), *passes()])
