"""Priors of networks: normal weights whose widths are themselves unknown, in groups, and relevances of inputs.

A precision is 1 / variance. "Gamma of mean m and shape a" stands here, as in Neal's work, for a density in proportion
to p^(a/2 - 1) exp(-p a / (2 m)): a is twice the usual shape, and counts like cases.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from jaxgen.learn.bayes.draws import GAMMA_ATTEMPTS, TOP_ATTEMPTS, log_top_precision, standard_gamma
from jaxgen.learn.network.nets import MLP
from jaxgen.types import Key
from jaxgen.types.keys import stream
from jaxgen.types.numbers import require, require_flag, require_number, shown
from jaxgen.types.value import Value


@dataclass(frozen=True, repr=False)
class Width(Value):
    """The width of a group of weights: normal with mean 0 and a standard deviation that is known, unknown, or unknown
    for each input by itself.

    `Width(0.2, shape=0.5, relevance=1, by_sources=True)` is what Neal's programs write x0.2:0.5:1.

    Attributes:
      width: W, a standard deviation. The precision of the group has the mean 1 / W^2.
      shape: of the gamma law of that precision; None fixes it. Less is vaguer: 0.5 allows widths over several powers
        of ten.
      relevance: of weights that read inputs (or hidden units): each input has a precision of its own, gamma of this
        shape around that of the group. An input with a high precision does not matter ("automatic relevance
        determination"). None has one precision for all.
      by_sources: W is divided by the root of n, the number of inputs (or hidden units) that are read, so that the sum
        over them keeps its width when there are more. With relevances a few of the inputs must be able to make up
        the sum, so n becomes n r / (r - 2) for a relevance r above 2, n ln n for 2 (n below 3 inputs), n^(2/r) below 2.
    """

    width: int | float = 1.0
    shape: int | float | None = None
    relevance: int | float | None = None
    by_sources: bool = False

    def at(self, sources: int) -> float:
        """The width of a group that reads so many inputs or hidden units."""
        return self.width / math.sqrt(self._count(sources)) if self.by_sources else float(self.width)

    def _count(self, sources: int) -> int | float:
        if self.relevance is None:
            return sources
        if self.relevance > 2:
            return sources * self.relevance / (self.relevance - 2)
        if self.relevance == 2:
            return sources * math.log(sources) if sources >= 3 else sources
        return sources ** (2 / self.relevance)

    def check(self, name: str) -> None:
        """Refuses numbers that are no widths or shapes.

        Raises:
          ValueError: one of them is not above 0.
        """
        require_number(f"the width of {name}", self.width, above=0, advice="give a standard deviation")
        for part, shape in (("shape", self.shape), ("relevance", self.relevance)):
            if shape is not None:
                advice = "give a number such as 0.5, or None for a fixed width"
                require_number(f"the {part} of {name}", shape, above=0, advice=advice)
        require_flag(f"by_sources of {name}", self.by_sources)


class Scales(NamedTuple):
    """The unknown precisions of a prior.

    Attributes:
      common: of each group whose width is unknown, [].
      each: of each input of a group with relevances, [sources].
      noise: of each output, [K]; none in a classification.
    """

    common: dict[str, Float[Array, ""]]
    each: dict[str, Float[Array, " sources"]]
    noise: Float[Array, " K"]


class State(NamedTuple):
    """A network with the precisions of its prior: what a chain visits.

    Attributes:
      params: weights and biases; see `MLP`.
      scales: precisions.
    """

    params: PyTree
    scales: Scales


class Group(NamedTuple):
    """Weights under one width: those of `params[layer][part]`, which read so many sources.

    Attributes:
      name: of the attribute of `Prior`.
      layer, part: where the weights are.
      shape: of the array, the sources last; of biases, the units.
      width: its prior.
    """

    name: str
    layer: str
    part: str
    shape: tuple[int, ...]
    width: Width

    @property
    def sources(self) -> int:
        """How many inputs or hidden units it reads; 1 for biases."""
        return self.shape[-1] if self.part == "kernel" else 1

    @property
    def size(self) -> int:
        """How many weights there are."""
        return math.prod(self.shape)


_INPUTS = Width(0.2, shape=0.5, relevance=1.0, by_sources=True)


@dataclass(frozen=True, repr=False)
class Prior(Value):
    """The prior of a network with one hidden layer, and of the noise of its targets.

    The defaults are in the style of the examples of Neal's programs, for inputs and targets of about unit width, as
    `Normalised` makes them. His paper says which groups his methods have, not how wide they are.

    Attributes:
      input_hidden: weights from inputs to hidden units.
      hidden_bias: biases of the hidden units.
      hidden_output: weights from hidden units to outputs.
      output_bias: biases of the outputs; no relevances.
      direct: weights from inputs to outputs, in a network with `skip`.
      noise: standard deviation of normal noise, of each output by itself; no relevances. Without meaning in a
        classification.
    """

    input_hidden: Width = _INPUTS
    hidden_bias: Width = Width(0.05, shape=0.5)
    hidden_output: Width = Width(0.05, shape=0.5, by_sources=True)
    output_bias: Width = Width(1.0)
    direct: Width = _INPUTS
    noise: Width = Width(0.05, shape=0.5)

    def groups(self, network: MLP, inputs: int, outputs: int) -> tuple[Group, ...]:
        """The groups of the weights of a network, in the order of the attributes."""
        hidden = network.hidden[0]
        found = (
            Group("input_hidden", "hidden_0", "kernel", (hidden, inputs), self.input_hidden),
            Group("hidden_bias", "hidden_0", "bias", (hidden,), self.hidden_bias),
            Group("hidden_output", "output", "kernel", (outputs, hidden), self.hidden_output),
            Group("output_bias", "output", "bias", (outputs,), self.output_bias),
        )
        direct = Group("direct", "skip", "kernel", (outputs, inputs), self.direct)
        return (*found, direct) if network.skip else found

    def has_unknown_widths(self, network: MLP) -> bool:
        """Whether there are weights whose width is not given."""
        return any(
            group.width.shape is not None or group.width.relevance is not None for group in self.groups(network, 1, 1)
        )

    def sample(self, key: Key, network: MLP, inputs: int, draws: int, outputs: int = 1, noise: bool = True) -> State:
        """Networks drawn from the prior, for prior predictive checks: what functions does it think of?

        `jax.vmap(lambda params: network.forward(params, x.T).outputs.T)(drawn.params)` are their outputs at cases x
        [n, D], [draws, n, K].

        Args:
          key: consumed.
          network: an `MLP` with one hidden layer.
          inputs, outputs: D and K.
          draws: how many networks, S.
          noise: whether the targets have noise; False for a classification.
        Returns:
          State, every array with a leading axis [S].
        Raises:
          ValueError: the prior or the network is none that this is for.
        """
        self.check()
        check_network(network)
        for name, count in (("inputs", inputs), ("outputs", outputs), ("draws", draws)):
            require(name, count, 1)
        groups = self.groups(network, inputs, outputs)
        draw = jax.vmap(lambda each: _drawn(each, groups, self.noise, outputs if noise else 0))
        return jax.jit(draw)(jax.random.split(key, draws))

    def check(self) -> None:
        """Refuses what is no prior.

        Raises:
          TypeError: an attribute is no `Width`.
          ValueError: a width or shape is not above 0, or there are relevances where nothing is read.
        """
        for field in fields(self):
            width = getattr(self, field.name)
            if not isinstance(width, Width):
                raise TypeError(
                    f"expected {field.name} of a Prior as a Width, got {shown(width)}; write for example "
                    "learn.Width(0.2, shape=0.5)"
                )
            width.check(field.name)
            if field.name in ("hidden_bias", "output_bias", "noise") and (width.relevance or width.by_sources):
                raise ValueError(
                    f"expected {field.name} without relevance and by_sources, since it reads no inputs, got "
                    f"{shown(width)}; leave them out"
                )


def check_network(network: Any) -> None:
    """Refuses networks that there is no prior for.

    Raises:
      ValueError: it is no `MLP` with one hidden layer, or draws random numbers or standardises batches.
    """
    plain = isinstance(network, MLP) and isinstance(network.hidden, tuple) and len(network.hidden) == 1
    if not plain or network.random or network.batch_norm:
        raise ValueError(
            "expected an MLP with one hidden layer, without dropout, noise and batch_norm, got "
            f"{shown(network)}; write for example learn.MLP(hidden=(20,))"
        )


def precision(group: Group, scales: Scales) -> Array:
    """Precision of the weights of a group: an array that broadcasts to them, [1, sources] with relevances."""
    value = scales.each[group.name] if group.name in scales.each else top_precision(group, scales)
    value = jnp.asarray(value, scales.noise.dtype)
    return value.reshape((1,) * (len(group.shape) - value.ndim) + value.shape)


def top_precision(group: Group, scales: Scales) -> Any:
    """Precision around which those of the sources lie: a number or []."""
    return scales.common[group.name] if group.name in scales.common else 1 / group.width.at(group.sources) ** 2


def filled(groups: tuple[Group, ...], noise: Width, outputs: int, width: float, dtype: Any) -> Scales:
    """Scales that are all of one width; `outputs` is 0 in a classification."""
    value = 1 / width**2
    return Scales(
        {group.name: jnp.full((), value, dtype) for group in groups if group.width.shape is not None},
        {group.name: jnp.full(group.sources, value, dtype) for group in groups if group.width.relevance is not None},
        jnp.full(outputs, value if noise.shape is not None else 1 / noise.width**2, dtype),
    )


def energy(params: PyTree, groups: tuple[Group, ...], scales: Scales) -> Float[Array, ""]:
    """Minus the log density of the weights given their precisions, but for what does not depend on the weights; []."""
    terms = (jnp.sum(jnp.square(params[g.layer][g.part]) * precision(g, scales)) / 2 for g in groups)
    return sum(terms, start=jnp.zeros((), scales.noise.dtype))


def tree_of(groups: tuple[Group, ...], values: Callable[[Group], Array]) -> PyTree:
    """A tree like the parameters of a network, with the array [...] that a function gives for each group."""
    tree: dict[str, dict[str, Array]] = {}
    for group in groups:
        tree.setdefault(group.layer, {})[group.part] = values(group)
    return tree


def numbers_needed(groups: tuple[Group, ...], noises: int) -> tuple[int, int]:
    """How many normal numbers and how many uniform ones `resampled` takes."""
    gammas = noises + sum(_gammas(group) for group in groups)
    return gammas * GAMMA_ATTEMPTS, gammas * (GAMMA_ATTEMPTS + 1) + len(_tops(groups)) * TOP_ATTEMPTS * 2


def resampled(
    state: State,
    groups: tuple[Group, ...],
    noise: Width,
    misfit: Float[Array, " K"],
    cases: Float[Array, ""],
    normals: Float[Array, " normals"],
    uniforms: Float[Array, " uniforms"],
) -> Scales:
    """All precisions, each drawn from its law given the weights and the others (Gibbs sampling).

    First the noise, the groups and the inputs, which do not depend on each other, then the precisions around which
    those of the inputs lie, given these. Precisions of normal weights are gamma: of n weights under one precision
    with shape a and width W, shape a + n and mean (a + n) / (a W^2 + sum w^2).

    Args:
      state: weights and precisions.
      groups: of the weights.
      noise: prior of the noise.
      misfit: half the sum of squared errors of each output, [K].
      cases: sum of the weights of the cases, N; [].
      normals, uniforms: random numbers, as many as `numbers_needed` says; uniform ones in (0, 1).
    Returns:
      Scales.
    """
    params, scales = state
    dtype, noises = misfit.dtype, scales.noise.shape[0]
    shapes, rates, before = [], [], []  # of gamma variables
    if noises and noise.shape is not None:
        shapes.append(jnp.broadcast_to(noise.shape + cases, (noises,)))
        rates.append(noise.shape * noise.width**2 + 2 * misfit)
        before.append(scales.noise)
    for group in groups:
        if group.width.relevance is not None:
            squares = jnp.square(params[group.layer][group.part]).reshape(-1, group.sources)
            shapes.append(jnp.full(group.sources, group.width.relevance + group.size // group.sources, dtype))
            rates.append(group.width.relevance / top_precision(group, scales) + jnp.sum(squares, axis=0))
            before.append(scales.each[group.name])
        elif group.width.shape is not None:
            squares = jnp.square(params[group.layer][group.part])
            shapes.append(jnp.full(1, group.width.shape + group.size, dtype))
            rates.append(group.width.shape * group.width.at(group.sources) ** 2 + jnp.sum(squares)[None])
            before.append(scales.common[group.name][None])
    if not shapes:
        return scales
    gammas = sum(map(len, shapes))
    ends = gammas * (GAMMA_ATTEMPTS + 1)
    value, drawn = standard_gamma(
        jnp.concatenate(shapes) / 2,
        normals.reshape(gammas, GAMMA_ATTEMPTS),
        uniforms[:ends].reshape(gammas, GAMMA_ATTEMPTS + 1),
    )
    found = jnp.where(drawn, 2 * value / jnp.concatenate(rates), jnp.concatenate(before))
    parts = iter(_split(found, list(map(len, shapes))))
    found_noise = next(parts) if noises and noise.shape is not None else scales.noise
    common, each = dict(scales.common), dict(scales.each)
    for group in groups:
        if group.width.relevance is not None:
            each[group.name] = next(parts)
        elif group.width.shape is not None:
            common[group.name] = next(parts)[0]
    tops = _tops(groups)
    if tops:
        values = _resampled_tops(tops, common, each, uniforms[ends:].reshape(len(tops), TOP_ATTEMPTS, 2))
        common |= {group.name: values[number] for number, group in enumerate(tops)}
    return Scales(common, each, found_noise)


def _resampled_tops(
    tops: tuple[Group, ...], common: dict[str, Array], each: dict[str, Array], uniforms: Float[Array, "G attempts 2"]
) -> Float[Array, " G"]:
    """Precisions around which those of the inputs lie, [G].

    Of D inputs with precisions p_i, the log density of l = ln T is l (a0 - D a1) / 2 - T a0 W^2 / 2 - a1 sum p_i / (2
    T).
    """
    dtype = uniforms.dtype
    shapes = [(float(group.width.shape or 0), float(group.width.relevance or 0), group) for group in tops]
    slope = jnp.asarray([(a0 - group.sources * a1) / 2 for a0, a1, group in shapes], dtype)
    up = jnp.asarray([a0 * group.width.at(group.sources) ** 2 / 2 for a0, _, group in shapes], dtype)
    down = jnp.stack([a1 * jnp.sum(each[group.name]) / 2 for _, a1, group in shapes])
    value, drawn = log_top_precision(slope, up, down, uniforms)
    return jnp.where(drawn, jnp.exp(value), jnp.stack([common[group.name] for group in tops]))


def _gammas(group: Group) -> int:
    """How many precisions of a group are gamma given the weights."""
    if group.width.relevance is not None:
        return group.sources
    return int(group.width.shape is not None)


def _tops(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """Groups with relevances around an unknown precision."""
    return tuple(group for group in groups if group.width.relevance is not None and group.width.shape is not None)


def _drawn(key: Key, groups: tuple[Group, ...], noise: Width, outputs: int) -> State:
    """One network from the prior."""
    dtype = jax.dtypes.canonicalize_dtype(float)
    shapes = [group.width.shape or 1.0 for group in groups]
    shapes += [group.width.relevance or 1.0 for group in groups for _ in range(group.sources)]
    shapes = jnp.asarray([*shapes, *[noise.shape or 1.0] * outputs], dtype)
    # In logarithms, since small shapes give tiny numbers; all at once, since a call takes long to compile.
    gammas = jax.random.loggamma(stream(key, "precisions"), shapes / 2, dtype=dtype) - jnp.log(shapes / 2)
    tops, eaches, noises = _split(gammas, [len(groups), sum(group.sources for group in groups), outputs])
    normals = jax.random.normal(stream(key, "weights"), (sum(group.size for group in groups),), dtype)
    common, each, weights = {}, {}, {}
    parts = zip(
        groups,
        tops,
        _split(eaches, [g.sources for g in groups]),
        _split(normals, [g.size for g in groups]),
        strict=True,
    )
    for group, top, of_sources, numbers in parts:
        log_precision = jnp.asarray(-2 * math.log(group.width.at(group.sources)), dtype)
        if group.width.shape is not None:
            log_precision = log_precision + top
            common[group.name] = jnp.exp(log_precision)
        if group.width.relevance is not None:
            log_precision = log_precision + of_sources
            each[group.name] = jnp.exp(log_precision)
        spread = jnp.exp(-log_precision / 2)
        spread = spread.reshape((1,) * (len(group.shape) - spread.ndim) + spread.shape)
        weights[group.name] = numbers.reshape(group.shape) * spread
    unknown = noises if noise.shape is not None else jnp.zeros_like(noises)
    scales = Scales(common, each, jnp.exp(unknown) / noise.width**2)
    return State(tree_of(groups, lambda group: weights[group.name]), scales)


def _split(values: Array, lengths: list[int]) -> list[Array]:
    """The parts of values [n] that have these lengths."""
    return jnp.split(values, list(itertools.accumulate(lengths[:-1])))
