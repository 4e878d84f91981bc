"""What a learner is."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Float, PRNGKeyArray, PyTree

Key = PRNGKeyArray

Params = PyTree

Loss = Callable[[Any, Any], Any]
"""Targets and predictions, [*N, K] each, to losses [*N]; arrays of JAX or, for `Losses.from_predictions`, of NumPy."""

Minimum = tuple[PyTree, Callable[[PyTree], Params], Callable[[PyTree, Array, Array], tuple[Array, Array]]]
"""(free, rebuild, cost), what `minimised` of a `Learner` returns."""


@runtime_checkable
class Learner(Protocol):
    """A learning method: two functions of ONE training set. The engine does all the vmapping.

    Implementations are frozen dataclasses of plain values: equal values are equal, hash equal, compile
    once, and print as code that recreates them. Inside `fit` a case of weight 0 must have no influence,
    and a case of weight 2 that of two cases.

    A learner may also have, each optional:

    - `fit_rows(keys [R], x [N, D], y [N, K], w [R, N], left_out: int | None) -> (params [R, ...], trusted [R])`:
      the same as `fit` for R weightings of one data set, where that is cheaper all at once. `left_out` is the
      largest number of cases of weight 0 in a row if all weights are 0 or 1 and that number is small (at most
      D / 4 or 1), else None. Rows that are not trusted are fitted again by `fit`.
    - `check(data, plan)`: raises ValueError for a plan that it cannot learn from, before anything runs.
    - `failure(params) -> int`: 0, or the number (from 1) of the sentence in `failures` that says why this fit failed.
    - `diagnose(params) -> dict` of small arrays, collected into `Losses.info`; messages about failed rows quote
      "failed_step", -1 for none.
    - `minimised(params) -> Minimum`, for `algebraic`: the numbers that training chose, rebuild(free) -> params, and
      what it made small, cost(free, x [n, D], y [n, K]) -> (losses [n], penalty []).
    """

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Params:
        """Parameters learned from n cases of weight w."""
        ...

    def predict(self, params: Params, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets [m, K] of m cases, in the units of y."""
        ...
