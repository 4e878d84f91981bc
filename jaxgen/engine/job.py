"""What one chunk of a run computes, as a function of one data set and some of its rows."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxgen.types import Learner, Loss


@dataclass(frozen=True)
class Job:
    """What a step does: everything that, if changed, needs another compilation.

    Attributes:
      learner, loss: as for `assess`.
      cases: N.
      inputs: D.
      outputs: K.
      dtype: name of the floating type.
      one_data_set: all rows share one data set, x [1, N, D].
      used: cases that are gathered for each row; None trains on all cases with masks.
      left_out: most cases of weight 0 in a row, where `fit_rows` is to know it.
      together: `fit_rows` instead of `fit`.
      devices: where it runs.
      predictions: the predictions are wanted too.
      predicted: rows that predict at a time; None for all rows of a chunk.
    """

    learner: Learner
    loss: Loss
    cases: int
    inputs: int
    outputs: int
    dtype: str
    one_data_set: bool
    used: int | None
    left_out: int | None
    together: bool
    devices: tuple[jax.Device, ...]
    predictions: bool = False
    predicted: int | None = None

    def one_set(self, key, x, y, train, q, r):
        """Losses [b, N], predictions [b, N, K] or None, failure [b], trusted [b] and info of the rows r [b] of data
        set q, whose training weights are train [b, N].
        """
        params, trusted = self.fitted(key, x, y, train, q, r)
        learner: Any = self.learner
        losses, predictions = self._mapped(lambda p: self.tested(p, x, y), params, len(r))
        failure = jax.vmap(lambda p: jnp.asarray(learner.failure(p), jnp.int32))(params)
        return losses, predictions, failure, trusted, jax.vmap(learner.diagnose)(params)

    def fitted(self, key, x, y, train, q, r):
        """Parameters [b, ...] and trusted [b] of those rows."""
        row_keys = jax.vmap(lambda row: jax.random.fold_in(jax.random.fold_in(key, q), row))(r)
        weights = train.astype(x.dtype)
        learner: Any = self.learner
        if self.together:
            return learner.fit_rows(row_keys, x, y, weights, self.left_out)
        return jax.vmap(lambda row_key, w: learner.fit(row_key, *self._gathered(x, y, w)))(row_keys, weights), jnp.ones(
            len(r), bool
        )

    def tested(self, params, x, y):
        """Losses [N] of one row on all cases, and its predictions [N, K] or None."""
        predictions = self.learner.predict(params, x)
        return self.loss(y, predictions), predictions if self.predictions else None

    def _mapped(self, function, params, rows):
        """The function of each row's parameters, for all rows at once or for some at a time."""
        if self.predicted is None or self.predicted >= rows:
            return jax.vmap(function)(params)
        return jax.lax.map(function, params, batch_size=self.predicted)

    def _gathered(self, x, y, w):
        if self.used is None:
            return x, y, w
        index = jnp.nonzero(w, size=self.used, fill_value=0)[0]
        present = jnp.arange(self.used) < jnp.sum(w > 0)
        return x[index], y[index], jnp.where(present, w[index], 0)
