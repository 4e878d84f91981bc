"""Plans are judged by their weights: each way to get a confident wrong interval or test, and what is said of it."""

import dataclasses

import jax
import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from statsmodels.stats.proportion import proportion_confint

from jaxgen import Losses, loss, resample
from jaxgen.stats import compare, design, estimate, interval
from jaxgen.types import Plan

KEY, N = jax.random.key(0), 100
RANDOM = np.random.default_rng(0)
EXACT = {"rtol": 1e-12, "atol": 1e-14}  # rounding of some hundred additions


def losses(plan, values=None, name="squared", learner="a"):
    """Losses of given values [R, N], or of random ones."""
    values = RANDOM.gamma(2.0, size=plan.train.shape) if values is None else np.asarray(values, float)
    values = np.broadcast_to(values, plan.train.shape)
    means = (np.sum(np.where(w > 0, w * values, 0), axis=-1) / w.sum(-1) for w in (plan.test, plan.train))
    return Losses(*means, plan, learner, name, np.zeros(plan.train.shape[:-1], np.uint8), values=values)


def pair(plan, **options):
    return losses(plan, **options), losses(plan, learner="b", **options)


def one_test_set(rows=25):
    """Training sets of 63 of 70 cases, all tested on the other 30."""
    train, test = np.zeros((2, rows, N), np.uint8)
    test[:, 70:] = 1
    for row in train:
        row[RANDOM.permutation(70)[:63]] = 1
    return resample.from_weights(train, test)


def seeds(rows=10):
    """One split, trained again and again."""
    split = resample.leave_out(KEY, N, 0.25, 1)
    return resample.from_weights(np.repeat(split.train, rows, 0), np.repeat(split.test, rows, 0))


@pytest.mark.parametrize(("plan", "words"), [(one_test_set(), "tested on the same cases"), (seeds(), "one split")])
def test_rows_with_one_test_set_say_nothing_of_other_test_cases(plan, words):
    """The corrected t covered in 24 % there, and rejected in 78 %; what is left is about these models."""
    first, second = pair(plan)
    for method in (interval.corrected_t, interval.corrected_score):
        with pytest.raises(ValueError, match="one test set for all rows"):
            method(losses(plan, RANDOM.random(plan.train.shape)))
    with pytest.raises(ValueError, match="one test set for all rows"):
        compare.corrected_t(first, second)
    cases = first.values.mean(0)[plan.test[0] > 0]
    got = interval.recommend(first)
    assert words in got.note
    want = scipy.stats.ttest_1samp(cases, 0).confidence_interval()
    np.testing.assert_allclose([got.lower, got.upper], want, **EXACT)
    assert "these" in got.target
    test = compare.recommend(first, second)
    want = scipy.stats.ttest_rel(second.values.mean(0)[plan.test[0] > 0], cases)
    assert test.p_value == pytest.approx(want.pvalue, rel=1e-10)
    assert "tested on the same" in test.note or "one split" in test.note


def test_instances_with_a_common_test_set_keep_their_test_without_labels():
    known = resample.task_instances(N, 10, instances=4, test_cases=40, common=True)
    plan = resample.from_weights(known.train, known.test)
    first, second = pair(plan)
    assert compare.recommend(first, second).p_value == compare.quasi_f(first, second).p_value
    with pytest.raises(ValueError, match="training sets that do not overlap, which need no correction; use disjoint_t"):
        compare.corrected_t(first, second)
    with pytest.raises(ValueError, match="instances share their test cases"):
        interval.recommend(first, target="ER")


def test_repeats_of_the_same_folds_buy_no_precision():
    """Leave-one-out five times, and five folds three times, in another order each: as good as once."""
    for once, times in ((resample.leave_one_out(20), 5), (resample.k_fold(KEY, 20, 5), 3)):
        orders = [np.roll(np.arange(once.resamples), 2 * time) for time in range(times)]
        again = resample.from_weights(*(np.concatenate([w[o] for o in orders]) for w in (once.train, once.test)))
        assert design.repeated(again) == (times - 1) * once.resamples
        of_once = losses(once)
        of_again = losses(again, np.concatenate([of_once.values[order] for order in orders]))
        one, many = interval.corrected_t(of_once), interval.corrected_t(of_again)
        np.testing.assert_allclose(many.standard_error, one.standard_error, **EXACT)
        assert many.df == one.df
        assert f"{(times - 1) * once.resamples} rows repeat the weights of others" in many.note
    assert design.repeated(resample.k_fold(KEY, 20, 10, 10)) == 0, "single folds that coincide by chance repeat nothing"


@pytest.mark.parametrize("repeats", [1, 4])
def test_the_variance_of_grouped_folds_is_the_cluster_robust_one_of_statsmodels(repeats):
    group = RANDOM.permutation(np.arange(N) % 20)
    plan = resample.k_fold(KEY, N, 5, repeats, groups=group)
    given = losses(plan)
    h = np.sum(plan.test * given.values, axis=0) / repeats
    fit = sm.OLS(h, np.ones(N)).fit(cov_type="cluster", cov_kwds={"groups": group}, use_t=True)
    got = interval.grouped(given)
    assert got.estimate == pytest.approx(h.mean(), rel=1e-12)
    assert got.standard_error == pytest.approx(fit.bse[0] * np.sqrt(1 + 5 / 4), rel=1e-10)
    assert got.df == 19
    assert interval.recommend(given).lower == got.lower
    change = losses(plan, 0.0), given
    assert compare.grouped_t(*change).standard_error == pytest.approx(got.standard_error, rel=1e-12)
    for method in (interval.corrected_t, interval.bouckaert_frank):
        with pytest.raises(ValueError, match="20 groups of cases that depend on each other; use grouped"):
            method(given)


def test_groups_of_a_plan_of_ones_own_are_known_by_their_labels():
    known = resample.k_fold(KEY, N, 5, groups=np.arange(N) // 5)
    plan = resample.from_weights(known.train, known.test, groups=[f"patient {case // 5}" for case in range(N)])
    assert interval.recommend(losses(plan)).method == "interval of grouped folds"
    splits = resample.leave_out(KEY, N, 0.2, 10)
    with pytest.raises(ValueError, match="splits of cases in groups, for which no variance here is right"):
        interval.recommend(losses(resample.from_weights(splits.train, splits.test, groups=np.arange(N) // 5)))
    one = resample.leave_out(KEY, N, 0.2, 1)
    with pytest.raises(ValueError, match="splits of cases in groups"):
        interval.recommend(losses(resample.from_weights(one.train, one.test, groups=np.arange(N) // 5)))
    gaps = dataclasses.replace(known, cases={"group": 7 * known.cases["group"] + 3})
    given = losses(known)
    assert (
        interval.grouped(dataclasses.replace(given, plan=gaps)).standard_error == interval.grouped(given).standard_error
    )
    divided = resample.k_fold(KEY, N, 5)
    with pytest.raises(ValueError, match="expected folds that divide no group, got given weights"):
        interval.grouped(losses(resample.from_weights(divided.train, divided.test, groups=np.arange(N) // 5)))


@pytest.mark.parametrize("past_only", [False, True])
def test_a_series_is_known_by_its_times_or_by_its_weights(past_only):
    known = resample.time_blocks(N, 5, past_only=past_only)
    plans = [resample.from_weights(known.train, known.test, times=np.arange(N))]
    plans += [resample.from_weights(known.train, known.test)] if past_only else []
    for plan in plans:
        for recommend in (interval.recommend, lambda given: compare.recommend(given, given)):
            with pytest.raises(ValueError, match="blocks of a series, whose cases depend on each other"):
                recommend(losses(plan))
        with pytest.raises(ValueError, match="a series, whose cases depend on each other"):
            interval.corrected_t(losses(plan))


def test_labels_of_rows_and_cases_come_with_predictions_and_are_saved(tmp_path):
    from jaxgen import store

    known = resample.k_fold(KEY, 20, 5, 2)
    y = RANDOM.normal(size=20)
    labels = {"repeat": known.labels["repeat"], "fold": [f"fold {fold}" for fold in known.labels["fold"]]}
    predictions = RANDOM.normal(size=(10, 20))
    given = Losses.from_predictions(
        y, predictions, known.train, known.test, loss.squared, labels=labels, groups=np.arange(20) // 2
    )
    np.testing.assert_array_equal(given.plan.labels["fold"], known.labels["fold"])
    again = store.load(store.save(given, tmp_path / "given.npz"))
    np.testing.assert_array_equal(again.plan.cases["group"], np.arange(20) // 2)
    with pytest.raises(ValueError, match="label 'fold' to be 10 labels, one per row, got shape"):
        Losses.from_predictions(y, predictions, known.train, known.test, loss.squared, labels={"fold": [1, 2]})
    with pytest.raises(ValueError, match="groups to be 20 labels, one per case"):
        resample.from_weights(known.train, known.test, groups=[1, 2])


@pytest.mark.parametrize("name", ["leave_out", "bootstrap", "balanced", "k_fold", "stratified"])
def test_plans_of_the_package_are_taken_for_what_they_are(name):
    """200 keys: what is random is never taken for a design that treats cases unalike."""
    strata = np.arange(30) % 3
    make = {
        "leave_out": lambda key: resample.leave_out(key, 30, 0.3, 12),
        "bootstrap": lambda key: resample.bootstrap(key, 30, 12),
        "balanced": lambda key: resample.balanced(key, 30, 0.2, 12),
        "k_fold": lambda key: resample.k_fold(key, 30, 5, 3),
        "stratified": lambda key: resample.k_fold(key, 30, 5, 3, strata=strata),
    }[name]
    for seed in range(200):
        plan = make(jax.random.key(seed))
        assert design.unlike_random(Plan(plan.train, plan.test, "")) == ""
        assert not design.serial(plan)


def test_rows_that_use_some_cases_only_are_no_random_splits():
    """A test pool and a training pool, of which each row draws some: cases are not treated alike."""
    train, test = np.zeros((2, 20, N), np.uint8)
    for row in range(20):
        test[row, 70 + RANDOM.permutation(30)[:20]] = 1
        train[row, RANDOM.permutation(70)[:50]] = 1
    with pytest.raises(ValueError, match="cases that are not treated alike, one tested in 0 of 20 rows and another in"):
        interval.recommend(losses(resample.from_weights(train, test)))


def rates(plan, rate, learner="a"):
    return losses(plan, RANDOM.random(N) < rate, "zero_one", learner)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("rate", [0.0, 0.02, 0.2, 1.0])
def test_the_corrected_score_interval_is_wilsons_with_fewer_cases(rate, alternative):
    """Against statsmodels, which takes the quantile of the normal law: its level is chosen to make that one of t."""
    plan = resample.leave_out(KEY, N, 0.1, 25)
    given = rates(plan, rate)
    got = interval.corrected_score(given, alternative=alternative)
    assert interval.recommend(given, alternative=alternative).lower == got.lower
    plain = interval.corrected_t(given) if 0 < rate < 1 else None
    share = given.g.mean()
    cap = 1 / (1 / (25 * 10) + 1 / 90)
    m = cap if plain is None else min(cap, share * (1 - share) / plain.standard_error**2)
    assert got.parts["cases"] == pytest.approx(m, rel=1e-10)
    z = scipy.stats.t.ppf(0.975 if alternative == "two-sided" else 0.95, 24)
    lower, upper = proportion_confint(share * m, m, 2 * scipy.stats.norm.sf(z), "wilson")
    lower, upper = (0.0 if alternative == "less" else lower), (1.0 if alternative == "greater" else upper)
    np.testing.assert_allclose([got.lower, got.upper], [lower, upper], rtol=1e-9, atol=1e-12)
    assert 0 <= got.lower < got.upper <= 1


def test_losses_beyond_0_and_1_have_no_score_interval():
    plan = resample.leave_out(KEY, N, 0.1, 25)
    with pytest.raises(ValueError, match="expected losses between 0 and 1, got a row of"):
        interval.corrected_score(losses(plan, 3.0))
    with pytest.raises(ValueError, match="expected losses of 0 and 1 for error rates, got 0.5"):
        compare.corrected_score(losses(plan, 0.5), losses(plan, 0.5, learner="b"))


def test_one_error_in_each_of_five_folds_is_no_certainty():
    """B errs once in each fold and A never: McNemar says .0625 of the same 5 : 0, and the t-test had p = 0."""
    plan = resample.k_fold(KEY, N, 5)
    wrong = np.zeros(N)
    wrong[plan.test.argmax(-1)] = 1
    first, second = losses(plan, np.zeros(N), "zero_one"), losses(plan, wrong, "zero_one", "b")
    plain = compare.corrected_k_fold_t(first, second)
    assert np.isnan(plain.p_value)
    assert "which is no certainty" in plain.note
    got = compare.recommend(first, second)
    assert got.method == "corrected t-test of error rates"
    # q = 5 of 100 cases; of 5 folds m = 1 / (1/100 + 1/80), and 4 degrees of freedom
    want = 2 * scipy.stats.t.sf(0.05 / np.sqrt(0.05 * (1 / 100 + 1 / 80)), 4)
    assert got.p_value == pytest.approx(want, rel=1e-10)
    assert 0.05 < got.p_value < 0.3
    assert got.lower < 0 < got.upper


def test_error_rates_that_differ_have_the_variance_of_the_corrected_t_where_it_is_larger():
    plan = resample.leave_out(KEY, N, 0.1, 25)
    values = np.arange(25)[:, None] % 2 * np.ones(N)  # beyond any binomial variance
    first, second = losses(plan, np.zeros(N), "zero_one"), losses(plan, values, "zero_one", "b")
    got, plain = compare.corrected_score(first, second), compare.corrected_t(first, second)
    assert got.standard_error == plain.standard_error
    assert got.parts["disagreements"] == pytest.approx(12 / 25)


def test_tests_of_differences_are_the_intervals_of_losses_that_are_differences():
    """Each method stands once: of a learner without loss against another, a test is that other's interval."""
    for name, of_one, of_two, plan in (
        ("nested", interval.nested_cross_validation, compare.nested_cross_validation, resample.nested_pairs(KEY, N, 5)),
        ("halves", interval.conservative_z, compare.conservative_z, resample.paired_halves(KEY, N, 4, 3)),
    ):
        zero, given = losses(plan, 0.0), losses(plan, learner="b")
        one, two = of_one(given, level=0.9), of_two(zero, given, level=0.9)
        for number in ("estimate", "standard_error", "lower", "upper"):
            np.testing.assert_allclose(getattr(two, number), getattr(one, number), **EXACT, err_msg=name)
        assert two.p_value == pytest.approx(2 * scipy.stats.norm.sf(two.estimate / two.standard_error), rel=1e-10)


def test_recommend_has_a_level_and_an_alternative():
    first, second = pair(resample.leave_out(KEY, N, 0.1, 25))
    got = compare.recommend(first, second, alternative="less", level=0.8)
    want = compare.corrected_t(first, second, alternative="less", level=0.8)
    assert (got.p_value, got.lower, got.upper, got.level) == (want.p_value, want.lower, want.upper, 0.8)
    split = resample.leave_out(KEY, N, 0.3, 1)
    with pytest.raises(ValueError, match="expected the alternative two-sided for mcnemar"):
        compare.recommend(rates(split, 0.2), rates(split, 0.3, "b"), alternative="less")


def test_what_was_measured_for_r_is_said_where_r_is_asked_for():
    given = losses(resample.leave_out(KEY, N, 0.1, 25))
    assert "lowest coverage of R at 95 % that was measured is .86" in interval.recommend(given, target="R").note
    assert "measured" not in interval.recommend(given, target="ER").note
    wrong = rates(resample.nested_pairs(KEY, N, 5), 0.1)
    assert "measured is .67 for error rates" in interval.recommend(wrong).note
    assert "measured" not in interval.recommend(losses(seeds())).note, "of several trainings on one split none was"


def test_repeated_rows_without_all_losses_or_with_a_failed_one():
    """Losses of training cases that are not known spoil nothing, and a failed row is said."""
    once = resample.k_fold(KEY, 20, 5)
    plan = resample.from_weights(*(np.concatenate([w, w]) for w in (once.train, once.test)))
    given = losses(plan)
    blanked = losses(plan, np.where(plan.test > 0, given.values, np.nan))
    blanked = dataclasses.replace(blanked, train_mean=np.full(10, np.nan))
    assert interval.corrected_t(blanked).standard_error == interval.corrected_t(given).standard_error
    failed = dataclasses.replace(given, failure=np.arange(10, dtype=np.uint8) // 9, reasons=("it failed",))
    with pytest.raises(ValueError, match="expected every row to have been fitted, got 1 failed of 10"):
        interval.corrected_t(failed)


def test_labels_that_are_whole_numbers_keep_their_meaning():
    """-1 stands for the rows of all data among paired halves."""
    known = resample.paired_halves(KEY, N, 4, 3)
    plan = resample.from_weights(known.train, known.test, labels=known.labels)
    given = losses(known)
    again = dataclasses.replace(given, plan=plan)
    assert interval.conservative_z(again).lower == interval.conservative_z(given).lower


def test_labels_of_cases_are_checked(own_messages):
    plan = resample.leave_out(KEY, 20, 0.2, 3)
    for cases in ({"group": np.arange(19)}, {"group": np.arange(20.0)}, [1]):
        with pytest.raises(ValueError, match="expected (label 'group' as 20 whole numbers|cases as a dict)"):
            dataclasses.replace(plan, cases=cases).checked()


@pytest.mark.parametrize(
    ("plan", "repeats"),
    [
        (resample.leave_one_out(20), 1),
        (resample.k_fold(KEY, 20, 5), 1),
        (resample.k_fold(KEY, 20, 5, 3), 3),
        (resample.nested_pairs(KEY, 20, 4), 1),
        (resample.time_blocks(20, 4), 1),
        (resample.leave_out(KEY, 20, 0.2, 7), 7),
    ],
)
def test_the_monte_carlo_error_is_that_of_what_was_drawn(plan, repeats):
    """Splits, or whole divisions into folds: SciPy's sem of their means; nothing where all is fixed by one design."""
    given = losses(plan)
    got = estimate.summary(given)
    means = given.g.reshape(repeats, -1).mean(-1)
    want = scipy.stats.sem(means) if repeats > 1 else np.nan
    np.testing.assert_allclose(got.monte_carlo_error, want, rtol=1e-12)
    assert ("no Monte Carlo error" in str(got)) is (repeats == 1)


GROUPED = resample.k_fold(KEY, N, 5, groups=np.arange(N) // 5)
DEPENDENT = {
    "groups in folds": (GROUPED, "20 groups of cases that depend on each other"),
    "a series": (resample.time_blocks(N, 5), "a series, whose cases depend on each other"),
}
DIRECT = {
    "the central limit theorem of folds": lambda a, b: interval.cross_validation(a),
    "its test": compare.cv_clt,
    "hold-out of a row": lambda a, b: compare.hold_out_t(a, b, row=0),
    "McNemar": lambda a, b: compare.mcnemar(a, b, row=0),
    "permutation": lambda a, b: compare.permutation(a, b, row=0),
    "max t": lambda a, b: compare.max_t([a, b], row=0),
    "bootstrap of test cases": lambda a, b: estimate.bootstrap_test_cases(a),
    "mixed": lambda a, b: estimate.mixed(a),
    "corrected t": lambda a, b: interval.corrected_t(a),
    "corrected t-test": compare.corrected_t,
    "corrected score": lambda a, b: interval.corrected_score(a),
}


@pytest.mark.parametrize("call", DIRECT)
@pytest.mark.parametrize("plan", DEPENDENT)
def test_no_method_takes_dependent_cases_for_independent_ones(plan, call):
    """Also where it is called by itself, without `recommend`."""
    given, words = DEPENDENT[plan]
    first, second = (losses(given, RANDOM.integers(0, 2, given.train.shape), learner=name) for name in "ab")
    with pytest.raises(ValueError, match=f"^expected .*{words}.*; "):
        DIRECT[call](first, second)


@pytest.mark.parametrize(
    ("scheme", "methods"),
    [
        (resample.nested_pairs(KEY, N, 5), (interval.nested_cross_validation,)),
        (resample.paired_halves(KEY, N, 2, 3), (interval.conservative_z,)),
        (resample.five_by_two(KEY, N), (interval.five_by_two,)),
        (resample.leave_out(KEY, N, 0.2, 1), (interval.hold_out, interval.t, interval.bootstrap)),
    ],
    ids=lambda value: getattr(value, "scheme", ""),
)
def test_designs_for_independent_cases_refuse_groups(scheme, methods):
    """The labels of the design are kept, and a group is given to each case."""
    plan = dataclasses.replace(scheme, cases={"group": np.arange(N) // 5})
    for method in methods:
        with pytest.raises(ValueError, match="20 groups of cases that depend on each other"):
            method(losses(plan))


@pytest.mark.parametrize("plan", DEPENDENT)
def test_estimates_of_dependent_cases_have_no_standard_error(plan):
    given, words = DEPENDENT[plan]
    for method in (estimate.cross_validation, estimate.hold_out):
        got = method(losses(given))
        assert np.isnan(got.standard_error)
        assert words in got.note
        assert np.isfinite(got.estimate)


def test_error_rates_are_known_where_only_means_were_kept():
    plan = resample.leave_out(KEY, N, 0.1, 25)
    whole = losses(plan, RANDOM.integers(0, 2, plan.train.shape), "zero_one")
    means = dataclasses.replace(whole, values=None)
    assert interval.recommend(means).upper == interval.recommend(whole).upper == interval.corrected_score(whole).upper
    assert compare.recommend(means, dataclasses.replace(means, learner="b")).method == "corrected resampled t-test"


def test_instances_whose_test_sets_overlap_in_part_are_refused():
    """Neither disjoint nor common: one case of the second row's test set is exchanged for one of the first's."""
    known = resample.task_instances(N, 10, instances=4, test_cases=40)
    test = known.test.copy()
    test[1, np.flatnonzero(test[1])[0]] = 0
    test[1, np.flatnonzero(test[0])[0]] = 1
    plan = dataclasses.replace(known, test=test)
    for method in (compare.disjoint_t, compare.quasi_f):
        with pytest.raises(ValueError, match="test sets that overlap in part; use resample.task_instances"):
            method(*pair(plan))
