"""The learners and the data of known truth that `calibration.py` tries intervals and tests on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

import jaxgen as jg
from jaxgen import learn, resample

INPUTS, FRESH, SIZES = 10, 4000, (64, 100, 300, 500)


@dataclass(frozen=True)
class Setting:
    """A learner, what it has to learn, and how many data sets of each size it is tried on.

    Attributes:
      truth: of inputs [..., D], half of them or all.
      noise: standard deviation of the targets about the truth.
      networks: networks that one training makes.
      lost: the input, of each half, that the worse of two learners does not see.
    """

    name: str
    learner: Any
    truth: Callable[[np.ndarray], np.ndarray]
    noise: float
    sets: int
    networks: int
    lost: int


def linear(x):
    """A linear function of all inputs."""
    return x @ np.linspace(0.2, 1, x.shape[-1])


def curved(x):
    """What 20 tanh units can learn from a hundred cases: a curve along one direction and a straight line along
    another; other inputs do not matter.
    """
    return 2 * np.tanh(x[..., 0] + 0.5 * x[..., 1]) + 0.5 * x[..., 2]


NETWORK = learn.Descent(learn.MLP((20,), init="glorot"), steps=60, optimiser=learn.Optax("adam", learning_rate=0.03))
SETTINGS = (
    Setting("least squares", learn.LeastSquares(), linear, 1.0, 1000, 0, 4),
    Setting("ridge", learn.LeastSquares(ridge=30.0), linear, 1.0, 1000, 0, 4),
    Setting("network", learn.Normalised(NETWORK, how="standard"), curved, 0.5, 300, 1, 0),
    Setting(
        "stopped early", learn.Normalised(learn.EarlyStopped(NETWORK, folds=4), how="standard"), curved, 0.5, 300, 4, 0
    ),
)


def with_risks(setting, n, sets, seed):
    """Data sets of n cases, [Q, n, D], and the risk R of the learner trained on each, [Q], by noise-free fresh
    cases.
    """
    random = np.random.default_rng(seed)
    x, fresh = random.normal(size=(sets, n, INPUTS)), random.normal(size=(FRESH, INPUTS))
    y = setting.truth(x) + setting.noise * random.normal(size=(sets, n))
    both = np.concatenate([x, np.broadcast_to(fresh, (sets, *fresh.shape))], axis=1)
    target = np.concatenate([y, np.broadcast_to(setting.truth(fresh), (sets, FRESH))], axis=1)[..., None]
    first = (np.arange(n + FRESH) < n)[None].astype(np.uint8)
    risk = jg.assess(
        jax.random.key(seed),
        setting.learner,
        jg.Data(both, target, names(INPUTS)),
        resample.from_weights(first, 1 - first),
        keep="rows",
    ).g[:, 0]
    return jg.Data(x, y[..., None], names(INPUTS)), risk + setting.noise**2


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
    """(Seed, number of data sets) of the parts that a table is computed in, to bound memory."""
    return [(1000 * n + start, min(size, sets - start)) for start in range(0, sets, size)]
