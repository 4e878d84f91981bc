"""Early stopping by validation cases split off the training cases."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from jaxgen.learn.wrap.wrapper import Wrapper, held
from jaxgen.loss import squared
from jaxgen.types import Data, Key, Loss, Params, Plan


class Stopped(NamedTuple):
    """Networks stopped early: M members, the iteration that each comes from [M], and all errors on validation cases
    [M, S].
    """

    members: Params
    iteration: Int[Array, "*S M"]
    errors: Float[Array, "*S M saves"]


@dataclass(frozen=True, repr=False)
class EarlyStopped(Wrapper):
    """Early stopping by validation cases split off the training cases; the prediction is the mean of all members.

    The cases (a case of weight 2 is one case) are put in random order and cut into equal portions, within one; member
    q learns from all portions but q, and of its saved networks the one with the least mean loss on portion q is taken,
    the first of equals (Neal 1998, section 3.3, with four folds). Validation cases never touch a gradient, a statistic
    or an augmented copy.

    Attributes:
      base: a learner with saved networks: Descent, Conjugate, or one wrapped by Normalised or Augmented.
      folds: portions, and members.
      members: train only the first so many of the members, for less time; each is the same network as among all. None
        trains all.
      share: one split, in place of the folds, that validates on this share of the cases (at least one).
      patience: training ends at the first save beyond `stretch` times the best iteration so far + `patience`
        iterations; None trains to the end, which is Neal's choice.
      stretch: see `patience`.
      refit: one network, trained on all cases to the save nearest (by its logarithm) to the mean of the members'
        iterations.
      loss: what validation counts; a function of `jaxgen.loss`.
    """

    folds: int = 4
    share: float | None = None
    patience: int | float | None = None
    stretch: float = 1.0
    refit: bool = False
    loss: Loss = squared
    members: int | None = None

    @property
    def failures(self) -> tuple[str, ...]:
        """What `failure` may say."""
        return (
            "none of a member's saved networks had a finite validation error (use a smaller rate, or "
            "normalise the data with learn.Normalised)",
        )

    def fit(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        start: PyTree = None,
        order: Int[Array, " n"] | None = None,
    ) -> Stopped:
        """The members.

        Args:
          key, x, y, w: cases [n, D], [n, K] of weights [n].
          start: start parameters of the members, with a leading axis [M]; random if None.
          order: the cases in the order [n] that is cut into portions, those in use first; random if None.
        Returns:
          Stopped.
        """
        order_key, refit_key, *member_keys = jax.random.split(key, 2 + (1 if self.share is not None else self.folds))
        member_keys = member_keys[: self.members]
        order = _random_order(order_key, w) if order is None else order
        used = jnp.sum(w > 0, dtype=jnp.int32)
        begin, size, most_left, most_out = self._portions(len(w), used)

        table = jnp.concatenate([x, y, w[:, None]], axis=1)

        def some(index, used):
            """Inputs, targets and weights of cases, all 0 where they are not used."""
            rows = jnp.where(used[:, None], table[index], 0)
            return rows[:, : x.shape[1]], rows[:, x.shape[1] : -1], rows[:, -1]

        def member(key, begin, size, start):
            place = jnp.arange(most_left, dtype=jnp.int32)
            left = some(
                order[jnp.minimum(jnp.where(place < begin, place, place + size), len(w) - 1)], place < used - size
            )
            place = jnp.arange(most_out, dtype=jnp.int32)
            x_out, y_out, validate = some(order[jnp.minimum(begin + place, len(w) - 1)], place < size)

            def error(params, iteration):
                return jnp.sum(validate * self.loss(y_out, self.base.predict(params, x_out))) / jnp.sum(validate)

            return self.base.watched(key, *left, error, self.patience, self.stretch, start)

        keys = jnp.stack(member_keys)
        best, errors, iteration = jax.vmap(member, in_axes=(0, 0, 0, None if start is None else 0))(
            keys, begin, size, start
        )
        if not self.refit:
            return Stopped(best, iteration, errors)
        target = jnp.log(jnp.mean(iteration.astype(x.dtype)))
        again = self.base.watched(
            refit_key, x, y, w, lambda params, number: jnp.abs(jnp.log(number.astype(x.dtype)) - target)
        )
        return Stopped(jax.tree.map(lambda a: a[None], again.best), again.iteration[None], errors)

    def predict(self, params: Stopped, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Mean of the members' predictions, in the units of y."""
        return jnp.mean(jax.vmap(lambda p: self.base.predict(p, x))(params.members), axis=0)

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
            **jax.vmap(self.base_diagnose)(params.members),
            "iteration": params.iteration,
            "validation": params.errors,
        }

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses what cannot be split, and what the learner inside refuses.

        Raises:
          TypeError: the learner inside saves no networks.
          ValueError: too few training cases for the portions, or settings outside their range.
        """
        super().check(data, plan)
        if not all(hasattr(each, "watched") for each in held(self)):
            raise TypeError(
                f"expected a learner that saves networks while it trains, got {self.base!r}; "
                "use Descent or Conjugate, also inside Normalised or Augmented"
            )
        if self.share is None and self.folds < 2:
            raise ValueError(f"expected at least 2 folds, got {self.folds}; give share=0.25 for a single split")
        if self.share is not None and not 0 < self.share < 1:
            raise ValueError(
                f"expected a share between 0 and 1, got {self.share}; "
                "it is the share of the training cases that validates"
            )
        if self.members is not None and not 1 <= self.members <= (1 if self.share is not None else self.folds):
            raise ValueError(
                f"expected between 1 and {1 if self.share is not None else self.folds} members, got "
                f"{self.members} in {self}; leave it out to train one a fold"
            )
        if self.patience is not None and not (self.patience >= 0 and self.stretch >= 1):
            raise ValueError(
                "expected a patience of at least 0 iterations and a stretch of at least 1, got "
                f"{self.patience} and {self.stretch}; see EarlyStopped"
            )
        fewest, needed = int(plan.train_cases.min()), self.folds if self.share is None else 2
        if fewest < needed:
            raise ValueError(
                f"expected at least {needed} training cases to split for {self}, got {fewest} in "
                f"{plan.scheme}; train on more cases"
            )

    def _portions(self, n: int, used: Int[Array, ""]) -> tuple[Int[Array, " M"], Int[Array, " M"], int, int]:
        """Where each portion begins among the cases in use and its size, [M] each; the most cases left, and the most
        left out, of any of at most n.
        """
        if self.share is not None:
            sizes = np.array(
                [min(max(math.ceil(self.share * m - 1e-9), 1), max(m - 1, 1)) for m in range(n + 1)], np.int32
            )
            return (
                jnp.zeros(1, jnp.int32),
                jnp.asarray(sizes)[used][None],
                int(max(np.arange(n + 1) - sizes)),
                int(max(sizes)),
            )
        bounds = (jnp.arange(self.folds + 1, dtype=jnp.int32) * used) // self.folds
        return (
            bounds[:-1][: self.members],
            (bounds[1:] - bounds[:-1])[: self.members],
            n - n // self.folds,
            math.ceil(n / self.folds),
        )


def _random_order(key: Key, w: Float[Array, " n"]) -> Int[Array, " n"]:
    """The cases of positive weight in random order, then the others; absent cases change nothing in the order of those
    in use.
    """
    draws = jax.random.bits(key, (len(w),))[jnp.cumsum(w > 0) - 1] >> 1  # draw i is a function of the key and i only
    return jnp.argsort(jnp.where(w > 0, draws, jnp.full_like(draws, jnp.iinfo(draws.dtype).max)))
