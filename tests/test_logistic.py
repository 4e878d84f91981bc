"""Logistic and softmax regression: the battery of all learners, scikit-learn and statsmodels as outside values, and
every way to fail.
"""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import linprog, minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from jaxgen import Data, assess, datasets, resample
from jaxgen.learn import Normalised, logistic_rows, softmax
from jaxgen.learn.bases import nearly_orthonormal_if_easy, orthonormal_columns, orthonormal_if_easy
from jaxgen.learn.coordinates import MatrixRidge, ScaledRidge, SpanRidge
from jaxgen.learn.logistic import Logistic
from jaxgen.learn.logistic_fit import LinearClassifier
from jaxgen.learn.shrinkage import Span
from jaxgen.loss import cross_entropy, squared
from jaxgen.types import as_learner

CASES = [
    (Logistic(ridge=0.0), 1),
    (Logistic(ridge=0.0), 3),
    (Logistic(ridge=1.0), 2),
    (Logistic(ridge=1.0), 3),
    (Logistic(ridge=0.3, intercept=False), 3),
]
"""Learners, each with one column of zeros and ones, with two classes or with three."""
EXACT = {np.dtype("float32"): 2e-5, np.dtype("float64"): 1e-9}
"""Error allowed of a probability: Newton's method stops at a few roundings of the logits, up to 10 here, times a
moderate condition number; in double precision the last step, below 1e-8 of the largest logit, leaves its square.
"""


def problem(outputs, seed=0, n=60, d=3, sets=None):
    """Overlapping classes of inputs with different units; y has one column of zeros and ones, or one per class."""
    random = np.random.default_rng(seed)
    shape = (n,) if sets is None else (sets, n)
    x = random.normal(size=(*shape, d)) * [1, 10, 0.1, 1, 3][:d] + 2
    classes = max(outputs, 2)
    logits = (x - 2) / [1, 10, 0.1, 1, 3][:d] @ random.normal(size=(d, classes)) + random.gumbel(size=(*shape, classes))
    y = np.eye(classes)[logits.argmax(-1)]
    return Data(x, y[..., :1] if outputs == 1 else y, tuple(f"x{i}" for i in range(d)), task="classification")


@partial(jax.jit, static_argnums=0)
def train(learner, x, y, w, at):
    params = learner.fit(jax.random.key(0), x, y, w)
    return params, learner.predict(params, at)


def filled(a, places):
    """The array with rows of zeros up to a number of rows that is a multiple of the places."""
    return np.pad(a, ((0, -len(a) % places), *[(0, 0)] * (np.ndim(a) - 1)))


def trained(learner, x, y, w, at=None, places=64):
    """A fit and its probabilities at the cases `at`; absent cases fill the places, so few programs are compiled."""
    at = x if at is None else at
    params, probabilities = train(learner, *(filled(a, places) for a in (x, y, w)), filled(at, 64))
    return params, np.asarray(probabilities)[: len(at)]


def fit(learner, x, y, w):
    return trained(learner, x, y, w)[0]


def fitted(learner, x, y, w, at, places=64):
    """Probabilities of one fit to (x, y, w) at other cases; the fit must have converged."""
    params, probabilities = trained(learner, x, y, w, at, places)
    assert params.trouble == 0
    return probabilities


@pytest.fixture(params=[1, 2, 3], ids=["one column", "two classes", "three classes"])
def outputs(request):
    return request.param


def close(a, b, dtype, times=1):
    np.testing.assert_allclose(a, b, rtol=0, atol=times * EXACT[dtype])


battery = pytest.mark.parametrize(("learner", "outputs"), CASES, ids=repr)


@battery
def test_weight_zero_is_absence_even_of_nan(learner, outputs, dtype):
    data = problem(outputs)
    x, y = data.x.astype(dtype), data.y.astype(dtype)
    w = (np.arange(60) % 4 > 0).astype(dtype)
    used = w > 0
    want = fitted(learner, x[used], y[used], w[used], x, places=45)
    close(fitted(learner, x, y, w, x), want, dtype)
    for bad in (np.nan, np.inf, -np.inf):
        close(fitted(learner, np.where(used[:, None], x, bad), np.where(used[:, None], y, bad), w, x), want, dtype)


@battery
def test_weight_two_is_the_case_twice(learner, outputs, dtype):
    data = problem(outputs, 1, n=45)
    x, y = data.x.astype(dtype), data.y.astype(dtype)
    w = 1 + (np.arange(45) % 3 == 0)
    twice = np.repeat(np.arange(45), w)
    close(fitted(learner, x, y, w.astype(dtype), x), fitted(learner, x[twice], y[twice], np.ones(60, dtype), x), dtype)


@battery
def test_order_of_cases_does_not_matter(learner, outputs, dtype):
    data = problem(outputs, 2)
    x, y, w = data.x.astype(dtype), data.y.astype(dtype), (1 + np.arange(60) % 2).astype(dtype)
    order = np.random.default_rng(0).permutation(60)
    close(fitted(learner, x, y, w, x), fitted(learner, x[order], y[order], w[order], x), dtype)


@battery
def test_the_engine_gives_what_a_loop_over_slices_gives(learner, outputs, dtype):
    """Rows on gathered cases with weights from 0 to 5, where the slices repeat a case; rows with masks are those of
    the separable cases below.
    """
    data = problem(outputs, 3)
    x, y = data.x.astype(dtype), data.y.astype(dtype)
    plan = resample.bootstrap(jax.random.key(5), 60, 12)
    losses = assess(jax.random.key(0), learner, data, plan, squared)
    for j, weights in enumerate(plan.train):
        rows = np.repeat(np.arange(60), weights)
        want = np.sum((y - fitted(learner, x[rows], y[rows], np.ones(len(rows), dtype), x)) ** 2, axis=-1)
        close(
            losses.values[j], want, dtype, times=4
        )  # 2 |y - p| times the error of a probability, summed over the classes
    assert losses.info["weights"].shape == (12, 3, outputs)
    assert losses.info["intercept"].shape == (12, outputs)
    assert losses.info["steps"].max() <= 12


@pytest.mark.devices
def test_every_data_set_gets_its_own_answer(dtype):
    data = problem(3, 4, sets=4)
    plan = resample.leave_out(jax.random.key(1), 60, 0.25, 5, sets=4)
    together = assess(jax.random.key(2), Logistic(ridge=0.0), data, plan, squared)
    assert together.g.shape == (4, 5)
    for q in range(4):
        close(
            together.values[q],
            assess(jax.random.key(2), Logistic(ridge=0.0), data[q], plan[q], squared).values,
            dtype,
            times=4,
        )


@pytest.mark.parametrize("learner", dict(CASES), ids=repr)
def test_a_learner_is_a_value(learner):
    again = eval(repr(learner))
    assert again == learner
    assert hash(again) == hash(learner)
    assert len({*dict(CASES), again}) == 3


@pytest.mark.parametrize(("ridge", "intercept"), [(0.01, True), (1.0, False), (30.0, True)])
def test_weighted_fits_are_those_of_scikit_learn(outputs, ridge, intercept, dtype):
    """Two columns split one difference of weights in halves, so their ridge counts half of that of scikit-learn's one
    vector.
    """
    data = problem(outputs, 5)
    x, y, w = data.x.astype(dtype), data.y.astype(dtype), (1 + np.arange(60) % 3).astype(dtype)
    labels = data.y[:, 0] if outputs == 1 else data.y.argmax(1)
    peer = LogisticRegression(
        C=(2 if outputs == 2 else 1) / ridge,
        fit_intercept=intercept,
        solver="newton-cholesky" if outputs < 3 else "lbfgs",
        tol=1e-12,
        max_iter=10_000,
    )
    if outputs == 3:  # lbfgs needs inputs of one size, which changes the ridge: so both get them
        x = ((data.x - 2) / [1, 10, 0.1]).astype(dtype)
    peer.fit(x.astype(float), labels, sample_weight=w)
    learner = Logistic(ridge=ridge, intercept=intercept)
    want = peer.predict_proba(x.astype(float))
    # lbfgs stops at 1e-8 or so in double precision
    got = fitted(learner, x, y, w, x)
    np.testing.assert_allclose(
        got, want[:, 1:] if outputs == 1 else want, rtol=0, atol=max(EXACT[dtype], 1e-6 if outputs == 3 else 0)
    )
    weights = np.asarray(fit(learner, x, y, w).weights)
    coef = peer.coef_.T if outputs != 2 else peer.coef_.T * [[-0.5, 0.5]]
    np.testing.assert_allclose(
        weights, coef, rtol=0, atol=max(10 * EXACT[dtype], 1e-5 if outputs == 3 else 0) * np.abs(coef).max()
    )


def test_maximum_likelihood_is_that_of_statsmodels(outputs, dtype):
    data = problem(outputs, 6)
    x, y, w = data.x.astype(dtype), data.y.astype(dtype), 1 + np.arange(60) % 3
    cases = np.repeat(np.arange(60), w)
    design = sm.add_constant(x.astype(float))
    labels = data.y[:, 0] if outputs == 1 else data.y.argmax(1)
    model = sm.MNLogit if outputs == 3 else sm.Logit
    peer = model(labels[cases], design[cases]).fit(method="newton", tol=1e-12, maxiter=100, disp=False)
    want = peer.predict(design)
    want = want[:, None] if outputs == 1 else np.stack([1 - want, want], axis=1) if outputs == 2 else want
    close(fitted(Logistic(ridge=0.0), x, y, w.astype(dtype), x), want, dtype)
    params = fit(Logistic(ridge=0.0), x, y, w.astype(dtype))
    coefficients = np.concatenate([np.asarray(params.intercept)[None], np.asarray(params.weights)])
    if outputs > 1:
        np.testing.assert_allclose(coefficients.sum(1), 0, atol=EXACT[dtype] * np.abs(coefficients).max())
        coefficients = coefficients[:, 1:] - coefficients[:, :1]
    np.testing.assert_allclose(
        coefficients,
        np.reshape(peer.params, coefficients.shape),
        rtol=0,
        atol=10 * EXACT[dtype] * np.abs(peer.params).max(),
    )
    assert params.converged
    # the residuals are known to eps times the largest logit, 10 or less
    assert params.gradient < 20 * np.finfo(dtype).eps


def test_units_do_not_matter_even_to_single_precision(dtype):
    """Columns of width 1e-6 and 1e5, one of them far from 0: numbers of 24 bits tell a year from 2000 on to 1e-4 only,
    so x is rounded first.

    A probability then depends on weight * 2000, known to 2000 / 10 * 6e-8 logits = 1e-5; 1e-4 with several such terms.
    """
    data = problem(1, 7)
    x = (((data.x - 2) / [1, 10, 0.1]) * [1e-6, 1e5, 10] + [0, 0, 2000]).astype(np.float32).astype(float)
    got = fitted(Logistic(ridge=0.0), x.astype(dtype), data.y.astype(dtype), np.ones(60, dtype), x.astype(dtype))
    design = sm.add_constant((x - [0, 0, 2000]) / [1e-6, 1e5, 10])
    want = sm.Logit(data.y[:, 0], design).fit(method="newton", tol=1e-12, disp=False).predict(design)[:, None]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("standardised", [True, False])
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_real_data_in_both_precisions(ridge, standardised, dtype):
    """breast_cancer has inputs from 1e-3 to 1e3, of condition number 1e6 in their units; measured errors 1e-5 and
    1e-11.

    Allowed is the rounding of logits of up to 100: 100 * 6e-8 * a few, and in double precision what scikit-learn
    reaches.
    """
    data = datasets.breast_cancer()
    x = (data.x - data.x.mean(0)) / data.x.std(0) if standardised else data.x
    x = x.astype(np.float32).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of ill-conditioned inputs
        peer = LogisticRegression(C=2 / ridge, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(x, data.y[:, 1])
    got = fitted(Logistic(ridge=ridge), x.astype(dtype), data.y.astype(dtype), np.ones(569, dtype), x.astype(dtype))
    np.testing.assert_allclose(got, peer.predict_proba(x), rtol=0, atol=5e-5 if dtype == np.float32 else 1e-9)


def test_accuracy_of_breast_cancer_is_that_of_scikit_learn(dtype):
    """The same folds, so the same classes but for cases with a probability within rounding of 1/2: none here."""
    data = datasets.breast_cancer()
    data = Data((data.x - data.x.mean(0)) / data.x.std(0), data.y, data.names, data.target, data.task, data.classes)
    plan = resample.k_fold(jax.random.key(3), data.n, folds=10, strata=data.y[:, 1])

    def wrong(y, prediction):
        return (jnp.argmax(y, axis=-1) != jnp.argmax(prediction, axis=-1)).astype(y.dtype)

    losses = assess(jax.random.key(0), Logistic(ridge=2.0), data, plan, wrong)
    labels = data.y.argmax(1)
    want = [
        1
        - LogisticRegression(C=1.0, solver="newton-cholesky")
        .fit(data.x[train > 0], labels[train > 0])
        .score(data.x[test > 0], labels[test > 0])
        for train, test in zip(plan.train, plan.test, strict=True)
    ]
    np.testing.assert_allclose(losses.g, want, rtol=0, atol=1e-7)  # a mean of zeros and ones
    assert losses.g.mean() < 0.03


@pytest.mark.parametrize("classes", [3, 10])
def test_many_unknowns_are_solved_by_conjugate_gradients(classes, dtype):
    """26 x 3 and 26 x 10 classes: 52 unknowns are eliminated, 234 found by conjugate gradients; both at the minimum, by
    their gradient: 20 roundings of the residuals, or what conjugate gradients may leave, 1e-9 of the largest logit.
    """
    random = np.random.default_rng(8)
    x = random.normal(size=(400, 25))
    y = np.eye(classes)[(x[:, :1] * random.normal(size=(1, classes)) + random.gumbel(size=(400, classes))).argmax(1)]
    data = Data(x, y, tuple(f"x{i}" for i in range(25)), task="classification")
    losses = assess(
        jax.random.key(0), Logistic(ridge=1.0), data, resample.k_fold(jax.random.key(0), 400, folds=4), squared
    )
    assert not losses.failed.any()
    params = fit(Logistic(ridge=1.0), x.astype(dtype), y.astype(dtype), np.ones(400, dtype))
    eps = np.finfo(dtype).eps
    least = 20 * eps if classes == 3 else max(20 * eps, 1e-9)
    assert params.gradient < least
    probability = np.asarray(Logistic(ridge=0.0).predict(params, jnp.asarray(x.astype(dtype))), np.float64)
    # the gradient of the objective by hand; its terms add up to about 400
    np.testing.assert_allclose(x.T @ (probability - y) + np.asarray(params.weights, np.float64), 0, atol=400 * least)
    np.testing.assert_allclose((probability - y).sum(0), 0, atol=400 * least)


def border(n=40, seed=0):
    """Classes of one input x0 that overlap only through case 0: without it a threshold tells them apart."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 2))
    x[:, 0] += np.where(x[:, 0] > 0, 0.1, -0.1)
    y = (x[:, :1] > 0).astype(float)
    x[0, 0], y[0] = 0.7, 0.0
    x[1, 0], y[1] = 1.5, 1.0
    x[:, 1] = np.where(np.arange(n) % 2, 1, -1) * np.abs(x[:, 1])
    return Data(x, y, ("x0", "x1"), task="classification")


@pytest.mark.devices
@pytest.mark.parametrize("one_hot", [False, True])
def test_separable_rows_fail_with_their_reason_and_spoil_no_neighbour(one_hot, dtype):
    data = border()
    if one_hot:
        data = Data(data.x, np.hstack([1 - data.y, data.y]), data.names, task="classification")
    losses = assess(jax.random.key(0), Logistic(ridge=0.0), data, resample.leave_one_out(40), squared)
    assert losses.failed.tolist() == [j == 0 for j in range(40)]
    with pytest.raises(
        ValueError,
        match=r"1 failed of 40 for Logistic\(ridge=0.0\) on .*row 0: its training cases are separable by their "
        r"inputs .*ridge > 0.*without_failed",
    ):
        _ = losses.g
    x, y = data.x.astype(dtype), data.y.astype(dtype)
    for j in (1, 17, 39):
        rows = np.delete(np.arange(40), j)
        want = np.sum((y - fitted(Logistic(ridge=0.0), x[rows], y[rows], np.ones(39, dtype), x)) ** 2, axis=-1)
        close(losses.values[j], want, dtype, times=4)
    assert np.isfinite(losses.values).all()
    assert losses.info["steps"][0] < 20  # it stops at the first step that separates
    assert not assess(jax.random.key(0), Logistic(ridge=0.1), data, resample.leave_one_out(40), squared).failed.any()


def test_classes_that_touch_on_the_border_fail_as_separable(dtype):
    """Quasi-complete separation (Albert & Anderson 1984): both classes at x = 0, else apart; no step separates all
    cases.
    """
    x = np.array([-3.0, -2, -1, 0, 0, 0, 0, 1, 2, 3])[:, None]
    y = np.array([0.0, 0, 0, 0, 1, 0, 1, 1, 1, 1])[:, None]
    for inputs, targets in ((x, y), (1000 + x, y), (x, np.hstack([y, 1 - y]))):
        params = fit(Logistic(ridge=0.0), inputs.astype(dtype), targets.astype(dtype), np.ones(10, dtype))
        assert "separable" in Logistic.failures[int(params.trouble) - 1]
        assert np.isfinite(params.weights).all()
    both = Data(np.vstack([x, x + 0.5]), np.vstack([y, y[::-1]]), ("x",), task="classification")
    train = np.stack([np.arange(20) < 10, np.ones(20, bool)]).astype(np.uint8)
    losses = assess(
        jax.random.key(0), Logistic(ridge=0.0), both, resample.from_weights(train, np.ones_like(train)), squared
    )
    assert losses.failed.tolist() == [True, False]


@pytest.mark.parametrize(("ridge", "outputs"), [(0.0, 1), (1.0, 2), (0.0, 3), (1.0, 3)])
def test_rows_without_a_class_fail_with_their_reason_and_spoil_no_neighbour(ridge, outputs, dtype):
    data = problem(outputs, 9)
    label = data.y.argmax(1) if outputs > 1 else data.y[:, 0]
    train = np.ones((12, 60), np.uint8)
    train[3] = label == 1  # one class only
    train[7] = label != 0  # all but one class
    train[np.arange(12), np.arange(12)] = 0
    losses = assess(jax.random.key(0), Logistic(ridge=ridge), data, resample.from_weights(train, 1 - train), squared)
    assert np.flatnonzero(losses.failed).tolist() == [3, 7]
    with pytest.raises(
        ValueError,
        match="row 3: a class has no training case, so the intercept has no finite value .*row 7: "
        "a class has no training case",
    ):
        _ = losses.g
    assert np.isnan(losses.values[[3, 7]]).all()
    assert (losses.info["steps"][[3, 7]] == 0).all()
    x, y, w = data.x.astype(dtype), data.y.astype(dtype), train.astype(dtype)
    for j in (2, 4, 11):
        close(
            losses.values[j], np.sum((y - fitted(Logistic(ridge=ridge), x, y, w[j], x)) ** 2, axis=-1), dtype, times=4
        )


def test_a_ridge_without_an_intercept_needs_no_second_class(dtype):
    """All weights are penalised, so there is a minimum; that of scikit-learn cannot be asked, so the gradient is."""
    x = np.random.default_rng(0).normal(size=(20, 2)).astype(dtype) + 1
    params = fit(Logistic(ridge=1.0, intercept=False), x, np.ones((20, 1), dtype), np.ones(20, dtype))
    assert params.converged
    p = 1 / (1 + np.exp(-(x @ np.asarray(params.weights))))
    np.testing.assert_allclose(
        x.T @ (p - 1) + np.asarray(params.weights), 0, atol=200 * np.finfo(dtype).eps
    )  # sums of 20 terms of size 1


def test_dependent_inputs_fail_with_their_reason(dtype):
    data = problem(2, 10)
    x = np.hstack([data.x, np.zeros((60, 1))])
    x[5, 3] = 1.0  # without case 5 this column is constant
    twice = np.hstack([data.x, data.x[:, :1] - 3 * data.x[:, 1:2]])
    plan = resample.leave_one_out(60)
    for inputs, failed in ((x, [5]), (twice, list(range(60)))):
        case = Data(inputs, data.y, tuple("abcd"), task="classification")
        losses = assess(jax.random.key(0), Logistic(ridge=0.0), case, plan, squared)
        assert {int(code) - 1 for code in losses.failure[failed]} == {4}
        assert "linearly dependent" in losses.reasons[4]
        assert not assess(jax.random.key(0), Logistic(ridge=1.0), case, plan, squared).failed.any()


def test_too_few_steps_are_said(dtype):
    data = problem(1, 11)
    losses = assess(jax.random.key(0), Logistic(ridge=0.0, steps=2), data, resample.leave_one_out(60), squared)
    assert losses.failed.all()
    with pytest.raises(ValueError, match="Newton's method did not converge .raise steps"):
        _ = losses.g


def separable(x, y):
    """Whether a linear programme finds weights that put no case on the wrong side and some on the right one (Albert &
    Anderson 1984).
    """
    targets = y if y.shape[1] > 1 else np.hstack([y, 1 - y])
    design = np.hstack([np.ones((len(x), 1)), x])
    true, other = targets[:, None, :], np.eye(targets.shape[1])[None]
    margins = ((true - other)[..., None] * design[:, None, None, :]).reshape(-1, other.shape[1] * design.shape[1])
    return linprog(-margins.sum(0), A_ub=-margins, b_ub=np.zeros(len(margins)), bounds=(-1, 1)).fun < -1e-7


def test_it_converges_just_where_a_linear_programme_says_that_there_is_a_minimum(outputs, dtype):
    """200 small sets each, half of them on a grid, where classes often touch on a border (quasi-complete
    separation).
    """
    random = np.random.default_rng(0)
    n, classes = (25, 3) if outputs == 3 else (14, 2)
    x = np.stack([random.integers(-2, 3, size=(n, 2)) if i % 2 else random.normal(size=(n, 2)) for i in range(200)])
    y = np.eye(classes)[
        (x @ random.normal(size=(200, 2, classes)) * 2 + random.gumbel(size=(200, n, classes))).argmax(-1)
    ][..., : outputs if outputs > 1 else 1]
    x, y, w = x.astype(dtype), y.astype(dtype), jnp.ones(n, dtype)
    fits = jax.jit(jax.vmap(lambda x, y: Logistic(ridge=0.0).fit(jax.random.key(0), x, y, w)))(x, y)
    want = np.array([separable(a, b) for a, b in zip(x, y, strict=True)])
    assert 20 < want.sum() < 180
    np.testing.assert_array_equal(np.asarray(fits.trouble) > 0, want)
    assert not np.any(fits.trouble == 1)  # the reason given is the right one: separable, or a class is missing
    assert np.all(fits.gradient[~want] < 20 * np.finfo(dtype).eps)


def test_newton_steps_are_halved_where_full_ones_diverge(dtype):
    """Twelve cases, found by search, from which plain Newton's method runs away after five steps; SciPy's BFGS
    minimises what it should.

    BFGS stops at a gradient of 1e-8, here 1e-6 in a probability.
    """
    x = np.array(
        [[1, 1], [1, 2], [10, -96], [0, -1], [1, 3], [-85, -3], [1, 1], [1, 0], [2, 2], [0, 3], [-3, 8], [3, 0]], dtype
    )
    y = np.array([1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1], dtype)[:, None]
    design, targets = np.hstack([np.ones((12, 1)), x]), y[:, 0].astype(float)
    plain = np.zeros(3)
    for _ in range(7):
        p = expit(design @ plain)
        plain = plain - np.linalg.solve((design.T * (p * (1 - p))) @ design, design.T @ (p - targets))
    assert np.abs(design @ plain).max() > 1e6
    scale = np.abs(design).max(0)

    def objective(coefficients):
        logits = design / scale @ coefficients
        return np.sum(np.logaddexp(0, logits) - targets * logits), (design / scale).T @ (expit(logits) - targets)

    want = minimize(objective, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 10_000}).x
    got = fitted(Logistic(ridge=0.0), x, y, np.ones(12, dtype), x)
    np.testing.assert_allclose(got[:, 0], expit(design / scale @ want), rtol=0, atol=max(EXACT[dtype], 1e-6))


def test_what_it_cannot_learn_from_is_refused():
    data, plan = problem(3), resample.leave_one_out(60)
    key = jax.random.key(0)
    half = data.y.copy()
    half[7, 1] = 0.5
    both = data.y.copy()
    both[4] = 1
    for learner, y, message in (
        (
            Logistic(ridge=0.0),
            half,
            r"expected targets of zeros and ones for Logistic\(ridge=0.0\), got 0.5 in case 7; read the data",
        ),
        (Logistic(ridge=0.0), both, "expected one class for every case, got 3 of 3 in case 4; give one column"),
        (Logistic(ridge=-1.0), data.y, "expected the ridge to be a finite number of at least 0, got -1.0; give 0"),
        (Logistic(ridge=float("nan")), data.y, "expected the ridge to be a finite number of at least 0, got nan"),
        (Logistic(steps=0), data.y, "expected the Newton steps to be a whole number from 1 to 2147483647, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            assess(key, learner, Data(data.x, y, data.names), plan)


@partial(jax.jit, static_argnums=0)
def train_rows(learner, x, y, w):
    fits, trusted = learner.fit_rows(jax.random.split(jax.random.key(0), len(w)), x, y, w, None)
    return jax.vmap(learner.predict, in_axes=(0, None))(fits, x), fits, trusted


@pytest.mark.parametrize(
    ("outputs", "d", "ridge"), [(1, 3, 0.0), (3, 3, 1.0), (4, 25, 1.0), (1, 70, 1.0)], ids=["1", "3", "4x25", "1x70"]
)
def test_rows_on_one_basis_are_rows_on_their_own(outputs, d, ridge, dtype):
    """Masks and counts; 4 x 25 and 1 x 70 have more than 64 unknowns."""
    random = np.random.default_rng(5)
    x = random.normal(size=(150, d))
    classes = (x[:, :1] * np.arange(max(outputs, 2)) + random.gumbel(size=(150, max(outputs, 2)))).argmax(1)
    y = np.eye(max(outputs, 2))[classes][:, : None if outputs > 1 else 1]
    x, y = x.astype(dtype), y.astype(dtype)
    w = np.concatenate([random.random((3, 150)) < 0.7, random.poisson(1, (3, 150))]).astype(dtype)
    learner = Logistic(ridge=ridge)
    got, fits, trusted = train_rows(learner, x, y, w)
    assert trusted.all()
    assert not np.any(fits.trouble)
    want = [train(learner, x, y, row, x)[1] for row in w]
    np.testing.assert_allclose(got, want, rtol=0, atol=EXACT[dtype])


@pytest.mark.parametrize(
    "learner",
    [Logistic(), Logistic(ridge=0.01), Normalised(Logistic(), how="standard")],
    ids=["plain", "a weak ridge", "normalised"],
)
@pytest.mark.parametrize("much", [0, 1 << 30], ids=["one start", "from zero"])
def test_rows_of_many_classes_come_one_after_the_other(learner, much, monkeypatch):
    """9 classes of 8 inputs, 72 unknowns: a loop over the rows gives what rows side by side give."""
    monkeypatch.setattr(logistic_rows, "_MUCH", much)
    monkeypatch.setattr(softmax, "_FEWEST_ROUNDS", 4)
    random = np.random.default_rng(2)
    x = random.normal(size=(150, 8))
    y = np.eye(9)[(2 * x @ random.normal(size=(8, 9)) + random.gumbel(size=(150, 9))).argmax(1)]
    w, keys = (random.random((5, 150)) < 0.8).astype(float), jax.random.split(jax.random.key(0), 5)

    def trained(least):
        monkeypatch.setattr(logistic_rows, "_ALONE", least)
        program = jax.jit(lambda x, y, w: as_learner(learner).fit_rows(keys, x, y, w, None))
        fits, trusted = program(x, y, w)
        assert trusted.all()
        loops = str(jax.make_jaxpr(program)(x, y, w)).count("scan[")
        return loops, jax.vmap(as_learner(learner).predict, in_axes=(0, None))(fits, jnp.asarray(x))

    with jax.enable_x64(True):  # where steps are found in single precision
        (one, in_turn), (another, beside) = trained(0), trained(1 << 30)
    np.testing.assert_allclose(in_turn, beside, rtol=0, atol=EXACT[np.dtype(np.float64)])
    assert (one > another) == (jax.default_backend() == "cpu"), "their Gram matrices, and their fits"


@pytest.mark.parametrize("ridge", [1.0, 1e-3, 1e-12])
def test_rows_that_start_together_end_where_each_ends_alone(ridge, dtype, monkeypatch):
    """From a common start, in double precision with steps by products in single: a row whose curvature these do not
    show, as the least ridge leaves of separable classes, is not to be trusted, and no other is wrong.
    """
    monkeypatch.setattr(logistic_rows, "_MUCH", 0)
    random = np.random.default_rng(8)
    x = random.normal(size=(120, 24)).astype(dtype)
    y = np.eye(4)[(x @ random.normal(size=(24, 4)) + random.gumbel(size=(120, 4))).argmax(1)].astype(dtype)
    w, learner = (random.random((5, 120)) < 0.8).astype(dtype), Logistic(ridge=ridge, steps=200)
    keys = jax.random.split(jax.random.key(0), 5)
    fits, trusted = jax.jit(lambda x, y, w: learner.fit_rows(keys, x, y, w, None))(x, y, w)
    assert trusted.all() == (ridge > 1e-6)
    got = jax.vmap(learner.predict, in_axes=(0, None))(fits, jnp.asarray(x))[trusted]
    want = [train(learner, x, y, row, x)[1] for row in w[trusted]]
    # Conjugate gradients may leave 1e-9 of the largest logit, in two logits of both fits, of which a probability has a
    # quarter each.
    logits = np.einsum("nd,rdk->rnk", x, fits.weights[trusted]) + fits.intercept[trusted][:, None]
    left = 1e-9 * np.abs(logits).max(initial=0)
    np.testing.assert_allclose(got, np.reshape(want, got.shape), rtol=0, atol=max(EXACT[dtype], left))
    # Weights are sums of products of about 30 numbers, each rounded.
    rounding = 100 * np.finfo(dtype).eps * np.abs(fits.weights[trusted]).max(initial=0)
    np.testing.assert_allclose(fits.weights[trusted].sum(-1), 0, atol=rounding)


@pytest.mark.parametrize("standardised", [False, True])
def test_rows_of_a_basis_that_is_filled_up_are_those_of_scikit_learn(standardised):
    """30 inputs and 203 cases, which are no whole blocks; rows that begin together, by bootstrap weights.

    scikit-learn's Newton steps leave 1e-12, ours 1e-9 of the largest logit, here below 8.
    """
    random = np.random.default_rng(4)
    x = random.normal(size=(203, 30)) * np.geomspace(1, 20, 30)
    labels = (x[:, :10] / np.geomspace(1, 20, 30)[:10] + random.gumbel(size=(203, 10))).argmax(1)
    data = Data(x, np.eye(10)[labels], tuple(f"x{i}" for i in range(30)), task="classification")
    plan = resample.bootstrap(jax.random.key(5), 203, resamples=100)
    ridge = Logistic(ridge=1.0)
    info = assess(jax.random.key(0), Normalised(ridge, how="standard") if standardised else ridge, data, plan).info
    for row in (0, 41, 99):
        w = plan.train[row].astype(float)
        centre, scale = np.zeros(30), np.ones(30)
        if standardised:
            centre = np.average(x, axis=0, weights=w)
            scale = np.sqrt(np.average((x - centre) ** 2, axis=0, weights=w))
        units = (x - centre) / scale  # weights of a wrapped learner are told in its units
        peer = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=1000)
        want = peer.fit(units, labels, sample_weight=w).decision_function(units)
        got = units @ info["weights"][row] + info["intercept"][row]
        np.testing.assert_allclose(got, want - want.mean(1, keepdims=True), rtol=0, atol=8e-9)


@pytest.mark.parametrize("standardised", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_many_coefficients_are_those_of_scikit_learn(standardised):
    """Systems of 331 unknowns of a class are solved by blocks, and rows begin near the minimum for their mean."""
    random = np.random.default_rng(8)
    x, scale = random.normal(size=(420, 330)), np.geomspace(0.5, 2, 330)
    labels = (x @ random.normal(size=(330, 3)) / 330**0.5 + random.gumbel(size=(420, 3))).argmax(1)
    data = Data(
        x * scale, np.eye(3)[labels], tuple(map(str, range(330))), task="classification", classes=("a", "b", "c")
    )
    plan = resample.k_fold(jax.random.key(6), 420, 4)
    ridge = Logistic(ridge=5.0)
    learner = Normalised(ridge, how="standard") if standardised else ridge
    found = assess(jax.random.key(0), learner, data, plan, keep="predictions").predictions
    for row, train in zip(found, plan.train > 0, strict=True):
        inputs = (data.x - data.x[train].mean(0)) / data.x[train].std(0) if standardised else data.x
        peer = LogisticRegression(C=0.2, solver="newton-cholesky", tol=1e-10, max_iter=100)
        want = peer.fit(inputs[train], labels[train]).predict_proba(inputs)
        # Conjugate gradients leave 1e-9 of the largest logit; predictions are kept in single precision.
        np.testing.assert_allclose(row, want, rtol=0, atol=1e-6)


def test_rows_that_one_basis_does_not_suit_are_fitted_on_their_own(dtype):
    """A case far out leaves nothing of the others in the coordinates of all, but its row is fitted all the same."""
    data = problem(1, n=64)
    x = data.x.copy()
    x[0] *= 1e5
    data = Data(x, data.y, data.names, task="classification")
    plan = resample.k_fold(jax.random.key(0), 64, folds=16)
    _, _, trusted = train_rows(Logistic(ridge=1e-3), *(a.astype(dtype) for a in (data.x, data.y, plan.train)))
    assert not trusted[plan.train[:, 0] == 0].any()
    losses = assess(jax.random.key(0), Logistic(ridge=1e-3), data, plan, cross_entropy)
    far = np.flatnonzero(plan.train[:, 0] == 0)[0]
    peer = LogisticRegression(C=1e3, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    used, tested = plan.train[far] > 0, np.flatnonzero(plan.test[far] * (np.arange(64) > 0))
    probability = peer.fit(x[used], data.y[used, 0]).predict_proba(x[tested])[:, 1]
    want = -np.log(np.where(data.y[tested, 0] == 1, probability, 1 - probability))
    np.testing.assert_allclose(losses.values[far, tested], want, rtol=1e-6)  # where scikit-learn stops


@pytest.mark.parametrize("scaled", [False, True])
@jax.enable_x64(True)
def test_no_pivot_is_below_what_coordinates_say(scaled):
    """Of rows with counts for weights and scales of their own, by Cholesky's factors of NumPy."""
    random = np.random.default_rng(2)
    x = random.normal(size=(60, 20)) @ random.normal(size=(20, 20)) * np.geomspace(0.1, 10, 20) + 3
    for intercept in (True, False):
        classifier = LinearClassifier(2.0, intercept, 50)
        basis = classifier.basis(jnp.asarray(x), jnp.ones(60), orthonormal_columns).padded()
        w, scales = random.poisson(1, (6, 60)).astype(float), np.geomspace(0.5, 4, 120).reshape(6, 20)
        low, high = (jnp.asarray(scales.min(0)), jnp.asarray(scales.max(0))) if scaled else (1.0, 1.0)
        bound = float(basis.least_pivot(jnp.asarray(w), low, high))
        assert bound > 1e-6, "it says something"
        for row, scale in zip(w, scales, strict=True):
            own = basis.penalised_by(jnp.asarray(scale)) if scaled else basis
            cases = np.asarray(own.cases)
            gram = (cases * np.pad(row, (0, cases.shape[1] - 60))) @ cases.T + np.asarray(own.ridge.matrix)
            assert np.square(np.diagonal(np.linalg.cholesky(gram))).min() / np.diagonal(gram).max() >= bound


@jax.enable_x64(True)
def test_a_ridge_is_its_matrix():
    """In each form, and so many times; that of rows with scales of their own, and of a span."""
    random = np.random.default_rng(3)
    x = jnp.asarray(random.normal(size=(200, 140)))
    basis = LinearClassifier(2.0, True, 50).basis(x, jnp.ones(200), orthonormal_columns)
    scaled = basis.padded().penalised_by(jnp.asarray(np.geomspace(0.5, 2, 140))).ridge
    span = Span.of(jnp.asarray(random.normal(size=(140, 300))), jnp.ones(140), True)
    scale = jnp.asarray(np.geomspace(0.8, 1.2, 300))
    of_span = LinearClassifier(2.0, True, 50).basis_of(span).padded()
    in_metric = of_span.penalised_in(span, span.single.metric(scale.astype(jnp.float32)), scale).ridge
    assert [type(each) for each in (basis.ridge, scaled, in_metric)] == [MatrixRidge, ScaledRidge, SpanRidge]
    exact = of_span.penalised_in(span, span.metric(scale), scale).ridge.matrix
    for ridge, matrix in ((basis.ridge, basis.ridge.matrix), (scaled, scaled.matrix), (in_metric, exact)):
        solution = random.normal(size=(3, len(matrix)))
        for number in (1.0, 0.5):
            some = ridge.times(number)
            want = number * solution @ np.asarray(matrix)
            np.testing.assert_allclose(some.of(jnp.asarray(solution)), want, rtol=0, atol=1e-12)  # sums of 300 products
            np.testing.assert_allclose(some.matrix, number * matrix, rtol=0, atol=1e-5)  # a metric in single precision
            np.testing.assert_allclose(some.diagonal, np.diagonal(some.matrix), rtol=1e-12)
            single = some.astype(jnp.float32).of(jnp.asarray(solution, jnp.float32))
            np.testing.assert_allclose(single, want, rtol=0, atol=1e-4)


@pytest.mark.parametrize("condition", [1e1, 1e3])
def test_bases_are_as_orthonormal_as_they_say(condition, dtype):
    """By singular values that are known; 1e3 is ill-conditioned in single precision, where nobody uses the basis."""
    random = np.random.default_rng(0)
    left, right = (np.linalg.qr(random.normal(size=(rows, 6)))[0] for rows in (300, 6))
    a = ((left * np.geomspace(1, 1 / condition, 6)) @ right).astype(dtype)
    eps = np.finfo(dtype).eps
    for make, off in ((orthonormal_if_easy, eps), (nearly_orthonormal_if_easy, eps * condition**2)):
        with jax.default_matmul_precision("highest"):
            vectors, transform, ill = make(jnp.asarray(a.T))
        assert ill == (condition**2 > 1 / eps**0.5)
        if not ill:
            np.testing.assert_allclose(vectors @ vectors.T, np.eye(6), rtol=0, atol=10 * off)  # sums of 300 products
            rounding = 10 * eps * np.abs(transform).max()  # of columns that cancel each other
            np.testing.assert_allclose(a @ np.asarray(transform), vectors.T, rtol=0, atol=rounding)
