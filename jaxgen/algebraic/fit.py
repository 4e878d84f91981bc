"""One fit to all cases, with the derivatives that estimates without resampling are made of."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from jaxgen.loss import squared
from jaxgen.types import Data, Key, Learner, Loss, Minimum, Params, Plan, as_learner, keys

Minimised = Callable[[Params], Minimum]
"""params -> (free, rebuild, cost): the numbers that training chose, the parameters made of such numbers, and what
training made small as cost(free, x [n, D], y [n, K]) -> (losses [n], penalty []), that is the sum of both.
"""

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
      learner: what was fitted.
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
        """The fit to data set q of Q."""
        if self.data.sets is None:
            raise IndexError(
                "expected a fit with a leading axis Q to choose from, got that of a single data set; use it as it is"
            )
        arrays = {name: np.asarray(value[q]) for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays | {"data": self.data[q], "fitted": jax.tree.map(lambda a: a[q], self.fitted)})

    def damped(self, amount: float) -> "FullFit":
        """The same fit with `amount` added to the diagonal of the penalty's Hessian, for a Hessian that is not
        positive definite (Koh & Liang 2017).

        Raises:
          ValueError: the amount is negative.
        """
        if not amount >= 0:
            raise ValueError(
                f"expected an amount of at least 0, got {amount}; "
                "it is added to the diagonal of the Hessian of the sum of losses"
            )
        return replace(self, penalty_hessian=self.penalty_hessian + amount * np.eye(self.p))

    def __repr__(self) -> str:
        shape = f"N={self.n}, P={self.p}" if self.data.sets is None else f"Q={self.data.sets}, N={self.n}, P={self.p}"
        return (
            f"FullFit({self.learner!r}, {_name(self.loss)} loss: "
            f"{shape}, relative gradient norm {self.gradient.max():.2g})"
        )


def full_fit(
    key: Key,
    learner: Any,
    data: Data,
    loss: Loss = squared,
    minimised: Minimised | None = None,
) -> FullFit:
    """Fits a learner to all cases, in float64, and takes the derivatives that the estimates of this module are made of.

    The fit is that of `assess(key, learner, data, resample.full(n))` in 64 bits; in 32 bits a random start draws other
    numbers.

    Args:
      key: consumed; the randomness of the training.
      learner: what to fit.
      data: x [*Q, N, D] and y [*Q, N, K].
      loss: the per-case loss, best a multiple of what the learner minimises.
      minimised: a function of the learner's parameters to (free, rebuild, cost): a tree of the numbers that training
        chose; a function of such a tree to the learner's parameters; and what training made small, a function of
        (free, x [n, D], y [n, K]) to (losses [n], penalty []). None takes the learner's own method of this name;
        without one, all floating parameters that predictions depend on are taken as free, and the sum of `loss`,
        without a penalty, as minimised.
    Returns:
      FullFit.
    Raises:
      TypeError: the key is no typed key.
      ValueError: data and learner do not fit together, the fit failed, or a derivative is not finite.
    """
    keys.require(key)
    learner = as_learner(learner)
    data.checked()
    ones = np.ones((1, data.n), np.uint8)
    learner.check(data, Plan(ones, ones, "one fit to all cases"))
    with jax.enable_x64(True):
        x, y = (jnp.asarray(a if data.sets else a[None], jnp.float64) for a in (data.x, data.y))
        row_keys = jax.vmap(lambda q: row_key(key, q))(jnp.arange(len(x), dtype=jnp.int32))
        fitted, code = _fitted(learner, row_keys, x, y)
        _refuse_failed(learner, np.asarray(code))
        first = jax.tree.map(lambda a: a[0], fitted)
        own = _Own(learner) if learner.minimised(first) is not None else None
        small: Minimised = minimised or own or _of_all(learner, loss, first, x[0])
        derived = {name: np.asarray(value) for name, value in _derived(learner, loss, small, fitted, x, y).items()}
    bad = [name for name, value in derived.items() if name not in ("own", "ratio") and not np.isfinite(value).all()]
    if bad:
        raise ValueError(
            f"expected finite derivatives of {learner}, got others in {bad[0]}; "
            f"check that the fit went well and that the loss {_name(loss)} is smooth"
        )
    derived["ratio"] = _ratio(derived["losses"], derived.pop("own"), derived["ratio"])
    one = (lambda a: np.asarray(a)) if data.sets else (lambda a: np.asarray(a)[0])
    return FullFit(
        learner,
        data,
        loss,
        key,
        jax.tree.map(one, fitted),
        small,
        **{name: np.asarray(one(value)) for name, value in derived.items()},
    )


def row_key(key: Key, q: Any) -> Key:
    """The key of the fit to all cases of data set q, [] each."""
    return jax.random.fold_in(jax.random.fold_in(key, q), 0)


def require_squared(fit: FullFit, method: str) -> None:
    """Raises ValueError unless a learner of one output minimised squared errors, which are also the loss [*Q, N]."""
    if fit.loss is not squared or fit.data.y.shape[-1] != 1 or np.isnan(fit.ratio).any():
        raise ValueError(
            "expected the squared loss and a learner of one output that minimises squared errors for "
            f"{method}, got {_name(fit.loss)} loss and {fit.data.y.shape[-1]} outputs of "
            f"{fit.learner}; use nic or newton_step"
        )


def require_ratio(fit: FullFit, method: str) -> None:
    """Raises ValueError unless the loss [*Q, N] is a multiple of what the learner minimises."""
    if np.isnan(fit.ratio).any():
        raise ValueError(
            f"expected a loss that is a multiple of what {fit.learner} minimises for {method}, got "
            f"{_name(fit.loss)}; give that loss to full_fit, and its argument minimised if the learner "
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
    if curvature not in (None, "full", "gauss_newton") or (curvature == "gauss_newton" and not of_squares):
        raise ValueError(
            "expected curvature='full', or 'gauss_newton' for a learner that minimises squared errors, "
            f"got {curvature!r} for {_name(fit.loss)} loss of {fit.learner}; choose 'full'"
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


@dataclass(frozen=True)
class _Own:
    """A learner's `minimised`; unlike bound methods, those of equal learners are equal, so that they compile once."""

    learner: Any

    def __call__(self, params: Params) -> Minimum:
        minimum = self.learner.minimised(params)
        assert minimum is not None, "full_fit asks it of learners that can name one"
        return minimum


@partial(jax.jit, static_argnums=0)
def _fitted(learner: Any, row_keys: Any, x: Float[Array, "Q N D"], y: Float[Array, "Q N K"]) -> tuple[Any, Any]:
    def one(case):
        key, x, y = case
        params = learner.fit(key, x, y, jnp.ones(len(x), x.dtype))
        code = jnp.asarray(learner.failure(params), jnp.int32)
        return params, code

    return mapped(one, (row_keys, x, y), _SETS_AT_ONCE)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _derived(
    learner: Any, loss: Any, minimised: Any, fitted: Any, x: Float[Array, "Q N D"], y: Float[Array, "Q N K"]
) -> dict[str, Any]:
    """All that a FullFit holds of each data set; for `_ratio` also the losses as trained, `own`, and a first guess of
    `ratio`.
    """

    def one(case):
        params, x, y = case
        vector, predict, cost = as_functions(learner, minimised, params)

        def values(v):
            (own, penalty), pull = jax.vjp(lambda v: cost(v, x, y), v)
            found = {
                "predictions": predict(v, x),
                "own": own,
                "gradient": pull((jnp.ones_like(own), jnp.zeros_like(penalty)))[0],
            }
            found["penalty_gradient"] = pull((jnp.zeros_like(own), jnp.ones_like(penalty)))[0]
            return found, found

        slopes, found = jax.jacfwd(values, has_aux=True)(vector)
        predictions, spread = found["predictions"], jnp.std(y)
        shifted = (
            predictions + jnp.where(spread > 0, spread, 1) if loss is squared else y
        )  # away from 0 / 0 at a perfect fit
        return {
            "params": vector,
            "predictions": predictions,
            "losses": loss(y, predictions),
            "own": found["own"],
            "ratio": jnp.sum(loss(shifted, predictions)) / jnp.sum(cost(vector, x, shifted)[0]),
            "jacobian": slopes["predictions"],
            "gradients": slopes["own"],
            "hessian": slopes["gradient"],
            "penalty_gradient": found["penalty_gradient"],
            "penalty_hessian": slopes["penalty_gradient"],
        }

    return mapped(one, (fitted, x, y), _SETS_AT_ONCE)


def mapped(function: Callable[..., Any], rows: Any, at_once: int) -> Any:
    """A function of every row of arrays [R, ...], in equal blocks; `lax.map` would compile it once more for the rows
    left over.
    """
    r = len(jax.tree.leaves(rows)[0])
    blocks = -(-r // at_once)
    size = -(-r // blocks)
    which = jnp.minimum(jnp.arange(blocks * size), r - 1).reshape(blocks, size)
    if blocks == 1:
        return jax.vmap(function)(rows)
    found = jax.lax.map(lambda block: jax.vmap(function)(jax.tree.map(lambda a: a[block], rows)), which)
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[:r], found)


def as_functions(
    learner: Any, minimised: Minimised, params: Params
) -> tuple[Array, Callable[..., Array], Callable[..., tuple[Array, Array]]]:
    """Free parameters [P], and as functions of them: predictions (v, x), and what training made small (v, x, y),
    losses [n] and penalty [].
    """
    free, rebuild, cost = minimised(params)
    vector, tree = ravel_pytree(free)
    return vector, lambda v, x: learner.predict(rebuild(tree(v)), x), lambda v, x, y: cost(tree(v), x, y)


def _of_all(learner: Any, loss: Any, params: Params, x: Float[Array, "N D"]) -> Minimised:
    """All floating parameters are free that predictions at the first data set's fit depend on; nothing but the loss
    was made small.
    """
    leaves, tree = jax.tree.flatten(params)
    floating = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]

    def put(leaves, where, values):
        return jax.tree.unflatten(
            tree, [values[where.index(i)] if i in where else leaf for i, leaf in enumerate(leaves)]
        )

    slopes = jax.jacrev(lambda values: learner.predict(put(leaves, floating, values), x))([leaves[i] for i in floating])
    used = [i for i, slope in zip(floating, slopes, strict=True) if np.any(np.asarray(slope) != 0)]
    if not used:
        raise ValueError(
            f"expected predictions of {learner} that depend on its parameters, got none that do; "
            "give full_fit the argument minimised"
        )

    def minimised(params):
        leaves = jax.tree.leaves(params)

        def rebuild(values):
            return put(leaves, used, values)

        return (
            [leaves[i] for i in used],
            rebuild,
            lambda free, x, y: (loss(y, learner.predict(rebuild(free), x)), jnp.zeros((), x.dtype)),
        )

    return minimised


def _ratio(
    losses: Float[np.ndarray, "Q N"], own: Float[np.ndarray, "Q N"], ratio: Float[np.ndarray, " Q"]
) -> Float[np.ndarray, " Q"]:
    """The guessed ratio [Q] where it holds for every case, NaN elsewhere."""
    error = np.abs(losses - ratio[:, None] * own).max(-1)
    return np.where(error <= 1e-9 * np.abs(losses).max(-1), ratio, np.nan)


def _refuse_failed(learner: Any, code: np.ndarray) -> None:
    if code.any():
        q = int(np.argmax(code > 0))
        reasons = learner.failures
        why = reasons[code[q] - 1] if code[q] <= len(reasons) else f"failure {code[q]}"
        raise ValueError(
            f"expected the fit to all cases to go well, got {int((code > 0).sum())} failed of {code.size} "
            f"for {learner} (data set {q}: {why}); change the learner or the data"
        )


def _name(loss: Any) -> str:
    return getattr(loss, "__name__", repr(loss))
