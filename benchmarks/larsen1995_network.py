"""Larsen & Hansen 1995 with a network of 20 tanh units in place of the linear model: p(G), true and by leave-out.

    python benchmarks/larsen1995_network.py            # about ten minutes on two cores
    python benchmarks/larsen1995_network.py --resume   # goes on where a run of the same code was stopped
    python benchmarks/larsen1995_network.py --quick    # few data sets; writes nothing

prints the results and writes them, with a figure, to benchmarks/results/. There are two systems with the inputs of the
paper, which are correlated in time: the paper's linear one with its 20 cases, and one that is not linear with 100. The
true p(G) is that of 2000 trained networks, the G of each from 10,000 fresh cases. Only public names of jaxgen are used.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from kept_parts import kept_part
from larsen1995 import (
    FRACTION,
    LINEAR,
    MEASURES,
    NOISE,
    P,
    deviations,
    first,
    leave_out_shares,
    show_unlearning,
    unlearn,
)
from quiet import Watch, publish
from speed import machine

import jaxgen as jg
from jaxgen import learn, resample, simulate
from jaxgen.stats import compare, estimate

RESULTS = Path(__file__).parent / "results"
SIGNAL, FRESH = 3.0, 10_000
"""Variance of the target without noise in the system that is not linear, as a multiple of the noise; fresh cases."""
NETWORK = learn.Normalised(learn.Conjugate(learn.MLP((20,)), steps=200, penalty=learn.L2(3.0)))
MODELS = {"network": NETWORK, "linear model": LINEAR}
COLOURS = {"network": "#0072B2", "linear model": "#D55E00"}
DAMPING = 0.3
"""Added to the diagonal of the network's Hessian, a tenth of its penalty: biases of hidden units without weights have
no influence, so that without it the Hessian is singular.
"""


@dataclass(frozen=True)
class System:
    """Data sets of one system, and what G is measured by.

    Attributes:
      name: in words.
      data: x [Q, N, 10], y [Q, N, 1].
      x, y: fresh independent inputs [FRESH, 10], and their targets without noise [FRESH, 1].
    """

    name: str
    data: jg.Data
    x: np.ndarray
    y: np.ndarray

    @property
    def n(self):
        return self.data.n

    @property
    def left(self):
        """Cases that are left when a quarter is left out."""
        return self.n - int(np.ceil(FRACTION * self.n))


def linear_system(sets, n=20):
    """The system of the paper."""
    drawn = simulate.linear_ar(jax.random.key(1995), sets, n, P, noise=NOISE)
    fresh = fresh_inputs(drawn.covariance)
    return System("linear", drawn.data, fresh, (fresh @ drawn.weights)[:, None])


def tanh_system(sets, n=100):
    """The same inputs, and as target a sum of three steep tanh of random directions, each of unit variance."""
    drawn = simulate.linear_ar(jax.random.key(1996), sets, n, P, noise=NOISE)
    random = np.random.default_rng(1996)
    directions = random.normal(size=(3, P))
    directions /= np.sqrt(np.einsum("hd,de,he->h", directions, drawn.covariance, directions))[:, None]
    fresh = fresh_inputs(drawn.covariance)
    target = three_steps(directions)
    size = np.sqrt(SIGNAL * NOISE / target(fresh).var())
    noise = np.sqrt(NOISE) * random.normal(size=(sets, n, 1))
    data = jg.Data(drawn.data.x, size * target(drawn.data.x) + noise, drawn.data.names)
    return System("not linear", data, fresh, size * target(fresh))


def three_steps(directions: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The function of inputs [*N, D] to targets [*N, 1]."""
    return lambda x: (np.tanh(2 * x @ directions.T) @ [1.0, -1.0, 1.0])[..., None]


def fresh_inputs(covariance):
    return np.random.default_rng(2).multivariate_normal(np.zeros(P), covariance, FRESH)


def true_generalization(model, system, n, at_once=100):
    """G of the model trained on the first n cases of every data set, [Q]."""
    fresh = len(system.x)
    train = np.zeros((1, n + fresh), np.uint8)
    train[:, :n] = 1
    plan, found = resample.from_weights(train, 1 - train), []
    for begin in range(0, system.data.sets, at_once):
        x, y = (
            np.concatenate(
                [cases[begin : begin + at_once, :n], np.repeat(new[None], len(cases[begin:][:at_once]), 0)], 1
            )
            for cases, new in ((system.data.x, system.x), (system.data.y, system.y))
            for some in (cases[begin : begin + at_once],)
        )
        data = jg.Data(x, y, system.data.names)
        found.append(NOISE + jg.assess(jax.random.key(0), model, data, plan, keep="rows").g[:, 0])
    return np.concatenate(found)


@dataclass(frozen=True)
class Found:
    """What is known of one model on one system: true G [Q], that after three quarters of the cases, and leave-out."""

    truth: np.ndarray
    fewer: np.ndarray
    empirical: jg.Losses


def study(system, some, resamples):
    """Both models on one system; leave-out on the first data sets."""
    return {name: study_of(name, system, some, resamples) for name in MODELS}


def study_of(name, system, some, resamples):
    """One model on one system."""
    plan = resample.leave_out(jax.random.key(1), system.n, FRACTION, resamples, sets=some)
    return Found(
        true_generalization(MODELS[name], system, system.n),
        true_generalization(MODELS[name], system, system.left),
        jg.assess(jax.random.key(0), MODELS[name], first(system, some), plan),
    )


def timed_unlearning(data, fractions, resamples):
    """Rows of `unlearn` for the network, and a line on other work of the machine."""
    watch = Watch()
    rows = []
    for fraction in fractions:
        rows += unlearn(NETWORK, data, (fraction,), resamples, damping=DAMPING)
        watch.look()
    return rows, watch.line()


def show_study(system, found):
    """Lines on both models on one system."""
    some, resamples = found["network"].empirical.g.shape
    yield (
        f"The system that is {system.name}, N = {system.n}: true over {len(found['network'].truth)} data sets, "
        f"leave-out of a quarter on {some}, {resamples} splits each"
    )
    yield f"{'G':14}" + "".join(
        f"{title:>14}" for title in ("average", "(error)", "median", "std", f"avr, {system.left}", "skewness")
    )
    for name, one in found.items():
        error = one.truth.std(ddof=1) / np.sqrt(len(one.truth))
        skewness = np.mean((one.truth - one.truth.mean()) ** 3) / one.truth.std() ** 3
        numbers = (one.truth.mean(), error, np.median(one.truth), one.truth.std(ddof=1), one.fewer.mean(), skewness)
        yield f"{name:14}" + "".join(f"{number:14.3g}" for number in numbers)
    yield (
        "Deviations of leave-out from the true measures of log(1 + G), percent; last, in the median, from those of "
        f"models of {system.left} cases, as leave-out trains them"
    )
    titles = ("min", "25 %", "median", "75 %", "max", f"of {system.left}")
    yield f"{'':20}" + "".join(f"{title:>9}" for title in titles)
    for name, one in found.items():
        all_cases, fewer = (deviations(truth, one.empirical) for truth in (one.truth, one.fewer))
        for measure in MEASURES:
            quantiles = (*np.quantile(all_cases[measure], [0, 0.25, 0.5, 0.75, 1]), np.median(fewer[measure]))
            yield f"{name:14}{measure:6}" + "".join(f"{value:9.3g}" for value in quantiles)
    yield from show_comparison(found)


def show_comparison(found):
    """Which of the two models is better: true, and by leave-out."""
    line, network = found["linear model"], found["network"]
    true = np.mean(line.truth > network.truth)
    guessed = compare.probability_greater(network.empirical, line.empirical)
    rates = [
        np.mean(test(network.empirical, line.empirical, alternative="greater").p_value < 0.05)
        for test in (compare.paired_t, compare.corrected_t)
    ]
    yield (
        f"Prob(G of the linear model > G of the network): true {true:.3f}, by leave-out {np.mean(guessed):.3f} "
        f"(quartiles {np.quantile(guessed, 0.25):.2f} to {np.quantile(guessed, 0.75):.2f}); the network is found "
        f"better at 5 % by eq. 9 in {rates[0]:.0%} of the data sets, by the corrected test in {rates[1]:.0%}"
    )


def figure(studies):
    """Distribution functions and densities of both models, a row for each system; a figure of matplotlib."""
    drawn, panels = plt.subplots(len(studies), 2, figsize=(10, 3.9 * len(studies)), layout="constrained", squeeze=False)
    for (system, found), (left, right) in zip(studies, panels, strict=True):
        values = np.log1p(np.concatenate([one.truth for one in found.values()]))
        middles = np.log1p(np.concatenate([np.quantile(one.empirical.g, [0.01, 0.98]) for one in found.values()]))
        low, high = np.log1p(NOISE), max(np.quantile(values, 0.995), np.quantile(middles, 0.9))
        grid = np.linspace(min(low, middles.min()), high, 400)
        bins = 30 if len(values) < 2000 else 90
        reach = np.expm1(np.quantile(values, 0.985))
        for name, one in found.items():
            true, colour = estimate.ecdf(np.log1p(one.truth)), COLOURS[name]
            left.plot(true.values, true.probability, color=colour, label=f"{name}, true")
            quarter, middle, three = leave_out_shares(one.empirical, grid)
            left.plot(grid, middle, "--", color=colour, label=f"{name}, leave-out")
            left.fill_between(grid, quarter, three, color=colour, alpha=0.15, linewidth=0)
            right.hist(one.truth, np.linspace(NOISE, reach, bins), density=True, color=colour, alpha=0.45, label=name)
            right.axvline(one.truth.mean(), color=colour, label=f"average {one.truth.mean():.1f}")
            right.axvline(np.median(one.truth), color=colour, linestyle=":", label=f"median {np.median(one.truth):.1f}")
        left.axvline(low, color="grey", linewidth=1)
        right.axvline(NOISE, color="grey", linewidth=1, label=f"least G {NOISE}")
        left.set(
            xlabel="log(1 + G), squared loss",
            ylabel="probability",
            xlim=(grid[0], grid[-1]),
            ylim=(0, 1.2),
            yticks=np.arange(0, 1.1, 0.2),
        )
        left.set_title(f"The system is {system.name}, {system.n} cases; shaded: quartiles by leave-out", fontsize=10)
        right.set(xlabel="G, squared loss", ylabel="density")
        right.set_title("Density of the true G", fontsize=10)
        left.legend(loc="upper left", frameon=False, fontsize=8, ncols=2)
        right.legend(frameon=False, fontsize=8)
    return drawn


def main():
    parser = argparse.ArgumentParser(description="Larsen & Hansen 1995 with a network of 20 units.")
    parser.add_argument("--quick", action="store_true", help="few data sets; writes nothing")
    parser.add_argument("--resume", action="store_true", help="takes the parts that an earlier run of this code made")
    chosen = parser.parse_args()
    quick = chosen.quick
    matplotlib.use("Agg")
    sets, some, resamples = (60, 4, 20) if quick else (2000, 100, 200)
    few, fractions, splits = (2, (0.25,), 20) if quick else (6, (0.01, 0.05, 0.1, 0.25), 100)
    systems = [linear_system(sets)] if quick else [linear_system(sets), tanh_system(sets)]
    minutes = 0.0

    def part(name, compute):
        nonlocal minutes
        if quick:
            return compute()
        found, took = kept_part(f"larsen1995_network-{name}", compute, chosen.resume)
        print(f"{name}: {took:.1f} minutes", flush=True)
        minutes += took
        return found

    studies = [
        (one, {name: part(f"{one.n}-{name}", partial(study_of, name, one, some, resamples)) for name in MODELS})
        for one in systems
    ]
    rows, watched = part("unlearning", partial(timed_unlearning, first(systems[-1], few), fractions, splits))
    sections = [
        [
            machine(),
            f"Larsen & Hansen 1995 with {NETWORK}; seeds 1995, 1996, 1, 2, 3, 4",
            f"whole run {60 * minutes:.0f} s, compilation included; least G {NOISE}",
        ],
        *(show_study(system, found) for system, found in studies),
        [*show_unlearning(rows, few, splits), watched],
    ]
    text = "\n\n".join("\n".join(lines) for lines in sections)
    print(text)
    if not quick:
        figure(studies).savefig(RESULTS / "larsen1995_network.png", dpi=120)
        publish("larsen1995_network.txt", text)


if __name__ == "__main__":
    main()
