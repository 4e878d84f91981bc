"""The other door of the engine: what every trained row of a plan predicts for new cases."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from jaxgen.engine.door import check, check_absence, chosen_devices
from jaxgen.engine.progress import progress_bar
from jaxgen.engine.run import Run, common_size, job_of, reasons, way
from jaxgen.engine.workers import refuse_fork
from jaxgen.loss import squared
from jaxgen.types import Data, Key, Plan, Predicted, keys
from jaxgen.types.drawn import DrawnPlan
from jaxgen.types.identity import named
from jaxgen.types.memory import require_memory
from jaxgen.types.numbers import require_flag, shown

_FEWEST = 8
"""New cases that a program is compiled for at least."""


@keys.key_first
def predict(
    key: Key,
    learner: Any,
    data: Data,
    plan: Plan,
    new: Any,
    *,
    chunk: int | None = None,
    progress: bool | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Predicted:
    """Trains a learner on every resampled training set of a plan, as `assess` does, and returns what every trained row
    predicts for new cases, beside what it predicts for those of the data.

    The same key gives the same trained rows as `assess`: new cases take no part in the training, nor in the units that
    it computes in. No parameters are kept: rows predict as soon as they are trained.

    Args:
      key: consumed; the randomness of the training, not that of the plan.
      learner: what to train; see `jaxgen.types.Learner`.
      data: x [*Q, N, D] and y [*Q, N, K].
      plan: train and test weights [*Q, R, N]; without Q it serves every data set.
      new: inputs of M new cases, [M, D] or, for each of several data sets their own, [Q, M, D], in the units of the
        data; a DataFrame, whose columns are found by the names of the inputs; or `Data`, whose targets are not looked
        at.
      chunk, progress, devices: as for `assess`.
    Returns:
      Predicted, new [*Q, R, M, K] and cases [*Q, R, N, K]. A row that failed for `assess` with the squared loss is
      marked, and so is one whose predictions for new cases are not finite.
    Raises:
      TypeError, ValueError: as `assess`; or new cases that are not finite numbers, or whose columns are not the inputs.
      MemoryError: the predictions or a single row would not fit into memory; the bytes are stated.
      RuntimeError: this process was forked from one in which JAX had been used.
    """
    refuse_fork()
    if progress is not None:
        require_flag("progress", progress)
    used = check(key, learner, data, plan, squared, "predictions", chunk)
    new_x = _new_inputs(new, data, used.accepts_missing)
    plan = plan.rows(0, plan.resamples) if not isinstance(plan, DrawnPlan) else _all_drawn(plan)
    sets, m, outputs = data.sets or plan.sets or 1, new_x.shape[-2], data.y.shape[-1]
    require_memory(
        f"predictions of {sets * plan.resamples} rows for {data.n} cases and {m} new ones",
        8 * sets * plan.resamples * (data.n + m) * outputs,
        "give fewer new cases at a time, for which the same key trains the same rows, or use fewer resamples",
    )
    places = chosen_devices(devices)
    if not used.on_host:
        new_x = _filled_up(new_x)
    chosen = way(used, squared, data, plan)
    job = job_of(used, squared, data, chosen, places, True, new_x.shape[-2])
    run = Run(key, job, data, plan, "rows", chunk, chosen.used, new=new_x)
    check_absence(used, data)
    with progress_bar(sets * plan.resamples, repr(learner), progress) as advance:
        run.all_rows(advance)
    arrays = run.arrays()
    return _predicted(arrays | {"predictions": arrays["predictions"][..., : data.n + m, :]}, used, data, plan)


def _filled_up(new: Float[np.ndarray, "*Q M D"]) -> Float[np.ndarray, "*Q L D"]:
    """New cases with the last one repeated, so that similar numbers of new cases share a compiled program."""
    more = common_size(max(new.shape[-2], _FEWEST)) - new.shape[-2]
    return np.concatenate([new, np.repeat(new[..., -1:, :], more, axis=-2)], axis=-2)


def _predicted(arrays: dict[str, np.ndarray], learner: Any, data: Data, plan: Plan) -> Predicted:
    """The predictions [Q, R, N + M, K] of a run as a value."""
    predictions, failure = arrays["predictions"], arrays["failure"]
    sentences = (*reasons(learner, squared), "its predictions for new cases are not finite")
    lost = ~np.isfinite(predictions[..., data.n :, :]).all((-2, -1)) & (failure == 0)
    failure = np.where(lost, len(sentences), failure).astype(np.uint8)
    single = not (data.sets or plan.sets)
    y = data.y if data.sets or single else np.broadcast_to(data.y, (plan.sets or 1, *data.y.shape))
    predictions, failure = (predictions[0], failure[0]) if single else (predictions, failure)
    return Predicted(
        new=predictions[..., data.n :, :],
        cases=predictions[..., : data.n, :],
        y=y,
        plan=plan,
        learner=named(learner),
        target=data.target,
        task=data.task,
        classes=tuple(data.classes),
        failure=failure,
        reasons=sentences,
    )


def _all_drawn(plan: DrawnPlan) -> Plan:
    """All rows of a plan that is drawn where it is needed: their predictions take more memory anyway."""
    return Plan(plan.train, plan.test, plan.scheme)


def _new_inputs(new: Any, data: Data, missing: bool) -> Float[np.ndarray, "*Q M D"]:
    """Inputs of new cases [*Q, M, D] for these data, checked; some of them NaN where they may be missing."""
    values = _as_numbers(_in_columns(new, data))
    shape = f"[M, {data.d}]" + (f" or [{data.sets}, M, {data.d}]" if data.sets else "")
    if values.ndim not in (2, 3) or values.shape[-1] != data.d or values.shape[:-2] not in ((), (data.sets,)):
        raise ValueError(
            f"expected inputs of new cases {shape}, as those of the data, got {list(values.shape)}; give one row per "
            "new case and one column per input, also for a single case"
        )
    if not values.size:
        raise ValueError(f"expected at least one new case, got inputs {list(values.shape)}; give some")
    bad = np.argwhere(~(np.isfinite(values) | (np.isnan(values) & missing)))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        raise ValueError(
            f"expected finite inputs of new cases, got {values[where]} in column {where[-1]} "
            f"({data.names[where[-1]]!r}), new case {where[-2]}, and {len(bad)} such values in all; fill in or leave "
            "out these cases first"
        )
    return np.broadcast_to(values, (data.sets, *values.shape[-2:])) if data.sets else values


def _in_columns(new: Any, data: Data) -> Any:
    """The inputs of new cases in the order of the data, where they have names; else as they are."""
    if isinstance(new, Data):
        if tuple(new.names) != tuple(data.names):
            raise ValueError(
                f"expected new cases with the inputs {shown(list(data.names))}, got {shown(list(new.names))}; "
                "select or encode them as those of the data"
            )
        return new.x
    if not hasattr(new, "columns"):
        return new
    columns = [str(column) for column in new.columns]
    missing = [name for name in data.names if columns.count(name) != 1]
    others = [name for name in columns if name not in (*data.names, data.target)]
    if missing or others:
        trouble = f"{missing[0]!r} {columns.count(missing[0])} times" if missing else f"also {others[0]!r}"
        raise ValueError(
            f"expected a column of new cases for each input of the data, and no others, got {trouble}; name the "
            "columns as the data does, and read texts together with the data, since each level becomes a column"
        )
    return new[[new.columns[columns.index(name)] for name in data.names]]


def _as_numbers(values: Any) -> np.ndarray:
    """Real numbers in double precision, [...]."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"expected inputs of new cases without gaps, got {np.ma.count_masked(values)} masked values; fill them in, "
            "or leave out these cases first"
        )
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)
        got = f"an array of {array.dtype}"
    except (TypeError, ValueError):
        got = shown(values)
    raise TypeError(f"expected inputs of new cases as real numbers, got {got}; give them as the data's own, [M, D]")
