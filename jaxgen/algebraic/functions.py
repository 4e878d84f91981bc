"""What training made small, as values that are equal where their code is; and programs that are compiled once for equal
values.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial, wraps
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from jaxgen.types import Learner, Loss, Minimum, Params
from jaxgen.types.calls import explained, losses_of
from jaxgen.types.identity import code_digest, named
from jaxgen.types.numbers import shown

Minimised = Callable[[Params], Minimum]
"""params -> (free, rebuild, cost): the numbers that training chose, the parameters made of such numbers, and what
training made small as cost(free, x [n, D], y [n, K]) -> (losses [n], penalty []), that is the sum of both.
"""

_PROGRAMS = 64
"""Programs of one kind that are kept; each takes some megabytes."""


def programs(values: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function that is compiled for its first arguments, so many values, and called with arrays as others.

    The programs of the last 64 values are kept. `jax.jit` with static arguments would keep thousands, so that fits of
    many learners would fill the memory; a program that is dropped here is freed by JAX too.
    """

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @lru_cache(maxsize=_PROGRAMS)
        def program(_: str, *first: Any) -> Callable[..., Any]:
            return jax.jit(partial(function, *first))

        @wraps(function)
        def called(*arguments: Any) -> Any:
            first = tuple(as_value(argument) for argument in arguments[:values])
            # Values may stay equal while a number that their code refers to changes, and with it what is computed.
            return program(code_digest(first), *first)(*arguments[values:])

        vars(called)["program"] = program
        return called

    return decorated


@dataclass(frozen=True)
class Given:
    """A function of the user's, equal to every function of the same code and the same values in it.

    A lambda that is written in a call is a new object each time, and would be compiled anew each time.

    Attributes:
      function: what is called.
      digest: of its code; see `jaxgen.types.identity`.
    """

    function: Callable[..., Any] = field(compare=False)
    digest: str

    def __call__(self, *arguments: Any) -> Any:
        """As the function."""
        return self.function(*arguments)


def as_value(function: Any) -> Any:
    """A function of the user's as a value; anything else is one already."""
    digest = code_digest(function) if isinstance(function, FunctionType | partial) else ""
    return Given(function, digest) if digest else function


@dataclass(frozen=True)
class Own:
    """A learner's `minimised`; unlike bound methods, those of equal learners are equal.

    Attributes:
      learner: one that can name what it made small.
    """

    learner: Learner

    def __call__(self, params: Params) -> Minimum:
        """As the learner says."""
        minimum = self.learner.minimised(params)
        assert minimum is not None, "full_fit asks it of learners that can name one"
        return minimum


@dataclass(frozen=True)
class SumOfLosses:
    """Of a learner that cannot name what it made small: the sum of the losses, without a penalty.

    Attributes:
      learner: what was fitted.
      loss: the per-case loss.
      free: which of the arrays of its parameters predictions depend on, by their numbers.
    """

    learner: Learner
    loss: Loss
    free: tuple[int, ...]

    def __call__(self, params: Params) -> Minimum:
        """The free arrays, and the losses of predictions with others in their place."""
        leaves, tree = jax.tree.flatten(params)

        def rebuild(values: list[Array]) -> Params:
            return _put(leaves, tree, self.free, values)

        def cost(values: list[Array], x: Float[Array, "n D"], y: Float[Array, "n K"]) -> tuple[Array, Array]:
            return losses_of(self.loss, y, self.learner.predict(rebuild(values), x)), jnp.zeros((), x.dtype)

        return [leaves[number] for number in self.free], rebuild, cost


def small_by_training(
    learner: Learner, loss: Loss, minimised: Minimised | None, params: Params, x: Float[Array, "N D"]
) -> Minimised:
    """What training made small: what is given, else what the learner says, else the sum of the losses.

    Args:
      learner, loss: as for `full_fit`.
      minimised: the user's own, or None.
      params: of one fit.
      x: cases, [N, D], that tell which parameters predictions depend on.
    Raises:
      TypeError: `minimised` is no function.
      ValueError: predictions depend on no parameter.
    """
    if minimised is not None:
        if not callable(minimised):
            raise TypeError(
                f"expected minimised to be a function of parameters, got {shown(minimised)}; "
                "see the docstring of full_fit"
            )
        return minimised
    with explained(learner, "minimised(params) -> (free, rebuild, cost)"):
        can_say = learner.minimised(params) is not None
    if can_say:
        return Own(learner)
    floating = _floating(params)
    matters = np.asarray(_matters(learner, params, x)) if floating else np.zeros(0, bool)
    free = tuple(number for number, depends in zip(floating, matters, strict=True) if depends)
    if not free:
        raise ValueError(
            f"expected predictions of {named(learner)} that depend on its parameters, got none that do; "
            "give full_fit the argument minimised"
        )
    return SumOfLosses(learner, as_value(loss), free)


def as_functions(
    learner: Learner, minimised: Minimised, params: Params
) -> tuple[Array, Callable[..., Array], Callable[..., tuple[Array, Array]]]:
    """Free parameters [P], and as functions of them: predictions (v, x), and what training made small (v, x, y),
    losses [n] and penalty [].

    Raises:
      ValueError: losses or penalty have another shape.
    """
    with explained(minimised, "minimised(params) -> (free, rebuild, cost)"):
        free, rebuild, cost = minimised(params)
        vector, tree = ravel_pytree(free)

    def predict(v: Float[Array, " P"], x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        with explained(minimised, "rebuild(free) -> parameters"):
            params = rebuild(tree(v))
        return learner.predict(params, x)

    def small(v: Float[Array, " P"], x: Float[Array, "n D"], y: Float[Array, "n K"]) -> tuple[Array, Array]:
        with explained(minimised, "cost(free, x, y) -> (losses, penalty)"):
            losses, penalty = cost(tree(v), x, y)
        if jnp.shape(losses) != y.shape[:1] or jnp.shape(penalty) != ():
            raise ValueError(
                f"expected minimised to give cost(free, x, y) -> (losses {list(y.shape[:1])}, penalty []), got shapes "
                f"{list(jnp.shape(losses))} and {list(jnp.shape(penalty))}; return one loss a case, without weights"
            )
        return losses, jnp.asarray(penalty, x.dtype)

    return vector, predict, small


def mapped(function: Callable[..., Any], rows: Any, at_once: int) -> Any:
    """A function of every row of arrays [R, ...], in equal blocks of at most so many rows.

    The last block repeats the last row until it is full, since `lax.map` with a batch size would compile the function
    once more for the rows left over.
    """
    count = len(jax.tree.leaves(rows)[0])
    blocks = -(-count // at_once)
    if blocks == 1:
        return jax.vmap(function)(rows)
    size = -(-count // blocks)
    which = jnp.minimum(jnp.arange(blocks * size), count - 1).reshape(blocks, size)
    results = jax.lax.map(lambda block: jax.vmap(function)(jax.tree.map(lambda a: a[block], rows)), which)
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[:count], results)


def _floating(params: Params) -> list[int]:
    """The numbers of the arrays of floating parameters."""
    leaves = enumerate(jax.tree.leaves(params))
    return [number for number, leaf in leaves if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]


def _put(leaves: list[Any], tree: Any, numbers: tuple[int, ...] | list[int], values: list[Array]) -> Params:
    """Parameters with other values for the arrays of some numbers."""
    return jax.tree.unflatten(
        tree, [values[numbers.index(i)] if i in numbers else leaf for i, leaf in enumerate(leaves)]
    )


@programs(1)
def _matters(learner: Learner, params: Params, x: Float[Array, "N D"]) -> Bool[Array, " F"]:
    """Whether predictions depend on each of the floating parameters, [F]."""
    leaves, tree = jax.tree.flatten(params)
    floating = _floating(params)
    slopes = jax.jacrev(lambda values: learner.predict(_put(leaves, tree, floating, values), x))(
        [leaves[number] for number in floating]
    )
    return jnp.stack([jnp.any(slope != 0) for slope in slopes])
