"""What a learner is: the base class with all optional methods and their defaults, and the door for other learners."""

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


class RowUnits(NamedTuple):
    """Units that each of R rows has for its own: what is taken off inputs [R, D] and targets [R, K], and what they are
    divided by then.
    """

    x_centre: Float[Array, "R D"]
    x_scale: Float[Array, "R D"]
    y_centre: Float[Array, "R K"]
    y_scale: Float[Array, "R K"]


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
    def prepares_rows(self) -> bool:
        """Whether `prepared` does something for rows that are trained together."""
        return False

    @property
    def counts_left_out(self) -> bool:
        """Whether `fit_rows` reads `left_out`, of which each number compiles anew."""
        return True

    @property
    def worth_sharing(self) -> tuple[int, float]:
        """The fewest rows, and the least share of the cases that each trains on, for which `fit_rows` is quicker; of
        large data two rows are enough.
        """
        return 8, 0.0

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


@dataclass(frozen=True, repr=False)
class Foreign(Learner):
    """A learner of the user's that does not derive from `Learner`, with the defaults of what it lacks.

    This is the one place that looks for optional methods.

    Attributes:
      own: the user's learner.
    """

    own: Any

    @property
    def failures(self) -> tuple[str, ...]:
        """As it says, if it does."""
        sentences = getattr(self.own, "failures", ())
        return tuple(sentences) if isinstance(sentences, list) else sentences

    @property
    def classifies(self) -> bool:
        """As it says, if it does."""
        return bool(getattr(self.own, "classifies", False))

    @property
    def predicts(self) -> str:
        """As it says, if it does."""
        return getattr(self.own, "predicts", "anything")

    @property
    def raw_inputs(self) -> tuple[int, ...]:
        """As it says, if it does."""
        return tuple(getattr(self.own, "raw_inputs", ()))

    @property
    def accepts_missing(self) -> bool:
        """As it says, if it does."""
        return bool(getattr(self.own, "accepts_missing", False))

    @property
    def freedom(self) -> Freedom:
        """As it says, if it does."""
        freedom = getattr(self.own, "freedom", Freedom())
        if not isinstance(freedom, Freedom):
            raise TypeError(
                f"expected freedom of {self} to be a learn.Freedom, got {type(freedom).__name__}; return "
                "learn.Freedom(x_shift=True) or the like"
            )
        return freedom

    @property
    def precise(self) -> bool:
        """As it says, if it does."""
        return bool(getattr(self.own, "precise", False))

    @property
    def saves_networks(self) -> bool:
        """Whether it has `watched`."""
        return hasattr(self.own, "watched")

    @property
    def shares_rows(self) -> bool:
        """Whether it has `fit_rows`."""
        return hasattr(self.own, "fit_rows")

    @property
    def prepares_rows(self) -> bool:
        """Whether it has `prepared`."""
        return hasattr(self.own, "prepared")

    @property
    def rounds(self) -> int | None:
        """As it says, if it does with a whole number."""
        said = getattr(self.own, "rounds", None)
        return said if type(said) is int and said > 0 else None

    @property
    def counts_left_out(self) -> bool:
        """As it says, if it does."""
        return bool(getattr(self.own, "counts_left_out", True))

    @property
    def worth_sharing(self) -> tuple[int, float]:
        """As it says, if it does."""
        found = getattr(self.own, "worth_sharing", super().worth_sharing)
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(
                f"expected worth_sharing of {self} to be (rows, share of the cases), got {found!r}; return (8, 0.0)"
            )
        return found

    def for_data(self, data: Any) -> Learner:
        """As it says for these data [*Q, N, D], if it does."""
        return as_learner(self.own.for_data(data)) if hasattr(self.own, "for_data") else self

    def for_rows(self, share: float) -> Learner:
        """As it says of such rows, if it does."""
        what = f"for_rows(share) of {self} to give a learner"
        return as_learner(self.own.for_rows(share), what) if hasattr(self.own, "for_rows") else self

    def check(self, data: Any, plan: Any) -> None:
        """As it says of data [*Q, N, D] and plan [*Q, R, N], if it does."""
        if hasattr(self.own, "check"):
            self.own.check(data, plan)

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Params:
        """Its parameters."""
        return self.own.fit(key, x, y, w)

    def predict(self, params: Params, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Its predictions."""
        return self.own.predict(params, x)

    def predictive(self, params: Params, x: Float[Array, "m D"]) -> Mixture | None:
        """As it says of cases [m, D], if it does."""
        return self.own.predictive(params, x) if hasattr(self.own, "predictive") else None

    def prepared(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], rows: int) -> Learner:
        """As it says of cases [n, D], [n, K] and mean weights [n]."""
        known = self.own.prepared(x, y, w, rows)
        if not callable(getattr(known, "fit_rows", None)):
            raise ValueError(
                f"expected prepared(x, y, w, rows) of {self} to give a learner with fit_rows, got "
                f"{type(known).__name__}; return the learner with what it has found, or as it is"
            )
        return Foreign(known)  # not a value, since it holds arrays

    def fit_from(self, start: PyTree, key: Key, x: Array, y: Array, w: Array) -> Params:
        """Its parameters for cases [n, D], [n, K], [n], from given ones."""
        if start is None:
            return self.own.fit(key, x, y, w)
        if not hasattr(self.own, "fit_from"):
            return super().fit_from(start, key, x, y, w)
        return self.own.fit_from(start, key, x, y, w)

    def fit_rows(self, keys: Array, x: Array, y: Array, w: Array, left_out: int | None) -> Any:
        """Its parameters of rows [R]; see `Learner.fit_rows`."""
        return self.own.fit_rows(keys, x, y, w, left_out)

    def shares_along(self, setting: str) -> bool:
        """As it says, if it does."""
        return hasattr(self.own, "fit_along") and bool(self.own.shares_along(setting))

    def fit_along(self, setting: str, values: tuple[Any, ...], key: Key, x: Array, y: Array, w: Array) -> Params:
        """Its parameters [S] for several values of a setting and cases [n, D], [n, K], [n]."""
        return self.own.fit_along(setting, values, key, x, y, w)

    def failure(self, params: Params) -> Any:
        """As it says, if it does; []."""
        return self.own.failure(params) if hasattr(self.own, "failure") else super().failure(params)

    def diagnose(self, params: Params) -> dict[str, Any]:
        """As it says, if it does; arrays [...]."""
        return self.own.diagnose(params) if hasattr(self.own, "diagnose") else {}

    def minimised(self, params: Params) -> Minimum | None:
        """As it says, if it does."""
        return self.own.minimised(params) if hasattr(self.own, "minimised") else None

    def path(self, key: Key, x: Array, y: Array, w: Array, start: PyTree = None) -> Params:
        """Its checkpoints for cases [n, D], [n, K], [n]."""
        if not hasattr(self.own, "path"):
            return super().path(key, x, y, w, start)
        return self.own.path(key, x, y, w) if start is None else self.own.path(key, x, y, w, start=start)

    def watched(
        self, key: Key, x: Array, y: Array, w: Array, watch: Any, patience=None, stretch=1.0, start: PyTree = None
    ) -> Any:
        """Its best network for cases [n, D], [n, K], [n]."""
        if not hasattr(self.own, "watched"):
            return super().watched(key, x, y, w, watch, patience, stretch, start)
        return self.own.watched(key, x, y, w, watch, patience, stretch, start)

    def __repr__(self) -> str:
        return repr(self.own)


def as_learner(learner: Any, what: str = "a learner") -> Learner:
    """The learner itself if it derives from `Learner`, else one with the defaults of what it lacks.

    Args:
      learner: anything with methods fit and predict.
      what: what is expected, for the message.
    Raises:
      TypeError: it has no methods fit and predict, is a class, or is no value: not hashable, or equal to itself only.
    """
    try:
        repr(learner)
    except Exception as error:
        raise TypeError(
            f"expected {what} that prints as code which makes it, got a {type(learner).__name__} whose repr fails with "
            f"{type(error).__name__}; make it a frozen dataclass of plain values"
        ) from error
    if isinstance(learner, Learner):
        return learner
    advice = "make one, for example learn.LeastSquares()"
    if isinstance(learner, type):
        raise TypeError(f"expected {what}, got the class {learner.__name__}; write {learner.__name__}()")
    if not all(callable(getattr(learner, name, None)) for name in ("fit", "predict")):
        raise TypeError(f"expected {what} with the methods fit and predict, got {_short(learner)}; {advice}")
    if type(learner).__module__.split(".")[0] == "sklearn":
        raise TypeError(
            f"expected {what} whose fit takes (key, x, y, w) and whose predict takes (params, x), got scikit-learn's "
            f"{type(learner).__name__}; use learn.External({type(learner).__name__}(...))"
        )
    if type(learner).__hash__ in (None, object.__hash__):
        raise TypeError(
            f"expected {what} that can be hashed by its values, got {_short(learner)}; make it a frozen dataclass of "
            "plain values"
        )
    return Foreign(learner)


def as_inner(learner: Any, what: str = "a learner") -> Learner:
    """As `as_learner`, for a learner that another one trains.

    Raises:
      TypeError: it is no learner, or one whose rows only the engine can train, on the host.
    """
    inner = as_learner(learner, what)
    if inner.on_host:
        raise TypeError(
            f"expected {what} traced by JAX, got {_short(inner)}, which is trained on the host; do inside it what "
            "is wanted, for example with make_pipeline(StandardScaler(), estimator) or GridSearchCV of scikit-learn"
        )
    return inner


def _short(learner: Any) -> str:
    """Code of an object, cut where it is long."""
    text = " ".join(repr(learner).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
