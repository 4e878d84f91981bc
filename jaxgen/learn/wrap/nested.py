"""Rows of the same cases, and each of them without each of its folds, all trained together."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from jaxgen.learn.wrap.ways import Rows, TrainedRows
from jaxgen.types import Learner, Loss, RowUnits


class JudgedRows(NamedTuple):
    """What a learner makes of R rows.

    Attributes:
      totals: summed losses on the cases of each fold, [F, R]; infinite where they are not known.
      trusted: which rows to trust, [R]: all trainings of them.
      fits: parameters of the rows themselves, every array with a leading axis [R].
      known: predictions of the cases by these, if training made them, in the units of the data [R, n, K]; else None.
    """

    totals: Float[Array, "*C F R"]
    trusted: Bool[Array, "*C R"]
    fits: PyTree
    known: Float[Array, "*C R n K"] | None


class Nested(NamedTuple):
    """R rows, and each of them without each of F folds: S = R (F + 1) weightings of the same cases.

    Attributes:
      learning: all of them, those of a row next to each other, itself the last.
      validating: weights of the cases that each leaves out, [S, n]; 0 for the rows themselves.
      rows: R.
    """

    learning: Rows
    validating: Float[Array, "S n"]
    rows: int

    @classmethod
    def of(cls, rows: Rows, fold_keys: Shaped[Array, "R F"], fold: Int[Array, "R n"]) -> "Nested":
        """Of rows, with a key for each fold [R, F], and the fold of each case [R, n], -1 for absent cases."""
        each = fold_keys.shape[1] + 1
        keys = jnp.concatenate([fold_keys, rows.keys[:, None]], axis=1).reshape(-1)
        repeat = partial(jnp.repeat, repeats=each, axis=0)
        w, units = repeat(rows.w), None if rows.units is None else RowUnits(*map(repeat, rows.units))
        out = (fold[:, None] == jnp.arange(each, dtype=fold.dtype)[None, :, None]).reshape(w.shape)
        most = None if rows.left_out is None else rows.left_out + math.ceil(w.shape[1] / (each - 1))
        learning = Rows(keys, rows.x, rows.y, jnp.where(out, 0, w), units, most)
        return cls(learning, jnp.where(out, w, 0), len(rows.w))

    @property
    def sizes(self) -> Float[Array, "R F"]:
        """The weight of the cases of each fold of each row, [R, F]."""
        return self._apart(jnp.sum(self.validating, axis=1))[0]

    def judged(self, validation: Loss, unit: Float[Array, " R"], learner: Learner, found: TrainedRows) -> JudgedRows:
        """What became of all weightings with a learner, by a loss that validates, in a unit of the targets [R]."""
        learning = self.learning
        of_all = jnp.repeat(unit, len(learning.w) // self.rows)[:, None, None]
        targets, predictions = learning.in_units(learning.y), learning.predictions(learner.predict, found)
        losses = jax.vmap(validation)(targets / of_all, predictions / of_all)
        totals = jnp.sum(jnp.where(self.validating > 0, self.validating * losses, 0), axis=1)
        failed = jax.vmap(lambda fit: jnp.asarray(learner.failure(fit), jnp.int32))(found.fits) > 0
        totals = jnp.where(~failed & jnp.isfinite(totals), totals, jnp.inf)
        trusted = jnp.all(found.trusted.reshape(self.rows, -1), axis=1)
        fits, known = jax.tree.map(lambda a: self._apart(a)[1], (found.fits, found.known))
        return JudgedRows(self._apart(totals)[0].T, trusted, fits, known)

    def _apart(self, values: Any) -> tuple[Array, Array]:
        """Of values [S, ...] those without a fold, [R, F, ...], and those of the rows themselves, [R, ...]."""
        values = values.reshape(self.rows, -1, *values.shape[1:])
        return values[:, :-1], values[:, -1]
