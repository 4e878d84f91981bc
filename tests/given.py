"""Losses with given values, and of least squares by NumPy, for the tests of statistics; the files of real data that
some tests can use.
"""

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jaxgen import loss
from jaxgen.types import Losses


def made(values, plan, learner="a", name="squared"):
    """Losses with these values of every row and case, [*Q, R, N]."""
    means = [np.sum(np.where(w > 0, w * values, 0), -1) / w.sum(-1) for w in (plan.test, plan.train)]
    return Losses(*means, plan, learner, name, np.zeros(means[0].shape, np.uint8), ("it did not converge",), values)


def without_values(losses):
    """The same with the means of rows only."""
    return replace(losses, values=None, predictions=None)


def with_failed(losses):
    """The same with row 3 failed."""
    failure = losses.failure.copy()
    failure[3] = 1
    return replace(losses, failure=failure)


def regression(x, y, train, test):
    """Losses of ordinary least squares without a constant, x [N, p]; of the mean if p is 0."""
    gram, moment = (
        np.einsum("rn,ni,nj->rij", train, x, x, optimize=True),
        np.einsum("rn,ni,n->ri", train, x, y, optimize=True),
    )
    predictions = (
        np.linalg.solve(gram, moment[..., None])[..., 0] @ x.T
        if x.shape[1]
        else np.repeat((train @ y / train.sum(1))[:, None], len(y), 1)
    )
    return Losses.from_predictions(y, predictions, train, test, loss.squared, "least squares")


def masks(random, n, fraction, resamples):
    """Training weights [R, N] of random splits that leave out this fraction."""
    return (random.random((resamples, n)).argsort(1) < n - math.ceil(n * fraction)).astype(float)


def delve_data(name):
    """The file of one of DELVE's data sets, X and y; the test is skipped where there is none."""
    folder = Path(os.environ.get("JAXGEN_DELVE_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (folder / f"{name}.npz").is_file():
        pytest.skip(f"needs DELVE's {name}.npz, in the folder that JAXGEN_DELVE_DATA names")
    return folder / f"{name}.npz"
