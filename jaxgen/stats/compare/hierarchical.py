"""The hierarchical Bayesian test of two learners on several data sets, by Gibbs sampling."""

from typing import Any, NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from jaxgen.stats.checks import require_draws, require_level
from jaxgen.stats.compare.comparison import Comparison, compared, difference, of_two
from jaxgen.stats.design import without_repeats
from jaxgen.stats.methods import refuse_unfit, require_rows
from jaxgen.stats.spread import Spread
from jaxgen.types import Losses
from jaxgen.types.numbers import require_number

CHAINS, WARM_UP = 8, 500
"""Chains that run side by side, and sweeps of each that are not kept."""
ALPHA, BETA = (0.5, 5.0), (0.05, 0.15)
"""Ranges of shape and rate of the gamma prior of the degrees of freedom, uniform in each, as in the paper."""
_GRID = 160
"""Points at which the densities of the scale and of the degrees of freedom are worked out."""


@of_two
def hierarchical_t(
    first: Losses, second: Losses, *, rope: float = 0.0, level: float = 0.95, resamples: int = 20_000, seed: int = 0
) -> Comparison:
    """The hierarchical Bayesian test over data sets (Corani, Benavoli, Demšar, Mangili & Zaffalon 2017, "Statistical
    comparison of classifiers through Bayesian hierarchical modelling"): what difference is to be expected on the next
    data set?

    The differences x_ij of data set i have the mean delta_i, the variance sigma_i^2 and the correlation rho = n2 / (n1
    + n2) of the corrected t; delta_i ~ t(delta_0, sigma_0, nu). So data sets with few or noisy rows borrow from the
    others. Priors as in the paper, but without its bounds a thousand times beyond the data: uniform for delta_0,
    sigma_0 and each sigma_i; nu ~ gamma(alpha, beta) with alpha uniform in 0.5 to 5 and beta in 0.05 to 0.15. The
    paper samples with Stan; here each sweep draws sigma_0 from its density on a grid, with delta_0 and all delta_i
    integrated out, which mixes well also where sigma_0 is near 0.

    Args:
      first, second: losses of two learners on Q independent data sets, [Q, R], Q at least 3, on random splits or
        (repeated) folds.
      rope: half-width of the region of practical equivalence, 0 or more, in the unit of the loss.
      level: probability of the credible interval of delta_0, which leaves out equal tails, 0 < level < 1.
      resamples: draws from the posterior, of eight chains together, at least 800.
      seed: of NumPy's generator.
    Returns:
      Comparison of single numbers, [], without p-value: estimate, deviation and limits are those of delta_0. `parts`
      are "P(left)", "P(rope)" and "P(right)", the probabilities that on the next data set the second learner being
      practically better, neither, or the first one being better is the most probable; "next left", "next rope" and
      "next right", the probabilities of these themselves; "between data sets", the mean of sigma_0; and "R-hat", of
      delta_0 and sigma_0 over the chains, which should be below 1.01.
    Raises:
      ValueError: fewer than 3 data sets, different plans or losses, failed rows, a plan that the corrected t is not
        made for, data sets whose differences are all equal, a negative rope, or a number out of range.
      TypeError: no losses.
    """
    change = difference(first, second)
    require_level(level)
    require_draws(resamples, seed, 100 * CHAINS)
    require_number("rope", rope, least=0, finite=False, advice="give a difference that does not matter, in its unit")
    refuse_unfit(change.plan)
    change = without_repeats(change)  # rows of equal weights show nothing of other data
    require_rows(change)
    if change.sets is None or change.sets < 3:
        raise ValueError(
            f"expected losses of at least 3 data sets, [Q, R], got those of {change.sets or 1}; give data with an axis "
            "Q, or use bayesian_t for one data set"
        )
    flat = int((np.ptp(change.g, axis=-1) == 0).sum())
    if flat:
        raise ValueError(
            f"expected differences that vary in every data set, got {flat} where all rows have the same; leave these "
            "data sets out, or use wilcoxon"
        )
    ratio = (change.plan.test_sizes / (change.plan.train_sizes + change.plan.test_sizes)).mean(-1)
    drawn = sampled(change.g, np.broadcast_to(ratio, change.g.shape[:1]), resamples // CHAINS, seed)
    worst = max(_r_hat(drawn.delta), _r_hat(np.log(drawn.sigma)))
    parts = _next_data_set(drawn, float(rope)) | {"between data sets": drawn.sigma.mean(), "R-hat": worst}
    spread = Spread(np.asarray(drawn.delta.mean()), np.asarray(drawn.delta.std()), np.nan)
    lower, upper = (np.asarray(np.quantile(drawn.delta, share)) for share in ((1 - level) / 2, (1 + level) / 2))
    return compared(
        ("hierarchical Bayesian t-test", "Corani et al. 2017", "the mean difference over data sets like these"),
        first,
        second,
        spread,
        (np.asarray(np.nan), np.asarray(np.nan)),
        (lower, upper),
        level=level,
        note=f"the chains have not converged (R-hat {worst:.3f}); ask for more resamples" if worst > 1.01 else "",
        parts=parts,
    )


class Draws(NamedTuple):
    """Draws from the posterior, [chains, draws] each, of centre, scale and degrees of freedom of the law of delta_i."""

    delta: Float[np.ndarray, "C S"]
    sigma: Float[np.ndarray, "C S"]
    nu: Float[np.ndarray, "C S"]


def sampled(x: Float[np.ndarray, "Q R"], rho: Float[np.ndarray, " Q"], draws: int, seed: int) -> Draws:
    """The Gibbs sampler for differences [Q, R] with correlations [Q], all chains at once, so many draws of each.

    The mean m_i of R correlated numbers has the variance c_i sigma_i^2, c_i = (1 + (R - 1) rho) / R, and their sum of
    squares about it is (1 - rho) sigma_i^2 chi^2 with R - 1 degrees of freedom.
    """
    random = np.random.default_rng(seed)
    (sets, rows), unit = x.shape, np.mean(x.std(-1, ddof=1))
    m, squares = x.mean(-1) / unit, np.square(x - x.mean(-1, keepdims=True)).sum(-1) / unit**2 / (1 - rho)
    c = (1 + (rows - 1) * rho) / rows
    scales = np.geomspace(1e-3, 1e2, _GRID) * max(float(np.std(m)), float(np.sqrt(np.mean(c))))
    freedoms = np.geomspace(0.2, 2000, _GRID)
    prior = _log_prior(freedoms) + np.log(freedoms)  # of log nu, whose grid is even
    shape = (CHAINS, sets)
    deltas = m + np.sqrt(c) * random.standard_normal(shape)
    weights, kept = np.ones(shape), []
    for sweep in range(WARM_UP + draws):
        # sigma_i^2 given delta_i: inverse gamma.
        total = squares + np.square(m - deltas) / c
        variance = c * total / 2 / random.gamma((rows - 1) / 2, size=shape)
        # sigma_0, then delta_0, then all delta_i, given sigma_i^2 and the weights of the t law.
        sigma = _scale(random, scales, m, variance, weights)
        precision = 1 / (variance + np.square(sigma)[:, None] / weights)
        delta = _normal(random, (precision * m).sum(-1), precision.sum(-1))
        own, shared = 1 / variance, weights / np.square(sigma)[:, None]
        deltas = _normal(random, own * m + shared * delta[:, None], own + shared)
        # nu given the delta_i, and the weights given both.
        z = np.square((deltas - delta[:, None]) / sigma[:, None])
        nu = _from_grid(random, freedoms, prior + _log_t(z, freedoms))
        weights = random.gamma((nu[:, None] + 1) / 2, size=shape) / ((nu[:, None] + z) / 2)
        if sweep >= WARM_UP:
            kept.append((delta * unit, sigma * unit, nu))
    return Draws(*(np.stack(values, axis=-1) for values in zip(*kept, strict=True)))


def _next_data_set(drawn: Draws, rope: float) -> dict[str, float]:
    """How often each region is the most probable one for the next data set, and how probable it is itself."""
    law = scipy.stats.t(drawn.nu, drawn.delta, drawn.sigma)
    left, right = law.cdf(-rope), law.sf(rope)
    regions = {"left": left, "rope": np.clip(1 - left - right, 0, 1), "right": right}
    most = np.stack(list(regions.values())).argmax(0)
    winners = {f"P({name})": float(np.mean(most == place)) for place, name in enumerate(regions)}
    return winners | {f"next {name}": float(share.mean()) for name, share in regions.items()}


def _scale(random, scales, m, variance, weights) -> Float[np.ndarray, " C"]:
    """Draws of sigma_0 with a uniform prior, delta_0 and all delta_i integrated out."""
    precision = 1 / (variance[:, None] + np.square(scales)[:, None] / weights[:, None])  # [C, G, Q]
    total = precision.sum(-1)
    centre = (precision * m).sum(-1) / total
    log = np.log(precision).sum(-1) - np.log(total) - (precision * np.square(m - centre[..., None])).sum(-1)
    return _from_grid(random, scales, log / 2 + np.log(scales))


def _from_grid(random, grid, log_density) -> Float[np.ndarray, " C"]:
    """One draw a chain from densities [C, G] of the logarithm, known at the points of an even grid of it; uniform
    around the point that was drawn.
    """
    share = np.exp(log_density - log_density.max(-1, keepdims=True)).cumsum(-1)
    place = (share < random.random(len(share))[:, None] * share[:, -1:]).sum(-1)
    step = np.log(grid[1] / grid[0])
    return grid[place] * np.exp(step * (random.random(len(share)) - 0.5))


def _normal(random, weighted, precision):
    """Normal draws of these precisions, with the means weighted / precision."""
    return weighted / precision + random.standard_normal(np.shape(precision)) / np.sqrt(precision)


def _log_t(z: Float[np.ndarray, "C Q"], freedoms: Float[np.ndarray, " G"]) -> Float[np.ndarray, "C G"]:
    """Log density of all delta_i by the t law of each number of degrees of freedom, from their squared distances."""
    constant = scipy.special.gammaln((freedoms + 1) / 2) - scipy.special.gammaln(freedoms / 2) - np.log(freedoms) / 2
    tails = np.log1p(z[:, None] / freedoms[:, None]).sum(-1) * (freedoms + 1) / 2
    return z.shape[-1] * constant - tails


def _log_prior(freedoms: Float[np.ndarray, " G"]) -> Float[np.ndarray, " G"]:
    """Log density of the gamma prior of nu, averaged over the ranges of its shape and rate."""
    alpha, beta = (np.linspace(*ends, 41) for ends in (ALPHA, BETA))
    density: Any = scipy.stats.gamma.pdf(freedoms[:, None, None], alpha[:, None], scale=1 / beta)
    return np.log(np.trapezoid(np.trapezoid(density, beta), alpha) + 1e-300)


def _r_hat(draws: Float[np.ndarray, "C S"]) -> float:
    """Split R-hat (Gelman et al. 2013, "Bayesian data analysis", section 11.4)."""
    halves = np.concatenate(np.array_split(draws[:, : draws.shape[1] // 2 * 2], 2, axis=1))
    n = halves.shape[1]
    within, between = halves.var(-1, ddof=1).mean(), n * halves.mean(-1).var(ddof=1)
    return float(np.sqrt(((n - 1) / n * within + between / n) / within))
