"""What the command `jaxgen assess` does."""

import argparse
import difflib
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import matplotlib
import numpy as np
import pandas as pd

from jaxgen import datasets, learn, loss, report, resample, store
from jaxgen.cli.assess_options import STRATIFIED
from jaxgen.cli.choices import needed
from jaxgen.cli.configuration import written
from jaxgen.cli.numbers import in_numbers
from jaxgen.cli.results import CONFIG, Results, labels_of
from jaxgen.cli.streams import complain, in_words, print_numbers, say, silent
from jaxgen.datasets.checks import naming
from jaxgen.datasets.files import read_table
from jaxgen.engine import assess, door
from jaxgen.report.document import as_html
from jaxgen.report.figures import drawings
from jaxgen.stats.remarks import check
from jaxgen.types import Data, Key, Learner, Loss, Losses, Plan
from jaxgen.types.identity import named
from jaxgen.types.keys import MOST_SEED
from jaxgen.types.memory import free_bytes
from jaxgen.types.numbers import require

SCHEMES: dict[str, Callable[[Key, int, argparse.Namespace, np.ndarray | None], Plan]] = {
    "leave-out": lambda key, n, a, strata: resample.leave_out(key, n, a.fraction, a.resamples, strata=strata),
    "k-fold": lambda key, n, a, strata: resample.k_fold(key, n, a.folds, a.repeats, strata=strata),
    "nested": lambda key, n, a, strata: resample.nested_pairs(key, n, a.folds, a.repeats, strata),
    "leave-one-out": lambda key, n, a, strata: resample.leave_one_out(n),
    "bootstrap": lambda key, n, a, strata: resample.bootstrap(key, n, resamples=a.resamples),
    "balanced": lambda key, n, a, strata: resample.balanced(key, n, fraction=a.fraction, resamples=a.resamples),
}

_OF_CLASSES = {"network": "Normalised(base=Descent(objective=Objective('softmax_cross_entropy')))"}
"""Short names that mean another learner where classes are predicted: one that gives probabilities."""

_BYTES = 24
"""Of each prediction, while they are used."""

BUNDLED = {
    "diabetes": datasets.diabetes,
    "breast_cancer": datasets.breast_cancer,
    "wine": datasets.wine,
    "digits": datasets.digits,
}

LOSSES = {each.__name__: each for each in (loss.squared, loss.absolute, loss.zero_one, loss.cross_entropy)}


class _Run(NamedTuple):
    """What is to be done: data [N, D], their name, learners and their labels, a plan [R, N], the loss, and what is kept
    of each row.
    """

    name: str
    data: Data
    learners: list[Learner]
    names: list[str]
    labels: list[str]
    plan: Plan
    loss: Loss
    keep: str
    notes: list[str]


def do_assess(options: argparse.Namespace) -> int:
    """Does what the options say; returns the exit code."""
    matplotlib.use("Agg")
    with silent() if options.json == "-" else nullcontext():
        run = _prepared(options)
        say(f"{run.name}: {run.data.n} cases, {run.data.d} inputs, target {run.data.target!r}: {_in_words(run.data)}")
        for note in run.notes:
            say(note)
        results = _claimed(options.out, run, options)
        with results.held():
            return _trained_and_reported(run, options, results)


def _trained_and_reported(run: _Run, options: argparse.Namespace, results: Results) -> int:
    """Trains all learners and says what they show; returns the exit code."""
    try:
        _train(run, options, results)
        losses = [one.labelled(run.labels[number - 1]) for number, one in results.losses.items()]
        complete = _complete(losses, options.drop_failed)
        if complete:
            _report(complete, run, options, results)
        elif options.drop_failed and losses:
            say("no resampling is left on which all learners were trained; leave out the learner that failed most")
    except KeyboardInterrupt:
        if results.discard_if_empty():
            raise KeyboardInterrupt from None
        results.save()
        some = f"{len(results.losses)} of {len(run.learners)} learners are trained"
        where = f"the same command with --out {results.folder} goes on" if results.folder else str(results)
        raise KeyboardInterrupt(f"stopped; {some}; {where}") from None
    if results.discard_if_empty():
        return 2
    _say_failures(losses, options.drop_failed)
    say(str(results))
    return 0 if results.complete and len(complete) == len(run.learners) else 1


def _prepared(options: argparse.Namespace) -> _Run:
    """Everything that can be wrong with the command, before anything is trained."""
    require("--seed", options.seed, 0, MOST_SEED - 1, "the training takes the next")
    data, name, notes = data_of(options)
    classes = data.task == "classification"
    texts = options.learner or (("logistic", "mean") if classes else ("linear", "mean"))
    of_classes = _OF_CLASSES if classes else {}
    learners = [_accepting(learn.from_text(of_classes.get(text, text)), data, options) for text in texts]
    if len(set(learners)) < len(learners):
        raise ValueError(f"expected different learners, got {', '.join(map(repr, learners))}; name each once")
    if options.positive is not None and not classes:
        raise ValueError(
            f"expected --positive with a classification only, got {options.positive!r} for a regression; leave it out, "
            "or say --task classification"
        )
    if options.positive is not None and options.positive not in data.classes:
        found = ", ".join(data.classes) or "none"
        raise ValueError(
            f"expected --positive with a class of the target, got {options.positive!r}; the classes are {found}"
        )
    plan = SCHEMES[options.scheme](jax.random.key(options.seed), data.n, options, _strata(data, options))
    if plan.resamples < 2:
        raise ValueError(f"expected at least 2 training sets, got {plan.resamples}; ask for more with --resamples")
    loss_of_case = LOSSES[options.loss or ("zero_one" if classes else "squared")]
    keep = "predictions" if classes else "cases"
    if classes and _BYTES * plan.resamples * data.n * data.y.shape[-1] > free_bytes() / 3:
        keep = "cases"
        notes.append("predictions are not kept, which would take much memory; so there is one loss, and no AUC")
    names = []
    for learner in learners:
        door.check(_training_key(options), learner, data, plan, loss_of_case, "cases", None)
        names.append(named(learner))
    return _Run(name, data, learners, names, labels_of(texts), plan, loss_of_case, keep, notes)


def _accepting(learner: Learner, data: Data, options: argparse.Namespace) -> Learner:
    """The learner, with missing inputs filled in where there are some that it does not accept."""
    if not data.missing or learner.accepts_missing:
        return learner
    return learn.Imputed(learner, indicator=bool(options.missing_indicator))


def _strata(data: Data, options: argparse.Namespace) -> np.ndarray | None:
    """The class of each case, [N], where test sets are to have the same share of each."""
    wanted = options.stratify
    if wanted and (data.task != "classification" or options.scheme not in STRATIFIED):
        got = data.task if data.task != "classification" else f"--scheme {options.scheme}"
        schemes = f"{', '.join(STRATIFIED[:-1])} or {STRATIFIED[-1]}"
        raise ValueError(f"expected --stratify with classes and --scheme {schemes}, got {got}; leave it out")
    if wanted is False or data.task != "classification" or options.scheme not in STRATIFIED:
        return None
    return data.y.argmax(-1) if data.y.shape[-1] > 1 else data.y[:, 0].astype(np.int64)


def _training_key(options: argparse.Namespace) -> Key:
    """The key of the training, which is not that of the splits."""
    return jax.random.key(options.seed + 1)


def data_of(options: argparse.Namespace) -> tuple[Data, str, list[str]]:
    """The data [N, D] of a file or of this package, their name, and what is to be said of them."""
    file = options.file
    if file in BUNDLED and not os.path.exists(file):
        return BUNDLED[file](), file, []
    source, frame = read_table(file, {})
    with naming(source):
        frame = _without_columns(frame, options)
        keep = "keep" if options.missing == "impute" else options.missing
        try:
            data = datasets.from_frame(frame, options.target, options.task, missing=keep, dates=options.dates)
        except ValueError as trouble:
            words = needed(frame, options)
            if len(words) < 2:
                raise
            raise ValueError(f"{trouble}. This file asks for several choices, for example {' '.join(words)}") from None
    notes = []
    if data.n < len(frame):
        notes.append(f"{len(frame) - data.n} of {len(frame)} cases left out, which lack a value")
    if data.missing:
        gaps = np.isnan(data.x).any(-1)
        notes.append(f"{int(gaps.sum())} cases lack inputs, which are filled in from the training cases of each split")
    for name, column in zip(data.names, data.x.T, strict=True):
        if data.n > 2 and (np.diff(column) == 1).all():
            notes.append(f"column {name!r} counts the cases; if it is their number, leave it out with --drop {name}")
    return data, Path(file).stem, notes


def _without_columns(frame: pd.DataFrame, options: argparse.Namespace) -> pd.DataFrame:
    """The table without the columns to drop."""
    columns = [str(column) for column in frame.columns]
    for name in options.drop or ():
        if name not in columns or name == options.target:
            near = difflib.get_close_matches(name, columns, 1)
            advice = f"did you mean {near[0]!r}?" if near and name != options.target else "name an input"
            raise ValueError(f"expected --drop with a column other than the target, got {name!r}; {advice}")
    return frame.set_axis(columns, axis=1).drop(columns=list(options.drop or ()))


def effective(options: argparse.Namespace, run: _Run) -> str:
    """The options as a TOML file that does the same again; the file of the data by its whole path."""
    bundled = options.file in BUNDLED and not os.path.exists(options.file)
    said = {
        "file": options.file if bundled else os.path.abspath(options.file),
        "target": options.target,
        "task": None if bundled else run.data.task,
        "drop": options.drop,
        "missing": options.missing,
        "missing_indicator": options.missing_indicator,
        "dates": options.dates,
        "learner": options.learner
        or (["logistic", "mean"] if run.data.task == "classification" else ["linear", "mean"]),
        "loss": run.loss.__name__,
        "positive": options.positive,
        "scheme": options.scheme,
        "seed": options.seed,
    }
    if options.scheme in ("leave-out", "balanced"):
        said["fraction"] = options.fraction
    if options.scheme in ("leave-out", "bootstrap", "balanced"):
        said["resamples"] = options.resamples
    if options.scheme in ("k-fold", "nested"):
        said |= {"folds": options.folds, "repeats": options.repeats}
    if run.data.task == "classification" and options.scheme in STRATIFIED:
        said["stratify"] = options.stratify is not False
    return written({**said, "drop_failed": options.drop_failed})


def _in_words(data: Data) -> str:
    """What is predicted: numbers or which classes."""
    if data.task == "regression":
        return "regression"
    more = ", ..." if len(data.classes) > 10 else ""
    return f"classification, {len(data.classes)} classes: {', '.join(data.classes[:10])}{more}"


def _claimed(out: Path | None, run: _Run, options: argparse.Namespace) -> Results:
    """The folder of the results: the one asked for, or a new one named by data and time."""
    about = {
        "data": run.name,
        "task": run.data.task,
        "sha256": store.checksum(run.data),
        "seed": options.seed,
        "scheme": run.plan.scheme,
        "loss": run.loss.__name__,
        "jax": jax.__version__,
    }
    learners, config = run.names, effective(options, run)
    if out is not None:
        return Results(out, about, learners, True, config)
    begun = f"{run.name[:100]}-{datetime.now():%Y%m%d-%H%M%S}"
    for name in (begun, *(f"{begun}-{number}" for number in range(2, 100))):
        with suppress(FileExistsError):  # of another process in this second
            return Results(Path("jaxgen-runs") / name, about, learners, False, config)
    return Results(Path("jaxgen-runs") / f"{begun}-100", about, learners, False, config)


def _train(run: _Run, options: argparse.Namespace, results: Results) -> None:
    """Trains every learner and keeps its losses; one that raises something does not lose the others."""
    for number, learner in enumerate(run.learners, 1):
        try:
            ask = partial(assess, _training_key(options), learner, run.data, run.plan, run.loss, keep=run.keep)
            results.train(number, lambda folder, ask=ask: ask(store=folder))
        except Exception as trouble:
            complain(f"{learner}: {in_words(trouble)}")
            results.miss(repr(learner), in_words(trouble))


def _report(complete: Sequence[Losses], run: _Run, options: argparse.Namespace, results: Results) -> None:
    """Prints and saves report, tables and figures of learners, each of which may fail without the others."""
    found = report.views(complete, run.data, positive=options.positive)
    with results.sparing("report"):
        remarks = [f"{one.severity}: {one.text}" for one in check(*complete, data=run.data)]
        codes = "\n".join(f"{one.label}: {one.learner}" for one in complete if one.label)
        text = "\n\n".join(filter(None, [codes, *(_text_of(view) for view in found), "\n".join(remarks)]))
        say(text)
        results.write(lambda folder: (folder / "report.txt").write_text(text + "\n", encoding="utf-8"))
    with results.sparing("table"):
        table = pd.concat([view.summaries.assign(number=view.title) for view in found if len(view.summaries)])
        results.write(lambda folder: table.to_csv(folder / "summary.csv", index_label="learner"))
    with results.sparing("figure"):
        for one in drawings(complete, found, run.data, options.positive):
            results.write(lambda folder, one=one: one.figure.savefig(folder / f"{one.name}.png", dpi=150))
    with results.sparing("numbers"):
        numbers = in_numbers(found, run.data, results, {"seed": options.seed, "training_seed": options.seed + 1})
        if options.json == "-":
            print_numbers(numbers.as_json())
        elif options.json is not None:
            store.publish_text(Path(options.json), numbers.as_json())
        if options.csv is not None:
            store.publish_text(options.csv, numbers.as_csv())
    with results.sparing("page"):
        content = page_of(complete, run.data, run.name, options.positive, options.seed, effective(options, run))
        results.write(lambda folder: store.publish_text(folder / "report.html", content))
        if options.html is not None:
            store.publish_text(options.html, content)


def _text_of(view: report.View) -> str:
    """A view as text; what a page says of itself is not said twice."""
    if not view.losses:
        return "\n".join(view.lines())
    page = report.page(view.losses)
    return "\n".join([page, *(trouble for trouble in view.troubles if trouble not in page)])


def page_of(
    losses: Sequence[Losses], data: Data | None, name: str, positive: str | None, seed: int, config: str
) -> str:
    """The report of learners, G [R] each, as a page."""
    target = f": predicting {data.target}" if data is not None else ""
    return as_html(
        losses,
        data=data,
        title=f"{name}{target}",
        positive=positive,
        seeds=(seed, seed + 1),
        about={} if data is None else {"data": name, "SHA-256 of the data": store.checksum(data)},
        command=f"jaxgen assess --config {CONFIG}",
        config=config,
    )


def _say_failures(losses: Sequence[Losses], drop_failed: bool) -> None:
    """Says which trainings failed and why, but for those that are left out on request."""
    for each in losses:
        count, all_failed = int(each.failed.sum()), bool(each.failed.all())
        if count and (all_failed or not drop_failed):
            advice = "" if all_failed else "; call again with --drop-failed to leave them out"
            reason = each.reasons[int(each.failure.max()) - 1]
            say(f"{count} of {each.resamples} trainings of {each.learner} failed: {reason}{advice}")


def _complete(every: Sequence[Losses], drop_failed: bool) -> list[Losses]:
    """The losses that can be reported: those without failed rows, or with --drop-failed all on the rows that every
    learner but those that always fail was trained on.
    """
    if not drop_failed:
        return [losses for losses in every if not losses.failed.any()]
    usable = [losses for losses in every if not losses.failed.all()]
    try:
        return [losses.without_failed(*usable) for losses in usable] if usable else []
    except ValueError:
        return []
