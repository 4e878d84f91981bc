"""Ridge regression whose penalty is chosen by leave-one-out."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxgen.learn.shrinkage import Centred, Shrinkage
from jaxgen.types import Data, Key, Learner, Plan
from jaxgen.types.numbers import require, require_flag, require_number, shown

PENALTIES = tuple(10.0 ** (power / 2) for power in range(-6, 9))
"""Two a decade, from 0.001 to 10,000."""


class RidgeFit(NamedTuple):
    """Parameters of a linear model: weights [D, K], intercept [K], the chosen penalty [], and its mean squared
    leave-one-out loss [].
    """

    weights: Float[Array, "*R D K"]
    intercept: Float[Array, "*R K"]
    ridge: Float[Array, "*R"]
    error: Float[Array, "*R"]


@dataclass(frozen=True, repr=False)
class Ridge(Learner):
    """Ridge regression, with the one of some penalties whose mean squared leave-one-out loss is least.

    Minimises sum w (y - prediction)^2 + ridge |weights|^2, as `LeastSquares(ridge)` does, for all penalties at the
    price of about one fit: from the singular values s of the centred inputs, with u their left vectors, come the share
    h = 1 / n + sum_k u_k^2 s_k^2 / (s_k^2 + ridge) that a case has in its own prediction, and so its leave-one-out
    residual e / (1 - h) (Allen 1974, "The relationship between variable selection and data augmentation and a method
    for prediction"). One penalty serves all targets; the squares are summed over them. A case of weight 2 counts as two
    cases, of which one is left out. Penalties have the units of x^2: `Normalised(Ridge(), how="standard")` makes them
    comparable. The first of equals is taken.

    Attributes:
      penalties: to choose from, each above 0.
      intercept: whether the model has a constant term, which is not penalised.
    """

    penalties: tuple[float, ...] = PENALTIES
    intercept: bool = True

    precise: ClassVar[bool] = True

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses penalties that are none, and rows of a single case.

        Raises:
          ValueError: no penalty, one that is no number above 0, a setting of another kind, or nothing to leave out.
        """
        check_penalties(self.penalties)
        require_flag("intercept", self.intercept)
        fewest = int(plan.train_sizes.min())
        require("the training cases of every row", fewest, 2, advice=f"{self} leaves one out; train on more cases")

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> RidgeFit:
        """Coefficients of one weighted training set for the chosen penalty; `key` is not used."""
        with jax.default_matmul_precision("highest"):
            return self._fit(x, y, w)

    def predict(self, params: RidgeFit, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets, in the units of y."""
        return jnp.matmul(x, params.weights, precision="highest") + params.intercept[None]

    def diagnose(self, params: RidgeFit) -> dict[str, Float[Array, "..."]]:
        """Weights [D, K], intercept [K], the chosen penalty [] and its leave-one-out loss []."""
        return {
            "weights": params.weights,
            "intercept": params.intercept,
            "ridge": params.ridge,
            "leave_one_out": params.error,
        }

    def _fit(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> RidgeFit:
        shrinkage = Shrinkage.of(Centred.of(x, y, w, self.intercept))
        penalties = jnp.asarray(self.penalties, x.dtype)
        errors = shrinkage.errors("leave_one_out", penalties)
        best = jnp.argmin(errors)
        return RidgeFit(*shrinkage.coefficients(penalties[best]), penalties[best], errors[best])


def check_penalties(penalties: Any) -> None:
    """ValueError unless penalties to choose from are numbers above 0."""
    if not isinstance(penalties, tuple) or not penalties:
        raise ValueError(
            f"expected penalties as a tuple of numbers above 0, got {shown(penalties)}; write for example "
            "penalties=(0.1, 1.0, 10.0)"
        )
    for penalty in penalties:
        require_number("every penalty", penalty, above=0, advice="use LeastSquares() for none")
