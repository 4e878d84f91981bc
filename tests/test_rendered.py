"""What notebooks and data frames show of losses and results: their own numbers, and texts that stay texts."""

import importlib
import pkgutil
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import jax
import numpy as np
import pytest

from jaxgen import algebraic, datasets, delve, loss, resample, stats
from jaxgen.stats import compare, estimate, interval
from jaxgen.types import Losses, Plan, rendered
from jaxgen.types.result import Finding

PLAN = resample.k_fold(jax.random.key(0), 20, 5, 2)
RANDOM = np.random.default_rng(0)
Y = RANDOM.normal(size=20)


def losses(name, value):
    predictions = np.full((10, 20), value) + 0.1 * RANDOM.normal(size=(10, 20))
    return Losses.from_predictions(Y, predictions, PLAN.train, PLAN.test, loss.squared, name, labels=PLAN.labels)


ONE, OTHER = losses("one", 0.0), losses("<b>two</b>", 0.3)
SHOWN = {
    "losses": lambda: ONE,
    "failed losses": lambda: replace(ONE, failure=np.ones(10, np.uint8)),
    "summary": lambda: estimate.summary(ONE),
    "interval": lambda: interval.recommend(ONE),
    "comparison": lambda: compare.recommend(ONE, OTHER),
    "pairs": lambda: compare.pairwise([ONE, OTHER, losses("three", 1.0)], compare.recommend),
}


class Tags(HTMLParser):
    """The tags that are open, and all texts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("name", SHOWN)
def test_notebooks_show_a_small_table(name):
    text = SHOWN[name]()._repr_html_()
    tags = Tags(text)
    assert tags.open == [], "every tag is closed"
    assert "<table>" in text
    assert "<b>" not in text
    assert len(text) < 5000


def test_a_table_has_the_numbers_of_the_result():
    found = compare.recommend(ONE, OTHER)
    texts = Tags(found._repr_html_()).texts
    for number in (found.estimate, found.lower, found.upper, found.p_value):
        assert f"{float(number):.5g}" in texts
    assert any("<b>two</b>" in text for text in texts), "as text"


def test_losses_are_headed_by_their_label():
    texts = Tags(ONE.labelled("line")._repr_html_()).texts
    assert texts[0] == "line"
    assert "one" in texts, "the learner's code"
    assert Tags(ONE._repr_html_()).texts[0] == "one"


def test_plans_and_data_are_one_line_and_a_small_table():
    assert repr(PLAN) == f"Plan({PLAN.scheme}: R=10, N=20, labels repeat, fold)"
    groups = resample.k_fold(jax.random.key(0), 20, 5, groups=np.arange(20) // 2)
    assert repr(groups).endswith("R=5, N=20, labels repeat, fold, cases by group)")
    assert repr(Plan(np.ones((3, 2, 4), np.uint8), np.ones((3, 2, 4), np.uint8), "mine")) == "Plan(mine: Q=3, R=2, N=4)"
    texts = Tags(PLAN._repr_html_()).texts
    assert texts[0] == PLAN.scheme
    assert texts[-6:] == ["rows", "10", "cases", "20", "labels of rows", "repeat, fold"]
    data = datasets.from_arrays(RANDOM.normal(size=(20, 2)), Y, target="<b>", names=["one", "two"])
    texts = Tags(data._repr_html_()).texts
    assert texts == ["<b>", "task", "regression", "cases", "20", "inputs", "2: one, two"]


def test_a_result_is_one_line_unless_it_is_printed():
    found = interval.recommend(ONE)
    assert repr(found) == (
        f"Result({found.method}, squared loss of one: {found.estimate:.5g} [{found.lower:.5g}, {found.upper:.5g}] "
        "at 95%)"
    )
    assert len(str(found).splitlines()) > 2
    assert "minus that of one: " in repr(compare.recommend(ONE, OTHER))
    assert repr(replace(found, lower=np.array(np.nan))).endswith(f": {found.estimate:.5g})")
    numbers = dict.fromkeys(("estimate", "standard_error", "df", "lower", "upper"), np.ones(3))
    several = replace(found, **numbers, parts={})
    assert repr(several).endswith(": 3 data sets or rows)")


def test_degrees_of_freedom_are_counted():
    found = interval.recommend(ONE)
    assert "1 degree of freedom" in str(replace(found, df=np.array(1.0)))
    assert "2 degrees of freedom" in str(replace(found, df=np.array(2.0)))


def test_long_tables_are_cut():
    text = rendered.table("many", ["n"], [[n] for n in range(50)])
    assert text.count("<tr>") == 1 + rendered.MOST_ROWS
    assert "30 more rows" in text


def test_losses_as_a_frame():
    failure = (np.arange(10) == 3).astype(np.uint8)
    frame = replace(ONE, failure=failure, reasons=("it did not converge",)).to_frame()
    assert list(frame.columns) == ["row", "g", "apparent", "repeat", "fold", "failed", "reason"]
    good = ~frame["failed"].to_numpy()
    np.testing.assert_array_equal(frame["g"][good], ONE.g[good])
    np.testing.assert_array_equal(frame["apparent"][good], ONE.apparent[good])
    assert frame.loc[3, ["g", "apparent"]].isna().all()
    assert frame["reason"].tolist() == ["it did not converge" if row == 3 else "" for row in range(10)]
    assert frame["fold"].tolist() == PLAN.labels["fold"].tolist()


def test_losses_of_several_sets_as_a_frame():
    rows = {"test_mean": np.stack([ONE.g, OTHER.g]), "train_mean": np.ones((2, 10))}
    both = replace(ONE, **rows, failure=np.zeros((2, 10), np.uint8), values=None, predictions=None)
    frame = both.to_frame()
    assert frame["set"].tolist() == [0] * 10 + [1] * 10
    np.testing.assert_array_equal(frame.loc[frame["set"] == 1, "g"], OTHER.g)


def test_without_xarray_there_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(
        ModuleNotFoundError, match=re.escape("for to_xarray, got none installed; pip install 'jaxgen[x")
    ):
        ONE.to_xarray()


def test_losses_as_an_xarray():
    pytest.importorskip("xarray", reason="an optional package")
    found = replace(ONE, predictions=np.zeros((10, 20, 1))).to_xarray()
    assert dict(found.sizes) == {"row": 10, "case": 20, "output": 1}
    np.testing.assert_array_equal(found["g"], ONE.g)
    np.testing.assert_array_equal(found["loss"].sel(row=3), ONE.values[3])
    np.testing.assert_array_equal(found["fold"], PLAN.labels["fold"])


def test_every_kind_of_result_has_a_frame():
    for package in (stats, algebraic, delve):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)

    def below(kind):
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    kinds = {each for each in below(Finding) if not each.__subclasses__()}
    assert len(kinds) > 10
    assert [each.__name__ for each in kinds if each.to_frame is Finding.to_frame] == []
    assert {each.__repr__ for each in below(Finding)} == {Finding.__repr__}
