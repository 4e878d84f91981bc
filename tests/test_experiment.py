"""The command line for whole experiments: a file of options, classes, missing values, all pairs, numbers for
programs.
"""

import json
import re
import tomllib

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from jaxgen import resample, store
from jaxgen.cli import configuration
from jaxgen.cli.parser import main
from jaxgen.types import memory

pytestmark = pytest.mark.usefixtures("folder")

FEW = ["--resamples", "8"]


@pytest.fixture
def passengers(folder):
    """60 passengers like those of the Titanic: names, tickets, dates, classes, missing ages; survived is 0 or 1."""
    random = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "survived": random.integers(0, 2, n),
            "name": [f"Person {i}, Mr." for i in range(n)],
            "ticket": [f"A/{i * 7}" for i in range(n)],
            "boarded": pd.date_range("1912-04-01", periods=n).strftime("%Y-%m-%d"),
            "sex": random.choice(["male", "female"], n),
            "age": np.where(random.random(n) < 0.2, np.nan, random.integers(1, 70, n)),
            "fare": random.gamma(2, 10, n).round(2),
        }
    )
    frame.loc[frame["sex"] == "female", "survived"] = (random.random((frame["sex"] == "female").sum()) < 0.9).astype(
        int
    )
    frame.to_csv(folder / "titanic.csv", index=False)
    return frame


PASSENGERS = [
    *("assess", "titanic.csv", "--target", "survived", "--task", "classification"),
    *("--drop", "name", "--drop", "ticket", "--dates", "days", "--missing", "impute", *FEW, "--out", "out"),
]


def refused(capsys, words):
    """The one line on standard error of a command that is refused."""
    assert main(words) == 2
    printed, message = capsys.readouterr()
    assert message.startswith("jaxgen: ")
    assert message.count("\n") == 1, "one line"
    assert "saved in" not in printed
    return message


def test_passengers_are_classified_by_error_log_loss_and_area(passengers, folder, capsys):
    assert main([*PASSENGERS, "--json", "all.json", "--csv", "all.csv", "--html", "page.html"]) == 0
    printed, trouble = capsys.readouterr()
    assert not trouble
    gaps = int(passengers["age"].isna().sum())
    assert f"{gaps} cases lack inputs, which are filled in from the training cases of each split" in printed
    assert "column 'boarded' counts the cases" in printed, "days, one after the other"
    for word in ("error rate (zero_one loss)", "log loss (cross_entropy loss)", "AUC: corrected resampled t interval"):
        assert word in printed
    names = {path.name for path in (folder / "out").iterdir()}
    assert {"roc.png", "precision_recall.png", "report.html", "experiment.toml"} <= names
    losses = store.open(folder / "out" / "1").losses()
    assert losses.learner == "Imputed(base=Normalised(base=Logistic(ridge=1.0)))"
    labels = passengers["survived"].to_numpy()
    assert np.ptp(losses.test[:, labels == 1].sum(1)) <= 1, "stratified"
    tree = json.loads((folder / "all.json").read_text())
    assert [view["number"] for view in tree["results"]] == ["error rate", "log loss", "AUC"]
    rows = [roc_auc_score(labels[test], losses.predictions[r][test, 1]) for r, test in enumerate(losses.test > 0)]
    assert tree["results"][2]["intervals"][0]["estimate"] == pytest.approx(np.mean(rows))
    assert tree["data"]["missing"] == gaps
    assert tree["seeds"] == {"seed": 0, "training_seed": 1}
    assert (tree["names"], tree["learners"][0]) == (["logistic", "mean"], losses.learner)
    assert tree["results"][0]["rows"]["logistic"] == losses.g.tolist()
    table = pd.read_csv(folder / "all.csv", keep_default_na=False)
    sizes = table[table["quantity"].str.startswith("training_cases ")]
    assert sizes["value"].astype(int).tolist() == tree["plan"]["training_cases"], "one a line"
    means = table[(table["number"] == "error rate") & (table["quantity"] == "mean")]
    assert means["value"].astype(float).tolist()[0] == pytest.approx(losses.g.mean())
    assert (folder / "page.html").read_text() == (folder / "out" / "report.html").read_text()
    assert (
        f"{gaps} cases lacked inputs, which were filled in anew for every training set"
        in (folder / "page.html").read_text()
    )


def test_the_file_in_the_results_does_the_same_again(passengers, folder, capsys):
    assert main(PASSENGERS) == 0
    assert main(["assess", "--config", "out/experiment.toml", "--out", "again"]) == 0
    first, again = (json.loads((folder / out / "manifest.json").read_text()) for out in ("out", "again"))
    assert first == again
    one, other = (store.open(folder / out / "1").losses() for out in ("out", "again"))
    np.testing.assert_array_equal(one.values, other.values)
    texts = [(folder / out / "experiment.toml").read_text() for out in ("out", "again")]
    assert texts[0] == texts[1]
    capsys.readouterr()
    assert main(["report", "out", "--html", "page.html"]) == 0
    assert "AUC" in (folder / "page.html").read_text()
    (folder / "titanic.csv").unlink()
    assert main(["report", "out", "--html", "page.html"]) == 0
    assert "without the data" in capsys.readouterr().out
    assert "AUC" not in (folder / "page.html").read_text()


@pytest.fixture
def prices(folder):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"size": random.normal(size=30), "age": random.normal(size=30)})
    frame.assign(price=frame["size"] + random.normal(size=30)).to_csv(folder / "prices.csv", index=False)


PRICES = ["assess", "prices.csv", "--target", "price", *FEW]
THREE = [word for name in ("mean", "linear", "LeastSquares(ridge=9.0)") for word in ("--learner", name)]


def test_three_learners_are_compared_in_all_pairs(prices, capsys):
    assert main([*PRICES, *THREE, "--out", "out"]) == 0
    printed = capsys.readouterr().out
    assert (
        "all pairs by the corrected resampled t-test (Nadeau & Bengio 2003), p-values adjusted by Holm 1979" in printed
    )
    lines = [line for line in printed.splitlines() if re.search(r"(better|not told apart|\(\)|\))$", line.strip())]
    assert sum("[" in line for line in lines) == 3


def test_numbers_for_programs_are_all_that_is_printed(prices, folder, capsys):
    assert main([*PRICES, *THREE, "--json", "-", "--out", "out"]) == 0
    printed, trouble = capsys.readouterr()
    tree = json.loads(printed)
    assert not trouble
    assert tree["learners"] == ["Mean()", "LeastSquares()", "LeastSquares(ridge=9.0)"]
    (view,) = tree["results"]
    assert len(view["comparisons"]) == 3
    assert all(row["p_value"] <= row["adjusted"] for row in view["comparisons"])
    assert tree["folder"] == "out"
    assert main([*PRICES, "--learner", "mean"]) == 0
    assert "saved in" in capsys.readouterr().out, "it speaks again"


def test_a_file_of_options_is_relative_to_itself_and_the_command_wins(prices, folder, capsys):
    (folder / "sub").mkdir()
    said = ('file = "../prices.csv"', 'target = "price"', "resamples = 6", "fraction = 0.25", 'learner = ["mean"]')
    others = ('out = "results"', 'json = "all.json"', "drop_failed = true")
    (folder / "sub" / "e.toml").write_text("\n".join([*said, *others]))
    assert main(["assess", "--config", "sub/e.toml", "--resamples", "7", "--learner", "linear"]) == 0
    losses = store.open(folder / "sub" / "results" / "1").losses()
    assert losses.learner == "LeastSquares()"
    want = resample.leave_out(jax.random.key(0), 30, 0.25, 7)
    np.testing.assert_array_equal(losses.test, want.test)
    assert (folder / "sub" / "all.json").exists()
    assert main(["assess", "--config", "sub/e.toml", "--scheme", "k-fold", "--folds", "3", "--out", "folds"]) == 0
    assert store.open(folder / "folds" / "1").losses().resamples == 30, (
        "fraction and resamples are of the file's scheme"
    )


def test_learners_are_called_by_the_word_that_was_typed_and_their_code_is_said_once(prices, folder, capsys):
    words = [*PRICES, "--learner", "logistic", "--learner", "mean", "--learner", "LeastSquares(ridge=9.0)"]
    words[words.index("logistic")] = "linear"
    assert main([*words, "--out", "out"]) == 0
    text = (folder / "out" / "report.txt").read_text()
    assert text.startswith("linear: LeastSquares()\nmean: Mean()\n")
    assert (text.count("LeastSquares()"), text.count("Mean()")) == (1, 1)
    assert "LeastSquares(ridge=9.0)" in text
    page = (folder / "out" / "report.html").read_text()
    assert "We assessed linear (LeastSquares()), mean (Mean()) and LeastSquares(ridge=9.0) on the 30 cases" in page
    assert '<td class="name">linear</td>' in page
    stored = store.open(folder / "out" / "1").losses()
    assert (stored.learner, stored.label) == ("LeastSquares()", ""), "what a run is told apart by"
    assert main([*words, "--out", "out"]) == 0, "it goes on"
    capsys.readouterr()
    assert main(["report", "out", "--html", "again.html"]) == 0
    assert '<td class="name">linear</td>' in (folder / "again.html").read_text()
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in said if " loss, " in line] == [
        "linear: LeastSquares()",
        "mean: Mean()",
        "LeastSquares(ridge=9.0)",
    ]
    (folder / "out" / "experiment.toml").write_text("target = [")
    assert main(["report", "out"]) == 0, "its words only are lost"
    assert "\nMean(), squared loss" in capsys.readouterr().out


CONFIGS = {
    "unknown name": ("targt = 'price'", "e.toml: expected the name of an option, got 'targt'; did you mean 'target'?"),
    "unlike any": ("zzzzz = 1", "e.toml: expected the name of an option, got 'zzzzz'; the names are file, target"),
    "no TOML": ("target", "e.toml: expected options in TOML, got what is none"),
    "a line that is none": ("seed = 1\nseed == 3", "got what is none in line 2: 'seed == 3' (Invalid value (at line 2"),
    "nearly a choice": ("scheme = 'kfold'", "got 'kfold'; did you mean 'k-fold'?"),
    "an option of another scheme": ("folds = 5", "expected --folds with --scheme k-fold or nested, got --scheme leave"),
    "text for a number": ("resamples = 'many'", "e.toml: expected resamples to be a whole number, got 'many'; write"),
    "a number for text": ("target = 3", "e.toml: expected target to be text, got 3; write it so"),
    "text for a share": ("fraction = '0.1'", "e.toml: expected fraction to be a number, got '0.1'"),
    "true for a number": ("seed = true", "e.toml: expected seed to be a whole number, got True"),
    "text for true": ("drop-failed = 'yes'", "e.toml: expected drop-failed to be true or false, got 'yes'"),
    "a number in a list": ("learner = ['mean', 3]", "e.toml: expected learner to be a list of texts, got ['mean', 3]"),
    "no choice": ("scheme = 'folds'", "e.toml: expected scheme to be one of leave-out, k-fold, nested,"),
    "a table": ("[data]\ntarget = 'price'", "e.toml: expected the name of an option, got 'data'"),
    "the file itself": ("config = 'e.toml'", "e.toml: expected the name of an option, got 'config'"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_wrong_file_of_options_is_one_sentence(case, prices, folder, capsys):
    text, message = CONFIGS[case]
    (folder / "e.toml").write_text(text)
    assert message in refused(capsys, ["assess", "--config", "e.toml"])


def test_all_choices_that_a_file_asks_for_are_said_at_once(passengers, capsys):
    words = ["assess", "titanic.csv", "--target", "survived"]
    message = refused(capsys, words)
    advice = "--task classification --dates days --drop name --drop ticket --missing impute"
    assert message.endswith(f". This file asks for several choices, for example {advice}\n")
    assert main([*words, *advice.split(), *FEW, "--learner", "mean", "--out", "out"]) == 0


def test_options_survive_a_file(tmp_path):
    """What is written is read as the same, whatever is in the texts."""
    texts = {"target": 'a "b" \\ \t ü', "drop": ["x=1", "y\n"], "fraction": 1e-05, "missing_indicator": True}
    assert tomllib.loads(configuration.written(texts)) == {name.replace("_", "-"): text for name, text in texts.items()}


REFUSED = {
    "0 and 1 are no numbers": (
        ["assess", "titanic.csv", "--target", "survived", "--drop", "name", "--drop", "ticket", "--dates", "drop"],
        "expected no missing value, got ",
    ),
    "nor classes": (
        [*PASSENGERS[:4], *PASSENGERS[6:]],
        "expected task='classification' or task='regression' for 'survived', a target of 2 different whole numbers",
    ),
    "identifiers": (
        [*PASSENGERS[:6], "--dates", "drop", "--missing", "drop"],
        "got 48 different texts in the 48 rows of column 'name'",
    ),
    "dates": ([*PASSENGERS[:10], "--missing", "impute"], "got dates in column 'boarded'; say dates='days'"),
    "an unknown column to drop": (
        [*PASSENGERS, "--drop", "nam"],
        "expected --drop with a column other than the target, got 'nam'; did you mean 'name'?",
    ),
    "the target to drop": ([*PASSENGERS, "--drop", "survived"], "got 'survived'; name an input"),
    "an unknown class": ([*PASSENGERS, "--positive", "yes"], "got 'yes'; the classes are 0, 1"),
    "strata of numbers": (
        [*PRICES, "--stratify"],
        "with classes and --scheme leave-out, k-fold or nested, got regression",
    ),
    "strata of nothing": (
        [*PASSENGERS, "--scheme", "bootstrap", "--stratify"],
        "expected --stratify with classes and --scheme leave-out, k-fold or nested, got --scheme bootstrap; leave it",
    ),
    "an indicator of nothing": (
        [*PRICES, "--missing-indicator"],
        "expected --missing-indicator with --missing impute, got --missing error; say --missing impute",
    ),
    "columns of built-in data": (["assess", "wine", "--drop", "hue"], "expected --drop with a file only"),
    "no file of options": (["assess", "--config", "none.toml"], "none.toml: expected a file with options, got none"),
    "the data as a result": (
        [*PRICES, "--csv", "prices.csv"],
        "expected a new file, or one that jaxgen wrote before, got prices.csv, which is another; choose another name",
    ),
    "a class of numbers": ([*PRICES, "--positive", "yes"], "expected --positive with a classification only, got 'yes'"),
    "no folder to report": (["report", "nosuch"], "nosuch: expected the folder of a run, got none; check the path"),
    "a file to report": (["report", "prices.csv"], "prices.csv: expected the folder of a run, got a file; check"),
    "a result without a folder": (
        [*PRICES, "--json", "no/all.json"],
        "expected a place that can be written, got no/all.json, whose folder is not there",
    ),
    "a folder as a result": ([*PRICES, "--html", "."], "got ., which is another"),
    "one file twice": (
        [*PRICES, "--json", "a", "--csv", "a"],
        "expected different files for --json, --csv and --html, got a, a; name each once",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_as_expected_is_one_line_and_leaves_nothing(case, passengers, prices, folder, capsys):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    words, message = REFUSED[case]
    assert message in refused(capsys, words)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.slow
def test_rows_with_gaps_are_dropped_and_counted(passengers, capsys):
    words = [*PASSENGERS[:13], "drop", *PASSENGERS[14:], "--learner", "mean"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    gaps = int(passengers["age"].isna().sum())
    assert f"{gaps} of 60 cases left out, which lack a value" in printed
    assert printed.startswith(f"titanic: {60 - gaps} cases, ")


def test_predictions_that_take_too_much_memory_are_not_kept(passengers, capsys, monkeypatch):
    monkeypatch.setattr("jaxgen.cli.assess.free_bytes", lambda: 1000)
    assert main([*PASSENGERS, "--learner", "mean"]) == 0
    assert "predictions are not kept, which would take much memory; so there is one loss, and no AUC" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize("json_wanted", [False, True])
def test_info_says_what_is_used(json_wanted, capsys, monkeypatch, folder):
    monkeypatch.setattr("jaxgen.engine.kept.folder_in_use", lambda: folder / "jaxgen")
    (folder / "jaxgen").mkdir()
    (folder / "jaxgen" / "some.program").write_bytes(b"12345")
    assert main(["info", *(["--json"] if json_wanted else [])]) == 0
    printed = capsys.readouterr().out
    if json_wanted:
        found = json.loads(printed)
        assert found["versions"]["jax"] == jax.__version__
        assert found["cache"]["files"] == 1
        assert found["cache"]["bytes"] == 5
        assert found["cores"] > 0
        assert 0 < found["memory_free"] <= found["memory"]
    else:
        assert re.search(rf"^jax +{re.escape(jax.__version__)}$", printed, re.MULTILINE)
        assert "jaxgen: 1 files, 5 B of at most 537 MB" in printed


def test_the_limits_of_a_container_count(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path)
    whole = memory.most_bytes(), memory.cores()
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text("1000000\n")
    assert (memory.most_bytes(), memory.cores()) == (10**6, 0.5)
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert (memory.most_bytes(), memory.cores()) == whole
