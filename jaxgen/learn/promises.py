"""Whether a learner keeps the promises that the engine relies on."""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxgen import loss
from jaxgen.types import Data, Learner, Plan
from jaxgen.types.contract import differ, fitted_predictions, learns_from_absent_cases
from jaxgen.types.foreign import as_inner
from jaxgen.types.numbers import first_line, shown


def check(learner: Any, data: Data | None = None, skip: Collection[str] = ()) -> tuple[str, ...]:
    """Tries a learner out on a few cases, like scikit-learn's estimator checks, and refuses it at the first promise
    that it breaks.

    | check | promise |
    |---|---|
    | value | equal ones are equal and hash equal, and changing one is an error |
    | code | it prints as code that recreates it |
    | shapes | `predict` returns [m, K] for x [m, D], whatever m |
    | absence | a case of weight 0 changes nothing, whatever numbers stand in it |
    | nan | nor does it where NaN stands in it |
    | twice | a case of weight 2 is the case twice |
    | order | the order of the cases does not matter |
    | vmap | many fits at once give what one after the other gives |
    | key | the same key gives the same fit |

    `assess` tries "absence" by itself, for every learner that is not of this package.

    Args:
      learner: what to try.
      data: cases to try it on, x [N, D] and y [N, K], the first 48 of them; None makes a small regression, or a
        classification for a learner that says that it `classifies`.
      skip: names of checks to leave out: "order" and "twice" for a learner that draws random numbers by position.
    Returns:
      The names of the checks that it passed.
    Raises:
      TypeError: it is no learner.
      ValueError: the promise that it breaks, with what to do; or `skip` names no check.
    """
    unknown = sorted(set(skip) - set(_CHECKS))
    if unknown:
        raise ValueError(f"expected names among {', '.join(_CHECKS)} to skip, got {unknown[0]!r}; choose among them")
    inside = as_inner(learner, "a learner to try")
    trial = _trial(inside, data)
    for name in (passed := [name for name in _CHECKS if name not in skip]):
        _CHECKS[name](learner, trial)
    return tuple(passed)


@dataclass(frozen=True)
class _Trial:
    """A learner ready for some cases: x [n, D], y [n, K]."""

    learner: Learner
    x: Float[np.ndarray, "n D"]
    y: Float[np.ndarray, "n K"]
    classification: bool

    def fits(self, x: Any, y: Any, w: Any) -> Float[np.ndarray, "2 n K"]:
        """Predictions at all cases of two fits at once, to x [2, n, D], y [2, n, K], w [2, n] or [n].

        Always two, so that a learner compiles once for all checks.
        """
        with self.explained():
            return fitted_predictions(self.learner, x, y, w, self.x)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turns what goes wrong in fit or predict into one sentence."""
        try:
            yield
        except Exception as error:
            raise ValueError(
                f"expected fit and predict of {self.learner} to run on JAX arrays under vmap, got "
                f"{first_line(error)}; try them alone on x {list(self.x.shape)}, "
                f"y {list(self.y.shape)} and w of ones"
            ) from error


def _trial(learner: Learner, data: Data | None) -> _Trial:
    data = _made(learner.classifies) if data is None else data
    data = data[0] if data.sets else data
    few = replace(data, x=data.x[:48], y=data.y[:48]).checked()
    learner = learner.for_data(few)
    ones = np.ones((1, few.n), np.uint8)
    learner.check(few, Plan(ones, ones, "a few cases"))
    return _Trial(learner, few.x, few.y, few.task == "classification" or learner.classifies)


def _made(classification: bool) -> Data:
    """36 cases of 3 inputs: a regression, or two classes that overlap."""
    random = np.random.default_rng(0)
    x = random.normal(size=(36, 3)) * [1, 5, 0.2] + [0, 2, -1]
    y = x @ [[1.0], [-0.4], [3.0]] + random.normal(size=(36, 1))
    if not classification:
        return Data(x, y, ("x0", "x1", "x2"))
    high = y[:, 0] + 2 * random.normal(size=36) > np.median(y)
    return Data(x, np.stack([~high, high], axis=1).astype(float), ("x0", "x1", "x2"), "y", "classification", ("0", "1"))


def _value(learner: Any, trial: _Trial) -> None:
    name = next(
        iter(getattr(learner, "__dataclass_fields__", vars(learner) if hasattr(learner, "__dict__") else ())), ""
    )
    try:
        setattr(learner, name or "anything", getattr(learner, name, None))
    except (AttributeError, TypeError):
        return
    raise ValueError(
        f"expected a learner that cannot be changed, got {learner}, which can; a change would be missed by what was "
        "compiled before: write @dataclass(frozen=True)"
    )


def _code(learner: Any, trial: _Trial) -> None:
    modules = (sys.modules["jaxgen.learn"], sys.modules.get(type(learner).__module__))
    names = {name: value for module in modules if module for name, value in vars(module).items()}
    names |= {"loss": loss, type(learner).__name__: type(learner)}
    try:
        again = eval(repr(learner), names)  # the learner's own words, of a learner that runs its own code anyway
    except Exception as error:
        raise ValueError(
            f"expected a learner that prints as code which makes it, got {shown(learner)} ({type(error).__name__}); "
            "make it a frozen dataclass of plain values"
        ) from error
    if again != learner or hash(again) != hash(learner):
        raise ValueError(
            f"expected the learner that {shown(learner)} makes to be equal to it and hash equal, got another; make it "
            "a frozen dataclass of plain values"
        )


def _shapes(learner: Any, trial: _Trial) -> None:
    x, y = (jnp.asarray(a) for a in (trial.x, trial.y))
    for cases in (len(x), 5, 1):

        def predicted(x, y, at):
            return trial.learner.predict(trial.learner.fit(jax.random.key(0), x, y, jnp.ones(len(x), x.dtype)), at)

        with trial.explained():
            shape = jnp.shape(jax.eval_shape(predicted, x, y, x[:cases]))
        if shape != (cases, y.shape[1]):
            raise ValueError(
                f"expected predictions [{cases}, {y.shape[1]}] of {learner} for {cases} cases, got {list(shape)}; let "
                "predict return [m, K] for x [m, D]"
            )


def _absence(learner: Any, trial: _Trial) -> None:
    if learns_from_absent_cases(trial.learner, trial.x, trial.y, trial.classification):
        raise ValueError(
            f"expected {learner} to learn nothing from cases of weight 0, got other predictions when only such cases "
            "were changed; let w count in every sum over cases in fit"
        )


def _nan(learner: Any, trial: _Trial) -> None:
    w = np.arange(len(trial.x)) % 2
    absent = w[:, None] == 0
    first, second = trial.fits(
        np.stack([trial.x, np.where(absent, np.nan, trial.x)]),
        np.stack([trial.y, np.where(absent, np.nan, trial.y)]),
        w,
    )
    if differ(first, second):
        raise ValueError(
            f"expected {learner} to learn nothing from cases of weight 0, got other predictions with NaN in them (0 "
            "times NaN is NaN); begin fit with x = jnp.where(w[:, None] > 0, x, 0), and y likewise"
        )


def _twice(learner: Any, trial: _Trial) -> None:
    w = np.arange(len(trial.x)) % 3
    index = np.repeat(np.arange(len(w)), w)
    index = np.concatenate([index, np.zeros(len(w) - len(index), int)])[: len(w)]
    ones = (np.arange(len(w)) < w.sum()).astype(float)
    first, second = trial.fits(
        np.stack([trial.x, trial.x[index]]), np.stack([trial.y, trial.y[index]]), np.stack([w, ones])
    )
    if differ(first, second):
        raise ValueError(
            f"expected a case of weight 2 to count twice for {learner}, got other predictions than from two such "
            "cases; "
            "multiply by w in every sum over cases, or leave the check out with skip=('twice',) if fit draws at random"
        )


def _order(learner: Any, trial: _Trial) -> None:
    w = 1 + np.arange(len(trial.x)) % 2
    order = np.random.default_rng(1).permutation(len(w))
    first, second = trial.fits(
        np.stack([trial.x, trial.x[order]]), np.stack([trial.y, trial.y[order]]), np.stack([w, w[order]])
    )
    if differ(first, second):
        raise ValueError(
            f"expected the order of the cases not to matter to {learner}, got other predictions from the same cases in "
            "another order; leave the check out with skip=('order',) if fit draws at random by position"
        )


def _vmap(learner: Any, trial: _Trial) -> None:
    w = np.random.default_rng(2).integers(0, 3, size=(2, len(trial.x)))
    w[:, : len(trial.x) // 2] = 1
    x, y = (np.stack([a, a]) for a in (trial.x, trial.y))
    together = trial.fits(x, y, w)
    alone = [fitted_predictions(trial.learner, x[:1], y[:1], row[None], trial.x)[0] for row in w]
    if any(differ(*pair) for pair in zip(together, alone, strict=True)):
        raise ValueError(
            f"expected many fits of {learner} at once to give what one after the other gives, got other predictions; "
            "let fit depend on its arguments only"
        )


def _key(learner: Any, trial: _Trial) -> None:
    w = np.ones(len(trial.x))
    x, y = (np.stack([a, a]) for a in (trial.x, trial.y))
    first, second = (trial.fits(x, y, w) for _ in range(2))
    if not np.array_equal(first, second, equal_nan=True):
        raise ValueError(
            f"expected the same key to give {learner} the same fit, got other predictions at a second call; draw all "
            "random numbers from key with jax.random"
        )


_CHECKS: dict[str, Callable[[Any, _Trial], None]] = {
    "value": _value,
    "code": _code,
    "shapes": _shapes,
    "absence": _absence,
    "nan": _nan,
    "twice": _twice,
    "order": _order,
    "vmap": _vmap,
    "key": _key,
}
