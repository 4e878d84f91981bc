"""The robot arms of DELVE's families kin and pumadyn: their mechanics, their moments and noise, and the real files."""

import inspect
import math

import jax
import numpy as np
import pytest
from given import delve_data

from jaxgen.simulate.arms import uniform
from jaxgen.simulate.kin_family import kin, kin_target
from jaxgen.simulate.pumadyn_family import pumadyn, pumadyn_target

KEY, OTHER = jax.random.key(0), jax.random.key(1)
FAMILIES = {"kin": kin, "pumadyn": pumadyn}
TARGETS = {"kin": kin_target, "pumadyn": pumadyn_target}
N = 8192  # as DELVE's files


@pytest.fixture(scope="module")
def simulated():
    """A simulation by the name of its family and data set, each made once."""
    made = {}

    def get(family, kind):
        if (family, kind) not in made:
            made[family, kind] = FAMILIES[family](KEY, N, int(kind[:-2]), kind[-2], kind[-1])
        return made[family, kind]

    return get


# Homogeneous matrices, written apart from the package

TWIST = [math.pi / 2, 0, -math.pi / 2, math.pi / 2, -math.pi / 2, 0, math.pi, 0]
KIN_LENGTH = [0, 0.4318, 0.0203, 0, 0, 0, 0.2, 0.3]
KIN_OFFSET = [0, 0, 0.15005, 0.4318, 0, 0, 0, 0.1]


def turned(axis, angle):
    """Homogeneous matrix of a rotation about axis 0 or 2."""
    i, j = [k for k in range(3) if k != axis]
    out = np.eye(4)
    out[i, i] = out[j, j] = math.cos(angle)
    out[i, j], out[j, i] = -math.sin(angle), math.sin(angle)
    return out


def moved(axis, by):
    out = np.eye(4)
    out[axis, 3] = by
    return out


def poses(theta, alpha, a, d):
    """Homogeneous matrices of the ends of all links."""
    pose, out = np.eye(4), []
    for t, twist, length, offset in zip(theta, alpha, a, d, strict=True):
        pose = pose @ turned(2, t) @ moved(2, offset) @ moved(0, length) @ turned(0, twist)
        out.append(pose)
    return out


# Forward kinematics


def test_distances_are_those_of_a_product_of_homogeneous_matrices():
    """1e-12: rounding of eight links of about a metre."""
    random = np.random.default_rng(0)
    for x8 in random.uniform(-math.pi, math.pi, (20, 8)):
        end = poses(x8, TWIST, KIN_LENGTH, KIN_OFFSET)[-1][:3, 3]
        assert kin_target(x8) == pytest.approx(np.linalg.norm(end - 0.1), abs=1e-12)
    for x32 in random.uniform(-2, 2, (20, 32)):
        end = poses(*x32.reshape(4, 8))[-1][:3, 3]
        assert kin_target(x32) == pytest.approx(np.linalg.norm(end - 0.1), abs=1e-12)


def straight(**values):
    """32 inputs that are 0 but for those named."""
    x = np.zeros(32)
    for name, value in values.items():
        x[[f"{s}{i + 1}" for s in ("theta", "alpha", "a", "d") for i in range(8)].index(name)] = value
    return x


PLACES = [
    (straight(), (0, 0, 0)),
    (straight(a1=1.0, a8=2.0), (3, 0, 0)),
    (straight(a1=1.0, theta1=math.pi / 2), (0, 1, 0)),
    (straight(a1=1.0, a2=1.0, theta2=math.pi / 2), (1, 1, 0)),
    (straight(d3=1.5), (0, 0, 1.5)),
    (straight(alpha1=math.pi / 2, d2=1.0), (0, -1, 0)),
    (straight(alpha1=math.pi / 2, theta2=math.pi / 2, a2=1.0), (0, 0, 1)),
]


@pytest.mark.parametrize(("x", "place"), PLACES, ids=range(len(PLACES)))
def test_simple_arms_end_where_geometry_says(x, place):
    assert kin_target(x) == pytest.approx(math.dist(place, (0.1, 0.1, 0.1)), abs=1e-12)


# Forward dynamics, from Lagrange's equations: M from differences of the poses, the bias from differences of M and of
# the potential energy

LENGTH, OFFSET = [0, 0.4318, 0.0203, 0, 0, 0], [0, 0, 0.15005, 0.4318, 0, 0]
MASS = np.array([0, 17.4, 4.8, 0.82, 0.34, 0.09])
CENTRE = np.array(
    [[0, 0, 0], [-0.3638, 0.006, 0.2275], [-0.0203, -0.0141, 0.070], [0, 0.019, 0], [0, 0, 0], [0, 0, 0.032]]
)
MOMENT = np.array(
    [
        [0, 0.35, 0],
        [0.13, 0.524, 0.539],
        [0.066, 0.086, 0.0125],
        [1.8e-3, 1.3e-3, 1.8e-3],
        [0.3e-3, 0.4e-3, 0.3e-3],
        [0.15e-3, 0.15e-3, 0.04e-3],
    ]
)
MOTOR = np.array([-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686]) ** 2 * np.array([200e-6] * 3 + [33e-6] * 3)
FRICTION = np.array([1.48e-3, 0.817e-3, 1.38e-3, 71.2e-6, 82.6e-6, 36.7e-6])
STEP = 1e-4


def bodies(theta, da):
    """Orientations of the links, and in the last column their centres of mass, [6, 3, 4]."""
    ends = np.array(poses(theta, TWIST[:6], LENGTH * da, OFFSET))
    ends[:, :3, 3] += np.einsum("kab,kb->ka", ends[:, :3, :3], CENTRE)
    return ends[:, :3]


def derivatives(function, at):
    """Central differences, one for each component of `at`."""
    return np.array([(function(at + STEP * e) - function(at - STEP * e)) / (2 * STEP) for e in np.eye(len(at))])


def kinetic_matrix(theta, dm, da):
    """M of the kinetic energy thetad' M thetad / 2, links and motors."""
    matrix = np.diag(MOTOR)
    change = derivatives(lambda t: bodies(t, da), theta)
    for k, body in enumerate(bodies(theta, da)):
        linear = change[:, k, :, 3]
        spins = body[:, :3].T @ change[:, k, :, :3]  # skew matrices of the angular velocities in the link's frame
        angular = np.stack([spins[:, 2, 1], spins[:, 0, 2], spins[:, 1, 0]], 1)
        matrix = matrix + dm[k] * (MASS[k] * linear @ linear.T + angular * MOMENT[k] @ angular.T)
    return matrix


def lagrange(theta, thetad, tau, dm, da, db):
    """Accelerations: M thetadd = tau - dM/dt thetad + d(kinetic energy)/dtheta - d(potential energy)/dtheta -
    friction.
    """
    slopes = derivatives(lambda t: kinetic_matrix(t, dm, da), theta)
    weight = derivatives(lambda t: np.sum(9.81 * dm * MASS * bodies(t, da)[:, 2, 3]), theta)
    bias = np.einsum("kij,k,j->i", slopes, thetad, thetad) - np.einsum("ijk,j,k->i", slopes, thetad, thetad) / 2
    return np.linalg.solve(kinetic_matrix(theta, dm, da), tau - bias - weight - FRICTION * db * thetad)


def state(x):
    """The full state of a case of 8 or of 32 inputs."""
    if len(x) == 8:
        return *(np.append(part, np.zeros(6 - len(part))) for part in (x[:3], x[3:6], x[6:])), *np.ones((3, 6))
    tau, *multipliers = x[12:].reshape(4, 5)
    return x[:6], x[6:12], np.append(tau, 0.0), *(np.append(m, 1.0) for m in multipliers)


@pytest.mark.parametrize(("kind", "joint"), [("8nm", 2), ("32nm", 5)])
def test_accelerations_follow_from_lagranges_equations(simulated, kind, joint):
    """2e-6 of the largest: the differences have an error of order STEP^2 and of rounding / STEP^2 = 1e-8, against
    motor inertias of 0.2 to 2.
    """
    x = simulated("pumadyn", kind).data.x[:2]
    expected = np.array([lagrange(*state(case))[joint] for case in x])
    assert pumadyn_target(x) == pytest.approx(expected, abs=2e-6 * np.abs(expected).max())


def test_gravity_alone_moves_the_arm_as_a_pendulum():
    """Joint 3 of the outstretched arm at rest, by hand from the weights; both shoulder joints couple."""
    x = np.zeros(8)
    assert pumadyn_target(x) == pytest.approx(lagrange(*state(x))[2], rel=1e-6)
    turned_base = np.array([1.3, 0, 0, 0, 0, 0, 0, 0])
    assert pumadyn_target(turned_base) == pytest.approx(
        pumadyn_target(x), rel=1e-12
    )  # the base turns about the vertical


def test_without_masses_only_the_motors_and_the_hand_are_left():
    """Multipliers of 0 for links 1 to 5, theta5 = 0, no gravity on the hand, whose axis is vertical then: joints 4 and
    6 turn about one axis.
    """
    x = np.zeros(32)
    x[1] = math.pi / 2  # upper arm upward
    x[2] = -math.pi / 2
    x[27:] = 1.0
    x[15] = 10.0  # torque of joint 4
    coupled = np.diag(MOTOR[[3, 5]]) + MOMENT[5, 2]
    assert pumadyn_target(x) == pytest.approx(lagrange(*state(x))[5], rel=1e-6)
    assert pumadyn_target(x) == pytest.approx(np.linalg.solve(coupled, [10.0, 0.0])[1], rel=1e-3)


# Moments of DELVE's files, of 8192 cases each, and the noise

MOMENTS = {
    ("kin", "8fm"): (0.9017, 0.00567, 0.026),
    ("kin", "8fh"): (0.8959, 0.00724, 0.24),
    ("kin", "8nm"): (0.7143, 0.06949, 0.043),
    ("kin", "8nh"): (0.7125, 0.07141, 0.31),
    ("pumadyn", "8fm"): (2.497, 21.49, 0.0495),
    ("pumadyn", "8fh"): (2.328, 25.86, None),
    ("pumadyn", "8nm"): (1.292, 29.87, 0.0318),
    ("pumadyn", "8nh"): (1.162, 31.61, None),
    ("pumadyn", "32nm"): (0.000437, 9.1565e-4, 0.028),
}
"""Mean and variance (n - 1) of the target, and the share of the variance that no prediction explains, where a file or
the spec gives it.
"""


@pytest.mark.parametrize(("family", "kind"), MOMENTS, ids="-".join)
def test_moments_are_those_of_delves_files(simulated, family, kind):
    """Limits of 4 standard errors of the difference of two samples of 8192; one in 16,000 right ones is outside."""
    mean, variance, _ = MOMENTS[family, kind]
    y = simulated(family, kind).data.y
    error = np.std((y - y.mean()) ** 2) / math.sqrt(N)
    assert y.mean() == pytest.approx(mean, abs=4 * math.sqrt(2 * variance / N))
    assert y.var(ddof=1) == pytest.approx(variance, abs=4 * math.sqrt(2) * error)


@pytest.mark.parametrize(("family", "kind"), [k for k, v in MOMENTS.items() if v[2]], ids="-".join)
def test_the_noise_leaves_its_share_of_the_variance(simulated, family, kind):
    """12 %: the shares are given to two digits, and are themselves estimated from 8192 cases."""
    simulation = simulated(family, kind)
    share = simulation.irreducible / simulation.variance
    assert share == pytest.approx(MOMENTS[family, kind][2], rel=0.12)
    assert 0 < simulation.irreducible_error < 0.02 * simulation.irreducible
    # the error of the predictions without noise is no less, but for sampling
    assert np.mean((simulation.data.y - simulation.noise_free) ** 2) > 0.93 * simulation.irreducible


@pytest.mark.parametrize(("kind", "most"), [("8fh", 0.38), ("8nh", 0.31)])
def test_high_noise_leaves_no_more_than_delves(simulated, kind, most):
    """At most the stated share of the variance is irreducible in DELVE's files, and not much less: noise on the angles
    that is three times that of "m" leaves 0.85 of the bound at least. 5 standard errors for the share of ours.
    """
    simulation = simulated("pumadyn", kind)
    share = simulation.irreducible / simulation.variance
    error = simulation.irreducible_error / simulation.variance
    assert 0.85 * most < share < most - 5 * error


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("linearity", ["f", "n"])
def test_with_32_inputs_the_noise_leaves_about_the_share_that_it_leaves_with_8(simulated, family, linearity):
    """A quarter: the noise of these was chosen to two digits."""
    many, few = (
        (s.irreducible / s.variance) for s in (simulated(family, f"{inputs}{linearity}h") for inputs in (32, 8))
    )
    assert many == pytest.approx(few, rel=0.25)


@pytest.mark.parametrize("family", FAMILIES)
def test_noise_free_targets_are_those_of_the_inputs(simulated, family):
    for kind in ("8nm", "32nh"):
        simulation = simulated(family, kind)
        np.testing.assert_allclose(
            simulation.noise_free[:, 0],
            TARGETS[family](simulation.data.x),
            rtol=1e-9,
            atol=1e-9 * simulation.noise_free.std(),
        )


def test_uniform_noise_has_mean_0_and_variance_1(dtype):
    """The moments 0, 1, 0 and 9/5 within 5 standard errors, of variances m_2k - m_k^2 with m_2k = 3^k / (2k + 1)."""
    drawn = np.asarray(uniform(KEY, (1000, 100), dtype), np.float64)
    assert drawn.shape == (1000, 100)
    assert np.abs(drawn).max() <= math.sqrt(3) * (1 + np.finfo(dtype).eps)
    moments = dict(enumerate([1, 0, 1, 0, 9 / 5, 0, 27 / 7, 0, 9]))
    for k in range(1, 5):
        error = math.sqrt((moments[2 * k] - moments[k] ** 2) / drawn.size)
        assert np.mean(drawn**k) == pytest.approx(moments[k], abs=5 * error)


# Inputs

KIN32 = [f"{s}{i}" for s in ("theta", "alpha", "a", "d") for i in range(1, 9)]
PUMADYN8 = [*(f"theta{i}" for i in (1, 2, 3)), *(f"thetad{i}" for i in (1, 2, 3)), "tau1", "tau2"]
PUMADYN32 = [
    f"{s}{i}"
    for s, count in (("theta", 6), ("thetad", 6), ("tau", 5), ("dm", 5), ("da", 5), ("db", 5))
    for i in range(1, count + 1)
]
INPUTS = [
    ("kin", "8fm", "kin-8fm", KIN32[:8], {"theta": (-0.1 * math.pi, 0.1 * math.pi)}),
    ("kin", "8nh", "kin-8nh", KIN32[:8], {"theta": (-0.5 * math.pi, 0.5 * math.pi)}),
    ("kin", "32nm", "kin-32nm-like", KIN32, {"theta": (-0.5 * math.pi, 0.5 * math.pi)}),
    (
        "pumadyn",
        "8fm",
        "pumadyn-8fm",
        PUMADYN8,
        {"theta": (-0.3 * math.pi, 0.3 * math.pi), "thetad": (-0.3 * math.pi, 0.3 * math.pi), "tau": (-0.3, 0.3)},
    ),
    (
        "pumadyn",
        "8nh",
        "pumadyn-8nh",
        PUMADYN8,
        {"theta": (-0.6 * math.pi, 0.6 * math.pi), "thetad": (-0.6 * math.pi, 0.6 * math.pi), "tau": (-0.6, 0.6)},
    ),
    (
        "pumadyn",
        "32nm",
        "pumadyn-32nm",
        PUMADYN32,
        {
            "theta": (-0.75 * math.pi, 0.75 * math.pi),
            "thetad": (-0.75 * math.pi, 0.75 * math.pi),
            "tau": (-75, 75),
            "dm": (0.25, 2.5),
            "da": (0.25, 2.5),
            "db": (0.25, 2.5),
        },
    ),
]


@pytest.mark.parametrize(
    ("family", "kind", "name", "names", "ranges"), INPUTS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_inputs_are_uniform_in_delves_ranges_and_independent(simulated, family, kind, name, names, ranges):
    """The largest of 8192 uniform numbers is within 14 / 8192 of the end with probability 1 - 1e-6; correlations
    within 5 / sqrt(8192).
    """
    simulation = simulated(family, kind)
    x = simulation.data.x
    assert simulation.name == name
    assert simulation.data.names == tuple(names)
    for column, input_name in zip(x.T, names, strict=True):
        if (symbol := input_name.rstrip("0123456789")) in ranges:
            low, high = ranges[symbol]
            assert low <= column.min() < low + (high - low) * 14 / N
            assert high - (high - low) * 14 / N < column.max() <= high
            assert column.mean() == pytest.approx((low + high) / 2, abs=5 * (high - low) / math.sqrt(12 * N))
    correlation = np.corrcoef(x.T) - np.eye(x.shape[1])
    assert np.abs(correlation).max() < 5 / math.sqrt(N)


def test_kin_of_32_inputs_lies_around_kin_of_8(simulated):
    x = simulated("kin", "32nm").data.x
    middle = np.concatenate([np.zeros(8), TWIST, KIN_LENGTH, KIN_OFFSET])
    limit = np.repeat([0.5 * math.pi, 0.1 * math.pi, 0.1, 0.1], 8)
    assert np.all(np.abs(x - middle) <= limit)
    assert np.all(np.abs(x - middle).max(0) > 0.99 * limit)
    np.testing.assert_allclose(
        kin_target(np.concatenate([x[:50, :8], np.tile(middle[8:], (50, 1))], 1)), kin_target(x[:50, :8]), rtol=1e-12
    )


def test_in_pumadyn_32nm_only_theta5_and_tau4_matter(simulated):
    """-0.969 is the correlation in DELVE's file; 0.004 are 5 standard errors, (1 - r^2) / sqrt(N) each."""
    simulation = simulated("pumadyn", "32nm")
    x, y, ideal = simulation.data.x, simulation.data.y[:, 0], simulation.noise_free[:, 0]
    theta5, tau4 = simulation.data.names.index("theta5"), simulation.data.names.index("tau4")
    assert np.corrcoef(y, np.cos(x[:, theta5]) * x[:, tau4])[0, 1] == pytest.approx(-0.969, abs=0.004)
    others = np.roll(x, 1, 0)
    others[:, [theta5, tau4]] = x[:, [theta5, tau4]]
    assert np.mean((pumadyn_target(others) - ideal) ** 2) < 0.1 * ideal.var()
    for replaced in ([theta5], [tau4]):
        changed = x.copy()
        changed[:, replaced] = np.roll(x[:, replaced], 1, 0)
        assert np.mean((pumadyn_target(changed) - ideal) ** 2) > 0.2 * ideal.var()


# Keys, precision, shapes


@pytest.mark.parametrize("family", FAMILIES)
def test_the_key_decides_and_sets_are_cases_in_a_row(simulated, family):
    make = FAMILIES[family]
    one, same, other, sets = simulated(family, "8nm"), make(KEY, N), make(OTHER, N), make(KEY, N // 2, sets=2)
    for a, b in (
        (one.data.x, same.data.x),
        (one.data.y, same.data.y),
        (one.data.x, sets.data.x.reshape(N, 8)),
        (one.data.y, sets.data.y.reshape(N, 1)),
    ):
        np.testing.assert_array_equal(a, b)
    assert one.irreducible == same.irreducible == sets.irreducible
    assert not np.any(one.data.x == other.data.x)
    assert sets.data.x.shape == (2, N // 2, 8)
    assert sets.data.y.shape == sets.noise_free.shape == (2, N // 2, 1)
    assert sets.data.checked() is sets.data
    with jax.enable_x64(True):
        wide = make(jax.random.key(0), N)
    for a, b in ((one.data.x, wide.data.x), (one.data.y, wide.data.y), (one.noise_free, wide.noise_free)):
        assert a.dtype == np.float64
        np.testing.assert_array_equal(a, b)


def test_medium_and_high_noise_have_the_same_inputs_and_signatures_are_the_same(simulated):
    np.testing.assert_array_equal(simulated("kin", "8nm").data.x, simulated("kin", "8nh").data.x)
    assert inspect.signature(kin) == inspect.signature(pumadyn)


@pytest.mark.parametrize("family", TARGETS)
def test_targets_of_any_number_of_cases_have_the_shape_of_the_cases(family):
    """Batches of 4096 do not show: one of 4099 cases is as the cases alone. 1e-12 for another order of additions."""
    x = np.random.default_rng(0).uniform(-1, 1, (4099, 8))
    y = TARGETS[family](x)
    assert y.shape == (4099,)
    assert y.dtype == np.float64
    np.testing.assert_allclose(TARGETS[family](x[-6:].reshape(2, 3, 8)), y[-6:].reshape(2, 3), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(TARGETS[family](x[0]), y[0], rtol=1e-12, atol=1e-12)


# What is refused

BAD = [
    ({"inputs": 9}, "inputs to be one of 8, 32", "got 9"),
    ({"linearity": "x"}, 'linearity ("f" fairly linear, "n" non-linear) to be one of', "got 'x'"),
    ({"noise": "l"}, 'noise ("m" medium, "h" high) to be one of', "got 'l'"),
    ({"n": 0}, "expected n to be a whole number of at least 1", "got 0"),
    ({"sets": 0}, "expected sets to be a whole number of at least 1", "got 0"),
    ({"key": 3}, "expected one random key, got the integer 3", "jax.random.key(3)"),
]


@pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize(("arguments", "expected", "got"), BAD, ids=lambda v: "")
def test_bad_input_is_named(make, arguments, expected, got, own_messages):
    with pytest.raises((ValueError, TypeError)) as caught:
        make(**({"key": KEY, "n": 5} | arguments))
    message = str(caught.value)
    assert expected in message
    assert got in message
    assert ";" in message
    assert "\n" not in message


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize(
    "x", [np.zeros((4, 9)), np.zeros((0, 8)), np.zeros(()), [[0.0] * 7]], ids=["nine", "none", "number", "seven"]
)
def test_inputs_of_no_family_are_refused(target, x, own_messages):
    with pytest.raises(
        ValueError,
        match=r"expected x \[\.\.\., D\] with D of 8 or 32 inputs and at least one case, got .*; "
        r"give every case all inputs of the family",
    ):
        target(x)


# DELVE's own files, where they are at hand

EXPLAINED = {
    "kin-8fm": 0.974,
    "kin-8nm": 0.955,
    "kin-8nh": 0.645,
    "pumadyn-8fm": 0.950,
    "pumadyn-8nm": 0.968,
    "pumadyn-32nm": 0.972,
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_simulators_explain_delves_files(name):
    """Nothing is fitted here: R^2 of the simulator without noise on the file's inputs; the rest is the noise of the
    file.
    """
    with np.load(delve_data(name)) as file:
        x, y = file["X"], file["y"]
    residual = y - TARGETS[name.partition("-")[0]](x)
    assert 1 - np.mean(residual**2) / y.var() > EXPLAINED[name]
