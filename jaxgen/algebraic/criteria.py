"""Estimates of the generalization error from one fit to all cases."""

import numpy as np
from jaxtyping import Float

from jaxgen.algebraic.effective import effective_numbers, leverages, p_eff
from jaxgen.algebraic.fit import FullFit, inverse, require_fit, require_linear, require_ratio, require_squared
from jaxgen.types import Losses
from jaxgen.types.identity import named
from jaxgen.types.numbers import require, require_flag, require_kind, require_number, require_one_of
from jaxgen.types.result import Result, described

Numbers = np.ndarray | np.float64
"""An array [*Q], which without Q NumPy likes to make a scalar."""
FIXED_INPUTS = "the error for new targets at the same inputs (fixed X)"
FIRST_ORDER = "ER, to first order in 1/N, where it is also the error for new targets at the same inputs"


def fpe(full: Losses, parameters: int, *, transform: str = "none") -> Float[np.ndarray, "*Q"]:
    """Final prediction error (Akaike 1969): S_N (N + p) / (N - p).

    It assumes squared loss, a model that contains the truth, no regularisation, and test inputs like the training
    inputs.

    Args:
      full: losses of one fit to all cases, from the plan `resample.full(n)`; its apparent error is S_N.
      parameters: fitted parameters, p < N.
      transform: "none", or "log1p" for the estimate of the average of log(1 + G): log(1 + s2) + s2 p / ((1 + s2) N)
        with s2 = N S_N / (N - p). (Larsen & Hansen 1995, footnote 14, whose s2 lacks the N.)
    Returns:
      The estimate for each data set, [*Q], in the unit of the loss, or of log(1 + loss).
    Raises:
      TypeError: no losses.
      ValueError: not the losses of one full fit, not squared loss, or p is not within 1 and N - 1.
    """
    require_kind("losses of one fit to all cases", full, Losses, "assess a learner with resample.full(n) first")
    n = full.plan.n
    if full.resamples != 1 or not (np.all(full.train == 1) and np.all(full.test == 1)):
        raise ValueError(
            f"expected the losses of one fit to all cases, got {full.plan.scheme}; assess with resample.full({n})"
        )
    if full.loss != "squared":
        raise ValueError(f"expected squared loss, got {full.loss}; FPE is derived for squared loss only")
    require("parameters", parameters, 1, n - 1, f"fewer than the {n} cases")
    require_one_of("transform", transform, ("none", "log1p"))
    apparent = full.apparent[..., 0]
    if transform == "none":
        return np.asarray(apparent * (n + parameters) / (n - parameters))
    noise = n * apparent / (n - parameters)
    return np.asarray(np.log1p(noise) + noise * parameters / ((1 + noise) * n))


def fper(fit: FullFit, *, curvature: str | None = None) -> Result:
    """Final prediction error with regularisation.

    noise (1 + g1 / N) + g3, with noise = (S_N - g3) / (1 + (g1 - 2 g2) / N) and the numbers of `effective_numbers`.
    Without a penalty it is FPE. Use it for a penalised fit of squared errors, for new targets at the same inputs.

    Source: Larsen & Hansen 1994, in the form of the NNSYSID toolbox, which cites them; that the paper has it term for
    term is not confirmed. Derived: it is unbiased for ridge regression at fixed inputs if g3 uses the true weights;
    with fitted ones it is slightly too high.

    Args:
      fit: of `full_fit`, by squared errors.
      curvature: None for Gauss-Newton's Hessian, or "full".
    Returns:
      Result, [*Q], with g1, g2, g3 and the noise variance as parts. The noise is 0 where S_N is below g3.
    Raises:
      ValueError: not squared errors of one output, as many effective parameters as cases, or a Hessian that is not
        positive definite.
    """
    numbers = effective_numbers(fit, curvature=curvature)
    noise = np.maximum(fit.apparent - numbers.g3, 0) / _shrinkage(fit, numbers.g1, numbers.g2, "FPER")
    return result(
        "FPER",
        "Larsen & Hansen 1994",
        FIXED_INPUTS,
        fit,
        noise * (1 + numbers.g1 / fit.n) + numbers.g3,
        noise=noise,
        g1=numbers.g1,
        g2=numbers.g2,
        g3=numbers.g3,
    )


def gpe(fit: FullFit, *, noise: float | None = None, curvature: str = "gauss_newton") -> Result:
    """Generalized prediction error: S_N + 2 noise p_eff / N (Moody 1992).

    Use it where the variance of the noise is known, or p_eff is what is asked for; `fper` otherwise, which knows the
    bias of the penalty.

    Args:
      fit: of `full_fit`, by squared errors.
      noise: variance of the noise; None takes S_N / (1 + (g1 - 2 g2) / N), with which this is FPER without g3.
      curvature: "gauss_newton", with which p_eff is g2, or "full".
    Returns:
      Result, [*Q], with p_eff and the noise variance as parts.
    Raises:
      ValueError: not squared errors of one output, negative noise, as many effective parameters as cases, or a Hessian
        that is not positive definite.
    """
    if noise is not None:
        require_number("the variance of the noise", noise, least=0, advice="leave it out to have it estimated")
    numbers = effective_numbers(fit, curvature=curvature)
    variance = (
        fit.apparent / _shrinkage(fit, numbers.g1, numbers.g2, "GPE")
        if noise is None
        else np.full_like(fit.apparent, noise)
    )
    effective = p_eff(fit, curvature=curvature)
    return result(
        "GPE",
        "Moody 1992",
        FIXED_INPUTS,
        fit,
        fit.apparent + 2 * variance * effective / fit.n,
        noise=variance,
        p_eff=effective,
    )


def nic(fit: FullFit, *, hc3: bool = False, curvature: str | None = "full") -> Result:
    """Network information criterion, as an estimate of the mean loss: S_N + tr(G Q^-1) / N (Murata, Yoshizawa & Amari
    1994).

    G is the covariance of the cases' gradients and Q the mean Hessian with the penalty's. The model need not contain
    the truth, and any loss will do that the learner minimises. For minus log-likelihoods it is Takeuchi's TIC / 2N.

    Recalled and derived, not read: at the minimum the covariance is the second moment of the gradients of loss +
    penalty / N.

    Args:
      fit: of `full_fit`, with a loss that is a multiple of what the learner minimises.
      hc3: divides each gradient by 1 - h_k (squared errors only), since residuals of the fit are too small: of use for
        small N. The second moments are then those of MacKinnon & White's HC3 (1985).
      curvature: "full", or "gauss_newton" for squared errors.
    Returns:
      Result, [*Q], with the correction that is added to S_N as a part.
    Raises:
      ValueError: another loss than the learner's, a leverage of 1, or a Hessian that is not positive definite.
    """
    correction = _covariance_trace(fit, 0, hc3, curvature, "NIC")
    return result(
        "NIC" + (" with HC3" if hc3 else ""),
        "Murata, Yoshizawa & Amari 1994",
        FIRST_ORDER,
        fit,
        fit.apparent + correction,
        correction=correction,
    )


def gen(fit: FullFit, lag: int, *, hc3: bool = False, curvature: str | None = "full") -> Result:
    """Generalization error estimate for dependent cases: NIC with covariances of the gradients up to a lag, weighted
    by 1 - t / N (Larsen 1992). Experimental.

    S_N + 2/N tr[(R(0) + sum_t (1 - t/N) (R(t) + R(t)')) H^-1] with R(t) = 1/N sum_k psi_k e_k psi_k+t' e_k+t. Use it
    where inputs and errors both depend on earlier ones; with independent errors, as in `simulate.linear_ar`, NIC needs
    no correction. With lag 0 it is NIC (derived).

    Recalled, not read. Here the gradients are centred, which changes nothing without a penalty, and any loss may be
    used. Simulated, least squares of 3 inputs and N = 300, inputs and errors autoregressive with coefficient 0.8: mean
    G 1.044, NIC 0.970, FPE 0.971, GEN with lag 10 1.023, standard errors .003 (4000 data sets).

    Args:
      fit: of `full_fit`, with a loss that is a multiple of what the learner minimises; its cases in the order of time.
      lag: the largest distance of dependent cases, 0 <= lag < N.
      hc3, curvature: see `nic`.
    Returns:
      Result, [*Q], with the correction that is added to S_N as a part; it may be negative, as truncated covariances
      need not be positive.
    Raises:
      ValueError: a lag out of range, or as for `nic`.
    """
    require_fit(fit)
    require("lag", lag, 0, fit.n - 1, f"the largest distance of {fit.n} cases")
    correction = _covariance_trace(fit, lag, hc3, curvature, "GEN")
    return result(
        f"GEN with lag {lag}",
        "Larsen 1992",
        FIRST_ORDER + "; of dependent cases",
        fit,
        fit.apparent + correction,
        correction=correction,
    )


def s_p(fit: FullFit) -> Result:
    """S_p: unbiased for ER of least squares on independent Gaussian inputs (Hocking 1976; Breiman & Freedman 1983).

    N S_N (N - 1) / ((N - P) (N - P - 1)) without an intercept, S_N (N + 1) (N - 2) / ((N - P) (N - P - 1)) with one
    among the P parameters (derived). Use it where inputs are drawn anew with the targets, as in most data; FPE is for
    the same inputs.

    Args:
      fit: of `full_fit`, of a linear model without a penalty; an intercept is found by its Jacobian.
    Returns:
      Result, [*Q], with the noise variance N S_N / (N - P) as a part.
    Raises:
      ValueError: a model with a penalty or not linear in its parameters, or fewer than P + 2 cases.
    """
    require_plain(fit, "S_p")
    n, p = fit.n, fit.p
    if n < p + 2:
        raise ValueError(f"expected at least {p + 2} cases for {p} parameters, got {n}; S_p needs N > P + 1")
    noise = n * fit.apparent / (n - p)
    factor = (n + 1) * (n - 2) / n if has_intercept(fit) else n - 1
    return result(
        "S_p", "Hocking 1976", "ER, for independent Gaussian inputs", fit, noise * factor / (n - p - 1), noise=noise
    )


def gcv(fit: FullFit, *, curvature: str | None = None) -> Result:
    """Generalized cross-validation: S_N / (1 - g2 / N)^2 (Craven & Wahba 1979; Golub, Heath & Wahba 1979).

    It is leave-one-out with every leverage replaced by their mean; use `leave_one_out`, which is as cheap here, to see
    single cases. For least squares its mean is noise (1 + P / (N - P)), just below ER on Gaussian inputs, noise (1 + P
    / (N - P - 1)) (derived).

    Raises:
      ValueError: not squared errors of one output, as many effective parameters as cases, or a Hessian that is not
        positive definite.
    Returns:
      Result, [*Q], with g2 as a part.
    """
    g2 = effective_numbers(fit, curvature=curvature).g2
    _refuse_saturated(fit, 1 - g2 / fit.n, "GCV")
    return result(
        "GCV", "Craven & Wahba 1979", "ER, to first order in 1/N", fit, fit.apparent / (1 - g2 / fit.n) ** 2, g2=g2
    )


def leave_one_out(fit: FullFit) -> Result:
    """Exact leave-one-out cross-validation of least squares with or without a ridge, without refitting.

    The mean of (e_k / (1 - h_k))^2 (Allen 1974, PRESS / N). It is exact for models that are linear in their parameters
    with a quadratic penalty. Units that a wrapper found from the training cases are kept, so under Normalised it is
    exact for least squares without a ridge only.

    Returns:
      Result, [*Q], with the largest leverage as a part.
    Raises:
      ValueError: a model that is not linear in its parameters, or a leverage of 1: a case without which the fit is not
        determined.
    """
    require_linear(fit, "exact leave-one-out")
    h = leverages(fit)
    _refuse_saturated(fit, 1 - h, "leave-one-out")
    loss = np.square(fit.residuals[..., 0] / (1 - h)).mean(-1)
    return result(
        "Leave-one-out", "Allen 1974", f"ER of {fit.n - 1} training cases", fit, loss, largest_leverage=h.max(-1)
    )


def result(method: str, source: str, target: str, fit: FullFit, estimate: Numbers, **parts: Numbers) -> Result:
    """A Result [*Q] about a fit, with its apparent error and further parts [*Q]."""
    kept = {"apparent": fit.apparent} | {name: np.asarray(value, np.float64) for name, value in parts.items()}
    return described(method, source, target, loss_unit(fit), fit.name, np.asarray(estimate), parts=kept, note=fit.note)


def loss_unit(fit: FullFit) -> str:
    """What the losses of a fit are called."""
    return f"{named(fit.loss)} loss"


def require_plain(fit: FullFit, method: str) -> None:
    """Raises ValueError unless this is least squares [*Q] of a linear model of full rank, without a penalty, with more
    cases than parameters.
    """
    require_linear(fit, method)
    if np.any(fit.penalty_hessian != 0) or np.any(fit.penalty_gradient != 0):
        raise ValueError(f"expected a fit without a penalty for {method}, got {fit.learner}; use leave_one_out or gcv")
    if fit.n <= fit.p:
        raise ValueError(
            f"expected more cases than the {fit.p} parameters for {method}, got {fit.n}; use a smaller model"
        )
    inverse(fit, None)


def has_intercept(fit: FullFit) -> bool:
    """Whether some parameters of a linear model [*Q] move all predictions alike."""
    psi = fit.jacobian[..., 0, :]
    ones = np.ones((*psi.shape[:-1], 1))
    h = 2 / fit.ratio[..., None, None] * inverse(fit, None)
    return bool(np.allclose(psi @ (h @ (np.swapaxes(psi, -1, -2) @ ones)), 1, atol=1e-8))


def _shrinkage(fit: FullFit, g1: Numbers, g2: Numbers, method: str) -> Float[np.ndarray, "*Q"]:
    """1 + (g1 - 2 g2) / N, by which the noise variance in the residuals shrinks, [*Q]."""
    share = np.asarray(1 + (g1 - 2 * g2) / fit.n)
    _refuse_saturated(fit, share, method)
    return share


def _refuse_saturated(fit: FullFit, left: Numbers, method: str) -> None:
    if not np.all(left > 1e-9):
        raise ValueError(
            f"expected a fit that leaves residuals for {method}, got {fit.p} parameters for {fit.n} cases "
            "that fit some of them whatever their targets; use more cases, fewer parameters or a penalty"
        )


def _covariance_trace(fit: FullFit, lag: int, hc3: bool, curvature: str | None, method: str) -> Float[np.ndarray, "*Q"]:
    """tr(G Q^-1) / N, [*Q], with G summed over covariances of the cases' gradients up to a lag."""
    require_flag("hc3", hc3)
    require_ratio(fit, method)
    # At the minimum the mean gradient of the losses is that of -penalty / N, so these are of loss + penalty / N.
    g = fit.gradients - fit.gradients.mean(-2, keepdims=True)
    if hc3:
        require_squared(fit, f"{method} with hc3")
        left = 1 - leverages(fit)
        _refuse_saturated(fit, left, f"{method} with hc3")
        g = g / left[..., None]
    moved = g @ inverse(fit, curvature)
    # tr(g_k g_j' Q^-1) is the product of g_k and Q^-1 g_j, so no covariance [P, P] is formed.
    total = np.sum(g * moved, axis=(-2, -1))
    for t in range(1, lag + 1):
        total = total + 2 * (1 - t / fit.n) * np.sum(g[..., t:, :] * moved[..., :-t, :], axis=(-2, -1))
    return np.asarray(fit.ratio * total / fit.n)
