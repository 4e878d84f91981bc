"""The values that pass along the corridor: Data, Plan, Learner, Losses.

Axis letters, used in every docstring and annotation of the package:
`Q` independent data sets, `R` resamplings, `N` cases, `D` inputs, `K` outputs,
`H` hidden units, `M` ensemble members, `S` saved iterations or samples.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree, UInt8

Key = PRNGKeyArray
Params = PyTree
Loss = Callable[[Any, Any], Any]
"""Targets and predictions, [*N, K] each, to losses [*N]; arrays of JAX or, for `Losses.from_predictions`, of NumPy."""
Minimum = tuple[PyTree, Callable[[PyTree], Params], Callable[[PyTree, Array, Array], tuple[Array, Array]]]
"""(free, rebuild, cost), what `minimised` of a `Learner` returns."""


@dataclass(frozen=True, eq=False)
class Data:
    """Cases with inputs and targets, in their own units, on the host.

    Made by the functions of `jaxgen.datasets` and `jaxgen.simulate`, which check what they are given;
    `assess` checks again.

    Attributes:
      x: inputs, [*Q, N, D].
      y: targets, [*Q, N, K]; for a classification one column of zeros and ones per class.
      names: the D names of the inputs.
      target: the name of what is predicted.
      task: "regression" or "classification".
      classes: the K class names of a classification, else empty.
    """

    x: Float[np.ndarray, "*Q N D"]
    y: Float[np.ndarray, "*Q N K"]
    names: tuple[str, ...]
    target: str = "y"
    task: str = "regression"
    classes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Cases, N."""
        return self.x.shape[-2]

    @property
    def d(self) -> int:
        """Inputs, D."""
        return self.x.shape[-1]

    @property
    def sets(self) -> int | None:
        """Independent data sets, Q; None where the data have no such axis."""
        return self.x.shape[0] if self.x.ndim == 3 else None

    def __getitem__(self, q: int) -> "Data":
        """Data set q of Q, with x [N, D] and y [N, K]."""
        if self.sets is None:
            raise IndexError("expected data with a leading axis Q to choose a set from, got a single data set; use it as it is")
        return replace(self, x=self.x[q], y=self.y[q])

    def select(self, inputs: Sequence[str | int]) -> "Data":
        """The same cases seen through some of the inputs.

        Args:
          inputs: names or column numbers, in the order wanted.
        Returns:
          Data with x [*Q, N, len(inputs)].
        Raises:
          ValueError: a name or number is not among the inputs.
        """
        unknown = [i for i in inputs if i not in (self.names if isinstance(i, str) else range(self.d))]
        if unknown:
            raise ValueError(f"expected inputs among {', '.join(self.names)} or numbers below {self.d}, got {unknown[0]!r}; name those of this data set")
        columns = [self.names.index(i) if isinstance(i, str) else int(i) for i in inputs]
        return replace(self, x=self.x[..., columns], names=tuple(self.names[i] for i in columns))

    def checked(self) -> "Data":
        """This data set itself, after a check of its shapes and values.

        Raises:
          ValueError: x [*Q, N, D] and y [*Q, N, K] do not belong together, names do not fit, or a value is not finite.
        """
        if self.x.dtype.kind != "f" or self.y.dtype.kind != "f":
            raise ValueError(f"expected x and y as floating numbers, got {self.x.dtype} and {self.y.dtype}; make the data with datasets.from_arrays")
        if self.x.ndim not in (2, 3) or self.y.ndim != self.x.ndim or self.x.shape[:-1] != self.y.shape[:-1]:
            raise ValueError(f"expected x [N, D] and y [N, K] (or both with one leading axis Q) of the same cases, got x {list(self.x.shape)} and y {list(self.y.shape)}; give one row per case")
        if self.n == 0 or self.y.shape[-1] == 0:
            raise ValueError(f"expected at least one case and one output, got x {list(self.x.shape)} and y {list(self.y.shape)}; check the source of the data")
        if len(self.names) != self.d:
            raise ValueError(f"expected {self.d} names, one per column of x, got {len(self.names)}; name every input once")
        for symbol, values, names in (("x", self.x, self.names), ("y", self.y, self.classes or (self.target,) * self.y.shape[-1])):
            bad = np.argwhere(~np.isfinite(values))
            if len(bad):
                where = tuple(int(i) for i in bad[0])
                raise ValueError(
                    f"expected finite numbers, got {values[where]} in {symbol}, column {where[-1]} ({names[where[-1]]!r}), case {where[-2]}, "
                    f"and {len(bad)} such values in all; fill in or leave out these cases first"
                )
        return self


@dataclass(frozen=True, eq=False)
class Plan:
    """R resampled training sets as weights over the same N cases, each with its test cases.

    A weight 0 is the same as an absent case and a weight 2 the same as the case twice.
    Made by the functions of `jaxgen.resample`.

    Attributes:
      train: training weights, [*Q, R, N].
      test: test weights, [*Q, R, N]; not always `1 - train`.
      scheme: text that recreates the plan.
      labels: what a row is within its design (repeat, fold, half, ...), each [R].
    """

    train: UInt8[np.ndarray, "*Q R N"]
    test: UInt8[np.ndarray, "*Q R N"]
    scheme: str
    labels: Mapping[str, Int[np.ndarray, "R"]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Cases, N."""
        return self.train.shape[-1]

    @property
    def resamples(self) -> int:
        """Resamplings, R."""
        return self.train.shape[-2]

    @property
    def sets(self) -> int | None:
        """Data sets that have splits of their own, Q; None where one plan serves all."""
        return self.train.shape[0] if self.train.ndim == 3 else None

    @cached_property
    def train_sizes(self) -> Int[np.ndarray, "*Q R"]:
        """Sum of the training weights of each row, [*Q, R]: n1."""
        return _sum_cases(self.train)

    @cached_property
    def test_sizes(self) -> Int[np.ndarray, "*Q R"]:
        """Sum of the test weights of each row, [*Q, R]: n2."""
        return _sum_cases(self.test)

    @cached_property
    def train_cases(self) -> Int[np.ndarray, "*Q R"]:
        """Different cases that each row trains on, [*Q, R]."""
        return self.train_sizes if self.train.max() <= 1 else _sum_cases((self.train > 0).astype(np.uint8))

    def __getitem__(self, q: int) -> "Plan":
        """The plan of data set q of Q, with train and test [R, N]."""
        if self.sets is None:
            raise IndexError("expected a plan with a leading axis Q to choose from, got one plan [R, N]; use it as it is")
        return replace(self, train=self.train[q], test=self.test[q], scheme=f"{self.scheme}[{q}]")

    def checked(self) -> "Plan":
        """This plan itself, after a check of its shapes and weights.

        Raises:
          ValueError: train and test are not of one shape [*Q, R, N], or a row trains or tests on nothing.
        """
        if self.train.ndim not in (2, 3) or self.train.shape != self.test.shape or 0 in self.train.shape:
            raise ValueError(f"expected train and test weights of one shape [R, N] or [Q, R, N], none of them 0, got {list(self.train.shape)} and {list(self.test.shape)}; give both for every row and case")
        for name, sizes in (("training", self.train_sizes), ("test", self.test_sizes)):
            if not sizes.all():
                raise ValueError(f"expected every row of the plan to have {name} cases, got none in {int((sizes == 0).sum())} rows, the first {np.argwhere(sizes == 0)[0].tolist()}; give each row at least one")
        return self


def as_weights(name: str, values: Any) -> UInt8[np.ndarray, "*Q R N"]:
    """Weights [*Q, R, N] as the package keeps them; ValueError unless they are whole numbers from 0 to 255, or True and False."""
    values = np.asarray(values)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"expected {name} weights as numbers, got an array of {values.dtype}; convert them first")
    bad = np.argwhere(~((values >= 0) & (values <= 255) & (values == np.floor(values))))
    if len(bad):
        where = tuple(bad[0].tolist())
        raise ValueError(f"expected {name} weights that are whole numbers from 0 to 255, got {values[where]} at {list(where)}; a weight says how often the case counts")
    return values.astype(np.uint8)


def _sum_cases(weights: UInt8[np.ndarray, "*Q R N"]) -> Int[np.ndarray, "*Q R"]:
    """Row sums; einsum is five times faster than `sum` where rows are short."""
    return np.einsum("...n->...", weights, dtype=np.int64, casting="unsafe")


@runtime_checkable
class Learner(Protocol):
    """A learning method: two functions of ONE training set. The engine does all the vmapping.

    Implementations are frozen dataclasses of plain values: equal values are equal, hash equal, compile
    once, and print as code that recreates them. Inside `fit` a case of weight 0 must have no influence,
    and a case of weight 2 that of two cases.

    A learner may also have, each optional:

    - `fit_rows(keys [R], x [N, D], y [N, K], w [R, N], left_out: int | None) -> (params [R, ...], trusted [R])`:
      the same as `fit` for R weightings of one data set, where that is cheaper all at once. `left_out` is the
      largest number of cases of weight 0 in a row if all weights are 0 or 1 and that number is small (at most
      D / 4 or 1), else None. Rows that are not trusted are fitted again by `fit`.
    - `check(data, plan)`: raises ValueError for a plan that it cannot learn from, before anything runs.
    - `failure(params) -> int`: 0, or the number (from 1) of the sentence in `failures` that says why this fit failed.
    - `diagnose(params) -> dict` of small arrays, collected into `Losses.info`; messages about failed rows quote "failed_step", -1 for none.
    - `minimised(params) -> Minimum`, for `algebraic`: the numbers that training chose, rebuild(free) -> params, and what it made
      small, cost(free, x [n, D], y [n, K]) -> (losses [n], penalty []).
    """

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Params:
        """Parameters learned from n cases of weight w."""
        ...

    def predict(self, params: Params, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets [m, K] of m cases, in the units of y."""
        ...


@dataclass(frozen=True, eq=False)
class Losses:
    """What `assess` returns: how every trained row did, on the host.

    Attributes:
      test_mean: test-weighted mean loss of each row, [*Q, R]; read it as `g`, which refuses failed rows.
      train_mean: train-weighted mean loss of each row, [*Q, R]; read it as `apparent`.
      plan: the plan that was run.
      learner: the learner, as code that recreates it.
      loss: the name of the per-case loss; its unit is the unit of every number here.
      values: the loss of every row on every case, [*Q, R, N]; None if only the rows were kept.
      failure: 0 for a row that went well, else 1 + the position of its reason in `reasons`, [*Q, R].
      reasons: the sentences that `failure` points to.
      info: what the learner's `diagnose` said, each [*Q, R, ...].
      dropped: failed rows that were left out on request.
      predictions: what every row predicts for every case, [*Q, R, N, K], in the units of the target; None if not kept.
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

    @classmethod
    def from_predictions(cls, y: Any, predictions: Any, train: Any, test: Any, loss: Loss, learner: str = "given predictions") -> "Losses":
        """Losses of predictions that any other tool made.

        Args:
          y: targets, [N, K] or [N].
          predictions: of each row for every case, [R, N, K] or [R, N]; NaN is allowed where a row neither trains nor tests.
          train, test: weights, [R, N], whole numbers from 0 to 255.
          loss: of `jaxgen.loss`, or a function of (y, predictions) to [R, N].
          learner: what to call it.
        Raises:
          ValueError: shapes or weights that do not fit; a loss that is not finite marks its row as failed instead.
        """
        y, predictions = np.asarray(y, np.float64), np.asarray(predictions, np.float64)
        y, predictions = (y[:, None], predictions[..., None]) if y.ndim == 1 else (y, predictions)
        plan = Plan(as_weights("train", train), as_weights("test", test), "given weights").checked()
        if predictions.shape != (*plan.train.shape, y.shape[-1]) or y.shape[0] != plan.n:
            raise ValueError(f"expected y [N, K], predictions [R, N, K] and weights [R, N], got {list(y.shape)}, {list(predictions.shape)} and {list(plan.train.shape)}; give one prediction per row and case")
        values = np.asarray(loss(np.broadcast_to(y, predictions.shape), predictions), np.float64)
        test_mean, train_mean = (np.sum(np.where(w > 0, w * values, 0), axis=-1) / w.sum(-1) for w in (plan.test, plan.train))
        failure = (~np.isfinite(test_mean + train_mean)).astype(np.uint8)
        return cls(test_mean, train_mean, plan, learner, getattr(loss, "__name__", repr(loss)), failure, ("its loss is not finite",), values, predictions=predictions)

    @property
    def train(self) -> UInt8[np.ndarray, "*P R N"]:
        """Training weights of the plan, [*Q, R, N]."""
        return self.plan.train

    @property
    def test(self) -> UInt8[np.ndarray, "*P R N"]:
        """Test weights of the plan, [*Q, R, N]."""
        return self.plan.test

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
          ValueError: a row failed; `without_failed` leaves such rows out.
        """
        self._refuse_failed()
        return self.train_mean

    def __getitem__(self, q: int) -> "Losses":
        """The losses of data set q of Q."""
        if self.sets is None:
            raise IndexError("expected losses with a leading axis Q to choose a set from, got those of a single data set; use them as they are")
        return self._pick((q,), self.plan if self.plan.sets is None else self.plan[q])

    def without_failed(self, *others: "Losses") -> "Losses":
        """These losses without the failed rows, whose number is kept in `dropped`: G [R - failed], and so on.

        Args:
          others: losses on the same plan, whose failed rows are left out too, so that all still compare row by row.
        Raises:
          ValueError: all rows failed, or there are several data sets (choose one first).
        """
        if self.sets is not None:
            raise ValueError(f"expected the losses of one data set, got those of {self.sets}, whose rows would no longer align; choose one with losses[q]")
        good = ~np.any([one.failed for one in (self, *others)], axis=0)
        if not good.any():
            raise ValueError(f"expected a row that went well, got {self.resamples} failed rows of {self.learner}{' and others' if others else ''}: {self._failures()}")
        plan = replace(
            self.plan,
            train=self.train[good],
            test=self.test[good],
            scheme=f"{self.plan.scheme} without {int((~good).sum())} failed rows",
            labels={name: label[good] for name, label in self.plan.labels.items()},
        )
        return replace(self._pick((good,), plan), dropped=self.dropped + int((~good).sum()))

    def _pick(self, index: tuple[Any, ...], plan: Plan) -> "Losses":
        return replace(
            self,
            test_mean=self.test_mean[index],
            train_mean=self.train_mean[index],
            failure=self.failure[index],
            values=None if self.values is None else self.values[index],
            predictions=None if self.predictions is None else self.predictions[index],
            info={name: value[index] for name, value in self.info.items()},
            plan=plan,
        )

    def _failures(self) -> str:
        rows = [tuple(int(i) for i in row) for row in np.argwhere(self.failed)[:3]]
        return "; ".join(f"row {', '.join(map(str, row))}{self._step(row)}: {self.reasons[int(self.failure[row]) - 1]}" for row in rows)

    def _step(self, row: tuple[int, ...]) -> str:
        """The first step at which something failed in a row, where the learner counts steps."""
        steps = np.asarray(self.info.get("failed_step", np.full(self.failure.shape, -1)))[row]
        return f" at step {steps[steps >= 0].min()}" if (steps >= 0).any() else ""

    def _refuse_failed(self) -> None:
        if self.failed.any():
            raise ValueError(
                f"expected every row to have been fitted, got {int(self.failed.sum())} failed of {self.failed.size} for {self.learner} on {self.plan.scheme} "
                f"({self._failures()}); call losses.without_failed() to leave them out, or change the learner or the plan"
            )

    def __repr__(self) -> str:
        shape = f"R={self.resamples}, N={self.plan.n}" if self.sets is None else f"Q={self.sets}, R={self.resamples}, N={self.plan.n}"
        trouble = (f", {int(self.failed.sum())} failed" if self.failed.any() else "") + (f", {self.dropped} failed rows left out" if self.dropped else "")
        return f"Losses({self.learner}, {self.loss} loss, {self.plan.scheme}: {shape}{trouble})"
