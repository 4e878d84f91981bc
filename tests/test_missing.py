"""Missing inputs, dates and identifiers: each by a stated choice only, and imputation beside scikit-learn's."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from jaxgen import Data, algebraic, assess, datasets, learn, predict, resample
from jaxgen.engine.units import suited
from jaxgen.loss import about, squared

KEY = jax.random.key(0)
N = 60
LEVELS = ["x", "y", "z"]


def frame():
    """Two numbers and a category, of which a number and the category are missing in nine rows each."""
    random = np.random.default_rng(0)
    table = pd.DataFrame({"a": random.normal(size=N), "c": random.choice(LEVELS, N), "b": random.normal(size=N)})
    table["y"] = 2 * table["a"] + (table["c"] == "y") + 0.1 * random.normal(size=N)
    table.loc[random.choice(N, 9, replace=False), "a"] = np.nan
    table.loc[random.choice(N, 9, replace=False), "c"] = None
    return table


TABLE = frame()
KEPT = datasets.from_frame(TABLE, "y", missing="keep")
PLAN = resample.leave_out(KEY, N, 0.2, 6)


def test_what_is_missing_is_filled_in_as_by_scikit_learn_from_the_training_cases_of_the_row():
    losses = assess(KEY, learn.Imputed(learn.LeastSquares()), KEPT, PLAN, keep="predictions")
    levels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(categories=[LEVELS], drop="first"))
    filled = ColumnTransformer([("numbers", SimpleImputer(), ["a", "b"]), ("levels", levels, ["c"])])
    model = make_pipeline(filled, LinearRegression())
    for row, train in enumerate(PLAN.train > 0):
        want = model.fit(TABLE[train], TABLE["y"][train]).predict(TABLE)
        # least squares in double precision, twice: some hundred roundings
        np.testing.assert_allclose(losses.predictions[row, :, 0], want, atol=1e-12)


@pytest.mark.slow
def test_indicators_are_those_of_scikit_learn():
    numbers = datasets.from_frame(TABLE.drop(columns="c"), "y", missing="keep")
    losses = assess(KEY, learn.Imputed(learn.LeastSquares(), indicator=True), numbers, PLAN, keep="predictions")
    model = make_pipeline(SimpleImputer(add_indicator=True), LinearRegression())
    for row, train in enumerate(PLAN.train > 0):
        want = model.fit(numbers.x[train], numbers.y[train, 0]).predict(numbers.x)
        np.testing.assert_allclose(losses.predictions[row, :, 0], want, atol=1e-12)  # as above


def test_inputs_that_are_missing_together_share_an_indicator():
    x = np.random.default_rng(0).normal(size=(10, 4))
    x[2:4, :2], x[5, 3] = np.nan, np.nan
    data = datasets.from_arrays(x, x[:, 2] + 1.5 * np.arange(10), missing="keep")
    assert learn.Imputed(learn.LeastSquares(), indicator=True).for_data(data).marked == (0, 3)
    assert learn.Imputed(learn.LeastSquares()).for_data(data).marked == ()


def test_weights_count_in_what_is_filled_in():
    """A case of weight 2 is there twice, and one of weight 0 not at all."""
    learner = learn.Imputed(learn.LeastSquares()).for_data(KEPT)
    w = np.arange(N) % 3.0
    params = learner.enter(KEY, *map(jnp.asarray, (KEPT.x, KEPT.y, w))).own
    repeated = TABLE.loc[np.repeat(np.arange(N), w.astype(int))]
    fill = [repeated["a"].mean(), *(repeated["c"].mode()[0] == np.array(LEVELS[1:])), repeated["b"].mean()]
    np.testing.assert_allclose(params.fill, fill, rtol=1e-6)  # single precision


def test_an_input_that_no_training_case_knows_is_a_failure():
    x = np.random.default_rng(0).normal(size=(20, 2))
    x[:, 1] = np.where(np.arange(20) == 3, x[:, 1], np.nan)
    data = datasets.from_arrays(x, x[:, 0] + np.arange(20), missing="keep", constant="keep")
    losses = assess(KEY, learn.Imputed(learn.LeastSquares(ridge=1.0)), data, resample.leave_one_out(20))
    assert losses.failed.tolist() == [row == 3 for row in range(20)]
    assert losses.reasons[losses.failure.max() - 1].startswith("an input is missing in every one of its training cases")


def test_new_cases_may_lack_inputs():
    new = KEPT.x[:3].copy()
    new[0, 3] = np.nan
    predicted = predict(KEY, learn.Imputed(learn.LeastSquares()), KEPT, PLAN, new)
    assert np.isfinite(predicted.new).all()
    np.testing.assert_allclose(predicted.new[:, 1:], predicted.cases[:, 1:3], rtol=1e-12)
    with pytest.raises(ValueError, match=r"expected finite inputs of new cases, got nan in column 3 \('b'\)"):
        predict(KEY, learn.LeastSquares(), replace(KEPT, x=np.nan_to_num(KEPT.x), missing=False), PLAN, new)


REFUSING = {
    "assess": lambda learner: assess(KEY, learner, KEPT, PLAN),
    "full fit": lambda learner: algebraic.full_fit(KEY, learner, KEPT),
    "check": lambda learner: learn.check(learn.Imputed(learner), replace(KEPT, missing=False)),
}


@pytest.mark.parametrize("name", REFUSING)
def test_learners_that_do_not_accept_missing_inputs_refuse_them(name):
    words = "expected finite numbers, got nan" if name == "check" else "expected a learner that accepts missing inputs"
    with pytest.raises(ValueError, match=words):
        REFUSING[name](learn.LeastSquares())


def test_who_accepts_missing_inputs():
    inside = learn.Imputed(learn.LeastSquares())
    tuned = learn.Tuned(inside, {"base.ridge": (0.1, 1.0)}, by=3)
    assert [each.accepts_missing for each in (inside, learn.Mean(), learn.Ensemble(inside), tuned)] == [True] * 4
    others = (learn.LeastSquares(), learn.Normalised(inside), learn.Ensemble(learn.LeastSquares()))
    assert [each.accepts_missing for each in others] == [False] * 3
    assert learn.from_text("Imputed(LeastSquares(ridge=2.0), indicator=True)") == learn.Imputed(
        learn.LeastSquares(ridge=2.0), True
    )


def test_units_are_those_of_what_is_known():
    """A column far from 0 is moved by the median of its known values, whatever is missing."""
    x = 1e6 + np.random.default_rng(0).normal(size=(41, 1))
    data = Data(x, np.arange(41.0)[:, None], ("far",))
    gaps = replace(data, x=np.where(np.arange(41)[:, None] < 4, np.nan, x), missing=True)
    learner = learn.Imputed(learn.Normalised(learn.LeastSquares()))
    both = (gaps, replace(data, x=x[4:], y=data.y[4:]))
    units, known = (suited(each, learner, about(squared), "float32") for each in both)
    assert (units.x_shift, units.x_scale) == (known.x_shift, known.x_scale)
    np.testing.assert_array_equal(units.x[4:], known.x)
    assert np.isnan(units.x[:4]).all()


def test_rows_that_lack_a_value_are_dropped():
    whole = TABLE.dropna()
    dropped = datasets.from_frame(TABLE, "y", missing="drop")
    want = datasets.from_frame(whole, "y")
    np.testing.assert_array_equal(dropped.x, want.x)
    np.testing.assert_array_equal(dropped.y, want.y)
    assert not dropped.missing
    x = np.where(np.arange(12)[:, None] == 3, np.nan, np.arange(24.0).reshape(12, 2) ** 2)
    assert datasets.from_arrays(x, np.arange(12.5, 24), missing="drop").n == 11


def test_missing_levels_are_missing_in_every_column_of_the_category():
    assert KEPT.names == ("a", "c=y", "c=z", "b")
    assert KEPT.categories == ((1, 2),)
    np.testing.assert_array_equal(np.isnan(KEPT.x[:, 1:3]).all(1), TABLE["c"].isna())
    assert KEPT.select(["b", "c=z", "c=y"]).categories == ((2, 1),)
    assert KEPT.select(["b", "c=z"]).categories == ()
    assert "18 missing inputs" not in repr(KEPT)
    assert "27 missing inputs" in repr(KEPT)


def test_a_csv_file_with_gaps(tmp_path):
    TABLE.to_csv(tmp_path / "gaps.csv", index=False)
    kept = datasets.read_csv(tmp_path / "gaps.csv", "y", missing="keep")
    np.testing.assert_allclose(kept.x, KEPT.x, rtol=1e-14)  # pandas before 3.1 drops digits after leading zeros


DAYS = pd.Series(pd.date_range("2020-01-31", periods=N, freq="D"))
DATES = {
    "dates": DAYS,
    "with a time zone": DAYS.dt.tz_localize("Europe/Berlin").dt.tz_convert("UTC"),
    "texts": DAYS.dt.strftime("%Y-%m-%d"),
    "month first": DAYS.dt.strftime("%m/%d/%Y"),
    "day first": DAYS.dt.strftime("%d/%m/%Y"),
    "with dots": DAYS.dt.strftime("%d.%m.%Y"),
    "names of months": DAYS.dt.strftime("%d %b %Y"),
    "objects": pd.Series(list(DAYS.dt.date), dtype=object),
    "durations": pd.Series(pd.to_timedelta(np.arange(N), unit="D")),
    "periods": pd.Series(pd.period_range("2020-01-31", periods=N, freq="D")),
}


@pytest.mark.parametrize("kind", DATES)
def test_dates_become_days_by_a_stated_choice(kind):
    table = TABLE.assign(d=DATES[kind], a=0.5 * np.arange(N), c="x")[["a", "b", "d", "y"]]
    days = datasets.from_frame(table, "y", dates="days")
    hour = 1.01 / 24 if kind == "with a time zone" else 1e-12  # summer time begins on the way
    np.testing.assert_allclose(days.x[:, 2], np.arange(N), atol=hour)
    assert datasets.from_frame(table, "y", dates="drop").names == ("a", "b")
    with pytest.raises(ValueError, match="got dates in column 'd'; say dates='days' or dates='drop' .*, or convert"):
        datasets.from_frame(table, "y")


REFUSED = {
    "a day or a month": (
        {"d": ["01/02/2020", "03/04/2020"] * 30},
        {"dates": "days"},
        "whose day and month can be told apart, got '01/02/2020' and others like it in column 'd'; write them as",
    ),
    "times of the day": (
        {"d": ["10:30", "11:45"] * 30},
        {"dates": "days"},
        "expected dates such as 2020-01-31 in column 'd', got ",
    ),
    "one that is none": (
        {"d": ["2020-01-31"] * 59 + ["soon"]},
        {"dates": "days"},
        "expected dates such as 2020-01-31 in column 'd', got 'soon'; correct them",
    ),
    "an unknown choice": ({}, {"dates": "month"}, "expected dates to be one of 'error', 'days', 'drop', got 'month'"),
    "another unknown choice": ({}, {"missing": "impute"}, "missing to be one of 'error', 'drop', 'keep', got 'impute'"),
    "gaps": ({}, {}, r"no missing value, got 9 in column 'a', the first in row \d+ \(also in c\); fill in"),
    "gaps in the target": (
        {"y": np.where(np.arange(N) == 7, np.nan, np.arange(N))},
        {"missing": "keep"},
        "expected no missing value, got 1 in column 'y', the first in row 7; fill in or leave out these rows first, or "
        "say missing='drop'$",
    ),
    "nothing but gaps": ({"e": np.nan}, {"missing": "keep"}, "expected columns with values, got none in e; leave"),
    "gaps in every row": ({"e": np.nan}, {"missing": "drop"}, "two rows that lack no value, got 0; leave out columns"),
    "identifiers": (
        {"name": [f"name {i}" for i in range(N)], "ticket": [f"t{i}" for i in range(N)]},
        {"missing": "keep"},
        r"expected a few levels, got 60 different texts in the 60 rows of column 'name', the first 'name 0' \(also 60 "
        r"in 'ticket'\); leave an identifier out with frame.drop\(columns=\['name', 'ticket'\]\) \(on the command line "
        r"--drop name --drop ticket\), join rare levels",
    ),
    "imputation": ({}, {"missing": "impute"}, r"say missing='keep' and train learn.Imputed\(learner\), which fills"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_choice_is_one_sentence(case):
    columns, options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        datasets.from_frame(TABLE.assign(**columns), "y", **options)


def test_more_than_fifty_levels_are_no_category_in_many_rows_either():
    table = pd.DataFrame({"word": [f"w{i % 51}" for i in range(1000)], "y": np.random.default_rng(0).normal(size=1000)})
    with pytest.raises(ValueError, match="got 51 different texts in the 1000 rows"):
        datasets.from_frame(table, "y")
    assert datasets.from_frame(table[table["word"] != "w50"], "y").d == 49


def test_arrays_with_gaps_are_refused_with_their_place():
    x = np.arange(24.0).reshape(2, 6, 2) ** 2
    x[0, 3, 1] = np.nan
    with pytest.raises(ValueError, match="expected one data set to leave cases out of, got 2, which would differ"):
        datasets.from_arrays(x, x[..., 0] + 1, missing="drop")
    assert datasets.from_arrays(x, x[..., 0] + 1, missing="keep").missing
    x[:, :, 1] = np.nan
    with pytest.raises(ValueError, match="expected inputs that are known in some case, got none in column 'x1'; leave"):
        datasets.from_arrays(x, x[..., 0] + 1, missing="keep")
    with pytest.raises(ValueError, match="expected finite numbers, got nan in x, column 1"):
        datasets.from_arrays(x, x[..., 0] + 1)
