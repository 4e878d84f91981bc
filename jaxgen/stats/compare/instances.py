"""DELVE's analysis of task instances: training sets that share no case, tested on cases of their own or on the same
ones.

The loss of instance i on test case j is y_ij = mu + a_i + b_j + e_ij with independent effects of the training set (a),
of the test case (b, for common test sets only) and of both (e). Axes: I instances, J test cases each.
"""

from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from jaxgen.stats.checks import require_losses
from jaxgen.stats.compare.comparison import Comparison, of_spread, of_test, of_two, require_same
from jaxgen.stats.rows import every_case
from jaxgen.stats.spread import dropped, independent
from jaxgen.types import Losses, Plan
from jaxgen.types.result import Result, described

SOURCE = "Rasmussen et al. 1996, The DELVE manual"


def expected_loss(losses: Losses) -> Result:
    """Expected loss, its standard error and the components of its variance (Rasmussen et al. 1996, "The DELVE manual").

    MSa = J/(I-1) sum_i (y_i. - m)^2, MSb = I/(J-1) sum_j (y_.j - m)^2. With common test sets MSe = sum_ij (y_ij - y_i.
    - y_.j + m)^2 / ((I-1)(J-1)), with disjoint ones MSe = sum_ij (y_ij - y_i.)^2 / (I(J-1)) and no MSb. Variances:
    (MSa - MSe)/J of training sets, (MSb - MSe)/I of test cases, not below 0, and MSe of the rest. The square of the
    standard error is their sum, divided by I, by J and by IJ.

    Args:
      losses: of a plan of task instances, with the losses of cases [*Q, I, N].
    Returns:
      Result, each number [*Q], about ER for training sets of this size; `parts` are the standard deviations of
      training sets, of test cases (common test sets only) and of the residual, in the unit of the loss.
    Raises:
      ValueError: failed rows, losses without cases, or rows that are no instances: fewer than 2, training sets that
        share cases, test cases that are trained on, fewer than 2 of them, or test sets that are neither disjoint nor
        the same, or not of one size.
      TypeError: no losses.
    """
    require_losses(losses)
    table = _analysed(_table(losses), _common(losses.plan))
    target = f"ER, for training sets of {int(losses.plan.train_sizes.flat[0])} cases"
    method = f"expected loss over instances with {'a common test set' if table.common else 'disjoint test sets'}"
    return described(
        method,
        SOURCE,
        target,
        losses.unit,
        losses.name,
        table.mean,
        table.standard_error,
        parts=table.parts,
        note=dropped(losses),
    )


@of_two
def disjoint_t(first: Losses, second: Losses, *, level: float = 0.95, alternative: str = "two-sided") -> Comparison:
    """The t-test over instances whose test sets do not overlap (Rasmussen et al. 1996; Neal 1998, eq. 3): I - 1
    degrees of freedom.

    The instances are independent, so this is `paired_t`, with the components of the variance of the difference in
    `parts`, and the standard error that DELVE prints with it: that one is cut at a variance of 0 between training
    sets, the test's is not; then the difference over it is not t.

    Args:
      first, second: losses of two learners on a plan of task instances, with the losses of cases [*Q, I, N].
      level: confidence level of the interval, 0 < level < 1.
      alternative: "two-sided", "greater" (the second has the greater error) or "less".
    Returns:
      Comparison, each number [*Q].
    Raises:
      ValueError: different plans or losses, a common test set, an unknown alternative or level, or what
        `expected_loss` refuses.
      TypeError: no losses.
    """
    cases, common = _difference(first, second)
    if common:
        raise ValueError(
            "expected test sets that do not overlap, got the same for all instances "
            f"({first.plan.scheme}); use quasi_f, which allows for that"
        )
    table = _analysed(cases, common)
    note = (
        "instances differ no more than their test cases do, so DELVE's standard error is larger than the test's"
        if np.any(table.ms_training < table.ms_residual)
        else ""
    )
    describe = (
        "DELVE's t-test, disjoint test sets",
        f"{SOURCE}; Neal 1998, eq. 3",
        "the mean difference over training sets of this size",
    )
    parts = table.parts | {"DELVE's standard error": table.standard_error}
    return of_spread(describe, first, second, independent(cases.mean(-1)), alternative, level, note, parts)


@of_two
def quasi_f(first: Losses, second: Losses) -> Comparison:
    """The F-test over instances with one common test set (Rasmussen et al. 1996), two-sided.

    F = (SS + MSe) / (MSa + MSb) with SS = I J m^2: without a difference both have the expectation J var_a + I var_b +
    2 var_e. The degrees of freedom are Satterthwaite's. So its level is not exact; in simulations with 4 and 8
    instances it rejects in 3 to 6 % of the cases at 5 %. (Derived and simulated; there is no printed output of DELVE's
    program to compare with, as there is for `disjoint_t`.)

    Args:
      first, second: losses of two learners on a plan of task instances with common=True, with the losses of cases [*Q,
        I, N].
    Returns:
      Comparison, each number [*Q], with DELVE's standard error but no interval; `parts` are the degrees of freedom and
      the standard deviations of `expected_loss` for the difference. Where neither instances nor cases differ, F is
      infinite and p is NaN, for that is no certainty, or 0 and 1 for a mean of 0.
    Raises:
      ValueError: different plans or losses, disjoint test sets, or what `expected_loss` refuses.
      TypeError: no losses.
    """
    cases, common = _difference(first, second)
    if not common:
        raise ValueError(
            f"expected the same test set for all instances, got disjoint ones ({first.plan.scheme}); "
            "use disjoint_t, or task_instances with common=True"
        )
    table = _analysed(cases, common)
    f, df1, df2 = table.quasi_f()
    with np.errstate(invalid="ignore"):
        p = np.where(np.isfinite(f), scipy.stats.f.sf(f, df1, df2), np.nan)
    p = np.asarray(np.where(f == 0, 1.0, p))
    describe = ("DELVE's quasi-F test, common test set", SOURCE, "the mean difference over training sets of this size")
    parts = (
        {"numerator df": df1, "denominator df": df2} | table.parts | {"DELVE's standard error": table.standard_error}
    )
    return of_test(describe, first, second, table.mean, f, p, "F", parts=parts)


class _Analysis(NamedTuple):
    """Mean and mean squares [*Q] of losses of I instances on J test cases; ms_cases is 0 for disjoint test sets."""

    mean: Float[np.ndarray, "*Q"]
    ms_training: Float[np.ndarray, "*Q"]
    ms_cases: Float[np.ndarray, "*Q"]
    ms_residual: Float[np.ndarray, "*Q"]
    instances: int
    cases: int
    common: bool

    @property
    def variances(self) -> dict[str, Float[np.ndarray, "*Q"]]:
        """Of training sets, of test cases where these are common, and of the residual, none below 0."""
        training = np.asarray(np.maximum(self.ms_training - self.ms_residual, 0) / self.cases)
        cases = (
            {"test case": np.asarray(np.maximum(self.ms_cases - self.ms_residual, 0) / self.instances)}
            if self.common
            else {}
        )
        return {"training set": training} | cases | {"residual": self.ms_residual}

    @property
    def parts(self) -> dict[str, Float[np.ndarray, "*Q"]]:
        """Their square roots."""
        return {f"{name} sd": np.asarray(np.sqrt(value)) for name, value in self.variances.items()}

    @property
    def standard_error(self) -> Float[np.ndarray, "*Q"]:
        """Of the mean, [*Q]."""
        size = {"training set": self.instances, "test case": self.cases, "residual": self.instances * self.cases}
        return np.asarray(np.sqrt(sum(value / size[name] for name, value in self.variances.items())))

    def quasi_f(self) -> tuple[Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"], Float[np.ndarray, "*Q"]]:
        """F and its two degrees of freedom, [*Q] each; F is 0 or infinite, and degrees NaN, where the denominator is
        0.
        """
        i, j = self.instances, self.cases
        above = i * j * self.mean**2
        numerator, denominator = above + self.ms_residual, self.ms_training + self.ms_cases
        with np.errstate(divide="ignore", invalid="ignore"):
            f = np.where(denominator == 0, np.where(self.mean == 0, 0.0, np.inf), numerator / denominator)
            df1 = numerator**2 / (above**2 + self.ms_residual**2 / ((i - 1) * (j - 1)))
            df2 = denominator**2 / (self.ms_training**2 / (i - 1) + self.ms_cases**2 / (j - 1))
        return np.asarray(f), np.asarray(df1), np.asarray(df2)


def _analysed(losses: Float[np.ndarray, "*Q I J"], common: bool) -> _Analysis:
    """The mean squares; taken about the first loss, so that they are exactly 0 where all are equal."""
    i, j = losses.shape[-2:]
    y = losses - losses[..., :1, :1]
    rows, columns, mean = y.mean(-1, keepdims=True), y.mean(-2, keepdims=True), y.mean((-2, -1), keepdims=True)
    training = j / (i - 1) * np.sum((rows - mean) ** 2, axis=(-2, -1))
    if common:
        cases = i / (j - 1) * np.sum((columns - mean) ** 2, axis=(-2, -1))
        residual = np.sum((y - rows - columns + mean) ** 2, axis=(-2, -1)) / ((i - 1) * (j - 1))
    else:
        cases, residual = np.zeros(training.shape), np.sum((y - rows) ** 2, axis=(-2, -1)) / (i * (j - 1))
    average = losses[..., 0, 0] + mean[..., 0, 0]
    return _Analysis(np.asarray(average), np.asarray(training), np.asarray(cases), np.asarray(residual), i, j, common)


def _difference(first: Losses, second: Losses) -> tuple[Float[np.ndarray, "*Q I J"], bool]:
    """Second minus first on the test cases of each instance, and whether these are common."""
    require_same(first, second)
    return _table(second) - _table(first), _common(first.plan)


def _table(losses: Losses) -> Float[np.ndarray, "*Q I J"]:
    """The losses of each instance on its test cases."""
    _require_instances(losses.plan)
    values = every_case(losses)
    return values[np.broadcast_to(losses.plan.test > 0, values.shape)].reshape(*values.shape[:-1], -1)


def _common(plan: Plan) -> bool:
    """Whether all rows are tested on the same cases."""
    return bool((plan.test == plan.test[..., :1, :]).all())


def _require_instances(plan: Plan) -> None:
    """Raises ValueError for rows that are no instances of a task."""
    trouble = ""
    if plan.resamples < 2:
        trouble = "a single row; ask for more instances"
    elif plan.train.max() > 1 or plan.test.max() > 1:
        trouble = "cases that count more than once"
    elif (plan.train.sum(-2) > 1).any():
        trouble = "training sets that overlap"
    elif (plan.train.any(-2) & plan.test.any(-2)).any():
        trouble = "test cases that some row trains on"
    elif plan.test_sizes.min() != plan.test_sizes.max():
        trouble = "test sets of different sizes"
    elif not _common(plan) and (plan.test.sum(-2) > 1).any():
        trouble = "test sets that overlap in part"
    elif plan.test_sizes.min() < 2:
        trouble = "one test case a row; ask for more"
    if trouble:
        expected = "at least 2 instances of a task, their training sets disjoint, their test sets disjoint or the same"
        raise ValueError(f"expected {expected}, got {plan.scheme}: {trouble}; use resample.task_instances")
