"""Ridge regression with a penalty for each input, chosen by the gradient of a cross-validated error."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

from jaxgen.learn.ridge import PENALTIES, check_penalties
from jaxgen.learn.search import WIDEST, Search, falling
from jaxgen.learn.shrinkage import ERRORS, Centred, Shrinkage
from jaxgen.types import Data, Key, Learner, Plan
from jaxgen.types.numbers import require, require_flag, require_number, require_one_of


class RidgePerInputFit(NamedTuple):
    """Parameters of a linear model: weights [D, K], intercept [K], the penalties of the inputs [D], and what they made
    small: the error with the common penalty that they started from, and the last, [2].
    """

    weights: Float[Array, "*R D K"]
    intercept: Float[Array, "*R K"]
    ridges: Float[Array, "*R D"]
    errors: Float[Array, "*R 2"]


@dataclass(frozen=True, repr=False)
class RidgePerInput(Learner):
    """Ridge regression with a penalty of its own for each input, found by gradient steps on a cross-validated error.

    Minimises sum w (y - prediction)^2 + sum_i ridge_i |weights_i|^2, where the ridges make the mean squared
    leave-one-out loss (or generalized cross-validation) small, which is a function of them in closed form. Its gradient
    by the logarithms of the ridges goes through the solution of the normal equations, as in Larsen, Hansen, Svarer &
    Ohlsson 1996, "Design and regularization of neural networks: the optimal use of a validation set", and Larsen,
    Svarer, Andersen & Hansen 1998, "Adaptive regularization in neural network modeling", who do the same for networks
    and one validation set. An input of no use gets a large ridge, as with automatic relevance determination. The start
    is the best common ridge, as `Ridge` chooses it, and of all steps (of Adam, whose rate falls to 0) the one with the
    least error is kept, so that the error is never above that of the common ridge. It is an error on the training cases
    that D numbers were fitted to, and with few cases that can do harm: benchmarks/tuning.py says when it pays.

    Penalties have the units of x^2, and lie within 1e6 times the sum of squares of their input and a millionth of it,
    so that units of the inputs matter for the start only. One penalty of an input serves all targets.

    Attributes:
      by: "leave_one_out", or "gcv" for generalized cross-validation.
      penalties: common ones to start from the best of, each above 0.
      intercept: whether the model has a constant term, which is not penalised.
      steps: of the search.
      rate: the first step in a logarithm of a ridge.
    """

    by: str = "leave_one_out"
    penalties: tuple[float, ...] = PENALTIES
    intercept: bool = True
    steps: int = 50
    rate: float = 0.3

    precise: ClassVar[bool] = True

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses settings that are none, and rows of a single case.

        Raises:
          ValueError: a setting out of range or of another kind, or nothing to leave out.
        """
        require_one_of("by of RidgePerInput", self.by, tuple(ERRORS))
        check_penalties(self.penalties)
        require_flag("intercept", self.intercept)
        require("the steps of RidgePerInput", self.steps, 1, advice="use Ridge() for the best common penalty")
        require_number("the rate of RidgePerInput", self.rate, above=0, advice="leave it out for 0.3")
        fewest = int(plan.train_sizes.min())
        require("the training cases of every row", fewest, 2, advice=f"{self} leaves one out; train on more cases")

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> RidgePerInputFit:
        """Coefficients of one weighted training set for the ridges found; `key` is not used."""
        with jax.default_matmul_precision("highest"):
            return self._fit(x, y, w)

    def predict(self, params: RidgePerInputFit, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets, in the units of y."""
        return jnp.matmul(x, params.weights, precision="highest") + params.intercept[None]

    def diagnose(self, params: RidgePerInputFit) -> dict[str, Float[Array, "..."]]:
        """Weights [D, K], intercept [K], ridges of the inputs [D], and the errors at the start and at the end [2]."""
        return {
            "weights": params.weights,
            "intercept": params.intercept,
            "ridges": params.ridges,
            "errors": params.errors,
        }

    def error(
        self,
        ridges: Float[Array, " D"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
    ) -> Float[Array, ""]:
        """What is made small as a function of the ridges [D], [], for cases [n, D], [n, K] of weights [n]."""
        with jax.default_matmul_precision("highest"):
            problem = _Problem.of(Centred.of(x, y, w, self.intercept))
            return problem.error(self.by, jnp.log(ridges / jnp.square(problem.scale)))

    def _fit(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> RidgePerInputFit:
        problem = _Problem.of(Centred.of(x, y, w, self.intercept))
        shrinkage, penalties = Shrinkage.of(problem.cases), jnp.asarray(self.penalties, x.dtype)
        common = penalties[jnp.argmin(shrinkage.errors(self.by, penalties))]
        start = jnp.clip(jnp.log(common / jnp.square(problem.scale)), -WIDEST, WIDEST)

        def log_error(place):
            """Its steps are the same whatever the unit of the targets is."""
            return jnp.log(problem.error(self.by, place))

        def visit(number, search: Search) -> Search:
            error, gradient = jax.value_and_grad(log_error)(search.place)
            return search.judged(error).moved(gradient, falling(self.rate, number, self.steps), number + 1)

        begun = Search.begun(start, log_error(start))
        end = lax.fori_loop(0, self.steps, visit, begun)
        best = end.judged(log_error(end.place))
        weights = problem.weights(best.best)
        ridges = jnp.exp(best.best) * jnp.square(problem.scale)
        errors = jnp.exp(jnp.stack([begun.least, best.least]))
        return RidgePerInputFit(weights, problem.cases.intercept(weights), ridges, errors)


class _Problem(NamedTuple):
    """A training set with its inputs in units of their root sum of squares [n, D], and those units, [D]."""

    cases: Centred
    x: Float[Array, "n D"]
    scale: Float[Array, " D"]

    @classmethod
    def of(cls, cases: Centred) -> "_Problem":
        scale = jnp.sqrt(jnp.sum(jnp.square(cases.x), axis=0))
        scale = jnp.where(scale > 0, scale, 1)
        return cls(cases, cases.x / scale[None], scale)

    def error(self, by: str, place: Float[Array, " D"]) -> Float[Array, ""]:
        """The error for logarithms of ridges [D] in these units."""
        if self._is_wide:
            rest = self._rest(place, jnp.eye(len(self.x), dtype=self.x.dtype))
            return ERRORS[by](self.cases, rest @ self.cases.y, 1 - jnp.diagonal(rest))
        solver = self._solver(place)
        return ERRORS[by](
            self.cases, self.cases.y - self.x @ (solver @ self.cases.y), jnp.sum(self.x * solver.T, axis=1)
        )

    def weights(self, place: Float[Array, " D"]) -> Float[Array, "D K"]:
        """Weights [D, K] in the units of the data."""
        if self._is_wide:
            inside = jnp.exp(-place)[:, None] * (self.x.T @ self._rest(place, self.cases.y))
        else:
            inside = self._solver(place) @ self.cases.y
        return inside / self.scale[:, None]

    @property
    def _is_wide(self) -> bool:
        """Whether there are more inputs than cases: matrices are then as large as the cases are many."""
        return self.x.shape[1] > len(self.x)

    def _rest(self, place: Float[Array, " D"], values: Float[Array, "n K"]) -> Float[Array, "n K"]:
        """What is left of values [n, K] after a regression on the inputs: (1 + x ridges^-1 x')^-1 values."""
        inside = (self.x * jnp.exp(-place)[None]) @ self.x.T
        return _solved(inside + jnp.eye(len(self.x), dtype=self.x.dtype), values)

    def _solver(self, place: Float[Array, " D"]) -> Float[Array, "D n"]:
        """What makes weights of targets: (x' x + ridges)^-1 x'."""
        return _solved(self.x.T @ self.x + jnp.diag(jnp.exp(place)), self.x.T)


@jax.custom_vjp
def _solved(matrix: Float[Array, "m m"], b: Float[Array, "m K"]) -> Float[Array, "m K"]:
    """Solution [m, K] of a symmetric positive definite system.

    Its derivative is written out: the one that JAX makes of Cholesky's factor and of substitutions calls LAPACK several
    times at once, and these calls can wait for each other for ever, see `one_by_one`.
    """
    return _factored(matrix, b)[0]


Factored = tuple[Float[Array, "m K"], Float[Array, "m m"]]


def _factored(matrix: Float[Array, "m m"], b: Float[Array, "m K"]) -> Factored:
    """The solution, and Cholesky's factor."""
    factor = jnp.linalg.cholesky(matrix)
    return cho_solve((factor, True), b), factor


def _forward(matrix: Float[Array, "m m"], b: Float[Array, "m K"]) -> tuple[Float[Array, "m K"], Factored]:
    """The solution, and what its derivative needs."""
    solution, factor = _factored(matrix, b)
    return solution, (solution, factor)


def _backward(known: Factored, slope: Float[Array, "m K"]) -> tuple[Float[Array, "m m"], Float[Array, "m K"]]:
    """Slopes by the matrix and by b, of the slope [m, K] by the solution."""
    solution, factor = known
    by_b = cho_solve((factor, True), slope)
    return -by_b @ solution.T, by_b


_solved.defvjp(_forward, _backward)
