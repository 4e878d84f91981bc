"""Estimators of scikit-learn's kind as learners: trained on the host, on the same rows of a plan as all others."""

import hashlib
import multiprocessing
import re
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Float, Shaped

from jaxgen.learn.external_rows import Trained, seeded, trained_row
from jaxgen.types import Data, Key, Learner, Plan
from jaxgen.types.identity import code_digest
from jaxgen.types.keys import require as require_key
from jaxgen.types.learner import HostRow
from jaxgen.types.numbers import first_line, require, require_flag, shown

_ALONE_SECONDS = 1.0
"""So long rows are trained in this process before others are started, which takes about as long."""

_WORTH_SECONDS = 0.2
"""Rows of a data set that take less are trained in this process, too."""

_ERROR_LETTERS = 120
"""So much of the text of an error is kept for each row."""


@dataclass(frozen=True, repr=False, eq=False)
class External(Learner):
    """An estimator of scikit-learn's kind (a forest, a support vector machine, a pipeline) as a learner.

    It is trained on the host, a clone for each row, on the same rows of a plan as every other learner. So a network
    and a forest are compared case by case, with the same tests. `assess`, `predict`, stores and executors take it;
    what differentiates or vectorises training (wrappers such as `Normalised` or `Tuned`, `algebraic`) does not: put
    what is wanted inside, as in `External(make_pipeline(StandardScaler(), SVC()))` or `External(GridSearchCV(...))`.

    A case of weight 0 is left out. Counts above 1, as in a bootstrap sample, become `sample_weight` where `fit` of
    the estimator itself takes it; otherwise, in pipelines for example, the case is there so many times. Some
    estimators take a weight for something else than repeated cases (a forest draws its samples from the different
    cases, and limits on leaves count these): `repeat=True` repeats cases always.

    The predictions of a classifier are the probabilities of `predict_proba`, one column for each class of the data.
    A class without training cases in a row gets probability 0 there, and a case of it a cross-entropy of 708 nats, so
    stratify the plan for that loss. Without `predict_proba` they are, for two classes, the margins d of
    `decision_function` as (1 - d) / 2 and (1 + d) / 2, and otherwise 1 for the predicted class and 0 for the others.

    Every `random_state` of the estimator, also inside a pipeline, is drawn from the key of the row in place of what it
    was, so that the same key gives the same results for any number of processes. Each process uses one thread.

    A fit that raises marks its row as failed; what it said is in `Losses.info["error"]`. `Losses.info["warned"]` says
    which rows were warned about, and the first of these warnings is passed on.

    Attributes:
      estimator: with `fit`, `predict`, `get_params` and `set_params`; a clone of it is kept.
      jobs: processes that train rows at the same time. None trains in this process for a second, and then on all
        cores, or goes on alone where this process was itself started by an executor; 1 always trains in this process,
        where alone `n_jobs` of the estimator is heeded. It changes no numbers and is no part of the value.
      repeat: repeat cases of a count above 1, also where `fit` takes `sample_weight`.
    Raises:
      TypeError: no such estimator, or its class.
      ValueError: jobs or repeat out of range.
    """

    estimator: Any
    jobs: int | None = field(default=None, compare=False)
    repeat: bool = False

    on_host: ClassVar[bool] = True
    precise: ClassVar[bool] = True
    accepts_missing: ClassVar[bool] = True  # `check` refuses them for estimators that say that they do not
    failures: ClassVar[tuple[str, ...]] = ("the estimator raised an error while it was fitted or predicted",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.jobs is not None:
            require("jobs", self.jobs, 1, advice="leave it out for all cores")
        require_flag("repeat", self.repeat)
        object.__setattr__(self, "estimator", _cloned(self.estimator))

    @property
    def classifies(self) -> bool:
        """Whether the estimator is a classifier."""
        from sklearn.base import is_classifier

        return is_classifier(self.estimator)

    @property
    def predicts(self) -> str:
        """Probabilities, scores or numbers, by what the estimator has."""
        if not self.classifies:
            return "numbers"
        return "probabilities" if hasattr(self.estimator, "predict_proba") else "scores"

    @property
    def versions(self) -> dict[str, str]:
        """Of scikit-learn, and of the packages that the estimators inside are from."""
        import sklearn  # noqa: F401

        names = sorted({"sklearn", *(type(each).__module__.split(".")[0] for each in _within(self.estimator))})
        known = {name: getattr(sys.modules.get(name), "__version__", None) for name in names}
        return {name: str(number) for name, number in known.items() if number is not None}

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses a classifier for numbers, and missing inputs where nothing in the estimator takes them.

        Raises:
          ValueError: the targets of a classifier are no classes, or inputs are missing.
        """
        if data.missing and bool(np.isnan(data.x).any()) and not any(map(_takes_missing, _within(self.estimator))):
            raise ValueError(
                f"expected an estimator that accepts missing inputs, got {self}; put SimpleImputer before it, as in "
                "make_pipeline(SimpleImputer(), estimator)"
            )
        single = data.y.shape[-1] == 1
        zeros_and_ones = bool(((data.y == 0) | (data.y == 1)).all())
        if self.classifies and not (zeros_and_ones and (single or bool((data.y.sum(-1) == 1).all()))):
            raise ValueError(
                f"expected classes for {self}, which is a classifier, got the numbers of {data.target!r}; read the "
                "data with task='classification', or use a regressor"
            )

    def fit(self, key: Key, x: Any, y: Any, w: Any) -> Any:
        """TypeError: rows are trained by `train_rows`."""
        raise TypeError(
            f"expected a learner that JAX can trace, got {self}, which is trained on the host; use jaxgen.assess or "
            "jaxgen.predict"
        )

    def seeded(self, key: Key, row: int = 0, data_set: int = 0) -> Any:
        """The estimator as it is fitted in a row of `assess(key, ...)`: a clone, not fitted, with its `random_state`.

        Args:
          key: that was given to `assess` or `predict`.
          row: number of the row, r.
          data_set: number of the data set, q.
        """
        row_key = jax.random.fold_in(jax.random.fold_in(require_key(key), data_set), row)
        return seeded(self.estimator, np.asarray(jax.random.key_data(row_key)))

    def train_rows(
        self,
        words: Shaped[np.ndarray, "R words"],
        x: Float[np.ndarray, "n D"],
        y: Float[np.ndarray, "n K"],
        w: Shaped[np.ndarray, "R n"],
        at: Float[np.ndarray, "m D"],
    ) -> Iterator[HostRow]:
        """What each of R rows predicts for cases [m, D]; see `Learner.train_rows`."""
        from sklearn.utils.validation import has_fit_parameter

        weighted = not self.repeat and has_fit_parameter(self.estimator, "sample_weight")
        warning = ""
        given = {"x": x, "y": y, "at": at, "classifies": self.classifies, "weighted": weighted}
        for trained in self._trained(words, w, given):
            warning = warning or trained.warning
            info = {"error": np.array(trained.error, f"U{_ERROR_LETTERS}"), "warned": np.array(bool(trained.warning))}
            yield HostRow(trained.predictions, int(bool(trained.error)), info)
        if warning:
            name = type(self.estimator).__name__
            text = f'rows of {name} were warned about (info["warned"] says which), for example {warning}'
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def _trained(self, words: np.ndarray, w: np.ndarray, given: dict[str, Any]) -> Iterator[Trained]:
        """What came of each row, in their order: here, or from other processes."""
        jobs, rows, first = self._jobs(), len(words), 0
        while first < rows and not (jobs > 1 and self._takes_long(rows - first)):
            begun = time.perf_counter()
            trained = trained_row(self.estimator, words[first], w[first], alone=self.jobs == 1, **given)
            self._clock[0] += time.perf_counter() - begun
            self._clock[1] += 1
            first += 1
            yield trained
        if first < rows:
            yield from self._elsewhere(min(jobs, rows - first), words[first:], w[first:], given)

    def _takes_long(self, rows: int) -> bool:
        """Whether so many rows are worth other processes, by the rows that were trained here before."""
        if rows == 1 or self.jobs is not None:
            return rows > 1
        seconds, trained = self._clock
        return seconds > _ALONE_SECONDS and rows * seconds > _WORTH_SECONDS * trained

    @cached_property
    def _clock(self) -> list[float]:
        """Seconds and number of the rows that were trained in this process, also of other data sets."""
        return [0.0, 0.0]

    def _elsewhere(self, jobs: int, words: np.ndarray, w: np.ndarray, given: dict[str, Any]) -> Iterator[Trained]:
        """What came of each row from processes, which stay for the next rows."""
        from joblib import Parallel, delayed, parallel_config

        with parallel_config(backend="loky", inner_max_num_threads=1):
            parallel: Any = Parallel(n_jobs=jobs, return_as="generator")
        try:
            yield from parallel(
                delayed(trained_row)(self.estimator, of_row, weights, alone=False, **given)
                for of_row, weights in zip(words, w, strict=True)
            )
        except (RuntimeError, OSError) as error:  # a process was killed, or none could be started
            raise RuntimeError(
                f"expected {jobs} processes to train rows of {self}, got {first_line(error).rstrip('.')}; give it "
                "fewer jobs, or jobs=1 for this process alone"
            ) from error

    def _jobs(self) -> int:
        """Processes that train rows; where this one was started by an executor, its others have the other cores."""
        from joblib import cpu_count

        started = multiprocessing.parent_process() is not None
        return 1 if started and self.jobs is None else self.jobs or cpu_count()

    @cached_property
    def _text(self) -> str:
        return f"{_described(self.estimator)} repeat={self.repeat}"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, External) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"External({_code(self.estimator)}{', repeat=True' if self.repeat else ''})"


def _cloned(estimator: Any) -> Any:
    """A clone of an estimator, not fitted; TypeError for anything else."""
    advice = "give for example sklearn.ensemble.RandomForestRegressor()"
    if isinstance(estimator, type):
        raise TypeError(f"expected an estimator, got the class {estimator.__name__}; write {estimator.__name__}()")
    if isinstance(estimator, Learner):
        raise TypeError(
            f"expected an estimator of scikit-learn's kind, got {shown(estimator)}; use it without External"
        )
    if not all(callable(getattr(estimator, name, None)) for name in ("fit", "predict", "get_params", "set_params")):
        raise TypeError(
            "expected an estimator with the methods fit, predict, get_params and set_params of scikit-learn, got "
            f"{shown(estimator)}; {advice}"
        )
    from sklearn.base import clone

    try:
        return clone(estimator)
    except Exception as error:
        raise TypeError(
            f"expected an estimator that scikit-learn can clone, got {type(estimator).__name__} with "
            f"{first_line(error)}; let its __init__ keep its arguments as they are"
        ) from error


def _within(estimator: Any) -> Iterator[Any]:
    """An estimator and those inside it."""
    yield estimator
    for value in estimator.get_params(deep=True).values():
        if hasattr(value, "get_params") and not isinstance(value, type):
            yield value


def _takes_missing(estimator: Any) -> bool:
    """Whether an estimator says that it takes NaN, or says nothing of it."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    return tags is None or bool(tags().input_tags.allow_nan)


def _described(value: Any) -> str:
    """Text that differs where estimators differ: classes and parameters, arrays and code of the user's by digests."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        inner = (f"{name}={_described(one)}" for name, one in sorted(value.get_params(deep=False).items()))
        return f"{type(value).__module__}.{type(value).__qualname__}({', '.join(inner)}){code_digest(type(value))}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {_described(one)}' for name, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(_described, value))})"
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype} {value.shape} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    return f"{re.sub(r' at 0x[0-9a-fA-F]+', '', repr(value))}{code_digest(value) if callable(value) else ''}"


def _code(estimator: Any) -> str:
    """The code of an estimator on one line, however long."""
    try:
        text = estimator.__repr__(N_CHAR_MAX=sys.maxsize)
    except TypeError:
        text = repr(estimator)
    return " ".join(text.split())
