"""Prediction intervals and sets of new cases: the formulas of the papers in loops, on models of scikit-learn; closed
forms; coverage by simulation; MAPIE, where it is installed.
"""

from dataclasses import replace

import jax
import numpy as np
import pytest
import scipy.stats
from hostile import refused
from scripts import quick
from sklearn.linear_model import LinearRegression, LogisticRegression

from jaxgen import datasets, learn, predict, resample
from jaxgen.stats import conformal
from jaxgen.types import Data, Predicted

KEY, N, M = jax.random.key(0), 40, 9
RANDOM = np.random.default_rng(0)
X, NEW = RANDOM.normal(size=(N, 3)), RANDOM.normal(size=(M, 3))
Y = X @ [1.0, -2.0, 0.5] + RANDOM.normal(size=N)
LOO, FOLDS = resample.leave_one_out(N), resample.k_fold(KEY, N, 6)
BOOTSTRAP, SPLIT = resample.bootstrap(KEY, N, 30), resample.leave_out(KEY, N, 0.5, 1)
RANDOM_SPLITS = resample.leave_out(KEY, N, 0.4, 20)


def trained(plan, y=Y):
    """Models of scikit-learn on every row of a plan."""
    return [LinearRegression().fit(X, y, weights) for weights in plan.train]


def predicted(plan, y=Y):
    """What they predict."""
    cases, new = (np.stack([model.predict(x) for model in trained(plan, y)]) for x in (X, NEW))
    return Predicted.from_predictions(y, cases, new, plan.train, plan.test, "least squares")


def smallest(values, place):
    """The place-th smallest, counted from 1; infinite beyond the ends."""
    if not 1 <= place <= len(values):
        return np.inf if place > len(values) else -np.inf
    return sorted(values)[place - 1]


def by_hand(plan, level, aggregate=np.mean):
    """Limits as Barber et al. 2021 and Kim et al. 2020 write them, for one new case after the other."""
    told = predicted(plan)
    rows = [[r for r in range(plan.resamples) if plan.train[r, i] == 0] for i in range(N)]
    errors = [abs(Y[i] - aggregate([told.cases[r, i, 0] for r in rows[i]])) for i in range(N)]
    below = int((1 - level) * (N + 1) + 1e-9)
    for j in range(M):
        without = [aggregate([told.new[r, j, 0] for r in rows[i]]) for i in range(N)]
        yield (
            smallest([mu - error for mu, error in zip(without, errors, strict=True)], below),
            smallest([mu + error for mu, error in zip(without, errors, strict=True)], N + 1 - below),
        )


@pytest.mark.parametrize("level", [0.9, 0.8])
@pytest.mark.parametrize(
    ("method", "plan"),
    [
        (conformal.jackknife_plus, LOO),
        (conformal.cv_plus, LOO),
        (conformal.cv_plus, FOLDS),
        (conformal.jackknife_plus_after_bootstrap, BOOTSTRAP),
        (conformal.jackknife_plus_after_bootstrap, RANDOM_SPLITS),
    ],
    ids=["jackknife", "finest folds", "folds", "bootstrap", "subsamples"],
)
def test_limits_are_the_formulas_of_the_papers(method, plan, level):
    want = list(by_hand(plan, level))
    got = method(predicted(plan), level=level)
    np.testing.assert_allclose(np.column_stack([got.lower, got.upper]), want, atol=1e-10)  # rounding


def test_the_median_aggregates_in_place_of_the_mean():
    got = conformal.jackknife_plus_after_bootstrap(predicted(BOOTSTRAP), aggregate="median", level=0.9)
    want = list(by_hand(BOOTSTRAP, 0.9, np.median))
    np.testing.assert_allclose(np.column_stack([got.lower, got.upper]), want, atol=1e-10)  # rounding


def test_minmax_and_split_are_their_formulas():
    models, level = trained(LOO), 0.9
    errors = [abs(Y[i] - models[LOO.test[:, i].argmax()].predict(X[i : i + 1])[0]) for i in range(N)]
    all_of = np.stack([model.predict(NEW) for model in models])
    got = conformal.jackknife_minmax(predicted(LOO), level=level)
    np.testing.assert_allclose(got.lower[:, 0], all_of.min(0) - smallest(errors, 37), atol=1e-10)
    np.testing.assert_allclose(got.upper[:, 0], all_of.max(0) + smallest(errors, 37), atol=1e-10)
    model, held = trained(SPLIT)[0], SPLIT.test[0] > 0
    half = smallest(abs(Y[held] - model.predict(X[held])), 19)  # ceil(0.9 * 21)
    got = conformal.split(predicted(SPLIT), level=level)
    np.testing.assert_allclose(got.lower[:, 0], model.predict(NEW) - half, atol=1e-10)
    np.testing.assert_allclose(got.upper[:, 0], model.predict(NEW) + half, atol=1e-10)


def test_the_jackknife_plus_of_a_mean_has_its_closed_form():
    """mu_-i + R_i is y_i above the mean, and 2 (S - y_i) / (n - 1) - y_i below it; of predictions of the package."""
    data = Data(X, Y[:, None], ("a", "b", "c"))
    got = conformal.jackknife_plus(predict(KEY, learn.Mean(), data, LOO, NEW), level=0.9)
    other = 2 * (Y.sum() - Y) / (N - 1) - Y
    upper, lower = np.where(Y.mean() < Y, [Y, other], [other, Y])
    np.testing.assert_allclose(got.upper, np.sort(upper)[36], atol=1e-5)  # single precision of the mean, if it is
    np.testing.assert_allclose(got.lower, np.sort(lower)[3], atol=1e-5)


@pytest.mark.parametrize(
    ("method", "plan"),
    [(conformal.jackknife_plus, LOO), (conformal.cv_plus, FOLDS), (conformal.split, SPLIT)],
    ids=["jackknife", "folds", "split"],
)
def test_one_sided_limits_take_errors_with_their_sign(method, plan):
    """By hand, and mirrored by targets of the other sign."""
    given = predicted(plan)
    upper = method(given, level=0.9, alternative="less")
    row = plan.test.argmax(0) if plan.resamples > 1 else np.zeros(N, int)
    used = np.flatnonzero(plan.test.any(0))
    values = given.new[row[used], :, 0] + (Y - given.cases[row, np.arange(N), 0])[used, None]
    place = int(np.ceil(0.9 * (len(used) + 1)))
    np.testing.assert_allclose(upper.upper[:, 0], np.sort(values, 0)[place - 1], atol=1e-10)
    assert np.isneginf(upper.lower).all()
    lower = method(predicted(plan, -Y), level=0.9, alternative="greater")
    np.testing.assert_allclose(lower.lower, -upper.upper, atol=1e-10)
    assert np.isposinf(lower.upper).all()


def test_mapie_has_the_same_intervals():
    """On the same models; MAPIE aggregates sums in another order, hence the last digits."""
    pytest.importorskip("mapie")
    from mapie.regression import CrossConformalRegressor, JackknifeAfterBootstrapRegressor, SplitConformalRegressor
    from mapie.subsample import Subsample
    from sklearn.model_selection import LeaveOneOut, PredefinedSplit

    class Given(Subsample):
        def split(self, *_):
            for weights in BOOTSTRAP.train:
                yield np.repeat(np.arange(N), weights), np.flatnonzero(weights == 0)

    def of(regressor, *data):
        getattr(regressor, "conformalize" if isinstance(regressor, SplitConformalRegressor) else "fit_conformalize")(
            *data
        )
        return regressor.predict_interval(NEW)[1][:, :, 0].T

    level, held = {"confidence_level": 0.9}, SPLIT.test[0] > 0
    folds = PredefinedSplit(FOLDS.test.argmax(0))
    pairs = [
        (
            conformal.jackknife_plus(predicted(LOO), level=0.9),
            of(CrossConformalRegressor(cv=LeaveOneOut(), **level), X, Y),
        ),
        (conformal.cv_plus(predicted(FOLDS), level=0.9), of(CrossConformalRegressor(cv=folds, **level), X, Y)),
        (
            conformal.jackknife_plus_after_bootstrap(predicted(BOOTSTRAP), level=0.9),
            of(JackknifeAfterBootstrapRegressor(resampling=Given(30), **level), X, Y),
        ),
        (
            conformal.split(predicted(SPLIT), level=0.9),
            of(SplitConformalRegressor(trained(SPLIT)[0], **level), X[held], Y[held]),
        ),
    ]
    for got, (lower, upper) in pairs:
        np.testing.assert_allclose(got.lower[:, 0], lower, atol=1e-10)
        np.testing.assert_allclose(got.upper[:, 0], upper, atol=1e-10)


# Coverage


def sets_of_lines(random, sets, n, m, d=3):
    """Data sets of a linear law with errors of a skew law, and new cases of it."""
    x = random.normal(size=(sets, n + m, d))
    y = x @ np.ones((d, 1)) + random.exponential(size=(sets, n + m, 1))
    return Data(x[:, :n], y[:, :n], tuple("abcdefgh"[:d])), x[:, n:], y[:, n:]


def test_coverage_of_a_split_has_its_beta_law():
    """Of a normal target and any fixed prediction, the coverage given the calibration cases is F(q) - F(-q), of law
    Beta(k, n + 1 - k); 2000 data sets, whose largest distance from a law they have is above this once in a million.
    """
    random, n = np.random.default_rng(1), 19
    y = random.normal(size=(2000, n, 1))
    train = np.zeros((1, n + 1), np.uint8)
    train[0, n] = 1
    plan = resample.from_weights(train, 1 - train)
    y = np.concatenate([y, np.zeros((2000, 1, 1))], axis=1)
    zeros = np.zeros((2000, 1, n + 1, 1))
    given = Predicted(zeros[:, :, :1], zeros, y, plan, "zero", "y", "regression", (), np.zeros((2000, 1), np.uint8))
    for level, k in ((0.9, 18), (0.5, 10)):
        upper = conformal.split(given, level=level).upper[:, 0, 0]
        share = 2 * scipy.stats.norm.cdf(upper) - 1
        assert scipy.stats.kstest(share, scipy.stats.beta(k, n + 1 - k).cdf).pvalue > 1e-6


@pytest.mark.parametrize(
    ("method", "plan", "least", "most"),
    [
        (conformal.split, resample.leave_out(KEY, 38, 0.5, 1), 18 / 20, 18 / 20),
        (conformal.jackknife_plus, resample.leave_one_out(20), 0.8, 0.95),
        pytest.param(conformal.jackknife_minmax, resample.leave_one_out(20), 0.9, 1.0, marks=pytest.mark.slow),
        pytest.param(conformal.cv_plus, resample.k_fold(KEY, 20, 5), 0.675, 0.97, marks=pytest.mark.slow),
    ],
    ids=["split", "jackknife", "minmax", "folds"],
)
def test_new_cases_are_covered_as_promised(method, plan, least, most):
    """One new case each of 2000 data sets, level 0.9: exactly 18/20 for 19 calibration cases, at least what is proven
    for the others and not much above the level; binomial limits of one in a million.
    """
    data, new, y = sets_of_lines(np.random.default_rng(2), 2000, plan.n, 1)
    got = method(predict(KEY, learn.LeastSquares(), data, plan, new), level=0.9)
    covered = int(got.covers(y).sum())
    assert scipy.stats.binom.cdf(covered, 2000, least) > 1e-6
    assert most == 1 or scipy.stats.binom.sf(covered - 1, 2000, most) > 1e-6
    assert got.guarantee == pytest.approx(least)


@pytest.mark.slow
def test_bootstrap_samples_cover_as_promised():
    """As above, with a number of samples drawn as theorem 1 asks, and of other sizes in several plans."""
    random, covered, n = np.random.default_rng(3), 0, 20
    for seed in range(4):
        rows = random.binomial(200, (1 - 1 / (n + 1)) ** n)
        data, new, y = sets_of_lines(random, 250, n, 1)
        plan = resample.bootstrap(jax.random.key(seed), n, int(rows))
        found = predict(KEY, learn.LeastSquares(ridge=0.1), data, plan, new)
        covered += int(conformal.jackknife_plus_after_bootstrap(found, level=0.9).covers(y).sum())
    assert scipy.stats.binom.cdf(covered, 1000, 0.8) > 1e-6
    assert scipy.stats.binom.sf(covered - 1, 1000, 0.97) > 1e-6


@pytest.mark.parametrize("score", ["lac", "aps"])
def test_sets_of_a_split_hold_the_class_as_promised(score):
    """Scores without ties, 19 calibration cases, level 0.9: 18/20 of 3000 new classes, each with cases of its own."""
    random, sets, n = np.random.default_rng(4), 3000, 19
    shares = random.dirichlet([0.7, 1.0, 1.5], size=(sets, 1, n + 2))
    y = np.eye(3)[(random.random((sets, n + 2, 1)) > shares[:, 0].cumsum(-1)).sum(-1).clip(0, 2)]
    told = random.dirichlet([3.0, 2.0, 1.0], size=(sets, 1, n + 2)) / 2 + shares / 2  # a model that is not right
    train = np.eye(n + 1, dtype=np.uint8)[n:]
    plan = resample.from_weights(train, 1 - train)
    failure = np.zeros((sets, 1), np.uint8)
    given = Predicted(
        told[:, :, n + 1 :], told[:, :, : n + 1], y[:, : n + 1], plan, "m", "y", "classification", (), failure
    )
    got = conformal.split_sets(given, score=score, level=0.9)
    covered = int(got.covers(y[:, n + 1 :]).sum())
    assert 1e-6 < scipy.stats.binom.cdf(covered, sets, 0.9) < 1 - 1e-6


# Classes

CLASSES = RANDOM.integers(0, 3, N)
ONE_HOT = np.eye(3)[CLASSES]


def classified(plan, y=CLASSES, **options):
    """Probabilities by logistic regression of scikit-learn, which is told more than there is to learn."""
    models = [LogisticRegression().fit(X + 0.3 * ONE_HOT, y, weights) for weights in plan.train]
    cases, new = (np.stack([m.predict_proba(x) for m in models]) for x in (X + 0.3 * ONE_HOT, NEW))
    given = {"task": "classification", "classes": ("a", "b", "c")} | options
    return Predicted.from_predictions(np.eye(3)[y], cases, new, plan.train, plan.test, **given)


def aps(p, label, u):
    return sum(p[c] for c in range(3) if p[c] > p[label]) + u * p[label]


@pytest.mark.parametrize("score", ["lac", "aps"])
@pytest.mark.parametrize(("method", "plan"), [("cross", FOLDS), ("split", SPLIT)], ids=["folds", "split"])
def test_sets_are_the_formulas_of_the_papers(score, method, plan):
    """Vovk's p-values and the rule of Romano et al. 2020, case by case."""
    given, level = classified(plan), 0.85
    row = plan.test.argmax(0) if method == "cross" else np.zeros(N, int)
    used = np.flatnonzero(plan.test.any(0))
    random = np.random.default_rng(5)
    u, v = random.random(len(used)), random.random(M)
    of = {"lac": lambda p, label, _: 1 - p[label], "aps": aps}[score]
    own = [of(given.cases[row[i], i], CLASSES[i], share) for i, share in zip(used, u, strict=True)]
    function = conformal.cross_sets if method == "cross" else conformal.split_sets
    got = function(given, score=score, level=level, seed=5)
    for j in range(M):
        for label in range(3):
            theirs = [of(given.new[row[i], j], label, v[j]) for i in used]
            smaller = sum(a < b - 1e-12 for a, b in zip(own, theirs, strict=True))
            assert got.p_values[j, label] == pytest.approx((len(used) - smaller + 1) / (len(used) + 1))
            assert got.member[j, label] == (smaller < level * (len(used) + 1))
        assert got.names(j) == tuple("abc"[label] for label in range(3) if got.member[j, label])


def test_mapie_has_the_same_sets_of_a_split():
    pytest.importorskip("mapie")
    from mapie.classification import SplitConformalClassifier

    train, held = SPLIT.train[0] > 0, SPLIT.test[0] > 0
    model = LogisticRegression().fit(X[train], CLASSES[train])
    given = Predicted.from_predictions(
        ONE_HOT,
        model.predict_proba(X)[None],
        model.predict_proba(NEW)[None],
        SPLIT.train,
        SPLIT.test,
        task="classification",
    )
    theirs = SplitConformalClassifier(model, confidence_level=0.8).conformalize(X[held], CLASSES[held])
    want = theirs.predict_set(NEW)[1][:, :, 0]
    np.testing.assert_array_equal(conformal.split_sets(given, level=0.8).member, want)


def test_a_single_column_stands_for_two_classes():
    y, scores = (CLASSES > 0) * 1.0, RANDOM.random((6, N + M))
    one = Predicted.from_predictions(y, scores[:, :N], scores[:, N:], FOLDS.train, FOLDS.test, task="classification")
    both = Predicted.from_predictions(
        np.stack([1 - y, y], -1),
        np.stack([1 - scores[:, :N], scores[:, :N]], -1),
        np.stack([1 - scores[:, N:], scores[:, N:]], -1),
        FOLDS.train,
        FOLDS.test,
        task="classification",
        classes=("no", "yes"),
    )
    for score in ("lac", "aps"):
        got, want = (conformal.cross_sets(given, score=score, level=0.7) for given in (one, both))
        np.testing.assert_array_equal(got.member, want.member)
    assert (got.classes, want.classes) == (("0", "1"), ("no", "yes"))
    named = replace(one, classes=("yes",))
    assert conformal.cross_sets(named).classes == ("not yes", "yes")
    truth = (np.arange(M) % 2) * 1.0
    words = np.where(truth > 0, "yes", "no")
    np.testing.assert_array_equal(got.covers(truth), want.covers(words))
    np.testing.assert_array_equal(got.covers(truth), got.covers(np.stack([1 - truth, truth], -1)))


# What is returned


def test_too_few_cases_exclude_nothing_and_say_so():
    few = resample.leave_one_out(10)
    data = Data(X[:10], Y[:10, None], ("a", "b", "c"))
    got = conformal.jackknife_plus(predict(KEY, learn.Mean(), data, few, NEW))
    assert np.isinf(got.lower).all()
    assert np.isinf(got.upper).all()
    assert "10 cases are too few for 95 %, which needs 19" in str(got)
    enough = conformal.jackknife_plus(predict(KEY, learn.Mean(), data, few, NEW), level=0.9)
    assert np.isfinite(enough.width).all()
    sets = conformal.split_sets(classified(SPLIT), level=0.99)
    assert sets.member.all()
    assert "too few" in sets.note


def test_ranks_are_exact():
    """0.55 times 100 is 55.00000000000001 in floating point."""
    values = np.arange(1.0, 100.0)
    train = np.eye(100, dtype=np.uint8)[99:]
    zeros = np.zeros((1, 100))
    given = Predicted.from_predictions(np.append(values, 0), zeros, zeros[:, :1], train, 1 - train)
    for level in (0.55, 0.07, 0.29, 0.9, 0.95):
        assert conformal.split(given, level=level).upper[0, 0] == round(100 * level)


def test_several_data_sets_and_outputs_are_each_by_itself():
    y = RANDOM.normal(size=(2, N, 2))
    for plan, method in (
        (LOO, conformal.jackknife_plus),
        (BOOTSTRAP, conformal.jackknife_plus_after_bootstrap),
        (SPLIT, conformal.split),
        (resample.leave_out(KEY, N, 0.5, 1, sets=2), conformal.split),
    ):
        rows = plan.resamples
        cases, new = (RANDOM.normal(size=(2, rows, count, 2)) for count in (N, M))
        given = Predicted(new, cases, y, plan, "m", "y", "regression", (), np.zeros((2, rows), np.uint8))
        got = method(given, level=0.9)
        assert got.lower.shape == got.upper.shape == got.prediction.shape == (2, M, 2)
        assert "each output by itself" in got.note
        for q, one in enumerate(given):
            for k in range(2):
                alone = replace(
                    one, new=one.new[..., k:][..., :1], cases=one.cases[..., k : k + 1], y=one.y[..., k : k + 1]
                )
                np.testing.assert_allclose(method(alone, level=0.9).upper[:, 0], got.upper[q, :, k], atol=1e-12)
        assert len(got.to_frame()) == 2 * M * 2
        assert list(got.to_frame())[:3] == ["set", "case", "output"]
        assert conformal.coverage(got, np.zeros((M, 2))).estimate.shape == (2, 2)


def test_coverage_is_a_share_with_the_interval_of_scipy():
    got = conformal.cv_plus(predicted(FOLDS), level=0.5)
    y = NEW @ [1.0, -2.0, 0.5] + np.linspace(-2, 2, M)
    inside = int(((got.lower[:, 0] <= y) & (y <= got.upper[:, 0])).sum())
    result, want = conformal.coverage(got, y), scipy.stats.binomtest(inside, M).proportion_ci()
    assert 0 < inside < M
    assert float(result.estimate) == pytest.approx(inside / M)
    assert (float(result.lower), float(result.upper)) == pytest.approx((want.low, want.high), abs=1e-9)  # rounding


def test_results_say_what_they_are():
    text = str(conformal.cv_plus(predicted(FOLDS), level=0.9))
    assert "CV+ (Barber, Candes, Ramdas & Tibshirani 2021): y by least squares" in text
    assert "9 new cases, 90% intervals, median width" in text
    assert "folds of one size (these have 6 to 7 cases)" in text
    assert str(conformal.split(predicted(SPLIT), level=0.9, alternative="less")).count("90% upper limits\n") == 1
    sets = conformal.cross_sets(classified(FOLDS), level=0.8)
    assert "9 new cases, 80% sets" in str(sets)
    frame = sets.to_frame()
    assert list(frame) == ["case", "p of a", "p of b", "p of c", "set", "level", "method", "learner"]
    assert next(iter(frame["set"])) == ", ".join(sets.names(0))


def test_the_promise_of_folds_is_that_of_the_paper():
    """Theorem 4 by hand for n = 40: K = 5 gives min(1.6 / 9, (7/8) / 6); every case a fold loses nothing."""
    assert conformal.cv_plus(predicted(LOO), level=0.9).guarantee == pytest.approx(0.8)
    five = predicted(resample.k_fold(KEY, N, 5))
    assert conformal.cv_plus(five, level=0.95).guarantee == pytest.approx(0.9 - min(1.6 / 9, (7 / 8) / 6))


# Mistakes

REPEATED, GROUPED = resample.k_fold(KEY, N, 5, 2), resample.k_fold(KEY, N, 5, groups=np.arange(N) // 2)
TRAINED = resample.from_weights(np.ones((N, N)), np.eye(N))
FEW = resample.bootstrap(KEY, N, 3)
LARGER = resample.leave_out(KEY, N, 0.25, 20)
SIZES = resample.from_weights(
    *(np.concatenate([getattr(p, w) for p in (RANDOM_SPLITS, LARGER)]) for w in ("train", "test"))
)
TIMES = resample.from_weights(LOO.train, LOO.test, times=np.arange(N))
TWICE = resample.from_weights(LOO.train, 2 * LOO.test)
HALF_TRAINED = resample.from_weights(np.where((np.arange(N) % 2)[None] > 0, LOO.train, 0), LOO.test)

WRONG = {
    "folds for the jackknife": (conformal.jackknife_plus, FOLDS, "leave out 6 to 7 each"),
    "bootstrap for the jackknife": (conformal.jackknife_plus, BOOTSTRAP, "one row of its own"),
    "folds for minmax": (conformal.jackknife_minmax, FOLDS, "leave out 6 to 7 each"),
    "half the cases for the jackknife": (conformal.jackknife_plus, HALF_TRAINED, "one row of its own"),
    "bootstrap for folds": (conformal.cv_plus, BOOTSTRAP, "a bootstrap"),
    "two divisions": (conformal.cv_plus, REPEATED, "2 divisions into folds"),
    "one split for folds": (conformal.cv_plus, SPLIT, "cases that no row tests"),
    "half the cases for folds": (conformal.cv_plus, HALF_TRAINED, "do not train on all"),
    "folds for the bootstrap": (conformal.jackknife_plus_after_bootstrap, FOLDS, "got folds"),
    "few samples": (conformal.jackknife_plus_after_bootstrap, FEW, "cases that every row trains on"),
    "samples of several sizes": (conformal.jackknife_plus_after_bootstrap, SIZES, "24 to 30 cases"),
    "several rows for a split": (conformal.split, FOLDS, "row=None of 6"),
    "trained cases": (conformal.jackknife_plus, TRAINED, "their row trains on"),
    "trained cases of folds": (conformal.cv_plus, TRAINED, "their row trains on"),
    "cases twice": (conformal.jackknife_plus, TWICE, "count more than once"),
    "groups": (conformal.cv_plus, GROUPED, "groups of cases"),
    "a series": (conformal.jackknife_plus, TIMES, "a series"),
}


@pytest.mark.parametrize(("method", "plan", "words"), WRONG.values(), ids=WRONG)
def test_other_plans_are_refused_by_their_weights(method, plan, words):
    zeros = np.zeros((plan.resamples, N, 1))
    failure = np.zeros(plan.resamples, np.uint8)
    given = Predicted(zeros[:, :M], zeros, Y[:, None], plan, "m", "y", "regression", (), failure)
    assert words in refused(lambda: method(given))


def test_the_name_of_a_plan_does_not_matter():
    given = predicted(FOLDS)
    order = RANDOM.permutation(6)
    mixed = replace(
        given,
        new=given.new[order],
        cases=given.cases[order],
        plan=resample.from_weights(FOLDS.train[order], FOLDS.test[order]),
    )
    np.testing.assert_allclose(conformal.cv_plus(mixed).upper, conformal.cv_plus(given).upper)


def test_failed_rows_are_never_left_out_unsaid():
    given = predicted(BOOTSTRAP)
    failed = replace(given, failure=(np.arange(30) == 3).astype(np.uint8))
    assert "1 failed of 30" in refused(lambda: conformal.jackknife_plus_after_bootstrap(failed))
    assert "1 failed rows were left out" in str(conformal.jackknife_plus_after_bootstrap(failed.without_failed()))
    loo = predicted(LOO)
    without = replace(loo, failure=(np.arange(N) == 3).astype(np.uint8)).without_failed()
    assert "39 rows for 40 cases" in refused(lambda: conformal.jackknife_plus(without))


@pytest.mark.usefixtures("own_messages")
def test_other_mistakes_get_one_sentence():
    given, sets = predicted(FOLDS), classified(FOLDS)
    assert "use split_sets or cross_sets" in refused(lambda: conformal.cv_plus(sets))
    assert "use split, cv_plus or" in refused(lambda: conformal.cross_sets(given))
    assert "belong together" in refused(lambda: conformal.cv_plus(replace(given, cases=given.cases[:, 1:])))
    unknown = replace(given, cases=np.full_like(given.cases, np.nan))
    assert "errors of the cases" in refused(lambda: conformal.cv_plus(unknown))
    infinite = replace(given, new=np.full_like(given.new, np.inf))
    assert "new cases" in refused(lambda: conformal.cv_plus(infinite))
    no_shares = replace(sets, new=2 * sets.new)
    assert "probabilities" in refused(lambda: conformal.cross_sets(no_shares, score="aps"))
    conformal.cross_sets(no_shares)  # any scores will do for "lac"
    unknown = replace(sets, cases=np.full_like(sets.cases, np.nan))
    assert "finite predictions" in refused(lambda: conformal.cross_sets(unknown))
    found = conformal.cross_sets(sets)
    assert "'d'" in refused(lambda: found.covers(["d"] * M))
    assert "1 of them" in refused(lambda: found.covers(["a"]))
    refused(lambda: found.covers(np.ones((M, 3))))
    refused(lambda: conformal.cv_plus(given).covers(np.ones(M + 1)))
    refused(lambda: conformal.cv_plus(given).covers(np.full(M, np.nan)))
    refused(lambda: conformal.split(predicted(SPLIT), row=1))


@pytest.mark.slow
def test_diabetes_with_networks_from_plan_to_coverage():
    """The corridor as users walk it."""
    data = datasets.diabetes()
    some, rest = np.arange(60), np.arange(60, 100)
    train = replace(data, x=data.x[some], y=data.y[some])
    plan = resample.k_fold(KEY, 60, 4)
    network = learn.Normalised(learn.Descent(learn.MLP((3,)), steps=20))
    given = predict(KEY, network, train, plan, replace(data, x=data.x[rest], y=data.y[rest]))
    got = conformal.cv_plus(given, level=0.8)
    assert got.unit == data.target
    assert 0.5 < float(conformal.coverage(got, data.y[rest]).estimate) <= 1


@pytest.mark.slow
@pytest.mark.timeout(900)  # some twenty programs are compiled
def test_the_benchmark_runs_small():
    """Its figure as well; nothing is written. The intervals are wider than those of who knows the law, 1.645."""
    lines = quick("prediction_intervals.py").split("\n2. ")[1].splitlines()
    rows = [line.split() for line in lines if "jackknife+ " in line]
    assert len(rows) == 2
    assert all(float(row[-2]) > 1.645 for row in rows)
