"""DELVE's kin family: how far the end of an 8-link robot arm is from a fixed point."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxgen.simulate import arms
from jaxgen.simulate.simulation import Simulation, kind_of
from jaxgen.types import Key

_TWIST = np.array([np.pi / 2, 0, -np.pi / 2, np.pi / 2, -np.pi / 2, 0, np.pi, 0])
_LENGTH = np.array([0, 0.4318, 0.0203, 0, 0, 0, 0.2, 0.3])
_OFFSET = np.array([0, 0, 0.15005, 0.4318, 0, 0, 0, 0.1])
_POINT = np.array([0.1, 0.1, 0.1])
_NOISE = {
    "8fm": 0.0289,
    "8fh": 0.102,
    "8nm": 0.1155,
    "8nh": 0.3464,
    "32fm": 0.042,
    "32fh": 0.15,
    "32nm": 0.12,
    "32nh": 0.37,
}
"""Standard deviations of the noise on the joint angles, radians."""
_ANGLE = {"f": 0.1 * np.pi, "n": 0.5 * np.pi}
_AROUND = {"f": (0.05 * np.pi, 0.05), "n": (0.1 * np.pi, 0.1)}
"""How far twists (radians) and lengths and offsets (metres) of a 32-input arm are from those of the 8-input arm, at
most.
"""


def kin(
    key: Key, n: int, inputs: int = 8, linearity: str = "n", noise: str = "m", sets: int | None = None
) -> Simulation:
    """Forward kinematics of an arm of eight links, as in the kin family of DELVE.

    Link i turns by theta_i about its axis, goes d_i along it and a_i along the next normal, and is twisted by alpha_i.
    The target is the distance of the end point from (0.1, 0.1, 0.1), in metres. The joint angles are uniform within
    0.1 pi ("f") or 0.5 pi ("n") of 0. Noise acts on the joint angles, so that its effect depends on the inputs: each
    is disturbed by a uniform number, independently.

    Use it for a smooth function of a few inputs that all matter, whose noise depends on the inputs.

    Source: the constants, which are not published, were recovered from DELVE's files. Without noise the arm explains
    97.4 % of the variance of kin-8fm, 95.6 % of kin-8nm and 64.9 % of kin-8nh, and what is left is like noise on the
    joint angles. That this is uniform rather than Gaussian is read off the kurtosis of what is left of kin-8fm and
    kin-8nm. The data sets of 32 inputs could not be recovered, and are called "-like": all alpha, a and d are inputs
    too, uniform within 0.05 pi and 0.05 m ("f") or 0.1 pi and 0.1 m ("n") of those of the 8-input arm, and the noise
    leaves about the shares of the variance that it leaves with 8 inputs.

    Args:
      key: consumed.
      n: cases, N.
      inputs: 8 or 32, D.
      linearity: "f", fairly linear, or "n", non-linear.
      noise: "m", medium, or "h", high.
      sets: independent data sets, Q; None for one without the axis Q.
    Returns:
      Simulation with x [*Q, N, D] and y [*Q, N, 1].
    Raises:
      TypeError: the key is no typed key.
      ValueError: no such data set, or a count that is no whole number of at least 1.
      MemoryError: so many cases would not fit into memory.
    """
    kind = kind_of(inputs, linearity, noise)
    arm = _arm(kind)
    return arm.simulator.run(key, f"kin-{kind}" + "-like" * (inputs == 32), arm.names, "y", n, sets)


def kin_target(x: Float[np.ndarray, "*N D"]) -> Float[np.ndarray, "*N"]:
    """The target of `kin` without noise.

    Args:
      x: theta_1 .. theta_8, then for 32 inputs alpha_1 .. 8, a_1 .. 8, d_1 .. 8; [*N, 8] or [*N, 32], radians and
        metres.
    Returns:
      Distances in metres, [*N].
    Raises:
      ValueError: neither 8 nor 32 inputs, no case, or no real numbers.
    """
    return arms.targets(_distance, x)


class _Joint(NamedTuple):
    """What a link does to the part of the arm that it carries, of one link, or of all L.

    Attributes:
      cosines, sines: of the angle theta that it turns by and the angle alpha that it is twisted by.
      length: a, along the next normal, metres.
      offset: d, along its axis, metres.
    """

    cosines: Float[Array, "*L 2"]
    sines: Float[Array, "*L 2"]
    length: Float[Array, "*L"]
    offset: Float[Array, "*L"]


def _distance(x: Float[Array, " D"]) -> Float[Array, ""]:
    """Distance of the end point of one arm from the fixed point.

    The arm is followed from its end to its base, so that each link moves one point instead of composing matrices: it
    shifts the point by a along x, twists by alpha about x, shifts by d along z and turns by theta about z.
    """
    angle, twist, length, offset = (
        jnp.reshape(x, (4, 8)) if x.shape == (32,) else (x, *(jnp.asarray(c) for c in (_TWIST, _LENGTH, _OFFSET)))
    )

    def link(end, joint: _Joint):
        (ct, ca), (st, sa) = joint.cosines, joint.sines
        x, y, z = end[0] + joint.length, ca * end[1] - sa * end[2], sa * end[1] + ca * end[2] + joint.offset
        return jnp.stack([ct * x - st * y, st * x + ct * y, z]), None

    turns = jnp.stack([angle, twist], 1)
    joints = _Joint(jnp.cos(turns), jnp.sin(turns), length, offset)
    end, _ = jax.lax.scan(link, jnp.zeros(3), joints, reverse=True)
    return jnp.linalg.norm(end - jnp.asarray(_POINT))


@cache
def _arm(kind: str) -> arms.Arm:
    inputs, linearity = int(kind[:-2]), kind[-2]
    twist, size = _AROUND[linearity]
    middle = np.concatenate([np.zeros(8), _TWIST, _LENGTH, _OFFSET])[:inputs]
    around = np.repeat([_ANGLE[linearity], twist, size, size], 8)[:inputs]
    spread = np.repeat([_NOISE[kind], 0.0], [8, inputs - 8])
    names = tuple(f"{symbol}{i + 1}" for symbol in ("theta", "alpha", "a", "d") for i in range(8))[:inputs]
    return arms.Arm(_distance, names, middle - around, middle + around, arms.uniform, spread)
