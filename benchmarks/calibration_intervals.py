"""Coverage and width of every interval of resampled rows; see `calibration.py`."""

import jax
import numpy as np
import scipy.stats
from calibration_systems import assessed, blocks, with_risks

import jaxgen as jg
from jaxgen import loss, resample
from jaxgen.stats import estimate, interval

LEVEL = 0.95


def designs(n):
    """Plans and the intervals that each serves: name of the plan, the plan, and functions of (losses, full fit,
    no-information rate).
    """
    key = jax.random.key(n)
    return (
        (
            "a third left out, once",
            resample.leave_out(key, n, 1 / 3, 1),
            {"hold-out": lambda a, full, gamma: interval.hold_out(a)},
        ),
        (
            "a tenth left out, 25 times",
            resample.leave_out(key, n, 0.1, 25),
            {
                "naive t": lambda a, full, gamma: interval.naive_t(a),
                "corrected t": lambda a, full, gamma: interval.corrected_t(a),
            },
        ),
        (
            "a third left out, 100 times",
            resample.leave_out(key, n, 1 / 3, 100),
            {
                "naive t": lambda a, full, gamma: interval.naive_t(a),
                "corrected t": lambda a, full, gamma: interval.corrected_t(a),
                "L_beta": lambda a, full, gamma: estimate.l_beta(a, full),
                "L_alpha_beta": lambda a, full, gamma: estimate.l_alpha_beta(a),
            },
        ),
        ("5 folds", resample.k_fold(key, n, 5), {"CV-CLT": lambda a, full, gamma: interval.cross_validation(a)}),
        (
            "10 folds",
            resample.k_fold(key, n, 10),
            {
                "CV-CLT": lambda a, full, gamma: interval.cross_validation(a),
                "CV-CLT, within folds": lambda a, full, gamma: interval.cross_validation(a, variance="within"),
            },
        ),
        (
            "10 x 10 folds",
            resample.k_fold(key, n, 10, 10),
            {"Bouckaert-Frank": lambda a, full, gamma: interval.bouckaert_frank(a)},
        ),
        ("5 x 2 folds", resample.five_by_two(key, n), {"5 x 2": lambda a, full, gamma: interval.five_by_two(a)}),
        (
            "3 x nested 5 folds",
            resample.nested_pairs(key, n, 5, 3),
            {"nested CV": lambda a, full, gamma: interval.nested_cross_validation(a)},
        ),
        (
            "10 pairs of halves, 5 splits",
            resample.paired_halves(key, n, 10, 5),
            {"conservative Z": lambda a, full, gamma: interval.conservative_z(a)},
        ),
        (
            "200 bootstrap samples",
            resample.bootstrap(key, n, 200),
            {
                "out-of-bag, published": lambda a, full, gamma: estimate.out_of_bag(a, standard_error="raw"),
                "out-of-bag, corrected": lambda a, full, gamma: estimate.out_of_bag(a),
                ".632+, published": lambda a, full, gamma: estimate.error_632_plus(
                    a, full, gamma, standard_error="raw"
                ),
                ".632+, corrected": lambda a, full, gamma: estimate.error_632_plus(a, full, gamma),
            },
        ),
    )


DECISIVE = ("once", "25 times", "10 folds", "nested", "halves")
"""Words in the names of the plans that all learners are tried on: what `recommend` may take, and 10 folds."""


def prediction(y, predicted):
    """The prediction itself, where `assess` expects a loss."""
    return predicted[..., 0]


def rows(setting, n, sets):
    """One row of the table per interval; `level` holds the one-sided levels at R, [sets]."""
    found, risks, of_folds, trainings = {}, [], [], {}
    plans = [plan for plan in designs(n) if setting.every or any(word in plan[0] for word in DECISIVE)]
    ten_folds = next(plan for name, plan, _ in plans if name == "10 folds")
    for seed, size in blocks(setting, n, sets):
        key = jax.random.key(seed)
        data, risk_of = with_risks(setting, n, size, seed)
        risks.append(risk_of(resample.full(n)))
        of_folds.append(risk_of(ten_folds))
        full, *losses = assessed(key, setting.learner, data, [resample.full(n), *(plan for _, plan, _ in plans)])
        predicted = np.asarray(jg.assess(key, setting.learner, data, resample.full(n), prediction).values, np.float64)
        gamma = estimate.no_information_rate(data.y, predicted[:, 0, :, None], loss.squared)
        for (plan_name, plan, methods), one in zip(plans, losses, strict=True):
            trainings[plan_name] = plan.resamples
            for name, method in methods.items():
                got = method(one, full, gamma)
                found.setdefault((name, plan_name), []).append(
                    np.stack(np.broadcast_arrays(got.estimate, got.standard_error, got.df, got.lower, got.upper))
                )
    risk, of_folds = np.concatenate(risks), np.concatenate(of_folds)
    for (method, plan_name), parts in found.items():
        yield {
            "learner": setting.name,
            "n": n,
            "interval": method,
            "plan": plan_name,
            "trainings": trainings[plan_name],
            "sets": sets,
        } | _measured(np.concatenate(parts, axis=-1), risk, of_folds if plan_name == "10 folds" else risk * np.nan)


def _measured(numbers, risk, of_folds):
    """Coverage of R, ER and the k-fold test error, levels, width and centre of one interval from estimate, standard
    error, degrees of freedom and limits, [5, sets].
    """
    centre, error, df, lower, upper = numbers
    expected, law = risk.mean(), scipy.stats.t(np.where(np.isnan(df), np.inf, df))
    row: dict = {"missing": np.mean(np.isnan(lower))}
    for target, truth in (("R", risk), ("ER", np.full(risk.shape, expected))):
        row |= {
            f"covers {target}": np.mean((lower <= truth) & (truth <= upper)),
            f"below {target}": np.mean(upper < truth),
            f"above {target}": np.mean(lower > truth),
        }
    with np.errstate(invalid="ignore"):
        holds = (lower <= of_folds) & (of_folds <= upper)
    row["covers folds"] = np.nan if np.isnan(of_folds).all() else np.mean(holds)
    level = law.cdf((risk - centre) / error)
    row |= {"levels R": scipy.stats.kstest(level[np.isfinite(level)], "uniform").statistic, "level": level}
    return row | {"width": np.nanmean(upper - lower) / expected, "centre": np.mean(centre) / expected, "ER": expected}


def lines(frame):
    """The table, a part per learner and size."""
    columns = [
        "interval",
        "plan",
        "trainings",
        "covers R",
        "covers ER",
        "covers folds",
        "below R",
        "above R",
        "levels R",
        "width",
        "centre",
        "missing",
    ]
    text = [
        f"Intervals at {LEVEL:.0%}, squared loss.",
        "covers: share of data sets whose interval holds R (the risk of the model trained on all n "
        "cases), ER (its mean) or the test error of the ten folds (the mean risk of their models); below, above R;",
        "levels: largest distance of the distribution of one-sided levels at R from the uniform one; "
        "width (mean), centre: over ER; missing: no standard error",
    ]
    text += [
        "",
        "Over all sizes n: lowest coverage of R for each learner, lowest coverage of ER of all, mean "
        "width / ER, and most sets without a standard error",
        *_summary(frame),
    ]
    for (learner, n), part in frame.groupby(["learner", "n"], sort=False):
        sets = int(part.sets.iloc[0])
        error, band = np.sqrt(LEVEL * (1 - LEVEL) / sets), scipy.stats.kstwo.ppf(0.95, sets)
        text += [
            "",
            f"{learner}, n = {n}: {sets} data sets, ER = {part.ER.iloc[0]:.3f}; "
            f"a coverage of {LEVEL:.0%} has binomial standard error {error:.3f}, levels are below "
            f"{band:.3f} in 95 of 100 runs",
        ]
        text += part[columns].to_string(index=False, float_format=lambda v: f"{v:.3f}").splitlines()
    return text


def _summary(frame):
    """A row per interval and plan."""
    by = ["interval", "plan", "trainings"]
    rows = frame.groupby(by, sort=False)
    worst = frame.pivot_table(index=by, columns="learner", values="covers R", aggfunc="min", sort=False)
    worst = worst.assign(
        ER=rows["covers ER"].min(), width=rows["width"].mean(), missing=rows["missing"].max()
    ).reset_index()
    return worst.rename_axis(columns=None).to_string(index=False, float_format=lambda v: f"{v:.3f}").splitlines()
