"""What all learners that hold a learner pass on to it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from jaxgen.types import Data, Freedom, Key, Learner, Minimum, Params, Plan
from jaxgen.types.foreign import as_inner
from jaxgen.types.predictive import Mixture


@dataclass(frozen=True, repr=False)
class Wrapper(Learner):
    """A learner that holds a learner: what it does not say itself, it passes on from the learner inside.

    Attributes:
      base: the learner inside; one of your own need not derive from `Learner`.
    """

    base: Any = None

    @property
    def inside(self) -> Learner:
        """The learner inside, with the defaults of what it lacks.

        Raises:
          TypeError: there is no learner inside.
        """
        return as_inner(self.base, f"{type(self).__name__} to hold a learner")

    @property
    def failures(self) -> tuple[str, ...]:
        """The sentences of the learner inside."""
        return self.inside.failures

    @property
    def classifies(self) -> bool:
        """Whether targets must be zeros and ones."""
        return self.inside.classifies

    @property
    def predicts(self) -> str:
        """What the predictions are: as of the learner inside."""
        return self.inside.predicts

    @property
    def raw_inputs(self) -> tuple[int, ...]:
        """Inputs that must come as they are in the data."""
        return self.inside.raw_inputs

    @property
    def freedom(self) -> Freedom:
        """The changes of unit that leave what is learned the same: as of the learner inside."""
        return self.inside.freedom

    @property
    def precise(self) -> bool:
        """Whether the learner inside is fitted in double precision."""
        return self.inside.precise

    @property
    def rounds(self) -> int | None:
        """How often the learner inside goes through its cases."""
        return self.inside.rounds

    @property
    def copies_cases(self) -> bool:
        """Whether the learner inside trains on copies of parts of its cases."""
        return self.inside.copies_cases

    def for_data(self, data: Data) -> Learner:
        """The same with the learner inside as it is to be used on these data."""
        return replace(self, base=self.inside.for_data(data))

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses what the learner inside refuses.

        Raises:
          TypeError: there is no learner inside.
          ValueError: as that learner says.
        """
        self.inside.check(data, plan)

    def held(self) -> Iterator[Learner]:
        """The learners that it holds, the outermost first."""
        learner: Learner = self
        while isinstance(learner, Wrapper):
            learner = learner.inside
            yield learner


class Entered(NamedTuple):
    """What goes in to the learner inside: its key and cases [m, D], [m, K], [m]; and what the wrapper itself learned
    of the cases, with a field `base` for the parameters of the learner inside, or None if it learned nothing.
    """

    own: Any
    key: Key
    x: Float[Array, "m D"]
    y: Float[Array, "m K"]
    w: Float[Array, " m"]


@dataclass(frozen=True, repr=False)
class Changing(Wrapper):
    """A wrapper that changes the cases on their way in and the predictions on their way out.

    Such a wrapper says with `enter` what goes in, and with `inputs_inside`, `targets_inside` and
    `predictions_outside` how inputs, targets and predictions are changed by parameters that it learned. Everything
    else follows from it: training from a start, checkpoints, and what was made small.
    """

    def enter(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Entered:
        """The key and the cases [m, D], [m, K], [m] of the learner inside."""
        raise TypeError(f"expected {type(self).__name__} to have a method enter, got none; write enter(key, x, y, w)")

    def outside(self, own: Any, params: Params) -> Params:
        """The parameters of this wrapper, from what it learned itself and the parameters of the learner inside."""
        return own._replace(base=params)

    def inside_of(self, params: Params) -> Params:
        """The parameters of the learner inside."""
        return params.base

    def inputs_inside(self, params: Params, x: Float[Array, "m D"]) -> Float[Array, "m D"]:
        """Inputs [m, D] as the learner inside sees them."""
        return x

    def targets_inside(self, params: Params, y: Float[Array, "m K"]) -> Float[Array, "m K"]:
        """Targets [m, K] as the learner inside sees them."""
        return y

    def predictions_outside(self, params: Params, predictions: Float[Array, "m K"]) -> Float[Array, "m K"]:
        """Predictions [m, K] of the learner inside, in the units of y."""
        return predictions

    def deviations_outside(self, params: Params, deviations: Float[Array, "S m K"]) -> Float[Array, "S m K"]:
        """Standard deviations [S, m, K] of the learner inside, in the units of y."""
        return deviations

    @property
    def saves_networks(self) -> bool:
        """Whether the learner inside keeps checkpoints while it trains."""
        return self.inside.saves_networks

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Params:
        """The learner inside, trained on what goes in to it."""
        return self.fit_from(None, key, x, y, w)

    def fit_from(
        self, start: PyTree, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]
    ) -> Params:
        """The same, for cases [n, D], [n, K], [n], from given start parameters, which are for the learner inside."""
        own, *cases = self.enter(key, x, y, w)
        return self.outside(own, self.inside.fit_from(start, *cases))

    def path(
        self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], start: PyTree = None
    ) -> Params:
        """The checkpoints of the learner inside, every array with a leading axis [S]."""
        own, *cases = self.enter(key, x, y, w)
        saved = self.inside.path(*cases, start=start)
        return jax.vmap(lambda params: self.outside(own, params))(saved)

    def shares_along(self, setting: str) -> bool:
        """Of the settings of the learner inside, as "base.ridge", as it says."""
        holder, _, inner = setting.partition(".")
        return holder == "base" and self.inside.shares_along(inner)

    def fit_along(
        self,
        setting: str,
        values: tuple[Any, ...],
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
    ) -> Params:
        """The fits of the learner inside on the same changed cases, every array with a leading axis [S]."""
        own, *cases = self.enter(key, x, y, w)
        fits = self.inside.fit_along(setting.partition(".")[2], values, *cases)
        return jax.vmap(lambda params: self.outside(own, params))(fits)

    def watched(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        watch: Callable[[Params, Any], Float[Array, ""]],
        patience: float | None = None,
        stretch: float = 1.0,
        start: PyTree = None,
    ) -> Any:
        """The best checkpoint of the learner inside; see `Descent.watched`, errors [S]."""
        own, inner_key, inner_x, inner_y, inner_w = self.enter(key, x, y, w)

        def watch_outside(params, iteration):
            return watch(self.outside(own, params), iteration)

        watched = self.inside.watched(inner_key, inner_x, inner_y, inner_w, watch_outside, patience, stretch, start)
        return watched._replace(best=self.outside(own, watched.best))

    def predict(self, params: Params, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets, in the units of y."""
        return self.predictions_outside(
            params, self.inside.predict(self.inside_of(params), self.inputs_inside(params, x))
        )

    def predictive(self, params: Params, x: Float[Array, "m D"]) -> Mixture | None:
        """What the learner inside believes of cases [m, D], in the units of y."""
        found = self.inside.predictive(self.inside_of(params), self.inputs_inside(params, x))
        if found is None:
            return None
        mean = jax.vmap(lambda mean: self.predictions_outside(params, mean))(found.mean)
        return Mixture(mean, self.deviations_outside(params, found.deviation))

    def failure(self, params: Params) -> Int[Array, ""]:
        """As of the learner inside, []."""
        return jnp.asarray(self.inside.failure(self.inside_of(params)), jnp.int32)

    def diagnose(self, params: Params) -> dict[str, Array]:
        """As of the learner inside, each [...]."""
        return self.inside.diagnose(self.inside_of(params))

    def minimised(self, params: Params) -> Minimum | None:
        """What the learner inside made small, for `algebraic.full_fit`: losses [n] and penalty [] in its units, which
        are kept as they are.

        Raises:
          ValueError: the learner inside cannot name it. Its numbers could not be told from the units, which training
            did not choose.
        """
        minimum = self.inside.minimised(self.inside_of(params))
        if minimum is None:
            raise ValueError(
                f"expected {type(self).__name__} to hold a learner trained to a minimum that it can name, got "
                f"{self.base}; resample it, or give full_fit the argument minimised"
            )
        free, rebuild, cost = minimum
        return (
            free,
            lambda free: self.outside(params, rebuild(free)),
            lambda free, x, y: cost(free, self.inputs_inside(params, x), self.targets_inside(params, y)),
        )


@dataclass(frozen=True, repr=False)
class Sharing(Changing):
    """A wrapper whose rows can share what those of the learner inside share; it says with `shares_rows` whether they
    do, and trains them with `fit_rows`.
    """

    @property
    def prepares_rows(self) -> bool:
        """As the learner inside."""
        return self.inside.prepares_rows

    @property
    def counts_left_out(self) -> bool:
        """As the learner inside."""
        return self.inside.counts_left_out

    def counts_left_out_of(self, cases: int, inputs: int) -> bool:
        """As the learner inside."""
        return self.inside.counts_left_out_of(cases, inputs)

    def careful_of(self, cases: int, inputs: int) -> Learner | None:
        """With the learner inside that is careful, if there is one."""
        careful = self.inside.careful_of(cases, inputs)
        return None if careful is None else replace(self, base=careful)

    @property
    def weightings(self) -> int:
        """As the learner inside."""
        return self.inside.weightings

    @property
    def worth_sharing(self) -> tuple[int, float]:
        """As of the learner inside."""
        return self.inside.worth_sharing

    def shares_rows_of(self, cases: int, trained: int, inputs: int) -> bool:
        """As of the learner inside."""
        return self.inside.shares_rows_of(cases, trained, inputs)

    def shares_one_row_of(self, cases: int, inputs: int) -> bool:
        """As of the learner inside."""
        return self.inside.shares_one_row_of(cases, inputs)

    def for_rows(self, share: float) -> Learner:
        """With the learner inside as it is for such rows."""
        return replace(self, base=self.inside.for_rows(share))
