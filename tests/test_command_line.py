"""The command line, called in this process: what it prints, writes and answers."""

import json
import os
import re

import jax
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from jaxgen import resample, store
from jaxgen.cli import assess as command
from jaxgen.cli.parser import main
from jaxgen.types import Plan

FILES = ["distribution.png", "losses-1.npz", "losses-2.npz", "manifest.json", "report.txt", "summary.csv"]
FEW = ["--resamples", "12"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    plt.close("all")


@pytest.fixture
def csv(folder):
    """24 cases of three inputs, one of them a word, with a price and a kind."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": random.normal(size=24), "age": random.integers(1, 60, 24), "garden": random.choice(["yes", "no"], 24)}
    )
    frame["price"] = 3 * frame["size"] - 0.1 * frame["age"] + (frame["garden"] == "yes") + random.normal(size=24)
    frame["kind"] = np.where(frame["price"] > frame["price"].median(), "dear", "cheap")
    frame.drop(columns="kind").to_csv(folder / "prices.csv", index=False)
    frame.drop(columns="price").to_csv(folder / "kinds.csv", index=False)
    return frame


@pytest.fixture
def fragile(folder):
    """12 cases with an input that is 0 but for case 5: without that case it is constant, and least squares fails."""
    random = np.random.default_rng(1)
    pd.DataFrame({"a": random.normal(size=12), "rare": np.eye(12)[5], "y": random.normal(size=12)}).to_csv(
        folder / "fragile.csv", index=False
    )
    return ["assess", "fragile.csv", "--target", "y", "--scheme", "leave-one-out"]


def names(path):
    """Everything in a folder, hidden or not."""
    return sorted(file.name for file in path.iterdir())


def plan_of(manifest):
    return eval(manifest["scheme"], {"jax": jax, "resample": resample})


def same(a: Plan, b: Plan):
    return (
        np.array_equal(a.train, b.train)
        and np.array_equal(a.test, b.test)
        and all(np.array_equal(a.labels[name], b.labels[name]) for name in a.labels)
    )


def refused(capsys, arguments):
    """The one line on standard error of a command that is refused."""
    assert main(arguments) == 2
    printed, message = capsys.readouterr()
    assert message.startswith("jaxgen: ")
    assert message.count("\n") == 1, "one line"
    assert "Traceback" not in message
    assert "saved in" not in printed
    return message


# What it does


def test_by_default_it_compares_a_line_with_the_mean_on_the_diabetes_data(folder, capsys):
    assert main(["assess", *FEW]) == 0
    printed, trouble = capsys.readouterr()
    assert printed.startswith("diabetes: 442 cases, 10 inputs, target 'disease progression after one year'\n")
    for part in (
        "12 resamplings, resample.leave_out(jax.random.key(0), 442, fraction=0.1, resamples=12)",
        "G of Mean() minus G of LeastSquares()",
        "corrected resampled t-test",
    ):
        assert part in printed
    assert not trouble
    (out,) = (folder / "jaxgen-runs").iterdir()
    assert re.fullmatch(r"diabetes-\d{8}-\d{6}", out.name)
    assert f"saved in {out.relative_to(folder)}{os.sep}: {', '.join(FILES)}" in printed
    assert names(out) == FILES
    assert (out / "report.txt").read_text().strip() in printed
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["learners"] == {"losses-1.npz": "LeastSquares()", "losses-2.npz": "Mean()"}
    assert (manifest["data"], manifest["seed"], manifest["loss"]) == ("diabetes", 0, "squared")
    line, mean = (store.load(out / name) for name in manifest["learners"])
    assert (line.learner, mean.learner) == ("LeastSquares()", "Mean()")
    assert line.g.mean() < mean.g.mean()
    assert same(line.plan, plan_of(manifest))
    table = pd.read_csv(out / "summary.csv", index_col="learner")
    assert table.loc["LeastSquares()", "avr"] == pytest.approx(line.g.mean())
    assert (out / "distribution.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_of_ones_own(csv, folder, capsys):
    command = [
        "assess",
        "prices.csv",
        "--target",
        "price",
        "--learner",
        "mean",
        "--learner",
        "LeastSquares(ridge=2.0)",
        "--loss",
        "absolute",
        "--seed",
        "7",
        *FEW,
    ]
    assert main([*command, "--out", "results/first"]) == 0
    assert capsys.readouterr().out.startswith("prices: 24 cases, 3 inputs, target 'price'\n")
    assert names(folder / "results" / "first") == FILES
    assert names(folder / "results") == ["first"]
    losses = store.load(folder / "results" / "first" / "losses-2.npz")
    assert (losses.learner, losses.loss) == ("LeastSquares(ridge=2.0)", "absolute")
    assert same(losses.plan, resample.leave_out(jax.random.key(7), 24, 0.1, 12))
    assert main([*command, "--out", "second"]) == 0
    again = store.load(folder / "second" / "losses-2.npz")
    np.testing.assert_array_equal(again.values, losses.values)
    first, second = (json.loads((folder / out / "manifest.json").read_text()) for out in ("results/first", "second"))
    assert first == second


def test_the_training_does_not_draw_from_the_key_of_the_splits(csv, monkeypatch):
    seen = []
    engine = command.assess
    monkeypatch.setattr(command, "assess", lambda key, *arguments: seen.append(key) or engine(key, *arguments))
    assert (
        main(["assess", "prices.csv", "--target", "price", "--learner", "mean", "--seed", "7", *FEW, "--out", "out"])
        == 0
    )
    assert [jax.random.key_data(key).tolist() for key in seen] == [jax.random.key_data(jax.random.key(8)).tolist()]


def test_a_target_of_words_makes_a_classification(csv, folder, capsys):
    assert main(["assess", "kinds.csv", "--target", "kind", "--out", "out", *FEW]) == 0
    assert "kinds: 24 cases, 3 inputs, target 'kind' (2 classes)" in capsys.readouterr().out
    # one column of zeros and ones per class: the mean predicts the shares of the classes, and Brier's score is about 2
    # * 0.5 * 0.5
    assert store.load(folder / "out" / "losses-2.npz").g.mean() == pytest.approx(0.5, abs=0.1)


SCHEMES = {
    "leave-out": (["--fraction", "0.5", *FEW], lambda key: resample.leave_out(key, 24, 0.5, 12)),
    "k-fold": (["--folds", "4", "--repeats", "3"], lambda key: resample.k_fold(key, 24, 4, 3)),
    "nested": (["--folds", "4", "--repeats", "3"], lambda key: resample.nested_pairs(key, 24, 4, 3)),
    "leave-one-out": ([], lambda key: resample.leave_one_out(24)),
    "bootstrap": (FEW, lambda key: resample.bootstrap(key, 24, 12)),
    "balanced": (["--fraction", "0.5", *FEW], lambda key: resample.balanced(key, 24, 0.5, 12)),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_runs_and_is_recorded(scheme, csv, folder, capsys):
    options, make = SCHEMES[scheme]
    assert (
        main(
            [
                "assess",
                "prices.csv",
                "--target",
                "price",
                "--learner",
                "mean",
                "--learner",
                "LeastSquares(ridge=2.0)",
                "--scheme",
                scheme,
                *options,
                "--seed",
                "5",
                "--out",
                "out",
            ]
        )
        == 0
    )
    plan = store.load(folder / "out" / "losses-1.npz").plan
    assert same(plan, make(jax.random.key(5)))
    assert same(plan, plan_of(json.loads((folder / "out" / "manifest.json").read_text())))
    printed = capsys.readouterr().out
    assert ("no comparison: " in printed) is (scheme in ("bootstrap", "nested"))
    assert ("no interval: " in printed) is (scheme in ("bootstrap", "leave-one-out"))


# Failed rows


@pytest.mark.parametrize("order", [["linear", "mean"], ["mean", "linear"]], ids=" ".join)
def test_failed_fits_are_counted_explained_and_saved(order, fragile, folder, capsys):
    learners = [word for name in order for word in ("--learner", name)]
    assert main([*fragile, *learners, "--out", "out"]) == 1
    printed = capsys.readouterr().out
    assert "1 of 12 trainings of LeastSquares() failed" in printed
    assert "the inputs of its training cases are linearly dependent" in printed
    assert "call again with --drop-failed to leave them out" in printed
    assert names(folder / "out") == ["losses-1.npz", "losses-2.npz", "manifest.json"]
    linear, mean = (store.load(folder / "out" / f"losses-{order.index(name) + 1}.npz") for name in ("linear", "mean"))
    assert linear.failed.tolist() == [row == 5 for row in range(12)]
    assert not mean.failed.any()


def test_failed_fits_can_be_left_out(fragile, folder, capsys):
    assert main([*fragile, "--drop-failed", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    assert "1 resamplings left out, in which a training failed" in printed
    assert "corrected resampled t-test" in printed, "of the rows that both learners were trained on"
    assert names(folder / "out") == FILES
    assert store.load(folder / "out" / "losses-1.npz").failed.sum() == 1, "saved as they were"
    assert pd.read_csv(folder / "out" / "summary.csv").shape[0] == 2


# What it refuses


PRICES = ["assess", "prices.csv", "--target", "price"]
REFUSED = {
    "unknown target": (
        ["assess", "prices.csv", "--target", "prise"],
        r"prices.csv: expected a target among the columns size, age, garden, price, got 'prise'; "
        r"did you mean 'price'\?",
    ),
    "no target": (
        ["assess", "prices.csv"],
        "expected --target with the column of prices.csv to predict, got none; name it",
    ),
    "a target for built-in data": (
        ["assess", "diabetes", "--target", "bmi"],
        "expected --target with a file only, got the built-in data 'diabetes'; leave --target out",
    ),
    "missing file": (
        ["assess", "rents.csv", "--target", "rent"],
        "rents.csv: expected a file, got none; check the path",
    ),
    "folder for a file": (["assess", "folder", "--target", "rent"], "folder: expected a file, got a folder"),
    "text among numbers": (
        ["assess", "spoiled.csv", "--target", "price"],
        "spoiled.csv: expected numbers, as in most rows, got 'about 4' in column 'age', row 3: "
        "text where a number is needed",
    ),
    "missing value": (
        ["assess", "holes.csv", "--target", "price"],
        "holes.csv: expected no missing value, got 2 in column 'age', the first in row 3",
    ),
    "empty file": (
        ["assess", "empty.csv", "--target", "price"],
        "empty.csv: expected a header and rows, got an empty file",
    ),
    "unknown learner": ([*PRICES, "--learner", "forest"], r"expected a learner \(linear, mean, .*\), got 'forest'"),
    "a learner twice": (
        [*PRICES, "--learner", "linear", "--learner", "LeastSquares()"],
        r"expected different learners, got LeastSquares\(\), LeastSquares\(\); name each once",
    ),
    "existing folder": (
        [*PRICES, "--out", "folder"],
        "expected a new folder for the results, got folder, which exists; choose another with --out",
    ),
    "fraction": ([*PRICES, "--fraction", "25"], "expected a fraction between 0 and 1, got 25.0"),
    "too few training cases": (
        [*PRICES, "--fraction", "0.9", *FEW],
        r"expected at least 4 training cases for the 4 coefficients of LeastSquares\(\), got 2 in ",
    ),
    "more resamples than splits": (
        [*PRICES, "--fraction", "0.01", *FEW, "--resamples", "25"],
        r"expected at most C\(24, 1\) = 24 different splits of 24 cases, got 25",
    ),
    "seed beyond 64 bits": ([*PRICES, "--seed", "99999999999999999999"], "too large"),
    "more folds than cases": (
        [*PRICES, "--scheme", "k-fold", "--folds", "25"],
        "expected folds to be a whole number from 2 to 24",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_as_expected_is_one_line_and_leaves_nothing(case, csv, folder, capsys):
    (folder / "folder").mkdir()
    (folder / "empty.csv").touch()
    frame = csv.drop(columns="kind").astype({"age": object})
    frame.assign(age=frame["age"].where(frame.index != 3, "about 4")).to_csv(folder / "spoiled.csv", index=False)
    frame.assign(age=frame["age"].where(~frame.index.isin([3, 8]))).to_csv(folder / "holes.csv", index=False)
    before = names(folder)
    arguments, message = REFUSED[case]
    assert re.search(message, refused(capsys, arguments))
    assert names(folder) == before
    assert not names(folder / "folder")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["assess", "--scheme", "folds"], "invalid choice: 'folds'"),
        (["assess", "--loss", "log"], "invalid choice: 'log'"),
        (["assess", "--resamples", "many"], "invalid int value: 'many'"),
        (["assess", "--resample-all"], "unrecognized arguments: --resample-all"),
    ],
    ids=["nothing", "scheme", "loss", "number", "option"],
)
def test_a_wrong_command_shows_the_usage(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    trouble = capsys.readouterr().err
    assert trouble.startswith("usage: jaxgen")
    assert message in trouble


@pytest.mark.parametrize(("option", "part"), [("--help", "exit codes: 0 done"), ("--version", "")])
def test_help_and_version_end_well(option, part, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["assess", option] if part else [option])
    assert caught.value.code == 0
    assert part in capsys.readouterr().out


@pytest.mark.parametrize(
    ("trouble", "code", "message"),
    [
        (OSError("no space left on device"), 2, "jaxgen: no space left on device\n"),
        (KeyboardInterrupt(), 130, "jaxgen: stopped; what was not complete was not saved\n"),
    ],
    ids=["disk", "user"],
)
def test_a_run_that_ends_early_leaves_no_part_of_a_folder(trouble, code, message, csv, folder, capsys, monkeypatch):
    def end(*arguments, **options):
        raise trouble

    before = names(folder)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", end)  # the last thing written
    assert main([*PRICES, "--learner", "mean", "--out", "out", *FEW]) == code
    assert capsys.readouterr().err == message
    assert names(folder) == before
