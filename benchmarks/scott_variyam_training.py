"""Scott & Variyam's slides on overfitting and regularization, at work; see `scott_variyam.py`."""

from dataclasses import dataclass

import flax.linen as nn
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxgen as jg
from jaxgen import datasets, learn, plot, resample
from jaxgen.stats import compare

BLUE, ORANGE, GREEN, PINK = plot.COLOURS[:4]
GRID, SINE_NOISE = 400, 0.3
DEGREES, WIDTHS = tuple(range(10)), (1, 2, 3, 5, 10, 30)
INPUTS, FEATURES, TASKS, N, NOISE, FRESH = 8, 4, 4, 100, 0.5, 2000
ADAM = learn.Optax("adam", learning_rate=0.02)


# Overfitting of sin(2 pi x)


def sine(seed, sets, n):
    """Inputs between 0 and 1 [sets, n], targets sin(2 pi x) with noise, and a grid of new inputs [GRID]."""
    random = np.random.default_rng(seed)
    x = random.uniform(0, 1, (sets, n))
    return x, np.sin(2 * np.pi * x) + SINE_NOISE * random.normal(size=x.shape), (np.arange(GRID) + 0.5) / GRID


def polynomials(sets, n, degrees=DEGREES, seed=0):
    """Training error and risk, [degrees, sets], of least squares on polynomials of each degree.

    In 64 bits and by Legendre's polynomials, since a tenth degree is hard on rounding.
    """
    x, y, grid = sine(seed, sets, n)
    plan, errors = one_split(n), []
    with jax.enable_x64(True):
        for degree in degrees:
            if degree == 0:
                learner, columns = learn.Mean(), 2
            else:
                learner, columns = learn.LeastSquares(minimum_norm=True), degree + 1
            both = np.concatenate([x, np.broadcast_to(grid, (sets, GRID))], axis=1)
            features = np.polynomial.legendre.legvander(2 * both - 1, columns - 1)[..., 1:]
            target = np.concatenate([y, np.broadcast_to(np.sin(2 * np.pi * grid), (sets, GRID))], axis=1)[..., None]
            data = jg.Data(features, target, tuple(f"P{power}" for power in range(1, columns)))
            rows = jg.assess(jax.random.key(0), learner, data, plan, keep="rows")
            errors.append((rows.apparent[:, 0], rows.g[:, 0] + SINE_NOISE**2))
    return np.moveaxis(np.array(errors), 1, 0)


def one_split(n, fresh=GRID):
    """The plan that trains on the first n cases and tests on the fresh ones."""
    train = (np.arange(n + fresh) < n).astype(np.uint8)[None]
    return resample.from_weights(train, 1 - train)


def network_of(width, steps):
    """A network of so many tanh units for the sine."""
    return learn.Descent(learn.MLP((width,), init="glorot"), steps=steps, optimiser=ADAM)


def networks(sets, n, widths=WIDTHS, steps=3000, seed=0):
    """Training error and risk, [widths, sets], of networks of each width."""
    x, y, grid = sine(seed, sets, n)
    both = np.concatenate([x, np.broadcast_to(grid, (sets, GRID))], axis=1)[..., None]
    target = np.concatenate([y, np.broadcast_to(np.sin(2 * np.pi * grid), (sets, GRID))], axis=1)[..., None]
    data, errors = jg.Data(2 * both - 1, target, ("x",)), []
    for width in widths:
        rows = jg.assess(jax.random.key(1), network_of(width, steps), data, one_split(n), keep="rows")
        errors.append((rows.apparent[:, 0], rows.g[:, 0] + SINE_NOISE**2))
    return np.moveaxis(np.array(errors), 1, 0)


def training_path(sets, n, width=30, steps=3000, seed=0):
    """Iterations [S], and training error and risk of networks at each of them, [sets, S]."""
    x, y, grid = sine(seed, sets, n)
    learner = network_of(width, steps)
    x, y, new = (jnp.asarray(a[..., None], jnp.float32) for a in (2 * x - 1, y, 2 * grid - 1))
    truth = np.sin(2 * np.pi * grid)[:, None]

    def one(key, x, y):
        path = learner.path(key, x, y, jnp.ones(n))
        return tuple(jax.vmap(lambda saved, cases=cases: learner.predict(saved, cases))(path) for cases in (x, new))

    old, fresh = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), sets), x, y)
    training = np.square(np.asarray(old) - np.asarray(y)[:, None]).mean((2, 3))
    return (
        np.array(learner.checkpoint_steps),
        training,
        np.square(np.asarray(fresh) - truth).mean((2, 3)) + SINE_NOISE**2,
    )


def show_overfitting(found, wide, more, path, n):
    """The tables of overfitting."""

    def row(name, training, risk):
        low, high = np.quantile(risk, [0.25, 0.75])
        return f"{name:>12}{np.median(training):16.4f}{np.median(risk):14.4g}{low:14.4g}{high:12.4g}"

    head = f"{'':>12}{'training error':>16}{'risk, median':>14}{'quartiles':>14}"
    lines = [
        "2. Overfitting of sin(2 pi x) (slides 9 to 13)",
        f"Noise of standard deviation {SINE_NOISE}, so no risk is below {SINE_NOISE**2:.2f}; {n} cases, "
        f"{found.shape[2]} "
        f"training sets for polynomials, {wide.shape[2]} for networks of one layer trained for 3000 steps. Medians.",
        head.replace(" " * 12, f"{'degree':>12}", 1),
    ]
    lines += [row(str(degree), *found[:, place]) for place, degree in enumerate(DEGREES)]
    training, risk = found
    overfits = np.mean((training[9] < training[3]) & (risk[9] > risk[3]))
    lines.append(
        "Degree 9 overfits by the slides' definition (less training error than degree 3, more risk) in "
        f"{overfits:.1%} of "
        "training sets."
    )
    lines.append(head.replace(" " * 12, f"{'units':>12}", 1))
    lines += [row(str(width), *wide[:, place]) for place, width in enumerate(WIDTHS)]
    steps, training, risk = path
    best = np.median(risk, axis=0).argmin()
    lines += [
        f"Overtraining, 30 units (slide 13): the median risk is least after {steps[best]} steps, "
        f"{np.median(risk[:, best]):.4f}, and {np.median(risk[:, -1]):.4f} after {steps[-1]}; "
        f"the training error goes from {np.median(training[:, best]):.4f} to {np.median(training[:, -1]):.4f}.",
        "A larger data set mitigates the problem (slide 12): degree 9, by the number of cases",
        head.replace(" " * 12, f"{'cases':>12}", 1),
    ]
    lines += [row(str(size), *errors[:, 0]) for size, errors in more.items()]
    return lines


def overfitting_figure(found, wide, path):
    """Training error and risk by degree, by width, and by training time."""
    drawn, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained", sharey=True)
    steps, training, risk = path
    panels = (
        (np.array(DEGREES), found, "degree of the polynomial", "linear"),
        (np.array(WIDTHS), wide, "tanh units", "log"),
        (steps, np.array([training.T, risk.T]), "training steps, 30 units", "log"),
    )
    for panel, (place, (training, risk), label, scale) in zip(axes, panels, strict=True):
        for values, colour, style, name in ((training, BLUE, "o--", "training error"), (risk, ORANGE, "s-", "risk")):
            low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=1)
            panel.fill_between(place, low, high, color=colour, alpha=0.2, linewidth=0)
            panel.plot(place, middle, style, color=colour, markersize=4, label=name)
        panel.axhline(SINE_NOISE**2, color="0.5", linewidth=1, linestyle=":", label="variance of the noise")
        panel.set(xlabel=label, xscale=scale, yscale="log", ylim=(1e-2, 20))
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("squared error: median and quartiles")
    axes[1].legend(frameon=False, loc="upper right")
    return drawn


# Regularisers on a task that all can help with


def first_output(y, prediction):
    """Squared error of the first task, whatever others are learned with it."""
    return jnp.square(y[..., 0] - prediction[..., 0])


def flip(key, x, y):
    """The mirror image of a case, which the truth, an odd function, has too."""
    return -x, -y


def jitter(key, x, y):
    """A copy of a case with noise on its inputs."""
    return x + 0.3 * jax.random.normal(key, x.shape, x.dtype), y


def shared_features(seed, sets, n):
    """Inputs [sets, n, INPUTS] and the noise-free targets of TASKS tasks, which weigh the same hidden features
    differently; of unit variance, nearly.
    """
    truth = np.random.default_rng(0)
    directions = 2 * truth.normal(size=(INPUTS, FEATURES)) / np.sqrt(INPUTS)
    weights = truth.normal(size=(FEATURES, TASKS))
    scale = (np.tanh(truth.normal(size=(20_000, INPUTS)) @ directions) @ weights).std(0)
    x = np.random.default_rng(seed).normal(size=(sets, n, INPUTS))
    return x, np.tanh(x @ directions) @ weights / scale


def cases(seed, sets, n, tasks=1):
    """Data sets of the first so many tasks, [sets, n], with noise."""
    x, ideal = shared_features([seed, 1], sets, n)
    y = ideal + NOISE * np.random.default_rng([seed, 2]).normal(size=ideal.shape)
    return jg.Data(x, y[..., :tasks], tuple(f"x{i}" for i in range(INPUTS)))


def base(network=None, **settings):
    """The network that is regularised: far more units and steps than it needs."""
    network = network or learn.MLP((30,), init="glorot")
    return learn.Descent(network, steps=500, optimiser=ADAM, **settings)


def network(**settings):
    """The same with other settings of the network itself."""
    return learn.Normalised(base(learn.MLP((30,), init="glorot", **settings)), how="standard")


def standard(learner):
    """A learner of standardised inputs and targets."""
    return learn.Normalised(learner, how="standard")


@dataclass(frozen=True)
class Regulariser:
    """One slide.

    Attributes:
      choices: strengths as text, each with a learner.
      tasks: tasks that each learns.
    """

    name: str
    choices: tuple[tuple[str, object], ...]
    tasks: tuple[int, ...] = ()

    def tasks_of(self, choice):
        """Tasks of a choice."""
        return self.tasks[choice] if self.tasks else 1


REGULARISERS = (
    Regulariser("none", (("", standard(base())),)),
    Regulariser("L2", tuple((f"{a:g}", standard(base(penalty=learn.L2(a)))) for a in (1.0, 3.0, 10.0))),
    Regulariser("L1", tuple((f"{a:g}", standard(base(penalty=learn.L1(a)))) for a in (0.3, 1.0, 3.0))),
    Regulariser(
        "early stopping, one quarter",
        tuple(
            (f"patience {p:g}" if p else "to the end", standard(learn.EarlyStopped(base(), share=0.25, patience=p)))
            for p in (3, 30, None)
        ),
    ),
    Regulariser("early stopping, 4 networks", (("", standard(learn.EarlyStopped(base(), folds=4))),)),
    Regulariser(
        "dropout",
        tuple(
            (text, network(dropout=d))
            for text, d in (("0.2", 0.2), ("0.5", 0.5), ("inputs 0.2, units 0.5", (0.2, 0.5)))
        ),
    ),
    Regulariser("batch normalisation", (("", network(batch_norm=True)),)),
    Regulariser("noise on inputs", tuple((f"{s:g}", network(noise=s)) for s in (0.3, 0.6, 1.0))),
    Regulariser("noise on hidden units", tuple((f"{s:g}", network(noise=(0.0, s))) for s in (0.3, 1.0, 3.0))),
    Regulariser("augmentation, mirror", (("", learn.Augmented(standard(base()), flip)),)),
    Regulariser("augmentation, jitter", (("3 copies", learn.Augmented(standard(base()), jitter, copies=3)),)),
    Regulariser("multitask", tuple((f"{t} tasks", standard(base())) for t in (2, 4)), (2, 4)),
    Regulariser(
        "multitask and L2",
        tuple((f"{t} tasks, {a:g}", standard(base(penalty=learn.L2(a)))) for t, a in ((2, 3.0), (4, 3.0), (4, 10.0))),
        (2, 4, 4),
    ),
    Regulariser(
        "mirror and L2",
        tuple((f"{a:g}", learn.Augmented(standard(base(penalty=learn.L2(a))), flip)) for a in (1.0, 3.0, 10.0)),
    ),
    Regulariser(
        "sparse representation", tuple((f"{a:g}", standard(base(penalty=learn.Sparse(a)))) for a in (0.03, 0.1, 0.3))
    ),
)


def risks(learner, tasks, sets, seed):
    """Risk for the first task of the models of `sets` data sets of N cases, [sets]."""
    data, (new, ideal) = cases(seed, sets, N, tasks), shared_features([seed, 3], 1, FRESH)
    x = np.concatenate([data.x, np.repeat(new, sets, axis=0)], axis=1)
    y = np.concatenate([data.y, np.repeat(ideal[..., :tasks], sets, axis=0)], axis=1)
    both = jg.Data(x, y, data.names)
    rows = jg.assess(jax.random.key(seed), learner, both, one_split(N, FRESH), first_output, keep="rows")
    return rows.g[:, 0] + NOISE**2


@dataclass(frozen=True)
class Chosen:
    """A regulariser at its best strength.

    Attributes:
      pilot: mean risk of every strength on data sets of their own.
      truth: risks on other data sets, [sets].
      losses: of the resamplings of one further data set.
    """

    name: str
    strength: str
    pilot: tuple[float, ...]
    truth: np.ndarray
    losses: jg.Losses


def regularised(one, sets, resamples):
    """A regulariser: its strength chosen on some data sets, its truth from others, G over resamplings of one more."""
    plan = resample.leave_out(jax.random.key(4), N * 5 // 4, 0.2, resamples)
    pilot = tuple(
        risks(learner, one.tasks_of(place), sets, 1).mean() if len(one.choices) > 1 else np.nan
        for place, (_, learner) in enumerate(one.choices)
    )
    best = int(np.argmin(pilot)) if len(pilot) > 1 else 0
    strength, learner = one.choices[best]
    data = cases(3, 1, N * 5 // 4, one.tasks_of(best))[0]
    losses = jg.assess(jax.random.key(5), learner, data, plan, first_output)
    return Chosen(one.name, strength, pilot, risks(learner, one.tasks_of(best), sets, 2), losses)


def compared(chosen):
    """Each regulariser against none: corrected t-tests and their p-values by Holm."""
    tests = [compare.corrected_t(chosen[0].losses, one.losses) for one in chosen[1:]]
    return tests, compare.holm(np.array([float(test.p_value) for test in tests]))


def show_regularisers(chosen):
    """The table of regularisers."""
    tests, adjusted = compared(chosen)
    none = chosen[0]
    lines = [
        "",
        "3. Regularisers (slides 14 to 25)",
        f"One hidden layer of 30 tanh units, 500 steps of Adam; {INPUTS} inputs, noise of variance {NOISE**2:g}, "
        "which is the least risk.",
        f"{none.losses.resamples:,} resamplings of one data set: {N} cases train, {N // 4} test. Where there were "
        f"several strengths, the best on {len(none.truth)} other data sets of {N} cases.",
        f"True risks: means of {len(none.truth)} further data sets. Difference from none: corrected t-test, p by Holm.",
        "Right: whether the verdict at 5 % is what the true difference says (beyond two standard errors), or no "
        "verdict.",
        f"{'':28}{'strength':>22}{'G':>8}{'sd G':>7}{'apparent':>10}{'difference':>12}{'95 % interval':>20}{'p':>9}"
        f"{'Holm':>8}{'risk':>8}{'true difference':>20}  verdict",
    ]
    for place, one in enumerate(chosen):
        start = f"{one.name:28}{one.strength:>22}{one.losses.g.mean():8.3f}{one.losses.g.std(ddof=1):7.3f}"
        start += f"{one.losses.apparent.mean():10.3f}"
        if place == 0:
            lines.append(f"{start}{'':49}{one.truth.mean():8.3f}")
            continue
        test, p, pairs = tests[place - 1], adjusted[place - 1], one.truth - none.truth
        error = pairs.std(ddof=1) / np.sqrt(len(pairs))
        sign = np.sign(pairs.mean()) * (abs(pairs.mean()) > 2 * error)
        verdict = "no verdict" if p >= 0.05 else "right" if np.sign(float(test.estimate)) == sign else "wrong"
        lines.append(
            f"{start}{float(test.estimate):12.3f}{f'{float(test.lower):.3f} to {float(test.upper):.3f}':>20}"
            f"{float(test.p_value):9.2g}{p:8.2g}{one.truth.mean():8.3f}{f'{pairs.mean():.3f} ({error:.3f})':>20}  "
            f"{verdict}"
        )
    of = {one.name: one.truth for one in chosen}
    for name in (name for name in of if name.endswith(" and L2")):
        pairs = of[name] - of["L2"]
        error = pairs.std(ddof=1) / np.sqrt(len(pairs))
        lines.append(f"True difference of {name} from L2 alone: {pairs.mean():.3f} ({error:.3f})")
    if any(len(one.pilot) > 1 for one in chosen):
        lines.append("Mean risk of every strength in the pilot:")
    for one, regulariser in zip(chosen, [r for r in REGULARISERS if r.name in {c.name for c in chosen}], strict=True):
        if len(one.pilot) > 1:
            each = ", ".join(
                f"{text}: {value:.3f}" for (text, _), value in zip(regulariser.choices, one.pilot, strict=True)
            )
            lines.append(f"  {one.name}: {each}")
    return lines


def regularisers_figure(chosen):
    """G over resamplings of each regulariser, with the true risk; and the differences from none."""
    drawn, (left, right) = plt.subplots(1, 2, figsize=(12, 0.42 * len(chosen) + 1.6), layout="constrained", sharey=True)
    names = [": ".join(filter(None, (one.name, one.strength))) for one in chosen]
    tests, adjusted = compared(chosen)
    for place, one in enumerate(chosen):
        low, first, middle, third, high = np.quantile(one.losses.g, [0.05, 0.25, 0.5, 0.75, 0.95])
        left.plot([low, high], [place, place], color="0.7", linewidth=1.5, label="" if place else "G, 5 to 95 %")
        left.plot(
            [first, third],
            [place, place],
            color=BLUE,
            linewidth=6,
            solid_capstyle="butt",
            label="" if place else "quartiles",
        )
        left.plot(middle, place, "|", color="white", markersize=9)
        left.plot(
            one.truth.mean(),
            place,
            "D",
            color=ORANGE,
            markersize=5,
            label="" if place else "true risk, other data sets",
        )
        if place:
            test, pairs = tests[place - 1], one.truth - chosen[0].truth
            sure = adjusted[place - 1] < 0.05
            right.plot([float(test.lower), float(test.upper)], [place, place], color=BLUE, linewidth=1.5)
            right.plot(float(test.estimate), place, "o", color=BLUE, markerfacecolor=BLUE if sure else "white")
            right.plot(pairs.mean(), place, "D", color=ORANGE, markersize=5)
    left.axvline(NOISE**2, color="0.5", linestyle=":", linewidth=1, label="variance of the noise")
    right.axvline(0, color="0.5", linewidth=1)
    left.set(
        yticks=range(len(chosen)),
        yticklabels=names,
        ylim=(len(chosen) - 0.5, -0.5),
        xlabel="squared error",
        xlim=(0, None),
    )
    right.set(xlabel="difference from none, corrected 95 % interval")
    right.plot([], [], "o", color=BLUE, label="differs at 5 % by Holm")
    right.plot([], [], "o", color=BLUE, markerfacecolor="white", label="does not")
    right.plot([], [], "D", color=ORANGE, label="true difference")
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", color="0.93")
        panel.set_axisbelow(True)
    drawn.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncols=2, frameon=False, fontsize=9)
    drawn.legend(*right.get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False, fontsize=9)
    return drawn


# What penalties do to weights and activations


def sparsity(sets, seed=6):
    """For no penalty, L2, L1 and sparse representation: share of weights below a hundredth of the largest, and of
    hidden activations below a tenth, of networks of `sets` data sets.
    """
    data = cases(seed, sets, N)
    x = jnp.asarray((data.x - data.x.mean(1, keepdims=True)) / data.x.std(1, keepdims=True), jnp.float32)
    y = jnp.asarray((data.y - data.y.mean(1, keepdims=True)) / data.y.std(1, keepdims=True), jnp.float32)
    keys = jax.random.split(jax.random.key(seed), sets)
    for name, penalty in (
        ("none", ()),
        ("L2, strength 3", learn.L2(3.0)),
        ("L1, strength 1", learn.L1(1.0)),
        ("sparse representation, strength 0.1", learn.Sparse(0.1)),
    ):
        learner = base(penalty=penalty)

        def one(key, x, y, learner=learner):
            params = learner.fit(key, x, y, jnp.ones(N)).params
            weights = jnp.abs(jnp.concatenate([params[layer]["kernel"].ravel() for layer in ("hidden_0", "output")]))
            [hidden] = learner.network.forward(params, x.T).hidden
            return jnp.mean(weights < 0.01 * weights.max()), jnp.mean(jnp.abs(hidden) < 0.1)

        small, quiet = jax.jit(jax.vmap(one))(keys, x, y)
        yield name, float(small.mean()), float(quiet.mean())


# Parameter tying and sharing, and copies in both training and test cases


def scenarios(seed, sets, n):
    """Two scenarios of one task, told apart by the last input: their truths differ a little."""
    x, ideal = shared_features([seed, 1], sets, n)
    which = np.arange(n)[None, :, None] % 2 * np.ones((sets, 1, 1))
    truth = ideal[..., :1] + 0.3 * which * ideal[..., 1:2]
    return np.concatenate([x, which], axis=-1), truth


def tied(sets, decays, seed=7):
    """Mean risk, and its standard error, of two networks that are not tied, of tied ones, and of one for both, whose
    input tells the scenario; for each strength of the penalty L2, 0 for none.
    """
    x, truth = scenarios(seed, sets, N)
    new, ideal = scenarios(seed + 1000, 1, FRESH)
    y = truth + NOISE * np.random.default_rng([seed, 2]).normal(size=truth.shape)
    names = (*(f"x{i}" for i in range(INPUTS)), "scenario")
    both = jg.Data(
        np.concatenate([x, np.repeat(new, sets, axis=0)], axis=1),
        np.concatenate([y, np.repeat(ideal, sets, axis=0)], axis=1),
        names,
    )
    pair = learn.PerTask(learn.MLP((15,), init="glorot"), tasks=2, column=INPUTS)
    learners = {}
    for more in decays:
        decay = (learn.L2(more),) if more else ()
        end = f", L2 of {more:g}" if more else ""
        learners[f"two networks, not tied{end}"] = base(pair, penalty=decay)
        for a in (1.0, 10.0):
            learners[f"two networks, tied by {a:g}{end}"] = base(pair, penalty=(*decay, learn.Tied(a)))
        learners[f"one network for both{end}"] = base(penalty=decay)
    for name, learner in learners.items():
        rows = jg.assess(jax.random.key(8), standard(learner), both, one_split(N, FRESH), keep="rows")
        risk = rows.g[:, 0] + NOISE**2
        yield name, risk.mean(), risk.std(ddof=1) / np.sqrt(sets)


class Detector(nn.Module):
    """One small network that looks at every window of a signal with the same weights; its answers are added up."""

    @nn.compact
    def __call__(self, x):
        windows = jnp.stack([x[:, place : place + 4] for place in range(x.shape[1] - 3)], axis=1)
        return nn.Dense(1)(nn.tanh(nn.Dense(8)(windows)).sum(axis=1))


def shared(sets, n=60, length=16, seed=9):
    """Mean risk, and its standard error, for the size of a pattern that stands somewhere in a signal: of a network that
    shares its parameters over places, and of one that does not.
    """
    random = np.random.default_rng(seed)
    size, place = random.uniform(-1, 1, (sets, n + GRID, 1)), random.integers(0, length - 3, (sets, n + GRID))
    where = np.arange(length) - place[..., None]
    pattern = np.array([1.0, -2.0, 2.0, -1.0])
    signal = np.where((where >= 0) & (where < 4), pattern[np.clip(where, 0, 3)], 0.0)
    x = size * signal + 0.1 * random.normal(size=signal.shape)
    data = jg.Data(x, size, tuple(f"t{i}" for i in range(length)))
    for name, net in (("one detector for all places", Detector()), ("30 units that see the whole signal", None)):
        rows = jg.assess(jax.random.key(10), base(net), data, one_split(n), keep="rows")
        yield name, rows.g.mean(), rows.g.std(ddof=1) / np.sqrt(sets)


def copies(repeats=20):
    """G of one nearest neighbour on the diabetes data and on these with a jittered copy of every case: with copies
    anywhere, and with every copy on the side of its original.
    """
    data = datasets.diabetes()
    random = np.random.default_rng(11)
    near = data.x + 0.05 * data.x.std(0) * random.normal(size=data.x.shape)
    double = jg.Data(np.concatenate([data.x, near]), np.concatenate([data.y, data.y]), data.names)
    key, learner = jax.random.key(12), standard(learn.Neighbours(1))
    pairs = np.tile(np.arange(data.n), 2)
    plans = (
        ("the data as they are", data, resample.k_fold(key, data.n, 10, repeats)),
        ("copies anywhere", double, resample.k_fold(key, double.n, 10, repeats)),
        ("copies beside their originals", double, resample.k_fold(key, double.n, 10, repeats, groups=pairs)),
    )
    for name, cases_, plan in plans:
        yield name, jg.assess(jax.random.key(13), learner, cases_, plan).g.mean()


def show_others(sets, decays=(0.0, 1.0)):
    """The tables of the other slides; tied networks with the penalty L2 of each of the strengths `decays`."""
    lines = ["", f"What penalties do to weights and to hidden units, {min(sets, 20)} data sets (slides 17, 25)"]
    lines.append(f"{'penalty':44}{'weights below 1 % of the largest':>34}{'activations below 0.1':>24}")
    for name, small, quiet in sparsity(min(sets, 20)):
        lines.append(f"{name:44}{small:34.3f}{quiet:24.3f}")
    lines.append("By gradient descent the penalty L1 makes weights small and not exactly 0, as the LASSO's methods do.")
    lines += [
        "",
        "Parameter tying (slide 24): two scenarios whose truths differ a little, half of 100 cases each; mean risk",
    ]
    lines += [f"{name:44}{risk:8.3f} ({error:.3f})" for name, risk, error in tied(sets, decays)]
    lines += ["", "Parameter sharing (slide 24): the size of a pattern anywhere in a signal, 60 cases; mean risk"]
    lines += [f"{name:44}{risk:8.4f} ({error:.4f})" for name, risk, error in shared(sets)]
    lines += [
        "",
        "Duplicates in both training and test set (slides 18, 27): 1 nearest neighbour, diabetes, repeated 10 folds",
    ]
    lines += [f"{name:44}{g:8.0f}" for name, g in copies()]
    return lines
