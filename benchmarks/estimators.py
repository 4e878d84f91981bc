"""Estimators of the generalization error side by side: bias and root mean squared error for ER and for R, on systems
whose truth is known.

    python benchmarks/estimators.py             # all of it; the first lines of the results say how long it takes
    python benchmarks/estimators.py --quick     # a tenth of the data sets; writes nothing

prints the tables and writes them, with a figure, to benchmarks/results/. Only public names of jaxgen are used.

R is the risk of the model trained on the very data set that an estimator sees, ER its mean over data sets. Systems:
Larsen & Hansen's with least squares; the same with independent inputs and a ridge; networks of 20 tanh units with a
penalty, trained to a minimum. FPE counts every parameter. GEN allows for dependence of cases up to LAG apart. Of
networks the algebraic estimators take a Hessian damped by DAMPING, the penalty of weights being 2, because biases are
not penalised and units that are alike, or of no use, make it singular. An estimator that refuses a data set, or whose
formula assumes a minimum where there is none, is missing for it. Networks that are retrained start from other random
numbers than the fit to all cases; one Newton step stays at the minimum of that fit.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from calibration_systems import Setting, curved, with_risks
from speed import machine

import jaxgen as jg
from jaxgen import algebraic, learn, loss, resample, simulate
from jaxgen.stats import estimate

RESULTS = Path(__file__).parent / "results"
INPUTS, TRUTHS, LAG, DAMPING = 10, 20_000, 5, 0.01


@dataclass(frozen=True)
class System:
    """A learner and the data it is tried on.

    Attributes:
      sizes: numbers of cases, with the number of data sets of each.
      rho: coefficient of the autoregression of the inputs of a linear system; None for networks.
      splits, samples: random splits, and bootstrap samples, of each data set.
      retrained: the sizes at which each case is left out by retraining.
    """

    name: str
    learner: Any
    sizes: dict[int, int]
    rho: float | None
    splits: int
    samples: int
    retrained: tuple[int, ...] = ()


NETWORK = learn.Normalised(
    learn.Conjugate(learn.MLP((20,), init="glorot"), steps=1000, penalty=learn.L2(2.0)), how="standard"
)
SYSTEMS = (
    # of bootstrap samples with fewer different cases than inputs the weights of least norm are taken
    System(
        "least squares, Larsen & Hansen's system",
        learn.LeastSquares(intercept=False, minimum_norm=True),
        {20: 1000, 50: 1000, 100: 1000},
        0.6518,
        100,
        200,
    ),
    System(
        "ridge, linear system",
        learn.LeastSquares(ridge=30.0, intercept=False),
        {20: 1000, 50: 1000, 100: 1000},
        0.0,
        100,
        200,
    ),
    System("20 tanh units with a penalty", NETWORK, {64: 150, 200: 100}, None, 40, 50, (64,)),
)


@dataclass(frozen=True)
class Evidence:
    """What the estimators of some data sets, [Q], or of one, are made of.

    Attributes:
      plain, fit: derivatives of the fit to all cases; damped for networks.
      full, splits, folds, samples: losses of the fit to all cases, of splits that leave out a quarter, of 10 folds, of
        bootstrap samples.
      no_information: rate of .632+.
      each: losses of leaving out each case by retraining; None where that was not done.
    """

    plain: algebraic.FullFit
    fit: algebraic.FullFit
    full: jg.Losses
    splits: jg.Losses
    folds: jg.Losses
    samples: jg.Losses
    no_information: np.ndarray
    each: Any = None

    def __getitem__(self, q: int) -> "Evidence":
        """The evidence of data set q."""
        parts: dict[str, Any] = {
            field.name: value[q] for field in fields(self) if (value := getattr(self, field.name)) is not None
        }
        return Evidence(**parts)


def by_newton(e):
    """Leave-one-out by one Newton step for each case, [*Q]."""
    if e.fit.data.sets is not None:
        raise ValueError("expected one data set, got several; choose one")
    return algebraic.newton_step(e.fit, resample.leave_one_out(e.fit.n)).result().estimate


ALGEBRAIC: dict[str, Callable[[Evidence], Any]] = {
    "FPE": lambda e: algebraic.fpe(e.full, e.fit.p),
    "FPER": lambda e: algebraic.fper(e.fit).estimate,
    "GPE": lambda e: algebraic.gpe(e.fit).estimate,
    "NIC": lambda e: algebraic.nic(e.fit).estimate,
    "NIC with HC3": lambda e: algebraic.nic(e.fit, hc3=True).estimate,
    f"GEN with lag {LAG}": lambda e: algebraic.gen(e.fit, LAG).estimate,
    "S_p": lambda e: algebraic.s_p(e.fit).estimate,
    "GCV": lambda e: algebraic.gcv(e.fit).estimate,
    "linear unlearning": lambda e: algebraic.unlearning(e.fit).estimate,
    "leave-one-out, closed form": lambda e: algebraic.leave_one_out(e.fit).estimate,
    "leave-one-out, Newton step": by_newton,
}
RESAMPLED: dict[str, Callable[[Evidence], Any]] = {
    "leave-one-out, retrained": lambda e: e.each.g.mean(-1),
    "10 folds": lambda e: e.folds.g.mean(-1),
    "a quarter left out": lambda e: e.splits.g.mean(-1),
    "out-of-bag": lambda e: estimate.out_of_bag(e.samples).estimate,
    ".632": lambda e: estimate.error_632(e.samples, e.full).estimate,
    ".632+": lambda e: estimate.error_632_plus(e.samples, e.full, e.no_information).estimate,
    "L_alpha": lambda e: estimate.l_alpha(e.splits, e.full, standard_error="cases").estimate,
    "L_beta": lambda e: estimate.l_beta(e.splits, e.full, standard_error="cases").estimate,
    "L_alpha_beta": lambda e: estimate.l_alpha_beta(e.splits, standard_error="cases").estimate,
}


EVERY = {"apparent error": lambda e: e.full.apparent[..., 0]} | ALGEBRAIC | RESAMPLED


def methods(system, n):
    """The estimators tried: a Newton step is the closed form where the model is linear."""
    left_out = {"leave-one-out, Newton step"} if system.rho is not None else set()
    left_out |= set() if n in system.retrained else {"leave-one-out, retrained"}
    return {name: method for name, method in EVERY.items() if name not in left_out}


def each_set(method, evidence):
    """The estimate for each data set, [Q]; NaN where the method refuses."""

    def one(q):
        try:
            return float(method(evidence[q]))
        except ValueError:
            return np.nan

    try:
        return np.asarray(method(evidence), np.float64)
    except ValueError:
        return np.array([one(q) for q in range(len(evidence.no_information))])


def gathered(system, n, data, seed):
    """The evidence of some data sets, and the number of trainings it took."""
    training, *keys = jax.random.key(seed), *jax.random.split(jax.random.key(seed + 1), 3)
    learner, sets = system.learner, len(data.x)
    fit = algebraic.full_fit(training, learner, data)  # the very networks whose risks `with_risks` finds by this key
    plans = {
        "full": resample.full(n),
        "splits": resample.leave_out(keys[0], n, 0.25, system.splits, sets=sets),
        "folds": resample.stack([resample.k_fold(key, n, 10) for key in jax.random.split(keys[1], sets)]),
        "samples": resample.bootstrap(keys[2], n, system.samples, sets=sets),
    } | ({"each": resample.leave_one_out(n)} if n in system.retrained else {})
    losses: dict[str, Any] = {name: jg.assess(training, learner, data, plan) for name, plan in plans.items()}
    gamma = estimate.no_information_rate(data.y, fit.predictions, loss.squared)
    damped = fit.damped(0.0 if system.rho is not None else DAMPING)
    return Evidence(fit, damped, **losses, no_information=gamma), sets * (
        1 + sum(plan.resamples for plan in plans.values())
    )


def linear_parts(system, n, sets, seed):
    """Data sets of a linear system and the exact R of each, and those of many more, [TRUTHS]; in one part."""
    made = simulate.linear_ar(jax.random.key(seed), TRUTHS, n, INPUTS, rho=system.rho)
    fits = jg.assess(jax.random.key(seed), system.learner, made.data, resample.full(n))
    risks = made.generalization(fits.info["weights"][:, 0, :, 0])
    return [(seed, jg.Data(made.data.x[:sets], made.data.y[:sets], made.data.names), risks[:sets])], risks


def network_parts(system, n, sets):
    """Data sets in parts, with the seed of each part and the R of each set by noise-free fresh cases; and all these
    R.
    """
    setting, parts = Setting(system.name, system.learner, curved, 0.5, (sets, sets), 0, 1, 0), []
    for start in range(0, sets, 50):
        data, risk = with_risks(setting, n, min(50, sets - start), 1000 * n + start)
        parts.append((1000 * n + start, data, risk(resample.full(n))))
    return parts, np.concatenate([risk for _, _, risk in parts])


def rows(system, n, sets):
    """One row of the table per estimator."""
    parts, risks = linear_parts(system, n, sets, 1995) if system.rho is not None else network_parts(system, n, sets)
    found: dict[str, list[np.ndarray]] = {}
    trainings, counts = len(risks), np.zeros(3, np.int64)
    for seed, data, _ in parts:
        evidence, more = gathered(system, n, data, seed)
        trainings += more
        minimum = np.array([not evidence.fit[q].note for q in range(len(data.x))])
        singular = [
            np.isnan(each_set(lambda e, method=method: method(e.plain).estimate, evidence))
            for method in (algebraic.fper, algebraic.nic)
        ]
        counts += [(~minimum).sum(), *(each.sum() for each in singular)]
        for name, method in methods(system, n).items():
            values = each_set(method, evidence)
            found.setdefault(name, []).append(np.where(minimum, values, np.nan) if name in ALGEBRAIC else values)
    about = {
        "system": system.name,
        "n": n,
        "sets": sets,
        "trainings": trainings,
        "ER": risks.mean(),
        "sd R": risks.std(ddof=1) / risks.mean(),
    }
    about |= dict(zip(("no minimum", "singular", "indefinite"), counts, strict=True))
    truth = np.concatenate([risk for _, _, risk in parts])
    for name, values in found.items():
        yield about | {"estimator": name} | accuracy(np.concatenate(values), truth, risks)


def accuracy(values, truth, risks):
    """Bias and root mean squared error of estimates [Q] of R [Q] and of the mean of all risks, over that mean, with
    Monte Carlo standard errors.
    """
    there, unit = np.isfinite(values), risks.mean()
    row: dict[str, float] = {"missing": float(np.mean(~there))}
    if there.sum() < 3:
        return row
    for target, error in (
        ("ER", estimate.unconditional_error(values[there], risks)),
        ("R", estimate.average_conditional_error(values[there], truth[there])),
    ):
        root = float(np.sqrt(error.estimate))
        row |= {
            f"bias {target}": float(error.parts["bias"]) / unit,
            f"se bias {target}": float(error.parts["bias_error"]) / unit,
        }
        row |= {f"RMSE {target}": root / unit, f"se RMSE {target}": float(error.standard_error) / (2 * root) / unit}
    return row | {"correlation": float(np.corrcoef(values[there], truth[there])[0, 1])}


def table(frame):
    """The lines of one table for each system and size."""
    lines = []
    for (system, n), part in frame.groupby(["system", "n"], sort=False):
        one = part.iloc[0]
        lines += [
            "",
            f"{system}, n = {n}: {one.sets} data sets; ER = {one.ER:.4g}, standard deviation of R {one['sd R']:.3f} ER",
        ]
        if one["no minimum"] or one.singular or one.indefinite:
            lines.append(
                f"no minimum reached {one['no minimum']} times; not positive definite without damping: "
                f"Gauss-Newton {one.singular}, full Hessian {one.indefinite} times"
            )
        lines.append(
            f"{'':27}{'bias for ER':>18}{'RMSE for ER':>18}"
            f"{'bias for R':>18}{'RMSE for R':>18}{'correlation':>13}{'missing':>9}"
        )
        for _, row in part.iterrows():
            pairs = "".join(
                f"{row[name]:10.3f} ({row['se ' + name]:.3f})" for name in ("bias ER", "RMSE ER", "bias R", "RMSE R")
            )
            numbers = (
                f"{pairs}{row.correlation:13.2f}"
                if row.missing < 1
                else f"{'does not apply, or never available':>72}{'':13}"
            )
            lines.append(f"{row.estimator:27}{numbers}{row.missing:9.1%}")
    return lines


def figure(frame):
    """A panel per system and size: bias with two standard errors, and RMSE for ER and for R, of every estimator."""
    names, systems = [name for name in EVERY if (frame.estimator == name).any()], list(frame.system.unique())
    columns = max(frame[frame.system == system].n.nunique() for system in systems)
    drawn, axes = plt.subplots(
        len(systems),
        columns,
        figsize=(4.2 * columns, 4.6 * len(systems)),
        sharex="row",
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    shown = frame.assign(place=[names.index(name) for name in frame.estimator])
    for row, system in zip(axes, systems, strict=True):
        sizes = shown[shown.system == system].n.unique()
        for panel, n in zip(row, sizes, strict=False):
            draw(panel, shown[(shown.system == system) & (shown.n == n)])
            panel.set(
                title=f"{system}, n = {n}",
                yticks=range(len(names)),
                yticklabels=names,
                ylim=(len(names) - 0.5, -0.5),
                xlim=(-1, 1.3),
            )
            panel.title.set_fontsize(9)
        for panel in row[len(sizes) :]:
            panel.set_axis_off()
    drawn.supxlabel(
        "share of ER; a triangle stands for a value beyond the panel, no mark for an estimator that was never available"
    )
    drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return drawn


def draw(panel, part):
    """One panel."""
    panel.axvline(0, color="0.6", linewidth=1)
    panel.grid(axis="y", color="0.93")
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    marks = (
        ("bias ER", "bias, with 2 standard errors", "|", "black", 0.0),
        ("RMSE ER", "RMSE for ER", "o", "#0072B2", -0.15),
        ("RMSE R", "RMSE for R", "s", "#D55E00", 0.15),
    )
    for column, label, marker, colour, shift in marks:
        inside = part[column] < 1.3
        near, far = part[inside], part[~inside & part[column].notna()]
        error = 2 * near[f"se {column}"]
        panel.errorbar(
            near[column],
            near.place + shift,
            xerr=error,
            fmt=marker,
            color=colour,
            markersize=9 if marker == "|" else 4,
            elinewidth=1,
            label=label,
        )
        panel.plot(np.full(len(far), 1.28), far.place + shift, ">", color=colour, markersize=5)


def main():
    matplotlib.use("Agg")
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data sets; writes nothing")
    quick = parser.parse_args().quick
    start, found = time.perf_counter(), []
    for system in SYSTEMS:
        for n, sets in system.sizes.items():
            found += rows(system, n, sets // 10 if quick else sets)
            print(f"{system.name}, n = {n}: {time.perf_counter() - start:.0f} s", flush=True)
    frame = pd.DataFrame(found)
    trainings = int(frame.drop_duplicates(["system", "n"]).trainings.sum())
    lines = [
        machine(),
        "",
        f"Estimators of ER and R: {trainings:,} trainings in {(time.perf_counter() - start) / 60:.1f} "
        "minutes, in 64 bits; seed 1995, of networks 1000 n, 1000 n + 50, ...",
        f"{INPUTS} inputs. Numbers are shares of ER, with Monte Carlo standard errors; correlation: "
        "of the estimate with R; missing: refused, or no minimum.",
        f"ER is the mean R of {TRUTHS:,} data sets of a linear system, and of those of the table for "
        f"networks; Hessians of networks are damped by {DAMPING}.",
    ]
    text = "\n".join(lines + table(frame)) + "\n"
    print(text, end="")
    if not quick:
        (RESULTS / "estimators.txt").write_text(text)
        figure(frame).savefig(RESULTS / "estimators.png", dpi=120)


if __name__ == "__main__":
    main()
