"""Values of cases by pyDVL or OpenDataVal, for benchmarks/worth.py, which starts this with an interpreter that has one.

    python benchmarks/worth_peers.py pydvl|opendataval PROBLEM.npz

prints one line of JSON for each method: its name, the seconds and core seconds that it took, and the value of each
training case. Everything runs on one core.
"""

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import json
import os
import sys
import time
import warnings
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

UNUSED = ("torchvision", "transformers", "geomloss", "pykeops", "pandera")
"""Packages that OpenDataVal imports for images, texts and optimal transport, none of which is used here."""


def model(problem):
    """The learner of scikit-learn: logistic or ridge regression, or a network of the benchmark."""
    classes = len(problem["classes"]) > 0
    if str(problem["learner"]) == "linear":
        return LogisticRegression(C=1.0, max_iter=1000) if classes else Ridge(1.0)
    kind = MLPClassifier if classes else MLPRegressor
    steps = int(problem["steps"])
    options: dict[str, Any] = {"batch_size": 100_000}  # all cases
    return kind(
        **options,
        hidden_layer_sizes=(int(problem["hidden"]),),
        activation="tanh",
        solver="adam",
        alpha=float(problem["penalty"]),
        learning_rate_init=float(problem["rate"]),
        max_iter=steps,
        tol=0,
        n_iter_no_change=steps,
        random_state=0,
    )


def of_pydvl(problem, report):
    """Out-of-bag values, and Banzhaf values by maximum sample reuse."""
    dvl = importlib.import_module("pydvl.valuation")

    x, y, trainings = problem["x"], problem["y"], int(problem["trainings"])
    classes = len(problem["classes"]) > 0
    train = dvl.Dataset(x, y)
    scorer = dvl.SupervisedScorer(
        "accuracy" if classes else "neg_mean_squared_error",
        dvl.Dataset(problem["x_value"], problem["y_value"]),
        default=0.0,
    )

    def out_of_bag():
        kind = BaggingClassifier if classes else BaggingRegressor
        bagging = kind(model(problem), n_estimators=trainings, random_state=0).fit(x, y)
        return dvl.DataOOBValuation(bagging).fit(train)

    def banzhaf():
        utility = dvl.ModelUtility(model(problem), scorer, show_warnings=False)
        method = dvl.MSRBanzhafValuation(utility, dvl.NoStopping(), seed=0, show_warnings=False)
        method.is_done = dvl.MaxSamples(method.sampler, trainings)
        return method.fit(train)

    for name, method in (("out-of-bag", out_of_bag), ("Banzhaf", banzhaf)):
        report(f"pyDVL {name}", lambda method=method: np.asarray(method().result.values))


def of_opendataval(problem, report):
    """Out-of-bag and Banzhaf values."""
    sys.meta_path.insert(0, Absent())
    torch, dataval = importlib.import_module("torch"), importlib.import_module("opendataval.dataval")
    metrics, wrappers = (importlib.import_module(f"opendataval.{name}") for name in ("metrics", "model.api"))
    classes = len(problem["classes"])

    def targets(y):
        return torch.eye(classes)[y] if classes else torch.tensor(y[:, None], dtype=torch.float)

    def values(method):
        wrapper = wrappers.ClassifierUnweightedSkLearnWrapper if classes else wrappers.RegressionSkLearnWrapper
        arrays = [torch.tensor(problem[name], dtype=torch.float) for name in ("x", "x_value")]
        method.input_data(arrays[0], targets(problem["y"]), arrays[1], targets(problem["y_value"]))
        method.input_metric(metrics.Metrics.ACCURACY if classes else metrics.Metrics.NEG_MSE)
        method.input_model(wrapper(lambda: model(problem), *([classes] if classes else [])))
        return np.asarray(method.train_data_values().evaluate_data_values())

    trainings = int(problem["trainings"])
    for name, method in (("out-of-bag", dataval.DataOob), ("Banzhaf", dataval.DataBanzhaf)):
        report(f"OpenDataVal {name}", lambda method=method: values(method(trainings, random_state=0)))


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Empty modules in place of packages that are not used."""

    def find_spec(self, fullname, path=None, target=None):
        """Of the packages in UNUSED, and what is in them."""
        used = fullname.split(".")[0] not in UNUSED
        return None if used else importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        """A module in which any name is found."""
        made = MagicMock(name=spec.name)
        made.__path__, made.__spec__, made.__name__ = [], spec, spec.name
        return made

    def exec_module(self, module):
        """Nothing."""


def main():
    package, path = sys.argv[1:]
    warnings.simplefilter("ignore")
    os.environ["PYTHONWARNINGS"] = "ignore"
    problem, out = dict(np.load(path)), sys.stdout

    def report(name, values):
        begun, used = time.perf_counter(), time.process_time()
        with contextlib.redirect_stdout(sys.stderr):
            found = values()
        seconds = time.perf_counter() - begun, time.process_time() - used
        print(json.dumps([name, *seconds, found.tolist()]), file=out, flush=True)

    version = importlib.metadata.version(package)
    print(json.dumps([f"{package} {version}", 0.0, 0.0, []]), file=out, flush=True)
    {"pydvl": of_pydvl, "opendataval": of_opendataval}[package](problem, report)


if __name__ == "__main__":
    main()
