"""How many parameters a penalised fit really uses: there is no single number (Larsen & Hansen 1994)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from jaxgen.algebraic.fit import FullFit, inverse, moments, require_squared


@dataclass(frozen=True, eq=False)
class Effective:
    """Effective numbers of parameters, each [*Q].

    With RR the sum of psi psi', N C_N = sum e^2 + w'Dw and H = RR + D:

    Attributes:
      g1: tr(RR H^-1 RR H^-1).
      g2: tr(RR H^-1).
      g3: w'D H^-1 RR H^-1 D w / N, the mean squared bias, in the unit of the loss; D w is half the penalty's gradient
        where that is not quadratic.
    """

    g1: Float[np.ndarray, "*Q"]
    g2: Float[np.ndarray, "*Q"]
    g3: Float[np.ndarray, "*Q"]


def effective_numbers(fit: FullFit, *, curvature: str | None = None) -> Effective:
    """g1, g2 and g3 of a fit by squared errors (Larsen & Hansen 1994), [*Q] each; all P, P and 0 without a penalty.

    For squared errors with Gaussian noise at fixed inputs the mean apparent error is noise (1 + (g1 - 2 g2) / N) + g3,
    and that for new targets noise (1 + g1 / N) + g3, if g3 is taken at the true w: derived, and the reason for all
    three.

    Args:
      fit: of `full_fit`.
      curvature: H from "gauss_newton", which None means here, or from the "full" Hessian.
    Raises:
      ValueError: not squared errors of one output, or a Hessian that is not positive definite.
    """
    require_squared(fit, "effective numbers of parameters")
    rr, h = moments(fit), _inverse_in_squares(fit, curvature)
    both = rr @ h
    half = fit.penalty_gradient * fit.ratio[..., None] / 2
    bias = np.einsum("...a,...ab,...bc,...cd,...d->...", half, h, rr, h, half, optimize=True) / fit.n
    return Effective(
        np.asarray(np.einsum("...ab,...ba->...", both, both)),
        np.asarray(np.trace(both, axis1=-2, axis2=-1)),
        np.asarray(bias),
    )


def p_eff(fit: FullFit, *, curvature: str = "full") -> Float[np.ndarray, "*Q"]:
    """Moody's effective number of parameters, [*Q] (Moody 1992): 1/2 sum_iab T_ia (U^-1)_ab T_ib.

    T_ia is the second derivative of the summed loss by y_i and w_a, U the Hessian of what training made small. For
    squared errors T = -2 psi, so that it is tr(RR H^-1) with H = U / 2 (derived; the general form is recalled, not
    read): g2 with Gauss-Newton's Hessian.

    Raises:
      ValueError: not squared errors of one output, or a Hessian that is not positive definite.
    """
    require_squared(fit, "the effective number of parameters")
    return np.asarray(np.trace(moments(fit) @ _inverse_in_squares(fit, curvature), axis1=-2, axis2=-1))


def leverages(fit: FullFit, *, curvature: str | None = None) -> Float[np.ndarray, "*Q N"]:
    """h_k = psi_k' H^-1 psi_k of every case, [*Q, N]: the derivative of its prediction by its target where the model
    is linear.

    Raises:
      ValueError: not squared errors of one output, or a Hessian that is not positive definite.
    """
    require_squared(fit, "leverages")
    psi = fit.jacobian[..., 0, :]
    return np.asarray(
        np.einsum("...na,...ab,...nb->...n", psi, _inverse_in_squares(fit, curvature), psi, optimize=True)
    )


def _inverse_in_squares(fit: FullFit, curvature: str | None) -> Float[np.ndarray, "*Q P P"]:
    """H^-1, where the Hessian of what training made small is 2 H / ratio."""
    return 2 / fit.ratio[..., None, None] * inverse(fit, curvature)
