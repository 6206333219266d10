"""Scales of features that change along a stream: the defaults need no tuning."""

import numpy as np
import pytest
from scipy import sparse

from polysparse import PolynomialFTRLClassifier

N_ROWS = 8000
RNG = np.random.default_rng(2)
X = RNG.random((N_ROWS, 8))
Y = 12 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + X[:, 2] - X[:, 3]
Y = 4 * Y / 3 + RNG.logistic(size=N_ROWS) > 0


def with_factor(rows, factor):
    changed = X.copy()
    changed[rows] *= factor
    return changed


def with_column(column):
    return np.column_stack([X, column])


def late():
    column = (np.random.default_rng(3).random(N_ROWS) < 0.5).astype(float)
    column[:1000], column[1000] = 0, 1e-8
    return column


STREAMS = {
    "plain": X,
    "a hundred times as large": with_factor(slice(2000, None), 100),
    "a hundredth": with_factor(slice(2000, None), 0.01),
    "tiny at first": with_factor(slice(300), 1e-6),
    "a feature that begins tiny": with_column(late()),
    "a column that rises": with_column(np.arange(N_ROWS) / 1000),
    "an outlier": with_factor((3000, 0), 1e3),
}


def learner(**parameters):
    return PolynomialFTRLClassifier(n_columns=2**12, **parameters)


@pytest.mark.parametrize("stream", STREAMS)
def test_scales_follow_the_stream(stream):
    """The loss of a coin is 0.693."""
    assert learner().fit(STREAMS[stream], Y).progressive_loss_ < 0.69


@pytest.mark.parametrize("density", [1, 0.1, 0.02, 0.01])
def test_values_with_heavy_tails(density):
    rng = np.random.default_rng(1)
    present = rng.random((10_000, 50)) < density
    logs = 1.5 * rng.standard_normal(present.shape)
    score = 2 * np.log1p(np.exp(logs) * present) @ rng.standard_normal(50)
    y = score + rng.logistic(size=len(score)) > 0
    rows = sparse.csr_array(np.exp(logs) * present)
    assert learner(degree=1).fit(rows, y).progressive_loss_ < 0.693


@pytest.mark.parametrize("stream", STREAMS)
def test_scales_are_the_same_for_any_division_and_number_of_threads(stream):
    rows = STREAMS[stream]
    whole = learner(n_jobs=1).partial_fit(rows, Y, classes=[False, True])
    parts = learner(n_jobs=2)
    for begin, end in zip([0, 7, 300, 1111, 3000], [7, 300, 1111, 3000, N_ROWS], strict=True):
        parts.partial_fit(rows[begin:end], Y[begin:end], classes=[False, True])
    assert parts.scale_.tobytes() == whole.scale_.tobytes()
    assert parts.coef_.tobytes() == whole.coef_.tobytes()
    assert parts.progressive_loss_ == whole.progressive_loss_


def test_scales_never_decrease_and_are_at_least_half_of_the_largest_value():
    for rows in STREAMS.values():
        model, before = learner(), 0
        for begin in range(0, N_ROWS, 500):
            part = slice(begin, begin + 500)
            model.partial_fit(rows[part], Y[part], classes=[False, True])
            assert np.all(model.learner_.scaling.largest >= before)
            before = model.learner_.scaling.largest.copy()
        n = model.n_samples_seen_
        assert np.all(model.scale_ >= np.abs(rows[:n]).max(axis=0) / 2)
