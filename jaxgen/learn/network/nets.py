"""Networks: multilayer perceptrons, one per task, or any flax module of the user's.

Inside, cases are the last axis ([D, n], [H, n]) and weights are [out, in]: with hundreds of networks at once that is
two to three times as fast on a CPU as the usual [n, H], because every elementwise loop then runs along the long axis.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jaxgen.learn.network.activations import activation_of
from jaxgen.types import Data, Key
from jaxgen.types.devices import in_full_precision
from jaxgen.types.keys import several
from jaxgen.types.numbers import first_line, require, require_flag, require_number, shown
from jaxgen.types.value import Value

_WORTH_TURNING = 24
"""Inputs from which on the gradient by their weights is found faster from inputs [n, D] than from [D, n], which the
product would turn by itself in every step, where each network has cases of its own: on a CPU in 45 to 95 % of the time.
One product for all networks that share their cases gains nothing.
"""

Inputs = Float[Array, "D n"]
Weights = Float[Array, " n"]


class Forward(NamedTuple):
    """A forward pass: outputs [K, n], hidden activations (each [..., H, n]), and the statistics of batch
    normalisation.
    """

    outputs: Float[Array, "K n"]
    hidden: tuple[Array, ...]
    statistics: PyTree


@runtime_checkable
class Network(Protocol):
    """What `Descent` and `Conjugate` ask of a network; MLP and PerTask are such, a flax module becomes one."""

    @property
    def input_layers(self) -> tuple[str, ...]:
        """Names of the layers whose weights read the inputs, for `relevance`."""
        ...

    @property
    def random(self) -> bool:
        """Whether training draws random numbers."""
        ...

    def start(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"]) -> PyTree:
        """Start parameters of a network with D inputs and K outputs."""
        ...

    def forward(
        self, params: PyTree, x: Inputs, w: Weights | None = None, statistics: PyTree = None, key: Key | None = None
    ) -> Forward:
        """Outputs [K, n] of cases [D, n].

        Batches are standardised by the cases of weight `w` where it is given (training), else by `statistics`; units
        are dropped and noise is added where a `key` is given.
        """
        ...

    def check(self, data: Data) -> None:
        """Refuses what cannot be run."""
        ...


def _uniform_tree(key: Key, shapes: PyTree, half_width: float) -> PyTree:
    """Numbers uniform in (-a, a) in the shapes of a tree, but ones for scales; all from one draw, since compiling one
    for each array takes long.
    """
    leaves, tree = jax.tree_util.tree_flatten_with_path(shapes)
    ends = np.cumsum([math.prod(leaf.shape) for _, leaf in leaves])
    numbers = jnp.split(jax.random.uniform(key, (ends[-1],), leaves[0][1].dtype, -half_width, half_width), ends[:-1])
    parts = [
        jnp.ones_like(part) if path[-1].key == "scale" else part.reshape(leaf.shape)
        for part, (path, leaf) in zip(numbers, leaves, strict=True)
    ]
    return jax.tree.unflatten(tree, parts)


def _scaled(scale: float, mode: str) -> Callable[..., Array]:
    """The numbers of `jax.nn.initializers.variance_scaling`, uniform, for weights [out, in]; drawn as one row, which
    compiles in a third of the time.
    """

    def drawn(key: Key, shape: tuple[int, int], dtype: Any) -> Float[Array, "o i"]:
        fan = {"fan_in": shape[1], "fan_avg": sum(shape) / 2}[mode]
        row = jax.random.uniform(key, (math.prod(shape),), dtype, -1)
        return row.reshape(shape) * jnp.sqrt(3 * jnp.asarray(scale / fan, dtype))

    return drawn


_STARTS = {"glorot": (1.0, "fan_avg"), "lecun": (1.0, "fan_in"), "he": (2.0, "fan_in")}


@jax.custom_vjp
def _product(kernel: Float[Array, "H D"], x: Float[Array, "D n"], turned: Float[Array, "n D"]) -> Float[Array, "H n"]:
    """kernel @ x, where the inputs are constants, of which there is a copy turned to [n, D] for the gradient."""
    return kernel @ x


def _product_and_inputs(kernel: Array, x: Array, turned: Array) -> tuple[Array, tuple[Array, Array]]:
    return kernel @ x, (x, turned)


def _slopes(inputs: tuple[Array, Array], slope: Float[Array, "H n"]) -> tuple[Array, None, None]:
    return _slope_by_kernel(slope, *inputs), None, None


_product.defvjp(_product_and_inputs, _slopes)


def _by_inputs(slope: Float[Array, "H n"], x: Float[Array, "D n"], turned: Float[Array, "n D"]) -> Float[Array, "H D"]:
    return jnp.einsum("hn,dn->hd", slope, x)


def _by_turned(slope: Float[Array, "H n"], x: Float[Array, "D n"], turned: Float[Array, "n D"]) -> Float[Array, "H D"]:
    return slope @ turned


@jax.custom_batching.custom_vmap
def _slope_by_kernel(
    slope: Float[Array, "H n"], x: Float[Array, "D n"], turned: Float[Array, "n D"]
) -> Float[Array, "H D"]:
    """slope @ x', by the inputs turned where networks that run together have cases of their own."""
    return _by_inputs(slope, x, turned)


@_slope_by_kernel.def_vmap
def _slopes_by_kernels(rows: int, batched: list[bool], slope: Array, x: Array, turned: Array) -> tuple[Array, bool]:
    axes = [0 if each else None for each in batched]
    return jax.vmap(_by_turned if batched[1] else _by_inputs, axes)(slope, x, turned), True


@jax.custom_jvp
def _plus_bias(product: Float[Array, "H n"], bias: Float[Array, "H 1"], ones: Float[Array, "1 n"]) -> Array:
    """product + bias. Its gradient by the bias is a product with ones, which on a CPU takes less time than a sum over
    the cases; they must be ones that XLA takes for numbers it does not know, else it makes a sum of the product.
    """
    return product + bias


@_plus_bias.defjvp
def _plus_bias_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    (product, bias, ones), (change, change_of_bias, _) = primals, tangents
    return product + bias, change + change_of_bias @ ones


class _Dense(nn.Module):
    """kernel [out, in] @ x [in, n] + bias [out]; of constant inputs there may be a copy `turned`, [n, in].

    Where cases have weights [n], the gradient by the bias is a product, see `_plus_bias`.
    """

    width: int
    start: float | str
    bias: bool = True

    @nn.compact
    def __call__(self, x: Array, w: Array | None, turned: Array | None = None) -> Array:
        weights = _scaled(*_STARTS[self.start]) if isinstance(self.start, str) else nn.initializers.zeros
        kernel = self.param("kernel", weights, (self.width, x.shape[0]), x.dtype)
        product = kernel @ x if turned is None else _product(kernel, x, turned)
        if not self.bias:
            return product
        bias = self.param("bias", nn.initializers.zeros, (self.width,), x.dtype)[:, None]
        return product + bias if w is None else _plus_bias(product, bias, (w >= 0).astype(x.dtype)[None])


class _BatchNorm(nn.Module):
    """Standardises each unit over the cases of positive weight, or by given statistics, then scales and shifts it."""

    epsilon: float = 1e-5

    @nn.compact
    def __call__(self, x: Array, w: Array | None, statistics: Any) -> tuple[Array, Any]:
        if w is not None:
            share = w / jnp.maximum(jnp.sum(w), 1)
            mean = x @ share
            statistics = (mean, jnp.square(x - mean[:, None]) @ share)
        mean, variance = statistics
        scale = self.param("scale", nn.initializers.ones, (len(x),), x.dtype) * jax.lax.rsqrt(variance + self.epsilon)
        return (x - mean[:, None]) * scale[:, None] + self.param("bias", nn.initializers.zeros, (len(x),), x.dtype)[
            :, None
        ], statistics


class _Layers(nn.Module):
    """The flax module of an MLP with a known number of outputs."""

    mlp: "MLP"
    outputs: int

    @nn.compact
    def __call__(self, x: Array, w: Array | None, statistics: Any, key: Any, turned: Array | None = None) -> Forward:
        mlp = self.mlp
        activation = activation_of(mlp.activation)
        h, hidden, statistics_seen = self._disturbed(x, 0, w, key), [], []
        direct, turned = h, turned if h is x else None
        for number, width in enumerate(mlp.hidden):
            h = _Dense(width, mlp.init, name=f"hidden_{number}")(h, w, turned if h is x else None)
            if mlp.batch_norm:
                h, seen = _BatchNorm(name=f"norm_{number}")(h, w, None if w is not None else statistics[number])
                statistics_seen.append(seen)
            h = activation(h)
            hidden.append(h)
            h = self._disturbed(h, number + 1, w, key)
        outputs = _Dense(self.outputs, mlp.init, name="output")(h, None, turned if h is x else None)
        if mlp.skip:
            outputs = outputs + _Dense(self.outputs, mlp.init, bias=False, name="skip")(direct, w, turned)
        return Forward(outputs, tuple(hidden), tuple(statistics_seen))

    def _disturbed(self, h: Array, layer: int, w: Array | None, key: Any) -> Array:
        """Activations [H, n] of a layer (0: the inputs) with noise added and units dropped, in training only."""
        if key is None:
            return h
        noise, dropout = _level(self.mlp.noise, layer, layer == 0), _level(self.mlp.dropout, layer, layer > 0)
        noise_key, dropout_key = several(jax.random.fold_in(key, layer), 2)
        if noise:
            h = h + noise * _normal_of_cases(noise_key, h, w)
        if dropout:
            kept = jax.random.bernoulli(dropout_key, 1 - dropout, (len(h),))
            h = jnp.where(kept[:, None], h / (1 - dropout), 0)
        return h


@partial(jax.jit, static_argnums=0, inline=True)
def _applied(
    mlp: "MLP", params: PyTree, x: Array, w: Array | None, statistics: Any, key: Any, turned: Array | None
) -> Forward:
    """See `MLP.forward`. Flax takes 10 ms to trace a network, of which a training makes a dozen; JAX remembers this one
    for cases of the same shape.
    """
    layers: Any = _Layers(mlp, len(params["output"]["bias"]))
    with in_full_precision():
        return layers.apply({"params": params}, x, w, statistics, key, turned)


def _level(values: float | tuple[float, ...], layer: int, single: bool) -> float:
    """The value of a layer: its own of several, or the only one if it is meant for this layer."""
    if isinstance(values, tuple):
        return values[layer] if layer < len(values) else 0.0
    return values if single else 0.0


def _normal_of_cases(key: Key, h: Float[Array, "H n"], w: Any) -> Float[Array, "H n"]:
    """Standard normal numbers; those of a case depend on its place among the cases of positive weight, so absent cases
    change nothing.
    """
    return jax.vmap(lambda place: jax.random.normal(jax.random.fold_in(key, place), (len(h),), h.dtype), out_axes=1)(
        jnp.cumsum(w > 0)
    )


@dataclass(frozen=True, repr=False)
class MLP(Value):
    """A multilayer perceptron with linear outputs, as many as the data have.

    Its parameters are {"hidden_0": {"kernel" [H, D], "bias" [H]}, ..., "output": {"kernel" [K, H], "bias" [K]}}, with
    "skip" {"kernel" [K, D]} for direct connections and "norm_0" {"scale" [H], "bias" [H]}, ... for batch normalisation.

    Attributes:
      hidden: units of each hidden layer; () makes a linear model.
      activation: the name of a function of `jax.nn`, or a function of an array.
      skip: direct connections from the inputs to the outputs.
      dropout: share of hidden units that an iteration leaves out, one draw an iteration for all cases; or a share per
        layer, the inputs first. The others are divided by the share kept, so predictions need no factor
        (Scott & Variyam, "Dropout", who rescale after training instead).
      batch_norm: standardises every hidden unit before its activation over the training cases of positive weight;
        predictions use the statistics of the training cases under the final weights (Ioffe & Szegedy 2015; Scott &
        Variyam, "Batch normalization").
      noise: standard deviation of normal noise added to the inputs in every iteration, in units of the inputs as the
        network sees them; or one per layer, the inputs first and then the activations of each hidden layer (Scott &
        Variyam, "Data augmentation").
      init: start of the parameters: a number a for all of them uniform in (-a, a) (Neal 1998), or "glorot", "lecun",
        "he" for weights by their fan-in and biases 0.
    """

    hidden: tuple[int, ...] = (20,)
    activation: str | Callable[[Array], Array] = "tanh"
    skip: bool = False
    dropout: float | tuple[float, ...] = 0.0
    batch_norm: bool = False
    noise: float | tuple[float, ...] = 0.0
    init: float | str = 0.01

    @property
    def input_layers(self) -> tuple[str, ...]:
        """Layers that read the inputs."""
        return ("hidden_0" if self.hidden else "output", *(("skip",) if self.skip else ()))

    @property
    def random(self) -> bool:
        """Whether training draws random numbers."""
        return bool(self.noise or self.dropout)

    def start(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"]) -> PyTree:
        """Start parameters of a network with D inputs and K outputs."""

        def drawn(key, x):
            return _Layers(self, y.shape[1]).init(key, x, jnp.ones(1, x.dtype), None, None)["params"]

        return (
            _uniform_tree(key, jax.eval_shape(drawn, key, x[:1].T), float(self.init))
            if isinstance(self.init, float | int)
            else drawn(key, x[:1].T)
        )

    def forward(
        self,
        params: PyTree,
        x: Inputs,
        w: Weights | None = None,
        statistics: PyTree = None,
        key: Key | None = None,
        turned: Float[Array, "n D"] | None = None,
    ) -> Forward:
        """Outputs [K, n], hidden activations and statistics of cases [D, n]; of inputs that are constants, a copy
        turned to [n, D] may make gradients faster.
        """
        return _applied(self, params, x, w, statistics, key, turned)

    def on_data_units(self, params: PyTree, centre: Float[Array, " D"], scale: Float[Array, " D"]) -> PyTree:
        """Parameters with which the network makes of inputs x what it makes of (x - centre) / scale, [D] each, with
        these; not of noise on inputs.
        """
        changed = {name: dict(layer) for name, layer in params.items()}
        for name, biased in zip(self.input_layers, ("hidden_0" if self.hidden else "output", "output"), strict=False):
            kernel = params[name]["kernel"] / scale[None]
            changed[name]["kernel"] = kernel
            changed[biased]["bias"] = changed[biased]["bias"] - jnp.matmul(kernel, centre, precision="highest")
        return changed

    def check(self, data: Data) -> None:
        """Refuses what cannot be built.

        Raises:
          ValueError: no such activation or start, a layer without units, a share outside [0, 1), too many numbers per
            layer, or settings of another kind.
        """
        if not isinstance(self.hidden, tuple):
            raise ValueError(
                f"expected hidden as a tuple with the units of every layer, got {shown(self.hidden)}; "
                f"write hidden=({self.hidden if isinstance(self.hidden, int) else 20},)"
            )
        for width in self.hidden:
            require("the units of every hidden layer", width, 1, advice="leave empty layers out")
        require_flag("skip", self.skip)
        require_flag("batch_norm", self.batch_norm)
        _check_activation(self.activation)
        if isinstance(self.init, str) and self.init not in _STARTS:
            raise ValueError(
                f"expected a start of the weights among {', '.join(_STARTS)} or a number, got "
                f"init={self.init!r}; choose one of them"
            )
        if not isinstance(self.init, str):
            require_number("init", self.init, least=0, advice=f"or write one of {', '.join(_STARTS)}")
        self._check_levels("dropout", self.dropout, 1.0)
        self._check_levels("noise", self.noise, None)

    def _check_levels(self, name: str, values: Any, below: float | None) -> None:
        """Refuses what is no number from 0, below a limit, or one of it per layer."""
        layers = len(self.hidden)
        if isinstance(values, tuple) and len(values) > layers + 1:
            raise ValueError(
                f"expected {name} for the inputs and {layers} hidden layers at most, got {shown(values)}; "
                "give one number, or one per layer"
            )
        for value in values if isinstance(values, tuple) else (values,):
            require_number(name, value, least=0, below=below, advice="give one number, or one per layer")


_KNOWN_ACTIVATIONS = frozenset({"elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "softplus", "swish", "tanh"})
"""Names whose functions need no trial."""


def _check_activation(activation: Any) -> None:
    """Refuses what is no function of the numbers of an array, one by one or all units of one case together."""
    if isinstance(activation, str) and activation in _KNOWN_ACTIVATIONS:
        return
    advice = "write for example 'tanh' or 'relu', or give such a function of jax.numpy"
    if isinstance(activation, str) and not callable(getattr(jax.nn, activation, None)):
        raise ValueError(f"expected the name of a function of jax.nn, got activation={activation!r}; {advice}")
    expected = (
        "expected activation as the name of a function of jax.nn, or a function from an array to one of its shape"
    )
    if not isinstance(activation, str) and not callable(activation):
        raise ValueError(f"{expected}, got {shown(activation)}; {advice}")
    known: Any = activation
    function, cases = activation_of(known), jnp.asarray([[0.5, -1.0, 2.0], [1.5, 0.1, -0.7]], jnp.float32)
    try:
        shapes = jax.tree.map(lambda a: a.shape, jax.eval_shape(function, cases))
    except Exception as error:
        raise ValueError(f"{expected}, got {first_line(error)} from {shown(activation)}; {advice}") from error
    if shapes != cases.shape:
        raise ValueError(f"{expected}, got {shapes} for {cases.shape} from {shown(activation)}; {advice}")
    # Cases are the last axis, which is the default of softmax and its like: they would learn from test cases.
    if not np.allclose(function(cases)[:, :1], function(cases[:, :1]), equal_nan=True):
        raise ValueError(
            f"expected activation to take every case by itself, got {shown(activation)}, which mixes them along the "
            f"last axis; {advice}"
        )


_MLP = MLP()


@dataclass(frozen=True, repr=False)
class PerTask(Value):
    """One network per task, all of one kind, side by side; the penalty `Tied` pulls their parameters together.

    Without a column, task t is the t-th of as many equal groups of outputs, and its network predicts only them: two
    related targets of the same cases. With a column, that input holds the number of a case's task (0, 1, ...) and
    chooses the network that predicts all its outputs: the same target in two scenarios. Its parameters have a leading
    axis of tasks.

    Attributes:
      network: the kind of network.
      tasks: how many.
      column: the input that tells the tasks apart (`Normalised` leaves it as it is), or None.
    """

    network: Any = _MLP
    tasks: int = 2
    column: int | None = None

    @property
    def input_layers(self) -> tuple[str, ...]:
        """Layers that read the inputs."""
        return as_network(self.network).input_layers

    @property
    def random(self) -> bool:
        """Whether training draws random numbers."""
        return as_network(self.network).random

    def start(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"]) -> PyTree:
        """Start parameters [tasks, ...] of all networks."""
        own = y if self.column is not None else y[:, : y.shape[1] // self.tasks]
        return jax.vmap(lambda k: as_network(self.network).start(k, x, own))(several(key, self.tasks))

    def forward(
        self, params: PyTree, x: Inputs, w: Weights | None = None, statistics: PyTree = None, key: Key | None = None
    ) -> Forward:
        """Outputs [K, n], hidden activations [tasks, H, n] and statistics of cases [D, n]."""
        network, tasks = as_network(self.network), jnp.arange(self.tasks)
        shares = (
            jnp.ones((self.tasks, 1), x.dtype)
            if self.column is None
            else (jnp.round(x[self.column])[None] == tasks[:, None].astype(x.dtype)).astype(x.dtype)
        )

        def of_task(own_params, task, share, seen):
            own_key = None if key is None else jax.random.fold_in(key, task)
            return network.forward(own_params, x, None if w is None else w * share, seen, own_key)

        each: Forward = jax.vmap(of_task)(params, tasks, shares, statistics)
        if self.column is None:
            return Forward(each.outputs.reshape(-1, x.shape[1]), each.hidden, each.statistics)
        return Forward(
            jnp.sum(each.outputs * shares[:, None], axis=0),
            tuple(layer * shares[:, None] for layer in each.hidden),
            each.statistics,
        )

    def check(self, data: Data) -> None:
        """Refuses data that cannot be divided into the tasks.

        Raises:
          TypeError: there is no network for the tasks.
          ValueError: the outputs are no multiple of the tasks, or the column is not one of task numbers.
        """
        check_network(self.network)
        require("the tasks of PerTask", self.tasks, 2, advice="use the network itself for a single task")
        if self.column is None:
            as_network(self.network).check(replace(data, y=data.y[..., : data.y.shape[-1] // self.tasks]))
            if data.y.shape[-1] % self.tasks:
                raise ValueError(
                    f"expected a multiple of {self.tasks} outputs, the same number for every task, got "
                    f"{data.y.shape[-1]}; change tasks, or name the column that tells the tasks apart"
                )
            return
        as_network(self.network).check(data)
        advice = "give the number of the column that tells the tasks apart"
        require("the column of PerTask", self.column, 0, data.d - 1, "the inputs", advice)
        if not np.isin(data.x[..., self.column], range(self.tasks)).all():
            raise ValueError(
                f"expected the task numbers 0 to {self.tasks - 1} in input column {self.column}, got other "
                "numbers; number the tasks there"
            )


@dataclass(frozen=True)
class _Foreign:
    """A flax module of the user's, in the usual convention: [n, D] to [n, K]."""

    module: nn.Module

    input_layers = ()

    @property
    def random(self) -> bool:
        return True

    def _flags(self, training: bool) -> dict[str, bool]:
        """What the module is told of training, where it asks."""
        known = inspect.signature(type(self.module).__call__).parameters
        flags = {"train": training, "training": training, "deterministic": not training}
        return {name: value for name, value in flags.items() if name in known}

    def start(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"]) -> PyTree:
        variables: Any = self.module.init(key, x[:1].astype(jnp.float32), **self._flags(False))  # pyright: ignore
        foreign = sorted(set(variables) - {"params", "intermediates"})
        if foreign:
            raise ValueError(
                f"expected a flax module with parameters only, got the collection {foreign[0]!r} in "
                f"{type(self.module).__name__}; use MLP(batch_norm=True), whose statistics leave out cases of "
                "weight 0"
            )
        return jax.tree.map(lambda a: a.astype(x.dtype), variables["params"])

    def forward(
        self, params: PyTree, x: Inputs, w: Weights | None = None, statistics: PyTree = None, key: Key | None = None
    ) -> Forward:
        rngs = {} if key is None else {"dropout": key}
        flags: dict[str, Any] = self._flags(key is not None)
        seen: Any
        with in_full_precision():
            outputs, seen = self.module.apply({"params": params}, x.T, rngs=rngs, mutable=["intermediates"], **flags)
        return Forward(
            outputs.T.astype(x.dtype), tuple(layer.T for layer in jax.tree.leaves(seen.get("intermediates", {}))), ()
        )

    def check(self, data: Data) -> None:
        def first_outputs(x):
            module: Any = self.module
            return module.init_with_output(jax.random.key(0), x, **self._flags(False))[0]

        expected = f"expected {type(self.module).__name__} to give [n, {data.y.shape[-1]}] outputs for [n, {data.d}]"
        try:
            outputs = jax.eval_shape(first_outputs, jax.ShapeDtypeStruct((2, data.d), jnp.float32))
        except Exception as error:
            raise ValueError(f"{expected} inputs, got {first_line(error)}; mend the module") from error
        shapes = jax.tree.map(lambda a: list(a.shape), outputs)
        if shapes != [2, data.y.shape[-1]]:
            raise ValueError(f"{expected} inputs, got {shapes} for n = 2; change its last layer")


def as_network(network: Any) -> Network:
    """The network itself, or a flax module in the form of one."""
    return _Foreign(network) if isinstance(network, nn.Module) else network


def moves_units(network: Any) -> bool:
    """Whether the units of inputs can be moved into the first layer of a network."""
    return isinstance(network, MLP) and not network.random


def worth_turning(network: Any, inputs: int) -> bool:
    """Whether a network may learn faster with a turned copy of so many inputs beside them."""
    return isinstance(network, MLP) and type(network).forward is MLP.forward and inputs >= _WORTH_TURNING


def check_network(network: Any) -> None:
    """Refuses what is no network.

    Raises:
      TypeError: it is a class, or neither an MLP, a PerTask nor a flax module, or cannot be hashed.
    """
    expected = "expected a network: MLP, PerTask or a flax module"
    if isinstance(network, type):
        raise TypeError(f"{expected}, got the class {network.__name__}; write {network.__name__}()")
    if not isinstance(network, MLP | PerTask | nn.Module | Network):
        raise TypeError(f"{expected}, got {shown(network)}; write for example learn.MLP(hidden=(20,))")
    try:
        hash(network)
    except TypeError:
        kind = type(network).__name__
        advice = "give it tuples and numbers in place of lists, dictionaries and arrays"
        raise TypeError(f"{expected} that can be hashed, got a {kind} that cannot; {advice}") from None
