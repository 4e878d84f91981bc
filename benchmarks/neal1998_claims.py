"""What Neal 1998 says of the early-stopping methods, each with our evidence; for benchmarks/neal1998.py.

p-values are of DELVE's two-sided t-test on the instances of one task, unless another test is named. Tasks of one data
set share cases, so numbers of tasks are counted, not tested.
"""

import textwrap
from typing import NamedTuple

import numpy as np
import scipy.stats

LEVEL = 0.05


class Row(NamedTuple):
    """A claim, what was found, the p-value in words, and whether it agrees."""

    claim: str
    evidence: str
    p: str
    agrees: str


class Tasks:
    """The comparisons of all tasks, by family and inputs."""

    def __init__(self, found):
        self.tasks = {
            (one.prototask.split("-")[0], int(one.prototask.split("-")[1][:-2]), task.size): task
            for one in found
            for task in one.tasks
        }

    def of(self, family=None, inputs=None, sizes=None):
        """Keys of tasks, in order."""
        return sorted(
            key
            for key in self.tasks
            if (family is None or key[0] == family)
            and (inputs is None or key[1] == inputs)
            and (sizes is None or key[2] in sizes)
        )

    def ratio(self, key, a, b):
        """Loss of a over loss of b."""
        task = self.tasks[key]
        return task.estimate[task.labels.index(a)] / task.estimate[task.labels.index(b)]

    def gain(self, key, a, b):
        """Standardised loss of b minus that of a."""
        task = self.tasks[key].standardised
        return task.estimate[task.labels.index(b)] - task.estimate[task.labels.index(a)]

    def p(self, key, a, b):
        task = self.tasks[key]
        return float(task.pairs.matrix("p_value")[task.labels.index(a), task.labels.index(b)])

    def better(self, keys, a, b):
        """How much better a is than b: (ratios of losses a / b, p-values), one a task."""
        return np.array([self.ratio(key, a, b) for key in keys]), np.array([self.p(key, a, b) for key in keys])


def claims(archive, found):
    """Lines of the table of claims."""
    tasks = Tasks(found)
    rows = [row for make in (_heart, _kin, _pumadyn, _bank, _ensemble) for row in make(tasks)]
    rows += [*_iterations(archive, found), *_relevance(archive, found)]
    yield (
        "Claims of Neal 1998 on the early-stopping methods: "
        "what we find, p-values, whether it agrees. Ratios are of expected losses; p: "
        "DELVE's t-test unless another is named."
    )
    yield (
        "yes: in all tasks that the claim is about, with p <= 0.05 in some; much: "
        "by a fifth or more, usually: in the median. in part: in most tasks. NO: "
        "in half of them or fewer."
    )
    yield (
        "Data whose names end in -like are not of DELVE's own simulator: "
        "its claims on kin-32nm and bank-32nm may hold there and not here."
    )
    yield from listed(rows)


def listed(rows):
    """Lines of rows, which are numbered."""
    for number, row in enumerate(rows, 1):
        yield f"{number:3}. {row.agrees:9}{row.claim}"
        yield from textwrap.wrap(row.evidence, 150, initial_indent=" " * 14, subsequent_indent=" " * 14)
        yield f"{'':14}p: {row.p}"


def ranged(values, form="{:.2f}"):
    low, high = min(values), max(values)
    return form.format(low) if form.format(low) == form.format(high) else f"{form.format(low)} to {form.format(high)}"


def said(condition, partly=False):
    return "yes" if condition else "in part" if partly else "NO"


def p_ranged(values):
    return ranged(values, "{:.2g}")


def tasks_named(keys, which):
    return (
        ", ".join(f"{family}-{inputs} n={size}" for (family, inputs, size), yes in zip(keys, which, strict=True) if yes)
        or "none"
    )


def better_everywhere(tasks, keys, a, b, claim, much=1.0):
    """A row: a has the smaller loss than b in all of these tasks, by this factor at least."""
    ratios, p = tasks.better(keys, a, b)
    good, sure = (ratios < 1).sum(), ((ratios < 1) & (p <= LEVEL)).sum()
    evidence = (
        f"{a} has the smaller loss in {good} of {len(keys)} tasks, in {sure} of them with p <= "
        f"{LEVEL}; ratio {ranged(ratios)}"
    )
    contrary = (ratios > 1) & (p <= LEVEL)
    if good < len(keys):
        evidence += f"; not in: {tasks_named(keys, ratios >= 1)}"
        evidence += f"; the contrary with p <= {LEVEL} in: {tasks_named(keys, contrary)}"
    yield Row(claim, evidence, p_ranged(p), said((ratios < much).all() and sure > 0, good > len(keys) / 2))


def _heart(tasks):
    keys = tasks.of()
    ratios, p = tasks.better(keys, "mlp-bgd-2", "mlp-bgd-1")
    worse = ratios > 1
    evidence = (
        f"it has the larger loss in {worse.sum()} of {len(keys)} tasks ({tasks_named(keys, worse)}), with "
        f"p <= {LEVEL} in: {tasks_named(keys, worse & (p <= LEVEL))}; ratio {ranged(ratios)}"
    )
    smallest = (
        f"{p[worse].min():.2g} the smallest of those, {min(1, p[worse].min() * len(p)):.2g} times {len(p)} tasks"
        if worse.any()
        else "-"
    )
    yield Row(
        "mlp-bgd-2 is never significantly worse than mlp-bgd-1",
        evidence,
        smallest,
        said(not (worse & (p <= LEVEL)).any()),
    )
    keys = tasks.of("pumadyn", 32, (128, 256))
    if keys:
        yield from better_everywhere(
            tasks,
            keys,
            "mlp-bgd-2",
            "mlp-bgd-1",
            "mlp-bgd-2 gains much over mlp-bgd-1 on pumadyn with 32 inputs and 128 or 256 cases",
            0.8,
        )


def _kin(tasks):
    for inputs, claim in (
        (8, "kin, 8 inputs: mlp-bgd-3 does very poorly"),
        (32, "kin, 32 inputs: mlp-bgd-3 appears worse than the others, less dramatically"),
    ):
        keys = tasks.of("kin", inputs)
        if keys:
            yield from better_everywhere(tasks, keys, "mlp-bgd-1", "mlp-bgd-3", claim, 0.8 if inputs == 8 else 1.0)
    keys = tasks.of("kin")
    if keys:
        pairs = [("mlp-ese-1", "mlp-bgd-1"), ("mlp-ese-1", "mlp-bgd-2"), ("mlp-bgd-1", "mlp-bgd-2")]
        ratios = np.array([max(r, 1 / r) for pair in pairs for r in tasks.better(keys, *pair)[0]]).reshape(
            len(pairs), -1
        )
        p = np.concatenate([tasks.better(keys, *pair)[1] for pair in pairs])
        evidence = "largest ratio of two of them " + ", ".join(
            f"{a[4:]}/{b[4:]} {r.max():.2f} ({tasks_named(keys, r == r.max())})"
            for (a, b), r in zip(pairs, ratios, strict=True)
        )
        yield Row(
            "kin: no large differences among mlp-ese-1, mlp-bgd-1 and mlp-bgd-2",
            evidence,
            p_ranged(p),
            said(ratios.max() < 1.25, (ratios < 1.25).mean() > 0.7),
        )
        ratios, p = tasks.better(keys, "mlp-bgd-2", "mlp-bgd-1")
        sure = p <= LEVEL
        evidence = (
            f"mlp-bgd-2 has the smaller loss in {(ratios < 1).sum()} of {len(keys)} tasks, ratio "
            f"{ranged(ratios)}; p <= {LEVEL} in: {tasks_named(keys, sure)}"
        )
        if not tasks.of("kin", 32):
            evidence += "; 32 inputs are not at hand"
        right = (ratios < 1).mean() > 0.5 and [key for key, yes in zip(keys, sure, strict=True) if yes] == [
            ("kin", 32, 1024)
        ]
        yield Row(
            "kin: mlp-bgd-2 is a bit better than mlp-bgd-1, significantly only with 32 inputs and 1024 cases",
            evidence,
            p_ranged(p),
            said(right, (ratios < 1).mean() > 0.5),
        )


def _pumadyn(tasks):
    yield from better_everywhere(
        tasks, tasks.of("pumadyn"), "mlp-bgd-2", "mlp-bgd-1", "pumadyn: mlp-bgd-2 beats mlp-bgd-1 everywhere"
    )
    yield from better_everywhere(
        tasks,
        tasks.of("pumadyn", 8, (64, 128)),
        "mlp-bgd-3",
        "mlp-bgd-1",
        "pumadyn, 8 inputs: mlp-bgd-3 is very good with few cases (64, 128)",
    )
    keys = tasks.of("pumadyn", 32)
    if keys:
        yield from better_everywhere(
            tasks, keys, "mlp-bgd-1", "mlp-bgd-3", "pumadyn, 32 inputs: mlp-bgd-3 is very bad (against mlp-bgd-1)"
        )
        yield from better_everywhere(
            tasks, keys, "mlp-bgd-2", "mlp-bgd-3", "pumadyn, 32 inputs: mlp-bgd-3 is very bad (against mlp-bgd-2)", 0.8
        )
    keys = tasks.of("pumadyn")
    ratios, p = tasks.better(keys, "mlp-ese-1", "mlp-bgd-1")
    evidence = (
        f"ratio to mlp-bgd-1 {ranged(ratios)}; above 1.25 in: {tasks_named(keys, ratios > 1.25)}; "
        f"below 0.8 in: {tasks_named(keys, ratios < 0.8)}"
    )
    yield Row(
        "pumadyn: mlp-ese-1 is much worse than mlp-bgd-1 and -2 on some tasks, never much better",
        evidence,
        p_ranged(p),
        said((ratios > 1.25).any() and not (ratios < 0.8).any(), (ratios > 1.25).any()),
    )


def _bank(tasks):
    keys = tasks.of("bank")
    yield from better_everywhere(
        tasks, keys, "mlp-bgd-2", "mlp-bgd-1", "bank: mlp-bgd-2 is consistently a bit better than mlp-bgd-1"
    )
    for other in ("mlp-ese-1", "mlp-bgd-3"):
        ratios, p = (
            np.concatenate(parts)
            for parts in zip(*(tasks.better(keys, name, other) for name in ("mlp-bgd-1", "mlp-bgd-2")), strict=True)
        )
        sure = ((ratios < 1) & (p <= LEVEL)).sum()
        evidence = (
            f"one of them against {other}: smaller loss in {(ratios < 1).sum()} of {len(ratios)} "
            f"comparisons, {sure} with p <= {LEVEL}; ratio {ranged(ratios)}, median "
            f"{np.median(ratios):.2f}"
        )
        yield Row(
            f"bank: mlp-bgd-1 and -2 are usually much better than {other}",
            evidence,
            p_ranged(p),
            said(np.median(ratios) < 0.8, (ratios < 1).mean() > 0.5),
        )


def _ensemble(tasks):
    keys = tasks.of()
    yield from better_everywhere(tasks, keys, "mlp-bgd-2", "mlp-bgd-2b", "the ensemble of four beats its first member")
    sets = sorted({key[:2] for key in keys})
    few, many = (np.array([tasks.gain((*one, size), "mlp-bgd-2", "mlp-bgd-2b") for one in sets]) for size in (64, 1024))
    sizes = sorted({key[2] for key in keys})
    evidence = "mean difference of the standardised losses " + ", ".join(
        f"{np.mean([tasks.gain(key, 'mlp-bgd-2', 'mlp-bgd-2b') for key in tasks.of(sizes=(size,))]):.3f} at n={size}"
        for size in sizes
    )
    evidence += "; mean ratio of the losses " + ", ".join(
        f"{np.mean([tasks.ratio(key, 'mlp-bgd-2', 'mlp-bgd-2b') for key in tasks.of(sizes=(size,))]):.2f}"
        for size in sizes
    )
    p = scipy.stats.ttest_rel(few, many).pvalue
    yield Row(
        "the ensemble gains most with few cases",
        evidence,
        f"{p:.2g}, paired t-test of the differences of n=64 against n=1024 on {len(sets)} data sets",
        said(few.mean() > many.mean() and p <= LEVEL, few.mean() > many.mean()),
    )


def _chosen(archive, found, method):
    """Iterations [tasks] of lists [I, M] that a method's networks come from, and the names of their data sets."""
    return [
        (one.prototask, archive.losses(one.prototask, task.size, method).info["iteration"])
        for one in found
        for task in one.tasks
    ]


def _iterations(archive, found):
    by = {method: _chosen(archive, found, method) for method in ("mlp-bgd-1", "mlp-bgd-2", "mlp-bgd-3")}
    every = {method: np.concatenate([iterations.ravel() for _, iterations in chosen]) for method, chosen in by.items()}
    early = ", ".join(
        f"{method} {np.mean(every[method] <= 200):.0%} by iteration 200, {np.sum(every[method] == 1)} "
        "networks after the first"
        for method in ("mlp-bgd-1", "mlp-bgd-2")
    )
    low = min(
        scipy.stats.binomtest(int(np.sum(every[m] == 1)), len(every[m])).proportion_ci(0.95).low
        for m in ("mlp-bgd-1", "mlp-bgd-2")
    )
    some = all(np.sum(every[m] == 1) > 0 for m in ("mlp-bgd-1", "mlp-bgd-2"))
    yield Row(
        "mlp-bgd-1 and -2 often choose quite early iterations, in several instances the first",
        f"{early}, of {len(every['mlp-bgd-1'])} networks each",
        f"- (95 % limit of the share of first iterations from {low:.1%})",
        said(some, True),
    )
    last = {method: np.mean(every[method] == 20_000) for method in by}
    names = sorted({one.prototask for one in found})
    shares = {
        method: np.array(
            [np.mean(np.concatenate([i.ravel() for name, i in chosen if name == one]) == 20_000) for one in names]
        )
        for method, chosen in by.items()
    }
    evidence = "share of networks that come from the last iteration: " + ", ".join(
        f"{method} {share:.1%}" for method, share in last.items()
    )
    p = [scipy.stats.ttest_rel(shares["mlp-bgd-3"], shares[other]).pvalue for other in ("mlp-bgd-1", "mlp-bgd-2")]
    more = last["mlp-bgd-3"] > max(last["mlp-bgd-1"], last["mlp-bgd-2"])
    yield Row(
        "the last iteration is rarely chosen by mlp-bgd-1 and -2, much more often by mlp-bgd-3",
        evidence,
        f"{p_ranged(p)}, paired t-tests on {len(names)} data sets",
        said(more and max(last["mlp-bgd-1"], last["mlp-bgd-2"]) < 0.1, more),
    )


def _relevance(archive, found):
    """Weights that read each input, in the networks that mlp-bgd-2 chose on pumadyn-32nm."""
    for one in found:
        if one.prototask != "pumadyn-32nm":
            continue
        names = np.array(archive.prototask(one.prototask).data.names)
        seen, shares, p, found_both = [], [], [], []
        for task in one.tasks:
            weights = (
                archive.losses(one.prototask, task.size, "mlp-bgd-2").info["input_weights"].reshape(-1, len(names))
            )
            largest = names[np.argsort(-weights, axis=1)[:, :2]]
            both = sum(set(row) == {"theta5", "tau4"} for row in largest.tolist())
            p.append(scipy.stats.binomtest(both, len(weights), 1 / 496, "greater").pvalue)
            shares.append(
                np.mean(
                    np.sum(weights[:, np.isin(names, ["theta5", "tau4"])] ** 2, axis=1) / np.sum(weights**2, axis=1)
                )
            )
            mean = np.sqrt(np.mean(weights**2, axis=0))
            first, second, third = np.argsort(-mean)[:3]
            found_both.append(set(names[[first, second]].tolist()) == {"theta5", "tau4"})
            seen.append(
                f"n={task.size}: {names[first]} {mean[first]:.2f}, {names[second]} {mean[second]:.2f}, next "
                f"{names[third]} {mean[third]:.2f}; theta5 and tau4 come first in {both} of {len(weights)} "
                "networks"
            )
        evidence = (
            "size of the weights that read an input, root mean square over the networks: "
            + "; ".join(seen)
            + f"; share of theta5 and tau4 in all squared weights {ranged(shares, '{:.0%}')}"
        )
        yield Row(
            "pumadyn-32nm: the inputs that mlp-bgd-2 finds relevant are theta5 and tau4 (from 128 cases "
            "on; 64 do not tell theta5)",
            evidence,
            f"{p_ranged(p[1:])} from n=128, {p[0]:.2g} at n=64, binomial: one pair in 496 by chance",
            said(all(found_both[1:]) and max(p[1:]) <= LEVEL, found_both[-1]),
        )
