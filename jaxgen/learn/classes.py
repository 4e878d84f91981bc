"""Cross-entropies of two classes and of many, by their logits: values, derivatives, and Newton's equations.

Cases are the last axis, [K, n], so that every elementwise loop runs along the long axis, as inside networks. K are the
classes that are modelled, 1 of two, or all of them.
"""

import abc
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import helmert

from jaxgen.learn.batched import over_first
from jaxgen.learn.coordinates import Gram
from jaxgen.learn.systems import solved


class Classes(abc.ABC):
    """The true classes of n cases, and their cross-entropies for logits [K, n].

    With K >= 2, coefficients, gradients and steps add up to 0 over the classes.
    """

    @property
    @abc.abstractmethod
    def modelled(self) -> int:
        """K, 1 of two classes."""

    @abc.abstractmethod
    def astype(self, dtype: Any) -> "Classes":
        """The same in numbers of another type."""

    @abc.abstractmethod
    def above(self, logits: Float[Array, "K n"]) -> Float[Array, " n"]:
        """The most by which another class exceeds the true one, [n], of logits [K, n]."""

    @abc.abstractmethod
    def costs(self, logits: Float[Array, "K n"]) -> Float[Array, " n"]:
        """Cross-entropies [n], exact to a few roundings of themselves even where they are tiny."""

    @abc.abstractmethod
    def residuals(self, logits: Float[Array, "K n"]) -> tuple[Float[Array, "K n"], Float[Array, "K n"]]:
        """Derivatives [K, n] of the cross-entropies by the logits, as exact, and what the second ones follow from."""

    @abc.abstractmethod
    def curved(self, weighted: Float[Array, "K n"], logits: Float[Array, "K n"]) -> Float[Array, "K n"]:
        """The product of the weighted second derivatives and a change of the logits, [K, n], given the weights times
        what the derivatives follow from.
        """

    @abc.abstractmethod
    def by_class(self, known: Float[Array, "K n"]) -> Float[Array, "K n"]:
        """Second derivatives by the logit of each class alone, [K, n]."""

    @abc.abstractmethod
    def eliminated(
        self, gram: Gram, known: Float[Array, "K n"], gradient: Float[Array, "K p"]
    ) -> tuple[Float[Array, "K p"], Float[Array, ""]]:
        """The solution [K, p] of Newton's equations of these cases and this ridge, and their smallest pivot [] relative
        to the largest diagonal element.
        """

    @abc.abstractmethod
    def centred(self, coefficients: Float[Array, "K p"]) -> Float[Array, "K p"]:
        """Coefficients [K, p] that add up to 0 over the classes."""


def orthonormal_contrasts(classes: int) -> Float[np.ndarray, "K F"]:
    """Orthonormal contrasts of K classes, [K, K - 1]."""
    return helmert(classes).T


def modelled_of(columns: int) -> int:
    """Classes that are modelled of so many columns of targets: one of two, whose coefficients are those of the other
    with another sign.
    """
    return 1 if columns == 2 else columns


@dataclass(frozen=True)
class TwoClasses(Classes):
    """Logistic regression; `sign` [n] is 1 for cases of the class whose logits are modelled, -1 for the others."""

    sign: Float[Array, " n"]

    @property
    def modelled(self) -> int:
        """One."""
        return 1

    def astype(self, dtype: Any) -> "TwoClasses":
        """The same in numbers of another type."""
        return TwoClasses(self.sign.astype(dtype))

    def above(self, logits: Float[Array, "1 n"]) -> Float[Array, " n"]:
        """The logit [n] of the other class minus that of the true one."""
        return -self.sign * logits[0]

    def costs(self, logits: Float[Array, "1 n"]) -> Float[Array, " n"]:
        """The softplus function of these differences, [n]."""
        above = self.above(logits)
        return jnp.maximum(above, 0) + jnp.log1p(jnp.exp(-jnp.abs(above)))

    def residuals(self, logits: Float[Array, "1 n"]) -> tuple[Float[Array, "1 n"], Float[Array, "1 n"]]:
        """The probability of the wrong class with its sign, and the second derivatives; both [1, n]."""
        above = self.above(logits)[None]
        small = jnp.exp(-jnp.abs(above))
        less, more = small / (1 + small), 1 / (1 + small)
        return -self.sign[None] * jnp.where(above > 0, more, less), less * more

    def curved(self, weighted: Float[Array, "1 n"], logits: Float[Array, "1 n"]) -> Float[Array, "1 n"]:
        """The weighted second derivatives [1, n] times the change of the logits."""
        return weighted * logits

    def by_class(self, known: Float[Array, "1 n"]) -> Float[Array, "1 n"]:
        """The second derivatives themselves, [1, n]."""
        return known

    def eliminated(
        self, gram: Gram, known: Float[Array, "1 n"], gradient: Float[Array, "1 p"]
    ) -> tuple[Float[Array, "1 p"], Float[Array, ""]]:
        """The solution [1, p] of the p equations as they are."""
        step, pivot = solved(gram.weighted(known * gram.w[None])[0], gradient[0])
        return step[None], pivot

    def centred(self, coefficients: Float[Array, "1 p"]) -> Float[Array, "1 p"]:
        """The coefficients [1, p] themselves, since nothing is to be added up over a single class."""
        return coefficients


@dataclass(frozen=True)
class ManyClasses(Classes):
    """Softmax regression; `targets` [K, n] are one for the true class."""

    targets: Float[Array, "K n"]

    @property
    def modelled(self) -> int:
        """All K, of which coefficients add up to 0."""
        return len(self.targets)

    def astype(self, dtype: Any) -> "ManyClasses":
        """The same in numbers of another type."""
        return ManyClasses(self.targets.astype(dtype))

    def above(self, logits: Float[Array, "K n"]) -> Float[Array, " n"]:
        """The largest logit [n] of the other classes minus that of the true class."""
        others = over_first(jnp.maximum, jnp.where(self.targets > 0, -jnp.inf, logits))
        return others - over_first(jnp.add, self.targets * logits)

    def costs(self, logits: Float[Array, "K n"]) -> Float[Array, " n"]:
        """Logarithms of the sums of the exponentials of the logits minus that of the true class, [n]."""
        most, exponentials = self._exponentials(logits)
        wrong, right = self._apart(exponentials)
        # log(sum of all exp) in a form that is exact even where it is tiny, which is where `right` is 1
        return most - over_first(jnp.add, self.targets * logits) + jnp.log1p(over_first(jnp.add, wrong) + (right - 1))

    def residuals(self, logits: Float[Array, "K n"]) -> tuple[Float[Array, "K n"], Float[Array, "K n"]]:
        """Probabilities minus targets, and the probabilities; both [K, n]."""
        _, exponentials = self._exponentials(logits)
        wrong, right = self._apart(exponentials)
        rest = over_first(jnp.add, wrong[1:])
        whole = wrong[0] + rest + right
        part, hit = 1 / whole, right / whole
        missed = rest / whole + part * wrong[0]  # see `_exponentials`
        of_wrong = part[None] * exponentials
        return jnp.where(self.targets > 0, -missed[None], of_wrong), jnp.where(self.targets > 0, hit[None], of_wrong)

    def _exponentials(self, logits: Float[Array, "K n"]) -> tuple[Float[Array, " n"], Float[Array, "K n"]]:
        """The largest logits [n], and the exponentials of all relative to these, [K, n].

        Two things, here and in what follows, are for XLA. What is computed once for a case and read for each of its
        classes ends with a division, since XLA computes anew for each class what takes only maxima, sums and products.
        And the first class is left for last: where each result needs no number of a large array but that in its own
        place, XLA overwrites this array, and then LLVM makes no vector instructions on CPUs: three to five times the
        time.
        """
        one = jnp.maximum(over_first(jnp.add, self.targets), 1)
        most = jnp.maximum(over_first(jnp.maximum, logits[1:]) / one, logits[0])
        return most, jnp.exp(logits - most[None])

    def _apart(self, exponentials: Float[Array, "K n"]) -> tuple[Float[Array, "K n"], Float[Array, " n"]]:
        """Those of the wrong classes [K, n], 0 for the true ones, and those of the true classes [n]."""
        return jnp.where(self.targets > 0, 0, exponentials), over_first(jnp.add, self.targets * exponentials)

    def curved(self, weighted: Float[Array, "K n"], logits: Float[Array, "K n"]) -> Float[Array, "K n"]:
        """The change of the logits [K, n] minus its mean under the probabilities, times the weighted probabilities."""
        whole = over_first(jnp.add, weighted)
        whole = jnp.where(whole > 0, whole, 1)
        mean = over_first(jnp.add, weighted[1:] * logits[1:]) / whole + weighted[0] / whole * logits[0]
        return weighted * (logits - mean[None])  # see `_exponentials`

    def by_class(self, known: Float[Array, "K n"]) -> Float[Array, "K n"]:
        """Each probability times its complement, [K, n]."""
        return known * (1 - known)

    def eliminated(
        self, gram: Gram, known: Float[Array, "K n"], gradient: Float[Array, "K p"]
    ) -> tuple[Float[Array, "K p"], Float[Array, ""]]:
        """In F = K - 1 orthonormal contrasts of the classes, whose equations have one solution."""
        contrasts = jnp.asarray(orthonormal_contrasts(len(self.targets)), known.dtype)
        apart = contrasts[:, None] - contrasts[None]
        # Each case adds p_k p_l (c_k - c_l)(c_k - c_l)' for each pair of classes, which cancels nothing.
        curvature = gram.w[None, None] * jnp.einsum(
            "kn,ln,klf,klg->fgn", known, known / 2, apart, apart, optimize=[(2, 3), (0, 1), (0, 1)]
        )
        p, f = len(gram.cases), contrasts.shape[1]
        blocks = gram.summed(curvature.reshape(f * f, -1)).reshape(f, f, p, p)
        blocks = blocks + jnp.eye(f, dtype=blocks.dtype)[:, :, None, None] * gram.ridge.matrix[None, None]
        hessian = jnp.swapaxes(blocks, 1, 2).reshape(f * p, f * p)
        step, pivot = solved(hessian, (contrasts.T @ gradient).reshape(f * p))
        return contrasts @ step.reshape(f, p), pivot

    def centred(self, coefficients: Float[Array, "K p"]) -> Float[Array, "K p"]:
        """Coefficients [K, p] minus their mean over the classes."""
        return coefficients - jnp.mean(coefficients, axis=0, keepdims=True)


def classes_of(y: Float[Array, "n K"]) -> Classes:
    """The true classes of targets [n, K], zeros and ones: one column of two classes, or one for each."""
    return TwoClasses(2 * y[:, 0] - 1) if modelled_of(y.shape[1]) == 1 else ManyClasses(y.T)
