"""Learners from text: what the command line and stored runs say."""

import ast

from jaxgen import loss
from jaxgen.learn.linear import LeastSquares, Mean
from jaxgen.learn.logistic import Logistic
from jaxgen.learn.neighbours import Neighbours
from jaxgen.learn.network.conjugate import Conjugate
from jaxgen.learn.network.descent import Descent, Optax
from jaxgen.learn.network.nets import MLP, PerTask
from jaxgen.learn.network.objectives import L1, L2, Objective, Sparse, Tied
from jaxgen.learn.wrap import EarlyStopped, Ensemble
from jaxgen.learn.wrap.normalised import Normalised
from jaxgen.learn.wrap.scaled import Scaled
from jaxgen.types import Learner

_SHORT = {
    "linear": "LeastSquares()",
    "mean": "Mean()",
    "logistic": "Normalised(base=Logistic(ridge=1.0))",
    "network": "Normalised(base=Descent())",
}

_LEARNERS = (LeastSquares, Logistic, Mean, Neighbours, Descent, Conjugate, Normalised, Scaled, EarlyStopped, Ensemble)

_CLASSES = {made.__name__: made for made in (*_LEARNERS, MLP, PerTask, Objective, Optax, L1, L2, Sparse, Tied)}


def from_text(text: str) -> Learner:
    """The learner that a text describes: what `repr` printed, or a short name (linear, mean, logistic, network).

    Only learners of this package with literal arguments are made; nothing else in the text is run.

    Args:
      text: for example "LeastSquares(ridge=1.0)".
    Returns:
      The learner.
    Raises:
      ValueError: the text describes no learner of this package.
    """

    def build(node: ast.expr):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CLASSES:
            values = [argument(value) for value in node.args]
            return _CLASSES[node.func.id](
                *values, **{word.arg: argument(word.value) for word in node.keywords if word.arg}
            )
        raise ValueError(text)

    def argument(node: ast.expr):
        if isinstance(node, ast.Tuple):
            return tuple(map(argument, node.elts))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "loss":
            return getattr(loss, node.attr)
        return build(node) if isinstance(node, ast.Call) else ast.literal_eval(node)

    try:
        learner = build(ast.parse(_SHORT.get(text.strip(), text).strip(), mode="eval").body)
        if not isinstance(learner, _LEARNERS):
            raise ValueError(text)
        return learner
    except (ValueError, TypeError, SyntaxError, AttributeError):
        known = ", ".join([*_SHORT, *(f"{made.__name__}(...)" for made in _LEARNERS)])
        raise ValueError(
            f"expected a learner ({known}), got {text!r}; write for example 'LeastSquares(ridge=1.0)'"
        ) from None
