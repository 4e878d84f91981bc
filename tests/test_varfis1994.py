"""The benchmark of Varfis & Corleto's estimators: what it computes from estimates, and that it runs."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from scripts import BENCHMARKS, quick
from statsmodels.stats.multitest import multipletests

sys.path.insert(0, str(BENCHMARKS))

import varfis1994  # pyright: ignore[reportMissingImports]

SIZE = varfis1994.Size(n=1000)


def estimates(sets=200):
    """Made-up estimates: R around .4, those of `.632` with a bias, those of L_beta like R, of L_alpha like noise."""
    random = np.random.default_rng(0)
    r = 0.4 + 0.01 * random.standard_normal(sets)
    columns = {"R": r, "A": r - 0.05, ".632": r - 0.02 + 0.01 * random.standard_normal(sets)}
    for kn in SIZE.sizes:
        columns |= {f"L {kn}": np.full(sets, 0.3 + 50 / kn), f"A {kn}": np.full(sets, 0.3 - 50 / kn)}
        columns |= {
            f"L_alpha {kn}": 0.4 + 0.05 * random.standard_normal(sets),
            f"L_beta {kn}": r + 0.001 * random.standard_normal(sets),
            f"L_alpha_beta {kn}": r + 0.01 * random.standard_normal(sets),
        }
    return pd.DataFrame(columns).assign(network="one", loss="squared error")


def test_p_values_are_those_of_paired_t_tests_corrected_for_all():
    found = estimates()
    table = varfis1994.accuracy(found, SIZE).set_index(["estimator", "kn"])
    usual = (found[".632"] - found.R) ** 2
    for name in varfis1994.ESTIMATORS:
        square = (found[f"{name} 500"] - found.R) ** 2
        row = table.loc[(name, 500)]
        assert row["p ACE"] == pytest.approx(scipy.stats.ttest_1samp(square - usual, 0).pvalue, rel=1e-9)  # rounding
        assert pytest.approx(square.mean(), rel=1e-9) == row.ACE
        assert row["bias ACE"] ** 2 + row["variance ACE"] == pytest.approx(row.ACE, rel=1e-9)
    pairs = table[["p ACE", "p UMSE"]].to_numpy()
    pairs = pairs[np.isfinite(pairs)]
    assert len(pairs) == 18
    held = table[["holm ACE", "holm UMSE"]].to_numpy()
    np.testing.assert_allclose(held[np.isfinite(held)], multipletests(pairs, method="holm")[1])
    assert table.loc[("L_beta", 870), "ratio ACE"] < 0.1
    assert table.loc[("L_alpha", 870), "ratio ACE"] > 2
    assert np.isnan(table.loc[(".632", 632), "p ACE"])


def test_laws_find_what_the_errors_were_made_of():
    row = varfis1994.laws(estimates(), SIZE).iloc[0]
    for law in (row.pair, row.alone):
        np.testing.assert_allclose(law, [0.3, 50], rtol=1e-9)  # rounding


def test_training_sets_of_pixels_are_drawn_without_replacement():
    random = np.random.default_rng(0)
    source = varfis1994.pixels("made", "up", random.random((60, 4)), random.integers(3, size=60))
    pools, again, others = source.draw(0, 2, 20), source.draw(0, 2, 20), source.draw(2, 2, 20)
    assert pools.x.shape == (2, 60, 4)
    for one in pools.x:
        assert len(np.unique(one[:, 0])) == 60
    np.testing.assert_array_equal(pools.x, again.x)
    assert not np.array_equal(pools.x, others.x)


def test_real_data_that_are_absent_are_named(tmp_path, capsys):
    assert varfis1994.real(tmp_path) == []
    said = capsys.readouterr().out
    assert "crop-formosat2 is left out" in said
    assert "satimage is left out" in said


@pytest.mark.slow
@pytest.mark.timeout(900)  # programs for every plan and network are compiled
def test_quick_run_ends_well():
    text = quick("varfis1994.py")
    assert len(re.findall(r"^ *\d+ L_alpha_beta +\d", text, re.MULTILINE)) == 12
    assert "for all 72 comparisons" in text
