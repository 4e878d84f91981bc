"""Many comparisons at once: adjusted p-values and joint intervals.

At 5 % each, one of four independent true hypotheses is rejected with probability 1 - 0.95^4 = 18.5 %. Holm and max-t
keep the family-wise error, the probability of any false rejection; Benjamini, Hochberg and Yekutieli the share of
false ones among the rejections. Axes: P comparisons, L learners.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from jaxtyping import Bool, Float, Int

from jaxgen.stats.checks import as_numbers, require_draws, require_level
from jaxgen.stats.compare.many import Blocks, aligned, cases, named
from jaxgen.stats.compare.recommended import recommend
from jaxgen.stats.spread import independent, joined
from jaxgen.stats.statistic import direction
from jaxgen.types import Losses
from jaxgen.types.late import pandas as pd
from jaxgen.types.numbers import first_line, require, require_flag, require_one_of, shown
from jaxgen.types.result import Finding

PValues = Sequence[float] | Float[np.ndarray, "*Q P"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Pairs(Finding):
    """Differences of several pairs of learners, second minus first: positive if the first is better.

    Attributes:
      adjustment: what the adjusted p-values keep, and by which method; with its source.
      learners: L labels.
      first, second: the learners of each pair, positions in `learners`, [P].
      estimate: differences, [*Q, P]; NaN where the test has none.
      statistic: [*Q, P]; NaN where the test has none.
      p_value: of each pair by itself, [*Q, P]; NaN where all differences are equal and not 0.
      adjusted: for all P pairs of a data set, [*Q, P].
      lower, upper: joint limits of all P differences, [*Q, P]; NaN where the method has none.
      level: joint confidence level of those.
      greater_is_better: whether the numbers are no errors but a statistic of which more is better, as AUC.
    """

    adjustment: str
    learners: tuple[str, ...]
    first: Int[np.ndarray, "P"]
    second: Int[np.ndarray, "P"]
    estimate: Float[np.ndarray, "*Q P"]
    statistic: Float[np.ndarray, "*Q P"]
    p_value: Float[np.ndarray, "*Q P"]
    adjusted: Float[np.ndarray, "*Q P"]
    lower: Float[np.ndarray, "*Q P"]
    upper: Float[np.ndarray, "*Q P"]
    level: float
    greater_is_better: bool = False

    def matrix(self, name: str = "adjusted") -> Float[np.ndarray, "*Q L L"]:
        """The first learners down, the second ones across, [*Q, L, L]: "adjusted", "p_value", or "estimate", whose
        sign changes across the diagonal.

        NaN on the diagonal and for pairs that were not compared.

        Raises:
          ValueError: another name.
        """
        require_one_of("name", name, ("adjusted", "p_value", "estimate"))
        values = getattr(self, name)
        square = np.full((*values.shape[:-1], len(self.learners), len(self.learners)), np.nan)
        square[..., self.first, self.second] = values
        square[..., self.second, self.first] = -values if name == "estimate" else values
        return square

    def rejected(self) -> Bool[np.ndarray, "*Q P"]:
        """The pairs that differ at the joint level, [*Q, P]: adjusted p-values of at most 1 - level."""
        return self.adjusted <= 1 - self.level + 1e-12

    def to_frame(self) -> "pd.DataFrame":
        """One row per pair, and per data set where there are several."""
        numbers = [
            name
            for name in ("estimate", "statistic", "p_value", "adjusted", "lower", "upper")
            if not np.isnan(getattr(self, name)).all()
        ]
        names, sets = np.asarray(self.learners, dtype=object), self.adjusted.shape[:-1]
        repeats = int(np.prod(sets))
        pairs = {name: np.tile(names[getattr(self, name)], repeats) for name in ("first", "second")}
        frame = pd.DataFrame(pairs | {name: getattr(self, name).reshape(-1) for name in numbers})
        if sets:
            frame.insert(0, "set", np.repeat(np.arange(repeats), len(self.first)))
        return frame.assign(level=self.level, unit=self.unit, method=self.method, adjustment=self.adjustment)

    def subject(self) -> str:
        """How many pairs of how many learners, and by which loss."""
        pairs = f"{len(self.first)} pair{'s' * (len(self.first) != 1)}"
        return f"{pairs} of {len(self.learners)} learners, {self.unit}, second minus first"

    def lines(self) -> list[str]:
        """A table of the pairs; of several data sets in how many some difference was found."""
        if self.adjusted.ndim > 1:
            share = np.mean(self.rejected().any(-1))
            return [
                f"{len(self.adjusted)} data sets; some difference found at {1 - self.level:.3g} in {share:.1%} of them"
            ]
        frame = self.to_frame().drop(columns=["level", "unit", "method", "adjustment"])
        limits = f"; joint {self.level:.0%} limits" if "lower" in frame else ""
        table = frame.to_string(index=False, float_format=lambda v: f"{v:.4g}")
        return [f"adjusted p-values: {self.adjustment}{limits}", *table.split("\n")]


def holm(p_values: PValues) -> Float[np.ndarray, "*Q P"]:
    """Adjusted p-values that keep the family-wise error under any dependence (Holm 1979).

    Args:
      p_values: [*Q, P]; each data set is a family of its own.
    Returns:
      [*Q, P], in the order given: the maximum, over the i-th smallest and those before it, of (P - i + 1) p, at most 1.
    Raises:
      ValueError: no p-values, or one outside [0, 1].
    """
    p = _probabilities(p_values)
    order = np.argsort(p, axis=-1, kind="stable")
    scaled = np.take_along_axis(p, order, axis=-1) * np.arange(p.shape[-1], 0, -1)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.maximum.accumulate(np.minimum(scaled, 1), axis=-1), axis=-1)
    return adjusted


def benjamini_hochberg(p_values: PValues) -> Float[np.ndarray, "*Q P"]:
    """Adjusted p-values that keep the false discovery rate under independence or positive dependence (Benjamini &
    Hochberg 1995), by SciPy.

    Args:
      p_values: [*Q, P]; each data set is a family of its own.
    Returns:
      [*Q, P], in the order given.
    Raises:
      ValueError: no p-values, or one outside [0, 1].
    """
    return np.asarray(scipy.stats.false_discovery_control(_probabilities(p_values), axis=-1, method="bh"))


def benjamini_yekutieli(p_values: PValues) -> Float[np.ndarray, "*Q P"]:
    """Adjusted p-values that keep the false discovery rate under any dependence (Benjamini & Yekutieli 2001), by SciPy.

    Args:
      p_values: [*Q, P]; each data set is a family of its own.
    Returns:
      [*Q, P], in the order given.
    Raises:
      ValueError: no p-values, or one outside [0, 1].
    """
    return np.asarray(scipy.stats.false_discovery_control(_probabilities(p_values), axis=-1, method="by"))


ADJUSTMENTS: dict[str, tuple[Callable[[PValues], Float[np.ndarray, "*Q P"]], str]] = {
    "holm": (holm, "family-wise error by Holm 1979"),
    "benjamini_hochberg": (benjamini_hochberg, "false discovery rate by Benjamini & Hochberg 1995"),
    "benjamini_yekutieli": (benjamini_yekutieli, "false discovery rate by Benjamini & Yekutieli 2001"),
    "none": (lambda p: _probabilities(p), "none"),
}
"""What `pairwise` knows: a function, and what it keeps."""


def pairwise(
    losses: Sequence[Losses] | Mapping[str, Losses],
    test: Callable[[Losses, Losses], Any] = recommend,
    *,
    adjust: str = "holm",
    level: float = 0.95,
    labels: Sequence[str] | None = None,
) -> Pairs:
    """Any test of two learners on all pairs, with adjusted p-values.

    Args:
      losses: of L learners on one plan, [*Q, R], in a list or in a mapping of labels, as `assess` returns them; each
        data set is a family of its own.
      test: of `jaxgen.stats.compare`, by default the one that suits the plan, or any function of two losses whose
        result has a two-sided `p_value` [*Q]; options by `functools.partial`.
      adjust: "holm", "benjamini_hochberg", "benjamini_yekutieli" or "none".
      level: 1 - level is the error that `rejected` keeps, 0 < level < 1.
      labels: one a learner; None takes the learners' own texts.
    Returns:
      Pairs, [*Q, L(L-1)/2], without limits: those of the test hold for one pair only.
    Raises:
      ValueError: fewer than 2 learners, different plans or losses, what the test refuses, a one-sided test or one
        without a p-value, an unknown adjustment, a level out of range, or another number of labels.
      TypeError: no list of losses.
    """
    require_level(level)
    require_one_of("adjust", adjust, ADJUSTMENTS)
    of_learners = aligned(losses)
    learners = named(labels, tuple(of_learner.name for of_learner in of_learners))
    if not callable(test):
        raise TypeError(f"expected a test of two losses, got {shown(test)}; give for example compare.corrected_t")
    name = getattr(test, "__name__", shown(test))
    results = [_compared(test, name, *pair) for pair in itertools.combinations(of_learners, 2)]
    _require_two_sided(results, name, of_learners[0].sets)
    estimate, statistic, p = (
        np.stack([np.asarray(getattr(result, part, np.nan), np.float64) for result in results], axis=-1)
        for part in ("estimate", "statistic", "p_value")
    )
    adjustment, keeps = ADJUSTMENTS[adjust]
    defaults = {"method": name, "source": "given test", "target": "the differences of the test"}
    method, source, target = (getattr(results[0], part, default) for part, default in defaults.items())
    note = joined(*dict.fromkeys(getattr(result, "note", "") for result in results))
    none, unknown = np.full(p.shape, np.nan), np.isnan(p)  # of differences without any spread
    adjusted = np.where(unknown, np.nan, adjustment(np.where(unknown, 1.0, p)))
    first, second = np.triu_indices(len(of_learners), 1)
    return Pairs(
        method=method,
        source=source,
        adjustment=keeps,
        target=target,
        unit=of_learners[0].unit,
        learners=learners,
        first=first,
        second=second,
        estimate=estimate,
        statistic=statistic,
        p_value=p,
        adjusted=adjusted,
        lower=none,
        upper=none,
        level=level,
        greater_is_better=bool(direction(of_learners[0])),
        note=note,
    )


def _compared(test: Callable[[Losses, Losses], Any], name: str, first: Losses, second: Losses) -> Any:
    """The result of a test that may be the user's."""
    try:
        return test(first, second)
    except Exception as error:
        if str(error).startswith("expected "):  # a test of the package, which says it better
            raise
        raise ValueError(
            f"expected a test that takes the losses of two learners, got {name}, which stops with {first_line(error)}; "
            "give for example compare.corrected_t"
        ) from error


def _require_two_sided(results: list[Any], name: str, sets: int | None) -> None:
    """Refuses the results of a test that is one-sided, or has no p-value of each data set."""
    shape, kinds = () if sets is None else (sets,), set()
    for result in results:
        try:
            p = np.asarray(getattr(result, "p_value", np.nan), np.float64)
        except (TypeError, ValueError):
            p = np.asarray(np.nan)
        side = getattr(result, "alternative", "two-sided")
        other_shape = f"one of shape {list(p.shape)}, and not {list(shape)}" if p.shape != shape else ""
        spread = np.asarray(getattr(result, "standard_error", np.nan))
        without = np.isnan(p) & ~(np.isinf(getattr(result, "statistic", np.nan)) | (spread == 0))
        kinds.add("no p_value" if without.any() else other_shape or str(side))
    if kinds != {"two-sided"}:
        raise ValueError(
            f"expected a test whose result has a two-sided p_value, got {name} with "
            f"{', '.join(sorted(kinds))}; choose another, or its two-sided form"
        )


def max_t(
    losses: Blocks,
    *,
    against: int | None = None,
    row: int | None = None,
    step_down: bool = True,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    labels: Sequence[str] | None = None,
) -> Pairs:
    """Joint intervals and adjusted p-values of all differences on one hold-out set, by the bootstrap of the largest
    |t| (Westfall & Young 1993; Romano & Wolf 2005).

    The test cases are drawn with replacement, all learners together, so that the dependence of the differences is used
    where Holm fears the worst. Each draw has a standard error of its own. With few cases, or 0-1 losses that rarely
    differ, this is conservative.

    Args:
      losses: of L learners on one plan; or the losses of every test case, [N, L].
      against: the learner that all others are compared with, from 0, as the first of each pair; None compares all
        pairs.
      row: which row of the plan; None if there is only one.
      level: joint confidence level, 0 < level < 1.
      step_down: p-values of Romano & Wolf's algorithm 4.1, which are never larger than those of the single step; the
        limits are those of the single step in any case, so that a pair may be rejected though its limits include 0.
      resamples: draws of N cases; a p-value is at least 1 / (1 + resamples).
      seed: of those draws.
      labels: one a learner; None takes the learners' own texts, or numbers from 1.
    Returns:
      Pairs, [P]; p-value 1 and limits 0 for a pair whose losses are equal in every case.
    Raises:
      ValueError: fewer than 2 cases or learners, no row or none chosen, losses of the cases not kept, different plans
        or losses, a failed row, a number out of range, or another number of labels.
      TypeError: neither a list of losses nor numbers.
    """
    require_level(level)
    require_flag("step_down", step_down)
    table = cases(losses, row, labels)
    first, second = _pairs(len(table.learners), against)
    require_draws(resamples, seed, int(np.ceil(level / (1 - level) - 1e-9)), len(first))
    differences = (table.values[:, second] - table.values[:, first]).T
    spread = independent(differences)
    t = np.abs(spread.test()[0])
    drawn = _bootstrapped(differences, resamples, seed)
    critical = np.sort(drawn.max(0))[int(np.ceil(level * (resamples + 1) - 1e-9)) - 1]
    adjusted = _step_down(t, drawn) if step_down else _tail(t, drawn.max(0))
    reach = critical * spread.standard_error
    return Pairs(
        method=f"max-t test, {'step-down' if step_down else 'single step'}",
        source="Westfall & Young 1993; Romano & Wolf 2005",
        adjustment=f"family-wise error by {resamples} bootstrap draws, seed {seed}",
        target="the risks of these trained models",
        unit=table.unit,
        learners=table.learners,
        first=first,
        second=second,
        estimate=spread.estimate,
        statistic=spread.test()[0],
        p_value=_tail(t, drawn),
        adjusted=adjusted,
        lower=spread.estimate - reach,
        upper=spread.estimate + reach,
        level=level,
        note=table.note,
    )


def _bootstrapped(differences: Float[np.ndarray, "P N"], resamples: int, seed: int) -> Float[np.ndarray, "P B"]:
    """|t| of the draws around the mean of the cases; 0 for a difference that is the same in every case.

    A draw is a vector of counts, so that means and mean squares of all pairs and many draws are two matrix products.
    """
    rng, n = np.random.default_rng(seed), differences.shape[-1]
    # t does not depend on the unit: deviations of at most 1 keep small differences above the rounding of the variance.
    centred = differences - differences.mean(-1, keepdims=True)
    scale = np.where(np.ptp(differences, axis=-1) == 0, 0.0, np.abs(centred).max(-1))[:, None]
    centred = np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 0)
    drawn, step = [], max(2**22 // n, 1)  # some tens of MB at a time
    for start in range(0, resamples, step):
        weights = rng.multinomial(n, np.full(n, 1 / n), min(step, resamples - start)).astype(np.float64).T / n
        mean, square = centred @ weights, centred**2 @ weights
        # Divisor n, so that S^2 / n is the variance over n - 1; a draw of equal differences has rounding for a
        # variance.
        variance = np.maximum(square - mean**2, 1e-14)
        drawn.append(np.abs(mean) * np.sqrt((n - 1) / variance))
    return np.concatenate(drawn, axis=-1)


def _tail(t: Float[np.ndarray, "P"], drawn: Float[np.ndarray, "*A B"]) -> Float[np.ndarray, "P"]:
    """Share of draws that reach t, the observed one among them."""
    return (1 + np.sum(drawn >= t[:, None], axis=-1)) / (1 + drawn.shape[-1])


def _step_down(t: Float[np.ndarray, "P"], drawn: Float[np.ndarray, "P B"]) -> Float[np.ndarray, "P"]:
    """The largest |t| is compared with the maxima of all, the next with those of all but that one, and so on."""
    order = np.argsort(-t, kind="stable")
    # From the pair with the least |t| upwards: the maximum of its draws and those of all pairs with a smaller |t|.
    maxima = np.maximum.accumulate(drawn[order[::-1]], axis=0)[::-1]
    adjusted = np.empty_like(t)
    adjusted[order] = np.maximum.accumulate((1 + np.sum(maxima >= t[order, None], axis=-1)) / (1 + drawn.shape[-1]))
    return adjusted


def _pairs(learners: int, against: int | None) -> tuple[Int[np.ndarray, "P"], Int[np.ndarray, "P"]]:
    if against is None:
        first, second = np.triu_indices(learners, 1)
        return first, second
    require("against", against, 0, learners - 1, "the position of a learner")
    others = np.delete(np.arange(learners), against)
    return np.full_like(others, against), others


def _probabilities(p_values: PValues) -> Float[np.ndarray, "*Q P"]:
    p = as_numbers("p_values", p_values)
    if p.ndim == 0 or p.shape[-1] == 0 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(
            f"expected p-values from 0 to 1, got {p[~((p >= 0) & (p <= 1))][:1].tolist() or 'none'}; "
            "give at least one, and no NaN"
        )
    return p
