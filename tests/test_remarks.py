"""Remarks on an analysis: each code where it belongs and not where it does not, with its section of the page."""

import re
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from given import made, without_values

import jaxgen as jg
from jaxgen import Losses, datasets, resample
from jaxgen.stats import compare, interval, metrics
from jaxgen.stats.remarks import CODES, PAGE, Remarks

KEY, N = jax.random.key(2), 40
RANDOM = np.random.default_rng(0)
PAGES = Path(__file__).parents[1]


def losses(plan, seed=0, values=None, learner="a"):
    values = np.random.default_rng(seed).gamma(2.0, size=plan.train.shape) if values is None else values
    return made(values, plan, learner)


SPLITS = resample.leave_out(KEY, N, 0.1, 60)
GOOD = losses(SPLITS)
OTHER = losses(SPLITS, 1, learner="b")
ONE_SPLIT = resample.leave_out(KEY, N, 0.1, 1)
FOLDS = resample.k_fold(KEY, N, 10, repeats=10)
STRATIFIED = resample.leave_out(KEY, N, 0.1, 60, strata=np.arange(N) % 2)
SERIES = resample.time_blocks(N, 5, past_only=True)
GROUPS = np.arange(N) // 4


def weights(train, test, **more):
    return resample.from_weights(np.asarray(train), np.asarray(test), **more)


def repeated_split(times):
    return weights(np.repeat(ONE_SPLIT.train, times, 0), np.repeat(ONE_SPLIT.test, times, 0))


def failing(which, how=1):
    failure = np.zeros(60, np.uint8)
    failure[which] = how
    return replace(GOOD, failure=failure)


def outlying():
    values = GOOD.values.copy()
    values[7] *= 1000
    return losses(SPLITS, values=values)


def right_in(rows):
    """The accuracy of guesses, but for some rows that are right in all 4 test cases."""
    y = np.stack([np.arange(N) % 2 == 0, np.arange(N) % 2 == 1], axis=-1)
    scores = np.random.default_rng(0).random(SPLITS.train.shape)
    scores[:rows] = y[:, 1]
    both = np.stack([1 - scores, scores], axis=-1)
    guesses = Losses.from_predictions(y.astype(float), both, SPLITS.train, SPLITS.test, "zero_one", "guess")
    return metrics.of_rows(guesses, y.astype(float), metrics.accuracy)


def impossible(loss):
    """Cross entropies in which case 5 has such a loss in every row, and its training rows do not matter."""
    values = np.full(SPLITS.train.shape, 0.5)
    values[:, 5] = loss
    values[:, 6] = np.where(SPLITS.train[:, 6] > 0, 1000.0, 0.5)
    return replace(losses(SPLITS, values=values), loss="cross_entropy")


def one_test_set():
    test = np.zeros((20, N), int)
    test[:, :10] = 1
    train = np.array([RANDOM.permutation(np.arange(N) < 25) for _ in range(20)])
    return weights(train * (test == 0), test)


def uneven():
    """The first case is tested in every row."""
    test = np.array([np.r_[1, RANDOM.permutation(np.arange(N - 1) < 3)] for _ in range(60)]).astype(int)
    return weights(1 - test, test)


def never(case):
    """Random splits that never test a case; it trains always."""
    test = np.array([np.insert(RANDOM.permutation(np.arange(N - 1) < 4), case, False) for _ in range(60)]).astype(int)
    return weights(1 - test, test)


def classes(rare, task="classification"):
    y = (np.arange(N) < rare).astype(float)
    return datasets.from_arrays(RANDOM.normal(size=(N, 2)), y, task=task)


def numbered(last):
    """Cases with a number each in the second column, of which the last one has this."""
    numbers = np.r_[RANDOM.permutation(1000)[: N - 1], last]
    return datasets.from_arrays(np.c_[RANDOM.normal(size=N), numbers], RANDOM.normal(size=N), names=("age", "ticket"))


MANY = resample.leave_out(KEY, N, 0.1, 1000)


def trained_apart(size):
    """Two learners whose difference has a part of each row, as training sets make it, of this size."""
    random = np.random.default_rng(3)
    first, noise = random.gamma(2.0, size=(1, N)), random.normal(size=(1, N))
    # What each case does to the others when it is absent from training: the same for all of them.
    effect = (MANY.test @ random.normal(size=N))[:, None]
    values = np.broadcast_to(first, MANY.train.shape)
    return losses(MANY, values=values), losses(MANY, values=values + noise + size * effect, learner="b")


CASES = {
    "failed-rows": (lambda: [failing([3])], lambda: [failing([])]),
    "different-plans": (lambda: [GOOD, losses(FOLDS)], lambda: [GOOD, OTHER]),
    "different-losses": (lambda: [GOOD, replace(OTHER, loss="absolute")], lambda: [GOOD, OTHER]),
    "tested-in-training": (
        lambda: [losses(weights(np.ones((5, N), int), SPLITS.test[:5]))],
        lambda: [GOOD],
    ),
    "divided-groups": (
        lambda: [GOOD, {"groups": GROUPS}],
        lambda: [losses(resample.k_fold(KEY, N, 5, groups=GROUPS)), {"groups": GROUPS}],
    ),
    "naive-error": (lambda: [interval.naive_t(GOOD)], lambda: [interval.corrected_t(GOOD)]),
    "trained-on-future": (lambda: [GOOD, {"times": np.arange(N)}], lambda: [losses(SERIES)]),
    "few-splits": (lambda: [losses(resample.leave_out(KEY, N, 0.1, 10))], lambda: [GOOD]),
    "repeated-rows": (lambda: [losses(repeated_split(10))], lambda: [GOOD]),
    "same-key": (
        lambda: [replace(GOOD, key="jax.random.key(2)")],
        lambda: [replace(GOOD, key="jax.random.key(0)")],
    ),
    "common-test-set": (lambda: [losses(one_test_set())], lambda: [GOOD]),
    "uneven-tests": (lambda: [losses(uneven())], lambda: [losses(FOLDS)]),
    "missing-classes": (lambda: [GOOD, {"data": classes(4)}], lambda: [losses(FOLDS.chosen([0], "")), {}]),
    "unseen-shares": (lambda: [without_values(losses(STRATIFIED))], lambda: [losses(STRATIFIED)]),
    "classes-as-numbers": (
        lambda: [GOOD, {"data": classes(20, "regression")}],
        lambda: [GOOD, {"data": classes(20)}],
    ),
    "dropped-rows": (lambda: [failing([3, 4]).without_failed()], lambda: [failing([]).without_failed()]),
    "one-row": (lambda: [outlying()], lambda: [GOOD]),
    "no-spread": (lambda: [losses(SPLITS, values=np.ones(SPLITS.train.shape))], lambda: [GOOD]),
    "few-values": (lambda: [right_in(30)], lambda: [right_in(10)]),
    "zero-probability": (lambda: [impossible(40.0)], lambda: [impossible(20.0)]),
    "unstable-comparison": (lambda: [*trained_apart(0.5)], lambda: [*trained_apart(0.0)]),
    "numbered-cases": (
        lambda: [GOOD, {"data": numbered(1000)}],
        lambda: [GOOD, {"data": numbered(1000.5)}],
    ),
    "untested-cases": (lambda: [losses(never(5))], lambda: [losses(FOLDS)]),
    "small-training": (lambda: [losses(resample.leave_out(KEY, N, 0.25, 60))], lambda: [GOOD]),
}


def checked(given):
    options = given.pop() if isinstance(given[-1], dict) else {}
    return jg.check(*given, **options)


@pytest.mark.parametrize("code", CASES)
def test_each_code_comes_where_it_belongs_and_not_elsewhere(code):
    found, clean = (checked(list(make())) for make in CASES[code])
    assert code in found.codes, str(found)
    assert code not in clean.codes, str(clean)
    assert next(remark for remark in found if remark.code == code).severity == CODES[code]


def test_every_code_is_tried_and_has_its_section():
    assert set(CASES) == set(CODES)
    page = (PAGES / PAGE).read_text()
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == list(CODES)
    for severity in ("error", "warning", "note"):
        row = next(line for line in page.splitlines() if line.startswith(f"| {severity} |"))
        assert re.findall(r"\[([a-z-]+)\]\(#\1\)", row) == [code for code in CODES if CODES[code] == severity]


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (lambda: jg.check(failing([3])), "1 of 60 trainings of a failed (it did not converge), and"),
        (lambda: jg.check(failing([3, 4]).without_failed()), "2 of 60 trainings of a failed and were left out"),
        (lambda: jg.check(losses(repeated_split(10))), "9 of 10 rows have the training and test cases of another"),
        (lambda: jg.check(losses(resample.leave_out(KEY, N, 0.25, 60))), "rows train on 30 of 40 cases"),
        (lambda: jg.check(right_in(40)), "rows of guess have the same accuracy, 1, so that the others"),
        (lambda: jg.check(outlying()), "row 7 of a has the mean loss"),
        (lambda: jg.check(losses(never(5))), "1 of 40 cases is tested in none of the 60 rows"),
        (lambda: jg.check(GOOD, groups=GROUPS), "with 10 groups of cases that depend on each other"),
        (lambda: jg.check(losses(ONE_SPLIT)), "that of one trained model on 4 cases"),
    ],
)
def test_a_sentence_has_the_numbers_of_this_analysis(found, sentence):
    assert sentence in str(found())


def test_the_number_of_splits_asked_for_is_that_which_gives_the_error_wanted():
    """Of independent rows the error is sd / sqrt(R), and (sd / wanted)^2 rows give the wanted one."""
    drawn = GOOD.g.std(ddof=1) / np.sqrt(60)
    assert not jg.check(GOOD, monte_carlo_error=1.01 * drawn)
    remark = next(iter(jg.check(GOOD, monte_carlo_error=drawn / 2)))
    assert remark.code == "few-splits"
    assert remark.text.endswith(f"it takes some {4 * 60}")
    ten = losses(resample.leave_out(KEY, N, 0.1, 10))
    share = (1 / 10) / (1 / 10 + 4 / 36)  # of Nadeau & Bengio's variance
    assert f"{share:.0%} of the variance" in str(jg.check(ten))
    assert "only 10 splits; 81 would make it a tenth" in str(jg.check(ten))  # 1/R = ratio / 9


def test_what_was_called_impossible_is_counted_with_its_share_of_the_mean():
    rows = int(SPLITS.test[:, 5].sum())
    share = rows * 40.0 / (rows * 40.0 + (60 * 4 - rows) * 0.5)  # every row tests 4 of the 40 cases
    found = next(remark for remark in jg.check(impossible(40.0)) if remark.code == "zero-probability")
    assert found.text.startswith("a gave 1 of 40 tested cases a probability of almost 0 for what happened")
    assert f"in {rows} of 60 rows, which makes {share:.0%} of the mean log loss" in found.text
    assert "zero-probability" not in jg.check(replace(impossible(40.0), loss="squared")).codes
    assert "zero-probability" not in jg.check(without_values(impossible(40.0))).codes


def test_classes_that_are_missing_are_counted_as_scikit_learn_would():
    data = classes(4)
    text = str(jg.check(GOOD, data=data))
    y = data.y.argmax(-1) if data.y.shape[-1] > 1 else data.y[:, 0].astype(int)
    lacking = sum(len(np.unique(y[row > 0])) < 2 for row in SPLITS.test)
    assert f"{lacking} of 60 rows lack a class among their test cases, most often" in text
    assert "of which there are 4 cases of 40" in text
    assert "training cases" not in text


def test_an_input_that_numbers_the_cases_is_named():
    assert "the input 'ticket' is another whole number in each of the 40 cases" in str(
        jg.check(GOOD, data=numbered(1000))
    )
    once = numbered(1000)
    twice = replace(once, x=np.concatenate([once.x[:-1], once.x[:1]]))
    assert "numbered-cases" not in jg.check(GOOD, data=twice).codes


def test_remarks_are_a_value_that_prints_a_line_each():
    found = jg.check({"mine": failing([3]), "yours": losses(repeated_split(10))})
    lines = str(found).splitlines()
    assert len(lines) == len(found) == len(found.to_frame()) > 2
    assert lines[0].startswith("error ")
    assert repr(found) == str(found)
    order = [list(CODES).index(code) for code in found.codes]
    assert order == sorted(order)
    assert "trainings of mine failed" in str(found)
    assert list(found.to_frame().columns) == ["code", "severity", "text", "page"]
    assert found.to_frame().page[0] == f"docs/remarks.md#{found.codes[0]}"
    assert found._repr_html_().count("<tr>") == 1 + len(found)
    assert "&lt;lambda&gt;" in jg.check(failing([3]).labelled("<lambda>"))._repr_html_()
    assert bool(found)


def test_nothing_to_remark_is_said():
    none = jg.check(GOOD, OTHER)
    assert isinstance(none, Remarks)
    assert (str(none), len(none), bool(none)) == ("no remarks", 0, False)
    assert none._repr_html_() == "<div>no remarks</div>"
    assert none.to_frame().empty


def test_what_is_common_to_learners_is_said_once():
    plan = resample.leave_out(KEY, N, 0.25, 60)
    both = jg.check([losses(plan), losses(plan, 1, learner="b")])
    assert both.codes.count("small-training") == 1


def test_a_comparison_says_itself_that_it_is_unstable():
    result = compare.jackknife_after_leave_out(*trained_apart(0.5))
    assert jg.check(result).codes == ("unstable-comparison",)
    assert not jg.check(without_values(trained_apart(0.5)[0]))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: jg.check(None), TypeError, "expected losses, or results of intervals and tests, got None"),
        (lambda: jg.check(GOOD.g), TypeError, "got an array of shape"),
        (lambda: jg.check(SPLITS), TypeError, "expected losses, or results"),
        (lambda: jg.check([]), ValueError, "expected losses to check, got none"),
        (lambda: jg.check(made(np.ones((3, 60, N)), SPLITS)), ValueError, "losses of one data set, got those of 3"),
        (lambda: jg.check(GOOD, data=GOOD.values), TypeError, "expected the data that were trained on"),
        (lambda: jg.check(GOOD, groups=[1, 2]), ValueError, "expected groups of the 40 cases"),
        (lambda: jg.check(GOOD, times=["a"] * N), TypeError, "expected times as numbers"),
        (lambda: jg.check(GOOD, monte_carlo_error=0), ValueError, "the Monte Carlo error wanted to be .* above 0"),
    ],
)
def test_what_cannot_be_checked_is_refused_with_one_sentence(call, kind, message, own_messages):
    with pytest.raises(kind, match=message):
        call()
