"""Sparse linear regression of many targets on the same inputs."""

import numpy as np
from jaxtyping import Float

from jaxgen.types.numbers import require_number

MOST_STEPS = 2000

_FEW_PRODUCTS = 2**18
"""Up to so many multiplications OpenBLAS multiplies matrices by one thread. With threads, the hundreds of small
products of a descent mostly wait for each other where other work keeps the cores busy: 12 core seconds in place of 1.
"""

_FEWEST_TARGETS = 8
"""Targets at a time for which products of matrices are still worth it."""


def sparse_fits(
    products: Float[np.ndarray, "T T"],
    moments: Float[np.ndarray, "T M"],
    penalties: Float[np.ndarray, "P M"],
    close: float = 1e-5,
) -> Float[np.ndarray, "P T M"]:
    """The coefficients b [T, M] that minimise b' G b / 2 - b' m + penalty |b|_1 for each target and each of its P
    penalties (Tibshirani 1996), by accelerated proximal gradients (Beck & Teboulle 2009, FISTA) with restarts
    (O'Donoghue & Candes 2015), each from the solution of the penalty before.

    Args:
      products: G = X'X / R of centred inputs, [T, T].
      moments: m = X'y / R of every target, [T, M].
      penalties: of each target, [P, M], in the unit of m; quickest if they fall.
      close: the largest change of a target's coefficients in a step, relative to the largest of them, that ends its
        descent.
    Returns:
      Coefficients [P, T, M].
    Raises:
      ValueError: inputs without any spread.
    """
    longest = float(np.linalg.eigvalsh(products)[-1])
    require_number("the largest eigenvalue of the inputs' products", longest, above=0, advice="vary the inputs")
    found = [np.zeros_like(moments.T)]
    for penalty in penalties:
        found.append(_descended(products / longest, moments.T / longest, penalty[:, None] / longest, found[-1], close))
    return np.swapaxes(found[1:], 1, 2)


def _descended(
    products: Float[np.ndarray, "T T"],
    moments: Float[np.ndarray, "M T"],
    penalty: Float[np.ndarray, "M 1"],
    start: Float[np.ndarray, "M T"],
    close: float,
) -> Float[np.ndarray, "M T"]:
    """The coefficients [M, T] of targets from a start, where the largest eigenvalue of the products is 1."""
    end, going = start.copy(), np.arange(len(start))
    found, ahead, momentum = start, start, np.ones((len(start), 1))
    for _ in range(MOST_STEPS):
        step = ahead + moments - _product(ahead, products)
        new = step - np.clip(step, -penalty, penalty)
        change = new - found
        rising = np.einsum("mt,mt->m", ahead - new, change)[:, None] > 0
        momentum = np.where(rising, 1.0, momentum)
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead, found, momentum = new + (momentum - 1) / faster * change, new, faster
        far = np.abs(change).max(1) > close * np.abs(new).max(1)
        if not far.all():
            end[going[~far]] = found[~far]
            going, arrays = going[far], (found, ahead, momentum, moments, penalty)
            found, ahead, momentum, moments, penalty = (each[far] for each in arrays)
            if not len(going):
                break
    end[going] = found
    return end


def _product(many: Float[np.ndarray, "m T"], products: Float[np.ndarray, "T T"]) -> Float[np.ndarray, "m T"]:
    """many @ products, by some rows at a time where these are few enough for one thread."""
    some = _FEW_PRODUCTS // products.size
    if some < _FEWEST_TARGETS or len(many) <= some:
        return many @ products
    whole = len(many) // some * some
    stack = many[:whole].reshape(-1, some, len(products)) @ products
    return np.concatenate([stack.reshape(whole, -1), many[whole:] @ products])
