"""Cases with inputs and targets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Data:
    """Cases with inputs and targets, in their own units, on the host.

    Made by the functions of `jaxgen.datasets` and `jaxgen.simulate`, which check what they are given;
    `assess` checks again.

    Attributes:
      x: inputs, [*Q, N, D].
      y: targets, [*Q, N, K]; for a classification one column of zeros and ones per class.
      names: the D names of the inputs.
      target: the name of what is predicted.
      task: "regression" or "classification".
      classes: the K class names of a classification, else empty.
    """

    x: Float[np.ndarray, "*Q N D"]
    y: Float[np.ndarray, "*Q N K"]
    names: tuple[str, ...]
    target: str = "y"
    task: str = "regression"
    classes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Cases, N."""
        return self.x.shape[-2]

    @property
    def d(self) -> int:
        """Inputs, D."""
        return self.x.shape[-1]

    @property
    def sets(self) -> int | None:
        """Independent data sets, Q; None where the data have no such axis."""
        return self.x.shape[0] if self.x.ndim == 3 else None

    def __getitem__(self, q: int) -> "Data":
        """Data set q of Q, with x [N, D] and y [N, K]."""
        if self.sets is None:
            raise IndexError(
                "expected data with a leading axis Q to choose a set from, got a single data set; use it as it is"
            )
        return replace(self, x=self.x[q], y=self.y[q])

    def select(self, inputs: Sequence[str | int]) -> "Data":
        """The same cases seen through some of the inputs.

        Args:
          inputs: names or column numbers, in the order wanted.
        Returns:
          Data with x [*Q, N, len(inputs)].
        Raises:
          ValueError: a name or number is not among the inputs.
        """
        unknown = [i for i in inputs if i not in (self.names if isinstance(i, str) else range(self.d))]
        if unknown:
            raise ValueError(
                f"expected inputs among {', '.join(self.names)} or numbers below {self.d}, got "
                f"{unknown[0]!r}; name those of this data set"
            )
        columns = [self.names.index(i) if isinstance(i, str) else int(i) for i in inputs]
        return replace(self, x=self.x[..., columns], names=tuple(self.names[i] for i in columns))

    def checked(self) -> "Data":
        """This data set itself, after a check of its shapes and values.

        Raises:
          ValueError: x [*Q, N, D] and y [*Q, N, K] do not belong together, names do not fit, or a value is not finite.
        """
        if self.x.dtype.kind != "f" or self.y.dtype.kind != "f":
            raise ValueError(
                f"expected x and y as floating numbers, got {self.x.dtype} and {self.y.dtype}; "
                "make the data with datasets.from_arrays"
            )
        if self.x.ndim not in (2, 3) or self.y.ndim != self.x.ndim or self.x.shape[:-1] != self.y.shape[:-1]:
            raise ValueError(
                "expected x [N, D] and y [N, K] (or both with one leading axis Q) of the same cases, got x "
                f"{list(self.x.shape)} and y {list(self.y.shape)}; give one row per case"
            )
        if self.n == 0 or self.y.shape[-1] == 0:
            raise ValueError(
                f"expected at least one case and one output, got x {list(self.x.shape)} and y "
                f"{list(self.y.shape)}; check the source of the data"
            )
        if len(self.names) != self.d:
            raise ValueError(
                f"expected {self.d} names, one per column of x, got {len(self.names)}; name every input once"
            )
        for symbol, values, names in (
            ("x", self.x, self.names),
            ("y", self.y, self.classes or (self.target,) * self.y.shape[-1]),
        ):
            bad = np.argwhere(~np.isfinite(values))
            if len(bad):
                where = tuple(int(i) for i in bad[0])
                raise ValueError(
                    f"expected finite numbers, got {values[where]} in {symbol}, column {where[-1]} "
                    f"({names[where[-1]]!r}), case {where[-2]}, "
                    f"and {len(bad)} such values in all; fill in or leave out these cases first"
                )
        return self
