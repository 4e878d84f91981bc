"""Land cover as satellites see it: many classes of pixels that overlap, few of them common."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.special
from jaxtyping import Float, Int

from jaxgen.types import Data, Key, keys
from jaxgen.types.memory import require_memory
from jaxgen.types.numbers import require, shown

_KINDS, _STAGES, _FREEDOM = 6, 2, 4
"""Kinds of cover that classes belong to, such as grass and bare soil; stages of growth of a class; and how many more
degrees of freedom than inputs the Wishart matrices have that the spread within a stage is drawn from.
"""
_OF_KINDS, _OF_CLASSES, _OF_STAGES, _WITHIN = 1.0, 0.6, 0.5, 1.0
"""Standard deviations of the means of the kinds, of classes around their kind and of stages around their class, and
of pixels around their stage, each input, in units of `_COUNTS`.
"""
_MIDDLE, _COUNTS = 100.0, 15.0
"""Digital counts of a pixel in the middle, and of one unit."""
_RAREST = 0.1
"""Share of the rarest class as a part of that of the most common one."""
_AT_A_TIME = 1 << 16
"""Cases whose probabilities are computed together."""


class Scene(NamedTuple):
    """What is on the ground: K classes, each a mixture of S Gaussian stages.

    Attributes:
      shares: of the classes, [K], from the most common one to the rarest.
      stage_shares: of the stages of each class, [K, S]; each row adds up to 1.
      means: of the inputs at each stage, [K, S, D], in digital counts.
      roots: lower triangular L of the covariance L L' of the inputs at each stage, [K, S, D, D].
    """

    shares: Float[np.ndarray, " K"]
    stage_shares: Float[np.ndarray, "K S"]
    means: Float[np.ndarray, "K S D"]
    roots: Float[np.ndarray, "K S D D"]


@dataclass(frozen=True, eq=False)
class LandCover:
    """Data sets of pixels from one scene, and what is known of the scene.

    Attributes:
      data: x [*Q, N, D], digital counts, and y [*Q, N, K], a 1 for the class of each case; a classification.
      reservoir: M more cases of the same scene, x [M, D] and y [M, K], the same for all data sets: the mean loss of a
        model on them is its true risk but for a standard error of sd / sqrt(M).
      scene: the classes.
      error: the least error rate of all rules, estimated from the inputs of the reservoir.
      error_error: its standard error.
    """

    data: Data
    reservoir: Data
    scene: Scene
    error: float
    error_error: float

    def probabilities(self, x: Float[np.ndarray, "*N D"]) -> Float[np.ndarray, "*N K"]:
        """The probability of each class given the inputs: no rule has a smaller expected squared loss, nor a smaller
        cross-entropy, and none errs less often than the one that takes the most probable class.

        Args:
          x: digital counts, [*N, D].
        Returns:
          Probabilities, [*N, K].
        Raises:
          ValueError: another number of inputs, no case, or no finite real numbers.
        """
        return _probabilities(self.scene, _as_inputs(x, self.scene.means.shape[-1]))


def land_cover(
    key: Key,
    sets: int | None,
    n: int,
    classes: int = 20,
    inputs: int = 6,
    scene: Key | None = None,
    reservoir: int = 20_000,
) -> LandCover:
    """Pixels of satellite images, whose class of land cover is to be told, in the spirit of Varfis & Corleto 1994.

    Their data, 3800 pixels with the counts of 3 channels at 2 dates and 20 classes, are not published; this is a system
    of that shape. Classes belong to 6 kinds of cover, so that those of one kind overlap. Each has 2 stages of growth,
    which makes it no Gaussian, and within a stage the inputs are Gaussian with correlations of its own. Shares of
    classes fall geometrically, from the most common to one of a tenth of it: with 20 classes from 12 % to 1 %. With 20
    classes and 6 inputs linear discriminants and nearest neighbours trained on 1000 cases, and networks of 6 hidden
    units, err in .3 to .5 of all cases, and the best rule in .15 to .3.

    Use it for classifications of many unlike classes, where no model is right and the best error is known.

    Args:
      key: consumed.
      sets: independent data sets, Q; None for one without the axis Q.
      n: cases, N.
      classes: K, at least 2. Small data sets lack some of them; their columns in y are there all the same.
      inputs: D.
      scene: key of the classes and of the reservoir, for several calls on one scene; drawn from `key` if None.
      reservoir: cases of the reservoir, M, at least 2.
    Returns:
      LandCover with x [*Q, N, D] and y [*Q, N, K].
    Raises:
      TypeError: a key is no typed key.
      ValueError: a count that is no whole number, or is too small.
      MemoryError: so many cases would not fit into memory.
    """
    shape = (require("n", n, 1),) if sets is None else (require("sets", sets, 1), require("n", n, 1))
    classes, inputs = require("classes", classes, 2), require("inputs", inputs, 1)
    reservoir = require("the reservoir", reservoir, 2)
    ground = keys.stream(keys.require(key), "scene") if scene is None else keys.require(scene)
    require_memory(
        f"{math.prod(shape) + reservoir:,} cases",
        8 * ((math.prod(shape) + reservoir) * (4 * inputs + 3 * classes) + 3 * classes * _STAGES * inputs * inputs),
        "ask for fewer cases or data sets",
    )
    made = _scene(keys.generator(keys.stream(ground, "classes")), classes, inputs)
    fresh = _drawn(made, keys.generator(keys.stream(ground, "reservoir")), (reservoir,))
    missed = 1 - _probabilities(made, fresh.x).max(-1)
    return LandCover(
        _drawn(made, keys.generator(keys.stream(key, "cases")), shape),
        fresh,
        made,
        float(missed.mean()),
        float(missed.std(ddof=1) / np.sqrt(reservoir)),
    )


def _scene(random: np.random.Generator, classes: int, inputs: int) -> Scene:
    """Classes drawn at random."""
    kinds = _OF_KINDS * random.standard_normal((_KINDS, inputs))
    centres = kinds[random.permutation(classes) % _KINDS] + _OF_CLASSES * random.standard_normal((classes, inputs))
    means = centres[:, None] + _OF_STAGES * random.standard_normal((classes, _STAGES, inputs))
    freedom = inputs + _FREEDOM
    factors = random.standard_normal((classes, _STAGES, inputs, freedom)) * _WITHIN / np.sqrt(freedom)
    shares = _RAREST ** (np.arange(classes) / (classes - 1))
    return Scene(
        shares / shares.sum(),
        random.dirichlet(np.full(_STAGES, 3.0), classes),
        _MIDDLE + _COUNTS * means,
        _COUNTS * np.linalg.cholesky(factors @ np.swapaxes(factors, -1, -2)),
    )


def _drawn(scene: Scene, random: np.random.Generator, shape: tuple[int, ...]) -> Data:
    """Cases of a scene, x [*shape, D]."""
    classes, stages, d = scene.means.shape
    count = math.prod(shape)
    label = random.choice(classes, count, p=scene.shares)
    stage = _chosen(scene.stage_shares[label], random.random(count))
    noise = random.standard_normal((count, d))
    x = np.empty((count, d))
    for k in range(classes):
        for s in range(stages):
            of_stage = (label == k) & (stage == s)
            x[of_stage] = scene.means[k, s] + noise[of_stage] @ scene.roots[k, s].T
    y = np.zeros((count, classes))
    y[np.arange(count), label] = 1
    return Data(
        x.reshape(*shape, d),
        y.reshape(*shape, classes),
        tuple(f"count{i + 1}" for i in range(d)),
        "cover",
        "classification",
        tuple(f"cover{k + 1}" for k in range(classes)),
    ).checked()


def _chosen(shares: Float[np.ndarray, "n S"], uniform: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """The part of each row that a uniform number falls into, [n]."""
    ends = shares.cumsum(-1)
    return np.minimum((uniform[:, None] >= ends).sum(-1), shares.shape[-1] - 1)


def _probabilities(scene: Scene, x: Float[np.ndarray, "*N D"]) -> Float[np.ndarray, "*N K"]:
    """Bayes' rule, [*N, K]."""
    classes, stages, d = scene.means.shape
    flat = x.reshape(-1, d)
    found = np.empty((len(flat), classes))
    for start in range(0, len(flat), _AT_A_TIME):
        part = flat[start : start + _AT_A_TIME]
        logs = np.empty((len(part), classes, stages))
        for k in range(classes):
            for s in range(stages):
                root = scene.roots[k, s]
                white = scipy.linalg.solve_triangular(root, (part - scene.means[k, s]).T, lower=True)
                share = scene.shares[k] * scene.stage_shares[k, s]
                logs[:, k, s] = np.log(share) - np.log(np.diag(root)).sum() - np.square(white).sum(0) / 2
        found[start : start + _AT_A_TIME] = scipy.special.softmax(scipy.special.logsumexp(logs, axis=-1), axis=-1)
    return found.reshape(*x.shape[:-1], classes)


def _as_inputs(x: Any, d: int) -> Float[np.ndarray, "*N D"]:
    """Given inputs [*N, D] in double precision."""
    try:
        array = np.asarray(x)
    except ValueError:  # rows of different lengths
        array = np.zeros(0)
    if array.size == 0 or array.ndim == 0 or array.shape[-1] != d:
        raise ValueError(
            f"expected x [..., {d}] with at least one case, got {shown(x)}; give every case all {d} inputs"
        )
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise ValueError(f"expected x as finite real numbers, got {shown(x)}; convert them first, or leave cases out")
    return array.astype(np.float64)
