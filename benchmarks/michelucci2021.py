"""Michelucci & Venturini 2021, "Estimating neural network's performance with bootstrap: a tutorial": its
demonstrations, and what the bootstrap of one validation set does not see.

    python benchmarks/michelucci2021.py                          # all of it; the results say how long it takes
    python benchmarks/michelucci2021.py --boston boston.npz      # with the tutorial's real data: X [506, 13], y [506]
    python benchmarks/michelucci2021.py --quick                  # a minute or two; writes nothing

prints the tables and writes them, with figures, to benchmarks/results/. Only public names of jaxgen are used.

The copy of the paper that this follows has its text, but no formula, no figure, no pseudo-code and not the sections 7
to 9 with the experiments. So there is no number of its tables to compare with: what its text claims is tried on a
function of our own, on the diabetes data and, where they are given, on its Boston data.
"""

import argparse
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
from quiet import publish
from speed import machine

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample, simulate
from jaxgen.stats import estimate, interval

CASES, NOISE, LEVEL, INPUTS = 500, 0.2, 0.95, 10
FRESH = 20_000
ADAM = learn.Optax("adam", learning_rate=0.03)
NETWORK = learn.Normalised(learn.Descent(learn.MLP((8,), init="glorot"), steps=500, optimiser=ADAM), how="standard")
UNSURE = learn.Descent(learn.MLP((4, 4), "sigmoid", init="glorot"), steps=300, optimiser=ADAM, tolerance=0.02)
SMALL = learn.Normalised(learn.Descent(learn.MLP((10,), init="glorot"), steps=100, optimiser=ADAM), how="standard")
BLUE, ORANGE, GREEN, PINK = plot.COLOURS[:4]


def curve(x):
    """The function that the synthetic data follow, of inputs between -1 and 1."""
    return x**2 + np.sin(2 * np.pi * x) / 2


def synthetic(seed, n=CASES, function=curve, noise=NOISE):
    """Cases of one input, uniform between -1 and 1, and the function of it with normal noise."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, (n, 1))
    return jg.Data(x, function(x) + noise * random.normal(size=(n, 1)), ("x",))


# The central limit theorem


def averages_of_chi_squared(freedom, n, averages, seed=0):
    """Averages of n values of chi-squared minus its mean, [averages]."""
    random, parts = np.random.default_rng(seed), []
    block = max(1, 2_000_000 // n)
    for start in range(0, averages, block):
        parts.append(random.chisquare(freedom, (min(block, averages - start), n)).mean(1) - freedom)
    return np.concatenate(parts)


def errors_of_a_network(fresh=200_000, function=curve, key=0):
    """Squared errors [fresh] of one network that was trained on 400 synthetic cases, on cases that it has not seen."""
    data = synthetic(1, 400 + fresh, function)
    train = (np.arange(data.n) < 400).astype(np.uint8)[None]
    losses = jg.assess(jax.random.key(key), NETWORK, data, resample.from_weights(train, 1 - train))
    return estimate.row_losses(losses)


def averages_of(values, n, averages, seed=0):
    """Averages of n of some values, drawn with replacement, [averages]."""
    random, parts = np.random.default_rng(seed), []
    block = max(1, 2_000_000 // n)
    for start in range(0, averages, block):
        parts.append(random.choice(values, (min(block, averages - start), n)).mean(1))
    return np.concatenate(parts)


def shape(averages):
    """Skewness, share within one standard deviation of the mean, and shares beyond 1.96 of them below and above."""
    z = (averages - averages.mean()) / averages.std()
    return scipy.stats.skew(z), np.mean(abs(z) < 1), np.mean(z < -1.96), np.mean(z > 1.96)


def chi_squared_shape(freedom, n):
    """The same four exactly: the average of n values is 1 / n times chi-squared with n times the degrees of freedom."""
    law = scipy.stats.chi2(n * freedom)
    low, high = (law.mean() + z * law.std() for z in (-1.96, 1.96))
    inside = law.cdf(law.mean() + law.std()) - law.cdf(law.mean() - law.std())
    return np.sqrt(8 / (n * freedom)), inside, law.cdf(low), law.sf(high)


def show_limit(averages):
    """Tables of the central limit theorem."""
    lines = [
        "1. The central limit theorem (section 3, Figure 1)",
        f"{averages:,} averages of n values of chi-squared; the paper's degrees of freedom are lost, here 1 and 10. "
        "Four columns, ours with the exact value in brackets;",
        "of a normal law they are 0, 0.6827, 0.025 and 0.025.",
        f"{'':28}{'n':>5}{'skewness':>20}{'within 1 sd':>20}{'below -1.96 sd':>20}{'above 1.96 sd':>20}",
    ]
    for freedom in (1, 10):
        for n in (2, 10, 200):
            found = shape(averages_of_chi_squared(freedom, n, averages))
            exact = chi_squared_shape(freedom, n)
            numbers = "".join(f"{a:11.4f} ({b:.4f})" for a, b in zip(found, exact, strict=True))
            lines.append(f"chi-squared, {freedom:2} df{'':11}{n:5}  {numbers}")
    errors = errors_of_a_network(20_000 if averages < 100_000 else 200_000)
    skew = scipy.stats.skew(errors)
    lines += [
        "",
        f"Mean squared error of one network over n test cases (Corollary 1): {len(errors):,} errors on fresh cases, "
        f"mean {errors.mean():.4f}, sd {errors.std():.4f}, skewness {skew:.2f};",
        "in brackets what follows for averages: skewness / sqrt(n).",
    ]
    for n in (2, 10, 50, 200, 1000):
        found = shape(averages_of(errors, n, averages // 10 if n > 200 else averages))
        lines.append(
            f"{'squared errors':28}{n:5}  {found[0]:11.4f} ({skew / np.sqrt(n):.4f})"
            + "".join(f"{number:11.4f}{'':9}" for number in found[1:])
        )
    return lines, errors


def limit_figure(errors, averages):
    """Figure 1 of the paper, and below it the same of the squared errors of a network."""
    drawn, axes = plt.subplots(2, 4, figsize=(13, 5.6), layout="constrained")
    rows = (
        ("chi-squared with 10 df, minus 10", lambda n: averages_of_chi_squared(10, n, averages)),
        ("squared errors of a network", lambda n: averages_of(errors, n, averages) if n > 1 else errors),
    )
    for row, (name, draw) in zip(axes, rows, strict=True):
        for panel, n in zip(row, (1, 2, 10, 200), strict=True):
            values = draw(n)
            low, high = np.quantile(values, [0.0005, 0.9975 if n == 1 else 0.9995])
            panel.hist(values, np.linspace(low, high, 60), density=True, color="0.8")
            grid = np.linspace(low, high, 300)
            normal = scipy.stats.norm.pdf(grid, values.mean(), values.std())
            panel.plot(grid, normal, color=ORANGE, label="normal, same mean and sd")
            panel.set(
                title=name if n == 1 else f"averages of n = {n}",
                yticks=[],
                xlabel="value" if n == 1 else "average",
                ylabel="density" if n == 1 else "",
            )
            if n == 1 and name.startswith("squared"):
                panel.set_ylim(0, 1.1 * np.histogram(values, np.linspace(low, high, 60), density=True)[0][1:].max())
                panel.set_title(f"{name} (first bar cut)", fontsize=11)
            panel.spines[["top", "right"]].set_visible(False)
    drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", frameon=False)
    return drawn


# Bootstrap of one split, split/train, and the mixed approach


@dataclass(frozen=True)
class ThreeWays:
    """What the three algorithms say of one learner and one data set.

    Attributes:
      losses: of all splits, [R, N].
      one: bootstrap of the test cases of the first split (Algorithm 5).
      several: the mixed approach with the first splits (section 6.3).
      many: split/train with all splits (Algorithm 4).
      each: bootstrap of each of the splits, [R].
      seconds: of the three.
    """

    name: str
    losses: jg.Losses
    one: object
    several: object
    many: object
    each: object
    seconds: tuple[float, float, float]


def first_rows(plan, rows):
    """The first rows of a plan; trained with the same key they are the same models."""
    return resample.from_weights(plan.train[:rows], plan.test[:rows])


def losses_of_rows(losses, rows=None):
    """Losses of the test cases of each row, [R, n2], for test sets of one size."""
    return np.stack([estimate.row_losses(losses, row=row) for row in range(rows or losses.resamples)])


def three_ways(name, data, fraction=0.2, splits=1000, learner=NETWORK, resamples=10_000, mixed=10):
    """The three algorithms on one data set; every time is that of a second run, without compilation."""
    plan = resample.leave_out(jax.random.key(0), data.n, fraction, splits)
    ways = (
        (1, lambda losses: estimate.bootstrap_test_cases(losses, resamples=resamples)),
        (mixed, lambda losses: estimate.mixed(losses, resamples=resamples)),
        (splits, estimate.split_train),
    )
    results, seconds = [], []
    for rows, method in ways:
        for _ in range(2):
            start = time.perf_counter()
            losses = jg.assess(jax.random.key(1), learner, data, first_rows(plan, rows))
            result = method(losses)
            took = time.perf_counter() - start
        results.append(result)
        seconds.append(took)
    each = estimate.bootstrap(losses_of_rows(losses), resamples=1000)
    (one, several, many), (first, second, third) = results, seconds
    return ThreeWays(name, losses, one, several, many, each, (first, second, third))


def show_three_ways(ways):
    """The table of the three algorithms."""
    lines = [
        "2. Bootstrap of one split, mixed approach, split/train (section 6)",
        f"A network of 8 tanh units; a fifth of the cases tested. Bootstrap: average and sd of {10_000:,} replicates. "
        "Mixed: the mean of 10 splits, the root mean square of their sd, and the sd between the splits.",
        "Split/train: average and sd of G. Of the bootstrap of each of all splits: 5 and 95 % quantiles. ratio: mean "
        "sd of the bootstrap / sd of split/train. Without any dependence on the training set it would be",
        "sqrt(N / (N - n2)) = 1.118, as test sets of one data set are drawn without replacement. Seconds without "
        "compilation.",
        f"{'data':12}{'way':24}{'trainings':>10}{'seconds':>9}{'average':>12}{'sd':>11}   ",
    ]
    for way in ways:
        each, g = way.each, way.many
        low, high = np.quantile(each.estimate, [0.05, 0.95]), np.quantile(each.standard_error, [0.05, 0.95])
        rows = (
            ("bootstrap, one split", 1, way.seconds[0], way.one.estimate, way.one.standard_error, ""),
            (
                "mixed, 10 splits",
                way.several.estimates.size,
                way.seconds[1],
                way.several.estimate,
                way.several.parts["within"],
                f"between splits {float(way.several.parts['between']):.4g}; "
                f"the splits {'agree' if way.several.agree else 'do not agree'}",
            ),
            (
                "split/train",
                way.losses.resamples,
                way.seconds[2],
                g.estimate,
                g.parts["std"],
                f"Monte Carlo error of the average {float(g.parts['monte carlo error']):.2g}; "
                f"outlying apparent errors: {int(g.parts['outlying'])}",
            ),
        )
        if g.parts["outlying"] > 0:
            good = estimate.split_train(far_above(way.losses).without_failed())
            note = f"without the {int(g.parts['outlying'])} rows that may not have converged, see 5."
            rows += (
                (
                    "split/train, converged",
                    way.losses.resamples,
                    way.seconds[2],
                    good.estimate,
                    good.parts["std"],
                    note,
                ),
            )
        for text, trainings, seconds, average, sd, note in rows:
            lines.append(
                f"{way.name:12}{text:24}{trainings:10,}{seconds:9.2f}{float(average):12.5g}{float(sd):11.4g}   {note}"
            )
        ratio = np.mean(each.standard_error) / g.parts["std"]
        lines.append(
            f"{'':12}over all splits the bootstrap's average is {low[0]:.4g} to {low[1]:.4g}, its sd {high[0]:.4g} to "
            f"{high[1]:.4g}; ratio {float(ratio):.3f}"
        )
    return lines


def ways_figure(ways):
    """Of each data set: G over all splits, and the bootstrap of five single splits."""
    drawn, axes = plt.subplots(1, len(ways), figsize=(5 * len(ways), 4), layout="constrained", squeeze=False)
    for panel, way in zip(axes[0], ways, strict=True):
        g = way.losses.g
        low, high = np.quantile(g, [0.0005, 0.9995])
        low, high = low - 0.15 * (high - low), high + 0.15 * (high - low)
        panel.hist(g, np.linspace(low, high, 50), density=True, color="0.8")
        grid = np.linspace(low, high, 400)
        for row in range(5):
            law = scipy.stats.norm.pdf(grid, way.each.estimate[row], way.each.standard_error[row])
            panel.plot(grid, law, color=BLUE, linewidth=1)
        panel.axvline(g.mean(), color=ORANGE, linestyle="--")
        panel.set(
            title=f"{way.name}, {len(g)} splits",
            xlabel="mean squared error of the test cases",
            yticks=[],
            ylabel="density",
        )
        panel.spines[["top", "right"]].set_visible(False)
    names = "split/train", "bootstrap of one split (normal law), five splits", "average of split/train"
    handles = [panel.patches[0], panel.lines[0], panel.lines[-1]]
    drawn.legend(handles, names, loc="outside upper center", ncols=3 if len(ways) > 1 else 1, frameon=False)
    return drawn


# How many bootstrap samples, and which split


def replicates(way, numbers, repeats):
    """For each number of bootstrap samples: the relative sd of the bootstrap's sd over repetitions, and 1 / sqrt(2 B)
    for it; last the relative sd of the bootstrap's sd over splits, which no number of samples makes smaller.
    """
    errors = estimate.row_losses(way.losses)
    rows = []
    for number in numbers:
        found = [
            float(estimate.bootstrap(errors, resamples=number, seed=seed).standard_error) for seed in range(repeats)
        ]
        rows.append((number, np.std(found, ddof=1) / np.mean(found), 1 / np.sqrt(2 * number)))
    sd = way.each.standard_error
    return rows, float(np.std(sd, ddof=1) / np.mean(sd))


def show_replicates(name, rows, floor, repeats):
    """The table of the number of bootstrap samples."""
    lines = [
        "",
        f"3. The number of bootstrap samples B (section 4), {name}: error of the bootstrap's sd of one split, relative",
        f"Monte Carlo: sd over {repeats} seeds; of a normal law 1 / sqrt(2 B). With that of the test set: "
        f"{floor:.3f} is the relative sd over splits, which B does not change.",
        f"{'B':>8}{'Monte Carlo':>14}{'1/sqrt(2B)':>12}{'together':>10}",
    ]
    for number, found, expected in rows:
        lines.append(f"{number:8,}{found:14.4f}{expected:12.4f}{np.hypot(found, floor):10.4f}")
    return lines


def fractions(data, shares, splits, function=None, learner=NETWORK):
    """For each share left out: cases left out, average and sd of G over splits, mean and 5 and 95 % quantiles of the
    bootstrap's sd, share of groups of ten splits that agree, and the mean risk of the models where the function is
    known.
    """
    for share in shares:
        plan = resample.leave_out(jax.random.key(2), data.n, share, splits)
        losses = jg.assess(jax.random.key(1), learner, data, plan)
        each = estimate.bootstrap(losses_of_rows(losses), resamples=1000).standard_error
        agree = []
        for start in range(0, splits, 10):
            some = resample.from_weights(plan.train[start : start + 10], plan.test[start : start + 10])
            ten = replace(
                losses,
                plan=some,
                **{
                    part: getattr(losses, part)[start : start + 10]
                    for part in ("test_mean", "train_mean", "failure", "values")
                },
                info={},
            )
            agree.append(bool(estimate.mixed(ten, resamples=200).agree))
        risk = risks_of_rows(data, plan, function, learner).mean() if function else np.nan
        yield (
            share,
            int(plan.test_sizes[0]),
            losses.g.mean(),
            losses.g.std(ddof=1),
            each.mean(),
            np.quantile(each, [0.05, 0.95]),
            np.mean(agree),
            risk,
        )


def risks_of_rows(data, plan, function, learner=NETWORK, noise=NOISE, fresh=5000):
    """Risk of the model that each row trains, [R], from fresh inputs and the function without noise."""
    new = np.random.default_rng(7).uniform(-1, 1, (fresh, 1))
    both = jg.Data(np.concatenate([data.x, new]), np.concatenate([data.y, function(new)]), data.names)
    train = np.pad(plan.train, ((0, 0), (0, fresh)))
    test = np.broadcast_to((np.arange(both.n) >= data.n).astype(np.uint8), train.shape)
    rows = jg.assess(jax.random.key(1), learner, both, resample.from_weights(train, test), keep="rows")
    return rows.test_mean + noise**2


def show_fractions(name, rows):
    """The table of the split."""
    lines = [
        "",
        f"4. The split (section 5.1 and 6.3), {name}: average and sd of G over splits, mean sd of the bootstrap of one "
        "split with its 5 and 95 % quantiles, their ratio beside sqrt(N / (N - n2)),",
        "how often ten splits agree by `estimate.mixed` (a rule that should call equal ones unequal in at most 5 % of "
        "groups), and the mean risk of the models where it is known.",
        f"{'left out':>9}{'n2':>6}{'average G':>12}{'sd G':>10}{'sd bootstrap':>14}{'5 %':>10}{'95 %':>10}{'ratio':>8}"
        f"{'expected':>10}{'agree':>8}{'risk':>10}",
    ]
    for share, n2, average, sd, mean, (low, high), agree, risk in rows:
        known = f"{risk:10.4f}" if np.isfinite(risk) else f"{'unknown':>10}"
        lines.append(
            f"{share:9.2f}{n2:6}{average:12.5g}{sd:10.4g}{mean:14.4g}{low:10.4g}{high:10.4g}{mean / sd:8.3f}"
            f"{1 / np.sqrt(1 - share):10.3f}{agree:8.2f}{known}"
        )
    return lines


def choices_figure(rows, floor, cut):
    """Error of the bootstrap's sd by the number of samples; sd by the share left out."""
    drawn, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    number, found, expected = map(np.array, zip(*rows, strict=True))
    left.loglog(number, found, "o", color=BLUE, label="Monte Carlo, measured")
    left.loglog(number, expected, ":", color=BLUE, label="$1/\\sqrt{2B}$")
    left.axhline(floor, color=ORANGE, linestyle="--", label="other test sets (sd over splits)")
    left.loglog(number, np.hypot(found, floor), "s-", color="black", markersize=4, label="both together")
    left.set(xlabel="bootstrap samples, B", ylabel="relative error of the bootstrap's sd")
    share, _, _, sd, mean, band, _, _ = zip(*cut, strict=True)
    low, high = np.array(band).T
    right.fill_between(share, low, high, color=BLUE, alpha=0.2, linewidth=0, label="bootstrap, 5 to 95 % of splits")
    right.plot(share, mean, "o-", color=BLUE, label="bootstrap of one split, mean")
    right.plot(share, sd, "s--", color=ORANGE, label="split/train")
    right.set(xlabel="share of the cases left out", ylabel="sd of the mean squared error", ylim=(0, None))
    for panel in (left, right):
        panel.legend(frameon=False, fontsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    return drawn


# Networks that did not converge


def unconverged(splits):
    """Losses of small sigmoid networks, some of which stay on a plateau or are not done; and the same where rows whose
    apparent error lies far above the others are marked too.
    """
    data = synthetic(3, CASES, np.square, 0.1)
    plan = resample.leave_out(jax.random.key(4), data.n, 0.2, splits)
    losses = jg.assess(jax.random.key(5), learn.Normalised(UNSURE, how="standard"), data, plan)
    return losses, far_above(losses)


def far_above(losses):
    """Losses where rows are marked as failed whose apparent error is above the upper quartile by three interquartile
    ranges: the rule of `estimate.split_train`.
    """
    low, high = np.quantile(losses.train_mean, [0.25, 0.75])
    far = losses.train_mean > high + 3 * (high - low)
    return replace(
        losses,
        failure=np.where(far, 1, 0).astype(np.uint8),
        reasons=("the apparent error lies far above that of the other rows",),
    )


def show_unconverged(losses, far):
    """The table of networks that did not converge."""
    kept = replace(losses, failure=np.zeros_like(losses.failure), reasons=())
    both = replace(far, failure=np.maximum(far.failure, losses.failed.astype(np.uint8)))
    plateau = far.failed & ~losses.failed
    lines = [
        "",
        f"5. Networks that did not converge (section 6.1): {losses.resamples:,} networks of 4 + 4 sigmoid units, 300 "
        "steps of Adam, on x^2 with noise of variance 0.01",
        f"The engine marks those whose gradient at the end is above {UNSURE.tolerance:g} of that at the start; the "
        "rule of `estimate.split_train` those whose apparent error is far above that of the others.",
        f"{'left out':42}{'rows':>7}{'average G':>12}{'sd G':>10}{'median G':>10}{'skewness':>10}",
    ]
    choices = (
        ("none", kept),
        ("gradient above the tolerance", losses),
        ("apparent error far above the others", far),
        ("either", both),
    )
    for name, some in choices:
        good = some.without_failed() if some.failed.any() else some
        g = good.g
        lines.append(
            f"{name:42}{good.dropped:7}{g.mean():12.5f}{g.std(ddof=1):10.5f}{np.median(g):10.5f}"
            f"{scipy.stats.skew(g):10.2f}"
        )
    lines += [
        f"{int(plateau.sum())} of the {int(far.failed.sum())} with a large apparent error have a small gradient: "
        "they sit on a plateau, and only their error tells.",
        f"{int((losses.failed & ~far.failed).sum())} of the {int(losses.failed.sum())} with a large gradient have an "
        "error like the others: leaving them out changes little.",
        "Leaving rows out changes the question: the rows below 'none' tell how a network does that passes such a "
        "look at its training, and one that does not pass must be trained again from another start.",
    ]
    return lines


def unconverged_figure(losses, far):
    """Apparent error and G of every network, and G with and without those far above."""
    drawn, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    kinds = (
        ("others", ~losses.failed & ~far.failed, "0.6", "."),
        ("gradient above the tolerance", losses.failed & ~far.failed, BLUE, "x"),
        ("apparent error far above the others", far.failed & ~losses.failed, ORANGE, "^"),
        ("both", far.failed & losses.failed, PINK, "s"),
    )
    for name, rows, colour, marker in kinds:
        left.plot(
            losses.train_mean[rows],
            losses.test_mean[rows],
            marker,
            color=colour,
            label=f"{name} ({int(rows.sum())})",
            markersize=5,
        )
    left.set(xlabel="apparent error of a network", ylabel="mean squared error of its test cases")
    left.legend(frameon=False, fontsize=8)
    bins = np.geomspace(losses.test_mean.min(), losses.test_mean.max(), 50)
    right.hist(losses.test_mean, bins, color=ORANGE, label="all networks")
    right.hist(far.without_failed().g, bins, color="0.6", label="without those far above")
    right.set(xscale="log", yscale="log", xlabel="mean squared error of the test cases", ylabel="networks")
    right.legend(frameon=False, fontsize=8)
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    return drawn


# What the bootstrap of one validation set does not see


@dataclass(frozen=True)
class Known:
    """A learner on data whose truth is known.

    Attributes:
      train: training cases where the size of the test set is varied.
      n: cases where all methods have the same.
      sets: data sets.
    """

    name: str
    learner: object
    train: int
    n: int
    sets: int
    linear: bool


KNOWN = (
    Known("least squares", learn.LeastSquares(intercept=False), 30, 40, 2000, True),
    Known("network", SMALL, 75, 100, 400, False),
)
SIZES = (10, 30, 100, 300, 1000)


def drawn(known, n, sets, seed):
    """Data sets of n cases in parts, each with a key to train with and a function from a plan to the risks of the
    models that it trains with this key, [Q, R].

    Linear: Larsen & Hansen's system with independent cases, exact risks. Network: DELVE's kin-8nm, risks from FRESH
    cases that all sets share; in parts, because the fresh cases are predicted with every set.
    """
    if known.linear:
        system = simulate.linear_ar(jax.random.key(seed), sets, n, INPUTS, rho=0.0)
        key = jax.random.key(1)

        def exact(plan):
            fits = jg.assess(key, known.learner, system.data, plan, keep="rows")
            return system.generalization(fits.info["weights"][..., 0])

        yield system.data, key, exact
        return
    data = simulate.kin(jax.random.key(seed), n=n, sets=sets).data
    new = simulate.kin(jax.random.key(10**6 + seed), n=FRESH).data
    for part, some in enumerate(np.array_split(np.arange(sets), max(1, sets // 50))):
        x, y = (
            np.concatenate([mine[some], np.repeat(fresh[None], len(some), axis=0)], axis=1)
            for mine, fresh in ((data.x, new.x), (data.y, new.y))
        )
        both, key = jg.Data(x, y, data.names), jax.random.key(part)

        def measured(plan, both=both, key=key):
            train = np.pad(plan.train, ((0, 0), (0, FRESH)))
            test = np.broadcast_to((np.arange(n + FRESH) >= n).astype(np.uint8), train.shape)
            return jg.assess(key, known.learner, both, resample.from_weights(train, test), keep="rows").g

        yield jg.Data(x[:, :n], y[:, :n], data.names), key, measured


def hidden_variance(known, sets, seed=11):
    """For each size of the test set: coverage of the risk of the one model and of its mean over training sets by the
    percentile interval, relative sd of the test error over data sets, relative sd that the bootstrap tells, and the
    coverage of the mean that follows for normal laws; and the relative sd of R over training sets.
    """
    n = known.train + max(SIZES)
    train = (np.arange(n) < known.train).astype(np.uint8)[None]
    plan = resample.from_weights(train, 1 - train)
    parts = [
        (risk(plan)[:, 0], np.asarray(jg.assess(key, known.learner, data, plan).values)[:, 0, known.train :])
        for data, key, risk in drawn(known, n, sets, seed)
    ]
    truth, errors = (np.concatenate(part) for part in zip(*parts, strict=True))
    rows = []
    for size in SIZES:
        some = errors[:, :size]
        found = interval.bootstrap(some, kind="percentile", resamples=999)
        low, high = found.lower, found.upper
        told = np.sqrt(np.mean(found.standard_error**2))
        share = told / np.hypot(told, truth.std())
        rows.append(
            (
                size,
                np.mean((low <= truth) & (truth <= high)),
                np.mean((low <= truth.mean()) & (truth.mean() <= high)),
                some.mean(1).std(ddof=1) / truth.mean(),
                told / truth.mean(),
                2 * scipy.stats.norm.cdf(1.96 * share) - 1,
            )
        )
    return rows, truth.std(ddof=1) / truth.mean()


def show_hidden(known, sets, rows, spread):
    """The table of the variance that is not seen."""
    lines = [
        "",
        f"{known.name}, {known.train} training cases, {sets} data sets: sd of R over training sets {spread:.3f} of ER",
        f"{'n2':>6}{'covers R':>10}{'covers ER':>11}{'normal law':>12}{'sd of the test error':>22}"
        f"{'told by the bootstrap':>23}{'share of the variance told':>28}",
    ]
    for size, one, mean, sd, told, expected in rows:
        lines.append(f"{size:6}{one:10.3f}{mean:11.3f}{expected:12.3f}{sd:22.3f}{told:23.3f}{told**2 / sd**2:28.2f}")
    return lines


def same_cases(known, sets, seed=21):
    """All methods on the same n cases: for each the shares of data sets whose interval holds the risk of the model of
    the first split, of the model of all cases, and the means of both over data sets; mean width over ER; trainings.
    """
    key, n = jax.random.key(seed), known.n
    plans = (
        resample.leave_out(key, n, 0.25, 100),
        resample.leave_out(key, n, 0.1, 25),
        resample.nested_pairs(key, n, 5, 3),
    )
    risks, limits = [], []
    for data, train_key, risk in drawn(known, n, sets, seed):
        risks.append([risk(plan)[:, 0] for plan in (first_rows(plans[0], 1), resample.full(n))])
        limits.append(limits_of_all(known.learner, data, train_key, *plans))
    one, every = np.concatenate(risks, axis=1)
    targets = [one, every, one.mean(), every.mean()]
    rows = {}
    for name, (trainings, *_) in limits[0].items():
        low, high = (np.concatenate([part[name][side] for part in limits]) for side in (1, 2))
        holds = [np.mean((low <= target) & (target <= high)) for target in targets]
        if trainings > 1:
            holds[0] = np.nan  # there is no one model of one split
        rows[name] = (trainings, *holds, np.mean(high - low) / every.mean())
    return rows, (one, every)


def limits_of_all(learner, data, key, quarter, tenth, nested):
    """Trainings, and lower and upper limits [Q], of every method on the same cases."""
    splits, small, pairs = (jg.assess(key, learner, data, plan) for plan in (quarter, tenth, nested))
    ten = jg.assess(key, learner, data, first_rows(quarter, 10))
    errors = np.asarray(splits.values)[:, 0][:, quarter.test[0] > 0]
    mean, sd = splits.g.mean(1), splits.g.std(1, ddof=1)
    within = np.sqrt(np.mean(estimate.mixed(ten, resamples=200).deviations ** 2, axis=-1))
    return {
        "bootstrap of one validation set": (1, *ends(interval.bootstrap(errors, kind="percentile", resamples=999))),
        "t interval of one validation set": (1, *ends(interval.t(errors))),
        "mixed, 10 splits: average ± 1.96 within": (10, *around(ten.g.mean(1), within)),
        "split/train, 100: average ± 1.96 sd": (100, *around(mean, sd)),
        "split/train, 100: average ± 1.96 sd / 10": (100, *around(mean, sd / 10)),
        "corrected t, a quarter left out 100 times": (100, *ends(interval.corrected_t(splits))),
        "corrected t, a tenth left out 25 times": (25, *ends(interval.corrected_t(small))),
        "nested CV, 3 x 5 folds": (45, *ends(interval.nested_cross_validation(pairs))),
    }


def around(centre, sd):
    """Limits of the normal law."""
    return centre - 1.96 * sd, centre + 1.96 * sd


def ends(result):
    """The limits of an interval."""
    return result.lower, result.upper


def show_same_cases(known, sets, rows, risks):
    """The table of all methods on the same cases."""
    error = np.sqrt(LEVEL * (1 - LEVEL) / sets)
    lines = [
        "",
        f"{known.name}, n = {known.n} in all, {sets} data sets (binomial standard error at 95 %: {error:.3f}). ER of "
        f"models of {known.n - -(-known.n // 4)} cases {risks[0].mean():.4g}, of {known.n} cases {risks[1].mean():.4g}",
        f"{'':44}{'trainings':>10}{'R, one split':>14}{'R, all n':>10}{'ER, one split':>15}{'ER, all n':>11}"
        f"{'width / ER':>12}",
    ]
    for name, (trainings, one, every, mean, mean_all, width) in rows.items():
        first = f"{one:14.3f}" if np.isfinite(one) else f"{'':14}"
        lines.append(f"{name:44}{trainings:10}{first}{every:10.3f}{mean:15.3f}{mean_all:11.3f}{width:12.2f}")
    return lines


def hidden_figure(tables):
    """Coverage of R and of ER by the size of the validation set."""
    drawn, axes = plt.subplots(
        1, len(tables), figsize=(5 * len(tables), 4), layout="constrained", sharey=True, squeeze=False
    )
    for panel, (known, rows) in zip(axes[0], tables, strict=True):
        size, one, mean, _, _, expected = map(np.array, zip(*rows, strict=True))
        panel.axhline(LEVEL, color="0.6", linewidth=1)
        panel.semilogx(size, one, "o-", color=BLUE, label="covers R, the risk of the one model")
        panel.semilogx(size, mean, "s-", color=ORANGE, label="covers ER, its mean over training sets")
        panel.semilogx(size, expected, ":", color=ORANGE, label="expected for ER by normal laws")
        panel.text(size[0], LEVEL + 0.01, "0.95", ha="left", va="bottom", color="0.4", fontsize=8)
        panel.set(
            title=f"{known.name}, {known.train} training cases",
            xlabel="cases of the validation set, $n_2$",
            ylim=(0, 1.03),
        )
        panel.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("coverage of the 95 % bootstrap interval")
    axes[0, 0].legend(frameon=False, fontsize=9, loc="lower left")
    return drawn


def read_boston(path):
    """The Boston data from a NumPy archive with X [506, 13] and y [506]."""
    with np.load(path, allow_pickle=False) as arrays:
        return datasets.from_arrays(arrays["X"], arrays["y"], target="median value")


def main():
    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few splits and data sets; writes nothing")
    parser.add_argument("--boston", type=Path, help="a NumPy archive with X and y of the Boston data")
    chosen = parser.parse_args()
    quick, begun, figures, lines = chosen.quick, time.perf_counter(), {}, []
    averages, splits = (20_000, 50) if quick else (1_000_000, 1000)

    def add(more):
        lines.extend(more)
        print("\n".join(more), flush=True)

    limit, errors = show_limit(averages)
    add(limit)
    figures["clt"] = limit_figure(errors, min(averages, 200_000))
    data = {"synthetic": synthetic(0), "diabetes": datasets.diabetes()}
    if chosen.boston:
        data["Boston"] = read_boston(chosen.boston)
    ways = [three_ways(name, cases, splits=splits) for name, cases in data.items()]
    add(["", *show_three_ways(ways)])
    figures["three_ways"] = ways_figure(ways)
    repeats = 20 if quick else 200
    rows, floor = replicates(ways[1], (10, 30, 100, 300, 1000) + (() if quick else (10_000,)), repeats)
    add(show_replicates("diabetes", rows, floor, repeats))
    shares = (0.5,) if quick else (0.05, 0.1, 0.2, 0.3, 0.5)
    for name, cases in data.items():
        cut = list(fractions(cases, shares, 20 if quick else 500, curve if name == "synthetic" else None))
        add(show_fractions(name, cut))
        if name == "diabetes":
            figures["choices"] = choices_figure(rows, floor, cut)
    losses, far = unconverged(100 if quick else 1000)
    add(show_unconverged(losses, far))
    figures["unconverged"] = unconverged_figure(losses, far)
    add(
        [
            "",
            "6. What the bootstrap of one validation set does not see: other training sets",
            "Linear: Larsen & Hansen's system of independent cases, 10 inputs, exact risks. Network: 10 tanh units on "
            f"kin-8nm, risks from {FRESH:,} fresh cases. R: risk of the trained model; ER: its mean over training "
            "sets.",
            "95 % percentile interval of one validation set of n2 cases. normal law: the coverage of ER that follows "
            "from "
            "the variance of R, which the bootstrap leaves out, if all laws were normal. Standard deviations over ER.",
        ]
    )
    tables = []
    for known in KNOWN:
        sets = known.sets // 10 if quick else known.sets
        hidden, spread = hidden_variance(known, sets)
        add(show_hidden(known, sets, hidden, spread))
        tables.append((known, hidden))
    add(["", "The same n cases for every method; shares of data sets whose 95 % interval holds each target"])
    for known in KNOWN:
        sets = known.sets // 10 if quick else known.sets
        add(show_same_cases(known, sets, *same_cases(known, sets)))
    figures["caveat"] = hidden_figure(tables)
    heading = [
        machine(),
        f"Michelucci & Venturini 2021: {(time.perf_counter() - begun) / 60:.1f} minutes, compilation included; "
        f"{'--quick' if quick else 'every seed stands in the script'}",
        "The paper's own numbers are in its sections 7 to 9 and its figures, which our copy lacks; what is compared "
        "are the claims of its text.",
        "",
    ]
    if not quick:
        publish("michelucci2021.txt", "\n".join(heading + lines), figures)
    plt.close("all")


if __name__ == "__main__":
    sys.exit(main())
