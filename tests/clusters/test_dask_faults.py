"""A worker that is killed in the middle: nothing is lost, and nothing comes twice."""

import os
import signal

import distributed
import pytest
from scipy import sparse

import polysparse
from csr_zoo import random_dense
from dask_blocks import everything, lazily
from dask_cluster import local_workers
from polysparse import ObservedPolynomialFeatures

X = sparse.csr_array(random_dense(240, 12, 0.4))
SIZES = [12] * 20
FEW = 6  # blocks that may be computed before a worker is killed


@pytest.fixture
def workers(tmp_path):
    """A cluster of its own, since it is damaged."""
    with local_workers(tmp_path) as client:
        yield client


def gated(lazy, folder):
    """The same array, of which only a few blocks can be computed before the gate opens."""

    def pass_gate(block, block_id=None):
        (folder / f"{block_id[0]} has begun").touch()
        if len(list(folder.glob("* has begun"))) > FEW:
            distributed.Event("gate").wait()
        return block

    return lazy.map_blocks(pass_gate, meta=lazy._meta)


def kill_holder_of(client, future):
    """SIGKILL for a worker that has a result."""
    ((address, *_),) = client.who_has([future]).values()
    pid = client.run(os.getpid, workers=[address])[address]
    os.kill(pid, signal.SIGKILL)


def test_an_expansion_survives_the_loss_of_a_worker(workers, tmp_path):
    with workers.as_current():
        expanded = polysparse.expand(gated(lazily(X, SIZES), tmp_path), 3).persist()
        futures = distributed.futures_of(expanded)
        first = next(distributed.as_completed(futures))
        kill_holder_of(workers, first)
        assert sum(future.done() for future in futures) <= FEW
        distributed.Event("gate").set()
        assert everything(expanded.compute()) == everything(polysparse.expand(X, 3))


def test_counting_survives_the_loss_of_a_worker(workers, tmp_path):
    marker = tmp_path / "killed"

    def die_once(block, block_id=None):
        """Kill the worker that has counted half of its blocks."""
        if block_id[0] == len(SIZES) // 2 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    rows = lazily(X, SIZES)
    with workers.as_current():
        away = ObservedPolynomialFeatures(3, min_count=4).fit(
            rows.map_blocks(die_once, meta=rows._meta)
        )
    assert marker.exists()
    here = ObservedPolynomialFeatures(3, min_count=4).fit(X)
    assert away.columns_.tobytes() == here.columns_.tobytes()
    assert away.counts_.tobytes() == here.counts_.tobytes()
