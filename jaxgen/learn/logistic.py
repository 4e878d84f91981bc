"""Logistic and softmax regression: linear classifiers that give probabilities."""

from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Shaped

from jaxgen.learn.bases import nearly_orthonormal_if_easy
from jaxgen.learn.batched import in_turn, where_rare
from jaxgen.learn.coordinates import MANY, Coordinates, Orthonormal, Ridge, orthonormal_columns
from jaxgen.learn.newton import NOT_CONVERGED, minimised, start_for_similar
from jaxgen.learn.products import plain_units
from jaxgen.learn.shrinkage import FEW, Span
from jaxgen.learn.softmax import (
    Gram,
    ManyClasses,
    Problem,
    Start,
    TwoClasses,
    many_unknowns,
    modelled_of,
    orthonormal_contrasts,
    pairs_of,
)
from jaxgen.learn.systems import cholesky
from jaxgen.types import Data, Key, Learner, Minimum, Plan, RowFills, RowUnits
from jaxgen.types.numbers import require, require_flag, require_number

MOST_STEPS = 2**31 - 1
"""Steps are counted in 32 bits."""

_ONE_SIDED, _DEPENDENT = 3, 4

_WELL_CONDITIONED = 1e-4
"""Smallest pivot of a row's weighted cases, in coordinates in which all cases are orthonormal, with which its fit is
trusted; others are fitted in coordinates of their own.
"""

_NEAR = 0.03
"""Relative change of the logits by the last step to where all rows begin; their own minima are further away."""

_MUCH = 1 << 23
"""Rows times cases times coefficients from which on a common start saves more than its compilation costs; of `MANY`
coefficients of a class it always does, since each row would need an inverse matrix of its own.
"""

_ALONE_CLASSES, _ALONE = 8, 1 << 19
"""Classes, and cases times coefficients, from which on a row is work enough by itself for products of matrices to run
at their full speed.
"""

_SHARED, _MANY_TIMES = 1500, 4
"""Up to so many cases of more inputs, and with so many times as many inputs in any case, coordinates of the space that
the cases span take less time than they save where rows share them.
"""


class LogisticFit(NamedTuple):
    """Parameters of a logistic or softmax model.

    Attributes:
      weights: [D, K], in logits per unit of x; with K >= 2 they add up to 0 over the classes.
      intercept: [K], logits; with K >= 2 they add up to 0.
      iterations: Newton steps taken, from zero or from where all rows begin, [].
      gradient: length of the gradient relative to that of the residuals (with the ridge's share), in coordinates
        in which the weighted inputs are orthonormal, []: the cosine of the angle that is 90 degrees at the minimum.
      trouble: 0 for a converged fit, else the number of the sentence in `Logistic.failures`, [].
    """

    weights: Float[Array, "*R D K"]
    intercept: Float[Array, "*R K"]
    iterations: Int[Array, "*R"]
    gradient: Float[Array, "*R"]
    trouble: Int[Array, "*R"]

    @property
    def converged(self) -> Bool[Array, "*R"]:
        """Whether this is the minimum, []."""
        return self.trouble == 0


@dataclass(frozen=True, repr=False)
class Logistic(Learner):
    """Logistic regression of y [n, 1], softmax regression of y [n, K >= 2]: minimises sum w cross-entropy + ridge / 2
    |weights|^2.

    The cross-entropy of a case is -ln of the probability of its class, in nats: -y ln p - (1 - y) ln(1 - p) for one
    column (Scott & Variyam, slides on loss functions). The minimum is found by Newton's method, for this model the
    same as iteratively reweighted least squares (Boehning 1992, "Multinomial logistic regression algorithm"), with the
    step halved until the objective falls (Boyd & Vandenberghe 2004, "Convex Optimization", algorithms 9.2 and 9.5), so
    it cannot diverge. Softmax weights add up to 0 over the classes, which leaves out exactly the direction that the
    probabilities do not depend on; the ridge acts on all K vectors alike. So two columns with a ridge r are one column
    with a ridge r / 2. Beyond 64 unknowns, Newton's equations are solved by conjugate gradients, as exactly as the
    distance to the minimum deserves (Dembo, Eisenstat & Steihaug 1982, "Inexact Newton methods"; Eisenstat & Walker
    1996, "Choosing the forcing terms in an inexact Newton method", choice 2); for many rows with a ridge in single
    precision, which decides how fast the minimum is reached but not where it is.

    Newton's method works on an orthonormal basis of the weighted inputs, centred and scaled, so units and correlations
    of the inputs do no harm, and the ridge keeps its meaning in their own units. Many rows of one data set share the
    basis of all their cases, but for those rows whose own cases it does not suit; where there is much to do they begin
    near the minimum for their mean weights, which is near that of each. Beyond 64 unknowns and with a ridge, L-BFGS
    (Nocedal 1980) goes most of the rest of the way, since its steps cost one gradient each, and Newton's method has one
    or two steps left. It stops after a full step that would change no logit by more than sqrt(eps) (1 + largest
    logit), eps the rounding of the dtype; as the convergence is quadratic, what remains is rounding. With conjugate
    gradients in double precision about 1e-9 of the largest logit may remain. Probabilities of breast_cancer, in units
    from 1e-3 to 1e3, are those of scikit-learn within 1e-5 in single and 1e-11 in double precision. Without a ridge, a
    fit whose curvature is lost in rounding in some direction (below 4e-6 of the largest in single precision) is taken
    as separable. With a ridge, more inputs than cases are first brought into coordinates of the space that these span.

    Attributes:
      ridge: penalty on the squared weights (never on the intercept), in nats / weights^2; not divided by N, the 1 / C
        of scikit-learn, and 1 by default as there. 0 asks for the plain maximum of the likelihood, which separable
        classes do not have.
      intercept: whether the model has a constant term.
      steps: most Newton steps.
    """

    ridge: float = field(default=1.0, metadata={"always shown": True})
    intercept: bool = True
    steps: int = 50

    classifies: ClassVar[bool] = True
    predicts: ClassVar[str] = "probabilities"
    precise: ClassVar[bool] = True
    failures: ClassVar[tuple[str, ...]] = (
        "Newton's method did not converge (raise steps, or use ridge > 0)",
        "its training cases are separable by their inputs (or close to it), so the weights grow "
        "without bound (use ridge > 0)",
        "a class has no training case, so the intercept has no finite value (stratify the plan, or "
        "train on more cases)",
        "the inputs of its training cases are linearly dependent, so the weights are not determined "
        "(drop columns, or use ridge > 0)",
    )

    prepares_rows: ClassVar[bool] = True
    counts_left_out: ClassVar[bool] = False
    worth_sharing: ClassVar[tuple[int, float]] = (2, 0.45)

    @property
    def rounds(self) -> int:
        """About as many as Newton's method needs."""
        return 10

    @property
    def shares_rows(self) -> bool:
        """Whether there is `fit_rows`."""
        return True

    def shares_rows_of(self, cases: int, trained: int, inputs: int) -> bool:
        """Not if there are more inputs than cases and rows leave out more than a third of these: each then has so much
        fewer coordinates of its own.
        """
        return inputs <= cases or 3 * trained >= 2 * cases

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses targets that are not classes.

        Raises:
          ValueError: a target is neither 0 nor 1, or the K >= 2 targets of a case do not add up to 1; the ridge is
            negative, there is no step to take, or a setting is of another kind.
        """
        require_number("the ridge", self.ridge, least=0, advice="give 0 for none")
        require_flag("intercept", self.intercept)
        require("the Newton steps", self.steps, 1, MOST_STEPS, advice="leave steps out for 50")
        other = np.argwhere((data.y != 0) & (data.y != 1))
        if len(other):
            where = tuple(int(i) for i in other[0])
            raise ValueError(
                f"expected targets of zeros and ones for {self}, got {data.y[where]:g} in case {where[-2]}; "
                "read the data with task='classification'"
            )
        classes = data.y.sum(-1)
        if data.y.shape[-1] > 1 and (classes != 1).any():
            where = tuple(int(i) for i in np.argwhere(classes != 1)[0])
            raise ValueError(
                f"expected one class for every case, got {int(classes[where])} of {data.y.shape[-1]} in case "
                f"{where[-1]}; give one column of zeros and ones per class"
            )

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> LogisticFit:
        """Coefficients of one weighted training set; `key` is not used."""
        with jax.default_matmul_precision("highest"):
            if self._penalised and _is_wide(x, _SHARED):
                span = Span.of(x, w, self.intercept)
                return span.restored(self._on_basis(self._basis_of(span), y, w))
            return self._on_basis(self._basis(x, w, orthonormal_columns), y, w)

    def _on_basis(self, basis: Coordinates, y: Float[Array, "n K"], w: Float[Array, " n"]) -> LogisticFit:
        """The fit of one weighted training set on its own basis."""
        if not (self._quick(y) and many_unknowns(y.shape[1], len(basis.cases))):
            return self._minimum(basis, y, w, None)
        start = self._problem(basis, y, w, None)[0].at_zero()
        found = self._minimum(basis, y, w, None, start, quick=True)
        return where_rare(found.trouble == NOT_CONVERGED, lambda: self._minimum(basis, y, w, None), found)

    def prepared(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], rows: int) -> "Logistic":
        """With a basis of all cases [n, D], [n, K] and, where there is much to do, a start near the minimum for the
        mean weights [n] of the rows.
        """
        if not (self._penalised and _is_wide(x, _SHARED)):
            return self.prepared_in_units(x, y, w, rows, jnp.ones_like(x[0]))
        plain = self._plain
        with jax.default_matmul_precision("highest"):
            span = Span.of(x, jnp.ones_like(w), self.intercept)
            common = _of(plain, _in_common_of)(rows, self._basis_of(span), y, w)
            return _Prepared(**vars(plain), common=common, span=span)

    def prepared_in_units(
        self,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        rows: int,
        scale: Float[Array, " D"],
    ) -> "Logistic":
        """The same for rows whose ridge is on weights in units of about this scale, [D]. Of more inputs than cases rows
        share nothing, since each has other coordinates in which there are no more than cases.
        """
        plain = self._plain
        if self._penalised and _is_wide(x, FEW):
            return plain
        with jax.default_matmul_precision("highest"):
            common = _of(plain, _in_common)(rows, x, y, w, scale)
            return _Prepared(**vars(plain), common=common)

    def prepared_filled(
        self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], rows: int
    ) -> "Logistic":
        """The same for rows that fill missing inputs in with numbers of their own. Coordinates of the space that cases
        [n, D], [n, K] of mean weights [n] span are not those of other cases.
        """
        return self.prepared_in_units(x, y, w, rows, jnp.ones_like(x[0]))

    @property
    def _plain(self) -> "Logistic":
        """The same without what rows share."""
        return Logistic(**{part.name: getattr(self, part.name) for part in fields(Logistic)})

    def fit_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """The fits of R weightings of the same cases at once, on one basis of them all, and which of them to trust."""
        return self.prepared(x, y, jnp.mean(w, axis=0), len(w)).fit_rows(keys, x, y, w, left_out)

    @property
    def shares_rows_in_units(self) -> bool:
        """A model without a constant term depends on where the units of a row begin."""
        return self.intercept

    @property
    def shares_rows_filled(self) -> bool:
        """Whether there is `fit_rows_filled`."""
        return True

    def fit_rows_in_units(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits,
        left_out: int | None,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """`fit_rows` of weights [R, n] where each row has inputs in units of its own, which only the ridge knows of;
        targets are the classes as they are.
        """
        if self._penalised and _is_wide(x, FEW):
            return self._in_turn(keys[0], x, y, w, units)
        prepared = self.prepared_in_units(x, y, jnp.mean(w, axis=0), len(w), jnp.mean(units.x_scale, axis=0))
        return prepared.fit_rows_in_units(keys, x, y, w, units, left_out)

    def fit_rows_filled(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        fills: RowFills,
        units: RowUnits | None,
        left_out: int | None,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """The same of weights [R, n] in rows that put numbers of their own in the place of missing inputs [n, D]: they
        share the coordinates of cases with about the same numbers, and where to begin.
        """
        if self._penalised and _is_wide(x, FEW):
            return self._in_turn(keys[0], x, y, w, plain_units(x, y, w) if units is None else units, fills)
        scale = jnp.ones_like(x[0]) if units is None else jnp.mean(units.x_scale, axis=0)
        prepared = self.prepared_in_units(x, y, jnp.mean(w, axis=0), len(w), scale)
        return prepared.fit_rows_filled(keys, x, y, w, fills, units, left_out)

    def _in_turn(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits,
        fills: RowFills | None = None,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """The fits of rows that share nothing, each in its own units and with its own numbers for missing inputs."""
        plain, more = self._plain, None if fills is None else fills.more

        def of_row(w: Float[Array, " n"], unit: RowUnits, more: Float[Array, " D"] | None) -> LogisticFit:
            inputs = x if fills is None or more is None else fills.filled(x, more)
            return plain.fit_in_units(key, inputs, y, w, unit.x_centre, unit.x_scale)

        return in_turn(of_row)(w, units, more), jnp.ones(len(w), bool)

    def _quick(self, y: Float[Array, "n K"]) -> bool:
        """Whether steps of many rows are found in single precision, for cases in double."""
        return self._penalised and y.dtype == jnp.float64

    @property
    def _penalised(self) -> bool:
        """Whether there is a ridge; one that is traced is above 0, see `Tuned`."""
        return isinstance(self.ridge, jax.Array) or self.ridge > 0

    def _start(
        self,
        basis: Coordinates,
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        products: Float[Array, "t m"] | None,
        quick: bool,
    ) -> Start:
        """Where rows whose mean weights are w [n] begin: near the minimum for these, which is near that of each; single
        precision is enough for that.
        """
        problem, hopeless, _ = self._problem(basis, y, w, products)
        asked = problem.single if quick else problem
        begin = asked.at_zero() if quick and len(basis.cases) >= MANY else None
        state = minimised(asked, hopeless, self.steps, not self._penalised, begin, quick, _NEAR)
        start = start_for_similar(asked, state)
        # What rounding leaves of the sum over the classes would stay, since no step has any.
        return start._replace(solution=problem.centred(start.solution.astype(y.dtype)))

    def _problem(
        self, basis: Coordinates, y: Float[Array, "n K"], w: Float[Array, " n"], products: Float[Array, "t m"] | None
    ) -> tuple[Problem, Bool[Array, ""], Bool[Array, ""]]:
        """What is to be minimised, whether there is no minimum, and whether that is so because a class is absent; of n
        cases, which the basis may fill up to m.
        """
        y, w = (basis.with_absent(values) for values in (y, w))
        used = w > 0
        y = jnp.where(used[:, None], y, 0)
        one_sided = self.intercept & jnp.any(w @ _of_every_class(y, used) <= 0)
        modelled = modelled_of(y.shape[1])
        ridge = basis.ridge.times(modelled / y.shape[1])  # of two columns, half of it
        given = basis.cases, basis.turned, ridge, w, products
        problem = TwoClasses(*given, 2 * y[:, 0] - 1) if modelled == 1 else ManyClasses(*given, y.T)
        return problem, basis.deficient | one_sided, one_sided

    def _minimum(
        self,
        basis: Coordinates,
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        products: Float[Array, "t m"] | None,
        start: Start | None = None,
        quick: bool = False,
    ) -> LogisticFit:
        """The minimum for one weighted training set, found on a basis of its cases or of more."""
        problem, hopeless, one_sided = self._problem(basis, y, w, products)
        state = minimised(problem, hopeless, self.steps, not self._penalised, start, quick)
        solution = state.point.solution
        trouble = jnp.select([one_sided, basis.deficient], [_ONE_SIDED, _DEPENDENT], state.trouble)
        if y.shape[1] > len(solution):
            solution = jnp.concatenate([solution, -solution]) / 2
        coefficients = jnp.where(hopeless, jnp.nan, basis.transform @ solution.T)
        weights = coefficients[int(self.intercept) :] / basis.scale[:, None]
        intercept = (
            coefficients[0] - basis.centre @ weights if self.intercept else jnp.zeros_like(weights, shape=y.shape[1:])
        )
        return LogisticFit(weights, intercept, state.iterations, problem.cosine(state.point.solution), trouble)

    def predict(self, params: LogisticFit, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Probabilities of the classes, in the form of y: one column, or K that add up to 1."""
        logits = jnp.matmul(x, params.weights, precision="highest") + params.intercept[None]
        return jax.nn.sigmoid(logits) if logits.shape[1] == 1 else jax.nn.softmax(logits, axis=1)

    def failure(self, params: LogisticFit) -> Int[Array, ""]:
        """0 for a converged fit, else the number of its sentence in `failures`; []."""
        return params.trouble

    def diagnose(self, params: LogisticFit) -> dict[str, Float[Array, "..."] | Int[Array, ""]]:
        """The coefficients, weights [D, K] and intercept [K], and the Newton steps taken, steps []."""
        return {"weights": params.weights, "intercept": params.intercept, "steps": params.iterations}

    def minimised(self, params: LogisticFit) -> Minimum:
        """What the fit made small, for `algebraic.full_fit`: cross-entropies [n] and the ridge [].

        Free are weights [D, 1] and, if there is one, intercept [1] of one column; [D, K - 1] and [K - 1] in contrasts
        of K classes.
        """
        k = params.weights.shape[1]
        apart = jnp.asarray(orthonormal_contrasts(k) if k > 1 else [[1.0]], params.weights.dtype)
        names = ("weights", "intercept") if self.intercept else ("weights",)

        def rebuild(free):
            return params._replace(**{name: value @ apart.T for name, value in free.items()})

        def cost(free, x, y):
            fit = rebuild(free)
            logits = jnp.matmul(x, fit.weights, precision="highest") + fit.intercept[None]
            losses = (
                jax.nn.softplus(logits) - y * logits if y.shape[1] == 1 else -y * jax.nn.log_softmax(logits, axis=1)
            )
            return jnp.sum(losses, axis=1), self.ridge / 2 * jnp.sum(jnp.square(fit.weights))

        return {name: getattr(params, name) @ apart for name in names}, rebuild, cost

    def _units(self, x: Float[Array, "n D"], used: Bool[Array, "n 1"]) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        """Centre and half-width of the range of each column; unlike a mean, the centre of a constant is exactly this
        constant.
        """
        low, high = jnp.min(jnp.where(used, x, jnp.inf), axis=0), jnp.max(jnp.where(used, x, -jnp.inf), axis=0)
        centre = (0.5 * high + 0.5 * low) if self.intercept else jnp.zeros_like(low)
        scale = jnp.max(jnp.where(used, jnp.abs(x - centre[None]), 0), axis=0)
        return centre, jnp.where(scale > 0, scale, 1)

    def _basis(self, x: Float[Array, "n D"], w: Float[Array, " n"], orthonormal: Orthonormal) -> Coordinates:
        """An orthonormal basis of the weighted cases and the ridge."""
        used = w > 0
        x = jnp.where(used[:, None], x, 0)
        centre, scale = self._units(x, used[:, None])
        design = jnp.where(used[None], (x.T - centre[:, None]) / scale[:, None], 0)
        if self.intercept:
            design = jnp.concatenate([used.astype(x.dtype)[None], design])
        root = jnp.sqrt(w)
        columns = [root[None] * design]
        if self._penalised:
            ridge = jnp.diag(jnp.sqrt(jnp.asarray(self.ridge, x.dtype)) / scale, -int(self.intercept))
            columns.append(ridge[: len(design), : len(scale)])
        vectors, transform, deficient = orthonormal(jnp.concatenate(columns, axis=1))
        cases = jnp.where(root[None] > 0, vectors[:, : len(w)] / jnp.where(root > 0, root, 1)[None], 0)
        penalty = vectors[:, len(w) :].T
        return Coordinates(cases, cases.T, penalty, Ridge(penalty.T @ penalty), transform, centre, scale, deficient)

    def _basis_of(self, span: Span) -> Coordinates:
        """A basis of the cases of a span, whose coordinates are orthogonal to each other and to a constant: those of
        unit length, with the ridge.
        """
        cases, n = span.cases.T, len(span.cases)
        ridges = jnp.full(n, self.ridge, cases.dtype)
        if self.intercept:
            cases = jnp.concatenate([jnp.ones_like(cases[:1]), cases])
            ridges = jnp.concatenate([jnp.zeros_like(ridges[:1]), ridges])
        size = lax.rsqrt(jnp.sum(jnp.square(cases), axis=1) + ridges)
        cases, penalty = size[:, None] * cases, jnp.diag(jnp.sqrt(ridges) * size)
        none, one = jnp.zeros_like(span.cases[0]), jnp.ones_like(span.cases[0])
        return Coordinates(
            cases,
            cases.T,
            penalty[int(self.intercept) :],
            Ridge(jnp.square(penalty)),
            jnp.diag(size),
            none,
            one,
            jnp.bool_(False),
        )


def _is_wide(x: Float[Array, "n D"], most: int) -> bool:
    """Whether there are more inputs than cases, and many times as many where there are more than `most`."""
    n, inputs = x.shape
    return inputs > n and (n <= most or inputs >= _MANY_TIMES * n)


def _of_every_class(y: Float[Array, "n K"], used: Bool[Array, " n"]) -> Float[Array, "n C"]:
    """Targets of K >= 2 classes, or of the one class and the other; 0 for absent cases."""
    return y if y.shape[1] > 1 else jnp.where(used[:, None], jnp.concatenate([y, 1 - y], axis=1), 0)


class _Common(NamedTuple):
    """What rows share: a basis of all cases, the products of any two of its coordinates if they are few, and where to
    begin; None for zero. And 1 where an input of a case is missing, for rows that put numbers of their own there.
    """

    basis: Coordinates
    products: Float[Array, "t m"] | None
    start: Start | None
    missing: Float[Array, "n D"] | None = None

    def of_row(self, scale: Float[Array, " D"] | None, fill: Float[Array, " D"] | None) -> "_Common":
        """The same with a ridge on weights times the scales of a row, [D], if it has some, and with what it adds to
        missing inputs.
        """
        basis = self.basis if scale is None else self.basis.penalised_by(scale)
        if fill is None or self.missing is None:
            return self._replace(basis=basis)
        return self._replace(basis=basis.filled(self.missing, fill), products=None)


# JAX remembers what it traced of these three, so a job is not traced twice, to see what it needs and to compile it.
# It cannot where the ridge is traced, see `Tuned`.


def _of(learner: Logistic, function: Any) -> Any:
    """A function of a learner and arrays, as one of arrays."""
    known = not isinstance(learner.ridge, jax.Array)
    return partial(function if known else function.__wrapped__, learner)


@partial(jax.jit, static_argnums=(0, 1))
def _in_common(
    learner: Logistic,
    rows: int,
    x: Float[Array, "n D"],
    y: Float[Array, "n K"],
    w: Float[Array, " n"],
    scale: Float[Array, " D"],
) -> _Common:
    """What rows share that have these weights on average, and a ridge on weights in units of about this scale."""
    basis = learner._basis(x, jnp.ones_like(w), nearly_orthonormal_if_easy)
    return _in_common_of.__wrapped__(learner, rows, basis, y, w, scale)


@partial(jax.jit, static_argnums=(0, 1))
def _in_common_of(
    learner: Logistic,
    rows: int,
    basis: Coordinates,
    y: Float[Array, "n K"],
    w: Float[Array, " n"],
    scale: Float[Array, " D"] | None = None,
) -> _Common:
    """The same on a basis of all cases."""
    if many_unknowns(y.shape[1], len(basis.cases)):
        basis = basis.padded()
    products, start = pairs_of(basis.cases), None
    if rows * basis.cases.size * modelled_of(y.shape[1]) >= _MUCH or len(basis.cases) >= MANY:
        typical = basis if scale is None else basis.penalised_by(scale)
        start = learner._start(typical, y, w, products, learner._quick(y))
    return _Common(basis, products, start)


@jax.jit
def _gram(
    common: _Common, w: Float[Array, " n"], scale: Float[Array, " D"] | None, fill: Float[Array, " D"] | None
) -> Float[Array, "q q"]:
    """The Gram matrix [q, q] of the weighted cases of a row; see `_Common.of_row`."""
    basis, products, *_ = common.of_row(scale, fill)
    gram = Gram(basis.cases, basis.turned, basis.ridge, basis.with_absent(w), products)
    gram = gram if products is not None else gram.single
    q = len(basis.transform)
    return gram.weighted(gram.w[None])[0, :q, :q]


@partial(jax.jit, static_argnums=0)
def _of_row(
    learner: Logistic,
    common: _Common,
    y: Float[Array, "n K"],
    w: Float[Array, " n"],
    scale: Float[Array, " D"] | None,
    fill: Float[Array, " D"] | None,
    suits: Bool[Array, ""],
) -> tuple[LogisticFit, Bool[Array, ""]]:
    """The fit of a row, see `_Common.of_row`, and whether to trust it; none is tried where the common basis does not
    suit its cases, for which the others would wait.
    """
    basis, products, start, *_ = common.of_row(scale, fill)
    own = basis._replace(deficient=basis.deficient | ~suits)
    fit = learner._minimum(own, y, w, products, start, learner._quick(y))
    return fit, ~own.deficient & (fit.trouble != NOT_CONVERGED)


@dataclass(frozen=True, repr=False)
class _Prepared(Logistic):
    """`Logistic` with what rows share."""

    common: Any = None
    span: Any = None

    def fit_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """See `Logistic.fit_rows`."""
        fits, trusted = self._rows(y, w, None)
        return fits if self.span is None else self.span.restored(fits), trusted

    def fit_rows_in_units(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits,
        left_out: int | None,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """See `Logistic.fit_rows_in_units`."""
        fits, trusted = self._rows(y, w, units.x_scale)
        return _in_units(fits, units), trusted

    def fit_rows_filled(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        fills: RowFills,
        units: RowUnits | None,
        left_out: int | None,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """See `Logistic.fit_rows_filled`."""
        fits, trusted = self._rows(y, w, None if units is None else units.x_scale, fills)
        return (fits if units is None else _in_units(fits, units)), trusted

    def _rows(
        self,
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        scales: Float[Array, "R D"] | None,
        fills: RowFills | None = None,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """The fits in units of x of R weightings, each with a ridge on weights times its scales, if there are some, and
        numbers of its own for missing inputs.
        """
        with jax.default_matmul_precision("highest"):
            common, more = (
                (self.common, None) if fills is None else (self.common._replace(missing=fills.missing), fills.more)
            )
            classes = modelled_of(y.shape[1])
            much = classes >= _ALONE_CLASSES and common.basis.cases.size * classes >= _ALONE
            alone = much or more is not None  # cases of its own stay in the cache of a core
            of_rows = in_turn if alone else jax.vmap

            def is_suited(gram: Float[Array, "q q"]) -> Bool[Array, ""]:
                return cholesky(gram, gram[:, :0]).pivot > _WELL_CONDITIONED

            def are_suited() -> Bool[Array, " R"]:
                return in_turn(lambda *row: is_suited(_gram(common, *row)))(w, scales, more)

            if len(common.basis.cases) < MANY:
                suits = jax.vmap(is_suited)(of_rows(partial(_gram, common))(w, scales, more))
            elif self._penalised:
                doubtful = common.basis.least_pivots(w, scales) <= _WELL_CONDITIONED * jnp.max(w)
                suits = where_rare(doubtful, are_suited, jnp.ones(len(w), bool))
            else:
                suits = are_suited()
            return of_rows(partial(_of(self._plain, _of_row), common, y))(w, scales, more, suits)


def _in_units(fits: LogisticFit, units: RowUnits) -> LogisticFit:
    """The same models, weights [R, D, K], for inputs in the units of each row."""
    at_centre = jnp.einsum("rd,rdk->rk", units.x_centre, fits.weights, precision="highest")
    weights = fits.weights * units.x_scale[:, :, None]
    return fits._replace(weights=weights, intercept=fits.intercept + at_centre)
