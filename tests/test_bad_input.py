"""What is refused at the door, one line each: the call, the exception, and what its message says."""

import math
from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest

from jaxgen import Data, Plan, assess, learn, resample, simulate
from jaxgen.stats import compare, estimate
from jaxgen.types import Losses

KEY = jax.random.key(0)
GOOD = simulate.linear_ar(KEY, None, 12, 2).data
SETS = simulate.linear_ar(KEY, 3, 12, 2).data
PLAN = resample.leave_out(KEY, 12, 0.25, 5)
ONES, NONE = np.ones((2, 12), np.uint8), np.zeros((2, 12), np.uint8)
MEAN = learn.Mean()


def spoiled(field, place, value, data=GOOD):
    """The data with one value replaced."""
    values = getattr(data, field).copy()
    values[place] = value
    return replace(data, **{field: values})


def run(data=GOOD, plan=PLAN, learner=MEAN, key=KEY, **options):
    return assess(key, learner, data, plan, **options)


def row(plan=PLAN):
    """Losses of the first row alone."""
    return Losses(
        np.ones(1),
        np.ones(1),
        replace(plan, train=plan.train[:1], test=plan.test[:1]),
        "Mean()",
        "squared",
        np.zeros(1, np.uint8),
    )


@dataclass
class Unhashable:
    rate: float = 0.1

    def fit(self, key, x, y, w):
        return y[0]

    def predict(self, params, x):
        return params[None]


class OnlyFits:
    def fit(self, key, x, y, w):
        return y[0]


DATA = {
    "NaN in x": (
        lambda: run(spoiled("x", (4, 1), math.nan)),
        ValueError,
        r"finite numbers, got nan in x, column 1 \('x2'\), case 4, and 1 such values in all; fill in or leave out",
    ),
    "inf in x": (
        lambda: run(spoiled("x", ([4, 5], 0), math.inf)),
        ValueError,
        r"got inf in x, column 0 \('x1'\), case 4, and 2 such values in all",
    ),
    "NaN in y": (lambda: run(spoiled("y", (4, 0), math.nan)), ValueError, r"got nan in y, column 0 \('y'\), case 4"),
    "-inf in y": (lambda: run(spoiled("y", (4, 0), -math.inf)), ValueError, r"got -inf in y, column 0 \('y'\), case 4"),
    "NaN in one of several sets": (
        lambda: run(spoiled("x", (2, 4, 1), math.nan, SETS)),
        ValueError,
        r"got nan in x, column 1 \('x2'\), case 4",
    ),
    "objects in x": (
        lambda: run(replace(GOOD, x=GOOD.x.astype(object))),
        ValueError,
        "x and y as floating numbers, got object and float64; make the data with datasets.from_arrays",
    ),
    "too large for 32 bits": (
        lambda: run(spoiled("x", (4, 1), 1e39), learner=learn.Descent(steps=1)),
        ValueError,
        r"numbers that float32 can hold, got up to 1e\+39 in x; subtract an offset or change the unit, use",
    ),
    "NaN in a class": (
        lambda: run(Data(GOOD.x, np.eye(12)[:, :2] * math.nan, GOOD.names, classes=("no", "yes"))),
        ValueError,
        r"got nan in y, column 0 \('no'\), case 0",
    ),
    "y of fewer cases": (
        lambda: run(replace(GOOD, y=GOOD.y[:-1])),
        ValueError,
        r"of the same cases, got x \[12, 2\] and y \[11, 1\]; give one row per case",
    ),
    "y without its axis": (
        lambda: run(replace(GOOD, y=GOOD.y[:, 0])),
        ValueError,
        r"expected x \[N, D\] and y \[N, K\] .*, got x \[12, 2\] and y \[12\]",
    ),
    "x without its axis": (
        lambda: run(replace(GOOD, x=GOOD.x[:, 0])),
        ValueError,
        r"expected x \[N, D\] and y \[N, K\] .*, got x \[12\] and y \[12, 1\]",
    ),
    "y of another number of sets": (
        lambda: run(replace(SETS, y=SETS.y[:2])),
        ValueError,
        r"got x \[3, 12, 2\] and y \[2, 12, 1\]",
    ),
    "sets of sets": (lambda: run(replace(SETS, x=SETS.x[None], y=SETS.y[None])), ValueError, r"got x \[1, 3, 12, 2\]"),
    "no cases": (
        lambda: run(replace(GOOD, x=GOOD.x[:0], y=GOOD.y[:0])),
        ValueError,
        r"at least one case and one output, got x \[0, 2\] and y \[0, 1\]; check the source",
    ),
    "no outputs": (
        lambda: run(replace(GOOD, y=GOOD.y[:, :0])),
        ValueError,
        r"at least one case and one output, got x \[12, 2\] and y \[12, 0\]",
    ),
    "too few names": (
        lambda: run(replace(GOOD, names=("a",))),
        ValueError,
        "2 names, one per column of x, got 1; name every input once",
    ),
    "unknown input": (
        lambda: GOOD.select(["x1", "age"]),
        ValueError,
        "inputs among x1, x2 or numbers below 2, got 'age'",
    ),
    "unknown column": (lambda: GOOD.select([0, 2]), ValueError, "inputs among x1, x2 or numbers below 2, got 2"),
    "column from the end": (lambda: GOOD.select([-1]), ValueError, "inputs among x1, x2 or numbers below 2, got -1"),
}
PLANS = {
    "plan for other data": (
        lambda: run(plan=resample.leave_out(KEY, 13, 0.25, 5)),
        ValueError,
        r"a plan for the 12 cases of the data, got one for 13 \(resample.leave_out\(.*\); make the plan with n=12",
    ),
    "plan of other sets": (
        lambda: run(SETS, resample.leave_out(KEY, 12, 0.25, 5, sets=4)),
        ValueError,
        "as many sets of splits as data sets, got 4 and 3; make the plan with sets=3, or without sets",
    ),
    "row that trains on nothing": (
        lambda: run(plan=Plan(NONE, ONES, "mine")),
        ValueError,
        r"to have training cases, got none in 2 rows, the first \[0\]; give each row at least one",
    ),
    "row that tests on nothing": (
        lambda: run(plan=Plan(ONES, np.stack([ONES[0], NONE[0]]), "mine")),
        ValueError,
        r"to have test cases, got none in 1 rows, the first \[1\]",
    ),
    "plan of unlike shapes": (
        lambda: run(plan=Plan(ONES, ONES[:1], "mine")),
        ValueError,
        r"one shape \[R, N\] or \[Q, R, N\], none of them 0, got \[2, 12\] and \[1, 12\]",
    ),
    "plan of no rows": (
        lambda: run(plan=Plan(ONES[:0], ONES[:0], "mine")),
        ValueError,
        r"none of them 0, got \[0, 12\] and \[0, 12\]",
    ),
    "plan without its axis": (
        lambda: run(plan=Plan(ONES[0], ONES[0], "mine")),
        ValueError,
        r"one shape \[R, N\] or \[Q, R, N\], .* got \[12\] and \[12\]",
    ),
    "negative weight": (
        lambda: resample.from_weights(-np.ones((2, 12)), ONES),
        ValueError,
        r"train weights that are whole numbers from 0 to 255, got -1.0 at \[0, 0\]",
    ),
    "fraction that leaves nothing": (
        lambda: resample.leave_out(KEY, 12, 0.99, 5),
        ValueError,
        "leaves out some of the 12 cases but not all, got 0.99, which leaves out 12",
    ),
    "fraction of nothing": (
        lambda: resample.leave_out(KEY, 12, 0.0, 5),
        ValueError,
        "a fraction between 0 and 1, got 0.0",
    ),
    "more resamples than splits": (
        lambda: resample.leave_out(KEY, 12, 0.1, 67),
        ValueError,
        r"at most C\(12, 2\) = 66 different splits of 12 cases, got 67; ask for fewer or change the fraction",
    ),
}
LEARNERS = {
    "fewer training cases than coefficients": (
        lambda: run(plan=resample.leave_out(KEY, 12, 0.8, 5), learner=learn.LeastSquares()),
        ValueError,
        r"at least 3 training cases for the 3 coefficients of LeastSquares\(\), got 2 in "
        r"resample.leave_out\(.*; train on more cases, select fewer inputs, use ridge > 0, or "
        r"minimum_norm=True",
    ),
    "fewer different cases than coefficients": (
        lambda: run(
            plan=resample.from_weights(9 * np.eye(12)[:1], ONES[:1]), learner=learn.LeastSquares(intercept=False)
        ),
        ValueError,
        r"at least 2 training cases for the 2 coefficients of LeastSquares\(intercept=False\), got 1 in given weights",
    ),
    "negative ridge": (
        lambda: run(learner=learn.LeastSquares(ridge=-1.0)),
        ValueError,
        "the ridge to be a finite number of at least 0, got -1.0; give 0 for none",
    ),
    "ridge NaN": (
        lambda: run(learner=learn.LeastSquares(ridge=math.nan)),
        ValueError,
        "the ridge to be a finite number of at least 0, got nan",
    ),
    "a learner's class": (
        lambda: run(learner=learn.LeastSquares),
        TypeError,
        r"a learner, got the class LeastSquares; write LeastSquares\(\)",
    ),
    "a learner's name": (
        lambda: run(learner="linear"),
        TypeError,
        "a learner with the methods fit and predict, got 'linear'",
    ),
    "a learner that does not predict": (
        lambda: run(learner=OnlyFits()),
        TypeError,
        "a learner with the methods fit and predict, got <.*OnlyFits object",
    ),
    "a learner that cannot be hashed": (
        lambda: run(learner=Unhashable()),
        TypeError,
        r"a learner that can be hashed by its values, got Unhashable\(rate=0.1\); make it a frozen dataclass of plain",
    ),
    "unknown text": (
        lambda: learn.from_text("forest"),
        ValueError,
        r"a learner \(linear, mean, .*\), got 'forest'; write for example 'LeastSquares\(ridge=1.0\)'",
    ),
    "text with code": (
        lambda: learn.from_text("LeastSquares(ridge=__import__('os').getpid())"),
        ValueError,
        'a learner, got "LeastSquares',
    ),
}
CALLS = {
    "an integer as a key": (
        lambda: run(key=3),
        TypeError,
        r"one random key, got the integer 3; write jax\.random\.key\(3\)",
    ),
    "a NumPy integer as a key": (
        lambda: run(key=np.int64(3)),
        TypeError,
        r"one random key, got the integer 3; write jax\.random\.key\(3\)",
    ),
    "a negative ridge": (
        lambda: run(learner=learn.LeastSquares(ridge=-1.0)),
        ValueError,
        r"the ridge to be a finite number of at least 0, got -1\.0",
    ),
    "a key of another kind": (
        lambda: run(key=jax.random.key(3, impl="rbg")),
        TypeError,
        "the kind threefry2x32, got rbg, whose numbers depend on the size of a batch",
    ),
    "a key of the old style": (
        lambda: run(key=jax.random.PRNGKey(3)),
        TypeError,
        r"one random key, got ArrayImpl of shape \[2\] and dtype uint32; write jax\.random\.key\(0\)",
    ),
    "several keys": (
        lambda: run(key=jax.random.split(KEY, 3)),
        TypeError,
        r"one random key, got \w*Array\w* of shape \[3\] and dtype key<fry>; write jax\.random\.key\(0\)",
    ),
    "no key": (lambda: run(key=None), TypeError, "one random key, got NoneType"),
    "keep of all": (
        lambda: run(keep="all"),
        ValueError,
        "keep to be one of 'cases', 'predictions', 'rows', got 'all'; choose one of these",
    ),
    "chunk of none": (
        lambda: run(chunk=0),
        ValueError,
        "chunk to be a whole number of at least 1, got 0; give such a number",
    ),
    "negative chunk": (lambda: run(chunk=-5), ValueError, "chunk to be a whole number of at least 1, got -5"),
    "summary of one resampling": (
        lambda: estimate.summary(row()),
        ValueError,
        "at least 2 resamplings to describe a distribution, got 1",
    ),
    "test of one resampling": (
        lambda: compare.corrected_t(row(), row()),
        ValueError,
        "at least 2 resamplings",
    ),
    "naive test of one resampling": (
        lambda: compare.paired_t(row(), row()),
        ValueError,
        "at least 2 resamplings",
    ),
    "probability from one resampling": (
        lambda: compare.probability_greater(row(), row()),
        ValueError,
        "at least 2 resamplings",
    ),
}
BAD = DATA | PLANS | LEARNERS | CALLS


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case, own_messages):
    call, exception, message = BAD[case]
    with pytest.raises(exception, match=message) as caught:
        call()
    text = str(caught.value)
    assert text.startswith("expected "), "what was expected comes first"
    assert ", got " in text or " got " in text
    assert "\n" not in text
