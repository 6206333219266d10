"""Fixtures that make every test of an output a test of every slot."""

import numpy as np
import pytest

from polysparse.matrix import output

POISON = {np.dtype(np.float32): np.nan, np.dtype(np.float64): np.nan}


@pytest.fixture(autouse=True)
def poisoned_outputs(monkeypatch):
    """Outputs begin as NaN, and as an index that no matrix has: a slot left out shows."""
    plain = output.allocate

    def allocate(shape, dtype, order="C"):
        out = plain(shape, dtype, order)
        out.fill(POISON.get(np.dtype(dtype), -7))
        return out

    monkeypatch.setattr(output, "allocate", allocate)


@pytest.fixture
def wide(monkeypatch):
    """Small data take the int64 path."""
    monkeypatch.setattr("polysparse.thresholds.MAX_INT32", 3)


@pytest.fixture
def small_tasks(monkeypatch):
    """Small data are shared out among threads, and inside rows."""
    monkeypatch.setattr("polysparse.thresholds.TASK_OUTPUTS", 3)
    monkeypatch.setattr("polysparse.thresholds.OUTPUTS_PER_THREAD", 1)
