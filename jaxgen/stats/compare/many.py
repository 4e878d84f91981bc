"""Tests of several learners at once by ranks: Friedman, Iman and Davenport, Cochran, Nemenyi.

Axes: B blocks (data sets, or resamplings that share no case), L learners. Rank 1 is the smallest loss of a block;
equal losses share the mean of their ranks.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from jaxgen.stats.checks import as_learners, as_numbers, holds_losses, require_level
from jaxgen.stats.compare.comparison import require_same
from jaxgen.stats.design import overlap
from jaxgen.stats.rows import cases_of_row
from jaxgen.stats.spread import dropped, joined
from jaxgen.stats.statistic import require_less_is_better
from jaxgen.types import Losses
from jaxgen.types.late import pandas as pd
from jaxgen.types.numbers import require_labels, shown
from jaxgen.types.result import Finding

Blocks = Sequence[Losses] | Mapping[str, Losses] | Float[np.ndarray, "B L"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Ranked(Finding):
    """L learners by their ranks in B blocks.

    Attributes:
      learners: L labels.
      blocks: how many, B, and of what, in words.
      means: mean loss of each learner, [L].
      ranks: average rank of each learner, [L].
    """

    learners: tuple[str, ...]
    blocks: str
    means: Float[np.ndarray, "L"]
    ranks: Float[np.ndarray, "L"]

    def subject(self) -> str:
        """How many learners and blocks, and by which loss."""
        return f"{len(self.learners)} learners, {self.blocks}, {self.unit}"

    def lines(self) -> list[str]:
        """The learners in the order of their ranks."""
        order = np.argsort(self.ranks, kind="stable")
        return ["average rank: " + ", ".join(f"{self.learners[i]} {self.ranks[i]:.3f}" for i in order)]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Omnibus(Ranked):
    """Whether any of L learners differs from the others; the target is the hypothesis that none does, against which a
    small p-value speaks.

    Attributes:
      statistic: corrected for ties; 0 where all ranks are equal.
      df: degrees of freedom, one of chi-square or two of F.
      p_value: 1 where all ranks are equal.
      uncorrected: the statistic without the correction for ties, as Demsar 2006 prints it; NaN where there is none.
    """

    statistic: float
    df: tuple[int, ...]
    p_value: float
    uncorrected: float

    def to_frame(self) -> "pd.DataFrame":
        """One row per learner, with the numbers of the test in each."""
        frame = pd.DataFrame({"learner": self.learners, "mean": self.means, "rank": self.ranks})
        return frame.assign(
            statistic=self.statistic,
            df=", ".join(map(str, self.df)),
            p_value=self.p_value,
            unit=self.unit,
            method=self.method,
        )

    def lines(self) -> list[str]:
        """The test and the ranks."""
        law, df = "chi2" if len(self.df) == 1 else "F", " and ".join(map(str, self.df))
        test = f"{law} = {self.statistic:.4g} with {df} degrees of freedom, p = {self.p_value:.3g}"
        return [test, *super().lines()]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RankDifferences(Ranked):
    """Which of L learners differ in their average ranks; the target is the hypothesis that two do not.

    Attributes:
      critical_difference: ranks that differ by at least this much differ at the family-wise error 1 - level.
      level: joint confidence level.
      p_value: of each pair, adjusted for all pairs, [L, L]; 1 on the diagonal.
    """

    critical_difference: float
    level: float
    p_value: Float[np.ndarray, "L L"]

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The largest sets of learners that the test does not tell apart, as their positions in the order of rank;
        sets of one are left out.
        """
        order = np.argsort(self.ranks, kind="stable")
        ranks = self.ranks[order]
        ends = [int(np.max(np.flatnonzero(ranks - low < self.critical_difference))) for low in ranks]
        return tuple(
            tuple(order[start : end + 1].tolist())
            for start, end in enumerate(ends)
            if end > start and (start == 0 or end > ends[start - 1])
        )

    def to_frame(self) -> "pd.DataFrame":
        """One row per pair; the difference is the second rank minus the first."""
        first, second = np.triu_indices(len(self.learners), 1)
        names = np.asarray(self.learners, dtype=object)
        frame = pd.DataFrame(
            {
                "first": names[first],
                "second": names[second],
                "rank_difference": self.ranks[second] - self.ranks[first],
                "p_value": self.p_value[first, second],
            }
        )
        return frame.assign(
            critical_difference=self.critical_difference, level=self.level, unit=self.unit, method=self.method
        )

    def lines(self) -> list[str]:
        """The critical difference, who differs, and the ranks."""
        pairs = np.argwhere(self.ranks[None] - self.ranks[:, None] >= self.critical_difference)
        apart = [f"{self.learners[i]} < {self.learners[j]} (p = {self.p_value[i, j]:.3g})" for i, j in pairs]
        test = f"critical difference {self.critical_difference:.4g} at {self.level:.0%}; " + (
            "smaller losses: " + "; ".join(apart) if apart else "no two learners are told apart"
        )
        return [test, *super().lines()]


def friedman(losses: Blocks, *, labels: Sequence[str] | None = None) -> Omnibus:
    """Friedman's test by ranks, with the correction for ties (Friedman 1937; Demsar 2006, "Statistical comparisons of
    classifiers over multiple data sets").

    The chi-square law is good from about 10 blocks on; below, and as a rule, `iman_davenport` is better. Corrected for
    ties, a block of equal losses counts for nothing.

    Args:
      losses: of L learners on one plan: the blocks are their data sets, [Q, R] by the mean over R, or without Q the R
        resamplings; or mean losses [B, L], the smaller the better.
      labels: one a learner; None takes the learners' own texts, or numbers from 1.
    Returns:
      Omnibus; statistic 0 and p-value 1 if every block has equal losses.
    Raises:
      ValueError: fewer than 2 blocks or learners, different plans or losses, failed rows, losses that are not finite,
        or another number of labels.
      TypeError: neither a list of losses nor numbers.
    """
    table = _table(losses, labels)
    chi2, uncorrected = _chi_square(table.ranks)
    df = len(table.learners) - 1
    return _omnibus(
        "Friedman test",
        "Friedman 1937; Demsar 2006",
        table,
        chi2,
        (df,),
        float(scipy.stats.chi2.sf(chi2, df)),
        uncorrected,
    )


def iman_davenport(losses: Blocks, *, labels: Sequence[str] | None = None) -> Omnibus:
    """Friedman's test by the F law, which is closer (Iman & Davenport 1980; Demsar 2006): F = (B-1) chi2 / (B(L-1) -
    chi2).

    With the correction for ties this is the analysis of variance of the ranks. A block of equal losses then still
    counts in B.

    Args:
      losses: of L learners on one plan: the blocks are their data sets, [Q, R] by the mean over R, or without Q the R
        resamplings; or mean losses [B, L], the smaller the better.
      labels: one a learner; None takes the learners' own texts, or numbers from 1.
    Returns:
      Omnibus; statistic 0 and p-value 1 if every block has equal losses. If all blocks rank the learners alike F is
      infinite, and the p-value the exact one, the probability that B - 1 random orders agree with the first.
    Raises:
      ValueError: fewer than 2 blocks or learners, different plans or losses, failed rows, losses that are not finite,
        or another number of labels.
      TypeError: neither a list of losses nor numbers.
    """
    table = _table(losses, labels)
    b, k = table.values.shape
    df = (k - 1, (k - 1) * (b - 1))
    if not np.any(np.ptp(table.ranks, axis=0)) and np.ptp(table.ranks):
        orders = math.factorial(k) / math.prod(
            math.factorial(int(times)) for times in np.unique(table.ranks[0], return_counts=True)[1]
        )
        statistic, uncorrected, p = (
            math.inf,
            math.inf if orders == math.factorial(k) else _f(_chi_square(table.ranks)[1], b, k),
            orders ** (1 - b),
        )
    else:
        statistic, uncorrected = (_f(chi2, b, k) for chi2 in _chi_square(table.ranks))
        p = float(scipy.stats.f.sf(statistic, *df))
    return _omnibus("Iman-Davenport test", "Iman & Davenport 1980; Demsar 2006", table, statistic, df, p, uncorrected)


def cochran_q(losses: Blocks, *, row: int | None = None, labels: Sequence[str] | None = None) -> Omnibus:
    """Cochran's Q of 0-1 losses on the same test cases (Cochran 1950): McNemar's test, without continuity correction,
    for L learners.

    It is Friedman's statistic, corrected for ties, with the cases as blocks; cases on which all learners agree count
    for nothing.

    Args:
      losses: of L learners on one plan, of one hold-out row; or 0-1 losses of every case, [N, L].
      row: which row of the plan; None if there is only one.
      labels: one a learner; None takes the learners' own texts, or numbers from 1.
    Returns:
      Omnibus; statistic 0 and p-value 1 if all learners agree on every case. It is about these trained models.
    Raises:
      ValueError: losses other than 0 and 1, fewer than 2 cases or learners, no row or none chosen, losses of the cases
        not kept, different plans or losses, a failed row, or another number of labels.
      TypeError: neither a list of losses nor numbers.
    """
    table = cases(losses, row, labels)
    odd = table.values[(table.values != 0) & (table.values != 1)]
    if len(odd):
        raise ValueError(
            f"expected 0-1 losses for Cochran's Q, got {odd[0]} and {len(odd)} such values in all; "
            "assess with loss.zero_one, or use friedman or max_t"
        )
    q, _ = _chi_square(table.ranks)
    df = len(table.learners) - 1
    return _omnibus("Cochran's Q test", "Cochran 1950", table, q, (df,), float(scipy.stats.chi2.sf(q, df)), math.nan)


def nemenyi(losses: Blocks, *, level: float = 0.95, labels: Sequence[str] | None = None) -> RankDifferences:
    """All pairs of learners by their average ranks, with the critical difference (Nemenyi 1963; Demsar 2006).

    CD = q sqrt(L(L+1) / (6B)), where q is the quantile of the studentised range of L, infinite degrees of freedom,
    divided by sqrt(2). There is no correction for ties, which make it conservative. Whether two learners differ
    depends on the others in the comparison, as ranks do.

    Args:
      losses: of L learners on one plan: the blocks are their data sets, [Q, R] by the mean over R, or without Q the R
        resamplings; or mean losses [B, L], the smaller the better.
      level: joint confidence level, 0 < level < 1.
      labels: one a learner; None takes the learners' own texts, or numbers from 1.
    Returns:
      RankDifferences, p-values [L, L]; all 1 if every block has equal losses.
    Raises:
      ValueError: fewer than 2 blocks or learners, different plans or losses, failed rows, losses that are not finite,
        a level out of range, or another number of labels.
      TypeError: neither a list of losses nor numbers.
    """
    require_level(level)
    table = _table(losses, labels)
    b, k = table.values.shape
    average = table.ranks.mean(0)
    unit = math.sqrt(k * (k + 1) / (12 * b))
    first, second = np.triu_indices(k, 1)
    p = np.ones((k, k))
    p[first, second] = p[second, first] = np.clip(
        scipy.stats.studentized_range.sf(np.abs(average[first] - average[second]) / unit, k, np.inf), 0, 1
    )
    critical = unit * float(scipy.stats.studentized_range.ppf(level, k, np.inf))
    return RankDifferences(
        method="Nemenyi test",
        source="Nemenyi 1963; Demsar 2006",
        target="the hypothesis that two learners have the same rank",
        **table.described(),
        critical_difference=critical,
        level=level,
        p_value=p,
    )


class Table(NamedTuple):
    """Losses [B, L] of L learners on B blocks, with labels, the unit, the blocks in words, and what to beware of."""

    values: Float[np.ndarray, "B L"]
    learners: tuple[str, ...]
    unit: str
    blocks: str
    note: str = ""

    @property
    def ranks(self) -> Float[np.ndarray, "B L"]:
        """Rank of each learner in each block, [B, L]."""
        return scipy.stats.rankdata(self.values, axis=-1)

    def described(self) -> dict[str, Any]:
        """What a result says of the table itself."""
        return {
            "unit": self.unit,
            "learners": self.learners,
            "blocks": self.blocks,
            "means": self.values.mean(0),
            "ranks": self.ranks.mean(0),
            "note": self.note,
        }


def cases(losses: Blocks, row: int | None = None, labels: Sequence[str] | None = None) -> Table:
    """The losses of L learners on every test case of one row, as Table [N, L]; an array [N, L] of them is taken as it
    is.

    Raises:
      ValueError: see `cochran_q`.
      TypeError: no losses.
    """
    if not holds_losses(losses):
        if row is not None:
            raise ValueError(
                f"expected no row with losses of test cases [N, L], got row={shown(row)}; leave it out, or give "
                "what assess returned for each learner"
            )
        return _given(losses, labels, "test cases")
    of_learners = aligned(losses)
    require_less_is_better(*of_learners)
    first = of_learners[0]
    if first.sets is not None:
        raise ValueError(f"expected the losses of one data set, got those of {first.sets}; choose one with losses[q]")
    values = np.stack([cases_of_row(of_learner, row) for of_learner in of_learners], axis=-1)
    learners = tuple(of_learner.name for of_learner in of_learners)
    table = Table(values, learners, first.unit, f"{len(values)} test cases", dropped(first))
    return _checked(table, labels, "test cases")


def aligned(losses: Any) -> list[Losses]:
    """The losses [*Q, R] of 2 learners or more, in a list.

    Raises:
      ValueError: fewer, or not by one loss, on one plan and of as many data sets; a row failed.
      TypeError: no list of losses.
    """
    of_learners = as_learners(losses)
    for of_learner in of_learners[1:]:
        require_same(of_learners[0], of_learner)
    return of_learners


def named(labels: Sequence[str] | None, learners: tuple[str, ...]) -> tuple[str, ...]:
    """The labels, or else the learners' own texts; ValueError if there are more or fewer, or they are no texts."""
    require_labels(labels, len(learners), "learners")
    return tuple(learners if labels is None else labels)


def _given(values: Any, labels: Sequence[str] | None, blocks: str) -> Table:
    """The table of numbers [B, L] that a caller gave."""
    table = as_numbers("losses of learners", values)
    return _checked(Table(table, (), "given loss", f"{len(np.atleast_1d(table))} {blocks}"), labels, blocks)


def _table(losses: Blocks, labels: Sequence[str] | None) -> Table:
    if not holds_losses(losses):
        return _given(losses, labels, "blocks")
    of_learners = aligned(losses)
    require_less_is_better(*of_learners)
    first, learners = of_learners[0], tuple(of_learner.name for of_learner in of_learners)
    if first.sets is not None:
        values = np.stack([of_learner.g.mean(-1) for of_learner in of_learners], axis=-1)
        return _checked(
            Table(values, learners, first.unit, f"{first.sets} data sets", dropped(first)),
            labels,
            "data sets",
        )
    shared = (
        "the blocks are resamplings of one data set that share cases, so they depend on each other "
        "and p-values are too small"
    )
    note = f"{shared}; give several data sets, or use pairwise with corrected_t" if overlap(first.plan) else ""
    values = np.stack([of_learner.g for of_learner in of_learners], axis=-1)
    note = joined(note, dropped(first))
    table = Table(values, learners, first.unit, f"{len(values)} resamplings", note)
    return _checked(table, labels, "resamplings")


def _checked(table: Table, labels: Sequence[str] | None, blocks: str) -> Table:
    """The table with labels and in double precision; refuses one that is too small or not finite."""
    values = table.values.astype(np.float64)
    if values.ndim != 2 or len(values) < 2 or values.shape[1] < 2:
        raise ValueError(
            f"expected losses of at least 2 {blocks} and 2 learners, got shape {list(values.shape)}; "
            "give more, the learners on the last axis"
        )
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"expected finite losses, got {len(bad)} that are not, the first at {bad[0].tolist()}; "
            f"leave out those {blocks}"
        )
    return table._replace(
        values=values,
        learners=named(labels, table.learners or tuple(str(number + 1) for number in range(values.shape[1]))),
    )


def _chi_square(ranks: Float[np.ndarray, "B L"]) -> tuple[float, float]:
    """Friedman's statistic with and without the correction for ties; 0 where all ranks are equal.

    In the symbols of Demsar 2006, with k learners, N = B data sets and average ranks R_j, whose mean is (k + 1)/2:
    chi2 = 12 N / (k (k + 1)) sum_j (R_j - (k + 1)/2)^2. Without ties the ranks' sum of squares is N k (k^2 - 1) / 12,
    and to divide by the sum that there is corrects for ties.
    """
    b, k = ranks.shape
    between, within = b * np.sum((ranks.mean(0) - (k + 1) / 2) ** 2), np.sum((ranks - (k + 1) / 2) ** 2)
    return float((k - 1) * b * between / within) if within > 0 else 0.0, float(12 * between / (k * (k + 1)))


def _f(chi2: float, b: int, k: int) -> float:
    return (b - 1) * chi2 / (b * (k - 1) - chi2)


def _omnibus(
    method: str, source: str, table: Table, statistic: float, df: tuple[int, ...], p: float, uncorrected: float
) -> Omnibus:
    signs = len(table.learners) == 2 and method != "Cochran's Q test"
    two = (
        "with two learners this is the sign test, which leaves the size of the differences out; "
        "a test of compare uses it"
        if signs
        else ""
    )
    return Omnibus(
        method=method,
        source=source,
        target="the hypothesis that all learners have the same distribution of losses in every block",
        **table._replace(note=joined(table.note, two)).described(),
        statistic=statistic,
        df=df,
        p_value=p,
        uncorrected=uncorrected,
    )
