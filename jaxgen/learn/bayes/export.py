"""The kept states of one training set, chain by chain, under the names that a reader knows them by; for ArviZ."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from jaxgen.learn.bayes.learner import Bayes, Posterior
from jaxgen.learn.wrap.wrapper import Changing, Wrapper
from jaxgen.types import Data, Key, Learner, Plan, as_learner, keys
from jaxgen.types.checks import check_missing
from jaxgen.types.devices import in_full_precision
from jaxgen.types.numbers import require_kind, shown
from jaxgen.types.plan import as_weights

_AXES = {"relevance": ("input",), "noise": ("output",), "prediction": ("case", "output")}
"""Names of the axes after chain and draw, by the first word of a name."""


@dataclass(frozen=True, eq=False)
class Draws:
    """States of C chains, S of each, as numbers that mean something by themselves; weights do not, since hidden units
    can be exchanged.

    Attributes:
      values: by name, each [C, S, ...]. "width_input_hidden" and so on: standard deviation of a group of weights (of a
        group with relevances, the one around which those of the inputs lie), [C, S]; "relevance_input_hidden", that
        of the weights of each input, [C, S, D]; both in the units that the network sees. "noise" (in a regression),
        its standard deviation, [C, S, K], and "prediction", at the cases asked for, [C, S, m, K], in the units of the
        targets, or probabilities.
      axes: by the same names, the names of the axes after chain and draw.
      coordinates: by the name of an axis, what stands along it.
      rejected: share of the trajectories after the discarded part that were rejected, [C].
      step: the factor of the step sizes after the discarded part, [C].
      failure: why the chains are not to be used, or "".
    """

    values: Mapping[str, Float[np.ndarray, "C S ..."]]
    axes: Mapping[str, tuple[str, ...]]
    coordinates: Mapping[str, tuple[Any, ...]]
    rejected: Float[np.ndarray, " C"]
    step: Float[np.ndarray, " C"]
    failure: str

    def to_arviz(self) -> Any:
        """The same for ArviZ, with the groups "posterior" and "sample_stats" (the step size).

        Returns:
          An `xarray.DataTree` from ArviZ 1.0 on, before that an `arviz.InferenceData`; axes chain, draw and those of
          `axes`.
        Raises:
          ImportError: ArviZ is not installed.
        """
        try:
            import arviz  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise ImportError(
                "expected ArviZ for to_arviz, got no such package; install it with pip install 'jaxgen[arviz]'"
            ) from error
        chains, draws = next(iter(self.values.values())).shape[:2]
        steps = np.broadcast_to(self.step[:, None], (chains, draws))
        groups = {"posterior": dict(self.values), "sample_stats": {"step_size": steps}}
        about: dict[str, Any] = {
            "coords": {name: list(along) for name, along in self.coordinates.items()},
            "dims": {name: list(axes) for name, axes in self.axes.items()},
        }
        one = int(arviz.__version__.split(".")[0]) >= 1  # groups were arguments before
        make: Any = arviz.from_dict
        return make(groups, **about) if one else make(**groups, **about)


def posterior_draws(key: Key, learner: Any, data: Data, train: Any = None, at: Any = None) -> Draws:
    """The kept states of the chains of one training set: for trace plots, R-hat by name, or `Draws.to_arviz`.

    `assess` keeps their averages only. Give `Bayes` several `chains`, so that they can be compared.

    Args:
      key: consumed.
      learner: a `Bayes`, also inside `Normalised` or `Scaled`.
      data: cases, x [N, D] and y [N, K].
      train: weights of the cases, [N], such as a row of `plan.train`; None trains on all.
      at: cases [m, D] to predict at every state; None for none.
    Returns:
      Draws.
    Raises:
      TypeError: no random key, no learner with a `Bayes` inside, or no data.
      ValueError: data, weights or cases that do not fit, or as the learner says.
    """
    require_kind("data as jaxgen.Data", data, Data, "make it with datasets.from_arrays")
    data.checked()
    if data.sets:
        raise ValueError(f"expected one data set, got {data.sets}; take one of them, as data[0]")
    inside = as_learner(learner).for_data(data)
    check_missing(inside, data)
    _require_bayes(inside)
    weights, cases = _weights(train, data.n), _cases(at, data.d)
    inside.check(data, Plan(weights[None], np.ones((1, data.n), np.uint8), "posterior_draws").checked())
    numbers = [jnp.asarray(a, jax.dtypes.canonicalize_dtype(float)) for a in (data.x, data.y, weights, cases)]
    posterior, values, failed = _run(inside, keys.require(key), *numbers)
    axes = {name: _AXES.get(name.split("_")[0], ()) for name in values}
    along = {"input": tuple(data.names), "output": _outputs(data), "case": tuple(range(len(cases)))}
    return Draws(
        {name: np.asarray(each, float) for name, each in values.items()},
        axes,
        {axis: along[axis] for axis in along if any(axis in each for each in axes.values())},
        np.asarray(posterior.rejected[:, 0], float),
        np.asarray(posterior.step[:, 0], float),
        inside.failures[int(failed) - 1] if failed else "",
    )


@partial(jax.jit, static_argnums=0)
@in_full_precision()
def _run(
    learner: Learner,
    key: Key,
    x: Float[Array, "n D"],
    y: Float[Array, "n K"],
    w: Float[Array, " n"],
    at: Float[Array, "m D"],
) -> tuple[Posterior, dict[str, Float[Array, "C S ..."]], Int[Array, ""]]:
    """The chains, the numbers of each state by name, and the number of the sentence of a failure."""
    fitted = learner.fit(key, x, y, w)
    (posterior,) = (leaf for leaf in jax.tree.leaves(fitted, is_leaf=_is_posterior) if _is_posterior(leaf))
    scales = posterior.states.scales

    def predicted(state: Any) -> Float[Array, "m K"]:
        """By one state, in whatever units the learners around `Bayes` give."""
        alone = posterior._replace(states=jax.tree.map(lambda a: a[None, None], state))
        params = jax.tree.map(lambda leaf: alone if _is_posterior(leaf) else leaf, fitted, is_leaf=_is_posterior)
        return learner.predict(params, at)

    values = {f"width_{name}": lax.rsqrt(precision) for name, precision in scales.common.items()}
    values |= {f"relevance_{name}": lax.rsqrt(precision) for name, precision in scales.each.items()}
    chains, draws = posterior.states.params["output"]["bias"].shape[:2]
    believed = learner.predictive(fitted, x[:1])
    if believed is not None:
        values["noise"] = believed.deviation.reshape(chains, draws, -1)
    if at.shape[0]:
        flat = jax.tree.map(lambda a: a.reshape(chains * draws, *a.shape[2:]), posterior.states)
        values["prediction"] = lax.map(predicted, flat).reshape(chains, draws, at.shape[0], -1)
    return posterior, values, learner.failure(fitted)


def _is_posterior(leaf: Any) -> bool:
    return isinstance(leaf, Posterior)


def _require_bayes(learner: Learner) -> None:
    """TypeError unless there is one Bayes, and around it only learners that change units."""
    layers = [learner, *learner.held()] if isinstance(learner, Wrapper) else [learner]
    if not isinstance(layers[-1], Bayes) or not all(isinstance(layer, Changing) for layer in layers[:-1]):
        raise TypeError(
            f"expected a Bayes, also inside Normalised or Scaled, got {shown(learner)}; give for example "
            "learn.Normalised(learn.Bayes(chains=4))"
        )


def _weights(train: Any, n: int) -> Any:
    """Weights of the cases, [N]."""
    weights = as_weights("train", np.ones(n) if train is None else train)
    if weights.shape != (n,):
        raise ValueError(
            f"expected a weight for each of the {n} cases, got {shown(weights)}; give a row of plan.train, or leave "
            "it out"
        )
    return weights


def _cases(at: Any, d: int) -> Float[np.ndarray, "m D"]:
    """Cases to predict, [m, D]."""
    if at is None:
        return np.zeros((0, d))
    try:
        cases = np.asarray(at, float)
    except (TypeError, ValueError):
        cases = np.full((1, 1), np.nan)
    if cases.ndim != 2 or cases.shape[1] != d or not np.isfinite(cases).all():
        raise ValueError(
            f"expected at as finite cases [m, {d}], one column per input, got {shown(at)}; give for example data.x[:5]"
        )
    return cases


def _outputs(data: Data) -> tuple[str, ...]:
    """Names of the K outputs."""
    outputs = data.y.shape[1]
    if len(data.classes) == outputs:
        return tuple(data.classes)
    return (data.target,) if outputs == 1 else tuple(f"{data.target} {number}" for number in range(1, outputs + 1))
