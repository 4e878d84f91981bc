"""Learners for cases some of whose inputs are missing."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxgen.learn.wrap.wrapper import Changing, Entered
from jaxgen.types import Data, Key, Learner, Params, Plan
from jaxgen.types.numbers import require_flag


class ImputedFit(NamedTuple):
    """Parameters of the learner inside; what is put in the place of missing inputs, [D]; and whether every input was
    known in some training case, [].
    """

    base: PyTree
    fill: Float[Array, "*S D"]
    known: Bool[Array, "*S"]


@dataclass(frozen=True, repr=False)
class Imputed(Changing):
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
        sums = jnp.sum(jnp.where(known, x * w[:, None], 0), axis=0)
        fill = sums / jnp.where(counts > 0, counts, 1)
        for levels in map(np.asarray, self.categories):
            often = jnp.concatenate([counts[levels[:1]] - jnp.sum(sums[levels]), sums[levels]])
            fill = fill.at[levels].set((jnp.argmax(often) == 1 + jnp.arange(len(levels))).astype(x.dtype))
        own = ImputedFit(None, fill, jnp.all(counts > 0))
        return Entered(own, key, self.inputs_inside(own, x), y, w)

    def inputs_inside(self, params: ImputedFit, x: Float[Array, "m D"]) -> Float[Array, "m E"]:
        """Inputs with nothing missing, and their indicators, [m, D + marked]."""
        missing = jnp.isnan(x)
        filled = jnp.where(missing, params.fill[None], x)
        if not self.marked:
            return filled
        return jnp.concatenate([filled, missing[:, np.asarray(self.marked)].astype(x.dtype)], axis=1)

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
