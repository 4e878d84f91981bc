"""What each case is worth: exact values by all subsets, the axioms, coverage of both standard errors, influence against
leave-one-out, and datamodels against scikit-learn.
"""

import itertools
import math
import re

import jax
import numpy as np
import pytest
from given import made, with_failed, without_values
from hostile import refused
from scipy.special import betaln
from scipy.stats import spearmanr
from scripts import quick
from sklearn.linear_model import Lasso, LinearRegression

import jaxgen as jg
from jaxgen import datasets, learn, loss, resample
from jaxgen.stats import worth
from jaxgen.stats.worth.lasso import sparse_fits
from jaxgen.types import Losses, memory

KEY, T, V = jax.random.key(0), 5, 3
SUBSETS = [subset for size in range(T + 1) for subset in itertools.combinations(range(T), size)]
RANDOM = np.random.default_rng(0)
GAME = {subset: RANDOM.normal(size=V) for subset in SUBSETS}
"""The utility of every subset of five cases on three value cases, by chance: all interactions there can be."""


def mean_gain(game, case, size, cases=T):
    """What a case adds to a subset of so many others, on average over these subsets, by the definition."""
    others = [other for other in range(cases) if other != case]
    gains = [
        np.mean(game[tuple(sorted((*some, case)))]) - np.mean(game[some])
        for some in itertools.combinations(others, size)
    ]
    return np.mean(gains)


def semivalue(game, weight, cases=T):
    """The sum of mean gains over sizes, each with its weight."""
    return np.array(
        [sum(weight(size) * mean_gain(game, i, size, cases) for size in range(cases)) for i in range(cases)]
    )


def beta_weight(alpha, beta, cases=T):
    """C(T-1, s) B(s + beta, T-1-s + alpha) / B(alpha, beta): Kwon & Zou 2022, eq. 5 with j = s + 1."""
    return lambda s: math.comb(cases - 1, s) * np.exp(betaln(s + beta, cases - 1 - s + alpha) - betaln(alpha, beta))


def of_rows(rows, utility):
    """Losses of rows that train on some cases, and have these utilities [R, V] on the value cases that follow them."""
    cases = 1 + max(max(row) for row in rows)
    train = np.zeros((len(rows), cases + utility.shape[1]), np.uint8)
    for number, row in enumerate(rows):
        train[number, list(row)] = 1
    test = np.zeros_like(train)
    test[:, cases:] = 1
    values = np.zeros(train.shape)
    values[:, cases:] = -utility
    return made(values, resample.from_weights(train, test))


def every_subset(game, times=1):
    """Losses of all subsets but the empty one, so many times."""
    rows = [subset for subset in game if subset] * times
    return of_rows(rows, np.array([game[row] for row in rows]))


EVERY = every_subset(GAME, 200)
EMPTY = float(np.mean(GAME[()]))
# A covariance over m rows divides by m - 1, and each size has m >= 200 rows: the values differ by 1/200 at most.
SAMPLE = 0.01


# All subsets


def test_shapley_values_are_those_of_all_subsets():
    found = worth.shapley(EVERY, empty=EMPTY).estimate
    np.testing.assert_allclose(found, semivalue(GAME, lambda s: 1 / T), atol=SAMPLE * np.ptp(found))


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (4, 1), (1, 4), (2.5, 0.5)])
def test_beta_shapley_values_are_those_of_all_subsets(alpha, beta):
    found = worth.beta_shapley(EVERY, alpha, beta, empty=EMPTY).estimate
    np.testing.assert_allclose(found, semivalue(GAME, beta_weight(alpha, beta)), atol=SAMPLE * np.ptp(found))


def test_beta_1_1_is_shapley_and_its_weights_are_the_published_ones():
    one, other = worth.shapley(EVERY), worth.beta_shapley(EVERY, 1, 1)
    for name in ("estimate", "standard_error", "monte_carlo", "of_value_cases"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)  # rounding
    # Kwon & Zou 2022 normalise sum_j C(n-1, j-1) w(j) = n.
    for alpha, beta in ((1, 1), (16, 1), (1, 16)):
        assert sum(map(beta_weight(alpha, beta), range(T))) == pytest.approx(1, rel=1e-12)


def test_banzhaf_values_are_those_of_all_subsets():
    """The empty subset is left out."""
    expected = [
        np.mean([GAME[s] for s in SUBSETS if i in s]) - np.mean([GAME[s] for s in SUBSETS[1:] if i not in s])
        for i in range(T)
    ]
    np.testing.assert_allclose(worth.banzhaf(EVERY).estimate, expected, rtol=1e-12)  # rounding
    whole = {**GAME, (): np.zeros(V)}
    without = {subset: value for subset, value in whole.items() if subset}
    difference = semivalue(whole, lambda s: math.comb(T - 1, s) / 2 ** (T - 1)) - worth.banzhaf(EVERY).estimate
    outside = [np.mean([value for s, value in without.items() if i not in s]) for i in range(T)]
    np.testing.assert_allclose(difference, np.array(outside) / 2 ** (T - 1), rtol=1e-9)  # what the docstring says of it


def test_shapley_values_add_up_whatever_the_rows():
    """Efficiency: to the utility of all cases less that of none, for every draw."""
    rows = [subset for subset in SUBSETS if subset for _ in range(2 if len(subset) == T else 1)]
    values = RANDOM.normal(size=(len(rows), V))
    drawn = [number for number, row in enumerate(rows) if sum(row) != 3]  # some subsets do not come
    of_all = values[[number for number in drawn if len(rows[number]) == T]].mean()
    found = worth.shapley(of_rows([rows[number] for number in drawn], values[drawn]), empty=0.25)
    assert found.estimate.sum() == pytest.approx(of_all - 0.25, rel=1e-12)  # rounding


def test_small_subsets_may_be_left_out():
    """Then they have one utility, that of `empty`, or of the smallest there are."""
    game = {subset: np.full(V, EMPTY) if len(subset) < 2 else value for subset, value in GAME.items()}
    rows = [subset for subset in SUBSETS if len(subset) > 1] * 200
    losses = of_rows(rows, np.array([game[row] for row in rows]))
    expected = semivalue(game, lambda s: 1 / T)
    found = worth.shapley(losses, empty=EMPTY)
    np.testing.assert_allclose(found.estimate, expected, atol=SAMPLE * np.ptp(expected))
    assert "subsets of fewer than 2 cases are taken" in found.note
    shift = worth.shapley(losses).estimate - found.estimate
    smallest = np.mean([game[row] for row in rows if len(row) == 2])
    np.testing.assert_allclose(shift, (EMPTY - smallest) / T, rtol=1e-9)  # one constant; rounding


def test_symmetric_cases_are_worth_the_same_and_a_null_case_nothing():
    game = {s: np.array([1.0, 0.5, 2.0]) * ((0 in s) + (1 in s) + 3 * (0 in s and 1 in s and 2 in s)) for s in SUBSETS}
    losses = every_subset(game, 200)
    for found in (worth.shapley(losses, empty=0.0), worth.beta_shapley(losses, 4, 1, empty=0.0)):
        assert found.estimate[0] == pytest.approx(found.estimate[1], rel=1e-12)  # rounding
        np.testing.assert_allclose(found.estimate[3:], 0, atol=SAMPLE * np.ptp(found.estimate))
    banzhaf = worth.banzhaf(losses).estimate
    assert banzhaf[0] == pytest.approx(banzhaf[1], rel=1e-12)
    # Two cases are null; but for the empty subset, which is left out of what they are compared with, they get 0.
    of_nonempty = np.mean([value for subset, value in game.items() if subset])
    assert np.abs(banzhaf[3:]).max() < 2.1 * of_nonempty / 2 ** (T - 1)


# Standard errors


def system(random, count, cases=24):
    """What cases gain on average over all value cases, [T], for a sample of value cases, [V, T], and in pairs, [T, T];
    and a function of masks [R, T] to utilities [R, V]. In half samples pairs add nothing on average.
    """
    worths = random.normal(size=cases)
    gains = worths + random.normal(size=(count, cases))
    pairs = np.triu(random.normal(size=(cases, cases)), 1) / np.sqrt(cases)
    pairs += pairs.T

    def utility(inside):
        half = inside - 0.5
        both = np.einsum("ri,ij,rj->r", half, pairs, half) / 2
        return inside @ gains.T + both[:, None] + random.normal(size=(len(inside), count))

    return worths, gains, pairs, utility


def estimated(plan, utility):
    values = np.zeros(plan.shape)
    inside = plan.train[:, : plan.n - plan.test_sizes[0]].astype(float)
    values[:, inside.shape[1] :] = -utility(inside)
    return made(values, plan)


KINDS = {
    "banzhaf": (resample.half_samples, 300, worth.banzhaf, 1 / 2),
    "shapley": (resample.by_size, 300, worth.shapley, 1 / 2),
    "shapley of few rows": (resample.by_size, 100, worth.shapley, 1 / 2),
    "beta_shapley": (resample.by_size, 300, lambda losses: worth.beta_shapley(losses, 2, 1), 1 / 3),
}
"""A plan, its rows, a semivalue, and the mean share of the other cases in the subsets that it averages over."""


@pytest.mark.parametrize("kind", KINDS)
def test_standard_errors_are_those_of_a_simulation(kind):
    """z = (estimate - truth) / standard error of 60 data sets of 24 cases: for the truth on these value cases by the
    Monte Carlo part, and on all value cases by both parts. The mean of z is 0 and that of its square 1, each within
    six standard errors: 1/sqrt(60 * 24) and sqrt(2 / (60 * 24)), half as much again, for what cases of a set share.
    """
    random, (plan_of, rows, method, share) = np.random.default_rng(1), KINDS[kind]
    of_rows, of_all = [], []
    for seed in range(60):
        worths, gains, pairs, utility = system(random, 12)
        found = method(estimated(plan_of(jax.random.key(seed), 36, rows, range(24, 36)), utility))
        in_pairs = pairs.sum(1) * (share - 0.5)
        estimate, *truths = found.estimate, gains.mean(0) + in_pairs, worths + in_pairs
        if kind != "banzhaf":  # a constant is what the smallest subsets have
            estimate, *truths = (each - each.mean() for each in (estimate, *truths))
        for truth, error, into in zip(
            truths, (found.monte_carlo, found.standard_error), (of_rows, of_all), strict=True
        ):
            into.append((estimate - truth) / error)
    for z in (np.array(of_rows), np.array(of_all)):
        assert abs(z.mean()) < 0.2
        assert abs(np.mean(z**2) - 1) < 0.33


def test_standard_errors_over_value_cases_are_apart():
    """With all rows alike in noise, twice the value cases halve their share of the variance, and more rows do not."""
    random = np.random.default_rng(2)
    shares = {}
    for rows, count in ((400, 20), (400, 200), (4000, 20)):
        _, _, _, utility = system(random, count)
        found = worth.banzhaf(estimated(resample.half_samples(KEY, 24 + count, rows, range(24, 24 + count)), utility))
        shares[rows, count] = np.mean(found.of_value_cases**2), np.mean(found.monte_carlo**2)
    base, more_cases, more_rows = shares.values()
    # The gains of a value case have variance 1; six standard errors of 24 variances with 19 degrees of freedom.
    assert base[0] == pytest.approx(1 / 20, rel=6 * np.sqrt(2 / (19 * 24)))
    assert more_cases[0] == pytest.approx(1 / 200, rel=6 * np.sqrt(2 / (199 * 24)) + 0.1)
    assert more_rows[0] == pytest.approx(1 / 20, rel=6 * np.sqrt(2 / (19 * 24)))
    assert more_rows[1] < base[1] / 5


def test_without_noise_of_value_cases_nothing_is_left():
    """Equal value cases: their part is 0 and the rest is Monte Carlo error."""
    values = np.repeat(RANDOM.normal(size=(400, 1)), 12, axis=1)
    found = worth.banzhaf(estimated(resample.half_samples(KEY, 36, 400, range(24, 36)), lambda inside: values))
    np.testing.assert_allclose(found.of_value_cases, 0, atol=1e-7)  # the root of rounding
    np.testing.assert_allclose(found.standard_error, found.monte_carlo, rtol=1e-9)
    half = resample.half_samples(KEY, 36, 400, range(24, 36)).train[:, :24] > 0
    for case in range(24):  # Welch's standard error
        some, others = values[half[:, case], 0], values[~half[:, case], 0]
        error = np.sqrt(some.var(ddof=1) / len(some) + others.var(ddof=1) / len(others))
        assert found.monte_carlo[case] == pytest.approx(error, rel=1e-9)
        assert found.estimate[case] == pytest.approx(some.mean() - others.mean(), rel=1e-9)


# Of each case and itself, and of pairs

PLAN = resample.half_samples(KEY, 12, 60)
LOSSES = made(RANDOM.gamma(2.0, size=PLAN.shape), PLAN)


def test_out_of_bag_values_are_their_definition():
    for plan in (
        PLAN,
        resample.bootstrap(KEY, 12, 60),
        resample.k_fold(KEY, 12, 4, 5),
        resample.leave_out(KEY, 12, 0.3, 60),
    ):
        losses = made(RANDOM.gamma(2.0, size=plan.shape), plan)
        found = worth.out_of_bag(losses)
        for case in range(12):
            lacking = losses.values[plan.train[:, case] == 0, case]
            assert found.estimate[case] == pytest.approx(-lacking.mean(), rel=1e-12)
            assert found.monte_carlo[case] == pytest.approx(lacking.std(ddof=1) / np.sqrt(len(lacking)), rel=1e-12)
        assert found.of_value_cases is None


def test_memorisation_is_its_definition():
    found = worth.memorisation(LOSSES)
    for case in range(12):
        inside = PLAN.train[:, case] > 0
        some, others = LOSSES.values[inside, case], LOSSES.values[~inside, case]
        assert found.estimate[case] == pytest.approx(others.mean() - some.mean(), rel=1e-12)
        error = np.sqrt(some.var(ddof=1) / len(some) + others.var(ddof=1) / len(others))
        assert found.standard_error[case] == pytest.approx(error, rel=1e-12)


def test_influence_is_its_definition():
    found = worth.influence(LOSSES)
    assert found.estimate.shape == (12, 12)
    for i, j in itertools.product(range(12), range(12)):
        rows = PLAN.train[:, j] == 0 if i != j else np.ones(60, bool)
        inside = PLAN.train[:, i] > 0
        some, others = LOSSES.values[rows & inside, j], LOSSES.values[rows & ~inside, j]
        assert found.estimate[i, j] == pytest.approx(others.mean() - some.mean(), rel=1e-9, abs=1e-12)
        error = np.sqrt(some.var(ddof=1) / len(some) + others.var(ddof=1) / len(others))
        assert found.standard_error[i, j] == pytest.approx(error, rel=1e-9)
    np.testing.assert_allclose(np.diag(found.estimate), worth.memorisation(LOSSES).estimate, rtol=1e-12)


def test_influence_is_what_leaving_a_case_out_changes_on_average():
    """Least squares on subsets of 30 cases: for each of the rows' own subsets, with and without the case, by brute
    force. z has mean square 1 within six standard errors, half as much again for what pairs of one case share.
    """
    random, cases, count = np.random.default_rng(3), 30, 6
    x = np.c_[np.ones(cases + count), random.normal(size=(cases + count, 2))]
    y = x @ [1.0, 2.0, -1.0] + random.normal(size=cases + count)

    def losses_of(plan, rows):
        gram = np.einsum("rn,ni,nj->rij", rows, x, x) + 0.1 * np.eye(3)
        fitted = np.linalg.solve(gram, np.einsum("rn,ni,n->ri", rows, x, y)[..., None])[..., 0] @ x.T
        return np.square(y - fitted)

    plan = resample.half_samples(KEY, cases + count, 2000, range(cases, cases + count))
    found = worth.influence(made(losses_of(plan, plan.train.astype(float)), plan))
    other = resample.half_samples(jax.random.key(1), cases + count, 4000, range(cases, cases + count))
    z = []
    for case in range(cases):
        rows = other.train.astype(float)
        rows[:, case] = 0
        without = losses_of(other, rows)
        rows[:, case] = 1
        change = (without - losses_of(other, rows))[:, cases:]
        error = np.hypot(found.standard_error[case, cases:], change.std(0) / np.sqrt(len(rows)))
        z.append((found.estimate[case, cases:] - change.mean(0)) / error)
    z = np.array(z)
    assert abs(z.mean()) < 6 / np.sqrt(z.size)
    assert abs(np.mean(z**2) - 1) < 9 * np.sqrt(2 / z.size)


# Datamodels


def test_the_lasso_is_that_of_scikit_learn():
    x = RANDOM.normal(size=(80, 20)) + RANDOM.normal(size=(80, 1))
    y = x[:, :3] @ RANDOM.normal(size=(3, 4)) + RANDOM.normal(size=(80, 4))
    centred, targets = x - x.mean(0), y - y.mean(0)
    penalty = np.array([0.01, 0.05, 0.2, 1.0])
    products, moments = centred.T @ centred / 80, centred.T @ targets / 80
    (found,) = sparse_fits(products, moments, penalty[None], close=1e-10)
    for target in range(4):
        theirs = Lasso(penalty[target], tol=1e-12, max_iter=100_000).fit(x, y[:, target]).coef_
        np.testing.assert_allclose(found[:, target], theirs, atol=1e-7)  # two iterations that end
        np.testing.assert_array_equal(found[:, target] == 0, theirs == 0)
    (ordinary,) = sparse_fits(products, moments, np.zeros((1, 4)), close=1e-12)
    np.testing.assert_allclose(ordinary, LinearRegression().fit(x, y).coef_.T, atol=1e-7)
    path = sparse_fits(products, moments, np.array([4.0, 2.0, 1.0])[:, None] * penalty, close=1e-10)
    np.testing.assert_allclose(path[-1], found, atol=1e-7)


@pytest.mark.parametrize("cases", [20, 200], ids=["few at a time", "all at a time"])
def test_a_target_of_the_lasso_is_as_exact_as_if_it_were_alone(cases):
    """Beside one 1e6 times as large; scikit-learn with the same penalty. Steps of 1e-5 end at most 1e-3 away."""
    random = np.random.default_rng(8)
    x = (random.random((400, cases)) < 0.5).astype(float)
    y = (x[:, :3] @ random.normal(size=(3, 30)) + random.normal(size=(400, 30))) * np.logspace(-3, 3, 30)
    centred, targets, penalty = x - x.mean(0), y - y.mean(0), 0.02 * y.std(0)
    (found,) = sparse_fits(centred.T @ centred / 400, centred.T @ targets / 400, penalty[None])
    for target in (0, 29):
        theirs = Lasso(penalty[target], tol=1e-10, max_iter=10_000).fit(x, y[:, target]).coef_
        np.testing.assert_allclose(found[:, target], theirs, rtol=0, atol=1e-3 * np.abs(theirs).max())


def linear(random, cases=30, count=8, rows=600, noise=1.0):
    """Coefficients [T, V], a third of them not 0, and losses whose utilities are linear in the masks, but for noise."""
    true = random.normal(size=(cases, count)) * (random.random((cases, count)) < 0.3)
    plan = resample.half_samples(KEY, cases + count, rows, range(cases, cases + count))
    values = random.normal(size=plan.shape)
    values[:, cases:] = -(plan.train[:, :cases] @ true + noise * random.normal(size=(rows, count)))
    return true, made(values, plan)


def test_standard_errors_of_datamodels_cover_the_coefficients():
    z = []
    for seed in range(10):
        true, losses = linear(np.random.default_rng(seed))
        found = worth.datamodels(losses, tested=range(30, 38))
        z.append((found.estimate - true) / found.standard_error)
    z = np.array(z)
    assert abs(z.mean()) < 6 / np.sqrt(z.size)
    assert abs(np.mean(z**2) - 1) < 9 * np.sqrt(2 / z.size)  # half as much again for what a data set shares


def test_datamodels_without_noise_are_exact():
    """And least squares on all rows of the same masks has nothing to add."""
    true, losses = linear(np.random.default_rng(5), noise=0.0)
    found = worth.datamodels(losses, tested=range(30, 38), penalty=1e-6)
    np.testing.assert_allclose(found.estimate, true, atol=1e-3)  # where the descent ends
    theirs = LinearRegression().fit(losses.train[:, :30], -losses.values[:, 30:]).coef_.T
    np.testing.assert_allclose(found.estimate, theirs, atol=1e-3)
    assert found.score.min() > 0.999


def test_the_datamodelling_score_is_that_of_held_out_rows():
    """Of folds by the row's number: scikit-learn's lasso at the same penalty, SciPy's Spearman correlation."""
    _, losses = linear(np.random.default_rng(6))
    found = worth.datamodels(losses, tested=[31, 37], penalty=0.5, folds=4)
    x, y = losses.train[:, :30].astype(float), -losses.values[:, [31, 37]]
    for column in range(2):
        scores, sparse = [], []
        for fold in range(4):
            here = np.arange(600) % 4 == fold
            unit = np.sqrt(x[~here].var(0).mean()) * y[~here, column].std() * np.sqrt(2 * np.log(30) / sum(~here))
            theirs = Lasso(0.5 * unit, tol=1e-10).fit(x[~here], y[~here, column])
            scores.append(spearmanr(theirs.predict(x[here]), y[here, column]).statistic)
            sparse.append(theirs.coef_)
        assert found.score[column] == pytest.approx(np.mean(scores), abs=2e-3)  # ranks that swap where the descent ends
        assert found.score_error[column] == pytest.approx(np.std(scores, ddof=1) / 2, abs=2e-3)
        np.testing.assert_allclose(found.weights[:, column], np.mean(sparse, axis=0), atol=2e-3)
    noise = worth.datamodels(losses, tested=range(10))  # losses by chance
    assert abs(noise.score.mean()) < 6 / np.sqrt(600 * 10)


def test_datamodels_take_out_the_noise_of_other_cases():
    """They estimate what influence does, with a smaller error."""
    _, losses = linear(np.random.default_rng(7))
    found, raw = worth.datamodels(losses, tested=range(30, 38)), worth.influence(losses)
    assert found.standard_error.mean() < 0.75 * raw.standard_error[:, 30:].mean()
    z = (found.estimate - raw.estimate[:, 30:]) / raw.standard_error[:, 30:]
    assert np.mean(z**2) < 1.5


# What is refused, and what is said

VALUED = resample.half_samples(KEY, 12, 60, range(8, 12))
SIZES = resample.by_size(KEY, 12, 60, range(8, 12))


def chance(plan):
    return made(np.random.default_rng(4).gamma(2.0, size=plan.shape), plan)


HALVES = [worth.banzhaf, worth.memorisation, worth.influence, worth.datamodels]
SEMIVALUES = [worth.banzhaf, worth.shapley, lambda losses: worth.beta_shapley(losses, 4, 1)]
OTHERS = {
    "sizes for halves": (HALVES, SIZES, r"half_samples"),
    "fixed sizes for coins": (
        [worth.banzhaf, worth.datamodels],
        resample.leave_out(KEY, 200, 0.5, 400),
        "half_samples|value cases",
    ),
    "halves for sizes": ([worth.shapley], resample.half_samples(KEY, 30, 60, range(20, 30)), r"of each size.*by_size"),
    "no value cases": (SEMIVALUES, PLAN, r"value cases.*with value="),
    "folds": ([*HALVES, *SEMIVALUES], resample.k_fold(KEY, 12, 4, 5), "independent draws"),
    "unlabelled folds": (
        [*HALVES, *SEMIVALUES],
        resample.from_weights(*(getattr(resample.k_fold(KEY, 12, 4, 5), name) for name in ("train", "test"))),
        "folds",
    ),
    "bootstrap": ([*HALVES, *SEMIVALUES], resample.bootstrap(KEY, 12, 40), "drawn more than once"),
    "a design": ([worth.out_of_bag, *HALVES], resample.paired_halves(KEY, 20), "design with the labels"),
    "one row": ([worth.out_of_bag, *HALVES, *SEMIVALUES], resample.leave_out(KEY, 12, 0.5, 1), "at least 2 rows"),
    "a case never left out": ([worth.out_of_bag, worth.memorisation], resample.leave_out(KEY, 12, 0.1, 3), "two rows"),
    "one value case": (SEMIVALUES, resample.half_samples(KEY, 12, 60, [3]), "at least 2 value cases"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_plans_are_refused(name, own_messages):
    functions, plan, words = OTHERS[name]
    losses = chance(plan)
    for function in functions:
        assert re.search(words, refused(lambda f=function: f(losses), ValueError)), function


@pytest.mark.parametrize("function", [worth.out_of_bag, *HALVES, *SEMIVALUES])
def test_losses_that_lack_something_are_refused(function, own_messages):
    losses = chance(SIZES if function in SEMIVALUES[1:] else VALUED)
    function(losses)
    for wrong in (without_values(losses), with_failed(losses), None, losses.values):
        refused(lambda wrong=wrong: function(wrong))
    several = chance(VALUED)
    values = np.stack([several.values] * 2)
    refused(lambda: function(made(values, VALUED)), ValueError)


def test_missing_predictions_are_refused(own_messages):
    """A tool that predicts test cases only gives what out-of-bag values need, and nothing for memorisation."""
    predictions = np.where(PLAN.test > 0, RANDOM.normal(size=PLAN.shape), np.nan)
    losses = Losses.from_predictions(np.zeros(12), predictions, PLAN.train, PLAN.test, loss.squared)
    assert np.isfinite(worth.out_of_bag(losses).estimate).all()
    for function in (worth.memorisation, worth.influence, worth.datamodels):
        assert "predictions of every row" in refused(lambda f=function: f(losses), ValueError)
    holes = predictions.copy()
    holes[0, np.flatnonzero(VALUED.train[0] == 0)[0]] = np.nan
    given = Losses.from_predictions(np.zeros(12), holes, VALUED.train, VALUED.test, loss.squared)
    refused(lambda: worth.out_of_bag(given), ValueError)


def test_groups_of_value_cases_are_refused(own_messages):
    plan = resample.from_weights(VALUED.train, VALUED.test, groups=np.arange(12) // 2)
    assert "independent cases" in refused(lambda: worth.banzhaf(chance(plan)), ValueError)


def test_a_biased_plan_is_refused(own_messages):
    """Rows that hold some cases more often than others."""
    train = (np.random.default_rng(0).random((400, 12)) < np.r_[np.full(6, 0.3), np.full(6, 0.7)]).astype(np.uint8)
    train[:, 10:] = 0
    train[train.sum(1) == 0, 0] = 1
    test = np.zeros_like(train)
    test[:, 10:] = 1
    losses = chance(resample.from_weights(train, test))
    for function in HALVES:
        refused(lambda f=function: f(losses), ValueError)


def test_rows_that_failed_get_the_empty_utility_or_are_refused(own_messages):
    losses = with_failed(chance(SIZES))
    refused(lambda: worth.shapley(losses), ValueError)
    assert "empty=" in refused(lambda: worth.shapley(losses.without_failed(), empty=-1.0), ValueError)
    found = worth.shapley(losses, empty=-1.5)
    assert "1 rows that failed" in found.note
    values = losses.values.copy()
    values[3] = 1.5
    np.testing.assert_allclose(found.estimate, worth.shapley(made(values, SIZES), empty=-1.5).estimate, rtol=1e-12)
    assert "1 failed rows were left out" in worth.banzhaf(with_failed(chance(VALUED)).without_failed()).note


def test_pairs_that_do_not_fit_into_memory_are_refused(own_messages, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10_000)
    for function in (worth.influence, worth.datamodels):
        refused(lambda f=function: f(LOSSES), MemoryError)


def test_a_finding_prints_its_cases_and_gives_a_table():
    found = worth.banzhaf(chance(VALUED))
    assert str(found.worst(1)[0]) in str(found)
    assert "Monte Carlo part" in str(found)
    frame = found.to_frame()
    assert list(frame["case"]) == list(range(8))
    assert {"monte_carlo", "of_value_cases"} <= set(frame)
    assert "of_value_cases" not in worth.out_of_bag(LOSSES).to_frame()
    lower, upper = found.limits(0.9)
    np.testing.assert_allclose((upper - lower) / (2 * 1.6448536), found.standard_error, rtol=1e-6)
    assert found.estimate[found.cases == found.worst(3)[0]][0] == found.estimate.min()
    assert len(worth.influence(LOSSES).to_frame()) == 144
    assert "on" in str(worth.influence(LOSSES))
    models = worth.datamodels(LOSSES, tested=[3, 1])
    assert list(models.to_frame()["tested"]) == [3, 1]
    assert "score" in str(models)


# With a learner


@pytest.mark.slow
def test_flipped_labels_are_worth_least():
    """Of 60 cases 6 are mislabelled: each number finds them better than chance does; AUC 1 is all first."""
    data = datasets.breast_cancer()
    chosen = np.random.default_rng(0).permutation(data.n)[:100]
    y = data.y[chosen].copy()
    flipped = np.arange(0, 60, 10)
    y[flipped] = y[flipped][:, ::-1]
    noisy = datasets.from_arrays(data.x[chosen], y, task="classification")
    learner = learn.Normalised(learn.Logistic(ridge=1.0), how="standard")

    def area(found, sign=1):
        wrong = np.isin(found.cases, flipped)
        value = sign * found.estimate
        return np.mean(value[wrong, None] < value[~wrong])

    halves = resample.half_samples(KEY, 100, 600, range(60, 100))
    losses = jg.assess(KEY, learner, noisy, halves, loss.cross_entropy)
    assert area(worth.out_of_bag(losses)) > 0.9
    assert area(worth.memorisation(losses), -1) > 0.9
    assert area(worth.banzhaf(losses)) > 0.8
    sizes = resample.by_size(KEY, 100, 600, range(60, 100), smallest=10)
    losses = jg.assess(KEY, learner, noisy, sizes, loss.cross_entropy)
    assert area(worth.shapley(losses, empty=-np.log(2))) > 0.8


@pytest.mark.slow
def test_the_benchmark_runs_without_its_peers():
    text = quick("worth.py")
    assert "not beside pydvl" in text
    assert text.count("jaxgen Banzhaf") == 4  # by cross-entropy and by the 0-1 loss, of two learners
