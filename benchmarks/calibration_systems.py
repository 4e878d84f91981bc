"""The learners and the data of known truth that `calibration.py` tries intervals and tests on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

import jaxgen as jg
from jaxgen import datasets, learn, resample

INPUTS, FRESH, SIZES = 10, 4000, (64, 100, 300, 500)


@dataclass(frozen=True)
class Setting:
    """A learner, what it has to learn, and how many data sets of each size it is tried on.

    Attributes:
      truth: of inputs [..., D], half of them or all.
      noise: standard deviation of the targets about the truth.
      sets: data sets of each size for intervals, and of 300 and 500 cases where that is another number.
      tested: data sets of each size for tests; 0 where tests are not tried.
      networks: networks that one training makes.
      lost: the input, of each half, that the worse of two learners does not see.
      tails: degrees of freedom of the noise, of Student's law with the standard deviation above; infinite for normal.
      real: whether data sets are drawn, with replacement, from the 442 patients of the diabetes data instead.
      every: whether all intervals are tried, and not only those that are recommended for some plan.
    """

    name: str
    learner: Any
    truth: Callable[[np.ndarray], np.ndarray]
    noise: float
    sets: tuple[int, int]
    tested: int
    networks: int
    lost: int
    tails: float = np.inf
    real: bool = False
    every: bool = False

    def drawn(self, n: int) -> int:
        """Data sets of n cases for intervals."""
        return self.sets[n >= 300]


def linear(x):
    """A linear function of all inputs."""
    return x @ np.linspace(0.2, 1, x.shape[-1])


def curved(x):
    """What 20 tanh units can learn from a hundred cases: a curve along one direction and a straight line along
    another; other inputs do not matter.
    """
    return 2 * np.tanh(x[..., 0] + 0.5 * x[..., 1]) + 0.5 * x[..., 2]


NETWORK = learn.Descent(learn.MLP((20,), init="glorot"), steps=60, optimiser=learn.Optax("adam", learning_rate=0.03))
STOPPED = learn.Normalised(learn.EarlyStopped(NETWORK, folds=4), how="standard")
SETTINGS = (
    Setting("least squares", learn.LeastSquares(), linear, 1.0, (4000, 4000), 4000, 0, 4, every=True),
    Setting("ridge", learn.LeastSquares(ridge=30.0), linear, 1.0, (4000, 4000), 4000, 0, 4, every=True),
    Setting("heavy tails", learn.LeastSquares(), linear, 1.0, (4000, 4000), 0, 0, 4, tails=5.0),
    Setting("diabetes", learn.LeastSquares(), linear, 0.0, (4000, 4000), 0, 0, 4, real=True),
    Setting("network", learn.Normalised(NETWORK, how="standard"), curved, 0.5, (1000, 1000), 1000, 1, 0),
    Setting("stopped early", STOPPED, curved, 0.5, (300, 300), 0, 4, 0),
)


def with_risks(setting, n, sets, seed):
    """Data sets of n cases, [Q, n, D], and a function that tells the mean risk, [Q], of the models that the rows of a
    plan of these n cases train: by fresh cases without noise, or by all of the real population.
    """
    random = np.random.default_rng(seed)
    x, y, fresh, answer = _from_patients(random, n, sets) if setting.real else _simulated(setting, random, n, sets)
    both = np.concatenate([x, np.broadcast_to(fresh, (sets, *fresh.shape))], axis=1)
    target = np.concatenate([y, np.broadcast_to(answer, (sets, len(fresh)))], axis=1)[..., None]
    together = jg.Data(both, target, names(INPUTS))

    def risk(plan):
        train = np.pad(plan.train, ((0, 0), (0, len(fresh))))
        test = np.broadcast_to((np.arange(n + len(fresh)) >= n).astype(np.uint8), train.shape)
        key, outside = jax.random.key(seed), resample.from_weights(train, test)
        return jg.assess(key, setting.learner, together, outside, keep="rows").g.mean(-1) + setting.noise**2

    return jg.Data(x, y[..., None], names(INPUTS)), risk


def _simulated(setting, random, n, sets):
    """Inputs and targets of some data sets, and of fresh cases."""
    x, fresh = random.normal(size=(sets, n, INPUTS)), random.normal(size=(FRESH, INPUTS))
    noise = random.normal(size=(sets, n))
    if np.isfinite(setting.tails):
        noise /= np.sqrt(random.chisquare(setting.tails, size=(sets, n)) / (setting.tails - 2))
    return x, setting.truth(x) + setting.noise * noise, fresh, setting.truth(fresh)


def _from_patients(random, n, sets):
    """The same of a population of 442 patients, all of whom are the fresh cases."""
    patients = datasets.diabetes()
    drawn = random.integers(0, patients.n, size=(sets, n))
    return patients.x[drawn], patients.y[drawn, 0], patients.x, patients.y[:, 0]


def exchangeable(setting, n, sets, seed, parts=2):
    """Data sets whose inputs come in exchangeable parts, so that learners of one part each are equally good on average.

    Returns the data of each part and, last, those of the second part with one input replaced by noise.
    """
    random = np.random.default_rng(seed)
    x = random.normal(size=(sets, n, parts, INPUTS // 2))
    y = (setting.truth(x).sum(-1) + setting.noise * random.normal(size=(sets, n)))[..., None]
    worse = x[:, :, 1].copy()
    worse[..., setting.lost] = random.normal(size=(sets, n))
    return [jg.Data(one, y, names(INPUTS // 2)) for one in (*np.moveaxis(x, 2, 0), worse)]


def assessed(key, learner, data, plans, loss=jg.loss.squared):
    """Losses of each of several plans [R, N], all trained in one call."""
    together = resample.from_weights(
        np.concatenate([plan.train for plan in plans]), np.concatenate([plan.test for plan in plans])
    )
    losses, start = jg.assess(key, learner, data, together, loss), 0
    for plan in plans:
        rows = np.s_[:, start : start + plan.resamples]
        means = {name: getattr(losses, name)[rows] for name in ("test_mean", "train_mean", "failure", "values")}
        yield replace(losses, plan=plan, **means, info={name: value[rows] for name, value in losses.info.items()})
        start += plan.resamples


def names(inputs):
    """Names of that many inputs."""
    return tuple(f"x{i}" for i in range(inputs))


def blocks(setting, n, sets, size=100):
    """(Seed, number of data sets) of the parts that a table is computed in, to bound memory; every learner and size has
    seeds of its own, so that no luck is shared.
    """
    number = SETTINGS.index(setting)
    starts = range(0, sets, size)
    seeds = [int(np.random.SeedSequence([n, number, start]).generate_state(1)[0]) for start in starts]
    return [(seed, min(size, sets - start)) for seed, start in zip(seeds, starts, strict=True)]
