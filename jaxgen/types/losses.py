"""How every trained row did: what `assess` returns and all statistics take."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8

from jaxgen.types.learner import Loss
from jaxgen.types.plan import Plan, as_weights


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
    def from_predictions(
        cls, y: Any, predictions: Any, train: Any, test: Any, loss: Loss, learner: str = "given predictions"
    ) -> "Losses":
        """Losses of predictions that any other tool made.

        Args:
          y: targets, [N, K] or [N].
          predictions: of each row for every case, [R, N, K] or [R, N]; NaN is allowed where a row neither trains nor
            tests.
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
            raise ValueError(
                f"expected y [N, K], predictions [R, N, K] and weights [R, N], got {list(y.shape)}, "
                f"{list(predictions.shape)} and {list(plan.train.shape)}; give one prediction per row and case"
            )
        values = np.asarray(loss(np.broadcast_to(y, predictions.shape), predictions), np.float64)
        test_mean, train_mean = (
            np.sum(np.where(w > 0, w * values, 0), axis=-1) / w.sum(-1) for w in (plan.test, plan.train)
        )
        failure = (~np.isfinite(test_mean + train_mean)).astype(np.uint8)
        return cls(
            test_mean,
            train_mean,
            plan,
            learner,
            getattr(loss, "__name__", repr(loss)),
            failure,
            ("its loss is not finite",),
            values,
            predictions=predictions,
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
                f"{self.learner}{' and others' if others else ''}: {self._failures()}"
            )
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
        return "; ".join(
            f"row {', '.join(map(str, row))}{self._step(row)}: {self.reasons[int(self.failure[row]) - 1]}"
            for row in rows
        )

    def _step(self, row: tuple[int, ...]) -> str:
        """The first step at which something failed in a row, where the learner counts steps."""
        steps = np.asarray(self.info.get("failed_step", np.full(self.failure.shape, -1)))[row]
        return f" at step {steps[steps >= 0].min()}" if (steps >= 0).any() else ""

    def _refuse_failed(self) -> None:
        if self.failed.any():
            raise ValueError(
                f"expected every row to have been fitted, got {int(self.failed.sum())} failed of "
                f"{self.failed.size} for {self.learner} on {self.plan.scheme} "
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
        return f"Losses({self.learner}, {self.loss} loss, {self.plan.scheme}: {shape}{trouble})"
