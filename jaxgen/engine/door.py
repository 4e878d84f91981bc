"""What `assess` checks before anything runs."""

from jaxgen.types import Data, Key, Learner, Plan, keys


def check(key: Key, learner: Learner, data: Data, plan: Plan, keep: str, chunk: int | None) -> None:
    """Raises TypeError or ValueError unless key, learner, data [*Q, N, D] and plan [*Q, R, N] belong together."""
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
    if isinstance(learner, type) or not (hasattr(learner, "fit") and hasattr(learner, "predict")):
        raise TypeError(
            f"expected a learner with the methods fit and predict, got {learner!r}; "
            "make one, for example learn.LeastSquares()"
        )
    try:
        hash(learner)
    except TypeError:
        raise TypeError(
            f"expected a learner that can be hashed, got {learner!r}; make it a frozen dataclass of plain values"
        ) from None
    check = getattr(learner, "check", None)
    if check is not None:
        check(data, plan)
