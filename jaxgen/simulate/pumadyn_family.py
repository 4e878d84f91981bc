"""DELVE's pumadyn family: how a Puma 560 robot arm accelerates."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxgen.simulate import arms
from jaxgen.simulate.simulation import Simulation, kind_of
from jaxgen.types import Key

# The Puma 560 of Corke's Robotics Toolbox (standard Denavit-Hartenberg frames; metres, kilogrammes, seconds).
_TWIST = np.array([np.pi / 2, 0, -np.pi / 2, np.pi / 2, -np.pi / 2, 0])
_LENGTH = np.array([0, 0.4318, 0.0203, 0, 0, 0])
_OFFSET = np.array([0, 0, 0.15005, 0.4318, 0, 0])
_MASS = np.array([0, 17.4, 4.8, 0.82, 0.34, 0.09])
_CENTRE = np.array(
    [[0, 0, 0], [-0.3638, 0.006, 0.2275], [-0.0203, -0.0141, 0.070], [0, 0.019, 0], [0, 0, 0], [0, 0, 0.032]]
)
_INERTIA = np.array(
    [
        [0, 0.35, 0],
        [0.13, 0.524, 0.539],
        [0.066, 0.086, 0.0125],
        [1.8e-3, 1.3e-3, 1.8e-3],
        [0.3e-3, 0.4e-3, 0.3e-3],
        [0.15e-3, 0.15e-3, 0.04e-3],
    ]
)
_GEAR = np.array([-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686])
_MOTOR = _GEAR**2 * np.array([200e-6, 200e-6, 200e-6, 33e-6, 33e-6, 33e-6])
_FRICTION = np.array([1.48e-3, 0.817e-3, 1.38e-3, 71.2e-6, 82.6e-6, 36.7e-6])
_GRAVITY = 9.81

_RANGES = {
    "8f": (0.3 * np.pi, 0.3),
    "8n": (0.6 * np.pi, 0.6),
    "32f": (0.375 * np.pi, 37.5),
    "32n": (0.75 * np.pi, 75.0),
}
"""Largest angle (radians) and velocity, and largest torque (Nm)."""
_MULTIPLIER = (0.25, 2.5)
_NOISE = {"8fm": 0.12, "8fh": 0.36, "8nm": 0.12, "8nh": 0.36}
"""Standard deviations of the noise on the joint angles, radians."""
_REST = {
    "8fm": 0.0,
    "8fh": 1.2,
    "8nm": 0.0,
    "8nh": 1.2,
    "32fm": 0.0042,
    "32fh": 0.0142,
    "32nm": 0.00501,
    "32nh": 0.0184,
}
"""Standard deviations of the noise on the target, radians per second squared."""


def pumadyn(
    key: Key, n: int, inputs: int = 8, linearity: str = "n", noise: str = "m", sets: int | None = None
) -> Simulation:
    """Forward dynamics of a Puma 560 robot arm, as in the pumadyn family of DELVE.

    Rigid links, gravity, the inertia of the motors behind their gears, and a small viscous friction. All inputs are
    independent and uniform.

    - 8 inputs: angles and velocities of joints 1 to 3, torques of joints 1 and 2; all others are 0. The target is the
      acceleration of joint 3. Angles and velocities are within 0.3 pi ("f") or 0.6 pi ("n") of 0, torques within 0.3
      or 0.6. Gaussian noise acts on the angles, so that its effect depends on the inputs; with noise "h" there is some
      on the target as well.
    - 32 inputs: angles and velocities of all joints and torques of joints 1 to 5, within 0.75 pi and 75 of 0 ("n") or
      half of that ("f"), and multipliers in [0.25, 2.5] of the masses (with their moments of inertia), the lengths a
      and the viscous frictions of links 1 to 5. The target is the acceleration of joint 6; only theta5 and tau4 matter
      to it. Gaussian noise is added to it.

    Use the 32 inputs for relevance determination: only two of them matter to the target.

    Source: recovered from DELVE's files with the constants of Corke's Robotics Toolbox, none of them fitted. Without
    noise the arm explains 95.0 % of the variance of pumadyn-8fm, 96.8 % of pumadyn-8nm and 97.3 % of pumadyn-32nm.
    What is left of the latter is Gaussian noise of constant variance. The files tell hardly between a friction of B,
    as the toolbox lists it, and none, but pumadyn-32nm excludes B times the gear ratio. The size of the noise follows
    from what is left (8fm, 8nm, 32nm).

    Of 8fh and 8nh there is no file, only the mean and the variance of the target, and that at most 38 % and 31 % of the
    variance are irreducible. Noise on the angles alone cannot have both: that of 8fh would have a standard deviation of
    0.48 by the variance of the target, 25.9, and of 0.39 at most by the share. Here it is 0.36, three times that of
    noise "m", and Gaussian noise of standard deviation 1.2 on the target makes up for the rest, so that 37 % and 28 %
    are irreducible. How DELVE divides its noise between angles and target cannot be known from this.

    Choices, for want of a file: the ranges of 32f, and for 32fm, 32fh and 32nh a noise of the share of the variance
    that it has with 8 inputs.

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
    return arm.simulator.run(key, f"pumadyn-{kind}", arm.names, "thetadd3" if inputs == 8 else "thetadd6", n, sets)


def pumadyn_target(x: Float[np.ndarray, "*N D"]) -> Float[np.ndarray, "*N"]:
    """The target of `pumadyn` without noise.

    Args:
      x: 8 inputs theta1-3, thetad1-3, tau1-2, or 32 inputs theta1-6, thetad1-6, tau1-5, dm1-5, da1-5, db1-5; [*N, 8]
        or [*N, 32], radians, radians per second, newton metres, multipliers.
    Returns:
      Acceleration of joint 3 (8 inputs) or 6 (32 inputs), radians per second squared, [*N].
    Raises:
      ValueError: neither 8 nor 32 inputs, no case, or no real numbers.
    """
    return arms.targets(_target, x)


def _target(x: Float[Array, " D"]) -> Float[Array, ""]:
    """The acceleration that is the target of one case."""
    if x.shape == (8,):
        as_built = jnp.ones(6)
        moved = (_padded(x[:3], 0.0), _padded(x[3:6], 0.0), _padded(x[6:], 0.0))
        return _accelerations(*moved, as_built, as_built, as_built)[2]
    tau, dm, da, db = jnp.reshape(x[12:], (4, 5))
    return _accelerations(x[:6], x[6:12], _padded(tau, 0.0), _padded(dm, 1.0), _padded(da, 1.0), _padded(db, 1.0))[5]


def _padded(values: Float[Array, " n"], rest: float) -> Float[Array, "6"]:
    return jnp.pad(values, (0, 6 - len(values)), constant_values=rest)


def _accelerations(
    theta: Float[Array, "6"],
    thetad: Float[Array, "6"],
    tau: Float[Array, "6"],
    dm: Float[Array, "6"],
    da: Float[Array, "6"],
    db: Float[Array, "6"],
) -> Float[Array, "6"]:
    """Joint accelerations, [6], of one state: M^-1 (torques - bias)."""
    inertia, bias = _dynamics(theta, thetad, dm, da)
    return _solve(inertia + jnp.diag(jnp.asarray(_MOTOR)), tau - bias - jnp.asarray(_FRICTION) * db * thetad)


def _dynamics(
    theta: Float[Array, "6"], thetad: Float[Array, "6"], dm: Float[Array, "6"], da: Float[Array, "6"]
) -> tuple[Float[Array, "6 6"], Float[Array, "6"]]:
    """Inertia matrix of the links, and their torques at zero joint accelerations: Newton's and Euler's laws in the
    frame of the base, by Jacobians.

    M = sum_k m_k J_k' J_k + A_k' I_k A_k, with J_k and A_k the derivatives of the velocity of link k's centre of mass
    and of its angular velocity by the joint velocities, [3, 6] each; the bias is sum_k J_k' (m_k a_k) + A_k' (I_k
    omegad_k + omega_k x I_k omega_k). Gravity is an acceleration of the base upwards.
    """
    frames = _frames(theta, da)
    turn, axis, start, step = frames[1:, :3], frames[:-1, 2], frames[:-1, 3], frames[1:, 3] - frames[:-1, 3]
    centre = jnp.einsum("kba,kb->ka", turn, jnp.asarray(_CENTRE))
    mass = jnp.asarray(_MASS) * dm
    moment = jnp.einsum("kba,kb,kbc->kac", turn, jnp.asarray(_INERTIA) * dm[:, None], turn)
    below = jnp.tril(jnp.ones((6, 6)))[:, :, None]
    angular = below * axis[None]
    linear = below * jnp.cross(axis[None], (start + step + centre)[:, None] - start[None])
    spin = axis * thetad[:, None]
    omega = jnp.cumsum(spin, 0)
    omegad = jnp.cumsum(jnp.cross(omega - spin, spin), 0)
    ends = jnp.cumsum(_swing(omega, omegad, step), 0) + jnp.asarray([[0.0, 0.0, _GRAVITY]])
    force = mass[:, None] * (ends + _swing(omega, omegad, centre))
    torque = jnp.einsum("kab,kb->ka", moment, omegad) + jnp.cross(omega, jnp.einsum("kab,kb->ka", moment, omega))
    inertia = jnp.einsum("kja,kia->ji", mass[:, None, None] * linear, linear) + jnp.einsum(
        "kja,kia->ji", jnp.einsum("kab,kjb->kja", moment, angular), angular
    )
    return inertia, jnp.einsum("kja,ka->j", linear, force) + jnp.einsum("kja,ka->j", angular, torque)


def _frames(theta: Float[Array, "6"], da: Float[Array, "6"]) -> Float[Array, "7 4 3"]:
    """The base and the end of every link: its three axes, and where it is.

    Each frame is a matrix [4, 3] with the axes x, y, z and the origin as rows, in coordinates of the base. That of the
    end of a link is the product of the link's own matrix and the frame of the end before, because its rows mix the
    rows there (standard Denavit-Hartenberg convention).
    """
    c, s, zero, unit = jnp.cos(theta), jnp.sin(theta), jnp.zeros(6), jnp.ones(6)
    ca, sa, a, d = (
        jnp.asarray(np.cos(_TWIST)),
        jnp.asarray(np.sin(_TWIST)),
        jnp.asarray(_LENGTH) * da,
        jnp.asarray(_OFFSET),
    )
    rows = ((c, s, zero, zero), (-ca * s, ca * c, sa, zero), (sa * s, -sa * c, ca, zero), (a * c, a * s, d, unit))
    links = jnp.stack([jnp.stack(row, 1) for row in rows], 1)
    base = jnp.eye(4, 3)

    def follow(frame, link):
        end = link @ frame
        return end, end

    ends = jax.lax.scan(follow, base, links)[1]
    return jnp.concatenate([base[None], ends])


def _swing(omega: Float[Array, "6 3"], omegad: Float[Array, "6 3"], arm: Float[Array, "6 3"]) -> Float[Array, "6 3"]:
    """Acceleration of one end of a turning arm relative to the other."""
    return jnp.cross(omegad, arm) + jnp.cross(omega, jnp.cross(omega, arm))


def _solve(matrix: Float[Array, "6 6"], right: Float[Array, "6"]) -> Float[Array, "6"]:
    """Gauss-Jordan elimination, which needs no pivots for a positive definite matrix."""

    def eliminate(rows, j):
        pivot = rows[j] / rows[j, j]
        return jnp.where((jnp.arange(6) == j)[:, None], pivot[None], rows - rows[:, j, None] * pivot[None]), None

    return jax.lax.scan(eliminate, jnp.concatenate([matrix, right[:, None]], 1), jnp.arange(6))[0][:, 6]


@cache
def _arm(kind: str) -> arms.Arm:
    angle, torque = _RANGES[kind[:-1]]
    few = kind.startswith("8")
    counts = (
        {"theta": 3, "thetad": 3, "tau": 2} if few else {"theta": 6, "thetad": 6, "tau": 5, "dm": 5, "da": 5, "db": 5}
    )
    limits = {"theta": (-angle, angle), "thetad": (-angle, angle), "tau": (-torque, torque)}
    names = tuple(f"{symbol}{i + 1}" for symbol, count in counts.items() for i in range(count))
    low, high = np.array([limits.get(symbol, _MULTIPLIER) for symbol, count in counts.items() for _ in range(count)]).T
    spread = np.array([_NOISE[kind] if few and name.rstrip("123") == "theta" else 0.0 for name in names])
    return arms.Arm(_target, names, low, high, jax.random.normal, spread, _REST[kind])
