"""Data in the spirit of DELVE's bank family: which share of the customers finds all queues of a bank full."""

from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxgen.simulate.simulation import Simulation, Simulator, as_inputs, kind_of
from jaxgen.types import Key

_NAMES = (
    *(f"a{area}{name}" for area in (1, 2, 3) for name in ("cx", "cy", "sx", "sy", "rho", "pop")),
    "temp",
    *(f"b{bank}{name}" for bank in (1, 2, 3) for name in ("x", "y", "call", "eff")),
    "mxql",
)
_FEW = ("a1cx", "a1cy", "b2x", "b2y", "a2pop", "a3pop", "temp", "mxql")
_AREAS = [[0, 0, 0.6, 0.6, 0, 1.4], [-0.25, -0.4, 0.6, 0.6, 0, 0], [0.2, 0.25, 0.5, 0.5, 0, 0]]
_BANKS = [[0, 0, 3, 1.8], [0, 0, 3, 1.4], [-0.7, 0, 3, 1.3]]
_TOWN = np.array([*np.ravel(_AREAS), 0, *np.ravel(_BANKS), 0])
"""The 32 numbers of the town of 8 inputs; its inputs replace theirs, here 0."""
_SIZE = {"f": 0.5, "n": 1.0}
"""All lengths are multiplied by it."""
_POPULATION = {"8f": 3.1, "8n": 1.1, "32f": 6.2, "32n": 3.1}
_TELLERS = {8: (1, 2, 3), 32: (2, 5, 8)}
_SPEED = {"8fh": 1.23, "8nh": 0.87}
"""How fast the tellers are beside those of noise "m"; 1 where it is not said."""
_CUSTOMERS = {"8fm": 400, "8fh": 50, "8nm": 900, "8nh": 120, "32fm": 300, "32fh": 30, "32nm": 350, "32nh": 30}
_LONGEST = 9
_NODES = 5
_PAIRS = 8192


class Halls(NamedTuple):
    """The three banks of n cases.

    Attributes:
      arrival: customers that come per unit of time, [3, n].
      call: customers in the bank for every open teller at which another one opens, [3, n].
      eff: customers that one teller serves per unit of time, [3, n].
      mxql: the longest queue of one teller, with the customer who is being served; whole numbers of at most 9, [3, n].
      tellers: the most tellers of each bank.
    """

    arrival: Float[Array, "3 n"]
    call: Float[Array, "3 n"]
    eff: Float[Array, "3 n"]
    mxql: Float[Array, "3 n"]
    tellers: tuple[int, int, int]

    @property
    def capacity(self) -> Float[Array, "3 n"]:
        """Customers with whom a bank is full, [3, n]."""
        return self.mxql * np.array(self.tellers, float)[:, None]

    def service(self, inside: Float[Array, "3 n"]) -> Float[Array, "3 n"]:
        """Customers served per unit of time while so many are inside, [3, n]."""
        return self.eff * jnp.minimum(jnp.ceil(inside / self.call), np.array(self.tellers, float)[:, None])


def bank(
    key: Key, n: int, inputs: int = 8, linearity: str = "n", noise: str = "m", sets: int | None = None
) -> Simulation:
    """A town of three residential areas and three banks; the target is the share of the customers turned away because
    all queues are full.

    The homes of area a are Gaussian: centre (cx, cy), standard deviations (sx, sy), correlation rho. From there come
    pop customers per unit of time, a Poisson process, and choose bank b with probability proportional to exp(-distance
    / temp). A bank opens with one teller, and calls another one whenever more than `call` customers are inside for
    every open one; a teller serves eff customers per unit of time, with exponential times. Customers change to a
    shorter queue at once. A customer is turned away if the queues of all tellers are mxql long. So each bank is a
    birth-death process, and the target without noise, the share turned away in the long run, has a closed form. The
    noise is that of a finite day: its customers are simulated one by one, beginning in the long-run state, so that the
    mean of the target over days is exactly the target without noise. Noise depends on the inputs, and little traffic
    gives targets that are exactly 0.

    Use it for targets within [0, 1] with many exact zeros, and noise that depends on the inputs.

    Source: DELVE's simulator is not published. From its description come the story and the target; from its files
    bank-8fm, bank-8nm and bank-32nh the names of the inputs and their ranges:

    - cx, cy, x, y: uniform within 1, for "f" within 0.5, of 0.
    - sx, sy: exponential of mean 1, for "f" 0.5.
    - rho: uniform within 0.5 of 0.
    - pop: exponential; of mean 1.1 for 8 inputs and "n", 3.1 for 8 inputs and "f" and for 32 and "n", 6.2 for 32 and
      "f".
    - temp: Beta(3, 2) for 8 inputs, Beta(2, 2) for 32.
    - call: a whole number from 2 to mxql - 1. eff: uniform between 0.5 and 2.
    - mxql: a whole number from 5 to 8, for 32 inputs to 9.

    Our choice are the law of the queues, the ranges for 32 inputs and "f", the most tellers of the banks (1, 2, 3 for
    8 inputs and 2, 5, 8 for 32), and the customers of a day (8f 400 with noise "m" and 50 with "h", 8n 900 and 120,
    32f 300 and 30, 32n 350 and 30, so that about 4 % and 25 % of the variance are noise). What 8 inputs leave fixed
    was fitted to 1200 cases each of bank-8fm and bank-8nm: without noise this town explains 96 % and 93 % of the
    variance of all 8192. Of bank-32nh it explains little; only mean and variance are roughly alike. DELVE's days seem
    to be longer: of its targets 1 % (bank-8fm), 5 % (bank-8nm) and 20 % (bank-32nh) are 0, of these 7 %, 16 % and 51
    %.

    Of bank-8fh and bank-8nh there is no file. That the target of bank-8fh varies less than that of bank-8fm (standard
    deviations 0.143 and 0.152) and that of bank-8nh has a larger mean than that of bank-8nm (0.068 and 0.043; standard
    deviations 0.077 and 0.062) says that more than the days differ in DELVE, not what. Here it is the tellers, who are
    1.23 times as fast in 8fh, which gives its standard deviation, and 0.87 times as fast in 8nh: a compromise of mean
    (0.061) and standard deviation (0.083), which this model cannot have right together.

    Args:
      key: consumed.
      n: cases, N.
      inputs: 8 or 32, D.
      linearity: "f", fairly linear, or "n", non-linear.
      noise: "m", medium, or "h", high.
      sets: independent data sets, Q; None for one without the axis Q.
    Returns:
      Simulation with x [*Q, N, D] and y [*Q, N, 1]; y is in [0, 1].
    Raises:
      TypeError: the key is no typed key.
      ValueError: no such data set, or a count that is no whole number of at least 1.
      MemoryError: so many cases would not fit into memory.
    """
    kind = kind_of(inputs, linearity, noise)
    return _simulator(kind).run(key, f"bank-{kind}-like", _NAMES if inputs == 32 else _FEW, "rej", n, sets)


def bank_target(x: Float[np.ndarray, "*N D"], linearity: str = "n", noise: str = "m") -> Float[np.ndarray, "*N"]:
    """The target of `bank` without noise.

    Args:
      x: inputs in the order of their names, [*N, 8] or [*N, 32].
      linearity: of the town that 8 inputs are a part of, "f" or "n"; without influence on 32.
      noise: of the data set, "m" or "h", whose tellers are not equally fast; without influence on 32 inputs.
    Returns:
      Shares turned away in the long run, [*N].
    Raises:
      ValueError: neither 8 nor 32 inputs, no case, no real numbers, or another linearity or noise.
    """
    inputs = as_inputs(x)
    kind = kind_of(inputs.shape[-1], linearity, noise)
    with jax.enable_x64(True):
        flat = jnp.asarray(inputs.reshape(-1, inputs.shape[-1]))
        return np.asarray(_simulator(kind).ideal(flat)).reshape(inputs.shape[:-1])


@cache
def _simulator(kind: str) -> Simulator:
    """Always the same object for the same data set, so that its programs are compiled once."""
    inputs, linearity = int(kind[:-2]), kind[-2]
    size, pop, tellers, customers = _SIZE[linearity], _POPULATION[kind[:-1]], _TELLERS[inputs], float(_CUSTOMERS[kind])
    halls = partial(_halls, size=size, tellers=tellers, speed=_SPEED.get(kind, 1.0))
    draw = jax.jit(partial(_draw_many if inputs == 32 else _draw_few, size, pop), static_argnums=1)
    observe = jax.jit(lambda key, x: day(key, halls(x), customers))
    return Simulator(draw, observe, jax.jit(lambda x: long_run(halls(x))), _PAIRS)


def _draw_few(size: float, pop: float, key: Key, n: int) -> Float[Array, "n 8"]:
    u = jax.random.uniform(key, (n, 11))
    temp = jnp.sort(u[:, 7:11], axis=1)[:, 2:3]  # the third smallest of four uniform numbers is Beta(3, 2)
    return jnp.concatenate(
        [(2 * u[:, :4] - 1) * size, -pop * jnp.log1p(-u[:, 4:6]), temp, 5 + jnp.floor(4 * u[:, 6:7])], axis=1
    )


def _draw_many(size: float, pop: float, key: Key, n: int) -> Float[Array, "n 32"]:
    u = jax.random.uniform(key, (n, 34))
    area, place = u[:, :18].reshape(n, 3, 6), u[:, 18:30].reshape(n, 3, 4)
    mxql = 5 + jnp.floor(5 * u[:, 30:31])
    temp = jnp.sort(u[:, 31:], axis=1)[:, 1:2]  # the median of three uniform numbers is Beta(2, 2)
    areas = [
        (2 * area[..., :2] - 1) * size,
        -size * jnp.log1p(-area[..., 2:4]),
        area[..., 4:5] - 0.5,
        -pop * jnp.log1p(-area[..., 5:]),
    ]
    banks = [
        (2 * place[..., :2] - 1) * size,
        2 + jnp.floor(place[..., 2:3] * (mxql[:, None] - 2)),
        0.5 + 1.5 * place[..., 3:],
    ]
    return jnp.concatenate(
        [jnp.concatenate(areas, 2).reshape(n, 18), temp, jnp.concatenate(banks, 2).reshape(n, 12), mxql], axis=1
    )


def _halls(x: Float[Array, "n D"], size: float, tellers: tuple[int, int, int], speed: float) -> Halls:
    """The banks of a town given by 8 or 32 inputs, with tellers of this speed."""
    if x.shape[1] == len(_FEW):
        lengths = [name[2:] in ("cx", "cy", "sx", "sy", "x", "y") for name in _NAMES]
        town = jnp.asarray(np.where(lengths, size * _TOWN, _TOWN))
        x = jnp.tile(town[None], (len(x), 1)).at[:, np.array([_NAMES.index(name) for name in _FEW])].set(x)
    areas, banks = x[:, :18].T.reshape(3, 6, -1), x[:, 19:31].T.reshape(3, 4, -1)
    arrival = jnp.einsum("an,abn->bn", areas[:, 5], choice(areas[:, :5], x[:, 18], banks[:, :2]))
    return Halls(arrival, banks[:, 2], speed * banks[:, 3], jnp.tile(x[:, 31][None], (3, 1)), tellers)


def choice(
    homes: Float[Array, "A 5 n"], temp: Float[Array, " n"], places: Float[Array, "B 2 n"]
) -> Float[Array, "A B n"]:
    """Shares of the customers of each area who choose each bank, [A, B, n].

    The mean over the homes is taken by Gauss-Hermite quadrature with 5 x 5 nodes; it is part of the definition: an
    area has 25 homes.

    Args:
      homes: cx, cy, sx, sy, rho of each area, [A, 5, n].
      temp: probabilities are proportional to exp(-distance / temp), [n].
      places: x, y of each bank, [B, 2, n].
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    u, v = (a.reshape(1, -1, 1) for a in np.meshgrid(nodes, nodes))
    cx, cy, sx, sy, rho = (homes[:, i, None] for i in range(5))
    x, y = cx + sx * u, cy + sy * (rho * u + jnp.sqrt(1 - rho**2) * v)
    distance = jnp.hypot(x[:, None] - places[None, :, 0, None], y[:, None] - places[None, :, 1, None])
    return jnp.einsum(
        "abhn,h->abn",
        jax.nn.softmax(-distance / temp[None, None, None], axis=1),
        np.outer(weights, weights).ravel() / weights.sum() ** 2,
    )


def stationary(halls: Halls) -> Float[Array, "S 3 n"]:
    """Long-run probabilities of 0, 1, ... S - 1 customers in each bank, [S, 3, n]: the law of a birth-death process.

    P(k) is proportional to the product of arrival / service(i) over i from 1 to k, for k up to the capacity.
    """
    inside = np.arange(1.0, 1 + _LONGEST * max(halls.tellers))[:, None, None]
    ratio = jnp.log(halls.arrival)[None] - jnp.log(
        jax.vmap(halls.service)(jnp.broadcast_to(inside, (len(inside), *halls.call.shape)))
    )
    log_weight = jnp.where(inside <= halls.capacity[None], jnp.cumsum(ratio, axis=0), -jnp.inf)
    return jax.nn.softmax(jnp.pad(log_weight, ((1, 0), (0, 0), (0, 0))), axis=0)


def long_run(halls: Halls) -> Float[Array, " n"]:
    """Share of all customers who are turned away in the long run, [n]: arrivals see the long-run law (Wolff 1982,
    PASTA).
    """
    full = jnp.take_along_axis(stationary(halls), halls.capacity[None].astype(int), axis=0)[0]
    return jnp.sum(halls.arrival * full, 0) / jnp.sum(halls.arrival, 0)


class _Day(NamedTuple):
    """The days of n cases after some events.

    Attributes:
      step: events so far, [].
      inside: customers in each bank, [3, n].
      come: customers who have come to any bank, [n].
      away: those of the first `customers` who were turned away, [n].
    """

    step: Int[Array, ""]
    inside: Float[Array, "3 n"]
    come: Float[Array, " n"]
    away: Float[Array, " n"]


def day(key: Key, halls: Halls, customers: float | Float[Array, ""]) -> Float[Array, " n"]:
    """Share turned away of the first so many customers who come to any of the banks, [n].

    Simulated event by event: the next one is a customer who comes or leaves, with a probability proportional to its
    rate. The first one comes, and finds the banks in their long-run state: so does then each who comes later, and the
    mean over days is exactly `long_run`.
    """
    morning, events = jax.random.split(key)
    n = halls.call.shape[1]
    below = jnp.cumsum(stationary(halls), axis=0) < jax.random.uniform(morning, (1, 3, n))

    def event(state: _Day) -> _Day:
        # Rates add up to where each of the six events ends on a line, of which a uniform number chooses a point. The
        # sums are written out: a cumsum is a program of its own in every round, half as slow again.
        a, b, c = halls.arrival
        p, q, r = halls.service(state.inside)
        ends = jnp.stack([a, a + b, a + b + c, a + b + c + p, a + b + c + p + q, a + b + c + p + q + r])
        length = jnp.where(state.step == 0, ends[2], ends[5])  # the first event is a customer who comes
        reached = jax.random.uniform(jax.random.fold_in(events, state.step), (1, n)) * length[None] < ends
        chosen = reached & ~jnp.pad(reached[:5], ((1, 0), (0, 0)))
        comes, leaves = chosen[:3], chosen[3:]
        refused = comes & (state.inside == halls.capacity)
        return _Day(
            state.step + 1,
            state.inside + (comes & ~refused).astype(float) - leaves.astype(float),
            state.come + jnp.any(comes, 0).astype(float),
            state.away + (jnp.any(refused, 0) & (state.come < customers)).astype(float),
        )

    inside = jnp.minimum(jnp.sum(below, 0).astype(float), halls.capacity)
    start = _Day(jnp.zeros((), int), inside, jnp.zeros(n), jnp.zeros(n))
    return jax.lax.while_loop(lambda state: jnp.any(state.come < customers), event, start).away / customers
