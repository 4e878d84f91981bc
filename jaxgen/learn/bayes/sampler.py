"""Hybrid Monte Carlo: leapfrog steps with partial gradients, and trajectories that end in windows of states.

Every chain takes the same number of steps, so that no row waits for another. Nothing here knows what is sampled: a
`Target` gives energies and gradients of positions, which are trees of arrays.

Sources: Neal 1996, "Bayesian learning for neural networks", chapter 3; Neal 1994, "An improved acceptance procedure for
the hybrid Monte Carlo algorithm" (windows); Horowitz 1991 (persistent momentum).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree


class Target(NamedTuple):
    """What is sampled: a density proportional to exp(-energy).

    Attributes:
      energy: of a position; [].
      gradient: of a position and the number of a block of cases: the gradient of the energy as if this block, as many
        times over as there are blocks, were all cases. The mean over the blocks is the gradient of the energy.
      blocks: how many.
    """

    energy: Callable[[PyTree], Float[Array, ""]]
    gradient: Callable[[PyTree, Any], PyTree]
    blocks: int


class Moving(NamedTuple):
    """A position and its momentum."""

    position: PyTree
    momentum: PyTree


class Window(NamedTuple):
    """What was seen of a window of states: the logarithm of the sum of exp(-H), [], and one state, chosen in proportion
    to exp(-H).
    """

    log_sum: Float[Array, ""]
    position: PyTree
    momentum: PyTree


class Travelled(NamedTuple):
    """How a trajectory went.

    Attributes:
      position: the state after it.
      momentum: to be refreshed partly: of a state that was rejected, it is reversed.
      accepted: whether its last window was accepted, [].
      probability: with which it was, [].
      energy: at its beginning, momentum included, [].
    """

    position: PyTree
    momentum: PyTree
    accepted: Bool[Array, ""]
    probability: Float[Array, ""]
    energy: Float[Array, ""]


def there_and_back(blocks: int) -> tuple[int, ...]:
    """The order in which blocks are visited: 0, 1, 2, 3, 0, 3, 2, 1 for four.

    A trajectory of such rounds is the same in both directions, which an order drawn at random once for a trajectory
    (Neal 1996) is on the average only; so no order need be drawn, and the chains of all rows visit their blocks
    together. One block needs a single step for a round, several need two.
    """
    return (0,) if blocks == 1 else (*range(blocks), 0, *range(blocks - 1, 0, -1))


def leapfrog(target: Target, steps: PyTree, order: tuple[int, ...], moving: Moving, rounds: Any) -> Moving:
    """Rounds of leapfrog steps: half a kick, then drifts and kicks in turn, and half a kick at the end.

    Args:
      target: what is sampled; its masses are 1.
      steps: the step size of every number of a position, for a step that passes all blocks once; a tree like the
        position, of arrays that broadcast to it.
      order: the blocks visited in a round; a step passes each of them once.
      moving: where it begins.
      rounds: how many.
    Returns:
      Where it ends.
    """
    length = len(order)
    numbers = jnp.asarray(order, jnp.int32)
    dtype = jax.tree.leaves(moving.position)[0].dtype
    # Steps of the full shape, not broadcast in every substep: elementwise loops over equal shapes are faster.
    share = jax.tree.map(
        lambda step, q: lax.optimization_barrier(jnp.broadcast_to(step / target.blocks, q.shape)),
        steps,
        moving.position,
    )
    last = jnp.asarray(rounds * length, jnp.int32)

    def substep(number: Any, moving: Moving) -> Moving:
        # The first substep stays where it is: so the gradient stands once in a program, which compiles in less time.
        drift = jnp.where(number == 0, 0, 1).astype(dtype)
        kick = jnp.where((number == 0) | (number == last), 0.5, 1).astype(dtype)
        position = jax.tree.map(lambda q, e, p: q + drift * e * p, moving.position, share, moving.momentum)
        gradient = target.gradient(position, numbers[number % length])
        return Moving(position, jax.tree.map(lambda p, e, g: p - kick * e * g, moving.momentum, share, gradient))

    return lax.fori_loop(jnp.int32(0), last + 1, substep, moving)


def trajectory(
    target: Target,
    steps: PyTree,
    position: PyTree,
    momentum: PyTree,
    start_energy: Float[Array, ""],
    uniforms: Float[Array, " {2*window+1}"],
    rounds: int,
    window: int,
) -> Travelled:
    """One trajectory, whose end is accepted or rejected by windows of states (Neal 1994).

    The state where it begins is put at a random place of the first window, and the trajectory is followed from there
    in both directions. The last window is accepted with the probability min(1, ratio of the sums of exp(-H) in the two
    windows), and then a state of the chosen window is taken in proportion to exp(-H). Windows of 1 are plain hybrid
    Monte Carlo.

    Args:
      target: what is sampled.
      steps: step sizes, as for `leapfrog`.
      position, momentum: where it begins; the momentum is a draw from the normal law.
      start_energy: of the position, [].
      uniforms: numbers uniform in (0, 1), [2 window + 1].
      rounds: rounds of leapfrog steps, of `there_and_back(target.blocks)`, from the first state to the last.
      window: states in each window, at most (rounds + 1) / 2.
    Returns:
      Travelled.
    """
    order = there_and_back(target.blocks)
    backward = jnp.minimum(jnp.floor(uniforms[0] * window).astype(jnp.int32), window - 1)
    start = Moving(position, momentum)
    energy = start_energy + kinetic(momentum)
    zero = jnp.zeros_like(energy)
    nothing = Window(jnp.full_like(energy, -jnp.inf), position, momentum)
    gap = rounds - 2 * (window - 1)

    def visit(number: Any, loop: tuple[Moving, Window, Window]) -> tuple[Moving, Window, Window]:
        moving, first, last = loop
        moving = chosen(number == backward, start, moving)
        moving = leapfrog(target, steps, order, moving, jnp.where(number == window - 1, gap, 1))
        forward = moving._replace(momentum=_reversed_if(number < backward, moving.momentum))
        weight = energy - target.energy(moving.position) - kinetic(moving.momentum)
        weight = jnp.where(jnp.isnan(weight), -jnp.inf, weight)
        first, last = lax.cond(
            number < window - 1,
            lambda: (_seen(first, weight, forward, uniforms[number + 1]), last),
            lambda: (first, _seen(last, weight, forward, uniforms[number + 1])),
        )
        return moving, first, last

    begun = start._replace(momentum=jax.tree.map(jnp.negative, momentum))
    seen = (begun, Window(zero, position, momentum), nothing)
    _, first, last = lax.fori_loop(0, 2 * window - 1, visit, seen)
    probability = jnp.exp(jnp.minimum(last.log_sum - first.log_sum, 0))
    accepted = uniforms[2 * window] < probability
    end = chosen(accepted, last, first)
    return Travelled(end.position, _reversed_if(~accepted, end.momentum), accepted, probability, energy)


def kinetic(momentum: PyTree) -> Float[Array, ""]:
    """Energy of a momentum, []."""
    leaves = jax.tree.leaves(momentum)
    return sum((jnp.sum(jnp.square(p)) for p in leaves), start=jnp.zeros((), leaves[0].dtype)) / 2


def chosen(condition: Bool[Array, ""], a: Any, b: Any) -> Any:
    """a where the condition [] holds, else b; trees of one structure."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), a, b)


def _seen(window: Window, weight: Float[Array, ""], moving: Moving, uniform: Float[Array, ""]) -> Window:
    """A window with one more state, of a weight whose logarithm is given."""
    log_sum = jnp.logaddexp(window.log_sum, weight)
    taken = jnp.log(uniform) < weight - log_sum
    return Window(
        log_sum,
        chosen(taken, moving.position, window.position),
        chosen(taken, moving.momentum, window.momentum),
    )


def _reversed_if(condition: Bool[Array, ""], momentum: PyTree) -> PyTree:
    return jax.tree.map(lambda p: jnp.where(condition, -p, p), momentum)
