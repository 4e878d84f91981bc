"""What conformal prediction returns, and how often it covered new cases whose targets became known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from jaxgen.stats.checks import as_numbers, require_finite
from jaxgen.stats.interval import clopper_pearson
from jaxgen.types.late import pandas as pd
from jaxgen.types.numbers import require_kind, shown
from jaxgen.types.result import Finding, Result


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PredictionIntervals(Finding):
    """An interval for the target of each of M new cases, for each of K outputs by itself.

    Attributes:
      learner: the learner, as code that recreates it.
      prediction: [*Q, M, K]; the median, or the aggregate, of the predictions that the limits are made of.
      lower, upper: limits, [*Q, M, K]; infinite where one-sided, or where there are too few cases for the level.
      level: 1 - alpha, what the limits are made for.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
      guarantee: the probability of covering a new case that is proven under `assumptions`, over draws of all cases.
      assumptions: what that takes, in words.
      calibrated: cases whose errors the limits are made of, n.
    """

    learner: str
    prediction: Float[np.ndarray, "*Q M K"]
    lower: Float[np.ndarray, "*Q M K"]
    upper: Float[np.ndarray, "*Q M K"]
    level: float
    alternative: str
    guarantee: float
    assumptions: str
    calibrated: int

    @property
    def width(self) -> Float[np.ndarray, "*Q M K"]:
        """Of each interval, [*Q, M, K]; infinite if one of its limits is."""
        return self.upper - self.lower

    def covers(self, y: Any) -> Bool[np.ndarray, "*Q M K"]:
        """Whether each interval holds the target, [*Q, M, K], of targets y of that shape, [M, K], or [M] if K is 1.

        Raises:
          TypeError: targets that are no numbers.
          ValueError: other shapes, or values that are not finite.
        """
        targets = _targets(y, self.lower.shape)
        return (self.lower <= targets) & (targets <= self.upper)

    def to_frame(self) -> "pd.DataFrame":
        """One row per data set, new case and output."""
        numbers = {name: np.ravel(getattr(self, name)) for name in ("prediction", "lower", "upper")}
        words = ("level", "alternative", "guarantee", "method", "learner")
        frame = pd.DataFrame(_places(self.lower.shape, ("case", "output")) | numbers)
        return frame.assign(**{name: getattr(self, name) for name in words})

    def subject(self) -> str:
        """What is predicted, and by which learner."""
        return f"{self.unit} by {self.learner}"

    def lines(self) -> list[str]:
        """How many, how wide, and what is promised."""
        middle = float(np.median(self.width))
        wide = "" if self.alternative != "two-sided" else f", median width {middle:.5g}"
        kind = {"two-sided": "intervals", "greater": "lower limits", "less": "upper limits"}[self.alternative]
        return [f"{_counted(self.lower.shape)}, {100 * self.level:.4g}% {kind}{wide}", _promise(self)]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PredictionSets(Finding):
    """A set of classes for each of M new cases.

    Attributes:
      learner: the learner, as code that recreates it.
      classes: the names of the C classes.
      p_values: of each class of each new case, [*Q, M, C]: the share of cases, itself included, that conform no better
        than it would with this class.
      member: whether the set holds the class, [*Q, M, C]: its p-value is above alpha. A set may be empty: none of the
        classes looks like the cases at hand.
      level, guarantee, assumptions, calibrated: as for `PredictionIntervals`.
    """

    learner: str
    classes: tuple[str, ...]
    p_values: Float[np.ndarray, "*Q M C"]
    member: Bool[np.ndarray, "*Q M C"]
    level: float
    guarantee: float
    assumptions: str
    calibrated: int

    @property
    def size(self) -> Float[np.ndarray, "*Q M"]:
        """Classes in each set, [*Q, M]."""
        return self.member.sum(-1).astype(np.float64)

    def names(self, case: int) -> tuple[str, ...]:
        """The classes in the set of a new case, of one data set [M, C].

        Raises:
          ValueError: several data sets.
          IndexError: no such case.
        """
        if self.member.ndim != 2:
            raise ValueError(f"expected sets of one data set, got those of {len(self.member)}; look at member[q]")
        return tuple(name for name, held in zip(self.classes, self.member[case], strict=True) if held)

    def covers(self, y: Any) -> Bool[np.ndarray, "*Q M"]:
        """Whether each set holds the class, [*Q, M], of targets y: one column of zeros and ones per class, [*Q, M, C];
        a single column, [*Q, M, 1] or [M], of two classes; or names of the classes, [M].

        Raises:
          TypeError: targets that are no numbers, nor names.
          ValueError: other shapes, names that are no classes, or targets that are not of one class a case.
        """
        return np.asarray((self.member & _one_hot(y, self.member.shape, self.classes)).any(-1))

    def to_frame(self) -> "pd.DataFrame":
        """One row per data set and new case, one column per class: its p-value; and the set in words."""
        flat, held = (a.reshape(-1, len(self.classes)) for a in (self.p_values, self.member))
        frame = pd.DataFrame(_places(self.member.shape[:-1], ("case",)))
        for name, column in zip(self.classes, flat.T, strict=True):
            frame[f"p of {name}"] = column
        words = [", ".join(name for name, one in zip(self.classes, row, strict=True) if one) for row in held]
        return frame.assign(set=words, level=self.level, method=self.method, learner=self.learner)

    def subject(self) -> str:
        """What is predicted, and by which learner."""
        return f"{self.unit} by {self.learner}"

    def lines(self) -> list[str]:
        """How many, how large, and what is promised."""
        sizes = self.size
        empty = f", {int((sizes == 0).sum())} empty" if (sizes == 0).any() else ""
        count = _counted((*self.member.shape[:-1], 1))
        return [f"{count}, {100 * self.level:.4g}% sets, {sizes.mean():.3g} classes on average{empty}", _promise(self)]


def coverage(
    found: PredictionIntervals | PredictionSets, y: Any, *, level: float = 0.95, alternative: str = "two-sided"
) -> Result:
    """The share of new cases that intervals or sets cover, once their targets are known, with the exact interval of
    Clopper & Pearson 1934 for independent new cases.

    It is about the coverage that goes with the cases at hand. That differs between draws of them: of `split` it has a
    Beta law, (k, n + 1 - k) with k = ceil((1 - alpha)(n + 1)) (Vovk 2012, "Conditional validity").

    Args:
      found: what a function of `stats.conformal` returned.
      y: targets of the new cases, as for its `covers`.
      level: confidence level of the interval for the coverage, 0 < level < 1; not that of the predictions.
      alternative: "two-sided", "greater" (lower limit only) or "less" (upper limit only).
    Returns:
      Result [*Q], or [*Q, K] of several outputs.
    Raises:
      TypeError: found is something else, or targets are no numbers.
      ValueError: targets that do not fit, or a level or alternative out of range.
    """
    require_kind(
        "prediction intervals or sets",
        found,
        (PredictionIntervals, PredictionSets),
        "give what a function of stats.conformal returned",
    )
    covered = found.covers(y)
    if isinstance(found, PredictionIntervals):
        covered = np.moveaxis(covered, -1, -2)
        covered = covered[..., 0, :] if covered.shape[-2] == 1 else covered
    result = clopper_pearson(covered.astype(np.float64), level=level, alternative=alternative)
    return replace(
        result,
        learner=found.learner,
        target="the coverage of new cases, given the cases at hand",
        unit=f"share of new cases covered by {found.method}",
        note=f"made for {100 * found.level:g} %, proven {100 * found.guarantee:.4g} % over draws of all cases",
    )


def _promise(found: PredictionIntervals | PredictionSets) -> str:
    return f"proven to cover with a probability of at least {found.guarantee:.4g}, given {found.assumptions}"


def _counted(shape: Sequence[int]) -> str:
    """How many new cases, outputs and data sets, of the shape [*Q, M, K], in words."""
    sets = f"{shape[0]} data sets of " if len(shape) == 3 else ""
    outputs = f" and {shape[-1]} outputs" if shape[-1] > 1 else ""
    return f"{sets}{shape[-2]} new case{'s' * (shape[-2] > 1)}{outputs}"


def _places(shape: Sequence[int], axes: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The numbers of data set, new case and output of each row of a table."""
    named = ("set", *axes)[-len(shape) :]
    places = {name: np.ravel(place) for name, place in zip(named, np.indices(tuple(shape)), strict=True)}
    if shape[-1] == 1:
        places.pop("output", None)
    return places


def _targets(y: Any, shape: tuple[int, ...]) -> Float[np.ndarray, "*Q M K"]:
    """Targets of new cases as numbers [*Q, M, K]."""
    values = as_numbers("targets of the new cases", y)
    require_finite("targets of the new cases", values)
    values = values[..., None] if values.ndim == 1 and shape[-1] == 1 else values
    if values.shape not in (shape, shape[-2:]):
        raise ValueError(
            f"expected targets of the new cases {list(shape)}, got {list(np.shape(y))}; give one for each interval"
        )
    return np.broadcast_to(values, shape)


def _one_hot(y: Any, shape: tuple[int, ...], classes: tuple[str, ...]) -> Bool[np.ndarray, "*Q M C"]:
    """Targets of new cases as one True for the class of each, [*Q, M, C]."""
    names = np.asarray(y)
    if names.dtype.kind in "UO" and names.ndim == 1 and all(isinstance(name, str) for name in names.tolist()):
        unknown = [name for name in names.tolist() if name not in classes]
        if unknown or len(names) != shape[-2]:
            got = f"{unknown[0]!r}" if unknown else f"{len(names)} of them"
            raise ValueError(
                f"expected {shape[-2]} names among {shown(list(classes))}, got {got}; name the class of each new case"
            )
        return np.broadcast_to(names[:, None] == np.asarray(classes), shape)
    values = as_numbers("targets of the new cases", y)
    if len(classes) == 2 and values.shape in (shape[-2:-1], (*shape[:-1], 1), (shape[-2], 1)):
        values = values[..., None] if values.ndim == 1 else values
        values = np.concatenate([1 - values, values], axis=-1)
    if values.shape not in (shape, shape[-2:]) or not np.isin(values, (0, 1)).all() or (values.sum(-1) != 1).any():
        raise ValueError(
            f"expected targets of the new cases as zeros and ones with one 1 a case, {list(shape)}, got "
            f"{shown(np.asarray(y))}; give one column per class, or the name of the class of each case"
        )
    return np.broadcast_to(values > 0, shape)
