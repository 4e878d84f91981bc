"""What `assess` checks before anything runs."""

from typing import Any

from jaxgen.types import Data, Key, Learner, Plan, as_learner, keys


def check(key: Key, learner: Any, data: Data, plan: Plan, keep: str, chunk: int | None) -> Learner:
    """The learner, if key, learner, data [*Q, N, D] and plan [*Q, R, N] belong together; else TypeError or ValueError."""
    keys.require(key)
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
    if keep not in ("cases", "predictions", "rows"):
        raise ValueError(f"expected keep='cases', keep='predictions' or keep='rows', got {keep!r}; choose what to keep")
    if chunk is not None and chunk < 1:
        raise ValueError(f"expected a chunk of at least 1 row, got {chunk}; leave chunk out to have it chosen")
    learner = as_learner(learner)
    learner.check(data, plan)
    return learner
