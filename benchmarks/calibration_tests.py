"""Size and power of every test, of two learners and of many; see `calibration.py`."""

from functools import partial

import jax
import numpy as np
import scipy.stats
from calibration_systems import assessed, blocks, exchangeable

import jaxgen as jg
from jaxgen import resample
from jaxgen.stats import compare

LEVELS = (0.01, 0.05, 0.1)
LEARNERS, BLOCKS, SINGLE = 4, 10, 300


def wrong_sign(y, predicted):
    """Whether the sign of the prediction is wrong: a loss of 0 and 1."""
    return ((y > 0) != (predicted > 0))[..., 0] * 1.0


SIGNS = {
    "McNemar, mid-p": compare.mcnemar,
    "McNemar, exact": partial(compare.mcnemar, kind="exact"),
    "McNemar, chi2": partial(compare.mcnemar, kind="chi2"),
}


def designs(n):
    """Plans and the tests that each serves; the first is a hold-out set."""
    key = jax.random.key(n)
    return (
        (
            "a third left out, once",
            resample.leave_out(key, n, 1 / 3, 1),
            {"hold-out t": compare.hold_out_t, "permutation": partial(compare.permutation, resamples=999)},
        ),
        (
            "a tenth left out, 25 times",
            resample.leave_out(key, n, 0.1, 25),
            {"naive t": compare.paired_t, "corrected t": compare.corrected_t},
        ),
        (
            "a tenth left out, 100 times",
            resample.leave_out(key, n, 0.1, 100),
            {"naive t": compare.paired_t, "corrected t": compare.corrected_t},
        ),
        (
            "a third left out, 25 times",
            resample.leave_out(key, n, 1 / 3, 25),
            {"naive t": compare.paired_t, "corrected t": compare.corrected_t},
        ),
        (
            "10 folds",
            resample.k_fold(key, n, 10),
            {"naive t": compare.k_fold_t, "corrected t": compare.corrected_k_fold_t, "CV-CLT": compare.cv_clt},
        ),
        (
            "10 x 10 folds",
            resample.k_fold(key, n, 10, 10),
            {"naive t": compare.k_fold_t, "corrected t": compare.corrected_k_fold_t},
        ),
        (
            "5 x 2 folds",
            resample.five_by_two(key, n),
            {"5 x 2 t": compare.five_by_two_t, "5 x 2 F": compare.five_by_two_f},
        ),
        (
            "3 x nested 5 folds",
            resample.nested_pairs(key, n, 5, 3),
            {"nested CV": compare.nested_cross_validation},
        ),
        (
            "10 pairs of halves, 5 splits",
            resample.paired_halves(key, n, 10, 5),
            {"conservative Z": compare.conservative_z},
        ),
        ("4 disjoint instances", resample.task_instances(n, 3 * n // 16, 4, n // 4), {"DELVE's t": compare.disjoint_t}),
        (
            "4 instances, a common test set",
            resample.task_instances(n, 3 * n // 16, 4, n // 4, common=True),
            {"DELVE's quasi-F": compare.quasi_f},
        ),
    )


DECISIVE = ("once", "a tenth left out, 25 times", "folds")
"""Words in the names of the plans that a learner is tried on which takes long: what `recommend` takes tests for."""


def rows(setting, n, sets):
    """One row of the table per test; `p` holds the p-values of the true hypothesis, [sets]."""
    found: dict = {}
    for seed, size in blocks(setting, n, sets):
        key, designed = jax.random.key(seed), designs(n)
        if setting.networks > 1:
            designed = [one for one in designed if any(word in one[0] for word in DECISIVE)]
        plans = [plan for _, plan, _ in designed]
        data = exchangeable(setting, n, size, seed)
        squares = zip(*(assessed(key, setting.learner, one, plans) for one in data), strict=True)
        signs = [jg.assess(key, setting.learner, one, plans[0], wrong_sign) for one in data]
        for (plan_name, plan, tests), losses in zip(
            (*designed, (designed[0][0], plans[0], SIGNS)), (*squares, signs), strict=True
        ):
            first, equal, worse = losses
            effect = np.mean(worse.g - first.g) / np.mean(first.g)
            for name, test in tests.items():
                null, other = test(first, equal), test(first, worse)
                found.setdefault((name, plan_name, plan.resamples), []).append(
                    np.stack([null.p_value, null.estimate, other.p_value, np.full(size, effect)])
                )
    for (name, plan_name, trainings), parts in found.items():
        p, estimate, power, effect = np.concatenate(parts, axis=-1)
        sided = np.where(estimate > 0, p / 2, 1 - p / 2)
        row = {
            "learner": setting.name,
            "n": n,
            "test": name,
            "plan": plan_name,
            "trainings": 2 * trainings,
            "sets": sets,
        }
        row |= {f"size at {level:.0%}": np.mean(p <= level) for level in LEVELS}
        yield row | {
            "levels": scipy.stats.kstest(sided, "uniform").statistic,
            "power at 5%": np.mean(power <= 0.05),
            "effect": effect.mean(),
            "p": p,
        }


def of_many(setting, n, sets):
    """One row of the table per test of four learners on hold-out sets: how often any difference is found at 5 %."""
    plan, found = resample.leave_out(jax.random.key(n), n, 1 / 3, 1), {}
    for number, (seed, size) in enumerate(blocks(setting, n, sets, 500)):
        squares, signs = [], []
        for one in exchangeable(setting, n, size, seed, LEARNERS):
            for losses, loss in ((squares, jg.loss.squared), (signs, wrong_sign)):
                losses.append(jg.assess(jax.random.key(seed), setting.learner, one, plan, loss))
        alone = 0 if number else SINGLE
        for kind, chosen in (("size", range(LEARNERS)), ("power", [0, LEARNERS, *range(2, LEARNERS)])):
            for name, hits in rejections([squares[i] for i in chosen], [signs[i] for i in chosen], alone).items():
                found.setdefault(name, {}).setdefault(kind, []).extend(hits)
    for (name, what), hits in found.items():
        row = {"learner": setting.name, "n": n, "test": name, "of": what, "families": len(hits["size"])}
        yield row | {
            "size at 5%": np.mean(hits["size"]),
            "binomial error": np.sqrt(0.05 * 0.95 / len(hits["size"])),
            "power at 5%": np.mean(hits["power"]),
        }


def rejections(squares, signs, alone):
    """Whether each test finds any difference at 5 %, in each family; tests of one data set at a time are made for the
    first `alone` only.
    """
    means, sets = np.stack([one.g[:, 0] for one in squares], axis=-1), f"{BLOCKS} data sets"
    parts = [means[start : start + BLOCKS] for start in range(0, len(means), BLOCKS)]
    hits = {("Friedman", sets): [compare.friedman(part).p_value <= 0.05 for part in parts]}
    hits["Iman-Davenport", sets] = [compare.iman_davenport(part).p_value <= 0.05 for part in parts]
    hits["Nemenyi, any pair", sets] = [compare.nemenyi(part).p_value.min() <= 0.05 for part in parts]
    for adjust in ("none", "holm", "benjamini_hochberg"):
        pairs = compare.pairwise(squares, compare.hold_out_t, adjust=adjust).adjusted
        hits[f"hold-out t of all pairs, {adjust.replace('_', ' ')}", "a hold-out set"] = list(pairs.min(-1) <= 0.05)
    hits["Cochran's Q", "a hold-out set"] = [
        compare.cochran_q([one[q] for one in signs]).p_value <= 0.05 for q in range(alone)
    ]
    hits["max t, any pair", "a hold-out set"] = [
        compare.max_t([one[q] for one in squares], resamples=499).adjusted.min() <= 0.05 for q in range(alone)
    ]
    return hits


def lines(frame, many=None):
    """The tables, a part per learner and size, and that of many learners if there is one."""
    columns = [
        "test",
        "plan",
        "trainings",
        *(f"size at {level:.0%}" for level in LEVELS),
        "levels",
        "power at 5%",
        "effect",
    ]
    text = [
        "Tests. Size: share of data sets in which two equally good learners, of exchangeable halves "
        "of the inputs, are told apart; power: the second lacks one input,",
        "which costs `effect` of the first one's error; levels: "
        "largest distance of the distribution of one-sided p-values of the true hypothesis from the "
        "uniform one",
    ]
    text += ["", "Over all sizes n: largest size at 5% for each learner, and mean power", *_summary(frame)]
    for (learner, n), part in frame.groupby(["learner", "n"], sort=False):
        sets = int(part.sets.iloc[0])
        error, band = np.sqrt(0.05 * 0.95 / sets), scipy.stats.kstwo.ppf(0.95, sets)
        text += [
            "",
            f"{learner}, n = {n}: {sets} data sets; a size of 5% has binomial standard error {error:.3f}, "
            f"levels are below {band:.3f} in 95 of 100 runs",
        ]
        text += part[columns].to_string(index=False, float_format=lambda v: f"{v:.3f}").splitlines()
    if many is None:
        return text
    text += [
        "",
        f"Many learners: {LEARNERS} equally good ones, of exchangeable parts of the inputs; power: "
        "the second lacks one input. Share of families with any difference found at 5%",
    ]
    return text + many.to_string(index=False, float_format=lambda v: f"{v:.3f}").splitlines()


def _summary(frame):
    """A row per test and plan."""
    by = ["test", "plan", "trainings"]
    worst = frame.pivot_table(index=by, columns="learner", values="size at 5%", aggfunc="max", sort=False)
    worst = worst.assign(power=frame.groupby(by, sort=False)["power at 5%"].mean()).reset_index()
    return worst.rename_axis(columns=None).to_string(index=False, float_format=lambda v: f"{v:.3f}").splitlines()
