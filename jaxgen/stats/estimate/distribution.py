"""Location and dispersion of the generalization distribution p(G), and its distribution function."""

from dataclasses import asdict, dataclass

import numpy as np
import scipy
from jaxtyping import Float

from jaxgen.stats.checks import as_numbers, require_finite, require_level, require_losses
from jaxgen.stats.design import divisions, not_folds, serial, without_repeats
from jaxgen.types import Losses, rendered
from jaxgen.types.late import pandas as pd
from jaxgen.types.numbers import require_flag, require_number

Rows = Losses | Float[np.ndarray, "*Q R"]

_WORDS = {
    "avr": "mean",
    "tavr": "trimmed mean",
    "med": "median",
    "std": "std. dev.",
    "mad": "median dev.",
    "iqr": "interquartile",
}
"""What the measures are called in print."""


@dataclass(frozen=True, eq=False)
class Measures:
    """Location and dispersion of R values G, each [*Q] (Larsen & Hansen 1995, "Empirical generalization error
    distributions").

    Attributes:
      avr: average.
      tavr: average of the middle 90 %.
      med: median.
      std: standard deviation, with divisor R - 1.
      mad: median absolute deviation from the median.
      iqr: interquartile range.
    """

    avr: Float[np.ndarray, "*Q"]
    tavr: Float[np.ndarray, "*Q"]
    med: Float[np.ndarray, "*Q"]
    std: Float[np.ndarray, "*Q"]
    mad: Float[np.ndarray, "*Q"]
    iqr: Float[np.ndarray, "*Q"]


@dataclass(frozen=True, eq=False)
class Summary:
    """What `summary` returns.

    Attributes:
      raw: measures of G, in the unit of the loss.
      log1p: measures of log(1 + G), which is closer to a Gaussian; NaN where a G is -1 or less.
      monte_carlo_error: standard error of `raw.avr` that comes from having drawn these splits, or these divisions into
        folds, and not all, [*Q]; NaN for rows that were not drawn: those of one division, of leave-one-out, of a series
        or of a design of several kinds. It says nothing about other data: for that see `jaxgen.stats.interval`.
      resamples: R.
      title: the learner and loss the values came from, if known, with the number of failed rows left out.
    """

    raw: Measures
    log1p: Measures
    monte_carlo_error: Float[np.ndarray, "*Q"]
    resamples: int
    title: str = ""

    def to_frame(self) -> "pd.DataFrame":
        """One row per data set and scale ("G", "log(1+G)"), one column per measure."""
        parts = {"G": self.raw, "log(1+G)": self.log1p}
        frames = {
            scale: pd.DataFrame({name: np.atleast_1d(value) for name, value in asdict(part).items()})
            for scale, part in parts.items()
        }
        return pd.concat(frames, names=["scale", "set"])

    def _repr_html_(self) -> str:
        """In notebooks a small table."""
        frame = self.to_frame().rename(columns=_WORDS).reset_index()
        error = (
            f"Monte Carlo standard error of the mean {float(self.monte_carlo_error):.3g}"
            if self.raw.avr.ndim == 0 and not np.isnan(self.monte_carlo_error)
            else ""
        )
        title = f"{self.title + ': ' if self.title else ''}{self.resamples} resamplings"
        return rendered.of_frame(title, frame.drop(columns="set") if self.raw.avr.ndim == 0 else frame, (error,))

    def __str__(self) -> str:
        frame = self.to_frame()
        if self.raw.avr.ndim == 0:
            frame = frame.droplevel("set")
            error = (
                "no Monte Carlo error, for the rows are those of one design"
                if np.isnan(self.monte_carlo_error)
                else f"Monte Carlo standard error of the mean {float(self.monte_carlo_error):.3g}"
            )
        else:
            frame = frame.groupby("scale").median()
            error = f"medians over {len(self.raw.avr)} data sets"
        frame = frame.rename(columns=_WORDS)
        return (
            f"{self.title + ': ' if self.title else ''}{self.resamples} resamplings; "
            f"{error}\n{frame.rename_axis(None).to_string(float_format=lambda v: f'{v:.5g}')}"
        )


def trimmed_average(g: Rows, *, cut: float = 0.05, normalised: bool = True) -> Float[np.ndarray, "*Q"]:
    """Average without the lowest and highest shares (Larsen & Hansen 1995, tavr).

    The integral printed in the paper is no average until it is divided by the share that it covers, 0.90.

    Args:
      g: Losses, or values [*Q, R].
      cut: share left out at each end, 0 <= cut < 0.5.
      normalised: False gives the integral as printed.
    Returns:
      [*Q], in the unit of g.
    Raises:
      ValueError: a failed row, a value that is not finite, fewer than 2 resamplings, or a cut out of range.
      TypeError: neither losses nor numbers.
    """
    require_number("cut", cut, least=0, below=0.5, advice="give 0.05 to leave out 5 % at each end")
    require_flag("normalised", normalised)
    average = scipy.stats.trim_mean(_values(g), cut, axis=-1)
    return np.asarray(average if normalised else average * (1 - 2 * cut), np.float64)


def summary(g: Rows) -> Summary:
    """Location and dispersion of G over the resamplings, raw and as log(1 + G) (Larsen & Hansen 1995).

    Args:
      g: Losses, or values [*Q, R].
    Returns:
      Summary; every number is [*Q].
    Raises:
      ValueError: a failed row, a value that is not finite, or fewer than 2 resamplings.
      TypeError: neither losses nor numbers.
    """
    values = _values(g)
    title = (
        f"{g.name}, {g.unit}" + (f", {g.dropped} failed rows left out" if g.dropped else "")
        if isinstance(g, Losses)
        else ""
    )
    raw = _measures(values)
    transformed = _measures(np.log1p(np.where(values > -1, values, np.nan)))
    error = _error_of_drawing(g) if isinstance(g, Losses) else np.asarray(raw.std / np.sqrt(values.shape[-1]))
    return Summary(raw, transformed, error, values.shape[-1], title)


def _error_of_drawing(losses: Losses) -> Float[np.ndarray, "*Q"]:
    """The Monte Carlo error of the average of G over splits or divisions that were drawn; NaN where none were."""
    different = without_repeats(losses)
    plan, means = different.plan, different.g
    if not not_folds(plan):
        number = divisions(plan)
        means = np.stack([means[..., number == each].mean(-1) for each in np.unique(number)], axis=-1)
    elif plan.labels or serial(plan):
        means = means[..., :1]
    if means.shape[-1] < 2:
        return np.full(means.shape[:-1], np.nan)
    return np.asarray(means.std(-1, ddof=1) / np.sqrt(means.shape[-1]))


def _measures(values: Float[np.ndarray, "*Q R"]) -> Measures:
    measures = (
        values.mean(-1),
        scipy.stats.trim_mean(values, 0.05, axis=-1),
        np.median(values, axis=-1),
        values.std(-1, ddof=1),
        scipy.stats.median_abs_deviation(values, axis=-1),
        scipy.stats.iqr(values, axis=-1),
    )
    return Measures(*(np.asarray(m, np.float64) for m in measures))


@dataclass(frozen=True, eq=False)
class BoxCox:
    """What `box_cox` returns.

    Attributes:
      lam: the power, [*Q].
      shift: what was added to G.
      measures: of the transformed values, [*Q] each.
      location: `measures.avr` transformed back, [*Q], in the unit of the loss: a location of G, its median where the
        transformed values are symmetric.
    """

    lam: Float[np.ndarray, "*Q"]
    shift: float
    measures: Measures
    location: Float[np.ndarray, "*Q"]

    def to_frame(self) -> "pd.DataFrame":
        """One row per data set."""
        columns = {"lam": self.lam, **asdict(self.measures), "location": self.location}
        return (
            pd.DataFrame({name: np.atleast_1d(value) for name, value in columns.items()})
            .rename_axis("set")
            .assign(shift=self.shift)
        )

    def __str__(self) -> str:
        frame = self.to_frame()
        medians = f"medians over {len(frame)} data sets" if self.lam.ndim else "one data set"
        table = (
            frame.drop(columns="shift").median().to_frame().T.to_string(index=False, float_format=lambda v: f"{v:.5g}")
        )
        return f"Box-Cox transform of {self.shift:g} + G; {medians}\n{table}"


def box_cox(g: Rows, *, lam: float | None = None, shift: float = 1.0) -> BoxCox:
    """Measures of ((shift + G)^lam - 1) / lam, log(shift + G) for lam = 0 (Box & Cox 1964, "An analysis of
    transformations").

    With the shift of 1 the family holds log(1 + G), which Larsen & Hansen 1995 chose from it (lam = 0), and G itself
    (lam = 1). Unless it is given, lam is the one of greatest likelihood of a Gaussian, for each data set. Both shift
    and lam depend on the unit of the loss.

    Args:
      g: Losses, or values [*Q, R].
      lam: the power; None to estimate it.
      shift: added to G; 0 for the transform without a shift.
    Returns:
      BoxCox, each number [*Q].
    Raises:
      ValueError: a failed row, a value that is not finite, fewer than 2 resamplings, a G of -shift or less, a power or
        shift that is no finite number, or a data set of equal values and no lam.
      TypeError: neither losses nor numbers.
    """
    require_number("shift", shift)
    if lam is not None:
        require_number("lam", lam, advice="give the power, or None to estimate it")
    values = _values(g)
    if values.min() + shift <= 0:
        raise ValueError(
            f"expected values above {0 - shift:g} for a Box-Cox transform with shift {shift:g}, got "
            f"{values.min():.6g}; give a larger shift"
        )
    if lam is None and (np.ptp(values + shift, axis=-1) == 0).any():
        raise ValueError(
            "expected values that differ to estimate the power of a Box-Cox transform, got "
            f"{values.shape[-1]} equal ones; give lam"
        )
    likeliest = (
        np.apply_along_axis(scipy.stats.boxcox_normmax, -1, values + shift, method="mle")
        if lam is None
        else np.full(values.shape[:-1], float(lam))
    )
    power = np.asarray(likeliest, np.float64)[..., None]
    near = shift == 1  # 1 + G would cost a small G its digits
    with np.errstate(over="ignore", invalid="ignore"):  # refused just below
        transformed = scipy.special.boxcox1p(values, power) if near else scipy.special.boxcox(values + shift, power)
        measures = _measures(transformed)
    if not np.isfinite(measures.avr).all():
        raise ValueError(
            f"expected a power for which all values stay finite, got {float(power.flat[0]):g}; give one nearer to 0"
        )
    average = measures.avr[..., None]
    location = scipy.special.inv_boxcox1p(average, power) if near else scipy.special.inv_boxcox(average, power) - shift
    return BoxCox(power[..., 0], shift, measures, location[..., 0])


@dataclass(frozen=True, eq=False)
class Ecdf:
    """An empirical distribution function with a band around it.

    Attributes:
      values: the R values of G in rising order, [*Q, R]; the function jumps by 1/R at each.
      half_width: the band is the function plus and minus this, cut to [0, 1]: Dvoretzky, Kiefer & Wolfowitz's
        inequality with Massart's constant. It covers the whole function of *all* splits of these data with probability
        of at least `level`. It does not cover the distribution over other data sets.
      level: confidence level of the band.
    """

    values: Float[np.ndarray, "*Q R"]
    half_width: float
    level: float

    @property
    def probability(self) -> Float[np.ndarray, " R"]:
        """The function at `values`: 1/R, 2/R, ..., 1."""
        return np.arange(1, self.values.shape[-1] + 1) / self.values.shape[-1]

    @property
    def band(self) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]:
        """Lower and upper limit of the function at `values`, each [R]."""
        return np.clip(self.probability - self.half_width, 0, 1), np.clip(self.probability + self.half_width, 0, 1)

    def quantile(self, p: float) -> Float[np.ndarray, "*Q"]:
        """The smallest value that a share p of the values does not exceed, [*Q].

        Raises:
          ValueError: p is not within 0 and 1.
        """
        _require_share(p)
        return self.values[
            ..., np.searchsorted(self.probability, p)
        ]  # np.quantile is one value off where R * (k / R) rounds up

    def quantile_interval(self, p: float) -> tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]]:
        """Interval of the quantile that follows from the band, each limit [*Q]; infinite where the band does not reach.

        Raises:
          ValueError: p is not within 0 and 1.
        """
        _require_share(p)
        low, high = p - self.half_width, p + self.half_width
        below, above = (np.full(self.values.shape[:-1], limit) for limit in (-np.inf, np.inf))
        return self.quantile(low) if low > 0 else below, self.quantile(high) if high < 1 else above


def ecdf(g: Rows, *, level: float = 0.95) -> Ecdf:
    """Empirical generalization error distribution (Larsen & Hansen 1995, eq. 8) with a confidence band.

    Args:
      g: Losses, or values [*Q, R].
      level: confidence level of the band, 0 < level < 1.
    Returns:
      Ecdf, values [*Q, R].
    Raises:
      ValueError: a failed row, a value that is not finite, fewer than 2 resamplings, or a level outside (0, 1).
      TypeError: neither losses nor numbers.
    """
    require_level(level)
    values = _values(g)
    return Ecdf(np.sort(values, axis=-1), float(np.sqrt(np.log(2 / (1 - level)) / (2 * values.shape[-1]))), level)


def _require_share(p: float) -> None:
    require_number("p", p, least=0, most=1, advice="give 0.95 for the 95 % quantile")


def _values(g: Rows) -> Float[np.ndarray, "*Q R"]:
    if isinstance(g, Losses):
        require_losses(g)
    values = as_numbers("losses", g.g if isinstance(g, Losses) else g)
    if values.ndim == 0 or values.shape[-1] < 2:
        raise ValueError(
            "expected at least 2 resamplings to describe a distribution, got "
            f"{values.shape[-1] if values.ndim else 'a single number'}; "
            "ask for more resamples, or read losses.g"
        )
    require_finite("values", values)
    return values
