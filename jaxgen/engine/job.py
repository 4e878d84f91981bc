"""What one chunk of a run computes, as a function of one data set and some of its rows."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxgen.loss import about
from jaxgen.types import Learner, Loss
from jaxgen.types.calls import as_array, distribution_of, explained, failure_of, losses_of, predictions_of, rows_of
from jaxgen.types.devices import in_full_precision


@dataclass(frozen=True)
class Job:
    """What a chunk computes: everything that, if changed, needs another compilation.

    Attributes:
      learner, loss: as for `assess`.
      code: digest of the user's code in them, which may change while they stay equal: a function whose closure or
        whose global names have other values now.
      cases: N.
      inputs: D.
      outputs: K.
      dtype: name of the floating type.
      one_data_set: all rows share one data set, x [1, N, D].
      used: cases that are gathered for each row; None trains on all cases with masks.
      left_out: most cases of weight 0 in a row, where `fit_rows` is to know it.
      together: `fit_rows` instead of `fit`.
      rows: about how many rows are trained together, in all chunks; see `Learner.prepared`.
      devices: where it runs.
      predictions: the predictions are wanted too.
      predicted: rows that predict at a time; None for all rows of a chunk.
      new: cases without targets that every row predicts too, M; their inputs come after those of the data.
    """

    learner: Learner
    loss: Loss
    code: str
    cases: int
    inputs: int
    outputs: int
    dtype: str
    one_data_set: bool
    used: int | None
    left_out: int | None
    together: bool
    devices: tuple[jax.Device, ...]
    rows: int = 1
    predictions: bool = False
    predicted: int | None = None
    new: int = 0

    @property
    def wide(self) -> bool:
        """Whether it computes in double precision."""
        return self.dtype == "float64"

    @property
    def spread(self) -> bool:
        """Whether it runs on devices of several processes of one program."""
        return len({device.process_index for device in self.devices}) > 1

    @property
    def here(self) -> jax.Device:
        """The first device of this process."""
        mine = (device for device in self.devices if device.process_index == jax.process_index())
        return next(mine, self.devices[0])

    @property
    def in_pieces(self) -> bool:
        """Whether its program may be compiled in pieces: on a single CPU device."""
        return len(self.devices) == 1 and self.here.platform == "cpu"

    def one_set(self, key, x, y, typical, train, q, r):
        """Losses [b, N], predictions [b, N + M, K] or None, failure [b], trusted [b] and info of the rows r [b] of data
        set q, whose training weights are train [b, N], and typical [N] on average over all rows; x [N + M, D].
        """
        params, trusted, known = self.fitted(key, x[: self.cases], y, typical, train, q, r)
        if known is None:
            losses, predictions = self._mapped(lambda p: self.tested(p, x, y), params, r)
        else:
            losses, predictions = jax.vmap(lambda p: self.judged(p, y))(known)
        failure, info = jax.vmap(lambda p, _: (self.failed(p), self.told(p)))(params, r)
        return losses, predictions, failure, trusted, info

    @in_full_precision()
    def fitted(self, key, x, y, typical, train, q, r):
        """Parameters [b, ...] and trusted [b] of those rows, and their predictions [b, N, K] if training made them."""
        row_keys = jax.vmap(lambda row: jax.random.fold_in(jax.random.fold_in(key, q), row))(r)
        weights = train.astype(x.dtype)
        if self.together:
            learner = self.learner
            if learner.prepares_rows:
                with explained(learner, "prepared(x, y, w, rows)"):
                    learner = learner.prepared(x, y, typical, self.rows)
            with explained(self.learner, "fit_rows(keys, x, y, w, left_out)"):
                shared = learner.fit_rows(row_keys, x, y, weights, self.left_out)
                found = rows_of(self.learner, shared, (len(r), *y.shape))
            if found[2] is None or not self.new:  # with predictions come parameters that cannot predict other cases
                return found
        one = replace(self, predicted=None)  # as it was traced for its needs: how many rows predict is no part of a fit
        params = jax.vmap(lambda k, w: fitted_alone(one, k, x, y, w))(row_keys, weights)
        return params, jnp.ones(len(r), bool), None

    @in_full_precision()
    def trained(self, row_key, x, y, w):
        """Parameters [...] of one row, whose training weights are w [N]."""
        with explained(self.learner, "fit(key, x, y, w)"):
            params = self.learner.fit(row_key, *self._gathered(x, y, w.astype(x.dtype)))
            return jax.tree.map(jnp.asarray, params)

    @in_full_precision()
    def tested(self, params, x, y):
        """Losses [N] of one row on all cases, and its predictions [N + M, K] or None."""
        predictions = predictions_of(self.learner, params, x, jnp.pad(y, ((0, self.new), (0, 0))) if self.new else y)
        known: Any = None
        if about(self.loss).distribution:
            known = distribution_of(self.learner, params, x, predictions)
        return self.judged(predictions, y, known)

    def judged(self, predictions, y, distribution=None):
        """Losses [N] of predictions [N + M, K], or of a distribution, and the predictions if they are wanted."""
        believed = predictions[: self.cases] if distribution is None else distribution
        return losses_of(self.loss, y, believed), predictions if self.predictions else None

    def failed(self, params):
        """The number of the sentence that says why a fit failed, or 0; []."""
        return failure_of(self.learner, params)

    def told(self, params):
        """What `diagnose` says of a row, each [...]."""
        with explained(self.learner, "diagnose(params)"):
            info = self.learner.diagnose(params)
        arrays = {name: as_array(value) for name, value in info.items()} if isinstance(info, dict) else None
        if arrays is None or any(value is None or not isinstance(name, str) for name, value in arrays.items()):
            raise ValueError(
                f"expected diagnose(params) of {self.learner} to give a dictionary of arrays, got "
                f"{type(info).__name__} {list(info) if isinstance(info, dict) else ''}; return {{'name': array}}"
            )
        return arrays

    def _mapped(self, function, params, r):
        """The function of each row's parameters, for all rows r [b] at once or for some at a time.

        The rows go along because there are learners without parameters.
        """
        if self.predicted is None or self.predicted >= len(r):
            return jax.vmap(lambda p, _: function(p))(params, r)
        return jax.lax.map(lambda row: function(row[0]), (params, r), batch_size=self.predicted)

    def _gathered(self, x, y, w):
        """The cases that a row uses, filled up with copies of case 0 of weight 0; all cases with masks if `used` is
        None.
        """
        if self.used is None:
            return x, y, w
        index = jnp.nonzero(w, size=self.used, fill_value=0)[0]
        present = jnp.arange(self.used) < jnp.sum(w > 0)
        return x[index], y[index], jnp.where(present, w[index], 0)


@partial(jax.jit, static_argnums=0)
def fitted_alone(job: Job, row_key: Any, x: Any, y: Any, w: Any) -> Any:
    """Parameters [...] of one row, whose training weights are w [N]. JAX remembers what it traced, which is most of the
    time that a network takes to trace.
    """
    return job.trained(row_key, x, y, w)
