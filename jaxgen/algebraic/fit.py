"""One fit to all cases, with the derivatives that estimates without resampling are made of."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxgen.algebraic.functions import (
    Minimised,
    as_functions,
    mapped,
    programs,
    small_by_training,
)
from jaxgen.loss import by_name, squared
from jaxgen.types import Data, Key, Learner, Loss, Params, Plan, as_learner, keys
from jaxgen.types.calls import explained, failure_of, losses_of, predictions_of
from jaxgen.types.checks import check_missing, check_predictions, check_targets
from jaxgen.types.identity import named
from jaxgen.types.numbers import require_kind, require_number, require_one_of, shown

_STATIONARY = 0.01
"""Above this relative gradient norm a fit is not taken as a minimum: the gradient is then 1 % of what the cases' noise
makes of it.
"""
_SETS_AT_ONCE = 16


@dataclass(frozen=True, eq=False)
class FullFit:
    """A learner fitted to all cases, and the derivatives of its predictions and of what it minimised, in float64.

    Training made the sum of its losses l_k and a penalty r small, as functions of P free parameters. Losses of
    training may be a multiple of the losses here (half squared errors, or normalised units): l = loss / `ratio`.

    Attributes:
      learner: what was fitted, as it is used on these data.
      name: the learner as code that recreates it, with a digest of that code where it is not the package's.
      data: the cases, x [*Q, N, D] and y [*Q, N, K].
      loss: the per-case loss.
      key: the key of the call.
      fitted: the learner's parameters; every array has a leading axis [*Q].
      minimised: what training made small; see `full_fit`.
      params: free parameters, [*Q, P].
      predictions: [*Q, N, K].
      losses: [*Q, N].
      jacobian: psi, derivatives of the predictions, [*Q, N, K, P].
      gradients: derivatives of each l_k, [*Q, N, P].
      hessian: second derivatives of the sum of the l_k, [*Q, P, P].
      penalty_gradient: of r, [*Q, P].
      penalty_hessian: of r, [*Q, P, P].
      ratio: loss / l, [*Q]; NaN if the learner does not minimise a multiple of this loss.
    """

    learner: Learner
    name: str
    data: Data
    loss: Loss
    key: Key
    fitted: Params
    minimised: Minimised
    params: Float[np.ndarray, "*Q P"]
    predictions: Float[np.ndarray, "*Q N K"]
    losses: Float[np.ndarray, "*Q N"]
    jacobian: Float[np.ndarray, "*Q N K P"]
    gradients: Float[np.ndarray, "*Q N P"]
    hessian: Float[np.ndarray, "*Q P P"]
    penalty_gradient: Float[np.ndarray, "*Q P"]
    penalty_hessian: Float[np.ndarray, "*Q P P"]
    ratio: Float[np.ndarray, "*Q"]

    @property
    def n(self) -> int:
        """Cases, N."""
        return self.gradients.shape[-2]

    @property
    def p(self) -> int:
        """Free parameters, P."""
        return self.gradients.shape[-1]

    @property
    def residuals(self) -> Float[np.ndarray, "*Q N K"]:
        """Targets minus predictions, [*Q, N, K]."""
        return self.data.y - self.predictions

    @property
    def apparent(self) -> Float[np.ndarray, "*Q"]:
        """Mean loss of the cases, S_N, [*Q]."""
        return np.asarray(self.losses.mean(-1))

    @property
    def gradient(self) -> Float[np.ndarray, "*Q"]:
        """Length of the gradient of what training made small, relative to the root of the sum of squared lengths of
        the cases' gradients, [*Q]; 0 at a minimum.
        """
        whole = np.linalg.norm(self.gradients.sum(-2) + self.penalty_gradient, axis=-1)
        cases = np.linalg.norm(self.gradients, axis=(-2, -1))
        return np.asarray(np.where(whole == 0, 0.0, whole / np.where(cases == 0, np.finfo(float).tiny ** 0.5, cases)))

    @property
    def note(self) -> str:
        """A warning where this is no minimum, else empty."""
        away = int(np.sum(~(self.gradient <= _STATIONARY)))
        if not away:
            return ""
        which = f"{away} of {self.gradient.size} fits are" if self.gradient.ndim else "the fit is"
        return (
            f"{which} not at a minimum (relative gradient norm {self.gradient.max():.2g}), which the "
            "formula assumes; train longer, without early stopping"
        )

    def __getitem__(self, q: int) -> "FullFit":
        """The fit to data set q of Q.

        Raises:
          IndexError: there is no axis Q, or no such set.
        """
        if self.data.sets is None:
            raise IndexError(
                "expected a fit with a leading axis Q to choose from, got that of a single data set; use it as it is"
            )
        data = self.data[q]
        arrays = {name: np.asarray(value[q]) for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays | {"data": data, "fitted": jax.tree.map(lambda a: a[q], self.fitted)})

    def __iter__(self) -> Iterator["FullFit"]:
        """The fit to each data set of Q.

        Raises:
          TypeError: there is no axis Q.
        """
        if self.data.sets is None:
            raise TypeError("expected a fit with a leading axis Q to go through, got one data set; use it as it is")
        return (self[q] for q in range(self.data.sets))

    def damped(self, amount: float) -> "FullFit":
        """The same fit with `amount` added to the diagonal of the penalty's Hessian, for a Hessian that is not
        positive definite (Koh & Liang 2017).

        Raises:
          ValueError: the amount is negative.
        """
        advice = "it is added to the diagonal of the Hessian of the sum of losses"
        require_number("the amount of damping", amount, least=0, advice=advice)
        return replace(self, penalty_hessian=self.penalty_hessian + amount * np.eye(self.p))

    def __repr__(self) -> str:
        shape = f"N={self.n}, P={self.p}" if self.data.sets is None else f"Q={self.data.sets}, N={self.n}, P={self.p}"
        return (
            f"FullFit({self.learner!r}, {named(self.loss)} loss: "
            f"{shape}, relative gradient norm {self.gradient.max():.2g})"
        )


def full_fit(
    key: Key,
    learner: Any,
    data: Data,
    loss: Loss | str = squared,
    *,
    minimised: Minimised | None = None,
) -> FullFit:
    """Fits a learner to all cases, in float64, and takes the derivatives that the estimates of this module are made of.

    The fit is that of `assess(key, learner, data, resample.full(n))` in 64 bits; in 32 bits a random start draws other
    numbers.

    Args:
      key: consumed; the randomness of the training.
      learner: what to fit.
      data: x [*Q, N, D] and y [*Q, N, K].
      loss: the per-case loss or its name, best a multiple of what the learner minimises.
      minimised: a function of the learner's parameters to (free, rebuild, cost): a tree of the numbers that training
        chose; a function of such a tree to the learner's parameters; and what training made small, a function of
        (free, x [n, D], y [n, K]) to (losses [n], penalty []). None takes the learner's own method of this name;
        without one, all floating parameters that predictions depend on are taken as free, and the sum of `loss`,
        without a penalty, as minimised.
    Returns:
      FullFit.
    Raises:
      TypeError: the key is no typed key, the learner none, the data no `Data`, or the loss or `minimised` no function.
      ValueError: data, learner and loss do not fit together, the fit failed, a function of the user's cannot be traced
        or returns other shapes, or a derivative is not finite.
    """
    name, counted = named(learner), by_name(loss)
    learner = _checked(key, learner, data, counted)
    with jax.enable_x64(True):
        x, y = (jnp.asarray(a if data.sets else a[None], jnp.float64) for a in (data.x, data.y))
        row_keys = jax.vmap(lambda q: row_key(key, q))(jnp.arange(len(x), dtype=jnp.int32))
        fitted, code = _fitted(learner, row_keys, x, y)
        _refuse_failed(learner, np.asarray(code))
        first = jax.tree.map(lambda a: a[0], fitted)
        small = small_by_training(learner, counted, minimised, first, x[0])
        derived = jax.tree.map(np.asarray, _derived(learner, counted, small, fitted, x, y))
    arrays = derived._asdict()
    trained = arrays.pop("trained")
    bad = [name for name, value in arrays.items() if name != "ratio" and not np.isfinite(value).all()]
    if bad:
        raise ValueError(
            f"expected finite derivatives of {learner}, got others in {bad[0]}; "
            f"check that the fit went well and that the loss {named(counted)} is smooth"
        )
    arrays["ratio"] = _ratio(derived.losses, trained, derived.ratio)
    kept = {name: value if data.sets else np.asarray(value[0]) for name, value in arrays.items()}
    params = jax.tree.map(lambda a: np.asarray(a) if data.sets else np.asarray(a)[0], fitted)
    return FullFit(learner, name, data, counted, key, params, small, **kept)


def require_fit(fit: Any) -> None:
    """TypeError unless it is a fit to all cases [*Q, N]."""
    require_kind("a fit to all cases", fit, FullFit, "give what full_fit(key, learner, data) returned")


def row_key(key: Key, q: Any) -> Key:
    """The key of the fit to all cases of data set q, [] each."""
    return jax.random.fold_in(jax.random.fold_in(key, q), 0)


def require_squared(fit: FullFit, method: str) -> None:
    """Raises ValueError unless a learner of one output minimised squared errors, which are also the loss [*Q, N];
    TypeError for what is no fit.
    """
    require_fit(fit)
    if fit.loss is not squared or fit.data.y.shape[-1] != 1 or np.isnan(fit.ratio).any():
        raise ValueError(
            "expected the squared loss and a learner of one output that minimises squared errors for "
            f"{method}, got {named(fit.loss)} loss and {fit.data.y.shape[-1]} outputs of "
            f"{fit.learner}; use nic or newton_step"
        )


def require_ratio(fit: FullFit, method: str) -> None:
    """Raises ValueError unless the loss [*Q, N] is a multiple of what the learner minimises; TypeError for what is no
    fit.
    """
    require_fit(fit)
    if np.isnan(fit.ratio).any():
        raise ValueError(
            f"expected a loss that is a multiple of what {fit.learner} minimises for {method}, got "
            f"{named(fit.loss)}; give that loss to full_fit, and its argument minimised if the learner "
            "has no such method"
        )


def require_linear(fit: FullFit, method: str) -> None:
    """Raises ValueError unless predictions [*Q, N, 1] of squared errors are linear in the parameters."""
    require_squared(fit, method)
    gauss_newton = 2 * moments(fit) / fit.ratio[..., None, None]
    if not np.allclose(fit.hessian, gauss_newton, rtol=1e-8, atol=1e-8 * np.abs(gauss_newton).max(initial=0)):
        raise ValueError(
            f"expected a model that is linear in its parameters for {method}, got {fit.learner}; "
            "use newton_step or infinitesimal_jackknife"
        )


def moments(fit: FullFit) -> Float[np.ndarray, "*Q P P"]:
    """Sum over cases and outputs of psi psi', the Gauss-Newton matrix RR of the spec of squared errors, [*Q, P, P]."""
    psi = fit.jacobian.reshape(*fit.jacobian.shape[:-3], -1, fit.p)
    return np.asarray(np.swapaxes(psi, -1, -2) @ psi)


def curvature_of(fit: FullFit, curvature: str | None) -> str:
    """The curvature asked for; None is "gauss_newton" for learners that minimise squared errors, and "full" for others.

    Raises:
      ValueError: unknown, or Gauss-Newton's for another loss.
    """
    of_squares = fit.loss is squared and not np.isnan(fit.ratio).any()
    require_one_of("curvature", curvature, (None, "full", "gauss_newton"))
    if curvature == "gauss_newton" and not of_squares:
        raise ValueError(
            "expected a learner that minimises squared errors for curvature='gauss_newton', "
            f"got {named(fit.loss)} loss of {fit.learner}; choose 'full'"
        )
    return curvature or ("gauss_newton" if of_squares else "full")


def inverse(fit: FullFit, curvature: str | None) -> Float[np.ndarray, "*Q P P"]:
    """Inverse of the Hessian of what training made small, [*Q, P, P].

    Raises:
      ValueError: it is not positive definite to working precision.
    """
    kind = curvature_of(fit, curvature)
    losses = fit.hessian if kind == "full" else 2 * moments(fit) / fit.ratio[..., None, None]
    return positive_inverse(losses + fit.penalty_hessian, f"the {kind} Hessian of {fit.learner}")


def positive_inverse(matrix: Float[np.ndarray, "*Q P P"], what: str) -> Float[np.ndarray, "*Q P P"]:
    """Inverse of a symmetric positive definite matrix, scaled to a unit diagonal first so that units do no harm, [*Q,
    P, P].

    Raises:
      ValueError: its smallest eigenvalue, after scaling, is not above rounding.
    """
    diagonal = np.diagonal(matrix, axis1=-2, axis2=-1)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1))
    values, vectors = np.linalg.eigh(
        (matrix + np.swapaxes(matrix, -1, -2)) / 2 / scale[..., :, None] / scale[..., None, :]
    )
    least = values.min(initial=np.inf)
    if not least > 100 * matrix.shape[-1] * np.finfo(float).eps:
        raise ValueError(
            f"expected {what} to be positive definite, got a smallest eigenvalue of {least:.2g} (diagonal "
            "scaled to 1); use a penalty, fewer parameters, "
            "curvature='gauss_newton', more training, or fit.damped(amount)"
        )
    half = vectors / np.sqrt(values)[..., None, :] / scale[..., :, None]
    return np.asarray(half @ np.swapaxes(half, -1, -2))


@programs(1)
def _fitted(
    learner: Learner, row_keys: Any, x: Float[Array, "Q N D"], y: Float[Array, "Q N K"]
) -> tuple[Params, Int[Array, " Q"]]:
    """Parameters of a fit to all cases of each data set, and the number of what failed or 0."""

    def of_one_set(case):
        key, x, y = case
        with explained(learner, "fit(key, x, y, w)"):
            params = jax.tree.map(jnp.asarray, learner.fit(key, x, y, jnp.ones(len(x), x.dtype)))
        predictions_of(learner, params, x, y)  # of the right shape, before anything is derived from them
        return params, failure_of(learner, params)

    return mapped(of_one_set, (row_keys, x, y), _SETS_AT_ONCE)


class _Derivatives(NamedTuple):
    """What a FullFit holds of each data set; and what tells the ratio of its losses to those of training.

    Attributes:
      params, predictions, losses, jacobian, gradients, hessian, penalty_gradient, penalty_hessian: see `FullFit`.
      trained: the losses l_k that training made small, [Q, N].
      ratio: the sum of losses over that of `trained`, at targets that are not the predictions, [Q].
    """

    params: Float[Array, "Q P"]
    predictions: Float[Array, "Q N K"]
    losses: Float[Array, "Q N"]
    trained: Float[Array, "Q N"]
    ratio: Float[Array, " Q"]
    jacobian: Float[Array, "Q N K P"]
    gradients: Float[Array, "Q N P"]
    hessian: Float[Array, "Q P P"]
    penalty_gradient: Float[Array, "Q P"]
    penalty_hessian: Float[Array, "Q P P"]


@programs(3)
def _derived(
    learner: Learner,
    loss: Loss,
    minimised: Minimised,
    fitted: Params,
    x: Float[Array, "Q N D"],
    y: Float[Array, "Q N K"],
) -> _Derivatives:
    """All derivatives at the fit to each data set."""

    def of_one_set(case):
        params, x, y = case
        vector, predict, cost = as_functions(learner, minimised, params)

        def values(v):
            (trained, penalty), pull = jax.vjp(lambda v: cost(v, x, y), v)
            gradient = pull((jnp.ones_like(trained), jnp.zeros_like(penalty)))[0]
            penalty_gradient = pull((jnp.zeros_like(trained), jnp.ones_like(penalty)))[0]
            here = (predict(v, x), trained, gradient, penalty_gradient)
            return here, here

        # One pass forward over the gradients gives the second derivatives, and the Jacobians with them.
        slopes, (predictions, trained, _, penalty_gradient) = jax.jacfwd(values, has_aux=True)(vector)
        jacobian, gradients, hessian, penalty_hessian = slopes
        # Where all residuals are 0, as at a perfect fit, the ratio of two losses would be 0 / 0.
        spread = jnp.std(y)
        apart = predictions + jnp.where(spread > 0, spread, 1) if loss is squared else y
        return _Derivatives(
            vector,
            predictions,
            losses_of(loss, y, predictions),
            trained,
            jnp.sum(losses_of(loss, apart, predictions)) / jnp.sum(cost(vector, x, apart)[0]),
            jacobian,
            gradients,
            hessian,
            penalty_gradient,
            penalty_hessian,
        )

    return mapped(of_one_set, (fitted, x, y), _SETS_AT_ONCE)


def _checked(key: Key, learner: Any, data: Data, loss: Loss) -> Learner:
    """The learner as it is to be used on these data, if everything belongs together."""
    keys.require(key)
    if isinstance(learner, Data):
        raise TypeError("expected full_fit(key, learner, data), got data for the learner; give the learner second")
    require_kind("data as jaxgen.Data", data, Data, "make it with datasets.from_arrays(x, y)")
    if not callable(loss):
        raise TypeError(f"expected a loss as a function of (y, predictions), got {shown(loss)}; give loss.squared")
    data.checked()
    check_targets(loss, data.y, data.target)
    learner = as_learner(learner).for_data(data)
    check_predictions(loss, learner)
    check_missing(learner, data)
    ones = np.ones((1, data.n), np.uint8)
    with explained(learner, "check(data, plan)"):
        learner.check(data, Plan(ones, ones, "one fit to all cases"))
    return learner


def _ratio(
    losses: Float[np.ndarray, "Q N"], trained: Float[np.ndarray, "Q N"], ratio: Float[np.ndarray, " Q"]
) -> Float[np.ndarray, " Q"]:
    """The guessed ratio [Q] where it holds for every case, NaN elsewhere."""
    error = np.abs(losses - ratio[:, None] * trained).max(-1)
    return np.where(error <= 1e-9 * np.abs(losses).max(-1), ratio, np.nan)


def _refuse_failed(learner: Learner, code: Int[np.ndarray, " Q"]) -> None:
    if code.any():
        q = int(np.argmax(code != 0))
        reasons = learner.failures
        why = reasons[code[q] - 1] if 0 < code[q] <= len(reasons) else f"failure {code[q]}"
        raise ValueError(
            f"expected the fit to all cases to go well, got {int((code != 0).sum())} failed of {code.size} "
            f"for {learner} (data set {q}: {why}); change the learner or the data"
        )
