"""Learners as estimators of scikit-learn: for its pipelines, grid searches and scores."""

from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Shaped
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from jaxgen.learn import LeastSquares, Logistic, Normalised
from jaxgen.types import Data, Learner, Plan
from jaxgen.types.calls import explained, failure_of
from jaxgen.types.foreign import as_inner
from jaxgen.types.identity import code_digest
from jaxgen.types.numbers import shown

_LEAST_CASES = 32
"""Programs are compiled for so many cases at least, and for the next power of two where there are more."""

_MOST_DOUBLED = 1024
"""From so many cases on programs are compiled for the next quarter of a power of two."""

_LARGEST_KEY = 2**32


class _Estimator(BaseEstimator):
    """What both kinds share: a learner, trained on one training set in double precision."""

    def __init__(self, learner: Any = None, random_state: Any = None):
        self.learner = learner
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep` also the settings of the learner, such as "learner__ridge" and
        "learner__base__ridge".
        """
        params = super().get_params(deep=deep)
        if deep:
            params |= {f"learner__{name}": value for name, value in _settings(self._wanted()).items()}
        return params

    def set_params(self, **params: Any) -> "_Estimator":
        """Sets parameters by name, also settings of the learner, such as "learner__ridge".

        Raises:
          ValueError: no such parameter.
        """
        settings = {name.partition("__")[2]: params.pop(name) for name in list(params) if name.startswith("learner__")}
        super().set_params(**params)
        for name, value in settings.items():
            if name not in _settings(self._wanted()):
                raise ValueError(
                    f"expected a setting of {self._wanted()}, got {name!r}; choose among "
                    f"{', '.join(_settings(self._wanted()))}"
                )
            self.learner = _with_setting(self._wanted(), name.split("__"), value)
        return self

    def _default(self) -> Learner:
        raise NotImplementedError

    def _wanted(self) -> Any:
        """The learner, or the default one."""
        return self._default() if self.learner is None else self.learner

    def _in_use(self) -> Learner:
        """The learner as it was trained, or as it is to be."""
        return self.learner_ if hasattr(self, "learner_") else self._checked()

    def _checked(self) -> Learner:
        """The learner, if JAX can train it."""
        wanted = self._wanted()
        if isinstance(wanted, BaseEstimator) or (isinstance(wanted, Learner) and wanted.on_host):
            raise TypeError(
                f"expected a learner of jaxgen for {type(self).__name__}, got {shown(wanted)}, which is an "
                "estimator of scikit-learn; use that one itself"
            )
        return as_inner(wanted, f"{type(self).__name__} to hold a learner")

    def _train(self, x: np.ndarray, y: np.ndarray, sample_weight: Any, classes: tuple[str, ...]) -> None:
        """Trains the learner on cases [n, D], [n, K]."""
        w = _counts(sample_weight, x)
        x, y, w = x[w > 0], y[w > 0], w[w > 0]
        task = "classification" if classes else "regression"
        data = Data(x, y, tuple(f"x{column}" for column in range(x.shape[1])), "y", task, classes).checked()
        weights = np.minimum(w, 255).astype(np.uint8)[None]
        plan = Plan(weights, weights, f"all {len(x)} cases")
        learner = self._checked().for_data(data)
        with explained(learner, "check(data, plan)"):
            learner.check(data, plan)
        with jax.enable_x64(True):
            params, failure = _fitted(learner, code_digest(learner), self._key(), *_padded(x, y, w))
        if int(failure):
            sentences = (*learner.failures, "for a reason that its failures do not state")
            raise ValueError(f"expected {learner} to be fitted, got a fit that failed: {sentences[int(failure) - 1]}")
        self.learner_, self.params_ = learner, jax.tree.map(_on_host, params)

    def _key(self) -> Any:
        seed = self.random_state
        if not isinstance(seed, int | np.integer) or not 0 <= seed < _LARGEST_KEY:
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        return jax.random.key(int(seed))

    def _predicted(self, x: Any) -> Float[np.ndarray, "m K"]:
        """What the trained learner predicts for cases [m, D]."""
        check_is_fitted(self)
        x = validate_data(self, x, reset=False, dtype=np.float64)
        with jax.enable_x64(True):
            found = _predictions(self.learner_, code_digest(self.learner_), self.params_, _filled(x, _size(len(x))))
            return np.asarray(found, np.float64)[: len(x)]


class Regressor(RegressorMixin, _Estimator):
    """A learner of jaxgen as a regressor of scikit-learn.

    It is trained on one training set, in double precision whatever JAX is set to. A program is compiled for each number
    of inputs and for numbers of cases rounded up to a power of two (cases of weight 0 fill them up), so folds of nearly
    equal size share one; the first fit of a kind takes a second or more, the next ones little. To train many splits at
    once use `jaxgen.assess`.

    Args:
      learner: such as `learn.Normalised(learn.Descent())`; None is `learn.LeastSquares(minimum_norm=True)`. Its
        settings can be searched as "learner__ridge" and the like.
      random_state: a whole number, a generator of NumPy, or None for another key at each fit.

    Attributes:
      learner_: the learner as it was trained.
      params_: its parameters.
      n_features_in_: inputs, D.
    """

    def _default(self) -> Learner:
        return LeastSquares(minimum_norm=True)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Regressor":  # noqa: N803
        """Trains the learner.

        Args:
          X: inputs, [n, D].
          y: targets, [n] or [n, K].
          sample_weight: how often each case counts, [n]: whole numbers from 0.
        Raises:
          TypeError: no learner, or one that JAX does not train.
          ValueError: cases that it cannot learn from, weights that are no counts, or a fit that failed.
        """
        x, y = _validated(self, X, y, multi_output=True, y_numeric=True)
        if self._checked().classifies:
            raise ValueError(f"expected a learner of numbers, got {self._wanted()}; use jaxgen.sklearn.Classifier")
        targets = np.asarray(y, np.float64)
        self._single = targets.ndim == 1
        self._train(x, targets[:, None] if self._single else targets, sample_weight, ())
        return self

    def predict(self, X: Any) -> Float[np.ndarray, "m *K"]:  # noqa: N803
        """Predicted targets of cases [m, D]: [m], or [m, K] as y was."""
        found = self._predicted(X)
        return found[:, 0] if self._single else found

    def __sklearn_tags__(self) -> Any:
        """What it can do: several outputs as well."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _gives_probabilities(estimator: Any) -> bool:
    return estimator._in_use().predicts in ("probabilities", "means")


class Classifier(ClassifierMixin, _Estimator):
    """A learner of jaxgen as a classifier of scikit-learn: as `Regressor`, with one output for each class.

    Args:
      learner: such as `learn.Neighbours(5)`; None is `learn.Normalised(learn.Logistic())`. One that predicts
        probabilities has `predict_proba`, others `decision_function`.
      random_state: as for `Regressor`.

    Attributes:
      classes_: the labels, sorted, [K].
      learner_, params_, n_features_in_: as for `Regressor`.
    """

    def _default(self) -> Learner:
        return Normalised(Logistic())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Classifier":  # noqa: N803
        """Trains the learner.

        Args:
          X: inputs, [n, D].
          y: labels, [n].
          sample_weight: how often each case counts, [n]: whole numbers from 0.
        Raises:
          TypeError: no learner, or one that JAX does not train.
          ValueError: cases that it cannot learn from, one class only, weights that are no counts, or a fit that failed.
        """
        x, y = _validated(self, X, y)
        check_classification_targets(y)
        self.classes_, number = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"expected at least two classes, got one class, {shown(self.classes_.tolist())}; give more cases"
            )
        self._train(x, np.eye(len(self.classes_))[number], sample_weight, tuple(map(str, range(len(self.classes_)))))
        return self

    def predict(self, X: Any) -> Shaped[np.ndarray, " m"]:  # noqa: N803
        """Predicted labels [m] of cases [m, D]."""
        number = self._predicted(X).argmax(1)
        return self.classes_[number]

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> Float[np.ndarray, "m K"]:  # noqa: N803
        """Probabilities of the classes for cases [m, D], [m, K]."""
        return self._predicted(X)

    @available_if(lambda estimator: not _gives_probabilities(estimator))
    def decision_function(self, X: Any) -> Float[np.ndarray, "m *K"]:  # noqa: N803
        """What the learner predicts for cases [m, D]: of two classes how much more for the second, [m]; else [m, K]."""
        found = self._predicted(X)
        return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found


def _validated(estimator: Any, x: Any, y: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Inputs [n, D] and targets [n, ...] after the checks of scikit-learn."""
    checked: Any = validate_data(estimator, x, y, dtype=np.float64, **options)
    return checked


def _counts(sample_weight: Any, x: np.ndarray) -> np.ndarray:
    """How often each case [n, D] counts, [n]; ValueError for other weights."""
    w = np.ones(len(x)) if sample_weight is None else _check_sample_weight(sample_weight, x, dtype=np.float64)
    bad = w[(w < 0) | (w != np.floor(w))]
    if len(bad) or not w.any():
        raise ValueError(
            "expected sample_weight as whole numbers from 0, how often each case counts, got "
            f"{f'{bad[0]:g}' if len(bad) else 'zeros only'}; leave it out, or give counts"
        )
    return w


def _size(n: int) -> int:
    """The number of cases that a program is compiled for."""
    if n <= _MOST_DOUBLED:
        return max(_LEAST_CASES, 1 << (n - 1).bit_length())
    step = 1 << (n.bit_length() - 3)
    return -(-n // step) * step


def _filled(values: np.ndarray, size: int) -> np.ndarray:
    """Cases [n, ...] filled up with copies of the first to [size, ...]."""
    return np.concatenate([values, np.repeat(values[:1], size - len(values), axis=0)])


def _padded(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cases filled up with absent ones."""
    size = _size(len(x))
    return _filled(x, size), _filled(y, size), np.concatenate([w, np.zeros(size - len(w))])


@partial(jax.jit, static_argnums=(0, 1))
def _fitted(learner: Learner, code: str, key: Any, x: Any, y: Any, w: Any) -> Any:
    with explained(learner, "fit(key, x, y, w)"):
        params = learner.fit(key, x, y, w)
    return params, failure_of(learner, params)


@partial(jax.jit, static_argnums=(0, 1))
def _predictions(learner: Learner, code: str, params: Any, x: Any) -> Any:
    with explained(learner, "predict(params, x)"):
        return learner.predict(params, x)


def _on_host(leaf: Any) -> Any:
    """An array of parameters, so that it can be stored anywhere; a random key stays what it is."""
    return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else np.asarray(leaf)


def _settings(learner: Any) -> dict[str, Any]:
    """Settings of a learner and of those inside it, by names such as "base__ridge"."""
    if not is_dataclass(learner) or isinstance(learner, type):
        return {}
    found = {}
    for field in fields(learner):
        value = getattr(learner, field.name)
        found[field.name] = value
        found |= {f"{field.name}__{name}": inner for name, inner in _settings(value).items()}
    return found


def _with_setting(learner: Any, path: list[str], value: Any) -> Any:
    first, *rest = path
    return replace(learner, **{first: _with_setting(getattr(learner, first), rest, value) if rest else value})
