"""Methods on tasks: names, instances, the archive on disk, comparisons from it."""

import json
import shutil
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.stats

from jaxgen import Data, assess, delve, learn, resample
from jaxgen.engine.workers import one_at_a_time
from jaxgen.loss import absolute, cross_entropy
from jaxgen.stats import compare

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(160, 3))
Y = np.sin(X[:, :1]) + X[:, 1:2] + 0.5 * RANDOM.normal(size=(160, 1))
DATA = Data(X, Y, tuple("abc"))
SMALL = delve.Prototask("small-3nm", DATA, sizes=(10, 20), instances=8)
MEAN, LINE = delve.Method("mean", learn.Mean()), delve.Method("line", learn.Normalised(learn.LeastSquares()))


@dataclass(frozen=True)
class Diverging:
    """Fails where the first training case has a positive input; elsewhere predicts 0."""

    failures = ("its first case is positive",)

    def fit(self, key, x, y, w):
        return x[0, 0]

    def predict(self, params, x):
        return jnp.zeros_like(x[:, :1])

    def failure(self, params):
        return (params > 0).astype(jnp.int32)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An archive of two methods on two tasks; not to be changed."""
    with jax.enable_x64(True):
        return delve.run(tmp_path_factory.mktemp("delve") / "archive", [SMALL], [MEAN, LINE])


@pytest.fixture
def archive(made, tmp_path):
    """A copy of it."""
    shutil.copytree(made.path, tmp_path / "copy")
    return delve.Archive.open(tmp_path / "copy")


def test_losses_of_an_archive_are_those_of_a_loop_over_instances(made):
    """Training cases follow the test region, each instance is tested on its own block of it: numpy.linalg.lstsq on
    slices of the cases.
    """
    losses = made.losses("small-3nm", 20, "line")
    assert losses.plan.resamples == 4
    for i in range(4):
        train, test = slice(80 + 20 * i, 100 + 20 * i), slice(20 * i, 20 * (i + 1))
        design = np.column_stack([np.ones(160), X])
        predicted = design @ np.linalg.lstsq(design[train], Y[train], rcond=None)[0]
        np.testing.assert_allclose(losses.predictions[i, test], predicted[test], rtol=1e-9)
        np.testing.assert_allclose(losses.values[i, test], ((Y - predicted)[test, 0]) ** 2, rtol=1e-8)
        np.testing.assert_allclose(losses.g[i], np.mean((Y - predicted)[test] ** 2), rtol=1e-9)
        np.testing.assert_allclose(losses.apparent[i], np.mean((Y - predicted)[train] ** 2), rtol=1e-9)
    assert np.isnan(losses.values[losses.test == 0]).all()
    assert np.isnan(losses.predictions[losses.test == 0]).all()


def test_instances_are_gathered_not_masked():
    """A learner sees as many cases as it trains on, in a data set of many more."""
    seen = []

    @dataclass(frozen=True)
    class Counting(learn.Mean):
        def fit(self, key, x, y, w):
            seen.append(len(x))
            return learn.Mean.fit(self, key, x, y, w)

    delve.run_task(SMALL, 10, delve.Method("counting", Counting()))
    assert set(seen) - {24} == {10}  # a learner of the user's is first tried on 24 cases


def test_a_manifest_says_what_was_run(made):
    manifest = made.manifest("small-3nm", 20, "line")
    assert learn.from_text(manifest["learner"]) == LINE.learner
    assert (manifest["method"], manifest["prototask"], manifest["size"], manifest["loss"], manifest["seed"]) == (
        "line",
        "small-3nm",
        20,
        "squared",
        0,
    )
    assert manifest["sha256"] == SMALL.checksum
    assert manifest["precision"] == "float64"
    assert {"jaxgen", "jax", "numpy", "python", "seconds", "devices", "date"} <= manifest.keys()
    assert made.manifest("small-3nm", 20, "other") is None


def test_results_are_a_table(made):
    table = made.results()
    assert table[["prototask", "size", "method", "instances", "failed"]].to_numpy().tolist() == [
        ["small-3nm", s, m, {10: 8, 20: 4}[s], 0] for s in (10, 20) for m in ("line", "mean")
    ]
    np.testing.assert_allclose(table["mean"].iloc[2], made.losses("small-3nm", 20, "line").g.mean())


def test_an_archive_gives_the_prototask_back(made):
    got = made.prototask("small-3nm")
    np.testing.assert_array_equal(got.data.x, X)
    np.testing.assert_array_equal(got.data.y, Y)
    assert (got.data.names, got.sizes, got.instances, got.test_cases, got.common, got.origin, got.checksum) == (
        tuple("abc"),
        (10, 20),
        8,
        None,
        False,
        "given data",
        SMALL.checksum,
    )
    assert made.prototasks() == ("small-3nm",)


def test_a_method_of_today_is_paired_with_one_of_another_year(archive):
    """From the archive alone: cases, instances and losses of the old methods; the t-test is SciPy's on the means of
    the instances.
    """
    again = delve.Archive.open(archive.path)
    ridge = delve.Method("ridge", learn.LeastSquares(ridge=5.0))
    delve.run(again, [again.prototask("small-3nm")], [ridge])
    found = delve.compared(again, "small-3nm", ["line", "ridge"])
    for task, size in zip(found.tasks, (10, 20), strict=True):
        old, new = (again.losses("small-3nm", size, name) for name in ("line", "ridge"))
        want = scipy.stats.ttest_rel(new.g, old.g)
        np.testing.assert_allclose(
            [task.pairs.statistic[0], task.pairs.p_value[0]], [want.statistic, want.pvalue], rtol=1e-9
        )
        np.testing.assert_allclose(task.standard, np.var(Y[:80], ddof=1), rtol=1e-12)
        assert task.size == size


def test_what_is_there_is_not_run_again(archive, monkeypatch):
    before = {file: file.stat().st_mtime_ns for file in archive.path.rglob("*.npz")}
    (archive.path / "small-3nm" / "20" / "mean.npz").unlink()
    said = []
    delve.run(archive, [SMALL], [LINE, MEAN], say=said.append)
    assert [line.endswith("there already") for line in said] == [True, True, True, False]
    after = {file: file.stat().st_mtime_ns for file in archive.path.rglob("*.npz")}
    assert [file.name for file in before if before[file] != after[file]] == ["mean.npz"]


def test_an_interrupted_run_keeps_what_is_complete(tmp_path, monkeypatch):
    ran = []

    def interrupted(prototask, size, method, *rest):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(size)
        return delve.run_task(prototask, size, method, *rest)

    monkeypatch.setattr("jaxgen.delve.tasks.run_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        delve.run(tmp_path / "new", [SMALL], [MEAN, LINE])
    assert len(delve.Archive.open(tmp_path / "new").results()) == 2
    assert not list((tmp_path / "new").rglob("*.partial"))


def test_results_do_not_depend_on_what_else_is_run(made, tmp_path):
    network = delve.Method(
        "net", learn.Normalised(learn.EarlyStopped(learn.Descent(learn.MLP((2,)), steps=5), folds=2))
    )
    other = replace(SMALL, name="other-3nm", data=Data(X[::-1].copy(), Y[::-1].copy(), DATA.names))
    alone = delve.run(tmp_path / "alone", [SMALL], [network], sizes=[20])
    among = delve.run(tmp_path / "among", [other, SMALL], [MEAN, network])
    np.testing.assert_array_equal(*(one.losses("small-3nm", 20, "net").predictions for one in (alone, among)))
    assert not np.array_equal(*(among.losses("small-3nm", size, "net").info["iteration"][:4] for size in (10, 20)))


@dataclass(frozen=True)
class Patient(learn.Learner):
    """Predicts the mean, and says that it takes long."""

    @property
    def rounds(self):
        return 10**6

    def fit(self, key, x, y, w):
        return jnp.sum(w[:, None] * y, axis=0) / jnp.sum(w)

    def predict(self, params, x):
        return jnp.broadcast_to(params, (x.shape[0], params.shape[0]))


@pytest.fixture
def two_cores(monkeypatch):
    """One CPU device with two cores, and the names of the threads that ran tasks, with the rows of their chunks."""
    if jax.local_device_count() > 1:
        pytest.skip("tasks run side by side on a single device")
    ran = []

    def watched(*arguments):
        ran.append((threading.current_thread().name, one_at_a_time()))
        return delve.run_task(*arguments)

    monkeypatch.setattr("jaxgen.engine.budget._cores", lambda: 2)
    monkeypatch.setattr("jaxgen.delve.tasks.run_task", watched)
    return ran


def test_long_tasks_run_side_by_side_and_give_what_each_gives_alone(two_cores, tmp_path):
    methods, said = [delve.Method("patient", Patient()), delve.Method("mean", learn.Mean())], []
    archive = delve.run(tmp_path / "side", [SMALL], methods, say=said.append)
    main = threading.current_thread().name
    assert [(name == main, alone) for name, alone in two_cores] == [(True, False)] * 2 + [(False, True)] * 2
    assert [", mean:" in line for line in said] == [True, True, False, False]
    one = delve.run(tmp_path / "one", [SMALL], methods[:1], sizes=[10])
    assert not two_cores[-1][1]  # a single one is left to all cores
    np.testing.assert_array_equal(
        *(each.losses("small-3nm", 10, "patient").predictions for each in (archive, one)), strict=True
    )
    sizes = [archive.losses("small-3nm", size, "patient").predictions for size in (10, 20)]
    for size, predictions in zip((10, 20), sizes, strict=True):
        means = [Y[train > 0].mean() for train in SMALL.plan(size).train]
        test = SMALL.plan(size).test > 0
        np.testing.assert_allclose(predictions[test].reshape(len(means), -1).mean(1), means, rtol=1e-6)  # 32 bits


def test_tasks_keep_to_the_settings_of_a_with_and_errors_come_through(two_cores, tmp_path):
    with jax.enable_x64(True):
        delve.run(tmp_path / "wide", [SMALL], [delve.Method("patient", Patient())])
    assert not any(alone for _, alone in two_cores)

    @dataclass(frozen=True)
    class Broken(Patient):
        def fit(self, key, x, y, w):
            raise ValueError("expected a fit, got none")

    with pytest.raises(ValueError, match="expected a fit, got none"):
        delve.run(tmp_path / "broken", [SMALL], [delve.Method("broken", Broken())])


def test_the_first_network_is_that_of_the_ensemble():
    """mlp-bgd-2b against mlp-bgd-2, both on one task: same splits, same start, same networks."""
    task = replace(SMALL, sizes=(16,))
    four, first = (
        delve.run_task(task, 16, delve.Method("m", delve.mlp_bgd("gradient", members, steps=30)))
        for members in (None, 1)
    )
    np.testing.assert_array_equal(four.info["iteration"][:, :1], first.info["iteration"])
    # other programs, so other roundings, with XLA's optimisations
    np.testing.assert_allclose(four.info["validation"][:, :1], first.info["validation"], rtol=1e-6)


def test_delves_names_are_the_methods_of_the_papers():
    assert set(delve.METHODS) == {
        *("lin-1", "knn-cv-1", "mlp-bgd-1", "mlp-bgd-2", "mlp-bgd-2b", "mlp-bgd-3", "mlp-ese-1"),
        *(f"mlp-mc-{number}{longer}" for number in (1, 2, 3, 4) for longer in ("", "b")),
    }
    for relevance, name in (("none", "mlp-bgd-1"), ("gradient", "mlp-bgd-2"), ("correlation", "mlp-bgd-3")):
        stopped = delve.METHODS[name].on(64, 8).base
        descent = stopped.base
        assert (stopped.folds, stopped.share, stopped.patience, stopped.refit, stopped.members) == (
            4,
            None,
            None,
            False,
            None,
        )
        assert (
            descent.rate,
            descent.steps,
            len(descent.checkpoint_steps),
            descent.relevance,
            descent.optimiser,
            descent.batch,
        ) == (0.1, 20_000, 63, relevance, None, None)
        assert (descent.network.hidden, descent.network.activation, descent.network.skip, descent.network.init) == (
            (20,),
            "tanh",
            False,
            0.01,
        )
    assert delve.METHODS["mlp-bgd-2b"].on(64, 8).base == replace(delve.METHODS["mlp-bgd-2"].on(64, 8).base, members=1)
    assert delve.METHODS["mlp-ese-1"].on(64, 8) == delve.mlp_ese_1(64, 8) != delve.METHODS["mlp-ese-1"].on(128, 8)
    for number, skip, relevance, passes in ((1, True, 1, 120_000), (2, True, 1, 60_000), (3, False, 1, 60_000)):
        bayes = delve.METHODS[f"mlp-mc-{number}"].on(64, 8).base
        assert (bayes.network, bayes.passes) == (learn.MLP((20,), skip=skip), passes)
        assert bayes.prior.input_hidden.relevance == bayes.prior.direct.relevance == relevance
        assert delve.METHODS[f"mlp-mc-{number}b"].on(64, 8).base == replace(bayes, passes=3 * passes)
    assert delve.METHODS["mlp-mc-4"].on(64, 8).base.prior.input_hidden.relevance is None
    for method in delve.METHODS.values():
        learner = method.on(64, 8)
        assert learn.from_text(repr(learner)) == learner


@pytest.mark.parametrize(
    ("size", "instances", "block"),
    [(64, 8, 512), (128, 8, 512), (256, 8, 512), (512, 8, 512), (1024, 4, 1024)],
)
def test_simulated_tasks_have_delves_conventions(size, instances, block):
    plan = delve.Prototask("p", Data(np.zeros((8192, 1)), np.zeros((8192, 1)), ("a",))).plan(size)
    assert plan.train.shape == (instances, 8192)
    for i in range(instances):
        assert np.flatnonzero(plan.test[i]).tolist() == list(range(i * block, (i + 1) * block))
        assert np.flatnonzero(plan.train[i]).tolist() == list(range(4096 + i * size, 4096 + (i + 1) * size))


def test_simulated_prototasks_are_rounded_and_say_where_they_come_from():
    task, again = (delve.simulated("kin", cases=200, sizes=(20,)) for _ in range(2))
    assert task.name == "kin-8nm"
    assert task.data.x.shape == (200, 8)
    assert task.checksum == again.checksum != delve.simulated("kin", cases=200, seed=1).checksum
    np.testing.assert_array_equal(task.data.y, np.round(task.data.y, 6))
    assert (
        task.origin == "simulate.kin(jax.random.key(0), 200, inputs=8, linearity='n', noise='m'), rounded to 6 decimals"
    )


def test_failed_instances_are_kept_and_said_and_their_method_left_out(archive):
    said = []
    delve.run(archive, [SMALL], [delve.Method("diverging", Diverging())], say=said.append)
    failed = X[80:160:10, 0] > 0
    assert archive.losses("small-3nm", 10, "diverging").failed.tolist() == failed.tolist()
    assert f"{failed.sum()} of 8 instances FAILED" in said[0]
    found = delve.compared(archive, "small-3nm")
    assert found.tasks[0].labels == ("line", "mean")
    assert f"left out: diverging, which failed on {failed.sum()} instances with 10 cases" in str(found)
    with pytest.raises(
        ValueError,
        match=r"expected a method that has run without failure on small-3nm with 10, 20 cases, got none "
        r"\(diverging, which failed",
    ):
        delve.compared(archive, "small-3nm", ["diverging"])


def test_methods_that_ran_on_some_sizes_only_are_left_out_and_said(archive):
    delve.run(archive, [SMALL], [delve.Method("ridge", learn.LeastSquares(ridge=1.0))], sizes=[10])
    assert delve.compared(archive, "small-3nm").left_out == ("ridge, which has not run with 20 cases",)
    assert delve.compared(archive, "small-3nm", sizes=[10]).tasks[0].labels == ("line", "mean", "ridge")


def test_archives_are_merged(archive, tmp_path):
    ridge, other = delve.Method("ridge", learn.LeastSquares(ridge=1.0)), replace(SMALL, name="other-3nm")
    more = delve.run(tmp_path / "more", [SMALL, other], [ridge], sizes=[10])
    delve.run(more, [SMALL], [LINE], sizes=[10])
    line = archive.path / "small-3nm" / "10" / "line.npz"
    mine = line.read_bytes()
    assert archive.merge(more) == ["other-3nm/prototask.npz", "other-3nm/10/ridge.npz", "small-3nm/10/ridge.npz"]
    assert archive.merge(more) == []
    assert line.read_bytes() == mine
    np.testing.assert_array_equal(archive.losses("other-3nm", 10, "ridge").g, more.losses("other-3nm", 10, "ridge").g)


def test_merging_copies_nothing_if_anything_disagrees(archive, tmp_path):
    different = delve.run(
        tmp_path / "more",
        [replace(SMALL, name="a-new-one"), SMALL],
        [delve.Method("line", learn.LeastSquares(ridge=1.0))],
        sizes=[10],
    )
    with pytest.raises(
        ValueError,
        match=r"expected the same results under the same name, got small-3nm/10/line.npz with another "
        r"learner \(LeastSquares\(ridge=1.0\), not Normalised",
    ):
        archive.merge(different)
    assert archive.prototasks() == ("small-3nm",)
    others = delve.run(tmp_path / "others", [replace(SMALL, data=Data(X, Y + 1, DATA.names))], [MEAN], sizes=[10])
    with pytest.raises(
        ValueError, match=r"expected the prototask small-3nm that is in .*, got one of the same name with other cases"
    ):
        archive.merge(others)


def test_reports_are_written_whole(archive, tmp_path):
    out = delve.write_report(archive, tmp_path / "report", adjusted=True)
    assert sorted(path.name for path in out.iterdir()) == [
        "losses.csv",
        "pairs.csv",
        "report.txt",
        "results.csv",
        "small-3nm.png",
    ]
    losses, pairs = pd.read_csv(out / "losses.csv"), pd.read_csv(out / "pairs.csv")
    assert losses[["prototask", "size", "method"]].to_numpy().tolist() == [
        ["small-3nm", s, m] for s in (10, 20) for m in ("line", "mean")
    ]
    task = delve.compared(archive, "small-3nm").tasks[1]
    np.testing.assert_allclose(losses["standardised_loss"].iloc[2:], task.estimate / task.standard)
    np.testing.assert_allclose(pairs["p_value"].iloc[1], task.pairs.p_value[0])
    assert (out / "report.txt").read_text().strip() == delve.page(delve.all_compared(archive))
    with pytest.raises(
        FileExistsError, match="expected a new folder for the results, got .*report, which exists; choose another"
    ):
        delve.write_report(archive, out)


def test_a_common_test_set_is_compared_by_quasi_f(tmp_path):
    archive = delve.run(
        tmp_path / "common", [replace(SMALL, common=True, test_cases=60, instances=4)], [MEAN, LINE], loss=absolute
    )
    task = delve.compared(archive, "small-3nm").tasks[0]
    want = compare.quasi_f(*(archive.losses("small-3nm", 10, name) for name in ("line", "mean")))
    np.testing.assert_array_equal(task.pairs.p_value[0], want.p_value)
    assert (task.common, task.instances, task.cases, task.unit) == (True, 4, 60, "absolute loss")


def test_losses_that_delve_does_not_standardise_are_reported_raw(tmp_path):
    labels = np.stack([Y[:, 0] > 0, Y[:, 0] <= 0], axis=1).astype(float)
    data = Data(X, labels, DATA.names, "sign", "classification", ("up", "down"))
    archive = delve.run(
        tmp_path / "classes",
        [delve.Prototask("classes", data, (20,))],
        [delve.Method("logistic", learn.Logistic(ridge=1.0)), delve.Method("priors", learn.Logistic(ridge=1e6))],
        loss=cross_entropy,
    )
    assert archive.losses("classes", 20, "logistic").predictions.shape == (4, 160, 2)
    delve.write_report(archive, tmp_path / "report")
    assert "expected cross_entropy loss\n" in (tmp_path / "report" / "report.txt").read_text()


def test_methods_of_the_user_are_found_by_import_path(tmp_path, monkeypatch, own_messages):
    monkeypatch.chdir(tmp_path)
    Path("own_methods.py").write_text(
        "from jaxgen import delve, learn\n"
        "my_ridge = learn.LeastSquares(ridge=2.0)\n"
        "def by_size(cases, inputs):\n    return learn.LeastSquares(ridge=float(cases * inputs))\n"
        "named = delve.Method('called-so', my_ridge)\n"
        "nothing = 3\n"
    )
    assert delve.method("own_methods:my_ridge") == delve.Method("my-ridge", learn.LeastSquares(ridge=2.0))
    assert delve.method("own_methods:by_size").on(10, 3) == learn.LeastSquares(ridge=30.0)
    assert delve.method("own_methods:named").name == "called-so"
    with pytest.raises(
        ValueError,
        match=r"expected method nothing to be a learner, or a function of \(cases, inputs\) that returns one, got 3",
    ):
        delve.method("own_methods:nothing").on(10, 3)
    for text in ("own_methods:missing", "no_such_module:x"):
        with pytest.raises(
            ValueError, match=f"expected a method of your own as module:name, got {text}, which cannot be imported"
        ):
            delve.method(text)


def wrong_plan(archive):
    losses = assess(jax.random.key(0), learn.Mean(), DATA, resample.task_instances(160, 10, 4), keep="predictions")
    archive.add("small-3nm", 10, "new", losses, 0)


def without_predictions(archive):
    archive.add("small-3nm", 10, "new", assess(jax.random.key(0), learn.Mean(), DATA, SMALL.plan(10)), 0)


def damaged(archive):
    (archive.path / "small-3nm" / "10" / "line.npz").write_bytes(b"half a file")
    archive.losses("small-3nm", 10, "line")


def of_other_cases(archive):
    """As after copying files of another archive by hand."""
    other = delve.run(
        archive.path.parent / "other", [replace(SMALL, data=Data(X, Y + 1, DATA.names))], [MEAN], sizes=[10]
    )
    shutil.copy(other.path / "small-3nm" / "10" / "mean.npz", archive.path / "small-3nm" / "10" / "mean.npz")
    delve.compared(archive, "small-3nm")


def of_another_format(archive):
    (archive.path / "delve-archive.json").write_text(json.dumps({"format": 99}))
    delve.Archive.open(archive.path)


SENTENCES = {
    "another learner under the name": (
        lambda a: delve.run(a, [SMALL], [replace(LINE, learner=learn.Mean())]),
        r"expected the method line that .* has for small-3nm with 10 cases, got one with another learner",
    ),
    "another seed": (
        lambda a: delve.run(a, [SMALL], [LINE], seed=1),
        r"expected the method line .*with another seed \(1, not 0\)",
    ),
    "another loss": (
        lambda a: delve.run(a, [SMALL], [LINE], loss=absolute),
        r"expected the method line .*with another loss",
    ),
    "other cases under the name": (
        lambda a: delve.run(a, [replace(SMALL, data=Data(X, 2 * Y, DATA.names))], [MEAN]),
        "expected the prototask small-3nm that is in .*, got one of the same name with other cases",
    ),
    "other conventions": (
        lambda a: delve.run(a, [replace(SMALL, common=True)], [MEAN]),
        "got one of the same name with common=True",
    ),
    "a method twice": (
        lambda a: delve.run(a, [SMALL], [MEAN, MEAN]),
        "expected methods of different names, got mean, mean; name each once",
    ),
    "no prototask": (lambda a: delve.run(a, [], [MEAN]), "expected prototasks of different names, got none"),
    "a name that is a path": (
        lambda a: delve.run(a, [SMALL], [delve.Method("../up", learn.Mean())]),
        r"expected a method's name of letters, digits, '.', '-' and '_', got '../up'",
    ),
    "a prototask that is a path": (
        lambda a: delve.run(a, [replace(SMALL, name="a/b")], [MEAN]),
        "expected a prototask's name of letters, digits",
    ),
    "no learner": (
        lambda a: delve.run(a, [SMALL], [delve.Method("class", learn.Mean)]),
        "expected method class to be a learner",
    ),
    "several data sets": (
        lambda a: delve.run(a, [replace(SMALL, name="q", data=Data(X[None], Y[None], DATA.names))], [MEAN]),
        "expected one data set for a prototask, got 1; choose one, as in data",
    ),
    "a result that is there": (
        lambda a: a.add("small-3nm", 10, "line", a.losses("small-3nm", 10, "line"), 0),
        "expected a new file, got .*line.npz, which exists",
    ),
    "losses of another plan": (
        wrong_plan,
        "expected losses of the plan .*task_instances.*, got .*; assess with the plan of the prototask",
    ),
    "losses without predictions": (
        without_predictions,
        "expected losses with the predictions of every case, got losses without; assess with keep='predictions'",
    ),
    "no such prototask": (
        lambda a: a.prototask("kin-8nm"),
        "expected a prototask among small-3nm of .*, got 'kin-8nm'",
    ),
    "no such result": (
        lambda a: a.losses("small-3nm", 10, "other"),
        "expected a result of other on small-3nm with 10 training cases, got none",
    ),
    "a damaged file": (
        damaged,
        "expected a complete file of an archive of results, got .*line.npz, which cannot be read",
    ),
    "a result of other cases": (
        of_other_cases,
        "expected a result on the cases and the plan of small-3nm, got one on others",
    ),
    "another format": (of_another_format, "expected an archive of format 1, got 99"),
    "no archive": (
        lambda a: delve.Archive.open(a.path / "nowhere"),
        "expected an archive of results, got .*nowhere, which does not exist",
    ),
    "another folder": (
        lambda a: delve.Archive.open(a.path / "small-3nm", create=True),
        "expected an archive of results, or a new folder, got .*small-3nm, which has no delve-archive.json",
    ),
    "a file": (
        lambda a: delve.Archive.open(a.path / "delve-archive.json", create=True),
        "expected an archive of results, or a new folder, got .*json, which has no",
    ),
    "comparing nothing": (
        lambda a: delve.compared(a, "kin-8nm"),
        "expected results for kin-8nm in .*, got none; run methods on it first",
    ),
    "comparing what was not run": (
        lambda a: delve.compared(a, "small-3nm", ["line", "mlp"]),
        "expected a method among line, mean for small-3nm, got mlp; run it first",
    ),
    "a size that was not run": (
        lambda a: delve.compared(a, "small-3nm", sizes=[40]),
        "expected a size among 10, 20 for small-3nm, got 40",
    ),
    "no such family": (
        lambda a: delve.simulated("kinn"),
        "expected a family among kin, pumadyn, bank, got 'kinn'; choose one",
    ),
    "no such method": (
        lambda a: delve.method("mlp-bgd-9"),
        "expected a method among lin-1, .*, or your own as module:name, got 'mlp-bgd-9'",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_bad_input_is_named(case, archive, own_messages):
    act, message = SENTENCES[case]
    files = sorted(archive.path.rglob("*"))
    with pytest.raises((ValueError, OSError), match=message) as caught, jax.enable_x64(True):
        act(archive)
    assert str(caught.value).startswith("expected ")
    assert "\n" not in str(caught.value)
    assert sorted(archive.path.rglob("*")) == files
