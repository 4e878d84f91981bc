"""Penalties of a network found by the gradient of its validation error through the trained weights."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float, Int, PyTree

from jaxgen.learn.network.conjugate import Conjugate
from jaxgen.learn.network.iterative import Cases, Trained, prepare
from jaxgen.learn.network.nets import MLP
from jaxgen.learn.network.objectives import Grouped, as_objective
from jaxgen.learn.search import Search, falling
from jaxgen.learn.wrap.tuned import without_a_fold
from jaxgen.learn.wrap.validation import Portions, columns, divided, in_folds, in_strata, random_order
from jaxgen.learn.wrap.wrapper import Wrapper
from jaxgen.types import Data, Key, Plan
from jaxgen.types.numbers import require, require_number, require_one_of, shown

_GROUPS = ("input", "layer")

_MOST_WEIGHTS = 2000
"""Weights of a network whose Hessian, 8 bytes times their square, is formed and factorised for every fold."""

_DAMPING = (0.0, 1e-3, 0.1, 10.0)
"""What is added to the Hessian, in units of the mean size of its diagonal, until it is positive definite: a network
that is not at a minimum yet may need it.
"""


class AdaptedFit(NamedTuple):
    """The network trained on all cases, and the penalties found.

    Attributes:
      base: parameters of the learner inside.
      penalties: of each group of weights, [G].
      errors: mean validation loss of each place that the search tried, [S].
    """

    base: Trained
    penalties: Float[Array, "*R G"]
    errors: Float[Array, "*R S"]


@dataclass(frozen=True, repr=False)
class AdaptivePenalties(Wrapper):
    """A network with a weight penalty for each input, or for each layer, found by gradient steps on its validation
    error: adaptive regularization (Larsen, Hansen, Svarer & Ohlsson 1996, "Design and regularization of neural
    networks: the optimal use of a validation set"; Larsen, Svarer, Andersen & Hansen 1998, "Adaptive regularization in
    neural network modeling").

    The training cases are cut into folds, as by `Tuned`, and one network is trained without each. The error is the mean
    of the objective over the cases left out. Its gradient by the logarithm of a penalty s_g goes through the trained
    weights v by implicit differentiation (1998, eq. 14): -s_g v_g' H^-1 dV/dv, summed over the group, with H the exact
    Hessian of what training made small, penalties included. (Larsen et al. take one validation set, later folds, and
    the Gauss-Newton approximation of H.) Adam takes the steps, whose rate falls to 0. Between two steps each network is
    trained a little further from where it was, and the penalties with the least error are those that a network is
    trained with in the end, from a random start, on all cases. It is an error that G numbers are fitted to, and with
    few cases that can do harm: benchmarks/tuning.py says when it pays.

    Penalties are those of `L2`: half the sum of squared weights times s. Biases have none. An input of no use gets a
    large penalty, as with automatic relevance determination. Normalise the inputs, since all penalties begin alike:
    `Normalised(AdaptivePenalties(Conjugate(...)))`. Work grows with the square of the number of weights, of which
    there may be 2000.

    Attributes:
      base: `Conjugate` with an `MLP`; its `penalty` is kept besides.
      by: "input": a penalty for each of D inputs, in the order of the data, then one for each other layer of weights,
        hidden ones first; "layer": one for each layer.
      folds: of the training cases.
      start: all penalties at the beginning; they stay within 1e6 times it and a millionth of it.
      steps: places that the search tries, the start included.
      rate: the first step in the logarithm of a penalty.
      iterations: of the networks between two steps; `base.steps` come before the first.
    """

    by: str = "input"
    folds: int = 4
    start: float = 1.0
    steps: int = 30
    rate: float = 0.5
    iterations: int = 20

    @property
    def precise(self) -> bool:
        """In double precision: the Hessian of a network with small penalties is nearly singular."""
        return True

    @property
    def failures(self) -> tuple[str, ...]:
        """That no error was finite, and what the learner inside says."""
        own = "the validation error of its networks was not finite for any penalties (normalise the data)"
        return (own, *self.inside.failures)

    @property
    def rounds(self) -> int | None:
        """All iterations of all networks."""
        inside = self.inside.rounds
        return None if inside is None else inside * (self.folds + 1) + self.steps * self.iterations * self.folds

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> AdaptedFit:
        """The network with the best penalties found, trained on all cases."""
        with jax.default_matmul_precision("highest"):
            search_key, fit_key = jax.random.split(key)
            problem = _Folds.of(self, search_key, x, y, w)

            def visit(state, number):
                networks, search = state
                iterations = jnp.where(number == 0, self._network.steps, self.iterations)
                networks, error, gradient = problem.judged(search.place, networks, iterations)
                place = number.astype(x.dtype)
                search = search.judged(error).moved(gradient, falling(self.rate, place, self.steps), place + 1)
                return (networks, search), error

            start = jnp.zeros(self._groups(problem.networks), x.dtype)
            begun = problem.networks, Search.begun(start, jnp.asarray(jnp.inf, x.dtype))
            (_, search), errors = lax.scan(visit, begun, jnp.arange(self.steps, dtype=jnp.int32))
            fit = self._with(search.best, problem.networks).fit(fit_key, x, y, w)
            return AdaptedFit(fit, self.start * jnp.exp(search.best), errors)

    def predict(self, params: AdaptedFit, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets, in the units of y."""
        return self.inside.predict(params.base, x)

    def failure(self, params: AdaptedFit) -> Int[Array, ""]:
        """1 if no validation error was finite, else 0 or the number of what the learner inside says; []."""
        code = jnp.asarray(self.inside.failure(params.base), jnp.int32)
        lost = ~jnp.any(jnp.isfinite(params.errors))
        return jnp.where(lost, 1, jnp.where(code > 0, code + 1, 0)).astype(jnp.int32)

    def diagnose(self, params: AdaptedFit) -> dict[str, Array]:
        """The penalties [G], the validation errors of the places tried [S], and what the learner inside says."""
        return {**self.inside.diagnose(params.base), "penalties": params.penalties, "errors": params.errors}

    def error(
        self,
        penalties: Float[Array, " G"],
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
    ) -> tuple[Float[Array, ""], Float[Array, " G"]]:
        """What `fit` with the same key makes small as a function of the penalties [G], and its gradient by their
        logarithms, [] and [G], for networks trained by `base.steps` on cases [n, D], [n, K] of weights [n].
        """
        with jax.default_matmul_precision("highest"):
            problem = _Folds.of(self, jax.random.split(key)[0], x, y, w)
            place = jnp.log(penalties / self.start)
            return problem.judged(place, problem.networks, jnp.int32(self._network.steps))[1:]

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses settings and learners that do not fit, and too few training cases.

        Raises:
          TypeError: the learner inside is not `Conjugate` with an `MLP`.
          ValueError: settings out of range, a network that is too large or has batch normalisation, fewer training
            cases than folds, or what the learner inside refuses.
        """
        advice = "write for example learn.AdaptivePenalties(learn.Conjugate(learn.MLP((10,)), steps=100))"
        inside: Any = self.inside
        if not isinstance(inside, Conjugate) or not isinstance(inside.network, MLP):
            raise TypeError(f"expected Conjugate with an MLP to find penalties for, got {shown(self.base)}; {advice}")
        if inside.network.batch_norm:
            raise ValueError(
                f"expected a network without batch_norm, whose error depends on its own cases only, got "
                f"{inside.network}; leave it out"
            )
        require_one_of("by of AdaptivePenalties", self.by, _GROUPS)
        require("the folds of AdaptivePenalties", self.folds, 2, advice="4 are the default")
        require_number("the start of AdaptivePenalties", self.start, above=0, advice="leave it out for 1")
        require("the steps of AdaptivePenalties", self.steps, 2, advice="use Tuned for a few penalties")
        require_number("the rate of AdaptivePenalties", self.rate, above=0, advice="leave it out for 0.5")
        require("the iterations of AdaptivePenalties", self.iterations, 1, advice="leave it out for 20")
        inside.check(data, plan)
        fewest = int(plan.train_cases.min())
        if fewest < self.folds:
            raise ValueError(
                f"expected at least {self.folds} training cases for the {self.folds} folds of AdaptivePenalties, got "
                f"{fewest} in {plan.scheme}; train on more cases, or use fewer folds"
            )
        inside.check(data, without_a_fold(plan, self.folds))
        x, y = (jax.ShapeDtypeStruct((2, width), jnp.float32) for width in (data.d, data.y.shape[-1]))
        shapes = jax.eval_shape(lambda x, y: inside.init(jax.random.key(0), x, y), x, y)
        weights = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
        advice = "use fewer hidden units, or Tuned for one penalty"
        require("the weights of the network of AdaptivePenalties", weights, 1, _MOST_WEIGHTS, advice)

    @property
    def _network(self) -> Conjugate:
        inside: Any = self.inside
        return inside

    def _groups(self, networks: PyTree) -> int:
        """How many penalties there are."""
        layers = len(networks)
        if self.by == "layer":
            return layers
        inputs = self._network.network.input_layers
        return networks[inputs[0]]["kernel"].shape[-1] + layers - len(inputs)

    def _strengths(self, place: Float[Array, " G"], params: PyTree) -> PyTree:
        """Penalties for logarithms [G] in units of the start, as a tree that goes with the parameters of a network."""
        inputs = self._network.network.input_layers if self.by == "input" else ()
        strengths = self.start * jnp.exp(place)
        number, tree = len(place) - (len(params) - len(inputs)), {}
        for name, layer in params.items():
            if name in inputs:
                strength = strengths[None, : layer["kernel"].shape[-1]]
            else:
                strength, number = strengths[number], number + 1
            tree[name] = {part: strength if part == "kernel" else jnp.zeros((), place.dtype) for part in layer}
        return tree

    def _with(self, place: Float[Array, " G"], params: PyTree) -> Conjugate:
        """The learner inside with penalties for logarithms [G]."""
        one = jax.tree.map(lambda a: a[0], params)
        grouped = Grouped((self._strengths(place, one),))
        return replace(self._network, penalty=(*self._network.penalties, grouped))


class _Folds(NamedTuple):
    """The training cases of a row in folds, for each of which there is a network.

    Attributes:
      owner: with the settings.
      keys: of the networks, [M].
      networks: their parameters at the beginning, each array with a leading axis [M].
      portions: which cases each leaves out.
      order, table: the cases in random order [n], and their inputs, targets and weights [n, c].
      inputs: D.
    """

    owner: AdaptivePenalties
    keys: Key
    networks: PyTree
    portions: Portions
    order: Int[Array, " n"]
    table: Float[Array, "n c"]
    inputs: int

    @classmethod
    def of(
        cls, owner: AdaptivePenalties, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]
    ) -> "_Folds":
        order_key, networks_key = jax.random.split(key)
        used = (w > 0)[:, None]
        x, y = jnp.where(used, x, 0), jnp.where(used, y, 0)
        portions = in_folds(len(w), jnp.sum(w > 0, dtype=jnp.int32), owner.folds)
        order = in_strata(random_order(order_key, w), y, w, portions)
        keys = jax.random.split(networks_key, owner.folds)
        networks = jax.vmap(lambda key: owner._network.init(key, x, y))(keys)
        table = jnp.concatenate([x, y, w[:, None]], axis=1)
        return cls(owner, keys, networks, portions, order, table, x.shape[1])

    def judged(
        self, place: Float[Array, " G"], networks: PyTree, iterations: Int[Array, ""]
    ) -> tuple[PyTree, Float[Array, ""], Float[Array, " G"]]:
        """The networks after more iterations with penalties for logarithms [G], their mean validation loss [], and its
        gradient by the logarithms [G].
        """
        learner, owner = self.owner._with(place, networks), self.owner
        objective = as_objective(learner.objective)

        def fold(key, begin, size, network):
            learning, out = (
                columns(part, self.inputs) for part in divided(self.portions, begin, size, self.order, self.table)
            )
            training = learner.begin(key, *learning, network)
            params = training.params(training.advance(training.state, 0, iterations))
            free, restored = ravel_pytree(params)
            cases, others = prepare(*learning), prepare(*out)

            def loss(free):
                outputs = learner.network.forward(restored(free), others.x).outputs
                return others.w @ objective.losses(outputs, others.y)

            error, slope = jax.value_and_grad(loss)(free)
            solution = _solved(_hessian(learner, restored, cases, free), slope)
            product = jax.lax.stop_gradient(solution * free)

            def through(place):
                strengths = jax.tree.map(jnp.broadcast_to, owner._strengths(place, params), shapes)
                return -product @ ravel_pytree(strengths)[0]

            shapes = jax.tree.map(jnp.shape, params)
            return params, error, jax.grad(through)(place), jnp.sum(others.w)

        networks, errors, gradients, weights = jax.vmap(fold)(
            self.keys, self.portions.begin, self.portions.size, networks
        )
        total = jnp.sum(weights)
        return networks, jnp.sum(errors) / total, jnp.sum(gradients, axis=0) / total


def _hessian(learner: Conjugate, restored: Any, cases: Cases, free: Float[Array, " p"]) -> Float[Array, "p p"]:
    """The exact Hessian of what training makes small, [p, p]."""
    return jax.hessian(lambda free: learner.energy(restored(free), cases))(free)


def _solved(hessian: Float[Array, "p p"], slope: Float[Array, " p"]) -> Float[Array, " p"]:
    """H^-1 slope, [p], of the first of the damped matrices that is positive definite; NaN if none is."""
    size = jnp.mean(jnp.abs(jnp.diagonal(hessian)))
    damping = size * jnp.asarray(_DAMPING, slope.dtype)
    damped = hessian[None] + damping[:, None, None] * jnp.eye(len(slope), dtype=slope.dtype)[None]
    factors = jnp.linalg.cholesky(damped)
    good = jnp.argmax(jnp.all(jnp.isfinite(factors), axis=(1, 2)))
    return cho_solve((factors[good], True), slope)
