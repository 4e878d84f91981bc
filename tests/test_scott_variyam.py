"""The slides of Scott & Variyam at work: their exact examples at once, all of it as anybody can run it."""

import numpy as np
import pytest
from scripts import BENCHMARKS, quick


@pytest.fixture
def slides(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return __import__("scott_variyam")


def test_examples_have_the_numbers_of_the_slides(slides):
    lines = "\n".join([*slides.show_metrics(), *slides.show_tables()])
    for text in ("19 of 25, 0.76; ours 0.76", "ours 0.30, [0.158, 0.442]", "(0.0, 0.4), (0.2, 0.8), (0.8, 1.0)"):
        assert text in lines
    accuracies = [line.split() for line in lines.splitlines() if line.startswith(("h1 ", "always negative ", "h2 "))]
    assert [row[-7] for row in accuracies] == ["0.967", "0.980", "0.949"]


def test_operating_points_are_the_cheapest_thresholds(slides):
    for prior in (0.1, 0.5, 0.9):
        for wrong, missed in ((1.0, 1.0), (1.0, 5.0), (5.0, 1.0)):
            point = slides.metrics.roc.operating_point(
                slides.ranked(), false_positive_cost=wrong, false_negative_cost=missed, prior=prior
            )
            np.testing.assert_allclose(point.cost, slides.cheapest(wrong, missed, prior), rtol=1e-12)  # rounding


def test_exact_coverage_is_that_of_simulated_test_sets(slides):
    random, n, rate, sets = np.random.default_rng(0), 40, 0.2, 20_000
    found = slides.interval.wald((random.random((sets, n)) < rate).astype(float))
    simulated = np.mean((found.lower <= rate) & (rate <= found.upper))
    [exact] = slides.coverage(slides.interval.wald, n, np.array([rate]))
    assert abs(simulated - exact) < 4 * np.sqrt(exact * (1 - exact) / sets)


@pytest.mark.slow
@pytest.mark.timeout(900)  # some forty programs are compiled
def test_slides_run_and_write_nothing():
    text = quick("scott_variyam.py")
    for number in range(1, 7):
        assert f"\n{number}. " in f"\n{text}"
    assert "wrong" not in [line.split()[-1] for line in text.splitlines() if line.startswith(("L2 ", "batch "))]
