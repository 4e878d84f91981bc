"""Early stopping by validation cases split off the training cases."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from jaxgen.learn.batched import over_members
from jaxgen.learn.wrap.validation import (
    Portions,
    check_loss,
    columns,
    divided,
    error_unit,
    evenly,
    in_folds,
    in_strata,
    random_order,
)
from jaxgen.learn.wrap.wrapper import Wrapper
from jaxgen.loss import about, by_name, squared
from jaxgen.types import Data, Freedom, Key, Loss, Params, Plan
from jaxgen.types.devices import in_full_precision
from jaxgen.types.keys import several
from jaxgen.types.numbers import require, require_flag, require_number, shown
from jaxgen.types.predictive import Mixture


class Stopped(NamedTuple):
    """Networks stopped early: M members, the iteration that each comes from [M], and all errors on validation cases
    [M, S].
    """

    members: Params
    iteration: Int[Array, "*S M"]
    errors: Float[Array, "*S M checkpoints"]


@dataclass(frozen=True, repr=False)
class EarlyStopped(Wrapper):
    """Early stopping by validation cases split off the training cases; the prediction is the mean of all members.

    The cases (a case of weight 2 is one case) are put in random order and cut into equal portions, within one; member
    q learns from all portions but q, and of its checkpoints the one with the least mean loss on portion q is taken,
    the first of equals (Neal 1998, section 3.3, with four folds). Validation cases never touch a gradient, a statistic
    or an augmented copy.

    Where the targets are those of a classification, each class is spread evenly over the portions, within one case, and
    a `share` has about that share of each.

    Attributes:
      base: a learner with checkpoints: Descent, Conjugate, or one wrapped by Normalised, Scaled or Augmented.
      folds: portions, and members.
      members: train only the first so many of the members, for less time; each is the same network as among all. None
        trains all.
      share: one split, in place of the folds, that validates on this share of the cases (at least one).
      patience: training ends at the first save beyond `stretch` times the best iteration so far + `patience`
        iterations; None trains to the end, which is Neal's choice.
      stretch: see `patience`.
      refit: one network, trained on all cases to the save nearest (by its logarithm) to the mean of the members'
        iterations.
      loss: what validation counts; a function of `jaxgen.loss`, or its name.
    """

    folds: int = 4
    share: float | None = None
    patience: int | float | None = None
    stretch: float = 1.0
    refit: bool = False
    loss: Loss | str = squared
    members: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "loss", by_name(self.loss))

    @property
    def failures(self) -> tuple[str, ...]:
        """What `failure` may say."""
        return (
            "none of a member's checkpoints had a finite validation error (use a smaller rate, or "
            "normalise the data with learn.Normalised)",
        )

    @property
    def copies_cases(self) -> bool:
        """Each member trains on a copy of the cases that do not validate it."""
        return True

    @property
    def freedom(self) -> Freedom:
        """As of the learner inside, but another origin of the targets only with a loss of differences, and no other
        unit of the targets: `diagnose` tells the validation errors.
        """
        inside = self.inside.freedom
        return inside._replace(y_shift=inside.y_shift and about(by_name(self.loss)).shift_free, y_scale=False)

    @in_full_precision()
    def fit(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        order: Int[Array, " n"] | None = None,
    ) -> Stopped:
        """The members, from random starts.

        Args:
          key, x, y, w: cases [n, D], [n, K] of weights [n].
          order: the cases in the order [n] that is cut into portions, those in use first; random, by classes
            where the targets are some, if None.
        Returns:
          Stopped.
        """
        return self.fit_from(None, key, x, y, w, order)

    def fit_from(
        self,
        start: PyTree,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        order: Int[Array, " n"] | None = None,
    ) -> Stopped:
        """The members from start parameters with a leading axis [M]; a refit begins from those of the first."""
        order_key, refit_key, *member_keys = several(key, 2 + self._splits)
        order = self._order(order_key, y, w) if order is None else order
        portions = self._portions(len(w), jnp.sum(w > 0, dtype=jnp.int32))
        loss = by_name(self.loss)
        unit = error_unit(loss, y, w)

        table = jnp.concatenate([x, y, w[:, None]], axis=1)

        def member(key, left, validating, start, unit):
            learning = columns(left, x.shape[1])
            x_out, y_out, weight = columns(validating, x.shape[1])

            def error(params, iteration):
                predictions = self.inside.predict(params, x_out)
                return jnp.sum(weight * loss(y_out / unit, predictions / unit)) / jnp.sum(weight)

            return self.inside.watched(key, *learning, error, self.patience, self.stretch, start)

        keys = jnp.stack(member_keys[: self.members])
        left, validating = jax.vmap(lambda begin, size: divided(portions, begin, size, order, table))(
            portions.begin, portions.size
        )
        watched = over_members(member, (keys, left, validating, start), (unit,))
        errors = watched.errors * unit ** (about(loss).degree or 0)
        if not self.refit:
            return Stopped(watched.best, watched.iteration, errors)
        first = None if start is None else jax.tree.map(lambda a: a[0], start)
        again = self._trained_to(watched.iteration, first, refit_key, x, y, w)
        return Stopped(jax.tree.map(lambda a: a[None], again.best), again.iteration[None], errors)

    def predict(self, params: Stopped, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Mean of the members' predictions, in the units of y."""
        return jnp.mean(jax.vmap(lambda member: self.inside.predict(member, x))(params.members), axis=0)

    def predictive(self, params: Stopped, x: Float[Array, "m D"]) -> Mixture | None:
        """Of cases [m, D]: each member with normal noise, whose variance is its error on its validation cases; None
        for several outputs, or if validation counts another loss than squares.

        The error is the least of the checkpoints' and so a little too small.
        """
        mean = jax.vmap(lambda member: self.inside.predict(member, x))(params.members)
        if self.loss is not squared or mean.shape[-1] > 1 or self.classifies or self.refit:
            return None
        errors = jnp.min(jnp.where(jnp.isfinite(params.errors), params.errors, jnp.inf), axis=-1)
        return Mixture(mean, jnp.broadcast_to(jnp.sqrt(errors)[:, None, None], mean.shape))

    def failure(self, params: Stopped) -> Int[Array, ""]:
        """1 if a member had no finite validation error at any save, else 0; [].

        A network that diverged after its best iteration is no failure, and one stopped early need not have converged.
        """
        return jnp.any(params.iteration == 0).astype(jnp.int32)

    def diagnose(self, params: Stopped) -> dict[str, Array]:
        """The iteration chosen for each member, [M], all validation errors [M, S], and what the learner inside says,
        each [M, ...].
        """
        return {
            **jax.vmap(self.inside.diagnose)(params.members),
            "iteration": params.iteration,
            "validation": params.errors,
        }

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses what cannot be split, and what the learner inside refuses.

        Raises:
          TypeError: the learner inside keeps no checkpoints.
          ValueError: too few training cases for the portions, or settings outside their range.
        """
        super().check(data, plan)
        if not self.inside.saves_networks:
            raise TypeError(
                f"expected a learner that keeps checkpoints while it trains, got {shown(self.base)}; "
                "use Descent or Conjugate, also inside Normalised or Augmented"
            )
        self._check_settings()
        check_loss("EarlyStopped", self.loss, data.y.shape[-1])
        fewest, needed = int(plan.train_cases.min()), self.folds if self.share is None else 2
        if fewest < needed:
            raise ValueError(
                f"expected at least {needed} training cases to split for {self}, got {fewest} in "
                f"{plan.scheme}; train on more cases"
            )

    def _check_settings(self) -> None:
        if self.share is None:
            reason = "give share=0.25 for a single split"
            require("the folds of EarlyStopped", self.folds, 2, advice=reason)
        else:
            reason = "it is the share of the training cases that validates"
            require_number("the share of EarlyStopped", self.share, above=0, below=1, advice=reason)
        if self.members is not None:
            require("the members of EarlyStopped", self.members, 1, self._splits, "one for each split")
        if self.patience is not None:
            require_number("the patience of EarlyStopped", self.patience, least=0, advice="it is in iterations")
        require_number("the stretch of EarlyStopped", self.stretch, least=1, advice="leave it out for 1")
        require_flag("refit", self.refit)

    @property
    def _splits(self) -> int:
        """Different splits, each for one member."""
        return self.folds if self.share is None else 1

    def _order(self, key: Key, y: Float[Array, "n K"], w: Float[Array, " n"]) -> Int[Array, " n"]:
        """A random order of the cases whose portions hold all classes alike."""
        order = random_order(key, w)
        if self.share is not None:
            return evenly(order, y, w)
        return in_strata(order, y, w, in_folds(len(w), jnp.sum(w > 0, dtype=jnp.int32), self.folds))

    def _portions(self, n: int, used: Int[Array, ""]) -> Portions:
        """The portions of `used` of n cases."""
        if self.share is not None:
            sizes = np.array([_share_of(cases, self.share) for cases in range(n + 1)], np.int32)
            most_left = int(max(np.arange(n + 1) - sizes))
            return Portions(jnp.zeros(1, jnp.int32), jnp.asarray(sizes)[used][None], most_left, int(max(sizes)))
        portions = in_folds(n, used, self.folds)
        return portions._replace(begin=portions.begin[: self.members], size=portions.size[: self.members])

    def _trained_to(
        self,
        iterations: Int[Array, " M"],
        start: PyTree,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
    ) -> Any:
        """One network trained on all cases to the save nearest, by its logarithm, to the mean of some iterations."""
        target = jnp.log(jnp.mean(iterations.astype(x.dtype)))

        def away(params, iteration):
            return jnp.abs(jnp.log(iteration.astype(x.dtype)) - target)

        return self.inside.watched(key, x, y, w, away, start=start)


def _share_of(cases: int, share: float) -> int:
    """A share of some cases, rounded up (but for the rounding of the product), at least one and not all."""
    return min(max(math.ceil(share * cases - 1e-9), 1), max(cases - 1, 1))
