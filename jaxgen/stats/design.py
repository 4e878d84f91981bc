"""What a plan is, seen from its weights: folds, random splits, rows that repeat each other, one test set for all.

Statistics look at the weights [R, N] themselves and not at the name of a scheme, so that a plan of your own, or one
that another tool made, is treated as what it is. Only what weights cannot show is taken from labels: the design that
rows belong to, and the group or the time of a case.
"""

from dataclasses import replace

import numpy as np
import scipy
from jaxtyping import Float, Int, UInt8, UInt64

from jaxgen.types import Losses, Plan
from jaxgen.types.drawn import DrawnPlan

UNLIKELY = 1e-6
"""Random splits treat cases as unequally as this with this probability; such plans are taken for no random splits."""


def overlap(plan: Plan) -> bool:
    """Whether any two rows share a case, trained or tested on: the halves of two-fold cross-validation do."""
    return bool(np.max(np.sum((plan.train > 0) | (plan.test > 0), axis=-2)) > 1)


def divisions(plan: Plan) -> Int[np.ndarray, " R"]:
    """The number of the division into folds that each row belongs to, [R]: by the label "repeat"; rows without it are
    taken one division after the other.
    """
    if "repeat" in plan.labels:
        return np.unique(plan.labels["repeat"], return_inverse=True)[1]
    # Every division tests the first case once.
    repeats = max(int(plan.test[..., 0].sum(-1).max()), 1)
    return np.arange(plan.resamples) * repeats // plan.resamples


def not_folds(plan: Plan, complete: bool = True) -> str:
    """Why rows are no folds, each division testing every case once; empty if they are. `complete` asks that they train
    on all that they do not test.
    """
    if isinstance(plan, DrawnPlan):
        return "rows that are drawn one by one"
    times, number = plan.test.sum(-2), divisions(plan)
    if plan.train.max() > 1:
        return "cases drawn more than once (a bootstrap)"
    if times.min() == 0:
        return "cases that no row tests"
    if times.min() != times.max() or np.ptp(np.bincount(number)):
        return "some cases tested more often than others, or rows of several kinds"
    if any((plan.test[..., number == division, :].sum(-2) != 1).any() for division in range(int(number.max()) + 1)):
        return "rows that do not test every case once before they test one again"
    return "rows that do not train on all that they do not test" if complete and np.any(plan.train == plan.test) else ""


def ten_halves(values: Float[np.ndarray, "*Q R"], plan: Plan) -> Float[np.ndarray, "*Q 5 2"]:
    """The values p_ij of repeat i, fold j, [*Q, 5, 2], from those of rows [*Q, 10].

    Raises:
      ValueError: a plan without the labels of five times two halves.
    """
    labelled = {"repeat", "fold"} <= set(plan.labels) and plan.resamples == 10
    if not labelled or divisions(plan).max() != 4 or not_folds(plan):
        raise ValueError(
            f"expected 10 rows with the labels repeat and fold, five times two halves, got {plan.scheme}; "
            "use resample.five_by_two"
        )
    order = np.lexsort((plan.labels["fold"], plan.labels["repeat"]))
    return values[..., order].reshape(*values.shape[:-1], 5, 2)


def groups(plan: Plan) -> int:
    """How many groups of dependent cases there are; 0 where all cases are independent."""
    number = len(np.unique(plan.cases["group"])) if "group" in plan.cases else 0
    return number if number < plan.n else 0


def serial(plan: Plan) -> bool:
    """Whether the cases are a series: they carry times, or every row tests cases that come after all those that it
    trains on, and other rows train on them.
    """
    if "time" in plan.cases:
        return True
    if plan.resamples < 2 or "instance" in plan.labels or isinstance(plan, DrawnPlan):
        return False
    case = np.arange(plan.n)
    last = np.where(plan.train > 0, case, -1).max(-1)
    first = np.where(plan.test > 0, case, plan.n).min(-1)
    return bool((last < first).all()) and trained_and_tested(plan)


def dependent(plan: Plan) -> str:
    """Why the cases of a plan are not independent of each other, as far as it says; empty if it says nothing of it."""
    if serial(plan):
        return "a series, whose cases depend on each other"
    return f"{groups(plan)} groups of cases that depend on each other" if groups(plan) else ""


def require_independent(plan: Plan, what: str) -> None:
    """ValueError for groups or a series, of which `what` knows nothing."""
    if trouble := dependent(plan):
        remedy = (
            "use k_fold with groups, and grouped or grouped_t"
            if groups(plan) and not serial(plan)
            else ("no variance here allows for that, so use estimates without one")
        )
        raise ValueError(f"expected independent cases for {what}, got {trouble} ({plan.scheme}); {remedy}")


def first_alike(plan: Plan) -> Int[np.ndarray, " R"]:
    """For each row the number of the first row with the same training and test weights, [R]."""
    if isinstance(plan, DrawnPlan):  # all differ, or it would not have been made
        return np.arange(plan.resamples)
    columns = np.stack([_marks(plan.train), _marks(plan.test)]).reshape(-1, plan.resamples)
    if not not_folds(plan):
        # A fold may stand in two divisions by chance; only a whole division that stands twice repeats anything.
        division = divisions(plan)
        order = np.lexsort((*columns, division))
        whole = np.concatenate(columns[:, order].reshape(len(columns), int(division.max()) + 1, -1).transpose(0, 2, 1))
        _, one, which = np.unique(whole, axis=1, return_index=True, return_inverse=True)
        at = order.reshape(whole.shape[1], -1)
        first = np.empty(plan.resamples, np.int64)
        first[at] = at[one[which.reshape(-1)]]
        return first
    _, first, inverse = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    return first[inverse.reshape(-1)]


def without_repeats(losses: Losses) -> Losses:
    """The mean losses [*Q, R] with rows of equal training and test weights averaged into one: other seeds of a
    training, or a division into folds that stands twice, show nothing of other data. Losses of cases are not kept.

    Raises:
      ValueError: a row failed.
    """
    alike = first_alike(losses.plan)
    kept, position = np.unique(alike, return_inverse=True)
    if len(kept) == losses.resamples:
        return losses
    share = (position[None, :] == np.arange(len(kept))[:, None]) / np.bincount(position)[:, None]
    scheme = f"{losses.plan.scheme} with {losses.resamples - len(kept)} repeated rows averaged"
    return replace(
        losses,
        test_mean=losses.g @ share.T,
        train_mean=np.full((*losses.g.shape[:-1], len(kept)), np.nan),
        failure=losses.failure[..., kept],
        values=None,
        predictions=None,
        info={},
        plan=losses.plan.chosen(kept, scheme),
    )


def repeated(plan: Plan) -> int:
    """How many rows have the weights of an earlier row."""
    return plan.resamples - len(np.unique(first_alike(plan)))


def one_test_set(plan: Plan) -> bool:
    """Whether all of several rows are tested on the same cases, on which none trains."""
    return plan.resamples > 1 and bool((plan.test == plan.test[..., :1, :]).all()) and not trained_and_tested(plan)


def trained_and_tested(plan: Plan) -> bool:
    """Whether some row trains on a case that some row tests."""
    return bool((plan.train.any(-2) & plan.test.any(-2)).any())


def disjoint_training(plan: Plan) -> bool:
    """Whether no case is trained on in two rows."""
    return bool(((plan.train > 0).sum(-2) <= 1).all())


def unlike_random(plan: Plan) -> str:
    """Why rows are no random splits, in which all cases have the same chance to be trained on and to be tested; empty
    if they may be some.

    The counts c_i of how often case i is tested, and of how often trained on, are compared with those of independent
    draws by X^2 = sum (c_i - mean)^2 / variance, about chi2 with N - 1 degrees of freedom; smaller is no concern, as in
    folds and stratified splits.
    """
    if not not_folds(plan):
        return ""
    rows = plan.test[..., np.unique(first_alike(plan)), :]
    marks = _marks(rows).reshape(-1, rows.shape[-2])
    if np.unique(marks, axis=1).shape[1] < rows.shape[-2]:
        return "several rows with one test set and different training sets"
    for weights, verb in ((plan.test, "tested"), (plan.train, "trained on")):
        counts = (weights > 0).sum(-2)
        share = (weights > 0).mean(-1)
        variance = np.sum(share * (1 - share), axis=-1)
        distance = np.sum(np.square(counts - counts.mean(-1, keepdims=True)), axis=-1)
        p = scipy.stats.chi2.sf(distance / np.where(variance > 0, variance, 1), plan.n - 1)
        if np.min(p) < UNLIKELY / max(1, np.size(p)):
            return (
                f"cases that are not treated alike, one {verb} in {int(counts.min())} of {plan.resamples} rows and "
                f"another in {int(counts.max())}"
            )
    return ""


def _marks(weights: UInt8[np.ndarray, "*Q R N"]) -> UInt64[np.ndarray, "*Q R"]:
    """A number for each row of weights: random sums modulo 2^64, hardly ever equal for different rows."""
    draw = np.random.default_rng(0).integers(1, 2**63, size=weights.shape[-1], dtype=np.uint64)
    return np.einsum("...n,n->...", weights, draw)
