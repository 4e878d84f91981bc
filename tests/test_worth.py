"""What each case is worth: exact values by all subsets, the axioms, coverage of both standard errors, influence against
leave-one-out, and datamodels against scikit-learn.
"""

import itertools
import math

import jax
import numpy as np
import pytest
from given import made, with_failed, without_values
from hostile import refused
from scipy.special import betaln
from sklearn.linear_model import Lasso, LinearRegression

import jaxgen as jg
from jaxgen import datasets, learn, loss, resample
from jaxgen.stats import worth
from jaxgen.stats.worth.lasso import lasso
from jaxgen.types import Losses

KEY, T, V = jax.random.key(0), 5, 3
SUBSETS = [subset for size in range(T + 1) for subset in itertools.combinations(range(T), size)]
RANDOM = np.random.default_rng(0)
GAME = {subset: RANDOM.normal(size=V) for subset in SUBSETS}
"""The utility of every subset of five cases on three value cases, by chance: all interactions there can be."""


def mean_gain(game, case, size, cases=T):
    """What a case adds to a subset of so many others, on average over these subsets, by the definition."""
    others = [other for other in range(cases) if other != case]
    gains = [
        np.mean(game[tuple(sorted((*some, case)))]) - np.mean(game[some]) for some in itertools.combinations(others, size)
    ]
    return np.mean(gains)


def semivalue(game, weight, cases=T):
    """The sum of mean gains over sizes, each with its weight."""
    return np.array([sum(weight(size) * mean_gain(game, i, size, cases) for size in range(cases)) for i in range(cases)])


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
    and a function of masks [R, T] to utilities [R, V]. Pairs count from half samples, where they add nothing on average.
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
    "banzhaf": (resample.half_samples, worth.banzhaf, 1 / 2),
    "shapley": (resample.by_size, worth.shapley, 1 / 2),
    "beta_shapley": (resample.by_size, lambda losses: worth.beta_shapley(losses, 2, 1), 1 / 3),
}
"""A plan, a semivalue, and the mean share of the other cases in the subsets that it averages over."""


@pytest.mark.parametrize("kind", KINDS)
def test_standard_errors_are_those_of_a_simulation(kind):
    """z = (estimate - truth) / standard error of 60 data sets of 24 cases: for the truth on these value cases by the
    Monte Carlo part, and on all value cases by both parts. The mean of z is 0 and that of its square 1, each within
    six standard errors: 1/sqrt(60 * 24) and sqrt(2 / (60 * 24)), half as much again for what cases of a set share.
    """
    random, (plan_of, method, share) = np.random.default_rng(1), KINDS[kind]
    of_rows, of_all = [], []
    for seed in range(60):
        worths, gains, pairs, utility = system(random, 12)
        found = method(estimated(plan_of(jax.random.key(seed), 36, 300, range(24, 36)), utility))
        in_pairs = pairs.sum(1) * (share - 0.5)
        estimate, *truths = found.estimate, gains.mean(0) + in_pairs, worths + in_pairs
        if kind != "banzhaf":  # a constant is what the smallest subsets have
            estimate, *truths = (each - each.mean() for each in (estimate, *truths))
        for truth, error, into in zip(truths, (found.monte_carlo, found.standard_error), (of_rows, of_all), strict=True):
            into.append((estimate - truth) / error)
    for z in (np.array(of_rows), np.array(of_all)):
        assert abs(z.mean()) < 0.2
        assert abs(np.mean(z**2) - 1) < 0.33
