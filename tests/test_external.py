"""Estimators of scikit-learn's kind as learners: the same rows, the same losses, the same doors."""

import multiprocessing
import pickle
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import jax
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

import jaxgen as jg
from jaxgen import datasets, learn, loss, resample
from jaxgen.engine import executors
from jaxgen.stats import compare

KEY = jax.random.key(7)
RANDOM = np.random.default_rng(3)


def numbers(n=40, sets=None, outputs=1):
    """A regression, x [*Q, n, 3] and y [*Q, n, outputs]."""
    lead = () if sets is None else (sets,)
    x = RANDOM.normal(size=(*lead, n, 3))
    y = x @ RANDOM.normal(size=(3, outputs)) + 0.3 * RANDOM.normal(size=(*lead, n, outputs))
    return datasets.from_arrays(x, y)


def classes(n=60, kinds=3):
    """A classification of overlapping classes."""
    label = np.arange(n) % kinds
    return datasets.from_arrays(RANDOM.normal(size=(n, 2)) + label[:, None], label, task="classification")


def by_hand(learner, data, plan, fit, q=0):
    """Predictions [R, N, K] of estimators with the seeds of the rows, each fitted by `fit(estimator, x, y, w)`."""
    x, y, train = (a if a.ndim == 2 else a[q] for a in (data.x, data.y, plan.train))
    fitted = (fit(learner.seeded(KEY, r, q), x, y, train[r]) for r in range(plan.resamples))
    return np.stack([one.predict(x).reshape(len(x), -1) for one in fitted])


def test_least_squares_are_those_of_the_package_and_of_cross_val_score():
    data = datasets.diabetes()
    plan = resample.k_fold(KEY, data.n, 5)
    external = jg.assess(KEY, learn.External(LinearRegression()), data, plan)
    own = jg.assess(KEY, learn.LeastSquares(), data, plan)
    np.testing.assert_allclose(external.values, own.values, rtol=1e-8, atol=1e-6)  # two solutions of condition 200
    np.testing.assert_allclose(external.apparent, own.apparent, rtol=1e-10)
    scores = cross_val_score(LinearRegression(), data.x, data.y[:, 0], cv=plan, scoring="neg_mean_squared_error")
    np.testing.assert_allclose(external.g, -scores, rtol=1e-10)
    assert external.learner == "External(LinearRegression())"
    mean = jg.assess(KEY, learn.External(DummyRegressor()), data, plan)
    found, own_found = compare.recommend(external, mean), compare.recommend(own, mean)
    np.testing.assert_allclose(found.statistic, own_found.statistic, rtol=1e-8)  # as the losses
    assert found.p_value < 1e-6


@pytest.mark.parametrize("sets", [None, 2])
@pytest.mark.parametrize("scheme", ["leave_out", "bootstrap", "lazy"])
def test_a_forest_is_a_loop_over_rows_with_the_same_seeds(sets, scheme):
    data = numbers(sets=sets)
    make = {
        "leave_out": lambda: resample.leave_out(KEY, data.n, 0.25, 4, sets=sets),
        "bootstrap": lambda: resample.bootstrap(KEY, data.n, 4, sets=sets),
        "lazy": lambda: resample.bootstrap(KEY, data.n, 4, lazy=True),
    }
    plan, forest = make[scheme](), learn.External(RandomForestRegressor(3))
    losses = jg.assess(KEY, forest, data, plan, keep="predictions")

    def fit(estimator, x, y, w):
        more = {"sample_weight": w[w > 0].astype(float)} if w.max() > 1 else {}
        return estimator.fit(x[w > 0], y[w > 0, 0], **more)

    for q in range(sets or 1):
        one, y = (losses, data.y) if sets is None else (losses[q], data.y[q])
        predictions = by_hand(forest, data, plan, fit, q)
        np.testing.assert_array_equal(one.predictions, predictions)
        np.testing.assert_allclose(one.values, (predictions[..., 0] - y[:, 0]) ** 2, rtol=1e-12)
        w = plan.test if plan.test.ndim == 2 else plan.test[q]
        np.testing.assert_allclose(one.g, (one.values * w).sum(1) / w.sum(1), rtol=1e-12)


@pytest.mark.parametrize(
    ("estimator", "repeat"),
    [
        (LinearRegression(), False),
        (LinearRegression(), True),
        (KNeighborsRegressor(3), False),  # its fit takes no sample_weight
        (make_pipeline(StandardScaler(), LinearRegression()), False),  # weights would miss the scaler
        (DecisionTreeRegressor(min_samples_leaf=4), True),
    ],
    ids=str,
)
def test_a_count_of_two_is_the_case_twice(estimator, repeat):
    data = numbers()
    plan, learner = resample.bootstrap(KEY, data.n, 3), learn.External(estimator, repeat=repeat)
    losses = jg.assess(KEY, learner, data, plan, keep="predictions")
    found = by_hand(learner, data, plan, lambda e, x, y, w: e.fit(np.repeat(x, w, axis=0), np.repeat(y[:, 0], w)))
    np.testing.assert_allclose(losses.predictions, found, rtol=1e-9)  # weighted least squares are another solution


class Noted(RegressorMixin, BaseEstimator):
    """Predicts what it was given: cases, sum of counts."""

    def fit(self, x, y, sample_weight=None):
        self.seen_ = len(x), np.sum(sample_weight) if sample_weight is not None else -1
        return self

    def predict(self, x):
        return np.tile(self.seen_, (len(x), 1))


def test_absent_cases_are_left_out_and_counts_are_weights():
    data = numbers(outputs=2)
    for plan in (resample.bootstrap(KEY, data.n, 3), resample.leave_out(KEY, data.n, 0.25, 3)):
        seen = jg.assess(KEY, learn.External(Noted()), data, plan, keep="predictions").predictions[:, 0]
        np.testing.assert_array_equal(seen[:, 0], (plan.train > 0).sum(1))
        np.testing.assert_array_equal(seen[:, 1], plan.train.sum(1) if plan.repeats_cases else -1)


def test_classes_absent_from_a_row_have_no_probability():
    data = classes()
    label = data.y.argmax(1)
    train = np.stack([label < 2, label >= 0]).astype(int)
    plan = resample.from_weights(train, np.ones_like(train))
    losses = jg.assess(KEY, learn.External(GaussianNB()), data, plan, loss.cross_entropy, keep="predictions")
    for row, used in enumerate(train):
        known = GaussianNB().fit(data.x[used > 0], label[used > 0]).predict_proba(data.x)
        np.testing.assert_allclose(losses.predictions[row, :, : known.shape[1]], known, rtol=1e-12)
    assert not losses.predictions[0, :, 2].any()
    nothing = -np.log(np.finfo(np.float64).tiny)  # 708 nats, as documented
    np.testing.assert_allclose(losses.values[0, label == 2], nothing, rtol=1e-12)
    assert (losses.values[1] < 100).all()


def test_scores_and_labels_stand_in_where_there_are_no_probabilities():
    data, two = classes(), classes(kinds=2)
    one = datasets.from_arrays(two.x, two.y[:, 1:], task="classification")
    single = jg.Data(two.x, two.y[:, 1:], two.names, task="classification")
    assert one.y.shape[1] == 2
    machine, plan = learn.External(SVC()), resample.leave_out(KEY, two.n, 0.25, 2)
    for given, columns in ((two, [0, 1]), (single, [1])):
        losses = jg.assess(KEY, machine, given, plan, loss.zero_one, keep="predictions")
        for row, train in enumerate(plan.train > 0):
            fitted = SVC().fit(two.x[train], two.y[train, 1])
            margin = (1 + fitted.decision_function(two.x)) / 2
            scores = np.stack([1 - margin, margin], 1)[:, columns]
            np.testing.assert_allclose(losses.predictions[row], scores, atol=1e-12)  # rounding
            np.testing.assert_array_equal(losses.values[row], fitted.predict(two.x) != two.y[:, 1])
    three = jg.assess(KEY, machine, data, resample.full(data.n), loss.zero_one, keep="predictions")
    label = SVC().fit(data.x, data.y.argmax(1)).predict(data.x)
    np.testing.assert_array_equal(three.predictions[0], np.eye(3)[label])
    with pytest.raises(ValueError, match="expected a learner that predicts probabilities"):
        jg.assess(KEY, machine, data, plan, loss.cross_entropy)
    ridge = jg.assess(KEY, learn.External(RidgeClassifier()), data, resample.full(data.n), loss.zero_one)
    assert ridge.g[0] == np.mean(RidgeClassifier().fit(data.x, data.y.argmax(1)).predict(data.x) != data.y.argmax(1))


def test_a_regressor_learns_columns_of_zeros_and_ones_as_numbers():
    data = classes()
    plan = resample.full(data.n)
    losses = jg.assess(KEY, learn.External(LinearRegression()), data, plan, keep="predictions")
    np.testing.assert_allclose(
        losses.predictions[0], LinearRegression().fit(data.x, data.y).predict(data.x), rtol=1e-10
    )


def test_log_score_of_probabilities_is_their_cross_entropy_and_numbers_have_none():
    data = classes()
    plan, learner = resample.leave_out(KEY, data.n, 0.25, 2), learn.External(GaussianNB())
    scores = [jg.assess(KEY, learner, data, plan, each).g for each in (loss.log_score, loss.cross_entropy)]
    np.testing.assert_array_equal(*scores)
    with pytest.raises(ValueError, match="expected a learner with a predictive distribution"):
        jg.assess(KEY, learn.External(LinearRegression()), numbers(), resample.full(40), loss.log_score)


class Moody(RegressorMixin, BaseEstimator):
    """Fails, or warns, by the mean of the first input."""

    def fit(self, x, y):
        if x[:, 0].mean() > 0.1:
            raise ArithmeticError("the mean\nis large")
        if x[:, 0].mean() < -0.1:
            warnings.warn("the mean is small", UserWarning, stacklevel=2)
        self.mean_ = y.mean()
        return self

    def predict(self, x):
        return np.full(len(x), self.mean_)


def test_failed_rows_are_marked_and_quoted_and_warnings_are_passed_on_once():
    data, plan = numbers(), resample.leave_out(KEY, 40, 0.5, 20)
    data = replace(data, x=data.x - data.x.mean(0))
    mean = np.array([data.x[train > 0, 0].mean() for train in plan.train])
    with pytest.warns(RuntimeWarning, match="rows of Moody were warned .*UserWarning: the mean is small") as said:
        losses = jg.assess(KEY, learn.External(Moody()), data, plan)
    assert len(said) == 1
    np.testing.assert_array_equal(losses.failed, mean > 0.1)
    np.testing.assert_array_equal(losses.info["warned"], mean < -0.1)
    assert 0 < losses.failed.sum() < 20 > losses.info["warned"].sum() > 0
    with pytest.raises(ValueError, match=r"the estimator raised an error .*\(ArithmeticError: the mean\)"):
        _ = losses.g
    assert losses.without_failed().resamples == (mean <= 0.1).sum()


class Slow(DecisionTreeRegressor):
    """Takes so long that other processes are started."""

    def fit(self, x, y, sample_weight=None):
        time.sleep(0.6)
        return super().fit(x, y, sample_weight)


@pytest.mark.slow
def test_numbers_do_not_depend_on_processes():
    data, plan = numbers(), resample.bootstrap(KEY, 40, 5)
    found = {
        (made, jobs): jg.assess(KEY, learn.External(made(), jobs), data, plan, keep="predictions").predictions
        for made, jobs in ((DecisionTreeRegressor, 1), (DecisionTreeRegressor, 2), (Slow, None))
    }
    for predictions in found.values():
        np.testing.assert_array_equal(predictions, found[DecisionTreeRegressor, 1])


def test_numbers_do_not_depend_on_chunks_parts_or_what_is_kept(tmp_path):
    data, plan, forest = numbers(), resample.bootstrap(KEY, 40, 7), learn.External(RandomForestRegressor(2), jobs=1)
    whole = jg.assess(KEY, forest, data, plan)
    for options in ({"chunk": 3}, {"part": 2}, {"keep": "rows"}, {"keep": "predictions", "progress": False}):
        np.testing.assert_array_equal(jg.assess(KEY, forest, data, plan, **options).g, whole.g)
    with ThreadPoolExecutor(2) as executor:
        elsewhere = jg.assess(KEY, forest, data, plan, part=3, executor=executor)
    np.testing.assert_array_equal(elsewhere.values, whole.values)
    lazy = resample.bootstrap(KEY, 40, 40, lazy=True)
    some = jg.assess(KEY, forest, data, lazy, part=10, standard_error=1e3)
    assert some.resamples == 30  # the fewest of which a standard error is believed, in whole parts
    np.testing.assert_array_equal(some.g, jg.assess(KEY, forest, data, lazy).g[:30])


def test_a_run_on_disk_goes_on_and_asks_for_the_same_estimator(tmp_path):
    data, plan, forest = numbers(), resample.bootstrap(KEY, 40, 6), learn.External(RandomForestRegressor(2), jobs=1)
    kept = jg.assess(KEY, forest, data, plan, store=tmp_path / "run", part=2)
    parts = sorted((tmp_path / "run").glob("part-*.npz"))
    assert len(parts) == 3
    parts[1].unlink()
    again = jg.assess(KEY, learn.External(RandomForestRegressor(2)), data, plan, store=tmp_path / "run")
    np.testing.assert_array_equal(again.values, kept.values)
    np.testing.assert_array_equal(jg.store.open(tmp_path / "run").losses().g, kept.g)
    assert "version of sklearn" in jg.store.open(tmp_path / "run").asked
    with pytest.raises(ValueError, match="learner"):
        jg.assess(KEY, learn.External(RandomForestRegressor(3)), data, plan, store=tmp_path / "run")
    jg.store.save(kept, tmp_path / "losses.npz")
    assert jg.store.load(tmp_path / "losses.npz").info["error"].tolist() == [""] * 6


@pytest.mark.slow
def test_parts_are_computed_by_other_processes():
    data, plan, forest = numbers(), resample.bootstrap(KEY, 40, 4), learn.External(RandomForestRegressor(2))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        losses = jg.assess(KEY, forest, data, plan, part=2, executor=executor)
    np.testing.assert_array_equal(losses.values, jg.assess(KEY, forest, data, plan).values)


def test_what_an_executor_is_sent_can_be_pickled():
    executors.check_executor(ThreadPoolExecutor(1), learn.External(GaussianNB()))
    copied = pickle.loads(pickle.dumps(learn.External(GaussianNB(), jobs=2)))
    assert copied == learn.External(GaussianNB())


def test_new_cases_are_predicted_by_the_same_rows():
    data, plan, forest = numbers(), resample.leave_out(KEY, 40, 0.25, 3), learn.External(RandomForestRegressor(2))
    new = RANDOM.normal(size=(5, 3))
    found = jg.predict(KEY, forest, data, plan, new)
    np.testing.assert_array_equal(found.cases, jg.assess(KEY, forest, data, plan, keep="predictions").predictions)
    fitted = forest.seeded(KEY, 1).fit(data.x[plan.train[1] > 0], data.y[plan.train[1] > 0, 0])
    np.testing.assert_array_equal(found.new[1, :, 0], fitted.predict(new))


def twice(x):
    return 2 * x


def thrice(x):
    return 3 * x


def test_estimators_are_values():
    forest = RandomForestClassifier(5, max_depth=3)
    learner = learn.External(forest)
    assert learner == learn.External(RandomForestClassifier(5, max_depth=3), jobs=3)
    assert hash(learner) == hash(learn.External(RandomForestClassifier(5, max_depth=3)))
    assert repr(learner) == "External(RandomForestClassifier(max_depth=3, n_estimators=5))"
    others = [
        learn.External(RandomForestClassifier(6, max_depth=3)),
        learn.External(RandomForestRegressor(5, max_depth=3)),
        learn.External(forest, repeat=True),
        learn.External(make_pipeline(StandardScaler(), forest)),
        learn.External(make_pipeline(FunctionTransformer(twice), forest)),
        learn.External(make_pipeline(FunctionTransformer(thrice), forest)),
        learn.External(GaussianNB(priors=np.array([0.5, 0.5]))),
        learn.External(GaussianNB(priors=np.array([0.4, 0.6]))),
        learn.External(GridSearchCV(forest, {"max_depth": [1, 2]})),
        learn.External(GridSearchCV(forest, {"max_depth": [1, 3]})),
    ]
    assert len({learner, *others}) == len(others) + 1
    forest.set_params(n_estimators=50)
    assert learner.estimator.n_estimators == 5
    jg.assess(KEY, learner, classes(), resample.full(60), loss.zero_one)
    assert not hasattr(learner.estimator, "classes_")


def test_seeds_reach_every_random_state_inside():
    nested = learn.External(make_pipeline(StandardScaler(), RandomForestRegressor(2, random_state=0)))
    seeds = {nested.seeded(KEY, r, q)[-1].random_state for r in range(3) for q in range(2)}
    assert len(seeds) == 6
    assert 0 not in seeds
    assert nested.seeded(KEY, 1)[-1].random_state == nested.seeded(KEY, 1)[-1].random_state


class Wrong(BaseEstimator):
    """Predicts two numbers for one."""

    def fit(self, x, y):
        return self

    def predict(self, x):
        return np.zeros((len(x), 2))


class Others(ClassifierMixin, BaseEstimator):
    """Knows classes of its own."""

    def fit(self, x, y):
        self.classes_ = np.array([0, 9])
        return self

    def predict(self, x):
        return np.zeros(len(x))


@pytest.mark.parametrize(
    ("estimator", "data", "said"),
    [(Wrong(), numbers(), r"expected predictions \[40, 1\]"), (Others(), classes(), "estimator of the classes")],
    ids=["shape", "classes"],
)
def test_what_an_estimator_predicts_is_checked(estimator, data, said):
    losses = jg.assess(KEY, learn.External(estimator), data, resample.full(data.n))
    assert losses.failed.all()
    with pytest.raises(ValueError, match=said):
        _ = losses.g


def test_missing_inputs_are_for_estimators_that_take_them():
    whole = numbers()
    x = np.where(RANDOM.random(whole.x.shape) < 0.1, np.nan, whole.x)
    data, plan = datasets.from_arrays(x, whole.y, missing="keep"), resample.leave_out(KEY, 40, 0.25, 3)
    for estimator in (make_pipeline(SimpleImputer(), LinearRegression()), DecisionTreeRegressor()):
        learner = learn.External(estimator)
        losses = jg.assess(KEY, learner, data, plan, keep="predictions")
        fitted = by_hand(learner, data, plan, lambda e, x, y, w: e.fit(x[w > 0], y[w > 0, 0]))
        np.testing.assert_array_equal(losses.predictions, fitted)
    imputed = jg.assess(KEY, learn.Imputed(learn.LeastSquares()), data, plan)
    pipeline = learn.External(make_pipeline(SimpleImputer(), LinearRegression()))
    np.testing.assert_allclose(jg.assess(KEY, pipeline, data, plan).g, imputed.g, rtol=1e-8)  # two solutions
    with pytest.raises(ValueError, match="expected an estimator that accepts missing inputs"):
        jg.assess(KEY, learn.External(LinearRegression()), data, plan)
    with pytest.raises(TypeError, match="traced by JAX"):
        jg.assess(KEY, learn.Imputed(learn.External(LinearRegression())), data, plan)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: learn.External(None), TypeError, "expected an estimator with the methods fit, predict"),
        (lambda: learn.External("forest"), TypeError, "got 'forest'"),
        (lambda: learn.External(StandardScaler()), TypeError, "expected an estimator with the methods fit, predict"),
        (lambda: learn.External(LinearRegression), TypeError, "write LinearRegression()"),
        (lambda: learn.External(learn.Mean()), TypeError, "use it without External"),
        (lambda: learn.External(LinearRegression(), jobs=0), ValueError, "expected jobs to be a whole number"),
        (lambda: learn.External(LinearRegression(), jobs=-1), ValueError, "leave it out for all cores"),
        (lambda: learn.External(LinearRegression(), repeat=1), ValueError, "expected repeat to be True or False"),
        (
            lambda: jg.assess(KEY, LinearRegression(), numbers(), resample.full(40)),
            TypeError,
            r"use learn.External(LinearRegression(...))",
        ),
        (
            lambda: jg.assess(KEY, learn.External(SVC()), numbers(), resample.full(40)),
            ValueError,
            "which is a classifier, got the numbers",
        ),
        *(
            (
                lambda wrap=wrap: jg.assess(
                    KEY, wrap(learn.External(LinearRegression())), numbers(), resample.full(40)
                ),
                TypeError,
                "make_pipeline(StandardScaler(), estimator)",
            )
            for wrap in (
                learn.Normalised,
                learn.EarlyStopped,
                learn.Ensemble,
                lambda base: learn.Tuned((base, learn.Mean())),
                lambda base: learn.Tuned(base, {"repeat": (True, False)}),
            )
        ),
        (lambda: learn.check(learn.External(LinearRegression())), TypeError, "traced by JAX"),
        (
            lambda: jg.algebraic.full_fit(KEY, learn.External(LinearRegression()), numbers()),
            TypeError,
            "is trained on the host",
        ),
        (lambda: learn.External(LinearRegression()).seeded(3), TypeError, "write jax.random.key(3)"),
    ],
)
def test_misuse_gets_one_sentence(call, kind, said, own_messages):
    with pytest.raises(kind) as error:
        call()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_logistic_regressions_agree():
    data, plan = classes(kinds=2), resample.leave_out(KEY, 60, 0.25, 3)
    outside = learn.External(LogisticRegression(C=1.0, tol=1e-10))
    external = jg.assess(KEY, outside, data, plan, loss.cross_entropy)
    own = jg.assess(KEY, learn.Logistic(ridge=2.0), data, plan, loss.cross_entropy)  # two columns have half the ridge
    np.testing.assert_allclose(external.values, own.values, rtol=1e-4)  # lbfgs stops there
