"""What every trained row predicts for new cases: what `predict` returns and `stats.conformal` takes."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8

from jaxgen.types.data import Data
from jaxgen.types.losses import in_rows, real_numbers
from jaxgen.types.numbers import require_kind, shown
from jaxgen.types.plan import Plan, as_labels, as_weights


@dataclass(frozen=True, eq=False)
class Predicted:
    """What every trained row predicts for new cases, and for the cases of the data, on the host.

    Attributes:
      new: predictions for the M new cases, [*Q, R, M, K], in the units of the target.
      cases: predictions for the cases of the data, [*Q, R, N, K]; NaN where they are not known.
      y: targets of the cases of the data, [*Q, N, K].
      plan: the plan that was run.
      learner: the learner, as code that recreates it; with a digest of that code where it is not the package's.
      target: the name of what is predicted.
      task: "regression" or "classification".
      classes: the names of the K classes of a classification, or none.
      failure: 0 for a row that went well, else 1 + the position of its reason in `reasons`, [*Q, R].
      reasons: the sentences that `failure` points to.
      dropped: failed rows that were left out on request.
    """

    new: Float[np.ndarray, "*Q R M K"]
    cases: Float[np.ndarray, "*Q R N K"]
    y: Float[np.ndarray, "*Q N K"]
    plan: Plan
    learner: str
    target: str
    task: str
    classes: tuple[str, ...]
    failure: UInt8[np.ndarray, "*Q R"]
    reasons: tuple[str, ...] = ()
    dropped: int = 0

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        cases: Any,
        new: Any,
        train: Any,
        test: Any,
        learner: str = "given predictions",
        *,
        target: str = "y",
        task: str = "regression",
        classes: Collection[str] | None = None,
        labels: Any = None,
        groups: Any = None,
        times: Any = None,
    ) -> "Predicted":
        """Predictions that any other tool made.

        Args:
          y: targets, [N, K] or [N]; for a classification zeros and ones, one column per class, or a single column.
          cases: predictions of each row for the cases, [R, N, K] or [R, N], NaN where there is none: those of the test
            cases suffice; or one prediction per case, [N, K] or [N] as y, by the row that tests it, where no case is
            tested twice (scikit-learn's `cross_val_predict`).
          new: predictions of each row for the new cases, [R, M, K], or [R, M] if y is [N].
          train, test: weights, [R, N], whole numbers from 0 to 255.
          learner: what to call it.
          target, task: the name of what is predicted; "regression" or "classification".
          classes: the names of the classes; none for their numbers.
          labels: what a row is within its design, each [R], such as "repeat" and "fold".
          groups: labels [N] of cases that depend on each other.
          times: when each case was observed, [N], if they are a series.
        Returns:
          Predicted [R, M, K], [R, N, K]; rows without a finite prediction of a new case or of a test case are marked as
          failed.
        Raises:
          TypeError: the learner is no text, or the classes are no list.
          ValueError: shapes, weights, targets or classes that do not fit.
        """
        require_kind("the name of the learner as a text", learner, str, "give any text")
        if classes is not None and (isinstance(classes, str) or not isinstance(classes, Collection)):
            raise TypeError(f"expected the names of the classes in a list, got {shown(classes)}; name each once")
        targets, of_cases, of_new = (
            real_numbers(values, name) for values, name in ((y, "y"), (cases, "cases"), (new, "new"))
        )
        weights = as_weights("train", train), as_weights("test", test)
        plan = Plan(*weights, "given weights", *as_labels(weights[0].shape, labels, groups, times)).checked()
        single = targets.ndim == 1
        targets, of_cases = in_rows(targets, of_cases, plan)
        of_new = of_new[..., None] if single else of_new
        if of_new.ndim != 3 or of_new.shape != (plan.resamples, of_new.shape[1], targets.shape[1]) or not of_new.size:
            raise ValueError(
                f"expected predictions of {plan.resamples} rows for new cases, [R, M{', K' * (not single)}], got "
                f"{list(np.shape(new))}; give one prediction per row and new case"
            )
        names = () if classes is None or not len(classes) else tuple(classes)
        Data(np.zeros((plan.n, 1)), targets, ("x",), target, task, names).checked()
        known = np.where(plan.test[..., None] > 0, of_cases, 0)
        failed = ~np.isfinite(known).all((-2, -1)) | ~np.isfinite(of_new).all((-2, -1))
        reasons = ("a prediction of a test case or of a new case is missing or not finite",)
        return cls(of_new, of_cases, targets, plan, learner, target, task, names, np.array(failed, np.uint8), reasons)

    @property
    def resamples(self) -> int:
        """Resamplings, R."""
        return self.new.shape[-3]

    @property
    def m(self) -> int:
        """New cases, M."""
        return self.new.shape[-2]

    @property
    def sets(self) -> int | None:
        """Independent data sets, Q; None where there is no such axis."""
        return self.new.shape[0] if self.new.ndim == 4 else None

    @property
    def failed(self) -> Bool[np.ndarray, "*Q R"]:
        """True for the rows whose fit failed, [*Q, R]."""
        return self.failure > 0

    def checked(self) -> "Predicted":
        """These predictions themselves, [*Q, R, M, K].

        Raises:
          ValueError: a row failed; `without_failed` leaves such rows out.
        """
        if self.failed.any():
            first = tuple(int(i) for i in np.argwhere(self.failed)[0])
            raise ValueError(
                f"expected every row to have been fitted, got {int(self.failed.sum())} failed of {self.failed.size} "
                f"for {self.learner} on {self.plan.scheme} (row {', '.join(map(str, first))}: "
                f"{self.reasons[int(self.failure[first]) - 1]}); call without_failed() to leave them out, or change "
                "the learner or the plan"
            )
        return self

    def without_failed(self) -> "Predicted":
        """These predictions without the failed rows, whose number is kept in `dropped`, [R - failed, M, K].

        Raises:
          ValueError: all rows failed, or there are several data sets (choose one first).
        """
        if self.sets is not None:
            raise ValueError(
                f"expected the predictions of one data set, got those of {self.sets}, whose rows would no longer "
                "align; choose one with predicted[q]"
            )
        good = ~self.failed
        if not good.any():
            raise ValueError(
                f"expected a row that went well, got {self.resamples} failed rows of {self.learner}; change the "
                "learner or the plan"
            )
        lost = int((~good).sum())
        plan = self.plan.chosen(good, f"{self.plan.scheme} without {lost} failed rows")
        return replace(self._pick((good,), plan, self.y), dropped=self.dropped + lost)

    def __iter__(self) -> Iterator["Predicted"]:
        """The predictions of each data set of Q."""
        if self.sets is None:
            raise TypeError(
                "expected predictions with a leading axis Q to go through, got one data set; use it as it is"
            )
        return (self[q] for q in range(self.sets))

    def __getitem__(self, q: int) -> "Predicted":
        """The predictions of data set q of Q."""
        if self.sets is None:
            raise IndexError(
                "expected predictions with a leading axis Q to choose a set from, got those of a single data set; "
                "use them as they are"
            )
        return self._pick((q,), self.plan if self.plan.sets is None else self.plan[q], self.y[q])

    def _pick(self, index: tuple[Any, ...], plan: Plan, y: np.ndarray) -> "Predicted":
        return replace(self, new=self.new[index], cases=self.cases[index], failure=self.failure[index], plan=plan, y=y)

    def __repr__(self) -> str:
        sets = "" if self.sets is None else f"Q={self.sets}, "
        trouble = (f", {int(self.failed.sum())} failed" if self.failed.any() else "") + (
            f", {self.dropped} failed rows left out" if self.dropped else ""
        )
        shape = f"{sets}R={self.resamples}, N={self.plan.n}, M={self.m}"
        return f"Predicted({self.target} by {self.learner}, {self.plan.scheme}: {shape}{trouble})"
