"""AUC, F and others as statistics of rows, which intervals and tests take in the place of losses."""

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.stats
from matplotlib.colors import to_hex
from sklearn import metrics as peer

from jaxgen import Losses, datasets, plot, resample, store
from jaxgen.plot.comparisons import BETTER
from jaxgen.stats import compare, estimate, interval, metrics
from jaxgen.stats.metrics import Predictions, roc

RANDOM = np.random.default_rng(0)
EXACT = {"rtol": 1e-12, "atol": 1e-12}
KEY, N = jax.random.key(0), 60
Y = RANDOM.integers(0, 2, N).astype(float)
DATA = datasets.from_arrays(RANDOM.normal(size=(N, 2)), np.where(Y == 1, "yes", "no"))
PLAN = resample.leave_out(KEY, N, 0.3, 30)
FOLDS = resample.k_fold(KEY, N, 4, repeats=5)


def learner(strength, plan=PLAN, seed=0, name="a"):
    scores = np.random.default_rng(seed).normal(size=(plan.resamples, N)) + strength * Y
    probabilities = 1 / (1 + np.exp(-scores))[..., None]
    both = np.concatenate([1 - probabilities, probabilities], axis=-1)
    return Losses.from_predictions(np.stack([1 - Y, Y], axis=-1), both, plan.train, plan.test, "zero_one", name)


WEAK, STRONG = learner(1.0), learner(2.5, seed=1, name="b")


@pytest.mark.parametrize(
    ("ours", "options", "theirs"),
    [
        (roc.auc, {}, lambda t, s: peer.roc_auc_score(t, s)),
        (metrics.f_beta, {}, lambda t, s: peer.f1_score(t, s > 0.5)),
        (metrics.f_beta, {"beta": 2.0, "positive": "no"}, lambda t, s: peer.fbeta_score(1 - t, s < 0.5, beta=2.0)),
        (metrics.precision, {}, lambda t, s: peer.precision_score(t, s > 0.5)),
        (metrics.recall, {}, lambda t, s: peer.recall_score(t, s > 0.5)),
        (metrics.average_precision, {}, lambda t, s: peer.average_precision_score(t, s)),
        (metrics.accuracy, {}, lambda t, s: peer.accuracy_score(t, s > 0.5)),
    ],
)
def test_every_row_has_the_statistic_of_scikit_learn(ours, options, theirs):
    got = metrics.of_rows(WEAK, DATA, ours, **options)
    want = [theirs(Y[w > 0], s[w > 0, 1]) for s, w in zip(WEAK.predictions, PLAN.test, strict=True)]
    np.testing.assert_allclose(got.g, want, **EXACT)
    assert got.bounded


def test_limits_are_those_of_the_log_odds_of_the_mean():
    rows = metrics.of_rows(WEAK, DATA, roc.auc)
    got = interval.corrected_t(rows)
    mean, r = rows.g.mean(), PLAN.resamples
    error = np.sqrt((1 / r + 18 / 42) * rows.g.var(ddof=1))  # of Nadeau & Bengio 2003
    reach = scipy.stats.t.ppf(0.975, r - 1) * error / (mean * (1 - mean))
    odds = np.log(mean / (1 - mean))
    want = [1 / (1 + np.exp(-(odds + sign * reach))) for sign in (-1, 1)]
    np.testing.assert_allclose([got.lower, got.upper], want, rtol=1e-10)
    assert (got.unit, got.target) == ("AUC", "the mean AUC over training sets of 42 cases")
    assert got.method == "corrected resampled t interval on the logit scale"
    assert interval.corrected_t(rows, alternative="greater").upper == 1
    assert interval.corrected_t(rows, alternative="less").lower == 0
    again = metrics.over_splits(rows.g, PLAN, unit="AUC", scale="logit")
    np.testing.assert_allclose([again.lower, again.upper], want, rtol=1e-10)


def test_limits_near_1_stay_below_it_and_equal_rows_have_none():
    near = metrics.of_rows(learner(4.5), DATA, roc.auc)
    plain = metrics.of_rows(learner(4.5), DATA, roc.auc, bounded=False)
    assert near.g.max() == 1
    assert interval.corrected_t(plain).upper > interval.corrected_t(near).upper
    assert interval.corrected_t(near).upper < 1
    perfect = interval.corrected_t(metrics.of_rows(learner(50.0), DATA, roc.auc))
    assert perfect.estimate == 1
    assert np.isnan([perfect.lower, perfect.upper]).all()
    assert "which is no certainty" in perfect.note


@pytest.mark.parametrize("statistic", [roc.auc, metrics.f_beta])
def test_a_paired_test_is_that_of_the_differences_of_rows(statistic):
    first, second = (metrics.of_rows(each, DATA, statistic) for each in (WEAK, STRONG))
    got = compare.corrected_t(first, second)
    want = metrics.over_splits(second.g - first.g, PLAN, unit="difference")
    np.testing.assert_allclose([got.estimate, got.lower, got.upper], [want.estimate, want.lower, want.upper], **EXACT)
    assert got.greater_is_better
    assert f"a greater {first.unit} is better, so a positive difference speaks for the second" in got.note
    assert compare.recommend(first, second).p_value == got.p_value
    assert "lowest coverage" not in interval.recommend(first).note


def test_folds_pairs_and_distributions_take_statistics_of_rows():
    rows = metrics.of_rows(learner(1.0, FOLDS), DATA, roc.auc)
    assert interval.recommend(rows).method == "corrected repeated k-fold t interval on the logit scale"
    first, second = (metrics.of_rows(each, DATA, roc.auc) for each in (WEAK, STRONG))
    pairs = compare.pairwise([first, second], compare.corrected_t)
    assert pairs.greater_is_better
    assert float(estimate.summary(first).raw.avr) == pytest.approx(first.g.mean(), rel=1e-12)
    assert "AUC of a" in str(interval.corrected_t(first))
    assert first.labelled("weak").name == "weak"
    assert metrics.of_rows(WEAK.labelled("weak"), DATA, roc.auc).name == "weak"
    for each in (pairs, compare.pairwise([WEAK, STRONG], compare.corrected_t)):
        axes = plot.comparison_matrix(each).figure.axes[0]
        names = [text.get_text() for text in axes.get_yticklabels()]
        blue = [
            names[round(patch.get_y() + 0.48)]
            for patch in axes.patches
            if to_hex(patch.get_facecolor()) == BETTER.lower()
        ]
        assert blue == ["b"]  # the row that is better
    plt.close("all")


def test_predictions_of_losses_are_those_of_their_arrays():
    ours = Predictions.of(WEAK.labelled("weak"), DATA)
    want = Predictions.from_arrays(DATA.y, WEAK.predictions, PLAN.test, DATA.classes)
    np.testing.assert_array_equal(ours.scores, want.scores)
    np.testing.assert_array_equal(ours.truth, want.truth)
    assert (ours.classes, ours.learner) == (("no", "yes"), "weak")
    single = Losses.from_predictions(Y, WEAK.predictions[..., 1], PLAN.train, PLAN.test, "zero_one")
    np.testing.assert_allclose(roc.auc(Predictions.of(single, Y)), roc.auc(ours), **EXACT)


def test_sets_of_data_have_their_own_rows():
    sets = [learner(1.0, seed=seed) for seed in (0, 1)]
    stacked = Losses(
        *(np.stack([getattr(each, name) for each in sets]) for name in ("test_mean", "train_mean")),
        PLAN,
        "a",
        "zero_one",
        np.zeros((2, 30), np.uint8),
        predictions=np.stack([each.predictions for each in sets]),
    )
    got = metrics.of_rows(stacked, DATA, roc.auc)
    np.testing.assert_array_equal(got.g, [metrics.of_rows(each, DATA, roc.auc).g for each in sets])
    assert interval.corrected_t(got).estimate.shape == (2,)


ROWS = metrics.of_rows(WEAK, DATA, roc.auc)
BAD = {
    "no predictions": (lambda: metrics.of_rows(ROWS, DATA, roc.auc), "expected the predictions of every row"),
    "a regression": (
        lambda: Predictions.of(WEAK, datasets.from_arrays(DATA.x, Y, task="regression")),
        "expected a classification, got Data\\(regression",
    ),
    "other cases": (lambda: Predictions.of(WEAK, Y[:5]), r"the targets that were trained on, \[60, 2\], got \[5, 1\]"),
    "several numbers": (
        lambda: metrics.of_rows(WEAK, DATA, metrics.precision, average="each"),
        "one number for each row",
    ),
    "a function that stops": (lambda: metrics.of_rows(WEAK, DATA, len), "got len, which stops with TypeError"),
    "the name of a statistic": (lambda: metrics.of_rows(WEAK, DATA, "auc"), "expected a statistic of Predictions"),
    "beyond 1": (lambda: metrics.of_rows(WEAK, DATA, lambda p: 2 + 0 * roc.auc(p), bounded=True), "say bounded=False"),
    "undefined": (
        lambda: metrics.of_rows(WEAK, DATA, lambda p: np.nan * roc.auc(p)),
        "draw stratified splits",
    ),
    "ranks": (lambda: compare.friedman([ROWS, ROWS]), "of which less is better, got the AUC of rows"),
    "a ratio": (lambda: compare.error_ratio(ROWS, ROWS), "of which less is better"),
    "a margin": (
        lambda: compare.non_inferiority(compare.corrected_t(ROWS, metrics.of_rows(STRONG, DATA, roc.auc)), margin=0.1),
        "expected a comparison of errors",
    ),
    "a file": (lambda: store.save(ROWS, "rows.npz"), "got the AUC of their rows; save the losses themselves"),
    "single cases": (lambda: interval.jackknife_after_leave_out(ROWS), "got the AUC of whole rows; use corrected_t"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_statistic_of_rows_is_refused_with_one_sentence(case, own_messages):
    call, words = BAD[case]
    with pytest.raises((ValueError, TypeError), match=words):
        call()
