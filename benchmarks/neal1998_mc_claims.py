"""What Neal 1998 says of the Bayesian methods, each with our evidence; for benchmarks/neal1998.py --mc.

p-values are of DELVE's two-sided t-test on the instances of one task, unless another test is named. Tasks of one data
set share cases, so numbers of tasks are counted, not tested.
"""

import numpy as np
import scipy.special
import scipy.stats
from neal1998_claims import LEVEL, Row, Tasks, better_everywhere, listed, p_ranged, ranged, said, tasks_named

BAYESIAN = ("mlp-mc-1", "mlp-mc-2", "mlp-mc-3", "mlp-mc-4")
STOPPED = ("mlp-ese-1", "mlp-bgd-1", "mlp-bgd-2", "mlp-bgd-3")
FEW = 10
"""Effective states below which a run says little."""


def claims(archive, found):
    """Lines of the table of claims."""
    tasks = Tasks(found)
    yield (
        "Claims of Neal 1998 on the Bayesian methods: what we find, p-values, whether it agrees. "
        "Ratios are of expected losses; p: DELVE's t-test unless another is named."
    )
    yield (
        "yes: in all tasks that the claim is about, with p <= 0.05 in some. in part: in most of them. NO: in half of "
        "them or fewer."
    )
    yield (
        "Data whose names end in -like are not of DELVE's own simulator: "
        "its claims on kin-32nm and bank-32nm may hold there and not here."
    )
    makers = (_kin, _relevances, _pumadyn, _bank)
    yield from listed([*(row for make in makers for row in make(tasks)), *_states(archive, found)])


def convergence(archive, found, kept):
    """Lines of a table: of each method and task, how many runs had not converged.

    Args:
      archive, found: results and comparisons.
      kept: by the name of a method, the states that a run keeps.
    """
    limits = {states: _by_chance(states) for states in sorted(set(kept.values()))}
    yield (
        "Runs that had not converged, of all runs: R-hat of the predictions of 8 training cases (split halves of the "
        "one chain) above what 95 % of runs of as many independent states stay below;"
    )
    yield (
        "those limits: "
        + ", ".join(f"{limit:.2f} of {states} states" for states, (limit, _) in limits.items())
        + "; R-hat is above the usual 1.1 by chance in "
        + ", ".join(f"{share:.0%} of runs of {states}" for states, (_, share) in limits.items())
        + "."
    )
    yield f"In brackets: runs whose states are worth fewer than {FEW} independent ones."
    yield "F: runs that failed; they leave their method out of the task."
    yield " " * 24 + "".join(f"{name:>16}" for name in kept)
    counts, reasons = dict.fromkeys(kept, (0, 0, 0)), []
    for prototask, size in _all(found):
        line = f"{prototask:18}{size:>6}"
        for name in kept:
            if name not in _there(archive, prototask, size):
                line += "-".rjust(16)
                continue
            losses = archive.losses(prototask, size, name)
            late, few = losses.info["rhat"] > limits[kept[name]][0], losses.info["effective"] < FEW
            failed = f" F{losses.failed.sum()}" if losses.failed.any() else ""
            reasons += [
                f"failed: {name} on {prototask}, {size} cases, instance {row + 1}: {losses.reasons[code - 1]}"
                for row, code in enumerate(losses.failure)
                if code
            ]
            line += f"{late.sum()}/{len(late)} ({few.sum()}){failed}".rjust(16)
            counts[name] = tuple(np.add(counts[name], (late.sum(), few.sum(), len(late))))
        yield line
    yield f"{'all':24}" + "".join(f"{f'{late}/{runs} ({few})':>16}" for late, few, runs in counts.values())
    yield f"{'all':24}" + "".join(
        f"{f'{late / runs:.0%} ({few / runs:.0%})':>16}" for late, few, runs in counts.values()
    )
    yield from reasons


def _by_chance(states, runs=4000, predictions=8):
    """R-hat that 95 % of runs of independent normal states stay below, the largest of several predictions; and the
    share of them above 1.1.
    """
    draws = np.random.default_rng(0).normal(size=(runs, predictions, states))
    half = states // 2
    halves = np.stack([draws[..., :half], draws[..., -half:]], axis=-2)
    folded = np.abs(halves - np.median(halves, axis=(-2, -1), keepdims=True))
    largest = np.maximum(_rhat(halves), _rhat(folded)).max(axis=1)
    return np.quantile(largest, 0.95), np.mean(largest > 1.1)


def _rhat(halves):
    """Of halves of chains [..., 2, S], by ranks (Vehtari et al. 2021); [...]."""
    ranks = scipy.stats.rankdata(halves.reshape(*halves.shape[:-2], -1), axis=-1)
    scores = scipy.special.ndtri((ranks - 3 / 8) / (ranks.shape[-1] + 1 / 4)).reshape(halves.shape)
    between, within = scores.mean(-1).var(-1, ddof=1), scores.var(-1, ddof=1).mean(-1)
    return np.sqrt(between / within + 1 - 1 / halves.shape[-1])


def _all(found):
    return [(one.prototask, task.size) for one in found for task in one.tasks]


def _there(archive, prototask, size):
    """Names of the methods that have run on a task."""
    return {file.stem for file in (archive.path / prototask / str(size)).glob("*.npz")}


def _with(tasks, keys, *names):
    """Of some tasks those in which all of these methods are compared."""
    return [key for key in keys if set(names) <= set(tasks.tasks[key].labels)]


def _each(tasks, keys, firsts, seconds):
    """Ratios, p-values, and names of tasks and pairs, of all comparisons of one of the first with one of the others."""
    found = []
    for key in keys:
        labels = tasks.tasks[key].labels
        for a in firsts:
            found += [(tasks.ratio(key, a, b), tasks.p(key, a, b), key, a, b) for b in seconds if {a, b} <= {*labels}]
    ratios, p = (np.array([each[i] for each in found]) for i in (0, 1))
    return ratios, p, [each[2:] for each in found]


def _pairs_named(pairs, which):
    """Names of some comparisons."""
    named = [
        f"{family}-{inputs} n={size} {a[4:]}/{b[4:]}"
        for ((family, inputs, size), a, b), yes in zip(pairs, which, strict=True)
        if yes
    ]
    return ", ".join(named) or "none"


def _kin(tasks):
    large = [*tasks.of("kin", 8, (512,)), *tasks.of("kin", 32, (512, 1024))]
    ratios, p, pairs = _each(tasks, large, BAYESIAN, STOPPED)
    good, sure = ratios < 1, (ratios < 1) & (p <= 0.03)
    yield Row(
        "kin, 8 inputs and 512 cases, 32 inputs and 512 or 1024: every Bayesian method beats every early-stopping one, "
        "p <= 0.03",
        f"smaller loss in {good.sum()} of {len(good)} comparisons, in {sure.sum()} with p <= 0.03; ratio "
        f"{ranged(ratios)}; not with p <= 0.03: {_pairs_named(pairs, ~sure)}",
        p_ranged(p),
        said(sure.all(), good.mean() > 0.5),
    )
    small = [key for key in tasks.of("kin", sizes=(64, 128, 256))]
    ratios, p, pairs = _each(tasks, small, BAYESIAN, ("mlp-bgd-1", "mlp-bgd-2"))
    worse = ratios > 1
    yield Row(
        "kin, 64 to 256 cases: the Bayesian methods are not consistently better than mlp-bgd-1 and -2",
        f"larger loss in {worse.sum()} of {len(worse)} comparisons, with p <= {LEVEL} in: "
        f"{_pairs_named(pairs, worse & (p <= LEVEL))}; ratio {ranged(ratios)}",
        p_ranged(p),
        said(worse.any() and not worse.all()),
    )


def _relevances(tasks):
    keys = _with(tasks, tasks.of("kin", 32, (512, 1024)), "mlp-mc-3", "mlp-mc-4")
    yield from better_everywhere(
        tasks, keys, "mlp-mc-3", "mlp-mc-4", "kin, 32 inputs, 512 or 1024 cases: relevances help a little"
    )
    keys = _with(tasks, tasks.of("kin", 8), "mlp-mc-3", "mlp-mc-4")
    ratios, p = tasks.better(keys, "mlp-mc-3", "mlp-mc-4")
    harm = (ratios > 1) & (p <= LEVEL)
    yield Row(
        "kin, 8 inputs, which all matter: relevances do no harm (the paper has a significant disadvantage at 128 "
        "cases, and puts it down to chains that had not converged)",
        "ratio mlp-mc-3 / mlp-mc-4 "
        + ", ".join(
            f"{ratio:.2f} (p = {each:.2g}) at n={key[2]}" for key, ratio, each in zip(keys, ratios, p, strict=True)
        )
        + f"; worse with p <= {LEVEL} in: {tasks_named(keys, harm)}",
        p_ranged(p),
        said(not harm.any(), harm.sum() < len(keys) / 2),
    )
    keys = _with(tasks, tasks.of("pumadyn", 32, (128, 256)), "mlp-mc-3", "mlp-mc-4")
    yield from better_everywhere(
        tasks,
        keys,
        "mlp-mc-3",
        "mlp-mc-4",
        "pumadyn, 32 inputs, 128 and 256 cases: relevances help dramatically (ratio below 0.5)",
        0.5,
    )
    keys = _with(tasks, tasks.of(), "mlp-mc-3", "mlp-mc-4")
    yield from better_everywhere(
        tasks, keys, "mlp-mc-3", "mlp-mc-4", "relevances generally make it a bit better (mlp-mc-3 against mlp-mc-4)"
    )


def _pumadyn(tasks):
    keys = _with(tasks, tasks.of("pumadyn", 32), "mlp-mc-3b", "mlp-bgd-2")
    if keys:
        yield from better_everywhere(
            tasks,
            [key for key in keys if key[2] > 64],
            "mlp-mc-3b",
            "mlp-bgd-2",
            "pumadyn, 32 inputs: with three times as many passes mlp-mc-3 is very much better than mlp-bgd-2 from 128 "
            "cases on (ratio below 0.8)",
            0.8,
        )
        both = _with(tasks, keys, "mlp-mc-3b", "mlp-mc-3")
        yield from better_everywhere(
            tasks, both, "mlp-mc-3b", "mlp-mc-3", "pumadyn, 32 inputs: three times as many passes improve mlp-mc-3"
        )
    keys = _with(tasks, tasks.of("pumadyn"), "mlp-mc-2", "mlp-mc-3")
    if keys:
        ratios, p = tasks.better(keys, "mlp-mc-2", "mlp-mc-3")
        far = (ratios > 1.25) | (ratios < 0.8)
        yield Row(
            "pumadyn: large differences between Bayesian methods that are nearly alike (mlp-mc-2 and -3), since some "
            "chains had not converged",
            f"ratio {ranged(ratios)}; above 1.25 or below 0.8 in: {tasks_named(keys, far)}",
            p_ranged(p),
            said(far.any()),
        )


def _bank(tasks):
    keys = tasks.of("bank")
    ratios, p, pairs = _each(tasks, keys, BAYESIAN, ("mlp-bgd-2",))
    better, worse = (ratios < 1) & (p <= LEVEL), (ratios > 1) & (p <= LEVEL)
    yield Row(
        "bank: no Bayesian method is ever significantly better than mlp-bgd-2, and they are sometimes substantially "
        "worse",
        f"better with p <= {LEVEL} in {better.sum()} of {len(p)} comparisons ({_pairs_named(pairs, better)}), worse in "
        f"{worse.sum()} ({_pairs_named(pairs, worse)}); ratio {ranged(ratios)}",
        p_ranged(p),
        said(not better.any() and ratios.max() > 1.25, bool(better.sum() < worse.sum())),
    )
    keys = tasks.of("bank", 32, (512,))
    ratios, p, pairs = _each(tasks, keys, ("mlp-mc-3", "mlp-mc-4"), ("lin-1",))
    yield Row(
        "bank, 32 inputs and 512 cases: mlp-mc-3 and -4 are even worse than lin-1",
        f"ratio {ranged(ratios)}",
        p_ranged(p),
        said((ratios > 1).all() and (p <= LEVEL).any(), bool((ratios > 1).any())),
    )
    keys = _with(tasks, tasks.of("bank", 8), "mlp-mc-3b", "mlp-mc-3")
    if keys:
        yield from better_everywhere(
            tasks, keys, "mlp-mc-3", "mlp-mc-3b", "bank, 8 inputs: three times as many passes make mlp-mc-3 worse"
        )


def _states(archive, found):
    """What the chains say of noise and of inputs."""
    noises, spreads = [], []
    for prototask, size in _all(found):
        if not prototask.startswith("bank-8"):
            continue
        losses = archive.losses(prototask, size, "mlp-mc-3")
        y = archive.prototask(prototask).data.y[:, 0]
        scale = np.array([_deviation(y[train > 0]) for train in losses.plan.train])
        noises.append(np.mean(losses.info["noise"][:, 0] * scale))
        spreads.append((size, noises[-1], np.sqrt(losses.g.mean())))
    yield Row(
        "bank, 8 inputs: the chains end in states of small noise, too small for a part of the cases",
        "; ".join(
            f"n={size}: noise {noise:.4f}, root of the mean squared error of new cases {error:.4f}"
            for size, noise, error in spreads
        ),
        "-",
        said(all(noise < error for _, noise, error in spreads), any(noise < error for _, noise, error in spreads)),
    )
    seen, p, right = [], [], []
    for prototask, size in _all(found):
        if prototask != "pumadyn-32nm":
            continue
        names = np.array(archive.prototask(prototask).data.names)
        matters = np.isin(names, ["theta5", "tau4"])
        widths = archive.losses(prototask, size, "mlp-mc-3").info["relevance_input_hidden"]
        ratio = widths[:, matters].min(axis=1) / widths[:, ~matters].max(axis=1)
        both = int((ratio > 1).sum())
        p.append(scipy.stats.binomtest(both, len(ratio), 1 / 496, "greater").pvalue)
        right.append(both == len(ratio))
        seen.append(f"n={size}: in {both} of {len(ratio)} runs, ratio {ranged(ratio, '{:.1f}')}")
    yield Row(
        "pumadyn, 32 inputs: theta5 and tau4 have the largest relevances (from 256 cases on)",
        "ratio of the lesser of their posterior mean widths to the largest of the thirty others; " + "; ".join(seen),
        f"{p_ranged(p[2:])} from n=256, binomial: one pair in 496 by chance",
        said(all(right[2:]), any(right)),
    )


def _deviation(y):
    """DELVE's scale of targets [n]."""
    return np.abs(y - np.median(y)).sum() / (len(y) - 1)
