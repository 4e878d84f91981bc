"""Several learners in one call, the labels that they are called by, and losses by their names."""

import re
from dataclasses import replace

import jax
import numpy as np
import pytest
from given import made

import jaxgen as jg
from jaxgen import datasets, learn, loss, report, resample, store
from jaxgen.stats import compare, estimate, interval
from jaxgen.types.identity import named

X = np.random.default_rng(0).normal(size=(24, 2))
NUMBERS = datasets.from_arrays(X, X @ [1.0, -1.0] + np.random.default_rng(1).normal(size=24))
CLASSES = datasets.from_arrays(X, np.where(X[:, 0] > 0, "yes", "no"))
PLAN = resample.leave_out(jax.random.key(0), 24, 0.25, 12)
TWO = {"line": learn.LeastSquares(), "mean": learn.Mean()}


def run(learner=TWO, data=NUMBERS, loss=None, **options):
    return jg.assess(jax.random.key(1), learner, data, PLAN, loss, **options)


def test_a_mapping_of_learners_gives_labelled_losses_on_one_plan_with_one_key():
    both = run()
    assert list(both) == ["line", "mean"]
    alone = run(learn.LeastSquares())
    assert np.array_equal(both["line"].g, alone.g)
    assert (both["line"].label, both["line"].name, both["line"].learner) == ("line", "line", "LeastSquares()")
    assert both["line"].plan is both["mean"].plan
    assert (alone.label, alone.name) == ("", "LeastSquares()")


def test_a_list_of_learners_gives_a_list():
    first, second = run([learn.LeastSquares(), learn.Mean()])
    assert (first.name, second.name) == ("LeastSquares()", "Mean()")
    assert np.array_equal(second.g, run(TWO)["mean"].g)


def test_each_of_several_learners_has_a_folder_in_the_store(tmp_path, capsys):
    both = run(store=tmp_path / "runs", progress=True)
    for label in TWO:
        kept = store.open(tmp_path / "runs" / label)
        assert kept.losses().label == label
        assert label in repr(kept)
        assert np.array_equal(kept.losses().g, both[label].g)
    numbered = run(list(TWO.values()), store=tmp_path / "numbered")
    assert np.array_equal(store.open(tmp_path / "numbered" / "1").losses().g, numbered[1].g)
    with pytest.raises(ValueError, match="which holds the run of one; choose another"):
        run(store=tmp_path / "runs" / "line")


@pytest.mark.parametrize(
    ("learners", "options", "message"),
    [
        ({}, {}, "expected at least one learner, got none"),
        ([], {}, "expected at least one learner, got none"),
        ({"": learn.Mean()}, {}, "expected a label for each learner as a text on one line, got ''"),
        ({1: learn.Mean()}, {}, "expected a label for each learner as a text on one line, got 1"),
        ({"a\nb": learn.Mean()}, {}, "as a text on one line"),
        ({"a/b": learn.Mean()}, {"store": "s"}, "names of folders in the store, got 'a/b'"),
        ({"..": learn.Mean()}, {"store": "s"}, "names of folders in the store, got '..'"),
        ({"a": learn.Mean(), "A": learn.Mean()}, {"store": "s"}, "differ in more than large and small letters"),
        (TWO, {"standard_error": 0.1}, "one learner to stop at a standard error, got 2"),
        ({"a": learn.Mean(), "b": "ridge"}, {}, "expected a learner"),
        ({"a": learn.Mean(), "b": None}, {}, "expected a learner"),
        ([learn.Mean(), learn.Logistic(ridge=0.0)], {}, "zeros and ones"),
    ],
)
def test_several_learners_are_refused_with_one_sentence_before_any_is_trained(learners, options, message, monkeypatch):
    monkeypatch.setattr("jaxgen.engine.assessment._run", lambda *_: pytest.fail("trained"))
    with pytest.raises((ValueError, TypeError), match=message):
        run(learners, **options)


def test_a_label_stays_with_the_losses(tmp_path):
    of_sets = replace(made(np.random.default_rng(0).random((3, 12, 24)), PLAN), label="net")
    failed = replace(of_sets[0], failure=np.array([1, *[0] * 11], np.uint8))
    assert [each.label for each in of_sets] == ["net"] * 3
    assert failed.without_failed().label == "net"
    assert store.load(store.save(of_sets, tmp_path / "net.npz")).label == "net"
    assert of_sets.labelled("").name == "a"
    kept = run(learn.Mean(), keep="predictions").labelled("net")
    assert kept.with_loss("absolute", NUMBERS.y).label == "net"
    assert kept.key == "jax.random.key(1)"


def test_a_label_is_one_line_of_text(own_messages):
    of_sets = made(np.zeros((12, 24)), PLAN)
    for wrong in (None, 3, "two\nlines", " a"):
        with pytest.raises(ValueError, match="expected a label as a text on one line"):
            of_sets.labelled(wrong)


def test_a_label_stands_for_the_code_in_all_that_is_printed():
    line, net = (made(np.random.default_rng(q).random((12, 24)), PLAN, "LeastSquares()") for q in (0, 1))
    line, net = line.labelled("line"), net.labelled("net")
    texts = [
        repr(line),
        str(interval.corrected_t(line)),
        str(compare.corrected_t(line, net)),
        str(estimate.summary(line)),
        str(report.summaries([line, net])),
        str(compare.pairwise([line, net], compare.corrected_t)),
    ]
    assert all("line" in text and "LeastSquares" not in text for text in texts)
    assert interval.corrected_t(line).learner == "line"
    assert (compare.corrected_t(line, net).first, compare.corrected_t(line, net).second) == ("line", "net")


def test_the_loss_follows_from_the_task_of_the_data():
    assert run(learn.Mean()).loss == "squared"
    counted = run(learn.Mean(), CLASSES)
    assert counted.loss == "zero_one"
    assert np.isin(counted.values, (0, 1)).all()


@pytest.mark.parametrize("name", loss.NAMES)
def test_losses_are_known_by_their_names(name):
    assert loss.by_name(name) is getattr(loss, name)
    assert named(loss.by_name(name)) == name
    assert loss.by_name(getattr(loss, name)) is getattr(loss, name)


def test_every_public_loss_has_a_name_or_needs_a_level():
    described = {name for name, value in vars(loss).items() if hasattr(value, "about") and not name.startswith("_")}
    assert described - {"Missed", "IntervalWidth"} == set(loss.NAMES)


def test_names_of_losses_do_where_losses_are_taken():
    assert np.array_equal(run(learn.Mean(), loss="absolute").g, run(learn.Mean(), loss=loss.absolute).g)
    made_elsewhere = jg.Losses.from_predictions(X[:, 0], np.zeros(24), np.eye(2, 24), np.eye(2, 24)[::-1], "squared")
    assert made_elsewhere.loss == "squared"
    assert learn.EarlyStopped(learn.Descent(), loss="zero-one") == learn.EarlyStopped(
        learn.Descent(), loss=loss.zero_one
    )
    assert learn.Tuned(learn.LeastSquares(), {"ridge": (0.1, 1.0)}, loss="absolute").loss is loss.absolute


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("zeroone", "got 'zeroone'; did you mean 'zero_one'"),
        ("crossentropy", "did you mean 'cross_entropy'"),
        ("square", "did you mean 'squared'"),
        ("Missed", "got 'Missed', which needs a level; give loss.Missed"),
        ("xyz", "expected the name of a loss, one of 'squared', .*, got 'xyz'; or give a function"),
    ],
)
def test_a_misspelt_loss_gets_the_nearest_name(name, message):
    for call in (
        lambda: loss.by_name(name),
        lambda: run(learn.Mean(), loss=name),
        lambda: jg.Losses.from_predictions(X[:, 0], np.zeros(24), np.eye(2, 24), np.eye(2, 24)[::-1], name),
        lambda: learn.EarlyStopped(learn.Descent(), loss=name),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def message_of(call):
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda both: jg.assess(learn.Mean(), NUMBERS, PLAN),
            "expected a random key first, got Mean(); call assess(jax.random.key(1), learner, data, plan)",
        ),
        (lambda both: jg.assess(jax.random.key(1), learn.Mean(), NUMBERS), "missing 1 required .*'plan'"),
        (lambda both: jg.assess(), "missing 4 required"),
        (
            lambda both: compare.recommend(both),
            "expected the losses of one learner, got a dict of 2; take one, such as losses['line'], and a second one; "
            "or compare all pairs with compare.pairwise(losses)",
        ),
        (lambda both: compare.recommend(both["line"]), "missing 1 required .*'second'"),
        (
            lambda both: compare.corrected_t(both),
            "and a second one; or compare all pairs with compare.pairwise(losses)",
        ),
        (lambda both: compare.wilcoxon(list(both.values())), "take one, such as losses[0], and a second one"),
        (lambda both: resample.k_fold(24), "expected a random key first, got 24; call k_fold(jax.random.key(1), n)"),
        (
            lambda both: interval.recommend(both),
            "expected the losses of one learner, got a dict of 2; take one, such as losses['line']",
        ),
        (
            lambda both: interval.corrected_t(list(both.values())),
            "expected the losses of one learner, got a list of 2; take one, such as losses[0]",
        ),
        (
            lambda both: interval.recommend({}),
            "expected losses, as assess and Losses.from_predictions give them, got {}",
        ),
    ],
)
def test_what_was_forgotten_is_named(call, sentence, own_messages):
    both = {"line": made(np.ones((12, 24)), PLAN, "a"), "mean": made(np.ones((12, 24)), PLAN, "b")}
    pattern = sentence if ".*" in sentence else re.escape(sentence)
    assert re.search(pattern, message_of(lambda: call(both)))


def test_all_pairs_are_compared_by_the_test_that_suits_the_plan():
    random = np.random.default_rng(0)
    three = {name: made(random.gamma(2.0, size=(12, 24)), PLAN, name) for name in "abc"}
    found, named_so = compare.pairwise(three), compare.pairwise(three, compare.recommend)
    assert found.method == named_so.method
    np.testing.assert_array_equal(found.adjusted, named_so.adjusted)
    assert "1 pair of 2 learners" in str(compare.pairwise([three["a"], three["b"]]))
