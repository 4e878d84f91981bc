"""Weighted least squares with an optional ridge."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Shaped

from jaxgen.learn.bases import back_substitute, inverse_root_if_easy, orthonormal
from jaxgen.learn.batched import after, in_any_row, where_rare
from jaxgen.learn.eliminate import eliminated
from jaxgen.learn.gradients import gradients_solver
from jaxgen.learn.grams import weighted_grams
from jaxgen.learn.products import Products, plain_units
from jaxgen.learn.seminormal import LARGE, MUCH, Refined, is_exact, leaves_out_few, of_one, of_rows, with_basis
from jaxgen.learn.shrinkage import FEW, Centred, Shrinkage, Span, beyond_rounding
from jaxgen.types import Data, Key, Learner, Minimum, Plan, RowUnits
from jaxgen.types.numbers import require_flag, require_number

_GRADIENTS, _FACTOR = 80, 3
"""Conjugate gradients are taken for n cases and D inputs where 80 n < m D + 3 D^2, m the cases whose products make the
matrix of a row: some forty rounds of 4 n D operations are then less than m D^2 of large matrices and D^3 / 3 of
LAPACK's, each of which takes as long as twenty of the others.
"""

_PAYS = 4
"""Conjugate gradients take cases that rows leave out off their preconditioner where they are so many times fewer than
inputs: each row then has a system of them to itself.
"""

_FIRST, _SECOND, _MOST = 0.62, 0.25, 4
"""Powers of a rounding to which conjugate gradients solve, and correct what they left; and the most rounds of both.
After the first, most solutions are so exact that the second shows it.
"""


class LinearFit(NamedTuple):
    """Parameters of a linear model: weights [D, K], intercept [K], and whether the fit was rank-deficient []."""

    weights: Float[Array, "*R D K"]
    intercept: Float[Array, "*R K"]
    deficient: Bool[Array, "*R"]


class _Independent(NamedTuple):
    """Coordinates of inputs that depend linearly on each other.

    Attributes:
      basis: orthonormal, with x = centre + coordinates @ basis, [p, D]; 0 for those that are rounding.
      there: 1 for the others, [p].
      centre: where coordinates begin, [D].
    """

    basis: Float[Array, "p D"]
    there: Float[Array, " p"]
    centre: Float[Array, " D"]

    def restored(self, fits: LinearFit, weights: Float[Array, "R D K"]) -> LinearFit:
        """Fits in these coordinates, as those with weights [R, D, K] for the inputs."""
        moved = jnp.einsum("d,rdk->rk", self.centre, weights)
        return fits._replace(weights=weights, intercept=fits.intercept - moved)


@dataclass(frozen=True, repr=False)
class LeastSquares(Learner):
    """Weighted linear least squares, with an optional ridge: minimises sum w (y - prediction)^2 + ridge |weights|^2.

    One training set is solved through an orthonormal basis of its weighted inputs (Gram-Schmidt, every column
    orthogonalised twice), not through the normal equations of the inputs: in single precision those lose
    condition(x)^2 * 6e-8, which is 6 % at a condition number of 1000. Many weightings of the same cases share the
    basis of all cases. In that basis the normal equations of a row have a small condition number; one step of
    refinement corrects them (Bjoerck 1987, "Stability analysis of the method of seminormal equations"), and a row
    whose correction is not small is solved again by itself. Where a row leaves out few cases, its solution comes from
    down-dating the fit of all cases instead: e_C = (I - H_CC)^-1 e_C. The basis of much data, if it is not
    ill-conditioned, is never written out: products of the inputs stand for it, with one more step of refinement. With
    a ridge, rows of much data, and rows that have units of their own (`Normalised`), solve their normal equations, of
    which the last step of refinement tells in the same way whether they were exact enough: those of many inputs by
    conjugate gradients that all rows take together. More inputs than cases are brought into coordinates of the space
    that all cases span; least norms of them, and rows that have units of their own, solve a system with an unknown for
    each case. Less inputs that depend linearly on each other are brought into independent coordinates for a least norm.

    Attributes:
      ridge: penalty on the squared weights (never on the intercept), in units of y^2 / weights^2; not divided by N.
      intercept: whether the model has a constant term.
      minimum_norm: a rank-deficient fit gives the weights of least norm; otherwise its row is marked failed.
    """

    ridge: float = 0.0
    intercept: bool = True
    minimum_norm: bool = False

    shares_rows: ClassVar[bool] = True
    worth_sharing: ClassVar[tuple[int, float]] = (2, 0.0)
    precise: ClassVar[bool] = True
    failures: ClassVar[tuple[str, ...]] = (
        "the inputs of its training cases are linearly dependent, so the weights are not determined "
        "(drop columns, use ridge > 0, or minimum_norm=True)",
    )

    def shares_rows_of(self, cases: int, trained: int, inputs: int) -> bool:
        """Not if a least norm is asked of rows that have less cases than inputs, but all cases more: each has a span of
        its own then.
        """
        return self._penalised or not self.minimum_norm or trained > inputs or inputs >= cases

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses a plan with fewer training cases than coefficients, unless the learner can do with fewer.

        Raises:
          ValueError: a row has fewer distinct training cases than coefficients, the ridge is negative, or a setting is
            of another kind.
        """
        require_number("the ridge", self.ridge, least=0, advice="give 0 for none")
        require_flag("intercept", self.intercept)
        require_flag("minimum_norm", self.minimum_norm)
        needed = data.d + self.intercept
        fewest = int(plan.train_cases.min())
        if fewest < needed and not self.ridge and not self.minimum_norm:
            raise ValueError(
                f"expected at least {needed} training cases for the {needed} coefficients of {self}, got "
                f"{fewest} in {plan.scheme}; "
                "train on more cases, select fewer inputs, use ridge > 0, or minimum_norm=True"
            )

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> LinearFit:
        """Least-squares coefficients of one weighted training set; `key` is not used."""
        used = (w > 0)[:, None]
        x, y = jnp.where(used, x, 0), jnp.where(used, y, 0)
        with jax.default_matmul_precision("highest"):
            if self.minimum_norm and not self._penalised:
                return self._least_norm(x, y, w)
            if self._penalised and x.shape[1] > len(x):
                return self._of_few_cases(x, y, w)
            return self._full_rank(x, y, w)

    @property
    def _penalised(self) -> bool:
        """Whether there is a ridge; one that is traced is above 0, see `Tuned`."""
        return isinstance(self.ridge, jax.Array) or self.ridge > 0

    def shares_along(self, setting: str) -> bool:
        """Of the ridge: one decomposition of the training cases serves all."""
        return setting == "ridge"

    def fit_along(
        self,
        setting: str,
        values: tuple[float, ...],
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
    ) -> LinearFit:
        """The fits for several ridges, every array with a leading axis [S], by one singular value decomposition."""
        with jax.default_matmul_precision("highest"):
            ridges = jnp.asarray(values, x.dtype)
            shrinkage = Shrinkage.of(Centred.of(x, y, w, self.intercept))
            return jax.vmap(lambda ridge: self.fit_of(shrinkage, ridge))(ridges)

    def fit_of(self, shrinkage: Shrinkage, ridge: Float[Array, ""]) -> LinearFit:
        """The fit for a ridge [] to a training set of which there is a decomposition."""
        weights, intercept = shrinkage.coefficients(ridge)
        deficient = shrinkage.deficient & (ridge == 0) & (not self.minimum_norm)
        return LinearFit(jnp.where(deficient, jnp.nan, weights), intercept, deficient)

    def fit_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[LinearFit, Bool[Array, " R"]]:
        """The fits of R weightings of the same cases at once, and which of them to trust."""
        with jax.default_matmul_precision("highest"):
            if self.minimum_norm and not self._penalised:
                return self._least_norms(x, y, w, left_out)
            if self._penalised and x.shape[1] > len(x) and len(x) <= FEW:
                span = Span.of(x, jnp.ones_like(x[:, 0]), self.intercept)
                fits, trusted = self.fit_rows(keys, span.cases, y, w, left_out)
                return span.restored(fits), trusted
            if self._penalised and x.size >= MUCH and not leaves_out_few(left_out, x.shape[1]):
                return self._ridge_of_much(x, y, w, left_out)
            design, scale = self._design(x)
            return self._of_design(design, scale, self._penalty(scale), y, w, left_out)

    def _of_design(
        self,
        design: Float[Array, "n p"],
        scale: Float[Array, " p"],
        penalty: Float[Array, "s p"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[LinearFit, Bool[Array, " R"]]:
        """The fits of R weightings of columns that were divided by scales, and further rows of weight 1 and target 0;
        and which to trust.
        """
        columns = jnp.concatenate([design, penalty])
        coefficients, trusted = with_basis(columns, lambda basis: of_rows(basis, y, w, left_out))
        coefficients = jnp.moveaxis(coefficients / scale[:, None, None], -1, 0)
        return self._split(coefficients, jnp.zeros(len(w), bool)), trusted

    def _least_norms(
        self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, "R n"], left_out: int | None
    ) -> tuple[LinearFit, Bool[Array, " R"]]:
        """The fits of least norm of R weightings, and which to trust. If less inputs than cases depend linearly on each
        other, those whose own cases span all that the others do, in coordinates of which the first are independent; a
        row for each of the others keeps its weight at 0.
        """
        if x.shape[1] >= len(x):
            products, units = Products.of(x, y, w, self.intercept), plain_units(x, y, w)
            weights, trusted = self._of_wide(products, units, alike=True)
            return LinearFit(weights, products.in_units(weights, units)[1], jnp.zeros(len(w), bool)), trusted
        design, scale = self._design(x)
        found = self._of_design(design, scale, self._penalty(scale), y, w, left_out)

        def of_dependent() -> tuple[LinearFit, Bool[Array, " R"]]:
            independent, fits, trusted = self._independent(x, y, w, left_out)
            weights = jnp.einsum("pd,rpk->rdk", independent.basis, fits.weights)
            return independent.restored(fits, weights), trusted

        return where_rare(~jnp.any(found[1]), of_dependent, found)

    def _least_norms_in_units(
        self,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits,
        left_out: int | None,
    ) -> tuple[LinearFit, Bool[Array, " R"]]:
        """The fits of R weightings of less inputs than cases, which depend linearly on each other, of least norm in the
        units of each row; and which to trust.

        Weights v for inputs in units that all rows share have coordinates c = V' v in the basis V of what the cases
        span, whatever else they have. With S the units of a row in those, S v is shortest for v = S^-2 V a,
        V' S^-2 V a = c; one step of refinement tells whether that was exact enough.
        """
        apart = x - jnp.mean(x, axis=0)[None]
        size = jnp.sqrt(jnp.mean(jnp.square(apart), axis=0))
        size = jnp.where(size > 0, size, 1)
        independent, fits, trusted = self._independent(x / size[None], y, w, left_out)
        basis, inverse = independent.basis.T, jax.vmap(after)(fits.weights, jnp.square(size[None] / units.x_scale))
        absent = jnp.diag(1 - independent.there)
        solve = eliminated(jnp.moveaxis(weighted_grams(basis, inverse) + absent[None], 0, -1))
        wanted = jnp.moveaxis(fits.weights, 0, -1)

        def spread(solution: Float[Array, "p K R"]) -> Float[Array, "R D K"]:
            return inverse[:, :, None] * jnp.einsum("dp,pkr->rdk", basis, solution)

        first = solve(wanted)
        correction = solve(wanted - jnp.einsum("dp,rdk->pkr", basis, spread(first)))
        length, moved = (jnp.sum(jnp.square(v), axis=(0, 1)) for v in (first, correction))
        fits = independent.restored(fits, spread(first + correction))
        fits = fits._replace(weights=fits.weights / size[None, :, None])
        exact = moved <= float(jnp.finfo(x.dtype).eps) * length
        return jax.vmap(_in_units)(fits, *units), trusted & exact

    def _independent(
        self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, "R n"], left_out: int | None
    ) -> tuple["_Independent", LinearFit, Bool[Array, " R"]]:
        """Independent coordinates of inputs that depend linearly on each other, the fits of R weightings in these, and
        which to trust: those whose own cases span all that the others do. A row for each of the other coordinates keeps
        its weight at 0.
        """
        shrinkage = Shrinkage.of(Centred.of(x, y, jnp.ones_like(x[:, 0]), self.intercept))
        there = beyond_rounding(shrinkage.values, max(x.shape))
        design, scale = self._design(shrinkage.left * jnp.where(there, shrinkage.values, 0)[None])
        others = jnp.diag(jnp.where(there, 0.0, 1.0).astype(x.dtype), int(self.intercept))
        fits, trusted = self._of_design(design, scale, others[: len(there), : len(scale)], y, w, left_out)
        basis = jnp.where(there[:, None], shrinkage.right, 0)
        return _Independent(basis, there.astype(x.dtype), shrinkage.cases.x_mean), fits, trusted

    def predict(self, params: LinearFit, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predicted targets, in the units of y."""
        return jnp.matmul(x, params.weights, precision="highest") + params.intercept[None]

    def failure(self, params: LinearFit) -> Int[Array, ""]:
        """1 for a rank-deficient fit, else 0; []."""
        return params.deficient.astype(jnp.int32)

    def diagnose(self, params: LinearFit) -> dict[str, Float[Array, "..."]]:
        """The coefficients: weights [D, K] and intercept [K]."""
        return {"weights": params.weights, "intercept": params.intercept}

    def minimised(self, params: LinearFit) -> Minimum:
        """What the fit made small, for `algebraic.full_fit`: squared errors [n] and the ridge [], of weights [D, K]
        and, if there is one, intercept [K].
        """
        free = {name: getattr(params, name) for name in (("weights", "intercept") if self.intercept else ("weights",))}

        def cost(free, x, y):
            return jnp.sum(jnp.square(y - self.predict(params._replace(**free), x)), axis=1), self.ridge * jnp.sum(
                jnp.square(free["weights"])
            )

        return free, lambda free: params._replace(**free), cost

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
    ) -> tuple[LinearFit, Bool[Array, " R"]]:
        """The fits of R weightings of the same cases at once, each in units of its own, and which of them to trust.

        Without a ridge they do not depend on units, unless inputs depend linearly on each other. With one, rows share
        their cases' products, and each solves normal equations in its units, which one step of refinement corrects.
        """
        least_norm = self.minimum_norm and not self._penalised and x.shape[1] >= len(x)
        if not (self._penalised or least_norm):
            fits, trusted = replace(self, minimum_norm=False).fit_rows(keys, x, y, w, left_out)
            found = jax.vmap(_in_units)(fits, *units), trusted
            if not self.minimum_norm:
                return found
            with jax.default_matmul_precision("highest"):
                return where_rare(
                    ~jnp.any(trusted), lambda: self._least_norms_in_units(x, y, w, units, left_out), found
                )
        with jax.default_matmul_precision("highest"):
            products = Products.of(x, y, w, True)
            if least_norm or (x.shape[1] > len(x) and len(x) <= FEW):
                weights, trusted = self._of_wide(products, units, alike=False)
            else:
                weights, trusted = self._with_ridge(products, units, jnp.ones_like(units.x_scale), left_out)
            fits = LinearFit(weights, products.in_units(weights, units)[1], jnp.zeros(len(w), bool))
        return fits, trusted

    def _ridge_of_much(
        self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, "R n"], left_out: int | None
    ) -> tuple[LinearFit, Bool[Array, " R"]]:
        """The fits of rows of much data, each by normal equations: in units of the columns that all rows share, since
        the correction that tells which to trust is of all weights together.
        """
        products = Products.of(x, y, w, self.intercept)
        size = jnp.sqrt(jnp.mean(jnp.square(products.x), axis=0))
        scale = jnp.broadcast_to(jnp.where(size > 0, size, 1), (len(w), x.shape[1]))
        units = plain_units(x, y, w)._replace(x_scale=scale)
        weights, trusted = self._with_ridge(products, units, scale, left_out)
        weights, intercept = products.in_units(weights, units)
        return LinearFit(weights, intercept, jnp.zeros(len(w), bool)), trusted

    def _with_ridge(
        self, products: Products, units: RowUnits, shrunk: Float[Array, "R D"], left_out: int | None
    ) -> tuple[Float[Array, "R D K"], Bool[Array, " R"]]:
        """Weights in the units of each row, with a ridge on weights divided by `shrunk`; and which of them to trust:
        those that the last step of refinement moves by less than the root of a rounding, so that what it leaves is a
        rounding.
        """
        scale, ridge = units.x_scale, jnp.asarray(self.ridge, products.x.dtype) / jnp.square(shrunk)
        eps = float(jnp.finfo(ridge.dtype).eps)
        (n, d), rows = products.x.shape, len(scale)
        few = left_out if leaves_out_few(left_out, d // _PAYS) else None
        if _GRADIENTS * n < (n if left_out is None else left_out) * d + _FACTOR * d * d:
            solve, most = gradients_solver(products, scale, ridge, few), _MOST
        else:
            gram, _ = products.gram(left_out)
            inside = gram / scale[:, :, None] / scale[:, None]
            matrices = inside + ridge[:, :, None] * jnp.eye(d, dtype=ridge.dtype)[None]
            by_elimination = eliminated(jnp.moveaxis(matrices, 0, -1))
            solve, most = (lambda b, _: by_elimination(b)), 2

        def exact(state: Refined) -> Bool[Array, " R"]:
            size, moved = (jnp.sum(jnp.square(v), axis=(0, 1)) for v in (state.solution, state.correction))
            return moved <= eps * size

        def unfinished(state: tuple[Int[Array, ""], Refined]) -> Bool[Array, ""]:
            return in_any_row((state[0] < 2) | ((state[0] < most) & ~jnp.all(exact(state[1]))))

        def refine(state: tuple[Int[Array, ""], Refined]) -> tuple[Int[Array, ""], Refined]:
            number, found = state
            weights = jnp.moveaxis(found.solution, -1, 0)
            left = products.residual(weights * units.y_scale[:, None] / scale[:, :, None])
            slope = products.projected(left / units.y_scale[:, None]) / scale[:, :, None] - ridge[:, :, None] * weights
            tolerance = jnp.where(number == 0, eps**_FIRST, eps**_SECOND)
            correction = solve(jnp.moveaxis(slope, 0, -1), tolerance)
            return number + 1, Refined(found.solution + correction, correction)

        nothing = jnp.zeros((d, products.y.shape[1], rows), ridge.dtype)
        _, found = lax.while_loop(unfinished, refine, (jnp.int32(0), Refined(nothing, nothing)))
        return jnp.moveaxis(found.solution, -1, 0), exact(found)

    def _of_wide(
        self, products: Products, units: RowUnits, *, alike: bool
    ) -> tuple[Float[Array, "R D K"], Bool[Array, " R"]]:
        """Weights in the units of each row, which may be alike, of more inputs than cases, and which of them to trust,
        see `_with_ridge`.

        They are A' a, with A the cases of the row in its units, about its mean and times the root of their weights, and
        (ridge + A A') a = b, b the same of targets: there is an unknown for each case. Without a ridge they are those
        of least norm; A A' is then filled up where cases are absent, and in the direction in which the mean was taken
        off, where b is 0.
        """
        cases, scale, root = products, units.x_scale, jnp.sqrt(products.w)
        eps, inverse = float(jnp.finfo(root.dtype).eps), 1 / jnp.square(scale)
        unit = jnp.eye(len(cases.x), dtype=root.dtype)
        at_mean = jnp.einsum("nd,rd->rn", cases.x, inverse * cases.x_mean)
        mean = jnp.einsum("rd,rd->r", cases.x_mean, inverse * cases.x_mean)
        inside = (cases.x @ cases.x.T)[None] if alike else weighted_grams(cases.x.T, inverse)
        inside = inside - at_mean[:, :, None] - at_mean[:, None] + mean[:, None, None]
        matrices = root[:, :, None] * inside * root[:, None]
        if self._penalised:
            filling = jnp.asarray(self.ridge, root.dtype) * unit[None]
        else:
            absent = unit[None] * (cases.w == 0)[:, None].astype(root.dtype)
            typical = jnp.trace(matrices, axis1=1, axis2=2) / len(unit)
            taken = cases.share[:, None, None] * root[:, :, None] * root[:, None]
            filling = typical[:, None, None] * (absent + taken)
        solve = eliminated(jnp.moveaxis(matrices + filling, 0, -1))

        def weights_of(found: Float[Array, "n K R"]) -> Float[Array, "R D K"]:
            values = root[:, :, None] * jnp.moveaxis(found, -1, 0)
            slope = jnp.einsum("nd,rnk->rdk", cases.x, values)
            slope = slope - cases.x_mean[:, :, None] * jnp.sum(values, axis=1)[:, None]
            return slope / scale[:, :, None]

        def refine(_, state: Refined) -> Refined:
            outside = weights_of(state.solution) * units.y_scale[:, None] / scale[:, :, None]
            left = root[:, :, None] * cases.residual(outside) / units.y_scale[:, None]
            correction = solve(jnp.moveaxis(left, 0, -1) - self.ridge * state.solution)
            return Refined(state.solution + correction, correction)

        nothing = jnp.zeros((len(unit), cases.y.shape[1], len(scale)), root.dtype)
        found = lax.fori_loop(0, 2, refine, Refined(nothing, nothing))
        size, moved = (jnp.sum(jnp.square(v), axis=(0, 1)) for v in (found.solution, found.correction))
        return weights_of(found.solution), moved <= eps * size

    def _design(self, x: Float[Array, "n D"]) -> tuple[Float[Array, "n p"], Float[Array, " p"]]:
        """Columns of the model, each scaled to a largest value of 1, and those scales."""
        columns = jnp.concatenate([jnp.ones((len(x), 1), x.dtype), x], axis=1) if self.intercept else x
        scale = jnp.max(jnp.abs(columns), axis=0)
        scale = jnp.where(scale > 0, scale, 1)
        return columns / scale[None], scale

    def _penalty(self, scale: Float[Array, " p"]) -> Float[Array, "s p"]:
        """The ridge as further rows of the design; none without a ridge."""
        if not self._penalised:
            return jnp.zeros((0, len(scale)), scale.dtype)
        return jnp.diag(jnp.sqrt(jnp.asarray(self.ridge, scale.dtype)) / scale)[int(self.intercept) :]

    def _split(self, coefficients: Float[Array, "*R p K"], deficient: Bool[Array, "*R"]) -> LinearFit:
        if self.intercept:
            return LinearFit(coefficients[..., 1:, :], coefficients[..., 0, :], deficient)
        return LinearFit(
            coefficients,
            jnp.zeros_like(coefficients[..., 0, :], shape=(*coefficients.shape[:-2], coefficients.shape[-1])),
            deficient,
        )

    def _full_rank(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> LinearFit:
        root = jnp.sqrt(w)[:, None]
        design, scale = self._design(x)
        columns = jnp.concatenate([root * design, self._penalty(scale)])
        coefficients, deficient = of_one(columns, jnp.pad(root * y, ((0, len(columns) - len(y)), (0, 0))))
        return self._split(jnp.where(deficient, jnp.nan, coefficients / scale[:, None]), deficient)

    def _of_few_cases(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> LinearFit:
        """The fit with a ridge of more inputs than cases, of which each has an unknown, see `_of_wide`."""
        cases, ridge = Centred.of(x, y, w, self.intercept), jnp.asarray(self.ridge, x.dtype)
        unit = jnp.eye(len(x), dtype=x.dtype)
        inside, taken = cases.x @ cases.x.T, jnp.sqrt(cases.share)
        filling = jnp.diag((w == 0).astype(x.dtype)) + taken[:, None] * taken[None]
        typical = jnp.trace(inside) / len(x)
        root, ill = inverse_root_if_easy(inside + ridge * unit + typical * filling)
        first = root @ (root.T @ cases.y)
        correction = root @ (root.T @ (cases.y - cases.x @ (cases.x.T @ first) - ridge * first))

        def carefully() -> Float[Array, "n K"]:
            tall = jnp.concatenate([cases.x.T, jnp.sqrt(ridge) * unit])
            _, triangle, _ = orthonormal(tall, lapack=tall.size > LARGE)
            inside = back_substitute(triangle.T[::-1, ::-1], cases.y[::-1])[::-1]
            return back_substitute(triangle, inside)

        weights = cases.x.T @ where_rare(ill | ~is_exact(first, correction), carefully, first + correction)
        return LinearFit(weights, cases.intercept(weights), jnp.zeros((), bool))

    def _least_norm(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> LinearFit:
        share = w / jnp.sum(w) if self.intercept else jnp.zeros_like(w)
        x_mean, y_mean = share @ x, share @ y
        root = jnp.sqrt(w)[:, None]
        left, values, right = jnp.linalg.svd(root * (x - x_mean[None]), full_matrices=False)
        kept = beyond_rounding(values, max(x.shape))
        inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)
        weights = right.T @ (inverse[:, None] * (left.T @ (root * (y - y_mean[None]))))
        return LinearFit(weights, y_mean - x_mean @ weights, jnp.zeros((), bool))


def _in_units(
    params: LinearFit,
    x_centre: Float[Array, " D"],
    x_scale: Float[Array, " D"],
    y_centre: Float[Array, " K"],
    y_scale: Float[Array, " K"],
) -> LinearFit:
    """The same model, weights [D, K], for inputs and targets that have been centred and divided by a scale."""
    at_centre = jnp.matmul(x_centre, params.weights, precision="highest") + params.intercept
    weights = params.weights * x_scale[:, None] / y_scale[None]
    return LinearFit(weights, (at_centre - y_centre) / y_scale, params.deficient)
