"""The engine on an accelerator, beside what that device can do.

    python benchmarks/gpu.py                   writes results/gpu_DEVICE.txt on an accelerator; a small size on a CPU
    python benchmarks/gpu.py networks larsen   only some parts in the same file: networks, learners, larsen, neal
    python benchmarks/gpu.py --quick           the small size on any device; writes nothing

Measured are the table of networks of `speed.py --networks`, Neal's mlp-bgd methods on his tasks, Larsen & Hansen's
Table 1, and learners of `learners.py` beside the CPU of the same machine, with the largest difference of a loss. On a
CPU everything is a tenth of the size or less, so that the script stays true where there is no accelerator; its result
file is then gpu_cpu.txt. On an H100 all but Neal's methods, which were not run there, took 2.5 minutes.
"""

import argparse
import os
import re
import time
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from learners import network, real, simulated
from quiet import Watch, publish
from speed import machine
from speed_networks import HIDDEN, jaxgen_networks, timed

import jaxgen as jg
from jaxgen import delve, learn, resample, simulate


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes:
      shapes: inputs and cases of the networks.
      networks: that are trained at once.
      families: of DELVE, and their inputs.
      steps: epochs of mlp-bgd.
      sets, some: data sets of Larsen & Hansen's system, and how many of them are resampled.
      product, values: rows of a square matrix, and values of an array, by which the device is measured.
    """

    shapes: tuple[tuple[int, int], ...]
    networks: tuple[int, ...]
    families: tuple[tuple[str, int], ...]
    steps: int
    sets: int
    some: int
    product: int
    values: int


WHOLE = Size(
    shapes=((8, 64), (8, 1024), (32, 256), (32, 1024)),
    networks=(16, 250, 4000),
    families=tuple((family, inputs) for inputs in (8, 32) for family in delve.FAMILIES),
    steps=20_000,
    sets=30_000,
    some=500,
    product=8192,
    values=1 << 24,
)
SMALL = Size(
    shapes=((8, 64), (32, 256)),
    networks=(16, 250),
    families=(("kin", 8),),
    steps=1000,
    sets=3000,
    some=50,
    product=1024,
    values=1 << 20,
)
LARGER = 16
"""The array by which the memory is measured is so many times as large, so that no cache holds it."""
CHAIN = 64
"""Functions of each value that one pass over the memory computes, so that the memory does not limit them."""


def limits(size):
    """What the device does in a second: multiplications and additions of a large product in full single precision,
    bytes of memory read and written (by one core of a CPU), and evaluations of tanh.
    """
    n, rounds = size.product, 10

    def product(a):
        return lax.fori_loop(0, rounds, lambda _, b: jnp.dot(a, b, precision="highest"), a)

    def copy(v):
        return lax.fori_loop(0, rounds, lambda _, w: w * 0.5 + 1.0, v)

    def tanh(v):
        def chain(_, w):
            for _ in range(CHAIN):
                w = jnp.tanh(w)
            return w

        return lax.fori_loop(0, rounds, chain, v)

    def rate(function, argument, amount):
        run = jax.jit(function)
        return amount * rounds / timed(lambda: jax.block_until_ready(run(argument)))

    # XLA computes such a loop of an array's values on one core of a CPU.
    cores = len(os.sched_getaffinity(0)) if jax.local_devices()[0].platform == "cpu" else 1
    a = jax.random.normal(jax.random.key(0), (n, n), "float32") / np.sqrt(n)
    v = jax.random.normal(jax.random.key(0), (size.values,), "float32")
    return (
        rate(product, a, 2 * n**3),
        rate(copy, jnp.tile(v, LARGER), 8 * LARGER * size.values),
        rate(tanh, v, cores * CHAIN * size.values),
    )


def network_table(size):
    """Lines of the table of networks: nanoseconds per case and epoch, and their share of what the device can do."""
    products, memory, tanhs = limits(size)
    by = " by one core" if jax.local_devices()[0].platform == "cpu" else ""
    yield f"the device: {products / 1e9:,.0f} GFLOP/s in a product of {size.product} x {size.product} matrices in full"
    yield f"single precision, {memory / 1e9:,.0f} GB/s of memory{by}, {tanhs / 1e9:,.1f} tanh a nanosecond"
    yield ""
    names = "".join(f"{f'D={d}, N={n}':>18}" for d, n in size.shapes)
    yield "Nanoseconds per case and epoch of gradient descent, 20 tanh units, single precision; share of the limit"
    yield f"{'networks at once':20}{names}"
    least = {(d, n): 1e9 * ((4 * d * HIDDEN + 6 * HIDDEN) / products + HIDDEN / tanhs) for d, n in size.shapes}
    for networks in size.networks:
        found = [(jaxgen_networks(d, n, networks), least[d, n]) for d, n in size.shapes]
        yield f"{networks:<20}" + "".join(f"{f'{each:.3g}':>12}{best / each:6.0%}" for each, best in found)
    yield f"{'limit':20}" + "".join(f"{f'{least[shape]:.3g}':>12}{'':6}" for shape in size.shapes)
    yield "(the limit: its matrix products at the rate of a large one, and tanh at its rate in a long chain)"


def neal_sweep(size):
    """Lines on the three mlp-bgd methods on Neal's tasks: seconds, compilation included."""
    tasks = [
        (prototask, cases)
        for family, inputs in size.families
        for prototask in [delve.simulated(family, inputs)]
        for cases in prototask.sizes
    ]
    yield f"Neal 1998: {len(tasks)} tasks, ensembles of networks with {size.steps:,} epochs each, compilation included"
    for relevance in ("none", "gradient", "correlation"):
        begun = time.perf_counter()
        losses = [
            delve.run_task(prototask, cases, delve.Method("bgd", delve.mlp_bgd(relevance, steps=size.steps)))
            for prototask, cases in tasks
        ]
        seconds = time.perf_counter() - begun
        trained = sum(each.info["iteration"].size for each in losses)
        yield f"  relevance={relevance!r:14} {seconds:8.1f} s, {trained:,} networks"


def larsen_table(size):
    """Lines on the fits of Larsen & Hansen's Table 1: seconds of a first and of a second run."""
    system = simulate.linear_ar(jax.random.key(1995), size.sets, 20, 10, noise=32.45)
    linear = learn.LeastSquares(intercept=False)
    plan = resample.leave_out(jax.random.key(1), 20, 0.25, 500, sets=size.some)
    some = jg.Data(system.data.x[: size.some], system.data.y[: size.some], system.data.names)
    seconds = []
    for _ in range(2):
        begun = time.perf_counter()
        fits = jg.assess(jax.random.key(0), linear, system.data, resample.full(20), keep="rows")
        splits = jg.assess(jax.random.key(0), linear, some, plan, keep="rows")
        seconds.append(time.perf_counter() - begun)
    total = fits.g.size + splits.g.size
    yield f"Larsen & Hansen 1995: {total:,} linear fits of Table 1"
    yield f"  {seconds[0]:.2f} s with compilation, {seconds[1]:.2f} s again: {total / seconds[1]:,.0f} fits a second"


def some_learners(size):
    """Name, data and learner of each line of the table of learners."""
    n = 20_000 if size is WHOLE else 2000
    linear, classes = f"{n:,} x 50", f"{n:,} x 50, 5 classes"
    read = {name: real(name) for name in ("diabetes", "wine", "breast_cancer", "digits")}
    read |= {"500 x 300": simulated(500, 300), linear: simulated(n, 50), classes: simulated(n, 50, 5)}
    data = {name: each() for name, each in read.items()}
    stopped = learn.Normalised(learn.EarlyStopped(learn.Descent(learn.MLP((HIDDEN,)), steps=500)), how="delve")
    made = [
        *(("least squares", name, learn.LeastSquares()) for name in ("diabetes", linear)),
        *(("ridge", name, learn.LeastSquares(ridge=1.0)) for name in ("500 x 300", linear)),
        *(("ridge, penalty chosen", name, learn.Ridge()) for name in ("diabetes", "500 x 300", linear)),
        *(("logistic", name, learn.Logistic(ridge=1.0)) for name in ("wine", "breast_cancer", "digits", classes)),
        *(("15 neighbours", name, learn.Neighbours(15)) for name in ("diabetes", "digits")),
        ("15 neighbours, normalised", "diabetes", learn.Normalised(learn.Neighbours(15), how="standard")),
        ("neighbours, k chosen up to 15", "diabetes", learn.Neighbours(at_most=15)),
        ("neighbours, k chosen of all", "diabetes", learn.Neighbours()),
        ("network, adam, batches", "diabetes", network(data["diabetes"], False)),
        ("network, adam, batches", "breast_cancer", network(data["breast_cancer"], True)),
        ("4 networks stopped early", "diabetes", stopped),
    ]
    return [(learner, name, data[name], ours) for learner, name, ours in made]


def learner_table(size):
    """Lines of the table of learners: seconds on the device and on the CPU, and how far their losses differ."""
    folds, repeats = (10, 10) if size is WHOLE else (10, 1)
    cpu = jax.local_devices(backend="cpu")
    yield f"{folds * repeats} rows, ten folds: seconds of the first call, compilation included, of the next, and of one"
    yield "on the CPU of the machine; the largest difference between their losses of a case, relative to the mean loss"
    yield f"{'learner':32}{'data':24}{'first':>8}{'next':>9}{'CPU, next':>11}{'times':>7}{'difference':>12}"
    for learner, name, data, ours in some_learners(size):
        plan = resample.k_fold(jax.random.key(0), data.n, folds, repeats)
        first, found = seconds_of(ours, data, plan, None)
        again = min(seconds_of(ours, data, plan, None)[0] for _ in range(2))
        seconds_of(ours, data, plan, cpu)
        here, right = seconds_of(ours, data, plan, cpu)
        difference = np.max(np.abs(found.values - right.values)) / np.mean(right.values)
        times = f"{here / again:.2g}"
        yield f"{learner:32}{name:24}{first:8.2f}{again:9.3f}{here:11.3f}{times:>7}{difference:12.1e}"


def seconds_of(learner, data, plan, devices):
    """Seconds of a call of `assess` on some devices, and what it gives."""
    begun = time.perf_counter()
    found = jg.assess(jax.random.key(1), learner, data, plan, devices=devices)
    return time.perf_counter() - begun, found


PARTS = {"networks": network_table, "learners": learner_table, "larsen": larsen_table, "neal": neal_sweep}
"""Functions of a size that give the lines of each part."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the small size on any device; writes nothing")
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default", metavar="PART")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"expected parts among {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    device = jax.local_devices()[0]
    size = SMALL if arguments.quick or device.platform == "cpu" else WHOLE
    watch, begun, lines = Watch(), time.perf_counter(), []

    def say(line):
        lines.append(line)
        print(line, flush=True)

    say(f"The engine on {len(jax.local_devices())} {device.device_kind}" + (", small sizes" if size is SMALL else ""))
    say(machine())
    for name in arguments.parts or PARTS:
        say("")
        for line in PARTS[name](size):
            say(line)
    say("")
    say(f"all of this in {time.perf_counter() - begun:.0f} s")
    say(watch.line())
    if not arguments.quick:
        name = re.sub(r"\W+", "_", device.device_kind.lower()).strip("_")
        publish(f"gpu_{name}.txt", "\n".join(lines))


if __name__ == "__main__":
    main()
