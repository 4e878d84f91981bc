"""What relevances find out, and what they cost, on DELVE's simulators."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from jaxgen import delve

PASSES = 20_000
"""A third of those of the methods: enough here, as the tests show."""

pytestmark = pytest.mark.slow


def run(prototask, size, name):
    """Losses of a method on 8 training sets that share no case, each with 512 test cases of its own."""
    learner = delve.METHODS[name].learner
    method = delve.Method(name, replace(learner, base=replace(learner.base, passes=PASSES)))
    return delve.run_task(prototask, size, method, progress=False)


def test_relevances_find_the_two_of_32_inputs_that_matter():
    """The target of pumadyn-32nm is nearly cos(theta5) tau4; 256 cases say so in every training set."""
    tasks = delve.simulated("pumadyn", inputs=32)
    losses = run(tasks, 256, "mlp-mc-3")
    assert not losses.failed.any()
    relevances = losses.info["relevance_input_hidden"]
    matters = np.isin(tasks.data.names, ["theta5", "tau4"])
    assert relevances.shape == (8, 32)
    # The least of the 8 ratios was 3.4; by chance both come first in a row with probability 1 in 496.
    assert (relevances[:, matters].min(axis=1) > 2 * relevances[:, ~matters].max(axis=1)).all()
    variance = tasks.data.y[:4096].var(ddof=1)
    assert losses.g.mean() / variance < 0.2  # 0.15; the best early-stopped networks have 0.21, a linear function 0.91


def test_relevances_do_no_harm_where_all_inputs_matter():
    """Paired over the training sets of kin-8nm; the difference is small, or none that a t-test sees."""
    tasks = delve.simulated("kin", inputs=8)
    with_relevances, without = (run(tasks, 512, name) for name in ("mlp-mc-3", "mlp-mc-4"))
    assert not (with_relevances.failed | without.failed).any()
    p = stats.ttest_rel(with_relevances.g, without.g, alternative="greater").pvalue
    ratio = with_relevances.g.mean() / without.g.mean()
    assert p > 0.05, f"relevances do harm: ratio {ratio:.3f}, p = {p:.3g}"
    assert ratio < 1.05
