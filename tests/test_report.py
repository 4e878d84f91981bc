"""Tables as text and pages: that their numbers are those of `jaxgen.stats`."""

import dataclasses
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import ClassVar

import jax
import numpy as np
import pytest
from hostile import STRANGERS, refused
from sklearn.metrics import roc_auc_score
from statsmodels.stats.multitest import multipletests

from jaxgen import Data, learn, loss, report, resample
from jaxgen.report.document import as_html
from jaxgen.report.words import DEFAULTS, defaults_in_words, methods
from jaxgen.stats import compare, estimate, interval
from jaxgen.types import Losses

KEY = jax.random.key(0)
PLAN = resample.leave_out(KEY, 20, 0.25, 30)


def losses(learner, seed, plan=PLAN, **others):
    g = np.random.default_rng(seed).gamma(3.0, size=plan.resamples)
    return Losses(
        g, g / 3, plan, learner, "squared", np.zeros(plan.resamples, np.uint8), ("it did not converge",), **others
    )


MEAN, LINE, RIDGE = losses("Mean()", 0), losses("LeastSquares()", 1), losses("LeastSquares(ridge=1.0)", 2)


def test_a_row_of_the_table_is_the_summary_of_its_learner():
    table = report.summaries([MEAN, LINE])
    names = {"mean": "avr", "trimmed_mean": "tavr", "median": "med", "standard_deviation": "std"}
    names |= {"median_deviation": "mad", "interquartile_range": "iqr"}
    assert set(table.columns) == {*names, "monte_carlo_error", "apparent"}
    assert list(table.index) == ["Mean()", "LeastSquares()"]
    for one in (MEAN, LINE):
        summary = estimate.summary(one)
        row = table.loc[one.learner]
        for name, short in names.items():
            assert row[name] == getattr(summary.raw, short)
        assert row["monte_carlo_error"] == summary.monte_carlo_error
        assert row["apparent"] == one.apparent.mean()


def test_one_learner_seen_twice_has_two_rows():
    """Such as the same learner on two selections of inputs, whose texts are equal."""
    again = losses("Mean()", 5)
    table = report.summaries([MEAN, again])
    assert list(table.index) == ["Mean()", "Mean()"]
    assert table["mean"].tolist() == [MEAN.g.mean(), again.g.mean()]


def test_all_pairs_of_learners_are_compared():
    found = report.comparisons([MEAN, LINE, RIDGE])
    pairs = [(MEAN, LINE), (MEAN, RIDGE), (LINE, RIDGE)]
    assert [(one.first, one.second) for one in found] == [(one.learner, other.learner) for one, other in pairs]
    assert [float(one.p_value) for one in found] == [float(compare.corrected_t(*pair).p_value) for pair in pairs]
    assert report.comparisons([MEAN]) == []


def test_every_learner_has_the_interval_that_suits_the_plan():
    found = report.intervals([MEAN, LINE])
    assert [(float(one.lower), float(one.upper)) for one in found] == [
        (float(want.lower), float(want.upper)) for want in map(interval.corrected_t, (MEAN, LINE))
    ]


def test_the_page_says_why_there_is_no_interval():
    plan = resample.time_blocks(20, 4)
    page = report.page([losses("Mean()", 0, plan)])
    assert "no interval: expected a plan that an interval for R is made for, got resample.time_blocks" in page


def test_the_page_says_what_was_run_and_found():
    page = report.page([MEAN, LINE])
    assert page.startswith(f"30 resamplings, {PLAN.scheme}\n")
    for part in (
        "squared loss",
        "standard error of the mean from having drawn these splits only",
        "Mean()",
        "LeastSquares()",
        f"{MEAN.g.mean():.5g}",
        *(f"  {one.learner}: {one.lines()[0]}" for one in report.intervals([MEAN, LINE])),
        str(compare.recommend(MEAN, LINE)),
    ):
        assert part in page
    assert "no comparison" not in page
    assert "resamplings left out" not in page


def test_the_page_of_one_learner_compares_nothing():
    assert "t-test" not in report.page([MEAN])


def test_the_page_says_why_there_is_no_comparison():
    plan = resample.bootstrap(KEY, 20, 30)
    assert "no comparison: expected a plan that a test is made for, got resample.bootstrap" in report.page(
        [losses("Mean()", 0, plan), losses("LeastSquares()", 1, plan)]
    )


def test_the_page_says_how_many_rows_were_left_out():
    page = report.page([MEAN, losses("LeastSquares()", 1, dropped=3)])
    assert "3 resamplings left out, in which a training failed" in page


def test_failed_rows_are_refused():
    failed = losses("Mean()", 0)
    failed.failure[3] = 1
    with pytest.raises(ValueError, match="got 1 failed of 30"):
        report.page([failed])


def test_losses_without_training_predictions_have_no_apparent_loss():
    lacking = replace(losses("Mean()", 0), train_mean=np.full(30, np.nan))
    assert np.isnan(report.summaries([lacking, LINE])["apparent"]).tolist() == [True, False]
    assert "NaN" in report.page([lacking])


SETS = replace(MEAN, test_mean=np.ones((2, 30)), train_mean=np.ones((2, 30)), failure=np.zeros((2, 30), np.uint8))
OTHER_PLAN = losses("Mean()", 0, resample.leave_out(jax.random.key(1), 20, 0.25, 30))
FUNCTIONS = (report.page, report.summaries, report.intervals, report.comparisons, report.views)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_what_is_no_list_of_losses_is_refused(function, own_messages):
    for stranger in [*STRANGERS.values(), MEAN, [None], [MEAN, 3], {"a": 3}]:
        refused(lambda stranger=stranger: function(stranger), TypeError)
    assert "expected at least 1 learners, got 0" in refused(lambda: function([]), ValueError)


@pytest.mark.parametrize("function", [report.page, report.summaries])
def test_several_data_sets_have_no_page(function):
    assert "one data set, got those of 2 of Mean(); choose one with losses[q]" in refused(lambda: function([SETS]))


def test_a_page_is_of_one_plan_and_one_loss():
    assert "learners on one plan with one loss, got squared on" in refused(lambda: report.page([MEAN, OTHER_PLAN]))
    assert "and absolute on" in refused(lambda: report.page([MEAN, replace(LINE, loss="absolute")]))


# Views, tables of comparisons, and the page

N = 60
CLASSES = np.arange(N) % 3 == 0
TARGETS = np.stack([~CLASSES, CLASSES], axis=1).astype(float)
SCORES = np.random.default_rng(0).normal(size=N) + CLASSES
SPLITS = resample.leave_out(KEY, N, 0.2, 20, strata=CLASSES)
DATA = Data(SCORES[:, None], TARGETS, ("x",), "<kind>", "classification", ("no", "yes"))


def classifier(name, slope):
    """Probabilities that grow with the score, each row with some noise."""
    noise = 0.3 * np.random.default_rng(1).normal(size=(20, N))
    high = 1 / (1 + np.exp(-slope * (SCORES + noise - 0.5)))
    predictions = np.stack([1 - high, high], axis=-1)
    made = Losses.from_predictions(TARGETS, predictions, SPLITS.train, SPLITS.test, loss.zero_one, name)
    return replace(made, plan=SPLITS)


GOOD, FLAT = classifier("good", 2.0), classifier("<flat>", 0.1)


def test_classes_are_judged_by_error_rate_log_loss_and_area():
    found = report.views([GOOD, FLAT], DATA)
    assert [view.title for view in found] == ["error rate", "log loss", "AUC"]
    for view, other in zip(found, (loss.zero_one, loss.cross_entropy), strict=False):
        want = [np.mean(one.with_loss(other, TARGETS).g) for one in (GOOD, FLAT)]
        np.testing.assert_allclose(view.summaries["mean"], want, rtol=1e-12)
    rows = [roc_auc_score(CLASSES[test], GOOD.predictions[row][test, 1]) for row, test in enumerate(GOOD.test > 0)]
    assert float(found[2].intervals[0].estimate) == pytest.approx(np.mean(rows), rel=1e-12)
    assert report.views([GOOD, FLAT])[0].title == "error rate", "without the data only the loss that was counted"
    assert len(report.views([GOOD, FLAT])) == 1


def test_the_better_learner_has_the_larger_area_and_the_smaller_error():
    worse = replace(GOOD, predictions=GOOD.predictions[..., ::-1].copy(), learner="turned")
    worse = replace(worse.with_loss(loss.zero_one, TARGETS), predictions=worse.predictions)
    for first, second in ((GOOD, worse), (worse, GOOD)):
        assert [view.table["better"].tolist() for view in report.views([first, second], DATA)] == [["good"]] * 3


def test_learners_that_predict_scores_have_no_log_loss():
    scores = replace(GOOD, predictions=2 * np.asarray(GOOD.predictions))
    (_, view, areas) = report.views([FLAT, scores], DATA)
    assert view.learners == ["<flat>"]
    assert view.troubles == ["no log loss of learners that do not predict probabilities: good"]
    assert areas.title == "AUC"


def test_adjusted_p_values_are_those_of_holm():
    found = report.comparisons([MEAN, LINE, RIDGE])
    table = report.comparison_table(found)
    want = multipletests([float(one.p_value) for one in found], method="holm")[1]
    np.testing.assert_allclose(table["adjusted"], want, rtol=1e-12)
    np.testing.assert_array_equal(table["difference"], [float(one.estimate) for one in found])
    assert report.comparison_table([]).empty


def test_the_page_of_three_learners_is_a_table_of_all_pairs():
    page = report.page([MEAN, LINE, RIDGE])
    assert "all pairs by the corrected resampled t-test (Nadeau & Bengio 2003), p-values adjusted by Holm 1979" in page
    assert page.count("not told apart") == 3
    better = report.page([MEAN, replace(LINE, test_mean=LINE.test_mean + 50), replace(RIDGE, test_mean=RIDGE.g + 50)])
    assert better.count("< 0.001") >= 2


class Parsed(HTMLParser):
    """What a page of HTML loads, the texts of its images, and whether every tag is closed."""

    EMPTY: ClassVar[set[str]] = {"meta", "img", "link", "br", "wbr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.loaded, self.alts, self.tags = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.tags.append(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "href", "data", "action")]
        if tag == "img":
            self.alts.append(named["alt"])
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    remarks, config = ["few <splits>"], 'target = "<kind>"\n'
    done = report.html(
        [GOOD, FLAT], path, data=DATA, seeds=(3, 4), command="run & again", config=config, remarks=remarks
    )
    assert done == path
    assert report.html([GOOD], path) == path, "a page that it wrote is replaced"
    report.html([GOOD, FLAT], path, data=DATA, seeds=(3, 4), command="run & again", config=config, remarks=remarks)
    return path


def test_the_page_of_html_holds_all_that_it_shows(page):
    parsed = Parsed(page.read_text())
    assert parsed.open == []
    assert [name[:10] for name in parsed.loaded] == ["data:image"] * 3, "no network and no other file"
    assert "script" not in parsed.tags
    assert all(len(alt) > 40 for alt in parsed.alts)
    assert page.stat().st_size < 10**6


def test_the_page_of_html_says_what_was_done(page):
    text = page.read_text()
    for part in (
        '<html lang="en">',
        "&lt;flat&gt;",
        "few &lt;splits&gt;",
        "target = &#34;&lt;kind&gt;&#34;",
        "20 random training sets of 48 cases, stratified by class, and tested on 12 cases left out",
        "The seed of the splits was 3, that of the training 4.",
        "Nadeau, C. &amp; Bengio, Y. (2003). Inference for the generalization error.",
        "Wilson, E. B. (1927)",
        "corrected score interval",
        f"{GOOD.g.mean():.5g}",
    ):
        assert part in text
    assert "<flat>" not in text


PLANS = {
    "folds": (
        lambda: resample.k_fold(KEY, N, 5, 2),
        "by 5-fold cross-validation, repeated 2 times with new folds: on 48",
    ),
    "bootstrap": (lambda: resample.bootstrap(KEY, N, 20), "20 bootstrap samples of the cases, and tested on those"),
    "nested": (lambda: resample.nested_pairs(KEY, N, 4), r"nested cross-validation \(10 trainings\)"),
    "splits": (lambda: resample.leave_out(KEY, N, 0.25, 20), "20 random training sets of 45 cases, and tested on 15"),
}


@pytest.mark.parametrize("name", PLANS)
def test_methods_say_what_the_weights_show(name):
    make, said = PLANS[name]
    assert re.search(said, methods(report.views([losses("Mean()", 0, make())])))


def test_methods_name_the_defaults_that_the_code_leaves_out():
    said = defaults_in_words(["Normalised(base=Descent())", "Mean()", "lambda x: x [code 1f0c9a72]", "my net", "f()()"])
    assert "Descent has 1000 steps, a rate of 0.1 and the squared error as objective" in said
    assert "MLP has a layer of 20 hidden units and tanh as activation" in said
    other = defaults_in_words(["Descent(network=MLP(hidden=(5,)), steps=50, optimiser=Optax('adam'))"])
    assert other == "Descent has the squared error as objective; MLP has tanh as activation"
    assert defaults_in_words(["Mean()", "LeastSquares(ridge=2.0)"]) == ""
    assert "Descent has 1000 steps" in methods(report.views([losses("Descent()", 0)]))


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_defaults_in_words_are_those_of_the_learners(name):
    fields = {field.name: field.default for field in dataclasses.fields(getattr(learn, name))}
    for field, words in DEFAULTS[name].items():
        value = fields[field][0] if isinstance(fields[field], tuple) else fields[field]
        text = f"{value:g}" if isinstance(value, float) else str(value)
        assert text in re.split(r"[ ()]", words)
    if name in ("Descent", "Conjugate"):
        assert fields["network"] == learn.MLP()


def test_a_name_is_broken_after_brackets_and_commas_only():
    page = as_html([losses("Normalised(base=Logistic(ridge=1.0), how='none')", 0), MEAN])
    assert '<td class="name">Normalised(<wbr>base=Logistic(<wbr>ridge=1.0),<wbr> how=&#39;none&#39;)</td>' in page
    assert page.count("95 % interval</th>") == 2


def test_equal_areas_have_no_interval_and_their_note_says_nothing_of_tests():
    areas = report.views([GOOD, classifier("equal", 0.0)], DATA)[-1]
    assert areas.title == "AUC"
    assert areas.intervals[1].note == "all values are equal, which is no certainty: no interval can be given"
    assert areas.table["p_value"].item() < 0.05


def test_of_three_classes_there_is_an_area_for_the_positive_one_only():
    random = np.random.default_rng(0)
    labels = np.arange(N) % 3
    targets = np.eye(3)[labels]
    data = Data(SCORES[:, None], targets, ("x",), "kind", "classification", ("a", "b", "c"))
    predicted = (random.dirichlet(np.ones(3), size=(20, N)) + 0.5 * targets) / 1.5
    made = Losses.from_predictions(targets, predicted, SPLITS.train, SPLITS.test, loss.zero_one, "three")
    made = replace(made, plan=SPLITS)
    assert "no AUC of 3 classes; name the one to find among them with positive=, or --positive" in (
        report.views([made], data)[-1].troubles
    )
    areas = report.views([made], data, positive="b")[-1]
    assert areas.troubles == ["AUC of b against all other classes"]
    want = [roc_auc_score(labels[test] == 1, predicted[r][test, 1]) for r, test in enumerate(made.test > 0)]
    assert float(areas.intervals[0].estimate) == pytest.approx(np.mean(want))


def test_a_file_of_somebody_else_is_not_replaced(tmp_path, own_messages):
    other = tmp_path / "thesis.html"
    other.write_text("my thesis")
    assert "got " in refused(lambda: report.html([MEAN], other), FileExistsError)
    assert other.read_text() == "my thesis"
    assert "whose folder is not there" in refused(lambda: report.html([MEAN], tmp_path / "no" / "a.html"), OSError)
    refused(lambda: report.html([MEAN], 3), TypeError)
    refused(lambda: report.html([MEAN], tmp_path / "a.html", title=3), ValueError)
    refused(lambda: report.html([MEAN], tmp_path / "a.html", data=3), TypeError)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.html"]
