"""Logistic and softmax regression of one training set by a coefficient for each case, where there are more inputs.

With a ridge, the weights of the minimum are a sum of the cases, each times a coefficient (Kimeldorf & Wahba 1971, "Some
results on Tchebycheffian spline functions"; Zhu & Hastie 2005, "Kernel logistic regression and the import vector
machine"), so a class has n unknowns in place of D. For changes a [n] of these and b of the constant, Newton's equations

    V (G a + b) + ridge a = r,    sum of V (G a + b) = s

hold, with V the second derivatives of the cross-entropies by the logits and G the products of the cases. They are
symmetric in the inner product a' G a + b b, in which conjugate gradients solve them here. The preconditioner solves
them for other second derivatives C, so it gives a, and G a = (r - ridge a) / C - b without a product with G: a round
takes no other matrix. Where the inputs of a row are not those of which G is made, it takes two products with them.

Letters: K classes that are modelled (1 of two, or all of them), n cases, m = n + 1 unknowns of a class, the constant
last. Of unknowns, the `image` is G a and b: their logits, before the constant is added to those of all cases.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxgen.learn.batched import over_first
from jaxgen.learn.classes import Classes
from jaxgen.learn.newton import halved
from jaxgen.learn.softmax import Point
from jaxgen.learn.systems import dot, inverse, inverse_of_lower

_LOOSE, _TIGHT = 0.05, 0.02
"""Relative residuals of Newton's equations that are asked for, at most and at least: rows that are solved together wait
for the one with most rounds, and the nearer a solution, the more these differ.
"""

_SOON = 7
"""Newton steps in which most rows get there; after these, ten times nearer solutions are asked for at each step."""

_LEFT = 3e-11
"""Logits may be left so far from those of the minimum, relative to the largest, as far as conjugate gradients see."""

_SEEN = 3e-9
"""The same, as far as the preconditioner shows at the end."""

_ROUNDS = 100
"""Of conjugate gradients, after which they are given up."""


class Nearby(NamedTuple):
    """The inverse of Newton's equations with second derivatives that are about those of a row, and without the cases
    that it leaves out: with `inverse` S of all cases, that of the others is S - S_o (S_oo)^-1 S_o', o being left out.

    Attributes:
      inverse: of the products with the ridge over the curvature added to the diagonal, [n, n].
      curvature: second derivatives by the logits, [n].
      ridge: on the squares of the weights, [].
      used: 1 for cases of the row, else 0, [n].
      absent: numbers of those that are left out, [q]; None to take no account of them in the inverse.
      of_absent: (S_oo)^-1 S_o', [q, n].
      ones: the inverse of the row times 1 for every case, [n]; None without an intercept. With one, coefficients add
        up to 0 at the minimum, and so do all changes of them.
    """

    inverse: Float[Array, "n n"]
    curvature: Float[Array, " n"]
    ridge: Float[Array, ""]
    used: Float[Array, " n"]
    absent: Int[Array, " q"] | None = None
    of_absent: Float[Array, "q n"] | None = None
    ones: Float[Array, " n"] | None = None

    @classmethod
    def of(
        cls, gram: Float[Array, "n n"], curvature: Float[Array, " n"], ridge: Float[Array, ""], dtype: Any
    ) -> "Nearby":
        """With second derivatives [n] of cases that have these products [n, n], made in numbers of this type."""
        given = [values.astype(dtype) for values in (curvature, ridge, jnp.ones_like(curvature))]
        return cls(_inverse(gram.astype(dtype), given[1] / given[0]), *given)

    def without(self, absent: Int[Array, " q"]) -> "Nearby":
        """The same without these cases, [q]."""
        none = jnp.diag((absent >= len(self.used)).astype(self.used.dtype))
        rows = self.inverse.at[absent].get(mode="fill", fill_value=0)
        inner = rows.at[:, absent].get(mode="fill", fill_value=0) + none
        return self._replace(absent=absent, of_absent=inverse(inner) @ rows)

    def with_constant(self) -> "Nearby":
        """The same for models with an intercept."""
        return self._replace(ones=self._restricted(self.used[None])[0])

    def times(self, rest: Float[Array, "K m"]) -> tuple[Float[Array, "K m"], Float[Array, "K m"]]:
        """The solution [K, m] of the equations with this right-hand side [K, m], and its image [K, m] by the products
        of which the inverse is, without a product with these: since the inverse solves the equations.
        """
        asked = self.used[None] * rest[:, :-1] / self.curvature[None]
        found, constant = self._restricted(asked), jnp.zeros_like(rest[:, -1])
        if self.ones is not None:
            constant = jnp.sum(found, axis=1) / jnp.sum(self.ones)
            found = found - constant[:, None] * self.ones[None]
            asked = asked - constant[:, None] * self.used[None]
        image = asked - (self.ridge / self.curvature)[None] * found
        return jnp.column_stack([found, constant]), jnp.column_stack([image, constant])

    def unseen(self, rest: Float[Array, "K m"]) -> Float[Array, "K m"]:
        """What a right-hand side [K, m] asks for where products of the cases are 0, or far below the ridge over the
        curvature: changes [K, m] that the inner product does not see, but other rows do, which leave out other cases.
        """
        found = jnp.concatenate([rest[:, :-1] / self.ridge, self.used[None]])
        for _ in range(2):
            found = self._restricted(found * (self.ridge / self.curvature)[None])
        found, of_ones = found[:-1], found[-1:]
        if self.ones is not None:
            found = found - jnp.sum(found, axis=1, keepdims=True) / jnp.sum(of_ones) * of_ones
        return jnp.pad(found, ((0, 0), (0, 1)))

    def _restricted(self, rest: Float[Array, "K n"]) -> Float[Array, "K n"]:
        """The product [K, n] of the inverse for the cases of the row."""
        rest = self.used[None] * rest
        if self.absent is not None and self.of_absent is not None:
            rest = rest - jnp.zeros_like(rest).at[:, self.absent].add(rest @ self.of_absent.T, mode="drop")
        return self.used[None] * (rest @ self.inverse)


class Solution(NamedTuple):
    """Conjugate gradients: unknowns so far with their image, what is left of the right-hand side with its square in the
    preconditioner, the direction with its image, the rounds, and whether it is over.
    """

    solution: Float[Array, "K m"]
    image: Float[Array, "K m"]
    rest: Float[Array, "K m"]
    square: Float[Array, ""]
    direction: Float[Array, "K m"]
    image_of_direction: Float[Array, "K m"]
    rounds: Int[Array, ""]
    over: Bool[Array, ""]


class State(NamedTuple):
    """Newton's method: unknowns, the steps taken, whether the minimum is found, whether it is over, and the most by
    which the next step is expected to change a logit.
    """

    unknowns: Float[Array, "K m"]
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]
    over: Bool[Array, ""]
    expected: Float[Array, ""]


@dataclass(frozen=True)
class CaseProblem:
    """What is minimised for one training set over unknowns [K, m]: sum w cross-entropy + ridge / 2 a' G a.

    Attributes:
      classes: of the cases.
      w: weights, [n].
      ridge: [].
      intercept: whether there is one.
      products: G a of coefficients, [K, n], in their precision.
      nearby: the preconditioner.
      alike: whether it is made of the same products, or nearly so, [].
    """

    classes: Classes
    w: Float[Array, " n"]
    ridge: Float[Array, ""]
    intercept: bool
    products: Callable[[Array], Array]
    nearby: Nearby
    alike: Bool[Array, ""]

    def minimised(
        self, start: Float[Array, "K m"], hopeless: Bool[Array, ""], steps: int, close: float | None = None
    ) -> State:
        """Newton's method from a start [K, m], at most `steps` steps; none for a hopeless row. It ends with a step that
        changes no logit by more than `close`, relative to the largest; None asks for one after which only `_LEFT` of
        them remains.
        """
        noise = 4 * len(self.w) ** 0.5 * float(jnp.finfo(self.w.dtype).eps)
        rough = float(jnp.finfo(self.nearby.used.dtype).eps)

        def at(both: Float[Array, "j m"]) -> Point:
            return Point(both, self._objective(both), jnp.zeros_like(self.ridge))

        def step(state: State) -> State:
            image = self._image(state.unknowns)
            logits = _logits_of(image)
            rest, known = self._rest(state.unknowns, logits)
            size = 1 + jnp.max(jnp.abs(logits))
            left = _LEFT * size
            tight = _TIGHT * 0.1 ** jnp.clip(state.iterations - _SOON, 0, 3).astype(size.dtype)
            enough = jnp.clip(state.expected / size, jnp.clip(left / state.expected, tight, _LOOSE), _LOOSE)
            found, residual = self._solved(known, rest, enough)
            finite = jnp.all(jnp.isfinite(found)) & jnp.isfinite(residual)
            move = jnp.where(finite, -found, 0)
            k = len(rest)
            change = jnp.max(jnp.abs(_logits_of(move[k:])))
            if close is None:  # Newton's step leaves about the square of itself, times what is not much more than 10
                converged = finite & (10 * jnp.square(change) <= left) & (residual * change <= left)
            else:
                converged = finite & (change <= close * size)
            now = at(jnp.concatenate([state.unknowns, image]))
            slope = dot(rest, move[k:])
            of_image = rough * self.ridge * jnp.sqrt(dot(state.unknowns, state.unknowns) * dot(move[k:], move[k:]))
            rounding = jnp.where(converged, jnp.inf, noise * jnp.abs(now.objective) + of_image)
            length, then = halved(at, now, move, slope, rounding)
            expected = jnp.where(length < 1, change, residual * change + jnp.square(change) / 2)
            over = converged | ~finite | (length == 0)
            return State(then.solution[:k], state.iterations + 1, converged, over, expected)

        begin = State(start, jnp.int32(0), jnp.bool_(False), hopeless, jnp.full_like(self.ridge, jnp.inf))
        return lax.while_loop(lambda state: ~state.over & (state.iterations < steps), step, begin)

    def checked(self, unknowns: Float[Array, "K m"]) -> tuple[Float[Array, ""], Bool[Array, ""]]:
        """Length [] of the gradient relative to that of the residuals with the ridge's share, about in coordinates in
        which the cases are orthonormal; and whether the step that the preconditioner makes of the gradient changes no
        logit by more than `_SEEN`, relative to the largest. Conjugate gradients in single precision do not see all of
        their own rounding.
        """
        image = self._image(unknowns)
        logits = _logits_of(image)
        excess = self.classes.residuals(logits)[0]
        rest = self._covector(self.w[None] * excess, unknowns)
        squares = self.w @ over_first(jnp.add, jnp.square(excess)) + self.ridge * _penalty(unknowns, image)
        cosine = jnp.sqrt(dot(rest, rest) / jnp.where(squares > 0, squares, 1))
        size = jnp.max(jnp.abs(rest))
        unit = rest / jnp.where(size > 0, size, 1)
        moved = _logits_of(self._image(self.nearby.times(unit.astype(self.nearby.used.dtype))[0]))
        change = size * jnp.max(jnp.abs(moved)).astype(size.dtype)
        return cosine, change <= _SEEN * (1 + jnp.max(jnp.abs(logits)))

    def first_step(
        self, start: Float[Array, "K m"], excess: Float[Array, "K n"], logits: Float[Array, "K n"]
    ) -> Float[Array, "K m"]:
        """Unknowns [K, m] of Newton's first step from a start [K, m] of rows with other cases, with its derivatives
        and logits [K, n], by the preconditioner alone. Coefficients of cases that are left out become 0, which changes
        the logits of the others much; the equations are those at the logits of the start. Zeros, if these are better.
        """
        kept = self._balanced(start * jnp.pad(self.nearby.used, (0, 1), constant_values=1)[None].astype(start.dtype))
        moved = _logits_of(self._image(kept)) - logits
        curvature = (self.nearby.used * self.nearby.curvature).astype(moved.dtype)
        rest = self._covector(self.w[None] * excess + curvature[None] * moved, kept)
        step, _ = self.nearby.times(rest.astype(self.nearby.used.dtype))
        found = self._balanced(self.classes.centred(kept - step.astype(kept.dtype)))
        nothing = jnp.zeros_like(found)
        better = self._objective(self._with_image(found)) < self._objective(self._with_image(nothing))
        return jnp.where(better, found, nothing)

    def _with_image(self, unknowns: Float[Array, "K m"]) -> Float[Array, "j m"]:
        return jnp.concatenate([unknowns, self._image(unknowns)])

    def _image(self, unknowns: Float[Array, "K m"]) -> Float[Array, "K m"]:
        return jnp.concatenate([self.products(unknowns[:, :-1]), unknowns[:, -1:]], axis=1)

    def _balanced(self, unknowns: Float[Array, "K m"]) -> Float[Array, "K m"]:
        """Unknowns of which those of the cases add up to 0, as they do at the minimum where there is a constant."""
        if not self.intercept:
            return unknowns
        used = self.nearby.used.astype(unknowns.dtype)
        mean = jnp.sum(unknowns[:, :-1], axis=1, keepdims=True) / jnp.sum(used)
        return unknowns.at[:, :-1].add(-mean * used[None])

    def _level(self, rest: Float[Array, "K m"]) -> Float[Array, "K m"]:
        """A right-hand side of which the equations of the cases add up to that of the constant, as those do of changes
        that add up to 0.
        """
        if not self.intercept:
            return rest
        used = self.nearby.used.astype(rest.dtype)
        off = (jnp.sum(rest[:, :-1], axis=1, keepdims=True) - rest[:, -1:]) / jnp.sum(used)
        return rest.at[:, :-1].add(-off * used[None])

    def _covector(self, weighted: Float[Array, "K n"], unknowns: Float[Array, "K m"]) -> Float[Array, "K m"]:
        """What derivatives by the logits [K, n] are by the unknowns [K, m], with those of the ridge, before the image
        is taken: an inner product with it is a plain one with an image.
        """
        used, ridge = self.nearby.used.astype(weighted.dtype), self.ridge.astype(weighted.dtype)
        of_cases = used[None] * (weighted + ridge * unknowns[:, :-1])
        of_constant = jnp.sum(weighted, axis=1, keepdims=True) * int(self.intercept)
        return jnp.concatenate([of_cases, of_constant], axis=1)

    def _rest(
        self, unknowns: Float[Array, "K m"], logits: Float[Array, "K n"]
    ) -> tuple[Float[Array, "K m"], Float[Array, "K n"]]:
        """The gradient [K, m] and what the second derivatives follow from, [K, n]."""
        excess, known = self.classes.residuals(logits)
        return self._covector(self.w[None] * excess, unknowns), known

    def _objective(self, both: Float[Array, "j m"]) -> Float[Array, ""]:
        """Of unknowns and their image, one below the other."""
        k = len(both) // 2
        costs = self.w @ self.classes.costs(_logits_of(both[k:]))
        return costs + self.ridge / 2 * _penalty(both[:k], both[k:])

    def _solved(
        self, known: Float[Array, "K n"], rest: Float[Array, "K m"], enough: Float[Array, ""]
    ) -> tuple[Float[Array, "j m"], Float[Array, ""]]:
        """The solution of Newton's equations for a right-hand side [K, m] and its image, one below the other, and the
        relative residual [] that is left.
        """
        dtype = self.nearby.used.dtype
        classes, weighted = self.classes.astype(dtype), (self.w[None] * known).astype(dtype)

        def product(direction: Float[Array, "K m"], image: Float[Array, "K m"]) -> Float[Array, "K m"]:
            return self._level(self._covector(classes.curved(weighted, _logits_of(image)), direction))

        def pulled(rest: Float[Array, "K m"]) -> tuple[Float[Array, "K m"], Float[Array, "K m"]]:
            found, image = map(classes.centred, self.nearby.times(rest))
            return found, lax.cond(self.alike, lambda: image, lambda: self._image(found))

        # Of unit size, so that squares of what is left do not underflow in single precision.
        size = jnp.max(jnp.abs(rest))
        size = jnp.where(size > 0, size, 1)
        b = (rest / size).astype(dtype)
        found, whole = _conjugate_gradients(product, pulled, b, enough.astype(dtype))
        solution = self._balanced(found.solution + self.nearby.unseen(found.rest))
        image = self._image(solution)
        left = b - product(solution, image)
        square, noise = _square(pulled(left)[1], left)
        residual = jnp.sqrt(jnp.maximum(square, noise) / jnp.where(whole > 0, whole, 1))
        residual = jnp.where(found.rounds > 0, residual, jnp.inf)
        # Directions that are seen a little, where second derivatives are far above those of the preconditioner.
        unseen = residual <= 1
        solution, image = (jnp.where(unseen, *both) for both in ((solution, found.solution), (image, found.image)))
        # What rounding leaves of the sums would stay, since no step has any.
        solution, image = (self.classes.centred(part.astype(rest.dtype)) for part in (solution, image))
        return size * jnp.concatenate([self._balanced(solution), image]), residual.astype(rest.dtype)


def _conjugate_gradients(
    product: Callable[[Array, Array], Array],
    pulled: Callable[[Array], tuple[Array, Array]],
    b: Float[Array, "K m"],
    tolerance: Float[Array, ""],
) -> tuple[Solution, Float[Array, ""]]:
    """Solution of a system that is symmetric in the inner product by images (Hestenes & Stiefel 1952), and the square
    [] of the right-hand side in the preconditioner, relative to which that of the residual ends it.

    Args:
      product: the system times unknowns [K, m], of which the image [K, m] is known too.
      pulled: the preconditioner times a residual [K, m], and the image of that.
      b: right-hand side, [K, m].
      tolerance: relative residual that is asked for, [].
    """

    def advance(state: Solution) -> Solution:
        column = product(state.direction, state.image_of_direction)
        curvature = dot(state.image_of_direction, column)
        length = state.square / curvature
        rest = state.rest - length * column
        unknowns, image = pulled(rest)
        square, noise = _square(image, rest)
        again = square / state.square
        return Solution(
            state.solution + length * state.direction,
            state.image + length * state.image_of_direction,
            rest,
            square,
            unknowns + again * state.direction,
            image + again * state.image_of_direction,
            state.rounds + 1,
            ~(curvature > 0) | ~(square > jnp.maximum(goal, noise)),
        )

    first, image = pulled(b)
    whole, noise = _square(image, b)
    goal = jnp.square(tolerance) * whole
    none = jnp.zeros_like(b)
    begin = Solution(none, none, b, whole, first, image, jnp.int32(0), ~(whole > noise))
    return lax.while_loop(lambda state: ~state.over & (state.rounds < _ROUNDS), advance, begin), whole


def _square(image: Float[Array, "K m"], rest: Float[Array, "K m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The square [] of a residual [K, m] in the preconditioner, of which this is the image [K, m], and its rounding."""
    rounding = float(jnp.finfo(rest.dtype).eps) * jnp.sqrt(dot(image, image) * dot(rest, rest))
    return dot(image, rest), rounding


def _logits_of(image: Float[Array, "K m"]) -> Float[Array, "K n"]:
    """Logits [K, n] of an image [K, m]."""
    return image[:, :-1] + image[:, -1:]


def _penalty(unknowns: Float[Array, "K m"], image: Float[Array, "K m"]) -> Float[Array, ""]:
    """The square [] of the weights."""
    return dot(unknowns[:, :-1], image[:, :-1])


def _inverse(gram: Float[Array, "n n"], added: Float[Array, " n"]) -> Float[Array, "n n"]:
    """Of products of cases [n, n] with numbers [n] that are added to the diagonal."""
    size = lax.rsqrt(jnp.diagonal(gram) + added)
    lower = jnp.linalg.cholesky(size[:, None] * (gram + jnp.diag(added)) * size[None])
    root = inverse_of_lower(lower) * size[None]
    return root.T @ root
