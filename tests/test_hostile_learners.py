"""Settings of learners that are of another kind or out of range: one sentence each, before anything is trained; and
numbers of NumPy, which are as good as Python's.
"""

import re

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hostile import refused
from sklearn.linear_model import LinearRegression

from jaxgen import Data, assess, learn, loss, resample
from jaxgen.learn import (
    L1,
    L2,
    MLP,
    Augmented,
    Conjugate,
    Descent,
    EarlyStopped,
    Ensemble,
    LeastSquares,
    Logistic,
    Neighbours,
    Normalised,
    Objective,
    Optax,
    PerTask,
    Scaled,
    Sparse,
    Tied,
)

pytestmark = pytest.mark.usefixtures("own_messages")

KEY = jax.random.key(0)
X = np.random.default_rng(0).normal(size=(18, 3))
NUMBERS = Data(X, X[:, :1] + 1, tuple("abc"))
CLASSES = Data(X, (X[:, :1] > 0).astype(float), tuple("abc"), task="classification", classes=("yes",))
PLAN = resample.k_fold(KEY, 18, folds=2)
QUICK = Descent(steps=2)


def clipped(y, prediction):
    """A loss that only knows JAX's arrays of one output."""
    return jnp.minimum(jnp.abs(y - prediction)[:, 0], 1.0)


class Shapeless(nn.Module):
    """A flax module that fails."""

    @nn.compact
    def __call__(self, x):
        return x @ jnp.ones((7, 1))


REFUSED = {
    "scikit-learn's": (lambda: LinearRegression(), "scikit-learn's LinearRegression; use learn.External"),
    "a class": (lambda: LeastSquares, r"got the class LeastSquares; write LeastSquares\(\)"),
    "ridge: text": (
        lambda: LeastSquares(ridge="a"),
        "the ridge to be a finite number of at least 0, got 'a'; give 0 for none",
    ),
    "ridge: None": (lambda: LeastSquares(ridge=None), "the ridge to be .*, got None"),
    "ridge: list": (lambda: LeastSquares(ridge=[1.0, 2.0]), r"the ridge to be .*, got \(1.0, 2.0\)"),
    "ridge: flag": (lambda: LeastSquares(ridge=True), "the ridge to be .*, got True"),
    "ridge: infinite": (lambda: LeastSquares(ridge=np.inf), "the ridge to be .*, got inf"),
    "intercept": (lambda: LeastSquares(intercept="x"), "intercept to be True or False, got 'x'"),
    "minimum_norm": (lambda: LeastSquares(minimum_norm=1), "minimum_norm to be True or False, got 1"),
    "k: text": (
        lambda: Neighbours("5"),
        "the number k of neighbours to be a whole number of at least 1, got '5'; leave k out",
    ),
    "k: 2.5": (lambda: Neighbours(2.5), "the number k .*, got 2.5"),
    "k: flag": (lambda: Neighbours(True), "the number k .*, got True"),
    "steps: text": (
        lambda: Descent(steps="5"),
        "the steps of Descent to be a whole number from 1 to 2147483647, got '5'",
    ),
    "steps: None": (lambda: Descent(steps=None), "the steps of Descent .*, got None"),
    "steps: 2.5": (lambda: Conjugate(steps=2.5), "the steps of Conjugate .*, got 2.5"),
    "steps: 2^40": (
        lambda: Descent(steps=2**40),
        "the steps of Descent .*, got 1099511627776; train for some iterations",
    ),
    "rate: text": (lambda: Descent(rate="0.1"), "the rate to be a finite number above 0, got '0.1'"),
    "rate: None": (lambda: Descent(rate=None), "the rate to be a finite number above 0, got None"),
    "batch: 2.5": (lambda: Descent(batch=2.5), "the cases of a batch .*, got 2.5; leave batch out to use all cases"),
    "batch: text": (lambda: Descent(batch="all"), "the cases of a batch .*, got 'all'"),
    "objective: None": (lambda: Descent(objective=None), "an objective among squared, .* or an Objective, got None"),
    "objective: function": (
        lambda: Descent(objective=loss.squared),
        "or an Objective, got <function squared.*write for",
    ),
    "objective: class": (
        lambda: Descent(objective=Objective),
        "or an Objective, got the class Objective; write for example",
    ),
    "weights: texts": (lambda: Descent(objective=Objective(weights=("a",))), r"expected 1 weights .*, got \('a',\)"),
    "weights: a number": (lambda: Descent(objective=Objective(weights=2.0)), "expected 1 weights .*, got 2.0"),
    "delta: text": (
        lambda: Descent(objective=Objective("huber", delta="a")),
        "delta to be a finite number above 0, got 'a'",
    ),
    "penalty: text": (
        lambda: Descent(penalty="x"),
        "a penalty L2, L1, Sparse or Tied, or a tuple of such, got 'x'; write for",
    ),
    "penalty: number": (lambda: Descent(penalty=0.1), "a penalty L2, .*, got 0.1"),
    "penalty: None": (
        lambda: Descent(penalty=None),
        "a penalty L2, .*, got None; write for example .*, or leave it out",
    ),
    "penalty: class": (lambda: Descent(penalty=L2), "a penalty L2, .*, got the class L2"),
    "penalty: one of two": (lambda: Descent(penalty=(L2(0.1), 0.2)), "a penalty L2, .*, got 0.2"),
    "strength: text": (
        lambda: Descent(penalty=L1("a")),
        "the strength of L1 to be a finite number of at least 0, got 'a'",
    ),
    "strength: None": (lambda: Descent(penalty=Sparse(None)), "the strength of Sparse .*, got None"),
    "strength: NaN": (lambda: Descent(PerTask(tasks=1), penalty=Tied(np.nan)), "the tasks of PerTask"),
    "checkpoints: number": (
        lambda: Descent(checkpoints=2.5),
        "checkpoints='1-2-5', a whole number from 1 to the 1000 steps, .*, got 2.5",
    ),
    "checkpoints: flag": (lambda: Descent(checkpoints=True), "checkpoints='1-2-5', .*, got True"),
    "checkpoints: None": (lambda: Descent(checkpoints=None), "checkpoints='1-2-5', .*, got None"),
    "checkpoints: floats": (
        lambda: Descent(checkpoints=(1.0, 5.0)),
        r"checkpoints at increasing iterations from 1 to 1000, got \(1.0, 5.0\)",
    ),
    "checkpoints: too late": (
        lambda: Descent(checkpoints=(1, 2000)),
        r"checkpoints at increasing iterations from 1 to 1000, got \(1, 2000\)",
    ),
    "tolerance": (
        lambda: Descent(tolerance="small"),
        "the tolerance to be a number above 0, got 'small'; leave it out",
    ),
    "curvature": (lambda: Conjugate(curvature="x"), "the curvature to be a number above 0.0001 and below 0.5, got 'x'"),
    "network: None": (
        lambda: Descent(None),
        r"a network: MLP, PerTask or a flax module, got None; write for example learn.MLP",
    ),
    "network: lists": (
        lambda: Descent(nn.Sequential([nn.Dense(3), nn.tanh, nn.Dense(1)])),
        "a network: MLP, PerTask or a flax module that can be hashed, got a Sequential that cannot; give it tuples",
    ),
    "network: class": (lambda: Descent(MLP), r"a network: .*, got the class MLP; write MLP\(\)"),
    "network: number": (lambda: Descent(20), "a network: .*, got 20"),
    "network: tuple": (lambda: Descent((20,)), r"a network: .*, got \(20,\)"),
    "network: flax's class": (lambda: Descent(nn.Dense), "a network: .*, got the class Dense"),
    "network: that fails": (
        lambda: Descent(Shapeless()),
        r"Shapeless to give \[n, 1\] outputs for \[n, 3\] inputs, got TypeError",
    ),
    "network: of a task": (lambda: Descent(PerTask(None, 2)), "a network: .*, got None"),
    "hidden: number": (
        lambda: Descent(MLP(20)),
        r"hidden as a tuple with the units of every layer, got 20; write hidden=\(20,\)",
    ),
    "hidden: floats": (
        lambda: Descent(MLP((2.5, 3))),
        "the units of every hidden layer to be a whole number .*, got 2.5",
    ),
    "hidden: text": (lambda: Descent(MLP("20")), "hidden as a tuple .*, got '20'"),
    "hidden: None": (lambda: Descent(MLP(None)), "hidden as a tuple .*, got None"),
    "activation: unknown": (
        lambda: Descent(MLP(activation="tan")),
        "a function of jax.nn, got activation='tan'; write for",
    ),
    "activation: over cases": (
        lambda: Descent(MLP(activation="softmax")),
        "every case by itself, got 'softmax', which mixes",
    ),
    "activation: not of one": (
        lambda: Descent(MLP(activation="one_hot")),
        "activation as .*, got TypeError: .* from 'one_hot'",
    ),
    "activation: None": (
        lambda: Descent(MLP(activation=None)),
        "activation as the name of a function of jax.nn, .*, got None",
    ),
    "activation: NumPy's": (
        lambda: Descent(MLP(activation=np.tanh)),
        "activation as .*, got TypeError",
    ),
    "activation: a sum": (lambda: Descent(MLP(activation=jnp.sum)), r"activation as .*, got \(\) for \(2, 3\)"),
    "dropout: text": (
        lambda: Descent(MLP(dropout="0.5")),
        "dropout to be a number of at least 0 and below 1, got '0.5'",
    ),
    "dropout: per layer": (
        lambda: Descent(MLP(dropout=(0.1, None))),
        "dropout to be .*, got None; give one number, or one per",
    ),
    "noise: None": (lambda: Descent(MLP(noise=None)), "noise to be a finite number of at least 0, got None"),
    "init: None": (
        lambda: Descent(MLP(init=None)),
        "init to be a finite number of at least 0, got None; or write one of glorot",
    ),
    "skip": (lambda: Descent(MLP(skip=0.1)), "skip to be True or False, got 0.1"),
    "tasks: text": (
        lambda: Descent(PerTask(tasks="2")),
        "the tasks of PerTask to be a whole number of at least 2, got '2'",
    ),
    "column: text": (
        lambda: Descent(PerTask(column="a")),
        r"column of PerTask .* from 0 to 2 \(the inputs\), got 'a'; give the",
    ),
    "column: -1": (lambda: Descent(PerTask(column=-1)), "the column of PerTask .*, got -1"),
    "optimiser: text": (
        lambda: Descent(optimiser="adam"),
        r"an optimiser as an Optax value, got 'adam'; write for example Optax",
    ),
    "optimiser: function": (
        lambda: Descent(optimiser=optax.adam),
        "an optimiser as an Optax value, got <function adam",
    ),
    "optimiser: a rate of text": (
        lambda: Descent(optimiser=Optax("adam", learning_rate="a")),
        r"an optimiser of optax that runs, got .* from Optax\('adam', learning_rate='a'\)",
    ),
    "optimiser: no name": (
        lambda: Descent(optimiser=Optax()),
        r"a function of optax with its arguments, got Optax\(''\)",
    ),
    "optimiser: a dictionary": (
        lambda: Descent(optimiser=Optax("piecewise_constant_schedule", init_value=0.1, boundaries_and_scales={5: 0.1})),
        "Optax with numbers, texts, tuples and such as arguments, got .*, which cannot be hashed",
    ),
    "optimiser: a schedule": (
        lambda: Descent(optimiser=Optax("constant_schedule", value=0.1)),
        "an optimiser of optax, got .*, which has no init and update",
    ),
    "floor": (lambda: Scaled(QUICK, floor="a"), "the floor of Scaled to be a number above 0 and of at most 1, got 'a'"),
    "folds: 2.5": (
        lambda: EarlyStopped(QUICK, folds=2.5),
        "the folds of EarlyStopped to be a whole number .*, got 2.5; give share",
    ),
    "folds: text": (lambda: EarlyStopped(QUICK, folds="4"), "the folds of EarlyStopped .*, got '4'"),
    "share: text": (
        lambda: EarlyStopped(QUICK, share="a"),
        "the share of EarlyStopped to be a number above 0 .*, got 'a'",
    ),
    "members: 1.5": (lambda: EarlyStopped(QUICK, members=1.5), r"members of EarlyStopped .* from 1 to 4 .*, got 1.5"),
    "patience: text": (
        lambda: EarlyStopped(QUICK, patience="a"),
        "the patience of EarlyStopped .*, got 'a'; it is in iterations",
    ),
    "stretch: None": (lambda: EarlyStopped(QUICK, stretch=None), "the stretch of EarlyStopped .*, got None"),
    "refit": (lambda: EarlyStopped(QUICK, refit="yes"), "refit to be True or False, got 'yes'"),
    "validation: None": (
        lambda: EarlyStopped(QUICK, loss=None),
        r"the loss of EarlyStopped .*, got None; give one of jaxgen.loss",
    ),
    "validation: text": (lambda: EarlyStopped(QUICK, loss="squard"), "got 'squard'; did you mean 'squared'"),
    "validation: one mean": (
        lambda: EarlyStopped(QUICK, loss=lambda y, p: jnp.mean(jnp.square(y - p))),
        r"that returns \[n\], the loss of every case, got \[\] for n = 5; sum over the outputs only",
    ),
    "validation: [1]": (
        lambda: EarlyStopped(QUICK, loss=lambda y, p: jnp.mean(jnp.square(y - p), keepdims=True)[0]),
        r"got \[1\] for n = 5",
    ),
    "validation: [n, 1]": (lambda: EarlyStopped(QUICK, loss=lambda y, p: jnp.square(y - p)), r"got \[5, 1\] for n = 5"),
    "validation: arity": (
        lambda: EarlyStopped(QUICK, loss=lambda y: y[:, 0]),
        "the loss of EarlyStopped .*, got TypeError: .*; mend the function",
    ),
    "validation: NumPy's": (
        lambda: EarlyStopped(QUICK, loss=lambda y, p: np.asarray(y - p)[:, 0]),
        "got TracerArrayConversion",
    ),
    "an ensemble of 2.5": (lambda: Ensemble(QUICK, members=2.5), "the members of Ensemble to be .*, got 2.5"),
    "an ensemble of text": (lambda: Ensemble(QUICK, members="2"), "the members of Ensemble to be .*, got '2'"),
    "copies: 1.5": (
        lambda: Augmented(QUICK, augment=lambda key, x, y: (x, y), copies=1.5),
        "the copies of Augmented .*, got 1.5",
    ),
    "augment: None": (
        lambda: Augmented(QUICK, augment=None),
        r"augment as a function of \(key, x \[3\], y \[1\]\) .*, got None",
    ),
    "augment: arity": (
        lambda: Augmented(QUICK, augment=lambda x: x),
        "augment as a function .*, got TypeError: .*; mend the",
    ),
    "augment: a list": (
        lambda: Augmented(QUICK, augment=lambda key, x, y: [x, y]),
        r"augment to return a case \(x \[3\], y \[1\]\), got \[\(3,\), \(1,\)\]; return both",
    ),
    "how: None": (lambda: Normalised(QUICK, how=None), "how to be one of 'delve', 'standard', 'none', got None"),
    "targets": (
        lambda: Normalised(QUICK, targets="raw"),
        "targets to be one of 'by task', 'normalised', 'unchanged', got 'raw'",
    ),
    "a learner of text": (
        lambda: Normalised("linear"),
        "Normalised to hold a learner with the methods fit and predict, got 'linear'",
    ),
}

REFUSED_FOR_CLASSES = {
    "steps of Logistic: text": (lambda: Logistic(steps="5"), "the Newton steps to be a whole number .*, got '5'"),
    "steps of Logistic: 2.5": (lambda: Logistic(steps=2.5), "the Newton steps to be .*, got 2.5"),
    "steps of Logistic: 2^40": (lambda: Logistic(steps=2**40), "the Newton steps to be .*, got 1099511627776"),
    "ridge of Logistic: text": (lambda: Logistic(ridge="a"), "the ridge to be a finite number .*, got 'a'"),
    "intercept of Logistic": (lambda: Logistic(intercept=None), "intercept to be True or False, got None"),
    "normalised zeros and ones": (
        lambda: Normalised(Logistic(ridge=0.0), targets="normalised"),
        r"targets='unchanged' or 'by task' for Logistic\(ridge=0.0\), which learns from zeros and ones, got 'normal",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_settings_are_refused_in_one_sentence(case):
    learner, message = REFUSED[case]
    assert re.search(message, refused(lambda: assess(KEY, learner(), NUMBERS, PLAN)))


@pytest.mark.parametrize("case", REFUSED_FOR_CLASSES)
def test_settings_of_classifiers_are_refused_in_one_sentence(case):
    learner, message = REFUSED_FOR_CLASSES[case]
    assert re.search(message, refused(lambda: assess(KEY, learner(), CLASSES, PLAN)))


EQUAL = {
    "ridge": lambda: (LeastSquares(ridge=np.float64(2.0)), LeastSquares(ridge=2.0)),
    "neighbours": lambda: (Neighbours(np.int64(3)), Neighbours(3)),
    "hidden": lambda: (Descent(MLP([np.int32(4)]), steps=np.int64(2)), Descent(MLP((4,)), steps=2)),
    "checkpoints": lambda: (Descent(steps=5, checkpoints=[1, np.int64(3)]), Descent(steps=5, checkpoints=(1, 3))),
    "optimiser": lambda: (
        Descent(optimiser=Optax("sgd", learning_rate=np.float64(0.5))),
        Descent(optimiser=Optax("sgd", learning_rate=0.5)),
    ),
    "members": lambda: (Ensemble(QUICK, members=np.uint8(2)), Ensemble(QUICK, members=2)),
}


@pytest.mark.parametrize("case", EQUAL)
def test_numbers_of_numpy_are_numbers(case):
    given, plain = EQUAL[case]()
    given.check(NUMBERS, PLAN)
    assert given == plain
    assert hash(given) == hash(plain)
    assert learn.from_text(repr(given)) == plain


ACCEPTED = {
    "a function of jax.numpy": lambda: Descent(MLP(activation=jnp.tanh)),
    "a function of units": lambda: Descent(MLP(activation=lambda h: jax.nn.softmax(h, axis=0))),
    "no hidden layer": lambda: Descent(MLP(())),
    "a transformation of optax": lambda: Descent(optimiser=optax.sgd(0.1)),
    "a chain": lambda: Descent(optimiser=Optax("chain", Optax("clip", max_delta=1.0), Optax("sgd", learning_rate=0.1))),
    "a schedule": lambda: Descent(optimiser=Optax("adam", learning_rate=Optax("constant_schedule", value=0.1))),
    "weight decay": lambda: Descent(optimiser=Optax("adamw", learning_rate=0.1)),
    "a flax module": lambda: Descent(nn.Dense(1)),
    "a loss of one's own": lambda: EarlyStopped(Descent(steps=5), folds=2, loss=clipped),
    "an infinite tolerance": lambda: Descent(tolerance=np.inf),
    "tasks told by outputs": lambda: Descent(PerTask(tasks=2)),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_is_meant_is_accepted(case):
    data = Data(X, X[:, :2], tuple("abc")) if "outputs" in case else NUMBERS
    with jax.numpy_dtype_promotion("standard"):  # optax multiplies whole numbers by real ones
        ACCEPTED[case]().check(data, PLAN)
