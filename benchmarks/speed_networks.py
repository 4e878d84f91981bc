"""Networks of 20 tanh units: nanoseconds per case and epoch beside peers and the machine's limit. Called by speed.py
--networks.

Every way runs in turn in one process that is held to the cores it may use; the processes follow each other.
"""

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
import warnings
from importlib.util import find_spec

HIDDEN = 20
SHAPES = ((8, 64), (8, 1024), (32, 256), (32, 1024))
NETWORKS = (4, 16, 64, 250, 1000)
SECONDS = 1.0
"""Length of one timed run, about."""

XLA_TANH = "with XLA's tanh"

FEW = (64, 4)
"""Cases of 4 networks whose epochs are timed: with the fewest, hardly anything but the calls of operations is left."""

CHUNK = 3 << 17
"""Bytes of the activations of the networks that are trained at a time, in the loops that are timed by themselves."""


def timed(run, repeats=3):
    """Median seconds of a few runs, after one that is not counted."""
    run()
    seconds = []
    for _ in range(repeats):
        time.sleep(0.2)
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[repeats // 2]


def steps_for(cases, nanoseconds):
    """Epochs that take about SECONDS."""
    return max(5, int(SECONDS * 1e9 / (cases * nanoseconds)))


def problem(d, n):
    """One regression problem: x [n, d] and y [n, 1]."""
    import numpy as np

    random = np.random.default_rng(d + n)
    x = random.normal(size=(n, d))
    return x, np.sin(x[:, :1]) + 0.3 * random.normal(size=(n, 1))


def training(d, n, networks, cores=1, normalised=False, chunk=None, **layers):
    """assess: plain batch gradient descent of many networks, of inputs in units of each if normalised; as a function to
    call, and how many cases times epochs it goes through.
    """
    import jax
    import numpy as np

    import jaxgen as jg
    from jaxgen import learn, resample

    x, y = problem(d, n)
    steps = max(200, steps_for(networks * n, 20 / cores))  # so that the first and last looks at the error do not count
    ones = np.ones((networks, n), np.uint8)
    data, plan, learner = (
        jg.Data(x, y, tuple(map(str, range(d)))),
        resample.from_weights(ones, ones),
        learn.Descent(learn.MLP(**layers), steps=steps),
    )
    learner = learn.Normalised(learner) if normalised else learner

    def run():
        return jg.assess(jax.random.key(0), learner, data, plan, keep="rows", chunk=chunk)

    return run, steps * networks * n


def jaxgen_networks(d, n, networks, *options, **layers):
    """Nanoseconds per case and epoch of `training`."""
    run, cases = training(d, n, networks, *options, **layers)
    return timed(run, 3 if networks < 1000 else 1) / cases * 1e9


def scikit_learn(d, n):
    """MLPRegressor: one network."""
    from sklearn.neural_network import MLPRegressor

    x, y = problem(d, n)
    steps = steps_for(n, 400 if n > 100 else 5000)
    network = MLPRegressor(
        hidden_layer_sizes=(HIDDEN,),
        activation="tanh",
        solver="sgd",
        alpha=0,
        batch_size=n,
        learning_rate_init=0.01,
        momentum=0,
        max_iter=steps,
        tol=0,
        n_iter_no_change=10**9,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return timed(lambda: network.fit(x.astype("float32"), y[:, 0].astype("float32"))) / (steps * n) * 1e9


def torch_loop(d, n):
    """PyTorch: one network, a loop over epochs with autograd."""
    import torch

    x, y = (torch.tensor(a, dtype=torch.float32) for a in problem(d, n))
    network = torch.nn.Sequential(torch.nn.Linear(d, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 1))
    descent = torch.optim.SGD(network.parameters(), lr=0.1 / (n + 1))
    steps = steps_for(n, 300 if n > 100 else 3000)

    def run():
        for _ in range(steps):
            descent.zero_grad(set_to_none=True)
            (0.5 * (network(x) - y).square().sum()).backward()
            descent.step()

    return timed(run) / (steps * n) * 1e9


def torch_vmap(d, n, networks=64):
    """PyTorch: torch.func.vmap(grad) over many networks."""
    import torch
    from torch.func import grad, vmap

    x, y = (torch.tensor(a, dtype=torch.float32) for a in problem(d, n))
    shapes = ((d, HIDDEN), (HIDDEN,), (HIDDEN, 1), (1,))
    params = [0.02 * torch.rand(networks, *shape) - 0.01 for shape in shapes]

    def loss(params):
        w, b, v, c = params
        return 0.5 * (torch.tanh(x @ w + b) @ v + c - y).square().sum()

    gradients = vmap(grad(loss))
    steps = steps_for(n * networks, 400)

    def run():
        state = params
        for _ in range(steps):
            state = [p - 0.1 / (n + 1) * g for p, g in zip(state, gradients(state), strict=True)]

    return timed(run) / (steps * n * networks) * 1e9


def limit(d, cores):
    """What matrix products, at the rate of a large one, and tanh, at its rate in the cache of every core, take per
    case and epoch; and both rates.
    """
    import jax
    import jax.numpy as jnp
    from jax import lax

    size = 1500
    a = jax.random.normal(jax.random.key(0), (size, size), "float32")
    product = jax.jit(lambda a: a @ a)
    rate = 2 * size**3 / timed(lambda: jax.block_until_ready(product(a)), 7)
    values, times = jax.random.normal(jax.random.key(0), (HIDDEN, 1024), "float32"), 10000
    tanh = jax.jit(lambda v: lax.fori_loop(0, times, lambda _, v: jnp.tanh(v), v))
    seconds = timed(lambda: jax.block_until_ready(tanh(values)), 7) / (times * values.size) / cores
    operations = 4 * d * HIDDEN + 6 * HIDDEN
    return 1e9 * (operations / rate + HIDDEN * seconds), rate, seconds


def measure(cores):
    """All ways on these cores, as a dictionary, and microseconds of an epoch of 4 networks on few cases."""
    peers = {"scikit-learn": scikit_learn}
    if find_spec("torch"):
        import torch

        torch.set_num_threads(len(cores))
        peers |= {"torch loop": torch_loop, "torch.func.vmap": torch_vmap}
    found = {}
    for d, n in SHAPES:
        least, rate, tanh = limit(d, len(cores))
        ways = {f"jaxgen R={networks}": jaxgen_networks(d, n, networks, len(cores)) for networks in NETWORKS}
        ways |= {name: peer(d, n) for name, peer in peers.items()}
        found[f"{d},{n}"] = {"limit": least, "GFLOP/s": rate / 1e9, "tanh": 1e9 * tanh, **ways}
    return found | {"epoch": {cases: jaxgen_networks(8, cases, 4, len(cores)) * 4 * cases / 1e3 for cases in FEW}}


def profile(core):
    """Where the time of one core goes with 64 networks: nanoseconds per case and epoch of parts, each timed by itself
    in a loop of about the engine's chunk size, with XLA's tanh.
    """
    import jax
    import jax.numpy as jnp
    from jax import lax

    os.sched_setaffinity(0, core)

    def loop(step, start, cases, times):
        run = jax.jit(lambda start, x: lax.fori_loop(0, times, lambda _, state: step(state, x), start))
        return lambda x: timed(lambda: jax.block_until_ready(run(start, x))) / (times * cases) * 1e9

    found = {}
    for d, n in SHAPES:
        chunk = max(1, CHUNK // (4 * n * HIDDEN))
        x, y = (jnp.asarray(a.T, "float32") for a in problem(d, n))
        times = steps_for(chunk * n, 20)
        units = jax.random.normal(jax.random.key(0), (chunk, HIDDEN, n), "float32")
        weights = 0.1 * jax.random.normal(jax.random.key(0), (chunk, HIDDEN, d), "float32")
        output = 0.1 * jax.random.normal(jax.random.key(1), (chunk, HIDDEN), "float32")

        def products(w, x, n=n):
            return w - 0.1 / n * jnp.einsum("rhn,dn->rhd", jnp.einsum("rhd,dn->rhn", w, x), x)

        def error(params, x, y=y):
            w, v = params
            return 0.5 * jnp.sum((v @ jnp.tanh(w @ x) - y[0]) ** 2)

        def epoch(params, x, n=n, error=error):
            return jax.tree.map(
                lambda p, g: p - 0.1 / (n + 1) * g, params, jax.vmap(jax.grad(error), in_axes=(0, None))(params, x)
            )

        parts = {
            "products of inputs and hidden units": loop(products, weights, chunk * n, times)(x),
            "tanh": loop(lambda v, x: jnp.tanh(v), units, chunk * n, times)(x),
        }
        whole = loop(epoch, (weights, output), chunk * n, times)(x)
        parts["output, derivatives, sums"] = whole - sum(parts.values())
        through = jaxgen_networks(d, n, 64)
        found[f"{d},{n}"] = {
            **parts,
            "bare loop, together": whole,
            "biases, failure checks, engine": through - whole,
            "assess": through,
        }
    return found


def changes(core):
    """What some choices bring with 64 networks on one core: nanoseconds per case and epoch with each undone, one after
    the other.
    """
    import jax.numpy as jnp

    os.sched_setaffinity(0, core)
    found = {}
    for d, n in SHAPES:
        many = max(1, (1 << 20) // (4 * HIDDEN * n))
        found[f"{d},{n}"] = {
            "assess": jaxgen_networks(d, n, 64),
            XLA_TANH: jaxgen_networks(d, n, 64, activation=jnp.tanh),
            "in chunks of a megabyte": jaxgen_networks(d, n, 64, chunk=many),
            "normalised": jaxgen_networks(d, n, 64, normalised=True),
        }
    return found


def second_core(cores):
    """What two cores bring 64 networks: nanoseconds per case and epoch on one of them, on both, and of two processes
    that are held to a core each and train half of the networks at the same time. They take turns.
    """
    context = multiprocessing.get_context("spawn")
    turns, times = context.Barrier(4), context.Queue()
    one, both = ([core] for core in cores), list(cores)
    ways = {"one core": ([both[:1]], 64), "two cores": ([both], 64), "two processes, a core each": (list(one), 32)}
    processes = [
        context.Process(target=in_turn, args=(name, turn, held, networks, turns, times), daemon=True)
        for turn, (name, (places, networks)) in enumerate(ways.items())
        for held in places
    ]
    for process in processes:
        process.start()
    later = {f"{d},{n}": dict.fromkeys(ways, 0.0) for d, n in SHAPES}
    for _ in range(len(processes) * len(SHAPES)):
        key, name, nanoseconds = times.get()
        later[key][name] = max(later[key][name], nanoseconds)
    return later


def in_turn(name, turn, cores, networks, turns, times):
    """Trains so many of 64 networks of all shapes, some rounds each, while the processes with other turns wait."""
    os.sched_setaffinity(0, cores)
    for d, n in SHAPES:
        run, cases = training(d, n, networks, 2)
        run()
        seconds = []
        for _ in range(5):
            for other in range(3):
                turns.wait()
                if other == turn:
                    start = time.perf_counter()
                    run()
                    seconds.append(time.perf_counter() - start)
        times.put((f"{d},{n}", name, sorted(seconds)[2] / (cases * 64 / networks) * 1e9))


def child(job, *arguments):
    """The result of a job of this file in a process of its own, held to the given cores."""
    source = subprocess.run(
        [sys.executable, __file__, job, *map(json.dumps, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"},
    )
    if source.returncode:
        sys.exit(source.stderr)
    return json.loads(source.stdout.splitlines()[-1])


def memory(networks):
    """Peak memory in MiB of a process that trains so many networks of 32 inputs on 1024 cases."""
    jaxgen_networks(32, 1024, networks, 2)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compilation():
    """Seconds from a learner that was never seen to its first result, less those of a second call: mlp-bgd-2 and plain
    descent.
    """
    import jax

    import jaxgen as jg
    from jaxgen import learn, resample

    seconds = {}
    for name, make in (("Descent", lambda s: learn.Descent(steps=s)), ("mlp-bgd-2", bgd_2)):
        x, y = problem(8, 64)
        data, plan = jg.Data(x, y, tuple("abcdefgh")), resample.leave_out(jax.random.key(0), 64, 0.25, 32)
        jg.assess(jax.random.key(0), learn.Mean(), data, plan)
        start = time.perf_counter()
        jg.assess(jax.random.key(0), make(101), data, plan)
        first = time.perf_counter()
        jg.assess(jax.random.key(0), make(101), data, plan)
        seconds[name] = 2 * first - start - time.perf_counter()
    return seconds


def bgd_2(steps=20_000):
    """Neal's mlp-bgd-2."""
    from jaxgen import learn

    return learn.Normalised(
        learn.EarlyStopped(
            learn.Descent(
                learn.MLP(hidden=(HIDDEN,)), rate=0.1, steps=steps, checkpoints="1-2-5", relevance="gradient"
            ),
            folds=4,
        )
    )


def sweep():
    """Seconds of each part of the training of mlp-bgd-2 on all tasks: 3 families x 2 numbers of inputs x 5 sizes, 864
    networks.
    """
    import jax
    import numpy as np

    import jaxgen as jg
    from jaxgen import resample

    seconds, networks = {}, 0
    for d in (8, 32):
        for n, instances in ((64, 8), (128, 8), (256, 8), (512, 8), (1024, 4)):
            random = np.random.default_rng(n + d)
            x = random.normal(size=(3 * instances, n, d))
            y = np.sin(2 * x[..., :1]) + x[..., 1:2] * x[..., 2:3] + 0.5 * random.normal(size=(3 * instances, n, 1))
            start = time.perf_counter()
            losses = jg.assess(
                jax.random.key(0), bgd_2(), jg.Data(x, y, tuple(map(str, range(d)))), resample.full(n), keep="rows"
            )
            seconds[f"{d},{n}"] = time.perf_counter() - start
            networks += losses.info["iteration"].size
    return {"seconds": seconds, "networks": networks}


def report():
    """The lines of the result file."""
    one, two = child("measure", [0]), child("measure", [0, 1])
    epochs = [found.pop("epoch") for found in (one, two)]
    lines = [
        "Nanoseconds per case and epoch of batch gradient descent, 20 tanh units, single precision; R networks",
        "",
    ]
    for title, found in (("one core", one), ("two cores", two)):
        names = [name for name in found["8,64"] if name not in ("GFLOP/s", "tanh")]
        lines += [f"{title:24}" + "".join(f"{'D=' + key.replace(',', ', N='):>16}" for key in found)]
        lines += [f"{name:24}" + "".join(f"{found[key][name]:16.1f}" for key in found) for name in names]
        lines += [
            f"(a large matrix product runs at {found['8,64']['GFLOP/s']:.0f} GFLOP/s, one tanh takes "
            f"{found['8,64']['tanh']:.2f} ns)",
            "",
        ]
    at = {key: one[key]["jaxgen R=64"] for key in one}
    lines += [
        "On one core, jaxgen at R = 64:",
        f"{'':44}" + "".join(f"{'D=' + key.replace(',', ', N='):>16}" for key in one),
    ]
    lines += [f"{'share of the limit':44}" + "".join(f"{one[key]['limit'] / at[key]:16.0%}" for key in one)]
    lines += [
        f"{'share of the limit, two cores':44}"
        + "".join(f"{two[key]['limit'] / two[key]['jaxgen R=64']:16.0%}" for key in two)
    ]
    lines += [
        f"{'share of the limit, R = 4, two cores':44}"
        + "".join(f"{two[key]['limit'] / two[key]['jaxgen R=4']:16.0%}" for key in two)
    ]
    lines += [
        f"{'share of the limit, worst R':44}"
        + "".join(f"{one[key]['limit'] / max(one[key][f'jaxgen R={r}'] for r in NETWORKS):16.0%}" for key in one)
    ]
    peers = [peer for peer in ("scikit-learn", "torch loop", "torch.func.vmap") if peer in one["8,64"]]
    lines += [
        f"{'times faster than ' + peer:44}" + "".join(f"{one[key][peer] / at[key]:16.1f}" for key in one)
        for peer in peers
    ]
    lines += [
        f"{'times faster on two cores, R = 64':44}"
        + "".join(f"{at[key] / two[key]['jaxgen R=64']:16.2f}" for key in one)
    ]
    lines += [
        f"{'times faster on two cores, R = 1000':44}"
        + "".join(f"{one[key]['jaxgen R=1000'] / two[key]['jaxgen R=1000']:16.2f}" for key in one)
    ]
    lines += [
        f"{'time a network at R = 1000 / at R = 64':44}"
        + "".join(f"{one[key]['jaxgen R=1000'] / at[key]:16.2f}" for key in one),
        "an epoch of 4 networks of 8 inputs, microseconds: "
        + ", ".join(
            f"{each[str(cases)]:.1f} with {cases} cases on {cores}"
            for each, cores in zip(epochs, ("one core", "two"), strict=True)
            for cases in FEW
        ),
        "",
    ]
    parts = child("second_core", [0, 1])
    lines += [
        "What the second core brings 64 networks: nanoseconds per case and epoch of assess, and of two processes, each "
        "held to a core, that train half of the networks at the same time; in turn, medians of five"
    ]
    lines += [f"{name:44}" + "".join(f"{parts[key][name]:16.1f}" for key in parts) for name in parts["8,64"]]
    lines += [
        f"{'times faster on two cores':44}"
        + "".join(f"{each['one core'] / each['two cores']:16.2f}" for each in parts.values()),
        f"{'times faster by two processes':44}"
        + "".join(f"{each['one core'] / each['two processes, a core each']:16.2f}" for each in parts.values()),
        "",
    ]
    parts = child("profile", [0])
    lines += [
        "Where the time of one core goes, R = 64: nanoseconds per case and epoch; "
        "products and XLA's tanh each timed by themselves, the other parts as differences"
    ]
    lines += [f"{name:44}" + "".join(f"{parts[key][name]:16.1f}" for key in parts) for name in parts["8,64"]] + [""]
    parts = child("changes", [0])
    lines += ["The same of assess as it is, with one choice undone, and of networks in units of each row"]
    lines += [f"{name:44}" + "".join(f"{parts[key][name]:16.1f}" for key in parts) for name in parts["8,64"]]
    lines += [
        f"{'share of the limit, both with XLA tanh':44}"
        + "".join(f"{one[key]['limit'] / parts[key][XLA_TANH]:16.0%}" for key in one),
        "",
    ]
    lines += [
        "peak memory, D = 32, N = 1024, keep='rows': "
        + ", ".join(f"{child('memory', r):.0f} MiB at R = {r}" for r in (64, 250, 1000, 4000))
    ]
    lines += [
        "compilation of a new learner: "
        + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in child("compilation").items())
    ]
    start = time.perf_counter()
    parts = child("sweep")
    lines += [
        f"training of mlp-bgd-2 on all tasks, {parts['networks']} networks x 20,000 epochs, 63 checkpoints, "
        f"2 cores: {time.perf_counter() - start:.0f} s, imports and compilation included"
    ]
    lines += [
        "  " + ", ".join(f"D={key.replace(',', ' n=')}: {seconds:.1f}" for key, seconds in parts["seconds"].items())
    ]
    return lines


if __name__ == "__main__":
    job, arguments = sys.argv[1], [json.loads(word) for word in sys.argv[2:]]
    if job == "measure":
        os.sched_setaffinity(0, arguments[0])
        os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(len(arguments[0]))
    print(json.dumps(globals()[job](*arguments)))
