"""What networks are trained to make small: objectives, and penalties on weights and activations.

Everything here works inside a network, where the cases are the last axis. An objective is a sum over cases, to which
the penalties are added as they stand (Scott & Variyam, "Parameter norm penalties": J + alpha Omega, with J the total
loss).
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from jaxgen.learn.network.nets import PerTask
from jaxgen.types import Data
from jaxgen.types.numbers import require_number, require_one_of, shown
from jaxgen.types.value import Value

Outputs = Float[Array, "K n"]


def _absolute(a: Array) -> Array:
    """Absolute values, with gradient 0 at 0, where that of JAX is 1."""
    return a * jax.lax.stop_gradient(jnp.sign(a))


def _huber(error: Outputs, delta: float) -> Outputs:
    near = jnp.minimum(jnp.abs(error), delta)
    return near * (jnp.abs(error) - near / 2)


def _softmax_cross_entropy(outputs: Outputs, y: Outputs) -> Outputs:
    return -y * jax.nn.log_softmax(outputs, axis=0)


_LOSSES: dict[str, Callable[[Outputs, Outputs, float], Outputs]] = {
    "squared": lambda o, y, delta: jnp.square(o - y) / 2,
    "absolute": lambda o, y, delta: _absolute(o - y),
    "huber": lambda o, y, delta: _huber(o - y, delta),
    "binary_cross_entropy": lambda o, y, delta: jax.nn.softplus(o) - y * o,
    "softmax_cross_entropy": lambda o, y, delta: _softmax_cross_entropy(o, y),
    "hinge": lambda o, y, delta: jax.nn.relu(delta - (2 * y - 1) * o),
}
_LINKS: dict[str, Callable[[Outputs], Outputs]] = {
    "binary_cross_entropy": jax.nn.sigmoid,
    "softmax_cross_entropy": lambda o: jax.nn.softmax(o, axis=0),
    "hinge": lambda o: (1 + o) / 2,
}


@dataclass(frozen=True, repr=False)
class Objective(Value):
    """The loss that training makes small, and how a network's outputs become predictions in the units of the targets.

    | kind | loss of an output o with target t | prediction |
    |---|---|---|
    | squared | (o - t)^2 / 2 (Neal 1998) | o |
    | absolute | abs(o - t) | o |
    | huber | quadratic up to `delta`, linear beyond (Huber 1964) | o |
    | binary_cross_entropy | -t ln s(o) - (1 - t) ln(1 - s(o)), t in {0, 1}, of each output | s(o), logistic function |
    | softmax_cross_entropy | -sum_k t_k ln softmax(o)_k, one output per class | softmax(o) |
    | hinge | max(0, delta - (2 t - 1) o), t in {0, 1} | (1 + o) / 2, in which margins -1 and 1 are 0 and 1 |

    Source of the classification losses: Scott & Variyam, "Training loss"; its printed hinge has t in {-1, 1} and
    margin 1.

    Attributes:
      kind: one of the names above.
      delta: where Huber's loss turns linear, in units of the target, or the margin of the hinge.
      weights: one factor per output, for several tasks that share hidden units; None weighs all alike.
    """

    kind: str = "squared"
    delta: float = 1.0
    weights: tuple[float, ...] | None = None

    @property
    def classifies(self) -> bool:
        """Whether targets must be zeros and ones."""
        return self.kind in _LINKS

    @property
    def predicts(self) -> str:
        """What the predictions are: "probabilities", "scores" or "numbers"; see `Learner.predicts`."""
        return "scores" if self.kind == "hinge" else "probabilities" if self.classifies else "numbers"

    def losses(self, outputs: Outputs, y: Outputs) -> Float[Array, " n"]:
        """Loss of every case, [n], from outputs and targets [K, n]."""
        each = _LOSSES[self.kind](outputs, y, self.delta)
        if self.weights is not None:
            each = each * jnp.asarray(self.weights, each.dtype)[:, None]
        return jnp.sum(each, axis=0)

    def predictions(self, outputs: Outputs) -> Outputs:
        """Predicted targets [K, n] from outputs [K, n]."""
        return _LINKS.get(self.kind, lambda o: o)(outputs)

    def check(self, data: Data) -> None:
        """Refuses data with other targets than this objective is for.

        Raises:
          ValueError: unknown kind, wrong number of weights, or targets other than 0 and 1 for a classification.
        """
        outputs = data.y.shape[-1]
        require_one_of("the objective", self.kind, tuple(_LOSSES))
        require_number("delta", self.delta, above=0, advice="give it in units of the target")
        if self.weights is not None:
            numbers = isinstance(self.weights, tuple) and all(_is_number(weight) for weight in self.weights)
            if not numbers or len(self.weights) != outputs or min(self.weights) < 0:
                raise ValueError(
                    f"expected {outputs} weights of at least 0, one per output, got {shown(self.weights)}; "
                    "weigh every output once"
                )
        if self.classifies and not ((data.y == 0) | (data.y == 1)).all():
            raise ValueError(
                f"expected targets 0 and 1 for {self.kind}, got other numbers in {data.target!r}; "
                "use a classification data set, or the objective 'squared'"
            )
        if self.kind == "softmax_cross_entropy" and (outputs < 2 or not (data.y.sum(axis=-1) == 1).all()):
            raise ValueError(
                "expected one column per class and a single 1 in each row for softmax_cross_entropy, got "
                f"{outputs} columns in {data.target!r}; use 'binary_cross_entropy' for a single column"
            )


def as_objective(objective: str | Objective) -> Objective:
    """The objective itself, or the one of that name."""
    return Objective(objective) if isinstance(objective, str) else objective


def check_objective(objective: Any, data: Data) -> None:
    """Refuses what is no objective, or not for these data.

    Raises:
      TypeError: neither a text nor an `Objective`.
      ValueError: see `Objective.check`.
    """
    if not isinstance(objective, str | Objective):
        raise TypeError(
            f"expected an objective among {', '.join(_LOSSES)} or an Objective, got {_kind_of(objective)}; "
            "write for example 'squared'"
        )
    as_objective(objective).check(data)


def check_penalty(penalty: Any, network: Any) -> None:
    """Refuses what is no penalty, or not for this network.

    Raises:
      TypeError: not L2, L1, Sparse or Tied.
      ValueError: as the penalty says.
    """
    if not isinstance(penalty, Penalty):
        raise TypeError(
            f"expected a penalty L2, L1, Sparse or Tied, or a tuple of such, got {_kind_of(penalty)}; "
            "write for example learn.L2(0.1), or leave it out"
        )
    penalty.check(network)


def _kind_of(value: Any) -> str:
    """A value for a message; a class by its name."""
    return f"the class {value.__name__}" if isinstance(value, type) else shown(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_strength(penalty: Any, strength: Any) -> None:
    """ValueError unless the strength of a penalty is a number of at least 0."""
    name = f"the strength of {type(penalty).__name__}"
    require_number(name, strength, least=0, advice="give 0 for none")


def _weights(tree: PyTree) -> list[Array]:
    """All weights of a network: its parameters without biases and without the scales of batch normalisation."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [leaf for path, leaf in leaves if getattr(path[-1], "key", None) not in ("bias", "scale")]


@dataclass(frozen=True, repr=False)
class _Norm(Value):
    """A penalty on the weights, biases excluded.

    Attributes:
      strength: factor of the penalty; or one per layer of weights, in the order hidden layers, output, direct
        connections.
    """

    strength: float | tuple[float, ...] = 0.0

    of_cases: ClassVar[bool] = False

    def penalty(self, params: PyTree, hidden: tuple[Array, ...], w: Array) -> Float[Array, ""]:
        """The penalty of one network, []."""
        layers = _weights(params)
        strengths = self.strength if isinstance(self.strength, tuple) else (self.strength,) * len(layers)
        if len(strengths) != len(layers):
            raise ValueError(
                f"expected {len(layers)} strengths, one per layer of weights, got {len(strengths)} in {self}; "
                "give one number, or one per layer"
            )
        return sum(
            (strength * self._size(layer) for strength, layer in zip(strengths, layers, strict=True)),
            start=jnp.zeros((), w.dtype),
        )

    def _size(self, layer: Array) -> Float[Array, ""]:
        raise TypeError(f"expected {type(self).__name__} to have a method _size, got none; write _size(layer)")

    def check(self, network: Any) -> None:
        """Refuses a strength below 0.

        Raises:
          ValueError: a strength is negative or no number.
        """
        for strength in self.strength if isinstance(self.strength, tuple) else (self.strength,):
            _check_strength(self, strength)


@dataclass(frozen=True, repr=False)
class L2(_Norm):
    """Half the sum of squared weights, times the strength (Scott & Variyam, "Parameter norm penalties: L2 norm").

    Strength a is that of `LeastSquares(ridge=a)`: with half squared errors both objectives are halves of each other's.
    """

    def _size(self, layer: Array) -> Float[Array, ""]:
        return jnp.sum(jnp.square(layer)) / 2


@dataclass(frozen=True, repr=False)
class L1(_Norm):
    """The sum of absolute weights, times the strength: weights of little use go to zero (Scott & Variyam, "L1
    norm").
    """

    def _size(self, layer: Array) -> Float[Array, ""]:
        return jnp.sum(_absolute(layer))


@dataclass(frozen=True, repr=False)
class Sparse(Value):
    """The sum over training cases of absolute hidden activations, times the strength (Scott & Variyam, "Sparse
    representations").

    For a flax module of your own, the activations are those that it sows as "intermediates".

    Attributes:
      strength: factor of the penalty.
    """

    strength: float = 0.0

    of_cases: ClassVar[bool] = True

    def penalty(self, params: PyTree, hidden: tuple[Array, ...], w: Array) -> Float[Array, ""]:
        """The penalty of one network, [], from activations [..., H, n] and weights of cases [n]."""
        if not hidden:
            raise ValueError(
                f"expected hidden activations for {self}, got a network without; "
                "give MLP hidden units, or sow intermediates in your flax module"
            )
        return self.strength * sum((jnp.sum(_absolute(layer) @ w) for layer in hidden), start=jnp.zeros((), w.dtype))

    def check(self, network: Any) -> None:
        """Refuses a strength below 0.

        Raises:
          ValueError: the strength is negative or no number.
        """
        _check_strength(self, self.strength)


@dataclass(frozen=True, repr=False)
class Tied(Value):
    """The squared distance between the parameters of two tasks' networks, times the strength (Scott & Variyam,
    "Parameter tying").

    For `PerTask` networks; with more than two tasks, the sum over all pairs.

    Attributes:
      strength: factor of the penalty.
    """

    strength: float = 0.0

    of_cases: ClassVar[bool] = False

    def penalty(self, params: PyTree, hidden: tuple[Array, ...], w: Array) -> Float[Array, ""]:
        """The penalty of one network, [], whose parameters have a leading axis of tasks."""
        leaves = jax.tree.leaves(params)
        pairs = itertools.combinations(range(len(leaves[0])), 2)
        return self.strength * sum(
            (jnp.sum(jnp.square(leaf[a] - leaf[b])) for a, b in pairs for leaf in leaves), start=jnp.zeros((), w.dtype)
        )

    def check(self, network: Any) -> None:
        """Refuses a strength below 0, and a network of a single task.

        Raises:
          ValueError: the strength is negative or no number, or the network is not one per task.
        """
        _check_strength(self, self.strength)
        if not isinstance(network, PerTask):
            raise ValueError(
                f"expected a PerTask network to tie, got {shown(network)}; write PerTask(network, tasks=2)"
            )


@dataclass(frozen=True, repr=False)
class Grouped(Value):
    """Half the sum of squared weights, each times the strength of its group, for `AdaptivePenalties`: a tree of
    strengths like the parameters, in the one field of a tuple.
    """

    strengths: tuple[Any, ...] = ()

    of_cases: ClassVar[bool] = False

    def check(self, network: Any) -> None:
        """Nothing to refuse, since no user makes one."""

    def penalty(self, params: PyTree, hidden: tuple[Array, ...], w: Array) -> Float[Array, ""]:
        """The penalty of one network, []."""
        (strengths,) = self.strengths
        parts = jax.tree.map(lambda strength, weights: jnp.sum(strength * jnp.square(weights)), strengths, params)
        return jnp.asarray(sum(jax.tree.leaves(parts)), w.dtype) / 2


Penalty = L2 | L1 | Sparse | Tied | Grouped
