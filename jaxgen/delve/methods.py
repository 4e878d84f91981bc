"""Learning methods under the names that they have in DELVE, and methods of the user's."""

import importlib
import math
import os
import re
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

from jaxgen.learn import (
    MLP,
    Bayes,
    Conjugate,
    Descent,
    EarlyStopped,
    Ensemble,
    LeastSquares,
    Neighbours,
    Normalised,
    Prior,
    Width,
)
from jaxgen.types.numbers import first_line, require, require_number, shown
from jaxgen.types.value import Value

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""What methods and prototasks may be called: their names are names of files."""


@dataclass(frozen=True, repr=False)
class Method(Value):
    """A learning method with a name: the same learner for every task, or one made for its size.

    Attributes:
      name: letters, digits, dots, hyphens and underscores.
      learner: a learner, or a function of the numbers of training cases and inputs that returns one.
    Raises:
      ValueError: the name is none for a file, or the learner is neither.
    """

    name: str
    learner: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("a method's name", self.name)
        if isinstance(self.learner, type) or not (_learns(self.learner) or callable(self.learner)):
            self._refuse(self.learner)

    def on(self, cases: int, inputs: int) -> Any:
        """The learner for a task of so many training cases and inputs.

        Raises:
          ValueError: the function that should make it fails, or returns something else.
        """
        if _learns(self.learner):
            return self.learner
        try:
            made = self.learner(cases, inputs)
        except Exception as error:
            raise ValueError(
                f"expected method {self.name} to make a learner for {cases} cases and {inputs} inputs, got "
                f"{first_line(error)}; mend its function of (cases, inputs)"
            ) from error
        return made if _learns(made) else self._refuse(made)

    def _refuse(self, found: Any) -> NoReturn:
        raise ValueError(
            f"expected method {self.name} to be a learner, or a function of (cases, inputs) that returns "
            f"one, got {shown(found)}; give one such as learn.LeastSquares()"
        )


def require_name(what: str, name: Any) -> None:
    """ValueError unless a name is one for a file."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"expected {what} of letters, digits, '.', '-' and '_', got {shown(name)}; choose another")


def _learns(value: Any) -> bool:
    """Whether it is a learner; a class is none, and a function of the sizes has no such methods."""
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in ("fit", "predict"))


def mlp_bgd(relevance: str = "none", members: int | None = None, steps: int = 20_000) -> Normalised:
    """The learner of Neal's methods mlp-bgd (1998, sections 3.3, 3.5 and 3.6).

    Four networks of 20 tanh hidden units, each trained on three quarters of the cases by batch gradient descent and
    stopped where its error on the last quarter is least, of 63 checkpoints; the prediction is their mean. DELVE's
    normalisation. Start parameters uniform in (-0.01, 0.01).

    Args:
      relevance: "none" is mlp-bgd-1, "gradient" mlp-bgd-2, "correlation" mlp-bgd-3; see `learn.Descent`, and
        `learn.Scaled` for another mlp-bgd-3.
      members: 1 trains the first of the four only, as mlp-bgd-2b; None trains all.
      steps: iterations of each network; checkpoints are at "1-2-5", which are 63 for 20,000.
    Returns:
      A learner of values only, which prints as code that recreates it.
    """
    return Normalised(
        EarlyStopped(Descent(MLP(hidden=(20,)), rate=0.1, steps=steps, relevance=relevance), folds=4, members=members)
    )


def ese_hidden(cases: int, inputs: int, outputs: int = 1, share: float = 1 / 3) -> int:
    """Hidden units of mlp-ese-1: the fewest, at least 1, that give a network as many weights as it has cases to learn
    from.

    H hidden units, D inputs and K outputs make (D + 1) H + (H + 1) K + D K weights: biases and direct connections
    count.

    Args:
      cases: training cases, those for validation included.
      inputs: D.
      outputs: K.
      share: share of the cases that validates, rounded up as `EarlyStopped` does.
    Returns:
      H.
    Raises:
      ValueError: fewer than 2 cases, no inputs or outputs, or a share outside (0, 1).
    """
    advice = "count what the network will learn from"
    for name, count, least in (("cases", cases, 2), ("inputs", inputs, 1), ("outputs", outputs, 1)):
        require(name, count, least, advice=advice)
    require_number("share", share, above=0, below=1, advice="give the share of the cases that validates")
    # As many cases as `EarlyStopped` leaves; rounding in the product must not add a case that validates.
    learned = cases - min(max(math.ceil(share * cases - 1e-9), 1), cases - 1)
    return max(1, math.ceil((learned - outputs - inputs * outputs) / (inputs + 1 + outputs)))


def mlp_ese_1(
    cases: int,
    inputs: int,
    members: int = 10,
    outputs: int = 1,
    share: float = 1 / 3,
    steps: int = 1000,
    stretch: float = 1.5,
    patience: float = 50.0,
    init: float | str = 0.01,
) -> Normalised:
    """The learner mlp-ese-1: an ensemble of networks stopped early, trained by conjugate gradients (Rasmussen 1996, as
    Neal 1998 describes it).

    Known of it: one layer of tanh hidden units with direct connections, as many units as `ese_hidden` says; conjugate
    gradients; a random split of the training cases for each member; each trains on for a while beyond the minimum of
    its validation error, and its network at that minimum is used; the prediction is the mean of the members. The
    defaults are choices for what is not known: 10 members (the original had as many as its time allowed), a third of
    the cases for validation, an end beyond 1.5 times the best iteration + 50 and after 1000 iterations at the latest,
    errors looked at in the iterations "1-2-5", start parameters uniform in (-0.01, 0.01) as Neal's, and
    DELVE's normalisation by all training cases, those for validation included. The 50 were chosen on kin-8nm, where
    the paper finds it about as good as mlp-bgd-1: with 10 many members end on the plateau around the best linear
    function (loss 0.45 in place of 0.27 at 256 cases).

    Args:
      cases: training cases, those for validation included.
      inputs: D.
      members: networks, M.
      outputs: K.
      share: share of the cases that validates.
      steps: the most iterations of a member.
      stretch, patience: the end of a member's training, in iterations; see `EarlyStopped`.
      init: start of the parameters; see `MLP`.
    Returns:
      A learner of values only, which prints as code that recreates it.
    Raises:
      ValueError: as `ese_hidden` says.
    """
    network = MLP(hidden=(ese_hidden(cases, inputs, outputs, share),), skip=True, init=init)
    stopped = EarlyStopped(Conjugate(network, steps=steps), share=share, patience=patience, stretch=stretch)
    return Normalised(Ensemble(stopped, members=members))


def mlp_mc(number: int, passes: int = 60_000) -> Normalised:
    """The learner of Neal's methods mlp-mc (1998, section 3.2): networks drawn from the posterior by Markov chains.

    Twenty tanh hidden units; mlp-mc-1 and -2 have direct connections, mlp-mc-1 to -3 relevances of the inputs, with
    widths of their own for direct connections. His paper gives the budget as time, from which 60,000 passes follow for
    a method; mlp-mc-1 was a longer run of mlp-mc-2 and has twice as many here. The first 1000 passes have fixed widths
    of 0.5, then come 118 trajectories of 500 steps, of which a third is dropped. Widths are drawn given the weights
    only, as by his programs; `Bayes` has a better way.

    How wide the priors were the paper does not say. Ours are in the style of the examples of Neal's programs, in units
    of normalised data, in their notation (width, shape of the group, shape of the inputs; x: divided by the number of
    sources): input-hidden x0.2:0.5:1, and 0.05:0.5 without relevances; hidden bias 0.05:0.5; hidden-output x0.05:0.5;
    direct x0.2:0.5:1; output bias 1; noise 0.05:0.5. A shape of 0.5 leaves the width open over several powers of ten.

    Args:
      number: 1 to 4, of the method.
      passes: through the training cases; mlp-mc-1 has twice as many.
    Returns:
      A learner of values only, which prints as code that recreates it.
    Raises:
      ValueError: there is no such method.
    """
    require("the number of mlp-mc", number, 1, 4)
    prior = Prior() if number < 4 else Prior(input_hidden=Width(0.05, shape=0.5))
    network, passes = MLP(hidden=(20,), skip=number < 3), passes * (2 if number == 1 else 1)
    return Normalised(Bayes(network, prior, passes=passes, steps=500, window=25, joint=0))


METHODS = {
    method.name: method
    for method in (
        Method("lin-1", Normalised(LeastSquares())),
        Method("knn-cv-1", Normalised(Neighbours())),
        Method("mlp-bgd-1", mlp_bgd()),
        Method("mlp-bgd-2", mlp_bgd("gradient")),
        Method("mlp-bgd-2b", mlp_bgd("gradient", members=1)),
        Method("mlp-bgd-3", mlp_bgd("correlation")),
        Method("mlp-ese-1", mlp_ese_1),
        *(Method(f"mlp-mc-{number}", mlp_mc(number)) for number in (1, 2, 3, 4)),
        *(Method(f"mlp-mc-{number}b", mlp_mc(number, passes=180_000)) for number in (1, 2, 3, 4)),
    )
}
"""DELVE's methods that this package has, and mlp-mc-1b to -4b, which run three times as long."""


def method(text: str) -> Method:
    """The method that a text names: one of `METHODS`, or an object of the user's as module:name.

    Args:
      text: such as "mlp-bgd-2", or "my_methods:ridge", where `ridge` in my_methods.py (found from the working folder)
        is a `Method`, a learner, or a function of (cases, inputs) that returns one. The last two get the name of the
        object, with hyphens for underscores.
    Returns:
      Method.
    Raises:
      ValueError: there is no such method, module or object, or it is none of these.
    """
    if not isinstance(text, str) or (text not in METHODS and not re.fullmatch("[^:]+:[^:]+", text)):
        raise ValueError(
            f"expected a method among {', '.join(METHODS)}, or your own as module:name, got {shown(text)}; choose one"
        )
    if text in METHODS:
        return METHODS[text]
    module, name = text.split(":")
    own = _imported(module, name)
    return own if isinstance(own, Method) else Method(name.replace("_", "-"), own)


def _imported(module: str, name: str) -> Any:
    """An object of a module, which may lie in the working folder."""
    before = sys.path.copy()
    text = shown(f"{module}:{name}").strip("'")
    expected = f"expected a method of your own as module:name, got {text}, which cannot be imported"
    try:
        sys.path.insert(0, os.getcwd())
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{expected} ({first_line(error)}); check its spelling and the working folder") from error
    # Whatever the user's own file does when it is run: it may end the process, too.
    except (Exception, SystemExit) as error:
        raise ValueError(f"{expected} ({first_line(error)}); mend {module.replace('.', '/')}.py") from error
    finally:
        sys.path[:] = before
