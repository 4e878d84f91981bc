"""The units that a run computes in: chosen on the host, in double precision, so that nothing is lost in single.

A year 2000 +- 10 keeps 5 digits of its spread in single precision, a Unix time none. Where neither learner nor loss
minds (`Learner.freedom`, `loss.About`), such columns are moved to around 0, and columns of extreme size are multiplied
by a power of two; losses and predictions come back in the user's units. Where one of them minds, numbers that would
lose their differences are refused.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jaxgen.loss import About
from jaxgen.types import Data, Freedom, Learner

_FAR = 16
"""Columns farther from 0 than so many times their spread are moved."""

_LOST = 1e-3
"""Numbers that rounding changes by more than this share of their spread are refused."""

_CASES = 250
"""The most cases that are sorted for a median."""

_EXTREME = {"float32": 2.0**40, "float64": 2.0**400}
"""Columns with a spread above this, or below its inverse, are multiplied: their squares and products stay in range."""


class Units(NamedTuple):
    """Data of a run in its own units, and the way back.

    Attributes:
      x, y: inputs [*Q, N, D] and targets [*Q, N, K], in the floating type of the fits.
      y_shift: what was taken from the targets, [*Q, K].
      y_scale: what the targets were then divided by, a power of two, [*Q].
      degree: the power of `y_scale` that the losses take.
      x_shift, x_scale: what was taken from the inputs, and what they were then divided by, [*Q, D].
    """

    x: Float[np.ndarray, "*Q N D"]
    y: Float[np.ndarray, "*Q N K"]
    y_shift: Float[np.ndarray, "*Q K"]
    y_scale: Float[np.ndarray, "*Q"]
    degree: int
    x_shift: Float[np.ndarray, "*Q D"]
    x_scale: Float[np.ndarray, "*Q D"]

    @property
    def changed(self) -> bool:
        """Whether losses or predictions are in other units than the user's."""
        return bool((self.y_scale != 1).any() or self.y_shift.any())

    @property
    def loss_unit(self) -> Float[np.ndarray, "*Q"]:
        """The factor that brings losses back, [*Q]."""
        return np.asarray(self.y_scale**self.degree)

    def inputs(self, x: Float[np.ndarray, "*Q M D"]) -> Float[np.ndarray, "*Q M D"]:
        """Inputs of other cases [*Q, M, D] in these units.

        Raises:
          ValueError: numbers that the type of the fits cannot hold.
        """
        with np.errstate(over="ignore", under="ignore"):
            moved = ((x - self.x_shift[..., None, :]) / self.x_scale[..., None, :]).astype(self.x.dtype)
        if not (np.isfinite(moved) | np.isnan(x)).all():
            raise ValueError(
                f"expected inputs of new cases that {moved.dtype} can hold, got up to {np.nanmax(np.abs(x)):.3g}; "
                "leave these cases out, or enable 64 bits (JAX_ENABLE_X64=1)"
            )
        return moved


def suited(data: Data, learner: Learner, about: About, dtype: str) -> Units:
    """The data in units that lose nothing in the type of the fits.

    Args:
      data: x [*Q, N, D] and y [*Q, N, K].
      learner: as it is trained.
      about: what is known of the loss.
      dtype: "float32" or "float64".
    Returns:
      Units.
    Raises:
      ValueError: numbers that this type cannot hold, or cannot tell apart, where the unit must stay.
    """
    freedom = learner.freedom
    held = np.isin(np.arange(data.d), learner.raw_inputs)
    x_shift, x_scale, x_spread = _change(data.x, freedom.x_shift, freedom.x_scale, dtype)
    x_shift, x_scale = np.where(held, 0.0, x_shift), np.where(held, 1.0, x_scale)
    known = about.shift_free and about.degree is not None
    free = Freedom(y_shift=freedom.y_shift and known, y_scale=freedom.y_scale and known)
    y_shift, y_scale, y_spread = _change(data.y, free.y_shift, free.y_scale, dtype)
    y_scale = np.asarray(y_scale.max(-1))  # one for all outputs, whose losses are added
    x = (data.x - x_shift[..., None, :]) / x_scale[..., None, :] if _moved(x_shift, x_scale) else data.x
    y = (data.y - y_shift[..., None, :]) / y_scale[..., None, None] if _moved(y_shift, y_scale) else data.y
    x_spread = x_spread if x is data.x else None
    y_spread = y_spread if y is data.y else None
    x = _cast("x", x, x_spread, dtype, data, _advice(freedom.x_shift))
    y = _cast("y", y, y_spread, dtype, data, _advice(freedom.y_shift))
    # learners that mind the unit may square errors themselves; so may a loss of which nothing is known
    least = 0 if freedom.y_scale and about.degree is not None else 2
    _check_size(y, y_spread, data.y, max(least, about.degree or 0))
    return Units(x, y, y_shift, y_scale, about.degree or 0, x_shift, x_scale)


def _change(
    values: Float[np.ndarray, "*Q N D"], shift: bool, scale: bool, dtype: str
) -> tuple[Float[np.ndarray, "*Q D"], Float[np.ndarray, "*Q D"], Float[np.ndarray, "*Q D"] | None]:
    """What to take from each column, and the power of two to divide it by then; 0 and 1 where it may stay. The last is
    the spread of the column, where it had to be found for that.
    """
    spread = None
    if shift and dtype == "float32":  # double precision holds what is far from 0
        middle = _median(values)
        centre, spread = middle[..., 0, :], _spread(values, middle)
        far = np.abs(centre) > _FAR * spread
        size = np.where(far, spread, np.maximum(np.abs(centre), spread))
    else:
        centre, far, size = 0.0, False, _largest(values)
    extreme = scale & (size > 0) & ((size > _EXTREME[dtype]) | (size < 1 / _EXTREME[dtype]))
    exponent = np.where(extreme, np.round(np.log2(np.where(size > 0, size, 1))), 0)
    return np.broadcast_to(np.where(far, centre, 0.0), size.shape), np.exp2(exponent), spread


def _largest(values: Float[np.ndarray, "*Q N D"]) -> Float[np.ndarray, "*Q D"]:
    """The largest absolute value of each column, of those that are known."""
    low, high = values.min(-2), values.max(-2)
    if np.isnan(high).any():
        return _known(np.abs(values)).max(-2)
    return np.maximum(-low, high)


def _spread(
    values: Float[np.ndarray, "*Q N D"], centre: Float[np.ndarray, "*Q 1 D"] | None = None
) -> Float[np.ndarray, "*Q D"]:
    """Median absolute deviation of each column, or its mean absolute deviation where more than half of it is one value;
    the medians that these are from, if they are known.

    Medians are those of some hundred cases, as all that is asked here is how many digits a spread takes.
    """
    centre = _median(values) if centre is None else centre
    middle = _median(np.abs(_some(values) - centre))[..., 0, :]
    others = ~(middle > 0).reshape(-1, middle.shape[-1]).all(0)
    if others.any():
        values, centre = values[..., others], centre[..., others]
        share = np.isfinite(values).mean(-2)  # of cases in which the input is not missing
        mean = _known(np.abs(values - centre)).mean(-2) / np.where(share > 0, share, 1)
        middle[..., others] = np.where(middle[..., others] > 0, middle[..., others], mean)
    return middle


def _some(values: Float[np.ndarray, "*Q N D"]) -> Float[np.ndarray, "*Q n D"]:
    """Every so many cases, where there are many."""
    return values[..., :: -(-values.shape[-2] // _CASES), :]


def _median(values: Float[np.ndarray, "*Q N D"]) -> Float[np.ndarray, "*Q 1 D"]:
    """Of each column, over some cases in which it is known; 0 if there are none."""
    # Columns that are neighbours in memory are sorted by vector instructions, three times as fast as np.median.
    rank = np.sort(np.ascontiguousarray(np.swapaxes(_some(values), -1, -2)), axis=-1)  # what is missing comes last
    cases = rank.shape[-1]
    if not np.isnan(rank[..., -1]).any():
        return (rank[..., None, :, (cases - 1) // 2] + rank[..., None, :, cases // 2]) / 2
    known = np.isfinite(rank).sum(-1, keepdims=True)
    middle = [np.take_along_axis(rank, np.maximum(place, 0), axis=-1) for place in ((known - 1) // 2, known // 2)]
    return np.swapaxes(np.where(known > 0, (middle[0] + middle[1]) / 2, 0.0), -1, -2)


def _known(values: Float[np.ndarray, "*Q N D"]) -> Float[np.ndarray, "*Q N D"]:
    """The values with 0 for what is missing."""
    return np.where(np.isnan(values), 0.0, values)


def _check_size(
    y: Float[np.ndarray, "*Q N K"],
    spread: Float[np.ndarray, "*Q K"] | None,
    given: Float[np.ndarray, "*Q N K"],
    degree: int,
) -> None:
    """Refuses targets, of a spread that may be known, whose losses, which go with this power of it, would vanish or
    overflow.
    """
    if degree == 0:
        return
    room = np.finfo(y.dtype).maxexp - 24  # losses may be 2^24 times smaller or larger than the spread says
    spread = _spread(y.astype(np.float64)) if spread is None else spread
    exponent = degree * np.abs(np.log2(np.where(spread > 0, spread, 1)))
    bad = np.argwhere(exponent > room)
    if len(bad):
        raise ValueError(
            f"expected targets whose losses {y.dtype} can hold, got targets with a spread of "
            f"{_spread(given)[tuple(bad[0])]:.2g}, and this learner or loss depends on their unit; change their unit, "
            "use learn.Normalised, or enable 64 bits (JAX_ENABLE_X64=1)"
        )


def _moved(shift: np.ndarray, scale: np.ndarray) -> bool:
    return bool(shift.any() or (scale != 1).any())


def _advice(free: bool) -> str:
    return (
        "enable 64 bits (JAX_ENABLE_X64=1)"
        if free
        else "subtract an offset or change the unit, use learn.Normalised, or enable 64 bits (JAX_ENABLE_X64=1)"
    )


def _cast(
    symbol: str,
    values: Float[np.ndarray, "*Q N D"],
    spread: Float[np.ndarray, "*Q D"] | None,
    dtype: str,
    data: Data,
    advice: str,
) -> Float[np.ndarray, "*Q N D"]:
    """The numbers in the type of the fits, refused where that changes them by more than a part of their spread, which
    may be known.
    """
    names = data.names if symbol == "x" else data.classes or (data.target,) * data.y.shape[-1]
    with np.errstate(over="ignore", under="ignore"):
        cast = values.astype(dtype, copy=False)
    if cast is values:
        return cast
    if not (np.isfinite(cast) | np.isnan(values)).all():
        raise ValueError(
            f"expected numbers that {dtype} can hold, got up to {np.nanmax(np.abs(values)):.3g} in {symbol}; {advice}"
        )
    lost = _median(np.abs(_some(cast) - _some(values)))[..., 0, :]
    if not lost.any():
        return cast
    bad = np.argwhere(lost > _LOST * (_spread(values) if spread is None else spread))
    if len(bad):
        column = int(bad[0][-1])
        raise ValueError(
            f"expected numbers whose differences {dtype} can hold, got {np.nanmax(values[..., column]):.10g} and "
            f"others like it in {symbol}, column {column} ({names[column]!r}), which it changes by up to "
            f"{np.nanmax(np.abs(cast - values)[..., column]):.2g}; {advice}"
        )
    return cast
