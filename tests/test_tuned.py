"""Learners chosen inside each row: against scikit-learn's grid search on the same folds, and against loops."""

import re
import warnings
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import refused
from scripts import quick
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jaxgen import Data, assess, learn, loss, resample
from jaxgen.learn import LeastSquares, Logistic, Neighbours, Normalised, Tuned, promises
from jaxgen.learn.wrap import ways
from jaxgen.learn.wrap.candidates import with_setting
from jaxgen.learn.wrap.validation import evenly, random_order
from jaxgen.types import as_learner

KEY = jax.random.key(0)
RANDOM = np.random.default_rng(0)
N = 40
X = RANDOM.normal(size=(N, 3)) * [1, 5, 0.3] + [0, 2, -1]
Y = X @ [[1.0], [0.1], [2.0]] + RANDOM.normal(size=(N, 1))
CLASS = (np.median(Y) < Y).astype(float)
W = (np.arange(N) % 3).astype(float)
GRID = (0.1, 3.0, 30.0, 1000.0)
NUMBERS = Data(X, Y, tuple("abc"))
PLAN = resample.k_fold(KEY, N, folds=4)
NET = learn.Descent(learn.MLP((3,), init=0.5), steps=20, rate=0.2)

jit = partial(jax.jit, static_argnums=0)


@jit
def train(learner, x, y, w, key=KEY):
    """A fit, its predictions of all cases, whether it failed, and what it says."""
    fit = learner.fit(key, x, y, w)
    return fit, learner.predict(fit, x), learner.failure(fit), learner.diagnose(fit)


def trained(learner, x=X, y=Y, w=None):
    with jax.enable_x64(True):
        made = train(learner, *map(jnp.asarray, (x, y, np.ones(len(x)) if w is None else w)))
    return jax.tree.map(np.asarray, made)


@jit
def _folds(learner, w, y):
    return learner.folds(KEY, w, y)


def folds_of(learner, w, y=None):
    with jax.enable_x64(True):
        return np.asarray(_folds(learner, jnp.asarray(w, float), None if y is None else jnp.asarray(y, float)))


SEARCHES = {
    "ridge": (Tuned(LeastSquares(), {"ridge": GRID}), Ridge(), {"alpha": GRID}),
    "normalised": (
        Tuned(Normalised(LeastSquares(), how="standard", targets="unchanged"), {"base.ridge": GRID}),
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": GRID},
    ),
    "neighbours": (Tuned(Neighbours(1), {"k": (1, 3, 7)}), KNeighborsRegressor(), {"n_neighbors": (1, 3, 7)}),
    "logistic": (
        Tuned(Logistic(ridge=1.0), {"ridge": (0.05, 1.0, 20.0)}),
        LogisticRegression(tol=1e-10, max_iter=1000),
        {"C": (20.0, 1.0, 0.05)},
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "neighbours" else pytest.mark.slow) for name in SEARCHES]
)
def test_choice_and_predictions_are_those_of_scikit_learns_grid_search(name):
    """On the same folds of equal size. Ways with shared work, one program, and one by one are all among them; the
    limits are those of scikit-learn's solver of logistic regression, and rounding.
    """
    learner, peer, grid = SEARCHES[name]
    y = CLASS if name == "logistic" else Y
    _, predictions, failed, info = trained(learner, y=y)
    scoring = "neg_log_loss" if name == "logistic" else "neg_mean_squared_error"
    search = GridSearchCV(peer, grid, scoring=scoring, cv=PredefinedSplit(folds_of(learner, np.ones(N), y)))
    search.fit(X, y[:, 0])
    want = search.predict_proba(X)[:, 1] if name == "logistic" else search.predict(X)
    [(setting, values)] = grid.items()
    order = np.argsort([values.index(value) for value in search.cv_results_[f"param_{setting}"]])
    exact = 1e-5 if name == "logistic" else 1e-9
    assert not failed
    assert info["choice"] == search.best_index_
    np.testing.assert_allclose(info["criteria"], -search.cv_results_["mean_test_score"][order], rtol=exact)
    np.testing.assert_allclose(predictions[:, 0], want, rtol=exact, atol=exact)


@pytest.mark.parametrize("folds", [pytest.param(2, marks=pytest.mark.slow), 5, pytest.param(7, marks=pytest.mark.slow)])
def test_criteria_are_those_of_a_loop_over_folds(folds):
    """With weights 0, 1 and 2 and folds of unequal size: a case of weight 2 is left out with its copy and counts
    twice; NaN in absent cases. The standard error is glmnet's, which weighs folds by their size.
    """
    learner = Tuned(LeastSquares(), {"ridge": GRID}, by=folds)
    spoiled_x, spoiled_y = (np.where(W[:, None] > 0, a, np.nan) for a in (X, Y))
    _, predictions, _, info = trained(learner, spoiled_x, spoiled_y, W)
    fold, totals, sizes = folds_of(learner, W), [], []
    assert np.array_equal(fold < 0, W == 0)
    for out in range(folds):
        w = np.where(fold == out, 0, W)
        some = np.where(fold == out, W, 0)
        models = [Ridge(alpha=ridge).fit(X, Y[:, 0], sample_weight=w) for ridge in GRID]
        totals.append([np.sum(some * (Y[:, 0] - model.predict(X)) ** 2) for model in models])
        sizes.append(np.sum(some))
    want = np.sum(totals, axis=0) / np.sum(W)
    np.testing.assert_allclose(info["criteria"], want, rtol=1e-9)  # two solutions of least squares
    assert info["choice"] == np.argmin(want)
    assert info["criterion"] == np.min(info["criteria"])
    assert info["chosen_ridge"] == GRID[int(info["choice"])]
    model = Ridge(alpha=GRID[int(info["choice"])]).fit(X, Y[:, 0], sample_weight=W)
    used = W > 0
    np.testing.assert_allclose(predictions[used, 0], model.predict(X)[used], rtol=1e-9)
    means, sizes = np.array(totals) / np.array(sizes)[:, None], np.array(sizes)
    error = np.sqrt(np.average((means - want) ** 2, axis=0, weights=sizes) / (folds - 1))
    near = np.flatnonzero(want <= (want + error)[np.argmin(want)])
    for simplest, choice in (("first", near[0]), ("last", near[-1])):
        rule = Tuned(LeastSquares(), {"ridge": GRID}, by=folds, rule="one_standard_error", simplest=simplest)
        assert trained(rule, spoiled_x, spoiled_y, W)[3]["choice"] == choice


def test_folds_are_of_equal_size_and_random():
    """Whatever cases are in use; another key draws other folds, and absent cases change nothing."""
    random, learner = np.random.default_rng(1), Tuned(LeastSquares(), {"ridge": GRID}, by=4)
    for _ in range(20):
        w = random.integers(0, 3, N) * (random.random(N) < random.random())
        w[:4] = 1
        sizes = np.bincount(folds_of(learner, w)[w > 0], minlength=4)
        assert max(sizes) - min(sizes) <= 1
    assert not np.array_equal(learner.folds(KEY, jnp.ones(N)), learner.folds(jax.random.key(1), jnp.ones(N)))
    np.testing.assert_array_equal(folds_of(learner, W)[W > 0], folds_of(learner, W[W > 0]))


@pytest.mark.parametrize("kind", ["one column", "one-hot", "in other units", "numbers"])
def test_classes_are_spread_evenly_over_the_folds(kind):
    """Each class as scikit-learn's StratifiedKFold spreads it, within one case a fold, from the row's own training
    cases; folds of equal size as without classes. Numbers have the folds that no targets give.
    """
    random, learner = np.random.default_rng(2), Tuned(LeastSquares(), {"ridge": GRID}, by=4)
    for seed in range(10):
        w = random.integers(0, 3, N) * (random.random(N) < 0.8)
        classes = np.minimum(random.geometric(0.5, N), 3) - 1 if kind == "one-hot" else random.random(N) < 0.2
        y = np.eye(3)[classes] if kind == "one-hot" else (np.asarray(classes, float) * 0.3 - 0.1)[:, None]
        y = y + random.normal(size=y.shape) if kind == "numbers" else (y > 0.1) * 1.0 if kind == "one column" else y
        y[w == 0] = np.nan
        found, used = folds_of(learner, w, y), w > 0
        if kind == "numbers":
            np.testing.assert_array_equal(found, folds_of(learner, w))
            continue
        if kind == "one-hot" and not seed:
            np.testing.assert_array_equal(found[used], folds_of(learner, w[used], y[used]))
        assert (found[~used] == -1).all()
        sizes = np.bincount(found[used], minlength=4)
        assert max(sizes) - min(sizes) <= 1
        with warnings.catch_warnings():  # of classes with fewer cases than folds
            warnings.simplefilter("ignore")
            theirs = StratifiedKFold(4).split(np.zeros(used.sum()), classes[used])
            theirs = [np.bincount(classes[used][out], minlength=3) for _, out in theirs]
        ours = [np.bincount(classes[used & (found == fold)], minlength=3) for fold in range(4)]
        np.testing.assert_array_equal(np.sort(ours, axis=0), np.sort(theirs, axis=0))


def test_a_share_has_its_share_of_each_class():
    """The first cases in the order of early stopping, against the share of each class, within one case of two classes
    and of three; and still in random order.
    """
    random = np.random.default_rng(3)
    for classes in (2, 3):
        labels, w = random.integers(0, classes, N), random.integers(0, 2, N)
        y = np.eye(classes)[labels]
        orders = []
        for seed in range(2):
            order = random_order(jax.random.key(seed), jnp.asarray(w, jnp.float32))
            orders.append(np.asarray(evenly(order, jnp.asarray(y, jnp.float32), jnp.asarray(w, jnp.float32))))
            assert sorted(orders[-1]) == list(range(N))
            assert (w[orders[-1][: w.sum()]] > 0).all()
            for first in range(1, w.sum() + 1):
                counts = np.bincount(labels[orders[-1][:first]], minlength=classes)
                share = first * np.bincount(labels[w > 0], minlength=classes) / w.sum()
                assert np.abs(counts - share).max() <= 1
        assert (orders[0] != orders[1]).any()
        numbers = jnp.asarray(random.normal(size=(N, 1)), jnp.float32)
        np.testing.assert_array_equal(evenly(order, numbers, jnp.asarray(w, jnp.float32)), order)


def test_leave_one_out_is_ridge_and_gcv_is_its_formula():
    """The formula with hat matrices of the cases written out as often as they weigh."""
    repeated = np.repeat(np.arange(N), W.astype(int))
    x, y = X[repeated] - X[repeated].mean(0), Y[repeated] - Y[repeated].mean(0)
    want = []
    for ridge in GRID:
        hat = x @ np.linalg.solve(x.T @ x + ridge * np.eye(3), x.T) + 1 / len(x)
        want.append(np.mean((y - hat @ y) ** 2) / (1 - np.trace(hat) / len(x)) ** 2)
    info = trained(Tuned(LeastSquares(), {"ridge": GRID}, by="gcv"), w=W)[3]
    np.testing.assert_allclose(info["criteria"], want, rtol=1e-10)  # another factorisation
    _, got, _, info = trained(Tuned(LeastSquares(), {"ridge": GRID}, by="leave_one_out"), w=W)
    ridge, want, *_ = trained(learn.Ridge(GRID), w=W)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)  # rounding
    np.testing.assert_allclose(info["criterion"], ridge.error, rtol=1e-12)


ALONG = [
    (LeastSquares(), "ridge", (0.0, 2.0, 30.0)),
    (LeastSquares(intercept=False), "ridge", (2.0, 0.5)),
    (Normalised(LeastSquares()), "base.ridge", (0.0, 2.0)),
    (Normalised(NET), "base.steps", (20, 3, 7)),
]


@pytest.mark.parametrize(("learner", "setting", "values"), ALONG, ids=lambda value: repr(value)[:30])
def test_a_shared_fit_is_that_of_each_value(learner, setting, values):
    """Rounding of 20 iterations at most."""
    with jax.enable_x64(True):
        x, y, w = map(jnp.asarray, (X, Y, W))
        assert learner.shares_along(setting)
        fits = jax.jit(lambda: learner.fit_along(setting, values, KEY, x, y, w))()
        for place, value in enumerate(values):
            one = with_setting(learner, setting, value)
            got = learner.predict(jax.tree.map(lambda a, place=place: a[place], fits), x)
            np.testing.assert_allclose(got, train(one, x, y, w)[1], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "kinds"),
    [
        (Tuned(NET, {"rate": (0.02, 0.2, 1.0)}, by=2), [ways.Traced]),
        (Tuned(NET, {"rate": (0.02, 0.2), "network.hidden": ((2,), (3,))}, by=2), [ways.Traced, ways.Traced]),
        (Tuned((NET, learn.Mean(), LeastSquares()), by=2), [ways.Apart] * 3),
    ],
    ids=["one program", "two shapes", "three kinds"],
)
def test_all_ways_give_the_same(learner, kinds, monkeypatch, own_messages):
    """One program for all numbers, or each by itself: rounding of 20 iterations. The chosen learner is trained on all
    cases with the last of three keys.
    """
    _, got, _, info = trained(learner)
    with jax.enable_x64(True):
        x, y, w = (jnp.asarray(a) for a in (X, Y, np.ones(N)))
        found = ways.ways_of(learner.candidates, lambda _, way: way.runs(KEY, x, y, w))
        assert [type(way) for way in found] == kinds
        chosen = as_learner(learner.candidates[int(info["choice"])])
        want = train(chosen, x, y, w, jax.random.split(KEY, 3)[2])[1]
    np.testing.assert_allclose(got, want, rtol=1e-9)
    assert info["criterion"] == np.min(info["criteria"])
    monkeypatch.setattr(ways.Traced, "runs", lambda *_: False)
    with jax.enable_x64(True):
        _, alone, _, told = jax.jit(partial(train.__wrapped__, learner))(x, y, w)
    np.testing.assert_allclose(alone, got, rtol=1e-9)
    np.testing.assert_allclose(told["criteria"], info["criteria"], rtol=1e-9)


@pytest.mark.slow
def test_what_fails_in_a_fold_is_not_chosen():
    """Two equal inputs: without a ridge the weights are not determined. Where nothing works the row fails."""
    data = Data(np.column_stack([X, X[:, 0]]), Y, tuple("abcd"))
    for by in (2, "gcv", "leave_one_out"):
        both = assess(KEY, Tuned(LeastSquares(), {"ridge": (0.0, 5.0)}, by=by), data, PLAN)
        assert not both.failed.any()
        assert both.info["choice"].tolist() == [1] * 4
        assert np.isinf(both.info["criteria"][:, 0]).all()
    none = assess(KEY, Tuned((LeastSquares(), LeastSquares(intercept=False)), by=2), data, PLAN)
    assert none.failed.all()
    with pytest.raises(ValueError, match="every learner to choose from failed in a fold of its training cases"):
        _ = none.g


def test_a_row_says_what_its_learner_says():
    """Of learners of one kind, what it diagnoses; a failure of the last fit by its own sentence."""
    losses = assess(KEY, Tuned(LeastSquares(), {"ridge": GRID}), NUMBERS, PLAN)
    assert set(losses.info) == {"choice", "criterion", "criteria", "chosen_ridge", "weights", "intercept"}
    learner = Tuned((learn.Mean(), LeastSquares(), NET))
    sentences = learner.failures
    assert len(sentences) == 4
    assert sentences[1] == LeastSquares().failures[0]
    assert sentences[2:] == NET.failures


@dataclass(frozen=True)
class Own:
    """A learner that does not derive from `Learner`: the mean, shrunk."""

    share: float = 0.5

    def fit(self, key, x, y, w):
        return self.share * (w @ jnp.where((w > 0)[:, None], y, 0)) / jnp.sum(w)

    def predict(self, params, x):
        return jnp.broadcast_to(params[None], (len(x), len(params)))


def test_learners_of_ones_own_are_tuned_and_checked():
    losses = assess(KEY, Tuned(Own(), {"share": (0.01, 0.5, 1.0)}), NUMBERS, PLAN)
    np.testing.assert_array_equal(losses.info["chosen_share"], 1.0)


@pytest.mark.slow
def test_a_tuned_learner_keeps_all_promises():
    """But those on the order of the cases, where folds are drawn by place."""
    assert learn.check(Tuned(LeastSquares(), {"ridge": GRID}, by="gcv")) == tuple(promises._CHECKS)
    assert len(learn.check(Tuned(LeastSquares(), {"ridge": GRID}, by=3), skip=("order", "twice"))) == 7


def test_predictive_distributions_are_those_of_the_chosen():
    net = learn.EarlyStopped(NET, folds=2)
    losses = assess(KEY, Tuned(net, {"base.rate": (0.01, 0.3)}, by=2), NUMBERS, PLAN, loss.log_score)
    assert np.isfinite(losses.g).all()


def test_units_of_the_targets_do_not_matter():
    """In single precision squares of 1e-30 would be 0, and all criteria alike."""
    x, y, w = (jnp.asarray(a, jnp.float32) for a in (X, Y, np.ones(N)))
    learner = Tuned(LeastSquares(), {"ridge": GRID})
    want, got = (train(learner, x, y * unit, w)[3] for unit in (1.0, 2.0**-100))
    assert got["choice"] == want["choice"]
    learner = Tuned((learn.Mean(), LeastSquares()))
    assert train(learner, x, y * 2.0**-100, w)[3]["choice"] == 1


REFUSED = {
    "no such setting": (
        lambda: Tuned(LeastSquares(), {"l2": (1.0, 2.0)}),
        r"a field of LeastSquares\(\) to tune, got 'l2'; choose one of ridge, intercept, minimum_norm",
    ),
    "inside": (
        lambda: Tuned(Normalised(LeastSquares()), {"ridge": (1.0, 2.0)}),
        "a field of Normalised.* to tune, got 'ridge'; write 'base.ridge'",
    ),
    "no values": (lambda: Tuned(LeastSquares(), {"ridge": ()}), "values of 'ridge' to choose from, got none"),
    "one value": (lambda: Tuned(LeastSquares(), {"ridge": (1.0,)}), "at least 2 learners to choose from, got 1"),
    "no grid": (lambda: Tuned(LeastSquares()), "at least 2 learners to choose from, got 1; give a grid"),
    "no learners": (lambda: Tuned(()), "at least 2 learners to choose from, got 0"),
    "twice": (lambda: Tuned(LeastSquares(), {"ridge": (1.0, 2.0, 1.0)}), "every value of 'ridge' once, got 1.0 twice"),
    "a learner twice": (
        lambda: Tuned((LeastSquares(), learn.Mean(), LeastSquares())),
        r"every learner to choose from once, got LeastSquares\(\) twice",
    ),
    "a text": (lambda: Tuned(LeastSquares(), {"ridge": "0.1"}), "the values of 'ridge' as a tuple, got '0.1'"),
    "a number": (lambda: Tuned(LeastSquares(), {"ridge": 0.1}), "the values of 'ridge' as a tuple, got 0.1"),
    "texts": (
        lambda: Tuned(LeastSquares(), {"ridge": ("a", "b")}),
        "the ridge to be a finite number of at least 0, got 'a'",
    ),
    "a list of names": (lambda: Tuned(LeastSquares(), ("ridge",)), "a grid as a mapping from settings to their values"),
    "values alone": (lambda: Tuned(LeastSquares(), (0.1, 1.0)), "a grid as a mapping from settings to their values"),
    "no learner": (lambda: Tuned("linear", {"ridge": GRID}), "a field of 'linear' to tune, got 'ridge'"),
    "no learners, texts": (lambda: Tuned(("linear", "mean")), "Tuned to choose among learners, each with the methods"),
    "both": (lambda: Tuned((LeastSquares(), learn.Mean()), {"ridge": GRID}), "or a tuple of learners without, got"),
    "a class": (lambda: Tuned((LeastSquares, learn.Mean)), "got the class LeastSquares"),
    "by: 1": (lambda: Tuned(LeastSquares(), {"ridge": GRID}, by=1), "the folds of Tuned .* at least 2, got 1; or"),
    "by: 2.5": (lambda: Tuned(LeastSquares(), {"ridge": GRID}, by=2.5), "the folds of Tuned .*, got 2.5"),
    "by: text": (
        lambda: Tuned(LeastSquares(), {"ridge": GRID}, by="cv"),
        "by of Tuned to be one of 'leave_one_out', 'gcv', got 'cv'",
    ),
    "closed: normalised": (
        lambda: Tuned(Normalised(LeastSquares()), {"base.ridge": GRID}, by="gcv"),
        "ridges of LeastSquares and squared errors for by='gcv', got .*; put Normalised outside",
    ),
    "closed: another setting": (
        lambda: Tuned(LeastSquares(ridge=1.0), {"intercept": (True, False)}, by="gcv"),
        "ridges of LeastSquares and squared errors for by='gcv'",
    ),
    "closed: another loss": (
        lambda: Tuned(LeastSquares(), {"ridge": GRID}, by="gcv", loss=loss.absolute),
        "ridges of LeastSquares and squared errors",
    ),
    "too many folds": (
        lambda: Tuned(LeastSquares(), {"ridge": GRID}, by=31),
        "at least 31 training cases for the 31 folds of Tuned, got 30 in .*; train on more cases",
    ),
    "rule": (
        lambda: Tuned(LeastSquares(), {"ridge": GRID}, rule="1se"),
        "the rule of Tuned to be one of 'best', 'one_",
    ),
    "simplest": (
        lambda: Tuned(LeastSquares(), {"ridge": GRID}, rule="one_standard_error"),
        "simplest='first' or simplest='last' .*, got None; say at which end",
    ),
    "rule: closed": (
        lambda: Tuned(LeastSquares(), {"ridge": GRID}, by="gcv", rule="one_standard_error", simplest="last"),
        "folds for the rule .*, got by='gcv', which has no standard error",
    ),
    "rule: two settings": (
        lambda: Tuned(
            LeastSquares(), {"ridge": GRID, "intercept": (True, False)}, rule="one_standard_error", simplest="last"
        ),
        "one setting for the rule .*, got ridge, intercept; list the learners",
    ),
    "loss": (lambda: Tuned(LeastSquares(), {"ridge": GRID}, loss="squard"), "got 'squard'; did you mean 'squared'"),
    "cross-entropy": (
        lambda: Tuned(LeastSquares(), {"ridge": GRID}, loss=loss.cross_entropy),
        "targets of zeros and ones for the loss cross_entropy",
    ),
    "too few cases without a fold": (
        lambda: Tuned((LeastSquares(), Neighbours(25)), by=2),
        "at least 25 training cases for Neighbours.*, got 15 in .* without one of 2 folds",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_uses_are_refused_in_one_sentence(case, own_messages):
    learner, message = REFUSED[case]
    sentence = refused(lambda: assess(KEY, learner(), NUMBERS, PLAN))
    assert re.search(message, sentence)


def test_a_tuned_learner_is_a_value(own_messages):
    learner = Tuned(LeastSquares(), {"ridge": np.logspace(-1, 1, 3), "intercept": [True, False]}, by=np.int64(3))
    assert repr(learner) == (
        "Tuned(base=LeastSquares(), grid=(('ridge', (0.1, 1.0, 10.0)), ('intercept', (True, False))), by=3)"
    )
    assert learn.from_text(repr(learner)) == learner
    assert (
        learn.from_text("Tuned(LeastSquares(), {'ridge': (0.1, 1.0, 10.0), 'intercept': (True, False)}, 3)") == learner
    )
    assert [each.ridge for each in learner.candidates] == [0.1, 0.1, 1.0, 1.0, 10.0, 10.0]
    assert [each.intercept for each in learner.candidates] == [True, False] * 3
    nested = Tuned(Normalised(learn.Descent(penalty=(learn.L2(0.1),))), {"base.penalty.0.strength": (0.1, 2.0)})
    assert nested.candidates[1].base.penalty == (learn.L2(2.0),)


def test_samples():
    """All different, within their ends, the same for the same key; whole numbers between whole ends."""
    ranges = {"base.rate": learn.Range(0.01, 1.0), "base.steps": learn.Range(2, 5), "how": ("delve", "standard")}
    found = learn.sample(KEY, Normalised(NET), ranges, 30)
    assert found == learn.sample(KEY, Normalised(NET), ranges, 30)
    assert found != learn.sample(jax.random.key(1), Normalised(NET), ranges, 30)
    assert len(set(found)) == 30
    rates = np.array([each.base.rate for each in found])
    assert 0.01 <= rates.min() < 0.05 < 0.2 < rates.max() <= 1  # each tail of a sixth of the law or more: 30 draws
    assert {each.base.steps for each in found} == {2, 3, 4, 5}
    assert {each.how for each in found} == {"delve", "standard"}
    linear = [learn.Range(-1.0, 1.0, scale="linear").draw(np.random.default_rng(seed)) for seed in range(50)]
    assert -1 <= min(linear) < -0.5 < 0.5 < max(linear) <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: learn.Range(0.0, 1.0), "the low end of Range .* above 0, got 0.0; use scale='linear'"),
        (lambda: learn.Range(2.0, 1.0), "the high end of Range .* above 2, got 1.0; give the low end first"),
        (lambda: learn.Range(1, 2, "square"), "the scale of Range to be one of 'log', 'linear', got 'square'"),
        (lambda: learn.sample(KEY, NET, {}, 3), "settings as a mapping from names to Range or values, got {}"),
        (lambda: learn.sample(KEY, NET, {"rates": (1, 2)}, 2), "a field of Descent.* to tune, got 'rates'"),
        (
            lambda: learn.sample(KEY, NET, {"steps": (1, 2)}, 3),
            "3 different learners in a sample, got 2; ask for fewer",
        ),
        (lambda: learn.sample(KEY, NET, {"steps": (1, 2)}, 1), "the count of a sample .* at least 2, got 1"),
        (
            lambda: learn.sample(KEY, "net", {"steps": (1, 2)}, 2),
            "a learner with the methods fit and predict, got 'net'",
        ),
        (lambda: learn.sample(0, NET, {"steps": (1, 2)}, 2), "one random key, got the integer 0"),
    ],
)
def test_samples_that_there_are_not(call, message, own_messages):
    assert re.search(message, refused(call))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_benchmark_of_tuning_runs_and_finds_optimism():
    """The least of 100 means is far below the risk on pure noise, tuning inside is not: limits of half of what is found
    with 8 data sets, whose standard errors are 6 and 10 %.
    """
    text = quick("tuning.py")
    row = re.search(r"noise only, the best of 100 single inputs +100 .*? ([-+][\d.]+) ± .*? ([-+][\d.]+) ±", text)
    assert float(row.group(1)) < -16 < float(row.group(2))
    assert "A ridge for each input" in text
