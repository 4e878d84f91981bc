"""Data from what nobody should give: every argument of every reader gets one sentence, or the data that it means."""

import datetime
import io
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hostile import STRANGERS, refused

from jaxgen import Data, assess, datasets, learn, loss, resample
from jaxgen.types import keys

pytestmark = [pytest.mark.one_device, pytest.mark.usefixtures("own_messages")]

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(30, 3)), RANDOM.normal(size=30)
CODE = np.arange(30) % 3
DAYS = [datetime.date(2020, 1, 1 + day % 9) for day in range(30)]


def objects(values):
    """An array of objects, none of them taken apart."""
    array = np.empty(30, object)
    array[:] = list(values)
    return array


def frame(**columns):
    return pd.DataFrame(X, columns=list("abc")).assign(y=Y, **columns)


def text(*columns, header="a,b,y", sep=","):
    """A CSV file of 30 rows: X, other columns, and the target."""
    rows = zip(X[:, 0].round(3), *columns, Y.round(3), strict=True)
    return "\n".join([header.replace(",", sep), *(sep.join(map(str, row)) for row in rows)]) + "\n"


def read(content, target="y", **options):
    return datasets.read_csv(io.StringIO(content), target, **options)


def sentence(call, kinds=ValueError):
    """The message of what must be refused, without the name of the file."""
    message = ""

    def stripped():
        nonlocal message
        try:
            call()
        except Exception as error:
            message = str(error)
            raise type(error)(message.removeprefix("<StringIO>: ")) from None

    return refused(stripped, kinds)


ARRAYS = {  # arguments of from_arrays -> a part of the message
    **{f"x, {kind}": ({"x": value, "y": Y}, "") for kind, value in STRANGERS.items()},
    **{f"y, {kind}": ({"y": value}, "") for kind, value in STRANGERS.items()},
    "a dict for x": ({"x": {"a": 1}}, "x [N, D]"),
    "a set for x": ({"x": {1, 2}}, "x [N, D]"),
    "a generator for x": ({"x": (row for row in X)}, "x [N, D]"),
    "records": ({"x": frame().to_records()}, "real numbers in x"),
    "four axes": ({"x": np.ones((2, 2, 3, 3))}, "x [N, D] or [Q, N, D]"),
    "names, a number": ({"names": 5}, "names as a list of texts, got 5"),
    "names, numbers": ({"names": [1, 2, 3]}, "names as a list of texts, got [1, 2, 3]"),
    "target, a number": ({"target": 5}, "name of the target as text, got 5"),
    "task, a number": ({"task": 5}, "task to be one of None, 'regression', 'classification', got 5"),
    "task, a list": ({"task": ["classification"]}, "task to be one of"),
    "constant, None": ({"constant": None}, "constant to be one of"),
    "classes, a number": ({"y": CODE, "task": "classification", "classes": 5}, "classes as a list of texts, got 5"),
    "classes, numbers": ({"y": CODE, "task": "classification", "classes": [0, 1, 2]}, "classes as a list of texts"),
    "classes twice": ({"y": CODE, "task": "classification", "classes": ["a", "a", "b"]}, "different classes, got a, a"),
    "labels, lists": ({"y": objects([1, i] for i in range(30))}, "texts or whole numbers as labels, got [1, 0]"),
    "labels, bytes": ({"y": objects([b"a", b"b"] * 15)}, "texts or whole numbers as labels, got b'a'"),
    "labels, complex": ({"y": objects([1j, 2j] * 15)}, "texts or whole numbers as labels"),
    "labels, dates": ({"y": objects(DAYS)}, "labels, got dates for 'y'"),
    "labels, times": ({"y": objects(pd.Timestamp(day) for day in DAYS)}, "labels, got dates for 'y'"),
    "labels, texts of dates": ({"y": [str(day) for day in DAYS]}, "got dates written as texts, such as '2020-01-01'"),
    "labels, texts of numbers": ({"y": Y.astype(str)}, "got numbers written as texts, such as"),
    "labels, decimal commas": ({"y": ["0,5", "1,5"] * 15}, "got numbers written as texts, such as '0,5'"),
    "labels, shares": ({"y": ["5 %", "10 %"] * 15}, "got numbers written as texts, such as '5 %'"),
    "labels, identifiers": ({"y": [str(10**20 + i % 3) for i in range(30)]}, "got numbers written as texts"),
    "labels, 1 and '1'": ({"y": objects([1, "1"] * 15)}, "differ by more than spaces or kind, got 2 times '1'"),
    "labels, spaces": ({"y": ["yes", "no", "no "] * 10}, "differ by more than spaces or kind, got 2 times 'no'"),
    "labels, too large": ({"y": objects(10**400 + i for i in range(30))}, "texts or whole numbers as labels"),
    "probabilities": ({"y": np.full((30, 2), 0.5), "task": "classification"}, "got 0.5, 0.5 in row 0"),
    "several classes at once": ({"y": X > 0}, "zeros and ones with a single 1 in each row, got"),
    "texts in columns": ({"y": [["a", "b"]] * 30}, "one label per case for the classification of 'y'"),
    "Decimal NaN": ({"y": objects([Decimal("nan")] + [Decimal(i * i) for i in range(29)])}, "finite numbers, got nan"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_of_another_kind_are_refused(case):
    arguments, words = ARRAYS[case]
    assert words in sentence(lambda: datasets.from_arrays(**{"x": X, "y": Y, **arguments}))


@pytest.mark.parametrize(
    ("y", "values"),
    [
        (Y.astype(object), Y),
        (objects(Decimal(str(value)) for value in Y), Y),
        (objects(Fraction(i, 7) for i in range(30)), np.arange(30) / 7),
        (objects(i % 3 * 10**30 for i in range(30)), CODE * 1e30),
        (jnp.asarray(Y), np.asarray(jnp.asarray(Y))),
        (pd.Series(Y).convert_dtypes(), Y),
    ],
    ids=["floats", "decimals", "fractions", "beyond 64 bits", "jax", "nullable"],
)
def test_numbers_of_any_kind_are_numbers(y, values):
    data = datasets.from_arrays(X, y, task="regression")
    np.testing.assert_array_equal(data.y[:, 0], values)
    np.testing.assert_array_equal(datasets.from_arrays(np.column_stack([y, X]), X[:, 0] - Y).x[:, 0], values)


FRAMES = {  # target, columns -> a part of the message
    "lists": ("y", {"q": [[1]] * 30}, "numbers or texts, got [1] in column 'q', row 0"),
    "dicts": ("y", {"q": [{1: 2}] * 30}, "numbers or texts, got {1: 2} in column 'q', row 0"),
    "tuples": ("y", {"q": [(1,)] * 30}, "numbers or texts, got (1,) in column 'q'"),
    "bytes": ("y", {"q": [b"a"] * 30}, "numbers or texts, got b'a' in column 'q'"),
    "sets": ("y", {"q": [{1}] * 30}, "numbers or texts, got {1} in column 'q'"),
    "arrays": ("y", {"q": [np.ones(2)] * 30}, "numbers or texts, got an array of shape [2] in column 'q'"),
    "objects": ("y", {"q": [object()] * 30}, "numbers or texts, got <object object"),
    "lists for a target": ("q", {"q": [[1]] * 30}, "numbers or texts, got [1] in column 'q'"),
    "complex": ("y", {"q": [1j] * 30}, "real numbers in x, got complex128"),
    "no target": (None, {}, "a target among the columns a, b, c, y, got 'None'"),
    "a pair for a target": (("a", "b"), {}, "a target among the columns a, b, c, y, got"),
    "a long target": ("z" * 500, {}, "a target among the columns a, b, c, y, got 'zzz"),
    "spaces": ("y", {"q": ["yes", "no", "no "] * 10}, "levels of 'q' that differ by more than spaces or kind"),
    "texts of numbers": ("y", {"q": Y.astype(str)}, "numbers written as texts in column 'q', such as"),
    "texts of codes": ("y", {"q": [f"0{i}" for i in CODE]}, "numbers written as texts in column 'q', such as '00'"),
    **{
        f"dates, {kind}": ("y", {"q": days}, "got dates in column 'q'")
        for kind, days in {
            "objects": objects(DAYS),
            "times": objects(pd.Timestamp(day) for day in DAYS),
            "one among texts": ["a"] * 29 + [DAYS[0]],
            "times of a zone": pd.date_range("2020-01-01", periods=30, tz="UTC"),
            "times of day": [datetime.time(hour % 24) for hour in range(30)],
            "American": [f"{day:%m/%d/%Y}" for day in DAYS],
            "German": [f"{day:%d.%m.%y}" for day in DAYS],
            "with months": [f"{day.day} Jan {day.year}" for day in DAYS],
            "in words": [f"January {day.day}, {day.year}" for day in DAYS],
            "to the second": [f"{day}T10:00:00" for day in DAYS],
            "to the second, with a zone": [f"{day} 10:00:00+01:00" for day in DAYS],
            "to the month": ["2020-01", "2020-02"] * 15,
            "with slashes": [f"{day:%Y/%m/%d}" for day in DAYS],
            "minutes": [f"10:0{day.day % 10}" for day in DAYS],
        }.items()
    },
}


@pytest.mark.parametrize("case", FRAMES)
def test_frames_of_other_things_are_refused(case):
    target, columns, words = FRAMES[case]
    assert words in sentence(lambda: datasets.from_frame(frame(**columns), target))


@pytest.mark.parametrize("stranger", [*STRANGERS.values(), {"y": Y}, frame()["y"]], ids=[*STRANGERS, "dict", "series"])
def test_what_is_no_frame_is_refused(stranger):
    assert "expected a pandas DataFrame, got" in sentence(lambda: datasets.from_frame(stranger, "y"), TypeError)


def test_codes_and_days_that_are_meant_are_levels():
    """Said to be categories."""
    for values in ([f"0{i}" for i in CODE], [str(day) for day in DAYS], [f"{i},5" for i in CODE], pd.cut(X[:, 0], 3)):
        assert datasets.from_frame(frame(q=pd.Categorical(values)), "y").d > 3
    assert datasets.from_arrays(X, [f"{i}.5" for i in CODE], task="classification").classes == ("0.5", "1.5", "2.5")


TABLES = {  # content, options -> a part of the message
    "decimal comma": (text(X[:, 1]).replace(",", ";").replace(".", ","), {"sep": ";"}, "numbers written as texts"),
    "thousands": (text([f"1,{i + 100}" for i in range(30)], sep=";"), {"sep": ";"}, "such as '1,100'"),
    "dollars": (text([f"${i + 100}" for i in range(30)]), {}, "such as '$100'"),
    "shares": (text([f"{i} %" for i in range(30)]), {}, "such as '0 %'"),
    "dates": (text(DAYS), {}, "got dates in column 'b'"),
    "zero bytes": (text(["0\x001"] * 29 + ["1"]), {}, "expected a table in text, got a file with zero bytes"),
    "the header twice": (text(Y, header="a,y,y"), {}, "header with different names, got y more than once"),
    "the header twice, of inputs": (text(Y, header="a,a,y"), {}, "header with different names, got a more than once"),
    "the header twice, further down": (f"title\n{text(Y, header='y,b,y')}", {"header": 1}, "got y more than once"),
    "in quotes": (text(Y, header='y,"y",z'), {}, "got y more than once"),
    "nothing": ("", {}, "a header and rows, got an empty file"),
    **{
        f"option {name}={value!r}": (text(X[:, 1]), {name: value}, words)
        for name, value, words in (
            ("chunksize", 5, "options that read one table, got chunksize"),
            ("iterator", True, "options that read one table, got iterator"),
            ("sep", "(", "a target among the columns a,b,y"),
            ("sep", "(?<", "what pandas.read_csv cannot read"),
            ("sep", 5, "what pandas.read_csv cannot read"),
            ("engine", "none", "what pandas.read_csv cannot read"),
            ("none", 1, "what pandas.read_csv cannot read"),
            ("usecols", ["a", "q"], "what pandas.read_csv cannot read"),
            ("nrows", -1, "what pandas.read_csv cannot read"),
            ("nrows", 1, "at least two rows"),
            ("dtype", {"a": "int8"}, "what pandas.read_csv cannot read"),
            ("dtype", str, "numbers written as texts in column 'a'"),
            ("skiprows", 100, "got an empty file"),
            ("header", 5, "a target among the columns"),
            ("header", [0, 1], "a target among the columns"),
            ("header", "x", "what pandas.read_csv cannot read"),
            ("index_col", "zz", "what pandas.read_csv cannot read"),
            ("decimal", ";;", "what pandas.read_csv cannot read"),
            ("converters", {"a": 1}, "what pandas.read_csv cannot read"),
            ("quotechar", "xx", "what pandas.read_csv cannot read"),
            ("comment", "##", "what pandas.read_csv cannot read"),
            ("names", 5, "what pandas.read_csv cannot read"),
            ("names", ["a", "a", "y"], "what pandas.read_csv cannot read"),
            ("delimiter", ";", "a target among the columns a,b,y"),
        )
    },
    "values without a name": (
        text(X[:, 1]),
        {"names": ["a", "y"], "index_col": False, "header": 0},
        "what pandas.read_csv cannot read",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_and_options_of_another_kind_are_refused(case):
    content, options, words = TABLES[case]
    assert words in sentence(lambda: read(content, **options))


def test_integers_beyond_64_bits_are_numbers_or_refused():
    """Pandas 2 reads them as texts."""
    table = text([10**30 + i * 10**29 for i in range(30)])
    if pd.__version__ < "3":
        assert "numbers written as texts in column 'b', such as '1000000000000000000000000000000'" in sentence(
            lambda: read(table)
        )
        return
    data = read(table)
    np.testing.assert_allclose(data.x[:, 1], 1e30 + 1e29 * np.arange(30), rtol=1e-15)  # to the last digit of a float


@pytest.mark.parametrize(
    "stranger", [*STRANGERS.values(), b"table.csv", ["table.csv"]], ids=[*STRANGERS, "bytes", "list"]
)
def test_what_is_no_file_is_refused(stranger):
    kind = FileNotFoundError if isinstance(stranger, str) else TypeError
    with pytest.raises(kind, match=r"expected (a file, got none|the path of a file, got .*); .*"):
        datasets.read_csv(stranger, "y")


def test_files_that_cannot_be_read_are_refused(tmp_path):
    closed = io.StringIO(text(Y))
    closed.close()
    assert "open for reading, got I/O operation on closed file" in sentence(lambda: datasets.read_csv(closed, "y"))
    with (
        open(tmp_path / "written.csv", "w") as written,
        pytest.raises(ValueError, match="written.csv: .* reading, got not readable"),
    ):
        datasets.read_csv(written, "y")
    for name in ("a\0b", "a" * 5000):
        with pytest.raises(FileNotFoundError, match="expected a file, got none; check the path") as error:
            datasets.read_csv(name, "y")
        assert len(str(error.value)) < 300


@pytest.mark.parametrize("name", [5, None, ""])
def test_a_set_of_openml_has_a_name_in_text(name):
    assert "the name of a set of openml.org, got" in sentence(lambda: datasets.openml(name))


@pytest.mark.parametrize("version", ["x", 0, True, None, 1.5])
def test_a_set_of_openml_has_a_version(version):
    assert "version to be a whole number of at least 1 or 'active', got" in sentence(
        lambda: datasets.openml("iris", version)
    )


# --- Data made by hand


GOOD = datasets.from_arrays(X, Y)
CLASSES = datasets.from_arrays(X, CODE, task="classification")
SETS = datasets.from_arrays(np.stack([X, 2 * X, 3 * X]), np.stack([Y, Y + 1, Y + 2]))
MADE = {  # changes of good data -> a part of the message
    "lists": (GOOD, {"x": X.tolist()}, "x and y as floating numbers, got a list and float64"),
    "nothing": (GOOD, {"y": None}, "x and y as floating numbers, got float64 and a NoneType"),
    "integers": (GOOD, {"y": CODE[:, None]}, "x and y as floating numbers, got float64 and int64"),
    "masked": (GOOD, {"x": np.ma.masked_less(X, 0)}, "x and y as floating numbers, got a MaskedArray"),
    "of JAX": (GOOD, {"x": jnp.asarray(X)}, "x and y as floating numbers, got a"),
    "a frame": (GOOD, {"x": frame()}, "x and y as floating numbers, got a DataFrame"),
    "no sets": (SETS, {"x": SETS.x[:0], "y": SETS.y[:0]}, "at least one case and one output, got x [0, 30, 3]"),
    "task": (GOOD, {"task": "ranking"}, "task to be one of 'regression', 'classification', got 'ranking'"),
    "no task": (GOOD, {"task": None}, "task to be one of 'regression', 'classification', got None"),
    "target": (GOOD, {"target": 5}, "a target in texts, got 5"),
    "names, numbers": (GOOD, {"names": (1, 2, 3)}, "names in texts, got (1, 2, 3)"),
    "names, a text": (GOOD, {"names": "abc"}, "names in texts, got 'abc'"),
    "names twice": (GOOD, {"names": ("a", "b", "a")}, "different names, got a, b, a"),
    "classes of a regression": (GOOD, {"classes": ("a",)}, "no classes for a regression, got a"),
    "classes, too few": (CLASSES, {"classes": ("a", "b")}, "3 classes, one per column of y, got 2"),
    "classes, numbers": (CLASSES, {"classes": (0, 1, 2)}, "classes in texts, got (0, 1, 2)"),
    "classes twice": (CLASSES, {"classes": ("a", "a", "b")}, "different classes, got a, a, b"),
    "two classes at once": (CLASSES, {"y": np.ones((30, 3))}, "1 for the class of each case and 0 for the others, got"),
    "no class": (CLASSES, {"y": np.zeros((30, 3))}, "got 0.0, 0.0, 0.0 as the target of case 0"),
    "probabilities": (CLASSES, {"y": np.full((30, 3), 1 / 3)}, "as the target of case 0; make the data with"),
    "labels": (CLASSES, {"y": CODE[:, None] * 1.0, "classes": ()}, "got 2.0 as the target of case 2"),
    "-1 and 1": (CLASSES, {"y": np.sign(Y)[:, None], "classes": ()}, "got -1.0 as the target of case"),
}


@pytest.mark.parametrize("case", MADE)
def test_data_made_by_hand_are_checked(case):
    data, changes, words = MADE[case]
    assert words in refused(lambda: replace(data, **changes).checked(), ValueError)


def test_a_single_column_of_zeros_and_ones_is_a_classification():
    made = Data(X, (Y > 0)[:, None] * 1.0, ("a", "b", "c"), task="classification")
    assert made.checked() is made


def test_wrong_classes_are_refused_before_any_number_is_computed():
    """Labels -1 and 1 in one column: zero_one would look for the border at 0.5 and be wrong by a factor."""
    labels = replace(CLASSES, y=np.sign(Y)[:, None], classes=())
    plan = resample.k_fold(jax.random.key(0), 30, folds=3)
    assert "1 for the class of each case" in refused(
        lambda: assess(jax.random.key(0), learn.Mean(), labels, plan, loss.zero_one), ValueError
    )


def test_data_print_what_they_are():
    assert repr(GOOD) == "Data(regression of 'y': x [30, 3], y [30, 1])"
    assert repr(CLASSES) == "Data(classification of 'y', 3 classes (0, 1, 2): x [30, 3], y [30, 3])"


def test_data_sets_are_gone_through_one_by_one():
    assert [np.array_equal(one.x, SETS.x[q]) for q, one in enumerate(SETS)] == [True] * 3
    assert [one.sets for one in SETS] == [None] * 3
    np.testing.assert_array_equal(SETS[-1].y, SETS.y[2])
    assert "data with a leading axis Q to go through, got a single data set" in refused(lambda: list(GOOD), TypeError)
    assert "data with a leading axis Q to choose a set from" in refused(lambda: GOOD[0], IndexError)
    for number in (3, -4, "a", None, 1.0, True, slice(0, 2)):
        assert "number of a data set from 0 to 2, got" in refused(lambda number=number: SETS[number], IndexError)


@pytest.mark.parametrize(
    "inputs", [*STRANGERS.values(), [], ["x0", "x0"], ["x0", 0], [1.5], [True], [None], {"x0"}, "x0"]
)
def test_inputs_are_selected_by_name_or_number(inputs):
    if isinstance(inputs, list) and inputs == [1, 2]:
        assert GOOD.select(inputs).names == ("x1", "x2")
    else:
        refused(lambda: GOOD.select(inputs), ValueError)


# --- seeds


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_keys_print_as_code_that_recreates_them(seed):
    key = jax.random.key(seed)
    assert keys.text(key) == f"jax.random.key({seed})"
    assert eval(keys.text(jax.random.fold_in(key, 3)), {"jax": jax}) == jax.random.fold_in(key, 3)
