"""What `assess` checks before anything runs: each thing a stranger plugs in, once, with one sentence."""

from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from jaxgen.types import Data, Key, Learner, Loss, Plan, as_learner, keys
from jaxgen.types.calls import explained
from jaxgen.types.checks import check_missing, check_predictions, check_targets
from jaxgen.types.contract import learns_from_absent_cases
from jaxgen.types.identity import named
from jaxgen.types.numbers import require, require_one_of, shown


def check(key: Key, learner: Any, data: Data, plan: Plan, loss: Loss, keep: str, chunk: int | None) -> Learner:
    """The learner as it is to be used on these data, if everything belongs together.

    Args:
      key, learner, data, plan, loss, keep, chunk: as for `assess`; data [*Q, N, D], plan [*Q, R, N].
    Raises:
      TypeError, ValueError: what was expected, what came, what to do.
    """
    keys.require(key)
    _check_kinds(learner, data, plan)
    data.checked()
    plan.checked()
    if plan.n != data.n:
        raise ValueError(
            f"expected a plan for the {data.n} cases of the data, got one for {plan.n} ({plan.scheme}); "
            f"make the plan with n={data.n}"
        )
    if data.sets and plan.sets and data.sets != plan.sets:
        raise ValueError(
            f"expected as many sets of splits as data sets, got {plan.sets} and {data.sets}; "
            f"make the plan with sets={data.sets}, or without sets to share it"
        )
    require_one_of("keep", keep, ("cases", "predictions", "rows"))
    if chunk is not None:
        require("chunk", chunk, 1)
    _check_loss(loss, data)
    learner = as_learner(learner).for_data(data)
    _check_sentences(learner)
    check_missing(learner, data)
    with explained(learner, "check(data, plan)"):
        learner.check(data, plan)
    check_predictions(loss, learner)
    return learner


def chosen_devices(devices: Sequence[jax.Device] | None) -> tuple[jax.Device, ...]:
    """The devices to run on; all local ones of JAX's default kind if None.

    Raises:
      TypeError: something else than devices of JAX.
      ValueError: none, one twice, or devices of several kinds.
    """
    if devices is None:
        return tuple(jax.local_devices())
    if not isinstance(devices, Sequence) or not all(isinstance(device, jax.Device) for device in devices):
        raise TypeError(f"expected devices of JAX in a list, got {shown(devices)}; give for example jax.devices()[:1]")
    if not devices or len(set(devices)) < len(devices) or len({device.platform for device in devices}) > 1:
        raise ValueError(f"expected different devices of one kind, got {shown(list(devices))}; name each once")
    return tuple(devices)


def _check_kinds(learner: Any, data: Any, plan: Any) -> None:
    """Refuses what is no data, no plan, or given in another order."""
    if isinstance(learner, Data | Plan):
        raise TypeError(
            f"expected assess(key, learner, data, plan), got {type(learner).__name__} for the learner; "
            "give the learner second"
        )
    if not isinstance(data, Data):
        raise TypeError(
            f"expected data as jaxgen.Data, got {_kind(data)}; make it with datasets.from_arrays(x, y) or another "
            "function of jaxgen.datasets"
        )
    if not isinstance(plan, Plan):
        raise TypeError(
            f"expected a plan as jaxgen.Plan, got {_kind(plan)}; make it with a function of jaxgen.resample, such as "
            "leave_out, k_fold or from_weights"
        )


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _check_loss(loss: Any, data: Data) -> None:
    """Refuses what is no per-case loss, or none for these targets [*Q, N, K]."""
    if not callable(loss):
        raise TypeError(
            f"expected a loss as a function of (y, predictions), or its name, got {shown(loss)}; give loss.squared"
        )
    try:
        hash(loss)
    except TypeError:
        raise TypeError(
            f"expected a loss that can be hashed, got {shown(loss)}; make it a function or a frozen dataclass"
        ) from None
    check_targets(loss, data.y, data.target)


def _check_sentences(learner: Learner) -> None:
    """Refuses failures that are no sentences."""
    sentences = learner.failures
    if not isinstance(sentences, tuple) or not all(isinstance(each, str) for each in sentences):
        raise ValueError(
            f"expected failures of {learner} to be a tuple of sentences, got {shown(sentences)}; give one text for "
            "each number that failure returns"
        )
    if len(sentences) > 200:
        raise ValueError(f"expected at most 200 failures of {learner}, got {len(sentences)}; join some of them")


def _is_ours(learner: Any) -> bool:
    """Whether a learner, and every learner that it holds, is of this package; of a tuple, every one in it."""
    if isinstance(learner, tuple):
        return all(map(_is_ours, learner))
    if not type(learner).__module__.startswith("jaxgen.") or type(learner).__name__ == "Foreign":
        return False
    return all(_is_ours(getattr(learner, field.name)) for field in fields(learner) if field.name == "base")


def check_absence(learner: Learner, data: Data) -> None:
    """Refuses a learner of the user's that learns from cases of weight 0 of data [*Q, N, D], and so from test cases."""
    if learner.on_host or _is_ours(learner):
        return
    x, y = (data.x[0], data.y[0]) if data.sets else (data.x, data.y)
    few = np.linspace(0, data.n - 1, min(data.n, max(24, 2 * (data.d + 8)), 256)).astype(int)
    if len(few) < 4:
        return
    if _absence_matters(_Few(x[few], y[few], data.task), learner, named(learner)):
        raise ValueError(
            f"expected {learner} to learn nothing from cases of weight 0, got other predictions when only such cases "
            "were changed; let w count in every sum over cases in fit, and try learn.check(learner)"
        )


class _Few:
    """Some cases, x [n, D] and y [n, K]; those of one shape and task are equal, so that a learner is tried once."""

    def __init__(self, x: np.ndarray, y: np.ndarray, task: str):
        self.x, self.y, self.task = x, y, task

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Few) and hash(self) == hash(other)

    def __hash__(self) -> int:
        return hash((self.x.shape, self.y.shape, self.task))


@lru_cache(maxsize=256)
def _absence_matters(few: _Few, learner: Learner, _: str) -> bool:
    return learns_from_absent_cases(learner, few.x, few.y, few.task == "classification")
