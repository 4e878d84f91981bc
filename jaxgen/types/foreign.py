"""The door for learners that do not derive from `Learner`: defaults for what they lack, sentences for mistakes."""

import inspect
from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float, PyTree

from jaxgen.types.learner import Freedom, Key, Learner, Minimum, Params
from jaxgen.types.predictive import Mixture


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

    def counts_left_out_of(self, cases: int, inputs: int) -> bool:
        """As it says of so many, if it does."""
        if not hasattr(self.own, "counts_left_out_of"):
            return self.counts_left_out
        return bool(self.own.counts_left_out_of(cases, inputs))

    def shares_rows_of(self, cases: int, trained: int, inputs: int) -> bool:
        """As it says of so many, if it does."""
        return not hasattr(self.own, "shares_rows_of") or bool(self.own.shares_rows_of(cases, trained, inputs))

    def shares_one_row_of(self, cases: int, inputs: int) -> bool:
        """As it says of so many, if it does."""
        method = getattr(self.own, "shares_one_row_of", None)
        if method is None:
            return False
        try:
            inspect.signature(method).bind(cases, inputs)
        except TypeError as error:
            raise TypeError(
                f"expected shares_one_row_of(cases, inputs) of {self} to take two arguments beside self, got {error}; "
                "define it as def shares_one_row_of(self, cases, inputs)"
            ) from None
        return bool(method(cases, inputs))

    def careful_of(self, cases: int, inputs: int) -> Learner | None:
        """As it says of so many, if it does."""
        careful = self.own.careful_of(cases, inputs) if hasattr(self.own, "careful_of") else None
        if careful is None:
            return None
        return as_learner(careful, f"careful_of(cases, inputs) of {self} to give a learner or None")

    @property
    def weightings(self) -> int:
        """As it says, if it does with a whole number."""
        said = getattr(self.own, "weightings", 1)
        return said if type(said) is int and said > 0 else 1

    @property
    def copies_cases(self) -> bool:
        """As it says, if it does."""
        return bool(getattr(self.own, "copies_cases", False))

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
        return self._learner_for("data", data)

    def for_rows(self, share: float) -> Learner:
        """As it says of such rows, if it does."""
        return self._learner_for("rows", share, "share")

    def _learner_for(self, which: str, given: Any, argument: str | None = None) -> Learner:
        """What its method `for_data` or `for_rows` gives, if it has one."""
        name = f"for_{which}"
        method, call = getattr(self.own, name, None), f"{name}({argument or which}) of {self}"
        if method is None:
            return self
        try:
            inspect.signature(method).bind(given)
        except TypeError as error:
            raise TypeError(
                f"expected {call} to take one argument beside self, got {error}; define it as "
                f"def {name}(self, {argument or which})"
            ) from None
        return as_learner(method(given), f"{call} to give a learner")

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
