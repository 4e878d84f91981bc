"""DELVE of what it is not for: wrong arguments, own modules that do not work, damaged archives, several processes."""

import json
import multiprocessing
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hostile import NO_NUMBERS, STRANGERS, refused

from jaxgen import Data, delve, learn, resample, store
from jaxgen.loss import squared
from jaxgen.types import Losses

pytestmark = [pytest.mark.one_device, pytest.mark.usefixtures("own_messages")]

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(80, 2)), RANDOM.normal(size=(80, 1))
DATA = Data(X, Y, ("a", "b"))
TASK = delve.Prototask("small", DATA, sizes=(5, 10), instances=4)
MEAN = delve.Method("mean", learn.Mean())
NO_COUNTS = (0, -1, 2.0, 2.5, np.nan, "2", [2], True, None)


def losses_of(task=TASK, size=5, name="mean", shift=0.0):
    """As `delve.run_task` would give them, without running anything."""
    plan = task.plan(size)
    predictions = np.full((plan.resamples, plan.n, 1), shift)
    return Losses.from_predictions(task.data.y, predictions, plan.train, plan.test, squared, name)


def stored(folder, names=("mean", "line")):
    """An archive of methods on both sizes."""
    archive = delve.Archive.open(folder, create=True)
    archive.add_prototask(TASK)
    for size in TASK.sizes:
        for number, name in enumerate(names):
            losses = losses_of(size=size, name=name, shift=0.1 * number)
            archive.add("small", size, name, replace(losses, plan=TASK.plan(size)), 0)
    return archive


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("delve") / "archive")


@pytest.fixture
def archive(made, tmp_path):
    """A copy, to be spoiled."""
    shutil.copytree(made.path, tmp_path / "copy")
    return delve.Archive.open(tmp_path / "copy")


# arguments

OTHERS = [*STRANGERS.values(), DATA, TASK, MEAN, learn.Mean()]
KINDS = {  # what takes one argument of a kind -> what it takes
    "run's prototasks": (lambda a, other: delve.run(a, other, [MEAN]), ()),
    "run's methods": (lambda a, other: delve.run(a, [TASK], other), ()),
    "a prototask of run": (lambda a, other: delve.run(a, [other], [MEAN]), (TASK,)),
    "a method of run": (lambda a, other: delve.run(a, [TASK], [other]), (MEAN,)),
    "run_task's prototask": (lambda a, other: delve.run_task(other, 5, MEAN), (TASK,)),
    "run_task's method": (lambda a, other: delve.run_task(TASK, 5, other), (MEAN,)),
    "add's losses": (lambda a, other: a.add("small", 5, "new", other, 0), ()),
    "add_prototask": (lambda a, other: a.add_prototask(other), (TASK,)),
    "merge": (lambda a, other: a.merge(other), ()),
    "open": (lambda a, other: delve.Archive.open(other), ("a",)),
    "Archive": (lambda a, other: delve.Archive(other), ()),
    "task_losses": (lambda a, other: a.task_losses("small", 5, other), ([1, 2],)),
    "Prototask": (lambda a, other: delve.Prototask("p", other), (DATA,)),
    "compared": (lambda a, other: delve.compared(other, "small"), ()),
    "compared's methods": (lambda a, other: delve.compared(a, "small", other), (None, [1, 2])),
    "compared's sizes": (lambda a, other: delve.compared(a, "small", sizes=other), (None, [1, 2])),
    "all_compared": (lambda a, other: delve.all_compared(other), ()),
    "all_compared's prototasks": (lambda a, other: delve.all_compared(a, prototasks=other), (None, [1, 2])),
    "page": (lambda a, other: delve.page(other), ()),
    "tables": (lambda a, other: delve.tables(other), ()),
    "write_report": (lambda a, other: delve.write_report(other, a.path.parent / "report"), ()),
    "write_report's folder": (lambda a, other: delve.write_report(a, other), ("a",)),
    "analyse": (lambda a, other: delve.analyse(other), ()),
    "standard_loss's plan": (lambda a, other: delve.standard_loss(Y, other, "squared"), ()),
    "task_figure": (lambda a, other: delve.task_figure(other), ()),
    "say": (lambda a, other: delve.run(a, [TASK], [MEAN], say=other), (None, dict)),
}


@pytest.mark.parametrize("name", KINDS)
def test_arguments_of_other_kinds(name, archive):
    call, right = KINDS[name]
    before = sorted(archive.path.parent.rglob("*"))
    for other in OTHERS:
        if not any(type(other) is type(each) and (other is each or type(each) in (list, str)) for each in right):
            refused(lambda: call(archive, other), TypeError)  # noqa: B023
    assert sorted(archive.path.parent.rglob("*")) == before


VALUES = {  # call with a value, and what is refused
    "size of a plan": (lambda a, value: TASK.plan(value), (*NO_COUNTS, 50)),
    "size of a key": (lambda a, value: delve.task_key(0, "small", value), NO_COUNTS),
    "seed of a key": (lambda a, value: delve.task_key(value, "small", 5), (-1, 2**32, 1.5, "a", None, True)),
    "seed": (lambda a, value: delve.run(a, [TASK], [MEAN], seed=value), (-1, 2**32, 1.5, "a", None, True)),
    "seed of an entry": (lambda a, value: a.add("small", 5, "new", losses_of(), value), (-1, 1.5, "a", None)),
    "sizes": (
        lambda a, value: delve.run(a, [TASK], [MEAN], sizes=value),
        ([], "5", 5, [5, 5], [5.0], ["5"], [0], {5}, [500], [None]),
    ),
    "sizes of a prototask": (lambda a, value: replace(TASK, sizes=value), ([], "5", 5, [5, 5], [5.0], None)),
    "instances": (lambda a, value: replace(TASK, instances=value), NO_COUNTS),
    "test cases": (lambda a, value: replace(TASK, test_cases=value), (*NO_COUNTS[:-1], 80)),
    "common": (lambda a, value: replace(TASK, common=value), (None, 1, "yes")),
    "origin": (lambda a, value: replace(TASK, origin=value), (None, 1)),
    "name of a prototask": (lambda a, value: replace(TASK, name=value), ("", "a/b", "../a", " a", None, 3, "a\n")),
    "name of a method": (lambda a, value: replace(MEAN, name=value), ("", "a/b", "../a", " a", None, 3, "a\n")),
    "learner of a method": (lambda a, value: delve.Method("m", value), (None, 3, "lin-1", [learn.Mean()], dict)),
    "what a function of sizes gives": (
        lambda a, value: delve.Method("m", lambda cases, inputs: value).on(5, 2),
        (None, 3, "lin-1", learn.Mean),
    ),
    "prototask's name in an archive": (lambda a, value: a.prototask(value), ("none", None, "../copy", 3)),
    "prototask of a manifest": (lambda a, value: a.manifest(value, 5, "mean"), ("../small", None, "")),
    "size of a manifest": (lambda a, value: a.manifest("small", value, "mean"), NO_COUNTS),
    "method of a manifest": (lambda a, value: a.manifest("small", 5, value), ("../5/mean", None, "", 3)),
    "method of an entry": (lambda a, value: a.add("small", 5, value, losses_of(), 0), ("../up", None, "", 3)),
    "size of losses": (lambda a, value: a.losses("small", value, "mean"), (*NO_COUNTS, 7)),
    "results": (lambda a, value: a.results(value), ("../*", None, "", "[", 3)),
    "text of a method": (
        lambda a, value: delve.method(value),
        (None, 3, "", ":", "a:", ":a", "a:b:c", "mlp", ["lin-1"]),
    ),
    "family": (lambda a, value: delve.simulated(value), (None, 3, "", "Kin", ["kin"])),
    "seed of a family": (lambda a, value: delve.simulated("kin", seed=value), (-1, 2**32, 1.5, "a", None)),
    "cases of a family": (lambda a, value: delve.simulated("kin", cases=value), NO_COUNTS),
    "sizes of a family": (lambda a, value: delve.simulated("kin", sizes=value), ([], "5", 5, [5, 5], [5.0])),
    "a divisor": (
        lambda a, value: delve.analyse([a.losses("small", 5, "mean")], value),
        (0.0, -1.0, "a", np.nan, np.inf),
    ),
    "a level": (
        lambda a, value: delve.analyse([a.losses("small", 5, "mean")], level=value),
        (0, 1, 95, *NO_NUMBERS.values()),
    ),
    "a loss to standardise": (
        lambda a, value: delve.standard_loss(Y, TASK.plan(5), value),
        ("hinge", None, 3, squared),
    ),
    "labels": (lambda a, value: delve.analyse([a.losses("small", 5, "mean")], labels=value), (5, "a", [1], [])),
    "adjusted": (lambda a, value: delve.write_report(a, a.path.parent / "new", adjusted=value), (None, 1, "yes")),
    "cases of ese_hidden": (lambda a, value: delve.ese_hidden(value, 2), (*NO_COUNTS, 1)),
    "share of ese_hidden": (lambda a, value: delve.ese_hidden(10, 2, 1, value), (0, 1, *NO_NUMBERS.values())),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_that_are_none(name, archive):
    call, values = VALUES[name]
    before = sorted(archive.path.parent.rglob("*"))
    for value in values:
        refused(lambda: call(archive, value), (TypeError, ValueError))  # noqa: B023
    assert sorted(archive.path.parent.rglob("*")) == before


@pytest.mark.parametrize("y", [None, "a", [["a"]] * 80, np.ones(80), np.ones((5, 1)), np.full((80, 1), np.nan)])
def test_targets_to_standardise(y):
    refused(lambda: delve.standard_loss(y, TASK.plan(5), "squared"), (TypeError, ValueError))


def test_nothing_is_made_before_all_fits(tmp_path):
    many = delve.Method("many", lambda cases, inputs: learn.Mean() if cases < 10 else None)
    for call in (
        lambda: delve.run(tmp_path / "new", [TASK], [many]),
        lambda: delve.run(tmp_path / "new", [TASK], [MEAN], sizes=[5, 500]),
        lambda: delve.run(tmp_path / "new", [TASK], [MEAN, replace(MEAN)]),
        lambda: delve.run(tmp_path / "new", [TASK], [MEAN], loss="sqared"),
    ):
        refused(call)
    assert not list(tmp_path.iterdir())


# own modules

MODULES = {
    "no such module": ("", "no_such_module:ridge"),
    "no such package": ("", "no_such.module:ridge"),
    "no such name": ("ridge = 1", "hostile_module:forest"),
    "no Python": ("def (", "hostile_module:ridge"),
    "not text": ("\0", "hostile_module:ridge"),
    "raises": ("1 / 0", "hostile_module:ridge"),
    "raises nothing to say": ("raise RuntimeError", "hostile_module:ridge"),
    "raises lines": ("raise ValueError('one\\ntwo')", "hostile_module:ridge"),
    "exits": ("import sys\nsys.exit(3)", "hostile_module:ridge"),
    "exits in words": ("raise SystemExit('no data here')", "hostile_module:ridge"),
    "imports what is not there": ("import no_such_module", "hostile_module:ridge"),
    "is relative": ("ridge = 1", ".hostile_module:ridge"),
    "is a number": ("ridge = 1", "hostile_module:ridge"),
    "is a class": ("from jaxgen.learn import Mean as ridge", "hostile_module:ridge"),
    "has a name for no file": ("def möglich(cases, inputs):\n    return 1", "hostile_module:möglich"),
}


@pytest.mark.parametrize("name", MODULES)
def test_own_modules_that_do_not_work(name, tmp_path, monkeypatch):
    text, method = MODULES[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "hostile_module", raising=False)
    Path("hostile_module.py").write_text(text)
    path = list(__import__("sys").path)
    refused(lambda: delve.method(method), ValueError)
    assert __import__("sys").path == path


def test_own_functions_of_sizes_that_do_not_work():
    for function in (lambda: 1, lambda cases: 1, lambda cases, inputs: 1 / 0, lambda cases, inputs: None):
        refused(lambda: delve.Method("own", function).on(5, 2), ValueError)  # noqa: B023


# damaged files


def changed(file, manifest=lambda m: m, arrays=lambda a: a):
    """Writes a file anew with other content, as by another program that makes no mistake in the format."""
    before = store.read(file)
    file.unlink()
    store.write(file, manifest(dict(before[0])), arrays(dict(before[1])))


def without(name):
    return lambda parts: {key: value for key, value in parts.items() if key != name}


def put(name, value):
    return lambda parts: parts | {name: value(parts[name]) if callable(value) else value}


def of(file, content):
    file.write_bytes(content)


def flipped(file, place):
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 0xFF
    file.write_bytes(content)


DAMAGES = {
    "cut in half": lambda file: of(file, file.read_bytes()[: file.stat().st_size // 2]),
    "cut at the end": lambda file: of(file, file.read_bytes()[:-1]),
    "empty": lambda file: of(file, b""),
    "text": lambda file: of(file, b"a,b\n1,2\n"),
    "pickled": lambda file: np.savez(file, manifest=np.array([{}], object)),
    "no manifest": lambda file: np.savez(file, losses=np.ones(3)),
    "a manifest that is no JSON": lambda file: np.savez(file, manifest=np.array("{")),
    "a manifest that is a list": lambda file: np.savez(file, manifest=np.array("[1]")),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "another shape": lambda file: changed(file, arrays=put("losses", lambda a: a[:, :-1])),
    "fewer instances": lambda file: changed(file, arrays=put("failure", lambda a: a[:-1])),
    "more failures than reasons": lambda file: changed(file, arrays=put("failure", lambda a: a + 9)),
    "failures as fractions": lambda file: changed(file, arrays=put("failure", lambda a: a + 0.5)),
    "losses as text": lambda file: changed(file, arrays=put("losses", lambda a: a.astype(str))),
    "losses of one row": lambda file: changed(file, arrays=put("losses", lambda a: a[0])),
    "means of columns": lambda file: changed(file, arrays=put("train_mean", lambda a: a[:, None])),
    "no predictions": lambda file: changed(file, arrays=without("predictions")),
    "no losses": lambda file: changed(file, arrays=without("losses")),
    "no size": lambda file: changed(file, without("size")),
    "size as text": lambda file: changed(file, put("size", str)),
    "size as list": lambda file: changed(file, put("size", lambda size: [size])),
    "no learner": lambda file: changed(file, without("learner")),
    "learner as number": lambda file: changed(file, put("learner", 3)),
    "no reasons": lambda file: changed(file, put("reasons", None)),
    "another method": lambda file: changed(file, put("method", "line")),
    "another prototask": lambda file: changed(file, put("prototask", "other")),
    "another size": lambda file: changed(file, put("size", 10)),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_results(name, archive, tmp_path):
    DAMAGES[name](archive.path / "small" / "5" / "mean.npz")
    other = stored(tmp_path / "other", ("mean",))
    for call in (
        lambda: archive.results(),
        lambda: archive.losses("small", 5, "mean"),
        lambda: archive.manifest("small", 5, "mean"),
        lambda: delve.compared(archive, "small"),
        lambda: delve.all_compared(archive),
        lambda: delve.write_report(archive, tmp_path / "report"),
        lambda: archive.merge(other),
        lambda: other.merge(archive),
    ):
        assert "mean.npz" in refused(call, ValueError)
    assert not (tmp_path / "report").exists()
    assert delve.Archive.open(other.path).results()["method"].tolist() == ["mean", "mean"]


PROTOTASKS = {
    "cut": lambda file: of(file, file.read_bytes()[:-9]),
    "empty": lambda file: of(file, b""),
    "no inputs": lambda file: changed(file, arrays=without("x")),
    "no names": lambda file: changed(file, without("names")),
    "another checksum": lambda file: changed(file, put("sha256", "0")),
    "other cases": lambda file: changed(file, arrays=put("x", lambda x: x + 1)),
    "NaN": lambda file: changed(file, arrays=put("x", lambda x: x * np.nan)),
    "fewer targets": lambda file: changed(file, arrays=put("y", lambda y: y[:-1])),
    "sizes as text": lambda file: changed(file, put("sizes", "64")),
    "no sizes": lambda file: changed(file, put("sizes", None)),
    "instances as text": lambda file: changed(file, put("instances", "8")),
    "a task that is none": lambda file: changed(file, put("task", 3)),
}


@pytest.mark.parametrize("name", PROTOTASKS)
def test_damaged_prototasks(name, archive, tmp_path):
    PROTOTASKS[name](archive.path / "small" / "prototask.npz")
    other = stored(tmp_path / "other", ("mean",))
    for call in (
        lambda: archive.prototask("small"),
        lambda: archive.losses("small", 5, "mean"),
        lambda: delve.compared(archive, "small"),
        lambda: other.merge(archive),
    ):
        refused(call, ValueError)


def test_a_flipped_byte_is_refused_or_changes_nothing(archive):
    """Bytes that say when a file was packed, for example, are of no account."""
    refusals = 0
    for name, read in (
        ("small/5/mean.npz", lambda: archive.losses("small", 5, "mean").values),
        ("small/prototask.npz", lambda: archive.prototask("small").data.x),
    ):
        file, right = archive.path / name, read()
        content = file.read_bytes()
        for place in np.linspace(0, 0.999, 30):
            flipped(file, place)
            try:
                np.testing.assert_array_equal(read(), right)
            except ValueError:
                refused(read, ValueError)
                refusals += 1
            file.write_bytes(content)
    assert refusals > 30  # of 60


FOLDERS = {
    "a folder of no size": lambda path: (path / "small" / "5").rename(path / "small" / "four"),
    "a folder of another size": lambda path: (path / "small" / "5").rename(path / "small" / "7"),
    "a method renamed": lambda path: (path / "small/5/mean.npz").rename(path / "small/5/other.npz"),
    "a prototask renamed": lambda path: (path / "small").rename(path / "other"),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_files_that_were_moved(name, archive):
    FOLDERS[name](archive.path)
    assert "is the result of" in refused(archive.results, ValueError)


MARKS = {
    "empty": "",
    "text": "archive",
    "a list": "[1]",
    "no format": "{}",
    "format as text": '{"format": "1"}',
    "a later format": '{"format": 2}',
    "no format number": '{"format": null}',
}


@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_folders_that_are_no_archive(mark, archive):
    (archive.path / "delve-archive.json").write_text(mark)
    refused(lambda: delve.Archive.open(archive.path), ValueError)
    refused(lambda: delve.run(archive.path, [TASK], [MEAN]), ValueError)


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    kinds = (OSError, ValueError, FileNotFoundError, FileExistsError, NotADirectoryError)
    for place in (tmp_path / "file" / "in", tmp_path / ("long" * 100), "/proc/none/archive", "zero\0byte"):
        refused(lambda: delve.Archive.open(place, create=True), kinds)  # noqa: B023
        refused(lambda: delve.Archive.open(place), FileNotFoundError)  # noqa: B023


# several processes


def add_many(path, names, start):
    """Makes an archive, or opens it, and adds results under these names that are not there yet."""
    start.wait()
    archive = delve.Archive.open(path, create=True)
    archive.add_prototask(TASK)
    for name in names:
        try:
            archive.add("small", 5, name, replace(losses_of(name=name), plan=TASK.plan(5)), 0)
        except FileExistsError:
            continue


def test_two_processes_make_one_archive_and_add_to_it(tmp_path):
    context = multiprocessing.get_context("spawn")  # JAX does not survive a fork
    path, barrier = tmp_path / "archive", context.Barrier(2)
    names = [f"method-{number}" for number in range(8)]
    both = [context.Process(target=add_many, args=(path, names[k:] + names[:k], barrier)) for k in (0, 1)]
    for each in both:
        each.start()
    for each in both:
        each.join(120)
    assert [each.exitcode for each in both] == [0, 0]
    table = delve.Archive.open(path).results()
    assert table["method"].tolist() == names
    assert not list(path.rglob("*.partial"))


def test_a_result_that_another_process_stored_meanwhile_stays(made, tmp_path, monkeypatch):
    archive, said = delve.Archive.open(tmp_path / "new", create=True), []

    def slow(prototask, size, method, *rest):
        losses = replace(losses_of(size=size, name=repr(method.learner)), plan=prototask.plan(size))
        if size == 5:  # the other process is faster with this one
            archive.add(prototask.name, size, method.name, losses, 0)
        return losses

    monkeypatch.setattr("jaxgen.delve.tasks.run_task", slow)
    delve.run(archive, [TASK], [MEAN], say=said.append)
    assert [line.split(": ")[1].split(" ")[0] for line in said] == ["there", "mean"]
    assert len(archive.results()) == 2


def test_another_result_that_another_process_stored_meanwhile_is_not_taken(tmp_path, monkeypatch):
    archive = delve.Archive.open(tmp_path / "new", create=True)

    def slow(prototask, size, method, *rest):
        losses = replace(losses_of(size=size, name="LeastSquares()"), plan=prototask.plan(size))
        archive.add(prototask.name, size, method.name, losses, 0)
        return losses

    monkeypatch.setattr("jaxgen.delve.tasks.run_task", slow)
    assert "with another learner" in refused(lambda: delve.run(archive, [TASK], [MEAN]), ValueError)


def test_an_archive_may_begin_in_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    assert delve.Archive.open(tmp_path / "empty", create=True).results().empty
    assert json.loads((tmp_path / "empty" / "delve-archive.json").read_text()) == {"format": 1}
    assert os.listdir(tmp_path / "empty") == ["delve-archive.json"]


def test_losses_of_another_plan_are_refused(archive):
    other = replace(losses_of(), plan=resample.task_instances(80, 5, 4, common=True))
    refused(lambda: archive.add("small", 5, "new", other, 0), ValueError)
