"""Learners from text: what is built, and one sentence for every text that must not be."""

import pytest
from hostile import STRANGERS, refused

from jaxgen import learn, loss

pytestmark = pytest.mark.one_device


@pytest.mark.parametrize(
    ("text", "learner"),
    [
        ("linear", learn.LeastSquares()),
        (" mean\n", learn.Mean()),
        ("LeastSquares(10.0, intercept=False)", learn.LeastSquares(ridge=10.0, intercept=False)),
        ("Normalised(base=LeastSquares(\n  ridge=1.0),)", learn.Normalised(learn.LeastSquares(ridge=1.0))),
        (
            "EarlyStopped(Descent(MLP((3,))), loss=loss.absolute)",
            learn.EarlyStopped(learn.Descent(learn.MLP((3,))), loss=loss.absolute),
        ),
        (
            "Descent(optimiser=Optax('adam', learning_rate=0.1))",
            learn.Descent(optimiser=learn.Optax("adam", learning_rate=0.1)),
        ),
        (
            "Bayes(prior=Prior(noise=Width(0.1, shape=2)), chains=2)",
            learn.Bayes(prior=learn.Prior(noise=learn.Width(0.1, shape=2)), chains=2),
        ),
    ],
)
def test_plain_words_make_a_learner(text, learner):
    assert learn.from_text(text) == learner


REFUSED = {  # text: what its sentence names
    "LeastSquares(**{'ridge': 1000.0})": r"LeastSquares has **{'ridge': 1000.0} for arguments; write each of them as",
    "Normalised(LeastSquares(*[1.0]))": "LeastSquares has *[1.0] for arguments",
    "Descent(optimiser=Optax(**{'name': 'adam'}))": "Optax has **{'name': 'adam'} for arguments",
    "LeastSquares(ridge=1.0, ridge=1000.0)": "LeastSquares has the argument ridge 2 times; write it once",
    "LeastSquares(1.0, ridge=1000.0)": "LeastSquares do not fit (multiple values for argument 'ridge')",
    "LeastSquares(ridg=1.0)": "(got an unexpected keyword argument 'ridg'); it takes ridge, intercept, minimum_norm",
    "Mean(1.0)": "the arguments of Mean do not fit (too many positional arguments); it takes none",
    "Normalised(base=Forest())": "Forest() is neither a plain value nor made by this package",
    "LeastSquares(ridge=__import__('os').getpid())": "__import__('os').getpid() is neither a plain value",
    "LeastSquares(ridge=lambda: 1)": "lambda: 1 is neither a plain value",
    "LeastSquares(ridge=[1.0 for _ in range(9)])": "[1.0 for _ in range(9)] is neither a plain value",
    "LeastSquares(ridge=10 ** 10)": "10 ** 10 is neither a plain value",
    "LeastSquares(ridge=f'{1}')": "f'{1}' is neither a plain value",
    "EarlyStopped(loss=loss.np)": "loss.np is no loss; choose one of loss.squared",
    "LeastSquares(ridge=" + "-" * 5000 + "1)": "nested too deeply",
    "forest": "expected a learner (linear, mean,",
    "LeastSquares": "expected a learner, got 'LeastSquares'; write LeastSquares(...), with its arguments or none",
    "LeastSquares(": "expected a learner, got 'LeastSquares(', whose brackets do not close; write for example",
    "LeastSquares()()": "write LeastSquares(...), with its arguments or none",
    "learn.LeastSquares()": "did you mean 'LeastSquares(...)'?",
    "LeastSquare()": "did you mean 'LeastSquares(...)'?",
    "liner": "expected a learner, got 'liner'; did you mean 'linear'?",
    "Linear": "did you mean 'linear'?",
    "MEAN()": "did you mean 'mean'?",
    "linear(3)": "did you mean 'linear'?",
    "Tuned(Mean(), {'ridge': (1.0, 2.0)": "whose brackets do not close",
    "linear, mean": "expected a learner (linear, mean,",
    "linear; import os": "expected a learner (linear, mean,",
    "MLP()": "expected a learner (linear, mean,",
    "loss.squared": "expected a learner (linear, mean,",
    "lin\0ear": "did you mean 'linear'?",
    "": "expected a learner (linear, mean,",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:40])
def test_anything_else_is_refused_with_the_part_that_is_wrong(text):
    assert REFUSED[text] in refused(lambda: learn.from_text(text), ValueError)


@pytest.mark.parametrize("kind", [kind for kind in STRANGERS if kind != "text"])
def test_what_is_no_text_is_refused(kind, own_messages):
    assert "expected a learner as text, got" in refused(lambda: learn.from_text(STRANGERS[kind]), TypeError)
