"""`learn.check`: ours pass, and a learner that breaks one promise fails at that promise."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import pytest

from jaxgen import datasets, learn

pytestmark = pytest.mark.usefixtures("own_messages")

ALL = ("value", "code", "shapes", "absence", "nan", "twice", "order", "vmap", "key")


@dataclass(frozen=True)
class Linear:
    """Weighted least squares with a ridge, done right; parts of it are replaced below."""

    ridge: float = 0.1

    def fit(self, key, x, y, w):
        x, y = jnp.where(w[:, None] > 0, x, 0), jnp.where(w[:, None] > 0, y, 0)
        x = jnp.concatenate([jnp.ones_like(x[:, :1]), x], axis=1)
        return jnp.linalg.solve(
            (x.T * w[None]) @ x + self.ridge * jnp.eye(x.shape[1], dtype=x.dtype), (x.T * w[None]) @ y
        )

    def predict(self, params, x):
        return jnp.concatenate([jnp.ones_like(x[:, :1]), x], axis=1) @ params


def changed(**methods):
    return dataclass(frozen=True)(type("Linear", (Linear,), {"__module__": __name__, **methods}))()


def right(self, key, x, y, w):
    return Linear.fit(self, key, x, y, w)


@dataclass
class Changeable(Linear.__base__):  # pyright: ignore[reportGeneralTypeIssues]
    ridge: float = 0.1
    fit = Linear.fit
    predict = Linear.predict

    def __hash__(self):
        return hash(self.ridge)


CALLS = []
BROKEN = {
    "value": (Changeable(), "a learner that cannot be changed, got .*frozen=True"),
    "code": (changed(__repr__=lambda self: "a good one"), "prints as code which makes it, got a good one"),
    "shapes": (
        changed(predict=lambda self, p, x: Linear.predict(self, p, x)[:, 0]),
        r"predictions \[36, 1\] of .* for 36 cases, got \[36\]",
    ),
    "absence": (
        changed(fit=lambda self, key, x, y, w: right(self, key, x, y, jnp.ones_like(w))),
        "to learn nothing from cases of weight 0, got other predictions when only",
    ),
    "nan": (
        changed(fit=lambda self, key, x, y, w: (w @ y)[None] / jnp.sum(w), predict=lambda self, p, x: 0 * x[:, :1] + p),
        "got other predictions with NaN in them",
    ),
    "twice": (
        changed(fit=lambda self, key, x, y, w: right(self, key, x, y, (w > 0).astype(x.dtype))),
        "a case of weight 2 to count twice",
    ),
    "order": (
        changed(fit=lambda self, key, x, y, w: right(self, key, x, y, w * jnp.cumsum(w))),
        "the order of the cases not to matter",
    ),
}
SCALAR = jax.ShapeDtypeStruct((), jnp.float32)


def noise():
    CALLS.append(1)
    return jnp.float32(len(CALLS))


BROKEN["key"] = (
    changed(
        fit=lambda self, key, x, y, w: (
            right(self, key, x, y, w) + jax.pure_callback(noise, SCALAR, vmap_method="broadcast_all")
        )
    ),
    "the same key to give .* the same fit",
)


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_promise_is_named(promise):
    """Checks before it pass, but for those that notice it too; if all these are left out, so do those after it."""
    learner, message = BROKEN[promise]
    broken_too = {"order": ("twice",), "key": ("absence", "twice", "order", "vmap")}.get(promise, ())
    with pytest.raises(ValueError, match=message):
        learn.check(learner, skip=broken_too)
    if promise in ("nan", "order", "key"):
        assert promise not in learn.check(learner, skip=(promise, *broken_too))


def test_right_learners_pass():
    assert learn.check(Linear()) == ALL
    assert learn.check(learn.Mean()) == ALL
    assert learn.check(learn.Mean(), datasets.wine(), skip=("order",)) == tuple(name for name in ALL if name != "order")


def test_what_is_no_learner_is_refused():
    with pytest.raises(TypeError, match="with the methods fit and predict, got 3"):
        learn.check(3)
    with pytest.raises(ValueError, match="names among value, .* to skip, got 'speed'"):
        learn.check(Linear(), skip=("speed",))
