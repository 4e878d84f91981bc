"""One row of an estimator of scikit-learn's kind, in whatever process: it knows neither JAX nor the engine, so that
processes begin quickly.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from jaxgen.types.estimators import predicted_classes, predicted_numbers
from jaxgen.types.numbers import first_line

_MOST_SEED = 2**31 - 1
"""Seeds that every estimator takes."""


class Trained(NamedTuple):
    """What came of a row.

    Attributes:
      predictions: [m, K], NaN where it failed.
      error: what was raised, in one line; empty if nothing was.
      warning: the first warning, in one line; empty if there was none.
    """

    predictions: Float[np.ndarray, "m K"]
    error: str
    warning: str


def seeded(estimator: Any, words: Shaped[np.ndarray, " words"]) -> Any:
    """A clone of an estimator, not fitted, whose every `random_state` follows from the words of a random key.

    Args:
      estimator: with `get_params` and `set_params`.
      words: of the key, [words].
    """
    from sklearn.base import clone

    fresh: Any = clone(estimator)
    names = sorted(name for name in fresh.get_params(deep=True) if name.split("__")[-1] == "random_state")
    if names:
        draws = np.random.default_rng(np.asarray(words, np.uint32)).integers(_MOST_SEED, size=len(names))
        fresh.set_params(**dict(zip(names, draws.tolist(), strict=True)))
    return fresh


def trained_row(
    estimator: Any,
    words: Shaped[np.ndarray, " words"],
    w: Shaped[np.ndarray, " n"],
    x: Float[np.ndarray, "n D"],
    y: Shaped[np.ndarray, "n K"],
    at: Float[np.ndarray, "m D"],
    classifies: bool,
    weighted: bool,
    alone: bool,
) -> Trained:
    """Fits an estimator to the cases of one row and predicts.

    Args:
      estimator: is cloned.
      words: of the row's key.
      w: how often each case counts, [n].
      x, y: cases, [n, D] and [n, K]; of a classification zeros and ones.
      at: cases to predict, [m, D].
      classifies: whether it is a classifier.
      weighted: whether its `fit` takes counts as `sample_weight`.
      alone: whether nothing else runs beside it, so that it may use several jobs of its own.
    """
    used = np.flatnonzero(w)
    counts = w[used].astype(np.float64)
    inputs, targets, more = x[used], y[used], {}
    if (counts > 1).any():
        if weighted:
            more = {"sample_weight": counts}
        else:
            times = w[used].astype(np.int64)
            inputs, targets = np.repeat(inputs, times, axis=0), np.repeat(targets, times, axis=0)
    single = y.shape[1] == 1
    if classifies:
        targets = targets[:, 0].astype(np.int64) if single else targets.argmax(1)
    elif single:
        targets = targets[:, 0]
    error, found = "", np.full((len(at), y.shape[1]), np.nan)
    with warnings.catch_warnings(record=True) as said, _one_thread(alone):
        warnings.simplefilter("always")
        try:
            fitted = seeded(estimator, words).fit(inputs, targets, **more)
            if classifies:
                found = predicted_classes(fitted, at, np.arange(2 if single else y.shape[1]))[:, -y.shape[1] :]
            else:
                found = predicted_numbers(fitted, at, y.shape[1])
        except MemoryError:
            raise
        except Exception as trouble:
            error = " ".join(first_line(trouble).split()) or type(trouble).__name__
    warning = f"{said[0].category.__name__}: {' '.join(str(said[0].message).split())}" if said else ""
    return Trained(np.ascontiguousarray(found, np.float64), error, warning)


@contextmanager
def _one_thread(alone: bool) -> Iterator[None]:
    """One thread in libraries for linear algebra and OpenMP; and no jobs of its own for an estimator beside others."""
    from joblib import parallel_config

    with _pools().limit(limits=1):
        if alone:
            yield
        else:
            with parallel_config(backend="sequential"):
                yield


@cache
def _pools() -> Any:
    """The pools of threads of this process. Looking for them takes milliseconds."""
    import sklearn.ensemble  # noqa: F401  so that its pools are there
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
