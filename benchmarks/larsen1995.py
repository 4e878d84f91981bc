"""Larsen & Hansen 1995: Table 1, Figure 1, the comparison of two models, and the best fraction to leave out.

    python benchmarks/larsen1995.py

prints the results and writes them, with the figures, to benchmarks/results/. Only public names of jaxgen are used.
"""

import platform
import resource
import time
from pathlib import Path

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import scipy.stats

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
    true, found = estimate.summary(truth).log1p, estimate.summary(empirical).log1p
    deviations = {"FPE": algebraic.fpe(fits, P, transform="log1p") / true.avr - 1}
    deviations |= {name: getattr(found, name) / getattr(true, name) - 1 for name in MEASURES}
    return {name: 100 * values for name, values in deviations.items()}


def show_table(deviations):
    lines = [
        "Table 1: deviation from the true measure of log(1+G), percent; the paper's line above ours",
        f"{'':6}{'min':>9}{'25 %':>9}{'median':>9}{'75 %':>9}{'max':>9}",
    ]
    for name, values in deviations.items():
        for who, row in (("paper", PAPER[name]), ("ours", np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))):
            lines.append(f"{name if who == 'paper' else '':6}" + "".join(f"{v:9.3g}" for v in row) + f"   {who}")
    return lines


def data_sets_behind(deviations):
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
        inside = np.mean((deviations[name] >= low) & (deviations[name] <= high))
        sets = np.log(0.5) / np.log(inside)
        medians = np.quantile(
            np.median(random.choice(deviations[name], (4000, max(1, round(sets)))), axis=1), [0.025, 0.975]
        )
        lines.append(
            f"  {name:5}{inside:7.1%}{sets:6.1f} sets   medians {medians[0]:6.1f} to {medians[1]:5.1f}, "
            f"paper {median:5.1f}   {inside**SOME:.0e}"
        )
    return lines


def compare_models(contributions, keys):
    """The model with 10 inputs against that with 9, which is incomplete, on random systems scaled to a given
    contribution of the 10th.
    """
    rows = []
    for contribution in contributions:
        for key in keys:
            drawn = simulate.linear_ar(key, None, N, P)
            scale = contribution * np.linalg.inv(drawn.covariance)[-1, -1] / drawn.weights[-1] ** 2
            system = simulate.linear_ar(key, 4000, N, P, noise=NOISE, covariance=scale * drawn.covariance)
            nine = list(range(P - 1))
            truth = [true_generalization(system, inputs)[0] for inputs in (None, nine)]
            data = first(system, SOME)
            plan = resample.leave_out(jax.random.fold_in(key, 1), N, FRACTION, RESAMPLES, sets=SOME)
            ten, less = (jg.assess(jax.random.key(0), LINEAR, d, plan) for d in (data, data.select(nine)))
            true = np.mean(truth[1] > truth[0])
            bias = np.mean(compare.probability_greater(ten, less)) / true - 1
            rates = (
                np.mean(test(ten, less, alternative="less").p_value < 0.05)
                for test in (compare.paired_t, compare.corrected_t)
            )
            rows.append((contribution, np.mean(truth[1] - truth[0]), true, bias, *rates))
    return rows


def show_comparison(rows):
    lines = [
        "Two models, 10 inputs against 9, which are an incomplete model: "
        "500 data sets of each random system, leave-out with J = 500. How often is the hypothesis",
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
    positive = [row for row in rows if row[1] > 0]
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


def figure_1(truth, empirical, path):
    """Both panels of the paper's Figure 1."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    grid = np.linspace(2.4, 7, 400)
    true = estimate.ecdf(np.log1p(truth))
    left.plot(true.values, true.probability, color="black", label="true")
    shares = np.stack([np.searchsorted(np.sort(np.log1p(g)), grid, side="right") / RESAMPLES for g in empirical.g])
    low, middle, high = np.quantile(shares, [0.25, 0.5, 0.75], axis=0)
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
    matplotlib.use("Agg")
    start = time.perf_counter()
    system = simulate.linear_ar(jax.random.key(1995), SETS, N, P, noise=NOISE)
    truth, fits = true_generalization(system)
    plan = resample.leave_out(jax.random.key(1), N, FRACTION, RESAMPLES, sets=SOME)
    empirical = jg.assess(jax.random.key(0), LINEAR, first(system, SOME), plan)
    deviations = table_1(truth, fits, empirical)
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    heading = [
        f"Larsen & Hansen 1995: Q = {SETS}, q = {SOME}, N = {N}, p = {P}, fraction {FRACTION}, J = "
        f"{RESAMPLES}; seeds 1995, 1, 2",
        f"{SETS + SOME * RESAMPLES:,} fits and Table 1 in {seconds:.1f} s, compilation included; "
        f"peak memory {memory:.2f} GiB; "
        f"{platform.processor() or platform.machine()}, {len(jax.local_devices())} "
        f"{jax.local_devices()[0].device_kind}, Python {platform.python_version()}, JAX "
        f"{jax.__version__}",
        f"true: avr(G) {truth.mean():.2f}, median {np.median(truth):.2f}, largest {truth.max():.0f}; least {NOISE}",
    ]
    figure_1(truth, empirical, RESULTS / "larsen1995_figure1.png")
    sections = [
        heading,
        show_table(deviations),
        data_sets_behind(deviations),
        show_comparison(compare_models((0.1, 3, 6, 10, 15, 20, 30, 50, 100), jax.random.split(jax.random.key(9), 2))),
        show_fractions() + figure_fraction(RESULTS / "larsen1995_fraction.png"),
    ]
    text = "\n\n".join("\n".join(lines) for lines in sections) + "\n"
    print(text, end="")
    (RESULTS / "larsen1995.txt").write_text(text)


if __name__ == "__main__":
    main()
