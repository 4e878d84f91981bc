"""What a caller gives to statistics, checked with one sentence each: losses, numbers, levels and alternatives."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxgen.types import Losses
from jaxgen.types.numbers import require, require_number, require_one_of, shown

ALTERNATIVES = ("two-sided", "greater", "less")
MOST_REPLICATES = 10**8
"""Replicates of all data sets together that are held at once, less than a GB; intervals need thousands each."""


def require_losses(*losses: Any) -> None:
    """Refuses what is no `Losses` [*Q, R] at all, or was put together from arrays that do not belong together.

    Raises:
      TypeError: an argument is of another kind.
      ValueError: means, plan and losses of cases have shapes that do not fit each other.
    """
    for given in losses:
        if not isinstance(given, Losses):
            if several := of_several(given):
                raise TypeError(several)
            raise TypeError(
                f"expected losses, as assess and Losses.from_predictions give them, got {shown(given)}; "
                f"{_instead(given, 'give what assess returned')}"
            )
        rows, weights, n = np.shape(given.test_mean), given.plan.shape, given.plan.n
        plan_fits = len(rows) in (1, 2) and weights in ((rows[-1], n), (*rows, n))
        if not plan_fits or (given.values is not None and np.shape(given.values) != (*rows, n)):
            cases = "none" if given.values is None else list(np.shape(given.values))
            raise ValueError(
                f"expected losses whose means [*Q, R], plan [*Q, R, N] and values [*Q, R, N] belong together, got "
                f"{list(rows)}, {list(weights)} and {cases}; make them with assess or Losses.from_predictions"
            )


def of_several(given: Any) -> str:
    """What to say of the losses of several learners where those of one were expected; empty if it is something else."""
    values = given.values() if isinstance(given, Mapping) else given
    if not isinstance(given, Mapping | list | tuple) or not given or not all(isinstance(v, Losses) for v in values):
        return ""
    one = next(iter(given)) if isinstance(given, Mapping) else 0
    kind = "mapping" if isinstance(given, Mapping) else type(given).__name__
    kind = "dict" if isinstance(given, dict) else kind
    return f"expected the losses of one learner, got a {kind} of {len(given)}; take one, such as losses[{one!r}]"


def as_learners(losses: Any, least: int = 2) -> list[Losses]:
    """Losses of several learners or plans, [*Q, R] each, as a list; those of a mapping under its labels.

    Raises:
      TypeError: no list or mapping of `Losses`.
      ValueError: fewer than `least`, or losses of shapes that do not fit.
    """
    if isinstance(losses, Losses | str) or not isinstance(losses, Iterable) or getattr(losses, "ndim", 1) == 0:
        raise TypeError(
            f"expected a list of losses, or a mapping of labels to losses, got {shown(losses)}; give those of each "
            "learner or plan"
        )
    listed = list(losses.values() if isinstance(losses, Mapping) else losses)
    require_losses(*listed)
    if isinstance(losses, Mapping):
        listed = [each.labelled(str(label)) for label, each in losses.items()]
    if len(listed) < least:
        raise ValueError(f"expected at least {least} learners, got {len(listed)}; give the losses of each")
    return listed


def holds_losses(values: Any) -> bool:
    """Whether these are losses [*Q, R], or a list or mapping with losses in it, and no numbers."""
    return isinstance(values, Losses) or (
        isinstance(values, list | tuple | Mapping)
        and any(isinstance(value, Losses) for value in (values.values() if isinstance(values, Mapping) else values))
    )


def as_numbers(what: str, values: Any) -> Float[np.ndarray, "..."]:
    """Real numbers of any shape [...], also lists and tables, as an array in double precision.

    Raises:
      TypeError: text, None, objects, complex numbers, or rows of unequal lengths.
      ValueError: a masked array that hides some of its values.
    """
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise TypeError(f"expected {what} as numbers, got {shown(values)}, which is no array; give one") from error
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"expected {what} as numbers, got {shown(values)}; {_instead(values, 'give an array of numbers')}"
        )
    if np.ma.is_masked(values):
        raise ValueError(f"expected {what} as numbers, got a masked array that hides some; leave these out first")
    return array.astype(np.float64)


def require_finite(what: str, values: Float[np.ndarray, "..."], advice: str = "leave them out first") -> None:
    """ValueError unless all values [...] are finite; says how many are not."""
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise ValueError(f"expected finite {what}, got {bad} that are not, of {values.size}; {advice}")


def require_level(level: Any) -> None:
    """ValueError unless it is one number above 0 and below 1."""
    require_number("level", level, above=0, below=1, advice="give 0.95 for 95 %")


def require_draws(resamples: Any, seed: Any, least: int, sets: int = 1) -> None:
    """ValueError unless resamples of so many data sets are at least so many and fit into memory, and the seed is a
    whole number of at least 0.
    """
    require("resamples", resamples, least, max(MOST_REPLICATES // sets, least), "what fits into memory")
    require("seed", seed, 0)


def require_alternative(alternative: Any) -> None:
    """ValueError unless it is one of the three."""
    require_one_of("alternative", alternative, ALTERNATIVES)


def _instead(given: Any, usually: str) -> str:
    """What to do about an argument of another kind."""
    if isinstance(given, list | tuple) and given and all(isinstance(part, Losses) for part in given):
        return "give them one by one"
    if isinstance(given, Mapping):
        return "give its values in a list"
    if isinstance(given, Losses):
        return "give the numbers themselves, such as losses.g"
    if hasattr(given, "estimate") and hasattr(given, "method"):
        return "this is a result already, so give the losses that it came from"
    return usually
