"""Readers against scikit-learn's and pandas' own arrays; every bad input has its sentence."""

import io
import urllib.error
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.datasets
from sklearn.utils import Bunch

from jaxgen import datasets
from jaxgen.types.data import TASKS


def numbers(n: int = 30, d: int = 3) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d))


X, Y = numbers(), numbers(d=4)[:, 3]


def houses(n: int = 30, **columns) -> pd.DataFrame:
    """A small mixed table; `columns` replace or add some."""
    rng = np.random.default_rng(1)
    colour = np.array(["red", "green", "blue"])[np.arange(n) % 3]
    return pd.DataFrame(
        {
            "area": rng.normal(100, 20, n).round(1),
            "colour": colour,
            "garden": np.arange(n) % 2 == 0,
            "rooms": rng.integers(1, 7, n),
            "price": rng.normal(size=n).round(2),
        }
        | columns
    )


def spoil(values, row: int, value) -> list:
    return [*values[:row], value, *values[row + 1 :]]


def equal(a, b) -> None:
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.y, b.y)
    assert (a.names, a.target, a.task, a.classes) == (b.names, b.target, b.task, b.classes)


# --- bundled sets


BUNDLED = [  # function, scikit-learn's loader, x, cases per class, classes
    (datasets.diabetes, lambda: sklearn.datasets.load_diabetes(scaled=False), (442, 10), None, ()),
    (datasets.breast_cancer, sklearn.datasets.load_breast_cancer, (569, 30), [212, 357], ("malignant", "benign")),
    (datasets.wine, sklearn.datasets.load_wine, (178, 13), [59, 71, 48], ("class_0", "class_1", "class_2")),
    (
        datasets.digits,
        sklearn.datasets.load_digits,
        (1797, 61),
        [178, 182, 177, 183, 181, 182, 181, 179, 174, 180],
        tuple("0123456789"),
    ),
]


@pytest.mark.parametrize(
    ("function", "loader", "shape", "counts", "classes"), BUNDLED, ids=[row[0].__name__ for row in BUNDLED]
)
def test_bundled_sets_are_those_of_scikit_learn(function, loader, shape, counts, classes):
    data, bunch = function(), loader()
    kept = np.ptp(bunch.data, axis=0) > 0
    np.testing.assert_array_equal(data.x, bunch.data[:, kept])
    assert data.x.shape == shape
    assert data.names == tuple(np.array(bunch.feature_names)[kept])
    assert data.classes == classes
    assert data.x.dtype == data.y.dtype == np.float64
    if counts is None:
        assert data.task == "regression"
        np.testing.assert_array_equal(data.y[:, 0], bunch.target)
    else:
        assert data.task == "classification"
        np.testing.assert_array_equal(data.y, np.eye(len(counts))[bunch.target])
        np.testing.assert_array_equal(data.y.sum(0), counts)


def test_what_the_docstrings_say_of_diabetes_and_digits():
    x = datasets.diabetes().x
    assert np.corrcoef(x.T)[4, 5] == pytest.approx(0.90, abs=0.005)
    assert np.linalg.cond((x - x.mean(0)) / x.std(0)) == pytest.approx(22, abs=0.5)
    y = datasets.diabetes().y
    assert (y.min(), y.max()) == (25, 346)
    assert not {"pixel_0_0", "pixel_4_0", "pixel_4_7"} & set(datasets.digits().names)


# --- arrays


ARRAYS = {  # what a caller may hold -> x of the same numbers
    "float64": lambda x: x,
    "float32": lambda x: x.astype(np.float32),
    "float16": lambda x: x.astype(np.float16),
    "int8": lambda x: (10 * x).astype(np.int8),
    "uint64": lambda x: (10 * abs(x)).astype(np.uint64),
    "bool": lambda x: x > 0,
    "object": lambda x: x.astype(object),
    "text of numbers": lambda x: x.astype(str),
    "huge": lambda x: 1e30 * x,
    "tiny": lambda x: 1e-30 * x,
    "read-only": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
    "not contiguous": lambda x: np.repeat(x, 2, axis=0)[::2, ::-1],
    "Fortran order": lambda x: np.asfortranarray(x),
    "lists": lambda x: x.tolist(),
    "no mask": lambda x: np.ma.array(x, mask=False),
    "DataFrame": lambda x: pd.DataFrame(x),
    "nullable DataFrame": lambda x: pd.DataFrame(x).convert_dtypes(),
    "Q sets": lambda x: np.stack([x, 2 * x]),
}


@pytest.mark.parametrize("hold", ARRAYS.values(), ids=ARRAYS)
def test_arrays_of_any_kind_become_float64(hold):
    x, y = hold(X), hold(Y[:, None])
    data = datasets.from_arrays(x, y, task="regression")
    np.testing.assert_array_equal(data.x, np.asarray(x, dtype=np.float64))
    np.testing.assert_array_equal(data.y, np.asarray(y, dtype=np.float64))
    assert data.x.dtype == data.y.dtype == np.float64
    assert not np.shares_memory(data.x, x)
    assert data.sets == (2 if data.x.ndim == 3 else None)


def test_names_are_those_given_or_of_the_frame_or_numbered():
    assert datasets.from_arrays(X, Y).names == ("x0", "x1", "x2")
    assert datasets.from_arrays(X, Y, names=np.array(["a", "b", "c"])).names == ("a", "b", "c")
    assert datasets.from_arrays(pd.DataFrame(X, columns=["a", "b", "c"]), Y).names == ("a", "b", "c")
    assert datasets.from_arrays(X, Y, target="price").target == "price"


def test_outputs_of_several_columns():
    data = datasets.from_arrays(X, 2 * X[:, :2])
    assert data.y.shape == (30, 2)
    assert datasets.from_arrays(np.stack([X, X]), np.stack([-X, -X])).y.shape == (2, 30, 3)


LABELS = [  # labels of cases 0, 1, 2, 0, 1, 2, ... -> task needed, classes
    (["b", "a", "c"], None, ("a", "b", "c")),
    ([True, False, True], None, ("False", "True")),
    (np.array(["b", "a", "c"], dtype=object), None, ("a", "b", "c")),
    (np.array([10, 9, 2], dtype=object), "classification", ("2", "9", "10")),
    (np.array([Decimal(10), 9.0, 2], dtype=object), "classification", ("2", "9", "10")),
    (np.array(["10", "9", "2"]), None, ("10", "2", "9")),
    (np.array([True, "a", 3], dtype=object), None, ("3", "True", "a")),
    ([10, 9, 2], "classification", ("2", "9", "10")),
    ([-1.0, 1.0, 0.0], "classification", ("-1", "0", "1")),
]


@pytest.mark.parametrize(("labels", "task", "classes"), LABELS, ids=[f"{np.asarray(row[0])}" for row in LABELS])
@pytest.mark.parametrize("shape", [(30,), (30, 1), (2, 15)], ids=["[N]", "[N, 1]", "[Q, N]"])
def test_labels_become_zeros_and_ones(labels, task, classes, shape):
    labels = np.tile(np.asarray(labels), 10)
    data = datasets.from_arrays(X.reshape(2, 15, 3) if shape[0] == 2 else X, labels.reshape(shape), task=task)
    assert (data.task, data.classes) == ("classification", classes)
    assert data.y.shape == (*data.x.shape[:-1], len(classes))
    expected = [
        [float(str(int(label) if isinstance(label, float | Decimal) else label) == name) for name in classes]
        for label in labels
    ]
    np.testing.assert_array_equal(data.y.reshape(30, -1), expected)


def test_classes_are_those_of_all_sets():
    data = datasets.from_arrays(np.stack([X, X]), np.repeat([["a", "b"], ["b", "c"]], 15, axis=1))
    assert data.classes == ("a", "b", "c")
    np.testing.assert_array_equal(data.y.sum(1), [[15, 15, 0], [0, 15, 15]])


CODES = {  # targets that may be classes as well as numbers -> what the message calls them
    "0/1/2": (np.arange(30) % 3, r"3 different whole numbers \(0, 1, 2\)"),
    "0.0/1.0/2.0": (np.arange(30) % 3 * 1.0, r"3 different whole numbers \(0, 1, 2\)"),
    "-1/+1": (np.arange(30) % 2 * 2 - 1, r"2 different whole numbers \(-1, 1\)"),
    "objects": ((np.arange(30) % 2).astype(object), r"2 different whole numbers \(0, 1\)"),
    "20 counts": (np.arange(30) % 20, "20 different whole numbers"),
    "in two sets": (np.arange(30).reshape(2, 15) % 2, "2 different whole numbers"),
    "one column per class": (np.eye(3)[np.arange(30) % 3], "zeros and ones with a single 1 in each row"),
}


@pytest.mark.parametrize("case", CODES)
def test_numbers_that_may_be_classes_must_be_said_which(case):
    """Taken for numbers without a word, zero_one would look for the border between classes at 0.5."""
    y, what = CODES[case]
    x = X.reshape(2, 15, 3) if y.shape == (2, 15) else X
    with pytest.raises(ValueError, match=f"task='classification' or task='regression' for 'y', a target of {what}"):
        datasets.from_arrays(x, y)
    assert [datasets.from_arrays(x, y, task=task).task for task in TASKS] == list(TASKS)


@pytest.mark.parametrize(
    "y",
    [np.arange(30) % 21, np.arange(30), np.arange(30) % 3 / 2, (X > 0) * 1.0, np.eye(3)[np.arange(30) % 3] * 2],
    ids=["21 values", "all different", "halves", "several at once", "twos"],
)
def test_numbers_that_cannot_be_classes_are_a_regression(y):
    assert datasets.from_arrays(X, y).task == "regression"


def test_columns_of_zeros_and_ones_are_classes_where_asked_for():
    code = np.arange(30) % 3
    by_code, by_column = (datasets.from_arrays(X, y, task="classification") for y in (code, np.eye(3)[code]))
    equal(by_code, by_column)
    named = datasets.from_arrays(X, np.eye(3)[code], task="classification", classes=["a", "b", "c"])
    equal(named, datasets.from_arrays(X, np.array(["a", "b", "c"])[code]))
    equal(named, datasets.from_arrays(X, pd.get_dummies(np.array(["a", "b", "c"])[code])))
    assert datasets.from_arrays(X, code, task="classification", classes="uvw").classes == ("u", "v", "w")
    rare = datasets.from_arrays(X, np.eye(5)[code], task="classification")
    assert (rare.y.shape, rare.classes) == ((30, 5), ("0", "1", "2", "3", "4"))  # two classes that do not occur here


def test_an_input_that_is_the_target_is_refused():
    """Its error would be rounding, whatever else is among the inputs."""
    leak, gap = np.column_stack([X, Y]), np.arange(30) > 0
    for call in (
        lambda: datasets.from_arrays(leak, Y),
        lambda: datasets.from_arrays(np.stack([leak, leak]), np.stack([Y, Y])),
        lambda: datasets.from_arrays(leak, leak[:, 2:]),
        lambda: datasets.from_arrays(np.column_stack([X, Y > 0]), Y > 0),
        lambda: datasets.from_frame(houses().assign(cost=houses()["price"]), "price"),
        lambda: datasets.from_frame(houses().assign(cost=houses()["price"].where(gap)), "price", missing="keep"),
        lambda: datasets.from_frame(houses().assign(color=houses()["colour"]), "colour"),
        lambda: datasets.from_frame(houses().assign(color=pd.Categorical(houses()["colour"])), "colour"),
    ):
        with pytest.raises(ValueError, match="inputs that do not hold the target, got '.*', which equals '.*' in ever"):
            call()
    almost = leak.copy()
    almost[7, 3] += 1e-9
    assert datasets.from_arrays(almost, Y).d == 4


def test_constant_inputs_are_dropped_or_kept_on_request():
    x = np.insert(X, 1, 7.0, axis=1)
    dropped, kept = (datasets.from_arrays(x, Y, names="abcd", constant=constant) for constant in ("drop", "keep"))
    np.testing.assert_array_equal(dropped.x, X)
    assert dropped.names == ("a", "c", "d")
    np.testing.assert_array_equal(kept.x, x)


def test_an_input_constant_in_one_of_the_sets_only_stays():
    x = np.stack([X, X])
    x[0, :, 1] = 5.0
    y = np.stack([Y, Y])
    assert datasets.from_arrays(x, y, constant="drop").d == 3
    x[1, :, 1] = 6.0
    assert datasets.from_arrays(x, y, constant="drop").names == ("x0", "x2")


# --- frames and CSV files


def test_texts_become_columns_but_for_the_first_level():
    frame = houses()
    data = datasets.from_frame(frame, "price")
    assert data.names == ("area", "colour=green", "colour=red", "garden", "rooms")  # blue is the reference level
    np.testing.assert_array_equal(data.x[:, 1], frame["colour"] == "green")
    np.testing.assert_array_equal(data.x[:, 3], frame["garden"])
    assert np.linalg.matrix_rank(np.column_stack([np.ones(30), data.x])) == 6
    assert (data.target, data.task, data.y.shape) == ("price", "regression", (30, 1))


def test_only_levels_that_occur_count():
    colour = pd.Categorical(houses()["colour"], categories=["white", "red", "green", "blue"], ordered=True)
    equal(datasets.from_frame(houses(colour=colour), "price"), datasets.from_frame(houses(), "price"))


def test_levels_of_several_kinds_or_of_numbers():
    assert datasets.from_frame(houses(colour=["red", 2, "x"] * 10), "price").names[1:3] == ("colour=red", "colour=x")
    assert datasets.from_frame(houses(colour=pd.Categorical([10, 9, 2] * 10)), "price").names[1:3] == (
        "colour=9",
        "colour=10",
    )
    assert datasets.from_frame(
        houses(colour=["red", "1", "2"] * 10).iloc[1:].astype({"colour": "category"}), "price"
    ).names[1:3] == ("colour=2", "colour=red")


def test_a_single_level_is_a_constant_column():
    frame = houses(colour="red")
    assert datasets.from_frame(frame, "price", constant="drop").names == ("area", "garden", "rooms")
    np.testing.assert_array_equal(datasets.from_frame(frame, "price", constant="keep").x[:, 1], 1.0)


FRAMES = {  # the same table in other types
    "object": lambda frame: frame.astype(object),
    "nullable": lambda frame: frame.convert_dtypes(),
    "float32": lambda frame: frame.astype({"rooms": np.float32}),
    "categories": lambda frame: frame.astype({"colour": "category"}),
}


@pytest.mark.parametrize("cast", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize(("target", "task"), [("price", None), ("colour", None), ("garden", None), ("rooms", TASKS[0])])
def test_the_types_of_a_frame_do_not_matter(cast, target, task):
    equal(datasets.from_frame(cast(houses()), target, task), datasets.from_frame(houses(), target, task))


def test_decimals_are_numbers():
    frame = houses()
    exact = frame.assign(area=[Decimal(str(area)) for area in frame["area"]])
    equal(datasets.from_frame(exact, "price"), datasets.from_frame(frame, "price"))
    equal(datasets.from_frame(exact, "area"), datasets.from_frame(frame, "area"))


TARGETS = [  # target, task asked for -> task, classes
    ("price", None, "regression", ()),
    ("rooms", "regression", "regression", ()),
    ("rooms", "classification", "classification", ("1", "2", "3", "4", "5", "6")),
    ("garden", None, "classification", ("False", "True")),
    ("garden", "regression", "regression", ()),
    ("colour", None, "classification", ("blue", "green", "red")),
]


@pytest.mark.parametrize(("target", "asked", "task", "classes"), TARGETS, ids=[f"{row[0]} {row[1]}" for row in TARGETS])
def test_the_target_decides_the_task_unless_said(target, asked, task, classes):
    data = datasets.from_frame(houses(), target, task=asked)
    assert (data.task, data.classes, data.target) == (task, classes, target)
    assert not any(name.startswith(target) for name in data.names)


def test_a_categorical_target_of_numbers_is_a_classification():
    frame = houses(rooms=pd.Categorical(houses()["rooms"]))
    equal(datasets.from_frame(frame, "rooms"), datasets.from_frame(houses(), "rooms", task="classification"))
    assert datasets.from_arrays(X, frame["rooms"]).classes == ("1", "2", "3", "4", "5", "6")
    assert datasets.from_frame(frame, "rooms", task="regression").task == "regression"


def test_a_header_with_a_name_twice_is_refused_wherever_the_header_is(tmp_path):
    """Pandas would call the second price price.1, so a copy of the target would be an input."""
    rows = "".join(f"{a},{b},{b}\n" for a, b in zip(X[:, 0], Y, strict=True))
    plain, twice = f"a,b,price\n{rows}", f"a,price,price\n{rows}"
    for text, options in (
        (twice, {}),
        (f"prices of 2020\n{twice}", {"header": 1}),
        (f"prices of 2020\n{twice}", {"skiprows": 1}),
        (f"\n# prices\n{twice}", {"comment": "#"}),
        (twice.replace(",", ";"), {"sep": None, "engine": "python"}),
        (f"\ufeff{twice}", {}),
        (twice, {"usecols": [0, 2]}),
    ):
        (tmp_path / "prices.csv").write_text(text)
        with pytest.raises(ValueError, match="header with different names, got price more than once; rename"):
            datasets.read_csv(tmp_path / "prices.csv", "price", **options)
    (tmp_path / "prices.csv").write_text(twice)
    named = datasets.read_csv(tmp_path / "prices.csv", "y", names=["a", "b", "y"], header=0, usecols=["a", "y"])
    assert (named.names, named.target) == (("a",), "y")
    with pytest.raises(ValueError, match="inputs that do not hold the target, got 'b', which equals 'price'"):
        datasets.read_csv(io.StringIO(plain), "price")


def test_open_files_are_read():
    text = houses().to_csv(index=False)
    data = datasets.from_frame(houses(), "price")
    equal(datasets.read_csv(io.StringIO(text), "price"), data)
    equal(datasets.read_csv(io.BytesIO(text.encode()), "price"), data)
    with pytest.raises(ValueError, match=r"<StringIO>: expected a target among the columns .*, got 'prize'"):
        datasets.read_csv(io.StringIO(text), "prize")


def test_rows_stay_together_whatever_the_index():
    order = np.random.default_rng(2).permutation(30)
    shuffled, straight = houses().iloc[order], datasets.from_frame(houses(), "colour")
    data = datasets.from_frame(shuffled, "colour")
    np.testing.assert_array_equal(data.x, straight.x[order])
    np.testing.assert_array_equal(data.y, straight.y[order])
    equal(datasets.from_frame(shuffled.set_axis([0] * 30), "colour"), data)


def test_a_csv_file_equals_the_frame_equals_the_arrays(tmp_path):
    frame = houses()
    frame.to_csv(tmp_path / "houses.csv", index=False)
    frame.to_csv(tmp_path / "houses.tsv", index=False, sep="\t", decimal=",")
    data = datasets.from_frame(frame, "price")
    equal(datasets.read_csv(tmp_path / "houses.csv", "price"), data)
    equal(datasets.read_csv(str(tmp_path / "houses.tsv"), "price", sep="\t", decimal=","), data)
    x = np.column_stack(
        [frame["area"], frame["colour"] == "green", frame["colour"] == "red", frame["garden"], frame["rooms"]]
    )
    frame.to_csv(
        tmp_path / "numbered.csv", header=["area", "colour", "garden", "rooms", "price"], index_label=False
    )  # as R writes it: no name for the row numbers
    equal(datasets.read_csv(tmp_path / "numbered.csv", "price"), data)
    equal(
        datasets.from_arrays(x, frame["price"], ["area", "colour=green", "colour=red", "garden", "rooms"], "price"),
        data,
    )


# --- OpenML


def offers(frame=None, targets=("price",), error=None):
    """A stand-in for scikit-learn's fetch_openml that records what it is asked for."""

    def fetch_openml(**asked):
        if error:
            raise error
        return Bunch(frame=houses() if frame is None else frame, target_names=list(targets), asked=asked)

    return fetch_openml


def ask(monkeypatch, fetch, **options):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    return datasets.openml("houses", **options)


def test_openml_is_the_frame_that_it_sends(monkeypatch):
    equal(ask(monkeypatch, offers()), datasets.from_frame(houses(), "price"))
    equal(ask(monkeypatch, offers(), target="colour", version=2), datasets.from_frame(houses(), "colour"))
    equal(
        ask(monkeypatch, offers(targets=()), target="rooms", task="classification"),
        datasets.from_frame(houses(), "rooms", task="classification"),
    )


def test_openml_asks_for_a_frame_of_that_version(monkeypatch):
    asked = {}
    ask(monkeypatch, lambda **options: asked.update(options) or offers()(), version=3)
    assert asked == {"name": "houses", "version": 3, "as_frame": True, "parser": "pandas"}


OPENML = {  # what fetch_openml does -> exception, message
    "no network": (
        offers(error=urllib.error.URLError("no route to host")),
        OSError,
        "expected an answer from openml.org, got URLError .*check the network",
    ),
    "time out": (offers(error=TimeoutError("slow")), OSError, "got TimeoutError"),
    "unknown set": (
        offers(error=ValueError("No active dataset houses found.")),
        ValueError,
        "OpenML houses: No active dataset",
    ),
    "no target": (
        offers(targets=()),
        ValueError,
        "OpenML houses: expected a set with one target of its own, got 0; name the target among area, colour",
    ),
    "two targets": (offers(targets=("price", "rooms")), ValueError, "got 2"),
    "missing value": (
        offers(houses(rooms=spoil(list(range(30)), 4, None))),
        ValueError,
        "OpenML houses: expected no missing value, got 1 in column 'rooms', the first in row 4",
    ),
}


@pytest.mark.parametrize(("fetch", "error", "message"), OPENML.values(), ids=OPENML)
def test_openml_errors(monkeypatch, fetch, error, message):
    with pytest.raises(error, match=message):
        ask(monkeypatch, fetch)


# --- bad inputs


def arrays(x=X, y=Y, **options):
    return lambda folder: datasets.from_arrays(x, y, **options)


def frame(target="price", options=None, **columns):
    return lambda folder: datasets.from_frame(houses(**columns), target, **(options or {}))


def csv(text="a,b,y\n1,2,3\n4,5,7\n", target="y", **options):
    def call(folder):
        (folder / "table.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
        return datasets.read_csv(folder / "table.csv", target, **options)

    return call


def put(value, dtype=np.float64) -> np.ndarray:
    """X with a value in column 1, row 2."""
    x = X.astype(dtype)
    x[2, 1] = value
    return x


BAD_ARRAYS = [
    ("lengths", arrays(y=Y[:-1]), r"one row for each row of x \[30, 3\], got \[29, 1\]"),
    ("lengths of Q", arrays(np.stack([X, X]), Y), r"x \[2, 30, 3\], got \[30\]"),
    ("no case", arrays(X[:0], Y[:0]), r"at least two cases and one input, got \[0, 3\]"),
    ("one case", arrays(X[:1], Y[:1]), r"at least two cases.*got \[1, 3\]"),
    ("no input", arrays(X[:, :0]), r"one input, got \[30, 0\]"),
    ("no output", arrays(y=X[:, :0]), r"one row for each row.*got \[30, 0\]"),
    ("x [N]", arrays(X[:, 0]), r"x \[N, D\].*got \[30\]; give one row per case"),
    ("x a number", arrays(1.0, 2.0), r"got \[\]"),
    ("x None", arrays(None), r"x \[N, D\].*got \[\]"),
    (
        "text in x",
        arrays(put("high", object)),
        "expected numbers, got 'high' in column 'x1', row 2: text where a number is needed",
    ),
    ("str x", arrays(put("high", str), names="abc"), "got 'high' in column 'b', row 2"),
    ("str in Q", arrays(np.stack([X, put("high", object)]), np.stack([Y, Y])), "got 'high' in column 'x1', row 2"),
    ("number too large", arrays(put(10**400, object)), "expected numbers, got '10+…' in column 'x1', row 2"),
    ("text in y", arrays(y=spoil(Y, 3, "low"), task="regression"), "got 'low' in column 'y', row 3"),
    ("None in x", arrays(put(None, object)), "column 1 \\('x1'\\), case 2"),
    ("NaN in x", arrays(put(np.nan)), "finite numbers, got nan in x, column 1 \\('x1'\\), case 2"),
    ("infinity in x", arrays(put(np.inf)), "got inf in x, column 1"),
    ("NaN in y", arrays(y=spoil(Y, 3, np.nan), target="price"), "got nan in y, column 0 \\('price'\\), case 3"),
    ("infinity in y", arrays(y=spoil(Y, 3, -np.inf)), "got -inf in y"),
    (
        "NaN in labels",
        arrays(y=spoil(np.arange(30) % 2, 3, np.nan), task="classification"),
        "as labels, got nan for 'y' in row 3",
    ),
    ("infinite label", arrays(y=spoil(np.arange(30) % 2, 3, np.inf), task="classification"), "as labels, got inf"),
    ("None in labels", arrays(y=spoil(["a", "b"] * 15, 3, None)), "as labels, got None for 'y' in row 3"),
    (
        "half a label",
        arrays(y=spoil(np.arange(30) % 2, 3, 0.5), task="classification"),
        "whole numbers as labels, got 0.5 for 'y' in row 3",
    ),
    ("single class", arrays(y=["a"] * 30), "2 to 20 classes, got 1 in 'y', the first 'a'; choose another target"),
    (
        "too many classes",
        arrays(y=[f"street {i}" for i in range(30)]),
        "2 to 20 classes, got 30 in 'y', the first 'street 0'; join rare classes",
    ),
    (
        "two classes at once",
        arrays(y=np.eye(30)[:, :2], task="classification"),
        r"one label per case .*, or zeros and ones .*, got 0.0, 0.0 in row 2 of \[30, 2\]; give y \[N\], such as",
    ),
    (
        "one class in columns",
        arrays(y=np.eye(2)[np.zeros(30, int)], task="classification"),
        "2 to 20 classes, got 1 in 'y'",
    ),
    (
        "too few class names",
        arrays(y=["a", "b"] * 15, classes=["c"]),
        r"names for the 2 classes of 'y' \(a, b\), got 1; name every class once",
    ),
    ("classes of a regression", arrays(classes=["a", "b"]), r"no classes for a regression of 'y', got \['a', 'b'\]"),
    (
        "constant x",
        arrays(put(7.0)[[2] * 30]),
        r"got -?[\d.]+ in every row of column 'x0' \(3 such columns\); give inputs that vary",
    ),
    (
        "constant column",
        arrays(np.insert(X, 1, 7.0, axis=1)),
        "inputs that vary, got 7 in every row of column 'x1' .*constant='drop'",
    ),
    ("all dropped", arrays(np.ones((30, 3)), constant="drop"), "give inputs that vary"),
    ("constant y", arrays(y=np.full(30, 3.5), target="price"), "target that varies, got 3.5 for 'price' in every row"),
    ("constant y in a set", arrays(np.stack([X, X]), np.stack([Y, 0 * Y])), "target that varies, got 0"),
    (
        "sparse",
        arrays(scipy.sparse.csr_matrix(X)),
        r"dense array for x, got a sparse csr_matrix; convert it with .toarray\(\)",
    ),
    ("complex", arrays(X + 1j), "real numbers in x, got complex128"),
    ("complex y", arrays(y=Y + 1j), "real numbers in y, got complex128"),
    (
        "dates",
        arrays(np.full((30, 3), np.datetime64("2020-01-01"))),
        r"real numbers in x, got datetime64\[D\].*days since a date",
    ),
    ("bytes", arrays(y=np.array([b"a", b"b"] * 15)), r"real numbers in y, got \|S1"),
    ("ragged", arrays([[1.0, 2.0], [3.0]], [1.0, 2.0]), "rows of equal length in x"),
    ("masked", arrays(np.ma.masked_less(X, 0)), r"no missing value in x, got \d+ masked ones"),
    ("names missing", arrays(names=["a", "b"]), "expected 3 names, one per column of x, got 2"),
    ("names twice", arrays(names=["a", "b", "a"]), "different names, got 'a' 2 times"),
    ("task", arrays(task="ranking"), "task to be one of None, 'regression', 'classification', got 'ranking'"),
    ("constant", arrays(constant="ignore"), "constant to be one of 'raise', 'drop', 'keep', got 'ignore'"),
    ("index", arrays(pd.DataFrame(X), pd.Series(Y)[::-1]), "same index in the same order"),
]
BAD_FRAMES = [
    (
        "unknown target",
        frame("prize"),
        "among the columns area, colour, garden, rooms, price, got 'prize'; did you mean 'price'",
    ),
    ("strange target", frame("zzz"), "got 'zzz'; name one of them"),
    (
        "columns twice",
        lambda folder: datasets.from_frame(pd.concat([houses(), houses()], axis=1), "price"),
        "different names, got 'area' 2 times",
    ),
    (
        "no rows",
        lambda folder: datasets.from_frame(houses()[:0], "price"),
        "at least two rows.*got 0 rows of 5 columns",
    ),
    (
        "target alone",
        lambda folder: datasets.from_frame(houses()[["price"]], "price"),
        "one input and the target, got 30 rows of 1 columns",
    ),
    ("NaN", frame(area=spoil(X[:, 0], 5, np.nan)), "no missing value, got 1 in column 'area', the first in row 5"),
    ("infinity", frame(area=spoil(X[:, 0], 5, np.inf)), "finite numbers, got inf in x, column 0 \\('area'\\), case 5"),
    (
        "missing text",
        frame(colour=spoil(["red", "blue"] * 15, 5, None)),
        "missing value, got 1 in column 'colour', the first in row 5",
    ),
    ("missing target", frame(price=spoil(Y, 5, np.nan)), "missing value, got 1 in column 'price', the first in row 5"),
    (
        "missing nullable",
        frame(rooms=pd.array(spoil(list(range(30)), 5, None), dtype="Int64")),
        "missing value, got 1 in column 'rooms', the first in row 5",
    ),
    (
        "dates",
        frame(sold=pd.date_range("2020-01-01", periods=30)),
        "numbers or texts, got dates in column 'sold'; say dates='days'",
    ),
    ("durations", frame(sold=pd.to_timedelta(np.arange(30), unit="D")), "got dates in column 'sold'"),
    ("periods", frame(sold=pd.period_range("2020-01", periods=30, freq="M")), "got dates in column 'sold'"),
    ("dates as texts", frame(sold=["2020-01-01", "2020-02-01", "2020-03-01"] * 10), "got dates in column 'sold'"),
    ("dates as objects", frame(sold=list(pd.date_range("2020-01-01", periods=30).date)), "got dates in column 'sold'"),
    ("dates as target", frame("sold", sold=pd.date_range("2020-01-01", periods=30)), "got dates in column 'sold'"),
    (
        "number column spoiled",
        frame(area=spoil([str(i) for i in range(30)], 5, "n.k.")),
        "as in most rows, got 'n.k.' in column 'area', row 5: text where a number is needed",
    ),
    (
        "few numbers spoiled",
        frame(rooms=spoil([1, 2, 3] * 10, 5, "many")),
        "got 'many' in column 'rooms', row 5: text where a number is needed",
    ),
    ("target spoiled", frame(price=spoil(list(range(30)), 5, "n.k.")), "got 'n.k.' in column 'price', row 5"),
    ("text as number", frame("colour", {"task": "regression"}), "got 'red' in column 'colour', row 0"),
    (
        "identifier",
        frame(street=[f"street {i}" for i in range(30)]),
        "a few levels, got 30 different texts in the 30 rows of column 'street', the first 'street "
        "0'; leave an identifier out",
    ),
    (
        "identifier as target",
        frame("street", street=[f"street {i}" for i in range(30)]),
        "2 to 20 classes, got 30 in 'street'",
    ),
    ("constant column", frame(area=3), "got 3 in every row of column 'area'"),
    ("constant text", frame(colour="red"), "got 1 in every row of column 'colour=red'"),
    ("constant target", frame(price=3), "got 3 for 'price' in every row"),
    ("single class", frame("colour", colour="red"), "got 1 in 'colour', the first 'red'"),
    ("complex", frame(area=X[:, 0] + 1j), "real numbers in x, got complex128"),
    (
        "name of a level taken",
        lambda folder: datasets.from_frame(houses().assign(**{"colour=red": X[:, 0]}), "price"),
        "different names, got 'colour=red' 2 times",
    ),
]
BAD_FILES = [
    ("csv: empty", csv(""), "table.csv: expected a header and rows, got an empty file"),
    ("csv: header only", csv("a,b,y\n"), "table.csv: expected at least two rows, one input and the target, got 0 rows"),
    ("csv: unknown target", csv(target="z"), "table.csv: expected a target among the columns a, b, y, got 'z'"),
    ("csv: other separator", csv("a;y\n1;2\n3;4\n"), "table.csv: expected a target among the columns a;y, got 'y'"),
    (
        "csv: too many values",
        csv("a,y\n1,2\n1,2,3\n"),
        r"table.csv: expected a table, got what pandas.read_csv cannot read \(.*Expected 2 fields in line 3, saw 3",
    ),
    (
        "csv: separator at the end",
        csv("a,b,y\n1,2,3,\n4,5,6,\n"),
        "table.csv: expected 3 values in every row, one per name in the header, got more",
    ),
    ("csv: row names", csv("a,b,y\nr,1,2,3\ns,4,5,7\n"), "table.csv: expected 3 values in every row.*index_col=0"),
    (
        "csv: too few values",
        csv("a,b,y\n1,2,3\n4,5\n"),
        "table.csv: expected no missing value, got 1 in column 'y', the first in row 1",
    ),
    ("csv: no text", csv(b"a,y\n\xff\xfe,1\n"), "table.csv: expected a table.*utf-8.*encoding"),
    ("csv: unknown column", csv(usecols=["a", "q", "y"]), "table.csv: expected a table.*do not match columns"),
    (
        "csv: text",
        csv("a,y\n1,2\n2,3\nx,4\n3,5\n"),
        "table.csv: expected numbers, as in most rows, got 'x' in column 'a', row 2",
    ),
]
BAD = [*BAD_ARRAYS, *((f"frame: {name}", *rest) for name, *rest in BAD_FRAMES), *BAD_FILES]


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize(("call", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_input_has_its_sentence(tmp_path, call, message):
    with pytest.raises(ValueError, match=message) as error:
        call(tmp_path)
    sentence = str(error.value).removeprefix(f"{tmp_path}/")
    assert "expected " in sentence
    assert ", got " in sentence
    assert "; " in sentence  # what to do
    assert not sentence.endswith(".")
    assert "\n" not in sentence


MISSING = {
    "csv": lambda folder: datasets.read_csv(folder / "none.csv", "y"),
    "csv folder": lambda folder: datasets.read_csv(folder, "y"),
}


@pytest.mark.parametrize("call", MISSING.values(), ids=MISSING)
def test_missing_file_is_named(tmp_path, call):
    with pytest.raises(FileNotFoundError, match=r"expected a file, got (none|a folder); check the path") as error:
        call(tmp_path)
    assert str(tmp_path) in str(error.value)
