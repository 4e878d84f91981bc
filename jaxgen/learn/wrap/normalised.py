"""Learners in normalised units, found from the training cases only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from jaxgen.learn.network.iterative import Watched
from jaxgen.learn.wrap.wrapper import Wrapper
from jaxgen.types import Data, Key, Minimum, Params, Plan, as_learner

Watch = Callable[[Params, Any], Float[Array, ""]]


class Standard(NamedTuple):
    """Parameters of a learner and the units it works in: centre and scale of the inputs [D] and the targets [K]."""

    base: Params
    x_centre: Float[Array, "*S D"]
    x_scale: Float[Array, "*S D"]
    y_centre: Float[Array, "*S K"]
    y_scale: Float[Array, "*S K"]


@dataclass(frozen=True, repr=False)
class Normalised(Wrapper):
    """A learner whose inputs and targets are centred and scaled, by the training cases only; its predictions are in
    the target's units.

    The targets of a learner that classifies are left as they are. A column without spread is centred and not scaled.

    Attributes:
      base: the learner.
      how: "delve": minus the median, divided by the sum of absolute deviations from it over (n - 1), as DELVE does;
        "standard": minus the mean, divided by the standard deviation with divisor n; "none".
    """

    how: str = "delve"

    def fit(
        self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], start: PyTree = None
    ) -> Standard:
        """The learner inside, trained in normalised units; `start` is for it."""
        units = self._units(x, y, w)
        extra = {} if start is None else {"start": start}
        return units._replace(base=self.base.fit(key, *_normal(units, x, y), w, **extra))

    def path(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Standard:
        """The networks that the learner inside saves, every array with a leading axis [S]."""
        units = self._units(x, y, w)
        path = self.base.path(key, *_normal(units, x, y), w)
        return jax.tree.map(
            lambda unit: jnp.broadcast_to(unit, (len(jax.tree.leaves(path)[0]), *unit.shape)), units._replace(base=None)
        )._replace(base=path)

    def watched(
        self,
        key,
        x,
        y,
        w,
        watch: Watch,
        patience: int | float | None = None,
        stretch: float = 1.0,
        start: PyTree = None,
    ) -> Watched:
        """The best of the networks that the learner inside saves; see `Descent.watched`, errors [S]."""
        units = self._units(x, y, w)
        found = self.base.watched(
            key,
            *_normal(units, x, y),
            w,
            lambda params, iteration: watch(units._replace(base=params), iteration),
            patience,
            stretch,
            start,
        )
        return found._replace(best=units._replace(base=found.best))

    def predict(self, params: Standard, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets, in the units of y."""
        x = (x - params.x_centre[None]) / params.x_scale[None]
        return self.base.predict(params.base, x) * params.y_scale[None] + params.y_centre[None]

    def failure(self, params: Standard) -> Int[Array, ""]:
        """As of the learner inside, []."""
        return self.base_failure(params.base)

    def diagnose(self, params: Standard) -> dict[str, Array]:
        """As of the learner inside, each [...]."""
        return self.base_diagnose(params.base)

    def minimised(self, params: Standard) -> Minimum:
        """What the learner inside made small, for `algebraic.full_fit`: losses [n] and penalty [] in its units, which
        are kept as they are.

        Raises:
          ValueError: the learner inside has no such method, or as it says.
        """
        inner = as_learner(self.base).minimised(params.base)
        if inner is None:
            raise ValueError(
                "expected Normalised to hold a learner trained to a minimum that it can name, got "
                f"{self.base}; resample it, or give full_fit the argument minimised"
            )
        free, rebuild, cost = inner
        return (
            free,
            lambda free: params._replace(base=rebuild(free)),
            lambda free, x, y: cost(free, *_normal(params, x, y)),
        )

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses an unknown way to normalise, and what the learner inside refuses.

        Raises:
          ValueError: `how` is unknown, or as the learner inside says.
        """
        if self.how not in _HOW:
            raise ValueError(f"expected how among {', '.join(_HOW)}, got {self.how!r}; choose one of them")
        super().check(data, plan)

    def _units(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Standard:
        inputs, outputs = x.shape[1], y.shape[1]
        raw = jnp.asarray([i in self.raw_inputs for i in range(inputs)] + [self.classifies] * outputs)
        centre, scale = _HOW[self.how](jnp.concatenate([x, y], axis=1), w)
        centre, scale = jnp.where(raw, 0, centre), jnp.where(raw, 1, scale)
        return Standard(None, centre[:inputs], scale[:inputs], centre[inputs:], scale[inputs:])


def _normal(
    units: Standard, x: Float[Array, "n D"], y: Float[Array, "n K"]
) -> tuple[Float[Array, "n D"], Float[Array, "n K"]]:
    return (x - units.x_centre[None]) / units.x_scale[None], (y - units.y_centre[None]) / units.y_scale[None]


Units = tuple[Float[Array, " D"], Float[Array, " D"]]


def _by_median(x: Float[Array, "n D"], w: Float[Array, " n"]) -> Units:
    """Median (mean of the middle two) and sum of absolute deviations over (n - 1), of cases repeated by their
    weights.
    """
    order = jnp.argsort(jnp.where((w > 0)[:, None], x, jnp.inf), axis=0)
    ranked, below = jnp.take_along_axis(x, order, axis=0), jnp.cumsum(w[order], axis=0)
    total = jnp.sum(w)

    def at(place: Float[Array, ""]) -> Float[Array, "1 D"]:
        """The value at a place, from 0, in the sorted list of repeated cases."""
        return jnp.take_along_axis(ranked, jnp.argmax(below > place, axis=0)[None], axis=0)

    centre = (at(jnp.floor((total - 1) / 2)) + at(jnp.floor(total / 2)))[0] / 2
    deviations = jnp.sum(jnp.where((w > 0)[:, None], jnp.abs(x - centre[None]), 0) * w[:, None], axis=0)
    return centre, _nonzero(deviations / jnp.maximum(total - 1, 1))


def _by_mean(x: Float[Array, "n D"], w: Float[Array, " n"]) -> Units:
    """Mean and standard deviation with divisor n."""
    used, share = (w > 0)[:, None], (w / jnp.sum(w))[:, None]
    centre = jnp.sum(jnp.where(used, x, 0) * share, axis=0)
    spread = jnp.sqrt(jnp.sum(jnp.where(used, jnp.square(x - centre[None]), 0) * share, axis=0))
    rounding = 4 * float(jnp.finfo(x.dtype).eps)
    return centre, jnp.where(spread > rounding * jnp.abs(centre), spread, 1)


def _unchanged(x: Float[Array, "n D"], w: Float[Array, " n"]) -> Units:
    return jnp.zeros_like(x, shape=x.shape[1:]), jnp.ones_like(x, shape=x.shape[1:])


def _nonzero(scale: Float[Array, " D"]) -> Float[Array, " D"]:
    return jnp.where(scale > 0, scale, 1)


_HOW = {"delve": _by_median, "standard": _by_mean, "none": _unchanged}
