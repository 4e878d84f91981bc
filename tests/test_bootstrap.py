"""Out-of-bag error, .632 and .632+: against loops written from the papers, closed forms for the mean, and the spread
that they should have.
"""

import math
import re

import jax
import numpy as np
import pytest
import scipy.stats
from given import made, with_failed, without_values
from sklearn.metrics import confusion_matrix

from jaxgen import loss, resample
from jaxgen.stats import estimate
from jaxgen.stats.estimate import bootstrap_error
from jaxgen.types import Losses

KEY = jax.random.key(0)
EXACT = {"rtol": 1e-11, "atol": 1e-13}
"""The same sums in another order."""


def of_mean(y, counts):
    """Losses [R, N] of the learner that predicts the mean of its training cases y [N]."""
    predictions = np.repeat((counts @ y / counts.sum(-1))[:, None], len(y), axis=1)
    return Losses.from_predictions(y, predictions, counts, counts == 0, loss.squared, "the mean")


def full_mean(y):
    ones = np.ones((1, len(y)), np.uint8)
    return Losses.from_predictions(y, np.full((1, len(y)), y.mean()), ones, ones, loss.squared, "the mean")


def draws(random, resamples, n):
    return random.multinomial(n, np.full(n, 1 / n), size=resamples)


def example(sets=None, of_plan=None, n=12, resamples=300, seed=0):
    """Gamma losses of every row and case, with a full fit of its own."""
    random = np.random.default_rng(seed)
    lead = () if sets is None else (sets,)
    plan = resample.bootstrap(KEY, n, resamples, sets=of_plan)
    return made(random.gamma(2.0, 1.0, (*lead, resamples, n)), plan), made(
        random.gamma(1.5, 1.0, (*lead, 1, n)), resample.full(n)
    )


def by_loops(counts, values):
    """Err(1), its pooled form and the published standard error, in loops over samples and cases (Efron & Tibshirani
    1997).
    """
    b_all, n = values.shape
    times, total, q = [0] * n, [0.0] * n, [0.0] * b_all
    for b in range(b_all):
        for i in range(n):
            if counts[b, i] == 0:
                times[i] += 1
                total[i] += values[b, i]
                q[b] += values[b, i] / n
    cases = [total[i] / times[i] for i in range(n)]
    error = sum(cases) / n
    square = 0.0
    for i in range(n):
        mean = sum(int(counts[b, i]) for b in range(b_all)) / b_all
        square += (
            (2 + 1 / (n - 1)) * (cases[i] - error) / n
            + sum((counts[b, i] - mean) * q[b] for b in range(b_all)) / times[i]
        ) ** 2
    return error, sum(total) / sum(times), math.sqrt(square)


@pytest.mark.parametrize(
    ("sets", "of_plan"),
    [(None, None), (3, None), (3, 3)],
    ids=["one set", "sets, one plan", "sets, plans of their own"],
)
def test_published_estimate_and_standard_error_are_those_of_the_loops(sets, of_plan):
    losses, _ = example(sets, of_plan)
    cases, rows = (estimate.out_of_bag(losses, pooling=pooling, standard_error="raw") for pooling in ("cases", "rows"))
    counts = np.broadcast_to(losses.train, losses.values.shape).reshape(-1, *losses.values.shape[-2:])
    want = np.array(
        [by_loops(*one) for one in zip(counts, losses.values.reshape(counts.shape), strict=True)]
    ).T.reshape(3, *cases.estimate.shape)
    np.testing.assert_allclose(cases.estimate, want[0], **EXACT)
    np.testing.assert_allclose(rows.estimate, want[1], **EXACT)
    np.testing.assert_allclose(cases.standard_error, want[2], **EXACT)
    np.testing.assert_allclose(rows.standard_error, want[2], **EXACT)


def test_correction_is_the_formula():
    losses, _ = example()
    got = estimate.out_of_bag(losses)
    counts, out = losses.train.astype(float), losses.train == 0
    n, times = losses.plan.n, out.sum(0)
    cases = np.where(out, losses.values, 0).sum(0) / times
    q = np.where(out, losses.values - cases.mean(), 0).sum(1) / n
    influence = [
        (2 + 1 / (n - 1)) * (cases[i] - cases.mean()) / n + np.sum((counts[:, i] - counts[:, i].mean()) * q) / times[i]
        for i in range(n)
    ]
    noise = sum(
        np.sum((counts[:, i] - counts[:, i].mean()) ** 2 * (q - q.mean()) ** 2) / times[i] ** 2 for i in range(n)
    )
    np.testing.assert_allclose(got.standard_error**2, np.sum(np.square(influence)) - noise, **EXACT)
    np.testing.assert_allclose(got.parts["monte_carlo_share"], noise / np.sum(np.square(influence)), **EXACT)


def test_interval_is_normal():
    losses, _ = example()
    for alternative, tails in (("two-sided", (0.05, 0.95)), ("greater", (0.1, 1.0)), ("less", (0.0, 0.9))):
        got = estimate.out_of_bag(losses, level=0.9, alternative=alternative)
        law = scipy.stats.norm(got.estimate, got.standard_error)
        np.testing.assert_allclose([got.lower, got.upper], law.ppf(tails), **EXACT)
        assert np.isinf(got.df)
    assert "out-of-bag" in str(got)
    assert len(estimate.out_of_bag(example(3)[0]).to_frame()) == 3


# the mean of N cases, for which everything is known


def infinite(y, weights):
    """Err(1) of the mean for infinitely many samples drawn with these probabilities, closed form: given that a sample
    lacks case i, it is N draws from the others.
    """
    n, total = len(y), 0.0
    for i in range(n):
        others = np.delete(weights, i) / (1 - weights[i])
        mean = others @ np.delete(y, i)
        total += weights[i] * ((y[i] - mean) ** 2 + others @ (np.delete(y, i) - mean) ** 2 / n)
    return total


def test_mean_learner_has_its_closed_forms():
    """Estimate, and the standard error as the derivative of Err(1) by the probability of each case, which is what the
    infinitesimal jackknife means.
    """
    random = np.random.default_rng(1)
    y = random.gamma(2.0, 1.0, 15)
    losses = of_mean(y, draws(random, 40_000, 15))
    uniform = np.full(15, 1 / 15)
    step = 1e-5
    slope = [
        (infinite(y, (1 - step) * uniform + step * unit) - infinite(y, (1 + step) * uniform - step * unit)) / (2 * step)
        for unit in np.eye(15)
    ]
    want = np.sqrt(np.sum(np.square(slope))) / 15
    for pooling in ("cases", "rows"):
        assert estimate.out_of_bag(losses, pooling=pooling).estimate == pytest.approx(
            infinite(y, uniform), rel=0.01
        )  # five Monte Carlo errors
    for standard_error in ("corrected", "raw"):
        got = estimate.out_of_bag(losses, standard_error=standard_error)
        assert got.standard_error == pytest.approx(want, rel=0.02)  # noise of 15 covariances over 40 000 samples
    assert got.parts["monte_carlo_share"] < 0.02
    assert estimate.error_632(losses, full_mean(y)).estimate == pytest.approx(
        0.368 * np.var(y) + 0.632 * infinite(y, uniform), rel=0.01
    )
    # a rule that does not look at inputs has the no-information rate for its apparent error: the limited .632+ stays
    # there, and that of eq. 32, whose Err(1) lies above, is the plain .632
    gamma = estimate.no_information_rate(y[:, None], np.full((15, 1), y.mean()), loss.squared)
    plus = estimate.error_632_plus(losses, full_mean(y), gamma)
    np.testing.assert_allclose([gamma, plus.parts["limited"]], np.var(y), **EXACT)
    np.testing.assert_allclose(plus.estimate, estimate.error_632(losses, full_mean(y)).estimate, **EXACT)


def test_standard_error_is_the_spread_over_data_sets():
    """With 150 samples the published one is too large, the corrected one is not, and both intervals cover the expected
    error.
    """
    random = np.random.default_rng(2)
    n, sets, resamples = 40, 250, 150
    many = random.normal(size=(20_000, n))
    others = (many.sum(1, keepdims=True) - many) / (n - 1)
    spread = (np.square(many).sum(1, keepdims=True) - many**2) / (n - 1) - others**2
    true = np.std(np.mean((many - others) ** 2 + spread / n, axis=1))
    expected = 1 + 1 / (n - 1) + (n - 2) / (n - 1) / n
    found = [of_mean(y, draws(random, resamples, n)) for y in many[:sets]]
    error, noise = {}, {}
    for standard_error in ("corrected", "raw"):
        results = [estimate.out_of_bag(losses, standard_error=standard_error) for losses in found]
        error[standard_error] = np.sqrt(np.nanmean([r.standard_error**2 for r in results]))
        noise[standard_error] = np.mean([np.isnan(r.standard_error) for r in results])
        covered = sum(bool(r.lower <= expected <= r.upper) for r in results)
        assert covered >= scipy.stats.binom.ppf(
            1e-6, sets, 0.88
        )  # 95 % nominal, less for the skewness of a mean of 40 squares
    assert noise == {"corrected": 0.0, "raw": 0.0}
    assert error["corrected"] == pytest.approx(
        true, rel=0.15
    )  # squared errors scatter by 60 % and there are 250: 4 standard errors of their root
    assert error["raw"] > 1.2 * true


def test_correction_does_not_depend_on_the_origin_of_the_loss():
    losses, _ = example()
    moved, scaled = (
        estimate.out_of_bag(made(values, losses.plan))
        for values in (np.add(losses.values, 100), np.multiply(losses.values, 1e30))
    )
    plain = estimate.out_of_bag(losses)
    np.testing.assert_allclose(moved.standard_error, plain.standard_error, rtol=1e-9)  # digits lost under the 100
    np.testing.assert_allclose(scaled.standard_error, plain.standard_error * 1e30, rtol=1e-12)


# .632 and .632+


@pytest.mark.parametrize(
    ("out", "apparent", "gamma", "overfitting", "weight", "combined"),
    [
        (0.4, 0.2, 0.6, 0.5, 0.632 / 0.816, 0.2 + 0.2 * 0.632 / 0.816),
        (
            0.5,
            0.0,
            0.5,
            1.0,
            1.0,
            0.5,
        ),  # a nearest neighbour without any class to learn (Efron & Tibshirani 1997): .632 would be 0.316
        (0.6, 0.0, 0.5, 1.0, 1.0, 0.5 + 0.632 * 0.1),  # Err(1) above gamma: eq. 32 keeps it in the part .632
        (0.2, 0.2, 0.6, 0.0, 0.632, 0.2),
        (0.1, 0.2, 0.6, 0.0, 0.632, 0.368 * 0.2 + 0.632 * 0.1),
        (0.4, 0.3, 0.2, 0.0, 0.632, 0.368 * 0.3 + 0.632 * 0.4),
    ],
)
def test_estimates_of_given_errors(out, apparent, gamma, overfitting, weight, combined):
    plan = resample.bootstrap(KEY, 10, 30)
    losses, full = made(np.full((30, 10), out), plan), made(np.full((1, 10), apparent), resample.full(10))
    got = estimate.error_632_plus(losses, full, gamma)
    found = [got.parts[name] for name in ("overfitting", "weight", "out_of_bag", "apparent", "no_information")]
    np.testing.assert_allclose(
        [*found, got.estimate], [overfitting, weight, out, apparent, gamma, combined], rtol=1e-12, atol=1e-15
    )
    plain = estimate.error_632(losses, full).estimate
    np.testing.assert_allclose(plain, 0.368 * apparent + 0.632 * out, rtol=1e-12)
    bounded = min(out, gamma)
    equation_32 = plain + (bounded - apparent) * 0.368 * 0.632 * overfitting / (1 - 0.368 * overfitting)
    np.testing.assert_allclose(got.estimate, equation_32, rtol=1e-12)
    np.testing.assert_allclose(got.parts["limited"], (1 - weight) * apparent + weight * bounded, rtol=1e-12)
    assert ("exceeds the no-information rate" in got.note) is (out > gamma)


def test_the_row_that_makes_up_the_estimate_is_named():
    """One training of forty went wrong."""
    plan = resample.bootstrap(KEY, 30, 40)
    values = RANDOM.uniform(1, 2, (40, 30))
    values[17] *= 1e6
    got = estimate.out_of_bag(made(values, plan))
    assert "row 17 alone makes up 100.00% of the out-of-bag error" in got.note
    several = estimate.out_of_bag(made(np.stack([RANDOM.uniform(1, 2, (40, 30)), values]), plan))
    assert "row 17 of data set 1 alone" in several.note
    assert "alone" not in estimate.out_of_bag(made(RANDOM.uniform(1, 2, (40, 30)), plan)).note


@pytest.mark.parametrize("sets", [None, 3])
def test_standard_errors_are_scaled(sets):
    losses, full = example(sets)
    gamma = np.full(full.sets or (), 4.0)
    plain, some, plus = (
        estimate.out_of_bag(losses),
        estimate.error_632(losses, full),
        estimate.error_632_plus(losses, full, gamma),
    )
    for got in (some, plus):
        np.testing.assert_allclose(got.standard_error / got.estimate, plain.standard_error / plain.estimate, **EXACT)
        np.testing.assert_allclose(got.parts["apparent"], full.values[..., 0, :].mean(-1), **EXACT)
        assert got.estimate.shape == got.lower.shape == ((sets,) if sets else ())
    np.testing.assert_array_equal(plus.estimate, estimate.error_632_plus(losses, full, 4.0).estimate)
    assert (some.target, plus.target) == ("ER", "ER")


# the no-information rate


def one_hot(classes, k):
    return np.eye(k)[classes]


RANDOM = np.random.default_rng(3)
LOSSES = {
    "squared": (loss.squared, RANDOM.normal(size=(2, 9, 3)), RANDOM.normal(size=(2, 9, 3))),
    "absolute": (loss.absolute, RANDOM.normal(size=(2, 9, 3)), RANDOM.normal(size=(2, 9, 3))),
    "classes": (loss.zero_one, one_hot(RANDOM.integers(0, 3, (2, 9)), 3), RANDOM.random((2, 9, 3))),
    "two classes": (loss.zero_one, RANDOM.integers(0, 2, (2, 9, 1)).astype(float), RANDOM.random((2, 9, 1))),
    "entropy": (loss.cross_entropy, RANDOM.integers(0, 2, (2, 9, 1)).astype(float), RANDOM.random((2, 9, 1))),
    "own": (
        lambda y, f: np.abs(y[..., 0] - f[..., 0]) ** 1.5,
        RANDOM.normal(size=(2, 9, 1)),
        RANDOM.normal(size=(2, 9, 1)),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("pairs", [bootstrap_error.PAIRS, 60], ids=["at once", "in blocks"])
def test_no_information_rate_is_the_mean_over_all_pairs(name, pairs, monkeypatch):
    monkeypatch.setattr(bootstrap_error, "PAIRS", pairs)
    of_case, y, predictions = LOSSES[name]
    want = [
        np.mean([of_case(y[q, i : i + 1], predictions[q, j : j + 1])[0] for i in range(9) for j in range(9)])
        for q in range(2)
    ]
    np.testing.assert_allclose(estimate.no_information_rate(y, predictions, of_case), want, **EXACT)
    np.testing.assert_allclose(estimate.no_information_rate(y[1], predictions[1], of_case), want[1], **EXACT)


def test_no_information_rate_is_the_expectation_under_permutations_and_that_of_kappa():
    """For 0-1 loss 1 - gamma is the agreement by chance in Cohen's kappa; for any loss gamma is the mean over random
    permutations.
    """
    of_case, y, predictions = LOSSES["classes"]
    table = confusion_matrix(y[0].argmax(-1), predictions[0].argmax(-1), labels=[0, 1, 2]) / 9
    assert estimate.no_information_rate(y[0], predictions[0], of_case) == pytest.approx(
        1 - table.sum(0) @ table.sum(1), rel=1e-12
    )
    of_case, y, predictions = LOSSES["absolute"]
    shuffled = [np.mean(of_case(RANDOM.permutation(y[0]), predictions[0])) for _ in range(2000)]
    assert abs(np.mean(shuffled) - estimate.no_information_rate(y[0], predictions[0], of_case)) < 5 * scipy.stats.sem(
        shuffled
    )


# degenerate and bad input


def test_degenerate_losses_have_documented_values():
    plan = resample.bootstrap(KEY, 10, 30)
    for value in (0.0, 0.1, 3.0):
        got = estimate.out_of_bag(made(np.full((30, 10), value), plan))
        np.testing.assert_allclose(
            [got.estimate, got.standard_error, got.lower, got.upper], [value, 0, np.nan, np.nan], rtol=1e-14
        )
        assert got.parts["monte_carlo_share"] == 0
        assert "which is no certainty" in got.note
    nothing = made(np.zeros((30, 10)), plan)
    got = estimate.error_632_plus(nothing, made(np.zeros((1, 10)), resample.full(10)), 0.0)
    assert (got.estimate, got.standard_error, got.parts["overfitting"]) == (0, 0, 0)


def test_noise_that_hides_the_standard_error_is_told():
    """Losses that differ between samples only: what the covariances with counts find is noise, as often too little as
    too much.
    """
    random = np.random.default_rng(4)
    losses = made(np.repeat(random.gamma(1.0, 1.0, (8, 12, 1)), 30, axis=2), resample.bootstrap(KEY, 30, 12))
    got = estimate.out_of_bag(losses)
    hidden = got.parts["monte_carlo_share"] >= 1
    assert 0 < hidden.sum() < 8
    for numbers in (got.standard_error, got.lower, got.upper, estimate.out_of_bag(losses, alternative="less").lower):
        np.testing.assert_array_equal(np.isnan(numbers), hidden)
    assert (
        got.note == f"the Monte Carlo error of 12 resamples hides the standard error in {hidden.sum()} of 8 data "
        "sets; ask for more resamples"
    )
    assert (
        estimate.out_of_bag(losses[int(hidden.argmax())]).note
        == "the Monte Carlo error of 12 resamples hides the standard error; ask for more resamples"
    )
    assert np.isfinite(estimate.out_of_bag(losses, standard_error="raw").standard_error).all()


def bad(plan):
    return lambda: estimate.out_of_bag(made(np.ones(plan.train.shape), plan))


def with_full(**other):
    losses, full = example()
    words = {"learner": "a", "name": "squared"} | other
    return lambda: estimate.error_632(losses, made(full.values, full.plan, **words))


BAD = {
    "leave_out": (
        bad(resample.leave_out(KEY, 12, 0.4, 9)),
        "expected bootstrap samples, as many draws as cases, tested on the cases that they lack, got "
        "resample.leave_out(",
    ),
    "one row": (
        bad(resample.bootstrap(KEY, 12, 1)),
        "expected at least 2 bootstrap samples, got 1; ask for more resamples",
    ),
    "never out": (bad(resample.bootstrap(KEY, 40, 2)), "expected every case to be out of some bootstrap sample, got"),
    "rows only": (lambda: estimate.out_of_bag(without_values(example()[0])), "expected the losses of every case"),
    "failed": (
        lambda: estimate.out_of_bag(with_failed(example()[0])),
        "expected every row to have been fitted, got 1 failed of 300",
    ),
    "pooling": (
        lambda: estimate.out_of_bag(example()[0], pooling="both"),
        "expected pooling to be one of 'cases', 'rows', got 'both'; choose one of these",
    ),
    "standard error": (
        lambda: estimate.out_of_bag(example()[0], standard_error="none"),
        "expected standard_error to be one of 'corrected', 'raw', got 'none'; choose one of these",
    ),
    "level": (
        lambda: estimate.out_of_bag(example()[0], level=95.0),
        "expected level to be a number above 0 and below 1, got 95",
    ),
    "alternative": (
        lambda: estimate.out_of_bag(example()[0], alternative="more"),
        "expected alternative to be one of 'two-sided', 'greater', 'less', got 'more'",
    ),
    "full of other cases": (
        lambda: estimate.error_632(example()[0], example(n=11)[1]),
        "expected the losses of one fit to all 12 cases, got those of resample.full(11)",
    ),
    "full is a bootstrap": (
        lambda: estimate.error_632(example()[0], example()[0]),
        "expected the losses of one fit to all 12 cases, got those of resample.bootstrap(",
    ),
    "full of another learner": (
        with_full(learner="b"),
        "expected one learner, loss and number of data sets for resamples and full fit, got Losses(a,",
    ),
    "full of another loss": (with_full(name="absolute"), "absolute loss"),
    "full of more sets": (
        lambda: estimate.error_632(example()[0], example(3)[1]),
        "expected one learner, loss and number of data sets",
    ),
    "gamma of more sets": (
        lambda: estimate.error_632_plus(*example(), np.ones(3)),
        "expected a finite no-information rate, one for each data set [], got shape [3]",
    ),
    "a loss of every output": (
        lambda: estimate.no_information_rate(np.ones((4, 1)), np.ones((4, 1)), lambda y, p: np.abs(y - p)),
        "expected a loss that turns targets and predictions [4, 4, 1] into one number per case [4, 4], got [4, 4, 1] "
        "from <lambda>; leave out the sum or mean over cases",
    ),
    "a loss of all cases": (
        lambda: estimate.no_information_rate(np.ones((4, 1)), np.ones((4, 1)), lambda y, p: np.mean(y - p)),
        "into one number per case [4, 4], got [] from <lambda>",
    ),
    "a loss that stops": (
        lambda: estimate.no_information_rate(np.ones((4, 1)), np.ones((4, 1)), lambda y: y),
        "expected a loss that takes targets and predictions [4, 4, 1], got <lambda>, which stops with TypeError: ",
    ),
    "gamma NaN": (lambda: estimate.error_632_plus(*example(), math.nan), "expected a finite no-information rate"),
    "shapes": (
        lambda: estimate.no_information_rate(np.ones((4, 1)), np.ones((5, 1)), loss.squared),
        "expected y and predictions of one shape [*Q, N, K], got [4, 1] and [5, 1]",
    ),
    "predictions NaN": (
        lambda: estimate.no_information_rate(np.ones((4, 1)), np.full((4, 1), np.nan), loss.squared),
        "expected finite targets and predictions, got 4 that are not",
    ),
}


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_in_a_sentence(name):
    call, message = BAD[name]
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        call()
    assert "\n" not in str(error.value)
