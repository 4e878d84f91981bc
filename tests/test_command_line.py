"""The command line, called in this process: what it prints, writes and answers."""

import json
import os
import re
import shutil
from dataclasses import replace
from datetime import datetime

import jax
import numpy as np
import pandas as pd
import pytest

from jaxgen import learn, resample, store
from jaxgen.cli import assess as command
from jaxgen.cli.parser import main
from jaxgen.types import Plan

pytestmark = pytest.mark.usefixtures("folder")

FILES = [
    *("1", "2", "distribution.png", "experiment.toml", "manifest.json", "report.html", "report.txt", "summary.csv"),
]
FEW = ["--resamples", "12"]


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
    assert printed.startswith(
        "diabetes: 442 cases, 10 inputs, target 'disease progression after one year': regression\n"
    )
    for part in (
        "12 resamplings, resample.leave_out(jax.random.key(0), 442, fraction=0.1, resamples=12)",
        "squared loss of mean minus that of linear",
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
    assert manifest["learners"] == {"1": "LeastSquares()", "2": "Mean()"}
    assert [manifest[name] for name in ("data", "task", "seed", "loss")] == ["diabetes", "regression", 0, "squared"]
    assert "missing" not in manifest
    line, mean = (store.open(out / name).losses() for name in manifest["learners"])
    assert (line.learner, mean.learner) == ("LeastSquares()", "Mean()")
    assert line.g.mean() < mean.g.mean()
    assert same(line.plan, plan_of(manifest))
    table = pd.read_csv(out / "summary.csv", index_col="learner")
    assert table.loc["linear", "mean"] == pytest.approx(line.g.mean())
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
    assert capsys.readouterr().out.startswith("prices: 24 cases, 3 inputs, target 'price': regression\n")
    assert names(folder / "results" / "first") == FILES
    assert names(folder / "results") == ["first"]
    losses = store.open(folder / "results" / "first" / "2").losses()
    assert (losses.learner, losses.loss) == ("LeastSquares(ridge=2.0)", "absolute")
    assert same(losses.plan, resample.leave_out(jax.random.key(7), 24, 0.1, 12))
    assert main([*command, "--out", "second"]) == 0
    again = store.open(folder / "second" / "2").losses()
    np.testing.assert_array_equal(again.values, losses.values)
    first, second = (json.loads((folder / out / "manifest.json").read_text()) for out in ("results/first", "second"))
    assert first == second


def test_a_tuned_learner_as_the_help_prints_it(folder, csv, capsys):
    """Its text is read, and each row says what it chose."""
    with pytest.raises(SystemExit):
        main(["assess", "--help"])
    text = re.search(r'--learner "(Tuned.*)"', capsys.readouterr().out).group(1)
    tuned = text.replace("by=5", "by='gcv'")
    assert tuned != text
    words = ["prices.csv", "--target", "price", "--learner", "mean", "--learner", tuned, "--out", "out", *FEW]
    assert main(["assess", *words]) == 0
    losses = store.open(folder / "out" / "2").losses()
    assert losses.learner == repr(learn.from_text(tuned))
    assert set(losses.info["chosen_ridge"].tolist()) <= {0.1, 1.0, 10.0}
    assert losses.info["criteria"].shape == (12, 3)


def test_the_training_does_not_draw_from_the_key_of_the_splits(csv, monkeypatch):
    seen = []
    engine = command.assess
    monkeypatch.setattr(
        command, "assess", lambda key, *arguments, **kept: seen.append(key) or engine(key, *arguments, **kept)
    )
    assert (
        main(["assess", "prices.csv", "--target", "price", "--learner", "mean", "--seed", "7", *FEW, "--out", "out"])
        == 0
    )
    assert [jax.random.key_data(key).tolist() for key in seen] == [jax.random.key_data(jax.random.key(8)).tolist()]


def test_a_target_of_words_makes_a_classification(csv, folder, capsys):
    assert main(["assess", "kinds.csv", "--target", "kind", "--out", "out", *FEW]) == 0
    printed = capsys.readouterr().out
    assert "kinds: 24 cases, 3 inputs, target 'kind': classification, 2 classes: cheap, dear\n" in printed
    losses = store.open(folder / "out" / "2").losses()
    assert losses.loss == "zero_one"
    # One column of zeros and ones per class, 12 cases each: the shares decide for the class that is more frequent among
    # those trained on, which is the rarer one among those left out.
    assert 0.4 < losses.g.mean() <= 1


def test_classes_written_as_numbers_must_be_said_to_be_some(csv, folder, capsys):
    """Taken for numbers, 0, 1 and 2 would have an error of their own for zero_one: its border is at 0.5."""
    csv.drop(columns=["kind", "price"]).assign(kind=np.arange(24) % 3).to_csv("codes.csv", index=False)
    codes = ["assess", "codes.csv", "--target", "kind", "--learner", "mean", "--loss", "zero_one", *FEW]
    message = refused(capsys, [*codes, "--out", "none"])
    assert (
        "codes.csv: expected task='classification' or task='regression' for 'kind', a target of 3 different whole "
        "numbers (0, 1, 2), got neither; say which is meant (on the command line with --task)" in message
    )
    assert main([*codes, "--task", "classification", "--out", "classes"]) == 0
    assert "target 'kind': classification, 3 classes: 0, 1, 2\n" in capsys.readouterr().out
    # Of three classes of 8 cases the mean of 21 predicts the most frequent, which is the rarest of the others.
    assert store.open(folder / "classes" / "1").losses().g.mean() > 0.6
    assert main([*codes[:-4], "--task", "regression", *FEW, "--out", "numbers"]) == 0
    assert "target 'kind': regression\n" in capsys.readouterr().out


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
    plan = store.open(folder / "out" / "1").losses().plan
    assert same(plan, make(jax.random.key(5)))
    assert same(plan, plan_of(json.loads((folder / "out" / "manifest.json").read_text())))
    printed = capsys.readouterr().out
    assert ("no comparison: " in printed) is (scheme in ("bootstrap", "leave-one-out"))
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
    assert names(folder / "out") == FILES
    assert pd.read_csv(folder / "out" / "summary.csv")["learner"].tolist() == ["mean"], "the one that went well"
    linear, mean = (store.open(folder / "out" / str(order.index(name) + 1)).losses() for name in ("linear", "mean"))
    assert linear.failed.tolist() == [row == 5 for row in range(12)]
    assert not mean.failed.any()


def test_failed_fits_can_be_left_out(fragile, folder, capsys):
    assert main([*fragile, "--drop-failed", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    assert "1 resamplings left out, in which a training failed" in printed
    assert "without 1 failed rows" in printed, "of the rows that both learners were trained on"
    assert names(folder / "out") == FILES
    assert store.open(folder / "out" / "1").losses().failed.sum() == 1, "saved as they were"
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
        "expected a new folder for the results, or one to go on with, got folder, which holds other things; choose",
    ),
    "existing file": (
        [*PRICES, "--out", "prices.csv"],
        "expected a new folder for the results, or one to go on with, got prices.csv, which holds other things; choose",
    ),
    "folder in a file": (
        [*PRICES, "--out", "prices.csv/results"],
        r"expected a place that can be written, got prices.csv/results \((File exists|Not a directory)\); make",
    ),
    "folder where none can be": (
        [*PRICES, "--out", "/proc/results"],
        r"expected a place that can be written, got /proc/results \(.*\); make its folder, free space",
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
    "seed beyond 64 bits": (
        [*PRICES, "--seed", "99999999999999999999"],
        r"expected --seed to be a whole number from 0 to 4294967294 \(the training takes the next\), got 9999999999",
    ),
    "seed beyond 32 bits": ([*PRICES, "--seed", "4294967296"], "from 0 to 4294967294 .*, got 4294967296"),
    "seed whose next is beyond 32 bits": ([*PRICES, "--seed", "4294967295"], "from 0 to 4294967294 .*, got 4294967295"),
    "negative seed": ([*PRICES, "--seed=-1"], "from 0 to 4294967294 .*, got -1"),
    "one training set": ([*PRICES, "--resamples", "1"], "expected at least 2 training sets, got 1; ask for more"),
    "task of built-in data": (
        ["assess", "wine", "--task", "classification"],
        "expected --task with a file only, got the built-in data 'wine'; leave --task out",
    ),
    "a learner with stars": (
        [*PRICES, "--learner", "LeastSquares(**{'ridge': 1000.0})"],
        r"where LeastSquares has \*\*{'ridge': 1000.0} for arguments; write each of them as name=value",
    ),
    "a name twice in the header": (
        ["assess", "twice.csv", "--target", "price"],
        "twice.csv: expected a header with different names, got price more than once; rename the columns",
    ),
    "a copy of the target": (
        ["assess", "copy.csv", "--target", "price"],
        "copy.csv: expected inputs that do not hold the target, got 'cost', which equals 'price' in every row",
    ),
    "memory": (
        [*PRICES, "--scheme", "bootstrap", "--resamples", "1000000000000"],
        "expected a plan of 1000000000000 rows and 24 cases to fit into memory, got 96,000,000,000,000 bytes where",
    ),
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
    csv.drop(columns="kind").assign(cost=csv["price"]).to_csv(folder / "copy.csv", index=False)
    copied = (folder / "copy.csv").read_text()
    (folder / "twice.csv").write_text(copied.replace("cost", "price", 1))
    before = names(folder)
    arguments, message = REFUSED[case]
    assert re.search(message, refused(capsys, arguments))
    assert names(folder) == before
    assert not names(folder / "folder")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected jaxgen with COMMAND, got less; see jaxgen --help"),
        (["delve", "merge", "one"], "expected jaxgen delve merge with OTHER, got less; see jaxgen delve merge --help"),
        (["asess"], "expected COMMAND to be one of assess, delve, report, info, got 'asess'; did you mean 'assess'?"),
        (["assess", "--scheme", "kfold"], "balanced, got 'kfold'; did you mean 'k-fold'?"),
        (["assess", "--loss", "sqared"], "expected --loss to be one of squared, absolute, zero_one, cross_entropy, "),
        (["assess", "--loss", "sqared"], "got 'sqared'; did you mean 'squared'?"),
        (["assess", "--loss", "xyz"], "got 'xyz'; choose one"),
        (["assess", "--resamples", "twenty"], "expected --resamples to be a whole number, got 'twenty'; write it in"),
        (["assess", "--fraction", "a tenth"], "expected --fraction to be a number, got 'a tenth'; write it in digits"),
        (["assess", "--resampels", "20"], "options of jaxgen assess, got --resampels; did you mean '--resamples'?"),
        (["assess", "--xyz=3"], "got --xyz; see jaxgen assess --help"),
        (["assess", "a.csv", "b.csv"], "expected the words of jaxgen assess, got 'b.csv' as well; see"),
        (["assess", "--target"], "expected a value after --target, got none"),
        (["delve", "report", "archive", "--hlm"], "options of jaxgen delve report, got --hlm; did you mean '--holm'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_is_one_sentence_that_names_what_was_meant(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    trouble = capsys.readouterr().err
    assert trouble.startswith("jaxgen: expected ")
    assert trouble.count("\n") == 1, "no usage"
    assert message in trouble


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--folds", "5"], "expected --folds with --scheme k-fold or nested, got --scheme leave-out, which does not"),
        (["--scheme", "k-fold", *FEW], "expected --resamples with --scheme leave-out or bootstrap or balanced, got"),
        (["--scheme", "leave-one-out", "--repeats", "2"], "expected --repeats with --scheme k-fold or nested, got"),
        (["--scheme", "bootstrap", "--fraction", "0.2"], "expected --fraction with --scheme leave-out or balanced, "),
        (["--config", "folds.toml"], "expected --folds with --scheme k-fold or nested, got --scheme leave-out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_that_the_scheme_does_not_use_are_refused(words, message, folder, capsys):
    (folder / "folds.toml").write_text("folds = 5\n")
    assert message in refused(capsys, ["assess", *words])


@pytest.mark.parametrize(("option", "part"), [("--help", "exit codes: 0 done"), ("--version", "")])
def test_help_and_version_end_well(option, part, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["assess", option] if part else [option])
    assert caught.value.code == 0
    assert part in capsys.readouterr().out


# What is kept, whatever happens


class Fails:
    """Stands in for the engine: trains the mean, and does something else for every other learner."""

    def __init__(self, monkeypatch, do):
        self.engine, self.do, self.asked = command.assess, do, []
        monkeypatch.setattr(command, "assess", self)

    def __call__(self, key, learner, *arguments, **kept):
        self.asked.append(repr(learner))
        do = self.engine if repr(learner) == "Mean()" else self.do
        return do(key, learner, *arguments, **kept)


def raises(error):
    def do(*arguments, **options):
        raise error

    return do


TWO = [*PRICES, "--learner", "mean", "--learner", "linear", "--out", "out", *FEW]
SWAPPED = [*PRICES, "--learner", "linear", "--learner", "mean", "--out", "out", *FEW]
RAISED = {
    "a sentence": (
        ValueError("expected less, got more; do so"),
        r"jaxgen: LeastSquares\(\): expected less, got more; do so",
    ),
    "another error": (
        RuntimeError("INTERNAL: device lost\nmore lines"),
        r"jaxgen: LeastSquares\(\): expected the command to end well, got RuntimeError: INTERNAL: device lost in "
        r".*test_command_line.py, line \d+; correct it there, or report it",
    ),
    "memory": (MemoryError(), r"jaxgen: LeastSquares\(\): expected the command to end well, got MemoryError in .*"),
}


@pytest.mark.parametrize("words", [TWO, SWAPPED], ids=["last", "first"])
@pytest.mark.parametrize("case", RAISED)
def test_a_learner_that_raises_does_not_lose_the_others(case, words, csv, folder, capsys, monkeypatch):
    error, message = RAISED[case]
    Fails(monkeypatch, raises(error))
    assert main(words) == 1
    printed, trouble = capsys.readouterr()
    assert re.fullmatch(message, trouble.strip())
    number = 1 if words is TWO else 2
    assert names(folder / "out") == sorted({*FILES} - {str(3 - number)})
    assert store.open(folder / "out" / str(number)).losses().learner == "Mean()"
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    assert manifest["learners"] == {str(number): "Mean()"}
    assert list(manifest["missing"]) == ["LeastSquares()"]
    assert "Mean()" in printed


def test_learners_that_all_raise_leave_no_folder(csv, folder, capsys, monkeypatch):
    Fails(monkeypatch, raises(ValueError("expected less, got more; do so")))
    before = names(folder)
    words = [*PRICES, "--learner", "linear", "--out", "out", *FEW]
    assert "LeastSquares(): expected less, got more" in refused(capsys, words)
    assert names(folder) == before


def test_a_learner_that_fails_in_every_row_does_not_lose_the_others(csv, folder, capsys, monkeypatch):
    def all_fail(*asked, **kept):
        losses = engine.engine(*asked, **kept)
        return replace(losses, failure=np.ones(losses.resamples, np.uint8))

    engine = Fails(monkeypatch, all_fail)
    for extra in ([], ["--drop-failed"]):
        out = f"out{len(extra)}"
        assert main([*TWO, *extra, "--out", out]) == 1
        printed = capsys.readouterr().out
        assert "12 of 12 trainings of LeastSquares() failed: its loss is not finite" in printed
        assert "call again with --drop-failed" not in printed
        assert names(folder / out) == FILES
        assert pd.read_csv(folder / out / "summary.csv")["learner"].tolist() == ["mean"]


def test_learners_that_fail_in_different_rows_leave_no_row_to_compare(csv, folder, capsys, monkeypatch):
    def half(key, learner, *asked, **kept):
        losses = engine.engine(key, learner, *asked, **kept)
        first = np.arange(losses.resamples) < 6
        return replace(losses, failure=(first if "ridge" in repr(learner) else ~first).astype(np.uint8))

    engine = Fails(monkeypatch, half)
    words = [*PRICES, "--learner", "linear", "--learner", "LeastSquares(ridge=1.0)", "--out", "out", *FEW]
    assert main([*words, "--drop-failed"]) == 1
    assert "no resampling is left on which all learners were trained" in capsys.readouterr().out
    assert names(folder / "out") == ["1", "2", "experiment.toml", "manifest.json"]


def test_a_user_who_stops_keeps_what_was_trained(csv, folder, capsys, monkeypatch):
    Fails(monkeypatch, raises(KeyboardInterrupt()))
    assert main(TWO) == 130
    assert capsys.readouterr().err == (
        "jaxgen: stopped; 1 of 2 learners are trained; the same command with --out out goes on\n"
    )
    assert store.open(folder / "out" / "1").losses().learner == "Mean()"
    before = names(folder)
    assert main([*SWAPPED, "--out", "other"]) == 130
    assert capsys.readouterr().err == "jaxgen: stopped; what was not complete was not saved\n"
    assert names(folder) == before


@pytest.mark.parametrize("late", [False, True], ids=["losses", "figure"])
def test_results_go_elsewhere_if_the_folder_can_no_longer_be_written(late, csv, folder, capsys, monkeypatch):
    """A disk that is full once the training is over, and a folder that is gone."""
    monkeypatch.setattr("tempfile.tempdir", str(folder / "temporary"))
    (folder / "temporary").mkdir()
    name, original = ("matplotlib.figure.Figure.savefig", None) if late else ("jaxgen.store.runs.write", store.write)

    def full(*arguments, **options):
        if "temporary" in str(arguments[1] if late else arguments[0]):
            return original(*arguments, **options) if original else arguments[1].touch()
        raise OSError(28, "No space left on device", "out")

    monkeypatch.setattr(name, full)
    assert main(TWO) == 1
    printed, trouble = capsys.readouterr()
    (elsewhere,) = (folder / "temporary").iterdir()
    assert "No space left on device" in trouble
    assert f"jaxgen: the results go to {elsewhere} instead\n" in trouble
    assert f"saved in {elsewhere}{os.sep}" in printed
    assert {"1", "2", "manifest.json"} <= set(names(elsewhere))
    assert store.open(elsewhere / "2").losses().learner == "LeastSquares()"
    assert "mean minus" in printed or "minus that of mean" in printed


def test_a_folder_that_vanishes_loses_nothing(csv, folder, capsys, monkeypatch):
    engine = Fails(
        monkeypatch, lambda *asked, **kept: (shutil.rmtree(folder / "out"), engine.engine(*asked, **kept))[1]
    )
    assert main(TWO) == 0
    assert names(folder / "out") == FILES
    assert store.open(folder / "out" / "1").losses().learner == "Mean()", "written again from memory"
    assert main(["report", "out"]) == 0
    assert capsys.readouterr().out.count("12 of 12 trainings") == 2


def test_the_same_command_goes_on_and_trains_nothing_twice(csv, folder, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        Fails(patch, raises(KeyboardInterrupt()))
        assert main(TWO) == 130
    engine = Fails(monkeypatch, lambda *asked, **kept: engine.engine(*asked, **kept))
    with monkeypatch.context() as patch:
        patch.setattr(store.StoredRun, "publish", only_for("LeastSquares()", store.StoredRun.publish))
        assert main(TWO) == 0
    first = (folder / "out" / "report.txt").read_text()
    assert names(folder / "out") == FILES
    monkeypatch.setattr(store.StoredRun, "publish", raises(AssertionError("trained again")))
    assert main(TWO) == 0, "what is complete is read"
    assert (folder / "out" / "report.txt").read_text() == first


def only_for(learner, original):
    """`StoredRun.publish` that no other learner may call."""

    def publish(run, *arguments):
        assert run.heading.learner == learner
        return original(run, *arguments)

    return publish


OTHER = {
    "seed": ([*TWO, "--seed", "3"], "got another seed: 3 instead of 0"),
    "plan": ([*TWO, "--fraction", "0.5"], "got another scheme: 'resample.leave_out"),
    "loss": ([*TWO, "--loss", "absolute"], "got another loss: 'absolute' instead of 'squared'"),
}


@pytest.mark.parametrize("case", OTHER)
def test_another_command_in_a_folder_of_results_is_refused(case, csv, folder, capsys):
    assert main(TWO) == 0
    capsys.readouterr()
    words, message = OTHER[case]
    before = (folder / "out" / "report.txt").read_text()
    told = refused(capsys, words)
    assert f"expected the same command as that of the results in out, {message}" in told
    assert told.endswith("choose another folder with --out\n")
    assert (folder / "out" / "report.txt").read_text() == before


def test_another_learner_in_the_place_of_one_is_refused_by_its_run(csv, folder, capsys):
    assert main(TWO) == 0
    before = (folder / "out" / "manifest.json").read_text()
    capsys.readouterr()
    assert "got another learner 1: 'LeastSquares()' instead of 'Mean()'; choose" in refused(capsys, SWAPPED)
    assert (folder / "out" / "manifest.json").read_text() == before
    assert main([*TWO, "--learner", "LeastSquares(ridge=2.0)"]) == 0, "one more"
    assert names(folder / "out") == sorted([*FILES, "3"])


@pytest.mark.parametrize("text", ["{", "[1]", ""], ids=["cut", "a list", "empty"])
def test_a_damaged_manifest_is_one_sentence(text, csv, folder, capsys):
    assert main(TWO) == 0
    (folder / "out" / "manifest.json").write_text(text)
    capsys.readouterr()
    assert "got out, whose manifest.json is damaged; choose another with --out" in refused(capsys, TWO)


def test_nowhere_to_write_still_prints_the_report(csv, folder, capsys, monkeypatch):
    monkeypatch.setattr("jaxgen.store.runs.write", raises(OSError(28, "No space left on device")))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert main(TWO) == 1
    printed, trouble = capsys.readouterr()
    assert "LeastSquares()" in printed
    assert "not all could be saved; what could is in out" in printed
    assert trouble.count("No space left on device") == 3, "in the folder, the temporary and the working one"
    assert not list(folder.glob("jaxgen-*"))


def test_a_figure_that_cannot_be_drawn_does_not_lose_the_rest(csv, folder, capsys, monkeypatch):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", raises(ValueError("array must not contain infs or NaNs")))
    assert main(TWO) == 1
    printed, trouble = capsys.readouterr()
    assert "jaxgen: no figure: expected the command to end well, got ValueError: array must not contain infs" in trouble
    assert names(folder / "out") == sorted({*FILES} - {"distribution.png"})
    assert "saved in out" in printed


def test_the_folder_is_looked_at_before_the_work(csv, folder, capsys, monkeypatch):
    engine = Fails(monkeypatch, raises(AssertionError("trained")))
    monkeypatch.setattr("pathlib.Path.write_bytes", raises(OSError(28, "No space left on device")))
    assert "got out (No space left on device)" in refused(capsys, TWO)
    assert engine.asked == []
    assert "out" not in names(folder)


def test_of_two_commands_with_one_folder_the_second_is_refused_before_its_work(csv, folder, capsys, monkeypatch):
    answers = []
    engine = Fails(monkeypatch, lambda *asked, **kept: (answers.append(main(TWO)), engine.engine(*asked, **kept))[1])
    assert main(SWAPPED) == 0
    assert answers == [2]
    assert engine.asked == ["LeastSquares()", "Mean()"], "those of the first command"
    assert "expected results that no other command works at, got out, at which process" in capsys.readouterr().err
    assert names(folder / "out") == FILES


def test_runs_of_one_second_get_names_of_their_own(csv, folder, capsys, monkeypatch):
    class Clock:
        @staticmethod
        def now():
            return datetime(2020, 1, 2, 3, 4, 5)

    monkeypatch.setattr(command, "datetime", Clock)
    for _ in range(2):
        assert main([*PRICES, "--learner", "mean", *FEW]) == 0
    assert names(folder / "jaxgen-runs") == ["prices-20200102-030405", "prices-20200102-030405-2"]
    assert f"saved in jaxgen-runs{os.sep}prices-20200102-030405-2{os.sep}" in capsys.readouterr().out
