"""Learners: what is trained on each resampled training set."""

import ast

from jaxgen.learn.linear import LeastSquares, LinearFit, Mean
from jaxgen.types import Learner

__all__ = ["LeastSquares", "LinearFit", "Mean", "from_text"]

_SHORT = {"linear": "LeastSquares()", "mean": "Mean()"}
_CLASSES = {"LeastSquares": LeastSquares, "Mean": Mean}


def from_text(text: str) -> Learner:
    """The learner that a text describes: what `repr` printed, or a short name (linear, mean).

    Only learners of this package with literal arguments are made; nothing else in the text is run.

    Args:
      text: for example "LeastSquares(ridge=1.0)".
    Returns:
      The learner.
    Raises:
      ValueError: the text describes no learner of this package.
    """

    def build(node: ast.expr) -> Learner:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CLASSES:
            values = [argument(value) for value in node.args]
            return _CLASSES[node.func.id](*values, **{word.arg: argument(word.value) for word in node.keywords if word.arg})
        raise ValueError(text)

    def argument(node: ast.expr):
        return build(node) if isinstance(node, ast.Call) else ast.literal_eval(node)

    try:
        return build(ast.parse(_SHORT.get(text.strip(), text).strip(), mode="eval").body)
    except (ValueError, TypeError, SyntaxError):
        known = ", ".join([*_SHORT, *(f"{name}(...)" for name in _CLASSES)])
        raise ValueError(f"expected a learner ({known}), got {text!r}; write for example 'LeastSquares(ridge=1.0)'") from None
