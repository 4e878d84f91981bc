"""Varfis & Corleto 1994: are their learning-curve estimators of the error better than the .632 bootstrap?

    python benchmarks/varfis1994.py                  # simulated land cover, on a page varfis1994.txt
    python benchmarks/varfis1994.py --data FOLDER    # real pixels, crop-formosat2.npz and satimage.npz if they are
                                                     # there, on a page varfis1994_pixels.txt
    python benchmarks/varfis1994.py --quick          # small, on simulated data; writes nothing
    python benchmarks/varfis1994.py --resume         # goes on where a run of the same code was stopped

prints the tables and writes them, with figures, to benchmarks/results/. Only public names of jaxgen are used.

The paper trains networks with 6 inputs, 6 hidden units and 20 outputs on 1000 of 3800 pixels, 20 times, and estimates
their error by B = 50 resamplings. It does not tell how they were trained, nor the unit of its table. Here 6 tanh units
are trained by conjugate gradients, once with logistic outputs and squared error, as was usual in 1994, and once with
softmax and cross-entropy; by few iterations, so that 500 training sets are done in minutes. R is the risk of the
network trained on all n cases, ER its mean over training sets; ACE and UMSE are the mean squared errors of an estimator
for R and for ER.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import quiet
import scipy.stats
from kept_parts import kept_part
from speed import machine
from statsmodels.stats.multitest import multipletests

import jaxgen as jg
from jaxgen import datasets, learn, loss, resample, simulate
from jaxgen.stats import estimate

RESULTS = Path(__file__).parent / "results"
HIDDEN, STEPS, SEED, RESERVOIR, PART = 6, 30, 1994, 20_000, 50
LOSSES = {"squared error": loss.squared, "misclassification": loss.zero_one}
ESTIMATORS = {"L_alpha": "L_α", "L_beta": "L_β", "L_alpha_beta": "L_αβ"}
Table = Any
"""A pandas.DataFrame: of the kinds of its columns a checker of types knows nothing."""
SETS = 500
"""Training sets of each source for each of the `networks`."""
SCALE = 1e4
"""Mean squared errors are multiplied by it in tables and figures."""
PAPER = {  # Table 1: ACE, its standard error, squared bias, UMSE, its standard error; in a unit that it does not tell
    ("L_alpha", 500): (3.09, 0.76, 0.00, 1.54, 0.34),
    ("L_alpha", 632): (3.78, 0.97, 0.03, 2.11, 0.54),
    ("L_alpha", 870): (3.61, 0.80, 0.03, 2.06, 0.51),
    ("L_beta", 500): (2.87, 0.81, 0.02, 2.00, 0.65),
    ("L_beta", 632): (2.80, 0.80, 0.00, 2.00, 0.67),
    ("L_beta", 870): (2.82, 0.82, 0.04, 2.24, 0.69),
    ("L_alpha_beta", 500): (2.47, 0.60, 0.01, 1.26, 0.33),
    ("L_alpha_beta", 632): (2.81, 0.73, 0.01, 1.58, 0.43),
    ("L_alpha_beta", 870): (2.75, 0.68, 0.00, 1.68, 0.46),
    (".632", 632): (2.68, 0.75, 0.13, 1.68, 0.55),
}


class LogisticOutputs(nn.Module):
    """Tanh units and logistic outputs; cases are the last axis inside, which is quicker for many networks at once."""

    hidden: int
    outputs: int

    @nn.compact
    def __call__(self, x):
        """Outputs [n, K] of inputs [n, D]; the start is Glorot's, with outputs near the share of a class."""
        start = nn.initializers.glorot_uniform(in_axis=-1, out_axis=-2)
        first = self.param("first", start, (self.hidden, x.shape[1]))
        second = self.param("second", start, (self.outputs, self.hidden))
        first_bias = self.param("first_bias", nn.initializers.zeros, (self.hidden,))
        share = -np.log(self.outputs - 1.0)
        second_bias = self.param("second_bias", nn.initializers.constant(share), (self.outputs,))
        h = jnp.tanh(first @ x.T + first_bias[:, None])
        return (0.5 + 0.5 * jnp.tanh((second @ h + second_bias[:, None]) / 2)).T


def networks(classes: int, steps: int) -> dict[str, Any]:
    """Both learners, by name."""
    softmax = learn.Conjugate(learn.MLP((HIDDEN,), init="glorot"), steps=steps, objective="softmax_cross_entropy")
    squared = learn.Conjugate(LogisticOutputs(HIDDEN, classes), steps=steps, objective="squared")
    return {
        "logistic outputs, squared error": learn.Normalised(squared, how="standard"),
        "softmax, cross-entropy": learn.Normalised(softmax, how="standard"),
    }


@dataclass(frozen=True)
class Source:
    """Where training sets come from.

    Attributes:
      name, about: what it is, in a word and in a line.
      classes: K.
      draw: (start, sets, n) to data whose first n cases of each set are the training set, and whose others are to
        measure its risk on, x [sets, n + M, D]; `start` is the number of the first set.
      sets: training sets for each of the `networks`.
    """

    name: str
    about: str
    classes: int
    draw: Callable[[int, int, int], jg.Data]
    sets: int


@dataclass(frozen=True)
class Size:
    """How much is done: cases of a training set, training sizes of the resamplings, resamplings, training sets of a
    part, the training sizes and sets of the learning curve, and iterations of each training.
    """

    n: int = 1000
    sizes: tuple[int, ...] = (500, 632, 870)
    resamples: int = 50
    part: int = PART
    curve: tuple[int, ...] = (250, 354, 500, 707, 1000, 1414, 2000)
    curve_sets: int = 40
    steps: int = STEPS


QUICK = Size(200, (100, 126, 174), 30, 6, (50, 100, 200, 400), 6, 30)


def simulated(sets: int, reservoir: int = RESERVOIR) -> Source:
    """Training sets of one scene of `simulate.land_cover`, and its reservoir."""
    known = simulate.land_cover(jax.random.key(0), None, 1, scene=jax.random.key(SEED), reservoir=reservoir)
    fresh = known.reservoir

    def draw(start, sets, n):
        key = jax.random.fold_in(jax.random.key(SEED), start)
        own = simulate.land_cover(key, sets, n, scene=jax.random.key(SEED), reservoir=2).data
        x, y = (
            np.concatenate([mine, np.broadcast_to(rest, (sets, *rest.shape))], axis=1)
            for mine, rest in ((own.x, fresh.x), (own.y, fresh.y))
        )
        return jg.Data(x, y, own.names, "cover", "classification", own.classes)

    about = (
        f"simulate.land_cover, 20 classes and 6 inputs, scene {SEED}; R from a reservoir of {reservoir:,} cases, the "
        f"best rule errs in {known.error:.3f}"
    )
    return Source("simulated", about, 20, draw, sets)


def pixels(name: str, about: str, x: np.ndarray, labels: np.ndarray) -> Source:
    """Training sets drawn without replacement from pixels x [M, D], as in the paper; the others are to measure R."""
    whole = datasets.from_arrays(x.astype(float), labels.astype(str), task="classification")

    def draw(start, sets, n):
        random = np.random.default_rng([SEED, start])
        order = np.stack([random.permutation(whole.n) for _ in range(sets)])
        return jg.Data(whole.x[order], whole.y[order], whole.names, "cover", "classification", whole.classes)

    return Source(name, f"{about}; R from the cases outside the training set", whole.y.shape[-1], draw, SETS)


def real(folder: Path) -> list[Source]:
    """The real data that are in a folder; says what is left out."""
    found = []
    crop, satimage = folder / "crop-formosat2.npz", folder / "satimage.npz"
    for file in (crop, satimage):
        if not file.exists():
            print(f"{file.stem} is left out: there is no file {file}.")
    if crop.exists():
        file, random = np.load(crop), np.random.default_rng(SEED)
        places = [np.flatnonzero(file["first_unique"] & (file["y"] == c)) for c in range(1, 21)]
        chosen = np.concatenate([random.choice(each, 190, replace=False) for each in places])
        about = "6 dates of FORMOSAT-2, 20 crops, 190 pixels each, none twice: 3800 as in the paper"
        x = file["X"][chosen][:, [3, 11, 19, 27, 35, 43]]
        found.append(pixels("crop-formosat2", about, x, file["y"][chosen]))
    if satimage.exists():
        file = np.load(satimage)
        about = "4 channels of Landsat, the central pixel only, 6 classes, 6435 pixels"
        found.append(pixels("satimage", about, file["X"][:, 16:20], file["y"]))
    return found


def cases(pools: jg.Data, n: int) -> jg.Data:
    """The training sets of pools: the first n cases."""
    return jg.Data(pools.x[:, :n], pools.y[:, :n], pools.names, pools.target, pools.task, pools.classes)


def first(sizes: tuple[int, ...], total: int, rest: int) -> jg.Plan:
    """One row for each size, which trains on so many of the first cases and tests on those from `rest` on."""
    case = np.arange(total)
    train = (case < np.array(sizes)[:, None]).astype(np.uint8)
    return resample.from_weights(train, np.broadcast_to(case >= rest, train.shape).astype(np.uint8))


def risks(key: Any, learner: Any, pools: jg.Data, plan: jg.Plan) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Test and training errors of every row, [Q, R] each, under each loss."""
    found = {}
    for name, function in LOSSES.items():
        rows = jg.assess(key, learner, pools, plan, function, keep="rows")
        found[name] = rows.g, rows.apparent
    return found


def both_losses(key: Any, learner: Any, data: jg.Data, plan: jg.Plan) -> dict[str, jg.Losses]:
    """One training of every row, under each loss."""
    trained = jg.assess(key, learner, data, plan, loss.zero_one, keep="predictions")
    return {"squared error": trained.with_loss(loss.squared, data.y), "misclassification": trained}


def part(source: Source, learner: Any, size: Size, start: int, sets: int) -> Table:
    """One row for each training set and loss: R, A, and every estimate of the error."""
    n = size.n
    pools = source.draw(start, sets, n)
    data = cases(pools, n)
    training, drawing, *others = jax.random.split(jax.random.fold_in(jax.random.key(SEED), start), 2 + len(size.sizes))
    truth = risks(training, learner, pools, first((n,), pools.n, n))  # the same networks as `full`, by the same key
    full = both_losses(training, learner, data, resample.full(n))
    found = {name: {"R": truth[name][0][:, 0], "A": full[name].apparent[:, 0]} for name in LOSSES}
    for name in LOSSES:
        found[name]["retrained"] = np.abs(truth[name][1][:, 0] - full[name].apparent[:, 0])
    for key, kn in zip(others, size.sizes, strict=True):
        order, training_key = jax.random.split(key)
        plan = resample.balanced(order, n, (n - kn) / n, size.resamples)
        for name, losses in both_losses(training_key, learner, data, plan).items():
            options: dict[str, Any] = {"standard_error": "cases"}
            found[name] |= {
                f"L {kn}": losses.g.mean(-1),
                f"A {kn}": losses.apparent.mean(-1),
                f"L_alpha {kn}": estimate.l_alpha(losses, full[name], **options).estimate,
                f"L_beta {kn}": estimate.l_beta(losses, full[name], **options).estimate,
                f"L_alpha_beta {kn}": estimate.l_alpha_beta(losses, **options).estimate,
            }
    order, training_key = jax.random.split(drawing)
    samples = resample.bootstrap(order, n, size.resamples, sets=sets)
    for name, losses in both_losses(training_key, learner, data, samples).items():
        found[name][".632"] = estimate.error_632(losses, full[name], pooling="rows").estimate
        found[name]["out-of-bag"] = estimate.out_of_bag(losses, pooling="rows").estimate
    return pd.concat([pd.DataFrame(values).assign(loss=name) for name, values in found.items()])


def trainings(size: Size, sets: int) -> int:
    """Networks trained for so many training sets: those of which R is measured are trained three times."""
    return sets * (3 + (len(size.sizes) + 1) * size.resamples) + 2 * size.curve_sets * len(size.curve)


def curve(source: Source, learner: Any, size: Size) -> Table:
    """Errors of networks trained on sets of every size, drawn for this alone: rows of loss, n, L, A with their standard
    errors.
    """
    found, most = [], max(size.curve)
    for start in range(0, size.curve_sets, size.part):
        sets = min(size.part, size.curve_sets - start)
        pools = source.draw(10_000_000 + start, sets, most)
        key = jax.random.fold_in(jax.random.key(SEED + 1), start)
        found.append(risks(key, learner, pools, first(size.curve, pools.n, most)))
    rows = []
    for name in LOSSES:
        test, train = (np.concatenate([each[name][i] for each in found]) for i in (0, 1))
        for place, n in enumerate(size.curve):
            numbers = {"n": n, "L": test[:, place].mean(), "A": train[:, place].mean()}
            root = np.sqrt(len(test))
            errors = {"se L": test[:, place].std(ddof=1) / root, "se A": train[:, place].std(ddof=1) / root}
            rows.append({"loss": name} | numbers | errors)
    return pd.DataFrame(rows)


def columns(size: Size) -> dict[str, tuple[str, int]]:
    """The columns of estimates that are compared, with the estimator and its training size."""
    named = {f"{name} {kn}": (name, kn) for kn in size.sizes for name in ESTIMATORS}
    return named | {".632": (".632", round(0.632 * size.n))}


def accuracy(found: Table, size: Size) -> Table:
    """ACE and UMSE of every estimator by network and loss, and p-values of their differences from .632.

    ACE is a mean of squared errors, and so the difference of two is the mean over training sets of the differences of
    squared errors: tested by a t-test, since training sets are independent and so many that their mean is nearly
    normal. A test of ranks would ask another question, squared errors being skewed. ER is taken as known.
    """
    rows = []
    for (network, of_loss), sets in found.groupby(["network", "loss"], sort=False):
        r = sets["R"].to_numpy()
        targets = {"ACE": r, "UMSE": np.full(len(r), r.mean())}
        for column, (name, kn) in columns(size).items():
            values = sets[column].to_numpy()
            row = {"network": network, "loss": of_loss, "estimator": name, "kn": kn, "sets": len(sets), "ER": r.mean()}
            for error, result in (
                ("ACE", estimate.average_conditional_error(values, r)),
                ("UMSE", estimate.unconditional_error(values, r)),
            ):
                square, usual = ((each - targets[error]) ** 2 for each in (values, sets[".632"].to_numpy()))
                row |= {error: float(result.estimate), f"se {error}": float(result.standard_error)}
                row |= {f"{part} {error}": float(result.parts[part]) for part in ("bias", "bias_error", "variance")}
                row[f"ratio {error}"] = square.mean() / usual.mean()
                row[f"p {error}"] = scipy.stats.ttest_rel(square, usual).pvalue if name != ".632" else np.nan
            row["correlation"] = np.corrcoef(values, r)[0, 1]
            rows.append(row)
    table = pd.DataFrame(rows)
    raw = table[["p ACE", "p UMSE"]].to_numpy()
    asked = np.isfinite(raw)
    corrected = np.full(raw.shape, np.nan)
    corrected[asked] = multipletests(raw[asked], method="holm")[1]
    return table.assign(**{"holm ACE": corrected[:, 0], "holm UMSE": corrected[:, 1]})


def shown_p(p: float) -> str:
    """A p-value in few digits."""
    return "" if np.isnan(p) else "<.0001" if p < 1e-4 else f"{p:.4f}"


def tables(accurate: Table) -> list[str]:
    """The lines of a table for each network and loss; the paper's numbers beside those that it measured."""
    lines = []
    for (network, of_loss), part in accurate.groupby(["network", "loss"], sort=False):
        beside = of_loss == "squared error"
        one = part.iloc[0]
        lines += ["", f"{network}; {of_loss}: ER = {one.ER:.4f}, {one.sets} training sets"]
        title = f"{'kn':>5} {'estimator':13}"
        for error in ("ACE", "UMSE"):
            title += f"{error:>7} (se)   bias (se) %  variance  ratio{'  paper' * beside}  p (Holm)"
        lines.append(f"{title}  correlation")
        for _, row in part.iterrows():
            line = f"{row.kn:5} {row.estimator:13}"
            for error, place in (("ACE", 0), ("UMSE", 3)):
                paper = PAPER.get((row.estimator, row.kn))
                ratio = "" if not beside else f"{paper[place] / PAPER['.632', 632][place]:7.2f}" if paper else f"{'':7}"
                line += (
                    f"{SCALE * row[error]:7.2f} ({SCALE * row[f'se {error}']:.2f})"
                    f"{100 * row[f'bias {error}']:7.2f} ({100 * row[f'bias_error {error}']:.2f})"
                    f"{SCALE * row[f'variance {error}']:9.2f}{row[f'ratio {error}']:7.2f}{ratio}"
                    f"{shown_p(row[f'holm {error}']):>10}"
                )
            lines.append(f"{line}{row.correlation:13.2f}")
    return lines


def verdicts(accurate: Table) -> list[str]:
    """How often each estimator is better or worse than .632, by the corrected p-values at 5 %."""
    lines = []
    for network, of_network in accurate.groupby("network", sort=False):
        lines.append(f" {network}, {of_network.sets.iloc[0]} training sets")
        for name in ESTIMATORS:
            part = of_network[of_network.estimator == name]
            for error in ("ACE", "UMSE"):
                sure, ratio = part[f"holm {error}"] < 0.05, part[f"ratio {error}"]
                better, worse = int((sure & (ratio < 1)).sum()), int((sure & (ratio > 1)).sum())
                lines.append(
                    f"  {name:13}{error:5}: better in {better}, worse in {worse}, undecided in "
                    f"{len(part) - better - worse} of {len(part)}; {ratio.min():.2f} to {ratio.max():.2f} times .632's"
                )
    return lines


def laws(found: Table, size: Size) -> Table:
    """The laws fitted to the mean errors of the resamplings at their three sizes, for each network and loss.

    "pair": L = a + b/n and A = a - b/n with one a and b (the paper's eq. 8 and 9), by least squares; "alone": L = a +
    b/n (eq. 8) without the training errors.
    """
    n, rows = np.array(size.sizes, float), []
    for (network, of_loss), sets in found.groupby(["network", "loss"], sort=False):
        test, train = (np.array([sets[f"{which} {kn}"].mean() for kn in size.sizes]) for which in ("L", "A"))
        ones = np.ones(len(n))
        pair = np.linalg.lstsq(np.stack([np.r_[ones, ones], np.r_[1 / n, -1 / n]], -1), np.r_[test, train], rcond=None)[
            0
        ]
        alone = np.linalg.lstsq(np.stack([ones, 1 / n], -1), test, rcond=None)[0]
        about = {"network": network, "loss": of_loss, "test": test, "train": train}
        rows.append(about | {"pair": pair, "alone": alone, "ER": sets["R"].mean(), "A": sets["A"].mean()})
    return pd.DataFrame(rows)


def show_laws(fitted: Table, size: Size) -> list[str]:
    """The fitted laws at n cases beside the truth."""
    lines = [
        f"The laws through the mean errors at kn = {', '.join(map(str, size.sizes))}, at n = {size.n}:",
        f"  {'':33}{'':20}{'ER':>8}{'a + b/n':>9}{'alone':>9}{'A':>8}{'a - b/n':>9}{'b pair':>8}{'b alone':>9}",
    ]
    for _, row in fitted.iterrows():
        (a, b), (alone_a, alone_b) = row.pair, row.alone
        lines.append(
            f"  {row.network:33}{row.loss:20}{row.ER:8.4f}{a + b / size.n:9.4f}{alone_a + alone_b / size.n:9.4f}"
            f"{row.A:8.4f}{a - b / size.n:9.4f}{b:8.1f}{alone_b:9.1f}"
        )
    return lines


def draw_curve(axes: Any, truth: Table, law: pd.Series, sizes: tuple[int, ...], n: int) -> None:
    """One panel: the true learning curve, what the resamplings say, and the laws fitted to that.

    Args:
      truth: of `curve`, for one network and loss.
      law: the row of `laws`.
      sizes, n: training cases of the resamplings, and of all data.
    """
    for which, colour, label in (("L", "#D55E00", "new cases"), ("A", "#0072B2", "training cases")):
        error = 2 * truth[f"se {which}"]
        axes.errorbar(truth.n, truth[which], error, fmt="o", color=colour, markersize=4, label=f"error on {label}")
    grid = np.geomspace(0.9 * truth.n.min(), 1.1 * truth.n.max(), 200)
    (a, b), (alone_a, alone_b) = law.pair, law.alone
    axes.plot(grid, a + b / grid, color="black", linewidth=1.2, label="a ± b/n, fitted to both errors")
    axes.plot(grid, a - b / grid, color="black", linewidth=1.2)
    axes.plot(grid, alone_a + alone_b / grid, "--", color="#009E73", label="a + b/n, fitted to new cases only")
    axes.plot(sizes, law.test, "x", color="black", label="means of resamplings, fitted")
    axes.plot(sizes, law.train, "x", color="black")
    axes.axvline(n, color="0.6", linewidth=0.8, linestyle=":")
    values = np.r_[truth.L, truth.A]
    reach = np.ptp(values)
    axes.set(xscale="log", ylim=(values.min() - 0.15 * reach, values.max() + 0.15 * reach))
    shown = [each for each in truth.n if each in (truth.n.min(), 500, n, truth.n.max())]
    axes.set_xticks(shown, [f"{each}" for each in shown])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)


def figure_curves(truths: dict[str, Table], fitted: Table, size: Size) -> Any:
    """A panel for each loss and network: the learning curve with the fitted laws."""
    figure, axes = plt.subplots(
        len(LOSSES), len(truths), figsize=(10, 7.5), sharex=True, squeeze=False, layout="constrained"
    )
    for row, name in zip(axes, LOSSES, strict=True):
        for panel, (network, truth) in zip(row, truths.items(), strict=True):
            law = fitted[(fitted.network == network) & (fitted.loss == name)].iloc[0]
            draw_curve(panel, truth[truth.loss == name], law, size.sizes, size.n)
            panel.set_title(network, fontsize=10)
            panel.set_ylabel("squared error, all classes" if name == "squared error" else "error rate")
    figure.supxlabel("training cases")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def figure_estimators(accurate: Table) -> Any:
    """ACE and UMSE of every estimator, made of squared bias and variance, as shares of those of .632."""
    panels = list(accurate.groupby(["network", "loss"], sort=False))
    figure, axes = plt.subplots(
        2, (len(panels) + 1) // 2, figsize=(10, 8), sharey=True, squeeze=False, layout="constrained"
    )
    for panel, ((network, of_loss), part) in zip(axes.T.flat, panels, strict=True):
        draw_estimators(panel, part)
        panel.set_title(f"trained: {network}\nmeasured: {of_loss}", fontsize=10)
    for panel in axes[-1]:
        panel.set_xlabel("mean squared error, that of .632 = 1")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return figure


def draw_estimators(panel: Any, part: Table) -> None:
    """One panel: a pair of bars for each estimator, with two standard errors."""
    places = np.arange(len(part))
    usual = part[part.estimator == ".632"].iloc[0]
    for error, shift, colour in (("ACE", -0.2, "#0072B2"), ("UMSE", 0.2, "#E69F00")):
        variance, squared = part[f"variance {error}"] / usual[error], part[f"bias {error}"] ** 2 / usual[error]
        target = "R (ACE)" if error == "ACE" else "ER (UMSE)"
        panel.barh(places + shift, variance, 0.36, color=colour, label=f"variance, for {target}")
        panel.barh(
            places + shift,
            squared,
            0.36,
            left=variance,
            color="white",
            edgecolor=colour,
            hatch="////",
            label=f"squared bias, for {target}",
        )
        panel.errorbar(
            variance + squared,
            places + shift,
            xerr=2 * part[f"se {error}"] / usual[error],
            fmt="none",
            color="black",
            elinewidth=0.8,
        )
    panel.axvline(1, color="0.4", linewidth=0.8, linestyle=":")
    names = [
        f"{ESTIMATORS[row.estimator]}, {row.kn}" if row.estimator in ESTIMATORS else row.estimator
        for row in part.itertuples()
    ]
    panel.set(yticks=places, yticklabels=names, ylim=(len(part) - 0.4, -0.6))
    panel.spines[["top", "right"]].set_visible(False)


def measured(source: Source, size: Size, resume: bool) -> tuple[pd.DataFrame, dict[str, Table], int, float]:
    """All estimates of a source, its learning curves by network, the trainings and the minutes that they took."""
    found, truths, count, minutes = [], {}, 0, 0.0
    for network, learner in networks(source.classes, size.steps).items():
        place = f"varfis1994-{source.name}-{network.replace(', ', '-').replace(' ', '_')}-{size.n}-{size.resamples}"
        truths[network], took = kept_part(f"{place}-curve", partial(curve, source, learner, size), resume)
        minutes += took
        for start in range(0, source.sets, size.part):
            some = min(size.part, source.sets - start)
            frame, took = kept_part(
                f"{place}-{start}-{some}", partial(part, source, learner, size, start, some), resume
            )
            print(f"{source.name}, {network}: {start + some} of {source.sets} sets, {took:.2f} minutes", flush=True)
            found.append(frame.assign(network=network))
            minutes += took
        count += trainings(size, source.sets)
    return pd.concat(found, ignore_index=True), truths, count, minutes


def report(source: Source, size: Size, found: Table, accurate: Table, count: int, minutes: float):
    """The lines of one source."""
    compared = int(accurate[["p ACE", "p UMSE"]].notna().to_numpy().sum())
    return [
        f"{source.name}: {source.about}",
        f"{count:,} trainings in {minutes:.1f} minutes with compilation, {count / minutes / 60:.0f} a second, on a "
        "machine that may have had other work;",
        f"n = {size.n}, B = {size.resamples}; largest difference of A between two trainings of one network "
        f"{found.retrained.max():.1g}",
        *tables(accurate),
        "",
        f"Against .632, p < .05 after Holm's correction for all {compared} comparisons on these data:",
        *verdicts(accurate),
        "",
        *show_laws(laws(found, size), size),
    ]


def main():
    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small, on simulated data; writes nothing")
    parser.add_argument("--resume", action="store_true", help="takes the parts that an earlier run of this code made")
    parser.add_argument("--data", type=Path, help="folder with crop-formosat2.npz and satimage.npz, which are measured")
    chosen = parser.parse_args()
    if chosen.quick and chosen.data:
        parser.error("expected --quick or --data, got both; the small size is of simulated data")
    size = QUICK if chosen.quick else Size()
    sources = real(chosen.data) if chosen.data else [simulated(12, 2000) if chosen.quick else simulated(SETS)]
    if not sources:
        parser.error(f"expected a folder with crop-formosat2.npz or satimage.npz, found neither in {chosen.data}")
    sections, drawn = [], {}
    for source in sources:
        found, truths, count, minutes = measured(source, size, chosen.resume and not chosen.quick)
        accurate = accuracy(found, size)
        sections += ["", *report(source, size, found, accurate, count, minutes)]
        drawn[source.name] = figure_curves(truths, laws(found, size), size), figure_estimators(accurate)
    text = "\n".join(
        [
            machine(),
            "",
            f"Networks of {HIDDEN} tanh units, {size.steps} conjugate gradients on all training cases, inputs "
            f"standardised; seed {SEED}. The paper took more than 5000 trainings for 20 training sets.",
            f"ACE, UMSE and variance are multiplied by {SCALE:g}; squared errors are summed over the classes. ratio:",
            "to that of .632; paper: the same ratio in its Table 1, for the squared error. p: paired t-test of the",
            "squared errors against those of .632 over training sets, corrected by Holm's method over all comparisons",
            "on the same data. correlation: of the estimate with R.",
            *sections,
        ]
    )
    print(text)
    if not chosen.quick:
        quiet.publish("varfis1994_pixels.txt" if chosen.data else "varfis1994.txt", text)
        for name, figures in drawn.items():
            tail = "" if name == "simulated" else f"_{name}"
            for what, figure in zip(("curve", "estimators"), figures, strict=True):
                figure.savefig(RESULTS / f"varfis1994_{what}{tail}.png", dpi=120)


if __name__ == "__main__":
    main()
