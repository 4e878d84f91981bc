"""`jaxgen delve`, called in this process: what it runs, stores, prints and answers."""

import gzip
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from jaxgen import delve, learn
from jaxgen.cli.parser import main

RUN = ["delve", "run", "--file", "houses.csv", "--target", "price", "--sizes", "10,20", "--out", "archive"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to work in, with cases and methods of the user's."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(120, 3)), columns=["size", "age", "distance"])
    frame["price"] = 2 * frame["size"] - frame["age"] + 0.3 * random.normal(size=120)
    frame.to_csv("houses.csv", index=False)
    Path("own.py").write_text(
        "from jaxgen import learn\nplain_mean = learn.Mean()\ndef ridge(cases, inputs):\n    return "
        "learn.LeastSquares(ridge=1.0 * inputs)\nbad = learn.LeastSquares(ridge=-1.0)\n"
    )
    yield tmp_path
    plt.close("all")


def test_methods_run_are_reported(capsys):
    """As a newcomer would: built-in methods and own ones in two calls, then the report."""
    assert main([*RUN, "--methods", "lin-1,knn-cv-1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [
        f"houses, {size} cases, {name}" for size in (10, 20) for name in ("lin-1", "knn-cv-1")
    ]
    assert lines[-1] == "saved in archive; compare with: jaxgen delve report archive"
    assert main([*RUN, "--methods", "lin-1,own:plain_mean,own:ridge"]) == 0
    assert [line.endswith("there already") for line in capsys.readouterr().out.splitlines()[:-1]] == [
        True,
        False,
        False,
    ] * 2
    archive = delve.Archive.open("archive")
    assert archive.losses("houses", 10, "ridge").learner == repr(learn.LeastSquares(ridge=3.0))
    assert main(["delve", "report", "archive", "--out", "report", "--methods", "own-none,lin-1"]) == 2
    assert (
        "expected methods among those that have run (knn-cv-1, lin-1, plain-mean, ridge), got own-none; run it first"
        in capsys.readouterr().err
    )
    assert main(["delve", "report", "archive", "--out", "report", "--holm"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(delve.page(delve.all_compared(archive)))
    assert printed.splitlines()[-1] == "saved in report: houses.png, losses.csv, pairs.csv, report.txt, results.csv"
    assert pd.read_csv("report/losses.csv")["method"].tolist() == ["lin-1", "knn-cv-1", "plain-mean", "ridge"] * 2


def test_families_are_simulated(capsys):
    assert (
        main(
            [
                "delve",
                "run",
                "--family",
                "kin",
                "--inputs",
                "8,32",
                "--sizes",
                "64",
                "--methods",
                "own:plain_mean",
                "--out",
                "archive",
            ]
        )
        == 0
    )
    archive = delve.Archive.open("archive")
    assert archive.prototasks() == ("kin-32nm-like", "kin-8nm")
    assert archive.prototask("kin-32nm-like").data.x.shape == (8192, 32)
    assert archive.losses("kin-8nm", 64, "plain-mean").plan.train_sizes.tolist() == [64] * 8


def test_delve_files_keep_their_order(capsys):
    cases = pd.read_csv("houses.csv").to_numpy()
    with gzip.open("Prototask.data.gz", "wt") as file:
        file.writelines(" ".join(f"{value:.6f}" for value in case) + "\n" for case in cases)
    options = [
        "--name",
        "price",
        "--test-cases",
        "40",
        "--instances",
        "2",
        "--common",
        "--sizes",
        "30",
        "--loss",
        "absolute",
    ]
    assert (
        main(
            ["delve", "run", "--file", "Prototask.data.gz", "--methods", "own:plain_mean", "--out", "archive", *options]
        )
        == 0
    )
    losses = delve.Archive.open("archive").losses("price", 30, "plain-mean")
    assert losses.test.tolist() == [[1] * 40 + [0] * 80] * 2
    want = [np.mean(np.abs(cases[:40, 3] - cases[start : start + 30, 3].mean())) for start in (40, 70)]
    np.testing.assert_allclose(losses.g, want, rtol=1e-5)


def test_archives_are_merged(capsys):
    assert main([*RUN[:-1], "other", "--methods", "own:ridge"]) == 0
    assert main([*RUN, "--methods", "lin-1"]) == 0
    capsys.readouterr()
    assert main(["delve", "merge", "archive", "other"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "houses/10/ridge.npz",
        "houses/20/ridge.npz",
        "2 files added to archive",
    ]


def test_failed_instances_are_saved_and_told(capsys):
    frame = pd.read_csv("houses.csv")
    frame["age"] = np.where(np.arange(120) < 70, 0.0, frame["age"])  # constant in the first training set
    frame.to_csv("houses.csv", index=False)
    assert main([*RUN, "--methods", "lin-1", "--sizes", "10"]) == 1
    assert "1 of 6 instances FAILED" in capsys.readouterr().out
    assert delve.Archive.open("archive").losses("houses", 10, "lin-1").failed.tolist() == [True] + [False] * 5
    assert main([*RUN, "--methods", "lin-1", "--sizes", "10"]) == 1  # there already, and still failed


SENTENCES = {
    "no source": (
        ["delve", "run", "--methods", "lin-1", "--out", "a"],
        "one of the arguments --family --file is required",
    ),
    "no target": (
        ["delve", "run", "--file", "houses.csv", "--methods", "lin-1", "--out", "a"],
        "expected --target with the column of houses.csv to predict, got none; name it",
    ),
    "no such file": (
        ["delve", "run", "--file", "none.csv", "--target", "y", "--methods", "lin-1", "--out", "a"],
        "none.csv: expected a file, got none",
    ),
    "no such method": ([*RUN, "--methods", "lin-7"], "expected a method among lin-1"),
    "no such module": (
        [*RUN, "--methods", "owm:ridge"],
        "expected a method of your own as module:name, got owm:ridge, which cannot be imported",
    ),
    "a method that refuses": ([*RUN, "--methods", "own:bad"], "of at least 0, got -1.0; give 0 for none"),
    "sizes that are no numbers": (
        [*RUN, "--sizes", "64;128", "--methods", "lin-1"],
        "expected different whole numbers from 1 with commas between, got '64;128'",
    ),
    "too large a size": ([*RUN, "--sizes", "61", "--methods", "lin-1"], "expected size"),
    "an archive that is something else": (
        [*RUN[:-1], ".", "--methods", "lin-1"],
        "expected an archive of results, or a new folder, got ., which has no delve-archive.json",
    ),
    "no archive": (["delve", "report", "nowhere"], "expected an archive of results, got nowhere, which does not exist"),
    "no such family": (
        ["delve", "run", "--family", "kim", "--methods", "lin-1", "--out", "a"],
        "expected a family among kin, pumadyn, bank, got 'kim'",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_bad_input_is_named(case, capsys, own_messages):
    words, message = SENTENCES[case]
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert message in capsys.readouterr().err
