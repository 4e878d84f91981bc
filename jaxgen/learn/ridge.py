"""Ridge regression whose penalty is chosen by leave-one-out."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from jaxgen.learn.batched import in_any_row
from jaxgen.learn.products import Products, left_out_cases, plain_units
from jaxgen.learn.shrinkage import Centred, Shrinkage, Span, rounding_of, squares_are_easy
from jaxgen.learn.systems import inverse_of_lower, substituted
from jaxgen.types import Data, Key, Learner, Plan, RowUnits
from jaxgen.types.numbers import require, require_flag, require_number, shown

PENALTIES = tuple(10.0 ** (power / 2) for power in range(-6, 9))
"""Two a decade, from 0.001 to 10,000."""

_HATS = 8
"""A hat matrix may take so many times the memory of the inputs."""

_ROWS_BYTES = 1 << 21
"""Numbers of several rows that are looked at together, their cases in coordinates of each or columns of hat matrices:
more would leave the cache.
"""

_COMPARED = 1e-7
"""The share of a loss that rounding may be where the losses of penalties are compared."""

_MOST_WRONG = 0.01
"""Share of residuals that rounding may be for a bound in single precision to be used."""


class RidgeFit(NamedTuple):
    """Parameters of a linear model: weights [D, K], intercept [K], the chosen penalty [], and its mean squared
    leave-one-out loss [].
    """

    weights: Float[Array, "*R D K"]
    intercept: Float[Array, "*R K"]
    ridge: Float[Array, "*R"]
    error: Float[Array, "*R"]


@dataclass(frozen=True, repr=False)
class Ridge(Learner):
    """Ridge regression, with the one of some penalties whose mean squared leave-one-out loss is least.

    Minimises sum w (y - prediction)^2 + ridge |weights|^2, as `LeastSquares(ridge)` does, for all penalties at the
    price of about one fit: from the singular values s of the centred inputs, with u their left vectors, come the share
    h = 1 / n + sum_k u_k^2 s_k^2 / (s_k^2 + ridge) that a case has in its own prediction, and so its leave-one-out
    residual e / (1 - h) (Allen 1974, "The relationship between variable selection and data augmentation and a method
    for prediction"). One penalty serves all targets; the squares are summed over them. A case of weight 2 counts as two
    cases, of which one is left out. More inputs than cases are first brought into coordinates of the space that all
    cases span. Penalties have the units of x^2: `Normalised(Ridge(), how="standard")` makes them
    comparable. The first of equals is taken.

    Attributes:
      penalties: to choose from, each above 0.
      intercept: whether the model has a constant term, which is not penalised.
    """

    penalties: tuple[float, ...] = PENALTIES
    intercept: bool = True

    shares_rows: ClassVar[bool] = True
    worth_sharing: ClassVar[tuple[int, float]] = (2, 0.45)
    precise: ClassVar[bool] = True

    def shares_rows_of(self, cases: int, trained: int, inputs: int) -> bool:
        """Not if rows have less cases than inputs, but all cases more: products of inputs have no inverse then, and are
        larger than those of the cases of a row.
        """
        return trained > inputs or inputs >= cases

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses penalties that are none, and rows of a single case.

        Raises:
          ValueError: no penalty, one that is no number above 0, a setting of another kind, or nothing to leave out.
        """
        check_penalties(self.penalties)
        require_flag("intercept", self.intercept)
        fewest = int(plan.train_sizes.min())
        require("the training cases of every row", fewest, 2, advice=f"{self} leaves one out; train on more cases")

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> RidgeFit:
        """Coefficients of one weighted training set for the chosen penalty; `key` is not used."""
        with jax.default_matmul_precision("highest"):
            return self._fit(x, y, w)

    def fit_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[RidgeFit, Bool[Array, " R"]]:
        """The fits of R weightings of the same cases at once, and which of them to trust.

        Rows that leave out few cases share one decomposition of all cases, see `_WithoutSome`; others have one each,
        of products that they share.
        """
        penalties = jnp.asarray(self.penalties, x.dtype)
        with jax.default_matmul_precision("highest"):
            if x.shape[1] > len(x):
                span = Span.of(x, jnp.ones_like(x[:, 0]), self.intercept)
                fits, trusted = self.fit_rows(keys, span.cases, y, w, left_out)
                return span.restored(fits), trusted
            if left_out is not None and _without_some_is_less(len(x), x.shape[1], max(1, left_out)):
                return _WithoutSome.of(x, y, w, max(1, left_out), self.intercept).chosen(penalties)
            if x.shape[1] == len(x):
                return jax.vmap(self._fit, in_axes=(None, None, 0))(x, y, w), jnp.ones(len(w), bool)
            products = Products.of(x, y, w, self.intercept)
            return _Decomposed.of(products, plain_units(x, y, w), left_out).chosen(penalties)

    @property
    def shares_rows_in_units(self) -> bool:
        """A model without a constant term depends on where the units of a row begin."""
        return self.intercept

    def fit_rows_in_units(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits,
        left_out: int | None,
    ) -> tuple[RidgeFit, Bool[Array, " R"]]:
        """The fits of R weightings of the same cases [R, n] at once, each in units of its own, and which of them to
        trust: each decomposes products that rows share.
        """
        if x.shape[1] >= len(x):
            return jax.vmap(self._in_units, in_axes=(None, None, 0, 0))(x, y, w, units), jnp.ones(len(w), bool)
        with jax.default_matmul_precision("highest"):
            products = Products.of(x, y, w, True)
            return _Decomposed.of(products, units, left_out).chosen(jnp.asarray(self.penalties, x.dtype))

    def predict(self, params: RidgeFit, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets, in the units of y."""
        return jnp.matmul(x, params.weights, precision="highest") + params.intercept[None]

    def diagnose(self, params: RidgeFit) -> dict[str, Float[Array, "..."]]:
        """Weights [D, K], intercept [K], the chosen penalty [] and its leave-one-out loss []."""
        return {
            "weights": params.weights,
            "intercept": params.intercept,
            "ridge": params.ridge,
            "leave_one_out": params.error,
        }

    def _in_units(
        self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], units: RowUnits
    ) -> RidgeFit:
        """The fit of one training set in units [D], [D], [K], [K]."""
        x, y = (x - units.x_centre[None]) / units.x_scale[None], (y - units.y_centre[None]) / units.y_scale[None]
        with jax.default_matmul_precision("highest"):
            return self._fit(x, y, w)

    def _fit(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> RidgeFit:
        shrinkage = Shrinkage.of(Centred.of(x, y, w, self.intercept))
        penalties = jnp.asarray(self.penalties, x.dtype)
        errors = shrinkage.errors("leave_one_out", penalties)
        best = jnp.argmin(errors)
        return RidgeFit(*shrinkage.coefficients(penalties[best]), penalties[best], errors[best])


def _without_some_is_less(n: int, d: int, m: int) -> bool:
    """Whether leaving m of n cases out of hat matrices [n, n] takes less time than a decomposition of D inputs, as
    measured, and a hat matrix is no larger than a few copies of the inputs.
    """
    return n <= _HATS * d and m * m * n < d**3


class _WithoutSome(NamedTuple):
    """Rows that leave few cases C out of all, each with weight 1.

    With the hat matrix H of all cases for a penalty and their residuals e, a row's residuals are
    e + H_:C (1 - H_CC)^-1 e_C, and the share of a case in its own prediction is H_ii + H_iC (1 - H_CC)^-1 H_Ci (Cook &
    Weisberg 1982, "Residuals and influence in regression", section 3.6).

    Attributes:
      shrinkage: of all cases.
      turned: the centred inputs times the right singular vectors, [n, p].
      absent: numbers of the cases that each row leaves out, [R, m]; n where it leaves out fewer.
      present: 1 for the cases that a row has, [R, n], else 0.
      share: of a case in the mean of all, []; 0 without an intercept.
    """

    shrinkage: Shrinkage
    turned: Float[Array, "n p"]
    absent: Int[Array, "R m"]
    present: Float[Array, "R n"]
    share: Float[Array, ""]

    @classmethod
    def of(
        cls, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, "R n"], left_out: int, intercept: bool
    ) -> "_WithoutSome":
        """Of cases [n, D], [n, K] and weights [R, n] in {0, 1}."""
        shrinkage = Shrinkage.of(Centred.of(x, y, jnp.ones_like(x[:, 0]), intercept))
        turned = shrinkage.left * shrinkage.values[None]
        return cls(shrinkage, turned, left_out_cases(w, left_out), w, shrinkage.cases.share[0])

    def chosen(self, penalties: Float[Array, " S"]) -> tuple[RidgeFit, Bool[Array, " R"]]:
        """The fits with the best of S penalties, and which to trust: those whose cases can be left out of the hat
        matrices without loss of digits.
        """
        best = self._best(penalties, lax.map(self._at_least, penalties))
        penalty = penalties[best.number]
        weights, intercept = self._coefficients(penalty, best.pull)
        fit = RidgeFit(weights, intercept, penalty, best.error)
        return fit, best.pivot > float(jnp.finfo(self.turned.dtype).eps) ** 0.5

    def _at_least(self, penalty: Float[Array, ""]) -> Float[Array, " R"]:
        """What the mean leave-one-out losses of the rows are at least for a penalty, [R].

        With H_ii + H_iC H_Ci, no more than the share of a case in its own prediction, losses come out too small, but
        mostly by little, and the products are of all rows at once. They are made in single precision, in half of the
        time, and the losses are taken as small as its rounding allows; 0 where that is not small itself.
        """
        single, eps = jnp.float32, float(jnp.finfo(jnp.float32).eps)
        root = (self.turned / jnp.sqrt(jnp.square(self.shrinkage.values) + penalty)[None]).astype(single)
        hat = root @ root.T + self.share.astype(single)
        residual = self._residual(penalty)
        size = jnp.max(jnp.abs(residual))
        size = jnp.where(size > 0, size, 1)
        residual, absences = (residual / size).astype(single), (1 - self.present).astype(single)

        def of_row(absent: Int[Array, " m"]) -> tuple[Float[Array, "m K"], Float[Array, ""]]:
            factor, gone = _factored(hat, residual, absent)
            return substituted(factor, gone), _least_pivot(factor)

        everybody = jnp.ones(len(self.absent), bool)
        pull, pivot = _of_groups(of_row, self._groups(self.absent.shape[1]), everybody, self.absent)
        every = jax.vmap(lambda where, pull: jnp.zeros_like(residual).at[where].set(pull, mode="drop"))
        moved = residual[None] + jnp.einsum("ni,rik->rnk", hat, every(self.absent, pull))
        own = jnp.diagonal(hat)[None] + absences @ jnp.square(hat)
        # A product of n numbers may be wrong by n roundings, and the inverse of the factor multiplies them. No row of a
        # hat matrix is longer than 1, so that a residual is at most as large as what is taken for its size here.
        wrong = (len(hat) * eps / pivot)[:, None, None]
        most = jnp.abs(residual)[None] + jnp.linalg.norm(pull, axis=1, keepdims=True)
        near = jnp.maximum(jnp.abs(moved) - wrong * most, 0)
        least = jax.vmap(_mean_loss)(own - wrong[:, :, 0], near, self.present.astype(single))
        return jnp.where(wrong[:, 0, 0] < _MOST_WRONG, least.astype(size.dtype) * jnp.square(size), 0)

    def _best(self, penalties: Float[Array, " S"], bounds: Float[Array, "S R"]) -> "_Best":
        """The best of S penalties for each row; losses are computed where bounds [S, R] below them do not say that
        another penalty has less.
        """
        (rows, m), k, dtype = self.absent.shape, self.shrinkage.cases.y.shape[1], self.turned.dtype
        infinite = jnp.full(rows, jnp.inf, dtype)
        none = infinite, jnp.full((rows, m, k), jnp.inf, dtype), infinite

        def look(best: _Best, number: Int[Array, ""]) -> tuple[_Best, None]:
            wanted = ~(bounds[number] > best.error)  # NaN is wanted
            some = in_any_row(jnp.any(wanted))
            error, pull, pivot = lax.cond(some, lambda: self._losses(penalties[number], wanted), lambda: none)
            better = (error < best.error) | ((error == best.error) & (number < best.number))
            return _Best(
                jnp.where(better, number, best.number),
                jnp.where(better, error, best.error),
                jnp.where(better[:, None, None], pull, best.pull),
                jnp.minimum(pivot, best.pivot),
            ), None

        first = _Best(jnp.full(rows, len(penalties) - 1), infinite, jnp.zeros((rows, m, k), dtype), infinite)
        return lax.scan(look, first, jnp.argsort(jnp.mean(bounds, axis=1)))[0]

    def _losses(
        self, penalty: Float[Array, ""], wanted: Bool[Array, " R"]
    ) -> tuple[Float[Array, " R"], Float[Array, "R m K"], Float[Array, " R"]]:
        """Of a penalty: mean leave-one-out losses [R], (1 - H_CC)^-1 e_C [R, m, K], and the smallest pivots [R]; all
        infinite where nobody wants them in a group of rows.
        """
        shrunk = self.turned / (jnp.square(self.shrinkage.values) + penalty)[None]
        hat, residual = shrunk @ self.turned.T + self.share, self._residual(penalty)

        def of_row(
            absent: Int[Array, " m"], present: Float[Array, " n"]
        ) -> tuple[Float[Array, ""], Float[Array, "m K"], Float[Array, ""]]:
            factor, gone = _factored(hat, residual, absent)
            root = inverse_of_lower(factor)
            # A product with an inverse takes less time than solving for all cases.
            there = jnp.where((absent < len(hat))[None], root, 0)
            solved, half = there @ jnp.take(hat, absent, axis=0, mode="clip"), root @ gone
            own = jnp.diagonal(hat) + jnp.sum(jnp.square(solved), axis=0)
            return _mean_loss(own, residual + solved.T @ half, present), root.T @ half, _least_pivot(factor)

        return _of_groups(of_row, self._groups(len(hat)), wanted, self.absent, self.present)

    def _residual(self, penalty: Float[Array, ""]) -> Float[Array, "n K"]:
        """Residuals of all cases for a penalty."""
        y = self.shrinkage.cases.y
        return y - self.turned @ ((self.turned.T @ y) / (jnp.square(self.shrinkage.values) + penalty)[:, None])

    def _groups(self, columns: int) -> int:
        """In how many groups rows stay in the cache, with so many columns of numbers for each case that is left out."""
        return max(1, math.ceil(self.absent.size * columns * self.turned.dtype.itemsize / _ROWS_BYTES))

    def _coefficients(
        self, penalty: Float[Array, " R"], pull: Float[Array, "R m K"]
    ) -> tuple[Float[Array, "R D K"], Float[Array, "R K"]]:
        """Weights and intercepts of the rows for a penalty each, from (1 - H_CC)^-1 e_C."""
        cases = self.shrinkage.cases
        gone = self.turned.at[self.absent].get(mode="fill", fill_value=0)
        slope = (self.turned.T @ cases.y)[None] - jnp.einsum("rmp,rmk->rpk", gone, pull)
        inside = slope / (jnp.square(self.shrinkage.values)[None] + penalty[:, None])[:, :, None]
        weights = jnp.einsum("pd,rpk->rdk", self.shrinkage.right, inside)
        return weights, cases.y_mean[None] - self.share * jnp.sum(pull, axis=1) - jnp.einsum(
            "d,rdk->rk", cases.x_mean, weights
        )


class _Best(NamedTuple):
    """The best penalties that were found.

    Attributes:
      number: of the penalty of each row, [R].
      error: its mean leave-one-out loss, [R].
      pull: (1 - H_CC)^-1 e_C for it, [R, m, K].
      pivot: the smallest of any penalty that was looked at, [R].
    """

    number: Int[Array, " R"]
    error: Float[Array, " R"]
    pull: Float[Array, "R m K"]
    pivot: Float[Array, " R"]


def _of_groups(
    of_row: Callable[..., Any], groups: int, wanted: Bool[Array, " R"], *rows: Shaped[Array, "R ..."]
) -> PyTree:
    """What a function makes of each row, in groups of rows; infinite for groups in which no row is wanted. Rows that
    are wanted come first, so that these are as many as possible.
    """
    first = jnp.argsort(~wanted)
    # All groups have the same size: a last one of another would run beside the loop, and two calls of LAPACK at a time
    # may wait for each other for ever.
    short = -len(wanted) % groups

    def in_groups(a: Shaped[Array, "R ..."]) -> Shaped[Array, "G S ..."]:
        filled = jnp.pad(a, ((0, short), *((0, 0),) * (a.ndim - 1)), mode="edge")
        return filled.reshape(groups, -1, *a.shape[1:])

    def of_group(group: tuple[Array, ...]) -> PyTree:
        found = partial(jax.vmap(of_row), *group[1:])
        none = jax.tree.map(lambda a: jnp.full(a.shape, jnp.inf, a.dtype), jax.eval_shape(found))
        return lax.cond(in_any_row(jnp.any(group[0])), found, lambda: none)

    found = lax.map(of_group, tuple(in_groups(a[first]) for a in (wanted, *rows)))
    back = jnp.argsort(first)
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[back], found)


def _factored(
    hat: Float[Array, "n n"], residual: Float[Array, "n K"], absent: Int[Array, " m"]
) -> tuple[Float[Array, "m m"], Float[Array, "m K"]]:
    """Of the cases C that a row leaves out: Cholesky's factor of 1 - H_CC, [m, m], and their residuals [m, K]; rows of
    the unit matrix and 0 in the places of cases that it does not.
    """
    there, unit = absent < len(hat), jnp.eye(len(absent), dtype=hat.dtype)
    inside = hat.at[absent[:, None], absent[None]].get(mode="clip")
    left = jnp.where(there[:, None] & there[None], unit - inside, unit)
    factor = jnp.linalg.cholesky(left, symmetrize_input=False)
    return factor, residual.at[absent].get(mode="fill", fill_value=0)


def _least_pivot(factor: Float[Array, "m m"]) -> Float[Array, ""]:
    """The smallest pivot of a matrix from Cholesky's factor of it."""
    return jnp.min(jnp.square(jnp.diagonal(factor)))


def _mean_loss(own: Float[Array, " n"], residual: Float[Array, "n K"], present: Float[Array, " n"]) -> Float[Array, ""]:
    """Mean squared leave-one-out loss [] of the present cases, summed over the targets, from residuals [n, K] and the
    shares [n] of cases in their own predictions.
    """
    losses = jnp.sum(jnp.square(residual), axis=1) / jnp.square(1 - own)
    return jnp.sum(jnp.where(present > 0, losses, 0)) / jnp.sum(present)


class _Decomposed(NamedTuple):
    """Rows whose products x' W x, in units of the row, are each decomposed into eigenvectors.

    Attributes:
      products: of the rows, in the units of the data.
      units: of each row.
      vectors: eigenvectors, [R, D, D].
      values: eigenvalues, [R, D].
      outside: what makes coordinates in the eigenvectors of a row of cases in the units of the data, [R, D, D].
      slope: those coordinates' W y, about the means of the row, [R, D, K].
      rounding: what may be in an eigenvalue, [R]; infinite for products that are not finite.
    """

    products: Products
    units: RowUnits
    vectors: Float[Array, "R D D"]
    values: Float[Array, "R D"]
    outside: Float[Array, "R D D"]
    slope: Float[Array, "R D K"]
    rounding: Float[Array, " R"]

    @classmethod
    def of(cls, products: Products, units: RowUnits, left_out: int | None) -> "_Decomposed":
        """Of rows in units of their own."""
        scale = units.x_scale
        gram, largest = products.gram(left_out)
        gram = gram / scale[:, :, None] / scale[:, None]
        finite = jnp.all(jnp.isfinite(gram), axis=(1, 2))
        unit = jnp.eye(gram.shape[1], dtype=gram.dtype)[None]
        values, vectors = jnp.linalg.eigh(jnp.where(finite[:, None, None], gram, unit), symmetrize_input=False)
        largest = jnp.max(largest / jnp.square(scale), axis=1)
        rounding = rounding_of(jnp.maximum(values[:, -1], largest))
        outside = vectors / scale[:, :, None]
        slope = jnp.einsum("rde,rdk->rek", outside, products.slope) / units.y_scale[:, None]
        return cls(products, units, vectors, values, outside, slope, jnp.where(finite, rounding, jnp.inf))

    def chosen(self, penalties: Float[Array, " S"]) -> tuple[RidgeFit, Bool[Array, " R"]]:
        """The fits with the best of S penalties, in units of the rows, and which to trust: those of products in which
        rounding is small beside the smallest eigenvalue and the penalty, and not large beside it and any penalty.
        """
        (n, d), rows = self.products.x.shape, len(self.values)
        at_a_time = max(1, min(rows, _ROWS_BYTES // (n * d * penalties.dtype.itemsize)))
        errors = lax.map(lambda row: self._errors(penalties, row), jnp.arange(rows), batch_size=at_a_time).T
        best = jnp.argmin(errors, axis=0)
        penalty = penalties[best]
        inside = self.slope / (self.values + penalty[:, None])[:, :, None]
        weights = jnp.einsum("rde,rek->rdk", self.vectors, inside)
        intercept = self.products.in_units(weights, self.units)[1]
        least = jnp.maximum(self.values[:, 0], 0)
        compared = _COMPARED * (least + jnp.min(penalties)) > self.rounding
        easy = squares_are_easy(least + penalty, self.rounding) & compared
        return RidgeFit(weights, intercept, penalty, errors[best, jnp.arange(len(best))]), easy

    def _errors(self, penalties: Float[Array, " S"], row: Int[Array, ""]) -> Float[Array, " S"]:
        """Mean leave-one-out losses of a row for S penalties."""
        cases, outside, slope = self.products, self.outside[row], self.slope[row]
        turned = outside.T @ cases.x.T - (cases.x_mean[row] @ outside)[:, None]
        square, w = jnp.square(turned), cases.w[row]
        y = (cases.y - cases.y_mean[row][None]) / self.units.y_scale[row][None]

        def error(penalty: Float[Array, ""]) -> Float[Array, ""]:
            inverse = 1 / (self.values[row] + penalty)
            own = inverse @ square + cases.share[row]
            predicted = (inverse[:, None] * slope).T @ turned
            losses = jnp.sum(jnp.square(y.T - predicted), axis=0) / jnp.square(1 - own)
            return jnp.sum(jnp.where(w > 0, w * losses, 0)) / cases.total[row]

        together = len(penalties) * slope.shape[1] <= 4 * max(4, len(slope))
        return jax.vmap(error)(penalties) if together else lax.map(error, penalties)


def check_penalties(penalties: Any) -> None:
    """ValueError unless penalties to choose from are numbers above 0."""
    if not isinstance(penalties, tuple) or not penalties:
        raise ValueError(
            f"expected penalties as a tuple of numbers above 0, got {shown(penalties)}; write for example "
            "penalties=(0.1, 1.0, 10.0)"
        )
    for penalty in penalties:
        require_number("every penalty", penalty, above=0, advice="use LeastSquares() for none")
