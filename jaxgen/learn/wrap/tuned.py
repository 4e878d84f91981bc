"""Learners chosen inside each row, by folds of its training cases or in closed form."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from jaxgen.learn.batched import one_by_one
from jaxgen.learn.linear import LeastSquares
from jaxgen.learn.shrinkage import ERRORS, Centred, Shrinkage
from jaxgen.learn.wrap.candidates import differences, listed, plain_grid
from jaxgen.learn.wrap.nested import Nested
from jaxgen.learn.wrap.validation import check_loss, columns, divided, error_unit, in_folds, in_strata, random_order
from jaxgen.learn.wrap.ways import Read, Rows, Together, TrainedRows, Way, programs_of, setting_along, taken, ways_of
from jaxgen.learn.wrap.wrapper import Wrapper
from jaxgen.loss import about, by_name, cross_entropy, hinge, squared
from jaxgen.types import Data, Freedom, Key, Learner, Loss, Params, Plan, RowUnits
from jaxgen.types.checks import check_predictions, check_targets
from jaxgen.types.foreign import as_inner
from jaxgen.types.keys import several
from jaxgen.types.numbers import require, require_one_of, shown
from jaxgen.types.predictive import Mixture

_RULES = ("best", "one_standard_error")
_LOSSES = {"probabilities": cross_entropy, "scores": hinge}


class TunedFit(NamedTuple):
    """What was chosen from C learners, and the learner trained on all cases.

    Attributes:
      fits: parameters of the chosen learner, and of others where learners cannot share a program.
      choice: number of the chosen learner, [].
      criteria: mean validation loss of each learner, [C]; infinite where it failed.
    """

    fits: PyTree
    choice: Int[Array, "*S"]
    criteria: Float[Array, "*S C"]


class _Judged(NamedTuple):
    """Criteria [C] of the learners and the standard error of each [C], in a unit []: squares of 1e-30 would be 0."""

    criteria: Float[Array, " C"]
    errors: Float[Array, " C"]
    unit: Float[Array, ""]


@dataclass(frozen=True, repr=False)
class Tuned(Wrapper):
    """The best of some learners, found from the training cases of each row, and trained on all of them.

    `assess` of a tuned learner is nested resampling (Stone 1974, "Cross-validatory choice and assessment of statistical
    predictions"; Varma & Simon 2006, "Bias in error estimation when using cross-validation for model selection"): test
    cases have no part in the choice, so nothing has to be corrected afterwards. The number of the chosen learner is in
    `Losses.info["choice"]`, its criterion in "criterion", those of all in "criteria", and settings that are numbers in
    "chosen_" and their name, for example "chosen_ridge".

    The folds are those of `EarlyStopped`: the cases in use, in random order, are cut into portions of equal size,
    within one. A case of weight 2 is one case, so that its copies are never on both sides; its loss counts twice.
    Each learner is trained without one fold at a time, all of its fit, normalisation included, and the criterion is
    its mean loss over the cases that were left out (scikit-learn averages the means of the folds, which is another
    number where folds differ in size). All learners have the same folds and the same random keys. The
    first of equals is chosen. A learner that fails in a fold, or whose loss is not finite there, is not chosen. Where
    the targets are those of a classification, each class is spread evenly over the folds, within one case.

    Learners that differ in a setting along which they share work share it: ridges of `LeastSquares` one decomposition,
    numbers of steps of a network one training. Those that differ in other real numbers are compiled once; others each
    by itself.

    Attributes:
      base: the learner whose settings are tuned; or a tuple of learners to choose among, for example by `sample`.
      grid: for each setting its values, as a mapping, for example {"ridge": (0.1, 1.0, 10.0)}; a setting of a learner
        inside is "base.ridge". All combinations are tried, the last setting changing fastest.
      by: the number of folds; or "leave_one_out" or "gcv" (generalized cross-validation), in closed form, for ridges of
        `LeastSquares`: `Normalised(Tuned(LeastSquares(), {"ridge": ...}, by="gcv"), how="standard")`.
      loss: what validation counts, a loss or its name; None: the squared error, or the cross-entropy of learners that
        all predict probabilities, or the hinge loss of scores. It does not know the loss of `assess`.
      rule: "best"; or "one_standard_error": the simplest learner whose criterion is at most one standard error above
        the least (Breiman, Friedman, Olshen & Stone 1984, "Classification and regression trees", section 3.4.3). The
        standard error is that of the folds' means, weighted by their sizes (Friedman, Hastie & Tibshirani 2010,
        "Regularization paths for generalized linear models via coordinate descent").
      simplest: for this rule, at which end of the list the simplest learner is, "first" or "last".
    Raises:
      TypeError: what should be a learner is none, or the grid is no mapping.
      ValueError: fewer than two learners, one twice, a setting that there is not, or a rule that needs one setting.
    """

    grid: Any = ()
    by: int | str = 5
    loss: Loss | str | None = None
    rule: str = "best"
    simplest: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "loss", by_name(self.loss))
        object.__setattr__(self, "grid", plain_grid(self.grid))
        listed(self.base, self.grid)
        if self.rule == "one_standard_error" and len(self.grid) > 1:
            raise ValueError(
                f"expected one setting for the rule {self.rule!r}, got {', '.join(name for name, _ in self.grid)}; "
                "list the learners from the simplest in a tuple"
            )

    @property
    def candidates(self) -> tuple[Any, ...]:
        """The C learners to choose among; `Losses.info["choice"]` counts in this order."""
        return listed(self.base, self.grid)

    @property
    def inside(self) -> Learner:
        """The first of the learners."""
        return as_inner(self.candidates[0])

    @property
    def failures(self) -> tuple[str, ...]:
        """That none could be chosen, and what the learners say."""
        own = (
            "every learner to choose from failed in a fold of its training cases, or its criterion was not finite "
            "(give other learners, fewer folds, or more training cases)"
        )
        return (own, *(sentence for sentences in self._sentences for sentence in sentences))

    @property
    def classifies(self) -> bool:
        """Whether targets must be zeros and ones, for one of the learners."""
        return any(each.classifies for each in self._learners)

    @property
    def accepts_missing(self) -> bool:
        """Whether all the learners do."""
        return all(each.accepts_missing for each in self._learners)

    @property
    def predicts(self) -> str:
        """What the predictions are, whichever learner is chosen: what all of them predict, or the least that can be
        said of it.
        """
        kinds = {each.predicts for each in self._learners}
        if len(kinds) == 1:
            return kinds.pop()
        return next((kind for kind in ("numbers", "anything") if kind in kinds), "means")

    @property
    def raw_inputs(self) -> tuple[int, ...]:
        """Inputs that must come as they are in the data, for one of the learners."""
        return tuple(sorted({number for each in self._learners for number in each.raw_inputs}))

    @property
    def freedom(self) -> Freedom:
        """The changes of unit that no learner minds, but another origin of the targets only with a loss of
        differences, and no other unit of the targets: `diagnose` tells criteria.
        """
        all_mind = [all(flags) for flags in zip(*(each.freedom for each in self._learners), strict=True)]
        freedom = Freedom(*all_mind)
        return freedom._replace(y_shift=freedom.y_shift and about(self.validation).shift_free, y_scale=False)

    @property
    def precise(self) -> bool:
        """Whether one of the learners is fitted in double precision, or all take little time: near ties decide."""
        return any(each.precise for each in self._learners) or all(each.shares_rows for each in self._learners)

    @property
    def rounds(self) -> int | None:
        """Of the learner that goes most often through its cases; the loops tell how many learners and folds there
        are.
        """
        rounds = [each.rounds for each in self._learners]
        return None if None in rounds else max(each for each in rounds if each is not None)

    @property
    def shares_rows(self) -> bool:
        """Whether all the learners share rows: then rows with their folds left out do too."""
        return self._has_folds_to_share and all(each.shares_rows for each in self._learners)

    @property
    def shares_rows_in_units(self) -> bool:
        """The same of rows that each have units of their own."""
        return self._has_folds_to_share and all(each.shares_rows_in_units for each in self._learners)

    @property
    def counts_left_out(self) -> bool:
        """Whether one of the learners does."""
        return any(each.counts_left_out for each in self._learners)

    def counts_left_out_of(self, cases: int, inputs: int) -> bool:
        """The same, of so many cases and inputs."""
        return any(each.counts_left_out_of(cases, inputs) for each in self._learners)

    @property
    def weightings(self) -> int:
        """The row itself, and without each of its folds; each as often as the learners say."""
        return (self._folds + 1) * max(each.weightings for each in self._learners)

    @property
    def worth_sharing(self) -> tuple[int, float]:
        """The most that one of the learners asks for."""
        rows, shares = zip(*(each.worth_sharing for each in self._learners), strict=True)
        return max(rows), max(shares)

    def shares_rows_of(self, cases: int, trained: int, inputs: int) -> bool:
        """Whether all the learners do, of rows without a fold. Of rows that have less cases than inputs then, while all
        cases are more, one decomposition for all ridges is quicker.
        """
        left = trained - trained // self._folds
        if setting_along(self.candidates) and left < inputs <= cases:
            return False
        return all(each.shares_rows_of(cases, left, inputs) for each in self._learners)

    def shares_one_row_of(self, cases: int, inputs: int) -> bool:
        """Whether all the learners do."""
        return all(each.shares_one_row_of(cases, inputs) for each in self._learners)

    @property
    def validation(self) -> Loss:
        """The loss that validation counts."""
        return by_name(self.loss) if self.loss is not None else _LOSSES.get(self.predicts, squared)

    def for_data(self, data: Data) -> Learner:
        """The same, to choose among the learners as they are to be used on these data."""
        return replace(self, base=tuple(each.for_data(data) for each in self._learners), grid=())

    def for_rows(self, share: float) -> Learner:
        """With the learners as they are for such rows without a fold."""
        left = share * (1 - 1 / self._folds)
        return replace(self, base=tuple(each.for_rows(left) for each in self._learners), grid=())

    def folds(self, key: Key, w: Float[Array, " n"], y: Float[Array, "n K"] | None = None) -> Int[Array, " n"]:
        """The fold of every case, [n], from 0, that `fit` with the same key, weights [n] and targets [n, K] leaves it
        out with; -1 for absent cases. Targets matter where they are those of a classification.
        """
        return self._fold_of(several(key, 3)[0], w, y)

    def _fold_of(self, order_key: Key, w: Float[Array, " n"], y: Float[Array, "n K"] | None) -> Int[Array, " n"]:
        """See `folds`, of the key for the order of the cases."""
        used = jnp.sum(w > 0, dtype=jnp.int32)
        portions = in_folds(len(w), used, self._folds)
        place = jnp.arange(len(w), dtype=jnp.int32)
        fold = jnp.searchsorted(portions.begin, place, side="right").astype(jnp.int32) - 1
        order = random_order(order_key, w)
        order = order if y is None else in_strata(order, y, w, portions)
        return jnp.zeros(len(w), jnp.int32).at[order].set(jnp.where(place < used, fold, -1))

    def fit(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> TunedFit:
        """The learner with the least criterion, trained on all cases."""
        order_key, folds_key, fit_key = several(key, 3)
        used = (w > 0)[:, None]
        x, y = jnp.where(used, x, 0), jnp.where(used, y, 0)
        if isinstance(self.by, str):
            return self._in_closed_form(x, y, w)
        ways = ways_of(self.candidates, lambda _, way: way.runs(fit_key, x, y, w))
        judged = self._by_folds(ways, random_order(order_key, w), folds_key, x, y, w)
        choice = self._chosen(judged)
        w = jnp.where(choice >= 0, w, 0)  # always so, but the last trainings wait for others, see `one_by_one`
        fits = one_by_one([partial(way.fit, _place(way, choice), fit_key, x, y, w) for way in ways])
        return TunedFit(fits, choice, judged.criteria * judged.unit)

    def fit_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[TunedFit, Bool[Array, " R"]] | tuple[TunedFit, Bool[Array, " R"], Float[Array, "R n K"]]:
        """The same for R weightings of the same cases at once, and which of them to trust: those of which every
        training without a fold is to be trusted; with predictions, if training made some, [R, n, K].
        """
        return self._of_rows(keys, x, y, w, None, left_out)

    def fit_rows_in_units(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits,
        left_out: int | None,
    ) -> tuple[TunedFit, Bool[Array, " R"]] | tuple[TunedFit, Bool[Array, " R"], Float[Array, "R n K"]]:
        """The same where each row has units of its own; predictions [R, n, K] are in those of the data."""
        return self._of_rows(keys, x, y, w, units, left_out)

    def predict(self, params: TunedFit, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
        """Predictions of the chosen learner, in the units of y."""
        return self._of_chosen(params, lambda learner, fit: learner.predict(fit, x))

    def predictive(self, params: TunedFit, x: Float[Array, "m D"]) -> Mixture | None:
        """What the chosen learner believes of cases [m, D]; None if one of the learners believes nothing."""
        found = [read.learner.predictive(read.fit, x) for read in self._reads(params)]
        return None if None in found or not _alike(found) else self._select(params, found)

    def failure(self, params: TunedFit) -> Int[Array, ""]:
        """1 if none could be chosen, else 0 or the number of what the chosen learner says; []."""
        codes = []
        for read in self._reads(params):
            before = 1 + sum(map(len, self._sentences[: self._sentences.index(read.learner.failures)]))
            code = jnp.asarray(read.learner.failure(read.fit), jnp.int32)
            codes.append(jnp.where(code > 0, code + before, 0))
        none = ~jnp.isfinite(params.criteria[params.choice])
        return jnp.where(none, 1, self._select(params, codes)).astype(jnp.int32)

    def diagnose(self, params: TunedFit) -> dict[str, Array]:
        """The number of the chosen learner [], its criterion [], those of all [C], its settings that are numbers, each
        [], and what it says itself if all learners say the same things, each [...].
        """
        said = [read.learner.diagnose(read.fit) for read in self._reads(params)]
        said = self._select(params, said) if _alike(said) else {}
        numbers = {
            f"chosen_{name}": jnp.asarray(values, params.criteria.dtype)[params.choice]
            for name, values in differences(self.candidates).items()
            if all(isinstance(value, int | float) for value in values)
        }
        criterion = params.criteria[params.choice]
        return {**said, **numbers, "choice": params.choice, "criterion": criterion, "criteria": params.criteria}

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses settings and learners that do not fit together, too few training cases, and what a learner refuses,
        also of the cases that are left without a fold.

        Raises:
          ValueError: what was expected, what came, and what to do.
        """
        self._check_settings()
        self._check_kinds(data)
        for learner in self._learners:
            learner.check(data, plan)
        if isinstance(self.by, str):
            fewest = int(plan.train_sizes.min())
            require("the training cases of every row", fewest, 2, advice=f"{self.by} leaves one out; train on more")
            return
        fewest = int(plan.train_cases.min())
        if fewest < self.by:
            raise ValueError(
                f"expected at least {self.by} training cases for the {self.by} folds of Tuned, got {fewest} in "
                f"{plan.scheme}; train on more cases, or choose by fewer folds"
            )
        inner = without_a_fold(plan, self.by)
        for learner in self._learners:
            learner.check(data, inner)

    @property
    def _learners(self) -> tuple[Learner, ...]:
        return tuple(map(as_inner, self.candidates))

    @property
    def _sentences(self) -> list[tuple[str, ...]]:
        """The different sentences of the learners; learners of a kind have the same."""
        return list(dict.fromkeys(each.failures for each in self._learners))

    @property
    def _folds(self) -> int:
        if isinstance(self.by, str):
            raise ValueError(f"expected a learner that is chosen by folds, got by={self.by!r}; give a number of folds")
        return self.by

    @property
    def _has_folds_to_share(self) -> bool:
        """Whether there are folds. A ridge of 0 is another program than one of any other number, and shares a
        decomposition with these at less cost.
        """
        name = setting_along(self.candidates)
        values = () if name is None else differences(self.candidates)[name]
        return not isinstance(self.by, str) and all(value > 0 for value in values)

    def _of_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        units: RowUnits | None,
        left_out: int | None,
    ) -> Any:
        """What `fit_rows` gives: rows with a fold left out are further weightings of the same cases."""
        order_keys, folds_keys, fit_keys = jax.vmap(lambda key: several(key, 3), out_axes=1)(keys)
        rows = Rows(fit_keys, x, y, w, units, left_out)
        targets = rows.in_units(y)
        fold_keys = jax.vmap(lambda key: several(key, self._folds))(folds_keys)
        nested = Nested.of(rows, fold_keys, jax.vmap(self._fold_of)(order_keys, w, targets))
        unit = jax.vmap(partial(error_unit, self.validation))(targets, w)
        ways = programs_of(self.candidates, lambda _, way: way.runs_rows(nested.learning))
        judge = partial(nested.judged, self.validation, unit)
        found = one_by_one([partial(way.over_rows, judge, nested.learning) for way in ways])
        numbers = np.argsort(np.concatenate([way.numbers for way in ways]))
        totals = jnp.concatenate([each.totals for each in found])[numbers]
        judged = jax.vmap(self._judged, (2, 0, 0))(totals, nested.sizes, unit)
        choice = jax.vmap(self._chosen)(judged)
        places = [jax.vmap(partial(_place, way))(choice) for way in ways]
        fits = tuple(way.taken(at, each.fits, rows) for way, at, each in zip(ways, places, found, strict=True))
        params = TunedFit(fits, choice, judged.criteria * judged.unit[:, None])
        trusted = jnp.all(jnp.concatenate([each.trusted for each in found]), axis=0)
        if all(each.known is None for each in found):
            return params, trusted
        known = jnp.zeros_like(targets)
        for way, at, each, fit in zip(ways, places, found, fits, strict=True):
            one = TrainedRows(fit, trusted, None if each.known is None else taken(at, each.known))
            predictions = rows.out_of_units(rows.predictions(partial(_read_by, way), one))
            is_this = jnp.any(choice[:, None] == jnp.asarray(way.numbers, choice.dtype)[None], axis=1)
            known = jnp.where(is_this[:, None, None], predictions, known)
        return params, trusted, known

    def _by_folds(
        self,
        ways: list[Way],
        order: Int[Array, " n"],
        key: Key,
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, " n"],
    ) -> _Judged:
        """The mean loss of every learner over the cases of all folds, each left out once."""
        portions = in_folds(len(w), jnp.sum(w > 0, dtype=jnp.int32), self._folds)
        order = in_strata(order, y, w, portions)
        table, unit = jnp.concatenate([x, y, w[:, None]], axis=1), error_unit(self.validation, y, w)

        def fold(key, begin, size):
            """Summed losses [C] on one fold, and its weight []."""
            learning, validating = (columns(part, x.shape[1]) for part in divided(portions, begin, size, order, table))
            x_out, y_out, weight = validating

            def summed(learner, fit):
                losses = self.validation(y_out / unit, learner.predict(fit, x_out) / unit)
                total = jnp.sum(jnp.where(weight > 0, weight * losses, 0))
                good = (jnp.asarray(learner.failure(fit), jnp.int32) == 0) & jnp.isfinite(total)
                return jnp.where(good, total, jnp.inf)

            totals = one_by_one([lambda way=way: way.over(summed, way.fits(key, *learning)) for way in ways])
            totals = jnp.concatenate(totals)
            numbers = np.concatenate([way.numbers for way in ways])
            return totals[np.argsort(numbers)], jnp.sum(weight)

        keys = several(key, self._folds)
        totals, sizes = jax.vmap(fold)(keys, portions.begin, portions.size)
        return self._judged(totals.T, sizes, unit)

    def _judged(self, totals: Float[Array, "C F"], sizes: Float[Array, " F"], unit: Float[Array, ""]) -> _Judged:
        """Criteria and standard errors of C learners from their summed losses on F folds, in a unit of the targets."""
        totals, sizes = totals.T, sizes[:, None]
        criteria = jnp.sum(totals, axis=0) / jnp.sum(sizes)
        away = jnp.where(sizes > 0, totals / jnp.where(sizes > 0, sizes, 1) - criteria[None], 0)
        variance = jnp.sum(sizes * jnp.square(away), axis=0) / jnp.sum(sizes) / (self._folds - 1)
        return _Judged(criteria, jnp.sqrt(variance), unit ** (about(self.validation).degree or 0))

    def _in_closed_form(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> TunedFit:
        """The ridge with the least criterion, whose standard errors are not known: one decomposition serves all."""
        with jax.default_matmul_precision("highest"):
            first: Any = self.candidates[0]
            shrinkage = Shrinkage.of(Centred.of(x, y, w, first.intercept))
            ridges = jnp.asarray([each.ridge for each in self.candidates], x.dtype)
            criteria = shrinkage.errors(str(self.by), ridges)
            failed = shrinkage.deficient & (ridges == 0) & (not first.minimum_norm)
            criteria = jnp.where(jnp.isfinite(criteria) & ~failed, criteria, jnp.inf)
            choice = self._chosen(_Judged(criteria, jnp.full_like(criteria, jnp.nan), jnp.ones((), x.dtype)))
            return TunedFit((first.fit_of(shrinkage, ridges[choice]),), choice, criteria)

    def _chosen(self, judged: _Judged) -> Int[Array, ""]:
        """The number of the learner to take."""
        best = jnp.argmin(judged.criteria).astype(jnp.int32)
        if self.rule == "best":
            return best
        near = judged.criteria <= judged.criteria[best] + judged.errors[best]
        first = jnp.argmax(near) if self.simplest == "first" else len(near) - 1 - jnp.argmax(near[::-1])
        return jnp.where(jnp.any(near), first.astype(jnp.int32), best)

    def _reads(self, params: TunedFit) -> list[Read]:
        """The learners with their parameters, one of which is the chosen one."""
        together = [isinstance(fit, Together) for fit in params.fits]
        how = ways_of if together == [False] else programs_of
        ways = how(self.candidates, lambda place, _: together[place])
        return [read for way, fit in zip(ways, params.fits, strict=True) for read in way.read(fit)]

    def _of_chosen(self, params: TunedFit, function: Callable[[Learner, Params], Any]) -> Any:
        return self._select(params, [function(read.learner, read.fit) for read in self._reads(params)])

    def _select(self, params: TunedFit, found: list[Any]) -> Any:
        """Of trees of arrays, one for each learner that may have been chosen, that of the chosen one."""
        chosen = found[0]
        for read, other in zip(self._reads(params)[1:], found[1:], strict=True):
            is_this = jnp.any(params.choice == jnp.asarray(read.numbers, jnp.int32))
            chosen = jax.tree.map(lambda a, b, is_this=is_this: jnp.where(is_this, b, a), chosen, other)
        return chosen

    def _check_settings(self) -> None:
        if isinstance(self.by, str):
            require_one_of("by of Tuned", self.by, tuple(ERRORS))
        else:
            require("the folds of Tuned", self.by, 2, advice="or choose by 'gcv' or 'leave_one_out'")
        require_one_of("the rule of Tuned", self.rule, _RULES)
        if self.rule == "best":
            return
        if isinstance(self.by, str):
            raise ValueError(
                f"expected folds for the rule {self.rule!r}, got by={self.by!r}, which has no standard error; give a "
                "number of folds, or rule='best'"
            )
        if self.simplest not in ("first", "last"):
            raise ValueError(
                f"expected simplest='first' or simplest='last' for the rule {self.rule!r}, got {shown(self.simplest)}; "
                "say at which end of the list the simplest learner is"
            )

    def _check_kinds(self, data: Data) -> None:
        """Refuses learners that do not belong together, and a loss or a closed form that is not for them."""
        kinds = {each.predicts for each in self._learners}
        if len(kinds) > 1 and "scores" in kinds:
            raise ValueError(
                "expected learners whose predictions can be compared to choose from, got some that predict scores and "
                f"others that predict {', '.join(sorted(kinds - {'scores'}))}; choose among those of a kind"
            )
        check_loss("Tuned", self.validation, data.y.shape[-1])
        check_targets(self.validation, data.y, data.target)
        check_predictions(self.validation, self)
        if not isinstance(self.by, str):
            return
        first = self._learners[0]
        ridges = isinstance(first, LeastSquares) and set(differences(self.candidates)) == {"ridge"}
        if not ridges or self.validation is not squared:
            raise ValueError(
                f"expected ridges of LeastSquares and squared errors for by={self.by!r}, got {shown(self.base)}; put "
                "Normalised outside, or choose by folds"
            )


def _read_by(way: Way, fit: Params, x: Float[Array, "m D"]) -> Float[Array, "m K"]:
    """Predictions of a learner that a way reads from its parameters."""
    [read] = way.read(fit)
    return read.learner.predict(read.fit, x)


def _place(way: Way, choice: Int[Array, ""]) -> Int[Array, ""]:
    """The place of the chosen learner among those of a way; any where it is not among them."""
    return jnp.argmax(jnp.asarray(way.numbers, jnp.int32) == choice).astype(jnp.int32)


def _alike(found: list[Any]) -> bool:
    """Whether trees of arrays have the same structure, shapes and types."""
    kinds = [jax.tree.map(lambda a: (jnp.shape(a), jnp.result_type(a)), each) for each in found]
    return all(kind == kinds[0] for kind in kinds)


def without_a_fold(plan: Plan, folds: int) -> Plan:
    """The smallest training set [N] of a plan without the cases of one fold."""
    rows = plan.train.reshape(-1, plan.n)
    row = rows[np.argmin(np.sum(rows > 0, axis=1))]
    cases = np.flatnonzero(row)
    out = cases[np.argsort(-row[cases].astype(int), kind="stable")][: math.ceil(len(cases) / folds)]
    left = row.copy()
    left[out] = 0
    return Plan(left[None], (row - left)[None], f"{plan.scheme} without one of {folds} folds")
