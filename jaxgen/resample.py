"""Splitting schemes: each function returns a Plan of training and test weights, made on the host."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from jaxgen.draw import counts, different, require
from jaxgen.keys import generator, text
from jaxgen.types import Key, Plan, as_weights


def leave_out(key: Key, n: int, fraction: float, resamples: int, sets: int | None = None) -> Plan:
    """Random splits without replacement that leave out a fixed fraction (Larsen & Hansen 1995, "Empirical generalization").

    Args:
      key: consumed.
      n: cases, N.
      fraction: share left out, 0 < fraction < 1; ceil(n * fraction) cases are tested, the rest trained.
      resamples: splits, R; all different, so at most C(n, ceil(n * fraction)).
      sets: data sets, Q, each with splits of its own; None for one plan without that axis.
    Returns:
      Plan, train and test in {0, 1}, shape [R, N], or [Q, R, N] with sets.
    Raises:
      ValueError: no case, or every case, would be left out; or fewer different splits exist than asked for.
    """
    require("sets", 1 if sets is None else sets, 1)
    test = different(generator(key), sets or 1, resamples, n, _left_out(n, fraction), "fraction")
    test = test[0] if sets is None else test
    return Plan(test ^ 1, test, _call("leave_out", text(key), n, fraction=fraction, resamples=resamples, sets=sets)).checked()


def k_fold(key: Key, n: int, folds: int = 10, repeats: int = 1, strata: Collection[Any] | None = None, groups: Collection[Any] | None = None) -> Plan:
    """Repeated K-fold cross-validation: every case is tested once in each repeat (Stone 1974; Geisser 1975).

    Fold sizes differ by at most one, with strata also within each class. Groups go in random order, the largest first,
    onto the lightest fold; if all sizes differ this leaves no choice, and repeats hold the same folds in another order.

    Args:
      key: consumed.
      n: cases, N.
      folds: K, from 2 to n, or to the number of groups.
      repeats: random divisions into folds; R = repeats * folds.
      strata: class labels [N], to be spread evenly over the folds.
      groups: group labels [N]; cases of one group are never divided between training and test.
    Returns:
      Plan, train and test in {0, 1}, shape [R, N], with labels "repeat" and "fold".
    Raises:
      ValueError: folds or repeats out of range, strata and groups together, or not one label per case.
    """
    require("n", n, 2)
    require("repeats", repeats, 1)
    if strata is not None and groups is not None:
        raise ValueError("expected strata or groups, got both; leave one of them out")
    rng = generator(key)
    if groups is None:
        require("folds", folds, 2, n, "the number of cases")
        fold = _dealt(rng, np.zeros(n, np.int64) if strata is None else _numbered("strata", strata, n), folds, repeats)
    else:
        group = _numbered("groups", groups, n)
        require("folds", folds, 2, int(group.max()) + 1, "the number of groups")
        fold = np.stack([_lightest_first(rng, group, folds) for _ in range(repeats)])
    labels = {"strata": None if strata is None else f"<{n} labels>", "groups": None if groups is None else f"<{n} labels>"}
    return _of_folds(fold, folds, _call("k_fold", text(key), n, folds=folds, repeats=repeats, **labels))


def leave_one_out(n: int) -> Plan:
    """Leave-one-out cross-validation: row i tests case i and trains on all others (Stone 1974).

    Args:
      n: cases, N.
    Returns:
      Plan, train and test in {0, 1}, shape [N, N], with labels "repeat" (0) and "fold" (i).
    Raises:
      ValueError: fewer than two cases.
    """
    require("n", n, 2)
    return _of_folds(np.arange(n)[None], n, _call("leave_one_out", n))


def five_by_two(key: Key, n: int, strata: Collection[Any] | None = None) -> Plan:
    """Five repeats of two-fold cross-validation (Dietterich 1998, "Approximate statistical tests").

    Args:
      key: consumed.
      n: cases, N.
      strata: class labels [N], to be spread evenly over the halves.
    Returns:
      Plan, train and test in {0, 1}, shape [10, N], with labels "repeat" and "fold".
    Raises:
      ValueError: fewer than two cases, or not one label per case.
    """
    scheme = _call("five_by_two", text(key), n, strata=None if strata is None else f"<{n} labels>")
    return replace(k_fold(key, n, folds=2, repeats=5, strata=strata), scheme=scheme)


def nested_pairs(key: Key, n: int, folds: int = 10, repeats: int = 1) -> Plan:
    """All fits of nested cross-validation: without one fold, and without two (Bates, Hastie & Tibshirani 2024).

    Args:
      key: consumed.
      n: cases, N.
      folds: K, from 3 to n.
      repeats: random divisions into folds; R = repeats * K(K+1)/2.
    Returns:
      Plan, train and test in {0, 1}, shape [R, N]: per repeat K rows without fold k, then K(K-1)/2 rows without folds j < k,
      each tested on what it was not trained on. Labels "repeat", "first" (j) and "second" (k), equal in the rows without one fold.
    Raises:
      ValueError: folds or repeats out of range.
    """
    require("n", n, 3)
    require("folds", folds, 3, n, "the number of cases")
    require("repeats", repeats, 1)
    fold = _dealt(generator(key), np.zeros(n, np.int64), folds, repeats)
    first, second = np.hstack([np.tile(np.arange(folds), (2, 1)), np.triu_indices(folds, 1)])
    test = ((fold[:, None] == first[:, None]) | (fold[:, None] == second[:, None])).astype(np.uint8).reshape(-1, n)
    labels = {"repeat": np.repeat(np.arange(repeats), len(first)), "first": np.tile(first, repeats), "second": np.tile(second, repeats)}
    return Plan(1 - test, test, _call("nested_pairs", text(key), n, folds=folds, repeats=repeats), labels).checked()


def paired_halves(key: Key, n: int, pairs: int = 10, resamples: int = 15, test_size: int | None = None) -> Plan:
    """Leave-out splits of all data and of pairs of disjoint halves, for the conservative Z of Nadeau & Bengio 2003.

    Args:
      key: consumed.
      n: cases, N, at least 4; of an odd number a case chosen at random belongs to neither half.
      pairs: random divisions into two halves of floor(n/2) cases, M.
      resamples: different splits of the full data and of each half, J; R = J(2M + 1).
      test_size: test cases of every row, n2; floor(n/10), at least 1, if None. A half trains on floor(n/2) - n2 cases.
    Returns:
      Plan, train and test in {0, 1}, shape [R, N]; cases outside a half have weight 0 in both. Labels "pair" and "half", both -1 for
      the rows of the full data, which come first, and "resample".
    Raises:
      ValueError: a number out of range, or fewer different splits of a half exist than asked for.
    """
    require("n", n, 4)
    require("pairs", pairs, 1)
    half, tested = n // 2, max(n // 10, 1) if test_size is None else test_size
    require("test_size", tested, 1, half - 1, "one less than a half")
    rng = generator(key)
    full = different(rng, 1, resamples, n, tested, "test_size")
    parts = different(rng, 2 * pairs, resamples, half, tested, "test_size")
    cases = rng.permuted(np.tile(np.arange(n), (pairs, 1)), axis=1)[:, : 2 * half].reshape(2 * pairs, 1, half)
    train, test = np.zeros((2, 1 + 2 * pairs, resamples, n), np.uint8)
    train[0], test[0] = full[0] ^ 1, full[0]
    np.put_along_axis(train[1:], cases, parts ^ 1, axis=-1)
    np.put_along_axis(test[1:], cases, parts, axis=-1)
    labels = {
        "pair": np.repeat(np.r_[-1, np.repeat(np.arange(pairs), 2)], resamples),
        "half": np.repeat(np.r_[-1, np.tile([0, 1], pairs)], resamples),
        "resample": np.tile(np.arange(resamples), 1 + 2 * pairs),
    }
    scheme = _call("paired_halves", text(key), n, pairs=pairs, resamples=resamples, test_size=test_size)
    return Plan(train.reshape(-1, n), test.reshape(-1, n), scheme, labels).checked()


def balanced(key: Key, n: int, fraction: float, resamples: int) -> Plan:
    """Cyclic balanced splits, for few resamples (Varfis & Corleto 1994, section 2.2).

    After one random permutation row b of B trains on the n - ceil(n * fraction) consecutive cases, modulo n, from floor(b * n / B).
    So the numbers of times that two cases are trained on differ by at most one.

    Args:
      key: consumed.
      n: cases, N.
      fraction: share left out, 0 < fraction < 1; ceil(n * fraction) cases are tested.
      resamples: splits, B, at most n: more would repeat themselves.
    Returns:
      Plan, train and test in {0, 1}, shape [B, N], with label "partition", 0: all rows cut one permutation, and so are no independent draws.
    Raises:
      ValueError: no case, or every case, would be left out; or resamples out of range.
    """
    tested = _left_out(n, fraction)
    require("resamples", resamples, 1, n, "the number of cases, where such splits start to repeat")
    start = np.arange(resamples) * n // resamples
    position = generator(key).permutation(n)
    test = ((position - start[:, None]) % n >= n - tested).astype(np.uint8)
    return Plan(1 - test, test, _call("balanced", text(key), n, fraction=fraction, resamples=resamples), {"partition": np.zeros(resamples, np.int64)}).checked()


def bootstrap(key: Key, n: int, resamples: int, sets: int | None = None) -> Plan:
    """Bootstrap samples, tested on the cases that they lack (Efron 1983, "Estimating the error rate of a prediction rule").

    A draw that holds every case, which leaves none to test, is drawn again; above ten cases that hardly happens.

    Args:
      key: consumed.
      n: cases, N.
      resamples: bootstrap samples, R.
      sets: data sets, Q, each with samples of its own; None for one plan without that axis.
    Returns:
      Plan, train the number of times that a case was drawn (n in each row), test 1 where that is 0; shape [R, N], or [Q, R, N] with sets.
    Raises:
      ValueError: a number out of range.
    """
    require("n", n, 2)
    require("resamples", resamples, 1)
    require("sets", 1 if sets is None else sets, 1)
    rng = generator(key)
    train = counts(rng, (sets or 1) * resamples, n)
    while len(again := np.flatnonzero(train.all(-1))):
        train[again] = counts(rng, len(again), n)
    train = train.reshape((resamples, n) if sets is None else (sets, resamples, n))
    return Plan(train, (train == 0).astype(np.uint8), _call("bootstrap", text(key), n, resamples=resamples, sets=sets)).checked()


def time_blocks(n: int, folds: int = 10, gap: int = 0, past_only: bool = False) -> Plan:
    """Cross-validation in blocks of consecutive cases, for series (h-block: Burman, Chow & Nolan 1994).

    Args:
      n: cases in order of time, N.
      folds: blocks, K, whose sizes differ by at most one.
      gap: cases left out of the training set on each side of the tested block, against dependence.
      past_only: train only on the cases before the block and its gap. The first block has no past: it is not tested, and R = K - 1.
    Returns:
      Plan, train and test in {0, 1}, shape [R, N], with label "fold", the number of the tested block.
    Raises:
      ValueError: folds or gap out of range, or a row would train on nothing.
    """
    require("n", n, 2)
    require("folds", folds, 2, n, "the number of cases")
    require("gap", gap, 0)
    fold = np.arange(1 if past_only else 0, folds)[:, None]
    start, end, case = fold * n // folds, (fold + 1) * n // folds, np.arange(n)
    test = (case >= start) & (case < end)
    train = (case < start - gap) | ((case >= end + gap) & (not past_only))
    if not train.any(-1).all():
        raise ValueError(f"expected a gap that leaves every block cases to train on, got gap={gap} for {folds} blocks of {n} cases; choose a smaller gap")
    scheme = _call("time_blocks", n, folds=folds, gap=gap, past_only=past_only)
    return Plan(train.astype(np.uint8), test.astype(np.uint8), scheme, {"fold": fold[:, 0]}).checked()


def task_instances(n: int, size: int, instances: int = 8, test_cases: int | None = None, common: bool = False) -> Plan:
    """The training and test sets of a DELVE task, fixed by the order of the cases (Rasmussen et al. 1996, "The DELVE manual").

    Args:
      n: cases in the order of the prototask, N.
      size: training cases of each instance; the blocks follow the test region and do not overlap.
      instances: at most so many, I; fewer if the cases after the test region do not suffice.
      test_cases: cases of the test region, which comes first, T; floor(n/2) if None.
      common: every instance is tested on all T cases; otherwise instance i on the i-th block of floor(T/I), and a remainder is not used.
    Returns:
      Plan, train and test in {0, 1}, shape [I, N], with label "instance".
    Raises:
      ValueError: a number out of range, no instance fits, or there are fewer test cases than instances.
    """
    require("n", n, 2)
    region = n // 2 if test_cases is None else test_cases
    require("test_cases", region, 1, n - 1, "one less than the cases")
    require("size", size, 1, n - region, "the cases outside the test region")
    require("instances", instances, 1)
    instance = np.arange(min(instances, (n - region) // size))[:, None]
    block = region if common else region // len(instance)
    if block == 0:
        raise ValueError(f"expected a test case for each of {len(instance)} instances, got {region}; ask for more test_cases, fewer instances, or common=True")
    case = np.arange(n)
    train = (case >= region + instance * size) & (case < region + (instance + 1) * size)
    test = case < region if common else (case >= instance * block) & (case < (instance + 1) * block)
    scheme = _call("task_instances", n, size=size, instances=instances, test_cases=test_cases, common=common)
    return Plan(train.astype(np.uint8), np.broadcast_to(test, train.shape).astype(np.uint8), scheme, {"instance": instance[:, 0]}).checked()


def full(n: int) -> Plan:
    """One row that trains and tests on every case: the full fit and its apparent error.

    Args:
      n: cases, N.
    Returns:
      Plan, train and test all 1, shape [1, N].
    Raises:
      ValueError: no cases.
    """
    require("n", n, 1)
    return Plan(np.ones((1, n), np.uint8), np.ones((1, n), np.uint8), _call("full", n)).checked()


def from_weights(train: Shaped[np.ndarray, "*Q R N"], test: Shaped[np.ndarray, "*Q R N"], scheme: str = "given weights") -> Plan:
    """A plan of your own weights.

    Args:
      train: how often each case counts in training, [R, N] or [Q, R, N]; whole numbers from 0 to 255 of any type, or True and False.
      test: the same for the test.
      scheme: text that says where they come from.
    Returns:
      Plan, a copy, shape [*Q, R, N].
    Raises:
      ValueError: a weight is negative, fractional, not finite or above 255, shapes differ, or a row trains or tests on nothing.
    """
    return Plan(as_weights("train", train), as_weights("test", test), scheme).checked()


def stack(plans: Sequence[Plan]) -> Plan:
    """One plan for several data sets of equal size, of one plan each.

    Args:
      plans: Q plans [R, N] with the same labels.
    Returns:
      Plan, shape [Q, R, N].
    Raises:
      ValueError: no plans, or plans of unlike shapes or labels.
    """
    if not plans or any(plan.train.shape != plans[0].train.shape or plan.sets is not None for plan in plans):
        raise ValueError(f"expected plans of one shape [R, N], got {[list(plan.train.shape) for plan in plans]}; stack only plans of as many rows and cases")
    labels = plans[0].labels
    for plan in plans:
        if plan.labels.keys() != labels.keys() or any(not np.array_equal(plan.labels[name], labels[name]) for name in labels):
            raise ValueError(f"expected plans with the same labels, got those of {plans[0].scheme} and {plan.scheme}; stack only plans of one design")
    scheme = f"resample.stack([{', '.join(plan.scheme for plan in plans)}])"
    return Plan(np.stack([plan.train for plan in plans]), np.stack([plan.test for plan in plans]), scheme, labels).checked()


def _left_out(n: int, fraction: float) -> int:
    """ceil(n * fraction), if that leaves something to train and something to test on."""
    require("n", n, 2)
    if not 0 < fraction < 1:
        raise ValueError(f"expected a fraction between 0 and 1, got {fraction}; give the share of cases to leave out, such as 0.25")
    tested = math.ceil(n * fraction - 1e-9)  # 100 * 0.07 is 7.000000000000001
    if not 0 < tested < n:
        raise ValueError(f"expected a fraction that leaves out some of the {n} cases but not all, got {fraction}, which leaves out {tested}; choose another fraction")
    return tested


def _dealt(rng: np.random.Generator, classes: Int[np.ndarray, " n"], folds: int, repeats: int) -> Int[np.ndarray, "repeats n"]:
    """The fold of each case: cases in order of class, at random within it, are dealt round robin to folds in random order."""
    shape = (repeats, len(classes))
    order = np.lexsort((rng.random(shape), np.broadcast_to(classes, shape)))
    hands = rng.permuted(np.tile(np.arange(folds), (repeats, 1)), axis=1)
    fold = np.empty(shape, np.int64)
    np.put_along_axis(fold, order, hands[:, np.arange(len(classes)) % folds], axis=1)
    return fold


def _lightest_first(rng: np.random.Generator, group: Int[np.ndarray, " n"], folds: int) -> Int[np.ndarray, " n"]:
    """The fold of each case: groups in random order, the largest first, each onto the fold with the fewest cases so far."""
    sizes = np.bincount(group)
    order = rng.permutation(len(sizes))
    load, home = np.zeros(folds, np.int64), np.empty(len(sizes), np.int64)
    for g in order[np.argsort(-sizes[order], kind="stable")]:
        home[g] = load.argmin()
        load[home[g]] += sizes[g]
    return rng.permutation(folds)[home][group]


def _of_folds(fold: Int[np.ndarray, "repeats n"], folds: int, scheme: str) -> Plan:
    repeats, n = fold.shape
    test = (fold[:, None] == np.arange(folds)[:, None]).astype(np.uint8).reshape(-1, n)
    labels = {"repeat": np.repeat(np.arange(repeats), folds), "fold": np.tile(np.arange(folds), repeats)}
    return Plan(1 - test, test, scheme, labels).checked()


def _numbered(name: str, labels: Collection[Any], n: int) -> Int[np.ndarray, " n"]:
    """Labels as numbers 0, 1, ..."""
    values = np.asarray(labels)
    if values.shape != (n,):
        raise ValueError(f"expected {name} to be {n} labels, one per case, got shape {list(values.shape)}; give one label for each case")
    missing = [i for i, label in enumerate(values.tolist()) if label is None or label != label]
    if missing:
        raise ValueError(f"expected {name} without gaps, got {values[missing[0]]} for case {missing[0]}; give every case a label")
    return np.unique(values, return_inverse=True)[1]


def _call(function: str, *arguments: Any, **options: Any) -> str:
    """Code of a call of this module; options that are None are not shown."""
    shown = {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items() if value is not None}
    return f"resample.{function}({', '.join([*map(str, arguments), *(f'{name}={value}' for name, value in shown.items())])})"
