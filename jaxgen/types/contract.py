"""What every learner promises, tried out on a few cases. `assess` tries the cheapest part, `learn.check` all of it."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxgen.types.learner import Learner

_SAME = 1e-3
"""Predictions that differ by less than this share of their spread are the same: fits that run through the same sums
differ by their rounding only.
"""


def learns_from_absent_cases(
    learner: Learner, x: Float[np.ndarray, "n D"], y: Float[np.ndarray, "n K"], classification: bool = False
) -> bool:
    """Whether the predictions of a learner change with inputs and targets of cases of weight 0.

    Args:
      learner: what to try.
      x, y: a few cases, [n, D] and [n, K]; every other one gets weight 0.
      classification: y are classes, which change to other classes.
    Returns:
      True where it learns from its test cases.
    """
    w = np.arange(len(x)) % 2
    changed_x = np.where(w[:, None] > 0, x, 3 * x[::-1] + np.ptp(x, axis=0))
    other = np.roll(y, 1, axis=-1) if y.shape[-1] > 1 else 1 - y
    changed_y = np.where(w[:, None] > 0, y, other if classification else 2 * y[::-1] + 5 * np.ptp(y, axis=0) + 1)
    first, second = fitted_predictions(learner, np.stack([x, changed_x]), np.stack([y, changed_y]), w, x)
    return differ(first, second)


def fitted_predictions(learner: Learner, x: Any, y: Any, w: Any, at: Any) -> Float[np.ndarray, "b m K"]:
    """Predictions at cases [m, D] of fits to several training sets at once, with one key: x [b, n, D], y [b, n, K],
    w [n] or [b, n].
    """
    dtype = jax.dtypes.canonicalize_dtype(np.float64)
    x, y, w, at = (jnp.asarray(a, dtype) for a in (x, y, np.broadcast_to(w, np.shape(x)[:2]), at))
    return np.asarray(_fit_and_predict(learner, x, y, w, at), np.float64)


@partial(jax.jit, static_argnums=0)
def _fit_and_predict(learner: Learner, x: Any, y: Any, w: Any, at: Any) -> Any:
    return jax.vmap(lambda x, y, w: learner.predict(learner.fit(jax.random.key(0), x, y, w), at))(x, y, w)


def differ(first: Float[np.ndarray, "m K"], second: Float[np.ndarray, "m K"], share: float = _SAME) -> bool:
    """Whether two sets of predictions [m, K] differ by more than a share of their spread, or in what is finite."""
    if not np.array_equal(np.isfinite(first), np.isfinite(second)):
        return True
    first, second = (np.nan_to_num(a, posinf=0, neginf=0) for a in (first, second))
    size = np.ptp(first, axis=0) + 1e-3 * np.abs(first).max(0)
    return bool((np.abs(first - second) > share * size).any())
