"""Logistic and softmax regressions of more inputs than cases, of many rows, by coefficients of cases that they share.

See `case_problem`. Rows share the cases and, where none has units or numbers of its own, their products; the inverse of
Newton's equations at about their second derivatives, from which that of a row follows; and where to begin.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.case_problem import CaseProblem, Nearby
from jaxgen.learn.classes import classes_of, modelled_of
from jaxgen.learn.logistic_fit import LinearClassifier, LogisticFit
from jaxgen.learn.newton import NOT_CONVERGED
from jaxgen.learn.products import left_out_cases
from jaxgen.types import RowFills, RowUnits

_NEAR = 0.03
"""Relative change of the logits by the last step to where all rows begin; their own minima are further away."""

_EASY, _STEPS = 15, 25
"""Newton steps from zero to where all rows begin, and from there, after which rows are left to another way."""

_ALIKE = 0.06
"""Rows whose own inputs change logits by at most so much, relative to the largest, are solved by the products that they
share, and exact gradients do the rest.
"""

_LATER = 0.2
"""Second derivatives on the way to where rows begin, relative to those at zero, which are the largest. What the inverse
is made of must not be much above them: products of cases have no part in some directions (that of a constant, since
they are centred), which conjugate gradients do not see, and steps along others would be too long for these.
"""

_FLAT = 3e-2
"""Second derivatives by the logits are taken to be at least this part of the largest, where inverses are made."""


class Shared(NamedTuple):
    """What rows share.

    Attributes:
      x, turned: cases, centred where there is an intercept and divided by the scale, [n, D] and [D, n].
      gram: products of any two cases, [n, n], for rows that have no units or numbers of their own; else None.
      single: the same three in single precision.
      nearby: the preconditioner for all cases with the second derivatives that rows have about, of all classes alike.
      start: unknowns near the minimum for the mean weights of the rows, [K, m], with their derivatives of the
        cross-entropies by the logits, without weights, `excess`, and their logits, both [K, n].
      centre, scale: of the inputs, [D].
      hard: whether the start took too many steps, [], so that rows would too.
    """

    x: Float[Array, "n D"]
    turned: Float[Array, "D n"]
    gram: Float[Array, "n n"] | None
    single: tuple[Float[Array, "n D"], Float[Array, "D n"], Float[Array, "n n"] | None]
    nearby: Nearby
    start: Float[Array, "K m"]
    excess: Float[Array, "K n"]
    logits: Float[Array, "K n"]
    centre: Float[Array, " D"]
    scale: Float[Array, " D"]
    hard: Bool[Array, ""]


class Own(NamedTuple):
    """What a row has of its own: the squares of its scale relative to the shared one [D], what it adds to missing
    inputs [D], None for nothing; and where its cases of weight 0 are [q], n for none.
    """

    squares: Float[Array, " D"] | None
    fill: Float[Array, " D"] | None
    absent: Int[Array, " q"]


@partial(jax.jit, static_argnums=0)
@jax.default_matmul_precision("highest")
def in_common(
    classifier: LinearClassifier,
    x: Float[Array, "n D"],
    y: Float[Array, "n K"],
    w: Float[Array, " n"],
    scale: Float[Array, " D"] | None,
) -> Shared:
    """What rows share that have these weights [n] on average, and a ridge on weights times about this scale [D] where
    each has inputs of its own.
    """
    alike, scale = scale is None, jnp.ones_like(x[0]) if scale is None else scale
    centre = jnp.mean(x, axis=0) if classifier.intercept else jnp.zeros_like(x[0])
    x = (x - centre[None]) / scale[None]
    gram, ridge, classes = x @ x.T, _ridge_of(classifier, y), classes_of(y)
    k, n = modelled_of(y.shape[1]), len(x)
    share = 1 / max(2, k)
    w = jnp.where(w > 0, w, jnp.min(jnp.where(w > 0, w, jnp.inf)))  # all are of some row
    flat, small = _LATER * share * (1 - share) * w, x.astype(jnp.float32)
    single = small, small.T, gram.astype(jnp.float32)

    def products(a: Float[Array, "K n"]) -> Float[Array, "K n"]:
        return a @ (gram if a.dtype == gram.dtype else single[2])

    from_zero = Nearby.of(gram, flat, ridge, jnp.float32)
    nearby = from_zero.with_constant() if classifier.intercept else from_zero
    problem = CaseProblem(classes, w, ridge, classifier.intercept, products, nearby, jnp.bool_(True))
    nothing = jnp.zeros((k, n + 1), x.dtype)
    state = problem.minimised(nothing, jnp.bool_(False), _EASY, _NEAR)
    unknowns = state.unknowns
    logits = products(unknowns[:, :-1]) + unknowns[:, -1:]
    excess, second = classes.residuals(logits)
    curvature = w * jnp.mean(classes.by_class(second), axis=0)
    curvature = jnp.maximum(curvature, _FLAT * jnp.max(curvature))
    around = Nearby.of(gram, curvature, ridge, jnp.float32)
    both = single if alike else (*single[:2], None)
    return Shared(
        x, x.T, gram if alike else None, both, around, unknowns, excess, logits, centre, scale, ~state.converged
    )


def _ridge_of(classifier: LinearClassifier, y: Float[Array, "n K"]) -> Float[Array, ""]:
    """That of what is modelled of the targets [n, K]: of two columns, half of it."""
    return jnp.asarray(classifier.ridge, y.dtype) * (modelled_of(y.shape[1]) / y.shape[1])


def fits_of_rows(
    classifier: LinearClassifier,
    shared: Shared,
    y: Float[Array, "n K"],
    w: Float[Array, "R n"],
    left_out: int | None,
    units: RowUnits | None = None,
    fills: RowFills | None = None,
) -> tuple[LogisticFit, Bool[Array, " R"]]:
    """The fits of R weightings [R, n] of the same cases, and which of them to trust; each in units of its own, if there
    are some, and with numbers of its own for missing inputs. `left_out` as for `Learner.fit_rows`.
    """
    most = len(y) // 2 if left_out is None else left_out
    squares = None if units is None else jnp.square(units.x_scale / shared.scale[None])
    own = Own(squares, None if fills is None else fills.more / shared.scale[None], left_out_cases(w, most))
    missing = None if fills is None else fills.missing
    with jax.default_matmul_precision("highest"):
        alike = _are_alike(shared, missing, own)
        fits = jax.vmap(partial(_of_row, classifier, shared, missing, y, alike))(w, own)
    return fits, (fits.trouble != NOT_CONVERGED) & (jnp.sum(w == 0, axis=1) <= most)


def _are_alike(shared: Shared, missing: Float[Array, "n D"] | None, own: Own) -> Bool[Array, ""]:
    """Whether the inputs of R rows are nearly those that they share: seen by the logits of where they begin."""
    if shared.gram is not None:
        return jnp.bool_(True)
    start, logits = _single(shared.start), _single(shared.logits)
    missing, own = jax.tree.map(_single, (missing, own))

    def difference(own: Own) -> Float[Array, ""]:
        products = _Row(*shared.single, missing, own).products(start[:, :-1])
        return jnp.max(jnp.abs(products + start[:, -1:] - logits))

    return jnp.max(jax.vmap(difference)(own)) <= _ALIKE * jnp.max(jnp.abs(logits))


def _of_row(
    classifier: LinearClassifier,
    shared: Shared,
    missing: Float[Array, "n D"] | None,
    y: Float[Array, "n K"],
    alike: Bool[Array, ""],
    w: Float[Array, " n"],
    own: Own,
) -> LogisticFit:
    """The fit of a row."""
    exact = _Row(shared.x, shared.turned, shared.gram, missing, own)
    rough = _Row(*shared.single, *jax.tree.map(_single, (missing, own)))

    def products(a: Float[Array, "K n"]) -> Float[Array, "K n"]:
        return (exact if a.dtype == y.dtype else rough).products(a)

    classes, ridge = classes_of(y), _ridge_of(classifier, y)
    nearby = shared.nearby._replace(used=(w > 0).astype(jnp.float32)).without(own.absent)
    nearby = nearby.with_constant() if classifier.intercept else nearby
    problem = CaseProblem(classes, w, ridge, classifier.intercept, products, nearby, alike)
    one_sided = classifier.is_one_sided(y, w)
    start = problem.first_step(shared.start, shared.excess, shared.logits)
    state = problem.minimised(start, one_sided | shared.hard, min(classifier.steps, _STEPS))
    unknowns, whole = state.unknowns, exact.weights(state.unknowns[:, :-1]) / shared.scale[None]
    constant = unknowns[:, -1] - whole @ shared.centre
    cosine, near = problem.checked(unknowns)
    trouble = classifier.trouble_of(one_sided, jnp.where(state.converged & near, 0, NOT_CONVERGED))
    weights, intercept = (jnp.where(one_sided, jnp.nan, part) for part in (whole.T, constant))
    if y.shape[1] > len(unknowns):
        weights, intercept = (jnp.concatenate([part, -part], axis=-1) / 2 for part in (weights, intercept))
    return LogisticFit(weights, intercept, state.iterations, cosine, trouble)


def _single(values: Array) -> Array:
    """Numbers in single precision; places as they are."""
    return values.astype(jnp.float32) if jnp.issubdtype(values.dtype, jnp.floating) else values


class _Row(NamedTuple):
    """The cases of a row: those that are shared, with its own scale and its own numbers for missing inputs."""

    x: Float[Array, "n D"]
    turned: Float[Array, "D n"]
    gram: Float[Array, "n n"] | None
    missing: Float[Array, "n D"] | None
    own: Own

    def weights(self, a: Float[Array, "K n"]) -> Float[Array, "K D"]:
        """Weights [K, D] of the scaled inputs that belong to coefficients of the cases, [K, n]."""
        found = a @ self.x
        if self.missing is not None and self.own.fill is not None:
            found = found + (a @ self.missing) * self.own.fill[None]
        return found if self.own.squares is None else found / self.own.squares[None]

    def products(self, a: Float[Array, "K n"]) -> Float[Array, "K n"]:
        """Logits [K, n] of coefficients [K, n]."""
        if self.gram is not None:
            return a @ self.gram
        weights = self.weights(a)
        found = weights @ self.turned
        if self.missing is not None and self.own.fill is not None:
            found = found + (weights * self.own.fill[None]) @ self.missing.T
        return found
