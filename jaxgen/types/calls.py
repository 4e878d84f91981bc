"""Functions that a user wrote, called so that what goes wrong inside them, or comes out of them, gets one sentence.

The engine and `algebraic` call learners and losses through these while JAX traces them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxgen.types.identity import named
from jaxgen.types.learner import Learner, Params
from jaxgen.types.losses import Loss
from jaxgen.types.predictive import Mixture

_ADVICE = {
    "TracerArrayConversionError": "use jax.numpy in place of NumPy there, which cannot be traced",
    "TracerBoolConversionError": "use jnp.where in place of `if`: the numbers are not known while it is traced",
    "NonConcreteBooleanIndexError": "use jnp.where or the weights in place of a mask as an index",
    "ConcretizationTypeError": "the numbers are not known while it is traced; take sizes from shapes",
    "TracerIntegerConversionError": "use x[index] of jax.numpy arrays; the numbers are not known while it is traced",
}


@contextmanager
def explained(owner: Any, what: str) -> Iterator[None]:
    """Turns what goes wrong inside a function of the user's into one sentence.

    Args:
      owner: the learner or loss.
      what: the function, as it should be called.
    Raises:
      ValueError: something went wrong; messages of the package pass as they are.
    """
    try:
        yield
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        text = " ".join(str(error).strip().split("\n")[0].split())
        if text.startswith("expected "):  # said by a learner itself
            raise
        name = named(owner)
        advice = _ADVICE.get(type(error).__name__, "try it alone on one training set of jax.numpy arrays")
        raise ValueError(
            f"expected {what} of {name} to run on JAX arrays, got {type(error).__name__}: "
            f"{text.split('. ')[0][:160].rstrip('.')}; {advice}"
        ) from error


def as_array(value: Any) -> Any:
    """A value as an array [...] of JAX; None if it is none."""
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        return None


def rows_of(learner: Learner, found: Any, shape: tuple[int, int, int]) -> tuple[Params, Bool[Array, " R"], Any]:
    """What `fit_rows` of a learner returned: parameters [R, ...], trusted [R], and predictions [R, N, K] or None.

    Raises:
      ValueError: something else than that for R rows, N cases and K outputs, which `shape` gives.
    """
    good = isinstance(found, tuple) and len(found) in (2, 3)
    good = good and (trusted := as_array(found[1])) is not None and trusted.shape == shape[:1]
    good = good and all(jnp.shape(leaf)[:1] == shape[:1] for leaf in jax.tree.leaves(found[0]))
    good = good and all((known := as_array(each)) is not None and known.shape == shape for each in found[2:])
    if not good:
        raise ValueError(
            f"expected fit_rows of {learner} to return (parameters, trusted) with a leading axis [{shape[0]}] each, "
            f"and perhaps predictions {list(shape)}, got {type(found).__name__}; return them for every row"
        )
    params, trusted, known = (*found, None)[:3]
    return params, jnp.asarray(trusted, bool), known


def predictions_of(
    learner: Learner, params: Params, x: Float[Array, "N D"], y: Float[Array, "N K"]
) -> Float[Array, "N K"]:
    """What a learner predicts for cases x whose targets are y, [N, K].

    Raises:
      ValueError: something else than real predictions [N, K].
    """
    with explained(learner, "predict(params, x)"):
        predictions = as_array(learner.predict(params, x))
    if predictions is None or predictions.shape != y.shape:
        came = "no array" if predictions is None else list(predictions.shape)
        raise ValueError(
            f"expected predictions {list(y.shape)} of {learner}, one row a case and one column an output, "
            f"got {came}; let predict return [m, K] for x [m, D]"
        )
    if jnp.issubdtype(predictions.dtype, jnp.complexfloating):
        raise ValueError(
            f"expected real predictions of {learner}, got {predictions.dtype}; let predict return real numbers"
        )
    return predictions.astype(x.dtype)


def distribution_of(
    learner: Learner, params: Params, x: Float[Array, "N D"], predictions: Float[Array, "N K"]
) -> Mixture | Float[Array, "N K"]:
    """What a learner believes about the targets of cases x: a mixture [S, N, K], or its predictions [N, K] where these
    are probabilities.

    Raises:
      ValueError: it has no predictive distribution, or something else than a mixture [S, N, K].
    """
    with explained(learner, "predictive(params, x)"):
        found = learner.predictive(params, x)
    if found is None and learner.predicts in ("probabilities", "means") and learner.classifies:
        return predictions
    if found is None:
        raise ValueError(
            f"expected a learner with a predictive distribution, got {learner}; use learn.Bayes, an early-stopped "
            "network with one output, or write predictive(params, x)"
        )
    shapes = [jnp.shape(part)[1:] for part in found] if isinstance(found, Mixture) else []
    if shapes != [predictions.shape] * 2:
        raise ValueError(
            f"expected predictive of {learner} to return learn.Mixture(mean, deviation), each [S, "
            f"{', '.join(map(str, predictions.shape))}], got {type(found).__name__}; return both for every case"
        )
    return Mixture(*(part.astype(x.dtype) for part in found))


def losses_of(loss: Loss, y: Float[Array, "N K"], predictions: Any) -> Float[Array, " N"]:
    """The losses of predictions [N, K], or of predictive distributions; [N].

    Raises:
      ValueError: something else than one number a case.
    """
    with explained(loss, "a loss (y, predictions)"):
        losses = as_array(loss(y, predictions))
    if losses is None or losses.shape != y.shape[:1]:
        came = "no array" if losses is None else list(losses.shape)
        raise ValueError(
            f"expected one loss a case, {list(y.shape[:1])}, of the loss {named(loss)}, got {came}; sum over "
            "the last axis of y and predictions [N, K] only"
        )
    return losses.astype(y.dtype)


def failure_of(learner: Learner, params: Params) -> Int[Array, ""]:
    """The number of the sentence that says why a fit failed, one more than there are sentences if it has none; 0 for a
    fit that went well; [].

    Raises:
      ValueError: something else than one whole number.
    """
    with explained(learner, "failure(params)"):
        code = as_array(learner.failure(params))
    if code is None or code.shape != () or not (code.dtype == bool or jnp.issubdtype(code.dtype, jnp.integer)):
        came = "no number" if code is None else f"{code.dtype} {list(code.shape)}"
        raise ValueError(
            f"expected failure(params) of {learner} to give one whole number, got {came}; return 0 for a fit "
            "that went well, else the number from 1 of its sentence in failures"
        )
    # A number beyond the sentences would overflow to that of another failure, or to that of success.
    last = len(learner.failures)
    return jnp.where((code < 0) | (code > last), last + 1, code).astype(jnp.int32)
