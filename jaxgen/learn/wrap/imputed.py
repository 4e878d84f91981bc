"""Learners for cases some of whose inputs are missing."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from jaxgen.learn.wrap.wrapper import Entered, Sharing
from jaxgen.types import Data, Key, Learner, Params, Plan, RowFills
from jaxgen.types.numbers import require_flag


class ImputedFit(NamedTuple):
    """Parameters of the learner inside; what is put in the place of missing inputs, [D]; and whether every input was
    known in some training case, [].
    """

    base: PyTree
    fill: Float[Array, "*S D"]
    known: Bool[Array, "*S"]


@dataclass(frozen=True, repr=False)
class Imputed(Sharing):
    """A learner whose missing inputs, NaN, are filled in: a number by its weighted mean over the training cases in
    which it is known, a category by its most frequent level, the first of equals (Little & Rubin 2019, "Statistical
    analysis with missing data", chapter 4).

    What is filled in is learned anew from the training cases of each row, so that no test case has a part in it, and
    the error of the whole procedure is what `assess` finds. It is that of scikit-learn's `SimpleImputer` in a pipeline.
    Data with missing inputs come from `datasets.read_csv(..., missing="keep")`, `from_frame` or `from_arrays`.

    Attributes:
      base: the learner.
      indicator: whether it also gets, after the D inputs, a column of zeros and ones for each input that is missing in
        some case of the data: 1 where it is. Inputs that are missing together share one. A learner without a ridge
        fails in rows none of whose training cases lack the input, since such a column is constant there.
      categories: the columns of each category, as in `Data`; `assess` takes them from the data.
      marked: inputs with an indicator; `assess` finds them in the data.
    """

    indicator: bool = False
    categories: tuple[tuple[int, ...], ...] = ()
    marked: tuple[int, ...] = ()

    @property
    def failures(self) -> tuple[str, ...]:
        """What the learner inside says, and that there was nothing to fill in."""
        return (
            *self.inside.failures,
            "an input is missing in every one of its training cases (leave the input out, or leave out fewer cases)",
        )

    @property
    def accepts_missing(self) -> bool:
        """Yes."""
        return True

    @property
    def raw_inputs(self) -> tuple[int, ...]:
        """Those of the learner inside, and the levels of categories, whose zeros and ones are counted."""
        return tuple(sorted({*self.inside.raw_inputs, *(column for levels in self.categories for column in levels)}))

    @property
    def shares_rows(self) -> bool:
        """Whether the learner inside shares rows that each have numbers of their own for missing inputs."""
        return self.inside.shares_rows_filled

    def shares_rows_of(self, cases: int, trained: int, inputs: int) -> bool:
        """As of the learner inside, which has indicators among its inputs."""
        return self.inside.shares_rows_of(cases, trained, inputs + len(self.marked))

    def shares_one_row_of(self, cases: int, inputs: int) -> bool:
        """The same of a single row."""
        return self.inside.shares_one_row_of(cases, inputs + len(self.marked))

    def careful_of(self, cases: int, inputs: int) -> Learner | None:
        """None: where there is such a learner, its rows share nothing if each has numbers of its own."""
        return None

    def counts_left_out_of(self, cases: int, inputs: int) -> bool:
        """As of the learner inside, which has indicators among its inputs."""
        return self.inside.counts_left_out_of(cases, inputs + len(self.marked))

    def for_data(self, data: Data) -> Learner:
        """The same with the categories of these data [*Q, N, D], and the inputs that they lack somewhere."""
        marked = _missing_apart(data) if self.indicator is True else ()
        known = replace(self, categories=data.categories, marked=marked)
        return replace(known, base=self.inside.for_data(known._filled(data)))

    def check(self, data: Data, plan: Plan) -> None:
        """Refuses what the learner inside refuses.

        Raises:
          ValueError: the indicator is neither True nor False, or as the learner inside says.
        """
        require_flag("indicator of Imputed", self.indicator)
        self.inside.check(self._filled(data), plan)

    def enter(self, key: Key, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"]) -> Entered:
        """The cases with nothing missing, [n, D + marked]."""
        known = (w > 0)[:, None] & ~jnp.isnan(x)
        counts = jnp.sum(jnp.where(known, w[:, None], 0), axis=0)
        own = self._learned(counts, jnp.sum(jnp.where(known, x * w[:, None], 0), axis=0))
        return Entered(own, key, self.inputs_inside(own, x), y, w)

    def inputs_inside(self, params: ImputedFit, x: Float[Array, "m D"]) -> Float[Array, "m E"]:
        """Inputs with nothing missing, and their indicators, [m, D + marked]."""
        missing = jnp.isnan(x)
        return jnp.concatenate([jnp.where(missing, params.fill[None], x), self._marks(missing, x.dtype)], axis=1)

    def prepared(self, x: Float[Array, "n D"], y: Float[Array, "n K"], w: Float[Array, " n"], rows: int) -> "Imputed":
        """With the learner inside as it is prepared for cases [n, D], [n, K] of mean weights [n], of which the missing
        inputs are filled in alike.
        """
        return replace(self, base=self.inside.prepared_filled(self.inputs_inside(self._of_all(x), x), y, w, rows))

    def fit_rows(
        self,
        keys: Shaped[Array, " R"],
        x: Float[Array, "n D"],
        y: Float[Array, "n K"],
        w: Float[Array, "R n"],
        left_out: int | None,
    ) -> tuple[ImputedFit, Bool[Array, " R"]] | tuple[ImputedFit, Bool[Array, " R"], Float[Array, "R n K"]]:
        """The fits of R weightings of the same cases at once, each with its own numbers for missing inputs, and which
        of them to trust; with predictions, if the learner inside gives some, [R, n, K].
        """
        missing, middle = jnp.isnan(x), self._of_all(x)
        there, values = (~missing).astype(x.dtype), jnp.where(missing, 0, x)
        own = jax.vmap(self._learned)(*(jnp.matmul(w, each, precision="highest") for each in (there, values)))
        more = ((0, 0), (0, len(self.marked)))
        fills = RowFills(*(jnp.pad(each, more) for each in (1 - there, own.fill - middle.fill[None])))
        found: Any = self.inside.fit_rows_filled(keys, self.inputs_inside(middle, x), y, w, fills, None, left_out)
        fits, *rest = found
        return own._replace(base=fits), *rest

    def _of_all(self, x: Float[Array, "n D"]) -> ImputedFit:
        """What all cases alike would learn."""
        there = ~jnp.isnan(x)
        return self._learned(jnp.sum(there.astype(x.dtype), axis=0), jnp.sum(jnp.where(there, x, 0), axis=0))

    def _learned(self, counts: Float[Array, " D"], sums: Float[Array, " D"]) -> ImputedFit:
        """What is put in the place of inputs that are known in so many cases, and add up to so much there."""
        fill = sums / jnp.where(counts > 0, counts, 1)
        for levels in map(np.asarray, self.categories):
            often = jnp.concatenate([counts[levels[:1]] - jnp.sum(sums[levels]), sums[levels]])
            fill = fill.at[levels].set((jnp.argmax(often) == 1 + jnp.arange(len(levels))).astype(fill.dtype))
        return ImputedFit(None, fill, jnp.all(counts > 0))

    def _marks(self, missing: Bool[Array, "m D"], dtype: Any) -> Float[Array, "m marked"]:
        return missing[:, np.asarray(self.marked, int)].astype(dtype)

    def failure(self, params: Params) -> Int[Array, ""]:
        """That nothing was known of an input, or as of the learner inside, []."""
        return jnp.where(params.known, super().failure(params), len(self.failures)).astype(jnp.int32)

    def _filled(self, data: Data) -> Data:
        """The data as the learner inside may see them, with 0 for what is missing: for what does not look at values."""
        gaps = np.isnan(data.x)
        marks = gaps[..., list(self.marked)].astype(np.float64)
        names = (*data.names, *(f"{data.names[column]} is missing" for column in self.marked))
        x = np.concatenate([np.where(gaps, 0.0, data.x), marks], axis=-1)
        return replace(data, x=x, names=names, missing=False)


def _missing_apart(data: Data) -> tuple[int, ...]:
    """Inputs that are missing in some case, the first of those that are missing in the same cases."""
    gaps = np.isnan(data.x).reshape(-1, data.d).T
    _, first = np.unique(gaps, axis=0, return_index=True)
    return tuple(int(column) for column in sorted(first) if gaps[column].any())
