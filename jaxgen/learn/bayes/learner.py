"""Bayesian networks as a learner: chains of networks and precisions, whose predictions are averaged."""

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.bayes import joint as joints
from jaxgen.learn.bayes import prior as priors
from jaxgen.learn.bayes.blocks import block_of, in_blocks, watched_cases
from jaxgen.learn.bayes.convergence import of_all
from jaxgen.learn.bayes.joint import Logs, Position, Seen
from jaxgen.learn.bayes.prior import Group, Prior, Scales, State
from jaxgen.learn.bayes.sampler import Target, Travelled, chosen, trajectory
from jaxgen.learn.network.iterative import Cases, prepare
from jaxgen.learn.network.nets import MLP
from jaxgen.learn.network.objectives import Objective, check_objective
from jaxgen.types import Data, Key, Learner, Plan
from jaxgen.types.devices import in_full_precision
from jaxgen.types.numbers import require, require_number, require_one_of, shown
from jaxgen.types.predictive import Mixture

_OBJECTIVES = ("squared", "binary_cross_entropy", "softmax_cross_entropy")
_NETWORK = MLP()
_PRIOR = Prior()

_WANTED = 0.85
"""Share of trajectories to accept: with windows more than the 0.65 that suits plain hybrid Monte Carlo."""

_FIRST_PASSES = 1000
"""Passes, but no more than a tenth of all, in which the weights begin under precisions that stay at a width of 0.5, as
in Neal's runs.
"""

_FIRST_WIDTH = 0.5

_JOINT_STEP = 0.25
"""Times the step factor of the weights, that of weights and widths at the beginning."""

_MOST_REJECTED = 0.8
"""A chain that rejects a larger share of its trajectories hardly moves."""

_LEAST_STEP = 1e-3
"""A chain whose step factor falls below this has collapsed."""

_KNOWN = 0.1
"""Error of an energy by rounding, in units of what decides about a trajectory, beyond which a chain is not sound."""


class Posterior(NamedTuple):
    """The kept states of C chains, S of each.

    Attributes:
      states: networks and precisions, every array with leading axes [C, S].
      rejected: share of the trajectories after the discarded part that were rejected, of weights alone and, if there
        are such, of weights and widths, [C, 1 or 2].
      step: the factors of their step sizes after the discarded part, likewise.
      rhat, effective: rank-normalised split R-hat, and how many independent draws the states are worth, of the
        predictions of 8 training cases, all outputs, [8 K] each.
      sound: whether all numbers of the chains are finite, and the energies small enough to be compared, [].
    """

    states: State
    rejected: Float[Array, "C kinds"]
    step: Float[Array, "C kinds"]
    rhat: Float[Array, " predictions"]
    effective: Float[Array, " predictions"]
    sound: Bool[Array, ""]


class _Chain(NamedTuple):
    """A chain on its way.

    Attributes:
      state: weights and precisions.
      momentum: like the weights.
      seen: how strongly the data held weights and precisions in the discarded part.
      log_step: logarithms of the step factors, of trajectories of weights alone and of weights and widths, [kinds].
      log_mean: their means over the later half of the adaptation so far, [kinds].
      rejected: trajectories rejected after the discarded part, [kinds].
      energy: the largest there, [].
    """

    state: State
    momentum: Any
    seen: Seen
    log_step: Float[Array, " kinds"]
    log_mean: Float[Array, " kinds"]
    rejected: Int[Array, " kinds"]
    energy: Float[Array, ""]


class _Random(NamedTuple):
    """Random numbers of one transition: for the precisions, for a trajectory of weights and for one of weights and
    widths.
    """

    normals: tuple[Array, Array, Array, Array]
    uniforms: tuple[Array, Array, Array]


@dataclass(frozen=True, repr=False)
class Bayes(Learner):
    """Networks drawn from the posterior given the training cases, by hybrid Monte Carlo; the prediction is their mean.

    Weights move along trajectories of leapfrog steps; between these precisions are drawn from their laws given the
    weights (Neal 1996, "Bayesian learning for neural networks"; conventions of his programs), and along trajectories of
    a second kind, which he does not have, widths move together with their weights. All chains take the same steps, so
    that hundreds run together, one or several for each resampled training set. Targets have normal noise of unknown
    width, or are classes. A case of weight 2 is in the likelihood twice.

    The step of each weight is the step factor times the root of its variance, as far as the precisions and the inputs
    tell it (`step_sizes`, those of Neal's programs): never from the weights, so that trajectories can be reversed. The
    factor adapts in the discarded part only, towards 85 % of the trajectories accepted.

    With several blocks of cases, each of which stands for all in its turn ("partial gradients"), a step passes all
    cases once but is as exact as that many smaller ones. The cases in use, in their order, are cut into blocks of equal
    numbers, so with more than one block the order of the cases changes the random walk, though not its law.

    Neal's mlp-mc-1 to -4 are `delve.METHODS`. Where the noise is no normal noise of one width the model is wrong; how
    one sees it is told in docs/bayesian_networks.md.

    Attributes:
      network: an `MLP` with one hidden layer, and direct connections if `skip`.
      prior: of its weights and the noise, in the units that it sees: use `Normalised`.
      objective: "squared" for numbers with normal noise, "binary_cross_entropy" or "softmax_cross_entropy" for classes.
      passes: how often a chain goes through the cases; a leapfrog step is one pass.
      steps: leapfrog steps of a trajectory; even, if there are several blocks.
      window: states at each end of a trajectory among which one is chosen, in distances of one step, or two with
        several blocks; 1 is plain hybrid Monte Carlo.
      blocks: of cases, for partial gradients.
      step: the step factor at the beginning.
      persistence: share of the momentum that a trajectory keeps from the one before, in [0, 1).
      joint: leapfrog steps of a trajectory of weights and widths together, one after each of the weights alone, as a
        multiple of `steps`; a window is as much shorter, if they are fewer. With 0 widths are drawn given the weights
        only, as by Neal's programs, and then the chain takes many thousand passes to find those of inputs that do not
        matter.
      discarded: share of the trajectories, after the first 1000 passes or tenth of all, that is not kept.
      states: the most networks kept of a chain, evenly spaced.
      chains: for each training set.
    """

    network: MLP = _NETWORK
    prior: Prior = _PRIOR
    objective: str = "squared"
    passes: int = 60_000
    steps: int = 500
    window: int = 25
    blocks: int = 4
    step: int | float = 0.4
    persistence: int | float = 0.0
    joint: int | float = 0.2
    discarded: int | float = 1 / 3
    states: int = 100
    chains: int = 1

    @property
    def failures(self) -> tuple[str, ...]:
        """What `failure` may say."""
        return (
            "its chain left the finite numbers, or those whose differences its precision knows (normalise the data "
            "with learn.Normalised, or use a prior of wider noise)",
            f"it rejected more than {_MOST_REJECTED:.0%} of its trajectories (info['rejected']; use more passes or "
            "fewer steps, so that the step can adapt longer, more blocks, or a smaller step)",
            f"its step factor collapsed below {_LEAST_STEP:g} (info['step']; use more blocks, a narrower prior, or "
            "normalise the data with learn.Normalised)",
        )

    @property
    def classifies(self) -> bool:
        """Whether targets must be zeros and ones."""
        return self.objective != "squared"

    @property
    def predicts(self) -> str:
        """What the predictions are: probabilities of classes, else numbers."""
        return "probabilities" if self.classifies else "numbers"

    @property
    def rounds(self) -> int:
        """As many as there are passes, of each chain."""
        return self.passes

    @property
    def trajectories(self) -> tuple[int, int, int, int]:
        """How many trajectories have fixed precisions, are discarded in all, lie between kept states, and how many
        states are kept.
        """
        both = self.steps + self._joint
        total = self.passes // both
        first = max(1, min(_FIRST_PASSES // both, total // 10))
        kept = max(1, total - first - math.floor((total - first) * self.discarded))
        between = math.ceil(kept / self.states)
        return first, total - between * (kept // between), between, kept // between

    def groups(self, inputs: int, outputs: int) -> tuple[Group, ...]:
        """The groups of weights of its network on so many inputs and outputs."""
        return self.prior.groups(self.network, inputs, outputs)

    @in_full_precision()
    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Posterior:
        """Chains on cases [n, D], [n, K] of weights [n]."""
        used = prepare(x, y, w)
        cases = in_blocks(used, self.blocks)
        if self.chains == 1:
            chain, states = self._run(key, cases)
            chain, states = jax.tree.map(lambda a: a[None], (chain, states))
        else:
            chain, states = jax.vmap(lambda k: self._run(k, cases))(jax.random.split(key, self.chains))
        _, _, between, kept = self.trajectories
        finite = jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(states)])
        known = jnp.all(jnp.finfo(x.dtype).eps * chain.energy < _KNOWN)
        rejected = chain.rejected.astype(x.dtype) / (between * kept)
        watched = used.x[:, watched_cases(used.w)]
        traces = lax.map(lambda net: self._predictions(net, watched).reshape(-1), jax.tree.map(_flat, states.params))
        rhat, effective = of_all(traces.reshape(self.chains, kept, -1))
        return Posterior(states, rejected, jnp.exp(chain.log_step), rhat, effective, known & jnp.all(finite))

    @in_full_precision()
    def predict(self, params: Posterior, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Mean of the predictions of all kept networks; probabilities in a classification."""
        nets, inputs = jax.tree.map(_flat, params.states.params), x.T

        def add(total: Array, net: Any) -> tuple[Array, None]:
            return total + self._predictions(net, inputs), None

        outputs = nets["output"]["bias"].shape
        total, _ = lax.scan(add, jnp.zeros((outputs[1], x.shape[0]), x.dtype), nets)
        return (total / outputs[0]).T

    def predictive(self, params: Posterior, x: Float[Array, "m D"]) -> Mixture | None:
        """Of cases [m, D]: all kept networks, each with its noise; None in a classification."""
        if self.classifies:
            return None
        states = jax.tree.map(_flat, params.states)
        mean = lax.map(lambda net: self.network.forward(net, x.T).outputs.T, states.params)
        deviation = 1 / jnp.sqrt(states.scales.noise)
        return Mixture(mean, jnp.broadcast_to(deviation[:, None], mean.shape))

    def failure(self, params: Posterior) -> Int[Array, ""]:
        """The number of its sentence in `failures`, 0 if all chains went well; []."""
        # A chain whose joint trajectories are rejected is as good as one without them.
        rejects = jnp.any(params.rejected[:, 0] > _MOST_REJECTED)
        collapsed = jnp.any(params.step[:, 0] < _LEAST_STEP)
        return jnp.where(~params.sound, 1, jnp.where(collapsed, 3, jnp.where(rejects, 2, 0))).astype(jnp.int32)

    def diagnose(self, params: Posterior) -> dict[str, Array]:
        """What the chains were like, and what they say of the inputs.

        Returns:
          "rejected" and "step" of each chain, [C], and "joint_rejected" and "joint_step" of the trajectories of weights
          and widths; "rhat" and "effective", the largest R-hat and the fewest independent
          draws that the states are worth, among the predictions of 8 training cases, [] (NaN of fewer than 8 states);
          "noise", the mean of the standard deviation of the noise, [K], in a
          regression; and for each group with relevances, as "input_hidden", the posterior mean and deviation of the
          width of the weights of each input, "relevance_input_hidden" and "relevance_sd_input_hidden", [D].
        """
        told = {"rejected": params.rejected[:, 0], "step": params.step[:, 0]}
        if self._joint:
            told |= {"joint_rejected": params.rejected[:, 1], "joint_step": params.step[:, 1]}
        told |= {"rhat": jnp.max(params.rhat), "effective": jnp.min(params.effective)}
        scales = jax.tree.map(_flat, params.states.scales)
        if not self.classifies:
            told["noise"] = jnp.mean(1 / jnp.sqrt(scales.noise), axis=0)
        for name, each in scales.each.items():
            widths = 1 / jnp.sqrt(each)
            told[f"relevance_{name}"] = jnp.mean(widths, axis=0)
            told[f"relevance_sd_{name}"] = jnp.std(widths, axis=0)
        return told

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses settings and data that do not fit.

        Raises:
          TypeError: the prior is none.
          ValueError: what was expected, what came, and what to do.
        """
        priors.check_network(self.network)
        self.network.check(data)
        if not isinstance(self.prior, Prior):
            raise TypeError(f"expected the prior of Bayes as a Prior, got {shown(self.prior)}; write learn.Prior()")
        self.prior.check()
        require_one_of("the objective of Bayes", self.objective, _OBJECTIVES)
        check_objective(self.objective, data)
        advice = "leave it out for a choice that suits networks of 20 units"
        for name, least in (("steps", 1), ("window", 1), ("blocks", 1), ("states", 1), ("chains", 1)):
            require(f"the {name} of Bayes", getattr(self, name), least, advice=advice)
        require_number("the step of Bayes", self.step, above=0, advice=advice)
        require_number("persistence", self.persistence, least=0, below=1, advice="give 0 for none")
        require_number("the share discarded", self.discarded, least=0, below=1, advice="a third is usual")
        if self.steps % self._stride or 2 * self.window > self.steps // self._stride + 1:
            raise ValueError(
                f"expected steps of Bayes in multiples of {self._stride}, with two windows in a trajectory, got "
                f"steps={self.steps} for window={self.window} and blocks={self.blocks}; give at least "
                f"steps={(2 * self.window - 1) * self._stride}"
            )
        require_number("joint", self.joint, least=0, advice="give 0 for none, or 0.2")
        least = 3 * (self.steps + self._joint)
        advice = f"let there be many trajectories (steps={self.steps} and {self._joint} joint ones are one)"
        require("the passes of Bayes", self.passes, least, advice=advice)

    def _predictions(self, net: Any, inputs: Float[Array, "D m"]) -> Float[Array, "K m"]:
        """Of one network, at cases [D, m]."""
        return Objective(self.objective).predictions(self.network.forward(net, inputs).outputs)

    @property
    def _stride(self) -> int:
        """Leapfrog steps of a round."""
        return 1 if self.blocks == 1 else 2

    @property
    def _joint(self) -> int:
        """Leapfrog steps of a trajectory of weights and widths; none if all widths are known."""
        if not self.joint or not self.prior.has_unknown_widths(self.network):
            return 0
        return self._stride * max(1, round(self.joint * self.steps / self._stride))

    @property
    def _windows(self) -> tuple[int, int]:
        """Windows of trajectories of weights, and of weights and widths: shorter ones if these have fewer steps."""
        return self.window, max(1, min(self.window, self.window * self._joint // self.steps))

    def _run(self, key: Key, cases: Cases) -> tuple[_Chain, State]:
        """A chain at its end, and its kept states, [S]."""
        groups = self.groups(cases.x.shape[1], cases.y.shape[1])
        dtype, outputs = cases.x.dtype, 0 if self.classifies else cases.y.shape[1]
        params = priors.tree_of(groups, lambda group: jnp.zeros(group.shape, dtype))
        scales = priors.filled(groups, self.prior.noise, outputs, _FIRST_WIDTH, dtype)
        momentum = jax.tree.map(jnp.zeros_like, params)
        factors = [1.0, _JOINT_STEP] if self._joint else [1.0]
        log_step = jnp.log(self.step * jnp.asarray(factors, dtype))
        none_rejected, seen = jnp.zeros(len(factors), jnp.int32), joints.nothing_seen(groups, dtype)
        chain = _Chain(State(params, scales), momentum, seen, log_step, log_step, none_rejected, jnp.zeros((), dtype))
        _, discarded, between, kept = self.trajectories

        def visit(chain: _Chain, interval: Array) -> tuple[_Chain, State]:
            chain = lax.fori_loop(
                interval[0], interval[1], lambda number, chain: self._next(key, number, chain, cases, groups), chain
            )
            return chain, chain.state

        ends = jnp.arange(kept + 1, dtype=jnp.int32) * between + discarded
        begins = jnp.concatenate([jnp.zeros(1, jnp.int32), ends[:-1]])
        chain, states = lax.scan(visit, chain, jnp.stack([begins, ends], axis=1))
        return chain, jax.tree.map(lambda a: a[1:], states)

    def _next(self, key: Key, number: Any, chain: _Chain, cases: Cases, groups: tuple[Group, ...]) -> _Chain:
        """The chain after new precisions and one trajectory."""
        first, discarded, _, _ = self.trajectories
        fixed = number < first
        state, travelled = self.transition(
            jax.random.fold_in(key, number),
            chain.state,
            chain.momentum,
            jnp.exp(chain.log_step),
            cases,
            fixed,
            chain.seen,
        )
        adapts = number < discarded
        tried = (number + 1).astype(chain.log_step.dtype)
        probability = jnp.stack([each.probability for each in travelled])
        accepted = jnp.stack([each.accepted for each in travelled])
        log_step = chain.log_step + (probability - _WANTED) / jnp.sqrt(tried)
        # The mean over the later half is steadier than the last value: the factor that the kept part has.
        half = discarded // 2
        log_mean = jnp.where(
            number < half, log_step, chain.log_mean + (log_step - chain.log_mean) / jnp.maximum(tried - half, 1)
        )
        log_step = jnp.where(adapts, jnp.where(number == discarded - 1, log_mean, log_step), chain.log_step)
        rejected = chain.rejected + (~adapts & ~accepted).astype(jnp.int32)
        energy = jnp.where(adapts, chain.energy, jnp.maximum(chain.energy, jnp.abs(travelled[0].energy)))
        seen = chain.seen
        if self._joint:
            seen = lax.cond(adapts, lambda: self._seen_more(seen, state, cases, groups), lambda: chain.seen)
        return _Chain(state, travelled[0].momentum, seen, log_step, log_mean, rejected, energy)

    def transition(
        self,
        key: Key,
        state: State,
        momentum: Any,
        factors: Float[Array, " kinds"],
        cases: Cases,
        fixed: Any = False,
        seen: Seen | None = None,
    ) -> tuple[State, tuple[Travelled, ...]]:
        """New precisions given the weights, a trajectory of the weights, then one of weights and widths; leaves the
        posterior as it is.

        Args:
          key: consumed.
          state: weights and precisions.
          momentum: of the last trajectory of the weights; a tree like them.
          factors: of the step sizes of the first trajectory, and of the second if there is one, [1 or 2].
          cases: in blocks, x [blocks, D, n], y [blocks, K, n], w [blocks, n]; see `in_blocks`.
          fixed: whether the precisions of the weights stay as they are.
          seen: what step sizes of the second trajectory are taken from; by default what is assumed of the data.
        Returns:
          The state, and how the trajectories went.
        """
        groups = self.groups(cases.x.shape[1], cases.y.shape[1])
        random = self._random(key, state, groups)
        misfit = self.misfit_of_all(state.params, cases)
        drawn = priors.resampled(
            state, groups, self.prior.noise, misfit, jnp.sum(cases.w), random.normals[0], random.uniforms[0]
        )
        scales = chosen(jnp.asarray(fixed), state.scales._replace(noise=drawn.noise), drawn)
        kept, share = self.persistence, math.sqrt(1 - self.persistence**2)
        fresh = _like(random.normals[1], state.params)
        momentum = jax.tree.map(lambda old, new: kept * old + share * new, momentum, fresh)
        travelled = trajectory(
            self.target(scales, cases, groups),
            jax.tree.map(lambda size: factors[0] * size, self.step_sizes(scales, cases, groups)),
            state.params,
            momentum,
            self._energy(misfit, state.params, scales, groups),
            random.uniforms[1],
            self.steps // self._stride,
            self._windows[0],
        )
        state = State(travelled.position, scales)
        if not self._joint:
            return state, (travelled,)
        seen = joints.nothing_seen(groups, cases.x.dtype) if seen is None else seen
        position = joints.position_of(state, groups)
        reference = joints.reference_near(position.logs, _like(random.normals[3], position.logs))
        near = joints.scales_of(reference, scales.noise)
        sizes = joints.step_sizes(seen, near, self.curvature(near, cases, groups), groups)
        sizes = sizes._replace(logs=jax.tree.map(lambda size: jnp.where(fixed, 0, size), sizes.logs))
        target = self.joint_target(reference, scales.noise, cases, groups)
        together = trajectory(
            target,
            jax.tree.map(lambda size: factors[1] * size, sizes),
            position,
            _like(random.normals[2], position),
            target.energy(position),
            random.uniforms[2],
            self._joint // self._stride,
            self._windows[1],
        )
        return joints.state_of(together.position, groups, scales.noise), (travelled, together)

    def _seen_more(self, seen: Seen, state: State, cases: Cases, groups: tuple[Group, ...]) -> Seen:
        """With the slope of the misfit at one more state."""
        precision = self._precision(state.scales.noise)
        slope = jax.grad(lambda params: jnp.sum(precision * self.misfit_of_all(params, cases)))(state.params)
        return joints.seen_more(seen, state, slope, self.curvature(state.scales, cases, groups), groups)

    def _random(self, key: Key, state: State, groups: tuple[Group, ...]) -> _Random:
        """All random numbers of a transition, from one call, since each takes long to compile; normal numbers as
        jax.random.normal makes them, uniform ones in (0, 1).
        """
        noises = state.scales.noise.shape[0] if self.prior.noise.shape is not None else 0
        normals, uniforms = priors.numbers_needed(groups, noises)
        weights = sum(leaf.size for leaf in jax.tree.leaves(state.params))
        widths = sum(leaf.size for leaf in jax.tree.leaves(state.scales[:2]))
        windows = [2 * window + 1 for window in self._windows]
        lengths = [normals, weights, *((weights + widths, widths) if self._joint else (0, 0))]
        lengths += [uniforms, windows[0], windows[1] if self._joint else 0]
        dtype = state.scales.noise.dtype
        least = np.nextafter(np.array(-1, dtype), np.array(0, dtype))
        numbers = jax.random.uniform(key, (sum(lengths),), dtype, least, 1)
        count = sum(lengths[:4])
        numbers = jnp.concatenate([math.sqrt(2) * lax.erf_inv(numbers[:count]), (numbers[count:] + 1) / 2])
        parts: Any = tuple(jnp.split(numbers, list(itertools.accumulate(lengths[:-1]))))
        return _Random(parts[:4], parts[4:])

    def target(self, scales: Scales, cases: Cases, groups: tuple[Group, ...]) -> Target:
        """What the weights are sampled from: the posterior given the precisions, of cases [blocks, ...]."""
        precision = self._precision(scales.noise)
        decays = priors.tree_of(
            groups,
            lambda group: lax.optimization_barrier(jnp.broadcast_to(priors.precision(group, scales), group.shape)),
        )

        def energy(params: Any) -> Float[Array, ""]:
            return self._energy(self.misfit_of_all(params, cases), params, scales, groups)

        def gradient(params: Any, block: Any) -> Any:
            def energy_of_block(params: Any) -> Float[Array, ""]:
                return self.blocks * jnp.sum(precision * self.misfit(params, block_of(cases, block)))

            return jax.tree.map(lambda g, d, q: g + d * q, jax.grad(energy_of_block)(params), decays, params)

        return Target(energy, gradient, self.blocks)

    def joint_target(
        self, reference: Logs, noise: Float[Array, " K"], cases: Cases, groups: tuple[Group, ...]
    ) -> Target:
        """What weights and widths are sampled from: the posterior given the noise's precisions [K], in coordinates of
        their own.
        """
        precision = self._precision(noise)

        def energy(position: Position) -> Float[Array, ""]:
            params = joints.state_of(position, groups, noise).params
            return jnp.sum(precision * self.misfit_of_all(params, cases)) + joints.energy(position, reference, groups)

        def gradient(position: Position, block: Any) -> Any:
            def energy_of_block(position: Position) -> Float[Array, ""]:
                params = joints.state_of(position, groups, noise).params
                misfit = self.misfit(params, block_of(cases, block))
                return self.blocks * jnp.sum(precision * misfit) + joints.energy(position, reference, groups)

            return jax.grad(energy_of_block)(position)

        return Target(energy, gradient, self.blocks)

    def _precision(self, noise: Float[Array, " noises"]) -> Float[Array, " outputs"]:
        """What a misfit is multiplied by."""
        return jnp.ones(1, noise.dtype) if self.classifies else noise

    def _energy(
        self, misfit: Float[Array, " K"], params: Any, scales: Scales, groups: tuple[Group, ...]
    ) -> Float[Array, ""]:
        return jnp.sum(self._precision(scales.noise) * misfit) + priors.energy(params, groups, scales)

    def misfit(self, params: Any, cases: Cases) -> Float[Array, " K"]:
        """What the targets of some cases, x [D, n], y [K, n], w [n], cost in units of the noise: half the sum of
        squared errors of each output, [K], or minus the log likelihood of classes, [1].
        """
        outputs = self.network.forward(params, cases.x).outputs
        if self.classifies:
            return (Objective(self.objective).losses(outputs, cases.y) @ cases.w)[None]
        return jnp.square(outputs - cases.y) @ cases.w / 2

    def misfit_of_all(self, params: Any, cases: Cases) -> Float[Array, " K"]:
        """The same of all blocks, x [blocks, D, n]; [K] or [1]."""
        if self.blocks == 1:
            return self.misfit(params, block_of(cases, 0))
        outputs = 1 if self.classifies else cases.y.shape[1]
        return lax.fori_loop(
            0,
            self.blocks,
            lambda block, total: total + self.misfit(params, block_of(cases, block)),
            jnp.zeros(outputs, cases.x.dtype),
        )

    def step_sizes(self, scales: Scales, cases: Cases, groups: tuple[Group, ...]) -> Any:
        """The step of every weight, but for the step factor: a tree like the parameters, of arrays that broadcast to
        them. A weight of precision a has a second derivative of about a plus its curvature.
        """
        curvature = self.curvature(scales, cases, groups)
        return priors.tree_of(groups, lambda group: lax.rsqrt(priors.precision(group, scales) + curvature[group.name]))

    def curvature(self, scales: Scales, cases: Cases, groups: tuple[Group, ...]) -> dict[str, Array]:
        """Second derivatives of the misfit that the step sizes assume, of each group: arrays that broadcast to it.

        Of a weight whose source has squares that sum to S, on the way to noise of precision t, it is S t: squares of
        hidden units sum to N min(1, variance of what they read), those of biases to N.
        """
        total, squares = jnp.sum(cases.w), jnp.einsum("kdn,kn->d", jnp.square(cases.x), cases.w)
        noise = jnp.full(cases.y.shape[1], 0.25, cases.x.dtype) if self.classifies else scales.noise
        by_name = {group.name: priors.precision(group, scales) for group in groups}
        hidden = jnp.sum(noise) / by_name["hidden_output"][0]  # of each hidden unit, or of all
        read = jnp.sum(squares[None] / by_name["input_hidden"]) / jnp.maximum(total, 1)
        spread = jnp.minimum(1, 1 / by_name["hidden_bias"] + read)
        return {
            "input_hidden": squares[None] * hidden[:, None],
            "hidden_bias": total * hidden,
            "hidden_output": total * spread[None] * noise[:, None],
            "output_bias": total * noise,
            "direct": squares[None] * noise[:, None],
        }


def _flat(a: Array) -> Array:
    """Arrays [C, S, ...] as [C S, ...]."""
    return a.reshape(a.shape[0] * a.shape[1], *a.shape[2:])


def _like(numbers: Array, tree: Any) -> Any:
    """Numbers [p] in the shapes of a tree of arrays."""
    leaves, structure = jax.tree.flatten(tree)
    parts = jnp.split(numbers, list(itertools.accumulate(leaf.size for leaf in leaves[:-1])))
    return jax.tree.unflatten(structure, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)])
