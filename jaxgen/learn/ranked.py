"""All cases in the order of their distance from each, and the number of neighbours by leave-one-out."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.batched import in_any_row
from jaxgen.learn.counting import blur_of
from jaxgen.learn.distances import AT_A_TIME, in_blocks, sizes_of, squared_distances
from jaxgen.learn.scale import binary_unit

_LOSSES_AT_A_TIME = 1 << 11
"""Cases times rows whose leave-one-out losses with one more neighbour are found at a time."""


class Ranked(NamedTuple):
    """Of each of b cases the M nearest of n cases, or all, the nearest first; those that are equally far away are a
    group.

    Attributes:
      case: which cases they are, [b, M].
      first: the first place of the group that a place belongs to, [b, M].
    """

    case: Int[Array, "b M"]
    first: Int[Array, "b M"]

    @classmethod
    def of(cls, x: Float[Array, "n D"], unit: Float[Array, ""]) -> "Ranked":
        """All of the cases [n, D], whose distances are squared in a unit []."""
        all_cases = jnp.ones_like(x[:, 0])

        def ranked(block: Float[Array, "b D"]) -> Ranked:
            far, case = in_order(squared_distances(x, all_cases, block, unit).T)
            return Ranked(case, first_alike(far, blur_of(far, x.shape[1], sizes_of(block, unit)[:, None])))

        return in_blocks(ranked, x, AT_A_TIME // len(x))

    @classmethod
    def up_to(
        cls,
        end: Float[Array, " b"],
        far: Float[Array, "b M"],
        blur: Float[Array, "b M"],
        case: Int[Array, "b M"],
        nobody: int,
    ) -> "Ranked":
        """Of lists of distances in their order, equal up to a blur, and which cases they are of, those places that come
        before a distance that other cases may have, [b]; all others hold a case that is `nobody`.
        """
        before = far + blur < end[:, None]
        place = lax.broadcasted_iota(jnp.int32, far.shape, 1)
        return cls(jnp.where(before, case, nobody), jnp.where(before, first_alike(far, blur), place))

    def best_numbers(
        self, y: Float[Array, "n K"], w: Float[Array, "R n"], at_most: int | None = None
    ) -> tuple[Int[Array, " R"], Float[Array, " R"], Bool[Array, " R"]]:
        """The number of neighbours [R] with the least mean squared leave-one-out loss in rows of whole weights, these
        losses [R], and whether lists are long enough for all numbers that are tried; the smallest of numbers whose
        losses are equal but for rounding. All numbers are tried, or those up to one.
        """
        (rows, n), used = w.shape, jnp.any(w > 0, axis=0)[:, None]
        total, unit = jnp.sum(w, axis=1), binary_unit(jnp.max(jnp.where(used, jnp.abs(y), 0)))
        y = y / unit
        equal = 1 + 16 * n * float(jnp.finfo(y.dtype).eps)
        numbers = n if at_most is None else min(n, at_most)
        most = total - 1 if at_most is None else jnp.minimum(total - 1, at_most)

        def next_numbers(best: _Best) -> _Best:
            """The next numbers: there are more than n only where weights are above 1."""
            number = best.tried + 1 + jnp.arange(numbers, dtype=jnp.int32)
            losses, enough = self._losses(best.tried, numbers, y, w.T, most)
            losses = losses / total[None]
            losses = jnp.where(number.astype(y.dtype)[:, None] <= most[None], losses, jnp.inf)
            least = jnp.min(losses, axis=0)
            place = jnp.argmax(losses <= equal * least[None], axis=0)
            better = equal * least < best.least
            return _Best(
                best.tried + numbers,
                jnp.where(better, number[place], best.number),
                jnp.where(better, jnp.take_along_axis(losses, place[None], axis=0)[0], best.least),
                best.enough & enough,
            )

        begin = _Best(jnp.int32(0), jnp.ones(rows, jnp.int32), jnp.full(rows, jnp.inf, y.dtype), jnp.ones(rows, bool))
        more = jnp.max(most)
        found = lax.while_loop(lambda best: best.tried.astype(y.dtype) < more, next_numbers, begin)
        return found.number, found.least * jnp.square(unit), found.enough

    def _losses(
        self,
        tried: Int[Array, ""],
        numbers: int,
        y: Float[Array, "n K"],
        w: Float[Array, "n R"],
        most: Float[Array, " R"],
    ) -> tuple[Float[Array, "k R"], Bool[Array, " R"]]:
        """Sums of weighted squared leave-one-out losses [numbers, R], with each of the numbers of neighbours after
        those that were tried; and whether the lists of a row are long enough for the most of them that it needs, [R].

        All cases go through their lists at the same time, and their losses join those of the numbers of neighbours that
        they have by then. Rows are the last axis, so that the weights of a case are neighbours in memory.
        """
        whole = jnp.max(w) <= 1

        def of_block(block: tuple[Ranked, Array, Array, Array]) -> tuple[Float[Array, "1 kR"], Bool[Array, "1 R"]]:
            walk, first = _Walk(*block, tried, numbers, most, y, w), block[0].first
            apart = jnp.all(first == jnp.arange(first.shape[1], dtype=jnp.int32)[None], axis=1)
            alone = whole & jnp.all(apart | (jnp.max(walk.weight, axis=1) == 0))
            losses, enough = lax.cond(in_any_row(~alone), walk.in_groups, walk.one_by_one)
            return losses[None], enough[None]

        own, at_a_time = jnp.arange(len(self.case), dtype=jnp.int32), _LOSSES_AT_A_TIME // w.shape[1]
        losses, enough = in_blocks(of_block, (self, y[: len(own)], w[: len(own)], own), at_a_time)
        return jnp.sum(losses, axis=0).reshape(numbers, -1), jnp.all(enough, axis=0)


def in_order(far: Float[Array, "b n"]) -> tuple[Float[Array, "b n"], Int[Array, "b n"]]:
    """Distances [b, n] in their order, the nearest first, and which they were, [b, n]; equal ones stay in the order
    that they have. In double precision they are rounded down by less than 2 n in their last bit, so that those that are
    equal but for roundings are equal.

    XLA sorts whole numbers on a CPU in a sixth of the time of pairs. So the last bits of distances in double precision,
    whose bits are in the order of the numbers, make room for their places.
    """
    place = lax.broadcasted_iota(jnp.int32, far.shape, 1)
    if far.dtype != jnp.float64:
        ordered, case = lax.sort((far, place), dimension=1, num_keys=1)
        return ordered, case
    low = jnp.uint64((1 << (far.shape[1] - 1).bit_length()) - 1)
    packed = lax.sort((lax.bitcast_convert_type(far, jnp.uint64) & ~low) | place.astype(jnp.uint64), dimension=1)
    return lax.bitcast_convert_type(packed & ~low, far.dtype), (packed & low).astype(jnp.int32)


class _Best(NamedTuple):
    """How many numbers of neighbours were tried [], and of each row the best with its loss, and whether lists were long
    enough, [R].
    """

    tried: Int[Array, ""]
    number: Int[Array, " R"]
    least: Float[Array, " R"]
    enough: Bool[Array, " R"]


class _Walk(NamedTuple):
    """Through the lists of b cases, place by place.

    Attributes:
      ranked: the lists.
      target: of the cases, [b, K].
      weight: theirs, [b, R].
      own: which they are, [b].
      tried: so many numbers of neighbours have their losses already, [].
      numbers: and so many get theirs.
      most: the largest number that a row needs, [R].
      y, w: targets [n, K] and weights [n, R] of all cases.
    """

    ranked: Ranked
    target: Float[Array, "b K"]
    weight: Float[Array, "b R"]
    own: Int[Array, " b"]
    tried: Int[Array, ""]
    numbers: int
    most: Float[Array, " R"]
    y: Float[Array, "n K"]
    w: Float[Array, "n R"]

    def one_by_one(self) -> tuple[Float[Array, " kR"], Bool[Array, " R"]]:
        """The sums of losses where no two cases are equally far away and no weight is above 1; and whether the lists of
        a row are long enough. The last case of a list that others were left out of may be as far away as one of them.
        """

        def next_case(state: tuple[Array, Array, list[Array], Array]) -> tuple[Array, Array, list[Array], Array]:
            m, count, sums, losses = state
            others, targets = self._next(m)
            count = count + others
            sums = [a + b for a, b in zip(sums, targets, strict=True)]
            return m + 1, count, sums, self._with_losses(losses, count, others > 0, sums, jnp.maximum(count, 1))

        def unfinished(state: tuple[Array, Array, list[Array], Array]) -> Bool[Array, ""]:
            m, count, *_ = state
            return (m < self._length - self._cut) & self._wanted(count)

        nothing, none = self._nothing
        begin = jnp.int32(0), nothing, none, self._no_losses
        _, count, _, losses = lax.while_loop(unfinished, next_case, begin)
        return losses, jnp.all(self._enough(count), axis=0)

    def in_groups(self) -> tuple[Float[Array, " kR"], Bool[Array, " R"]]:
        """The same where equally distant cases share the places that are left: with the last of a group it is known how
        much each of them counts.
        """

        def next_case(state: _Passed) -> _Passed:
            """The next case of every list, and the group before if that is complete."""
            begins = (self.ranked.first[:, state.place] == state.place)[:, None]
            complete = jnp.where(begins, state.at_edge, 0)
            others, targets = self._next(state.place)
            coefficients, steps = self._with_group(state, complete)
            return _Passed(
                state.place + 1,
                state.inside + complete,
                [a + jnp.where(begins, b, 0) for a, b in zip(state.sums, state.sums_at_edge, strict=True)],
                state.at_edge - complete + others,
                [jnp.where(begins, 0, a) + b for a, b in zip(state.sums_at_edge, targets, strict=True)],
                coefficients,
                steps,
            )

        def unfinished(state: _Passed) -> Bool[Array, ""]:
            return (state.place < self._length) & self._wanted(state.inside)

        nothing, none = self._nothing
        begin = _Passed(jnp.int32(0), nothing, none, nothing, none, [nothing] * 3, [self._no_losses] * 3)
        end = lax.while_loop(unfinished, next_case, begin)
        known = end.inside if self._cut else end.inside + end.at_edge
        _, steps = self._with_group(end, end.at_edge)
        square, product, rest = (jnp.cumsum(a.reshape(self.numbers, -1), axis=0) for a in steps)
        number = (self.tried + 1 + jnp.arange(self.numbers, dtype=jnp.int32)).astype(self.w.dtype)[:, None]
        losses = jnp.maximum(square - 2 * product / number + rest / jnp.square(number), 0)
        return losses.reshape(-1), jnp.all(self._enough(known), axis=0)

    def _with_group(
        self, passed: "_Passed", size: Float[Array, "b R"]
    ) -> tuple[list[Float[Array, "b R"]], list[Float[Array, " kR"]]]:
        """The coefficients of the last group, and their steps, after a group of so many cases, or none.

        With m neighbours, the last of which belong to a group of the mean target u, a target t has the loss
        (a - c / m)^2, where a is t - u, and c what the targets of i cases inside sum up to above i u. So a^2, a c and
        c^2 are its coefficients from the first of these numbers on, until the next group has others.
        """
        rows, row = self.w.shape[1], jnp.arange(self.w.shape[1], dtype=jnp.int32)[None]
        there, scale = size > 0, jnp.where(size > 0, size, 1)
        first = jnp.maximum(passed.inside.astype(jnp.int32) - self.tried, 0)
        place = jnp.where(there & (first < self.numbers), first * rows + row, self.numbers * rows)
        means = [total / scale for total in passed.sums_at_edge]
        above = [total - passed.inside * mean for total, mean in zip(passed.sums, means, strict=True)]
        apart = [self.target[:, k, None] - mean for k, mean in enumerate(means)]
        products = [
            self.weight * sum(map(jnp.multiply, *pair)) for pair in ((apart, apart), (apart, above), (above, above))
        ]
        before = passed.coefficients
        new = [jnp.where(there, product, old) for product, old in zip(products, before, strict=True)]
        steps = [
            each.at[place].add(now - old, mode="drop") for each, now, old in zip(passed.steps, new, before, strict=True)
        ]
        return new, steps

    def _wanted(self, others: Float[Array, "b R"]) -> Bool[Array, ""]:
        """Whether more neighbours may be wanted. Where all numbers are tried all of them are, without a look."""
        every = self.numbers == len(self.w)
        return jnp.ones((), bool) if every else in_any_row(~jnp.all(self._enough(others)))

    def _enough(self, others: Float[Array, "b R"]) -> Bool[Array, "b R"]:
        """Whether so many neighbours of each case are as many as its row needs."""
        return (self.weight == 0) | (others >= self.most[None])

    @property
    def _cut(self) -> bool:
        """Whether lists are not of all cases."""
        return self._length < len(self.w)

    @property
    def _nothing(self) -> tuple[Float[Array, "b R"], list[Float[Array, "b R"]]]:
        nothing = jnp.zeros_like(self.weight)
        return nothing, [nothing] * self.y.shape[1]

    @property
    def _length(self) -> int:
        return self.ranked.case.shape[1]

    @property
    def _no_losses(self) -> Float[Array, " kR"]:
        return jnp.zeros(self.numbers * self.w.shape[1], self.w.dtype)

    def _next(self, m: Int[Array, ""]) -> tuple[Float[Array, "b R"], list[Float[Array, "b R"]]]:
        """The weight of the next case of every list, one less for a case itself, and its weighted targets."""
        case = self.ranked.case[:, m]
        others = jnp.maximum(self.w[case] - (case == self.own).astype(self.w.dtype)[:, None], 0)
        targets = self.y[case]
        return others, [others * targets[:, k, None] for k in range(targets.shape[1])]

    def _with_losses(
        self,
        losses: Float[Array, " kR"],
        number: Float[Array, "b R"],
        there: Bool[Array, "b R"],
        sums: list[Float[Array, "b R"]],
        scale: Float[Array, "b R"],
    ) -> Float[Array, " kR"]:
        """Joined by those with a number of neighbours, where there are such, whose means are sums / scale."""
        rows, row = self.w.shape[1], jnp.arange(self.w.shape[1], dtype=jnp.int32)[None]
        loss = sum(jnp.square(self.target[:, k, None] - total / scale) for k, total in enumerate(sums))
        place = number.astype(jnp.int32) - 1 - self.tried
        wanted = there & (place >= 0) & (place < self.numbers)
        place = jnp.where(wanted, place * rows + row, self.numbers * rows)
        return losses.at[place].add(self.weight * loss, mode="drop")


class _Passed(NamedTuple):
    """What of the lists was gone through.

    Attributes:
      place: how many places, [].
      inside: the weights of the cases before the group, [b, R].
      sums: their weighted targets, K times [b, R].
      at_edge: the weights of the cases of the group, [b, R].
      sums_at_edge: their weighted targets, K times [b, R].
      coefficients: the three of the loss after the group before, [b, R] each.
      steps: what these three change from one number of neighbours to the next, for all cases, [k R] each.
    """

    place: Int[Array, ""]
    inside: Float[Array, "b R"]
    sums: list[Float[Array, "b R"]]
    at_edge: Float[Array, "b R"]
    sums_at_edge: list[Float[Array, "b R"]]
    coefficients: list[Float[Array, "b R"]]
    steps: list[Float[Array, " kR"]]


def first_alike(far: Float[Array, "n M"], blur: Float[Array, "n M"]) -> Int[Array, "n M"]:
    """In lists of distances in their order, [n, M], of each place the first place with the same distance, [n, M].
    Distances are the same if they differ from the one before by no more than its blur, [n, M]; in double precision also
    if `in_order` may have rounded them to neighbouring numbers.
    """
    rounding = 4 * far.shape[1] * float(jnp.finfo(far.dtype).eps) if far.dtype == jnp.float64 else 0.0
    place = lax.broadcasted_iota(jnp.int32, far.shape, 1)
    more = far[:, 1:] > far[:, :-1] * (1 + rounding) + blur[:, :-1]
    further = jnp.concatenate([jnp.ones_like(far[:, :1], bool), more], axis=1)
    return lax.cummax(jnp.where(further, place, 0), axis=1)
