"""Cross-validation: every case is tested in one fold of each division."""

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Int

from jaxgen.resample.drawing import call, require_room
from jaxgen.types import Key, Plan
from jaxgen.types.keys import generator, key_first, text
from jaxgen.types.numbers import require, require_flag
from jaxgen.types.plan import numbered

_DEALING_BYTES = 40
"""Bytes for each case of a division into folds, beside those of its rows: random numbers, orders and folds."""


@key_first
def k_fold(
    key: Key,
    n: int,
    folds: int = 10,
    repeats: int = 1,
    strata: Collection[Any] | None = None,
    groups: Collection[Any] | None = None,
) -> Plan:
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
      Plan, train and test in {0, 1}, shape [R, N], with labels "repeat" and "fold", and the groups in `cases`.
    Raises:
      ValueError: folds or repeats out of range, strata and groups together, or not one label per case.
      MemoryError: the plan would not fit into memory.
    """
    n, repeats = require("n", n, 2), require("repeats", repeats, 1)
    if strata is not None and groups is not None:
        raise ValueError("expected strata or groups, got both; leave one of them out")
    rng, cases = generator(key), {}
    if groups is None:
        folds = require("folds", folds, 2, n, "the number of cases")
        _require_room(repeats * folds, n, repeats)
        if strata is not None:
            cases["stratum"] = numbered("strata", strata, n)
        fold = _dealt(rng, cases.get("stratum", np.zeros(n, np.int64)), folds, repeats)
    else:
        cases["group"] = group = numbered("groups", groups, n)
        folds = require("folds", folds, 2, int(group.max()) + 1, "the number of groups")
        _require_room(repeats * folds, n, repeats)
        fold = np.stack([_lightest_first(rng, group, folds) for _ in range(repeats)])
    labels = {
        "strata": None if strata is None else f"<{n} labels>",
        "groups": None if groups is None else f"<{n} labels>",
    }
    return _of_folds(fold, folds, call("k_fold", text(key), n, folds=folds, repeats=repeats, **labels), cases)


def leave_one_out(n: int) -> Plan:
    """Leave-one-out cross-validation: row i tests case i and trains on all others (Stone 1974).

    Args:
      n: cases, N.
    Returns:
      Plan, train and test in {0, 1}, shape [N, N], with labels "repeat" (0) and "fold" (i).
    Raises:
      ValueError: fewer than two cases.
      MemoryError: the plan would not fit into memory.
    """
    n = require("n", n, 2)
    _require_room(n, n)
    return _of_folds(np.arange(n)[None], n, call("leave_one_out", n))


@key_first
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
    scheme = call("five_by_two", text(key), n, strata=None if strata is None else f"<{n} labels>")
    return replace(k_fold(key, n, folds=2, repeats=5, strata=strata), scheme=scheme)


@key_first
def nested_pairs(key: Key, n: int, folds: int = 10, repeats: int = 1, strata: Collection[Any] | None = None) -> Plan:
    """All fits of nested cross-validation: without one fold, and without two (Bates, Hastie & Tibshirani 2024).

    Args:
      key: consumed.
      n: cases, N.
      folds: K, from 3 to n.
      repeats: random divisions into folds; R = repeats * K(K+1)/2.
      strata: class labels [N], to be spread evenly over the folds.
    Returns:
      Plan, train and test in {0, 1}, shape [R, N]: per repeat K rows without fold k, then K(K-1)/2 rows without folds
      j < k, each tested on what it was not trained on. Labels "repeat", "first" (j) and "second" (k), equal in the
      rows without one fold.
    Raises:
      ValueError: folds or repeats out of range, or not one label per case.
      MemoryError: the plan would not fit into memory.
    """
    n, folds = require("n", n, 3), require("folds", folds, 3, n, "the number of cases")
    repeats = require("repeats", repeats, 1)
    _require_room(repeats * folds * (folds + 1) // 2, n, repeats)
    cases = {} if strata is None else {"stratum": numbered("strata", strata, n)}
    fold = _dealt(generator(key), cases.get("stratum", np.zeros(n, np.int64)), folds, repeats)
    first, second = np.hstack([np.tile(np.arange(folds), (2, 1)), np.triu_indices(folds, 1)])
    test = ((fold[:, None] == first[:, None]) | (fold[:, None] == second[:, None])).astype(np.uint8).reshape(-1, n)
    labels = {
        "repeat": np.repeat(np.arange(repeats), len(first)),
        "first": np.tile(first, repeats),
        "second": np.tile(second, repeats),
    }
    given = None if strata is None else f"<{n} labels>"
    scheme = call("nested_pairs", text(key), n, folds=folds, repeats=repeats, strata=given)
    return Plan(1 - test, test, scheme, labels, cases).checked()


def time_blocks(n: int, folds: int = 10, gap: int = 0, past_only: bool = False) -> Plan:
    """Cross-validation in blocks of consecutive cases, for series (h-block: Burman, Chow & Nolan 1994).

    Args:
      n: cases in order of time, N.
      folds: blocks, K, whose sizes differ by at most one.
      gap: cases left out of the training set on each side of the tested block, against dependence.
      past_only: train only on the cases before the block and its gap. The first block has no past: it is not tested,
        and R = K - 1.
    Returns:
      Plan, train and test in {0, 1}, shape [R, N], with label "fold", the number of the tested block, and the places
      of the cases in time in `cases`.
    Raises:
      ValueError: folds or gap out of range, or a row would train on nothing.
      MemoryError: the plan would not fit into memory.
    """
    n, folds = require("n", n, 2), require("folds", folds, 2, n, "the number of cases")
    gap = require("gap", gap, 0, n, "the number of cases")
    require_flag("past_only", past_only)
    _require_room(folds, n)
    fold = np.arange(1 if past_only else 0, folds)[:, None]
    start, end, case = fold * n // folds, (fold + 1) * n // folds, np.arange(n)
    test = (case >= start) & (case < end)
    train = (case < start - gap) | ((case >= end + gap) & (not past_only))
    if not train.any(-1).all():
        raise ValueError(
            f"expected a gap that leaves every block cases to train on, got gap={gap} for {folds} blocks "
            f"of {n} cases; choose a smaller gap"
        )
    scheme = call("time_blocks", n, folds=folds, gap=gap, past_only=past_only)
    labels, cases = {"fold": fold[:, 0]}, {"time": case}
    return Plan(train.astype(np.uint8), test.astype(np.uint8), scheme, labels, cases).checked()


def _dealt(
    rng: np.random.Generator, classes: Int[np.ndarray, " n"], folds: int, repeats: int
) -> Int[np.ndarray, "repeats n"]:
    """The fold of each case: cases in order of class, at random within it, are dealt round robin to folds in random
    order.
    """
    shape = (repeats, len(classes))
    order = np.lexsort((rng.random(shape), np.broadcast_to(classes, shape)))
    hands = rng.permuted(np.tile(np.arange(folds), (repeats, 1)), axis=1)
    fold = np.empty(shape, np.int64)
    np.put_along_axis(fold, order, hands[:, np.arange(len(classes)) % folds], axis=1)
    return fold


def _lightest_first(rng: np.random.Generator, group: Int[np.ndarray, " n"], folds: int) -> Int[np.ndarray, " n"]:
    """The fold of each case: groups in random order, the largest first, each onto the fold with the fewest cases so
    far.
    """
    sizes = np.bincount(group)
    order = rng.permutation(len(sizes))
    load, home = np.zeros(folds, np.int64), np.empty(len(sizes), np.int64)
    for g in order[np.argsort(-sizes[order], kind="stable")]:
        home[g] = load.argmin()
        load[home[g]] += sizes[g]
    return rng.permutation(folds)[home][group]


def _require_room(rows: int, n: int, repeats: int = 0) -> None:
    """MemoryError if a plan of R rows would not fit into memory while its test sets are compared and complemented."""
    require_room(rows, n, working=4 + math.ceil(_DEALING_BYTES * repeats / rows))


def _of_folds(
    fold: Int[np.ndarray, "repeats n"], folds: int, scheme: str, cases: dict[str, np.ndarray] | None = None
) -> Plan:
    repeats, n = fold.shape
    test = (fold[:, None] == np.arange(folds)[:, None]).astype(np.uint8).reshape(-1, n)
    labels = {"repeat": np.repeat(np.arange(repeats), folds), "fold": np.tile(np.arange(folds), repeats)}
    return Plan(1 - test, test, scheme, labels, cases or {}).checked()
