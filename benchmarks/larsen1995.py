"""Larsen & Hansen 1995: Table 1, Figure 1, linear unlearning, the comparison of two models, and the best fraction to
leave out, all for their linear model. The same for a network of 20 units is in larsen1995_network.py.

    python benchmarks/larsen1995.py            # about two minutes
    python benchmarks/larsen1995.py --quick    # few data sets; writes nothing

prints the results and writes them, with the figures, to benchmarks/results/. Only public names of jaxgen are used.
"""

import argparse
import math
import platform
import resource
import time
from pathlib import Path

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
from quiet import Watch, publish

import jaxgen as jg
from jaxgen import algebraic, learn, resample, simulate
from jaxgen.stats import compare, estimate

RESULTS = Path(__file__).parent / "results"
SETS, SOME, N, P, FRACTION, RESAMPLES, NOISE = 30_000, 500, 20, 10, 0.25, 500, 32.45
MEASURES = ("avr", "tavr", "med", "std", "mad", "iqr")
PAPER = {
    "FPE": (-62.0, -19.3, -12.3, -5.83, 19.7),
    "avr": (-24.0, -15.5, -7.00, 2.27, 6.72),
    "tavr": (-23.5, -15.2, -6.47, 2.38, 7.05),
    "med": (-23.2, -15.3, -6.47, 3.36, 9.31),
    "std": (44.6, 49.9, 53.8, 62.9, 89.4),
    "mad": (21.6, 29.9, 40.7, 51.4, 83.6),
    "iqr": (20.1, 28.6, 40.3, 53.2, 89.4),
}
LINEAR = learn.LeastSquares(intercept=False)
UNLEARNT = {20: (0.05, 0.1, 0.25, 0.4), 100: (0.01, 0.05, 0.1, 0.25, 0.5), 500: (0.002, 0.05, 0.1, 0.25, 0.5)}
"""Fractions left out with which linear unlearning is tried, by the number of cases."""
APPROXIMATIONS = {
    "linear unlearning": algebraic.infinitesimal_jackknife,
    "one Newton step": algebraic.newton_step,
}
"""Functions of a fit to all cases and a plan; linear unlearning is the infinitesimal jackknife of the weights."""


def true_generalization(system, inputs=None):
    """Exact G of the fit to all cases of every data set, [Q], and the losses of these fits."""
    data = system.data if inputs is None else system.data.select(inputs)
    fits = jg.assess(jax.random.key(0), LINEAR, data, resample.full(N))
    return system.generalization(fits.info["weights"][:, 0, :, 0], inputs), fits


def first(system, sets):
    """The first data sets of a system, with their axis Q."""
    return jg.Data(system.data.x[:sets], system.data.y[:sets], system.data.names)


def table_1(truth, fits, empirical):
    """Deviations from the true measures in percent: for FPE [Q], for the leave-out measures [500]."""
    true = estimate.summary(truth).log1p
    return {"FPE": 100 * (algebraic.fpe(fits, P, transform="log1p") / true.avr - 1)} | deviations(truth, empirical)


def deviations(truth, empirical):
    """Deviations of the measures of log(1 + G) by leave-out from those of the true G [Q], percent, [sets] each."""
    true, found = estimate.summary(truth).log1p, estimate.summary(empirical).log1p
    return {name: 100 * (getattr(found, name) / getattr(true, name) - 1) for name in MEASURES}


def show_table(found):
    lines = [
        "Table 1: deviation from the true measure of log(1+G), percent; the paper's line above ours",
        f"{'':6}{'min':>9}{'25 %':>9}{'median':>9}{'75 %':>9}{'max':>9}",
    ]
    for name, values in found.items():
        for who, row in (("paper", PAPER[name]), ("ours", np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))):
            lines.append(f"{name if who == 'paper' else '':6}" + "".join(f"{v:9.3g}" for v in row) + f"   {who}")
    return lines


def data_sets_behind(found):
    """How many independent data sets would have the paper's range: where half of all such samples lie within it."""
    random = np.random.default_rng(0)
    lines = [
        "How many independent data sets would explain the paper's ranges of the leave-out rows? The "
        "share of our 500 sets within each range, the number of sets"
    ]
    lines.append(
        "that lie within it with an even chance, the central 95 % of medians of so many sets with "
        "the paper's median, and the chance that 500 sets lie within it:"
    )
    for name in MEASURES:
        low, _, median, _, high = PAPER[name]
        inside = np.mean((found[name] >= low) & (found[name] <= high))
        sets = np.log(0.5) / np.log(inside)
        medians = np.quantile(
            np.median(random.choice(found[name], (4000, max(1, round(sets)))), axis=1), [0.025, 0.975]
        )
        lines.append(
            f"  {name:5}{inside:7.1%}{sets:6.1f} sets   medians {medians[0]:6.1f} to {medians[1]:5.1f}, "
            f"paper {median:5.1f}   {inside**SOME:.0e}"
        )
    return lines


def leaving_out(n, fraction, resamples):
    """A plan for every data set of n cases: each case once where the fraction is that of one case, and no more splits
    than there are.
    """
    if round(fraction * n) <= 1:
        return resample.leave_one_out(n)
    most = math.comb(n, math.ceil(fraction * n))
    return resample.leave_out(jax.random.key(3), n, fraction, min(resamples, most))


def unlearn(learner, data, fractions, resamples, methods=APPROXIMATIONS, damping=0.0):
    """Approximate leave-out beside retraining, on every data set of `data` [Q]: a row for each fraction and method.

    Each row of a plan is retrained with the random start of the fit to all cases. Returns dictionaries: cases left
    out; medians over the data sets of the error |G unlearnt - G retrained|, of how much leaving out changes G at all,
    and of the deviation of the average of G over the rows from that of retraining; seconds for one row by both.
    """
    fits, rows = algebraic.full_fit(jax.random.key(0), learner, data).damped(damping), []
    for fraction in fractions:
        plan = leaving_out(data.n, fraction, resamples)
        retrained = jg.assess(jax.random.key(0), learner, data, plan)
        slow = seconds(lambda plan=plan: jg.assess(jax.random.key(0), learner, data[0], plan)) / plan.resamples
        for name, method in methods.items():
            made = [method(fits[q], plan) for q in range(data.sets)]
            checks = [algebraic.against_retraining(jax.random.key(4), one, share=1.0) for one in made]
            average = np.array([one.losses.g.mean() for one in made])
            fast = seconds(lambda method=method, plan=plan: method(fits[0], plan)) / plan.resamples
            rows.append(
                {
                    "cases": data.n,
                    "left out": int(plan.test[0].sum()),
                    "method": name,
                    "error": np.median([check.estimate for check in checks]),
                    "change": np.median([check.parts["median_change"] for check in checks]),
                    "average": np.median(average / retrained.g.mean(1) - 1),
                    "retraining": slow,
                    "unlearning": fast,
                }
            )
    return rows


def seconds(call, rounds=5):
    """Median time of a call that has been made once before."""
    call()
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken))


def show_unlearning(rows, sets, resamples):
    yield (
        f"Linear unlearning beside retraining, {sets} data sets, {resamples} splits of each fraction, or as "
        "many as there are (with 1 case left out, every case once). error: median of |G unlearnt - G retrained|;"
    )
    yield (
        "change: median of |G retrained - G of the fit to all cases|, which unlearning is there to find; average: "
        "deviation of avr(G) over the splits; times: one data set, a row, compiled before."
    )
    yield (
        f"{'left out':>11}  {'method':20}{'error':>9}{'change':>9}{'error/change':>14}{'average':>10}"
        f"{'retraining':>13}{'unlearning':>13}{'faster':>9}"
    )
    for row in rows:
        yield (
            f"{row['left out']:4} of {row['cases']:<3}  {row['method']:20}{row['error']:9.2g}{row['change']:9.2g}"
            f"{row['error'] / row['change']:14.1%}{row['average']:10.1%}{row['retraining'] * 1e6:10.1f} us"
            f"{row['unlearning'] * 1e6:10.1f} us{row['retraining'] / row['unlearning']:8.1f}x"
        )


def leave_one_out(sets):
    """Lines on the average of leave-one-out by linear unlearning, beside exact leave-one-out, FPE and the truth."""
    yield (
        f"Leave-one-out, means over {sets} data sets (standard errors). Linear unlearning in the closed form of "
        "Hansen & Larsen 1996 is the mean of e^2 (1 + h) / (1 - h), exact leave-one-out that of e^2 / (1 - h)^2."
    )
    columns = ("true avr(G)", "new targets, same inputs", "unlearning", "exact leave-one-out", "FPE")
    yield f"{'':34}" + "".join(f"{name:>26}" for name in columns)
    for rho, name in ((0.6518, "cases correlated in time, 0.6518"), (0.0, "independent cases")):
        system = simulate.linear_ar(jax.random.key(1995), sets, N, P, rho, NOISE)
        truth, whole = true_generalization(system)
        fits = algebraic.full_fit(jax.random.key(0), LINEAR, system.data)
        found = (algebraic.unlearning(fits).estimate, algebraic.leave_one_out(fits).estimate, algebraic.fpe(whole, P))
        cells = [f"{values.mean():.1f} ({values.std(ddof=1) / np.sqrt(sets):.1f})" for values in (truth, *found)]
        cells.insert(1, f"{NOISE * (1 + P / N):.1f}")
        yield f"  {name:32}" + "".join(f"{cell:>26}" for cell in cells)
    yield (
        "  The closed form is for new targets at the same inputs, as FPE is, and not for G. Exact leave-one-out is for "
        "G after 19 cases; it is too low only where cases are correlated in time, since neighbours of"
    )
    yield "  the case that is left out, which are like it, stay in the training set."


def compare_models(contributions, keys, sets=4000, some=SOME, resamples=RESAMPLES):
    """The model with 10 inputs against that with 9, which is incomplete, on random systems scaled to a given
    contribution of the 10th.
    """
    rows = []
    for contribution in contributions:
        for key in keys:
            drawn = simulate.linear_ar(key, None, N, P)
            scale = contribution * np.linalg.inv(drawn.covariance)[-1, -1] / drawn.weights[-1] ** 2
            system = simulate.linear_ar(key, sets, N, P, noise=NOISE, covariance=scale * drawn.covariance)
            nine = list(range(P - 1))
            truth = [true_generalization(system, inputs)[0] for inputs in (None, nine)]
            data = first(system, some)
            plan = resample.leave_out(jax.random.fold_in(key, 1), N, FRACTION, resamples, sets=some)
            ten, less = (jg.assess(jax.random.key(0), LINEAR, d, plan) for d in (data, data.select(nine)))
            true = np.mean(truth[1] > truth[0])
            bias = np.mean(compare.probability_greater(ten, less)) / true - 1
            rates = (
                np.mean(test(ten, less, alternative="less").p_value < 0.05)
                for test in (compare.paired_t, compare.corrected_t)
            )
            rows.append((contribution, np.mean(truth[1] - truth[0]), true, bias, *rates))
    return rows


def show_comparison(rows, some=SOME, resamples=RESAMPLES):
    lines = [
        "Two models, 10 inputs against 9, which are an incomplete model: "
        f"{some} data sets of each random system, leave-out with J = {resamples}. How often is the hypothesis",
        "G(9) > G(10) rejected at 5 %, by the paper's t-test (eq. 9; the paper: "
        "about 30 %) and by the corrected one; relative bias of Prob(G(9) > G(10)) (the paper: "
        "-20 %).",
        "The answer depends on H and w0, which the paper does not give, only through what the "
        "missing input contributes: w0^2 x its variance given the others.",
        f"{'contribution':>14}{'/ noise':>9}{'true difference':>17}{'true Prob':>11}"
        f"{'bias':>8}{'eq. 9':>8}{'corrected':>11}",
    ]
    for contribution, difference, true, bias, naive, corrected in rows:
        lines.append(
            f"{contribution:14.3g}{contribution / NOISE:9.2f}{difference:17.1f}{true:11.3f}"
            f"{bias:8.1%}{naive:8.1%}{corrected:11.1%}"
        )
    positive = [row for row in rows if row[1] > 0] or rows
    near = min(positive, key=lambda row: abs(row[4] - 0.3))
    lines.append(
        "  nearest to 30 % where the true difference is positive, as in the paper: "
        f"{near[4]:.1%}, with bias {near[3]:.1%}, at a contribution of {near[0]:g}"
    )
    return lines


def mean_square_error(n, train, p=P, kurtosis=3.0):
    """Exact E[(G^ - G)^2] / noise^2 of the hold-out estimate: iid Gaussian inputs and noise, squared loss.

    G = 1 + X with X the ratio of independent chi-squares of p and train - p + 1 degrees of freedom; given the fit, an
    error is Gaussian with variance G, so its square has variance 2 G^2.
    """
    if kurtosis != 3.0:
        raise ValueError("exact for Gaussian noise only")
    m = train - p
    mean, square = p / (m - 1), p * (p + 2) / ((m - 1) * (m - 3))
    return 2 * (1 + 2 * mean + square) / (n - train)


def best_fractions(n, p=P, kurtosis=3.0):
    """Best gamma: asymptotic with the corrected beta, by the finite-N formula, and exact."""
    asymptotic = 1 - np.sqrt(4 * p / (kurtosis - 1) / n)
    finite = 1 - (-4 * p + np.sqrt(16 * p**2 + 4 * p * n * (kurtosis - 1))) / (kurtosis - 1) / n
    train = np.arange(p + 4, n)
    return asymptotic, finite, 1 - train[np.argmin(mean_square_error(n, train, p))] / n


def simulated_mean_square_error(n, trains, sets=4000):
    """The same by training: one plan whose rows train on the first cases and test on the rest; value and standard
    error, [R].
    """
    system = simulate.linear_ar(jax.random.key(2), sets, n, P, rho=0.0, noise=1.0)
    train = (np.arange(n)[None] < np.asarray(trains)[:, None]).astype(np.uint8)
    fits = jg.assess(jax.random.key(0), LINEAR, system.data, resample.from_weights(train, 1 - train))
    square = (fits.g - system.generalization(fits.info["weights"][..., 0])) ** 2
    return square.mean(0), square.std(0, ddof=1) / np.sqrt(sets)


def show_fractions():
    lines = [
        "Best fraction to leave out, gamma: the paper's beta = 4 p s2 / (1 - xi) is negative; it must be 4 p / (xi - 1)"
    ]
    lines.append(
        "  finite N: Nt = (-4p + sqrt(16 p^2 + 4 p N (xi - 1))) / (xi - 1), gamma = 1 - Nt / N; "
        "exact: minimum of E[2 G^2] / Nc by the F law"
    )
    for n in (50, 100, 200, 1000, 10_000):
        asymptotic, finite, exact = best_fractions(n)
        lines.append(
            f"  N = {n:6}: asymptotic {asymptotic:.3f} (Nt {n * (1 - asymptotic):5.0f}), finite N "
            f"{finite:.3f} ({n * (1 - finite):5.0f}), exact {exact:.3f} ({n * (1 - exact):5.0f})"
        )
    return lines


def leave_out_shares(empirical, grid):
    """Quartiles over the data sets of the distribution function by leave-out of log(1 + G) at the grid, [3, grid]."""
    ordered = np.sort(np.log1p(empirical.g), axis=1)
    shares = [np.searchsorted(row, grid, side="right") / empirical.resamples for row in ordered]
    return np.quantile(shares, [0.25, 0.5, 0.75], axis=0)


def figure_1(truth, empirical, path):
    """Both panels of the paper's Figure 1."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    grid = np.linspace(2.4, 7, 400)
    true = estimate.ecdf(np.log1p(truth))
    left.plot(true.values, true.probability, color="black", label="true")
    low, middle, high = leave_out_shares(empirical, grid)
    left.plot(grid, middle, "--", color="#0072B2", label="leave-out, median of 500 sets")
    left.plot(grid, low, ":", color="#0072B2", label="leave-out, quartiles")
    left.plot(grid, high, ":", color="#0072B2")
    left.axvline(np.log1p(NOISE), color="grey", linestyle="--", linewidth=1)
    left.set(
        title="Distribution function",
        xlabel="log(1 + G), squared loss",
        ylabel="probability",
        xlim=(grid[0], grid[-1]),
        ylim=(0, 1),
    )
    left.legend(frameon=False, loc="lower right")
    reach = np.linspace(NOISE, 250, 500)
    right.hist(truth, bins=np.linspace(NOISE, 250, 120), density=True, color="#cccccc")
    scale = NOISE * P / (N - P + 1)
    right.plot(
        reach,
        scipy.stats.f.pdf((reach - NOISE) / scale, P, N - P + 1) / scale,
        color="black",
        label="exact law for independent cases",
    )
    for value, style, label in (
        (NOISE, "--", "least G"),
        (truth.mean(), "-", "average"),
        (np.median(truth), ":", "median"),
    ):
        right.axvline(value, color="#D55E00", linestyle=style, linewidth=1.5, label=f"{label} {value:.1f}")
    right.set(
        title=f"Density of true G, {SETS:,} sets (largest {truth.max():.0f})",
        xlabel="G, squared loss",
        ylabel="density",
        xlim=(20, 250),
    )
    right.legend(frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def figure_fraction(path, n=100):
    """MSE(gamma) of the hold-out estimate, exact and by training, with the three best fractions."""
    trains = np.array([15, 18, 21, 24, 28, 32, 36, 40, 45, 50, 56, 62, 70, 78, 86])
    value, error = simulated_mean_square_error(n, trains)
    curve = np.arange(15, 95)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.plot(1 - curve / n, mean_square_error(n, curve), color="black", label="exact (F law)")
    axes.errorbar(1 - trains / n, value, error, fmt="o", color="#0072B2", markersize=4, label="4000 trained data sets")
    for gamma, label, style in zip(
        best_fractions(n), ("asymptotic", "finite N", "exact"), (":", "--", "-"), strict=True
    ):
        axes.axvline(gamma, linestyle=style, color="#D55E00", linewidth=1, label=f"best fraction, {label}: {gamma:.2f}")
    axes.set(
        xlabel="fraction left out, gamma",
        ylabel="MSE(gamma) / noise variance squared",
        title=f"N = {n}, p = {P}",
        ylim=(0, 0.35),
    )
    axes.legend(facecolor="white", edgecolor="none", framealpha=1)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    worst = np.max(np.abs(value - mean_square_error(n, trains)) / error)
    return [
        f"  trained against exact MSE at {len(trains)} fractions, N = {n}: "
        f"largest deviation {worst:.1f} standard errors"
    ]


def main():
    parser = argparse.ArgumentParser(description="Larsen & Hansen 1995, for their linear model.")
    parser.add_argument("--quick", action="store_true", help="few data sets; writes nothing")
    quick = parser.parse_args().quick
    matplotlib.use("Agg")
    sets, some, resamples = (2000, 40, 100) if quick else (SETS, SOME, RESAMPLES)
    start = time.perf_counter()
    system = simulate.linear_ar(jax.random.key(1995), sets, N, P, noise=NOISE)
    truth, fits = true_generalization(system)
    plan = resample.leave_out(jax.random.key(1), N, FRACTION, resamples, sets=some)
    empirical = jg.assess(jax.random.key(0), LINEAR, first(system, some), plan)
    table = table_1(truth, fits, empirical)
    taken = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    heading = [
        f"Larsen & Hansen 1995: Q = {sets}, q = {some}, N = {N}, p = {P}, fraction {FRACTION}, J = "
        f"{resamples}; seeds 1995, 1, 2",
        f"{sets + some * resamples:,} fits and Table 1 in {taken:.1f} s, compilation included; "
        f"peak memory {memory:.2f} GiB; "
        f"{platform.processor() or platform.machine()}, {len(jax.local_devices())} "
        f"{jax.local_devices()[0].device_kind}, Python {platform.python_version()}, JAX "
        f"{jax.__version__}",
        f"true: avr(G) {truth.mean():.2f}, median {np.median(truth):.2f}, largest {truth.max():.0f}; least {NOISE}",
        "p(G) of a network on such data: larsen1995_network.txt",
    ]
    few, splits, keys = (4, 50, 1) if quick else (50, 500, 2)
    compared = compare_models(
        (10,) if quick else (0.1, 3, 6, 10, 15, 20, 30, 50, 100),
        jax.random.split(jax.random.key(9), keys),
        *((400, some, resamples) if quick else ()),
    )
    watch, unlearnt = Watch(), []
    for n, fractions in list(UNLEARNT.items())[: 1 if quick else None]:
        data = simulate.linear_ar(jax.random.key(1995), few, n, P, noise=NOISE).data
        unlearnt += unlearn(LINEAR, data, fractions, splits)
        watch.look()
    sections = [
        heading,
        show_table(table),
        data_sets_behind(table),
        leave_one_out(200 if quick else 5000),
        [*show_unlearning(unlearnt, few, splits), watch.line()],
        show_comparison(compared, some, resamples),
        show_fractions() + ([] if quick else figure_fraction(RESULTS / "larsen1995_fraction.png")),
    ]
    text = "\n\n".join("\n".join(lines) for lines in sections)
    print(text)
    if not quick:
        figure_1(truth, empirical, RESULTS / "larsen1995_figure1.png")
        publish("larsen1995.txt", text)


if __name__ == "__main__":
    main()
