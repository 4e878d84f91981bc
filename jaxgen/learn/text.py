"""Learners from text: what the command line and stored runs say."""

import ast
import difflib
import inspect
from typing import Any, NoReturn

from jaxgen import loss
from jaxgen.learn.bayes import Bayes, Prior, Width
from jaxgen.learn.linear import LeastSquares
from jaxgen.learn.logistic import Logistic
from jaxgen.learn.mean import Mean
from jaxgen.learn.neighbours import Neighbours
from jaxgen.learn.network.conjugate import Conjugate
from jaxgen.learn.network.descent import Descent, Optax
from jaxgen.learn.network.nets import MLP, PerTask
from jaxgen.learn.network.objectives import L1, L2, Objective, Sparse, Tied
from jaxgen.learn.per_input import RidgePerInput
from jaxgen.learn.ridge import Ridge
from jaxgen.learn.wrap import EarlyStopped, Ensemble
from jaxgen.learn.wrap.adaptive import AdaptivePenalties
from jaxgen.learn.wrap.imputed import Imputed
from jaxgen.learn.wrap.normalised import Normalised
from jaxgen.learn.wrap.scaled import Scaled
from jaxgen.learn.wrap.tuned import Tuned
from jaxgen.types import Learner
from jaxgen.types.numbers import shown

SHORT = {
    "linear": "LeastSquares()",
    "mean": "Mean()",
    "logistic": "Normalised(base=Logistic())",
    "network": "Normalised(base=Descent())",
}

_SINGLE = (LeastSquares, Ridge, RidgePerInput, Logistic, Mean, Neighbours, Descent, Conjugate, Bayes)
_LEARNERS = (*_SINGLE, AdaptivePenalties, Imputed, Normalised, Scaled, EarlyStopped, Ensemble, Tuned)

_PARTS = (MLP, PerTask, Objective, Optax, L1, L2, Sparse, Tied, Prior, Width)

_CLASSES = {made.__name__: made for made in (*_LEARNERS, *_PARTS)}

_LOSSES = ("squared", "absolute", "zero_one", "cross_entropy", "hinge")


def from_text(text: str) -> Learner:
    """The learner that a text describes: what `repr` printed, or a short name (linear, mean, logistic, network).

    Only learners of this package with literal arguments are made; nothing else in the text is run.

    Args:
      text: for example "LeastSquares(ridge=1.0)".
    Returns:
      The learner.
    Raises:
      TypeError: it is no text.
      ValueError: the text describes no learner of this package, or a part of it is not plain: an argument that is no
        literal, is unknown or comes twice, a star.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected a learner as text, got {shown(text)}; write for example 'LeastSquares(ridge=1.0)'")
    try:
        tree = _parsed(SHORT.get(text.strip(), text).strip())
        if _class_of(tree) in _LEARNERS:
            return _made(text, tree)
    except (RecursionError, MemoryError):  # what Python's parser raises, by version
        raise ValueError(
            f"expected a learner, got {shown(text)}, which is nested too deeply; write it in Python"
        ) from None
    if tree is None and any(text.count(one) != text.count(other) for one, other in ("()", "[]", "{}")):
        raise ValueError(
            f"expected a learner, got {shown(text)}, whose brackets do not close; write for example "
            "'LeastSquares(ridge=1.0)'"
        )
    names = [*SHORT, *(made.__name__ for made in _LEARNERS)]
    word = text.strip().partition("(")[0]
    near = "," not in word and difflib.get_close_matches(word, names, 1)
    near = near or [name for name in names if name.lower() == word.lower()]
    if near and near[0] == word and word not in SHORT:  # a class without brackets, or with more behind them
        raise ValueError(f"expected a learner, got {shown(text)}; write {word}(...), with its arguments or none")
    if near:
        meant = near[0] if near[0] in SHORT else f"{near[0]}(...)"
        raise ValueError(f"expected a learner, got {shown(text)}; did you mean {meant!r}?")
    known = ", ".join([*SHORT, *(f"{made.__name__}(...)" for made in _LEARNERS)])
    raise ValueError(f"expected a learner ({known}), got {shown(text)}; write for example 'LeastSquares(ridge=1.0)'")


def _parsed(text: str) -> ast.expr | None:
    """The expression that a text is; None if it is none."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):  # ValueError: a zero byte
        return None


def _class_of(node: ast.expr | None) -> Any:
    """The class of this package that a part of the text calls; None if it calls none."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _CLASSES.get(node.func.id)
    return None


def _made(text: str, node: Any) -> Any:
    """What a call in the text makes."""
    made, name = _class_of(node), node.func.id
    for part in (*node.args, *node.keywords):
        if isinstance(part, ast.Starred) or (isinstance(part, ast.keyword) and part.arg is None):
            value = ast.unparse(part.value)
            stars = "*" if isinstance(part, ast.Starred) else "**"
            _refuse(text, f"{name} has {stars}{value} for arguments", "write each of them as name=value")
    names = [word.arg for word in node.keywords]
    for twice in names:
        if names.count(twice) > 1:
            _refuse(text, f"{name} has the argument {twice} {names.count(twice)} times", "write it once")
    values = [_value(text, part) for part in node.args]
    words = {word.arg: _value(text, word.value) for word in node.keywords}
    try:
        inspect.signature(made).bind(*values, **words)
        return made(*values, **words)
    except (TypeError, ValueError) as error:
        arguments = ", ".join(inspect.signature(made).parameters)
        _refuse(text, f"the arguments of {name} do not fit ({error})", f"it takes {arguments or 'none'}")


def _value(text: str, node: ast.expr) -> Any:
    """What an argument in the text stands for."""
    if isinstance(node, ast.Tuple):
        return tuple(_value(text, part) for part in node.elts)
    if isinstance(node, ast.Dict) and None not in node.keys:
        return {
            _value(text, key): _value(text, value) for key, value in zip(node.keys, node.values, strict=True) if key
        }
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "loss":
        if node.attr in _LOSSES:
            return getattr(loss, node.attr)
        _refuse(text, f"loss.{node.attr} is no loss", f"choose one of {', '.join(f'loss.{name}' for name in _LOSSES)}")
    if _class_of(node) is not None:
        return _made(text, node)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        _refuse(text, f"{_code(node)} is neither a plain value nor made by this package", "write plain values")


def _code(node: ast.expr, most: int = 80) -> str:
    """A part of a text, cut where it is long."""
    code = " ".join(ast.unparse(node).split())
    return code if len(code) <= most else f"{code[: most - 1]}…"


def _refuse(text: str, trouble: str, advice: str) -> NoReturn:
    raise ValueError(f"expected a learner, got {shown(text)}, where {trouble}; {advice}")
