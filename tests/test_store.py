"""Losses on disk: what goes out comes back, and nothing half-written is ever under a final name."""

import json
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
    assert set(manifest) == {"learner", "loss", "reasons", "dropped", "scheme", "jaxgen"}
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

    monkeypatch.setattr(store.np, "savez_compressed", full_disk)
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
