"""Algebraic estimates of what they are not for: one sentence each."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import NO_NUMBERS, STRANGERS, refused

from jaxgen import Data, algebraic, assess, learn, loss, resample
from jaxgen.types.value import Value

pytestmark = [pytest.mark.one_device, pytest.mark.usefixtures("own_messages")]

KEY = jax.random.key(0)
RANDOM = np.random.default_rng(0)
DATA = Data(RANDOM.normal(size=(12, 2)), RANDOM.normal(size=(12, 1)), ("a", "b"))
LEARNER = learn.LeastSquares()
PLAN = resample.leave_one_out(12)
FIT = algebraic.full_fit(KEY, LEARNER, DATA)
SETS = algebraic.full_fit(KEY, LEARNER, Data(np.stack([DATA.x] * 2), np.stack([DATA.y] * 2), DATA.names))
STEP = algebraic.newton_step(FIT, PLAN)
FULL = assess(KEY, LEARNER, DATA, resample.full(12))
OTHERS = [*STRANGERS.values(), DATA, FULL, PLAN, LEARNER, algebraic.nic(FIT)]

OF_A_FIT = {
    "fper": algebraic.fper,
    "gpe": algebraic.gpe,
    "nic": algebraic.nic,
    "gen": lambda fit: algebraic.gen(fit, 1),
    "s_p": algebraic.s_p,
    "gcv": algebraic.gcv,
    "leave_one_out": algebraic.leave_one_out,
    "unlearning": algebraic.unlearning,
    "effective_numbers": algebraic.effective_numbers,
    "p_eff": algebraic.p_eff,
    "leverages": algebraic.leverages,
    "weights_of": algebraic.weights_of,
    "quantile": algebraic.quantile,
    "quantile by chi2": lambda fit: algebraic.quantile(fit, law="chi2"),
    "infinitesimal_jackknife": lambda fit: algebraic.infinitesimal_jackknife(fit, PLAN),
    "newton_step": lambda fit: algebraic.newton_step(fit, PLAN),
    "jackknifed": lambda fit: algebraic.jackknifed(fit, np.ones((2, 12))),
}


@pytest.mark.parametrize("name", OF_A_FIT)
def test_other_things_than_fits(name):
    for other in (*OTHERS, [FIT], STEP):
        refused(lambda: OF_A_FIT[name](other), TypeError)  # noqa: B023


def test_other_things_than_losses_plans_and_approximations():
    for other in (*OTHERS, FIT, [FULL]):
        if other is not FULL:
            refused(lambda: algebraic.fpe(other, 3), TypeError)  # noqa: B023
        if other is not PLAN:
            refused(lambda: algebraic.newton_step(FIT, other), TypeError)  # noqa: B023
            refused(lambda: algebraic.infinitesimal_jackknife(FIT, other), TypeError)  # noqa: B023
        refused(lambda: algebraic.against_retraining(KEY, other), TypeError)  # noqa: B023


NUMBERS = {  # call with one number, and more that it refuses
    "fpe": (lambda value: algebraic.fpe(FULL, value), (0, 12, -1, 2.5, 3.0)),
    "gpe": (lambda value: algebraic.gpe(FIT, noise=value), (-1.0, np.inf)),
    "lag": (lambda value: algebraic.gen(FIT, value), (-1, 12, 1.0, np.inf)),
    "damped": (FIT.damped, (-1.0, np.inf)),
    "level": (lambda value: algebraic.quantile(FIT, level=value), (0, 1, 95, np.inf)),
    "ppf": (lambda value: algebraic.WeightedChi2(np.ones(2)).ppf(value), (0, 1, 95)),
    "cdf": (lambda value: algebraic.WeightedChi2(np.ones(2)).cdf(value), ()),
    "sf": (lambda value: algebraic.WeightedChi2(np.ones(2)).sf(value), ()),
    "share": (lambda value: algebraic.against_retraining(KEY, STEP, share=value), (0, 1.5, -1.0)),
    "cases of a law": (lambda value: algebraic.chi2_law(1.0, value, 1), (0, 2.5, np.inf)),
    "parameters of a law": (lambda value: algebraic.f_law(1.0, 5, value), (0, 6, 2.5, np.inf)),
    "hc3": (lambda value: algebraic.nic(FIT, hc3=value), (1, 0)),
    "warm": (lambda value: algebraic.against_retraining(KEY, STEP, share=0.1, warm=value), (1, 0)),
}
MEANT = {"gpe": None, "hc3": True, "warm": True}
"""What is no number and meant all the same."""


@pytest.mark.parametrize("name", NUMBERS)
def test_other_things_than_numbers(name):
    call, more = NUMBERS[name]
    for value in (*NO_NUMBERS.values(), *more):
        if name not in MEANT or value is not MEANT[name]:
            refused(lambda: call(value), ValueError)  # noqa: B023


@pytest.mark.parametrize("value", ["exact", 1, True, ["full"], np.array(["full", "full"]), ""], ids=str)
def test_unknown_words(value):
    for call in (
        lambda: algebraic.nic(FIT, curvature=value),
        lambda: algebraic.gpe(FIT, curvature=value),
        lambda: algebraic.newton_step(FIT, PLAN, curvature=value),
        lambda: algebraic.quantile(FIT, law=value),
        lambda: algebraic.fpe(FULL, 3, transform=value),
    ):
        assert "one of" in refused(call, ValueError)


@pytest.mark.parametrize("noise", ["a", None, -1.0, np.nan, [1.0, -1.0], ["a"], 1j], ids=str)
def test_noise_of_laws(noise):
    for law in (algebraic.chi2_law, algebraic.f_law):
        refused(lambda: law(noise, 10, 2), ValueError)  # noqa: B023


@pytest.mark.parametrize(
    "weights",
    ["a", None, 1.0, [1.0, 2.0], np.zeros(0), np.ones((2, 2)), np.array([np.nan]), -np.ones(2), np.array("a")],
)
def test_weights_of_chi2(weights):
    refused(lambda: algebraic.WeightedChi2(weights), ValueError)


@pytest.mark.parametrize(
    "weights", ["a", None, np.ones(12), np.ones((2, 5)), np.full((2, 12), np.nan), np.full((2, 12), "a"), 1.0]
)
def test_weights_of_cases(weights):
    refused(lambda: algebraic.jackknifed(FIT, weights), ValueError)


def test_sets():
    for q in (2, -3, "a", 1.5, None):
        refused(lambda: SETS[q], (IndexError, TypeError, ValueError))  # noqa: B023
    refused(lambda: FIT[0], IndexError)
    refused(lambda: list(FIT), TypeError)
    assert [each.n for each in SETS] == [12, 12]
    refused(lambda: algebraic.newton_step(SETS, PLAN), ValueError)


# full_fit itself


@dataclass(frozen=True, repr=False)
class Mine(Value):
    """A learner with methods that may be replaced by worse ones; fields are functions, or None for the right one."""

    fitting: object = None
    predicting: object = None
    failing: object = None
    naming: object = None

    def fit(self, key, x, y, w):
        return x.T @ y if self.fitting is None else self.fitting(x, y)

    def predict(self, params, x):
        return x @ params if self.predicting is None else self.predicting(params, x)

    def failure(self, params):
        return 0 if self.failing is None else self.failing(params)

    def minimised(self, params):
        return None if self.naming is None else self.naming(params)


class NoPredict:
    def fit(self, key, x, y, w):
        return x


@dataclass
class NoHash:
    rate: float = 0.1
    fit, predict = Mine.fit, Mine.predict


def small(losses=lambda y, p: jnp.sum((y - p) ** 2, -1), penalty=0.0):
    return lambda params: (params, lambda free: free, lambda free, x, y: (losses(y, x @ free), penalty))


def fit(learner=LEARNER, data=DATA, of=loss.squared, minimised=None, key=KEY):
    return lambda: algebraic.full_fit(key, learner, data, of, minimised=minimised)


def spoiled(x=None, y=None):
    return replace(DATA, **({} if x is None else {"x": x}), **({} if y is None else {"y": y}))


ONES = np.ones((12, 1))
CLASSES = replace(DATA, y=np.eye(2)[np.arange(12) % 2], task="classification", classes=("no", "yes"))
BAD = {
    "no key": (fit(key=0), TypeError),
    "no learner": (fit(None), TypeError),
    "text as learner": (fit("linear"), TypeError),
    "a class as learner": (fit(learn.LeastSquares), TypeError),
    "no predict": (fit(NoPredict()), TypeError),
    "not hashable": (fit(NoHash()), TypeError),
    "data as learner": (fit(DATA, LEARNER), TypeError),
    "no data": (fit(data=None), TypeError),
    "arrays as data": (fit(data=(DATA.x, DATA.y)), TypeError),
    "losses as data": (fit(data=FULL), TypeError),
    "NaN in data": (lambda: fit(data=spoiled(x=DATA.x * np.nan))(), ValueError),
    "other cases in y": (lambda: fit(data=spoiled(y=ONES[:5]))(), ValueError),
    "a misspelt loss": (fit(of="squard"), ValueError),
    "no loss": (fit(of=None), TypeError),
    "loss of one argument": (fit(of=lambda y: y), ValueError),
    "loss that is a number": (fit(of=lambda y, p: jnp.mean((y - p) ** 2)), ValueError),
    "loss of each output": (fit(of=lambda y, p: (y - p) ** 2), ValueError),
    "loss of NumPy": (fit(of=lambda y, p: np.square(np.asarray(y - p)).sum(-1)), ValueError),
    "loss that branches": (fit(of=lambda y, p: y[:, 0] if p[0, 0] > 0 else p[:, 0]), ValueError),
    "loss that raises": (fit(of=lambda y, p: 1 / 0), ValueError),
    "loss that is None": (fit(of=lambda y, p: None), ValueError),
    "loss for classes": (fit(of=loss.zero_one), ValueError),
    "loss of probabilities": (fit(data=CLASSES, of=loss.cross_entropy), ValueError),
    "loss that is not smooth": (fit(Mine(), of=lambda y, p: jnp.sqrt(jnp.sum(y - p, -1) * 0)), ValueError),
    "text as minimised": (fit(Mine(), minimised="own"), TypeError),
    "minimised of no arguments": (fit(Mine(), minimised=lambda: 0), ValueError),
    "minimised that is a pair": (fit(Mine(), minimised=lambda params: (params, lambda free: free)), ValueError),
    "minimised that is None": (fit(Mine(), minimised=lambda params: None), ValueError),
    "minimised in sum": (fit(Mine(), minimised=small(lambda y, p: jnp.sum((y - p) ** 2))), ValueError),
    "minimised in columns": (fit(Mine(), minimised=small(lambda y, p: (y - p) ** 2)), ValueError),
    "a penalty each": (fit(Mine(), minimised=small(penalty=np.zeros(3))), ValueError),
    "rebuilt as text": (fit(Mine(), minimised=lambda params: (params, lambda free: "a", None)), ValueError),
    "own minimised that raises": (fit(Mine(naming=lambda params: 1 / 0)), ValueError),
    "own minimised as text": (fit(Mine(naming=lambda params: "abc")), ValueError),
    "fit that raises": (fit(Mine(fitting=lambda x, y: 1 / 0)), ValueError),
    "fit of NumPy": (fit(Mine(fitting=lambda x, y: np.linalg.lstsq(np.asarray(x), np.asarray(y))[0])), ValueError),
    "fit as text": (fit(Mine(fitting=lambda x, y: "a", predicting=lambda params, x: x[:, :1])), ValueError),
    "fit without parameters": (fit(Mine(fitting=lambda x, y: (), predicting=lambda params, x: x[:, :1])), ValueError),
    "predictions [N]": (fit(Mine(predicting=lambda params, x: (x @ params)[:, 0])), ValueError),
    "predictions [N, 2]": (fit(Mine(predicting=lambda params, x: x)), ValueError),
    "no predictions": (fit(Mine(predicting=lambda params, x: None)), ValueError),
    "predictions as text": (fit(Mine(predicting=lambda params, x: "a")), ValueError),
    "complex predictions": (fit(Mine(predicting=lambda params, x: x @ params + 1j)), ValueError),
    "constant predictions": (fit(Mine(predicting=lambda params, x: x[:, :1])), ValueError),
    "failure as text": (fit(Mine(failing=lambda params: "bad")), ValueError),
    "failure of each": (fit(Mine(failing=lambda params: jnp.zeros(2, int))), ValueError),
    "failure without a sentence": (fit(Mine(failing=lambda params: 5)), ValueError),
    "negative failure": (fit(Mine(failing=lambda params: -1)), ValueError),
    "no start": (lambda: algebraic.against_retraining(KEY, STEP, share=0.1, warm=True), (TypeError, ValueError)),
}


@pytest.mark.parametrize("case", BAD)
def test_fits_of_hostile_arguments(case):
    call, kind = BAD[case]
    refused(call, kind)
