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

from jaxgen import algebraic, delve, loss, resample, stats
from jaxgen.stats import compare, estimate, interval
from jaxgen.types import Losses, rendered
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
