"""Gradient descent: Neal's batch gradient descent with step factors by relevance, and any optimiser of optax."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from jaxgen.learn.network.iterative import Cases, Iterative, Steps, Trained, Units, norm, prepare
from jaxgen.learn.network.nets import as_network, moves_units, worth_turning
from jaxgen.types import Data, Key, Plan
from jaxgen.types.keys import stream
from jaxgen.types.numbers import first_line, require, require_number, require_one_of, shown
from jaxgen.types.value import plain

_RELEVANCE = ("none", "gradient", "correlation")

_EXAMPLE = "write for example Optax('adam', learning_rate=0.001)"


class Optax:
    """An optimiser or schedule of optax as a value: its name and arguments, which may be such values themselves.

    For example `Optax("adam", learning_rate=Optax("cosine_decay_schedule", init_value=0.01, decay_steps=1000))`, or
    `Optax("chain", Optax("clip", max_delta=1.0), Optax("sgd", learning_rate=0.1))`. Unlike optax's own objects, which
    are closures, equal ones are equal, compile once, and print as code that recreates them.
    """

    def __init__(self, name: str = "", *args: Any, **kwargs: Any):
        self.name, self.args = name, plain(args)
        self.kwargs = tuple((key, plain(kwargs[key])) for key in sorted(kwargs))

    def make(self) -> Any:
        """What the function of optax returns for these arguments.

        Raises:
          ValueError: optax has no such function, or it does not take these arguments.
        """

        def made(value):
            return value.make() if isinstance(value, Optax) else value

        try:
            return getattr(optax, self.name)(
                *map(made, self.args), **{name: made(value) for name, value in self.kwargs}
            )
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(
                f"expected a function of optax with its arguments, got {self} ({first_line(error)}); {_EXAMPLE}"
            ) from None

    def _all(self) -> tuple[Any, ...]:
        return self.name, self.args, self.kwargs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Optax) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        words = [repr(self.name), *map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs)]
        return f"Optax({', '.join(words)})"


class _State(NamedTuple):
    """A network in training, the state of its optimiser, and the step at which its error ceased to be finite, -1
    before.
    """

    params: PyTree
    optimiser: Any
    failed_step: Int[Array, ""]


@dataclass(frozen=True, repr=False)
class Descent(Iterative):
    """Gradient descent on the objective of one training set.

    Without an optimiser, w <- w - rate / (N + 1) r dE/dw, where E sums the objective over the cases (with the
    penalties), N is the sum of their weights, and r is 1 or a step factor: Neal 1998, eq. 4 to 9 (eq. 7 lacks the sum
    over cases, and "input-to-output" below eq. 5 must read input-to-hidden). With an optimiser of optax, it is given
    the gradient of E / N, and r multiplies its steps.

    With `EarlyStopped` and `Normalised`, `relevance` "none", "gradient", "correlation" and 20,000 steps are his
    mlp-bgd-1, -2, -3.

    Attributes:
      rate: the step size, where there is no optimiser.
      optimiser: an `Optax` value, or a gradient transformation of optax (which compiles anew whenever it is made anew).
      batch: cases drawn for each iteration, in proportion to their weights and with replacement, so that absent cases
        change nothing and a case of weight 2 is the case twice; None takes all.
      relevance: step factors r_i of the weights that read input i, all others having 1: "gradient": (sum_j g_ij^2)^2
        over its maximum, from the gradient that is applied; "correlation": max(1e-4, C_i^4 / max C^4), C_i = sum_c x_i
        t over the training cases (root sum of squares over outputs); a random start of these weights is multiplied by
        the root of r_i, which makes it the same as training on inputs multiplied by it.
    """

    rate: float = 0.1
    optimiser: Optax | optax.GradientTransformation | None = None
    batch: int | None = None
    relevance: str = "none"

    @property
    def takes_units(self) -> bool:
        """Whether the network can take over the units, and every step looks at all cases through it only."""
        return self.batch is None and self.relevance != "correlation" and moves_units(self.network)

    def begin(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        start: PyTree,
        units: Units | None = None,
    ) -> Steps:
        """A training on cases [n, D], [n, K] of weights [n] that can be advanced iteration by iteration; with `units`,
        [D] each, of a network that sees inputs in these.
        """
        turned = self.batch is None and worth_turning(self.network, x.shape[1])
        cases, network = prepare(x, y, w, units, turned), as_network(self.network)
        training_key = jax.random.fold_in(key, 1)
        random = self.init(key, x, y)
        factors = self._fixed_factors(cases)
        params = random if start is None else start
        if start is None and self.relevance == "correlation":
            # A weight u = sqrt(r) v of input i and steps r times as long are the same as a weight v, that starts and
            # moves as all others, of the input times sqrt(r): so step factors choose inputs without changing them.
            params = self._scaled(random, [jnp.sqrt(factor) for factor in factors])
        optimiser = self._optimiser(cases)
        ends = jnp.cumsum(cases.w)

        def step(number, state):
            iteration_key = jax.random.fold_in(training_key, number)
            batch_key, layers_key = (stream(iteration_key, name) for name in ("batch", "layers"))
            used, share = (cases, 1.0) if self.batch is None else self._batch(batch_key, cases, ends, self.batch)
            error, gradient = jax.value_and_grad(self.energy)(
                state.params, used, layers_key if network.random else None, share
            )
            moves, optimiser_state = optimiser.update(gradient, state.optimiser, state.params)
            moves = self._scaled(moves, self._factors(gradient) if self.relevance == "gradient" else factors)
            failed_step = jnp.where((state.failed_step < 0) & ~jnp.isfinite(error), number, state.failed_step)
            return _State(optax.apply_updates(state.params, moves), optimiser_state, failed_step)

        return Steps(
            _State(params, optimiser.init(params), jnp.int32(-1)),
            lambda state, since, upto: lax.fori_loop(
                jnp.asarray(since, jnp.int32), jnp.asarray(upto, jnp.int32), step, state
            ),
            lambda state: state.params,
            cases,
            norm(jax.grad(self.energy)(random, cases)),
        )

    def diagnose(self, params: Trained) -> dict[str, Array]:
        """As of any network; with step factors by relevance also the size of the weights that read each input, [D]:
        the inputs that were found relevant have large ones.
        """
        if self.relevance == "none":
            return super().diagnose(params)
        kernels = [params.params[name]["kernel"] for name in as_network(self.network).input_layers]
        size = jnp.sqrt(sum(jnp.sum(jnp.square(kernel), axis=tuple(range(kernel.ndim - 1))) for kernel in kernels))
        return {**super().diagnose(params), "input_weights": size}

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses settings and data that do not fit.

        Raises:
          ValueError: what was expected, what came, and what to do.
        """
        require_number("the rate", self.rate, above=0, advice="Neal 1998 uses 0.1 on normalised data")
        if self.batch is not None:
            require("the cases of a batch", self.batch, 1, advice="leave batch out to use all cases")
        require_one_of("relevance", self.relevance, _RELEVANCE)
        self._check_optimiser()
        super().check(data, plan)
        if self.relevance != "none" and not as_network(self.network).input_layers:
            raise ValueError(
                f"expected an MLP for relevance={self.relevance!r}, got {type(self.network).__name__}, whose "
                "input weights are not known; use learn.MLP, or relevance='none'"
            )

    def _check_optimiser(self) -> None:
        """Refuses what is no optimiser, or does not run."""
        if self.optimiser is None:
            return
        if not isinstance(self.optimiser, Optax | optax.GradientTransformation):
            raise TypeError(f"expected an optimiser as an Optax value, got {shown(self.optimiser)}; {_EXAMPLE}")
        try:
            hash(self.optimiser)
        except TypeError:
            raise ValueError(
                f"expected Optax with numbers, texts, tuples and such as arguments, got {shown(self.optimiser)}, which "
                "cannot be hashed; use a schedule of optax with other arguments"
            ) from None
        if not isinstance(_made(self.optimiser), optax.GradientTransformation):
            raise ValueError(
                f"expected an optimiser of optax, got {self.optimiser}, which has no init and update; {_EXAMPLE}"
            )
        try:
            _try(self.optimiser)
        except Exception as error:
            raise ValueError(
                f"expected an optimiser of optax that runs, got {first_line(error)} from {shown(self.optimiser)}; "
                f"{_EXAMPLE}"
            ) from error

    def _optimiser(self, cases: Cases) -> optax.GradientTransformation:
        """The optimiser of E."""
        if self.optimiser is None:
            return optax.stateless(
                lambda gradient, params: jax.tree.map(lambda g: -self.rate / (jnp.sum(cases.w) + 1) * g, gradient)
            )
        mean = optax.stateless(lambda gradient, params: jax.tree.map(lambda g: g / jnp.sum(cases.w), gradient))
        return optax.chain(mean, _made(self.optimiser))

    def _batch(self, key: Key, cases: Cases, ends: Float[Array, " n"], size: int) -> tuple[Cases, Float[Array, ""]]:
        """Cases drawn in proportion to their weights, each of weight 1 now, and the share of all that they are.

        A case owns as many whole numbers as it weighs, up to its cumulated weight in `ends`; numbers are drawn.
        """
        number = jax.random.randint(key, (size,), 0, ends[-1].astype(jnp.int32))
        index = jnp.searchsorted(ends, number.astype(ends.dtype), side="right")
        w = jnp.ones(size, cases.w.dtype)
        return Cases(cases.x[:, index], cases.y[:, index], w), size / ends[-1]

    def _factors(self, gradient: PyTree) -> list[Float[Array, "*T D"]]:
        """Step factors of the inputs [D] in each layer that reads them, from the gradient of its weights [H, D]."""
        return [
            relative(jnp.sum(jnp.square(gradient[name]["kernel"]), axis=-2))
            for name in as_network(self.network).input_layers
        ]

    def _fixed_factors(self, cases: Cases) -> list[Float[Array, " D"]]:
        """Step factors of the inputs [D] in each layer that reads them, known before training."""
        if self.relevance != "correlation":
            return []
        sizes = jnp.sum(jnp.square((cases.x * cases.w[None]) @ cases.y.T), axis=1)
        return [jnp.maximum(relative(sizes), 1e-4)] * len(as_network(self.network).input_layers)

    def _scaled(self, tree: PyTree, factors: list[Array]) -> PyTree:
        """A tree like the parameters, with the weights that read the inputs multiplied by factors [D] or [tasks, D]."""
        if self.relevance == "none":
            return tree
        kernels = {
            name: (tree[name]["kernel"], factor[..., None, :])
            for name, factor in zip(as_network(self.network).input_layers, factors, strict=True)
        }
        return {
            **tree,
            **{
                name: {**tree[name], "kernel": kernel * jnp.broadcast_to(factor, kernel.shape)}
                for name, (kernel, factor) in kernels.items()
            },
        }


def _made(optimiser: Any) -> Any:
    """The gradient transformation of optax that a value stands for, or is."""
    return optimiser.make() if isinstance(optimiser, Optax) else optimiser


@lru_cache(maxsize=256)
def _try(optimiser: Any) -> None:
    """Traces a step, so that what optax refuses is said before anything runs; once for equal optimisers."""
    made, params = _made(optimiser), {"kernel": jax.ShapeDtypeStruct((2, 3), jnp.float32)}
    jax.eval_shape(lambda params: made.update(params, made.init(params), params), params)


def relative(sizes: Float[Array, "*T D"]) -> Float[Array, "*T D"]:
    """Squares of sizes relative to the largest, in [0, 1]; all 0 if that is 0."""
    largest = jnp.max(sizes, axis=-1, keepdims=True)
    return jnp.square(sizes / jnp.where(largest > 0, largest, 1))
