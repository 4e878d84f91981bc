"""What a stranger plugs into `assess`, and would give wrong numbers without a word: each is refused or told apart."""

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgen import Data, assess, datasets, learn, loss, resample
from jaxgen.engine import program
from jaxgen.stats import compare
from jaxgen.types.identity import code_digest, named

pytestmark = pytest.mark.usefixtures("own_messages")

KEY = jax.random.key(0)
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(24, 3))
DATA = Data(X, X @ [[1.0], [2.0], [0.5]] + RANDOM.normal(size=(24, 1)), ("a", "b", "c"))
CLASSES = datasets.from_arrays(X, np.array(["no", "yes", "so"])[np.arange(24) % 3])
PLAN = resample.leave_out(KEY, 24, 0.25, 5)


@dataclass(frozen=True)
class Shrunken:
    """The weighted mean, times a factor; parts of it are replaced below."""

    factor: float = 1.0

    def fit(self, key, x, y, w):
        return self.factor * jnp.sum(w[:, None] * y, axis=0) / jnp.sum(w)

    def predict(self, params, x):
        return jnp.broadcast_to(params[None], (len(x), len(params)))


def changed(**methods):
    """A class like `Shrunken` with other methods, as an edit in a notebook makes it."""
    return dataclass(frozen=True)(type("Shrunken", (Shrunken,), {"__module__": __name__, **methods}))()


def run(learner=None, loss=loss.squared, data=DATA, plan=PLAN, **options):
    return assess(KEY, Shrunken() if learner is None else learner, data, plan, loss, **options)


def linear(x):
    return jnp.concatenate([jnp.ones((len(x), 1), x.dtype), x], axis=1)


IGNORES_WEIGHTS = changed(
    fit=lambda self, key, x, y, w: jnp.linalg.lstsq(linear(x), y)[0], predict=lambda self, p, x: linear(x) @ p
)
NORMALISES_BY_ALL = changed(fit=lambda self, key, x, y, w: jnp.sum(w[:, None] * y, 0) / jnp.sum(w) + jnp.mean(x))


@dataclass
class Mutable:
    factor: float = 1.0
    fit = Shrunken.fit
    predict = Shrunken.predict


@dataclass(frozen=True)
class HoldsAList:
    factors: list = field(default_factory=list)
    fit = Shrunken.fit
    predict = Shrunken.predict


REFUSED = {
    "predictions without an axis": (
        lambda: run(changed(predict=lambda self, p, x: jnp.broadcast_to(p, (len(x),)))),
        r"predictions \[24, 1\] of Shrunken.*, got \[24\]; let predict return \[m, K\]",
    ),
    "one column for three": (
        lambda: run(changed(predict=lambda self, p, x: jnp.zeros((len(x), 1))), data=CLASSES),
        r"predictions \[24, 3\] of .*, got \[24, 1\]",
    ),
    "no predictions": (lambda: run(changed(predict=lambda self, p, x: None)), "got no array; let predict return"),
    "complex predictions": (
        lambda: run(changed(predict=lambda self, p, x: jnp.ones((len(x), 1), jnp.complex64))),
        "real predictions of",
    ),
    "a loss that is a mean": (
        lambda: run(loss=lambda y, p: jnp.mean((y - p) ** 2)),
        r"one loss a case, \[24\].* got \[\]",
    ),
    "a loss that is one mean": (lambda: run(loss=lambda y, p: jnp.mean((y - p) ** 2)[None]), r"got \[1\]; sum over"),
    "a loss per output": (
        lambda: run(loss=lambda y, p: (y - p) ** 2),
        r"\[24\], of the loss <lambda>.*, got \[24, 1\]",
    ),
    "a loss of NumPy": (lambda: run(loss=lambda y, p: np.abs(y - p)[:, 0]), "use jax.numpy in place of NumPy there"),
    "a loss that fails": (
        lambda: run(loss=lambda y, p: 1 / 0),
        "got ZeroDivisionError: division by zero; try it alone",
    ),
    "a loss of one argument": (lambda: run(loss=lambda y: y), "got TypeError: .* takes 1 positional argument"),
    "a misspelt loss": (lambda: run(loss="squard"), "the name of a loss, .*, got 'squard'; did you mean 'squared'"),
    "a number for a loss": (lambda: run(loss=2), "a loss as a function of .*, or its name, got 2"),
    "weights ignored": (lambda: run(IGNORES_WEIGHTS), "to learn nothing from cases of weight 0, got other predictions"),
    "weights ignored, inside": (
        lambda: run(learn.Normalised(IGNORES_WEIGHTS)),
        "to learn nothing from cases of weight 0",
    ),
    "inputs of all cases": (lambda: run(NORMALISES_BY_ALL), "to learn nothing from cases of weight 0"),
    "a branch in Python": (
        lambda: run(changed(fit=lambda self, key, x, y, w: y[0] if y[0, 0] > 0 else y[1])),
        "got TracerBoolConversionError.*; use jnp.where in place of `if`",
    ),
    "a mask as index": (
        lambda: run(changed(fit=lambda self, key, x, y, w: jnp.mean(y[w > 0], axis=0))),
        "got NonConcreteBooleanIndexError.*; use jnp.where or the weights",
    ),
    "fit of two arguments": (lambda: run(changed(fit=lambda self, x, y: y[0])), r"fit\(key, x, y, w\) of Shrunken"),
    "parameters of text": (lambda: run(changed(fit=lambda self, key, x, y, w: "good")), "got TypeError"),
    "failure of text": (
        lambda: run(changed(failure=lambda self, p: "bad")),
        "failure.* to give one whole number, got no",
    ),
    "failure per output": (lambda: run(changed(failure=lambda self, p: p)), r"whole number, got float32 \[1\]"),
    "a diagnosis that is none": (
        lambda: run(changed(diagnose=lambda self, p: [1])),
        "a dictionary of arrays, got list",
    ),
    "a nested diagnosis": (
        lambda: run(changed(diagnose=lambda self, p: {"a": {"b": 1}})),
        "a dictionary of arrays, got",
    ),
    "failures as one text": (lambda: run(changed(failures="bad")), "a tuple of sentences, got 'bad'"),
    "a check that fails": (lambda: run(changed(check=lambda self, data, plan: 1 / 0)), "got ZeroDivisionError"),
    "fit_rows of parameters only": (
        lambda: run(
            changed(fit_rows=lambda self, keys, x, y, w, out: w @ y), plan=resample.leave_out(KEY, 24, 0.25, 9)
        ),
        r"to return \(parameters, trusted\) with a leading axis \[61\] each",
    ),
    "fit_rows with predictions of one case": (
        lambda: run(
            changed(fit_rows=lambda self, keys, x, y, w, out: (w @ y, w[:, 0] >= 0, w @ y)),
            plan=resample.leave_out(KEY, 24, 0.25, 9),
        ),
        r"and perhaps predictions \[61, 24, 1\], got tuple; return them for every row",
    ),
    "a class": (lambda: run(Shrunken), r"got the class Shrunken; write Shrunken\(\)"),
    "text for a learner": (lambda: run("linear"), "with the methods fit and predict, got 'linear'"),
    "a learner that can change": (
        lambda: run(Mutable()),
        "hashed by its values, got Mutable.*; make it a frozen dataclass",
    ),
    "classes as numbers": (
        lambda: run(loss=loss.zero_one, data=replace(DATA, y=np.arange(24.0)[:, None] % 3)),
        "zeros and ones for the loss zero_one, got 2 in 'y'; read the data with task='classification'",
    ),
    "classes -1 and 1": (
        lambda: run(loss=loss.zero_one, data=replace(DATA, y=np.arange(24.0)[:, None] % 2 * 2 - 1)),
        "zeros and ones for the loss zero_one, got -1",
    ),
    "scores for probabilities": (
        lambda: run(learn.LeastSquares(), loss.cross_entropy, CLASSES),
        r"predicts probabilities for the loss cross_entropy, got LeastSquares\(\), which predicts numbers; use",
    ),
    "no data": (lambda: run(data=None), "data as jaxgen.Data, got None; make it with datasets"),
    "arrays for data": (lambda: run(data=(X, X)), "data as jaxgen.Data, got a tuple"),
    "no plan": (lambda: run(plan=None), "a plan as jaxgen.Plan, got None; make it with a function of jaxgen.resample"),
    "an array for a plan": (lambda: run(plan=PLAN.train), "a plan as jaxgen.Plan, got a ndarray"),
    "data before the learner": (lambda: run(learner=DATA), "got Data for the learner; give the learner second"),
    "devices by name": (lambda: run(devices="cpu"), "devices of JAX in a list, got 'cpu'"),
    "a device twice": (lambda: run(devices=jax.devices()[:1] * 2), "different devices of one kind"),
    "no devices": (lambda: run(devices=[]), r"different devices of one kind, got \[\]"),
    "progress of text": (lambda: run(progress="yes"), "progress to be True or False, got 'yes'"),
    "a learner that cannot be printed": (
        lambda: run(changed(__repr__=lambda self: 1 / 0)),
        "whose repr fails with Zero",
    ),
    "a chunk of text": (lambda: run(chunk="many"), "chunk to be a whole number of at least 1, got 'many'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_give_wrong_numbers_is_refused(case):
    call, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    text = str(caught.value)
    assert text.startswith("expected ")
    assert ", got " in text
    assert "; " in text
    assert "\n" not in text


def test_what_a_user_may_plug_in_is_accepted():
    """A learner without parameters, whole numbers as predictions, and a loss that says what it is for."""
    none = changed(fit=lambda self, key, x, y, w: (), predict=lambda self, p, x: jnp.zeros((len(x), 1), jnp.int32))
    np.testing.assert_allclose(run(none).values, np.tile(DATA.y[:, 0] ** 2, (5, 1)), rtol=1e-6)  # single precision

    @loss.describe(shift_free=True, degree=1)
    def longest(y, prediction):
        return jnp.max(jnp.abs(y - prediction), axis=1)

    np.testing.assert_allclose(run(loss=longest).g, run(loss=loss.absolute).g, rtol=1e-6)


def test_a_failure_without_a_sentence_is_a_failure():
    for code in (1, 7, 255, 256, -1):
        losses = run(changed(failure=lambda self, p, code=code: jnp.int32(code)))
        assert losses.failed.all()
        with pytest.raises(ValueError, match="failed for a reason that failures of the learner does not state"):
            _ = losses.g


def test_predictions_that_are_no_probabilities_fail_their_rows():
    scores = changed(predict=lambda self, p, x: jnp.full((len(x), 3), 0.5))
    losses = run(scores, loss.cross_entropy, CLASSES)
    assert losses.failed.all()
    with pytest.raises(ValueError, match="its predictions are no probabilities"):
        _ = losses.g


def test_an_edited_class_of_the_same_name_is_another_learner():
    before, after = changed(), changed(predict=lambda self, p, x: 0 * jnp.broadcast_to(p[None], (len(x), 1)))
    assert repr(before) == repr(after)
    assert run(before).learner != run(after).learner
    assert run(before).learner == run(changed()).learner
    assert (run(before).g != run(after).g).any()


def test_functions_of_one_name_are_told_apart():
    first, second = (lambda y, p: jnp.square(y - p)[:, 0]), (lambda y, p: jnp.abs(y - p)[:, 0])
    with pytest.raises(ValueError, match="one loss for both learners, got <lambda>"):
        compare.paired_t(run(loss=first), run(loss=second))
    assert named(first) == named(lambda y, p: jnp.square(y - p)[:, 0])
    assert named(loss.squared) == "squared"


def test_what_a_function_refers_to_counts():
    """The same function object, whose closure or global has another value now, runs as it is now."""
    scale = 1.0

    def scaled(y, prediction):
        return scale * jnp.square(y - prediction)[:, 0]

    once, name = run(loss=scaled), named(scaled)
    scale = 2.0
    np.testing.assert_allclose(run(loss=scaled).g, 2 * once.g, rtol=1e-6)
    assert named(scaled) != name
    assert code_digest(learn.Descent()) == ""
    optimisers = [learn.Descent(optimiser=learn.Optax("adam", learning_rate=rate)) for rate in (0.1, 0.2)]
    assert len({*map(named, optimisers)}) == 2


def test_numbers_of_numpy_make_the_same_value():
    assert repr(learn.LeastSquares(ridge=np.float64(10))) == "LeastSquares(ridge=10.0)"
    assert repr(learn.MLP(hidden=[np.int64(3), 4])) == "MLP(hidden=(3, 4))"
    assert hash(learn.MLP(hidden=[3])) == hash(learn.MLP(hidden=(3,)))


def test_programs_follow_the_settings_of_jax():
    """The same call under another precision of products is another program."""
    plan = resample.leave_out(KEY, 24, 0.25, 3)
    run(plan=plan)
    before = program._compiled.cache_info().misses
    run(plan=plan)
    assert program._compiled.cache_info().misses == before
    with jax.default_matmul_precision("bfloat16"):
        run(plan=plan)
    assert program._compiled.cache_info().misses == before + 1


def test_losses_of_one_data_set_cannot_be_gone_through():
    with pytest.raises(TypeError, match="losses with a leading axis Q to go through"):
        list(run())
