"""Metrics and ROC curves: against scikit-learn row by row, all pairs counted one by one, SciPy, published values,
closed forms and simulations.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.special
import scipy.stats
import sklearn.metrics as peer
from scipy.spatial import ConvexHull
from sklearn.isotonic import IsotonicRegression

from jaxgen import loss
from jaxgen.stats import estimate, metrics
from jaxgen.stats.metrics import Predictions, roc
from jaxgen.types import Losses

EXACT = {"rtol": 1e-12, "atol": 1e-14}
"""The same few hundred operations on numbers near 1 in another order."""
GRID = np.linspace(0.05, 1, 20)


def arrays(c=3, rows=(6,), n=40, ties=False, counts=True, seed=0):
    """Targets [n, c], scores [*rows, n, c] and weights [*rows, n]; every row tests all classes."""
    random = np.random.default_rng(seed)
    y = np.eye(c)[np.arange(n) % c]
    scores = scipy.special.softmax(y + random.normal(size=(*rows, n, c)), axis=-1)
    weights = random.integers(0, 4 if counts else 2, (*rows, n))
    weights[..., : 2 * c] = 1
    return y, random.multinomial(10, scores) / 10 if ties else scores, weights


def given(**options):
    return Predictions.from_arrays(*arrays(**options))


def binary(truth, score, weights=None):
    """Predictions of one model from one column."""
    return Predictions.from_arrays(np.asarray(truth, float), np.asarray(score, float), weights)


# Against scikit-learn, row by row: ours of all rows, its function of true numbers, scores and weights

AGAINST = {
    "confusion": (
        metrics.confusion,
        lambda t, s, w: peer.confusion_matrix(t, s.argmax(-1), labels=range(s.shape[-1]), sample_weight=w),
    ),
    "accuracy": (metrics.accuracy, lambda t, s, w: peer.accuracy_score(t, s.argmax(-1), sample_weight=w)),
    "balanced": (
        metrics.balanced_accuracy,
        lambda t, s, w: peer.balanced_accuracy_score(t, s.argmax(-1), sample_weight=w),
    ),
    "balanced, adjusted": (
        lambda p: metrics.balanced_accuracy(p, adjusted=True),
        lambda t, s, w: peer.balanced_accuracy_score(t, s.argmax(-1), sample_weight=w, adjusted=True),
    ),
    "average precision": (
        lambda p: metrics.average_precision(p, positive=0),
        lambda t, s, w: peer.average_precision_score(t == 0, s[:, 0], sample_weight=w),
    ),
    "auc of one class": (
        lambda p: roc.auc(p, positive=0),
        lambda t, s, w: peer.roc_auc_score(t == 0, s[:, 0], sample_weight=w),
    ),
    "hand_till": (
        roc.hand_till,
        lambda t, s, w: (
            peer.roc_auc_score(*repeated(t, s, w), multi_class="ovo")
            if s.shape[-1] > 2
            else peer.roc_auc_score(t, s[:, 1], sample_weight=w)
        ),
    ),
}
for average in ("macro", "weighted", "micro", "each", "binary"):
    theirs = {"average": {"each": None, "binary": None}.get(average, average)}
    pick = (lambda v: v[1]) if average == "binary" else (lambda v: v)
    ask = {"average": average, "positive": 1}
    AGAINST |= {
        f"precision, {average}": (
            lambda p, a=ask: metrics.precision(p, **a),
            lambda t, s, w, o=theirs, pick=pick: pick(peer.precision_score(t, s.argmax(-1), sample_weight=w, **o)),
        ),
        f"recall, {average}": (
            lambda p, a=ask: metrics.recall(p, **a),
            lambda t, s, w, o=theirs, pick=pick: pick(peer.recall_score(t, s.argmax(-1), sample_weight=w, **o)),
        ),
        f"F 0.5, {average}": (
            lambda p, a=ask: metrics.f_beta(p, beta=0.5, **a),
            lambda t, s, w, o=theirs, pick=pick: pick(
                peer.fbeta_score(t, s.argmax(-1), beta=0.5, sample_weight=w, **o)
            ),
        ),
        f"average precision, {average}": (
            lambda p, a=ask: metrics.average_precision(p, **a),
            lambda t, s, w, o=theirs, pick=pick: pick(
                peer.average_precision_score(np.eye(s.shape[-1])[t], s, sample_weight=w, **o)
            ),
        ),
        f"auc, {average}": (
            lambda p, a=ask: roc.auc(p, **a),
            lambda t, s, w, o=theirs, pick=pick: pick(
                peer.roc_auc_score(np.eye(s.shape[-1])[t], s, sample_weight=w, **o)
            ),
        ),
    }


def repeated(truth, scores, weights):
    return np.repeat(truth, weights), np.repeat(scores, weights, axis=0)


@pytest.mark.parametrize("c", [2, 3, 4])
@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "ties"])
@pytest.mark.parametrize("name", AGAINST)
def test_every_row_has_the_value_of_scikit_learn(name, c, ties):
    ours, theirs = AGAINST[name]
    y, scores, weights = arrays(c, ties=ties)
    got = ours(Predictions.from_arrays(y, scores, weights))
    assert got.shape[0] == 6
    assert got.dtype == np.float64
    for value, s, w in zip(got, scores, weights, strict=True):
        np.testing.assert_allclose(value, theirs(y.argmax(-1), s, w), **EXACT)


@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "ties"])
def test_curves_are_those_of_scikit_learn(ties):
    y, scores, weights = arrays(rows=(), ties=ties)
    p, truth, score = Predictions.from_arrays(y, scores, weights), y[:, 1] == 1, scores[:, 1]
    got, want = (
        metrics.precision_recall(p, positive=1),
        peer.precision_recall_curve(truth, score, sample_weight=weights),
    )
    np.testing.assert_allclose(got.precision, want[0], **EXACT)
    np.testing.assert_allclose(got.recall, want[1], **EXACT)
    np.testing.assert_array_equal(got.threshold, [*want[2], np.inf])
    got, want = roc.curve(p, positive=1), peer.roc_curve(truth, score, sample_weight=weights, drop_intermediate=False)
    for ours, theirs in zip((got.false_positive, got.true_positive, got.threshold), want, strict=True):
        np.testing.assert_allclose(ours, theirs, **EXACT)
    assert got.area == pytest.approx(float(roc.auc(p, positive=1)), rel=1e-12)


# Identities of everything that has a value a row

EVERY = {
    **{name: ours for name, (ours, _) in AGAINST.items()},
    "precision_at": lambda p: metrics.precision_at(p, GRID, positive=1),
    "gains": lambda p: metrics.gains(p, GRID, positive=1),
    "lift": lambda p: metrics.lift(p, GRID, positive=1),
    "true_positive_at": lambda p: roc.true_positive_at(p, GRID, positive=1),
    "operating_point": lambda p: np.stack(
        [
            getattr(
                roc.operating_point(p, false_positive_cost=2.0, false_negative_cost=1.0, prior=0.3, positive=1), part
            )
            for part in ("threshold", "false_positive", "true_positive", "cost", "slope")
        ],
        axis=-1,
    ),
    "interval": lambda p: np.stack(
        [getattr(roc.interval(p, positive=1), part) for part in ("estimate", "standard_error", "lower", "upper")],
        axis=-1,
    ),
    "delong": lambda p: np.stack(
        [getattr(roc.delong(p, shifted(p), positive=1), part) for part in ("statistic", "df", "p_value")], axis=-1
    ),
}


def shifted(p):
    """A second classifier, which ranks by another class."""
    return Predictions(p.truth, np.roll(p.scores, 1, axis=-1), p.weights, p.classes, "shifted")


@pytest.mark.parametrize("name", EVERY)
def test_a_weight_is_a_number_of_cases(name):
    y, scores, weights = arrays(rows=(), ties=True)
    again = Predictions.from_arrays(np.repeat(y, weights, axis=0), np.repeat(scores, weights, axis=0))
    np.testing.assert_allclose(EVERY[name](Predictions.from_arrays(y, scores, weights)), EVERY[name](again), **EXACT)


@pytest.mark.parametrize("name", EVERY)
def test_the_order_of_cases_and_the_scores_of_others_do_not_matter(name):
    y, scores, weights = arrays(ties=True)
    order = np.random.default_rng(1).permutation(len(y))
    hidden = np.where(weights[..., None] > 0, scores, np.nan)
    want = EVERY[name](Predictions.from_arrays(y, scores, weights))
    np.testing.assert_allclose(
        EVERY[name](Predictions.from_arrays(y[order], hidden[:, order], weights[:, order])), want, **EXACT
    )


@pytest.mark.parametrize("name", EVERY)
def test_rows_and_sets_are_described_each(name):
    y, scores, weights = arrays(rows=(2, 3))
    sets = np.stack([y, np.roll(y, 1, axis=0)])
    got = EVERY[name](Predictions.from_arrays(sets, scores, weights))
    assert got.shape[:2] == (2, 3)
    for q, r in itertools.product(range(2), range(3)):
        alone = EVERY[name](Predictions.from_arrays(sets[q], scores[q, r], weights[q, r]))
        assert alone.shape == got.shape[2:]
        np.testing.assert_allclose(alone, got[q, r], **EXACT)
        np.testing.assert_allclose(
            EVERY[name](Predictions.from_arrays(sets, scores, weights)[q][r]), got[q, r], **EXACT
        )


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in EVERY
        if name not in ("operating_point",) and not name.startswith(("hand", "average precision, m", "auc, m"))
    ],
)
def test_rankings_of_one_class_do_not_depend_on_the_scale_of_scores(name):
    """All scores through one rising function, which also keeps all decisions."""
    y, scores, weights = arrays()
    changed = np.log(scores) * 3 + 7
    np.testing.assert_allclose(
        EVERY[name](Predictions.from_arrays(y, changed, weights)),
        EVERY[name](Predictions.from_arrays(y, scores, weights)),
        **EXACT,
    )


@pytest.mark.parametrize("name", EVERY)
def test_one_column_is_two(name):
    y, scores, weights = arrays(2)
    two = np.stack([1 - scores[..., 1], scores[..., 1]], axis=-1)
    want = EVERY[name](Predictions.from_arrays(y, two, weights))
    for truth, score in ((y[:, 1:], scores[..., 1:]), (y[:, 1], scores[..., 1])):
        np.testing.assert_array_equal(EVERY[name](Predictions.from_arrays(truth, score, weights)), want)


@pytest.mark.parametrize("k", [1, 3])
def test_accuracy_is_what_the_zero_one_loss_leaves(k):
    y, scores, weights = arrays(3)
    y, scores = (y, scores) if k == 3 else (y[:, 1:2], scores[..., 1:2])
    losses = Losses.from_predictions(y, scores, weights, weights, loss.zero_one)
    np.testing.assert_allclose(metrics.accuracy(Predictions.from_arrays(y, scores, weights)), 1 - losses.g, **EXACT)


def test_values_of_rows_are_a_distribution():
    p = given(rows=(50,))
    values = roc.hand_till(p)
    assert estimate.summary(values).raw.avr == pytest.approx(values.mean())


def test_pooled_rows_are_one_model():
    p = given(rows=(3,))
    pooled = p.pooled()
    np.testing.assert_array_equal(metrics.confusion(pooled), metrics.confusion(p).sum(0))
    assert pooled.rows == ()
    scores = [p.scores[r, n, 1] for r in range(3) for n in range(40) for _ in range(p.weights[r, n])]
    truth = [p.truth[r, n] == 1 for r in range(3) for n in range(40) for _ in range(p.weights[r, n])]
    assert roc.auc(pooled, positive=1) == pytest.approx(peer.roc_auc_score(truth, scores), rel=1e-12)


# The slides

TEN = (
    [1, 1, 0, 1, 1, 0, 0, 0, 1, 0],
    [169.752, 109.200, 19.210, 1.905, -2.75, -12.640, -29.124, -83.222, -91.554, -128.212],
)
"""Scott & Variyam, "Plotting tp versus fp"."""


@pytest.mark.parametrize(("right", "accuracy"), [((965, 2), 0.967), ((930, 19), 0.949), ((980, 0), 0.980)])
def test_the_detectors_of_rare_cases_on_the_slides(right, accuracy):
    """20 positive cases of 1000."""
    truth, decided = (
        np.repeat([0, 0, 1, 1], [right[0], 980 - right[0], right[1], 20 - right[1]]),
        np.repeat([0, 1, 1, 0], [right[0], 980 - right[0], right[1], 20 - right[1]]),
    )
    p = binary(truth, decided)
    assert metrics.confusion(p).tolist() == [[right[0], 980 - right[0]], [20 - right[1], right[1]]]
    assert metrics.accuracy(p) == pytest.approx(accuracy, rel=1e-12)
    assert metrics.recall(p) == right[1] / 20
    assert metrics.balanced_accuracy(p) == pytest.approx((right[0] / 980 + right[1] / 20) / 2)


def test_the_curve_of_ten_examples_on_the_slides():
    got = roc.curve(binary(*TEN))
    np.testing.assert_allclose(got.true_positive * 5, [0, 1, 2, 2, 3, 4, 4, 4, 4, 5, 5], **EXACT)
    np.testing.assert_allclose(got.false_positive * 5, [0, 0, 0, 1, 1, 1, 2, 3, 4, 4, 5], **EXACT)
    assert got.hull.tolist() == [0, 2, 5, 9, 10]
    assert (got.area, got.hull_area) == (pytest.approx(19 / 25), pytest.approx(0.86))
    equal = roc.operating_point(binary(*TEN))
    assert (equal.threshold, equal.slope, equal.cost) == (-2.75, 1, pytest.approx(0.2))


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_f_is_the_formula_of_the_slides(beta):
    p = given()
    precision, recall = metrics.precision(p, average="each"), metrics.recall(p, average="each")
    np.testing.assert_allclose(
        metrics.f_beta(p, beta=beta, average="each"),
        (1 + beta**2) * precision * recall / (beta**2 * precision + recall),
        **EXACT,
    )


# AUC


def pairs(truth, score):
    """1, 1/2 or 0 for every pair of a positive and another case, [n1, n0]."""
    return np.array([[1.0 if a > b else 0.5 if a == b else 0.0 for b in score[~truth]] for a in score[truth]])


@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "ties"])
def test_auc_and_its_covariance_are_what_counting_all_pairs_gives(ties):
    y, scores, weights = arrays(rows=(4,), n=30, ties=ties)
    p, others = (
        Predictions.from_arrays(y, scores, weights),
        (shifted(Predictions.from_arrays(y, scores, weights)), given(rows=(4,), n=30, ties=ties, seed=1)),
    )
    others = tuple(
        Predictions(p.truth, one.scores, p.weights, p.classes, name) for one, name in zip(others, "bc", strict=True)
    )
    got = roc.delong(p, *others, positive=1)
    for row in range(4):
        columns = [repeated(p.truth[row], one.scores[row, :, 1], weights[row]) for one in (p, *others)]
        psi = np.stack([pairs(truth == 1, score) for truth, score in columns])
        n1, n0 = psi.shape[1:]
        covariance = np.cov(psi.mean(2)) / n1 + np.cov(psi.mean(1)) / n0
        np.testing.assert_allclose(got.auc[row], psi.mean((1, 2)), **EXACT)
        np.testing.assert_allclose(got.covariance[row], covariance, **EXACT)
        contrast = np.array([[-1, 1, 0], [-1, 0, 1]])
        differences, spread = contrast @ psi.mean((1, 2)), contrast @ covariance @ contrast.T
        statistic = differences @ np.linalg.solve(spread, differences)
        assert got.statistic[row] == pytest.approx(statistic, rel=1e-9)  # a solution of two equations
        assert got.p_value[row] == pytest.approx(scipy.stats.chi2.sf(statistic, 2), rel=1e-9)
        single = roc.interval(p[row], positive=1)
        assert single.estimate == pytest.approx(got.auc[row, 0])
        assert single.standard_error == pytest.approx(math.sqrt(covariance[0, 0]))
        assert roc.auc(p, positive=1)[row] == pytest.approx(
            scipy.stats.mannwhitneyu(*(columns[0][1][columns[0][0] == 1], columns[0][1][columns[0][0] != 1])).statistic
            / (n1 * n0)
        )


PATIENTS = """
3.0 5.8 10 0 3.2 6.3 5 1 3.9 6.8 3 1 2.8 4.8 6 0 3.2 5.8 3 1 0.9 4.0 5 0 2.5 5.7 8 0 1.6 5.6 5 1 3.8 5.7 5 1 3.7 6.7 6 1
3.2 5.4 4 1 3.8 6.6 6 1 4.1 6.6 5 1 3.6 5.7 5 1 4.3 7.0 4 1 3.6 6.7 4 0 2.3 4.4 6 1 4.2 7.6 4 0 4.0 6.6 6 0 3.5 5.8 6 1
3.8 6.8 7 1 3.0 4.7 8 0 4.5 7.4 5 1 3.7 7.4 5 1 3.1 6.6 6 1 4.1 8.2 6 1 4.3 7.0 5 1 4.3 6.5 4 1 3.2 5.1 5 1 2.6 4.7 6 1
3.3 6.8 6 0 1.7 4.0 7 0 3.7 6.1 5 1 3.3 6.3 7 1 4.2 7.7 6 1 3.5 6.2 5 1 2.9 5.7 9 0 2.1 4.8 7 1 2.8 6.2 8 0 4.0 7.0 7 1
3.3 5.7 6 1 3.7 6.9 5 1 3.6 6.6 5 1
"""
OVARIAN = np.array(PATIENTS.split(), float).reshape(-1, 4)
"""Albumin, total protein, total score (K-G is 10 minus it) and outcome of 43 patients (DeLong, DeLong & Clarke-Pearson
1988, as in SAS/STAT's PROC LOGISTIC).
"""


def test_delong_gives_the_numbers_that_sas_publishes():
    """SAS/STAT User's Guide, PROC LOGISTIC, "Comparing Receiver Operating Characteristic Curves"."""
    kg, albumin, protein = (
        Predictions.from_arrays(OVARIAN[:, 3], score, learner=name)
        for score, name in ((10 - OVARIAN[:, 2], "K-G"), (OVARIAN[:, 0], "albumin"), (OVARIAN[:, 1], "protein"))
    )
    for p, want in (
        (albumin, "0.7366 0.0927 0.5549 0.9182"),
        (kg, "0.7258 0.1028 0.5243 0.9273"),
        (protein, "0.6478 0.1000 0.4518 0.8439"),
    ):
        got = roc.interval(p, scale="identity")
        assert " ".join(f"{v:.4f}" for v in (got.estimate, got.standard_error, got.lower, got.upper)) == want
    test = roc.delong(kg, albumin, protein)
    assert (f"{test.statistic:.4f}", int(test.df), f"{test.p_value:.4f}") == ("2.5340", 2, "0.2817")
    for second, want in (
        (1, "0.0108 0.0953 -0.1761 0.1976 0.0127 0.9102"),
        (2, "-0.0780 0.1046 -0.2830 0.1271 0.5554 0.4561"),
    ):
        got = test.difference(0, second)
        assert (
            " ".join(
                f"{v:.4f}"
                for v in (
                    got.estimate,
                    got.standard_error,
                    got.lower,
                    got.upper,
                    got.parts["z"] ** 2,
                    got.parts["p_value"],
                )
            )
            == want
        )


def test_two_classifiers_differ_as_their_squares_say():
    p, other = given(ties=True), given(ties=True, seed=1)
    other = Predictions(p.truth, other.scores, p.weights, p.classes, "other")
    test = roc.delong(p, other, positive=1)
    two, greater, less = (test.difference(alternative=alternative) for alternative in ("two-sided", "greater", "less"))
    np.testing.assert_allclose(two.parts["z"] ** 2, test.statistic, rtol=1e-9)
    np.testing.assert_allclose(two.parts["p_value"], test.p_value, rtol=1e-9)
    np.testing.assert_allclose(greater.parts["p_value"] + less.parts["p_value"], 1, **EXACT)
    back = roc.delong(other, p, positive=1).difference()
    np.testing.assert_allclose([back.estimate, back.lower], [-two.estimate, -two.upper], **EXACT)
    np.testing.assert_allclose(back.parts["p_value"], two.parts["p_value"], rtol=1e-9)


def simulated(distance, sets, n1, n0, noise=0.0, seed=0):
    """Binormal scores of one or two classifiers, which share their signal: AUC = Phi(distance / sqrt(2 (1 +
    noise^2))).
    """
    random = np.random.default_rng(seed)
    truth = np.r_[np.ones(n1), np.zeros(n0)]
    signal = distance * truth + random.normal(size=(sets, n1 + n0))
    return tuple(Predictions.from_arrays(truth, signal + noise * random.normal(size=signal.shape)) for _ in range(2))


def test_the_mean_of_delong_variances_is_the_variance_of_the_auc():
    """Exactly so: it is (n1 + n0 + 1) / (12 n1 n0) if scores say nothing, and DeLong's estimate is larger by 1 / (12
    n1 n0).

    Its expectation follows from those of the placements' variances. Limits are 5 standard errors of a mean of 2000
    values, one in a million.
    """
    n1, n0 = 12, 20
    got = roc.interval(simulated(0.0, 2000, n1, n0)[0])
    for values, want in (
        (got.standard_error**2, (n1 + n0 + 2) / (12 * n1 * n0)),
        ((got.estimate - 0.5) ** 2, (n1 + n0 + 1) / (12 * n1 * n0)),
    ):
        assert abs(values.mean() - want) < 5 * scipy.stats.sem(values)


def test_intervals_cover_and_tests_reject_as_often_as_they_say():
    """500 data sets; a count outside the limits has a chance of one in a million if the level is right. Near 1 the
    plain interval is too low.
    """
    low, high = (int(v) for v in scipy.stats.binom.interval(1 - 1e-6, 500, 0.95))
    for distance in (1.0, 2.5):
        truth = scipy.stats.norm.cdf(distance / math.sqrt(2))
        got = roc.interval(simulated(distance, 500, 40, 60)[0])
        assert low <= np.sum((got.lower <= truth) & (truth <= got.upper)) <= high
    first, second = simulated(1.0, 500, 40, 60, noise=1.0)
    assert low <= np.sum(roc.delong(first, second).p_value > 0.05) <= high
    assert (
        np.mean(roc.delong(*(simulated(d, 100, 40, 60, noise=0.5)[i] for i, d in enumerate((0.5, 2.0)))).p_value < 0.05)
        > 0.9
    )


@pytest.mark.parametrize("scale", ["logit", "identity"])
def test_intervals_are_the_formula(scale):
    p = given(rows=(5,))
    got = roc.interval(p, level=0.9, positive=1, scale=scale)
    z, a, s = scipy.stats.norm.ppf(0.95), got.estimate, got.standard_error
    if scale == "identity":
        np.testing.assert_allclose([got.lower, got.upper], [a - z * s, a + z * s], **EXACT)
    else:
        odds = a / (1 - a)
        limits = [odds * np.exp(sign * z * s / (a * (1 - a))) for sign in (-1, 1)]
        np.testing.assert_allclose([got.lower, got.upper], [o / (1 + o) for o in limits], **EXACT)
        assert (got.lower > 0).all()
        assert (got.upper < 1).all()


# Hull and operating point


def exact_hull(points):
    """Upper hull of points with whole numbers, by Andrew's monotone chain: positions of its corners."""
    kept = []
    for i, (x, y) in enumerate(points):
        while len(kept) > 1 and (points[kept[-1]][0] - points[kept[-2]][0]) * (y - points[kept[-2]][1]) >= (
            points[kept[-1]][1] - points[kept[-2]][1]
        ) * (x - points[kept[-2]][0]):
            kept.pop()
        kept.append(i)
    return kept


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "ties"])
def test_the_hull_is_exact_and_that_of_scipy(seed, ties):
    p = given(c=2, rows=(), n=int(np.random.default_rng(seed).integers(8, 90)), ties=ties, seed=seed)
    got = roc.curve(p)
    n1, n0 = (p.weights[p.truth == c].sum() for c in (1, 0))
    points = [(round(x * n0), round(y * n1)) for x, y in zip(got.false_positive, got.true_positive, strict=True)]
    assert got.hull.tolist() == exact_hull(points)
    closed = ConvexHull(np.array([*points, (n0, 0)]) / (n0, n1))
    assert got.hull_area == pytest.approx(closed.volume, rel=1e-12)
    calibrated = IsotonicRegression().fit(p.scores[:, 1], p.truth, sample_weight=p.weights).predict(p.scores[:, 1])
    used = p.weights > 0
    merged = peer.roc_auc_score(
        p.truth[used], np.round(calibrated, 12)[used], sample_weight=p.weights[used]
    )  # blocks of one mean are one score
    assert got.hull_area == pytest.approx(merged, rel=1e-9)
    assert got.hull_area >= got.area - 1e-12


@pytest.mark.parametrize("prior", [None, 0.02, 0.5, 0.9])
@pytest.mark.parametrize("costs", [(1.0, 1.0), (1.0, 10.0), (3.0, 0.2)], ids=str)
def test_the_operating_point_has_the_least_expected_cost_of_all_thresholds(prior, costs):
    y, scores, weights = arrays(2, rows=(5,), ties=True)
    p = Predictions.from_arrays(y, scores, weights)
    got = roc.operating_point(p, false_positive_cost=costs[0], false_negative_cost=costs[1], prior=prior)
    for row in range(5):
        truth, score = repeated(y[:, 1] == 1, scores[row, :, 1], weights[row])
        share = Fraction(truth.mean() if prior is None else prior)
        all_costs = {}
        for threshold in [math.inf, *sorted(set(score), reverse=True)]:
            wrong, missed = (
                Fraction(int(np.sum(part)), int(np.sum(of)))
                for part, of in (((score >= threshold) & ~truth, ~truth), ((score < threshold) & truth, truth))
            )
            all_costs[threshold] = (1 - share) * Fraction(costs[0]) * wrong + share * Fraction(costs[1]) * missed
        least = min(all_costs.values())
        assert got.cost[row] == pytest.approx(float(least), rel=1e-12)
        assert got.threshold[row] == next(t for t, cost in all_costs.items() if float(cost - least) < 1e-12)
        assert got.slope[row] == pytest.approx(float((1 - share) / share) * costs[0] / costs[1])
        curve = roc.curve(p[row])
        corner = curve.hull[curve.threshold[curve.hull] == got.threshold[row]]
        assert curve.true_positive[corner] == got.true_positive[row]
        above = (
            curve.true_positive
            - got.true_positive[row]
            - got.slope[row] * (curve.false_positive - got.false_positive[row])
        )
        assert above.max() < 1e-9  # rates near 1 times a slope of 735 at most


def test_of_equal_costs_the_fewest_false_positives_are_taken_whatever_the_rounding():
    """Equal costs and the prior of the cases: the cost is the number of errors over n, whose sum of two rounded shares
    differs in the last digit.
    """
    random = np.random.default_rng(0)
    truth = np.r_[0, 1, random.integers(0, 2, 21)]
    score = random.normal(size=(300, 23)) + truth
    got = roc.operating_point(Predictions.from_arrays(truth, score))
    for row, threshold in zip(score, got.threshold, strict=True):
        errors = {t: int(np.sum((row >= t) != truth)) for t in [math.inf, *sorted(row, reverse=True)]}
        assert threshold == min(errors, key=lambda t: errors[t])


def test_the_slope_for_equal_costs_is_that_of_the_slides():
    p = given(c=2, rows=())
    n1, n0 = (p.weights[p.truth == c].sum() for c in (1, 0))
    assert roc.operating_point(p).slope == pytest.approx(n0 / n1, rel=1e-12)


def test_curves_at_given_rates_pass_through_their_points():
    p = given(rows=(), ties=True)
    curve = roc.curve(p, positive=1)
    for rate in np.unique(curve.false_positive):
        assert roc.true_positive_at(p, np.array([rate]), positive=1) == pytest.approx(
            curve.true_positive[curve.false_positive == rate].max(), abs=1e-10
        )  # steps of 1e-12 along the curve
    grid = np.linspace(0, 1, 2001)
    assert np.trapezoid(roc.true_positive_at(p, grid, positive=1), grid) == pytest.approx(
        curve.area, abs=1e-3
    )  # 2000 steps


def test_curves_at_rates_drawn_at_random_are_those_of_scikit_learn():
    """None is the rate of a step, where interpolation may fall to its foot by a rounding."""
    y, scores, weights = arrays(rows=(), ties=True)
    rates = np.random.default_rng(2).random(50)
    false_positive, true_positive, _ = peer.roc_curve(y[:, 1], scores[:, 1], sample_weight=weights)
    want = np.interp(rates, false_positive, true_positive)
    np.testing.assert_allclose(
        roc.true_positive_at(Predictions.from_arrays(y, scores, weights), rates, positive=1), want, atol=1e-10
    )  # steps of 1e-12 along the curve


def test_rates_that_are_rounded_stay_at_their_threshold():
    """1 - 0.9 is below 0.1, where this curve rises to the top; 7 / 25 * 25 is above 7, and the cases of the next score
    are not yet taken.
    """
    p = binary([0, 1, *[0] * 9], np.arange(11, 0, -1))
    assert roc.true_positive_at(p, np.array([0.1, 1 - 0.9])).tolist() == pytest.approx([1, 1], abs=1e-9)
    p = binary(np.r_[np.ones(7), 0, np.ones(18)], np.arange(26, 0, -1))
    assert metrics.precision_at(p, np.array([7 / 25])) == pytest.approx([1], rel=1e-9)


# Precision-recall, gains, lift


def test_precision_between_thresholds_is_that_of_davis_and_goadrich():
    """Their example: 20 positive cases of 2020; one threshold finds 5 with 5 wrong, the next 10 with 30 wrong."""
    truth = np.repeat([1, 0, 1, 0, 1, 0], [5, 5, 5, 25, 10, 1970])
    p = binary(truth, np.repeat([0.9, 0.9, 0.8, 0.8, 0.1, 0.1], [5, 5, 5, 25, 10, 1970]))
    got = metrics.precision_at(p, np.array([0.25, 0.30, 0.35, 0.40, 0.45, 0.50]))
    assert [f"{v:.3f}" for v in got] == ["0.500", "0.375", "0.318", "0.286", "0.265", "0.250"]


def test_precision_at_recalls_of_thresholds_is_the_greatest_there():
    p = given(rows=(), ties=True)
    curve = metrics.precision_recall(p, positive=1)
    for recall in np.unique(curve.recall[:-1])[1:]:
        assert metrics.precision_at(p, np.array([recall]), positive=1) == pytest.approx(
            curve.precision[:-1][curve.recall[:-1] == recall].max(), rel=1e-9
        )  # recalls agree to 1e-12


def test_gains_are_the_mean_over_all_orders_of_equal_scores():
    truth, score = np.array([1, 0, 1, 0, 0, 1, 0]), np.array([0.9, 0.7, 0.7, 0.7, 0.4, 0.4, 0.1])
    found = [truth[sorted(order, key=lambda i: -score[i])].cumsum() / 3 for order in itertools.permutations(range(7))]
    np.testing.assert_allclose(
        metrics.gains(binary(truth, score), np.arange(1, 8) / 7), np.mean(found, axis=0), **EXACT
    )


def test_lift_of_chance_is_1_and_of_perfection_1_over_the_share():
    truth = np.repeat([0, 1], [60, 20])
    np.testing.assert_allclose(metrics.lift(binary(truth, np.zeros(80)), GRID), 1, **EXACT)
    np.testing.assert_allclose(metrics.lift(binary(truth, truth), GRID), np.minimum(4, 1 / GRID), **EXACT)


# Degenerate cases

SAME, APART = binary([0, 1, 0, 1], [0.5] * 4), binary([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.7])
WRONG = binary([0, 0, 1, 1], [0.7, 0.6, 0.2, 0.1])
DEGENERATE = {
    "auc of equal scores": (lambda: roc.auc(SAME), 0.5),
    "hull of equal scores": (lambda: roc.curve(SAME).hull, [0, 1]),
    "interval of equal scores": (lambda: [roc.interval(SAME).lower, roc.interval(SAME).upper], [math.nan, math.nan]),
    "auc of separated classes": (lambda: roc.auc(APART), 1.0),
    "hull of separated classes": (lambda: roc.curve(APART).hull, [0, 2, 4]),
    "interval of separated classes": (
        lambda: [roc.interval(APART).standard_error, roc.interval(APART).lower, roc.interval(APART).upper],
        [0, math.nan, math.nan],
    ),
    "hull of the wrong order": (lambda: roc.curve(WRONG).hull, [0, 4]),
    "operating point of the wrong order": (
        lambda: [roc.operating_point(WRONG).threshold, roc.operating_point(WRONG).cost],
        [math.inf, 0.5],
    ),
    "alike": (
        lambda: [roc.delong(APART, APART).statistic, roc.delong(APART, APART).df, roc.delong(APART, APART).p_value],
        [0, 0, 1],
    ),
    "alike, each": (lambda: list(roc.delong(APART, APART).difference().parts.values()), [0, 1]),
    "no variance": (
        lambda: [roc.delong(WRONG, APART).statistic, roc.delong(WRONG, APART).df, roc.delong(WRONG, APART).p_value],
        [math.inf, 1, 0],
    ),
    "no variance, each": (lambda: list(roc.delong(WRONG, APART).difference().parts.values()), [math.inf, math.nan]),
    "F of nothing found": (lambda: metrics.f_beta(WRONG), 0.0),
    "precision of nothing decided": (lambda: metrics.precision(SAME, undefined=0.0), 0.0),
    "marked": (lambda: metrics.precision(SAME, undefined=math.nan), math.nan),
    "weighted by no cases": (
        lambda: roc.auc(Predictions.from_arrays(np.eye(3)[[0, 1, 0, 1]], np.eye(3)[[0, 1, 0, 1]]), average="weighted"),
        1.0,
    ),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_cases_have_documented_values(case):
    call, want = DEGENERATE[case]
    np.testing.assert_allclose(call(), want, **EXACT)


def test_three_classifiers_of_which_two_rank_alike_are_two():
    p, other = given(rows=()), given(rows=(), seed=1)
    other = Predictions(p.truth, other.scores, p.weights, p.classes, "other")
    alike = Predictions(p.truth, p.scores * 2, p.weights, p.classes, "alike")
    three, two = roc.delong(p, alike, other, positive=1), roc.delong(p, other, positive=1)
    assert (three.df, two.df) == (1, 1)
    assert three.statistic == pytest.approx(two.statistic, rel=1e-9)


def test_a_variance_that_rounds_below_0_is_0():
    """0.3 + 0.3 - 2 (0.1 + 0.2) is -1e-16."""
    one = np.asarray(1.0)
    got = roc.DeLong(
        method="DeLong's test",
        source="",
        target="",
        unit="AUC",
        learners=("a", "b"),
        auc=np.array([0.7, 0.7]),
        covariance=np.array([[0.3, 0.1 + 0.2], [0.1 + 0.2, 0.3]]),
        statistic=np.asarray(0.0),
        df=np.asarray(0),
        p_value=one,
    ).difference()
    assert (got.standard_error, got.parts["z"], got.parts["p_value"]) == (0, 0, 1)


def test_results_say_what_they_are():
    p = given(rows=())
    text = str(roc.interval(p, positive=1))
    for part in (
        "DeLong's interval on the logit scale (DeLong, DeLong & Clarke-Pearson 1988): "
        "AUC of class 1 of given predictions",
        "95% interval [",
        "about the AUC of each trained model for new cases",
    ):
        assert part in text
    assert "note: the classes are separated" in str(roc.interval(APART))
    test = roc.delong(p, shifted(p), positive=1)
    assert "given predictions 0." in str(test)
    assert "1 degrees of freedom" in str(test)
    assert "AUC of shifted minus AUC of given predictions" in str(test.difference())
    rows = given(rows=(4,))
    many = roc.delong(rows, shifted(rows), positive=1)
    assert "4 rows of given predictions, shifted, median p" in str(many)
    frame = many.to_frame()
    assert frame["learner"].tolist() == ["given predictions", "shifted"] * 4
    np.testing.assert_array_equal(frame["auc"], many.auc.ravel())
    np.testing.assert_array_equal(frame["p_value"], np.repeat(many.p_value, 2))


# Bad input

Y, S, W = arrays()
P = Predictions.from_arrays(Y, S, W)
TWO = given(c=2)
LACKING = Predictions.from_arrays(Y, S, np.where(np.isin(np.arange(6), (2, 4))[:, None] & (Y[:, 1] == 1), 0, W))
ONE_LEFT = Predictions.from_arrays(Y, S, np.where((np.arange(40) != 1) & (Y[:, 1] == 1), 0, 1))
LOST = np.where((np.arange(6) == 3)[:, None, None] & (W > 0)[..., None], np.nan, S)
FIRST_TWO = r"in 2 of 6, the first \[2\], \[4\]; use stratified or larger test sets"
BAD = {
    "other cases": (
        lambda: Predictions.from_arrays(Y[:9], S, W),
        r"same cases and rows, got \[9, 3\], \[6, 40, 3\] and \[6, 40\]; give one score per row, case and class",
    ),
    "other rows": (lambda: Predictions.from_arrays(Y, S, W[:2]), r"got \[40, 3\], \[6, 40, 3\] and \[2, 40\]"),
    "other sets": (
        lambda: Predictions.from_arrays(np.stack([Y] * 3), S[None], W),
        r"got \[3, 1, 40, 3\], \[1, 6, 40, 3\]",
    ),
    "a number": (lambda: Predictions.from_arrays(Y, 1.0), r"got \[40, 3\], \[\] and \[40\]"),
    "weights below 0": (
        lambda: Predictions.from_arrays(Y, S, -W),
        "test weights that are whole numbers from 0 to 255, got -1",
    ),
    "weights of one half": (lambda: Predictions.from_arrays(Y, S, W / 2), "whole numbers from 0 to 255, got 0.5"),
    "no test cases": (
        lambda: Predictions.from_arrays(Y, S, W * (np.arange(6) != 4)[:, None]),
        r"test cases in every row, got none in 1 of 6, the first \[4\]; give each row at least one",
    ),
    "targets that are numbers": (
        lambda: Predictions.from_arrays(3 * Y, S, W),
        r"zeros and ones with one 1 a case, got \[0.0, 3.0\]; give one column per class",
    ),
    "two classes at once": (lambda: Predictions.from_arrays(np.ones((40, 3)), S, W), r"one 1 a case"),
    "target NaN": (lambda: Predictions.from_arrays(np.where(Y == 0, np.nan, Y), S, W), r"got \[1.0, nan\]"),
    "one name twice": (
        lambda: Predictions.from_arrays(Y, S, W, ("a", "b", "a")),
        r"different names for 3 classes, got \('a', 'b', 'a'\); name each of them once",
    ),
    "unknown class where it does not matter": (
        lambda: metrics.recall(P, average="macro", positive="cat"),
        "its number, got 'cat'",
    ),
    "too few names": (
        lambda: Predictions.from_arrays(Y, S, W, ("a", "b")),
        "3 labels, one for each of the classes, got 2; name each",
    ),
    "score NaN": (
        lambda: Predictions.from_arrays(Y, LOST, W),
        r"finite scores of all test cases in every row, got none in 1 of 6, the first \[3\]; leave these rows out",
    ),
    "no class named": (
        lambda: roc.auc(P),
        "positive class to be one of 0, 1, 2 or its number, got None; name the class",
    ),
    "unknown class": (lambda: roc.auc(P, positive="cat"), "one of 0, 1, 2 or its number, got 'cat'"),
    "class out of range": (lambda: roc.auc(P, positive=3), "got 3; name the class"),
    "unknown average": (
        lambda: metrics.precision(P, average="samples"),
        "average to be one of 'binary', 'macro', 'weighted', 'micro', 'each', got 'samples'",
    ),
    "beta": (
        lambda: metrics.f_beta(P, beta=0.0, average="macro"),
        "beta to be a number above 0 and of at most 1e\\+06, got 0.0",
    ),
    "a class lacks: recall": (
        lambda: metrics.recall(LACKING, average="macro"),
        f"a defined recall, and not 0 / 0, in every row, got none {FIRST_TWO}, or say with undefined=",
    ),
    "a class lacks: balanced": (lambda: metrics.balanced_accuracy(LACKING), "a defined recall"),
    "a class lacks: auc": (
        lambda: roc.auc(LACKING, positive=1),
        f"a defined AUC, and not 0 / 0, in every row, got none {FIRST_TWO}",
    ),
    "a class lacks: macro": (lambda: roc.auc(LACKING, average="macro"), f"a defined AUC.*{FIRST_TWO}"),
    "a class lacks: hand_till": (
        lambda: roc.hand_till(LACKING),
        f"test cases of all classes in every row, got none {FIRST_TWO}",
    ),
    "a class lacks: average precision": (
        lambda: metrics.average_precision(LACKING, positive=1),
        f"a defined average precision.*{FIRST_TWO}",
    ),
    "a class lacks: gains": (
        lambda: metrics.gains(LACKING, GRID, positive=1),
        f"test cases both of the positive class and of others in every row, got none {FIRST_TWO}",
    ),
    "a class lacks: operating point": (
        lambda: roc.operating_point(LACKING, positive=1),
        f"both of the positive class and of others.*{FIRST_TWO}",
    ),
    "a class lacks: curve": (
        lambda: roc.curve(LACKING[2], positive=1),
        "of others in every row, got none; use stratified",
    ),
    "a class lacks: precision_recall": (
        lambda: metrics.precision_recall(LACKING[2], positive=1),
        "test cases of the positive class in every row, got none; give some",
    ),
    "the class only: gains": (
        lambda: metrics.gains(binary([1, 1], [0.1, 0.2]), GRID),
        "test cases both of the positive class and of others in every row, got none; use stratified",
    ),
    "the class only: auc": (
        lambda: roc.auc(binary([1, 1], [0.1, 0.2])),
        "a defined AUC, and not 0 / 0, in every row, got none; use stratified",
    ),
    "one case of a class": (
        lambda: roc.interval(ONE_LEFT, positive=1),
        r"at least 2 test cases of the positive class and 2 of others in every row, got none in 6 of 6",
    ),
    "curve of rows": (
        lambda: roc.curve(TWO),
        r"of one model, got rows \[6\]; choose one with predictions\[r\], or put all together with predictions.pooled",
    ),
    "precision_recall of rows": (lambda: metrics.precision_recall(TWO), r"of one model, got rows \[6\]"),
    "pool one": (lambda: TWO[0].pooled(), r"rows of one data set to pool, got rows \[\]"),
    "share 0": (lambda: metrics.gains(TWO, np.array([0.0, 0.5])), "shares of the cases above 0 and up to 1, got 0.0"),
    "recall above 1": (lambda: metrics.precision_at(TWO, np.array([0.5, 1.5])), "recalls above 0 and up to 1, got 1.5"),
    "rate above 1": (
        lambda: roc.true_positive_at(TWO, np.array([0.5, 1.5])),
        "false positive rates from 0 to 1, got 1.5; give for example",
    ),
    "cost 0": (
        lambda: roc.operating_point(TWO, false_positive_cost=0.0),
        "false_positive_cost to be a finite number above 0, got 0.0",
    ),
    "prior 0": (
        lambda: roc.operating_point(TWO, prior=0.0),
        "prior to be a number above 0 and below 1, got 0.0; give a share",
    ),
    "level": (lambda: roc.interval(TWO, level=95.0), "level to be a number above 0 and below 1, got 95.0"),
    "scale": (lambda: roc.interval(TWO, scale="log"), "scale to be one of 'logit', 'identity', got 'log'"),
    "one classifier": (lambda: roc.delong(TWO), "two or more classifiers to compare, got 1; see interval for one"),
    "other weights": (
        lambda: roc.delong(TWO, given(c=2, counts=False)),
        "on the same cases, classes and test weights, got others",
    ),
    "alternative": (
        lambda: roc.delong(TWO, TWO).difference(alternative="larger"),
        "alternative to be one of 'two-sided', 'greater', 'less', got 'larger'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_measured_is_refused(case, own_messages):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_one_model_has_no_rows_to_choose():
    with pytest.raises(IndexError, match="predictions with rows to choose from, got those of one model"):
        TWO[0][0]
    with pytest.raises(TypeError, match="predictions with rows to go through, got those of one model; use them as"):
        list(TWO[0])


def test_rows_are_chosen_by_number(own_messages):
    every = list(TWO)
    assert len(every) == 6
    np.testing.assert_array_equal(every[-1].scores, TWO[-1].scores)
    np.testing.assert_array_equal(every[5].scores, TWO[np.int64(5)].scores)
    for row in (6, -7, "a", None, True, 1.0):
        with pytest.raises(IndexError, match="expected the number of a row from 0 to 5, got .*; choose one of these"):
            TWO[row]


def test_classes_are_named_by_numbers_of_numpy_too():
    assert roc.auc(TWO, positive=np.int64(1)).tolist() == roc.auc(TWO, positive=1).tolist()
    named = Predictions.from_arrays(Y, S, W, np.array(["a", "b", "c"]))
    assert named.classes == ("a", "b", "c")
    np.testing.assert_array_equal(roc.auc(named, positive="c"), roc.auc(P, positive=2))


def test_shares_may_be_a_list():
    np.testing.assert_array_equal(metrics.lift(TWO, [0.2, 0.5]), metrics.lift(TWO, np.array([0.2, 0.5])))


MARKED = {
    "recall": lambda p, u: metrics.recall(p, average="macro", undefined=u),
    "balanced": lambda p, u: metrics.balanced_accuracy(p, undefined=u),
    "average precision": lambda p, u: metrics.average_precision(p, average="macro", undefined=u),
    "auc": lambda p, u: roc.auc(p, positive=1, undefined=u),
    "macro": lambda p, u: roc.auc(p, average="macro", undefined=u),
    "hand_till": lambda p, u: roc.hand_till(p, undefined=u),
}


@pytest.mark.parametrize("name", MARKED)
def test_rows_that_lack_a_class_are_marked_on_request(name):
    got, full = MARKED[name](LACKING, math.nan), MARKED[name](P, None)
    assert np.flatnonzero(np.isnan(got)).tolist() == [2, 4]
    np.testing.assert_array_equal(np.delete(got, [2, 4]), np.delete(full, [2, 4]))
    assert np.isfinite(MARKED[name](LACKING, 0.5)).all()
