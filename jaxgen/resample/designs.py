"""Designs made for one interval or one test."""

from collections.abc import Collection
from typing import Any

import numpy as np
from jaxtyping import Int

from jaxgen.resample.drawing import call, different, different_shares, require_room
from jaxgen.types import Key, Plan
from jaxgen.types.keys import generator, key_first, text
from jaxgen.types.numbers import require, require_flag
from jaxgen.types.plan import numbered


@key_first
def paired_halves(
    key: Key,
    n: int,
    pairs: int = 10,
    resamples: int = 15,
    test_size: int | None = None,
    strata: Collection[Any] | None = None,
) -> Plan:
    """Leave-out splits of all data and of pairs of disjoint halves, for the conservative Z of Nadeau & Bengio 2003.

    Args:
      key: consumed.
      n: cases, N, at least 4; of an odd number a case chosen at random belongs to neither half.
      pairs: random divisions into two halves of floor(n/2) cases, M.
      resamples: different splits of the full data and of each half, J; R = J(2M + 1).
      test_size: test cases of every row, n2; floor(n/10), at least 1, if None. A half trains on floor(n/2) - n2 cases.
      strata: class labels [N]: each half, and each row of all data or of a half, holds its share of every class.
    Returns:
      Plan, train and test in {0, 1}, shape [R, N]; cases outside a half have weight 0 in both. Labels "pair" and
      "half", both -1 for the rows of the full data, which come first, and "resample".
    Raises:
      ValueError: a number out of range, fewer different splits of a half exist than asked for, or not one label per
        case.
      MemoryError: the plan would not fit into memory.
    """
    n, pairs, resamples = require("n", n, 4), require("pairs", pairs, 1), require("resamples", resamples, 1)
    half = n // 2
    given = max(n // 10, 1) if test_size is None else test_size
    tested = require("test_size", given, 1, half - 1, "one less than a half")
    require_room(resamples * (2 * pairs + 1), n)
    rng, kept = generator(key), {}
    if strata is None:
        full = different(rng, 1, resamples, n, tested, "test_size")
        parts = different(rng, 2 * pairs, resamples, half, tested, "test_size")
        cases = rng.permuted(np.tile(np.arange(n), (pairs, 1)), axis=1)[:, : 2 * half].reshape(2 * pairs, 1, half)
    else:
        kept["stratum"] = label = numbered("strata", strata, n)
        full = different_shares(rng, label, resamples, tested)[None]
        cases = _alike(rng, label, pairs).reshape(2 * pairs, 1, half)
        parts = np.stack([different_shares(rng, label[of_half], resamples, tested) for of_half in cases[:, 0]])
    train, test = np.zeros((2, 1 + 2 * pairs, resamples, n), np.uint8)
    train[0], test[0] = full[0] ^ 1, full[0]
    np.put_along_axis(train[1:], cases, parts ^ 1, axis=-1)
    np.put_along_axis(test[1:], cases, parts, axis=-1)
    labels = {
        "pair": np.repeat(np.r_[-1, np.repeat(np.arange(pairs), 2)], resamples),
        "half": np.repeat(np.r_[-1, np.tile([0, 1], pairs)], resamples),
        "resample": np.tile(np.arange(resamples), 1 + 2 * pairs),
    }
    given = None if strata is None else f"<{n} labels>"
    scheme = call("paired_halves", text(key), n, pairs=pairs, resamples=resamples, test_size=test_size, strata=given)
    return Plan(train.reshape(-1, n), test.reshape(-1, n), scheme, labels, kept).checked()


def _alike(rng: np.random.Generator, label: Int[np.ndarray, " n"], pairs: int) -> Int[np.ndarray, "pairs 2 half"]:
    """The cases of pairs of halves that hold equal shares of all classes, [pairs, 2, floor(n/2)]: of every two
    neighbours in the order of classes, at random within each, one goes to each half.
    """
    n = len(label)
    one_less = rng.permuted(np.tile(np.arange(n), (pairs, 1)), axis=1)[:, : n - n % 2]
    order = np.argsort(label[one_less], axis=1, kind="stable")
    neighbours = np.take_along_axis(one_less, order, axis=1).reshape(pairs, n // 2, 2)
    return np.moveaxis(rng.permuted(neighbours, axis=2), 2, 1)


def task_instances(n: int, size: int, instances: int = 8, test_cases: int | None = None, common: bool = False) -> Plan:
    """The training and test sets of a DELVE task, fixed by the order of the cases (Rasmussen et al. 1996, "The DELVE
    manual").

    Args:
      n: cases in the order of the prototask, N.
      size: training cases of each instance; the blocks follow the test region and do not overlap.
      instances: at most so many, I; fewer if the cases after the test region do not suffice.
      test_cases: cases of the test region, which comes first, T; floor(n/2) if None.
      common: every instance is tested on all T cases; otherwise instance i on the i-th block of floor(T/I), and a
        remainder is not used.
    Returns:
      Plan, train and test in {0, 1}, shape [I, N], with label "instance".
    Raises:
      ValueError: a number out of range, no instance fits, or there are fewer test cases than instances.
      MemoryError: the plan would not fit into memory.
    """
    n = require("n", n, 2)
    region = require("test_cases", n // 2 if test_cases is None else test_cases, 1, n - 1, "one less than the cases")
    size = require("size", size, 1, n - region, "the cases outside the test region")
    require_flag("common", common)
    used = min(require("instances", instances, 1), (n - region) // size)
    require_room(used, n, working=6)
    instance = np.arange(used)[:, None]
    block = region if common else region // len(instance)
    if block == 0:
        raise ValueError(
            f"expected a test case for each of {len(instance)} instances, got {region}; "
            "ask for more test_cases, fewer instances, or common=True"
        )
    case = np.arange(n)
    train = (case >= region + instance * size) & (case < region + (instance + 1) * size)
    test = case < region if common else (case >= instance * block) & (case < (instance + 1) * block)
    scheme = call("task_instances", n, size=size, instances=instances, test_cases=test_cases, common=common)
    return Plan(
        train.astype(np.uint8),
        np.broadcast_to(test, train.shape).astype(np.uint8),
        scheme,
        {"instance": instance[:, 0]},
    ).checked()
