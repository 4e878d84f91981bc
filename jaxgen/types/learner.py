"""What a learner is: the base class with all optional methods and their defaults."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree, Shaped

from jaxgen.types.predictive import Mixture
from jaxgen.types.value import Value

Key = PRNGKeyArray

Params = PyTree

Minimum = tuple[PyTree, Callable[[PyTree], Params], Callable[[PyTree, Array, Array], tuple[Array, Array]]]
"""(free, rebuild, cost), what `minimised` of a `Learner` returns."""


class Freedom(NamedTuple):
    """Which changes of unit leave what a learner learns the same: its predictions change their unit with the targets.

    The engine then chooses the units in which single precision loses nothing: a year becomes a number around 0.

    Attributes:
      x_shift: a constant added to an input.
      x_scale: an input multiplied by a constant, each by its own.
      y_shift: a constant added to a target.
      y_scale: all targets multiplied by one constant.
    """

    x_shift: bool = False
    x_scale: bool = False
    y_shift: bool = False
    y_scale: bool = False


RARE = "rarely"
"""Name of a function inside a learner's program, made by `jax.jit`, that only few runs need: chunks of rows are sized
without it.
"""


class RowUnits(NamedTuple):
    """Units that each of R rows has for its own: what is taken off inputs [R, D] and targets [R, K], and what they are
    divided by then.
    """

    x_centre: Float[Array, "R D"]
    x_scale: Float[Array, "R D"]
    y_centre: Float[Array, "R K"]
    y_scale: Float[Array, "R K"]


class RowFills(NamedTuple):
    """What each of R rows puts in the place of missing inputs, beyond numbers that stand there already.

    Attributes:
      missing: 1 where an input of a case is missing, else 0, [n, D].
      more: what a row adds there, [R, D].
    """

    missing: Float[Array, "n D"]
    more: Float[Array, "R D"]

    def filled(self, x: Float[Array, "n D"], more: Float[Array, " D"]) -> Float[Array, "n D"]:
        """The inputs [n, D] of the row that adds these numbers, [D]."""
        return x + self.missing * more[None]


class HostRow(NamedTuple):
    """What came of a row that was trained on the host.

    Attributes:
      predictions: of m cases, [m, K], NaN where the fit failed.
      failure: 0 for a fit that went well, else the number (from 1) of its sentence in `Learner.failures`.
      info: as `Learner.diagnose` says of other rows; a text "error" is quoted in messages about failed rows.
    """

    predictions: Float[np.ndarray, "m K"]
    failure: int
    info: dict[str, np.ndarray]


@dataclass(frozen=True, repr=False)
class Learner(Value):
    """A learning method: two functions of ONE training set. The engine does all the vmapping.

    Learners are frozen dataclasses of plain values: equal values are equal, hash equal, compile once, and print as
    code that recreates them. Inside `fit` a case of weight 0 must have no influence, and a case of weight 2 that of
    two cases; `learn.check` tries a learner on this and more.

    Only `fit` and `predict` must be written. A learner of your own need not derive from this class; what it has of
    the following methods is used, the rest is as here.
    """

    @property
    def failures(self) -> tuple[str, ...]:
        """Sentences that say why a fit can fail; `failure` gives their numbers, from 1."""
        return ()

    @property
    def classifies(self) -> bool:
        """Whether targets must be zeros and ones."""
        return False

    @property
    def predicts(self) -> str:
        """What the predictions are: "numbers", "means" of targets (probabilities, where these are zeros and ones),
        "probabilities", "scores" with the border between two classes at 0.5, or "anything" if it is not known.
        """
        return "numbers"

    @property
    def raw_inputs(self) -> tuple[int, ...]:
        """Numbers of the inputs that must come as they are in the data."""
        return ()

    @property
    def accepts_missing(self) -> bool:
        """Whether it learns from, and predicts for, cases some of whose inputs are missing, NaN."""
        return False

    @property
    def freedom(self) -> Freedom:
        """The changes of unit that leave what is learned the same."""
        return Freedom()

    @property
    def precise(self) -> bool:
        """Whether fits on a CPU or GPU are in double precision, whatever JAX is set to."""
        return False

    @property
    def saves_networks(self) -> bool:
        """Whether there are `path` and `watched`, which early stopping needs."""
        return False

    @property
    def shares_rows(self) -> bool:
        """Whether there is `fit_rows`, for many rows of one data set at once."""
        return False

    @property
    def shares_rows_in_units(self) -> bool:
        """Whether there is `fit_rows_in_units`, for many rows of one data set at once, each in units of its own."""
        return False

    @property
    def shares_rows_filled(self) -> bool:
        """Whether there is `fit_rows_filled`, for many rows of one data set at once, in each of which other numbers
        stand for missing inputs.
        """
        return False

    @property
    def prepares_rows(self) -> bool:
        """Whether `prepared` does something for rows that are trained together."""
        return False

    @property
    def counts_left_out(self) -> bool:
        """Whether `fit_rows` reads `left_out`, of which each number compiles anew."""
        return True

    def counts_left_out_of(self, cases: int, inputs: int) -> bool:
        """The same, of so many cases and inputs."""
        return self.counts_left_out

    def careful_of(self, cases: int, inputs: int) -> "Learner | None":
        """A learner with the same fits of so many cases and inputs whose `fit_rows` is slower, and trusted more often;
        None if there is none. Rows that are not trusted are trained by it, and then, if they must, one by one.
        """
        return None

    @property
    def copies_cases(self) -> bool:
        """Whether `fit` trains on copies of parts of its cases, so that rows gain nothing from sharing all of them."""
        return False

    @property
    def weightings(self) -> int:
        """How many weightings of the same cases `fit_rows` makes of each row, from which the size of chunks follows."""
        return 1

    @property
    def worth_sharing(self) -> tuple[int, float]:
        """The fewest rows, and the least share of the cases that each trains on, for which `fit_rows` is quicker; of
        large data two rows are enough.
        """
        return 8, 0.0

    def shares_rows_of(self, cases: int, trained: int, inputs: int) -> bool:
        """Whether `fit_rows` is quicker for rows that train on at most so many of the cases, with so many inputs."""
        return True

    def shares_one_row_of(self, cases: int, inputs: int) -> bool:
        """Whether `fit_rows` is quicker even for a single row of so many cases, with so many inputs."""
        return False

    @property
    def rounds(self) -> int | None:
        """Roughly how often a fit goes through its cases, from which the size of the parts of a run follows; None where
        its loops tell.
        """
        return None

    @property
    def on_host(self) -> bool:
        """Whether `assess` and `predict` train its rows on the host, by `train_rows`, and trace nothing."""
        return False

    @property
    def versions(self) -> dict[str, str]:
        """Versions of other packages, by name, that its numbers depend on: a run in a store goes on with the same."""
        return {}

    def for_data(self, data: Any) -> "Learner":
        """The learner as it is to be used on these data (`Data`, x [*Q, N, D]); usually itself."""
        return self

    def for_rows(self, share: float) -> "Learner":
        """The learner, or one with the same fits that is quicker for rows with at least this share of the cases."""
        return self

    def check(self, data: Any, plan: Any) -> None:
        """ValueError for data [*Q, N, D] or a plan [*Q, R, N] that it cannot learn from, before anything runs."""

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Params:
        """Parameters learned from n cases of weight w."""
        raise TypeError(f"expected {type(self).__name__} to have a method fit, got none; write fit(key, x, y, w)")

    def predict(self, params: Params, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets [m, K] of m cases, in the units of y."""
        raise TypeError(f"expected {type(self).__name__} to have a method predict, got none; write predict(params, x)")

    def predictive(self, params: Params, x: Float[Array, "m D"]) -> Mixture | None:
        """What it believes about the targets of m cases [m, D] beyond `predict`: a `learn.Mixture` [S, m, K], in the
        units of y; None if it believes nothing, or predicts probabilities, which say it all.
        """
        return None

    def fit_from(
        self, start: PyTree, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]
    ) -> Params:
        """As `fit` of cases [n, D], [n, K], [n], from given start parameters; None starts as `fit` does."""
        if start is None:
            return self.fit(key, x, y, w)
        raise TypeError(f"expected a learner that can begin from given parameters, got {self}; leave start out")

    def fit_in_units(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        centre: Float[Array, " D"],
        scale: Float[Array, " D"],
    ) -> Params:
        """The same as `fit` on the inputs (x - centre) / scale of cases [n, D], [n, K], [n]; centre and scale [D] are
        those of a row, and a learner that need not write out such inputs shares x with the others.
        """
        return self.fit(key, (x - centre[None]) / scale[None], y, w)

    def prepared(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], rows: int) -> "Learner":
        """The learner with what all rows of one data set can share, made once for them; its `fit_rows` gives the same
        fits, but for rounding.

        Args:
          x, y: cases, [n, D] and [n, K].
          w: weights about as those of the rows on average, [n].
          rows: about so many there will be, a power of two up to 64.
        """
        return self

    def prepared_in_units(
        self,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        rows: int,
        scale: Float[Array, " D"],
    ) -> "Learner":
        """The same of cases [n, D], [n, K] and mean weights [n] for `fit_rows_in_units`, where rows divide the inputs
        by about this scale, [D].
        """
        return self

    def prepared_filled(
        self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], rows: int
    ) -> "Learner":
        """The same of cases [n, D], [n, K] and mean weights [n] for `fit_rows_filled`, where each row puts numbers of
        its own, but about these, in the place of missing inputs.
        """
        return self.prepared(x, y, w, rows)

    def fit_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[Params, Bool[Array, " R"]] | tuple[Params, Bool[Array, " R"], Float[Array, "R n K"]]:
        """The same as `fit` for R weightings of one data set, where `shares_rows` says that there is such a way.

        Args:
          keys: one a row, [R].
          x, y: cases, [n, D] and [n, K].
          w: weights, [R, n].
          left_out: no row has more cases of weight 0 than this, if all weights are 0 or 1: exact up to D / 4 or 1,
            rounded up where it is more and that pays, else None.
        Returns:
          Parameters, every array with a leading axis [R], and which rows to trust, [R]; `fit` repeats the others. If
          the work that rows share is that of predicting, also the predictions of these cases, [R, n, K]; only `failure`
          and `diagnose` then read the parameters.
        """
        raise TypeError(f"expected a learner that shares work between rows, got {self}; call fit for every row")

    def fit_rows_in_units(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits,
        left_out: int | None,
    ) -> tuple[Params, Bool[Array, " R"]] | tuple[Params, Bool[Array, " R"], Float[Array, "R n K"]]:
        """The same as `fit` for R weightings of one data set, each in units of its own, where `shares_rows_in_units`
        says that there is such a way.

        Args:
          keys, x, y, w, left_out: as for `fit_rows`; x [n, D] and y [n, K] in units of the data.
          units: of each row; see `RowUnits`.
        Returns:
          As `fit_rows`: parameters [R, ...] in the units of each row, and trusted, [R]; predictions, if there are any,
          [R, n, K], in units of the data.
        """
        raise TypeError(f"expected a learner that shares work between rows, got {self}; call fit for every row")

    def fit_rows_filled(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        fills: RowFills,
        units: RowUnits | None,
        left_out: int | None,
    ) -> tuple[Params, Bool[Array, " R"]] | tuple[Params, Bool[Array, " R"], Float[Array, "R n K"]]:
        """The same as `fit` for R weightings of one data set, each with numbers of its own for missing inputs, where
        `shares_rows_filled` says that there is such a way.

        Args:
          keys, y, w, left_out: as for `fit_rows`.
          x: cases [n, D], with about the same numbers for missing inputs.
          fills: what each row adds to these.
          units: as for `fit_rows_in_units`, None for those of the data.
        Returns:
          As `fit_rows_in_units`.
        """
        raise TypeError(f"expected a learner that shares work between rows, got {self}; call fit for every row")

    def train_rows(
        self,
        words: Shaped[np.ndarray, "R words"],
        x: Float[np.ndarray, "n D"],
        y: Float[np.ndarray, "n K"],
        w: Shaped[np.ndarray, "R n"],
        at: Float[np.ndarray, "m D"],
    ) -> Iterator[HostRow]:
        """Trains R weightings of one data set and says, row by row in their order, what each predicts; for learners
        that are trained `on_host`.

        Args:
          words: the numbers of the random key of each row, [R, words].
          x, y: cases, [n, D] and [n, K], in double precision and the units of the data.
          w: how often each case counts, whole numbers, [R, n]; cases of weight 0 must be left out.
          at: cases to predict, [m, D].
        """
        raise TypeError(f"expected a learner that trains on the host, got {self}; call fit for every row")

    def shares_along(self, setting: str) -> bool:
        """Whether there is `fit_along` for a setting: the name of a field, that of a learner inside as "base.ridge"."""
        return False

    def fit_along(
        self,
        setting: str,
        values: tuple[Any, ...],
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
    ) -> Params:
        """The same as `fit` for several values of one setting, where `shares_along` says that there is such a way.

        Args:
          setting: as for `shares_along`.
          values: of the setting, S.
          key, x, y, w: as for `fit`, cases [n, D], [n, K] of weights [n].
        Returns:
          Parameters, every array with a leading axis [S]; `predict` reads them whatever the setting is.
        """
        raise TypeError(f"expected a learner that shares work between settings, got {self}; call fit for every one")

    def failure(self, params: Params) -> Any:
        """0 for a fit that went well, else the number (from 1) of its sentence in `failures`; []."""
        return np.int32(0)

    def diagnose(self, params: Params) -> dict[str, Any]:
        """Small arrays [...] that are collected into `Losses.info`; messages about failed rows quote "failed_step", -1
        for none.
        """
        return {}

    def minimised(self, params: Params) -> Minimum | None:
        """What training made small, for `algebraic`; None where it made nothing small that the learner can name.

        Returns:
          The numbers that training chose, rebuild(free) -> params, and cost(free, x [n, D], y [n, K]) -> (losses [n],
          penalty []).
        """
        return None

    def path(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        start: PyTree = None,
    ) -> Params:
        """The networks saved while it trains, every array with a leading axis [S]."""
        raise TypeError(
            f"expected a learner that keeps checkpoints while it trains, got {self}; use Descent or Conjugate, "
            "also inside Normalised or Augmented"
        )

    def watched(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        watch: Callable[[Params, Any], Float[Array, ""]],
        patience: float | None = None,
        stretch: float = 1.0,
        start: PyTree = None,
    ) -> Any:
        """The best of the checkpoints by the error that `watch` gives, errors [S]; see `learn.Descent`."""
        raise TypeError(
            f"expected a learner that keeps checkpoints while it trains, got {self}; use Descent or Conjugate, "
            "also inside Normalised or Augmented"
        )
