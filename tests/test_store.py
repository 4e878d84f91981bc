"""Losses on disk: what goes out comes back, and nothing half-written is ever under a final name."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace

import jax
import numpy as np
import pytest

from jaxgen import assess, learn, resample, simulate, store
from jaxgen.types import Losses, Plan

KEY = jax.random.key(0)


def same(a: Losses, b: Losses) -> bool:
    """Whether two losses agree in every field, those of their plans too, in value, shape and type."""

    def equal(u, v):
        if isinstance(u, np.ndarray):
            return isinstance(v, np.ndarray) and u.dtype == v.dtype and np.array_equal(u, v, equal_nan=True)
        if isinstance(u, Plan):
            return all(equal(getattr(u, f.name), getattr(v, f.name)) for f in fields(Plan))
        if isinstance(u, dict):
            return u.keys() == v.keys() and all(equal(u[name], v[name]) for name in u)
        return type(u) is type(v) and u == v

    return all(equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(Losses))


def made(sets=None, **changes):
    """Losses with something in every field."""
    plan = resample.k_fold(KEY, 12, folds=4)
    shape = (4,) if sets is None else (sets, 4)
    random = np.random.default_rng(0)
    losses = Losses(
        random.random(shape),
        random.random(shape),
        plan,
        "LeastSquares(ridge=1.0)",
        "squared",
        np.zeros(shape, np.uint8),
        ("it diverged", "its inputs – ä – are dependent"),
        random.random((*shape, 12)).astype(np.float32),
        {"weights": random.random((*shape, 2, 1)).astype(np.float32), "steps": random.integers(9, size=shape)},
        2,
    )
    return replace(losses, **changes)


FAILED = np.array([0, 2, 0, 1], np.uint8)
LOSSES = {
    "all fields": made(),
    "several sets": made(sets=3),
    "rows only": made(values=None),
    "no info": made(info={}, reasons=(), dropped=0),
    "failed rows": made(failure=FAILED, test_mean=np.array([1.0, np.nan, 2.0, np.inf])),
    "double precision": made(values=made().values.astype(np.float64)),
    "bootstrap": made(plan=resample.bootstrap(KEY, 12, 4)),
    "splits of their own": made(sets=3, plan=resample.leave_out(KEY, 12, 0.25, 4, sets=3)),
}


@pytest.mark.parametrize("case", LOSSES)
def test_what_was_saved_comes_back(case, tmp_path):
    path = tmp_path / "losses.npz"
    assert store.save(LOSSES[case], path) == path
    assert same(store.load(path), LOSSES[case])
    assert same(store.load(str(path)), LOSSES[case])
    assert [file.name for file in tmp_path.iterdir()] == ["losses.npz"]


def test_losses_of_the_engine_come_back_as_they_were(tmp_path):
    data = simulate.linear_ar(KEY, None, 12, 2).data
    losses = assess(KEY, learn.Mean(), data, resample.k_fold(KEY, 12, folds=4))
    again = store.load(store.save(losses, tmp_path / "losses.npz"))
    assert same(again, losses)
    assert repr(again) == repr(losses)


def test_a_file_says_which_version_wrote_it(tmp_path):
    with np.load(store.save(made(), tmp_path / "losses.npz")) as archive:
        manifest = json.loads(str(archive["manifest"]))
    assert set(manifest) == {"learner", "loss", "reasons", "dropped", "label", "key", "scheme", "jaxgen", "checksum"}
    assert manifest["scheme"] == made().plan.scheme


def test_files_are_compressed_and_hold_no_code(tmp_path):
    losses = made(values=np.zeros((4, 12), np.float32), plan=resample.k_fold(KEY, 12, folds=4))
    large = replace(losses, values=np.zeros((4, 100_000), np.float32))
    assert store.save(large, tmp_path / "large.npz").stat().st_size < 20_000
    with np.load(tmp_path / "large.npz", allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)


def test_nothing_is_overwritten(tmp_path):
    path = store.save(made(), tmp_path / "losses.npz")
    before = path.read_bytes()
    with pytest.raises(
        FileExistsError, match="expected a new file, got .*losses.npz, which exists; remove it or choose another name"
    ):
        store.save(made(dropped=5), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["losses", "losses.csv", "losses.npz.gz"])
def test_the_suffix_is_npz(name, tmp_path):
    with pytest.raises(ValueError, match=r"expected a file name that ends in \.npz, got '.*'; call it .*\.npz"):
        store.save(made(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full_disk(file, **arrays):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(store.files.np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="no space left"):
        store.save(made(), tmp_path / "losses.npz")
    assert not list(tmp_path.iterdir())


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="expected a file of losses, got .*none.npz, which does not exist; check the name"
    ):
        store.load(tmp_path / "none.npz")


def no_manifest(path):
    np.savez(path, a=np.arange(3))


def other_manifest(path):
    np.savez(path, manifest=np.array('{"author": "somebody"}'), a=np.arange(3))


def manifest_only(path):
    np.savez(
        path,
        manifest=np.array(
            json.dumps({"learner": "Mean()", "loss": "squared", "reasons": [], "dropped": 0, "scheme": "mine"})
        ),
    )


def broken_manifest(path):
    np.savez(path, manifest=np.array("{"))


def one_array(path):
    with path.open("wb") as file:
        np.save(file, np.arange(3))


def pickled(path):
    np.savez(path, manifest=np.array({"a": 1}, dtype=object))


def cut_off(path):
    whole = store.save(made(), path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    "write",
    [
        no_manifest,
        other_manifest,
        manifest_only,
        broken_manifest,
        one_array,
        pickled,
        cut_off,
        lambda path: path.write_text("text"),
        lambda path: path.touch(),
        lambda path: path.mkdir(),
    ],
    ids=[
        "no manifest",
        "another manifest",
        "nothing but a manifest",
        "broken manifest",
        "one array",
        "pickled",
        "cut off",
        "text",
        "empty",
        "folder",
    ],
)
def test_what_save_did_not_write_is_refused(write, tmp_path):
    path = tmp_path / "other.npz"
    write(path)
    with pytest.raises(
        ValueError, match=r"expected a file written by jaxgen.store.save, got .*other.npz; give one that `save` wrote"
    ):
        store.load(path)


def test_the_checksum_tells_data_apart():
    data = simulate.linear_ar(KEY, None, 6, 2).data
    sums = {
        store.checksum(data): "itself",
        store.checksum(replace(data, x=data.x + 0.0, names=("a", "b"))): "itself under other names",
        store.checksum(replace(data, x=np.asfortranarray(data.x))): "itself in another order in memory",
        store.checksum(replace(data, x=np.nextafter(data.x, np.inf))): "a rounding away",
        store.checksum(replace(data, y=-data.y)): "another target",
        store.checksum(data.select([1, 0])): "columns in another order",
        store.checksum(replace(data, x=data.x[None], y=data.y[None])): "one of several sets",
    }
    assert list(sums.values()) == [
        "itself in another order in memory",
        "a rounding away",
        "another target",
        "columns in another order",
        "one of several sets",
    ]
    assert all(len(digest) == 64 for digest in sums)


@dataclass(frozen=True)
class Unused:
    """A learner's class that is not needed to read its losses: its text is enough."""


def test_reading_needs_no_learner(tmp_path):
    path = store.save(made(learner="Unused(rate=0.1)"), tmp_path / "losses.npz")
    assert store.load(path).learner == "Unused(rate=0.1)"


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_complete_file_takes_its_name_only_if_it_is_free(links, tmp_path, monkeypatch):
    def refuse(*names):
        raise OSError("links are not supported")

    if not links:
        monkeypatch.setattr("os.link", refuse)
    partial, final = tmp_path / "a.partial", tmp_path / "a.npz"
    partial.write_text("mine")
    store.publish(partial, final)
    assert final.read_text() == "mine"
    assert not partial.exists()
    if links:
        partial.write_text("theirs")
        with pytest.raises(
            FileExistsError, match=r"expected a new file, got .*a.npz, which exists; remove it or choose another name"
        ):
            store.publish(partial, final)
        assert final.read_text() == "mine"


def test_a_new_folder_is_there_when_all_is_in_it_or_not_at_all(tmp_path):
    with store.new_folder(tmp_path / "results" / "one") as folder:
        (folder / "a").write_text("text")
        assert not (tmp_path / "results" / "one").exists()
    assert [path.name for path in (tmp_path / "results" / "one").iterdir()] == ["a"]
    with pytest.raises(RuntimeError, match="no"), store.new_folder(tmp_path / "two"):
        raise RuntimeError("no")
    assert [path.name for path in tmp_path.iterdir()] == ["results"]
    with (
        pytest.raises(
            FileExistsError, match=r"expected a new folder for the results, got .*results, which exists; choose another"
        ),
        store.new_folder(tmp_path / "results"),
    ):
        pass


def rewritten(path, change, checksum=False):
    """The file with its parts changed, as by another program; with or without the checksum it had."""
    with np.load(path) as archive:
        parts = dict(archive)
    manifest = json.loads(str(parts.pop("manifest")))
    if not checksum:
        del manifest["checksum"]
    change(manifest, parts)
    np.savez_compressed(path, manifest=np.array(json.dumps(manifest)), **parts)
    return path


def test_files_of_before_there_were_checksums_are_read(tmp_path):
    path = rewritten(store.save(made(), tmp_path / "losses.npz"), lambda manifest, parts: None)
    assert same(store.load(path), made())


def put(name, place, value):
    def change(manifest, parts):
        parts[name] = parts[name].copy()
        parts[name][place] = value

    return change


def replaced(name, make):
    def change(manifest, parts):
        where = parts if name in parts else manifest
        where[name] = make(where[name])

    return change


TAMPERED = {  # what was changed, without the checksum -> what is wrong, in words
    "a row less": (replaced("test_mean", lambda a: a[:3]), r"losses of \[3\] rows for a plan \[4, 12\]"),
    "rows of the training": (replaced("train_mean", lambda a: a[:3]), r"train_mean are float64 \[3\], not floating"),
    "rows of the values": (
        replaced("values", lambda a: a[:3]),
        r"values are float32 \[3, 12\], not floating \[4, 12\]",
    ),
    "cases of the values": (replaced("values", lambda a: a[:, :9]), r"values are float32 \[4, 9\]"),
    "integers": (replaced("test_mean", lambda a: a.astype(int)), r"test_mean are int64 \[4\], not floating"),
    "wide codes": (replaced("failure", lambda a: a.astype(np.int64)), r"failure are int64 \[4\], not uint8"),
    "info": (replaced("info/weights", lambda a: a[:3]), r"info of 'weights' is \[3, 2, 1\], not of \[4\] rows"),
    "labels": (replaced("label/fold", lambda a: a[:3]), "the plan is no plan"),
    "a plan of nothing": (replaced("test", lambda a: 0 * a), "the plan is no plan"),
    "wide weights": (replaced("train", lambda a: a.astype(np.int64)), "the plan is no plan"),
    "another plan": (replaced("test", lambda a: a[:, :9]), "the plan is no plan"),
    "NaN": (put("test_mean", 2, np.nan), "the loss of a row that went well is not finite"),
    "infinity": (put("train_mean", 2, np.inf), "the loss of a row that went well is not finite"),
    "NaN of a test case": (put("values", np.s_[:], np.nan), "the loss of a test case of a row that went well"),
    "reason": (put("failure", 1, 200), "a row failed for reason 200 of 2"),
    "no reasons": (
        lambda manifest, parts: (manifest.update(reasons=[]), put("failure", 1, 1)(manifest, parts)),
        "a row failed for reason 1 of 0",
    ),
    "learner": (replaced("learner", lambda text: 5), "the learner, its loss, the reasons or the number of rows left"),
    "dropped": (replaced("dropped", lambda count: -1), "the number of rows left out are none"),
    "scheme": (replaced("scheme", lambda text: None), "the plan is no plan"),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_parts_that_do_not_fit_are_refused(case, tmp_path, own_messages):
    change, words = TAMPERED[case]
    path = rewritten(store.save(made(), tmp_path / "losses.npz"), change)
    with pytest.raises(
        ValueError, match=f"as jaxgen.store.save writes them, got .*, in which .*{words}.*; restore the"
    ):
        store.load(path)


@pytest.mark.parametrize("part", ["test_mean", "values", "train", "info/weights", "label/fold", "learner", "dropped"])
def test_a_change_is_found_by_the_checksum(part, tmp_path):
    """One that leaves every number possible."""

    def change(manifest, parts):
        if part in manifest:
            manifest[part] = 3 if part == "dropped" else "Mean()"
        else:
            put(part, (0,) * parts[part].ndim, parts[part].flat[0] * 2 + 1)(manifest, parts)

    path = store.save(made(), tmp_path / "losses.npz")
    rewritten(path, change, checksum=True)
    with pytest.raises(ValueError, match="expected a file written by jaxgen.store.save, got .*losses.npz"):
        store.load(path)


def test_any_byte_that_flips_is_found_or_means_nothing(tmp_path, own_messages):
    """Every 7th byte of a file, one at a time: it is refused with one sentence, or reads as before (a date, say)."""
    losses = made(values=None, info={})
    whole = store.save(losses, tmp_path / "losses.npz").read_bytes()
    places, messages = range(0, len(whole), 7), []
    for place in places:
        (tmp_path / "losses.npz").write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            assert same(store.load(tmp_path / "losses.npz"), losses)
        except (ValueError, MemoryError) as error:
            messages.append(str(error))
    assert len(messages) > len(places) / 2
    assert all(message.startswith("expected ") and "\n" not in message for message in messages)


HOSTILE = {
    "losses that are none": (lambda folder: store.save(5, folder / "a.npz"), TypeError, "losses that assess returns"),
    "arguments in another order": (
        lambda folder: store.save(folder / "a.npz", made()),
        TypeError,
        r"losses that assess returns, got PosixPath.*; call save\(losses, path\)",
    ),
    "no path": (lambda folder: store.save(made(), None), TypeError, "the path of a file or folder, got None"),
    "a number for a path": (lambda folder: store.load(5), TypeError, "the path of a file or folder, got 5"),
    "no path to load": (lambda folder: store.load(None), TypeError, "the path of a file or folder, got None"),
    "a zero byte": (lambda folder: store.save(made(), folder / "a\0.npz"), ValueError, "leave out the zero byte"),
    "no folder": (
        lambda folder: store.save(made(), folder / "none" / "a.npz"),
        FileNotFoundError,
        r"a place that can be written, got .*a\.npz \(No such file or directory\); make its folder",
    ),
    "a file for a folder": (
        lambda folder: store.save(made(), store.save(made(), folder / "b.npz") / "a.npz"),
        NotADirectoryError,
        r"got .*a\.npz \(Not a directory\)",
    ),
    "a long name": (
        lambda folder: store.save(made(), folder / ("a" * 300 + ".npz")),
        OSError,
        r"\(File name too long\)",
    ),
    "no file system": (
        lambda folder: store.save(made(), "/proc/a.npz"),
        OSError,
        "a place that can be written, got /proc/a.npz",
    ),
    "objects": (
        lambda folder: store.save(made(info={"who": np.array([None, "a", 1, 2], object)}), folder / "a.npz"),
        ValueError,
        "arrays of numbers or texts to store, got objects in 'info/who'",
    ),
    "a folder in a file": (
        lambda folder: store.claim_folder(store.save(made(), folder / "b.npz") / "results"),
        OSError,
        "a place that can be written, got .*results",
    ),
    "a folder that is there": (
        lambda folder: store.claim_folder(folder),
        FileExistsError,
        "a new folder for the results",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_cannot_be_written_or_read_has_its_sentence(case, tmp_path, own_messages):
    call, kind, words = HOSTILE[case]
    before = sorted(tmp_path.iterdir())
    with pytest.raises(kind, match=words) as error:
        call(tmp_path)
    assert str(error.value).startswith("expected ")
    assert "; " in str(error.value)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir() if path not in before] in ([], ["b.npz"])


def test_of_several_that_claim_a_folder_one_gets_it(tmp_path):
    def claim(_):
        try:
            return str(store.claim_folder(tmp_path / "results" / "first"))
        except FileExistsError as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        answers = sorted(pool.map(claim, range(8)), key=len)
    assert answers[0] == str(tmp_path / "results" / "first")
    assert all(answer.startswith("expected a new folder for the results, got ") for answer in answers[1:])
    assert list((tmp_path / "results" / "first").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_not_claimed(tmp_path, monkeypatch):
    def full_disk(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full_disk)
    with pytest.raises(OSError, match=r"got .*results \(No space left on device\)"):
        store.claim_folder(tmp_path / "results")
    assert list(tmp_path.iterdir()) == []
