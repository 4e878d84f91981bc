"""Logistic and softmax regression: linear classifiers that give probabilities."""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from jaxgen.learn import logistic_cases, logistic_rows
from jaxgen.learn.batched import in_turn
from jaxgen.learn.classes import orthonormal_contrasts
from jaxgen.learn.logistic_fit import LinearClassifier, LogisticFit, remembered
from jaxgen.learn.products import plain_units
from jaxgen.types import Data, Key, Learner, Minimum, Plan, RowFills, RowUnits
from jaxgen.types.numbers import require, require_flag, require_number

MOST_STEPS = 2**31 - 1
"""Steps are counted in 32 bits."""


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
    with a ridge r / 2, and are fitted as one. Beyond 64 unknowns, Newton's equations are solved by conjugate gradients,
    as exactly as the distance to the minimum deserves (Dembo, Eisenstat & Steihaug 1982, "Inexact Newton methods";
    Eisenstat & Walker 1996, "Choosing the forcing terms in an inexact Newton method", choice 2); with a ridge in single
    precision, which decides how fast the minimum is reached but not where it is. Many rows of one data set go that way
    with fewer unknowns: with a ridge if the cases times (K - 1)^2 times the coefficients of a class are above 50,000 (K
    - 1 at least 1), or with the square of the latter above 600,000; without one, from 5000 cases on, if their classes
    overlap.

    Newton's method works on an orthonormal basis of the weighted inputs, centred and scaled, so units and correlations
    of the inputs do no harm, and the ridge keeps its meaning in their own units. Many rows of one data set share the
    basis of all their cases, but for those rows whose own cases it does not suit; where there is much to do they begin
    near the minimum for their mean weights, which is near that of each. Where single precision is used, L-BFGS
    (Nocedal 1980) goes most of the rest of the way, since its steps cost one gradient each, and Newton's method has one
    or two steps left. It stops after a full step that would change no logit by more than sqrt(eps) (1 + largest
    logit), eps the rounding of the dtype; as the convergence is quadratic, what remains is rounding. With conjugate
    gradients in double precision about 1e-9 of the largest logit may remain. Probabilities of breast_cancer, in units
    from 1e-3 to 1e3, are those of scikit-learn within 1e-5 in single and 1e-10 in double precision. Without a ridge, a
    fit whose curvature is lost in rounding in some direction (below 4e-6 of the largest in single precision) is taken
    as separable. With a ridge, more inputs than cases are first brought into coordinates of the space that these span.
    Many rows of such data have a coefficient for each case in place of weights, which are sums of the cases then
    (Kimeldorf & Wahba 1971, "Some results on Tchebycheffian spline functions"), and share what comes near the inverse
    of Newton's equations; those that need many steps so share coordinates, in which the ridge of rows in units of their
    own has another metric.

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
            return self._classifier.fit(x, y, w)

    def counts_left_out_of(self, cases: int, inputs: int) -> bool:
        """Where there are more inputs than cases."""
        return self._classifier.is_wide_of(cases, inputs)

    def careful_of(self, cases: int, inputs: int) -> "Logistic | None":
        """Where there are more inputs than cases: with coordinates that also show what is far smaller than the rest."""
        return _Careful(**vars(self._plain)) if self._classifier.is_wide_of(cases, inputs) else None

    def prepared(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], rows: int) -> "Logistic":
        """With a basis of all cases [n, D], [n, K] and, where there is much to do, a start near the minimum for the
        mean weights [n] of the rows; with products of all cases, where they have more inputs.
        """
        return self._prepared(x, y, w, rows, None)

    def prepared_in_units(
        self,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        rows: int,
        scale: Float[Array, " D"],
    ) -> "Logistic":
        """The same for rows whose ridge is on weights in units of about this scale, [D]."""
        return self._prepared(x, y, w, rows, scale)

    def prepared_filled(
        self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], rows: int
    ) -> "Logistic":
        """The same of cases [n, D], [n, K] and mean weights [n] for rows that fill missing inputs in with numbers of
        their own.
        """
        return self._plain if self._fills_alone(x, y) else self._prepared(x, y, w, rows, jnp.ones_like(x[0]))

    def _prepared(
        self,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
        rows: int,
        scale: Float[Array, " D"] | None,
    ) -> "Logistic":
        """With what so many rows share of cases [n, D], [n, K] with mean weights [n] and about this scale, [D]."""
        if self._by_cases(x, y):
            common: Any = logistic_cases.in_common(self._classifier, x, y, w, scale)
        else:
            common = remembered(self._classifier, logistic_rows.in_common)(rows, x, y, w, scale)
        return _Prepared(**vars(self._plain), common=common)

    @property
    def _plain(self) -> "Logistic":
        """The same without what rows share."""
        return Logistic(**{part.name: getattr(self, part.name) for part in fields(Logistic)})

    @property
    def _classifier(self) -> LinearClassifier:
        """What is fitted."""
        return LinearClassifier(self.ridge, self.intercept, self.steps)

    def fit_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """The fits of R weightings of the same cases at once, by what they share, and which of them to trust."""
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
        share what is made of cases with about the same numbers, and where to begin.
        """
        if self._fills_alone(x, y):
            return self._in_turn(keys[0], x, y, w, units, fills)
        scale = jnp.ones_like(x[0]) if units is None else jnp.mean(units.x_scale, axis=0)
        prepared = self.prepared_in_units(x, y, jnp.mean(w, axis=0), len(w), scale)
        return prepared.fit_rows_filled(keys, x, y, w, fills, units, left_out)

    def _fills_alone(self, x: Float[Array, "n D"], y: Float[Array, "n K"]) -> bool:
        """Whether rows with numbers of their own for missing inputs of cases [n, D], [n, K] share nothing: coordinates
        of the space that cases span are not those of other cases.
        """
        return self._classifier.is_wide(x) and not self._by_cases(x, y)

    def _by_cases(self, x: Float[Array, "n D"], y: Float[Array, "n K"]) -> bool:
        """Whether rows of these cases [n, D], [n, K] have a coefficient for each of them. Where the ridge is one of
        several that are tried, rows are without a fold each, and there are so many that coordinates take less time.
        """
        classifier = self._classifier
        return classifier.is_wide(x) and classifier.quick(y) and not isinstance(classifier.ridge, jax.Array)

    def _in_turn(
        self,
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits | None,
        fills: RowFills,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """The fits of rows that share nothing, each in its own units and with its own numbers for missing inputs."""
        plain, units = self._plain, plain_units(x, y, w) if units is None else units

        def of_row(w: Float[Array, " n"], unit: RowUnits, more: Float[Array, " D"]) -> LogisticFit:
            return plain.fit_in_units(key, fills.filled(x, more), y, w, unit.x_centre, unit.x_scale)

        return in_turn(of_row)(w, units, fills.more), jnp.ones(len(w), bool)

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


@dataclass(frozen=True, repr=False)
class _Careful(Logistic):
    """`Logistic` whose rows of more inputs than cases share coordinates of the space that these span."""

    def careful_of(self, cases: int, inputs: int) -> None:
        """None: it is this one."""
        return None

    def _by_cases(self, x: Float[Array, "n D"], y: Float[Array, "n K"]) -> bool:
        """Never."""
        return False


@dataclass(frozen=True, repr=False)
class _Prepared(Logistic):
    """`Logistic` with what rows share."""

    common: Any = None

    def fit_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """See `Logistic.fit_rows`."""
        return self._fits(y, w, left_out)

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
        return self._fits(y, w, left_out, units)

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
        return self._fits(y, w, left_out, units, fills)

    def _fits(
        self,
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
        units: RowUnits | None = None,
        fills: RowFills | None = None,
    ) -> tuple[LogisticFit, Bool[Array, " R"]]:
        """The fits of weights [R, n] by what rows share, in the units of each and with its numbers for missing inputs,
        and which of them to trust.
        """
        if isinstance(self.common, logistic_cases.Shared):
            fits, trusted = logistic_cases.fits_of_rows(self._classifier, self.common, y, w, left_out, units, fills)
        else:
            fits, trusted = logistic_rows.fits_of_rows(self._classifier, self.common, y, w, units, fills)
        return (fits if units is None else fits.in_units(units)), trusted
