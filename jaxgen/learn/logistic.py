"""Logistic and softmax regression: linear classifiers that give probabilities."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int
from scipy.linalg import helmert

from jaxgen.types import Data, Key, Learner, Minimum, Plan
from jaxgen.types.numbers import require, require_flag, require_number

_WITHOUT_LAPACK = 64
"""Up to this many unknowns, Newton's equations are eliminated in a loop instead of by LAPACK, which must run alone
(see `assess`).
"""
_HALVINGS = 30
"""Halvings of a step before it is given up: 1e-9 of a step changes nothing that single precision shows."""

MOST_STEPS = 2**31 - 1
"""Steps are counted in 32 bits."""

_ROUNDINGS = 32
"""A pivot of Newton's equations below this many roundings of the largest diagonal element is taken as 0."""
_NOT_CONVERGED, _SEPARABLE, _ONE_SIDED, _DEPENDENT = 1, 2, 3, 4


class LogisticFit(NamedTuple):
    """Parameters of a logistic or softmax model.

    Attributes:
      weights: [D, K], in logits per unit of x; with K >= 2 they add up to 0 over the classes.
      intercept: [K], logits; with K >= 2 they add up to 0.
      iterations: Newton steps taken, [].
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
    it cannot diverge. Softmax weights are K - 1 orthonormal contrasts of the classes, which leaves out exactly the
    direction that the probabilities do not depend on; the ridge acts on all K vectors alike. So two columns with a
    ridge r are one column with a ridge r / 2.

    Newton's method works on an orthonormal basis of the weighted inputs, centred and scaled, so units and correlations
    of the inputs do no harm, and the ridge keeps its meaning in their own units. It stops after a full step that would
    change no logit by more than sqrt(eps) (1 + largest logit), eps the rounding of the dtype; as the convergence is
    quadratic, what remains is rounding. Probabilities of breast_cancer, in units from 1e-3 to 1e3, are those of
    scikit-learn within 1e-5 in single and 1e-11 in double precision. Without a ridge, a fit whose curvature is lost in
    rounding in some direction (below 4e-6 of the largest in single precision) is taken as separable.

    Attributes:
      ridge: penalty on the squared weights (never on the intercept), in nats / weights^2; not divided by N, the 1 / C
        of scikit-learn.
      intercept: whether the model has a constant term.
      steps: most Newton steps.
    """

    ridge: float = 0.0
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
        used = (w > 0)[:, None]
        x, y = jnp.where(used, x, 0), jnp.where(used, y, 0)
        targets = y if y.shape[1] > 1 else jnp.where(used, jnp.concatenate([y, 1 - y], axis=1), 0)
        with jax.default_matmul_precision("highest"):
            centre, scale = self._units(x, used)
            design = jnp.where(used, (x - centre[None]) / scale[None], 0)
            if self.intercept:
                design = jnp.concatenate([used.astype(x.dtype), design], axis=1)
            problem, transform, deficient = self._problem(design, scale, targets, w, y.shape[1])
            one_sided = jnp.any(w @ targets <= 0) & self.intercept
            state = _minimised(problem, deficient | one_sided, self.steps, not self.ridge)
            trouble = jnp.select([one_sided, deficient], [_ONE_SIDED, _DEPENDENT], state.trouble)
            coefficients = (
                jnp.where(deficient | one_sided, jnp.nan, transform @ state.point.solution)
                @ problem.contrasts[: y.shape[1]].T
            )
            weights = coefficients[int(self.intercept) :] / scale[:, None]
            intercept = (
                coefficients[0] - centre @ weights if self.intercept else jnp.zeros_like(weights, shape=y.shape[1:])
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
        contrasts = jnp.asarray(_contrasts(params.weights.shape[1])[: params.weights.shape[1]], params.weights.dtype)
        names = ("weights", "intercept") if self.intercept else ("weights",)

        def rebuild(free):
            return params._replace(**{name: value @ contrasts.T for name, value in free.items()})

        def cost(free, x, y):
            fit = rebuild(free)
            logits = jnp.matmul(x, fit.weights, precision="highest") + fit.intercept[None]
            losses = (
                jax.nn.softplus(logits) - y * logits if y.shape[1] == 1 else -y * jax.nn.log_softmax(logits, axis=1)
            )
            return jnp.sum(losses, axis=1), self.ridge / 2 * jnp.sum(jnp.square(fit.weights))

        return {name: getattr(params, name) @ contrasts for name in names}, rebuild, cost

    def _units(self, x: Float[Array, "n D"], used: Bool[Array, "n 1"]) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        """Centre and half-width of the range of each column; unlike a mean, the centre of a constant is exactly this
        constant.
        """
        low, high = jnp.min(jnp.where(used, x, jnp.inf), axis=0), jnp.max(jnp.where(used, x, -jnp.inf), axis=0)
        centre = (0.5 * high + 0.5 * low) if self.intercept else jnp.zeros_like(low)
        scale = jnp.max(jnp.where(used, jnp.abs(x - centre[None]), 0), axis=0)
        return centre, jnp.where(scale > 0, scale, 1)

    def _problem(
        self,
        design: Float[Array, "n p"],
        scale: Float[Array, " D"],
        targets: Float[Array, "n C"],
        w: Float[Array, " n"],
        outputs: int,
    ) -> tuple["_Problem", Float[Array, "p p"], Bool[Array, ""]]:
        """The problem in orthonormal coordinates, the matrix that leads back from them, and whether the design is
        rank-deficient.
        """
        root = jnp.sqrt(w)[:, None]
        rows = [root * design]
        if self.ridge:
            rows.append(jnp.diag(math.sqrt(self.ridge) / scale, int(self.intercept))[: len(scale), : design.shape[1]])
        basis, transform, deficient = _orthonormal(jnp.concatenate(rows))
        cases, penalty = basis[: len(w)], basis[len(w) :]
        cases = jnp.where(root > 0, cases / jnp.where(root > 0, root, 1), 0)
        return _Problem(cases, penalty, targets, w, jnp.asarray(_contrasts(outputs), w.dtype)), transform, deficient


def _contrasts(outputs: int) -> Float[np.ndarray, "C F"]:
    """Orthonormal contrasts of the classes, [C, F]; those of a single output are the first class alone."""
    return np.array([[1.0], [0.0]]) if outputs == 1 else helmert(outputs).T


class _Problem(NamedTuple):
    """What is minimised over solution [p, F]: sum w cross-entropy(cases @ solution @ contrasts') + |penalty @
    solution|^2 / 2.

    Letters: p coefficients of a contrast, F contrasts, C = max(K, 2) classes, s rows of the ridge.
    """

    cases: Float[Array, "n p"]
    penalty: Float[Array, "s p"]
    targets: Float[Array, "n C"]
    w: Float[Array, " n"]
    contrasts: Float[Array, "C F"]

    def logits(self, solution: Float[Array, "p F"]) -> Float[Array, "n C"]:
        return self.cases @ solution @ self.contrasts.T

    def at(self, solution: Float[Array, "p F"]) -> "_Point":
        above = self._above_true(self.logits(solution))
        most = jnp.max(above, axis=1)
        zero_or_most = jnp.maximum(most, 0)
        others = jnp.sum(jnp.exp(above - zero_or_most[:, None]), axis=1)
        # log(sum of all exp) in a form that is exact even where it is tiny
        cross_entropy = zero_or_most + jnp.log1p(others + jnp.expm1(-zero_or_most))
        objective = self.w @ cross_entropy + jnp.sum(jnp.square(self.penalty @ solution)) / 2
        return _Point(solution, objective, jnp.max(jnp.where(self.w > 0, most, -jnp.inf)))

    def softmax(self, solution: Float[Array, "p F"]) -> tuple[Float[Array, "n C"], Float[Array, "n C"]]:
        """Probabilities and their excess over the targets, each exact to a few roundings of itself even where it is
        tiny.
        """
        above = self._above_true(self.logits(solution))
        most = jnp.maximum(jnp.max(above, axis=1, keepdims=True), 0)
        wrong, right = jnp.exp(above - most), jnp.exp(-most)
        others = jnp.sum(wrong, axis=1, keepdims=True)
        return (wrong + self.targets * right) / (others + right), (wrong - self.targets * others) / (others + right)

    def cosine(self, solution: Float[Array, "p F"]) -> Float[Array, ""]:
        residual = jnp.concatenate(
            [jnp.sqrt(self.w)[:, None] * (self.softmax(solution)[1] @ self.contrasts), self.penalty @ solution]
        )
        basis = jnp.concatenate([jnp.sqrt(self.w)[:, None] * self.cases, self.penalty])
        length = jnp.linalg.norm(residual)
        return jnp.linalg.norm(basis.T @ residual) / jnp.where(length > 0, length, 1)

    def newton(
        self, solution: Float[Array, "p F"]
    ) -> tuple[Float[Array, "p F"], Float[Array, "p F"], Float[Array, ""]]:
        """Gradient, Newton step and smallest pivot of the Hessian, which adds p_k p_l (c_k - c_l)(c_k - c_l)' for each
        case and pair of classes.
        """
        probability, excess = self.softmax(solution)
        gradient = self.cases.T @ (self.w[:, None] * (excess @ self.contrasts)) + self.penalty.T @ (
            self.penalty @ solution
        )
        apart = self.contrasts[:, None] - self.contrasts[None]
        pairs = jnp.sqrt(self.w)[:, None] * probability
        curvature = jnp.einsum("nk,nl,klf,klg->fgn", pairs, pairs / 2, apart, apart, optimize=[(2, 3), (0, 1), (0, 1)])
        p, f = solution.shape
        blocks = lax.map(lambda c: (self.cases * c[:, None]).T @ self.cases, curvature.reshape(f * f, -1)).reshape(
            f, f, p, p
        )
        blocks = blocks + jnp.eye(f, dtype=blocks.dtype)[:, :, None, None] * (self.penalty.T @ self.penalty)[None, None]
        hessian = jnp.swapaxes(blocks, 1, 2).reshape(f * p, f * p)
        step, pivot = _solved(hessian, gradient.T.reshape(f * p))
        return gradient, -step.reshape(f, p).T, pivot

    def _above_true(self, logits: Float[Array, "n C"]) -> Float[Array, "n C"]:
        """Logits minus that of the true class; minus infinity for the true class itself."""
        return jnp.where(self.targets > 0, -jnp.inf, logits - jnp.sum(self.targets * logits, axis=1, keepdims=True))


class _Point(NamedTuple):
    """A solution [p, F], its objective, and the most by which another class exceeds the true one, in logits: < 0 where
    all cases are on their side.
    """

    solution: Float[Array, "p F"]
    objective: Float[Array, ""]
    overlap: Float[Array, ""]


class _State(NamedTuple):
    """Newton's method: where it is, the steps taken, the number of the sentence that holds if it ends here, and
    whether it does.
    """

    point: _Point
    iterations: Int[Array, ""]
    trouble: Int[Array, ""]
    done: Bool[Array, ""]


def _minimised(problem: _Problem, hopeless: Bool[Array, ""], steps: int, may_be_separable: bool) -> _State:
    """Newton's method from zero, at most `steps` steps; none for a hopeless row, which would keep the others
    waiting.
    """
    dtype = problem.cases.dtype
    eps = float(jnp.finfo(dtype).eps)

    def step(state: _State) -> _State:
        gradient, direction, pivot = problem.newton(state.point.solution)
        finite = jnp.all(jnp.isfinite(direction))
        direction = jnp.where(finite, direction, 0)
        largest, change = (jnp.max(jnp.abs(problem.logits(each))) for each in (state.point.solution, direction))
        converged = finite & (change <= eps**0.5 * (1 + largest))
        # The last step is taken in full: it changes the objective by less than its rounding.
        rounding = jnp.where(converged, jnp.inf, 4 * len(problem.w) ** 0.5 * eps * jnp.abs(state.point.objective))
        length, point = _halved(problem, state.point, direction, jnp.sum(gradient * direction), rounding)
        trouble = jnp.where(converged, 0, _NOT_CONVERGED)
        done = converged | ~finite | (length == 0)
        if may_be_separable:
            # Cases all on their side prove that there is no minimum. With cases on the border, Newton's steps
            # keep their length, until the curvature along them is lost in rounding: then steps are noise, maybe small.
            separated = (point.overlap < -100 * eps * (largest + change)) | ~(pivot > _ROUNDINGS * eps)
            trouble = jnp.where(separated | (~converged & (largest > 5) & (change > 0.1)), _SEPARABLE, trouble)
            done = done | separated
        return _State(point, state.iterations + 1, trouble.astype(jnp.int32), done)

    start = jnp.zeros((problem.cases.shape[1], problem.contrasts.shape[1]), dtype)
    zero = jnp.zeros((), dtype)
    count = jnp.zeros((), jnp.int32)
    point = _Point(start, math.log(len(problem.contrasts)) * jnp.sum(problem.w), zero)
    return lax.while_loop(
        lambda state: ~state.done & (state.iterations < steps),
        step,
        _State(point, count, count + _NOT_CONVERGED, hopeless),
    )


class _Trial(NamedTuple):
    """A step [] along a direction, and the point there."""

    length: Float[Array, ""]
    point: _Point


def _halved(
    problem: _Problem,
    point: _Point,
    direction: Float[Array, "p F"],
    slope: Float[Array, ""],
    rounding: Float[Array, ""],
) -> _Trial:
    """The first of 1, 1/2, 1/4, ... by which the objective falls (but for its rounding), and the point there; 0 if
    none does.
    """

    def rises(trial: _Trial):
        bound = point.objective + 1e-4 * trial.length * slope + rounding
        return ~(trial.point.objective <= bound) & (trial.length > 0)

    def halve(trial: _Trial) -> _Trial:
        length = jnp.where(trial.length > 0.5**_HALVINGS, trial.length / 2, 0)
        return _Trial(length, problem.at(point.solution + length * direction))

    # A first trial of twice the full step that counts as rising: so the point of the full step is written out once.
    nowhere = _Trial(jnp.full_like(slope, 2), point._replace(objective=jnp.full_like(slope, jnp.nan)))
    return lax.while_loop(rises, halve, nowhere)


class _Basis(NamedTuple):
    """Gram-Schmidt after some columns: the orthonormal vectors so far [p, n], the matrix that makes them of the columns
    [p, p], and what was left of each column [p].
    """

    vectors: Float[Array, "p n"]
    transform: Float[Array, "p p"]
    lengths: Float[Array, " p"]


def _orthonormal(a: Float[Array, "n p"]) -> tuple[Float[Array, "n p"], Float[Array, "p p"], Bool[Array, ""]]:
    """Orthonormal basis = a @ transform, and whether a is rank-deficient to working precision.

    Classical Gram-Schmidt with every column orthogonalised twice (Giraud et al. 2005), as for `LeastSquares`.
    """
    columns, p = a.T, a.shape[1]

    def add(k, state: _Basis) -> _Basis:
        first = state.vectors @ columns[k]
        rest = columns[k] - first @ state.vectors
        second = state.vectors @ rest
        rest = rest - second @ state.vectors
        length = jnp.sqrt(jnp.sum(jnp.square(rest)))
        divisor = jnp.where(length > 0, length, 1)
        made_of = jnp.zeros_like(state.lengths).at[k].set(1) - (first + second) @ state.transform
        return _Basis(
            state.vectors.at[k].set(rest / divisor),
            state.transform.at[k].set(made_of / divisor),
            state.lengths.at[k].set(length),
        )

    none = _Basis(jnp.zeros_like(columns), jnp.zeros((p, p), a.dtype), jnp.zeros(p, a.dtype))
    basis = lax.fori_loop(0, p, add, none)
    size = jnp.sqrt(jnp.sum(jnp.square(columns), axis=1))
    deficient = jnp.any(basis.lengths <= 8 * len(a) ** 0.5 * float(jnp.finfo(a.dtype).eps) * size)
    return basis.vectors.T, basis.transform.T, deficient


class _Eliminated(NamedTuple):
    """A system after some steps of Gauss and Jordan's elimination: matrix and right-hand side [m, m + 1], and the least
    pivot so far [].
    """

    rows: Float[Array, "m c"]
    least: Float[Array, ""]


def _solved(matrix: Float[Array, "m m"], b: Float[Array, " m"]) -> tuple[Float[Array, " m"], Float[Array, ""]]:
    """Solution of a symmetric positive definite system, and its smallest pivot relative to the largest diagonal
    element.
    """
    m = len(b)
    if m > _WITHOUT_LAPACK:
        factor = jnp.linalg.cholesky(matrix)
        solution, least = jax.scipy.linalg.cho_solve((factor, True), b), jnp.min(jnp.square(jnp.diagonal(factor)))
    else:

        def eliminate(k, state: _Eliminated) -> _Eliminated:
            pivot = state.rows[k] / state.rows[k, k]
            rows = (state.rows - state.rows[:, k][:, None] * pivot[None]).at[k].set(pivot)
            return _Eliminated(rows, jnp.minimum(state.least, state.rows[k, k]))

        rows = jnp.concatenate([matrix, b[:, None]], axis=1)
        solved = lax.fori_loop(0, m, eliminate, _Eliminated(rows, jnp.asarray(jnp.inf, b.dtype)))
        solution, least = solved.rows[:, m], solved.least
    return solution, least / jnp.max(jnp.diagonal(matrix))
