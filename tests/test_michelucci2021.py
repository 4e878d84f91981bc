"""The demonstrations of Michelucci & Venturini 2021, run small as anybody can run them."""

import pytest
from scripts import quick


def numbers(text, start):
    """The numbers of the first line that begins so."""
    line = next(line for line in text.splitlines() if line.startswith(start))
    return [float(word) for word in line[len(start) :].replace("(", " ").replace(")", " ").split()]


@pytest.mark.slow
@pytest.mark.timeout(900)  # some twenty programs are compiled
def test_demonstrations_run_and_write_nothing():
    text = quick("michelucci2021.py")
    for number in range(1, 7):
        assert f"\n{number}. " in f"\n{text}"
    found, exact = numbers(text, "chi-squared,  1 df               2")[:2]
    assert abs(found - exact) < 0.15  # the skewness of 20,000 averages has a standard error of some 0.04
    few, many = (numbers(text, f"{size:6}") for size in (10, 1000))  # of least squares, which comes first
    assert few[1] > many[1] + 0.2  # the mean risk is lost as the test set grows: 0.85 and 0.38 of 200 data sets
    assert many[0] > 0.85  # the risk of the one model is not
