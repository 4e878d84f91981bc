"""Scott & Variyam's slides "Regularization and Performance Evaluation", every method at work.

    python benchmarks/scott_variyam.py             # all of it; the results say how long it takes
    python benchmarks/scott_variyam.py --quick     # a minute or two; writes nothing

prints the tables and writes them, with figures, to benchmarks/results/. Only public names of jaxgen are used.
Overfitting and regularization are in `scott_variyam_training.py`.
"""

import argparse
import time
from functools import partial

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
import scott_variyam_training as training
import sklearn.metrics
from calibration_systems import SETTINGS, exchangeable
from kept_parts import kept_part
from quiet import publish
from scott_variyam_training import BLUE, GREEN, ORANGE, PINK
from speed import machine

import jaxgen as jg
from jaxgen import learn, loss, resample
from jaxgen.stats import compare, interval, metrics

LEVELS = (0.5, 0.68, 0.8, 0.9, 0.95, 0.98, 0.99)
Z = (0.67, 1.00, 1.28, 1.64, 1.96, 2.33, 2.58)
Z_ONE_SIDED = (0.0, 0.47, 0.84, 1.28, 1.64, 2.05, 2.33)
T_LEVELS = (0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995)
T = (
    (0.325, 0.727, 1.376, 3.078, 6.314, 12.706, 31.821, 63.657),
    (0.289, 0.617, 1.061, 1.886, 2.920, 4.303, 6.965, 9.925),
    (0.277, 0.584, 0.978, 1.638, 2.353, 3.182, 4.541, 5.841),
    (0.271, 0.569, 0.941, 1.533, 2.132, 2.776, 3.747, 4.604),
    (0.267, 0.559, 0.920, 1.476, 2.015, 2.571, 3.365, 4.032),
    (0.265, 0.553, 0.906, 1.440, 1.943, 2.447, 3.143, 3.707),
    (0.263, 0.549, 0.896, 1.415, 1.895, 2.365, 2.998, 3.499),
    (0.262, 0.546, 0.889, 1.397, 1.860, 2.306, 2.896, 3.355),
    (0.261, 0.543, 0.883, 1.383, 1.833, 2.262, 2.821, 3.250),
    (0.260, 0.542, 0.879, 1.372, 1.812, 2.228, 2.764, 3.169),
    (0.260, 0.540, 0.876, 1.363, 1.796, 2.201, 2.718, 3.106),
    (0.259, 0.539, 0.873, 1.356, 1.782, 2.179, 2.681, 3.055),
    (0.259, 0.538, 0.870, 1.350, 1.771, 2.160, 2.650, 3.012),
)
CONFIDENCE = (169.752, 109.200, 19.210, 1.905, -2.75, -12.640, -29.124, -83.222, -91.554, -128.212)
LABELS = (1, 1, 0, 1, 1, 0, 0, 0, 1, 0)


# Losses


def show_losses():
    """Every loss of slide 6 against scikit-learn, or its formula where that has none."""
    random = np.random.default_rng(0)
    y, share = random.integers(0, 2, 1000), random.uniform(0.01, 0.99, 1000)
    classes, shares = random.integers(0, 4, 1000), random.dirichlet(np.ones(4), 1000)
    margin = random.normal(size=1000)
    column = np.asarray(y, float)[:, None]
    pairs = {
        "0-1": (loss.zero_one(column, share[:, None]).mean(), sklearn.metrics.zero_one_loss(y, share > 0.5)),
        "square": (loss.squared(column, share[:, None]).mean(), sklearn.metrics.mean_squared_error(y, share)),
        "cross-entropy, 2 classes": (
            loss.cross_entropy(column, share[:, None]).mean(),
            sklearn.metrics.log_loss(y, share),
        ),
        "cross-entropy, 4 classes": (
            loss.cross_entropy(np.eye(4)[classes], shares).mean(),
            sklearn.metrics.log_loss(classes, shares),
        ),
        "hinge": (loss.hinge(column, (1 + margin[:, None]) / 2).mean(), sklearn.metrics.hinge_loss(2 * y - 1, margin)),
    }
    lines = [
        "1. Losses (slide 6): means over 1000 random cases by jaxgen.loss and by scikit-learn. Labels of the hinge are "
        "-1 and 1 on the slide and 0 and 1 here, with margins moved alike.",
        f"{'':28}{'jaxgen':>12}{'scikit-learn':>14}{'difference':>12}",
    ]
    lines += [f"{name:28}{ours:12.6f}{theirs:14.6f}{ours - theirs:12.1e}" for name, (ours, theirs) in pairs.items()]
    return lines


# Intervals


def coverage(method, n, rates, level=0.95):
    """Exact coverage of an interval of error rates of n test cases, [rates]: the sum of the binomial probabilities of
    those numbers of errors whose interval holds the rate.
    """
    errors = np.arange(n + 1)
    found = method((np.arange(n) < errors[:, None]).astype(float), level=level)
    low, high = np.asarray(found.lower)[:, None], np.asarray(found.upper)[:, None]
    holds = (low <= rates) & (rates <= high)
    return np.sum(holds * scipy.stats.binom.pmf(errors[:, None], n, rates), axis=0)


METHODS = {"Wald (slides)": interval.wald, "Wilson": interval.wilson, "Clopper-Pearson": interval.clopper_pearson}


def show_tables():
    """The slides' interval and tables."""
    slide = interval.wald((np.arange(40) < 12).astype(float))
    two = np.abs(np.round(scipy.stats.norm.ppf((1 + np.array(LEVELS)) / 2), 2) - Z)
    one = np.abs(np.round(scipy.stats.norm.ppf(LEVELS), 2) - Z_ONE_SIDED)
    student = np.abs(np.round(scipy.stats.t.ppf(T_LEVELS, np.arange(1, 14)[:, None]), 3) - T)
    printed = scipy.stats.norm.ppf((1 + (1 - (1 - 0.9) / 2)) / 2)
    return [
        "",
        "4. Confidence intervals (slides 28 to 38)",
        "12 errors in 40 test cases (slide 28): error 0.30, 95 % interval [0.158, 0.442]; ours "
        f"{float(slide.estimate):.2f}, "
        f"[{float(slide.lower):.3f}, {float(slide.upper):.3f}]",
        f"Table of z (slide 34): largest deviation {two.max():.2f}, at {LEVELS[two.argmax()]:.0%}, where 0.994 is "
        "rounded up; one-sided z' (slide 35) "
        f"{one.max():.2f}; Student's t (slide 42), 104 numbers: {student.max():.3f}",
        f"Slide 35 prints z'_c = z_(100-(100-c)/2), which is {printed:.2f} at 90 %; its table has 1.28 and follows "
        "z'_c = z_(2c-100).",
    ]


def show_coverage():
    """The exact coverage of three intervals."""
    lines = [
        "Exact coverage at 95 %, by the binomial law: the least and the mean over error rates of 1 to 50 %, and at "
        "some of them",
        f"{'':18}{'N':>5}{'least':>8}{'mean':>8}{'1 %':>8}{'5 %':>8}{'10 %':>8}{'30 %':>8}{'50 %':>8}",
    ]
    rates = np.linspace(0.01, 0.5, 491)
    for name, method in METHODS.items():
        for n in (10, 30, 100, 1000):
            held, some = coverage(method, n, rates), coverage(method, n, np.array([0.01, 0.05, 0.1, 0.3, 0.5]))
            lines.append(
                f"{name:18}{n:5}{held.min():8.3f}{held.mean():8.3f}" + "".join(f"{share:8.3f}" for share in some)
            )
    lines.append("The guideline N >= 30 is not enough for the slides' interval where errors are rare: it needs errors.")
    return lines


def interval_figure():
    """Exact coverage by error rate, 30 and 100 test cases."""
    drawn, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
    rates = np.linspace(0.002, 0.5, 997)
    for panel, n in zip(axes, (30, 100), strict=True):
        for (name, method), colour in zip(METHODS.items(), (ORANGE, BLUE, GREEN), strict=True):
            panel.plot(rates, coverage(method, n, rates), color=colour, linewidth=1, label=name)
        panel.axhline(0.95, color="0.4", linewidth=1, linestyle="--", label="0.95")
        panel.set(title=f"N = {n} test cases", xlabel="true error rate", xlim=(0, 0.5), ylim=(0.5, 1.005))
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("exact coverage of the 95 % interval")
    axes[1].legend(frameon=False, loc="lower right")
    return drawn


# Comparisons


def five_learners(n, sets, folds=10, seed=0):
    """p-values, [test, sets, 4], that learner 1 is better than each of four others that are as good: five least-squares
    fits, of an exchangeable fifth of the inputs each.

    The slides' one-sided paired t-test over K folds, and the corrected one.
    """
    tests = (compare.k_fold_t, compare.corrected_k_fold_t)
    found = []
    for start in range(0, sets, 500):
        parts = exchangeable(SETTINGS[0], n, min(500, sets - start), 10_000 * n + seed + start, parts=5)[:5]
        plan = resample.k_fold(jax.random.key(start), n, folds)
        losses = [jg.assess(jax.random.key(0), learn.LeastSquares(), part, plan) for part in parts]
        found.append(
            [
                np.stack([test(losses[0], other, alternative="greater").p_value for other in losses[1:]], axis=-1)
                for test in tests
            ]
        )
    return np.concatenate(found, axis=1)


def show_comparisons(sets):
    """The family-wise error of four comparisons."""
    lines = [
        "",
        "5. The K-fold paired t-test and its caveat (slides 40 to 43)",
        f"Learner 1 against four others that are exactly as good, K = 10, {sets} data sets: how often a one-sided "
        "test at 5 % says that it is better.",
        "each: one comparison; any: at least one of the four, 0.185 on the slide, which takes four independent tests "
        "of 5 %; they share learner 1 here. Standard error of 0.05 and of 0.15: "
        f"{np.sqrt(0.05 * 0.95 / sets):.3f} and {np.sqrt(0.15 * 0.85 / sets):.3f}",
        f"{'n':>5}{'test':>34}{'each':>8}{'any':>8}{'1-(1-each)^4':>14}{'any, Bonferroni':>17}{'any, Holm':>11}",
    ]
    for n in (100, 300):
        for name, p in zip(("paired t (slides)", "corrected (Bouckaert & Frank)"), five_learners(n, sets), strict=True):
            each = np.mean(p < 0.05)
            holm = np.mean((compare.holm(p) < 0.05).any(-1))
            lines.append(
                f"{n:5}{name:>34}{each:8.3f}{np.mean((p < 0.05).any(-1)):8.3f}{1 - (1 - each) ** 4:14.3f}"
                f"{np.mean((4 * p < 0.05).any(-1)):17.3f}{holm:11.3f}"
            )
    lines.append(
        f"Four independent tests: 1 - 0.95^4 = {1 - 0.95**4:.4f}, as on the slide. Comparisons with one learner are "
        "correlated, and so one of them is wrong less often than this. Holm's adjusted p-values keep the 5 %."
    )
    return lines


# Confusion, ROC, precision and recall


def rare(hits, kept):
    """Predictions of the slides' 20 positive and 980 negative examples, with so many of each right."""
    y = np.repeat([1, 0], [20, 980])
    decided = np.concatenate([np.arange(20) < hits, np.arange(980) >= kept])
    return metrics.Predictions.from_arrays(y, decided.astype(float), classes=("negative", "positive"))


def ranked():
    """Predictions of the ten examples of slide 47."""
    return metrics.Predictions.from_arrays(np.array(LABELS), np.array(CONFIDENCE), classes=("-", "+"))


def cheapest(wrong_cost, missed_cost, prior):
    """Least expected cost over all eleven thresholds, one by one."""
    scores, labels = np.array(CONFIDENCE), np.array(LABELS, bool)
    costs = []
    for threshold in (*scores, np.inf):
        found = scores >= threshold
        costs.append(prior * missed_cost * np.mean(~found[labels]) + (1 - prior) * wrong_cost * np.mean(found[~labels]))
    return min(costs)


def show_metrics():
    """The slides' examples, to their exact numbers."""
    lines = [
        "",
        "6. More than one error rate (slides 44 to 53)",
        "20 positive and 980 negative examples (slide 44); the slide's accuracies are 0.967, 0.980 and 0.949",
        f"{'':18}{'tp':>5}{'fn':>5}{'fp':>5}{'tn':>6}{'accuracy':>10}{'precision':>11}{'recall':>8}{'F_1/2':>8}"
        f"{'F_1':>8}"
        f"{'F_2':>8}{'balanced':>10}",
    ]
    for name, some in (("h1", rare(2, 965)), ("always negative", rare(0, 980)), ("h2", rare(19, 930))):
        (tn, fp), (fn, tp) = metrics.confusion(some)
        numbers = [
            metrics.accuracy(some),
            metrics.precision(some, undefined=np.nan),
            metrics.recall(some),
            *(metrics.f_beta(some, beta=beta) for beta in (0.5, 1.0, 2.0)),
            metrics.balanced_accuracy(some),
        ]
        widths = (10, 11, 8, 8, 8, 8, 10)
        lines.append(
            f"{name:18}{tp:5.0f}{fn:5.0f}{fp:5.0f}{tn:6.0f}"
            + "".join(f"{float(number):{width}.3f}" for number, width in zip(numbers, widths, strict=True))
        )
    ten = ranked()
    curve, area = metrics.roc.curve(ten), float(metrics.roc.auc(ten))
    positive = [s for s, label in zip(CONFIDENCE, LABELS, strict=True) if label]
    negative = [s for s, label in zip(CONFIDENCE, LABELS, strict=True) if not label]
    count = sum(a > b for a in positive for b in negative)
    hull = ", ".join(
        f"({x:.1f}, {y:.1f})"
        for x, y in zip(curve.false_positive[curve.hull], curve.true_positive[curve.hull], strict=True)
    )
    limits = metrics.roc.interval(ten)
    lines += [
        "",
        "ROC curve of ten examples (slide 47); with 'always -' it begins at (0, 0), with 'always +' it ends at (1, 1)",
        f"AUC by the slide's sum over pairs: {count} of {len(positive) * len(negative)}, {count / 25:.2f}; ours "
        f"{area:.2f}; "
        f"of the convex hull {curve.hull_area:.2f}. Corners of the hull (fp, tp): {hull}",
        f"95 % interval of the AUC by DeLong on the logit scale: {float(limits.lower):.2f} to "
        f"{float(limits.upper):.2f}; the "
        "slide asks for more than 10 examples of each kind, and here are 5.",
        "Operating points: where a line of the given slope touches the hull, and the least cost found one by one over "
        "all thresholds",
        f"{'share of +':>11}{'cost fp : fn':>14}{'slope':>8}{'threshold':>11}{'fp':>6}{'tp':>6}{'cost':>8}"
        f"{'one by one':>12}",
    ]
    cases = ((0.5, 1.0, 1.0), (0.5, 5.0, 1.0), (0.5, 1.0, 5.0), (0.1, 1.0, 1.0), (0.1, 1.0, 20.0), (0.9, 1.0, 1.0))
    for prior, wrong, missed in cases:
        point = metrics.roc.operating_point(ten, false_positive_cost=wrong, false_negative_cost=missed, prior=prior)
        lines.append(
            f"{prior:11.1f}{f'{wrong:g} : {missed:g}':>14}{float(point.slope):8.2f}{float(point.threshold):11.3f}"
            f"{float(point.false_positive):6.1f}{float(point.true_positive):6.1f}{float(point.cost):8.3f}"
            f"{cheapest(wrong, missed, prior):12.3f}"
        )
    recalls = metrics.precision_recall(ten)
    lines += [
        "",
        f"Precision and recall of the same; average precision {float(metrics.average_precision(ten)):.4f}",
        f"{'threshold':>11}{'precision':>11}{'recall':>8}{'F_1/2':>8}{'F_1':>8}{'F_2':>8}",
    ]
    for precision, recall, threshold in zip(
        *(getattr(recalls, part)[:-1] for part in ("precision", "recall", "threshold")), strict=True
    ):
        decided = metrics.Predictions.from_arrays(np.array(LABELS), (np.array(CONFIDENCE) >= threshold).astype(float))
        f = "".join(f"{float(metrics.f_beta(decided, beta=beta)):8.3f}" for beta in (0.5, 1.0, 2.0))
        lines.append(f"{threshold:11.3f}{precision:11.3f}{recall:8.3f}{f}")
    lines.append("F of slide 53 is 0 / 0 where nothing is found; jaxgen's is 0 there.")
    return lines


def roc_figure():
    """The slides' ROC curve with its hull and operating points, and their precision-recall curve."""
    ten = ranked()
    curve, recalls = metrics.roc.curve(ten), metrics.precision_recall(ten)
    drawn, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
    left.plot(curve.false_positive, curve.true_positive, "o-", color=BLUE, label=f"curve, AUC {curve.area:.2f}")
    left.plot(
        curve.false_positive[curve.hull],
        curve.true_positive[curve.hull],
        "--",
        color="0.4",
        label=f"convex hull, {curve.hull_area:.2f}",
    )
    for prior, marker, colour in ((0.1, "^", GREEN), (0.5, "s", ORANGE), (0.9, "D", PINK)):
        point = metrics.roc.operating_point(ten, prior=prior)
        left.plot(
            point.false_positive,
            point.true_positive,
            marker,
            color=colour,
            markersize=11,
            clip_on=False,
            zorder=3,
            label=f"operating point, {prior:.0%} positive, slope {float(point.slope):.2g}",
        )
    left.plot([0, 1], [0, 1], ":", color="0.7")
    left.set(
        xlabel="false positive rate",
        ylabel="true positive rate",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        aspect="equal",
    )
    right.plot(recalls.recall, recalls.precision, "o-", color=BLUE, label="ten examples of slide 47")
    grid = np.linspace(0.01, 1, 200)
    for beta, style in ((0.5, ":"), (1.0, "--"), (2.0, "-.")):
        # all points of one F: precision = F recall / ((1 + b^2) recall - b^2 F)
        level = 0.7
        below = (1 + beta**2) * grid - beta**2 * level
        precision = np.where(below > 0, level * grid / np.where(below > 0, below, 1), np.nan)
        inside = np.where(precision <= 1, precision, np.nan)
        right.plot(grid, inside, style, color="0.5", linewidth=1, label=f"$F_{{{beta:g}}}$ = 0.7")
    right.axhline(0.5, color=ORANGE, linewidth=1, label="share of positive examples")
    right.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.05), aspect="equal")
    for panel in (left, right):
        panel.legend(frameon=False, fontsize=8, loc="lower right" if panel is left else "lower left")
        panel.spines[["top", "right"]].set_visible(False)
    return drawn


def main():
    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few data sets and regularisers; writes nothing")
    parser.add_argument(
        "--resume", action="store_true", help="takes the regularisers that an earlier run of this code made"
    )
    quick, resume = (options := parser.parse_args()).quick, options.resume
    begun, figures, lines = time.perf_counter(), {}, []

    def add(more):
        lines.extend(more)
        print("\n".join(more), flush=True)

    add([*show_losses(), ""])
    sets, n = (20, 15) if quick else (1000, 15)
    found = training.polynomials(sets, n)
    wide = training.networks(sets // 10, n)
    path = training.training_path(sets // 10, n)
    more = {size: training.polynomials(sets, size, (9,)) for size in ((15, 100) if quick else (15, 30, 100, 1000))}
    add(training.show_overfitting(found, wide, more, path, n))
    figures["overfitting"] = training.overfitting_figure(found, wide, path)
    some = [r for r in training.REGULARISERS if not quick or r.name in ("none", "L2", "batch normalisation")]
    sizes, chosen, taken = (10, 50) if quick else (100, 1000), [], 0.0
    for one in some:
        begun_one, train = time.perf_counter(), partial(training.regularised, one, *sizes)
        found, minutes = (train(), 0.0) if quick else kept_part(f"scott_variyam-{one.name}", train, resume)
        taken += max(0.0, minutes - (time.perf_counter() - begun_one) / 60)  # of an earlier run
        print(f"{one.name}: {(time.perf_counter() - begun_one) / 60:.1f} minutes", flush=True)
        chosen.append(found)
    add(training.show_regularisers(chosen))
    figures["regularisers"] = training.regularisers_figure(chosen)
    add(training.show_others(10, (0.0,)) if quick else training.show_others(100))
    add(show_tables() + show_coverage())
    figures["intervals"] = interval_figure()
    add(show_comparisons(200 if quick else 4000))
    add(show_metrics())
    figures["roc"] = roc_figure()
    heading = [
        machine(),
        f"Scott & Variyam: {taken + (time.perf_counter() - begun) / 60:.1f} minutes, compilation included; every seed "
        "stands in the scripts",
        "",
    ]
    if not quick:
        publish("scott_variyam.txt", "\n".join(heading + lines), figures)
    plt.close("all")


if __name__ == "__main__":
    main()
