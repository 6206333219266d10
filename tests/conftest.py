"""Fixtures that several tests share. Outputs begin poisoned, so every test checks every slot."""

import gc

import numpy as np
import pytest
from hypothesis import settings

from command_line import GOOD
from inside import lower
from polysparse.machine import usable_cores
from polysparse.matrix import output

settings.register_profile("untimed", deadline=None)  # no test depends on how fast a machine is
settings.load_profile("untimed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """A worker for each core that this process may use."""
    return usable_cores()


def pytest_collection():
    """Thousands of tests are collected in half the time without the garbage collector."""
    gc.disable()


def pytest_collection_finish():
    """What was collected stays until the end, so the garbage collector need not look at it."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config, items):
    """One worker runs all tests that are marked `alone`."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if item.get_closest_marker("alone"):
                item.add_marker(pytest.mark.xdist_group("alone"))


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
    lower(monkeypatch, MAX_INT32=3)


@pytest.fixture
def small_tasks(monkeypatch):
    """Small data are shared out among threads, and inside rows."""
    lower(monkeypatch, TASK_OUTPUTS=3, OUTPUTS_PER_THREAD=1)


@pytest.fixture
def small_batches(monkeypatch):
    """Small data are counted in several batches, which are then merged."""
    lower(monkeypatch, COUNTING_BYTES=300)


@pytest.fixture
def small_parts(monkeypatch):
    """A small store has several parts."""
    lower(monkeypatch, PART_BYTES=1_000)


@pytest.fixture
def good(tmp_path):
    """A small file without faults."""
    (tmp_path / "good.svmlight").write_bytes(GOOD)
    return tmp_path / "good.svmlight"


# These two import sample_files only when used, because it skips tests where pyarrow is missing.


@pytest.fixture
def matrix(tmp_path):
    """A file with the matrix of `sample_files`."""
    from sample_files import X, sparse

    sparse.save_npz(tmp_path / "in.npz", X)
    return tmp_path / "in.npz"


@pytest.fixture
def vocabulary(tmp_path):
    """A vocabulary of that matrix, saved from Python in another folder."""
    from polysparse import ObservedPolynomialFeatures
    from sample_files import X

    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "saved"
    ObservedPolynomialFeatures(3, min_count=9).fit(X).save(path)
    return path
