"""Runs in parts, kept on disk, stopped, killed, damaged, and computed elsewhere: the losses stay the same."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import jax
import numpy as np
import pytest

from jaxgen import Data, assess, learn, loss, resample, simulate, store
from jaxgen.cli.parser import main
from jaxgen.engine import assessment, executors, parts, progress, run
from jaxgen.store.parts import Part, divided

KEY = jax.random.key(7)
NET = learn.Descent(learn.MLP((3,)), steps=20)
LONG = learn.Normalised(learn.Descent(learn.MLP((20,)), rate=0.01, steps=3000))
"""Short steps: long ones would let rounding grow to other networks."""
ROUNDING = 1e-12
"""Linear fits are in double precision; other chunks may add in another order."""
SINGLE = 1e-5
"""What fits tell of themselves, such as the norm of a gradient, is in single precision."""


def problem(sets=None):
    return simulate.linear_ar(jax.random.key(0), sets, n=40, d=3).data


def splits(rows=30, **more):
    return resample.leave_out(jax.random.key(1), 40, fraction=0.25, resamples=rows, **more)


def same(a, b, tolerance=ROUNDING):
    for name in ("test_mean", "train_mean", "values", "predictions", "failure"):
        one, other = getattr(a, name), getattr(b, name)
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
            assert one.dtype == other.dtype
    assert a.info.keys() == b.info.keys()
    for name in a.info:
        np.testing.assert_allclose(a.info[name], b.info[name], rtol=max(tolerance, SINGLE), atol=1e-6)
    assert (a.learner, a.loss, a.reasons, a.plan.scheme) == (b.learner, b.loss, b.reasons, b.plan.scheme)
    np.testing.assert_array_equal(a.train, b.train)


def counted(monkeypatch):
    """The numbers of the parts that are computed from now on."""
    seen, original = [], assessment.compute

    def compute(specification, *arguments):
        seen.append(specification.part.number)
        return original(specification, *arguments)

    monkeypatch.setattr(assessment, "compute", compute)
    return seen


def stopped_after(monkeypatch, number, trouble=KeyboardInterrupt, only=None):
    """Lets the training of part `number` raise something, of one learner or of every one."""
    original = assessment.compute

    def compute(specification, *arguments):
        if specification.part.number == number and only in (None, specification.learner):
            raise trouble
        return original(specification, *arguments)

    monkeypatch.setattr(assessment, "compute", compute)


# Parts


@pytest.mark.parametrize(("sets", "rows", "size"), [(1, 1000, 300), (1, 7, 100), (5, 10, 25), (5, 10, 3), (3, 4, 0)])
def test_parts_hold_every_training_once(sets, rows, size):
    count = np.zeros((sets, rows), int)
    found = divided(sets, rows, size)
    for number, part in enumerate(found):
        count[part.at] += 1
        assert part.number == number
        assert 1 <= part.size <= max(size, 1)
    assert (count == 1).all()
    assert len({part.last_row - part.first_row for part in found}) <= 2, "at most two programs"


@pytest.mark.devices
@pytest.mark.parametrize("keep", ["cases", "predictions", "rows"])
@pytest.mark.parametrize("learner", [learn.LeastSquares(), NET, learn.Neighbours(3)], ids=lambda a: type(a).__name__)
def test_parts_change_no_number(learner, keep):
    """A network draws its start by the number of its row in the whole run; in single precision."""
    whole = assess(KEY, learner, problem(), splits(), keep=keep)
    same(whole, assess(KEY, learner, problem(), splits(), keep=keep, part=7), 1e-5 if learner is NET else ROUNDING)


@pytest.mark.parametrize("part", [3, 20])
@pytest.mark.parametrize("own", [False, True], ids=["one plan", "a plan each"])
def test_parts_of_several_data_sets(own, part):
    data, plan = problem(3), splits(10, sets=3) if own else splits(10)
    same(assess(KEY, NET, data, plan), assess(KEY, NET, data, plan, part=part), 1e-5)


def test_parts_of_several_plans_of_one_data_set():
    same(assess(KEY, NET, problem(), splits(4, sets=3)), assess(KEY, NET, problem(), splits(4, sets=3), part=2), 1e-5)


def test_parts_of_bootstrap_samples_take_one_way(monkeypatch):
    """How many different cases a row draws differs between parts; a program of its own for each would be compiled."""
    plan = resample.bootstrap(jax.random.key(2), 40, 30)
    same(assess(KEY, NET, problem(), plan), assess(KEY, NET, problem(), plan, part=6), 1e-5)
    jobs, original = set(), parts.job_of

    def job_of(*arguments):
        jobs.add(original(*arguments))
        return original(*arguments)

    monkeypatch.setattr(parts, "job_of", job_of)
    assess(KEY, NET, problem(), plan, part=6)
    assert len(jobs) == 1


def test_the_size_of_a_part_is_about_a_minute_of_work():
    """Networks of 20 units, 500 epochs of 100 cases: some 10 to 20 ns a case and epoch and core make some thousand
    to some ten thousand a minute on a few cores. A cheap fit is held by memory: at most 256 MiB of losses.
    """

    def size(learner, keep="cases"):
        data = simulate.linear_ar(jax.random.key(0), None, n=100, d=10).data
        plan = resample.leave_out(KEY, 100, 0.1, 50)
        chosen = run.way(learner, loss.squared, data, plan)
        job = run.job_of(learner, loss.squared, data, chosen, tuple(jax.devices()), False)
        return parts.part_size(job, keep)

    assert 5e3 < size(learn.Descent(learn.MLP((20,)), steps=500)) < 2e5
    assert size(learn.Descent(learn.MLP((20,)), steps=5000)) < 0.2 * size(learn.Descent(learn.MLP((20,)), steps=500))
    assert 2**28 / 2 < size(learn.LeastSquares()) * 100 * 8 <= 2**28
    assert size(learn.LeastSquares(), "rows") > 1e6


# The store


def test_a_finished_run_is_read_and_not_computed_again(tmp_path, monkeypatch):
    whole = assess(KEY, learn.LeastSquares(), problem(), splits(), part=10, store=tmp_path / "run")
    seen = counted(monkeypatch)
    same(whole, assess(KEY, learn.LeastSquares(), problem(), splits(), part=4, store=tmp_path / "run"))
    assert seen == []
    same(whole, store.open(tmp_path / "run").losses())
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        *("lock", "part-00000.npz", "part-00001.npz", "part-00002.npz", "plan.npz", "run.json"),
    ]
    assert "3 of 3 parts" in repr(store.open(tmp_path / "run"))


def test_a_stopped_run_goes_on_where_it_was(tmp_path, monkeypatch):
    whole = assess(KEY, NET, problem(), splits(), keep="predictions")
    with monkeypatch.context() as patch:
        stopped_after(patch, 2)
        with pytest.raises(KeyboardInterrupt, match="stopped; 2 of 5 parts are in .*run, where the same call goes on"):
            assess(KEY, NET, problem(), splits(), keep="predictions", part=6, store=tmp_path / "run")
    seen = counted(monkeypatch)
    same(whole, assess(KEY, NET, problem(), splits(), keep="predictions", part=6, store=tmp_path / "run"), 1e-5)
    assert seen == [2, 3, 4]


def test_without_a_store_a_stopped_run_says_what_would_have_helped(monkeypatch):
    stopped_after(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt, match="stopped; nothing was kept; give assess a store=folder"):
        assess(KEY, NET, problem(), splits(), part=6)


def test_a_run_can_be_read_while_it_goes_on(tmp_path, monkeypatch):
    """Random rows that are there are a smaller plan of the same kind; all others make sense only together."""
    whole = assess(KEY, learn.LeastSquares(), problem(), splits())
    stopped_after(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        assess(KEY, learn.LeastSquares(), problem(), splits(), part=6, store=tmp_path / "run")
    so_far = store.open(tmp_path / "run").losses()
    assert so_far.resamples == 12
    assert so_far.plan.scheme.endswith("resamples=30), 12 of 30 rows")
    np.testing.assert_allclose(so_far.g, whole.g[:12], rtol=ROUNDING)
    state = store.open(tmp_path / "run").state()
    assert state[:4] == (5, 2, 30, 12)
    assert state.seconds_left == pytest.approx(state.seconds * 18 / 12)
    folds = resample.k_fold(jax.random.key(3), 40, 10)
    with pytest.raises(KeyboardInterrupt):
        assess(KEY, learn.LeastSquares(), problem(), folds, part=2, store=tmp_path / "folds")
    with pytest.raises(ValueError, match="expected all rows of resample.k_fold.*, which make sense only together, got"):
        store.open(tmp_path / "folds").losses()
    unlabelled = resample.from_weights(folds.train, folds.test)
    with pytest.raises(KeyboardInterrupt):
        assess(KEY, learn.LeastSquares(), problem(), unlabelled, part=2, store=tmp_path / "unlabelled")
    with pytest.raises(ValueError, match="which make sense only together"):
        store.open(tmp_path / "unlabelled").losses()


def test_rows_that_only_some_data_sets_have_are_left_out_of_an_unfinished_run(tmp_path, monkeypatch):
    whole = assess(KEY, NET, problem(2), splits(6))
    for last, rows in ((3, 2), (1, 0)):
        with monkeypatch.context() as patch:
            stopped_after(patch, last + 1)
            with pytest.raises(KeyboardInterrupt):
                assess(KEY, NET, problem(2), splits(6), part=2, store=tmp_path / f"{last}")
        unfinished = store.open(tmp_path / f"{last}")
        if rows:
            np.testing.assert_allclose(unfinished.losses().g, whole.g[:, :rows], rtol=1e-5)
        else:
            with pytest.raises(
                ValueError, match="expected a row that was trained on all data sets, got 4 trainings of"
            ):
                unfinished.losses()


@dataclass(frozen=True)
class Constant(learn.Learner):
    value: float = 1.0

    def fit(self, key, x, y, w):
        return ()

    def predict(self, params, x):
        return jax.numpy.full((len(x), 1), self.value, x.dtype)


def other_loss(factor):
    return lambda y, prediction: factor * loss.squared(y, prediction)


def edited_class():
    """A class of the same name whose code is another."""

    @dataclass(frozen=True)
    class Constant(learn.Learner):
        value: float = 1.0

        def fit(self, key, x, y, w):
            return ()

        def predict(self, params, x):
            return jax.numpy.full((len(x), 1), self.value + 1, x.dtype)

    Constant.__qualname__, Constant.__module__ = "Constant", __name__
    return Constant()


OTHERS = {
    "learner": {"learner": Constant(2.0)},
    "learner, edited": {"learner": edited_class()},
    "loss": {"loss": loss.absolute},
    "loss, a lambda": {"loss": other_loss(2.0)},
    "data": {"data": Data(problem().x, problem().y + 1, problem().names)},
    "plan": {"plan": splits(31)},
    "weights of the plan": {"plan": resample.from_weights(splits().train[::-1], splits().test[::-1])},
    "key": {"key": jax.random.key(8)},
    "keep": {"keep": "rows"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_question_is_refused_with_the_line_that_differs(name, tmp_path):
    asked = {"key": KEY, "learner": Constant(), "data": problem(), "plan": splits(), "loss": loss.squared}
    if name == "weights of the plan":
        asked["plan"] = resample.from_weights(splits().train, splits().test)
    if name == "loss, a lambda":
        asked["loss"] = other_loss(1.0)
    assess(**asked, store=tmp_path / "run")
    said = name.split(",")[0]
    with pytest.raises(
        ValueError, match=f"expected the same question as that of the run in .*run, got another {said}.*: .* instead of"
    ):
        assess(**asked | OTHERS[name], store=tmp_path / "run")
    assess(**asked, store=tmp_path / "run")


def test_labels_called_like_weights_hide_no_other_weights(tmp_path):
    label = {"train": np.arange(30), "test": np.arange(30)}
    one, other = (
        resample.from_weights(splits().train[order], splits().test[order], labels=label)
        for order in (slice(None), slice(None, None, -1))
    )
    assess(KEY, learn.Mean(), problem(), one, store=tmp_path / "run")
    with pytest.raises(ValueError, match="got another weights of the plan"):
        assess(KEY, learn.Mean(), problem(), other, store=tmp_path / "run")


DAMAGE = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:200]),
    "empty": lambda file: file.write_bytes(b""),
    "a flipped bit": lambda file: file.write_bytes(flipped(file.read_bytes())),
    "another part": lambda file: file.write_bytes((file.parent / "part-00000.npz").read_bytes()),
}


def flipped(content):
    """One bit of the numbers is another."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


def test_a_part_says_which_trainings_it_holds():
    assert str(Part(3, 2, 3, 0, 10)) == "part 3 (rows 0 to 9 of data set 2)"
    assert str(Part(4, 1, 3, 5, 10)) == "part 4 (rows 5 to 9 of data sets 1 to 2)"


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_part_is_computed_again_and_said(damage, tmp_path, monkeypatch):
    ask = KEY, learn.LeastSquares(), problem(), splits()
    whole = assess(*ask, part=6, store=tmp_path)
    DAMAGE[damage](tmp_path / "part-00003.npz")
    with pytest.raises(ValueError, match="part-00003.npz, got a"):
        store.open(tmp_path).losses()
    seen = counted(monkeypatch)
    with pytest.warns(RuntimeWarning, match=r"part-00003.npz was damaged or of another run; part 3 \(rows 18 to 23 of"):
        same(whole, assess(*ask, part=6, store=tmp_path))
    assert seen == [3]
    same(whole, store.open(tmp_path).losses())


def test_a_missing_part_is_computed_again(tmp_path, monkeypatch):
    ask = KEY, learn.LeastSquares(), problem(), splits()
    whole = assess(*ask, part=6, store=tmp_path)
    (tmp_path / "part-00001.npz").unlink()
    seen = counted(monkeypatch)
    same(whole, assess(*ask, part=6, store=tmp_path))
    assert seen == [1]


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    ask = KEY, learn.LeastSquares(), problem(), splits()
    assess(*ask, part=6, store=tmp_path)
    (tmp_path / "part-00001.npz.123.partial").write_bytes(b"half")
    assess(*ask, part=6, store=tmp_path)
    assert not list(tmp_path.glob("*.partial"))


def test_two_processes_do_not_work_at_one_run(tmp_path):
    ask = KEY, learn.LeastSquares(), problem(), splits()
    whole = assess(*ask, part=6, store=tmp_path)
    with (
        store.open(tmp_path).held(),
        pytest.raises(RuntimeError, match=f"expected a run that nobody works at, got .* process {os.getpid()} on"),
    ):
        assess(*ask, store=tmp_path)
    same(whole, assess(*ask, store=tmp_path))


@pytest.mark.parametrize("empty", [False, True])
def test_a_run_that_another_process_begins_at_the_same_time_is_joined(empty, tmp_path, monkeypatch):
    original, place = store.runs.new_folder, tmp_path / "run"
    if empty:
        place.mkdir()

    @contextmanager
    def late(path):
        with original(path) as new:
            yield new
            with original(path) as earlier:
                shutil.copytree(new, earlier, dirs_exist_ok=True)

    monkeypatch.setattr(store.runs, "new_folder", late)
    whole = assess(KEY, learn.LeastSquares(), problem(), splits(), store=place)
    same(whole, store.open(place).losses())
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="expected a new folder, or one with a run, got .*, which holds other things"):
        assess(KEY, learn.Mean(), problem(), splits(), store=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("content", ["", "{", '{"format": 1}', '{"format": 2}'])
def test_a_damaged_description_is_named(content, tmp_path):
    assess(KEY, learn.Mean(), problem(), splits(), store=tmp_path)
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match="expected (the description of a run|a run in format 1).*run.json"):
        store.open(tmp_path)


def test_a_lost_plan_is_named(tmp_path):
    assess(KEY, learn.Mean(), problem(), splits(), store=tmp_path)
    (tmp_path / "plan.npz").unlink()
    with pytest.raises(ValueError, match="expected the plan of a run in .*plan.npz, got no whole file"):
        store.open(tmp_path).losses()


def test_nothing_is_no_run(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected a folder that assess\(..., store=...\) made, got"):
        store.open(tmp_path)
    with pytest.raises(TypeError):
        store.open(3)


def test_a_full_disk_keeps_the_parts_that_are_there(tmp_path, monkeypatch):
    ask = KEY, learn.LeastSquares(), problem(), splits()
    whole, original = assess(*ask), np.savez_compressed
    with monkeypatch.context() as patch:

        def full(file, **arrays):
            if "part-00002" in file.name:
                file.write(b"half")
                raise OSError(28, "No space left on device")
            original(file, **arrays)

        patch.setattr(store.files.np, "savez_compressed", full)
        with pytest.raises(OSError, match=r"expected a place that can be written, got .* \(No space left on device\)"):
            assess(*ask, part=6, store=tmp_path)
    assert store.open(tmp_path).state().done == 2
    assert not list(tmp_path.glob("*.partial"))
    same(whole, assess(*ask, part=6, store=tmp_path))


def test_reading_a_run_needs_no_jax(tmp_path):
    assess(KEY, learn.LeastSquares(), problem(), splits(), store=tmp_path)
    code = f"import sys; from jaxgen import store; print(store.open({str(tmp_path)!r}).losses().g.mean()); " + (
        "assert 'jax' not in sys.modules"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(ended.stdout) == store.open(tmp_path).losses().g.mean()


# Stopping at a standard error


def test_a_run_stops_at_a_standard_error(monkeypatch):
    ask = KEY, learn.LeastSquares(), problem(), splits(400)
    whole = assess(*ask)

    def error(rows):
        return whole.g[:rows].std(ddof=1) / np.sqrt(rows)

    wanted = error(100) * 1.0001
    first = next(rows for rows in range(40, 401, 20) if error(rows) <= wanted)
    seen = counted(monkeypatch)
    few = assess(*ask, part=20, standard_error=wanted)
    np.testing.assert_allclose(few.g, whole.g[:first], rtol=ROUNDING)
    assert len(seen) == first // 20
    assert few.plan.scheme.endswith(f", {first} of 400 rows")
    assert assess(*ask, part=20, standard_error=1e-9).resamples == 400, "which it does not reach"


def test_where_a_run_stops_does_not_depend_on_the_order_of_parts(tmp_path):
    ask = KEY, learn.LeastSquares(), problem(), splits(400)
    wanted = assess(*ask).g[:100].std(ddof=1) / 10
    few = assess(*ask, part=20, standard_error=wanted, store=tmp_path)
    later = assess(*ask, part=20, store=tmp_path)
    assert later.resamples == 400
    same(few, assess(*ask, part=20, standard_error=wanted, store=tmp_path))


@pytest.mark.parametrize("plan", [resample.k_fold(KEY, 40, 10), splits(10, sets=2)], ids=["folds", "sets"])
def test_only_rows_drawn_one_by_one_stop_early(plan):
    with pytest.raises(ValueError, match="expected rows of one data set that are drawn one by one, to stop at"):
        assess(KEY, learn.Mean(), problem(), plan, standard_error=1.0)


# Executors


class Backwards:
    """Gives its answers in the reverse order, when it has as many questions as it takes at a time."""

    _max_workers = 3

    def __init__(self):
        self.asked = []

    def submit(self, function, argument):
        mine = Future()
        self.asked.append((mine, function, argument))
        if len(self.asked) == 4 or argument.part.last_row == 30:
            while self.asked:
                future, function, argument = self.asked.pop()
                future.set_running_or_notify_cancel()
                future.set_result(function(argument))
        return mine


@pytest.mark.parametrize("stored", [False, True], ids=["returned", "stored"])
def test_parts_come_back_in_any_order(stored, tmp_path):
    whole = assess(KEY, NET, problem(), splits())
    more = {"store": tmp_path / "run"} if stored else {}
    same(whole, assess(KEY, NET, problem(), splits(), part=6, executor=Backwards(), **more), 1e-5)


def test_parts_run_in_threads_one_at_a_time():
    whole = assess(KEY, NET, problem(2), splits())
    with ThreadPoolExecutor(3) as pool:
        same(whole, assess(KEY, NET, problem(2), splits(), part=6, executor=pool), 1e-5)


def test_a_part_that_fails_for_good_ends_the_run_and_keeps_the_others(tmp_path, monkeypatch):
    original = parts.compute

    def compute(specification, *arguments):
        if specification.part.number == 2:
            raise OSError("the power went")
        time.sleep(0.05)
        return original(specification, *arguments)

    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(parts, "compute", compute)
        with pytest.raises(
            executors.PartError,
            match=r"expected ThreadPoolExecutor to compute part 2 \(rows 12 to 17 of data set 0\), got OSError: the "
            r"power went; mend its cause, and call again; [2-4] of 5 parts are in .*, where the same call goes on",
        ):
            assess(KEY, NET, problem(), splits(), part=6, executor=pool, store=tmp_path)
    kept = store.open(tmp_path).state().done
    seen = counted(monkeypatch)
    same(assess(KEY, NET, problem(), splits()), assess(KEY, NET, problem(), splits(), store=tmp_path), 1e-5)
    assert len(seen) == 5 - kept


def test_a_pool_that_is_shut_down_is_named():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(executors.PartError, match="got RuntimeError: cannot schedule new futures after shutdown"):
        assess(KEY, NET, problem(), splits(), executor=pool)


@pytest.mark.parametrize("executor", [3, "dask", ThreadPoolExecutor], ids=repr)
def test_what_is_no_executor_is_refused(executor):
    with pytest.raises(TypeError, match="expected an executor with the method submit of concurrent.futures, got"):
        assess(KEY, NET, problem(), splits(), executor=executor)


def test_an_executor_chooses_its_devices():
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(ValueError, match="expected either devices or an executor, got both"),
    ):
        assess(KEY, NET, problem(), splits(), executor=pool, devices=jax.devices()[:1])


def test_the_settings_of_jax_go_with_a_part():
    plan, learner = splits(), learn.Descent(learn.MLP((3,)), steps=5)
    with jax.enable_x64(True):
        whole = assess(KEY, learner, problem(), plan)
        with ThreadPoolExecutor(1) as pool:
            same(whole, assess(KEY, learner, problem(), plan, part=10, executor=pool))
    assert whole.values.dtype == np.float64


@pytest.mark.slow
def test_spawned_processes(tmp_path):
    """Two processes, without and with a store; then one of them is killed, and the same call goes on."""
    whole = assess(KEY, NET, problem(), splits(200))
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        same(whole, assess(KEY, NET, problem(), splits(200), part=20, executor=pool), 1e-5)
        same(whole, assess(KEY, NET, problem(), splits(200), part=20, executor=pool, store=tmp_path / "a"), 1e-5)
        with pytest.raises(ValueError, match="expected a learner and a loss that another process can import, got Attr"):
            assess(KEY, NET, problem(), splits(200), other_loss(2.0), executor=pool)
        killer = threading.Timer(0.3, lambda: os.kill(next(iter(pool._processes)), signal.SIGKILL))
        killer.start()
        with pytest.raises(
            executors.PartError, match="BrokenProcessPool.*parts are in .*, where the same call goes on"
        ):
            assess(KEY, LONG, problem(), splits(200), part=20, executor=pool, store=tmp_path / "b")
    same(
        assess(KEY, LONG, problem(), splits(200)),
        assess(KEY, LONG, problem(), splits(200), part=20, store=tmp_path / "b"),
        1e-3,  # 3000 steps in single precision
    )


@pytest.mark.slow
def test_dask(tmp_path):
    """Two workers as processes on this machine; one is killed, and Dask computes its part elsewhere."""
    distributed = pytest.importorskip("distributed", reason="needs jaxgen[dask]")
    whole = assess(KEY, NET, problem(), splits(200))
    settings = {"n_workers": 2, "threads_per_worker": 2, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        same(whole, assess(KEY, NET, problem(), splits(200), part=20, executor=client), 1e-5)
        same(whole, assess(KEY, NET, problem(), splits(200), part=20, executor=client.get_executor()), 1e-5)
        same(whole, assess(KEY, NET, problem(), splits(200), part=20, executor=client, store=tmp_path / "a"), 1e-5)
        worker = next(iter(cluster.workers.values())).pid
        threading.Timer(0.5, lambda: os.kill(worker, signal.SIGKILL)).start()
        after = assess(KEY, LONG, problem(), splits(200), part=20, executor=client, store=tmp_path / "b")
    same(assess(KEY, LONG, problem(), splits(200)), after, 1e-3)  # 3000 steps in single precision


# Memory


def test_a_chunk_that_does_not_fit_is_halved(monkeypatch):
    whole, original = assess(KEY, NET, problem(), splits(64)), run.compiled
    tried = []

    def compiled(job, sets, rows, *others):
        program = original(job, sets, rows, *others)

        def call(*arguments):
            tried.append(rows)
            if rows > 8:
                raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 bytes.")
            return program.call(*arguments)

        return type(program)(call, program.alone)

    monkeypatch.setattr(run, "compiled", compiled)
    one = jax.devices()[:1]
    with pytest.warns(
        RuntimeWarning, match="had no memory for (32 rows at a time; goes on with 16|16 rows at a time; goes on with 8)"
    ):
        same(whole, assess(KEY, NET, problem(), splits(64), chunk=32, devices=one), 1e-5)
    assert set(tried) == {32, 16, 8}


def test_a_row_that_does_not_fit_ends_in_one_sentence(monkeypatch):
    def call(*arguments):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")

    original = run.compiled
    monkeypatch.setattr(run, "compiled", lambda *a: type(original(*a))(call, False))
    with pytest.raises(MemoryError, match="expected one row of Descent.* to fit into the memory of"):
        assess(KEY, NET, problem(), splits(2), chunk=1, devices=jax.devices()[:1])


# Killed and stopped processes

SCRIPT = """
import jax, sys
from jaxgen import assess, learn, resample, simulate
data = simulate.linear_ar(jax.random.key(0), None, n=40, d=3).data
plan = resample.leave_out(jax.random.key(1), 40, fraction=0.25, resamples=400)
learner = learn.Normalised(learn.Descent(learn.MLP((20,)), rate=0.01, steps=3000))
assess(jax.random.key(7), learner, data, plan, part=4, store=sys.argv[1])
"""


@pytest.mark.slow
def test_a_process_killed_at_any_moment_loses_parts_in_progress_only(tmp_path):
    random, store_folder, done = np.random.default_rng(0), tmp_path / "run", 0
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(store_folder)])
        while process.poll() is None and len(list(store_folder.glob("part-*.npz"))) == done < 100:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        process.wait()
        now = len(list(store_folder.glob("part-*.npz")))
        assert done < now or now == 100
        done = now
    subprocess.run([sys.executable, "-c", SCRIPT, str(store_folder)], check=True)
    same(assess(KEY, LONG, problem(), splits(400)), store.open(store_folder).losses(), 1e-3)  # 3000 steps


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_command_line_ends_within_a_chunk_and_goes_on(number, code, tmp_path):
    words = ["assess", "--learner", "network", "--learner", "mean", "--resamples", "30000", "--out", "kept"]
    process = subprocess.Popen(
        [sys.executable, "-m", "jaxgen", *words], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    while process.poll() is None and not (tmp_path / "kept" / "1" / "run.json").exists():
        time.sleep(0.05)
    time.sleep(3)
    process.send_signal(number)
    text = process.communicate(timeout=60)[1].decode()
    assert process.returncode == code
    began = any((tmp_path / "kept").glob("1/part-*.npz"))
    assert ("the same command with --out kept goes on" in text) is began
    assert (tmp_path / "kept").exists() is began


# The command line


def test_report_says_how_far_a_run_is(tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        stopped_after(patch, 3)
        with pytest.raises(KeyboardInterrupt):
            assess(KEY, learn.LeastSquares(), problem(), splits(400), part=40, store=tmp_path / "run")
    assert main(["report", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    whole = assess(KEY, learn.LeastSquares(), problem(), splits(400))
    error = whole.g[:120].std(ddof=1) / np.sqrt(120)
    assert "LeastSquares(), squared loss, resample.leave_out" in text
    assert "done: 3 of 10 parts, 120 of 400 trainings" in text
    assert "on one machine" in text
    assert f"mean loss {whole.g[:120].mean():.6g}" in text
    assert f"standard error of the mean {error:.3g}, which all 400 bring to {error * np.sqrt(120 / 400):.3g}" in text
    assess(KEY, learn.LeastSquares(), problem(), splits(400), part=40, store=tmp_path / "run")
    assert main(["report", str(tmp_path)]) == 0, "a folder of runs"
    text = capsys.readouterr().out
    assert "done: 10 of 10 parts" in text
    assert "left" not in text
    assert "bring" not in text


def test_report_of_nothing_is_one_sentence(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "expected a folder that assess(..., store=...) made" in capsys.readouterr().err


def test_assess_keeps_its_parts_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["assess", "--resamples", "20", "--learner", "linear", "--learner", "mean", "--out", "kept"]
    with monkeypatch.context() as patch:
        stopped_after(patch, 0)
        assert main(words) == 130
    assert "what was not complete was not saved" in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()
    with monkeypatch.context() as patch:
        stopped_after(patch, 0, only=learn.Mean())
        assert main(words) == 130
    assert "1 of 2 learners are trained; the same command with --out kept goes on" in capsys.readouterr().err
    assert main(words) == 0
    capsys.readouterr()
    assert main(["report", "kept"]) == 0
    assert capsys.readouterr().out.count("done: 1 of 1 parts, 20 of 20 trainings") == 2
    assert json.loads((tmp_path / "kept" / "1" / "run.json").read_text())["heading"]["learner"] == "LeastSquares()"


# Doors and progress


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"store": 3}, TypeError, "expected the path of a file or folder"),
        ({"store": "a\0b"}, ValueError, "leave out the zero byte"),
        ({"part": 0}, ValueError, "expected the trainings of a part"),
        ({"part": 2.5}, (TypeError, ValueError), "expected the trainings of a part"),
        ({"part": "ten"}, (TypeError, ValueError), "expected the trainings of a part"),
        ({"standard_error": 0}, ValueError, "expected the standard error to stop at"),
        ({"standard_error": float("nan")}, ValueError, "expected the standard error to stop at"),
        ({"standard_error": "small"}, (TypeError, ValueError), "expected the standard error to stop at"),
    ],
    ids=repr,
)
@pytest.mark.usefixtures("own_messages")
def test_ordinary_mistakes_get_one_sentence(given, error, words):
    with pytest.raises(error, match=words):
        assess(KEY, learn.Mean(), problem(), splits(), **given)


def test_a_log_file_gets_lines(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0)
    bar = progress.tqdm
    monkeypatch.setattr(progress, "tqdm", lambda **settings: bar(**settings | {"delay": 0}))
    assess(KEY, learn.Mean(), problem(), splits(), part=10, progress=True)
    text = capsys.readouterr().err
    assert "\r" not in text
    assert len([line for line in text.splitlines() if line.startswith("Mean(): ")]) >= 3
    assert "30/30" in text.splitlines()[-1]
