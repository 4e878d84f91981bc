"""Logistic and softmax regressions of many rows, which share coordinates of all cases and where to begin."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxgen.learn.bases import nearly_orthonormal_if_easy
from jaxgen.learn.batched import in_turn, where_rare
from jaxgen.learn.classes import modelled_of
from jaxgen.learn.coordinates import MANY, Coordinates, Gram, pairs_of
from jaxgen.learn.logistic_fit import LinearClassifier, LogisticFit, remembered
from jaxgen.learn.newton import NOT_CONVERGED
from jaxgen.learn.shrinkage import Span
from jaxgen.learn.softmax import Start, are_written_out
from jaxgen.learn.systems import cholesky
from jaxgen.types import RowFills, RowUnits

_WELL_CONDITIONED = 1e-4
"""Smallest pivot of a row's weighted cases, in coordinates in which all cases are orthonormal, with which its fit is
trusted; others are fitted in coordinates of their own.
"""

_MUCH, _MANY_ROWS = 1 << 23, 64
"""Rows times cases times coefficients from which on a common start saves enough for its compilation, up to a second; of
many rows a quarter of that. Of `MANY` coefficients of a class it always does, since each row would need an inverse
matrix of its own.
"""

_WORTH_METRICS = 2
"""So many times as many inputs as cases make coordinates of a span worth a metric for each row that has a scale of its
own, where cases are many.
"""

_FEWEST, _FEWEST_TIMES = 512, 4
"""Cases, and cases for each coordinate, that are enough to see that coordinates suit a row, as a rule."""

_WORTH_BLOCKS = 48
"""Coordinates from which on those that fill up whole blocks take less time than these save."""

_ALONE_CLASSES, _ALONE = 8, 1 << 19
"""Classes, and cases times coefficients, from which on a row is work enough by itself for products of matrices to run
at their full speed.
"""


class Own(NamedTuple):
    """What a row has of its own: a scale [D], the weights times which have the ridge, with its metric [n, n] where
    coordinates are those of a span, and what it adds to missing inputs, [D]; None for nothing.
    """

    scale: Float[Array, " D"] | None
    metric: Float[Array, "n n"] | None
    fill: Float[Array, " D"] | None


class Common(NamedTuple):
    """What rows share.

    Attributes:
      basis: of all cases, with inputs divided by the scale.
      products: those of any two of its coordinates, if they are few; else None.
      start: where rows begin; None for zero.
      span: the space that more inputs than cases span, divided by the scale, too; else None.
      scale: of the inputs, about that of each row, [D].
      missing: 1 where an input of a case is missing, for rows that put numbers of their own there.
    """

    basis: Coordinates
    products: Float[Array, "t m"] | None
    start: Start | None
    span: Span | None
    scale: Float[Array, " D"]
    missing: Float[Array, "n D"] | None = None

    def of_row(self, own: Own) -> "Common":
        """The same with what a row has of its own."""
        basis = self.basis
        if own.metric is not None and own.scale is not None and self.span is not None:
            basis = basis.penalised_in(self.span, own.metric, own.scale)
        elif own.scale is not None:
            basis = basis.penalised_by(own.scale)
        if own.fill is None or self.missing is None:
            return self._replace(basis=basis)
        return self._replace(basis=basis.filled(self.missing, own.fill), products=None)

    def every(self, least: int) -> tuple["Common", int]:
        """The same with one of so many cases, but with at least so many; and of how many it is one."""
        step = max(1, self.basis.cases.shape[1] // least)
        basis = self.basis._replace(cases=self.basis.cases[:, ::step], turned=self.basis.turned[::step])
        missing = None if self.missing is None else self.missing[::step]
        return self._replace(basis=basis, products=None, missing=missing), step


@partial(jax.jit, static_argnums=(0, 1))
@jax.default_matmul_precision("highest")
def in_common(
    classifier: LinearClassifier,
    rows: int,
    x: Float[Array, "n D"],
    y: Float[Array, "n K"],
    w: Float[Array, " n"],
    scale: Float[Array, " D"] | None,
) -> Common:
    """What so many rows share that have these weights [n] on average, and a ridge on weights times about this scale [D]
    where each has a scale of its own; of a classifier with a traced ridge see `remembered`.
    """
    (n, inputs), span = x.shape, None
    alike, scale = scale is None, jnp.ones_like(x[0]) if scale is None else scale
    x = x / scale[None]
    if classifier.is_wide(x) and (alike or n < MANY or inputs >= _WORTH_METRICS * n):
        span = Span.of(x, jnp.ones_like(w), classifier.intercept)
        basis = classifier.basis_of(span)
    else:
        basis = classifier.basis(x, jnp.ones_like(w), nearly_orthonormal_if_easy)
    quick = classifier.quick_in_rows(y, len(basis.cases))
    written_out = are_written_out(modelled_of(y.shape[1]), len(basis.cases), n, quick)
    if len(basis.cases) >= _WORTH_BLOCKS and not written_out:
        basis = basis.padded()
    products, start = pairs_of(basis.cases) if written_out else None, None
    work = rows * basis.cases.size * modelled_of(y.shape[1]) * (4 if rows >= _MANY_ROWS else 1)
    if work >= _MUCH or len(basis.cases) >= MANY:
        start, found = classifier.start(basis, y, w, products, quick)
        if quick and not classifier.penalised:
            basis = basis._replace(deficient=basis.deficient | ~found)
    return Common(basis, products, start, span, scale)


def fits_of_rows(
    classifier: LinearClassifier,
    common: Common,
    y: Float[Array, "n K"],
    w: Float[Array, "R n"],
    units: RowUnits | None = None,
    fills: RowFills | None = None,
) -> tuple[LogisticFit, Bool[Array, " R"]]:
    """The fits of R weightings [R, n] of the same cases, and which of them to trust; each in units of its own, if there
    are some, and with numbers of its own for missing inputs.
    """
    scales = None if units is None else units.x_scale / common.scale[None]
    if fills is not None:
        fills = fills._replace(more=fills.more / common.scale[None])
    with jax.default_matmul_precision("highest"):
        if common.span is None:
            fits, trusted = _on_common(classifier, common, y, w, scales, fills)
        else:
            fits, trusted = _on_span(classifier, common, common.span, y, w, scales)
    return fits._replace(weights=fits.weights / common.scale[None, :, None]), trusted


def _on_span(
    classifier: LinearClassifier,
    common: Common,
    span: Span,
    y: Float[Array, "n K"],
    w: Float[Array, "R n"],
    scales: Float[Array, "R D"] | None,
) -> tuple[LogisticFit, Bool[Array, " R"]]:
    """The fits of rows [R, n] of more inputs than cases, in units of the shared scale, with a ridge on weights times
    their scales.
    """
    exact = jnp.ones(len(w), bool)
    if scales is None:
        fits, trusted = _on_common(classifier, common, y, w)
        fits = span.restored(fits)
    else:
        many = len(common.basis.cases) >= MANY
        measure, type_of_metrics = (span.single, jnp.float32) if many else (span, w.dtype)
        metrics = in_turn(measure.metric)(scales.astype(type_of_metrics))
        fits, trusted = _on_common(classifier, common, y, w, scales, metrics=metrics)
        along = jax.vmap(span.measured)(metrics, scales, fits.weights)
        exact = jax.vmap(span.is_measured)(scales, fits.weights, along) | (fits.trouble > 0)
        fits = jax.vmap(span.restored)(fits._replace(weights=along), scales)
    return fits, trusted & exact


def _on_common(
    classifier: LinearClassifier,
    common: Common,
    y: Float[Array, "n K"],
    w: Float[Array, "R n"],
    scales: Float[Array, "R D"] | None = None,
    fills: RowFills | None = None,
    metrics: Float[Array, "R p p"] | None = None,
) -> tuple[LogisticFit, Bool[Array, " R"]]:
    """The fits of rows [R, n] in units of the shared scale, each with a ridge on weights times its scales, if there are
    some, and numbers of its own for missing inputs; or in coordinates of a span, with metrics that follow from the
    scales.
    """
    own = Own(scales, metrics, None if fills is None else fills.more)
    if fills is not None:
        common = common._replace(missing=fills.missing)
    classes = modelled_of(y.shape[1])
    much = classes >= _ALONE_CLASSES and common.basis.cases.size * classes >= _ALONE
    alone = much or fills is not None  # cases of its own stay in the cache of a core
    of_rows = in_turn if alone else jax.vmap
    if classifier.penalised or classifier.quick_in_rows(y, len(common.basis.cases)):
        suits = _are_suited(common, w, own)
    else:
        suits = _are_suited_by(common, w, own)
    return of_rows(partial(remembered(classifier, _of_row), common, y))(w, own, suits)


def _are_suited(common: Common, w: Float[Array, "R n"], own: Own) -> Bool[Array, " R"]:
    """Whether coordinates suit the cases of each row and its ridge. Gram matrices of rows are made only where neither
    the ridge tells nor some of the cases.
    """
    fine, basis, low, high = jnp.ones(len(w), bool), common.basis, 1.0, 1.0
    penalised = len(basis.penalty) > 0
    if penalised and own.scale is not None:
        low, high = jnp.min(own.scale, axis=0), jnp.max(own.scale, axis=0)
        if own.metric is not None:
            low, high = jnp.min(low), jnp.max(high)
    few, step = common.every(max(_FEWEST, _FEWEST_TIMES * len(basis.cases)))

    def by_all() -> Bool[Array, " R"]:
        return _are_suited_by(common, w, own)

    def by_few() -> Bool[Array, " R"]:
        suits = _are_suited_by(few, w[:, ::step], own, basis.most(w, high))
        return where_rare(~jnp.all(suits), by_all, fine)

    by_cases = by_all if step == 1 else by_few
    if not penalised:
        return by_cases()
    return where_rare(basis.least_pivot(w, low, high) <= _WELL_CONDITIONED, by_cases, fine)


def _are_suited_by(
    common: Common, w: Float[Array, "R n"], own: Own, largest: Float[Array, ""] | None = None
) -> Bool[Array, " R"]:
    """The same by the Gram matrix of each row; see `_is_suited`."""
    of_rows = in_turn if common.products is None or own.fill is not None else jax.vmap
    return of_rows(lambda w, own: _is_suited(_gram(common, w, own), largest))(w, own)


def _is_suited(gram: Float[Array, "p p"], largest: Float[Array, ""] | None = None) -> Bool[Array, ""]:
    """Whether coordinates suit the cases that have this Gram matrix in them; or those of which some have it, if that of
    all has no larger number on its diagonal than `largest`, since further cases make no pivot smaller.
    """
    pivot = cholesky(gram, gram[:, :0]).pivot
    if largest is None:
        return pivot > _WELL_CONDITIONED
    return pivot * jnp.max(jnp.diagonal(gram)) > _WELL_CONDITIONED * largest.astype(pivot.dtype)


@jax.jit
def _gram(common: Common, w: Float[Array, " n"], own: Own) -> Float[Array, "p p"]:
    """The Gram matrix [p, p] of the weighted cases of a row, and of its ridge; see `Common.of_row`."""
    basis, products, *_ = common.of_row(own)
    gram = Gram(basis.cases, basis.turned, basis.ridge, basis.with_absent(w), products)
    gram = gram if products is not None else gram.single
    return gram.weighted(gram.w[None])[0]


@partial(jax.jit, static_argnums=0)
def _of_row(
    classifier: LinearClassifier,
    common: Common,
    y: Float[Array, "n K"],
    w: Float[Array, " n"],
    own: Own,
    suits: Bool[Array, ""],
) -> tuple[LogisticFit, Bool[Array, ""]]:
    """The fit of a row, see `Common.of_row`, and whether to trust it; none is tried where the common basis does not
    suit its cases, for which the others would wait.
    """
    basis, products, start, *_ = common.of_row(own)
    basis = basis._replace(deficient=basis.deficient | ~suits)
    fit = classifier.minimum(basis, y, w, products, start, classifier.quick_in_rows(y, len(basis.cases)))
    return fit, ~basis.deficient & (fit.trouble != NOT_CONVERGED)
