"""Units in which squares neither overflow nor vanish."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def binary_unit(largest: Float[Array, "*N"]) -> Float[Array, "*N"]:
    """The power of two at or below each number above 0, [*N]; 1 for 0 and for what is not finite.

    Numbers divided by it lie in (-2, 2) and keep all their digits, so what is learned from them is the same to the
    last bit; but their squares can be summed, where those of 1e-30 vanish in single precision and those of 1e30
    overflow.
    """
    fraction, exponent = jnp.frexp(largest)
    plain = jnp.isfinite(largest) & (largest > 0)
    return jnp.where(plain, jnp.ldexp(jnp.full_like(fraction, 0.5), exponent), 1)
