"""How every trained row did: what `assess` returns and all statistics take."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8

from jaxgen.loss import by_name
from jaxgen.types import rendered
from jaxgen.types.checks import check_targets
from jaxgen.types.estimators import as_targets, fitted_estimators
from jaxgen.types.identity import named
from jaxgen.types.numbers import first_line, shown
from jaxgen.types.plan import Plan, as_counts, as_labels, as_weights, found_design, found_strata

Loss = Callable[[Any, Any], Any]
"""Targets and predictions, [*N, K] each, to losses [*N]; arrays of JAX or, for `Losses.from_predictions`, of NumPy."""


@dataclass(frozen=True, eq=False)
class Losses:
    """What `assess` returns: how every trained row did, on the host.

    Attributes:
      test_mean: test-weighted mean loss of each row, [*Q, R]; read it as `g`, which refuses failed rows.
      train_mean: train-weighted mean loss of each row, [*Q, R], NaN where it is not known; read it as `apparent`.
      plan: the plan that was run.
      learner: the learner, as code that recreates it; with a digest of that code where it is not the package's.
      loss: the name of the per-case loss, with such a digest too; its unit is the unit of every number here.
      values: the loss of every row on every case, [*Q, R, N]; None if only the rows were kept.
      failure: 0 for a row that went well, else 1 + the position of its reason in `reasons`, [*Q, R].
      reasons: the sentences that `failure` points to.
      info: what the learner's `diagnose` said, each [*Q, R, ...].
      dropped: failed rows that were left out on request.
      predictions: what every row predicts for every case, [*Q, R, N, K], in the units of the target; None if not kept.
      label: what the learner is called in results, tables and figures; empty for its code. See `labelled` and `name`.
      key: the key of the training, as code that recreates it; empty where it is not known.
    """

    test_mean: Float[np.ndarray, "*Q R"]
    train_mean: Float[np.ndarray, "*Q R"]
    plan: Plan
    learner: str
    loss: str
    failure: UInt8[np.ndarray, "*Q R"]
    reasons: tuple[str, ...] = ()
    values: Float[np.ndarray, "*Q R N"] | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    dropped: int = 0
    predictions: Float[np.ndarray, "*Q R N K"] | None = None
    label: str = ""
    key: str = ""

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        predictions: Any,
        train: Any,
        test: Any,
        loss: Loss | str,
        learner: str = "given predictions",
        *,
        labels: Any = None,
        groups: Any = None,
        times: Any = None,
    ) -> "Losses":
        """Losses of predictions that any other tool made.

        Predictions of the test cases suffice. Where a row lacks some of its training cases, its apparent loss is
        absent: NaN in `train_mean`, and `apparent` says so.

        Args:
          y: targets, [N, K] or [N]; for a classification zeros and ones, one column per class, or a single column.
          predictions: of each row for every case, [R, N, K] or [R, N], NaN where there is none; or one prediction per
            case, [N, K] or [N] as y, by the row that tests it, where no case is tested twice (scikit-learn's
            `cross_val_predict`).
          train, test: weights, [R, N], whole numbers from 0 to 255.
          loss: of `jaxgen.loss`, also by its name, as "zero_one"; or a function of (y, predictions) to [R, N].
          learner: what to call it.
          labels: what a row is within its design, each [R], such as "repeat" and "fold".
          groups: labels [N] of cases that depend on each other.
          times: when each case was observed, [N], if they are a series.
        Returns:
          Losses [R], [R, N]; rows without a finite loss of a test case are marked as failed.
        Raises:
          TypeError: the loss is no function.
          ValueError: shapes, weights or targets that do not fit, or a text that names no loss.
        """
        counted = by_name(loss)
        targets, predicted = real_numbers(y, "y"), real_numbers(predictions, "predictions")
        weights = as_weights("train", train), as_weights("test", test)
        plan = Plan(*weights, "given weights", *as_labels(weights[0].shape, labels, groups, times)).checked()
        targets, predicted = in_rows(targets, predicted, plan)
        check_targets(counted, targets, "y")
        values = _values(counted, targets, predicted)
        if not plan.cases and np.isin(targets, (0, 1)).all():
            classes = targets.argmax(-1) if targets.shape[-1] > 1 else targets[:, 0]
            plan = replace(plan, cases=found_strata(plan.test, classes))
        absent = (np.isnan(predicted).any(axis=-1) & (plan.train > 0)).any(axis=-1)
        test_mean, train_mean = (
            np.sum(np.where(w > 0, w * values, 0), axis=-1) / w.sum(-1) for w in (plan.test, plan.train)
        )
        train_mean = np.where(absent, np.nan, train_mean)
        failure = (~np.isfinite(test_mean + np.where(absent, 0, train_mean))).astype(np.uint8)
        reasons = ("a prediction of a test case is missing, or its loss is not finite",)
        return cls(
            test_mean, train_mean, plan, learner, named(counted), failure, reasons, values, predictions=predicted
        )

    @classmethod
    def from_cross_validate(
        cls,
        result: Any,
        x: Any,
        y: Any,
        loss: Loss | str,
        learner: str | None = None,
        *,
        labels: Any = None,
        groups: Any = None,
        times: Any = None,
    ) -> "Losses":
        """Losses of what scikit-learn's `cross_validate(..., return_estimator=True, return_indices=True)` returned.

        Every fitted estimator predicts all cases. Of classifiers these are probabilities, where they have
        `predict_proba`, and the targets are turned into one column for each class that is in y, in sorted order. Folds
        and blocks of a series are recognised, as `resample.from_splitter` does.

        Args:
          result: the dictionary, with "estimator" and "indices".
          x: the inputs that were given to `cross_validate`, of N cases.
          y: the targets that were given to it, [N], or [N, K] for a regression of several outputs.
          loss: of `jaxgen.loss`, also by its name, or a function of (y, predictions) to [R, N].
          learner: what to call it; by default the code of the first estimator.
          labels, groups, times: as for `from_predictions`.
        Returns:
          Losses [R], [R, N]; rows whose estimator was not fitted, since its fit failed, are marked as failed.
        Raises:
          TypeError: no such dictionary, or the loss is no function.
          ValueError: estimators or indices were not returned, or do not fit x and y.
        """
        estimators, indices = fitted_estimators(result)
        targets, predict = as_targets(estimators, y)
        n = len(targets)
        train, test = (np.stack([as_counts(one, n, name) for one in indices[name]]) for name in ("train", "test"))
        predicted, error = np.full((len(estimators), *targets.shape), np.nan), None
        for row, estimator in enumerate(estimators):
            try:
                predicted[row] = predict(estimator, x)
            except Exception as trouble:  # not fitted, where error_score is a number
                error = error or trouble
        if np.isnan(predicted).all():
            raise ValueError(
                f"expected estimators that predict the {n} cases, got {first_line(error) if error else 'no numbers'}; "
                "give the x and y that cross_validate had"
            ) from error
        found, cases = found_design(train, test)
        name = " ".join(repr(estimators[0]).split()) if learner is None else learner
        times = cases.get("time") if times is None else times
        labels = found if labels is None else labels
        return cls.from_predictions(
            targets, predicted, train, test, loss, name, labels=labels, groups=groups, times=times
        )

    @property
    def train(self) -> UInt8[np.ndarray, "*P R N"]:
        """Training weights of the plan, [*Q, R, N]."""
        return self.plan.train

    @property
    def test(self) -> UInt8[np.ndarray, "*P R N"]:
        """Test weights of the plan, [*Q, R, N]."""
        return self.plan.test

    @property
    def name(self) -> str:
        """What the learner is called: its label, or else the code that recreates it."""
        return self.label or self.learner

    @property
    def unit(self) -> str:
        """What every number here is, as "squared loss"."""
        return f"{self.loss} loss"

    def labelled(self, label: str) -> "Losses":
        """The same losses G [*Q, R] under a short name, which results, tables and figures print in place of the
        learner's code; `learner` keeps the code.

        Args:
          label: a text on one line; an empty one takes the name away again.
        Raises:
          ValueError: no such text.
        """
        if not isinstance(label, str) or not (label.isprintable() and label == label.strip()):
            raise ValueError(
                f"expected a label as a text on one line, got {shown(label)}; give a short name such as 'net'"
            )
        return replace(self, label=label)

    @property
    def resamples(self) -> int:
        """Resamplings, R."""
        return self.test_mean.shape[-1]

    @property
    def sets(self) -> int | None:
        """Independent data sets, Q; None where there is no such axis."""
        return self.test_mean.shape[0] if self.test_mean.ndim == 2 else None

    @property
    def failed(self) -> Bool[np.ndarray, "*Q R"]:
        """True for the rows whose fit failed, [*Q, R]."""
        return self.failure > 0

    @property
    def g(self) -> Float[np.ndarray, "*Q R"]:
        """Test-weighted mean loss of each row, [*Q, R]: the generalization estimates of Larsen & Hansen 1995, eq. 7.

        Raises:
          ValueError: a row failed; `without_failed` leaves such rows out.
        """
        self._refuse_failed()
        return self.test_mean

    @property
    def apparent(self) -> Float[np.ndarray, "*Q R"]:
        """Train-weighted mean loss of each row, [*Q, R].

        Raises:
          ValueError: a row failed; `without_failed` leaves such rows out. Or predictions of training cases were not
            given to `from_predictions`.
        """
        self._refuse_failed()
        absent = int(np.isnan(self.train_mean).sum())
        if absent:
            raise ValueError(
                f"expected predictions of all training cases for the apparent loss of {self.name}, got missing ones "
                f"in {absent} of {self.train_mean.size} rows; give from_predictions what every row predicts for them"
            )
        return self.train_mean

    def __iter__(self) -> Iterator["Losses"]:
        """The losses of each data set of Q."""
        if self.sets is None:
            raise TypeError("expected losses with a leading axis Q to go through, got one data set; use it as it is")
        return (self[q] for q in range(self.sets))

    def __getitem__(self, q: int) -> "Losses":
        """The losses of data set q of Q."""
        if self.sets is None:
            raise IndexError(
                "expected losses with a leading axis Q to choose a set from, got those of a single data set; "
                "use them as they are"
            )
        return self._pick((q,), self.plan if self.plan.sets is None else self.plan[q])

    def without_failed(self, *others: "Losses") -> "Losses":
        """These losses without the failed rows, whose number is kept in `dropped`: G [R - failed], and so on.

        Args:
          others: losses on the same plan, whose failed rows are left out too, so that all still compare row by row.
        Raises:
          ValueError: all rows failed, or there are several data sets (choose one first).
        """
        if self.sets is not None:
            raise ValueError(
                f"expected the losses of one data set, got those of {self.sets}, whose rows would no longer "
                "align; choose one with losses[q]"
            )
        good = ~np.any([one.failed for one in (self, *others)], axis=0)
        if not good.any():
            raise ValueError(
                f"expected a row that went well, got {self.resamples} failed rows of "
                f"{self.name}{' and others' if others else ''}: {self._failures()}"
            )
        plan = self.plan.chosen(good, f"{self.plan.scheme} without {int((~good).sum())} failed rows")
        return replace(self._pick((good,), plan), dropped=self.dropped + int((~good).sum()))

    def with_loss(self, loss: Loss | str, y: Float[np.ndarray, "*Q N K"]) -> "Losses":
        """The same rows under another loss: both the error rate and the squared error of one training, for example.

        Args:
          loss: of `jaxgen.loss`, also by its name, or a function of (y, predictions) to [R, N], that takes predictions.
          y: the targets that were trained on, [*Q, N, K].
        Returns:
          Losses [*Q, R], [*Q, R, N], without predictions; rows that failed stay so, and rows without a finite loss are
          marked as failed.
        Raises:
          TypeError: the loss is no function.
          ValueError: predictions were not kept, targets that do not fit them or the loss, or a text that names none.
        """
        counted = by_name(loss)
        if self.predictions is None:
            raise ValueError(
                f"expected predictions of every row for another loss, got losses alone of {self.name}; "
                "use assess(..., keep='predictions')"
            )
        targets, predicted = real_numbers(y, "y"), self.predictions
        shape = (*predicted.shape[:-3], *predicted.shape[-2:])
        if targets.shape not in (shape, shape[-2:]):
            raise ValueError(f"expected y {list(shape)}, got {list(targets.shape)}; give the targets trained on")
        check_targets(counted, targets, "y")
        of_rows = np.broadcast_to(targets.astype(predicted.dtype), shape).reshape(-1, *shape[-2:])
        by_set = zip(of_rows, predicted.reshape(-1, *predicted.shape[-3:]), strict=True)
        values = np.stack([_values(counted, *one) for one in by_set]).reshape(predicted.shape[:-1])
        test_mean, train_mean = (
            np.sum(np.where(w > 0, w * values, 0), axis=-1) / w.sum(-1) for w in (self.plan.test, self.plan.train)
        )
        known = np.isfinite(test_mean + np.where(np.isnan(self.train_mean), 0, train_mean))
        reasons = (*self.reasons, "its loss is not finite")
        return replace(
            self,
            test_mean=test_mean,
            train_mean=np.where(np.isnan(self.train_mean), np.nan, train_mean),
            loss=named(counted),
            failure=np.where(known | self.failed, self.failure, len(reasons)).astype(np.uint8),
            reasons=reasons,
            values=values,
            predictions=None,
        )

    def to_frame(self) -> Any:
        """One row per trained row, as a pandas DataFrame.

        Returns:
          Columns set, where there are several data sets [Q]; row, from 0; g and apparent, the mean losses of its test
          and training cases, NaN where there are none; the labels of the plan, such as repeat and fold; failed; and
          reason, why it failed, empty if it did not.
        """
        from jaxgen.types.late import pandas as pd

        sets, rows = self.sets or 1, self.resamples
        shape = (sets, rows)
        failure = np.broadcast_to(self.failure, shape).reshape(-1)
        columns: dict[str, Any] = {} if self.sets is None else {"set": np.repeat(np.arange(sets), rows)}
        columns |= {"row": np.tile(np.arange(rows), sets)}
        columns |= {name: np.array(mean, np.float64).reshape(-1) for name, mean in self._means().items()}
        columns |= {str(name): np.tile(label, sets) for name, label in self.plan.labels.items()}
        reasons = np.array(["", *self.reasons], dtype=object)
        return pd.DataFrame(columns | {"failed": failure > 0, "reason": reasons[failure]})

    def to_xarray(self) -> Any:
        """The numbers with names for their axes, as an xarray Dataset, where the package xarray is installed.

        Returns:
          Variables g, apparent and failed over [set,] row; train and test over [set,] row, case; and loss and
          prediction over [set,] row, case[, output] where they were kept. Coordinates are the labels of the plan.
        Raises:
          ModuleNotFoundError: there is no xarray.
        """
        try:
            import xarray as xr  # type: ignore[import-not-found]
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "expected the package xarray for to_xarray, got none installed; pip install 'jaxgen[xarray]', or use "
                "to_frame"
            ) from None
        lead = ("row",) if self.sets is None else ("set", "row")
        plan = ("row", "case") if self.plan.sets is None else ("set", "row", "case")
        variables: dict[str, Any] = {name: (lead, mean) for name, mean in self._means().items()}
        variables |= {"failed": (lead, self.failed), "train": (plan, self.train), "test": (plan, self.test)}
        if self.values is not None:
            variables["loss"] = ((*lead, "case"), self.values)
        if self.predictions is not None:
            variables["prediction"] = ((*lead, "case", "output"), self.predictions)
        labels = {str(name): ("row", label) for name, label in self.plan.labels.items()}
        cases = {str(name): ("case", label) for name, label in self.plan.cases.items()}
        words = {"learner": self.learner, "loss_function": self.loss, "plan": self.plan.scheme}
        return xr.Dataset(variables, coords=labels | cases, attrs=words)

    def _means(self) -> dict[str, Float[np.ndarray, "*Q R"]]:
        """Mean losses of test and training cases, NaN for failed rows."""
        both = {"g": self.test_mean, "apparent": self.train_mean}
        return {name: np.where(self.failed, np.nan, mean) for name, mean in both.items()}

    def _repr_html_(self) -> str:
        """In notebooks a small table."""
        means = self._means()
        known = {name: mean[np.isfinite(mean)] for name, mean in means.items()}
        numbers = {"mean": known["g"], "on training cases": known["apparent"]}
        rows = [
            *([("learner", self.learner)] if self.label else []),
            ("loss", self.loss),
            ("plan", self.plan.scheme),
            *((name, float(values.mean()) if len(values) else "not known") for name, values in numbers.items()),
            *([("data sets", self.sets)] if self.sets is not None else []),
            ("rows", self.resamples),
            ("cases", self.plan.n),
            ("failed rows", int(self.failed.sum()) + self.dropped),
        ]
        return rendered.table(self.name, ("", ""), rows)

    def _pick(self, index: tuple[Any, ...], plan: Plan, **others: Any) -> "Losses":
        return replace(
            self,
            test_mean=self.test_mean[index],
            train_mean=self.train_mean[index],
            failure=self.failure[index],
            values=None if self.values is None else self.values[index],
            predictions=None if self.predictions is None else self.predictions[index],
            info={name: value[index] for name, value in self.info.items()},
            plan=plan,
            **others,
        )

    def _failures(self) -> str:
        rows = [tuple(int(i) for i in row) for row in np.argwhere(self.failed)[:3]]
        return "; ".join(
            f"row {', '.join(map(str, row))}{self._step(row)}: {self.reasons[int(self.failure[row]) - 1]}"
            f"{self._error(row)}"
            for row in rows
        )

    def _step(self, row: tuple[int, ...]) -> str:
        """The first step at which something failed in a row, where the learner counts steps."""
        steps = np.asarray(self.info.get("failed_step", np.full(self.failure.shape, -1)))[row]
        return f" at step {steps[steps >= 0].min()}" if (steps >= 0).any() else ""

    def _error(self, row: tuple[int, ...]) -> str:
        """What another package said of a row, where the learner keeps it."""
        text = str(np.asarray(self.info["error"])[row]) if "error" in self.info else ""
        return f" ({text})" if text else ""

    def _refuse_failed(self) -> None:
        if self.failed.any():
            raise ValueError(
                f"expected every row to have been fitted, got {int(self.failed.sum())} failed of "
                f"{self.failed.size} for {self.name} on {self.plan.scheme} "
                f"({self._failures()}); call losses.without_failed() to leave them out, or change the learner "
                "or the plan"
            )

    def __repr__(self) -> str:
        shape = (
            f"R={self.resamples}, N={self.plan.n}"
            if self.sets is None
            else f"Q={self.sets}, R={self.resamples}, N={self.plan.n}"
        )
        trouble = (f", {int(self.failed.sum())} failed" if self.failed.any() else "") + (
            f", {self.dropped} failed rows left out" if self.dropped else ""
        )
        return f"Losses({self.name}, {self.unit}, {self.plan.scheme}: {shape}{trouble})"


def real_numbers(values: Any, name: str) -> Float[np.ndarray, "..."]:
    """An array of real numbers in double precision, [...]."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)
        if array.dtype.kind == "O":
            return np.asarray(values, np.float64)
        got = f"an array of {array.dtype}"
    except (TypeError, ValueError):
        got = f"a {type(values).__name__} that holds other things, or rows of different lengths"
    raise ValueError(f"expected {name} as real numbers, got {got}; classes become columns of zeros and ones")


def in_rows(
    y: Float[np.ndarray, "..."], predictions: Float[np.ndarray, "..."], plan: Plan
) -> tuple[Float[np.ndarray, "N K"], Float[np.ndarray, "R N K"]]:
    """Targets [N, K] and the predictions of every row [R, N, K]."""
    single = y.ndim == 1
    y = y[:, None] if single else y
    if predictions.ndim == (1 if single else 2):
        predictions = predictions[:, None] if single else predictions
        if predictions.shape == y.shape:
            tested = plan.test > 0
            if (tested.sum(0) > 1).any():
                raise ValueError(
                    f"expected one prediction per row and case, [R, N], where cases are tested several times, got "
                    f"one per case, {list(predictions.shape)}; give the predictions of every row"
                )
            predictions = np.where(tested[:, :, None], predictions[None], np.nan)
    elif single:
        predictions = predictions[..., None]
    shape = (*plan.train.shape, y.shape[-1])
    if y.ndim != 2 or y.shape[0] != plan.n or predictions.shape != shape:
        raise ValueError(
            f"expected y [N, K], predictions [R, N, K] and weights [R, N], got {list(y.shape)}, "
            f"{list(predictions.shape)} and {list(plan.train.shape)}; give one prediction per row and case"
        )
    if not np.isfinite(y).all():
        raise ValueError(
            f"expected finite targets, got {int((~np.isfinite(y)).sum())} other values in y; leave these cases out"
        )
    return y, predictions


def _values(
    loss: Loss, y: Float[np.ndarray, "N K"], predictions: Float[np.ndarray, "R N K"]
) -> Float[np.ndarray, "R N"]:
    """The loss of every row and case."""
    if not callable(loss):
        raise TypeError(
            f"expected a loss such as jaxgen.loss.squared, got {loss!r}; give a function of (y, predictions)"
        )
    try:
        values = np.asarray(loss(np.broadcast_to(y, predictions.shape), predictions), np.float64)
    except Exception as error:
        raise ValueError(
            f"expected a loss of arrays y and predictions [R, N, K] to [R, N], got {type(error).__name__} from "
            f"{named(loss)} ({' '.join(str(error).split())[:200]}); write it with functions of whole arrays"
        ) from error
    if values.shape != predictions.shape[:-1]:
        raise ValueError(
            f"expected one loss per row and case, {list(predictions.shape[:-1])}, got {list(values.shape)} from "
            f"{named(loss)}; sum over the last axis of (y, predictions) only"
        )
    return values
