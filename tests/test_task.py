"""All methods on one task of DELVE: against the output of DELVE's own program, scikit-learn, SciPy and statsmodels,
and identities.
"""

import itertools
import math
from dataclasses import replace

import jax
import numpy as np
import pytest
import scipy.stats
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import mean_absolute_error, mean_squared_error
from statsmodels.stats.multitest import multipletests
from test_delve import AGAINST_KNN, EXACT, LIN, PRINTED, STANDARDISED, effects, losses, with_squares
from test_delve import task as instances

from jaxgen import delve, resample
from jaxgen.stats import compare

RANDOM = np.random.default_rng(0)
NAMES = ("lin", "knn", "net", "mean")


def methods(plan, count=4, seed=0):
    """Losses of methods that share effects of training sets and cases, and differ by more and more."""
    i, j = plan.resamples, int(plan.test_sizes[0])
    shared = effects(i, j, mean=9.0, seed=seed)
    return [losses(shared + 0.3 * k * k + 0.2 * effects(i, j, seed=seed + k + 1), plan, NAMES[k]) for k in range(count)]


def targets(plan, variance):
    """Targets [N, 1] whose test cases have this variance, divisor n - 1; the others are far away."""
    y, tested = RANDOM.normal(1e3, 1e3, plan.n), plan.test.any(0)
    y[tested] = 50 + scipy.stats.zscore(RANDOM.normal(size=tested.sum()), ddof=1) * math.sqrt(variance)
    return y[:, None]


# DELVE's own output


def test_a_task_prints_what_delve_prints():
    """A table with the printed mean and deviations of lin-1, and another whose difference from it has those that are
    printed for knn-cv-1.
    """
    plan = instances(8, 128, size=64)
    lin = with_squares(LIN["estimate"], LIN["training"], LIN["residual"], 8, 128)
    knn = lin - with_squares(AGAINST_KNN["estimate"], AGAINST_KNN["training"], AGAINST_KNN["residual"], 8, 128)
    variance = LIN["estimate"] / STANDARDISED["estimate"]  # printed with six digits only: this has nine of them
    standard = delve.standard_loss(targets(plan, variance), plan, "squared")
    assert f"{standard:.6g}" == "488.847"
    got = delve.analyse([losses(lin, plan), losses(knn, plan)], standard, ["lin-1", "knn-cv-1"])
    for one, golden in ((got, LIN), (got.standardised, STANDARDISED)):
        found = [one.estimate[0], one.standard_error[0], one.parts["training set sd"][0], one.parts["residual sd"][0]]
        assert [f"{value:.9g}" for value in found] == [
            f"{golden[name]:.9g}" for name in ("estimate", "standard error", "training", "residual")
        ]
    np.testing.assert_allclose(
        [got.estimate[1], -got.pairs.estimate[0], -got.pairs.statistic[0]],
        [368.002767, 32.7269508, 2.325188],
        rtol=2e-7,
    )  # t has seven digits
    np.testing.assert_allclose(got.pairs.p_value, 0.0529880206, rtol=1e-8)  # as in test_delve
    np.testing.assert_allclose(got.standardised.pairs.estimate * standard, got.pairs.estimate, **PRINTED)
    assert got.digits().tolist() == [[" ", "6"], [".", " "]]
    assert (got.size, got.instances, got.cases, got.common, got.unit) == (64, 8, 128, False, "squared loss")


# What it is made of


def test_pairs_are_those_of_scipy_and_statsmodels():
    given = methods(instances(6, 9))
    got = delve.analyse(given)
    means = [
        np.array([values[test > 0].mean() for values, test in zip(one.values, one.plan.test, strict=True)])
        for one in given
    ]
    want = [scipy.stats.ttest_rel(second, first) for first, second in itertools.combinations(means, 2)]
    np.testing.assert_allclose(got.pairs.statistic, [one.statistic for one in want], **EXACT)
    np.testing.assert_allclose(got.pairs.p_value, [one.pvalue for one in want], **EXACT)
    np.testing.assert_allclose(
        got.pairs.adjusted, multipletests([one.pvalue for one in want], method="holm")[1], **EXACT
    )
    np.testing.assert_allclose(
        got.pairs.estimate, [b.mean() - a.mean() for a, b in itertools.combinations(means, 2)], **EXACT
    )
    np.testing.assert_allclose(got.estimate, [mean.mean() for mean in means], **EXACT)
    for adjusted, p in ((False, got.pairs.p_value), (True, got.pairs.adjusted)):
        for (a, b), value in zip(itertools.combinations(range(4), 2), p, strict=True):
            better, worse = (a, b) if means[a].mean() < means[b].mean() else (b, a)
            assert got.digits(adjusted)[worse, better] == (str(math.ceil(100 * value)) if value <= 0.09 else ".")
            assert got.digits(adjusted)[better, worse] == "."
    assert len(set(got.digits().ravel())) > 3


@pytest.mark.parametrize("common", [False, True], ids=["disjoint", "common"])
def test_the_design_chooses_the_test(common):
    given = methods(instances(5, 8, common))
    got, test = delve.analyse(given), compare.quasi_f if common else compare.disjoint_t
    results, pairs = (
        [compare.expected_loss(one) for one in given],
        [test(*pair) for pair in itertools.combinations(given, 2)],
    )
    assert got.common is common
    assert got.pairs.method == pairs[0].method
    np.testing.assert_array_equal(got.pairs.p_value, [one.p_value for one in pairs])
    np.testing.assert_array_equal(got.standard_error, [one.standard_error for one in results])
    assert list(got.parts) == ["training set sd", *["test case sd"] * common, "residual sd"]
    for name, values in got.parts.items():
        np.testing.assert_array_equal(values, [one.parts[name] for one in results])


# Standardised losses


def guessed(y, error, strategy):
    """The error of a constant guess, summed over the outputs, times n/(n-1)."""
    guess = DummyRegressor(strategy=strategy).fit(y, y).predict(y).reshape(y.shape)
    return error(y, guess, multioutput="raw_values").sum() * len(y) / (len(y) - 1)


def missed(y):
    """The error rate of the most frequent class."""
    classes = y @ np.arange(y.shape[1], 0, -1)
    return 1 - DummyClassifier().fit(y, classes).score(y, classes)


SKLEARN = {
    "squared": lambda y: guessed(y, mean_squared_error, "mean"),
    "absolute": lambda y: guessed(y, mean_absolute_error, "median"),
    "zero_one": missed,
}


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("common", [False, True], ids=["disjoint", "common"])
@pytest.mark.parametrize("loss", SKLEARN)
def test_the_divisor_is_the_loss_of_a_constant_guess(loss, common, outputs):
    """Of scikit-learn's dummies, which know the test cases, times n/(n-1) where the divisor is n - 1; the targets of
    training cases do not count.
    """
    plan = instances(5, 7, common, size=3)
    y = RANDOM.gamma(2.0, size=(plan.n, outputs))
    if loss == "zero_one":
        y = (y > 1.5).astype(float) if outputs == 1 else np.eye(outputs)[y.argmax(1)]
    tested = plan.test.any(0)
    assert tested.sum() == (7 if common else 35)
    want = SKLEARN[loss](y[tested])
    np.testing.assert_allclose(delve.standard_loss(y, plan, loss), want, rtol=1e-12)  # rounding
    y[~tested] = 1e6
    np.testing.assert_allclose(delve.standard_loss(y, plan, loss), want, rtol=1e-12)


def test_standardised_losses_are_divided_and_nothing_else():
    got = delve.analyse(methods(instances()), 4.0)
    once, twice = got.standardised, got.standardised.standardised
    assert (once.unit, once.standard, once.pairs.unit) == (
        "standardised squared loss",
        1.0,
        "standardised squared loss",
    )
    np.testing.assert_array_equal(once.estimate, got.estimate / 4)
    np.testing.assert_array_equal(once.pairs.estimate, got.pairs.estimate / 4)
    np.testing.assert_array_equal(once.pairs.p_value, got.pairs.p_value)
    np.testing.assert_array_equal(once.digits(True), got.digits(True))
    np.testing.assert_array_equal(twice.estimate, once.estimate)
    assert twice.unit == once.unit
    raw, divided = got.to_frame(), once.to_frame()
    for name in ("loss", "standard_error"):
        np.testing.assert_array_equal(raw[f"standardised_{name}"], divided[name])
    np.testing.assert_array_equal(raw["residual sd"] / 4, divided["residual sd"])


# Identities


@pytest.mark.parametrize("common", [False, True], ids=["disjoint", "common"])
def test_the_order_of_methods_permutes_everything(common):
    given, order = methods(instances(5, 8, common)), [2, 0, 3, 1]
    got, moved = delve.analyse(given), delve.analyse([given[k] for k in order])
    assert moved.labels == moved.learners == tuple(got.labels[k] for k in order)
    np.testing.assert_array_equal(moved.estimate, got.estimate[order])
    np.testing.assert_array_equal(moved.standard_error, got.standard_error[order])
    for adjusted in (False, True):
        np.testing.assert_array_equal(moved.digits(adjusted), got.digits(adjusted)[np.ix_(order, order)])
    for name in ("p_value", "adjusted", "estimate"):
        np.testing.assert_allclose(moved.pairs.matrix(name), got.pairs.matrix(name)[np.ix_(order, order)], **EXACT)


@pytest.mark.parametrize("common", [False, True], ids=["disjoint", "common"])
def test_a_scale_of_losses_leaves_p(common):
    plan = instances(5, 8, common)
    given = methods(plan)
    scaled = [
        replace(one, test_mean=one.test_mean * 4, train_mean=one.train_mean * 4, values=np.asarray(one.values) * 4)
        for one in given
    ]
    got, want = delve.analyse(scaled, 8.0), delve.analyse(given, 2.0)
    for name in ("p_value", "adjusted", "statistic"):
        np.testing.assert_allclose(getattr(got.pairs, name), getattr(want.pairs, name), **EXACT)
    np.testing.assert_allclose(got.standardised.estimate, want.standardised.estimate, **EXACT)
    np.testing.assert_allclose(got.standardised.standard_error, want.standardised.standard_error, **EXACT)


# Digits


DIGITS = [
    (0.0, "0"),
    (5e-324, "1"),
    (0.01, "1"),
    (0.0100001, "2"),
    (0.04, "4"),
    (0.05, "5"),
    (0.07, "7"),
    (0.0529880206, "6"),
    (0.09, "9"),
    (0.0900001, "."),
    (1.0, "."),
    (np.nan, "."),
]


@pytest.mark.parametrize(("p", "digit"), DIGITS)
@pytest.mark.parametrize("adjusted", [False, True])
def test_digits_are_a_hundred_p_rounded_up(p, digit, adjusted):
    got = delve.analyse(methods(instances(), 2))
    shown, hidden = ("adjusted", "p_value") if adjusted else ("p_value", "adjusted")
    for sign in (1.0, -1.0, 0.0):
        pairs = replace(got.pairs, estimate=np.array([sign]), **{shown: np.array([p]), hidden: np.array([0.5])})
        want = {1.0: [" ", ".", digit, " "], -1.0: [" ", digit, ".", " "], 0.0: [" ", ".", ".", " "]}[
            sign
        ]  # 1: the first is better, so column 0, row 1
        assert replace(got, pairs=pairs).digits(adjusted).ravel().tolist() == want


# Degenerate


def test_a_method_alone_has_no_pairs():
    for common in (False, True):
        plan = instances(4, 6, common)
        alone = delve.analyse(methods(plan, 1), 2.0)
        np.testing.assert_array_equal(alone.estimate, delve.analyse(methods(plan), 2.0).estimate[:1])
        assert alone.digits().tolist() == [[" "]]
        assert len(alone.to_frame()) == 1
        assert len(alone.pairs.to_frame()) == len(alone.pairs.first) == 0
        assert alone.pairs.method == delve.analyse(methods(plan)).pairs.method
        assert "100 p" not in str(alone)
        assert len(alone.standardised.pairs.estimate) == 0


@pytest.mark.parametrize("common", [False, True], ids=["disjoint", "common"])
def test_equal_methods_and_equal_differences(common):
    """No difference is no evidence, and the same one everywhere is no certainty: it has no p-value and prints a dot."""
    plan = instances(4, 6, common)
    table = RANDOM.integers(0, 9, size=(4, 6))
    got = delve.analyse([losses(table + shift, plan) for shift in (0, 0, 2)], labels=["a", "b", "c"])
    np.testing.assert_array_equal(got.pairs.p_value, [1, np.nan, np.nan])
    np.testing.assert_array_equal(got.pairs.adjusted, [1, np.nan, np.nan])
    assert ["".join(row) for row in got.digits()] == [" ..", ". .", ".. "]
    assert not np.isnan(got.standard_error).any()


# What it says


@pytest.mark.parametrize("common", [False, True], ids=["disjoint", "common"])
def test_what_is_said_of_a_task(common):
    got = delve.analyse(methods(instances(4, 6, common, size=3)), 7.5, ["a", "b", "c", "a long name"])
    text = str(got)
    for part in (
        "DELVE task (Rasmussen et al. 1996, The DELVE manual): 4 methods, 4 instances of 3 training cases",
        "tested on the same 6 cases" if common else "tested on 6 cases each of their own",
        "expected squared loss, and divided by 7.5",
        "standardised",
        f"{got.estimate[3]:#.6g}",
        f"{got.standardised.standard_error[1]:#.6g}",
        "p: DELVE's quasi-F test, common test set, each pair by itself"
        if common
        else "p: DELVE's t-test, disjoint test sets, each pair by itself",
        "adjusted: family-wise error by Holm 1979, for the pairs of this task",
    ):
        assert part in text
    rows = [line for line in text.split("\n") if line.strip().startswith("a long name")]
    assert rows[1].split("name")[1].split() == [*got.digits()[3, :3], *got.digits(True)[3, :3]]
    assert "nan" not in text
    assert "standardised" not in str(delve.analyse(methods(instances())))
    assert "divided" not in str(got.standardised)
    frame = got.to_frame()
    assert frame["method"].tolist() == ["a", "b", "c", "a long name"]
    assert frame["learner"].tolist() == list(NAMES)
    assert np.isnan(delve.analyse(methods(instances())).to_frame()["standardised_loss"].to_numpy()).all()


# Bad input

GOOD = methods(instances())
UNEQUAL = resample.from_weights(
    *(
        np.array(rows)
        for rows in ([[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0, 1]], [[1, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0]])
    )
)
FAILED = replace(GOOD[1], failure=np.array([0, 1, 0, 0], np.uint8))
SETS = losses(effects(4, 6, sets=3), instances())
BAD = {
    "nothing": (lambda: delve.analyse([]), "expected the losses of one or more methods on one data set, got 0; give"),
    "several sets": (lambda: delve.analyse([SETS, SETS]), r"one data set, got 2 on 3 sets; give losses\[q\] of each"),
    "one failed alone": (
        lambda: delve.analyse([FAILED]),
        "expected every row to have been fitted, got 1 failed of 4 for knn",
    ),
    "one failed": (
        lambda: delve.analyse([GOOD[0], FAILED]),
        "expected every row to have been fitted, got 1 failed of 4 for knn",
    ),
    "no cases": (lambda: delve.analyse([replace(GOOD[0], values=None)]), "got the means of rows only"),
    "two losses": (
        lambda: delve.analyse([GOOD[0], replace(GOOD[1], loss="absolute")]),
        "one loss for both learners, got squared and absolute",
    ),
    "two plans": (
        lambda: delve.analyse([GOOD[0], *methods(instances(common=True), 1)]),
        "both learners on the same resamplings",
    ),
    "splits": (
        lambda: delve.analyse([losses(effects(2, 2), resample.k_fold(jax.random.key(0), 4, 2))]),
        "at least 2 instances of a task",
    ),
    "two sizes": (
        lambda: delve.analyse([losses(effects(2, 2), UNEQUAL)]),
        "with as many training cases each, got 1 to 2",
    ),
    "labels": (lambda: delve.analyse(GOOD, labels=["a"]), "4 labels, one for each of the learners, got 1"),
    "level": (lambda: delve.analyse(GOOD, level=95.0), "level to be a number above 0 and below 1, got 95"),
    "divisor 0": (
        lambda: delve.analyse(GOOD, 0.0),
        "divisor of standardised losses to be a finite number above 0, got 0.0; take that of standard_loss, or None",
    ),
    "divisor nan": (lambda: delve.analyse(GOOD, np.nan), "a finite number above 0, got nan"),
    "no divisor": (
        lambda: delve.analyse(GOOD).standardised,
        "the divisor of standardised losses, got none for the task of 1 training cases; give",
    ),
    "loss": (
        lambda: delve.standard_loss(np.ones((28, 1)), instances(), "hinge"),
        "the loss squared, absolute or zero_one, got 'hinge'",
    ),
    "constant": (
        lambda: delve.standard_loss(np.full((28, 1), 0.1), instances(), "squared"),
        "targets that differ between test cases, and are finite, got the divisor 0 of the squared loss of 24 of them",
    ),
    "one class": (
        lambda: delve.standard_loss(np.full((28, 1), 1.0), instances(), "zero_one"),
        "got the divisor 0 of the zero_one loss",
    ),
    "constant deviation": (
        lambda: delve.standard_loss(np.full((28, 2), 0.1), instances(), "absolute"),
        "got the divisor 0 of the absolute loss",
    ),
    "infinite": (lambda: delve.standard_loss(np.full((28, 1), np.inf), instances(), "squared"), "got the divisor nan"),
    "other cases": (
        lambda: delve.standard_loss(np.ones((27, 1)), instances(), "squared"),
        r"targets \[N, K\] and one plan for their N cases, got \[27, 1\] and weights \[4, 28\]",
    ),
    "no columns": (lambda: delve.standard_loss(np.ones(28), instances(), "squared"), r"got \[28\] and weights"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_task_is_refused(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()
