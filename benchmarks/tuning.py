"""Tuning, honestly: what it hides to tune outside of the resampling, and whether a penalty for each input pays.

    python benchmarks/tuning.py             # some minutes; the results say how many
    python benchmarks/tuning.py --quick     # half a minute; writes nothing

prints the tables and writes them, with figures, to benchmarks/results/. Only public names of jaxgen are used.
"""

import argparse
import time
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from kept_parts import kept_part
from quiet import Watch, publish
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from speed import machine, medians

import jaxgen as jg
from jaxgen import datasets, learn, resample
from jaxgen.stats import compare

BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
FOLDS = 10
RESERVOIR = 500
"""Cases that no training set has, whose mean loss is the risk of a model within a few percent."""

RIDGES = tuple(10.0 ** (power / 2) for power in range(-4, 7))
KEY = jax.random.key(0)


@dataclass(frozen=True)
class OneInput:
    """Least squares on a single input: a learner of one's own that does all inputs at once when they are compared."""

    number: int = 0

    def fit(self, key, x, y, w):
        return self._line(x, y, w, self.number)

    def predict(self, line, x):
        number, slope, intercept = line
        return jnp.take(x, number, axis=1)[:, None] * slope + intercept

    def shares_along(self, setting):
        return setting == "number"

    def fit_along(self, setting, values, key, x, y, w):
        return jax.vmap(lambda number: self._line(x, y, w, number))(jnp.asarray(values, jnp.int32))

    @staticmethod
    def _line(x, y, w, number):
        x, y = jnp.where(w > 0, jnp.take(x, number, axis=1), 0), jnp.where(w > 0, y[:, 0], 0)
        x_mean, y_mean = w @ x / jnp.sum(w), w @ y / jnp.sum(w)
        slope = w @ ((x - x_mean) * (y - y_mean)) / (w @ jnp.square(x - x_mean))
        return jnp.asarray(number, jnp.int32), slope, y_mean - slope * x_mean


# What is hidden by tuning outside


class Setting(NamedTuple):
    """Training sets of n cases with a reservoir, and a tuned learner."""

    name: str
    data: jg.Data
    n: int
    learner: learn.Tuned


class Row(NamedTuple):
    """Means over data sets, with standard errors of the differences from the risk."""

    name: str
    candidates: int
    risk: float
    naive: float
    naive_error: float
    nested: float
    nested_error: float


def plan_of(n, cases):
    """Ten folds of the first n cases, and a last row that trains on all of them and is tested on the others."""
    folds = np.array_split(np.random.default_rng(0).permutation(n), FOLDS)
    train, test = np.zeros((FOLDS + 1, cases), int), np.zeros((FOLDS + 1, cases), int)
    train[:, :n] = 1
    for row, fold in enumerate(folds):
        train[row, fold], test[row, fold] = 0, 1
    test[-1, n:] = 1
    return resample.from_weights(train, test, "ten folds and a reservoir")


def simulated(sets, n, d, relevant, seed, noise=1.0):
    """Independent normal inputs, of which the first few have a slope of 0.5, and normal noise."""
    random = np.random.default_rng([seed, n, d, relevant])
    x = random.standard_normal((sets, n + RESERVOIR, d))
    y = 0.5 * x[:, :, :relevant].sum(-1, keepdims=True) + noise * random.standard_normal((sets, n + RESERVOIR, 1))
    return jg.Data(x, y, tuple(f"x{i}" for i in range(d)))


def patients(sets, n):
    """Random patients of the diabetes data; the others are the reservoir."""
    data, random = datasets.diabetes(), np.random.default_rng(1)
    orders = np.stack([random.permutation(data.n) for _ in range(sets)])
    x = data.x / data.x.std(0)
    return jg.Data(x[orders], data.y[orders], data.names)


def settings(sets):
    """All of them: from nothing to learn to real data."""
    made = []
    for d in (2, 5, 20, 100):
        one = learn.Tuned(OneInput(), {"number": tuple(range(d))}, by=FOLDS)
        made.append(Setting(f"noise only, the best of {d} single inputs", simulated(sets, 30, d, 0, 2), 30, one))
    one = learn.Tuned(OneInput(), {"number": tuple(range(100))}, by=FOLDS)
    made.append(Setting("noise only, 100 single inputs", simulated(sets, 100, 100, 0, 3), 100, one))
    made.append(Setting("one of 100 inputs counts", simulated(sets, 30, 100, 1, 4), 30, one))
    ridge = learn.Tuned(learn.LeastSquares(), {"ridge": RIDGES}, by=FOLDS)
    made.append(Setting("ridges, 5 of 20 inputs count", simulated(sets, 40, 20, 5, 5), 40, ridge))
    made.append(Setting("diabetes, ridges", patients(sets, 50), 50, ridge))
    near = learn.Tuned(learn.Neighbours(1), {"k": (1, 2, 3, 5, 7, 10, 15, 20, 25, 30)}, by=FOLDS)
    made.append(Setting("diabetes, numbers of neighbours", patients(sets, 50), 50, near))
    return made


def optimism(setting):
    """Tuned outside: the least of the candidates' means over ten folds; nested: the mean over ten folds of a learner
    that is tuned in each.
    """
    losses = jg.assess(KEY, setting.learner, setting.data, plan_of(setting.n, setting.data.n), keep="rows")
    g, criterion = losses.g, losses.info["criterion"]
    risk, nested, naive = g[:, -1], g[:, :FOLDS].mean(1), criterion[:, -1]

    def error(estimate):
        return float(np.std(estimate - risk, ddof=1) / np.sqrt(len(risk)))

    means = (float(values.mean()) for values in (risk, naive, nested))
    risk_mean, naive_mean, nested_mean = means
    return Row(
        setting.name,
        len(setting.learner.candidates),
        risk_mean,
        naive_mean,
        error(naive),
        nested_mean,
        error(nested),
    )


def show_optimism(rows, sets):
    lines = [
        "1. Tuned outside and inside",
        f"{sets} data sets each; the risk is that of the model tuned and trained on all n cases, on cases that nothing "
        "has seen. Naive:",
        "all candidates by ten folds, and the least of their means reported. Nested: `Tuned` in ten folds. Bias in "
        "percent of the risk, with its standard error.",
        "Nested resampling trains on nine tenths of the cases, so that a little pessimism is right.",
        "",
        f"{'':>42}{'candidates':>12}{'risk':>10}{'naive':>10}{'bias, %':>16}{'nested':>10}{'bias, %':>16}",
    ]
    for row in rows:
        naive, nested = (
            f"{100 * (mean / row.risk - 1):+.1f} ± {100 * error / row.risk:.1f}"
            for mean, error in ((row.naive, row.naive_error), (row.nested, row.nested_error))
        )
        lines.append(
            f"{row.name:>42}{row.candidates:>12}{row.risk:>10.4g}{row.naive:>10.4g}{naive:>16}{row.nested:>10.4g}"
            f"{nested:>16}"
        )
    return lines


def optimism_figure(rows):
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    places = np.arange(len(rows))[::-1]
    for name, colour, shift in (("naive", ORANGE, 0.12), ("nested", BLUE, -0.12)):
        bias = [100 * (getattr(row, name) / row.risk - 1) for row in rows]
        error = [196 * getattr(row, f"{name}_error") / row.risk for row in rows]
        axes.errorbar(bias, places + shift, xerr=error, fmt="o", ms=5, color=colour, label=name, capsize=2)
    axes.axvline(0, color="0.6", lw=1)
    axes.set_yticks(places, [row.name for row in rows])
    axes.set_xlabel("bias, percent of the risk (95 % intervals)")
    axes.set_title("What is reported when the best of some learners was chosen", fontsize=11)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def told(result):
    """A comparison in few words."""
    interval = f"95 % interval {result.lower:.1f} to {result.upper:.1f}"
    return f"difference {result.estimate:+.1f}, {interval}, p = {result.p_value:.2g}"


# One data set, as people do it


def show_diabetes(repeats):
    """The same splits for all: each candidate by itself, and the tuned learner."""
    data = datasets.diabetes()
    plan = resample.k_fold(jax.random.key(1), data.n, folds=FOLDS, repeats=repeats)

    def tuned(**options):
        base = learn.Normalised(learn.LeastSquares(), how="standard")
        return learn.Tuned(base, {"base.ridge": RIDGES}, by=5, **options)

    nested = jg.assess(KEY, tuned(), data, plan)
    simple = jg.assess(KEY, tuned(rule="one_standard_error", simplest="last"), data, plan)
    counts = np.bincount(nested.info["choice"], minlength=len(RIDGES))
    chosen = ", ".join(f"{RIDGES[i]:.3g}: {counts[i]}" for i in np.flatnonzero(counts))
    return [
        f"2. The 442 patients, {len(RIDGES)} ridges, ten folds {repeats} times",
        f"tuned inside by 5 folds {nested.g.mean():.1f}, by the one-standard-error rule {simple.g.mean():.1f}; the "
        f"rows' own criteria {nested.info['criterion'].mean():.1f}",
        f"ridges chosen by the rows: {chosen}",
        f"one-standard-error rule minus the best, corrected t: {told(compare.corrected_t(nested, simple))}",
    ]


# Time


def show_time(repeats):
    """Nested tuning of ridges beside scikit-learn's GridSearchCV inside cross_val_score."""
    data = datasets.diabetes()
    plan = resample.leave_out(jax.random.key(1), data.n, fraction=47 / data.n, resamples=10 * repeats)
    learner = learn.Tuned(learn.Normalised(learn.LeastSquares(), how="standard"), {"base.ridge": RIDGES}, by=5)
    pipeline = make_pipeline(StandardScaler(), Ridge())
    search = GridSearchCV(pipeline, {"ridge__alpha": RIDGES}, cv=5, scoring="neg_mean_squared_error")
    outer = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in zip(plan.train, plan.test, strict=True)]

    def ours():
        return jg.assess(KEY, learner, data, plan)

    def theirs():
        return cross_val_score(search, data.x, data.y[:, 0], cv=outer, scoring="neg_mean_squared_error")

    begun = time.perf_counter()
    losses = ours()
    first = time.perf_counter() - begun
    seconds = medians({"jaxgen": ours, "scikit-learn": theirs}, 1)
    same = []
    for row in range(3):  # on the folds that jaxgen drew
        key = jax.random.fold_in(jax.random.fold_in(KEY, 0), row)
        train, test = outer[row]
        folds = PredefinedSplit(np.asarray(learner.folds(key, jnp.ones(len(train)))))
        found = GridSearchCV(pipeline, search.param_grid, cv=folds, scoring=search.scoring).fit(
            data.x[train], data.y[train, 0]
        )
        error = np.mean((data.y[test, 0] - found.predict(data.x[test])) ** 2)
        same.append(f"{error:.6g} and {losses.g[row]:.6g}")
    fits = len(outer) * (5 * len(RIDGES) + 1)
    return [
        f"3. Time: {len(outer)} random splits that leave 47 patients out, 5 inner folds of equal size, {len(RIDGES)} "
        f"ridges, {fits} fits, inputs standardised",
        f"jaxgen {seconds['jaxgen']:.2f} s ({first:.1f} s the first time); scikit-learn, GridSearchCV in "
        f"cross_val_score, one process, {seconds['scikit-learn']:.1f} s: "
        f"{seconds['scikit-learn'] / seconds['jaxgen']:.0f} times",
        f"errors of three rows, of GridSearchCV on the folds that jaxgen drew, and of jaxgen: {'; '.join(same)}",
    ]


# A ridge for each input


class Pay(NamedTuple):
    """Excess risks over the noise for one size and number of inputs that count; difference with its standard error."""

    n: int
    relevant: int
    least_squares: float
    common: float
    per_input: float
    difference: float
    error: float
    start: float
    end: float


def pays(sets, sizes, counts):
    """20 inputs, some of which count; the variance of the signal is that of the noise whatever their number."""
    rows = []
    for relevant in counts:
        for n in sizes:
            data = simulated(sets, n, 20, relevant, 6, noise=0.5 * np.sqrt(relevant))
            train = np.zeros((1, n + RESERVOIR), int)
            train[0, :n] = 1
            plan = resample.from_weights(train, 1 - train)
            learners = (learn.LeastSquares(), learn.Ridge(), learn.RidgePerInput())
            losses = [jg.assess(KEY, learner, data, plan, keep="rows") for learner in learners]
            noise = 0.25 * relevant
            least, common, own = (each.g[:, 0] / noise for each in losses)
            difference = own - common
            start, end = losses[2].info["errors"][:, 0].mean(0) / noise
            error = np.std(difference, ddof=1) / np.sqrt(sets)
            values = (
                np.median(least) - 1,
                common.mean() - 1,
                own.mean() - 1,
                difference.mean(),
                error,
                start - 1,
                end - 1,
            )
            rows.append(Pay(n, relevant, *map(float, values)))
    return rows


def show_pays(rows, sets):
    lines = [
        "4. A ridge for each input (`RidgePerInput`, leave-one-out, 50 steps) against the best common one (`Ridge`)",
        f"20 inputs, signal and noise of equal variance, {sets} independent data sets each; risk above the noise, in "
        "units of the noise; of least",
        "squares the median. The difference has its standard error (data sets are independent). Last: the mean "
        "leave-one-out error of the training",
        "cases before and after the search, also above the noise: what falls there is not what falls in the risk.",
        "",
        f"{'inputs that count':>18}{'n':>6}{'least squares':>15}{'common':>9}{'per input':>11}{'difference':>20}"
        f"{'before':>9}{'after':>9}",
    ]
    for row in rows:
        difference = f"{row.difference:+.4f} ± {row.error:.4f}"
        lines.append(
            f"{row.relevant:>18}{row.n:>6}{row.least_squares:>15.4f}{row.common:>9.4f}{row.per_input:>11.4f}"
            f"{difference:>20}{row.start:>9.4f}{row.end:>9.4f}"
        )
    return lines


def pays_figure(rows):
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    counts = sorted({row.relevant for row in rows})
    for relevant, colour in zip(counts, (ORANGE, GREEN, BLUE), strict=False):
        some = [row for row in rows if row.relevant == relevant]
        ratio = [row.per_input / row.common for row in some]
        error = [1.96 * row.error / row.common for row in some]
        axes.errorbar(
            [row.n for row in some],
            ratio,
            yerr=error,
            fmt="o-",
            ms=4,
            color=colour,
            capsize=2,
            label=f"{relevant} of 20",
        )
    axes.axhline(1, color="0.6", lw=1)
    axes.set(xscale="log", xlabel="training cases", ylabel="excess risk, per input / common")
    axes.set_xticks([row.n for row in rows if row.relevant == counts[0]])
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.minorticks_off()
    axes.set_title("Does a ridge for each input pay?", fontsize=11)
    figure.legend(frameon=False, title="inputs that count", loc="outside right upper")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def show_irrelevant(repeats):
    """The patients with 40 inputs of noise besides their own 10."""
    data = datasets.diabetes()
    noise = np.random.default_rng(8).standard_normal((data.n, 40))
    wide = jg.Data(np.hstack([data.x, noise]), data.y, (*data.names, *(f"noise{i}" for i in range(40))))
    lines = [
        f"5. The patients, and with 40 inputs of noise: per input minus common, ten folds {repeats} times, corrected t"
    ]
    for name, cases in (("10 inputs", data), ("50 inputs", wide)):
        plan = resample.k_fold(jax.random.key(2), cases.n, folds=FOLDS, repeats=repeats)
        common, own = (
            jg.assess(KEY, learn.Normalised(learner, how="standard"), cases, plan)
            for learner in (learn.Ridge(), learn.RidgePerInput())
        )
        lines.append(
            f"{name}: common {common.g.mean():.1f}, per input {own.g.mean():.1f}; "
            f"{told(compare.corrected_t(common, own))}"
        )
    return lines


# A penalty for each input of a network

PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
INPUTS = 10
NETWORK = learn.Conjugate(learn.MLP((5,), init=0.5), steps=100)


class Adapted(NamedTuple):
    """Excess risks over the noise for one size and number of inputs that count; differences from the common penalty,
    with standard errors; and the validation error before and after the search.
    """

    n: int
    relevant: int
    common: float
    by_layer: float
    by_input: float
    difference: tuple[float, float]
    layers: tuple[float, float]
    start: float
    end: float


def curved(sets, n, relevant):
    """Independent normal inputs, of which the first few count, bent by tanh; signal and noise of equal variance."""
    random = np.random.default_rng([9, n, relevant])
    x = random.standard_normal((sets, n + RESERVOIR, INPUTS))
    signal = np.tanh(1.5 * x[:, :, :relevant]).sum(-1, keepdims=True)
    noise = signal.std() * random.standard_normal(signal.shape)
    return jg.Data(x, signal + noise, tuple(f"x{i}" for i in range(INPUTS))), float(signal.var())


def adapts(sets, sizes, counts):
    """One penalty from a grid by `Tuned`, one for each layer, and one for each input, by the gradient."""
    base = learn.Conjugate(NETWORK.network, steps=NETWORK.steps, penalty=learn.L2(1.0))
    learners = (
        learn.Tuned(base, {"penalty.strength": PENALTIES}, by=4),
        learn.AdaptivePenalties(NETWORK, by="layer"),
        learn.AdaptivePenalties(NETWORK, by="input"),
    )
    rows = []
    for relevant in counts:
        for n in sizes:
            data, noise = curved(sets, n, relevant)
            train = np.zeros((1, n + RESERVOIR), int)
            train[0, :n] = 1
            plan = resample.from_weights(train, 1 - train)
            losses = [jg.assess(KEY, learner, data, plan, keep="rows") for learner in learners]
            common, layers, inputs = (each.g[:, 0] / noise for each in losses)
            errors = losses[2].info["errors"][:, 0]
            errors = 2 * np.stack([errors[:, 0], errors.min(-1)]).mean(1) / noise  # the objective is half a square
            away, away_by_layer = (
                (float((own - common).mean()), float((own - common).std(ddof=1) / np.sqrt(sets)))
                for own in (inputs, layers)
            )
            one, few, many = (float(each.mean()) - 1 for each in (common, layers, inputs))
            first, last = (float(error) - 1 for error in errors)
            rows.append(Adapted(n, relevant, one, few, many, away, away_by_layer, first, last))
    return rows


def show_adapts(rows, sets):
    lines = [
        "Networks: a penalty for each input or layer by the gradient of the validation error through the trained "
        "weights",
        f"(`AdaptivePenalties`, 4 folds, 30 steps) against the best of {len(PENALTIES)} common ones (`Tuned`, 4 "
        "folds).",
        f"{NETWORK.network.hidden[0]} hidden units, {INPUTS} inputs, signal and noise of equal variance, {sets} "
        "independent data sets each; risk above the noise, in",
        "units of the noise; differences from the common penalty with their standard errors. Last: the mean validation "
        "error at the",
        "start (all penalties 1) and at its least, by input, also above the noise.",
        "",
        f"{'inputs that count':>18}{'n':>6}{'common':>9}{'by layer':>10}{'difference':>20}{'by input':>10}"
        f"{'difference':>20}{'before':>9}{'after':>9}",
    ]
    for row in rows:
        inputs, layers = (f"{mean:+.4f} ± {error:.4f}" for mean, error in (row.difference, row.layers))
        lines.append(
            f"{row.relevant:>18}{row.n:>6}{row.common:>9.4f}{row.by_layer:>10.4f}{layers:>20}{row.by_input:>10.4f}"
            f"{inputs:>20}{row.start:>9.4f}{row.end:>9.4f}"
        )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few data sets; nothing is written")
    parser.add_argument("--resume", action="store_true", help="take the parts that an earlier run has finished")
    parser.add_argument(
        "--only", action="append", metavar="PART", help="optimism, pays, diabetes, time, irrelevant or networks"
    )
    options = parser.parse_args()
    matplotlib.use("Agg")
    sets, repeats = (8, 1) if options.quick else (100, 2)
    sizes, counts = ((100,), (2,)) if options.quick else ((50, 100, 200), (2, 5, 20))
    chosen, watch = settings(sets), Watch()
    parts = {
        "optimism": lambda: [optimism(setting) for setting in (chosen[3:4] if options.quick else chosen)],
        "pays": lambda: pays(sets, sizes, counts),
        "diabetes": lambda: show_diabetes(repeats),
        "time": lambda: [*show_time(repeats), watch.line()],
        "irrelevant": lambda: [] if options.quick else show_irrelevant(repeats),
        "networks": lambda: adapts(*((4, (50,), (2,)) if options.quick else (sets, (50, 100, 200), (2, INPUTS)))),
    }
    found, minutes = {}, 0.0
    for name, compute in parts.items():
        if options.only and name not in options.only:
            continue
        found[name], took = kept_part(f"tuning {name} {sets}", compute, options.resume)
        minutes += took
        print(f"{name}: {took:.1f} minutes", flush=True)
    order = ("optimism", "diabetes", "time", "pays", "irrelevant", "networks")
    shown = {
        "optimism": partial(show_optimism, sets=sets),
        "pays": partial(show_pays, sets=sets),
        "networks": partial(show_adapts, sets=4 if options.quick else sets),
    }
    if "networks" in found and not options.quick:
        text = "\n".join(shown["networks"](found.pop("networks")))
        print(text)
        publish("tuning_networks.txt", f"{machine()}\n{watch.line()}\n\n{text}")
    text = "\n\n".join("\n".join(shown.get(name, list)(part)) for name in order if (part := found.get(name)))
    print(text)
    if found and not options.quick:
        took = f"{minutes:.1f} minutes, compilation included; seeds stand in the script"
        drawn = {"optimism": optimism_figure, "pays": pays_figure}
        figures = {name: draw(found[name]) for name, draw in drawn.items() if name in found}
        publish("tuning.txt", f"{machine()}\n{took}\n\n{text}", figures)


if __name__ == "__main__":
    main()
