"""Units in which squares neither overflow nor vanish."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float


def binary_unit(largest: Float[Array, "*N"]) -> Float[Array, "*N"]:
    """The power of two at or below each number above 0, [*N]; 1 for 0 and for what is not finite. For numbers so small
    that they have fewer digits than others, it is the smallest one that has all.

    Numbers divided by it lie in (-2, 2) and keep all their digits, so what is learned from them is the same to the
    last bit; but their squares can be summed, where those of 1e-30 vanish in single precision and those of 1e30
    overflow.
    """
    kind = jnp.finfo(largest.dtype)
    exponents = np.array(((1 << kind.nexp) - 1) << kind.nmant, f"int{kind.bits}")  # where a number keeps its exponent
    power = lax.bitcast_convert_type(lax.bitcast_convert_type(largest, exponents.dtype) & exponents, largest.dtype)
    plain = jnp.isfinite(largest) & (largest > 0)
    return jnp.where(plain, jnp.maximum(power, kind.tiny), 1)
