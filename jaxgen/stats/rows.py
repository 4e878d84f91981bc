"""Losses of the test cases of rows."""

import numpy as np
from jaxtyping import Float, Int

from jaxgen.stats.design import require_independent
from jaxgen.stats.statistic import OfRows
from jaxgen.types import Losses, Plan
from jaxgen.types.numbers import require


def every_case(losses: Losses) -> Float[np.ndarray, "*Q R N"]:
    """The losses of every row on every case, [*Q, R, N], in double precision.

    Raises:
      ValueError: only the means of rows were kept, or a row failed.
    """
    if isinstance(losses, OfRows):
        raise ValueError(
            f"expected losses of single cases, got the {losses.unit} of whole rows; use corrected_t, or "
            "corrected_k_fold_t and bouckaert_frank for folds"
        )
    if losses.values is None:
        raise ValueError(
            f"expected the losses of every case, got the means of rows only ({losses.plan.scheme}); "
            "assess with keep='cases'"
        )
    _ = losses.g
    return losses.values.astype(np.float64, copy=False)


def held_out(losses: Losses) -> Float[np.ndarray, "*Q R N"]:
    """The losses of every row on every case, [*Q, R, N], of a plan that holds its test cases out.

    Raises:
      ValueError: as `every_case` and `require_held_out`.
    """
    require_held_out(losses.plan)
    return every_case(losses)


def require_held_out(plan: Plan) -> None:
    """Raises ValueError for test cases that were trained on or count more than once."""
    trouble = _not_held_out(plan.train, plan.test)
    if trouble:
        raise ValueError(f"expected test cases held out of the training, got {trouble} ({plan.scheme})")


def cases_of_row(
    losses: Losses, row: int | None = None, least: int = 1, independent: bool = True
) -> Float[np.ndarray, "*Q n"]:
    """The losses of the test cases of one row, [*Q, n]; None takes the only row of a plan. `independent` refuses groups
    and series, as what treats these cases as a sample must.

    Raises:
      ValueError: no such row, or none chosen of several; test cases that were trained on or count more than once,
        different numbers of them in different data sets, or fewer than `least`; losses without cases, a failed row, or
        cases in groups or of a series.
    """
    plan, chosen = losses.plan, 0 if row is None else row
    if row is None and plan.resamples != 1:
        raise ValueError(
            f"expected one row of the plan, got row=None of {plan.resamples}; "
            f"give its number, from 0 to {plan.resamples - 1}"
        )
    require("row", chosen, 0, plan.resamples - 1, "the rows of the plan")
    train, test = plan.train[..., chosen, :], plan.test[..., chosen, :]
    sizes, trouble = (test > 0).sum(-1), _not_held_out(train, test)
    if not trouble and sizes.min() != sizes.max():
        trouble = f"{sizes.min()} to {sizes.max()} of them in different data sets; take one at a time, as in losses[q]"
    elif not trouble and sizes.min() < least:
        trouble = f"{sizes.min()}; leave more of them out"
    if trouble:
        raise ValueError(
            f"expected at least {least} test case{'s' * (least > 1)} held out of the training, got "
            f"{trouble} ({plan.scheme}, row {chosen})"
        )
    if independent:
        require_independent(plan, "a test set")
    values = every_case(losses)[..., chosen, :]
    return values[np.broadcast_to(test > 0, values.shape)].reshape(*values.shape[:-1], -1)


def tested(values: Float[np.ndarray, "*Q R N"], plan: Plan) -> Float[np.ndarray, "*Q N"]:
    """The mean loss [*Q, N] of each case over the rows that test it, from the losses [*Q, R, N].

    Raises:
      ValueError: a case that no row tests.
    """
    weights = plan.test.astype(np.float64)
    if not plan.test.any(axis=-2).all():
        raise ValueError(
            f"expected every case to be tested by some row, got {int((~plan.test.any(axis=-2)).sum())} "
            f"that are not ({plan.scheme}); use k_fold, leave_one_out or more resamples"
        )
    return np.asarray(np.sum(np.where(weights > 0, weights * values, 0), axis=-2) / weights.sum(-2))


def within(values: Float[np.ndarray, "*Q R N"], plan: Plan) -> Float[np.ndarray, "*Q R"]:
    """The variance of the losses of the test cases of each row, [*Q, R], divisor n2 - 1; NaN for a single case."""
    weights, sizes = plan.test.astype(np.float64), plan.test_sizes
    kept = np.where(weights > 0, values, 0)
    mean = np.sum(weights * kept, axis=-1, keepdims=True) / sizes[..., None]
    squares = np.sum(weights * np.square(kept - mean), axis=-1)
    return np.asarray(np.where(sizes > 1, squares / np.maximum(sizes - 1, 1), np.nan))


def span(sizes: Int[np.ndarray, "..."]) -> str:
    """A size, or the smallest and the largest, of sizes [...]."""
    return f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"


def _not_held_out(train: np.ndarray, test: np.ndarray) -> str:
    """What keeps test cases from being held out, and what to do; empty if nothing does."""
    if np.any((train > 0) & (test > 0)):
        return "some that were trained on; use a plan that leaves its test cases out, or estimate.apparent"
    return "some that count more than once; give test weights of 0 and 1" if test.max() > 1 else ""
