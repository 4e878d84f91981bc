"""The units that a run computes in: single precision loses nothing where learner and loss do not mind, or refuses."""

from dataclasses import dataclass, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgen import Data, assess, learn, loss, resample
from jaxgen.engine.units import suited
from jaxgen.types import Freedom, as_learner

pytestmark = pytest.mark.usefixtures("own_messages")

KEY = jax.random.key(0)
N = 60
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 3))
Y = X @ [[1.0], [-2.0], [0.5]] + 0.5 * RANDOM.normal(size=(N, 1))
DATA = Data(X, Y, ("a", "b", "c"))
PLAN = resample.leave_out(KEY, N, 0.25, 6)
NETWORK = learn.Normalised(learn.Descent(learn.MLP((3,)), steps=200))
STOPPED = learn.Normalised(learn.EarlyStopped(learn.Descent(learn.MLP((3,)), steps=100), folds=2))


@cache
def easy(learner):
    """Of the data as they are."""
    return assess(KEY, learner, DATA, PLAN).g


def moved(x_shift=0.0, x_scale=1.0, y_shift=0.0, y_scale=1.0, data=DATA):
    return replace(data, x=data.x * x_scale + x_shift, y=data.y * y_scale + y_shift)


@pytest.mark.parametrize("learner", [NETWORK, STOPPED], ids=["network", "stopped"])
@pytest.mark.parametrize(
    "change",
    [
        {"x_shift": 1e7},
        {"x_shift": -1e9},
        {"x_scale": 1e-30},
        {"x_scale": 1e30},
        {"y_shift": 1e7},
        {"y_shift": 1e9},
        {"y_scale": 1e-30},
        {"y_scale": 1e25},
        {"x_shift": 1e6, "y_shift": -1e8, "y_scale": 100.0},
    ],
    ids=str,
)
def test_offsets_and_units_change_nothing(learner, change):
    """Against the same data without them: what is left of the offset's digits in double precision, and the rounding of
    single precision after 200 steps.
    """
    unit = change.get("y_scale", 1.0) ** 2
    np.testing.assert_allclose(assess(KEY, learner, moved(**change), PLAN).g / unit, easy(learner), rtol=2e-3)


def test_predictions_come_back_in_the_units_of_the_target():
    plain = assess(KEY, NETWORK, DATA, PLAN, keep="predictions")
    far = assess(KEY, NETWORK, moved(y_shift=1e8, y_scale=3.0), PLAN, keep="predictions")
    assert far.predictions is not None
    assert far.values is not None
    np.testing.assert_allclose(
        (far.predictions - 1e8) / 3, plain.predictions, atol=1e-3
    )  # single precision of 200 steps
    np.testing.assert_allclose(far.values / 9, plain.values, rtol=0.02, atol=1e-3)
    tiny = assess(KEY, NETWORK, moved(y_scale=1e-25), PLAN, loss.absolute, keep="predictions")
    assert tiny.predictions is not None
    np.testing.assert_allclose(tiny.predictions * 1e25, plain.predictions, atol=1e-3)
    np.testing.assert_allclose(tiny.g * 1e25, assess(KEY, NETWORK, DATA, PLAN, loss.absolute).g, rtol=1e-3)


def test_each_data_set_has_its_own_units():
    shifts = np.array([0.0, 1e7, -3e8])[:, None, None]
    data = Data(np.stack([X] * 3) + shifts, np.stack([Y] * 3) - shifts, DATA.names)
    losses = assess(KEY, learn.Normalised(learn.Descent(learn.MLP((3,), init=0.0), steps=20)), data, PLAN)
    np.testing.assert_allclose(losses.g[1:], losses.g[[0, 0]], rtol=1e-3)  # the same start for all sets


@pytest.mark.parametrize(
    ("data", "learner", "given", "message"),
    [
        (moved(x_shift=1e8), learn.Descent(steps=2), loss.squared, r"float32 can hold, got .* in x, column 0 \('a'\)"),
        (moved(y_shift=1e8), learn.Descent(steps=2), loss.squared, r"in y, column 0 \('y'\).*use learn.Normalised"),
        (moved(y_shift=1e8), NETWORK, lambda y, p: abs(y - p)[:, 0] ** 1.5, r"in y, column 0 \('y'\)"),
        (moved(x_scale=1e39), learn.Descent(steps=2), loss.squared, "numbers that float32 can hold, got up to"),
    ],
    ids=["inputs", "targets", "a loss that may mind", "too large"],
)
def test_what_single_precision_would_lose_is_refused(data, learner, given, message):
    with pytest.raises(ValueError, match=message):
        assess(KEY, learner, data, PLAN, given)
    with jax.enable_x64(True):
        assert assess(KEY, learner, data, PLAN, given).test_mean.shape == (6,)


ONLY_INSIDE = learn.EarlyStopped(learn.Normalised(learn.Descent(learn.MLP((3,)), steps=4)), folds=2)


@pytest.mark.parametrize("learner", [ONLY_INSIDE, learn.Descent(steps=2)], ids=repr)
@pytest.mark.parametrize("unit", [1e-30, 1e25])
def test_targets_whose_losses_would_vanish_are_refused(learner, unit):
    """Squares of 1e-30 are 0 in single precision, and so are those that a learner compares; those of 1e-10 are not."""
    for of in (loss.squared, loss.absolute):
        with pytest.raises(ValueError, match=r"losses float32 can hold, got targets with a spread of .*e[-+]\d\d"):
            assess(KEY, learner, moved(y_scale=unit), PLAN, of)
    assert assess(KEY, learner, moved(y_scale=1e-10), PLAN).g.min() > 0


@dataclass(frozen=True)
class OwnMean:
    """A learner of a stranger's that says what it does not mind."""

    precise: bool = False
    freedom: object = Freedom(True, True, True, True)

    def fit(self, key, x, y, w):
        return w @ y / w.sum()

    def fit_from(self, start, key, x, y, w):
        return start

    def predict(self, params, x):
        return jnp.broadcast_to(params, (len(x), len(params)))


def test_what_a_learner_of_ones_own_says_of_units_is_used():
    plain = assess(KEY, learn.Mean(), DATA, PLAN)
    far = assess(KEY, OwnMean(), moved(y_shift=1e8, y_scale=3.0), PLAN)
    np.testing.assert_allclose(far.g / 9, plain.g, rtol=1e-5)  # sums of 45 cases in single precision
    assert assess(KEY, OwnMean(), DATA, PLAN).values.dtype == np.float32
    wide = assess(KEY, OwnMean(precise=True), DATA, PLAN)
    assert wide.values.dtype == np.float64
    np.testing.assert_allclose(wide.g, plain.g, rtol=1e-6)  # `plain` is in single precision
    with pytest.raises(TypeError, match=r"freedom of OwnMean\(.*\) to be a learn.Freedom, got bool"):
        assess(KEY, OwnMean(freedom=True), DATA, PLAN)
    started = as_learner(OwnMean()).fit_from(jnp.ones(1), KEY, *(jnp.asarray(a) for a in (X, Y, np.ones(N))))
    np.testing.assert_array_equal(started, 1)


def test_linear_learners_are_fitted_in_double_precision():
    """An offset, collinearity and an outlier that would cost single precision all its digits."""
    x = X.copy()
    x[:, 1] = x[:, 0] + 1e-5 * x[:, 1]
    x[:, 2] += 1e5
    x[7, 0] += 1e6
    data = replace(DATA, x=x)
    design = np.hstack([np.ones((N, 1)), x])
    losses = assess(KEY, learn.LeastSquares(), data, PLAN)
    assert losses.values.dtype == np.float64
    for row, used in enumerate(PLAN.train > 0):
        weights = np.linalg.lstsq(design[used] / design.max(0), Y[used], rcond=1e-14)[0]
        want = np.abs(Y - design / design.max(0) @ weights)[:, 0]
        # At a condition number of 1e11 double precision leaves five digits of the weights.
        np.testing.assert_allclose(np.sqrt(losses.values[row]), want, rtol=1e-4, atol=1e-3)


def test_what_may_stay_stays():
    """Plain columns are not touched, nor are those that must come as they are."""
    free = Freedom(True, True, True, True)
    learner = type("Free", (), {"freedom": free, "raw_inputs": ()})()
    units = suited(DATA, learner, loss.about(loss.squared), "float64")
    np.testing.assert_array_equal(units.x, X)
    np.testing.assert_array_equal(units.y, Y)
    assert not units.changed
    held = type("Held", (), {"freedom": free, "raw_inputs": (1,)})()
    units = suited(moved(x_shift=1e6), held, loss.about(loss.squared), "float64")
    np.testing.assert_array_equal(units.x, moved(x_shift=1e6).x)  # double precision holds an offset of 1e6


def test_the_spread_of_many_cases_is_that_of_some():
    """A Unix time and an indicator of one case in 4000, which no sample may hold, in single precision: the time is
    moved, and 0.1, which single precision rounds, is told from 0.3.
    """
    n = 12_000
    rare = np.where(np.arange(n) % 4000 == 17, 0.3, 0.1)
    data = Data(
        np.stack([1.7e9 + 1e4 * np.random.default_rng(2).normal(size=n), rare], axis=1), rare[:, None], ("t", "r")
    )
    units = suited(
        data, as_learner(learn.Normalised(learn.Descent(learn.MLP((2,))))), loss.about(loss.squared), "float32"
    )
    assert abs(units.x_shift[0] - 1.7e9) < 4e3  # five standard errors of the median of the 250 cases that are sorted
    np.testing.assert_allclose(units.x[:, 0] + units.x_shift[0], data.x[:, 0], atol=2e-3)  # 24 bits of 4e4
    np.testing.assert_allclose(units.x[:, 1] * units.x_scale[1] + units.x_shift[1], rare, rtol=1e-6)
