"""Programs in pieces: they give what the whole gives."""

import os
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import jaxpr_as_fun

from jaxgen import Data, assess, learn, loss, resample, simulate
from jaxgen.engine import budget, kept, pieces, program, run, workers
from jaxgen.engine.pieces import Chain, divided, without_unread
from jaxgen.engine.traced import operations_of
from jaxgen.engine.workers import at_once

CONSTANT = np.arange(3.0, dtype=np.float32)


def long(x, rounds):
    return lax.while_loop(lambda state: state[0] < rounds, lambda state: (state[0] + 1, state[1] * 1.5), (0, x))[1]


def in_a_row(x, y):
    first = long(x + 1, 5)
    return long(jnp.sin(first) @ y, 3) + first.sum()


def side_by_side(x, y):
    return long(x, 5).sum() + long(y, 7)


def inside_a_call(x, y):
    inner = jax.jit(lambda x: long(jnp.cos(x), 4) + 1)
    return inner(x) + inner(2 * x), y


def as_a_scan(x, y):
    return lax.scan(lambda total, row: (total + row, total * row), jnp.zeros(2), y * CONSTANT[:, None])


def of_little_more_than_arguments(x, y):
    zeros = jnp.zeros((3, 2))
    return x, zeros, 3, {"twice": x, "loop": long(zeros + y, 2)}, CONSTANT + 0


def without_any_loop(x, y):
    return x @ y


def with_what_nobody_reads(x, y):
    long(x, 9)
    return long(y, 2) * 2


def with_eigenvectors(x, y):
    product = y @ x
    values, vectors = jnp.linalg.eigh(product @ product.T)
    return vectors[:, -1] ** 2, long(values, 3)


APART = {
    in_a_row: 2,
    side_by_side: 1,
    inside_a_call: 1,
    as_a_scan: 1,
    of_little_more_than_arguments: 1,
    without_any_loop: 0,
    with_what_nobody_reads: 1,
    with_eigenvectors: 2,
}


@pytest.mark.parametrize("function", APART, ids=lambda function: function.__name__)
def test_pieces_give_what_the_whole_gives(function):
    """The same operations in the same order, so the same numbers; long loops and decompositions are pieces of their
    own.
    """
    x, y = jnp.asarray([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]]), jnp.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    traced, shape = jax.make_jaxpr(function, return_shape=True)(x, y)
    pieces, results = divided(traced, lambda equation: operations_of(equation, None), 10.0)
    assert sum(piece.apart for piece in pieces) == APART[function]
    for piece in pieces:
        names = {equation.primitive.name for equation in piece.program.eqns}
        assert piece.apart == bool(names & {"while", "scan", "eigh"})
    reads, writes = tuple(piece.reads for piece in pieces), tuple(piece.writes for piece in pieces)
    calls = tuple(jaxpr_as_fun(piece.program) for piece in pieces)
    chain = Chain(calls, reads, writes, results, jax.tree.structure(shape))
    jax.tree.map(np.testing.assert_array_equal, chain(x, y), function(x, y))


def of_the_first_alone(x, y):
    known = long(x @ x.T, 5) + 1
    return known @ y[:2], jnp.sort(x[0]), x + y.T


def with_eigenvectors_of_the_first(x, y):
    inner = jax.jit(lambda x, y: (jnp.linalg.eigh(x @ x.T)[1], jnp.sin(y)))
    vectors, sine = inner(x, y)
    return vectors @ x @ sine, x


def of_constants(x, y):
    return y @ (CONSTANT[:, None] * CONSTANT @ y).T + x[0, 0]


ONCE = {
    of_the_first_alone: {"while", "dot_general", "sort"},
    with_eigenvectors_of_the_first: {"eigh", "dot_general"},
    without_any_loop: set(),
    of_little_more_than_arguments: set(),
    in_a_row: {"while"},
    of_constants: set(),
}


def test_what_nobody_reads_is_left_out_of_loops_too():
    """A loop over rows makes two numbers of each, of which one is read: the sine goes, and its row of results."""

    def function(x, y):
        read, _ = lax.map(lambda row: (row * 2, jnp.sin(row)), x)
        return read @ y

    x, y = jnp.ones((5, 3)), jnp.ones((3, 2))
    whole = jax.make_jaxpr(function)(x, y)
    short = without_unread(whole)
    assert "sin" in str(whole)
    assert "sin" not in str(short)
    (loop,) = (equation for equation in short.jaxpr.eqns if equation.primitive.name == "scan")
    assert len(loop.outvars) == 1
    np.testing.assert_array_equal(jaxpr_as_fun(short)(x, y), jaxpr_as_fun(whole)(x, y))


def test_arguments_that_nobody_reads_stay():
    short = without_unread(jax.make_jaxpr(lambda x, y: y + 1)(1.0, 2.0))
    assert len(short.jaxpr.invars) == 2
    assert jaxpr_as_fun(short)(1.0, 2.0) == [3.0]


@pytest.mark.parametrize("function", ONCE, ids=lambda function: function.__name__)
def test_what_follows_from_the_same_arguments_is_made_once(function):
    """Whatever it is asked for afterwards: what is dear of it, with what that needs, and nothing else."""
    x, y = jnp.asarray([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]]), jnp.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    traced, shape = jax.make_jaxpr(function, return_shape=True)(x, y)
    pieces, results = divided(traced, lambda equation: 20.0 * operations_of(equation, None), 10.0, (0,))
    once = [piece for piece in pieces if piece.once]
    assert once == pieces[: len(once)]
    dear = {"while", "dot_general", "sort", "eigh"}
    assert {equation.primitive.name for piece in once for equation in piece.program.eqns} & dear == ONCE[function]
    calls = tuple(counted(jaxpr_as_fun(piece.program)) for piece in pieces)
    reads, writes = tuple(piece.reads for piece in pieces), tuple(piece.writes for piece in pieces)
    chain = Chain(calls, reads, writes, results, jax.tree.structure(shape), len(once))
    known = chain.begun(x)
    for again in (y, 2 * y, y - 1):
        jax.tree.map(np.testing.assert_array_equal, chain(x, again, known=known), function(x, again))
    assert [call.times for call in calls] == [1] * len(once) + [3] * (len(calls) - len(once))
    jax.tree.map(np.testing.assert_array_equal, chain(x, y), function(x, y))


def of_every_row(x, y):
    """Two results of each row, of which one is cut; what all rows read comes from the other argument."""
    about = jnp.cumsum(y, axis=0)
    norms, products = lax.map(lambda row: (jnp.sum(row), jnp.tanh(about * row[None])), x)
    return norms * 2, products[1:]


def of_every_row_and_those_before(x, y):
    return lax.scan(lambda total, row: (total + row, total * row), y[0], x)


@pytest.mark.parametrize("rows", [2, 5, 8])
@pytest.mark.parametrize(
    ("function", "same", "halves"),
    [
        (of_every_row, (), 2),
        (of_every_row, (0, 1), 2),
        (of_every_row, (1,), 0),
        (of_every_row_and_those_before, (), 0),
    ],
    ids=["all", "from the same arguments", "not from the same arguments", "one after the other"],
)
def test_loops_whose_rounds_do_not_know_of_each_other_run_in_halves(function, same, halves, rows):
    """The same numbers, by one program for both halves, which run at the same time, each in a thread of its own."""
    x, y, threads = jnp.arange(3.0 * rows).reshape(rows, 3) / 10, jnp.eye(3), set()
    traced, shape = jax.make_jaxpr(function, return_shape=True)(x, y)
    pieces, results = divided(traced, lambda equation: 1e3 * operations_of(equation, None), 1e3, same, True)
    found = [piece for piece in pieces if piece.half]
    assert [piece.half for piece in found] == list(range(1, halves + 1))
    assert len({piece.lowered().as_text() for piece in found}) == bool(halves)
    together = threading.Barrier(2)

    def in_thread(piece):
        call = jaxpr_as_fun(piece.program)

        def run(*arguments):
            if piece.half:
                together.wait(timeout=60)
                threads.add(threading.current_thread())
            return call(*arguments)

        return run

    reads, writes = tuple(piece.reads for piece in pieces), tuple(piece.writes for piece in pieces)
    beside = tuple(number for number, piece in enumerate(pieces) if piece.half > 1)
    once = sum(piece.once for piece in pieces)
    chain = Chain(tuple(map(in_thread, pieces)), reads, writes, results, jax.tree.structure(shape), once, beside)
    jax.tree.map(np.testing.assert_array_equal, chain(x, y), function(x, y))
    assert len(threads) == halves


def test_an_error_in_either_half_is_raised():
    def fail():
        raise ValueError("the second half")

    assert at_once([lambda: 1, lambda: 2]) == [1, 2]
    with pytest.raises(ValueError, match="the second half"):
        at_once([lambda: jnp.ones(3), fail])


@pytest.mark.skipif(
    jax.default_backend() != "cpu" or len(jax.devices()) > 1 or budget._cores() == 1, reason="no other core to use"
)
@pytest.mark.parametrize("learner", [learn.Neighbours(3), learn.Normalised(learn.Neighbours(3))], ids=str)
def test_lists_of_neighbours_are_made_in_halves(learner, monkeypatch):
    """No other core would have something to do. Losses are those of one thread."""
    random, together = np.random.default_rng(0), []
    x = random.normal(size=(2500, 30))
    data = Data(x, x[:, :1] + random.normal(size=(2500, 1)), tuple(f"x{i}" for i in range(30)))
    plan, both = resample.k_fold(jax.random.key(0), 2500, 5), pieces.at_once

    def noted(functions):
        together.append(len(functions))
        return both(functions)

    monkeypatch.setattr(pieces, "at_once", noted)
    found = assess(jax.random.key(1), learner, data, plan)
    assert 2 in together
    with workers.one_thread():
        together.clear()
        alone = assess(jax.random.key(1), learner, data, plan)
    assert 2 not in together
    np.testing.assert_allclose(found.values, alone.values, rtol=1e-12)  # chunks of other sizes sum in another order


@pytest.mark.skipif(jax.default_backend() != "cpu" or len(jax.devices()) > 1, reason="in one piece on other devices")
def test_chunks_of_a_run_share_what_is_made_once(monkeypatch):
    """Lists of neighbours, in a thread that Ctrl-C does not wait for; also after the program was dropped. Losses
    are those of a single chunk, which shares nothing.
    """
    random, threads = np.random.default_rng(0), []
    x = random.normal(size=(1200, 30))
    data = Data(x, x[:, :1] + random.normal(size=(1200, 1)), tuple(f"x{i}" for i in range(30)))
    plan, begun = resample.k_fold(jax.random.key(0), 1200, 10, 5), Chain.begun

    def begun_in(self, *arguments):
        threads.append(threading.current_thread().name)
        return begun(self, *arguments)

    monkeypatch.setattr(Chain, "begun", begun_in)
    whole = assess(jax.random.key(1), learn.Neighbours(3), data, plan, chunk=50)
    assert not threads
    for times in (1, 2):
        several = assess(jax.random.key(1), learn.Neighbours(3), data, plan, chunk=20)
        np.testing.assert_array_equal(several.values, whole.values)
        assert len(threads) == times
        assert threads[-1].startswith("jaxgen-")
        program.forget()


def counted(call):
    """The function, which counts in `times` how often it was called."""

    def counting(*arguments):
        counting.times += 1
        return call(*arguments)

    counting.times = 0
    return counting


NETWORK = learn.Descent(learn.MLP((2,)), 20)


@pytest.fixture
def optimised():
    """As users have it; see conftest.py."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.mark.usefixtures("optimised")
def test_little_work_is_compiled_quickly_and_much_well():
    """The older way to write out fused operations, where little is done; no level of LLVM at which it errs."""
    data = simulate.linear_ar(jax.random.key(1), 1, 20, 3).data
    devices = tuple(jax.local_devices(backend="cpu")[:1])
    job = run.job_of(NETWORK, loss.squared, data, run.Way(False, None, None), devices, False)
    little, much = (program._options(job, work, False) for work in (1e9, 1e12))
    assert little.pop("xla_cpu_use_fusion_emitters") is False
    assert little == much == {"xla_backend_optimization_level": 2}


@pytest.mark.usefixtures("optimised")
@pytest.mark.skipif(
    len(jax.local_devices(backend="cpu")) > 1 or (os.cpu_count() or 1) == 1, reason="needs one device of several cores"
)
def test_operations_are_divided_between_cores_only_where_these_wait(monkeypatch):
    """A single long network may use both cores; of two in chunks of their own each has one. XLA says which operations
    it divides.
    """
    random = np.random.default_rng(3)
    x = random.normal(size=(8192, 2))
    data = Data(x, np.sin(x[:, :1]), ("a", "b"))
    parts, compile_one = [], program._compile

    def noted(lowered, options):
        made = compile_one(lowered, options)
        parts.append('"outer_dimension_partitions":["' in made.as_text())
        return made

    monkeypatch.setattr(program, "_compile", noted)
    monkeypatch.setattr(kept, "file_of", lambda *_: None)
    monkeypatch.setattr(budget, "_cores", lambda: 2)  # also of a process that is held to one of them
    learner, found = learn.Descent(learn.MLP((20,)), 3, rate=1e-5), []
    for rows in (1, 2):
        parts.clear()
        weights = np.ones((rows, data.n), np.uint8)
        losses = assess(jax.random.key(0), learner, data, resample.from_weights(weights, weights), chunk=1)
        found.append(any(parts))
        assert np.isfinite(losses.test_mean).all()
    assert found == [True, False]


LEARNERS = [
    learn.Normalised(learn.Neighbours()),
    *(
        pytest.param(learner, marks=pytest.mark.slow)
        for learner in (
            learn.LeastSquares(),
            learn.Neighbours(3),
            learn.Normalised(learn.Logistic()),
            learn.Ridge(),
            learn.Normalised(learn.Descent(learn.MLP((3,)), 30)),
        )
    ),
]


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_code_that_is_made_quickly_gives_the_numbers_of_plain_code(learner, monkeypatch):
    """As users have it, and compiled in a way that nobody has chosen: the same but for rounding, and its growth in 30
    steps of a network. The settings of this run keep both programs apart.
    """
    random = np.random.default_rng(4)
    x = random.normal(size=(40, 3))
    y = x @ [[1.0], [-0.5], [0.2]] + 0.5 * random.normal(size=(40, 1))
    if "Logistic" in str(learner):
        y = (y > 0).astype(float)
    data = Data(x, y, ("a", "b", "c"))
    plan = resample.leave_out(jax.random.key(1), 40, 0.25, 6)
    quick = assess(jax.random.key(0), learner, data, plan, loss.squared)
    program.forget()
    monkeypatch.setattr(program, "_options", lambda job, work, busy: {})
    monkeypatch.setattr(kept, "file_of", lambda *_: None)
    plain = assess(jax.random.key(0), learner, data, plan, loss.squared)
    program.forget()
    np.testing.assert_allclose(quick.values, plain.values, rtol=1e-3, atol=1e-5)
