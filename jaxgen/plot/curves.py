"""Curves over numbers: the error against the training cases, and the standard error against the resamples."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from jaxgen.plot.checks import legend_below, listed, names_of, one_panel, require_axes
from jaxgen.plot.distributions import colours
from jaxgen.stats import interval
from jaxgen.stats.checks import require_losses
from jaxgen.stats.estimate import Curve
from jaxgen.types import Losses
from jaxgen.types.numbers import require_number

POINTS = 200
"""Sizes at which a curve is drawn."""


def learning_curve(
    *curves: Any, labels: Sequence[str] | None = None, to: float | None = None, ax: Axes | None = None
) -> Axes:
    """Measured errors at their training sizes with the law fitted to them, up to all cases, and the limit that it
    approaches.

    The law is solid over the sizes measured and dashed beyond them, with a paler band. An open point is an error whose
    standard error is hidden by the Monte Carlo noise of its resamples. A limit is drawn unless it is out of proportion
    to the rest, or unknown.

    Args:
      curves: of `jaxgen.stats.estimate.inverse_curve` or `power_curve`, each of one data set, errors [S];
        one after the other, in one list, or in a mapping of labels.
      labels: one a curve; None takes the learners' own names.
      to: the largest training size drawn; None goes to all cases of the data.
      ax: axes to draw on; None makes a figure.
    Returns:
      The axes, with a logarithmic scale of sizes.
    Raises:
      TypeError: something else than curves, or than axes.
      ValueError: nothing to draw, several data sets in one, different units, another number of labels, or a largest
        size within the sizes measured.
    """
    what = "the curve that estimate.inverse_curve returns"
    given, labels = listed(curves, labels, Curve, what, "fit a curve to losses first")
    several, units = [np.ndim(curve.error) > 1 for curve in given], [curve.unit for curve in given]
    labels = _checked(given, several, units, labels, "curves")
    require_axes(ax)
    measured, cases = np.concatenate([curve.sizes for curve in given]), [float(curve.cases) for curve in given]
    if to is not None:
        advice = f"give at least the {measured.max():g} training cases measured, or None for all cases"
        require_number("the largest size drawn", to, least=float(measured.max()), advice=advice)
    end = max(*cases, measured.max()) if to is None else float(to)
    axes = one_panel(ax, _size(len(given)))
    for curve, label, colour in zip(given, labels, colours(len(given)), strict=True):
        law = curve.method.removeprefix("learning curve ")
        _law(axes, curve, end, f"{textwrap.fill(f'{label}, {law}', 60)}\n{_summary(curve)}", colour)
    low, high = axes.get_ylim()
    for curve, colour in zip(given, colours(len(given)), strict=True):
        if _known(curve) and low - (high - low) < curve.parameters[0] < high:
            axes.axhline(curve.parameters[0], color=colour, linewidth=1.2, linestyle=":")
    for n in sorted(set(cases)):
        axes.axvline(n, color="0.6", linewidth=0.8, zorder=0)
        axes.annotate(
            f"all {n:g} cases",
            (n, 1),
            (0, 2),
            axes.get_xaxis_transform(),
            "offset points",
            ha="center",
            va="bottom",
            fontsize=9,
            color="0.3",
        )
    _sizes(axes, (measured.min(), end), [*cases, end, *measured])
    axes.set(xlabel="training cases", ylabel=f"mean {given[0].unit} of test cases")
    hidden = any(np.isnan(curve.standard_error).any() for curve in given)
    title = (
        "points and bands: \N{PLUS-MINUS SIGN} standard error"
        + " (open, or no band: not known)" * hidden
        + "\ndashed: extrapolated; dotted: limit"
    )
    legend_below((axes,), ax is None, title=title, title_fontsize=9, fontsize=9)
    return axes


def standard_error_floor(*losses: Any, labels: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """What more resamples gain: estimated standard errors of the mean of G by r rows, against r.

    As if rows were independent it is S / sqrt(r), and falls without end. Rows share cases: with Nadeau & Bengio's
    correction (2003, "Inference for the generalization error") it is sqrt(1/r + n2/n1) S, and cannot fall below
    sqrt(n2/n1) S, its floor. More splits are not more data. Pale lines are what the first r rows say, with an S of
    their own; the others have the S of all R rows, and the pale ones end in them.

    Args:
      losses: of random splits or (repeated) k-fold, of one data set each, [R]; one after the other, in one list, or in
        a mapping of labels.
      labels: one for each; None takes the learners' own names.
      ax: axes to draw on; None makes a figure.
    Returns:
      The axes, with a logarithmic scale of resamples.
    Raises:
      TypeError: something else than losses, or than axes.
      ValueError: nothing to draw, several data sets in one, different losses, another number of labels, fewer than 3
        rows, failed rows, or a plan that the correction is not made for (see `jaxgen.stats.interval.corrected_t`).
    """
    given, labels = listed(losses, labels, Losses, "losses, as assess gives them", "give what assess returned")
    require_losses(*given)
    several, units = [each.sets is not None for each in given], [each.loss for each in given]
    labels = _checked(given, several, units, labels, "losses")
    require_axes(ax)
    fewest, most = (choose(each.resamples for each in given) for choose in (min, max))
    if fewest < 3:
        raise ValueError(
            f"expected at least 3 resamplings to see what more of them gain, got {fewest}; ask for more resamples"
        )
    results = [interval.corrected_t(each) for each in given]
    axes = one_panel(ax, _size(len(given)))
    for each, last, label, colour in zip(given, results, labels, colours(len(given)), strict=True):
        rows, naive, ratio = _running(each)
        floor = float(last.parts["floor"])
        numbers = f"corrected {last.standard_error:.4g}, floor {floor:.4g}, naive {naive[-1]:.4g}"
        entry = f"{textwrap.fill(label, 60)}\n{numbers}"
        deviation = naive[-1] * np.sqrt(rows[-1])
        axes.plot(rows, deviation * np.sqrt(1 / rows + ratio[-1]), color=colour, linewidth=1.8, label=entry)
        axes.plot(rows, deviation / np.sqrt(rows), color=colour, linewidth=1.2, linestyle="--")
        axes.plot(rows, naive * np.sqrt(1 + rows * ratio), color=colour, linewidth=0.9, alpha=0.4)
        axes.plot(rows, naive, color=colour, linewidth=0.9, alpha=0.4, linestyle="--")
        axes.axhline(floor, color=colour, linewidth=1.2, linestyle=":")
    round_numbers = [d * 10.0**k for k in range(9) for d in (1, 2, 5) if 2 <= d * 10**k < most]
    _sizes(axes, (2.0, float(most)), [float(most), *round_numbers])
    axes.set(xlabel="number of resamples, r", ylabel=f"standard error of the mean {given[0].unit}", ylim=(0, None))
    title = (
        "solid: corrected for shared cases; dotted: its floor,\nthe standard error of infinitely many splits;\n"
        "dashed: naive, S / sqrt(r); pale: by the first r rows alone"
    )
    legend_below((axes,), ax is None, title=title, title_fontsize=9, fontsize=9)
    return axes


def _checked(
    given: Sequence[Any], several: Sequence[bool], units: Sequence[str], labels: Sequence[str] | None, name: str
) -> list[str]:
    """The labels of what can be drawn together."""
    if not given or any(several):
        raise ValueError(
            f"expected one or more {name} of one data set each, got {len(given)}, {sum(several)} of them "
            "of several sets; choose a set with losses[q]"
        )
    if len(set(units)) > 1:
        raise ValueError(
            f"expected {name} in one unit, got {' and '.join(dict.fromkeys(units))}; draw a figure of each"
        )
    return names_of(given, labels, name)


def _known(curve: Curve) -> bool:
    """Whether the errors determine the law."""
    return not np.isnan(curve.covariance).any()


def _summary(curve: Curve) -> str:
    """The law in words, at its limit and at all cases."""
    a, _, c = map(float, curve.parameters)
    errors, here = np.sqrt(np.maximum(np.diagonal(curve.covariance), 0)), curve.at()
    exponent = f", exponent {_pair(c, float(errors[2]))}" if c != 1 else ""
    limit = f"limit {_pair(a, float(errors[0]))}{exponent}" if _known(curve) else "limit and exponent not determined"
    return f"{limit}; {_pair(float(here.estimate), float(here.standard_error))} at {curve.cases} cases"


def _pair(value: float, error: float) -> str:
    """A number and its standard error, to two digits of it."""
    decimals = max(0, 1 - int(np.floor(np.log10(error)))) if error > 0 else 0
    return (f"{value:.{decimals}f} \N{PLUS-MINUS SIGN} {error:.{decimals}f}" if error > 0 else f"{value:.4g}").replace(
        "-", "\N{MINUS SIGN}"
    )


def _law(axes: Axes, curve: Curve, end: float, label: str, colour: str) -> None:
    """The law, solid and dashed, with its band; the errors that it was fitted to."""
    first, last = curve.sizes.min(), curve.sizes.max()
    for start, stop, style, alpha in ((first, last, "-", 0.25), (last, end, "--", 0.12)):
        if start < stop:
            sizes = np.geomspace(start, stop, POINTS)
            results = [curve.at(size) for size in sizes.tolist()]
            heights, errors = np.array([[result.estimate, result.standard_error] for result in results]).T
            axes.plot(sizes, heights, color=colour, linewidth=1.5, linestyle=style)
            axes.fill_between(sizes, heights - errors, heights + errors, color=colour, alpha=alpha, linewidth=0)
    hidden = np.isnan(curve.standard_error)
    axes.errorbar(
        curve.sizes[~hidden],
        curve.error[~hidden],
        curve.standard_error[~hidden],
        fmt="o",
        color=colour,
        markersize=5,
        capsize=2.5,
        linewidth=1.2,
        label=label,
    )
    axes.plot(curve.sizes[hidden], curve.error[hidden], "o", color=colour, markersize=5, markerfacecolor="white")


def _size(entries: int) -> tuple[float, float]:
    """Inches of a figure with so many entries below it."""
    return 5.6, 4.2 + 0.38 * entries


def _sizes(axes: Axes, ends: tuple[float, float], sizes: Sequence[float]) -> None:
    """A logarithmic axis with ticks at these sizes, without those that would stand too close to one named earlier."""
    kept, least = [], 0.07 * np.log(ends[1] / ends[0])
    for size in sizes:
        if all(abs(np.log(size / other)) > least for other in kept):
            kept.append(float(size))
    margin = 1.03 * (ends[1] / ends[0]) ** 0.01
    axes.set(xscale="log", xlim=(ends[0] / margin, ends[1] * margin))
    axes.xaxis.set(
        major_locator=FixedLocator(sorted(kept)), minor_locator=NullLocator(), major_formatter=ScalarFormatter()
    )


def _running(losses: Losses) -> tuple[Int[np.ndarray, " r"], Float[np.ndarray, " r"], Float[np.ndarray, " r"]]:
    """Numbers of rows on a logarithmic grid; S / sqrt(r) and the mean of n2/n1 of the first so many rows."""
    rows = np.unique(np.geomspace(2, losses.resamples, POINTS).round().astype(int))
    naive = np.array([losses.g[:r].std(ddof=1) for r in rows]) / np.sqrt(rows)
    return rows, naive, np.cumsum(losses.plan.test_sizes / losses.plan.train_sizes)[rows - 1] / rows
