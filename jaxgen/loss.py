"""Per-case losses: a target and a prediction in, a number per case out. Several outputs are summed.

They take arrays of JAX, traced or not, and of NumPy, and return their like. Each says with `describe` which targets
and predictions it is for; `assess` checks that. A function of your own without a description is taken as it is.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from jaxtyping import Float

from jaxgen.types.numbers import require_number, shown
from jaxgen.types.value import Value

Numbers = Any
"""An array of JAX or of NumPy; named by neither, since losses of NumPy need no JAX."""

_NO_PROBABILITY = 1e-3
"""By so much may probabilities lie below 0, and their sum beside 1: sums of many in single precision do."""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class About:
    """What a loss is for.

    Attributes:
      targets: "numbers"; "zeros and ones"; or "classes", one column of zeros and ones, or several with a single 1 in
        each row.
      probabilities: its predictions must be probabilities.
      shift_free: it depends on the differences of targets and predictions only.
      distribution: it is given what a learner believes (`learn.Mixture`), not its predictions; of a learner that
        predicts probabilities these.
      degree: the power to which it is multiplied when targets and predictions are multiplied; None if there is none.
    """

    targets: str = "numbers"
    probabilities: bool = False
    shift_free: bool = False
    degree: int | None = None
    distribution: bool = False


def describe(
    targets: str = "numbers",
    probabilities: bool = False,
    shift_free: bool = False,
    degree: int | None = None,
    distribution: bool = False,
) -> Callable[[Function], Function]:
    """Decorates a per-case loss with what it is for; see `About`.

    A loss that is free of shifts and has a degree keeps its digits in single precision whatever the offset and the
    unit of the targets, because `assess` may then train in another unit.
    """

    def described(function: Function) -> Function:
        vars(function)["about"] = About(targets, probabilities, shift_free, degree, distribution)
        return function

    return described


def about(loss: Callable[..., Any]) -> About:
    """What a loss is for; nothing is known of a function that `describe` did not decorate."""
    known = getattr(loss, "about", None)
    return known if isinstance(known, About) else About()


@describe(shift_free=True, degree=2)
def squared(y: Float[Numbers, "*N K"], prediction: Float[Numbers, "*N K"]) -> Float[Numbers, "*N"]:
    """Squared error, summed over the outputs; for the zeros and ones of a classification it is Brier's score.

    Args:
      y: targets, [*N, K].
      prediction: predicted targets, [*N, K].
    Returns:
      Losses [*N], in the squared unit of y.
    """
    return _xp(y).sum(_xp(y).square(y - prediction), axis=-1)


@describe(shift_free=True, degree=1)
def absolute(y: Float[Numbers, "*N K"], prediction: Float[Numbers, "*N K"]) -> Float[Numbers, "*N"]:
    """Absolute error, summed over the outputs.

    Args:
      y: targets, [*N, K].
      prediction: predicted targets, [*N, K].
    Returns:
      Losses [*N], in the unit of y.
    """
    return _xp(y).sum(_xp(y).abs(y - prediction), axis=-1)


@describe(targets="classes")
def zero_one(y: Float[Numbers, "*N K"], prediction: Float[Numbers, "*N K"]) -> Float[Numbers, "*N"]:
    """1 for a wrong class, else 0 (Scott & Variyam, "Training loss").

    Args:
      y: one column of zeros and ones per class, [*N, K], or a single column.
      prediction: probabilities or scores, [*N, K]; the class is the largest, or for a single column 1 above 0.5.
    Returns:
      Losses [*N].
    """
    xp = _xp(prediction)
    true, predicted = ((a[..., 0] > 0.5) if y.shape[-1] == 1 else xp.argmax(a, axis=-1) for a in (y, prediction))
    # A comparison with NaN would hide a diverged network as a wrong or even a right class.
    return xp.where(xp.isfinite(xp.sum(prediction, axis=-1)), (true != predicted).astype(y.dtype), xp.nan)


@describe(targets="classes", probabilities=True)
def cross_entropy(y: Float[Numbers, "*N K"], prediction: Float[Numbers, "*N K"]) -> Float[Numbers, "*N"]:
    """Minus the logarithm of the probability given to the true class (Scott & Variyam, "Training loss"), in nats.

    Args:
      y: one column of zeros and ones per class, [*N, K], or a single column.
      prediction: probabilities, [*N, K], raised to the smallest normal number where they are less.
    Returns:
      Losses [*N]; NaN where the predictions are no probabilities: below 0, above 1, or with another sum than 1.
    """
    xp = _xp(prediction)
    tiny = xp.finfo(prediction.dtype).tiny
    if y.shape[-1] == 1:
        y, prediction = (xp.concatenate([1 - a, a], axis=-1) for a in (y, prediction))
    inside = xp.all(prediction >= -_NO_PROBABILITY, axis=-1)
    inside = inside & (xp.abs(xp.sum(prediction, axis=-1) - 1) <= _NO_PROBABILITY)
    entropy = -xp.sum(xp.where(y > 0, y * xp.log(xp.maximum(prediction, tiny)), 0), axis=-1)
    # The logarithm of a score is a number like any other, so nothing else would tell it from a cross-entropy.
    return xp.where(inside, entropy, xp.nan)


@describe(targets="zeros and ones")
def hinge(y: Float[Numbers, "*N K"], prediction: Float[Numbers, "*N K"]) -> Float[Numbers, "*N"]:
    """max(0, 1 - t o), summed over the outputs, for t = 2 y - 1 and the margin o = 2 prediction - 1 (Scott & Variyam,
    "Training loss").

    Args:
      y: zeros and ones, [*N, K].
      prediction: margins moved and scaled so that -1 and 1 are 0 and 1, as networks with the objective "hinge"
        predict, [*N, K].
    Returns:
      Losses [*N].
    """
    return _xp(y).sum(_xp(y).maximum(0, 1 - (2 * y - 1) * (2 * prediction - 1)), axis=-1)


@describe(shift_free=True, distribution=True)
def log_score(y: Float[Numbers, "*N K"], prediction: Any) -> Float[Numbers, "*N"]:
    """Minus the logarithm of the density, or probability, that was given to what came: in nats; less is better.

    A proper score: no learner gains by believing more, or less, than it does (Gneiting & Raftery 2007, "Strictly proper
    scoring rules"). Densities are per unit of y, so another unit adds a constant.

    Args:
      y: targets, [*N, K].
      prediction: a `learn.Mixture` [S, N, K], as `predictive` of a learner gives it; or probabilities of classes [*N,
        K], for which it is `cross_entropy`.
    Returns:
      Losses [*N].
    """
    return -prediction.log_density(y) if hasattr(prediction, "log_density") else cross_entropy(y, prediction)


@dataclass(frozen=True, repr=False)
class Missed(Value):
    """Whether a target lies outside its central predictive interval: 1 if it does, else 0, the mean over the outputs.

    The mean over cases is one minus the coverage, which should be the level.

    Attributes:
      level: probability of the interval, between 0 and 1.
    Raises:
      ValueError: the level is no such number.
    """

    level: float = 0.9

    about: ClassVar[About] = About(shift_free=True, distribution=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_level(self.level)

    def __call__(self, y: Float[Numbers, "*N K"], prediction: Any) -> Float[Numbers, "*N"]:
        """Losses [*N] of targets [*N, K] and a `learn.Mixture` [S, N, K]."""
        below = _mixture(self, prediction).probability_below(y)
        outside = _xp(y).abs(2 * below - 1) > self.level
        return _xp(y).where(_xp(y).isfinite(below), outside.astype(y.dtype), _xp(y).nan).mean(axis=-1)


@dataclass(frozen=True, repr=False)
class IntervalWidth(Value):
    """The width of a central predictive interval, in the unit of y, summed over the outputs.

    Attributes:
      level: probability of the interval, between 0 and 1.
    Raises:
      ValueError: the level is no such number.
    """

    level: float = 0.9

    about: ClassVar[About] = About(shift_free=True, distribution=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_level(self.level)

    def __call__(self, y: Float[Numbers, "*N K"], prediction: Any) -> Float[Numbers, "*N"]:
        """Losses [*N] of targets [*N, K] and a `learn.Mixture` [S, N, K]."""
        law = _mixture(self, prediction)
        return _xp(y).sum(law.quantile((1 + self.level) / 2) - law.quantile((1 - self.level) / 2), axis=-1)


NAMES = {each.__name__: each for each in (squared, absolute, zero_one, cross_entropy, hinge, log_score)}
"""The losses that a name alone says; `Missed` and `IntervalWidth` need a level."""

_WITH_LEVEL = (Missed.__name__, IntervalWidth.__name__)


def by_name(loss: Any) -> Any:
    """The loss that a text names; anything else as it is, whatever it is.

    Args:
      loss: a name, such as "zero_one", or a per-case loss of (y [*N, K], prediction [*N, K]) to [*N].
    Returns:
      The loss, [*N].
    Raises:
      ValueError: a text that names none of `NAMES`.
    """
    if not isinstance(loss, str):
        return loss
    name = loss.strip().lower().replace("-", "_").replace(" ", "_")
    if name in NAMES:
        return NAMES[name]
    level = next((each for each in _WITH_LEVEL if each.lower() == name.replace("_", "")), "")
    near = difflib.get_close_matches(name, NAMES, 1, 0.5)
    advice = (
        f"which needs a level; give loss.{level}(0.9)"
        if level
        else (f"did you mean {near[0]!r}?" if near else "or give a function of (y, predictions)")
    )
    separator = ", " if level else "; "
    raise ValueError(
        f"expected the name of a loss, one of {', '.join(map(repr, NAMES))}, got {shown(loss)}{separator}{advice}"
    )


def of_task(task: str) -> Callable[..., Any]:
    """The loss that is counted where none is named: the 0-1 loss of a classification, so that its mean is the error
    rate, and the squared error of a regression. Losses [*N].

    Args:
      task: "regression" or "classification".
    """
    return zero_one if task == "classification" else squared


def _require_level(level: Any) -> None:
    require_number("the level of a predictive interval", level, above=0, below=1, advice="write 0.9 for 90 %")


def _mixture(loss: Any, prediction: Any) -> Any:
    """What was predicted, if it has intervals; ValueError for probabilities of classes and for plain numbers."""
    if not hasattr(prediction, "quantile"):
        raise ValueError(
            f"expected a predictive distribution of numbers (a learn.Mixture) for {loss}, got predictions without one; "
            "use log_score for classes, or a learner with predictive(params, x)"
        )
    return prediction


def _xp(a: Any) -> Any:
    """NumPy or JAX's version of it, whichever made the array."""
    return a.__array_namespace__()
