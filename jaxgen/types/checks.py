"""Checks of losses and targets that `assess`, `Losses.from_predictions` and learners share."""

from typing import Any

import numpy as np
from jaxtyping import Float

from jaxgen.types.identity import named


def check_targets(loss: Any, y: Float[np.ndarray, "*Q N K"], target: str) -> None:
    """ValueError unless a loss is for these targets [*Q, N, K]; see `jaxgen.loss.About`."""
    wanted = getattr(getattr(loss, "about", None), "targets", "numbers")
    if wanted == "numbers":
        return
    if not ((y == 0) | (y == 1)).all():
        other = y[(y != 0) & (y != 1)][0]
        raise ValueError(
            f"expected targets of zeros and ones for the loss {named(loss)}, got {other:g} in {target!r}; "
            "read the data with task='classification', or choose another loss"
        )
    if wanted == "classes" and y.shape[-1] > 1 and not (y.sum(-1) == 1).all():
        raise ValueError(
            f"expected one class for every case for the loss {named(loss)}, got rows of {target!r} that add up to "
            f"{y.sum(-1)[y.sum(-1) != 1][0]:g}; give one column per class with a single 1 in each row"
        )


def check_missing(learner: Any, data: Any) -> None:
    """ValueError for inputs that are missing, NaN in x [*Q, N, D], and a learner that cannot learn from such cases."""
    if not data.missing or learner.accepts_missing:
        return
    gaps = np.isnan(data.x)
    if gaps.any():
        column = int(np.argmax(gaps.reshape(-1, data.d).any(0)))
        raise ValueError(
            f"expected a learner that accepts missing inputs, got {learner} for data with {int(gaps.sum())} missing "
            f"values, such as in column {data.names[column]!r}; write learn.Imputed({learner}), or leave such cases "
            "out (missing='drop')"
        )


def check_predictions(loss: Any, learner: Any) -> None:
    """ValueError unless a loss is for what a learner predicts; see `jaxgen.loss.About` and `Learner.predicts`."""
    if getattr(getattr(loss, "about", None), "probabilities", False) and learner.predicts in ("numbers", "scores"):
        raise ValueError(
            f"expected a learner that predicts probabilities for the loss {named(loss)}, got {learner}, which predicts "
            f"{learner.predicts}; use learn.Logistic, a network with a cross-entropy as its objective, or another loss"
        )
