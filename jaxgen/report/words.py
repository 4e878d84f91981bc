"""What was done, in sentences fit for the methods section of a paper, with what they cite."""

import ast
import re
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from jaxgen.report.judged import View
from jaxgen.stats.design import divisions, not_folds
from jaxgen.types import Data, Plan

REFERENCES = {
    "Bates, Hastie & Tibshirani 2024": "Bates, S., Hastie, T. & Tibshirani, R. (2024). Cross-validation: What does it "
    "estimate and how well does it do it? Journal of the American Statistical Association 119, 1434-1445.",
    "Bayle et al. 2020": "Bayle, P., Bayle, A., Janson, L. & Mackey, L. (2020). Cross-validation confidence intervals "
    "for test error. Advances in Neural Information Processing Systems 33.",
    "Bouckaert & Frank 2004": "Bouckaert, R. R. & Frank, E. (2004). Evaluating the replicability of significance tests "
    "for comparing learning algorithms. Advances in Knowledge Discovery and Data Mining, 3-12.",
    "Efron & Stein 1981": "Efron, B. & Stein, C. (1981). The jackknife estimate of variance. The Annals of Statistics "
    "9, 586-596.",
    "Holm 1979": "Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of "
    "Statistics 6, 65-70.",
    "Larsen & Hansen 1995": "Larsen, J. & Hansen, L. K. (1995). Empirical generalization assessment of neural network "
    "models. Proceedings of the IEEE Workshop on Neural Networks for Signal Processing.",
    "McNemar 1947": "McNemar, Q. (1947). Note on the sampling error of the difference between correlated proportions "
    "or percentages. Psychometrika 12, 153-157.",
    "Nadeau & Bengio 2003": "Nadeau, C. & Bengio, Y. (2003). Inference for the generalization error. Machine Learning "
    "52, 239-281.",
    "Wilson 1927": "Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. "
    "Journal of the American Statistical Association 22, 209-212.",
}
"""Works that results name as their source, by what results call them; others are named as results do."""

DEFAULTS = {
    "Descent": {"steps": "1000 steps", "rate": "a rate of 0.1", "objective": "the squared error as objective"},
    "Conjugate": {"steps": "1000 steps", "objective": "the squared error as objective"},
    "MLP": {"hidden": "a layer of 20 hidden units", "activation": "tanh as activation"},
    "LeastSquares": {"ridge": "a ridge of 0"},
    "Normalised": {"how": "columns minus their median, divided by the mean absolute deviation from it (delve)"},
    "Tuned": {"by": "5 folds"},
    "Ensemble": {"members": "10 members"},
    "EarlyStopped": {"folds": "4 folds"},
}
"""Of parts of learners the fields that matter to readers, and what they are where the code leaves them out."""
_NETWORKS = ("Descent", "Conjugate")
"""Learners with the network `MLP()` where the code names none."""

_MEANINGS = {
    "squared error": "the squared error",
    "absolute error": "the absolute error",
    "error rate": "the error rate (the share of wrongly classified cases)",
    "log loss": "the log loss (minus the logarithm of the probability given to the true class)",
    "AUC": "the area under the ROC curve",
}


def methods(views: Sequence[View], data: Data | None = None, seeds: Sequence[int] = ()) -> str:
    """What was done, from the plan, the learners, and the intervals and tests that were used.

    Args:
      views: as `report.views` gives them, of losses G [R].
      data: what was assessed.
      seeds: of the splits and of the training, where they are known.
    """
    losses = views[0].losses
    first = losses[0]
    subject = f"the {first.plan.n} cases" + (f" and {data.d} inputs" if data is not None else "")
    predicted = ""
    if data is not None:
        kind = f"{len(data.classes) or 2} classes" if data.task == "classification" else "a number"
        predicted = f", predicting {data.target!r} ({kind})"
    learners = _listed([f"{one.label} ({one.learner})" if one.label else one.learner for one in losses])
    sentences = [f"We assessed {learners} on {subject}{predicted}."]
    left_out = defaults_in_words([one.learner for one in losses])
    if left_out:
        sentences.append(f"Where the code of a learner does not say otherwise, {left_out}.")
    if data is not None and data.missing:
        sentences.append(
            f"{int(np.isnan(data.x).any(-1).sum())} cases lacked inputs, which were filled in anew for every training "
            "set, from its own cases: numbers by their mean, categories by their most frequent level."
        )
    sentences.append(_of_plan(first.plan))
    sentences.append(f"Learners were judged by {_listed([_MEANINGS.get(view.title, view.title) for view in views])}.")
    if first.dropped:
        sentences.append(f"{first.dropped} splits, in which a training failed, were left out.")
    for view in views:
        sentences += _of_statistics(view)
    if seeds:
        sentences.append(f"The seed of the splits was {seeds[0]}, that of the training {seeds[-1]}.")
    sentences.append(f"Computations were done with jaxgen {version('jaxgen')} and JAX {version('jax')}.")
    return " ".join(sentences)


def defaults_in_words(codes: Sequence[str]) -> str:
    """What the code of learners leaves at its defaults, such as "Descent has 1000 steps"; empty if nothing."""
    found: dict[str, dict[str, None]] = {}
    for code in codes:
        try:
            tree = ast.parse(code.partition(" [code ")[0], mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # a name of the user's own
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            name, given = node.func.id, {word.arg for word in node.keywords}
            given |= {"rate"} if "optimiser" in given else set()
            parts = [(name, given)]
            if name in _NETWORKS and "network" not in given:
                parts.append(("MLP", set()))
            for part, said in parts:
                words = [text for field, text in DEFAULTS.get(part, {}).items() if field not in said]
                found.setdefault(part, {}).update(dict.fromkeys(words))
    return "; ".join(f"{name} has {_listed(list(words))}" for name, words in found.items() if words)


def references(views: Sequence[View]) -> list[str]:
    """The works that the views rest on, in alphabetic order."""
    found = [one.source for view in views for one in (*view.intervals, *view.comparisons)]
    if any(len(view.comparisons) > 1 for view in views):
        found.append("Holm 1979")
    names = {
        re.sub(r", (eq\.|hold-out).*", "", name.strip()) for source in found for name in re.split("; | with ", source)
    }
    return sorted(REFERENCES.get(name, name) for name in names if name)


def _of_plan(plan: Plan) -> str:
    """How training sets were drawn, from what the weights of the plan [R, N] show."""
    trained, tested = (_range(sizes) for sizes in (plan.train_sizes, plan.test_sizes))
    stratified = ", stratified by class" * ("strata=" in plan.scheme)
    if "first" in plan.labels:
        return f"Training sets came from nested cross-validation ({plan.resamples} trainings{stratified})."
    if not not_folds(plan):
        folds = int(plan.resamples // (divisions(plan).max() + 1))
        times = int(divisions(plan).max() + 1)
        repeated = f", repeated {times} times with new folds" * (times > 1)
        return (
            f"Each learner was trained by {folds}-fold cross-validation{repeated}{stratified}: on {trained} cases, and "
            f"tested on the other {tested}."
        )
    if plan.repeats_cases:
        return (
            f"Each learner was trained on {plan.resamples} bootstrap samples of the cases, and tested on those that a "
            "sample lacks."
        )
    return (
        f"Each learner was trained on {plan.resamples} random training sets of {trained} cases{stratified}, and tested "
        f"on {tested} cases left out."
    )


def _of_statistics(view: View) -> list[str]:
    """By what interval and test a view says what it says."""
    sentences = []
    if view.intervals:
        one = view.intervals[0]
        target = re.sub(
            "^ER for training sets of (.*) cases", r"the expected error of models trained on \1 cases", one.target
        )
        sentences.append(
            f"The {100 * one.level:.4g} % intervals of the {view.title} are those of the {one.method} ({one.source}), "
            f"about {target}."
        )
    if view.comparisons:
        test = view.comparisons[0]
        adjusted = (
            f", with p-values adjusted for {len(view.comparisons)} comparisons (Holm 1979)"
            if len(view.comparisons) > 1
            else ""
        )
        sentences.append(f"Differences were tested by the {test.method} ({test.source}){adjusted}.")
    return sentences


def _range(sizes: np.ndarray) -> str:
    low, high = int(sizes.min()), int(sizes.max())
    return f"{low}" if low == high else f"{low} to {high}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
