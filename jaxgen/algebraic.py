"""Instead of resampling: estimates of the generalization error from one fit to all cases."""

import numpy as np
from jaxtyping import Float

from jaxgen.types import Losses


def fpe(full: Losses, parameters: int, transform: str = "none") -> Float[np.ndarray, "*Q"]:
    """Final prediction error (Akaike 1969): S_N (N + p) / (N - p).

    It assumes squared loss, a model that contains the truth, no regularisation, and test inputs like the training inputs.

    Args:
      full: losses of one fit to all cases, from the plan `resample.full(n)`; its apparent error is S_N.
      parameters: fitted parameters, p < N.
      transform: "none", or "log1p" for the estimate of the average of log(1 + G):
        log(1 + s2) + s2 p / ((1 + s2) N) with s2 = N S_N / (N - p). (Larsen & Hansen 1995, footnote 14, whose s2 lacks the N.)
    Returns:
      The estimate for each data set, [*Q], in the unit of the loss, or of log(1 + loss).
    Raises:
      ValueError: not the losses of one full fit, not squared loss, or p is not within 1 and N - 1.
    """
    n = full.plan.n
    if full.resamples != 1 or not (np.all(full.train == 1) and np.all(full.test == 1)):
        raise ValueError(f"expected the losses of one fit to all cases, got {full.plan.scheme}; assess with resample.full({n})")
    if full.loss != "squared":
        raise ValueError(f"expected squared loss, got {full.loss}; FPE is derived for squared loss only")
    if not 0 < parameters < n:
        raise ValueError(f"expected between 1 and {n - 1} parameters for {n} cases, got {parameters}; FPE needs fewer parameters than cases")
    if transform not in ("none", "log1p"):
        raise ValueError(f"expected transform='none' or 'log1p', got {transform!r}; choose one of them")
    apparent = full.apparent[..., 0]
    if transform == "none":
        return np.asarray(apparent * (n + parameters) / (n - parameters))
    noise = n * apparent / (n - parameters)
    return np.asarray(np.log1p(noise) + noise * parameters / ((1 + noise) * n))
