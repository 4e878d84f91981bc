"""Approximate leave-out: what retraining on other weights would give, from one fit to all cases."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

from jaxgen.algebraic.criteria import FIXED_INPUTS, loss_unit, result
from jaxgen.algebraic.effective import leverages
from jaxgen.algebraic.fit import FullFit, curvature_of, inverse, require_fit, require_ratio, row_key
from jaxgen.algebraic.functions import Minimised, as_functions, mapped, programs
from jaxgen.types import Key, Learner, Loss, Losses, Params, Plan, keys
from jaxgen.types.calls import explained, failure_of, losses_of, predictions_of
from jaxgen.types.numbers import require_flag, require_kind, require_number, shown
from jaxgen.types.result import Result, described

_ROWS_AT_ONCE = 32
_FAR = 0.15
"""Beyond this mean squared change of the weights the infinitesimal jackknife says so: ten folds have 0.1, leaving out
a quarter 0.25, the bootstrap 1.
"""


@dataclass(frozen=True, eq=False)
class Approximation:
    """Losses that retraining would have, to some order.

    Attributes:
      losses: as `assess` would return them, [R, N]; every estimate, interval and test of `jaxgen.stats` takes them.
      params: approximate free parameters, [R, P].
      method: name of the method.
      source: where it was published.
      fit: the fit that all rows start from.
      note: what to beware of; empty if nothing.
    """

    losses: Losses
    params: Float[np.ndarray, "R P"]
    method: str
    source: str
    fit: FullFit
    note: str

    def result(self) -> Result:
        """The mean of G over the rows, [], with its approximate nature in the note.

        Raises:
          ValueError: a row failed.
        """
        sizes = self.losses.plan.train_sizes
        target = f"ER of {sizes.min()}{'' if sizes.min() == sizes.max() else f' to {sizes.max()}'} training cases"
        return described(
            self.method,
            self.source,
            target,
            loss_unit(self.fit),
            self.fit.name,
            np.asarray(self.losses.g.mean(-1)),
            note=self.note,
        )


def infinitesimal_jackknife(fit: FullFit, plan: Plan, *, curvature: str | None = None) -> Approximation:
    """First-order change of the parameters with the weights of the cases: w(train) = w - H^-1 sum_k (train_k - 1) g_k
    (Jaeckel 1972; Giordano et al. 2019).

    One matrix product serves all rows. Its error falls with the square of the distance of the weights from 1: good for
    leave-one-out and ten folds of many cases, poor for a quarter left out or the bootstrap. Units that a wrapper found
    from the training cases are kept.

    Args:
      fit: of `full_fit`, of one data set.
      plan: train and test weights [R, N].
      curvature: H from "gauss_newton" (which None means where squared errors are minimised) or the "full" Hessian.
    Returns:
      Approximation, with losses [R, N]; rows whose loss is not finite are marked as failed.
    Raises:
      TypeError: no fit, or no plan.
      ValueError: several data sets, a plan for other cases, or a Hessian that is not positive definite.
    """
    _require_fitting(fit, plan)
    params = jackknifed(fit, plan.train.astype(np.float64), curvature=curvature)
    values = _losses_at(fit, params)
    distance = float(np.square(plan.train - 1.0).mean())
    far = (
        f"the weights differ from 1 by a mean square of {distance:.2g}, far for a first-order method; "
        "use newton_step, or retrain"
        if distance > _FAR
        else ""
    )
    return _approximation(fit, plan, values, params, "Infinitesimal jackknife", "Giordano et al. 2019", far)


def jackknifed(
    fit: FullFit, weights: Float[np.ndarray, "R N"], *, curvature: str | None = None
) -> Float[np.ndarray, "R P"]:
    """Free parameters [R, P] by the infinitesimal jackknife for any weights [R, N] of the cases, of one data set; see
    `infinitesimal_jackknife`.

    Raises:
      TypeError: no fit.
      ValueError: several data sets, weights for other cases or that are no finite numbers, or a Hessian that is not
        positive definite.
    """
    require_fit(fit)
    if fit.data.sets is not None or np.ndim(weights) != 2 or np.shape(weights)[-1] != fit.n:
        raise ValueError(
            f"expected the fit to one data set and weights [R, {fit.n}], got {fit} and weights "
            f"{list(np.shape(weights))}; choose one with fit[q], and weigh each of its cases"
        )
    weights = np.asarray(weights)
    if weights.dtype.kind not in "biuf" or not np.isfinite(weights).all():
        raise ValueError(f"expected finite weights as numbers, got {shown(weights)} of others; correct them")
    weights = weights.astype(np.float64)
    return np.asarray(fit.params - (weights - 1) @ fit.gradients @ inverse(fit, curvature))


def newton_step(fit: FullFit, plan: Plan, *, curvature: str | None = None) -> Approximation:
    """One Newton step from the fit to all cases towards the minimum of each row's weighted objective.

    Exact for models that are linear in their parameters, with squared errors and a quadratic penalty, whatever the
    weights. On leave-one-out it is the approximate leave-one-out of Rad & Maleki (2020, ALO) for generalized linear
    models (derived: one step changes the linear predictor z_k by l'_k / l''_k h_k / (1 - h_k)). One system is solved
    for each row. For other models its error is of second order, like that of the infinitesimal jackknife, and not
    always smaller.

    Args, Returns, Raises: as for `infinitesimal_jackknife`; losses [R, N], and rows whose Hessian is not positive
      definite are marked as failed.
    """
    _require_fitting(fit, plan)
    kind = curvature_of(fit, curvature)
    psi = fit.jacobian.reshape(fit.n, -1, fit.p) * np.sqrt(2 / fit.ratio) if kind == "gauss_newton" else None
    cases, penalty = (fit.data.x, fit.data.y), (fit.penalty_gradient, fit.penalty_hessian)
    with jax.enable_x64(True):
        params = np.asarray(
            _stepped(fit.learner, fit.minimised, fit.fitted, *cases, fit.gradients, *penalty, psi, plan.train)
        )
    values = _losses_at(fit, params)
    return _approximation(fit, plan, values, params, "One Newton step", "Rad & Maleki 2020", "")


def unlearning(fit: FullFit, *, curvature: str | None = None) -> Result:
    """Leave-one-out by linear unlearning: mean of l_k + g_k' (H - H_k)^-1 g_k, H_k the Hessian of case k (Hansen &
    Larsen 1996).

    With squared errors and Gauss-Newton's H it is the mean of e_k^2 (1 + h_k) / (1 - h_k), the recalled form, here
    derived as the loss of the left-out case to first order in the step that unlearns it. So it follows the error for
    new targets at the same inputs, not leave-one-out, e_k^2 / (1 - h_k)^2. With H in place of H - H_k it would be NIC.

    Args:
      fit: of `full_fit`, of one data set where `curvature` is "full".
      curvature: "gauss_newton", which None means where squared errors are minimised, or "full".
    Returns:
      Result, [*Q], for curvature "full" [].
    Raises:
      ValueError: a loss that is not a multiple of what the learner minimises, a Hessian that is not positive definite,
        or a leverage of 1.
    """
    require_ratio(fit, "linear unlearning")
    if curvature_of(fit, curvature) == "gauss_newton" and fit.jacobian.shape[-2] == 1:
        h = leverages(fit)
        if not np.all(h < 1 - 1e-9):
            raise ValueError(
                f"expected leverages below 1, got {h.max():.6g}, a case without which the fit is not "
                "determined; use more cases or a penalty"
            )
        change = fit.losses * 2 * h / (1 - h)
    else:
        weights = (1 - np.eye(fit.n)).astype(np.uint8)
        step = newton_step(fit, Plan(weights, 1 - weights, "each case left out"), curvature=curvature)
        step.losses.g  # noqa: B018 - refuses failed rows
        # Where training ended beside the minimum, the step towards that minimum is no part of unlearning.
        moved = step.params - fit.params + inverse(fit, curvature) @ (fit.gradients.sum(-2) + fit.penalty_gradient)
        change = fit.ratio * np.einsum("np,np->n", fit.gradients, moved)
    return result(
        "Linear unlearning", "Hansen & Larsen 1996", FIXED_INPUTS, fit, np.asarray((fit.losses + change).mean(-1))
    )


def against_retraining(key: Key, approximation: Approximation, *, share: float = 0.05, warm: bool = False) -> Result:
    """How far an approximation is from exact retraining, on a random share of its rows.

    Rows are retrained by the learner with the key of the full fit, so that a network starts where that one did; it may
    still end in another minimum, which no approximation foresees.

    Args:
      key: consumed; which rows.
      approximation: of `infinitesimal_jackknife` or `newton_step`.
      share: share of the rows that are retrained, 0 < share <= 1; at least one.
      warm: retraining starts from the full fit, for learners whose `fit` takes a `start`; it then stays in that
        minimum.
    Returns:
      Result: the median of |G approximate - G retrained|, [], with the largest such error, the median of |G retrained
        - G of the full fit|, which is what the approximation was for, and the number of rows as parts.
    Raises:
      TypeError: no approximation, or no key; or a learner that cannot begin from a start.
      ValueError: a share out of range, a failed row, or one whose retraining failed.
    """
    what = "what infinitesimal_jackknife or newton_step returned"
    require_kind(what, approximation, Approximation, "give the whole approximation, not its losses")
    require_number("share", share, above=0, most=1, advice="give 0.05 for 5 % of the rows")
    require_flag("warm", warm)
    fit, losses = approximation.fit, approximation.losses
    rows = np.sort(keys.generator(key).choice(losses.resamples, max(1, round(share * losses.resamples)), replace=False))
    with jax.enable_x64(True):
        start = fit.minimised(fit.fitted)[0] if warm else None
        cases = (fit.data.x, fit.data.y, losses.train[rows])
        values, code = map(np.asarray, _retrained(fit.learner, fit.loss, row_key(fit.key, 0), *cases, start))
    failed = (code != 0) | ~np.isfinite(values).all(-1)
    if failed.any():
        raise ValueError(
            f"expected retraining to go well, got {int(failed.sum())} failed of {len(rows)} rows for "
            f"{fit.learner}; change the learner or the plan"
        )
    exact, before = (_means(each, losses.test[rows]) for each in (values, np.broadcast_to(fit.losses, values.shape)))
    error = np.abs(losses.g[rows] - exact)
    parts = {"largest": error.max(), "median_change": np.median(np.abs(exact - before)), "rows": float(len(rows))}
    method, target = (
        f"Error of the {approximation.method.lower()} against retraining",
        "|G approximate - G retrained| of a row",
    )
    arrays = {name: np.asarray(value, np.float64) for name, value in parts.items()}
    return described(
        method,
        approximation.source,
        target,
        loss_unit(fit),
        fit.name,
        np.asarray(np.median(error)),
        parts=arrays,
        note=approximation.note,
    )


def _losses_at(fit: FullFit, params: Float[np.ndarray, "R P"]) -> Float[np.ndarray, "R N"]:
    """The losses of every case at other free parameters."""
    cases = (fit.data.x, fit.data.y)
    with jax.enable_x64(True):
        return np.asarray(_evaluated(fit.learner, fit.loss, fit.minimised, fit.fitted, *cases, params))


@programs(3)
def _evaluated(
    learner: Learner,
    loss: Loss,
    minimised: Minimised,
    fitted: Params,
    x: Float[Array, "N D"],
    y: Float[Array, "N K"],
    params: Float[Array, "R P"],
) -> Float[Array, "R N"]:
    _, predict, _ = as_functions(learner, minimised, fitted)
    return mapped(lambda vector: losses_of(loss, y, predict(vector, x)), params, _ROWS_AT_ONCE)


@programs(2)
def _stepped(
    learner: Learner,
    minimised: Minimised,
    fitted: Params,
    x: Float[Array, "N D"],
    y: Float[Array, "N K"],
    gradients: Float[Array, "N P"],
    penalty_gradient: Float[Array, " P"],
    penalty_hessian: Float[Array, "P P"],
    psi: Float[Array, "N K P"] | None,
    train: UInt8[Array, "R N"],
) -> Float[Array, "R P"]:
    """Parameters after one Newton step, NaN where the Hessian is not positive definite; from psi [N, K, P], or from
    exact second derivatives.
    """
    vector, _, cost = as_functions(learner, minimised, fitted)

    def row(train):
        w = train.astype(x.dtype)
        losses = (
            jax.hessian(lambda v: jnp.sum(w * cost(v, x, y)[0]))(vector)
            if psi is None
            else jnp.einsum("n,nka,nkb->ab", w, psi, psi)
        )
        whole = losses + penalty_hessian
        # Scaled to a diagonal of ones, so that the units of the parameters do no harm; NaN where one is not positive.
        scale = jnp.sqrt(jnp.diagonal(whole))
        factor = jnp.linalg.cholesky(whole / scale[:, None] / scale[None])
        definite = jnp.min(jnp.square(jnp.diagonal(factor))) > 100 * len(vector) * float(jnp.finfo(x.dtype).eps)
        step = jax.scipy.linalg.cho_solve((factor, True), (w @ gradients + penalty_gradient) / scale) / scale
        return jnp.where(definite, vector - step, jnp.nan)

    return mapped(row, train, _ROWS_AT_ONCE)


@programs(2)
def _retrained(
    learner: Learner,
    loss: Loss,
    key: Key,
    x: Float[Array, "N D"],
    y: Float[Array, "N K"],
    train: UInt8[Array, "R N"],
    start: Any,
) -> tuple[Float[Array, "R N"], Int[Array, " R"]]:
    def row(train):
        with explained(learner, "fit(key, x, y, w)" if start is None else "fit(key, x, y, w, start)"):
            params = learner.fit_from(start, key, x, y, train.astype(x.dtype))
        return losses_of(loss, y, predictions_of(learner, params, x, y)), failure_of(learner, params)

    return mapped(row, train, _ROWS_AT_ONCE)


def _approximation(
    fit: FullFit,
    plan: Plan,
    values: Float[np.ndarray, "R N"],
    params: Float[np.ndarray, "R P"],
    method: str,
    source: str,
    note: str,
) -> Approximation:
    finite = np.asarray(np.all(np.isfinite(values), axis=-1))
    test, train = (_means(np.where(finite[:, None], values, np.nan), weights) for weights in (plan.test, plan.train))
    name = f"{fit.name} by {method[0].lower()}{method[1:]}"
    reasons = ("the Hessian of its training cases is not positive definite, or a loss is not finite",)
    losses = Losses(
        test, train, plan, name, loss_unit(fit).removesuffix(" loss"), (~finite).astype(np.uint8), reasons, values
    )
    return Approximation(losses, params, method, source, fit, "; ".join(filter(None, (fit.note, note))))


def _means(values: Float[np.ndarray, "R N"], weights: UInt8[np.ndarray, "R N"]) -> Float[np.ndarray, " R"]:
    return np.asarray(np.einsum("rn,rn->r", values, weights.astype(np.float64)) / weights.sum(-1, dtype=np.int64))


def _require_fitting(fit: FullFit, plan: Plan) -> None:
    require_fit(fit)
    require_kind("a plan as jaxgen.Plan", plan, Plan, "make it with a function of jaxgen.resample")
    if fit.data.sets is not None or plan.sets is not None:
        raise ValueError(
            "expected the fit to one data set and a plan for one, got several; choose one with fit[q] and plan[q]"
        )
    plan.checked()
    if plan.n != fit.n:
        raise ValueError(
            f"expected a plan for the {fit.n} cases of the fit, got one for {plan.n} ({plan.scheme}); "
            f"make the plan with n={fit.n}"
        )
