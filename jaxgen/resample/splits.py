"""Random splits of the cases, samples with replacement, and plans of given weights."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import jax
import numpy as np
from jaxtyping import Shaped

from jaxgen.resample.drawing import call, different, different_shares, require_room
from jaxgen.types import Key, Plan, as_labels, as_weights
from jaxgen.types.drawn import DrawnPlan, Recipe, lacking_some
from jaxgen.types.keys import generator, key_first, text
from jaxgen.types.keys import require as require_key
from jaxgen.types.numbers import require, require_flag, require_kind, shown
from jaxgen.types.plan import numbered

_EQUAL_ROWS = 1e-9
"""The greatest probability that two rows of a lazy plan are equal."""


@key_first
def leave_out(
    key: Key,
    n: int,
    fraction: float = 0.1,
    resamples: int = 100,
    sets: int | None = None,
    lazy: bool = False,
    strata: Collection[Any] | None = None,
) -> Plan:
    """Random splits without replacement that leave out a fixed fraction (Larsen & Hansen 1995, "Empirical
    generalization").

    Args:
      key: consumed.
      n: cases, N.
      fraction: share left out, 0 < fraction < 1; ceil(n * fraction) cases are tested, the rest trained. A tenth
        measured best; see `docs/which_interval_which_test.md`, also for how many splits it takes.
      resamples: splits, R; all different, so at most C(n, ceil(n * fraction)).
      sets: data sets, Q, each with splits of its own; None for one plan without that axis.
      lazy: for plans that are large: rows are drawn where they are needed, a range at a time, and never exist all at
        once unless `train` or `test` is read. They are other rows than without it.
      strata: class labels [N]: of each class every row leaves out its share, rounded up or down at random, so that all
        cases are tested with the same probability.
    Returns:
      Plan, train and test in {0, 1}, shape [R, N], or [Q, R, N] with sets.
    Raises:
      ValueError: no case, or every case, would be left out; or fewer different splits exist than asked for; or, if
        lazy, so few that two rows might be equal, or several sets; or strata together with sets or lazy, or not one
        label per case.
      MemoryError: the plan would not fit into memory.
    """
    n, fraction, tested = _left_out(n, fraction)
    resamples, sets = require("resamples", resamples, 1), _sets(sets)
    if strata is not None:
        return _stratified(key, n, fraction, tested, resamples, strata, sets, lazy)
    if _lazy(lazy, sets):
        _refuse_equal(n, resamples, -(math.lgamma(n + 1) - math.lgamma(tested + 1) - math.lgamma(n - tested + 1)))
        scheme = call("leave_out", text(key), n, fraction=fraction, resamples=resamples, lazy=True)
        return DrawnPlan(Recipe(_words(key), n, tested), np.arange(resamples), scheme)
    test = different(generator(key), sets or 1, resamples, n, tested, "fraction")
    test = test[0] if sets is None else test
    scheme = call("leave_out", text(key), n, fraction=fraction, resamples=resamples, sets=sets)
    return Plan(test ^ 1, test, scheme).checked()


def _stratified(
    key: Key,
    n: int,
    fraction: float,
    tested: int,
    resamples: int,
    strata: Collection[Any],
    sets: int | None,
    lazy: bool,
) -> Plan:
    """Splits that leave out equal shares of all classes."""
    if sets is not None or lazy:
        raise ValueError("expected strata of one plan, got also sets or lazy; leave them out")
    label, rng = numbered("strata", strata, n), generator(key)
    require_room(resamples, n)
    test = different_shares(rng, label, resamples, tested)
    scheme = call("leave_out", text(key), n, fraction=fraction, resamples=resamples, strata=f"<{n} labels>")
    return Plan(test ^ 1, test, scheme, cases={"stratum": label}).checked()


@key_first
def balanced(key: Key, n: int, fraction: float, resamples: int) -> Plan:
    """Cyclic balanced splits, for few resamples (Varfis & Corleto 1994, section 2.2).

    After one random permutation row b of B trains on the n - ceil(n * fraction) consecutive cases, modulo n, from
    floor(b * n / B). So the numbers of times that two cases are trained on differ by at most one.

    Args:
      key: consumed.
      n: cases, N.
      fraction: share left out, 0 < fraction < 1; ceil(n * fraction) cases are tested.
      resamples: splits, B, at most n: more would repeat themselves.
    Returns:
      Plan, train and test in {0, 1}, shape [B, N], with label "partition", 0: all rows cut one permutation, and so are
      no independent draws.
    Raises:
      ValueError: no case, or every case, would be left out; or resamples out of range.
      MemoryError: the plan would not fit into memory.
    """
    n, fraction, tested = _left_out(n, fraction)
    resamples = require("resamples", resamples, 1, n, "the number of cases, where such splits start to repeat")
    require_room(resamples, n, working=17)  # of which 16 for two arrays of positions
    start = np.arange(resamples) * n // resamples
    position = generator(key).permutation(n)
    test = ((position - start[:, None]) % n >= n - tested).astype(np.uint8)
    scheme = call("balanced", text(key), n, fraction=fraction, resamples=resamples)
    return Plan(1 - test, test, scheme, {"partition": np.zeros(resamples, np.int64)}).checked()


@key_first
def bootstrap(key: Key, n: int, resamples: int, sets: int | None = None, lazy: bool = False) -> Plan:
    """Bootstrap samples, tested on the cases that they lack (Efron 1983, "Estimating the error rate of a prediction
    rule").

    A draw that holds every case, which leaves none to test, is drawn again; above ten cases that hardly happens.

    Args:
      key: consumed.
      n: cases, N.
      resamples: bootstrap samples, R.
      sets: data sets, Q, each with samples of its own; None for one plan without that axis.
      lazy: rows are drawn where they are needed, and are other rows than without it; see `leave_out`.
    Returns:
      Plan, train the number of times that a case was drawn (n in each row), test 1 where that is 0; shape [R, N], or
      [Q, R, N] with sets.
    Raises:
      ValueError: a number out of range.
      MemoryError: the plan would not fit into memory.
    """
    n, resamples, sets = require("n", n, 2), require("resamples", resamples, 1), _sets(sets)
    if _lazy(lazy, sets):
        # How often cases come in a sample are Poisson numbers of mean 1, given that their sum is n. Those of two
        # samples agree with probability (exp(-2) I_0(2))^n before it is given, and at most 2 pi n times that after.
        _refuse_equal(n, resamples, n * math.log(0.3085) + math.log(2 * math.pi * n))
        scheme = call("bootstrap", text(key), n, resamples=resamples, lazy=True)
        return DrawnPlan(Recipe(_words(key), n, None), np.arange(resamples), scheme)
    require_room(resamples, n, sets)
    train = lacking_some(generator(key), (sets or 1) * resamples, n)
    train = train.reshape((resamples, n) if sets is None else (sets, resamples, n))
    scheme = call("bootstrap", text(key), n, resamples=resamples, sets=sets)
    return Plan(train, (train == 0).astype(np.uint8), scheme).checked()


def full(n: int) -> Plan:
    """One row that trains and tests on every case: the full fit and its apparent error.

    Args:
      n: cases, N.
    Returns:
      Plan, train and test all 1, shape [1, N].
    Raises:
      ValueError: no cases.
      MemoryError: the plan would not fit into memory.
    """
    n = require("n", n, 1)
    require_room(1, n)
    return Plan(np.ones((1, n), np.uint8), np.ones((1, n), np.uint8), call("full", n)).checked()


def from_weights(
    train: Shaped[np.ndarray, "*Q R N"],
    test: Shaped[np.ndarray, "*Q R N"],
    scheme: str = "given weights",
    labels: Mapping[str, Collection[Any]] | None = None,
    groups: Collection[Any] | None = None,
    times: Collection[Any] | None = None,
) -> Plan:
    """A plan of your own weights.

    Args:
      train: how often each case counts in training, [R, N] or [Q, R, N]; whole numbers from 0 to 255 of any type, or
        True and False.
      test: the same for the test.
      scheme: text that says where they come from.
      labels: what a row is within its design, [R] each: "repeat" and "fold" for repeated folds, "instance" for training
        sets of their own.
      groups: labels [N] of cases that depend on each other, such as those of one patient.
      times: when each case was observed, [N], if they are a series.
    Returns:
      Plan, a copy, shape [*Q, R, N].
    Raises:
      ValueError: a weight is negative, fractional, not finite or above 255, shapes differ, a row trains or tests on
        nothing, the scheme is no text, or there is not one label for each row or case.
    """
    weights = as_weights("train", train), as_weights("test", test)
    return Plan(*weights, scheme, *as_labels(weights[0].shape, labels, groups, times)).checked()


def stack(plans: Sequence[Plan]) -> Plan:
    """One plan for several data sets of equal size, of one plan each.

    Args:
      plans: Q plans [R, N] with the same labels.
    Returns:
      Plan, shape [Q, R, N].
    Raises:
      TypeError: something else than plans.
      ValueError: no plans, or plans of unlike shapes or labels.
    """
    plans = list(plans) if isinstance(plans, Iterable) else [plans]
    for plan in plans:
        require_kind("a list of plans", plan, Plan, "make each with a function of jaxgen.resample")
        plan.checked()
    if not plans or any(plan.train.shape != plans[0].train.shape or plan.sets is not None for plan in plans):
        raise ValueError(
            f"expected plans of one shape [R, N], got {[list(plan.train.shape) for plan in plans]}; "
            "stack only plans of as many rows and cases"
        )
    labels = plans[0].labels
    for plan in plans:
        if not (_same(plan.labels, labels) and _same(plan.cases, plans[0].cases)):
            raise ValueError(
                f"expected plans with the same labels, got those of {plans[0].scheme} and {plan.scheme}; "
                "stack only plans of one design"
            )
    scheme = f"resample.stack([{', '.join(plan.scheme for plan in plans)}])"
    train, test = (np.stack([getattr(plan, name) for plan in plans]) for name in ("train", "test"))
    return Plan(train, test, scheme, labels, plans[0].cases).checked()


def _same(some: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]) -> bool:
    """Whether two mappings of arrays [R] or [N] hold the same."""
    return some.keys() == others.keys() and all(np.array_equal(some[name], others[name]) for name in some)


def _sets(sets: Any) -> int | None:
    """The number of data sets, if it is one or None."""
    return None if sets is None else require("sets", sets, 1)


def _lazy(lazy: Any, sets: int | None) -> bool:
    """Whether rows are to be drawn where they are needed."""
    require_flag("lazy", lazy)
    if lazy and sets is not None:
        raise ValueError(
            f"expected one plan for all data sets to draw its rows where they are needed, got sets={sets}; leave sets "
            "or lazy out"
        )
    return bool(lazy)


def _words(key: Key) -> tuple[int, ...]:
    """A key as plain numbers."""
    return tuple(np.asarray(jax.random.key_data(require_key(key))).tolist())


def _refuse_equal(n: int, resamples: int, log_chance: float) -> None:
    """ValueError if some of so many rows drawn apart from each other might be equal.

    Args:
      n: cases.
      resamples: rows.
      log_chance: of two rows to be equal.
    """
    if 2 * math.log(resamples) + log_chance > math.log(2 * _EQUAL_ROWS):
        raise ValueError(
            f"expected so many cases that {resamples} rows drawn apart from each other all differ, got {n}; leave lazy "
            "out, since such a plan is small"
        )


def _left_out(n: Any, fraction: Any) -> tuple[int, float, int]:
    """The cases, the fraction and ceil(n * fraction), if that leaves something to train and something to test on."""
    n = require("n", n, 2)
    if not isinstance(fraction, float | np.floating | Fraction) or not 0 < fraction < 1:
        raise ValueError(
            f"expected a fraction between 0 and 1, got {shown(fraction)}; give the share of cases to leave out, such "
            "as 0.25"
        )
    fraction = float(fraction)
    tested = math.ceil(n * fraction - 1e-9)  # 100 * 0.07 is 7.000000000000001
    if not 0 < tested < n:
        raise ValueError(
            f"expected a fraction that leaves out some of the {n} cases but not all, got {fraction}, "
            f"which leaves out {tested}; choose another fraction"
        )
    return n, fraction, tested
